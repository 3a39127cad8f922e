//! Marks by which tests are skipped, or expected to fail.

use super::assertion::quote_tokens;
use super::parsed_source::{Token, TokenKind};
use super::test_vocabulary::is_skip;

/// A mark by which a test is skipped, or by which other tests are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SkipMark {
    pub(super) line: u32,
    pub(super) quote: String,
    /// True if the mark applies only on an unusual platform, or where something is missing.
    pub(super) elsewhere: bool,
    /// True if the mark skips all tests without it.
    pub(super) focus: bool,
}

pub(super) fn read_decoration_mark(tokens: &[Token<'_>]) -> Option<SkipMark> {
    let words = || tokens.iter().filter(|token| token.kind == TokenKind::Word);
    let disabled = tokens.windows(3).any(|three| {
        matches!(three, [name, sign, value] if name.text == "enabled" && sign.text == "=" && value.text == "false")
    });
    let expects_failure = tokens.windows(2).any(|pair| {
        matches!(pair, [name, sign] if matches!(name.text, "expected" | "expectedExceptions") && sign.text == "=")
    });
    let disabled = disabled || expects_failure;
    let first_cfg = words().next().is_some_and(|first| first.text == "cfg");
    let configured = first_cfg && (!words().any(|word| word.text == "test") || narrows_tests(tokens));
    let skips = words().any(|word| is_skip(word.text));
    (skips || disabled || configured).then(|| new_skip_mark(tokens, false))
}

/// Returns true for a condition with `test` that holds in fewer builds than `test` alone. What is
/// negated, such as `not(miri)`, and what Linux has usually holds.
fn narrows_tests(tokens: &[Token<'_>]) -> bool {
    let words: Vec<&str> =
        tokens.iter().filter(|token| token.kind == TokenKind::Word).map(|token| token.text).collect();
    let is_linux = tokens.iter().any(|token| token.text.contains("linux"));
    let usual = |at: usize, word: &str| {
        matches!(word, "cfg" | "all" | "test" | "not" | "unix")
            || word.starts_with("target_") && is_linux
            || at > 0 && words.get(at - 1) == Some(&"not")
    };
    let excludes_tests = words.windows(2).any(|pair| pair == ["not", "test"]);
    excludes_tests
        || words.get(1) == Some(&"all") && words.iter().enumerate().any(|(at, word)| !usual(at, word))
}

/// Creates a mark from these tokens.
pub(super) fn new_skip_mark(tokens: &[Token<'_>], focus: bool) -> SkipMark {
    SkipMark {
        line: tokens.first().map_or(1, |first| first.line),
        quote: quote_tokens(tokens),
        elsewhere: is_condition_of_other_platform(tokens),
        focus,
    }
}

/// Returns true for a condition that is usually false: another platform, or a missing part.
pub(super) fn is_condition_of_other_platform(tokens: &[Token<'_>]) -> bool {
    let lower: Vec<String> = tokens.iter().map(|token| token.text.to_ascii_lowercase()).collect();
    let has = |parts: &[&str]| lower.iter().any(|text| parts.iter().any(|part| text.contains(part)));
    let negates = lower.iter().any(|text| matches!(text.as_str(), "!=" | "not" | "!" | "unless" | "!=="));
    // Rust's condition says where the test is, and not where it is left out.
    let is_cfg = tokens.iter().find(|token| token.kind == TokenKind::Word).is_some_and(|it| it.text == "cfg");
    let differs = negates != is_cfg || has(&["skipunless", "enabledon"]);
    let foreign = has(&["win32", "windows", "darwin", "macos", "cygwin", "freebsd"]);
    let missing = has(&["importorskip", "which", "installed", "hasattr", "lookpath", "find_spec"]);
    let native = has(&["linux", "posix", "unix"]);
    foreign && !native && !differs || native && !foreign && differs || missing
}

/// Returns true if the options of a test call skip it: `{ skip: true }`, `skip: true`, `:skip`.
pub(super) fn has_skip_option(head: &[Token<'_>]) -> bool {
    let named = head.windows(3).any(|three| {
        let [name, sign, value] = three else { return false };
        is_skip(name.text.trim_end_matches(':'))
            && matches!(sign.text, ":" | "=" | "=>")
            && value.text != "false"
    });
    named
        || head.windows(2).any(|pair| {
            matches!(pair, [name, value] if name.text.ends_with(':') && is_skip(name.text.trim_end_matches(':')) && value.text != "false")
        })
        || head.iter().any(|token| token.text.strip_prefix(':').is_some_and(is_skip))
}

/// Returns true for tags by which Catch2 hides a test or lets it fail.
pub(super) fn has_hiding_tag(text: &str) -> bool {
    ["[.]", "[!mayfail]", "[!shouldfail]", "[hide]", "[.", "[!hide]"].iter().any(|tag| text.contains(tag))
}
