//! A query that is one name: where it is defined.

use std::collections::BTreeSet;

use journeyman_syntax::outline::Kind;

use super::corpus::{Corpus, Like, SymbolEntry};
use super::memory::is_subsequence;
use super::signals::is_source;

/// Names that are looked at for each way of being alike.
const MAX_NAMES: usize = 400;
/// Shorter names are like everything.
const LEAST_FUZZY: usize = 3;

/// How a name is like the one that was asked for, the best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Match {
    /// Letter by letter.
    Exact,
    /// But for capitals.
    Case,
    /// It begins so.
    Prefix,
    /// The beginnings of its parts have the letters.
    Hump,
    /// One letter is wrong, missing or too many.
    Typo,
    /// It has the letters in this order.
    Subsequence,
}

impl Match {
    /// Its name, in lower case.
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
    /// How its name is like the one asked for.
    pub matched: Match,
    /// Its file.
    pub file: u32,
    /// Its name, and what it lies in.
    pub name: String,
    /// Names of what it lies in, with dots between.
    pub scope: String,
    /// What it is.
    pub kind: Kind,
    /// Its first line with its comment, counted from 1.
    pub first_line: u32,
    /// How many lines it has.
    pub lines: u32,
    /// The line that its name stands in.
    pub name_line: u32,
    /// Its beginning, on one line.
    pub signature: String,
}

/// Definitions of a name, the best first: `Type.name` and the like find what lies in such a type.
pub(super) fn definitions<C: Corpus + ?Sized>(corpus: &C, asked: &str, limit: usize) -> Vec<Definition> {
    let asked = asked.trim_end_matches("()").replace("::", ".").replace('#', ".");
    let (scope, name) = asked.rsplit_once('.').unwrap_or(("", &asked));
    let folded = name.to_lowercase();
    // What a definition is sorted by, and the definition.
    let mut found: Vec<(Key, Definition)> = Vec::new();
    let take = |folded_name: &str, fuzzy: Option<Match>, found: &mut Vec<(Key, Definition)>| {
        corpus.symbols_called(folded_name, &mut |symbol| {
            let matched = match fuzzy {
                _ if symbol.name == name => Match::Exact,
                None => Match::Case,
                Some(fuzzy) => fuzzy,
            };
            let Some(file) = corpus.file(symbol.file) else { return };
            let key = Key {
                outside: !within(scope, symbol.scope),
                matched,
                aside: !is_source(&file),
                local: symbol.local,
                minor: is_minor(symbol.kind),
                length: symbol.name.len(),
                path: file.path.to_vec(),
                line: symbol.name_line,
            };
            found.push((key, definition(&symbol, matched)));
        });
    };
    take(&folded, None, &mut found);
    if found.len() < limit && folded.len() >= LEAST_FUZZY {
        let mut names: BTreeSet<(Match, String)> = BTreeSet::new();
        let mut seen: BTreeSet<String> = BTreeSet::from([folded.clone()]);
        let ways = [
            (Match::Prefix, Like::Prefix(&folded)),
            (Match::Typo, Like::Typo(&folded)),
            (Match::Subsequence, Like::Subsequence(&folded)),
        ];
        for (matched, like) in ways {
            corpus.names_like(like, MAX_NAMES, &mut |other| {
                if seen.insert(other.to_owned()) {
                    names.insert((matched, other.to_owned()));
                }
            });
        }
        for (matched, other) in names {
            take(&other, Some(matched), &mut found);
        }
        for (key, definition) in &mut found {
            if definition.matched == Match::Subsequence && has_humps(&folded, &definition.name) {
                (key.matched, definition.matched) = (Match::Hump, Match::Hump);
            }
        }
    }
    found.sort_by(|(a, _), (b, _)| a.cmp(b));
    found.truncate(limit);
    found.into_iter().map(|(_, definition)| definition).collect()
}

/// By what definitions are sorted; in each, the lesser one comes first.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    outside: bool,
    matched: Match,
    aside: bool,
    local: bool,
    minor: bool,
    length: usize,
    path: Vec<u8>,
    line: u32,
}

/// Whether what lies in `scope` is asked for by `asked`.
fn within(asked: &str, scope: &str) -> bool {
    asked.is_empty()
        || scope == asked
        || scope.strip_suffix(asked).is_some_and(|before| before.ends_with('.'))
}

fn is_minor(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Impl | Kind::Field | Kind::Variable | Kind::Key | Kind::Table | Kind::Element | Kind::Rule
    )
}

fn definition(symbol: &SymbolEntry<'_>, matched: Match) -> Definition {
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

/// Whether the letters are the beginnings of the name's parts: each part's first letter stands in `asked`, and the rest
/// of `asked` follows within the parts.
fn has_humps(asked: &str, name: &str) -> bool {
    let mut firsts = String::new();
    let mut before = None;
    for character in name.chars() {
        let starts = match before {
            None | Some('_') => true,
            Some(before) => character.is_uppercase() && !char::is_uppercase(before),
        };
        if starts && character != '_' {
            firsts.extend(character.to_lowercase());
        }
        before = Some(character);
    }
    firsts.chars().count() > 1 && is_subsequence(&firsts, asked)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn humps_are_seen() {
        for (asked, name) in [("gun", "getUserName"), ("getusnam", "get_user_name"), ("hs", "HttpServer")] {
            assert!(has_humps(asked, name), "{asked} {name}");
        }
        for (asked, name) in [("gn", "getUserName"), ("et", "getTime"), ("op", "open")] {
            assert!(!has_humps(asked, name), "{asked} {name}");
        }
    }

    #[test]
    fn scopes_are_compared_by_their_ends() {
        assert!(within("", "A.B") && within("B", "A.B") && within("A.B", "A.B"));
        assert!(!within("B", "A.XB") && !within("A", "A.B"));
    }
}
