//! Hunks without a search text: they say where by a line, an anchor, or that it is the end.

use crate::lines::{Line, first_line_break, lines_of, split_indent, strip_line_break};
use crate::outcome::{PlacedEdit, Refusal, Strategy};
use crate::placement::hunk::Hunk;
use crate::placement::indent::IndentStyles;
use crate::placement::replacement_pieces::match_line_breaks;
use crate::placement::tie_breaking;

/// An empty search text means the whole of an empty file; in another, the place that a hint names.
pub(super) fn find_insertion(text: &str, hunk: &Hunk<'_>) -> Result<PlacedEdit, Refusal> {
    if text.is_empty() || text == "\u{feff}" {
        // Lines of a format lack the last one's break.
        let closing = if hunk.whole_lines && !hunk.replace.is_empty() { "\n" } else { "" };
        let pieces = vec![(text.len()..text.len(), format!("{}{closing}", hunk.replace))];
        return Ok(PlacedEdit { strategy: Strategy::Exact, line: 1, note: None, pieces });
    }
    let lines = lines_of(text);
    let anchor = || {
        tie_breaking::offset_of_last_anchor(text, hunk)
            .ok()
            .map(|at| lines.partition_point(|line| line.content_range().end < at))
    };
    if let Some(anchor) = (!hunk.anchors.is_empty()).then(anchor).flatten() {
        return Ok(insert_before_line(text, &lines, anchor + 1, (hunk, hunk.replace)));
    }
    if let Some(near) = hunk.near.and_then(|near| usize::try_from(near).ok()) {
        let index = near.saturating_sub(1);
        if index > lines.len() {
            return Err(Refusal::EmptySearch);
        }
        let indented = indent_content(text, &lines, index, hunk.replace);
        return Ok(insert_before_line(text, &lines, index, (hunk, &indented)));
    }
    if hunk.at_end {
        return Ok(insert_before_line(text, &lines, lines.len(), (hunk, hunk.replace)));
    }
    Err(Refusal::EmptySearch)
}

/// Puts whole lines before a line, or at the end; whether the file ends with a line break stays as
/// it was.
fn insert_before_line(
    text: &str,
    lines: &[Line],
    index: usize,
    (hunk, content): (&Hunk<'_>, &str),
) -> PlacedEdit {
    let (content, _) = match_line_breaks(text, content);
    let line_break = first_line_break(text);
    // Lines of a format lack the last one's break: one that is there comes before a blank line.
    let body = if hunk.whole_lines { &content } else { strip_line_break(&content) };
    let (at, piece) = match lines.get(index) {
        Some(line) => (line.content_range().start, format!("{body}{line_break}")),
        None if text.ends_with('\n') => (text.len(), format!("{body}{line_break}")),
        None => (text.len(), format!("{line_break}{body}")),
    };
    let line = u32::try_from(index + 1).unwrap_or(u32::MAX);
    let note = Some(format!("the search text is empty; inserted as line {line}"));
    PlacedEdit { strategy: Strategy::Exact, line, note, pieces: vec![(at..at, piece)] }
}

/// Text that begins at the margin, indented as the lines around it are.
fn indent_content(text: &str, lines: &[Line], index: usize, content: &str) -> String {
    let own = |line: &Line| text.get(line.content_range()).unwrap_or_default();
    let told = |line: &&Line| !own(line).trim().is_empty();
    let before = lines.get(..index).unwrap_or_default().iter().rev().find(told).map(own);
    let after = lines.get(index..).unwrap_or_default().iter().find(told).map(own);
    let at_margin =
        content.lines().filter(|line| !line.trim().is_empty()).any(|line| split_indent(line).0.is_empty());
    let indent = if at_margin { indent_between(text, before, after, content) } else { String::new() };
    if indent.is_empty() {
        return content.to_owned();
    }
    let lines = content
        .split('\n')
        .map(|line| if line.trim().is_empty() { line.to_owned() } else { format!("{indent}{line}") });
    lines.collect::<Vec<_>>().join("\n")
}

/// The indentation of a line between two others.
fn indent_between(text: &str, before: Option<&str>, after: Option<&str>, content: &str) -> String {
    let indent = |line: &str| split_indent(line).0.to_owned();
    let closes =
        |line: &str| line.trim_start().starts_with(['}', ')', ']']) || line.trim_start().starts_with("</");
    let opens = |line: &str| line.trim_end().ends_with(['{', '(', '[', ':']);
    match (before, after) {
        (Some(before), Some(after)) if opens(before) && indent(after).len() > indent(before).len() => {
            indent(after)
        }
        (Some(before), _) if opens(before) => {
            let styles = IndentStyles::learn_styles(content.lines(), text);
            indent(before) + &styles.indent_unit()
        }
        (_, Some(after)) if !closes(after) => indent(after),
        (Some(before), _) => indent(before),
        (None, Some(after)) => indent(after),
        (None, None) => String::new(),
    }
}
