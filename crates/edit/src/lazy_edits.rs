//! Whole files with remarks in place of what stays, merged into the file.
//!
//! A model that rewrites a file leaves out what it doesn't change, `// ... existing code ...`. All
//! of its lines and remarks are aligned with the file's lines first ([`aligned_merge`]). Where that
//! isn't sure, windows of lines between remarks are looked for, which need no tree
//! ([`window_merge`]). Then both texts are parsed, and from the outside in each thing of the new
//! text is paired with the old thing that it is ([`align`]): by kind and name, else by similarity.
//! What is shown replaces its old version, a remark stands for the old things between the
//! neighbours that it has, and the rest of the file isn't touched. Where more than one reading is
//! possible, the rewrite is refused with the reason. Without a grammar, lines that occur once are
//! the anchors ([`line_merge`]).

mod align;
mod aligned_changes;
mod aligned_merge;
mod edge_additions;
mod file_style;
mod line_alignment;
mod line_kinds;
mod line_merge;
mod omitted_members;
mod pair_checks;
mod parse_variants;
mod refusal;
mod removals;
mod syntax_items;
mod tree_merge;
mod window_merge;

use std::collections::BTreeMap;
use std::ops::Range;

use journeyman_protocol::RelPath;
use journeyman_syntax::Node;
use journeyman_syntax::language::Language;
use journeyman_syntax::outline::outline;
use journeyman_syntax::parse::{Tree, parse};
use journeyman_text_diff::{DiffOp, diff};

use self::aligned_changes::MIN_TELLING_BYTES;
use self::refusal::refuse_rewrite;
use self::syntax_items::ParsedSide;
use self::tree_merge::{MergedPieces, TreeMerge};
use crate::lines::{line_at, split_indent};
use crate::lost_lines;
use crate::outcome::{MAX_FILE_BYTES, MAX_SEARCH_BYTES, PlacedEdit, Refusal, Strategy, truncate};
use crate::placeholder;
use crate::placement::AllowedDifferences;
use crate::syntax_check::first_new_fault;

/// Of a file's lines, the hundredths that may go without being shown.
const MAX_VANISHING_PERCENT: usize = 30;
/// Maximum number of lines that may vanish from any file.
const MAX_VANISHING_LINES: usize = 3;
/// Lines that the file has already, of which so many are never added to it …
const MIN_DOUBLED_LINES: usize = 3;
/// … where they are so many hundredths of what is added.
const MIN_DOUBLED_PERCENT: usize = 75;
/// Lines that tell where they are and that a rewrite and the file have once, of which so many are
/// never in the result twice.
const MIN_SHOWN_DOUBLES: usize = 2;
/// Lines that may go where fewer come, in a reply that says nothing of a removal.
const MAX_GONE_UNSAID: usize = 5;
/// Classes and the like that a fragment is tried in.
const MAX_ENCLOSING_DEFINITIONS: usize = 12;

/// A rewrite of a file.
#[derive(Clone, Copy)]
pub(crate) struct Rewrite<'c> {
    /// The text, with remarks.
    pub(crate) content: &'c str,
    /// The reply says that something goes.
    pub(crate) says_removal: bool,
}

/// The file with the remarks of a rewrite filled in from `text`.
pub(crate) fn merge_rewrite(
    path: &RelPath,
    text: &str,
    rewrite: Rewrite<'_>,
    allow: AllowedDifferences,
) -> Result<PlacedEdit, Refusal> {
    let content = without_path_comment(path, text, rewrite.content);
    let rewrite = Rewrite { content, ..rewrite };
    if let Some(placed) = merge_aligned(path, text, rewrite, allow) {
        return Ok(placed);
    }
    let placed = merge_by_parts(path, text, rewrite, allow)?;
    let result = placed.apply_to(text);
    if defines_twice(path, text, &result) {
        return Err(refuse_rewrite("it would define something a second time"));
    }
    if doubles_shown_lines(text, content, &result) {
        return Err(refuse_rewrite(
            "lines that it shows once would be in the file twice. Repeat the lines before and after each change as they are in the file",
        ));
    }
    if !rewrite.says_removal && loses_run_of_lines(text, &result) {
        return Err(refuse_rewrite(
            "lines would go with nothing in their place, and nothing says that they do. Put `... existing code ...` in a comment where lines stay, and `... removed code ...` where they go",
        ));
    }
    if !rewrite.says_removal && aligned_merge::loses_lines_at_remark(text, content, &result) {
        return Err(refuse_rewrite(
            "lines beside a remark would go, which that may stand for. Repeat the lines before and after each change as they are in the file",
        ));
    }
    Ok(placed)
}

/// The rewrite without a first line that is a comment with nothing but the file's name.
fn without_path_comment<'c>(path: &RelPath, text: &str, content: &'c str) -> &'c str {
    let Some((first, rest)) = content.trim_start_matches(['\r', '\n']).split_once('\n') else {
        return content;
    };
    let first = first.trim();
    let Some(words) = placeholder::words_of_comment(first) else { return content };
    let own = path.to_string();
    let named = words.trim().trim_start_matches("File:").trim_start_matches("file:").trim();
    let named = named.trim_matches(['`', '*']).trim_start_matches("./");
    let is_name = named == own || named.contains('.') && own.ends_with(&format!("/{named}"));
    if !is_name || text.lines().any(|line| line.trim() == first) {
        return content;
    }
    // The blank line after it is no line of the file either, if that begins with another.
    match text.starts_with(['\r', '\n']) {
        true => rest,
        false => rest.trim_start_matches(['\r', '\n']),
    }
}

/// The merge of a rewrite that is aligned with the file as a whole; `None` where that isn't sure.
fn merge_aligned(
    path: &RelPath,
    text: &str,
    rewrite: Rewrite<'_>,
    allow: AllowedDifferences,
) -> Option<PlacedEdit> {
    let Rewrite { content, says_removal } = rewrite;
    let merged = aligned_merge::merge_by_alignment(text, content, says_removal)?;
    let placed = check_merge(text, content, merged, allow).ok()?;
    let result = placed.apply_to(text);
    if !says_removal && loses_more_than_it_brings(text, &result) {
        return None;
    }
    let is_sound = first_new_fault(path, text, &result).is_none() && !defines_twice(path, text, &result);
    is_sound.then_some(placed)
}

/// Counts each of a text's lines that say something.
fn count_lines(text: &str) -> BTreeMap<&str, usize> {
    let mut counts = BTreeMap::new();
    for line in text.lines().filter(|line| lost_lines::is_distinctive(line)) {
        *counts.entry(line.trim()).or_default() += 1;
    }
    counts
}

/// Returns true if a result has lines twice that the file and the rewrite have once.
fn doubles_shown_lines(text: &str, content: &str, result: &str) -> bool {
    let (old, new, merged) = (count_lines(text), count_lines(content), count_lines(result));
    let is_doubled = |(line, count): &(&&str, &usize)| {
        let is_telling = line.len() >= MIN_TELLING_BYTES;
        is_telling
            && **count == 1
            && old.get(**line) == Some(&1)
            && merged.get(**line).is_some_and(|count| *count > 1)
    };
    new.iter().filter(is_doubled).count() >= MIN_SHOWN_DOUBLES
}

/// Returns true if a result lacks several lines of the file, and brings fewer in their place: a
/// part that is like another was taken for it.
fn loses_more_than_it_brings(text: &str, result: &str) -> bool {
    let (old, new) = (count_lines(text), count_lines(result));
    let missing = |of: &BTreeMap<&str, usize>, among: &BTreeMap<&str, usize>| -> usize {
        of.iter().map(|(line, count)| count.saturating_sub(among.get(line).copied().unwrap_or(0))).sum()
    };
    let (gone, come) = (missing(&old, &new), missing(&new, &old));
    gone > MAX_GONE_UNSAID && gone > come
}

/// Returns true if a result lacks several lines of the file that follow one another, and has none
/// in their place: they were left out.
fn loses_run_of_lines(text: &str, result: &str) -> bool {
    let filled = |text: &'_ str| -> Vec<String> {
        text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect()
    };
    let is_loss = |op: &DiffOp| matches!(op, DiffOp::Delete { old_len, .. } if *old_len > MAX_GONE_UNSAID);
    diff(&filled(text), &filled(result)).iter().any(is_loss)
}

/// Returns true if a result defines something more often than the file, which has it.
fn defines_twice(path: &RelPath, text: &str, result: &str) -> bool {
    use Language::{Css, Html, Json, Markdown, Toml, Yaml};
    // In these a name may come as often as it likes.
    let is_code = |language: &Language| !matches!(language, Css | Html | Json | Markdown | Toml | Yaml);
    let language = Language::detect(&path.to_string(), text).filter(is_code);
    let Some(language) = language else { return false };
    let (Ok(old), Ok(new)) = (parse(language, text), parse(language, result)) else { return false };
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for symbol in outline(&old, text) {
        *counts.entry(symbol.path()).or_default() += 1;
    }
    let mut own: BTreeMap<String, usize> = BTreeMap::new();
    for symbol in outline(&new, result) {
        *own.entry(symbol.path()).or_default() += 1;
    }
    own.iter().any(|(path, count)| counts.get(path).is_some_and(|known| count > known))
}

/// The merge by windows, by the syntax trees or by lines.
fn merge_by_parts(
    path: &RelPath,
    text: &str,
    rewrite: Rewrite<'_>,
    allow: AllowedDifferences,
) -> Result<PlacedEdit, Refusal> {
    let content = rewrite.content;
    for (what, bytes, limit) in [
        ("file", text.len(), MAX_FILE_BYTES),
        ("rewrite", content.len(), MAX_SEARCH_BYTES.max(text.len() * 2)),
    ] {
        if bytes > limit {
            return Err(Refusal::TooLarge { what, bytes, limit });
        }
    }
    if text.trim().is_empty() || content.trim().is_empty() {
        return Err(refuse_rewrite(
            "there is nothing to merge; send the whole file, or an edit that searches and replaces",
        ));
    }
    if let Some((without, rest)) = removals::apply_removals(path, text, content) {
        let rest = Rewrite { content: &rest, ..rewrite };
        return merge_after_removals(path, text, &without, rest, allow);
    }
    if let Some(placed) = edge_additions::add_at_edge(path, text, content) {
        return Ok(placed);
    }
    if let Some(merged) = window_merge::merge_by_windows(text, content)
        && let Ok(placed) = check_merge(text, content, merged, allow)
        && first_new_fault(path, text, &placed.apply_to(text)).is_none()
    {
        return Ok(placed);
    }
    if let Some(line) = first_line_inside_block(text, content) {
        return Err(refuse_rewrite(&format!(
            "`{}` stands in the middle of something after a remark, and its lines aren't the file's in one place only. Repeat more of what stands beside the change, or what it is in",
            truncate(line.trim(), 120)
        )));
    }
    let language = Language::detect(&path.to_string(), text);
    let by_tree = language.and_then(|language| merge_by_tree(language, text, content));
    let merged = match by_tree {
        Some(Ok(merged)) => merged,
        Some(Err(refusal)) => return Err(refusal),
        None => line_merge::merge_by_lines(text, content)?,
    };
    check_merge(text, content, merged, allow)
}

/// The first line after a remark that is indented deeper than it, where the remark isn't the first
/// in a block and only indented as that isn't: no syntax tree tells what it is in.
fn first_line_inside_block<'c>(text: &str, content: &'c str) -> Option<&'c str> {
    let is_remark =
        |line: &str| placeholder::placeholder_of_line(line).is_some() && !text.contains(line.trim());
    let depth = |line: &str| split_indent(line).0.len();
    let opens = |line: &str| line.trim_end().ends_with(['{', ':', '(', '[', '>']);
    let lines: Vec<&str> = content.lines().filter(|line| !line.trim().is_empty()).collect();
    let mut before = None;
    for pair in lines.windows(2) {
        let [line, next] = pair else { continue };
        let deeper = depth(next) > depth(line);
        let careless = before.is_some_and(|before| opens(before) && depth(line) <= depth(before));
        if is_remark(line) && !is_remark(next) && deeper && !careless {
            return Some(next);
        }
        before = Some(*line);
    }
    None
}

/// The merge into a file from which what comments of the rewrite name was taken away.
fn merge_after_removals(
    path: &RelPath,
    text: &str,
    without: &str,
    rest: Rewrite<'_>,
    allow: AllowedDifferences,
) -> Result<PlacedEdit, Refusal> {
    // The lines around such a comment may be all that the rewrite has.
    let mut own = without.lines().map(str::trim);
    let mut code = rest
        .content
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && placeholder::placeholder_of_line(line).is_none());
    let nothing = code.all(|line| own.any(|other| other == line));
    let (after, note) = match merge_rewrite(path, without, rest, allow) {
        _ if nothing => (without.to_owned(), None),
        Ok(placed) => (placed.apply_to(without), placed.note),
        Err(Refusal::NoChange) => (without.to_owned(), None),
        Err(refusal) => return Err(refusal),
    };
    let same = |pair: &(char, char)| pair.0 == pair.1;
    let head: usize = text.chars().zip(after.chars()).take_while(same).map(|(c, _)| c.len_utf8()).sum();
    let ends = (text.get(head..).unwrap_or_default(), after.get(head..).unwrap_or_default());
    let tail = ends.0.chars().rev().zip(ends.1.chars().rev()).take_while(same);
    let tail: usize = tail.map(|(c, _)| c.len_utf8()).sum();
    let piece = ends.1.get(..ends.1.len() - tail).unwrap_or_default().to_owned();
    let note = std::iter::once("what comments say is removed was removed".to_owned()).chain(note);
    Ok(PlacedEdit {
        strategy: Strategy::Lazy,
        line: line_at(text, head),
        note: Some(note.collect::<Vec<_>>().join("; ")),
        pieces: vec![(head..text.len() - tail, piece)],
    })
}

/// By the trees; `None` where the texts don't parse well enough for that.
fn merge_by_tree(language: Language, text: &str, content: &str) -> Option<Result<MergedPieces, Refusal>> {
    let old = parse(language, text).ok()?;
    let mut refusal = None;
    for prepared in parse_variants::parseable_variants(language, content, text) {
        let Some(new) = parse(language, &prepared).ok().filter(|new| !new.has_error()) else {
            continue;
        };
        match merge_whole_file(&old, text, &new, &prepared) {
            Some(Ok(merged)) => return Some(Ok(merged)),
            Some(Err(why)) => refusal = refusal.or(Some(why)),
            None => {}
        }
    }
    if let Some(why) = refusal {
        return Some(Err(why));
    }
    merge_inside_definition(&old, text, content, language)
}

/// The new text as the whole file, or as a part of its outermost level.
fn merge_whole_file(
    old: &Tree,
    text: &str,
    new: &Tree,
    content: &str,
) -> Option<Result<MergedPieces, Refusal>> {
    let sides = (ParsedSide::new(old, text, ""), ParsedSide::new(new, content, text));
    let merged = merge_both_ways(&sides, old.root(), new.root(), text);
    match merged {
        Ok(merged) if merged.known == 0 => None,
        other => Some(other),
    }
}

/// Merges with a preference for earlier and for later places; what differs is ambiguous.
fn merge_both_ways(
    sides: &(ParsedSide<'_>, ParsedSide<'_>),
    old: Node<'_>,
    new: Node<'_>,
    file: &str,
) -> Result<MergedPieces, Refusal> {
    let lazy = syntax_items::has_placeholder(&sides.1, new);
    let run = |late: bool| {
        let mut merged = MergedPieces::default();
        TreeMerge { old: &sides.0, new: &sides.1, late, file, lazy }.merge_nodes(
            old,
            new,
            true,
            &mut merged,
        )?;
        merged.pieces.sort_by_key(|(range, _)| range.start);
        Ok(merged)
    };
    let (early, late) = (run(false)?, run(true)?);
    if early.apply_to(file) == late.apply_to(file) {
        return Ok(early);
    }
    let differs = early.pieces.iter().zip(&late.pieces).find(|(one, other)| one != other);
    let line = differs.map_or(1, |((range, _), _)| line_at(file, range.start));
    Err(refuse_rewrite(&format!(
        "it fits in more than one way (around line {line}), because parts of the file are alike. Repeat more of what stands beside the change"
    )))
}

/// A fragment from the inside of a class or the like, without that around it: put in its place in
/// the file, it is read as what it is.
fn merge_inside_definition(
    old: &Tree,
    text: &str,
    content: &str,
    language: Language,
) -> Option<Result<MergedPieces, Refusal>> {
    let symbols = outline(old, text);
    let mut holders: Vec<(usize, usize)> = Vec::new();
    for symbol in &symbols {
        let Some(holder) = symbol.inside else { continue };
        let line = text.get(symbol.definition.clone())?.lines().next().unwrap_or_default().trim();
        if !content.lines().any(|own| {
            own.trim() == line
                || (line.len() > 3 && own.trim().starts_with(line.trim_end_matches(['{', ' '])))
        }) {
            continue;
        }
        match holders.iter_mut().find(|(known, _)| *known == holder) {
            Some((_, count)) => *count += 1,
            None => holders.push((holder, 1)),
        }
    }
    holders.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let most = holders.first()?.1;
    let mut found: Option<Result<MergedPieces, Refusal>> = None;
    for (holder, _) in holders.iter().filter(|(_, count)| *count == most).take(MAX_ENCLOSING_DEFINITIONS) {
        let Some(symbol) = symbols.get(*holder) else { continue };
        let node = old.root().descendant_for_byte_range(symbol.definition.start, symbol.definition.end)?;
        let Some(body) = body_of(node) else { continue };
        let inside = bytes_between_brackets(body, text);
        let indented = parse_variants::indent_fragment(content, text, &inside);
        for prepared in parse_variants::parseable_variants(language, &indented, text) {
            let spliced = format!("{}{prepared}{}", text.get(..inside.start)?, text.get(inside.end..)?);
            let Some(new) = parse(language, &spliced).ok().filter(|new| !new.has_error()) else { continue };
            let end = spliced.len() - (text.len() - body.end_byte());
            let Some(new_body) = new.root().descendant_for_byte_range(body.start_byte(), end) else {
                continue;
            };
            if new_body.kind() != body.kind() {
                continue;
            }
            let sides = (ParsedSide::new(old, text, ""), ParsedSide::new(&new, &spliced, text));
            let merged = merge_both_ways(&sides, body, new_body, text);
            if merged.as_ref().is_ok_and(|merged| merged.known == 0) {
                continue;
            }
            if found.is_some() {
                return Some(Err(refuse_rewrite(
                    "more than one part of the file has what it shows. Put the class or block around it",
                )));
            }
            found = Some(merged);
            break;
        }
    }
    found
}

/// The part of a definition that holds others.
fn body_of(node: Node<'_>) -> Option<Node<'_>> {
    node.child_by_field_name("body").or_else(|| {
        let mut cursor = node.walk();
        node.named_children(&mut cursor)
            .find(|child| child.kind().ends_with("body") || child.kind().ends_with("block"))
    })
}

/// Its bytes between the brackets, if it has any.
fn bytes_between_brackets(body: Node<'_>, text: &str) -> Range<usize> {
    let (first, last) = (body.child(0), body.child(body.child_count().saturating_sub(1)));
    match (first, last) {
        (Some(first), Some(last)) if !first.is_named() && !last.is_named() && first.id() != last.id() => {
            first.end_byte()..last.start_byte()
        }
        _ => {
            // From the line's beginning, as a fragment begins.
            let start =
                text.get(..body.start_byte()).and_then(|before| before.rfind('\n')).map_or(0, |at| at + 1);
            start..body.end_byte()
        }
    }
}

/// The first line of a piece with little in it but lines that the file keeps elsewhere: the piece
/// was meant to be these.
fn first_doubled_text<'p>(text: &str, pieces: &'p [(Range<usize>, String)]) -> Option<&'p str> {
    let mut counts = count_lines(text);
    for (range, _) in pieces {
        for line in text.get(range.clone()).unwrap_or_default().lines() {
            if let Some(count) = counts.get_mut(line.trim()) {
                *count = count.saturating_sub(1);
            }
        }
    }
    let kept = |line: &str| counts.get(line.trim()).is_some_and(|count| *count > 0);
    pieces.iter().find_map(|(_, piece)| {
        let lines: Vec<&str> = piece.lines().filter(|line| lost_lines::is_distinctive(line)).collect();
        let doubled = lines.iter().filter(|line| kept(line)).count();
        let most = lines.len() * MIN_DOUBLED_PERCENT <= doubled * 100;
        (doubled >= MIN_DOUBLED_LINES && most).then(|| lines.iter().copied().find(|line| kept(line)))?
    })
}

/// Looks over what came of the merge.
fn check_merge(
    text: &str,
    content: &str,
    merged: MergedPieces,
    allow: AllowedDifferences,
) -> Result<PlacedEdit, Refusal> {
    let MergedPieces { mut pieces, removed, unmentioned, is_aligned, mut notes, .. } = merged;
    pieces.retain(|(range, piece)| text.get(range.clone()) != Some(piece));
    pieces.sort_by_key(|(range, _)| range.start);
    if pieces.windows(2).any(|two| matches!(two, [(one, _), (other, _)] if one.end > other.start)) {
        return Err(refuse_rewrite(
            "its parts can't be told apart; send the lines that change as search and replacement",
        ));
    }
    if pieces.is_empty() {
        if let Some(first) = unmentioned.first().filter(|_| content.trim() != text.trim()) {
            return Err(refuse_rewrite(&format!(
                "all that it shows is in the file as it is, and `{first}` isn't shown: to take it away, put `... removed code ...` in its place"
            )));
        }
        return Err(Refusal::NoChange);
    }
    let full = |text: &str| text.lines().filter(|line| !line.trim().is_empty()).count();
    let total = full(text);
    let gone: usize = pieces
        .iter()
        .map(|(range, piece)| full(text.get(range.clone()).unwrap_or_default()).saturating_sub(full(piece)))
        .sum::<usize>()
        .saturating_sub(removed);
    if let Some(doubled) = first_doubled_text(text, &pieces).filter(|_| !is_aligned) {
        return Err(refuse_rewrite(&format!(
            "it would write `{}` a second time, beside what the file has already. Repeat the lines before and after the change as they are in the file",
            truncate(doubled, 120)
        )));
    }
    let line = line_at(text, pieces.first().map_or(0, |(range, _)| range.start));
    if gone > MAX_VANISHING_LINES && gone * 100 > total * MAX_VANISHING_PERCENT && !allow.spans {
        // Two pieces within one line count that line twice.
        let searched = total.saturating_sub(gone);
        return Err(Refusal::SpanTooLarge { line, lines: total, searched });
    }
    let placed = PlacedEdit { strategy: Strategy::Lazy, line, note: None, pieces };
    let result = placed.apply_to(text);
    let remark = placeholder::first_new_placeholder(&result, text);
    if let Some(remark) = remark.filter(|_| !allow.placeholders) {
        return Err(Refusal::Placeholder { remark });
    }
    if !allow.placeholders
        && let Some(remark) = lost_lines::first_comment_for_lost_lines(text, &result)
    {
        return Err(Refusal::Placeholder { remark: remark.trim().to_owned() });
    }
    if !unmentioned.is_empty() {
        let names: Vec<&str> = unmentioned.iter().take(6).map(String::as_str).collect();
        notes.push(format!("what the rewrite doesn't mention was kept: {}", names.join(", ")));
    }
    notes.insert(0, "merged into the file: remarks stand for what was there".to_owned());
    Ok(PlacedEdit { note: Some(notes.join("; ")), ..placed })
}
