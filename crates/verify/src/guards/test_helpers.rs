//! Code that only serves tests, in files that no convention takes for tests.

use std::collections::BTreeSet;

use journeyman_protocol::{HonestyKind, RelPath};
use journeyman_syntax::language::Language;

use super::report::Report;
use super::source::{Source, Token, TokenKind};
use super::special_cases::bodies;

/// Words that make a function fail.
const FAILING: [&str; 12] = [
    "raise", "throw", "panic", "panic!", "fail", "abort", "exit", "Error", "Errorf", "Fatal", "Fatalf",
    "flunk",
];

/// Reports functions that did nothing but assert, which tests call, and which assert nothing now.
pub(super) fn compare_helpers(
    path: &RelPath,
    old: &Source<'_>,
    new: &Source<'_>,
    called: &BTreeSet<&str>,
    report: &mut Report,
) {
    let after = bodies(new);
    for (name, _, body) in bodies(old) {
        if !called.contains(name) || !begins_with_assertion(&body) {
            continue;
        }
        let Some((_, line, now)) = after.iter().find(|(other, _, _)| *other == name) else { continue };
        if !now.iter().any(|token| is_asserting(token) || FAILING.contains(&token.text)) {
            let message = format!("`{name}`, which tests call, asserts nothing any more");
            report.block(HonestyKind::AssertionDeleted, path, *line, message);
        }
    }
}

fn begins_with_assertion(body: &[Token<'_>]) -> bool {
    body.iter().find(|token| token.kind == TokenKind::Word).is_some_and(is_asserting)
}

fn is_asserting(token: &Token<'_>) -> bool {
    token.kind == TokenKind::Word
        && (token.text.starts_with("assert") || matches!(token.text, "expect" | "refute"))
}

/// Reports functions that tests call, and that the product newly has in two variants: one for tests
/// and one for all else.
pub(super) fn compare_variants(
    path: &RelPath,
    old: &str,
    new: &str,
    called: &BTreeSet<&str>,
    report: &mut Report,
) {
    let before = variants(old, "#[cfg(not(test))]");
    let for_tests = variants(new, "#[cfg(test)]");
    for (line, name) in variants(new, "#[cfg(not(test))]") {
        let is_new = before.iter().all(|(_, known)| *known != name);
        if is_new && called.contains(name) && for_tests.iter().any(|(_, other)| *other == name) {
            let message = format!("tests run another `{name}` than the product has");
            report.block(HonestyKind::SpecialCase, path, line, message);
        }
    }
}

/// Returns the functions of Rust below an attribute, with their lines.
fn variants<'t>(text: &'t str, attribute: &str) -> Vec<(u32, &'t str)> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let marked = lines.iter().enumerate().filter(|(_, line)| **line == attribute);
    let function = marked.filter_map(|(at, _)| {
        let line = lines.get(at + 1..)?.iter().find(|line| !line.starts_with("#["))?;
        let name = line.split_once("fn ")?.1.split(['(', '<']).next()?;
        Some((u32::try_from(at + 1).unwrap_or(u32::MAX), name.trim()))
    });
    function.collect()
}

/// Returns true for a program in C or C++ whose `main` does little but assert.
pub(super) fn is_test_program(source: &Source<'_>) -> bool {
    if !matches!(source.language, Some(Language::C | Language::Cpp))
        || !(source.text.contains("<assert.h>") || source.text.contains("<cassert>"))
    {
        return false;
    }
    bodies(source).into_iter().filter(|(name, _, _)| *name == "main").any(|(_, _, body)| {
        let count = |of: &dyn Fn(&Token<'_>) -> bool| body.iter().filter(|token| of(token)).count();
        let statements = count(&|token| token.text == ";");
        let assertions = count(&|token| token.text == "assert");
        assertions > 0 && assertions * 2 >= statements
    })
}
