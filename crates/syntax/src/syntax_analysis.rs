//! The result of analysing a text.

use crate::imports::Import;
use crate::references::Reference;
use crate::sections::Section;
use crate::symbol::Symbol;

/// Symbols, references, imports and sections of one text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SyntaxAnalysis {
    /// Its symbols in text order, outer ones before inner ones.
    pub symbols: Vec<Symbol>,
    /// Its references in text order.
    pub references: Vec<Reference>,
    /// Its imports.
    pub imports: Vec<Import>,
    /// Paths in code by which it names something of another module without an import, each once;
    /// of Rust and PHP.
    pub path_uses: Vec<Import>,
    /// The sections of a document; for code, the doc comments and docstrings that mention other
    /// symbols.
    pub sections: Vec<Section>,
    /// True if a part of it isn't valid in the language.
    pub broken: bool,
}
