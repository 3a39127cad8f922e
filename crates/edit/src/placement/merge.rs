//! Three-way merge: the search text is of the version that the model was shown, and the file has
//! moved on.
//!
//! The edit is placed in that version by the same strategies. Its changes, line by line, are then
//! carried over to the present file where nobody else changed those lines or the ones next to them,
//! as `git merge` has it: what two changed side by side seldom fits together, and the model is
//! there to look.

use std::collections::BTreeSet;
use std::ops::Range;

use journeyman_text_diff::Lines;
use journeyman_text_diff::merge::{Region, Resolution, merge_lines};

use crate::lines::line_at;
use crate::outcome::{MAX_FEEDBACK_BYTES, PlacedEdit, Refusal, Strategy, truncate};
use crate::placement::hunk::Hunk;
use crate::placement::indexed_text::IndexedText;
use crate::placement::strategies;

/// Places a hunk whose search text is in `base`, the version that the model was shown, in `text`.
/// `None` where it isn't there either, or only by a reading that is a guess itself.
pub(super) fn find_by_merge(text: &str, base: &str, hunk: &Hunk<'_>) -> Option<Result<PlacedEdit, Refusal>> {
    let hunk = Hunk { base: None, after: None, ..*hunk };
    let shown = strategies::find_by_strategies(&IndexedText::new(base, 1), &hunk)?.ok()?;
    if shown.strategy.is_loose() {
        return None;
    }
    Some(merge_placed(text, base, &shown))
}

fn merge_placed(text: &str, base: &str, shown: &PlacedEdit) -> Result<PlacedEdit, Refusal> {
    let edited = shown.apply_to(base);
    let [old, ours, theirs] = [base, edited.as_str(), text].map(|version| Lines::new(version.as_bytes()));
    let regions = merge_lines(old.as_slice(), ours.as_slice(), theirs.as_slice());
    let mut pieces = Vec::new();
    for region in &regions {
        let our_text = text_of_lines(&edited, &ours, &region.ours);
        match region.resolution {
            Resolution::Ours => {
                let span = theirs.line_start(region.theirs.start)..theirs.line_start(region.theirs.end);
                pieces.push((span, our_text.to_owned()));
            }
            Resolution::Conflict => {
                return Err(Refusal::Conflict {
                    line: u32::try_from(region.theirs.start + 1).unwrap_or(u32::MAX),
                    theirs: truncate(text_of_lines(text, &theirs, &region.theirs), MAX_FEEDBACK_BYTES)
                        .to_owned(),
                    ours: truncate(our_text, MAX_FEEDBACK_BYTES).to_owned(),
                });
            }
            Resolution::Unchanged | Resolution::Theirs | Resolution::Both => {}
        }
    }
    if pieces.is_empty() {
        return Err(Refusal::NoChange);
    }
    let line = line_at(text, pieces.first().map_or(0, |(span, _)| span.start));
    let since = match count_changed_lines(&old, &regions, shown) {
        0 => "the lines around it have changed since".to_owned(),
        1 => "1 of those lines has changed since".to_owned(),
        more => format!("{more} of those lines have changed since"),
    };
    let note = format!(
        "not in the file as it is now; placed by {} at line {} of the version that you were shown, {since}, and merged \
         at line {line}",
        shown.strategy, shown.line
    );
    Ok(PlacedEdit { strategy: Strategy::Merge, line, note: Some(note), pieces })
}

/// Returns consecutive lines of a version.
fn text_of_lines<'a>(version: &'a str, lines: &Lines<'_>, range: &Range<usize>) -> &'a str {
    version.get(lines.line_start(range.start)..lines.line_start(range.end)).unwrap_or_default()
}

/// Counts the lines of the base that the edit replaces and that somebody else changed.
fn count_changed_lines(base: &Lines<'_>, regions: &[Region], shown: &PlacedEdit) -> usize {
    let replaced: BTreeSet<usize> =
        shown.pieces.iter().flat_map(|(span, _)| base.lines_in_span(span)).collect();
    let changed =
        regions.iter().filter(|region| matches!(region.resolution, Resolution::Theirs | Resolution::Both));
    changed.map(|region| replaced.range(region.base.clone()).count()).sum()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{ProptestConfig, prop};
    use proptest::strategy::Strategy as Generator;
    use proptest::{prop_assert, prop_assert_eq, proptest};

    use super::*;

    fn merged(base: &str, text: &str, search: &str, replacement: &str) -> Option<Result<String, Refusal>> {
        find_by_merge(text, base, &Hunk::new(search, replacement))
            .map(|placed| placed.map(|placed| placed.apply_to(text)))
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
            if let (Ok(plain), Some(merged)) = (crate::placement::find_place(&base, &hunk), find_by_merge(&base, &base, &hunk)) {
                prop_assert_eq!(merged.map(|placed| placed.apply_to(&base)), Ok(plain.apply_to(&base)));
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
            if let Some(Ok(placed)) = find_by_merge(&text, &base, &Hunk::new(&search, &new)) {
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
