//! What the grammars' own code isn't trusted with.
//!
//! Most of a grammar is a table, but strings, here-documents and indentation are read by C code of its own, the scanner. Each
//! fault here was found by reading these scanners or by running them on generated and damaged texts under a sanitizer;
//! the versions are those of the workspace's manifest. A text that may reach one isn't parsed at all: it is edited as
//! lines. Texts that people write are far from all of them.
//!
//! - Bash 0.25.1 looks the character after a `{` up in a table that ends at 255, and keeps the names that end here-documents in a
//!   buffer of 1024 bytes.
//! - Ruby 0.23.1 keeps those names and the strings it is in in such a buffer, and writes beyond it by up to two bytes; the length of
//!   a name is kept in one byte, and a longer one ends the process by a failed assertion.
//! - Swift 0.7.4 reads beyond the end of `#else` and its like where the text ends right after it.
//! - YAML 0.7.2 writes beyond such a buffer where blocks lie in one another more than 253 deep.
//! - A zero byte is the end of the text to some of them and isn't to others.

use crate::language::Language;

/// Bytes of a name that ends a here-document.
const MAX_NAME: usize = 64;
/// Bytes of the names of all here-documents of a text, with what is kept for each.
const MAX_NAMES: usize = 600;
/// Brackets in one another in a text with here-documents: each may have a string in it that is kept, too.
const MAX_BRACKETS: usize = 60;
/// Bytes that open a line of YAML, and signs in it that open a block.
const MAX_INDENT: usize = 100;

/// Whether the language's scanner may be given the text. `deepest` is how deep brackets lie in one another in it; of other languages than Bash and Ruby, at most.
pub(crate) fn is_trusted(language: Language, text: &str, deepest: usize) -> bool {
    if text.contains('\0') {
        return false;
    }
    match language {
        Language::Bash => !wide_after_brace(text) && names(text, deepest, "-"),
        Language::Ruby => names(text, deepest, "-~"),
        Language::Swift => {
            !["#if", "#elseif", "#else", "#endif"].iter().any(|directive| text.ends_with(directive))
        }
        Language::Yaml => text.lines().all(is_flat),
        _ => true,
    }
}

/// Whether a character that isn't in a table of bytes may be looked up in one.
fn wide_after_brace(text: &str) -> bool {
    text.match_indices('{').any(|(at, _)| {
        let rest = text.get(at + 1..).unwrap_or_default();
        rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.')
            .chars()
            .next()
            .is_some_and(|c| u32::from(c) > 0xff)
    })
}

/// Whether the names that end here-documents are short and few. `signs` may stand before them.
fn names(text: &str, deepest: usize, signs: &str) -> bool {
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
        if name > MAX_NAME || total > MAX_NAMES || deepest > MAX_BRACKETS {
            return false;
        }
    }
    true
}

/// Whether a line opens few blocks.
fn is_flat(line: &str) -> bool {
    let blank = |c: char| matches!(c, ' ' | '\t' | '-' | '?' | ':');
    let indent = line.len() - line.trim_start_matches(blank).len();
    // Every block lies a column further in than what it is in, but for lists, which may lie as far in as it.
    indent <= MAX_INDENT
        && line.matches([':', '?', '-']).count() <= MAX_INDENT * 20
        && compact(line) <= MAX_INDENT
}

/// Signs that open a block in a block of the same line.
fn compact(line: &str) -> usize {
    line.split_ascii_whitespace()
        .take_while(|word| matches!(*word, "-" | "?" | ":") || word.starts_with(['!', '&']))
        .count()
}
