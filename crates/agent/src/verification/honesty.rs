//! The places where a change weakens tests or checks, and how much they weigh.

use std::sync::Arc;

use journeyman_context::CheckedRound;
use journeyman_protocol::{
    Event, Evidence, HonestyFinding, HonestyKind, HonestySeverity, RelPath, RunOutcome,
};
use journeyman_verify::honesty::{ChangedFile, find_dishonest_changes};
use journeyman_workspace::ChangedContent;

use super::original_tests::changed_file;
use super::{Verification, unchanged_files};
use crate::AgentError;
use crate::blocking::run_blocking;
use crate::session::context::SessionContext;
use crate::session::task_end::TaskEnd;

impl Verification {
    /// Searches the changes for places where they weaken tests or checks. `evidence` has the checks
    /// whose success is judged.
    pub(crate) async fn find_dishonesty(
        &mut self,
        cx: &SessionContext,
        contents: Vec<ChangedContent>,
        evidence: &[Evidence],
    ) -> Result<(), AgentError> {
        let workspace = Arc::clone(&cx.workspace);
        let commands: Vec<String> = evidence.iter().map(|one| one.command.clone()).collect();
        let mut findings = run_blocking("reading the changes", move || {
            let mut files: Vec<ChangedFile> = contents.into_iter().filter_map(changed_file).collect();
            files.extend(unchanged_files::find_unchanged_tests(&workspace, &files));
            let commands: Vec<&str> = commands.iter().map(String::as_str).collect();
            find_dishonest_changes(&files, &commands)
        })
        .await?;
        for finding in &mut findings {
            finding.accepted = cx.settings.accepted_findings.iter().any(|accepted| accepted.covers(finding));
        }
        self.findings = findings;
        Ok(())
    }

    /// Returns true if a finding blocks that the original tests can't refute.
    pub(crate) fn has_irrefutable_finding(&self) -> bool {
        self.findings.iter().any(|finding| finding.is_blocking() && !is_about_expectations(finding))
    }

    /// Returns true if a finding blocks.
    pub(crate) fn has_blocking_finding(&self) -> bool {
        self.findings.iter().any(HonestyFinding::is_blocking)
    }

    /// Turns findings about what tests expect into notices where the `proven` tests pass with their
    /// original contents: the change doesn't need the weaker ones.
    pub(crate) fn refute_findings(&mut self, proven: &[RelPath]) {
        let refuted = self.findings.iter_mut().filter(|finding| {
            finding.is_blocking() && is_about_expectations(finding) && proven.contains(&finding.path)
        });
        for finding in refuted {
            finding.severity = HonestySeverity::Notice;
            finding.message.push_str("; the test passes as it was before, too");
        }
    }

    /// Shows the findings.
    pub(crate) fn show_findings(&self, cx: &mut SessionContext) {
        if !self.findings.is_empty() {
            cx.transcript.emit(Event::HonestyChecked { findings: self.findings.clone() });
        }
    }
}

/// Returns true for a finding about what tests that still run expect. Tests that are gone or
/// skipped are another matter: whoever removes one has to say so.
fn is_about_expectations(finding: &HonestyFinding) -> bool {
    matches!(
        finding.kind,
        HonestyKind::AssertionDeleted
            | HonestyKind::AssertionWeakened
            | HonestyKind::CasesRemoved
            | HonestyKind::ExpectationChanged
            | HonestyKind::SnapshotChanged
    )
}

/// Turns a verified end into an unverified one if the changes weaken tests or checks and the user
/// didn't accept that.
pub(crate) fn downgrade_for_dishonesty(end: TaskEnd, findings: &[HonestyFinding]) -> TaskEnd {
    if end.outcome != RunOutcome::Verified {
        return end;
    }
    let blocking: Vec<&HonestyFinding> = findings.iter().filter(|finding| finding.is_blocking()).collect();
    let Some(first) = blocking.first() else { return end };
    let more = match blocking.len() - 1 {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    let why = format!("not verified, though checks passed: {first}{more}");
    add_way_to_accept(TaskEnd::new(RunOutcome::Unverified, why), findings)
}

/// Adds how a user accepts the first finding that blocks.
pub(crate) fn add_way_to_accept(mut end: TaskEnd, findings: &[HonestyFinding]) -> TaskEnd {
    if let Some(first) = findings.iter().find(|finding| finding.is_blocking()) {
        end.summary.push_str(&format!("; accept it with --accept-finding {}:{}", first.kind, first.path));
    }
    end
}

/// Returns true if findings block a change whose checks pass, and the model didn't get the same
/// findings in the last round. The model can't remove findings that remain; only the user can
/// accept them.
pub(crate) fn has_new_blocking_findings(cx: &SessionContext, findings: &[HonestyFinding]) -> bool {
    let round = CheckedRound::new(0, &[], findings);
    let last = cx.transcript.state().task.as_ref().and_then(|task| task.rounds.last());
    round.count > 0 && last.is_none_or(|last| last.failures != round.failures)
}
