//! Texts that the C scanners of grammars handle unsafely.
//!
//! Most of a grammar is a table, but strings, here-documents and indentation are read by
//! hand-written C code, the scanner. Each fault listed here was found by reading these scanners or
//! by running them on generated and damaged texts under a sanitizer; the versions are those of the
//! workspace's manifest. A text that may reach a fault isn't parsed; it is edited as lines.
//! Hand-written texts are far from all of them.
//!
//! - Bash 0.25.1 looks up the character after a `{` in a table that ends at 255, and keeps the
//!   delimiters of here-documents in a buffer of 1024 bytes.
//! - Ruby 0.23.1 keeps those delimiters and the open strings in such a buffer, and writes up to two
//!   bytes beyond it; the length of a delimiter is kept in one byte, and a longer one fails an
//!   assertion, which ends the process.
//! - Swift 0.7.4 reads beyond the end of `#else` and the like where the text ends right after it.
//! - YAML 0.7.2 writes beyond such a buffer where blocks are nested more than 253 deep.
//! - Some of them take a zero byte for the end of the text.

use crate::language::Language;

/// Maximum bytes of a here-document's delimiter.
const MAX_DELIMITER_BYTES: usize = 64;
/// Maximum bytes of the delimiters of all here-documents of a text, with the scanner's bookkeeping.
const MAX_TOTAL_DELIMITER_BYTES: usize = 600;
/// Maximum bracket nesting of a text with here-documents: each bracket may hold a string that is
/// kept too.
const MAX_HEREDOC_BRACKET_DEPTH: usize = 60;
/// Maximum indentation of a line of YAML, and of signs in it that open a block.
const MAX_INDENT_COLUMNS: usize = 100;

/// Returns true if the language's scanner can be given the text. `deepest` is its bracket depth:
/// exact for Bash and Ruby, an upper bound for other languages.
pub(crate) fn is_safe_for_scanner(language: Language, text: &str, deepest: usize) -> bool {
    if text.contains('\0') {
        return false;
    }
    match language {
        Language::Bash => !has_wide_character_after_brace(text) && has_short_delimiters(text, deepest, "-"),
        Language::Ruby => has_short_delimiters(text, deepest, "-~"),
        Language::Swift => {
            !["#if", "#elseif", "#else", "#endif"].iter().any(|directive| text.ends_with(directive))
        }
        Language::Yaml => text.lines().all(is_shallow_yaml_line),
        _ => true,
    }
}

/// Returns true if a character beyond the table of bytes may be looked up in it.
fn has_wide_character_after_brace(text: &str) -> bool {
    text.match_indices('{').any(|(at, _)| {
        let rest = text.get(at + 1..).unwrap_or_default();
        rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.')
            .chars()
            .next()
            .is_some_and(|c| u32::from(c) > 0xff)
    })
}

/// Returns true if the delimiters of here-documents are short and few. `signs` may stand before
/// them.
fn has_short_delimiters(text: &str, deepest: usize, signs: &str) -> bool {
    let mut total = 0;
    for (at, _) in text.match_indices("<<") {
        let rest = text.get(at + 2..).unwrap_or_default().trim_start_matches(|c: char| signs.contains(c));
        let name = match rest.chars().next() {
            Some(quote @ ('"' | '\'' | '`')) => {
                let inner = rest.get(1..).unwrap_or_default();
                inner.find([quote, '\n']).unwrap_or(inner.len())
            }
            Some('\\') => rest.find(char::is_whitespace).unwrap_or(rest.len()),
            Some(first) if first.is_alphanumeric() || first == '_' => {
                rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len())
            }
            _ => continue,
        };
        total += name + 4;
        if name > MAX_DELIMITER_BYTES
            || total > MAX_TOTAL_DELIMITER_BYTES
            || deepest > MAX_HEREDOC_BRACKET_DEPTH
        {
            return false;
        }
    }
    true
}

/// Returns true if a line opens few blocks.
fn is_shallow_yaml_line(line: &str) -> bool {
    let blank = |c: char| matches!(c, ' ' | '\t' | '-' | '?' | ':');
    let indent = line.len() - line.trim_start_matches(blank).len();
    // Each block is indented at least a column more than its parent, except lists, which may have
    // the same indentation.
    indent <= MAX_INDENT_COLUMNS
        && line.matches([':', '?', '-']).count() <= MAX_INDENT_COLUMNS * 20
        && nested_block_signs(line) <= MAX_INDENT_COLUMNS
}

/// Counts the signs that open nested blocks on the same line.
fn nested_block_signs(line: &str) -> usize {
    line.split_ascii_whitespace()
        .take_while(|word| matches!(*word, "-" | "?" | ":") || word.starts_with(['!', '&']))
        .count()
}
