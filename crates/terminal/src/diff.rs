//! Unified diffs with colours, line numbers, and marks of the words that differ.

use std::ops::Range;

use crate::changed_words::find_changed_words;
use crate::code::{LineTokens, TokenFinder, split_line};
use crate::{Style, StyledLine, Token};

/// Returns a line of a unified diff in its colour.
#[must_use]
pub fn style_line(line: &str) -> StyledLine {
    let style = match line.as_bytes().first() {
        _ if line.starts_with("+++") || line.starts_with("---") || line.starts_with("diff ") => Style::Strong,
        Some(b'+') => Style::Good,
        Some(b'-') => Style::Bad,
        Some(b'@') => Style::Accent,
        _ => Style::Plain,
    };
    StyledLine::new(style, line)
}

/// The version of a file that has a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Side {
    /// Both.
    Both,
    /// The old one alone.
    Old,
    /// The new one alone.
    New,
    /// None: it is a remark.
    Remark,
}

/// A line of a hunk.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct HunkLine {
    /// The version that has the line.
    pub side: Side,
    /// The line's number, if it is known.
    pub number: Option<u64>,
    /// The text without the sign.
    pub text: String,
}

/// The files that are named in a rendered diff.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileNameDisplay {
    /// File names only in a diff of several files.
    OfSeveral,
    /// All.
    All,
}

/// Numbers the lines of a unified diff: added and unchanged ones as in the new file, removed ones
/// as in the old. The headers of git are left out.
#[must_use]
pub fn number_lines(diff: &str, names: FileNameDisplay, find_tokens: TokenFinder<'_>) -> Vec<StyledLine> {
    let count = diff.lines().filter(|line| line.starts_with("diff ")).count();
    let has_names = names == FileNameDisplay::All || count > 1;
    let digits = max_line_number(diff).to_string().len();
    let mut path = "";
    let mut hunk: Option<OpenHunk> = None;
    let mut lines = Vec::new();
    for line in diff.lines() {
        if let Some((old, new)) = parse_hunk_header(line) {
            if let Some(before) = hunk.replace(OpenHunk { old, new, lines: Vec::new() }) {
                lines.extend(render_hunk(&before.lines, digits, path, find_tokens));
                lines.push(StyledLine::new(Style::Dim, format!("{:>digits$}", "⋮")));
            }
        } else if line.starts_with("diff ") {
            let before = hunk.take().map(|hunk| hunk.lines).unwrap_or_default();
            lines.extend(render_hunk(&before, digits, path, find_tokens));
            path = line.split_once(" b/").map_or("", |(_, name)| name);
            if has_names && !path.is_empty() {
                lines.push(StyledLine::new(Style::Strong, path));
            }
        } else if let Some(hunk) = &mut hunk {
            hunk.push(line);
        } else if let Some(name) = line.strip_prefix("+++ b/") {
            path = name;
        }
    }
    let last = hunk.map(|hunk| hunk.lines).unwrap_or_default();
    lines.extend(render_hunk(&last, digits, path, find_tokens));
    lines
}

/// A hunk of a unified diff as far as it is read.
struct OpenHunk {
    old: u64,
    new: u64,
    lines: Vec<HunkLine>,
}

impl OpenHunk {
    fn push(&mut self, line: &str) {
        let side = match line.as_bytes().first() {
            Some(b'+') => Side::New,
            Some(b'-') => Side::Old,
            Some(b'\\') => Side::Remark,
            _ => Side::Both,
        };
        let number = match side {
            Side::New | Side::Both => Some(self.new),
            Side::Old => Some(self.old),
            Side::Remark => None,
        };
        self.old += u64::from(matches!(side, Side::Old | Side::Both));
        self.new += u64::from(matches!(side, Side::New | Side::Both));
        let text = if side == Side::Remark { line } else { line.get(1..).unwrap_or_default() };
        self.lines.push(HunkLine { side, number, text: text.to_owned() });
    }
}

/// Renders the lines of a hunk: the number in `digits` columns, the sign, the text in the colours
/// of its language, with the words marked that a changed line has got or lost.
#[must_use]
pub fn render_hunk(
    lines: &[HunkLine],
    digits: usize,
    path: &str,
    find_tokens: TokenFinder<'_>,
) -> Vec<StyledLine> {
    let sides = [Side::Old, Side::New].map(|side| find_side_tokens(lines, side, path, find_tokens));
    let changed = find_words_changed_in_hunk(lines);
    let mut places = [0, 0];
    let mut rendered = Vec::with_capacity(lines.len());
    for (line, words) in lines.iter().zip(&changed) {
        let [old, new] = &mut places;
        let tokens = match line.side {
            Side::Old => sides.first().map(|side| side.of_line(*old)),
            Side::New | Side::Both => sides.last().map(|side| side.of_line(*new)),
            Side::Remark => None,
        };
        *old += usize::from(matches!(line.side, Side::Old | Side::Both));
        *new += usize::from(matches!(line.side, Side::New | Side::Both));
        rendered.push(render_hunk_line(line, digits, tokens.unwrap_or_default(), words));
    }
    rendered
}

/// Finds the tokens of one version's lines.
fn find_side_tokens(lines: &[HunkLine], side: Side, path: &str, find_tokens: TokenFinder<'_>) -> LineTokens {
    let own = lines.iter().filter(|line| line.side == side || line.side == Side::Both);
    LineTokens::find(own.map(|line| line.text.as_str()), path, find_tokens)
}

/// Finds the words that lines have got or lost. A removed line is compared with the added one at
/// the same place behind it.
fn find_words_changed_in_hunk(lines: &[HunkLine]) -> Vec<Vec<Range<usize>>> {
    let mut marks: Vec<Vec<Range<usize>>> = vec![Vec::new(); lines.len()];
    let mut at = 0;
    while at < lines.len() {
        let run = |from: usize, side| lines.iter().skip(from).take_while(|line| line.side == side).count();
        let removed = run(at, Side::Old);
        let added = run(at + removed, Side::New);
        for place in 0..removed.min(added) {
            let (old, new) = (at + place, at + removed + place);
            if let (Some(old_line), Some(new_line)) = (lines.get(old), lines.get(new))
                && let Some((lost, got)) = find_changed_words(&old_line.text, &new_line.text)
            {
                marks.iter_mut().skip(old).take(1).for_each(|mark| mark.clone_from(&lost));
                marks.iter_mut().skip(new).take(1).for_each(|mark| mark.clone_from(&got));
            }
        }
        at += (removed + added).max(1);
    }
    marks
}

fn render_hunk_line(
    line: &HunkLine,
    digits: usize,
    tokens: Vec<(Range<usize>, Token)>,
    words: &[Range<usize>],
) -> StyledLine {
    let number = line.number.map(|number| number.to_string()).unwrap_or_default();
    let rendered = StyledLine::new(Style::Dim, format!("{number:>digits$} "));
    let sign = match line.side {
        Side::Remark => return rendered.with(Style::Dim, &line.text),
        Side::Both => " ",
        Side::Old => "-",
        Side::New => "+",
    };
    let style = |token, is_word| match (line.side, is_word) {
        (Side::Old, false) => Style::Removed(token),
        (Side::Old, true) => Style::RemovedWord(token),
        (Side::New, false) => Style::Added(token),
        (Side::New, true) => Style::AddedWord(token),
        _ => Style::Token(token),
    };
    let mut rendered = rendered.with(style(Token::Plain, false), sign);
    for (text, token, is_word) in split_line(&line.text, &tokens, words) {
        rendered.push(style(token, is_word), text);
    }
    rendered
}

/// Returns the numbers of a hunk's first lines in the old and the new file.
fn parse_hunk_header(line: &str) -> Option<(u64, u64)> {
    let (old, rest) = line.strip_prefix("@@ -")?.split_once(" +")?;
    let (new, _) = rest.split_once(" @@")?;
    let start = |range: &str| range.split(',').next().and_then(|number| number.parse().ok());
    Some((start(old)?, start(new)?))
}

/// Returns an upper bound of the diff's line numbers.
fn max_line_number(diff: &str) -> u64 {
    let lines = u64::try_from(diff.lines().count()).unwrap_or(u64::MAX);
    let starts = diff.lines().filter_map(parse_hunk_header).map(|(old, new)| old.max(new)).max();
    starts.unwrap_or_default().saturating_add(lines)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::find_no_tokens;

    const DIFF: &str = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@\n one\n-two\n+TWO\n three\n\
                        @@ -90 +90,2 @@\n ninety\n+more\n\\ No newline at end of file\n";

    fn texts(diff: &str, names: FileNameDisplay) -> Vec<String> {
        number_lines(diff, names, &find_no_tokens).iter().map(StyledLine::to_text).collect()
    }

    #[test]
    fn lines_have_the_numbers_of_their_file() {
        let expected = [
            "  1  one",
            "  2 -two",
            "  2 +TWO",
            "  3  three",
            "  ⋮",
            " 90  ninety",
            " 91 +more",
            "    \\ No newline at end of file",
        ];
        assert_eq!(texts(DIFF, FileNameDisplay::OfSeveral), expected);
        let two = format!("{DIFF}{}", DIFF.replace("a/x b/x", "a/y b/y"));
        assert_eq!(texts(&two, FileNameDisplay::OfSeveral)[0], "x");
        assert_eq!(texts(DIFF, FileNameDisplay::All)[0], "x");
    }

    #[test]
    fn changed_words_are_marked_and_tokens_keep_their_meaning() {
        let lines = |side, text: &str| HunkLine { side, number: Some(7), text: text.to_owned() };
        let hunk =
            [lines(Side::Both, "fn f() {"), lines(Side::Old, "    one(1)"), lines(Side::New, "    one(2)")];
        let find = |path: &str, text: &str| {
            assert_eq!(path, "a.rs");
            let numbers = text.char_indices().filter(|(_, letter)| letter.is_ascii_digit());
            numbers
                .map(|(at, _)| (at..at + 1, Token::Number))
                .chain([(0..2, Token::Keyword)])
                .collect::<Vec<_>>()
        };
        let sorted = |path: &str, text: &str| {
            let mut tokens = find(path, text);
            tokens.sort_by_key(|(range, _)| range.start);
            tokens
        };
        let rendered = render_hunk(&hunk, 1, "a.rs", &sorted);
        let spans = |line: &StyledLine| {
            line.spans.iter().skip(1).map(|(style, text)| (*style, text.clone())).collect::<Vec<_>>()
        };
        let own = |style, text: &str| (style, text.to_owned());
        use Token::{Keyword, Number, Plain};
        assert_eq!(
            spans(&rendered[0]),
            [
                own(Style::Token(Plain), " "),
                own(Style::Token(Keyword), "fn"),
                own(Style::Token(Plain), " f() {")
            ]
        );
        assert_eq!(
            spans(&rendered[2]),
            [
                own(Style::Added(Plain), "+    one("),
                own(Style::AddedWord(Number), "2"),
                own(Style::Added(Plain), ")")
            ]
        );
        assert_eq!(spans(&rendered[1])[1], own(Style::RemovedWord(Number), "1"));
    }

    #[test]
    fn lines_have_colours() {
        let styles: Vec<Style> = DIFF.lines().map(|line| style_line(line).spans[0].0).collect();
        assert_eq!(
            &styles[..7],
            [
                Style::Strong,
                Style::Strong,
                Style::Strong,
                Style::Accent,
                Style::Plain,
                Style::Bad,
                Style::Good
            ]
        );
    }
}
