//! Lines that a new text loses where it has a comment that may be meant to stand for them.

use std::collections::HashSet;

use journeyman_text_diff::{DiffOp, diff_within};

use crate::placeholder;

/// Lines of both texts between the first and the last difference that are aligned; of more, all
/// between count as replaced.
const MAX_ALIGNED_LINES: usize = 20_000;
/// Lines that a comment on the code may take with it.
const MAX_LOST_LINES: usize = 1;
/// A line with fewer letters and digits stands anywhere.
const MIN_DISTINCTIVE_CHARS: usize = 4;
/// Fewer lines are no file of which a part could be sent.
const MIN_FILE_LINES: usize = 20;
/// Of a part's lines, the hundredths that are the file's.
const MIN_SHARED_PERCENT: usize = 60;

/// The first comment of `new` that isn't in `old` and in whose place more lines go than come, if it
/// speaks as remarks do.
pub(crate) fn first_comment_for_lost_lines<'n>(old: &str, new: &'n str) -> Option<&'n str> {
    let candidate = |line: &str| {
        placeholder::may_be_placeholder(line) || placeholder::placeholder_within_line(line).is_some()
    };
    if !new.lines().any(candidate) {
        return None;
    }
    let known: HashSet<&str> = old.lines().map(str::trim).collect();
    let is_new = |line: &str| candidate(line) && !known.contains(line.trim());
    if !new.lines().any(is_new) {
        return None;
    }
    let (old_lines, new_lines): (Vec<&str>, Vec<&str>) =
        (old.lines().map(str::trim_end).collect(), new.lines().map(str::trim_end).collect());
    let filled = |line: &&&str| !line.trim().is_empty();
    let (mut gone, mut come, mut comment) = (0_usize, 0_usize, None);
    for op in diff_within(&old_lines, &new_lines, MAX_ALIGNED_LINES) {
        let (from, to) = (op.old_range(), op.new_range());
        let own = new_lines.get(to).unwrap_or_default();
        if let DiffOp::Equal { .. } = op {
            // Brackets and blank lines divide nothing.
            if own.iter().any(|line| is_distinctive(line)) {
                if comment.is_some() && gone > come + MAX_LOST_LINES {
                    return comment;
                }
                (gone, come, comment) = (0, 0, None);
            }
            continue;
        }
        gone += old_lines.get(from).unwrap_or_default().iter().filter(filled).count();
        come += own.iter().filter(filled).filter(|line| !is_new(line)).count();
        comment = comment.or_else(|| own.iter().copied().find(|line| is_new(line)));
    }
    comment.filter(|_| gone > come + MAX_LOST_LINES)
}

/// Returns true if a text is a part of a file, though it was sent as all of it: it is much shorter,
/// most of it is the file's, and it has neither its beginning nor its end.
pub(crate) fn is_part_of(old: &str, new: &str) -> bool {
    let telling = |text: &'_ str| text.lines().filter(|line| is_distinctive(line)).count();
    let (all, sent) = (telling(old), telling(new));
    if all < MIN_FILE_LINES || sent == 0 || sent * 2 > all {
        return false;
    }
    let own: HashSet<&str> = new.lines().map(str::trim).collect();
    let edge = |line: Option<&str>| line.is_some_and(|line| own.contains(line.trim()));
    let known: HashSet<&str> = old.lines().map(str::trim).collect();
    let shared = new.lines().filter(|line| is_distinctive(line) && known.contains(line.trim())).count();
    !edge(old.lines().find(|line| is_distinctive(line)))
        && !edge(old.lines().rfind(|line| is_distinctive(line)))
        && shared * 100 >= sent * MIN_SHARED_PERCENT
}

/// Returns true for a line with enough letters and digits to tell a place.
pub(crate) fn is_distinctive(line: &str) -> bool {
    line.chars().filter(|c| c.is_alphanumeric()).take(MIN_DISTINCTIVE_CHARS).count() == MIN_DISTINCTIVE_CHARS
}
