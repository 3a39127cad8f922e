//! Comparing two texts line by line.

use journeyman_text_diff::{DiffOp, diff_within};

/// Beyond this many changed lines on both sides together lines are not aligned, because that takes
/// time with their product: the whole stretch is replaced.
const MAX_ALIGNED: usize = 8_000;
/// Numbers of context lines that are tried until a hunk is unique.
const CONTEXTS: [usize; 6] = [3, 8, 20, 60, 200, usize::MAX];

/// A line of a hunk: its prefix, and its text with what ends it.
pub(super) type Line<'a> = (char, &'a str);

/// A stretch of changes with the lines around it.
pub(super) struct Hunk<'a> {
    /// The first line of either side, 0-based.
    pub(super) old: usize,
    pub(super) new: usize,
    pub(super) lines: Vec<Line<'a>>,
}

impl<'a> Hunk<'a> {
    pub(super) fn count(&self, side: char) -> usize {
        self.lines.iter().filter(|(prefix, _)| *prefix == ' ' || *prefix == side).count()
    }

    /// The text of one side.
    pub(super) fn side(&self, side: char) -> String {
        self.lines
            .iter()
            .filter(|(prefix, _)| *prefix == ' ' || *prefix == side)
            .map(|(_, text)| *text)
            .collect()
    }

    fn old_lines(&self) -> Vec<&'a str> {
        let old = self.lines.iter().filter(|(prefix, _)| *prefix != '+');
        old.map(|(_, text)| text.strip_suffix('\n').unwrap_or(text)).collect()
    }
}

fn pieces(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

/// The changes from one text to the other, each with so many lines around it.
pub(super) fn hunks<'a>(before: &'a str, after: &'a str, context: usize) -> Vec<Hunk<'a>> {
    let (old, new) = (pieces(before), pieces(after));
    let ops = diff_within(&old, &new, MAX_ALIGNED);
    let mut hunks: Vec<Hunk<'a>> = Vec::new();
    let mut reached = 0;
    for op in ops.iter().filter(|op| !matches!(op, DiffOp::Equal { .. })) {
        let (gone, come) = (op.old_range(), op.new_range());
        let from = gone.start.saturating_sub(context);
        let joins = !hunks.is_empty() && from <= reached;
        let lead = if joins { reached.min(gone.start)..gone.start } else { from..gone.start };
        if !joins {
            let new = come.start - lead.len();
            hunks.push(Hunk { old: from, new, lines: Vec::new() });
        }
        let Some(hunk) = hunks.last_mut() else { continue };
        // The context after the change before, as far as it was put already.
        let kept = lead.clone().filter_map(|line| old.get(line)).map(|line| (' ', *line));
        hunk.lines.extend(kept);
        hunk.lines.extend(gone.clone().filter_map(|line| old.get(line)).map(|line| ('-', *line)));
        hunk.lines.extend(come.filter_map(|line| new.get(line)).map(|line| ('+', *line)));
        let next = ops.iter().find(|next| {
            !matches!(next, DiffOp::Equal { .. }) && next.old_range().start >= gone.end && *next != op
        });
        let limit = next.map_or(old.len(), |next| next.old_range().start);
        reached = gone.end.saturating_add(context).min(limit);
        let tail = (gone.end..reached).filter_map(|line| old.get(line)).map(|line| (' ', *line));
        hunk.lines.extend(tail);
    }
    hunks
}

/// The changes, each with enough around it that it stands in one place only.
pub(super) fn unique_hunks<'a>(before: &'a str, after: &'a str) -> Vec<Hunk<'a>> {
    let file: Vec<&str> = before.lines().map(str::trim_end).collect();
    let mut found = Vec::new();
    for context in CONTEXTS {
        found = hunks(before, after, context);
        let unique = |hunk: &Hunk<'_>| {
            let old: Vec<&str> = hunk.old_lines().into_iter().map(str::trim_end).collect();
            !old.is_empty() && file.windows(old.len()).filter(|lines| *lines == old).count() == 1
        };
        if found.iter().all(unique) {
            break;
        }
    }
    found
}
