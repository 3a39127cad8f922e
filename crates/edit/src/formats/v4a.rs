//! Patches in the envelope `*** Begin Patch` (V4A), also without its envelope.

mod envelope;

use std::collections::HashSet;

use crate::edit::{Edit, EditOp, LineKind, PatchHunk};
use crate::formats::block::ProblemKind;
use crate::formats::hunks::{self, MAX_HUNKS, MAX_REPLY_BYTES, strip_carriage_return};
use crate::formats::udiff::names;
use crate::formats::{Format, ParsedReply, ReplySource};
use envelope::{Marker, looks_like_marker, parse_marker};
use journeyman_protocol::RelPath;

/// Reads a reply.
pub(crate) fn read(source: &ReplySource<'_>) -> ParsedReply {
    let mut reading = ParsedReply { format: Some(Format::Patch), ..ParsedReply::default() };
    if source.reply.len() > MAX_REPLY_BYTES {
        let message =
            format!("the reply has {} bytes; at most {MAX_REPLY_BYTES} are read", source.reply.len());
        reading.problems.push(hunks::patch_problem(ProblemKind::TooMuch, 0, None, message));
        return reading;
    }
    let text = envelope::unescape_patch(source.reply);
    let mut lines = hunks::split_lines(&text);
    hunks::strip_fence_indents(&mut lines);
    let mut prose = String::new();
    let mut at = 0;
    let mut hunks_left = MAX_HUNKS;
    let mut found = false;
    while let Some(body) = envelope::find_next_patch(&lines, at) {
        found = true;
        push_prose(&mut prose, &lines, at..body.from);
        let mut reader = PatchReader::new(source, &lines, hunks_left);
        reader.read_sections(&body, &mut reading);
        hunks_left = reader.hunks_left;
        at = body.next;
    }
    if !found && let Some(path) = source.path {
        let body = envelope::whole_reply_range(&lines);
        let mut reader = PatchReader::new(source, &lines, hunks_left);
        reader.read_without_envelope(path, &body, &mut reading);
        at = lines.len();
    }
    push_prose(&mut prose, &lines, at..lines.len());
    reading.prose = prose.trim().to_owned();
    reading
}

fn push_prose(prose: &mut String, lines: &[&str], range: std::ops::Range<usize>) {
    for line in lines.get(range).unwrap_or_default() {
        prose.push_str(line);
        prose.push('\n');
    }
}

/// A problem: the kind, the 0-based line, the message.
type PatchFault = (ProblemKind, usize, String);

/// Beginnings of the lines that name a file in a unified diff.
const DIFF_HEADER_STARTS: [&str; 7] =
    ["diff --git ", "index ", "old mode ", "new mode ", "similarity index ", "--- ", "+++ "];
/// Maximum number of lines before a unified diff's first hunk.
const MAX_DIFF_HEADER_LINES: usize = 8;

/// The names that a unified diff gives for a file, the new one first, and how many lines it takes.
struct DiffHeader {
    names: Vec<String>,
    lines: usize,
}

/// The hunks of one file: those that change it, and the first that doesn't.
#[derive(Default)]
struct FileHunks {
    changing: Vec<PatchHunk>,
    unchanged: Option<PatchHunk>,
}

struct PatchReader<'a> {
    source: &'a ReplySource<'a>,
    lines: &'a [&'a str],
    at: usize,
    until: usize,
    /// The patch itself has CRLF line endings.
    crlf: bool,
    hunks_left: usize,
}

impl<'a> PatchReader<'a> {
    fn new(source: &'a ReplySource<'a>, lines: &'a [&'a str], hunks_left: usize) -> Self {
        Self { source, lines, at: 0, until: 0, crlf: false, hunks_left }
    }

    /// The line, without what ends it where the whole patch is ended so.
    fn current_line(&self) -> Option<&'a str> {
        let line = self.lines.get(self.at).filter(|_| self.at < self.until)?;
        Some(if self.crlf { strip_carriage_return(line) } else { line })
    }

    /// Reads the files' sections between an envelope's marks.
    fn read_sections(&mut self, body: &envelope::PatchRange, reading: &mut ParsedReply) {
        (self.at, self.until, self.crlf) = (body.start, body.end, body.crlf);
        let mut count = 0;
        let mut updated: HashSet<&str> = HashSet::new();
        while let Some(line) = self.current_line() {
            let at = self.at;
            if strip_carriage_return(line).trim().is_empty() {
                self.at += 1;
                continue;
            }
            let (name, read) = match parse_marker(line, false) {
                Some(Marker::Environment | Marker::Begin | Marker::End) => {
                    self.at += 1;
                    continue;
                }
                Some(Marker::Add(name)) => (name, self.read_added_file(name, body)),
                Some(Marker::Delete(name)) => (name, self.read_deleted_file(name)),
                Some(Marker::Update(name)) if !updated.insert(name.trim()) => {
                    // Each section's hunks are in order; of two nobody says which text the second
                    // one means.
                    self.skip_to_next_section();
                    let message = "the patch has two sections for this file; put all of its hunks into one";
                    (name, Err((ProblemKind::Malformed, at, message.to_owned())))
                }
                Some(Marker::Update(name)) => {
                    let path = self.resolve_path(name);
                    self.at += 1;
                    (name, self.read_updated_file(path))
                }
                // Models mix the two formats: names as a unified diff has them, or none where the
                // caller has named the file.
                None if let Some(header) = self.diff_header() => {
                    let names: Vec<&str> = header.names.iter().map(String::as_str).collect();
                    let path = hunks::resolve_path(self.source, &names, true);
                    (line, self.read_updated_file(path.map_err(|error| (ProblemKind::Path, at, error))))
                }
                None if let (Some(path), true) = (self.source.path, line.starts_with("@@")) => {
                    ("", self.read_updated_file(Ok(path.clone())))
                }
                _ => {
                    let message = format!(
                        "`{}` is none of `*** Add File: PATH`, `*** Update File: PATH` and `*** Delete File: PATH`",
                        crate::outcome::truncate(strip_carriage_return(line), 100)
                    );
                    self.skip_to_next_section();
                    ("", Err((ProblemKind::Malformed, at, message)))
                }
            };
            count += 1;
            self.at = self.at.max(at + 1);
            let subject = Some(name).filter(|name| !name.is_empty());
            match read {
                Ok(edit) => reading.edits.push(edit),
                Err((kind, line, message)) => {
                    reading.problems.push(hunks::patch_problem(kind, line, subject, message));
                }
            }
        }
        if !body.closed && !self.source.finished {
            let message = "the reply ends before `*** End Patch`; send the whole patch again".to_owned();
            // The edit read last may lack its end.
            reading.edits.pop();
            reading.problems.push(hunks::patch_problem(ProblemKind::Incomplete, body.from, None, message));
        } else if count == 0 {
            let message = "the patch names no file".to_owned();
            reading.problems.push(hunks::patch_problem(ProblemKind::Malformed, body.from, None, message));
        }
    }

    /// A patch of the caller's file that has no envelope at all.
    fn read_without_envelope(
        &mut self,
        path: &RelPath,
        body: &envelope::PatchRange,
        reading: &mut ParsedReply,
    ) {
        (self.at, self.until, self.crlf) = (body.start, body.end, body.crlf);
        let begins = |line: &&str| line.starts_with(['+', '-']) || line.starts_with("@@");
        if !self.lines.get(body.start..body.end).unwrap_or_default().iter().any(begins) {
            return;
        }
        let subject = path.to_string();
        let read = self.read_hunks().and_then(|(mut hunks, _)| {
            if !self.source.finished {
                let message = "the reply ends inside the patch".to_owned();
                return Err((ProblemKind::Incomplete, body.start, message));
            }
            hunks::drop_closing_marks(self.source, path, &mut hunks);
            if self.crlf {
                hunks::keep_carriage_returns(self.source, path, &mut hunks);
            }
            let ops = hunks.into_iter().map(EditOp::Patch).collect();
            Ok(Edit { path: path.clone(), ops, description: None })
        });
        match read {
            Ok(edit) if edit.ops.is_empty() => {}
            Ok(edit) => reading.edits.push(edit),
            Err((kind, line, message)) => {
                reading.problems.push(hunks::patch_problem(kind, line, Some(&subject), message));
            }
        }
    }

    /// The header of a unified diff that begins at the current line, if a hunk follows it.
    fn diff_header(&self) -> Option<DiffHeader> {
        let rest = self.lines.get(self.at..self.until)?;
        let count = rest.iter().take(MAX_DIFF_HEADER_LINES).position(|line| line.starts_with("@@"))?;
        let header = rest.get(..count)?;
        let known = |line: &&str| DIFF_HEADER_STARTS.iter().any(|start| line.starts_with(start));
        if !header.iter().all(known) {
            return None;
        }
        let named = |start: &str| {
            let text = header.iter().find_map(|line| line.strip_prefix(start))?;
            names::parse_header_name(text)?.path().map(str::to_owned)
        };
        let names = vec![named("+++ ")?, named("--- ")?];
        Some(DiffHeader { names, lines: count })
    }

    fn resolve_path(&self, name: &str) -> Result<RelPath, PatchFault> {
        hunks::resolve_path(self.source, &[name], false).map_err(|error| (ProblemKind::Path, self.at, error))
    }

    /// To the next section, after something that none can have.
    fn skip_to_next_section(&mut self) {
        self.at += 1;
        while self
            .current_line()
            .is_some_and(|line| !parse_marker(line, false).is_some_and(|found| found.ends_previous_section()))
        {
            self.at += 1;
        }
    }

    fn read_added_file(&mut self, name: &str, body: &envelope::PatchRange) -> Result<Edit, PatchFault> {
        let path = self.resolve_path(name);
        self.at += 1;
        let first = self.at;
        let mut hunk = PatchHunk::default();
        while let Some(line) = self.current_line() {
            if parse_marker(line, false).is_some_and(|found| found.ends_previous_section()) {
                break;
            }
            if line.starts_with("\\ ") {
                hunks::mark_missing_newline(&mut hunk);
            } else if hunks::parse_hunk_header(line).is_some() {
                // Only hunks of a file that is there need one.
            } else {
                hunk.lines.push(hunks::parse_patch_line(if strip_carriage_return(line).is_empty() {
                    ""
                } else {
                    line
                }));
            }
            self.at += 1;
        }
        let line_break = if self.crlf { "\r\n" } else { "\n" };
        hunks::drop_common_blank(&mut hunk);
        let content = hunks::created_content(&hunk, line_break).map_err(|nth| {
            let message = "a new file's lines all begin with `+`".to_owned();
            (ProblemKind::Malformed, first + nth, message)
        })?;
        // Without its first mark a patch has no last one either.
        let may_go_on = !body.closed && (body.opened || !self.source.finished);
        if may_go_on && self.at >= self.until {
            let message =
                "the patch ends before `*** End Patch`, so that the new file may lack its end".to_owned();
            return Err((ProblemKind::Incomplete, self.at.saturating_sub(1), message));
        }
        Ok(Edit { path: path?, ops: vec![EditOp::Create { content }], description: None })
    }

    fn read_deleted_file(&mut self, name: &str) -> Result<Edit, PatchFault> {
        let path = self.resolve_path(name);
        self.at += 1;
        while let Some(line) = self.current_line() {
            if parse_marker(line, false).is_some_and(|found| found.ends_previous_section()) {
                break;
            }
            if !strip_carriage_return(line).trim().is_empty() {
                let at = self.at;
                self.skip_to_next_section();
                let message = "no line may follow `*** Delete File:`".to_owned();
                return Err((ProblemKind::Malformed, at, message));
            }
            self.at += 1;
        }
        Ok(Edit { path: path?, ops: vec![EditOp::Delete], description: None })
    }

    /// Reads the hunks of a file after the line with its name.
    fn read_updated_file(&mut self, path: Result<RelPath, PatchFault>) -> Result<Edit, PatchFault> {
        let first = self.at.saturating_sub(1);
        let mut to = None;
        while let Some(line) = self.current_line() {
            match parse_marker(line, false) {
                Some(Marker::Move(name)) => to = Some(self.parse_move_target(name)?),
                _ if strip_carriage_return(line).trim().is_empty() => {}
                None if looks_like_marker(line) => {
                    let name = crate::outcome::truncate(strip_carriage_return(line), 100);
                    let fault = (ProblemKind::Malformed, self.at, format!("a patch has no mark `{name}`"));
                    self.skip_to_next_section();
                    return Err(fault);
                }
                _ => break,
            }
            self.at += 1;
        }
        let (mut hunks, unchanged) = self.read_hunks()?;
        if let Ok(path) = &path {
            hunks::drop_closing_marks(self.source, path, &mut hunks);
            if self.crlf {
                hunks::keep_carriage_returns(self.source, path, &mut hunks);
            }
        }
        if hunks.is_empty() && to.is_none() {
            hunks.extend(unchanged);
        }
        let mut ops: Vec<EditOp> = hunks.into_iter().map(EditOp::Patch).collect();
        if let Some(to) = to {
            ops.push(EditOp::Rename { to });
        }
        if ops.is_empty() {
            let message = "its hunks change nothing: none has a line that begins with `+` or `-`".to_owned();
            return Err((ProblemKind::Malformed, first, message));
        }
        Ok(Edit { path: path?, ops, description: None })
    }

    fn parse_move_target(&self, name: &str) -> Result<RelPath, PatchFault> {
        let inner = match self.source.path {
            // A path from the root is one of the project's written out, where the file's own is.
            Some(_) => name.trim_start_matches('/'),
            None => name,
        };
        RelPath::parse(inner).map_err(|error| (ProblemKind::Path, self.at, error.to_string()))
    }

    /// The hunks of one file that change it, to the next file's mark, and the first that only
    /// repeats lines of the file.
    fn read_hunks(&mut self) -> Result<(Vec<PatchHunk>, Option<PatchHunk>), PatchFault> {
        let mut ops = FileHunks::default();
        let mut hunk = PatchHunk::default();
        let mut stacked = false;
        self.at += self.diff_header().map_or(0, |header| header.lines);
        while let Some(line) = self.current_line() {
            match line.as_bytes().first() {
                Some(b'@') if let Some(head) = hunks::parse_hunk_header(line) => {
                    if !hunk.lines.is_empty() {
                        let done = std::mem::take(&mut hunk);
                        hunk.anchors = self.push_hunk(&mut ops, done)?;
                        stacked = false;
                    }
                    match head.anchor {
                        Some(anchor) if stacked || hunk.anchors.is_empty() => hunk.anchors.push(anchor),
                        Some(anchor) => hunk.anchors = vec![anchor],
                        // A second `@@` makes the line of the first one more than advice.
                        None if stacked && !hunk.anchors.is_empty() => hunk.anchors.push(String::new()),
                        None => {}
                    }
                    hunk.near = head.near.or(hunk.near);
                    stacked = true;
                }
                Some(b'*') => match parse_marker(line, true) {
                    Some(Marker::EndOfFile) => {
                        hunk.at_end = true;
                        let done = std::mem::take(&mut hunk);
                        hunk.anchors = self.push_hunk(&mut ops, done)?;
                        stacked = false;
                    }
                    Some(found) if found.ends_previous_section() => break,
                    Some(_) => {
                        let message = "it stands where no such line may".to_owned();
                        let fault = (ProblemKind::Malformed, self.at, message);
                        self.skip_to_next_section();
                        return Err(fault);
                    }
                    None => hunk.lines.push(hunks::parse_patch_line(line)),
                },
                Some(b'\\') if line.starts_with("\\ ") => hunks::mark_missing_newline(&mut hunk),
                _ if strip_carriage_return(line).is_empty() => hunk.lines.push(hunks::parse_patch_line("")),
                _ => hunk.lines.push(hunks::parse_patch_line(line)),
            }
            self.at += 1;
        }
        self.push_hunk(&mut ops, hunk)?;
        Ok((ops.changing, ops.unchanged))
    }

    /// Takes a hunk that is complete, and gives the anchors that it leaves to the next: a hunk
    /// without changes only says where the next one is.
    fn push_hunk(&mut self, ops: &mut FileHunks, hunk: PatchHunk) -> Result<Vec<String>, PatchFault> {
        if !hunks::changes_anything(&hunk) {
            let kept = hunk.lines.iter().filter(|line| line.kind != LineKind::Add);
            let last = kept.map(|line| line.text.as_str()).rfind(|text| !text.trim().is_empty());
            let last = last.map(str::to_owned);
            if last.is_some() {
                ops.unchanged.get_or_insert(hunk);
            }
            return Ok(last.into_iter().collect());
        }
        self.hunks_left = self.hunks_left.checked_sub(1).ok_or_else(|| {
            (ProblemKind::TooMuch, self.at, format!("the reply has more than {MAX_HUNKS} hunks"))
        })?;
        ops.changing.push(hunk);
        Ok(Vec::new())
    }
}
