//! Parsing any text in any of the languages, within bounds.
//!
//! The grammars are C code that runs in this process on untrusted texts. A grammar is given whole
//! characters only, at most [`MAX_BYTES`] of text, and a bounded number of reads and parser steps.
//! The bounds count operations, not time, so that the same text always has the same result.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::ControlFlow;

use tree_sitter::{InputEdit, ParseOptions, ParseState, Parser, Point};

use crate::c_macros::blank_macros;
use crate::language::Language;
use crate::scanner_faults;

/// Maximum bytes of a text that is parsed. Hand-written source is far shorter.
pub const MAX_BYTES: usize = 8 << 20;
/// Maximum depth of a syntax tree. Code that walks trees may recurse to this depth.
pub const MAX_DEPTH: usize = 400;
/// Maximum bracket nesting of a text that is parsed. It is well above what [`MAX_DEPTH`] allows,
/// because brackets in strings and comments count too, and well below what makes a parser's error
/// recovery slow.
const MAX_BRACKET_DEPTH: usize = 1_000;
/// Maximum calls of the parser's progress callback (one per hundred parser steps): a fixed number,
/// and one more for each [`BYTES_PER_PROGRESS_CALL`] bytes. Ordinary source takes one call per
/// thirty bytes or more; a text that reaches the maximum makes the parser follow many readings at
/// once.
const BASE_PROGRESS_CALL_LIMIT: usize = 2_000;
const BYTES_PER_PROGRESS_CALL: usize = 4;
/// Bytes that the parser is given at once, except for the rest of a character.
const PARSER_CHUNK_BYTES: usize = 1024;
/// Maximum average number of reads of each chunk. Scanning ahead for a missing end again and again
/// is work that grows with the square of the length.
const MAX_READS_PER_CHUNK: usize = 40;

/// A reason why a text wasn't parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ParseError {
    /// The language's grammar isn't built in.
    NoGrammar,
    /// The text is longer than [`MAX_BYTES`].
    TooLong,
    /// The text's nodes or brackets are nested deeper than [`MAX_DEPTH`].
    TooDeep,
    /// Parsing would take too long, most likely because the text isn't in the language of its file
    /// name.
    TooMuchWork,
    /// The text has a construct that the grammar's C scanner handles unsafely.
    UnsafeForScanner,
}

/// The syntax tree of a text.
#[derive(Debug, Clone)]
pub struct Tree {
    language: Language,
    tree: tree_sitter::Tree,
}

impl Tree {
    /// Returns the language that the text was parsed as.
    #[must_use]
    pub fn language(&self) -> Language {
        self.language
    }

    /// Returns the root node.
    #[must_use]
    pub fn root(&self) -> tree_sitter::Node<'_> {
        self.tree.root_node()
    }

    /// Returns true if a part of the text isn't valid in the language.
    #[must_use]
    pub fn has_error(&self) -> bool {
        self.root().has_error()
    }
}

thread_local! {
    /// One parser for each language that a thread has parsed. A parser keeps its stacks from text
    /// to text, and nothing else.
    static PARSERS: RefCell<BTreeMap<Language, Parser>> = const { RefCell::new(BTreeMap::new()) };
}

/// Parses a text. The same text always has the same result; time is linear in its length, within
/// the bounds.
///
/// # Errors
/// [`ParseError`] if there is no grammar, or the text exceeds a bound.
pub fn parse(language: Language, text: &str) -> Result<Tree, ParseError> {
    let tree = parse_at_any_depth(language, text)?;
    check_depth(&tree.tree)?;
    Ok(tree)
}

/// Parses a text for a caller that bounds the depth itself.
///
/// # Errors
/// As [`parse`], except for the depth.
pub(crate) fn parse_at_any_depth(language: Language, text: &str) -> Result<Tree, ParseError> {
    check_bounds(language, text)?;
    let tree = parse_on_thread(language, &blank_macros(language, text), None)?;
    Ok(Tree { language, tree })
}

/// Parses a text that differs in one place from the text of an older tree; the unchanged parts are
/// reused.
///
/// # Errors
/// As [`parse`].
pub fn reparse(old: &Tree, before: &str, text: &str) -> Result<Tree, ParseError> {
    check_bounds(old.language, text)?;
    let (before, text) = (&*blank_macros(old.language, before), &*blank_macros(old.language, text));
    let head = common_prefix_len(before.as_bytes().iter(), text.as_bytes().iter());
    let room = before.len().min(text.len()) - head;
    let tail = common_prefix_len(before.as_bytes().iter().rev(), text.as_bytes().iter().rev()).min(room);
    let (old_end, new_end) = (before.len() - tail, text.len() - tail);
    let mut edited = old.tree.clone();
    edited.edit(&InputEdit {
        start_byte: head,
        old_end_byte: old_end,
        new_end_byte: new_end,
        start_position: point_at(before, head),
        old_end_position: point_at(before, old_end),
        new_end_position: point_at(text, new_end),
    });
    let tree = parse_on_thread(old.language, text, Some(&edited))?;
    check_depth(&tree)?;
    Ok(Tree { language: old.language, tree })
}

fn common_prefix_len<'a>(one: impl Iterator<Item = &'a u8>, other: impl Iterator<Item = &'a u8>) -> usize {
    one.zip(other).take_while(|(one, other)| one == other).count()
}

fn point_at(text: &str, at: usize) -> Point {
    let before = text.as_bytes().get(..at).unwrap_or_default();
    let row = before.iter().filter(|byte| **byte == b'\n').count();
    let column = before.iter().rev().take_while(|byte| **byte != b'\n').count();
    Point { row, column }
}

/// Checks that a text is within the bounds for its language's grammar.
fn check_bounds(language: Language, text: &str) -> Result<(), ParseError> {
    if text.len() > MAX_BYTES {
        return Err(ParseError::TooLong);
    }
    // Most texts have too few brackets to be too deep; only few languages' scanners need the exact
    // depth.
    let most = bracket_depth_bound(text);
    let exact = most > MAX_BRACKET_DEPTH || matches!(language, Language::Bash | Language::Ruby);
    let depth = if exact { max_bracket_depth(text) } else { most };
    if depth > MAX_BRACKET_DEPTH {
        return Err(ParseError::TooDeep);
    }
    if scanner_faults::is_safe_for_scanner(language, text, depth) {
        Ok(())
    } else {
        Err(ParseError::UnsafeForScanner)
    }
}

/// Returns an upper bound of the bracket depth: in each block of bytes all opening brackets count
/// as if they came first. Many times as fast as [`max_bracket_depth`].
fn bracket_depth_bound(text: &str) -> usize {
    const BLOCK_BYTES: usize = 4 << 10;
    let (mut depth, mut most) = (0_usize, 0);
    for block in text.as_bytes().chunks(BLOCK_BYTES) {
        let opening = block.iter().filter(|byte| matches!(byte, b'(' | b'[' | b'{')).count();
        let closing = block.iter().filter(|byte| matches!(byte, b')' | b']' | b'}')).count();
        most = most.max(depth + opening);
        // Where all brackets close before any opens, the opened ones remain.
        depth = (depth + opening).saturating_sub(closing).max(opening);
    }
    most
}

/// Returns the maximum bracket depth, whatever the kinds of brackets.
fn max_bracket_depth(text: &str) -> usize {
    let (mut depth, mut max) = (0_usize, 0);
    for byte in text.bytes() {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => continue,
        }
        max = max.max(depth);
    }
    max
}

fn parse_on_thread(
    language: Language,
    text: &str,
    old: Option<&tree_sitter::Tree>,
) -> Result<tree_sitter::Tree, ParseError> {
    let grammar = language.grammar().ok_or(ParseError::NoGrammar)?;
    PARSERS.with(|parsers| {
        // The parser calls back only into code that doesn't borrow the parsers.
        let mut parsers = parsers.try_borrow_mut().map_err(|_| ParseError::TooMuchWork)?;
        let parser = parsers.entry(language).or_default();
        if parser.language().is_none() {
            parser.set_language(&grammar()).map_err(|_| ParseError::NoGrammar)?;
        }
        let tree = parse_within_bounds(parser, text, old);
        if tree.is_err() {
            parser.reset();
        }
        tree
    })
}

/// Parses with no more work than a text of this length is allowed.
fn parse_within_bounds(
    parser: &mut Parser,
    text: &str,
    old: Option<&tree_sitter::Tree>,
) -> Result<tree_sitter::Tree, ParseError> {
    let most = BASE_PROGRESS_CALL_LIMIT + text.len() / BYTES_PER_PROGRESS_CALL;
    let mut looks = 0;
    let mut look = |_: &ParseState| {
        looks += 1;
        if looks > most { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let options = ParseOptions::new().progress_callback(&mut look);
    let mut reads = MAX_READS_PER_CHUNK * (2 + text.len() / PARSER_CHUNK_BYTES);
    let mut ended = false;
    let mut read = |at: usize, _: Point| {
        reads = reads.saturating_sub(1);
        // When the reads are used up, the text seems to end with a line break; the tree is then
        // discarded.
        match (reads, std::mem::replace(&mut ended, reads == 0)) {
            (0, false) => &b"\n"[..],
            (0, true) => &[],
            _ => chunk_at(text, at),
        }
    };
    let tree = parser.parse_with_options(&mut read, old, Some(options));
    tree.filter(|_| reads > 0).ok_or(ParseError::TooMuchWork)
}

/// Returns the bytes from `at` that the parser is given at once. Never a part of a character: the
/// parser would ask for the rest and use it without checking that there is any.
fn chunk_at(text: &str, at: usize) -> &[u8] {
    let end = text.ceil_char_boundary(at - at % PARSER_CHUNK_BYTES + PARSER_CHUNK_BYTES);
    text.as_bytes().get(at..end).unwrap_or_default()
}

/// Checks that the tree is no deeper than [`MAX_DEPTH`].
fn check_depth(tree: &tree_sitter::Tree) -> Result<(), ParseError> {
    let mut cursor = tree.walk();
    let mut depth = 0_usize;
    loop {
        if cursor.goto_first_child() {
            depth += 1;
            if depth > MAX_DEPTH {
                return Err(ParseError::TooDeep);
            }
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return Ok(());
            }
            depth -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_depth_bound_is_never_too_low() {
        let mut random = 1_u32;
        for round in 0..300_u32 {
            let length = round as usize * 97;
            let text: String = (0..length)
                .map(|_| {
                    random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    // More brackets open in some rounds, and more close in others.
                    let open = 20 + round % 7 * 4;
                    match random >> 25 {
                        sign if sign < open => '(',
                        sign if sign < 64 => ')',
                        _ => 'a',
                    }
                })
                .collect();
            assert!(bracket_depth_bound(&text) >= max_bracket_depth(&text), "round {round}");
        }
        // As deep as one of its blocks is wide, however long it is.
        let calls = "call(first[1], {second})\n".repeat(100_000);
        assert_eq!(max_bracket_depth(&calls), 2);
        assert!(bracket_depth_bound(&calls) <= MAX_BRACKET_DEPTH, "{}", bracket_depth_bound(&calls));
    }
}
