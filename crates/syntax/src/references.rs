//! Names that a text uses, and where.
//!
//! Calls, types, members, elements of JSX, decorators, macros: every name but those of definitions themselves. Variables
//! and parameters of functions are among them: whether a name means something that is defined elsewhere shows only
//! where that is known.

use std::ops::Range;

use crate::outline::Symbol;
use crate::walk::Name;

/// Names of one text: what has more is generated.
pub const MAX_REFERENCES: usize = 500_000;
/// Bytes of a name: nobody writes a longer one.
const MAX_NAME: usize = 200;

/// A name that is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reference {
    /// Where in the text it begins, in bytes.
    pub start: u32,
    /// Its bytes.
    pub len: u16,
    /// The line, counted from 1.
    pub line: u32,
    /// Which symbol of the outline it stands in, the innermost one.
    pub inside: Option<u32>,
}

impl Reference {
    /// Where in the text it is.
    #[must_use]
    pub fn range(&self) -> Range<usize> {
        self.start as usize..self.start as usize + usize::from(self.len)
    }

    /// The name. Empty where the text isn't the one that it was found in.
    #[must_use]
    pub fn name<'t>(&self, text: &'t str) -> &'t str {
        text.get(self.range()).unwrap_or_default()
    }
}

/// Names that are used, of all that there are in the order of the text.
pub(crate) fn used(names: &[Name], symbols: &[Symbol], text: &str) -> Vec<Reference> {
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
            close(&mut open, symbols, symbol.full.start);
            open.push(u32::try_from(next).unwrap_or(u32::MAX));
            next += 1;
        }
        close(&mut open, symbols, start);
        let own = defined.peek().is_some_and(|(first, last)| *first <= start && end <= *last);
        let len = end.saturating_sub(start);
        if own || len == 0 || len > MAX_NAME || !worth_it(text.as_bytes().get(start..end)) {
            continue;
        }
        references.push(Reference {
            start: name.start,
            len: u16::try_from(len).unwrap_or(u16::MAX),
            line: name.row.saturating_add(1),
            inside: open.last().copied(),
        });
    }
    references
}

fn close(open: &mut Vec<u32>, symbols: &[Symbol], at: usize) {
    while open.last().and_then(|last| symbols.get(*last as usize)).is_some_and(|symbol| symbol.full.end <= at)
    {
        open.pop();
    }
}

/// Not what some grammars take for a name: `self` and its like, `_`, or something with blanks in it.
fn worth_it(name: Option<&[u8]>) -> bool {
    !matches!(name, None | Some(b"_" | b"self" | b"this" | b"super" | b"cls" | b"it"))
        && name.is_some_and(|name| !name.iter().any(u8::is_ascii_whitespace))
}
