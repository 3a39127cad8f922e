//! Markdown rendered as lines for a terminal.

mod blocks;
mod code;
mod inline;
mod marker_display;
mod table;

pub use blocks::{Block, BlockSplitter, CodeLine};
use code::{MIN_COLUMNS, indent_line, wrap_code_line};
pub use marker_display::MarkerDisplay;

use crate::wrap::wrap_line;
use crate::{Style, StyledLine};

/// Renders a text in lines of at most `width` columns.
#[must_use]
pub fn render(source: &str, width: usize, marks: MarkerDisplay) -> Vec<StyledLine> {
    let mut splitter = BlockSplitter::default();
    let mut blocks = splitter.push(source);
    blocks.extend(splitter.finish());
    let mut lines = Vec::new();
    for block in blocks {
        if block.has_gap {
            lines.push(StyledLine::default());
        }
        lines.extend(render_block(&block, width, marks));
    }
    lines
}

/// Renders one block, without the empty line before it.
#[must_use]
pub fn render_block(block: &Block, width: usize, marks: MarkerDisplay) -> Vec<StyledLine> {
    let indent = block.indent.min(width.saturating_sub(MIN_COLUMNS));
    let room = width.saturating_sub(indent);
    let lines = if block.code.is_some() {
        wrap_code_line(&StyledLine::new(Style::Code, &block.source), room)
    } else {
        let lines = inline::render_elements(&block.source, room, marks);
        // A link definition renders to nothing, and is still worth reading.
        if lines.is_empty() {
            wrap_line(&StyledLine::new(Style::Plain, block.source.trim_end()), room, 0)
        } else {
            lines
        }
    };
    lines.into_iter().map(|line| indent_line(line, indent)).collect()
}

/// Renders a block that is a line of code in the styles of its tokens.
#[must_use]
pub fn render_code_line(line: &StyledLine, indent: usize, width: usize) -> Vec<StyledLine> {
    let indent = indent.min(width.saturating_sub(MIN_COLUMNS));
    let lines = wrap_code_line(line, width.saturating_sub(indent));
    lines.into_iter().map(|line| indent_line(line, indent)).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::wrap::line_width;

    fn texts(source: &str, width: usize) -> Vec<String> {
        render(source, width, MarkerDisplay::Dropped).iter().map(StyledLine::to_text).collect()
    }

    #[test]
    fn elements_are_rendered() {
        let source = "# Title\nSome *words* and `code` of\n**one** [page](https://a.example/b).\n\n\
                      1. first\n2. second item that is long\n   - deep\n\n> quoted words\n> go on\n\n\
                      ```sh\nmake  test\n```\nEnd <https://a.example>.";
        let expected = [
            "Title",
            "Some words and code of one",
            "page (https://a.example/b).",
            "",
            "1. first",
            "2. second item that is long",
            "   • deep",
            "",
            "│ quoted words go on",
            "",
            "  make  test",
            "End https://a.example.",
        ];
        assert_eq!(texts(source, 30), expected);
    }

    #[test]
    fn words_of_items_and_quotes_stay_behind_their_marks() {
        assert_eq!(texts("- one two three four", 12), ["• one two", "  three four"]);
        assert_eq!(texts("> one two three", 10), ["│ one two", "│ three"]);
        assert_eq!(texts("- [x] done\n- [ ] open", 20), ["• [x] done", "• [ ] open"]);
    }

    #[test]
    fn styles_have_their_meanings_and_marks_may_stay() {
        let lines = render("## A `b` **c** *d*", 40, MarkerDisplay::Dropped);
        let expected =
            [(Style::Strong, "A "), (Style::Code, "b"), (Style::Strong, " c "), (Style::Emphasis, "d")];
        let expected = expected.map(|(style, text)| (style, text.to_owned()));
        assert_eq!(lines[0].spans, expected);
        let plain = render("## A `b` **c** *d*", 40, MarkerDisplay::Kept);
        assert_eq!(plain[0].to_text(), "## A `b` **c** *d*");
    }

    #[test]
    fn tables_are_aligned_within_the_width() {
        let source = "| name | what it does |\n|:--|--:|\n| a | one |\n| long name | two three four |\n";
        let expected = [
            "name      │   what it does",
            "──────────┼───────────────",
            "a         │            one",
            "long name │ two three four",
        ];
        assert_eq!(texts(source, 40), expected);
        let narrow = texts(source, 20);
        assert!(narrow.iter().all(|line| crate::wrap::text_width(line) <= 20), "{narrow:#?}");
        assert_eq!(narrow.len(), 7, "{narrow:#?}");
    }

    #[test]
    fn references_to_characters_command_nothing() {
        let source = "&#27;]0;title&#7; &#x9b;2J &#x202e;a &lt;b&gt; [c](http://d/&#27;e)";
        assert_eq!(texts(source, 60), ["]0;title 2J a <b> c (http://d/e)"]);
    }

    #[test]
    fn a_link_definition_is_still_shown() {
        assert_eq!(texts("[a]: https://a.example", 40), ["[a]: https://a.example"]);
    }

    /// Words with marks around some of them, as Markdown elements.
    fn element() -> impl Strategy<Value = String> {
        let word = "[a-zA-Z0-9漢]{1,14}";
        let marked = (word, 0..5_u8).prop_map(|(word, mark)| match mark {
            0 => format!("**{word}**"),
            1 => format!("*{word}*"),
            2 => format!("`{word}`"),
            3 => format!("[{word}](http://{word})"),
            _ => word,
        });
        let words = prop::collection::vec(marked, 1..12).prop_map(|words| words.join(" "));
        (words, 0..6_u8).prop_map(|(words, kind)| match kind {
            0 => format!("# {words}"),
            1 => format!("- {words}\n  - {words}"),
            2 => format!("> {words}"),
            3 => format!("```\n{words}\n```"),
            4 => format!("| a | b |\n|---|---|\n| {words} | {words} |"),
            _ => words,
        })
    }

    proptest! {
        #[test]
        fn all_words_are_kept_and_no_line_is_wider(elements in prop::collection::vec(element(), 1..6), width in 8_usize..90) {
            let source = elements.join("\n\n");
            let lines = render(&source, width, MarkerDisplay::Dropped);
            for line in &lines {
                prop_assert!(line_width(line) <= width, "{line:?} in {width}");
            }
            let count = |text: &str, letter: char| text.chars().filter(|it| *it == letter).count();
            let shown: String = lines.iter().map(StyledLine::to_text).collect();
            // Tables and broken words move letters apart, so that letters are counted.
            for letter in ('a'..='z').chain('A'..='Z').chain('0'..='9').chain(['漢']) {
                prop_assert_eq!(count(&shown, letter), count(&source, letter), "{} of\n{}\nin\n{}", letter, source, shown);
            }
        }

        #[test]
        fn any_text_is_rendered_within_the_width(source in "[ \\PC\n*_`#>|\\-\\[\\]]{0,200}", width in 8_usize..60) {
            for line in render(&source, width, MarkerDisplay::Kept) {
                prop_assert!(line_width(&line) <= width, "{line:?} in {width}");
            }
        }
    }
}
