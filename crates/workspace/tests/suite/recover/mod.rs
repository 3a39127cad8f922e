//! What becomes of a call that was cut off: by a killed process, at every step of the recovery
//! itself, and with a person at work before and after.

mod guarded;
mod others;

use crate::support;
use journeyman_testkit::rerun_test;

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use journeyman_protocol::{CallId, UnixMillis};
use journeyman_store::Blobs;
use journeyman_workspace::failpoint::TransactionStep as FailStep;
use journeyman_workspace::failpoint::{Failpoint, Fault};
use journeyman_workspace::{
    CheckpointId, GuardRules, GuardedState, Limits, Options, RecoveredCall, TreeSnapshot, UndoTarget,
    Workspace, WorkspaceError,
};
use support::{Model, Project, apply, delete, rel, session, set, set_mode, shown, tick, write};

/// Names the directory of a project to the program that is to be killed at work in it.
const VICTIM: &str = "JM_TEST_VICTIM";
/// After how many lines it is to wait for its end, if it is.
const STOP: &str = "JM_TEST_STOP";
/// After so long without a sign of life a command isn't taken to have lived: thirteen periods.
const BEAT: Duration = Duration::from_millis(30);

fn call(name: &str) -> CallId {
    CallId::new(name)
}

fn now() -> UnixMillis {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    UnixMillis(u64::try_from(now.as_millis()).unwrap())
}

fn recover(workspace: &Workspace, checkpoint: CheckpointId) -> RecoveredCall {
    workspace.recovery().recover_call(&checkpoint, &session(1), &call("shell"), now()).unwrap()
}

fn begin(workspace: &Workspace) -> TreeSnapshot {
    workspace.command_observer().begin_call(&session(1), &call("shell")).unwrap()
}

/// `"~a: why; +b: why"`.
fn left(recovered: &RecoveredCall) -> Vec<String> {
    recovered
        .left
        .iter()
        .map(|(change, why)| format!("{}: {why}", shown(std::slice::from_ref(change))))
        .collect()
}

fn paths_left(recovered: &RecoveredCall) -> String {
    recovered.left.iter().map(|(change, _)| shown(std::slice::from_ref(change))).collect::<Vec<_>>().join(" ")
}

fn files() -> Vec<(&'static str, &'static str)> {
    vec![
        ("a", "1"),
        ("b", "2"),
        ("gone", "g"),
        ("old/deep/c", "3"),
        ("old/d", "4"),
        ("early", "e"),
        ("users/own", "u"),
        ("users/gone", "u"),
        (".gitignore", "ignored\n"),
        ("ignored", "i"),
    ]
}

fn project() -> Project {
    let mut project = Project::with(&files());
    symlink("a", project.root().join("link")).unwrap();
    fs::create_dir(project.root().join("empty")).unwrap();
    project.limits.heartbeat = BEAT;
    project
}

type Step = fn(&Path);

/// What the command does, step by step.
const STEPS: [Step; 10] = [
    |root| fs::write(root.join("a"), "by the command").unwrap(),
    |root| set_mode(&root.join("b"), 0o755),
    |root| fs::remove_file(root.join("gone")).unwrap(),
    |root| fs::create_dir_all(root.join("made/deep")).unwrap(),
    |root| fs::write(root.join("made/deep/x"), "new").unwrap(),
    |root| fs::remove_dir_all(root.join("old")).unwrap(),
    |root| fs::write(root.join("old"), "a file where a directory was").unwrap(),
    |root| {
        fs::remove_file(root.join("link")).unwrap();
        symlink("b", root.join("link")).unwrap();
    },
    |root| fs::remove_dir(root.join("empty")).unwrap(),
    |root| fs::write(root.join("a"), "by the command, again").unwrap(),
];

fn work(root: &Path) {
    for step in STEPS {
        step(root);
    }
}

/// Waits until nothing that happens from now on can be the doing of a command that is dead already.
fn outlive(project: &Project) {
    let heartbeats = project.state().join("running");
    let last = fs::read_dir(heartbeats).unwrap().map(|entry| {
        let seen = entry.unwrap().metadata().unwrap();
        i128::from(seen.mtime()) * 1_000_000_000 + i128::from(seen.mtime_nsec())
    });
    let until = last.max().unwrap() + i128::try_from((BEAT * 13).as_nanos()).unwrap();
    loop {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::RealtimeCoarse);
        if i128::from(now.tv_sec) * 1_000_000_000 + i128::from(now.tv_nsec) > until {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The program that is killed; a test without a meaning of its own.
#[test]
fn victim() {
    let Some(dir) = std::env::var_os(VICTIM) else { return };
    let dir = Path::new(&dir);
    let blobs = Arc::new(Blobs::open(&dir.join("blobs"), 1 << 30).unwrap());
    let limits = Limits { heartbeat: BEAT, ..Limits::default() };
    let options = Options { limits, ..Options::new(dir.join("state"), blobs) };
    let workspace = Workspace::open(&dir.join("tree"), options).unwrap();
    let stop: usize = std::env::var(STOP).map_or(usize::MAX, |lines| lines.parse().unwrap());
    let said = AtomicUsize::new(1);
    let say = |what: String| {
        println!("\n#{what}");
        while said.fetch_add(1, Ordering::Relaxed) == stop {
            said.store(stop, Ordering::Relaxed);
            std::thread::park();
        }
    };
    let checkpoint = workspace.checkpoint(&session(1), "before").unwrap();
    say(format!("checkpoint {checkpoint}"));
    let before = begin(&workspace);
    say("begun".to_owned());
    for step in STEPS {
        step(&dir.join("tree"));
        say("step".to_owned());
    }
    workspace.command_observer().end(before, &session(1), Some(&call("shell"))).unwrap();
    say("ended".to_owned());
}

/// When the program is killed.
#[derive(Clone, Copy, PartialEq)]
enum Kill {
    /// At whatever it does after so many lines.
    After(usize),
    /// While it waits after so many lines.
    At(usize),
}

/// Starts the program and kills it; gives its checkpoint.
fn killed(project: &Project, kill: Kill) -> CheckpointId {
    let mut victim = rerun_test!("victim");
    victim.env(VICTIM, project.dir.path()).stdout(Stdio::piped());
    let (Kill::After(lines) | Kill::At(lines)) = kill;
    if kill == Kill::At(lines) {
        victim.env(STOP, lines.to_string());
    }
    let mut child = victim.spawn().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut said = Vec::new();
    while said.len() < lines {
        let mut line = String::new();
        assert!(output.read_line(&mut line).unwrap() > 0, "it ended by itself");
        said.extend(line.strip_prefix('#').map(|line| line.trim_end().to_owned()));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    CheckpointId(said[0].strip_prefix("checkpoint ").unwrap().parse().unwrap())
}

#[test]
fn a_killed_process_leaves_a_command_that_goes_back_whole() {
    let done = {
        let project = project();
        work(&project.root());
        project.tree()
    };
    let mut ends = [0, 0];
    let all = STEPS.len() + 3;
    for kill in (1..=all).flat_map(|lines| [Kill::After(lines), Kill::At(lines)]) {
        let (Kill::After(lines) | Kill::At(lines)) = kill;
        let project = project();
        let before = project.tree();
        let checkpoint = killed(&project, kill);
        let workspace = project.open();
        let calls = workspace.recovery().cut_off_calls(&session(1)).unwrap();
        let recovered = recover(&workspace, checkpoint);
        let happened = !recovered.applied.is_empty();
        ends[usize::from(happened)] += 1;
        assert_eq!(project.tree(), if happened { done.clone() } else { before }, "after {lines} lines");
        assert_eq!(left(&recovered), [""; 0], "after {lines} lines");
        assert!(happened || calls.len() == 1 || recovered == RecoveredCall::default(), "after {lines} lines");
        assert_eq!(recover(&workspace, checkpoint), recovered, "again after {lines} lines");
        workspace.recovery().forget_recovered(&session(1)).unwrap();
        let again = recover(&workspace, checkpoint);
        // When it ran isn't known any more, so it may have changed any ignored file.
        assert_eq!(again.ignored.more, again.ran, "once forgotten, after {lines} lines");
        let again = RecoveredCall { ran: recovered.ran, ignored: recovered.ignored.clone(), ..again };
        assert_eq!(again, recovered, "again after {lines} lines");
        assert_eq!(workspace.recovery().cut_off_calls(&session(1)).unwrap(), []);
        assert_eq!(fs::read_dir(project.state().join("running")).map_or(0, Iterator::count), 0);
    }
    assert!(ends[0] >= all - 1 && ends[1] >= 2, "{ends:?}");
}

#[test]
fn what_a_person_changed_before_and_after_a_crash_stays_and_is_named() {
    for lines in [4, 9, 12] {
        let project = project();
        let workspace = project.open();
        let checkpoint = workspace.checkpoint(&session(1), "before").unwrap();
        project.write("early", "the user's");
        project.write("b", "the user's too");
        let before = project.tree();
        drop(workspace);
        // The program makes a checkpoint of its own, later than ours.
        killed(&project, Kill::At(lines));
        outlive(&project);
        project.write("a", "the user's, after the crash");
        project.write("users/own", "the user's, after the crash");
        fs::remove_file(project.root().join("users/gone")).unwrap();
        project.write("users/new", "the user's, after the crash");
        fs::create_dir(project.root().join("users/room")).unwrap();
        let recovered = recover(&project.open(), checkpoint);
        let mut expected = before;
        let kept = project.tree();
        for path in ["a", "users/own", "users/new", "users/room"] {
            expected.insert(path.into(), kept[path.as_bytes()].clone());
        }
        expected.remove(b"users/gone".as_slice());
        assert_eq!(project.tree(), expected, "after {lines} lines");
        let mut told = left(&recovered);
        told.sort();
        assert_eq!(
            told,
            [
                "+users/new: changed after the command was cut off; kept",
                "-users/gone: gone, and it can't be told whether the command removed it; left so",
                "~a: changed after the command was cut off; kept",
                "~early: it was changed before the command began; kept",
                "~users/own: changed after the command was cut off; kept",
            ],
            "after {lines} lines"
        );
        assert_eq!(project.text("b"), "the user's too");
    }
}

/// A hook that stops at one of the steps; with how many there were.
fn cut_at(step: usize) -> (Failpoint, Arc<AtomicUsize>) {
    let seen = Arc::new(AtomicUsize::new(0));
    let counter = seen.clone();
    let hook = move |_| if counter.fetch_add(1, Ordering::Relaxed) == step { Fault::Cut } else { Fault::Go };
    (Failpoint::new(hook), seen)
}

/// A project in which a command was cut off at its end.
fn cut_off(prepare: impl Fn(&Project, &Workspace)) -> (Project, CheckpointId, Model) {
    let project = project();
    let workspace = project.open();
    let checkpoint = workspace.checkpoint(&session(1), "before").unwrap();
    prepare(&project, &workspace);
    let before = project.tree();
    let snapshot = begin(&workspace);
    work(&project.root());
    drop(snapshot);
    (project, checkpoint, before)
}

#[test]
fn sealing_that_is_itself_cut_off_is_gone_on_with() {
    let prepare = |project: &Project, workspace: &Workspace| {
        apply(workspace, vec![write("a", "an edit"), write("edited", "e")]).unwrap();
        project.write("early", "the user's");
    };
    let (whole, checkpoint, before) = cut_off(prepare);
    let (hook, count) = cut_at(usize::MAX);
    let expected = recover(&whole.open_failing(hook), checkpoint);
    assert_eq!(whole.tree(), before);
    assert_eq!(paths_left(&expected), "~early");
    let steps = count.load(Ordering::Relaxed);
    assert!(steps > 20, "{steps} steps");
    for step in 0..steps {
        let (project, checkpoint, before) = cut_off(prepare);
        let (hook, _) = cut_at(step);
        let cut = project.open_failing(hook).recovery().recover_call(
            &checkpoint,
            &session(1),
            &call("shell"),
            now(),
        );
        assert!(matches!(cut, Err(WorkspaceError::CutOff(_))), "{cut:?}");
        let workspace = project.open();
        let recovered = recover(&workspace, checkpoint);
        assert_eq!(project.tree(), before, "cut at step {step}");
        assert_eq!(recovered.restored, expected.restored, "cut at step {step}");
        assert_eq!(paths_left(&recovered), "~early", "cut at step {step}");
        // The session's own edits go back as if nothing had happened.
        let report = workspace.undo(UndoTarget::LastRun).unwrap();
        assert_eq!((shown(&report.restored), report.conflicts), ("~a -edited".to_owned(), vec![]));
    }
}

/// The command's processes die a moment after the agent.
#[test]
fn what_the_command_does_while_it_is_sealed_goes_back_too() {
    let (project, checkpoint, before) = cut_off(|_, _| {});
    let (root, looks) = (project.root(), AtomicUsize::new(0));
    let hook = move |step| {
        if step == FailStep::Seal && looks.fetch_add(1, Ordering::Relaxed) < 2 {
            fs::write(root.join("late"), "x").unwrap();
            fs::write(root.join(format!("late{}", looks.load(Ordering::Relaxed))), "x").unwrap();
        }
        Fault::Go
    };
    let recovered = recover(&project.open_failing(Failpoint::new(hook)), checkpoint);
    assert_eq!((project.tree(), left(&recovered)), (before, vec![]));
}

#[test]
fn what_a_person_changes_between_two_sealings_stays() {
    let (whole, checkpoint, _) = cut_off(|_, _| {});
    let (hook, count) = cut_at(usize::MAX);
    recover(&whole.open_failing(hook), checkpoint);
    for step in 0..count.load(Ordering::Relaxed) {
        let (project, checkpoint, _) = cut_off(|_, _| {});
        let (hook, _) = cut_at(step);
        project
            .open_failing(hook)
            .recovery()
            .recover_call(&checkpoint, &session(1), &call("shell"), now())
            .unwrap_err();
        let journal = fs::read_to_string(project.state().join("journal/log")).unwrap();
        if !journal.contains("cut_off") {
            outlive(&project);
        }
        drop(project.open());
        project.write("a", "the user's");
        let recovered = recover(&project.open(), checkpoint);
        assert_eq!(project.text("a"), "the user's", "cut at step {step}");
        assert_eq!(paths_left(&recovered), "~a", "cut at step {step}");
        assert!(!project.root().join("made").exists() && project.root().join("old/deep/c").exists());
    }
}

#[test]
fn an_edit_happened_or_it_did_not() {
    let mut ends = [0, 0];
    for step in 0.. {
        let project = project();
        let workspace = project.open();
        let checkpoint = workspace.checkpoint(&session(1), "before").unwrap();
        let before = project.tree();
        let (hook, _) = cut_at(step);
        let changes = vec![write("a", "edited"), write("new/x", "n"), delete("gone")];
        if apply(&project.open_failing(hook), changes).is_ok() {
            break;
        }
        let recovered =
            project.open().recovery().recover_call(&checkpoint, &session(1), &call("call"), now()).unwrap();
        let happened = project.tree() != before;
        ends[usize::from(happened)] += 1;
        let applied = if happened { "~a -gone +new/x" } else { "" };
        assert_eq!(shown(&recovered.applied), applied, "cut at step {step}");
        assert_eq!((recovered.restored, recovered.left), (vec![], vec![]));
        if happened {
            // What a person took back since isn't in place any more.
            let workspace = project.open();
            workspace.undo(UndoTarget::Session(session(1))).unwrap();
            let recovered =
                workspace.recovery().recover_call(&checkpoint, &session(1), &call("call"), now()).unwrap();
            assert_eq!(shown(&recovered.applied), "");
        }
    }
    assert!(ends[0] > 0 && ends[1] > 0, "{ends:?}");
}

#[test]
fn edits_made_while_a_command_ran_are_kept() {
    let project = project();
    let workspace = project.open();
    let checkpoint = workspace.checkpoint(&session(1), "before").unwrap();
    let snapshot = begin(&workspace);
    project.write("made", "by the command");
    project.write("a", "by the command");
    apply(&workspace, vec![write("a", "an edit"), write("b", "an edit")]).unwrap();
    project.write("b", "by the command");
    drop(snapshot);
    let recovered = recover(&workspace, checkpoint);
    assert_eq!((shown(&recovered.restored), recovered.left), ("~b -made".to_owned(), vec![]));
    assert_eq!((project.text("a"), project.text("b")), ("an edit".to_owned(), "an edit".to_owned()));
    // What the command had done to `a` before the edit is known too.
    let report = workspace.undo(UndoTarget::LastRun).unwrap();
    assert_eq!((shown(&report.restored), report.conflicts), ("~a ~b".to_owned(), vec![]));
    assert_eq!((project.text("a"), project.text("b")), ("1".to_owned(), "2".to_owned()));
}

#[test]
fn commands_that_overlapped_are_sealed_oldest_first() {
    let mut project = project();
    project.limits.lock_wait = Duration::ZERO;
    let before = project.tree();
    let workspace = project.open();
    let checkpoint = workspace.checkpoint(&session(1), "before").unwrap();
    let first = workspace.command_observer().begin_call(&session(1), &call("first")).unwrap();
    project.write("a", "by the first");
    let second = workspace.command_observer().begin_call(&session(1), &call("second")).unwrap();
    project.write("a", "by the second");
    project.write("new", "n");
    tick();
    let others = workspace.command_observer().begin_call(&session(2), &call("others")).unwrap();
    drop((first, second));
    let calls = workspace.recovery().cut_off_calls(&session(1)).unwrap();
    assert_eq!(calls, [call("first"), call("second")]);
    for call in calls {
        let recovered = workspace.recovery().recover_call(&checkpoint, &session(1), &call, now()).unwrap();
        assert_eq!(left(&recovered), [""; 0]);
    }
    assert_eq!(project.tree(), before);
    let running =
        workspace.recovery().recover_call(&checkpoint, &session(2), &call("others"), now()).unwrap_err();
    assert!(matches!(running, WorkspaceError::Busy { .. }), "{running}");
    // A program that ends may have started one that still holds its locks.
    project.limits.lock_wait = Duration::from_secs(60);
    let recovered = std::thread::scope(|scope| {
        scope.spawn(move || {
            std::thread::sleep(Duration::from_millis(100));
            drop(others);
        });
        seal_of(&project.open(), checkpoint, 2, "others")
    });
    assert_eq!((recovered.applied, recovered.restored, recovered.left), (vec![], vec![], vec![]));
}

#[test]
fn what_a_person_saved_while_the_command_ran_can_be_had_again_after_the_crash() {
    for is_later in [false, true] {
        let (project, checkpoint, before) = cut_off(|_, _| {});
        // The heartbeat of the dead command covers this: nobody can tell whose it is.
        project.write("users/own", "a person's, while the command ran");
        fs::remove_file(project.root().join("users/gone")).unwrap();
        project.write("users/new", "a person's, while the command ran");
        let found = project.tree();
        let workspace = project.open();
        let recovered = recover(&workspace, checkpoint);
        assert_eq!((project.tree(), left(&recovered)), (before.clone(), vec![]));
        let restored = shown(&recovered.restored);
        assert!(restored.ends_with("+users/gone -users/new ~users/own"), "{restored}");
        let [kept] = recovered.kept[..] else { panic!("{:?}", recovered.kept) };
        // When it ran isn't known any more.
        let again = RecoveredCall { ignored: recovered.ignored.clone(), ..recover(&workspace, checkpoint) };
        assert_eq!(again, recovered, "again");
        if is_later {
            // The session goes on, and other sessions come and go.
            apply(&workspace, vec![write("later", "l"), write("a", "edited")]).unwrap();
            workspace.apply(set(2, vec![write("others", "o")])).unwrap();
            let report = workspace.redo(None).unwrap();
            let stays = ("a", "it was changed after it was put back; kept as it is");
            assert_eq!(report.conflicts, [(rel(stays.0), stays.1.to_owned())]);
            assert_eq!(project.text("users/own"), "a person's, while the command ran");
            assert_eq!((project.text("later"), project.text("a")), ("l".to_owned(), "edited".to_owned()));
            // What was edited since is in the checkpoint still.
            assert_eq!(workspace.undo(UndoTarget::To(kept)).unwrap().conflicts, vec![]);
            assert_eq!(project.tree(), found);
        } else {
            assert_eq!(workspace.redo(None).unwrap().conflicts, vec![]);
            assert_eq!(project.tree(), found);
            // Now it is the session's, as what a command that ended did.
            assert_eq!(workspace.undo(UndoTarget::Session(session(1))).unwrap().conflicts, vec![]);
            assert_eq!(project.tree(), before);
            workspace.undo(UndoTarget::To(kept)).unwrap();
            assert_eq!(project.tree(), found, "back to the checkpoint of it");
        }
    }
}

fn seal_of(workspace: &Workspace, checkpoint: CheckpointId, number: u64, name: &str) -> RecoveredCall {
    workspace.recovery().recover_call(&checkpoint, &session(number), &call(name), now()).unwrap()
}

#[test]
fn what_a_background_command_did_stays_and_is_known() {
    let project = project();
    let workspace = project.open();
    let checkpoint = workspace.checkpoint(&session(1), "before").unwrap();
    let behind = workspace.command_observer().begin_background(&session(1), &call("behind")).unwrap();
    project.write("early", "by the command, or a person");
    project.write("new", "by the command");
    let front = begin(&workspace);
    project.write("a", "by the command in front");
    drop((front, behind));
    let calls = workspace.recovery().cut_off_calls(&session(1)).unwrap();
    assert_eq!(calls, [call("shell"), call("behind")]);
    assert_eq!(shown(&recover(&workspace, checkpoint).restored), "~a");
    let recovered = seal_of(&workspace, checkpoint, 1, "behind");
    assert_eq!(
        (shown(&recovered.applied), recovered.restored, recovered.left),
        ("~early +new".to_owned(), vec![], vec![])
    );
    let report = workspace.undo(UndoTarget::LastRun).unwrap();
    assert_eq!(shown(&report.restored), "-new");
    assert_eq!(report.conflicts[0].1, "changed while a command in the background ran; kept");
    assert_eq!(project.text("a"), "1");
}

#[test]
fn a_call_that_ended_or_never_began_leaves_nothing_to_seal() {
    let project = project();
    let workspace = project.open();
    let checkpoint = workspace.checkpoint(&session(1), "before").unwrap();
    assert_eq!(recover(&workspace, checkpoint), RecoveredCall::default());
    project.write("early", "the user's");
    assert_eq!(recover(&workspace, checkpoint), RecoveredCall::default(), "nothing ran");
    let snapshot = begin(&workspace);
    work(&project.root());
    let changes = workspace.command_observer().end(snapshot, &session(1), Some(&call("shell"))).unwrap();
    let done = project.tree();
    let recovered = recover(&workspace, checkpoint);
    assert_eq!((recovered.applied, recovered.restored, recovered.left), (changes, vec![], vec![]));
    assert_eq!(project.tree(), done);
    // After a restart of the machine a sign of life may be lost: then what differs is named.
    let recovered =
        workspace.recovery().recover_call(&checkpoint, &session(1), &call("other"), UnixMillis(1)).unwrap();
    assert_eq!(
        (recovered.applied.len(), recovered.restored.len(), paths_left(&recovered).as_str()),
        (0, 0, "~early")
    );
}

#[test]
fn ignored_files_that_were_changed_while_it_ran_are_named_and_stay() {
    let project = project();
    let workspace = project.open();
    let checkpoint = workspace.checkpoint(&session(1), "before").unwrap();
    let snapshot = begin(&workspace);
    project.write("ignored", "by the command");
    project.write("a", "by the command");
    drop(snapshot);
    let recovered = recover(&workspace, checkpoint);
    assert!(recovered.ran);
    assert_eq!((recovered.ignored.paths, recovered.ignored.more), (vec![rel("ignored")], false));
    assert_eq!((project.text("ignored").as_str(), project.text("a").as_str()), ("by the command", "1"));
}

/// The sign of life itself; what lies beside it is empty.
fn beat_of(project: &Project) -> PathBuf {
    let mut files = fs::read_dir(project.state().join("running")).unwrap().map(|entry| entry.unwrap().path());
    files.find(|path| fs::metadata(path).unwrap().len() > 0).unwrap()
}

#[test]
fn a_sign_of_life_that_is_torn_or_lost_takes_nothing_back() {
    let (project, checkpoint, _) = cut_off(|_, _| {});
    let done = project.tree();
    let heartbeat = beat_of(&project);
    let whole = fs::read(&heartbeat).unwrap();
    for torn in [&b""[..], &whole[..whole.len() / 2], b"0123456789abcdef {}\n"] {
        fs::write(&heartbeat, torn).unwrap();
        let recovered = recover(&project.open(), checkpoint);
        assert_eq!((recovered, project.tree()), (RecoveredCall::default(), done.clone()));
    }
    fs::write(&heartbeat, &whole).unwrap();
    let recovered = recover(&project.open(), CheckpointId(99_999));
    assert!(!recovered.restored.is_empty(), "the checkpoint is only for what is left");
}

#[test]
fn checks_that_were_cut_off_are_journaled_as_checks() {
    let project = project();
    let workspace = project.open();
    apply(&workspace, vec![write("a", "edited")]).unwrap();
    let snapshot = workspace.command_observer().begin_checks(&session(1)).unwrap();
    project.write("a", "formatted by a test");
    project.write("early", "changed while tests ran");
    project.write("out/snapshot", "made by a test");
    drop(snapshot);
    outlive(&project);
    project.write("out/users", "the user's, after the crash");
    let workspace = project.open();
    assert_eq!(workspace.recovery().cut_off_calls(&session(1)).unwrap(), []);
    let recovered = workspace.recovery().recover_checks(&session(1)).unwrap();
    assert_eq!(shown(&recovered.applied), "~a ~early +out/snapshot");
    assert_eq!(left(&recovered), ["+out/users: changed after the command was cut off; kept"]);
    assert_eq!(workspace.recovery().recover_checks(&session(1)).unwrap(), RecoveredCall::default());
    let report = workspace.undo(UndoTarget::LastRun).unwrap();
    assert_eq!(shown(&report.restored), "~a -out/snapshot");
    assert_eq!(project.text("out/users"), "the user's, after the crash");
}

#[test]
fn a_tree_far_from_its_checkpoint_is_described_anew() {
    let project = project();
    let workspace = project.open();
    let checkpoint = workspace.checkpoint(&session(1), "before").unwrap();
    for n in 0..700 {
        project.write(&format!("many/{n}"), "x");
    }
    let before = project.tree();
    let snapshot = begin(&workspace);
    assert!(fs::metadata(beat_of(&project)).unwrap().len() < 1_000);
    fs::remove_dir_all(project.root().join("many")).unwrap();
    drop(snapshot);
    let recovered = recover(&workspace, checkpoint);
    assert_eq!((recovered.restored.len(), project.tree()), (700, before));
}

#[test]
fn large_files_are_named_and_left() {
    let mut project = project();
    project.limits.kept_file_bytes = 10;
    project.write("large", "12345678901234567890");
    let workspace = project.open();
    let checkpoint = workspace.checkpoint(&session(1), "before").unwrap();
    let snapshot = begin(&workspace);
    project.write("large", "of the same size 123");
    project.write("a", "small");
    drop(snapshot);
    let recovered = recover(&workspace, checkpoint);
    assert_eq!(shown(&recovered.restored), "~a");
    assert_eq!(left(&recovered), ["~large: it was too large for its earlier content to be kept"]);
    assert_eq!(project.text("large"), "of the same size 123");
}
