//! Any legal name works; what other systems can't have is told of.

use crate::support;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

use journeyman_protocol::RelPath;
use journeyman_workspace::{Change, ExpectedState, ListOptions, NameTrouble, UndoTarget};
use support::{Project, apply, rel};

fn write(path: &[u8]) -> Change {
    let path = RelPath::parse(path).unwrap();
    Change::Write { path, content: b"content\n".to_vec(), expected: ExpectedState::Absent }
}

#[test]
fn any_legal_name_is_written_read_listed_and_taken_back() {
    let project = Project::in_memory();
    let workspace = project.open();
    let long = [b'x'; 255];
    let names: [&[u8]; 12] = [
        b"..foo",
        b"...",
        b"foo..",
        b"a b",
        b" ",
        b"-rf",
        b"new\nline",
        b"\xff\xfe",
        b"*",
        b"a\\b",
        b"\x1b[31m",
        &long,
    ];
    for name in names {
        for path in [name.to_vec(), [b"dir \n/", name].concat()] {
            let applied = apply(&workspace, vec![write(&path)]).unwrap();
            assert_eq!(applied.changes[0].path.as_bytes(), path);
            let on_disk = std::fs::read(project.root().join(OsStr::from_bytes(&path))).unwrap();
            assert_eq!(on_disk, b"content\n");
            let rel = rel(&path);
            assert_eq!(workspace.read(&rel, 100).unwrap().text(), Some("content\n"));
        }
    }
    let listed = workspace.list(ListOptions::default()).unwrap();
    assert_eq!(listed.paths.len(), names.len() * 2);
    workspace.undo(UndoTarget::LastRun).unwrap();
    assert_eq!(std::fs::read_dir(project.root()).unwrap().count(), 0);
}

#[test]
fn names_that_other_systems_cant_have_are_told_of() {
    let project = Project::in_memory();
    std::fs::create_dir_all(project.root().join("Src")).unwrap();
    std::fs::write(project.root().join("Readme.md"), "x").unwrap();
    let workspace = project.open();
    let changes = [b"src/lib.rs".as_slice(), b"README.md", b"docs/aux.md", b"fine.rs", b"what?.txt"];
    let applied = apply(&workspace, changes.map(write).to_vec()).unwrap();
    let told = workspace.command_observer().name_troubles(&applied.changes);
    let expected = [
        (rel("README.md"), NameTrouble::Collision(rel("Readme.md"))),
        (rel("docs/aux.md"), NameTrouble::Reserved),
        (rel("src"), NameTrouble::Collision(rel("Src"))),
        (rel("what?.txt"), NameTrouble::Character('?')),
    ];
    assert_eq!(told, expected);
}
