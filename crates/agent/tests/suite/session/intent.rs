//! Intent is durable before effect (invariant 5): whichever write to the log fails, nothing has
//! happened that the log doesn't know of.

use journeyman_agent::{AgentError, ChecksSetting, RunSettings};
use journeyman_protocol::{CallState, Event, RunOutcome};
use serde_json::json;

use crate::session::support::bench::{Bench, assert_settled, auto, confined};
use crate::session::support::log::Failing;
use crate::session::support::model::{Step, Told, calls, says};

cases![whichever_append_fails, a_session_goes_on_after_the_log_recovers];

/// Files that a run leaves, and the call that leaves each; none for the check's.
const EFFECTS: [(&str, Option<&str>); 5] = [
    ("a.txt", Some("write")),
    ("b.txt", Some("run")),
    ("c.txt", Some("write-2")),
    ("d.txt", Some("run-2")),
    ("checked", None),
];

fn steps() -> Vec<Step> {
    let write = |path: &str| json!({ "path": path, "content": "new\n" });
    let run = |path: &str| json!({ "command": format!("echo new > {path}") });
    vec![
        calls([
            ("write", "write_file", write("a.txt")),
            ("read", "list_files", json!({})),
            ("run", "run_command", run("b.txt")),
        ]),
        calls([("write-2", "write_file", write("c.txt")), ("run-2", "run_command", run("d.txt"))]),
        says("written"),
    ]
}

fn settings() -> RunSettings {
    RunSettings { checks: ChecksSetting::Custom(vec!["echo x > checked".to_owned()]), ..auto() }
}

fn assert_intended(bench: &Bench, failing: Failing) {
    let verifying = bench.log.events().iter().any(|event| matches!(event, Event::VerifyStarted { .. }));
    for (file, call) in EFFECTS {
        let intended = match call {
            Some(call) => bench.log.states(call).contains(&CallState::Executing),
            None => verifying,
        };
        assert!(bench.file(file).is_none() || intended, "{failing:?}: {file} is there, its intent is not");
    }
}

async fn whichever_append_fails() {
    if !confined().await {
        return;
    }
    let mut whole = Bench::new(&[]);
    let report = whole.run(&Told::new(steps()), settings()).await;
    assert_eq!(report.outcome, RunOutcome::Verified, "{report:?}");
    assert!(EFFECTS.iter().all(|(file, _)| whole.file(file).is_some()));
    let appends = whole.log.appends();
    assert!(appends > 5, "{appends}");
    for number in 2..=appends {
        for failing in [Failing::Once(number), Failing::From(number)] {
            let mut bench = Bench::failing(&[], failing);
            let report = bench.run(&Told::new(steps()), settings()).await;
            assert_eq!((report.outcome, report.exit_code), (RunOutcome::Error, 1), "{failing:?}");
            assert!(report.summary.contains("the session log could not be written"), "{failing:?}");
            assert_intended(&bench, failing);
        }
    }
    // The message itself: it is not sent, and nothing has happened.
    let mut bench = Bench::failing(&[], Failing::Once(1));
    let told = Told::new(steps());
    let session = bench.start(&told, settings());
    assert!(matches!(session.handle.send("do it").await, Err(AgentError::Store(_))));
    session.handle.send("do it").await.unwrap();
    assert_eq!(session.handle.wait_until_finished().await.unwrap().outcome, RunOutcome::Verified);
    let sent = told.requests()[0].messages.last().unwrap().text();
    assert_eq!(sent.matches("do it").count(), 1, "{sent}");
}

/// After one failed write the same session takes another message: every call got a result, so the
/// model can be asked again.
async fn a_session_goes_on_after_the_log_recovers() {
    if !confined().await {
        return;
    }
    for number in 2..9 {
        let failing = Failing::Once(number);
        let mut bench = Bench::failing(&[], failing);
        let told = Told::new(steps().into_iter().take(2).chain([says("one"), says("two"), says("three")]));
        let session = bench.start(&told, settings());
        session.handle.send("do it").await.unwrap();
        let report = session.handle.wait_until_finished().await.unwrap();
        assert_eq!(report.outcome, RunOutcome::Error, "{failing:?}");
        let files: Vec<bool> = EFFECTS.iter().map(|(file, _)| bench.file(file).is_some()).collect();
        session.handle.send("go on").await.unwrap();
        let report = session.handle.wait_until_finished().await.unwrap();
        assert_ne!(report.outcome, RunOutcome::Error, "{failing:?}: {}", report.summary);
        assert_settled(&bench);
        assert_intended(&bench, failing);
        // What was there is not done again: it was the first task's, and had its result.
        for ((file, _), was_there) in EFFECTS.iter().zip(files) {
            assert!(!was_there || bench.file(file).is_some());
        }
    }
}
