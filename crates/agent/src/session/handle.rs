//! The session handle: the only access that a surface has to a session.

use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use journeyman_protocol::{CallId, MessageKind, ReminderCategory, RunReport, Seq, SessionId, Tokens};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::actor::{self, AnsweredTask};
use super::assemble::{AssembledSession, assemble_session};
use super::inbox::Inbox;
use super::running_session::SharedParts;
use super::session_parts::SessionParts;
use super::settings::RunSettings;
use super::shared_state::{AuthoredAnswer, CutOffPolicy, PermissionAnswer, SessionShared, SessionStatus};
use super::user_message::UserMessage;
use crate::AgentError;
use crate::agents::role::AgentRole;
use crate::agents::session_registry::RegisteredSession;
use crate::recovery::lease::Lease;
use crate::supervision::schedule::Schedule;
use crate::supervision::todos::SharedTodoList;
use crate::transcript::fork::check_snapshot_name;
use crate::transcript::log::{EventFilter, Log, LogEntry, Since, Subscription};
use crate::transcript::log_reader::read_pinned;
use crate::transcript::pins::{pinned_message, unpinned_message};
use crate::transcript::record::{MessageId, Record};
use crate::transcript::running_transcript::SafePosition;
use crate::transcript::state::State;

/// A session as its surfaces use it: send, decide, interrupt, subscribe. Clones refer to the same
/// session. Dropping the last clone ends the session and everything it runs.
#[derive(Clone)]
pub struct SessionHandle(Arc<HandleInner>);

impl std::fmt::Debug for SessionHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SessionHandle").field("id", &self.0.id).finish_non_exhaustive()
    }
}

struct HandleInner {
    id: SessionId,
    shared: Arc<SessionShared>,
    log: Log,
    lease: Arc<Lease>,
    inbox: Arc<Inbox>,
    todos: Arc<SharedTodoList>,
    schedule: Arc<Schedule>,
    safe: Arc<SafePosition>,
    reports: watch::Receiver<Option<AnsweredTask>>,
    actor: JoinHandle<()>,
}

/// Starts a session. Writes nothing and sends no request before the first [`SessionHandle::send`].
/// Must be called within a Tokio runtime.
#[must_use]
pub fn start(parts: SessionParts, settings: RunSettings, id: SessionId) -> SessionHandle {
    let lease = Lease::new(Arc::clone(&parts.store), id.clone(), parts.holder.clone(), parts.clock.clone());
    let assembled = assemble_session(parts, settings, id, State::default(), lease, Vec::new());
    spawn_session(assembled, actor::SessionOpening::New)
}

/// Starts a session that is an agent; see [`AgentDefinition`](crate::agents::AgentDefinition) for
/// its role and first message. Its report has the output. Must be called within a Tokio runtime.
#[must_use]
pub fn start_agent(
    parts: SessionParts,
    settings: RunSettings,
    id: SessionId,
    role: AgentRole,
) -> SessionHandle {
    let lease = Lease::new(Arc::clone(&parts.store), id.clone(), parts.holder.clone(), parts.clock.clone());
    let first = vec![Record::Role(Box::new(role.clone()))];
    let state = State { role: Some(Arc::new(role)), ..State::default() };
    spawn_session(assemble_session(parts, settings, id, state, lease, first), actor::SessionOpening::New)
}

/// Opens an existing session. Every call that was cut off gets one result that states what is known
/// of its effect, and the interrupted task continues or is closed as `cut_off` says. A changed
/// model, mode or sandbox applies from here on. Must be called within a Tokio runtime.
///
/// # Errors
/// [`AgentError::Store`] if there is no such session, if another process holds it, or if the log
/// can't be read; [`AgentError::NewerRecord`] if a newer version wrote the log.
pub async fn resume(
    parts: SessionParts,
    settings: RunSettings,
    id: SessionId,
    cut_off: CutOffPolicy,
) -> Result<SessionHandle, AgentError> {
    resume_from(parts, settings, id, State::default(), cut_off).await
}

/// Opens an existing session as [`resume`] does, from a state that was read before. The state is
/// read again if the log has newer entries.
///
/// # Errors
/// As [`resume`].
pub async fn resume_from(
    parts: SessionParts,
    settings: RunSettings,
    id: SessionId,
    known: State,
    cut_off: CutOffPolicy,
) -> Result<SessionHandle, AgentError> {
    let lease = Lease::new(Arc::clone(&parts.store), id.clone(), parts.holder.clone(), parts.clock.clone());
    lease.acquire().await?;
    let state = match known.reload_if_outdated(&*parts.store, &id).await {
        Ok(state) => state,
        Err(error) => {
            // Releases the lease: another process may be able to read the log.
            lease.release().await;
            return Err(error);
        }
    };
    let assembled = assemble_session(parts, settings, id, state, lease, Vec::new());
    Ok(spawn_session(assembled, actor::SessionOpening::Existing(cut_off)))
}

fn spawn_session(assembled: AssembledSession, opening: actor::SessionOpening) -> SessionHandle {
    let (report, reports) = watch::channel(None);
    let AssembledSession { session, id, log, safe, shared, lease } = assembled;
    let SharedParts { shared, inbox, todos, schedule } = shared;
    let acting = actor::run_actor(session, opening, report, Arc::clone(&lease));
    let actor = tokio::spawn(acting);
    SessionHandle(Arc::new(HandleInner {
        id,
        shared,
        log,
        lease,
        inbox,
        todos,
        schedule,
        safe,
        reports,
        actor,
    }))
}

impl SessionHandle {
    /// Returns the session's id.
    #[must_use]
    pub fn id(&self) -> &SessionId {
        &self.0.id
    }

    /// Gives the session a task: a text, or a [`UserMessage`] with images. A message sent while a
    /// task runs joins it at the next boundary of the turn. The message is durable when this
    /// returns: it is answered even after a crash.
    ///
    /// # Errors
    /// [`AgentError::Ended`] if the session is over; [`AgentError::Store`] if the message could not
    /// be written, and so was not sent; [`AgentError::InDoubt`] if the store can't tell: the
    /// message is sent unless the program ends first; [`AgentError::MessageTooLong`].
    pub async fn send(&self, message: impl Into<UserMessage>) -> Result<MessageId, AgentError> {
        self.queue_message(MessageKind::User, ReminderCategory::General, message.into()).await
    }

    /// Sends a message of any kind. Only a person's message wakes the session; others wait for the
    /// next turn.
    ///
    /// # Errors
    /// As [`SessionHandle::send`].
    pub async fn send_as(&self, kind: MessageKind, text: impl Into<String>) -> Result<MessageId, AgentError> {
        self.queue_message(kind, ReminderCategory::General, UserMessage::from(text.into())).await
    }

    /// Adds a reminder to the next turn, wrapped so that the model doesn't answer it. A reminder
    /// that waits already is not added again: its id is returned.
    ///
    /// # Errors
    /// As [`SessionHandle::send`].
    pub async fn remind(
        &self,
        category: ReminderCategory,
        text: impl Into<String>,
    ) -> Result<MessageId, AgentError> {
        self.queue_message(MessageKind::Reminder, category, UserMessage::from(text.into())).await
    }

    /// Pins a text: the model gets it with the next turn, and it stays whole when the conversation
    /// is shortened. It doesn't wake the session.
    ///
    /// # Errors
    /// As [`SessionHandle::send`]; [`AgentError::NotPinned`] for a text that is blank, longer than
    /// 2,000 bytes or pinned already, and beside 20 others.
    pub async fn pin(&self, text: &str) -> Result<(), AgentError> {
        let message = pinned_message(text, &self.pinned().await?)?;
        self.queue_message(MessageKind::System, ReminderCategory::Pinned, message.into()).await.map(drop)
    }

    /// Unpins a text, and tells the model so with the next turn.
    ///
    /// # Errors
    /// As [`SessionHandle::send`].
    pub async fn unpin(&self, text: &str) -> Result<(), AgentError> {
        let message = unpinned_message(text).into();
        self.queue_message(MessageKind::System, ReminderCategory::Unpinned, message).await.map(drop)
    }

    /// Returns the pinned texts, oldest first, without secrets.
    ///
    /// # Errors
    /// [`AgentError::Store`] if the log can't be read.
    pub async fn pinned(&self) -> Result<Vec<String>, AgentError> {
        read_pinned(&**self.0.log.store(), &self.0.id).await
    }

    async fn queue_message(
        &self,
        kind: MessageKind,
        category: ReminderCategory,
        message: UserMessage,
    ) -> Result<MessageId, AgentError> {
        if self.0.actor.is_finished() {
            return Err(AgentError::Ended);
        }
        let inbox = Arc::clone(&self.0.inbox);
        // A separate task: if the caller is dropped halfway, a logged message must still be queued.
        let queued = tokio::spawn(async move { inbox.accept(kind, category, message).await });
        queued.await.map_err(|died| AgentError::Background { what: "sending", reason: died.to_string() })?
    }

    /// Takes back a person's message that no task has taken yet. Returns false if one has, or there
    /// is no such message.
    ///
    /// # Errors
    /// [`AgentError::Ended`] if the session is over; [`AgentError::Store`] if the withdrawal could
    /// not be written, so that the message stays queued.
    pub async fn withdraw_message(&self, id: MessageId) -> Result<bool, AgentError> {
        if self.0.actor.is_finished() {
            return Err(AgentError::Ended);
        }
        let inbox = Arc::clone(&self.0.inbox);
        // A separate task: a caller that is dropped halfway must not leave a message half removed.
        let withdrawn = tokio::spawn(async move { inbox.withdraw_message(id).await });
        withdrawn
            .await
            .map_err(|died| AgentError::Background { what: "withdrawing", reason: died.to_string() })?
    }

    /// Returns the messages of a person that no task has taken yet.
    #[must_use]
    pub fn waiting_messages(&self) -> Vec<MessageId> {
        self.0.shared.waiting_messages()
    }

    /// Answers a question. Returns false if it is not open: never asked, already answered or
    /// withdrawn.
    pub fn decide(&self, call: &CallId, answer: PermissionAnswer) -> bool {
        self.decide_as(call, answer, "user")
    }

    /// Answers a question under a name that the log keeps, such as the name of a surface.
    pub fn decide_as(&self, call: &CallId, answer: PermissionAnswer, by: &str) -> bool {
        self.0.shared.answer_question(call, AuthoredAnswer { answer, by: by.to_owned() })
    }

    /// Stops the running task, or the one that was sent and has not begun, or a compaction between
    /// tasks. The transcript stays valid. Messages queued behind a running task become the next
    /// task.
    pub fn interrupt(&self) {
        self.0.shared.interrupt();
    }

    /// Subscribes to the events that pass a filter, in order and each once. `since` selects the
    /// events from now on, or also those after a bookmark.
    #[must_use]
    pub fn subscribe(&self, filter: EventFilter, since: Since) -> Subscription {
        self.0.log.subscribe(filter, since)
    }

    /// Calls `heard` for every event that passes a filter, until the session ends or the returned
    /// task is aborted.
    pub fn on_events(
        &self,
        filter: EventFilter,
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

    /// Returns the session's current status.
    #[must_use]
    pub fn status(&self) -> SessionStatus {
        let mut status = self.0.shared.status.borrow().clone();
        status.unwritten = self.0.log.unwritten_count();
        status
    }

    /// Returns a receiver that is notified when the status changes.
    #[must_use]
    pub fn watch_status(&self) -> watch::Receiver<SessionStatus> {
        self.0.shared.status.subscribe()
    }

    /// Returns the number of the log's last entry, as a bookmark.
    #[must_use]
    pub fn last_position(&self) -> Seq {
        self.0.log.position()
    }

    /// Returns the list of todos that the model keeps. A change made through this list is logged
    /// with the next step, or when the session is next idle.
    #[must_use]
    pub fn todos(&self) -> &SharedTodoList {
        &self.0.todos
    }

    /// Returns the schedule of tasks that run every few steps or when triggered.
    #[must_use]
    pub fn schedule(&self) -> &Schedule {
        &self.0.schedule
    }

    /// Shortens the conversation now, or at the next boundary of the running turn. Returns the
    /// estimated tokens of the next request before and after. The log keeps every message.
    ///
    /// # Errors
    /// [`AgentError::Ended`] if the session is over; [`AgentError::NotShortened`] if a hook forbids
    /// it or nothing can be left out.
    pub async fn compact(&self) -> Result<(Tokens, Tokens), AgentError> {
        if self.0.actor.is_finished() {
            return Err(AgentError::Ended);
        }
        let answer = self.0.shared.request_compaction().await.map_err(|_| AgentError::Ended)?;
        answer.map_err(|reason| AgentError::NotShortened { reason })
    }

    /// Names the newest position in the log where every call has its result, for
    /// [`fork`](crate::fork).
    ///
    /// # Errors
    /// [`AgentError::SnapshotName`] for an invalid name, and errors of the store.
    pub async fn snapshot(&self, name: &str) -> Result<Seq, AgentError> {
        check_snapshot_name(name)?;
        let at = self.0.safe.get();
        let offered = self
            .0
            .log
            .write_or_remove(vec![LogEntry::from(Record::Snapshot { name: name.to_owned(), at })])
            .await;
        if let Err(AgentError::InDoubt { .. }) = &offered {
            // Wakes the actor, which retries the write when it is idle.
            self.0.shared.wake.notify_one();
        }
        offered?;
        Ok(at)
    }

    /// Waits until every message sent before this call is answered, and returns the last report.
    /// Each task has one report. A message sent while a task runs belongs to that task if the task
    /// still took it. Before the first message, waits for the first report.
    ///
    /// # Errors
    /// [`AgentError::Ended`] if the session ended without a report.
    pub async fn wait_until_finished(&self) -> Result<Arc<RunReport>, AgentError> {
        let mut reports = self.0.reports.clone();
        let sent = self.0.shared.newest_sent_message().unwrap_or_default();
        let answered = |report: &Option<AnsweredTask>| report.as_ref().is_some_and(|(upto, _)| *upto >= sent);
        let report = reports.wait_for(answered).await.map_err(|_| AgentError::Ended)?;
        report.as_ref().map(|(_, report)| Arc::clone(report)).ok_or(AgentError::Ended)
    }

    /// Ends the session and waits until it has ended: the running task is interrupted and recorded,
    /// background commands are stopped, and the lease is released.
    pub async fn close(&self) {
        self.0.shared.closing.cancel();
        let mut reports = self.0.reports.clone();
        // The actor drops its sender when it has ended.
        while reports.changed().await.is_ok() {}
    }
}

impl Drop for HandleInner {
    fn drop(&mut self) {
        self.shared.closing.cancel();
        self.shared.interrupt();
        self.actor.abort();
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let (lease, log, mut reports) = (Arc::clone(&self.lease), self.log.clone(), self.reports.clone());
            runtime.spawn(async move {
                // The actor drops its sender when it has ended. A write may still be under way, and
                // it must finish before another process takes the session.
                while reports.changed().await.is_ok() {}
                log.stop_writing().await;
                lease.release().await;
            });
        }
    }
}

impl RegisteredSession for SessionHandle {
    type Status = SessionStatus;

    fn send_as(&self, kind: MessageKind, text: String) -> BoxFuture<'_, Result<(), AgentError>> {
        async move { SessionHandle::send_as(self, kind, text).await.map(drop) }.boxed()
    }

    fn status(&self) -> BoxFuture<'_, SessionStatus> {
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
