//! Discovery of a project's own checks.
//!
//! Every ecosystem is a pure function over a [`Project`]: its files, their contents, and the
//! programs that can be started. Nothing is executed.

mod autotools;
mod build_tools;
mod cargo;
mod check_runners;
mod cmake;
mod command_files;
mod deno;
mod dotnet;
mod elixir;
mod go;
mod jvm;
mod meson;
pub(crate) mod node;
mod packages;
pub(crate) mod php;
pub(crate) mod project;
mod python;
mod ruby;
mod security;
pub(crate) mod shell;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use journeyman_protocol::{CheckKind, RelPath};
use journeyman_workspace::{Listing, StatKind, Workspace};

use project::{MANIFESTS, Project, ProjectDirectory, is_foreign};
pub(crate) use shell::quote_word;

use crate::Check;

use crate::unfailing_checks::cannot_fail;

/// Maximum number of projects of one repository that are checked after a change, each of which
/// costs minutes. The checks of others are listed as not run.
const MAX_PROJECTS: usize = 4;
/// Maximum bytes of a manifest; a larger file is data.
const MAX_MANIFEST_BYTES: u64 = 1024 * 1024;
/// Maximum depth at which projects are searched, without a manifest at the root and without changed
/// files.
const MAX_SEARCH_DEPTH: usize = 3;

/// A function from the name of a program to the file that a command of this name starts, or from a
/// program's own absolute path to itself; `None` where there is no such program.
pub type ProgramLookup = dyn Fn(&str) -> Option<PathBuf> + Send + Sync;

/// Finds the checks of the project at the workspace's root; where the root has none, those of the
/// nearest projects beneath it.
#[must_use]
pub fn find_project_checks(
    workspace: &Workspace,
    listing: &Listing,
    find_program: &ProgramLookup,
) -> Vec<Check> {
    find_checks_for_changes(workspace, listing, &[], find_program)
}

/// Finds the checks that matter after `changed` files changed: those of the root first, then those
/// of the nearest project above each changed file, then those of the packages that depend on one of
/// these. Checks that are known not to be able to run are in the list with [`Check::blocked`] set,
/// so that evidence says so; those that only run on request are not. Ordered as they run.
#[must_use]
pub fn find_checks_for_changes(
    workspace: &Workspace,
    listing: &Listing,
    changed: &[RelPath],
    find_program: &ProgramLookup,
) -> Vec<Check> {
    let mut checks = find_all_checks(workspace, listing, changed, find_program);
    checks.retain(|check| check.unasked.is_none());
    checks
}

/// Finds the checks as [`find_checks_for_changes`] does, and also those that only run on request
/// ([`Check::unasked`]).
#[must_use]
pub fn find_all_checks(
    workspace: &Workspace,
    listing: &Listing,
    changed: &[RelPath],
    find_program: &ProgramLookup,
) -> Vec<Check> {
    find_in_project(&DiskProject { workspace, listing, changed, find_program })
}

/// Finds the checks of any [`Project`].
fn find_in_project(project: &dyn Project) -> Vec<Check> {
    let mut found = DirectoryChecks { project, checks: BTreeMap::new() };
    let mut checks = find_in_directory(&ProjectDirectory { project, directory: None });
    let has_checks = checks.iter().any(|check| check.unasked.is_none());
    let further = further_directories(&mut found, !has_checks);
    for (nth, (directory, why)) in further.iter().enumerate() {
        checks.extend(found.find_checks_in(directory).iter().cloned().map(|check| {
            let check = match why {
                Some(needed) => {
                    Check { why: format!("{}; depends on {needed}, which changed", check.why), ..check }
                }
                None => check,
            };
            if nth < MAX_PROJECTS {
                check
            } else {
                check.with_blocked(format!(
                    "only {MAX_PROJECTS} projects beneath the root are checked at a time"
                ))
            }
        }));
    }
    // Stable: within a kind the root comes first.
    checks.sort_by_key(|check| check.kind);
    checks
}

/// Returns the directories whose checks matter: the root, and those beneath it.
pub(crate) fn checked_directories(project: &dyn Project) -> Vec<Option<RelPath>> {
    let mut found = DirectoryChecks { project, checks: BTreeMap::new() };
    let own = find_in_directory(&ProjectDirectory { project, directory: None });
    let further = further_directories(&mut found, own.iter().all(|check| check.unasked.is_some()));
    let further = further.into_iter().take(MAX_PROJECTS).map(|(directory, _)| Some(directory));
    std::iter::once(None).chain(further).collect()
}

/// Finds the checks of one directory.
pub(crate) fn find_in_directory(place: &ProjectDirectory<'_>) -> Vec<Check> {
    let mut checks = Vec::new();
    checks.extend(cargo::find_checks(place));
    checks.extend(node::find_checks(place));
    checks.extend(python::find_checks(place));
    checks.extend(go::find_checks(place));
    checks.extend(cmake::find_checks(place));
    checks.extend(meson::find_checks(place));
    if checks.is_empty() {
        checks.extend(autotools::find_checks(place));
    }
    checks.extend(jvm::find_checks(place));
    checks.extend(ruby::find_checks(place));
    checks.extend(php::find_checks(place));
    checks.extend(dotnet::find_checks(place));
    checks.extend(elixir::find_checks(place));
    checks.extend(deno::find_checks(place));
    let named = |check: &&Check| check.unasked.is_none();
    let tested = checks.iter().filter(named).any(|check| check.kind == CheckKind::Test);
    checks.extend(build_tools::find_checks(place, tested));
    let runs = |check: &&Check| check.blocked.is_none() && check.unasked.is_none();
    let tested = checks.iter().filter(runs).any(|check| check.kind == CheckKind::Test);
    checks.extend(command_files::find_checks(place, tested));
    checks.extend(check_runners::find_pre_commit_check(place));
    checks.extend(security::find_checks(place));
    for check in &mut checks {
        check.cannot_fail = cannot_fail(&check.command, &|name| place.read(name));
    }
    checks
}

/// The checks of each directory, found once.
struct DirectoryChecks<'a> {
    project: &'a dyn Project,
    checks: BTreeMap<RelPath, Vec<Check>>,
}

impl DirectoryChecks<'_> {
    fn find_checks_in(&mut self, directory: &RelPath) -> &[Check] {
        let project = self.project;
        self.checks
            .entry(directory.clone())
            .or_insert_with(|| find_in_directory(&ProjectDirectory { project, directory: Some(directory) }))
    }

    /// Returns true if `directory` is a project with checks of its own. A directory of a larger
    /// build has a manifest too, but no checks.
    fn is_project(&mut self, directory: &RelPath) -> bool {
        let is_manifest = |name: &&str| directory.join(name).is_ok_and(|path| self.project.has_file(&path));
        let is_project = MANIFESTS.iter().any(is_manifest)
            || dotnet::is_project(self.project, directory)
            || build_tools::has_manifest_by_ending(self.project, directory);
        is_project && !self.find_checks_in(directory).is_empty()
    }
}

/// Returns the directories beneath the root with checks of their own: those that changed in the
/// order of their paths, then those that depend on them, each with the directory that it depends
/// on.
fn further_directories(
    found: &mut DirectoryChecks<'_>,
    root_is_bare: bool,
) -> Vec<(RelPath, Option<RelPath>)> {
    let project = found.project;
    let mut directories = BTreeSet::new();
    for changed in project.changed_files() {
        let mut above = changed.parent();
        while let Some(directory) = above {
            if found.is_project(&directory) {
                directories.insert(directory);
                break;
            }
            above = directory.parent();
        }
    }
    if root_is_bare && directories.is_empty() {
        let manifests = project.files().iter().filter(|path| {
            MANIFESTS.iter().any(|name| path.file_name() == name.as_bytes())
                && path.components().count() <= MAX_SEARCH_DEPTH
        });
        let all: BTreeSet<RelPath> = manifests.filter_map(RelPath::parent).collect();
        let all: BTreeSet<RelPath> = all.into_iter().filter(|one| found.is_project(one)).collect();
        // The checks of a project inside another project belong to the inner one.
        directories = all.iter().filter(|one| !has_ancestor_in(one, &all)).cloned().collect();
    }
    directories.retain(|directory| !is_foreign(directory));
    let dependents = match project.changed_files() {
        [] => Vec::new(),
        _ => packages::find_dependents(project, &directories),
    };
    let own = directories.into_iter().map(|directory| (directory, None));
    let all = own.chain(dependents.into_iter().map(|(directory, needed)| (directory, Some(needed))));
    all.filter(|(directory, _)| !cargo::is_workspace_member(project, directory)).collect()
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

/// A project as the workspace lists it.
pub(crate) struct DiskProject<'a> {
    pub(crate) workspace: &'a Workspace,
    pub(crate) listing: &'a Listing,
    pub(crate) changed: &'a [RelPath],
    pub(crate) find_program: &'a ProgramLookup,
}

impl DiskProject<'_> {
    fn has_entry(&self, path: &RelPath, kind: StatKind) -> bool {
        // Unreadable files count as absent; nothing is decided by absence alone.
        matches!(self.workspace.stat(path), Ok(Some(stat)) if stat.kind == kind)
    }
}

impl Project for DiskProject<'_> {
    fn has_file(&self, path: &RelPath) -> bool {
        self.has_entry(path, StatKind::File)
    }

    fn has_directory(&self, path: &RelPath) -> bool {
        self.has_entry(path, StatKind::Directory)
    }

    fn read(&self, path: &RelPath) -> Option<String> {
        let content = self.workspace.read(path, MAX_MANIFEST_BYTES).ok()?;
        content.text().map(str::to_owned)
    }

    fn has_link(&self, path: &RelPath) -> bool {
        self.has_entry(path, StatKind::Other)
    }

    fn find_program(&self, name: &str) -> Option<PathBuf> {
        (self.find_program)(name)
    }

    fn files(&self) -> &[RelPath] {
        &self.listing.paths
    }

    fn changed_files(&self) -> &[RelPath] {
        self.changed
    }
}

#[cfg(test)]
pub(crate) mod tests;
