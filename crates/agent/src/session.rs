//! The actor and its handle.

use std::collections::VecDeque;
use std::sync::Arc;

use journeyman_model::Model;
use journeyman_policy::Policy;
use journeyman_policy::secrets::Redactor;
use journeyman_protocol::{CallId, Envelope, RunReport, Seq, SessionId};
use journeyman_sandbox::{Sandbox, Toolchains};
use journeyman_store::Store;
use journeyman_tools::Registry;
use journeyman_workspace::Workspace;
use tokio::sync::{broadcast, mpsc, watch};
use tokio::task::JoinHandle;

use crate::approvals::{Answer, Shared};
use crate::log::{Log, Position, Shown, envelope_of};
use crate::turn::Worker;
use crate::{AgentError, Clock, RunSettings};

/// Messages that may wait for a session before `send` waits too.
const INBOX: usize = 64;
/// Entries a lagging subscriber re-reads at once.
const REREAD: usize = 256;

/// Says whether a program is installed, by name.
pub type Programs = dyn Fn(&str) -> bool + Send + Sync;

/// What a session works with. Everything is passed in: there are no process-wide singletons.
pub struct Parts {
    /// Where the log is kept.
    pub store: Arc<dyn Store>,
    /// The model.
    pub model: Arc<dyn Model>,
    /// The project tree.
    pub workspace: Arc<Workspace>,
    /// Where commands run.
    pub sandbox: Arc<Sandbox>,
    /// Which toolchains commands see.
    pub toolchains: Arc<Toolchains>,
    /// The tools the model may call.
    pub registry: Registry,
    /// The rules.
    pub policy: Policy,
    /// What must never be shown or kept.
    pub redactor: Arc<Redactor>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Which programs are installed.
    pub programs: Arc<Programs>,
}

/// All that a surface holds of a session: send, decide, interrupt, subscribe. Dropping it ends the session
/// and whatever it runs.
pub struct SessionHandle {
    id: SessionId,
    inbox: mpsc::Sender<String>,
    shared: Arc<Shared>,
    store: Arc<dyn Store>,
    /// Weak, so that subscribers hear the end also when the actor dies before the handle is dropped.
    live: broadcast::WeakSender<Shown>,
    reports: watch::Receiver<Option<Answered>>,
    position: Arc<Position>,
    actor: JoinHandle<()>,
}

/// A task's report, and how many messages it and the ones before it answer.
type Answered = (u64, Arc<RunReport>);

/// Starts a session. Nothing is written or asked before the first [`SessionHandle::send`].
/// Has to be called within a Tokio runtime.
#[must_use]
pub fn start(parts: Parts, settings: RunSettings, id: SessionId) -> SessionHandle {
    let (inbox, messages) = mpsc::channel(INBOX);
    let (report, reports) = watch::channel(None);
    let shared = Arc::new(Shared::default());
    let log = Log::new(
        Arc::clone(&parts.store),
        id.clone(),
        Seq::START,
        Arc::clone(&parts.clock),
        Arc::clone(&parts.redactor),
    );
    let (live, position) = (log.live().downgrade(), log.position());
    let store = Arc::clone(&parts.store);
    let worker = Worker::new(parts, settings, id.clone(), log, Arc::clone(&shared));
    let actor = tokio::spawn(act(worker, messages, report, Arc::clone(&shared)));
    SessionHandle { id, inbox, shared, store, live, reports, position, actor }
}

/// Takes tasks until the handle is gone.
async fn act(
    mut worker: Worker,
    mut messages: mpsc::Receiver<String>,
    reports: watch::Sender<Option<Answered>>,
    shared: Arc<Shared>,
) {
    while let Some(task) = messages.recv().await {
        let report = worker.task(task, &mut messages).await;
        reports.send_replace(Some((shared.taken(), Arc::new(report))));
    }
}

impl SessionHandle {
    /// The session's id.
    #[must_use]
    pub fn id(&self) -> &SessionId {
        &self.id
    }

    /// Gives the session a task, or a further message while it works.
    ///
    /// # Errors
    /// [`AgentError::Ended`] when the session is over.
    pub async fn send(&self, text: impl Into<String>) -> Result<(), AgentError> {
        let place = self.inbox.reserve().await.map_err(|_| AgentError::Ended)?;
        self.shared.count_sent();
        place.send(text.into());
        Ok(())
    }

    /// Answers a question. False when it is not open: never asked, answered, or withdrawn by an interrupt.
    pub fn decide(&self, call: &CallId, answer: Answer) -> bool {
        self.shared.answer(call, answer)
    }

    /// Stops the running task at once, or the one that was sent last and has not begun; its transcript stays
    /// valid. Messages that wait behind a running task are not lost: they are the next task.
    pub fn interrupt(&self) {
        self.shared.interrupt();
    }

    /// Events from now on, in order and without a gap.
    #[must_use]
    pub fn subscribe(&self) -> Subscription {
        // The place comes first: what is written between the two is then heard, not missed.
        let last = self.position.get();
        Subscription {
            session: self.id.clone(),
            store: Arc::clone(&self.store),
            live: self.live.upgrade().map_or_else(|| broadcast::channel(1).1, |live| live.subscribe()),
            last,
            missed: VecDeque::new(),
            catching_up: false,
        }
    }

    /// Waits until everything that was sent before this call is answered, and gives the last report: one a
    /// task, and a message that was sent while a task ran belongs to that task if it still took it. Before the
    /// first message it waits for the first report.
    ///
    /// # Errors
    /// [`AgentError::Ended`] when the session ended without a report.
    pub async fn finished(&self) -> Result<Arc<RunReport>, AgentError> {
        let mut reports = self.reports.clone();
        let sent = self.shared.sent();
        let answered = |report: &Option<Answered>| report.as_ref().is_some_and(|(count, _)| *count >= sent);
        let report = reports.wait_for(answered).await.map_err(|_| AgentError::Ended)?;
        report.as_ref().map(|(_, report)| Arc::clone(report)).ok_or(AgentError::Ended)
    }
}

impl Drop for SessionHandle {
    fn drop(&mut self) {
        self.shared.interrupt();
        self.actor.abort();
    }
}

/// A view of a session's events. One that falls behind re-reads what it missed from the log; only live
/// deltas are lost to it, and their finished blocks are entries.
pub struct Subscription {
    session: SessionId,
    store: Arc<dyn Store>,
    live: broadcast::Receiver<Shown>,
    last: Seq,
    missed: VecDeque<Arc<Envelope>>,
    catching_up: bool,
}

impl Subscription {
    /// The next event, or `None` when the session is over.
    ///
    /// # Errors
    /// The store's, when missed entries can't be read again.
    pub async fn next(&mut self) -> Result<Option<Arc<Envelope>>, AgentError> {
        loop {
            if let Some(missed) = self.missed.pop_front() {
                return Ok(Some(missed));
            }
            if self.catching_up {
                self.read_page().await?;
                continue;
            }
            match self.live.recv().await {
                Ok(Shown { after, envelope }) => match envelope.seq {
                    Some(seq) if seq <= self.last => {}
                    Some(seq) => {
                        self.last = seq;
                        return Ok(Some(envelope));
                    }
                    // A delta from before an entry that was re-read: the entry has its text, whole.
                    None if after < self.last => {}
                    None => return Ok(Some(envelope)),
                },
                Err(broadcast::error::RecvError::Closed) => return Ok(None),
                Err(broadcast::error::RecvError::Lagged(_)) => {
                    // Listening starts anew before the log is read, so nothing falls between the two;
                    // what comes by both ways is dropped by its seq.
                    self.live = self.live.resubscribe();
                    self.catching_up = true;
                }
            }
        }
    }

    /// Reads one page of what was missed; an empty page means that the live view has caught up.
    async fn read_page(&mut self) -> Result<(), AgentError> {
        let entries = self.store.read(&self.session, self.last, REREAD).await?;
        self.catching_up = !entries.is_empty();
        self.last = entries.last().map_or(self.last, |entry| entry.seq);
        self.missed =
            entries.iter().filter_map(|entry| envelope_of(&self.session, entry)).map(Arc::new).collect();
        Ok(())
    }
}
