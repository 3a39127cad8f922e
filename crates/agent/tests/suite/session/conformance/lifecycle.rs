//! A session's life: its first turn and its last, snapshots, forks, resuming.

use journeyman_agent::hooks::HooksBuilder;
use journeyman_agent::todos::TodoDraft;
use journeyman_agent::{AgentError, ChecksSetting, CutOffPolicy, ForkPoint, RunSettings, State, fork};
use journeyman_model::ModelError;
use journeyman_protocol::{AgentState, Event, ResumeStrategy, Role, RunOutcome, Seq, SessionId, TurnPhase};
use serde_json::json;

use crate::session::support::bench::{Bench, NOW, Session, auto, id};
use crate::session::support::model::{Told, calls, fails, piece, result, says};

cases![
    case_01_a_new_session_is_ready,
    case_02_a_turn_gives_the_models_text,
    case_03_streaming_shows_deltas_then_one_end,
    case_04_turns_keep_what_was_said,
    case_05_a_snapshot_has_a_name_and_a_place,
    case_06_a_fork_has_the_history_and_leaves_its_parent_alone,
    case_07_resuming_restores_messages_todos_and_hooks,
    case_33_a_task_of_two_tools_asks_the_model_three_times,
    case_34_a_provider_that_refuses_ends_the_turn_only,
];

fn settings() -> RunSettings {
    RunSettings { checks: ChecksSetting::Off, ..auto() }
}

/// What the model was told in each message, as text.
fn said(told: &Told, request: usize) -> Vec<String> {
    told.requests()[request].messages.iter().map(|message| message.text()).collect()
}

async fn ask(session: &Session, text: &str) -> String {
    session.handle.send(text).await.unwrap();
    session.handle.wait_until_finished().await.unwrap().text.clone()
}

async fn case_01_a_new_session_is_ready() {
    let mut bench = Bench::new(&[]);
    let session = bench.start(&Told::new([]), settings());
    let status = session.handle.status();
    assert_eq!((status.state, status.turn_phase, status.step), (AgentState::Ready, TurnPhase::Ready, 0));
    assert_eq!((status.queued, status.asked.len(), status.unwritten), (0, 0, 0));
    assert_eq!(session.handle.last_position(), Seq::START);
    assert_eq!(bench.log.appends(), 0, "nothing is written before the first message");
}

async fn case_02_a_turn_gives_the_models_text() {
    let mut bench = Bench::new(&[]);
    let session = bench.start(&Told::new([says("Hello.")]), settings());
    session.handle.send("hello").await.unwrap();
    let report = session.handle.wait_until_finished().await.unwrap();
    assert_eq!((report.outcome, report.text.as_str()), (RunOutcome::Unverified, "Hello."));
    let status = session.handle.status();
    assert_eq!((status.state, status.step), (AgentState::Ready, 1));
}

async fn case_03_streaming_shows_deltas_then_one_end() {
    let mut bench = Bench::new(&[]);
    let told = Told::new([says("one two").after(vec![piece("one "), piece("two")])]);
    let mut session = bench.start(&told, settings());
    ask(&session, "count").await;
    session.done().await;
    let kinds: Vec<&str> = session.shown.iter().map(|envelope| envelope.event.kind()).collect();
    let place = |kind: &str| kinds.iter().position(|one| *one == kind).unwrap_or_else(|| panic!("no {kind}"));
    assert!(place("text_delta") < place("text_end") && place("text_end") < place("done"));
    assert_eq!(kinds.iter().filter(|kind| **kind == "done").count(), 1);
    assert_eq!(*kinds.last().unwrap(), "done");
    let states: Vec<AgentState> = session
        .shown
        .iter()
        .filter_map(|envelope| match envelope.event {
            Event::StateChanged { state } => Some(state),
            _ => None,
        })
        .collect();
    assert_eq!(states, [AgentState::Working, AgentState::Ready]);
    assert!(place("state_changed") < place("text_delta"));
}

async fn case_04_turns_keep_what_was_said() {
    let mut bench = Bench::new(&[]);
    let told = Told::new([says("one"), says("two"), says("three")]);
    let session = bench.start(&told, settings());
    for (task, answer) in [("first", "one"), ("second", "two"), ("third", "three")] {
        assert_eq!(ask(&session, task).await, answer);
    }
    let heard = said(&told, 2);
    assert!(heard[0].ends_with("first") || heard[0].contains("first"), "{heard:?}");
    assert_eq!(heard[1..], ["one", "second", "two", "third"]);
    assert_eq!(session.handle.status().step, 3);
}

async fn case_05_a_snapshot_has_a_name_and_a_place() {
    let mut bench = Bench::new(&[]);
    let session = bench.start(&Told::new([says("one"), says("two")]), settings());
    ask(&session, "first").await;
    let unnamed = session.handle.last_position();
    let place = session.handle.snapshot("before the risky part").await.unwrap();
    assert_eq!(place, unnamed, "a place without a name is the bookmark");
    assert_eq!(bench.state().await.snapshots.get("before the risky part"), Some(&place), "it is durable");
    ask(&session, "second").await;
    let later = session.handle.snapshot("Später").await.unwrap();
    assert!(later > place);
    // One name is one place: the newest.
    assert_eq!(session.handle.snapshot("before the risky part").await.unwrap(), later);
    assert_eq!(bench.state().await.snapshots.get("before the risky part"), Some(&later));
    for name in ["", "  ", "two\nlines", &"long ".repeat(30)] {
        let refused = session.handle.snapshot(name).await;
        assert!(matches!(refused, Err(AgentError::SnapshotName { .. })), "{name:?}: {refused:?}");
    }
}

async fn case_06_a_fork_has_the_history_and_leaves_its_parent_alone() {
    let mut bench = Bench::new(&[]);
    let told = Told::new([says("one"), says("two"), says("three")]);
    let session = bench.start(&told, settings());
    ask(&session, "first").await;
    let place = session.handle.snapshot("here").await.unwrap();
    ask(&session, "second").await;
    let before = bench.log.entries();
    let child = SessionId::new(NOW, 8);
    let point = ForkPoint::Snapshot("here".to_owned());
    assert_eq!(
        fork(&*bench.log, &id(), &point, &child, &journeyman_agent::Clock::new(|| NOW)).await.unwrap(),
        place
    );
    let state = State::load(&*bench.log, &child).await.unwrap();
    assert_eq!(state.lineage, [id()]);
    assert_eq!(state.counters.step, 1);
    let other = Told::new([says("another two")]);
    let forked = bench.resume_id(&other, settings(), child.clone(), CutOffPolicy::Continue).await.unwrap();
    assert_ne!(forked.handle.id(), session.handle.id());
    assert_eq!(ask(&forked, "instead").await, "another two");
    let heard = said(&other, 0);
    assert_eq!((heard.len(), heard[1].as_str()), (3, "one"));
    assert!(heard[2].contains("instead") && !heard.concat().contains("second"), "{heard:?}");
    assert_eq!(bench.log.entries_of(&id()), before, "the parent is not touched");
    // Nor does the parent reach the child.
    assert_eq!(ask(&session, "third").await, "three");
    assert_eq!(said(&told, 2)[1..], ["one", "second", "two", "third"]);
    let unknown = fork(
        &*bench.log,
        &id(),
        &ForkPoint::Snapshot("there".to_owned()),
        &child,
        &journeyman_agent::Clock::new(|| NOW),
    )
    .await;
    let text = unknown.unwrap_err().to_string();
    assert_eq!(text, "there is no snapshot `there`; there are: here");
}

async fn case_07_resuming_restores_messages_todos_and_hooks() {
    let hooks = HooksBuilder::new().on_post_model(|_, reply| {
        reply.content.push(journeyman_protocol::Block::text("seen by the hook"));
    });
    let mut bench = Bench::new(&[]).with_hooks(hooks.build());
    let session = bench.start(&Told::new([says("one")]), settings());
    session
        .handle
        .todos()
        .set(vec![TodoDraft { title: Some("write the parser".to_owned()), ..TodoDraft::default() }])
        .unwrap();
    ask(&session, "first").await;
    session.handle.close().await;
    let before = bench.state().await;

    let told = Told::new([says("two")]);
    let mut session = bench.resume(&told, settings(), CutOffPolicy::Continue).await.unwrap();
    let resumed = session.until(|event| matches!(event, Event::AgentResumed { .. })).await;
    let Event::AgentResumed { strategy, interrupted, changed } = resumed else { unreachable!() };
    assert_eq!((strategy, interrupted.len(), changed.len()), (ResumeStrategy::Manual, 0, 0));
    assert_eq!(session.handle.todos().get(), before.todos);
    assert_eq!(before.todos[0].title, "write the parser");
    assert_eq!(ask(&session, "second").await, "two\nseen by the hook");
    let request = &told.requests()[0];
    assert_eq!(request.messages[..2], before.messages);
    assert_eq!(request.system, before.system, "byte for byte");
    let last = request.messages.last().unwrap();
    assert_eq!(last.role, Role::User);
    assert!(last.text().contains("second") && last.text().contains("write the parser"), "{}", last.text());
}

async fn case_33_a_task_of_two_tools_asks_the_model_three_times() {
    let mut bench = Bench::new(&[]);
    let told = Told::new([
        calls([("c1", "write_file", json!({ "path": "a.txt", "content": "the text\n" }))]),
        calls([("c2", "read_file", json!({ "path": "a.txt" }))]),
        says("done"),
    ]);
    let mut session = bench.start(&told, settings());
    assert_eq!(ask(&session, "write it, then read it").await, "done");
    assert_eq!(told.requests().len(), 3);
    assert!(result(&told.requests()[2], "c2").contains("the text"));
    assert_eq!(session.done().await.turns, 3);
}

async fn case_34_a_provider_that_refuses_ends_the_turn_only() {
    let bench = Bench::new(&[]);
    let refused = ModelError::RateLimited { message: "too many requests".to_owned() };
    let restart = journeyman_model::Delta::Restart {
        attempt: 2,
        of: 4,
        wait_ms: 10,
        reason: "too many requests".to_owned(),
    };
    let told = Told::new([fails(refused), says("retried").after(vec![restart])]);
    // Nobody listens.
    let handle = journeyman_agent::start(bench.parts(&told), settings(), id());
    handle.send("first").await.unwrap();
    let report = handle.wait_until_finished().await.unwrap();
    assert_eq!(report.outcome, RunOutcome::Error);
    assert!(report.summary.contains("too many requests"), "{}", report.summary);
    assert_eq!(handle.status().state, AgentState::Ready);
    // The client's own retries are told of, and the turn comes to its end.
    let session = bench.shown_by(handle);
    assert_eq!(ask(&session, "second").await, "retried");
    let retries = bench.log.events().iter().filter(|event| matches!(event, Event::Retry { .. })).count();
    assert_eq!(retries, 1);
}
