//! The words for checks that passed.

use journeyman_protocol::{CheckKind, Evidence};

/// Maximum number of checks that the summary names.
const MAX_NAMED_CHECKS: usize = 3;
/// Maximum number of characters of a command in the summary.
const MAX_NAMED_CHARS: usize = 80;

/// Names the checks that passed, tests first: they say more than types and lint.
pub(super) fn describe_passed(
    passed: &[&Evidence],
    not_run: usize,
    cannot_fail: &dyn Fn(&str) -> bool,
) -> String {
    let mut named = passed.to_vec();
    named.sort_by_key(|one| !matches!(one.kind, CheckKind::Test | CheckKind::Custom));
    let commands = named.iter().take(MAX_NAMED_CHECKS).map(|one| match cannot_fail(&one.command) {
        true => format!("`{}`, which can't fail", shorten(&one.command)),
        false => format!("`{}`", shorten(&one.command)),
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
pub(super) fn list_names(what: &str, names: &[&String]) -> String {
    if names.is_empty() {
        return String::new();
    }
    let shown: Vec<String> = names.iter().take(MAX_NAMED_CHECKS).map(|name| shorten(name)).collect();
    let more = match names.len().saturating_sub(MAX_NAMED_CHECKS) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("; {what}: {}{more}", shown.join(", "))
}

/// Returns the first line of a command, at most [`MAX_NAMED_CHARS`] of it.
pub(super) fn shorten(command: &str) -> String {
    let first = command.lines().next().unwrap_or_default();
    match first.char_indices().nth(MAX_NAMED_CHARS) {
        Some((end, _)) => format!("{}…", first.get(..end).unwrap_or_default()),
        None if first.len() < command.len() => format!("{first} …"),
        None => first.to_owned(),
    }
}
