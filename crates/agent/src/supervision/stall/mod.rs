//! The loop guard: notices that a run goes in circles, tells the model twice, and then ends the run.
//!
//! Progress is a change of state, not a new call. A step is worth one of these:
//!
//! * **news**: the tree is in a state that this task hasn't had; checks gave results that they hadn't given; a
//!   message or a notice came in; or a call said something that no call had said before.
//! * **fresh**: a call that wasn't made before went well, and says nothing new: a step of a long list, such as one
//!   silent command a file. It costs nothing, and makes up for nothing.
//! * **little**: something is different, and it carries no state: another call that fails as one did before, a result
//!   that differs only in its numbers, the same command changing files once more, a look at a background command that
//!   goes on in silence.
//! * **nothing**: calls that were made before with results that were had before, a tree that goes back to a state it
//!   was in, a reply without calls.
//!
//! What a result says is measured so that noise doesn't pass for news. Clocks (durations, times of day, dates) are
//! left out of it. Of a call that may change things or failed, only the words count that aren't in the call itself:
//! `echo 1` and `echo 2` say the same, as do the refusals of two paths that don't exist. Of a call that
//! only reads, the whole result counts, so that a hundred files are a hundred news however alike they are, and so is
//! a command's output that advances.
//!
//! News resets the count. Without, a step of nothing costs [`NOTHING`] and a step of little costs [`LITTLE`], and
//! where the sum reaches a limit the guard speaks: see [`FIRST`] and [`NEXT`].
//!
//! It doesn't see a run that writes something new into a file in every step and never comes closer to its goal: by
//! state that is progress. The limits on turns, time and budget are for those. Nothing of it is kept over a restart.

mod fact;

#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};

use journeyman_protocol::{ContentHash, RelPath};

use fact::{mix, words};

pub use fact::{CallFact, checks_key};

/// What a step of nothing costs.
pub const NOTHING: u32 = 3;
/// What a step of little costs: a third. Silent commands, searches without a hit and waiting are parts of honest
/// work, only not dozens in a row.
pub const LITTLE: u32 = 1;
/// Where the first warning comes: 5 steps of nothing, 15 of little. A model that reads a file three times, or tries a
/// failing command twice more, hasn't been told anything yet; Gemini CLI speaks at the 5th call of a kind too, and at
/// the 10th of two that alternate, which are 8 steps of nothing.
pub const FIRST: u32 = 5 * NOTHING;
/// Where the second warning comes after the first, and the end after the second: 3 steps of nothing, 9 of little. It
/// has been told by then, and every step costs the whole transcript.
pub const NEXT: u32 = 3 * NOTHING;
/// Steps with news after which a warning is forgotten, so that two slips of a long task don't add up, and a loop that
/// reads one new file a round isn't free of them. A new state of the tree or of the checks forgets it at once.
pub const FORGIVE: u32 = 10;

/// What happened in a step: one reply of the model and the calls it made.
#[derive(Debug, Clone, Default)]
pub struct StepFacts {
    /// The calls, in order, with their results.
    pub calls: Vec<CallFact>,
    /// The files that are different after the step, with their content's hash now; none where a file is gone. Where a
    /// file changed more than once, its last content.
    pub changes: Vec<(RelPath, Option<ContentHash>)>,
    /// What checks that ran in this step found, as [`checks_key`] tells it.
    pub checks: Option<u64>,
    /// Whether a person said something.
    pub user_message: bool,
    /// What else was told to the session in this step: another agent spoke, a background command ended. Not its own
    /// reminders.
    pub notices: Vec<String>,
}

/// What to do about a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Guidance {
    /// Go on.
    Fine,
    /// Tell the model, as a reminder.
    Warn(String),
    /// End the run; the reason is for people.
    Stop(String),
}

/// What a step was worth. Ordered: the best of its parts counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Worth {
    Nothing,
    Little,
    /// A call that wasn't made before went well: a list is being worked through, whatever its results say.
    Fresh,
    /// Something was learned.
    News,
    /// The tree or the checks came to a new state, or a person spoke.
    State,
}

/// Watches one task.
#[derive(Debug, Default)]
pub struct Guard {
    /// The sum of what steps without news cost since the last news or warning.
    cost: u32,
    /// Steps without news in a row.
    steps: u32,
    /// Steps with news since the last warning.
    good: u32,
    warnings: u8,
    /// Calls with their results, results, and the shapes of results.
    seen: HashSet<u64>,
    files: HashMap<RelPath, Option<ContentHash>>,
    /// The state of the tree: the sum of its changed files, whatever their order.
    tree: u64,
    trees: HashSet<u64>,
    /// Calls since the last news, by name and arguments.
    repeated: HashMap<u64, Repeated>,
}

#[derive(Debug)]
struct Repeated {
    tool: String,
    times: u32,
    errors: u32,
}

impl Guard {
    /// A guard for a task that begins.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Forgets what calls have said: the transcript was made shorter, and reading a file again is news to the model.
    pub fn forget_results(&mut self) {
        self.seen.clear();
    }

    /// Takes a step into account, and says what to do.
    pub fn observe(&mut self, step: &StepFacts) -> Guidance {
        if step.user_message {
            // A person may ask for the same once more; they and their words begin everything anew.
            *self = Self::default();
        }
        let mut worth = self.worth_of(step);
        if step.user_message {
            worth = Worth::State;
        }
        match worth {
            Worth::State => self.calm(true),
            Worth::News => self.calm(false),
            // It costs nothing, and makes up for nothing.
            Worth::Fresh => {}
            Worth::Little => self.without_news(step, LITTLE),
            Worth::Nothing => self.without_news(step, NOTHING),
        }
        let limit = if self.warnings == 0 { FIRST } else { NEXT };
        if self.cost < limit { Guidance::Fine } else { self.speak() }
    }

    fn calm(&mut self, state: bool) {
        self.cost = 0;
        self.steps = 0;
        self.repeated.clear();
        self.good = self.good.saturating_add(1);
        if state || self.good >= FORGIVE {
            self.warnings = 0;
        }
    }

    fn without_news(&mut self, step: &StepFacts, cost: u32) {
        self.cost = self.cost.saturating_add(cost);
        self.steps = self.steps.saturating_add(1);
        for call in &step.calls {
            let fresh = || Repeated { tool: call.tool.clone(), times: 0, errors: 0 };
            let entry = self.repeated.entry(call.call).or_insert_with(fresh);
            entry.times += 1;
            entry.errors += u32::from(call.is_error);
        }
    }

    /// The best that a step has to show. Everything is taken in, so that it is old the next time.
    fn worth_of(&mut self, step: &StepFacts) -> Worth {
        let mut best = Worth::Nothing;
        let new_tree = self.take_changes(step);
        let mut changed_anew = false;
        for call in &step.calls {
            let new_call = self.seen.insert(mix("call", call.call));
            best = best.max(self.take_result(call, new_call));
            changed_anew |= call.changed && new_call;
            if call.changed && new_tree {
                best = best.max(Worth::Little);
            }
        }
        if new_tree && changed_anew {
            best = Worth::State;
        }
        if step.checks.is_some_and(|checks| self.seen.insert(mix("checks", checks))) {
            best = Worth::State;
        }
        for notice in &step.notices {
            let said = words(notice).fold(0, mix);
            if self.seen.insert(mix("notice", said)) {
                best = best.max(Worth::News);
            }
        }
        best
    }

    /// Takes a result in, and says what it is worth beside the results before it.
    fn take_result(&mut self, call: &CallFact, new_call: bool) -> Worth {
        let new_pair = self.seen.insert(mix("pair", mix(call.call, call.whole)));
        let new_whole = self.seen.insert(mix("whole", mix(&call.tool, call.whole)));
        let new_said = self.seen.insert(mix("said", mix(&call.tool, call.said)));
        let new_shape = self.seen.insert(mix("shape", mix(&call.tool, call.shape)));
        let reads = call.read_only && !call.is_error;
        if reads && (new_whole || (new_pair && !new_call)) {
            // The same words from another moment: what it looks at came to be so.
            return Worth::News;
        }
        if !reads && new_said && new_shape {
            return Worth::News;
        }
        if new_call && !call.is_error {
            return Worth::Fresh;
        }
        if new_call || new_pair || new_said || call.waiting { Worth::Little } else { Worth::Nothing }
    }

    /// Takes the step's changes into the state of the tree, and says whether it was never in that state.
    fn take_changes(&mut self, step: &StepFacts) -> bool {
        // The state that a task begins in has no changes in it.
        self.trees.insert(self.tree);
        for (path, hash) in &step.changes {
            if let Some(old) = self.files.insert(path.clone(), *hash) {
                self.tree = self.tree.wrapping_sub(file_key(path, old));
            }
            self.tree = self.tree.wrapping_add(file_key(path, *hash));
        }
        self.trees.insert(self.tree)
    }

    fn speak(&mut self) -> Guidance {
        self.cost = 0;
        self.good = 0;
        self.warnings = self.warnings.saturating_add(1);
        let steps = self.steps;
        let example = self.example();
        match self.warnings {
            1 => Guidance::Warn(format!(
                "Your last {steps} steps changed nothing and told you nothing new{example}. What do you still need to \
                 know? Go another way, or say what is in the way and end."
            )),
            2 => Guidance::Warn(format!(
                "Still nothing new in {steps} steps{example}. The run is stopped if this goes on: change the approach \
                 now, or end with what you have and say what is missing."
            )),
            _ => Guidance::Stop(format!(
                "it went in circles: {steps} steps in a row changed nothing and brought nothing new{example}, also \
                 after two warnings"
            )),
        }
    }

    /// The call that was made most, in words.
    fn example(&self) -> String {
        let most = self.repeated.values().filter(|call| call.times > 1);
        match most.max_by(|one, other| (one.times, &one.tool).cmp(&(other.times, &other.tool))) {
            Some(Repeated { tool, times, errors }) if errors == times => {
                format!(" ({tool} failed {times} times in the same way)")
            }
            Some(Repeated { tool, times, .. }) => format!(" (the same {tool} {times} times)"),
            None => String::new(),
        }
    }
}

fn file_key(path: &RelPath, hash: Option<ContentHash>) -> u64 {
    mix(path.as_bytes(), hash)
}
