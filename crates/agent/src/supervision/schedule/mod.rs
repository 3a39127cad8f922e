//! Tasks that run at an interval of steps, once, or when they are triggered from outside.
//!
//! A session shares a [`Schedule`] with the code that adds tasks. The session reports its steps
//! ([`Schedule::advance`]) and runs the due tasks ([`Schedule::run_waiting`]) one after another. A
//! task that fails or panics affects no other. Tasks aren't logged: after a restart their owner
//! adds them again. Since `every N steps` means steps N, 2N, 3N of the session, a task then keeps
//! its rhythm.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::num::NonZeroU64;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use journeyman_protocol::ScheduleKind;
use tokio::sync::Notify;

/// Maximum number of tasks of one session. Each is examined in every step.
const MAX_TASKS: usize = 1_000;
/// Maximum number of waiting runs. A longer queue means that nothing runs it.
const MAX_WAITING_RUNS: usize = 1_000;

/// A closure that a task runs. It gets the step's number and returns a text to remind the model of,
/// nothing, or an error.
pub type JobClosure = dyn Fn(u64) -> BoxFuture<'static, Result<Option<String>, String>> + Send + Sync;

/// The action of a task.
#[derive(Clone)]
pub enum ScheduledJob {
    /// Reminds the model with this text.
    Reminder(String),
    /// Runs this closure.
    Run(Arc<JobClosure>),
}

impl ScheduledJob {
    /// Creates a job from a closure.
    pub fn from_closure<F, Fut>(job: F) -> Self
    where
        F: Fn(u64) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Option<String>, String>> + Send + 'static,
    {
        Self::Run(Arc::new(move |step| job(step).boxed()))
    }
}

/// Identifies a task for the lifetime of its schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TaskId(u64);

/// The reason why a task was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleError {
    /// A task has this name already.
    #[error("there is a task `{0}` already; cancel it first")]
    Duplicate(String),
    /// The name is empty.
    #[error("a task needs a name")]
    Unnamed,
    /// The schedule or its queue is full.
    #[error("at most {0} tasks can be scheduled or wait")]
    TooMany(usize),
    /// No task has this name.
    #[error("there is no task `{0}`")]
    Unknown(String),
}

/// A task that ran, with its outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FiredTask {
    /// The task's name.
    pub task: String,
    /// The task's schedule, such as `every 5 steps`.
    pub spec: String,
    /// The trigger of the run.
    pub kind: ScheduleKind,
    /// The text to remind the model of, if any, or the error.
    pub outcome: Result<Option<String>, String>,
}

/// The tasks of a session.
#[derive(Default)]
pub struct Schedule {
    inner: Mutex<ScheduleInner>,
    /// Lock that is held while tasks run, so that concurrent callers run them one after another.
    running: tokio::sync::Mutex<()>,
    due: Notify,
}

#[derive(Default)]
struct ScheduleInner {
    tasks: Vec<ScheduledTask>,
    waiting: VecDeque<DueTask>,
    step: u64,
    next: u64,
}

struct ScheduledTask {
    id: TaskId,
    name: String,
    /// The interval in steps, or `None` for a task that runs only when it is triggered.
    every: Option<NonZeroU64>,
    job: ScheduledJob,
}

struct DueTask {
    /// The task's id, or `None` for a job that was queued without a task.
    id: Option<TaskId>,
    name: String,
    spec: String,
    kind: ScheduleKind,
    step: u64,
    job: ScheduledJob,
}

impl Schedule {
    /// Creates a schedule for a session that has made `step` steps so far.
    #[must_use]
    pub fn new(step: u64) -> Self {
        Self { inner: Mutex::new(ScheduleInner { step, ..ScheduleInner::default() }), ..Self::default() }
    }

    /// Runs `job` at the future steps N, 2N, 3N of the session.
    ///
    /// # Errors
    /// [`ScheduleError`] if the name is empty or taken, or there are too many tasks.
    pub fn every(
        &self,
        name: impl Into<String>,
        steps: NonZeroU64,
        job: ScheduledJob,
    ) -> Result<TaskId, ScheduleError> {
        self.add(name.into(), Some(steps), job)
    }

    /// Runs `job` whenever [`Schedule::trigger`] is called with its name.
    ///
    /// # Errors
    /// As [`Schedule::every`].
    pub fn on_trigger(&self, name: impl Into<String>, job: ScheduledJob) -> Result<TaskId, ScheduleError> {
        self.add(name.into(), None, job)
    }

    fn add(
        &self,
        name: String,
        every: Option<NonZeroU64>,
        job: ScheduledJob,
    ) -> Result<TaskId, ScheduleError> {
        let mut inner = self.lock();
        if name.trim().is_empty() {
            return Err(ScheduleError::Unnamed);
        }
        if inner.tasks.iter().any(|task| task.name == name) {
            return Err(ScheduleError::Duplicate(name));
        }
        if inner.tasks.len() >= MAX_TASKS {
            return Err(ScheduleError::TooMany(MAX_TASKS));
        }
        inner.next += 1;
        let id = TaskId(inner.next);
        inner.tasks.push(ScheduledTask { id, name, every, job });
        Ok(id)
    }

    /// Runs `job` once, after the runs that wait already.
    ///
    /// # Errors
    /// [`ScheduleError::TooMany`] if the queue is full.
    pub fn enqueue(&self, name: impl Into<String>, job: ScheduledJob) -> Result<(), ScheduleError> {
        let mut inner = self.lock();
        let (name, spec, step) = (name.into(), "once".to_owned(), inner.step);
        inner.push(DueTask { id: None, name, spec, kind: ScheduleKind::External, step, job })?;
        drop(inner);
        self.due.notify_one();
        Ok(())
    }

    /// Runs the task of this name as soon as possible, in addition to its steps. A task that waits
    /// already runs once.
    ///
    /// # Errors
    /// [`ScheduleError::Unknown`] if no task has this name, and [`ScheduleError::TooMany`] if the
    /// queue is full.
    pub fn trigger(&self, name: &str) -> Result<(), ScheduleError> {
        let mut inner = self.lock();
        let step = inner.step;
        let task = inner.tasks.iter().find(|task| task.name == name);
        let due = task
            .ok_or_else(|| ScheduleError::Unknown(name.to_owned()))?
            .to_due_task(ScheduleKind::External, step);
        inner.push(due)?;
        drop(inner);
        self.due.notify_one();
        Ok(())
    }

    /// Removes a task and its waiting runs. Returns false if the task doesn't exist. A running task
    /// runs to its end.
    pub fn cancel(&self, id: TaskId) -> bool {
        let mut inner = self.lock();
        let before = inner.tasks.len();
        inner.tasks.retain(|task| task.id != id);
        inner.waiting.retain(|due| due.id != Some(id));
        inner.tasks.len() < before
    }

    /// Removes all tasks and all waiting runs.
    pub fn clear(&self) {
        let mut inner = self.lock();
        inner.tasks.clear();
        inner.waiting.clear();
    }

    /// Records that the session has made `step` steps, and queues the due tasks. A task that missed
    /// several runs, or still waits, runs once.
    pub fn advance(&self, step: u64) {
        let mut inner = self.lock();
        let last = std::mem::replace(&mut inner.step, step);
        let due: Vec<DueTask> = inner
            .tasks
            .iter()
            .filter(|task| task.every.is_some_and(|every| step / every > last / every))
            .map(|task| task.to_due_task(ScheduleKind::Steps, step))
            .collect();
        let any = !due.is_empty();
        for due in due {
            // Every task waits at most once, so the queue is full only if jobs without a task came
            // first.
            if inner.push(due).is_err() {
                break;
            }
        }
        drop(inner);
        if any {
            self.due.notify_one();
        }
    }

    /// Waits until a run may be due.
    pub async fn wait_until_due(&self) {
        while self.lock().waiting.is_empty() {
            self.due.notified().await;
        }
    }

    /// Runs everything that waits, one after another, including runs that are queued in the
    /// meantime. If the future is dropped, the current run is lost and the others keep waiting.
    pub async fn run_waiting(&self) -> Vec<FiredTask> {
        let _one_at_a_time = self.running.lock().await;
        let mut fired = Vec::new();
        // Runs that a task queues are included, but a task that queues itself must not block the
        // session forever.
        while fired.len() < MAX_WAITING_RUNS {
            let Some(due) = self.take_next() else { break };
            let DueTask { name, spec, kind, step, job, .. } = due;
            let outcome = match job {
                ScheduledJob::Reminder(text) => Ok(Some(text)),
                ScheduledJob::Run(job) => AssertUnwindSafe(async move { job(step).await })
                    .catch_unwind()
                    .await
                    .unwrap_or_else(|_| Err("the task panicked".to_owned())),
            };
            fired.push(FiredTask { task: name, spec, kind, outcome });
        }
        fired
    }

    fn take_next(&self) -> Option<DueTask> {
        self.lock().waiting.pop_front()
    }

    fn lock(&self) -> MutexGuard<'_, ScheduleInner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ScheduledTask {
    fn to_due_task(&self, kind: ScheduleKind, step: u64) -> DueTask {
        let spec = match self.every {
            Some(every) if every.get() == 1 => "every step".to_owned(),
            Some(every) => format!("every {every} steps"),
            None => "on trigger".to_owned(),
        };
        DueTask { id: Some(self.id), name: self.name.clone(), spec, kind, step, job: self.job.clone() }
    }
}

impl ScheduleInner {
    fn push(&mut self, due: DueTask) -> Result<(), ScheduleError> {
        if due.id.is_some() && self.waiting.iter().any(|waits| waits.id == due.id) {
            return Ok(());
        }
        if self.waiting.len() >= MAX_WAITING_RUNS {
            return Err(ScheduleError::TooMany(MAX_WAITING_RUNS));
        }
        self.waiting.push_back(due);
        Ok(())
    }
}
