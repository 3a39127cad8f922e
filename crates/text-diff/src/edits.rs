//! The edits that a merge compares: a line diff whose runs of changed lines are placed as git
//! places them.
//!
//! A run of changed lines can often slide, as in `{ a } { a }`, without a change of the result.
//! Each run comes to lie where the other text has a run too, else as far down as possible, as in
//! git. So both sides of a merge have their edits of one place at the same lines of the base.

use std::hash::Hash;
use std::ops::Range;

use similar::DiffOp;

use crate::diff;

/// Replaces the base's lines `old` by a side's lines `new`. Either range may be empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Edit {
    pub(crate) old: Range<usize>,
    pub(crate) new: Range<usize>,
}

/// Returns the edits that make `new` of `old`, in order; no two of them touch.
pub(crate) fn compute_edits<T: Hash + Eq>(old: &[T], new: &[T]) -> Vec<Edit> {
    // Of several smallest differences git takes the one that comes first from the end, so the texts
    // are compared from their ends.
    let reversed = diff(&old.iter().rev().collect::<Vec<_>>(), &new.iter().rev().collect::<Vec<_>>());
    let (mut removed, mut added) = (vec![false; old.len()], vec![false; new.len()]);
    for op in reversed.iter().filter(|op| !matches!(op, DiffOp::Equal { .. })) {
        mark_changed_from_end(&mut removed, op.old_range());
        mark_changed_from_end(&mut added, op.new_range());
    }
    slide_changed_runs(old, &mut removed, &run_lengths(&added));
    slide_changed_runs(new, &mut added, &run_lengths(&removed));
    collect_edits(&removed, &added)
}

/// Marks a range of lines as changed; the range counts from the end of the text.
fn mark_changed_from_end(changed: &mut [bool], from_end: Range<usize>) {
    let (start, end) = (changed.len() - from_end.end, changed.len() - from_end.start);
    changed.get_mut(start..end).unwrap_or_default().fill(true);
}

/// Returns the number of changed lines before a text's first unchanged line, between that and the
/// second, and so on.
fn run_lengths(changed: &[bool]) -> Vec<usize> {
    let mut runs = vec![0];
    for changed in changed {
        match runs.last_mut() {
            Some(run) if *changed => *run += 1,
            _ => runs.push(0),
        }
    }
    runs
}

/// Moves each run of changed lines to where the other text has changes too, else as far down as it
/// goes. Runs that meet on the way become one. `others` are the other text's [`run_lengths`].
fn slide_changed_runs<T: PartialEq>(lines: &[T], changed: &mut [bool], others: &[usize]) {
    let is_changed = |changed: &[bool], at: usize| changed.get(at).copied().unwrap_or_default();
    let has_other = |unchanged: usize| others.get(unchanged).is_some_and(|run| *run > 0);
    let (mut start, mut unchanged) = (0, 0);
    while start < lines.len() {
        if !is_changed(changed, start) {
            start += 1;
            unchanged += 1;
            continue;
        }
        let mut end = start;
        while is_changed(changed, end) {
            end += 1;
        }
        let mut aligned;
        loop {
            let size = end - start;
            while start > 0 && lines.get(start - 1) == lines.get(end - 1) {
                (start, end, unchanged) = (start - 1, end - 1, unchanged - 1);
                move_changed_mark(changed, start, end);
                while start > 0 && is_changed(changed, start - 1) {
                    start -= 1;
                }
            }
            aligned = has_other(unchanged).then_some(end);
            while end < lines.len() && lines.get(start) == lines.get(end) {
                move_changed_mark(changed, end, start);
                (start, end, unchanged) = (start + 1, end + 1, unchanged + 1);
                while is_changed(changed, end) {
                    end += 1;
                }
                if has_other(unchanged) {
                    aligned = Some(end);
                }
            }
            if end - start == size {
                break;
            }
        }
        while aligned.is_some_and(|aligned| end > aligned) {
            (start, end, unchanged) = (start - 1, end - 1, unchanged - 1);
            move_changed_mark(changed, start, end);
        }
        start = end;
    }
}

fn move_changed_mark(changed: &mut [bool], to: usize, from: usize) {
    if let Some(flag) = changed.get_mut(from) {
        *flag = false;
    }
    if let Some(flag) = changed.get_mut(to) {
        *flag = true;
    }
}

/// Returns the runs of changed lines of both texts, in order.
fn collect_edits(removed: &[bool], added: &[bool]) -> Vec<Edit> {
    let run = |flags: &[bool], from: usize| {
        flags.get(from..).unwrap_or_default().iter().take_while(|flag| **flag).count()
    };
    let mut edits = Vec::new();
    let (mut old, mut new) = (0, 0);
    loop {
        let (old_len, new_len) = (run(removed, old), run(added, new));
        if old_len + new_len > 0 {
            edits.push(Edit { old: old..old + old_len, new: new..new + new_len });
            (old, new) = (old + old_len, new + new_len);
        }
        if old >= removed.len() || new >= added.len() {
            return edits;
        }
        (old, new) = (old + 1, new + 1);
    }
}
