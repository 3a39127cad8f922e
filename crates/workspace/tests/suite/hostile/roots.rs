//! Roots that go away, at any moment.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use journeyman_workspace::failpoint::{Failpoint, Fault};
use journeyman_workspace::{UndoTarget, Workspace, WorkspaceError};

use crate::support::{Project, apply, delete, model, rel, session, write};

#[test]
fn a_root_that_was_never_there_or_is_no_directory_is_named() {
    let project = Project::with(&[("file", "f")]);
    for root in ["nothing", "tree/file", "tree/file/beneath"] {
        let error = Workspace::open(&project.dir.path().join(root), project.options()).unwrap_err();
        assert!(matches!(error, WorkspaceError::Root { .. }), "{error:?}");
        assert!(error.to_string().contains(root), "{error}");
    }
    assert!(!project.state().exists());
}

/// Removed, or moved away and replaced by another one, between any two steps of a change.
#[test]
fn a_root_that_goes_away_during_a_change_takes_nothing_else_with_it() {
    for replaced in [false, true] {
        for step in 0.. {
            let project = Project::with(&[("edit", "old"), ("gone", "g"), ("dir/file", "f")]);
            let (root, aside) = (project.root(), project.dir.path().join("aside"));
            let other = project.dir.path().join("other");
            fs::create_dir(&other).unwrap();
            fs::write(other.join("edit"), "another project's").unwrap();
            let expected = model(&other);
            let seen = Arc::new(AtomicUsize::new(0));
            let (counter, from, to) = (seen.clone(), root.clone(), aside.clone());
            let hook = move |_| {
                if counter.fetch_add(1, Ordering::Relaxed) == step {
                    if replaced {
                        fs::rename(&from, &to).unwrap();
                        fs::rename(&other, &from).unwrap();
                    } else {
                        fs::remove_dir_all(&from).unwrap();
                    }
                }
                Fault::Go
            };
            let workspace = project.open_failing(Failpoint::new(hook));
            let changes = vec![write("edit", "new"), delete("gone"), write("made/deep", "m")];
            let result = apply(&workspace, changes);
            if seen.load(Ordering::Relaxed) <= step {
                assert!(step > 10 && result.is_ok());
                break;
            }
            if replaced {
                // It is the directory that was opened, whatever its name is now.
                assert!(result.is_ok(), "{step}: {result:?}");
                assert_eq!(model(&root), expected, "{step}");
                assert_eq!(fs::read_to_string(aside.join("edit")).unwrap(), "new");
            } else {
                assert!(!root.exists(), "{step}: a removed root came back");
            }
        }
    }
}

#[test]
fn every_question_to_a_root_that_is_gone_is_answered_with_its_name() {
    let project = Project::with(&[("a", "a")]);
    let workspace = project.open();
    let checkpoint = workspace.checkpoint(&session(1), "c").unwrap();
    apply(&workspace, vec![write("a", "b")]).unwrap();
    let begun = workspace.command_observer().begin().unwrap();
    fs::remove_dir_all(project.root()).unwrap();
    let errors = [
        apply(&workspace, vec![write("a", "c")]).map(drop),
        workspace.undo(UndoTarget::LastRun).map(drop),
        workspace.checkpoint(&session(1), "d").map(drop),
        workspace.command_observer().begin().map(drop),
        workspace.command_observer().end(begun, &session(1), None).map(drop),
        workspace.history().changes_since(&checkpoint).map(drop),
        workspace.read(&rel("a"), 10).map(drop),
        workspace.list(journeyman_workspace::ListOptions::default()).map(drop),
    ];
    for (place, result) in errors.into_iter().enumerate() {
        let error = result.expect_err(&place.to_string());
        assert!(matches!(error, WorkspaceError::Root { .. }), "{place}: {error:?}");
    }
    assert!(!project.root().exists());
}
