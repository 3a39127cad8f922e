//! Names in a document's words that look like code.

use std::collections::BTreeSet;
use std::ops::Range;

use super::{Line, MAX_LINE, MAX_MENTIONS};

/// Bytes of a name.
const MAX_NAME: usize = 100;

/// Names in some lines that look like code, each once, in the order of the text. In backticks every name counts;
/// elsewhere those that are written as no word is: with an underscore or a capital inside, or called.
pub(super) fn of(lines: &[Line<'_>], code: &[bool], range: Range<usize>) -> Vec<String> {
    let mut known = BTreeSet::new();
    let mut found = Vec::new();
    let (lines, code) = (lines.get(range.clone()), code.get(range));
    for (line, code) in lines.unwrap_or_default().iter().zip(code.unwrap_or_default()) {
        let text = line.text.get(..line.text.floor_char_boundary(MAX_LINE)).unwrap_or_default();
        let mut quoted = *code;
        for (nth, part) in text.split('`').enumerate() {
            // Two backticks open as one does: between them is nothing.
            if nth > 0 && !*code {
                quoted = !quoted;
            }
            for (name, looks) in names(part) {
                let worth = if *code { looks } else { looks || quoted };
                if worth && found.len() < MAX_MENTIONS && known.insert(name) {
                    found.push(name.to_owned());
                }
            }
        }
    }
    found
}

/// Names in a text, and whether each looks like code by itself.
fn names(text: &str) -> impl Iterator<Item = (&str, bool)> {
    // Each piece is a name and the sign after it.
    text.split_inclusive(|c: char| !is_part(c)).filter_map(|piece| {
        let name = piece.trim_end_matches(|c: char| !is_part(c));
        let begins = name.starts_with(|c: char| c.is_alphabetic() || c == '_');
        if !begins || !(2..=MAX_NAME).contains(&name.len()) {
            return None;
        }
        let inside = name.trim_matches('_');
        let mut pairs = inside.chars().zip(inside.chars().skip(1));
        let hump = pairs.any(|(one, next)| one.is_lowercase() && next.is_uppercase());
        Some((name, piece.ends_with('(') || hump || inside.contains('_')))
    })
}

fn is_part(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}
