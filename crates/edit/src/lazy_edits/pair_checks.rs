//! Pairs of an old and a new thing that may be meant in two ways.

use std::ops::Range;

use super::align::max_similarity;
use super::syntax_items::{ParsedSide, SyntaxItem, has_placeholder};
use super::tree_merge::{MIN_VERSION_SIMILARITY, PairedLists, TreeMerge};
use crate::outcome::Refusal;

/// A statement is a version of the one that it is this much more like than any beside it.
const MIN_SIMILARITY_LEAD: f64 = 0.1;

impl<'t> TreeMerge<'_, 't> {
    /// Refuses another name for something whose body is left out where it may be another thing's.
    pub(super) fn check_new_name(
        &self,
        lists: &PairedLists<'t>,
        (one, other): (usize, usize),
        near: Range<usize>,
    ) -> Result<(), Refusal> {
        let (Some(old), Some(new)) = (lists.old.get(one), lists.new.get(other)) else { return Ok(()) };
        if !old.definition || old.label == new.label || !has_placeholder(self.new, new.node) {
            return Ok(());
        }
        let same = |at: usize| {
            at != one
                && lists
                    .old
                    .get(at)
                    .is_some_and(|item| item.definition && item.node.kind_id() == old.node.kind_id())
        };
        if near.clone().any(same) {
            let why =
                "its body is left out, and its name may be a new one for this or for something beside it";
            return Err(self.unclear_refusal(std::slice::from_ref(old), why));
        }
        Ok(())
    }

    /// Refuses a statement right beside a remark that is as much like another statement there as
    /// like the one that it would replace: it comes to them, as likely.
    pub(super) fn check_version_choice(
        &self,
        lists: &PairedLists<'t>,
        (one, other): (usize, usize),
        near: Range<usize>,
    ) -> Result<(), Refusal> {
        let (Some(old), Some(new)) = (lists.old.get(one), lists.new.get(other)) else { return Ok(()) };
        if new.is_token() || new.is_comment() || old.label.is_some() || new.label.is_some() {
            return Ok(());
        }
        let items = |range: Range<usize>| lists.old.get(range).unwrap_or_default();
        let alike = |items: &[SyntaxItem<'t>]| max_similarity(self.old, items, self.new, new);
        let own = alike(std::slice::from_ref(old));
        let beside = [items(near.start..one), items(one + 1..near.end)];
        let is_alike = |items: &[SyntaxItem<'t>]| {
            items.iter().any(|item| item.node.kind_id() == old.node.kind_id())
                && (own < MIN_VERSION_SIMILARITY || alike(items) > own - MIN_SIMILARITY_LEAD)
        };
        if own < 1.0 && beside.into_iter().any(is_alike) {
            let why = "the text beside the remark may be a new version of it or of what is beside it, or come to them";
            return Err(self.unclear_refusal(std::slice::from_ref(old), why));
        }
        Ok(())
    }

    /// Refuses a thing right beside a remark that may stand for a part of it as well:
    /// attributes that were above it, or the last lines of a block without an end of its own.
    pub(super) fn check_edges(
        &self,
        old: &SyntaxItem<'t>,
        new: &SyntaxItem<'t>,
        (above, below): (bool, bool),
    ) -> Result<(), Refusal> {
        let text = |side: &ParsedSide<'t>, item: &SyntaxItem<'t>| side.text_of(item.start..item.end);
        let (was, is) = (text(self.old, old), text(self.new, new));
        if above && has_attribute(was) && !has_attribute(is) {
            let why = "the remark above may stand for what is right before it, or that may be gone";
            return Err(self.unclear_refusal(std::slice::from_ref(old), why));
        }
        let last = |text: &'t str| text.trim_end().lines().next_back().map(str::trim);
        let ends = last(is);
        let goes_on = || was.lines().map(str::trim).any(|line| Some(line) == ends);
        if below
            && was.contains('\n')
            && last(was) != ends
            && goes_on()
            && !has_placeholder(self.new, new.node)
            && !self.is_partial(old, new)
        {
            let why =
                "its text ends where the file's goes on, and the remark below may stand for the rest of it";
            return Err(self.unclear_refusal(std::slice::from_ref(old), why));
        }
        Ok(())
    }
}

/// Returns true if a thing's text begins with attributes or decorators, after its comments.
fn has_attribute(text: &str) -> bool {
    let is_attribute = |line: &str| line.starts_with('@') || line.starts_with("#[");
    let mut lines = text.lines().map(str::trim).skip_while(|line| {
        line.is_empty() || line.starts_with(['*', '/']) || (line.starts_with('#') && !is_attribute(line))
    });
    lines.next().is_some_and(is_attribute)
}
