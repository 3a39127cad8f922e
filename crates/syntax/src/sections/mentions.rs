//! Names in a document's text that look like code.

use std::collections::BTreeSet;
use std::ops::Range;

use super::headings::{Line, MAX_LINE_BYTES, MAX_MENTIONS};

/// Maximum bytes of a name.
const MAX_NAME_BYTES: usize = 100;
/// Maximum parts of a qualified name: `a.b.c`.
const MAX_PARTS: usize = 12;

/// Returns the names in a range of lines that look like code, each once, in text order, with dots
/// between the parts of qualified names (`shop.open()`, `Shop::open`, `Shop#open`). In backticks
/// every name counts; elsewhere only names that aren't spelled like words: with an underscore or an
/// inner capital, or called.
pub(super) fn find_mentions(lines: &[Line<'_>], code: &[bool], range: Range<usize>) -> Vec<String> {
    let mut found = Mentions::default();
    let (lines, code) = (lines.get(range.clone()), code.get(range));
    for (line, code) in lines.unwrap_or_default().iter().zip(code.unwrap_or_default()) {
        found.add_line(line.text, *code);
    }
    found.names
}

/// Collects names line by line.
#[derive(Debug, Default)]
pub(crate) struct Mentions {
    known: BTreeSet<String>,
    pub(crate) names: Vec<String>,
}

impl Mentions {
    /// Adds the names of a line. In code, backticks quote nothing.
    pub(crate) fn add_line(&mut self, text: &str, code: bool) {
        let text = text.get(..text.floor_char_boundary(MAX_LINE_BYTES)).unwrap_or_default();
        let mut quoted = code;
        let mut before = None;
        for (nth, part) in text.split('`').enumerate() {
            // Double backticks open as a single one does: between them is nothing.
            if nth > 0 && !code && (nth == 1 || before != Some("")) {
                quoted = !quoted;
            }
            before = Some(part);
            let every = quoted && !code;
            for (written, looks) in names_in_text(part, every) {
                if !(looks || every) || self.names.len() >= MAX_MENTIONS {
                    continue;
                }
                let name = split_qualified_name(written).collect::<Vec<_>>().join(".");
                if !self.known.contains(&name) {
                    self.known.insert(name.clone());
                    self.names.push(name);
                }
            }
        }
    }
}

/// Returns the names in a text as written, and whether each looks like code by itself; without
/// `every`, only those that do.
fn names_in_text(text: &str, every: bool) -> impl Iterator<Item = (&str, bool)> {
    // Most words have no sign of being code.
    let may_look =
        |byte: u8| matches!(byte, b'_' | b'(' | b':') || byte.is_ascii_uppercase() || !byte.is_ascii();
    // Each piece is a name and the sign after it.
    let pieces = text.split_inclusive(|c: char| !is_name_char(c) && !is_name_separator(c));
    pieces.filter(move |piece| every || piece.bytes().any(may_look)).filter_map(|piece| {
        let whole = piece.trim_end_matches(|c: char| !is_name_char(c));
        let last = split_qualified_name(whole).last()?;
        let begins = |part: &str| part.starts_with(|c: char| c.is_alphabetic() || c == '_');
        let long = !(2..=MAX_NAME_BYTES).contains(&last.len()) || whole.len() > MAX_NAME_BYTES;
        if long || split_qualified_name(whole).count() > MAX_PARTS || !split_qualified_name(whole).all(begins)
        {
            return None;
        }
        let looks =
            piece.ends_with('(') || whole.contains("::") || split_qualified_name(whole).any(looks_like_code);
        Some((whole, looks))
    })
}

/// Splits a qualified name.
fn split_qualified_name(whole: &str) -> impl Iterator<Item = &str> {
    whole.split(is_name_separator).filter(|part| !part.is_empty())
}

fn is_name_separator(c: char) -> bool {
    matches!(c, '.' | ':' | '#')
}

/// Returns true if a name isn't spelled like a word.
fn looks_like_code(name: &str) -> bool {
    let inside = name.trim_matches('_');
    let mut pairs = inside.chars().zip(inside.chars().skip(1));
    inside.contains('_') || pairs.any(|(one, next)| one.is_lowercase() && next.is_uppercase())
}

fn is_name_char(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}
