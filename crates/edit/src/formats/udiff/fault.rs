//! Faults of a section, with their lines.

use crate::formats::block::{BlockProblem, ProblemKind};
use crate::formats::hunks;

/// A fault of the section that it stands in.
pub(super) type Fault = (ProblemKind, usize, String);

pub(super) fn to_problem((kind, line, message): Fault, subject: Option<&str>) -> BlockProblem {
    hunks::problem(kind, line, subject, message)
}
