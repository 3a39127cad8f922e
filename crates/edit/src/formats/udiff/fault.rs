//! Faults of a section, with their lines.

use crate::formats::block::{BlockProblem, ProblemKind};
use crate::formats::hunks;

/// A fault of the section that it stands in.
pub(super) type SectionFault = (ProblemKind, usize, String);

pub(super) fn to_problem((kind, line, message): SectionFault, subject: Option<&str>) -> BlockProblem {
    hunks::patch_problem(kind, line, subject, message)
}
