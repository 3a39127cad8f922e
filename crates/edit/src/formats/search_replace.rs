//! SEARCH/REPLACE blocks between marks, in the dialects of the known agents.
//!
//! A block begins at `<<<<<<< SEARCH` or `------- SEARCH` and ends at the `>>>>>>> REPLACE` or
//! `+++++++ REPLACE` that belongs to it: blocks and conflicts inside its text have their own. Which
//! of several dividers is the block's is told by its length, and else by the file. What can't be
//! told is a problem with the line, never a guess.

mod conflict;

use journeyman_protocol::RelPath;

use crate::edit::{Edit, EditOp, Replace};
use crate::files::exists;
use crate::formats::announced_paths::announced_path;
use crate::formats::block::{BlockProblem, ProblemKind};
use crate::formats::blocks::{MAX_BLOCKS, join_prose};
use crate::formats::markers::{Mark, MarkLine, parse_mark, unescape_marks};
use crate::formats::paths::{self, NameAbove};
use crate::formats::{Format, ParsedReply, ReplyLines, ReplySource, labelled_texts, text_pairs};
use crate::lines::{line_at, strip_line_break};
use conflict::{ConflictPart, FencedConflict};
pub(crate) use conflict::{has_named_conflict, has_stray_mark};

/// Reads a reply: its blocks, or its pairs of texts where those come first.
pub(crate) fn read(source: &ReplySource<'_>) -> ParsedReply {
    let pairs_at = text_pairs::first_pair_offset(source.reply);
    let first =
        pairs_at.and_then(|at| ReplyLines::new(source.reply.get(..at)?).find(|row| opens_block(row.text)));
    if pairs_at.is_none()
        && !ReplyLines::new(source.reply).any(|row| opens_block(row.text))
        && labelled_texts::has_pair_that_asks(source.reply)
    {
        return labelled_texts::read(source);
    }
    let (mut reading, other) = match (pairs_at, first) {
        (Some(_), None) => (text_pairs::read(source), "blocks"),
        _ => (read_blocks(source), "pairs of <old_text> and <new_text>"),
    };
    let second = match other {
        "blocks" => ReplyLines::new(&reading.prose).any(|row| opens_block(row.text)),
        _ => pairs_at.is_some() && text_pairs::first_pair_offset(&reading.prose).is_some(),
    };
    if second {
        let message = format!("the reply also has {other}, which were not read: send all in one form");
        reading.problems.push(BlockProblem { kind: ProblemKind::Malformed, line: 1, subject: None, message });
    }
    if let Some(at) = text_pairs::lone_new_text_offset(&reading.prose) {
        let line = line_at(&reading.prose, at);
        let message =
            "a <new_text> has no <old_text> above it: put the text that it replaces there".to_owned();
        reading.problems.push(BlockProblem { kind: ProblemKind::Malformed, line, subject: None, message });
    }
    reading
}

fn opens_block(line: &str) -> bool {
    parse_mark(line).is_some_and(|marked| matches!(marked.mark, Mark::Open(_) | Mark::BareOpen))
}

fn read_blocks(source: &ReplySource<'_>) -> ParsedReply {
    let mut scan = BlockScanner::new(source);
    for row in ReplyLines::new(source.reply) {
        scan.scan_line(row.number, row.start, row.text);
        if scan.blocks > MAX_BLOCKS {
            let message = format!("the reply has more than {MAX_BLOCKS} blocks; the rest was not read");
            scan.add_problem(ProblemKind::TooMuch, row.number, message);
            scan.open = None;
            break;
        }
    }
    scan.finish()
}

/// The kind of a block's opening line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OpeningKind {
    /// With a word after the signs.
    Named,
    /// With signs alone, as a conflict.
    Bare,
    /// With its content on the same line: a block only if it also ends as one.
    Merged,
}

/// A divider that may be the block's.
#[derive(Debug, Clone, Copy)]
struct Divider<'a> {
    at: usize,
    end: usize,
    length: usize,
    line: u32,
    /// Content that stands on the divider's line.
    content: Option<&'a str>,
}

/// A block or a conflict that began inside the block's text.
#[derive(Debug, Clone, Copy)]
struct NestedBlock {
    length: usize,
    conflict: bool,
    /// It can't be mere content: its mark is as long as those that open blocks in this reply.
    full: bool,
    dividers: usize,
}

/// A block half read.
#[derive(Debug)]
struct OpenBlock<'a> {
    kind: OpeningKind,
    line: u32,
    start: usize,
    body: usize,
    length: usize,
    indent: usize,
    /// The rest of the marker's line: a file's name, or the first line of a merged one.
    tail: &'a str,
    cuts: Vec<Divider<'a>>,
    merged: Vec<Divider<'a>>,
    /// Dividers of a block that is indented, with another indentation than it has.
    indented: Vec<Divider<'a>>,
    nested: Vec<NestedBlock>,
    /// The line at which the first complete nested block begins.
    had_nested: Option<u32>,
}

/// A fence that is open: the start of its text, and the number of its marks.
#[derive(Debug, Clone, Copy)]
struct BacktickFence {
    inside: usize,
    length: usize,
}

struct BlockScanner<'s, 'a> {
    source: &'s ReplySource<'a>,
    edits: Vec<Edit>,
    problems: Vec<BlockProblem>,
    prose: Vec<&'a str>,
    open: Option<OpenBlock<'a>>,
    /// The end of the preceding block.
    from: usize,
    last: Option<RelPath>,
    blocks: usize,
    /// The shortest marker that has opened a block so far.
    shortest: usize,
    fence: Option<BacktickFence>,
    conflict: Option<FencedConflict>,
    /// The next fence closes one that was taken out of the prose.
    dropped: bool,
}

impl<'s, 'a> BlockScanner<'s, 'a> {
    fn new(source: &'s ReplySource<'a>) -> Self {
        Self {
            source,
            edits: Vec::new(),
            problems: Vec::new(),
            prose: Vec::new(),
            open: None,
            from: 0,
            last: None,
            blocks: 0,
            shortest: usize::MAX,
            fence: None,
            conflict: None,
            dropped: false,
        }
    }

    fn add_problem(&mut self, kind: ProblemKind, line: u32, message: String) {
        self.blocks += 1;
        let subject = self.last.as_ref().filter(|_| kind != ProblemKind::Path).map(RelPath::to_string);
        self.problems.push(BlockProblem { kind, line, subject, message });
    }

    fn add_malformed(&mut self, line: u32, message: &str) {
        self.add_problem(ProblemKind::Malformed, line, message.to_owned());
    }

    fn scan_line(&mut self, number: u32, start: usize, text: &'a str) {
        // A line that was cut off may go on to be another.
        if !self.source.finished && !text.ends_with('\n') {
            return;
        }
        if self.open.is_none() && text.starts_with("```") {
            let end = start + text.len();
            let length = text.bytes().take_while(|&byte| byte == b'`').count();
            self.fence = match self.fence.take() {
                // A shorter fence is content.
                Some(fence) if length < fence.length => Some(fence),
                Some(_) => {
                    self.finish_conflict_block(end);
                    None
                }
                None => Some(BacktickFence { inside: end, length }),
            };
            return;
        }
        let Some(marked) = parse_mark(text) else { return };
        match self.open.take() {
            None => self.scan_outside(number, start, text, marked),
            Some(open) => self.scan_inside(open, number, start, text, marked),
        }
    }

    fn begin_block(
        &mut self,
        kind: OpeningKind,
        number: u32,
        start: usize,
        text: &str,
        marked: MarkLine<'a>,
    ) {
        let tail = match marked.mark {
            Mark::Open(tail) | Mark::Merged(tail) => tail,
            _ => "",
        };
        if kind == OpeningKind::Named {
            self.shortest = self.shortest.min(marked.length);
        }
        self.open = Some(OpenBlock {
            kind,
            line: number,
            start,
            body: start + text.len(),
            length: marked.length,
            indent: marked.indent,
            tail,
            cuts: Vec::new(),
            merged: Vec::new(),
            indented: Vec::new(),
            nested: Vec::new(),
            had_nested: None,
        });
    }

    fn scan_outside(&mut self, number: u32, start: usize, text: &str, marked: MarkLine<'a>) {
        match marked.mark {
            Mark::Open(_) => self.begin_block(OpeningKind::Named, number, start, text, marked),
            Mark::BareOpen => self.begin_block(OpeningKind::Bare, number, start, text, marked),
            Mark::Merged(_) => self.begin_block(OpeningKind::Merged, number, start, text, marked),
            Mark::Close => self.add_malformed(
                number,
                "this mark ends a block, and none is open: a block is SEARCH, the old lines, =======, the new lines, REPLACE",
            ),
            Mark::Faulty => self.add_malformed(
                number,
                "the mark isn't one that opens or ends a block: write <<<<<<< SEARCH and >>>>>>> REPLACE, with a blank \
                 before the word",
            ),
            _ => {}
        }
    }

    fn scan_inside(
        &mut self,
        mut open: OpenBlock<'a>,
        number: u32,
        start: usize,
        text: &'a str,
        marked: MarkLine<'a>,
    ) {
        let MarkLine { mark, length, indent, .. } = marked;
        let cut = |content| Divider { at: start, end: start + text.len(), length, line: number, content };
        let level = indent == 0 || indent == open.indent;
        let nested = |conflict, full, open: &OpenBlock<'_>| NestedBlock {
            length,
            conflict,
            full,
            dividers: open.cuts.len(),
        };
        match mark {
            Mark::Open(_) | Mark::BareOpen if open.kind != OpeningKind::Named => {
                // A lone opening marker begins no block unless the block continues.
                if open.kind == OpeningKind::Bare && !open.cuts.is_empty() {
                    self.add_malformed(open.line, "the conflict has no >>>> before the next block begins");
                }
                return self.scan_outside(number, start, text, marked);
            }
            Mark::Open(_) => {
                let full = length >= self.shortest;
                open.had_nested = open.had_nested.or(full.then_some(number));
                let one = nested(false, full, &open);
                open.nested.push(one);
            }
            Mark::Conflict => {
                let one = nested(true, false, &open);
                open.nested.push(one);
            }
            Mark::ConflictEnd => {
                if let Some(top) = open.nested.last().copied().filter(|top| top.conflict) {
                    open.nested.pop();
                    open.cuts.truncate(top.dividers);
                }
            }
            Mark::Divider if level => open.cuts.push(cut(None)),
            Mark::Divider if open.indent > 0 && open.nested.is_empty() => open.indented.push(cut(None)),
            Mark::MergedDivider(content) if level => open.merged.push(cut(Some(content))),
            Mark::Close => {
                let inner =
                    open.nested.iter().rposition(|one| !one.conflict && (one.full || one.length == length));
                match inner.and_then(|inner| Some((inner, open.nested.get(inner).copied()?))) {
                    Some((inner, one)) => {
                        open.nested.truncate(inner);
                        open.cuts.truncate(one.dividers);
                    }
                    None => return self.close_block(&open, start, start + text.len()),
                }
            }
            Mark::BareClose if open.kind == OpeningKind::Bare && !open.cuts.is_empty() => {
                return self.close_block(&open, start, start + text.len());
            }
            Mark::BareClose
                if open.kind == OpeningKind::Named
                    && length == open.length
                    && open.nested.is_empty()
                    && !open.cuts.is_empty() =>
            {
                return self.close_block(&open, start, start + text.len());
            }
            _ => {}
        }
        self.open = Some(open);
    }

    /// The block's closing mark stands at `end`; reading goes on at `next`.
    fn close_block(&mut self, open: &OpenBlock<'a>, end: usize, next: usize) {
        if open.kind == OpeningKind::Merged && open.cuts.is_empty() && open.merged.is_empty() {
            self.add_malformed(open.line, "the block has no ======= between the old and the new lines");
            return self.skip_unusable_block(open, next);
        }
        let above = paths::find_name_above(self.source, self.from, open.start);
        if open.kind == OpeningKind::Bare
            && let Some(fence) = self.fence
        {
            return self.add_conflict_part(open, end, next, fence.inside);
        }
        let file = self.resolve_file(open, &above, end);
        let read = file.and_then(|path| Ok((self.parse_replacement(open, end, &path)?, path)));
        match read {
            Ok((replace, path)) => self.add_edit(path, EditOp::Replace(replace)),
            Err(problem) => {
                self.blocks += 1;
                self.problems.push(problem);
            }
        }
        self.push_prose_before(above.start.max(self.from), above.fenced);
        self.from = next;
    }

    fn add_edit(&mut self, path: RelPath, op: EditOp) {
        self.blocks += 1;
        self.last = Some(path.clone());
        self.edits.push(Edit { path, ops: vec![op], description: None });
    }

    /// A block that was read for nothing.
    fn skip_unusable_block(&mut self, open: &OpenBlock<'a>, next: usize) {
        self.push_prose_before(open.start, false);
        self.from = next;
    }

    fn push_prose_before(&mut self, until: usize, fenced: bool) {
        let piece = self.source.reply.get(self.from..until).unwrap_or_default();
        self.push_prose(piece);
        self.dropped |= fenced;
    }

    fn push_prose(&mut self, piece: &'a str) {
        let mut piece = piece.trim();
        if self.dropped && !piece.is_empty() {
            self.dropped = false;
            if paths::parse_fence_line(piece.lines().next().unwrap_or_default()) == Some("") {
                piece = piece.split_once('\n').map_or("", |(_, rest)| rest);
            }
        }
        self.prose.push(piece);
    }

    /// The file that a block is for.
    fn resolve_file(
        &self,
        open: &OpenBlock<'a>,
        above: &NameAbove<'a>,
        end: usize,
    ) -> Result<RelPath, BlockProblem> {
        let given = |name: &str| {
            // A path of another machine, where the caller has named the file.
            let meant = self.source.path.filter(|_| name.starts_with('/'));
            paths::resolve_path(name, self.source)
                .or_else(|message| meant.cloned().ok_or(message))
                .map_err(|message| paths::path_problem(open.line, name, message))
        };
        if open.kind == OpeningKind::Named && !open.tail.is_empty() {
            return given(open.tail);
        }
        if let Some(name) = above.name {
            return given(name);
        }
        let announced = above.prose.filter(|line| line.ends_with(':')).and_then(announced_path);
        if let Some(path) = announced.and_then(|name| paths::resolve_path(name, self.source).ok())
            && exists(self.source.files, &path)
        {
            return Ok(path);
        }
        if let Some(path) = above.prose.and_then(|line| paths::path_in_prose(line, self.source))
            && let Ok(replace) = self.parse_replacement(open, end, &path)
            && (self.source.path.is_none() && self.last.is_none()
                || file_has_lines(self.source, &path, &replace.search))
        {
            return Ok(path);
        }
        if let Some(path) = self.last.as_ref().or(self.source.path) {
            return Ok(path.clone());
        }
        let hint = above.prose.map_or_else(String::new, |line| paths::suggest_path(line, self.source));
        let message =
            format!("no line above the block names its file: put the path alone on the line above it{hint}");
        Err(BlockProblem { kind: ProblemKind::Malformed, line: open.line, subject: None, message })
    }

    /// Returns the replacement that a block with its content's end at `end` requests.
    fn parse_replacement(
        &self,
        open: &OpenBlock<'a>,
        end: usize,
        path: &RelPath,
    ) -> Result<Replace, BlockProblem> {
        let header = parse_block_header(self.source.reply, open.body);
        let mut body = header.end;
        if header.ruled && header.near.is_none() && file_has_lines(self.source, path, "-------") {
            body = open.body;
        }
        let (cut, end) = self.find_divider(open, body, end, path)?;
        let section = |first: Option<&str>, from: usize, to: usize| {
            let text = strip_line_break(self.source.reply.get(from..to).unwrap_or_default());
            let text = unescape_marks(text);
            match first {
                Some(first) if from < to => format!("{first}\n{text}"),
                Some(first) => first.to_owned(),
                None => text.into_owned(),
            }
        };
        let first = (open.kind == OpeningKind::Merged).then_some(open.tail);
        Ok(Replace {
            search: section(first, body, cut.at),
            replace: section(cut.content, cut.end, end),
            all: false,
            near: header.near,
            whole_lines: true,
        })
    }

    /// Returns the block's own divider, and the end of its new lines.
    fn find_divider(
        &self,
        open: &OpenBlock<'a>,
        body: usize,
        end: usize,
        path: &RelPath,
    ) -> Result<(Divider<'a>, usize), BlockProblem> {
        let problem = |message: String| BlockProblem {
            kind: ProblemKind::Malformed,
            line: open.line,
            subject: Some(path.to_string()),
            message,
        };
        let cuts = [&open.cuts, &open.merged].into_iter().find(|cuts| !cuts.is_empty());
        let cuts = cuts.unwrap_or(&open.indented);
        if let [one] = cuts.as_slice() {
            return Ok((*one, end));
        }
        let same: Vec<&Divider<'a>> = cuts.iter().filter(|cut| cut.length == open.length).collect();
        if let [one] = same.as_slice() {
            return Ok((**one, end));
        }
        let cuts: Vec<&Divider<'a>> = if same.is_empty() { cuts.iter().collect() } else { same };
        let Some(first) = cuts.first() else {
            return Err(problem(
                "the block has no ======= between the old and the new lines; send it again with one"
                    .to_owned(),
            ));
        };
        let text = |from: usize, to: usize| self.source.reply.get(from..to).unwrap_or_default();
        if cuts.len() <= MAX_DIVIDERS {
            // The lines above the divider are in the file, and the divider doesn't follow them
            // there.
            let has = |until: usize| file_has_lines(self.source, path, strip_line_break(text(body, until)));
            let fitting: Vec<usize> = cuts
                .iter()
                .enumerate()
                .filter(|(_, cut)| has(cut.at) && !has(cut.end))
                .map(|(index, _)| index)
                .collect();
            // The new lines written twice are the new lines.
            let ends = cuts.iter().skip(1).map(|cut| cut.at).chain([end]);
            let mut news = cuts.iter().zip(ends).map(|(cut, end)| text(cut.end, end).trim_end());
            let new = news.next().unwrap_or_default();
            let twice = !new.trim().is_empty() && news.all(|other| other == new);
            match fitting.as_slice() {
                [] | [0] if twice => return Ok((**first, cuts.get(1).map_or(end, |next| next.at))),
                [index] => {
                    // A second divider below the new lines is none of theirs.
                    let ends_with_another = cuts.len() > index + 1
                        && cuts.last().is_some_and(|last| text(last.end, end).trim().is_empty());
                    if let Some(cut) = cuts.get(*index).filter(|_| !ends_with_another) {
                        return Ok((**cut, end));
                    }
                }
                _ => {}
            }
        }
        let lines: Vec<String> = cuts.iter().take(MAX_DIVIDERS).map(|cut| cut.line.to_string()).collect();
        Err(problem(format!(
            "lines {} may each be what divides old from new; write \\======= for those that are content",
            lines.join(", ")
        )))
    }

    /// Takes the conflict marks inside a fence: its other lines say where they stand.
    fn add_conflict_part(&mut self, open: &OpenBlock<'a>, end: usize, next: usize, inside: usize) {
        let [cut] = open.cuts.as_slice() else {
            self.add_malformed(open.line, "several lines may divide old from new in this conflict");
            return self.skip_unusable_block(open, next);
        };
        let part = ConflictPart { start: open.start, old: open.body..cut.at, new: cut.end..end, end: next };
        let conflict = self.conflict.get_or_insert_with(|| FencedConflict {
            line: open.line,
            inside,
            parts: Vec::new(),
        });
        conflict.parts.push(part);
    }

    /// The fence around conflict marks ends at `end`.
    fn finish_conflict_block(&mut self, end: usize) {
        let Some(conflict) = self.conflict.take() else { return };
        let inside = conflict.inside;
        let reply = self.source.reply;
        let last = reply.get(inside..end).unwrap_or_default().trim_end();
        let last = inside + last.rfind('\n').map_or(0, |at| at + 1);
        let above = paths::find_name_above(self.source, self.from, inside);
        let open = OpenBlock {
            kind: OpeningKind::Bare,
            line: conflict.line,
            start: inside,
            body: inside,
            length: 0,
            indent: 0,
            tail: "",
            cuts: Vec::new(),
            merged: Vec::new(),
            indented: Vec::new(),
            nested: Vec::new(),
            had_nested: None,
        };
        for group in conflict.groups(self.source, last) {
            let named = NameAbove { name: group.name.or(above.name), ..above };
            match self.resolve_file(&open, &named, inside) {
                Ok(path) => {
                    for op in group.to_ops(reply) {
                        self.add_edit(path.clone(), op);
                    }
                }
                Err(problem) => self.problems.push(problem),
            }
        }
        self.push_prose_before(above.start.max(self.from), false);
        self.from = end;
    }

    fn finish(mut self) -> ParsedReply {
        let reply = self.source.reply;
        match self.open.take() {
            Some(open)
                if open.kind == OpeningKind::Named
                    || (open.kind == OpeningKind::Bare && !open.cuts.is_empty()) =>
            {
                self.accept_unclosed_block(&open);
            }
            _ => {}
        }
        if let Some(conflict) = &self.conflict {
            let message = "the reply ends before the fence around the conflict is closed".to_owned();
            let line = conflict.line;
            self.add_problem(ProblemKind::Incomplete, line, message);
        }
        let rest = reply.get(self.from..).unwrap_or_default();
        self.push_prose(rest);
        let prose = join_prose(&mut self.prose);
        ParsedReply { format: Some(Format::Blocks), edits: self.edits, problems: self.problems, prose }
    }

    /// A block has no end. It is taken only where the reply ended as the model meant it to and
    /// nothing speaks against it: a model that closed another block, or opened a fence that it
    /// didn't close, was cut off.
    fn accept_unclosed_block(&mut self, open: &OpenBlock<'a>) {
        let reply = self.source.reply;
        let above = paths::find_name_above(self.source, self.from, open.start);
        let rest = reply.get(open.body..).unwrap_or_default().trim_end();
        let last = rest.rfind('\n').map_or(0, |at| at + 1);
        let closed = rest.get(last..).and_then(paths::parse_fence_line) == Some("");
        let plain = open.kind == OpeningKind::Named && open.nested.is_empty() && open.had_nested.is_none();
        let only = self.blocks == 0 && open.cuts.len() == 1;
        let marked = |line: &str| line.contains(">>>") || line.contains("REPLACE");
        let text = open.cuts.first().and_then(|cut| reply.get(cut.end..));
        let marked = text.is_some_and(|text| text.lines().any(marked));
        if self.source.finished && plain && only && above.fenced && closed && !marked {
            let length = last;
            let after_divider = open.cuts.first().is_some_and(|cut| cut.end <= open.body + length);
            if after_divider {
                return self.close_block(open, open.body + length, reply.len());
            }
        }
        let (kind, message) = match open.had_nested.filter(|_| self.source.finished) {
            Some(next) => (
                ProblemKind::Malformed,
                format!("the block has no >>>>>>> REPLACE before the next one begins at line {next}"),
            ),
            None => {
                let missing = if open.cuts.is_empty() { "======= and " } else { "" };
                let message =
                    format!("the reply ends before {missing}>>>>>>> REPLACE; send the whole block again");
                (ProblemKind::Incomplete, message)
            }
        };
        if let Ok(path) = self.resolve_file(open, &above, reply.len()) {
            self.last = Some(path);
        }
        self.add_problem(kind, open.line, message);
        self.push_prose_before(above.start.max(self.from), false);
        self.from = reply.len();
    }
}

/// More dividers in one block are not tried.
const MAX_DIVIDERS: usize = 8;

/// The lines between a block's opening and its text.
struct BlockHeader {
    near: Option<u32>,
    /// A row of dashes ended it.
    ruled: bool,
    end: usize,
}

/// Reads `:start_line:5`, `:end_line:9` and the row of dashes after them.
fn parse_block_header(reply: &str, from: usize) -> BlockHeader {
    let mut header = BlockHeader { near: None, ruled: false, end: from };
    for _ in 0..4 {
        let rest = reply.get(header.end..).unwrap_or_default();
        let length = memchr::memchr(b'\n', rest.as_bytes()).map_or(rest.len(), |at| at + 1);
        let line = rest.get(..length).unwrap_or_default().trim();
        if let Some(number) = line.strip_prefix(":start_line:") {
            header.near = number.trim().parse().ok().filter(|&line| line > 0);
        } else if !line.starts_with(":end_line:") {
            if line == "-------" {
                header.ruled = true;
                header.end += length;
            }
            break;
        }
        header.end += length;
    }
    header
}

/// Returns true if a file has these lines, word for word but for their line endings.
fn file_has_lines(source: &ReplySource<'_>, path: &RelPath, lines: &str) -> bool {
    if lines.trim().is_empty() {
        return false;
    }
    let Ok(Some(text)) = source.files.text(path) else { return false };
    if text.contains(lines) {
        return true;
    }
    (text.contains('\r') || lines.contains('\r'))
        && text.replace("\r\n", "\n").contains(lines.replace("\r\n", "\n").as_str())
}
