//! Replacements of a run of steps, and the mapping of earlier offsets to the present text.

use std::borrow::Cow;
use std::ops::Range;

use crate::lines::line_at;
use crate::outcome::PlacedEdit;

/// Steps that share lines with more steps than this are not told apart.
const MAX_OVERLAPPING_STEPS: usize = 16;

/// The texts of a run of steps.
///
/// Replacements that are found in the text before the run keep its coordinates and are written
/// together: writing each step would take the number of steps times the size of the file. A step
/// that is found only in the text of earlier replacements begins a new text.
pub(super) struct LayeredText<'a> {
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

impl<'a> LayeredText<'a> {
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
        written.get_or_insert_with(|| open.apply_to(last))
    }

    /// The text as all steps leave it, and the bytes of it that they put there; `None` where they
    /// replace nothing.
    pub(super) fn finish(mut self) -> Option<(String, Vec<Range<usize>>)> {
        if self.is_untouched() {
            return None;
        }
        self.begin_layer();
        let mut ranges: Vec<Range<usize>> = Vec::new();
        for layer in &self.done {
            ranges.iter_mut().for_each(|range| *range = layer.map_range(range));
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
    pub(super) fn translate_placement(&self, placed: &PlacedEdit) -> Result<PlacedEdit, usize> {
        let mut here = placed.clone();
        for (span, _) in &mut here.pieces {
            for layer in &self.done {
                let growth = layer.growth_before(span)?;
                *span = span.start.saturating_add_signed(growth)..span.end.saturating_add_signed(growth);
            }
            self.open.growth_before(span)?;
        }
        Ok(here)
    }

    /// Returns a placement of one place that shares with the steps before only lines that stay, as
    /// what it changes; what these steps change is then kept as narrowly. `None` where they change
    /// the same lines, or put text in side by side, whose order nobody tells.
    pub(super) fn narrow_overlapping(&mut self, placed: &PlacedEdit) -> Option<PlacedEdit> {
        let [(span, piece)] = placed.pieces.as_slice() else { return None };
        if !self.done.is_empty() {
            return None;
        }
        let puts = &self.open.puts;
        let from = puts.partition_point(|put| put.span.end <= span.start);
        let to = puts.partition_point(|put| put.span.start < span.end);
        let shared = puts.get(from..to).filter(|shared| shared.len() <= MAX_OVERLAPPING_STEPS)?;
        let narrowed: Vec<_> =
            shared.iter().map(|put| trim_unchanged_edges(&self.last, &put.span, &put.piece)).collect();
        let (span, piece) = trim_unchanged_edges(&self.last, span, piece);
        let before = from.checked_sub(1).and_then(|at| puts.get(at)).map(|put| &put.span);
        let shared_now = narrowed.iter().map(|(span, _)| span);
        let around: Vec<&Range<usize>> =
            before.into_iter().chain(shared_now).chain(puts.get(to).map(|put| &put.span)).collect();
        let in_order = around.windows(2).all(|pair| matches!(pair, [one, next] if one.end <= next.start));
        if !in_order || around.into_iter().any(|other| are_conflicting(&span, other)) {
            return None;
        }
        for (put, (span, piece)) in self.open.puts.iter_mut().skip(from).zip(narrowed) {
            (put.span, put.piece) = (span, piece);
        }
        Some(PlacedEdit { pieces: vec![(span, piece)], ..placed.clone() })
    }

    /// Returns true if a placement in the text before the run only puts lines in, right where an
    /// earlier step only puts some in: nobody tells their order.
    pub(super) fn inserts_beside(&self, placed: &PlacedEdit) -> bool {
        let [(span, piece)] = placed.pieces.as_slice() else { return false };
        let (place, _) = trim_unchanged_edges(&self.last, span, piece);
        let puts = &self.open.puts;
        let shared = puts.iter().skip(puts.partition_point(|put| put.span.end <= span.start));
        let mut shared = shared.take_while(|put| put.span.start < span.end).take(MAX_OVERLAPPING_STEPS);
        self.done.is_empty()
            && place.is_empty()
            && shared.any(|put| trim_unchanged_edges(&self.last, &put.span, &put.piece).0 == place)
    }

    /// The 1-based line, in the text as the steps so far leave it, of a place of the last one;
    /// `first` tells it for the text before the run.
    pub(super) fn line_number(&self, place: usize, first: impl Fn(usize) -> u32) -> u32 {
        let line = if self.done.is_empty() { first(place) } else { line_at(&self.last, place) };
        let puts = &self.open.puts;
        let after = puts.get(puts.partition_point(|put| put.span.end <= place)..).unwrap_or_default();
        let more = self.open.lines - after.iter().map(|put| put.lines).sum::<i64>();
        u32::try_from(i64::from(line).saturating_add(more)).unwrap_or(u32::MAX)
    }

    /// Takes in what a step replaces in the last text.
    pub(super) fn push_replacements(&mut self, op: usize, pieces: Vec<(Range<usize>, String)>) {
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
    pub(super) fn begin_layer(&mut self) {
        if self.open.puts.is_empty() {
            return;
        }
        let text = self.written.take().unwrap_or_else(|| self.open.apply_to(&self.last));
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
    fn growth_before(&self, span: &Range<usize>) -> Result<isize, usize> {
        let from = self.puts.partition_point(|put| put.span.end <= span.start);
        let rest = self.puts.get(from..).unwrap_or_default();
        match rest.iter().take_while(|put| put.span.start < span.end).map(|put| put.op).min() {
            Some(op) => Err(op),
            None => Ok(from.checked_sub(1).and_then(|last| self.puts.get(last)).map_or(0, |put| put.growth)),
        }
    }

    /// Returns the present position of a range of the earlier text; with all of what replaces a
    /// part of it.
    fn map_range(&self, range: &Range<usize>) -> Range<usize> {
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

    fn apply_to(&self, text: &str) -> String {
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

/// A replacement without the lines at its edges that stay. Where it can't be told which of equal
/// lines come or go, all of them count as changed.
fn trim_unchanged_edges(text: &str, span: &Range<usize>, piece: &str) -> (Range<usize>, String) {
    // A text of whole lines may have been given without the last one's break.
    let after = text.get(span.end..).unwrap_or_default();
    let line_break = ["\r\n", "\n"].into_iter().find(|line_break| after.starts_with(line_break));
    let line_break = line_break.unwrap_or_default();
    let whole = span.start..span.end + line_break.len();
    let piece = format!("{piece}{line_break}");
    let old: Vec<&str> = text.get(whole.clone()).unwrap_or_default().split_inclusive('\n').collect();
    let new: Vec<&str> = piece.split_inclusive('\n').collect();
    let same = |(one, other): &(&&str, &&str)| one == other;
    let head = old.iter().zip(&new).take_while(same).count();
    let tail = old.iter().rev().zip(new.iter().rev()).take_while(same).count();
    let least = old.len().min(new.len());
    let (head, tail) = (head.min(least - tail), tail.min(least - head));
    let bytes = |lines: &[&str]| lines.iter().map(|line| line.len()).sum::<usize>();
    let (head, tail) =
        (bytes(old.get(..head).unwrap_or_default()), bytes(old.get(old.len() - tail..).unwrap_or_default()));
    let changed = whole.start + head..whole.end - tail;
    let piece = piece.get(head..piece.len() - tail).unwrap_or_default();
    // Its break stays, if the last line changes.
    match (tail, piece.strip_suffix(line_break)) {
        (0, Some(piece)) if changed.len() >= line_break.len() => {
            (changed.start..changed.end - line_break.len(), piece.to_owned())
        }
        _ => (changed, piece.to_owned()),
    }
}

/// Returns true if two changed ranges share bytes, or one lies at the edge of another where one of
/// them is an insertion.
fn are_conflicting(one: &Range<usize>, other: &Range<usize>) -> bool {
    let inserts = one.is_empty() || other.is_empty();
    one.start < other.end && other.start < one.end
        || inserts && one.start <= other.end && other.start <= one.end
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::Strategy;
    use proptest::prelude::*;

    fn placed(pieces: Vec<(Range<usize>, String)>) -> PlacedEdit {
        PlacedEdit { strategy: Strategy::Exact, line: 1, note: None, pieces }
    }

    #[test]
    fn what_a_replacement_changes() {
        let cases = [
            ("a\nb\nc\n", 0..6, "a\nB\nc\n", 2..4, "B\n"),
            ("a\nb\nc\n", 0..5, "a\nB\nc", 2..4, "B\n"),
            ("a\nb\nc\n", 0..3, "a\nX\nb", 2..2, "X\n"),
            ("a\nb\nc\n", 0..3, "a\nb\nX", 4..4, "X\n"),
            ("a\r\nb\r\n", 0..4, "a\r\nB", 3..4, "B"),
            ("a\nb", 0..3, "a\nb\nX", 2..3, "b\nX"),
            ("a\na\n", 0..4, "a\n", 0..4, "a\n"),
            ("a\nb\n", 0..3, "a\na\nb", 0..2, "a\na\n"),
        ];
        for (text, span, piece, changed, new) in cases {
            let (range, left) = trim_unchanged_edges(text, &span, piece);
            let whole = placed(vec![(span, piece.to_owned())]).apply_to(text);
            assert_eq!(placed(vec![(range.clone(), left.clone())]).apply_to(text), whole, "{piece:?}");
            assert_eq!((range, left.as_str()), (changed, new), "{text:?} {piece:?}");
        }
    }

    #[test]
    fn steps_that_share_lines_that_stay() {
        let text = "one\ntwo\nthree\nfour\n";
        let go = |one: (Range<usize>, &str), two: (Range<usize>, &str)| {
            let mut run = LayeredText::new(text);
            run.push_replacements(0, vec![(one.0, one.1.to_owned())]);
            let p = placed(vec![(two.0, two.1.to_owned())]);
            assert!(run.translate_placement(&p).is_err());
            let here = run.narrow_overlapping(&p)?;
            run.push_replacements(1, here.pieces);
            run.finish().map(|f| f.0)
        };
        assert_eq!(
            go((0..13, "ONE\ntwo\nthree"), (0..13, "one\ntwo\nTHREE")).as_deref(),
            Some("ONE\ntwo\nTHREE\nfour\n")
        );
        assert_eq!(
            go((0..13, "one\ntwo\nTHREE"), (0..13, "ONE\ntwo\nthree")).as_deref(),
            Some("ONE\ntwo\nTHREE\nfour\n")
        );
        assert_eq!(
            go((0..7, "one\nnew\ntwo"), (0..13, "one\ntwo\nTHREE")).as_deref(),
            Some("one\nnew\ntwo\nTHREE\nfour\n")
        );
        assert_eq!(go((0..7, "one\nX\ntwo"), (0..7, "one\nY\ntwo")), None);
        assert_eq!(go((0..7, "one\nTWO"), (0..13, "one\nzwei\nthree")), None);
        assert_eq!(go((4..13, "TWO\nthree"), (4..18, "two\nnew\nthree\nfour")), None);
        assert_eq!(
            go((0..13, "two\nthree"), (0..18, "one\ntwo\nthree\nFOUR")).as_deref(),
            Some("two\nthree\nFOUR\n")
        );
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
        fn carried(&self, placed: &PlacedEdit) -> Result<(PlacedEdit, Vec<Range<usize>>), usize> {
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

        fn put(&mut self, op: usize, here: PlacedEdit, found: Vec<Range<usize>>) {
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
            let mut run = LayeredText::new(&text);
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
                    run.begin_layer();
                    plain.texts += 1;
                    found
                } else {
                    let (here, expected) = (run.translate_placement(&found), plain.carried(&found));
                    match expected {
                        Err(op) => {
                            prop_assert_eq!(here, Err(op));
                            continue;
                        }
                        Ok((expected, found)) => {
                            let start = expected.pieces[0].0.start;
                            let here = here.unwrap();
                            let line = run.line_number(here.pieces[0].0.start, |place| line_at(&text, place));
                            prop_assert_eq!(line, line_at(&plain.text, start));
                            plain.put(op, expected, found);
                            run.push_replacements(op, here.pieces);
                            continue;
                        }
                    }
                };
                run.push_replacements(op, here.pieces.clone());
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
