//! A mutation of one place in a file, and the results of a scan of a file.

use std::ops::Range;

use journeyman_protocol::{MutationKind, RelPath, Survivor};

/// Maximum number of characters of code that a survivor quotes.
const MAX_QUOTED_CHARS: usize = 120;

/// A small change of a file that good tests notice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mutant {
    /// The file.
    pub path: RelPath,
    /// The replaced bytes.
    pub range: Range<usize>,
    /// The text in their place.
    pub replacement: String,
    /// 1-based line of the first replaced byte.
    pub line: u32,
    /// The kind of mutation.
    pub kind: MutationKind,
    /// The function around the mutation.
    pub function: Option<String>,
    /// The test that would notice the mutation, in words.
    pub proposal: String,
    /// The statement around the mutation, by its index in the scan of its file.
    pub statement: Option<usize>,
    /// The bytes that no longer run, if the mutation makes a condition always false.
    pub disables: Option<Range<usize>>,
    /// A mutation that ends the program where this mutation could make a difference. If tests
    /// survive this one and notice the probe, they reach the place and find no difference there.
    pub probe: Option<Box<Mutant>>,
}

impl Mutant {
    /// Returns the mutated text; `None` if the text is not the one that the mutant was made for.
    #[must_use]
    pub fn apply(&self, text: &str) -> Option<String> {
        let (head, tail) = (text.get(..self.range.start)?, text.get(self.range.end..)?);
        Some([head, &self.replacement, tail].concat())
    }

    /// Returns the description of a mutation that no test noticed.
    #[must_use]
    pub fn to_survivor(&self, text: &str) -> Survivor {
        let line_start =
            text.get(..self.range.start).and_then(|head| head.rfind('\n')).map_or(0, |at| at + 1);
        let rest = text.get(self.range.end..).unwrap_or_default();
        let line_end = self.range.end + rest.find('\n').unwrap_or(rest.len());
        let head = text.get(line_start..self.range.start).unwrap_or_default();
        let tail = text.get(self.range.end..line_end).unwrap_or_default();
        let after = [head, &self.replacement, tail].concat();
        Survivor {
            path: self.path.clone(),
            line: self.line,
            function: self.function.clone(),
            kind: self.kind,
            before: quote_code(text.get(line_start..line_end).unwrap_or_default()),
            after: quote_code(&after),
            proposal: match &self.function {
                Some(function) => format!("`{function}` with {}", self.proposal),
                None => self.proposal.clone(),
            },
        }
    }
}

/// Returns code on one line, truncated at a maximum length.
pub(super) fn quote_code(code: &str) -> String {
    let words: Vec<&str> = code.split_whitespace().collect();
    let line = words.join(" ");
    match line.char_indices().nth(MAX_QUOTED_CHARS) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line,
    }
}

/// A changed statement in a function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedStatement {
    /// 1-based line on which it begins.
    pub line: u32,
    /// The function around the statement.
    pub function: Option<String>,
    /// The mutation that ends the program before the statement; `None` if the grammar allows none
    /// there.
    pub stop: Option<Mutant>,
    /// Identifies the block of the statement; the same for all statements of a block.
    pub block: usize,
    /// The statement around this one, by its index.
    pub around: Option<usize>,
}

/// The changed statements of a file, and mutations of its changed lines.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FileMutants {
    /// The statements that begin on changed lines or hold a mutation.
    pub statements: Vec<ChangedStatement>,
    /// Mutations in text order.
    pub mutants: Vec<Mutant>,
}
