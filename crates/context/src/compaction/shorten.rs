//! Shortening a text to any number of tokens, however few.

use std::ops::Range;

use journeyman_protocol::{CallId, TokenCounter, Tokens};

/// The head's share of what is kept, in hundredths: as for files, declarations and first errors
/// stand at the top.
const HEAD_PERCENT: usize = 60;
/// Attempts at a size that fits before only the note is left.
const MAX_ATTEMPTS: u32 = 12;
/// A note of more missing bytes is a text like any other.
const MAX_NOTED_BYTES: u64 = 1 << 40;
/// Begins a note where an earlier one counted lines.
const AT_LEAST_PREFIX: &str = "at least ";

/// Fits a text into a budget: its head and tail stay, with a note of what is missing between them.
/// `recall` tells the model how to get the whole, if there is a way.
pub(super) fn shorten(
    text: &str,
    budget: Tokens,
    recall: Option<&str>,
    counter: &dyn TokenCounter,
) -> Option<String> {
    let tokens = counter.count(text);
    if tokens <= budget {
        return None;
    }
    let recall = recall.map(|recall| format!("; {recall}")).unwrap_or_default();
    // Bytes that the budget would hold at the text's own rate.
    let mut keep = (text.len() as u128 * u128::from(budget.0) / u128::from(tokens.0.max(1))) as usize;
    for _ in 0..MAX_ATTEMPTS {
        let shortened = head_and_tail(text, keep, &recall);
        if counter.count(&shortened) <= budget {
            return Some(shortened);
        }
        keep = keep * 4 / 5;
    }
    Some(format!("[{} left out{recall}]", describe_missing(text, &find_shortening_notes(text))))
}

/// Returns the words by which a note tells how to get the whole result of a call.
pub(super) fn recall_note(call: &CallId) -> String {
    format!("read_file with path output:{call} has them")
}

fn head_and_tail(text: &str, keep: usize, recall: &str) -> String {
    let head_bytes = keep * HEAD_PERCENT / 100;
    let head = text.get(..text.floor_char_boundary(head_bytes)).unwrap_or_default();
    let tail_at = text.ceil_char_boundary(text.len().saturating_sub(keep - head_bytes));
    let tail = text.get(tail_at..).unwrap_or_default();
    // Whole lines where there are some.
    let head = head.rfind('\n').filter(|end| *end * 2 > head.len()).map_or(head, |end| &head[..=end]);
    let tail = tail.find('\n').filter(|end| *end * 2 < tail.len()).map_or(tail, |end| &tail[end + 1..]);
    // A note at the border of the gap becomes a part of it, so that none is cut in two.
    let marks = find_shortening_notes(text);
    let (mut from, mut to) = (head.len(), text.len().saturating_sub(tail.len()));
    for ShorteningNote { lines, .. } in marks.iter().rev() {
        from = if lines.start < from && from <= lines.end { lines.start } else { from };
    }
    for ShorteningNote { lines, .. } in &marks {
        to = if lines.start <= to && to < lines.end { lines.end } else { to };
    }
    let part = |range: Range<usize>| text.get(range).unwrap_or_default();
    let (head, tail) = (part(0..from), part(to..text.len()));
    let inside: Vec<ShorteningNote> =
        marks.into_iter().filter(|mark| from <= mark.lines.start && mark.lines.end <= to).collect();
    let left_out = describe_missing(part(from..to), &inside);
    let gap = if head.ends_with('\n') || head.is_empty() { "" } else { "\n" };
    format!("{head}{gap}[{left_out} left out{recall}]\n{tail}")
}

/// A note of an earlier shortening, on a line of its own.
struct ShorteningNote {
    /// The bytes of its line, with the line break.
    lines: Range<usize>,
    /// The bytes that it says are missing; `None` if it counts lines.
    bytes: Option<u64>,
}

/// Finds the notes of earlier shortenings, here and where results are bounded.
fn find_shortening_notes(text: &str) -> Vec<ShorteningNote> {
    let mut at = 0;
    let lines = text.split_inclusive('\n').map(|line| {
        let start = at;
        at += line.len();
        (start..at, line.trim())
    });
    lines
        .filter_map(|(lines, line)| Some(ShorteningNote { lines, bytes: parse_missing_bytes(line)? }))
        .collect()
}

/// Returns the bytes that a note says are missing, `Some(None)` for a note that counts lines, and
/// `None` for any other line.
#[allow(clippy::option_option)]
fn parse_missing_bytes(line: &str) -> Option<Option<u64>> {
    let note = line.strip_prefix('[')?.strip_suffix(']')?;
    let is_note = ["bytes left out", "bytes are left out", "lines left out"];
    if !is_note.iter().any(|words| note.contains(words)) {
        return None;
    }
    let note = note.trim_start_matches("… ").trim_start_matches(AT_LEAST_PREFIX);
    let digits = note.find(|c: char| !c.is_ascii_digit()).unwrap_or(note.len());
    let (number, unit) = note.split_at_checked(digits)?;
    let number = number.parse::<u64>().ok().filter(|number| *number < MAX_NOTED_BYTES)?;
    if unit.starts_with(" bytes") { Some(Some(number)) } else { unit.starts_with(" lines").then_some(None) }
}

/// Says how much of the original is missing where `gap` is left out, which has these notes.
fn describe_missing(gap: &str, marks: &[ShorteningNote]) -> String {
    let notes: usize = marks.iter().map(|mark| mark.lines.len()).sum();
    let before = marks.iter().filter_map(|mark| mark.bytes).fold(0, u64::saturating_add);
    let bytes = (gap.len().saturating_sub(notes) as u64).saturating_add(before);
    let least = if marks.iter().any(|mark| mark.bytes.is_none()) { AT_LEAST_PREFIX } else { "" };
    format!("{least}{bytes} bytes")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TokenEstimator;

    #[test]
    fn a_text_that_fits_is_left_alone_and_others_keep_both_ends() {
        assert_eq!(shorten("short", Tokens(10), None, &TokenEstimator), None);
        let text: String = (0..500).map(|number| format!("line {number} of the output\n")).collect();
        let short = shorten(&text, Tokens(200), Some("read_file has it"), &TokenEstimator).unwrap();
        assert!(TokenEstimator.count(&short) <= Tokens(200), "{short}");
        assert!(short.starts_with("line 0 ") && short.ends_with("line 499 of the output\n"), "{short}");
        assert!(short.contains("bytes left out; read_file has it]"), "{short}");
    }

    #[test]
    fn a_tiny_budget_leaves_the_note() {
        let short = shorten(&"字".repeat(1_000), Tokens(2), None, &TokenEstimator).unwrap();
        assert_eq!(short, "[3000 bytes left out]");
    }

    #[test]
    fn a_second_shortening_counts_what_the_first_left_out() {
        let text: String = (0..2_000).map(|number| format!("line {number} of the output\n")).collect();
        let left_out = |short: &str| -> usize {
            let marks = find_shortening_notes(short);
            let notes: usize = marks.iter().map(|mark| mark.lines.len()).sum();
            let told: u64 = marks.iter().filter_map(|mark| mark.bytes).sum();
            assert_eq!(told as usize + short.len() - notes, text.len(), "{short}");
            marks.len()
        };
        let mut short = text.clone();
        for budget in [2_000, 700, 300, 60, 10] {
            short = shorten(&short, Tokens(budget), Some("read_file has them"), &TokenEstimator).unwrap();
            assert_eq!(left_out(&short), 1, "one note: {short}");
        }
        assert_eq!(short, format!("[{} bytes left out; read_file has them]", text.len()));
    }

    #[test]
    fn notes_of_bounded_results_are_counted_and_others_are_text() {
        for (line, missing) in [
            ("[12 bytes left out]", Some(Some(12))),
            (
                "[12 bytes left out, about 3 lines; read_file with path output:c1 and offset 4 has them]",
                Some(Some(12)),
            ),
            ("[… 12 bytes left out …]", Some(Some(12))),
            ("[12 bytes are left out; read_file has all of it]", Some(Some(12))),
            ("[at least 12 bytes left out]", Some(Some(12))),
            ("[… 12 lines left out]", Some(None)),
            ("[99999999999999999999999999 bytes left out]", None),
            ("[12 bytes]", None),
            ("[bytes left out]", None),
            ("12 bytes left out", None),
            ("[]", None),
        ] {
            assert_eq!(parse_missing_bytes(line), missing, "{line}");
        }
        let text = format!("{}[… 9 lines left out]\n{}", "a line\n".repeat(200), "b line\n".repeat(200));
        let short = shorten(&text, Tokens(40), None, &TokenEstimator).unwrap();
        assert!(short.contains("\n[at least ") && short.matches("left out").count() == 1, "{short}");
    }
}
