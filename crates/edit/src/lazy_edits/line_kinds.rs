//! Kinds of lines, told by the line alone: of what it is about, and what may stand beside it.

use crate::lines::split_indent;
use crate::lost_lines::is_distinctive;
use crate::placement::tokens::{is_similar, shared_at_ends};

/// Beginnings of lines that name what other files have.
const IMPORT_WORDS: [&str; 9] =
    ["import", "from", "use", "#include", "require", "require_relative", "using", "extern", "package"];

/// Returns true for a line that opens a block, in which what comes after it is.
pub(super) fn opens_block(line: &str) -> bool {
    line.trim_end().ends_with(['{', ':', '(', '[', '>'])
}

/// Returns true for a line that stands for others in the middle of a long comment.
pub(super) fn is_comment_remark(line: &str) -> bool {
    line.trim().strip_prefix('*').is_some_and(|rest| matches!(rest.trim(), "..." | "…"))
}

/// Returns true if a line is another version of the file's: alike, and about the same, or another
/// value of the same name.
pub(super) fn is_version(mine: &str, theirs: &str) -> bool {
    let is_same_value = || {
        let (key, other) = (key_of(mine), key_of(theirs));
        let sign = |line: &str, key: &str| {
            line.get(key.len()..).map(str::trim_start).and_then(|rest| rest.chars().next())
        };
        key == other
            && key.len() > 2
            && matches!(sign(mine, key), Some('=' | ':'))
            && sign(mine, key) == sign(theirs, other)
    };
    is_distinctive(mine)
        && is_distinctive(theirs)
        && (is_similar(mine, theirs) || is_same_value())
        && (key_of(mine) == key_of(theirs) || (!is_definition(mine) && shares_most(mine, theirs)))
}

/// Returns what a line is about: all before its first sign or colon, or the parameters of a name.
pub(super) fn key_of(line: &str) -> &str {
    let mut before = None;
    let end = line.char_indices().find(|(_, c)| {
        let named = before.is_some_and(|c: char| c.is_alphanumeric() || c == '_');
        before = Some(*c);
        matches!(c, '=' | ':' | '{' | '<' | '[' | ',') || (*c == '(' && named)
    });
    line.get(..end.map_or(line.len(), |(at, _)| at)).unwrap_or_default().trim()
}

/// Returns true for a line that begins a definition: with another name it is another one.
pub(super) fn is_definition(line: &str) -> bool {
    const WORDS: [&str; 19] = [
        "def",
        "fn",
        "func",
        "function",
        "class",
        "struct",
        "impl",
        "interface",
        "enum",
        "trait",
        "type",
        "public",
        "private",
        "protected",
        "static",
        "sub",
        "module",
        "fun",
        "async",
    ];
    line.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| WORDS.contains(&word))
}

/// Returns true if two lines share four fifths of the longer one at their ends.
fn shares_most(one: &str, other: &str) -> bool {
    5 * shared_at_ends(one, other) >= 4 * one.len().max(other.len())
}

pub(super) fn depth(line: &str) -> usize {
    split_indent(line).0.len()
}

/// Returns true for a remark that names nothing but imports and what stands above them.
pub(super) fn is_head_remark(line: &str) -> bool {
    const THINGS: [&str; 15] = [
        "import",
        "imports",
        "require",
        "requires",
        "license",
        "licence",
        "header",
        "package",
        "clause",
        "copyright",
        "pragma",
        "shebang",
        "includes",
        "uses",
        "namespace",
    ];
    const OTHERS: [&str; 22] = [
        "the",
        "and",
        "other",
        "existing",
        "unchanged",
        "same",
        "stay",
        "stays",
        "remain",
        "remains",
        "rest",
        "of",
        "as",
        "is",
        "before",
        "std",
        "all",
        "code",
        "are",
        "more",
        "remaining",
        "comment",
    ];
    let line = line.to_lowercase();
    let mut words = line.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).peekable();
    let mut names = 0;
    words.peek().is_some()
        && words.all(|word| {
            names += usize::from(THINGS.contains(&word));
            THINGS.contains(&word) || OTHERS.contains(&word)
        })
        && names > 0
}

/// Returns true for a line that may be a part of the imports or stand above them.
pub(super) fn is_head_part(line: &str) -> bool {
    let trimmed = line.trim();
    let is_entry = || {
        let names = |c: char| c.is_alphanumeric() || "_,.*/@-\"'{}; :<>$\\".contains(c);
        (line.starts_with([' ', '\t']) || trimmed.starts_with(['}', ')']))
            && trimmed.chars().all(|c| names(c) || c == ')')
    };
    trimmed.is_empty() || is_head_line(line) || is_import(line) || is_entry()
}

/// Returns true for a line that may stand above all code of a file.
pub(super) fn is_head_line(line: &str) -> bool {
    let line = line.trim();
    [
        "//",
        "/*",
        "*",
        "#",
        "--",
        "\"\"\"",
        "'use strict'",
        "\"use strict\"",
        "<?php",
        "package ",
        "namespace ",
        ";",
    ]
    .iter()
    .any(|start| line.starts_with(start))
}

pub(super) fn is_import(line: &str) -> bool {
    let line = line.trim_start().trim_start_matches("pub ");
    IMPORT_WORDS
        .iter()
        .any(|word| line.strip_prefix(word).is_some_and(|rest| rest.starts_with([' ', '(', '"', '<', '\''])))
        || line.contains("= require(")
}
