//! Disks that are full, or can't be written.

use journeyman_testkit::test_path;
use std::fs;
use std::sync::Arc;

use journeyman_store::Blobs;
use journeyman_workspace::{Change, Options, UndoTarget, Workspace, WorkspaceError};

use crate::hostile::again::{may_mount, mount_memory, mount_read_only};
use crate::support::{Model, Project, apply, delete, model, rel, session, write};

const PAGE: usize = 4096;

fn large(path: &str, letter: &str) -> Change {
    write(path, &letter.repeat(3 * PAGE))
}

fn changes() -> Vec<Change> {
    vec![
        large("a", "A"),
        large("new/deep/file", "n"),
        delete("gone"),
        Change::Rename { from: rel("from"), to: rel("new/moved") },
        large("b", "B"),
    ]
}

fn fill_tree(project: &Project) {
    for name in ["a", "b", "gone", "from"] {
        project.write(name, name.repeat(2 * PAGE));
    }
}

/// Leaves so many free pages.
fn leave(project: &Project, pages: usize) {
    let filler = project.root().join("filler");
    let chunk = vec![b'f'; PAGE];
    let mut file = fs::OpenOptions::new().create(true).append(true).open(&filler).unwrap();
    while std::io::Write::write_all(&mut file, &chunk).is_ok() {}
    let full = file.metadata().unwrap().len() / PAGE as u64;
    file.set_len((full.saturating_sub(pages as u64)) * PAGE as u64).unwrap();
}

fn no_room(error: &WorkspaceError) -> bool {
    let text = format!("{error:?}");
    let typed = matches!(
        error,
        WorkspaceError::NoSpace { .. } | WorkspaceError::State { .. } | WorkspaceError::Store(_)
    );
    typed && (text.contains("NoSpace") || text.contains("StorageFull") || text.contains("os error 28"))
}

/// The tree but for what fills it.
fn tree(project: &Project) -> Model {
    let mut tree = model(&project.root());
    tree.remove(b"filler".as_slice());
    tree
}

/// With 0, 1, 2, … free pages, so that the disk is full at every place of a change once.
#[test]
fn a_disk_that_is_full_at_any_place_of_a_change_leaves_the_tree_as_it_was() {
    if !may_mount(test_path!("a_disk_that_is_full_at_any_place_of_a_change_leaves_the_tree_as_it_was")) {
        return;
    }
    for state_too in [false, true] {
        let mut ends = [0, 0];
        for pages in 0..40 {
            let mut project = Project::new();
            let mount = if state_too { project.dir.path().to_owned() } else { project.root() };
            mount_memory(&mount, 1 << 20);
            if state_too {
                fs::create_dir(project.root()).unwrap();
                project.blobs = Arc::new(Blobs::open(&mount.join("blobs"), 1 << 30).unwrap());
            }
            fill_tree(&project);
            let workspace = project.open();
            apply(&workspace, vec![write("earlier", "e")]).unwrap();
            let before = tree(&project);
            leave(&project, pages);
            match apply(&workspace, changes()) {
                Ok(_) => ends[1] += 1,
                Err(error) => {
                    ends[0] += 1;
                    assert!(no_room(&error), "{pages} pages: {error:?}");
                    assert_eq!(tree(&project), before, "{pages} pages, {error}");
                }
            }
            fs::remove_file(project.root().join("filler")).unwrap();
            drop(workspace);
            let workspace = project.open();
            if tree(&project) == before {
                apply(&workspace, changes()).unwrap();
            }
            undone_in_little_room(&project, &workspace, pages);
        }
        assert!(ends[0] > 5 && ends[1] > 5, "{ends:?}");
    }
}

fn undone_in_little_room(project: &Project, workspace: &Workspace, pages: usize) {
    let done = tree(project);
    leave(project, pages);
    let result = workspace.undo(UndoTarget::Session(session(1)));
    if let Err(error) = result {
        assert!(no_room(&error), "an undo with {pages} pages: {error:?}");
        assert_eq!(tree(project), done, "an undo with {pages} pages: {error}");
        fs::remove_file(project.root().join("filler")).unwrap();
        workspace.undo(UndoTarget::Session(session(1))).unwrap();
    }
    let tree = tree(project);
    assert!(!tree.contains_key(b"new".as_slice()) && tree.contains_key(b"gone".as_slice()), "{pages} pages");
}

#[test]
fn a_disk_that_takes_no_writes_is_read_and_named() {
    if !may_mount(test_path!("a_disk_that_takes_no_writes_is_read_and_named")) {
        return;
    }
    let project = Project::new();
    mount_memory(&project.root(), 1 << 20);
    fill_tree(&project);
    mount_read_only(&project.root());
    let before = project.tree();
    let workspace = project.open();
    assert!(workspace.read(&rel("a"), 1 << 20).is_ok());
    let checkpoint = workspace.checkpoint(&session(1), "c").unwrap();
    let begun = workspace.command_observer().begin().unwrap();
    assert_eq!(workspace.command_observer().end(begun, &session(1), None).unwrap(), vec![]);
    for change in changes() {
        let error = apply(&workspace, vec![change]).unwrap_err();
        assert!(matches!(error, WorkspaceError::ReadOnly { .. }), "{error:?}");
    }
    assert_eq!(workspace.history().changes_since(&checkpoint).unwrap(), vec![]);
    assert_eq!(project.tree(), before);
}

#[test]
fn a_state_directory_that_cant_be_written_stops_changes_and_not_reading() {
    if !may_mount(test_path!("a_state_directory_that_cant_be_written_stops_changes_and_not_reading")) {
        return;
    }
    let project = Project::with(&[("a", "a")]);
    let outer = project.dir.path().join("outer");
    fs::create_dir(&outer).unwrap();
    mount_memory(&outer, 1 << 20);
    let blobs = Arc::new(Blobs::open(&outer.join("blobs"), 1 << 30).unwrap());
    let options = Options::new(outer.join("state"), blobs);
    mount_read_only(&outer);
    let workspace = Workspace::open(&project.root(), options).unwrap();
    assert_eq!(workspace.read(&rel("a"), 10).unwrap().text(), Some("a"));
    for error in [
        apply(&workspace, vec![write("a", "b")]).unwrap_err(),
        workspace.checkpoint(&session(1), "c").unwrap_err(),
        workspace.command_observer().begin().map(drop).unwrap_err(),
    ] {
        assert!(matches!(error, WorkspaceError::State { .. } | WorkspaceError::Store(_)), "{error:?}");
    }
    assert_eq!(project.text("a"), "a");
}
