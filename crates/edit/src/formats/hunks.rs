//! Parts that unified diffs and V4A patches share: lines, hunk headers, the names of files.

use journeyman_protocol::RelPath;

use crate::edit::{LineKind, PatchHunk, PatchLine};
use crate::files::exists;
use crate::formats::ReplySource;
use crate::formats::block::{BlockProblem, ProblemKind};
use crate::formats::paths::path_in_checkout;

/// A longer reply is not read: no model's output limit is near it.
pub(crate) const MAX_REPLY_BYTES: usize = 16 << 20;
/// More hunks than this in one reply are a loop, not work.
pub(crate) const MAX_HUNKS: usize = 20_000;
/// The prefixes that git puts before names: the sides, and with `diff.mnemonicPrefix` what they
/// are.
const SIDE_PREFIXES: [&str; 6] = ["a/", "b/", "i/", "w/", "c/", "o/"];

/// The marks around a V4A patch.
pub(crate) const BEGIN_PATCH: &str = "*** Begin Patch";
pub(crate) const END_PATCH: &str = "*** End Patch";
/// Lines with which models close a patch, other than a format's own.
const CLOSING_MARKS: [&str; 6] = ["***", "*** End", END_PATCH, "*** EOF", ">>>", "EOF"];

/// A text's lines without their line feeds; a carriage return before one stays.
pub(crate) fn split_lines(text: &str) -> Vec<&str> {
    let mut lines = Vec::with_capacity(text.len() / 32);
    let mut from = 0;
    for at in memchr::memchr_iter(b'\n', text.as_bytes()) {
        lines.push(text.get(from..at).unwrap_or_default());
        from = at + 1;
    }
    if from < text.len() {
        lines.push(text.get(from..).unwrap_or_default());
    }
    lines
}

/// Takes the blanks before a fence away from the lines in it, where a patch begins on the first of
/// these: they belong to the list that the fence stands in.
pub(crate) fn strip_fence_indents(lines: &mut [&str]) {
    let blanks = |line: &str| line.len() - line.trim_start_matches([' ', '\t']).len();
    let mut open: Option<(char, usize, usize)> = None;
    for at in 0..lines.len() {
        let Some(line) = lines.get(at).copied() else { continue };
        let (indent, text) = (blanks(line), line.trim());
        match open {
            None => {
                let Some(mark) = text.chars().next().filter(|c| matches!(c, '`' | '~')) else { continue };
                let length = text.len() - text.trim_start_matches(mark).len();
                let next = lines.get(at + 1).copied().unwrap_or_default();
                if length >= 3 && (indent == 0 || blanks(next) == indent && begins_patch(next.trim_start())) {
                    open = Some((mark, length, indent));
                }
            }
            Some((mark, length, depth)) if indent <= depth => {
                if text.len() >= length && text.chars().all(|c| c == mark) {
                    open = None;
                }
                if let Some(slot) = lines.get_mut(at) {
                    *slot = line.get(indent..).unwrap_or_default();
                }
            }
            Some((.., depth)) => {
                if let Some(slot) = lines.get_mut(at) {
                    *slot = line.get(depth..).unwrap_or_default();
                }
            }
        }
    }
}

/// Returns true for a line with which a diff or a patch begins.
fn begins_patch(line: &str) -> bool {
    ["--- ", "diff --git ", "@@", "*** "].iter().any(|start| line.starts_with(start))
}

/// A line without the carriage return that ends it.
pub(crate) fn strip_carriage_return(line: &str) -> &str {
    line.strip_suffix('\r').unwrap_or(line)
}

/// The content of a line that begins with `@@`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct HunkHeader {
    /// The 1-based line of the old file before which, or at which, the hunk begins.
    pub(crate) near: Option<u32>,
    /// The stated numbers of lines of the old and the new side.
    pub(crate) counts: Option<(u32, u32)>,
    /// A line that stands before the hunk.
    pub(crate) anchor: Option<String>,
}

/// Reads the header of a hunk; `None` where the line isn't one.
pub(crate) fn parse_hunk_header(line: &str) -> Option<HunkHeader> {
    let rest = strip_carriage_return(line).strip_prefix("@@").filter(|rest| !rest.starts_with('@'))?;
    let mut head = HunkHeader::default();
    let text = match parse_header_ranges(rest) {
        Some((old, new, heading)) => {
            // If the old side has no lines, its number is that of the line before.
            head.near = Some(if old.1 == 0 { old.0.saturating_add(1) } else { old.0.max(1) });
            head.counts = Some((old.1, new.1));
            heading
        }
        None => rest,
    };
    let text = text.strip_prefix(' ').unwrap_or(text).trim_end();
    let text = text.strip_suffix("@@").unwrap_or(text).trim_end();
    let dots = text.trim().chars().all(|c| matches!(c, '.' | '…' | '@' | ' ' | '-' | '+' | ','));
    head.anchor = (!dots).then(|| text.to_owned());
    Some(head)
}

/// A range of a hunk's header: where it begins and how many lines it has.
type HeaderRange = (u32, u32);

/// `-1,2 +3,4 @@ heading`, with what may be left out.
fn parse_header_ranges(text: &str) -> Option<(HeaderRange, HeaderRange, &str)> {
    let (old, rest) = parse_header_range(text.trim_start().strip_prefix('-')?)?;
    let (new, rest) = parse_header_range(rest.trim_start().strip_prefix('+')?)?;
    let heading = rest.trim_start();
    match heading.strip_prefix("@@") {
        Some(heading) => Some((old, new, heading)),
        None if heading.is_empty() => Some((old, new, heading)),
        None => None,
    }
}

fn parse_header_range(text: &str) -> Option<(HeaderRange, &str)> {
    let (start, rest) = parse_number(text)?;
    match rest.strip_prefix(',').and_then(parse_number) {
        Some((count, rest)) => Some(((start, count), rest)),
        None => Some(((start, 1), rest)),
    }
}

fn parse_number(text: &str) -> Option<(u32, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let digits = text.get(..end).filter(|digits| !digits.is_empty())?;
    Some((digits.parse().unwrap_or(u32::MAX), text.get(end..)?))
}

/// The kind and the text of a hunk's line by its prefix.
pub(crate) fn parse_patch_line(text: &str) -> PatchLine {
    let (kind, text) = match text.as_bytes().first() {
        Some(b'+') => (LineKind::Add, text.get(1..)),
        Some(b'-') => (LineKind::Remove, text.get(1..)),
        Some(b' ') => (LineKind::Context, text.get(1..)),
        _ => (LineKind::Bare, Some(text)),
    };
    PatchLine { kind, text: text.unwrap_or_default().to_owned() }
}

/// Notes a `\ No newline at end of file` after the hunk's last line.
pub(crate) fn mark_missing_newline(hunk: &mut PatchHunk) {
    let (mut old, mut new) = hunk.final_break.unwrap_or((true, true));
    match hunk.lines.last().map(|line| line.kind) {
        Some(LineKind::Remove) => old = false,
        Some(LineKind::Add) => new = false,
        Some(LineKind::Context | LineKind::Bare) => (old, new) = (false, false),
        None => return,
    }
    hunk.final_break = Some((old, new));
}

/// Returns true if a hunk says that anything changes.
pub(crate) fn changes_anything(hunk: &PatchHunk) -> bool {
    hunk.lines.iter().any(|line| matches!(line.kind, LineKind::Add | LineKind::Remove))
}

/// The content of a new file, from a hunk that only adds; the nth line (0-based) that doesn't where
/// it isn't one.
pub(crate) fn created_content(hunk: &PatchHunk, line_break: &str) -> Result<String, usize> {
    let last = hunk.lines.iter().rposition(|line| line.kind == LineKind::Add).map_or(0, |at| at + 1);
    let mut out = String::with_capacity(hunk.lines.iter().map(|line| line.text.len() + 1).sum());
    for (nth, line) in hunk.lines.iter().enumerate() {
        let blank = line.text.is_empty() && line.kind == LineKind::Bare;
        match line.kind {
            LineKind::Add => {}
            _ if blank && nth >= last => continue,
            _ if blank && nth > 0 => {}
            _ => return Err(nth),
        }
        out.push_str(&line.text);
        out.push_str(line_break);
    }
    if matches!(hunk.final_break, Some((_, false))) {
        out.truncate(out.len() - line_break.len().min(out.len()));
    }
    Ok(out)
}

/// Takes the blank away that a model puts after every `+` of a new file: no line begins without
/// one, and some with no other.
pub(crate) fn drop_common_blank(hunk: &mut PatchHunk) {
    let filled = || hunk.lines.iter().filter(|line| !line.text.trim().is_empty());
    let all = filled().all(|line| line.text.starts_with(' '));
    if all && filled().any(|line| !line.text.starts_with("  ")) {
        for line in &mut hunk.lines {
            line.text = line.text.strip_prefix(' ').unwrap_or(&line.text).to_owned();
        }
    }
}

/// Gives the lines that come to an empty file the carriage returns that end the patch's own lines:
/// nothing of the file says how its lines end.
pub(crate) fn keep_carriage_returns(source: &ReplySource<'_>, path: &RelPath, hunks: &mut [PatchHunk]) {
    if !matches!(source.files.text(path), Ok(Some(text)) if text.is_empty()) {
        return;
    }
    let lines = hunks.iter_mut().flat_map(|hunk| &mut hunk.lines);
    for line in lines.filter(|line| line.kind == LineKind::Add) {
        line.text.push('\r');
    }
}

/// Takes the mark with which a model closes its patch away from the end of each hunk, where the
/// file has no such line.
pub(crate) fn drop_closing_marks(source: &ReplySource<'_>, path: &RelPath, hunks: &mut [PatchHunk]) {
    let is_own = |mark: &str| {
        let text = source.files.text(path).ok().flatten();
        text.is_some_and(|text| text.lines().any(|line| line.trim() == mark))
    };
    for hunk in hunks {
        let Some(last) = hunk.lines.iter().rposition(|line| !line.text.trim().is_empty()) else { continue };
        let is_mark = hunk.lines.get(last).is_some_and(|line| {
            let text = line.text.trim_end();
            line.kind == LineKind::Bare && CLOSING_MARKS.contains(&text) && !is_own(text)
        });
        if is_mark {
            hunk.lines.truncate(last);
        }
    }
}

/// A fault of a patch at a 0-based line of the reply.
pub(crate) fn patch_problem(
    kind: ProblemKind,
    line: usize,
    subject: Option<&str>,
    message: String,
) -> BlockProblem {
    let line = u32::try_from(line).unwrap_or(u32::MAX).saturating_add(1);
    BlockProblem { kind, line, subject: subject.map(|name| name.escape_debug().to_string()), message }
}

/// The path behind two sides with other names than git's, such as `old/x` and `new/x`.
fn path_without_sides(names: &[&str]) -> Option<RelPath> {
    let [new, old] = names else { return None };
    let ((new_side, new), (old_side, old)) = (new.split_once('/')?, old.split_once('/')?);
    (new == old && new_side != old_side).then(|| RelPath::parse(new).ok())?
}

/// Endings with which models and tools name a copy of a file.
const COPY_ENDINGS: [&str; 6] = [".orig", ".old", ".bak", ".new", ".modified", "~"];

/// Returns what is said of two sides that name two files, of which the old one is there: nobody can
/// tell if the file is meant to get the other name, or which of them is to change.
///
/// One name may have more directories before it, or an ending that says that it is a copy.
fn explain_two_files(source: &ReplySource<'_>, names: &[&str]) -> Option<String> {
    let [new, old] = names else { return None };
    let without_side = |name: &str| {
        let side = SIDE_PREFIXES.iter().find_map(|side| name.strip_prefix(side));
        let name = side.unwrap_or(name).trim_start_matches("./");
        COPY_ENDINGS.iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(name).to_owned()
    };
    let (new, old) = (without_side(new), without_side(old));
    let is_there = |name: &str| RelPath::parse(name).is_ok_and(|path| exists(source.files, &path));
    let within = |longer: &str, name: &str| longer.strip_suffix(name).is_some_and(|rest| rest.ends_with('/'));
    let related = within(&new, &old) || within(&old, &new) || path_without_sides(&[&new, &old]).is_some();
    let is_callers = |name: &str| source.path.is_some_and(|path| path.as_str() == Some(name));
    let two = new != old && is_there(&old) && (is_there(&new) || !related);
    (two && !is_callers(&old) && !is_callers(&new)).then(|| {
        format!(
            "its two sides name different files, {old} and {new}: give both the same name; to give the file \
             another name, add `rename from {old}` and `rename to {new}` below `diff --git`"
        )
    })
}

/// The file that is meant by one of the names, the likeliest name first. With `sided`, the names
/// may have git's prefixes.
///
/// # Errors
/// Why none of them can be a path.
pub(crate) fn resolve_path(source: &ReplySource<'_>, names: &[&str], sided: bool) -> Result<RelPath, String> {
    if let Some(message) = explain_two_files(source, names).filter(|_| sided) {
        return Err(message);
    }
    let stripped =
        |name: &str| SIDE_PREFIXES.iter().find_map(|side| name.strip_prefix(side)).map(str::to_owned);
    let pair = match names {
        [new, old] => new.starts_with("b/") && old.starts_with("a/"),
        [only] => only.starts_with("a/") || only.starts_with("b/"),
        _ => false,
    };
    let mut ways: Vec<String> = Vec::new();
    for name in names {
        let plain = name.trim_start_matches("./").to_owned();
        let short = if sided { stripped(name) } else { None };
        let (first, second) = if pair { (short, Some(plain)) } else { (Some(plain), short) };
        ways.extend(first);
        ways.extend(second);
    }
    let parsed: Vec<RelPath> = ways.iter().filter_map(|way| RelPath::parse(way).ok()).collect();
    if let Some(there) = parsed.iter().find(|path| exists(source.files, path)) {
        return Ok(there.clone());
    }
    if let Some(path) = path_without_sides(names).filter(|path| sided && exists(source.files, path)) {
        return Ok(path);
    }
    // A path from the root may be one of the project's written out, or one that only looks so.
    for way in ways.iter().filter(|way| way.starts_with('/')) {
        let inner = RelPath::parse(way.trim_start_matches('/')).ok();
        let known = |path: &RelPath| exists(source.files, path) || source.path == Some(path);
        if let Some(path) = inner.filter(known) {
            return Ok(path);
        }
    }
    if let Some(path) = ways.iter().find_map(|way| path_in_checkout(way, source)) {
        return Ok(path);
    }
    if let (true, Some(path)) = (ways.iter().any(|way| way.starts_with('/')), source.path) {
        return Ok(path.clone());
    }
    // None is there: as git means it, without the side.
    let name = names.first().copied().unwrap_or_default();
    let name = if sided { stripped(name).unwrap_or_else(|| name.to_owned()) } else { name.to_owned() };
    RelPath::parse(&name).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_table() {
        let head = |near, counts, anchor: Option<&str>| {
            Some(HunkHeader { near, counts, anchor: anchor.map(str::to_owned) })
        };
        let cases = [
            ("@@", head(None, None, None)),
            ("@@ ... @@", head(None, None, None)),
            ("@@ -1,3 +1,4 @@", head(Some(1), Some((3, 4)), None)),
            ("@@ -7 +8 @@ fn foo() {", head(Some(7), Some((1, 1)), Some("fn foo() {"))),
            ("@@ -0,0 +1,2 @@", head(Some(1), Some((0, 2)), None)),
            ("@@ -3,0 +4,2 @@\r", head(Some(4), Some((0, 2)), None)),
            ("@@ -1,2 +1,2", head(Some(1), Some((2, 2)), None)),
            ("@@     def f():", head(None, None, Some("    def f():"))),
            ("@@ class A @@", head(None, None, Some("class A"))),
            ("@@@ -1 -1 +1 @@@", None),
            ("@ -1 +1 @", None),
        ];
        for (line, expected) in cases {
            assert_eq!(super::parse_hunk_header(line), expected, "{line}");
        }
    }
}
