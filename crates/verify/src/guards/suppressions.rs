//! Comments and attributes that suppress messages of a compiler or linter.

use std::collections::BTreeMap;

use journeyman_protocol::{HonestyKind, HonestySeverity, RelPath};

use super::report::Report;
use super::source::{Source, Token, TokenKind};

/// Minimum number of letters of a reason.
const MIN_REASON_LETTERS: usize = 8;

/// A comment or attribute that suppresses messages of a tool.
struct Silencer {
    /// Its text, in lower case.
    sign: &'static str,
    /// True if it always suppresses all messages.
    always_blanket: bool,
}

const fn narrow(sign: &'static str) -> Silencer {
    Silencer { sign, always_blanket: false }
}

const fn blanket(sign: &'static str) -> Silencer {
    Silencer { sign, always_blanket: true }
}

/// Signs within comments.
const IN_COMMENTS: [Silencer; 42] = [
    blanket("@ts-nocheck"),
    narrow("@ts-ignore"),
    narrow("@ts-expect-error"),
    narrow("type: ignore"),
    narrow("type:ignore"),
    narrow("pyright: ignore"),
    blanket("pyright: basic"),
    blanket("mypy: ignore-errors"),
    blanket("mypy: disable-error-code"),
    narrow("pylint: disable"),
    blanket("pylint: skip-file"),
    blanket("flake8: noqa"),
    blanket("ruff: noqa"),
    narrow("noqa"),
    narrow("nosec"),
    narrow("pragma: no cover"),
    narrow("eslint-disable"),
    narrow("biome-ignore"),
    narrow("oxlint-disable"),
    narrow("jshint ignore"),
    narrow("tslint:disable"),
    narrow("istanbul ignore"),
    narrow("c8 ignore"),
    narrow("v8 ignore"),
    narrow("prettier-ignore-lint"),
    narrow("nolint"),
    narrow("rubocop:disable"),
    narrow("rubocop:todo"),
    narrow("standard:disable"),
    narrow("phpstan-ignore"),
    narrow("psalm-suppress"),
    blanket("phpcs:ignorefile"),
    narrow("phpcs:disable"),
    narrow("phpcs:ignore"),
    narrow("codingstandardsignore"),
    narrow("@codecoverageignore"),
    narrow("checkstyle:off"),
    narrow("cppcheck-suppress"),
    narrow("shellcheck disable"),
    narrow("swiftlint:disable"),
    narrow("credo:disable"),
    narrow("resharper disable"),
];
/// Names of attributes, annotations and directives.
const IN_CODE: [&str; 9] = [
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
const ALL_LINTS: [&str; 6] = ["warnings", "all", "clippy", "unused", "dead_code", "pedantic"];

/// A place where messages of a tool are suppressed.
struct Suppression {
    line: u32,
    text: String,
    /// True if the suppression names what it suppresses, and gives a reason.
    explained: bool,
    named: bool,
}

/// Reports suppressions that the whole change adds; a moved suppression is not added. `files` has
/// the old and the new source of each file.
pub(super) fn compare_suppressions<'t>(
    files: &[(&RelPath, bool, Option<&Source<'t>>, Option<&Source<'t>>)],
    report: &mut Report,
) {
    let mut known: BTreeMap<String, usize> = BTreeMap::new();
    for (_, _, old, _) in files {
        for one in old.map(|source| find(source)).unwrap_or_default() {
            *known.entry(one.text).or_insert(0) += 1;
        }
    }
    for (path, is_test, _, new) in files {
        for one in new.map(|source| find(source)).unwrap_or_default() {
            if let Some(count) = known.get_mut(&one.text).filter(|count| **count > 0) {
                *count -= 1;
                continue;
            }
            let severity = match () {
                () if one.explained => HonestySeverity::Notice,
                () if *is_test && one.named => HonestySeverity::Notice,
                () => HonestySeverity::Blocking,
            };
            let message = format!("`{}` silences a check", one.text);
            report.add(severity, HonestyKind::LintSuppressed, path, one.line, message);
        }
    }
}

fn find(source: &Source<'_>) -> Vec<Suppression> {
    let head =
        source.text.get(..source.text.floor_char_boundary(500)).unwrap_or_default().to_ascii_lowercase();
    if head.contains("do not edit") || head.contains("@generated") {
        return Vec::new();
    }
    let comments = source.tokens.iter().filter(|token| token.kind == TokenKind::Comment);
    let mut found: Vec<Suppression> = comments.filter_map(in_comment).collect();
    found.extend(in_code(&source.tokens));
    found.extend(in_directives(source.text));
    found
}

fn in_comment(token: &Token<'_>) -> Option<Suppression> {
    let lower = token.text.to_ascii_lowercase();
    let (silencer, at) =
        IN_COMMENTS.iter().filter_map(|one| Some((one, lower.find(one.sign)?))).min_by_key(|(_, at)| *at)?;
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
fn in_code(tokens: &[Token<'_>]) -> Vec<Suppression> {
    let mut found = Vec::new();
    for (place, token) in tokens.iter().enumerate() {
        let lower = token.text.trim_start_matches('@').to_ascii_lowercase();
        let before =
            |steps: usize| place.checked_sub(steps).and_then(|at| tokens.get(at)).map_or("", |one| one.text);
        let rust = matches!(lower.as_str(), "allow" | "expect")
            && (before(1) == "[" || before(1) == ",")
            && tokens.get(place + 1).is_some_and(|next| next.text == "(");
        let annotated = IN_CODE.contains(&lower.as_str())
            && matches!(before(1), "@" | "[" | "#[" | ":" | "," | "(" | "\\");
        if token.kind != TokenKind::Word || !(rust || annotated || token.text.starts_with("@Suppress")) {
            continue;
        }
        let rest = tokens.get(place..).unwrap_or_default();
        let end = rest.iter().position(|one| one.text == ")").map_or(1, |at| at + 1);
        let arguments = rest.get(..end.min(60)).unwrap_or_default();
        let text = super::assertion::quote(arguments);
        let words =
            || arguments.iter().skip(1).filter(|one| matches!(one.kind, TokenKind::Word | TokenKind::Text));
        let reason = arguments.windows(3).any(|three| {
            matches!(three, [name, _, text] if matches!(name.text, "reason" | "Justification") && has_reason(text.text))
        });
        let lints: Vec<&str> =
            words().map(|one| one.text.trim_matches('"')).take_while(|word| *word != "reason").collect();
        let named = lints.last().is_some_and(|last| !ALL_LINTS.contains(last));
        found.push(Suppression { line: token.line, text, explained: reason && named, named });
    }
    found
}

/// Finds directives of preprocessors: `#pragma warning disable`.
fn in_directives(text: &str) -> Vec<Suppression> {
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
