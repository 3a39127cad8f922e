//! The actor and its handle.

use std::sync::Arc;

use journeyman_model::Model;
use journeyman_policy::Policy;
use journeyman_policy::secrets::Redactor;
use journeyman_protocol::{CallId, RunReport, Seq, SessionId};
use journeyman_sandbox::{Sandbox, Toolchains};
use journeyman_store::Store;
use journeyman_tools::Registry;
use journeyman_workspace::Workspace;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use crate::approvals::{Answer, Shared};
use crate::log::{Filter, Log, LogBounds, Since, Subscription};
use crate::turn::Worker;
use crate::{AgentError, Clock, RunSettings};

/// Messages that may wait for a session before `send` waits too.
const INBOX: usize = 64;

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
    log: Log,
    reports: watch::Receiver<Option<Answered>>,
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
        LogBounds::default(),
    );
    let worker = Worker::new(parts, settings, id.clone(), log.clone(), Arc::clone(&shared));
    let actor = tokio::spawn(act(worker, messages, report, Arc::clone(&shared)));
    SessionHandle { id, inbox, shared, log, reports, actor }
}

/// Takes tasks until the handle is gone.
async fn act(
    mut worker: Worker,
    mut messages: mpsc::Receiver<String>,
    reports: watch::Sender<Option<Answered>>,
    shared: Arc<Shared>,
) {
    let _ended = Ended(worker.log.clone());
    while let Some(task) = messages.recv().await {
        let report = worker.task(task, &mut messages).await;
        reports.send_replace(Some((shared.taken(), Arc::new(report))));
    }
}

/// Lets subscribers hear the end, however the actor ends.
struct Ended(Log);

impl Drop for Ended {
    fn drop(&mut self) {
        self.0.close();
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
        self.log.subscribe(Filter::all(), Since::Now)
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
        self.log.close();
    }
}
