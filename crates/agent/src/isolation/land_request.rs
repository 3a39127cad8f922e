//! Options and results of landing a copy.

use journeyman_protocol::{
    CommitReport, CopyReport, Envelope, Evidence, FileChange, RunOutcome, RunReport, SessionId,
};
use journeyman_workspace::OnConflict;
use serde::Serialize;

use super::commit_options::CommitOptions;

/// The treatment of unverified work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum UnverifiedPolicy {
    /// The work is kept in the copy.
    #[default]
    Keep,
    /// The work is landed because the user says so.
    Land,
}

/// Options of landing a copy.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LandRequest {
    /// The treatment of files that both sides changed in conflicting ways.
    pub on_conflict: OnConflict,
    /// Only report what would happen.
    pub dry_run: bool,
    /// The treatment of unverified work and unverified merge results.
    pub unverified: UnverifiedPolicy,
    /// Options of the commit, if one is to be made.
    pub commit: Option<CommitOptions>,
}

/// The outcome of landing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LandOutcome {
    /// The change is in the user's tree.
    Landed,
    /// A dry run found that the change would land.
    WouldLand,
    /// There was nothing to land; the copy is gone.
    Nothing,
    /// Both sides changed the same lines.
    Conflicts,
    /// The merged result fails the checks.
    ChecksFail,
    /// The merged result couldn't be checked.
    Unproven,
    /// No check verified the work.
    Unverified,
    /// Files of the change have uncommitted changes of the user, which a commit would include.
    Mixed,
    /// A commit on its own branch was asked for, and git or a hook refused it.
    NotCommitted,
}

/// The report of landing.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LandReport {
    /// The session of the copy.
    pub session: SessionId,
    /// The outcome.
    pub end: LandOutcome,
    /// One line for people.
    pub summary: String,
    /// The place and state of the work.
    pub copy: CopyReport,
    /// The actual or, in a dry run, the intended changes of the user's tree.
    pub changes: Vec<FileChange>,
    /// The changes of a dry run as a bounded unified diff.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub diff: String,
    /// The checks of a merged result.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<Evidence>,
    /// The commit that was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<CommitReport>,
    /// The reason why a requested commit was not made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_committed: Option<String>,
    /// True if the commit is possible after a person has reviewed it.
    #[serde(skip)]
    pub needs_person: bool,
    /// The way to undo the landing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undo: Option<String>,
    /// The events that were written into the session's log.
    #[serde(skip)]
    pub events: Vec<Envelope>,
}

impl LandReport {
    pub(super) fn new(
        session: &SessionId,
        end: LandOutcome,
        summary: impl Into<String>,
        copy: CopyReport,
    ) -> Self {
        Self {
            session: session.clone(),
            end,
            summary: summary.into(),
            copy,
            changes: Vec::new(),
            diff: String::new(),
            evidence: Vec::new(),
            commit: None,
            not_committed: None,
            needs_person: false,
            undo: None,
            events: Vec::new(),
        }
    }

    /// Returns the exit code of a command that was to land the copy.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self.end {
            _ if self.needs_person => RunOutcome::PermissionNeeded.exit_code(),
            _ if self.not_committed.is_some() => RunOutcome::Error.exit_code(),
            LandOutcome::Landed | LandOutcome::WouldLand | LandOutcome::Nothing => {
                RunOutcome::Verified.exit_code()
            }
            LandOutcome::Conflicts | LandOutcome::ChecksFail | LandOutcome::Unproven => {
                RunOutcome::Conflict.exit_code()
            }
            LandOutcome::Unverified => RunOutcome::PermissionNeeded.exit_code(),
            LandOutcome::Mixed | LandOutcome::NotCommitted => RunOutcome::Error.exit_code(),
        }
    }

    /// Adds the present place of the work to a run's report.
    pub fn amend_run_report(&self, report: &mut RunReport) {
        report.copy = Some(self.copy.clone());
        report.commit.clone_from(&self.commit);
        report.undo.clone_from(&self.undo);
        match self.end {
            LandOutcome::Landed => {
                report.changes.clone_from(&self.changes);
                report.summary = format!("{}; {}", report.summary, self.summary);
            }
            LandOutcome::Conflicts | LandOutcome::ChecksFail | LandOutcome::Unproven => {
                report.outcome = RunOutcome::Conflict;
                report.summary = format!("{}; {}", report.summary, self.summary);
            }
            LandOutcome::Mixed | LandOutcome::NotCommitted => {
                report.outcome = RunOutcome::Error;
                report.summary = format!("{}; {}", report.summary, self.summary);
            }
            LandOutcome::WouldLand | LandOutcome::Nothing | LandOutcome::Unverified => {}
        }
        if let Some(reason) = &self.not_committed {
            report.outcome = if self.needs_person { RunOutcome::PermissionNeeded } else { RunOutcome::Error };
            report.summary = format!("{}; not committed: {reason}", report.summary);
        }
        report.exit_code = report.outcome.exit_code();
    }
}
