//! What the traced programs do: one thing each that changes a project, or its state directory, or
//! both.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use journeyman_protocol::{CallId, UnixMillis};
use journeyman_store::Blobs;
use journeyman_workspace::failpoint::{Failpoint, Fault};
use journeyman_workspace::limits::Limits;
use journeyman_workspace::{Change, CheckpointId, Options, UndoTarget, Workspace, WorkspaceError};

use crate::support::{Model, delete, model, rel, session, set, set_mode, write};

/// A project with its state, in a directory that another process made.
pub(crate) struct Place {
    pub(crate) dir: PathBuf,
}

impl Place {
    pub(crate) fn new(dir: &Path) -> Self {
        Self { dir: dir.to_owned() }
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.dir.join("tree")
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.dir.join("state")
    }

    pub(crate) fn tree(&self) -> Model {
        model(&self.root())
    }

    fn options(&self) -> Options {
        let blobs = Arc::new(Blobs::open(&self.dir.join("blobs"), 1 << 30).unwrap());
        let limits = Limits {
            lock_wait: Duration::from_secs(20),
            heartbeat: Duration::from_millis(20),
            ..Limits::default()
        };
        Options { limits, ..Options::new(self.state(), blobs) }
    }

    pub(crate) fn open(&self) -> Result<Workspace> {
        Workspace::open(&self.root(), self.options())
    }

    fn open_small_journal(&self) -> Result<Workspace> {
        let mut options = self.options();
        options.limits.journal_bytes = 3_000;
        Workspace::open(&self.root(), options)
    }

    /// Opens, and cuts off what is done then at its `steps`th step.
    fn open_cutting(&self, steps: usize) -> Workspace {
        let seen = Arc::new(AtomicUsize::new(0));
        let hook =
            move |_| if seen.fetch_add(1, Ordering::Relaxed) == steps { Fault::Cut } else { Fault::Go };
        Workspace::open_with(&self.root(), self.options(), Some(Failpoint::new(hook))).unwrap()
    }

    fn write(&self, path: &str, content: &str) {
        let path = self.root().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
}

type Result<T> = std::result::Result<T, WorkspaceError>;

/// Said by a task where its calls begin to count, and where a command takes over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Now {
    Begins,
    Ends,
    Command,
    CommandIsOver,
}

type Mark<'a> = &'a dyn Fn(Now);

/// One thing to do.
pub(crate) struct Task {
    pub(crate) name: &'static str,
    /// Makes the project ready, in the tracing process.
    pub(crate) prepare: fn(&Place),
    pub(crate) work: fn(&Place, mark: Mark<'_>) -> Result<()>,
    /// Brings the tree to before or after where opening it isn't to do that, and says that it does.
    pub(crate) settle: Option<fn(&Place, &Workspace)>,
    /// What takes it back once it is done, if anything does.
    pub(crate) back: Option<fn(&Workspace)>,
}

pub(crate) const TASKS: &[Task] = &[
    Task { name: "one_edit", prepare: basic, work: one_edit, settle: None, back: Some(undo_first) },
    Task { name: "a_change_set", prepare: basic, work: change_set, settle: None, back: Some(undo_first) },
    Task { name: "a_directory_becomes_a_file", prepare: a_directory, work: undo, settle: None, back: None },
    Task {
        name: "a_file_becomes_a_directory",
        prepare: basic,
        work: to_a_directory,
        settle: None,
        back: Some(undo_first),
    },
    Task { name: "many_files", prepare: basic, work: many, settle: None, back: Some(undo_first) },
    Task {
        name: "an_edit_that_cuts_the_journal",
        prepare: long_journal,
        work: small_journal,
        settle: None,
        back: Some(undo_first),
    },
    Task { name: "an_undo", prepare: changed, work: undo, settle: None, back: None },
    Task { name: "an_undo_to_a_checkpoint", prepare: changed_since, work: undo_to, settle: None, back: None },
    Task { name: "a_redo", prepare: undone, work: redo, settle: None, back: None },
    Task { name: "a_checkpoint", prepare: basic, work: checkpoint, settle: None, back: None },
    Task {
        name: "the_end_of_a_command",
        prepare: with_a_checkpoint,
        work: command,
        settle: Some(recover),
        back: Some(undo_first),
    },
    Task { name: "going_back_early", prepare: torn_early, work: reopen, settle: None, back: None },
    Task { name: "going_back_late", prepare: torn_late, work: reopen, settle: None, back: None },
    Task { name: "finishing", prepare: torn_last, work: reopen, settle: None, back: None },
];

pub(crate) fn task(name: &str) -> &'static Task {
    TASKS.iter().find(|task| task.name == name).unwrap()
}

fn basic(place: &Place) {
    fs::create_dir(place.root()).unwrap();
    let files =
        [("edit", "old"), ("gone", "g"), ("from", "f"), ("run", "#!"), ("dir/in/x", "x"), ("dir/y", "y")];
    for (path, content) in files {
        place.write(path, content);
    }
    symlink("edit", place.root().join("link")).unwrap();
    set_mode(&place.root().join("edit"), 0o600);
    // An earlier change, so that the journal is there.
    let workspace = place.open().unwrap();
    workspace.apply(set(7, vec![write("earlier", "e")])).unwrap();
}

fn changes() -> Vec<Change> {
    vec![
        write("link", "new"),
        write("made/deep/file", "m"),
        delete("gone"),
        Change::Rename { from: rel("from"), to: rel("made/moved") },
        Change::SetExecutable { path: rel("run"), executable: true },
        write("dir/y", "Y"),
    ]
}

/// Does something, and does it once more, in the same process, where it fails: the failure must
/// have left no trace.
fn attempt(place: &Place, mark: Mark<'_>, work: impl Fn() -> Result<()>) -> Result<()> {
    let before = place.tree();
    mark(Now::Begins);
    let result = work();
    mark(Now::Ends);
    if let Err(error) = &result {
        assert_eq!(place.tree(), before, "after {error}");
        work().unwrap_or_else(|again| panic!("after {error} again: {again}"));
    }
    result
}

fn edit(place: &Place, mark: Mark<'_>, changes: Vec<Change>) -> Result<()> {
    let workspace = place.open()?;
    attempt(place, mark, || workspace.apply(set(1, changes.clone())).map(drop))
}

fn one_edit(place: &Place, mark: Mark<'_>) -> Result<()> {
    edit(place, mark, vec![write("link", "new")])
}

fn change_set(place: &Place, mark: Mark<'_>) -> Result<()> {
    edit(place, mark, changes())
}

/// Directories where a file was, so that an undo has to clear them away.
fn a_directory(place: &Place) {
    basic(place);
    let workspace = place.open().unwrap();
    let begun = workspace.command_observer().begin().unwrap();
    fs::remove_file(place.root().join("gone")).unwrap();
    place.write("gone/below/a", "a");
    place.write("gone/b", "b");
    workspace.command_observer().end(begun, &session(1), None).unwrap();
}

fn to_a_directory(place: &Place, mark: Mark<'_>) -> Result<()> {
    edit(place, mark, vec![delete("gone"), write("gone/below/a", "a"), write("gone/b", "b")])
}

/// So many that the whole file system is flushed at once.
fn many(place: &Place, mark: Mark<'_>) -> Result<()> {
    let new = (0..30).map(|n| write(&format!("new/{n}"), "n"));
    edit(place, mark, new.chain(changes()).collect())
}

fn long_journal(place: &Place) {
    basic(place);
    let workspace = place.open().unwrap();
    for n in 0..12 {
        workspace.apply(set(7, vec![write("earlier", &format!("e{n}"))])).unwrap();
    }
}

fn small_journal(place: &Place, mark: Mark<'_>) -> Result<()> {
    let workspace = place.open_small_journal()?;
    attempt(place, mark, || workspace.apply(set(1, changes())).map(drop))
}

fn changed(place: &Place) {
    basic(place);
    let workspace = place.open().unwrap();
    workspace.apply(set(1, changes())).unwrap();
    let begun = workspace.command_observer().begin().unwrap();
    fs::remove_dir_all(place.root().join("dir")).unwrap();
    place.write("dir", "a file now");
    fs::remove_file(place.root().join("link")).unwrap();
    place.write("link/was/here", "x");
    workspace.command_observer().end(begun, &session(1), None).unwrap();
}

fn undo(place: &Place, mark: Mark<'_>) -> Result<()> {
    let workspace = place.open()?;
    attempt(place, mark, || workspace.undo(UndoTarget::Session(session(1))).map(drop))
}

/// Two sessions' changes since a checkpoint, one of them taken back.
fn changed_since(place: &Place) {
    with_a_checkpoint(place);
    let workspace = place.open().unwrap();
    workspace.apply(set(1, changes())).unwrap();
    workspace.apply(set(2, vec![write("run", "by another session"), delete("made/deep/file")])).unwrap();
    workspace.apply(set(3, vec![write("taken/back", "t")])).unwrap();
    workspace.undo(UndoTarget::Session(session(3))).unwrap();
}

fn undo_to(place: &Place, mark: Mark<'_>) -> Result<()> {
    let workspace = place.open()?;
    attempt(place, mark, || workspace.undo(UndoTarget::To(CHECKPOINT)).map(drop))
}

fn undone(place: &Place) {
    changed(place);
    place.open().unwrap().undo(UndoTarget::Session(session(1))).unwrap();
}

fn redo(place: &Place, mark: Mark<'_>) -> Result<()> {
    let workspace = place.open()?;
    attempt(place, mark, || workspace.redo(None).map(drop))
}

fn checkpoint(place: &Place, mark: Mark<'_>) -> Result<()> {
    let workspace = place.open()?;
    attempt(place, mark, || workspace.checkpoint(&session(1), "a label").map(drop))
}

fn call() -> CallId {
    CallId::new("shell")
}

fn command(place: &Place, mark: Mark<'_>) -> Result<()> {
    let workspace = place.open()?;
    mark(Now::Begins);
    let begun = workspace.command_observer().begin_call(&session(1), &call())?;
    mark(Now::Command);
    let root = place.root();
    let done = fs::write(root.join("edit"), "by a command")
        .and_then(|()| fs::rename(root.join("gone"), root.join("dir/moved")))
        .and_then(|()| fs::remove_file(root.join("dir/in/x")))
        .and_then(|()| fs::create_dir(root.join("fresh")))
        .and_then(|()| fs::write(root.join("fresh/file"), "fresh"));
    done.unwrap();
    mark(Now::CommandIsOver);
    workspace.command_observer().end(begun, &session(1), Some(&call())).map(drop)
}

/// Checkpoints and changes are numbered alike, and this is the second of both.
const CHECKPOINT: CheckpointId = CheckpointId(2);

fn with_a_checkpoint(place: &Place) {
    basic(place);
    assert_eq!(place.open().unwrap().checkpoint(&session(1), "before").unwrap(), CHECKPOINT);
}

fn recover(_place: &Place, workspace: &Workspace) {
    workspace.recovery().recover_call(&CHECKPOINT, &session(1), &call(), UnixMillis(u64::MAX)).unwrap();
}

fn undo_first(workspace: &Workspace) {
    let report = workspace.undo(UndoTarget::Session(session(1))).unwrap();
    assert_eq!(report.conflicts, vec![]);
}

/// Cut off when new contents lie beside their files and some are in place.
fn torn_early(place: &Place) {
    basic(place);
    place.open_cutting(17).apply(set(1, changes())).unwrap_err();
}

fn torn_late(place: &Place) {
    basic(place);
    place.open_cutting(28).apply(set(1, changes())).unwrap_err();
}

/// Cut off when everything is in place, and what was moved away is still there.
fn torn_last(place: &Place) {
    basic(place);
    let workspace = place.open_cutting(usize::MAX);
    drop(workspace);
    let cuts = (20..60).rev().find(|cut| {
        let probe = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        let probe = Place::new(probe.path());
        basic(&probe);
        probe.open_cutting(*cut).apply(set(1, changes())).is_err()
    });
    place.open_cutting(cuts.unwrap() - 1).apply(set(1, changes())).unwrap_err();
}

fn reopen(place: &Place, mark: Mark<'_>) -> Result<()> {
    mark(Now::Begins);
    place.open().map(drop)
}
