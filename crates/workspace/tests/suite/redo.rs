//! Undo, undo to a checkpoint, and redo: as often as one likes, and never over what a person did.

use crate::support;
use journeyman_testkit::skip;

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use journeyman_workspace::failpoint::{Failpoint, Fault};
use journeyman_workspace::{Change, CheckpointId, UndoReport, UndoTarget, Workspace, WorkspaceError};
use proptest::prelude::*;
use rustix::io::Errno;
use support::{Node, Project, apply, delete, mode, rel, session, set, set_mode, shown, write};

fn command(workspace: &Workspace, number: u64, work: impl FnOnce()) -> String {
    let before = workspace.command_observer().begin().unwrap();
    work();
    shown(&workspace.command_observer().end(before, &session(number), None).unwrap())
}

fn checkpoint(workspace: &Workspace) -> CheckpointId {
    workspace.checkpoint(&session(9), "here").unwrap()
}

fn undo(workspace: &Workspace) -> UndoReport {
    workspace.undo(UndoTarget::LastRun).unwrap()
}

fn to(workspace: &Workspace, checkpoint: CheckpointId) -> UndoReport {
    workspace.undo(UndoTarget::To(checkpoint)).unwrap()
}

fn conflicts(report: &UndoReport) -> Vec<String> {
    report.conflicts.iter().map(|(path, why)| format!("{path}: {why}")).collect()
}

fn nothing_to_redo(workspace: &Workspace) {
    assert!(matches!(workspace.redo(None), Err(WorkspaceError::NothingToRedo { .. })));
}

/// A run with everything that a change can be.
fn busy(project: &Project, workspace: &Workspace, number: u64) {
    let edits = vec![
        write("edited", &format!("by {number}")),
        write("new/deep/file", "n"),
        delete("deleted"),
        Change::Rename { from: rel("from"), to: rel("new/moved") },
        Change::SetExecutable { path: rel("run"), executable: true },
    ];
    workspace.apply(set(number, edits)).unwrap();
    command(workspace, number, || {
        project.write("made\nodd/x", "x");
        fs::create_dir(project.root().join("hollow")).unwrap();
        set_mode(&project.root().join("hollow"), 0o750);
        fs::remove_dir_all(project.root().join("old")).unwrap();
        fs::remove_dir(project.root().join("empty")).unwrap();
        fs::remove_file(project.root().join("link")).unwrap();
        symlink("run", project.root().join("link")).unwrap();
        set_mode(&project.root().join("moded"), 0o600);
        fs::remove_file(project.root().join("was-file")).unwrap();
        project.write("was-file/inside", "i");
        fs::remove_dir_all(project.root().join("was-dir")).unwrap();
        project.write("was-dir", "now a file");
    });
}

fn project() -> Project {
    let files = [
        ("edited", "0"),
        ("deleted", "d"),
        ("from", "f"),
        ("run", "#!"),
        ("moded", "m"),
        ("old/a", "a"),
        ("old/sub/b", "b"),
        ("was-file", "f"),
        ("was-dir/x", "x"),
        (".gitignore", "ignored\n"),
        ("ignored", "i"),
    ];
    let project = Project::with(&files);
    symlink("edited", project.root().join("link")).unwrap();
    fs::create_dir(project.root().join("empty")).unwrap();
    set_mode(&project.root().join("edited"), 0o640);
    set_mode(&project.root().join("old"), 0o711);
    project
}

#[test]
fn what_was_taken_back_of_a_named_session_is_done_again_whatever_came_later() {
    let project = Project::with(&[("a", "0"), ("b", "0"), ("c", "0")]);
    let workspace = project.open();
    workspace.apply(set(1, vec![write("a", "1"), write("b", "1")])).unwrap();
    workspace.apply(set(2, vec![write("c", "2")])).unwrap();
    workspace.undo(UndoTarget::Session(session(1))).unwrap();
    workspace.apply(set(3, vec![write("b", "3")])).unwrap();
    nothing_to_redo(&workspace);
    let none = workspace.redo(Some(&session(2)));
    assert!(matches!(none, Err(WorkspaceError::NothingToRedo { session: Some(_) })), "{none:?}");
    let redone = workspace.redo(Some(&session(1))).unwrap();
    assert_eq!((shown(&redone.restored).as_str(), redone.sessions.clone()), ("~a", vec![session(1)]));
    assert_eq!(conflicts(&redone), ["b: it was changed after the undo; kept as it is"]);
    assert_eq!((project.text("a"), project.text("b")), ("1".into(), "3".into()));
    // It is a change like any other.
    let undone = workspace.undo(UndoTarget::Session(session(1))).unwrap();
    assert_eq!((shown(&undone.restored).as_str(), project.text("a")), ("~a", "0".into()));
}

#[test]
fn undo_and_redo_go_several_steps_back_and_forth_exactly() {
    let project = project();
    let workspace = project.open();
    let start = project.tree();
    busy(&project, &workspace, 1);
    let first = project.tree();
    workspace
        .apply(set(2, vec![write("edited", "again"), delete("new/deep/file"), write("z", "z")]))
        .unwrap();
    let second = project.tree();
    let dir_mode = mode(&project.root().join("hollow"));
    for round in 0..3 {
        // From another process each time.
        let workspace = project.open();
        assert_eq!(undo(&workspace).sessions, [session(2)], "round {round}");
        assert_eq!(project.tree(), first);
        assert_eq!(undo(&workspace).sessions, [session(1)]);
        assert_eq!(project.tree(), start);
        assert_eq!(mode(&project.root().join("old")), 0o711);
        assert!(matches!(
            workspace.undo(UndoTarget::LastRun),
            Err(WorkspaceError::NothingToUndo { session: None })
        ));
        let workspace = project.open();
        let report = workspace.redo(None).unwrap();
        assert_eq!((report.sessions.clone(), conflicts(&report)), (vec![session(1)], vec![]));
        assert_eq!(project.tree(), first, "round {round}");
        assert_eq!(mode(&project.root().join("hollow")), dir_mode);
        assert_eq!(workspace.redo(None).unwrap().sessions, [session(2)]);
        assert_eq!(project.tree(), second);
        nothing_to_redo(&workspace);
    }
}

#[test]
fn an_ordinary_change_ends_what_can_be_done_again_and_an_outside_one_doesnt() {
    let project = Project::with(&[("a", "1"), ("b", "1"), ("c", "1")]);
    let workspace = project.open();
    nothing_to_redo(&workspace);
    apply(&workspace, vec![write("a", "2"), write("b", "2")]).unwrap();
    nothing_to_redo(&workspace);
    undo(&workspace);
    project.write("c", "the user's");
    assert_eq!(shown(&workspace.redo(None).unwrap().restored), "~a ~b");
    undo(&workspace);
    apply(&workspace, vec![write("c", "3")]).unwrap();
    nothing_to_redo(&workspace);
    assert_eq!(shown(&undo(&workspace).restored), "~c");
    assert_eq!(shown(&workspace.redo(None).unwrap().restored), "~c");
    assert_eq!((project.text("a"), project.text("c")), ("1".into(), "3".into()));
}

#[test]
fn what_the_user_changed_since_the_undo_stays_and_can_be_had_later() {
    let project = Project::with(&[("mine", "1"), ("theirs", "1"), ("gone", "1")]);
    let workspace = project.open();
    apply(&workspace, vec![write("mine", "2"), write("theirs", "2"), delete("gone"), write("new", "n")])
        .unwrap();
    let done = project.tree();
    undo(&workspace);
    project.write("theirs", "the user's");
    project.write("new", "the user's too");
    let report = workspace.redo(None).unwrap();
    assert_eq!(shown(&report.restored), "-gone ~mine");
    let why = "it was changed after the undo; kept as it is";
    assert_eq!(conflicts(&report), [format!("new: {why}"), format!("theirs: {why}")]);
    assert_eq!((project.text("theirs"), project.text("new")), ("the user's".into(), "the user's too".into()));
    let again = workspace.redo(None).unwrap();
    assert_eq!((again.restored.len(), again.conflicts.len()), (0, 2), "they still stand");
    project.write("theirs", "1");
    fs::remove_file(project.root().join("new")).unwrap();
    assert_eq!(shown(&workspace.redo(None).unwrap().restored), "+new ~theirs");
    assert_eq!(project.tree(), done);
    nothing_to_redo(&workspace);
    assert_eq!(shown(&undo(&workspace).restored), "+gone ~mine -new ~theirs");
}

#[test]
fn after_a_partial_undo_redo_brings_back_what_was_taken_back() {
    let project = Project::with(&[("a", "1"), ("b", "1")]);
    let workspace = project.open();
    apply(&workspace, vec![write("a", "2"), write("b", "2")]).unwrap();
    project.write("b", "the user's");
    assert_eq!(shown(&undo(&workspace).restored), "~a");
    let report = workspace.redo(None).unwrap();
    assert_eq!((shown(&report.restored), report.conflicts), ("~a".to_owned(), vec![]));
    assert_eq!((project.text("a"), project.text("b")), ("2".into(), "the user's".into()));
    // All of it is there to be taken back again.
    project.write("b", "2");
    assert_eq!(shown(&undo(&workspace).restored), "~a ~b");
}

#[test]
fn an_undo_that_is_stuck_doesnt_stand_before_the_older_ones() {
    let project = Project::with(&[("a", "1"), ("b", "1")]);
    let workspace = project.open();
    workspace.apply(set(1, vec![write("a", "2")])).unwrap();
    workspace.apply(set(2, vec![write("b", "2")])).unwrap();
    workspace.undo(UndoTarget::Session(session(1))).unwrap();
    workspace.undo(UndoTarget::Session(session(2))).unwrap();
    project.write("b", "the user's");
    let report = workspace.redo(None).unwrap();
    assert_eq!((report.sessions, shown(&report.restored)), (vec![session(1)], "~a".to_owned()));
    assert_eq!(report.conflicts.len(), 1);
    assert_eq!((project.text("a"), project.text("b")), ("2".into(), "the user's".into()));
}

#[test]
fn to_a_checkpoint_everything_goes_back_whoever_changed_it() {
    let project = project();
    let workspace = project.open();
    busy(&project, &workspace, 1);
    let (here, tree) = (checkpoint(&workspace), project.tree());
    workspace.apply(set(2, vec![write("edited", "two"), write("p/q", "2")])).unwrap();
    let (there, later) = (checkpoint(&workspace), project.tree());
    workspace.apply(set(3, vec![write("edited", "three"), delete("p/q")])).unwrap();
    command(&workspace, 4, || {
        fs::remove_dir_all(project.root().join("was-file")).unwrap();
        project.write("was-file", "four");
    });
    let end = project.tree();
    let report = to(&workspace, here);
    assert_eq!((report.sessions, report.conflicts), (vec![session(4), session(3), session(2)], vec![]));
    assert_eq!(project.tree(), tree);
    assert!(matches!(
        workspace.undo(UndoTarget::To(here)),
        Err(WorkspaceError::NothingSince { checkpoint }) if checkpoint == here
    ));
    assert_eq!(workspace.redo(None).unwrap().sessions, [session(4), session(3), session(2)]);
    assert_eq!(project.tree(), end);
    to(&workspace, there);
    assert_eq!(project.tree(), later);
    to(&workspace, here);
    assert_eq!(project.tree(), tree);
    // What was before the checkpoint is still there to be taken back, and only that.
    assert_eq!(undo(&workspace).sessions, [session(1)]);
    workspace.redo(None).unwrap();
    assert_eq!(project.tree(), tree);
    workspace.redo(None).unwrap();
    assert_eq!(project.tree(), later);
    workspace.redo(None).unwrap();
    assert_eq!(project.tree(), end);
    let unknown = workspace.undo(UndoTarget::To(CheckpointId(10_000)));
    assert!(matches!(unknown, Err(WorkspaceError::UnknownCheckpoint { .. })));
}

#[test]
fn to_a_checkpoint_an_undo_since_is_taken_back_too() {
    let project = Project::with(&[("a", "1"), ("b", "1")]);
    let workspace = project.open();
    workspace.apply(set(1, vec![write("a", "2")])).unwrap();
    let here = checkpoint(&workspace);
    workspace.apply(set(1, vec![write("a", "3"), write("b", "3")])).unwrap();
    undo(&workspace);
    assert_eq!(project.text("a"), "1");
    to(&workspace, here);
    assert_eq!((project.text("a"), project.text("b")), ("2".into(), "1".into()));
    assert_eq!(shown(&undo(&workspace).restored), "~a");
    assert_eq!(project.text("a"), "1");
}

#[test]
fn to_a_checkpoint_what_the_user_did_stays() {
    let project = Project::with(&[("a", "1"), ("b", "1"), ("c", "1"), ("d", "1")]);
    let workspace = project.open();
    let here = checkpoint(&workspace);
    workspace.apply(set(1, vec![write("a", "2"), write("b", "2"), write("c", "2")])).unwrap();
    undo(&workspace);
    workspace.apply(set(2, vec![write("b", "3"), write("d", "3")])).unwrap();
    // c was changed and taken back before the user wrote it: there is nothing of ours in it.
    for file in ["b", "c"] {
        project.write(file, "the user's");
    }
    let report = to(&workspace, here);
    assert_eq!((shown(&report.restored), conflicts(&report).len()), ("~d".to_owned(), 1));
    assert_eq!(report.conflicts[0].0, rel("b"));
    assert_eq!((project.text("b"), project.text("c")), ("the user's".into(), "the user's".into()));
    project.write("b", "3");
    assert_eq!(shown(&to(&workspace, here).restored), "~b");
    assert_eq!(project.text("b"), "1");
}

#[test]
fn nothing_of_gits_own_is_touched() {
    let git = |project: &Project, arguments: &[&str]| {
        let output = Command::new("git")
            .args(["-c", "user.name=T", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"])
            .args(arguments)
            .current_dir(project.root())
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_OPTIONAL_LOCKS", "0")
            .output();
        output.ok().map(|output| {
            assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8(output.stdout).unwrap()
        })
    };
    let project =
        Project::with(&[("tracked", "1\n"), ("staged", "1\n"), ("gone", "g\n"), (".gitignore", "i\n")]);
    if git(&project, &["init", "-q", "-b", "main"]).is_none() {
        return skip("git");
    }
    git(&project, &["add", "."]);
    git(&project, &["commit", "-q", "-m", "one"]);
    project.write("tracked", "stashed\n");
    git(&project, &["stash"]);
    project.write("staged", "2\n");
    git(&project, &["add", "staged"]);
    project.write("untracked", "u\n");
    project.write("i", "ignored\n");
    let state = || {
        let all = [
            &["status", "--porcelain=v2"][..],
            &["stash", "list"],
            &["rev-parse", "HEAD"],
            &["diff", "--cached"],
            &["for-each-ref"],
        ];
        let said: Vec<String> = all.iter().map(|arguments| git(&project, arguments).unwrap()).collect();
        (
            said,
            fs::read(project.root().join(".git/index")).unwrap(),
            support::model(&project.root().join(".git")),
        )
    };
    let before = (state(), project.tree());
    let workspace = project.open();
    let here = checkpoint(&workspace);
    apply(&workspace, vec![write("tracked", "3\n"), write("staged", "3\n"), delete("gone"), write("n", "n")])
        .unwrap();
    command(&workspace, 2, || {
        fs::remove_file(project.root().join("untracked")).unwrap();
        project.write("i", "by a command\n");
    });
    project.write("i", "ignored\n");
    let after = (state().0, project.tree());
    undo(&workspace);
    undo(&workspace);
    assert_eq!((state(), project.tree()), before);
    workspace.redo(None).unwrap();
    workspace.redo(None).unwrap();
    assert_eq!((state().0, project.tree()), after);
    to(&workspace, here);
    assert_eq!((state(), project.tree()), before);
    git(&project, &["fsck", "--strict"]);
}

fn after(steps: usize, fault: Fault) -> (Failpoint, Arc<AtomicUsize>) {
    let seen = Arc::new(AtomicUsize::new(0));
    let counter = seen.clone();
    let hook = move |_| if counter.fetch_add(1, Ordering::Relaxed) == steps { fault } else { Fault::Go };
    (Failpoint::new(hook), seen)
}

/// Cut off and failed at each of its steps: all of it has happened or nothing, and it can be done
/// again.
fn at_every_step(
    prepare: impl Fn(&Project, &Workspace),
    work: impl Fn(&Workspace) -> Result<UndoReport, WorkspaceError>,
) {
    let whole = project();
    prepare(&whole, &whole.open());
    let before = whole.tree();
    let (hook, count) = after(usize::MAX, Fault::Go);
    work(&whole.open_failing(hook)).unwrap();
    let done = whole.tree();
    assert_ne!(before, done);
    let steps = count.load(Ordering::Relaxed);
    let mut ends = [0, 0];
    for (step, fault) in (0..steps).flat_map(|step| [(step, Fault::Cut), (step, Fault::Fail(Errno::NOSPC))]) {
        let project = project();
        prepare(&project, &project.open());
        let (hook, _) = after(step, fault);
        let result = work(&project.open_failing(hook));
        let workspace = project.open();
        let tree = project.tree();
        assert!(tree == before || tree == done, "{fault:?} at step {step}: {tree:#?}");
        ends[usize::from(tree == done)] += 1;
        if let Fault::Fail(_) = fault {
            assert_eq!(result.is_ok(), tree == done, "{fault:?} at step {step}");
        }
        if tree == before {
            work(&workspace).unwrap();
        }
        assert_eq!(project.tree(), done, "again after {fault:?} at step {step}");
        assert!(!done.keys().any(|path| path.windows(4).any(|part| part == b".jm-")));
    }
    assert!(ends[0] > 0 && ends[1] > 0, "{ends:?}");
}

#[test]
fn a_redo_cut_off_anywhere_has_happened_or_not() {
    let prepare = |project: &Project, workspace: &Workspace| {
        busy(project, workspace, 1);
        undo(workspace);
    };
    at_every_step(prepare, |workspace| workspace.redo(None));
}

#[test]
fn an_undo_to_a_checkpoint_cut_off_anywhere_has_happened_or_not() {
    let prepare = |project: &Project, workspace: &Workspace| {
        assert_eq!(checkpoint(workspace), CheckpointId(1));
        busy(project, workspace, 1);
        workspace.apply(set(2, vec![write("edited", "more"), write("new/other", "o")])).unwrap();
    };
    at_every_step(prepare, |workspace| workspace.undo(UndoTarget::To(CheckpointId(1))));
}

const NAMES: [&str; 6] = ["a", "b", "dir/a", "dir/sub/c", "dir/sub/d", "odd\nname"];

type Writes = Vec<(usize, Option<u8>)>;

#[derive(Debug, Clone)]
enum Act {
    Edit(u64, Writes),
    Command(u64, Writes),
    Outside(usize, bool),
    Checkpoint,
    UndoLast,
    UndoSession(u64),
    To(usize),
    Redo,
    Reopen,
    Crash(usize, Box<Act>),
}

fn writes() -> impl Strategy<Value = Writes> {
    prop::collection::vec((0..NAMES.len(), prop::option::weighted(0.7, 0..4_u8)), 1..4)
}

fn act() -> impl Strategy<Value = Act> {
    let undo = || {
        prop_oneof![
            3 => Just(Act::UndoLast),
            2 => (0..3_u64).prop_map(Act::UndoSession),
            3 => (0..4_usize).prop_map(Act::To),
            5 => Just(Act::Redo),
        ]
    };
    prop_oneof![
        4 => (0..3_u64, writes()).prop_map(|(s, w)| Act::Edit(s, w)),
        4 => (0..3_u64, writes()).prop_map(|(s, w)| Act::Command(s, w)),
        2 => (0..NAMES.len(), any::<bool>()).prop_map(|(name, gone)| Act::Outside(name, gone)),
        2 => Just(Act::Checkpoint),
        8 => undo(),
        1 => Just(Act::Reopen),
        2 => (0..24_usize, undo()).prop_map(|(step, act)| Act::Crash(step, Box::new(act))),
    ]
}

/// What the model remembers: whole trees.
#[derive(Default)]
struct World {
    checkpoints: Vec<(CheckpointId, support::Model)>,
    /// The tree before each undo that can be taken back.
    redo: Vec<support::Model>,
    /// What the user wrote, each time something else that nobody else writes.
    outside: Vec<Vec<u8>>,
    written: usize,
    /// Whether the user did anything since the checkpoints and undos that are remembered.
    alone: bool,
}

fn change(project: &Project, workspace: &Workspace, number: u64, writes: &Writes, by_command: bool) {
    if by_command {
        command(workspace, number, || {
            for (name, content) in writes {
                match content {
                    Some(content) => project.write(NAMES[*name], format!("{content}\n")),
                    None => drop(fs::remove_file(project.root().join(NAMES[*name]))),
                }
            }
        });
        return;
    }
    let changes = writes.iter().filter_map(|(name, content)| match content {
        Some(content) => Some(write(NAMES[*name], &format!("{content}\n"))),
        None => project.root().join(NAMES[*name]).exists().then(|| delete(NAMES[*name])),
    });
    let mut changes: Vec<Change> = changes.collect();
    let mut deleted = Vec::new();
    changes.retain(|change| match change {
        Change::Delete { path, .. } if deleted.contains(path) => false,
        Change::Delete { path, .. } => {
            deleted.push(path.clone());
            true
        }
        _ => true,
    });
    workspace.apply(set(number, changes)).unwrap();
}

fn take_back(workspace: &Workspace, world: &World, act: &Act) -> Option<Result<UndoReport, WorkspaceError>> {
    Some(match act {
        Act::UndoLast => workspace.undo(UndoTarget::LastRun),
        Act::UndoSession(number) => workspace.undo(UndoTarget::Session(session(*number))),
        Act::To(nth) => {
            let (id, _) = world.checkpoints.get(world.checkpoints.len().checked_sub(nth + 1)?)?;
            workspace.undo(UndoTarget::To(*id))
        }
        Act::Redo => workspace.redo(None),
        _ => return None,
    })
}

/// What has to hold after something was taken back or done again.
fn check(
    project: &Project,
    world: &mut World,
    act: &Act,
    before: support::Model,
    report: Option<UndoReport>,
) {
    let now = project.tree();
    for (path, node) in &before {
        if let Node::File(_, content) = node
            && world.outside.contains(content)
        {
            assert_eq!(now.get(path), Some(node), "the user's file stays: {act:?}");
        }
    }
    let Some(report) = report else { return assert_eq!(now, before, "{act:?}") };
    let does = report.conflicts.is_empty() || !report.restored.is_empty();
    if !does {
        return assert_eq!(now, before, "nothing but conflicts: {act:?}");
    }
    match act {
        Act::To(nth) => {
            let place = world.checkpoints.len() - nth - 1;
            if world.alone {
                assert_eq!(report.conflicts, vec![], "{act:?}");
                assert_eq!(now, world.checkpoints[place].1, "{act:?}");
            }
            world.redo.push(before);
        }
        Act::Redo => {
            let then = world.redo.pop();
            if world.alone {
                assert_eq!(Some(now), then, "{act:?}");
            }
        }
        _ => world.redo.push(before),
    }
}

fn run(acts: &[Act]) {
    let project = Project::in_memory();
    let mut workspace = project.open();
    let mut world = World { alone: true, ..World::default() };
    for act in acts {
        let before = project.tree();
        match act {
            Act::Edit(number, writes) => change(&project, &workspace, *number, writes, false),
            Act::Command(number, writes) => change(&project, &workspace, *number, writes, true),
            Act::Outside(name, gone) => {
                world.alone = false;
                if *gone {
                    fs::remove_file(project.root().join(NAMES[*name])).ok();
                } else {
                    world.written += 1;
                    let content = format!("the user's {}", world.written);
                    project.write(NAMES[*name], &content);
                    world.outside.push(content.into_bytes());
                }
            }
            Act::Checkpoint => {
                let id = checkpoint(&workspace);
                if world.checkpoints.last().is_none_or(|(last, _)| *last != id) {
                    world.checkpoints.push((id, project.tree()));
                }
            }
            Act::Reopen => workspace = project.open(),
            Act::Crash(step, act) => {
                let (hook, _) = after(*step, Fault::Cut);
                let result = take_back(&project.open_failing(hook), &world, act);
                workspace = project.open();
                match result {
                    None => {}
                    Some(Err(WorkspaceError::CutOff(_))) => {
                        // Which of both can't be told here where they are the same.
                        return;
                    }
                    Some(result) => check(&project, &mut world, act, before.clone(), result.ok()),
                }
            }
            act => {
                let found = take_back(&workspace, &world, act);
                if let Some(Err(error)) = &found {
                    let expected = matches!(
                        error,
                        WorkspaceError::NothingToUndo { .. }
                            | WorkspaceError::NothingToRedo { .. }
                            | WorkspaceError::NothingSince { .. }
                    );
                    assert!(expected, "{act:?}: {error}");
                    if world.alone && matches!(act, Act::Redo) {
                        assert_eq!(world.redo.len(), 0, "there was something to do again");
                    }
                }
                if let Some(found) = found {
                    check(&project, &mut world, act, before.clone(), found.ok());
                }
            }
        }
        if matches!(act, Act::Edit(..) | Act::Command(..)) && project.tree() != before {
            world.redo.clear();
            // What was changed by a session is known to the journal from then on.
            let now = project.tree();
            let known = before.iter().filter(|(path, node)| now.get(*path) != Some(node));
            let known: Vec<&Node> = known.map(|(_, node)| node).collect();
            world.outside.retain(|theirs| {
                !known.iter().any(|node| matches!(node, Node::File(_, content) if content == theirs))
            });
        }
    }
    assert!(!project.tree().keys().any(|path| path.windows(4).any(|part| part == b".jm-")));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_done_trees_come_back_and_the_users_files_stay(acts in prop::collection::vec(act(), 1..20)) {
        run(&acts);
    }
}
