//! Three-way merge: combines the changes that two sides made to a base, as far as they don't
//! overlap.
//!
//! The method is that of `diff3` and of git: each side is compared with the base, and changes of
//! both sides that overlap or touch form one region. A region that both sides changed in the same
//! way is taken once; any other region that both changed is a conflict. Texts are bytes, lines end
//! with a line feed, and everything else is part of a line, so that no encoding is assumed and none
//! is damaged.

use std::hash::Hash;
use std::ops::Range;

use crate::Lines;
use crate::edits::{Edit, compute_edits};

/// Maximum size of a version that [`merge_texts`] takes, in bytes: larger texts were not written by
/// people.
pub const MAX_MERGE_BYTES: usize = 4 * 1024 * 1024;
/// Characters of a conflict marker, as git has them.
const MARKER_LEN: usize = 7;

/// The result of a merge of texts.
#[derive(Debug, PartialEq, Eq)]
pub enum Merge<'a> {
    /// Both sides' changes, combined.
    Clean(Vec<u8>),
    /// Some changes contradict each other.
    Conflicts(Conflicts<'a>),
    /// The texts can't be merged by lines, for this reason.
    Refused(&'static str),
}

/// A merged text with regions in which the sides differ.
#[derive(Debug, PartialEq, Eq)]
pub struct Conflicts<'a> {
    pieces: Vec<MergedPiece<'a>>,
    /// The line break of the markers.
    line_break: &'static [u8],
}

#[derive(Debug, PartialEq, Eq)]
enum MergedPiece<'a> {
    Resolved(&'a [u8]),
    Conflict { ours: &'a [u8], base: &'a [u8], theirs: &'a [u8] },
}

/// Names that are written at conflict markers.
#[derive(Debug, Clone, Copy)]
pub struct ConflictLabels<'a> {
    /// The name of our side.
    pub ours: &'a str,
    /// The name of the base. With a name, each conflict also shows the base's lines.
    pub base: Option<&'a str>,
    /// The name of their side.
    pub theirs: &'a str,
}

/// The side from which a region of the merged text comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resolution {
    /// Neither side changed the region.
    Unchanged,
    /// Only our side changed the region.
    Ours,
    /// Only their side changed the region.
    Theirs,
    /// Both sides changed the region in the same way.
    Both,
    /// The sides changed the region in different ways.
    Conflict,
}

/// A region of a merge, as ranges of lines. The regions of a merge cover all lines of all three
/// versions in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Region {
    /// The side from which the region comes.
    pub resolution: Resolution,
    /// The region's lines in the base.
    pub base: Range<usize>,
    /// The region's lines in our version.
    pub ours: Range<usize>,
    /// The region's lines in their version.
    pub theirs: Range<usize>,
}

/// Merges two texts that were made from a base.
#[must_use]
pub fn merge_texts<'a>(base: &'a [u8], ours: &'a [u8], theirs: &'a [u8]) -> Merge<'a> {
    if ours == theirs || base == theirs {
        return Merge::Clean(ours.to_vec());
    }
    if base == ours {
        return Merge::Clean(theirs.to_vec());
    }
    let all = [base, ours, theirs];
    if all.iter().any(|side| side.len() > MAX_MERGE_BYTES) {
        return Merge::Refused("it is too large to be merged line by line");
    }
    if all.iter().any(|side| side.contains(&0)) {
        return Merge::Refused("it isn't text");
    }
    let sides = all.map(Lines::new);
    let [base, ours, theirs] = &sides;
    let regions = merge_lines(base.as_slice(), ours.as_slice(), theirs.as_slice());
    let pieces = build_pieces(&sides, &regions);
    if pieces.iter().all(|piece| matches!(piece, MergedPiece::Resolved(_))) {
        return Merge::Clean(join_resolved(&pieces));
    }
    Merge::Conflicts(Conflicts { line_break: detect_line_break(&sides), pieces })
}

/// Merges two sequences of lines that were made from a base.
#[must_use]
pub fn merge_lines<T: Hash + Eq>(base: &[T], ours: &[T], theirs: &[T]) -> Vec<Region> {
    let is_same = |our_lines: Range<usize>, their_lines: Range<usize>| {
        ours.get(our_lines).unwrap_or_default() == theirs.get(their_lines).unwrap_or_default()
    };
    let (our_edits, their_edits) = (compute_edits(base, ours), compute_edits(base, theirs));
    find_regions(base.len(), &our_edits, &their_edits, is_same)
}

/// A cursor over one side's edits.
struct EditCursor<'e> {
    edits: std::iter::Peekable<std::slice::Iter<'e, Edit>>,
    /// The side's line that stands for the base's current line.
    line: usize,
}

impl<'e> EditCursor<'e> {
    fn new(edits: &'e [Edit]) -> Self {
        Self { edits: edits.iter().peekable(), line: 0 }
    }

    fn next_start(&mut self) -> Option<usize> {
        self.edits.peek().map(|edit| edit.old.start)
    }

    /// Moves edits that begin at or before the region's end into `taken`, and extends the region by
    /// them. Returns true if there were any.
    fn take_edits_into(&mut self, region: &mut Range<usize>, taken: &mut Vec<&'e Edit>) -> bool {
        let mut any = false;
        while let Some(edit) = self.edits.next_if(|edit| edit.old.start <= region.end) {
            region.end = region.end.max(edit.old.end);
            taken.push(edit);
            any = true;
        }
        any
    }

    /// Moves past a region of the base and returns the side's lines for it.
    fn skip_region(&mut self, region: &Range<usize>, taken: &[&Edit]) -> Range<usize> {
        let added: usize = taken.iter().map(|edit| edit.new.len()).sum();
        let removed: usize = taken.iter().map(|edit| edit.old.len()).sum();
        let start = self.line;
        self.line = (start + region.len() + added).saturating_sub(removed);
        start..self.line
    }
}

fn find_regions(
    base_len: usize,
    our_edits: &[Edit],
    their_edits: &[Edit],
    is_same: impl Fn(Range<usize>, Range<usize>) -> bool,
) -> Vec<Region> {
    let (mut ours, mut theirs) = (EditCursor::new(our_edits), EditCursor::new(their_edits));
    let mut regions = Vec::new();
    let mut line = 0;
    loop {
        let next = [ours.next_start(), theirs.next_start()].into_iter().flatten().min();
        let unchanged = line..next.unwrap_or(base_len);
        if !unchanged.is_empty() {
            regions.push(Region {
                resolution: Resolution::Unchanged,
                ours: ours.skip_region(&unchanged, &[]),
                theirs: theirs.skip_region(&unchanged, &[]),
                base: unchanged,
            });
        }
        let Some(next) = next else { return regions };
        let mut base = next..next;
        let (mut our_part, mut their_part) = (Vec::new(), Vec::new());
        // Edits that touch a region belong to it, also where only the other side's edit made them
        // touch.
        while ours.take_edits_into(&mut base, &mut our_part)
            | theirs.take_edits_into(&mut base, &mut their_part)
        {}
        line = base.end;
        let (our_lines, their_lines) =
            (ours.skip_region(&base, &our_part), theirs.skip_region(&base, &their_part));
        let resolution = match (our_part.is_empty(), their_part.is_empty()) {
            (_, true) => Resolution::Ours,
            (true, false) => Resolution::Theirs,
            _ if is_same(our_lines.clone(), their_lines.clone()) => Resolution::Both,
            _ => Resolution::Conflict,
        };
        regions.push(Region { resolution, base, ours: our_lines, theirs: their_lines });
    }
}

fn build_pieces<'a>(sides: &[Lines<'a>; 3], regions: &[Region]) -> Vec<MergedPiece<'a>> {
    let [base, ours, theirs] = sides;
    let piece = |region: &Region| match region.resolution {
        Resolution::Unchanged | Resolution::Ours | Resolution::Both => {
            MergedPiece::Resolved(ours.text(region.ours.clone()))
        }
        Resolution::Theirs => MergedPiece::Resolved(theirs.text(region.theirs.clone())),
        Resolution::Conflict => MergedPiece::Conflict {
            ours: ours.text(region.ours.clone()),
            base: base.text(region.base.clone()),
            theirs: theirs.text(region.theirs.clone()),
        },
    };
    regions.iter().map(piece).collect()
}

fn join_resolved(pieces: &[MergedPiece<'_>]) -> Vec<u8> {
    let texts = pieces.iter().map(|piece| match piece {
        MergedPiece::Resolved(text) => *text,
        MergedPiece::Conflict { ours, .. } => ours,
    });
    texts.collect::<Vec<_>>().concat()
}

/// Returns the line break of our side's first line, for a text that mixes several.
fn detect_line_break([base, ours, theirs]: &[Lines<'_>; 3]) -> &'static [u8] {
    let first = [ours, theirs, base].map(|side| side.text(0..1));
    let first = first.into_iter().find(|line| line.ends_with(b"\n")).unwrap_or_default();
    if first.ends_with(b"\r\n") { b"\r\n" } else { b"\n" }
}

impl Conflicts<'_> {
    /// Returns the number of conflicts.
    pub fn count(&self) -> usize {
        self.pieces.iter().filter(|piece| matches!(piece, MergedPiece::Conflict { .. })).count()
    }

    /// Returns the text with git's conflict markers. Without the base, lines that both sides share
    /// at the start or end of a conflict are moved out of the conflict.
    pub fn to_marked_text(&self, labels: &ConflictLabels<'_>) -> Vec<u8> {
        let mut out = MarkerWriter { text: Vec::new(), line_break: self.line_break };
        for piece in &self.pieces {
            match piece {
                MergedPiece::Resolved(text) => out.text.extend_from_slice(text),
                MergedPiece::Conflict { ours, base, theirs } => match labels.base {
                    Some(label) => {
                        out.push_marker(b'<', labels.ours);
                        out.push_lines(ours);
                        out.push_marker(b'|', label);
                        out.push_lines(base);
                        out.push_marker(b'=', "");
                        out.push_lines(theirs);
                        out.push_marker(b'>', labels.theirs);
                    }
                    None => {
                        let (front, ours, theirs, back) = split_common_ends(ours, theirs);
                        out.text.extend_from_slice(front);
                        out.push_marker(b'<', labels.ours);
                        out.push_lines(ours);
                        out.push_marker(b'=', "");
                        out.push_lines(theirs);
                        out.push_marker(b'>', labels.theirs);
                        out.text.extend_from_slice(back);
                    }
                },
            }
        }
        out.text
    }
}

struct MarkerWriter {
    text: Vec<u8>,
    line_break: &'static [u8],
}

impl MarkerWriter {
    fn push_marker(&mut self, sign: u8, label: &str) {
        self.text.extend_from_slice(&[sign; MARKER_LEN]);
        if !label.is_empty() {
            self.text.push(b' ');
            // A label with a line's end in it would end the marker.
            self.text.extend(label.bytes().map(|byte| if byte.is_ascii_control() { b' ' } else { byte }));
        }
        self.text.extend_from_slice(self.line_break);
    }

    /// Appends lines, and a line feed if the last line lacks one, because a marker follows.
    fn push_lines(&mut self, text: &[u8]) {
        self.text.extend_from_slice(text);
        if !text.is_empty() && !text.ends_with(b"\n") {
            self.text.extend_from_slice(self.line_break);
        }
    }
}

/// Splits two texts into common first lines, the rest of each, and common last lines.
fn split_common_ends<'t>(ours: &'t [u8], theirs: &'t [u8]) -> (&'t [u8], &'t [u8], &'t [u8], &'t [u8]) {
    let lines = |text: &'t [u8]| text.split_inclusive(|&byte| byte == b'\n');
    let same = |one: &(&[u8], &[u8])| one.0 == one.1;
    let front: usize = lines(ours).zip(lines(theirs)).take_while(same).map(|(line, _)| line.len()).sum();
    let (head, ours) = ours.split_at_checked(front).unwrap_or((&[], ours));
    let theirs = theirs.get(front..).unwrap_or_default();
    let mut back = 0;
    let (mut one, mut other): (Vec<&[u8]>, Vec<&[u8]>) = (lines(ours).collect(), lines(theirs).collect());
    while let (Some(line), Some(theirs)) = (one.pop(), other.pop()) {
        if line != theirs {
            break;
        }
        back += line.len();
    }
    let (ours, tail) = ours.split_at_checked(ours.len() - back).unwrap_or((ours, &[]));
    (head, ours, theirs.get(..theirs.len() - back).unwrap_or_default(), tail)
}

#[cfg(test)]
#[path = "merge_tests.rs"]
mod tests;
