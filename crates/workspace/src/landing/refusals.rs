//! Files that may never be landed from a copy or from a command's layer.
//!
//! A command can't change the user's own files there, so it is enough to look at what would be
//! landed: guarded paths, repositories (those without a `.git` too), links that lead out of the
//! project, unprintable names, files that run with another user's rights.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path};

use journeyman_protocol::{GuardRules, RelPath};

use crate::error::WorkspaceError;
use crate::files::root_dir::RootDir;
use crate::guarded::scan::BuildProducts;
use crate::journal::record::ChangeCause;
use crate::snapshot::differences::Difference;
use crate::snapshot::entry::{FileKind, FileState};
use crate::workspace::Workspace;

const GUARDED_REASON: &str =
    "programs outside the sandbox run or obey it, so the change of it is the person's to make";
const REPOSITORY_REASON: &str = "it is part of a repository that a command made: git would run what it says";
const LEADS_OUT_REASON: &str = "it is a link that leads out of the project";
const BAD_NAME_REASON: &str = "its name has control characters, or isn't UTF-8";
const SET_ID_REASON: &str = "it would run with its owner's or its group's rights (set-user-id, set-group-id)";

/// Directories of the system's own programs and libraries, which only its administrator changes.
/// Environments of interpreters have links to them.
const SYSTEM_DIRECTORIES: [&str; 6] = ["/usr", "/bin", "/lib", "/lib64", "/opt", "/nix/store"];
/// Refusals of one landing that are kept; who meets more has seen enough.
const MAX_REFUSALS: usize = 1_000;

/// Says what may not be landed in a project.
pub(crate) struct LandingFilter<'a> {
    user: &'a Workspace,
    guards: GuardRules,
    products: BuildProducts<'a>,
}

impl<'a> LandingFilter<'a> {
    /// Returns the filter of a tree; `None` if the tree was opened without one.
    pub(crate) fn of(user: &'a Workspace) -> Option<Self> {
        let products = BuildProducts::of(&user.project, &user.snapshots);
        Some(Self { user, guards: user.project.options.guarded?, products })
    }

    /// Returns the reason to refuse any change of a path.
    pub(crate) fn path_refusal(&self, path: &RelPath) -> Option<&'static str> {
        let is_guarded = (self.guards.guarded)(path)
            && ((self.guards.on_entering)(path) || !self.products.contains(path.as_bytes()));
        is_guarded.then_some(GUARDED_REASON)
    }

    /// Returns the reason to refuse a new or replaced file. `target` is a link's.
    pub(crate) fn file_refusal(
        &self,
        path: &RelPath,
        is_new: bool,
        (before, mode): (Option<u32>, u32),
        target: Option<&[u8]>,
    ) -> Option<&'static str> {
        if let Some(target) = target {
            return is_link_outside(self.user.root(), path, target).then_some(LEADS_OUT_REASON);
        }
        if is_new && !is_printable_name(path.as_bytes()) {
            return Some(BAD_NAME_REASON);
        }
        let new_rights = mode & !before.unwrap_or_default() & 0o6000;
        (new_rights != 0).then_some(SET_ID_REASON)
    }

    /// Looks at what differs between a tree and a copy of it.
    pub(crate) fn refusals(
        &self,
        copy: &Workspace,
        found: &[Difference],
        made: &[RelPath],
    ) -> Result<Vec<(RelPath, String)>, WorkspaceError> {
        let mut objections = BTreeMap::new();
        let mut edited = None;
        for difference in found {
            let path = &difference.path;
            if self.path_refusal(path).is_some() {
                // An edit's content was authorized by itself.
                let edited = match &edited {
                    Some(edited) => edited,
                    None => edited.insert(edited_files(copy)?),
                };
                if edited
                    .get(path)
                    .is_none_or(|left| !is_same_state(left.as_ref(), difference.after.as_ref()))
                {
                    objections.insert(path.clone(), GUARDED_REASON);
                    continue;
                }
            }
            let Some(after) = &difference.after else { continue };
            let is_changed =
                difference.before.is_none_or(|before| before.hash != after.hash || before.hash.is_none());
            let target = match after.kind {
                FileKind::Link if is_changed => copy.project.root_dir.read_link(path).ok(),
                FileKind::Link => continue,
                FileKind::File => None,
            };
            let before = difference.before.map(|before| before.mode);
            let wrong =
                self.file_refusal(path, difference.before.is_none(), (before, after.mode), target.as_deref());
            if let Some(wrong) = wrong {
                objections.insert(path.clone(), wrong);
            }
        }
        let changed: Vec<&RelPath> = found.iter().map(|difference| &difference.path).collect();
        for path in
            files_in_bare_repositories(&self.user.project.root_dir, &copy.project.root_dir, &changed, made)
        {
            objections.insert(path, REPOSITORY_REASON);
        }
        let objections = objections.into_iter().take(MAX_REFUSALS);
        Ok(objections.map(|(path, why)| (path, why.to_owned())).collect())
    }
}

/// Returns true if a directory with these names in it is a repository to git, `.git` or not.
pub(crate) fn has_repository_layout(names: &[Vec<u8>]) -> bool {
    let has = |name: &[u8]| names.iter().any(|other| other.eq_ignore_ascii_case(name));
    has(b"head") && has(b"objects") && has(b"refs")
}

/// Returns true if a directory of a tree is a bare repository to git.
fn is_bare(root_dir: &RootDir, dir: Option<&RelPath>) -> bool {
    let names = root_dir.open_directory(dir).and_then(|dir| crate::files::directory::entry_names(&dir));
    names.is_ok_and(|names| has_repository_layout(&names))
}

/// Returns the changed files of repositories without a `.git`: all files of a new one, and of an
/// existing one the files that git runs or obeys.
fn files_in_bare_repositories(
    user: &RootDir,
    copy: &RootDir,
    changed: &[&RelPath],
    made: &[RelPath],
) -> Vec<RelPath> {
    let parts = ["head", "objects", "refs", "config", "hooks", "info"];
    let mut candidates: BTreeSet<Option<RelPath>> = BTreeSet::new();
    for path in changed.iter().copied().chain(made) {
        let mut at = Some(path.clone());
        while let Some(path) = at {
            let name = path.file_name().to_ascii_lowercase();
            if parts.iter().any(|part| part.as_bytes() == name.as_slice()) {
                candidates.insert(path.parent());
            }
            at = path.parent();
        }
    }
    let mut found = Vec::new();
    for dir in candidates.iter().filter(|dir| is_bare(copy, dir.as_ref())) {
        let was_there = is_bare(user, dir.as_ref());
        for path in changed {
            let rest = match dir {
                None => Some(path.as_bytes()),
                Some(dir) => {
                    path.as_bytes().strip_prefix(dir.as_bytes()).and_then(|rest| rest.strip_prefix(b"/"))
                }
            };
            let Some(first) = rest.and_then(|rest| rest.split(|byte| *byte == b'/').next()) else { continue };
            let first = first.to_ascii_lowercase();
            let first = std::str::from_utf8(&first).unwrap_or_default();
            let is_part =
                if was_there { ["config", "hooks", "info"].contains(&first) } else { parts.contains(&first) };
            if is_part {
                found.push((*path).clone());
            }
        }
    }
    found
}

/// Returns the state in which edits left each file.
pub(crate) fn edited_files(copy: &Workspace) -> Result<BTreeMap<RelPath, Option<FileState>>, WorkspaceError> {
    let history = crate::journal::history::History::new(copy.project.journal().lines()?);
    let mut edited = BTreeMap::new();
    for record in history.into_changes().into_iter().filter(|record| record.cause == ChangeCause::Edit) {
        for file in record.files {
            edited.insert(file.path, file.after);
        }
    }
    Ok(edited)
}

fn is_same_state(left: Option<&FileState>, now: Option<&FileState>) -> bool {
    match (left, now) {
        (None, None) => true,
        (Some(left), Some(now)) => left.kind == now.kind && left.hash.is_some() && left.hash == now.hash,
        _ => false,
    }
}

fn is_printable_name(path: &[u8]) -> bool {
    std::str::from_utf8(path).is_ok_and(|path| !path.chars().any(char::is_control))
}

/// Returns true if a link at `path` points out of the project at `root`. No link leads within its
/// directory. A target that can't be judged by its names alone counts as outside.
fn is_link_outside(root: &Path, path: &RelPath, target: &[u8]) -> bool {
    use std::os::unix::ffi::OsStrExt as _;
    let target = Path::new(std::ffi::OsStr::from_bytes(target));
    let plain =
        |path: &Path| path.components().all(|it| matches!(it, Component::Normal(_) | Component::RootDir));
    if target.is_absolute() {
        let allowed =
            target.starts_with(root) || SYSTEM_DIRECTORIES.iter().any(|system| target.starts_with(system));
        return !allowed || !plain(target);
    }
    let mut depth = path.components().count().saturating_sub(1);
    let mut down = false;
    for component in target.components() {
        match component {
            Component::Normal(_) => down = true,
            Component::CurDir => {}
            // After a name, which may be a link's, it may lead anywhere.
            Component::ParentDir if down => return true,
            Component::ParentDir => match depth.checked_sub(1) {
                Some(above) => depth = above,
                None => return true,
            },
            Component::RootDir | Component::Prefix(_) => return true,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_links_lead() {
        let table = [
            ("a/link", "b", false),
            ("a/link", "../b", false),
            ("a/link", "../../b", true),
            ("link", "..", true),
            ("link", "a/../b", true),
            ("a/b/link", "../../c/d", false),
            ("link", "/home/p/inside", false),
            ("link", "/home/p/../x", true),
            ("link", "/home/pp", true),
            ("venv/bin/python", "/usr/bin/python3", false),
            ("link", "/usr/../etc/passwd", true),
            ("link", "/etc/passwd", true),
            ("link", "/", true),
        ];
        for (path, target, expected) in table {
            let path = RelPath::parse(path).unwrap();
            assert_eq!(
                is_link_outside(Path::new("/home/p"), &path, target.as_bytes()),
                expected,
                "{path} -> {target}"
            );
        }
    }

    #[test]
    fn what_git_takes_for_a_repository() {
        let names = |names: &[&str]| names.iter().map(|name| name.as_bytes().to_vec()).collect::<Vec<_>>();
        assert!(has_repository_layout(&names(&["HEAD", "objects", "refs", "x"])));
        assert!(has_repository_layout(&names(&["head", "Objects", "REFS"])));
        assert!(!has_repository_layout(&names(&["HEAD", "objects"])));
    }
}
