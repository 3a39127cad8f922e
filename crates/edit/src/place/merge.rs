//! Three-way merge: the search text is of the version that the model was shown, and the file has moved on.
//!
//! The edit is placed in that version by the same ladder. Its changes, line by line, are then carried over to the present
//! file where nobody else changed those lines or the ones next to them, as `git merge` has it: what two changed side by
//! side seldom fits together, and the model is there to look.

use std::ops::Range;

use similar::{Algorithm, DiffOp, capture_diff_slices};

use crate::lines::line_at;
use crate::outcome::{MAX_FEEDBACK_BYTES, Placed, Refusal, Strategy, cut};
use crate::place::{self, Hunk};

/// Places a hunk whose search text is in `base`, the version that the model was shown, in `text`. `None` where it isn't
/// there either, or only by a reading that is a guess itself.
pub(crate) fn find(text: &str, base: &str, hunk: &Hunk<'_>) -> Option<Result<Placed, Refusal>> {
    let shown = place::find(base, &Hunk { base: None, after: None, ..*hunk }).ok()?;
    if shown.strategy.is_loose() {
        return None;
    }
    Some(carry(text, base, &shown))
}

fn carry(text: &str, base: &str, shown: &Placed) -> Result<Placed, Refusal> {
    let versions = Versions::new(base, text);
    let mut pieces = Vec::new();
    let mut changed_since = 0;
    for group in groups(&versions.base, base, &shown.pieces) {
        changed_since += group.lines.len() - versions.present(&group.lines);
        for change in group.changes(&versions.base) {
            pieces.extend(versions.carry(&change)?);
        }
    }
    if pieces.is_empty() {
        return Err(Refusal::NoChange);
    }
    let line = line_at(text, pieces.first().map_or(0, |(span, _)| span.start));
    let since = match changed_since {
        0 => "the lines around it have changed since".to_owned(),
        1 => "1 of those lines has changed since".to_owned(),
        more => format!("{more} of those lines have changed since"),
    };
    let note = format!(
        "not in the file as it is now; placed by {} at line {} of the version that you were shown, {since}, and merged \
         at line {line}",
        shown.strategy, shown.line
    );
    Ok(Placed { strategy: Strategy::Merge, line, note: Some(note), pieces })
}

/// A text's lines, each with its line break, and where they begin.
struct Lines<'a> {
    lines: Vec<&'a str>,
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    fn new(text: &'a str) -> Self {
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        let mut starts = Vec::with_capacity(lines.len() + 1);
        starts.push(0);
        for line in &lines {
            starts.push(starts.last().copied().unwrap_or(0) + line.len());
        }
        Self { lines, starts }
    }

    fn len(&self) -> usize {
        self.lines.len()
    }

    /// Where a line begins; the end of the text for the one after the last.
    fn start(&self, line: usize) -> usize {
        self.starts.get(line).or(self.starts.last()).copied().unwrap_or(0)
    }

    /// The lines that hold some bytes; none where there are none between two lines.
    fn holding(&self, span: &Range<usize>) -> Range<usize> {
        let first =
            self.starts.partition_point(|start| *start <= span.start).saturating_sub(1).min(self.len());
        let end = self.starts.partition_point(|start| *start < span.end).min(self.len());
        let inside = span.start > self.start(first);
        first..end.max(if inside { first + 1 } else { first }).min(self.len())
    }

    fn text(&self, lines: Range<usize>) -> String {
        self.lines.get(lines).unwrap_or_default().concat()
    }
}

/// Lines of the base, and the text that comes in their place.
struct Change {
    lines: Range<usize>,
    new: String,
}

/// Pieces of the edit that share lines, with all of those lines.
struct Group {
    lines: Range<usize>,
    new: String,
}

/// The pieces as whole lines, those in one line together.
fn groups(base: &Lines<'_>, text: &str, pieces: &[(Range<usize>, String)]) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    // The bytes of the base up to which the last group's new text is written.
    let mut done = 0;
    let close = |groups: &mut Vec<Group>, done: usize| {
        if let Some(last) = groups.last_mut() {
            last.new.push_str(text.get(done..base.start(last.lines.end)).unwrap_or_default());
        }
    };
    for (span, piece) in pieces {
        let lines = base.holding(span);
        match groups.last_mut().filter(|last| lines.start < last.lines.end) {
            Some(last) => last.lines.end = last.lines.end.max(lines.end),
            None => {
                close(&mut groups, done);
                done = base.start(lines.start);
                groups.push(Group { lines, new: String::new() });
            }
        }
        if let Some(last) = groups.last_mut() {
            last.new.push_str(text.get(done..span.start).unwrap_or_default());
            last.new.push_str(piece);
            done = span.end;
        }
    }
    close(&mut groups, done);
    groups
}

impl Group {
    /// Which of the lines really change.
    fn changes(&self, base: &Lines<'_>) -> Vec<Change> {
        let old = base.lines.get(self.lines.clone()).unwrap_or_default();
        let new: Vec<&str> = self.new.split_inclusive('\n').collect();
        capture_diff_slices(Algorithm::Myers, old, &new)
            .iter()
            .filter(|op| !matches!(op, DiffOp::Equal { .. }))
            .map(|op| Change {
                lines: op.old_range().start + self.lines.start..op.old_range().end + self.lines.start,
                new: new.get(op.new_range()).unwrap_or_default().concat(),
            })
            .collect()
    }
}

/// The version that the model was shown and the present one, aligned by lines.
struct Versions<'a> {
    base: Lines<'a>,
    text: Lines<'a>,
    /// The lines that both have, in order: which of the base is which of the text.
    common: Vec<(usize, usize)>,
}

impl<'a> Versions<'a> {
    fn new(base: &'a str, text: &'a str) -> Self {
        let (base, text) = (Lines::new(base), Lines::new(text));
        let mut common = Vec::with_capacity(base.len());
        for op in capture_diff_slices(Algorithm::Myers, &base.lines, &text.lines) {
            if let DiffOp::Equal { old_index, new_index, len } = op {
                common.extend((old_index..).zip(new_index..).take(len));
            }
        }
        Self { base, text, common }
    }

    /// How many of some lines of the base are in the text.
    fn present(&self, lines: &Range<usize>) -> usize {
        let before = |line: usize| self.common.partition_point(|(base, _)| *base < line);
        before(lines.end) - before(lines.start)
    }

    /// A change in the present file's bytes; nothing where it has been made there already.
    fn carry(&self, change: &Change) -> Result<Option<(Range<usize>, String)>, Refusal> {
        let (start, end) = (change.lines.start, change.lines.end);
        // The nearest lines on both sides that are still there, and what stands between them in both versions.
        let before = self.common.partition_point(|(base, _)| *base < start).checked_sub(1);
        let before = before.and_then(|at| self.common.get(at));
        let after = self.common.get(self.common.partition_point(|(base, _)| *base < end));
        let (base_from, text_from) = before.map_or((0, 0), |(base, text)| (base + 1, text + 1));
        let (base_to, text_to) = after.copied().unwrap_or((self.base.len(), self.text.len()));
        let untouched = base_from == start
            && base_to == end
            && text_to - text_from == end - start
            && self.present(&change.lines) == change.lines.len();
        if untouched {
            return Ok(Some((self.text.start(text_from)..self.text.start(text_to), change.new.clone())));
        }
        let ours =
            [self.base.text(base_from..start), change.new.clone(), self.base.text(end..base_to)].concat();
        let theirs = self.text.text(text_from..text_to);
        if ours == theirs {
            return Ok(None);
        }
        Err(Refusal::Conflict {
            line: u32::try_from(text_from + 1).unwrap_or(u32::MAX),
            theirs: cut(&theirs, MAX_FEEDBACK_BYTES).to_owned(),
            ours: cut(&ours, MAX_FEEDBACK_BYTES).to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{ProptestConfig, prop};
    use proptest::strategy::Strategy as Generator;
    use proptest::{prop_assert, prop_assert_eq, proptest};

    use super::*;

    fn merged(base: &str, text: &str, search: &str, replacement: &str) -> Option<Result<String, Refusal>> {
        find(text, base, &Hunk::new(search, replacement)).map(|placed| placed.map(|placed| placed.text(text)))
    }

    #[test]
    fn merging_table() {
        let base = "a\nb\nc\nd\ne\nf\n";
        // (name, the file now, search, replacement, the file then)
        let cases = [
            (
                "a context line changed",
                "a\nb\nc\nd\nE\nf\n",
                "b\nc\nd\ne\n",
                "b\nX\nd\ne\n",
                "a\nb\nX\nd\nE\nf\n",
            ),
            (
                "lines came before",
                "1\n2\na\nb\nc\nd\nE\nf\n",
                "c\nd\ne",
                "X\nd\ne",
                "1\n2\na\nb\nX\nd\nE\nf\n",
            ),
            ("lines go", "a\nb\nc\nd\nE\nf\n", "a\nb\nc\nd\ne\n", "a\nc\nd\ne\n", "a\nc\nd\nE\nf\n"),
            (
                "lines come",
                "a\nb\nc\nD\ne\nf\n",
                "a\nb\nc\nd",
                "a\nX\nY\nb\nc\nd",
                "a\nX\nY\nb\nc\nD\ne\nf\n",
            ),
            ("within a line", "A\nb\nc\nd\ne\nf\n", "a\nb\nc\nd", "a\nb\nc\ndx", "A\nb\nc\ndx\ne\nf\n"),
            (
                "in two places",
                "a\nb\nc\nD\ne\nf\n",
                "a\nb\nc\nd\ne\nf\n",
                "1\nb\nc\nd\ne\n6\n",
                "1\nb\nc\nD\ne\n6\n",
            ),
        ];
        for (name, text, search, replacement, expected) in cases {
            assert_eq!(merged(base, text, search, replacement), Some(Ok(expected.to_owned())), "{name}");
        }
    }

    #[test]
    fn conflicts_show_both_sides() {
        let base = "a\nb\nc\nd\ne\n";
        let refusal = merged(base, "a\nb\nC1\nC2\nd\ne\n", "b\nc\nd", "b\nX\nd").unwrap().unwrap_err();
        let Refusal::Conflict { line, theirs, ours } = &refusal else { panic!("{refusal}") };
        assert_eq!((*line, theirs.as_str(), ours.as_str()), (3, "C1\nC2\n", "X\n"));
        let words = refusal.to_string();
        assert!(words.contains("```\nC1\nC2\n```") && words.contains("```\nX\n```"), "{words}");
        // (name, the file now, search, replacement)
        let cases = [
            ("the line is gone", "a\nb\nd\ne\n", "b\nc\nd", "b\nX\nd"),
            ("the line next to it changed", "a\nb\nc\nD\ne\n", "b\nc\nd", "b\nX\nd"),
            ("a line came next to it", "a\nb\nc\n1\nd\ne\n", "b\nc\nd", "b\nX\nd"),
            ("both add there", "a\nb\n1\nc\nd\ne\n", "b\nc", "b\n2\nc"),
            ("both add at the end", "a\nb\nc\nd\ne\n1\n", "a\nb\nc\nd\ne\n", "a\nb\nc\nd\ne\n2\n"),
        ];
        for (name, text, search, replacement) in cases {
            let kind = merged(base, text, search, replacement).unwrap().unwrap_err().kind();
            assert_eq!(kind, "conflict", "{name}");
        }
    }

    #[test]
    fn what_is_not_in_the_version_shown_is_not_merged() {
        assert_eq!(merged("a\nb\na\n", "a\nc\n", "x\n", "y\n"), None);
        assert_eq!(merged("a\nb\na\n", "c\nb\n", "a\n", "y\n"), None, "twice");
    }

    #[test]
    fn the_same_change_is_made_once() {
        let base = "a\nb\nc\nd\ne\nf\ng\n";
        assert_eq!(
            merged(base, "a\nB\nc\nD\ne\nf\ng\n", "a\nb\nc\nd", "a\nB\nc\nd"),
            Some(Err(Refusal::NoChange))
        );
        let both = merged(base, "a\nB\nc\nd\nE\nf\ng\n", "a\nb\nc\nd\ne\nf\ng", "a\nB\nc\nd\ne\nf\nG");
        assert_eq!(both, Some(Ok("a\nB\nc\nd\nE\nf\nG\n".to_owned())));
    }

    #[test]
    fn line_ends_and_the_last_line_break_are_kept() {
        assert_eq!(
            merged("a\r\nb\r\nc\r\nd", "a\r\nb\r\nC\r\nd", "a\nb\nc\nd", "x\nb\nc\nd"),
            Some(Ok("x\r\nb\r\nC\r\nd".to_owned()))
        );
    }

    fn text() -> impl Generator<Value = Vec<String>> {
        let line = prop::sample::select(vec!["a", "b", "c", "d", "  e", "}", "", "f(x)"]);
        prop::collection::vec(line.prop_map(|line| format!("{line}\n")), 1..14)
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn merging_onto_an_unchanged_base_is_the_plain_edit(lines in text(), at in 0usize..14, len in 1usize..4, new in text()) {
            let at = at % lines.len();
            let base = lines.concat();
            let search = lines[at..(at + len).min(lines.len())].concat();
            let replacement = new.concat();
            let hunk = Hunk::new(&search, &replacement);
            if let (Ok(plain), Some(merged)) = (place::find(&base, &hunk), find(&base, &base, &hunk)) {
                prop_assert_eq!(merged.map(|placed| placed.text(&base)), Ok(plain.text(&base)));
            }
        }

        #[test]
        fn changes_that_do_not_meet_both_survive(mine in 0usize..20, theirs in 0usize..20, comes: bool) {
            let lines: Vec<String> = (0..20).map(|n| format!("line {n}\n")).collect();
            let base = lines.concat();
            let with = |at: usize, new: &str| -> String {
                lines.iter().enumerate().map(|(n, line)| if n == at { new } else { line.as_str() }).collect()
            };
            let new = if comes { "theirs\nand more\n" } else { "" };
            let text = with(theirs, new);
            // The search text is the whole file, so that it isn't in the present one.
            let replacement = with(mine, "mine\n");
            let merged = merged(&base, &text, &base, &replacement).unwrap();
            if mine.abs_diff(theirs) > 1 {
                let expected: String = lines
                    .iter()
                    .enumerate()
                    .map(|(n, line)| if n == mine { "mine\n" } else if n == theirs { new } else { line.as_str() })
                    .collect();
                prop_assert_eq!(merged, Ok(expected));
            } else {
                prop_assert_eq!(merged.unwrap_err().kind(), "conflict");
            }
        }

        #[test]
        fn nothing_of_theirs_is_lost(lines in text(), theirs in text(), search in text(), new in text()) {
            let (base, text) = (lines.concat(), theirs.concat());
            let (search, new) = (search.concat(), new.concat());
            if let Some(Ok(placed)) = find(&text, &base, &Hunk::new(&search, &new)) {
                for (span, _) in &placed.pieces {
                    // Only lines that the model was shown go.
                    for line in text[span.clone()].split_inclusive('\n') {
                        prop_assert!(base.contains(line));
                    }
                }
            }
        }
    }
}
