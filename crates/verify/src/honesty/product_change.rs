//! Names and files of the product that a change renamed, moved or removed.

use std::collections::{BTreeMap, BTreeSet};

use journeyman_text_diff::{DiffOp, diff_within};

use super::parsed_source::{ParsedSource, TokenKind, children};
use crate::test_files::file_name;

/// Maximum number of changed tokens of a pair of files that are aligned with each other.
const MAX_CHANGED_TOKENS: usize = 4_000;
/// Maximum number of removed or added files that are compared with each other.
const MAX_MOVE_CANDIDATES: usize = 60;
/// Minimum share of words that a moved file has in common with its old text.
const MIN_SIMILARITY: f64 = 0.5;
/// Votes for a renaming by a place in the product; a place in a test has one vote.
const PRODUCT_VOTES: usize = 100;
/// Keywords of languages, which no name is renamed to.
const KEYWORDS: [&str; 46] = [
    "return",
    "if",
    "else",
    "elif",
    "for",
    "while",
    "def",
    "fn",
    "func",
    "function",
    "class",
    "struct",
    "enum",
    "trait",
    "interface",
    "impl",
    "module",
    "const",
    "let",
    "var",
    "val",
    "static",
    "pub",
    "public",
    "private",
    "import",
    "from",
    "use",
    "package",
    "self",
    "this",
    "super",
    "true",
    "false",
    "True",
    "False",
    "None",
    "null",
    "nil",
    "and",
    "or",
    "not",
    "in",
    "is",
    "new",
    "end",
];

/// A source with its path.
pub(super) type SourceAtPath<'a, 't> = (&'a str, &'a ParsedSource<'t>);
/// A file before and after a change.
pub(super) type FilePair<'a, 't> = (Option<SourceAtPath<'a, 't>>, Option<SourceAtPath<'a, 't>>);

/// The renamed, moved and removed names of the product.
#[derive(Default)]
pub(super) struct ProductChange<'t> {
    /// Words that the changed files no longer have.
    lost: BTreeSet<&'t str>,
    new_words: BTreeSet<&'t str>,
    votes: BTreeMap<(&'t str, &'t str), usize>,
    /// Names of parameters before the change, with the names that replaced them.
    parameters: BTreeMap<&'t str, &'t str>,
    /// Names of removed files and directories.
    gone_parts: BTreeSet<String>,
    /// Modules that moved: parts of the path before and after.
    moved: Vec<(Vec<String>, Vec<String>)>,
}

impl<'t> ProductChange<'t> {
    /// Compares the files of the product.
    pub(super) fn from_files(files: &[FilePair<'_, 't>]) -> Self {
        let words = |source: &ParsedSource<'t>| -> Vec<&'t str> {
            source.tokens.iter().filter(|it| it.kind == TokenKind::Word).map(|it| it.text).collect()
        };
        let mut change = Self::default();
        let mut old_words: BTreeSet<&str> = BTreeSet::new();
        for (old, new) in files {
            old_words.extend(old.iter().flat_map(|(_, source)| words(source)));
            change.new_words.extend(new.iter().flat_map(|(_, source)| words(source)));
        }
        change.lost = old_words.difference(&change.new_words).copied().collect();
        for (old, new) in pair_files(files) {
            change.add_votes(old.1, new.1, PRODUCT_VOTES);
            change.add_renamed_parameters(old.1, new.1);
            if old.0 != new.0 {
                change.moved.push((module_parts(old.0), module_parts(new.0)));
            }
        }
        for (path, _) in files.iter().filter(|(_, new)| new.is_none()).filter_map(|(old, _)| *old) {
            change.gone_parts.extend(module_parts(path));
        }
        change
    }

    /// Counts which words of `old` became which words of `new`, if the product no longer has the
    /// old word and has the new one.
    pub(super) fn add_test_votes(&mut self, old: &ParsedSource<'t>, new: &ParsedSource<'t>) {
        self.add_votes(old, new, 1);
    }

    fn add_votes(&mut self, old: &ParsedSource<'t>, new: &ParsedSource<'t>, votes: usize) {
        let code = |source: &ParsedSource<'t>| -> Vec<(&'t str, bool)> {
            let tokens = source.tokens.iter().filter(|token| token.kind != TokenKind::Comment);
            tokens.map(|token| (token.text, token.kind == TokenKind::Word)).collect()
        };
        let (old, new) = (code(old), code(new));
        for op in diff_within(&old, &new, MAX_CHANGED_TOKENS) {
            let DiffOp::Replace { old_index, old_len, new_index, new_len } = op else { continue };
            if old_len != new_len {
                continue;
            }
            for (one, other) in old.iter().skip(old_index).zip(new.iter().skip(new_index)).take(old_len) {
                let is_renaming = one.1
                    && other.1
                    && self.lost.contains(one.0)
                    && self.new_words.contains(other.0)
                    && !KEYWORDS.contains(&other.0);
                if is_renaming {
                    *self.votes.entry((one.0, other.0)).or_insert(0) += votes;
                }
            }
        }
    }

    /// Records renamed parameters, even if their old names still occur elsewhere.
    fn add_renamed_parameters(&mut self, old: &ParsedSource<'t>, new: &ParsedSource<'t>) {
        let (old, new) = (parameters_of(old), parameters_of(new));
        for op in diff_within(&old, &new, MAX_CHANGED_TOKENS) {
            let DiffOp::Replace { old_index, old_len, new_index, new_len } = op else { continue };
            if old_len != new_len {
                continue;
            }
            for (one, other) in old.iter().skip(old_index).zip(new.iter().skip(new_index)).take(old_len) {
                if !old.iter().any(|it| it == other) && !new.contains(one) {
                    self.parameters.insert(one, other);
                }
            }
        }
    }

    /// Returns the current name of a parameter, for a call with named arguments.
    pub(super) fn renamed_parameter(&self, name: &str) -> Option<&'t str> {
        self.parameters.get(name).copied()
    }

    /// Returns the new name of each renamed word, as in most places.
    pub(super) fn renamed_words(&self) -> BTreeMap<&str, &str> {
        let mut by_votes: Vec<_> = self.votes.iter().map(|(pair, votes)| (*votes, *pair)).collect();
        by_votes.sort_by(|one, other| other.0.cmp(&one.0).then(one.1.cmp(&other.1)));
        let mut names: BTreeMap<&str, &str> = BTreeMap::new();
        for (_, (old, new)) in by_votes {
            names.entry(old).or_insert(new);
        }
        for (old, new) in &self.moved {
            let (Some(old), Some(new)) = (old.last(), new.last()) else { continue };
            if old != new && !self.new_words.contains(old.as_str()) {
                names.entry(old).or_insert(new);
            }
        }
        names
    }

    /// Returns true if the product had a word that it no longer has under any name.
    pub(super) fn has_dropped(&self, word: &str) -> bool {
        self.lost.contains(word) && !self.votes.keys().any(|(old, _)| *old == word)
    }

    /// Returns true if a text names a removed name or a removed file of the product.
    pub(super) fn has_lost_name(&self, text: &str) -> bool {
        text.split(|c: char| !c.is_alphanumeric() && c != '_')
            .any(|word| self.lost.contains(word) || self.gone_parts.contains(word))
    }

    /// Returns modules that moved, as dotted names before and after.
    pub(super) fn moved_modules(&self) -> Vec<(String, String)> {
        self.moved.iter().map(|(old, new)| (old.join("."), new.join("."))).collect()
    }
}

/// Returns the words of all lists of parameters, in order.
fn parameters_of<'t>(source: &ParsedSource<'t>) -> Vec<&'t str> {
    let mut found = Vec::new();
    let mut left: Vec<_> = source.tree.iter().map(|tree| tree.root()).collect();
    while let Some(node) = left.pop() {
        if node.kind().ends_with("parameters") || node.kind().ends_with("parameter_list") {
            let words = source.tokens_of_node(node).iter().filter(|token| token.kind == TokenKind::Word);
            found.extend(words.map(|token| token.text));
        } else {
            left.extend(children(node).into_iter().rev());
        }
    }
    found
}

/// Returns the parts of a module's name by its path, without the extension and without file names
/// that stand for their directory.
fn module_parts(path: &str) -> Vec<String> {
    let stem = path.rsplit_once('.').map_or(path, |(stem, _)| stem);
    let mut parts: Vec<String> = stem.split('/').map(str::to_owned).collect();
    if parts.len() > 1 && parts.last().is_some_and(|it| matches!(it.as_str(), "__init__" | "mod" | "index")) {
        parts.pop();
    }
    if parts.len() > 1 && parts.first().is_some_and(|it| it == "src") {
        parts.remove(0);
    }
    parts
}

/// Pairs the old and new texts of files: by path, else a removed file with the most similar added
/// one.
pub(super) fn pair_files<'a, 't>(
    files: &[FilePair<'a, 't>],
) -> Vec<(SourceAtPath<'a, 't>, SourceAtPath<'a, 't>)> {
    let mut pairs: Vec<_> = files.iter().filter_map(|(old, new)| Some(((*old)?, (*new)?))).collect();
    let gone =
        files.iter().filter(|(_, new)| new.is_none()).filter_map(|(old, _)| *old).take(MAX_MOVE_CANDIDATES);
    let came: Vec<_> = files
        .iter()
        .filter(|(old, _)| old.is_none())
        .filter_map(|(_, new)| Some((new.as_ref()?, distinct_words(new.as_ref()?.1))))
        .take(MAX_MOVE_CANDIDATES)
        .collect();
    let mut taken = BTreeSet::new();
    for old in gone {
        let words = distinct_words(old.1);
        let extension = |path: &str| path.rsplit_once('.').map(|(_, end)| end.to_owned());
        let scored = came
            .iter()
            .enumerate()
            .filter(|(at, (new, _))| !taken.contains(at) && extension(new.0) == extension(old.0));
        let scored = scored.filter_map(|(at, (new, other))| {
            let similarity = similarity(&words, other);
            let is_named_so = file_name(new.0) == file_name(old.0);
            (similarity >= MIN_SIMILARITY).then_some((is_named_so, similarity, at))
        });
        let best = scored.max_by(|one, other| one.0.cmp(&other.0).then(one.1.total_cmp(&other.1)));
        if let Some((_, _, at)) = best
            && let Some((new, _)) = came.get(at)
        {
            taken.insert(at);
            pairs.push((old, **new));
        }
    }
    pairs
}

fn distinct_words<'t>(source: &ParsedSource<'t>) -> BTreeSet<&'t str> {
    let tokens = source.tokens.iter().filter(|it| it.kind == TokenKind::Word || it.is_literal());
    tokens.map(|token| token.text).collect()
}

/// Returns the share of words that two files have in common, 0 to 1.
#[allow(clippy::cast_precision_loss, reason = "counts of tokens are far below 2^52")]
fn similarity(one: &BTreeSet<&str>, other: &BTreeSet<&str>) -> f64 {
    let total = one.len() + other.len();
    if total == 0 { 1.0 } else { 2.0 * one.intersection(other).count() as f64 / total as f64 }
}
