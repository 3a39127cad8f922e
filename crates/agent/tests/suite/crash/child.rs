//! The process that works at the task, and is killed.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use journeyman_agent::{
    CutOffPolicy, EventFilter, PermissionAnswer, SessionHandle, Since, State, resume, start,
};
use journeyman_protocol::{RunOutcome, UnixMillis};
use journeyman_store::{NewEntry, Store, StoreError};
use journeyman_workspace::failpoint::{Failpoint, TransactionStep};
use serde::{Deserialize, Serialize};

use crate::crash::gated::{Gate, Gated, Op};
use crate::crash::place::{Place, now, session, settings};
use crate::crash::task::{self, Script};

/// Says that a process is a child, and what it is to do.
pub(crate) const PLAN: &str = "JM_CRASH_PLAN";

/// The bytes of the small disk that something else takes, but for some room.
const DISK: usize = 4 * 1024 * 1024;

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
    pub(crate) fault: Fault,
    /// It waits at its n-th write until it may go on.
    pub(crate) hold_at: Option<usize>,
    /// Where the task has ended without being done, it is taken up again.
    pub(crate) go_on: bool,
}

/// What goes wrong beside that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Fault {
    None,
    /// From the n-th write on the log's disk is full, until the task has ended.
    Full {
        from: usize,
    },
    /// The same for a log that can't be written.
    ReadOnly {
        from: usize,
    },
    /// From the n-th write on the kernel fails every flush.
    Flush {
        from: usize,
    },
    /// The log's disk has room for so many bytes, until the task has ended.
    Real {
        room: usize,
    },
    /// The clock jumps back a day at the n-th time that it is looked at.
    Clock {
        at: usize,
    },
}

/// What a child that got to its end says.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Said {
    pub(crate) writes: usize,
    pub(crate) steps: usize,
    pub(crate) outcome: Option<RunOutcome>,
    pub(crate) summary: String,
    pub(crate) error: Option<String>,
    /// Tasks that ended with an error.
    pub(crate) failed: usize,
    /// How often it was told that the log can't be written.
    pub(crate) storage_failures: usize,
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

/// Counts, and kills the process when it is time; or holds it, or fails.
struct Killer {
    kill: Kill,
    writes: Arc<AtomicUsize>,
    fault: Fault,
    /// The fault is gone.
    healed: Arc<AtomicBool>,
    hold_at: Option<usize>,
    place: PathBuf,
}

impl Killer {
    /// What a fault says of the n-th write.
    fn fault(&self, write: usize) -> Result<(), StoreError> {
        if self.healed.load(Ordering::SeqCst) {
            return Ok(());
        }
        let (action, path, detail) = ("append to", self.place.join("log"), "as the test wants it".to_owned());
        match self.fault {
            Fault::Full { from } if write >= from => Err(StoreError::DiskFull { action, path, detail }),
            Fault::ReadOnly { from } if write >= from => Err(StoreError::NoAccess { action, path, detail }),
            Fault::Flush { from } if write == from && !crate::crash::flushes::fail() => {
                panic!("no filter");
            }
            _ => Ok(()),
        }
    }

    /// Waits where it is told to, until it may go on.
    async fn hold(&self, write: usize) {
        if self.hold_at != Some(write) {
            return;
        }
        std::fs::write(self.place.join("held"), "").unwrap();
        while !self.place.join("go").exists() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
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
            if op == Op::Read {
                return Ok(());
            }
            let write = self.writes.fetch_add(1, Ordering::SeqCst) + 1;
            if self.kill == Kill::BeforeWrite(write) {
                die();
            }
            self.hold(write).await;
            self.fault(write)
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
    let failpoint = Failpoint::new(move |_: TransactionStep| {
        if Kill::AtStep(counter.fetch_add(1, Ordering::SeqCst) + 1) == kill {
            die();
        }
        journeyman_workspace::failpoint::Fault::Go
    });
    let healed = Arc::new(AtomicBool::new(false));
    let killer = Killer {
        kill,
        writes: Arc::clone(&writes),
        fault: plan.fault,
        healed: Arc::clone(&healed),
        hold_at: plan.hold_at,
        place: plan.place.clone(),
    };
    let log = place.0.join("log");
    if let Fault::Real { room } = plan.fault {
        std::fs::write(log.join("ballast"), vec![1; DISK - room]).unwrap();
    }
    let store: Arc<dyn Store> = Arc::new(Gated::new(place.log(), killer));
    let workspace = place.workspace(Some(failpoint));
    let parts = place.parts(Arc::clone(&store), workspace, Arc::new(Script), clock(plan.fault));
    let heal = || {
        healed.store(true, Ordering::SeqCst);
        // Only on the small disk.
        std::fs::remove_file(log.join("ballast")).ok();
        !matches!(plan.fault, Fault::Flush { .. })
    };
    let mut said = Said::default();
    if let Err(error) = to_its_end(&place, &*store, parts, plan.go_on, heal, &mut said).await {
        said.error = Some(error);
    }
    if matches!(plan.fault, Fault::Real { .. }) && said.error.is_none() {
        let tree = place.tree();
        let problems = crate::crash::checks::problems(&place, &tree).await;
        said.error = (!problems.is_empty()).then(|| problems.join("\n"));
    }
    said.writes = writes.load(Ordering::SeqCst);
    said.steps = steps.load(Ordering::SeqCst);
    said
}

/// The system's time; a day less from a certain look on.
fn clock(fault: Fault) -> journeyman_agent::Clock {
    let looks = AtomicUsize::new(0);
    journeyman_agent::Clock::new(move || {
        let look = looks.fetch_add(1, Ordering::SeqCst);
        let jumped = matches!(fault, Fault::Clock { at } if look >= at);
        UnixMillis(now().0 - if jumped { 24 * 60 * 60 * 1_000 } else { 0 })
    })
}

/// Begins the task, or goes on with it. Where it fails, and `heal` says that it makes sense, it is
/// taken up again.
async fn to_its_end(
    place: &Place,
    store: &dyn Store,
    parts: journeyman_agent::SessionParts,
    go_on: bool,
    heal: impl Fn() -> bool,
    said: &mut Said,
) -> Result<(), String> {
    let words = |error: journeyman_agent::AgentError| error.to_string();
    let known = !store.find_sessions(session().as_str()).await.map_err(|error| error.to_string())?.is_empty();
    let (handle, told) = if known {
        let state = State::load(store, &session()).await.map_err(words)?;
        let handle = resume(parts, settings(), session(), CutOffPolicy::Continue).await.map_err(words)?;
        let ended = state.outcome.is_some() && state.task.is_none() && state.queue.is_empty();
        if ended && !go_on {
            handle.close().await;
            return Ok(());
        }
        if ended {
            handle.send(task::GO_ON).await.map_err(words)?;
        }
        (handle, state.newest.0 > 0)
    } else {
        (start(parts, settings(), session()), false)
    };
    let failures = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&failures);
    let heard = handle.on_events(EventFilter::all().kinds(["storage_failure"]), Since::Now, move |_| {
        counted.fetch_add(1, Ordering::SeqCst);
    });
    let decider = tokio::spawn(decide(handle.clone()));
    if !told {
        handle.send(task::TASK).await.map_err(words)?;
    }
    let mut report = handle.wait_until_finished().await.map_err(words)?;
    if report.outcome == RunOutcome::Error {
        said.failed += 1;
        // Shown by a task of its own.
        tokio::time::sleep(Duration::from_millis(20)).await;
        said.storage_failures = failures.load(Ordering::SeqCst);
        let unforeseen = crate::crash::checks::effects_without_intent(place).await;
        if !unforeseen.is_empty() {
            return Err(unforeseen.join("\n"));
        }
        if said.storage_failures > 0 && heal() {
            // Nobody does anything: what is kept is written all the same.
            while handle.status().unwritten > 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            handle.send(task::GO_ON).await.map_err(words)?;
            report = handle.wait_until_finished().await.map_err(words)?;
        }
    }
    (said.outcome, said.summary) = (Some(report.outcome), report.summary.clone());
    decider.abort();
    handle.close().await;
    heard.abort();
    Ok(())
}

/// The person: says no to one call, and yes to all others.
async fn decide(handle: SessionHandle) {
    let mut status = handle.watch_status();
    loop {
        let asked = status.borrow_and_update().asked.clone();
        for call in asked {
            let note = "not today".to_owned();
            let answer = match task::number_of(&call) {
                number if number == task::refused() => PermissionAnswer::Deny { note: Some(note) },
                _ => PermissionAnswer::allow(),
            };
            handle.decide(&call, answer);
        }
        if status.changed().await.is_err() {
            return;
        }
    }
}
