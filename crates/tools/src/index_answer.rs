//! Answers from the index: lines of files as they are now, within a budget.

use std::fmt::Write as _;

use journeyman_protocol::{RelPath, clip_to_bytes};

use crate::ToolContext;
use crate::read_file::redact_settings;

/// Maximum bytes of an answer from the index: some 3,000 tokens, of which a ranked answer's best
/// results need a third.
const MAX_ANSWER_BYTES: usize = 12_000;
/// Maximum bytes of a file that is opened to show one of its lines.
const MAX_FILE_BYTES: u64 = 4 * 1024 * 1024;
/// Maximum bytes of a line in an answer: the beginning tells what the line is.
const MAX_ANSWER_LINE_BYTES: usize = 240;

/// An answer from the index that is being written.
pub(crate) struct IndexAnswer<'a> {
    context: &'a ToolContext,
    text: String,
    most: usize,
    full: bool,
    /// The path and text of the file that was read last; no text for a file that can't be shown.
    open: Option<(RelPath, Option<String>)>,
    /// Number of files that a rule keeps from being shown.
    withheld: usize,
}

impl<'a> IndexAnswer<'a> {
    /// Creates an answer that begins with a note on the state of the index.
    pub(crate) fn new(context: &'a ToolContext, note: &str) -> Self {
        let most = MAX_ANSWER_BYTES.min(context.limits.result_bytes);
        Self { context, text: note.to_owned(), most, full: false, open: None, withheld: 0 }
    }

    /// Adds a line. Returns false if the answer is full; it then takes no more lines.
    pub(crate) fn add_line(&mut self, line: &str) -> bool {
        let line = clip_to_bytes(line, MAX_ANSWER_LINE_BYTES * 2);
        if self.full || self.text.len() + line.len() + 1 > self.most {
            self.full = true;
            return false;
        }
        self.text.push_str(line);
        self.text.push('\n');
        true
    }

    /// Adds a line of a file with its number. Returns false if the answer is full.
    pub(crate) fn add_numbered_line(&mut self, number: u32, line: &str) -> bool {
        let kept = clip_to_bytes(line.trim_end(), MAX_ANSWER_LINE_BYTES);
        let cut = if kept.len() < line.trim_end().len() { "…" } else { "" };
        self.add_line(&format!("{number}\t{kept}{cut}"))
    }

    pub(crate) fn is_full(&self) -> bool {
        self.full
    }

    /// Returns true if the rules let a file be shown, and counts the files that they don't.
    pub(crate) fn may_show(&mut self, path: &RelPath) -> bool {
        let may = (self.context.may_show)(path);
        self.withheld += usize::from(!may);
        may
    }

    /// Returns a file's present text with secrets masked; `None` if the file can't be read.
    pub(crate) fn text_of(&mut self, path: &RelPath) -> Option<&str> {
        if self.open.as_ref().is_none_or(|(open, _)| open != path) {
            let content = self.context.workspace.read(path, MAX_FILE_BYTES).ok();
            let text = content.as_ref().and_then(|content| content.text());
            // Masked before the text is cut: half a secret is a secret, too.
            let text = text.map(|text| redact_settings(path, text));
            let text = text.map(|text| self.context.index.redactor().redact(&text).into_owned());
            self.open = Some((path.clone(), text));
        }
        self.open.as_ref().and_then(|(_, text)| text.as_deref())
    }

    /// Returns the answer's text, or `empty` if there are no lines; `narrow` says how to ask for
    /// less.
    pub(crate) fn into_text(mut self, empty: Option<String>, narrow: &str) -> String {
        if let Some(empty) = empty {
            self.text.push_str(&empty);
        }
        if self.full {
            self.text.push_str(&format!("[there is more; {narrow}]\n"));
        }
        if self.withheld > 0 {
            // Writing to a string can't fail.
            writeln!(self.text, "[{} files are not shown: a rule keeps them from being read]", self.withheld)
                .ok();
        }
        self.text
    }
}

/// Returns a line of a text, counted from 1.
pub(crate) fn nth_line(text: &str, number: u32) -> &str {
    text.lines().nth(number.saturating_sub(1) as usize).unwrap_or_default()
}

/// Returns true if a path is the directory or lies beneath it; always true without a directory.
pub(crate) fn is_beneath(path: &[u8], directory: Option<&RelPath>) -> bool {
    directory.is_none_or(|directory| {
        let rest = path.strip_prefix(directory.as_bytes());
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_beneath() {
        let src = RelPath::parse("src").unwrap();
        for (path, is) in [("src/a.rs", true), ("src", true), ("srcs/a.rs", false), ("a/src", false)] {
            assert_eq!(is_beneath(path.as_bytes(), Some(&src)), is, "{path}");
        }
        assert!(is_beneath(b"x", None));
    }
}
