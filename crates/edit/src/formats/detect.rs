//! Detection of a reply's format.

use std::collections::BTreeMap;

use journeyman_protocol::RelPath;

use crate::formats::announced_paths::{announced_path, announces_file, path_in_first_comment};
use crate::formats::argument_keys::{PATH_KEYS, has_tool_argument_keys};
use crate::formats::lenient_json::first_value_end;
use crate::formats::markers::{Mark, parse_mark};
use crate::formats::tag_dialects::with_usual_tags;
use crate::formats::thinking::blank_thinking;
use crate::formats::udiff::context::has_context_hunk;
use crate::formats::udiff::headless::{is_headless_diff, name_of_headless_diff};
use crate::formats::whole_files::SHELL_LANGUAGES;
use crate::formats::{
    Format, ReplyLine, ReplyLines, ReplySource, labelled_texts, paths, tags, text_calls, text_pairs,
};
use crate::lines::BYTE_ORDER_MARK;
use crate::placement::placeholders;

/// The values that begin on lines of a reply are looked at until they have so many times its bytes
/// together: one in the other, or without an end, they would take the square of its length.
const MAX_LOOKS: usize = 8;

/// The format a reply is written in, from its own marks; `None` where it has none.
///
/// The first line that only one format has decides. Named blocks of whole files are looked into
/// last, and what stands in them is their content.
#[must_use]
pub fn detect(reply: &str) -> Option<Format> {
    let nothing: BTreeMap<RelPath, String> = BTreeMap::new();
    detect_in(&ReplySource { reply, path: None, finished: true, files: &nothing })
}

/// As [`detect`], with the files: names without a directory or an ending are known by them.
#[must_use]
pub fn detect_in(source: &ReplySource<'_>) -> Option<Format> {
    let thoughtless = blank_thinking(source.reply);
    let source =
        ReplySource { reply: thoughtless.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&thoughtless), ..*source };
    if is_tool_arguments(source.reply) {
        return Some(Format::Tool);
    }
    match detect_marks(&source) {
        None | Some(Format::Whole | Format::Lazy) if is_labelled_texts(&source) => Some(Format::Blocks),
        None => detect_renamed(&source).or_else(|| has_context_hunk(source.reply).then_some(Format::Udiff)),
        found @ Some(Format::Whole | Format::Lazy) if has_texts_in_file_tags(source.reply) => {
            detect_renamed(&source).or(found)
        }
        found => found,
    }
}

/// Returns true if the first thing between the tags of each file is another tag.
fn has_texts_in_file_tags(reply: &str) -> bool {
    let mut lines = reply.lines().map(str::trim).filter(|line| !line.is_empty());
    let mut any = false;
    while let Some(line) = lines.next() {
        if line.starts_with("<file ") && line.ends_with('>') {
            any = true;
            if !lines.next().is_some_and(|next| next.starts_with('<')) {
                return false;
            }
        }
    }
    any && !reply.contains("```")
}

/// Returns true if a reply has texts below labels and no other edit. They may look like files.
fn is_labelled_texts(source: &ReplySource<'_>) -> bool {
    labelled_texts::has_pair_that_asks(source.reply) && {
        let rest = labelled_texts::without_pairs(source.reply);
        detect_marks(&ReplySource { reply: &rest, ..*source }).is_none()
    }
}

/// The format of a reply whose tags have other names than the usual ones.
pub(crate) fn detect_renamed(source: &ReplySource<'_>) -> Option<Format> {
    let usual = with_usual_tags(source.reply)?;
    detect_marks(&ReplySource { reply: &usual, ..*source })
        .filter(|format| matches!(format, Format::Edit | Format::Blocks))
}

/// The format of a reply without thinking, from marks that are written as usual.
fn detect_marks(source: &ReplySource<'_>) -> Option<Format> {
    let reply = source.reply;
    let mut calls = text_calls::CallStarts::new(reply);
    let mut named: Option<(u8, usize, usize)> = None;
    // A fence that names no file, and how far unnamed conflict marks have come in one that does.
    let (mut unnamed, mut conflict, mut whole) = (false, 0, None);
    let tag = memchr::memmem::Finder::new("<edit");
    let mut edit = tag.find(reply.as_bytes());
    let mut rows = ReplyLines::new(reply).peekable();
    let (mut from, mut json, mut looked_at) = (0, false, 0);
    while let Some(row) = rows.next() {
        let next = rows.peek().map_or("", |next| next.text);
        let end = row.start + row.text.len();
        let Some(&sign) = row.text.as_bytes().iter().find(|byte| !matches!(byte, b' ' | b'\t')) else {
            continue;
        };
        let is_fence = matches!(sign, b'`' | b'~') && paths::parse_fence_line(row.text).is_some();
        if let Some((open, length, body)) = named {
            conflict = advance_conflict_marks(conflict, row.text);
            if conflict == CONFLICT_MARK_COUNT {
                return Some(Format::Blocks);
            }
            if is_fence && closes_fence(row.text.trim(), open, length) {
                whole = whole.max(Some(has_placeholder(reply.get(body..row.start))));
                named = None;
                from = end;
            }
            continue;
        }
        if is_fence {
            let info = paths::parse_fence_line(row.text).unwrap_or_default();
            if unnamed && info.is_empty() {
                unnamed = false;
                continue;
            }
            let [next, second] = first_edit_lines(source, &row);
            let first = next.trim_start();
            let unique = format_of_unique_line(next, second);
            if row.text.starts_with([' ', '\t']) && matches!(unique, Some(Format::Udiff | Format::Patch)) {
                return unique;
            }
            if is_named_diff(source, info, (from, row.start), end) {
                return Some(Format::Udiff);
            }
            let known = unique.is_some() || begins_fenced_edit(first, reply, &row);
            if !known && !first.is_empty() && is_named(source, (from, row.start), end, info) {
                let length = row.text.trim().bytes().take_while(|&byte| byte == sign).count();
                (named, conflict) = (Some((sign, length, end)), 0);
            }
            unnamed = named.is_none();
            json |= first.starts_with(['{', '[']);
            continue;
        }
        if edit.is_some_and(|at| at < row.start) {
            edit = tag.find(reply.as_bytes().get(row.start..).unwrap_or_default()).map(|at| row.start + at);
        }
        if edit.is_some_and(|at| at < end) && begins_edit(reply, row.start, row.text) {
            return Some(Format::Edit);
        }
        if let Some(format) = format_of_unique_line(row.text, next) {
            return Some(format);
        }
        if calls.begins_edit(&row) {
            return Some(Format::Tool);
        }
        json = json
            || (!unnamed
                && matches!(sign, b'{' | b'[')
                && begins_edit_arguments(reply, &row, &mut looked_at));
    }
    // The last fence may be missing.
    if let Some((_, _, body)) = named {
        whole = whole.max(Some(has_placeholder(reply.get(body..))));
    }
    let format = |is_partial| if is_partial { Format::Lazy } else { Format::Whole };
    let whole = whole.or_else(|| has_placeholder_in_tags(source)).map(format);
    whole.or((json && has_tool_argument_keys(reply)).then_some(Format::Tool))
}

/// Looks for a file between the tags `<file path="a.py">` and `</file>`, each on a line of its own:
/// true if it leaves parts of its file out.
fn has_placeholder_in_tags(source: &ReplySource<'_>) -> Option<bool> {
    let mut opened = None;
    for row in ReplyLines::new(source.reply) {
        let text = row.text.trim();
        if text.starts_with("<file ") && paths::path_on_line(text, source).is_some() {
            opened = Some(row.start + row.text.len());
        } else if text == "</file>"
            && let Some(body) = opened.take().and_then(|body| source.reply.get(body..row.start))
            && !body.trim().is_empty()
        {
            return Some(has_placeholder(Some(body)));
        }
    }
    None
}

/// Returns true if a fence at `at` is around a hunk without a header, whose file is named.
fn is_named_diff(source: &ReplySource<'_>, info: &str, (from, at): (usize, usize), body: usize) -> bool {
    is_headless_diff(info, source.reply.get(body..).unwrap_or_default())
        && name_of_headless_diff(source, info, (from, at), body).is_some()
}

/// Returns true for a line that consists of at least `length` times the character of its fence.
fn closes_fence(text: &str, open: u8, length: usize) -> bool {
    text.len() >= length && text.bytes().all(|byte| byte == open)
}

/// Conflict marks without a name that have come: an opening one, a divider and a closing one.
const CONFLICT_MARK_COUNT: u8 = 3;

/// Returns how far conflict marks have come after a line.
fn advance_conflict_marks(conflict: u8, line: &str) -> u8 {
    match (parse_mark(line).map(|marked| marked.mark), conflict) {
        (Some(Mark::BareOpen), _) => 1,
        (Some(Mark::Divider), 1) => 2,
        (Some(Mark::BareClose), 2) => CONFLICT_MARK_COUNT,
        _ => conflict,
    }
}

/// Returns true if the content of a named block leaves parts of its file out.
fn has_placeholder(content: Option<&str>) -> bool {
    placeholders::find_placeholder("", content.unwrap_or_default()).is_some()
}

/// Returns true if a fence, the lines above it, or the comment that its block begins with, name a
/// file.
fn is_named(source: &ReplySource<'_>, (from, at): (usize, usize), body: usize, info: &str) -> bool {
    if paths::path_on_fence(info).is_some() {
        return true;
    }
    let above = paths::find_name_above(source, from, at);
    if above.name.is_some() {
        return true;
    }
    let language = info.split_whitespace().next().unwrap_or_default();
    if SHELL_LANGUAGES.contains(&language) {
        return false;
    }
    above.prose.is_some_and(|line| announces_file(line) && announced_path(line).is_some())
        || path_in_first_comment(source.reply.get(body..).unwrap_or_default(), language, source)
            .is_some_and(|found| found.is_name(source))
}

/// Returns true if an edit's arguments begin on this line, beside prose. `looked_at` counts the
/// bytes of all values that were looked at.
fn begins_edit_arguments(reply: &str, row: &ReplyLine<'_>, looked_at: &mut usize) -> bool {
    if *looked_at > reply.len() * MAX_LOOKS {
        return false;
    }
    let rest = reply.get(row.start..).unwrap_or_default();
    let value = rest.get(..first_value_end(rest)).unwrap_or_default();
    *looked_at += value.len();
    is_edit_object(value)
}

/// The first two lines of a block that aren't blank, without the blanks before its fence. One that
/// names its file doesn't count where an edit begins below it.
fn first_edit_lines<'a>(source: &ReplySource<'a>, fence: &ReplyLine<'a>) -> [&'a str; 2] {
    let (text, inside) = (fence.text, fence.start + fence.text.len());
    let indent = text.get(..text.len() - text.trim_start().len()).unwrap_or_default();
    let rows = ReplyLines::new(source.reply.get(inside..).unwrap_or_default()).map(|row| row.text);
    let mut filled = rows.filter(|line| !line.trim().is_empty());
    let mut next = || filled.next().map_or("", |line| line.strip_prefix(indent).unwrap_or(line));
    let [first, second, third] = [next(), next(), next()];
    let begins = format_of_unique_line(second, third).is_some();
    if begins && paths::path_on_line(first, source).is_some() { [second, third] } else { [first, second] }
}

/// Returns true if the block that begins with this line is an edit: JSON may also be a file's
/// content.
fn begins_fenced_edit(line: &str, reply: &str, fence: &ReplyLine<'_>) -> bool {
    let body = reply.get(fence.start + fence.text.len()..).unwrap_or_default();
    let sign: String = fence.text.trim().chars().take_while(|c| matches!(c, '`' | '~')).collect();
    let closing = memchr::memmem::find(body.as_bytes(), format!("\n{sign}").as_bytes());
    let block = closing.and_then(|end| body.get(..end)).unwrap_or(body);
    line.starts_with("<edit>") || line.starts_with(['{', '[']) && is_edit_object(block)
}

/// Returns true if the tag on this line begins a block and isn't a word about one.
fn begins_edit(reply: &str, start: usize, text: &str) -> bool {
    text.match_indices("<edit").any(|(at, _)| tags::begins_edit_block(reply, start + at))
}

/// The format that a line begins, if only one has such a line.
pub(crate) fn format_of_unique_line(line: &str, next: &str) -> Option<Format> {
    let text = line.trim_start_matches([' ', '\t']);
    match *text.as_bytes().first()? {
        b'<' if text.starts_with(text_pairs::OLD_TEXT_TAG) => Some(Format::Blocks),
        b'<' if text.starts_with(text_pairs::NEW_TEXT_TAG) => Some(Format::Blocks),
        b'*' if line.starts_with("*** ") => {
            let heads = ["*** Begin Patch", "*** Update File:", "*** Add File:", "*** Delete File:"];
            heads.iter().any(|head| line.starts_with(head)).then_some(Format::Patch)
        }
        b'@' if line.starts_with("@@") => format_of_hunk_header(line),
        b'd' if line.starts_with("diff --git ") => Some(Format::Udiff),
        b'-' if line.starts_with("--- ") && next.starts_with("+++ ") => Some(Format::Udiff),
        b'<' | b'-' => match parse_mark(line)?.mark {
            Mark::Open(_) | Mark::BareOpen => Some(Format::Blocks),
            _ => None,
        },
        _ => None,
    }
}

/// Returns the format of a line that begins with `@@`: numbers or dots make it a diff's, words a
/// patch's. A dash before words makes it prose.
fn format_of_hunk_header(line: &str) -> Option<Format> {
    let inner = line.trim_start_matches('@').trim();
    if inner.starts_with("- ") && !inner.ends_with("@@") {
        return None;
    }
    let is_diff = inner.starts_with('-') || inner.starts_with("...") || inner.starts_with('+');
    Some(if is_diff { Format::Udiff } else { Format::Patch })
}

/// Returns true if the reply is the arguments of a tool and nothing else.
fn is_tool_arguments(reply: &str) -> bool {
    let text = reply.trim_start();
    let has = |name: &str| memchr::memmem::find(text.as_bytes(), name.as_bytes()).is_some();
    let called = || has("\"function\"") && has("\"arguments\"");
    text.starts_with(['{', '[']) && (has_tool_argument_keys(text) || called())
}

/// Returns true for JSON that only an edit can be: it names a file, or its old text. Files of JSON
/// have a `command` or a `content` as well.
fn is_edit_object(json: &str) -> bool {
    let has = |key: &&str| memchr::memmem::find(json.as_bytes(), format!("\"{key}\"").as_bytes()).is_some();
    let old = ["old_string", "oldString", "old_str", "oldText", "old_text", "code_edit", "insert_line"];
    old.iter().any(has) || has_tool_argument_keys(json) && PATH_KEYS.iter().any(has)
}
