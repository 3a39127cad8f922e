//! Whole files in fenced blocks, with or without remarks in place of what stays.
//!
//! A block is a file only where its fence, the line above it or the prose before it says which; a
//! block of shell commands or an example among named ones is prose. What can't be told apart is a
//! problem.

mod block_files;
mod inner_fences;

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::HashSet;

use journeyman_protocol::RelPath;

use crate::edit::{Edit, EditOp};
use crate::files::exists;
use crate::formats::announced_paths::{is_plain_path, path_in_heading, without_name_comment};
use crate::formats::bare_file::{MARKUP_EXTENSIONS, is_bare_file};
use crate::formats::block::{BlockProblem, ProblemKind};
use crate::formats::blocks::{MAX_BLOCKS, join_prose};
use crate::formats::udiff::context::has_context_hunk;
use crate::formats::udiff::headless;
use crate::formats::{Format, ParsedReply, ReplyLine, ReplyLines, ReplySource, detect, paths, tags};
use crate::lines::{line_at, strip_line_break};
use crate::placeholder;
use crate::placement::placeholders;

/// Languages of fences that hold commands to run, not files, unless the fence has a name.
pub(crate) const SHELL_LANGUAGES: [&str; 12] = [
    "bash",
    "sh",
    "shell",
    "zsh",
    "console",
    "terminal",
    "powershell",
    "ps1",
    "cmd",
    "shell-session",
    "output",
    "diff",
];
/// Endings of files that are diffs themselves.
const DIFF_ENDINGS: [&[u8]; 2] = [b".diff", b".patch"];
/// The longest opening marks of a fence.
const MAX_FENCE_MARKS: usize = 32;

/// Maximum number of fences without a language that are looked at below a block of code.
const MAX_INNER_FENCES: usize = 16;
/// Only so many fences of one text are looked at to tell which is its last.
const MAX_FENCES: usize = 64;

/// Reads a reply. An unfenced text may be the file, and in a lazy reply is; there every change of a
/// file that exists is a merge. Where the format was `detected`, a name in words needs more around
/// it.
pub(crate) fn read(source: &ReplySource<'_>, lazy: bool, detected: bool) -> ParsedReply {
    let format = if lazy { Format::Lazy } else { Format::Whole };
    let mut reading = ParsedReply { format: Some(format), ..ParsedReply::default() };
    let containers = fenced_blocks(source);
    if containers.is_empty() {
        let is_file = |path: &RelPath| lazy || (!detected && is_bare_file(source, path));
        match source.path.filter(|path| !source.reply.trim().is_empty() && is_file(path)) {
            Some(path) => {
                if source.finished {
                    reading.edits.push(to_edit(source, path.clone(), source.reply, lazy));
                } else {
                    let message = "the reply was cut off, and nothing says where the file ends".to_owned();
                    let subject = Some(path.to_string());
                    reading.problems.push(BlockProblem {
                        kind: ProblemKind::Incomplete,
                        line: 1,
                        subject,
                        message,
                    });
                }
            }
            None => reading.prose = source.reply.trim().to_owned(),
        }
        return reading;
    }
    let mut out = WholeFileReader {
        source,
        lazy,
        detected,
        reading,
        prose: Vec::new(),
        from: 0,
        several: false,
        others: OnceCell::new(),
    };
    out.read_blocks(&containers);
    let rest = source.reply.get(out.from..).unwrap_or_default();
    out.prose.push(rest);
    out.reading.prose = join_prose(&mut out.prose);
    let says = placeholder::says_removal(&out.reading.prose);
    for op in out.reading.edits.iter_mut().flat_map(|edit| &mut edit.ops) {
        if let EditOp::Lazy { says_removal, .. } = op {
            *says_removal = says;
        }
    }
    out.reading
}

/// A fenced block.
#[derive(Debug, Clone, Copy)]
struct FencedBlock<'a> {
    line: u32,
    /// The offset of its first line, including the line with its name.
    start: usize,
    body: (usize, usize),
    end: usize,
    /// The blanks before its first fence.
    indent: usize,
    name: Option<&'a str>,
    language: &'a str,
    prose: Option<&'a str>,
    /// The path that a heading above the prose names.
    heading: Option<&'a str>,
    closed: FenceEnd,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FenceEnd {
    Yes,
    No,
    /// More than one of its fences may be the last.
    Unclear,
}

/// A line of backticks, tildes, or the tags of a file.
#[derive(Debug, Clone, Copy)]
struct FenceLine<'a> {
    sign: u8,
    length: usize,
    /// The blanks before it.
    indent: usize,
    info: &'a str,
}

fn parse_fence(text: &str) -> Option<FenceLine<'_>> {
    let line = text.trim_start_matches([' ', '\t']);
    let sign = *line.as_bytes().first().filter(|sign| matches!(sign, b'`' | b'~' | b'<'))?;
    let indent = text.len() - line.len();
    let line = line.trim_end();
    match sign {
        b'`' | b'~' => {
            let length = line.bytes().take(MAX_FENCE_MARKS).take_while(|&byte| byte == sign).count();
            let info = line.get(length..)?.trim();
            (length >= 3 && !info.contains('`')).then_some(FenceLine { sign, length, indent, info })
        }
        b'<' if line.starts_with("<file ") && line.ends_with('>') => {
            Some(FenceLine { sign, length: 1, indent, info: line })
        }
        b'<' if line == "</file>" => Some(FenceLine { sign, length: 1, indent, info: "" }),
        _ => None,
    }
}

/// The blocks of a reply.
fn fenced_blocks<'a>(source: &ReplySource<'a>) -> Vec<FencedBlock<'a>> {
    let rows: Vec<(ReplyLine<'a>, FenceLine<'a>)> =
        ReplyLines::new(source.reply).filter_map(|row| Some((row, parse_fence(row.text)?))).collect();
    let mut found = Vec::new();
    let (mut at, mut from) = (0, 0);
    while let Some((row, opening)) = rows.get(at).copied() {
        if opening.sign == b'<' && opening.info.is_empty() {
            at += 1;
            continue;
        }
        let above = paths::find_name_above(source, from, row.start);
        let on_fence = match opening.sign {
            b'<' => paths::path_on_line(opening.info, source),
            _ => paths::path_on_fence(opening.info),
        };
        let body = row.start + row.text.len();
        // The nearest name is that of a new file, if it can be one.
        let name = on_fence.or(above.nearest.filter(|name| is_plain_path(name))).or(above.name);
        let markdown = is_markdown(opening.info) || name.is_some_and(is_markdown);
        let (last, closed) = find_closing_fence(source, &rows, at, markdown);
        let last = match last {
            Some(first) if !markdown && closed == FenceEnd::Yes => {
                Some(end_of_code(source, &rows, (at, first), name))
            }
            other => other,
        };
        let (until, end) = match last.and_then(|last| rows.get(last)) {
            Some((row, _)) => (row.start, row.start + row.text.len()),
            None => (source.reply.len(), source.reply.len()),
        };
        // A `<file>` around a fence names it and is no block itself.
        let next = rows.get(at + 1).filter(|(next, inner)| {
            opening.sign == b'<'
                && inner.sign != b'<'
                && source.reply.get(body..next.start).is_some_and(|between| between.trim().is_empty())
        });
        if next.is_some() {
            at += 1;
            continue;
        }
        let start = if on_fence.is_some() { row.start } else { above.start.min(row.start) };
        found.push(FencedBlock {
            line: row.number,
            start: if above.name.is_some() && on_fence.is_none() { start } else { row.start },
            body: (body, until),
            end,
            name,
            indent: opening.indent,
            language: opening.info.split([' ', '\t', ':', '{']).next().unwrap_or_default(),
            prose: above.prose,
            heading: above.prose.and_then(|_| path_in_heading(source, from, row.start)),
            closed,
        });
        from = end;
        if found.len() > MAX_BLOCKS {
            break;
        }
        at = last.map_or(rows.len(), |last| last + 1);
    }
    found
}

fn is_markdown(name: &str) -> bool {
    let name = name.split_whitespace().next().unwrap_or_default();
    ["md", "markdown", "mdx"].iter().any(|ending| {
        name.strip_suffix(ending).is_some_and(|before| before.is_empty() || before.ends_with('.'))
    })
}

/// Returns the index of the fence that closes the fence at `at`.
fn find_closing_fence(
    source: &ReplySource<'_>,
    rows: &[(ReplyLine<'_>, FenceLine<'_>)],
    at: usize,
    markdown: bool,
) -> (Option<usize>, FenceEnd) {
    let Some((open, opening)) = rows.get(at) else { return (None, FenceEnd::No) };
    let body = open.start + open.text.len();
    let (mut depth, mut first) = (0_usize, None);
    let mut bare = 0_usize;
    for (index, (row, fence)) in rows.iter().enumerate().skip(at + 1) {
        if fence.sign != opening.sign || fence.length < opening.length {
            continue;
        }
        if !fence.info.is_empty() {
            // The next block's own beginning, after this one's end.
            if depth == 0 && first.is_some() {
                break;
            }
            depth += 1;
            continue;
        }
        if depth > 0 && first.is_none() {
            depth -= 1;
            continue;
        }
        // A fence on the first line of the text opens one inside it, if there are enough to close
        // both.
        let opens_at_once = row.start == body && opening.sign != b'<';
        if opens_at_once
            && rows.iter().skip(index + 1).filter(|(_, later)| later.info.is_empty()).nth(1).is_some()
        {
            depth += 1;
            continue;
        }
        if cannot_close(opening, fence) && closes_later(rows, index, opening) {
            continue;
        }
        bare += 1;
        if bare > MAX_FENCES {
            return (first, FenceEnd::Unclear);
        }
        if first.is_none() {
            first = Some(index);
            if !markdown {
                break;
            }
        } else if is_fence_named(source, rows, index) {
            bare -= 1;
            break;
        }
    }
    match first {
        None => find_repeated_fence(source, rows, at),
        // Text that may have fences of its own, and an odd number of them that could end it.
        Some(first) if markdown && bare >= 3 && bare % 2 == 1 => (Some(first), FenceEnd::Unclear),
        Some(first) => (Some(first), FenceEnd::Yes),
    }
}

/// Returns the index of the fence that ends the block of code at `at`, of which `first` seems to be
/// the end: a later one where only the text up to that one is code.
fn end_of_code(
    source: &ReplySource<'_>,
    rows: &[(ReplyLine<'_>, FenceLine<'_>)],
    (at, first): (usize, usize),
    name: Option<&str>,
) -> usize {
    let Some((open, opening)) = rows.get(at).filter(|(_, opening)| opening.sign != b'<') else {
        return first;
    };
    let is_bare = |index: &usize| {
        let fence = rows.get(*index).map(|(_, fence)| fence);
        fence.is_some_and(|fence| (fence.sign, fence.info) == (opening.sign, ""))
            && fence.is_some_and(|fence| fence.length >= opening.length)
            && !is_fence_named(source, rows, *index)
    };
    let inner = (first + 1..).take_while(is_bare).take(MAX_INNER_FENCES).count();
    // Each inner fence has an end.
    let ends: Vec<usize> = (first..=first + inner).step_by(2).collect();
    let text = |end: &usize| {
        let end = rows.get(*end).map_or(0, |(row, _)| row.start);
        source.reply.get(open.start + open.text.len()..end).unwrap_or_default()
    };
    let texts: Vec<&str> = ends.iter().map(text).collect();
    let found = if texts.len() > 1 { inner_fences::first_code(name, opening.info, &texts) } else { 0 };
    ends.get(found).copied().unwrap_or(first)
}

/// The fence that closes the fence at `at` by repeating all of it, info string included: the last
/// line of the reply, or the last before another block with a name. Unclear where it may as well
/// open a block.
fn find_repeated_fence(
    source: &ReplySource<'_>,
    rows: &[(ReplyLine<'_>, FenceLine<'_>)],
    at: usize,
) -> (Option<usize>, FenceEnd) {
    let none = (None, FenceEnd::No);
    // Each block may look at all rows.
    if rows.len() > MAX_FENCES * MAX_BLOCKS {
        return none;
    }
    let Some((_, opening)) = rows.get(at).filter(|(_, fence)| fence.sign != b'<') else { return none };
    let repeats = |fence: &FenceLine<'_>| {
        !fence.info.is_empty()
            && (fence.sign, fence.length, fence.info) == (opening.sign, opening.length, opening.info)
    };
    let mut later = rows.iter().enumerate().skip(at + 1);
    let Some((index, (row, _))) = later.find(|(_, (_, fence))| repeats(fence)) else { return none };
    let named = paths::path_on_fence(opening.info).is_some();
    if !named && is_fence_named(source, rows, index) {
        return (Some(index), FenceEnd::Unclear);
    }
    let closes = match rows.get(index + 1) {
        None => {
            let rest = source.reply.get(row.start + row.text.len()..).unwrap_or_default();
            rest.trim().is_empty()
        }
        Some((_, next)) if named => !next.info.is_empty(),
        Some((_, next)) => {
            paths::path_on_fence(next.info).is_some() || is_fence_named(source, rows, index + 1)
        }
    };
    if closes { (Some(index), FenceEnd::Yes) } else { none }
}

/// Returns true if a fence is no end of `opening` as Markdown goes (CommonMark 4.5: a closing fence
/// is indented by at most three blanks), or is longer and of tildes, which underline headings in
/// documentation.
fn cannot_close(opening: &FenceLine<'_>, fence: &FenceLine<'_>) -> bool {
    opening.sign != b'<'
        && (fence.indent > opening.indent + 3 || fence.sign == b'~' && fence.length > opening.length)
}

/// Returns true if another fence after `index` ends `opening`, before the next block begins.
fn closes_later(rows: &[(ReplyLine<'_>, FenceLine<'_>)], index: usize, opening: &FenceLine<'_>) -> bool {
    let later = rows.iter().skip(index + 1).map(|(_, fence)| fence);
    let mut same = later.filter(|fence| fence.sign == opening.sign).take(MAX_FENCES);
    let next = same.find(|fence| !fence.info.is_empty() || !cannot_close(opening, fence));
    next.is_some_and(|fence| fence.info.is_empty() && fence.length >= opening.length)
}

/// Returns true if the line above a fence names a file.
fn is_fence_named(source: &ReplySource<'_>, rows: &[(ReplyLine<'_>, FenceLine<'_>)], index: usize) -> bool {
    rows.get(index).is_some_and(|(row, _)| {
        let from = rows.get(index.wrapping_sub(1)).map_or(0, |(before, _)| before.start + before.text.len());
        paths::find_name_above(source, from, row.start).name.is_some()
    })
}

/// Returns true if a block says that it is a diff and has lines that come or go, or if its lines
/// say so by themselves: those that don't come are all in the file behind their first character, in
/// order.
fn is_diff(language: &str, body: &str, old: Option<&str>) -> bool {
    if has_context_hunk(body) && !has_context_hunk(old.unwrap_or_default()) {
        return true;
    }
    if headless::is_diff_fence(language) {
        return body.lines().any(|line| line.starts_with(['+', '-']));
    }
    let mut own = old.unwrap_or_default().lines().map(str::trim_end);
    let mut filled = body.lines().filter(|line| !line.trim().is_empty());
    let mut stays = |line: &str| own.any(|own| Some(own) == line.get(1..).map(str::trim_end));
    body.lines().any(|line| line.starts_with('-'))
        && filled.all(|line| line.starts_with('+') || (line.starts_with([' ', '-']) && stays(line)))
}

/// Returns true if an edit in another format begins within a text that has no end of its own.
fn has_edit_behind_file(text: &str) -> bool {
    detect(text).is_some_and(|format| !matches!(format, Format::Whole | Format::Lazy))
}

/// A block's text without the blanks before its fence, where all of its lines have them
/// (CommonMark 4.5): those belong to the list that the block stands in.
fn strip_fence_indent(body: &str, indent: usize) -> Cow<'_, str> {
    let is_inner =
        |line: &str| line.bytes().take(indent).filter(|byte| matches!(byte, b' ' | b'\t')).count() == indent;
    let mut filled = body.lines().filter(|line| !line.trim().is_empty());
    if indent == 0 || !filled.all(is_inner) {
        return Cow::Borrowed(body);
    }
    let lines = body.split_inclusive('\n');
    Cow::Owned(
        lines
            .map(|line| line.get(indent..).unwrap_or_else(|| line.trim_start_matches([' ', '\t'])))
            .collect(),
    )
}

struct WholeFileReader<'s, 'a> {
    source: &'s ReplySource<'a>,
    lazy: bool,
    /// Nobody said that the reply has whole files.
    detected: bool,
    reading: ParsedReply,
    prose: Vec<&'a str>,
    from: usize,
    /// More than one block may be a file.
    several: bool,
    /// The project's files.
    others: OnceCell<Vec<RelPath>>,
}

impl<'a> WholeFileReader<'_, 'a> {
    fn read_blocks(&mut self, containers: &[FencedBlock<'a>]) {
        if containers.len() > MAX_BLOCKS {
            let message = format!("the reply has more than {MAX_BLOCKS} blocks; none of them was read");
            let problem = BlockProblem { kind: ProblemKind::TooMuch, line: 1, subject: None, message };
            self.reading.problems.push(problem);
            return;
        }
        let mut taken = 0_usize;
        let several = containers.len() > 1;
        let files = self.files_of_blocks(containers);
        for (index, (block, file)) in containers.iter().zip(files).enumerate() {
            let Some(file) = file else { continue };
            let last = index + 1 == containers.len();
            self.prose.push(self.source.reply.get(self.from..block.start).unwrap_or_default());
            self.from = block.end;
            match file {
                Ok(path) => {
                    if let Some(problem) = self.fault_of_block(block, &path, last, taken) {
                        self.add_problem(block, ProblemKind::Malformed, Some(&path), &problem);
                        continue;
                    }
                    taken += 1;
                    let body = self.source.reply.get(block.body.0..block.body.1).unwrap_or_default();
                    let body = strip_fence_indent(body, block.indent);
                    let named = without_name_comment(self.source, &path, block.language, &body);
                    let content = self.content_of(&path, named.as_deref().unwrap_or(&body));
                    let edit = to_edit(self.source, path, content, self.lazy);
                    // Prose names a file for a part of it as well.
                    let partial = || match self.detected {
                        true => shrunken_file_problem(self.source, &edit),
                        false => partial_file_problem(self.source, &edit)
                            .filter(|_| several || block.heading.is_some()),
                    };
                    if let Some(mut problem) = partial().filter(|_| block.name.is_none()) {
                        problem.line = block.line;
                        self.reading.problems.push(problem);
                        continue;
                    }
                    // What words name after the file itself is its output, or a part of it.
                    if self.detected && block.name.is_none() && self.has_edit(&edit.path) {
                        continue;
                    }
                    // The last word on a whole file counts; parts of one add up.
                    if !matches!(edit.ops.as_slice(), [EditOp::Lazy { .. }]) {
                        self.reading.edits.retain(|other| other.path != edit.path);
                    }
                    self.reading.edits.push(edit);
                }
                Err((name, why)) => self.reading.problems.push(paths::path_problem(block.line, name, why)),
            }
        }
    }

    fn has_edit(&self, path: &RelPath) -> bool {
        self.reading.edits.iter().any(|edit| edit.path == *path)
    }

    /// A block's text without the line break before its last fence; with it where a blank line ends
    /// the text, as one ends the file.
    fn content_of<'b>(&self, path: &RelPath, body: &'b str) -> &'b str {
        let ends_blank = |text: &str| strip_line_break(text).ends_with('\n');
        let kept =
            ends_blank(body) && matches!(self.source.files.text(path), Ok(Some(old)) if ends_blank(&old));
        let content = if kept { body } else { strip_line_break(body) };
        tags::literal_content(&path.to_string(), content).unwrap_or(content)
    }

    /// Why a block can't be taken.
    fn fault_of_block(
        &self,
        block: &FencedBlock<'a>,
        path: &RelPath,
        last: bool,
        taken: usize,
    ) -> Option<String> {
        let body = self.source.reply.get(block.body.0..block.body.1).unwrap_or_default();
        if block.closed == FenceEnd::Unclear {
            return Some(
                "more than one of its fences may be the last: put the file between longer ones, of four backticks"
                    .to_owned(),
            );
        }
        if !self.source.finished && (last || block.closed == FenceEnd::No) {
            return Some("the reply was cut off in it; send the whole file again".to_owned());
        }
        if block.closed == FenceEnd::No && (taken > 0 || body.trim().is_empty()) {
            return Some("its fence isn't closed; send the whole file again".to_owned());
        }
        if block.closed == FenceEnd::No && has_edit_behind_file(body) {
            return Some("its fence isn't closed before another edit begins; send both again".to_owned());
        }
        let old = self.source.files.text(path).ok().flatten();
        if is_diff(block.language, body, old.as_deref())
            && !DIFF_ENDINGS.iter().any(|ending| path.file_name().ends_with(ending))
        {
            return Some(
                "it is a diff and not the file: begin it with `--- a/PATH`, `+++ b/PATH` and `@@`, or send the whole file"
                    .to_owned(),
            );
        }
        if begins_with_edit_tag(body, old.as_deref()) {
            return Some(
                "it begins with the tag of an edit and isn't the file: send <edit><file>…</file><search>…</search>\
                 <replace>…</replace></edit>"
                    .to_owned(),
            );
        }
        let named = without_name_comment(self.source, path, block.language, body);
        let body = named.as_deref().unwrap_or(body);
        let emptied = body.trim().is_empty() && exists(self.source.files, path);
        emptied.then(|| "the block is empty and the file is not; to delete it, say so".to_owned())
    }

    fn add_problem(
        &mut self,
        block: &FencedBlock<'a>,
        kind: ProblemKind,
        path: Option<&RelPath>,
        message: &str,
    ) {
        let kind = if self.source.finished { kind } else { ProblemKind::Incomplete };
        let subject = path.map(RelPath::to_string);
        self.reading.problems.push(BlockProblem {
            kind,
            line: block.line,
            subject,
            message: message.to_owned(),
        });
    }
}

/// Returns true if a block's first and last line are tags of an edit, and the file has no such
/// line.
fn begins_with_edit_tag(body: &str, old: Option<&str>) -> bool {
    const NAMES: [&str; 14] = [
        "edit",
        "edits",
        "change",
        "changes",
        "search",
        "find",
        "replace",
        "replacement",
        "old",
        "new",
        "original",
        "updated",
        "modified",
        "diff",
    ];
    const STARTS: [&str; 2] = ["old_", "new_"];
    let is_tag = |line: &str, opening: &str| {
        let inner = line.trim().strip_prefix(opening).and_then(|inner| inner.strip_suffix('>'));
        let name = inner.map(|inner| inner.to_ascii_lowercase());
        name.is_some_and(|name| {
            NAMES.contains(&name.as_str()) || STARTS.iter().any(|start| name.starts_with(start))
        })
    };
    let mut lines = body.lines().filter(|line| !line.trim().is_empty());
    let first = lines.next().unwrap_or_default();
    is_tag(first, "<")
        && lines.next_back().is_some_and(|last| is_tag(last, "</"))
        && !old.unwrap_or_default().lines().any(|line| line.trim() == first.trim())
}

/// The content without a fence that stands around all of it: no file of code begins with one.
/// `None` where there is none, or where the file may be a text with fences.
#[must_use]
pub fn strip_fence<'a>(path: &RelPath, content: &'a str) -> Option<&'a str> {
    let name = String::from_utf8_lossy(path.file_name()).to_ascii_lowercase();
    let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
    if MARKUP_EXTENSIONS.contains(&ending) || name.starts_with("readme") {
        return None;
    }
    let text = content.trim_start_matches(['\n', '\r']).trim_end();
    let (first, rest) = text.split_once('\n')?;
    let at = rest.rfind('\n').map_or(0, |at| at + 1);
    let (opening, closing) = (parse_fence(first)?, parse_fence(rest.get(at..)?)?);
    let pair = opening.sign != b'<'
        && opening.sign == closing.sign
        && opening.length == closing.length
        && closing.info.is_empty()
        && !first.starts_with([' ', '\t']);
    pair.then(|| rest.get(..at)).flatten()
}

/// Returns the edit that a file's whole content requests.
pub(crate) fn to_edit(source: &ReplySource<'_>, path: RelPath, content: &str, lazy: bool) -> Edit {
    // CRLF throughout is the reply's; a file that has it keeps it.
    let has_crlf = || memchr::memchr(b'\r', content.as_bytes()).is_some();
    let content = if has_crlf() && content.matches('\n').count() == content.matches("\r\n").count() {
        content.replace("\r\n", "\n")
    } else {
        content.to_owned()
    };
    let remark = placeholders::find_placeholder("", &content).is_some();
    let partial = remark
        || (lazy && matches!(source.files.text(&path), Ok(Some(old)) if !has_all_lines(&content, &old)));
    let op = if partial {
        EditOp::Lazy { content, says_removal: false }
    } else {
        EditOp::Rewrite { content, exact: false }
    };
    Edit { path, ops: vec![op], description: None }
}

/// Returns true if the lines of `old` that aren't blank are all in `new`, in their order.
fn has_all_lines(new: &str, old: &str) -> bool {
    let mut lines = new.lines().map(str::trim_end);
    old.lines()
        .map(str::trim_end)
        .filter(|line| !line.is_empty())
        .all(|line| lines.any(|other| other == line))
}

/// A block that was read as a whole file and seems to be a part of one: found where the format
/// wasn't named.
pub(crate) fn partial_file_problem(source: &ReplySource<'_>, edit: &Edit) -> Option<BlockProblem> {
    let [EditOp::Rewrite { content, .. }] = edit.ops.as_slice() else { return None };
    let Ok(Some(old)) = source.files.text(&edit.path) else { return None };
    let (old, new) = (old.lines().count(), content.lines().count());
    if old < MIN_COMPARED_LINES || new * 2 >= old {
        return None;
    }
    let at = source.reply.find(content.as_str()).unwrap_or_default();
    let message = format!(
        "the block has {new} lines and the file {old}: if it is the whole file, send it as <edit><file>…</file><replace>…; if \
         it is a part, send what to search and what to put there"
    );
    let (kind, subject) = (ProblemKind::Malformed, Some(edit.path.to_string()));
    Some(BlockProblem { kind, line: line_at(source.reply, at), subject, message })
}

/// A block for a file that words name: a part of the file, or an example, where it has less than
/// half of the file's different lines, or nothing but lines that follow each other there.
fn shrunken_file_problem(source: &ReplySource<'_>, edit: &Edit) -> Option<BlockProblem> {
    /// So few lines may all be other ones.
    const MAX_STUB_LINES: usize = 3;
    let [EditOp::Rewrite { content, .. }] = edit.ops.as_slice() else { return None };
    let Ok(Some(old)) = source.files.text(&edit.path) else { return None };
    let lines = |text: &str| -> HashSet<String> {
        text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect()
    };
    // What stands in the file, line for line, is quoted from it.
    let trimmed = |text: &str| text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n");
    let is_quote = content.trim_end() != old.trim_end()
        && memchr::memmem::find(trimmed(&old).as_bytes(), trimmed(content.trim()).as_bytes()).is_some();
    let (old, new) = (lines(&old), lines(content));
    let kept = old.intersection(&new).count();
    if !is_quote && (old.len() <= MAX_STUB_LINES || kept * 2 >= old.len()) {
        return None;
    }
    let at = source.reply.find(content.as_str()).unwrap_or_default();
    let message = format!(
        "the block has {kept} of the file's {} different lines, so it may be a part of it or an example: put the \
         path alone on the line above the fence for a whole file, or send what to search and what to put there",
        old.len()
    );
    let (kind, subject) = (ProblemKind::Malformed, Some(edit.path.to_string()));
    Some(BlockProblem { kind, line: line_at(source.reply, at), subject, message })
}

/// A shorter file may well shrink to less than half.
const MIN_COMPARED_LINES: usize = 12;
