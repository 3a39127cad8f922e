//! Widths in columns, and lines broken between words.

use unicode_width::UnicodeWidthChar as _;

use crate::{Style, StyledLine};

/// Columns that a tab takes.
const TAB_COLUMNS: usize = 4;
/// Minimum columns that indented text gets; deeper indentation is cut.
const MIN_TEXT_COLUMNS: usize = 8;
/// Asks for the emoji form of the character before it, which is two columns wide.
const EMOJI_SELECTOR: char = '\u{fe0f}';

/// Returns the columns that a character takes; never fewer than terminals use.
#[must_use]
pub fn char_width(character: char) -> usize {
    match character {
        '\t' => TAB_COLUMNS,
        EMOJI_SELECTOR => 1,
        other => other.width().unwrap_or_default(),
    }
}

/// Returns the columns that a text takes.
#[must_use]
pub fn text_width(text: &str) -> usize {
    text.chars().map(char_width).sum()
}

/// Returns the columns that a line takes.
#[must_use]
pub fn line_width(line: &StyledLine) -> usize {
    line.spans.iter().map(|(_, text)| text_width(text)).sum()
}

/// Breaks a line between words, so that no line is wider than `width`. Words that are wider than a
/// line are broken. Lines after the first begin with `indent` spaces. Line feeds end lines, and
/// escape sequences of colours take no columns.
#[must_use]
pub fn wrap_line(line: &StyledLine, width: usize, indent: usize) -> Vec<StyledLine> {
    let width = width.max(1);
    let indent = indent.min(width.saturating_sub(MIN_TEXT_COLUMNS));
    let mut wrapper = LineWrapper { width, indent, ..LineWrapper::default() };
    for (style, text) in &line.spans {
        for character in text.chars() {
            wrapper.push(*style, character);
        }
    }
    wrapper.finish()
}

/// Wraps each line of a text with lists, such as a help. The further lines of an entry of a list
/// begin below its text, and those of another indented line a little to the right.
#[must_use]
pub fn wrap_entries(text: &str, columns: usize) -> String {
    let wrap = |line: &str| {
        let lines = wrap_line(&StyledLine::default().with_text(line), columns, hanging_indent(line, columns));
        lines.iter().map(StyledLine::to_text).collect::<Vec<_>>().join("\n")
    };
    text.lines().map(wrap).collect::<Vec<_>>().join("\n")
}

/// Returns a line without control characters. Those would move the cursor, such as tabs, or command
/// the terminal, wherever they come from.
#[must_use]
pub fn clean_line(line: &StyledLine) -> StyledLine {
    let mut clean = StyledLine::default();
    for (style, text) in &line.spans {
        for character in text.chars() {
            match character {
                '\t' => clean.push(*style, &" ".repeat(TAB_COLUMNS)),
                '\n' => clean.push(*style, " "),
                control if control.is_control() => {}
                other => clean.push(*style, other.encode_utf8(&mut [0; 4])),
            }
        }
    }
    clean
}

/// Cuts a line to a width; a cut line ends in `…`.
#[must_use]
pub fn cut_line(line: &StyledLine, width: usize) -> StyledLine {
    if line_width(line) <= width {
        return line.clone();
    }
    let mut cut = StyledLine::default();
    let mut room = width.saturating_sub(1);
    for (style, text) in &line.spans {
        for character in text.chars() {
            let Some(rest) = room.checked_sub(char_width(character)) else {
                if width > 0 {
                    cut.push(*style, "…");
                }
                return cut;
            };
            room = rest;
            cut.push(*style, character.encode_utf8(&mut [0; 4]));
        }
    }
    cut
}

/// Returns the number of leading spaces of a line.
pub(crate) fn leading_spaces(line: &StyledLine) -> usize {
    line.spans.iter().flat_map(|(_, text)| text.chars()).take_while(|character| *character == ' ').count()
}

/// Builds lines from words, one character after the other.
#[derive(Default)]
struct LineWrapper {
    width: usize,
    indent: usize,
    lines: Vec<StyledLine>,
    line: StyledLine,
    column: usize,
    /// Spaces that come before the next word, unless it begins a line.
    spaces: StyledLine,
    word: Vec<(Style, char, usize)>,
    word_width: usize,
    /// True within an escape sequence.
    is_escaped: bool,
}

impl LineWrapper {
    fn push(&mut self, style: Style, character: char) {
        match character {
            '\u{1b}' => {
                self.is_escaped = true;
                self.word.push((style, character, 0));
            }
            other if self.is_escaped => {
                self.is_escaped = !other.is_ascii_alphabetic();
                self.word.push((style, other, 0));
            }
            '\n' => {
                self.place_word();
                self.end_line(0);
            }
            ' ' | '\t' => {
                self.place_word();
                for _ in 0..char_width(character) {
                    self.spaces.push(style, " ");
                }
            }
            other => {
                let columns = char_width(other);
                self.word.push((style, other, columns));
                self.word_width += columns;
            }
        }
    }

    /// Returns true if the line has nothing but its indentation.
    fn is_at_start(&self) -> bool {
        self.column <= if self.lines.is_empty() { 0 } else { self.indent }
    }

    fn place_word(&mut self) {
        if self.word.is_empty() {
            return;
        }
        let spaces = line_width(&self.spaces);
        if self.column + spaces + self.word_width > self.width {
            // Spaces at the beginning of the text are indentation, and not lost.
            let leading = self.column == 0 && self.lines.is_empty();
            if leading && spaces + MIN_TEXT_COLUMNS <= self.width {
                self.place_spaces();
            } else if !self.is_at_start() {
                self.end_line(self.indent);
            }
        } else {
            self.place_spaces();
        }
        self.spaces = StyledLine::default();
        for (style, character, columns) in std::mem::take(&mut self.word) {
            if self.column + columns > self.width && !self.is_at_start() {
                self.end_line(self.indent);
            }
            self.line.push(style, character.encode_utf8(&mut [0; 4]));
            self.column += columns;
        }
        self.word_width = 0;
    }

    fn place_spaces(&mut self) {
        for (style, text) in std::mem::take(&mut self.spaces).spans {
            self.column += text.len();
            self.line.push(style, &text);
        }
    }

    fn end_line(&mut self, indent: usize) {
        self.lines.push(std::mem::take(&mut self.line));
        self.spaces = StyledLine::default();
        self.column = indent;
        self.line.push(Style::Plain, &" ".repeat(indent));
    }

    fn finish(mut self) -> Vec<StyledLine> {
        self.place_word();
        self.lines.push(self.line);
        self.lines
    }
}

/// Returns the columns that further lines of an entry begin with.
fn hanging_indent(line: &str, columns: usize) -> usize {
    let text = line.trim_start();
    let leading = line.len() - text.len();
    if leading == 0 {
        return 0;
    }
    let term = text.find("  ").map(|end| text.len() - text[end..].trim_start().len());
    let column = term.map(|term| leading + text.get(..term).map_or(term, |term| term.chars().count()));
    column.filter(|column| *column <= columns / 2).unwrap_or(leading + 2)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn wrap(text: &str, width: usize, indent: usize) -> Vec<String> {
        let line = StyledLine::new(Style::Plain, text);
        wrap_line(&line, width, indent).iter().map(StyledLine::to_text).collect()
    }

    #[test]
    fn lines_break_between_words() {
        assert_eq!(wrap("one two three", 8, 0), ["one two", "three"]);
        assert_eq!(wrap("  one two three four", 16, 4), ["  one two three", "    four"]);
        assert_eq!(wrap("one  two", 20, 0), ["one  two"], "spaces that fit are kept");
        assert_eq!(wrap("a\nb", 20, 0), ["a", "b"]);
        assert_eq!(wrap("", 20, 0), [""]);
        assert_eq!(wrap("漢字 漢字", 5, 0), ["漢字", "漢字"]);
    }

    #[test]
    fn a_word_wider_than_the_line_is_broken() {
        assert_eq!(wrap("ab abcdefgh", 4, 0), ["ab", "abcd", "efgh"]);
    }

    #[test]
    fn a_word_in_two_styles_stays_together() {
        let line = StyledLine::new(Style::Plain, "say ").with(Style::Strong, "hel").with_text("lo now");
        let lines: Vec<String> = wrap_line(&line, 8, 0).iter().map(StyledLine::to_text).collect();
        assert_eq!(lines, ["say", "hello", "now"]);
    }

    #[test]
    fn colours_take_no_columns() {
        let red = crate::Paint::COLORED.red("one");
        assert_eq!(wrap(&format!("{red} two three"), 7, 0), [format!("{red} two"), "three".to_owned()]);
    }

    #[test]
    fn cut_lines_say_so() {
        let line = StyledLine::new(Style::Plain, "one two");
        assert_eq!(cut_line(&line, 4).to_text(), "one…");
        assert_eq!(cut_line(&line, 7).to_text(), "one two");
        assert_eq!(cut_line(&line, 0).to_text(), "");
    }

    proptest! {
        #[test]
        fn no_line_is_wider_and_no_word_is_lost(text in "[ \\PC]{0,80}", width in 2usize..40, indent in 0usize..8) {
            let lines = wrap(&text, width, indent);
            for line in &lines {
                prop_assert!(text_width(line) <= width, "{line:?}");
            }
            let words = |text: &str| text.chars().filter(|it| !it.is_whitespace()).collect::<String>();
            prop_assert_eq!(words(&lines.concat()), words(&text));
        }
    }

    #[test]
    fn entries_are_wrapped_below_their_text() {
        let text = "Exit codes:\n    0  verified: at least one check ran, all passed\n  130  interrupted";
        assert_eq!(
            wrap_entries(text, 34),
            "Exit codes:\n    0  verified: at least one\n       check ran, all passed\n  130  interrupted"
        );
        let long = "  jm run --check 'make test' --model openai/gpt-5  a term of more than half the width";
        assert_eq!(
            wrap_entries(long, 40),
            "  jm run --check 'make test' --model\n    openai/gpt-5  a term of more than\n    half the width"
        );
        assert_eq!(wrap_entries("no indentation\n\nis kept", 10), "no\nindentatio\nn\n\nis kept");
    }
}
