//! Code that only serves tests, in files that are not tests by any convention.

use std::collections::BTreeSet;

use journeyman_protocol::{HonestyKind, RelPath};
use journeyman_syntax::language::Language;

use super::function_bodies::function_bodies;
use super::parsed_source::{ParsedSource, Token, TokenKind};
use super::report::HonestyReport;
use crate::test_sources::TestSourceUse;

/// Words that make a function fail.
const FAILURE_WORDS: [&str; 12] = [
    "raise", "throw", "panic", "panic!", "fail", "abort", "exit", "Error", "Errorf", "Fatal", "Fatalf",
    "flunk",
];

/// Reports functions called by tests that only asserted before the change, and no longer assert.
pub(super) fn report_emptied_helpers(
    path: &RelPath,
    old: &ParsedSource<'_>,
    new: &ParsedSource<'_>,
    called: &BTreeSet<&str>,
    report: &mut HonestyReport,
) {
    let (before, after) = (function_bodies(old), function_bodies(new));
    for (name, _, body) in &before {
        // Methods of several classes can have one name.
        let is_only = before.iter().filter(|(other, _, _)| other == name).count() == 1;
        if !is_only || !called.contains(name) || !begins_with_assertion(body) {
            continue;
        }
        let Some((_, line, now)) = after.iter().find(|(other, _, _)| other == name) else { continue };
        if !now.iter().any(|token| is_assertion_token(token) || FAILURE_WORDS.contains(&token.text)) {
            let message = format!("`{name}`, which tests call, asserts nothing any more");
            report.add_blocking(HonestyKind::AssertionDeleted, path, *line, message);
        }
    }
}

fn begins_with_assertion(body: &[Token<'_>]) -> bool {
    body.iter().find(|token| token.kind == TokenKind::Word).is_some_and(is_assertion_token)
}

fn is_assertion_token(token: &Token<'_>) -> bool {
    token.kind == TokenKind::Word
        && (token.text.starts_with("assert") || matches!(token.text, "expect" | "refute"))
}

/// Reports functions called by tests that the product newly has in two variants: one for tests and
/// one for other builds.
pub(super) fn report_test_variants(
    path: &RelPath,
    old: &str,
    new: &str,
    called: &BTreeSet<&str>,
    report: &mut HonestyReport,
) {
    for mode in ["test", "debug_assertions"] {
        let (with, without) = (format!("#[cfg({mode})]"), format!("#[cfg(not({mode}))]"));
        let before = functions_below_attribute(old, &without);
        let for_tests = functions_below_attribute(new, &with);
        for (line, name) in functions_below_attribute(new, &without) {
            let is_new = before.iter().all(|(_, known)| *known != name);
            if is_new && called.contains(name) && for_tests.iter().any(|(_, other)| *other == name) {
                let message = format!("tests run another `{name}` than the product has");
                report.add_blocking(HonestyKind::SpecialCase, path, line, message);
            }
        }
    }
}

/// Returns the functions of Rust below an attribute, with their lines.
fn functions_below_attribute<'t>(text: &'t str, attribute: &str) -> Vec<(u32, &'t str)> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let marked = lines.iter().enumerate().filter(|(_, line)| **line == attribute);
    let function = marked.filter_map(|(at, _)| {
        let line = lines.get(at + 1..)?.iter().find(|line| !line.starts_with("#["))?;
        let name = line.split_once("fn ")?.1.split(['(', '<']).next()?;
        Some((u32::try_from(at + 1).unwrap_or(u32::MAX), name.trim()))
    });
    function.collect()
}

/// Macros of frameworks for C and C++ that define a test.
const TEST_MACROS: [&str; 9] = [
    "TEST",
    "TEST_F",
    "TEST_P",
    "TEST_CASE",
    "START_TEST",
    "BOOST_AUTO_TEST_CASE",
    "MU_TEST",
    "Test",
    "RUN_TEST",
];

/// Returns true for a source that a build compiles into a test program, and that is a test itself:
/// it has the tests or the function that runs them.
pub(super) fn is_built_test(source: &ParsedSource<'_>, part: TestSourceUse) -> bool {
    let words = || source.tokens.iter().filter(|token| token.kind == TokenKind::Word);
    let judges = || {
        words().any(|word| {
            let lower = word.text.to_ascii_lowercase();
            let begins = ["assert", "check", "expect", "fail", "test", "require", "verify"];
            begins.iter().any(|it| lower.starts_with(it)) || matches!(lower.as_str(), "errors" | "passed")
        })
    };
    let main = find_main_function(source);
    let defines = words().any(|word| TEST_MACROS.contains(&word.text));
    let tests = || {
        words().any(|word| ["fail", "test"].iter().any(|it| word.text.to_ascii_lowercase().starts_with(it)))
    };
    defines
        || main.is_some_and(|(_, body)| match part {
            TestSourceUse::TestsOnly => judges() || has_failure_result(&body),
            TestSourceUse::Shared => is_test_program(source) || tests(),
        })
}

/// Reports a test program that exited with a failure if a comparison failed, and can't any more.
pub(super) fn report_lost_failure_exits(
    path: &RelPath,
    old: &ParsedSource<'_>,
    new: &ParsedSource<'_>,
    report: &mut HonestyReport,
) {
    let (Some((_, before)), Some((line, after))) = (find_main_function(old), find_main_function(new)) else {
        return;
    };
    let calls_failing = new.tokens.windows(3).any(|three| {
        let [name, open, argument] = three else { return false };
        let lower = name.text.to_ascii_lowercase();
        let exits =
            matches!(lower.as_str(), "exit" | "_exit") && !matches!(argument.text, "0" | "EXIT_SUCCESS");
        let asserts =
            ["assert", "ck_assert", "cu_assert", "test_assert", "expect", "require", "abort", "raise"];
        open.text == "(" && (exits || asserts.iter().any(|it| lower.starts_with(it)))
    });
    if has_failure_result(&before) && !has_failure_result(&after) && !calls_failing {
        let message = "`main` no longer returns what its comparisons found".to_owned();
        report.add_blocking(HonestyKind::FailureSwallowed, path, line, message);
    }
}

/// Returns the functions of a source in C or C++ that make its program fail, or count a failure.
pub(super) fn failing_functions<'t>(source: &ParsedSource<'t>) -> BTreeSet<&'t str> {
    if !matches!(source.language, Some(Language::C | Language::Cpp)) {
        return BTreeSet::new();
    }
    let fails = |body: &[Token<'_>]| {
        body.iter().filter(|token| token.kind == TokenKind::Word).any(|token| {
            let lower = token.text.to_ascii_lowercase();
            ["fail", "assert", "abort", "error"].iter().any(|it| lower.starts_with(it)) || lower == "exit"
        })
    };
    let named = function_bodies(source).into_iter().filter(|(name, _, body)| *name != "main" && fails(body));
    named.map(|(name, _, _)| name).filter(|name| !name.to_ascii_lowercase().starts_with("test")).collect()
}

/// Returns the line and the body of the function `main`.
fn find_main_function<'t>(source: &ParsedSource<'t>) -> Option<(u32, Vec<Token<'t>>)> {
    let main = function_bodies(source).into_iter().find(|(name, _, _)| *name == "main");
    main.map(|(_, line, body)| (line, body))
}

/// Returns true if a body returns something other than success.
fn has_failure_result(body: &[Token<'_>]) -> bool {
    body.windows(3).any(|three| {
        let [word, value, end] = three else { return false };
        word.text == "return"
            && !(matches!(value.text, "0" | "EXIT_SUCCESS" | ";") && matches!(end.text, ";" | "}"))
    })
}

/// Returns true for a program in C or C++ whose `main` does little but assert.
pub(super) fn is_test_program(source: &ParsedSource<'_>) -> bool {
    if !matches!(source.language, Some(Language::C | Language::Cpp))
        || !(source.text.contains("<assert.h>") || source.text.contains("<cassert>"))
    {
        return false;
    }
    function_bodies(source).into_iter().filter(|(name, _, _)| *name == "main").any(|(_, _, body)| {
        let count = |of: &dyn Fn(&Token<'_>) -> bool| body.iter().filter(|token| of(token)).count();
        let statements = count(&|token| token.text == ";");
        let assertions = count(&|token| token.text == "assert");
        assertions > 0 && assertions * 2 >= statements
    })
}
