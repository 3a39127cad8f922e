//! The workspace and the index list the same files of a tree, whatever is in it.

use crate::bench::Bench;

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;

use journeyman_index::source::{FileSource as _, WorkTree};
use journeyman_protocol::RelPath;
use journeyman_workspace::ListOptions;
use rustix::fs::{CWD, FileType, Mode, mknodat};

/// Depth of the deepest directory.
const DEEPEST: usize = 160;
const TAG: &str = "Signature: 8a477f597d28d172789f06886806bc55\n";

fn write(root: &Path, path: &[u8], text: &str) {
    let path = root.join(OsStr::from_bytes(path));
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// Asserts that both list the same files, and returns them.
fn same_files(bench: &Bench) -> BTreeSet<RelPath> {
    let listed = bench.context.workspace.list(ListOptions::default()).unwrap();
    assert!(!listed.truncated);
    // The workspace lists links too, which have no content of their own to be indexed.
    let is_file = |path: &RelPath| {
        std::fs::symlink_metadata(bench.root.join(path.as_path())).is_ok_and(|it| it.is_file())
    };
    let ours: BTreeSet<RelPath> = listed.paths.into_iter().filter(is_file).collect();
    for threads in [1, 4] {
        let found = WorkTree::new(&bench.root, threads).list().unwrap();
        assert!(!found.cut);
        let indexed: BTreeSet<RelPath> = found.files.into_iter().map(|file| file.path).collect();
        assert_eq!(indexed, ours, "{threads} threads");
    }
    ours
}

/// Files with nested rules, tags, repositories and names of all kinds.
fn write_files(root: &Path) {
    for (path, text) in [
        (&b".gitignore"[..], "*.log\n/build/\n!keep.log\nsecret*\n"),
        (b".ignore", "!secret.ok\n"),
        (b".git/config", "x"),
        (b"keep.log", ""),
        (b"other.log", ""),
        (b"secret.txt", ""),
        (b"secret.ok", ""),
        (b"build/out.rs", ""),
        (b"src/build/in.rs", ""),
        (b"src/.gitignore", "!other.log\n*.rs\n!a.rs\n/only-here/\n"),
        (b"src/other.log", ""),
        (b"src/b.rs", ""),
        (b"src/only-here/x", ""),
        (b"src/deep/only-here/x", ""),
        (b"src/deep/.ignore", "x\n!/only-here/x\n"),
        (b"node_modules/p/index.js", ""),
        (b"cache/CACHEDIR.TAG", TAG),
        (b"cache/x", ""),
        (b"not-a-cache/CACHEDIR.TAG", "something else\n"),
        (b"not-a-cache/x", ""),
        (b"submodule/.git", "gitdir: ../.git/modules/x\n"),
        (b"submodule/x", ""),
        (b"nested/.GIT/HEAD", "x"),
        (b"nested/x", ""),
        (b".journeyman-work-0123456789abcdef/session/x", ""),
        (b".journeyman-work-other/x", ""),
        (b"not utf-8 \xff/\xfe.rs", ""),
        (b"line\nbreak/a\tb", ""),
        (b"-rf", ""),
        (b"rules/.gitignore/is a directory", ""),
        (b"a", ""),
        (b"a-b/x", ""),
        (b"a.b/x", ""),
    ] {
        write(root, path, text);
    }
}

/// Links, pipes and a socket, deep and wide directories, and one that is closed. The socket lives
/// as long as it is held.
fn write_obstacles(root: &Path) -> UnixListener {
    symlink(".", root.join("loop")).unwrap();
    symlink("../src", root.join("src/up")).unwrap();
    symlink("/etc", root.join("outside")).unwrap();
    symlink("nowhere", root.join("dangling")).unwrap();
    symlink("/etc/passwd", root.join("rules.link")).unwrap();
    std::fs::create_dir(root.join("linked-rules")).unwrap();
    symlink("../.gitignore", root.join("linked-rules/.gitignore")).unwrap();
    write(root, b"linked-rules/y.log", "");
    for path in ["pipe", "src/.gitignore.pipe"] {
        mknodat(CWD, root.join(path), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    }
    std::fs::create_dir(root.join("pipe-rules")).unwrap();
    mknodat(CWD, root.join("pipe-rules/.gitignore"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    write(root, b"pipe-rules/x", "");
    let deep = "d/".repeat(DEEPEST);
    for depth in [126, 127, 128, 129, DEEPEST] {
        write(root, format!("{}x", &deep[..depth * 2]).as_bytes(), "");
    }
    for number in 0..300 {
        write(root, format!("wide/{}/{number}.txt", number % 70).as_bytes(), "");
    }
    write(root, b"closed/x", "");
    std::fs::set_permissions(root.join("closed"), std::fs::Permissions::from_mode(0o000)).unwrap();
    write(root, b"listable/x", "");
    UnixListener::bind(root.join("sock")).unwrap()
}

#[test]
fn of_hostile_trees_both_list_the_same_files() {
    let bench = Bench::new(&[("src/a.rs", b"fn a() {}\n")]);
    let root = &bench.root;
    write_files(root);
    let _socket = write_obstacles(root);
    let deep = "d/".repeat(DEEPEST);
    let files = same_files(&bench);
    std::fs::set_permissions(root.join("closed"), std::fs::Permissions::from_mode(0o700)).unwrap();
    let has = |path: &str| files.contains(&RelPath::parse(path).unwrap());
    for path in [
        "keep.log",
        "secret.ok",
        "src/other.log",
        "src/deep/only-here/x",
        "submodule/x",
        "nested/x",
        "not-a-cache/x",
        "line\nbreak/a\tb",
        "pipe-rules/x",
        ".journeyman-work-other/x",
        "wide/69/69.txt",
        &format!("{}x", &deep[..128 * 2]),
    ] {
        assert!(has(path), "{path}");
    }
    for path in [
        "other.log",
        "secret.txt",
        "build/out.rs",
        "src/b.rs",
        "src/build/in.rs",
        "node_modules/p/index.js",
        "cache/x",
        ".git/config",
        "submodule/.git",
        "nested/.GIT/HEAD",
        ".journeyman-work-0123456789abcdef/session/x",
        "loop/keep.log",
        "pipe",
        "sock",
        &format!("{}x", &deep[..129 * 2]),
    ] {
        assert!(!has(path), "{path}");
    }
    assert!(files.contains(&RelPath::parse(b"not utf-8 \xff/\xfe.rs").unwrap()));
    assert!(files.len() > 300);
}
