//! Planning a task before it is worked on.

use std::sync::Arc;

use journeyman_agent::agents::{AgentDefinition, AgentOutputSpec, Agents, InputKind};
use journeyman_agent::{PlanFirst, RunSettings, State, store_plan};
use journeyman_model::Price;
use journeyman_protocol::{Event, Plan, PlanComparison, RelPath, RunOutcome, Termination};
use serde_json::{Value, json};

use super::{ROLE, asked_of_scout, ending_of, told};
use crate::session::support::bench::{Bench, NOW, assert_settled, auto, id};
use crate::session::support::model::{Step, calls, says};

cases![
    a_task_is_planned_by_an_agent_and_worked_on_by_its_plan,
    a_plan_is_made_where_the_words_of_a_task_ask_for_one,
    what_departs_from_the_plan_is_told,
    a_planner_that_fails_leaves_the_task_without_a_plan,
    a_plan_that_a_person_gives_is_the_one_that_counts,
    a_planner_by_itself_ends_with_a_plan_that_can_be_replaced,
    a_plan_holds_for_its_task_alone,
];

fn planner() -> AgentDefinition {
    let output = AgentOutputSpec {
        name: "plan".to_owned(),
        description: "The plan.".to_owned(),
        schema: json!({ "type": "object" }),
    };
    let definition = AgentDefinition::new("planner", "Plans.")
        .input("task", InputKind::String, "The task.")
        .system(ROLE)
        .query("Plan: ${task}");
    AgentDefinition { output, ..definition }
}

fn plan_output() -> Value {
    json!({
        "strategy": "Begin with the text.",
        "steps": [{ "what": "Write it.", "files": ["new.txt", "b.txt"] }],
    })
}

fn plans() -> Step {
    calls([("done", "complete_task", json!({ "plan": plan_output() }))])
}

fn writes(path: &str) -> Step {
    calls([("w", "write_file", json!({ "path": path, "content": "new\n" }))])
}

fn bench() -> Bench {
    let agents = Agents::new(vec![planner()]);
    Bench::new(&[("a.txt", "a\n"), ("b.txt", "b\n")]).with_agents(agents)
}

fn planned(plan_first: PlanFirst) -> RunSettings {
    RunSettings { plan_first, ..auto() }
}

fn planned_events(bench: &Bench) -> Vec<Plan> {
    let plan = |event: Event| match event {
        Event::Planned { plan } => Some(plan),
        _ => None,
    };
    bench.log.events().into_iter().filter_map(plan).collect()
}

async fn a_task_is_planned_by_an_agent_and_worked_on_by_its_plan() {
    let mut bench = bench();
    let price = Price { input: 1e6 / 100.0, ..Price::FREE };
    let told = told([writes("new.txt"), says("done")], [plans()]);
    let settings = RunSettings { price: Some(price), ..planned(PlanFirst::Always) };
    let ended = bench.run(&told, settings).await;
    assert_settled(&bench);
    assert_eq!(ended.outcome, RunOutcome::Verified, "{}", ended.summary);
    assert!(asked_of_scout(&told)[0].messages[0].text().contains("Plan: do it"));
    let first = told.requests().into_iter().find(|request| !super::is_scout(request)).unwrap();
    let first = first.messages[0].text();
    assert!(first.contains("do it") && first.contains("1. Write it.\n   files: new.txt, b.txt"), "{first}");
    let plan = Plan::from_output(&plan_output(), "do it").unwrap();
    assert_eq!(planned_events(&bench), std::slice::from_ref(&plan));
    assert_eq!(bench.state().await.plan.as_deref(), Some(&plan));
    let compared = PlanComparison { outside: Vec::new(), untouched: vec!["b.txt".to_owned()] };
    assert_eq!(ended.plan, Some(compared));
    // Each request costs a dollar: one of the planner, two of the session.
    assert!(ended.cost_usd.is_some_and(|usd| (usd - 3.0).abs() < 1e-6), "{:?}", ended.cost_usd);
}

async fn a_plan_is_made_where_the_words_of_a_task_ask_for_one() {
    for (task, wanted) in [
        ("use the new name everywhere", 1),
        ("move it from a.txt to b.txt", 1),
        ("fix it", 0),
        ("where is everywhere used?", 0),
    ] {
        let mut bench = bench();
        let told = told([says("done"), says("done")], [plans()]);
        bench.run_task(task, &told, planned(PlanFirst::WhereNeeded)).await;
        assert_eq!(planned_events(&bench).len(), wanted, "{task}");
    }
}

async fn what_departs_from_the_plan_is_told() {
    let mut bench = bench();
    let told = told([writes("c.txt"), says("done")], [plans()]);
    let ended = bench.run(&told, planned(PlanFirst::Always)).await;
    let compared = ended.plan.as_ref().unwrap();
    assert_eq!(compared.outside, [RelPath::parse("c.txt").unwrap()]);
    assert_eq!(compared.untouched, ["b.txt", "new.txt"]);
}

async fn a_planner_that_fails_leaves_the_task_without_a_plan() {
    let no_plan = calls([("done", "complete_task", json!({ "plan": { "strategy": "none" } }))]);
    for steps in [vec![says("hm"), says("hm")], vec![no_plan]] {
        let mut bench = bench();
        let told = told([writes("new.txt"), says("done")], steps);
        let ended = bench.run(&told, planned(PlanFirst::Always)).await;
        assert_eq!((ended.outcome, &ended.plan), (RunOutcome::Verified, &None));
        let warned = bench.log.events().into_iter().any(|event| {
            matches!(event, Event::Error { message, .. } if message.contains("worked on without a plan"))
        });
        assert!(warned);
    }
}

async fn a_plan_that_a_person_gives_is_the_one_that_counts() {
    let mut bench = bench();
    let given = Plan::from_output(&plan_output(), "do it").unwrap();
    let told = told([writes("new.txt"), says("done")], []);
    let ended = bench.run(&told, planned(PlanFirst::Given(Box::new(given)))).await;
    assert_eq!(asked_of_scout(&told).len(), 0);
    assert!(told.requests()[0].messages[0].text().contains("1. Write it."));
    assert!(ended.plan.is_some());
}

async fn a_planner_by_itself_ends_with_a_plan_that_can_be_replaced() {
    let mut bench = bench();
    let told = told([], [plans()]);
    let mut session = bench.start_agent(&told, auto(), &planner(), json!({ "task": "do it" })).await;
    let ended = session.done().await;
    session.handle.close().await;
    assert_eq!((ended.outcome, ended.exit_code), (RunOutcome::Planned, 11), "{}", ended.summary);
    assert_eq!(ending_of(&ended).0, Termination::Goal);
    let stored = bench.state().await.plan.unwrap();
    assert_eq!(*stored, Plan::from_output(&plan_output(), "do it").unwrap());
    let changed = Plan { strategy: "Another.".to_owned(), ..*stored };
    let clock = journeyman_agent::Clock::new(|| NOW);
    store_plan(&*bench.log, &id(), &changed, &clock).await.unwrap();
    assert_eq!(State::load(&*bench.log, &id()).await.unwrap().plan.as_deref(), Some(&changed));
}

async fn a_plan_holds_for_its_task_alone() {
    let mut bench = bench();
    let told = told([writes("new.txt"), says("done"), writes("more.txt"), says("done")], [plans()]);
    let session = bench.start(&told, planned(PlanFirst::Always));
    session.handle.send("do it").await.unwrap();
    let first: Arc<_> = session.handle.wait_until_finished().await.unwrap();
    session.handle.send("and more").await.unwrap();
    let second = session.handle.wait_until_finished().await.unwrap();
    assert_eq!((first.plan.is_some(), second.plan.is_some()), (true, false));
    assert_eq!(planned_events(&bench).len(), 1);
}
