//! Options by which a comparison leaves something out, or tolerates more.

use std::ops::Range;

use super::parsed_source::{Token, TokenKind, find_closing_bracket};
use super::test_vocabulary::normalize_name;

/// Beginnings of options that leave parts of a value out of a comparison, or tolerate differences;
/// in lower case without separators.
const COMPARISON_OPTIONS: [&str; 24] = [
    "ignorefield",
    "ignoremapentries",
    "ignoretypes",
    "ignoreunexported",
    "ignoresliceelements",
    "ignoreinterfaces",
    "ignoreproperties",
    "ignorepaths",
    "ignorekeys",
    "ignoreorder",
    "ignoremembers",
    "ignoring",
    "equateapprox",
    "equateempty",
    "filterpath",
    "filtervalues",
    "excluding",
    "excludepath",
    "excluderegex",
    "comparingonlyfields",
    "disablerules",
    "maxdiffpixel",
    "failurethreshold",
    "mismatchtolerance",
];
/// Beginnings of options that let a mock be called any number of times within limits.
const CALL_COUNT_OPTIONS: [&str; 10] = [
    "atleast",
    "atmost",
    "anynumber",
    "anytimes",
    "mintimes",
    "maxtimes",
    "zeroormore",
    "oneormore",
    "minimumtimes",
    "lenient",
];
/// Beginnings of names of lists that leave something out.
const EXCLUSION_NAMES: [&str; 6] = ["ignore", "ignoring", "disable", "skip", "suppress", "known_failures"];
/// Matchers of arguments that accept any value.
const WILDCARDS: [&str; 20] = [
    "any",
    "Any",
    "anyString",
    "anyInt",
    "anyLong",
    "anyDouble",
    "anyBoolean",
    "anyList",
    "anyMap",
    "anySet",
    "anything",
    "Anything",
    "ANY",
    "any_args",
    "any_parameters",
    "IsAny",
    "AnythingOfType",
    "isA",
    "notNull",
    "IgnoreArguments",
];

/// Returns true for an option that makes a comparison accept more.
fn is_comparison_option(name: &str) -> bool {
    let name = normalize_name(name);
    COMPARISON_OPTIONS.iter().any(|option| name.starts_with(option))
        || name.starts_with("assert") && ["ignoring", "canonicaliz"].iter().any(|part| name.contains(part))
}

fn is_call_count_option(name: &str) -> bool {
    let name = normalize_name(name);
    CALL_COUNT_OPTIONS.iter().any(|option| name.starts_with(option))
}

fn is_exclusion_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.contains("exclu") || EXCLUSION_NAMES.iter().any(|beginning| name.starts_with(beginning))
}

/// Returns the places of the names that `is_option` accepts, with their arguments or values.
fn option_spans(tokens: &[Token<'_>], is_option: fn(&str) -> bool) -> Vec<Range<usize>> {
    let mut spans: Vec<Range<usize>> = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        let is_covered = spans.last().is_some_and(|span| span.contains(&at));
        if is_covered || token.kind != TokenKind::Word || !is_option(token.text) {
            continue;
        }
        let sign = tokens.get(at + 1).map_or("", |next| next.text);
        let value = match sign {
            "(" => at + 1,
            "=" | ":" | "=>" | ":=" => at + 2,
            _ => at,
        };
        let opens = tokens.get(value).is_some_and(|first| matches!(first.text, "(" | "[" | "{"));
        let end = if opens { find_closing_bracket(tokens, value).unwrap_or(value) } else { value };
        spans.push(at..end + 1);
    }
    spans
}

fn texts_in<'t>(tokens: &[Token<'t>], spans: &[Range<usize>]) -> Vec<&'t str> {
    let inside = spans.iter().filter_map(|span| tokens.get(span.clone())).flat_map(|option| {
        let name = option.iter().take(1);
        name.chain(option.iter().skip(1).filter(|token| token.is_literal()))
    });
    inside.map(Token::normalized_text).collect()
}

/// Splits the tokens of an assertion into those that compare, and the names and values of its
/// lenient options.
pub(super) fn split_lenient_options<'t>(tokens: &[Token<'t>]) -> (Vec<Token<'t>>, Vec<&'t str>) {
    let spans = option_spans(tokens, |name| is_comparison_option(name) || is_call_count_option(name));
    let is_option = |at: &usize| spans.iter().any(|span| span.contains(at));
    let rest = tokens.iter().enumerate().filter(|(at, _)| !is_option(at)).map(|(_, token)| *token);
    (rest.collect(), texts_in(tokens, &spans))
}

/// Returns the number of names and values of options that make comparisons accept more.
pub(super) fn count_comparison_options(tokens: &[Token<'_>]) -> usize {
    texts_in(tokens, &option_spans(tokens, is_comparison_option)).len()
}

/// Returns the byte ranges of lists that leave something out: a shorter one is stricter.
pub(super) fn exclusion_ranges(tokens: &[Token<'_>]) -> Vec<Range<usize>> {
    let spans = option_spans(tokens, |name| is_exclusion_name(name) || is_comparison_option(name));
    let range = |span: &Range<usize>| {
        let last = tokens.get(span.end - 1)?;
        Some(tokens.get(span.start)?.start..last.start + last.text.len())
    };
    spans.iter().filter(|span| span.len() > 1).filter_map(range).collect()
}

/// Returns the number of arguments that accept any value.
pub(super) fn count_wildcards(tokens: &[Token<'_>]) -> usize {
    let is_wildcard = |pair: &&[Token<'_>]| matches!(pair, [name, next] if WILDCARDS.contains(&name.text) && matches!(next.text, "(" | "<" | ")" | "," | "." | "}"));
    tokens.windows(2).filter(is_wildcard).count()
}

/// Returns true if a test whose name says that something is denied now expects that it succeeds.
pub(super) fn allows_what_name_denies(name: &str, old: &[&str], new: &[&str]) -> bool {
    let name = normalize_name(name);
    let denies =
        ["cannot", "cant", "denied", "denies", "forbid", "notallowed", "reject", "refuse", "unauthor"];
    let has = |key: &[&str], words: &[&str], codes: &[&str]| {
        key.iter().any(|text| {
            let text = normalize_name(text);
            codes.contains(&text.as_str()) || words.iter().any(|word| text.contains(word))
        })
    };
    let denied = |key: &[&str]| has(key, &["forbidden", "unauthorized", "accessdenied"], &["401", "403"]);
    let allowed = |key: &[&str]| {
        has(key, &["nocontent", "successful", "assertok", "isok", "created"], &["ok", "200", "201", "204"])
    };
    denies.iter().any(|word| name.contains(word)) && denied(old) && !denied(new) && allowed(new)
}
