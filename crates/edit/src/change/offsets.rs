//! Replacements of a run of steps, and the mapping of earlier offsets to the present text.

use std::borrow::Cow;
use std::ops::Range;

use crate::lines::line_at;
use crate::outcome::Placed;

/// The texts of a run of steps.
///
/// Replacements that are found in the text before the run keep its coordinates and are written
/// together: writing each step would take the number of steps times the size of the file. A step
/// that is found only in the text of earlier replacements begins a new text.
pub(super) struct StepTexts<'a> {
    /// Replacements in the texts before the last, in order.
    done: Vec<ReplacementLayer>,
    /// The last text.
    last: Cow<'a, str>,
    /// Pending replacements in the last text.
    open: ReplacementLayer,
    /// The last text with that in it, once it was asked for.
    written: Option<String>,
}

/// Replacements in one text, in its coordinates: in order, and without overlap.
#[derive(Default)]
struct ReplacementLayer {
    puts: Vec<Replacement>,
    /// The net number of added lines.
    lines: i64,
}

/// One replacement.
struct Replacement {
    /// The step.
    op: usize,
    /// The bytes that it replaces.
    span: Range<usize>,
    /// The replacement text.
    piece: String,
    /// The net number of added lines.
    lines: i64,
    /// The net number of bytes added by this and the preceding replacements; set when the layer is
    /// done.
    growth: isize,
}

impl<'a> StepTexts<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { done: Vec::new(), last: Cow::Borrowed(text), open: ReplacementLayer::default(), written: None }
    }

    /// Returns true if nothing was replaced yet.
    pub(super) fn is_untouched(&self) -> bool {
        self.done.is_empty() && self.open.puts.is_empty()
    }

    /// The text as the steps so far leave it.
    pub(super) fn current_text(&mut self) -> &str {
        if self.open.puts.is_empty() {
            return &self.last;
        }
        let Self { last, open, written, .. } = self;
        written.get_or_insert_with(|| open.write(last))
    }

    /// The text as all steps leave it, and the bytes of it that they put there; `None` where they
    /// replace nothing.
    pub(super) fn finish(mut self) -> Option<(String, Vec<Range<usize>>)> {
        if self.is_untouched() {
            return None;
        }
        self.turn();
        let mut ranges: Vec<Range<usize>> = Vec::new();
        for layer in &self.done {
            ranges.iter_mut().for_each(|range| *range = layer.moved(range));
            let mut before = 0;
            ranges.extend(layer.puts.iter().map(|put| {
                let start = put.span.start.saturating_add_signed(before);
                let end = put.span.end.saturating_add_signed(put.growth);
                before = put.growth;
                start..end
            }));
        }
        ranges.sort_unstable_by_key(|range| (range.start, range.end));
        Some((self.last.into_owned(), ranges))
    }

    /// Returns a placement in the text before the run, in the coordinates of the last text; or the
    /// step that changed the same bytes.
    pub(super) fn carried(&self, placed: &Placed) -> Result<Placed, usize> {
        let mut here = placed.clone();
        for (span, _) in &mut here.pieces {
            for layer in &self.done {
                let growth = layer.before(span)?;
                *span = span.start.saturating_add_signed(growth)..span.end.saturating_add_signed(growth);
            }
            self.open.before(span)?;
        }
        Ok(here)
    }

    /// The 1-based line, in the text as the steps so far leave it, of a place of the last one;
    /// `first` tells it for the text before the run.
    pub(super) fn line(&self, place: usize, first: impl Fn(usize) -> u32) -> u32 {
        let line = if self.done.is_empty() { first(place) } else { line_at(&self.last, place) };
        let puts = &self.open.puts;
        let after = puts.get(puts.partition_point(|put| put.span.end <= place)..).unwrap_or_default();
        let more = self.open.lines - after.iter().map(|put| put.lines).sum::<i64>();
        u32::try_from(i64::from(line).saturating_add(more)).unwrap_or(u32::MAX)
    }

    /// Takes in what a step replaces in the last text.
    pub(super) fn put(&mut self, op: usize, pieces: Vec<(Range<usize>, String)>) {
        let breaks = |text: &str| memchr::memchr_iter(b'\n', text.as_bytes()).count() as i64;
        let in_order = match (self.open.puts.last(), pieces.first()) {
            (Some(last), Some((span, _))) => last.span.end <= span.start,
            _ => true,
        };
        for (span, piece) in pieces {
            let lines = breaks(&piece) - breaks(self.last.get(span.clone()).unwrap_or_default());
            self.open.lines += lines;
            self.open.puts.push(Replacement { op, span, piece, lines, growth: 0 });
        }
        if !in_order {
            // Two ordered lists: that is quickly sorted. Among insertions at one place the later
            // one comes after.
            self.open.puts.sort_by_key(|put| (put.span.start, put.span.end));
        }
        self.written = None;
    }

    /// Begins a new text: the last one with all that was replaced in it.
    pub(super) fn turn(&mut self) {
        if self.open.puts.is_empty() {
            return;
        }
        let text = self.written.take().unwrap_or_else(|| self.open.write(&self.last));
        self.last = Cow::Owned(text);
        let mut layer = std::mem::take(&mut self.open);
        let mut growth = 0_isize;
        for put in &mut layer.puts {
            growth += put.piece.len() as isize - put.span.len() as isize;
            put.growth = growth;
            put.piece = String::new();
        }
        self.done.push(layer);
    }
}

impl ReplacementLayer {
    /// Returns the net number of bytes added before a place; or the first step that replaces a part
    /// of it. Where something was put in at its very beginning, it lies behind that.
    fn before(&self, span: &Range<usize>) -> Result<isize, usize> {
        let from = self.puts.partition_point(|put| put.span.end <= span.start);
        let rest = self.puts.get(from..).unwrap_or_default();
        match rest.iter().take_while(|put| put.span.start < span.end).map(|put| put.op).min() {
            Some(op) => Err(op),
            None => Ok(from.checked_sub(1).and_then(|last| self.puts.get(last)).map_or(0, |put| put.growth)),
        }
    }

    /// Returns the present position of a range of the earlier text; with all of what replaces a
    /// part of it.
    fn moved(&self, range: &Range<usize>) -> Range<usize> {
        let from = self.puts.partition_point(|put| put.span.end <= range.start);
        let grown = |count: usize| {
            count.checked_sub(1).and_then(|last| self.puts.get(last)).map_or(0, |put| put.growth)
        };
        let first = self.puts.get(from).map_or(range.start, |put| put.span.start.min(range.start));
        let to = self.puts.partition_point(|put| put.span.start < range.end);
        let last = to
            .checked_sub(1)
            .and_then(|last| self.puts.get(last))
            .map_or(range.end, |put| put.span.end.max(range.end));
        first.saturating_add_signed(grown(from))..last.saturating_add_signed(grown(to))
    }

    fn write(&self, text: &str) -> String {
        let added: usize = self.puts.iter().map(|put| put.piece.len()).sum();
        let mut out = String::with_capacity(text.len() + added);
        let mut done = 0;
        for put in &self.puts {
            out.push_str(text.get(done..put.span.start).unwrap_or_default());
            out.push_str(&put.piece);
            done = put.span.end;
        }
        out.push_str(text.get(done..).unwrap_or_default());
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::Strategy;
    use proptest::prelude::*;

    fn placed(pieces: Vec<(Range<usize>, String)>) -> Placed {
        Placed { strategy: Strategy::Exact, line: 1, note: None, pieces }
    }

    /// The same, done one replacement after the other.
    struct Plain {
        text: String,
        /// Texts that steps were found in: the first one, and each that a step began.
        texts: usize,
        /// The step, its text, what it replaced there, and how many bytes that added.
        done: Vec<(usize, usize, Range<usize>, isize)>,
    }

    impl Plain {
        /// Returns a placement in the present text, and its ranges in the newest searched text.
        fn carried(&self, placed: &Placed) -> Result<(Placed, Vec<Range<usize>>), usize> {
            let (mut here, mut found) = (placed.clone(), Vec::new());
            for (span, _) in &mut here.pieces {
                let mut begun = span.clone();
                for text in 0..=self.texts {
                    begun = span.clone();
                    for (op, _, from, growth) in self.done.iter().filter(|done| done.1 == text) {
                        if begun.start >= from.end {
                            *span = span.start.saturating_add_signed(*growth)
                                ..span.end.saturating_add_signed(*growth);
                        } else if begun.end > from.start {
                            return Err(*op);
                        }
                    }
                }
                found.push(begun);
            }
            Ok((here, found))
        }

        fn put(&mut self, op: usize, here: Placed, found: Vec<Range<usize>>) {
            self.text = here.apply_to(&self.text);
            let pieces = here.pieces.into_iter().zip(found);
            self.done.extend(pieces.map(|((span, piece), found)| {
                (op, self.texts, found, piece.len() as isize - span.len() as isize)
            }));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

        #[test]
        fn a_run_is_its_steps_one_after_the_other(
            text in "[a-z\n]{0,40}",
            steps in proptest::collection::vec((any::<bool>(), 0..60_usize, 0..4_usize, "[A-Z\n]{0,6}", 0..9_usize), 0..12),
        ) {
            let mut run = StepTexts::new(&text);
            let mut plain = Plain { text: text.clone(), texts: 0, done: Vec::new() };
            for (op, (written, start, length, piece, gap)) in steps.into_iter().enumerate() {
                let size = if written { plain.text.len() } else { text.len() };
                let start = start.min(size);
                let end = (start + length).min(size);
                let next = (end + gap).min(size);
                let mut pieces = vec![(start..end, piece.clone())];
                if gap > 3 {
                    pieces.push((next..(next + 1).min(size), piece));
                }
                let found = placed(pieces);
                prop_assert_eq!(run.current_text(), plain.text.as_str());
                let here = if written {
                    run.turn();
                    plain.texts += 1;
                    found
                } else {
                    let (here, expected) = (run.carried(&found), plain.carried(&found));
                    match expected {
                        Err(op) => {
                            prop_assert_eq!(here, Err(op));
                            continue;
                        }
                        Ok((expected, found)) => {
                            let start = expected.pieces[0].0.start;
                            let here = here.unwrap();
                            let line = run.line(here.pieces[0].0.start, |place| line_at(&text, place));
                            prop_assert_eq!(line, line_at(&plain.text, start));
                            plain.put(op, expected, found);
                            run.put(op, here.pieces);
                            continue;
                        }
                    }
                };
                run.put(op, here.pieces.clone());
                let found = here.pieces.iter().map(|(span, _)| span.clone()).collect();
                plain.put(op, here, found);
            }
            let Some((written, ranges)) = run.finish() else {
                prop_assert_eq!(text, plain.text);
                return Ok(());
            };
            // Text outside of the ranges was there before: only steps write capitals.
            for (at, _) in written.char_indices().filter(|(_, character)| character.is_ascii_uppercase()) {
                prop_assert!(ranges.iter().any(|range| range.contains(&at)), "{} in {:?}", at, ranges);
            }
            prop_assert_eq!(written, plain.text);
        }
    }
}
