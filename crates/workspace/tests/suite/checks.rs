//! What an undo does with what changed while checks ran: a person may have been working.

use crate::support;

use std::fs;

use journeyman_protocol::ContentHash;
use journeyman_workspace::{UndoReport, UndoTarget, Workspace, WorkspaceError};
use support::{Project, apply, session, set, shown, write};

const KEPT: &str = "changed while checks or commit hooks ran; kept";

fn check(workspace: &Workspace, number: u64, work: impl FnOnce()) -> String {
    let before = workspace.command_observer().begin().unwrap();
    work();
    shown(&workspace.command_observer().end_checks(before, &session(number)).unwrap())
}

fn conflicts(report: &UndoReport) -> Vec<String> {
    report.conflicts.iter().map(|(path, why)| format!("{path}: {why}")).collect()
}

#[test]
fn what_the_user_wrote_while_checks_ran_is_kept() {
    let project = Project::with(&[("edited", "1\n"), ("users", "1"), ("gone", "1"), ("dir/x", "1")]);
    let workspace = project.open();
    apply(&workspace, vec![write("edited", "2 \n")]).unwrap();
    let changed = check(&workspace, 1, || {
        project.write("edited", "2\n");
        project.write("users", "the user's");
        project.write("out/snapshot", "made by a test");
        project.write("out/log", "made by a test");
        fs::remove_file(project.root().join("gone")).unwrap();
        fs::remove_dir_all(project.root().join("dir")).unwrap();
        fs::create_dir(project.root().join("users-own")).unwrap();
    });
    assert_eq!(changed, "-dir/x ~edited -gone +out/log +out/snapshot ~users");
    // A second round of checks writes one of them anew.
    assert_eq!(check(&workspace, 1, || project.write("out/snapshot", "made again")), "~out/snapshot");
    project.write("out/log", "the user's since");
    let report = workspace.undo(UndoTarget::Session(session(1))).unwrap();
    assert_eq!(shown(&report.restored), "~edited -out/snapshot");
    let expected = [
        format!("dir/x: {KEPT}"),
        format!("gone: {KEPT}"),
        "out/log: it was changed after the run; kept as it is".to_owned(),
        format!("users: {KEPT}"),
    ];
    assert_eq!(conflicts(&report), expected);
    assert_eq!((project.text("edited"), project.text("users")), ("1\n".into(), "the user's".into()));
    assert!(!project.root().join("dir").exists() && project.root().join("users-own").exists());
    // What was kept for good isn't asked about again; the rest is.
    let again = workspace.undo(UndoTarget::Session(session(1))).unwrap();
    assert_eq!(conflicts(&again), ["out/log: it was changed after the run; kept as it is"]);
}

#[test]
fn a_command_of_the_session_makes_a_file_its_own() {
    let project = Project::with(&[("a", "1")]);
    let workspace = project.open();
    check(&workspace, 1, || project.write("a", "2"));
    let before = workspace.command_observer().begin().unwrap();
    project.write("a", "3");
    workspace.command_observer().end(before, &session(1), None).unwrap();
    let report = workspace.undo(UndoTarget::LastRun).unwrap();
    assert_eq!((shown(&report.restored), report.conflicts.len()), ("~a".to_owned(), 0));
    assert_eq!(project.text("a"), "1");
}

#[test]
fn a_run_of_checks_alone_doesnt_stand_before_the_runs_before_it() {
    let project = Project::with(&[("a", "1"), ("b", "1")]);
    let workspace = project.open();
    workspace.apply(set(1, vec![write("a", "2")])).unwrap();
    check(&workspace, 2, || project.write("b", "the user's"));
    let report = workspace.undo(UndoTarget::LastRun).unwrap();
    assert_eq!((report.sessions[0].clone(), report.restored.len()), (session(2), 0));
    assert_eq!(conflicts(&report), [format!("b: {KEPT}")]);
    let report = project.open().undo(UndoTarget::LastRun).unwrap();
    assert_eq!((report.sessions[0].clone(), shown(&report.restored)), (session(1), "~a".to_owned()));
    assert_eq!((project.text("a"), project.text("b")), ("1".into(), "the user's".into()));
}

#[test]
fn what_an_undo_took_away_is_kept_with_its_journal() {
    let project = Project::with(&[("a", "1")]);
    let workspace = project.open();
    apply(&workspace, vec![write("a", "the work of a day"), write("new", "and a night")]).unwrap();
    workspace.undo(UndoTarget::Session(session(1))).unwrap();
    let journal = fs::read_to_string(project.state().join("journal/log")).unwrap();
    let undo = journal.lines().find(|line| line.contains("\"cause\":\"undo\"")).unwrap();
    for content in ["the work of a day", "and a night"] {
        let hash = ContentHash::of(content.as_bytes());
        assert!(undo.contains(&hash.to_string()), "{undo}");
        assert_eq!(project.blobs.get(&hash).unwrap(), Some(content.as_bytes().to_vec()));
    }
    let again = workspace.undo(UndoTarget::Session(session(1))).unwrap_err();
    assert!(matches!(again, WorkspaceError::NothingToUndo { session: Some(_) }));
}
