//! Merging without a grammar: lines that are in both texts, once, hold the rest in its place.

use std::collections::BTreeMap;
use std::ops::Range;

use journeyman_text_diff::{DiffOp, diff};

use super::file_style::FileStyle;
use super::refusal::refuse_rewrite;
use super::tree_merge::{MAX_UNSHOWN_BESIDE_PLACEHOLDERS, MAX_UNSHOWN_LINES, MergedPieces};
use crate::lines::{lines_of, split_indent};
use crate::outcome::{Refusal, truncate};
use crate::placeholder::{self, Placeholder};

/// Lines of both texts together that are compared one by one.
const MAX_COMPARED_LINES: usize = 20_000;
/// Lines that others may replace at one place of a text with remarks.
const MAX_REPLACED_BESIDE_PLACEHOLDERS: usize = 5;
/// A line is a version of another where their letters are this much alike.
const MIN_SIMILARITY: f64 = 0.55;
/// Of a file's lines, the hundredths that a text without remarks has to repeat to be a version of
/// it.
const MIN_REPEATED_PERCENT: usize = 60;

/// A text in lines.
pub(super) struct TextLines<'t> {
    lines: Vec<&'t str>,
    /// The range of each line with its line break.
    pub(super) spans: Vec<Range<usize>>,
}

impl<'t> TextLines<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        let lines = lines_of(text);
        Self {
            spans: lines.iter().map(|line| line.content_range().start..line.next_start()).collect(),
            lines: lines.iter().map(|line| text.get(line.content_range()).unwrap_or_default()).collect(),
        }
    }

    pub(super) fn line(&self, at: usize) -> &'t str {
        self.lines.get(at).copied().unwrap_or_default()
    }

    pub(super) fn is_blank(&self, at: usize) -> bool {
        self.line(at).trim().is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.lines.len()
    }

    /// Returns true if no line from this one on has a letter or a digit.
    pub(super) fn is_wordless_from(&self, at: usize) -> bool {
        (at..self.len()).all(|at| !self.line(at).contains(char::is_alphanumeric))
    }
}

/// The merge by lines.
pub(super) fn merge_by_lines(text: &str, content: &str) -> Result<MergedPieces, Refusal> {
    let (old, new) = (TextLines::new(text), TextLines::new(content));
    if old.len() + new.len() > MAX_COMPARED_LINES {
        return Err(refuse_rewrite("the file is too long to merge a rewrite into without its syntax"));
    }
    let known: std::collections::BTreeSet<&str> = old.lines.iter().map(|line| line.trim()).collect();
    let remarks: Vec<Option<Placeholder>> = new
        .lines
        .iter()
        .map(|line| placeholder::placeholder_of_rewrite_line(line).filter(|_| !known.contains(line.trim())))
        .collect();
    let lines = LineMerge { old, new, remarks };
    let anchors = if lines.remarks.iter().any(Option::is_some) {
        lines.pair_around_placeholders()?
    } else {
        lines.pair_whole_versions()?
    };
    lines.merge_between_pairs(&anchors, text, content)
}

struct LineMerge<'t> {
    old: TextLines<'t>,
    new: TextLines<'t>,
    /// Of each new line.
    remarks: Vec<Option<Placeholder>>,
}

impl LineMerge<'_> {
    fn placeholder_at(&self, at: usize) -> Option<Placeholder> {
        self.remarks.get(at).copied().flatten()
    }

    /// The pairs of lines (old, new) in a text without remarks: it has to be a version of the whole
    /// file, in which lines come or go, or change a little.
    fn pair_whole_versions(&self) -> Result<Vec<(usize, usize)>, Refusal> {
        let plain = |text: &TextLines<'_>| -> Vec<String> {
            text.lines.iter().map(|line| line.trim_end().to_owned()).collect()
        };
        let (old, new) = (plain(&self.old), plain(&self.new));
        let mut pairs = Vec::new();
        for op in diff(&old, &new) {
            if let DiffOp::Equal { old_index, new_index, len } = op {
                pairs.extend((0..len).map(|nth| (old_index + nth, new_index + nth)));
            }
        }
        let full = |at: &usize| !self.old.is_blank(*at);
        let total = (0..self.old.len()).filter(full).count();
        let repeated = pairs.iter().filter(|(at, _)| full(at)).count();
        if repeated * 100 < total * MIN_REPEATED_PERCENT {
            return Err(refuse_rewrite(
                "it has no remark for what stays and repeats little of the file. Send the whole file as a rewrite, or put `... existing code ...` where lines stay",
            ));
        }
        Ok(pairs)
    }

    /// The pairs of lines (old, new) around remarks: lines that each text has once, what follows
    /// them directly, and what closes what they open.
    fn pair_around_placeholders(&self) -> Result<Vec<(usize, usize)>, Refusal> {
        let mut pairs = self.pair_unique_lines()?;
        loop {
            let count = pairs.len();
            self.extend_pairs(&mut pairs);
            self.pair_closing_lines(&mut pairs);
            if pairs.len() == count {
                break;
            }
        }
        if pairs.is_empty() {
            return Err(refuse_rewrite(
                "no line beside its remarks is in the file, once. Repeat the line before and after each remark as it is in the file",
            ));
        }
        Ok(pairs)
    }

    fn pair_unique_lines(&self) -> Result<Vec<(usize, usize)>, Refusal> {
        let once = |text: &TextLines<'_>, skip: &dyn Fn(usize) -> bool| {
            let mut places: BTreeMap<String, Option<usize>> = BTreeMap::new();
            for at in (0..text.len()).filter(|at| !text.is_blank(*at) && !skip(*at)) {
                let place = places.entry(text.line(at).trim().to_owned());
                place.and_modify(|place| *place = None).or_insert(Some(at));
            }
            places
        };
        let old = once(&self.old, &|_| false);
        let new = once(&self.new, &|at| self.placeholder_at(at).is_some());
        let mut pairs: Vec<(usize, usize)> =
            new.iter().filter_map(|(line, at)| Some(((*old.get(line)?)?, (*at)?))).collect();
        pairs.sort_unstable_by_key(|(_, new)| *new);
        for two in pairs.windows(2) {
            if let [(before, _), (after, _)] = two
                && before >= after
            {
                return Err(refuse_rewrite(&format!(
                    "it has `{}` in another order than the file (line {}). Keep the file's order",
                    truncate(self.old.line(*after).trim(), 120),
                    after + 1
                )));
            }
        }
        Ok(pairs)
    }

    /// Adds the equal lines directly after and before each pair.
    fn extend_pairs(&self, pairs: &mut Vec<(usize, usize)>) {
        let mut found: Vec<(usize, usize)> = Vec::new();
        let bounds = |at: usize| {
            let before = at
                .checked_sub(1)
                .and_then(|at| pairs.get(at))
                .map_or((0, 0), |(one, other)| (one + 1, other + 1));
            let after = pairs.get(at + 1).copied().unwrap_or((self.old.len(), self.new.len()));
            (before, after)
        };
        for (nth, (old, new)) in pairs.iter().copied().enumerate() {
            let (before, after) = bounds(nth);
            let (mut i, mut j) = (old, new);
            while i + 1 < after.0 && j + 1 < after.1 && self.are_lines_equal(i + 1, j + 1) {
                (i, j) = (i + 1, j + 1);
                found.push((i, j));
            }
            let (mut i, mut j) = (old, new);
            while i > before.0 && j > before.1 && self.are_lines_equal(i - 1, j - 1) {
                (i, j) = (i - 1, j - 1);
                found.push((i, j));
            }
        }
        self.insert_fitting_pairs(pairs, found);
    }

    fn are_lines_equal(&self, old: usize, new: usize) -> bool {
        self.placeholder_at(new).is_none() && self.old.line(old).trim() == self.new.line(new).trim()
    }

    /// Pairs that fit between those there are.
    fn insert_fitting_pairs(&self, pairs: &mut Vec<(usize, usize)>, mut found: Vec<(usize, usize)>) {
        found.append(pairs);
        found.sort_unstable_by_key(|(old, new)| (*new, *old));
        found.dedup();
        // Contradicting pairs are left out.
        let mut kept: Vec<(usize, usize)> = Vec::with_capacity(found.len());
        for pair in found {
            if kept.last().is_none_or(|last| last.0 < pair.0 && last.1 < pair.1) {
                kept.push(pair);
            }
        }
        *pairs = kept;
    }

    /// A line after a remark that is as far in as the pair before it closes what that opened: in
    /// the file it is the first line that is no further in.
    fn pair_closing_lines(&self, pairs: &mut Vec<(usize, usize)>) {
        let mut found = Vec::new();
        for (nth, (old, new)) in pairs.iter().copied().enumerate() {
            let next = pairs.get(nth + 1).copied().unwrap_or((self.old.len(), self.new.len()));
            let indent = split_indent(self.new.line(new)).0;
            let mut rest = (new + 1..next.1).filter(|at| !self.new.is_blank(*at));
            let Some(first) = rest.next().filter(|at| self.placeholder_at(*at) == Some(Placeholder::Keep))
            else {
                continue;
            };
            // Nothing but remarks and what is further in may stand between.
            let closer = (first + 1..next.1).find(|at| {
                !self.new.is_blank(*at)
                    && self.placeholder_at(*at).is_none()
                    && split_indent(self.new.line(*at)).0.len() <= indent.len()
            });
            let Some(closer) = closer.filter(|at| split_indent(self.new.line(*at)).0 == indent) else {
                continue;
            };
            let own = split_indent(self.old.line(old)).0;
            let place = (old + 1..next.0)
                .find(|at| !self.old.is_blank(*at) && split_indent(self.old.line(*at)).0.len() <= own.len());
            if let Some(place) =
                place.filter(|place| self.are_lines_equal(*place, closer) && *place > old + 1)
            {
                found.push((place, closer));
            }
        }
        self.insert_fitting_pairs(pairs, found);
    }

    /// Returns the replacements between the pairs.
    fn merge_between_pairs(
        &self,
        anchors: &[(usize, usize)],
        text: &str,
        content: &str,
    ) -> Result<MergedPieces, Refusal> {
        let lines: Vec<(&str, &str)> =
            anchors.iter().map(|(old, new)| (self.new.line(*new), self.old.line(*old))).collect();
        let fit = FileStyle::learn_from(&lines, content, text);
        let mut merged = MergedPieces { known: anchors.len(), ..MergedPieces::default() };
        let (mut old, mut new) = (0, 0);
        for (nth, end) in anchors.iter().copied().map(Some).chain([None]).enumerate() {
            let (old_end, new_end) = end.unwrap_or((self.old.len(), self.new.len()));
            let edge = nth == 0 || end.is_none();
            self.merge_gap(old..old_end, new..new_end, edge, &fit, text, &mut merged)?;
            (old, new) = (old_end + 1, new_end + 1);
        }
        Ok(merged)
    }

    fn merge_gap(
        &self,
        old: Range<usize>,
        new: Range<usize>,
        edge: bool,
        fit: &FileStyle,
        text: &str,
        merged: &mut MergedPieces,
    ) -> Result<(), Refusal> {
        let remarks: Vec<usize> = new.clone().filter(|at| self.placeholder_at(*at).is_some()).collect();
        let full_new: Vec<usize> =
            new.clone().filter(|at| !self.new.is_blank(*at) && self.placeholder_at(*at).is_none()).collect();
        let full_old: Vec<usize> = old.clone().filter(|at| !self.old.is_blank(*at)).collect();
        let (Some(first), Some(last)) = (remarks.first().copied(), remarks.last().copied()) else {
            return self
                .merge_gap_without_placeholder(old, new, &full_old, &full_new, edge, fit, text, merged);
        };
        if remarks.iter().any(|at| self.placeholder_at(*at) == Some(Placeholder::Remove)) {
            if remarks.iter().any(|at| self.placeholder_at(*at) == Some(Placeholder::Keep))
                && !full_old.is_empty()
            {
                return Err(self.unclear_refusal(&full_old, "a remark keeps it and another removes it"));
            }
            merged.removed += full_old.len();
            let shown: Vec<usize> = new.filter(|at| self.placeholder_at(*at).is_none()).collect();
            return self.write_lines(old, &shown, fit, text, merged);
        }
        // At an end of the file nothing but the remarks says where text between them goes.
        if full_new.iter().any(|at| (first..last).contains(at)) && (edge || !full_old.is_empty()) {
            return Err(self.unclear_refusal(
                &full_old,
                "new text stands between two remarks for it, and could go anywhere in it",
            ));
        }
        let before: Vec<usize> = (new.start..first).collect();
        let after: Vec<usize> =
            (first + 1..new.end).filter(|at| self.placeholder_at(*at).is_none()).collect();
        let new_text = |lines: &[usize]| lines.iter().any(|at| !self.new.is_blank(*at));
        for at in full_new.iter() {
            let near = self.max_similarity(&full_old, *at);
            if near >= MIN_SIMILARITY || self.has_same_key(&full_old, *at) {
                return Err(self.unclear_refusal(
                    &full_old,
                    "the text beside the remark may be a new version of it, or come to it",
                ));
            }
        }
        if new_text(&before) {
            let mut lines = before;
            // The file has its own blank line there.
            while lines.last().is_some_and(|at| self.new.is_blank(*at)) && self.old.is_blank(old.start) {
                lines.pop();
            }
            self.write_lines(old.start..old.start, &lines, fit, text, merged)?;
        }
        if new_text(&after) {
            let mut lines: &[usize] = &after;
            while let Some((_, rest)) = lines.split_first().filter(|(head, _)| self.new.is_blank(**head)) {
                let above = old.end.checked_sub(1).is_some_and(|at| at >= old.start && self.old.is_blank(at));
                if !above && !rest.first().is_some_and(|next| self.new.is_blank(*next)) {
                    break;
                }
                lines = rest;
            }
            self.write_lines(old.end..old.end, lines, fit, text, merged)?;
        }
        Ok(())
    }

    /// A place without a remark.
    #[allow(clippy::too_many_arguments)]
    fn merge_gap_without_placeholder(
        &self,
        old: Range<usize>,
        new: Range<usize>,
        full_old: &[usize],
        full_new: &[usize],
        edge: bool,
        fit: &FileStyle,
        text: &str,
        merged: &mut MergedPieces,
    ) -> Result<(), Refusal> {
        let remarked = self.remarks.iter().any(Option::is_some);
        if full_old.is_empty() && full_new.is_empty() {
            return Ok(());
        }
        if !full_old.is_empty() {
            let replaced = !full_new.is_empty();
            // The new lines have to be similar: else the old ones may only not have been repeated.
            let versions = full_new.len() <= full_old.len() + 2
                && full_new.iter().all(|at| self.max_similarity(full_old, *at) >= MIN_SIMILARITY);
            let evenly = full_old.len() <= full_new.len() + 2;
            let most = match (remarked, replaced) {
                (true, false) => MAX_UNSHOWN_BESIDE_PLACEHOLDERS,
                (true, true) => MAX_REPLACED_BESIDE_PLACEHOLDERS,
                (false, _) => MAX_UNSHOWN_LINES,
            };
            if edge && remarked || full_old.len() > most || replaced && !(versions && evenly) {
                return Err(self.unclear_refusal(full_old, "it is neither shown nor stood for by a remark"));
            }
        }
        let shown: Vec<usize> = new.collect();
        self.write_lines(old, &shown, fit, text, merged)
    }

    /// Returns true if one of some old lines sets what a new one sets: `color: red`, `a = 1`.
    fn has_same_key(&self, old: &[usize], new: usize) -> bool {
        let key = |line: &'_ str| {
            line.find([':', '=']).and_then(|at| line.get(..at)).map(|key| key.trim().to_owned())
        };
        let own = key(self.new.line(new)).filter(|key| !key.is_empty());
        own.is_some() && old.iter().any(|at| key(self.old.line(*at)) == own)
    }

    /// Returns the highest similarity of a new line to some old lines.
    fn max_similarity(&self, old: &[usize], new: usize) -> f64 {
        let line = self.new.line(new).trim();
        old.iter()
            .take(200)
            .map(|at| strsim::sorensen_dice(self.old.line(*at).trim(), line))
            .fold(0.0, f64::max)
    }

    fn write_lines(
        &self,
        old: Range<usize>,
        lines: &[usize],
        fit: &FileStyle,
        text: &str,
        merged: &mut MergedPieces,
    ) -> Result<(), Refusal> {
        let start = self.old.spans.get(old.start).map_or(text.len(), |span| span.start);
        let end = old
            .end
            .checked_sub(1)
            .filter(|last| *last >= old.start)
            .and_then(|last| self.old.spans.get(last))
            .map_or(start, |span| span.end);
        let mut out = String::new();
        // At the end of a file without a final line break.
        let open = start == text.len() && !text.is_empty() && !text.ends_with('\n');
        for at in lines {
            if open {
                out.push_str(fit.line_break());
            }
            let (indent, rest) = split_indent(self.new.line(*at));
            out.push_str(&if rest.is_empty() { indent.to_owned() } else { fit.file_indent(indent)? });
            out.push_str(rest);
            if !open {
                out.push_str(fit.line_break());
            }
        }
        if end == text.len() && end > start && !text.ends_with('\n') {
            out.truncate(out.trim_end_matches(['\n', '\r']).len());
        }
        merged.pieces.push((start..end, out));
        Ok(())
    }

    fn unclear_refusal(&self, old: &[usize], why: &str) -> Refusal {
        let at = old.first().copied().unwrap_or(0);
        refuse_rewrite(&format!(
            "it can't be told what becomes of `{}` (line {}): {why}. Put `... existing code ...` in a comment where lines stay, and \
             repeat the lines before and after it as they are in the file",
            truncate(self.old.line(at).trim(), 120),
            at + 1
        ))
    }
}
