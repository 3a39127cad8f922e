//! The reports and the words of landings.

use journeyman_protocol::{CopyState, Evidence, FileConflict, RelPath, SessionId};
use journeyman_verify::OverallOutcome;
use journeyman_workspace::{IsolationTier, LandingReport};

use super::{LandOutcome, LandReport, WorkCopy, copy_report};

/// Returns the conflicts of a landing for a report.
pub(super) fn conflicts_of(landing: &LandingReport) -> Vec<FileConflict> {
    let each = landing.conflicts.iter();
    each.map(|(path, reason)| FileConflict { path: path.clone(), reason: reason.clone() }).collect()
}

/// Returns the report of a landing that conflicts with the user's changes.
pub(super) fn conflict_report(
    session: &SessionId,
    tier: IsolationTier,
    landing: &LandingReport,
) -> LandReport {
    let contested = landing.conflicts.iter().map(|(path, _)| path);
    let is_theirs = |path: &&RelPath| !landing.refused.contains(path) && !landing.too_large.contains(path);
    let contested: Vec<RelPath> = contested.filter(is_theirs).cloned().collect();
    let mut why = Vec::new();
    if !landing.too_large.is_empty() {
        why.push(format!("too large to be landed: {}", list_paths(&landing.too_large)));
    }
    if !landing.refused.is_empty() {
        let names = list_paths(&landing.refused);
        why.push(format!("a command in the copy made or changed {names}, which only you may land"));
    }
    if !contested.is_empty() {
        why.push(format!("you changed {} too, in ways that don't go together", list_paths(&contested)));
    }
    let summary = format!("not landed: {}", why.join("; "));
    let mut copy = copy_report(tier, CopyState::Kept);
    copy.conflicts = conflicts_of(landing);
    LandReport::new(session, LandOutcome::Conflicts, summary, copy)
}

/// Returns the report of a merged result that didn't pass the checks.
pub(super) fn unproven_report(
    session: &SessionId,
    copy: &WorkCopy,
    merged: Vec<RelPath>,
    verdict: OverallOutcome,
    evidence: Vec<Evidence>,
) -> LandReport {
    let (end, how) = match verdict {
        OverallOutcome::Failed => (LandOutcome::ChecksFail, "fails the checks"),
        OverallOutcome::NothingRan | OverallOutcome::Passed => {
            (LandOutcome::Unproven, "could not be checked")
        }
    };
    let summary = match merged.is_empty() {
        true => {
            format!("not landed: your files changed since it was checked, and together with them it {how}")
        }
        false => {
            format!("not landed: you changed {} too, and what came of merging {how}", list_paths(&merged))
        }
    };
    let mut over = LandReport::new(session, end, summary, copy.kept_report());
    (over.copy.merged, over.evidence) = (merged, evidence);
    over
}

/// Names a few files, and counts the rest.
pub(super) fn list_paths(paths: &[RelPath]) -> String {
    const MAX_NAMED_FILES: usize = 5;
    let named: Vec<String> = paths.iter().take(MAX_NAMED_FILES).map(ToString::to_string).collect();
    match paths.len().checked_sub(MAX_NAMED_FILES).filter(|more| *more > 0) {
        Some(more) => format!("{} and {more} more", named.join(", ")),
        None => named.join(", "),
    }
}

/// Counts files in words.
pub(super) fn describe_file_count(files: usize) -> String {
    format!("{files} file{}", if files == 1 { "" } else { "s" })
}
