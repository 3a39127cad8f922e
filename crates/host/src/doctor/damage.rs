//! Damage to stored state: the session log, and each project's journal, contents, reference counts
//! and copies.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use journeyman_sandbox::clean_output;
use journeyman_store::{Blobs, SqliteStore, Store as _, StoreError};
use journeyman_workspace::{Checkup, Clock, list_projects};
use serde::Serialize;

use crate::config::Environment;
use crate::state::{MAX_BLOB_STORE_BYTES, SESSION_LOG, find_session_log, now};
use crate::{Context as _, HostError};

/// Time between two lines of progress, and before the first.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);

/// The consequence of a missing session log, if sessions made checkpoints.
const MISSING_LOG_EFFECT: &str = "the session log is gone; no session can be shown or gone on with";

/// The condition of stored state.
#[derive(Debug, Default, Serialize)]
pub struct StoredStateReport {
    /// The damaged files.
    pub damage: Vec<DamagedFile>,
    /// The number of earlier contents of files that aren't kept any more.
    pub missing: usize,
    /// True if there is a session log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log: Option<bool>,
    /// Why the state can't be examined.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// A damaged file.
#[derive(Debug, Serialize)]
pub struct DamagedFile {
    /// The file.
    pub path: String,
    /// The damage, and the loss that it causes.
    pub cost: String,
}

/// Verifies all stored state without changing it. `progress` gets a line now and then.
pub async fn verify_state(environment: &Environment, progress: fn(&str)) -> StoredStateReport {
    let Some(state_dir) = environment.state_dir() else { return StoredStateReport::default() };
    check_stored_state(&state_dir, progress).await.unwrap_or_else(|failure| StoredStateReport {
        problem: Some(failure.to_string()),
        ..StoredStateReport::default()
    })
}

async fn check_stored_state(state_dir: &Path, progress: fn(&str)) -> Result<StoredStateReport, HostError> {
    let mut damage = Vec::new();
    let log = find_session_log(state_dir);
    if let Some(log) = &log {
        for cost in check_log(log, progress).await? {
            damage.push(DamagedFile { path: log.display().to_string(), cost });
        }
    }
    let (blobs, mut missing, mut checkpoints) = (open_blobs(state_dir)?, 0, 0);
    let mut ticker = ProgressTicker::new("contents", progress);
    let mut count = |verified| ticker.report_count(verified);
    let mut checkup = Checkup::new(&blobs, &mut count);
    for project in list_projects(state_dir).context("the projects")? {
        let findings = checkup.check(&project).context("a project's state")?;
        missing += findings.missing;
        checkpoints += findings.checkpoints;
        for found in findings.damage {
            damage.push(DamagedFile { path: found.path.display().to_string(), cost: found.cost });
        }
    }
    if log.is_none() && checkpoints > 0 {
        let path = state_dir.join(SESSION_LOG).display().to_string();
        damage.push(DamagedFile { path, cost: MISSING_LOG_EFFECT.to_owned() });
    }
    Ok(StoredStateReport { damage, missing, log: Some(log.is_some()), problem: None })
}

/// Repairs damaged state where that is possible. Each repair, and each loss, is a line for
/// `report`.
///
/// # Errors
/// [`HostError::Usage`] while another process works with the state.
pub async fn repair_state(
    environment: &Environment,
    report: fn(&str),
    progress: fn(&str),
) -> Result<(), HostError> {
    let Some(state_dir) = environment.state_dir() else {
        report("nothing is stored");
        return Ok(());
    };
    let (mut whole, mut checkpoints) = (true, 0);
    if let Some(log) = find_session_log(&state_dir)
        && !check_log(&log, progress).await?.is_empty()
    {
        whole = false;
        let repaired = journeyman_store::repair(&log).await.map_err(into_usage_error)?;
        if repaired.salvage.sessions.is_empty() {
            report(&format!(
                "nothing of the session log {} could be read; an empty one is begun",
                log.display()
            ));
        } else {
            report(&clean_output(repaired.salvage.to_string().as_bytes()));
        }
        report(&format!("the damaged log is now {}", repaired.aside.display()));
    }
    let blobs = open_blobs(&state_dir)?;
    let mut ticker = ProgressTicker::new("contents", progress);
    let mut count = |verified| ticker.report_count(verified);
    let mut checkup = Checkup::new(&blobs, &mut count);
    for project in list_projects(&state_dir).context("the projects")? {
        checkpoints += checkup.check(&project).context("a project's state")?.checkpoints;
        for done in checkup.repair(&project, &Clock::new(now)).context("a project's state")? {
            whole = false;
            report(&to_one_line(&done));
        }
    }
    if find_session_log(&state_dir).is_none() && checkpoints > 0 {
        whole = false;
        let path = state_dir.join(SESSION_LOG);
        let store = SqliteStore::open(&path).context("the session log")?;
        store.sessions(None, 1).await.context("the session log")?;
        report(&format!("the session log {} was gone; an empty one is begun", path.display()));
    }
    if whole {
        report(&format!("what is stored in {} is whole", state_dir.display()));
    }
    Ok(())
}

/// Converts "the log is in use" into a usage error: a repair needs the log for itself.
fn into_usage_error(error: StoreError) -> HostError {
    match error {
        StoreError::Busy { path } => HostError::usage(format_args!(
            "another jm works with {}; end it, or wait for it, and repair then. Nothing was changed",
            path.display()
        )),
        other => other.into(),
    }
}

/// Returns the damage of the log, one line each. The log is closed afterwards: a repair needs the
/// file for itself.
async fn check_log(log: &Path, progress: fn(&str)) -> Result<Vec<String>, HostError> {
    let store = SqliteStore::open(log).context("the session log")?;
    let mut ticker = ProgressTicker::new("entries", progress);
    match store
        .check_with_progress(move |verified, _| {
            ticker.report_count(usize::try_from(verified).unwrap_or(usize::MAX))
        })
        .await
    {
        Err(StoreError::Damaged { detail, .. }) => Ok(vec![format!("{detail}; no session can be read")]),
        checked => checked.context("the session log"),
    }
}

fn open_blobs(state_dir: &Path) -> Result<Arc<Blobs>, HostError> {
    Ok(Arc::new(Blobs::open(&state_dir.join("blobs"), MAX_BLOB_STORE_BYTES).context("the stored contents")?))
}

/// Replaces line breaks in a text, which may come from paths.
#[must_use]
pub fn to_one_line(text: &str) -> String {
    clean_output(text.as_bytes()).replace(['\n', '\t'], " ")
}

/// Reports the progress of a long verification at intervals.
struct ProgressTicker {
    what: &'static str,
    progress: fn(&str),
    last: Instant,
}

impl ProgressTicker {
    fn new(what: &'static str, progress: fn(&str)) -> Self {
        Self { what, progress, last: Instant::now() }
    }

    fn report_count(&mut self, verified: usize) {
        if self.last.elapsed() >= PROGRESS_INTERVAL {
            self.last = Instant::now();
            (self.progress)(&format!("verified {verified} {}", self.what));
        }
    }
}
