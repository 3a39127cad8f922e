//! The analysis of one file's text, from one parse and one walk.
//!
//! ```
//! use journeyman_syntax::{analysis::analyse, language::Language};
//!
//! # if Language::Python.is_built_in() {
//! let text =
//!     "from .shop import Shop\n\ndef open():\n    \"\"\"Opens it.\"\"\"\n    return Shop()\n";
//! let analysis = analyse(Language::Python, text).unwrap();
//! assert_eq!(analysis.imports[0].target, "shop");
//! assert_eq!(analysis.symbols[0].doc, "Opens it.");
//! let last = analysis.references.last().unwrap();
//! assert_eq!((last.name(text), last.line, last.inside), ("Shop", 5, Some(0)));
//! # }
//! ```

use tree_sitter::Node;

use crate::c_macros::macros_around_declarations;
use crate::doc_comments;
use crate::imports::finish_path_uses;
use crate::language::Language;
use crate::outline::build_symbols;
use crate::parse::{self, ParseError, Tree};
use crate::references::local_names::mark_local_names;
use crate::references::{MAX_REFERENCES, NameNode, UseKind, mark_value_members, references_of};
use crate::sections::{self, DocPosition};
pub use crate::syntax_analysis::SyntaxAnalysis;
use crate::walk::{WalkScope, walk_tree};

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
    let mut walked = walk_tree(language, root, text, WalkScope::All)?;
    add_blanked_macros(language, text, &mut walked.names);
    if language == Language::Python {
        mark_value_members(&mut walked.names, &walked.imported, text);
        mark_local_names(&mut walked.names, walked.locals, text);
    }
    let (symbols, mut said) = build_symbols(language, walked.found, &walked.leading, &walked.markers, text);
    let top = doc_comments::file_doc_range(language, root, &walked.leading, &symbols, text);
    said.extend(top.map(|range| DocPosition { symbol: None, line: line_at(text, range.start), range }));
    let references = references_of(&walked.names, &symbols, text);
    let sections = sections::of_comments(text, &said, &symbols);
    let (imports, broken) = (walked.imports, root.has_error());
    let path_uses = finish_path_uses(walked.path_uses, &imports);
    Some(SyntaxAnalysis { symbols, references, imports, path_uses, sections, broken })
}

/// Adds the names of macros that were blanked before parsing.
fn add_blanked_macros(language: Language, text: &str, names: &mut Vec<NameNode>) {
    let blanked = macros_around_declarations(language, text);
    if blanked.is_empty() {
        return;
    }
    let (mut row, mut before) = (0, 0);
    for range in blanked {
        let between = text.get(before..range.start).unwrap_or_default();
        row += between.bytes().filter(|byte| *byte == b'\n').count();
        before = range.start;
        let name = text.get(range.clone()).unwrap_or_default();
        let len = name.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(name.len());
        let small = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let (start, end) = (small(range.start), small(range.start + len));
        names.push(NameNode { start, end, row: small(row), kind: UseKind::Plain });
    }
    names.sort_by_key(|name| name.start);
    names.truncate(MAX_REFERENCES);
}

/// Returns the line of a position near the beginning, 1-based.
fn line_at(text: &str, at: usize) -> u32 {
    let before = text.get(..at).unwrap_or_default();
    u32::try_from(before.bytes().filter(|byte| *byte == b'\n').count() + 1).unwrap_or(u32::MAX)
}
