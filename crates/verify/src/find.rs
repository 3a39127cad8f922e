//! Discovery of a project's own checks.
//!
//! Every ecosystem is a pure function over a [`Project`]: what files there are, what they hold,
//! which programs can be started. Nothing is executed to find out.

mod cargo;
mod cmake;
mod go;
mod jvm;
mod make;
mod node;
mod project;
mod python;
mod shell;

use std::collections::BTreeSet;

use journeyman_protocol::{CheckKind, RelPath};
use journeyman_workspace::{Listing, StatKind, Workspace};

use project::{MANIFESTS, Project, ProjectDirectory};
pub(crate) use shell::quoted;

use crate::Check;

use crate::unfailing::cannot_fail;

/// A change that spans more projects of one repository than this is checked in the first ones; each
/// costs minutes. The others are listed as not run.
const MAX_PROJECTS: usize = 4;
/// A manifest larger than this is data, not a manifest.
const MAX_MANIFEST_BYTES: u64 = 1024 * 1024;
/// Without a manifest at the root and without changed files, projects are looked for this deep.
const MAX_DEPTH_UNASKED: usize = 3;
/// Directories whose manifests are somebody else's, or bait for tests.
const FOREIGN_DIRECTORIES: [&[u8]; 8] = [
    b"node_modules",
    b"vendor",
    b"third_party",
    b"testdata",
    b"fixtures",
    b"target",
    b"site-packages",
    b".venv",
];

/// Finds the checks of the project at the workspace's root; where the root has none, those of the
/// nearest projects beneath it. `tools` says whether a program can be found.
#[must_use]
pub fn find(workspace: &Workspace, listing: &Listing, tools: &dyn Fn(&str) -> bool) -> Vec<Check> {
    find_for(workspace, listing, &[], tools)
}

/// Finds the checks that matter after `changed` files changed: those of the root first, then those
/// of the nearest project above each changed file. Checks that are known not to be able to run are
/// in the list with [`Check::blocked`] set, so that evidence says so. Ordered as they run.
#[must_use]
pub fn find_for(
    workspace: &Workspace,
    listing: &Listing,
    changed: &[RelPath],
    tools: &dyn Fn(&str) -> bool,
) -> Vec<Check> {
    in_project(&OnDisk { workspace, listing, changed, tools })
}

/// The finders over any [`Project`].
fn in_project(project: &dyn Project) -> Vec<Check> {
    let mut checks = in_directory(&ProjectDirectory { project, directory: None });
    let further = further_directories(project, !checks.is_empty());
    for (nth, directory) in further.iter().enumerate() {
        let found = in_directory(&ProjectDirectory { project, directory: Some(directory) });
        checks.extend(found.into_iter().map(|check| {
            if nth < MAX_PROJECTS {
                check
            } else {
                check.blocked(format!("only {MAX_PROJECTS} projects beneath the root are checked at a time"))
            }
        }));
    }
    // Stable: within a kind the root comes first.
    checks.sort_by_key(|check| check.kind);
    checks
}

/// The checks of one directory.
fn in_directory(place: &ProjectDirectory<'_>) -> Vec<Check> {
    let mut checks = Vec::new();
    checks.extend(cargo::find(place));
    checks.extend(node::find(place));
    checks.extend(python::find(place));
    checks.extend(go::find(place));
    checks.extend(cmake::find(place));
    checks.extend(jvm::find(place));
    let tested = checks.iter().any(|check| check.kind == CheckKind::Test && check.blocked.is_none());
    if !tested {
        // A Makefile beside another build system mostly calls it; where nothing else tests, it is
        // the way.
        checks.extend(make::find(place));
    }
    for check in &mut checks {
        check.cannot_fail = cannot_fail(&check.command, &|name| place.read(name));
    }
    checks
}

/// Directories beneath the root with a manifest of their own, in the order of their paths.
fn further_directories(project: &dyn Project, root_has_checks: bool) -> BTreeSet<RelPath> {
    let mut directories = BTreeSet::new();
    for changed in project.changed() {
        let mut above = changed.parent();
        while let Some(directory) = above {
            if is_project(project, &directory) {
                directories.insert(directory);
                break;
            }
            above = directory.parent();
        }
    }
    if !root_has_checks && directories.is_empty() {
        let manifests = project.files().iter().filter(|path| {
            MANIFESTS.iter().any(|name| path.file_name() == name.as_bytes())
                && path.components().count() <= MAX_DEPTH_UNASKED
        });
        let all: BTreeSet<RelPath> = manifests.filter_map(RelPath::parent).collect();
        // A project inside another project is that one's business.
        directories = all.iter().filter(|one| !has_ancestor_in(one, &all)).cloned().collect();
    }
    directories.retain(|directory| {
        !directory.components().any(|name| FOREIGN_DIRECTORIES.contains(&name))
            && !cargo::is_member(project, directory)
    });
    directories
}

fn has_ancestor_in(directory: &RelPath, all: &BTreeSet<RelPath>) -> bool {
    let mut above = directory.parent();
    while let Some(one) = above {
        if all.contains(&one) {
            return true;
        }
        above = one.parent();
    }
    false
}

fn is_project(project: &dyn Project, directory: &RelPath) -> bool {
    MANIFESTS.iter().filter_map(|name| directory.join(name).ok()).any(|path| project.has_file(&path))
}

/// A project as the workspace shows it.
struct OnDisk<'a> {
    workspace: &'a Workspace,
    listing: &'a Listing,
    changed: &'a [RelPath],
    tools: &'a dyn Fn(&str) -> bool,
}

impl OnDisk<'_> {
    fn is(&self, path: &RelPath, kind: StatKind) -> bool {
        // Unreadable files count as absent; nothing is decided by absence alone.
        matches!(self.workspace.stat(path), Ok(Some(stat)) if stat.kind == kind)
    }
}

impl Project for OnDisk<'_> {
    fn has_file(&self, path: &RelPath) -> bool {
        self.is(path, StatKind::File)
    }

    fn has_directory(&self, path: &RelPath) -> bool {
        self.is(path, StatKind::Directory)
    }

    fn read(&self, path: &RelPath) -> Option<String> {
        let content = self.workspace.read(path, MAX_MANIFEST_BYTES).ok()?;
        content.text().map(str::to_owned)
    }

    fn has_link(&self, path: &RelPath) -> bool {
        self.is(path, StatKind::Other)
    }

    fn has_program(&self, name: &str) -> bool {
        (self.tools)(name)
    }

    fn files(&self) -> &[RelPath] {
        &self.listing.paths
    }

    fn changed(&self) -> &[RelPath] {
        self.changed
    }
}

#[cfg(test)]
mod tests;
