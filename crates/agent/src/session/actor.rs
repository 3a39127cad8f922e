//! The actor: one task a session, which takes what is sent to it until its handle is gone.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::FutureExt as _;
use journeyman_protocol::{AgentState, ErrorPhase, ErrorSeverity, Event, RunReport, Seq, TurnPhase};
use tokio::sync::watch;

use crate::AgentError;
use crate::recovery::lease::Lease;
use crate::session::handle::CutOff;
use crate::session::turn::{Begin, Worker};
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

/// The newest place of the log at which every call was answered, for whoever holds the handle.
#[derive(Debug)]
pub(crate) struct SafePlace(AtomicU64);

impl SafePlace {
    pub(crate) fn new(seq: Seq) -> Self {
        Self(AtomicU64::new(seq.0))
    }

    pub(crate) fn get(&self) -> Seq {
        Seq(self.0.load(Ordering::Acquire))
    }

    pub(crate) fn set(&self, seq: Seq) {
        self.0.store(seq.0, Ordering::Release);
    }
}

/// Works until the session is closed or somebody else has it.
pub(crate) async fn act(
    mut worker: Worker,
    opening: Opening,
    reports: watch::Sender<Option<Answered>>,
    lease: Arc<Lease>,
) {
    // A model or a hook may be anybody's. One that panics ends the session, and whoever waits for it hears so.
    let living = AssertUnwindSafe(live(&mut worker, opening, &reports)).catch_unwind();
    let ended = tokio::select! {
        biased;
        lost = lease.keep() => Err(lost),
        lived = living => Ok(lived),
    };
    match ended {
        Ok(Ok(())) => worker.end().await,
        Ok(Err(_)) => worker.died().await,
        // Nothing more may be written: only whoever listens hears of it.
        Err(why) => worker.log.emit(Event::StorageFailure { message: why.to_string(), waiting: 0 }),
    }
    worker.shared.closing.cancel();
    worker.shared.rest();
    worker.log.end().await;
    // The copy that it works in, too: whoever waits for the end may open it.
    drop(worker);
    lease.give_back().await;
    drop(reports);
}

async fn live(worker: &mut Worker, opening: Opening, reports: &watch::Sender<Option<Answered>>) {
    let shared = Arc::clone(&worker.shared);
    let mut begin = match opening {
        Opening::Fresh => None,
        Opening::Again(cut_off) => worker.reopen(cut_off).await,
    };
    while !shared.closing.is_cancelled() {
        let next = begin.take().or_else(|| shared.has_work().then_some(Begin::Message));
        match next {
            Some(begin) => {
                let report = worker.task(begin).await;
                reports.send_replace(Some((shared.taken(), Arc::new(report))));
            }
            None => idle(worker).await,
        }
    }
}

/// Waits for something to do. Entries that the store refused are tried again meanwhile.
async fn idle(worker: &mut Worker) {
    let shared = Arc::clone(&worker.shared);
    let todos = Arc::clone(&worker.todos);
    let mut wait = RETRY_FIRST;
    worker.log.rest();
    loop {
        let refused = worker.log.waiting() > 0;
        tokio::select! {
            () = shared.closing.cancelled() => return,
            () = shared.wake.notified() => return,
            // One that is made before the first message waits for the log to begin.
            () = todos.changed(), if worker.state.last > Seq::START => {
                worker.note_todos();
                worker.flush().await.ok();
            }
            () = tokio::time::sleep(wait), if refused => {
                // What the store says then is shown by the log itself.
                if let Err(AgentError::LostSession { .. }) = worker.flush().await {
                    shared.closing.cancel();
                }
                wait = wait.saturating_mul(2).min(RETRY_MOST);
            }
        }
    }
}

impl Worker {
    /// Says what the session is doing.
    pub(crate) fn become_(&mut self, state: AgentState) {
        let was = self.shared.status.send_if_modified(|status| {
            let changed = status.state != state;
            status.state = state;
            changed
        });
        if was {
            self.log.emit(Event::StateChanged { state });
        }
    }

    /// Says where in a turn the session is.
    pub(crate) fn at(&mut self, current: TurnPhase) {
        let mut previous = current;
        let step = self.state.books.step;
        self.shared.status.send_if_modified(|status| {
            previous = std::mem::replace(&mut status.turn_phase, current);
            status.step = step;
            previous != current
        });
        if previous != current {
            self.log.emit(Event::TurnPhaseChanged { previous, current });
        }
    }

    /// Writes what is queued, and notes how far the log is.
    pub(crate) async fn flush(&mut self) -> Result<(), AgentError> {
        self.log.flush().await?;
        self.forget_sealed().await;
        self.state.last = self.log.position();
        if self.state.is_settled() {
            self.state.safe = self.state.last;
            self.safe.set(self.state.last);
        }
        Ok(())
    }

    /// Tells of a failure that the run survives.
    pub(crate) fn warn(&mut self, phase: ErrorPhase, message: impl Into<String>) {
        let (severity, message) = (ErrorSeverity::Warn, message.into());
        self.log.emit(Event::Error { severity, phase, message });
    }

    /// Says that the session ends because of a bug. What the log holds can be opened again.
    async fn died(&mut self) {
        self.stop_background().await;
        let (severity, phase) = (ErrorSeverity::Error, ErrorPhase::System);
        let message =
            "the session ended in the middle of its work because of a bug; `jm resume` goes on with it";
        self.log.emit(Event::Error { severity, phase, message: message.to_owned() });
        // Nobody is left to be told.
        self.log.flush().await.ok();
    }

    /// Ends the session: what runs in the background ends with it.
    async fn end(&mut self) {
        self.stop_background().await;
        if self.state.last > Seq::START {
            self.note_todos();
            self.session_end().await;
            // Nobody is left to be told.
            self.flush().await.ok();
        }
    }
}
