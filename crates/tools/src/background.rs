//! Commands that run beside the session's turns.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::join_all;
use journeyman_protocol::{CallId, FileChange, GuardViolation, clip_to_bytes};
use journeyman_sandbox::Outcome;
use journeyman_workspace::{GuardedState, Workspace};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::ToolError;
use crate::unread_output::Unread;

/// Commands that run at once: a server, a watcher, a few builds; on two cores more get in each
/// other's way.
pub const MAX_IN_BACKGROUND: usize = 8;
/// Commands that have ended and whose last output can still be read.
const MAX_ENDED: usize = 32;

/// Bytes of output that a notice of an exit has: an error and its trace.
const TAIL_BYTES: usize = 2_000;
/// A longer name is noise, and is cut in the error.
const ID_BYTES: usize = 80;

/// The callback for an exit.
type Notice = Arc<dyn Fn(BackgroundExit) + Send + Sync>;

/// A session's commands in the background. Dropping it kills them all with their children; what
/// they changed is journaled then by tasks of their own, which [`Background::close`] waits for.
pub struct Background {
    notice: Notice,
    closed: CancellationToken,
    jobs: Mutex<Jobs>,
    violations: Violations,
}

/// Violations by commands that nobody has taken yet.
type Violations = Arc<Mutex<Vec<GuardViolation>>>;

/// The end of a command that nobody stopped.
#[derive(Debug, Clone, PartialEq)]
pub struct BackgroundExit {
    /// Its name.
    pub id: String,
    /// The call that started it; what it changed is journaled for that call.
    pub call: CallId,
    /// The command.
    pub command: String,
    /// The end of the command.
    pub outcome: Outcome,
    /// The end of its output that wasn't read yet, cleaned.
    pub tail: String,
    /// The files that it changed.
    pub changes: Vec<FileChange>,
    /// Further facts for the model: forbidden changes, or the reason why changes aren't journaled.
    pub problem: Option<String>,
}

/// One of the commands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackgroundCommand {
    /// Its name.
    pub id: String,
    /// The call that started it.
    pub call: CallId,
    /// The command.
    pub command: String,
    /// True if it still runs.
    pub running: bool,
}

#[derive(Default)]
struct Jobs {
    /// The number of commands so far.
    count: u64,
    jobs: Vec<Arc<Job>>,
}

/// A command, running or ended.
pub(crate) struct Job {
    pub(crate) id: String,
    pub(crate) call: CallId,
    pub(crate) command: String,
    pub(crate) cancel: CancellationToken,
    closed: CancellationToken,
    notice: Notice,
    violations: Violations,
    state: Mutex<JobState>,
    /// Counts what happens to the state.
    news: watch::Sender<u64>,
}

#[derive(Default)]
struct JobState {
    unread: Unread,
    /// The guarded paths before the command, while it runs; locked while one looks at what became
    /// of them.
    guard: Option<(Arc<Workspace>, Arc<Mutex<GuardedState>>)>,
    end: Option<End>,
    /// True if somebody asked for the end, and so needs no notice of it.
    stopped: bool,
}

/// The end of a command, with its changes.
#[derive(Debug, Clone)]
pub(crate) struct End {
    pub(crate) outcome: Outcome,
    pub(crate) changes: Vec<FileChange>,
    pub(crate) problem: Option<String>,
    pub(crate) violations: Vec<GuardViolation>,
}

/// New output and state of a command.
pub(crate) struct News {
    pub(crate) output: String,
    pub(crate) end: Option<End>,
}

impl std::fmt::Debug for Background {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Background").field("commands", &self.list()).finish_non_exhaustive()
    }
}

impl Default for Background {
    /// One whose exits nobody wants to hear of.
    fn default() -> Self {
        Self::new(|_| {})
    }
}

impl Background {
    /// Nothing runs yet. `notice` is told of each exit, but for those that somebody asked for; it
    /// must not block.
    pub fn new(notice: impl Fn(BackgroundExit) + Send + Sync + 'static) -> Self {
        Self {
            notice: Arc::new(notice),
            closed: CancellationToken::new(),
            jobs: Mutex::default(),
            violations: Violations::default(),
        }
    }

    /// Names go on after those of so many commands: a session that is resumed gives none twice.
    #[must_use]
    pub fn with_first_number(self, count: u64) -> Self {
        self.lock().count = count;
        self
    }

    /// Moves away and puts back what commands did to guarded paths until now that still run.
    ///
    /// # Errors
    /// [`ToolError::Stopped`] if looking at the tree panicked.
    pub async fn check_running(&self) -> Result<(), ToolError> {
        let jobs: Vec<Arc<Job>> = self.lock().jobs.clone();
        let check = move || jobs.iter().for_each(|job| job.check_guarded());
        tokio::task::spawn_blocking(check).await.map_err(|error| ToolError::Stopped(error.to_string()))
    }

    /// Takes the guarded files and repositories that commands made, changed or deleted, up to their
    /// end or the last [check](Background::check_running).
    #[must_use]
    pub fn take_violations(&self) -> Vec<GuardViolation> {
        std::mem::take(&mut *self.violations.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The commands that run, and the newest of those that have ended; oldest first.
    #[must_use]
    pub fn list(&self) -> Vec<BackgroundCommand> {
        let jobs = self.lock();
        let list = jobs.jobs.iter().map(|job| BackgroundCommand {
            id: job.id.clone(),
            call: job.call.clone(),
            command: job.command.clone(),
            running: job.is_running(),
        });
        list.collect()
    }

    /// Kills all commands with their children, waits until what they changed is journaled, and
    /// takes no more. Nobody gets a notice.
    pub async fn close(&self) {
        self.closed.cancel();
        let jobs = self.lock().jobs.clone();
        join_all(jobs.iter().map(|job| job.wait_for_end())).await;
    }

    /// Makes room for one more command.
    pub(crate) fn add_job(&self, call: &CallId, command: &str) -> Result<Arc<Job>, ToolError> {
        if self.closed.is_cancelled() {
            return Err(ToolError::Cancelled);
        }
        let mut jobs = self.lock();
        let running: Vec<&str> =
            jobs.jobs.iter().filter(|job| job.is_running()).map(|job| job.id.as_str()).collect();
        if running.len() >= MAX_IN_BACKGROUND {
            return Err(ToolError::TooManyCommands { running: running.join(", ") });
        }
        jobs.count += 1;
        let job = Arc::new(Job {
            id: format!("b{}", jobs.count),
            call: call.clone(),
            command: command.to_owned(),
            cancel: self.closed.child_token(),
            closed: self.closed.clone(),
            notice: Arc::clone(&self.notice),
            violations: Arc::clone(&self.violations),
            state: Mutex::default(),
            news: watch::Sender::new(0),
        });
        jobs.jobs.push(Arc::clone(&job));
        let ended = jobs.jobs.iter().filter(|job| !job.is_running()).count();
        if ended > MAX_ENDED
            && let Some(oldest) = jobs.jobs.iter().position(|job| !job.is_running())
        {
            jobs.jobs.remove(oldest);
        }
        Ok(job)
    }

    /// Forgets a command that never began.
    pub(crate) fn remove_job(&self, job: &Arc<Job>) {
        self.lock().jobs.retain(|other| !Arc::ptr_eq(other, job));
    }

    pub(crate) fn get(&self, id: &str) -> Result<Arc<Job>, ToolError> {
        let jobs = self.lock();
        if let Some(job) = jobs.jobs.iter().find(|job| job.id == id.trim()) {
            return Ok(Arc::clone(job));
        }
        let names: Vec<&str> = jobs.jobs.iter().map(|job| job.id.as_str()).collect();
        let known = if names.is_empty() { String::new() } else { format!(" (only {})", names.join(", ")) };
        Err(ToolError::NoCommand { id: clip_to_bytes(id, ID_BYTES).to_owned(), known })
    }

    fn lock(&self) -> MutexGuard<'_, Jobs> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.closed.cancel();
    }
}

impl Job {
    /// Takes a piece of output.
    pub(crate) fn push(&self, at: u64, bytes: &[u8]) {
        self.lock().unread.push(at, bytes);
        self.news.send_modify(|count| *count += 1);
    }

    /// The command is about to run with these guarded paths.
    pub(crate) fn set_guard(&self, workspace: &Arc<Workspace>, guard: &Arc<Mutex<GuardedState>>) {
        self.lock().guard = Some((Arc::clone(workspace), Arc::clone(guard)));
    }

    /// Looks at what the command, which runs, did to guarded paths.
    fn check_guarded(&self) {
        let Some((workspace, guard)) = self.lock().guard.clone() else { return };
        let guard = guard.lock().unwrap_or_else(PoisonError::into_inner);
        if self.is_running() {
            self.note_violations(guard.check_running(&workspace).violations);
        }
    }

    fn note_violations(&self, violations: Vec<GuardViolation>) {
        let mut all = self.violations.lock().unwrap_or_else(PoisonError::into_inner);
        let violations = violations.into_iter();
        all.extend(violations.map(|one| GuardViolation { call: Some(self.call.clone()), ..one }));
    }

    /// The command is over and what it did is journaled.
    pub(crate) fn finish(&self, mut end: End) {
        self.note_violations(std::mem::take(&mut end.violations));
        let exit = {
            let mut state = self.lock();
            if state.end.is_some() {
                return;
            }
            state.end = Some(end.clone());
            state.guard = None;
            let tail = state.unread.tail(TAIL_BYTES);
            (!state.stopped && !self.closed.is_cancelled()).then_some(tail)
        };
        if let Some(tail) = exit {
            (self.notice)(BackgroundExit {
                id: self.id.clone(),
                call: self.call.clone(),
                command: self.command.clone(),
                outcome: end.outcome,
                tail,
                changes: end.changes,
                problem: end.problem,
            });
        }
        self.news.send_modify(|count| *count += 1);
    }

    /// Takes what is new.
    pub(crate) fn take_news(&self) -> News {
        let mut state = self.lock();
        let end = state.end.clone();
        News { output: state.unread.take(end.is_none()), end }
    }

    /// Waits until there is something new.
    pub(crate) async fn wait_for_news(&self) {
        self.wait_until(|state| state.end.is_some() || !state.unread.is_empty()).await;
    }

    /// Waits until the command is over and what it did is journaled.
    pub(crate) async fn wait_for_end(&self) {
        self.wait_until(|state| state.end.is_some()).await;
    }

    /// Kills the command with its children. Whether it still ran.
    pub(crate) fn stop(&self) -> bool {
        let mut state = self.lock();
        let ran = state.end.is_none();
        state.stopped |= ran;
        drop(state);
        self.cancel.cancel();
        ran
    }

    async fn wait_until(&self, ready: impl Fn(&JobState) -> bool) {
        let mut news = self.news.subscribe();
        while !ready(&self.lock()) {
            // The sender is our own: it can't be gone.
            if news.changed().await.is_err() {
                return;
            }
        }
    }

    fn is_running(&self) -> bool {
        self.lock().end.is_none()
    }

    fn lock(&self) -> MutexGuard<'_, JobState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
