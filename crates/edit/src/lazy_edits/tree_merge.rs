//! Merging two syntax trees: what the new one shows, and of the old one what its remarks stand for.

use std::ops::Range;

use journeyman_syntax::Node;
use journeyman_syntax::outline::is_attribute;

use super::align::{MAX_UNRELATED_SIMILARITY, MIN_SIMILARITY, align_items, max_similarity};
use super::file_style::FileStyle;
use super::omitted_members::{self, RewriteSides};
use super::refusal::refuse_rewrite;
use super::syntax_items::{ParsedSide, SyntaxItem, has_placeholder, items_of, squeeze_blanks, trimmed_range};
use crate::lines::line_at;
use crate::outcome::{PlacedEdit, Refusal, Strategy};
use crate::placeholder::Placeholder;

/// A statement that is this much like an old one is a version of it, even where the remark beside
/// it then stands for nothing.
pub(super) const MIN_VERSION_SIMILARITY: f64 = 0.75;
/// Lines that may go where the new text doesn't show them and no remark stands for them, at one
/// place.
pub(super) const MAX_UNSHOWN_LINES: usize = 10;
/// The same in a text that leaves out others for remarks, where none comes in their place …
pub(super) const MAX_UNSHOWN_BESIDE_PLACEHOLDERS: usize = 2;
/// … and so many more for each line that comes.
const MAX_UNSHOWN_PER_NEW_LINE: usize = 4;

/// Returns true if more lines go than a text with remarks may leave out without one, for the lines
/// that come in their place.
pub(super) fn loses_too_many_lines(gone: usize, come: usize) -> bool {
    gone > MAX_UNSHOWN_BESIDE_PLACEHOLDERS + MAX_UNSHOWN_PER_NEW_LINE * come
}

/// The replacements in the old text so far.
#[derive(Default)]
pub(super) struct MergedPieces {
    pub(super) pieces: Vec<(Range<usize>, String)>,
    /// Lines of the old text that a remark says to remove.
    pub(super) removed: usize,
    /// Definitions of the old text that nobody mentioned and that were kept.
    pub(super) unmentioned: Vec<String>,
    /// Things that were recognised.
    pub(super) known: usize,
    /// True if all lines were aligned, so that none is taken for one that comes.
    pub(super) is_aligned: bool,
    /// Notes on the merge.
    pub(super) notes: Vec<String>,
}

impl MergedPieces {
    /// The old text with the replacements.
    pub(super) fn apply_to(&self, text: &str) -> String {
        let pieces = self.pieces.clone();
        PlacedEdit { strategy: Strategy::Lazy, line: 1, note: None, pieces }.apply_to(text)
    }
}

/// A merge of two syntax trees.
#[derive(Clone, Copy)]
pub(super) struct TreeMerge<'s, 't> {
    pub(super) old: &'s ParsedSide<'t>,
    pub(super) new: &'s ParsedSide<'t>,
    /// If true, the later of several equal alignments is taken.
    pub(super) late: bool,
    pub(super) file: &'s str,
    /// The new text has a remark.
    pub(super) lazy: bool,
}

/// Something of the merged list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum MergedUnit {
    Old(usize),
    Pair(usize, usize),
    New(usize),
}

impl MergedUnit {
    fn old_index(self) -> Option<usize> {
        match self {
            Self::Old(at) | Self::Pair(at, _) => Some(at),
            Self::New(_) => None,
        }
    }

    fn new_index(self) -> Option<usize> {
        match self {
            Self::New(at) | Self::Pair(_, at) => Some(at),
            Self::Old(_) => None,
        }
    }
}

/// Two lists of things that are one.
pub(super) struct PairedLists<'t> {
    pub(super) old: Vec<SyntaxItem<'t>>,
    pub(super) new: Vec<SyntaxItem<'t>>,
    /// The list is the file's own, or the inside of what holds a fragment.
    outermost: bool,
    /// The new list shows some members of many and leaves out the others.
    partial: bool,
}

/// A place between two pairs.
struct PairGap {
    old: Range<usize>,
    new: Range<usize>,
    first: bool,
    last: bool,
}

impl<'t> TreeMerge<'_, 't> {
    fn sides(&self) -> RewriteSides<'_, 't> {
        RewriteSides { old: self.old, new: self.new, late: self.late }
    }

    /// Merges what two nodes consist of.
    pub(super) fn merge_nodes(
        &self,
        old: Node<'t>,
        new: Node<'t>,
        outermost: bool,
        merged: &mut MergedPieces,
    ) -> Result<(), Refusal> {
        let (old_items, new_items) = (items_of(self.old, old), items_of(self.new, new));
        let pairs = align_items(self.old, &old_items, self.new, &new_items, self.late)
            .ok_or_else(|| refuse_rewrite("the file has too many parts to merge a rewrite into"))?;
        self.check_empty_remarks(&old_items, &new_items, &pairs)?;
        let partial = omitted_members::leaves_out_members(&self.sides(), &old_items, &new_items, &pairs);
        let lists = PairedLists { old: old_items, new: new_items, outermost, partial };
        merged.known +=
            pairs.iter().filter(|(_, at)| lists.new.get(*at).is_some_and(|item| !item.is_token())).count();
        let units = self.merge_lists(&lists, &pairs, merged)?;
        let fit = self.learn_style(&lists, &pairs, old, new);
        self.write_list(&lists, &units, &fit, merged)?;
        for (nth, (one, other)) in pairs.iter().copied().enumerate() {
            let before = nth.checked_sub(1).and_then(|at| pairs.get(at)).map_or(0, |(old, _)| old + 1);
            let after = pairs.get(nth + 1).map_or(lists.old.len(), |(old, _)| *old);
            self.check_new_name(&lists, (one, other), before..after)?;
            let is_remark = |at: Option<usize>| {
                at.and_then(|at| lists.new.get(at)).is_some_and(|item| item.remark == Some(Placeholder::Keep))
            };
            let remarked = (is_remark(other.checked_sub(1)), is_remark(other.checked_add(1)));
            if remarked.0 || remarked.1 {
                self.check_version_choice(&lists, (one, other), before..after)?;
            }
            let (Some(one), Some(other)) = (lists.old.get(one), lists.new.get(other)) else { continue };
            self.check_edges(one, other, remarked)?;
            self.merge_pair(one, other, &fit, merged)?;
        }
        Ok(())
    }

    /// Refuses a statement that is little like the one it would replace, beside a remark that would
    /// then stand for nothing: it comes beside that one, more likely.
    fn check_empty_remarks(
        &self,
        old: &[SyntaxItem<'t>],
        new: &[SyntaxItem<'t>],
        pairs: &[(usize, usize)],
    ) -> Result<(), Refusal> {
        let is_remark = |at: usize| new.get(at).is_some_and(|item| item.remark == Some(Placeholder::Keep));
        for (nth, (one, other)) in pairs.iter().copied().enumerate() {
            let (Some(was), Some(is)) = (old.get(one), new.get(other)) else { continue };
            if is.is_token() || is.is_comment() || was.label.is_some() || is.label.is_some() {
                continue;
            }
            let before = nth.checked_sub(1).and_then(|nth| pairs.get(nth));
            let below = pairs.get(nth + 1).map_or((old.len(), new.len()), |pair| *pair);
            let above = before.map_or((0, 0), |(one, other)| (one + 1, other + 1));
            let empty_below = below.0 == one + 1 && below.1 > other + 1 && is_remark(other + 1);
            let empty_above = above.0 == one && above.1 < other && is_remark(other - 1);
            let alike = || max_similarity(self.old, std::slice::from_ref(was), self.new, is);
            if (empty_below || empty_above) && (MIN_SIMILARITY..MIN_VERSION_SIMILARITY).contains(&alike()) {
                return Err(self.unclear_refusal(
                    std::slice::from_ref(was),
                    "the text beside the remark may be a new version of it, or come to it",
                ));
            }
        }
        Ok(())
    }

    pub(super) fn is_partial(&self, old: &SyntaxItem<'t>, new: &SyntaxItem<'t>) -> bool {
        omitted_members::is_partial(&self.sides(), old.node, new.node)
    }

    /// The merged list.
    fn merge_lists(
        &self,
        lists: &PairedLists<'t>,
        pairs: &[(usize, usize)],
        merged: &mut MergedPieces,
    ) -> Result<Vec<MergedUnit>, Refusal> {
        let mut units = Vec::with_capacity(lists.old.len() + lists.new.len());
        let (mut old, mut new) = (0, 0);
        let ends = pairs.iter().copied().map(Some).chain([None]);
        for end in ends {
            let (old_end, new_end) = end.unwrap_or((lists.old.len(), lists.new.len()));
            let gap = PairGap {
                old: old..old_end,
                new: new..new_end,
                first: old == 0 && new == 0,
                last: end.is_none(),
            };
            self.merge_gap(lists, &gap, &mut units, merged)?;
            if let Some((one, other)) = end {
                units.push(MergedUnit::Pair(one, other));
                (old, new) = (one + 1, other + 1);
            }
        }
        Ok(units)
    }

    /// Decides what is kept and added between two pairs.
    fn merge_gap(
        &self,
        lists: &PairedLists<'t>,
        gap: &PairGap,
        units: &mut Vec<MergedUnit>,
        merged: &mut MergedPieces,
    ) -> Result<(), Refusal> {
        let old = lists.old.get(gap.old.clone()).unwrap_or_default();
        let new = lists.new.get(gap.new.clone()).unwrap_or_default();
        let remarks: Vec<Placeholder> = new.iter().filter_map(|item| item.remark).collect();
        let shown: Vec<usize> = gap
            .new
            .clone()
            .filter(|at| lists.new.get(*at).is_some_and(|item| item.remark.is_none()))
            .collect();
        let keeps = remarks.contains(&Placeholder::Keep);
        if keeps && remarks.contains(&Placeholder::Remove) && !old.is_empty() {
            return Err(self.unclear_refusal(old, "a remark keeps it and another removes it"));
        }
        if remarks.is_empty() || !keeps {
            if remarks.is_empty() && self.stays_outside_fragment(lists, gap, old, &shown, merged)? {
                if gap.first {
                    units.extend(gap.old.clone().map(MergedUnit::Old));
                    units.extend(shown.into_iter().map(MergedUnit::New));
                } else {
                    units.extend(shown.into_iter().map(MergedUnit::New));
                    units.extend(gap.old.clone().map(MergedUnit::Old));
                }
                return Ok(());
            }
            if !remarks.is_empty() {
                merged.removed += old.iter().map(|item| self.count_lines(item)).sum::<usize>();
            }
            if shown.is_empty() && old.iter().all(SyntaxItem::is_comment) && remarks.is_empty() {
                units.extend(gap.old.clone().map(MergedUnit::Old));
            }
            units.extend(shown.into_iter().map(MergedUnit::New));
            return Ok(());
        }
        self.merge_gap_with_placeholders(lists, gap, &shown, units, merged)
    }

    /// A place with remarks that keep: what stands before the first of them comes first, what
    /// stands after the last comes last.
    fn merge_gap_with_placeholders(
        &self,
        lists: &PairedLists<'t>,
        gap: &PairGap,
        shown: &[usize],
        units: &mut Vec<MergedUnit>,
        merged: &mut MergedPieces,
    ) -> Result<(), Refusal> {
        let old = lists.old.get(gap.old.clone()).unwrap_or_default();
        let is_remark = |at: &usize| lists.new.get(*at).is_some_and(|item| item.remark.is_some());
        let first = gap.new.clone().find(is_remark).unwrap_or(gap.new.end);
        let last = gap.new.clone().rev().find(is_remark).unwrap_or(gap.new.start);
        for at in shown {
            let Some(item) = lists.new.get(*at) else { continue };
            if item.label.is_none() && !item.is_comment() {
                let alike = max_similarity(self.old, old, self.new, item);
                if (MAX_UNRELATED_SIMILARITY..MIN_SIMILARITY).contains(&alike) {
                    return Err(self.unclear_refusal(
                        old,
                        "the text beside the remark may be a new version of it, or come to it",
                    ));
                }
            }
        }
        let middle: Vec<usize> = shown.iter().copied().filter(|at| (first..last).contains(at)).collect();
        if !middle.is_empty() && !old.is_empty() {
            let free = |item: &SyntaxItem<'_>| item.definition || item.is_comment();
            let free_new = middle.iter().filter_map(|at| lists.new.get(*at)).all(free);
            if !free_new || !old.iter().all(free) {
                return Err(self.unclear_refusal(
                    old,
                    "new text stands between two remarks for it, and could go anywhere in it",
                ));
            }
            merged.notes.push("what stood between two remarks was put after what they stand for".to_owned());
        }
        units.extend(shown.iter().filter(|at| **at < first).map(|at| MergedUnit::New(*at)));
        units.extend(gap.old.clone().map(MergedUnit::Old));
        units.extend(shown.iter().filter(|at| **at > first).map(|at| MergedUnit::New(*at)));
        Ok(())
    }

    /// Returns true if old things that the new text neither shows nor has a remark for lie outside
    /// of what it is about, and so stay. Where that can't be told, nothing is done.
    fn stays_outside_fragment(
        &self,
        lists: &PairedLists<'t>,
        gap: &PairGap,
        old: &[SyntaxItem<'t>],
        shown: &[usize],
        merged: &mut MergedPieces,
    ) -> Result<bool, Refusal> {
        let definitions: Vec<&SyntaxItem<'_>> = old.iter().filter(|item| item.definition).collect();
        let lines: usize =
            old.iter().filter(|item| !item.is_comment()).map(|item| self.count_lines(item)).sum();
        if lines == 0 {
            return Ok(false);
        }
        if lists.partial {
            merged.unmentioned.extend(old.iter().filter_map(|item| item.label.clone()));
            return Ok(true);
        }
        let remarked = lists.new.iter().any(|item| item.remark.is_some());
        // Brackets are at the edges too.
        let opens = gap.first
            || gap
                .old
                .start
                .checked_sub(1)
                .and_then(|at| lists.old.get(at))
                .is_some_and(|item| item.is_token() && gap.old.start <= 1);
        let closes = gap.last
            || (gap.old.end + 1 == lists.old.len()
                && lists.old.get(gap.old.end).is_some_and(SyntaxItem::is_token));
        if lists.outermost && (opens || closes) && (!remarked || gap.first) {
            merged.unmentioned.extend(definitions.iter().filter_map(|item| item.label.clone()));
            return Ok(true);
        }
        let renamed = definitions.len() == 1
            && shown
                .iter()
                .filter_map(|at| lists.new.get(*at))
                .any(|item| max_similarity(self.old, old, self.new, item) >= MIN_SIMILARITY);
        if definitions.is_empty() || renamed {
            let come: usize = shown
                .iter()
                .filter_map(|at| lists.new.get(*at))
                .map(|item| self.new.text_of(item.start..item.end).lines().count())
                .sum();
            let silent = self.lazy && loses_too_many_lines(lines, come);
            if (silent || lines > MAX_UNSHOWN_LINES && lines > 2 * shown.len()) && !renamed {
                return Err(self.unclear_refusal(old, "it is neither shown nor stood for by a remark"));
            }
            return Ok(false);
        }
        // All else is as it was: so this is what was meant.
        if !remarked && shown.is_empty() && lists.outermost && self.has_no_changes(lists) {
            return Ok(false);
        }
        Err(self.unclear_refusal(old, "it is neither shown nor stood for by a remark"))
    }

    /// Returns true if all that the new list shows is as it was.
    fn has_no_changes(&self, lists: &PairedLists<'t>) -> bool {
        lists.new.iter().all(|item| {
            let words = squeeze_blanks(self.new.text_of(trimmed_range(self.new, item.node)));
            lists.old.iter().any(|old| {
                old.node.kind_id() == item.node.kind_id()
                    && squeeze_blanks(self.old.text_of(trimmed_range(self.old, old.node))) == words
            })
        })
    }

    /// Two things that are one: nothing to do, a new version, or something in it.
    fn merge_pair(
        &self,
        old: &SyntaxItem<'t>,
        new: &SyntaxItem<'t>,
        fit: &FileStyle,
        merged: &mut MergedPieces,
    ) -> Result<(), Refusal> {
        if new.is_token() {
            return Ok(());
        }
        self.merge_lead(old, new, fit, merged)?;
        if has_placeholder(self.new, new.node) || self.is_partial(old, new) {
            return self.merge_nodes(old.node, new.node, false, merged);
        }
        let (old_range, new_range) = (trimmed_range(self.old, old.node), trimmed_range(self.new, new.node));
        let (was, is) = (self.old.text_of(old_range.clone()), self.new.text_of(new_range));
        let text = fit.rewrite_text(was, is)?;
        if text != was {
            merged.pieces.push((old_range, text));
        }
        Ok(())
    }

    /// The comments and attributes before a thing: the new ones, if there are any. Attributes that
    /// they leave out stay.
    fn merge_lead(
        &self,
        old: &SyntaxItem<'t>,
        new: &SyntaxItem<'t>,
        fit: &FileStyle,
        merged: &mut MergedPieces,
    ) -> Result<(), Refusal> {
        let range = old.start..old.node.start_byte();
        let (was, is) = (self.old.text_of(range.clone()), self.new.text_of(new.start..new.node.start_byte()));
        if is.trim().is_empty() || squeeze_blanks(was) == squeeze_blanks(is) {
            return Ok(());
        }
        let mut text = fit.rewrite_text(was.trim_end(), is.trim_end())?;
        let blanks = if is.contains('\n') {
            fit.line_break().to_owned() + indent_of_line_at(self.old, old.node.start_byte())
        } else {
            " ".to_owned()
        };
        let attributes = |item: &SyntaxItem<'t>| {
            let mut found = Vec::new();
            let mut at = item.node.prev_sibling();
            while let Some(before) = at.filter(|before| before.start_byte() >= item.start) {
                found.extend(is_attribute(before).then_some(before));
                at = before.prev_sibling();
            }
            found
        };
        if attributes(new).is_empty() {
            for attribute in attributes(old).into_iter().rev() {
                text.push_str(&blanks);
                text.push_str(self.old.text_of(trimmed_range(self.old, attribute)));
            }
        }
        merged.pieces.push((range, text + &blanks));
        Ok(())
    }

    /// Returns the style in which text of the new list is written in the file.
    fn learn_style(
        &self,
        lists: &PairedLists<'t>,
        pairs: &[(usize, usize)],
        old: Node<'t>,
        new: Node<'t>,
    ) -> FileStyle {
        let mut lines: Vec<(&str, &str)> =
            vec![(line_up_to(self.new, new.start_byte()), line_up_to(self.old, old.start_byte()))];
        for (one, other) in pairs {
            let (Some(one), Some(other)) = (lists.old.get(*one), lists.new.get(*other)) else { continue };
            let both =
                (line_up_to(self.new, other.node.start_byte()), line_up_to(self.old, one.node.start_byte()));
            let opens = |side: &ParsedSide<'_>, at: usize| {
                side.text_of(0..at).rsplit('\n').next().is_some_and(|before| before.trim().is_empty())
            };
            if opens(self.new, other.node.start_byte()) && opens(self.old, one.node.start_byte()) {
                lines.push(both);
            }
        }
        FileStyle::learn_from(&lines, self.new.text, self.file)
    }

    /// Writes the list: what lies between two things of the old text that stay beside each other
    /// isn't touched.
    fn write_list(
        &self,
        lists: &PairedLists<'t>,
        units: &[MergedUnit],
        fit: &FileStyle,
        merged: &mut MergedPieces,
    ) -> Result<(), Refusal> {
        let commas = lists.old.iter().chain(&lists.new).filter(|item| item.separator.is_some()).count() > 0
            && lists
                .old
                .iter()
                .map(|item| (self.old, item))
                .chain(lists.new.iter().map(|item| (self.new, item)))
                .all(|(side, item)| item.separator.clone().is_none_or(|range| side.text_of(range) == ","));
        let separated = |unit: MergedUnit, next: Option<MergedUnit>| -> Option<bool> {
            let is_list = |unit: MergedUnit| {
                self.item_of(lists, unit).is_some_and(|item| !item.is_token() && !item.is_comment())
            };
            let followed = next.filter(|next| is_list(*next));
            // The last one keeps what the file's last one had.
            let trailing = lists
                .old
                .iter()
                .rev()
                .find(|item| !item.is_token() && !item.is_comment())
                .is_some_and(|item| item.separator.is_some());
            (commas && is_list(unit)).then(|| followed.is_some() || trailing)
        };
        let mut before: Option<MergedUnit> = None;
        let mut run: Vec<MergedUnit> = Vec::new();
        for (at, unit) in units.iter().copied().enumerate() {
            if unit.old_index().is_none() {
                run.push(unit);
                continue;
            }
            self.write_between(lists, before, &run, Some(unit), &separated, fit, merged)?;
            run.clear();
            before = Some(unit);
            let item = unit.old_index().and_then(|at| lists.old.get(at));
            let wanted = separated(unit, units.get(at + 1).copied());
            if let (Some(item), Some(wanted)) = (item, wanted) {
                let end = trimmed_range(self.old, item.node).end;
                match (&item.separator, wanted) {
                    (None, true) => merged.pieces.push((end..end, ",".to_owned())),
                    (Some(range), false) => merged.pieces.push((range.clone(), String::new())),
                    _ => {}
                }
            }
        }
        self.write_between(lists, before, &run, None, &separated, fit, merged)
    }

    fn item_of<'a>(&self, lists: &'a PairedLists<'t>, unit: MergedUnit) -> Option<&'a SyntaxItem<'t>> {
        match unit {
            MergedUnit::Old(at) | MergedUnit::Pair(at, _) => lists.old.get(at),
            MergedUnit::New(at) => lists.new.get(at),
        }
    }

    /// Writes new things between two old ones, and takes away what lay there.
    #[allow(clippy::too_many_arguments)]
    fn write_between(
        &self,
        lists: &PairedLists<'t>,
        before: Option<MergedUnit>,
        run: &[MergedUnit],
        after: Option<MergedUnit>,
        separated: &dyn Fn(MergedUnit, Option<MergedUnit>) -> Option<bool>,
        fit: &FileStyle,
        merged: &mut MergedPieces,
    ) -> Result<(), Refusal> {
        let neighbours = match (before.and_then(MergedUnit::old_index), after.and_then(MergedUnit::old_index))
        {
            (Some(one), Some(other)) => one + 1 == other,
            (None, Some(other)) => other == 0,
            (Some(one), None) => one + 1 == lists.old.len(),
            (None, None) => lists.old.is_empty(),
        };
        if run.is_empty() && neighbours {
            return Ok(());
        }
        let start =
            before.and_then(MergedUnit::old_index).and_then(|at| lists.old.get(at)).map(|item| item.end);
        let end =
            after.and_then(MergedUnit::old_index).and_then(|at| lists.old.get(at)).map(|item| item.start);
        let edges =
            (lists.old.first().map_or(0, |item| item.start), lists.old.last().map_or(0, |item| item.end));
        let range = start.unwrap_or(edges.0)..end.unwrap_or(edges.1);
        let mut out = String::new();
        let mut last = before;
        for (at, unit) in run.iter().copied().enumerate() {
            let Some(item) = self.item_of(lists, unit) else { continue };
            let indent = indent_of_line_at(self.new, item.start);
            if last.is_some() {
                out.push_str(&self.space_between(lists, last, unit, fit, indent)?);
            }
            let following = run.get(at + 1).copied().or(after);
            let own = self.text_with_separator(item, separated(unit, following));
            out.push_str(&fit.reindent_following_lines(&own)?);
            last = Some(unit);
        }
        match after {
            Some(unit) if last.is_some() => {
                out.push_str(&self.space_between(lists, last, unit, fit, self.old_indent_of(lists, unit))?)
            }
            _ => {}
        }
        if self.old.text_of(range.clone()) != out {
            merged.pieces.push((range, out));
        }
        Ok(())
    }

    fn old_indent_of(&self, lists: &PairedLists<'t>, unit: MergedUnit) -> &'t str {
        unit.old_index()
            .and_then(|at| lists.old.get(at))
            .map_or("", |item| indent_of_line_at(self.old, item.start))
    }

    fn are_adjacent(&self, before: Option<MergedUnit>, after: MergedUnit) -> bool {
        matches!((before.and_then(MergedUnit::new_index), after.new_index()), (Some(one), Some(other)) if one + 1 == other)
    }

    /// The text of a new thing, with a comma or without.
    fn text_with_separator(&self, item: &SyntaxItem<'t>, separated: Option<bool>) -> String {
        let own = self.new.text_of(item.start..item.end);
        let end = trimmed_range(self.new, item.node).end;
        match (&item.separator, separated) {
            (None, Some(true)) => {
                format!("{},{}", self.new.text_of(item.start..end), self.new.text_of(end..item.end))
            }
            (Some(comma), Some(false)) => {
                format!(
                    "{}{}",
                    self.new.text_of(item.start..comma.start),
                    self.new.text_of(comma.end..item.end)
                )
            }
            _ => own.to_owned(),
        }
    }

    /// The blanks between two things of which one is new, or between two that had others between
    /// them.
    fn space_between(
        &self,
        lists: &PairedLists<'t>,
        before: Option<MergedUnit>,
        after: MergedUnit,
        fit: &FileStyle,
        indent: &str,
    ) -> Result<String, Refusal> {
        let gap = |side: &ParsedSide<'t>, list: &[SyntaxItem<'_>], at: usize| {
            let to = list.get(at).map_or(0, |item| item.start);
            let from = at.checked_sub(1).and_then(|before| list.get(before)).map_or(0, |item| item.end);
            side.text_of(from.min(to)..to)
        };
        let (text, is_new) = match (after, before.and_then(MergedUnit::new_index)) {
            // As the new text has it after what stands before it there, if only a remark.
            (MergedUnit::New(at) | MergedUnit::Pair(_, at), _) => (gap(self.new, &lists.new, at), true),
            // An old thing that a remark kept, after a new one: as it stood after its neighbour.
            (MergedUnit::Old(0), Some(new)) => (gap(self.new, &lists.new, new + 1), true),
            (MergedUnit::Old(at), _) => (gap(self.old, &lists.old, at), false),
        };
        let mut breaks = text.matches('\n').count();
        if is_new && breaks == 1 && self.wants_blank_line(lists, before, after) {
            breaks = 2;
        }
        if breaks == 0 {
            return Ok(text.to_owned());
        }
        let own = if after.old_index().is_some() { indent.to_owned() } else { fit.file_indent(indent)? };
        Ok(fit.line_break().repeat(breaks) + &own)
    }

    /// Returns true if definitions here are divided by blank lines, and both sides are such.
    fn wants_blank_line(
        &self,
        lists: &PairedLists<'t>,
        before: Option<MergedUnit>,
        after: MergedUnit,
    ) -> bool {
        let long = |item: &SyntaxItem<'_>, side: &ParsedSide<'_>| {
            item.definition && side.text_of(item.start..item.end).contains('\n')
        };
        let is_long = |unit: MergedUnit| match unit {
            MergedUnit::Old(at) | MergedUnit::Pair(at, _) => {
                lists.old.get(at).is_some_and(|item| long(item, self.old))
            }
            MergedUnit::New(at) => lists.new.get(at).is_some_and(|item| long(item, self.new)),
        };
        let both = before.is_some_and(is_long) && is_long(after);
        // If the new text has both side by side, its spacing is taken.
        both && !before.is_some_and(|before| self.are_adjacent(Some(before), after))
            && lists.old.windows(2).any(|two| {
                let [one, other] = two else { return false };
                long(one, self.old)
                    && long(other, self.old)
                    && self.old.text_of(one.end..other.start).matches('\n').count() > 1
            })
    }

    /// Lines of an old thing.
    fn count_lines(&self, item: &SyntaxItem<'_>) -> usize {
        self.old.text_of(item.start..item.end).lines().filter(|line| !line.trim().is_empty()).count()
    }

    pub(super) fn unclear_refusal(&self, old: &[SyntaxItem<'t>], why: &str) -> Refusal {
        let first = old.iter().find(|item| item.definition).or(old.first());
        let Some(item) = first else { return refuse_rewrite(why) };
        let line = line_at(self.old.text, item.node.start_byte());
        let own = self.old.text_of(item.node.byte_range()).lines().next().unwrap_or_default().trim();
        let own = crate::outcome::truncate(own, 120);
        refuse_rewrite(&format!(
            "it can't be told what becomes of `{own}` (line {line}): {why}. Put `... existing code ...` in a comment where it stays, or \
             show it as it will be; to take it away, put `... removed code ...` in its place"
        ))
    }
}

/// The line that a place is in, from its beginning.
fn line_up_to<'t>(side: &ParsedSide<'t>, at: usize) -> &'t str {
    let start = side.text_of(0..at).rfind('\n').map_or(0, |end| end + 1);
    side.text.get(start..).unwrap_or_default().lines().next().unwrap_or_default()
}

/// The blanks that the line of a place begins with.
fn indent_of_line_at<'t>(side: &ParsedSide<'t>, at: usize) -> &'t str {
    crate::lines::split_indent(line_up_to(side, at)).0
}
