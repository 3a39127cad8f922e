use std::sync::Arc;

use journeyman_agent::isolation::LandRequest;
use journeyman_agent::{CutOffPolicy, Record, State};
use journeyman_git::CommitRefusal;
use journeyman_protocol::{CallId, CallState, Event, Message, RelPath, UnixMillis};
use journeyman_sandbox::{Sandbox, SandboxSettings};
use journeyman_store::NewEntry;
use journeyman_workspace::{Change, ChangeSet, CopyTools, ExpectedState, IsolationTier};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::landing::{
    DiscardResult, KeptWork, discard_work, find_discardable, find_kept_work, land_with_prompts,
    open_land_context,
};
use crate::resume::{ReopenOptions, Resumption};
use crate::undo::{UndoResult, undo_session};
use crate::{Confirmations, DeliveryOptions, RunOptions};

/// A project with a state directory, and one session in it.
struct Bench {
    _place: tempfile::TempDir,
    environment: Environment,
    state: Arc<StateDirs>,
    session: SessionId,
}

impl Bench {
    async fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap().join("project");
        std::fs::create_dir(&root).unwrap();
        let variables = [("JM_BASE_URL", "http://127.0.0.1:9/v1"), ("JM_WIRE", "chat"), ("JM_MODEL", "own")];
        let environment = Environment {
            home: Some(place.path().join("home")),
            cwd: root.clone(),
            vars: variables.map(|(name, value)| (name.into(), value.into())).into(),
        };
        let state = Arc::new(StateDirs::open_at(place.path().join("state"), &environment).unwrap());
        let session = new_session_id();
        state.store.create(&session, &root.display().to_string(), "a task", now()).await.unwrap();
        Self { _place: place, environment, state, session }
    }

    /// Keeps work of the session in a copy.
    fn keep_work(&self) {
        let workspace = self.state.open_workspace(&self.environment.cwd).unwrap();
        let sandbox = Sandbox::new(SandboxSettings::default());
        let means = CopyTools {
            sandbox: &sandbox,
            git: None,
            tiers: &[IsolationTier::Copy],
            max_copied_files: usize::MAX,
        };
        let mut copy = workspace.copies().create(&self.session, &means).unwrap();
        let (path, expected) = (RelPath::parse("new").unwrap(), ExpectedState::Absent);
        let changes = vec![Change::Write { path, content: b"new\n".to_vec(), expected }];
        let (session, description) = (self.session.clone(), None);
        copy.workspace().apply(ChangeSet { call: None, session, description, changes }).unwrap();
        copy.keep().unwrap();
    }

    async fn find_deletable(&self) -> Result<Vec<SessionSummary>, HostError> {
        find_deletable(&self.environment, &self.state, &[self.session.to_string()]).await
    }
}

#[tokio::test]
async fn a_session_that_kept_work_while_a_person_was_asked_is_not_deleted() {
    let bench = Bench::new().await;
    let found = bench.find_deletable().await.unwrap();
    bench.keep_work();
    let refused = delete_session(&bench.state, &found[0]).await.unwrap_err().to_string();
    assert!(refused.contains(&format!("jm land {}", bench.session)), "{refused}");
    let holder = bench.state.store.lease_holder(&bench.session, now()).await.unwrap();
    assert_eq!(holder, None, "the session is there, and free");
}

#[tokio::test]
async fn a_session_whose_project_cannot_be_opened_keeps_its_work() {
    let bench = Bench::new().await;
    bench.keep_work();
    let moved = bench.environment.cwd.with_extension("moved");
    std::fs::rename(&bench.environment.cwd, &moved).unwrap();
    let refused = bench.find_deletable().await.unwrap_err().to_string();
    assert!(refused.contains("project can't be opened"), "{refused}");
    // Without work that is kept it doesn't matter.
    std::fs::rename(&moved, &bench.environment.cwd).unwrap();
    let workspace = bench.state.open_workspace(&bench.environment.cwd).unwrap();
    workspace.copies().discard(&bench.session).unwrap();
    std::fs::rename(&bench.environment.cwd, &moved).unwrap();
    let found = bench.find_deletable().await.unwrap();
    assert_eq!(delete_session(&bench.state, &found[0]).await.unwrap(), 0);
}

impl Bench {
    /// Imports a session of two messages that ran in mode `auto` and asked another server.
    async fn import_session(&self) -> SessionSummary {
        let setting = serde_json::from_value(serde_json::json!({
            "model": "custom/theirs", "mode": "auto", "tool_calling": true,
            "asked": { "base_url": "https://theirs.test/v1", "wire": "chat" },
        }));
        let said = |text: &str| Record::message(Message::user_text(text));
        self.import_records(&[Record::Setting(setting.unwrap()), said("one"), said("two")]).await
    }

    /// Imports a session with these records.
    async fn import_records(&self, records: &[Record]) -> SessionSummary {
        let id = new_session_id();
        let (root, last) = (self.environment.cwd.display(), records.len());
        let mut text = format!(
            "{{\"format\":\"journeyman-session\",\"version\":1,\"id\":\"{id}\",\"root\":\"{root}\",\"title\":\"\",\
             \"created\":1,\"updated\":1,\"status\":\"verified\",\"last\":{last}}}\n"
        );
        for (seq, record) in (1..).zip(records) {
            let payload = serde_json::to_value(record).unwrap();
            let line = serde_json::json!({ "seq": seq, "kind": record.kind(), "at": 1, "payload": payload });
            text.push_str(&format!("{line}\n"));
        }
        let imported = import_session(&self.state, &mut text.as_bytes(), ImportAs::Itself).await.unwrap();
        self.find(&imported).await
    }

    async fn find(&self, id: &SessionId) -> SessionSummary {
        find_session(&self.state, &self.environment, id.as_str()).await.unwrap()
    }

    /// Returns the model of the earlier run that a fork goes on with.
    async fn model_of_fork(&self, parent: &SessionId, at: Option<&str>) -> Option<String> {
        let fork = fork_session(&self.environment, &self.state, parent.as_str(), at).await.unwrap();
        let resumption = self.load(&self.find(&fork.id).await).await;
        resumption.earlier.map(|earlier| earlier.model)
    }

    async fn load(&self, session: &SessionSummary) -> Resumption {
        Resumption::load(&self.environment, &self.state, session, None).await.unwrap()
    }
}

#[tokio::test]
async fn the_settings_of_an_imported_session_hold_in_none_of_its_forks() {
    let bench = Bench::new().await;
    let imported = bench.import_session().await;
    assert_eq!(bench.load(&imported).await.imported.unwrap().0, "custom/theirs");
    assert_eq!(bench.model_of_fork(&imported.id, None).await, None);

    // Opened by its user, it has settings of their own from there on.
    let options = ReopenOptions {
        run: &RunOptions::default(),
        delivery: &DeliveryOptions::default(),
        land: false,
        cut_off: CutOffPolicy::Close,
        command: "test",
    };
    let resumption = bench.load(&imported).await;
    let (_, session) =
        resumption.open(&bench.environment, &bench.state, &options, None, |_| ()).await.unwrap();
    session.close().await;
    let last = bench.find(&imported.id).await.last;
    let began = NewEntry {
        channel: None,
        kind: Record::Began.kind().to_owned(),
        at: UnixMillis(2),
        payload: serde_json::to_vec(&Record::Began).unwrap(),
    };
    bench.state.store.append_and_set_status(&imported.id, last, vec![began], "unverified").await.unwrap();
    assert_eq!(bench.model_of_fork(&imported.id, None).await.as_deref(), Some("custom/own"));
    assert_eq!(bench.model_of_fork(&imported.id, Some("2")).await, None, "the import's own entries");
}

impl Bench {
    /// Adds an agent to a session, with these records in its log.
    async fn add_agent(&self, parent: &SessionId, records: &[Record]) -> SessionId {
        let (id, root) = (new_session_id(), self.environment.cwd.display().to_string());
        let store = &self.state.store;
        let role = serde_json::from_value(serde_json::json!({
            "record": "role", "name": "scout", "parent": { "session": parent, "call": "c1", "root": parent },
            "system": "", "output": { "name": "result", "description": "", "schema": {} }, "tools": [], "mode": "edit",
            "limits": { "turns": 1, "time": { "secs": 1, "nanos": 0 }, "grace": { "secs": 1, "nanos": 0 } },
        }));
        let role: Record = role.unwrap();
        let entry = |kind: &str, payload| NewEntry {
            channel: None,
            kind: kind.to_owned(),
            at: UnixMillis(1),
            payload,
        };
        let records = std::iter::once(&role).chain(records);
        let entries =
            records.map(|record| entry(record.kind(), serde_json::to_vec(record).unwrap())).collect();
        store.create(&id, &root, "", now()).await.unwrap();
        store.append_and_set_status(&id, Seq::START, entries, SESSION_STATUS_IMPORTED).await.unwrap();
        let (call, child) = (CallId::new("c1"), id.clone());
        let (name, task) = ("scout".to_owned(), String::new());
        let event = Event::AgentStarted { call, child, name, task, background: false };
        let started = NewEntry {
            channel: Some(event.channel()),
            ..entry(event.kind(), serde_json::to_vec(&event).unwrap())
        };
        let last = self.find(parent).await.last;
        store.append_and_set_status(parent, last, vec![started], SESSION_STATUS_IMPORTED).await.unwrap();
        id
    }
}

#[tokio::test]
async fn no_permission_of_an_imported_session_holds() {
    let record = |value| serde_json::from_value::<Record>(value).unwrap();
    let write = serde_json::json!({ "type": "tool_use", "id": "c1", "name": "write_file", "input": {} });
    let records = [
        record(
            serde_json::json!({ "record": "allowed", "rule": "[[rule]]\ncommand = ['rm']\ndecision = 'allow'\n" }),
        ),
        Record::Began,
        record(serde_json::json!({ "record": "checkpoint", "id": 7 })),
        record(serde_json::json!({
            "record": "message", "message": { "role": "assistant", "content": [write] },
        })),
        record(
            serde_json::json!({ "record": "call", "call": "c1", "tool": "write_file", "state": "approved", "by": "their user" }),
        ),
    ];
    let bench = Bench::new().await;
    // Without settings of its own, too.
    let imported = bench.import_records(&records).await;
    let agent = bench.add_agent(&imported.id, &records).await;
    let before = State::load(&*bench.state.store, &imported.id).await.unwrap();
    assert_eq!((before.allowed.len(), before.calls.len()), (1, 1));
    assert!(before.calls[0].record.approval.is_some());
    let options = ReopenOptions {
        run: &RunOptions::default(),
        delivery: &DeliveryOptions::default(),
        land: false,
        cut_off: CutOffPolicy::Continue,
        command: "test",
    };
    let (_, session) = bench
        .load(&imported)
        .await
        .open(&bench.environment, &bench.state, &options, None, |_| ())
        .await
        .unwrap();
    session.interrupt();
    session.close().await;
    let mut entries = bench.state.store.read(&imported.id, Seq::START, 100).await.unwrap().into_iter();
    let end = entries.find(|entry| entry.kind == Record::Imported.kind()).expect("the import is marked").seq;
    let state = State::load_until(&*bench.state.store, &imported.id, end).await.unwrap();
    assert_eq!(state.allowed, Vec::<String>::new());
    let call = &state.calls[0].record;
    assert_eq!((call.state, call.approval.as_ref()), (CallState::Pending, None));
    assert_eq!(state.unverified_since(), None, "the checkpoints here are others");
    let state = State::load(&*bench.state.store, &agent).await.unwrap();
    assert_eq!((state.role.is_some(), state.allowed), (true, Vec::new()));

    let fork = fork_session(&bench.environment, &bench.state, imported.id.as_str(), None).await.unwrap();
    let state = State::load(&*bench.state.store, &fork.id).await.unwrap();
    assert_eq!((state.allowed, state.unverified), (Vec::new(), None));
}

/// A person who says yes after another process has worked in the project.
struct GoingOn<'a>(&'a Bench);

impl Confirmations for GoingOn<'_> {
    fn confirm_trust(&self, _: &Path, _: &[String], _: &[String]) -> std::io::Result<bool> {
        unreachable!("the project has no configuration")
    }

    fn confirm_commit(&self, _: &CommitRefusal, _: &str) -> std::io::Result<bool> {
        unreachable!("nothing is committed")
    }

    fn confirm_older_undo(&self, _: &SessionSummary, _: &SessionSummary) -> std::io::Result<bool> {
        self.0.change("newer", &SessionId::new(UnixMillis(now().0 + 1_000), 1));
        Ok(true)
    }

    fn confirm_unverified(&self, _: &SessionId) -> std::io::Result<bool> {
        let runtime = || tokio::runtime::Builder::new_current_thread().build().unwrap();
        std::thread::scope(|scope| scope.spawn(|| runtime().block_on(self.0.go_on())).join()).unwrap();
        Ok(true)
    }
}

impl Bench {
    /// Appends an entry to the session's log, as another process that works on it does.
    async fn go_on(&self) {
        let last = self.find(&self.session).await.last;
        let record = Record::Snapshot { name: "x".to_owned(), at: last };
        let (kind, payload) = (record.kind().to_owned(), serde_json::to_vec(&record).unwrap());
        let entry = NewEntry { channel: None, kind, at: UnixMillis(2), payload };
        self.state.store.append(&self.session, last, vec![entry]).await.unwrap();
    }

    async fn discard(&self, work: &KeptWork) -> Result<DiscardResult, HostError> {
        discard_work(&self.environment, &self.state, work).await
    }
}

#[tokio::test]
async fn what_a_session_does_while_a_person_is_asked_is_not_decided_about() {
    let bench = Bench::new().await;
    bench.keep_work();
    let id = bench.session.as_str();
    let work = find_kept_work(&bench.state, &bench.environment, Some(id)).await.unwrap();
    let context =
        open_land_context(&bench.environment, &bench.state, &work, false, "land", None).await.unwrap();
    let (request, stop) = (LandRequest::default(), CancellationToken::new());
    let landed = land_with_prompts(&context, &bench.session, request, Some(&GoingOn(&bench)), &stop).await;
    let discarded = bench.discard(&work).await;
    for refused in [landed.map(drop), discarded.map(drop)] {
        let refused = refused.unwrap_err().to_string();
        assert!(refused.contains("has gone on in another process"), "{refused}");
    }
    assert!(!bench.environment.cwd.join("new").exists());
    let work = find_discardable(&bench.environment, &bench.state, Some(id)).await.unwrap();
    assert_eq!(bench.discard(&work).await.unwrap(), DiscardResult::Files(1));

    let found = bench.find_deletable().await.unwrap();
    bench.go_on().await;
    let refused = delete_session(&bench.state, &found[0]).await.unwrap_err().to_string();
    assert!(refused.contains("has gone on in another process"), "{refused}");
    let found = bench.find_deletable().await.unwrap();
    delete_session(&bench.state, &found[0]).await.unwrap();
}

impl Bench {
    /// Makes a new file in the project, as a change of a session.
    fn change(&self, name: &str, session: &SessionId) {
        let workspace = self.state.open_workspace(&self.environment.cwd).unwrap();
        let (path, expected) = (RelPath::parse(name).unwrap(), ExpectedState::Absent);
        let changes = vec![Change::Write { path, content: b"x\n".to_vec(), expected }];
        let (session, description) = (session.clone(), None);
        workspace.apply(ChangeSet { call: None, session, description, changes }).unwrap();
    }

    async fn undo(&self, prompts: Option<&dyn Confirmations>) -> Result<Option<UndoResult>, HostError> {
        undo_session(&self.environment, &self.state, None, None, prompts).await
    }
}

#[tokio::test]
async fn an_older_run_is_not_undone_while_it_runs_or_in_place_of_another() {
    let bench = Bench::new().await;
    let (root, older) = (bench.environment.cwd.display().to_string(), SessionId::new(UnixMillis(1_000), 1));
    bench.state.store.create(&older, &root, "older", UnixMillis(1_000)).await.unwrap();
    bench.change("older", &older);
    let there = |name: &str| bench.environment.cwd.join(name).exists();

    bench.state.store.acquire_lease(&older, "another process", now(), 60_000).await.unwrap();
    let refused = bench.undo(None).await.unwrap_err().to_string();
    assert!(refused.contains("still running: another process") && there("older"), "{refused}");
    bench.state.store.release_lease(&older, "another process").await.unwrap();

    let refused = bench.undo(Some(&GoingOn(&bench))).await.unwrap_err().to_string();
    assert!(refused.contains("has gone on in another process"), "{refused}");
    assert!(there("older") && there("newer"));
    bench.undo(None).await.unwrap();
    bench.undo(None).await.unwrap();
    assert!(!there("older") && !there("newer"));
}
