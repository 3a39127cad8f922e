//! A rewrite whose remarks stand for runs of the file's lines, aligned with the file as a whole.
//!
//! Windows and syntax trees need each part of a rewrite to be found by itself. Here all of it is
//! aligned at once: a line is the file's, a version of one, or new; a remark stands for any number
//! of the file's lines that are as deep as it; and what is neither shown nor stood for goes, which
//! has to be told by more than that. The alignment with the least cost is taken if it is sure:
//! where the earliest and the latest of the cheapest differ, or a change touches a remark so that
//! it may belong to what that stands for, there is none.

use super::aligned_changes::{LineChange, read_changes};
use super::edge_additions::{FIXED_BEGINNINGS, PYTHON_MAIN};
use super::file_style::reindented_lines;
use super::line_alignment::{Aligner, Step};
use super::line_kinds::{depth, is_definition, is_head_line, is_import, key_of, opens_block};
use super::line_merge::TextLines;
use super::tree_merge::{MAX_UNSHOWN_BESIDE_PLACEHOLDERS, MergedPieces, loses_too_many_lines};

/// Maximum number of lines that may go at one place because the reply says that something does.
const MAX_GONE_LINES: usize = 200;
/// The merge; `None` where it isn't sure. `says_removal`: the reply speaks of something that goes.
pub(super) fn merge_by_alignment(text: &str, content: &str, says_removal: bool) -> Option<MergedPieces> {
    if !reindented_lines(content, text).is_empty() {
        return None;
    }
    let (old, new) = (TextLines::new(text), TextLines::new(content));
    // Where a remark stands deeper than it should, or its words say less than it stands for, the
    // alignment fails that goes by these.
    [false, true].into_iter().find_map(|is_lenient| {
        let aligner = Aligner::new(&old, &new, is_lenient, says_removal)?;
        let merged = aligner.write(&aligner.align(false)?, text, says_removal)?;
        let other = aligner.write(&aligner.align(true)?, text, says_removal)?;
        (merged.apply_to(text) == other.apply_to(text)).then_some(merged)
    })
}

impl Aligner<'_> {
    /// The differences of an alignment as replacements; `None` where one of them isn't sure.
    fn write(&self, steps: &[Step], text: &str, says_removal: bool) -> Option<MergedPieces> {
        let (mut changes, known) = read_changes(self, steps)?;
        changes.iter_mut().for_each(|change| self.slide_from_remark(change));
        let mut merged = MergedPieces { known, is_aligned: true, ..MergedPieces::default() };
        let line_break = crate::lines::first_line_break(text);
        for change in &changes {
            let Some(lines) = self.accepted_lines(change, says_removal, &mut merged)? else { continue };
            let mut end_line = change.old.end;
            let is_blank = |at: usize| at < self.old.len() && self.old.is_blank(at);
            if lines.is_empty()
                && !change.old.is_empty()
                && change.old.start.checked_sub(1).is_none_or(is_blank)
            {
                // What went stood between blank lines: those of one side are enough.
                while is_blank(end_line) {
                    end_line += 1;
                }
            }
            let mut start_line = change.old.start;
            while end_line >= self.old.len() && lines.is_empty() && start_line > 0 && is_blank(start_line - 1)
            {
                start_line -= 1;
            }
            let start = self.old.spans.get(start_line).map_or(text.len(), |span| span.start);
            let end = end_line.checked_sub(1).filter(|last| *last >= start_line);
            let end = end.and_then(|last| self.old.spans.get(last)).map_or(start, |span| span.end);
            let mut piece: String =
                lines.iter().map(|at| format!("{}{line_break}", self.new.line(*at))).collect();
            if end == text.len() && !text.ends_with('\n') {
                // The last line has no line break: it stays so.
                if start == text.len() && !piece.is_empty() {
                    piece.insert_str(0, line_break);
                }
                piece.truncate(piece.trim_end_matches(['\n', '\r']).len());
            }
            merged.pieces.push((start..end, piece));
        }
        Some(merged)
    }

    /// Returns true if the last line that goes and the last that comes open a block, equally deep:
    /// a remark below is for what is in it.
    fn ends_with_header(&self, change: &LineChange) -> bool {
        let old = change.old.clone().next_back().map(|at| self.old.line(at));
        let new = change.new.last().map(|at| self.new.line(*at));
        old.zip(new).is_some_and(|(old, new)| {
            let is_same_thing = !is_definition(new.trim()) || key_of(old.trim()) == key_of(new.trim());
            opens_block(old) && opens_block(new) && depth(old) == depth(new) && is_same_thing
        })
    }

    /// Returns true for lines before what has to come first, or after what ends a program.
    fn is_misplaced_at_edge(&self, change: &LineChange) -> bool {
        let begins_fixed =
            || FIXED_BEGINNINGS.iter().any(|start| self.old.line(0).trim_start().starts_with(start));
        let ends_program = || (0..self.old.len()).any(|at| self.old.line(at).starts_with(PYTHON_MAIN));
        change.old.start == 0 && begins_fixed() || change.old.start >= self.old.len() && ends_program()
    }

    /// Lets lines that come or go beside a remark begin after it, where they are the same either
    /// way.
    fn slide_from_remark(&self, change: &mut LineChange) {
        let is_free = |change: &LineChange| change.remarked == (true, false) && !change.is_apart.1;
        while is_free(change) && change.same_below > 0 && change.old.end < self.old.len() {
            let next = self.old.line(change.old.end).trim_end();
            let first = match (change.new.first(), change.old.is_empty()) {
                (Some(first), true) => self.new.line(*first),
                (None, false) => self.old.line(change.old.start),
                _ => return,
            };
            if first.trim_end() != next {
                return;
            }
            change.is_apart.0 = next.is_empty();
            change.remarked.0 = change.is_apart.0;
            if !change.new.is_empty() {
                change.new.rotate_left(1);
            }
            change.old = change.old.start + 1..change.old.end + 1;
            change.same_below -= 1;
        }
    }

    /// The lines that a change puts in place of the file's; `Some(None)` where nothing changes.
    #[allow(clippy::option_option)]
    fn accepted_lines(
        &self,
        change: &LineChange,
        says_removal: bool,
        merged: &mut MergedPieces,
    ) -> Option<Option<Vec<usize>>> {
        let filled = |at: &usize| !self.new.is_blank(*at);
        let gone: Vec<usize> = change.old.clone().filter(|at| !self.old.is_blank(*at)).collect();
        let come = change.new.iter().filter(|at| filled(at)).count();
        let beside_remark = change.remarked.0 || change.remarked.1;
        if come == 0 && gone.is_empty() {
            // A blank line less is an oversight more often than a change.
            let comes = !beside_remark && change.old.is_empty();
            return Some(comes.then(|| change.new.clone()));
        }
        if change.removes && gone.is_empty() {
            return None;
        }
        if change.is_first && come == 0 && gone.iter().all(|at| is_head_line(self.old.line(*at))) {
            return Some(None);
        }
        let is_beside_version = (!change.remarked.0 || change.is_version.0)
            && (!change.remarked.1 || change.is_version.1 || self.ends_with_header(change));
        if beside_remark && !gone.is_empty() && !change.removes && !is_beside_version {
            return None;
        }
        if beside_remark && come > 0 && gone.is_empty() && !self.is_sure_beside_remark(change) {
            return None;
        }
        if gone.is_empty() && self.is_misplaced_at_edge(change) {
            return None;
        }
        // What comes in place of other lines is about as much as they are, unless the reply says
        // that something goes.
        let is_smaller = !says_removal && gone.len() > MAX_UNSHOWN_BESIDE_PLACEHOLDERS + come;
        if is_smaller || loses_too_many_lines(gone.len(), come) {
            let imports = gone.iter().all(|at| is_import(self.old.line(*at)));
            let sure = change.removes || says_removal || imports;
            if !sure || gone.len() > MAX_GONE_LINES {
                return None;
            }
            merged.removed += gone.len();
        }
        if come == 0 {
            // Blank lines beside a remark are the remark's.
            let blank = if beside_remark || change.removes { Vec::new() } else { change.new.clone() };
            return Some(Some(blank));
        }
        let mut lines: &[usize] = &change.new;
        if change.remarked.0 {
            let above = change.old.start.checked_sub(1).is_some_and(|at| self.old.is_blank(at));
            while let Some((_, rest)) = lines.split_first().filter(|(first, _)| above && !filled(first)) {
                lines = rest;
            }
        }
        if change.remarked.1 {
            let below = change.old.end < self.old.len() && self.old.is_blank(change.old.end);
            while let Some((_, rest)) = lines.split_last().filter(|(last, _)| below && !filled(last)) {
                lines = rest;
            }
        }
        Some(Some(lines.to_vec()))
    }

    /// Returns true if lines that come beside a remark are none of what it stands for: a whole
    /// block apart from it, or one more import.
    fn is_sure_beside_remark(&self, change: &LineChange) -> bool {
        let filled: Vec<usize> = change.new.iter().copied().filter(|at| !self.new.is_blank(*at)).collect();
        let (Some(first), Some(last)) = (filled.first(), filled.last()) else { return true };
        let depths = |at: &usize| depth(self.new.line(*at));
        let least = filled.iter().map(depths).min().unwrap_or_default();
        // A line that opens a block would take what follows into it.
        let is_block = depths(first) == least && depths(last) == least && !opens_block(self.new.line(*last));
        let apart = |is_remarked: bool, is_apart: bool, outer: Option<&usize>| {
            !is_remarked || is_apart || outer.is_some_and(|at| self.new.is_blank(*at))
        };
        let is_apart = apart(change.remarked.0, change.is_apart.0, change.new.first())
            && apart(change.remarked.1, change.is_apart.1, change.new.last());
        is_block && is_apart || filled.iter().all(|at| is_import(self.new.line(*at)))
    }
}
