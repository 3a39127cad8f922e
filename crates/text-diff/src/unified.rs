//! Unified diffs as git writes and reads them.

use std::fmt::Write as _;

use similar::udiff::UnifiedHunkHeader;
use similar::{DiffOp, group_diff_ops};

use crate::{LineCounts, diff};

/// The hunks of a unified diff, without the lines that name the files.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UnifiedHunks {
    /// The hunks with their headers; empty where the texts are the same.
    pub text: String,
    /// Numbers of changed lines.
    pub counts: LineCounts,
}

/// Renders the difference between two texts, with `context` unchanged lines around each change.
#[must_use]
pub fn format_unified_hunks(old: &str, new: &str, context: usize) -> UnifiedHunks {
    let old: Vec<&str> = old.split_inclusive('\n').collect();
    let new: Vec<&str> = new.split_inclusive('\n').collect();
    let mut hunks = UnifiedHunks::default();
    for group in group_diff_ops(diff(&old, &new), context) {
        if group.is_empty() {
            continue;
        }
        // Writing to a string can't fail.
        let _written = writeln!(hunks.text, "{}", UnifiedHunkHeader::new(&group));
        for op in &group {
            let removed = old.get(op.old_range()).unwrap_or_default();
            let added = new.get(op.new_range()).unwrap_or_default();
            if let DiffOp::Equal { .. } = op {
                push_lines(&mut hunks.text, ' ', removed);
                continue;
            }
            push_lines(&mut hunks.text, '-', removed);
            push_lines(&mut hunks.text, '+', added);
            hunks.counts.removed += removed.len();
            hunks.counts.added += added.len();
        }
    }
    hunks
}

fn push_lines(text: &mut String, sign: char, lines: &[&str]) {
    for line in lines {
        text.push(sign);
        text.push_str(line);
        if !line.ends_with('\n') {
            text.push_str("\n\\ No newline at end of file\n");
        }
    }
}
