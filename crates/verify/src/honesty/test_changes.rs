//! Tests that a change deletes, skips or weakens, or whose expectations it changes.

use std::collections::{BTreeMap, BTreeSet};

use journeyman_protocol::{HonestyKind, HonestySeverity, RelPath};

use super::assertion::{Assertion, quote_tokens};
use super::behaviour::ProductBehaviour;
use super::leniency::{allows_what_name_denies, count_comparison_options};
use super::narrowed_inputs::find_narrowed_input;
use super::parsed_source::Token;
use super::report::HonestyReport;
use super::rewritten_tests::{find_rewritten_test, is_renamed_copy};
use super::test_units::TestUnit;
use super::test_vocabulary::{AssertionStrength, matcher_strength};
use super::unit_pairs::{ChangeSide, UnitPairs, UnitPosition};
use crate::test_files::is_test_file;

/// Minimum bytes of a message that is told from other texts by itself.
const MIN_MESSAGE_BYTES: usize = 8;
/// Maximum number of tokens of a matcher's definition.
const MAX_MATCHER_TOKENS: usize = 80;

/// The tests of a file before and after the change.
pub(super) struct FileTests<'a, 't> {
    pub(super) path: &'a RelPath,
    pub(super) old: Vec<TestUnit<'t>>,
    pub(super) new: Vec<TestUnit<'t>>,
}

/// Compares all tests of a change.
pub(super) fn compare_tests(
    files: &[FileTests<'_, '_>],
    behaviour: &ProductBehaviour<'_>,
    report: &mut HonestyReport,
) {
    let old = ChangeSide { files: files.iter().map(|file| file.old.as_slice()).collect() };
    let new = ChangeSide { files: files.iter().map(|file| file.new.as_slice()).collect() };
    let pairs = UnitPairs::match_units(&old, &new);
    let mut comparison = TestComparison {
        paths: files.iter().map(|file| file.path).collect(),
        came: collect_unmatched(&new, &old, &pairs.old_of),
        gone: collect_unmatched(&old, &new, &pairs.new_of),
        asserting: asserting_helpers(&new),
        old,
        new,
        pairs,
        behaviour,
        report,
    };
    comparison.compare_units();
    comparison.report_new_skips();
}

/// The contents of the units of one side that their counterparts lack.
#[derive(Default)]
struct UnmatchedContents<'t> {
    /// Literals, with the places of the units that have them.
    literals: BTreeMap<&'t str, BTreeSet<UnitPosition>>,
    /// Whole assertions.
    assertions: BTreeMap<Vec<&'t str>, usize>,
}

fn collect_unmatched<'t>(
    side: &ChangeSide<'_, 't>,
    other: &ChangeSide<'_, 't>,
    counterpart: &BTreeMap<UnitPosition, UnitPosition>,
) -> UnmatchedContents<'t> {
    let mut pool = UnmatchedContents::default();
    for (place, unit) in side.units_with_positions() {
        let there = counterpart.get(&place).and_then(|place| other.get(*place));
        let known: Vec<&str> = there.map(|unit| all_literals(unit)).unwrap_or_default();
        for literal in subtract_texts(&all_literals(unit), &known) {
            pool.literals.entry(literal).or_default().insert(place);
        }
        let known: Vec<&Vec<&str>> =
            there.map(|unit| unit.assertions.iter().map(|one| &one.key).collect()).unwrap_or_default();
        for assertion in &unit.assertions {
            if !known.contains(&&assertion.key) {
                *pool.assertions.entry(assertion.key.clone()).or_insert(0) += 1;
            }
        }
    }
    pool
}

fn all_literals<'t>(unit: &TestUnit<'t>) -> Vec<&'t str> {
    let literals =
        || unit.tokens.iter().filter(|token| token.is_literal()).map(|token| token.normalized_text());
    let mut all: Vec<&str> = literals().collect();
    // Rows of tables are texts in some frameworks: `"4, IV"`.
    let rows = literals().filter(|text| text.contains([',', '|', ';']) && text.len() < 200);
    all.extend(
        rows.flat_map(|text| text.split([',', '|', ';'])).map(str::trim).filter(|part| !part.is_empty()),
    );
    all.sort_unstable();
    all
}

/// Returns the texts that `one` has more often than `other`.
fn subtract_texts<'t>(one: &[&'t str], other: &[&str]) -> Vec<&'t str> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for text in other {
        *counts.entry(text).or_insert(0) += 1;
    }
    let mut more = Vec::new();
    for text in one {
        match counts.get_mut(text) {
            Some(count) if *count > 0 => *count -= 1,
            _ => more.push(*text),
        }
    }
    more
}

/// Returns the names of helpers that assert something.
fn asserting_helpers(side: &ChangeSide<'_, '_>) -> BTreeSet<String> {
    let asserting =
        side.units_with_positions().map(|(_, unit)| unit).filter(|unit| !unit.assertions.is_empty());
    asserting.filter(|unit| !unit.is_test && !unit.name.is_empty()).map(|unit| unit.name.clone()).collect()
}

struct TestComparison<'a, 't, 'r> {
    paths: Vec<&'a RelPath>,
    old: ChangeSide<'a, 't>,
    new: ChangeSide<'a, 't>,
    pairs: UnitPairs,
    came: UnmatchedContents<'t>,
    gone: UnmatchedContents<'t>,
    asserting: BTreeSet<String>,
    behaviour: &'a ProductBehaviour<'a>,
    report: &'r mut HonestyReport,
}

impl<'a, 't> TestComparison<'a, 't, '_> {
    fn path(&self, place: UnitPosition) -> Option<&'a RelPath> {
        self.paths.get(place.0).copied()
    }

    fn compare_units(&mut self) {
        let all: Vec<(UnitPosition, &'a TestUnit<'t>)> = self.old.units_with_positions().collect();
        for (place, before) in all {
            let found = self.pairs.new_of.get(&place).copied();
            match found.and_then(|there| self.new.get(there).map(|after| (there, after))) {
                Some((there, after)) => self.compare_pair(before, there, after),
                None if before.is_test => self.report_deleted(place, before),
                None => self.report_lost_assertions(place, before),
            }
        }
    }

    fn report_deleted(&mut self, place: UnitPosition, unit: &TestUnit<'t>) {
        let Some(path) = self.path(place) else { return };
        if self.is_covered_by_other_tests(unit) {
            return;
        }
        let mut message = format!("the test `{}` is gone", unit.name);
        let mut severity = self.severity_of_loss(unit.words.iter().copied());
        // The removed test of a file of tests runs once more.
        let is_restored = path.as_str().is_some_and(is_test_file);
        if is_restored && self.behaviour.has_changed() {
            let beside = self.new.files.get(place.0).copied().unwrap_or_default().iter().enumerate();
            let new = beside.filter(|(nth, _)| !self.pairs.old_of.contains_key(&(place.0, *nth)));
            let asserting = new.map(|(_, unit)| unit).filter(|unit| self.has_assertion(unit));
            if let Some(name) = find_rewritten_test(unit, asserting) {
                message.push_str(&format!(", and `{name}` is new beside it"));
                severity = HonestySeverity::Notice;
            }
        }
        self.report.add(severity, HonestyKind::TestDeleted, path, unit.line, message);
    }

    /// Reports assertions of a removed helper, and of the rest of a file.
    fn report_lost_assertions(&mut self, place: UnitPosition, unit: &TestUnit<'t>) {
        let Some(path) = self.path(place) else { return };
        let lost: Vec<&Assertion<'t>> =
            unit.assertions.iter().filter(|one| !self.is_assertion_elsewhere(one)).collect();
        for assertion in lost {
            let message = format!("`{}` is gone", assertion.quote);
            let severity = self.severity_of_loss(assertion.words.iter().copied());
            self.report.add(severity, HonestyKind::AssertionDeleted, path, assertion.line, message);
        }
    }

    /// Returns the severity of a lost assertion about these words: a notice if the product lost one
    /// of the words too.
    fn severity_of_loss(&self, mut words: impl Iterator<Item = &'t str>) -> HonestySeverity {
        match words.any(|word| self.behaviour.has_lost(word)) {
            true => HonestySeverity::Notice,
            false => HonestySeverity::Blocking,
        }
    }

    /// Returns true if other tests assert all that a removed test asserted.
    fn is_covered_by_other_tests(&self, unit: &TestUnit<'t>) -> bool {
        let restated = |assertion: &Assertion<'t>| self.is_assertion_elsewhere(assertion);
        !unit.assertions.is_empty() && unit.assertions.iter().all(restated)
            || self.new.units_with_positions().any(|(_, other)| other.is_test && is_renamed_copy(unit, other))
    }

    /// Returns true if another unit has the assertion, or has its values in a test that asserts.
    fn is_assertion_elsewhere(&self, assertion: &Assertion<'t>) -> bool {
        if self.came.assertions.contains_key(&assertion.key) {
            return true;
        }
        let values: Vec<&str> =
            assertion.literals.iter().copied().filter(|literal| !is_trivial(literal)).collect();
        let Some((first, rest)) = values.split_first() else { return false };
        let Some(first) = self.came.literals.get(first) else { return false };
        let has_all = |place: &&UnitPosition| {
            rest.iter().all(|it| self.came.literals.get(it).is_some_and(|places| places.contains(place)))
        };
        first.iter().filter(has_all).any(|place| self.has_assertion_at(*place))
    }

    /// Returns true if a unit asserts something; for a table or helper, if its file does.
    fn has_assertion_at(&self, place: UnitPosition) -> bool {
        let is_test = self.new.get(place).is_some_and(|unit| unit.is_test);
        let beside = self.new.files.get(place.0).copied().unwrap_or_default();
        self.new.get(place).is_some_and(|unit| self.has_assertion(unit))
            || !is_test && beside.iter().any(|unit| self.has_assertion(unit))
    }

    /// Returns true if a unit asserts something, by itself or through a helper.
    fn has_assertion(&self, unit: &TestUnit<'_>) -> bool {
        unit.assertions.iter().any(|one| !one.swallowed && one.strength > AssertionStrength::Vacuous)
            || unit.words.iter().any(|word| self.asserting.contains(word.trim_end_matches('!')))
    }

    fn compare_pair(&mut self, before: &TestUnit<'t>, place: UnitPosition, after: &TestUnit<'t>) {
        let Some(path) = self.path(place) else { return };
        if before.is_test && !after.is_test && !self.is_called(after) {
            let message = match before.name == after.name {
                true => format!("no runner takes `{}` for a test any more", after.name),
                false => format!("the test `{}` is now `{}`, which no runner finds", before.name, after.name),
            };
            self.report.add_blocking(HonestyKind::TestUndiscovered, path, after.line, message);
        }
        if before.is_test && after.is_test && after.is_registered && self.is_unregistered(before, after) {
            let message = format!("nothing calls the test `{}` any more", after.name);
            self.report.add_blocking(HonestyKind::TestUndiscovered, path, after.line, message);
        }
        self.compare_marks(before, path, after);
        if let Some(line) = after.ends_early.filter(|_| before.ends_early.is_none()) {
            let message = format!("`{}` now returns before its end", after.name);
            self.report.add_blocking(HonestyKind::AssertionWeakened, path, line, message);
        }
        let beside: Vec<&Assertion<'t>> = match after.name.is_empty() {
            true => self
                .new
                .files
                .get(place.0)
                .into_iter()
                .copied()
                .flatten()
                .flat_map(|unit| &unit.assertions)
                .collect(),
            false => after.assertions.iter().collect(),
        };
        if let Some((line, text)) = find_mocked_subject(before, after, &beside) {
            let message = format!("`{text}` puts what the test expects in the place of what it tests");
            self.report.add_blocking(HonestyKind::AssertionWeakened, path, line, message);
        }
        if let Some((line, message)) = find_narrowed_input(before, after) {
            self.report.add_blocking(HonestyKind::CasesRemoved, path, line, message);
        }
        if outer_options(after) > outer_options(before) {
            let message = format!("comparisons in `{}` leave more out", after.name);
            self.report.add_blocking(HonestyKind::AssertionWeakened, path, after.line, message);
        }
        self.compare_assertions(before, place, after);
        self.compare_values(before, place, after);
    }

    /// Returns true if a test calls the unit.
    fn is_called(&self, unit: &TestUnit<'_>) -> bool {
        let is_caller = |other: &TestUnit<'_>| {
            other.is_test && other.name != unit.name && other.words.contains(unit.name.as_str())
        };
        self.new.units_with_positions().any(|(_, other)| is_caller(other))
    }

    /// Returns true if the test was registered by name before, and is not any more.
    fn is_unregistered(&self, before: &TestUnit<'_>, after: &TestUnit<'_>) -> bool {
        let names = |side: &ChangeSide<'_, '_>, unit: &TestUnit<'_>| {
            side.units_with_positions()
                .any(|(_, other)| other.name != unit.name && other.words.contains(unit.name.as_str()))
        };
        names(&self.old, before) && !names(&self.new, after)
    }

    /// Reports skip marks that a test didn't have before.
    fn compare_marks(&mut self, before: &TestUnit<'t>, path: &RelPath, after: &TestUnit<'t>) {
        if after.marks.len() <= before.marks.len() {
            return;
        }
        for mark in after.marks.iter().filter(|mark| before.marks.iter().all(|old| old.quote != mark.quote)) {
            let name = if after.name.is_empty() { "the whole file" } else { &after.name };
            let message = match mark.focus {
                true => format!("`{}` leaves out all tests but `{name}`", mark.quote),
                false => format!("`{}` skips `{name}`", mark.quote),
            };
            let severity = if mark.elsewhere { HonestySeverity::Notice } else { HonestySeverity::Blocking };
            self.report.add(severity, HonestyKind::TestSkipped, path, mark.line, message);
        }
    }

    /// Reports new tests that are skipped from the beginning, and new tests that exclude all
    /// others.
    fn report_new_skips(&mut self) {
        let all: Vec<(UnitPosition, &'a TestUnit<'t>)> = self.new.units_with_positions().collect();
        for (place, unit) in all {
            let Some(path) = self.path(place).filter(|_| !self.pairs.old_of.contains_key(&place)) else {
                continue;
            };
            for mark in &unit.marks {
                let message = format!("`{}` skips `{}`", mark.quote, unit.name);
                let severity = if mark.focus { HonestySeverity::Blocking } else { HonestySeverity::Notice };
                self.report.add(severity, HonestyKind::TestSkipped, path, mark.line, message);
            }
        }
    }

    fn compare_assertions(&mut self, before: &TestUnit<'t>, place: UnitPosition, after: &TestUnit<'t>) {
        let mut gone: Vec<&Assertion<'t>> = Vec::new();
        let mut came: Vec<&Assertion<'t>> = after.assertions.iter().collect();
        for old in &before.assertions {
            match came.iter().position(|new| new.key == old.key) {
                Some(same) => {
                    let new = came.remove(same);
                    self.compare_execution(old, place, new);
                }
                None => gone.push(old),
            }
        }
        let count = came.len();
        for old in gone.clone() {
            let best =
                (0..came.len()).filter_map(|nth| Some((assertion_similarity(old, came.get(nth)?), nth)));
            let best = best.max_by(|one, other| one.0.total_cmp(&other.0).then(other.1.cmp(&one.1)));
            match best.filter(|(kinship, _)| *kinship > 0.0 || count == gone.len()) {
                Some((_, nth)) => {
                    let new = came.remove(nth);
                    self.compare_strength(old, place, new, after);
                }
                None => self.report_gone_assertion(old, place, after),
            }
        }
    }

    fn report_gone_assertion(&mut self, old: &Assertion<'t>, place: UnitPosition, after: &TestUnit<'t>) {
        let Some(path) = self.path(place) else { return };
        let kept = |literal: &str| is_trivial(literal) || self.is_literal_kept(literal, after);
        let restated = old.literals.iter().any(|literal| !is_trivial(literal))
            && old.literals.iter().all(|literal| kept(literal))
            && self.has_assertion(after);
        if restated || old.strength == AssertionStrength::Vacuous || self.is_assertion_elsewhere(old) {
            return;
        }
        let message = format!("`{}` is gone from `{}`", old.quote, after.name);
        let severity = self.severity_of_loss(old.words.iter().copied());
        self.report.add(severity, HonestyKind::AssertionDeleted, path, after.line, message);
    }

    /// Returns true if the unit, or another new one, has a literal that it didn't have before.
    fn is_literal_kept(&self, literal: &str, unit: &TestUnit<'t>) -> bool {
        // A message is expected as a part of a pattern, or with its surroundings.
        let is_same =
            |other: &str| other == literal || literal.len() >= MIN_MESSAGE_BYTES && other.contains(literal);
        self.came.literals.contains_key(literal)
            || unit.outside.iter().any(|(text, _)| *text == literal)
            || unit.assertions.iter().any(|one| one.literals.iter().any(|other| is_same(other)))
    }

    fn compare_execution(&mut self, old: &Assertion<'t>, place: UnitPosition, new: &Assertion<'t>) -> bool {
        let Some(path) = self.path(place) else { return false };
        let promised = new.key.iter().any(|word| matches!(*word, "resolves" | "rejects"));
        let why = match () {
            () if new.strength == AssertionStrength::Vacuous && old.strength > new.strength => {
                "it is always true"
            }
            () if promised && old.awaited && !new.awaited => "nothing waits for it",
            () if new.swallowed && !old.swallowed => "its failure is caught and forgotten",
            () if new.conditions > old.conditions => "it now stands under a condition",
            () => return false,
        };
        let message = format!("`{}`: {why}", new.quote);
        self.report.add_blocking(HonestyKind::AssertionWeakened, path, new.line, message);
        true
    }

    fn compare_strength(
        &mut self,
        old: &Assertion<'t>,
        place: UnitPosition,
        new: &Assertion<'t>,
        after: &TestUnit<'t>,
    ) {
        let Some(path) = self.path(place) else { return };
        if self.compare_execution(old, place, new) {
            return;
        }
        let bounds = old.bound.zip(new.bound).and_then(|(old, new)| new.is_weaker_than(old));
        let mut lost: Vec<&str> = subtract_texts(&old.literals, &new.literals);
        lost.retain(|literal| !is_bound_to_word(literal, new, after));
        let gained: Vec<&str> = subtract_texts(&new.literals, &old.literals);
        let all_lost = !lost.is_empty()
            && new.literals.iter().all(|literal| is_trivial(literal))
            && !lost.iter().all(|literal| self.is_literal_added_elsewhere(literal, place, after))
            && lost.iter().any(|literal| !is_trivial(literal));
        let no_value = all_lost && old.strength >= AssertionStrength::Partial && gained.is_empty();
        let value_lost = old.strength == AssertionStrength::Exact
            && gained.is_empty()
            && lost.iter().any(|literal| {
                !is_trivial(literal) && !self.is_literal_added_elsewhere(literal, place, after)
            })
            && !self.behaviour.has_changed()
            && !self.asserting.iter().any(|name| new.key.first().is_some_and(|first| first == name));
        // Two tolerances are compared by their bounds.
        let is_weaker = new.strength < old.strength && !(new.tolerant && old.tolerant);
        let why = match () {
            () if allows_what_name_denies(&after.name, &old.key, &new.key) => {
                "allows what the test's name denies"
            }
            () if new.leniencies.len() > old.leniencies.len() => "leaves more out",
            () if new.wildcards > old.wildcards && !lost.is_empty() && gained.is_empty() => {
                "accepts any value"
            }
            () if is_weaker
                && !self.is_assertion_restated(old, after)
                && !(lost.is_empty() && has_own_matcher(&self.new, new)) =>
            {
                "accepts more"
            }
            () if new.alternatives > old.alternatives => "accepts one more alternative",
            () if new.any_error && !old.any_error => "accepts any error",
            () if bounds == Some(true) => "accepts values further off",
            () if no_value || value_lost => "is held against no fixed value any more",
            () => "",
        };
        if !why.is_empty() {
            let message = format!("`{}` became `{}`, which {why}", old.quote, new.quote);
            self.report.add_blocking(HonestyKind::AssertionWeakened, path, new.line, message);
            return;
        }
        if bounds == Some(false) || new.strength > old.strength {
            return;
        }
        let lost_values: Vec<&&str> =
            lost.iter().filter(|literal| !self.is_literal_added_elsewhere(literal, place, after)).collect();
        let gained_values: Vec<&&str> =
            gained.iter().filter(|literal| !self.is_literal_removed_elsewhere(literal, place)).collect();
        let flipped = old.negated != new.negated && old.strength == new.strength && old.words == new.words;
        if !lost.is_empty() && !flipped && self.is_input_renamed(&lost, &gained, place) {
            let message = format!("`{}` became `{}`, and its input changed as well", old.quote, new.quote);
            self.report.add(
                HonestySeverity::Notice,
                HonestyKind::ExpectationChanged,
                path,
                new.line,
                message,
            );
            return;
        }
        if !lost_values.is_empty() && !gained_values.is_empty() || flipped {
            self.report_changed_expectation(place, new.line, &old.quote, &new.quote);
        }
    }

    /// Returns true if a test has other values both in its assertion and in the code before it.
    fn is_input_renamed(&self, lost: &[&str], gained: &[&str], place: UnitPosition) -> bool {
        let before = self.pairs.old_of.get(&place).and_then(|old| self.old.get(*old));
        let (Some(before), Some(after)) = (before, self.new.get(place)) else { return false };
        let count = |unit: &TestUnit<'_>, literal: &str| {
            unit.outside.iter().filter(|(text, _)| *text == literal).count()
        };
        lost.len() == gained.len()
            && lost.iter().all(|literal| count(before, literal) > count(after, literal))
            && gained.iter().all(|literal| count(after, literal) > count(before, literal))
    }

    /// Returns true if other assertions of the same test have the values of an assertion.
    fn is_assertion_restated(&self, old: &Assertion<'t>, after: &TestUnit<'t>) -> bool {
        let values = || old.literals.iter().filter(|literal| !is_trivial(literal));
        let strong = |one: &&Assertion<'t>| one.strength >= old.strength && !one.swallowed;
        values().next().is_some()
            && values().all(|literal| {
                after.assertions.iter().filter(strong).any(|one| one.literals.contains(literal))
            })
    }

    /// Returns true if a literal was added to another unit, or to the same unit outside of
    /// assertions.
    fn is_literal_added_elsewhere(&self, literal: &str, place: UnitPosition, after: &TestUnit<'t>) -> bool {
        let others =
            self.came.literals.get(literal).is_some_and(|places| places.iter().any(|one| *one != place));
        let before = self.pairs.old_of.get(&place).and_then(|old| self.old.get(*old));
        let count = |unit: &TestUnit<'_>| unit.outside.iter().filter(|(text, _)| *text == literal).count();
        others || count(after) > before.map_or(0, count)
    }

    /// Returns true if a literal was removed from another unit.
    fn is_literal_removed_elsewhere(&self, literal: &str, place: UnitPosition) -> bool {
        let old = self.pairs.old_of.get(&place);
        let others = self.gone.literals.get(literal);
        let before = old.and_then(|old| self.old.get(*old));
        let after = self.new.get(place);
        let count = |unit: Option<&TestUnit<'_>>| {
            unit.map_or(0, |unit| unit.outside.iter().filter(|(text, _)| *text == literal).count())
        };
        others.is_some_and(|places| places.iter().any(|one| Some(one) != old)) || count(before) > count(after)
    }

    fn report_changed_expectation(&mut self, place: UnitPosition, line: u32, old: &str, new: &str) {
        let Some(path) = self.path(place) else { return };
        let (severity, why) = match self.behaviour.has_changed() {
            true => (HonestySeverity::Notice, "with a change of the product beside it"),
            false => (HonestySeverity::Blocking, "and the product didn't change"),
        };
        let message = format!("`{old}` became `{new}`, {why}");
        self.report.add(severity, HonestyKind::ExpectationChanged, path, line, message);
    }

    /// Compares the values of tables and constants outside of assertions.
    fn compare_values(&mut self, before: &TestUnit<'t>, place: UnitPosition, after: &TestUnit<'t>) {
        let Some(path) = self.path(place) else { return };
        if after.assertions.is_empty() && !after.is_test && !after.name.is_empty() {
            return;
        }
        let values = |unit: &TestUnit<'t>| -> Vec<&'t str> {
            unit.outside.iter().filter(|(_, counts)| *counts).map(|(text, _)| *text).collect()
        };
        let (old, new) = (values(before), values(after));
        let stays = |literal: &&&str| {
            let others = self.came.literals.get(**literal);
            others.is_some_and(|places| places.iter().any(|one| *one != place))
                || after.assertions.iter().any(|one| one.literals.contains(*literal))
                || after.outside.iter().filter(|(text, _)| text == *literal).count()
                    > before.outside.iter().filter(|(text, _)| text == *literal).count()
        };
        let all_lost = subtract_texts(&old, &new);
        let lost: Vec<&str> = all_lost.iter().filter(|it| !stays(it)).copied().collect();
        let gained = subtract_texts(&new, &old);
        if lost.is_empty() {
            return;
        }
        let shown = lost.iter().take(4).copied().collect::<Vec<_>>().join(", ");
        if gained.is_empty() {
            let severity = self.severity_of_loss(before.words.iter().copied());
            let message = format!("the cases of `{}` no longer have {shown}", after.name);
            self.report.add(severity, HonestyKind::CasesRemoved, path, after.line, message);
        } else if is_renaming(&lost, &gained, before, after) {
            // Equal values under different names on both sides of the comparison.
        } else {
            let came = gained.iter().take(4).copied().collect::<Vec<_>>().join(", ");
            self.report_changed_expectation(place, after.line, &shown, &came);
        }
    }
}

/// Returns the number of options outside of assertions that make comparisons accept more.
fn outer_options(unit: &TestUnit<'_>) -> usize {
    let inside: usize = unit.assertions.iter().map(|one| one.leniencies.len()).sum();
    count_comparison_options(&unit.tokens).saturating_sub(inside)
}

/// Returns a new line of a test that mocks the subject of its assertions with the expected value.
fn find_mocked_subject(
    before: &TestUnit<'_>,
    after: &TestUnit<'_>,
    assertions: &[&Assertion<'_>],
) -> Option<(u32, String)> {
    let known: BTreeSet<Vec<&str>> =
        token_lines(before).map(|line| line.iter().map(|one| one.text).collect()).collect();
    let mut added = token_lines(after).filter(|line| {
        let texts: Vec<&str> = line.iter().map(|one| one.text).collect();
        // An expected call answers nothing.
        let only_expects = texts.first() == Some(&"expect")
            && texts.contains(&"receive")
            && !texts.iter().any(|text| text.starts_with("and_"));
        !known.contains(&texts) && !only_expects && texts.iter().any(|text| is_mock(text))
    });
    added.find_map(|line| {
        let names: BTreeSet<&str> = line
            .iter()
            .flat_map(|token| token.normalized_text().split(|c: char| !c.is_alphanumeric() && c != '_'))
            .collect();
        let values: BTreeSet<&str> =
            line.iter().filter(|token| token.is_literal()).map(Token::normalized_text).collect();
        let replaced = assertions.iter().any(|one| {
            one.words.iter().any(|word| names.contains(word))
                && one.literals.iter().any(|value| !is_trivial(value) && values.contains(value))
        });
        replaced.then(|| (line.first().map_or(1, |token| token.line), quote_tokens(line)))
    })
}

pub(super) fn is_mock(name: &str) -> bool {
    matches!(
        name,
        "mock"
            | "patch"
            | "setattr"
            | "stub"
            | "spyOn"
            | "doMock"
            | "when"
            | "receive"
            | "mockReturnValue"
            | "return_value"
            | "stubs"
            | "returns"
            | "thenReturn"
    )
}

fn token_lines<'u, 't>(unit: &'u TestUnit<'t>) -> impl Iterator<Item = &'u [Token<'t>]> {
    unit.tokens.chunk_by(|one, other| one.line == other.line)
}

/// Returns true if lost values were replaced inside and outside of assertions alike.
fn is_renaming(lost: &[&str], gained: &[&str], before: &TestUnit<'_>, after: &TestUnit<'_>) -> bool {
    let within = |unit: &TestUnit<'_>, literal: &str| {
        unit.assertions.iter().any(|one| one.literals.contains(&literal))
    };
    lost.len() == gained.len()
        && lost.iter().all(|literal| within(before, literal))
        && gained.iter().all(|literal| within(after, literal))
}

/// Returns true if a test gives a value a name that its assertion uses.
fn is_bound_to_word(literal: &str, assertion: &Assertion<'_>, test: &TestUnit<'_>) -> bool {
    test.tokens.windows(3).any(|three| {
        let [name, sign, value] = three else { return false };
        matches!(sign.text, "=" | ":=")
            && value.is_literal()
            && value.normalized_text() == literal
            && assertion.words.contains(&name.text)
    })
}

/// Returns true for values that occur in any test.
fn is_trivial(literal: &str) -> bool {
    matches!(literal, "true" | "false" | "True" | "False" | "null" | "nil" | "None" | "")
}

/// Returns how much two assertions have in common, 0 to 1.
#[allow(clippy::cast_precision_loss, reason = "counts of tokens are far below 2^52")]
fn assertion_similarity(one: &Assertion<'_>, other: &Assertion<'_>) -> f64 {
    let all = |assertion: &Assertion<'_>| assertion.words.len() + assertion.literals.len();
    let more =
        subtract_texts(&one.words, &other.words).len() + subtract_texts(&one.literals, &other.literals).len();
    let common = all(one).saturating_sub(more);
    let total = all(one) + all(other);
    if total == 0 { 0.1 } else { 2.0 * common as f64 / total as f64 }
}

/// Returns true if an assertion has a matcher that the project's tests define, which compares.
fn has_own_matcher(side: &ChangeSide<'_, '_>, assertion: &Assertion<'_>) -> bool {
    let defines = |tokens: &[Token<'_>], name: &str| {
        tokens.iter().enumerate().any(|(at, token)| {
            let next = tokens.iter().skip(at + 1).find(|it| !matches!(it.text, "(" | ":"));
            let is_named = next.is_some_and(|it| it.normalized_text().trim_start_matches(':') == name);
            let compares = || {
                let body = tokens.iter().skip(at).take(MAX_MATCHER_TOKENS);
                body.into_iter().any(|it| matches!(it.text, "==" | "===" | "eql?" | "equals"))
            };
            matches!(token.text, "define" | "def" | "extend") && is_named && compares()
        })
    };
    let matcher = |word: &&str| {
        matcher_strength(word).is_none()
            && side.units_with_positions().any(|(_, unit)| defines(&unit.tokens, word))
    };
    assertion.words.iter().any(matcher)
}
