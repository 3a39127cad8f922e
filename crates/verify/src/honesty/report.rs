//! The findings about a change, bounded and in order.

use journeyman_protocol::{HonestyFinding, HonestyKind, HonestySeverity, RelPath};

/// Maximum number of findings about one change.
const MAX_FINDINGS: usize = 100;

/// Collects findings.
#[derive(Default)]
pub(super) struct HonestyReport {
    findings: Vec<HonestyFinding>,
}

impl HonestyReport {
    /// Adds a finding that blocks.
    pub(super) fn add_blocking(&mut self, kind: HonestyKind, path: &RelPath, line: u32, message: String) {
        self.add(HonestySeverity::Blocking, kind, path, line, message);
    }

    pub(super) fn add(
        &mut self,
        severity: HonestySeverity,
        kind: HonestyKind,
        path: &RelPath,
        line: u32,
        message: String,
    ) {
        let same =
            |one: &&mut HonestyFinding| one.kind == kind && one.path == *path && one.line == Some(line);
        if let Some(known) = self.findings.iter_mut().find(same) {
            if known.severity < severity {
                (known.severity, known.message) = (severity, message);
            }
            return;
        }
        let finding =
            HonestyFinding { kind, severity, path: path.clone(), line: Some(line), message, accepted: false };
        if self.findings.len() < MAX_FINDINGS {
            self.findings.push(finding);
        } else if severity == HonestySeverity::Blocking
            && let Some(least) = self.findings.iter_mut().find(|one| one.severity == HonestySeverity::Notice)
        {
            *least = finding;
        }
    }

    /// Returns the findings, blocking ones first, then by place.
    pub(super) fn into_findings(mut self) -> Vec<HonestyFinding> {
        self.findings.sort_by(|one, other| {
            let by_weight = other.severity.cmp(&one.severity);
            by_weight
                .then_with(|| (&one.path, one.line, one.kind).cmp(&(&other.path, other.line, other.kind)))
        });
        self.findings
    }
}
