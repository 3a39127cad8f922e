//! Search for the definitions of a name.

use std::collections::BTreeSet;

use journeyman_syntax::outline::SymbolKind;

use super::corpus::{Corpus, NameCondition, SymbolEntry};
use super::document::is_source;
use super::qualified_name::{QualifiedName, ScopeFit};

/// Maximum names that have the prefix, or are one letter off: the first ones of all.
const MAX_SIMILAR_NAMES: usize = 400;
/// Maximum names that only contain the letters in order, and how many of these are examined, the
/// tightest ones: most are noise.
const MAX_SUBSEQUENCE_NAMES: usize = 5_000;
const MAX_EXAMINED_SUBSEQUENCE_NAMES: usize = 100;
/// Maximum definitions that are examined for each kind of match, if no more are asked for. A common
/// name (`new`, `main`) has thousands in a large tree; those in files that define its qualifier
/// come first, and source before tests.
const MAX_EXAMINED_DEFINITIONS: usize = 256;
/// One of this many letters may be isolated: neither at the beginning of a part nor right after the
/// previous letter.
const LETTERS_PER_ISOLATED_LETTER: usize = 4;
/// Maximum characters of a name and of a query that are compared letter by letter.
const MAX_COMPARED_CHARS: usize = 100;
/// Minimum length of a name for fuzzy matches: shorter names resemble everything.
const MIN_FUZZY_LEN: usize = 3;

/// The quality of a match with the wanted name, the best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MatchQuality {
    /// The same name.
    Exact,
    /// The same name, except for upper and lower case.
    Case,
    /// The name begins with the wanted one.
    Prefix,
    /// The letters are beginnings of its parts, of the first one and further ones: `gun`, `getname`
    /// of `getUserName`.
    Hump,
    /// One letter is wrong, missing or too many, or two neighbours are swapped.
    Typo,
    /// It has the letters in this order, most of them at the beginnings of parts or one right after
    /// the other.
    Subsequence,
}

impl MatchQuality {
    /// Returns the name of the match quality, in lower case.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Case => "but for case",
            Self::Prefix => "beginning",
            Self::Hump => "first letters",
            Self::Typo => "one letter off",
            Self::Subsequence => "letters in order",
        }
    }
}

/// A definition that was found by its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition {
    /// The way in which its name matches the wanted one.
    pub matched: MatchQuality,
    /// Its file.
    pub file: u32,
    /// Its qualified name.
    pub name: String,
    /// Names of the enclosing symbols, joined by dots.
    pub scope: String,
    /// Its kind.
    pub kind: SymbolKind,
    /// Its first line, 1-based.
    pub first_line: u32,
    /// Number of lines.
    pub lines: u32,
    /// The line of its name.
    pub name_line: u32,
    /// Its beginning, on one line.
    pub signature: String,
}

/// Returns the definitions of exactly this name that agree best with its qualifiers, by path and
/// line, and their agreement: all definitions of the name, where none agrees.
pub fn definitions_named<C: Corpus + ?Sized>(
    corpus: &C,
    asked: &QualifiedName,
) -> (ScopeFit, Vec<Definition>) {
    let mut found: Vec<(ScopeFit, Vec<u8>, Definition)> = Vec::new();
    corpus.visit_symbol_entries_named(&asked.name().to_lowercase(), &mut |symbol: SymbolEntry<'_>| {
        let Some(file) = corpus.file(symbol.file).filter(|_| symbol.name == asked.name()) else { return };
        let fit = asked.scope_fit(file.path, symbol.scope);
        found.push((fit, file.path.to_vec(), to_definition(&symbol, MatchQuality::Exact)));
    });
    let best = found.iter().map(|(fit, ..)| *fit).min().unwrap_or(ScopeFit::None);
    found.retain(|(fit, ..)| *fit == best);
    found.sort_by(|(_, a, one), (_, b, other)| a.cmp(b).then(one.name_line.cmp(&other.name_line)));
    (best, found.into_iter().map(|(.., definition)| definition).collect())
}

/// Returns the definitions of a name, the best first; `Type.name`, `module::name` and the like find
/// what lies in such a type or module.
pub fn find_definitions<C: Corpus + ?Sized>(corpus: &C, asked: &str, limit: usize) -> Vec<Definition> {
    let asked = QualifiedName::parse(asked);
    let folded = asked.name().to_lowercase();
    let mut finder = DefinitionFinder {
        corpus,
        asked: &asked,
        budget: limit.max(MAX_EXAMINED_DEFINITIONS),
        found: Vec::new(),
    };
    finder.examine_names(std::iter::once(folded.as_str()), None);
    if finder.found.len() < limit && folded.len() >= MIN_FUZZY_LEN {
        finder.collect_similar(&folded, limit);
    }
    let mut found = finder.found;
    found.sort_by(|(a, _), (b, _)| a.cmp(b));
    found.truncate(limit);
    found.into_iter().map(|(_, definition)| definition).collect()
}

/// Collects definitions of a name.
struct DefinitionFinder<'a, C: ?Sized> {
    corpus: &'a C,
    asked: &'a QualifiedName,
    /// Maximum definitions that are examined for each kind of match.
    budget: usize,
    /// The sort key of each definition, and the definition.
    found: Vec<(SortKey, Definition)>,
}

impl<C: Corpus + ?Sized> DefinitionFinder<'_, C> {
    /// Collects names that are similar, one kind of match after the other.
    fn collect_similar(&mut self, folded: &str, limit: usize) {
        let corpus = self.corpus;
        let names = |like: NameCondition<'_>, seen: &mut BTreeSet<String>| {
            let mut names: Vec<String> = Vec::new();
            corpus.visit_matching_names(like, MAX_SIMILAR_NAMES, &mut |other| {
                if seen.insert(other.to_owned()) {
                    names.push(other.to_owned());
                }
            });
            names.sort_by_key(String::len);
            names
        };
        let mut seen = BTreeSet::from([folded.to_owned()]);
        let beginning = names(NameCondition::Prefix(folded), &mut seen);
        self.examine_names(beginning.iter().map(String::as_str), Some(MatchQuality::Prefix));
        // Other similar names come after them.
        if self.asked.is_bare() && self.found.len() >= limit {
            return;
        }
        let typed = names(NameCondition::Typo(folded), &mut seen);
        self.examine_names(typed.iter().map(String::as_str), Some(MatchQuality::Typo));
        let loose = names_with_letters_in_order(corpus, folded, &seen);
        self.examine_names(loose.iter().map(String::as_str), Some(MatchQuality::Subsequence));
        self.found.retain_mut(|(key, definition)| {
            if !matches!(definition.matched, MatchQuality::Subsequence | MatchQuality::Typo) {
                return true;
            }
            match letter_positions(folded, &definition.name) {
                LetterPositions::Parts => {
                    (key.matched, definition.matched) = (MatchQuality::Hump, MatchQuality::Hump)
                }
                LetterPositions::Strays(strays) if definition.matched == MatchQuality::Subsequence => {
                    key.strays = strays
                }
                LetterPositions::Noise => return definition.matched == MatchQuality::Typo,
                LetterPositions::Strays(_) => {}
            }
            true
        });
    }

    /// Examines the definitions of some names, in lower case, within the maximum.
    fn examine_names<'n>(&mut self, names: impl Iterator<Item = &'n str>, fuzzy: Option<MatchQuality>) {
        let mut left = self.budget;
        for name in names {
            let mut called: Vec<(u32, u32)> = Vec::new();
            self.corpus.visit_symbols_named(name, &mut |file, symbol| called.push((file, symbol)));
            if called.len() > left {
                self.keep_best(&mut called, left);
            }
            left -= called.len();
            for (_, symbol) in called {
                self.examine_symbol(symbol, fuzzy);
            }
            if left == 0 {
                return;
            }
        }
    }

    /// Keeps the `count` best definitions, each a file and a symbol, judged by their files.
    fn keep_best(&self, called: &mut Vec<(u32, u32)>, count: usize) {
        let outer = self.asked.last_qualifier().unwrap_or_default().to_lowercase();
        let mut outer_files = BTreeSet::new();
        if !outer.is_empty() {
            self.corpus.visit_symbols_named(&outer, &mut |file, _| {
                outer_files.insert(file);
            });
        }
        let corpus = self.corpus;
        let path = |file: u32| corpus.file(file).map(|entry| entry.path);
        // A path is only looked up to break ties.
        let mut keyed: Vec<_> = called
            .iter()
            .map(|(file, symbol)| {
                let aside = !corpus.purpose(*file).is_some_and(is_source);
                ((!outer_files.contains(file), aside), *file, *symbol)
            })
            .collect();
        let order = |a: &((bool, bool), u32, u32), b: &((bool, bool), u32, u32)| {
            a.0.cmp(&b.0).then_with(|| path(a.1).cmp(&path(b.1))).then_with(|| a.2.cmp(&b.2))
        };
        if count < keyed.len() {
            keyed.select_nth_unstable_by(count, order);
            keyed.truncate(count);
        }
        keyed.sort_unstable_by_key(|(_, _, symbol)| *symbol);
        *called = keyed.into_iter().map(|(_, file, symbol)| (file, symbol)).collect();
    }

    fn examine_symbol(&mut self, symbol: u32, fuzzy: Option<MatchQuality>) {
        let Self { corpus, asked, found, .. } = self;
        corpus.visit_symbol(symbol, &mut |symbol| {
            let matched = match fuzzy {
                _ if symbol.name == asked.name() => MatchQuality::Exact,
                None => MatchQuality::Case,
                Some(fuzzy) => fuzzy,
            };
            let Some(file) = corpus.file(symbol.file) else { return };
            let key = SortKey {
                outside: asked.scope_fit(file.path, symbol.scope),
                matched,
                strays: 0,
                aside: !corpus.purpose(symbol.file).is_some_and(is_source),
                local: symbol.local,
                minor: is_minor_kind(symbol.kind),
                length: symbol.name.len(),
                path: file.path.to_vec(),
                line: symbol.name_line,
            };
            found.push((key, to_definition(&symbol, matched)));
        });
    }
}

/// The sort key of definitions; in each field, the lesser one comes first.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct SortKey {
    outside: ScopeFit,
    matched: MatchQuality,
    strays: usize,
    aside: bool,
    local: bool,
    minor: bool,
    length: usize,
    path: Vec<u8>,
    line: u32,
}

fn is_minor_kind(kind: SymbolKind) -> bool {
    matches!(
        kind,
        SymbolKind::Impl
            | SymbolKind::Field
            | SymbolKind::Variable
            | SymbolKind::Key
            | SymbolKind::Table
            | SymbolKind::Element
            | SymbolKind::Rule
    )
}

fn to_definition(symbol: &SymbolEntry<'_>, matched: MatchQuality) -> Definition {
    Definition {
        matched,
        file: symbol.file,
        name: symbol.name.to_owned(),
        scope: symbol.scope.to_owned(),
        kind: symbol.kind,
        first_line: symbol.first_line,
        lines: symbol.lines,
        name_line: symbol.name_line,
        signature: symbol.signature.to_owned(),
    }
}

/// Returns the names that contain the letters in order, in lower case, the tightest ones.
fn names_with_letters_in_order<C: Corpus + ?Sized>(
    corpus: &C,
    folded: &str,
    seen: &BTreeSet<String>,
) -> Vec<String> {
    let mut names: Vec<(usize, usize, String)> = Vec::new();
    corpus.visit_matching_names(NameCondition::Subsequence(folded), MAX_SUBSEQUENCE_NAMES, &mut |other| {
        if !seen.contains(other) {
            // Upper case isn't known here, so the number of gaps decides.
            let interrupted = min_isolated_letters(folded, other, |_| false).unwrap_or(usize::MAX);
            names.push((interrupted, other.len(), other.to_owned()));
        }
    });
    names.sort_unstable();
    names.truncate(MAX_EXAMINED_SUBSEQUENCE_NAMES);
    names.into_iter().map(|(_, _, name)| name).collect()
}

/// The positions of letters in a name that contains them in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LetterPositions {
    /// Beginnings of its parts, of the first one and others.
    Parts,
    /// This many letters are isolated, few enough to be meant.
    Strays(usize),
    /// Anywhere, or not all there.
    Noise,
}

fn letter_positions(asked: &str, name: &str) -> LetterPositions {
    let part_starts = part_starts(name);
    let starts_part = |at: usize| part_starts.get(at).copied().unwrap_or_default();
    let letters = asked.chars().count();
    match min_isolated_letters(asked, &name.to_lowercase(), starts_part) {
        Some(0) if asked.chars().next() == name.to_lowercase().chars().next() => LetterPositions::Parts,
        Some(strays) if strays * LETTERS_PER_ISOLATED_LETTER <= letters => LetterPositions::Strays(strays),
        _ => LetterPositions::Noise,
    }
}

/// Returns, for each character of a name, whether it begins a part.
fn part_starts(name: &str) -> Vec<bool> {
    let mut before = None;
    let part_starts = name.chars().map(|character| {
        let part_starts = match before {
            None | Some('_' | '-' | '.') => true,
            Some(before) => {
                character.is_uppercase() && !char::is_uppercase(before)
                    || character.is_numeric() && !char::is_numeric(before)
            }
        };
        before = Some(character);
        part_starts
    });
    part_starts.collect()
}

/// Returns the minimum number of isolated letters when the letters are matched in order: neither
/// where a part begins, nor right after the previous letter. `None` where the name doesn't contain
/// them.
fn min_isolated_letters(asked: &str, name: &str, part_starts: impl Fn(usize) -> bool) -> Option<usize> {
    let name: Vec<char> = name.chars().take(MAX_COMPARED_CHARS).collect();
    // For each of the name's characters: the minimum with the letter so far at it.
    let mut row: Vec<Option<usize>> = vec![None; name.len()];
    for (nth, letter) in asked.chars().take(MAX_COMPARED_CHARS).enumerate() {
        let mut next = vec![None; name.len()];
        // The minimum with the previous letter anywhere before, and right before.
        let mut before = (nth == 0).then_some(0);
        let mut adjacent: Option<usize> = None;
        for (at, character) in name.iter().enumerate() {
            if *character == letter {
                let jumped =
                    before.map(|min_isolated_letters| min_isolated_letters + usize::from(!part_starts(at)));
                let found = [jumped, adjacent].into_iter().flatten().min();
                if let Some(place) = next.get_mut(at) {
                    *place = found;
                }
            }
            adjacent = row.get(at).copied().flatten();
            before = [before, adjacent].into_iter().flatten().min();
        }
        row = next;
    }
    row.into_iter().flatten().min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letter_positions_are_meant_or_noise() {
        let cases = [
            ("gun", "getUserName", LetterPositions::Parts),
            ("getusnam", "get_user_name", LetterPositions::Parts),
            ("getname", "getUserName", LetterPositions::Parts),
            ("hs", "HttpServer", LetterPositions::Parts),
            ("u8s", "utf8_size", LetterPositions::Parts),
            ("username", "getUserName", LetterPositions::Strays(0)),
            ("ainterm", "paint_terminal", LetterPositions::Strays(1)),
            // Letters in order anywhere.
            ("tern", "getUserName", LetterPositions::Noise),
            ("load", "allocate_padding", LetterPositions::Noise),
            ("parse", "compactorStyle", LetterPositions::Noise),
            ("xyz", "getUserName", LetterPositions::Noise),
        ];
        for (asked, name, expected) in cases {
            assert_eq!(letter_positions(asked, name), expected, "{asked} {name}");
        }
    }
}
