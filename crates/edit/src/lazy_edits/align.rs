//! Alignment of the new text's items with the old text's.

use std::collections::BTreeMap;

use super::syntax_items::{ParsedSide, SyntaxItem, has_placeholder, squeeze_blanks, trimmed_range};
use crate::placeholder;

/// Things on both sides, multiplied, that are aligned; more of them are generated, or not a text
/// for this.
const MAX_CELLS: usize = 1_000_000;
/// Two statements are versions of one where this part of their words is the same.
pub(super) const MIN_SIMILARITY: f64 = 0.6;
/// With less than this they have nothing to do with each other; in between nobody knows.
pub(super) const MAX_UNRELATED_SIMILARITY: f64 = 0.45;
/// Words of each that are compared.
const MAX_COMPARED_WORDS: usize = 400;

/// The features by which items are compared.
struct ItemFeatures {
    kind: u16,
    words: String,
    bag: BTreeMap<String, u32>,
    total: u32,
    /// It has a remark in it, so that it is a version of something.
    remarked: bool,
    /// The name of an element's tag.
    tag: Option<String>,
}

fn features_of(side: &ParsedSide<'_>, item: &SyntaxItem<'_>) -> ItemFeatures {
    let text = side.text_of(trimmed_range(side, item.node));
    let mut bag = BTreeMap::new();
    let mut total = 0;
    let remarked = item.node.is_named() && has_placeholder(side, item.node);
    let own = text.lines().filter(|line| {
        !remarked || (placeholder::placeholder_of_line(line).is_none() && !line.contains("__jm_remark_"))
    });
    for word in own.flat_map(words).take(MAX_COMPARED_WORDS) {
        *bag.entry(word.to_owned()).or_insert(0) += 1;
        total += 1;
    }
    ItemFeatures {
        kind: item.node.kind_id(),
        words: squeeze_blanks(text),
        bag,
        total,
        remarked,
        tag: tag_of(side, item),
    }
}

/// The name of the tag of an element of HTML or the like.
fn tag_of(side: &ParsedSide<'_>, item: &SyntaxItem<'_>) -> Option<String> {
    let tag = item.node.child(0).filter(|_| item.node.kind().ends_with("element"))?;
    let name = tag.child_by_field_name("name").or_else(|| tag.named_child(0))?;
    Some(side.text_of(name.byte_range()).to_owned())
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

impl ItemFeatures {
    /// Returns the share of words that two items have in common, from 0 to 1.
    fn shared_words(&self, other: &Self) -> f64 {
        let shared: u32 = self
            .bag
            .iter()
            .map(|(word, count)| (*count).min(other.bag.get(word).copied().unwrap_or(0)))
            .sum();
        // Of what is left out for a remark nobody knows how much it is.
        let of = if other.remarked { 2 * other.total } else { self.total + other.total };
        f64::from(2 * shared) / f64::from(of.max(1))
    }
}

/// Returns the score of a pair of items: 0 if they don't correspond.
fn pair_score(
    old: (&SyntaxItem<'_>, &ItemFeatures),
    new: (&SyntaxItem<'_>, &ItemFeatures),
    single: bool,
) -> u32 {
    let ((old, old_face), (new, new_face)) = (old, new);
    if new.remark.is_some() || old.is_token() != new.is_token() {
        return 0;
    }
    if new.is_token() {
        return if old_face.words == new_face.words { 20 } else { 0 };
    }
    if old_face.tag != new_face.tag {
        return 0;
    }
    if old_face.words == new_face.words && old.label == new.label {
        return 120 + u32::from(old_face.words.len() > 20) * 20;
    }
    match (&old.label, &new.label) {
        (Some(one), Some(other)) if one == other => {
            return 80 + (old_face.shared_words(new_face) * 20.0) as u32;
        }
        // Another name for what has its body left out.
        (Some(_), Some(_)) if new_face.remarked && old_face.kind == new_face.kind && old.definition => {
            let alike = old_face.shared_words(new_face);
            return if alike >= MAX_UNRELATED_SIMILARITY { (alike * 40.0) as u32 } else { 0 };
        }
        (Some(_), Some(_)) => return 0,
        _ => {}
    }
    if old_face.kind != new_face.kind {
        return if old.field.is_some() && old.field == new.field && single { 50 } else { 0 };
    }
    if single
        && (old.field.is_some() || !old.is_comment())
        && old.field == new.field
        && (old.field.is_some() || is_unique_child(old))
    {
        return 70;
    }
    if single && new_face.remarked {
        return 60;
    }
    let alike = old_face.shared_words(new_face);
    if alike >= MIN_SIMILARITY { (alike * 40.0) as u32 } else { 0 }
}

/// Returns true if a node is a part that its parent has one of: a body, a list of parameters.
fn is_unique_child(item: &SyntaxItem<'_>) -> bool {
    let kind = item.node.kind();
    [
        "body",
        "parameters",
        "parameter_list",
        "block",
        "arguments",
        "heritage",
        "type_arguments",
        "object",
        "array",
        "table",
    ]
    .iter()
    .any(|part| kind.ends_with(part))
}

/// The pairs (old, new), both rising. `late` chooses, where several choices are as good, those
/// further on.
pub(super) fn align_items(
    old_side: &ParsedSide<'_>,
    old: &[SyntaxItem<'_>],
    new_side: &ParsedSide<'_>,
    new: &[SyntaxItem<'_>],
    late: bool,
) -> Option<Vec<(usize, usize)>> {
    let (height, width) = (old.len(), new.len());
    if (height + 1).checked_mul(width + 1)? > MAX_CELLS {
        return None;
    }
    let old_faces: Vec<ItemFeatures> = old.iter().map(|item| features_of(old_side, item)).collect();
    let new_faces: Vec<ItemFeatures> = new.iter().map(|item| features_of(new_side, item)).collect();
    let count = |faces: &[ItemFeatures]| {
        let mut kinds: BTreeMap<u16, usize> = BTreeMap::new();
        for face in faces {
            *kinds.entry(face.kind).or_default() += 1;
        }
        kinds
    };
    let (old_kinds, new_kinds) = (count(&old_faces), count(&new_faces));
    let scores = |i: usize, j: usize| -> u32 {
        let parts = (old.get(i).zip(old_faces.get(i)), new.get(j).zip(new_faces.get(j)));
        let (Some(one), Some(other)) = parts else { return 0 };
        let single = old_kinds.get(&one.1.kind) == Some(&1) && new_kinds.get(&other.1.kind) == Some(&1);
        pair_score(one, other, single)
    };
    // best[i][j]: the most that the things from i and j on can score.
    let row = width + 1;
    let mut best = vec![0_u32; (height + 1) * row];
    let at = |best: &[u32], i: usize, j: usize| best.get(i * row + j).copied().unwrap_or(0);
    for i in (0..height).rev() {
        for j in (0..width).rev() {
            let pair = scores(i, j);
            let with = if pair > 0 { pair + at(&best, i + 1, j + 1) } else { 0 };
            let value = with.max(at(&best, i + 1, j)).max(at(&best, i, j + 1));
            if let Some(cell) = best.get_mut(i * row + j) {
                *cell = value;
            }
        }
    }
    let mut pairs = Vec::new();
    let (mut i, mut j) = (0, 0);
    while i < height && j < width {
        let here = at(&best, i, j);
        let pair = scores(i, j);
        let takes = pair > 0 && pair + at(&best, i + 1, j + 1) == here;
        let (skips_old, skips_new) = (at(&best, i + 1, j) == here, at(&best, i, j + 1) == here);
        if takes && !(late && skips_old) {
            pairs.push((i, j));
            i += 1;
            j += 1;
        } else if skips_new && !(late && skips_old) {
            j += 1;
        } else {
            i += 1;
        }
    }
    Some(pairs)
}

/// Returns the highest similarity of some items to another item of the same kind.
pub(super) fn max_similarity(
    old_side: &ParsedSide<'_>,
    old: &[SyntaxItem<'_>],
    new_side: &ParsedSide<'_>,
    new: &SyntaxItem<'_>,
) -> f64 {
    let new_face = features_of(new_side, new);
    old.iter()
        .filter(|item| item.node.kind_id() == new_face.kind)
        .map(|item| features_of(old_side, item).shared_words(&new_face))
        .fold(0.0, f64::max)
}
