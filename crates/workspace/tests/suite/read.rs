//! Reading and listing: what is inside is found, what is outside isn't, and nothing makes it wait.

use crate::support;
use journeyman_testkit::skip;

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::sync::atomic::{AtomicBool, Ordering};

use journeyman_protocol::ContentHash;
use journeyman_workspace::{ListOptions, NotAFile, StatKind, Workspace, WorkspaceError};
use support::{Project, apply, rel, session, set_mode, write};

fn listed(workspace: &Workspace, options: ListOptions) -> Vec<String> {
    workspace.list(options).unwrap().paths.iter().map(ToString::to_string).collect()
}

#[test]
fn reading_table() {
    let project = Project::with(&[("a", "text\n"), ("dir/b", "b"), ("large", "0123456789")]);
    let root = project.root();
    set_mode(&root.join("a"), 0o755);
    rustix::fs::mkfifoat(rustix::fs::CWD, root.join("pipe"), rustix::fs::Mode::RWXU).unwrap();
    let _socket = UnixListener::bind(root.join("socket")).unwrap();
    for (link, target) in [
        ("inside", "dir/b"),
        ("chain", "inside"),
        ("up", "dir/../a"),
        ("out", "../outside"),
        ("abs", "/etc/hostname"),
        ("null", "/dev/null"),
        ("loop", "loop"),
        ("dangling", "nowhere"),
        ("proc", "/proc/self/root/etc/hostname"),
    ] {
        symlink(target, root.join(link)).unwrap();
    }
    fs::write(project.dir.path().join("outside"), "secret").unwrap();
    let workspace = project.open();
    for (path, text, executable) in
        [("a", "text\n", true), ("inside", "b", false), ("chain", "b", false), ("up", "text\n", true)]
    {
        let content = workspace.read(&rel(path), 9).unwrap();
        assert_eq!((content.text(), content.executable), (Some(text), executable), "{path}");
    }
    type Check = fn(&WorkspaceError) -> bool;
    let refused: [(&str, Check); 12] = [
        ("out", |e| matches!(e, WorkspaceError::Outside { .. })),
        ("abs", |e| matches!(e, WorkspaceError::Outside { .. })),
        ("null", |e| matches!(e, WorkspaceError::Outside { .. })),
        ("proc", |e| matches!(e, WorkspaceError::Outside { .. })),
        ("loop", |e| matches!(e, WorkspaceError::NotFound { .. })),
        ("dangling", |e| matches!(e, WorkspaceError::NotFound { .. })),
        ("nope", |e| matches!(e, WorkspaceError::NotFound { .. })),
        ("a/b", |e| matches!(e, WorkspaceError::NotFound { .. })),
        ("dir", |e| matches!(e, WorkspaceError::NotAFile { kind: NotAFile::Directory, .. })),
        ("pipe", |e| matches!(e, WorkspaceError::NotAFile { kind: NotAFile::Fifo, .. })),
        ("socket", |e| matches!(e, WorkspaceError::NotAFile { kind: NotAFile::Socket, .. })),
        ("large", |e| matches!(e, WorkspaceError::TooLarge { size: 10, limit: 9, .. })),
    ];
    for (path, is_expected) in refused {
        let error = workspace.read(&rel(path), 9).unwrap_err();
        assert!(is_expected(&error), "{path}: {error:?}");
    }
    let kinds = ["a", "inside", "dir", "pipe", "dangling"].map(|path| {
        let stat = workspace.stat(&rel(path)).unwrap().unwrap();
        (stat.kind, stat.link)
    });
    use StatKind::{Directory, File, Other};
    assert_eq!(kinds, [(File, false), (File, true), (Directory, false), (Other, false), (Other, true)]);
    assert_eq!(workspace.stat(&rel("nope/x")).unwrap(), None);
    assert!(matches!(workspace.stat(&rel("out")), Err(WorkspaceError::Outside { .. })));
}

#[test]
fn a_huge_file_is_refused_unread() {
    let project = Project::new();
    let file = fs::File::create(project.root().join("huge")).unwrap();
    if file.set_len(5 << 30).is_err() {
        return skip("sparse files");
    }
    let workspace = project.open();
    let error = workspace.read(&rel("huge"), 1 << 20).unwrap_err();
    assert!(matches!(error, WorkspaceError::TooLarge { size: 5_368_709_120, .. }));
    assert_eq!(workspace.command_observer().begin().unwrap().not_undoable_files(), [rel("huge")]);
}

#[test]
fn listing_is_sorted_by_bytes_and_ignores_what_git_ignores() {
    let project = Project::with(&[
        (".gitignore", "*.log\n/target/\nskip\n!keep.log\n"),
        (".ignore", "private\n"),
        ("a-b", ""),
        ("a/b", ""),
        ("a.b", ""),
        ("a/x.log", ""),
        ("keep.log", ""),
        ("target/made", ""),
        ("sub/target/kept", ""),
        ("sub/.gitignore", "*.o\n!/deep.log\n"),
        ("sub/x.o", ""),
        ("sub/deep.log", ""),
        ("skip/inside", ""),
        ("private", ""),
        (".hidden", ""),
        (".git/HEAD", ""),
        ("sub/.git", "gitdir: x"),
        ("node_modules/x", ""),
        ("cache/CACHEDIR.TAG", "Signature: 8a477f597d28d172789f06886806bc55"),
        ("cache/x", ""),
        ("notcache/CACHEDIR.TAG", "no signature"),
        ("notcache/x", ""),
    ]);
    symlink("a", project.root().join("link")).unwrap();
    fs::write(project.root().join("odd\nname"), "").unwrap();
    let workspace = project.open();
    let all = listed(&workspace, ListOptions::default());
    assert_eq!(
        all,
        [
            ".gitignore",
            ".hidden",
            ".ignore",
            "a-b",
            "a.b",
            "a/b",
            "keep.log",
            "link",
            "notcache/CACHEDIR.TAG",
            "notcache/x",
            "odd\\nname",
            "sub/.gitignore",
            "sub/deep.log",
            "sub/target/kept",
        ]
    );
    let under = |path: &str| ListOptions { under: Some(rel(path)), ..ListOptions::default() };
    assert_eq!(listed(&workspace, under("sub")), ["sub/.gitignore", "sub/deep.log", "sub/target/kept"]);
    assert_eq!(listed(&workspace, under("link")), ["a/b"]);
    let glob = |glob: &str| ListOptions { glob: Some(glob.to_owned()), ..ListOptions::default() };
    assert_eq!(listed(&workspace, glob("*.log")), ["keep.log", "sub/deep.log"]);
    assert_eq!(listed(&workspace, glob("sub/*")), ["sub/.gitignore", "sub/deep.log"]);
    assert_eq!(listed(&workspace, glob("**/b")), ["a/b"]);
    assert!(matches!(workspace.list(glob("[")), Err(WorkspaceError::Glob { .. })));
    let cut = workspace.list(ListOptions { limit: 3, ..ListOptions::default() }).unwrap();
    assert_eq!((cut.paths.len(), cut.truncated, cut.paths[2].to_string()), (3, true, ".ignore".to_owned()));
    let everything = listed(&workspace, ListOptions { include_ignored: true, ..ListOptions::default() });
    assert!(
        everything.contains(&"node_modules/x".to_owned()) && everything.contains(&"target/made".to_owned())
    );
    assert!(!everything.iter().any(|path| path.contains(".git/") || path == "sub/.git"));
    assert!(matches!(workspace.list(under("nope")), Err(WorkspaceError::NotFound { .. })));
}

#[test]
fn rules_above_the_root_and_the_exclude_file_hold() {
    let project = Project::with(&[
        (".git/info/exclude", "excluded\n"),
        (".gitignore", "*.tmp\n/inner/anchored\n"),
        ("inner/a", ""),
        ("inner/b.tmp", ""),
        ("inner/anchored", ""),
        ("inner/excluded", ""),
    ]);
    let inner = Workspace::open(&project.root().join("inner"), project.options()).unwrap();
    assert_eq!(listed(&inner, ListOptions::default()), ["a"]);
}

#[test]
fn a_wide_and_deep_tree_is_listed_whole_by_two_threads() {
    let project = Project::new();
    let mut expected = Vec::new();
    for n in 0..600 {
        let path = format!("d{:02}/e{:02}/f{n:03}", n % 40, n % 7);
        project.write(&path, "");
        expected.push(path);
    }
    let deep = format!("{}x", "deep/".repeat(100));
    project.write(&deep, "");
    expected.push(deep);
    expected.sort();
    assert_eq!(listed(&project.open(), ListOptions::default()), expected);
}

/// Another thread swaps a directory for a link to the outside as fast as it can, while changes and
/// reads go through it: nothing outside is ever written or read.
#[test]
fn a_racing_link_leads_nowhere() {
    let project = Project::with(&[("dir/file", "inside")]);
    let outside = project.dir.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("file"), "outside").unwrap();
    symlink("../outside", project.root().join("swap")).unwrap();
    let before = support::model(&outside);
    let stop = AtomicBool::new(false);
    let (root, workspace) = (project.root(), project.open());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            use rustix::fs::{CWD, RenameFlags, renameat_with};
            let (one, other) = (root.join("dir"), root.join("swap"));
            while !stop.load(Ordering::Relaxed) {
                renameat_with(CWD, &one, CWD, &other, RenameFlags::EXCHANGE).unwrap();
            }
        });
        let (mut written, mut refused) = (0, 0);
        for round in 0..400 {
            match apply(&workspace, vec![write("dir/file", &round.to_string()), write("dir/new", "n")]) {
                Ok(_) => written += 1,
                Err(_) => refused += 1,
            }
            if let Ok(content) = workspace.read(&rel("dir/file"), 100) {
                assert_ne!(content.text(), Some("outside"));
            }
        }
        stop.store(true, Ordering::Relaxed);
        println!("written {written}, refused {refused}");
        assert!(written + refused == 400);
    });
    assert_eq!(support::model(&outside), before);
}

/// A file that is replaced in the very moment of the change isn't lost: the change is a conflict,
/// or it came first or last.
#[test]
fn a_racing_writer_loses_nothing() {
    let project = Project::with(&[("file", "theirs 0")]);
    let workspace = project.open();
    let stop = AtomicBool::new(false);
    let root = project.root();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut round = 0;
            while !stop.load(Ordering::Relaxed) {
                round += 1;
                fs::write(root.join("theirs"), format!("theirs {round}")).unwrap();
                fs::rename(root.join("theirs"), root.join("file")).unwrap();
                // Now in the middle of a change, now between two.
                (0..(round % 64) * 10_000).for_each(|_| std::hint::spin_loop());
            }
        });
        let mut applied = 0;
        for round in 0..200 {
            let content = workspace.read(&rel("file"), 100).unwrap();
            let change = journeyman_workspace::Change::Write {
                path: rel("file"),
                content: format!("ours {round}").into_bytes(),
                expected: journeyman_workspace::ExpectedState::Hash(content.hash),
            };
            match apply(&workspace, vec![change]) {
                Ok(_) => applied += 1,
                Err(
                    WorkspaceError::Conflict { .. }
                    | WorkspaceError::Raced { .. }
                    | WorkspaceError::NotFound { .. },
                ) => {}
                Err(other) => panic!("{other:?}"),
            }
        }
        stop.store(true, Ordering::Relaxed);
        println!("applied {applied} of 200");
    });
    let left: Vec<_> =
        fs::read_dir(project.root()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| name == "file" || name == "theirs"), "{left:?}");
}

#[test]
fn globs_that_would_take_the_stack_are_refused_with_the_limit_named() {
    let project = Project::with(&[("a", "1")]);
    let workspace = project.open();
    let listed = |glob: String| workspace.list(ListOptions { glob: Some(glob), ..ListOptions::default() });
    let table = [
        ("{".repeat(400_000) + "a" + &"}".repeat(400_000), "1000"),
        ("{".repeat(4_000) + "a" + &"}".repeat(4_000), "1000"),
        ("{".repeat(33) + "a" + &"}".repeat(33), "32"),
        ("*a".repeat(65), "64"),
        ("\u{fc}".repeat(501), "1000"),
    ];
    for (glob, limit) in table {
        let error = listed(glob.clone()).unwrap_err();
        assert!(matches!(error, WorkspaceError::Glob { .. }), "{error}");
        assert!(error.to_string().contains(&format!("at most {limit}")), "{error}");
        assert!(error.to_string().len() < 400, "{error}");
    }
    // What is just within the limits is answered, one way or the other.
    for glob in ["{".repeat(32) + "a" + &"}".repeat(32), "*".repeat(64), "[".repeat(1_000), "?".repeat(1_000)]
    {
        match listed(glob.clone()) {
            Ok(listing) => assert!(listing.paths.len() <= 1, "{glob}"),
            Err(error) => assert!(matches!(error, WorkspaceError::Glob { .. }), "{error}"),
        }
    }
}

#[test]
fn fingerprints_are_those_of_reading() {
    let files =
        [("a", "1"), (".gitignore", "ignored\n"), ("ignored", "i"), ("old/deep/c", "3"), ("users/x", "u")];
    let project = Project::with(&files);
    symlink("a", project.root().join("link")).unwrap();
    let workspace = project.open();
    let paths = ["a", "link", "users", "nothing", "ignored", "old/deep/c"].map(rel);
    let of = |text: &str| Some(ContentHash::of(text.as_bytes()));
    let expected = [of("1"), of("1"), None, None, of("i"), of("3")];
    assert_eq!(workspace.fingerprints(&paths), expected);
    workspace.checkpoint(&session(1), "kept").unwrap();
    assert_eq!(workspace.fingerprints(&paths), expected);
    for (path, hash) in paths.iter().zip(expected) {
        assert_eq!(workspace.read(path, 1_000).ok().map(|content| content.hash), hash, "{path}");
    }
    for text in ["22", "33", "44"] {
        // As fast as a clock's tick, and of the same size.
        project.write("a", text);
        assert_eq!(workspace.fingerprints(&paths)[..2], [of(text), of(text)]);
    }
    assert_eq!(workspace.history().kept_content(&ContentHash::of(b"1")).unwrap(), Some(b"1".to_vec()));
}
