//! A rewrite whose remarks stand for runs of the file's lines, aligned with the file as a whole.
//!
//! Windows and syntax trees need each part of a rewrite to be found by itself. Here all of it is
//! aligned at once: a line is the file's, a version of one, or new; a remark stands for any number
//! of the file's lines that are as deep as it; and what is neither shown nor stood for goes, which
//! has to be told by more than that. The alignment with the least cost is taken if it is sure:
//! where the earliest and the latest of the cheapest differ, or a change touches a remark so that
//! it may belong to what that stands for, or where all of the file's lines can stay as well, there
//! is none.

use std::ops::Range;

use journeyman_text_diff::{DiffOp, diff};

use super::aligned_changes::{AlignedChanges, HiddenLines, LineChange, read_changes};
use super::edge_additions::{FIXED_BEGINNINGS, PYTHON_MAIN};
use super::file_style::reindented_lines;
use super::line_alignment::{Aligner, Step};
use super::line_kinds::{depth, is_definition, is_head_line, is_import, is_version, key_of, opens_block};
use super::line_merge::TextLines;
use super::tree_merge::{MAX_UNSHOWN_BESIDE_PLACEHOLDERS, MergedPieces, loses_too_many_lines};

/// Lines beside those that come, more than they are, among which an old version of one is looked
/// for.
const MAX_HIDDEN_LINES: usize = 4;
/// Maximum number of lines that go because those above and below are shown.
const MAX_SHOWN_GONE_LINES: usize = 12;
/// Words that begin the declaration of a variable.
const DECLARING_WORDS: [&str; 8] = ["let", "var", "const", "val", "local", "my", "export", "import"];
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
        let mut aligner = Aligner::new(&old, &new, is_lenient, says_removal)?;
        let merged = aligner.merge_both_ways(text, true);
        aligner.keeps_all = true;
        let Some(merged) = merged else { return aligner.merge_both_ways(text, true) };
        let adds = |(range, _): &(Range<usize>, String)| {
            text.get(range.clone()).is_some_and(|old| old.trim().is_empty())
        };
        if merged.pieces.iter().all(adds) {
            return Some(merged);
        }
        // Where all lines of the file can stay as well, either may be meant.
        let keeping = aligner.merge_both_ways(text, false);
        keeping.is_none_or(|keeping| merged.apply_to(text) == keeping.apply_to(text)).then_some(merged)
    })
}

/// Returns true if a merged text lacks lines of the file, with fewer in their place, within what a
/// remark stands for or right beside it: the remark may have stood for them, too.
pub(super) fn loses_lines_at_remark(text: &str, content: &str, result: &str) -> bool {
    let (merged, new) = (TextLines::new(result), TextLines::new(content));
    let aligned = [false, true].into_iter().find_map(|is_lenient| {
        let aligner = Aligner::new(&merged, &new, is_lenient, false)?;
        read_changes(&aligner, &aligner.align(false)?)
    });
    let Some(AlignedChanges { hidden, .. }) = aligned else { return false };
    // Blank lines tell nothing: places are counted without them.
    let before: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let after: Vec<&str> = result.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let filled_above = |line: usize| (0..line).filter(|at| !merged.is_blank(*at)).count();
    let hidden: Vec<(usize, usize)> =
        hidden.iter().map(|lines| (filled_above(lines.old.start), filled_above(lines.old.end))).collect();
    diff(&before, &after).iter().any(|op| {
        let (_, gone, come) = op.as_tag_tuple();
        if matches!(op, DiffOp::Equal { .. }) || gone.len() <= come.len() {
            return false;
        }
        // Lines that go and are like those above or below may as well be these.
        let same = |(one, other): &(&&str, &&str)| one == other;
        let (mut up, mut down) = (0, 0);
        if come.is_empty() {
            let (from, to) = (before.iter().skip(gone.start), before.iter().skip(gone.end));
            down = from.zip(to).take_while(same).count();
            let (from, to) = (before.iter().take(gone.start), before.iter().take(gone.end));
            up = from.rev().zip(to.rev()).take_while(same).count();
        }
        hidden.iter().any(|(start, end)| *start <= come.end + down && end + up >= come.start)
    })
}

/// Returns the lines that the remarks right above and below a change stand for.
fn hidden_beside<'h>(
    change: &LineChange,
    hidden: &'h [HiddenLines],
) -> (Option<&'h HiddenLines>, Option<&'h HiddenLines>) {
    let above = hidden.iter().rfind(|lines| lines.old.end <= change.old.start);
    let below = hidden.iter().find(|lines| lines.old.start >= change.old.end);
    (above.filter(|_| change.remarked.0), below.filter(|_| change.remarked.1))
}

impl Aligner<'_> {
    /// The merge of the earliest and the latest of the cheapest alignments, where it is the same.
    /// `checks_hidden`: a remark beside a change may not stand for what that may replace.
    fn merge_both_ways(&self, text: &str, checks_hidden: bool) -> Option<MergedPieces> {
        let write = |steps: &[Step]| self.write(steps, text, checks_hidden);
        let merged = write(&self.align(false)?)?;
        let other = write(&self.align(true)?)?;
        (merged.apply_to(text) == other.apply_to(text)).then_some(merged)
    }

    /// The differences of an alignment as replacements; `None` where one of them isn't sure.
    fn write(&self, steps: &[Step], text: &str, checks_hidden: bool) -> Option<MergedPieces> {
        let AlignedChanges { mut changes, known, hidden } = read_changes(self, steps)?;
        changes.iter_mut().for_each(|change| self.slide_from_remark(change));
        changes.iter_mut().for_each(|change| self.keep_head(change));
        let is_unsure = |change: &LineChange| {
            let is_hidden = self.has_hidden_version(change, &hidden) || self.has_hidden_end(change, &hidden);
            (checks_hidden && is_hidden) || (!change.removes && self.may_add_definition(change))
        };
        if changes.iter().any(is_unsure) {
            return None;
        }
        let mut merged = MergedPieces { known, is_aligned: true, ..MergedPieces::default() };
        let line_break = crate::lines::first_line_break(text);
        for change in &changes {
            let Some(lines) = self.accepted_lines(change, &mut merged)? else { continue };
            let mut end_line = change.old.end;
            let is_blank = |at: usize| at < self.old.len() && self.old.is_blank(at);
            let is_by_remark = change.removes || change.remarked.0 || change.remarked.1;
            if is_by_remark
                && lines.is_empty()
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

    /// Returns true if a remark beside lines that come stands for a line that is like one of them:
    /// that may be the old version of it, which goes.
    fn has_hidden_version(&self, change: &LineChange, hidden: &[HiddenLines]) -> bool {
        let come: Vec<&str> = change.new.iter().map(|at| self.new.line(*at).trim()).collect();
        let near = come.len() + MAX_HIDDEN_LINES;
        let (above, below) = hidden_beside(change, hidden);
        let lines = above.into_iter().flat_map(|lines| lines.old.clone().rev().take(near));
        let mut lines = lines.chain(below.into_iter().flat_map(|lines| lines.old.clone().take(near)));
        lines.any(|at| {
            let line = self.old.line(at).trim();
            come.iter().any(|come| is_version(come, line))
        })
    }

    /// Returns true if a definition comes in place of another one, and lines that the file has once
    /// don't stand on both sides: it may as well come to the other one.
    fn may_add_definition(&self, change: &LineChange) -> bool {
        let names = |line: &&str| {
            let opens = opens_block(line);
            opens && depth(line) == 0 || is_definition(line) && (line.contains('(') || opens)
        };
        let key = |line: &'_ str| key_of(line.trim()).to_owned();
        let old = change.old.clone().map(|at| self.old.line(at));
        let new = change.new.iter().map(|at| self.new.line(*at));
        let come: Vec<String> = new.filter(names).map(key).collect();
        change.is_held != (true, true)
            && !come.is_empty()
            && old.filter(names).map(key).any(|gone| !come.contains(&gone))
    }

    /// Returns true if the remark below lines that come is less deep than they are and stands for
    /// lines that are as deep, first: these are the end of what the reply has ended, and go.
    fn has_hidden_end(&self, change: &LineChange, hidden: &[HiddenLines]) -> bool {
        let Some(HiddenLines { old, depth: Some(own) }) = hidden_beside(change, hidden).1 else {
            return false;
        };
        let come = change.new.iter().rfind(|at| !self.new.is_blank(**at)).map(|at| depth(self.new.line(*at)));
        let first = old.clone().find(|at| !self.old.is_blank(*at)).map(|at| depth(self.old.line(at)));
        come.is_some_and(|come| come > *own) && first.is_some_and(|first| first > *own)
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

    /// Returns true for some lines of a block. Of whole definitions and sections one that is like
    /// others is forgotten easily.
    fn is_small_part(&self, lines: &[usize]) -> bool {
        lines.len() <= MAX_SHOWN_GONE_LINES
            && lines.iter().map(|at| self.old.line(*at)).all(|line| {
                let begins_section =
                    line.trim().strip_suffix(':').is_some_and(|name| !name.contains([' ', '(']));
                depth(line) > 0 && !is_definition(line.trim()) && !begins_section
            })
    }

    /// Returns true if the rewrite has other lines about what one of the file's outermost lines is
    /// about.
    fn shows_again(&self, lines: &[usize]) -> bool {
        let is_telling = |line: &&str| {
            depth(line) == 0 && key_of(line).chars().any(char::is_alphanumeric) && !is_head_line(line)
        };
        let keys: Vec<&str> =
            (0..self.new.len()).map(|at| self.new.line(at)).filter(is_telling).map(key_of).collect();
        lines.iter().map(|at| self.old.line(*at)).filter(is_telling).any(|line| keys.contains(&key_of(line)))
    }

    /// Keeps the comments above all code where a reply begins with other lines.
    fn keep_head(&self, change: &mut LineChange) {
        let is_head = |line: &str| line.trim().is_empty() || is_head_line(line);
        let shows_head = change
            .new
            .iter()
            .map(|at| self.new.line(*at))
            .any(|line| !line.trim().is_empty() && is_head_line(line));
        if change.is_first
            && !change.new.is_empty()
            && !change.removes
            && !shows_head
            && change.old.clone().all(|at| is_head(self.old.line(at)))
        {
            change.old.start = change.old.end;
        }
    }

    /// The lines that a change puts in place of the file's; `Some(None)` where nothing changes.
    #[allow(clippy::option_option)]
    fn accepted_lines(&self, change: &LineChange, merged: &mut MergedPieces) -> Option<Option<Vec<usize>>> {
        let filled = |at: &usize| !self.new.is_blank(*at);
        let gone: Vec<usize> = change.old.clone().filter(|at| !self.old.is_blank(*at)).collect();
        let come = change.new.iter().filter(|at| filled(at)).count();
        let beside_remark = change.remarked.0 || change.remarked.1;
        if come == 0 && gone.is_empty() {
            return Some((!beside_remark).then(|| change.new.clone()));
        }
        if change.removes && gone.is_empty() {
            return None;
        }
        // A reply that begins within the file leaves out what is above.
        let is_left_out = !self.says_removal || gone.len() > MAX_UNSHOWN_BESIDE_PLACEHOLDERS;
        if change.is_first && come == 0 && is_left_out {
            return if self.shows_again(&gone) { None } else { Some(None) };
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
        let is_smaller = !self.says_removal && gone.len() > MAX_UNSHOWN_BESIDE_PLACEHOLDERS + come;
        if is_smaller || loses_too_many_lines(gone.len(), come) {
            let imports = gone.iter().all(|at| is_import(self.old.line(*at)));
            // A reply that ends within the file leaves out what is below.
            if come == 0 && !change.removes && self.old.is_wordless_from(change.old.end) {
                return None;
            }
            let is_shown = !beside_remark && change.is_held == (true, true) && self.is_small_part(&gone);
            let sure = change.removes || self.says_removal || imports || is_shown;
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

    /// Returns true for a line that gives a value or a type to a name to which no line of the file
    /// gives one.
    fn declares_new_name(&self, line: &str) -> bool {
        let key = key_of(line);
        let sign = line.get(key.len()..).and_then(|rest| rest.trim_start().chars().next());
        let word = line.split_whitespace().next().unwrap_or_default();
        let is_declared = matches!(sign, Some('=' | ':')) || DECLARING_WORDS.contains(&word);
        is_declared && !self.keys.contains_key(key)
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
        let is_named = filled
            .iter()
            .map(|at| self.new.line(*at).trim())
            .find(|line| {
                !["//", "/*", "*", "#", "@", "--", "\"\"\""].iter().any(|start| line.starts_with(start))
            })
            .is_none_or(|line| is_definition(line) || self.declares_new_name(line));
        is_block && is_apart && is_named || filled.iter().all(|at| is_import(self.new.line(*at)))
    }
}
