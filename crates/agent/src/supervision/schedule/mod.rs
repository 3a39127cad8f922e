//! Tasks that run every so many steps, once, or when somebody outside says so.
//!
//! [`Schedule`] is shared by a session, which tells it of steps ([`Schedule::advance`]) and runs what is due
//! ([`Schedule::run`]), and by whoever adds tasks. Tasks run one after the other; one that fails or panics costs
//! itself. A task isn't logged: after a restart whoever added it adds it again, and because `every N steps` means
//! steps N, 2N, 3N of the session, it goes on in its rhythm.

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

/// Tasks of one session; each is looked at in every step.
const MAX_TASKS: usize = 1_000;
/// Firings that may wait; whoever queues more isn't being run.
const MAX_WAITING: usize = 1_000;

/// A closure that a task runs: given the step's number, it gives a text to remind the model of, if any, or says what
/// went wrong.
pub type Closure = dyn Fn(u64) -> BoxFuture<'static, Result<Option<String>, String>> + Send + Sync;

/// What a task does.
#[derive(Clone)]
pub enum Job {
    /// Reminds the model of this.
    Reminder(String),
    /// Runs this.
    Run(Arc<Closure>),
}

impl Job {
    /// A job of a closure.
    pub fn run<F, Fut>(job: F) -> Self
    where
        F: Fn(u64) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Option<String>, String>> + Send + 'static,
    {
        Self::Run(Arc::new(move |step| job(step).boxed()))
    }
}

/// Names a task, for as long as its schedule exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TaskId(u64);

/// Why a task was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleError {
    /// There is one of that name.
    #[error("there is a task «{0}» already; cancel it first")]
    Duplicate(String),
    /// The name is empty.
    #[error("a task needs a name")]
    Unnamed,
    /// Too many.
    #[error("at most {0} tasks can be scheduled or wait")]
    TooMany(usize),
    /// There is none of that name.
    #[error("there is no task «{0}»")]
    Unknown(String),
}

/// A task that came up, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fired {
    /// Its name.
    pub task: String,
    /// When it runs, such as `every 5 steps`.
    pub spec: String,
    /// What set it off.
    pub kind: ScheduleKind,
    /// What to remind the model of, if anything, or what went wrong.
    pub outcome: Result<Option<String>, String>,
}

/// The tasks of a session.
#[derive(Default)]
pub struct Schedule {
    inner: Mutex<Inner>,
    /// Held while tasks run, so that they do one after the other whoever calls.
    running: tokio::sync::Mutex<()>,
    due: Notify,
}

#[derive(Default)]
struct Inner {
    tasks: Vec<Task>,
    waiting: VecDeque<Due>,
    step: u64,
    next: u64,
}

struct Task {
    id: TaskId,
    name: String,
    /// None for one that runs only when it is triggered.
    every: Option<NonZeroU64>,
    job: Job,
}

struct Due {
    /// None for a job that was queued without being a task.
    id: Option<TaskId>,
    name: String,
    spec: String,
    kind: ScheduleKind,
    step: u64,
    job: Job,
}

impl Schedule {
    /// A schedule for a session that has made `step` steps so far.
    #[must_use]
    pub fn new(step: u64) -> Self {
        Self { inner: Mutex::new(Inner { step, ..Inner::default() }), ..Self::default() }
    }

    /// Runs `job` at steps N, 2N, 3N of the session, the ones after now.
    ///
    /// # Errors
    /// [`ScheduleError`] when the name is empty or taken, or there are too many tasks.
    pub fn every(
        &self,
        name: impl Into<String>,
        steps: NonZeroU64,
        job: Job,
    ) -> Result<TaskId, ScheduleError> {
        self.add(name.into(), Some(steps), job)
    }

    /// Runs `job` whenever somebody calls [`Schedule::trigger`] with its name.
    ///
    /// # Errors
    /// As [`Schedule::every`].
    pub fn on_trigger(&self, name: impl Into<String>, job: Job) -> Result<TaskId, ScheduleError> {
        self.add(name.into(), None, job)
    }

    fn add(&self, name: String, every: Option<NonZeroU64>, job: Job) -> Result<TaskId, ScheduleError> {
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
        inner.tasks.push(Task { id, name, every, job });
        Ok(id)
    }

    /// Runs `job` once, after what waits already.
    ///
    /// # Errors
    /// [`ScheduleError::TooMany`] when too much waits.
    pub fn enqueue(&self, name: impl Into<String>, job: Job) -> Result<(), ScheduleError> {
        let mut inner = self.lock();
        let (name, spec, step) = (name.into(), "once".to_owned(), inner.step);
        inner.push(Due { id: None, name, spec, kind: ScheduleKind::External, step, job })?;
        drop(inner);
        self.due.notify_one();
        Ok(())
    }

    /// Runs the task of this name as soon as possible, besides its steps. One that waits already runs once.
    ///
    /// # Errors
    /// [`ScheduleError::Unknown`] when there is none, and [`ScheduleError::TooMany`] when too much waits.
    pub fn trigger(&self, name: &str) -> Result<(), ScheduleError> {
        let mut inner = self.lock();
        let step = inner.step;
        let task = inner.tasks.iter().find(|task| task.name == name);
        let due =
            task.ok_or_else(|| ScheduleError::Unknown(name.to_owned()))?.due(ScheduleKind::External, step);
        inner.push(due)?;
        drop(inner);
        self.due.notify_one();
        Ok(())
    }

    /// Takes a task out, and what waits of it. False when there was none. One that runs just now runs to its end.
    pub fn cancel(&self, id: TaskId) -> bool {
        let mut inner = self.lock();
        let before = inner.tasks.len();
        inner.tasks.retain(|task| task.id != id);
        inner.waiting.retain(|due| due.id != Some(id));
        inner.tasks.len() < before
    }

    /// Takes everything out, also what waits.
    pub fn clear(&self) {
        let mut inner = self.lock();
        inner.tasks.clear();
        inner.waiting.clear();
    }

    /// Hears that the session has made `step` steps, and queues what is due. A task that is late by several rounds,
    /// or still waits, runs once.
    pub fn advance(&self, step: u64) {
        let mut inner = self.lock();
        let last = std::mem::replace(&mut inner.step, step);
        let due: Vec<Due> = inner
            .tasks
            .iter()
            .filter(|task| task.every.is_some_and(|every| step / every > last / every))
            .map(|task| task.due(ScheduleKind::Steps, step))
            .collect();
        let any = !due.is_empty();
        for due in due {
            // No more can wait than there are tasks, and what was queued beside them came first.
            if inner.push(due).is_err() {
                break;
            }
        }
        drop(inner);
        if any {
            self.due.notify_one();
        }
    }

    /// Waits until something may be there to run.
    pub async fn due(&self) {
        while self.lock().waiting.is_empty() {
            self.due.notified().await;
        }
    }

    /// Runs everything that waits, one after the other in order, also what is queued meanwhile by those that run.
    /// When this is dropped, the one that runs is lost and the others go on waiting.
    pub async fn run(&self) -> Vec<Fired> {
        let _one_at_a_time = self.running.lock().await;
        let mut fired = Vec::new();
        // What a task queues comes up now too, but a task that queues itself must not keep the session for ever.
        while fired.len() < MAX_WAITING {
            let Some(due) = self.next() else { break };
            let Due { name, spec, kind, step, job, .. } = due;
            let outcome = match job {
                Job::Reminder(text) => Ok(Some(text)),
                Job::Run(job) => AssertUnwindSafe(async move { job(step).await })
                    .catch_unwind()
                    .await
                    .unwrap_or_else(|_| Err("the task panicked".to_owned())),
            };
            fired.push(Fired { task: name, spec, kind, outcome });
        }
        fired
    }

    fn next(&self) -> Option<Due> {
        self.lock().waiting.pop_front()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Task {
    fn due(&self, kind: ScheduleKind, step: u64) -> Due {
        let spec = match self.every {
            Some(every) if every.get() == 1 => "every step".to_owned(),
            Some(every) => format!("every {every} steps"),
            None => "on trigger".to_owned(),
        };
        Due { id: Some(self.id), name: self.name.clone(), spec, kind, step, job: self.job.clone() }
    }
}

impl Inner {
    fn push(&mut self, due: Due) -> Result<(), ScheduleError> {
        if due.id.is_some() && self.waiting.iter().any(|waits| waits.id == due.id) {
            return Ok(());
        }
        if self.waiting.len() >= MAX_WAITING {
            return Err(ScheduleError::TooMany(MAX_WAITING));
        }
        self.waiting.push_back(due);
        Ok(())
    }
}
