//! Summaries of check results.

use journeyman_protocol::{CheckKind, CheckOutcome, Evidence, RunOutcome};
use journeyman_verify::OverallOutcome;

use crate::session::task_end::TaskEnd;

/// Maximum number of checks that the summary names.
const MAX_NAMED_CHECKS: usize = 3;
/// Maximum number of characters of a command in the summary.
const MAX_COMMAND_CHARS: usize = 80;

/// Returns true if every failure was there before the task.
pub(crate) fn fails_as_before(evidence: &[Evidence]) -> bool {
    let mut failing = evidence.iter().filter(|one| one.has_relevant_failure()).peekable();
    failing.peek().is_some() && failing.all(Evidence::has_only_old_failures)
}

/// Describes the end of a task whose checks ran.
pub(crate) fn task_end_for_verdict(
    verdict: OverallOutcome,
    evidence: &[Evidence],
    iterations: u32,
    cannot_fail: &dyn Fn(&str) -> bool,
) -> TaskEnd {
    if verdict == OverallOutcome::Failed && fails_as_before(evidence) {
        let names: Vec<&String> =
            evidence.iter().filter_map(|one| one.baseline.as_ref()).flat_map(|it| &it.affected).collect();
        let why = format!(
            "finished, but not verified: nothing new fails{}",
            list_names("failed before the task as well, and the change can affect it", &names)
        );
        return TaskEnd::new(RunOutcome::Unverified, why);
    }
    if verdict == OverallOutcome::Failed {
        let rounds = match iterations {
            0 => String::new(),
            1 => " after a round of feedback".to_owned(),
            n => format!(" after {n} rounds of feedback"),
        };
        return TaskEnd::new(RunOutcome::ChecksFail, format!("finished, but checks fail{rounds}"));
    }
    if verdict == OverallOutcome::Passed {
        let passed: Vec<&Evidence> = evidence.iter().filter(|one| one.is_proof()).collect();
        return TaskEnd::new(
            RunOutcome::Verified,
            describe_passed(&passed, evidence.len() - passed.len(), cannot_fail),
        );
    }
    if let Some(empty) = evidence.iter().find(|one| journeyman_verify::has_run_no_test(&one.outcome))
        && let CheckOutcome::NotRun { reason } = &empty.outcome
    {
        let why = format!("finished, but not verified: `{}`: {reason}", shorten_command(&empty.command));
        return TaskEnd::new(RunOutcome::Unverified, why);
    }
    let reason = evidence.iter().find_map(|one| match &one.outcome {
        CheckOutcome::NotRun { reason } => Some(reason),
        _ => None,
    });
    let why = match reason {
        Some(reason) => format!("finished; what would prove the change could not run ({reason})"),
        None => {
            let baselines = evidence.iter().filter_map(|one| one.baseline.as_ref());
            let old: Vec<&String> = baselines.flat_map(|it| &it.old).collect();
            let old = list_names("failed before the task as well", &old);
            format!("finished, but not verified: nothing new fails{old}")
        }
    };
    TaskEnd::new(RunOutcome::Unverified, why)
}

/// Names the checks that passed, tests first: they say more than types and lint.
fn describe_passed(passed: &[&Evidence], not_run: usize, cannot_fail: &dyn Fn(&str) -> bool) -> String {
    let mut named = passed.to_vec();
    named.sort_by_key(|one| !matches!(one.kind, CheckKind::Test | CheckKind::Custom));
    let commands = named.iter().take(MAX_NAMED_CHECKS).map(|one| {
        let place = one.directory.as_ref().map(|directory| format!(" in {directory}")).unwrap_or_default();
        let weak = if cannot_fail(&one.command) { ", which can't fail" } else { "" };
        format!("`{}`{place}{weak}", shorten_command(&one.command))
    });
    let mut text = format!("verified by {}", commands.collect::<Vec<_>>().join(", "));
    if let Some(more) = passed.len().checked_sub(MAX_NAMED_CHECKS).filter(|more| *more > 0) {
        text.push_str(&format!(" and {more} more"));
    }
    if not_run > 0 {
        text.push_str(&format!("; {not_run} not run"));
    }
    if !passed.iter().any(|one| matches!(one.kind, CheckKind::Test | CheckKind::Custom)) {
        text.push_str("; no test was found, so nothing ran the change");
    }
    if passed.iter().any(|one| one.affected_only) {
        text.push_str("; of the tests only those that the change affects, because all take too long");
    }
    let listed =
        |what: &str, names: &mut dyn Iterator<Item = &String>| list_names(what, &names.collect::<Vec<_>>());
    let baselines = || passed.iter().filter_map(|one| one.baseline.as_ref());
    text.push_str(&listed("failed before the task as well", &mut baselines().flat_map(|it| &it.old)));
    text.push_str(&listed("fixed", &mut baselines().flat_map(|it| &it.fixed)));
    text.push_str(&listed("flaky", &mut passed.iter().flat_map(|one| &one.flaky)));
    text
}

/// Returns a part of a summary that names some tests or failures; empty if there are none.
fn list_names(what: &str, names: &[&String]) -> String {
    if names.is_empty() {
        return String::new();
    }
    let shown: Vec<String> = names.iter().take(MAX_NAMED_CHECKS).map(|name| shorten_command(name)).collect();
    let more = match names.len().saturating_sub(MAX_NAMED_CHECKS) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("; {what}: {}{more}", shown.join(", "))
}

/// Returns the first line of a command, at most [`MAX_COMMAND_CHARS`] characters.
pub(super) fn shorten_command(command: &str) -> String {
    let first = command.lines().next().unwrap_or_default();
    match first.char_indices().nth(MAX_COMMAND_CHARS) {
        Some((end, _)) => format!("{}…", first.get(..end).unwrap_or_default()),
        None if first.len() < command.len() => format!("{first} …"),
        None => first.to_owned(),
    }
}
