//! The rounds of failed checks in a task, and how their failures changed.

use std::collections::HashSet;

use journeyman_protocol::{ContentHash, Diagnostic, Evidence, HonestyFinding, Severity, clip_to_bytes};
use serde::{Deserialize, Serialize};

/// Maximum number of failures that are remembered of a round.
const MAX_FAILURES: usize = 60;
/// Maximum bytes of a failure's name.
const MAX_FAILURE_NAME_BYTES: usize = 160;
/// After so many rounds with the same first failure, refining is over.
const MAX_SAME_CAUSE_ROUNDS: usize = 3;

/// A round of checks that failed and went back to the model.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckedRound {
    /// The number of the attempt, 1-based.
    pub attempt: u32,
    /// The names of the failures, by likely cause. They hold no line numbers and no values, so that
    /// they stay the same while the code around them changes.
    pub failures: Vec<String>,
    /// The number of failures, also those that are not named.
    pub count: usize,
    /// True if there are failures that are not named.
    #[serde(default)]
    pub partial: bool,
    /// Hash of what the failures say, with their values: equal only where nothing changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub words: Option<ContentHash>,
    /// The checkpoint of the tree that was checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<u64>,
    /// The number of edits in the task up to here.
    #[serde(default)]
    pub edits: usize,
}

impl CheckedRound {
    /// Names the failures of a round.
    #[must_use]
    pub fn new(attempt: u32, evidence: &[Evidence], findings: &[HonestyFinding]) -> Self {
        let mut names = Vec::new();
        for check in evidence.iter().filter(|check| check.outcome.has_failed()) {
            let errors =
                check.diagnostics.iter().filter(|one| one.severity == Severity::Error && !one.before_task);
            let before = names.len();
            names.extend(errors.map(failure_name));
            if names.len() == before && check.diagnostics.is_empty() {
                let last =
                    check.output.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
                let name = format!("{}: {}", check.command, strip_numbers(last.trim()));
                names.push(clip_to_bytes(&name, MAX_FAILURE_NAME_BYTES).to_owned());
            }
        }
        let blocking = findings.iter().filter(|finding| finding.is_blocking());
        names.extend(blocking.map(|finding| format!("{}:{}", finding.kind, finding.path)));
        let mut known = HashSet::new();
        names.retain(|name| known.insert(name.clone()));
        let count = names.len();
        let partial = count > MAX_FAILURES || evidence.iter().any(|check| check.has_unlisted_errors());
        names.truncate(MAX_FAILURES);
        let words = Some(hash_failures(evidence, findings));
        Self { attempt, failures: names, count, partial, words, checkpoint: None, edits: 0 }
    }

    /// Compares the failures with those of the round before.
    pub(crate) fn compare(&self, previous: &Self) -> FailureChanges<'_> {
        let had = |name: &String| previous.failures.contains(name);
        FailureChanges {
            new: self.failures.iter().filter(|name| !had(name)).map(String::as_str).collect(),
            same: self.failures.iter().filter(|name| had(name)).map(String::as_str).collect(),
            fixed: previous.failures.iter().filter(|name| !self.failures.contains(name)).cloned().collect(),
        }
    }
}

/// The failures of a round compared with those of the round before.
pub(crate) struct FailureChanges<'a> {
    pub(crate) new: Vec<&'a str>,
    pub(crate) same: Vec<&'a str>,
    pub(crate) fixed: Vec<String>,
}

/// Returns true if the first failure of `now`, which the others likely follow from, was the first
/// one of the rounds before as well.
pub(crate) fn has_same_cause(earlier: &[CheckedRound], now: &CheckedRound) -> bool {
    let Some(cause) = now.failures.first() else { return false };
    let last = earlier.iter().rev().take(MAX_SAME_CAUSE_ROUNDS - 1);
    let same = last.filter(|round| round.failures.first() == Some(cause)).count();
    same >= MAX_SAME_CAUSE_ROUNDS - 1
}

/// Returns the round with the fewest failures, if there are more now than then and more than in the
/// round before.
pub(crate) fn better_round<'a>(earlier: &'a [CheckedRound], now: &CheckedRound) -> Option<&'a CheckedRound> {
    // Of a round whose failures aren't all named there may have been any number.
    let grew = earlier.last().is_some_and(|last| !last.partial && last.count < now.count);
    let best = earlier.iter().rev().filter(|round| !round.partial).min_by_key(|round| round.count)?;
    (grew && best.count < now.count).then_some(best)
}

/// Hashes what the failures of a round say, without what changes from run to run.
fn hash_failures(evidence: &[Evidence], findings: &[HonestyFinding]) -> ContentHash {
    let mut words = String::new();
    for check in evidence.iter().filter(|check| check.outcome.has_failed()) {
        words.push_str(&check.command);
        for one in &check.diagnostics {
            words.push_str(&failure_name(one));
            words.push_str(&one.message);
        }
        if check.diagnostics.is_empty() {
            words.push_str(&strip_numbers(&check.output));
        }
    }
    for finding in findings.iter().filter(|finding| finding.is_blocking()) {
        words.push_str(&finding.message);
    }
    ContentHash::of(words.as_bytes())
}

/// Returns the name of a failure: the test, or the place and the message without numbers.
fn failure_name(one: &Diagnostic) -> String {
    let path = one.path.as_ref().map(ToString::to_string).unwrap_or_default();
    let name = match (&one.test, &one.code) {
        (Some(test), _) => test.clone(),
        (None, Some(code)) => format!("{path}: {code} {}", strip_numbers(&one.message)),
        (None, None) => format!("{path}: {}", strip_numbers(&one.message)),
    };
    let name = name.split_whitespace().collect::<Vec<_>>().join(" ");
    clip_to_bytes(name.trim_start_matches(": "), MAX_FAILURE_NAME_BYTES).to_owned()
}

/// Durations, addresses and counts change from run to run.
fn strip_numbers(text: &str) -> String {
    text.chars().filter(|c| !c.is_ascii_digit()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(attempt: u32, failures: &[&str]) -> CheckedRound {
        let failures: Vec<String> = failures.iter().map(|name| (*name).to_owned()).collect();
        CheckedRound { attempt, count: failures.len(), failures, ..CheckedRound::default() }
    }

    #[test]
    fn the_same_first_failure_three_times_running_is_noticed() {
        let one = |name: &str| round(1, &[name, "other"]);
        assert!(!has_same_cause(&[], &one("a")));
        assert!(!has_same_cause(&[one("a")], &one("a")));
        assert!(has_same_cause(&[one("a"), one("a")], &one("a")));
        assert!(!has_same_cause(&[one("a"), one("b")], &one("a")));
        assert!(!has_same_cause(&[one("a"), one("a")], &round(3, &[])));
    }

    #[test]
    fn growth_names_the_best_round() {
        let rounds = [round(1, &["a"]), round(2, &["a", "b"])];
        let best = |now: &CheckedRound| better_round(&rounds, now).map(|round| round.attempt);
        assert_eq!(best(&round(3, &["a", "b", "c"])), Some(1));
        assert_eq!(best(&round(3, &["a", "b"])), None);
        assert_eq!(best(&round(3, &["a"])), None);
        assert!(better_round(&[], &round(1, &["a"])).is_none());
    }
}
