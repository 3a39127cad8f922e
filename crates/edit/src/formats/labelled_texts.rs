//! Pairs of texts below labels: `Search:` and `Replace with:` above a fence each, or lines such as
//! `[SEARCH]`, `=== REPLACE` and `*** END` around bare lines.
//!
//! A pair is one only as a whole: a label, its text, the other label, its text, and nothing between
//! them. Where a text ends is never guessed.

mod labels;

use std::ops::Range;

use journeyman_protocol::RelPath;

use crate::edit::{Edit, EditOp, Replace};
use crate::formats::announced_paths::path_in_heading;
use crate::formats::block::{BlockProblem, ProblemKind};
use crate::formats::blocks::{MAX_BLOCKS, join_prose};
use crate::formats::{Format, ParsedReply, ReplyLine, ReplyLines, ReplySource, paths};
use crate::lines::strip_line_break;
use labels::{Label, LabelSide, parse_label};

const NO_END: &str =
    "nothing says where the new text ends: end it with [/REPLACE], or put both texts in fences";
const UNCLEAR_FENCE: &str = "more than one fence may end the text: put a longer fence around it";

/// A pair in a reply, or what should be one.
struct LabelledPair<'a> {
    line: u32,
    range: Range<usize>,
    /// The line of the first label.
    label: &'a str,
    /// The rest of the first text's fence line, behind its marks.
    info: &'a str,
    /// The labels ask for the change and don't only tell of it.
    asks: bool,
    /// The old and the new text.
    texts: Result<(String, String), &'static str>,
}

/// Returns true if a text has a pair, or what should be one, that asks for a change.
pub(super) fn has_pair_that_asks(text: &str) -> bool {
    find_pairs(text).iter().any(|pair| pair.asks)
}

/// Returns a text without its pairs.
pub(super) fn without_pairs(text: &str) -> String {
    let mut from = 0;
    let mut rest = String::new();
    for pair in find_pairs(text).iter().filter(|pair| pair.asks) {
        rest.push_str(text.get(from..pair.range.start).unwrap_or_default());
        from = pair.range.end;
    }
    rest + text.get(from..).unwrap_or_default()
}

/// Reads the pairs of a reply that ask for a change.
pub(super) fn read(source: &ReplySource<'_>) -> ParsedReply {
    read_pairs(source, false)
}

/// Reads a reply's pairs, also those that only tell of a change.
pub(super) fn read_all(source: &ReplySource<'_>) -> ParsedReply {
    read_pairs(source, true)
}

fn read_pairs(source: &ReplySource<'_>, all: bool) -> ParsedReply {
    let mut reading = ParsedReply { format: Some(Format::Blocks), ..ParsedReply::default() };
    let (mut prose, mut from, mut last) = (Vec::new(), 0, None);
    for pair in find_pairs(source.reply).into_iter().filter(|pair| all || pair.asks) {
        prose.push(source.reply.get(from..pair.range.start).unwrap_or_default());
        let file = find_file(source, &pair, from, last.as_ref());
        from = pair.range.end;
        let subject = file.as_ref().ok().map(RelPath::to_string);
        let problem = |kind, message: String| BlockProblem { kind, line: pair.line, subject, message };
        match (file, pair.texts) {
            (Ok(path), Ok((search, replace))) => {
                last = Some(path.clone());
                let replace = Replace { search, replace, whole_lines: true, ..Replace::default() };
                reading.edits.push(Edit { path, ops: vec![EditOp::Replace(replace)], description: None });
            }
            (_, Err(message)) => {
                reading.problems.push(problem(ProblemKind::Malformed, message.to_owned()));
            }
            (Err(found), _) => reading.problems.push(problem(found.0, found.1)),
        }
    }
    prose.push(source.reply.get(from..).unwrap_or_default());
    reading.prose = join_prose(&mut prose);
    reading
}

/// The file that a pair is for: named in its label, on its fence, above it, or by the pair before.
fn find_file(
    source: &ReplySource<'_>,
    pair: &LabelledPair<'_>,
    from: usize,
    last: Option<&RelPath>,
) -> Result<RelPath, (ProblemKind, String)> {
    let start = pair.range.start;
    let above = paths::find_name_above(source, from, start);
    let given = |name| paths::resolve_path(name, source).map_err(|why| (ProblemKind::Path, why));
    let spoken = paths::paths_in_prose(pair.label, source);
    if let [path] = spoken.as_slice() {
        return Ok(path.clone());
    }
    if let Some(name) = paths::path_on_fence(pair.info).or(above.name) {
        return given(name);
    }
    let told = above.prose.map(|line| paths::paths_in_prose(line, source)).unwrap_or_default();
    if let [path] = told.as_slice() {
        return Ok(path.clone());
    }
    let several = spoken.len() + told.len() > 1;
    if let Some(name) = path_in_heading(source, from, start).filter(|_| !several) {
        return given(name);
    }
    match last.or(source.path).filter(|_| !several) {
        Some(path) => Ok(path.clone()),
        None => {
            let message =
                "nothing names the file of the two texts: put its path alone on the line above the first";
            Err((ProblemKind::Malformed, message.to_owned()))
        }
    }
}

/// Finds the pairs of a text, in order.
fn find_pairs(text: &str) -> Vec<LabelledPair<'_>> {
    let mut pairs = Vec::new();
    if !labels::may_have_label(text) {
        return pairs;
    }
    let rows: Vec<ReplyLine<'_>> = ReplyLines::new(text).collect();
    let mut scan = PairScanner { text, rows, at: 0, fence: None, inside: (0, 0) };
    while let Some(row) = scan.rows.get(scan.at).copied() {
        if let Some(pair) = scan.read_pair(row) {
            pairs.push(pair);
            if pairs.len() >= MAX_BLOCKS {
                break;
            }
            continue;
        }
        scan.toggle_fence(row.text);
        scan.at += 1;
    }
    pairs
}

/// The marks that a fence begins with: the blanks before them, the character, their number, and
/// what stands behind them.
#[derive(Clone, Copy)]
struct FenceMarks<'a> {
    indent: usize,
    sign: char,
    length: usize,
    info: &'a str,
}

fn parse_fence(line: &str) -> Option<FenceMarks<'_>> {
    let text = line.trim();
    let sign = text.chars().next().filter(|sign| matches!(sign, '`' | '~'))?;
    let info = text.trim_start_matches(sign);
    let length = text.len() - info.len();
    let indent = line.len() - line.trim_start_matches([' ', '\t']).len();
    (length >= 3 && !info.contains('`')).then_some(FenceMarks { indent, sign, length, info: info.trim() })
}

struct PairScanner<'a> {
    text: &'a str,
    rows: Vec<ReplyLine<'a>>,
    at: usize,
    /// The fence that is open.
    fence: Option<FenceMarks<'a>>,
    /// The fence's opening line and the one after it, or twice the line after the last pair in it.
    inside: (usize, usize),
}

/// The text below a label, the line after it, and what stands on its fence.
struct TextBelow<'a> {
    text: Result<String, &'static str>,
    next: usize,
    info: &'a str,
}

impl<'a> PairScanner<'a> {
    fn toggle_fence(&mut self, line: &'a str) {
        let Some(marks) = parse_fence(line) else { return };
        self.inside = (self.at, self.at + 1);
        self.fence = match self.fence {
            Some(open) if closes(open, marks) => None,
            Some(open) => Some(open),
            None => Some(marks),
        };
    }

    fn label_at(&self, at: usize) -> Option<Label> {
        parse_label(self.rows.get(at)?.text, self.fence.is_some())
    }

    /// The first line at or after `at` that isn't blank.
    fn skip_blank(&self, at: usize) -> usize {
        let blank = |row: &&ReplyLine<'_>| row.text.trim().is_empty();
        at + self.rows.iter().skip(at).take_while(blank).count()
    }

    /// Reads the pair that begins at this line, and goes on below it.
    fn read_pair(&mut self, row: ReplyLine<'a>) -> Option<LabelledPair<'a>> {
        let first = self.label_at(self.at).filter(Label::begins_pair)?;
        let old = self.read_text_below(self.at + 1, &first)?;
        let mut next = self.skip_blank(old.next);
        if self.label_at(next).is_some_and(|label| label.side == LabelSide::End) {
            next = self.skip_blank(next + 1);
        }
        let second = self.label_at(next).filter(|second| second.continues(&first))?;
        let new = self.read_text_below(next + 1, &second)?;
        let mut end = new.next;
        let after = self.skip_blank(end);
        if self.label_at(after).is_some_and(|label| label.side == LabelSide::End) {
            end = after + 1;
        }
        let mut begin = self.at;
        // A fence around nothing but pairs belongs to them.
        if let Some(open) = self.fence
            && self.skip_blank(self.inside.1) >= self.at
        {
            begin = self.inside.0;
            let after = self.skip_blank(end);
            let closing = self.rows.get(after).and_then(|row| parse_fence(row.text));
            if closing.is_some_and(|marks| closes(open, marks)) {
                (end, self.fence) = (after + 1, None);
            }
            self.inside = (end, end);
        }
        let start = self.rows.get(begin).map_or(row.start, |row| row.start);
        let until = self.rows.get(end).map_or(self.text.len(), |row| row.start);
        self.at = end;
        let texts = old.text.and_then(|old| Ok((old, new.text?)));
        Some(LabelledPair {
            line: row.number,
            range: start..until,
            label: row.text,
            info: old.info,
            asks: first.asks && second.asks,
            texts,
        })
    }

    /// The text below a label: in a fence, or below a mark up to the next one.
    fn read_text_below(&self, from: usize, label: &Label) -> Option<TextBelow<'a>> {
        let at = self.skip_blank(from);
        let fence = self.rows.get(at).and_then(|row| parse_fence(row.text));
        match fence {
            Some(open) if self.fence.is_none() => self.read_fenced(at, open),
            _ if label.is_mark => self.read_bare(from, label),
            _ => None,
        }
    }

    fn read_fenced(&self, at: usize, open: FenceMarks<'a>) -> Option<TextBelow<'a>> {
        let mut unclear = false;
        let mut text = String::new();
        for (nth, row) in self.rows.iter().enumerate().skip(at + 1) {
            if let Some(marks) = parse_fence(row.text).filter(|marks| marks.sign == open.sign) {
                if closes(open, marks) {
                    let next = nth + 1;
                    unclear |= self.is_followed_by_odd_fence(next);
                    let text = strip_line_break(&text).to_owned();
                    let text = if unclear { Err(UNCLEAR_FENCE) } else { Ok(text) };
                    return Some(TextBelow { text, next, info: open.info });
                }
                unclear |= marks.length >= open.length;
            }
            let blanks = row.text.len() - row.text.trim_start_matches([' ', '\t']).len();
            text.push_str(row.text.get(blanks.min(open.indent)..).unwrap_or_default());
        }
        None
    }

    /// Returns true if a fence without a language opens or closes behind a text, before a label or
    /// a line that begins anything else: the text may have gone on to it.
    fn is_followed_by_odd_fence(&self, from: usize) -> bool {
        let ahead = self.rows.iter().skip(from).take_while(|row| parse_label(row.text, false).is_none());
        let fences: Vec<FenceMarks<'_>> = ahead.filter_map(|row| parse_fence(row.text)).take(64).collect();
        fences.len() % 2 == 1 && fences.first().is_some_and(|first| first.info.is_empty())
    }

    fn read_bare(&self, from: usize, label: &Label) -> Option<TextBelow<'a>> {
        let start = self.rows.get(from)?.start;
        let rows = self.rows.iter().enumerate().skip(from);
        let mut ends = rows.filter_map(|(nth, row)| {
            let closes =
                self.fence.zip(parse_fence(row.text)).is_some_and(|(open, marks)| closes(open, marks));
            let found = parse_label(row.text, self.fence.is_some()).filter(|found| found.is_mark);
            let side = found.map(|found| found.side);
            (closes || side.is_some()).then_some((nth, row, side))
        });
        let ended = ends.next();
        let (nth, text) = match (ended, label.side) {
            // The other label, or the end of this one.
            (Some((nth, row, Some(LabelSide::New))), LabelSide::Old) => (nth, self.text_between(start, row)),
            (Some((nth, row, Some(LabelSide::End) | None)), LabelSide::New) => {
                (nth, self.text_between(start, row))
            }
            (Some((nth, row, Some(LabelSide::End))), LabelSide::Old) => (nth, self.text_between(start, row)),
            (Some((nth, ..)), LabelSide::New) => (nth, Err(NO_END)),
            (None, LabelSide::New) => (self.rows.len(), Err(NO_END)),
            _ => return None,
        };
        Some(TextBelow { text, next: nth, info: "" })
    }

    fn text_between(&self, start: usize, end: &ReplyLine<'_>) -> Result<String, &'static str> {
        Ok(strip_line_break(self.text.get(start..end.start).unwrap_or_default()).to_owned())
    }
}

fn closes(open: FenceMarks<'_>, marks: FenceMarks<'_>) -> bool {
    marks.info.is_empty() && marks.sign == open.sign && marks.length >= open.length
}
