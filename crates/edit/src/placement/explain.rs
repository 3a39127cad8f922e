//! Saying what differed, in few words and with blanks made visible.

use std::collections::HashMap;
use std::ops::Range;

use journeyman_text_diff::DiffOp;

use crate::lines::{Line, lines_of, split_indent};
use crate::outcome::{MAX_AMBIGUOUS_PLACES, MatchOccurrence, Refusal, Strategy, truncate};
use crate::placement::normalize::LineReading;

/// Maximum bytes of a line in a note.
pub(super) const MAX_NOTED_LINE_BYTES: usize = 120;
/// Maximum bytes of an excerpt: the rest of [`crate::MAX_FEEDBACK_BYTES`] is for reasons, lines to
/// copy and advice.
const MAX_EXCERPT_BYTES: usize = 1_000;
/// Maximum bytes of one line of an excerpt.
const MAX_ROW_BYTES: usize = 200;
/// Equal lines shown next to a difference.
const CONTEXT_LINES: usize = 2;
/// Of so many places it is said what tells them apart.
const MAX_DESCRIBED_PLACES: usize = 8;
/// Maximum distance, in lines, of a line that distinguishes a place.
const MAX_DISTINGUISHING_DISTANCE: usize = 6;
/// Places whose neighbours are longer aren't told apart by them, in bytes.
const MAX_NEIGHBOUR_BYTES: usize = 4 << 10;
/// Maximum number of lines searched above a place for the line that encloses it.
const MAX_LINES_ABOVE: usize = 2_000;

/// Returns a note on a loose match: the number of differing lines, and the first of them.
pub(crate) fn note_loose_match(
    strategy: Strategy,
    old: &[&str],
    file: &[(&str, &str)],
    first_line: u32,
) -> String {
    let breaks = file.iter().any(|(_, line_break)| *line_break == "\r\n");
    let mut differing = old.iter().zip(file).enumerate().filter(|(_, (old, (own, _)))| old != &own);
    let Some((index, (old, (own, _)))) = differing.next() else {
        let style = if breaks { "CRLF, kept" } else { "LF, kept" };
        return format!("no exact match; placed by {strategy}: the file's are {style}");
    };
    let line = u64::from(first_line) + index as u64;
    let more = match differing.count() {
        0 => String::new(),
        1 => ", and 1 more line".to_owned(),
        more => format!(", and {more} more lines"),
    };
    format!(
        "no exact match; placed by {strategy}: line {line} is `{}` where the search text had `{}`{more}",
        show_blanks(own),
        show_blanks(old)
    )
}

/// Returns the difference between two lines that were matched.
pub(crate) fn describe_line_difference(searched: &str, own: &str) -> String {
    format!("the search text has `{}`, the file `{}`", show_blanks(searched), show_blanks(own))
}

/// Why a line of the replacement can't be indented.
pub(crate) fn describe_unfit_indentation(line: &str) -> String {
    format!(
        "the search text's lines are indented otherwise than the file's, and not evenly, so that the indentation of \
         `{}` can't be told",
        show_blanks(line)
    )
}

/// Returns a note on the removal of line numbers.
pub(crate) fn note_removed_numbers(then: Strategy, note: Option<&str>) -> String {
    match note {
        Some(note) if then != Strategy::Exact => {
            format!("line numbers were removed from the search text; {note}")
        }
        _ => "line numbers were removed from the search text; don't send them".to_owned(),
    }
}

/// A remark where an exact match begins or ends inside a word or number of the file.
pub(crate) fn note_split_word(text: &str, span: &Range<usize>) -> Option<String> {
    let is_word = |c: &char| c.is_alphanumeric() || *c == '_';
    let found = text.get(span.clone())?;
    let before = text.get(..span.start)?.chars().next_back().filter(is_word);
    let after = text.get(span.end..)?.chars().next().filter(is_word);
    let splits_start = before.is_some() && found.chars().next().filter(is_word).is_some();
    let splits_end = after.is_some() && found.chars().next_back().filter(is_word).is_some();
    (splits_start || splits_end)
        .then(|| "the match begins or ends inside a longer word of the file".to_owned())
}

/// A remark where an exact match begins after its line's indentation and the replacement's further
/// lines are indented less than that line: they stand as they were given, which may not be what was
/// meant.
pub(crate) fn note_lost_indentation(text: &str, span: &Range<usize>, replacement: &str) -> Option<String> {
    let before = text.get(..span.start)?;
    let indent = before.get(before.rfind('\n').map_or(0, |at| at + 1)..)?;
    if indent.is_empty() || !indent.trim().is_empty() || replacement.starts_with([' ', '\t']) {
        return None;
    }
    let further = replacement.lines().skip(1).filter(|line| !line.trim().is_empty());
    let less = further.filter(|line| !line.starts_with(indent)).count();
    (less > 0).then(|| {
        format!(
            "the match begins after the indentation `{}`, which only the first line of the replacement has now; check \
             the indentation of the others",
            show_blanks(indent)
        )
    })
}

/// A line with its blanks made visible, cut to a length.
pub(crate) fn show_blanks(line: &str) -> String {
    let shown = truncate(line, MAX_NOTED_LINE_BYTES);
    let mut out = String::with_capacity(shown.len() * 2);
    for character in shown.chars() {
        out.push(match character {
            ' ' => '·',
            '\t' => '→',
            '\r' => '␍',
            '\u{a0}' => '⍽',
            control if control.is_control() => '�',
            other => other,
        });
    }
    if shown.len() < line.len() {
        out.push('…');
    }
    out
}

/// A text cut to a length, with a mark where something is missing.
pub(super) fn clip_text(text: &str, limit: usize) -> String {
    let shown = truncate(text, limit);
    if shown.len() < text.len() { format!("{shown}…") } else { shown.to_owned() }
}

/// A region line by line with line numbers: equal lines plain, the search text's with `-`, the
/// file's with `+`.
pub(crate) fn excerpt_region(wanted: &[&str], window: &[&str], first_line: usize, ops: &[DiffOp]) -> String {
    let mut rows: Vec<(bool, String)> = Vec::new();
    // Pairs of lines with the same difference stand together, the search text's first.
    let (mut gone, mut come): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
    let flush = |rows: &mut Vec<(bool, String)>, gone: &mut Vec<String>, come: &mut Vec<String>| {
        rows.extend(gone.drain(..).chain(come.drain(..)).map(|row| (false, row)));
    };
    for op in ops {
        let (old, new) = (op.old_range(), op.new_range());
        let paired = old.len().min(new.len());
        for (mine, theirs) in old.clone().zip(new.clone()) {
            let (Some(mine), Some(own)) = (wanted.get(mine), window.get(theirs)) else { continue };
            let number = first_line + theirs;
            if mine.trim_end() == own.trim_end() {
                flush(&mut rows, &mut gone, &mut come);
                rows.push((true, format!("  {number} {}", clip_text(own, MAX_ROW_BYTES))));
                continue;
            }
            let blanks_only = LineReading::InnerWhitespace.normalize_line(mine)
                == LineReading::InnerWhitespace.normalize_line(own);
            let (mine, own) = if blanks_only {
                (show_blanks(mine), show_blanks(own))
            } else {
                clip_near_difference(mine, own)
            };
            gone.push(format!("- {mine}"));
            come.push(format!("+ {number} {own}"));
        }
        let lone = old.skip(paired).filter_map(|at| wanted.get(at));
        gone.extend(lone.map(|line| format!("- {}", clip_text(line, MAX_ROW_BYTES))));
        let lone = new.skip(paired).filter_map(|at| Some((first_line + at, window.get(at)?)));
        come.extend(lone.map(|(number, line)| format!("+ {number} {}", clip_text(line, MAX_ROW_BYTES))));
    }
    flush(&mut rows, &mut gone, &mut come);
    shorten_excerpt(&rows)
}

/// Two lines that differ, each from its beginning, or from shortly before the difference where that
/// comes late.
fn clip_near_difference(mine: &str, own: &str) -> (String, String) {
    let same = mine.char_indices().zip(own.chars()).take_while(|((_, x), y)| x == y);
    let head = same.last().map_or(0, |((at, c), _)| at + c.len_utf8());
    if head + MAX_ROW_BYTES / 4 < MAX_ROW_BYTES {
        return (clip_text(mine, MAX_ROW_BYTES), clip_text(own, MAX_ROW_BYTES));
    }
    let from = truncate(mine, head - MAX_ROW_BYTES / 4).len();
    let part = |line: &str| format!("…{}", clip_text(line.get(from..).unwrap_or_default(), MAX_ROW_BYTES));
    (part(mine), part(own))
}

/// Joins rows, leaving out equal ones far from a difference, within [`MAX_EXCERPT_BYTES`].
fn shorten_excerpt(rows: &[(bool, String)]) -> String {
    let mut out = String::new();
    let mut left_out = 0;
    for (index, (equal, row)) in rows.iter().enumerate() {
        let around =
            rows.get(index.saturating_sub(CONTEXT_LINES)..(index + CONTEXT_LINES + 1).min(rows.len()));
        if *equal && around.is_some_and(|rows| rows.iter().all(|(equal, _)| *equal)) {
            left_out += 1;
            continue;
        }
        if left_out > 0 {
            out.push_str("  …\n");
            left_out = 0;
        }
        if out.len() + row.len() > MAX_EXCERPT_BYTES {
            out.push_str(&format!("  … {} more lines", rows.len() - index));
            break;
        }
        out.push_str(row);
        out.push('\n');
    }
    out.truncate(out.trim_end().len());
    out
}

/// The refusal for a search text that is in several places, given by their bytes.
pub(crate) fn ambiguous_refusal(text: &str, places: &[Range<usize>], strategy: Strategy) -> Refusal {
    let all = lines_of(text);
    let at = |offset: usize| all.partition_point(|line| line.next_start() <= offset);
    let spans =
        places.iter().map(|place| (at(place.start), at(place.end.saturating_sub(1).max(place.start))));
    ambiguous_lines_refusal(text, &all, &spans.collect::<Vec<_>>(), strategy)
}

/// The refusal for a search text that is in several places, given by their first and last lines
/// (0-based), with what tells them apart.
pub(crate) fn ambiguous_lines_refusal(
    text: &str,
    all: &[Line],
    spans: &[(usize, usize)],
    strategy: Strategy,
) -> Refusal {
    let own = |index: usize| {
        all.get(index).map(|line: &Line| text.get(line.content_range()).unwrap_or_default().trim())
    };
    // A line at a distance from a place, above (negative) or below, with the number of places that
    // have the line.
    let beside = |(first, last): (usize, usize), reach: isize| {
        let index = if reach < 0 { first.checked_add_signed(reach) } else { last.checked_add_signed(reach) };
        index.and_then(|index| Some((index, own(index)?)))
    };
    // More places than are looked for can't be told apart.
    let reach = if spans.len() < MAX_AMBIGUOUS_PLACES { MAX_DISTINGUISHING_DISTANCE as isize } else { 0 };
    let reaches = (1..=reach).flat_map(|far| [-far, far]);
    let counted: Vec<(isize, HashMap<&str, u32>)> = reaches
        .map(|reach| {
            let mut counts = HashMap::new();
            for (_, line) in spans.iter().filter_map(|span| beside(*span, reach)) {
                *counts.entry(line).or_insert(0) += 1;
            }
            (reach, counts)
        })
        .collect();
    let number = |index: usize| u32::try_from(index + 1).unwrap_or(u32::MAX);
    let spots = spans.iter().take(MAX_DESCRIBED_PLACES).map(|span| {
        let distinctive = counted.iter().find_map(|(reach, counts)| {
            let (index, line) = beside(*span, *reach)?;
            // Not within another's line either: a search text may begin and end anywhere in a line.
            let apart = |other: &&str| {
                other.len() <= MAX_NEIGHBOUR_BYTES && (*other == line || !other.contains(line))
            };
            let alone = counts.get(line) == Some(&1) && line.chars().any(char::is_alphanumeric);
            (alone && counts.keys().all(apart))
                .then(|| (number(index), clip_text(line, MAX_NOTED_LINE_BYTES)))
        });
        let within = enclosing_line(text, all, span.0)
            .map(|(index, line)| (number(index), clip_text(line, MAX_NOTED_LINE_BYTES)));
        MatchOccurrence { first: number(span.0), last: number(span.1), within, distinctive }
    });
    let lines = spans.iter().map(|span| number(span.0)).collect();
    Refusal::Ambiguous { lines, strategy, spots: spots.collect() }
}

/// The nearest line above that is indented less: what a line is inside of.
fn enclosing_line<'a>(text: &'a str, lines: &[Line], index: usize) -> Option<(usize, &'a str)> {
    let own = |line: &Line| text.get(line.content_range()).unwrap_or_default();
    let depth = |line: &str| split_indent(line).0.len();
    let line = own(lines.get(index)?);
    let deep = depth(line);
    if deep == 0 || line.trim().is_empty() {
        return None;
    }
    let above = lines.get(index.saturating_sub(MAX_LINES_ABOVE)..index)?.iter().map(own);
    let indexed = (index.saturating_sub(MAX_LINES_ABOVE)..index).zip(above).rev();
    indexed
        .filter(|(_, line)| line.chars().any(char::is_alphanumeric))
        .find(|(_, line)| depth(line) < deep)
        .map(|(index, line)| (index, line.trim()))
}
