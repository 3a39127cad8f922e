//! Markdown split into blocks while it arrives.
//!
//! Blocks are as small as can be rendered apart: a paragraph, a heading, one item of a list, one
//! line of fenced code. A block is complete as soon as a line says so.

use std::sync::Arc;

/// A complete block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// The Markdown, without the indentation of its first line; for code the line itself.
    pub source: String,
    /// Columns by which the block is indented.
    pub indent: usize,
    /// The place of a line of code; `None` for other blocks.
    pub code: Option<CodeLine>,
    /// True if empty lines come before the block.
    pub has_gap: bool,
}

/// The place of a line of code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeLine {
    /// The language that the fence names; empty if it names none.
    pub language: Arc<str>,
    /// The number of lines before it within the fence.
    pub number: usize,
}

/// An open fence of code.
#[derive(Debug, Clone)]
struct Fence {
    marker: char,
    length: usize,
    indent: usize,
    language: Arc<str>,
    lines: usize,
}

/// Splits a text that arrives in pieces.
#[derive(Debug, Default, Clone)]
pub struct BlockSplitter {
    /// The complete lines of the open block.
    open: String,
    indent: usize,
    is_item: bool,
    has_gap: bool,
    /// The newest line, as far as it has arrived.
    partial: String,
    fence: Option<Fence>,
    /// The column at which the text of the newest list item begins.
    item_column: Option<usize>,
    has_emitted: bool,
}

impl BlockSplitter {
    /// Takes a piece of the text, and returns the blocks that it completes.
    pub fn push(&mut self, text: &str) -> Vec<Block> {
        let mut blocks = Vec::new();
        for part in text.split_inclusive('\n') {
            self.partial.push_str(part);
            if part.ends_with('\n') {
                let line = std::mem::take(&mut self.partial);
                self.take_line(line.trim_end_matches(['\n', '\r']), &mut blocks);
            }
        }
        blocks
    }

    /// Ends the text, and returns the last blocks.
    pub fn finish(&mut self) -> Vec<Block> {
        let mut blocks = Vec::new();
        let line = std::mem::take(&mut self.partial);
        if !line.is_empty() {
            self.take_line(&line, &mut blocks);
        }
        self.close_block(&mut blocks);
        *self = Self::default();
        blocks
    }

    /// Returns the text of the open block, as far as it has arrived, and its indentation. Code
    /// comes in whole lines, so that nothing of it is open.
    #[must_use]
    pub fn open_block_text(&self) -> (String, usize) {
        if self.fence.is_some() {
            return (String::new(), 0);
        }
        (format!("{}{}", self.open, self.partial), if self.open.is_empty() { 0 } else { self.indent })
    }

    /// Returns true if empty lines come before the open block.
    #[must_use]
    pub fn has_gap_before_open_block(&self) -> bool {
        self.has_gap && self.has_emitted
    }

    /// Splits a too tall open block at its last space, and returns the first part as complete.
    pub fn split_open_block(&mut self) -> Option<Block> {
        let (source, _) = self.open_block_text();
        let end = source.rfind(char::is_whitespace)?;
        let (head, rest) = (source.get(..end)?.to_owned(), source.get(end + 1..)?.to_owned());
        self.open = head;
        let mut blocks = Vec::new();
        self.close_block(&mut blocks);
        self.partial = rest;
        blocks.pop()
    }

    fn take_line(&mut self, line: &str, blocks: &mut Vec<Block>) {
        let text = line.trim_start_matches(' ');
        let indent = line.len() - text.len();
        if let Some(fence) = &mut self.fence {
            if is_fence_end(text, fence) {
                self.fence = None;
                self.has_gap = false;
            } else {
                let source = line.get(indent.min(fence.indent)..).unwrap_or_default().to_owned();
                let code = CodeLine { language: Arc::clone(&fence.language), number: fence.lines };
                fence.lines += 1;
                let block = Block { source, indent: fence.indent, code: Some(code), has_gap: false };
                self.push_block(block, blocks);
            }
            return;
        }
        if text.trim().is_empty() {
            self.close_block(blocks);
            self.has_gap = true;
            return;
        }
        let is_indented_code = self.open.is_empty() && self.item_column.is_none() && indent >= 4;
        if is_indented_code {
            let source = line.get(4..).unwrap_or_default().to_owned();
            let code = CodeLine { language: Arc::from(""), number: 0 };
            self.push_block(Block { source, indent: 0, code: Some(code), has_gap: false }, blocks);
            return;
        }
        if let Some((marker, length, language)) = fence_start(text) {
            self.close_block(blocks);
            self.fence = Some(Fence { marker, length, indent, language: Arc::from(language), lines: 0 });
            return;
        }
        let is_setext = !self.open.is_empty() && !self.is_item && is_setext_line(text);
        if is_setext {
            self.append_line(line);
            self.close_block(blocks);
        } else if is_heading(text) || is_rule(text) {
            self.close_block(blocks);
            self.begin_block(line, indent, false);
            self.close_block(blocks);
        } else if let Some(width) = self.item_marker(text) {
            self.close_block(blocks);
            self.begin_block(line, indent, true);
            self.item_column = Some(indent + width);
        } else if self.open.is_empty() {
            // Text below an item belongs to the item if it is indented as far.
            self.item_column = self.item_column.filter(|_| indent >= 2);
            let indent = self.item_column.map_or(indent, |column| column.min(indent));
            self.begin_block(line, indent, false);
        } else if text.starts_with('>') && !self.open.trim_start().starts_with('>') {
            self.close_block(blocks);
            self.begin_block(line, indent, false);
        } else {
            self.append_line(line);
        }
    }

    fn begin_block(&mut self, line: &str, indent: usize, is_item: bool) {
        (self.indent, self.is_item) = (indent, is_item);
        self.append_line(line);
    }

    fn append_line(&mut self, line: &str) {
        let spaces = line.len() - line.trim_start_matches(' ').len();
        self.open.push_str(line.get(spaces.min(self.indent)..).unwrap_or_default());
        self.open.push('\n');
    }

    fn close_block(&mut self, blocks: &mut Vec<Block>) {
        if !self.open.is_empty() {
            let source = std::mem::take(&mut self.open);
            let indent = std::mem::take(&mut self.indent);
            self.is_item = false;
            self.push_block(Block { source, indent, code: None, has_gap: false }, blocks);
        }
    }

    fn push_block(&mut self, block: Block, blocks: &mut Vec<Block>) {
        blocks.push(Block { has_gap: self.has_gap_before_open_block(), ..block });
        (self.has_gap, self.has_emitted) = (false, true);
    }

    /// Returns the columns of a list item's marker with its space.
    fn item_marker(&self, text: &str) -> Option<usize> {
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let (number, rest) = text.split_at_checked(digits)?;
        let marker = rest.chars().next()?;
        let after = rest.get(marker.len_utf8()..)?;
        let is_marker = match digits {
            0 => matches!(marker, '-' | '*' | '+'),
            // A year at the beginning of a line doesn't end a paragraph.
            1..=9 => matches!(marker, '.' | ')') && (self.open.is_empty() || self.is_item || number == "1"),
            _ => false,
        };
        (is_marker && (after.starts_with(' ') || after.is_empty())).then_some(digits + 2)
    }
}

/// Returns the marker of a fence, its length, and the language behind it.
fn fence_start(text: &str) -> Option<(char, usize, &str)> {
    let marker = text.chars().next().filter(|it| matches!(it, '`' | '~'))?;
    let length = text.chars().take_while(|it| *it == marker).count();
    let info = text.get(length..)?;
    let language = info.split([' ', ',', '{', '\t']).find(|word| !word.is_empty()).unwrap_or_default();
    (length >= 3 && !(marker == '`' && info.contains('`'))).then_some((marker, length, language))
}

fn is_fence_end(text: &str, fence: &Fence) -> bool {
    let text = text.trim_end();
    text.chars().all(|it| it == fence.marker) && text.len() >= fence.length
}

fn is_heading(text: &str) -> bool {
    let rest = text.trim_start_matches('#');
    (1..=6).contains(&(text.len() - rest.len())) && (rest.is_empty() || rest.starts_with(' '))
}

fn is_setext_line(text: &str) -> bool {
    let text = text.trim_end();
    text.chars().all(|it| it == '=') || text.chars().all(|it| it == '-')
}

fn is_rule(text: &str) -> bool {
    let mut characters = text.chars().filter(|it| !it.is_whitespace());
    let Some(marker) = characters.next().filter(|it| matches!(it, '-' | '*' | '_')) else { return false };
    let mut count = 1;
    characters.all(|it| {
        count += 1;
        it == marker
    }) && count >= 3
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Splits a text that arrives in pieces of `size` characters. Shows a block as its indentation,
    /// a mark and its source.
    fn split(text: &str, size: usize) -> Vec<String> {
        let mut splitter = BlockSplitter::default();
        let characters: Vec<char> = text.chars().collect();
        let mut blocks = Vec::new();
        for piece in characters.chunks(size) {
            blocks.extend(splitter.push(&piece.iter().collect::<String>()));
        }
        blocks.extend(splitter.finish());
        let show = |block: Block| {
            let kind = if block.code.is_some() { '$' } else { ':' };
            let gap = if block.has_gap { "^" } else { "" };
            format!("{gap}{}{kind}{}", block.indent, block.source.trim_end())
        };
        blocks.into_iter().map(show).collect()
    }

    #[track_caller]
    fn assert_split(text: &str, expected: &[&str]) {
        for size in [1, 3, 1000] {
            assert_eq!(split(text, size), expected, "in pieces of {size}");
        }
    }

    #[test]
    fn empty_lines_end_paragraphs() {
        assert_split("one\ntwo\n\nthree", &["0:one\ntwo", "^0:three"]);
        assert_split("\n\none\n\n\n\ntwo\n\n", &["0:one", "^0:two"]);
    }

    #[test]
    fn headings_and_rules_stand_alone() {
        assert_split("# A\ntext\n***\nmore", &["0:# A", "0:text", "0:***", "0:more"]);
        assert_split("A\n===\ntext", &["0:A\n===", "0:text"]);
    }

    #[test]
    fn items_are_blocks_of_their_own() {
        assert_split(
            "Do:\n- one\n  more\n- two\n  - deep\n\n  below two\n\nafter",
            &["0:Do:", "0:- one\n  more", "0:- two", "2:- deep", "^2:below two", "^0:after"],
        );
        assert_split("1. one\n2. two\nin\n2020. a year", &["0:1. one", "0:2. two\nin", "0:2020. a year"]);
        assert_split("born in\n2020. Then", &["0:born in\n2020. Then"]);
    }

    #[test]
    fn fenced_code_comes_in_lines() {
        assert_split(
            "See:\n```rust\nfn a() {\n\n}\n```\ndone",
            &["0:See:", "0$fn a() {", "0$", "0$}", "0:done"],
        );
        assert_split("- x\n  ```\n  code\n  ```\n", &["0:- x", "2$code"]);
        assert_split("~~~~\n~~~\n```\n~~~~\nend", &["0$~~~", "0$```", "0:end"]);
        assert_split("a ``` b", &["0:a ``` b"]);
    }

    #[test]
    fn a_tall_block_is_split_at_a_space() {
        let mut splitter = BlockSplitter::default();
        assert!(splitter.push("one two thr").is_empty());
        assert_eq!(splitter.split_open_block().unwrap().source, "one two");
        assert_eq!(splitter.open_block_text().0, "thr");
        assert_eq!(splitter.finish().len(), 1);
    }
}
