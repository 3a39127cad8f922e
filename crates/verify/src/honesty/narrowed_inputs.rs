//! Inputs of tests that become fewer: generators of one value, lists without entries, and loops and
//! threads that run once.

use std::collections::BTreeMap;

use super::parsed_source::{Token, TokenKind, find_closing_bracket, split_arguments};
use super::test_units::TestUnit;
use super::test_vocabulary::normalize_name;

/// Words of tests that try generated values.
const PROPERTY_WORDS: [&str; 16] = [
    "given",
    "forAll",
    "for_all",
    "forall",
    "property",
    "Property",
    "proptest",
    "prop",
    "fc",
    "st",
    "strategies",
    "checkAll",
    "check",
    "ForAll",
    "Arbitraries",
    "Gen",
];
/// Generators of the one value that they are given.
const FIXED_GENERATORS: [&str; 7] = ["just", "Just", "constant", "const", "pure", "Constant", "always"];
/// Generators that choose among the values that they are given.
const CHOOSING_GENERATORS: [&str; 8] =
    ["sampled_from", "constantFrom", "elements", "element", "of", "oneOf", "member_of", "select"];
/// Parts of the names of numbers that say how often, or how many at a time, something runs.
const SCALE_NAMES: [&str; 18] = [
    "thread",
    "worker",
    "concurren",
    "parallel",
    "goroutine",
    "iteration",
    "repeat",
    "repetition",
    "round",
    "maxexamples",
    "numruns",
    "withcases",
    "minsuccessful",
    "maxruns",
    "tries",
    "runs",
    "clients",
    "range",
];
/// Code that runs over nothing.
const EMPTY_LOOPS: [&[&str]; 16] = [
    &["range", "(", "0", ")"],
    &["[", ":", "0", "]"],
    &["[", "0", ":", "0", "]"],
    &["[", "..", "0", "]"],
    &["take", "(", "0", ")"],
    &["limit", "(", "0", ")"],
    &["first", "(", "0", ")"],
    &["Take", "(", "0", ")"],
    &["slice", "(", "0", ",", "0", ")"],
    &["in", "[", "]"],
    &["of", "[", "]"],
    &["in", "(", ")"],
    &["[", "]", ".", "each"],
    &["[", "]", ".", "forEach"],
    &["0", ".", "times"],
    &["0", "..", "0"],
];
/// Collections without entries, as a whole value.
const EMPTY_VALUES: [&[&str]; 12] = [
    &["return", "[", "]"],
    &["return", "{", "}"],
    &["return", "(", ")"],
    &["[", "0", "]"],
    &["empty", "(", ")"],
    &["emptyList", "(", ")"],
    &["emptyArray", "(", ")"],
    &["of", "(", ")"],
    &["listOf", "(", ")"],
    &["=", "[", "]"],
    &["Nil"],
    &["{", "[", "]", "}"],
];

/// Returns the line of a unit that now tries fewer inputs, and why.
pub(super) fn find_narrowed_input(before: &TestUnit<'_>, after: &TestUnit<'_>) -> Option<(u32, String)> {
    let (old, new) = (before.tokens.as_slice(), after.tokens.as_slice());
    let message = |text: &str, why: &str| format!("`{text}` {why}");
    if let Some(token) = find_fixed_generator(old, new) {
        return Some((token.line, message(token.text, "gives the test one value in the place of many")));
    }
    let sizes = scales(old);
    for (name, (value, line)) in scales(new) {
        if value <= 1 && sizes.get(&name).is_some_and(|(was, _)| *was > 1) {
            return Some((line, format!("`{name}` is {value} now, so that the test tries next to nothing")));
        }
    }
    for pattern in EMPTY_LOOPS {
        if count_sequences(new, pattern) > count_sequences(old, pattern) {
            return Some((after.line, message(&pattern.concat(), "runs over nothing")));
        }
    }
    let empty = |tokens: &[Token<'_>]| EMPTY_VALUES.iter().any(|value| count_sequences(tokens, value) > 0);
    let is_helper = !before.is_test && !before.name.is_empty();
    // The name of a provider in its annotation stays.
    let has_none = after.outside.iter().all(|(text, counts)| {
        *text == "0" || !counts && before.outside.iter().any(|(known, _)| known == text)
    });
    let is_shorter = before.outside.len() > after.outside.iter().filter(|(text, _)| *text != "0").count();
    if is_helper && has_none && is_shorter && empty(new) && !empty(old) {
        return Some((after.line, message(&after.name, "no longer has any of its values")));
    }
    None
}

/// Returns a new generator of one value in a test that lost another call.
fn find_fixed_generator<'u, 't>(old: &[Token<'t>], new: &'u [Token<'t>]) -> Option<&'u Token<'t>> {
    if !old.iter().any(|token| PROPERTY_WORDS.contains(&token.text)) {
        return None;
    }
    let fixed = |tokens: &[Token<'_>]| -> Vec<usize> {
        let places = tokens.windows(2).enumerate().filter(|(at, pair)| {
            let [name, open] = pair else { return false };
            let alone = || {
                find_closing_bracket(tokens, at + 1)
                    .and_then(|close| tokens.get(at + 2..close))
                    .is_some_and(has_one_value)
            };
            open.text == "("
                && (FIXED_GENERATORS.contains(&name.text)
                    || CHOOSING_GENERATORS.contains(&name.text) && alone())
        });
        places.map(|(at, _)| at).collect()
    };
    let calls = |tokens: &[Token<'_>], name: &str| {
        let is_call = |pair: &&[Token<'_>]| matches!(pair, [word, open] if word.text == name && matches!(open.text, "(" | "<" | "::"));
        tokens.windows(2).filter(is_call).count()
    };
    let lost = || {
        let mut names = old.iter().filter(|token| token.kind == TokenKind::Word);
        names.any(|token| calls(old, token.text) > calls(new, token.text))
    };
    let after = fixed(new);
    (after.len() > fixed(old).len() && lost()).then(|| after.first().and_then(|at| new.get(*at))).flatten()
}

/// Returns true for one value, or a list of one.
fn has_one_value(arguments: &[Token<'_>]) -> bool {
    let is_list = arguments.first().is_some_and(|first| matches!(first.text, "[" | "("));
    let inner = if is_list { arguments.get(1..arguments.len() - 1).unwrap_or_default() } else { arguments };
    split_arguments(inner).len() == 1 && inner.iter().any(Token::is_literal)
}

/// Returns the numbers whose names say how often something runs, with their lines.
fn scales<'t>(tokens: &[Token<'t>]) -> BTreeMap<&'t str, (u64, u32)> {
    let mut found: BTreeMap<&str, (u64, u32)> = BTreeMap::new();
    for three in tokens.windows(3) {
        let [name, sign, number] = three else { continue };
        let Ok(value) = number.text.replace('_', "").parse::<u64>() else { continue };
        let lower = normalize_name(name.text);
        if name.kind == TokenKind::Word
            && matches!(sign.text, "=" | ":" | "(" | "=>" | ":=")
            && SCALE_NAMES.iter().any(|part| lower.contains(part))
        {
            let known = found.entry(name.text).or_insert((value, name.line));
            known.0 = known.0.max(value);
        }
    }
    found
}

fn count_sequences(tokens: &[Token<'_>], pattern: &[&str]) -> usize {
    tokens
        .windows(pattern.len())
        .filter(|part| part.iter().zip(pattern).all(|(token, text)| token.text == *text))
        .count()
}
