//! Comments and attributes that suppress messages of a compiler or linter.

use std::collections::BTreeMap;

use journeyman_protocol::{HonestyKind, HonestySeverity, RelPath};
use journeyman_syntax::language::Language;

use super::parsed_source::{ParsedSource, Token, TokenKind};
use super::report::HonestyReport;

/// Minimum number of letters of a reason.
const MIN_REASON_LETTERS: usize = 8;

/// A comment or attribute that suppresses messages of a tool.
struct SuppressionSign {
    /// Its text, in lower case.
    sign: &'static str,
    /// True if it always suppresses all messages.
    always_blanket: bool,
}

const fn new_narrow_sign(sign: &'static str) -> SuppressionSign {
    SuppressionSign { sign, always_blanket: false }
}

const fn new_blanket_sign(sign: &'static str) -> SuppressionSign {
    SuppressionSign { sign, always_blanket: true }
}

/// Signs within comments.
const COMMENT_SIGNS: [SuppressionSign; 42] = [
    new_blanket_sign("@ts-nocheck"),
    new_narrow_sign("@ts-ignore"),
    new_narrow_sign("@ts-expect-error"),
    new_narrow_sign("type: ignore"),
    new_narrow_sign("type:ignore"),
    new_narrow_sign("pyright: ignore"),
    new_blanket_sign("pyright: basic"),
    new_blanket_sign("mypy: ignore-errors"),
    new_blanket_sign("mypy: disable-error-code"),
    new_narrow_sign("pylint: disable"),
    new_blanket_sign("pylint: skip-file"),
    new_blanket_sign("flake8: noqa"),
    new_blanket_sign("ruff: noqa"),
    new_narrow_sign("noqa"),
    new_narrow_sign("nosec"),
    new_narrow_sign("pragma: no cover"),
    new_narrow_sign("eslint-disable"),
    new_narrow_sign("biome-ignore"),
    new_narrow_sign("oxlint-disable"),
    new_narrow_sign("jshint ignore"),
    new_narrow_sign("tslint:disable"),
    new_narrow_sign("istanbul ignore"),
    new_narrow_sign("c8 ignore"),
    new_narrow_sign("v8 ignore"),
    new_narrow_sign("prettier-ignore-lint"),
    new_narrow_sign("nolint"),
    new_narrow_sign("rubocop:disable"),
    new_narrow_sign("rubocop:todo"),
    new_narrow_sign("standard:disable"),
    new_narrow_sign("phpstan-ignore"),
    new_narrow_sign("psalm-suppress"),
    new_blanket_sign("phpcs:ignorefile"),
    new_narrow_sign("phpcs:disable"),
    new_narrow_sign("phpcs:ignore"),
    new_narrow_sign("codingstandardsignore"),
    new_narrow_sign("@codecoverageignore"),
    new_narrow_sign("checkstyle:off"),
    new_narrow_sign("cppcheck-suppress"),
    new_narrow_sign("shellcheck disable"),
    new_narrow_sign("swiftlint:disable"),
    new_narrow_sign("credo:disable"),
    new_narrow_sign("resharper disable"),
];
/// Names of attributes, annotations and directives.
const CODE_SIGNS: [&str; 9] = [
    "suppresswarnings",
    "suppress",
    "suppressmessage",
    "suppresslint",
    "excludefromcodecoverage",
    "suppressfbwarnings",
    "no_coverage",
    "unchecked_warnings",
    "suppressunusedwarning",
];
/// Names of Rust's lint groups that include many lints.
const BLANKET_LINT_NAMES: [&str; 6] = ["warnings", "all", "clippy", "unused", "dead_code", "pedantic"];

/// A place where messages of a tool are suppressed.
struct Suppression {
    line: u32,
    text: String,
    /// True if the suppression names what it suppresses, and gives a reason.
    explained: bool,
    named: bool,
}

/// Reports suppressions that the whole change adds; a moved suppression is not added. `files` has
/// the old and the new source of each file; `only_tests` is true if nothing but tests checks the
/// change.
pub(super) fn report_added_suppressions<'t>(
    files: &[(&RelPath, bool, Option<&ParsedSource<'t>>, Option<&ParsedSource<'t>>)],
    only_tests: bool,
    report: &mut HonestyReport,
) {
    let mut known: BTreeMap<String, usize> = BTreeMap::new();
    for (_, _, old, _) in files {
        for one in old.map(|source| find_suppressions(source)).unwrap_or_default() {
            *known.entry(one.text).or_insert(0) += 1;
        }
    }
    for (path, is_test, _, new) in files {
        for one in new.map(|source| find_suppressions(source)).unwrap_or_default() {
            if let Some(count) = known.get_mut(&one.text).filter(|count| **count > 0) {
                *count -= 1;
                continue;
            }
            let is_unread = only_tests && new.is_some_and(|source| is_unread_by_tests(source, &one.text));
            let severity = match () {
                () if one.explained || is_unread => HonestySeverity::Notice,
                () if *is_test && one.named => HonestySeverity::Notice,
                () => HonestySeverity::Blocking,
            };
            let tool = if is_unread { "a tool that checked nothing here" } else { "a check" };
            let message = format!("`{}` silences {tool}", one.text);
            report.add(severity, HonestyKind::LintSuppressed, path, one.line, message);
        }
    }
}

/// Returns true if no runner of the language's tests reads a suppression: it is for a type checker
/// or a linter.
fn is_unread_by_tests(source: &ParsedSource<'_>, text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let is_of_coverage =
        ["cover", "istanbul", "c8 ignore", "v8 ignore"].iter().any(|sign| lower.contains(sign));
    // Runners that compile TypeScript may check its types.
    let is_of_types = lower.contains("@ts-");
    let is_interpreted = matches!(
        source.language,
        Some(
            Language::Python
                | Language::Ruby
                | Language::Php
                | Language::JavaScript
                | Language::TypeScript
                | Language::Tsx
                | Language::Bash
        )
    );
    // Go's compiler reads no such comments.
    (is_interpreted || source.language == Some(Language::Go)) && !is_of_coverage && !is_of_types
}

fn find_suppressions(source: &ParsedSource<'_>) -> Vec<Suppression> {
    let head =
        source.text.get(..source.text.floor_char_boundary(500)).unwrap_or_default().to_ascii_lowercase();
    if head.contains("do not edit") || head.contains("@generated") {
        return Vec::new();
    }
    let comments = source.tokens.iter().filter(|token| token.kind == TokenKind::Comment);
    let mut found: Vec<Suppression> = comments.filter_map(find_in_comment).collect();
    found.extend(find_in_code(&source.tokens));
    found.extend(find_in_directives(source.text));
    found
}

fn find_in_comment(token: &Token<'_>) -> Option<Suppression> {
    let lower = token.text.to_ascii_lowercase();
    let (silencer, at) = COMMENT_SIGNS
        .iter()
        .filter_map(|one| Some((one, lower.find(one.sign)?)))
        .min_by_key(|(_, at)| *at)?;
    // A comment about a suppression suppresses nothing: only punctuation may precede a real one.
    let before = lower.get(..at)?;
    if before.chars().any(char::is_alphanumeric) && silencer.sign != "noqa" {
        return None;
    }
    let line = lower.get(..at)?.matches('\n').count();
    let rest = token.text.get(at + silencer.sign.len()..).unwrap_or_default();
    let rest = rest.lines().next().unwrap_or_default().trim_end_matches("*/").trim();
    let (code, reason) = split_reason(rest);
    let named = !silencer.always_blanket
        && code.chars().any(char::is_alphabetic)
        && !code.split([' ', ',']).any(|it| it == "all");
    let needs_no_code = silencer.sign.starts_with("@ts-");
    let explained = (named || needs_no_code && !silencer.always_blanket)
        && has_reason(if needs_no_code { rest } else { reason });
    let text = token.text.lines().nth(line).unwrap_or(token.text).trim();
    Some(Suppression {
        line: token.line + u32::try_from(line).unwrap_or(0),
        text: text.chars().take(120).collect(),
        explained,
        named: named || needs_no_code,
    })
}

/// Splits a suppression's codes from the words that explain it.
fn split_reason(rest: &str) -> (&str, &str) {
    let rest = rest.trim_start_matches(['-', 'n', 'e', 'x', 't', 'l', 'i', ' ']).trim_start_matches(':');
    for separator in [" -- ", " # ", " // ", ": ", " because ", " — ", " - "] {
        if let Some((code, reason)) = rest.split_once(separator) {
            return (code, reason);
        }
    }
    match rest.split_once("]") {
        Some((code, reason)) => (code, reason),
        None => (rest, ""),
    }
}

fn has_reason(text: &str) -> bool {
    text.chars().filter(|c| c.is_alphabetic()).count() >= MIN_REASON_LETTERS && text.trim().contains(' ')
}

/// Finds attributes and annotations: `#[allow(…)]`, `@SuppressWarnings(…)`.
fn find_in_code(tokens: &[Token<'_>]) -> Vec<Suppression> {
    let mut found = Vec::new();
    for (place, token) in tokens.iter().enumerate() {
        let lower = token.text.trim_start_matches('@').to_ascii_lowercase();
        let before =
            |steps: usize| place.checked_sub(steps).and_then(|at| tokens.get(at)).map_or("", |one| one.text);
        let rust = matches!(lower.as_str(), "allow" | "expect")
            && (before(1) == "[" || before(1) == ",")
            && tokens.get(place + 1).is_some_and(|next| next.text == "(");
        let annotated = CODE_SIGNS.contains(&lower.as_str())
            && matches!(before(1), "@" | "[" | "#[" | ":" | "," | "(" | "\\");
        if token.kind != TokenKind::Word || !(rust || annotated || token.text.starts_with("@Suppress")) {
            continue;
        }
        let rest = tokens.get(place..).unwrap_or_default();
        let end = rest.iter().position(|one| one.text == ")").map_or(1, |at| at + 1);
        let arguments = rest.get(..end.min(60)).unwrap_or_default();
        let text = super::assertion::quote_tokens(arguments);
        let words =
            || arguments.iter().skip(1).filter(|one| matches!(one.kind, TokenKind::Word | TokenKind::Text));
        let reason = arguments.windows(3).any(|three| {
            matches!(three, [name, _, text] if matches!(name.text, "reason" | "Justification") && has_reason(text.text))
        });
        let lints: Vec<&str> =
            words().map(|one| one.text.trim_matches('"')).take_while(|word| *word != "reason").collect();
        let named = lints.last().is_some_and(|last| !BLANKET_LINT_NAMES.contains(last));
        found.push(Suppression { line: token.line, text, explained: reason && named, named });
    }
    found
}

/// Finds directives of preprocessors: `#pragma warning disable`.
fn find_in_directives(text: &str) -> Vec<Suppression> {
    let is_directive = |line: &str| {
        let line = line.trim_start();
        line.starts_with("#pragma")
            && (line.contains("diagnostic ignored")
                || line.contains("warning disable")
                || line.contains("warning(disable")
                || line.contains("warning (disable"))
    };
    let lines = text.lines().enumerate().filter(|(_, line)| is_directive(line));
    lines
        .map(|(at, line)| Suppression {
            line: u32::try_from(at + 1).unwrap_or(u32::MAX),
            text: line.trim().chars().take(120).collect(),
            explained: false,
            named: true,
        })
        .collect()
}
