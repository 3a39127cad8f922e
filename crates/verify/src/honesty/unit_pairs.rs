//! Pairs tests before and after a change: by name, or by similarity for a renamed test.

use std::collections::BTreeMap;

use super::parsed_source::TokenKind;
use super::test_units::TestUnit;

/// Maximum number of unmatched tests that are compared with each other.
const MAX_UNMATCHED: usize = 200;
/// Share of tokens that a renamed test has in common with its old text.
const MIN_SIMILARITY: f64 = 0.6;

/// The position of a unit: the indices of its file and of the unit in that file.
pub(super) type UnitPosition = (usize, usize);

/// The units of all files on one side of a change.
pub(super) struct ChangeSide<'a, 't> {
    pub(super) files: Vec<&'a [TestUnit<'t>]>,
}

impl<'a, 't> ChangeSide<'a, 't> {
    pub(super) fn get(&self, place: UnitPosition) -> Option<&'a TestUnit<'t>> {
        self.files.get(place.0)?.get(place.1)
    }

    pub(super) fn units_with_positions(&self) -> impl Iterator<Item = (UnitPosition, &'a TestUnit<'t>)> + '_ {
        self.files
            .iter()
            .enumerate()
            .flat_map(|(file, units)| units.iter().enumerate().map(move |(nth, unit)| ((file, nth), unit)))
    }
}

/// The pairs of units, by the position of the old one, and the reverse.
pub(super) struct UnitPairs {
    pub(super) new_of: BTreeMap<UnitPosition, UnitPosition>,
    pub(super) old_of: BTreeMap<UnitPosition, UnitPosition>,
}

impl UnitPairs {
    fn add(&mut self, old: UnitPosition, new: UnitPosition) {
        self.new_of.insert(old, new);
        self.old_of.insert(new, old);
    }

    /// Pairs the units of both sides.
    pub(super) fn match_units(old: &ChangeSide<'_, '_>, new: &ChangeSide<'_, '_>) -> Self {
        let mut pairs = Self { new_of: BTreeMap::new(), old_of: BTreeMap::new() };
        pairs.match_names(old, new, true);
        pairs.match_names(old, new, false);
        pairs.match_similar(old, new);
        pairs
    }

    /// Pairs units of the same name, within their file or in all files.
    fn match_names(&mut self, old: &ChangeSide<'_, '_>, new: &ChangeSide<'_, '_>, same_file: bool) {
        let mut by_name: BTreeMap<(Option<usize>, &str), Vec<UnitPosition>> = BTreeMap::new();
        for (place, unit) in new.units_with_positions().filter(|(place, _)| !self.old_of.contains_key(place))
        {
            by_name.entry((same_file.then_some(place.0), &unit.name)).or_default().push(place);
        }
        for places in by_name.values_mut() {
            places.reverse();
        }
        for (place, unit) in old.units_with_positions() {
            if self.new_of.contains_key(&place) || (!same_file && unit.name.is_empty()) {
                continue;
            }
            let named = by_name.get_mut(&(same_file.then_some(place.0), unit.name.as_str()));
            if let Some(found) = named.and_then(Vec::pop) {
                self.add(place, found);
            }
        }
    }

    /// Pairs the remaining units with the most similar ones.
    fn match_similar(&mut self, old: &ChangeSide<'_, '_>, new: &ChangeSide<'_, '_>) {
        let left = |side: &ChangeSide<'_, '_>,
                    known: &BTreeMap<UnitPosition, UnitPosition>|
         -> Vec<(UnitPosition, BTreeMap<String, usize>)> {
            let unmatched = side
                .units_with_positions()
                .filter(|(place, unit)| !known.contains_key(place) && !unit.name.is_empty());
            unmatched.take(MAX_UNMATCHED).map(|(place, unit)| (place, count_words(unit))).collect()
        };
        let gone = left(old, &self.new_of);
        let came = left(new, &self.old_of);
        let mut scored: Vec<(f64, UnitPosition, UnitPosition)> = Vec::new();
        for (one, old_bag) in &gone {
            for (other, new_bag) in &came {
                let similarity = similarity(old_bag, new_bag);
                if similarity >= MIN_SIMILARITY {
                    scored.push((similarity, *one, *other));
                }
            }
        }
        scored.sort_by(|one, other| {
            other.0.total_cmp(&one.0).then_with(|| (one.1, one.2).cmp(&(other.1, other.2)))
        });
        for (_, one, other) in scored {
            if !self.new_of.contains_key(&one) && !self.old_of.contains_key(&other) {
                self.add(one, other);
            }
        }
    }
}

/// Counts the words and literals of a unit.
fn count_words(unit: &TestUnit<'_>) -> BTreeMap<String, usize> {
    let mut bag = BTreeMap::new();
    for token in unit.tokens.iter().filter(|token| token.kind != TokenKind::Sign) {
        *bag.entry(token.text.to_owned()).or_insert(0) += 1;
    }
    bag
}

/// Returns the share of words that two units have in common, 0 to 1.
#[allow(clippy::cast_precision_loss, reason = "counts of tokens are far below 2^52")]
fn similarity(one: &BTreeMap<String, usize>, other: &BTreeMap<String, usize>) -> f64 {
    let common: usize =
        one.iter().map(|(word, count)| other.get(word).map_or(0, |there| (*count).min(*there))).sum();
    let total: usize = one.values().sum::<usize>() + other.values().sum::<usize>();
    if total == 0 { 0.0 } else { 2.0 * common as f64 / total as f64 }
}
