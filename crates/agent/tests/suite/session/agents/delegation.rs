//! Giving tasks to agents: what they may do, what the session sees of them, and what they cost.

use std::sync::Arc;

use journeyman_agent::Record;
use journeyman_agent::agents::{AgentDefinition, AgentTools, Agents, EditScope, InputKind, MAX_AGENT_DEPTH};
use journeyman_agent::{
    Approver, CutOffPolicy, EventFilter, PermissionAnswer, RunSettings, SharedBudget, Since, envelope_of,
    record_of,
};
use journeyman_model::{ModelRequest, Price};
use journeyman_protocol::{
    Block, CallId, Decision, Envelope, Event, Mode, RunOutcome, SessionId, StopReason, Termination, Tokens,
};
use serde_json::json;

use super::{asked_of_scout, completes, is_scout, scout, told};
use crate::session::support::bench::{Bench, assert_settled, auto, confined, id, in_mode};
use crate::session::support::model::{Told, calls, result, says, stalls, stopped};

cases![
    a_task_is_given_to_an_agent_whose_result_comes_back,
    an_agent_wraps_into_a_tool_with_its_inputs,
    an_agent_that_does_not_exist_is_named_with_those_that_do,
    a_failed_agent_says_why,
    events_of_an_agent_reach_whoever_watches_the_session,
    a_question_of_an_agent_is_answered_at_the_session,
    a_subscriber_that_comes_later_gets_the_open_question,
    a_denied_question_leaves_the_agent_going_on,
    an_interrupt_stops_the_agent_too,
    an_agent_may_do_no_more_than_the_session,
    rules_may_name_the_agent,
    an_agent_that_may_edit_tests_changes_nothing_else,
    a_command_that_changes_more_than_tests_is_taken_back,
    an_agents_own_agents_may_edit_no_more_than_it,
    what_an_agent_changes_is_the_sessions,
    agents_are_only_so_deep,
    the_cost_of_agents_counts_against_the_budget,
    a_permission_that_an_agent_needed_is_needed_by_the_session,
    the_log_of_an_agent_is_whole,
    an_agent_goes_on_wherever_the_program_ended,
];

fn agents(definitions: impl IntoIterator<Item = AgentDefinition>) -> Agents {
    Agents::new(definitions.into_iter().collect())
}

fn task(id: &'static str) -> (&'static str, &'static str, serde_json::Value) {
    (id, "task", json!({ "agent": "scout", "prompt": "Where is it?" }))
}

/// The agent with all tools, in a mode.
fn worker(mode: Mode) -> AgentDefinition {
    scout().tools(AgentTools::All, mode)
}

fn writes(path: &str) -> crate::session::support::model::Step {
    calls([("w", "write_file", json!({ "path": path, "content": "new\n" }))])
}

/// True if the conversation has the result of a call.
fn has_result(request: &ModelRequest) -> bool {
    let mut blocks = request.messages.iter().flat_map(|it| &it.content);
    blocks.any(|it| matches!(it, Block::ToolResult { .. }))
}

/// The sessions of the agents that a session started.
fn agents_of(bench: &Bench) -> Vec<SessionId> {
    let started = |event: Event| match event {
        Event::AgentStarted { child, .. } => Some(child),
        _ => None,
    };
    bench.log.events().into_iter().filter_map(started).collect()
}

async fn a_task_is_given_to_an_agent_whose_result_comes_back() {
    let mut bench = Bench::new(&[("a.txt", "a\n")]).with_agents(agents([scout()]));
    let look = calls([("c1", "read_file", json!({ "path": "a.txt" }))]);
    let told = told([calls([task("t")]), says("done")], [look, completes("in a.txt")]);
    let ended = bench.run(&told, auto()).await;
    assert_settled(&bench);
    let requests = told.requests();
    let result = result(requests.last().unwrap(), "t");
    assert!(
        result.contains("The agent `scout` completed its task:") && result.contains("in a.txt"),
        "{result}"
    );
    assert!(!result.contains("interrupted"), "{result}");
    let first = requests.first().unwrap();
    let spec = first.tools.iter().find(|tool| tool.name == "task").unwrap();
    assert!(spec.description.contains("- scout: Looks at files."), "{}", spec.description);
    let asked = asked_of_scout(&told);
    let query = asked[0].messages[0].text();
    assert!(
        query.contains("Where is it?") && !query.contains("do it"),
        "it knows nothing of the session: {query}"
    );
    assert!(asked[0].tools.iter().all(|tool| tool.name != "task"), "it has no agents of its own");
    assert_eq!((ended.turns, agents_of(&bench).len()), (2, 1));
}

async fn an_agent_wraps_into_a_tool_with_its_inputs() {
    let typed = scout().optional_input("level", InputKind::Integer, "How deep.");
    let mut bench = Bench::new(&[]).with_agents(agents([typed]).offer_as_tools());
    let told = told(
        [
            calls([("t1", "scout", json!({ "question": "Where?", "level": "deep" }))]),
            calls([("t2", "scout", json!({ "question": "Where?", "level": 2 }))]),
            says("done"),
        ],
        [completes("there")],
    );
    bench.run(&told, auto()).await;
    let requests = told.requests();
    let spec = requests[0].tools.iter().find(|tool| tool.name == "scout").unwrap();
    assert_eq!(
        spec.input_schema["properties"]["level"],
        json!({ "type": "integer", "description": "How deep." })
    );
    assert_eq!(spec.input_schema["required"], json!(["question"]));
    assert!(requests[0].tools.iter().all(|tool| tool.name != "task"));
    let last = requests.last().unwrap();
    assert!(result(last, "t1").contains("input `level`"), "{}", result(last, "t1"));
    assert!(result(last, "t2").contains("there"));
}

async fn an_agent_that_does_not_exist_is_named_with_those_that_do() {
    let mut bench = Bench::new(&[]).with_agents(agents([scout()]));
    let wrong = calls([("t", "task", json!({ "agent": "scuot", "prompt": "x" }))]);
    let told = told([wrong, says("done")], []);
    bench.run(&told, auto()).await;
    let said = result(told.requests().last().unwrap(), "t");
    assert!(said.contains("did you mean `scout`?") && said.contains("There are: scout"), "{said}");
    assert_eq!(agents_of(&bench), []);
}

async fn a_failed_agent_says_why() {
    let mut bench = Bench::new(&[]).with_agents(agents([scout()]));
    let told = told([calls([task("t")]), says("done")], [says("hm"), says("hm")]);
    bench.run(&told, auto()).await;
    let said = result(told.requests().last().unwrap(), "t");
    assert!(said.contains("did not complete its task: ERROR_NO_COMPLETE_TASK_CALL"), "{said}");
    let finished = bench.log.events().into_iter().find_map(|event| match event {
        Event::AgentFinished { report, turns, .. } => Some((report.termination, turns)),
        _ => None,
    });
    assert_eq!(finished, Some((Termination::NoCompleteTaskCall, 2)));
}

async fn events_of_an_agent_reach_whoever_watches_the_session() {
    let mut bench = Bench::new(&[("a.txt", "a\n")]).with_agents(agents([scout()]));
    let thinking = Block::Thinking { text: "**Reading**\n\nIt may be in a.txt.".to_owned(), signature: None };
    let look =
        Block::ToolUse(crate::session::support::model::call("c1", "read_file", json!({ "path": "a.txt" })));
    let told = told(
        [calls([task("t")]), says("done")],
        [stopped(vec![thinking, look], StopReason::ToolUse), completes("x")],
    );
    let mut session = bench.start(&told, auto());
    session.handle.send("do it").await.unwrap();
    session.done().await;
    let child = agents_of(&bench).pop().unwrap();
    let seen: Vec<&Envelope> =
        session.shown.iter().map(|it| &**it).filter(|it| !it.agent.is_empty()).collect();
    assert!(seen.iter().all(|it| it.agent == ["scout"] && it.session == child && it.seq.is_none()));
    let kinds: Vec<&str> = seen.iter().map(|it| it.event.kind()).collect();
    let turn = ["token_usage", "tool_start", "tool_end"];
    assert_eq!(kinds, [&["thought"][..], &turn, &turn].concat());
    let thought =
        Event::Thought { subject: Some("Reading".to_owned()), text: "It may be in a.txt.".to_owned() };
    assert_eq!(seen[0].event, thought);
    let own: Vec<&str> =
        session.shown.iter().filter(|it| it.agent.is_empty()).map(|it| it.event.kind()).collect();
    let place = |kind: &str| own.iter().position(|own| *own == kind).unwrap();
    assert!(place("agent_started") < place("agent_finished"));
}

fn asking() -> RunSettings {
    RunSettings { approver: Approver::Handle, ..in_mode(Mode::Ask) }
}

async fn a_question_of_an_agent_is_answered_at_the_session() {
    let mut bench = Bench::new(&[]).with_agents(agents([worker(Mode::Auto)]));
    let told = told([calls([task("t")]), says("done")], [writes("b.txt"), completes("x")]);
    let mut session = bench.start(&told, asking());
    session.handle.send("do it").await.unwrap();
    let Event::PermissionRequired { call, .. } =
        session.until(|event| matches!(event, Event::PermissionRequired { .. })).await
    else {
        unreachable!()
    };
    assert_eq!(session.shown.last().unwrap().agent, ["scout"]);
    assert!(
        call.as_str().ends_with("-w") && call.as_str() != "w",
        "no call of two sessions has one id: {call}"
    );
    assert_eq!(
        session.handle.status().asked,
        std::slice::from_ref(&call),
        "the session's own clock stands still"
    );
    assert!(session.handle.decide_as(&call, PermissionAnswer::allow(), "the test"));
    assert!(!session.handle.decide(&call, PermissionAnswer::allow()), "a second answer");
    session.done().await;
    assert_eq!(bench.file("b.txt").as_deref(), Some("new\n"));
    assert_eq!(session.handle.status().asked, []);
    let child = agents_of(&bench).pop().unwrap();
    let decided =
        bench.log.entries_of(&child).iter().filter_map(|entry| envelope_of(&child, entry)).any(
            |it| matches!(it.event, Event::PermissionDecided { allowed: true, by, .. } if by == "the test"),
        );
    assert!(decided, "its own log has the answer");
}

async fn a_subscriber_that_comes_later_gets_the_open_question() {
    let mut bench = Bench::new(&[]).with_agents(agents([worker(Mode::Auto)]));
    let told = told([calls([task("t")]), says("done")], [writes("b.txt"), completes("x")]);
    let mut session = bench.start(&told, asking());
    session.handle.send("do it").await.unwrap();
    session.until(|event| matches!(event, Event::PermissionRequired { .. })).await;
    let mut late = session.handle.subscribe(EventFilter::all(), Since::Now);
    let envelope = late.next().await.unwrap().unwrap();
    let Event::PermissionRequired { call, .. } = &envelope.event else { panic!("{envelope:?}") };
    assert_eq!(envelope.agent, ["scout"]);
    assert!(session.handle.decide(call, PermissionAnswer::deny()));
    session.done().await;
    let mut later = session.handle.subscribe(EventFilter::all(), Since::Now);
    session.handle.close().await;
    while let Some(envelope) = later.next().await.unwrap() {
        assert!(!matches!(envelope.event, Event::PermissionRequired { .. }), "it is decided");
    }
}

async fn a_denied_question_leaves_the_agent_going_on() {
    let mut bench = Bench::new(&[]).with_agents(agents([worker(Mode::Auto)]));
    let told = told([calls([task("t")]), says("done")], [writes("b.txt"), completes("could not")]);
    let mut session = bench.start(&told, asking());
    session.handle.send("do it").await.unwrap();
    let Event::PermissionRequired { call, .. } =
        session.until(|event| matches!(event, Event::PermissionRequired { .. })).await
    else {
        unreachable!()
    };
    assert!(session.handle.decide(&call, PermissionAnswer::deny()));
    session.done().await;
    assert!(result(told.requests().last().unwrap(), "t").contains("could not"));
    assert_eq!(bench.file("b.txt"), None);
}

async fn an_interrupt_stops_the_agent_too() {
    let mut bench = Bench::new(&[]).with_agents(agents([scout()]));
    let told = told([calls([task("t")])], [stalls()]);
    let mut session = bench.start(&told, auto());
    session.handle.send("do it").await.unwrap();
    told.asked(2).await;
    session.handle.interrupt();
    let ended = session.done().await;
    assert_eq!(ended.outcome, RunOutcome::Interrupted);
    session.handle.close().await;
    assert_settled(&bench);
    let finished = bench.log.events().into_iter().find_map(|event| match event {
        Event::AgentFinished { report, .. } => Some(report.termination),
        _ => None,
    });
    assert_eq!(finished, Some(Termination::Aborted));
}

async fn an_agent_may_do_no_more_than_the_session() {
    // The session's mode, the agent's, and if the agent may write.
    for (session, agent, may) in [
        (Mode::Plan, Mode::Auto, false),
        (Mode::Edit, Mode::Plan, false),
        (Mode::Ask, Mode::Auto, false),
        (Mode::Edit, Mode::Auto, true),
        (Mode::Auto, Mode::Edit, true),
    ] {
        let mut bench = Bench::new(&[]).with_agents(agents([worker(agent)]));
        let told = told([calls([task("t")]), says("done")], [writes("b.txt"), completes("x")]);
        bench.run(&told, in_mode(session)).await;
        assert_eq!(bench.file("b.txt").is_some(), may, "{session} {agent}");
    }
}

async fn rules_may_name_the_agent() {
    let rule =
        "[[rule]]\ndecision = \"deny\"\nagents = [\"scout\"]\npaths = [\"b.txt\"]\nreason = \"not it\"\n";
    let mut bench = Bench::new(&[]).with_rules(rule).with_agents(agents([worker(Mode::Auto)]));
    let told = told([writes("b.txt"), calls([task("t")]), says("done")], [writes("b.txt"), completes("x")]);
    bench.run(&told, auto()).await;
    assert_eq!(bench.file("b.txt").as_deref(), Some("new\n"), "the session may");
    let child = agents_of(&bench).pop().unwrap();
    let denied = bench.log.entries_of(&child).iter().filter_map(record_of).any(|record| {
        matches!(record, Record::Call(transition)
            if transition.verdict.as_ref().is_some_and(|verdict| verdict.decision == Decision::Deny))
    });
    assert!(denied, "the agent may not");
}

async fn an_agent_that_may_edit_tests_changes_nothing_else() {
    let mut tester = worker(Mode::Edit);
    tester.edits = EditScope::TestFiles;
    let mut bench = Bench::new(&[("src/lib.rs", "old\n")]).with_agents(agents([tester]));
    let both = calls([
        ("w1", "write_file", json!({ "path": "src/other.rs", "content": "x\n" })),
        ("w2", "write_file", json!({ "path": "tests/new_test.rs", "content": "x\n" })),
    ]);
    let told = told([calls([task("t")]), says("done")], [both, completes("x")]);
    bench.run(&told, auto()).await;
    assert_eq!((bench.file("src/other.rs"), bench.file("tests/new_test.rs").is_some()), (None, true));
}

async fn a_command_that_changes_more_than_tests_is_taken_back() {
    if !confined().await {
        return;
    }
    let mut tester = worker(Mode::Auto);
    tester.edits = EditScope::TestFiles;
    let mut bench =
        Bench::new(&[("src/lib.rs", "old\n"), ("tests/a_test.rs", "a\n")]).with_agents(agents([tester]));
    let run = |command: &str| json!({ "command": command });
    let background = json!({ "command": "true", "background": true });
    let told = told(
        [calls([task("t")]), says("done")],
        [
            calls([(
                "c1",
                "run_command",
                run("echo new > src/lib.rs; echo b > tests/b_test.rs; rm tests/a_test.rs"),
            )]),
            calls([("c2", "run_command", run("echo c > tests/c_test.rs"))]),
            calls([("c3", "run_command", background)]),
            completes("x"),
        ],
    );
    bench.run(&told, auto()).await;
    let files = ["src/lib.rs", "tests/a_test.rs", "tests/b_test.rs", "tests/c_test.rs"];
    let found = files.map(|name| bench.file(name));
    assert_eq!(found.each_ref().map(Option::as_deref), [Some("old\n"), Some("a\n"), None, Some("c\n")]);
    let said = asked_of_scout(&told).last().map(|request| format!("{:?}", request.messages)).unwrap();
    for words in
        ["this changed `src/lib.rs`. All that it changed was taken back.", "don't run in the background"]
    {
        assert!(said.contains(words), "{said}");
    }
}

async fn an_agents_own_agents_may_edit_no_more_than_it() {
    let named = AgentTools::Named(["write_file", "task"].map(str::to_owned).to_vec());
    let mut tester = scout().tools(named, Mode::Edit);
    tester.edits = EditScope::TestFiles;
    let mut other = worker(Mode::Edit);
    other.name = "other".to_owned();
    other.system = "You are the other.".to_owned();
    let mut bench = Bench::new(&[]).with_agents(agents([tester, other]));
    let told = Told::by(|request| {
        let is_other = request.system.iter().any(|part| part.text.contains("You are the other."));
        match (is_other, is_scout(request), has_result(request)) {
            (true, _, false) => writes("src/other.rs"),
            (_, true, false) => calls([("o", "task", json!({ "agent": "other", "prompt": "go" }))]),
            (false, false, false) => calls([task("t")]),
            (true, _, true) | (_, true, true) => completes("x"),
            (false, false, true) => says("done"),
        }
    });
    bench.run(&told, auto()).await;
    assert_eq!(bench.file("src/other.rs"), None);
}

async fn what_an_agent_changes_is_the_sessions() {
    if !confined().await {
        return;
    }
    let mut bench = Bench::new(&[("a.txt", "a\n")]).with_agents(agents([worker(Mode::Auto)]));
    let told = told([calls([task("t")]), says("done")], [writes("b.txt"), completes("x")]);
    let ended = bench.run(&told, auto()).await;
    assert_eq!(ended.outcome, RunOutcome::Verified, "{}", ended.summary);
    let changed: Vec<String> = ended.changes.iter().map(|change| change.path.to_string()).collect();
    assert_eq!(changed, ["b.txt"]);
    assert_eq!(bench.undo().unwrap(), ["b.txt"]);
    assert_eq!(bench.file("b.txt"), None);
}

async fn agents_are_only_so_deep() {
    let named = AgentTools::Named(vec!["read_file".to_owned(), "task".to_owned()]);
    let nested = scout().tools(named, Mode::Plan);
    let mut bench = Bench::new(&[]).with_agents(agents([nested]));
    let told = Told::by(|request| match (is_scout(request), has_result(request)) {
        (_, false) => calls([task("t")]),
        (true, true) => completes("x"),
        (false, true) => says("done"),
    });
    bench.run(&told, auto()).await;
    assert_eq!(asked_of_scout(&told).len(), 2 * MAX_AGENT_DEPTH);
    let refused = told.heard();
    assert!(refused.contains("agents may be 3 deep"), "the deepest is told");
}

async fn the_cost_of_agents_counts_against_the_budget() {
    let price = Price { input: 1e6 / 100.0, ..Price::FREE };
    // Every request costs a dollar: the session's first, and two of the agent.
    let settings = RunSettings { price: Some(price), budget_usd: Some(2.5), ..auto() };
    let mut bench = Bench::new(&[("a.txt", "a\n")]).with_agents(agents([scout()]));
    let look = calls([("c1", "read_file", json!({ "path": "a.txt" }))]);
    let told = told([calls([task("t")]), says("done")], [look, completes("x")]);
    let ended = bench.run(&told, settings.clone()).await;
    assert_eq!(ended.outcome, RunOutcome::Limit, "{}", ended.summary);
    assert!(ended.cost_usd.is_some_and(|usd| (usd - 3.0).abs() < 1e-6), "{:?}", ended.cost_usd);
    let counted = bench.state().await.counters.delegated;
    assert_eq!(counted, 2_000_000_000, "the log has the cost of the agents");
    // A budget that other sessions share is theirs: it isn't begun anew.
    let shared = Arc::new(SharedBudget::default());
    let settings = RunSettings { shared_budget: Some(Arc::clone(&shared)), budget_usd: None, ..settings };
    let mut bench = Bench::new(&[]).with_agents(agents([scout()]));
    let told = super::told([calls([task("t")]), says("done")], [completes("x")]);
    bench.run(&told, settings).await;
    assert!((shared.total_usd() - 3.0).abs() < 1e-6, "{}", shared.total_usd());
}

async fn a_permission_that_an_agent_needed_is_needed_by_the_session() {
    let write = || writes("new.txt");
    // An agent that ends for want of the permission, and one that completes its task without it.
    for scout in [vec![write(), write(), write()], vec![write(), completes("not allowed")]] {
        let mut bench = Bench::new(&[]).with_agents(agents([worker(Mode::Ask)]));
        let told = told([calls([task("t")]), says("done")], scout);
        let ended = bench.run(&told, in_mode(Mode::Ask)).await;
        assert_eq!((ended.outcome, ended.exit_code), (RunOutcome::PermissionNeeded, 6), "{}", ended.summary);
    }
}

async fn the_log_of_an_agent_is_whole() {
    let mut bench = Bench::new(&[("a.txt", "a\n")]).with_agents(agents([scout()]));
    let look = calls([("c1", "read_file", json!({ "path": "a.txt" }))]);
    let told = told([calls([task("t")]), says("done")], [look, completes("in a.txt")]);
    bench.run(&told, auto()).await;
    let child = agents_of(&bench).pop().unwrap();
    let records: Vec<Record> = bench.log.entries_of(&child).iter().filter_map(record_of).collect();
    let Some(Record::Role(role)) = records.first() else { panic!("{:?}", records.first()) };
    let parent = role.parent.as_ref().unwrap();
    assert_eq!(
        (parent.call.clone(), role.path.as_slice()),
        (CallId::new("t"), ["scout".to_owned()].as_slice())
    );
    assert_eq!(parent.session, parent.root);
    assert!(matches!(records.last(), Some(Record::Ended { outcome: RunOutcome::Answered, .. })));
    let state = journeyman_agent::State::load(&*bench.log, &child).await.unwrap();
    assert_eq!(state.completed, Some(json!({ "findings": "in a.txt" })));
    assert!(state.is_settled() && state.counters.usage.input == Tokens(200));
    // Nobody holds it any more.
    let holder = bench.log.inner().lease_holder(&child, crate::session::support::bench::NOW).await.unwrap();
    assert_eq!(holder, None);
}

async fn an_agent_goes_on_wherever_the_program_ended() {
    let by_results = || {
        Told::by(|request| match (is_scout(request), has_result(request)) {
            (true, false) => calls([("c1", "read_file", json!({ "path": "a.txt" }))]),
            (true, true) => completes("in a.txt"),
            (false, false) => calls([task("t")]),
            (false, true) => says("done"),
        })
    };
    let bench = || Bench::new(&[("a.txt", "a\n")]).with_agents(agents([scout()]));
    let mut whole = bench();
    whole.run(&by_results(), auto()).await;
    let child = agents_of(&whole).pop().unwrap();
    let started = whole.log.entries().iter().position(|entry| entry.kind == "agent_started").unwrap() + 1;
    let entries = whole.log.entries_of(&child);
    for count in 0..=entries.len() {
        // A call's end and its result are never written apart, nor are a task's end and its report.
        let next = entries.get(count);
        if matches!(next.and_then(record_of), Some(Record::Result { .. }))
            || next.is_some_and(|it| it.kind == "done")
        {
            continue;
        }
        let mut bench = bench();
        bench.run(&by_results(), auto()).await;
        let child = agents_of(&bench).pop().unwrap();
        bench.crash_sessions(&[(id(), started), (child.clone(), count)]).await;
        let again = by_results();
        let session = bench.resume(&again, auto(), CutOffPolicy::Continue).await.unwrap();
        let ended = session.handle.wait_until_finished().await.unwrap();
        session.handle.close().await;
        assert_settled(&bench);
        assert_eq!(agents_of(&bench), [child], "no other agent was started, {count}");
        let result = result(again.requests().last().unwrap(), "t");
        assert!(result.contains("in a.txt"), "cut off after {count} entries: {result}");
        let finished = |event: &Event| matches!(event, Event::AgentFinished { .. });
        assert_eq!(bench.log.events().iter().filter(|event| finished(event)).count(), 1);
        assert_eq!(ended.text, "done");
    }
}
