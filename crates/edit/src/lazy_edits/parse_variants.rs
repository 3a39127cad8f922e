//! The new text as its grammar reads it best.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Range;

use journeyman_syntax::language::Language;

use super::syntax_items::{KEEP_STAND_IN, REMOVE_STAND_IN};
use crate::lines::{split_indent, strip_line_break};
use crate::placeholder::{self, Placeholder};

/// Values of JSON that leave out all that they have.
const ELIDED_VALUES: [(&str, &str, &str); 6] = [
    ("{ ... }", "{", "}"),
    ("{...}", "{", "}"),
    ("[ ... ]", "[", "]"),
    ("[...]", "[", "]"),
    ("{ \u{2026} }", "{", "}"),
    ("[ \u{2026} ]", "[", "]"),
];

/// The texts to try, the best first. Where a comment is no part of a list (in languages that
/// indent, and in JSON, which has none), something that is stands in for a remark.
pub(super) fn parseable_variants<'a>(language: Language, content: &'a str, text: &str) -> Vec<Cow<'a, str>> {
    let known: HashSet<&str> = text.lines().map(str::trim).collect();
    let code =
        |line: &str| placeholder::placeholder_of_rewrite_line(line).filter(|_| !known.contains(line.trim()));
    let stand_in = |before: &str, after: &str| {
        Cow::Owned(replace_placeholders(content, code, |name| format!("{before}{name}{after}")))
    };
    let plain = Cow::Borrowed(content);
    match language {
        Language::Python => {
            let bodies = replace_elided_bodies(content, &known);
            vec![Cow::Owned(replace_placeholders(&bodies, code, str::to_owned)), plain]
        }
        Language::Yaml => vec![stand_in("", ": 0"), stand_in("- ", ""), plain],
        Language::Json => json_variants(content, text),
        _ if content.lines().any(|line| code(line).is_some() && line.trim().starts_with(['.', '…'])) => {
            vec![stand_in("// ... existing code ... ", ""), stand_in("# ... existing code ... ", "")]
        }
        _ => vec![plain],
    }
}

/// Python with bodies that say nothing (`def f(self): ...`, `pass  # unchanged`) as lines with
/// a remark.
fn replace_elided_bodies(content: &str, known: &HashSet<&str>) -> String {
    let mut out = String::with_capacity(content.len() + 64);
    for piece in content.split_inclusive('\n') {
        let line = strip_line_break(piece).trim_end();
        let rest = piece.get(line.len()..).unwrap_or_default();
        let is_new = !known.contains(line.trim());
        let header = line.strip_suffix(": ...").filter(|head| {
            is_new && ["def ", "class ", "async def "].iter().any(|word| head.trim_start().starts_with(word))
        });
        let comment = line.trim().strip_prefix("pass ").filter(|_| is_new).map(str::trim);
        if let Some(head) = header {
            out.push_str(&format!("{head}: {KEEP_STAND_IN}{rest}"));
        } else if comment
            .is_some_and(|comment| placeholder::placeholder_of_line(comment) == Some(Placeholder::Keep))
        {
            out.push_str(&format!("{}{KEEP_STAND_IN}{rest}", split_indent(line).0));
        } else {
            out.push_str(piece);
        }
    }
    out
}

/// JSON with members in place of its remarks, and members without the braces around them.
fn json_variants<'a>(content: &'a str, text: &str) -> Vec<Cow<'a, str>> {
    let code = |line: &str| {
        let line = line.trim();
        // Nothing else in JSON is three dots.
        let dots = matches!(line.trim_end_matches(','), "..." | "\u{2026}" | "\"...\": \"...\"" | "\"...\"");
        let remark = if dots { Some(Placeholder::Keep) } else { placeholder::placeholder_of_line(line) };
        remark.filter(|_| !text.contains(line))
    };
    let mut inner = Cow::Borrowed(content);
    for (elided, open, close) in ELIDED_VALUES {
        if inner.contains(elided) && !text.contains(elided) {
            inner = Cow::Owned(inner.replace(elided, &format!("{open}\n...\n{close}")));
        }
    }
    let own = |text: &str| Cow::Owned(placeholders_to_json(text, code).into_owned());
    let mut variants = vec![own(&inner)];
    if inner.trim_start().starts_with('"') && text.trim_start().starts_with('{') {
        variants.push(own(&format!("{{\n{}\n}}\n", inner.trim_end().trim_end_matches(','))));
    }
    variants
}

/// Each remark's line with something else in its place, as far in.
fn replace_placeholders(
    content: &str,
    code: impl Fn(&str) -> Option<Placeholder>,
    with: impl Fn(&str) -> String,
) -> String {
    let mut out = String::with_capacity(content.len());
    for piece in content.split_inclusive('\n') {
        let line = strip_line_break(piece);
        match code(line) {
            Some(remark) => {
                out.push_str(split_indent(line).0);
                out.push_str(&with(if remark == Placeholder::Keep {
                    KEEP_STAND_IN
                } else {
                    REMOVE_STAND_IN
                }));
                out.push_str(piece.get(line.len()..).unwrap_or_default());
            }
            None => out.push_str(piece),
        }
    }
    out
}

/// Remarks of JSON as members or values, with the commas that they then take.
fn placeholders_to_json<'a>(content: &'a str, code: impl Fn(&str) -> Option<Placeholder>) -> Cow<'a, str> {
    if !content.lines().any(|line| code(line).is_some()) {
        return Cow::Borrowed(content);
    }
    let mut out = String::with_capacity(content.len() + 64);
    let mut open: Vec<u8> = Vec::new();
    let lines: Vec<&str> = content.split_inclusive('\n').collect();
    let mut in_string = false;
    for (at, piece) in lines.iter().enumerate() {
        let line = strip_line_break(piece);
        let Some(remark) = code(line).filter(|_| !in_string) else {
            let mut escaped = false;
            for byte in piece.bytes() {
                match byte {
                    _ if std::mem::take(&mut escaped) => {}
                    b'\\' if in_string => escaped = true,
                    b'"' => in_string = !in_string,
                    b'{' | b'[' if !in_string => open.push(byte),
                    b'}' | b']' if !in_string => {
                        open.pop();
                    }
                    _ => {}
                }
            }
            out.push_str(piece);
            continue;
        };
        let name = if remark == Placeholder::Keep { KEEP_STAND_IN } else { REMOVE_STAND_IN };
        let value = if open.last() == Some(&b'[') { format!("\"{name}\"") } else { format!("\"{name}\": 0") };
        let before = out.trim_end();
        if !before.is_empty() && !before.ends_with(['{', '[', ',']) {
            let end = before.len();
            out.insert(end, ',');
        }
        let next = lines.iter().skip(at + 1).map(|line| line.trim()).find(|line| !line.is_empty());
        let closes = next.is_none_or(|next| next.starts_with(['}', ']']));
        out.push_str(split_indent(line).0);
        out.push_str(&value);
        if !closes {
            out.push(',');
        }
        out.push_str(piece.get(line.len()..).unwrap_or_default());
    }
    Cow::Owned(out)
}

/// A fragment as far in as what it goes into is, with a line break at both ends.
pub(super) fn indent_fragment(content: &str, text: &str, inside: &Range<usize>) -> String {
    let lines = |text: &str| {
        text.lines()
            .filter(|line| !line.trim().is_empty())
            .map(|line| split_indent(line).0.to_owned())
            .min_by_key(String::len)
    };
    let own = lines(text.get(inside.clone()).unwrap_or_default()).unwrap_or_default();
    // A remark beside a fragment says nothing about how far that is in.
    let code: String = content
        .split_inclusive('\n')
        .filter(|line| placeholder::placeholder_of_rewrite_line(line).is_none())
        .collect();
    let given = lines(&code).unwrap_or_default();
    let mut out = String::from("\n");
    for piece in content.split_inclusive('\n') {
        let bare =
            piece.strip_prefix(given.as_str()).unwrap_or_else(|| piece.trim_start_matches([' ', '\t']));
        if !bare.trim().is_empty() {
            out.push_str(&own);
        }
        out.push_str(bare);
    }
    if !out.ends_with('\n') {
        out.push('\n');
    }
    let opens_line =
        text.get(..inside.start).is_none_or(|before| before.is_empty() || before.ends_with('\n'));
    if opens_line { out.split_off(1) } else { out }
}
