//! Everything that one file's text tells, from one parse and one walk.
//!
//! ```
//! use journeyman_syntax::{analysis::analyse, language::Language};
//!
//! # if Language::Python.is_built_in() {
//! let text = "from .shop import Shop\n\ndef open():\n    \"\"\"Opens it.\"\"\"\n    return Shop()\n";
//! let analysis = analyse(Language::Python, text).unwrap();
//! assert_eq!(analysis.imports[0].target, "shop");
//! assert_eq!(analysis.symbols[0].doc, "Opens it.");
//! let last = analysis.references.last().unwrap();
//! assert_eq!((last.name(text), last.line, last.inside), ("Shop", 5, Some(0)));
//! # }
//! ```

use tree_sitter::Node;

use crate::doc;
use crate::imports::Import;
use crate::language::Language;
use crate::outline::{Symbol, build_symbols};
use crate::parse::{self, ParseError, Tree};
use crate::references::{Reference, references_of};
use crate::sections::{self, DocPosition, Section};
use crate::walk::{WalkScope, walk};

/// Symbols, references, imports and sections of one text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SyntaxAnalysis {
    /// Its symbols in text order, outer ones before inner ones.
    pub symbols: Vec<Symbol>,
    /// Its references in text order.
    pub references: Vec<Reference>,
    /// Its imports.
    pub imports: Vec<Import>,
    /// The sections of a document; for code, the doc comments and docstrings that mention other
    /// symbols.
    pub sections: Vec<Section>,
    /// True if a part of it isn't valid in the language.
    pub broken: bool,
}

/// Parses and analyses a text.
///
/// # Errors
/// [`ParseError`] as [`parse::parse`] returns it. Documents and SQL, which are read without a
/// grammar, are only refused where they are too long.
pub fn analyse(language: Language, text: &str) -> Result<SyntaxAnalysis, ParseError> {
    if text.len() > parse::MAX_BYTES {
        return Err(ParseError::TooLong);
    }
    if let Some(analysis) = sections::analyse(language, text) {
        return Ok(analysis);
    }
    let tree = parse::parse_at_any_depth(language, text)?;
    analyse_node(language, tree.root(), text).ok_or(ParseError::TooDeep)
}

/// Analyses a text whose tree exists already.
#[must_use]
pub fn analyse_tree(tree: &Tree, text: &str) -> SyntaxAnalysis {
    analyse_node(tree.language(), tree.root(), text).unwrap_or_default()
}

fn analyse_node(language: Language, root: Node<'_>, text: &str) -> Option<SyntaxAnalysis> {
    let walked = walk(language, root, text, WalkScope::All)?;
    let (symbols, mut said) = build_symbols(language, walked.found, &walked.leading, &walked.markers, text);
    let top = doc::file_doc_range(language, root, &walked.leading, &symbols, text);
    said.extend(top.map(|range| DocPosition { symbol: None, line: line_at(text, range.start), range }));
    let references = references_of(&walked.names, &symbols, text);
    let sections = sections::of_comments(text, &said, &symbols);
    Some(SyntaxAnalysis { symbols, references, imports: walked.imports, sections, broken: root.has_error() })
}

/// Returns the line of a position near the beginning, 1-based.
fn line_at(text: &str, at: usize) -> u32 {
    let before = text.get(..at).unwrap_or_default();
    u32::try_from(before.bytes().filter(|byte| *byte == b'\n').count() + 1).unwrap_or(u32::MAX)
}
