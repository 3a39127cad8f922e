//! Promises that were broken once: what a crash, a change of settings or an odd moment leaves
//! behind.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use futures_util::{FutureExt as _, StreamExt as _};
use journeyman_agent::hooks::{GateDecision, Hooks, HooksBuilder, PreToolAnswer, PreToolDecision};
use journeyman_agent::{
    AgentError, Approver, ChecksSetting, CutOffPolicy, ForkPoint, MessageId, QueuedMessage, Record,
    RecordedSettings, RunSettings, SessionHandle, SessionParts, State, fork, resume, start,
};
use journeyman_model::{DeltaStream, Model, ModelError, ModelRequest, SystemPart};
use journeyman_protocol::{
    AgentState, Block, CallState, CallTransition, Effects, Message, MessageKind, Mode, ReminderCategory,
    Role, RunOutcome, Seq, SessionId, StopReason, ToolSpec, ToolUse,
};
use journeyman_store::{MemoryStore, NewEntry, Store};
use journeyman_tools::{Tool, ToolContext, ToolError, ToolOutput};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::session::support::bench::{Bench, NOW, assert_settled, auto, id, in_mode};
use crate::session::support::log::Failing;
use crate::session::support::model::{Step, Told, call, calls, fails, result, says, stopped};
use crate::session::support::tools::{Meet, Trail};

cases![
    a_call_ends_in_one_piece,
    what_is_said_at_a_limit_is_the_next_task,
    a_wider_mode_of_before_allows_nothing_now,
    a_persons_yes_outlives_a_crash,
    a_task_cut_off_before_its_first_word_is_begun_again,
    a_call_of_before_is_answered_in_its_own_form,
    the_system_prompt_says_the_mode_that_holds,
    a_model_without_tools_hears_all_that_was_said,
    a_restart_before_the_fall_back_loses_nothing,
    what_a_hook_denies_never_reaches_the_model,
    a_denied_message_takes_nothing_with_it,
    a_call_with_a_masked_secret_is_not_taken_up,
    what_hooks_say_is_searched_for_secrets,
    what_a_hook_says_beside_a_denial_is_heard,
    a_model_that_paused_goes_on_with_its_own_words,
    a_session_that_cannot_be_read_is_left_free,
    a_session_that_died_does_not_look_busy,
    a_fork_begins_with_no_permissions,
    what_is_too_long_for_the_log_stops_nothing,
    more_than_a_transcript_takes_is_not_queued,
    a_flood_of_calls_in_text_is_cut,
    nothing_is_written_after_the_end,
    a_handle_that_is_dropped_writes_to_the_end_and_no_further,
];

/// Writes a log as a process that is gone would have left it.
async fn left_behind(bench: &Bench, records: Vec<Record>) {
    bench.log.create(&id(), "/project", "do it", NOW).await.unwrap();
    let entry = |record: &Record| NewEntry {
        channel: None,
        kind: record.kind().to_owned(),
        at: NOW,
        payload: serde_json::to_vec(record).unwrap(),
    };
    bench.log.append(&id(), Seq::START, records.iter().map(entry).collect()).await.unwrap();
}

fn setting(mode: Mode, tool_calling: bool) -> Record {
    Record::Setting(RecordedSettings {
        model: "test/told".to_owned(),
        mode,
        tool_calling,
        asked: journeyman_agent::StartOptions::default(),
    })
}

fn context() -> Record {
    Record::Context { system: vec![SystemPart { text: "work well".to_owned(), cache: true }] }
}

fn queued(number: u64, text: &str) -> Record {
    let (id, kind, category) = (MessageId(number), MessageKind::User, ReminderCategory::General);
    Record::Queued(QueuedMessage { id, kind, category, text: text.to_owned(), images: Vec::new() })
}

fn assistant(content: Vec<Block>, stop: StopReason) -> Record {
    let message = Message { role: Role::Assistant, content };
    Record::Message { message, taken: Vec::new(), stop: Some(stop), calls: Vec::new() }
}

fn step(call: &ToolUse, state: CallState, by: Option<&str>) -> Record {
    Record::Call(CallTransition {
        call: call.id.clone(),
        tool: call.name.clone(),
        state,
        note: None,
        by: by.map(str::to_owned),
        verdict: None,
    })
}

/// A session in the middle of its first task, whose model has just made these calls.
fn called(mode: Mode, made: &[ToolUse]) -> Vec<Record> {
    let blocks = made.iter().cloned().map(Block::ToolUse).collect();
    vec![
        Record::Began,
        setting(mode, true),
        context(),
        Record::message(Message::user_text("do it")),
        assistant(blocks, StopReason::ToolUse),
    ]
}

/// Does nothing, and then says so.
struct Arms(Arc<AtomicBool>);

impl Tool for Arms {
    fn spec(&self) -> ToolSpec {
        let input_schema = json!({ "type": "object" });
        ToolSpec { name: "arm".to_owned(), description: "Arms.".to_owned(), input_schema }
    }

    fn effects(&self, _input: &Value) -> Result<Effects, ToolError> {
        Ok(Effects::default())
    }

    fn summary(&self, _input: &Value) -> String {
        "arm".to_owned()
    }

    fn is_read_only(&self) -> bool {
        true
    }

    fn call<'a>(
        &'a self,
        _context: &'a ToolContext,
        _input: Value,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        self.0.store(true, Ordering::SeqCst);
        async { Ok(ToolOutput::text("armed")) }.boxed()
    }
}

/// Somebody sends a message, and so writes the log, at every moment of a call's end. Were the end
/// on disk without the result, a crash there would run the call twice; the bench looks at every
/// append.
async fn a_call_ends_in_one_piece() {
    let armed = Arc::new(AtomicBool::new(false));
    let bench = Bench::new(&[]).with_tool(Arms(Arc::clone(&armed)));
    let told = Told::new([calls([("c1", "arm", json!({}))]), says("heard"), says("and that")]);
    let handle: Arc<Mutex<Option<SessionHandle>>> = Arc::default();
    let sender = Arc::clone(&handle);
    let sends = move || {
        if armed.load(Ordering::SeqCst)
            && let Ok(mut sender) = sender.try_lock()
            && let Some(handle) = sender.as_mut()
        {
            let sending = handle.clone();
            let thread = std::thread::spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
                runtime.block_on(sending.send("and this"))
            });
            // Refused at the end of the session, and only then.
            thread.join().unwrap().ok();
        }
        NOW
    };
    let parts = SessionParts { clock: journeyman_agent::Clock::new(sends), ..bench.parts(&told) };
    let session = start(parts, RunSettings { max_turns: 2, ..auto() }, id());
    *handle.lock().unwrap() = Some(session.clone());
    session.send("do it").await.unwrap();
    told.asked(2).await;
    *handle.lock().unwrap() = None;
    session.close().await;
    assert_settled(&bench);
}

/// A tool that waits for the gate.
fn waiting(bench: Bench) -> (Bench, Arc<Notify>) {
    let gate = Arc::new(Notify::new());
    let trail = Arc::new(Trail::default());
    let wait = Meet { name: "wait", read_only: true, barrier: None, gate: Some(Arc::clone(&gate)), trail };
    (bench.with_tool(wait), gate)
}

/// A limit ends the task in which a message came. Nobody would answer it there.
async fn what_is_said_at_a_limit_is_the_next_task() {
    let (mut bench, gate) = waiting(Bench::new(&[]));
    let told = Told::new([calls([("c1", "wait", json!({}))]), says("heard")]);
    let session = bench.start(&told, RunSettings { max_turns: 1, ..auto() });
    session.handle.send("do it").await.unwrap();
    told.asked(1).await;
    session.handle.send("and this").await.unwrap();
    gate.notify_one();
    let report = session.handle.wait_until_finished().await.unwrap();
    assert_eq!(report.text, "heard", "{}", report.summary);
    assert_eq!(told.requests()[1].messages.last().unwrap().text(), "and this");
    assert_settled(&bench);
}

fn asking(mode: Mode) -> RunSettings {
    RunSettings { approver: Approver::Nobody, checks: ChecksSetting::Off, ..in_mode(mode) }
}

/// What `auto` had allowed when the program was killed is asked for in `ask`.
async fn a_wider_mode_of_before_allows_nothing_now() {
    for by in [None, Some("hook")] {
        let mut bench = Bench::new(&[]);
        let write = call("c1", "write_file", json!({ "path": "a.txt", "content": "a\n" }));
        let mut records = called(Mode::Auto, std::slice::from_ref(&write));
        records.push(step(&write, CallState::Approved, by));
        left_behind(&bench, records).await;
        let told = Told::new([says("done")]);
        let session = bench.resume(&told, asking(Mode::Ask), CutOffPolicy::Continue).await.unwrap();
        session.handle.wait_until_finished().await.unwrap();
        assert_eq!(bench.file("a.txt"), None, "{by:?}");
        let said = result(&told.requests()[0], "c1");
        assert!(said.contains("nobody can be asked"), "{said}");
    }
}

async fn a_persons_yes_outlives_a_crash() {
    let mut bench = Bench::new(&[]);
    let write = call("c1", "write_file", json!({ "path": "a.txt", "content": "a\n" }));
    let mut records = called(Mode::Ask, std::slice::from_ref(&write));
    records.push(step(&write, CallState::ApprovalRequired, None));
    records.push(step(&write, CallState::Approved, Some("user")));
    left_behind(&bench, records).await;
    let told = Told::new([says("done")]);
    let session = bench.resume(&told, asking(Mode::Ask), CutOffPolicy::Continue).await.unwrap();
    session.handle.wait_until_finished().await.unwrap();
    assert_eq!(bench.file("a.txt").as_deref(), Some("a\n"));
}

/// The task before it was stopped in the middle of its calls. The model must not go on with that
/// one.
async fn a_task_cut_off_before_its_first_word_is_begun_again() {
    let mut bench = Bench::new(&[]);
    let write = call("c1", "write_file", json!({ "path": "a.txt", "content": "a\n" }));
    let mut records = called(Mode::Auto, std::slice::from_ref(&write));
    let block = Block::result(write.id.clone(), "not run: interrupted by the user", true);
    records.extend([
        step(&write, CallState::Interrupted, None),
        Record::Result { call: write.id.clone(), block },
        Record::Ended { outcome: RunOutcome::Interrupted, unverified: None },
        queued(2, "do something else"),
        Record::Began,
    ]);
    left_behind(&bench, records).await;
    let told = Told::new([says("done")]);
    let session = bench.resume(&told, asking(Mode::Auto), CutOffPolicy::Continue).await.unwrap();
    session.handle.wait_until_finished().await.unwrap();
    let requests = told.requests();
    assert_eq!(requests.len(), 1);
    let last = requests[0].messages.last().unwrap().text();
    assert!(last.ends_with("do something else"), "{last}");
}

/// A model of the other kind takes over in the middle of a call.
async fn a_call_of_before_is_answered_in_its_own_form() {
    let read = call("c1", "list_files", json!({}));
    let mut bench = Bench::new(&[("a.txt", "a\n")]);
    left_behind(&bench, called(Mode::Auto, std::slice::from_ref(&read))).await;
    let told = Told::new([says("done")]);
    let settings = RunSettings { tool_calling: false, ..asking(Mode::Auto) };
    let session = bench.resume(&told, settings, CutOffPolicy::Continue).await.unwrap();
    session.handle.wait_until_finished().await.unwrap();
    let request = &told.requests()[0];
    let plain = |block: &Block| matches!(block, Block::Text { .. });
    assert!(request.messages.iter().all(|message| message.content.iter().all(plain)), "{request:?}");
    assert!(request.messages[1].text().contains("<call tool=\"list_files\">{}</call>"), "{request:?}");
    let heard = request.messages[2].text();
    assert!(heard.starts_with("<result") && heard.contains("a.txt"), "{heard}");
    drop(session);

    let bench = Bench::new(&[("a.txt", "a\n")]);
    let message = Message { role: Role::Assistant, content: vec![Block::text("I look.")] };
    let asked = Record::Message { message, taken: Vec::new(), stop: None, calls: vec![read] };
    let first = Record::message(Message::user_text("do it"));
    left_behind(&bench, vec![Record::Began, setting(Mode::Auto, false), context(), first, asked]).await;
    let told = Told::new([says("done")]);
    let parts = bench.parts(&Arc::clone(&told));
    // Another model: the one before was found to take no tools.
    let parts = SessionParts { model: Arc::new(Renamed(Arc::clone(&told))), ..parts };
    let handle = resume(parts, asking(Mode::Auto), id(), CutOffPolicy::Continue).await.unwrap();
    handle.wait_until_finished().await.unwrap();
    let request = &told.requests()[0];
    assert!(!request.tools.is_empty());
    assert!(request.messages[2].text().starts_with("<result"), "{request:?}");
}

/// The same under another name.
struct Renamed(Arc<Told>);

impl Model for Renamed {
    fn name(&self) -> String {
        "test/other".to_owned()
    }

    fn stream<'a>(&'a self, request: &'a ModelRequest, cancel: CancellationToken) -> DeltaStream<'a> {
        self.0.stream(request, cancel)
    }
}

async fn the_system_prompt_says_the_mode_that_holds() {
    let mut bench = Bench::new(&[]);
    let told = Told::new([says("planned"), says("done")]);
    let session = bench.start(&told, asking(Mode::Plan));
    session.handle.send("plan it").await.unwrap();
    session.handle.wait_until_finished().await.unwrap();
    session.handle.close().await;
    drop(session);
    let session = bench.resume(&told, asking(Mode::Auto), CutOffPolicy::Continue).await.unwrap();
    session.handle.send("do it").await.unwrap();
    session.handle.wait_until_finished().await.unwrap();
    let fresh = Told::new([says("done")]);
    Bench::new(&[]).run(&fresh, asking(Mode::Auto)).await;
    let system = |told: &Told, request: usize| told.requests()[request].system.clone();
    assert_ne!(system(&told, 0), system(&told, 1));
    assert_eq!(system(&told, 1), system(&fresh, 0));
}

fn no_tools() -> Step {
    fails(ModelError::ToolsUnsupported { message: "no tools here".to_owned() })
}

/// The second task finds that the model takes no tools: the first one is not forgotten.
async fn a_model_without_tools_hears_all_that_was_said() {
    let mut bench = Bench::new(&[("a.txt", "right\n")]);
    let told = Told::new([
        calls([("c1", "read_file", json!({ "path": "a.txt" }))]),
        says("it says right"),
        no_tools(),
        says("done"),
    ]);
    let session = bench.start(&told, asking(Mode::Auto));
    for task in ["look at it", "and now the rest"] {
        session.handle.send(task).await.unwrap();
        session.handle.wait_until_finished().await.unwrap();
    }
    let request = &told.requests()[3];
    let said: Vec<String> = request.messages.iter().map(Message::text).collect();
    assert_eq!(said.len(), 5, "{said:#?}");
    assert!(said[0].contains("look at it") && said[2].contains("right"), "{said:#?}");
    assert_eq!([said[3].as_str(), said[4].as_str()], ["it says right", "and now the rest"]);
    assert!(request.system.iter().any(|part| part.text.contains("Tools as text")));
    assert_settled(&bench);
}

async fn a_restart_before_the_fall_back_loses_nothing() {
    let mut bench = Bench::new(&[]);
    let first = Record::message(Message::user_text("do it well"));
    left_behind(&bench, vec![Record::Began, setting(Mode::Auto, true), context(), first]).await;
    let told = Told::new([no_tools(), says("done")]);
    let session = bench.resume(&told, asking(Mode::Auto), CutOffPolicy::Continue).await.unwrap();
    let report = session.handle.wait_until_finished().await.unwrap();
    assert_eq!(report.text, "done", "{}", report.summary);
    assert_eq!(told.requests()[1].messages[0].text(), "do it well");
}

/// Lets nothing through that speaks of dragons.
fn no_dragons() -> Hooks {
    HooksBuilder::new()
        .on_prompt(|_, text| {
            if text.contains("dragons") {
                GateDecision::Deny { reason: "no dragons".to_owned() }
            } else {
                GateDecision::GO_WITHOUT_CONTEXT
            }
        })
        .build()
}

async fn what_a_hook_denies_never_reaches_the_model() {
    let mut bench = Bench::new(&[]).with_hooks(no_dragons());
    left_behind(&bench, vec![queued(1, "tell of dragons"), queued(2, "do it")]).await;
    let told = Told::new([no_tools(), says("done")]);
    let session = bench.resume(&told, asking(Mode::Auto), CutOffPolicy::Continue).await.unwrap();
    session.handle.wait_until_finished().await.unwrap();
    assert!(told.heard().contains("do it") && !told.heard().contains("tell of dragons"));
}

/// A reminder that waited beside it is heard with the next message.
async fn a_denied_message_takes_nothing_with_it() {
    let mut bench = Bench::new(&[]).with_hooks(no_dragons());
    let told = Told::new([says("done")]);
    let session = bench.start(&told, asking(Mode::Auto));
    session.handle.remind(ReminderCategory::General, "mind the gap").await.unwrap();
    session.handle.send("tell of dragons").await.unwrap();
    let report = session.handle.wait_until_finished().await.unwrap();
    assert_eq!(report.outcome, RunOutcome::Error, "{}", report.summary);
    session.handle.send("do it").await.unwrap();
    session.handle.wait_until_finished().await.unwrap();
    let heard = told.requests()[0].messages.last().unwrap().text();
    assert!(heard.contains("do it") && heard.contains("mind the gap"), "{heard}");
}

/// The log has the secret's mask in its place; the file was to have the secret.
async fn a_call_with_a_masked_secret_is_not_taken_up() {
    let mut bench = Bench::new(&[]);
    let content = format!("key = {}\n", journeyman_policy::secrets::SECRET_MASK);
    let write = call("c1", "write_file", json!({ "path": "a.txt", "content": content }));
    left_behind(&bench, called(Mode::Auto, std::slice::from_ref(&write))).await;
    let told = Told::new([says("done")]);
    let session = bench.resume(&told, asking(Mode::Auto), CutOffPolicy::Continue).await.unwrap();
    session.handle.wait_until_finished().await.unwrap();
    assert_eq!(bench.file("a.txt"), None);
    let said = result(&told.requests()[0], "c1");
    assert!(said.contains("its arguments held a secret"), "{said}");
}

async fn what_hooks_say_is_searched_for_secrets() {
    let secret = "correct-horse-battery-staple";
    let hooks = HooksBuilder::new()
        .on_session_start(move |_| vec![format!("the password is {secret}")])
        .on_prompt(move |_, _| GateDecision::Go { context: vec![format!("it is {secret}")] })
        .on_pre_model(move |_, _| GateDecision::Go { context: vec![format!("again: {secret}")] })
        .build();
    let mut bench = Bench::new(&[]).with_hooks(hooks);
    bench.secrets = vec![secret.to_owned()];
    let told = Told::new([says("done")]);
    bench.run(&told, asking(Mode::Auto)).await;
    let heard = told.heard();
    assert!(heard.contains("the password is") && heard.contains("it is") && heard.contains("again:"));
    assert!(!heard.contains(secret), "{heard}");
}

async fn what_a_hook_says_beside_a_denial_is_heard() {
    let denies = |_: &_, _: &_, _: &_| PreToolAnswer {
        decision: PreToolDecision::Deny { reason: "not here".to_owned() },
        context: vec!["use the other door".to_owned()],
        ..PreToolAnswer::default()
    };
    let mut bench = Bench::new(&[]).with_hooks(HooksBuilder::new().on_pre_tool(denies).build());
    let told = Told::new([calls([("c1", "list_files", json!({}))]), says("done")]);
    bench.run(&told, asking(Mode::Auto)).await;
    let said = result(&told.requests()[1], "c1");
    assert!(said.contains("not here") && said.contains("use the other door"), "{said}");
}

/// Nothing is put into the mouth of a model that goes on where it paused.
async fn a_model_that_paused_goes_on_with_its_own_words() {
    let hooks = HooksBuilder::new()
        .on_pre_model(|_, _| GateDecision::Go { context: vec!["mind the gap".to_owned()] })
        .build();
    let mut bench = Bench::new(&[]).with_hooks(hooks);
    let told = Told::new([stopped(vec![Block::text("I think")], StopReason::Paused), says("done")]);
    bench.run(&told, asking(Mode::Auto)).await;
    let last = told.requests()[1].messages.last().unwrap().clone();
    assert_eq!((last.role, last.text().as_str()), (Role::Assistant, "I think"));
}

async fn a_session_that_cannot_be_read_is_left_free() {
    let mut bench = Bench::new(&[]);
    left_behind(&bench, vec![Record::Began]).await;
    let store = MemoryStore::new();
    store.create(&id(), "/project", "do it", NOW).await.unwrap();
    let kind = "of_the_future".to_owned();
    let newer =
        NewEntry { channel: None, kind, at: NOW, payload: b"{\"record\":\"of_the_future\"}".to_vec() };
    store.append(&id(), Seq::START, vec![newer]).await.unwrap();
    let store: Arc<dyn Store> = Arc::new(store);
    let parts = SessionParts { store: Arc::clone(&store), ..bench.parts(&Told::new([])) };
    let opened = resume(parts, asking(Mode::Auto), id(), CutOffPolicy::Continue).await;
    assert!(matches!(opened, Err(AgentError::NewerRecord { .. })));
    store.acquire_lease(&id(), "somebody else", NOW, 1_000).await.unwrap();
    bench.secrets.clear();
}

async fn a_session_that_died_does_not_look_busy() {
    let mut bench = Bench::new(&[]);
    let session = bench.start(&Arc::new(Panics), asking(Mode::Auto));
    session.handle.send("do it").await.unwrap();
    assert!(matches!(session.handle.wait_until_finished().await, Err(AgentError::Ended)));
    let status = session.handle.status();
    assert_eq!((status.state, status.asked.len()), (AgentState::Ready, 0));
}

/// Has a bug.
struct Panics;

impl Model for Panics {
    fn name(&self) -> String {
        "test/panics".to_owned()
    }

    fn stream<'a>(&'a self, _request: &'a ModelRequest, _cancel: CancellationToken) -> DeltaStream<'a> {
        futures_util::stream::once(async { panic!("a bug, as the test wants it") }).boxed()
    }
}

async fn a_fork_begins_with_no_permissions() {
    let bench = Bench::new(&[]);
    let first = Record::message(Message::user_text("do it"));
    let rule = Record::Allowed { rule: "run_command exactly this: make install".to_owned() };
    left_behind(
        &bench,
        vec![Record::Began, first, rule, Record::Ended { outcome: RunOutcome::Unverified, unverified: None }],
    )
    .await;
    let child = SessionId::new(NOW, 8);
    fork(&*bench.log, &id(), &ForkPoint::End, &child, &journeyman_agent::Clock::new(|| NOW)).await.unwrap();
    let allowed = |id| {
        let log = Arc::clone(&bench.log);
        async move { State::load(&*log, &id).await.unwrap().allowed.len() }
    };
    assert_eq!((allowed(id()).await, allowed(child).await), (1, 0));
}

/// Gives as much as it is asked for.
struct Floods;

impl Tool for Floods {
    fn spec(&self) -> ToolSpec {
        let input_schema = json!({ "type": "object" });
        ToolSpec { name: "flood".to_owned(), description: "Floods.".to_owned(), input_schema }
    }

    fn effects(&self, _input: &Value) -> Result<Effects, ToolError> {
        Ok(Effects::default())
    }

    fn summary(&self, _input: &Value) -> String {
        "flood".to_owned()
    }

    fn is_read_only(&self) -> bool {
        true
    }

    fn call<'a>(
        &'a self,
        context: &'a ToolContext,
        _input: Value,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        (context.emit)("flood", json!("w".repeat(17 << 20)));
        async { Ok(ToolOutput::text("w".repeat(17 << 20))) }.boxed()
    }
}

/// An entry that the store never takes would be tried for ever, and everything after it would wait.
async fn what_is_too_long_for_the_log_stops_nothing() {
    let store = |_: &std::path::Path| Arc::new(MemoryStore::new()) as Arc<dyn Store>;
    let mut bench = Bench::with_log(&[], store, Failing::Never).with_tool(Floods);
    let long = "c".repeat(1 << 20);
    let told = Told::new([
        calls([("c1", "flood", json!({})), (&long, "list_files", json!({}))]),
        says(&"w".repeat(17 << 20)),
        says("done"),
    ]);
    let session = bench.start(&told, asking(Mode::Auto));
    session.handle.send("do it").await.unwrap();
    let report = session.handle.wait_until_finished().await.unwrap();
    assert!(report.summary.contains("no model's output limit"), "{:?}", report.outcome);
    assert!(result(&told.requests()[1], "c1").contains("too long to be kept"));
    session.handle.send("and now").await.unwrap();
    assert_eq!(session.handle.wait_until_finished().await.unwrap().text, "done");
    assert!(bench.log.entries().iter().map(|entry| entry.payload.len()).sum::<usize>() < 8 << 20);
}

async fn more_than_a_transcript_takes_is_not_queued() {
    let (mut bench, gate) = waiting(Bench::new(&[]));
    let told = Told::new([calls([("c1", "wait", json!({}))]), says("heard")]);
    let session = bench.start(&told, asking(Mode::Auto));
    session.handle.send("do it").await.unwrap();
    told.asked(1).await;
    let long = "w".repeat(3 << 20);
    for _ in 0..2 {
        session.handle.send(long.clone()).await.unwrap();
    }
    assert!(matches!(
        session.handle.send(long.clone()).await,
        Err(AgentError::QueueFull { messages: 2, .. })
    ));
    // As the log has it, each of these is six characters.
    let odd = "\u{1}".repeat(2 << 20);
    assert!(matches!(session.handle.send(odd).await, Err(AgentError::MessageTooLong { .. })));
    gate.notify_one();
    session.handle.wait_until_finished().await.unwrap();
    assert_eq!(told.requests()[1].messages.last().unwrap().text().matches(&long).count(), 2);
}

async fn a_flood_of_calls_in_text_is_cut() {
    let mut bench = Bench::new(&[]);
    let told = Told::new([says(&"<call tool=\"list_files\">{}</call>\n".repeat(20_000)), says("done")]);
    let settings = RunSettings { tool_calling: false, ..asking(Mode::Auto) };
    let report = bench.run(&told, settings).await;
    assert_eq!(report.text, "done", "{}", report.summary);
    let heard = told.requests()[1].messages.last().unwrap().text();
    assert_eq!(heard.matches("<result").count(), 65);
    assert!(heard.contains("at most 64 calls"));
}

/// Somebody else may have the session by then.
async fn nothing_is_written_after_the_end() {
    let mut bench = Bench::new(&[]);
    let session = bench.start(&Told::new([says("done")]), asking(Mode::Auto));
    session.handle.send("do it").await.unwrap();
    session.handle.wait_until_finished().await.unwrap();
    session.handle.close().await;
    bench.log.acquire_lease(&id(), "somebody else", NOW, 1_000).await.unwrap();
    let before = bench.log.entries().len();
    assert!(matches!(session.handle.snapshot("late").await, Err(AgentError::Ended)));
    assert!(matches!(session.handle.send("late").await, Err(AgentError::Ended)));
    assert_eq!(bench.log.entries().len(), before);
}

/// The next one has the session as soon as it is free, and nothing comes in between.
async fn a_handle_that_is_dropped_writes_to_the_end_and_no_further() {
    for _ in 0..20 {
        let mut bench = Bench::new(&[]);
        let told =
            Told::new([calls([("c1", "list_files", json!({}))]), says("one"), says("two"), says("three")]);
        let session = bench.start(&told, asking(Mode::Auto));
        session.handle.send("do it").await.unwrap();
        told.asked(1).await;
        let mut parts = bench.parts(&told);
        parts.holder = "somebody else".to_owned();
        drop(session);
        while bench.log.acquire_lease(&id(), "somebody else", NOW, 1_000).await.is_err() {
            tokio::task::yield_now().await;
        }
        let before = bench.log.entries().len();
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
        assert_eq!(bench.log.entries().len(), before);
        let handle = resume(parts, asking(Mode::Auto), id(), CutOffPolicy::Continue).await.unwrap();
        handle.send("go on").await.unwrap();
        assert_ne!(handle.wait_until_finished().await.unwrap().outcome, RunOutcome::Error);
    }
}
