//! Unified diffs with colours, line numbers and counts.

use crate::{Style, StyledLine};

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

/// Numbers the lines of a unified diff: added and unchanged ones as in the new file, removed ones
/// as in the old. The headers of git are left out; a file's name stays if the diff has several.
#[must_use]
pub fn number_lines(diff: &str) -> Vec<StyledLine> {
    let has_several = diff.lines().filter(|line| line.starts_with("diff ")).count() > 1;
    number_files(diff, has_several)
}

/// The same as [`number_lines`] with the name of every file.
#[must_use]
pub fn number_named_lines(diff: &str) -> Vec<StyledLine> {
    number_files(diff, true)
}

fn number_files(diff: &str, has_names: bool) -> Vec<StyledLine> {
    let digits = widest_number(diff).to_string().len();
    let (mut old, mut new) = (0_u64, 0_u64);
    let mut in_hunk = false;
    let mut lines = Vec::new();
    for line in diff.lines() {
        if let Some((old_start, new_start)) = hunk_starts(line) {
            if in_hunk {
                lines.push(StyledLine::new(Style::Dim, format!("{:>digits$}", "⋮")));
            }
            (old, new, in_hunk) = (old_start, new_start, true);
            continue;
        }
        if line.starts_with("diff ") {
            in_hunk = false;
            if let Some((_, name)) = line.split_once(" b/").filter(|_| has_names) {
                lines.push(StyledLine::new(Style::Strong, name));
            }
            continue;
        }
        if !in_hunk {
            continue;
        }
        let (number, style) = match line.as_bytes().first() {
            Some(b'+') => (take_number(&mut new), Style::Good),
            Some(b'-') => (take_number(&mut old), Style::Bad),
            Some(b'\\') => (String::new(), Style::Dim),
            _ => {
                take_number(&mut old);
                (take_number(&mut new), Style::Plain)
            }
        };
        lines.push(StyledLine::new(Style::Dim, format!("{number:>digits$} ")).with(style, line));
    }
    lines
}

fn take_number(number: &mut u64) -> String {
    let text = number.to_string();
    *number += 1;
    text
}

/// Returns the numbers of a hunk's first lines in the old and the new file.
fn hunk_starts(line: &str) -> Option<(u64, u64)> {
    let (old, rest) = line.strip_prefix("@@ -")?.split_once(" +")?;
    let (new, _) = rest.split_once(" @@")?;
    let start = |range: &str| range.split(',').next().and_then(|number| number.parse().ok());
    Some((start(old)?, start(new)?))
}

/// Returns a number that no line's number passes.
fn widest_number(diff: &str) -> u64 {
    let lines = u64::try_from(diff.lines().count()).unwrap_or(u64::MAX);
    let starts = diff.lines().filter_map(hunk_starts).map(|(old, new)| old.max(new)).max();
    starts.unwrap_or_default().saturating_add(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIFF: &str = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@\n one\n-two\n+TWO\n three\n\
                        @@ -90 +90,2 @@\n ninety\n+more\n\\ No newline at end of file\n";

    #[test]
    fn lines_have_the_numbers_of_their_file() {
        let lines: Vec<String> = number_lines(DIFF).iter().map(StyledLine::to_text).collect();
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
        assert_eq!(lines, expected);
        let two = format!("{DIFF}{}", DIFF.replace("a/x b/x", "a/y b/y"));
        assert_eq!(number_lines(&two)[0].to_text(), "x");
        assert_eq!(number_named_lines(DIFF)[0].to_text(), "x");
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
