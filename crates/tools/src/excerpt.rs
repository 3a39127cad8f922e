//! Parts of texts: numbered windows, heads and tails, single lines cut short.

use std::fmt::Write as _;
use std::ops::Range;

use journeyman_protocol::clip_to_bytes;

/// Maximum bytes of a line that is shown: longer ones are minified code or data.
const MAX_EXCERPT_LINE_BYTES: usize = 2_000;

/// Consecutive lines of a text with their numbers, beginning with line `offset`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NumberedLines {
    /// The lines, each as number, tab, text.
    pub(crate) text: String,
    /// The number of the last line; 0 if there is none.
    pub(crate) last: u64,
    /// The number of lines of the whole text.
    pub(crate) total: u64,
}

/// Returns at most `lines` lines and about `bytes` bytes of `text`, from line `offset` on; at least
/// one line if there is one.
pub(crate) fn numbered_lines_from(text: &str, offset: u64, lines: u64, bytes: usize) -> NumberedLines {
    let mut window = NumberedLines { text: String::new(), last: 0, total: 0 };
    let end = offset.saturating_add(lines);
    let mut full = false;
    for (number, line) in (1u64..).zip(text.lines()) {
        window.total = number;
        if full || number < offset || number >= end {
            continue;
        }
        let before = window.text.len();
        push_numbered_line(&mut window.text, number, line);
        if window.text.len() > bytes && window.last > 0 {
            window.text.truncate(before);
            full = true;
        } else {
            window.last = number;
        }
    }
    window
}

/// Appends a line as number, tab, text; a very long line is cut.
pub(crate) fn push_numbered_line(out: &mut String, number: u64, line: &str) {
    let kept = clip_to_bytes(line, MAX_EXCERPT_LINE_BYTES);
    // Writing to a string can't fail.
    let written = if kept.len() == line.len() {
        writeln!(out, "{number}\t{kept}")
    } else {
        writeln!(out, "{number}\t{kept}… [{} more bytes]", line.len() - kept.len())
    };
    debug_assert!(written.is_ok());
}

/// Returns `text` on one line of at most `bytes` bytes, without control characters.
pub(crate) fn to_one_line(text: &str, bytes: usize) -> String {
    let kept = clip_to_bytes(text, bytes);
    let mut out = String::with_capacity(kept.len());
    for character in kept.chars() {
        if character.is_control() || is_invisible_char(character) {
            out.extend(character.escape_default());
        } else {
            out.push(character);
        }
    }
    if kept.len() < text.len() {
        out.push('…');
    }
    out
}

/// Returns true for characters that change how others are displayed: direction marks and zero-width
/// characters.
fn is_invisible_char(character: char) -> bool {
    matches!(character, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

/// Returns the byte range to omit from the middle of a long text.
///
/// `None` when `text` has at most `bytes` bytes. Cuts fall between lines unless lines are very
/// long.
pub(crate) fn middle_to_omit(text: &str, bytes: usize) -> Option<Range<usize>> {
    if text.len() <= bytes {
        return None;
    }
    let half = bytes / 2;
    let head = text.floor_char_boundary(half);
    let tail = text.ceil_char_boundary(text.len() - half);
    let line_end = text.get(..head).and_then(|head| head.rfind('\n')).map(|at| at + 1);
    let line_start = text.get(tail..).and_then(|rest| rest.find('\n')).map(|at| tail + at + 1);
    let head = line_end.filter(|end| *end > half / 2).unwrap_or(head);
    let tail = line_start.filter(|start| *start < text.len() - half / 2).unwrap_or(tail);
    Some(head..tail)
}

/// Returns groups of numbered lines around byte `ranges`, with `context` lines before and after; at
/// most `lines` lines in all.
pub(crate) fn line_groups_around(
    text: &str,
    ranges: &[Range<usize>],
    context: usize,
    lines: usize,
) -> String {
    let starts: Vec<usize> =
        std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
    let line_of = |at: usize| starts.partition_point(|start| *start <= at).saturating_sub(1);
    let mut wanted: Vec<Range<usize>> = ranges
        .iter()
        .map(|range| {
            let last = line_of(range.end.saturating_sub(1).max(range.start));
            line_of(range.start).saturating_sub(context)..last.saturating_add(context + 1)
        })
        .collect();
    wanted.sort_by_key(|lines| lines.start);
    let all: Vec<&str> = text.lines().collect();
    let (mut out, mut next, mut room) = (String::new(), 0, lines);
    for range in wanted {
        let from = range.start.max(next);
        if from > next && !out.is_empty() && from < range.end {
            out.push_str("…\n");
        }
        for (nth, line) in all.iter().enumerate().take(range.end).skip(from) {
            if room == 0 {
                out.push_str("…\n");
                return out;
            }
            room -= 1;
            push_numbered_line(&mut out, nth as u64 + 1, line);
        }
        next = next.max(range.end);
    }
    out
}

#[cfg(test)]
mod tests {
    use std::slice::from_ref;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn windows() {
        let text = "a\nb\r\nc\n";
        let cases = [
            ((1, 9, 99), ("1\ta\n2\tb\n3\tc\n", 3, 3)),
            ((2, 1, 99), ("2\tb\n", 2, 3)),
            ((1, 9, 4), ("1\ta\n", 1, 3)),
            ((9, 9, 99), ("", 0, 3)),
            ((u64::MAX, u64::MAX, 99), ("", 0, 3)),
        ];
        for ((offset, lines, bytes), (shown, last, total)) in cases {
            let expected = NumberedLines { text: shown.to_owned(), last, total };
            assert_eq!(numbered_lines_from(text, offset, lines, bytes), expected, "{offset} {lines} {bytes}");
        }
        assert_eq!(numbered_lines_from("", 1, 9, 9).total, 0);
    }

    #[test]
    fn long_lines_are_cut_with_a_mark() {
        let text = "é".repeat(2_000);
        let shown = numbered_lines_from(&text, 1, 1, 99_999).text;
        assert!(shown.ends_with("… [2000 more bytes]\n"), "{shown}");
    }

    #[test]
    fn people_see_what_terminals_would_obey() {
        assert_eq!(to_one_line("a\x1b[31m\u{202e}b\n", 99), "a\\u{1b}[31m\\u{202e}b\\n");
        assert_eq!(to_one_line("abcdef", 3), "abc…");
    }

    #[test]
    fn lines_around_changes() {
        let text = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";
        assert_eq!(line_groups_around(text, from_ref(&(4..6)), 1, 99), "2\t2\n3\t3\n4\t4\n");
        assert_eq!(line_groups_around(text, &[0..1, 16..17], 0, 99), "1\t1\n…\n9\t9\n");
        assert_eq!(line_groups_around(text, from_ref(&(0..17)), 2, 2), "1\t1\n2\t2\n…\n");
        assert_eq!(line_groups_around("", from_ref(&(0..0)), 2, 9), "");
    }

    proptest! {
        #[test]
        fn cutting_never_panics(text in "[a-zé\n]{0,300}", bytes in 0usize..200, from in 0usize..400, to in 0usize..400) {
            if let Some(cut) = middle_to_omit(&text, bytes) {
                prop_assert!(cut.start <= cut.end && cut.start + (text.len() - cut.end) <= bytes);
                prop_assert!(text.is_char_boundary(cut.start) && text.is_char_boundary(cut.end));
            }
            let shown = line_groups_around(&text, from_ref(&(from.min(to)..from.max(to))), 2, 20);
            prop_assert!(shown.lines().count() <= 21);
            let window = numbered_lines_from(&text, from as u64, to as u64, bytes);
            prop_assert!(window.last <= window.total);
        }
    }
}
