//! A project in a temporary directory, its state beside it, and plain maps to compare it with.

use journeyman_testkit::{copy_program, skip, test_arguments};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use journeyman_protocol::{CallId, FileChange, FileChangeKind, RelPath, SessionId, UnixMillis};
use journeyman_store::Blobs;
use journeyman_workspace::failpoint::Failpoint;
use journeyman_workspace::limits::Limits;
use journeyman_workspace::{
    AppliedChanges, Change, ChangeSet, ExpectedState, Options, Workspace, WorkspaceError,
};

pub(crate) struct Project {
    pub dir: tempfile::TempDir,
    pub blobs: Arc<Blobs>,
    pub limits: Limits,
}

impl Project {
    pub(crate) fn new() -> Self {
        Self::at(tempfile::tempdir().unwrap())
    }

    /// In this directory.
    pub(crate) fn in_dir(dir: tempfile::TempDir) -> Self {
        Self::at(dir)
    }

    fn at(dir: tempfile::TempDir) -> Self {
        fs::create_dir(dir.path().join("tree")).unwrap();
        let blobs = Arc::new(Blobs::open(&dir.path().join("blobs"), 1 << 30).unwrap());
        let limits = Limits { lock_wait: Duration::from_secs(5), ..Limits::default() };
        Self { dir, blobs, limits }
    }

    /// In memory where the system has such a place: for tests that do much and prove nothing about
    /// disks.
    pub(crate) fn in_memory() -> Self {
        let dir = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        Self::at(dir)
    }

    /// With these files, of `path` and content.
    pub(crate) fn with(files: &[(&str, &str)]) -> Self {
        let project = Self::in_memory();
        for (path, content) in files {
            project.write(path, content);
        }
        project
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.dir.path().join("tree")
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.dir.path().join("state")
    }

    pub(crate) fn options(&self) -> Options {
        Options { limits: self.limits.clone(), ..Options::new(self.state(), self.blobs.clone()) }
    }

    pub(crate) fn open(&self) -> Workspace {
        Workspace::open(&self.root(), self.options()).unwrap()
    }

    pub(crate) fn open_failing(&self, failpoint: Failpoint) -> Workspace {
        Workspace::open_with(&self.root(), self.options(), Some(failpoint)).unwrap()
    }

    /// Writes past the workspace, as a user or a command does.
    pub(crate) fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.root().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub(crate) fn text(&self, path: &str) -> String {
        fs::read_to_string(self.root().join(path)).unwrap()
    }

    pub(crate) fn tree(&self) -> Model {
        model(&self.root())
    }
}

/// What is beneath a directory: files with mode and content, links with their target, directories.
pub(crate) type Model = BTreeMap<Vec<u8>, Node>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Node {
    File(u32, Vec<u8>),
    Link(Vec<u8>),
    Dir,
}

pub(crate) fn model(root: &Path) -> Model {
    fn add(root: &Path, dir: &Path, model: &mut Model) {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(root).unwrap().as_os_str().as_bytes().to_vec();
            let meta = fs::symlink_metadata(&path).unwrap();
            if meta.is_symlink() {
                let target = fs::read_link(&path).unwrap().into_os_string().into_vec();
                model.insert(name, Node::Link(target));
            } else if meta.is_dir() {
                model.insert(name, Node::Dir);
                add(root, &path, model);
            } else if meta.is_file() {
                let content = fs::read(&path).unwrap();
                model.insert(name, Node::File(meta.permissions().mode() & 0o7777, content));
            }
        }
    }
    let mut found = Model::new();
    add(root, root, &mut found);
    found
}

pub(crate) fn rel(path: impl AsRef<[u8]>) -> RelPath {
    RelPath::parse(path).unwrap()
}

pub(crate) fn session(number: u64) -> SessionId {
    SessionId::new(UnixMillis(1_000 + number), number)
}

pub(crate) fn write(path: &str, content: &str) -> Change {
    Change::Write { path: rel(path), content: content.as_bytes().to_vec(), expected: ExpectedState::Anything }
}

pub(crate) fn delete(path: &str) -> Change {
    Change::Delete { path: rel(path), expected: ExpectedState::Anything }
}

pub(crate) fn set(number: u64, changes: Vec<Change>) -> ChangeSet {
    ChangeSet { call: Some(CallId::new("call")), session: session(number), description: None, changes }
}

pub(crate) fn apply(workspace: &Workspace, changes: Vec<Change>) -> Result<AppliedChanges, WorkspaceError> {
    workspace.apply(set(1, changes))
}

/// `"+new ~changed -gone"` for changes, sorted as they came.
pub(crate) fn shown(changes: &[FileChange]) -> String {
    let words = changes.iter().map(|change| {
        let sign = match change.kind {
            FileChangeKind::Added => '+',
            FileChangeKind::Modified => '~',
            FileChangeKind::Deleted => '-',
        };
        format!("{sign}{}", change.path)
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Waits until what is changed from now on has a later time than what was changed before.
pub(crate) fn tick() {
    use rustix::time::{ClockId, clock_gettime};
    let nanos = |clock| {
        let now = clock_gettime(clock);
        (now.tv_sec, now.tv_nsec)
    };
    // Files may be stamped by the finer clock.
    let then = nanos(ClockId::Realtime);
    while nanos(ClockId::RealtimeCoarse) <= then {
        std::thread::yield_now();
    }
}

/// Waits until the signature of every file that is there tells each later change of it: two ticks
/// of the clock.
pub(crate) fn settle() {
    let now = || {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::RealtimeCoarse);
        Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap())
    };
    tick();
    let until = now() + Duration::from_millis(20);
    while now() <= until {
        std::thread::yield_now();
    }
}

pub(crate) fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o7777
}

pub(crate) fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// An id that belongs to nobody of importance on any system.
const NOBODY: u32 = 65_534;

/// Whether permissions mean anything to this process. To root they don't: then the test is run once
/// more as somebody else, and that is its result.
pub(crate) fn is_ordinary_user(test: &str) -> bool {
    if !rustix::process::geteuid().is_root() {
        return true;
    }
    let dir = tempfile::tempdir().unwrap();
    set_mode(dir.path(), 0o777);
    let copy = dir.path().join("test");
    copy_program(&std::env::current_exe().unwrap(), &copy);
    set_mode(&copy, 0o755);
    let ran = Command::new(&copy)
        .args(test_arguments(test))
        .env("TMPDIR", dir.path())
        .current_dir(dir.path())
        .uid(NOBODY)
        .gid(NOBODY)
        .output();
    match ran {
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stdout);
            let errors = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success() && said.contains("1 passed"), "{said}\n{errors}");
        }
        Err(error) => skip(format_args!("can't run as an ordinary user: {error}")),
    }
    false
}
