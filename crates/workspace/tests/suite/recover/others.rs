//! Calls that were cut off beside the work of another session.

use super::*;

#[test]
fn recovery_leaves_what_another_session_did_while_the_command_ran() {
    let (project, checkpoint, before) = cut_off(|_, _| {});
    let workspace = project.open();
    // Edits of another session are in the journal; one is made while recovery looks at the tree.
    workspace.apply(set(2, vec![write("theirs/edit", "e"), write("b", "edited")])).unwrap();
    let looks = AtomicUsize::new(0);
    let other = project.open();
    let hook = move |step| {
        if step == FailStep::Look && looks.fetch_add(1, Ordering::Relaxed) == 0 {
            other.apply(set(2, vec![write("theirs/late", "e"), write("made/deep/y", "e")])).unwrap();
        }
        Fault::Go
    };
    tick();
    let running = workspace.command_observer().begin_call(&session(2), &call("theirs")).unwrap();
    project.write("theirs/command", "by their command");
    let recovered = recover(&project.open_failing(Failpoint::new(hook)), checkpoint);
    let beside =
        "a command of another session ran at the same time, so it can't be told whose change this is; kept";
    assert_eq!(left(&recovered), [format!("+theirs/command: {beside}")]);
    let mut expected = before;
    let kept = project.tree();
    for path in
        ["theirs", "theirs/edit", "theirs/late", "theirs/command", "b", "made", "made/deep", "made/deep/y"]
    {
        expected.insert(path.into(), kept[path.as_bytes()].clone());
    }
    assert_eq!(kept, expected);
    let theirs = workspace.command_observer().end(running, &session(2), Some(&call("theirs"))).unwrap();
    assert_eq!(shown(&theirs), "+theirs/command");
    workspace.undo(UndoTarget::Session(session(2))).unwrap();
    assert!(!project.root().join("theirs").exists());
}

#[test]
fn recovery_leaves_what_a_command_did_that_ends_before_it_is_told_whose_it_is() {
    let (project, checkpoint, before) = cut_off(|_, _| {});
    let (other, looks) = (project.open(), AtomicUsize::new(0));
    tick();
    let running = other.command_observer().begin_call(&session(2), &call("theirs")).unwrap();
    project.write("theirs", "by their command");
    let running = std::sync::Mutex::new(Some(running));
    let hook = move |step| {
        // After the tree was looked at and the journal was found to be as before.
        if step == FailStep::Look && looks.fetch_add(1, Ordering::Relaxed) == 1 {
            let running = running.lock().unwrap().take().unwrap();
            let theirs = other.command_observer().end(running, &session(2), Some(&call("theirs"))).unwrap();
            assert!(shown(&theirs).contains("+theirs"));
        }
        Fault::Go
    };
    recover(&project.open_failing(Failpoint::new(hook)), checkpoint);
    let mut expected = before;
    expected.insert("theirs".into(), project.tree()[b"theirs".as_slice()].clone());
    assert_eq!(project.tree(), expected);
}

#[test]
fn a_file_left_because_another_session_may_have_changed_it_is_named_at_each_sealing() {
    let project = project();
    let workspace = project.open();
    let checkpoint = workspace.checkpoint(&session(1), "before").unwrap();
    let cut_off = begin(&workspace);
    let theirs = workspace.command_observer().begin_call(&session(2), &call("theirs")).unwrap();
    project.write("early", "by one of the two commands");
    drop(cut_off);
    workspace.command_observer().end(theirs, &session(2), Some(&call("theirs"))).unwrap();
    let expected = [
        "~early: a command of another session ran at the same time, so it can't be told whose change this is; kept",
    ];
    for recovery in ["first", "second"] {
        let recovered = recover(&workspace, checkpoint);
        assert_eq!(
            (left(&recovered), recovered.ran),
            (expected.map(str::to_owned).to_vec(), true),
            "{recovery}"
        );
    }
    assert_eq!(project.text("early"), "by one of the two commands");
}

#[test]
fn what_a_sealed_command_left_is_not_taken_for_the_work_of_one_that_still_runs() {
    let project = project();
    let workspace = project.open();
    let checkpoint = workspace.checkpoint(&session(1), "before").unwrap();
    let cut_off = begin(&workspace);
    let theirs = workspace.command_observer().begin_call(&session(2), &call("theirs")).unwrap();
    project.write("early", "by the command that is cut off");
    project.write("ignored", "by the command that is cut off");
    drop(cut_off);
    assert_eq!(paths_left(&recover(&workspace, checkpoint)), "~early");
    workspace.command_observer().end(theirs, &session(2), Some(&call("theirs"))).unwrap();
    for number in [1, 2] {
        let ignored = workspace.history().ignored_changes_since(&checkpoint, &session(number)).unwrap();
        let ignored: Vec<_> = ignored.iter().map(|it| (it.change.path.to_string(), it.is_shared)).collect();
        assert_eq!(ignored, [("ignored".to_owned(), true)]);
        let undone = workspace.undo(UndoTarget::Session(session(number))).unwrap();
        let kept: Vec<_> = undone.conflicts.iter().map(|(path, _)| path.to_string()).collect();
        assert_eq!((undone.restored, kept), (vec![], vec!["early".to_owned(), "ignored".to_owned()]));
    }
    workspace.recovery().forget_recovered(&session(1)).unwrap();
    let next = begin(&workspace);
    let notes = fs::read_dir(project.state().join("running")).unwrap().count();
    assert_eq!(notes, 2, "only the heartbeat and the process_lock of the command that runs");
    workspace.command_observer().end(next, &session(1), Some(&call("shell"))).unwrap();
}
