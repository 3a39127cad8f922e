//! Damage to what is stored: the session log, and each project's journal, contents, ledger and copies.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use journeyman_host::Context as _;
use journeyman_host::config::Environment;
use journeyman_sandbox::clean;
use journeyman_store::{Blobs, SqliteStore, Store as _, StoreError};
use journeyman_workspace::{Checkup, Clock, projects_in};
use serde_json::{Value, json};

use crate::color;
use crate::stdout::say;
use journeyman_host::HostError;
use journeyman_host::state::{MAX_BLOB_BYTES, SESSION_LOG, find_session_log, now};

/// How long it is verified in silence, and then between two lines of progress.
const SILENCE: Duration = Duration::from_secs(1);

/// What is said where sessions made checkpoints and there is no log of them.
const LOG_GONE: &str = "the session log is gone; no session can be shown or gone on with";

/// Verifies everything that is stored. Nothing is changed.
pub(super) async fn report(environment: &Environment) -> Result<Value, HostError> {
    let Some(state_dir) = environment.state_dir() else { return Ok(json!({ "damage": [], "missing": 0 })) };
    match look_through(&state_dir).await {
        // What can't be looked at is no reason to say nothing else.
        Err(failure) => Ok(json!({ "damage": [], "missing": 0, "problem": failure.to_string() })),
        found => found,
    }
}

async fn look_through(state_dir: &Path) -> Result<Value, HostError> {
    let mut damage = Vec::new();
    let log = find_session_log(state_dir);
    if let Some(log) = &log {
        for cost in check(log).await? {
            damage.push(json!({ "path": log.display().to_string(), "cost": cost }));
        }
    }
    let (blobs, mut missing, mut checkpoints) = (blobs(state_dir)?, 0, 0);
    let mut ticker = Ticker::new("contents");
    let mut tell = |verified| ticker.tell(verified);
    let mut checkup = Checkup::new(&blobs, &mut tell);
    for project in projects_in(state_dir).context("the projects")? {
        let findings = checkup.check(&project).context("a project's state")?;
        missing += findings.missing;
        checkpoints += findings.checkpoints;
        for found in findings.damage {
            damage.push(json!({ "path": found.path.display().to_string(), "cost": found.cost }));
        }
    }
    if log.is_none() && checkpoints > 0 {
        let path = state_dir.join(SESSION_LOG).display().to_string();
        damage.push(json!({ "path": path, "cost": LOG_GONE }));
    }
    Ok(json!({ "damage": damage, "missing": missing, "log": log.is_some() }))
}

pub(super) fn print(stored: &Value) {
    let paint = color::stdout();
    let damage = stored.get("damage").and_then(Value::as_array).cloned().unwrap_or_default();
    for one in &damage {
        let text = |key: &str| one.get(key).and_then(Value::as_str).unwrap_or_default();
        say!("{} damaged: {}", paint.red("✗"), line(&format!("{}: {}", text("path"), text("cost"))));
    }
    if let Some(problem) = stored.get("problem").and_then(Value::as_str) {
        say!("{} {}", paint.red("✗"), line(problem));
    } else if !damage.is_empty() {
        say!("  mend what can be mended with: jm doctor --repair");
    } else if stored.get("log").and_then(Value::as_bool) == Some(true) {
        say!("{} the session log and what undo needs are whole", paint.green("✓"));
    }
    match stored.get("missing").and_then(Value::as_u64).unwrap_or_default() {
        0 => {}
        missing => say!(
            "{} {missing} earlier contents aren't kept any more; an undo that needs one names its file",
            paint.yellow("–")
        ),
    }
}

/// Mends what can be mended, and says what is lost.
pub(super) async fn repair(environment: &Environment) -> Result<u8, HostError> {
    let Some(state_dir) = environment.state_dir() else {
        say!("nothing is stored");
        return Ok(0);
    };
    let (mut whole, mut checkpoints) = (true, 0);
    if let Some(log) = find_session_log(&state_dir)
        && !check(&log).await?.is_empty()
    {
        whole = false;
        let repaired = journeyman_store::repair(&log).await.map_err(in_use)?;
        if repaired.salvage.sessions.is_empty() {
            say!("nothing of the session log {} could be read; an empty one is begun", log.display());
        } else {
            say!("{}", clean(repaired.salvage.to_string().as_bytes()));
        }
        say!("the damaged log is now {}", repaired.aside.display());
    }
    let blobs = blobs(&state_dir)?;
    let mut ticker = Ticker::new("contents");
    let mut tell = |verified| ticker.tell(verified);
    let mut checkup = Checkup::new(&blobs, &mut tell);
    for project in projects_in(&state_dir).context("the projects")? {
        checkpoints += checkup.check(&project).context("a project's state")?.checkpoints;
        for done in checkup.repair(&project, &Clock::new(now)).context("a project's state")? {
            whole = false;
            say!("{}", line(&done));
        }
    }
    if find_session_log(&state_dir).is_none() && checkpoints > 0 {
        whole = false;
        let path = state_dir.join(SESSION_LOG);
        let store = SqliteStore::open(&path).context("the session log")?;
        store.sessions(None, 1).await.context("the session log")?;
        say!("the session log {} was gone; an empty one is begun", path.display());
    }
    if whole {
        say!("what is stored in {} is whole", state_dir.display());
    }
    Ok(0)
}

/// A repair that another process is in the way of.
fn in_use(error: StoreError) -> HostError {
    match error {
        StoreError::Busy { path } => HostError::usage(format_args!(
            "another jm works with {}; end it, or wait for it, and repair then. Nothing was changed",
            path.display()
        )),
        other => other.into(),
    }
}

/// The log's damage, one line each. It is closed afterwards: a repair wants the file for itself.
async fn check(log: &Path) -> Result<Vec<String>, HostError> {
    let store = SqliteStore::open(log).context("the session log")?;
    let mut ticker = Ticker::new("entries");
    match store
        .check_with(move |verified, _| ticker.tell(usize::try_from(verified).unwrap_or(usize::MAX)))
        .await
    {
        Err(StoreError::Damaged { detail, .. }) => Ok(vec![format!("{detail}; no session can be read")]),
        checked => checked.context("the session log"),
    }
}

fn blobs(state_dir: &Path) -> Result<Arc<Blobs>, HostError> {
    Ok(Arc::new(Blobs::open(&state_dir.join("blobs"), MAX_BLOB_BYTES).context("the stored contents")?))
}

/// One line, whatever a path in it has.
fn line(text: &str) -> String {
    clean(text.as_bytes()).replace(['\n', '\t'], " ")
}

/// Says now and then how far something is that takes longer than a second.
struct Ticker {
    what: &'static str,
    told: Instant,
}

impl Ticker {
    fn new(what: &'static str) -> Self {
        Self { what, told: Instant::now() }
    }

    fn tell(&mut self, verified: usize) {
        if self.told.elapsed() >= SILENCE {
            self.told = Instant::now();
            tell!("verified {verified} {}", self.what);
        }
    }
}
