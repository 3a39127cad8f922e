//! Agents under the same cases: what they may do, how deep they go, how they answer, and how they
//! shorten their own conversations.

use std::sync::Arc;

use journeyman_agent::agents::{AgentDefinition, AgentTools, Agents, InputKind, MAX_AGENT_DEPTH};
use journeyman_agent::{
    Approver, ChecksSetting, CompactionSettings, PermissionAnswer, Record, RunSettings, State, record_of,
};
use journeyman_context::counting::{Counter, RequestParts};
use journeyman_model::ModelRequest;
use journeyman_protocol::{
    Block, CallState, CompressionMethod, Event, LimitSource, Mode, ModelLimits, SessionId, Tokens,
};
use serde_json::json;

use crate::session::support::bench::{Bench, assert_settled, auto, in_mode};
use crate::session::support::model::{Step, Told, calls, result, says};
use crate::session::support::transcript;

cases![
    case_17_an_allow_list_denies_others,
    case_32_a_delegated_task_returns_the_agents_text_and_no_question,
    case_42_an_agent_has_no_tool_that_its_parent_is_denied_and_depth_is_capped,
    gemini_27_an_agent_shortens_its_own_conversation,
    gemini_27_a_summary_that_is_too_large_leaves_an_agents_conversation_as_it_was,
];

const ROLE: &str = "You are the worker of a case.";

pub(super) fn settings() -> RunSettings {
    RunSettings { checks: ChecksSetting::Off, ..auto() }
}

/// An agent that answers with a text.
pub(super) fn worker() -> AgentDefinition {
    AgentDefinition::new("worker", "Works.")
        .input("task", InputKind::String, "The task.")
        .system(ROLE)
        .query("${task}")
}

pub(super) fn is_worker(request: &ModelRequest) -> bool {
    request.system.iter().any(|part| part.text.contains(ROLE))
}

pub(super) fn task(id: &'static str) -> Step {
    calls([(id, "task", json!({ "agent": "worker", "prompt": "Do your part." }))])
}

pub(super) fn finishes(text: &str) -> Step {
    calls([("end", "complete_task", json!({ "result": text }))])
}

/// A model that gives one task and ends, and lets the agent do its steps.
pub(super) fn delegating(steps: impl IntoIterator<Item = Step>) -> Arc<Told> {
    let steps = std::sync::Mutex::new(steps.into_iter().collect::<std::collections::VecDeque<_>>());
    Told::by(move |request| match is_worker(request) {
        true => steps.lock().unwrap().pop_front().unwrap_or_else(|| finishes("nothing is left")),
        false if has_result(request) => says("done"),
        false => task("t"),
    })
}

pub(super) fn has_result(request: &ModelRequest) -> bool {
    let mut blocks = request.messages.iter().flat_map(|message| &message.content);
    blocks.any(|block| matches!(block, Block::ToolResult { .. }))
}

pub(super) fn worker_requests(told: &Told) -> Vec<ModelRequest> {
    told.requests().into_iter().filter(is_worker).collect()
}

/// The sessions of the agents that the session started.
pub(super) fn agents_of(bench: &Bench) -> Vec<SessionId> {
    let events = bench.log.events().into_iter();
    events
        .filter_map(|event| if let Event::AgentStarted { child, .. } = event { Some(child) } else { None })
        .collect()
}

/// The states that a call of an agent went through.
pub(super) fn states(bench: &Bench, agent: &SessionId, call: &str) -> Vec<CallState> {
    let entries = bench.log.entries_of(agent);
    let state = |record| match record {
        Record::Call(transition) if transition.call.as_str().ends_with(call) => Some(transition.state),
        _ => None,
    };
    entries.iter().filter_map(record_of).filter_map(state).collect()
}

async fn case_17_an_allow_list_denies_others() {
    // Mode, rules and hooks allow everything: the list of the agent's tools denies what it lacks.
    let listed = AgentTools::Named(vec!["read_file".to_owned(), "list_files".to_owned()]);
    let allow = "[[rule]]\ndecision = \"allow\"\npaths = [\"b.txt\"]\n\n\
                 [[rule]]\ndecision = \"allow\"\ncommand = [\"echo\", \"**\"]\n";
    let approve = journeyman_agent::hooks::HooksBuilder::new().on_pre_tool(|_, _, _| {
        journeyman_agent::hooks::PreToolDecision::Approve { reason: "all of it".to_owned() }
    });
    let mut bench = Bench::new(&[("a.txt", "one\n")])
        .with_rules(allow)
        .with_hooks(approve.build())
        .with_agents(Agents::new(vec![worker().tools(listed.clone(), Mode::Auto)]));
    let batch = calls([
        ("read", "read_file", json!({ "path": "a.txt" })),
        ("write", "write_file", json!({ "path": "b.txt", "content": "x\n" })),
        ("run", "run_command", json!({ "command": "echo x > c.txt" })),
        ("list", "list_files", json!({})),
    ]);
    let told = delegating([batch, finishes("tried")]);
    bench.run(&told, settings()).await;
    let asked = worker_requests(&told);
    let mut offered: Vec<&str> = asked[0].tools.iter().map(|tool| tool.name.as_str()).collect();
    offered.sort_unstable();
    assert_eq!(offered, ["complete_task", "list_files", "read_file"]);
    let agent = agents_of(&bench).pop().unwrap();
    for (call, tool) in [("write", "write_file"), ("run", "run_command")] {
        let id = asked[1].messages.iter().flat_map(|message| &message.content);
        let id = id
            .filter_map(|block| match block {
                Block::ToolResult { id, .. } if id.as_str().ends_with(call) => Some(id.clone()),
                _ => None,
            })
            .next()
            .unwrap();
        let said = result(&asked[1], id.as_str());
        assert!(said.contains(&format!("the agent `worker` has no tool `{tool}`")), "{said}");
        assert!(!states(&bench, &agent, call).contains(&CallState::Executing), "{call}");
    }
    assert_eq!(states(&bench, &agent, "read").last(), Some(&CallState::Completed));
    assert_eq!(states(&bench, &agent, "list").last(), Some(&CallState::Completed));
    assert_eq!((bench.file("b.txt"), bench.file("c.txt")), (None, None));
    // A rule that denies beats the list, and one that asks asks in the mode `auto`.
    let rules = "[[rule]]\ndecision = \"deny\"\ntools = [\"read_file\"]\nreason = \"not this\"\n\
                 [[rule]]\ndecision = \"ask\"\ntools = [\"list_files\"]\nreason = \"somebody looks\"\n";
    let mut bench = Bench::new(&[("a.txt", "one\n")])
        .with_rules(rules)
        .with_agents(Agents::new(vec![worker().tools(listed, Mode::Auto)]));
    let batch = calls([("read", "read_file", json!({ "path": "a.txt" })), ("list", "list_files", json!({}))]);
    let told = delegating([batch, finishes("tried")]);
    let asking = RunSettings { approver: Approver::Handle, ..settings() };
    let mut session = bench.start(&told, asking);
    session.handle.send("do it").await.unwrap();
    let Event::PermissionRequired { call, .. } =
        session.until(|event| matches!(event, Event::PermissionRequired { .. })).await
    else {
        unreachable!()
    };
    assert!(call.as_str().ends_with("list"), "{call}");
    assert!(session.handle.decide(&call, PermissionAnswer::deny()));
    session.done().await;
    let agent = agents_of(&bench).pop().unwrap();
    for call in ["read", "list"] {
        assert_eq!(states(&bench, &agent, call).last(), Some(&CallState::Denied), "{call}");
    }
}

async fn case_32_a_delegated_task_returns_the_agents_text_and_no_question() {
    let mut bench = Bench::new(&[("a.txt", "one\n")])
        .with_agents(Agents::new(vec![worker().tools(AgentTools::All, Mode::Edit)]));
    let write = calls([("w", "write_file", json!({ "path": "b.txt", "content": "x\n" }))]);
    let told = delegating([write, finishes("It is in b.txt.")]);
    // Nobody is asked, so that a call which asks is refused.
    let mut session = bench.start(&told, RunSettings { checks: ChecksSetting::Off, ..in_mode(Mode::Ask) });
    session.handle.send("do it").await.unwrap();
    let ended = session.done().await;
    assert_eq!(ended.text, "done");
    let said = result(told.requests().last().unwrap(), "t");
    assert!(said.contains("It is in b.txt."), "{said}");
    assert_eq!(bench.file("b.txt"), None, "the mode of the parent holds");
    assert_eq!(session.handle.status().asked, []);
    session.handle.close().await;
    assert_settled(&bench);
    let agent = agents_of(&bench).pop().unwrap();
    let state = State::load(&*bench.log, &agent).await.unwrap();
    assert!(transcript::is_settled(&state.messages), "{:?}", state.messages);
}

async fn case_42_an_agent_has_no_tool_that_its_parent_is_denied_and_depth_is_capped() {
    // What a rule denies to everybody, what the parent's mode denies, and what the parent's own
    // list lacks.
    let deny = "[[rule]]\ndecision = \"deny\"\ntools = [\"run_command\"]\nreason = \"no commands\"\n";
    let tries = || {
        calls([
            ("run", "run_command", json!({ "command": "echo x > c.txt" })),
            ("write", "write_file", json!({ "path": "b.txt", "content": "x\n" })),
        ])
    };
    for (mode, writes) in [(Mode::Auto, true), (Mode::Plan, false)] {
        let mut bench = Bench::new(&[])
            .with_rules(deny)
            .with_agents(Agents::new(vec![worker().tools(AgentTools::All, Mode::Auto)]));
        let told = delegating([tries(), finishes("tried")]);
        bench.run(&told, RunSettings { checks: ChecksSetting::Off, ..in_mode(mode) }).await;
        let agent = agents_of(&bench).pop().unwrap();
        assert_eq!(states(&bench, &agent, "run").last(), Some(&CallState::Denied), "{mode}");
        assert_eq!((bench.file("c.txt"), bench.file("b.txt").is_some()), (None, writes), "{mode}");
    }
    // An agent that reads gives a task to one that may do everything.
    let reader =
        worker().tools(AgentTools::Named(vec!["read_file".to_owned(), "task".to_owned()]), Mode::Auto);
    let mut free = worker().tools(AgentTools::All, Mode::Auto);
    free.name = "free".to_owned();
    free.system = "You are free.".to_owned();
    let mut bench = Bench::new(&[]).with_agents(Agents::new(vec![reader, free]));
    let told = Told::by(move |request| {
        let is_free = request.system.iter().any(|part| part.text.contains("You are free."));
        match (is_free, is_worker(request), has_result(request)) {
            (true, _, false) => tries(),
            (false, true, false) => calls([("f", "task", json!({ "agent": "free", "prompt": "go" }))]),
            (true, _, true) | (_, true, true) => finishes("tried"),
            (false, false, false) => task("t"),
            (false, false, true) => says("done"),
        }
    });
    bench.run(&told, settings()).await;
    assert_eq!((bench.file("b.txt"), bench.file("c.txt")), (None, None));
    // Each agent gives the task on: only so many begin, and the deepest is told.
    let nested = AgentTools::Named(vec!["task".to_owned()]);
    let mut bench = Bench::new(&[]).with_agents(Agents::new(vec![worker().tools(nested, Mode::Plan)]));
    let told = Told::by(|request| match (is_worker(request), has_result(request)) {
        (_, false) => task("t"),
        (true, true) => finishes("x"),
        (false, true) => says("done"),
    });
    bench.run(&told, settings()).await;
    assert_eq!(worker_requests(&told).len(), 2 * MAX_AGENT_DEPTH);
    assert!(told.heard().contains(&format!("agents may be {MAX_AGENT_DEPTH} deep")));
}

const WINDOW: Tokens = Tokens(12_000);

fn limits() -> ModelLimits {
    ModelLimits {
        window: WINDOW,
        source: LimitSource::Configured,
        ..ModelLimits::conservative_default(false)
    }
}

fn tokens(request: &ModelRequest) -> Tokens {
    let system: Vec<&str> = request.system.iter().map(|part| part.text.as_str()).collect();
    let parts = RequestParts { system: &system, tools: &request.tools, messages: &request.messages };
    Counter::new(&limits()).count_request(parts).total()
}

fn asks_for_summary(request: &ModelRequest) -> bool {
    request.system.iter().any(|part| part.text.contains("handover note"))
}

const FILES: usize = 60;

/// Runs an agent that reads many files in a small window, whose summaries are `summary`. Returns
/// its requests, and what its log says of compressions.
async fn read_many(summary: &'static str) -> (Vec<ModelRequest>, Vec<Event>, State) {
    let text = |number| format!("// file {number}\n") + &"let value = compute(1, 2, 3);\n".repeat(60);
    let files: Vec<(String, String)> =
        (0..FILES).map(|number| (format!("f{number}.rs"), text(number))).collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let mut limited = worker();
    limited.limits.turns = 1_000;
    let mut bench = Bench::new(&files).with_agents(Agents::new(vec![limited]));
    let next = std::sync::atomic::AtomicUsize::new(0);
    let told = Told::by(move |request| {
        if asks_for_summary(request) {
            return says(summary);
        }
        if !is_worker(request) {
            return if has_result(request) { says("done") } else { task("t") };
        }
        match next.fetch_add(1, std::sync::atomic::Ordering::SeqCst) {
            FILES => finishes("all were read").reporting(tokens(request)),
            number => {
                let id = format!("c{number}");
                let read = calls([(id.as_str(), "read_file", json!({ "path": format!("f{number}.rs") }))]);
                read.reporting(tokens(request))
            }
        }
    });
    let compaction = CompactionSettings { summarize: true, ..CompactionSettings::default() };
    let settings =
        RunSettings { limits: limits(), compaction, max_turns: 1_000, loop_guard: false, ..settings() };
    let ended = bench.run(&told, settings).await;
    assert_eq!(ended.text, "done", "{}", ended.summary);
    assert!(result(told.requests().last().unwrap(), "t").contains("all were read"));
    let agent = agents_of(&bench).pop().unwrap();
    let events: Vec<Event> = bench
        .log
        .entries_of(&agent)
        .iter()
        .filter(|entry| entry.channel.is_some())
        .map(|entry| serde_json::from_slice(&entry.payload).unwrap())
        .collect();
    let state = State::load(&*bench.log, &agent).await.unwrap();
    let requests =
        told.requests().into_iter().filter(|one| is_worker(one) || asks_for_summary(one)).collect();
    (requests, events, state)
}

fn compressions(events: &[Event]) -> Vec<&Event> {
    events.iter().filter(|event| matches!(event, Event::ContextCompression { after: Some(_), .. })).collect()
}

async fn gemini_27_an_agent_shortens_its_own_conversation() {
    let (requests, events, state) = read_many("The files were read one by one.").await;
    let asked: Vec<&ModelRequest> = requests.iter().filter(|request| !asks_for_summary(request)).collect();
    assert_eq!(asked.len(), FILES + 1);
    assert!(asked.iter().all(|request| tokens(request) <= WINDOW));
    let compressions = compressions(&events);
    assert!(compressions.len() >= 2, "{compressions:?}");
    // Every request has calls and results in pairs, the task, and the newest result in full.
    for (number, request) in asked.iter().enumerate().skip(1) {
        assert!(transcript::is_settled(&request.messages), "{number}: {:#?}", request.messages);
        let text: String = request.messages.iter().map(|message| message.text()).collect();
        assert!(text.contains("Do your part."), "{number}: {text}");
        let last = request.messages.last().unwrap();
        assert!(format!("{last:?}").contains(&format!("// file {}\\n", number - 1)), "{number}: {last:?}");
    }
    // The summary of a later compression takes in the earlier one.
    let merged = requests.iter().filter(|request| asks_for_summary(request)).nth(1).unwrap();
    assert!(
        format!("{:?}", merged.messages).contains("The files were read one by one."),
        "{:?}",
        merged.messages
    );
    assert!(state.compaction.is_some(), "the log of the agent has it");
}

async fn gemini_27_a_summary_that_is_too_large_leaves_an_agents_conversation_as_it_was() {
    const LONG: &str = include_str!("agents.rs");
    let (requests, events, _) = read_many(LONG).await;
    let asked: Vec<&ModelRequest> = requests.iter().filter(|request| !asks_for_summary(request)).collect();
    assert!(asked.iter().all(|request| tokens(request) <= WINDOW));
    // The text never gets into a request: what is kept is drawn without it.
    assert!(
        asked
            .iter()
            .all(|request| !format!("{:?}", request.messages).contains("leaves_an_agents_conversation"))
    );
    // The model is asked for a summary every second time: after one that was too large the next one
    // is done without.
    let methods: Vec<CompressionMethod> = compressions(&events)
        .iter()
        .map(|event| match event {
            Event::ContextCompression { before, after: Some(after), method: Some(method), .. } => {
                assert!(after < before, "{event:?}");
                *method
            }
            other => panic!("{other:?}"),
        })
        .collect();
    assert!(methods.len() >= 2, "{methods:?}");
    assert!(methods.iter().all(|method| *method == CompressionMethod::State), "{methods:?}");
    let summaries = requests.iter().filter(|request| asks_for_summary(request)).count();
    assert_eq!(summaries, methods.len().div_ceil(2));
}
