//! A session that another process works on: shown as its log grows, and otherwise left alone.

use std::sync::Arc;
use std::time::Instant;

use journeyman_host::HostError;
use journeyman_host::events::{follow_events, read_events};
use journeyman_host::state::now;
use journeyman_protocol::{Envelope, Seq, SessionId};
use journeyman_terminal::Style;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::app::{App, JobResult, RecalledPart};
use crate::conversation_state::Conversation;
use crate::open_session::ClosedSession;
use crate::session_watch::SessionWatch;

impl App {
    /// Shows a session that another process works on. Returns false if none does, so that whatever
    /// kept it from being opened is something else.
    pub(crate) async fn watch_session(&mut self, id: &SessionId) -> Result<bool, HostError> {
        let state = Arc::clone(&self.setup.state);
        let holder = journeyman_agent::store::Store::lease_holder(&*state.store, id, now()).await;
        let Ok(Some(_)) = holder else { return Ok(false) };
        let started = Instant::now();
        let mut conversation = Conversation::new(started);
        let last = read_events(&state, id, Seq::START, &mut |envelope| {
            conversation.apply(envelope, started);
            Ok(())
        })
        .await?;
        self.show_recalled(conversation, RecalledPart::Tail);
        self.show_note(
            Style::Warning,
            "another process works on this session; it is shown here as it goes on",
        );
        let (sender, events) = mpsc::unbounded_channel();
        let stop = CancellationToken::new();
        let (session, stopped) = (id.clone(), stop.clone());
        self.jobs.push(Box::pin(async move {
            let mut show = |envelope: &Envelope| {
                sender.send(envelope.clone()).map_err(|_| HostError::failed("nobody watches any more"))
            };
            let ended = tokio::select! {
                () = stopped.cancelled() => None,
                ended = follow_events(&state, &session, last, &mut show) => Some(ended),
            };
            JobResult::WatchEnded { session, ended }
        }));
        self.surroundings.is_watched = true;
        self.watch = Some(SessionWatch { session: id.clone(), events, stop: stop.drop_guard() });
        Ok(true)
    }

    /// Applies an event of the watched session. Its questions are left to the process that works on
    /// the session.
    pub(crate) fn show_watched(&mut self, envelope: &Envelope) {
        self.conversation.apply(envelope, Instant::now());
        self.presentation.invalidate();
    }

    /// Handles the end of a watched session's work in the other process: the session goes on here.
    pub(crate) fn handle_watch_end(&mut self, session: &SessionId, ended: Option<Result<(), HostError>>) {
        let is_watched = self.watch.as_ref().is_some_and(|watch| watch.session == *session);
        let Some(ended) = ended.filter(|_| is_watched) else { return };
        self.surroundings.is_watched = false;
        if let Some(mut watch) = self.watch.take() {
            while let Ok(envelope) = watch.events.try_recv() {
                self.show_watched(&envelope);
            }
        }
        // A process that was killed has recorded no end of its work.
        self.conversation.end_work(Instant::now());
        match ended {
            Ok(()) => {
                self.closed_session = Some(ClosedSession::of_log(session.clone(), false));
                self.show_note(
                    Style::Dim,
                    "the other process is done; the next message goes on with the session here",
                );
            }
            Err(error) => self.show_note(Style::Bad, &error.to_string()),
        }
    }

    /// Returns true, and says so, if what is shown can only be watched.
    pub(crate) fn refuse_if_watched(&mut self) -> bool {
        if self.watch.is_some() {
            self.notice =
                Some("another process works on this session; /new begins one of your own".to_owned());
        }
        self.watch.is_some()
    }

    /// Opens the session that only was watched, for what needs to know where its work is. Returns
    /// false, and says so, where that can't be known now.
    pub(crate) async fn open_unread_session(&mut self) -> bool {
        if self.closed_session.as_ref().is_some_and(|closed| closed.template.is_none()) {
            self.open_resting_session().await;
            // A task that was cut off goes on.
            if self.conversation.is_working() {
                self.notice = Some("the session works; Esc stops it first".to_owned());
                return false;
            }
        }
        !self.refuse_if_watched()
    }

    /// Returns the session that is open, rests or is watched, if its log exists.
    pub(crate) fn shown_id(&self) -> Option<SessionId> {
        self.logged_id().or_else(|| self.watch.as_ref().map(|watch| watch.session.clone()))
    }

    /// Returns true if no session is open, watched or about to be opened.
    pub(crate) fn has_no_session(&self) -> bool {
        self.open_session.is_none() && self.watch.is_none() && self.closed_session.is_none()
    }

    /// Opens the session that rests, if there is one.
    pub(crate) async fn open_resting_session(&mut self) {
        let closed = self.closed_session.as_ref().map(|closed| (closed.id.clone(), closed.is_in_copy));
        if let Some((id, is_in_copy)) = closed {
            let opened = self.open_session_in_copy(&id, is_in_copy).await;
            self.explain_failed(opened);
        }
    }
}
