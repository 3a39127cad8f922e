//! Commands in a copy of the project: an overlay mounted for them, or a directory with the project's caches.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]
#![cfg(target_os = "linux")]

mod common;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use common::{block_on, run, sandbox, settings, skip};
use journeyman_protocol::{RelPath, Tier};
use journeyman_sandbox::{
    Base, Mounted, Outcome, OverlayPlan, Request, Sandbox, SandboxError, SandboxSettings, WriteMode,
};
use tokio_util::sync::CancellationToken;

/// A project, and beside it what its copies are made of.
struct Place {
    directory: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        Self::named(OsStr::new("project"))
    }

    fn named(name: &OsStr) -> Self {
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

    fn root(&self) -> PathBuf {
        fs::canonicalize(self.directory.path().join("root")).unwrap()
    }

    fn at(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn plan(&self, name: &str) -> OverlayPlan {
        let [upper, work] = ["upper", "work"].map(|part| self.at(name).join(part));
        fs::create_dir_all(&upper).unwrap();
        fs::create_dir_all(&work).unwrap();
        OverlayPlan { lower: self.root(), upper, work }
    }

    /// Mounts an overlay; `None` where the kernel can't, which is said.
    fn mount(&self, name: &str) -> Option<Arc<Mounted>> {
        match sandbox().mount(&self.plan(name)) {
            Ok(mounted) => Some(Arc::new(mounted)),
            Err(error) => {
                skip(&error.to_string());
                None
            }
        }
    }

    fn request(&self, mounted: &Arc<Mounted>, command: &str) -> Request {
        let mut request = Request::shell(&self.root(), command);
        request.base = Some(Base::Mounted(Arc::clone(mounted)));
        request
    }

    /// The output of a command that must succeed.
    fn run(&self, mounted: &Arc<Mounted>, command: &str) -> String {
        text(self.request(mounted, command))
    }
}

fn text(request: Request) -> String {
    let command = request.argv.last().cloned();
    let completed = run(request);
    assert_eq!(completed.outcome, Outcome::Exited(0), "{command:?}: {}", completed.combined.text);
    completed.combined.text
}

/// By which this process reaches a file in a mount.
fn inside(mounted: &Mounted, path: &str) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", mounted.root().as_raw_fd())).join(path)
}

/// Everything that a change would show in: contents, modes, owners, times.
fn fingerprint(directory: &Path) -> BTreeMap<PathBuf, String> {
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

#[test]
fn commands_see_and_change_the_merged_tree_only() {
    let place = Place::new();
    let Some(mounted) = place.mount("copy") else { return };
    let before = fingerprint(&place.root());
    let root = place.root();
    let script = "pwd && cat file && echo new > made && echo more >> src/main && rm src/deep/leaf && rmdir src/deep \
                  && mkdir -p a/b && mv file a/b/moved && chmod 700 src && echo x > link/through && ls target/debug";
    let output = place.run(&mounted, script);
    assert_eq!(output, format!("{}\ncontent\nbuilt\n", root.display()));
    assert_eq!(fingerprint(&root), before);
    let read = |path| fs::read_to_string(inside(&mounted, path)).unwrap();
    assert_eq!((read("made").as_str(), read("src/main").as_str()), ("new\n", "fn main\nmore\n"));
    assert_eq!((read("a/b/moved").as_str(), read("src/through").as_str()), ("content\n", "x\n"));
    assert!(!inside(&mounted, "file").exists() && !inside(&mounted, "src/deep").exists());

    // What this process writes, commands see, and the other way round, without anything in between.
    fs::write(inside(&mounted, "made"), "edited\n").unwrap();
    fs::write(inside(&mounted, "src/other"), "other\n").unwrap();
    fs::remove_file(inside(&mounted, "a/b/moved")).unwrap();
    assert_eq!(place.run(&mounted, "cat made src/other; ls a/b"), "edited\nother\n");
    assert_eq!(fingerprint(&root), before);

    // What was changed lasts beyond the mount, and is there again when it is mounted again.
    drop(mounted);
    let mounted = place.mount("copy").unwrap();
    assert_eq!(place.run(&mounted, "cat made src/other; ls a"), "edited\nother\nb\n");
    assert_eq!(fingerprint(&root), before);
}

#[test]
fn what_is_protected_masked_or_read_only_is_so_in_a_mount() {
    let place = Place::new();
    let Some(mounted) = place.mount("copy") else { return };
    let root = place.root();
    // These are there in the copy alone: they are looked for in it, not on the host.
    fs::create_dir_all(inside(&mounted, "fresh/.git")).unwrap();
    fs::write(inside(&mounted, "fresh/secret"), "secret").unwrap();
    fs::remove_dir_all(inside(&mounted, "src/deep")).unwrap();
    let mut request = place.request(
        &mounted,
        "for f in .git/config .git/hooks/x fresh/.git/x; do echo x > $f && echo ESCAPED; done; \
         rm -rf .git 2>/dev/null; mv fresh/.git there 2>/dev/null && echo ESCAPED; test -e .git/config || echo GONE; \
         cat fresh/secret; pwd",
    );
    request.protected = [".git", "fresh/.git", "src/deep", "none"]
        .iter()
        .filter_map(|path| RelPath::parse(path).ok())
        .collect();
    request.masked = vec![root.join("fresh/secret"), root.join("src/deep/leaf")];
    request.cwd = root.join("fresh/..");
    let completed = run(request);
    assert_eq!(completed.stdout.text, format!("{}\n", root.display()), "{}", completed.combined.text);

    let mut request =
        place.request(&mounted, "cat file && ! touch file 2>/dev/null && ! touch src/x 2>/dev/null");
    request.write = WriteMode::ReadOnly;
    assert_eq!(text(request), "content\n");

    let mut request = place.request(&mounted, "cat built && echo x > built && cat built");
    request.cwd = root.join("target/debug");
    request.layered = vec![root.join("target")];
    assert_eq!(text(request), "built\nx\n");
    assert_eq!(fs::read_to_string(inside(&mounted, "target/debug/built")).unwrap(), "built\n");

    let mut request = place.request(&mounted, "pwd");
    request.cwd = root.join("src/deep");
    let refused = block_on(async { sandbox().spawn(request, CancellationToken::new()).await.map(drop) });
    assert!(matches!(refused, Err(SandboxError::Path { what: "the working directory", .. })), "{refused:?}");
}
