//! Commands that may destroy what undoing can't bring back: tried out, asked about with what they
//! would really take, landed or dropped.

use journeyman_agent::{Approver, ChecksSetting, CutOffPolicy, PermissionAnswer, RunSettings};
use journeyman_protocol::{CallId, CallState, Event, Mode, RunOutcome, Verdict};
use serde_json::json;

use crate::session::support::bench::{Bench, Session, assert_settled, confined, in_mode};
use crate::session::support::model::{Told, calls, result, says};

cases![
    the_question_names_what_would_be_lost,
    a_no_drops_it,
    nobody_to_ask_drops_it,
    what_undo_brings_back_is_not_asked_about,
    a_narrower_mode_asks_about_what_it_found,
    what_may_not_come_out_is_not_asked_about,
    the_user_changes_a_file_while_they_think,
    a_crash_before_the_answer_asks_again,
    a_crash_in_the_middle_leaves_nothing,
    an_interrupt_drops_it,
    a_command_that_names_an_ignored_file,
    where_no_layer_can_be_mounted_it_asks_before,
    a_build_of_ten_thousand_files,
    files_with_names_outside_of_the_project_are_worked_on_in_a_layer,
];

const FILES: &[(&str, &str)] = &[
    (".gitignore", "target/\n.env\n"),
    (".env", "KEY=1\n"),
    ("a.txt", "a\n"),
    ("b.txt", "b\n"),
    ("target/built", "built\n"),
];

/// A project whose build is more than the journal takes.
fn built(files: usize) -> Bench {
    let bench = Bench::new(FILES);
    for number in 0..files {
        let dir = bench.root.join(format!("target/d{}", number / 100));
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join(format!("f{number}")), "12345678").unwrap();
    }
    bench
}

fn settings(mode: Mode, approver: Approver) -> RunSettings {
    RunSettings { approver, checks: ChecksSetting::Off, ..in_mode(mode) }
}

fn told(command: &str) -> std::sync::Arc<Told> {
    Told::new([calls([("it", "run_command", json!({ "command": command }))]), says("done")])
}

fn it() -> CallId {
    CallId::new("it")
}

async fn asked(session: &mut Session) -> (Verdict, Option<String>) {
    let (verdict, rule, _) = asked_with_diff(session).await;
    (verdict, rule)
}

async fn asked_with_diff(session: &mut Session) -> (Verdict, Option<String>, Option<String>) {
    match session.until(|event| matches!(event, Event::PermissionRequired { .. } | Event::Done { .. })).await
    {
        Event::PermissionRequired { verdict, rule, diff, .. } => (verdict, rule, diff),
        other => panic!("it didn't ask: {other:?}"),
    }
}

/// What lies in the directory of copies and layers.
fn layers(bench: &Bench) -> usize {
    std::fs::read_dir(bench.outside.join("state/work")).map_or(0, Iterator::count)
}

fn whole(bench: &Bench) -> [Option<String>; 4] {
    [".env", "a.txt", "b.txt", "target/built"].map(|name| bench.file(name))
}

const COMMAND: &str = "rm -rf .env target && echo more >> a.txt && echo said";

async fn files_with_names_outside_of_the_project_are_worked_on_in_a_layer() {
    if !confined().await {
        return;
    }
    let files = [(".gitignore", "node_modules\n"), ("a.txt", "a\n"), ("node_modules/x/package.json", "{}")];
    let commands = [
        ("echo new > node_modules/x/index.js", Some("new\n")),
        ("f=$(ls -d node*)/x/index.js; echo new > made; echo new > $f", None),
    ];
    for (command, written) in commands {
        let mut bench = Bench::new(&files);
        let store = bench.outside.join("store");
        std::fs::write(&store, "old").unwrap();
        std::fs::hard_link(&store, bench.root.join("node_modules/x/index.js")).unwrap();
        let told = told(command);
        bench.run(&told, settings(Mode::Auto, Approver::Nobody)).await;
        assert_eq!(std::fs::read_to_string(&store).unwrap(), "old", "{command}");
        let expected = written.unwrap_or("old").to_owned();
        assert_eq!(bench.file("node_modules/x/index.js"), Some(expected), "{command}");
        if written.is_none() {
            let said = result(&told.requests()[1], "it");
            assert!(said.contains("its files are hard links to files outside of the project"), "{said}");
            assert_eq!(bench.file("made").as_deref(), Some("new\n"));
        }
    }
    // A file that checkpoints cover is copied before it is written, by any command.
    let mut bench = Bench::new(&files);
    std::fs::hard_link(bench.root.join("a.txt"), bench.outside.join("other")).unwrap();
    bench.run(&told("for f in a*.txt; do echo new > $f; done"), settings(Mode::Auto, Approver::Nobody)).await;
    assert_eq!(std::fs::read_to_string(bench.outside.join("other")).unwrap(), "a\n");
    assert_eq!(bench.file("a.txt").as_deref(), Some("new\n"));
}

async fn the_question_names_what_would_be_lost() {
    if !confined().await {
        return;
    }
    let mut bench = built(1_200);
    let before = whole(&bench);
    let told = told(COMMAND);
    let mut session = bench.start(&told, settings(Mode::Auto, Approver::Handle));
    session.handle.send("do it").await.unwrap();
    let (verdict, rule, diff) = asked_with_diff(&mut session).await;
    assert_eq!(
        verdict.destroys.unwrap(),
        "removes 1,201 files that undo can't bring back: target/ (1,201 files, 9.6 KB); and 1 file, which undo brings \
         back: .env (6 B)"
    );
    assert!(
        verdict.reason.contains("nothing of it is in place yet. It would change a.txt."),
        "{}",
        verdict.reason
    );
    assert_eq!(rule, None, "`always` would not ask again");
    assert_eq!(whole(&bench), before, "nothing is done before the answer");
    assert!(diff.unwrap().contains("+more"), "the diff is shown");
    assert!(session.handle.decide(&it(), PermissionAnswer::allow()));
    let report = session.done().await;
    assert_eq!(whole(&bench), [None, Some("a\nmore\n".into()), Some("b\n".into()), None]);
    assert!(!bench.root.join("target").exists());
    let said = result(&told.requests()[1], "it");
    assert!(
        said.contains("said") && said.contains("[landed after approval: it removes 1,201 files"),
        "{said}"
    );
    let mut changed: Vec<String> = report.changes.iter().map(|change| change.path.to_string()).collect();
    changed.sort();
    assert_eq!(changed, ["a.txt"], "what a checkpoint has");
    use CallState::{ApprovalRequired, Approved, Completed, Executing, Pending};
    let states = [Pending, Approved, Executing, ApprovalRequired, Approved, Executing, Completed];
    assert_eq!(bench.log.states("it"), states);
    assert_eq!(layers(&bench), 0);
    bench.undo().unwrap();
    assert_eq!(whole(&bench), [before[0].clone(), before[1].clone(), before[2].clone(), None]);
}

async fn a_no_drops_it() {
    if !confined().await {
        return;
    }
    let mut bench = built(1_200);
    let before = whole(&bench);
    let told = told(COMMAND);
    let mut session = bench.start(&told, settings(Mode::Auto, Approver::Handle));
    session.handle.send("do it").await.unwrap();
    asked(&mut session).await;
    assert!(session.handle.decide(&it(), PermissionAnswer::Deny { note: Some("keep my key".to_owned()) }));
    session.done().await;
    assert_eq!(whole(&bench), before);
    let said = result(&told.requests()[1], "it");
    assert_eq!(said, "denied by the user: keep my key");
    assert_eq!(bench.log.states("it").last(), Some(&CallState::Denied));
    assert_eq!(layers(&bench), 0);
    assert_settled(&bench);
}

async fn nobody_to_ask_drops_it() {
    if !confined().await {
        return;
    }
    let mut bench = built(1_200);
    let before = whole(&bench);
    let told = told(COMMAND);
    let report = bench.run(&told, settings(Mode::Auto, Approver::Nobody)).await;
    assert_eq!(whole(&bench), before);
    assert_eq!(report.outcome, RunOutcome::PermissionNeeded);
    let said = result(&told.requests()[1], "it");
    assert!(said.contains("nobody can be asked here") && said.contains("1,201 files"), "{said}");
    assert_eq!(layers(&bench), 0);
}

async fn what_undo_brings_back_is_not_asked_about() {
    if !confined().await {
        return;
    }
    let mut bench = Bench::new(FILES);
    let before = whole(&bench);
    let told = told(COMMAND);
    bench.run(&told, settings(Mode::Auto, Approver::Nobody)).await;
    assert_eq!(whole(&bench), [None, Some("a\nmore\n".into()), Some("b\n".into()), None]);
    let said = result(&told.requests()[1], "it");
    assert!(said.contains("said") && !said.contains("landed"), "{said}");
    assert_eq!(layers(&bench), 0);
    bench.undo().unwrap();
    assert_eq!(whole(&bench), before);
}

async fn a_narrower_mode_asks_about_what_it_found() {
    if !confined().await {
        return;
    }
    for mode in [Mode::Edit, Mode::Ask] {
        let mut bench = Bench::new(FILES);
        let told = told(COMMAND);
        let mut session = bench.start(&told, settings(mode, Approver::Handle));
        session.handle.send("do it").await.unwrap();
        let (verdict, rule) = asked(&mut session).await;
        assert_eq!(verdict.destroys, None, "{mode}");
        assert!(verdict.reason.contains("It would delete 2 ignored files: "), "{}", verdict.reason);
        assert!(rule.is_some(), "{mode}");
        assert!(session.handle.decide(&it(), PermissionAnswer::allow()));
        session.done().await;
        assert_eq!(bench.file(".env"), None, "{mode}");
        let mut bench = Bench::new(FILES);
        bench.run(&told_again(), settings(mode, Approver::Nobody)).await;
        assert!(!bench.log.states("it").contains(&CallState::Executing), "{mode}: there is nobody to ask");
    }
}

fn told_again() -> std::sync::Arc<Told> {
    told(COMMAND)
}

async fn what_may_not_come_out_is_not_asked_about() {
    if !confined().await {
        return;
    }
    let mut bench = built(1_200);
    let before = whole(&bench);
    let command =
        "rm -rf .env target; git init -q sub; mkdir target; e=rc; echo x > target/.env$e; ln -s ../up out";
    let told = told(command);
    let report = bench.run(&told, settings(Mode::Auto, Approver::Nobody)).await;
    assert_eq!(whole(&bench), before);
    let said = result(&told.requests()[1], "it");
    assert!(said.contains("nothing of what it did was landed"), "{said}");
    for path in ["target/.envrc was made and moved to", "out: it is a link that leads out"] {
        assert!(said.contains(path), "{path}: {said}");
    }
    assert!(report.changes.is_empty());
    assert_eq!((bench.file("sub/.git/HEAD"), layers(&bench)), (None, 0));
}

async fn the_user_changes_a_file_while_they_think() {
    if !confined().await {
        return;
    }
    let mut bench = built(1_200);
    let told = told(COMMAND);
    let mut session = bench.start(&told, settings(Mode::Auto, Approver::Handle));
    session.handle.send("do it").await.unwrap();
    asked(&mut session).await;
    std::fs::write(bench.root.join("a.txt"), "mine\n").unwrap();
    let before = whole(&bench);
    assert!(session.handle.decide(&it(), PermissionAnswer::allow()));
    session.done().await;
    assert_eq!(whole(&bench), before);
    let said = result(&told.requests()[1], "it");
    assert!(
        said.contains("nothing of what it did was landed: a.txt: ") && said.contains("Look at the files"),
        "{said}"
    );
    assert_eq!(bench.log.states("it").last(), Some(&CallState::Failed));
}

async fn a_crash_before_the_answer_asks_again() {
    if !confined().await {
        return;
    }
    let mut bench = built(1_200);
    let before = whole(&bench);
    let first = told(COMMAND);
    let mut session = bench.start(&first, settings(Mode::Auto, Approver::Handle));
    session.handle.send("do it").await.unwrap();
    asked(&mut session).await;
    bench.crash().await;
    session.handle.close().await;
    assert_eq!(whole(&bench), before);
    let again = Told::new([says("done")]);
    let mut session =
        bench.resume(&again, settings(Mode::Auto, Approver::Handle), CutOffPolicy::Continue).await.unwrap();
    let (verdict, _) = asked(&mut session).await;
    assert!(verdict.destroys.unwrap().starts_with("removes 1,201 files"), "it was run again, in a new layer");
    assert_eq!(whole(&bench), before);
    assert!(session.handle.decide(&it(), PermissionAnswer::allow()));
    session.done().await;
    assert_eq!(whole(&bench), [None, Some("a\nmore\n".into()), Some("b\n".into()), None]);
    assert_settled(&bench);
}

async fn a_crash_in_the_middle_leaves_nothing() {
    if !confined().await {
        return;
    }
    let mut bench = Bench::new(FILES);
    let before = whole(&bench);
    let first = told("rm -rf .env target; sleep 60");
    let session = bench.start(&first, settings(Mode::Auto, Approver::Handle));
    session.handle.send("do it").await.unwrap();
    bench.log.executing("it").await;
    bench.crash().await;
    session.handle.close().await;
    let again = Told::new([says("done")]);
    let session =
        bench.resume(&again, settings(Mode::Auto, Approver::Handle), CutOffPolicy::Continue).await.unwrap();
    session.handle.wait_until_finished().await.unwrap();
    let said = result(&again.requests()[0], "it");
    assert!(said.contains("None of its changes are in place, so it is safe to do it again"), "{said}");
    assert_eq!((whole(&bench), layers(&bench)), (before, 0));
}

async fn an_interrupt_drops_it() {
    if !confined().await {
        return;
    }
    let mut bench = built(1_200);
    let before = whole(&bench);
    let told = told(COMMAND);
    let mut session = bench.start(&told, settings(Mode::Auto, Approver::Handle));
    session.handle.send("do it").await.unwrap();
    asked(&mut session).await;
    session.handle.interrupt();
    let report = session.done().await;
    assert_eq!(report.outcome, RunOutcome::Interrupted);
    assert_eq!((whole(&bench), layers(&bench)), (before, 0));
    assert_settled(&bench);
}

async fn a_command_that_names_an_ignored_file() {
    if !confined().await {
        return;
    }
    let large = "x".repeat(17 * 1024 * 1024);
    for (command, asks) in [
        ("echo KEY=2 > .env", false),
        ("echo > large.env", true),
        ("cat < large.env | wc -c | tee count", false),
        ("echo b > b.txt", false),
    ] {
        let mut bench = Bench::new(FILES);
        std::fs::write(bench.root.join(".gitignore"), "target/\n*.env\n.env\n").unwrap();
        std::fs::write(bench.root.join("large.env"), &large).unwrap();
        let told = told(command);
        let mut session = bench.start(&told, settings(Mode::Auto, Approver::Handle));
        session.handle.send("do it").await.unwrap();
        let event = session
            .until(|event| matches!(event, Event::PermissionRequired { .. } | Event::Done { .. }))
            .await;
        assert_eq!(matches!(event, Event::PermissionRequired { .. }), asks, "{command}");
        if let Event::PermissionRequired { verdict, .. } = event {
            let lost = verdict.destroys.unwrap();
            assert_eq!(lost, "replaces 1 file that undo can't bring back: large.env (17 MB)", "{command}");
            assert!(session.handle.decide(&it(), PermissionAnswer::allow()));
            session.done().await;
        }
        let made = ["KEY=2\n", "\n", "17825792\n", "b\n"];
        let names = [".env", "large.env", "count", "b.txt"];
        assert!(
            names.iter().zip(made).any(|(name, text)| bench.file(name).as_deref() == Some(text)),
            "{command}"
        );
        assert_eq!(layers(&bench), 0, "{command}");
    }
}

async fn where_no_layer_can_be_mounted_it_asks_before() {
    if !confined().await {
        return;
    }
    // A layer shows no other file system: with one mounted in the project, none is made.
    let mut bench = built(1_200);
    let Some(_mounted) = Mounted::at(&bench.root.join("target/mounted")) else { return };
    let before = whole(&bench);
    let told = told(COMMAND);
    let mut session = bench.start(&told, settings(Mode::Auto, Approver::Handle));
    session.handle.send("do it").await.unwrap();
    let (verdict, _) = asked(&mut session).await;
    assert!(verdict.reason.contains("it can't be tried out first: "), "{}", verdict.reason);
    assert!(!bench.log.states("it").contains(&CallState::Executing), "it has not run");
    assert!(session.handle.decide(&it(), PermissionAnswer::deny()));
    session.done().await;
    assert_eq!(whole(&bench), before);
}

/// A file system mounted for a test, which takes rights that not everybody has.
struct Mounted(std::path::PathBuf);

impl Mounted {
    fn at(dir: &std::path::Path) -> Option<Self> {
        std::fs::create_dir_all(dir).unwrap();
        let done = std::process::Command::new("mount").args(["-t", "tmpfs", "none"]).arg(dir).status();
        if done.is_ok_and(|done| done.success()) {
            return Some(Self(dir.to_owned()));
        }
        // Not asked for where everything is: continuous integration may run as an ordinary user.
        println!("skipped: only root mounts a file system");
        None
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        std::process::Command::new("umount").arg(&self.0).status().ok();
    }
}

async fn a_build_of_ten_thousand_files() {
    if !confined().await {
        return;
    }
    let mut bench = built(10_000);
    let told = told("rm -rf .env target && mkdir target && echo new > target/built");
    let mut session = bench.start(&told, settings(Mode::Auto, Approver::Handle));
    session.handle.send("do it").await.unwrap();
    let (verdict, _) = asked(&mut session).await;
    let lost = verdict.destroys.unwrap();
    assert!(lost.contains("target/ (10,001 files, 80 KB)"), "{lost}");
    assert!(session.handle.decide(&it(), PermissionAnswer::allow()));
    session.done().await;
    assert_eq!(whole(&bench), [None, Some("a\n".into()), Some("b\n".into()), Some("new\n".into())]);
    assert_eq!(std::fs::read_dir(bench.root.join("target")).unwrap().count(), 1);
}
