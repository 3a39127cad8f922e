//! Makefiles, read as text: nothing is executed to find their targets.

use journeyman_protocol::CheckKind;

use super::project::ProjectDirectory;
use crate::Check;
use crate::unfailing::MAKEFILE_NAMES;

/// The name in evidence.
const NAME: &str = "make";

/// `make check`, which GNU reserves for a project's self-tests, and `make test`; only one of them
/// where it runs the other.
pub(super) fn find(place: &ProjectDirectory<'_>) -> Vec<Check> {
    let Some(makefile) = MAKEFILE_NAMES.iter().find_map(|name| place.read(name)) else { return Vec::new() };
    let (check, test) = (prerequisites(&makefile, "check"), prerequisites(&makefile, "test"));
    let make = |target: &str, kind| {
        place.check(kind, NAME, format!("make {target}"), format!("the Makefile has a target `{target}`"))
    };
    let runs = |prerequisites: &[String], target: &str| prerequisites.iter().any(|name| name == target);
    let checks = match (check, test) {
        (Some(check), Some(_)) if runs(&check, "test") => vec![make("check", CheckKind::Test)],
        (Some(_), Some(test)) if runs(&test, "check") => vec![make("test", CheckKind::Test)],
        (Some(_), Some(_)) => vec![make("check", CheckKind::Lint), make("test", CheckKind::Test)],
        (Some(_), None) => vec![make("check", CheckKind::Test)],
        (None, Some(_)) => vec![make("test", CheckKind::Test)],
        (None, None) => Vec::new(),
    };
    if place.has_program("make") {
        return checks;
    }
    checks.into_iter().map(|check| check.blocked("make is not installed")).collect()
}

/// Returns the prerequisites of `target`, if the file has a rule for the target. Variables,
/// conditionals and included files are not followed.
fn prerequisites(makefile: &str, target: &str) -> Option<Vec<String>> {
    let mut found: Option<Vec<String>> = None;
    for line in makefile.lines().filter(|line| !line.starts_with(['\t', '#', ' '])) {
        let Some((targets, rest)) = line.split_once(':') else { continue };
        // `a := b`, `a ::= b` set variables; `a: b = c` sets one for a target.
        if rest.trim_start_matches(':').starts_with('=') || targets.contains('=') {
            continue;
        }
        if targets.split_whitespace().any(|name| name == target) {
            let rest = rest.trim_start_matches(':');
            let rest = rest.split(['#', ';']).next().unwrap_or_default();
            let names = rest.split_whitespace().map(str::to_owned);
            found.get_or_insert_default().extend(names);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_told_from_what_looks_like_them() {
        let makefile =
            "test := 1\ncheck: lint test # all\n.PHONY: test\nall test2:\n\ttest: no\nfoo=test:1\n";
        let cases = [
            ("check", Some(vec!["lint", "test"])),
            ("test", None),
            ("all", Some(vec![])),
            ("test2", Some(vec![])),
            ("foo", None),
        ];
        for (target, expected) in cases {
            let found = prerequisites(makefile, target);
            let expected = expected.map(|names| names.into_iter().map(str::to_owned).collect::<Vec<_>>());
            assert_eq!(found, expected, "{target}");
        }
        assert_eq!(prerequisites("test::\n\tx\n", "test"), Some(vec![]));
    }
}
