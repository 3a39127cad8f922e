//! Names that a text uses, and their positions.
//!
//! Calls, types, members, JSX elements, decorators, macros: every name except those of definitions.
//! Local variables and parameters are included: only the index knows whether a name is defined
//! elsewhere.

pub(crate) mod local_names;

use std::collections::HashSet;
use std::ops::Range;

use crate::symbol::Symbol;

/// Maximum references of one text. Texts with more are generated.
pub const MAX_REFERENCES: usize = 500_000;
/// Maximum bytes of a name. Hand-written names are shorter.
const MAX_NAME_BYTES: usize = 200;

/// The way in which a name is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum UseKind {
    /// By itself, or in a path.
    #[default]
    Plain = 0,
    /// Without effect on what runs: in documentation, and in Python in an annotation, where a
    /// value's type is checked, or as the name of an argument or of a function's own variable.
    Annotation = 1,
    /// As a member of something that may be a module: `shop.name`, `shop.till.name`.
    Member = 2,
    /// As a member of a value: `self.name`, `open().name`; in Python of anything that isn't
    /// imported.
    ValueMember = 3,
}

impl UseKind {
    /// All kinds.
    pub const ALL: [Self; 4] = [Self::Plain, Self::Annotation, Self::Member, Self::ValueMember];
    /// The kinds by which a value may be made of a type: all but annotations.
    pub const ALL_BUT_ANNOTATION: [Self; 3] = [Self::Plain, Self::Member, Self::ValueMember];
}

/// A name and its position.
pub(crate) struct NameNode {
    pub(crate) start: u32,
    pub(crate) end: u32,
    pub(crate) row: u32,
    pub(crate) kind: UseKind,
}

/// A use of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reference {
    /// Byte offset of its beginning.
    pub start: u32,
    /// Length in bytes.
    pub len: u16,
    /// The line, 1-based.
    pub line: u32,
    /// Position in the outline of the innermost symbol around it.
    pub inside: Option<u32>,
    /// The way in which the name is used.
    pub kind: UseKind,
}

impl Reference {
    /// Returns its byte range.
    #[must_use]
    pub fn range(&self) -> Range<usize> {
        self.start as usize..self.start as usize + usize::from(self.len)
    }

    /// Returns the name; empty if `text` isn't the text that it was found in.
    #[must_use]
    pub fn name<'t>(&self, text: &'t str) -> &'t str {
        text.get(self.range()).unwrap_or_default()
    }
}

/// Returns the references among all names of a text, in text order.
pub(crate) fn references_of(names: &[NameNode], symbols: &[Symbol], text: &str) -> Vec<Reference> {
    let mut defined: Vec<(usize, usize)> =
        symbols.iter().map(|symbol| (symbol.name_range.start, symbol.name_range.end)).collect();
    defined.sort_unstable();
    let mut defined = defined.into_iter().peekable();
    let mut references = Vec::with_capacity(names.len());
    let mut next = 0;
    let mut open: Vec<u32> = Vec::new();
    for name in names {
        let (start, end) = (name.start as usize, name.end as usize);
        while defined.next_if(|(_, last)| *last <= start).is_some() {}
        while let Some(symbol) = symbols.get(next).filter(|symbol| symbol.full.start <= start) {
            close_ended_symbols(&mut open, symbols, symbol.full.start);
            open.push(u32::try_from(next).unwrap_or(u32::MAX));
            next += 1;
        }
        close_ended_symbols(&mut open, symbols, start);
        let own = defined.peek().is_some_and(|(first, last)| *first <= start && end <= *last);
        let len = end.saturating_sub(start);
        if own || len == 0 || len > MAX_NAME_BYTES || !is_reference(text.as_bytes().get(start..end)) {
            continue;
        }
        references.push(Reference {
            start: name.start,
            len: u16::try_from(len).unwrap_or(u16::MAX),
            line: name.row.saturating_add(1),
            inside: open.last().copied(),
            kind: name.kind,
        });
    }
    references
}

/// Returns the way in which a name is used, by the text before it.
pub(crate) fn kind_by_text_before(text: &str, start: usize) -> UseKind {
    let before = text.get(..start).unwrap_or_default().trim_end();
    let Some(receiver) = before.strip_suffix('.').or_else(|| before.strip_suffix("->")) else {
        return UseKind::Plain;
    };
    let receiver = receiver.trim_end_matches(['?', '!']).trim_end();
    // `..` is a range, or a spread.
    let Some(last) = receiver.chars().next_back().filter(|last| *last != '.') else { return UseKind::Plain };
    let is_letter = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
    let word = receiver.rsplit(|c: char| !is_letter(c)).next().unwrap_or_default();
    if is_letter(last) && !matches!(word, "self" | "cls" | "this" | "super" | "$this") {
        UseKind::Member
    } else {
        UseKind::ValueMember
    }
}

/// Marks Python's members of anything that isn't imported as members of values.
pub(crate) fn mark_value_members(names: &mut [NameNode], imported: &[Range<usize>], text: &str) {
    let imported: HashSet<&str> = imported.iter().filter_map(|range| text.get(range.clone())).collect();
    for name in names.iter_mut().filter(|name| name.kind == UseKind::Member) {
        let before = text.get(..name.start as usize).unwrap_or_default().trim_end_matches('.');
        let is_chain = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
        let chain = before.rsplit(|c: char| !is_chain(c)).next().unwrap_or_default();
        // A chain over several lines, or one that begins with a call, has no name in front.
        let first = chain.split('.').next().unwrap_or_default();
        if !first.is_empty() && !imported.contains(first) {
            name.kind = UseKind::ValueMember;
        }
    }
}

fn close_ended_symbols(open: &mut Vec<u32>, symbols: &[Symbol], at: usize) {
    while open.last().and_then(|last| symbols.get(*last as usize)).is_some_and(|symbol| symbol.full.end <= at)
    {
        open.pop();
    }
}

/// Returns false for nodes that some grammars take for names: `self` and the like, `_`, or text
/// with blanks.
fn is_reference(name: Option<&[u8]>) -> bool {
    !matches!(name, None | Some(b"_" | b"self" | b"this" | b"super" | b"cls" | b"it"))
        && name.is_some_and(|name| !name.iter().any(u8::is_ascii_whitespace))
}
