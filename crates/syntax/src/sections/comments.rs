//! Doc comments and docstrings as sections: they mention other symbols.

use std::ops::Range;

use super::headings::{MAX_SECTIONS, Section};
use super::mentions::Mentions;
use crate::symbol::Symbol;

/// Maximum bytes of a comment that are searched. Longer ones are licences and manuals.
const MAX_COMMENT_BYTES: usize = 16 << 10;

/// The position of the documentation of a symbol, or of the whole file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DocPosition {
    /// Position of the symbol in the outline.
    pub(crate) symbol: Option<usize>,
    /// Byte range of the comment or docstring with its signs.
    pub(crate) range: Range<usize>,
    /// The first line, 1-based.
    pub(crate) line: u32,
}

/// Returns the comments and docstrings that mention other symbols, as sections in text order.
pub(crate) fn read_doc_sections(text: &str, said: &[DocPosition], symbols: &[Symbol]) -> Vec<Section> {
    let section = |said: &DocPosition| {
        let symbol = said.symbol.and_then(|symbol| symbols.get(symbol));
        let written = text.get(said.range.clone())?;
        let near = written.get(..written.floor_char_boundary(MAX_COMMENT_BYTES)).unwrap_or(written);
        let mut mentions = Mentions::default();
        for line in near.lines() {
            // `[Name]` links in Go and Rust, `{@link Name}` in Java and JavaScript, `cref="Name"`
            // in C#.
            match quote_link_targets(line) {
                Some(quoted) => mentions.add_line(&quoted, false),
                None => mentions.add_line(line, false),
            }
        }
        let own = symbol.map(|symbol| symbol.name.as_str()).unwrap_or_default();
        mentions.names.retain(|name| name != own);
        let lines = u32::try_from(written.lines().count()).unwrap_or(u32::MAX);
        (!mentions.names.is_empty()).then(|| Section {
            heading: symbol.map(Symbol::path).unwrap_or_default(),
            level: symbol.map_or(1, |symbol| u8::try_from(symbol.parents.len() + 1).unwrap_or(u8::MAX)),
            first_line: said.line,
            lines,
            mentions: mentions.names,
        })
    };
    let mut sections: Vec<Section> = said.iter().filter_map(section).take(MAX_SECTIONS).collect();
    sections.sort_by_key(|section| section.first_line);
    sections
}

/// Returns the line with backticks around its link targets; `None` if it has no links.
fn quote_link_targets(line: &str) -> Option<String> {
    const LINE_COMMENT_SIGNS: [(&str, char); 5] =
        [("{@link ", '}'), ("{@linkplain ", '}'), ("{@code ", '}'), ("cref=\"", '"'), ("@see ", ' ')];
    let mut out: Option<String> = None;
    // Every link form has one of the two.
    let may_link = line.bytes().any(|byte| matches!(byte, b'@' | b'='));
    for (open, close) in LINE_COMMENT_SIGNS.into_iter().filter(|_| may_link) {
        let current = out.as_deref().unwrap_or(line);
        if !current.contains(open) {
            continue;
        }
        let mut made = String::with_capacity(current.len() + 4);
        let mut pieces = current.split(open);
        made.push_str(pieces.next().unwrap_or_default());
        for piece in pieces {
            let end = piece.find([close, ' ', '(']).unwrap_or(piece.len());
            let (target, rest) = piece.split_at(end);
            made.push_str(open);
            made.push('`');
            made.push_str(target);
            made.push('`');
            made.push_str(rest);
        }
        out = Some(made);
    }
    let current = out.as_deref().unwrap_or(line);
    if current.contains('[') && !current.contains('`') {
        return Some(current.replace(['[', ']'], "`"));
    }
    out
}
