//! A reply read while it streams: events to show an edit as it grows, and the reading when it has ended.

use journeyman_protocol::RelPath;

use crate::change::{LineKind, PatchLine};
use crate::files::Files;
use crate::formats::blocks::MAX_REPLY_BYTES;
use crate::formats::json_stream::JsonStream;
use crate::formats::markers::{Mark, mark};
use crate::formats::{Format, Reading, Source, detect, paths, read};
use crate::lines::without_break;

/// What a part of a reply shows of an edit, for a surface to draw. Only the [`Reading`] at the end says what is to be
/// applied: an edit that was shown may still turn out to be faulty.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum StreamEvent {
    /// An edit has begun; the file, as the model wrote it.
    File {
        /// Which edit of the reply, 0-based.
        edit: usize,
        /// The path.
        path: String,
    },
    /// The whole text that is to be found.
    Search {
        /// Which edit.
        edit: usize,
        /// The text.
        text: String,
    },
    /// The next part of the text to put there, or of the file's content.
    Replacement {
        /// Which edit.
        edit: usize,
        /// The part.
        text: String,
    },
    /// A line of a patch.
    Line {
        /// Which edit.
        edit: usize,
        /// The line.
        line: PatchLine,
    },
    /// The edit has ended as edits of its format do.
    Complete {
        /// Which edit.
        edit: usize,
    },
}

/// Reads a reply as it comes. Each byte is looked at once for the events and once for the reading.
///
/// ```
/// use std::collections::BTreeMap;
/// use journeyman_edit::{Reader, StreamEvent};
///
/// let files = BTreeMap::new();
/// let mut reader = Reader::new(None, None, &files);
/// assert!(reader.push("a.rs\n<<<<<<< SEA").is_empty());
/// let events = reader.push("RCH\nold\n=======\nnew\n");
/// assert_eq!(events[1], StreamEvent::Search { edit: 0, text: "old\n".to_owned() });
/// assert_eq!(reader.finish(true).edits, []);
/// ```
pub struct Reader<'f> {
    files: &'f dyn Files,
    path: Option<RelPath>,
    format: Option<Format>,
    reply: String,
    /// Where the line begins that isn't whole yet.
    line: usize,
    /// Up to where it was looked through for its end.
    seen: usize,
    watch: Watch,
}

impl<'f> Reader<'f> {
    /// A reader for a reply in a format, or in the one that it seems to be written in; with the file that is meant where
    /// the reply names none.
    #[must_use]
    pub fn new(format: Option<Format>, path: Option<RelPath>, files: &'f dyn Files) -> Self {
        let given = path.as_ref().map(RelPath::to_string);
        Self { files, path, format, reply: String::new(), line: 0, seen: 0, watch: Watch::new(format, given) }
    }

    /// Takes in the next part of the reply.
    pub fn push(&mut self, chunk: &str) -> Vec<StreamEvent> {
        // What is longer than a reply may be is refused as a whole; one byte too many is enough to know.
        if self.reply.len() > MAX_REPLY_BYTES {
            return Vec::new();
        }
        self.reply.push_str(chunk);
        let mut events = Vec::new();
        self.watch.json(&self.reply, chunk, &mut events);
        while let Some(end) = self.end_of_line() {
            let line = self.reply.get(self.line..end).unwrap_or_default();
            let source = Source { reply: "", path: self.path.as_ref(), finished: true, files: self.files };
            self.watch.line(line, &source, &mut events);
            self.line = end;
            self.seen = end;
        }
        self.seen = self.reply.len();
        events
    }

    /// Where the line that isn't whole yet ends, if it does. What came before is not looked through again.
    fn end_of_line(&self) -> Option<usize> {
        let unseen = self.reply.as_bytes().get(self.seen..)?;
        let most = (self.line + LONG_LINE).saturating_sub(self.seen);
        match memchr::memchr(b'\n', unseen.get(..most).unwrap_or(unseen)) {
            Some(at) => Some(self.seen + at + 1),
            None if unseen.len() < most => None,
            None => Some(self.reply.floor_char_boundary(self.line + LONG_LINE)),
        }
    }

    /// The reply has ended, as the model meant it to or cut off. The same as [`read`] of the whole text.
    #[must_use]
    pub fn finish(self, cut_off: bool) -> Reading {
        let source =
            Source { reply: &self.reply, path: self.path.as_ref(), finished: !cut_off, files: self.files };
        read(&source, self.format)
    }
}

/// No line that means anything to a format is longer; without a bound, one that never ends would be looked through at
/// each part.
const LONG_LINE: usize = 64 << 10;

/// Longer names of files are shown to nobody, in bytes: the name is said anew for each edit of the file.
pub(crate) const MAX_SHOWN_NAME: usize = 4 << 10;

/// What is being read.
#[derive(Debug)]
enum State {
    Outside,
    /// Text to be found.
    Search(String),
    /// Text to put there.
    Replace,
    /// A fence of these marks, before its first line: of a file, perhaps.
    Fenced(String),
    /// A file in a fence of these marks.
    Body(String),
    /// A hunk.
    Hunk,
}

/// What the events are told from.
#[derive(Debug)]
struct Watch {
    format: Option<Format>,
    named: bool,
    given: Option<String>,
    /// The path that stands above, or that the edit before had.
    path: Option<String>,
    state: State,
    edit: usize,
    json: Option<JsonStream>,
    dashes: bool,
    begun: bool,
}

impl Watch {
    fn new(format: Option<Format>, given: Option<String>) -> Self {
        Self {
            format,
            named: format.is_some(),
            path: given.clone(),
            json: (format == Some(Format::Tool)).then(|| JsonStream::new(given.clone())),
            given,
            state: State::Outside,
            edit: 0,
            dashes: false,
            begun: false,
        }
    }

    /// Arguments of a tool are read by the character: all of one edit may stand on one line.
    fn json(&mut self, reply: &str, chunk: &str, events: &mut Vec<StreamEvent>) {
        if !self.begun && self.json.is_none() && !self.named {
            // Before this part there were only blanks.
            let Some(first) = chunk.trim_start().chars().next() else { return };
            if matches!(first, '{' | '[') {
                self.format = Some(Format::Tool);
                let mut json = JsonStream::new(self.given.clone());
                json.push(reply, events);
                self.json = Some(json);
                self.begun = true;
                return;
            }
            self.begun = true;
        }
        if let Some(json) = &mut self.json {
            json.push(chunk, events);
        }
    }

    fn line(&mut self, line: &str, source: &Source<'_>, events: &mut Vec<StreamEvent>) {
        if self.json.is_some() {
            return;
        }
        if matches!(self.state, State::Outside | State::Fenced(_))
            && (self.format.is_none() || self.format == Some(Format::Whole))
        {
            let second = self.dashes && line.starts_with("+++ ");
            let found = match second {
                true => Some(Format::Udiff),
                false if line.contains("<edit>") => Some(Format::Edit),
                false => detect::strong(line, ""),
            };
            if found.is_some() && !self.named {
                self.format = found;
                self.state = State::Outside;
            }
        }
        self.dashes = line.starts_with("--- ");
        match self.format {
            Some(Format::Edit) => self.tags(line, events),
            Some(Format::Blocks) if line.contains("_text") => self.tags(line, events),
            Some(Format::Blocks) => self.block(line, source, events),
            Some(Format::Udiff | Format::Patch) => self.patch(line, events),
            Some(Format::Tool) => {}
            Some(Format::Whole | Format::Lazy) | None => self.body(line, source, events),
        }
    }

    fn begin(&mut self, events: &mut Vec<StreamEvent>) {
        if let Some(path) = self.path.as_ref().filter(|path| path.len() <= MAX_SHOWN_NAME) {
            events.push(StreamEvent::File { edit: self.edit, path: path.clone() });
        }
    }

    fn complete(&mut self, events: &mut Vec<StreamEvent>) {
        events.push(StreamEvent::Complete { edit: self.edit });
        self.edit += 1;
        self.state = State::Outside;
    }

    fn replacement(&self, text: &str, events: &mut Vec<StreamEvent>) {
        if !text.is_empty() {
            events.push(StreamEvent::Replacement { edit: self.edit, text: text.to_owned() });
        }
    }

    fn name(&mut self, line: &str, source: &Source<'_>) -> bool {
        let name = match paths::fence(line) {
            Some(info) => paths::on_fence(info),
            None => paths::on_line(line, source),
        };
        if let Some(name) = name {
            self.path = Some(name.to_owned());
        }
        name.is_some()
    }

    fn block(&mut self, line: &str, source: &Source<'_>, events: &mut Vec<StreamEvent>) {
        let marked = mark(line).map(|marked| marked.mark);
        match (&mut self.state, marked) {
            (State::Search(text), Some(Mark::Divider)) => {
                let text = std::mem::take(text);
                events.push(StreamEvent::Search { edit: self.edit, text });
                self.state = State::Replace;
            }
            (State::Search(text), _) => {
                let header = line.starts_with(":start_line:") || line.starts_with(":end_line:");
                if !header {
                    text.push_str(line);
                }
            }
            (State::Replace, Some(Mark::Close | Mark::BareClose)) => self.complete(events),
            (State::Replace, _) => self.replacement(line, events),
            (_, Some(Mark::Open(_) | Mark::BareOpen)) => {
                self.state = State::Search(String::new());
                self.begin(events);
            }
            _ => {
                self.name(line, source);
            }
        }
    }

    /// The tags of `<edit>` blocks and of pairs of texts, wherever they stand on a line.
    fn tags(&mut self, line: &str, events: &mut Vec<StreamEvent>) {
        let mut rest = line;
        loop {
            let (tags, searching): (&[&str], bool) = match &self.state {
                State::Search(_) => (&["</search>", "</old_text>"], true),
                State::Replace => (&["</replace>", "</new_text>", "</replace "], false),
                _ => {
                    let Some(next) = self.outer_tag(rest, events) else { return };
                    rest = next;
                    continue;
                }
            };
            let end = memchr::memchr_iter(b'<', rest.as_bytes()).find_map(|at| {
                Some((
                    at,
                    tags.iter().find(|tag| rest.get(at..).is_some_and(|rest| rest.starts_with(**tag)))?.len(),
                ))
            });
            let text = end.map_or(rest, |(at, _)| rest.get(..at).unwrap_or_default());
            if searching {
                if let State::Search(whole) = &mut self.state {
                    whole.push_str(text);
                }
            } else {
                self.replacement(text, events);
            }
            let Some((at, length)) = end else { return };
            rest = rest.get(at + length..).unwrap_or_default();
            match std::mem::replace(&mut self.state, State::Outside) {
                State::Search(text) => events.push(StreamEvent::Search { edit: self.edit, text }),
                _ => self.complete(events),
            }
        }
    }

    /// The next opening tag of a line, taken in; what follows it.
    fn outer_tag<'l>(&mut self, rest: &'l str, events: &mut Vec<StreamEvent>) -> Option<&'l str> {
        let tag = rest.get(rest.find('<')?..)?;
        if let Some(name) = tag.strip_prefix("<file>") {
            let (name, after) = name.split_once("</file>")?;
            self.path = Some(name.trim().to_owned());
            self.begin(events);
            return Some(after);
        }
        let inner = tag.get(1..)?;
        let end = memchr::memchr2(b'<', b'>', inner.as_bytes())?;
        let (opening, after) = inner.split_at(end);
        let Some(after) = after.strip_prefix('>') else { return Some(after) };
        let name = opening.split(' ').next()?;
        match name {
            "search" | "old_text" if !opening.ends_with('/') => {
                if name == "old_text" {
                    self.begin(events);
                }
                self.state = State::Search(String::new());
            }
            "replace" | "new_text" if !opening.ends_with('/') => self.state = State::Replace,
            "replace" | "delete" | "replace/" | "delete/" => self.complete(events),
            _ => return Some(inner),
        }
        Some(after.strip_prefix('\n').unwrap_or(after))
    }

    fn patch(&mut self, line: &str, events: &mut Vec<StreamEvent>) {
        let text = without_break(line);
        let head = ["*** Update File:", "*** Add File:", "*** Delete File:", "+++ "];
        if let Some(name) = head.iter().find_map(|head| text.strip_prefix(head)) {
            self.end_hunk(events);
            let name = name.split('\t').next().unwrap_or(name).trim();
            let name = if text.starts_with("+++ ") { name.strip_prefix("b/").unwrap_or(name) } else { name };
            self.path = Some(name.to_owned());
            if text.starts_with("*** Add") {
                self.begin(events);
                self.state = State::Hunk;
            }
            return;
        }
        if text.starts_with("@@") {
            self.end_hunk(events);
            self.begin(events);
            self.state = State::Hunk;
            return;
        }
        if text.starts_with("*** ")
            || text.starts_with("--- ")
            || text.starts_with("diff ")
            || text.starts_with("```")
        {
            return self.end_hunk(events);
        }
        if matches!(self.state, State::Hunk) {
            let (kind, text) = match text.as_bytes().first() {
                Some(b'-') => (LineKind::Remove, text.get(1..)),
                Some(b'+') => (LineKind::Add, text.get(1..)),
                Some(b' ') => (LineKind::Context, text.get(1..)),
                None => (LineKind::Context, Some("")),
                Some(b'\\') => return,
                Some(_) => (LineKind::Bare, Some(text)),
            };
            let line = PatchLine { kind, text: text.unwrap_or_default().to_owned() };
            events.push(StreamEvent::Line { edit: self.edit, line });
        }
    }

    fn end_hunk(&mut self, events: &mut Vec<StreamEvent>) {
        if matches!(self.state, State::Hunk) {
            self.complete(events);
        }
    }

    fn body(&mut self, line: &str, source: &Source<'_>, events: &mut Vec<StreamEvent>) {
        let text = line.trim();
        if let State::Fenced(marks) = &mut self.state {
            self.state = State::Body(std::mem::take(marks));
            self.begin(events);
        }
        if let State::Body(marks) = &self.state {
            let closes = text.starts_with(marks.as_str()) && text.trim_start_matches(['`', '~']).is_empty();
            if closes {
                self.complete(events);
                self.path = self.given.clone();
            } else {
                self.replacement(line, events);
            }
            return;
        }
        if text.starts_with("```") || text.starts_with("~~~") {
            self.name(line, source);
            if self.path.is_some() && (self.named || self.path != self.given) {
                let length = text.len() - text.trim_start_matches(['`', '~']).len();
                self.state = State::Fenced(text.get(..length).unwrap_or_default().to_owned());
            }
        } else if !text.is_empty() && !self.name(line, source) {
            self.path = self.given.clone();
        }
    }
}
