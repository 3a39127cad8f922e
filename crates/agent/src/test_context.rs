//! A context without a session, for tests of single stages: a project in a temporary directory, a
//! log in memory and a scripted model.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use journeyman_model::ScriptedModel;
use journeyman_policy::secrets::Redactor;
use journeyman_policy::{Policy, RuleLayer, Rules};
use journeyman_protocol::{
    Block, CallId, Effects, Event, Message, RelPath, Role, SandboxNeeds, SandboxTier, Seq, SessionId,
    StopReason, ToolSpec, ToolUse, UnixMillis,
};
use journeyman_sandbox::{HostEnvironment, Sandbox, SandboxSettings, find_toolchains};
use journeyman_store::{Blobs, MemoryStore, Store};
use journeyman_tools::{Registry, SharedIndex, Tool, ToolContext, ToolError, ToolOutput};
use journeyman_workspace::{Options, Workspace};
use serde_json::{Value, json};

use crate::approval::approvals::Approvals;
use crate::approval::authorization::ApprovedCall;
use crate::hooks::change_review::ChangeReview;
use crate::isolation::checkpoints::Checkpoints;
use crate::recovery::lease::Lease;
use crate::request::cache_watch::CacheWatch;
use crate::request::input_meter::InputMeter;
use crate::session::context::SessionContext;
use crate::session::inbox::Inbox;
use crate::session::settings::RunSettings;
use crate::session::shared_state::SessionShared;
use crate::transcript::log::{Log, SubscriberBufferLimits, envelope_of};
use crate::transcript::record::{MessageId, QueuedMessage, Record, record_of};
use crate::transcript::running_transcript::Transcript;
use crate::transcript::state::State;

/// Does the sandbox's work where the sandbox executes this program again, before the test harness
/// reads its arguments.
#[ctor::ctor(unsafe, priority = late)]
fn run_sandbox_helper() {
    journeyman_sandbox::run_helper_if_asked();
}

/// A secret that the context's redactor knows.
pub(crate) const SECRET: &str = "hunter2-hunter2-hunter2";
/// The time of every test.
const NOW: UnixMillis = UnixMillis(1_700_000_000_000);

/// A context with the project, store and inbox that it refers to.
pub(crate) struct TestContext {
    _dir: tempfile::TempDir,
    pub(crate) root: PathBuf,
    pub(crate) cx: SessionContext,
    pub(crate) inbox: Arc<Inbox>,
    store: Arc<dyn Store>,
    /// The stages that a review of changes needs.
    pub(crate) approvals: Approvals,
    pub(crate) checkpoints: Checkpoints,
}

impl TestContext {
    /// Creates a context for a project with these files. No one answers questions, and commands
    /// run unconfined.
    pub(crate) async fn new(files: &[(&str, &str)]) -> Self {
        let dir = tempfile::Builder::new().prefix("jm-stage-").tempdir().unwrap();
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
        let sandbox = Sandbox::new(SandboxSettings {
            allow: vec![SandboxTier::Unconfined],
            allow_root: true,
            ..SandboxSettings::default()
        });
        let host = HostEnvironment { vars: std::env::vars_os().collect(), home: None };
        let redactor = Arc::new(Redactor::new([SECRET.to_owned()]));
        let session = SessionId::new(NOW, 7);
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        store.create(&session, "/", "", NOW).await.unwrap();
        let clock = crate::Clock::new(|| NOW);
        let log = Log::new(
            Arc::clone(&store),
            session.clone(),
            Seq::START,
            clock.clone(),
            Arc::clone(&redactor),
            SubscriberBufferLimits::default(),
        );
        let shared = Arc::new(SessionShared::new(VecDeque::new(), MessageId(0)));
        let lease = Lease::new(Arc::clone(&store), session.clone(), "the test".to_owned(), clock.clone());
        lease.acquire().await.unwrap();
        let inbox = Inbox::new(
            log.clone(),
            Arc::clone(&shared),
            Arc::new(lease),
            Arc::clone(&redactor),
            root.display().to_string(),
            Vec::new(),
        );
        let transcript =
            Transcript::new(State::default(), log, clock.clone(), Arc::clone(&redactor), Arc::clone(&shared));
        let settings = RunSettings { needs: SandboxNeeds::NONE, ..RunSettings::default() };
        let cx = SessionContext {
            session,
            meter: InputMeter::new(settings.limits.clone()),
            cache_watch: CacheWatch::new(clock),
            settings,
            index: Arc::new(SharedIndex::new(Arc::clone(&workspace), Arc::clone(&redactor), None)),
            workspace,
            copy: None,
            sandbox: Arc::new(sandbox),
            toolchains: Arc::new(find_toolchains(&host, &root)),
            model: Arc::new(ScriptedModel::parse(r#"{"replies": []}"#).unwrap()),
            redactor,
            shared,
            asks_question: false,
            unanswered_question: None,
            transcript,
        };
        let approvals = Approvals::new(Policy::default(), Arc::new(Registry::with_builtin_at(&root)));
        let checkpoints = Checkpoints::default();
        Self { _dir: dir, root, cx, inbox: Arc::new(inbox), store, approvals, checkpoints }
    }

    /// Sets the replies of the model, as the `replies` of a script.
    pub(crate) fn set_replies(&mut self, replies: &Value) {
        let script = json!({ "replies": replies }).to_string();
        self.cx.model = Arc::new(ScriptedModel::parse(&script).unwrap());
    }

    /// Adds the user's rules to the policy.
    pub(crate) fn set_rules(&mut self, rules: &str) {
        let rules = Rules::parse(rules, RuleLayer::User, "policy.toml").unwrap();
        let registry = Arc::new(Registry::with_builtin_at(&self.root));
        self.approvals = Approvals::new(Policy::default().with_rules(rules), registry);
    }

    /// Records a reply of the model with these calls.
    pub(crate) fn record_reply(&mut self, calls: &[ToolUse]) {
        let content = calls.iter().cloned().map(Block::ToolUse).collect();
        self.record_message(Message { role: Role::Assistant, content }, Vec::new());
    }

    /// Records a reply of a model that writes its calls as text.
    pub(crate) fn record_reply_text(&mut self, text: &str, calls: &[ToolUse]) {
        self.record_message(Message::assistant_text(text), calls.to_vec());
    }

    fn record_message(&mut self, message: Message, calls: Vec<ToolUse>) {
        let stop = Some(StopReason::ToolUse);
        self.cx.transcript.record(Record::Message { message, taken: Vec::new(), stop, calls });
    }

    /// Returns the parts of a change review, together with the context.
    pub(crate) fn review(&mut self) -> (&mut SessionContext, ChangeReview<'_>) {
        let review = ChangeReview { approvals: &mut self.approvals, checkpoints: &mut self.checkpoints };
        (&mut self.cx, review)
    }

    /// Writes a file as somebody outside the session does.
    pub(crate) fn write(&self, name: &str, content: &str) {
        let path = self.root.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    /// Returns the logged events so far.
    pub(crate) async fn events(&mut self) -> Vec<Event> {
        self.cx.transcript.flush().await.unwrap();
        let entries = self.store.read(&self.cx.session, Seq::START, usize::MAX).await.unwrap();
        let events = entries.iter().filter_map(|entry| envelope_of(&self.cx.session, entry));
        events.map(|envelope| envelope.event).collect()
    }

    /// Returns the logged records so far.
    pub(crate) async fn records(&mut self) -> Vec<Record> {
        self.cx.transcript.flush().await.unwrap();
        let entries = self.store.read(&self.cx.session, Seq::START, usize::MAX).await.unwrap();
        entries.iter().filter_map(record_of).collect()
    }

    /// Returns the state that a restart finds in the log.
    pub(crate) async fn reloaded_state(&mut self) -> State {
        self.cx.transcript.flush().await.unwrap();
        State::load(&*self.store, &self.cx.session).await.unwrap()
    }

    /// Asserts that a restart finds the running state, and returns it.
    pub(crate) async fn assert_survives_restart(&mut self) -> State {
        let reloaded = self.reloaded_state().await;
        // The running session updates this position only when it writes.
        let expected = State { safe: reloaded.safe, ..self.cx.transcript.state().clone() };
        assert_eq!(reloaded, expected);
        reloaded
    }

    /// Returns the text of the newest message to the model.
    pub(crate) fn last_text(&self) -> String {
        self.cx.transcript.state().messages.last().map(Message::text).unwrap_or_default()
    }
}

/// Returns a call of the model.
pub(crate) fn call(id: &str, tool: &str, input: Value) -> ToolUse {
    ToolUse { id: CallId::new(id), name: tool.to_owned(), input, malformed: None, signature: None }
}

/// Returns a call that may run, which changes these files; none for a read-only call.
pub(crate) fn approved(call: ToolUse, writes: &[&str]) -> ApprovedCall {
    let writes: Vec<RelPath> = writes.iter().map(|path| RelPath::parse(path).unwrap()).collect();
    ApprovedCall {
        call,
        read_only: writes.is_empty(),
        effects: Effects { writes, ..Effects::default() },
        starts_agents: false,
        time_limit: Duration::from_secs(60),
        context: Vec::new(),
        preview: None,
        layer: None,
    }
}

/// Returns a queued message of a person.
pub(crate) fn user_message(id: u64, text: &str) -> QueuedMessage {
    QueuedMessage {
        id: MessageId(id),
        kind: journeyman_protocol::MessageKind::User,
        category: journeyman_protocol::ReminderCategory::General,
        text: text.to_owned(),
        images: Vec::new(),
    }
}

/// The body of a test's tool.
type ToolBody = dyn Fn(ToolContext) -> BoxFuture<'static, Result<ToolOutput, ToolError>> + Send + Sync;

/// A read-only tool whose calls run a closure.
pub(crate) struct ClosureTool {
    name: &'static str,
    body: Box<ToolBody>,
    starts_agents: bool,
}

impl ClosureTool {
    pub(crate) fn new<Fut>(
        name: &'static str,
        body: impl Fn(ToolContext) -> Fut + Send + Sync + 'static,
    ) -> Self
    where
        Fut: Future<Output = Result<ToolOutput, ToolError>> + Send + 'static,
    {
        Self { name, body: Box::new(move |context| Box::pin(body(context))), starts_agents: false }
    }

    /// The same as a tool that gives tasks to agents.
    pub(crate) fn starting_agents(self) -> Self {
        Self { starts_agents: true, ..self }
    }
}

impl Tool for ClosureTool {
    fn spec(&self) -> ToolSpec {
        let description = "Runs a closure.".to_owned();
        ToolSpec { name: self.name.to_owned(), description, input_schema: json!({ "type": "object" }) }
    }

    fn effects(&self, _input: &Value) -> Result<Effects, ToolError> {
        Ok(Effects::default())
    }

    fn summary(&self, _input: &Value) -> String {
        self.name.to_owned()
    }

    fn is_read_only(&self) -> bool {
        true
    }

    fn starts_agents(&self) -> bool {
        self.starts_agents
    }

    fn call<'a>(
        &'a self,
        context: &'a ToolContext,
        _input: Value,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        (self.body)(context.clone())
    }
}
