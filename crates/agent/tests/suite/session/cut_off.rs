//! Replies that end before the model is done: the part that arrived is kept, and the session goes
//! on.

use std::time::Duration;

use journeyman_agent::{CutOffPolicy, Record, RunSettings};
use journeyman_model::{Delta, ModelError, ModelRequest, Wire, request_body};
use journeyman_protocol::{
    Block, CallId, Event, Message, ReminderCategory, Role, RunOutcome, StopReason, Tokens, Usage,
};

use crate::session::support::bench::{Bench, assert_settled, auto};
use crate::session::support::model::{Step, Told, USAGE, fails, piece, says, stalls};

cases![
    a_reply_in_circles_is_ended_and_told_once,
    a_second_reply_in_circles_ends_the_run,
    a_circle_is_forgotten_after_a_better_reply,
    thinking_in_circles_is_ended_too,
    without_the_loop_guard_a_reply_may_repeat_itself,
    what_arrived_before_an_interrupt_is_kept,
    what_arrived_before_the_time_ran_out_is_kept,
    what_arrived_before_an_error_is_kept,
    what_arrived_before_failed_retries_is_kept,
    a_call_that_is_cut_off_is_left_out,
    usage_that_the_provider_reported_is_kept,
    usage_of_attempts_that_broke_is_counted_once,
    a_task_that_died_after_a_cut_off_reply_goes_on,
];

const SENTENCE: &str = "The task is defined to create a task. ";

/// Repeats itself until it is cancelled.
fn circles() -> Step {
    stalls().after((0..200).map(|_| piece(SENTENCE)).collect())
}

/// The ends of the turns, as events tell them: stop, text, usage.
fn turns(bench: &Bench) -> Vec<(StopReason, String, Usage)> {
    let turn = |event| match event {
        Event::TurnFinished { stop, text, usage, .. } => Some((stop, text, usage)),
        _ => None,
    };
    bench.log.events().into_iter().filter_map(turn).collect()
}

/// Every protocol can say this request.
fn assert_valid(request: &ModelRequest) {
    for wire in Wire::ALL {
        let body = request_body(wire, request);
        assert!(body.is_ok(), "{wire:?}: {body:?}");
    }
    assert_eq!(request.messages.last().unwrap().role, Role::User);
}

async fn a_reply_in_circles_is_ended_and_told_once() {
    let mut bench = Bench::new(&[]);
    let told = Told::new([circles(), says("done")]);
    let report = bench.run(&told, auto()).await;
    assert_eq!((report.outcome, report.text.as_str()), (RunOutcome::Unverified, "done"));
    let kept = SENTENCE.repeat(2);
    let ended = turns(&bench);
    assert_eq!((&ended[0].0, &ended[0].1), (&StopReason::Repetition, &kept));
    assert_eq!(ended[1].0, StopReason::EndTurn);
    assert!(ended[0].2.estimated > Tokens(0), "{ended:?}");
    assert_eq!(report.usage.output, ended[0].2.output + USAGE.output, "what was cut off is counted");
    let request = &told.requests()[1];
    assert_valid(request);
    let [.., said, reminder] = request.messages.as_slice() else { panic!("{request:?}") };
    assert_eq!(*said, Message::assistant_text(kept));
    assert!(reminder.text().contains("without repeating yourself"), "{}", reminder.text());
    let reminded =
        |event: &Event| matches!(event, Event::ReminderSent { category: ReminderCategory::Progress, .. });
    assert_eq!(bench.log.events().iter().filter(|event| reminded(event)).count(), 1);
    assert_settled(&bench);
}

async fn a_second_reply_in_circles_ends_the_run() {
    let mut bench = Bench::new(&[]);
    let told = Told::new([circles(), circles(), says("never said")]);
    let report = bench.run(&told, auto()).await;
    assert_eq!((report.outcome, report.exit_code, report.turns), (RunOutcome::Limit, 5, 2));
    assert!(report.summary.contains("repeated the same text again and again"), "{}", report.summary);
    assert_eq!(told.requests().len(), 2);
    // A person may go on nevertheless.
    let session = bench.resume(&Told::new([says("answered")]), auto(), CutOffPolicy::Continue).await.unwrap();
    session.handle.send("go on").await.unwrap();
    assert_eq!(session.handle.wait_until_finished().await.unwrap().text, "answered");
}

async fn a_circle_is_forgotten_after_a_better_reply() {
    let mut bench = Bench::new(&[]);
    let listing = || {
        let call = crate::session::support::model::call("c1", "list_files", serde_json::json!({}));
        crate::session::support::model::calls_of(vec![call])
    };
    let told = Told::new([circles(), listing(), circles(), says("done")]);
    let report = bench.run(&told, auto()).await;
    assert_eq!((report.outcome, report.text.as_str()), (RunOutcome::Unverified, "done"));
}

async fn thinking_in_circles_is_ended_too() {
    let mut bench = Bench::new(&[]);
    let thought = || Delta::Thinking { block: 0, text: SENTENCE.to_owned() };
    let step = stalls().after((0..200).map(|_| thought()).collect());
    let told = Told::new([step, says("done")]);
    assert_eq!(bench.run(&told, auto()).await.text, "done");
    let thinking = Block::Thinking { text: SENTENCE.repeat(2), signature: None };
    assert_eq!(bench.log.messages()[1].content, [thinking]);
    assert_valid(&told.requests()[1]);
}

async fn without_the_loop_guard_a_reply_may_repeat_itself() {
    let mut bench = Bench::new(&[]);
    let text = SENTENCE.repeat(200);
    let told = Told::new([says(&text).after((0..200).map(|_| piece(SENTENCE)).collect())]);
    let report = bench.run(&told, RunSettings { loop_guard: false, ..auto() }).await;
    assert_eq!((report.turns, report.text.as_str()), (1, text.as_str()));
}

async fn what_arrived_before_an_interrupt_is_kept() {
    let mut bench = Bench::new(&[]);
    let told =
        Told::new([stalls().after(vec![piece("I look at "), piece("the file. It")]), says("answered")]);
    let session = bench.start(&told, auto());
    session.handle.send("do it").await.unwrap();
    told.asked(1).await;
    session.handle.interrupt();
    let report = session.handle.wait_until_finished().await.unwrap();
    assert_eq!((report.outcome, report.text.as_str()), (RunOutcome::Interrupted, "I look at the file. It"));
    assert!(report.usage.estimated == report.usage.input + report.usage.output, "{:?}", report.usage);
    let (stop, text, usage) = turns(&bench).remove(0);
    assert_eq!((stop, text, usage), (StopReason::Cancelled, report.text.clone(), report.usage));
    session.handle.close().await;
    drop(session);
    // Another process goes on with it.
    let session = bench.resume(&told, auto(), CutOffPolicy::Continue).await.unwrap();
    session.handle.send("and now?").await.unwrap();
    assert_eq!(session.handle.wait_until_finished().await.unwrap().text, "answered");
    let request = &told.requests()[1];
    assert_valid(request);
    let said: Vec<String> = request.messages.iter().skip(1).map(Message::text).collect();
    assert_eq!(said[0], "I look at the file. It");
    assert!(said[1].ends_with("and now?"), "{said:?}");
}

async fn what_arrived_before_the_time_ran_out_is_kept() {
    let mut bench = Bench::new(&[]);
    let told = Told::new([stalls().after(vec![piece("I think that")])]);
    let settings = RunSettings { timeout: Duration::from_millis(300), ..auto() };
    let report = bench.run(&told, settings).await;
    assert_eq!((report.outcome, report.text.as_str()), (RunOutcome::Limit, "I think that"));
    assert_eq!(turns(&bench)[0].0, StopReason::Cancelled);
    assert!(report.usage.output > Tokens(0));
}

async fn what_arrived_before_an_error_is_kept() {
    let mut bench = Bench::new(&[]);
    let overloaded = || fails(ModelError::Overloaded { message: "later".to_owned() });
    let told = Told::new([overloaded().after(vec![piece("I was ab"), piece("out to")]), says("answered")]);
    let session = bench.start(&told, auto());
    session.handle.send("do it").await.unwrap();
    let report = session.handle.wait_until_finished().await.unwrap();
    let ended = (report.outcome, report.summary.as_str(), report.text.as_str());
    assert_eq!(ended, (RunOutcome::Error, "the provider is overloaded: later", "I was about to"));
    assert_eq!(turns(&bench)[0].0, StopReason::Error);
    session.handle.send("go on").await.unwrap();
    assert_eq!(session.handle.wait_until_finished().await.unwrap().text, "answered");
    assert_valid(&told.requests()[1]);
}

/// The attempts after the one that broke bring nothing.
async fn what_arrived_before_failed_retries_is_kept() {
    let mut bench = Bench::new(&[]);
    let restart = Delta::Restart { attempt: 2, of: 2, wait_ms: 1, reason: "it broke".to_owned() };
    let fails = fails(ModelError::Overloaded { message: "later".to_owned() });
    let told = Told::new([fails.after(vec![piece("I was here"), restart])]);
    let report = bench.run(&told, auto()).await;
    assert_eq!((report.outcome, report.text.as_str()), (RunOutcome::Error, "I was here"));
}

async fn a_call_that_is_cut_off_is_left_out() {
    let mut bench = Bench::new(&[]);
    let call =
        |block, id: &str| Delta::CallStart { block, id: CallId::new(id), name: "read_file".to_owned() };
    let arguments = |block, text: &str| Delta::CallArguments { block, fragment: text.to_owned() };
    let deltas = vec![
        piece("I read two files."),
        Delta::BlockEnd { block: 0 },
        call(1, "c1"),
        arguments(1, "{\"path\": \"a\"}"),
        Delta::BlockEnd { block: 1 },
        call(2, "c2"),
        arguments(2, "{\"pa"),
    ];
    let broken = ModelError::Stream { message: "it broke".to_owned(), retryable: false };
    let told = Told::new([fails(broken).after(deltas), says("answered")]);
    let session = bench.start(&told, auto());
    session.handle.send("do it").await.unwrap();
    session.handle.wait_until_finished().await.unwrap();
    assert_eq!(*bench.log.messages().last().unwrap(), Message::assistant_text("I read two files."));
    session.handle.send("go on").await.unwrap();
    assert_eq!(session.handle.wait_until_finished().await.unwrap().text, "answered");
    assert_valid(&told.requests()[1]);
}

async fn usage_that_the_provider_reported_is_kept() {
    let mut bench = Bench::new(&[]);
    let reported = Usage { input: Tokens(7), cache_read: Tokens(70), output: Tokens(50), ..Usage::default() };
    let broken = ModelError::Stream { message: "it broke".to_owned(), retryable: false };
    let told = Told::new([fails(broken).after(vec![piece("I see"), Delta::Usage(reported)])]);
    let report = bench.run(&told, auto()).await;
    assert_eq!(report.usage, reported);
}

async fn usage_of_attempts_that_broke_is_counted_once() {
    let mut bench = Bench::new(&[]);
    let usage = |input| Usage { input: Tokens(input), output: Tokens(90), ..Usage::default() };
    let restart = |attempt| Delta::Restart { attempt, of: 5, wait_ms: 0, reason: "it broke".to_owned() };
    let broken =
        vec![piece("I see"), Delta::Usage(usage(100)), restart(2), Delta::Usage(usage(200)), restart(3)];
    let told = Told::new([says("done").after(broken.clone())]);
    let replied = bench.run(&Told::new([says("done")]), auto()).await.usage;
    let mut expected = replied;
    expected += usage(100);
    expected += usage(200);
    assert_eq!(Bench::new(&[]).run(&told, auto()).await.usage, expected);
    let failure = ModelError::Http { status: 500, message: "no".to_owned() };
    let told = Told::new([fails(failure).after(broken)]);
    let mut expected = usage(100);
    expected += usage(200);
    assert_eq!(Bench::new(&[]).run(&told, auto()).await.usage, expected);
}

async fn a_task_that_died_after_a_cut_off_reply_goes_on() {
    let mut bench = Bench::new(&[]);
    let told =
        Told::new(
            [fails(ModelError::Overloaded { message: "later".to_owned() }).after(vec![piece("I see")])],
        );
    bench.run(&told, auto()).await;
    let is_cut_off =
        |record: &Record| matches!(record, Record::Message { stop: Some(StopReason::Error), .. });
    let entries = bench.log.entries();
    let record = |entry| journeyman_agent::record_of(entry).is_some_and(|record| is_cut_off(&record));
    let count = entries.iter().position(record).unwrap() + 1;
    bench.crash_after(count).await;
    let told = Told::new([says("that it works")]);
    let session = bench.resume(&told, auto(), CutOffPolicy::Continue).await.unwrap();
    let report = session.handle.wait_until_finished().await.unwrap();
    assert_eq!(report.text, "that it works");
    assert_valid(&told.requests()[0]);
    assert!(told.requests()[0].messages.last().unwrap().text().contains("cut off"));
}
