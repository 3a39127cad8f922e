//! Documentation and the symbols that it mentions, in both directions.
//!
//! Sections are parts of documents under their headings, and doc comments and docstrings. A
//! section's mentions are stored with it; the reverse direction is stored among the references,
//! under the name with a backtick before it, which no name of code has. Mentions are resolved when
//! they are asked for, so that storing them needs no other file.
//!
//! **Resolution of a mention.** Case counts. Symbols inside functions are never meant, nor are keys
//! and headings; fields, values and variables of types only with a qualifier.
//! - `till.Shop.open`: the definitions of `open` in whose path (directories, file, enclosing
//!   symbols) the qualifiers follow one another in that order. If some have them right before the
//!   name, only those. If none has them, nothing is meant: it is another project's `open`.
//! - `open`: all definitions of `open`; source before tests, examples and third-party code, and
//!   then symbols outside of types before members.
//! - More than [`MAX_MENTIONED_DEFINITIONS`] definitions left: the mention is ambiguous and not
//!   linked.

mod mention_key;
mod search;

use std::collections::BTreeMap;

use mention_key::KEY_PREFIX;
pub(crate) use mention_key::{is_mention_key, mention_references};
pub use search::{SectionHit, SectionReason, search_sections};

use crate::analysis::{Section, SymbolKind};
use crate::query::{Corpus, QualifiedName, ScopeFit, is_source, is_within_scope};
use crate::segment::DocumentId;
use crate::snapshot::Snapshot;

/// Maximum definitions that one mention may mean: overloads and platforms, not every `new`.
pub const MAX_MENTIONED_DEFINITIONS: usize = 4;
/// Maximum definitions of one name that are examined.
const MAX_EXAMINED_DEFINITIONS: usize = 500;
/// Maximum sections that mention one symbol.
const MAX_MENTIONING_SECTIONS: usize = 1_000;

/// A section and its position.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SectionLocation {
    /// Its file.
    pub file: DocumentId,
    /// The first line, 1-based.
    pub first_line: u32,
    /// Number of lines, with subsections.
    pub lines: u32,
    /// Headings from the outermost to its own; for a comment, the path of the documented symbol.
    pub headings: Vec<String>,
}

/// Returns, for each section of a document, the headings that lead to it, with its own.
#[must_use]
pub fn heading_paths(sections: &[Section]) -> Vec<Vec<String>> {
    let mut open: Vec<(u8, &str)> = Vec::new();
    let paths = sections.iter().map(|section| {
        while open.last().is_some_and(|(level, _)| *level >= section.level) {
            open.pop();
        }
        open.push((section.level, &section.heading));
        open.iter().map(|(_, heading)| (*heading).to_owned()).filter(|heading| !heading.is_empty()).collect()
    });
    paths.collect()
}

/// The documentation of one snapshot, with a cache of resolved mentions.
#[derive(Debug)]
pub struct Docs<'a> {
    snapshot: &'a Snapshot,
    meant: BTreeMap<String, Vec<DocumentId>>,
    /// Sections of files that were read, with their headings.
    sections: BTreeMap<DocumentId, Vec<(SectionLocation, Vec<String>)>>,
}

impl<'a> Docs<'a> {
    /// Creates the documentation of a snapshot.
    #[must_use]
    pub fn new(snapshot: &'a Snapshot) -> Self {
        Self { snapshot, meant: BTreeMap::new(), sections: BTreeMap::new() }
    }

    /// Returns the symbols that a mention, with dots between its parts, refers to; none if it is
    /// ambiguous.
    pub fn resolve_mention(&mut self, mention: &str) -> &[DocumentId] {
        if !self.meant.contains_key(mention) {
            let found = resolve_mention_in(self.snapshot, mention);
            self.meant.insert(mention.to_owned(), found);
        }
        self.meant.get(mention).map(Vec::as_slice).unwrap_or_default()
    }

    /// Returns the symbols with a name, in a scope if one is given: the argument of
    /// `sections_mentioning`.
    #[must_use]
    pub fn symbols_named(&self, name: &str, scope: &str) -> Vec<DocumentId> {
        let mut found = Vec::new();
        self.snapshot.visit_definitions(name, |id| {
            let fits = self.snapshot.symbol(id).is_some_and(|(file, symbol)| {
                let own = || {
                    Snapshot::file(self.snapshot, file).map(|view| view.scope(&symbol)).unwrap_or_default()
                };
                symbol.name == name && (scope.is_empty() || is_within_scope(scope, &own()))
            });
            if fits && found.len() < MAX_EXAMINED_DEFINITIONS {
                found.push(id);
            }
        });
        found.sort_unstable();
        found
    }

    /// Returns the symbols that match a qualified name best; none if no symbol has its qualifiers.
    #[must_use]
    pub fn resolve_qualified_name(&self, asked: &QualifiedName) -> Vec<DocumentId> {
        let mut found: Vec<(ScopeFit, DocumentId)> = Vec::new();
        for id in self.symbols_named(asked.name(), "") {
            let Some((file, symbol)) = self.snapshot.symbol(id) else { continue };
            let Some(view) = Snapshot::file(self.snapshot, file) else { continue };
            found.push((asked.scope_fit(view.path_bytes(), &view.scope(&symbol)), id));
        }
        let best = found.iter().map(|(fit, _)| *fit).min().filter(|best| *best != ScopeFit::None);
        found.into_iter().filter(|(fit, _)| Some(*fit) == best).map(|(_, id)| id).collect()
    }

    /// Returns the sections that mention one of these symbols, all of the same name, by path and
    /// line; documents before comments.
    pub fn sections_mentioning(&mut self, name: &str, symbols: &[DocumentId]) -> Vec<SectionLocation> {
        let mut lines: Vec<(DocumentId, u32)> = Vec::new();
        self.snapshot.visit_references(&format!("{KEY_PREFIX}{name}"), |file, line| {
            if lines.len() < MAX_MENTIONING_SECTIONS {
                lines.push((file, line));
            }
        });
        lines.sort_unstable();
        lines.dedup();
        let mut found = Vec::new();
        for (file, line) in lines {
            for (place, mentions) in self.sections_of(file) {
                let names = |mention: &&String| mention.rsplit('.').next() == Some(name);
                let mut mentions = mentions.iter().filter(names);
                if place.first_line == line
                    && mentions
                        .any(|mention| self.resolve_mention(mention).iter().any(|one| symbols.contains(one)))
                {
                    found.push(place);
                }
            }
        }
        found.sort_by_cached_key(|place| {
            let file = self.snapshot.file(place.file);
            let path = file.map(|file| file.path_bytes().to_vec()).unwrap_or_default();
            (!is_document(self.snapshot, place.file), path, place.first_line)
        });
        found.dedup();
        found
    }

    /// Returns a file's sections with their mentions.
    pub fn sections_of(&mut self, file: DocumentId) -> Vec<(SectionLocation, Vec<String>)> {
        let snapshot = self.snapshot;
        self.sections.entry(file).or_insert_with(|| read_sections(snapshot, file)).clone()
    }
}

fn read_sections(snapshot: &Snapshot, file: DocumentId) -> Vec<(SectionLocation, Vec<String>)> {
    let Some(view) = Snapshot::file(snapshot, file) else { return Vec::new() };
    let sections = view.segment().details(&view.record).sections();
    // A comment's heading is a path already.
    let paths = if is_document(snapshot, file) {
        heading_paths(&sections)
    } else {
        let own = |section: &Section| Some(section.heading.clone()).filter(|heading| !heading.is_empty());
        sections.iter().map(|section| own(section).into_iter().collect()).collect()
    };
    let places = sections.into_iter().zip(paths).map(|(section, headings)| {
        let Section { first_line, lines, mentions, .. } = section;
        (SectionLocation { file, first_line, lines, headings }, mentions)
    });
    places.collect()
}

/// Returns true if a file is a document, whose sections have headings.
#[must_use]
pub fn is_document(snapshot: &Snapshot, file: DocumentId) -> bool {
    use journeyman_syntax::language::Language;
    Snapshot::file(snapshot, file)
        .and_then(|file| file.record.language)
        .is_some_and(|language| matches!(language, Language::Markdown | Language::Rst | Language::AsciiDoc))
}

/// The match quality of a definition for a mention; greater is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct MentionMatchQuality {
    /// The qualifiers stand right before the name.
    adjacent: bool,
    source: bool,
    /// The symbol is outside of any type; only for mentions without qualifiers.
    outermost: bool,
}

/// Resolves a mention by the rule in the module's documentation.
fn resolve_mention_in(snapshot: &Snapshot, mention: &str) -> Vec<DocumentId> {
    let mut parts: Vec<&str> = mention.split('.').collect();
    let Some(name) = parts.pop() else { return Vec::new() };
    let before: Vec<&str> = parts
        .into_iter()
        .filter(|part| !matches!(*part, "self" | "this" | "cls" | "crate" | "super"))
        .collect();
    let mut ids = Vec::new();
    snapshot.visit_definitions(name, |symbol| {
        if ids.len() < MAX_EXAMINED_DEFINITIONS {
            ids.push(symbol);
        }
    });
    let fit = |id: DocumentId| {
        let (file, symbol) = snapshot.symbol(id)?;
        if symbol.name != name || symbol.local || is_never_mentioned(symbol.kind) {
            return None;
        }
        let part = matches!(symbol.kind, SymbolKind::Field | SymbolKind::Variant | SymbolKind::Property);
        if part && before.is_empty() {
            return None;
        }
        let view = Snapshot::file(snapshot, file)?;
        let scope = view.scope(&symbol);
        let path = String::from_utf8_lossy(view.path_bytes()).into_owned();
        let stem = path.rsplit_once('.').map_or(path.as_str(), |(stem, _)| stem);
        let around: Vec<&str> =
            stem.split('/').chain(scope.split('.')).filter(|part| !is_directory_file(part)).collect();
        let mut rest = around.iter();
        let ordered = before.iter().all(|part| rest.any(|other| other == part));
        let outermost = before.is_empty() && scope.is_empty();
        let source = snapshot.purpose(file).is_some_and(is_source);
        ordered.then(|| MentionMatchQuality { adjacent: around.ends_with(&before), source, outermost })
    };
    let fits: Vec<(MentionMatchQuality, DocumentId)> =
        ids.into_iter().filter_map(|id| Some((fit(id)?, id))).collect();
    let Some(best) = fits.iter().map(|(fit, _)| *fit).max() else { return Vec::new() };
    let mut meant: Vec<DocumentId> =
        fits.into_iter().filter(|(fit, _)| *fit == best).map(|(_, id)| id).collect();
    if meant.len() > MAX_MENTIONED_DEFINITIONS {
        meant.clear();
    }
    meant.sort_unstable();
    meant
}

/// Returns true for stems of files that represent their directory, such as `mod`.
fn is_directory_file(part: &str) -> bool {
    matches!(part, "" | "__init__" | "mod" | "lib" | "index" | "main")
}

/// Returns true for kinds that documentation never mentions by name.
fn is_never_mentioned(kind: SymbolKind) -> bool {
    matches!(
        kind,
        SymbolKind::Impl
            | SymbolKind::Key
            | SymbolKind::Table
            | SymbolKind::Element
            | SymbolKind::Rule
            | SymbolKind::Heading
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_lead_to_sections() {
        let section =
            |level, heading: &str| Section { level, heading: heading.to_owned(), ..Section::default() };
        let all = [section(1, ""), section(1, "A"), section(3, "B"), section(2, "C"), section(1, "D")];
        let paths: Vec<String> = heading_paths(&all).iter().map(|path| path.join("/")).collect();
        assert_eq!(paths, ["", "A", "A/B", "A/C", "D"]);
    }
}
