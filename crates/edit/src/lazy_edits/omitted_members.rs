//! Classes and objects of which a rewrite shows some members and leaves out the others without a
//! word.

use journeyman_syntax::Node;

use super::align::align_items;
use super::syntax_items::{ParsedSide, SyntaxItem, items_of};

/// Bodies in bodies that are looked into for the members.
const MAX_BODY_DEPTH: usize = 4;
/// Of a file's lines, the hundredths whose loss is no deletion by omission.
const MAX_OMITTED_PERCENT: usize = 30;

/// The file and the rewrite, and which of several equal alignments is taken.
pub(super) struct RewriteSides<'s, 't> {
    pub(super) old: &'s ParsedSide<'t>,
    pub(super) new: &'s ParsedSide<'t>,
    pub(super) late: bool,
}

/// Returns true if a class or object of the rewrite shows some of the members that the file's has
/// and leaves out at least as many, or a large part of the file.
pub(super) fn is_partial<'t>(sides: &RewriteSides<'_, 't>, old: Node<'t>, new: Node<'t>) -> bool {
    let (mut old, mut new) = (old, new);
    for _ in 0..MAX_BODY_DEPTH {
        let (old_items, new_items) = (items_of(sides.old, old), items_of(sides.new, new));
        let Some(pairs) = align_items(sides.old, &old_items, sides.new, &new_items, sides.late) else {
            return false;
        };
        if leaves_out_members(sides, &old_items, &new_items, &pairs) {
            return true;
        }
        // An object may be whole and one of its members not.
        let inside =
            pairs.iter().filter_map(|(one, other)| Some((old_items.get(*one)?, new_items.get(*other)?)));
        let pair = |node: Node<'_>| node.kind() == "pair";
        if inside
            .clone()
            .any(|(one, other)| pair(one.node) && pair(other.node) && is_partial(sides, one.node, other.node))
        {
            return true;
        }
        let (Some(one), Some(other)) = (body_of(old), body_of(new)) else { return false };
        if one.kind_id() != other.kind_id() {
            return false;
        }
        (old, new) = (one, other);
    }
    false
}

fn body_of(node: Node<'_>) -> Option<Node<'_>> {
    ["body", "value", "declaration", "definition"].iter().find_map(|field| node.child_by_field_name(field))
}

/// Returns true if a list shows some members of the old one and leaves out at least as many, or
/// such as are a large part of the file.
pub(super) fn leaves_out_members(
    sides: &RewriteSides<'_, '_>,
    old: &[SyntaxItem<'_>],
    new: &[SyntaxItem<'_>],
    pairs: &[(usize, usize)],
) -> bool {
    let is_member = |side: &ParsedSide<'_>, item: &SyntaxItem<'_>| {
        let key = item.node.kind() == "pair" && item.node.child_by_field_name("key").is_some();
        key && is_in_json(item.node)
            || item.definition && side.text_of(item.node.byte_range()).contains('\n') && !item.is_token()
    };
    let remarked = new.iter().any(|item| item.remark.is_some());
    let members: Vec<(usize, &SyntaxItem<'_>)> =
        old.iter().enumerate().filter(|(_, item)| is_member(sides.old, item)).collect();
    let keys = members.iter().all(|(_, item)| item.node.kind() == "pair");
    // What a remark in code stands for is told by where it stands.
    if members.is_empty() || (remarked && !keys) {
        return false;
    }
    let shown = |index: usize| {
        pairs.iter().any(|(one, other)| {
            *one == index && new.get(*other).is_some_and(|item| is_member(sides.new, item))
        })
    };
    let omitted: Vec<&SyntaxItem<'_>> =
        members.iter().filter(|(index, _)| !shown(*index)).map(|(_, item)| *item).collect();
    let known = members.len() - omitted.len();
    // One in place of the only other is a new name for it.
    let renamed = omitted.len() == 1
        && new
            .iter()
            .enumerate()
            .any(|(at, item)| is_member(sides.new, item) && !pairs.iter().any(|(_, other)| *other == at));
    if known == 0 || omitted.is_empty() || renamed || has_no_changes(sides, old, new, pairs) {
        return false;
    }
    let filled = |text: &str| text.lines().filter(|line| !line.trim().is_empty()).count();
    let lines: usize = omitted.iter().map(|item| filled(sides.old.text_of(item.node.byte_range()))).sum();
    omitted.len() >= known || lines * 100 > filled(sides.old.text) * MAX_OMITTED_PERCENT
}

/// Returns true if all that is shown is as it was: then leaving something out is the change.
fn has_no_changes(
    sides: &RewriteSides<'_, '_>,
    old: &[SyntaxItem<'_>],
    new: &[SyntaxItem<'_>],
    pairs: &[(usize, usize)],
) -> bool {
    let words = super::syntax_items::squeeze_blanks;
    let same = |(one, other): &(usize, usize)| {
        let (Some(one), Some(other)) = (old.get(*one), new.get(*other)) else { return false };
        words(sides.old.text_of(one.node.byte_range())) == words(sides.new.text_of(other.node.byte_range()))
    };
    let paired = |at: usize| pairs.iter().any(|(_, other)| *other == at);
    pairs.iter().all(same) && (0..new.len()).all(paired)
}

/// Returns true if a node is a part of JSON and not of a language that has objects, too.
fn is_in_json(node: Node<'_>) -> bool {
    let mut at = Some(node);
    while let Some(node) = at {
        match node.kind() {
            "pair" | "object" | "array" => at = node.parent(),
            kind => return kind == "document",
        }
    }
    false
}
