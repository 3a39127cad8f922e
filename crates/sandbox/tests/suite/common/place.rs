//! A project, copies of it, and commands in them.

use journeyman_testkit::skip;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use journeyman_sandbox::{MountedTree, Outcome, OverlayPlan, ProjectCopy, Request};

use super::{run, sandbox};

/// A project, and beside it what its copies are made of.
pub(crate) struct Place {
    pub(crate) directory: tempfile::TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self::named(OsStr::new("project"))
    }

    pub(crate) fn named(name: &OsStr) -> Self {
        let directory = tempfile::Builder::new().prefix("jm-base-").tempdir().unwrap();
        let root = directory.path().join(name);
        for made in [".git/hooks", "src/deep", "target/debug"] {
            fs::create_dir_all(root.join(made)).unwrap();
        }
        let files = [
            (".git/config", "[core]\n"),
            ("file", "content\n"),
            ("src/main", "fn main\n"),
            ("src/deep/leaf", "leaf\n"),
            ("target/debug/built", "built\n"),
        ];
        for (path, text) in files {
            fs::write(root.join(path), text).unwrap();
        }
        symlink(root.join("src"), root.join("link")).unwrap();
        let link = directory.path().join("root");
        symlink(&root, link).unwrap();
        Self { directory }
    }

    pub(crate) fn root(&self) -> PathBuf {
        fs::canonicalize(self.directory.path().join("root")).unwrap()
    }

    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn plan(&self, name: &str) -> OverlayPlan {
        let [upper, work] = ["upper", "work"].map(|part| self.at(name).join(part));
        fs::create_dir_all(&upper).unwrap();
        fs::create_dir_all(&work).unwrap();
        OverlayPlan { lower: self.root(), upper, work }
    }

    /// Mounts an overlay; `None` where the kernel can't, which is said.
    pub(crate) fn mount(&self, name: &str) -> Option<Arc<MountedTree>> {
        match sandbox().mount_overlay(&self.plan(name)) {
            Ok(mounted) => Some(Arc::new(mounted)),
            Err(error) => {
                skip(error.to_string());
                None
            }
        }
    }

    pub(crate) fn request(&self, mounted: &Arc<MountedTree>, command: &str) -> Request {
        let mut request = Request::for_shell_command(&self.root(), command);
        request.base = Some(ProjectCopy::Mounted(Arc::clone(mounted)));
        request
    }

    /// The output of a command that must succeed.
    pub(crate) fn run(&self, mounted: &Arc<MountedTree>, command: &str) -> String {
        text(self.request(mounted, command))
    }
}

pub(crate) fn text(request: Request) -> String {
    let command = request.argv.last().cloned();
    let completed = run(request);
    assert_eq!(completed.outcome, Outcome::Exited(0), "{command:?}: {}", completed.combined.text);
    completed.combined.text
}

/// By which this process reaches a file in a mount.
pub(crate) fn inside(mounted: &MountedTree, path: &str) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", mounted.root().as_raw_fd())).join(path)
}

/// Everything that a change would show in: contents, modes, owners, times.
pub(crate) fn fingerprint(directory: &Path) -> BTreeMap<PathBuf, String> {
    let mut all = BTreeMap::new();
    let mut pending = vec![directory.to_owned()];
    while let Some(path) = pending.pop() {
        let found = fs::symlink_metadata(&path).unwrap();
        let content = if found.is_dir() {
            pending.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            String::new()
        } else if found.is_symlink() {
            fs::read_link(&path).unwrap().display().to_string()
        } else {
            format!("{:?}", fs::read(&path))
        };
        let times = (found.mtime(), found.mtime_nsec(), found.ctime(), found.ctime_nsec());
        let line = format!("{:o} {} {} {times:?} {content}", found.mode(), found.uid(), found.gid());
        all.insert(path, line);
    }
    all
}
