//! The actor: one task a session, which takes what is sent to it until its handle is gone.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use journeyman_protocol::{ErrorPhase, ErrorSeverity, Event, RunReport, Seq};
use tokio::sync::watch;

use crate::AgentError;
use crate::hooks::unseen::ChangeReview;
use crate::recovery::lease::Lease;
use crate::session::shared::CutOff;
use crate::session::stages::Session;
use crate::session::task_begin::Begin;
use crate::transcript::record::MessageId;

/// How long after a refused write the log is tried again; doubled every time.
const RETRY_FIRST: Duration = Duration::from_secs(1);
/// The longest wait between two tries.
const RETRY_MOST: Duration = Duration::from_secs(60);

/// A task's report, and the newest message that it or one before it answers.
pub(crate) type Answered = (MessageId, Arc<RunReport>);

/// How a session is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Opening {
    /// It has no log yet.
    Fresh,
    /// It has one, and perhaps a task that was cut off.
    Again(CutOff),
}

/// Works until the session is closed or somebody else has it.
pub(crate) async fn act(
    mut session: Session,
    opening: Opening,
    reports: watch::Sender<Option<Answered>>,
    lease: Arc<Lease>,
) {
    // A model or a hook may be anybody's. One that panics ends the session, and whoever waits for it hears so.
    let living = AssertUnwindSafe(live(&mut session, opening, &reports)).catch_unwind();
    let ended = tokio::select! {
        biased;
        lost = lease.keep() => Err(lost),
        lived = living => Ok(lived),
    };
    match ended {
        Ok(Ok(())) => session.end().await,
        Ok(Err(_)) => session.died().await,
        // Nothing more may be written: only whoever listens hears of it.
        Err(why) => {
            session.cx.transcript.emit(Event::StorageFailure { message: why.to_string(), waiting: 0 })
        }
    }
    session.cx.shared.closing.cancel();
    session.cx.shared.rest();
    session.cx.transcript.log().end().await;
    // The copy that it works in, too: whoever waits for the end may open it.
    drop(session);
    lease.give_back().await;
    drop(reports);
}

async fn live(session: &mut Session, opening: Opening, reports: &watch::Sender<Option<Answered>>) {
    let shared = Arc::clone(&session.cx.shared);
    let mut begin = match opening {
        Opening::Fresh => None,
        Opening::Again(cut_off) => session.reopen(cut_off).await,
    };
    while !shared.closing.is_cancelled() {
        let next = begin.take().or_else(|| shared.has_work().then_some(Begin::Message));
        match next {
            Some(begin) => {
                let report = session.task(begin).await;
                reports.send_replace(Some((shared.taken(), Arc::new(report))));
            }
            None => idle(session).await,
        }
    }
}

/// Waits for something to do. Entries that the store refused are tried again meanwhile.
async fn idle(session: &mut Session) {
    let shared = Arc::clone(&session.cx.shared);
    let todos = session.supervision.todos();
    let mut wait = RETRY_FIRST;
    session.cx.transcript.log().rest();
    loop {
        let refused = session.cx.transcript.log().waiting() > 0;
        tokio::select! {
            () = shared.closing.cancelled() => return,
            () = shared.wake.notified() => return,
            // One that is made before the first message waits for the log to begin.
            () = todos.changed(), if session.cx.transcript.state().last > Seq::START => {
                session.supervision.note_todos(&mut session.cx);
                session.cx.transcript.flush().await.ok();
            }
            () = tokio::time::sleep(wait), if refused => {
                // What the store says then is shown by the log itself.
                if let Err(AgentError::LostSession { .. }) = session.cx.transcript.flush().await {
                    shared.closing.cancel();
                }
                wait = wait.saturating_mul(2).min(RETRY_MOST);
            }
        }
    }
}

impl Session {
    /// Says that the session ends because of a bug. What the log holds can be opened again.
    async fn died(&mut self) {
        self.runner.stop_background(&mut self.cx).await;
        let (severity, phase) = (ErrorSeverity::Error, ErrorPhase::System);
        let message =
            "the session ended in the middle of its work because of a bug; `jm resume` goes on with it";
        self.cx.transcript.emit(Event::Error { severity, phase, message: message.to_owned() });
        // Nobody is left to be told.
        self.cx.transcript.flush().await.ok();
    }

    /// Ends the session: what runs in the background ends with it.
    async fn end(&mut self) {
        self.runner.stop_background(&mut self.cx).await;
        if self.cx.transcript.state().last > Seq::START {
            self.supervision.note_todos(&mut self.cx);
            let review = ChangeReview { approvals: &mut self.approvals, checkpoints: &mut self.checkpoints };
            self.hooks.session_end(&mut self.cx, review).await;
            // Nobody is left to be told.
            self.cx.transcript.flush().await.ok();
        }
    }
}
