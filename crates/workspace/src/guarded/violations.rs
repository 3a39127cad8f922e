//! After a command: what came is moved away, what was changed or deleted is put back.

use std::collections::BTreeSet;
use std::path::PathBuf;

use journeyman_protocol::{ContentHash, GuardViolation, GuardViolationKind, RelPath};
use rustix::fs::fstat;

use crate::error::WorkspaceError;
use crate::files::stat::FileStat;
use crate::guarded::kept_paths::KeptPath;
use crate::guarded::repository_settings::hash_executing_settings;
use crate::guarded::scan::{BuildProducts, GuardedScan};
use crate::guarded::stored_state::CutOffWindow;
use crate::guarded::{
    ForbiddenChanges, GuardedPath, GuardedState, SessionEdits, bare_repository_settings, scan_guarded,
};
use crate::repositories::{Quarantine, QuarantineDir};
use crate::workspace::Workspace;

/// Maximum number of violations reported of one command. All are moved away or put back.
const MAX_REPORTED_VIOLATIONS: usize = 200;

/// The result of one look after a command.
pub(crate) struct GuardedCheckResult {
    pub(crate) aftermath: ForbiddenChanges,
    /// Directories that could be listed before the command can't be any more.
    pub(crate) hidden: bool,
}

/// A look after a command.
struct GuardedCheck<'a> {
    guard: &'a GuardedState,
    workspace: &'a Workspace,
    look: &'a GuardedScan,
    products: BuildProducts<'a>,
    edits: SessionEdits<'a>,
    removal: QuarantineDir,
    /// True if the sandbox kept protected paths.
    kept: bool,
    /// When the command may have run, if it was cut off.
    window: Option<CutOffWindow>,
    found: Vec<GuardViolation>,
    more: usize,
}

impl GuardedState {
    pub(crate) fn handle_violations(
        &self,
        workspace: &Workspace,
        kept: bool,
        window: Option<CutOffWindow>,
    ) -> GuardedCheckResult {
        let look = scan_guarded(workspace, self.rules);
        let mut after = GuardedCheck {
            guard: self,
            workspace,
            look: &look,
            products: BuildProducts::of(&workspace.project, &workspace.snapshots),
            edits: SessionEdits::of(workspace),
            removal: QuarantineDir::for_cut_off_command(window.is_some()),
            kept,
            window,
            found: Vec::new(),
            more: 0,
        };
        after.check_repositories();
        after.check_bare_repositories();
        after.check_known();
        after.check_new();
        let hidden = look.unreadable.iter().any(|dir| !self.unreadable.contains(dir));
        let mut problems = Vec::new();
        if after.more > 0 {
            problems.push(format!("{} more were moved away or put back", after.more));
        }
        if !look.complete {
            problems.push(format!(
                "the command left more than {} directories or names too many to look at; what lies deep in them was \
                 not looked at",
                workspace.project.limits().max_files
            ));
        }
        let problem = (!problems.is_empty()).then(|| problems.join("; "));
        GuardedCheckResult { aftermath: ForbiddenChanges { violations: after.found, problem }, hidden }
    }
}

impl GuardedCheck<'_> {
    /// Checks everything named `.git`.
    fn check_repositories(&mut self) {
        let guard = self.guard;
        for path in guard.repositories.find_planted(self.look.repositories.iter().cloned()) {
            // Of a pointer or a link the text is kept.
            if guard.known.contains_key(&path) {
                continue;
            }
            let was_there = guard.repositories.contains(&path);
            if was_there || !self.is_ignored(&path) || self.is_newly_executing(&path) {
                self.move_away(
                    &path,
                    if was_there { GuardViolationKind::Changed } else { GuardViolationKind::Made },
                );
            }
        }
        for path in guard.armed.keys() {
            if !guard.known.contains_key(path) && self.is_newly_executing(path) {
                self.move_away(path, GuardViolationKind::Changed);
            }
        }
    }

    /// Checks repositories without a `.git`.
    fn check_bare_repositories(&mut self) {
        for dir in &self.look.bare {
            let bytes = dir.as_ref().map_or(&b""[..], RelPath::as_bytes);
            let Some(noted) = self.look.notes.get(bytes) else { continue };
            let armed =
                dir.as_ref().and_then(|dir| hash_executing_settings(&self.workspace.project.root_dir, dir));
            // It came with a directory above it.
            let came = |(ino, before): &(u64, Option<ContentHash>)| {
                *ino == noted.ino && (armed.is_none() || armed == *before)
            };
            // What it obeys where it was is looked at by itself.
            if self.guard.bare.contains_key(dir) || self.guard.bare.values().any(came) {
                continue;
            }
            let is_loose = dir.as_ref().is_some_and(|dir| self.products.is_ignored_dir(dir.as_bytes()));
            if is_loose && !dir.as_ref().is_some_and(|dir| self.is_newly_executing(dir)) {
                continue;
            }
            let before = self.guard.notes.get(bytes);
            match (dir, before) {
                // Of a command that was cut off it isn't known which directories were there before.
                (Some(dir), None) if self.window.is_none() => self.move_away(dir, GuardViolationKind::Made),
                // Other files may be there that were there before.
                _ => {
                    let is_old = |name: &Vec<u8>| before.is_some_and(|before| before.parts.contains(name));
                    let new: Vec<&Vec<u8>> = noted.parts.iter().filter(|name| !is_old(name)).collect();
                    for name in new {
                        let path = dir.as_ref().map_or_else(|| RelPath::parse(name), |dir| dir.join(name));
                        if let Ok(path) = path {
                            self.move_away(&path, GuardViolationKind::Made);
                        }
                    }
                }
            }
        }
    }

    /// Checks the paths that were there before.
    fn check_known(&mut self) {
        let guard = self.guard;
        for (path, known) in &guard.known {
            if self.was_protected(path, known) {
                continue;
            }
            let there = self.workspace.project.root_dir.stat(path).ok().flatten();
            let Some(there) = there else {
                let is_its_doing = !known.loose && self.may_be_by_command(path);
                if is_its_doing && !self.is_moved_elsewhere(known) && !self.edits.is_last_edit(path, None) {
                    self.put_back(path, known, GuardViolationKind::Deleted);
                }
                continue;
            };
            let Some(before) = &known.kept else {
                // Too large to be kept, so it was mounted: only another one in its place tells.
                let is_other = (there.ino, there.file_type()) != (known.seen.ino, known.seen.file_type());
                if is_other && self.may_be_by_command(path) {
                    self.put_back(path, known, GuardViolationKind::Changed);
                }
                continue;
            };
            let now = KeptPath::of(&self.workspace.project.root_dir, path, Some(before));
            let differences = KeptPath::differences(Some(before), now.as_ref(), path);
            let is_its_doing = differences.iter().any(|file| self.may_be_by_command(file));
            if is_its_doing && !self.were_edited(&differences, now.as_ref(), path) {
                self.put_back(path, known, GuardViolationKind::Changed);
            }
        }
    }

    /// Checks guarded names that weren't there before.
    fn check_new(&mut self) {
        let guard = self.guard;
        let settings = bare_repository_settings(self.workspace, guard.bare.keys());
        let all: BTreeSet<&RelPath> =
            self.look.guarded.iter().chain(&self.look.among_products).chain(&settings).collect();
        for path in all.into_iter().filter(|path| !guard.known.contains_key(*path)) {
            let Ok(Some(seen)) = self.workspace.project.root_dir.stat(path) else { continue };
            if guard.known.values().any(|known| known.seen.ino == seen.ino && self.is_moved_to(known, path)) {
                continue;
            }
            let now = KeptPath::of(&self.workspace.project.root_dir, path, None);
            let differences = KeptPath::differences(None, now.as_ref(), path);
            if !self.were_edited(&differences, now.as_ref(), path) {
                self.move_away(path, GuardViolationKind::Made);
            }
        }
    }

    /// Returns true if nothing could change the path: it was mounted read-only, and the directory
    /// that it is in is still the same.
    fn was_protected(&self, path: &RelPath, known: &GuardedPath) -> bool {
        let above = || {
            let parent = self.workspace.project.root_dir.open_parent(path).ok()?;
            Some(FileStat::of(&fstat(&parent).ok()?).ino)
        };
        let there = || matches!(self.workspace.project.root_dir.stat(path), Ok(Some(_)));
        self.kept && known.mounted && !known.shared && above() == Some(known.above) && there()
    }

    /// Returns true if this very file or directory is somewhere else, unchanged.
    fn is_moved_elsewhere(&self, known: &GuardedPath) -> bool {
        let is_it = |path: &RelPath| self.is_moved_to(known, path);
        self.look.guarded.iter().chain(&self.look.among_products).any(is_it)
            || (known.repository && self.look.repositories.iter().any(is_it))
    }

    fn is_moved_to(&self, known: &GuardedPath, path: &RelPath) -> bool {
        matches!(self.workspace.project.root_dir.stat(path), Ok(Some(seen)) if seen.ino == known.seen.ino)
            && known.kept.as_ref().is_none_or(|before| {
                let now = KeptPath::of(&self.workspace.project.root_dir, path, Some(before));
                KeptPath::differences(Some(before), now.as_ref(), path).is_empty()
            })
    }

    /// Returns true if edits left each of these files as it is now.
    fn were_edited(&self, differences: &[RelPath], now: Option<&KeptPath>, path: &RelPath) -> bool {
        let Some(now) = now else { return false };
        differences.iter().all(|file| match now.hash_at(path, file) {
            None => self.edits.is_last_edit(file, None),
            Some(Some(content)) => self.edits.is_last_edit(file, Some(content)),
            Some(None) => false,
        })
    }

    fn is_ignored(&self, path: &RelPath) -> bool {
        path.parent().is_some_and(|dir| self.products.is_ignored_dir(dir.as_bytes()))
    }

    /// Returns true if the repository runs something, and not what it or another one ran before the
    /// command.
    fn is_newly_executing(&self, path: &RelPath) -> bool {
        let armed = &self.guard.armed;
        hash_executing_settings(&self.workspace.project.root_dir, path).is_some_and(|now| {
            match armed.get(path) {
                Some(before) => now != *before,
                None => !armed.values().any(|before| *before == now),
            }
        })
    }

    /// Returns true if the command may have been the last to change the path. After a command that
    /// was cut off, another process may have changed it later.
    fn may_be_by_command(&self, path: &RelPath) -> bool {
        self.window.is_none_or(|window| window.contains(self.workspace, path))
    }

    fn move_away(&mut self, path: &RelPath, kind: GuardViolationKind) {
        if !self.may_be_by_command(path) {
            return;
        }
        let moved = Quarantine { project: &self.workspace.project }.move_away(path, &mut self.removal);
        if matches!(moved, Err(WorkspaceError::NotFound { .. })) {
            return;
        }
        self.add_violation(path, kind, moved.map(Some), false);
    }

    fn put_back(&mut self, path: &RelPath, known: &GuardedPath, kind: GuardViolationKind) {
        let quarantine = Quarantine { project: &self.workspace.project };
        let moved = match quarantine.move_away(path, &mut self.removal) {
            Err(WorkspaceError::NotFound { .. }) => Ok(None),
            other => other.map(Some),
        };
        let done = moved.and_then(|moved| {
            let Some(kept) = &known.kept else { return Err(WorkspaceError::NotKept { path: path.clone() }) };
            let put = kept.restore(&self.workspace.project.root_dir, path);
            put.map_err(|errno| self.workspace.project.root_dir.error_for("put back", path, errno))
                .map(|()| moved)
        });
        let is_back = done.is_ok();
        self.add_violation(path, kind, done, is_back);
    }

    fn add_violation(
        &mut self,
        path: &RelPath,
        kind: GuardViolationKind,
        done: Result<Option<PathBuf>, WorkspaceError>,
        put_back: bool,
    ) {
        // What could not be moved away is told of whatever else there is.
        if self.found.len() >= MAX_REPORTED_VIOLATIONS && done.is_ok() {
            self.more += 1;
            return;
        }
        let is_part = |name: &[u8]| {
            crate::guarded::BARE_REPOSITORY_FILES.iter().any(|part| part.as_bytes() == name)
                || journeyman_ignore_rules::is_git_directory_name(name)
        };
        let repository = is_part(path.file_name())
            || self.look.bare.iter().any(|dir| *dir == Some(path.clone()) || *dir == path.parent());
        let (moved_to, problem) = match done {
            Ok(place) => (place.map(|place| place.display().to_string()), None),
            Err(error) => (None, Some(error.to_string())),
        };
        let (path, call) = (path.clone(), None);
        self.found.push(GuardViolation { path, kind, repository, moved_to, put_back, problem, call });
    }
}
