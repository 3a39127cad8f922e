//! Saying what differed, in few words and with blanks made visible.

use std::ops::Range;

use crate::outcome::{Strategy, cut};

/// How much of a line a note shows, in bytes.
const SHOWN: usize = 120;

/// What a loose match overlooked: how many lines, and the first of them.
pub(crate) fn note(strategy: Strategy, old: &[&str], file: &[(&str, &str)], first_line: u32) -> String {
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
        visible(own),
        visible(old)
    )
}

/// What differs between two lines that were taken for the same.
pub(crate) fn difference(searched: &str, own: &str) -> String {
    format!("the search text has `{}`, the file `{}`", visible(searched), visible(own))
}

/// Why a line of the replacement can't be indented.
pub(crate) fn unfit_indentation(line: &str) -> String {
    format!(
        "the search text's lines are indented otherwise than the file's, and not evenly, so that the indentation of \
         `{}` can't be told",
        visible(line)
    )
}

/// What the step without line numbers did.
pub(crate) fn numbers_removed(then: Strategy, note: Option<&str>) -> String {
    match note {
        Some(note) if then != Strategy::Exact => {
            format!("line numbers were removed from the search text; {note}")
        }
        _ => "line numbers were removed from the search text; don't send them".to_owned(),
    }
}

/// A remark where an exact match begins or ends inside a word or number of the file.
pub(crate) fn splits_word(text: &str, span: &Range<usize>) -> Option<String> {
    let is_word = |c: &char| c.is_alphanumeric() || *c == '_';
    let found = text.get(span.clone())?;
    let before = text.get(..span.start)?.chars().next_back().filter(is_word);
    let after = text.get(span.end..)?.chars().next().filter(is_word);
    let splits_start = before.is_some() && found.chars().next().filter(is_word).is_some();
    let splits_end = after.is_some() && found.chars().next_back().filter(is_word).is_some();
    (splits_start || splits_end)
        .then(|| "the match begins or ends inside a longer word of the file".to_owned())
}

/// A remark where an exact match begins after its line's indentation and the replacement's further lines are indented
/// less than that line: they stand as they were given, which may not be what was meant.
pub(crate) fn falls_out(text: &str, span: &Range<usize>, replacement: &str) -> Option<String> {
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
            visible(indent)
        )
    })
}

/// A line with its blanks made visible, cut to a length.
pub(crate) fn visible(line: &str) -> String {
    let shown = cut(line, SHOWN);
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
