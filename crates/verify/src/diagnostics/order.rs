//! The order of findings: the likely causes first.

use journeyman_protocol::{Diagnostic, RelPath, Severity};

/// Words of failures that are consequences of another failure.
const CONSEQUENCE_PHRASES: [&str; 9] = [
    "the test fails",
    "PoisonError",
    "subtest failed",
    "subtests failed",
    "hook failed",
    "could not be run because",
    "previous error",
    "depends on failed",
    "cannot find module providing",
];

/// Orders findings by likely cause and otherwise keeps their order: errors before warnings;
/// failures from before the task last; compile errors before failures of tests, which often follow
/// from them; failed assertions before failures without a message of their own; within each group,
/// those in `changed` files first.
pub fn sort_by_cause(found: &mut [Diagnostic], changed: &[RelPath]) {
    found.sort_by_key(|one| {
        let is_changed = one.path.as_ref().is_some_and(|path| changed.contains(path));
        (std::cmp::Reverse(one.severity), one.before_task, error_rank(one), !is_changed)
    });
}

/// Returns the rank of an error: the lower, the more likely it is a cause.
fn error_rank(one: &Diagnostic) -> u8 {
    if one.severity != Severity::Error {
        return 0;
    }
    let follows = CONSEQUENCE_PHRASES.iter().any(|words| one.message.contains(words));
    match &one.test {
        None if one.path.is_some() || one.code.is_some() => 0,
        None => 1,
        Some(_) if follows => 4,
        Some(_) if one.expected.is_some() || one.line.is_some() => 2,
        Some(_) => 3,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_come_before_what_follows_from_them() {
        let error = |message: &str| Diagnostic::new(Severity::Error, message);
        let at = |path: &str, one: Diagnostic| Diagnostic {
            path: RelPath::parse(path).ok(),
            line: Some(1),
            ..one
        };
        let of = |test: &str, one: Diagnostic| Diagnostic { test: Some(test.to_owned()), ..one };
        let mut found = vec![
            Diagnostic::new(Severity::Warning, "unused"),
            Diagnostic { before_task: true, ..at("a.rs", error("old")) },
            of("quiet", error("the test fails")),
            of("one", at("t.rs", error("1 != 2"))),
            at("b.rs", error("in another file")),
            at("a.rs", error("in the changed file")),
            error("no package"),
        ];
        sort_by_cause(&mut found, &[RelPath::parse("a.rs").unwrap()]);
        let messages: Vec<&str> = found.iter().map(|one| one.message.as_str()).collect();
        assert_eq!(
            messages,
            [
                "in the changed file",
                "in another file",
                "no package",
                "1 != 2",
                "the test fails",
                "old",
                "unused"
            ]
        );
    }
}
