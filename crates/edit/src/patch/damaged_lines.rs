//! Lines of a hunk that are the file's own, written otherwise: escaped, curled, indented
//! differently.
//!
//! Where a hunk is placed although some of its context isn't the file's, such a line tells that its
//! new lines, which nothing can be compared with, are written so too.

use std::collections::HashSet;

use crate::edit::{LineKind, PatchLine};
use crate::lines::split_indent;
use crate::placement::normalize::plain_chars;

/// Escapes that models write, with their characters.
const HTML_ENTITIES: [(&str, &str); 6] =
    [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&nbsp;", " "), ("&amp;", "&")];

/// A line without one layer of escapes, for each kind that it has.
fn unescaped_readings(line: &str) -> impl Iterator<Item = String> + '_ {
    let entities = || {
        let read =
            HTML_ENTITIES.iter().fold(line.to_owned(), |text, (entity, own)| text.replace(entity, own));
        line.contains('&').then_some(read)
    };
    let backslashes = || {
        let doubled = line.replace("\\\\", "\\");
        let quotes = line.replace("\\\"", "\"").replace("\\'", "'");
        line.contains('\\').then(|| [quotes.replace("\\\\", "\\"), quotes, doubled])
    };
    entities().into_iter().chain(backslashes().into_iter().flatten()).filter(move |read| read != line)
}

/// The first old line that the file has, without the escapes in it, while it hasn't the line
/// itself; only where a new line has escapes too.
pub(super) fn first_escaped_line<'a>(lines: &'a [PatchLine], text: &str) -> Option<&'a str> {
    let has_escapes = |line: &&PatchLine| unescaped_readings(&line.text).next().is_some();
    let (new, old): (Vec<&PatchLine>, Vec<&PatchLine>) =
        lines.iter().filter(has_escapes).partition(|line| line.kind == LineKind::Add);
    if new.is_empty() || old.is_empty() {
        return None;
    }
    let own: HashSet<&str> = text.lines().map(str::trim).collect();
    let written = |line: &&&PatchLine| {
        !own.contains(line.text.trim())
            && unescaped_readings(&line.text).any(|read| own.contains(read.trim()))
    };
    old.iter().find(written).map(|line| line.text.as_str())
}

/// Returns true if a line that isn't the file's is nevertheless this one of it, written in a way
/// that a new line may share.
pub(super) fn is_written_otherwise(line: &str, own: &str, lines: &[PatchLine]) -> bool {
    let new = || lines.iter().filter(|line| line.kind == LineKind::Add).map(|line| line.text.as_str());
    let (given, there) = (line.trim(), own.trim());
    if given.is_empty() || there.is_empty() {
        return false;
    }
    if given == there {
        let indents = new().any(|line| !split_indent(line).0.is_empty());
        return indents && split_indent(line).0 != split_indent(own).0;
    }
    let curled = |line: &str| line.chars().any(|c| !plain_chars(c).eq(std::iter::once(c)));
    if given.chars().flat_map(plain_chars).eq(there.chars().flat_map(plain_chars)) {
        return new().any(curled);
    }
    unescaped_readings(given).any(|read| read == there)
        && new().any(|line| unescaped_readings(line).next().is_some())
}

/// The lines with a forgotten `+` put back: such as stand between two that are added, without a
/// prefix, or with a blank in a line that the file hasn't. `None` where there is none. The first
/// and the last line of context stay: nothing beyond them tells that the file has no other one in
/// its place.
pub(super) fn restore_additions(lines: &[PatchLine], file: &str) -> Option<Vec<PatchLine>> {
    let mut out = lines.to_vec();
    let mut any = false;
    let mut added = false;
    let is_old = |line: &PatchLine| !matches!(line.kind, LineKind::Add | LineKind::Bare);
    let (first_old, last_old) = (lines.iter().position(is_old), lines.iter().rposition(is_old));
    let is_inner = |nth: usize| first_old < Some(nth) && last_old > Some(nth);
    for (nth, line) in lines.iter().enumerate() {
        let goes_on = || {
            let next = lines.iter().skip(nth + 1).find(|line| line.kind != LineKind::Bare);
            next.is_some_and(|line| line.kind == LineKind::Add)
        };
        let text = match line.kind {
            LineKind::Bare if added && goes_on() => Some(line.text.clone()),
            LineKind::Context if added && goes_on() && is_inner(nth) => text_of_addition(line, lines, file),
            _ => None,
        };
        added = line.kind == LineKind::Add || text.is_some();
        if let (Some(text), Some(slot)) = (text, out.get_mut(nth)) {
            any |= !text.trim().is_empty();
            *slot = PatchLine { kind: LineKind::Add, text };
        }
    }
    any.then_some(out)
}

/// The text of a line of context that may be an added one: its first blank is either in place of
/// the `+` or the first of its indentation, which other lines of the hunk have to tell.
fn text_of_addition(line: &PatchLine, lines: &[PatchLine], file: &str) -> Option<String> {
    let whole = format!(" {}", line.text);
    if line.text.trim().is_empty() || file.lines().any(|own| own.trim() == line.text.trim()) {
        return None;
    }
    let known = |text: &str| {
        let indent = split_indent(text).0;
        let others = lines.iter().filter(|other| *other != line && !other.text.trim().is_empty());
        others.map(|other| split_indent(&other.text).0).any(|other| other == indent)
    };
    match (known(&whole), known(&line.text)) {
        (true, false) => Some(whole),
        (false, true) => Some(line.text.clone()),
        _ => None,
    }
}
