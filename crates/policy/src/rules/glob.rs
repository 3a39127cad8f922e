//! Wildcard patterns for names, words and paths. There are no regular expressions: matching takes
//! time bounded by the product of both lengths, and most candidates are rejected at their first
//! character.

use super::path_shape::{PathShape, PatternChar, ShapeComponent};

/// Maximum length of a pattern in bytes. A path of the deepest projects has half of that.
pub(super) const MAX_PATTERN_BYTES: usize = 512;

/// The comparison of letter case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LetterCase {
    /// Letter case counts, for rules that allow.
    Exact,
    /// Letter case is ignored, for rules that deny: some file systems ignore it too.
    Ignored,
}

impl LetterCase {
    fn is_same_char(self, one: char, other: char) -> bool {
        if one.is_ascii() && other.is_ascii() {
            return one == other || self == Self::Ignored && one.eq_ignore_ascii_case(&other);
        }
        one == other || self == Self::Ignored && one.to_lowercase().eq(other.to_lowercase())
    }

    /// Returns true if two texts are equal.
    pub(super) fn is_equal(self, one: &str, other: &str) -> bool {
        match self {
            Self::Exact => one == other,
            Self::Ignored => {
                one.eq_ignore_ascii_case(other)
                    || !one.is_ascii() && one.to_lowercase() == other.to_lowercase()
            }
        }
    }
}

/// Matches a sequence against a pattern in which some elements match any number of others.
/// Backtracking to the last such element is enough: elements that an earlier one matched can as
/// well be left to a later one.
fn match_wildcards<P, T>(
    pattern: &[P],
    items: &[T],
    is_any: impl Fn(&P) -> bool,
    fits: impl Fn(&P, &T) -> bool,
) -> bool {
    let (mut at, mut item) = (0, 0);
    let mut back: Option<(usize, usize)> = None;
    while let Some(current) = items.get(item) {
        match pattern.get(at) {
            Some(any) if is_any(any) => {
                back = Some((at, item));
                at += 1;
            }
            Some(one) if fits(one, current) => {
                at += 1;
                item += 1;
            }
            _ => {
                let Some((star, from)) = back else { return false };
                back = Some((star, from + 1));
                at = star + 1;
                item = from + 1;
            }
        }
    }
    pattern.iter().skip(at).all(is_any)
}

/// Returns true if a text matches a pattern in which `*` stands for any characters.
#[must_use]
pub fn matches_wildcards(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    match_wildcards(&pattern, &text, |sign| *sign == '*', |sign, c| sign == c)
}

/// A pattern of characters: `*` matches any characters, `?` matches one if enabled, and a backslash
/// escapes the next character.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TextPattern {
    signs: Vec<PatternChar>,
    /// The text, if the pattern has no wildcard.
    literal: Option<String>,
    /// The text in lower case.
    lower: Option<NameKey>,
    /// The literal end of the pattern, which rejects most texts.
    end: String,
}

impl TextPattern {
    /// Parses a pattern. `one` enables `?` as a wildcard.
    pub(super) fn parse(text: &str, one: bool) -> Self {
        let mut signs = Vec::new();
        let mut characters = text.chars().peekable();
        while let Some(character) = characters.next() {
            signs.push(match character {
                '*' => PatternChar::Any,
                '?' if one => PatternChar::One,
                '\\' => match characters.next_if(|next| matches!(next, '*' | '?' | '\\')) {
                    Some(next) => PatternChar::Plain(next),
                    None => PatternChar::Plain('\\'),
                },
                plain => PatternChar::Plain(plain),
            });
        }
        let literal = signs.iter().map(|sign| match sign {
            PatternChar::Plain(character) => Some(*character),
            PatternChar::Any | PatternChar::One => None,
        });
        let literal: Option<String> = literal.collect();
        let lower = literal.as_ref().map(|literal| NameKey::from_lowercase(&literal.to_lowercase()));
        let plain = |sign: &PatternChar| match sign {
            PatternChar::Plain(character) if character.is_ascii() => Some(*character),
            _ => None,
        };
        let mut end: Vec<char> = signs.iter().rev().map_while(plain).collect();
        end.reverse();
        Self { signs, literal, lower, end: end.into_iter().collect() }
    }

    /// Returns the only text that matches, if there is one.
    pub(super) fn literal(&self) -> Option<&str> {
        self.literal.as_deref()
    }

    /// Returns that text in lower case.
    pub(super) fn lowercase_literal(&self) -> Option<&NameKey> {
        self.lower.as_ref()
    }

    /// Returns true if the pattern matches everything.
    pub(super) fn is_everything(&self) -> bool {
        self.signs.iter().all(|sign| *sign == PatternChar::Any) && !self.signs.is_empty()
    }

    pub(super) fn matches(&self, text: &str, case: LetterCase) -> bool {
        if let Some(literal) = &self.literal {
            return case.is_equal(literal, text);
        }
        if let (Some(PatternChar::Plain(first)), Some(begins)) = (self.signs.first(), text.chars().next())
            && !case.is_same_char(*first, begins)
        {
            return false;
        }
        let end = text.len().checked_sub(self.end.len()).and_then(|from| text.as_bytes().get(from..));
        // Some characters beyond ASCII are ASCII in lower case.
        if text.is_ascii() && !end.is_some_and(|end| end.eq_ignore_ascii_case(self.end.as_bytes())) {
            return false;
        }
        let characters: Vec<char> = text.chars().collect();
        match_wildcards(
            &self.signs,
            &characters,
            |sign| *sign == PatternChar::Any,
            |sign, character| match sign {
                PatternChar::Any | PatternChar::One => true,
                PatternChar::Plain(plain) => case.is_same_char(*plain, *character),
            },
        )
    }
}

impl TextPattern {
    /// Returns true if the first or last characters show that no name matches both patterns.
    fn is_disjoint_from(&self, signs: &[PatternChar]) -> bool {
        let other = |one: Option<&PatternChar>, other: Option<&PatternChar>| match (one, other) {
            (Some(PatternChar::Plain(one)), Some(PatternChar::Plain(other))) => {
                one.is_ascii() && other.is_ascii() && !one.eq_ignore_ascii_case(other)
            }
            _ => false,
        };
        other(self.signs.first(), signs.first()) || other(self.signs.last(), signs.last())
    }

    /// Returns whether a name matches both this pattern and the given one, which is in lower case:
    /// `Some(true)` for certain, `Some(false)` if possible because the name is unknown. A shell's
    /// wildcard matches no dot at a name's beginning, unless `dots` is true.
    fn may_match_both(&self, signs: &[PatternChar], dots: bool) -> Option<bool> {
        if signs.iter().all(|sign| matches!(sign, PatternChar::Plain(_))) {
            let name: String = signs
                .iter()
                .filter_map(|sign| match sign {
                    PatternChar::Plain(character) => Some(*character),
                    PatternChar::Any | PatternChar::One => None,
                })
                .collect();
            return self.matches(&name, LetterCase::Ignored).then_some(true);
        }
        let hidden = matches!(self.signs.first(), Some(PatternChar::Plain('.')));
        if hidden && !dots && !matches!(signs.first(), Some(PatternChar::Plain(_))) {
            return None;
        }
        let ends = |one: Option<&PatternChar>, other: Option<&PatternChar>| match (one, other) {
            (Some(PatternChar::Plain(one)), Some(PatternChar::Plain(other))) => {
                LetterCase::Ignored.is_same_char(*one, *other)
            }
            _ => true,
        };
        if !ends(self.signs.first(), signs.first()) || !ends(self.signs.last(), signs.last()) {
            return None;
        }
        if !patterns_overlap(&self.signs, signs) {
            return None;
        }
        let plain = |signs: &[PatternChar]| signs.iter().any(|sign| matches!(sign, PatternChar::Plain(_)));
        Some(plain(signs) || self.is_everything())
    }
}

/// Returns true if some text matches both patterns.
fn patterns_overlap(one: &[PatternChar], other: &[PatternChar]) -> bool {
    // Dynamic programming over the suffixes of `one`, with one more character of `other` at each
    // step.
    let rest = |signs: &[PatternChar]| signs.iter().all(|sign| *sign == PatternChar::Any);
    let mut below: Vec<bool> = (0..=one.len()).map(|at| one.get(at..).is_some_and(rest)).collect();
    for (place, sign) in other.iter().enumerate().rev() {
        let mut here = vec![false; one.len() + 1];
        let mut next = other.get(place..).is_some_and(rest);
        if let Some(last) = here.last_mut() {
            *last = next;
        }
        for at in (0..one.len()).rev() {
            let diagonal = below.get(at + 1).copied().unwrap_or(false);
            let without = below.get(at).copied().unwrap_or(false);
            next = match (one.get(at), sign) {
                (Some(PatternChar::Any), _) | (_, PatternChar::Any) => next || without || diagonal,
                (Some(PatternChar::Plain(one)), PatternChar::Plain(other)) => {
                    diagonal && LetterCase::Ignored.is_same_char(*one, *other)
                }
                (Some(_), _) => diagonal,
                (None, _) => false,
            };
            if let Some(slot) = here.get_mut(at) {
                *slot = next;
            }
        }
        below = here;
    }
    below.first().copied().unwrap_or(false)
}

/// Escapes a text so that [`Text::parse`] reads it literally.
pub(super) fn escape_pattern(text: &str) -> String {
    let mut written = String::with_capacity(text.len());
    for character in text.chars() {
        if matches!(character, '*' | '?' | '\\') {
            written.push('\\');
        }
        written.push(character);
    }
    written
}

/// A set of names in lower case, for fast queries by many patterns.
#[derive(Debug)]
pub(super) struct NameSet {
    /// All names, one after the other.
    text: String,
    /// The end of each name.
    ends: Vec<usize>,
    /// A Bloom filter with two bits for each name.
    bits: [u64; FILTER_WORDS],
    /// A bit for every ASCII character in which a name ends.
    last: u128,
}

/// A name in lower case for queries of [`Names`], with its filter bits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NameKey {
    name: String,
    places: [(usize, u64); 2],
    /// The last component, if the name is a path.
    base: Option<Box<NameKey>>,
}

impl NameKey {
    pub(super) fn from_lowercase(lower: &str) -> Self {
        let base = Some(last_component(lower)).filter(|base| base.len() < lower.len());
        Self {
            name: lower.to_owned(),
            places: filter_bits(lower),
            base: base.map(|base| Box::new(Self::from_lowercase(base))),
        }
    }

    pub(super) fn is_absolute(&self) -> bool {
        self.name.starts_with('/')
    }

    /// Returns the last component; the key itself if it is not a path.
    pub(super) fn last_component(&self) -> &Self {
        self.base.as_deref().unwrap_or(self)
    }
}

/// Returns the last component of a path.
pub(super) fn last_component(path: &str) -> &str {
    memchr::memrchr2(b'/', b'\\', path.as_bytes()).and_then(|at| path.get(at + 1..)).unwrap_or(path)
}

/// Words of the Bloom filter: with the hundred names of a long command, one in four hundred other
/// names is a false positive.
const FILTER_WORDS: usize = 64;

impl Default for NameSet {
    fn default() -> Self {
        Self { text: String::new(), ends: Vec::new(), bits: [0; FILTER_WORDS], last: 0 }
    }
}

impl NameSet {
    /// Adds the components of a path, resolving `..`.
    pub(super) fn add(&mut self, path: &str) {
        for name in path.split('/') {
            self.add_name(name);
        }
    }

    pub(super) fn add_name(&mut self, name: &str) {
        let from = self.text.len();
        if name.is_ascii() {
            self.text.push_str(name);
            if let Some(new) = self.text.get_mut(from..) {
                new.make_ascii_lowercase();
            }
        } else {
            self.text.push_str(&name.to_lowercase());
        }
        self.ends.push(self.text.len());
        let new = self.text.get(from..).unwrap_or_default();
        for (word, bit) in filter_bits(new) {
            if let Some(word) = self.bits.get_mut(word) {
                *word |= bit;
            }
        }
        self.last |= new.bytes().last().map_or(0, letter_bit);
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &str> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).filter_map(|(from, to)| self.text.get(from..*to))
    }

    pub(super) fn contains(&self, key: &NameKey) -> bool {
        let likely = key.places.iter().all(|(word, bit)| {
            let word = self.bits.get(*word).copied().unwrap_or_default();
            word & bit != 0
        });
        likely && self.iter().any(|one| one == key.name)
    }

    fn any_matches(&self, text: &TextPattern) -> bool {
        // Most patterns are `*.ending`, with an ending that no name has. The names are in lower
        // case already, so non-ASCII characters are compared as they are.
        let ends = text.end.bytes().last();
        let likely = ends.is_none_or(|end| self.last & letter_bit(end.to_ascii_lowercase()) != 0);
        likely && self.iter().any(|name| text.matches(name, LetterCase::Ignored))
    }
}

fn letter_bit(byte: u8) -> u128 {
    1u128.checked_shl(byte.into()).unwrap_or(0)
}

/// Returns the two bits of a name.
fn filter_bits(name: &str) -> [(usize, u64); 2] {
    // As FxHash of rustc: eight bytes at a time, multiplied by an odd number near 2^64 divided by
    // pi.
    let hash = name.as_bytes().chunks(8).fold(name.len() as u64, |hash, bytes| {
        let mut chunk = [0; 8];
        chunk.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
        (hash.rotate_left(5) ^ u64::from_le_bytes(chunk)).wrapping_mul(0x517c_c1b7_2722_0a95)
    });
    [hash >> 8, hash >> 32].map(|hash| {
        let word = usize::try_from(hash >> 6).unwrap_or(usize::MAX) % FILTER_WORDS;
        (word, 1 << (hash % 64))
    })
}

/// A component of a path pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
enum ComponentPattern {
    /// `**`: any number of components.
    Any,
    One(TextPattern),
}

/// A path pattern: `*` and `?` match within a component, `**` any number of components.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PathPattern {
    names: Vec<ComponentPattern>,
}

impl PathPattern {
    /// Parses a pattern.
    ///
    /// # Errors
    /// The problem of the pattern.
    pub(super) fn parse(text: &str) -> Result<Self, &'static str> {
        if text.starts_with('/') || text.starts_with('~') {
            return Err("is not within the project; paths are written from the project's root");
        }
        let text = text.strip_suffix('/').unwrap_or(text);
        let mut names = Vec::new();
        for name in text.split('/') {
            names.push(match name {
                "" | "." | ".." => return Err("has an empty name, `.` or `..` in it"),
                "**" => ComponentPattern::Any,
                name if name.contains("**") => return Err("has `**` within a name; it stands alone"),
                name if name.contains(['[', ']', '{', '}']) => {
                    return Err("has brackets; only `*`, `?` and `**` stand for others. Write several paths");
                }
                name => ComponentPattern::One(TextPattern::parse(name, true)),
            });
        }
        Ok(Self { names })
    }

    /// Returns true if a path with these components, in lower case, may be one that
    /// [`matches_or_contains`](Self::matches_or_contains) accepts. One of the pattern's own
    /// components has to be among them.
    pub(super) fn may_match_any(&self, names: &NameSet) -> bool {
        let texts = self.names.iter().filter_map(|name| match name {
            ComponentPattern::Any => None,
            ComponentPattern::One(text) => Some(text),
        });
        let mut open = None;
        for text in texts {
            match &text.lower {
                Some(name) => return names.contains(name),
                None => open = Some(text),
            }
        }
        open.is_none_or(|text| names.any_matches(text))
    }

    /// Returns whether a path matches both this pattern and a shape: `Some(true)` for certain,
    /// `Some(false)` if possible because a component is unknown. For a shape from another directory
    /// any end of the path counts, as in [`PathPattern::matches_or_contains`].
    pub(super) fn may_match_both(&self, shape: &PathShape, dots: bool) -> Option<bool> {
        let starts = if shape.elsewhere { shape.pieces.len() } else { 1 };
        let found = (0..starts).filter_map(|from| self.match_components(shape.pieces.get(from..)?, dots));
        found.max()
    }

    /// Returns true if a pattern's component and a shape's, both at an end, can't be the same.
    fn differs_at_end(name: Option<&ComponentPattern>, piece: Option<&ShapeComponent>) -> bool {
        match (name, piece) {
            (Some(ComponentPattern::One(text)), Some(ShapeComponent::Name(signs))) => {
                text.is_disjoint_from(signs)
            }
            // Only literal components are searched in it.
            (Some(ComponentPattern::One(text)), Some(ShapeComponent::Open(signs))) => {
                text.literal().is_none() || text.is_disjoint_from(signs)
            }
            _ => false,
        }
    }

    fn match_components(&self, pieces: &[ShapeComponent], dots: bool) -> Option<bool> {
        // Most patterns differ in the first or last component.
        if Self::differs_at_end(self.names.first(), pieces.first())
            || Self::differs_at_end(self.names.last(), pieces.last())
        {
            return None;
        }
        self.match_each_component(pieces, dots)
    }

    fn match_each_component(&self, pieces: &[ShapeComponent], dots: bool) -> Option<bool> {
        // Dynamic programming as in [`overlap`], component by component.
        let all_any = |names: &[ComponentPattern]| {
            names.iter().all(|name| *name == ComponentPattern::Any).then_some(true)
        };
        let mut below: Vec<Option<bool>> =
            (0..=self.names.len()).map(|at| self.names.get(at..).and_then(all_any)).collect();
        for (place, piece) in pieces.iter().enumerate().rev() {
            let rest = pieces
                .get(place..)
                .is_some_and(|rest| rest.iter().all(|piece| *piece == ShapeComponent::Names));
            let mut here = vec![None; self.names.len() + 1];
            let mut next = rest.then_some(false);
            if let Some(last) = here.last_mut() {
                *last = next;
            }
            for at in (0..self.names.len()).rev() {
                let diagonal = below.get(at + 1).copied().flatten();
                let without = below.get(at).copied().flatten();
                next = match (self.names.get(at), piece) {
                    (Some(ComponentPattern::Any), _) => next.max(without).max(diagonal),
                    // An unknown number of components: a match is possible, not certain.
                    (Some(_), ShapeComponent::Names) => {
                        next.map(|_| false).max(without).max(diagonal.map(|_| false))
                    }
                    (Some(ComponentPattern::One(text)), ShapeComponent::Name(signs)) => {
                        diagonal.and_then(|sure| Some(text.may_match_both(signs, dots)? && sure))
                    }
                    // The component could be anything; only literal components are searched in it.
                    (Some(ComponentPattern::One(text)), ShapeComponent::Open(signs)) => {
                        let met = text.literal().is_some() && text.may_match_both(signs, dots).is_some();
                        diagonal.filter(|_| met).map(|_| false)
                    }
                    (None, _) => None,
                };
                if let Some(slot) = here.get_mut(at) {
                    *slot = next;
                }
            }
            below = here;
        }
        below.first().copied().flatten()
    }

    /// Returns true if exactly one path matches.
    pub(super) fn is_literal(&self) -> bool {
        self.names.iter().all(|name| matches!(name, ComponentPattern::One(text) if text.literal().is_some()))
    }

    /// Returns true if every path of the project matches.
    pub(super) fn is_everything(&self) -> bool {
        match self.names.as_slice() {
            [ComponentPattern::One(only)] => only.is_everything(),
            names => names.iter().all(|name| match name {
                ComponentPattern::Any => true,
                ComponentPattern::One(text) => text.is_everything(),
            }),
        }
    }

    /// Returns true if the path matches.
    pub(super) fn matches(&self, names: &[&str], case: LetterCase) -> bool {
        match_names(&self.names, names, case)
    }

    /// Returns true if the pattern has names and no wildcards within them, and all of them are
    /// among these words: code composes a path of them.
    pub(super) fn has_names_among(&self, words: &[String]) -> bool {
        let is_there = |name: &ComponentPattern| match name {
            ComponentPattern::Any => true,
            ComponentPattern::One(text) => text
                .literal()
                .is_some_and(|text| words.iter().any(|word| LetterCase::Ignored.is_equal(word, text))),
        };
        self.names.iter().any(|name| *name != ComponentPattern::Any) && self.names.iter().all(is_there)
    }

    /// Returns true if what the pattern names by its first components lies beneath this directory;
    /// no components are the project's root. A pattern that begins with `**` may be anywhere, and
    /// is beneath the root alone.
    pub(super) fn may_be_beneath(&self, directory: &[&str]) -> bool {
        let Some(first) = self.names.get(..directory.len()) else { return false };
        let is_one = |name: &ComponentPattern| *name != ComponentPattern::Any;
        first.iter().all(is_one) && match_names(first, directory, LetterCase::Ignored)
    }

    /// Returns true if the path matches, for rules that deny: also accepts the directory of
    /// `dir/**`, and a path relative to another directory that ends in a match.
    pub(super) fn matches_or_contains(&self, names: &[&str], elsewhere: bool) -> bool {
        let directory = self
            .names
            .split_last()
            .filter(|(last, rest)| **last == ComponentPattern::Any && !rest.is_empty());
        let within = |names: &[&str]| {
            match_names(&self.names, names, LetterCase::Ignored)
                || directory.is_some_and(|(_, directory)| match_names(directory, names, LetterCase::Ignored))
        };
        if elsewhere {
            return (0..names.len()).any(|from| names.get(from..).is_some_and(within));
        }
        within(names)
    }
}

fn match_names(pattern: &[ComponentPattern], names: &[&str], case: LetterCase) -> bool {
    let is_any = |name: &ComponentPattern| *name == ComponentPattern::Any;
    match_wildcards(pattern, names, is_any, |name, given| match name {
        ComponentPattern::Any => true,
        ComponentPattern::One(text) => text.matches(given, case),
    })
}

/// Returns the components of a path in a command, and whether the path is relative to another
/// directory than the project's root.
pub(super) fn split_path(path: &str) -> (Vec<&str>, bool) {
    let mut names = Vec::new();
    let mut elsewhere = path.starts_with(['/', '~', '$']);
    for name in path.split('/') {
        match name {
            "" | "." => {}
            ".." if names.pop().is_none() => elsewhere = true,
            ".." => {}
            name => names.push(name),
        }
    }
    (names, elsewhere)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts() {
        let cases = [
            ("git", "git", true),
            ("git", "gitk", false),
            ("*", "", true),
            ("a*", "abc", true),
            ("a*c", "abcbc", true),
            ("a*c", "abcb", false),
            ("*b*b*", "abab", true),
            ("\\*", "*", true),
            ("\\*", "x", false),
            ("mcp__*__get_*", "mcp__git__hub__get_issue", true),
            ("a\\", "a\\", true),
        ];
        for (pattern, text, fits) in cases {
            assert_eq!(
                TextPattern::parse(pattern, true).matches(text, LetterCase::Exact),
                fits,
                "{pattern} {text}"
            );
        }
        assert!(TextPattern::parse("GIT", true).matches("git", LetterCase::Ignored));
        assert!(TextPattern::parse("*É", true).matches("cafÉ".to_lowercase().as_str(), LetterCase::Ignored));
    }

    #[test]
    fn paths() {
        let cases = [
            ("a.txt", "a.txt", true, true),
            ("a.txt", "sub/a.txt", false, false),
            ("**/a.txt", "sub/deep/a.txt", true, true),
            ("**/a.txt", "a.txt", true, true),
            ("src/**", "src/a/b", true, true),
            ("src/**", "src", true, true),
            ("src/**", "source", false, false),
            ("src/*.rs", "src/a.rs", true, true),
            ("src/*.rs", "src/a/b.rs", false, false),
            ("a/**/z", "a/z", true, true),
            ("a/**/z", "a/b/c/z", true, true),
            (".env", ".ENV", false, true),
        ];
        for (pattern, path, fits, touches) in cases {
            let pattern = PathPattern::parse(pattern).unwrap();
            let (names, elsewhere) = split_path(path);
            assert_eq!(pattern.matches(&names, LetterCase::Exact), fits, "{pattern:?} {path}");
            assert_eq!(pattern.matches_or_contains(&names, elsewhere), touches, "{pattern:?} {path}");
        }
        for (path, touches) in [
            ("/home/me/p/secrets/x", true),
            ("../secrets/x", true),
            ("x/secrets/y", false),
            ("secrets", true),
        ] {
            let (names, elsewhere) = split_path(path);
            assert_eq!(
                PathPattern::parse("secrets/**").unwrap().matches_or_contains(&names, elsewhere),
                touches,
                "{path}"
            );
        }
        for bad in ["", "/a", "a//b", "../a", "a/./b", "a**/b", "{a,b}", "~/x"] {
            assert!(PathPattern::parse(bad).is_err(), "{bad}");
        }
    }

    proptest::proptest! {
        #[test]
        fn what_is_rejected_at_its_ends_is_met_nowhere(
            pattern in "([abK*?é]{1,3}|[*][*])(/([abK*?é]{1,3}|[*][*])){0,2}",
            word in "[ab*?$é\u{212a}]{1,3}(/([ab*?$éK]{1,3}|[*][*]|[$]x)){0,2}",
        ) {
            let (Ok(pattern), Some(shape)) = (PathPattern::parse(&pattern), PathShape::from_word(&word)) else { return Ok(()) };
            for dots in [false, true] {
                let (fast, slow) = (pattern.match_components(&shape.pieces, dots), pattern.match_each_component(&shape.pieces, dots));
                proptest::prop_assert_eq!(fast, slow);
            }
        }

        #[test]
        fn names_have_what_was_added(paths in proptest::collection::vec("[a-cA-CÉ\u{212a}./]{0,12}", 0..8), asked in "[a-cÉ*]{0,2}") {
            let mut names = NameSet::default();
            paths.iter().for_each(|path| names.add(path));
            let all: Vec<String> = paths.iter().flat_map(|path| path.split('/')).map(str::to_lowercase).collect();
            proptest::prop_assert!(all.iter().all(|name| names.contains(&NameKey::from_lowercase(name))));
            let lower = asked.to_lowercase();
            proptest::prop_assert_eq!(names.contains(&NameKey::from_lowercase(&lower)), all.contains(&lower));
            let text = TextPattern::parse(&asked, true);
            proptest::prop_assert_eq!(names.any_matches(&text), all.iter().any(|name| text.matches(name, LetterCase::Ignored)));
        }
    }

    #[test]
    fn what_is_in_lower_case_stays_as_it_is() {
        // What `Names::any_matches` rests on.
        for character in (0..=u32::from(char::MAX)).filter_map(char::from_u32) {
            assert!(character.to_lowercase().all(|lower| lower.to_lowercase().eq([lower])), "{character:?}");
        }
    }

    #[test]
    fn what_is_escaped_stands_for_itself() {
        for text in ["a", "*", "a\\*b", "\\\\", "?x", "é*"] {
            let pattern = TextPattern::parse(&escape_pattern(text), true);
            assert_eq!(pattern.literal(), Some(text));
        }
    }
}
