//! A state directory that somebody, or something, laid context on.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::symlink;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use journeyman_protocol::CallId;
use journeyman_workspace::{CheckpointId, UndoTarget, Workspace, WorkspaceError};

use crate::support::{Node, Project, apply, delete, session, set, write};

/// Every n-th byte is tried in the suite; all of them in the soak.
fn stride() -> usize {
    if std::env::var_os("JM_CRASH_ALL").is_some() { 1 } else { 197 }
}

/// So many blobs are there that are alike; one of these is damaged.
const BLOBS: usize = 4;

/// What each file may be: everything it ever was.
type Allowed = BTreeMap<Vec<u8>, BTreeSet<Vec<u8>>>;

fn note(project: &Project, allowed: &mut Allowed) {
    for (path, node) in project.tree() {
        if let Node::File(_, content) = node {
            allowed.entry(path).or_default().insert(content);
        }
    }
}

/// A project with a bit of everything in its state: edits, a command, a checkpoint, an undo, packs,
/// a sign of life.
fn history() -> (Project, Allowed) {
    let files: Vec<(String, String)> = (0..140).map(|n| (format!("many/{n}"), format!("file {n}"))).collect();
    let names: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let project = Project::with(&names);
    let mut allowed = Allowed::new();
    for (path, text) in [("edit", "old"), ("gone", "g"), ("users", "never touched by anybody")] {
        project.write(path, text);
    }
    note(&project, &mut allowed);
    let workspace = project.open();
    workspace.checkpoint(&session(1), "before").unwrap();
    apply(&workspace, vec![write("edit", "new"), delete("gone"), write("made/file", "m")]).unwrap();
    note(&project, &mut allowed);
    let begun = workspace.command_observer().begin().unwrap();
    for n in 0..140 {
        project.write(&format!("many/{n}"), format!("by a command {n}"));
    }
    workspace.command_observer().end(begun, &session(2), None).unwrap();
    note(&project, &mut allowed);
    workspace.undo(UndoTarget::Session(session(2))).unwrap();
    workspace.checkpoint(&session(1), "after").unwrap();
    let call = CallId::new("cut-off");
    drop(workspace.command_observer().begin_call(&session(4), &call).unwrap());
    (project, allowed)
}

/// All files in the state directory and the blobs.
fn state_files(project: &Project) -> Vec<PathBuf> {
    fn add(dir: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { add(&path, found) } else { found.push(path) }
        }
    }
    let mut found = Vec::new();
    add(&project.state(), &mut found);
    let state = found.len();
    add(&project.dir.path().join("blobs"), &mut found);
    found[state..].sort();
    found
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let (from, to) = (entry.as_ref().unwrap().path(), to.join(entry.unwrap().file_name()));
        let kind = fs::symlink_metadata(&from).unwrap();
        if kind.is_dir() {
            copy(&from, &to);
        } else if kind.is_symlink() {
            symlink(fs::read_link(&from).unwrap(), &to).unwrap();
        } else {
            fs::copy(&from, &to).unwrap();
        }
    }
}

fn is_typed<T>(what: &str, result: Result<T, WorkspaceError>) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(error) => {
            assert!(!error.to_string().is_empty(), "{what}");
            assert!(!matches!(error, WorkspaceError::CutOff(_)), "{what}: {error:?}");
            None
        }
    }
}

fn users_files_are_there(what: &str, project: &Project, allowed: &Allowed) {
    let tree = project.tree();
    for (path, node) in &tree {
        let name = String::from_utf8_lossy(path);
        if let Node::File(_, content) = node
            && !name.starts_with("fresh")
        {
            let known = allowed.get(path).is_some_and(|contents| contents.contains(content));
            assert!(known, "{what}: `{name}` is something it never was: {content:?}");
        }
    }
    assert_eq!(
        tree.get(b"users".as_slice()).cloned(),
        Some(Node::File(0o644, b"never touched by anybody".to_vec()))
    );
    for n in 0..140 {
        assert!(tree.contains_key(format!("many/{n}").as_bytes()), "{what}: many/{n} is gone");
    }
}

/// Does everything with a damaged state: it works, or says why not; no file becomes what it never
/// was.
fn try_everything(what: &str, project: &Project, allowed: &Allowed) {
    let tried = catch_unwind(AssertUnwindSafe(|| {
        let Some(workspace) = is_typed(what, Workspace::open(&project.root(), project.options())) else {
            return;
        };
        is_typed(what, workspace.history().changes_since(&CheckpointId(1)));
        is_typed(what, workspace.history().diff_since(&CheckpointId(1), 1 << 20));
        is_typed(what, workspace.checkpoints());
        if is_typed(what, apply(&workspace, vec![write("fresh", "f")])).is_some() {
            assert_eq!(project.text("fresh"), "f", "{what}");
        }
        if let Some(begun) =
            is_typed(what, workspace.command_observer().begin_call(&session(5), &CallId::new("next")))
        {
            project.write("fresh2", "f");
            is_typed(what, workspace.command_observer().end(begun, &session(5), Some(&CallId::new("next"))));
        }
        is_typed(what, workspace.recovery().cut_off_calls(&session(4)));
        is_typed(what, workspace.checkpoint(&session(5), "c"));
        is_typed(what, workspace.undo(UndoTarget::Session(session(1))));
        is_typed(what, workspace.redo(None));
        is_typed(what, workspace.undo(UndoTarget::LastRun));
        is_typed(what, workspace.undo(UndoTarget::To(CheckpointId(1))));
        let again = project.open_or_error();
        if let Some(again) = is_typed(what, again) {
            is_typed(what, again.apply(set(6, vec![write("fresh", "g")])));
        }
    }));
    assert!(tried.is_ok(), "{what}: a panic");
    users_files_are_there(what, project, allowed);
}

impl Project {
    fn open_or_error(&self) -> Result<Workspace, WorkspaceError> {
        Workspace::open(&self.root(), self.options())
    }
}

/// Damages one file of the state in one way, tries everything, and puts all of it back.
fn with_damage(damage: impl Fn(&Path), choose: impl Fn(&Path) -> bool, what: &str) {
    let (mut project, allowed) = history();
    // Whoever waits for a lock that will never be free is told so soon.
    project.limits.lock_wait = std::time::Duration::from_millis(20);
    let saved = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    copy(project.dir.path(), saved.path());
    let files = state_files(&project).into_iter().enumerate();
    let files = files.filter(|(place, path)| choose(path) && (!is_blob(path) || place % BLOBS == 0));
    let files: Vec<PathBuf> = files.map(|(_, path)| path).collect();
    assert!(!files.is_empty(), "{what}");
    for file in files {
        let what = format!("{what}: {}", file.strip_prefix(project.dir.path()).unwrap().display());
        damage(&file);
        try_everything(&what, &project, &allowed);
        for part in ["tree", "state", "blobs"] {
            drop(fs::remove_dir_all(project.dir.path().join(part)));
            copy(&saved.path().join(part), &project.dir.path().join(part));
        }
    }
}

fn replace(path: &Path, bytes: &[u8]) {
    fs::remove_file(path).unwrap();
    fs::write(path, bytes).unwrap();
}

fn is_blob(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str() == "blobs")
}

#[test]
fn files_that_are_gone_empty_or_garbage() {
    let all = |_: &Path| true;
    with_damage(|path| fs::remove_file(path).unwrap(), all, "gone");
    with_damage(|path| replace(path, &[0xa5; 3_000]), all, "garbage");
    if stride() == 1 {
        with_damage(|path| replace(path, b""), all, "empty");
        with_damage(|path| replace(path, &b"\n".repeat(3_000)), all, "line ends");
        with_damage(|path| replace(path, &[0; 9_000]), all, "zeros");
    }
}

#[test]
fn directories_in_the_place_of_files() {
    let directory = |path: &Path| {
        fs::remove_file(path).unwrap();
        fs::create_dir(path).unwrap();
        fs::write(path.join("in it"), "x").unwrap();
    };
    with_damage(directory, |_| true, "a directory");
}

/// What a link in the state points to is never written.
#[test]
fn links_in_the_place_of_files() {
    let (mut project, allowed) = history();
    project.limits.lock_wait = std::time::Duration::from_millis(20);
    let victim = project.dir.path().join("victim");
    let names =
        ["lock", "journal/log", "journal/log.new", "packs", "stat-cache", "stat-cache.new", "running"];
    for name in names {
        let (other, _) = history();
        drop(fs::remove_dir_all(project.state()));
        copy(&other.state(), &project.state());
        fs::write(&victim, "the user's own file").unwrap();
        let link = project.state().join(name);
        drop(fs::remove_file(&link));
        drop(fs::remove_dir_all(&link));
        symlink(&victim, &link).unwrap();
        try_everything(&format!("{name} is a link"), &project, &allowed);
        assert_eq!(fs::read_to_string(&victim).unwrap(), "the user's own file", "{name}");
        symlink(project.dir.path().join("nothing"), project.state().join("dangling")).unwrap();
        drop(fs::remove_file(&link));
        drop(fs::remove_dir_all(&link));
        symlink(project.dir.path().join("nothing"), &link).unwrap();
        try_everything(&format!("{name} is a dangling link"), &project, &allowed);
        assert!(!project.dir.path().join("nothing").exists(), "{name}: made through a link");
    }
}

#[test]
fn files_that_are_cut_anywhere() {
    let (project, allowed) = history();
    let saved = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    copy(project.dir.path(), saved.path());
    for file in state_files(&project).into_iter().filter(|path| !is_blob(path)) {
        let whole = fs::read(&file).unwrap();
        let stride = stride() * whole.len().div_ceil(4_000).max(1);
        for cut in (0..whole.len()).step_by(stride) {
            replace(&file, &whole[..cut]);
            try_everything(&format!("{} cut at {cut}", file.display()), &project, &allowed);
            for part in ["tree", "state"] {
                drop(fs::remove_dir_all(project.dir.path().join(part)));
                copy(&saved.path().join(part), &project.dir.path().join(part));
            }
        }
    }
}

#[test]
fn files_with_a_bit_flipped_anywhere() {
    let (project, allowed) = history();
    let saved = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    copy(project.dir.path(), saved.path());
    for file in state_files(&project) {
        let whole = fs::read(&file).unwrap();
        let stride = stride() * whole.len().div_ceil(2_000).max(1) * if is_blob(&file) { 3 } else { 1 };
        for at in (0..whole.len()).step_by(stride) {
            let mut damaged = whole.clone();
            damaged[at] ^= 1 << (at % 8);
            replace(&file, &damaged);
            try_everything(&format!("{} flipped at {at}", file.display()), &project, &allowed);
            for part in ["tree", "state", "blobs"] {
                drop(fs::remove_dir_all(project.dir.path().join(part)));
                copy(&saved.path().join(part), &project.dir.path().join(part));
            }
        }
    }
}
