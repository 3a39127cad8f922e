//! Tests that stand in the place of removed ones.

use std::collections::BTreeSet;

use super::parsed_source::Token;
use super::test_units::TestUnit;

/// Returns the name of a new test whose name says that it tests what a removed one tested.
pub(super) fn find_rewritten_test<'a, 't: 'a>(
    removed: &TestUnit<'_>,
    mut new: impl Iterator<Item = &'a TestUnit<'t>>,
) -> Option<&'a str> {
    let found = new.find(|unit| unit.is_test && are_names_akin(&removed.name, &unit.name));
    found.map(|unit| unit.name.as_str())
}

/// Returns true if the names of two tests have most of their words in common.
fn are_names_akin(one: &str, other: &str) -> bool {
    let words = |name: &str| -> BTreeSet<String> {
        let mut spaced = String::new();
        for c in name.chars() {
            if c.is_uppercase() {
                spaced.push(' ');
            }
            spaced.extend(c.to_lowercase());
        }
        let parts = spaced.split(|c: char| !c.is_alphanumeric());
        parts.filter(|word| !matches!(*word, "" | "test" | "should")).map(str::to_owned).collect()
    };
    let (one, other) = (words(one), words(other));
    let common = one.intersection(&other).count();
    common >= 2 && common * 3 >= one.len() * 2
}

/// Returns true if two units differ at most in their names.
pub(super) fn is_renamed_copy(one: &TestUnit<'_>, other: &TestUnit<'_>) -> bool {
    let differs = |(one, other): (&Token<'_>, &Token<'_>)| one.text != other.text;
    one.tokens.len() > 8
        && one.tokens.len() == other.tokens.len()
        && one.tokens.iter().zip(&other.tokens).filter(|pair| differs(*pair)).count() <= 1
}
