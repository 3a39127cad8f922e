//! A file in the context, whole or in part.

use std::fmt::Write as _;
use std::ops::Range;

use journeyman_protocol::{ContextCategory, RelPath, TokenCounter as _, Tokens, clip_to_bytes};

use super::file_text::FileText;
use crate::TokenEstimator;
use crate::fence::fence_text;

/// Maximum names of definitions that a gap lists.
const MAX_NAMES_IN_GAP: usize = 8;
/// Maximum bytes of such a name.
const MAX_GAP_NAME_BYTES: usize = 60;

/// A file in the context, whole or in part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Excerpt {
    /// The category that it counts to.
    pub category: ContextCategory,
    /// The file.
    pub path: RelPath,
    /// The lines that are shown, 1-based, in order and apart.
    pub lines: Vec<Range<u32>>,
    /// True if it is shown whole.
    pub whole: bool,
    /// Its text as the model sees it.
    pub text: String,
    /// An estimate of what that costs.
    pub tokens: Tokens,
}

impl Excerpt {
    /// Renders lines of a file. Gaps name what they define, so that the excerpt is an outline too.
    pub(super) fn render(
        category: ContextCategory,
        path: &RelPath,
        file: &FileText,
        lines: Vec<Range<u32>>,
    ) -> Self {
        let end = file.line_count().saturating_add(1);
        let whole = matches!(lines.as_slice(), [only] if only.start <= 1 && only.end >= end)
            && !file.has_long_line(&(1..end));
        let mut body = String::new();
        let mut next = 1;
        for range in &lines {
            write_gap(&mut body, file, &(next..range.start));
            body.push_str(&file.shown_lines(range));
            if !body.is_empty() && !body.ends_with('\n') {
                body.push('\n');
            }
            next = range.end;
        }
        write_gap(&mut body, file, &(next..end));
        let shown = if whole { "whole" } else { "in part" };
        let text = fence_text("file", &[("path", &path.to_string()), ("shown", shown)], &body);
        let tokens = TokenEstimator.count(&text) + Tokens(1);
        Self { category, path: path.clone(), lines, whole, text, tokens }
    }
}

/// Returns the files of which a text shows excerpts.
pub fn shown_files(text: &str) -> impl Iterator<Item = &str> {
    text.split(" path=\"").skip(1).filter_map(|rest| {
        let (path, after) = rest.split_once('"')?;
        after.starts_with(" shown=\"").then_some(path)
    })
}

fn write_gap(out: &mut String, file: &FileText, gap: &Range<u32>) {
    if gap.is_empty() {
        return;
    }
    let mut names: Vec<&str> = Vec::new();
    let mut more = 0_usize;
    for name in file.names_defined_in(gap) {
        if names.len() < MAX_NAMES_IN_GAP {
            names.push(clip_to_bytes(name, MAX_GAP_NAME_BYTES));
        } else {
            more += 1;
        }
    }
    let _infallible = write!(out, "[… lines {}–{} left out", gap.start, gap.end - 1);
    if !names.is_empty() {
        let _infallible = write!(out, ": {}", names.join(", "));
    }
    if more > 0 {
        let _infallible = write!(out, " and {more} more");
    }
    out.push_str("]\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_name_what_they_define() {
        let text: String = (1..=9).map(|line| format!("line {line}\n")).collect();
        let file = FileText::new(text, vec![(2, "open".to_owned()), (9, "close".to_owned())]);
        let path = RelPath::parse("a.py").unwrap();
        let shown = Excerpt::render(ContextCategory::RelatedCode, &path, &file, vec![4..6, 8..9]);
        assert!(!shown.whole);
        assert_eq!(
            shown.text,
            "<file path=\"a.py\" shown=\"in part\">\n[… lines 1–3 left out: open]\nline 4\nline 5\n\
             [… lines 6–7 left out]\nline 8\n[… lines 9–9 left out: close]\n</file>"
        );
        assert_eq!(shown_files(&shown.text).collect::<Vec<_>>(), ["a.py"]);
        let told = fence_text("instructions", &[("path", "b.py")], "c.py");
        assert_eq!(shown_files(&told).count(), 0);
        let all = Excerpt::render(ContextCategory::RelatedCode, &path, &file, vec![1..10; 1]);
        assert!(all.whole && !all.text.contains("left out"));
    }

    #[test]
    fn an_endless_line_is_bounded() {
        let file = FileText::new("x".repeat(1 << 20), Vec::new());
        let path = RelPath::parse("a.js").unwrap();
        let shown = Excerpt::render(ContextCategory::RelatedCode, &path, &file, vec![1..2; 1]);
        assert!(shown.text.len() < 3_000 && !shown.whole, "{}", shown.text.len());
        assert!(shown.text.contains("shown=\"in part\"") && shown.text.contains("bytes]"));
    }
}
