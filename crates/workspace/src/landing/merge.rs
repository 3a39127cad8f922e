//! Three versions of a text become one: what either side changed of the base, where both leave each other alone.
//!
//! The way is that of `diff3` and of git: each side's edits against the base, and those of both sides that overlap
//! or touch put together into one region. What both sides have the same in such a region is taken once; anything
//! else is a conflict. Texts are bytes, lines end with a line feed, and whatever else is in them is part of them, so
//! that no encoding is asked for and none is damaged.

use std::ops::Range;

use crate::landing::lines::{Edit, Lines, Numbering, edits};
use crate::limits::{MERGE_BYTES, MERGE_STEPS};

/// Characters of a conflict marker, as git has them.
const MARKER: usize = 7;

/// What came of it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Merge<'a> {
    /// Both sides' changes, together.
    Clean(Vec<u8>),
    /// Some of them don't go together.
    Conflicts(Conflicts<'a>),
    /// It isn't merged by lines at all, and why not.
    Refused(&'static str),
}

/// A text with regions in which the sides differ.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Conflicts<'a> {
    pieces: Vec<Piece<'a>>,
    /// How the markers' lines end.
    line_end: &'static [u8],
}

#[derive(Debug, PartialEq, Eq)]
enum Piece<'a> {
    Settled(&'a [u8]),
    Open { ours: &'a [u8], base: &'a [u8], theirs: &'a [u8] },
}

/// What is written at the markers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Labels<'a> {
    pub(crate) ours: &'a str,
    /// With it, each conflict shows what both sides started from.
    pub(crate) base: Option<&'a str>,
    pub(crate) theirs: &'a str,
}

/// Merges what two sides made of a base.
pub(crate) fn merge<'a>(base: &'a [u8], ours: &'a [u8], theirs: &'a [u8]) -> Merge<'a> {
    merge_within(MERGE_STEPS, base, ours, theirs)
}

/// The same, with so many steps for each side.
fn merge_within<'a>(steps: u64, base: &'a [u8], ours: &'a [u8], theirs: &'a [u8]) -> Merge<'a> {
    if ours == theirs || base == theirs {
        return Merge::Clean(ours.to_vec());
    }
    if base == ours {
        return Merge::Clean(theirs.to_vec());
    }
    let all = [base, ours, theirs];
    if all.iter().any(|side| side.len() > MERGE_BYTES) {
        return Merge::Refused("it is too large to be merged line by line");
    }
    if all.iter().any(|side| side.contains(&0)) {
        return Merge::Refused("it isn't text");
    }
    let mut numbers = Numbering::default();
    let [base, ours, theirs] = all.map(|side| numbers.lines(side));
    let (Some(our_edits), Some(their_edits)) = (edits(&base, &ours, steps), edits(&base, &theirs, steps))
    else {
        return Merge::Refused("the versions differ too much to be merged line by line");
    };
    let sides = Sides { base, ours, theirs };
    let pieces = sides.pieces(&our_edits, &their_edits);
    if pieces.iter().all(|piece| matches!(piece, Piece::Settled(_))) {
        return Merge::Clean(text_of(&pieces));
    }
    Merge::Conflicts(Conflicts { line_end: sides.line_end(), pieces })
}

fn text_of(pieces: &[Piece<'_>]) -> Vec<u8> {
    let settled = pieces.iter().map(|piece| match piece {
        Piece::Settled(text) => *text,
        Piece::Open { ours, .. } => ours,
    });
    settled.collect::<Vec<_>>().concat()
}

struct Sides<'a> {
    base: Lines<'a>,
    ours: Lines<'a>,
    theirs: Lines<'a>,
}

/// One side's edits, walked from the top.
struct Walk<'e> {
    edits: std::iter::Peekable<std::slice::Iter<'e, Edit>>,
    /// Where this side stands when the base stands at its place.
    at: usize,
}

impl<'e> Walk<'e> {
    fn new(edits: &'e [Edit]) -> Self {
        Self { edits: edits.iter().peekable(), at: 0 }
    }

    fn next_start(&mut self) -> Option<usize> {
        self.edits.peek().map(|edit| edit.old.start)
    }

    /// Takes the edits that begin at or before the end of a region of the base, which grows by them; whether there
    /// were any.
    fn take_into(&mut self, region: &mut Range<usize>, taken: &mut Vec<&'e Edit>) -> bool {
        let mut any = false;
        while let Some(edit) = self.edits.next_if(|edit| edit.old.start <= region.end) {
            region.end = region.end.max(edit.old.end);
            taken.push(edit);
            any = true;
        }
        any
    }

    /// The lines of this side that stand for a region of the base; the side moves past them.
    fn pass(&mut self, region: &Range<usize>, taken: &[&Edit]) -> Range<usize> {
        let added: usize = taken.iter().map(|edit| edit.new.len()).sum();
        let removed: usize = taken.iter().map(|edit| edit.old.len()).sum();
        let start = self.at;
        self.at = (start + region.len() + added).saturating_sub(removed);
        start..self.at
    }
}

impl<'a> Sides<'a> {
    fn pieces(&self, our_edits: &[Edit], their_edits: &[Edit]) -> Vec<Piece<'a>> {
        let (mut ours, mut theirs) = (Walk::new(our_edits), Walk::new(their_edits));
        let mut pieces = Vec::new();
        let mut at = 0;
        loop {
            let next = match (ours.next_start(), theirs.next_start()) {
                (None, None) => break,
                (Some(one), Some(other)) => one.min(other),
                (Some(one), None) | (None, Some(one)) => one,
            };
            self.skip(&mut pieces, &mut at, next, &mut ours, &mut theirs);
            let mut region = next..next;
            let (mut our_part, mut their_part) = (Vec::new(), Vec::new());
            // What touches a region belongs to it, also when only the other side's edit made it touch.
            while ours.take_into(&mut region, &mut our_part) | theirs.take_into(&mut region, &mut their_part)
            {
            }
            at = region.end;
            let our_lines = ours.pass(&region, &our_part);
            let their_lines = theirs.pass(&region, &their_part);
            let (our_text, their_text) = (self.ours.text(our_lines), self.theirs.text(their_lines));
            pieces.push(if their_part.is_empty() || our_text == their_text {
                Piece::Settled(our_text)
            } else if our_part.is_empty() {
                Piece::Settled(their_text)
            } else {
                Piece::Open { ours: our_text, base: self.base.text(region), theirs: their_text }
            });
        }
        let end = self.base.count();
        self.skip(&mut pieces, &mut at, end, &mut ours, &mut theirs);
        pieces
    }

    /// Takes what nobody changed.
    fn skip(
        &self,
        pieces: &mut Vec<Piece<'a>>,
        at: &mut usize,
        to: usize,
        ours: &mut Walk<'_>,
        theirs: &mut Walk<'_>,
    ) {
        let same = *at..to;
        if !same.is_empty() {
            ours.pass(&same, &[]);
            theirs.pass(&same, &[]);
            pieces.push(Piece::Settled(self.base.text(same)));
            *at = to;
        }
    }

    /// Markers end as the lines of our side do: as its first one, for a text that mixes both.
    fn line_end(&self) -> &'static [u8] {
        let first = [&self.ours, &self.theirs, &self.base].map(|side| side.text(0..1));
        let first = first.into_iter().find(|line| line.ends_with(b"\n")).unwrap_or_default();
        if first.ends_with(b"\r\n") { b"\r\n" } else { b"\n" }
    }
}

impl Conflicts<'_> {
    /// How many places are in conflict.
    pub(crate) fn count(&self) -> usize {
        self.pieces.iter().filter(|piece| matches!(piece, Piece::Open { .. })).count()
    }

    /// The text with markers as git writes them. Without a base to show, lines that both sides begin or end with
    /// in a conflict stay out of it.
    pub(crate) fn marked(&self, labels: &Labels<'_>) -> Vec<u8> {
        let mut out = Marked { text: Vec::new(), line_end: self.line_end };
        for piece in &self.pieces {
            match piece {
                Piece::Settled(text) => out.text.extend_from_slice(text),
                Piece::Open { ours, base, theirs } => match labels.base {
                    Some(label) => {
                        out.marker(b'<', labels.ours);
                        out.lines(ours);
                        out.marker(b'|', label);
                        out.lines(base);
                        out.marker(b'=', "");
                        out.lines(theirs);
                        out.marker(b'>', labels.theirs);
                    }
                    None => {
                        let (front, ours, theirs, back) = trimmed(ours, theirs);
                        out.text.extend_from_slice(front);
                        out.marker(b'<', labels.ours);
                        out.lines(ours);
                        out.marker(b'=', "");
                        out.lines(theirs);
                        out.marker(b'>', labels.theirs);
                        out.text.extend_from_slice(back);
                    }
                },
            }
        }
        out.text
    }
}

struct Marked {
    text: Vec<u8>,
    line_end: &'static [u8],
}

impl Marked {
    fn marker(&mut self, sign: u8, label: &str) {
        self.text.extend_from_slice(&[sign; MARKER]);
        if !label.is_empty() {
            self.text.push(b' ');
            // A label with a line's end in it would end the marker.
            self.text.extend(label.bytes().map(|byte| if byte.is_ascii_control() { b' ' } else { byte }));
        }
        self.text.extend_from_slice(self.line_end);
    }

    /// Adds lines, the last of which gets an end if it has none: a marker follows.
    fn lines(&mut self, text: &[u8]) {
        self.text.extend_from_slice(text);
        if !text.is_empty() && !text.ends_with(b"\n") {
            self.text.extend_from_slice(self.line_end);
        }
    }
}

/// The lines that both begin with, what is left of each, and the lines that both end with.
fn trimmed<'t>(ours: &'t [u8], theirs: &'t [u8]) -> (&'t [u8], &'t [u8], &'t [u8], &'t [u8]) {
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
