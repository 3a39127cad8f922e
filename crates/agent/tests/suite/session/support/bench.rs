//! A project in a temporary directory with everything that a session needs.

use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex};

use journeyman_agent::agents::{AgentDefinition, Agents};
use journeyman_agent::hooks::Hooks;
use journeyman_agent::{
    AgentError, CutOffPolicy, EventFilter, Record, RunSettings, SessionHandle, SessionParts, Since, State,
    Subscription, resume, start, start_agent,
};
use journeyman_model::Model;
use journeyman_policy::secrets::Redactor;
use journeyman_policy::{Policy, RuleLayer, Rules};
use journeyman_protocol::{
    Envelope, Event, LimitSource, Mode, ModelLimits, RunReport, SandboxNeeds, SandboxTier, Seq, SessionId,
    UnixMillis,
};
use journeyman_sandbox::{HostEnvironment, Sandbox, SandboxSettings, find_toolchains};
use journeyman_store::{Blobs, Entry, MemoryStore, NewEntry, Store};
use journeyman_tools::{Registry, SharedIndex, Tool};
use journeyman_workspace::{Options, UndoTarget, Workspace, WorkspaceError};
use tempfile::TempDir;

use super::log::{Failing, Watched};
use super::tools::Lent;
use super::{schema, transcript};

/// One for all: its first use tests the back-end.
static SANDBOX: LazyLock<Arc<Sandbox>> = LazyLock::new(|| Arc::new(Sandbox::new(SandboxSettings::default())));

/// The time of every test.
pub(crate) const NOW: UnixMillis = UnixMillis(1_700_000_000_000);

/// The session of a bench.
pub(crate) fn id() -> SessionId {
    SessionId::new(NOW, 7)
}

/// A project, its log and what sessions on it work with. Dropping it checks the whole log.
pub(crate) struct Bench {
    _dir: TempDir,
    /// Beside the project.
    pub(crate) outside: PathBuf,
    /// The project's root.
    pub(crate) root: PathBuf,
    /// The log.
    pub(crate) log: Arc<Watched>,
    /// What is never shown or kept.
    pub(crate) secrets: Vec<String>,
    /// Where commands run.
    pub(crate) sandbox: Arc<Sandbox>,
    /// What looks on.
    pub(crate) hooks: Hooks,
    policy: Policy,
    /// The tree.
    pub(crate) workspace: Arc<Workspace>,
    tools: Vec<Arc<dyn Tool>>,
    agents: Option<Agents>,
    /// Events that were shown and are not as the schema says.
    misshapen: Arc<Mutex<Vec<String>>>,
}

impl Bench {
    /// A project with these files and a log in memory.
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        Self::with_log(files, |_| Arc::new(MemoryStore::new()), Failing::Never)
    }

    /// The same with a log that fails.
    pub(crate) fn failing(files: &[(&str, &str)], failing: Failing) -> Self {
        Self::with_log(files, |_| Arc::new(MemoryStore::new()), failing)
    }

    /// The same with a log of one's own, made in the directory beside the project.
    pub(crate) fn with_log(
        files: &[(&str, &str)],
        store: impl FnOnce(&Path) -> Arc<dyn Store>,
        failing: Failing,
    ) -> Self {
        let dir = tempfile::Builder::new().prefix("jm-session-").tempdir().unwrap();
        let outside = dir.path().canonicalize().unwrap();
        let root = outside.join("project");
        std::fs::create_dir_all(&root).unwrap();
        for (name, content) in files {
            let path = root.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
        }
        let blobs = Arc::new(Blobs::open(&outside.join("blobs"), 1 << 30).unwrap());
        let guarded = Some(journeyman_policy::GUARD_RULES);
        let options = Options { guarded, ..Options::new(outside.join("state"), blobs) };
        let workspace = Arc::new(Workspace::open(&root, options).unwrap());
        let log = Watched::over(store(&outside), failing);
        let (sandbox, secrets, tools) = (Arc::clone(&SANDBOX), Vec::new(), Vec::new());
        let (hooks, misshapen, policy) = (Hooks::none(), Arc::default(), Policy::default());
        let agents = None;
        Self {
            _dir: dir,
            outside,
            root,
            log,
            secrets,
            sandbox,
            hooks,
            policy,
            workspace,
            tools,
            agents,
            misshapen,
        }
    }

    /// Commands run unconfined.
    pub(crate) fn unconfined(mut self) -> Self {
        let settings = SandboxSettings {
            allow: vec![SandboxTier::Unconfined],
            allow_root: true,
            ..SandboxSettings::default()
        };
        self.sandbox = Arc::new(Sandbox::new(settings));
        self
    }

    /// With one more tool.
    pub(crate) fn with_tool(mut self, tool: impl Tool + 'static) -> Self {
        self.tools.push(Arc::new(tool));
        self
    }

    /// With agents to give tasks to.
    pub(crate) fn with_agents(mut self, agents: Agents) -> Self {
        self.agents = Some(agents);
        self
    }

    /// With rules of the user's.
    pub(crate) fn with_rules(mut self, text: &str) -> Self {
        let rules = Rules::parse(text, RuleLayer::User, "policy.toml").unwrap();
        self.policy = self.policy.clone().with_rules(rules);
        self
    }

    /// With hooks.
    pub(crate) fn with_hooks(mut self, hooks: Hooks) -> Self {
        self.hooks = hooks;
        self
    }

    /// What a session works with.
    pub(crate) fn parts(&self, model: &Arc<impl Model + 'static>) -> SessionParts {
        let mut registry = Registry::with_builtin_at(&self.root);
        for tool in &self.tools {
            registry.add(Box::new(Lent(Arc::clone(tool))));
        }
        let host = HostEnvironment {
            vars: std::env::vars_os().collect(),
            home: std::env::var_os("HOME").map(PathBuf::from),
        };
        let redactor = Arc::new(Redactor::new(self.secrets.clone()));
        let store: Arc<dyn Store> = Arc::clone(&self.log) as Arc<dyn Store>;
        let model: Arc<dyn Model> = Arc::clone(model) as Arc<dyn Model>;
        SessionParts {
            store,
            model,
            index: Arc::new(SharedIndex::new(Arc::clone(&self.workspace), Arc::clone(&redactor), None)),
            workspace: Arc::clone(&self.workspace),
            copy: None,
            planned_copy: None,
            sandbox: Arc::clone(&self.sandbox),
            toolchains: Arc::new(find_toolchains(&host, &self.root)),
            registry,
            policy: self.policy.clone(),
            lasting_answers: Default::default(),
            redactor,
            hooks: self.hooks.clone(),
            clock: journeyman_agent::Clock::new(|| NOW),
            programs: Arc::new(|_: &str| None),
            holder: "the test".to_owned(),
            agents: self.agents.clone(),
        }
    }

    /// Begins the session of [`Bench::id`].
    pub(crate) fn start(&mut self, model: &Arc<impl Model + 'static>, settings: RunSettings) -> Session {
        self.shown_by(start(self.parts(model), settings, id()))
    }

    /// Begins the session of [`Bench::id`] as an agent, and gives it its first message.
    pub(crate) async fn start_agent(
        &mut self,
        model: &Arc<impl Model + 'static>,
        settings: RunSettings,
        agent: &AgentDefinition,
        inputs: serde_json::Value,
    ) -> Session {
        let parts = self.parts(model);
        let (role, query) = agent.build_role(inputs.as_object().unwrap(), &parts.registry).unwrap();
        let session = self.shown_by(start_agent(parts, settings, id(), role));
        session.handle.send(query).await.unwrap();
        session
    }

    /// Opens it again.
    pub(crate) async fn resume(
        &mut self,
        model: &Arc<impl Model + 'static>,
        settings: RunSettings,
        cut_off: CutOffPolicy,
    ) -> Result<Session, AgentError> {
        self.resume_id(model, settings, id(), cut_off).await
    }

    /// Opens a session of any id again.
    pub(crate) async fn resume_id(
        &mut self,
        model: &Arc<impl Model + 'static>,
        settings: RunSettings,
        id: SessionId,
        cut_off: CutOffPolicy,
    ) -> Result<Session, AgentError> {
        Ok(self.shown_by(resume(self.parts(model), settings, id, cut_off).await?))
    }

    /// The log as a crash at this moment leaves it: whatever still runs writes to another one from
    /// here on.
    pub(crate) async fn crash(&mut self) {
        self.crash_after(usize::MAX).await;
    }

    /// The same at the moment when it had so many entries.
    pub(crate) async fn crash_after(&mut self, count: usize) {
        self.crash_sessions(&[(id(), count)]).await;
    }

    /// The same with several sessions, each at the moment when it had so many entries.
    pub(crate) async fn crash_sessions(&mut self, counts: &[(SessionId, usize)]) {
        let root = self.root.display().to_string();
        let watched = Watched::over(Arc::new(MemoryStore::new()), Failing::Never);
        for (session, count) in counts {
            watched.inner().create(session, &root, "cut off", NOW).await.unwrap();
            let entries = self.log.entries_of(session).into_iter().take(*count);
            let copies = entries.map(|Entry { channel, kind, at, payload, .. }| NewEntry {
                channel,
                kind,
                at,
                payload,
            });
            watched.append(session, Seq::START, copies.collect()).await.unwrap();
        }
        assert_eq!(self.log.problems(), Vec::<String>::new());
        self.log = watched;
    }

    /// Writes a record into the log, as one that was taken in has it.
    pub(crate) async fn note(&self, record: &Record) {
        let payload = serde_json::to_vec(record).unwrap();
        let entry = NewEntry { channel: None, kind: record.kind().to_owned(), at: NOW, payload };
        let last = self.log.entries().last().map_or(Seq::START, |entry| entry.seq);
        self.log.append(&id(), last, vec![entry]).await.unwrap();
    }

    /// The state that a restart would find.
    pub(crate) async fn state(&self) -> State {
        State::load(&*self.log, &id()).await.unwrap()
    }

    /// The state with all messages, as if the conversation had not been shortened.
    pub(crate) async fn unshortened_state(&self) -> State {
        State::load_unshortened(&*self.log, &id()).await.unwrap()
    }

    /// Listens to a session, also for the bench: what is shown has to be as the schema says.
    pub(crate) fn shown_by(&self, handle: SessionHandle) -> Session {
        let misshapen = Arc::clone(&self.misshapen);
        handle.on_events(EventFilter::all(), Since::Now, move |envelope| {
            misshapen.lock().unwrap().extend(schema::problems(envelope));
        });
        let events = handle.subscribe(EventFilter::all(), Since::Now);
        Session { handle, events, shown: Vec::new() }
    }

    /// Runs one task to its end.
    pub(crate) async fn run(
        &mut self,
        model: &Arc<impl Model + 'static>,
        settings: RunSettings,
    ) -> Arc<RunReport> {
        self.run_task("do it", model, settings).await
    }

    /// Runs this task to its end.
    pub(crate) async fn run_task(
        &mut self,
        task: &str,
        model: &Arc<impl Model + 'static>,
        settings: RunSettings,
    ) -> Arc<RunReport> {
        let session = self.start(model, settings);
        session.handle.send(task).await.unwrap();
        session.handle.wait_until_finished().await.unwrap()
    }

    /// A file's text; `None` if it isn't there.
    pub(crate) fn file(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(self.root.join(name)).ok()
    }

    /// Takes the newest run back.
    pub(crate) fn undo(&self) -> Result<Vec<String>, WorkspaceError> {
        let report = self.workspace.undo(UndoTarget::LastRun)?;
        Ok(report.restored.iter().map(|change| change.path.to_string()).collect())
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert_eq!(self.log.problems(), Vec::<String>::new(), "what holds after every append");
            assert_eq!(*self.misshapen.lock().unwrap(), Vec::<String>::new(), "docs/events.schema.json");
        }
    }
}

/// A session and one subscriber of it.
pub(crate) struct Session {
    pub(crate) handle: SessionHandle,
    pub(crate) events: Subscription,
    /// What the subscriber saw so far.
    pub(crate) shown: Vec<Arc<Envelope>>,
}

impl Session {
    /// Listens until an event of interest.
    pub(crate) async fn until(&mut self, wanted: impl Fn(&Event) -> bool) -> Event {
        loop {
            let envelope = self.events.next().await.unwrap().expect("the session ended first");
            self.shown.push(Arc::clone(&envelope));
            assert_eq!(schema::problems(&envelope), Vec::<String>::new());
            if wanted(&envelope.event) {
                return envelope.event.clone();
            }
        }
    }

    /// Listens until the task's report.
    pub(crate) async fn done(&mut self) -> RunReport {
        match self.until(|event| matches!(event, Event::Done { .. })).await {
            Event::Done { report } => *report,
            other => unreachable!("{other:?}"),
        }
    }

    /// Everything that was shown, as text.
    pub(crate) fn text(&self) -> String {
        self.shown.iter().map(|envelope| serde_json::to_string(&**envelope).unwrap() + "\n").collect()
    }
}

/// Everything allowed that a sandbox allows; one check that always passes.
pub(crate) fn auto() -> RunSettings {
    RunSettings {
        mode: Mode::Auto,
        checks: journeyman_agent::ChecksSetting::Custom(vec!["true".to_owned()]),
        // A model that takes whatever it is sent.
        limits: ModelLimits {
            window: ModelLimits::MAX_WINDOW,
            source: LimitSource::Table,
            ..ModelLimits::conservative_default(false)
        },
        ..RunSettings::default()
    }
}

/// The same with a mode.
pub(crate) fn in_mode(mode: Mode) -> RunSettings {
    RunSettings { mode, ..auto() }
}

/// For a bench that is unconfined.
pub(crate) fn unconfined(settings: RunSettings) -> RunSettings {
    RunSettings { needs: SandboxNeeds::NONE, ..settings }
}

/// Whether commands can be confined here; if not, says so, or fails where nothing may be skipped.
pub(crate) async fn confined() -> bool {
    match SANDBOX.enforcement(&journeyman_protocol::SandboxNeeds::ALL).await {
        Ok(_) => true,
        Err(error) => {
            journeyman_testkit::skip(error);
            false
        }
    }
}

/// A log whose every call has its result.
pub(crate) fn assert_settled(bench: &Bench) {
    assert!(transcript::is_settled(&bench.log.messages()), "{:#?}", bench.log.messages());
}
