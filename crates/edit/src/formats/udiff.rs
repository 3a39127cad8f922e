//! Unified diffs, as `diff -u` and git write them and as models do.
//!
//! What a model gets wrong about a diff is nearly always beside the point: the line numbers, the
//! counts, whether names have `a/` and `b/`, whether there is a header at all. What it means is in
//! the lines, and these are kept, each of them: a line that can be none of a hunk's makes the
//! file's edit a problem with the line's number.

mod fault;
mod names;
mod section;

use crate::edit::{LineKind, PatchHunk};
use crate::formats::block::ProblemKind;
use crate::formats::hunks::{self, Head, MAX_HUNKS, MAX_REPLY_BYTES, bare};
use crate::formats::{Format, Reading, Source};
use names::Name;
use section::Section;

/// Languages of fenced blocks in which a diff is looked for; another language's block shows code.
const DIFF_FENCES: [&str; 8] = ["", "diff", "patch", "udiff", "text", "txt", "git", "plaintext"];

/// Reads a reply.
pub(crate) fn read(source: &Source<'_>) -> Reading {
    let mut reader = Reader {
        source,
        lines: Vec::new(),
        at: 0,
        fence: None,
        section: None,
        hunks: 0,
        reading: Reading { format: Some(Format::Udiff), ..Reading::default() },
    };
    if source.reply.len() > MAX_REPLY_BYTES {
        let message =
            format!("the reply has {} bytes; at most {MAX_REPLY_BYTES} are read", source.reply.len());
        reader.reading.problems.push(hunks::problem(ProblemKind::TooMuch, 0, None, message));
        return reader.reading;
    }
    reader.lines = hunks::lines(source.reply);
    reader.run();
    reader.reading.prose = reader.reading.prose.trim().to_owned();
    reader.reading
}

/// A fenced block that is open: its mark's character and length, and whether a diff may be in it.
#[derive(Clone, Copy)]
struct Fence {
    mark: char,
    length: usize,
    diff: bool,
}

struct Reader<'a> {
    source: &'a Source<'a>,
    lines: Vec<&'a str>,
    at: usize,
    fence: Option<Fence>,
    section: Option<Section<'a>>,
    hunks: usize,
    reading: Reading,
}

impl<'a> Reader<'a> {
    fn line(&self, at: usize) -> Option<&'a str> {
        self.lines.get(at).copied()
    }

    fn run(&mut self) {
        while let Some(line) = self.line(self.at) {
            let here = self.at;
            self.step(line);
            // Each step takes a line or more: nothing that is written can stop the reader.
            self.at = self.at.max(here + 1);
            if self.hunks > MAX_HUNKS {
                let message = format!("the reply has more than {MAX_HUNKS} hunks; the rest was not read");
                self.reading.problems.push(hunks::problem(ProblemKind::TooMuch, here, None, message));
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
        self.close();
    }

    fn step(&mut self, line: &'a str) {
        let readable = self.fence.is_none_or(|fence| fence.diff);
        match line.as_bytes().first() {
            Some(b'`' | b'~' | b' ') if self.toggles_fence(line) => {}
            Some(b'd') if readable && line.starts_with("diff --git ") => self.git_header(line),
            Some(b'-' | b'+') if readable && self.file_header() => {}
            Some(b'@') if readable && line.starts_with("@@@ ") => {
                let message = "a combined diff of a merge can't be applied; send a plain one".to_owned();
                self.reading.problems.push(hunks::problem(ProblemKind::Malformed, self.at, None, message));
            }
            Some(b'@') if readable => match hunks::head(line) {
                Some(head) => {
                    self.at += 1;
                    self.hunk(Some(head), line.ends_with('\r'));
                }
                None => self.prose(line),
            },
            Some(b'B' | b'G') if readable && is_binary(line) => {
                let message = "it changes a binary file, which only a command can".to_owned();
                match &mut self.section {
                    Some(section) => section.fault(self.at, message),
                    None => {
                        let problem = hunks::problem(ProblemKind::Malformed, self.at, None, message);
                        self.reading.problems.push(problem);
                    }
                }
            }
            _ => self.prose(line),
        }
    }

    fn prose(&mut self, line: &str) {
        self.reading.prose.push_str(line);
        self.reading.prose.push('\n');
        self.at += 1;
    }

    /// Opens or closes a fenced block where the line does.
    fn toggles_fence(&mut self, line: &str) -> bool {
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
                let language = info.split_whitespace().next().unwrap_or_default().to_ascii_lowercase();
                let diff = DIFF_FENCES.contains(&language.as_str());
                self.fence = Some(Fence { mark, length, diff });
            }
            _ => return false,
        }
        self.prose(line);
        true
    }

    /// Takes the names of a file where they stand here, and a hunk without a header after them.
    fn file_header(&mut self) -> bool {
        let Some((old, new, count)) = self.names_at(self.at) else { return false };
        let transport = self.line(self.at).is_some_and(|line| line.ends_with('\r'));
        // After git's own header the names belong to it.
        match &mut self.section {
            Some(section) if section.git.is_some() && section.hunks.is_empty() && section.old.is_none() => {
                (section.old, section.new) = (old, new);
            }
            _ => {
                self.close();
                self.section = Some(Section::named(self.at, old, new));
            }
        }
        self.at += count;
        let mut next = self.at;
        while self.line(next).is_some_and(|line| bare(line).is_empty()) {
            next += 1;
        }
        let prefixed = self.line(self.at).is_some_and(|line| line.starts_with([' ', '+', '-']));
        if self.line(next).is_some_and(|line| line.starts_with("@@")) {
            self.at = next;
        } else if prefixed && self.names_at(self.at).is_none() {
            self.hunk(None, transport);
        }
        true
    }

    /// The names that a header at this line gives, and how many lines it has. One of the two may be
    /// missing before a hunk's header.
    fn names_at(&self, at: usize) -> Option<(Option<Name>, Option<Name>, usize)> {
        let line = self.line(at)?;
        let next = self.line(at + 1).unwrap_or_default();
        if let Some(old) = line.strip_prefix("---") {
            let old = names::read(old)?;
            if let Some(new) = next.strip_prefix("+++").and_then(names::read) {
                return Some((Some(old), Some(new), 2));
            }
            return (line.starts_with("--- ") && next.starts_with("@@")).then_some((Some(old), None, 1));
        }
        let new = names::read(line.strip_prefix("+++ ")?)?;
        next.starts_with("@@").then_some((None, Some(new), 1))
    }

    /// Reads `diff --git` and the lines that extend it.
    fn git_header(&mut self, line: &'a str) {
        self.close();
        let mut section = Section::at(self.at);
        section.git = Some(names::git_pair(bare(line).trim_start_matches("diff --git ")));
        self.at += 1;
        while let Some(line) = self.line(self.at) {
            if !section.extend(bare(line)) {
                break;
            }
            self.at += 1;
        }
        self.section = Some(section);
    }

    /// Reads a hunk's lines. Without a header each line has to have a prefix.
    fn hunk(&mut self, head: Option<Head>, transport: bool) {
        let first = self.at;
        let headless = head.is_none();
        let head = head.unwrap_or_default();
        let mut hunk =
            PatchHunk { near: head.near, anchors: head.anchor.into_iter().collect(), ..PatchHunk::default() };
        let mut left = head.counts;
        let mut fault = None;
        while let Some(line) = self.line(self.at) {
            if self.ends(line, left) {
                break;
            }
            let text = if transport { bare(line) } else { line };
            let done = left == Some((0, 0));
            if bare(line).is_empty() {
                if done && !self.goes_on() {
                    break;
                }
                count(&mut left, LineKind::Context);
                hunk.lines.push(hunks::line(bare(text)));
            } else if line.starts_with("\\ ") {
                hunks::no_newline(&mut hunk);
            } else {
                let line = hunks::line(text);
                if line.kind == LineKind::Bare {
                    if done && self.fence.is_none() {
                        break;
                    }
                    if headless {
                        fault = fault.or(Some(self.at));
                    }
                }
                count(&mut left, line.kind);
                hunk.lines.push(line);
            }
            self.at += 1;
        }
        if self.fence.is_none() && left.is_none() {
            self.give_back_prose(&mut hunk);
        }
        let section = self.section.get_or_insert_with(|| Section::at(first));
        section.whole = left == Some((0, 0));
        section.crlf |= transport;
        if let Some(at) = fault {
            let message =
                "the line begins with none of blank, `+` and `-`, and no `@@` line opens its hunk".to_owned();
            section.fault(at, message);
        }
        self.hunks += 1;
        if hunks::changes(&hunk) {
            section.hunks.push((first, hunk));
        } else {
            section.empty += 1;
        }
    }

    /// Returns true if a hunk is over before this line. `left` is how many lines its header still
    /// promises.
    fn ends(&self, line: &str, left: Option<(u32, u32)>) -> bool {
        match line.as_bytes().first() {
            Some(b'@') => line.starts_with("@@"),
            Some(b'd') => line.starts_with("diff --git "),
            Some(b'`' | b'~') => self.fence.is_some_and(|fence| {
                let text = line.trim_end();
                text.len() >= fence.length && text.chars().all(|c| c == fence.mark)
            }),
            Some(b'-') => {
                let done = left == Some((0, 0));
                // The signature that mail clients and `git format-patch` put below.
                if done && matches!(bare(line), "-- " | "--") {
                    return true;
                }
                let Some((.., 2)) = self.names_at(self.at) else { return false };
                let hunk_follows = self.line(self.at + 2).is_none_or(|line| line.starts_with("@@"));
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

    /// Returns true if after blank lines the hunk goes on, although its header's counts are used
    /// up.
    fn goes_on(&self) -> bool {
        let rest = self.lines.get(self.at..).unwrap_or_default();
        let Some(ahead) = rest.iter().position(|line| !bare(line).is_empty()) else { return false };
        let at = self.at + ahead;
        let prefixed = rest
            .get(ahead)
            .is_some_and(|line| line.starts_with([' ', '+', '-']) && !matches!(bare(line), "-- " | "--"));
        prefixed && self.names_at(at).is_none()
    }

    /// Outside of a fenced block, lines without prefixes after a hunk and a blank line are the
    /// reply's text again.
    fn give_back_prose(&mut self, hunk: &mut PatchHunk) {
        let last = hunk.lines.iter().rposition(|line| line.kind != LineKind::Bare).map_or(0, |at| at + 1);
        let tail = hunk.lines.get(last..).unwrap_or_default();
        let Some(blank) = tail.iter().position(|line| line.text.is_empty()) else { return };
        for line in tail.iter().skip(blank) {
            self.reading.prose.push_str(&line.text);
            self.reading.prose.push('\n');
        }
        hunk.lines.truncate(last + blank);
    }

    /// The file's edit, or what is wrong with it.
    fn close(&mut self) {
        let Some(section) = self.section.take() else { return };
        match section.edit(self.source) {
            Ok(edit) => self.reading.edits.push(edit),
            Err(problem) => self.reading.problems.push(problem),
        }
    }
}

fn count(left: &mut Option<(u32, u32)>, kind: LineKind) {
    if let Some((old, new)) = left {
        let (of_old, of_new) = (kind != LineKind::Add, kind != LineKind::Remove);
        *old = old.saturating_sub(u32::from(of_old));
        *new = new.saturating_sub(u32::from(of_new));
    }
}

fn is_binary(line: &str) -> bool {
    line.starts_with("GIT binary patch")
        || (line.starts_with("Binary files ") && bare(line).ends_with(" differ"))
}
