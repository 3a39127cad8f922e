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
use crate::log::{Log, envelope_of};
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
    live: broadcast::Sender<Arc<Envelope>>,
    reports: watch::Receiver<Option<Arc<RunReport>>>,
    actor: JoinHandle<()>,
}

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
    let live = log.live();
    let store = Arc::clone(&parts.store);
    let worker = Worker::new(parts, settings, id.clone(), log, Arc::clone(&shared));
    let actor = tokio::spawn(act(worker, messages, report));
    SessionHandle { id, inbox, shared, store, live, reports, actor }
}

/// Takes tasks until the handle is gone.
async fn act(
    mut worker: Worker,
    mut messages: mpsc::Receiver<String>,
    reports: watch::Sender<Option<Arc<RunReport>>>,
) {
    while let Some(task) = messages.recv().await {
        let report = worker.task(task, &mut messages).await;
        reports.send_replace(Some(Arc::new(report)));
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
        self.inbox.send(text.into()).await.map_err(|_| AgentError::Ended)
    }

    /// Answers a question. False when it is not open: never asked, answered, or withdrawn by an interrupt.
    pub fn decide(&self, call: &CallId, answer: Answer) -> bool {
        self.shared.answer(call, answer)
    }

    /// Stops the running task at once; its transcript stays valid.
    pub fn interrupt(&self) {
        self.shared.interrupt();
    }

    /// Events from now on, in order and without a gap.
    #[must_use]
    pub fn subscribe(&self) -> Subscription {
        Subscription {
            session: self.id.clone(),
            store: Arc::clone(&self.store),
            live: self.live.subscribe(),
            last: Seq::START,
            missed: VecDeque::new(),
            catching_up: false,
        }
    }

    /// Waits for the next task to end.
    ///
    /// # Errors
    /// [`AgentError::Ended`] when the session ended without a report.
    pub async fn finished(&self) -> Result<Arc<RunReport>, AgentError> {
        let mut reports = self.reports.clone();
        let report = reports.wait_for(Option::is_some).await.map_err(|_| AgentError::Ended)?;
        report.clone().ok_or(AgentError::Ended)
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
    live: broadcast::Receiver<Arc<Envelope>>,
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
                Ok(envelope) => match envelope.seq {
                    Some(seq) if seq <= self.last => {}
                    Some(seq) => {
                        self.last = seq;
                        return Ok(Some(envelope));
                    }
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
