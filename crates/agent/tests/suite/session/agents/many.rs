//! Many agents of one session, with faults.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use journeyman_agent::SessionHandle;
use journeyman_agent::agents::{AgentLimits, Agents, MAX_CONCURRENT_AGENTS};
use journeyman_model::ModelError;
use journeyman_protocol::{Event, Message, Role, RunReport, Termination, ToolUse};
use serde_json::json;
use tokio::sync::Notify;

use super::{completes, is_scout, scout};
use crate::session::support::bench::{Bench, assert_settled, auto};
use crate::session::support::model::{Step, Told, call, calls, calls_of, fails, piece, result, says, stalls};
use crate::session::support::processes::eventually;

cases![
    no_more_than_so_many_agents_work_at_once,
    calls_that_wait_for_agents_leave_room_for_others,
    a_hundred_agents_with_faults_answer_every_call_and_leave_no_task
];

/// Calls that give a task each.
fn tasks(ids: impl IntoIterator<Item = usize>) -> Vec<ToolUse> {
    let task = |id: usize| {
        let agent = if id % 7 == 3 { "hasty" } else { "scout" };
        call(&format!("t{id}"), "task", json!({ "agent": agent, "prompt": format!("number {id}") }))
    };
    ids.into_iter().map(task).collect()
}

/// Opens the gate for all that wait, until the session has finished.
pub(super) async fn finish_with_open_gate(session: &SessionHandle, gate: &Notify) -> Arc<RunReport> {
    let opening = async {
        loop {
            gate.notify_waiters();
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        ended = session.wait_until_finished() => ended.unwrap(),
        () = opening => unreachable!("it opens the gate for ever"),
    }
}

async fn no_more_than_so_many_agents_work_at_once() {
    let mut bench = Bench::new(&[]).with_agents(Agents::new(vec![scout()]));
    let gate = Arc::new(Notify::new());
    let (first, opened) = (AtomicUsize::new(0), Arc::clone(&gate));
    let told = Told::by(move |request| match is_scout(request) {
        true => completes("x").when(&opened),
        false if first.fetch_add(1, Ordering::SeqCst) == 0 => {
            calls_of(tasks((0..6).map(|number| number * 7)))
        }
        false => says("done"),
    });
    // More calls at once than agents: only the limit of agents holds them.
    let settings = journeyman_agent::RunSettings { concurrency: 6, ..auto() };
    let session = bench.start(&told, settings);
    session.handle.send("do it").await.unwrap();
    told.asked(1 + MAX_CONCURRENT_AGENTS).await;
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert_eq!(told.requests().len(), 1 + MAX_CONCURRENT_AGENTS);
    assert_eq!(finish_with_open_gate(&session.handle, &gate).await.turns, 2);
    assert_settled(&bench);
}

async fn calls_that_wait_for_agents_leave_room_for_others() {
    let mut bench = Bench::new(&[("a.txt", "a\n")]).with_agents(Agents::new(vec![scout()]));
    let gate = Arc::new(Notify::new());
    let (first, opened) = (AtomicUsize::new(0), Arc::clone(&gate));
    let told = Told::by(move |request| match is_scout(request) {
        true => completes("x").when(&opened),
        false if first.fetch_add(1, Ordering::SeqCst) == 0 => {
            let read = call("r", "read_file", json!({ "path": "a.txt" }));
            calls_of(tasks([0, 7, 14]).into_iter().chain([read]).collect())
        }
        false => says("done"),
    });
    // As many calls at once as there are agents.
    let mut session = bench.start(&told, journeyman_agent::RunSettings { concurrency: 3, ..auto() });
    session.handle.send("do it").await.unwrap();
    told.asked(4).await;
    // The agents wait for the gate, and the read ends all the same.
    let read = |event: &Event| matches!(event, Event::ToolEnd { call, .. } if call.as_str() == "r");
    session.until(read).await;
    assert_eq!(told.requests().len(), 4, "no agent has ended");
    assert_eq!(finish_with_open_gate(&session.handle, &gate).await.turns, 2);
    assert_settled(&bench);
}

/// What the agent with this number says after so many replies: each kind of fault in turn.
fn fault(number: usize, replies: usize) -> Step {
    match (number % 7, replies) {
        (0, _) => completes("good"),
        (1, 0) => calls([("bad", "complete_task", json!({ "report": 7 }))]),
        (2, 0) => fails(ModelError::Script("refused".to_owned())),
        (3, 0) => stalls(),
        (4, _) => says("no call"),
        (5, 0) => calls([("x", "launch", json!({}))]),
        (6, 0) => fails(ModelError::Script("cut".to_owned())).after(vec![piece("half a rep")]),
        _ => completes("late"),
    }
}

async fn a_hundred_agents_with_faults_answer_every_call_and_leave_no_task() {
    const AGENTS: usize = 100;
    const AT_ONCE: usize = 10;
    // Only those whose model never answers have little time.
    let limits = AgentLimits { time: std::time::Duration::from_millis(50), ..AgentLimits::default() };
    let mut hasty = scout().limits(limits);
    hasty.name = "hasty".to_owned();
    let mut bench = Bench::new(&[]).with_agents(Agents::new(vec![scout(), hasty]));
    let told = Told::by(|request| {
        let replies = request.messages.iter().filter(|it| it.role == Role::Assistant).count();
        if !is_scout(request) {
            return match replies * AT_ONCE {
                AGENTS => says("done"),
                begin => calls_of(tasks(begin..begin + AT_ONCE)),
            };
        }
        let is_last = request.tools.len() == 1;
        let first = request.messages.first().map(Message::text).unwrap_or_default();
        let number =
            first.split("number ").nth(1).and_then(|rest| rest.split(|c: char| !c.is_ascii_digit()).next());
        let number = number.and_then(|digits| digits.parse().ok()).expect("its number");
        match is_last && number % 7 == 3 {
            true => completes("in the last turn"),
            false => fault(number, replies),
        }
    });
    let alive = tokio::runtime::Handle::current().metrics();
    let before = alive.num_alive_tasks();
    let ended = bench.run(&told, auto()).await;
    // The handle is gone: so is everything that it started, and nothing holds the model or the log
    // any more.
    eventually("the end of all tasks", || alive.num_alive_tasks() == before).await;
    assert_eq!((Arc::strong_count(&told), Arc::strong_count(&bench.log)), (1, 1));
    assert_eq!(ended.turns as usize, AGENTS / AT_ONCE + 1, "{}", ended.summary);
    assert_settled(&bench);
    let last = told.requests().into_iter().rfind(|request| !is_scout(request)).unwrap();
    let mut counts = [0_usize; 7];
    let events = bench.log.events();
    let ends: Vec<(Termination, Option<Termination>)> = events
        .iter()
        .filter_map(|event| match event {
            Event::AgentFinished { report, .. } => Some((report.termination, report.recovered)),
            _ => None,
        })
        .collect();
    assert_eq!(ends.len(), AGENTS);
    for number in 0..AGENTS {
        let said = result(&last, &format!("t{number}"));
        counts[number % 7] += 1;
        let expected = match number % 7 {
            2 | 6 => "did not complete its task: ERROR",
            4 => "did not complete its task: ERROR_NO_COMPLETE_TASK_CALL",
            3 => "it was interrupted (TIMEOUT)",
            _ => "completed its task:",
        };
        assert!(said.contains(expected), "{number}: {said}");
    }
    let recovered = ends.iter().filter(|(_, recovered)| *recovered == Some(Termination::Timeout)).count();
    assert_eq!(recovered, counts[3]);
    assert_eq!(bench.log.problems(), Vec::<String>::new());
}
