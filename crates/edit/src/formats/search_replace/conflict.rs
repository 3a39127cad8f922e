//! Unnamed conflict marks inside a fence: blocks of their own, or a view of one region of a file.

use std::ops::Range;

use crate::edit::{EditOp, LineKind, PatchHunk, PatchLine, Replace};
use crate::formats::markers::{Mark, parse_mark};
use crate::formats::{ReplyLines, ReplySource, paths};
use crate::lines::strip_line_break;

/// Returns true if a line of a text ends a block that nothing begins, or is nearly a block's mark.
pub(crate) fn has_stray_mark(text: &str) -> bool {
    let marks = ReplyLines::new(text).filter_map(|row| parse_mark(row.text));
    marks.into_iter().any(|marked| matches!(marked.mark, Mark::Close | Mark::Faulty))
}

/// Returns true if a text has a block between the marks of a conflict with labels of their own
/// (`<<<<<<< HEAD`), and the lines above it name a file.
pub(crate) fn has_named_conflict(source: &ReplySource<'_>) -> bool {
    let (mut from, mut open, mut divided) = (0, None, false);
    for row in ReplyLines::new(source.reply) {
        match parse_mark(row.text).map(|marked| marked.mark) {
            Some(Mark::Conflict) => (open, divided) = (Some(row.start), false),
            Some(Mark::Divider) => divided = true,
            Some(Mark::ConflictEnd) => {
                let start = open.take().filter(|_| divided);
                if start.is_some_and(|start| paths::find_name_above(source, from, start).name.is_some()) {
                    return true;
                }
                from = row.start + row.text.len();
            }
            _ => {}
        }
    }
    false
}

/// A block between unnamed marks, as offsets in the reply.
#[derive(Debug, Clone)]
pub(super) struct ConflictPart {
    /// The start of its opening mark.
    pub(super) start: usize,
    pub(super) old: Range<usize>,
    pub(super) new: Range<usize>,
    /// The end of its closing mark.
    pub(super) end: usize,
}

/// The parts of a fence that has unnamed conflict marks among its lines.
#[derive(Debug, Clone)]
pub(super) struct FencedConflict {
    /// The 1-based line of its first mark.
    pub(super) line: u32,
    /// The start of the text inside the fence.
    pub(super) inside: usize,
    pub(super) parts: Vec<ConflictPart>,
}

/// The parts for one file.
#[derive(Debug, Clone, Copy)]
pub(super) struct ConflictGroup<'c, 'a> {
    /// The name in a comment inside the fence.
    pub(super) name: Option<&'a str>,
    from: usize,
    until: usize,
    parts: &'c [ConflictPart],
}

impl FencedConflict {
    /// The parts of each file, where the last line inside the fence ends at `until`. Comments that
    /// name a file begin one: the first line of the fence, and lines right above a part.
    pub(super) fn groups<'a>(&self, source: &ReplySource<'a>, until: usize) -> Vec<ConflictGroup<'_, 'a>> {
        let mut groups: Vec<ConflictGroup<'_, 'a>> = Vec::new();
        let (mut from, mut first) = (self.inside, 0);
        let mut open = ConflictGroup { name: None, from, until, parts: &[] };
        for (index, part) in self.parts.iter().enumerate() {
            if let Some(named) = find_name_before(source, from..part.start, index == 0) {
                open.until = named.start;
                groups.push(open);
                (first, open) = (index, ConflictGroup { name: Some(named.name), from: named.end, ..open });
            }
            open.until = until;
            open.parts = self.parts.get(first..=index).unwrap_or_default();
            from = part.end;
        }
        groups.push(open);
        groups.retain(|group| !group.parts.is_empty());
        groups
    }
}

/// A comment that names a file, with the offsets of its line.
struct NameLine<'a> {
    name: &'a str,
    start: usize,
    end: usize,
}

/// The comment that names a file as the last line before a part, or as the first one of a fence.
fn find_name_before<'a>(
    source: &ReplySource<'a>,
    gap: Range<usize>,
    fence_begins: bool,
) -> Option<NameLine<'a>> {
    let rows = || {
        let rows = ReplyLines::new(source.reply.get(gap.clone()).unwrap_or_default());
        rows.filter(|row| !row.text.trim().is_empty())
    };
    let first = if fence_begins { rows().next() } else { None };
    [rows().last(), first].into_iter().flatten().find_map(|row| {
        let start = gap.start + row.start;
        let name = paths::labelled_path(row.text, source)?;
        Some(NameLine { name, start, end: start + row.text.len() })
    })
}

impl ConflictGroup<'_, '_> {
    /// The edits of the parts: one for each if nothing stands beside them, else one hunk that shows
    /// where they stand.
    pub(super) fn to_ops(self, reply: &str) -> Vec<EditOp> {
        let text = |range: Range<usize>| reply.get(range).unwrap_or_default();
        let starts = self.parts.iter().map(|part| part.start).chain([self.until]);
        let ends = [self.from].into_iter().chain(self.parts.iter().map(|part| part.end));
        let around: Vec<Range<usize>> = ends.zip(starts).map(|(from, until)| from..until).collect();
        if around.iter().all(|range| text(range.clone()).trim().is_empty()) {
            let side = |range: &Range<usize>| strip_line_break(text(range.clone())).to_owned();
            let replace = |part: &ConflictPart| Replace {
                search: side(&part.old),
                replace: side(&part.new),
                whole_lines: true,
                ..Replace::default()
            };
            return self.parts.iter().map(|part| EditOp::Replace(replace(part))).collect();
        }
        let mut hunk = PatchHunk::default();
        let mut push = |kind: LineKind, range: Range<usize>| {
            let lines = text(range).lines();
            hunk.lines.extend(lines.map(|line| PatchLine { kind, text: line.to_owned() }));
        };
        let mut parts = self.parts.iter();
        for context in around {
            push(LineKind::Context, context);
            if let Some(part) = parts.next() {
                push(LineKind::Remove, part.old.clone());
                push(LineKind::Add, part.new.clone());
            }
        }
        vec![EditOp::Patch(hunk)]
    }
}
