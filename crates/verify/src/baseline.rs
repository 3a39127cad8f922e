//! Failures compared with those of the tree before a task.

use std::collections::BTreeSet;

use journeyman_protocol::{Baseline, CheckOutcome, Diagnostic, Evidence, RelPath, Severity};

use crate::diagnostics::MAX_DIAGNOSTICS;
use crate::test_files::is_test_file;

/// Compares the failures of a check with those of the same check `before` the task. `is_affected`
/// returns true for a file whose tests or code the change can affect. `None` if it isn't known what
/// failed: the check could not run before, or a list of failures is cut off.
#[must_use]
pub fn compare_failures(
    now: &Evidence,
    before: &Evidence,
    is_affected: &dyn Fn(&RelPath) -> bool,
) -> Option<Baseline> {
    let (current, earlier) = match (failures(now)?, &before.outcome) {
        (_, CheckOutcome::NotRun { .. }) => return None,
        (current, CheckOutcome::Passed) => (current, BTreeSet::new()),
        (current, CheckOutcome::Failed { .. }) => (current, failures(before)?),
    };
    // A failure without a place may be anywhere, and a test that fails in the product's code may be
    // in any file.
    let is_elsewhere = |found: &Diagnostic, path: &RelPath| {
        let path = path.as_str().unwrap_or_default();
        found.test.as_ref().is_some_and(|test| !is_test_file(path) && !is_inline_test(test, path))
    };
    let affected: BTreeSet<String> = now
        .diagnostics
        .iter()
        .filter(|found| found.path.as_ref().is_none_or(|it| is_elsewhere(found, it) || is_affected(it)))
        .map(failure_identity)
        .collect();
    let is_unplaced = now.diagnostics.is_empty();
    let old: Vec<String> = current.intersection(&earlier).cloned().collect();
    Some(Baseline {
        affected: old.iter().filter(|name| is_unplaced || affected.contains(*name)).cloned().collect(),
        old,
        new: current.difference(&earlier).cloned().collect(),
        fixed: earlier.difference(&current).cloned().collect(),
    })
}

/// Returns the identities of a check's failures; `None` if not all of them are listed, also where
/// the runner counts more failed tests than its output was read for. The name of a test is one; any
/// other error is known by its file and text, because lines move. A failure without any diagnostic
/// is known by its output.
fn failures(evidence: &Evidence) -> Option<BTreeSet<String>> {
    let is_error = |found: &&Diagnostic| found.severity == Severity::Error;
    let is_listed = evidence.diagnostics.len() >= MAX_DIAGNOSTICS
        || evidence.diagnostics.iter().any(|found| is_error(&found));
    if is_listed && !lists_all_failures(evidence) {
        return None;
    }
    let mut names: BTreeSet<String> =
        evidence.diagnostics.iter().filter(is_error).map(failure_identity).collect();
    if names.is_empty() && evidence.outcome.has_failed() {
        names.insert(strip_numbers(&evidence.output));
    }
    Some(names)
}

/// Returns false if a check's failures are cut off, or fewer than its runner counts.
pub(crate) fn lists_all_failures(evidence: &Evidence) -> bool {
    let errors = evidence.diagnostics.iter().filter(|found| found.severity == Severity::Error).count();
    let told = u64::try_from(errors.saturating_add(evidence.flaky.len())).unwrap_or(u64::MAX);
    evidence.diagnostics.len() < MAX_DIAGNOSTICS && evidence.tests.is_none_or(|tests| tests.failed <= told)
}

/// Returns what stays the same of a finding while other code moves.
#[must_use]
pub fn failure_identity(found: &Diagnostic) -> String {
    if let Some(test) = &found.test {
        return test.clone();
    }
    let path = found.path.as_ref().map(|path| format!("{path}: ")).unwrap_or_default();
    let code = found.code.as_deref().map(|code| format!("{code}: ")).unwrap_or_default();
    format!("{path}{code}{}", strip_numbers(&found.message))
}

/// Removes what changes from run to run: durations, lines and counts are numbers, addresses have
/// letters too, and directories for temporary files any names.
fn strip_numbers(text: &str) -> String {
    const TEMPORARY: &str = "/tmp/";
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let is_word = kept.ends_with(|c: char| c.is_alphanumeric() || c == '_');
        let after = rest.get(first.len_utf8()..).unwrap_or_default();
        if let Some(address) = rest.strip_prefix("0x").filter(|_| !is_word) {
            rest = address.trim_start_matches(|c: char| c.is_ascii_hexdigit());
        } else if let Some(name) = rest.strip_prefix(TEMPORARY) {
            kept.push_str(TEMPORARY);
            rest = name.trim_start_matches(|c: char| c.is_alphanumeric() || ['_', '.', '-'].contains(&c));
        } else {
            kept.extend(Some(first).filter(|c| !c.is_ascii_digit()));
            rest = after;
        }
    }
    kept
}

/// Returns true if a test's name begins with the module that a Rust file under `src` is, and goes
/// on within a module: `net::tests::fetch` is in `src/net.rs` or `src/net/mod.rs`.
fn is_inline_test(test: &str, path: &str) -> bool {
    let Some(path) = path.strip_suffix(".rs") else { return false };
    let Some(inside) =
        path.rsplit_once("/src/").map(|(_, inside)| inside).or_else(|| path.strip_prefix("src/"))
    else {
        return false;
    };
    let mut modules: Vec<&str> = inside.split('/').collect();
    if modules.last().is_some_and(|last| matches!(*last, "mod" | "lib" | "main")) {
        modules.pop();
    }
    let names: Vec<&str> = test.split("::").collect();
    let rest = names.strip_prefix(modules.as_slice()).unwrap_or_default();
    // The outermost modules of another program's tests have names of any kind.
    rest.len() > 1
        && (!modules.is_empty() || rest.first().is_some_and(|first| matches!(*first, "test" | "tests")))
}

#[cfg(test)]
mod tests {
    use journeyman_protocol::{CheckKind, TestCounts};

    use super::*;

    fn failed(diagnostics: Vec<Diagnostic>) -> Evidence {
        let outcome = CheckOutcome::Failed { exit_code: Some(1), reason: "exit code 1".to_owned() };
        Evidence { diagnostics, ..Evidence::new(CheckKind::Test, "pytest", outcome) }
    }

    fn passed() -> Evidence {
        Evidence::new(CheckKind::Test, "pytest", CheckOutcome::Passed)
    }

    fn test(name: &str) -> Diagnostic {
        Diagnostic { test: Some(name.to_owned()), ..Diagnostic::new(Severity::Error, "1 != 2") }
    }

    fn error(line: u32, message: &str) -> Diagnostic {
        let path = RelPath::parse("a.c").ok();
        Diagnostic { path, line: Some(line), ..Diagnostic::new(Severity::Error, message) }
    }

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn failures_are_old_new_or_fixed() {
        let now = failed(vec![test("a"), test("b")]);
        let cases = [
            (passed(), Some((names(&[]), names(&["a", "b"]), names(&[])))),
            (failed(vec![test("b"), test("c")]), Some((names(&["b"]), names(&["a"]), names(&["c"])))),
            (failed(vec![test("a"), test("b")]), Some((names(&["a", "b"]), names(&[]), names(&[])))),
            (Evidence { outcome: CheckOutcome::NotRun { reason: "no pytest".into() }, ..passed() }, None),
        ];
        for (before, expected) in cases {
            let found =
                compare_failures(&now, &before, &|_| false).map(|found| (found.old, found.new, found.fixed));
            assert_eq!(found, expected, "{before:?}");
        }
    }

    #[test]
    fn a_test_that_fails_in_the_products_code_may_be_affected_wherever_the_change_is() {
        let failing = |path: &str| failed(vec![Diagnostic { path: RelPath::parse(path).ok(), ..test("a") }]);
        for (path, expected) in [("src/calc.py", names(&["a"])), ("tests/test_calc.py", names(&[]))] {
            let found = compare_failures(&failing(path), &failing(path), &|_| false).unwrap();
            assert_eq!((found.old, found.affected), (names(&["a"]), expected), "{path}");
        }
    }

    #[test]
    fn a_test_beside_the_code_that_it_tests_is_told_by_its_module() {
        for (test, path, inline) in [
            ("net::tests::fetch", "src/net.rs", true),
            ("net::tests::fetch", "crates/web/src/net/mod.rs", true),
            ("net::http::test::get", "src/net/http.rs", true),
            ("tests::parses", "src/lib.rs", true),
            // Tests of another program that fail in the product's code.
            ("fetch", "src/net.rs", false),
            ("fetches::twice", "src/lib.rs", false),
            ("other::tests::fetch", "src/net.rs", false),
            ("net::fetch", "src/net.rs", false),
            ("tests::parses", "shop/calc.py", false),
        ] {
            assert_eq!(is_inline_test(test, path), inline, "{test} {path}");
        }
    }

    #[test]
    fn an_error_is_the_same_where_lines_moved_and_another_one_where_its_text_differs() {
        let before = failed(vec![error(3, "'x' undeclared"), error(9, "expected an int")]);
        let now = failed(vec![error(5, "'x' undeclared"), error(11, "expected a char"), error(5, "'y'")]);
        let found = compare_failures(&now, &before, &|_| false).unwrap();
        assert_eq!(found.new, ["a.c: 'y'", "a.c: expected a char"]);
        assert_eq!(found.old, ["a.c: 'x' undeclared"]);
        assert_eq!(found.affected, Vec::<String>::new());
        let found = compare_failures(&now, &before, &|path| path.to_string() == "a.c").unwrap();
        assert_eq!(found.affected, ["a.c: 'x' undeclared"]);
    }

    #[test]
    fn addresses_and_temporary_directories_are_no_part_of_an_error() {
        let cases = [
            ("overflow on address 0x602dbf", "overflow on address 0x77aa01", true),
            ("<A object at 0x7fbe>: no", "<A object at 0x10>: no", true),
            ("no /tmp/tmp.aBc/x.c", "no /tmp/tmp.dEf/x.c", true),
            ("no /tmp/tmp.aBc/x.c", "no /tmp/tmp.aBc/y.c", false),
            ("é0xab: u32", "é0xcd: u32", false),
            ("expected 0xz", "expected 0xy", false),
        ];
        for (one, other, is_same) in cases {
            assert_eq!(strip_numbers(one) == strip_numbers(other), is_same, "{one} {other}");
        }
    }

    #[test]
    fn a_failure_without_diagnostics_is_known_by_its_output() {
        let printed = |output: &str| Evidence { output: output.to_owned(), ..failed(Vec::new()) };
        let same = compare_failures(&printed("bad in 12 ms"), &printed("bad in 7 ms"), &|_| false).unwrap();
        assert!(same.new.is_empty() && same.old.len() == 1, "{same:?}");
        let other =
            compare_failures(&printed("worse in 12 ms"), &printed("bad in 7 ms"), &|_| false).unwrap();
        assert_eq!((other.new.len(), other.old.len()), (1, 0));
    }

    #[test]
    fn a_list_with_fewer_failures_than_the_runner_counts_tells_nothing() {
        let counted = |failed_tests: u64, flaky: &[&str]| Evidence {
            tests: Some(TestCounts { passed: 3, failed: failed_tests, skipped: 0 }),
            flaky: names(flaky),
            ..failed(vec![test("a")])
        };
        let before = failed(vec![test("a")]);
        // The second failure may be new, and has no name.
        assert_eq!(compare_failures(&counted(2, &[]), &before, &|_| false), None);
        assert_eq!(compare_failures(&before, &counted(2, &[]), &|_| false), None);
        let complete = [counted(1, &[]), counted(2, &["b"])];
        for now in complete {
            let found = compare_failures(&now, &before, &|_| false).unwrap();
            assert_eq!((found.old, found.new), (names(&["a"]), names(&[])));
        }
    }

    #[test]
    fn a_list_that_is_cut_off_tells_nothing() {
        let many = failed((0..50).map(|n| test(&format!("t{n}"))).collect());
        assert_eq!(compare_failures(&many, &many, &|_| false), None);
        assert_eq!(compare_failures(&failed(vec![test("t1")]), &many, &|_| false), None);
    }
}
