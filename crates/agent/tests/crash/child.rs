//! The process that works at the task, and is killed.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use journeyman_agent::{Answer, CutOff, SessionHandle, State, resume, start};
use journeyman_protocol::{Outcome, UnixMillis};
use journeyman_store::{NewEntry, Store, StoreError};
use journeyman_workspace::limits::{Failpoint, Fault, Step};
use serde::{Deserialize, Serialize};

use crate::gated::{Gate, Gated, Op};
use crate::place::{Place, now, session, settings};
use crate::task::{self, Script};

/// Says that a process is a child, and what it is to do.
pub(crate) const PLAN: &str = "JM_CRASH_PLAN";

/// When a child kills itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Kill {
    /// Never; its parent may.
    Never,
    /// Before the store hears of its n-th write, from 1.
    BeforeWrite(usize),
    /// When that write is durable.
    AfterWrite(usize),
    /// At the n-th step of the workspace's transactions, from 1.
    AtStep(usize),
}

/// What a child is to do.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Plan {
    pub(crate) place: PathBuf,
    pub(crate) kill: Kill,
    /// The clock jumps back a day at the n-th time that it is looked at.
    #[serde(default)]
    pub(crate) clock_jumps_at: Option<usize>,
    /// From this fsync on, from 1, the disk fails.
    #[serde(default)]
    pub(crate) fsync_fails_from: Option<usize>,
}

/// What a child that got to its end says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Said {
    pub(crate) writes: usize,
    pub(crate) steps: usize,
    pub(crate) outcome: Option<Outcome>,
    pub(crate) summary: String,
    pub(crate) error: Option<String>,
}

/// Does what the parent wants, if this process is a child.
pub(crate) fn run_if_asked() -> Option<ExitCode> {
    let plan: Plan = serde_json::from_str(&std::env::var(PLAN).ok()?).expect("a plan");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let said = runtime.block_on(work(&plan));
    runtime.shutdown_timeout(std::time::Duration::from_secs(5));
    std::fs::write(plan.place.join("said.json"), serde_json::to_vec(&said).unwrap()).unwrap();
    Some(ExitCode::SUCCESS)
}

/// Counts, and kills the process when it is time.
struct Killer {
    kill: Kill,
    writes: Arc<AtomicUsize>,
}

fn die() -> ! {
    let own = rustix::process::getpid();
    rustix::process::kill_process(own, rustix::process::Signal::KILL).expect("a process may end itself");
    loop {
        std::thread::park();
    }
}

impl Gate for Killer {
    fn before(&self, op: Op, _: &[NewEntry]) -> BoxFuture<'_, Result<(), StoreError>> {
        async move {
            if op != Op::Read
                && self.kill == Kill::BeforeWrite(self.writes.fetch_add(1, Ordering::SeqCst) + 1)
            {
                die();
            }
            Ok(())
        }
        .boxed()
    }

    fn after(&self, op: Op) -> BoxFuture<'_, Result<(), StoreError>> {
        async move {
            if op != Op::Read && self.kill == Kill::AfterWrite(self.writes.load(Ordering::SeqCst)) {
                die();
            }
            Ok(())
        }
        .boxed()
    }
}

async fn work(plan: &Plan) -> Said {
    let place = Place(plan.place.clone());
    let (writes, steps) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (kill, counter) = (plan.kill, Arc::clone(&steps));
    let failpoint = Failpoint::new(move |_: Step| {
        if Kill::AtStep(counter.fetch_add(1, Ordering::SeqCst) + 1) == kill {
            die();
        }
        Fault::Go
    });
    let killer = Killer { kill, writes: Arc::clone(&writes) };
    let store: Arc<dyn Store> = Arc::new(Gated::new(place.log(), killer));
    let workspace = place.workspace(Some(failpoint));
    let clock = clock(plan.clock_jumps_at);
    let parts = place.parts(Arc::clone(&store), workspace, Arc::new(Script), clock);
    let done = to_its_end(&*store, parts).await;
    let mut said = Said {
        writes: writes.load(Ordering::SeqCst),
        steps: steps.load(Ordering::SeqCst),
        outcome: None,
        summary: String::new(),
        error: None,
    };
    match done {
        Ok(Some((outcome, summary))) => (said.outcome, said.summary) = (Some(outcome), summary),
        Ok(None) => {}
        Err(error) => said.error = Some(error),
    }
    said
}

/// The system's time; a day less from a certain look on.
fn clock(jumps_at: Option<usize>) -> Arc<dyn journeyman_agent::Clock> {
    let looks = AtomicUsize::new(0);
    Arc::new(move || {
        let look = looks.fetch_add(1, Ordering::SeqCst);
        let back = if jumps_at.is_some_and(|at| look >= at) { 24 * 60 * 60 * 1_000 } else { 0 };
        UnixMillis(now().0 - back)
    })
}

/// Begins the task, or goes on with it; gives how it ended, or nothing where it had ended before.
async fn to_its_end(
    store: &dyn Store,
    parts: journeyman_agent::Parts,
) -> Result<Option<(Outcome, String)>, String> {
    let words = |error: journeyman_agent::AgentError| error.to_string();
    let known = !store.find(session().as_str()).await.map_err(|error| error.to_string())?.is_empty();
    let (handle, told) = if known {
        let handle = resume(parts, settings(), session(), CutOff::Continue).await.map_err(words)?;
        let state = State::load(store, &session()).await.map_err(words)?;
        if state.outcome.is_some() && state.task.is_none() && state.queue.is_empty() {
            handle.close().await;
            return Ok(None);
        }
        (handle, state.newest.0 > 0)
    } else {
        (start(parts, settings(), session()), false)
    };
    let decider = tokio::spawn(decide(handle.clone()));
    if !told {
        handle.send(task::TASK).await.map_err(words)?;
    }
    let report = handle.finished().await.map_err(words)?;
    decider.abort();
    handle.close().await;
    Ok(Some((report.outcome, report.summary.clone())))
}

/// The person: says no to one call, and yes to all others.
async fn decide(handle: SessionHandle) {
    let mut status = handle.watch();
    loop {
        let asked = status.borrow_and_update().asked.clone();
        for call in asked {
            let note = "not today".to_owned();
            let answer = match task::number_of(&call) {
                number if number == task::refused() => Answer::Deny { note: Some(note) },
                _ => Answer::allow(),
            };
            handle.decide(&call, answer);
        }
        if status.changed().await.is_err() {
            return;
        }
    }
}
