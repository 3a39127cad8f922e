//! How a copy is to be landed, and what came of it.

use journeyman_protocol::{
    CommitReport, CopyReport, Envelope, Evidence, FileChange, RunOutcome, RunReport, SessionId,
};
use journeyman_workspace::OnConflict;
use serde::Serialize;

use super::commit_wish::CommitWish;

/// What happens to work that nothing verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Unverified {
    /// It is kept.
    #[default]
    Keep,
    /// It is landed all the same: the user says so.
    Land,
}

/// How a copy is to be landed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LandWish {
    /// Files that both changed in ways that don't go together.
    pub on_conflict: OnConflict,
    /// Only tell what would happen.
    pub dry_run: bool,
    /// Work, and results of merging, that nothing verified.
    pub unverified: Unverified,
    /// Whether a commit is made of it.
    pub commit: Option<CommitWish>,
}

/// How landing ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LandEnd {
    /// The change is in the user's tree.
    Landed,
    /// It would be: a dry run.
    WouldLand,
    /// There was nothing to land; the copy is gone.
    Nothing,
    /// Both changed the same lines.
    Conflicts,
    /// What came of merging fails the checks.
    ChecksFail,
    /// What came of merging couldn't be checked.
    Unproven,
    /// Nothing verified the work.
    Unverified,
    /// Files of it have uncommitted changes of the user, which a commit would take along.
    Mixed,
    /// A commit was asked for on a branch of its own, and git or a hook refused it.
    NotCommitted,
}

/// What landing did.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LandReport {
    /// Whose copy.
    pub session: SessionId,
    /// How it ended.
    pub end: LandEnd,
    /// One line a person understands.
    pub summary: String,
    /// Where the work is.
    pub copy: CopyReport,
    /// What changed in the user's tree, or would.
    pub changes: Vec<FileChange>,
    /// What a dry run would change, as a bounded unified diff.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub diff: String,
    /// Checks of a merged result.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<Evidence>,
    /// The commit that was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<CommitReport>,
    /// Why no commit was made, though one was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_committed: Option<String>,
    /// A person who has looked may allow the commit.
    #[serde(skip)]
    pub needs_person: bool,
    /// How to take it back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undo: Option<String>,
    /// What the session's log got of it.
    #[serde(skip)]
    pub events: Vec<Envelope>,
}

impl LandReport {
    pub(super) fn new(
        session: &SessionId,
        end: LandEnd,
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

    /// The exit code of a command that was to land something.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self.end {
            _ if self.needs_person => RunOutcome::PermissionNeeded.exit_code(),
            _ if self.not_committed.is_some() => RunOutcome::Error.exit_code(),
            LandEnd::Landed | LandEnd::WouldLand | LandEnd::Nothing => RunOutcome::Verified.exit_code(),
            LandEnd::Conflicts | LandEnd::ChecksFail | LandEnd::Unproven => RunOutcome::Conflict.exit_code(),
            LandEnd::Unverified => RunOutcome::PermissionNeeded.exit_code(),
            LandEnd::Mixed | LandEnd::NotCommitted => RunOutcome::Error.exit_code(),
        }
    }

    /// Puts into a run's report where its work is now.
    pub fn amend(&self, report: &mut RunReport) {
        report.copy = Some(self.copy.clone());
        report.commit.clone_from(&self.commit);
        report.undo.clone_from(&self.undo);
        match self.end {
            LandEnd::Landed => {
                report.changes.clone_from(&self.changes);
                report.summary = format!("{}; {}", report.summary, self.summary);
            }
            LandEnd::Conflicts | LandEnd::ChecksFail | LandEnd::Unproven => {
                report.outcome = RunOutcome::Conflict;
                report.summary = format!("{}; {}", report.summary, self.summary);
            }
            LandEnd::Mixed | LandEnd::NotCommitted => {
                report.outcome = RunOutcome::Error;
                report.summary = format!("{}; {}", report.summary, self.summary);
            }
            LandEnd::WouldLand | LandEnd::Nothing | LandEnd::Unverified => {}
        }
        if let Some(reason) = &self.not_committed {
            report.outcome = if self.needs_person { RunOutcome::PermissionNeeded } else { RunOutcome::Error };
            report.summary = format!("{}; not committed: {reason}", report.summary);
        }
        report.exit_code = report.outcome.exit_code();
    }
}
