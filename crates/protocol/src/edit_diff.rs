//! The lines that a call changed in a file.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The difference that a call made in one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EditDiff {
    /// Number of lines that were added.
    pub added: u64,
    /// Number of lines that were removed.
    pub removed: u64,
    /// The lines as a unified diff. A long one is cut off at the end of a line.
    pub text: String,
}
