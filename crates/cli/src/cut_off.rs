//! Sessions that ended without an end: killed, or the machine went down.
//!
//! A run holds a lock on a file of its session's name. The kernel lets go of it however the run ends, so a
//! session without an end whose lock is free was cut off, and what its last command changed can be claimed
//! for it: then it is undone like everything else (decision 5).

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use journeyman_agent::{Record, record_of};
use journeyman_protocol::{CallId, CallState, Seq, SessionId};
use journeyman_store::{STATUS_NEW, SessionSummary, Store as _};
use journeyman_workspace::{CheckpointId, Workspace};
use rustix::fs::{FlockOperation, flock};

use crate::edge::{Failure, House};

/// Entries read at once.
const PAGE: usize = 500;

/// Says that a session runs, for as long as it lives.
pub(crate) struct Running {
    path: PathBuf,
    _lock: File,
}

impl Running {
    /// Claims the session's name.
    pub(crate) fn new(state_dir: &Path, session: &SessionId) -> Result<Self, Failure> {
        let (path, file) = open(state_dir, session)?;
        flock(&file, FlockOperation::NonBlockingLockExclusive).context("claiming the session")?;
        Ok(Self { path, _lock: file })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // A file that stays says nothing without its lock.
        std::fs::remove_file(&self.path).ok();
    }
}

fn open(state_dir: &Path, session: &SessionId) -> Result<(PathBuf, File), Failure> {
    let dir = state_dir.join("running");
    // The state directory may be made here, and is nobody else's.
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&dir);
    made.with_context(|| dir.display().to_string())?;
    let path = dir.join(session.as_str());
    let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path);
    let file = file.with_context(|| path.display().to_string())?;
    Ok((path, file))
}

/// Claims for a session that was cut off what its last command changed. Nothing to do for one that ended.
pub(crate) async fn recover(
    house: &House,
    workspace: &Workspace,
    session: &SessionSummary,
) -> Result<(), Failure> {
    if session.status != STATUS_NEW {
        return Ok(());
    }
    let (path, lock) = open(&house.state_dir, &session.id)?;
    if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
        return Err(Failure::usage(format_args!(
            "session {} is still running; stop it first (Ctrl-C where it runs)",
            session.id
        )));
    }
    if let Some((checkpoint, call)) = last_intent(house, &session.id).await? {
        workspace
            .journal_since(&CheckpointId(checkpoint), &session.id, Some(&call))
            .context("claiming what the session's last call changed")?;
    }
    std::fs::remove_file(path).ok();
    Ok(())
}

/// The checkpoint before the run and the call that was executing when the log ended, if one was.
async fn last_intent(house: &House, session: &SessionId) -> Result<Option<(u64, CallId)>, Failure> {
    let (mut checkpoint, mut open, mut after) = (None, HashMap::new(), Seq::START);
    loop {
        let page = house.store.read(session, after, PAGE).await.context("the session log")?;
        let Some(last) = page.last() else { break };
        after = last.seq;
        for record in page.iter().filter_map(record_of) {
            match record {
                Record::Checkpoint { id } => checkpoint = Some(id),
                Record::Call(transition) if transition.state == CallState::Executing => {
                    open.insert(transition.call, after);
                }
                Record::Call(transition) if transition.state.is_final() => {
                    open.remove(&transition.call);
                }
                // Checks were running when the log ended: their changes are claimed without a call's name.
                Record::Checking { running: true } => {
                    open.insert(CallId::new("check"), after);
                }
                Record::Checking { running: false } => {
                    open.remove(&CallId::new("check"));
                }
                _ => {}
            }
        }
    }
    Ok(checkpoint.zip(open.into_keys().next()))
}
