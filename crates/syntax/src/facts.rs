//! All that one file's text tells, from one parse and one walk.
//!
//! ```
//! use journeyman_syntax::{facts::read, language::Language};
//!
//! # if Language::Python.is_built_in() {
//! let text = "from .shop import Shop\n\ndef open():\n    \"\"\"Opens it.\"\"\"\n    return Shop()\n";
//! let facts = read(Language::Python, text).unwrap();
//! assert_eq!(facts.imports[0].target, "shop");
//! assert_eq!(facts.symbols[0].doc, "Opens it.");
//! let last = facts.references.last().unwrap();
//! assert_eq!((last.name(text), last.line, last.inside), ("Shop", 5, Some(0)));
//! # }
//! ```

use tree_sitter::Node;

use crate::doc;
use crate::imports::Import;
use crate::language::Language;
use crate::outline::{Symbol, symbols};
use crate::parse::{self, Tree, Unparsed};
use crate::references::{Reference, used};
use crate::sections::{self, Said, Section};
use crate::walk::{Wanted, walk};

/// What a text defines, uses, brings in and says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Facts {
    /// What it defines, in the order of the text, outer ones before inner ones.
    pub symbols: Vec<Symbol>,
    /// Names that it uses, in the order of the text.
    pub references: Vec<Reference>,
    /// What it brings in.
    pub imports: Vec<Import>,
    /// Its parts, if it is a document; else its doc comments and docstrings that name other things.
    pub sections: Vec<Section>,
    /// A part of it isn't what the language expects.
    pub broken: bool,
}

/// What a text tells, parsed for that alone.
///
/// # Errors
/// [`Unparsed`] as [`parse::parse`] gives it. Documents and SQL, which are read without a grammar, are only refused
/// where they are too long.
pub fn read(language: Language, text: &str) -> Result<Facts, Unparsed> {
    if text.len() > parse::MAX_BYTES {
        return Err(Unparsed::TooLong);
    }
    if let Some(facts) = sections::read(language, text) {
        return Ok(facts);
    }
    parse::looked_at(language, text, |root| of(language, root, text))?.ok_or(Unparsed::TooDeep)
}

/// What a text tells whose tree is there already.
#[must_use]
pub fn facts(tree: &Tree, text: &str) -> Facts {
    of(tree.language(), tree.root(), text).unwrap_or_default()
}

fn of(language: Language, root: Node<'_>, text: &str) -> Option<Facts> {
    let walked = walk(language, root, text, Wanted::All)?;
    let (symbols, mut said) = symbols(language, walked.found, &walked.leading, &walked.marks, text);
    let top = doc::of_text(language, root, &walked.leading, &symbols, text);
    said.extend(top.map(|range| Said { symbol: None, line: line_of(text, range.start), range }));
    let references = used(&walked.names, &symbols, text);
    let sections = sections::of_comments(text, &said, &symbols);
    Some(Facts { symbols, references, imports: walked.imports, sections, broken: root.has_error() })
}

/// The line of a place near the beginning, counted from 1.
fn line_of(text: &str, at: usize) -> u32 {
    let before = text.get(..at).unwrap_or_default();
    u32::try_from(before.bytes().filter(|byte| *byte == b'\n').count() + 1).unwrap_or(u32::MAX)
}
