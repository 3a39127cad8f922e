//! What several sessions do at once is told apart, and what can't be is left.

use super::*;

#[test]
fn what_others_journal_during_a_command_is_theirs() {
    let project = Project::with(&[("a", "1"), ("b", "1"), ("c", "1")]);
    let (ours, theirs) = (project.open(), project.open());
    let changed = command(&ours, 1, || {
        theirs.apply(set(2, vec![write("a", "2"), write("b", "2"), write("d", "2")])).unwrap();
        project.write("b", "3");
        project.write("c", "3");
    });
    assert_eq!(changed, "~b ~c");
    let report = ours.undo(UndoTarget::Session(session(1))).unwrap();
    assert_eq!((shown(&report.restored), report.conflicts), ("~b ~c".into(), vec![]));
    assert_eq!((project.text("b"), project.text("d")), ("2".into(), "2".into()));
    ours.undo(UndoTarget::Session(session(2))).unwrap();
    assert_eq!((project.text("a"), project.text("b")), ("1".into(), "1".into()));
}

/// Opens the project with a hook that lets another session edit while the tree is looked at, the
/// `at`-th time.
fn open_with_an_edit_at(project: &Project, at: usize, path: &'static str) -> Workspace {
    let (other, looks) = (project.open(), AtomicUsize::new(0));
    project.open_failing(Failpoint::new(move |step| {
        if step == TransactionStep::Look && looks.fetch_add(1, Ordering::Relaxed) == at {
            other.apply(set(2, vec![write(path, "theirs")])).unwrap();
        }
        Fault::Go
    }))
}

#[test]
fn an_edit_of_another_session_while_the_tree_is_looked_at_is_not_the_commands() {
    // At the first look before the command, and at that after it.
    for at in [0, 1] {
        for path in ["theirs/new", "both", "shared"] {
            let project = Project::with(&[("shared", "s"), ("own", "o")]);
            let workspace = open_with_an_edit_at(&project, at, path);
            let changed = command(&workspace, 1, || {
                project.write("own", "by the command");
                project.write("made/x", "x");
            });
            assert_eq!(changed, "+made/x ~own", "look {at}, {path}");
            let report = workspace.undo(UndoTarget::Session(session(1))).unwrap();
            assert_eq!((shown(&report.restored), report.conflicts), ("-made/x ~own".to_owned(), vec![]));
            assert_eq!(project.text(path), "theirs", "look {at}");
            workspace.undo(UndoTarget::Session(session(2))).unwrap();
            assert_eq!(project.text("shared"), "s");
            assert!(!project.root().join("theirs").exists() && !project.root().join("both").exists());
        }
    }
}

#[test]
fn nobody_looks_at_the_tree_in_the_middle_of_another_sessions_edit() {
    let mut project = Project::with(&[("own", "o")]);
    project.limits.lock_wait = Duration::ZERO;
    let workspace = project.open();
    let (looking, refusals) = (project.open(), std::sync::Arc::new(AtomicUsize::new(0)));
    let refused = refusals.clone();
    let hook = move |step| {
        if matches!(
            step,
            TransactionStep::Stage
                | TransactionStep::Placed
                | TransactionStep::Commit
                | TransactionStep::Settle
        ) {
            let begun = looking.command_observer().begin_call(&session(1), &CallId::new("shell"));
            assert!(matches!(begun, Err(WorkspaceError::Busy { .. })), "{step:?}: {begun:?}");
            refused.fetch_add(1, Ordering::Relaxed);
        }
        Fault::Go
    };
    project.open_failing(Failpoint::new(hook)).apply(set(2, vec![write("theirs", "t")])).unwrap();
    assert_eq!(refusals.load(Ordering::Relaxed), 4);
    assert_eq!(command(&workspace, 1, || project.write("own", "by the command")), "~own");
    assert_eq!(shown(&undo(&workspace).restored), "~own");
    assert_eq!(project.text("theirs"), "t");
}

#[test]
fn what_the_commands_of_two_sessions_may_have_done_is_left_by_an_undo_of_either() {
    let project = Project::with(&[("early", "e"), ("both", "b"), ("gone", "g"), ("late", "l")]);
    let workspace = project.open();
    let begin =
        |number| workspace.command_observer().begin_call(&session(number), &CallId::new("shell")).unwrap();
    let end = |before, number| {
        shown(
            &workspace.command_observer().end(before, &session(number), Some(&CallId::new("shell"))).unwrap(),
        )
    };
    let first = begin(1);
    project.write("early", "by the first");
    tick();
    let second = begin(2);
    project.write("both", "by either");
    project.write("new", "by either");
    fs::remove_file(project.root().join("gone")).unwrap();
    assert_eq!(end(first, 1), "~both ~early -gone +new");
    project.write("late", "by the second");
    // Both models are told of what may be theirs.
    assert_eq!(end(second, 2), "~both -gone ~late +new");
    for (number, own) in [(1, "~early"), (2, "~late")] {
        let report = workspace.undo(UndoTarget::Session(session(number))).unwrap();
        assert_eq!(
            (shown(&report.restored).as_str(), conflicts(&report).join(" ")),
            (own, "both gone new".into())
        );
        assert!(report.conflicts[0].1.starts_with("a command of another session ran when it was changed"));
    }
    assert_eq!((project.text("both"), project.text("new")), ("by either".into(), "by either".into()));
}

#[test]
fn a_call_whose_changes_another_session_journaled_is_not_told_as_one_without_any() {
    let project = Project::with(&[("both", "b")]);
    let mut options = project.options();
    // The machine wasn't started again since.
    let now = u64::MAX - 1;
    options.clock = Some(Clock::new(move || UnixMillis(now)));
    let workspace = Workspace::open(&project.root(), options).unwrap();
    let checkpoint = workspace.checkpoint(&session(1), "before").unwrap();
    let recover = |started| {
        let recovery = workspace.recovery();
        recovery.recover_call(&checkpoint, &session(1), &CallId::new("shell"), UnixMillis(started)).unwrap()
    };
    assert!(!recover(now).ran);
    let begin =
        |number| workspace.command_observer().begin_call(&session(number), &CallId::new("shell")).unwrap();
    let (own, other) = (begin(1), begin(2));
    project.write("both", "by either");
    workspace.command_observer().end(other, &session(2), Some(&CallId::new("shell"))).unwrap();
    workspace.command_observer().end(own, &session(1), Some(&CallId::new("shell"))).unwrap();
    let found = recover(now);
    assert_eq!((found.ran, found.applied.len(), found.left.len()), (true, 0, 1));
    assert!(found.left[0].1.starts_with("a command of another session ran at the same time"), "{found:?}");
    // A call that began later has nothing to do with it.
    assert!(!recover(now + 1).ran);
}

#[test]
fn a_file_restored_in_part_is_no_work_of_the_change_that_was_taken_back() {
    let project = Project::with(&[("log", ""), ("own", "1"), ("mixed", "1")]);
    let workspace = project.open();
    let checkpoint = workspace.checkpoint(&session(1), "before").unwrap();
    let call = |name: &str| CallId::new(name);
    let begin =
        |number, name| workspace.command_observer().begin_call(&session(number), &call(name)).unwrap();
    let end = |before, number, name| {
        workspace.command_observer().end(before, &session(number), Some(&call(name))).unwrap();
    };
    let (first, second) = (begin(1, "shared"), begin(2, "other"));
    project.write("log", "one\n");
    end(first, 1, "shared");
    end(second, 2, "other");
    let alone = begin(1, "alone");
    project.write("log", "one\ntwo\n");
    project.write("own", "2");
    project.write("mixed", "2");
    end(alone, 1, "alone");
    project.write("mixed", "by the user");
    let report = workspace.undo(UndoTarget::Session(session(1))).unwrap();
    assert_eq!((shown(&report.restored).as_str(), project.text("log")), ("~log ~own", "one\n".into()));
    assert_eq!(report.conflicts.len(), 2, "{report:?}");
    let recover = |name| {
        let recovery = workspace.recovery();
        recovery.recover_call(&checkpoint, &session(1), &call(name), UnixMillis(u64::MAX)).unwrap()
    };
    let alone = recover("alone");
    assert_eq!((shown(&alone.applied).as_str(), shown(&alone.undone).as_str()), ("~mixed", "~log ~own"));
    let shared = recover("shared");
    assert_eq!((shown(&shared.applied).as_str(), shown(&shared.undone).as_str()), ("~log", ""));
    // What is done again is in place again.
    workspace.redo(None).unwrap();
    assert_eq!(shown(&recover("alone").applied), "~log ~mixed ~own");
}

#[test]
fn a_command_whose_heartbeat_is_late_still_counts_as_running() {
    let mut project = Project::with(&[("both", "b")]);
    project.limits.heartbeat = Duration::from_secs(3_600);
    let workspace = project.open();
    let call = CallId::new("shell");
    let first = workspace.command_observer().begin_call(&session(1), &call).unwrap();
    let second = workspace.command_observer().begin_call(&session(2), &call).unwrap();
    project.write("both", "by either");
    // As after the stop of a process: the heartbeats were renewed before the file changed.
    for heartbeat in fs::read_dir(project.state().join("running")).unwrap() {
        let file = fs::File::options().write(true).open(heartbeat.unwrap().path()).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(86_400)).unwrap();
    }
    assert_eq!(shown(&workspace.command_observer().end(first, &session(1), Some(&call)).unwrap()), "~both");
    assert_eq!(shown(&workspace.command_observer().end(second, &session(2), Some(&call)).unwrap()), "~both");
}

#[test]
fn what_two_commands_may_have_done_is_left_when_one_of_them_is_recovered() {
    let project = Project::with(&[("a", "1"), ("b", "2")]);
    let workspace = project.open();
    let checkpoint = workspace.checkpoint(&session(1), "before").unwrap();
    let call = CallId::new("shell");
    let ours = workspace.command_observer().begin_call(&session(1), &call).unwrap();
    let theirs = workspace.command_observer().begin_call(&session(2), &call).unwrap();
    project.write("a", "by either");
    workspace.command_observer().end(theirs, &session(2), Some(&call)).unwrap();
    project.write("b", "by ours alone");
    drop(ours);
    let now = UnixMillis(u64::MAX);
    let recovered = workspace.recovery().recover_call(&checkpoint, &session(1), &call, now).unwrap();
    let left: Vec<String> = recovered.left.iter().map(|(change, _)| change.path.to_string()).collect();
    assert_eq!((shown(&recovered.restored).as_str(), left), ("~b", vec!["a".to_owned()]));
    assert_eq!(project.text("a"), "by either");
}

#[test]
fn sessions_that_work_at_once_never_take_back_what_another_did() {
    const SESSIONS: u64 = 3;
    const STEPS: u64 = 12;
    for round in 0..6 {
        let project = Project::with(&[("own0/a", "0"), ("own1/a", "0"), ("own2/a", "0")]);
        std::thread::scope(|scope| {
            for number in 0..SESSIONS {
                let project = &project;
                scope.spawn(move || {
                    let workspace = project.open();
                    let checkpoint = workspace.checkpoint(&session(number), "before").unwrap();
                    for step in 0..STEPS {
                        let text = format!("{number} {step}");
                        let path = format!("own{number}/{}", (round + step) % 5);
                        if (step + number + round) % 3 == 0 {
                            workspace.apply(set(number, vec![write(&path, &text)])).unwrap();
                            continue;
                        }
                        let call = CallId::new(format!("call-{step}"));
                        let before =
                            workspace.command_observer().begin_call(&session(number), &call).unwrap();
                        project.write(&path, &text);
                        if step == STEPS - 1 {
                            drop(before);
                            let now = UnixMillis(u64::MAX);
                            workspace
                                .recovery()
                                .recover_call(&checkpoint, &session(number), &call, now)
                                .unwrap();
                        } else {
                            workspace.command_observer().end(before, &session(number), Some(&call)).unwrap();
                        }
                    }
                });
            }
        });
        let workspace = project.open();
        for number in 0..SESSIONS {
            let others = || {
                let own = format!("own{number}");
                project
                    .tree()
                    .into_iter()
                    .filter(|(path, _)| !path.starts_with(own.as_bytes()))
                    .collect::<Vec<_>>()
            };
            let before = others();
            let report = workspace.undo(UndoTarget::Session(session(number)));
            assert_eq!(others(), before, "round {round}, undo of {number}: {report:?}");
        }
    }
}
