//! The symbols of a file, and the places that define, use or describe a name.

use journeyman_index::Snapshot;
use journeyman_index::analysis::Content;
use journeyman_index::docs::{Docs, SectionPlace, is_document};
use journeyman_index::query::{Corpus as _, SymbolEntry};
use serde_json::{Value, json};

/// Returns the path of a file of the index, as it is shown.
#[must_use]
pub fn shown_path(snapshot: &Snapshot, file: u32) -> String {
    snapshot.path_of(file).map(|path| path.to_string()).unwrap_or_default()
}

/// A link between a symbol and documentation.
#[derive(Debug)]
pub struct SymbolLink {
    /// The link as JSON.
    pub json: Value,
    /// The link in words.
    pub text: String,
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
    pub signature: String,
    /// The sections that describe it; of a document's section, the symbols that it names.
    pub links: Vec<SymbolLink>,
    json: Value,
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
        let mut entries = Vec::new();
        snapshot.visit_symbols_of(file, &mut |symbol: SymbolEntry<'_>| {
            let depth = if symbol.scope.is_empty() { 0 } else { symbol.scope.split('.').count() };
            let shown = if symbol.signature.is_empty() { symbol.name } else { symbol.signature };
            let own = (symbol.name.to_owned(), symbol.scope.to_owned(), symbol.first_line);
            let (kind, line, signature) = (symbol.kind.name(), symbol.name_line, shown.to_owned());
            let json = symbol_to_json(&symbol);
            entries.push((own, FileSymbol { depth, kind, line, signature, links: Vec::new(), json }));
        });
        let mut finder = LinkFinder::new(snapshot, file);
        let symbols = entries.into_iter().map(|((name, scope, first_line), symbol)| FileSymbol {
            links: finder.find(&name, &scope, first_line),
            ..symbol
        });
        let symbols = symbols.collect();
        Self { path: shown_path(snapshot, file), symbols, is_document: finder.document }
    }

    /// Returns the symbols as JSON.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let key = if self.is_document { "names" } else { "documentation" };
        let symbols = self.symbols.iter().map(|symbol| {
            let mut object = symbol.json.clone();
            if let Some(fields) = object.as_object_mut() {
                fields.insert(key.to_owned(), symbol.links.iter().map(|link| link.json.clone()).collect());
            }
            object
        });
        json!({"path": self.path, "symbols": symbols.collect::<Vec<_>>()})
    }
}

/// The places that define, use or describe a name.
#[derive(Debug)]
pub struct References {
    /// Definitions: path, line, kind, scope.
    pub defined: Vec<(String, u32, &'static str, String)>,
    /// Uses: path, line, and the symbol that they are in.
    pub used: Vec<(String, u32, Option<String>)>,
    /// Sections of documents and comments.
    pub documented: Vec<SectionPlace>,
    /// The number of places that were left out.
    pub more: usize,
}

impl References {
    /// Finds at most `limit` uses and `limit` sections; with `docs_only` no uses.
    #[must_use]
    pub fn find(snapshot: &Snapshot, name: &str, scope: &str, docs_only: bool, limit: usize) -> Self {
        let defined = find_definitions(snapshot, name, scope);
        let mut docs = Docs::new(snapshot);
        let meant = docs.symbols_called(name, scope);
        let mut documented = docs.sections_mentioning(name, &meant);
        let mut used = Vec::new();
        if !docs_only {
            snapshot.visit_references(name, |file, line| used.push((file, line)));
        }
        let mut used: Vec<(String, u32, u32)> =
            used.into_iter().map(|(file, line)| (shown_path(snapshot, file), line, file)).collect();
        used.sort();
        used.dedup();
        let more = used.len().saturating_sub(limit) + documented.len().saturating_sub(limit);
        used.truncate(limit);
        documented.truncate(limit);
        let used: Vec<(String, u32, Option<String>)> =
            used.into_iter().map(|(path, line, file)| (path, line, snapshot.symbol_at(file, line))).collect();
        Self { defined, used, documented, more }
    }

    /// Returns true if nothing defines or uses the name.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.defined.is_empty() && self.used.is_empty()
    }

    /// Returns the places as JSON.
    #[must_use]
    pub fn to_json(&self, snapshot: &Snapshot) -> Value {
        let defined = self.defined.iter().map(
            |(path, line, kind, scope)| json!({"path": path, "line": line, "kind": kind, "scope": scope}),
        );
        let used = self
            .used
            .iter()
            .map(|(path, line, inside)| json!({"path": path, "line": line, "inside": inside}));
        let documented = sections_to_json(snapshot, &self.documented);
        json!({
            "definitions": defined.collect::<Vec<_>>(), "uses": used.collect::<Vec<_>>(),
            "documentation": documented, "more": self.more,
        })
    }
}

/// Says why a file has no symbols.
#[must_use]
pub fn no_symbols_reason(snapshot: &Snapshot, file: u32) -> &'static str {
    match Snapshot::file(snapshot, file).map(|file| file.record.content) {
        Some(Content::Binary) => "it is binary",
        Some(Content::Huge) => "it is too long to be taken apart",
        Some(Content::Minified) => "a program wrote its lines",
        Some(Content::Unreadable) => "it can't be read",
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
            let mut symbols = self.docs.symbols_called(name, scope);
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
        let value = json!({"name": name, "path": shown_path(self.snapshot, file), "line": symbol.name_line});
        Some(SymbolLink { json: value, text: name })
    }

    fn section_link(&self, place: &SectionPlace) -> SymbolLink {
        let path = shown_path(self.snapshot, place.file);
        let text = format!("{path}:{}", place.first_line);
        SymbolLink { json: json!({"path": path, "line": place.first_line, "headings": place.headings}), text }
    }
}

fn symbol_to_json(symbol: &SymbolEntry<'_>) -> Value {
    json!({
        "name": symbol.name, "kind": symbol.kind.name(), "scope": symbol.scope, "line": symbol.name_line,
        "first_line": symbol.first_line, "lines": symbol.lines, "signature": symbol.signature, "local": symbol.local,
    })
}

/// Returns the definitions of a name within a scope: path, line, kind, scope.
fn find_definitions(
    snapshot: &Snapshot,
    name: &str,
    scope: &str,
) -> Vec<(String, u32, &'static str, String)> {
    let mut defined = Vec::new();
    snapshot.symbols_called(&name.to_lowercase(), &mut |symbol: SymbolEntry<'_>| {
        if symbol.name == name && symbol.is_in(scope) {
            let path = shown_path(snapshot, symbol.file);
            defined.push((path, symbol.name_line, symbol.kind.name(), symbol.scope.to_owned()));
        }
    });
    defined.sort();
    defined
}

fn sections_to_json(snapshot: &Snapshot, places: &[SectionPlace]) -> Vec<Value> {
    let one = |place: &SectionPlace| {
        let path = shown_path(snapshot, place.file);
        json!({"path": path, "line": place.first_line, "lines": place.lines, "headings": place.headings})
    };
    places.iter().map(one).collect()
}
