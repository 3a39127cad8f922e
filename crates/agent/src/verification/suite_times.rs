//! Measured durations of a project's test commands.
//!
//! They tell if affected tests are worth a run of their own, and if all tests fit the budget. They
//! are kept in the project's state directory; losing them costs one run of all tests.

use std::path::PathBuf;
use std::time::Duration;

use journeyman_protocol::Evidence;
use journeyman_verify::Check;
use serde::{Deserialize, Serialize};

use super::derived_file::{read_derived, write_derived};
use crate::session::context::SessionContext;

/// The file in the project's state directory.
const FILE_NAME: &str = "check-times.json";
/// Maximum number of commands whose durations are kept; the oldest are dropped.
const MAX_COMMANDS: usize = 64;
/// Maximum size of the file in bytes; commands are short.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// Durations of test commands, the newest last.
pub(crate) struct SuiteTimes {
    path: PathBuf,
    known: Vec<SuiteTime>,
}

#[derive(Serialize, Deserialize)]
struct SuiteTime {
    directory: String,
    command: String,
    ms: u64,
}

impl SuiteTimes {
    /// Loads the durations that are known of the session's project.
    pub(crate) fn load(cx: &SessionContext) -> Self {
        let path = cx.project().state_dir().join(FILE_NAME);
        let known = read_derived(&path, MAX_FILE_BYTES);
        Self { path, known }
    }

    /// Returns the duration of the newest complete run of a check.
    pub(crate) fn find_duration(&self, check: &Check) -> Option<Duration> {
        let directory = check.directory.as_ref().map(ToString::to_string).unwrap_or_default();
        let newest =
            self.known.iter().rev().find(|it| it.command == check.command && it.directory == directory);
        newest.map(|it| Duration::from_millis(it.ms))
    }

    /// Keeps the durations of tests that passed; a failure may have ended them early.
    pub(crate) fn save_passed<'e>(&mut self, evidence: impl Iterator<Item = &'e Evidence>) {
        for one in evidence.filter(|one| one.outcome.has_passed()) {
            let directory = one.directory.as_ref().map(ToString::to_string).unwrap_or_default();
            self.known.retain(|it| it.command != one.command || it.directory != directory);
            self.known.push(SuiteTime { directory, command: one.command.clone(), ms: one.duration_ms });
        }
        let surplus = self.known.len().saturating_sub(MAX_COMMANDS);
        self.known.drain(..surplus);
        // What can't be written is measured again.
        write_derived(&self.path, &self.known);
    }
}
