//! The tests that a change reaches, determined more precisely than other files.
//!
//! A test begins with nothing: a method runs in it only if the test reaches both a use of the
//! method's name and a use of its type, or of a subtype, by which the value came to be. Any other
//! code may have been given the value. So while places are followed, this module records which
//! place is used by which, and in the end computes the tests of each place: those of all its users,
//! or for a member those that its users and its type have in common. This is rapid type analysis
//! (Bacon and Sweeney, 1996) with each test file as a program of its own.

use std::hash::Hash;
use std::ops::Range;

use hashbrown::HashMap;

use crate::bit_set::BitSet;

/// Maximum recorded uses: beyond that all reached tests count.
const MAX_RECORDED_USES: usize = 4_000_000;
/// Maximum words of 64 tests, for all places.
const MAX_BITSET_WORDS: usize = 8_000_000;

/// The tests of a place, by those of its users.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum TestRule {
    /// All tests of its users and of its type.
    #[default]
    Either,
    /// The tests of its type: the name alone doesn't lead to all users.
    OfType,
    /// The tests of its users that are among those of its type.
    Both,
}

/// The reason why a place uses another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum LinkKind {
    /// A use of its name.
    Name,
    /// Its type.
    Type,
}

/// A use of a place, by the numbers of places.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct PlaceUse {
    user: u32,
    used: u32,
    kind: LinkKind,
}

/// Places and their users. Places are known by `K`, and by numbers in the order of appearance.
#[derive(Debug, Default)]
pub(super) struct TestPaths<K> {
    numbers: HashMap<K, u32>,
    rules: Vec<TestRule>,
    links: Vec<PlaceUse>,
    /// The place that is followed now.
    here: u32,
    is_cut: bool,
}

impl<K: Copy + Eq + Hash> TestPaths<K> {
    /// Returns a place's number.
    pub(super) fn number_of(&mut self, place: K) -> u32 {
        let next = u32::try_from(self.rules.len()).unwrap_or(u32::MAX);
        let number = *self.numbers.entry(place).or_insert(next);
        if number == next {
            self.rules.push(TestRule::Either);
        }
        number
    }

    /// Sets the current place, whose users are recorded next.
    pub(super) fn set_current_place(&mut self, place: K) {
        self.here = self.number_of(place);
    }

    /// Sets the rule of the current place.
    pub(super) fn set_rule(&mut self, rule: TestRule) {
        if let Some(own) = self.rules.get_mut(self.here as usize) {
            *own = rule;
        }
    }

    /// Records that a place uses the current one.
    pub(super) fn add_user(&mut self, user: K, kind: LinkKind) {
        if self.links.len() >= MAX_RECORDED_USES {
            self.is_cut = true;
            return;
        }
        let user = self.number_of(user);
        if user != self.here {
            self.links.push(PlaceUse { user, used: self.here, kind });
        }
    }

    /// Returns which tests reach the first place, by their numbers below `count`; `None` if there
    /// are too many links or tests. `test_at` returns the test that a place belongs to.
    pub(super) fn tests_reaching_first(
        mut self,
        count: u32,
        test_at: impl Fn(&K) -> Option<u32>,
    ) -> Option<BitSet> {
        let width = (count as usize).div_ceil(u64::BITS as usize);
        let sets = self.rules.len().saturating_mul(width);
        if self.is_cut || sets > MAX_BITSET_WORDS {
            return None;
        }
        self.links.sort_unstable();
        self.links.dedup();
        self.drop_rules_without_type();
        let mut sets = TestSets { width, by_name: vec![0; sets], by_type: vec![0; sets], all: vec![0; sets] };
        let mut left: Vec<u32> = Vec::new();
        for (place, number) in &self.numbers {
            if let Some(test) = test_at(place) {
                sets.insert(*number, test);
                left.push(*number);
            }
        }
        while let Some(user) = left.pop() {
            let from = self.links.partition_point(|link| link.user < user);
            let links = self.links.get(from..).unwrap_or_default();
            for link in links.iter().take_while(|link| link.user == user) {
                let rule = self.rules.get(link.used as usize).copied().unwrap_or_default();
                if sets.add_tests_of_user(*link, rule) {
                    left.push(link.used);
                }
            }
        }
        let mut found = BitSet::default();
        (0..count).filter(|test| sets.contains(0, *test)).for_each(|test| found.insert(test));
        Some(found)
    }

    /// Gives members of an unknown type all tests of their users.
    fn drop_rules_without_type(&mut self) {
        let mut typed = BitSet::default();
        let of_type = self.links.iter().filter(|link| link.kind == LinkKind::Type);
        of_type.for_each(|link| typed.insert(link.used));
        for (place, rule) in (0..).zip(&mut self.rules) {
            if !typed.contains(place) {
                *rule = TestRule::Either;
            }
        }
    }
}

/// The tests of places, as rows of bits.
struct TestSets {
    /// Words of a row.
    width: usize,
    by_name: Vec<u64>,
    by_type: Vec<u64>,
    all: Vec<u64>,
}

impl TestSets {
    fn word_range(&self, place: u32) -> Range<usize> {
        let start = place as usize * self.width;
        start..start + self.width
    }

    fn insert(&mut self, place: u32, test: u32) {
        let at = place as usize * self.width + (test / u64::BITS) as usize;
        if let Some(word) = self.all.get_mut(at) {
            *word |= 1 << (test % u64::BITS);
        }
    }

    fn contains(&self, place: u32, test: u32) -> bool {
        let at = place as usize * self.width + (test / u64::BITS) as usize;
        self.all.get(at).is_some_and(|word| word & (1 << (test % u64::BITS)) != 0)
    }

    /// Adds the tests of a user to those of the used place, and returns true if that has more now.
    fn add_tests_of_user(&mut self, link: PlaceUse, rule: TestRule) -> bool {
        let mut has_more = false;
        for (used, user) in self.word_range(link.used).zip(self.word_range(link.user)) {
            let added = self.all.get(user).copied().unwrap_or_default();
            let Self { by_name, by_type, all, .. } = self;
            let (Some(by_name), Some(by_type), Some(all)) =
                (by_name.get_mut(used), by_type.get_mut(used), all.get_mut(used))
            else {
                return false;
            };
            match link.kind {
                LinkKind::Name => *by_name |= added,
                LinkKind::Type => *by_type |= added,
            }
            let before = *all;
            *all |= match rule {
                TestRule::Either => *by_name | *by_type,
                TestRule::OfType => *by_type,
                TestRule::Both => *by_name & *by_type,
            };
            has_more |= *all != before;
        }
        has_more
    }
}
