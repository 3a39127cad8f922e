//! Trees to copy, all that can be told of one, and the means.

use journeyman_testkit::skip;
use std::collections::BTreeMap;
use std::ffi::{CStr, OsStr};
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use journeyman_git::Git;
use journeyman_sandbox::{Outcome, Request, Sandbox, SandboxSettings};
use journeyman_workspace::{CopyTools, IsolatedCopy, IsolationTier, Workspace};
use rustix::fs::XattrFlags;
use tokio_util::sync::CancellationToken;

use crate::support::{Project, session};

/// All of what a copy has to have of a file: its kind, mode, time, content or target, and
/// attributes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fact {
    mode: u32,
    pub(crate) modified: (i64, i64),
    bytes: Vec<u8>,
    attributes: BTreeMap<Vec<u8>, Vec<u8>>,
}

impl Fact {
    pub(crate) fn bytes(self) -> Vec<u8> {
        self.bytes
    }
}

/// Everything beneath a directory but what is named in `without` at its top.
pub(crate) fn facts(root: &Path, without: &[&str]) -> BTreeMap<Vec<u8>, Fact> {
    fn add(root: &Path, dir: &Path, without: &[&str], found: &mut BTreeMap<Vec<u8>, Fact>) {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(root).unwrap().as_os_str().as_bytes().to_vec();
            let meta = fs::symlink_metadata(&path).unwrap();
            let out = without.iter().any(|out| out.as_bytes() == name);
            if out || !(meta.is_file() || meta.is_dir() || meta.is_symlink()) {
                continue;
            }
            let bytes = if meta.is_symlink() {
                fs::read_link(&path).unwrap().as_os_str().as_bytes().to_vec()
            } else if meta.is_file() {
                fs::read(&path).unwrap()
            } else {
                Vec::new()
            };
            let attributes = if meta.is_symlink() { BTreeMap::new() } else { attributes(&path) };
            let modified = (meta.mtime(), meta.mtime_nsec());
            found.insert(name, Fact { mode: meta.mode(), modified, bytes, attributes });
            if meta.is_dir() {
                add(root, &path, without, found);
            }
        }
    }
    let mut found = BTreeMap::new();
    add(root, root, without, &mut found);
    found
}

fn attributes(path: &Path) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut names = vec![0_u8; 64 * 1024];
    let length = rustix::fs::listxattr(path, names.as_mut_slice()).unwrap_or(0);
    let names = names[..length].split(|&byte| byte == 0).filter(|name| name.starts_with(b"user."));
    // What an overlay notes on its own directories.
    let names = names.filter(|name| !name.starts_with(b"user.overlay."));
    let each = names.map(|name| {
        let mut value = vec![0_u8; 64 * 1024];
        let length = rustix::fs::getxattr(path, name, value.as_mut_slice()).unwrap();
        (name.to_vec(), value[..length].to_vec())
    });
    each.collect()
}

/// Gives every file and directory a time of its own, long ago, so that a copy made now shows.
pub(crate) fn age(root: &Path) {
    for (number, path) in facts(root, &[]).into_keys().enumerate() {
        let path = root.join(OsStr::from_bytes(&path));
        let time = SystemTime::UNIX_EPOCH + Duration::new(1_500_000_000 + number as u64, 123_456_000);
        if !path.is_symlink() {
            fs::File::open(&path).unwrap().set_modified(time).unwrap();
        }
    }
}

/// These files, of `path` and content, where commands may run too.
pub(crate) fn project_with(files: &[(&str, &str)]) -> Project {
    let project = Project::new();
    files.iter().for_each(|(path, content)| project.write(path, content));
    project
}

/// One of every sort of file that a tree can have.
pub(crate) fn odd_tree() -> Project {
    let project = Project::new();
    let root = project.root();
    for (path, content) in [
        ("a/b/c/deep.rs", "deep"),
        ("main.rs", "fn main() {}\n"),
        ("empty", ""),
        ("..foo", "dots"),
        ("bin/tool", "#!/bin/sh\n"),
    ] {
        project.write(path, content);
    }
    for name in [&b"line\nbreak"[..], b"not\xffutf8", b"-rf", b" space ", b"quote'\"$x", &[b'n'; 255]] {
        fs::write(root.join("a").join(OsStr::from_bytes(name)), name).unwrap();
    }
    fs::create_dir_all(root.join("hollow/inner")).unwrap();
    symlink("a/b", root.join("to-dir")).unwrap();
    symlink("nowhere/at/all", root.join("dangling")).unwrap();
    symlink("/etc/passwd", root.join("out")).unwrap();
    symlink(OsStr::from_bytes(b"bad\xff\n"), root.join("odd-link")).unwrap();
    for (path, mode) in
        [("bin/tool", 0o755), ("main.rs", 0o600), ("empty", 0o444), ("a/b", 0o775), ("..foo", 0o640)]
    {
        fs::set_permissions(root.join(path), fs::Permissions::from_mode(mode)).unwrap();
    }
    fs::write(root.join("large"), pattern(3 * 1024 * 1024)).unwrap();
    // Beyond what is kept, and full of holes.
    let sparse = fs::File::create(root.join("sparse")).unwrap();
    sparse.set_len(64 * 1024 * 1024).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&sparse, b"island", 33 * 1024 * 1024).unwrap();
    for (path, name) in [("main.rs", c"user.note"), ("hollow", c"user.of")] {
        set_attribute(&root.join(path), name, b"value\0\xff");
    }
    rustix::fs::mknodat(rustix::fs::CWD, root.join("pipe"), rustix::fs::FileType::Fifo, 0o600.into(), 0)
        .unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(root.join("socket"));
    age(&root);
    project
}

fn set_attribute(path: &Path, name: &CStr, value: &[u8]) {
    if let Err(errno) = rustix::fs::setxattr(path, name, value, XattrFlags::empty()) {
        println!("no attributes here: {errno}");
    }
}

pub(crate) fn pattern(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at.wrapping_mul(2_654_435_761) >> 13).to_le_bytes()[0]).collect()
}

/// The sandbox and git of a project.
pub(crate) struct Tools {
    pub(crate) sandbox: Arc<Sandbox>,
    pub(crate) git: Git,
}

impl Tools {
    pub(crate) fn of(project: &Project) -> Self {
        Self::at(&project.root())
    }

    pub(crate) fn at(root: &Path) -> Self {
        let sandbox = Arc::new(Sandbox::new(SandboxSettings::default()));
        let git = Git::new(root, sandbox.clone());
        Self { sandbox, git }
    }

    pub(crate) fn means<'a>(&'a self, tiers: &'a [IsolationTier]) -> CopyTools<'a> {
        CopyTools { sandbox: &self.sandbox, git: Some(&self.git), tiers, max_copied_files: usize::MAX }
    }
}

/// Makes a copy in this one way; `None` where this machine can't, which is said.
pub(crate) fn isolate(workspace: &Workspace, tools: &Tools, tier: IsolationTier) -> Option<IsolatedCopy> {
    match workspace.copies().create(&session(1), &tools.means(&[tier])) {
        Ok(mut copy) => {
            assert_eq!(copy.info().tier, tier);
            copy.keep().unwrap();
            Some(copy)
        }
        // Few file systems have it, and none of those that tests run on by default.
        Err(error) if tier == IsolationTier::Reflink => {
            println!("skipped: {error}");
            None
        }
        Err(error) => {
            skip(error.to_string());
            None
        }
    }
}

/// Runs a shell command in the sandbox, where the workspace's root is; its output.
pub(crate) fn run(tools: &Tools, workspace: &Workspace, command: &str) -> String {
    let mut request = Request::for_shell_command(workspace.root(), command);
    request.base = workspace.project_copy();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let report = runtime.block_on(async {
        let running = tools.sandbox.spawn(request, CancellationToken::new()).await.unwrap();
        running.wait().await.unwrap()
    });
    assert!(matches!(report.outcome, Outcome::Exited(_)), "{command}: {:?}", report.outcome);
    report.combined.text
}

/// Makes a repository of the tree, with one of its files in it.
pub(crate) fn make_repository(project: &Project, file: &str) {
    git(&project.root(), &["init", "-q"]);
    git(&project.root(), &["add", "--", file]);
    git(&project.root(), &["commit", "-qm", "one"]);
}

/// Runs git on a directory as the user does.
pub(crate) fn git(dir: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .args(["-c", "user.name=U", "-c", "user.email=u@example.org", "-c", "protocol.file.allow=always"])
        .args(["-c", "init.defaultBranch=main", "-c", "commit.gpgsign=false"])
        .args(arguments)
        .current_dir(dir)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()
        .unwrap();
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}
