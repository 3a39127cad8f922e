//! Doc comments of symbols: their positions, and their first sentences without comment signs.

use std::borrow::Cow;
use std::ops::Range;

use tree_sitter::Node;

use crate::language::Language;
use crate::symbol::Symbol;
use crate::walk::LeadingNode;

/// Maximum bytes of a sentence, which is shown on a line or two.
const MAX_SENTENCE_BYTES: usize = 240;
/// Maximum bytes of comments that are searched for the sentence.
const MAX_SEARCHED_BYTES: usize = 4096;

/// Returns the first sentence of the comments before a definition, or of Python's docstring.
pub(crate) fn doc_summary(
    language: Language,
    before: &[LeadingNode],
    body: Option<Node<'_>>,
    text: &str,
) -> String {
    let inside = (language == Language::Python).then(|| find_docstring(body?, text)).flatten();
    if let Some(inside) = inside {
        return first_sentence(inside);
    }
    let comments = || before.iter().filter(|leading| leading.comment);
    let written = |leading: &LeadingNode| text.get(leading.start..leading.end).unwrap_or_default();
    // If one of several comments is a doc comment, it alone counts.
    if let Some(doc) = comments().rfind(|leading| written(leading).starts_with("/**")) {
        return first_sentence(written(doc));
    }
    match (comments().next(), comments().next_back()) {
        (Some(first), Some(last)) => {
            let whole = text.get(first.start..last.end).unwrap_or_default();
            first_sentence(whole.get(..whole.floor_char_boundary(MAX_SEARCHED_BYTES)).unwrap_or(whole))
        }
        _ => String::new(),
    }
}

/// Returns the range of a definition's comments, or of Python's docstring.
pub(crate) fn doc_range(
    language: Language,
    before: &[LeadingNode],
    body: Option<Node<'_>>,
    text: &str,
) -> Option<Range<usize>> {
    if language == Language::Python
        && let Some(inside) = body.and_then(find_leading_string)
    {
        return Some(inside.byte_range());
    }
    let comments = || before.iter().filter(|leading| leading.comment);
    let range = comments().next()?.start..comments().next_back()?.end;
    // Many grammars include the line break.
    let len = text.get(range.clone())?.trim_end().len();
    Some(range.start..range.start + len)
}

/// Returns the docstring that a body begins with.
fn find_docstring<'t>(body: Node<'_>, text: &'t str) -> Option<&'t str> {
    text.get(find_leading_string(body)?.byte_range())
}

/// Returns the string that a body, or a whole text, begins with.
fn find_leading_string(body: Node<'_>) -> Option<Node<'_>> {
    let mut first = body.named_child(0)?;
    if first.kind() == "expression_statement" {
        first = first.named_child(0)?;
    }
    (first.kind() == "string").then_some(first)
}

/// Returns the range of a file's own documentation: Python's docstring, Rust's `//!`, or a comment
/// at the top that belongs to no symbol.
pub(crate) fn file_doc_range(
    language: Language,
    root: Node<'_>,
    leading: &[LeadingNode],
    symbols: &[Symbol],
    text: &str,
) -> Option<Range<usize>> {
    if language == Language::Python {
        return find_leading_string(root).map(|string| string.byte_range());
    }
    let comments = || leading.iter().take_while(|leading| leading.comment);
    let first = comments().next()?;
    let taken = symbols.first().is_some_and(|symbol| symbol.full.start <= first.start);
    let blank = |leading: &LeadingNode, before: usize| {
        text.get(before..leading.start).is_some_and(|between| between.trim().is_empty())
    };
    if taken || !blank(first, 0) {
        return None;
    }
    let mut end = first.start;
    for leading in comments() {
        let breaks = text.get(end..leading.start).unwrap_or_default().matches('\n').count();
        let owned = symbols.first().is_some_and(|symbol| symbol.full.start <= leading.start);
        if owned || !blank(leading, end) || breaks > 2 {
            break;
        }
        end = leading.end;
    }
    Some(first.start..end)
}

/// Returns the first sentence of a comment or a string that still has its signs.
pub(crate) fn first_sentence(written: &str) -> String {
    let mut out = String::new();
    let looked_at = written.get(..written.floor_char_boundary(MAX_SEARCHED_BYTES)).unwrap_or(written);
    for line in looked_at.lines() {
        let line = strip_comment_signs(line);
        let line =
            line.strip_prefix("@brief").or_else(|| line.strip_prefix("\\brief")).unwrap_or(line).trim();
        if is_directive(line) {
            continue;
        }
        if line.is_empty() || begins_parameter_list(line) {
            if out.is_empty() && !begins_parameter_list(line) {
                continue;
            }
            break;
        }
        if !line.chars().any(char::is_alphanumeric) {
            continue;
        }
        if append_sentence(&mut out, line) {
            break;
        }
    }
    out
}

/// Appends words up to the end of a sentence; returns true if the sentence ended.
fn append_sentence(out: &mut String, line: &str) -> bool {
    for word in without_tags(line).split_whitespace() {
        if out.len() + word.len() + 1 > MAX_SENTENCE_BYTES {
            if out.is_empty() {
                out.push_str(word.get(..word.floor_char_boundary(MAX_SENTENCE_BYTES)).unwrap_or_default());
            }
            return true;
        }
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(word);
        let stop = word.trim_end_matches([')', '"', '\'', '`', '*']);
        let short = matches!(stop, "e.g." | "i.e." | "vs." | "etc." | "cf." | "Dr." | "Mr." | "No.");
        if (stop.ends_with(['.', '!', '?']) && !short && !stop.ends_with(".."))
            || stop.ends_with(['。', '！', '？'])
        {
            return true;
        }
    }
    false
}

/// Removes HTML and XML tags from a line.
fn without_tags(line: &str) -> Cow<'_, str> {
    if !line.contains('<') {
        return Cow::Borrowed(line);
    }
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some((before, after)) = rest.split_once('<') {
        out.push_str(before);
        let tag = after.starts_with(|c: char| c == '/' || c.is_ascii_lowercase());
        match after.split_once('>').filter(|_| tag) {
            Some((_, after)) => rest = after,
            None => {
                out.push('<');
                rest = after;
            }
        }
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// Removes comment or string signs from a line.
fn strip_comment_signs(line: &str) -> &str {
    let mut line = line.trim();
    for start in [
        "r\"\"\"", "\"\"\"", "'''", "///", "//!", "/**", "/*!", "<!--", "--[[", "//", "/*", "---", "--",
        "##", "#:", "#",
    ] {
        if let Some(rest) = line.strip_prefix(start) {
            line = rest;
            break;
        }
    }
    for end in ["*/", "\"\"\"", "'''", "-->", "]]"] {
        line = line.strip_suffix(end).unwrap_or(line);
    }
    let line = line.trim();
    let line = line
        .strip_prefix('*')
        .filter(|rest| rest.is_empty() || rest.starts_with([' ', '\t', '*']))
        .unwrap_or(line);
    line.trim_matches(|c: char| c.is_whitespace() || c == '"')
}

/// Returns true for a line that tools read, such as a linter directive.
fn is_directive(line: &str) -> bool {
    [
        "go:",
        "eslint",
        "noqa",
        "nolint",
        "pylint:",
        "type:",
        "@ts-",
        "prettier-",
        "istanbul ",
        "rubocop:",
        "frozen_string_literal",
        "#region",
        "region ",
    ]
    .iter()
    .any(|start| line.starts_with(start))
}

/// Returns true for the line that begins a list of parameters and the like.
fn begins_parameter_list(line: &str) -> bool {
    let sign = line
        .strip_prefix(['@', ':', '\\'])
        .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_lowercase()));
    sign || line.starts_with("```")
        || matches!(line, "Args:" | "Parameters" | "Returns:" | "Example:" | "Examples:")
}
