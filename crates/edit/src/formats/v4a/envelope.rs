//! The marks of a V4A patch, and what models wrap around them.

use std::borrow::Cow;

use memchr::memmem;

use crate::formats::hunks::{BEGIN_PATCH, END_PATCH, strip_carriage_return};

/// Maximum bytes of a mark's words before its colon.
const MAX_MARKER_NAME_BYTES: usize = 24;

/// A line that begins with `***` and means something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Marker<'a> {
    Begin,
    End,
    Add(&'a str),
    Update(&'a str),
    Delete(&'a str),
    Move(&'a str),
    EndOfFile,
    Environment,
    Unknown,
}

impl Marker<'_> {
    /// Returns true if what came before it is over: another file, or something that can't belong to
    /// one.
    pub(super) fn ends_previous_section(&self) -> bool {
        !matches!(self, Self::Move(_) | Self::EndOfFile)
    }
}

/// Reads a mark. Outside of hunks blanks before it are overlooked; in a hunk they make it a line of
/// context.
pub(super) fn parse_marker(line: &str, in_hunk: bool) -> Option<Marker<'_>> {
    let text = if in_hunk { line.trim_end() } else { line.trim() };
    let words = text.strip_prefix("***")?.trim_start();
    let named = |what: &str| {
        let head = words.get(..what.len()).filter(|head| head.eq_ignore_ascii_case(what))?;
        words.get(head.len()..).map(|name| name.trim().trim_matches(['`', '"', '\'']))
    };
    if let Some(name) = named("Add File:").or_else(|| named("Create File:")) {
        return Some(Marker::Add(name));
    }
    if let Some(name) = named("Update File:") {
        return Some(Marker::Update(name));
    }
    if let Some(name) = named("Delete File:") {
        return Some(Marker::Delete(name));
    }
    let moves = ["Move to:", "Move File to:", "Rename to:", "Rename File to:"];
    if let Some(name) = moves.into_iter().find_map(named) {
        return Some(Marker::Move(name));
    }
    match words.to_ascii_lowercase().as_str() {
        "begin patch" => Some(Marker::Begin),
        "end patch" => Some(Marker::End),
        "end of file" => Some(Marker::EndOfFile),
        // Only what looks like a mark is one: a rule of asterisks or a sentence after some isn't.
        other if other.starts_with("environment id:") => Some(Marker::Environment),
        other if other.contains(" file: ") || other.ends_with(" file:") => Some(Marker::Unknown),
        _ => None,
    }
}

/// Returns true if a line looks like a mark with a value, such as `*** Copy to: PATH`.
pub(super) fn looks_like_marker(line: &str) -> bool {
    let words = line.trim().strip_prefix("*** ").and_then(|words| words.split_once(": "));
    words.is_some_and(|(name, value)| {
        !value.trim().is_empty()
            && name.len() <= MAX_MARKER_NAME_BYTES
            && name.starts_with(|c: char| c.is_ascii_uppercase())
            && name.chars().all(|c| c.is_ascii_alphabetic() || c == ' ')
    })
}

/// The range of a patch among the reply's lines (0-based, ends excluded).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PatchRange {
    /// The line of its first mark.
    pub(super) from: usize,
    /// The first line inside.
    pub(super) start: usize,
    /// The line after the last one inside.
    pub(super) end: usize,
    /// The offset at which reading continues.
    pub(super) next: usize,
    /// The patch has its `*** Begin Patch`, or needs none.
    pub(super) opened: bool,
    /// `*** End Patch` was there.
    pub(super) closed: bool,
    /// The patch itself has CRLF line endings.
    pub(super) crlf: bool,
}

/// The next patch at or after a line, with or without its opening mark.
pub(super) fn find_next_patch(lines: &[&str], at: usize) -> Option<PatchRange> {
    let names_file = |line: &str| {
        line.starts_with("***")
            && parse_marker(line, true)
                .is_some_and(|m| matches!(m, Marker::Add(_) | Marker::Update(_) | Marker::Delete(_)))
    };
    let from = at + lines.get(at..)?.iter().position(|line| begins_patch(line) || names_file(line))?;
    let opened = lines.get(from).is_some_and(|line| begins_patch(line));
    let start = from + usize::from(opened);
    let inside = lines.get(start..)?;
    let flush = |line: &&str| line.starts_with('*') && ends_patch(line);
    let padded = |line: &&str| line.starts_with([' ', '\t']) && ends_patch(line);
    let end = inside.iter().position(flush).or_else(|| inside.iter().rposition(padded));
    let crlf = lines.get(from).is_some_and(|line| line.ends_with('\r'));
    Some(match end {
        Some(end) => {
            let (end, next) = (start + end, start + end + 1);
            PatchRange { from, start, end, next, opened, closed: true, crlf }
        }
        None => {
            let fenced =
                lines.get(..from).unwrap_or_default().iter().rev().find(|line| !line.trim().is_empty());
            let fenced = fenced.is_some_and(|line| line.trim_start().starts_with("```"));
            let heredoc =
                lines.get(..=from).unwrap_or_default().iter().rev().take(2).any(|line| line.contains("<<"));
            let closes = |line: &&str| {
                let line = strip_carriage_return(line).trim_end();
                (fenced && line == "```") || (heredoc && matches!(line, "EOF" | "PATCH"))
            };
            let end = inside.iter().rposition(closes).unwrap_or(inside.len());
            let end = start + end;
            PatchRange { from, start, end, next: end, opened, closed: false, crlf }
        }
    })
}

/// The lines of a reply that has no envelope, without a fence around them.
pub(super) fn whole_reply_range(lines: &[&str]) -> PatchRange {
    let fence = |line: &str| line.trim_start().starts_with("```");
    let first = lines.iter().position(|line| fence(line));
    let last = lines.iter().rposition(|line| strip_carriage_return(line).trim() == "```");
    let outside = |range: std::ops::Range<usize>| {
        lines.get(range).unwrap_or_default().iter().all(|line| !line.starts_with(['+', '-', '@']))
    };
    let (start, end) = match (first, last) {
        (Some(first), Some(last)) if first < last && outside(0..first) && outside(last..lines.len()) => {
            (first + 1, last)
        }
        _ => (0, lines.len()),
    };
    let crlf = lines.get(start..end).unwrap_or_default();
    let crlf =
        !crlf.is_empty() && crlf.iter().rev().skip(1).all(|line| line.ends_with('\r')) && crlf.len() > 1;
    PatchRange { from: start, start, end, next: lines.len(), opened: true, closed: true, crlf }
}

/// Returns true if a line opens a patch, perhaps behind the command that would apply it.
fn begins_patch(line: &str) -> bool {
    let text = line.trim();
    match text.strip_suffix(BEGIN_PATCH) {
        Some("") => true,
        Some(before) => before.trim_start().starts_with("apply_patch"),
        None => false,
    }
}

/// Returns true if a line closes a patch, perhaps with what closes a command after it.
fn ends_patch(line: &str) -> bool {
    let text = line.trim();
    text.starts_with(END_PATCH) && text.trim_end_matches(['"', '\'', ')', ';', ' ']) == END_PATCH
}

/// A patch that came as a string of JSON, or with its line breaks escaped, as it was before that.
pub(super) fn unescape_patch(reply: &str) -> Cow<'_, str> {
    let Some(at) = memmem::find(reply.as_bytes(), BEGIN_PATCH.as_bytes()) else {
        return Cow::Borrowed(reply);
    };
    let after = reply.get(at + BEGIN_PATCH.len()..).unwrap_or_default();
    if !after.starts_with("\\n") && !after.starts_with("\\r\\n") {
        return Cow::Borrowed(reply);
    }
    let (body, rest) = match memmem::find(after.as_bytes(), END_PATCH.as_bytes()) {
        Some(end) => after.split_at(end + END_PATCH.len()),
        None => (after, ""),
    };
    let mut out = String::with_capacity(reply.len());
    out.push_str(BEGIN_PATCH);
    let mut characters = body.chars();
    while let Some(character) = characters.next() {
        if character != '\\' {
            out.push(character);
            continue;
        }
        match characters.next() {
            Some('n') => out.push('\n'),
            Some('t') => out.push('\t'),
            Some('r') => out.push('\r'),
            Some('u') => match read_code_point(characters.as_str()) {
                Some((plain, rest)) => {
                    out.push(plain);
                    characters = rest.chars();
                }
                None => out.push_str("\\u"),
            },
            Some(plain @ ('"' | '\\' | '/' | '\'')) => out.push(plain),
            Some(other) => out.extend(['\\', other]),
            None => out.push('\\'),
        }
    }
    // Characters that close an enclosing JSON string, and line breaks at its end.
    let mut rest = rest;
    while let Some(more) = ["\\n", "\\r", "\"", "}", "]", " "].iter().find_map(|end| rest.strip_prefix(end)) {
        rest = more;
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// The character whose code in JSON a text begins with, after its `\u`, and the rest: one code, or
/// two that stand for one character (RFC 8259, section 7).
fn read_code_point(text: &str) -> Option<(char, &str)> {
    let unit = |text: &str| u16::from_str_radix(text.get(..4)?, 16).ok();
    let first = unit(text)?;
    let rest = text.get(4..)?;
    let second = rest.strip_prefix("\\u").and_then(unit);
    let units = [first, second.filter(|_| (0xd800..0xdc00).contains(&first)).unwrap_or_default()];
    let plain = char::decode_utf16(units).next()?.ok()?;
    let taken = if plain.len_utf16() > 1 { "\\u0000".len() } else { 0 };
    Some((plain, rest.get(taken..)?))
}
