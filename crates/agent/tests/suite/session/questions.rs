//! Questions of the model's: who answers them, and runs that end in one.

use journeyman_agent::{Approver, ChecksSetting, CutOffPolicy, PermissionAnswer, RunSettings};
use journeyman_protocol::{AgentState, CallId, CallState, Event, Mode, RunOutcome};
use serde_json::json;

use crate::session::support::bench::{Bench, assert_settled, in_mode};
use crate::session::support::model::{Step, Told, calls, result, says};

cases![
    a_question_pauses_the_task_and_its_answer_is_the_result,
    a_question_that_a_crash_cut_off_is_asked_again,
    a_person_may_leave_the_decision_to_the_model,
    nobody_to_ask_is_told_and_no_refusal,
    a_run_that_ends_in_a_question_is_not_finished,
];

fn settings(approver: Approver) -> RunSettings {
    RunSettings { approver, checks: ChecksSetting::Off, todos: None, ..in_mode(Mode::Edit) }
}

fn asks() -> Step {
    calls([("c1", "ask_user", json!({ "question": "Which one?", "options": ["the old", "the new"] }))])
}

async fn a_question_pauses_the_task_and_its_answer_is_the_result() {
    let mut bench = Bench::new(&[]);
    let told = Told::new([asks(), says("done")]);
    let mut session = bench.start(&told, settings(Approver::Handle));
    session.handle.send("do it").await.unwrap();
    let event = session.until(|event| matches!(event, Event::PermissionRequired { .. })).await;
    let Event::PermissionRequired { tool, input, rule, .. } = event else { unreachable!() };
    assert_eq!((tool.as_str(), rule), ("ask_user", None));
    assert_eq!(input["options"], json!(["the old", "the new"]));
    assert_eq!(session.handle.status().state, AgentState::Paused);
    let answer = PermissionAnswer::Answer { text: "the new, but keep the old name".to_owned() };
    assert!(session.handle.decide(&CallId::new("c1"), answer));
    session.handle.wait_until_finished().await.unwrap();
    assert_eq!(result(&told.requests()[1], "c1"), "The user answers: the new, but keep the old name");
    let states = bench.log.states("c1");
    assert_eq!(states.last(), Some(&CallState::Completed), "{states:?}");
    assert!(states.contains(&CallState::ApprovalRequired) && !states.contains(&CallState::Executing));
    assert_settled(&bench);
}

async fn a_question_that_a_crash_cut_off_is_asked_again() {
    let mut bench = Bench::new(&[]);
    let told = Told::new([asks(), says("done")]);
    let session = bench.start(&told, settings(Approver::Handle));
    session.handle.send("do it").await.unwrap();
    session.handle.watch_status().wait_for(|status| status.asked.len() == 1).await.unwrap();
    bench.crash().await;
    drop(session);
    let session = bench.resume(&told, settings(Approver::Handle), CutOffPolicy::Continue).await.unwrap();
    session.handle.watch_status().wait_for(|status| status.asked.len() == 1).await.unwrap();
    let answer = PermissionAnswer::Answer { text: "the old".to_owned() };
    assert!(session.handle.decide(&CallId::new("c1"), answer));
    session.handle.wait_until_finished().await.unwrap();
    assert_eq!(result(&told.requests()[1], "c1"), "The user answers: the old");
}

async fn a_person_may_leave_the_decision_to_the_model() {
    let mut bench = Bench::new(&[]);
    let told = Told::new([asks(), says("the old one it is")]);
    let session = bench.start(&told, settings(Approver::Handle));
    session.handle.send("do it").await.unwrap();
    session.handle.watch_status().wait_for(|status| status.asked.len() == 1).await.unwrap();
    assert!(session.handle.decide(&CallId::new("c1"), PermissionAnswer::deny()));
    session.handle.wait_until_finished().await.unwrap();
    assert_eq!(result(&told.requests()[1], "c1"), "the user leaves the decision to you");
}

async fn nobody_to_ask_is_told_and_no_refusal() {
    let mut bench = Bench::new(&[]);
    let write = || calls([("c2", "write_file", json!({ "path": "a", "content": "old\n" }))]);
    let told = Told::new([asks(), write(), says("I took the old one.")]);
    let session = bench.start(&told, settings(Approver::Nobody));
    session.handle.send("do it").await.unwrap();
    let report = session.handle.wait_until_finished().await.unwrap();
    assert!(result(&told.requests()[1], "c1").starts_with("nobody can be asked here"));
    assert_eq!(report.outcome, RunOutcome::Unverified, "{}", report.summary);
    assert!(report.summary.ends_with("; it asks: Which one?"), "{}", report.summary);
    assert_eq!(bench.file("a").as_deref(), Some("old\n"));
}

async fn a_run_that_ends_in_a_question_is_not_finished() {
    // The replies; the outcome and the question that the summary has.
    let cases: [(Vec<Step>, RunOutcome, &str); 4] = [
        (vec![says("I could do either.\n\nWhich one?\n- old\n- new")], RunOutcome::NeedsAnswer, "Which one?"),
        (vec![asks(), says("I can't decide.")], RunOutcome::NeedsAnswer, "Which one?"),
        (vec![says("Nothing has to change.")], RunOutcome::Unverified, ""),
        (
            vec![
                calls([("c2", "write_file", json!({ "path": "a", "content": "x" }))]),
                says("Written. Shall I write b too?"),
            ],
            RunOutcome::Unverified,
            "Shall I write b too?",
        ),
    ];
    for (steps, outcome, question) in cases {
        let mut bench = Bench::new(&[]);
        let session = bench.start(&Told::new(steps), settings(Approver::Nobody));
        session.handle.send("make it blue").await.unwrap();
        let report = session.handle.wait_until_finished().await.unwrap();
        assert_eq!(report.outcome, outcome, "{}", report.summary);
        assert!(report.summary.contains(question), "{}", report.summary);
        assert_eq!(report.exit_code, if outcome == RunOutcome::NeedsAnswer { 10 } else { 4 });
    }
    let mut bench = Bench::new(&[]);
    let session =
        bench.start(&Told::new([says("Because of a. Do you want more?")]), settings(Approver::Nobody));
    session.handle.send("Why does it fail?").await.unwrap();
    let report = session.handle.wait_until_finished().await.unwrap();
    assert_eq!(report.outcome, RunOutcome::Unverified, "a question was answered: {}", report.summary);
}
