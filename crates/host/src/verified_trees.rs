//! Compares the trees that sessions verified with the projects' present trees.

use std::collections::HashMap;
use std::path::Path;

use journeyman_protocol::{ContentHash, CopyState, Envelope, Event, RunOutcome, RunReport, Seq};
use journeyman_store::SessionSummary;

use crate::HostError;
use crate::events::read_events;
use crate::state::StateDirs;

/// Number of entries at the end of a session's log among which its last report is. Only landing,
/// commits and the release of the session come after it.
const MAX_SEARCHED_ENTRIES: u64 = 64;

/// Returns the last report of a session, if it ended a task.
///
/// # Errors
/// [`HostError::Failed`] where the log can't be read.
pub(crate) async fn read_last_report(
    state: &StateDirs,
    session: &SessionSummary,
) -> Result<Option<Box<RunReport>>, HostError> {
    let mut report = None;
    let mut keep = |envelope: &Envelope| {
        if let Event::Done { report: done } = &envelope.event {
            report = Some(done.clone());
        }
        Ok(())
    };
    let after = Seq(session.last.0.saturating_sub(MAX_SEARCHED_ENTRIES));
    read_events(state, &session.id, after, &mut keep).await?;
    Ok(report)
}

/// The present trees of projects, each hashed at most once.
pub(crate) struct CurrentTrees<'a> {
    state: &'a StateDirs,
    now: HashMap<String, Option<ContentHash>>,
}

impl<'a> CurrentTrees<'a> {
    pub(crate) fn new(state: &'a StateDirs) -> Self {
        Self { state, now: HashMap::new() }
    }

    /// Returns true if the project's tree differs from the tree that the session's last report
    /// verified; `None` if nothing was verified in the project, or the tree can't be read.
    pub(crate) fn has_changed(&mut self, session: &SessionSummary, report: &RunReport) -> Option<bool> {
        let is_kept = report.copy.as_ref().is_some_and(|copy| copy.state == CopyState::Kept);
        let verified = report.tree.filter(|_| report.outcome == RunOutcome::Verified && !is_kept)?;
        self.current_tree(&session.root).map(|now| now != verified)
    }

    fn current_tree(&mut self, root: &str) -> Option<ContentHash> {
        let state = self.state;
        *self.now.entry(root.to_owned()).or_insert_with(|| {
            let workspace = state.open_workspace(Path::new(root)).ok()?;
            workspace.history().tree_hash().ok()
        })
    }
}
