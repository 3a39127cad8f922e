//! Stall detector: notices a run that makes no progress, warns the model twice, then ends the run.
//!
//! Progress is a change of state, not a new call. Each step has one of these values:
//!
//! - **news**: the tree is in a state that is new in this task, checks gave results that they
//!   hadn't given, a message or a notice came in, or a call returned something that no call had
//!   returned before.
//! - **fresh**: a new call succeeded and returned nothing new, as in a long list of steps with one
//!   silent command per file. Such a step has no cost, and resets nothing.
//! - **little**: something is different but carries no state: another call that fails as one did
//!   before, a result that differs only in its numbers, the same command changing files once more,
//!   or a look at a background command that is still silent.
//! - **nothing**: calls that were made before with the same results, a tree that returns to an
//!   earlier state, or a reply without calls.
//!
//! Results are compared so that noise doesn't count as news. Times (durations, times of day, dates)
//! and ids of sessions are left out. For a call that may change things or that failed, only words
//! that don't occur in the call itself count: `echo 1` and `echo 2` return the same, as do the
//! errors for two paths that don't exist. For a call that only reads, the whole result counts. So a
//! hundred similar files are a hundred pieces of news, and so is the advancing output of a command.
//!
//! News resets the count. Without news, a step worth nothing costs [`NO_VALUE_COST`] and a step
//! worth little costs [`LITTLE_VALUE_COST`]. When the sum reaches a limit ([`FIRST_WARNING_COST`],
//! [`NEXT_WARNING_COST`]), the detector warns or ends the run.
//!
//! The detector doesn't notice a run that writes something new into a file in every step and never
//! comes closer to its goal: by its state, such a run makes progress. The limits on turns, time and
//! budget end those runs. The detector keeps nothing over a restart.

mod call_fingerprint;

#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};

use journeyman_protocol::{ContentHash, RelPath};

use call_fingerprint::{hash_pair, split_stable_words};

pub use call_fingerprint::{CallFingerprint, hash_checks};

/// Cost of a step that is worth nothing.
pub const NO_VALUE_COST: u32 = 3;
/// Cost of a step that is worth little: a third of [`NO_VALUE_COST`]. Silent commands, searches
/// without a hit and waiting are parts of normal work, but not dozens in a row.
pub const LITTLE_VALUE_COST: u32 = 1;
/// Cost at which the first warning comes: 5 steps worth nothing, or 15 worth little. A model that
/// reads a file three times, or retries a failing command twice, gets no warning yet. Gemini CLI,
/// too, warns at the 5th identical call, and at the 10th of two alternating calls, which are 8
/// steps worth nothing.
pub const FIRST_WARNING_COST: u32 = 5 * NO_VALUE_COST;
/// Further cost at which the second warning, and then the end, comes: 3 steps worth nothing, or 9
/// worth little. The model has been warned by then, and every step costs the whole transcript.
pub const NEXT_WARNING_COST: u32 = 3 * NO_VALUE_COST;
/// Number of steps with news after which a warning is forgotten, so that two slips in a long task
/// don't add up, while a loop that reads one new file per round isn't exempt. A new state of the
/// tree or of the checks forgets a warning at once.
pub const STEPS_TO_FORGIVE: u32 = 10;

/// The events of a step: one reply of the model and the calls that it made.
#[derive(Debug, Clone, Default)]
pub struct StepFacts {
    /// The calls, in order, with their results.
    pub calls: Vec<CallFingerprint>,
    /// The files that differ after the step, with the hash of their present content, or `None` for
    /// a deleted file. A file that changed more than once has its last content.
    pub changes: Vec<(RelPath, Option<ContentHash>)>,
    /// The results of checks that ran in this step, as a key from [`hash_checks`].
    pub checks: Option<u64>,
    /// True if a person sent a message.
    pub user_message: bool,
    /// Other messages to the session in this step, such as another agent's message or the end of a
    /// background command. The session's own reminders are left out.
    pub notices: Vec<String>,
}

/// The action to take after a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StallGuidance {
    /// Continue.
    Fine,
    /// Remind the model with this text.
    Warn(String),
    /// End the run; the reason is for people.
    Stop(String),
}

/// The value of a step. The order matters: the best of a step's parts counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum StepProgress {
    Nothing,
    Little,
    /// A new call succeeded. The model works through a list, whatever the results say.
    Fresh,
    /// A result was new.
    News,
    /// The tree or the checks reached a new state, or a person sent a message.
    State,
}

/// Detects a stall in one task.
#[derive(Debug, Default)]
pub struct StallDetector {
    /// Total cost of the steps without news since the last news or warning.
    cost: u32,
    /// Number of steps without news in a row.
    steps: u32,
    /// Number of steps with news since the last warning.
    good: u32,
    warnings: u8,
    /// Hashes of calls with their results, of results, and of the shapes of results.
    seen: HashSet<u64>,
    files: HashMap<RelPath, Option<ContentHash>>,
    /// The state of the tree: the sum of its changed files' keys, independent of their order.
    tree: u64,
    trees: HashSet<u64>,
    /// Calls since the last news, by the hash of name and arguments.
    repeated: HashMap<u64, RepeatedCall>,
}

#[derive(Debug)]
struct RepeatedCall {
    tool: String,
    times: u32,
    errors: u32,
}

impl StallDetector {
    /// Forgets the results of calls. After the transcript is shortened, reading a file again is
    /// news to the model.
    pub fn forget_results(&mut self) {
        self.seen.clear();
    }

    /// Records a step and returns the action to take.
    pub fn observe(&mut self, step: &StepFacts) -> StallGuidance {
        if step.user_message {
            // A person may ask for the same work once more, so a message starts the count anew.
            *self = Self::default();
        }
        let mut worth = self.measure_progress(step);
        if step.user_message {
            worth = StepProgress::State;
        }
        match worth {
            StepProgress::State => self.reset_cost(true),
            StepProgress::News => self.reset_cost(false),
            // A fresh step costs nothing and resets nothing.
            StepProgress::Fresh => {}
            StepProgress::Little => self.add_cost(step, LITTLE_VALUE_COST),
            StepProgress::Nothing => self.add_cost(step, NO_VALUE_COST),
        }
        let limit = if self.warnings == 0 { FIRST_WARNING_COST } else { NEXT_WARNING_COST };
        if self.cost < limit { StallGuidance::Fine } else { self.next_guidance() }
    }

    fn reset_cost(&mut self, state: bool) {
        self.cost = 0;
        self.steps = 0;
        self.repeated.clear();
        self.good = self.good.saturating_add(1);
        if state || self.good >= STEPS_TO_FORGIVE {
            self.warnings = 0;
        }
    }

    fn add_cost(&mut self, step: &StepFacts, cost: u32) {
        self.cost = self.cost.saturating_add(cost);
        self.steps = self.steps.saturating_add(1);
        for call in &step.calls {
            let fresh = || RepeatedCall { tool: call.tool.clone(), times: 0, errors: 0 };
            let entry = self.repeated.entry(call.call).or_insert_with(fresh);
            entry.times += 1;
            entry.errors += u32::from(call.is_error);
        }
    }

    /// Returns the best value among a step's parts, and records all of them as seen.
    fn measure_progress(&mut self, step: &StepFacts) -> StepProgress {
        let mut best = StepProgress::Nothing;
        let new_tree = self.record_changes(step);
        let mut changed_anew = false;
        for call in &step.calls {
            let new_call = self.seen.insert(hash_pair("call", call.call));
            best = best.max(self.record_result(call, new_call));
            changed_anew |= call.changed && new_call;
            if call.changed && new_tree {
                best = best.max(StepProgress::Little);
            }
        }
        if new_tree && changed_anew {
            best = StepProgress::State;
        }
        if step.checks.is_some_and(|checks| self.seen.insert(hash_pair("checks", checks))) {
            best = StepProgress::State;
        }
        for notice in &step.notices {
            let said = split_stable_words(notice).fold(0, hash_pair);
            if self.seen.insert(hash_pair("notice", said)) {
                best = best.max(StepProgress::News);
            }
        }
        best
    }

    /// Records a result and returns its value compared with the results before it.
    fn record_result(&mut self, call: &CallFingerprint, new_call: bool) -> StepProgress {
        let new_pair = self.seen.insert(hash_pair("pair", hash_pair(call.call, call.whole)));
        let new_whole = self.seen.insert(hash_pair("whole", hash_pair(&call.tool, call.whole)));
        let new_said = self.seen.insert(hash_pair("said", hash_pair(&call.tool, call.said)));
        let new_shape = self.seen.insert(hash_pair("shape", hash_pair(&call.tool, call.shape)));
        let reads = call.read_only && !call.is_error;
        if reads && (new_whole || (new_pair && !new_call)) {
            // A known result that is new for this call: the state that the call reads has changed.
            return StepProgress::News;
        }
        if !reads && new_said && new_shape {
            return StepProgress::News;
        }
        if new_call && !call.is_error {
            return StepProgress::Fresh;
        }
        if new_call || new_pair || new_said || call.waiting {
            StepProgress::Little
        } else {
            StepProgress::Nothing
        }
    }

    /// Applies the step's changes to the state of the tree. Returns true if the state is new.
    fn record_changes(&mut self, step: &StepFacts) -> bool {
        // The task begins in a state without changes.
        self.trees.insert(self.tree);
        for (path, hash) in &step.changes {
            if let Some(old) = self.files.insert(path.clone(), *hash) {
                self.tree = self.tree.wrapping_sub(hash_file_state(path, old));
            }
            self.tree = self.tree.wrapping_add(hash_file_state(path, *hash));
        }
        self.trees.insert(self.tree)
    }

    fn next_guidance(&mut self) -> StallGuidance {
        self.cost = 0;
        self.good = 0;
        self.warnings = self.warnings.saturating_add(1);
        let steps = self.steps;
        let example = self.describe_repeated_call();
        match self.warnings {
            1 => StallGuidance::Warn(format!(
                "Your last {steps} steps changed nothing and told you nothing new{example}. What do you still need to \
                 know? Go another way, or say what is in the way and end."
            )),
            2 => StallGuidance::Warn(format!(
                "Still nothing new in {steps} steps{example}. The run is stopped if this goes on: change the approach \
                 now, or end with what you have and say what is missing."
            )),
            _ => StallGuidance::Stop(format!(
                "it went in circles: {steps} steps in a row changed nothing and brought nothing new{example}, also \
                 after two warnings"
            )),
        }
    }

    /// Describes the most frequent call.
    fn describe_repeated_call(&self) -> String {
        let most = self.repeated.values().filter(|call| call.times > 1);
        match most.max_by(|one, other| (one.times, &one.tool).cmp(&(other.times, &other.tool))) {
            Some(RepeatedCall { tool, times, errors }) if errors == times => {
                format!(" ({tool} failed {times} times in the same way)")
            }
            Some(RepeatedCall { tool, times, .. }) => format!(" (the same {tool} {times} times)"),
            None => String::new(),
        }
    }
}

fn hash_file_state(path: &RelPath, hash: Option<ContentHash>) -> u64 {
    hash_pair(path.as_bytes(), hash)
}
