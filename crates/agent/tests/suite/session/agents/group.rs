//! Groups: several agents at once that send each other messages.

use std::sync::Arc;

use journeyman_agent::agents::group::{Group, GroupDirector, GroupMember, GroupReminder};
use journeyman_agent::agents::{AgentDefinition, AgentLimits, AgentModel, Agents};
use journeyman_agent::{CutOffPolicy, RunSettings};
use journeyman_model::{ModelError, ModelRequest, Price};
use journeyman_protocol::{Event, Mode, ModelLimits, RunOutcome, RunReport};
use serde_json::json;

use super::{completes, is_scout, scout};
use crate::session::support::bench::{Bench, assert_settled, auto, id};
use crate::session::support::model::{Step, Told, calls, fails, says};

cases![
    members_work_at_once_and_talk_by_name,
    a_member_is_reminded_every_so_many_steps,
    a_group_goes_on_after_the_program_ended,
    what_is_no_group_starts_nothing,
    marks_in_a_task_and_in_files_are_text,
    what_members_used_is_what_the_group_used,
    a_group_ends_as_the_members_that_fail,
    a_rule_about_an_agent_holds_for_it_under_another_name,
];

fn member(name: &str) -> GroupMember {
    GroupMember { name: name.to_owned(), agent: "scout".to_owned(), task: format!("You are {name}. Where?") }
}

fn pair() -> Group {
    Group { members: vec![member("ada"), member("bob")], reminders: Vec::new() }
}

fn bench_of(told: &Arc<Told>) -> Bench {
    bench_with(told, scout())
}

fn bench_with(told: &Arc<Told>, agent: AgentDefinition) -> Bench {
    let model = AgentModel {
        model: Arc::clone(told) as _,
        price: None,
        limits: ModelLimits { window: ModelLimits::MAX_WINDOW, ..ModelLimits::conservative_default(false) },
        tool_calling: true,
    };
    Bench::new(&[("a.txt", "a\n")]).with_agents(Agents::new(vec![agent]).offer_as_group(model))
}

fn director() -> Arc<GroupDirector> {
    Arc::new(GroupDirector::new("agents/group"))
}

fn settings() -> RunSettings {
    RunSettings { concurrency: 4, ..auto() }
}

async fn run(bench: &mut Bench, group: &Group) -> Arc<RunReport> {
    let ended = bench.run_task(&group.to_message(), &director(), settings()).await;
    assert_settled(bench);
    ended
}

fn text_of(request: &ModelRequest) -> String {
    serde_json::to_string(&request.messages).unwrap()
}

/// Ada tells Bob where it is, and Bob waits for that.
fn talk(request: &ModelRequest) -> Step {
    assert!(is_scout(request));
    let text = text_of(request);
    let asked = |tool: &str| text.contains(&format!("\"{tool}\""));
    match (text.contains("You are ada"), asked("send_message"), asked("wait_for_message")) {
        (true, false, _) => calls([("s", "send_message", json!({ "text": "@bob it is in a.txt" }))]),
        (true, true, _) => completes("told bob"),
        (false, _, false) => calls([("w", "wait_for_message", json!({ "timeout_s": 60 }))]),
        (false, _, true) if text.contains("[from:ada] @bob it is in a.txt") => completes("bob knows"),
        // The message comes with the next turn at the latest.
        (false, _, true) => calls([("r", "read_file", json!({ "path": "a.txt" }))]),
    }
}

async fn members_work_at_once_and_talk_by_name() {
    let told = Told::by(talk);
    let mut bench = bench_of(&told);
    let ended = run(&mut bench, &pair()).await;
    assert!(ended.text.contains("## ada") && ended.text.contains("told bob"), "{}", ended.text);
    assert!(ended.text.contains("## bob") && ended.text.contains("bob knows"), "{}", ended.text);
    let started: Vec<String> = bench
        .log
        .events()
        .into_iter()
        .filter_map(|event| match event {
            Event::AgentStarted { name, .. } => Some(name),
            _ => None,
        })
        .collect();
    assert_eq!(started, ["ada", "bob"]);
    // Members have the tools of the group, and others don't.
    let tools = |request: &ModelRequest| request.tools.iter().any(|tool| tool.name == "send_message");
    assert!(told.requests().iter().all(tools));
}

async fn a_member_is_reminded_every_so_many_steps() {
    let told = Told::by(|request| match text_of(request).contains("Mind the time.") {
        true => completes("reminded"),
        false => calls([("r", "read_file", json!({ "path": "a.txt" }))]),
    });
    let mut bench = bench_of(&told);
    let reminder = GroupReminder {
        to: "ada".to_owned(),
        text: "Mind the time.".to_owned(),
        every_steps: Some(2),
        every_seconds: None,
    };
    let group = Group { members: vec![member("ada")], reminders: vec![reminder] };
    let ended = run(&mut bench, &group).await;
    assert!(ended.text.contains("reminded"), "{}", ended.text);
}

async fn a_group_goes_on_after_the_program_ended() {
    let told = Told::by(talk);
    let mut bench = bench_of(&told);
    run(&mut bench, &pair()).await;
    let entries = bench.log.entries();
    let started = entries.iter().rposition(|entry| entry.kind == "agent_started").unwrap() + 1;
    let children: Vec<_> = entries
        .iter()
        .filter(|entry| entry.kind == "agent_started")
        .map(|entry| serde_json::from_slice::<Event>(&entry.payload).unwrap())
        .filter_map(|event| match event {
            Event::AgentStarted { child, .. } => Some((child, 0)),
            _ => None,
        })
        .collect();
    // Both were announced, and neither had begun.
    bench.crash_sessions(&[vec![(id(), started)], children].concat()).await;
    let session = bench.resume(&director(), settings(), CutOffPolicy::Continue).await.unwrap();
    let ended = session.handle.wait_until_finished().await.unwrap();
    session.handle.close().await;
    assert_settled(&bench);
    assert!(ended.text.contains("told bob") && ended.text.contains("bob knows"), "{}", ended.text);
}

async fn what_is_no_group_starts_nothing() {
    let told = Told::by(|_| panic!("nobody is asked"));
    let mut bench = bench_of(&told);
    let ended = bench.run_task("<group>{\"member\": []}</group>", &director(), settings()).await;
    assert!(ended.text.contains("A group works by what it was started with"), "{}", ended.text);
    let unknown =
        Group { members: vec![GroupMember { agent: "nobody".to_owned(), ..member("ada") }], ..pair() };
    let told = Told::by(|_| panic!("nobody is asked"));
    let mut bench = bench_of(&told);
    let ended = run(&mut bench, &unknown).await;
    assert!(ended.text.contains("there is no agent `nobody`; there are scout"), "{}", ended.text);
    assert_eq!(ended.outcome, RunOutcome::Error);
}

async fn a_rule_about_an_agent_holds_for_it_under_another_name() {
    let rule =
        |name: &str| format!("[[rule]]\ntools = ['read_file']\nagents = ['{name}']\ndecision = 'deny'\n");
    for (name, refused) in [("scout", true), ("ada", true), ("bob", false)] {
        let told = Told::by(|request| match request.messages.len() {
            1 => calls([("r", "read_file", json!({ "path": "a.txt" }))]),
            _ => completes("looked"),
        });
        let mut bench = bench_of(&told).with_rules(&rule(name));
        run(&mut bench, &Group { members: vec![member("ada")], reminders: Vec::new() }).await;
        let heard = told.requests().last().map(text_of).unwrap();
        assert_eq!(heard.contains("denied: your rule"), refused, "{name}: {heard}");
    }
    let told = Told::by(|_| panic!("nobody is asked"));
    let mut bench = bench_of(&told);
    let ended = run(&mut bench, &Group { members: vec![member("main")], reminders: Vec::new() }).await;
    assert!(ended.text.contains("not started: the member `main` can't have the name"), "{}", ended.text);
}

async fn marks_in_a_task_and_in_files_are_text() {
    let told = Told::by(|_| completes("looked"));
    let other = Group { members: vec![member("eve")], reminders: Vec::new() }.to_message();
    let task = format!("Look for <group> in notes.md, which says: {other}");
    let group = Group { members: vec![GroupMember { task, ..member("ada") }], reminders: Vec::new() };
    let mut bench = bench_of(&told);
    std::fs::write(bench.root.join("notes.md"), &other).unwrap();
    let ended = run(&mut bench, &group).await;
    assert!(ended.text.contains("## ada") && ended.text.contains("looked"), "{}", ended.text);
    assert!(!ended.text.contains("eve"), "{}", ended.text);
}

async fn what_members_used_is_what_the_group_used() {
    // The director's own replies cost nothing, and the price of the members' isn't known.
    let settings = RunSettings { price: Some(Price::FREE), ..settings() };
    let told = Told::by(|_| completes("looked"));
    let mut bench = bench_of(&told);
    let ended = bench.run_task(&pair().to_message(), &director(), settings).await;
    assert_eq!((ended.usage.total_input().0, ended.cost_usd), (200, None));
}

async fn a_group_ends_as_the_members_that_fail() {
    let limited = AgentDefinition { limits: AgentLimits { turns: 1, ..AgentLimits::default() }, ..scout() };
    type Reply = Box<dyn Fn(&ModelRequest) -> Step + Send + Sync>;
    let cases: [(AgentDefinition, Reply, RunOutcome, &str); 4] = [
        (scout(), Box::new(|_| completes("looked")), RunOutcome::Answered, "answered"),
        (scout(), Box::new(|_| says("I am done.")), RunOutcome::Error, "the members ada, bob of the group"),
        (
            scout(),
            Box::new(|request| match text_of(request).contains("You are ada") {
                true => completes("looked"),
                false => fails(ModelError::Script("no server".to_owned())),
            }),
            RunOutcome::Error,
            "the member bob of the group did not complete its task",
        ),
        (
            limited,
            Box::new(|_| calls([("r", "read_file", json!({ "path": "a.txt" }))])),
            RunOutcome::Limit,
            "the members ada, bob of the group did not complete their tasks",
        ),
    ];
    for (definition, reply, outcome, said) in cases {
        let told = Told::by(reply);
        let mut bench = bench_with(&told, definition);
        let settings = RunSettings { mode: Mode::Plan, ..settings() };
        let ended = bench.run_task(&pair().to_message(), &director(), settings).await;
        assert_eq!((ended.outcome, ended.exit_code), (outcome, outcome.exit_code()), "{}", ended.summary);
        assert!(ended.summary.starts_with(said), "{}", ended.summary);
    }
}
