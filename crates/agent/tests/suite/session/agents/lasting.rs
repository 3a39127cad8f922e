//! Answers of a person that last: whom of a session and its agents they reach.

use std::sync::Arc;

use journeyman_agent::agents::{AgentTools, Agents};
use journeyman_agent::{Approver, CutOffPolicy, PermissionAnswer, RunSettings};
use journeyman_protocol::{CallId, Event, Mode};
use serde_json::json;
use tokio::sync::Notify;

use super::{completes, scout, told};
use crate::session::support::bench::{Bench, Session, in_mode};
use crate::session::support::model::{Step, calls, says};

cases![
    an_answer_at_the_session_holds_for_agents_that_work_already,
    an_answer_at_an_agent_holds_for_those_of_its_name,
];

fn bench() -> Bench {
    Bench::new(&[]).with_agents(Agents::new(vec![scout().tools(AgentTools::All, Mode::Auto)]))
}

fn asking() -> RunSettings {
    RunSettings { approver: Approver::Handle, ..in_mode(Mode::Ask) }
}

fn writes(id: &'static str) -> (&'static str, &'static str, serde_json::Value) {
    (id, "write_file", json!({ "path": "b.txt", "content": id }))
}

fn task(id: &'static str, background: bool) -> Step {
    calls([(id, "task", json!({ "agent": "scout", "prompt": "go", "background": background }))])
}

/// A file that is there is read before it is written.
fn reads() -> Step {
    calls([("r", "read_file", json!({ "path": "b.txt" }))])
}

/// Listens until a question, and returns its call, its rule and the path of the agent that asks.
async fn question(session: &mut Session) -> (CallId, String, Vec<String>) {
    let asked = session.until(|event| matches!(event, Event::PermissionRequired { .. })).await;
    let Event::PermissionRequired { call, rule, .. } = asked else { unreachable!() };
    (call, rule.unwrap(), session.shown.last().unwrap().agent.clone())
}

fn questions(session: &Session) -> usize {
    let asked = |event: &Event| matches!(event, Event::PermissionRequired { .. });
    session.shown.iter().filter(|envelope| asked(&envelope.event)).count()
}

async fn an_answer_at_the_session_holds_for_agents_that_work_already() {
    let mut bench = bench();
    let gate = Arc::new(Notify::new());
    let own = calls([writes("own")]).when(&gate);
    let told = told(
        [task("t", true), own, says("I wait."), task("t2", false), says("done")],
        [
            calls([writes("w1")]),
            calls([writes("w2")]),
            completes("x"),
            reads(),
            calls([writes("w3")]),
            completes("y"),
        ],
    );
    let mut session = bench.start(&told, asking());
    session.handle.send("do it").await.unwrap();
    let (of_agent, _, path) = question(&mut session).await;
    assert_eq!(path, ["scout"]);
    gate.notify_one();
    let (of_session, rule, path) = question(&mut session).await;
    assert!(path.is_empty() && !rule.contains("agents"), "{rule}");
    assert!(session.handle.decide_as(&of_session, PermissionAnswer::allow_rule(), "ada"));
    // The answer settles the open question of the agent, which asks no more; nor does a later
    // agent.
    session.done().await;
    assert_eq!(questions(&session), 2);
    let settled = session.shown.iter().any(|envelope| {
        matches!(&envelope.event, Event::PermissionDecided { call, allowed: true, by, .. }
            if *call == of_agent && by == "ada")
    });
    assert!(settled, "the log says who decided");
    assert_eq!(bench.file("b.txt").as_deref(), Some("w3"));
}

async fn an_answer_at_an_agent_holds_for_those_of_its_name() {
    let mut bench = bench();
    let told = told(
        [task("t1", false), task("t2", false), calls([writes("own")]), says("done")],
        [calls([writes("w1")]), completes("x"), reads(), calls([writes("w2")]), completes("y")],
    );
    let mut session = bench.start(&told, asking());
    session.handle.send("do it").await.unwrap();
    let (call, rule, path) = question(&mut session).await;
    assert_eq!(path, ["scout"]);
    assert!(rule.contains("agents = [\"scout\"]"), "the rule says whom it speaks of: {rule}");
    assert!(session.handle.decide(&call, PermissionAnswer::allow_rule()));
    let (call, _, path) = question(&mut session).await;
    assert_eq!(path, [""; 0], "the other agent was not asked about; the session is");
    assert!(session.handle.decide(&call, PermissionAnswer::deny()));
    session.done().await;
    assert_eq!((questions(&session), bench.file("b.txt").as_deref()), (2, Some("w2")));
    session.handle.close().await;
    // The session keeps the answer, for agents that it starts when it is opened again.
    assert_eq!(bench.state().await.allowed, [rule]);
    let again =
        super::told([task("t3", false), says("done")], [reads(), calls([writes("w3")]), completes("z")]);
    let mut session = bench.resume(&again, asking(), CutOffPolicy::Continue).await.unwrap();
    session.handle.send("once more").await.unwrap();
    session.done().await;
    assert_eq!((questions(&session), bench.file("b.txt").as_deref()), (0, Some("w3")));
}
