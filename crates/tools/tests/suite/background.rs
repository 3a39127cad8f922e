//! Commands in the background: their output, their end, and what they change.

use crate::bench;

use std::sync::Arc;

use bench::{Bench, text};
use journeyman_protocol::{CallId, FileChangeKind};
use journeyman_sandbox::Outcome;
use journeyman_testkit::wait_until;
use journeyman_tools::{BackgroundCommands, BackgroundExit, MAX_BACKGROUND_COMMANDS, ToolOutput};
use journeyman_workspace::{Change, ChangeSet, ExpectedState, UndoTarget};
use serde_json::{Value, json};
use tokio::sync::mpsc;

/// A bench in one runtime, as a session is, with what its background says of exits.
struct Session {
    bench: Bench,
    exits: mpsc::UnboundedReceiver<BackgroundExit>,
}

impl Session {
    fn new(files: &[(&str, &[u8])]) -> Self {
        let mut bench = Bench::new(files);
        let (sender, exits) = mpsc::unbounded_channel();
        bench.context.background =
            Arc::new(BackgroundCommands::new(move |exit| sender.send(exit).unwrap_or(())));
        Self { bench, exits }
    }

    async fn call(&self, tool: &str, input: Value) -> ToolOutput {
        let tool = self.bench.tools.get(tool).unwrap();
        match tool.call(&self.bench.context, input).await {
            Ok(output) => output,
            Err(error) => ToolOutput::text(format!("error: {error}")),
        }
    }

    async fn say(&self, tool: &str, input: Value) -> String {
        text(&self.call(tool, input).await)
    }

    /// Starts a command under a call of its own.
    async fn start(&mut self, command: &str) -> String {
        let number = self.bench.context.background.list().len() + 1;
        self.bench.context.call = CallId::new(format!("start_{number}"));
        let said = self.say("run_command", json!({"command": command, "background": true})).await;
        self.bench.context.call = CallId::new("later");
        said
    }

    async fn output(&self, id: &str) -> String {
        self.say("command_output", json!({ "id": id, "wait_s": 60 })).await
    }

    /// Lets a command that reads this pipe go on.
    async fn write(&self, path: &str, line: &str) {
        let path = self.bench.root.join(path);
        let line = format!("{line}\n");
        tokio::task::spawn_blocking(move || std::fs::write(path, line)).await.unwrap().unwrap();
    }

    fn pipe(&self, path: &str) {
        let path = self.bench.root.join(path);
        let made = std::process::Command::new("mkfifo").arg(path).status().unwrap();
        assert!(made.success());
    }

    fn journal(&self) -> String {
        std::fs::read_to_string(self.bench.outside.join("state/journal/log")).unwrap()
    }
}

fn run(work: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work);
}

/// Returns true if a process is there and no zombie.
fn lives(pid: &str) -> bool {
    std::fs::read_to_string(format!("/proc/{}/stat", pid.trim()))
        .is_ok_and(|stat| !stat.rsplit(") ").next().unwrap().starts_with('Z'))
}

#[test]
fn output_is_read_as_it_comes_and_the_exit_is_told() {
    run(async {
        let mut session = Session::new(&[]);
        session.pipe("go");
        assert_eq!(
            session.start("echo one; read x < go; echo got $x; read x < go; exit 3").await,
            "b1 started\n"
        );
        assert_eq!(session.output("b1").await, "b1 runs\none\n");
        assert_eq!(session.say("command_output", json!({"id": "b1"})).await, "b1 runs, no new output\n");
        session.write("go", "two").await;
        assert_eq!(session.output("b1").await, "b1 runs\ngot two\n");
        session.write("go", "end").await;
        let exit = session.exits.recv().await.unwrap();
        let expected = BackgroundExit {
            id: "b1".to_owned(),
            call: CallId::new("start_1"),
            command: "echo one; read x < go; echo got $x; read x < go; exit 3".to_owned(),
            outcome: Outcome::Exited(3),
            tail: String::new(),
            changes: Vec::new(),
            problem: None,
        };
        assert_eq!(exit, expected);
        let last = session.call("command_output", json!({"id": "b1"})).await;
        assert_eq!((text(&last).as_str(), last.is_error), ("b1 ended: exit code 3, no new output\n", true));
    });
}

#[test]
fn guarded_files_that_a_running_command_made_are_moved_away_at_a_check_and_at_its_end() {
    run(async {
        let mut session = Session::new(&[(".vscode/tasks.json", b"the user's")]);
        session.pipe("go");
        session
            .start("mkdir deep; echo evil > deep/.envrc; echo made; read x < go; echo evil > deep/.envrc")
            .await;
        assert_eq!(session.output("b1").await, "b1 runs\nmade\n");
        let background = Arc::clone(&session.bench.context.background);
        assert_eq!(background.take_violations(), []);
        for part in ["while it runs", "at its end"] {
            background.check_guarded_files().await.unwrap();
            let violations = background.take_violations();
            let told: Vec<_> =
                violations.iter().map(|one| (one.path.to_string(), one.call.clone())).collect();
            assert_eq!(told, [("deep/.envrc".to_owned(), Some(CallId::new("start_1")))], "{part}");
            assert!(!session.bench.root.join("deep/.envrc").exists(), "{part}");
            background.check_guarded_files().await.unwrap();
            assert_eq!(background.take_violations(), [], "{part}");
            if part == "while it runs" {
                session.write("go", "on").await;
                session.exits.recv().await.unwrap();
            }
        }
    });
}

#[test]
fn a_turn_that_is_interrupted_ends_no_background_command() {
    run(async {
        let mut session = Session::new(&[]);
        session.pipe("go");
        session.start("echo begun; read x < go; echo $x").await;
        assert_eq!(session.output("b1").await, "b1 runs\nbegun\n");
        let turn = session.bench.context.cancel.clone();
        turn.cancel();
        assert_eq!(session.output("b1").await, "error: the call was interrupted");
        session.write("go", "end").await;
        let exit = session.exits.recv().await.unwrap();
        assert_eq!((exit.outcome, exit.tail.as_str()), (Outcome::Exited(0), "end\n"));
    });
}

#[test]
fn what_it_changed_is_journaled_at_its_end_for_its_call() {
    run(async {
        let mut session = Session::new(&[("a", b"1\n"), ("b", b"1\n"), ("c", b"1\n")]);
        session.pipe("go");
        session.start("echo 2 > a; echo 2 > b; echo begun; read x < go; echo 3 > c; echo new > made").await;
        session.output("b1").await;
        let workspace = Arc::clone(&session.bench.context.workspace);
        let change = |path: &str, content: &str| Change::Write {
            path: journeyman_protocol::RelPath::parse(path).unwrap(),
            content: content.as_bytes().to_vec(),
            expected: ExpectedState::Anything,
        };
        // The model edits what the command left alone, what it changed, and what it will change.
        let changes = vec![change("edited", "e"), change("b", "edited\n"), change("c", "edited\n")];
        let set = ChangeSet {
            call: Some(CallId::new("edit")),
            session: session.bench.context.session.clone(),
            description: None,
            changes,
        };
        workspace.apply(set).unwrap();
        session.write("go", "on").await;
        let exit = session.exits.recv().await.unwrap();
        let changed: Vec<(String, FileChangeKind)> =
            exit.changes.iter().map(|change| (change.path.to_string(), change.kind)).collect();
        let expected = [
            ("a".to_owned(), FileChangeKind::Modified),
            ("c".to_owned(), FileChangeKind::Modified),
            ("made".to_owned(), FileChangeKind::Added),
        ];
        assert_eq!(changed, expected);
        let said = session.output("b1").await;
        assert_eq!(
            said,
            "b1 ended: exit code 0, no new output\n[files changed: a (modified), c (modified), made (added)]\n"
        );
        let journal = session.journal();
        let found: Vec<&str> =
            journal.lines().filter(|line| line.contains("\"cause\":\"background\"")).collect();
        assert!(
            found.len() == 1 && found[0].contains("start_1") && !found[0].contains("\"edited\""),
            "{journal}"
        );
        let report = workspace.undo(UndoTarget::LastRun).unwrap();
        // A person may have changed what no edit did; all else goes back to what was before the
        // command.
        let kept: Vec<String> = report.conflicts.iter().map(|(path, why)| format!("{path}: {why}")).collect();
        assert_eq!(kept, ["a: changed while a command in the background ran; kept"]);
        let files = ["a", "b", "c"].map(|path| String::from_utf8(session.bench.file(path)).unwrap());
        assert_eq!(files, ["2\n", "1\n", "1\n"]);
        assert!(!session.bench.root.join("made").exists() && !session.bench.root.join("edited").exists());
    });
}

#[test]
fn stopping_kills_the_tree_and_says_what_it_did() {
    run(async {
        let mut session = Session::new(&[("a", b"1\n")]);
        session.start("echo 2 > a; sleep 1000 & echo $!; echo $$; sleep 1000").await;
        let mut pids = String::new();
        while pids.lines().filter(|line| !line.contains("runs")).count() < 2 {
            pids.push_str(&session.output("b1").await);
        }
        let stopped = session.call("stop_command", json!({"id": "b1"})).await;
        assert_eq!(text(&stopped), "b1 ended: stopped, no new output\n[files changed: a (modified)]\n");
        assert_eq!((stopped.changes.len(), stopped.is_error), (1, false));
        for pid in pids.lines().filter(|line| !line.contains("runs")) {
            // A killed process that nobody waits for ends when it is next scheduled.
            wait_until("the end of a killed process", || !lives(pid));
        }
        let again = session.call("stop_command", json!({"id": "b1"})).await;
        assert_eq!((again.changes.len(), text(&again).starts_with("b1 ended: stopped")), (0, true));
        assert!(session.exits.try_recv().is_err(), "who stopped it needs no notice");
        assert!(session.journal().contains("\"cause\":\"background\""));
    });
}

#[test]
fn closing_or_dropping_ends_all_of_them() {
    run(async {
        for drops in [false, true] {
            let mut session = Session::new(&[("a", b"1\n")]);
            session.start("echo 2 > a; echo $$; sleep 1000").await;
            session.start("echo $$; sleep 1000").await;
            let pids = session.output("b1").await + &session.output("b2").await;
            if drops {
                session.bench.context.background = Arc::new(BackgroundCommands::default());
            } else {
                session.bench.context.background.close().await;
                assert!(session.journal().contains("\"cause\":\"background\""));
                let refused = session.start("true").await;
                assert_eq!(refused, "error: the call was interrupted");
            }
            for pid in pids.lines().filter(|line| !line.contains("runs")) {
                while lives(pid) {
                    tokio::task::yield_now().await;
                }
            }
            assert!(session.exits.try_recv().is_err(), "the session knows that it ends");
        }
    });
}

#[test]
fn only_so_many_run_at_once() {
    run(async {
        let mut session = Session::new(&[]);
        for nth in 1..=MAX_BACKGROUND_COMMANDS {
            assert_eq!(session.start("sleep 1000").await, format!("b{nth} started\n"));
        }
        let refused = session.start("true").await;
        assert!(refused.starts_with("error: 8 commands run in the background already (b1, b2"), "{refused}");
        session.say("stop_command", json!({"id": "b3"})).await;
        assert_eq!(session.start("exit 0").await, "b9 started\n");
        let unknown = session.output("b77").await;
        assert!(unknown.starts_with("error: there is no background command `b77` (only b1, "), "{unknown}");
        session.bench.context.background.close().await;
        // A command that never began takes no place.
        session.bench.context.background = Arc::new(BackgroundCommands::default().with_numbers_after(9));
        session.bench.context.needs = journeyman_protocol::SandboxNeeds::ALL;
        assert!(session.start("true").await.starts_with("error: the command did not run"));
        assert_eq!(session.bench.context.background.list(), []);
        assert_eq!(std::fs::read_dir(session.bench.outside.join("state/running")).unwrap().count(), 0);
    });
}

#[test]
fn much_output_is_bounded_and_what_was_dropped_is_said() {
    run(async {
        let mut session = Session::new(&[]);
        session.start("seq 1 200000").await;
        session.exits.recv().await.unwrap();
        let said = session.output("b1").await;
        assert!(said.len() < 30_000, "{}", said.len());
        assert!(
            said.starts_with("b1 ended: exit code 0\n1\n2\n") && said.ends_with("\n199999\n200000\n"),
            "{said}"
        );
        let note = said.lines().find(|line| line.contains("bytes left out")).unwrap();
        let dropped: usize = note.split(' ').nth(1).unwrap().parse().unwrap();
        let shown = said.len() - note.len() - 1 - "b1 ended: exit code 0\n".len();
        // The line's end before the note may be added.
        assert!((1_288_894..=1_288_896).contains(&(dropped + shown)), "{dropped} and {shown}");
    });
}

#[test]
fn a_repository_that_it_plants_is_moved_away() {
    run(async {
        let mut session = Session::new(&[("sub/a", b"1\n")]);
        session.start("mkdir -p sub/.git; echo x > .envrc").await;
        let exit = session.exits.recv().await.unwrap();
        let problem = exit.problem.unwrap();
        assert!(problem.contains("error: the repository sub/.git was made and moved to "), "{problem}");
        assert!(problem.contains("error: .envrc was made and moved to "), "{problem}");
        assert!(!session.bench.root.join("sub/.git").exists() && !session.bench.root.join(".envrc").exists());
        let violations = session.bench.context.background.take_violations();
        assert!(violations.len() == 2 && violations.iter().all(|one| one.call.is_some()), "{violations:?}");
        let read = session.call("command_output", json!({"id": "b1"})).await;
        assert!(read.is_error && text(&read).ends_with(&problem));
    });
}

#[test]
fn a_session_that_is_dropped_with_its_runtime_leaves_a_call_to_seal() {
    let mut session = Session::new(&[("a", b"1\n")]);
    let workspace = Arc::clone(&session.bench.context.workspace);
    let id = session.bench.context.session.clone();
    let checkpoint = workspace.checkpoint(&id, "before").unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        session.start("echo 2 > a; echo begun; sleep 1000").await;
        session.output("b1").await;
    });
    drop(runtime);
    assert_eq!(workspace.recovery().cut_off_calls(&id).unwrap(), [CallId::new("start_1")]);
    let sealed = workspace
        .recovery()
        .recover_call(&checkpoint, &id, &CallId::new("start_1"), journeyman_protocol::UnixMillis(u64::MAX))
        .unwrap();
    // Its changes stay, because a person may have made them, and are recorded.
    assert_eq!((sealed.applied.len(), sealed.restored.len(), sealed.left.len()), (1, 0, 0));
    assert_eq!(session.bench.file("a"), b"2\n");
    assert_eq!(workspace.recovery().cut_off_calls(&id).unwrap(), []);
    assert_eq!(workspace.recovery().unrecorded_calls(&id).unwrap(), [CallId::new("start_1")]);
    workspace.recovery().forget_recovered(&id).unwrap();
    assert_eq!(workspace.recovery().unrecorded_calls(&id).unwrap(), []);
}
