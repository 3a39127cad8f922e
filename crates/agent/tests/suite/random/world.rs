//! A session with doubles on all sides, and the driver that lets one thing happen at a time.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use futures_util::FutureExt as _;
use journeyman_agent::hooks::Hooks;
use journeyman_agent::{
    AgentError, Approver, ChecksSetting, CutOffPolicy, EventFilter, MessageId, RunSettings, SessionHandle,
    SessionParts, Since, resume, start,
};
use journeyman_policy::Policy;
use journeyman_policy::secrets::Redactor;
use journeyman_protocol::{AgentState, CallId, MessageKind, Mode, Seq, SessionId, TurnPhase, UnixMillis};
use journeyman_sandbox::{Sandbox, SandboxSettings, Toolchains};
use journeyman_store::{Blobs, MemoryStore, Store};
use journeyman_tools::{Registry, SharedIndex};
use journeyman_workspace::{Options, Workspace};
use tokio::task::JoinHandle;

use crate::crash::gated::Gated;
use crate::random::doubles::{Does, Held, Told, Waits};
use crate::random::gates::{Gates, Who};
use crate::random::watch::{Log, Watcher};

/// So many simulated milliseconds pass with each step: less than any time that means something to a
/// session.
const TICK: Duration = Duration::from_millis(1);
/// How long a question waits in the runs that have such a limit.
pub(crate) const APPROVAL: Duration = Duration::from_secs(30);

/// The one session.
pub(crate) fn session() -> SessionId {
    SessionId::new(UnixMillis(1_700_000_000_000), 7)
}

/// What a run is set to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Setting {
    pub(crate) approval_timeout: bool,
    pub(crate) loop_guard: bool,
    pub(crate) deaf: bool,
    pub(crate) concurrency: usize,
}

/// A message on its way, or how that went.
pub(crate) struct Sent {
    pub(crate) text: String,
    pub(crate) kind: MessageKind,
    going: Option<JoinHandle<Result<MessageId, AgentError>>>,
    /// `Ok` when it is on record.
    pub(crate) done: Option<Result<MessageId, String>>,
    /// It is not known whether it is.
    pub(crate) doubtful: bool,
}

pub(crate) struct World {
    store: Arc<MemoryStore>,
    workspace: Arc<Workspace>,
    setting: Setting,
    pub(crate) gates: Gates,
    pub(crate) waits: Arc<AtomicBool>,
    dead: Arc<AtomicBool>,
    clock: Arc<AtomicU64>,
    pub(crate) handle: SessionHandle,
    pub(crate) log: Log,
    pub(crate) watchers: Vec<Watcher>,
    pub(crate) sent: Vec<Sent>,
    snapshots: Vec<JoinHandle<Result<Seq, AgentError>>>,
    /// What happened, for whoever looks at a seed.
    pub(crate) story: Vec<String>,
}

impl World {
    pub(crate) fn new(dir: &Path, setting: Setting) -> Self {
        let root = dir.join("project");
        std::fs::create_dir_all(&root).unwrap();
        std::fs::write(root.join("a.txt"), "a\n").unwrap();
        let blobs = Arc::new(Blobs::open(&dir.join("blobs"), 1 << 30).unwrap());
        let options = Options::new(dir.join("state"), blobs);
        let workspace = Arc::new(Workspace::open(&root, options).unwrap());
        let store = Arc::new(MemoryStore::new());
        let (gates, waits, dead) = (Gates::default(), Arc::default(), Arc::default());
        let clock = Arc::new(AtomicU64::new(1_700_000_000_000));
        let parts = parts(&store, &workspace, setting, (&gates, &waits, &dead), &clock);
        let handle = start(parts, settings(setting), session());
        let first = Watcher::new(handle.subscribe(EventFilter::all(), Since::Seq(Seq::START)));
        Self {
            store,
            workspace,
            setting,
            gates,
            waits,
            dead,
            clock,
            handle,
            log: Log::default(),
            watchers: vec![first],
            sent: Vec::new(),
            snapshots: Vec::new(),
            story: Vec::new(),
        }
    }

    /// Lets everything go as far as it can, which takes one tick of simulated time.
    pub(crate) async fn settle(&mut self) {
        self.pass(TICK).await;
    }

    /// Lets time pass.
    pub(crate) async fn pass(&mut self, time: Duration) {
        self.clock.fetch_add(u64::try_from(time.as_millis()).unwrap(), Ordering::SeqCst);
        tokio::time::sleep(time).await;
    }

    pub(crate) fn send(&mut self, kind: MessageKind) {
        // With an end, so that none is the beginning of another.
        let text = format!("message {}.", self.sent.len());
        let (handle, words) = (self.handle.clone(), text.clone());
        let going = tokio::spawn(async move { handle.send_as(kind, words).await });
        self.sent.push(Sent { text, kind, going: Some(going), done: None, doubtful: false });
    }

    pub(crate) fn snapshot(&mut self) {
        let (handle, name) = (self.handle.clone(), format!("place {}", self.snapshots.len()));
        self.snapshots.push(tokio::spawn(async move { handle.snapshot(&name).await }));
    }

    pub(crate) fn watch(&mut self) {
        let events = self.handle.subscribe(EventFilter::all(), Since::Seq(Seq::START));
        self.watchers.push(Watcher::new(events));
    }

    /// The process dies, and another one opens the session again.
    pub(crate) async fn restart(&mut self, cut_off: CutOffPolicy) -> Result<(), String> {
        self.dead.store(true, Ordering::SeqCst);
        self.gates.clear();
        for sent in &mut self.sent {
            if let Some(going) = sent.going.take() {
                going.abort();
                // Whoever sent it died with it, and never heard.
                sent.doubtful = true;
                sent.done = Some(Err("the process died".to_owned()));
            }
        }
        self.snapshots.drain(..).for_each(|snapshot| snapshot.abort());
        self.watchers.clear();
        if self.log.entries.is_empty() {
            // Nothing was ever written: there is nothing to open again.
            return Err("nothing".to_owned());
        }
        self.dead = Arc::default();
        self.gates = Gates::default();
        let doors = (&self.gates, &self.waits, &self.dead);
        let parts = parts(&self.store, &self.workspace, self.setting, doors, &self.clock);
        let settings = settings(self.setting);
        let opened = resume(parts, settings, session(), cut_off).await;
        // The old one goes when the new one is there, as nobody can know of the other's end.
        self.handle = opened.map_err(|error| format!("it can't be opened again: {error}"))?;
        self.watch();
        Ok(())
    }

    /// Everything that has to hold whenever nothing goes on any more by itself.
    pub(crate) async fn check(&mut self) -> Result<(), String> {
        let store = Arc::clone(&self.store);
        self.log.read(&*store).await?;
        self.messages()?;
        let status = self.handle.status();
        let all = status.unwritten == 0 && !self.writes();
        for watcher in &mut self.watchers {
            self.log.shown(watcher, all)?;
        }
        let waiting = self.gates.waiting();
        for (_, who) in &waiting {
            match who {
                Who::Tool(call) if !self.log.is_executing(call) => {
                    return Err(format!("{call} runs, and the log doesn't know"));
                }
                _ => {}
            }
        }
        if status.unwritten == 0 && !self.writes() {
            self.agrees(&waiting)?;
        }
        Ok(())
    }

    /// Adds to the story what is known at its end.
    pub(crate) fn tell(&mut self) {
        let entries = self.log.entries.iter().rev().take(12).rev();
        for entry in entries {
            let text: String = String::from_utf8_lossy(&entry.payload).chars().take(160).collect();
            self.story.push(format!("  entry {:?} {text}", entry.seq));
        }
        self.story.push(format!("  {:?}", self.handle.status()));
        for sent in &self.sent {
            self.story.push(format!("  {} {:?} {:?}", sent.text, sent.kind, sent.done));
        }
    }

    /// Whether the store is being written.
    pub(crate) fn writes(&self) -> bool {
        self.gates.waiting().iter().any(|(_, who)| matches!(who, Who::Append | Who::Appended))
    }

    /// A message whose sending has ended is on record, or it is not, as its sender was told.
    fn messages(&mut self) -> Result<(), String> {
        for sent in &mut self.sent {
            if sent.going.as_ref().is_some_and(JoinHandle::is_finished) {
                let ended = sent.going.take().and_then(JoinHandle::now_or_never).expect("it has ended");
                let ended = ended.map_err(|died| format!("sending died: {died}"))?;
                sent.doubtful |= matches!(&ended, Err(AgentError::InDoubt { .. }));
                sent.done = Some(ended.map_err(|error| error.to_string()));
            }
            let there =
                self.log.says(&sent.text) + self.log.queues(&sent.text) + self.log.gives_up(&sent.text);
            match &sent.done {
                _ if there > 1 => return Err(format!("`{}` is there {there} times", sent.text)),
                Some(Ok(_)) if there == 0 => return Err(format!("`{}` was sent and is nowhere", sent.text)),
                Some(Err(why)) if there > 0 && !sent.doubtful => {
                    return Err(format!("`{}` is there, though: {why}", sent.text));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// What the session says of itself agrees with what it waits for and with the log.
    fn agrees(&self, waiting: &[(u64, Who)]) -> Result<(), String> {
        let status = self.handle.status();
        let at = (status.state, status.turn_phase);
        let tools = waiting.iter().filter(|(_, who)| matches!(who, Who::Tool(_))).count();
        let wanted = if let Some(Who::Model(told)) =
            waiting.iter().map(|(_, who)| who).find(|who| matches!(who, Who::Model(_)))
        {
            if *told != self.log.state.messages {
                return Err(format!(
                    "the model is told {told:#?}, the log has {:#?}",
                    self.log.state.messages
                ));
            }
            (AgentState::Working, TurnPhase::StreamingModel)
        } else if tools > 0 {
            (AgentState::Working, TurnPhase::ToolExecuting)
        } else if !status.asked.is_empty() {
            (AgentState::Paused, TurnPhase::AwaitingApproval)
        } else {
            (AgentState::Ready, TurnPhase::Ready)
        };
        if at != wanted {
            return Err(format!("it is at {at:?} while {wanted:?} is due: {waiting:?}"));
        }
        let going = self.sent.iter().any(|sent| sent.going.is_some());
        let users = self.log.state.queue.iter().any(|queued| queued.kind == MessageKind::User);
        if at.0 == AgentState::Ready && users && !going {
            return Err(format!("it rests while messages wait: {:?}", self.log.state.queue));
        }
        if !going && status.queued != self.log.state.queue.len() {
            return Err(format!("{} messages wait, {} on record", status.queued, self.log.state.queue.len()));
        }
        let todos = self.handle.todos().get();
        if at.0 == AgentState::Ready && todos != self.log.state.todos {
            return Err(format!("todos {todos:?}, on record {:?}", self.log.state.todos));
        }
        let asked: Vec<&CallId> = status.asked.iter().collect();
        let open = |call: &CallId| self.log.state.calls.iter().any(|open| open.call.id == *call);
        if let Some(stray) = asked.iter().find(|call| !open(call)) {
            return Err(format!("{stray} is asked for, and is not open"));
        }
        Ok(())
    }

    /// What a restart would find.
    pub(crate) async fn check_load(&self) -> Result<(), String> {
        self.log.is_what_a_restart_finds(&*self.store).await
    }

    /// Whether nothing is left to do.
    pub(crate) fn is_done(&self) -> bool {
        let status = self.handle.status();
        status.state == AgentState::Ready
            && status.unwritten == 0
            && self.gates.waiting().is_empty()
            && self.sent.iter().all(|sent| sent.going.is_none())
    }

    /// What has to hold at the very end.
    pub(crate) async fn check_end(&mut self) -> Result<(), String> {
        let state = &self.log.state;
        if !state.calls.is_empty() || state.task.is_some() {
            return Err(format!("still open: {:?} {:?}", state.calls, state.task));
        }
        for sent in self.sent.iter().filter(|sent| matches!(sent.done, Some(Ok(_)))) {
            let answered = self.log.says(&sent.text) + self.log.gives_up(&sent.text);
            if sent.kind == MessageKind::User && answered != 1 {
                return Err(format!("`{}` is answered or given up {answered} times", sent.text));
            }
        }
        let answered =
            self.sent.iter().any(|sent| sent.kind == MessageKind::User && matches!(sent.done, Some(Ok(_))));
        if answered && self.handle.wait_until_finished().now_or_never().is_none() && !self.restarted() {
            return Err("whoever waits for the report waits for ever".to_owned());
        }
        self.check_load().await
    }

    fn restarted(&self) -> bool {
        self.story.iter().any(|step| step.starts_with("restart"))
    }

    /// The session ends; somebody else may have it.
    pub(crate) async fn close(&mut self) -> Result<(), String> {
        let handle = self.handle.clone();
        let closed = tokio::spawn(async move { handle.close().await });
        self.pass(Duration::from_secs(60)).await;
        if !closed.is_finished() {
            return Err("closing hangs".to_owned());
        }
        let now = UnixMillis(self.clock.load(Ordering::SeqCst));
        match self.store.acquire_lease(&session(), "somebody else", now, 1_000).await {
            Err(error) if !self.log.entries.is_empty() => Err(format!("the lease is not free: {error}")),
            _ => Ok(()),
        }
    }
}

fn settings(setting: Setting) -> RunSettings {
    RunSettings {
        mode: Mode::Edit,
        approver: Approver::Handle,
        approval_timeout: setting.approval_timeout.then_some(APPROVAL),
        concurrency: setting.concurrency,
        loop_guard: setting.loop_guard,
        checks: ChecksSetting::Off,
        max_turns: 12,
        ..RunSettings::default()
    }
}

type Doors<'a> = (&'a Gates, &'a Arc<AtomicBool>, &'a Arc<AtomicBool>);

fn parts(
    store: &Arc<MemoryStore>,
    workspace: &Arc<Workspace>,
    setting: Setting,
    (gates, waits, dead): Doors<'_>,
    clock: &Arc<AtomicU64>,
) -> SessionParts {
    let held = Held { gates: gates.clone(), dead: Arc::clone(dead), waits: Arc::clone(waits) };
    let mut registry = Registry::default();
    for does in Does::ALL {
        registry.add(Box::new(Waits { does, gates: gates.clone() }));
    }
    let clock = clock.clone();
    SessionParts {
        store: Arc::new(Gated::new(Arc::clone(store) as Arc<dyn Store>, held)),
        model: Arc::new(Told { gates: gates.clone(), deaf: setting.deaf }),
        index: Arc::new(SharedIndex::new(Arc::clone(workspace), Arc::default(), None)),
        workspace: Arc::clone(workspace),
        copy: None,
        planned_copy: None,
        // Without any back-end: no process is started.
        sandbox: Arc::new(Sandbox::new(SandboxSettings { allow: Vec::new(), ..SandboxSettings::default() })),
        toolchains: Arc::new(Toolchains::default()),
        registry,
        policy: Policy::default(),
        lasting_answers: Default::default(),
        redactor: Arc::new(Redactor::new(Vec::<String>::new())),
        hooks: Hooks::default(),
        clock: journeyman_agent::Clock::new(move || UnixMillis(clock.load(Ordering::SeqCst))),
        programs: Arc::new(|_: &str| None),
        holder: "the test".to_owned(),
        agents: None,
    }
}
