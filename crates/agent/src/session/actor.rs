//! The session actor: a Tokio task that runs the session's work until its handle is dropped or
//! closed.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use journeyman_protocol::{ErrorPhase, ErrorSeverity, Event, RunReport, Seq};
use tokio::sync::watch;

use crate::AgentError;
use crate::hooks::change_review::ChangeReview;
use crate::recovery::lease::Lease;
use crate::session::running_session::Session;
use crate::session::shared_state::CutOffPolicy;
use crate::session::task_begin::TaskBegin;
use crate::transcript::record::MessageId;

/// Delay before the first retry after the store refused a write. It doubles with every retry.
const FIRST_RETRY_DELAY: Duration = Duration::from_secs(1);
/// Maximum delay between two retries.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(60);

/// A task's report with the id of the newest message of a person that the report covers.
pub(crate) type AnsweredTask = (MessageId, Arc<RunReport>);

/// The two ways to open a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SessionOpening {
    /// A new session, which has no log yet.
    New,
    /// A session with a log, and maybe with a task that was cut off.
    Existing(CutOffPolicy),
}

/// Runs the session until it is closed or another process takes its lease.
pub(crate) async fn run_actor(
    mut session: Session,
    opening: SessionOpening,
    reports: watch::Sender<Option<AnsweredTask>>,
    lease: Arc<Lease>,
) {
    // A panic in a model or hook implementation ends the session instead of leaving callers
    // waiting.
    let living = AssertUnwindSafe(run_tasks(&mut session, opening, &reports)).catch_unwind();
    let ended = tokio::select! {
        biased;
        lost = lease.renew_until_lost() => Err(lost),
        lived = living => Ok(lived),
    };
    match ended {
        Ok(Ok(())) => session.end_session().await,
        Ok(Err(_)) => session.report_bug().await,
        // Nothing may be written after the lease is lost, so only live subscribers get this event.
        Err(why) => {
            session.cx.transcript.emit(Event::StorageFailure { message: why.to_string(), waiting: 0 })
        }
    }
    session.cx.shared.closing.cancel();
    session.cx.shared.reset_status();
    session.cx.transcript.log().stop_writing().await;
    // Also drops the isolated copy, so that a caller that waits for the end can open it.
    drop(session);
    lease.release().await;
    drop(reports);
}

async fn run_tasks(
    session: &mut Session,
    opening: SessionOpening,
    reports: &watch::Sender<Option<AnsweredTask>>,
) {
    let shared = Arc::clone(&session.cx.shared);
    let mut begin = match opening {
        SessionOpening::New => None,
        SessionOpening::Existing(cut_off) => session.reopening().run(cut_off).await,
    };
    while !shared.closing.is_cancelled() {
        let next = begin.take().or_else(|| shared.has_work().then_some(TaskBegin::Message));
        match next {
            Some(begin) => {
                let report = session.run_task(begin).await;
                reports.send_replace(Some((shared.newest_taken_message(), Arc::new(report))));
            }
            None if shared.is_compaction_requested() => {
                session.answer_compaction_request(&shared.start_work_between_tasks()).await;
            }
            None => wait_for_work(session).await,
        }
    }
}

/// Waits for work. Meanwhile retries entries that the store refused.
async fn wait_for_work(session: &mut Session) {
    let shared = Arc::clone(&session.cx.shared);
    let todos = session.supervision.todos();
    let mut wait = FIRST_RETRY_DELAY;
    session.cx.transcript.log().release_memory();
    loop {
        let refused = session.cx.transcript.log().unwritten_count() > 0;
        tokio::select! {
            () = shared.closing.cancelled() => return,
            () = shared.wake.notified() => return,
            // A todo that is added before the first message waits until the log begins.
            () = todos.wait_for_change(), if session.cx.transcript.state().last > Seq::START => {
                session.supervision.record_todo_changes(&mut session.cx);
                session.cx.transcript.flush().await.ok();
            }
            () = tokio::time::sleep(wait), if refused => {
                // The log itself reports the store's error.
                if let Err(AgentError::LostSession { .. }) = session.cx.transcript.flush().await {
                    shared.closing.cancel();
                }
                wait = wait.saturating_mul(2).min(MAX_RETRY_DELAY);
            }
        }
    }
}

impl Session {
    /// Reports that a bug ended the session. `jm resume` can open the log again.
    async fn report_bug(&mut self) {
        self.runner.stop_background_commands(&mut self.cx).await;
        let (severity, phase) = (ErrorSeverity::Error, ErrorPhase::System);
        let message =
            "the session ended in the middle of its work because of a bug; `jm resume` goes on with it";
        self.cx.transcript.emit(Event::Error { severity, phase, message: message.to_owned() });
        // A failed flush has no caller left to report to.
        self.cx.transcript.flush().await.ok();
    }

    /// Ends the session and its background commands.
    async fn end_session(&mut self) {
        self.runner.stop_background_commands(&mut self.cx).await;
        if self.cx.transcript.state().last > Seq::START {
            self.supervision.record_todo_changes(&mut self.cx);
            let review = ChangeReview { approvals: &mut self.approvals, checkpoints: &mut self.checkpoints };
            self.hooks.run_session_end(&mut self.cx, review).await;
            // A failed flush has no caller left to report to.
            self.cx.transcript.flush().await.ok();
        }
    }
}
