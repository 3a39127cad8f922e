//! The handle: all that a surface holds of a session.

use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use journeyman_protocol::{CallId, MessageKind, ReminderCategory, RunReport, Seq, SessionId};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::actor::{self, Answered};
use super::assemble::{Assembled, assemble};
use super::inbox::Inbox;
use super::parts::Parts;
use super::settings::RunSettings;
use super::shared::{Answer, CutOff, Decided, Shared, Status};
use super::stages::SharedParts;
use crate::AgentError;
use crate::agents::pool::Member;
use crate::recovery::lease::Lease;
use crate::supervision::schedule::Schedule;
use crate::supervision::todos::Todos;
use crate::transcript::fork::check_name;
use crate::transcript::log::{Filter, Item, Log, Since, Subscription};
use crate::transcript::record::{MessageId, Record};
use crate::transcript::running::SafePlace;
use crate::transcript::state::State;

/// All that a surface holds of a session: send, decide, interrupt, subscribe. Clones are the same session; when the
/// last one is dropped the session ends, with whatever it runs.
#[derive(Clone)]
pub struct SessionHandle(Arc<Inner>);

impl std::fmt::Debug for SessionHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SessionHandle").field("id", &self.0.id).finish_non_exhaustive()
    }
}

struct Inner {
    id: SessionId,
    shared: Arc<Shared>,
    log: Log,
    lease: Arc<Lease>,
    inbox: Arc<Inbox>,
    todos: Arc<Todos>,
    schedule: Arc<Schedule>,
    safe: Arc<SafePlace>,
    reports: watch::Receiver<Option<Answered>>,
    actor: JoinHandle<()>,
}

/// Starts a session. Nothing is written or asked before the first [`SessionHandle::send`].
/// Has to be called within a Tokio runtime.
#[must_use]
pub fn start(parts: Parts, settings: RunSettings, id: SessionId) -> SessionHandle {
    let lease =
        Lease::new(Arc::clone(&parts.store), id.clone(), parts.holder.clone(), Arc::clone(&parts.clock));
    let assembled = assemble(parts, settings, id, State::default(), lease, Vec::new());
    open(assembled, actor::Opening::Fresh)
}

/// Opens a session again: what was cut off is closed with one result a call that says what is known, and its task
/// goes on, or is closed. A model, mode or sandbox other than before is taken from here on.
/// Has to be called within a Tokio runtime.
///
/// # Errors
/// [`AgentError::Store`] where there is no such session, where somebody else has it, or where the log can't be
/// read; [`AgentError::NewerRecord`] for a log of a newer version.
pub async fn resume(
    parts: Parts,
    settings: RunSettings,
    id: SessionId,
    cut_off: CutOff,
) -> Result<SessionHandle, AgentError> {
    let lease =
        Lease::new(Arc::clone(&parts.store), id.clone(), parts.holder.clone(), Arc::clone(&parts.clock));
    lease.take().await?;
    let state = match State::load(&*parts.store, &id).await {
        Ok(state) => state,
        Err(error) => {
            // Nobody has it now, and somebody else may be able to read it.
            lease.give_back().await;
            return Err(error);
        }
    };
    let assembled = assemble(parts, settings, id, state, lease, Vec::new());
    Ok(open(assembled, actor::Opening::Again(cut_off)))
}

fn open(assembled: Assembled, opening: actor::Opening) -> SessionHandle {
    let (report, reports) = watch::channel(None);
    let Assembled { session, id, log, safe, shared, lease } = assembled;
    let SharedParts { shared, inbox, todos, schedule } = shared;
    let acting = actor::act(session, opening, report, Arc::clone(&lease));
    let actor = tokio::spawn(acting);
    SessionHandle(Arc::new(Inner { id, shared, log, lease, inbox, todos, schedule, safe, reports, actor }))
}

impl SessionHandle {
    /// The session's id.
    #[must_use]
    pub fn id(&self) -> &SessionId {
        &self.0.id
    }

    /// Gives the session a task, or a further message while it works: it then goes along at the next boundary of
    /// the turn. When this returns the message is durable: it is answered also after a crash.
    ///
    /// # Errors
    /// [`AgentError::Ended`] when the session is over; [`AgentError::Store`] when the message could not be
    /// written: it is not sent then; [`AgentError::InDoubt`] when nobody knows: it is sent unless the program ends first;
    /// [`AgentError::MessageTooLong`].
    pub async fn send(&self, text: impl Into<String>) -> Result<MessageId, AgentError> {
        self.queue(MessageKind::User, ReminderCategory::General, text.into()).await
    }

    /// Gives the session a message of any kind. Only a person's wakes it; the others go along with the next turn.
    ///
    /// # Errors
    /// As [`SessionHandle::send`].
    pub async fn send_as(&self, kind: MessageKind, text: impl Into<String>) -> Result<MessageId, AgentError> {
        self.queue(kind, ReminderCategory::General, text.into()).await
    }

    /// Reminds the model of something with the next turn, wrapped so that it doesn't answer it.
    ///
    /// # Errors
    /// As [`SessionHandle::send`].
    pub async fn remind(
        &self,
        category: ReminderCategory,
        text: impl Into<String>,
    ) -> Result<MessageId, AgentError> {
        self.queue(MessageKind::Reminder, category, text.into()).await
    }

    async fn queue(
        &self,
        kind: MessageKind,
        category: ReminderCategory,
        text: String,
    ) -> Result<MessageId, AgentError> {
        if self.0.actor.is_finished() {
            return Err(AgentError::Ended);
        }
        let inbox = Arc::clone(&self.0.inbox);
        // In a task of its own: a caller who goes away in the middle must not leave a message on record that
        // nobody has queued.
        let queued = tokio::spawn(async move { inbox.take(kind, category, text).await });
        queued.await.map_err(|died| AgentError::Background { what: "sending", reason: died.to_string() })?
    }

    /// Answers a question. False when it is not open: never asked, answered, or withdrawn by an interrupt.
    pub fn decide(&self, call: &CallId, answer: Answer) -> bool {
        self.decide_as(call, answer, "user")
    }

    /// Answers a question under a name that the log keeps, such as a surface's.
    pub fn decide_as(&self, call: &CallId, answer: Answer, by: &str) -> bool {
        self.0.shared.answer(call, Decided { answer, by: by.to_owned() })
    }

    /// Stops the running task at once, or the one that was sent last and has not begun; its transcript stays
    /// valid. Messages that wait behind a running task are not lost: they are the next task.
    pub fn interrupt(&self) {
        self.0.shared.interrupt();
    }

    /// Events that pass a filter: from now on, or all after a bookmark and then from now on; in order, each once.
    #[must_use]
    pub fn subscribe(&self, filter: Filter, since: Since) -> Subscription {
        self.0.log.subscribe(filter, since)
    }

    /// Calls back with every event that passes a filter, until the session is over or the returned task is aborted.
    pub fn on(
        &self,
        filter: Filter,
        since: Since,
        mut heard: impl FnMut(&journeyman_protocol::Envelope) + Send + 'static,
    ) -> JoinHandle<Result<(), AgentError>> {
        let mut events = self.subscribe(filter, since);
        tokio::spawn(async move {
            while let Some(envelope) = events.next().await? {
                heard(&envelope);
            }
            Ok(())
        })
    }

    /// Where the session is.
    #[must_use]
    pub fn status(&self) -> Status {
        let mut status = self.0.shared.status.borrow().clone();
        status.unwritten = self.0.log.waiting();
        status
    }

    /// The status whenever it changes.
    #[must_use]
    pub fn watch(&self) -> watch::Receiver<Status> {
        self.0.shared.status.subscribe()
    }

    /// The last entry of the log: a bookmark.
    #[must_use]
    pub fn bookmark(&self) -> Seq {
        self.0.log.position()
    }

    /// What is to be done: the list that the model keeps. A change that is made here is logged with the next step, or
    /// when the session is next idle.
    #[must_use]
    pub fn todos(&self) -> &Todos {
        &self.0.todos
    }

    /// Tasks that run every so many steps, or when somebody triggers them.
    #[must_use]
    pub fn schedule(&self) -> &Schedule {
        &self.0.schedule
    }

    /// Gives the newest place at which every call was answered a name, for [`fork`](crate::fork).
    ///
    /// # Errors
    /// [`AgentError::SnapshotName`]; the store's.
    pub async fn snapshot(&self, name: &str) -> Result<Seq, AgentError> {
        check_name(name)?;
        let at = self.0.safe.get();
        let offered =
            self.0.log.offer(vec![Item::from(Record::Snapshot { name: name.to_owned(), at })]).await;
        if let Err(AgentError::InDoubt { .. }) = &offered {
            // A session that rests doesn't know that something waits to be written again.
            self.0.shared.wake.notify_one();
        }
        offered?;
        Ok(at)
    }

    /// Waits until everything that was sent before this call is answered, and gives the last report: one a
    /// task, and a message that was sent while a task ran belongs to that task if it still took it. Before the
    /// first message it waits for the first report.
    ///
    /// # Errors
    /// [`AgentError::Ended`] when the session ended without a report.
    pub async fn finished(&self) -> Result<Arc<RunReport>, AgentError> {
        let mut reports = self.0.reports.clone();
        let sent = self.0.shared.sent().unwrap_or_default();
        let answered = |report: &Option<Answered>| report.as_ref().is_some_and(|(upto, _)| *upto >= sent);
        let report = reports.wait_for(answered).await.map_err(|_| AgentError::Ended)?;
        report.as_ref().map(|(_, report)| Arc::clone(report)).ok_or(AgentError::Ended)
    }

    /// Ends the session: what runs is interrupted and written down, background commands are stopped, the session is
    /// free for others. Waits until that is done.
    pub async fn close(&self) {
        self.0.shared.closing.cancel();
        let mut reports = self.0.reports.clone();
        // The actor drops its end of the reports when it is done.
        while reports.changed().await.is_ok() {}
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.shared.closing.cancel();
        self.shared.interrupt();
        self.actor.abort();
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let (lease, log, mut reports) = (Arc::clone(&self.lease), self.log.clone(), self.reports.clone());
            runtime.spawn(async move {
                // The actor drops its end of the reports when it is gone. What it was writing is still under way:
                // whoever has the session next must not find it in the middle of their log.
                while reports.changed().await.is_ok() {}
                log.end().await;
                lease.give_back().await;
            });
        }
    }
}

impl Member for SessionHandle {
    type Status = Status;

    fn send_as(&self, kind: MessageKind, text: String) -> BoxFuture<'_, Result<(), AgentError>> {
        async move { SessionHandle::send_as(self, kind, text).await.map(drop) }.boxed()
    }

    fn status(&self) -> BoxFuture<'_, Status> {
        std::future::ready(SessionHandle::status(self)).boxed()
    }

    fn close(&self) -> BoxFuture<'_, Result<(), AgentError>> {
        async move {
            SessionHandle::close(self).await;
            Ok(())
        }
        .boxed()
    }
}
