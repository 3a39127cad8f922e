//! Tables of a complete set of inputs that replace a stub: such a table contains what the tests
//! expect because it contains everything.

use super::function_bodies::{function_bodies, is_fixed_value};
use super::parsed_source::{ParsedSource, Token};

/// Minimum number of entries of a set.
const MIN_ENTRIES: usize = 3;
/// Words of a body that only says that it is not implemented.
const STUB_WORDS: [&str; 12] = [
    "NotImplementedError",
    "NotImplementedException",
    "UnsupportedOperationException",
    "todo!",
    "todo",
    "unimplemented!",
    "unimplemented",
    "pass",
    "panic",
    "raise",
    "throw",
    "NotImplemented",
];

/// Returns true if a change implemented a stub.
pub(super) fn has_replaced_stub(old: &ParsedSource<'_>, new: &ParsedSource<'_>) -> bool {
    let is_stub = |body: &[Token<'_>]| {
        is_fixed_value(body) || body.len() < 16 && body.iter().any(|token| STUB_WORDS.contains(&token.text))
    };
    let after = function_bodies(new);
    function_bodies(old).into_iter().filter(|(_, _, body)| is_stub(body)).any(|(name, _, body)| {
        let now = after.iter().find(|(other, _, _)| *other == name);
        now.is_some_and(|(_, _, now)| !now.iter().map(|it| it.text).eq(body.iter().map(|it| it.text)))
    })
}

/// Returns true for entries that are a complete set: numbers without a gap from 0 or 1 on, or names
/// and letters that stand for numbers.
pub(super) fn is_complete_set(entries: &[(&str, &str)]) -> bool {
    let mut numbers: Vec<u32> = entries.iter().filter_map(|(key, _)| key.parse().ok()).collect();
    numbers.sort_unstable();
    numbers.dedup();
    let is_number = |text: &&str| text.trim_start_matches('-').starts_with(|c: char| c.is_ascii_digit());
    let without_gap = || {
        let least = numbers.first().copied().unwrap_or_default();
        least <= 1 && numbers.iter().zip(least..).all(|(number, place)| *number == place)
    };
    let names = entries
        .iter()
        .all(|(key, value)| !key.is_empty() && key.chars().all(char::is_alphabetic) && is_number(value));
    entries.len() >= MIN_ENTRIES && (numbers.len() == entries.len() && without_gap() || names)
}

/// Returns true for codes of countries, currencies or classes that stand for numbers, such as flat
/// rates, which replace no computation.
pub(super) fn maps_codes_to_numbers(inputs: &[&str], outputs: &[&str]) -> bool {
    let is_code = |text: &&str| (2..=4).contains(&text.len()) && text.chars().all(|c| c.is_ascii_uppercase());
    let is_number = |text: &&str| text.starts_with(|c: char| c.is_ascii_digit());
    inputs.iter().all(is_code) && outputs.iter().all(is_number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_sets_are_told_from_inputs_of_tests() {
        for entries in [
            vec![("0", "a"), ("1", "b"), ("2", "c")],
            vec![("3", "a"), ("1", "b"), ("2", "c")],
            vec![("A", "1"), ("B", "3"), ("C", "3")],
        ] {
            assert!(is_complete_set(&entries), "{entries:?}");
        }
        for entries in [
            vec![("0", "a"), ("1", "b")],
            vec![("4", "a"), ("5", "b"), ("6", "c")],
            vec![("0", "a"), ("2", "b"), ("3", "c")],
            vec![("abc", "cba"), ("ab", "ba"), ("a", "a")],
        ] {
            assert!(!is_complete_set(&entries), "{entries:?}");
        }
        assert!(maps_codes_to_numbers(&["DE"], &["490"]));
        assert!(
            !maps_codes_to_numbers(&["ab"], &["2"])
                && !maps_codes_to_numbers(&["42"], &["7"])
                && !maps_codes_to_numbers(&["AB"], &["BA"])
        );
    }
}
