//! Pairs of `<old_text line="5">…</old_text>` and `<new_text>…</new_text>`.
//!
//! Models close them with each other's tags, with those of the call around them, or with the
//! `</edits>` of the whole. Such a tag ends a text only where the pair goes on behind it.

use std::ops::Range;

use crate::edit::{Edit, EditOp, Replace};
use crate::formats::block::{BlockProblem, ProblemKind};
use crate::formats::blocks::{MAX_BLOCKS, join_prose};
use crate::formats::{Format, ParsedReply, ReplySource, paths, tags};
use crate::lines::line_at;

/// The opening of a pair, as far as it is always written alike.
pub(crate) const OLD_TEXT_TAG: &str = "<old_text";
/// That of the text that comes.
pub(crate) const NEW_TEXT_TAG: &str = "<new_text";
/// Closing tags that may end a text.
const CLOSING_TAGS: [&str; 5] = ["</old_text>", "</new_text>", "</edits>", "</parameter>", "</invoke>"];

/// Returns the offset of the first pair, on a line of its own.
pub(crate) fn first_pair_offset(text: &str) -> Option<usize> {
    first_tag_offset(text, OLD_TEXT_TAG)
}

/// Returns the offset of the first text that comes, on a line of its own, of a text in which none
/// belongs to a pair.
pub(crate) fn lone_new_text_offset(text: &str) -> Option<usize> {
    first_tag_offset(text, NEW_TEXT_TAG)
}

fn first_tag_offset(text: &str, tag: &str) -> Option<usize> {
    let finder = memchr::memmem::Finder::new(tag);
    let mut at = 0;
    while let Some(found) = finder.find(text.as_bytes().get(at..)?).map(|found| at + found) {
        // Only the blanks before it are looked at: a line may be long.
        let before = text.get(..found)?.trim_end_matches([' ', '\t']);
        if (before.is_empty() || before.ends_with('\n'))
            && tags::parse_opening_tag(text, found, tag.trim_start_matches('<')).is_some()
        {
            return Some(found);
        }
        at = found + tag.len();
    }
    None
}

/// Reads a reply.
pub(crate) fn read(source: &ReplySource<'_>) -> ParsedReply {
    let reply = source.reply;
    let mut reading = ParsedReply { format: Some(Format::Blocks), ..ParsedReply::default() };
    let mut prose = Vec::new();
    let mut path = None;
    let finder = memchr::memmem::Finder::new(OLD_TEXT_TAG);
    let (mut from, mut at) = (0, 0);
    // Lines are counted on from the pair before.
    let (mut counted, mut line) = (0, 1_u32);
    while let Some(start) =
        finder.find(reply.as_bytes().get(at..).unwrap_or_default()).map(|found| at + found)
    {
        let Some(tag) = tags::parse_opening_tag(reply, start, "old_text").filter(|tag| !tag.closed) else {
            at = start + OLD_TEXT_TAG.len();
            continue;
        };
        line += line_at(reply.get(counted..).unwrap_or_default(), start - counted) - 1;
        counted = start;
        let above = paths::find_name_above(source, from, start);
        let named = above.name.map(|name| {
            paths::resolve_path(name, source).map_err(|why| paths::path_problem(line, name, why))
        });
        let file = match named {
            Some(Ok(named)) => Some(named),
            Some(Err(problem)) => {
                reading.problems.push(problem);
                None
            }
            None => path.clone().or_else(|| source.path.cloned()),
        };
        let fault =
            |kind, message: &str| BlockProblem { kind, line, subject: None, message: message.to_owned() };
        let pair = find_pair(source, tag.end);
        prose.push(reply.get(from..above.start.max(from)).unwrap_or_default());
        let Some((old, new, end)) = pair else {
            let message =
                "the reply ends before the pair is whole: <old_text>…</old_text><new_text>…</new_text>";
            reading.problems.push(fault(ProblemKind::Incomplete, message));
            from = reply.len();
            break;
        };
        (at, from) = (end, end);
        let near = parse_line_hint(&tag.attributes);
        let text =
            |range: Range<usize>| tags::trim_content_breaks(reply.get(range).unwrap_or_default()).to_owned();
        let (mut search, mut new) = (text(old), text(new));
        let name = file.as_ref().map(|file| String::from_utf8_lossy(file.file_name()).into_owned());
        if let Some((old, literal)) = name.and_then(|name| tags::literal_texts(&name, &search, &new)) {
            (search, new) = (old.to_owned(), literal.to_owned());
        }
        let replace = Replace { search, replace: new, near, whole_lines: true, all: false };
        match file {
            Some(file) => {
                path = Some(file.clone());
                reading.edits.push(Edit {
                    path: file,
                    ops: vec![EditOp::Replace(replace)],
                    description: None,
                });
            }
            None if above.name.is_none() => {
                let message = "nothing names the file: put its path on the line above <old_text>";
                reading.problems.push(fault(ProblemKind::Malformed, message));
            }
            None => {}
        }
        if reading.edits.len() + reading.problems.len() > MAX_BLOCKS {
            let message = format!("the reply has more than {MAX_BLOCKS} pairs; the rest was not read");
            reading.problems.push(fault(ProblemKind::TooMuch, &message));
            break;
        }
    }
    prose.push(reply.get(from..).unwrap_or_default());
    reading.prose = join_prose(&mut prose);
    reading
}

/// The line that an opening tag names: `line="5"`, `line=5`.
fn parse_line_hint(attributes: &str) -> Option<u32> {
    let value = attributes.split_once("line")?.1.split_once('=')?.1;
    let digits = value.trim_start().trim_start_matches(['"', '\'']);
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    digits.get(..end)?.parse().ok().filter(|&line| line > 0)
}

/// The old text, the new text, and where the pair ends.
fn find_pair(source: &ReplySource<'_>, from: usize) -> Option<(Range<usize>, Range<usize>, usize)> {
    let reply = source.reply;
    let (old, after) =
        find_text_end(reply, from, |at| tags::parse_opening_tag(reply, at, "new_text").is_some())?;
    let tag = tags::parse_opening_tag(reply, tags::skip_blanks(reply, after), "new_text")?;
    if tag.closed {
        return Some((from..old, tag.end..tag.end, tag.end));
    }
    let (new, end) = find_new_text_end(source, tag.end)?;
    Some((from..old, tag.end..new, end))
}

/// Returns the ends of the new text and of its closing tags. Its own tag ends it; another's only
/// where it has none before the next pair, or before the reply's normal end.
fn find_new_text_end(source: &ReplySource<'_>, from: usize) -> Option<(usize, usize)> {
    let rest = source.reply.get(from..)?;
    let next = memchr::memmem::find(rest.as_bytes(), OLD_TEXT_TAG.as_bytes());
    let region = rest.get(..next.unwrap_or(rest.len()))?;
    if let Some(own) = memchr::memmem::find(region.as_bytes(), b"</new_text>") {
        let mut text = region.get(..own)?;
        while let Some(shorter) = CLOSING_TAGS.iter().find_map(|tag| text.strip_suffix(tag)) {
            text = shorter;
        }
        return Some((from + text.len(), from + own + "</new_text>".len()));
    }
    if next.is_none() && !source.finished {
        return None;
    }
    let reply = source.reply.get(..from + region.len())?;
    find_text_end(reply, from, |_| true)
}

/// Returns the ends of a text and of its closing tags: at the first after which things go on as
/// they should.
fn find_text_end(reply: &str, from: usize, goes_on: impl Fn(usize) -> bool) -> Option<(usize, usize)> {
    let mut at = from;
    loop {
        let found = at + memchr::memchr(b'<', reply.as_bytes().get(at..)?)?;
        at = found + 1;
        let mut end = found;
        while let Some(tag) =
            CLOSING_TAGS.iter().find(|tag| reply.get(end..).is_some_and(|rest| rest.starts_with(**tag)))
        {
            end += tag.len();
            let next = tags::skip_blanks(reply, end);
            if !CLOSING_TAGS.iter().any(|tag| reply.get(next..).is_some_and(|rest| rest.starts_with(*tag))) {
                break;
            }
            end = next;
        }
        if end > found && goes_on(tags::skip_blanks(reply, end)) {
            return Some((found, end));
        }
    }
}
