//! Commands that run in the background, across the turns of a session.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::join_all;
use journeyman_protocol::{CallId, FileChange, GuardViolation, clip_to_bytes};
use journeyman_sandbox::Outcome;
use journeyman_workspace::{GuardedState, Workspace};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::ToolError;
use crate::unread_output::UnreadOutput;

/// Maximum number of commands that run at once: a server, a watcher, a few builds; on two cores
/// more slow each other down.
pub const MAX_BACKGROUND_COMMANDS: usize = 8;
/// Maximum number of ended commands whose last output can still be read.
const MAX_ENDED_COMMANDS: usize = 32;

/// Maximum bytes of output in a notice of an exit: an error and its trace.
const MAX_NOTICE_OUTPUT_BYTES: usize = 2_000;
/// Maximum bytes of a command's id in an error.
const MAX_ID_BYTES: usize = 80;

/// The callback for a command's exit.
type ExitCallback = Arc<dyn Fn(BackgroundExit) + Send + Sync>;

/// The background commands of a session. Dropping this value kills them with their children; tasks
/// of their own then journal the changes, and [`BackgroundCommands::close`] waits for these.
pub struct BackgroundCommands {
    notice: ExitCallback,
    closed: CancellationToken,
    jobs: Mutex<Jobs>,
    violations: SharedViolations,
}

/// Violations that were recorded and not yet taken.
type SharedViolations = Arc<Mutex<Vec<GuardViolation>>>;

/// The exit of a command that nobody stopped.
#[derive(Debug, Clone, PartialEq)]
pub struct BackgroundExit {
    /// The command's id.
    pub id: String,
    /// The call that started the command; its changes are journaled for that call.
    pub call: CallId,
    /// The command.
    pub command: String,
    /// The command's outcome.
    pub outcome: Outcome,
    /// The end of the command's unread output, cleaned.
    pub tail: String,
    /// The files that the command changed.
    pub changes: Vec<FileChange>,
    /// Further facts for the model: forbidden changes, or why changes aren't journaled.
    pub problem: Option<String>,
}

/// A background command, as [`BackgroundCommands::list`] returns it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackgroundCommand {
    /// The command's id.
    pub id: String,
    /// The call that started the command.
    pub call: CallId,
    /// The command.
    pub command: String,
    /// True if the command still runs.
    pub running: bool,
}

#[derive(Default)]
struct Jobs {
    /// The number of commands started so far.
    count: u64,
    jobs: Vec<Arc<Job>>,
}

/// A command that runs or has ended.
pub(crate) struct Job {
    pub(crate) id: String,
    pub(crate) call: CallId,
    pub(crate) command: String,
    pub(crate) cancel: CancellationToken,
    closed: CancellationToken,
    notice: ExitCallback,
    violations: SharedViolations,
    state: Mutex<JobState>,
    /// Counts the changes of the state.
    news: watch::Sender<u64>,
}

#[derive(Default)]
struct JobState {
    unread: UnreadOutput,
    /// The guarded paths before the command, while it runs; locked while they are checked.
    guard: Option<(Arc<Workspace>, Arc<Mutex<GuardedState>>)>,
    end: Option<BackgroundEnd>,
    /// True if a call stopped the command, so that no notice is sent.
    stopped: bool,
}

/// The end of a command, with its changes.
#[derive(Debug, Clone)]
pub(crate) struct BackgroundEnd {
    pub(crate) outcome: Outcome,
    pub(crate) changes: Vec<FileChange>,
    pub(crate) problem: Option<String>,
    pub(crate) violations: Vec<GuardViolation>,
}

/// A command's unread output, and its end if it has ended.
pub(crate) struct JobUpdate {
    pub(crate) output: String,
    pub(crate) end: Option<BackgroundEnd>,
}

impl std::fmt::Debug for BackgroundCommands {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Background").field("commands", &self.list()).finish_non_exhaustive()
    }
}

impl Default for BackgroundCommands {
    /// Creates a set of commands that sends no notices.
    fn default() -> Self {
        Self::new(|_| {})
    }
}

impl BackgroundCommands {
    /// Creates an empty set of commands. `notice` is called for each exit, except of commands that
    /// were stopped; it must not block.
    pub fn new(notice: impl Fn(BackgroundExit) + Send + Sync + 'static) -> Self {
        Self {
            notice: Arc::new(notice),
            closed: CancellationToken::new(),
            jobs: Mutex::default(),
            violations: SharedViolations::default(),
        }
    }

    /// Numbers new commands after the first `count`, so that a resumed session reuses no id.
    #[must_use]
    pub fn with_numbers_after(self, count: u64) -> Self {
        self.lock().count = count;
        self
    }

    /// Checks the guarded paths of all running commands, and undoes forbidden changes.
    ///
    /// # Errors
    /// [`ToolError::Stopped`] if the check panicked.
    pub async fn check_guarded_files(&self) -> Result<(), ToolError> {
        let jobs: Vec<Arc<Job>> = self.lock().jobs.clone();
        let check = move || jobs.iter().for_each(|job| job.check_guarded());
        tokio::task::spawn_blocking(check).await.map_err(|error| ToolError::Stopped(error.to_string()))
    }

    /// Returns and removes the violations found so far: of ended commands, and of running ones up
    /// to the last [check](BackgroundCommands::check_guarded_files).
    #[must_use]
    pub fn take_violations(&self) -> Vec<GuardViolation> {
        std::mem::take(&mut *self.violations.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the running commands and the newest of the ended ones, oldest first.
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

    /// Kills all commands with their children, waits until their changes are journaled, and accepts
    /// no more. Sends no notices.
    pub async fn close(&self) {
        self.closed.cancel();
        let jobs = self.lock().jobs.clone();
        join_all(jobs.iter().map(|job| job.wait_for_end())).await;
    }

    /// Registers a command that is about to start.
    pub(crate) fn add_job(&self, call: &CallId, command: &str) -> Result<Arc<Job>, ToolError> {
        if self.closed.is_cancelled() {
            return Err(ToolError::Cancelled);
        }
        let mut jobs = self.lock();
        let running: Vec<&str> =
            jobs.jobs.iter().filter(|job| job.is_running()).map(|job| job.id.as_str()).collect();
        if running.len() >= MAX_BACKGROUND_COMMANDS {
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
        if ended > MAX_ENDED_COMMANDS
            && let Some(oldest) = jobs.jobs.iter().position(|job| !job.is_running())
        {
            jobs.jobs.remove(oldest);
        }
        Ok(job)
    }

    /// Removes a command that could not be started.
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
        Err(ToolError::NoCommand { id: clip_to_bytes(id, MAX_ID_BYTES).to_owned(), known })
    }

    fn lock(&self) -> MutexGuard<'_, Jobs> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for BackgroundCommands {
    fn drop(&mut self) {
        self.closed.cancel();
    }
}

impl Job {
    /// Appends output that begins at byte `at` of the command's output.
    pub(crate) fn push_output(&self, at: u64, bytes: &[u8]) {
        self.lock().unread.push(at, bytes);
        self.news.send_modify(|count| *count += 1);
    }

    /// Sets the guarded paths to check while the command runs.
    pub(crate) fn watch_guarded(&self, workspace: &Arc<Workspace>, guard: &Arc<Mutex<GuardedState>>) {
        self.lock().guard = Some((Arc::clone(workspace), Arc::clone(guard)));
    }

    /// Checks the guarded paths while the command runs.
    fn check_guarded(&self) {
        let Some((workspace, guard)) = self.lock().guard.clone() else { return };
        let guard = guard.lock().unwrap_or_else(PoisonError::into_inner);
        if self.is_running() {
            self.note_violations(guard.revert_while_running(&workspace).violations);
        }
    }

    fn note_violations(&self, violations: Vec<GuardViolation>) {
        let mut all = self.violations.lock().unwrap_or_else(PoisonError::into_inner);
        let violations = violations.into_iter();
        all.extend(violations.map(|one| GuardViolation { call: Some(self.call.clone()), ..one }));
    }

    /// Records that the command has ended and its changes are journaled.
    pub(crate) fn finish(&self, mut end: BackgroundEnd) {
        self.note_violations(std::mem::take(&mut end.violations));
        let exit = {
            let mut state = self.lock();
            if state.end.is_some() {
                return;
            }
            state.end = Some(end.clone());
            state.guard = None;
            let tail = state.unread.tail(MAX_NOTICE_OUTPUT_BYTES);
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

    /// Returns and removes the unread output.
    pub(crate) fn take_update(&self) -> JobUpdate {
        let mut state = self.lock();
        let end = state.end.clone();
        JobUpdate { output: state.unread.take(end.is_none()), end }
    }

    /// Waits until there is unread output or the command has ended.
    pub(crate) async fn wait_for_update(&self) {
        self.wait_until(|state| state.end.is_some() || !state.unread.is_empty()).await;
    }

    /// Waits until the command has ended and its changes are journaled.
    pub(crate) async fn wait_for_end(&self) {
        self.wait_until(|state| state.end.is_some()).await;
    }

    /// Kills the command with its children. Returns true if it was still running.
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
            // This value owns the sender, so it still exists.
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
