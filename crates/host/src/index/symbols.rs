//! The symbols of a file, and the places that define, use or describe a name.

use journeyman_index::Snapshot;
use journeyman_index::analysis::ContentType;
use journeyman_index::docs::{Docs, SectionLocation, is_document};
use journeyman_index::query::{
    Corpus as _, Definition, QualifiedName, ScopeFit, SymbolEntry, definitions_named,
};

use super::answers::{
    FileSymbolEntry, LinkedSection, LinkedSymbol, NameUse, NamedDefinition, RefsAnswer, SectionLines,
    SymbolsAnswer,
};
use super::lines::LineReader;
use super::open::CodeIndex;

/// Returns the path of a file of the index, as it is shown.
#[must_use]
pub fn shown_path(snapshot: &Snapshot, file: u32) -> String {
    snapshot.path_of(file).map(|path| path.to_string()).unwrap_or_default()
}

/// A link between a symbol and documentation.
#[derive(Debug, Clone)]
pub enum SymbolLink {
    /// A section that describes the symbol.
    Section(LinkedSection),
    /// A symbol that the section names.
    Symbol(LinkedSymbol),
}

impl SymbolLink {
    /// Returns the link in words.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Self::Section(section) => format!("{}:{}", section.path, section.line),
            Self::Symbol(symbol) => symbol.name.clone(),
        }
    }
}

/// A symbol of a file.
#[derive(Debug)]
pub struct FileSymbol {
    /// The number of symbols that it lies within.
    pub depth: usize,
    /// Its kind.
    pub kind: &'static str,
    /// The 1-based line of its name.
    pub line: u32,
    /// Its signature, or its name.
    pub shown: String,
    /// The sections that describe it; of a document's section, the symbols that it names.
    pub links: Vec<SymbolLink>,
    name: String,
    scope: String,
    signature: String,
    first_line: u32,
    lines: u32,
    local: bool,
}

/// The symbols of a file.
#[derive(Debug)]
pub struct FileSymbols {
    /// The file's path.
    pub path: String,
    /// The symbols in the order of the file.
    pub symbols: Vec<FileSymbol>,
    /// True for a document, whose links lead to symbols.
    pub is_document: bool,
}

impl FileSymbols {
    /// Finds the symbols of a file.
    #[must_use]
    pub fn find(snapshot: &Snapshot, file: u32) -> Self {
        let mut symbols = Vec::new();
        snapshot.visit_symbols_of(file, &mut |symbol: SymbolEntry<'_>| {
            let shown = if symbol.signature.is_empty() { symbol.name } else { symbol.signature };
            symbols.push(FileSymbol {
                depth: if symbol.scope.is_empty() { 0 } else { symbol.scope.split('.').count() },
                kind: symbol.kind.name(),
                line: symbol.name_line,
                shown: shown.to_owned(),
                links: Vec::new(),
                name: symbol.name.to_owned(),
                scope: symbol.scope.to_owned(),
                signature: symbol.signature.to_owned(),
                first_line: symbol.first_line,
                lines: symbol.lines,
                local: symbol.local,
            });
        });
        let mut finder = LinkFinder::new(snapshot, file);
        for symbol in &mut symbols {
            symbol.links = finder.find(&symbol.name, &symbol.scope, symbol.first_line);
        }
        Self { path: shown_path(snapshot, file), symbols, is_document: finder.document }
    }

    /// Returns the symbols as they are printed in JSON.
    #[must_use]
    pub fn to_answer(&self) -> SymbolsAnswer {
        let symbols = self.symbols.iter().map(|symbol| {
            let (mut documentation, mut names) = (Vec::new(), Vec::new());
            for link in &symbol.links {
                match link {
                    SymbolLink::Section(section) => documentation.push(section.clone()),
                    SymbolLink::Symbol(symbol) => names.push(symbol.clone()),
                }
            }
            FileSymbolEntry {
                name: symbol.name.clone(),
                kind: symbol.kind,
                scope: symbol.scope.clone(),
                line: symbol.line,
                first_line: symbol.first_line,
                lines: symbol.lines,
                signature: symbol.signature.clone(),
                local: symbol.local,
                documentation: (!self.is_document).then_some(documentation),
                names: self.is_document.then_some(names),
            }
        });
        SymbolsAnswer { path: self.path.clone(), symbols: symbols.collect() }
    }
}

/// The places that define, use or describe a name.
#[derive(Debug)]
pub struct References {
    /// Definitions, by path and line.
    pub defined: Vec<NamedDefinition>,
    /// False if the name is qualified and no definition lies in what stands before it; then these
    /// are all definitions of the name.
    pub qualifier_found: bool,
    /// Uses, by path and line.
    pub used: Vec<NameUse>,
    /// Sections of documents and comments.
    pub documented: Vec<SectionLocation>,
    /// The number of places that were left out.
    pub more: usize,
}

impl References {
    /// Finds at most `limit` uses and `limit` sections; with `docs_only` no uses.
    #[must_use]
    pub fn find(index: &CodeIndex, name: &QualifiedName, docs_only: bool, limit: usize) -> Self {
        let snapshot = &*index.snapshot;
        let mut lines = LineReader::new(index);
        let (fit, defined) = definitions_named(snapshot, name);
        let with_text = |one: Definition| NamedDefinition {
            path: shown_path(snapshot, one.file),
            line: one.name_line,
            kind: one.kind.name(),
            text: lines.line(one.file, one.name_line),
            scope: one.scope,
        };
        let defined = defined.into_iter().map(with_text).collect();
        let mut docs = Docs::new(snapshot);
        let meant = docs.resolve_qualified_name(name);
        let mut documented = docs.sections_mentioning(name.name(), &meant);
        let mut used = Vec::new();
        if !docs_only {
            snapshot.visit_references(name.name(), |file, line| used.push((file, line)));
        }
        let mut used: Vec<(String, u32, u32)> =
            used.into_iter().map(|(file, line)| (shown_path(snapshot, file), line, file)).collect();
        used.sort();
        used.dedup();
        let more = used.len().saturating_sub(limit) + documented.len().saturating_sub(limit);
        used.truncate(limit);
        documented.truncate(limit);
        let used = used.into_iter().map(|(path, line, file)| NameUse {
            path,
            line,
            inside: snapshot.symbol_path_at(file, line),
            text: lines.line(file, line),
        });
        let used = used.collect();
        Self { defined, qualifier_found: fit != ScopeFit::None, used, documented, more }
    }

    /// Returns true if nothing defines or uses the name.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.defined.is_empty() && self.used.is_empty()
    }

    /// Returns the places as they are printed in JSON.
    #[must_use]
    pub fn to_answer(&self, snapshot: &Snapshot) -> RefsAnswer {
        RefsAnswer {
            documentation: self.documented.iter().map(|place| describe_section(snapshot, place)).collect(),
            definitions: self.defined.clone(),
            qualifier_found: self.qualifier_found,
            uses: self.used.clone(),
            more: self.more > 0,
            left_out: self.more,
        }
    }
}

/// Says why a file has no symbols.
#[must_use]
pub fn no_symbols_reason(snapshot: &Snapshot, file: u32) -> &'static str {
    match Snapshot::file(snapshot, file).map(|file| file.record.content) {
        Some(ContentType::Binary) => "it is binary",
        Some(ContentType::Huge) => "it is too long to be taken apart",
        Some(ContentType::Minified) => "a program wrote its lines",
        Some(ContentType::Unreadable) => "it can't be read",
        _ => "it has no definitions that are understood",
    }
}

/// Finds the documentation of a file's symbols, or the symbols that a document's sections name.
struct LinkFinder<'a> {
    snapshot: &'a Snapshot,
    docs: Docs<'a>,
    file: u32,
    document: bool,
}

impl<'a> LinkFinder<'a> {
    fn new(snapshot: &'a Snapshot, file: u32) -> Self {
        Self { snapshot, docs: Docs::new(snapshot), file, document: is_document(snapshot, file) }
    }

    fn find(&mut self, name: &str, scope: &str, first_line: u32) -> Vec<SymbolLink> {
        if !self.document {
            let mut symbols = self.docs.symbols_named(name, scope);
            symbols.retain(|id| self.snapshot.symbol(*id).is_some_and(|(file, _)| file == self.file));
            let places = self.docs.sections_mentioning(name, &symbols);
            return places.iter().map(|place| self.section_link(place)).collect();
        }
        let sections = self.docs.sections_of(self.file);
        let Some((_, mentions)) = sections.into_iter().find(|(place, _)| place.first_line == first_line)
        else {
            return Vec::new();
        };
        let mut meant: Vec<u32> = Vec::new();
        for mention in &mentions {
            meant.extend(
                self.docs
                    .resolve_mention(mention)
                    .iter()
                    .filter(|id| !meant.contains(id))
                    .collect::<Vec<_>>(),
            );
        }
        meant.into_iter().filter_map(|id| self.symbol_link(id)).collect()
    }

    fn symbol_link(&self, id: u32) -> Option<SymbolLink> {
        let (file, symbol) = self.snapshot.symbol(id)?;
        let scope = Snapshot::file(self.snapshot, file)?.scope(&symbol);
        let name = if scope.is_empty() { symbol.name } else { format!("{scope}.{}", symbol.name) };
        let (path, line) = (shown_path(self.snapshot, file), symbol.name_line);
        Some(SymbolLink::Symbol(LinkedSymbol { name, path, line }))
    }

    fn section_link(&self, place: &SectionLocation) -> SymbolLink {
        let (path, line) = (shown_path(self.snapshot, place.file), place.first_line);
        SymbolLink::Section(LinkedSection { path, line, headings: place.headings.clone() })
    }
}

/// Returns a section as it is printed in JSON.
pub(super) fn describe_section(snapshot: &Snapshot, place: &SectionLocation) -> SectionLines {
    SectionLines {
        path: shown_path(snapshot, place.file),
        line: place.first_line,
        lines: place.lines,
        headings: place.headings.clone(),
    }
}
