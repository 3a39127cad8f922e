//! The real thing: a project on a disk, on which the acts are carried out.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use journeyman_protocol::{CallId, FileChange, FileChangeKind, UnixMillis};
use journeyman_workspace::failpoint::{Failpoint, Fault};
use journeyman_workspace::{
    Change, CheckpointId, ExpectedState, UndoReport, UndoTarget, Workspace, WorkspaceError,
};

use crate::model::acts::{Act, Deed, Target, Wish};
use crate::model::world::{Cause, Entry, State, Tree, Undone, World, differences, parents};
use crate::support::{Node, Project, rel, session, set};

/// A command that was cut off is taken back after five of these, so it is short; but longer than
/// two ticks of the clock that files are stamped with, and five of them longer than a thread waits
/// for a processor.
const BEAT: Duration = Duration::from_millis(20);

pub(crate) struct Run {
    project: Project,
    workspace: Workspace,
    world: World,
    /// Each checkpoint with the tree as it was, and the number of changes before it.
    checkpoints: Vec<(CheckpointId, Tree, usize)>,
    calls: usize,
}

/// What a file change is, as the model has it.
fn kinds(changes: &[FileChange]) -> BTreeMap<String, (bool, bool)> {
    let kind = |kind| match kind {
        FileChangeKind::Added => (false, true),
        FileChangeKind::Modified => (true, true),
        FileChangeKind::Deleted => (true, false),
    };
    let named = |change: &FileChange| String::from_utf8(change.path.as_bytes().to_vec()).unwrap();
    changes.iter().map(|change| (named(change), kind(change.kind))).collect()
}

fn expected_kinds(entry: &Entry) -> BTreeMap<String, (bool, bool)> {
    let files = entry.files.iter();
    files.map(|(path, (before, after))| (path.clone(), (before.is_some(), after.is_some()))).collect()
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, found: T, expected: T) -> Result<(), String> {
    if found == expected {
        Ok(())
    } else {
        Err(format!("{what}:\n   found {found:?}\nexpected {expected:?}"))
    }
}

fn failed(what: &str) -> impl Fn(WorkspaceError) -> String {
    move |error| format!("{what}: {error:?}")
}

impl Run {
    pub(crate) fn new() -> Self {
        let mut project = Project::in_memory();
        project.limits.heartbeat = BEAT;
        fs::write(project.root().join("probe"), "").unwrap();
        let new_mode = fs::metadata(project.root().join("probe")).unwrap().permissions().mode() & 0o7777;
        fs::remove_file(project.root().join("probe")).unwrap();
        let workspace = project.open();
        let world = World { new_mode, ..World::default() };
        Self { project, workspace, world, checkpoints: Vec::new(), calls: 0 }
    }

    /// The tree on the disk.
    fn tree(&self) -> Tree {
        let nodes = self.project.tree().into_iter().map(|(path, node)| {
            let text = |bytes| String::from_utf8(bytes).unwrap();
            let state = match node {
                Node::Dir => None,
                Node::File(mode, content) => Some(State { link: false, mode, content: text(content) }),
                Node::Link(target) => Some(State { link: true, mode: 0o777, content: text(target) }),
            };
            (text(path), state)
        });
        nodes.collect()
    }

    /// Carries out one act on both, and compares.
    pub(crate) fn act(&mut self, act: &Act) -> Result<(), String> {
        match act {
            Act::Edit(number, wishes) => self.edit(*number, wishes, None)?,
            Act::CutEdit(number, wishes, step) => self.edit(*number, wishes, Some(*step))?,
            Act::Command(number, deeds) => self.command(*number, deeds, &[], &[])?,
            Act::EditDuring(number, first, wishes, then) => self.command(*number, first, wishes, then)?,
            Act::Killed(number, deeds, saves) => self.killed(*number, deeds, saves)?,
            Act::Beside(one, other, deeds, then) => self.beside([*one, *other], deeds, then)?,
            Act::Check(number, deeds) => self.check(*number, deeds)?,
            Act::Outside(deeds) => self.deeds(deeds),
            Act::Undo(target) => self.undo(target, None)?,
            Act::CutUndo(target, step) => self.undo(target, Some(*step))?,
            Act::Redo => self.redo(None)?,
            Act::CutRedo(step) => self.redo(Some(*step))?,
            Act::Checkpoint(number) => self.checkpoint(*number)?,
            Act::Compare(at) => self.compare(*at)?,
            Act::Reopen => self.workspace = self.project.open(),
        }
        same("the tree", self.tree(), self.world.tree.clone())
    }

    /// Does deeds, past the workspace.
    fn deeds(&mut self, deeds: &[Deed]) {
        for deed in deeds {
            if self.world.act(deed) {
                do_it(&self.project.root(), deed);
            }
        }
    }

    fn changes(&self, wishes: &[Wish]) -> (Vec<Wish>, Vec<Change>) {
        let wishes: Vec<Wish> =
            wishes.iter().filter(|wish| !self.world.is_about_links(wish)).cloned().collect();
        let change = |wish: &Wish| match wish {
            Wish::Write(path, content) => Change::Write {
                path: rel(path),
                content: content.clone().into_bytes(),
                expected: ExpectedState::Anything,
            },
            Wish::Delete(path) => Change::Delete { path: rel(path), expected: ExpectedState::Anything },
            Wish::Rename(from, to) => Change::Rename { from: rel(from), to: rel(to) },
            Wish::Executable(path, flag) => Change::SetExecutable { path: rel(path), executable: *flag },
        };
        let changes = wishes.iter().map(change).collect();
        (wishes, changes)
    }

    /// How long the journal is.
    fn journal_length(&self) -> usize {
        fs::read(self.project.state().join("journal/log")).unwrap_or_default().len()
    }

    /// Whether a change was journaled beyond this length, and happened.
    fn happened(&self, since: usize) -> bool {
        let log = fs::read_to_string(self.project.state().join("journal/log")).unwrap_or_default();
        let new = log.get(since..).unwrap_or_default();
        new.contains("{\"placed\":") || new.contains("{\"done\":")
    }

    fn cutting(&self, steps: usize) -> Workspace {
        let seen = Arc::new(AtomicUsize::new(0));
        let hook =
            move |_| if seen.fetch_add(1, Ordering::Relaxed) == steps { Fault::Cut } else { Fault::Go };
        self.project.open_failing(Failpoint::new(hook))
    }

    fn edit(&mut self, number: u64, wishes: &[Wish], cut: Option<usize>) -> Result<(), String> {
        let (wishes, changes) = self.changes(wishes);
        let expected = self.world.edited(number, &wishes);
        let length = self.journal_length();
        let result = match cut {
            None => self.workspace.apply(set(number, changes)),
            Some(steps) => self.cutting(steps).apply(set(number, changes)),
        };
        if matches!(result, Err(WorkspaceError::CutOff(_))) {
            self.workspace = self.project.open();
            if let Some((tree, entry)) = expected.filter(|_| self.happened(length)) {
                self.world.tree = tree;
                self.world.journal.push(entry);
            }
            return Ok(());
        }
        match (result, expected) {
            (Ok(applied), Some((tree, entry))) => {
                same("the changes of an edit", kinds(&applied.changes), expected_kinds(&entry))?;
                self.world.tree = tree;
                if !entry.is_empty() {
                    self.world.journal.push(entry);
                }
                Ok(())
            }
            (Err(_), None) => Ok(()),
            (Ok(applied), None) => Err(format!("an edit that is to be refused did {:?}", applied.changes)),
            (Err(error), Some(_)) => Err(format!("an edit was refused: {error:?}")),
        }
    }

    fn next_call(&mut self) -> CallId {
        self.calls += 1;
        CallId::new(format!("call-{}", self.calls))
    }

    fn command(&mut self, number: u64, first: &[Deed], wishes: &[Wish], then: &[Deed]) -> Result<(), String> {
        let call = self.next_call();
        let begun = self
            .workspace
            .command_observer()
            .begin_call(&session(number), &call)
            .map_err(failed("a command"))?;
        let (before, since) = (self.world.tree.clone(), self.world.journal.len());
        self.deeds(first);
        let (wishes, changes) = self.changes(wishes);
        let expected = self.world.edited(number + 3, &wishes);
        if let Some((tree, entry)) = expected {
            let applied =
                self.workspace.apply(set(number + 3, changes)).map_err(failed("an edit meanwhile"))?;
            same("the changes of an edit meanwhile", kinds(&applied.changes), expected_kinds(&entry))?;
            if !entry.is_empty() {
                self.world.meanwhile(number, &before, since, &entry);
                self.world.tree = tree;
                self.world.journal.push(entry);
            }
        }
        self.deeds(then);
        let found = self.workspace.command_observer().end(begun, &session(number), Some(&call));
        let found = found.map_err(failed("the end of a command"))?;
        self.found("a command", number, Cause::Own, (&before, since), &found)
    }

    /// Journals what was done since, and compares it with what the workspace says.
    fn found(
        &mut self,
        what: &str,
        number: u64,
        cause: Cause,
        since: (&Tree, usize),
        found: &[FileChange],
    ) -> Result<(), String> {
        let length = self.world.journal.len();
        self.world.found(number, cause, since.0, since.1);
        let entry = self.world.journal.get(length);
        same(&format!("the changes of {what}"), kinds(found), entry.map(expected_kinds).unwrap_or_default())
    }

    fn check(&mut self, number: u64, deeds: &[Deed]) -> Result<(), String> {
        let begun =
            self.workspace.command_observer().begin_checks(&session(number)).map_err(failed("checks"))?;
        let (before, since) = (self.world.tree.clone(), self.world.journal.len());
        self.deeds(deeds);
        let found = self
            .workspace
            .command_observer()
            .end_checks(begun, &session(number))
            .map_err(failed("checks"))?;
        self.found("checks", number, Cause::Check, (&before, since), &found)
    }

    /// A command whose program is gone before it ends; whoever is next takes back what it did.
    fn killed(&mut self, number: u64, deeds: &[Deed], saves: &[Deed]) -> Result<(), String> {
        let call = self.next_call();
        self.checkpoint(number)?;
        let checkpoint = self.checkpoints.last().unwrap().0;
        let begun = self
            .workspace
            .command_observer()
            .begin_call(&session(number), &call)
            .map_err(failed("a command"))?;
        let (before, since) = (self.world.tree.clone(), self.world.journal.len());
        self.deeds(deeds);
        self.deeds(saves);
        drop(begun);
        self.workspace = self.project.open();
        let recovered = self.workspace.recovery().recover_call(
            &checkpoint,
            &session(number),
            &call,
            UnixMillis(u64::MAX),
        );
        let recovered = recovered.map_err(failed("recovery"))?;
        let length = self.world.journal.len();
        self.world.found(number, Cause::Own, &before, since);
        if self.world.journal.len() == length {
            return Ok(());
        }
        let Some(undone) = self.world.undone(&self.world.cut_off()) else {
            return Err("the model can't take back what was cut off".to_owned());
        };
        same("what is restored by recovery", kinds(&recovered.restored), undone.restored.clone())?;
        // Whatever it held before, a person's saves too, is in a checkpoint that can be gone back
        // to.
        let found = self.world.journal.len();
        same("the checkpoints of it", recovered.kept.len(), 1)?;
        self.checkpoints.push((recovered.kept[0], self.world.tree.clone(), found));
        self.take(undone);
        Ok(())
    }

    /// Two commands that overlap: what differs at the first one's end may be the other's.
    fn beside(&mut self, [one, other]: [u64; 2], deeds: &[Deed], then: &[Deed]) -> Result<(), String> {
        let calls = [self.next_call(), self.next_call()];
        let begin = |number, call| {
            self.workspace.command_observer().begin_call(&session(number), call).map_err(failed("a command"))
        };
        let (first, second) = (begin(one, &calls[0])?, begin(other, &calls[1])?);
        let (before, since) = (self.world.tree.clone(), self.world.journal.len());
        self.deeds(deeds);
        let found = self.workspace.command_observer().end(first, &session(one), Some(&calls[0]));
        let found = found.map_err(failed("the end of a command"))?;
        self.found("the first of two commands", one, Cause::Own, (&before, since), &found)?;
        let mut told = BTreeMap::new();
        if let Some(shared) = self.world.journal.get_mut(since) {
            shared.beside = Some(other);
            told = expected_kinds(shared);
        }
        self.deeds(then);
        let found = self.workspace.command_observer().end(second, &session(other), Some(&calls[1]));
        let found = found.map_err(failed("the end of a command"))?;
        let length = self.world.journal.len();
        let is_same = self.world.tree == before;
        self.world.found(other, Cause::Own, &before, since);
        let own = self.world.journal.get(length).map(expected_kinds).unwrap_or_default();
        for (path, kind) in own {
            told.entry(path).or_insert(kind);
        }
        if !is_same {
            same("the changes of the second of two commands", kinds(&found), told)?;
        }
        Ok(())
    }

    fn take(&mut self, undone: Undone) {
        self.world.tree = undone.tree;
        self.world.journal.extend(undone.entry);
    }

    /// The real target, and how many changes there were before it; `None` where there is no
    /// checkpoint yet.
    fn target(&self, target: &Target) -> Option<(UndoTarget, usize)> {
        Some(match target {
            Target::LastRun => (UndoTarget::LastRun, 0),
            Target::Session(number) => (UndoTarget::Session(session(*number)), 0),
            Target::To(at) => {
                let (id, _, since) = self.checkpoints.get(at % self.checkpoints.len().max(1))?;
                (UndoTarget::To(*id), *since)
            }
        })
    }

    fn undo(&mut self, target: &Target, cut: Option<usize>) -> Result<(), String> {
        let Some((real, since)) = self.target(target) else { return Ok(()) };
        let expected = self.world.selected(target, since).map(|selected| self.world.undone(&selected));
        self.taken_back(cut, expected, |workspace| workspace.undo(real))
    }

    fn redo(&mut self, cut: Option<usize>) -> Result<(), String> {
        let mut stuck: Option<Undone> = None;
        let mut expected = None;
        for selected in self.world.redoable() {
            let Some(mut undone) = self.world.undone(&selected) else {
                expected = Some(None);
                break;
            };
            // What newer undos can't have back is named too.
            undone.conflicts.extend(stuck.take().map(|newer| newer.conflicts).unwrap_or_default());
            if undone.entry.is_some() {
                expected = Some(Some(undone));
                break;
            }
            stuck = Some(undone);
        }
        let expected = expected.or(stuck.map(Some));
        self.taken_back(cut, expected, |workspace| workspace.redo(None))
    }

    /// Compares an undo or redo with what it is to come to: nothing to do, something in the way, or
    /// a tree.
    fn taken_back(
        &mut self,
        cut: Option<usize>,
        expected: Option<Option<Undone>>,
        work: impl FnOnce(&Workspace) -> Result<UndoReport, WorkspaceError>,
    ) -> Result<(), String> {
        let length = self.journal_length();
        let result = match cut {
            None => work(&self.workspace),
            Some(steps) => work(&self.cutting(steps)),
        };
        if matches!(result, Err(WorkspaceError::CutOff(_))) {
            self.workspace = self.project.open();
            if let Some(Some(undone)) = expected.filter(|_| self.happened(length)) {
                self.take(undone);
            }
            return Ok(());
        }
        match (result, expected) {
            (Ok(report), Some(Some(undone))) => {
                self.reported(&report, &undone)?;
                self.take(undone);
                Ok(())
            }
            (
                Err(
                    WorkspaceError::NothingToUndo { .. }
                    | WorkspaceError::NothingSince { .. }
                    | WorkspaceError::NothingToRedo { .. },
                ),
                None,
            ) => Ok(()),
            // A file where a directory is needed, or the other way round.
            (
                Err(
                    WorkspaceError::Contradiction { .. }
                    | WorkspaceError::NotAFile { .. }
                    | WorkspaceError::Conflict { .. },
                ),
                Some(None),
            ) => Ok(()),
            (result, expected) => Err(format!("taking back: {result:?}\nexpected {expected:?}")),
        }
    }

    fn reported(&self, report: &UndoReport, undone: &Undone) -> Result<(), String> {
        same("what is restored", kinds(&report.restored), undone.restored.clone())?;
        let conflicts: BTreeSet<String> = report.conflicts.iter().map(|(path, _)| path.to_string()).collect();
        let expected = undone.conflicts.iter().map(|path| rel(path).to_string()).collect();
        same("the conflicts", conflicts, expected)
    }

    fn checkpoint(&mut self, number: u64) -> Result<(), String> {
        let id = self.workspace.checkpoint(&session(number), "label").map_err(failed("a checkpoint"))?;
        self.checkpoints.push((id, self.world.tree.clone(), self.world.journal.len()));
        Ok(())
    }

    fn compare(&self, at: usize) -> Result<(), String> {
        if self.checkpoints.is_empty() {
            return Ok(());
        }
        let (id, tree, _) = &self.checkpoints[at % self.checkpoints.len()];
        let found = self.workspace.history().changes_since(id).map_err(failed("a comparison"))?;
        let expected = differences(tree, &self.world.tree).into_iter();
        let expected = expected.map(|(path, (before, after))| (path, (before.is_some(), after.is_some())));
        same("what differs from a checkpoint", kinds(&found), expected.collect())
    }
}

/// What a command or a person does to files.
fn do_it(root: &Path, deed: &Deed) {
    let clear = |path: &str| {
        for dir in parents(path) {
            let dir = root.join(dir);
            if !fs::symlink_metadata(&dir).is_ok_and(|found| found.is_dir()) {
                drop(fs::remove_file(&dir));
                fs::create_dir(&dir).unwrap();
            }
        }
        match fs::symlink_metadata(root.join(path)) {
            Ok(found) if found.is_dir() => fs::remove_dir_all(root.join(path)).unwrap(),
            Ok(found) if found.is_symlink() => fs::remove_file(root.join(path)).unwrap(),
            _ => {}
        }
    };
    match deed {
        Deed::Write(path, content) => {
            clear(path);
            // Not even a new file may be needed: it is written where it is.
            if fs::OpenOptions::new().write(true).open(root.join(path)).is_err() {
                drop(fs::remove_file(root.join(path)));
            }
            fs::write(root.join(path), content).unwrap();
        }
        Deed::Link(path, target) => {
            clear(path);
            drop(fs::remove_file(root.join(path)));
            symlink(target, root.join(path)).unwrap();
        }
        Deed::Remove(path) => fs::remove_file(root.join(path)).unwrap(),
        Deed::RemoveAll(path) => fs::remove_dir_all(root.join(path)).unwrap(),
        Deed::Mode(path, mode) => {
            fs::set_permissions(root.join(path), fs::Permissions::from_mode(*mode)).unwrap();
        }
        Deed::Directory(path) => fs::create_dir_all(root.join(path)).unwrap(),
        Deed::Move(from, to) => {
            clear(to);
            drop(fs::remove_file(root.join(to)));
            fs::rename(root.join(from), root.join(to)).unwrap();
        }
    }
}
