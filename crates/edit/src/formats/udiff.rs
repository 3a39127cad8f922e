//! Unified diffs, as `diff -u` and git write them and as models do.
//!
//! Models nearly always get only minor parts of a diff wrong: the line numbers, the counts, the
//! `a/` and `b/` before names, the header as a whole. The lines carry the meaning, and the reader
//! keeps each of them: a line that cannot belong to a hunk makes the file's edit a problem with the
//! line's number.

pub(in crate::formats) mod context;
mod fault;
pub(in crate::formats) mod headless;
mod heredoc;
pub(in crate::formats) mod names;
mod section;

use std::borrow::Cow;

use crate::edit::{LineKind, PatchHunk};
use crate::formats::announced_paths::announced_path;
use crate::formats::block::ProblemKind;
use crate::formats::hunks::{
    self, BEGIN_PATCH, END_PATCH, HunkHeader, MAX_HUNKS, MAX_REPLY_BYTES, strip_carriage_return,
};
use crate::formats::{Format, ParsedReply, ReplySource, paths};
use names::HeaderName;
use section::FileSection;

/// Languages of fenced blocks in which a diff is looked for; another language's block shows code.
const DIFF_FENCES: [&str; 8] = ["", "diff", "patch", "udiff", "text", "txt", "git", "plaintext"];

/// Reads a reply.
pub(crate) fn read(source: &ReplySource<'_>) -> ParsedReply {
    if let Cow::Owned(reply) = heredoc::without_commands(source.reply) {
        return read(&ReplySource { reply: &reply, ..*source });
    }
    if context::has_context_hunk(source.reply) {
        let unified = context::to_unified(source.reply);
        if !context::has_context_hunk(&unified) {
            return read(&ReplySource { reply: &unified, ..*source });
        }
        let message = "a context diff's hunk can't be read: its old and new lines don't belong together; send a unified diff";
        let problem = hunks::patch_problem(ProblemKind::Malformed, 0, None, message.to_owned());
        return ParsedReply {
            format: Some(Format::Udiff),
            problems: vec![problem],
            ..ParsedReply::default()
        };
    }
    let mut reader = DiffReader {
        source,
        lines: Vec::new(),
        starts: Vec::new(),
        at: 0,
        named_from: 0,
        envelope: None,
        fence: None,
        section: None,
        hunks: 0,
        reading: ParsedReply { format: Some(Format::Udiff), ..ParsedReply::default() },
    };
    if source.reply.len() > MAX_REPLY_BYTES {
        let message =
            format!("the reply has {} bytes; at most {MAX_REPLY_BYTES} are read", source.reply.len());
        reader.reading.problems.push(hunks::patch_problem(ProblemKind::TooMuch, 0, None, message));
        return reader.reading;
    }
    reader.lines = hunks::split_lines(source.reply);
    let mut start = 0;
    for line in &reader.lines {
        reader.starts.push(start);
        start += line.len() + 1;
    }
    hunks::strip_fence_indents(&mut reader.lines);
    reader.read_lines();
    reader.reading.prose = reader.reading.prose.trim().to_owned();
    if reader.reading.edits.is_empty() && reader.reading.problems.is_empty() && is_bare_hunk(source) {
        return read(&ReplySource { reply: &format!("@@ @@\n{}", source.reply), ..*source });
    }
    reader.reading
}

/// Returns true for the lines of a hunk without any header, for the caller's file.
fn is_bare_hunk(source: &ReplySource<'_>) -> bool {
    let mut lines = source.reply.lines().filter(|line| !line.is_empty()).peekable();
    source.path.is_some()
        && lines.peek().is_some()
        && lines.all(|line| line.starts_with([' ', '-', '+']))
        && source.reply.lines().any(|line| line.starts_with([' ', '-']))
        && source.reply.lines().any(|line| line.starts_with(['+', '-']))
}

/// A fenced block that is open: its mark's character and length, and whether a diff may be in it.
#[derive(Clone, Copy)]
struct OpenFence {
    mark: char,
    length: usize,
    diff: bool,
    /// The line of its opening mark.
    line: usize,
}

struct DiffReader<'a> {
    source: &'a ReplySource<'a>,
    lines: Vec<&'a str>,
    /// The offset of each line.
    starts: Vec<usize>,
    at: usize,
    /// The first line that may name the file of the next hunk.
    named_from: usize,
    /// The line of the last `*** Begin Patch` around the diff.
    envelope: Option<usize>,
    fence: Option<OpenFence>,
    section: Option<FileSection<'a>>,
    hunks: usize,
    reading: ParsedReply,
}

impl<'a> DiffReader<'a> {
    fn line_at(&self, at: usize) -> Option<&'a str> {
        self.lines.get(at).copied()
    }

    fn read_lines(&mut self) {
        while let Some(line) = self.line_at(self.at) {
            let here = self.at;
            self.read_line(line);
            // Each step takes a line or more: nothing that is written can stop the reader.
            self.at = self.at.max(here + 1);
            if self.hunks > MAX_HUNKS {
                let message = format!("the reply has more than {MAX_HUNKS} hunks; the rest was not read");
                self.reading.problems.push(hunks::patch_problem(ProblemKind::TooMuch, here, None, message));
                return;
            }
        }
        if let Some(section) = &mut self.section
            && !self.source.finished
            && !section.whole
        {
            section.fault =
                Some((ProblemKind::Incomplete, section.line, "the reply ends inside the diff".to_owned()));
        }
        self.close_section();
    }

    fn read_line(&mut self, line: &'a str) {
        let readable = self.fence.is_none_or(|fence| fence.diff);
        match line.as_bytes().first() {
            Some(b'`' | b'~' | b' ') if self.toggle_fence(line) => {}
            Some(b'd') if readable && line.starts_with("diff --git ") => self.read_git_header(line),
            Some(b'-' | b'+') if readable && self.read_file_header() => {}
            Some(b'@') if readable && line.starts_with("@@@ ") => {
                let message = "a combined diff of a merge can't be applied; send a plain one".to_owned();
                self.reading.problems.push(hunks::patch_problem(
                    ProblemKind::Malformed,
                    self.at,
                    None,
                    message,
                ));
            }
            Some(b'@') if readable => match hunks::parse_hunk_header(line) {
                Some(head) if self.section.is_some() || head.counts.is_some() || self.is_hunk_ahead() => {
                    self.name_from_above();
                    self.at += 1;
                    self.read_hunk(Some(head), line.ends_with('\r'));
                }
                _ => self.read_prose_line(line),
            },
            Some(b'*') if readable && is_envelope_mark(line) => {
                if strip_carriage_return(line).trim_end() == BEGIN_PATCH {
                    self.envelope = Some(self.at);
                }
                self.at += 1;
            }
            Some(b'B' | b'G') if readable && is_binary_notice(line) => {
                let message = "it changes a binary file, which only a command can".to_owned();
                match &mut self.section {
                    Some(section) => section.note_fault(self.at, message),
                    None => {
                        let problem = hunks::patch_problem(ProblemKind::Malformed, self.at, None, message);
                        self.reading.problems.push(problem);
                    }
                }
            }
            _ => self.read_prose_line(line),
        }
    }

    fn read_prose_line(&mut self, line: &str) {
        self.reading.prose.push_str(line);
        self.reading.prose.push('\n');
        self.at += 1;
    }

    /// Returns true if the lines below a line with `@@` can be a hunk's: one of them has a prefix
    /// before the fence ends, or outside of a fence before a blank line.
    fn is_hunk_ahead(&self) -> bool {
        for (ahead, line) in self.lines.iter().enumerate().skip(self.at + 1) {
            match line.as_bytes().first() {
                Some(b'@') if line.starts_with("@@") => return false,
                Some(b'-' | b'+') if self.names_at(ahead).is_some() => return false,
                Some(b' ' | b'-' | b'+') => return true,
                Some(b'`' | b'~') if self.closes_fence(line) => return false,
                _ if self.fence.is_none() && strip_carriage_return(line).is_empty() => return false,
                _ => {}
            }
        }
        false
    }

    /// Begins the section of the hunk at this line if the lines above name its file and no header
    /// does.
    fn name_from_above(&mut self) {
        let section = self.section.as_ref();
        if section.is_some_and(|section| section.has_header() && section.hunks.is_empty()) {
            return;
        }
        let starts = (self.starts.get(self.named_from), self.starts.get(self.line_below_name()));
        let (Some(&from), Some(&start)) = starts else { return };
        let above = paths::find_name_above(self.source, from, start);
        let named = match (above.name, above.prose) {
            (Some(name), _) => paths::resolve_path(name, self.source),
            // Words name a file only where nothing else does.
            (None, Some(line)) if section.is_none() && self.source.path.is_none() => {
                match (paths::paths_in_prose(line, self.source).as_slice(), announced_path(line)) {
                    ([only], _) => Ok(only.clone()),
                    ([], Some(name)) => paths::resolve_path(name, self.source),
                    _ => return,
                }
            }
            _ => return,
        };
        let same = |section: &FileSection<'_>| {
            section.resolve_path(self.source, false).is_ok_and(|path| Ok(path) == named)
        };
        if !section.is_some_and(same) {
            self.close_section();
            self.section = Some(FileSection::named_above(self.at, named));
        }
        if above.name.is_some() {
            self.drop_name_from_prose(above.start, start);
        }
    }

    /// The line above which a name for the hunk at this line may stand: the hunk's, or that of the
    /// envelope around it.
    fn line_below_name(&self) -> usize {
        let begins = |at: usize| {
            let between = self.lines.get(at + 1..self.at).unwrap_or_default();
            at >= self.named_from && between.iter().all(|line| line.trim().is_empty())
        };
        self.envelope.filter(|&at| begins(at)).unwrap_or(self.at)
    }

    /// Takes a name between these offsets out of the prose if it stands inside the open fence: what
    /// is left of the fence would look like a file.
    fn drop_name_from_prose(&mut self, name: usize, hunk: usize) {
        let Some(fence) = self.fence else { return };
        let inside = self.starts.get(self.named_from.max(fence.line + 1)).copied();
        let Some(inside) = inside.filter(|&inside| name >= inside) else { return };
        let prose = &mut self.reading.prose;
        if let Some(lines) = self.source.reply.get(inside..hunk)
            && prose.ends_with(lines)
        {
            prose.truncate(prose.len() - lines.len());
        }
    }

    /// Opens or closes a fenced block where the line does.
    fn toggle_fence(&mut self, line: &'a str) -> bool {
        let text = line.trim();
        let Some(mark) = text.chars().next().filter(|c| matches!(c, '`' | '~')) else { return false };
        let length = text.len() - text.trim_start_matches(mark).len();
        let info = text.get(length..).unwrap_or_default().trim();
        match self.fence {
            Some(fence) if mark == fence.mark && length >= fence.length && info.is_empty() => {
                self.fence = None;
                if let Some(section) = &mut self.section {
                    section.whole = true;
                }
            }
            None if length >= 3 && !info.contains(mark) => {
                let language =
                    info.split([' ', '\t', ':', '{']).next().unwrap_or_default().to_ascii_lowercase();
                let diff = DIFF_FENCES.contains(&language.as_str()) || self.begins_diff(self.at + 1);
                self.fence = Some(OpenFence { mark, length, diff, line: self.at });
                self.read_prose_line(line);
                self.read_headless_fence(info);
                return true;
            }
            _ => return false,
        }
        self.read_prose_line(line);
        true
    }

    /// Reads the lines of the fence that has just been opened as a hunk, if they are one without a
    /// header whose file is named, or that follows another hunk.
    fn read_headless_fence(&mut self, info: &'a str) {
        let bounds = (
            self.starts.get(self.named_from),
            self.starts.get(self.at.saturating_sub(1)),
            self.starts.get(self.at),
        );
        let (Some(&from), Some(&fence), Some(&body)) = bounds else { return };
        if !headless::is_headless_diff(info, self.source.reply.get(body..).unwrap_or_default()) {
            return;
        }
        let named = headless::name_of_headless_diff(self.source, info, (from.min(fence), fence), body);
        match named {
            Some(name) => {
                self.close_section();
                let path = paths::resolve_path(name, self.source);
                self.section = Some(FileSection::named_above(self.at, path));
                let inside = headless::name_on_first_line(self.source, body);
                self.at += inside.filter(|(inside, _)| *inside == name).map_or(0, |(_, nth)| nth + 1);
            }
            // A further one is for the same file.
            None if self.section.is_some() => {}
            None => return,
        }
        let transport = self.line_at(self.at).is_some_and(|line| line.ends_with('\r'));
        self.read_hunk(Some(HunkHeader::default()), transport);
        if let Some(section) = &mut self.section {
            section.refuse_unplaced_lines(self.source);
        }
    }

    /// Takes the names of a file where they stand here, and a hunk without a header after them.
    fn read_file_header(&mut self) -> bool {
        let Some((old, new, count)) = self.names_at(self.at) else { return false };
        let transport = self.line_at(self.at).is_some_and(|line| line.ends_with('\r'));
        // After git's own header the names belong to it.
        match &mut self.section {
            Some(section) if section.takes_names([old.as_ref(), new.as_ref()]) => {
                (section.old, section.new) = (old, new);
            }
            _ => {
                self.close_section();
                self.section = Some(FileSection::with_names(self.at, old, new));
            }
        }
        self.at += count;
        self.named_from = self.at;
        let mut next = self.at;
        while self.line_at(next).is_some_and(|line| strip_carriage_return(line).is_empty()) {
            next += 1;
        }
        let prefixed = self.line_at(self.at).is_some_and(|line| line.starts_with([' ', '+', '-']));
        if self.line_at(next).is_some_and(|line| line.starts_with("@@")) {
            self.at = next;
        } else if prefixed && self.names_at(self.at).is_none() {
            self.read_hunk(None, transport);
        }
        true
    }

    /// The names that a header at this line gives, and how many lines it has. One of the two may be
    /// missing before a hunk's header.
    fn names_at(&self, at: usize) -> Option<(Option<HeaderName>, Option<HeaderName>, usize)> {
        let line = self.line_at(at)?;
        let next = self.line_at(at + 1).unwrap_or_default();
        if let Some(old) = line.strip_prefix("---") {
            let old = names::parse_header_name(old)?;
            if let Some(new) = next.strip_prefix("+++").and_then(names::parse_header_name) {
                return Some((Some(old), Some(new), 2));
            }
            return (line.starts_with("--- ") && next.starts_with("@@")).then_some((Some(old), None, 1));
        }
        let new = names::parse_header_name(line.strip_prefix("+++ ")?)?;
        next.starts_with("@@").then_some((None, Some(new), 1))
    }

    /// Returns true if a file's header stands at this line.
    fn begins_diff(&self, at: usize) -> bool {
        self.line_at(at).is_some_and(|line| line.starts_with("diff --git "))
            || matches!(self.names_at(at), Some((.., 2)))
    }

    /// Reads `diff --git` and the lines that extend it.
    fn read_git_header(&mut self, line: &'a str) {
        self.close_section();
        let mut section = FileSection::at_line(self.at);
        section.git =
            Some(names::parse_git_names(strip_carriage_return(line).trim_start_matches("diff --git ")));
        self.at += 1;
        while let Some(line) = self.line_at(self.at) {
            if !section.read_extended_header(strip_carriage_return(line)) {
                break;
            }
            self.at += 1;
        }
        self.named_from = self.at;
        self.section = Some(section);
    }

    /// Reads a hunk's lines. Without a header each line has to have a prefix.
    fn read_hunk(&mut self, head: Option<HunkHeader>, transport: bool) {
        let first = self.at;
        let headless = head.is_none();
        let head = head.unwrap_or_default();
        let mut hunk =
            PatchHunk { near: head.near, anchors: head.anchor.into_iter().collect(), ..PatchHunk::default() };
        let mut left = head.counts;
        let mut fault = None;
        let mut goes_on_at = 0;
        while let Some(line) = self.line_at(self.at) {
            if self.ends_hunk(line, left) {
                break;
            }
            let text = if transport { strip_carriage_return(line) } else { line };
            let done = left == Some((0, 0));
            if strip_carriage_return(line).is_empty() {
                if done && self.at >= goes_on_at {
                    let Some(at) = self.line_of_continued_hunk() else { break };
                    goes_on_at = at;
                }
                decrement_lines_left(&mut left, LineKind::Context);
                hunk.lines.push(hunks::parse_patch_line(strip_carriage_return(text)));
            } else if line.starts_with("\\ ") {
                hunks::mark_missing_newline(&mut hunk);
            } else {
                let line = hunks::parse_patch_line(text);
                if line.kind == LineKind::Bare {
                    if done && self.fence.is_none() {
                        break;
                    }
                    if headless {
                        fault = fault.or(Some(self.at));
                    }
                }
                decrement_lines_left(&mut left, line.kind);
                hunk.lines.push(line);
            }
            self.at += 1;
        }
        let moved = match self.fence {
            None if left.is_none() => self.move_tail_to_prose(&mut hunk),
            _ => 0,
        };
        self.named_from = self.at.saturating_sub(moved);
        let section = self.section.get_or_insert_with(|| FileSection::at_line(first));
        section.whole = left == Some((0, 0));
        section.crlf |= transport;
        if let Some(at) = fault {
            let message =
                "the line begins with none of blank, `+` and `-`, and no `@@` line opens its hunk".to_owned();
            section.note_fault(at, message);
        }
        self.hunks += 1;
        if hunks::changes_anything(&hunk) {
            section.hunks.push((first, hunk));
        } else if !hunk.lines.is_empty() {
            section.unchanged.get_or_insert(hunk);
        }
    }

    /// Returns true if a hunk is over before this line. `left` is how many lines its header still
    /// promises.
    fn ends_hunk(&self, line: &str, left: Option<(u32, u32)>) -> bool {
        match line.as_bytes().first() {
            Some(b'@') => line.starts_with("@@"),
            Some(b'd') => line.starts_with("diff --git "),
            Some(b'`' | b'~') => self.closes_fence(line),
            Some(b'*') => self.envelope.is_some() && is_envelope_mark(line),
            Some(b'#' | b'/' | b'<' | b';' | b'%') => self.names_next_file(line),
            Some(b'-') => {
                let done = left == Some((0, 0));
                // The signature that mail clients and `git format-patch` put below.
                if done && matches!(strip_carriage_return(line), "-- " | "--") {
                    return true;
                }
                let Some((.., 2)) = self.names_at(self.at) else { return false };
                let hunk_follows = self.line_at(self.at + 2).is_none_or(|line| line.starts_with("@@"));
                match left {
                    None => true,
                    Some((0, 0)) => true,
                    // A removed line that begins with `--` and an added one with `++`, if the
                    // header counts them.
                    Some((1, 1)) => false,
                    Some(_) => hunk_follows,
                }
            }
            _ => false,
        }
    }

    fn closes_fence(&self, line: &str) -> bool {
        let text = line.trim_end();
        self.fence.is_some_and(|fence| text.len() >= fence.length && text.chars().all(|c| c == fence.mark))
    }

    /// Returns true if this line of a hunk is a comment that names the next hunk's file: in a diff
    /// without headers, with `@@` below it.
    fn names_next_file(&self, line: &str) -> bool {
        self.line_at(self.at + 1).is_some_and(|line| line.starts_with("@@"))
            && self.section.as_ref().is_some_and(|section| !section.has_header())
            && paths::labelled_path(line, self.source).is_some()
    }

    /// The line at which the hunk goes on after blank ones, although its header's counts are used
    /// up.
    fn line_of_continued_hunk(&self) -> Option<usize> {
        let rest = self.lines.get(self.at..)?;
        let ahead = rest.iter().position(|line| !strip_carriage_return(line).is_empty())?;
        let at = self.at + ahead;
        let line = rest.get(ahead)?;
        let item = line.strip_prefix("- ").or_else(|| line.strip_prefix("+ "));
        // Outside of a fence a list may follow: hardly a line is indented by one blank.
        let is_item = self.fence.is_none()
            && item.is_some_and(|text| text.starts_with(|c: char| c.is_alphanumeric() || c == '`'));
        let prefixed = line.starts_with([' ', '+', '-'])
            && !is_item
            && !matches!(strip_carriage_return(line), "-- " | "--");
        (prefixed && self.names_at(at).is_none()).then_some(at)
    }

    /// Outside of a fenced block, lines without prefixes after a hunk and a blank line are the
    /// reply's text again. Returns how many they are.
    fn move_tail_to_prose(&mut self, hunk: &mut PatchHunk) -> usize {
        let last = hunk.lines.iter().rposition(|line| line.kind != LineKind::Bare).map_or(0, |at| at + 1);
        let tail = hunk.lines.get(last..).unwrap_or_default();
        let Some(blank) = tail.iter().position(|line| line.text.is_empty()) else { return 0 };
        for line in tail.iter().skip(blank) {
            self.reading.prose.push_str(&line.text);
            self.reading.prose.push('\n');
        }
        let moved = tail.len() - blank;
        hunk.lines.truncate(last + blank);
        moved
    }

    /// The file's edit, or what is wrong with it.
    fn close_section(&mut self) {
        let Some(section) = self.section.take() else { return };
        match section.into_edit(self.source) {
            Ok(edit) => self.reading.edits.push(edit),
            Err(problem) => self.reading.problems.push(problem),
        }
    }
}

fn decrement_lines_left(left: &mut Option<(u32, u32)>, kind: LineKind) {
    if let Some((old, new)) = left {
        let (of_old, of_new) = (kind != LineKind::Add, kind != LineKind::Remove);
        *old = old.saturating_sub(u32::from(of_old));
        *new = new.saturating_sub(u32::from(of_new));
    }
}

/// Returns true for the first and the last line of a V4A patch, which some models put around a
/// diff.
fn is_envelope_mark(line: &str) -> bool {
    matches!(strip_carriage_return(line).trim_end(), BEGIN_PATCH | END_PATCH)
}

fn is_binary_notice(line: &str) -> bool {
    line.starts_with("GIT binary patch")
        || (line.starts_with("Binary files ") && strip_carriage_return(line).ends_with(" differ"))
}
