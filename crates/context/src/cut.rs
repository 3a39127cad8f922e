//! Shortening text to a budget: head and tail stay, the middle goes, and the text says so.

use std::ops::Range;

use journeyman_protocol::{TokenCounter as _, Tokens};

use crate::TokenEstimator;

/// Nothing is cut to less: a smaller piece of a file tells nothing (row A6).
pub const MIN_CUT_TOKENS: Tokens = Tokens(500);
/// The head's share of the room, in hundredths: declarations stand at the top.
const HEAD_PERCENT: u64 = 60;
/// No line of a shortened text is longer, in bytes: it is data, or minified.
const MAX_KEPT_LINE_BYTES: usize = 1_000;
/// A text longer than this is looked at only at its ends, in bytes.
const MAX_EXAMINED_BYTES: usize = 4 << 20;

/// A text that fits its budget.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CutText {
    /// The text, or what is left of it with a line in place of what isn't.
    pub text: String,
    /// True if anything was left out.
    pub shortened: bool,
}

/// Fits `text` into `budget` tokens. Where it doesn't fit, its head and tail stay; with `around`, a
/// 1-based line, some of the head and the surroundings of that line stay. At least
/// [`MIN_CUT_TOKENS`] tokens stay, whatever the budget is, unless lines are too long to be shown.
#[must_use]
pub fn cut_to_budget(text: &str, budget: Tokens, around: Option<u32>) -> CutText {
    let budget = budget.max(MIN_CUT_TOKENS);
    // No text has fewer tokens than a twentieth of its bytes, but for long rulers, which may be cut
    // all the same.
    let surely_too_long = text.len() as u64 / 20 > budget.0;
    if !surely_too_long && TokenEstimator.count(text) <= budget {
        return CutText { text: text.to_owned(), shortened: false };
    }
    let ends = both_ends(text);
    let lines: Vec<&str> = ends.lines().collect();
    let head_budget = Tokens(budget.0 * HEAD_PERCENT / 100);
    let rest = Tokens(budget.0.saturating_sub(head_budget.0));
    let wanted = around.and_then(|line| usize::try_from(line).ok()).and_then(|line| line.checked_sub(1));
    let kept = match wanted.filter(|line| *line < lines.len() && text.len() <= MAX_EXAMINED_BYTES) {
        Some(line) => {
            let head = count_fitting_lines(lines.iter(), Tokens(rest.0 / 2));
            let before =
                count_fitting_lines(lines.get(..line).unwrap_or_default().iter().rev(), head_budget.half());
            let after = count_fitting_lines(lines.get(line..).unwrap_or_default().iter(), head_budget.half());
            [0..head, line - before..line + after.max(1)]
        }
        None => {
            let head = count_fitting_lines(lines.iter(), head_budget).max(1).min(lines.len());
            let tail = count_fitting_lines(lines.get(head..).unwrap_or_default().iter().rev(), rest);
            [0..head, lines.len() - tail..lines.len()]
        }
    };
    let [mut head, other] = kept;
    loop {
        let kept = render_kept(&lines, &head, &other);
        let missing = Tokens(MIN_CUT_TOKENS.0.saturating_sub(TokenEstimator.count(&kept).0));
        let left = lines.get(head.end..).unwrap_or_default();
        if missing.0 == 0 || left.is_empty() {
            // All of a text stays that has little more than the least.
            return CutText { shortened: kept != text, text: kept };
        }
        head.end += count_fitting_lines(left.iter(), missing).max(1);
    }
}

/// Renders the lines that are kept.
fn render_kept(lines: &[&str], head: &Range<usize>, other: &Range<usize>) -> String {
    let other = other.start.max(head.end)..other.end.max(head.end);
    let mut out = String::new();
    push_lines(&mut out, lines.get(head.clone()).unwrap_or_default());
    push_omission_note(&mut out, lines.get(head.end..other.start).unwrap_or_default());
    push_lines(&mut out, lines.get(other.clone()).unwrap_or_default());
    push_omission_note(&mut out, lines.get(other.end..).unwrap_or_default());
    out
}

trait Half {
    fn half(self) -> Self;
}

impl Half for Tokens {
    fn half(self) -> Self {
        Self(self.0 / 2)
    }
}

/// Both ends of a text that is too long to be looked at whole.
fn both_ends(text: &str) -> std::borrow::Cow<'_, str> {
    if text.len() <= MAX_EXAMINED_BYTES {
        return text.into();
    }
    let head = text.floor_char_boundary(MAX_EXAMINED_BYTES / 2);
    let tail = text.ceil_char_boundary(text.len() - MAX_EXAMINED_BYTES / 2);
    let (head, tail) = (text.get(..head).unwrap_or_default(), text.get(tail..).unwrap_or_default());
    format!("{head}\n{tail}").into()
}

/// Returns the number of lines that fit.
fn count_fitting_lines<'a>(lines: impl Iterator<Item = &'a &'a str>, budget: Tokens) -> usize {
    let mut spent = Tokens(0);
    let mut count = 0;
    for line in lines {
        // The line break is part of most lines' last token or one of its own.
        spent += TokenEstimator.count(line_prefix(line)) + Tokens(1);
        if spent > budget {
            break;
        }
        count += 1;
    }
    count
}

fn line_prefix(line: &str) -> &str {
    line.get(..line.floor_char_boundary(MAX_KEPT_LINE_BYTES)).unwrap_or(line)
}

fn push_lines(out: &mut String, lines: &[&str]) {
    for line in lines {
        let kept = line_prefix(line);
        out.push_str(kept);
        if kept.len() < line.len() {
            out.push_str(&format!(" […{} bytes]", line.len() - kept.len()));
        }
        out.push('\n');
    }
}

fn push_omission_note(out: &mut String, lines: &[&str]) {
    if !lines.is_empty() {
        out.push_str(&format!("[… {} lines left out]\n", lines.len()));
    }
}

/// Returns the tokens that each piece may have, so that all fit: short ones leave theirs to the
/// others.
pub(crate) fn fair_limit(mut needs: Vec<Tokens>, room: Tokens) -> Tokens {
    needs.sort_unstable();
    let (mut left, mut open) = (room.0, needs.len() as u64);
    for need in needs {
        let part = left / open.max(1);
        if need.0 > part {
            return Tokens(part);
        }
        left -= need.0;
        open -= 1;
    }
    room
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_of_one_reply_leave_room_to_each_other() {
        assert_eq!(fair_limit(vec![Tokens(900), Tokens(10), Tokens(40)], Tokens(400)), Tokens(350));
        assert_eq!(fair_limit(vec![Tokens(900), Tokens(800)], Tokens(400)), Tokens(200));
        assert_eq!(fair_limit(vec![Tokens(9)], Tokens(400)), Tokens(400));
        assert_eq!(fair_limit(Vec::new(), Tokens(400)), Tokens(400));
    }

    fn numbered(lines: u32) -> String {
        (1..=lines).map(|line| format!("let value_{line} = {line};\n")).collect()
    }

    #[test]
    fn what_fits_is_untouched() {
        let text = numbered(20);
        assert_eq!(cut_to_budget(&text, Tokens(1_000), None), CutText { text, shortened: false });
    }

    #[test]
    fn head_and_tail_stay() {
        let cut = cut_to_budget(&numbered(1_000), Tokens(600), None);
        assert!(cut.shortened);
        assert!(cut.text.starts_with("let value_1 = 1;\n") && cut.text.ends_with("let value_1000 = 1000;\n"));
        assert!(cut.text.contains(" lines left out]\n"), "{}", cut.text);
        let cost = TokenEstimator.count(&cut.text).0;
        assert!((450..=620).contains(&cost), "{cost}");
    }

    #[test]
    fn never_under_the_least() {
        let cost = TokenEstimator.count(&cut_to_budget(&numbered(1_000), Tokens(10), None).text).0;
        assert!((500..=520).contains(&cost), "{cost}");
    }

    #[test]
    fn the_named_line_stays() {
        let cut = cut_to_budget(&numbered(1_000), Tokens(500), Some(700));
        assert!(cut.text.starts_with("let value_1 = 1;\n"));
        for line in [695, 700, 705] {
            assert!(cut.text.contains(&format!("let value_{line} = ")), "{line}");
        }
        assert!(cut.text.ends_with(" lines left out]\n"));
    }

    #[test]
    fn one_endless_line_is_bounded() {
        let cut = cut_to_budget(&"x y ".repeat(100_000), Tokens(500), None);
        assert!(cut.text.len() < 1_200 && cut.text.contains("bytes]"), "{}", cut.text.len());
    }
}
