//! Agents in the background: when their results come, and what ends them.

use std::sync::Arc;

use journeyman_agent::agents::{AgentTools, Agents, MAX_CONCURRENT_AGENTS};
use journeyman_agent::hooks::{GateDecision, HooksBuilder};
use journeyman_agent::{CompactionSettings, CutOffPolicy, Record, RunSettings, record_of};
use journeyman_model::{ModelRequest, Price};
use journeyman_protocol::{
    Block, Event, LimitSource, Mode, ModelLimits, RunOutcome, SessionId, Termination, Tokens,
};
use journeyman_store::Entry;
use serde_json::json;
use tokio::sync::Notify;

use super::{completes, is_scout, scout, told};
use crate::session::support::bench::{Bench, assert_settled, auto, confined, id};
use crate::session::support::model::{Step, Told, call, calls, calls_of, result, says, stalls};
use crate::session::support::processes::eventually;

cases![
    a_result_from_the_background_comes_with_a_later_step,
    a_turn_without_a_call_waits_for_the_background,
    a_message_of_a_person_ends_the_wait,
    a_message_that_a_hook_refuses_does_not,
    results_that_come_together_make_one_request,
    a_task_that_can_not_begin_is_refused_at_once,
    no_more_agents_work_in_the_background_than_at_all,
    an_interrupt_stops_the_background,
    the_end_of_the_task_stops_the_background,
    an_agent_that_completes_stops_its_background,
    a_dropped_session_leaves_nothing_in_the_background,
    the_background_counts_to_the_cost_and_the_changes,
    an_edit_over_a_change_from_the_background_is_refused,
    a_background_task_goes_on_wherever_the_program_ended,
    a_background_task_that_is_given_up_is_told_of,
    reports_of_agents_outlive_compactions,
];

/// A call that gives a task in the background.
fn task(id: &'static str) -> (&'static str, &'static str, serde_json::Value) {
    (id, "task", json!({ "agent": "scout", "prompt": "Where is it?", "background": true }))
}

fn bench() -> Bench {
    Bench::new(&[("a.txt", "a\n")]).with_agents(Agents::new(vec![scout()]))
}

/// The ends of background tasks that a request tells of.
fn ends_told(request: &ModelRequest) -> usize {
    let blocks = request.messages.iter().flat_map(|message| &message.content);
    let text = |block: &Block| match block {
        Block::Text { text } => text.matches("The background task ").count(),
        _ => 0,
    };
    blocks.map(text).sum()
}

fn last_of_session(told: &Told) -> ModelRequest {
    told.requests().into_iter().rfind(|request| !is_scout(request)).unwrap()
}

/// The agents that were started and the ends of agents.
fn agents_of(bench: &Bench) -> (Vec<SessionId>, Vec<Termination>) {
    let (mut started, mut ended) = (Vec::new(), Vec::new());
    for event in bench.log.events() {
        match event {
            Event::AgentStarted { child, background, .. } => {
                assert!(background);
                started.push(child);
            }
            Event::AgentFinished { report, .. } => ended.push(report.termination),
            _ => {}
        }
    }
    (started, ended)
}

fn finished(event: &Event) -> bool {
    matches!(event, Event::AgentFinished { .. })
}

async fn a_result_from_the_background_comes_with_a_later_step() {
    let mut bench = bench();
    let (agent, session) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let read = calls([("r", "read_file", json!({ "path": "a.txt" }))]).when(&session);
    let told = told([calls([task("t")]), read, says("done")], [completes("in a.txt").when(&agent)]);
    let mut running = bench.start(&told, auto());
    running.handle.send("do it").await.unwrap();
    // The session is asked again while the agent works.
    told.asked(3).await;
    agent.notify_one();
    running.until(finished).await;
    session.notify_one();
    let ended = running.done().await;
    assert_settled(&bench);
    let last = told.requests().pop().unwrap();
    let child = agents_of(&bench).0.pop().unwrap();
    let answer = result(&last, "t");
    assert!(answer.contains(&format!("works in the background as task {child}")), "{answer}");
    let came = last.messages.last().unwrap().text();
    assert!(
        came.contains(&format!("The background task {child} has ended. The agent `scout` completed"))
            && came.contains("in a.txt"),
        "{came}"
    );
    assert_eq!((ended.turns, ends_told(&last)), (3, 1));
}

async fn a_turn_without_a_call_waits_for_the_background() {
    let mut bench = bench();
    let gate = Arc::new(Notify::new());
    let session = [calls([task("t")]), says("I wait."), says("done")];
    let told = told(session, [completes("in a.txt").when(&gate)]);
    let mut running = bench.start(&told, auto());
    running.handle.send("do it").await.unwrap();
    told.asked(3).await;
    let waits = |event: &Event| matches!(event, Event::TurnFinished { text, .. } if text == "I wait.");
    running.until(waits).await;
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert_eq!(told.requests().len(), 3, "nothing is asked, and nothing has ended");
    gate.notify_one();
    let ended = running.done().await;
    assert_eq!((ended.text.as_str(), ended.turns), ("done", 3));
    assert_eq!(ends_told(&last_of_session(&told)), 1);
}

async fn a_message_of_a_person_ends_the_wait() {
    let mut bench = bench();
    let gate = Arc::new(Notify::new());
    let session = [calls([task("t")]), says("I wait."), says("As you say."), says("done")];
    let told = told(session, [completes("in a.txt").when(&gate)]);
    let mut running = bench.start(&told, auto());
    running.handle.send("do it").await.unwrap();
    told.asked(3).await;
    running.handle.send("hurry up").await.unwrap();
    told.asked(4).await;
    assert_eq!(ends_told(&last_of_session(&told)), 0, "the agent still works");
    gate.notify_one();
    assert_eq!(running.done().await.text, "done");
    assert_eq!(ends_told(&last_of_session(&told)), 1);
}

/// Else the checks would run beside the agent, which would then be stopped in the middle of its work.
async fn a_message_that_a_hook_refuses_does_not() {
    let mut bench = bench().with_hooks(
        HooksBuilder::new()
            .on_prompt(|_, text| match text {
                "secret" => GateDecision::Deny { reason: "not that".to_owned() },
                _ => GateDecision::GO_WITHOUT_CONTEXT,
            })
            .build(),
    );
    let gate = Arc::new(Notify::new());
    let told = told([calls([task("t")]), says("I wait."), says("done")], [completes("in a.txt").when(&gate)]);
    let mut running = bench.start(&told, auto());
    running.handle.send("do it").await.unwrap();
    told.asked(3).await;
    let waits = |event: &Event| matches!(event, Event::TurnFinished { text, .. } if text == "I wait.");
    running.until(waits).await;
    running.handle.send("secret").await.unwrap();
    running.until(|event| matches!(event, Event::Error { .. })).await;
    gate.notify_one();
    let ended = running.done().await;
    assert_eq!((ended.text.as_str(), ended.turns), ("done", 3));
    assert_eq!(agents_of(&bench).1, [Termination::Goal]);
    assert_eq!(ends_told(&last_of_session(&told)), 1);
}

async fn results_that_come_together_make_one_request() {
    let mut bench = bench();
    let gate = Arc::new(Notify::new());
    let opened = Arc::clone(&gate);
    let told = Told::by(move |request| match (is_scout(request), ends_told(request)) {
        (true, _) => completes("x").when(&opened),
        (false, 2) => says("done"),
        (false, _) if request.messages.len() == 1 => calls([task("t1"), task("t2")]),
        (false, _) => says("I wait."),
    });
    let mut running = bench.start(&told, auto());
    running.handle.send("do it").await.unwrap();
    told.asked(4).await;
    gate.notify_waiters();
    assert_eq!(running.done().await.turns, 3);
    assert_eq!(agents_of(&bench).1, [Termination::Goal; 2]);
}

async fn a_task_that_can_not_begin_is_refused_at_once() {
    let mut bench = bench();
    let wrong = json!({ "agent": "nobody", "prompt": "x", "background": true });
    let told = told([calls([("t", "task", wrong)]), says("done")], []);
    bench.run(&told, auto()).await;
    let said = result(told.requests().last().unwrap(), "t");
    assert!(said.starts_with("not started: there is no such agent"), "{said}");
}

async fn no_more_agents_work_in_the_background_than_at_all() {
    let mut bench = bench();
    let gate = Arc::new(Notify::new());
    let opened = Arc::clone(&gate);
    let told = Told::by(move |request| match (is_scout(request), ends_told(request)) {
        (true, _) => completes("x").when(&opened),
        (false, 6) => says("done"),
        (false, _) if request.messages.len() == 1 => {
            let input = task("").2;
            calls_of((0..6).map(|number| call(&format!("t{number}"), "task", input.clone())).collect())
        }
        (false, _) => says("I wait."),
    });
    let running = bench.start(&told, auto());
    running.handle.send("do it").await.unwrap();
    told.asked(2 + MAX_CONCURRENT_AGENTS).await;
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert_eq!(told.requests().len(), 2 + MAX_CONCURRENT_AGENTS);
    assert_eq!(agents_of(&bench).0.len(), 6, "those that wait are on record too");
    let ended = super::many::finish_with_open_gate(&running.handle, &gate).await;
    assert_eq!((ended.text.as_str(), agents_of(&bench).1.len()), ("done", 6));
}

async fn an_interrupt_stops_the_background() {
    let mut bench = bench();
    let told = told([calls([task("t")]), says("I wait.")], [stalls()]);
    let mut running = bench.start(&told, auto());
    running.handle.send("do it").await.unwrap();
    told.asked(3).await;
    running.handle.interrupt();
    let ended = running.done().await;
    assert_eq!(ended.outcome, RunOutcome::Interrupted);
    assert_eq!(agents_of(&bench).1, [Termination::Aborted]);
    assert!(matches!(bench.log.events().last(), Some(Event::Done { .. })), "nothing ends after the report");
    // The next task hears of it.
    let next = Told::new([says("done")]);
    running.handle.close().await;
    let again = bench.resume(&next, auto(), CutOffPolicy::Continue).await.unwrap();
    again.handle.send("and now?").await.unwrap();
    again.handle.wait_until_finished().await.unwrap();
    assert!(next.heard().contains("did not complete its task: ABORTED"));
}

async fn the_end_of_the_task_stops_the_background() {
    let mut bench = bench();
    let told = told([calls([task("t")])], [stalls()]);
    let settings = RunSettings { max_turns: 1, ..auto() };
    let ended = bench.run(&told, settings).await;
    assert_eq!(ended.outcome, RunOutcome::Limit, "{}", ended.summary);
    assert_eq!(agents_of(&bench).1, [Termination::Aborted]);
    assert!(matches!(bench.log.events().last(), Some(Event::Done { .. })));
}

async fn an_agent_that_completes_stops_its_background() {
    let named = AgentTools::Named(vec!["task".to_owned()]);
    let mut outer = scout().tools(named, Mode::Plan);
    outer.name = "outer".to_owned();
    outer.system = "You are the outer.".to_owned();
    let mut bench = Bench::new(&[]).with_agents(Agents::new(vec![scout(), outer]));
    let told = Told::by(|request| {
        let is_outer = request.system.iter().any(|part| part.text.contains("You are the outer."));
        let is_first = request.messages.len() == 1;
        match (is_scout(request), is_outer, is_first) {
            (true, ..) => stalls(),
            (_, true, true) => calls([task("i")]),
            (_, true, false) => completes("without it"),
            (_, _, true) => calls([("o", "task", json!({ "agent": "outer", "prompt": "go" }))]),
            (_, _, false) => says("done"),
        }
    });
    bench.run(&told, auto()).await;
    assert!(result(&last_of_session(&told), "o").contains("without it"));
    let child = bench.log.events().into_iter().find_map(|event| match event {
        Event::AgentStarted { child, .. } => Some(child),
        _ => None,
    });
    let child = child.unwrap();
    let ended = bench.log.entries_of(&child).into_iter().any(|entry| entry.kind == "agent_finished");
    assert!(ended, "its own agent has ended");
}

async fn a_dropped_session_leaves_nothing_in_the_background() {
    let mut bench = bench();
    let told = told([calls([task("t")]), says("I wait.")], [stalls()]);
    let alive = tokio::runtime::Handle::current().metrics();
    let before = alive.num_alive_tasks();
    let running = bench.start(&told, auto());
    running.handle.send("do it").await.unwrap();
    told.asked(3).await;
    drop(running);
    eventually("the end of all tasks", || alive.num_alive_tasks() == before).await;
    assert_eq!(Arc::strong_count(&told), 1);
}

async fn the_background_counts_to_the_cost_and_the_changes() {
    if !confined().await {
        return;
    }
    let price = Price { input: 1e6 / 100.0, ..Price::FREE };
    let worker = scout().tools(AgentTools::All, Mode::Auto);
    let mut bench = Bench::new(&[]).with_agents(Agents::new(vec![worker]));
    let writes = calls([("w", "write_file", json!({ "path": "b.txt", "content": "new\n" }))]);
    let told = told([calls([task("t")]), says("I wait."), says("done")], [writes, completes("x")]);
    let ended = bench.run(&told, RunSettings { price: Some(price), ..auto() }).await;
    assert_eq!(ended.outcome, RunOutcome::Verified, "{}", ended.summary);
    let changed: Vec<String> = ended.changes.iter().map(|change| change.path.to_string()).collect();
    assert_eq!(changed, ["b.txt"]);
    assert!(ended.cost_usd.is_some_and(|usd| (usd - 5.0).abs() < 1e-6), "{:?}", ended.cost_usd);
}

async fn an_edit_over_a_change_from_the_background_is_refused() {
    let worker = scout().tools(AgentTools::All, Mode::Auto);
    let mut bench = Bench::new(&[("a.txt", "one\n")]).with_agents(Agents::new(vec![worker]));
    let (agent, session) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let read = ("r", "read_file", json!({ "path": "a.txt" }));
    let rewrites = calls([("w", "write_file", json!({ "path": "a.txt", "content": "two\n" }))]).when(&agent);
    let over = json!({ "path": "a.txt", "content": "three\n" });
    let told = told(
        [
            calls([read, task("t")]),
            calls([("o", "write_file", over)]).when(&session),
            says("I wait."),
            says("done"),
        ],
        [calls([("r2", "read_file", json!({ "path": "a.txt" }))]), rewrites, completes("x")],
    );
    let mut running = bench.start(&told, auto());
    running.handle.send("do it").await.unwrap();
    agent.notify_one();
    running.until(finished).await;
    session.notify_one();
    running.done().await;
    let last = last_of_session(&told);
    assert!(
        result(&last, "o").contains("since you read it, so your change was not made"),
        "{}",
        result(&last, "o")
    );
    assert_eq!(bench.file("a.txt").as_deref(), Some("two\n"));
}

/// Answers by what the conversation holds, so that it goes on from anywhere.
fn by_results() -> Arc<Told> {
    Told::by(|request| -> Step {
        let has_result = |id: &str| {
            let mut blocks = request.messages.iter().flat_map(|message| &message.content);
            blocks.any(|block| matches!(block, Block::ToolResult { id: it, .. } if it.as_str().ends_with(id)))
        };
        match (is_scout(request), ends_told(request)) {
            (true, _) if has_result("c1") => completes("in a.txt"),
            (true, _) => calls([("c1", "read_file", json!({ "path": "a.txt" }))]),
            (false, 0) if has_result("t") => says("I wait."),
            (false, 0) => calls([task("t")]),
            (false, _) => says("done"),
        }
    })
}

/// Returns true if a program may end with these entries of a session that has started an agent, and
/// with the log of the agent whole or not.
fn can_be_cut(entries: &[Entry], count: usize, agent_is_whole: bool) -> bool {
    let (before, after) = entries.split_at(count.min(entries.len()));
    let Some(next) = after.first() else { return false };
    let has = |kind: &str| before.iter().any(|entry| entry.kind == kind);
    // What is never written apart: a call's end and its result, and the end of an agent and its
    // message.
    let is_in_batch = matches!(record_of(next), Some(Record::Result { .. }))
        || matches!(next.kind.as_str(), "done" | "agent_finished");
    !is_in_batch && (agent_is_whole || !has("agent_finished"))
}

async fn a_background_task_goes_on_wherever_the_program_ended() {
    let mut whole = bench();
    whole.run(&by_results(), auto()).await;
    let (children, _) = agents_of(&whole);
    let all = whole.log.entries_of(&children[0]).len();
    let entries = whole.log.entries();
    let started = entries.iter().position(|entry| entry.kind == "agent_started").unwrap() + 1;
    let mut cuts = 0;
    for count in started..entries.len() {
        for of_child in [0, 1, all / 2, all - 1, all] {
            let mut bench = bench();
            bench.run(&by_results(), auto()).await;
            // The agent and its session write at the same time, so the order differs from run to
            // run.
            if !can_be_cut(&bench.log.entries(), count, of_child == all) {
                continue;
            }
            let child = agents_of(&bench).0.pop().unwrap();
            if bench.log.entries_of(&child).get(of_child).is_some_and(|it| it.kind == "done") {
                continue;
            }
            bench.crash_sessions(&[(id(), count), (child.clone(), of_child)]).await;
            let again = by_results();
            let session = bench.resume(&again, auto(), CutOffPolicy::Continue).await.unwrap();
            let ended = session.handle.wait_until_finished().await.unwrap();
            session.handle.close().await;
            assert_settled(&bench);
            let at = format!("cut off after {count} and {of_child} entries");
            let (started, ends) = agents_of(&bench);
            assert_eq!(
                (started.as_slice(), ends.as_slice()),
                ([child].as_slice(), &[Termination::Goal][..]),
                "{at}"
            );
            assert_eq!(ended.text, "done", "{at}");
            if let Some(last) = again.requests().into_iter().rfind(|request| !is_scout(request)) {
                assert_eq!(ends_told(&last), 1, "{at}: {last:?}");
            }
            cuts += 1;
        }
    }
    assert!(cuts > 20, "{cuts}");
}

async fn a_background_task_that_is_given_up_is_told_of() {
    let mut bench = bench();
    let told = told([calls([task("t")]), says("I wait.")], [stalls()]);
    let running = bench.start(&told, auto());
    running.handle.send("do it").await.unwrap();
    told.asked(3).await;
    bench.crash().await;
    drop(running);
    let next = Told::new([says("done")]);
    let session = bench.resume(&next, auto(), CutOffPolicy::Close).await.unwrap();
    session.handle.send("something else").await.unwrap();
    session.handle.wait_until_finished().await.unwrap();
    assert!(next.heard().contains("was cut off when the program ended"), "{}", next.heard());
}

async fn reports_of_agents_outlive_compactions() {
    let files: Vec<(String, String)> = (0..60)
        .map(|number| (format!("src/f{number}.rs"), "let value = compute(1, 2, 3);\n".repeat(60)))
        .collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let mut bench = Bench::new(&files).with_agents(Agents::new(vec![scout()]));
    let next = std::sync::Mutex::new(0);
    let told = Told::by(move |request| {
        if is_scout(request) {
            let asked: String = request.messages.iter().map(|message| message.text()).collect();
            let place = if asked.contains("the lexer") { "core/lex.rs" } else { "core/parse.rs" };
            return completes(&format!("It is in {place}, line 412."));
        }
        let mut next = next.lock().unwrap();
        *next += 1;
        let task = |about: &str, background: bool| {
            let prompt = format!("Where is {about}?");
            json!({ "agent": "scout", "prompt": prompt, "background": background })
        };
        match *next {
            1 => calls([("s", "task", task("the lexer", false)), ("b", "task", task("the parser", true))]),
            number @ 2..=61 => {
                let id = format!("c{number}");
                let path = format!("src/f{}.rs", number - 2);
                calls([(id.as_str(), "read_file", json!({ "path": path }))])
            }
            _ => says("done"),
        }
    });
    let limits = ModelLimits {
        window: Tokens(12_000),
        source: LimitSource::Configured,
        ..ModelLimits::conservative_default(false)
    };
    let compaction = CompactionSettings { summarize: false, ..CompactionSettings::default() };
    let settings = RunSettings { limits, compaction, max_turns: 1_000, loop_guard: false, ..auto() };
    let session = bench.start(&told, settings);
    session.handle.send("Read all files.").await.unwrap();
    let report = session.handle.wait_until_finished().await.unwrap();
    assert_eq!(report.text, "done", "{}", report.summary);
    let compactions = bench
        .log
        .events()
        .into_iter()
        .filter(|event| matches!(event, Event::ContextCompression { after: Some(_), .. }));
    assert!(compactions.count() >= 2);
    let last = told.requests().into_iter().rfind(|request| !is_scout(request)).unwrap();
    let text: String = last.messages.iter().map(|message| message.text()).collect();
    for fact in ["Reports of agents:", "core/lex.rs, line 412", "core/parse.rs, line 412"] {
        assert_eq!(text.matches(fact).count(), 1, "{fact} in {text}");
    }
}
