//! How an agent ends: by its output, at a limit, or in its last turn.

use std::time::Duration;

use journeyman_agent::agents::{AgentDefinition, AgentLimits};
use journeyman_agent::{CutOffPolicy, Record, record_of};
use journeyman_protocol::{CallState, ErrorSeverity, Event, Mode, RunOutcome, Termination};
use journeyman_tools::{ToolError, ToolOutput};
use serde_json::json;

use super::{ROLE, Report, asked_of_scout, completes, end_of, ending_of, report, scout, told};
use crate::session::support::bench::{Bench, assert_settled, auto};
use crate::session::support::model::{Step, Told, call, calls, calls_of, result, says, stalls};
use crate::session::support::tools::Does;

cases![
    valid_output_reaches_the_goal_without_a_further_request,
    output_that_is_missing_or_wrong_goes_back_until_it_is_valid,
    the_first_output_of_a_turn_wins,
    other_calls_beside_the_completion_get_their_results,
    a_model_that_stops_calling_tools_has_one_last_turn,
    the_last_request_after_the_limit_of_turns_has_every_result,
    a_goal_in_the_last_turn_is_marked_as_recovered,
    time_that_runs_out_inside_a_tool_stops_it_and_leaves_a_last_turn,
    a_last_turn_ends_with_its_grace_period,
    an_interrupt_at_any_point_leaves_no_last_turn,
    an_unknown_tool_in_a_batch_is_refused_and_the_others_run,
    nothing_but_the_completion_runs_in_the_last_turn,
    a_stalled_agent_ends,
    an_agent_that_used_up_its_tokens_ends_without_a_last_turn,
    an_agent_is_resumed_wherever_it_was_cut_off,
];

fn limited(change: impl FnOnce(&mut AgentLimits)) -> AgentDefinition {
    let mut limits = AgentLimits::default();
    change(&mut limits);
    scout().limits(limits)
}

/// Runs the agent as a session of its own.
async fn run(
    bench: &mut Bench,
    agent: &AgentDefinition,
    steps: impl IntoIterator<Item = Step>,
) -> (journeyman_protocol::RunReport, std::sync::Arc<Told>) {
    let told = told([], steps);
    let mut session = bench.start_agent(&told, auto(), agent, json!({ "question": "Where?" })).await;
    let report = session.done().await;
    session.handle.close().await;
    assert_settled(bench);
    (report, told)
}

fn warnings(bench: &Bench) -> Vec<String> {
    let warning = |event: Event| match event {
        Event::Error { severity: ErrorSeverity::Warn, message, .. } => Some(message),
        _ => None,
    };
    bench.log.events().into_iter().filter_map(warning).collect()
}

async fn valid_output_reaches_the_goal_without_a_further_request() {
    let mut bench = Bench::new(&[("a.txt", "a\n")]);
    let look = calls([("c1", "read_file", json!({ "path": "a.txt" }))]);
    let (report, told) = run(&mut bench, &scout(), [look, completes("in a.txt")]).await;
    assert_eq!(ending_of(&report), (Termination::Goal, None));
    assert_eq!(end_of(&report).output, Some(json!({ "findings": "in a.txt" })));
    assert_eq!((report.outcome, report.exit_code), (RunOutcome::Answered, 0));
    assert!(report.text.contains("in a.txt"), "{}", report.text);
    let requests = told.requests();
    assert_eq!(requests.len(), 2);
    let system: String = requests[0].system.iter().map(|part| part.text.as_str()).collect();
    assert!(system.contains(ROLE) && !system.contains("You are Journeyman"), "{system}");
    let names: Vec<&str> = requests[0].tools.iter().map(|tool| tool.name.as_str()).collect();
    assert!(names.contains(&"read_file") && names.contains(&"complete_task"), "{names:?}");
    assert!(!names.contains(&"write_file") && !names.contains(&"run_command"), "{names:?}");
    let typed = scout().output::<Report>("report", "");
    let read = typed.read_output(&report).unwrap().unwrap();
    assert_eq!(read, Report { findings: "in a.txt".to_owned() });
}

async fn output_that_is_missing_or_wrong_goes_back_until_it_is_valid() {
    let mut bench = Bench::new(&[]);
    let steps = [
        calls([("c1", "complete_task", json!({}))]),
        calls([("c2", "complete_task", json!({ "report": { "findings": 7 } }))]),
        calls([("c3", "complete_task", report("now"))]),
    ];
    let (report, told) = run(&mut bench, &scout(), steps).await;
    assert_eq!((ending_of(&report).0, report.turns), (Termination::Goal, 3));
    let last = told.requests().pop().unwrap();
    assert!(result(&last, "c1").contains("`report` is missing"), "{}", result(&last, "c1"));
    assert!(result(&last, "c2").contains("`/findings`"), "{}", result(&last, "c2"));
}

async fn the_first_output_of_a_turn_wins() {
    let mut bench = Bench::new(&[]);
    let twice = calls([
        ("c1", "complete_task", json!({ "report": {} })),
        ("c2", "complete_task", report("first")),
        ("c3", "complete_task", report("second")),
    ]);
    let (ended, told) = run(&mut bench, &scout(), [twice]).await;
    assert_eq!(end_of(&ended).output, Some(json!({ "findings": "first" })));
    assert_eq!(told.requests().len(), 1);
    let states = ["c1", "c2", "c3"].map(|call| bench.log.states(call).last().copied());
    assert_eq!(states, [CallState::Failed, CallState::Completed, CallState::Failed].map(Some));
    let outputs = bench.log.records().into_iter().filter(|it| matches!(it, Record::Completed { .. })).count();
    assert_eq!(outputs, 1);
}

async fn other_calls_beside_the_completion_get_their_results() {
    let mut bench = Bench::new(&[("a.txt", "a\n")]);
    let both =
        calls([("c1", "complete_task", report("done")), ("c2", "read_file", json!({ "path": "a.txt" }))]);
    let (ended, _) = run(&mut bench, &scout(), [both]).await;
    assert_eq!(ending_of(&ended).0, Termination::Goal);
    assert_eq!(bench.log.states("c2").last(), Some(&CallState::Completed));
}

async fn a_model_that_stops_calling_tools_has_one_last_turn() {
    let mut bench = Bench::new(&[]);
    let (silent, told) = run(&mut bench, &scout(), [says("I think so."), says("Really.")]).await;
    assert_eq!(ending_of(&silent), (Termination::NoCompleteTaskCall, None));
    let why = "the model stopped without handing in a result (it did not call `complete_task`)";
    assert_eq!(silent.summary, why);
    assert_eq!(told.requests().len(), 2, "one recovery request");
    let last_turn = format!("{why}; the agent has one last turn to hand in its result");
    assert_eq!(warnings(&bench), [&last_turn, "the last turn brought no result either"]);
    let mut bench = Bench::new(&[]);
    let (saved, _) = run(&mut bench, &scout(), [says("I think so."), completes("so")]).await;
    assert_eq!(ending_of(&saved), (Termination::Goal, Some(Termination::NoCompleteTaskCall)));
}

async fn the_last_request_after_the_limit_of_turns_has_every_result() {
    let mut bench = Bench::new(&[("a.txt", "one\n")]);
    let look = |id| calls([(id, "read_file", json!({ "path": "a.txt" }))]);
    let agent = limited(|limits| limits.turns = 2);
    let (ended, told) = run(&mut bench, &agent, [look("c1"), look("c2"), says("no")]).await;
    assert_eq!(ending_of(&ended), (Termination::MaxTurns, None));
    assert!(ended.summary.contains("(max_turns of the agent `scout`)"), "{}", ended.summary);
    let requests = told.requests();
    assert_eq!(requests.len(), 3);
    assert!(result(&requests[2], "c2").contains("one"), "the last turn's results are there");
    let offered: Vec<&str> = requests[2].tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(offered, ["complete_task"]);
    let last = requests[2].messages.last().unwrap().text();
    assert!(last.contains("You have used up your turns.") && last.contains("complete_task"), "{last}");
}

async fn a_goal_in_the_last_turn_is_marked_as_recovered() {
    let mut bench = Bench::new(&[("a.txt", "one\n")]);
    let look = calls([("c1", "read_file", json!({ "path": "a.txt" }))]);
    let agent = limited(|limits| limits.turns = 1);
    let (ended, _) = run(&mut bench, &agent, [look, completes("as far as I got")]).await;
    assert_eq!(ending_of(&ended), (Termination::Goal, Some(Termination::MaxTurns)));
}

/// A tool that ends only when it is cancelled.
fn waits() -> Does {
    Does::reading("wait", |context, _| async move {
        context.cancel.cancelled().await;
        Err::<ToolOutput, _>(ToolError::Cancelled)
    })
}

async fn time_that_runs_out_inside_a_tool_stops_it_and_leaves_a_last_turn() {
    let mut bench = Bench::new(&[]).with_tool(waits());
    let agent = limited(|limits| limits.time = Duration::from_millis(300));
    let steps = [calls([("c1", "wait", json!({}))]), completes("interrupted")];
    let (ended, told) = run(&mut bench, &agent, steps).await;
    assert_eq!(ending_of(&ended), (Termination::Goal, Some(Termination::Timeout)));
    assert_eq!(bench.log.states("c1").last(), Some(&CallState::Interrupted));
    assert!(result(&told.requests()[1], "c1").contains("interrupted"));
}

async fn a_last_turn_ends_with_its_grace_period() {
    let mut bench = Bench::new(&[]).with_tool(waits());
    let agent = limited(|limits| {
        limits.time = Duration::from_millis(100);
        limits.grace = Duration::from_millis(100);
    });
    let (ended, _) = run(&mut bench, &agent, [calls([("c1", "wait", json!({}))]), stalls()]).await;
    assert_eq!(ending_of(&ended), (Termination::Timeout, None));
    assert!(ended.summary.starts_with("the agent timed out after "), "{}", ended.summary);
}

async fn an_interrupt_at_any_point_leaves_no_last_turn() {
    // While the model is asked, while a tool runs, and in the last turn.
    let points: [(Vec<Step>, usize); 3] = [
        (vec![stalls()], 1),
        (vec![calls([("c1", "wait", json!({}))])], 1),
        (vec![says("no call"), stalls()], 2),
    ];
    for (steps, asked) in points {
        let mut bench = Bench::new(&[]).with_tool(waits());
        let told = told([], steps);
        let mut session = bench.start_agent(&told, auto(), &scout(), json!({ "question": "Where?" })).await;
        told.asked(asked).await;
        session.handle.interrupt();
        let ended = session.done().await;
        assert_eq!(ending_of(&ended), (Termination::Aborted, None));
        assert_eq!((ended.outcome, told.requests().len()), (RunOutcome::Interrupted, asked));
        session.handle.close().await;
        assert_settled(&bench);
    }
}

async fn an_unknown_tool_in_a_batch_is_refused_and_the_others_run() {
    let mut bench = Bench::new(&[("a.txt", "one\n")]);
    let batch = calls([
        ("c1", "read_file", json!({ "path": "a.txt" })),
        ("c2", "write_file", json!({ "path": "a.txt", "content": "two\n" })),
        ("c3", "list_files", json!({})),
    ]);
    let (ended, told) = run(&mut bench, &scout(), [batch, completes("x")]).await;
    assert_eq!(ending_of(&ended).0, Termination::Goal);
    let second = &told.requests()[1];
    let order: Vec<String> =
        second.messages.iter().flat_map(|it| &it.content).filter_map(result_id).collect();
    assert_eq!(order, ["c1", "c2", "c3"]);
    let refused = result(second, "c2");
    assert!(refused.contains("the agent `scout` has no tool `write_file`"), "{refused}");
    assert_eq!(bench.file("a.txt").as_deref(), Some("one\n"));
    let decided =
        |event: &Event| matches!(event, Event::PermissionDecided { allowed: false, by, .. } if by == "agent");
    assert_eq!(bench.log.events().iter().filter(|event| decided(event)).count(), 1);
}

fn result_id(block: &journeyman_protocol::Block) -> Option<String> {
    match block {
        journeyman_protocol::Block::ToolResult { id, .. } => Some(id.to_string()),
        _ => None,
    }
}

async fn nothing_but_the_completion_runs_in_the_last_turn() {
    let mut bench = Bench::new(&[("a.txt", "one\n")]);
    let last =
        calls([("c1", "read_file", json!({ "path": "a.txt" })), ("c2", "complete_task", report("late"))]);
    let (ended, _) = run(&mut bench, &scout(), [says("no call"), last]).await;
    assert_eq!(ending_of(&ended), (Termination::Goal, Some(Termination::NoCompleteTaskCall)));
    assert_eq!(bench.log.states("c1").last(), Some(&CallState::Denied));
}

async fn a_stalled_agent_ends() {
    let mut bench = Bench::new(&[]);
    let steps = (0..40).map(|number| {
        calls_of(vec![call(&format!("c{number}"), "read_file", json!({ "path": "missing.txt" }))])
    });
    let agent = limited(|limits| limits.turns = 40);
    let (ended, told) = run(&mut bench, &agent, steps).await;
    assert_eq!(ending_of(&ended).0, Termination::Error, "{}", ended.summary);
    assert!(told.requests().len() < 20, "{}", told.requests().len());
    let reminded = |event: &Event| matches!(event, Event::ReminderSent { .. });
    assert!(bench.log.events().iter().any(reminded), "it is warned first");
    assert_ne!(ended.exit_code, 0);
}

async fn an_agent_that_used_up_its_tokens_ends_without_a_last_turn() {
    let mut bench = Bench::new(&[("a.txt", "one\n")]);
    let look = calls([("c1", "read_file", json!({ "path": "a.txt" }))]);
    let agent = limited(|limits| limits.tokens = Some(100));
    let (ended, told) = run(&mut bench, &agent, [look]).await;
    assert_eq!((ending_of(&ended).0, told.requests().len()), (Termination::Error, 1));
    assert!(ended.summary.contains("its 100 tokens"), "{}", ended.summary);
}

/// What the agent would say next, after so many replies.
fn next(replies: usize) -> Step {
    match replies {
        0 => calls([("c1", "read_file", json!({ "path": "a.txt" }))]),
        1 => says("no call"),
        _ => completes("late"),
    }
}

async fn an_agent_is_resumed_wherever_it_was_cut_off() {
    let by_replies = || {
        Told::by(|request| {
            let spoken = |message: &&journeyman_protocol::Message| {
                message.role == journeyman_protocol::Role::Assistant
            };
            next(request.messages.iter().filter(spoken).count())
        })
    };
    let mut bench = Bench::new(&[("a.txt", "one\n")]);
    let first = by_replies();
    let mut session = bench.start_agent(&first, auto(), &scout(), json!({ "question": "Where?" })).await;
    session.done().await;
    session.handle.close().await;
    let all = bench.log.entries().len();
    // The first append has the role and the message.
    let begun = bench.log.records().iter().position(|it| matches!(it, Record::Queued(_))).unwrap() + 1;
    for count in begun..all {
        // A call's end and its result are never written apart.
        if matches!(bench.log.entries().get(count).and_then(record_of), Some(Record::Result { .. })) {
            continue;
        }
        let mut bench = Bench::new(&[("a.txt", "one\n")]);
        let told = by_replies();
        let mut session = bench.start_agent(&told, auto(), &scout(), json!({ "question": "Where?" })).await;
        session.done().await;
        session.handle.close().await;
        bench.crash_after(count).await;
        if bench.state().await.outcome.is_some() {
            continue;
        }
        let again = by_replies();
        let session = bench.resume(&again, auto(), CutOffPolicy::Continue).await.unwrap();
        let ended = session.handle.wait_until_finished().await.unwrap();
        assert_eq!(ending_of(&ended).0, Termination::Goal, "cut off after {count} entries");
        assert_eq!(bench.state().await.role.unwrap().mode, Mode::Plan);
        for request in asked_of_scout(&again) {
            assert!(!request.tools.iter().any(|tool| tool.name == "write_file"), "{count}");
        }
    }
}
