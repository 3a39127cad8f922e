//! What is said of a symbol: where that stands, and its first sentence without the signs that make it a comment.

use std::borrow::Cow;
use std::ops::Range;

use tree_sitter::Node;

use crate::language::Language;
use crate::outline::Symbol;
use crate::walk::Leading;

/// Bytes of a sentence: it is shown on a line or two.
const MAX_DOC: usize = 240;
/// Bytes of comments that are looked at for it.
const MAX_LOOKED_AT: usize = 4096;

/// The first sentence of the comments before a definition, or in Python of the text that its body begins with.
pub(crate) fn of(language: Language, before: &[Leading], body: Option<Node<'_>>, text: &str) -> String {
    let inside = (language == Language::Python).then(|| docstring(body?, text)).flatten();
    if let Some(inside) = inside {
        return sentence(inside);
    }
    let comments = || before.iter().filter(|leading| leading.comment);
    let written = |leading: &Leading| text.get(leading.start..leading.end).unwrap_or_default();
    // Of several, the one that is a doc comment counts alone.
    if let Some(doc) = comments().rfind(|leading| written(leading).starts_with("/**")) {
        return sentence(written(doc));
    }
    match (comments().next(), comments().next_back()) {
        (Some(first), Some(last)) => {
            let whole = text.get(first.start..last.end).unwrap_or_default();
            sentence(whole.get(..whole.floor_char_boundary(MAX_LOOKED_AT)).unwrap_or(whole))
        }
        _ => String::new(),
    }
}

/// Where something is said of a definition: all of its comments, or in Python the text that its body begins with.
pub(crate) fn place(
    language: Language,
    before: &[Leading],
    body: Option<Node<'_>>,
    text: &str,
) -> Option<Range<usize>> {
    if language == Language::Python
        && let Some(inside) = body.and_then(string)
    {
        return Some(inside.byte_range());
    }
    let comments = || before.iter().filter(|leading| leading.comment);
    let range = comments().next()?.start..comments().next_back()?.end;
    // Many grammars take the line break in.
    let len = text.get(range.clone())?.trim_end().len();
    Some(range.start..range.start + len)
}

/// The text that a body begins with.
fn docstring<'t>(body: Node<'_>, text: &'t str) -> Option<&'t str> {
    text.get(string(body)?.byte_range())
}

/// The string that a body, or a whole text, begins with.
fn string(body: Node<'_>) -> Option<Node<'_>> {
    let mut first = body.named_child(0)?;
    if first.kind() == "expression_statement" {
        first = first.named_child(0)?;
    }
    (first.kind() == "string").then_some(first)
}

/// Where something is said of a whole text: Python's docstring, Rust's `//!`, or a comment at the top that is nobody else's.
pub(crate) fn of_text(
    language: Language,
    root: Node<'_>,
    leading: &[Leading],
    symbols: &[Symbol],
    text: &str,
) -> Option<Range<usize>> {
    if language == Language::Python {
        return string(root).map(|string| string.byte_range());
    }
    let comments = || leading.iter().take_while(|leading| leading.comment);
    let first = comments().next()?;
    let taken = symbols.first().is_some_and(|symbol| symbol.full.start <= first.start);
    let blank = |leading: &Leading, before: usize| {
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

/// The first sentence of a comment or a string with all its signs.
pub(crate) fn sentence(written: &str) -> String {
    let mut out = String::new();
    let looked_at = written.get(..written.floor_char_boundary(MAX_LOOKED_AT)).unwrap_or(written);
    for line in looked_at.lines() {
        let line = bare(line);
        let line =
            line.strip_prefix("@brief").or_else(|| line.strip_prefix("\\brief")).unwrap_or(line).trim();
        if is_directive(line) {
            continue;
        }
        if line.is_empty() || is_tag(line) {
            if out.is_empty() && !is_tag(line) {
                continue;
            }
            break;
        }
        if !line.chars().any(char::is_alphanumeric) {
            continue;
        }
        if add(&mut out, line) {
            break;
        }
    }
    out
}

/// Adds words up to the end of a sentence; whether it ended.
fn add(out: &mut String, line: &str) -> bool {
    for word in untagged(line).split_whitespace() {
        if out.len() + word.len() + 1 > MAX_DOC {
            if out.is_empty() {
                out.push_str(word.get(..word.floor_char_boundary(MAX_DOC)).unwrap_or_default());
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

/// A line without tags of HTML and XML.
fn untagged(line: &str) -> Cow<'_, str> {
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

/// A line of a comment or a string without what makes it one.
fn bare(line: &str) -> &str {
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

/// A line that programs read.
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

/// A line from which on parameters and the like are described one by one.
fn is_tag(line: &str) -> bool {
    let sign = line
        .strip_prefix(['@', ':', '\\'])
        .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_lowercase()));
    sign || line.starts_with("```")
        || matches!(line, "Args:" | "Parameters" | "Returns:" | "Example:" | "Examples:")
}
