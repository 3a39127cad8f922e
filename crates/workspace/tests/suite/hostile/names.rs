//! Names that are legal and odd.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;

use journeyman_protocol::RelPath;
use journeyman_workspace::{Change, ExpectedState, ListOptions, UndoTarget, WorkspaceError};

use crate::support::{Project, rel, session, set};

fn odd_names() -> Vec<Vec<u8>> {
    let mut names: Vec<Vec<u8>> = [
        "..foo",
        "foo..",
        "...",
        ".. ",
        " ",
        "trailing ",
        "trailing.",
        "-rf",
        "--",
        "~",
        "a\nb",
        "\n",
        "a\tb",
        "\u{7f}",
        "\u{1b}[31mred",
        "con",
        "NUL.txt",
        "COM1",
        "a:b",
        "a\\b",
        "*?[]{}",
        "$(touch x)",
        "`x`",
        "'\"",
        "é",
        "e\u{301}",
        "\u{202e}txt.exe",
        "\u{feff}bom",
        "🦀",
        "CaSe",
        "case",
        ".gitignored",
        ".git-not",
        "git",
        ".jm-0123456789abcdef",
        ".a.jm-0123456789abcdef",
        "lock",
        "journal",
        "CACHEDIR.TAG2",
        "%00",
        "#",
        "!neg",
    ]
    .into_iter()
    .map(|name| name.as_bytes().to_vec())
    .collect();
    names.extend([
        b"\xff\xfe".to_vec(),
        b"a\xc3(".to_vec(),
        vec![b'x'; 255],
        vec![0xf0; 255],
        b"\x01".to_vec(),
    ]);
    names
}

/// Each is written, read, listed, renamed, seen in a command, undone, also after opening anew.
#[test]
fn any_legal_name_works_in_every_way() {
    let project = Project::in_memory();
    let names = odd_names();
    let workspace = project.open();
    let write = |path: &RelPath, text: &str| Change::Write {
        path: path.clone(),
        content: text.as_bytes().to_vec(),
        expected: ExpectedState::Anything,
    };
    let paths: Vec<RelPath> = names
        .iter()
        .map(|name| rel([b"dir ".as_slice(), name.get(..200).unwrap_or(name), b"/", name].concat()))
        .collect();
    let before = project.tree();
    workspace.apply(set(1, paths.iter().map(|path| write(path, "one")).collect())).unwrap();
    let listing = workspace.list(ListOptions::default()).unwrap();
    let mut sorted = paths.clone();
    sorted.sort();
    assert_eq!(listing.paths, sorted);
    for path in &paths {
        assert_eq!(workspace.read(path, 10).unwrap().text(), Some("one"), "{path}");
    }
    let checkpoint = workspace.checkpoint(&session(1), "c").unwrap();
    let written = project.tree();
    let begun = workspace.command_observer().begin().unwrap();
    for path in &paths {
        fs::write(project.root().join(OsStr::from_bytes(path.as_bytes())), "two").unwrap();
    }
    assert_eq!(workspace.command_observer().end(begun, &session(2), None).unwrap().len(), paths.len());
    let renames = paths.iter().enumerate().map(|(place, path)| {
        let to = rel([format!("moved/{place}/").as_bytes(), path.file_name()].concat());
        Change::Rename { from: path.clone(), to }
    });
    workspace.apply(set(3, renames.collect())).unwrap();
    let again = project.open();
    assert_eq!(again.history().changes_since(&checkpoint).unwrap().len(), 2 * paths.len());
    assert!(again.history().diff_since(&checkpoint, 1 << 20).is_ok());
    for (number, expected) in [(3, None), (2, Some(&written)), (1, Some(&before))] {
        let report = again.undo(UndoTarget::Session(session(number))).unwrap();
        assert_eq!(report.conflicts, vec![]);
        if let Some(expected) = expected {
            assert_eq!(project.tree(), *expected, "session {number}");
        }
    }
}

#[test]
fn gits_own_name_is_refused_in_every_spelling_and_place() {
    let project = Project::with(&[("a", "a")]);
    let workspace = project.open();
    let before = project.tree();
    for path in [".git", ".GIT/config", "dir/.Git/hooks/x", ".giT", "a/../.git", "x/.gIt"] {
        let Ok(path) = RelPath::parse(path) else { continue };
        for change in [
            Change::Write { path: path.clone(), content: b"x".to_vec(), expected: ExpectedState::Anything },
            Change::Rename { from: rel("a"), to: path.clone() },
            Change::Rename { from: path.clone(), to: rel("b") },
            Change::Delete { path: path.clone(), expected: ExpectedState::Anything },
            Change::SetExecutable { path: path.clone(), executable: true },
        ] {
            let error = workspace.apply(set(1, vec![change])).unwrap_err();
            assert!(matches!(error, WorkspaceError::Protected { .. }), "{path}: {error:?}");
        }
    }
    assert_eq!(project.tree(), before);
}

/// Up to the longest path that a system call takes.
#[test]
fn the_longest_paths_work_or_are_refused_by_name() {
    let project = Project::in_memory();
    let workspace = project.open();
    let long = |components: usize, last: usize| {
        let mut path = vec![vec![b'd'; 255]; components].join(&b'/');
        path.push(b'/');
        path.extend(vec![b'f'; last]);
        path
    };
    // 15 × 256 + 255 = 4,095 bytes, and what is shorter.
    for (components, last) in [(15, 255), (15, 254), (15, 100), (15, 1), (14, 255)] {
        let path = rel(long(components, last));
        let change = |text: &str| Change::Write {
            path: path.clone(),
            content: text.as_bytes().to_vec(),
            expected: ExpectedState::Anything,
        };
        let before = project.tree_through_descriptors();
        match workspace.apply(set(1, vec![change("one")])) {
            Ok(_) => {
                assert_eq!(workspace.read(&path, 10).unwrap().text(), Some("one"));
                workspace.apply(set(1, vec![change("two")])).unwrap();
                let begun = workspace.command_observer().begin().unwrap();
                assert_eq!(workspace.command_observer().end(begun, &session(1), None).unwrap(), vec![]);
                workspace.checkpoint(&session(1), "c").unwrap();
                assert_eq!(workspace.undo(UndoTarget::LastRun).unwrap().conflicts, vec![]);
            }
            Err(error) => assert!(matches!(error, WorkspaceError::Io { .. }), "{components}: {error:?}"),
        }
        assert_eq!(project.tree_through_descriptors(), before, "{components} {last}");
    }
    for bytes in [4_096, 5_000, 70_000] {
        assert!(RelPath::parse(vec![b'a'; bytes]).is_err(), "{bytes}");
    }
    // A name that no file system has.
    let error = workspace
        .apply(set(
            1,
            vec![Change::Write {
                path: rel(vec![b'a'; 256]),
                content: Vec::new(),
                expected: ExpectedState::Anything,
            }],
        ))
        .unwrap_err();
    assert!(error.to_string().contains("too long"), "{error}");
    assert_eq!(project.tree_through_descriptors(), 0);
}

impl Project {
    /// How many things are in the tree; paths beyond the system's longest have no name to ask by.
    fn tree_through_descriptors(&self) -> usize {
        fn count(dir: &std::os::fd::OwnedFd) -> usize {
            use rustix::fs::{Dir, FileType, Mode, OFlags, openat};
            let mut found = 0;
            for entry in Dir::read_from(dir).unwrap() {
                let entry = entry.unwrap();
                if matches!(entry.file_name().to_bytes(), b"." | b"..") {
                    continue;
                }
                found += 1;
                if entry.file_type() == FileType::Directory {
                    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
                    found += count(&openat(dir, entry.file_name(), flags, Mode::empty()).unwrap());
                }
            }
            found
        }
        use rustix::fs::{CWD, Mode, OFlags, openat};
        count(&openat(CWD, self.root(), OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty()).unwrap())
    }
}
