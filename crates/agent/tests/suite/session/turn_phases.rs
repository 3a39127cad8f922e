//! An interrupt at every place of a turn leaves READY, one result a call, and a session that
//! answers.

use std::num::NonZeroU64;
use std::sync::Arc;

use journeyman_agent::hooks::{GateDecision, HooksBuilder, PreToolDecision};
use journeyman_agent::schedule::ScheduledJob;
use journeyman_agent::{Approver, ChecksSetting, PermissionAnswer, RunSettings, SessionHandle};
use journeyman_protocol::{AgentState, Mode, RunOutcome, TurnPhase};
use journeyman_tools::ToolOutput;
use serde_json::json;

use crate::session::support::bench::{Bench, assert_settled, in_mode};
use crate::session::support::model::{Told, calls, piece, says};
use crate::session::support::tools::Does;

cases![at_every_turn_phase, at_any_moment];

/// Lets everybody else have their turn.
async fn linger() {
    for _ in 0..4 {
        tokio::task::yield_now().await;
    }
}

/// A project, and a model whose task goes through every turn phase twice, with room to be seen at
/// each.
fn busy() -> (Bench, Arc<Told>) {
    let hooks = HooksBuilder::new()
        .on_pre_model_async(|_, _| {
            Box::pin(async {
                linger().await;
                GateDecision::GO_WITHOUT_CONTEXT
            })
        })
        .on_pre_tool_async(|_, _, _| {
            Box::pin(async {
                linger().await;
                PreToolDecision::Go.into()
            })
        })
        .on_post_append_async(|_, _| Box::pin(linger()));
    let slow = Does::reading("slow", |_, _| async {
        linger().await;
        Ok(ToolOutput::text("done"))
    });
    let bench = Bench::new(&[("a.txt", "one\n")]).with_hooks(hooks.build()).with_tool(slow);
    let told = Told::by(|request| {
        let text = request.messages.last().unwrap().text();
        let turn = request.messages.iter().filter(|message| message.tool_uses().next().is_some()).count();
        if text.ends_with("and now this") {
            return says("answered");
        }
        match turn {
            0 | 1 => calls([
                (["c1", "d1"][turn], "read_file", json!({ "path": "a.txt" })),
                (
                    ["c2", "d2"][turn],
                    "write_file",
                    json!({ "path": "b.txt", "content": format!("{turn}\n") }),
                ),
                (["c3", "d3"][turn], "slow", json!({})),
                (["c4", "d4"][turn], "write_file", json!({ "path": "b.txt", "content": "again\n" })),
            ])
            .after(vec![piece("I'll do it")]),
            _ => says("done"),
        }
    });
    (bench, told)
}

fn settings() -> RunSettings {
    RunSettings { approver: Approver::Handle, checks: ChecksSetting::Off, ..in_mode(Mode::Ask) }
}

/// Says yes to everything, a little later.
async fn consent(handle: SessionHandle) {
    let mut status = handle.watch_status();
    loop {
        let Ok(asked) = status.wait_for(|status| !status.asked.is_empty()).await.map(|it| it.asked.clone())
        else {
            return;
        };
        linger().await;
        for call in asked {
            handle.decide(&call, PermissionAnswer::allow());
        }
    }
}

/// Interrupts at a visit of a turn phase. In a task of its own, it has its turn whenever the
/// session waits.
async fn stop_at(handle: SessionHandle, turn_phase: TurnPhase, visit: usize) {
    let mut status = handle.watch_status();
    for number in 1..=visit {
        status.wait_for(|status| status.turn_phase == turn_phase).await.unwrap();
        if number < visit {
            status.wait_for(|status| status.turn_phase != turn_phase).await.unwrap();
        }
    }
    handle.interrupt();
}

async fn goes_on(bench: &Bench, handle: &SessionHandle, told: &Told, place: &str) {
    let report = handle.wait_until_finished().await.unwrap();
    let ended = matches!(report.outcome, RunOutcome::Interrupted | RunOutcome::Unverified);
    assert!(ended, "{place}: {report:?}");
    let status = handle.status();
    assert_eq!((status.state, status.turn_phase), (AgentState::Ready, TurnPhase::Ready), "{place}");
    assert_eq!(status.asked, [], "{place}");
    assert_settled(bench);
    handle.send("and now this").await.unwrap();
    assert_eq!(handle.wait_until_finished().await.unwrap().text, "answered", "{place}");
    let text = told.requests().last().unwrap().messages.last().unwrap().text();
    assert!(text.ends_with("and now this"), "{place}: {text}");
    assert_settled(bench);
}

async fn at_every_turn_phase() {
    let all = [
        TurnPhase::PreModel,
        TurnPhase::StreamingModel,
        TurnPhase::ToolPending,
        TurnPhase::AwaitingApproval,
        TurnPhase::PreTool,
        TurnPhase::ToolExecuting,
        TurnPhase::PostTool,
    ];
    for turn_phase in all {
        for visit in 1..=2 {
            let place = format!("{turn_phase:?}, visit {visit}");
            let (mut bench, told) = busy();
            let session = bench.start(&told, settings());
            let consenting = tokio::spawn(consent(session.handle.clone()));
            let lingering = ScheduledJob::from_closure(|_| async {
                linger().await;
                Ok(None)
            });
            session.handle.schedule().every("after calls", NonZeroU64::MIN, lingering).unwrap();
            let watching = tokio::spawn(stop_at(session.handle.clone(), turn_phase, visit));
            session.handle.send("do it").await.unwrap();
            let outcome = session.handle.wait_until_finished().await.unwrap().outcome;
            // Where the tree is on record by then, the task passes there without a pause.
            assert!(
                outcome == RunOutcome::Interrupted || turn_phase == TurnPhase::PreTool,
                "{place}: {outcome:?}"
            );
            watching.abort();
            goes_on(&bench, &session.handle, &told, &place).await;
            consenting.abort();
        }
    }
}

/// After any number of polls, wherever that is.
async fn at_any_moment() {
    for polls in 0..150 {
        let (mut bench, told) = busy();
        let session = bench.start(&told, settings());
        let consenting = tokio::spawn(consent(session.handle.clone()));
        session.handle.send("do it").await.unwrap();
        for _ in 0..polls {
            tokio::task::yield_now().await;
        }
        session.handle.interrupt();
        goes_on(&bench, &session.handle, &told, &format!("after {polls} polls")).await;
        consenting.abort();
    }
}
