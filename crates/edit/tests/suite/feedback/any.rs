//! What holds for any miss.

use journeyman_edit::{Hunk, MAX_FEEDBACK_BYTES, Refusal, find_place};
use proptest::prelude::{ProptestConfig, any, prop};
use proptest::strategy::Strategy;
use proptest::{prop_assert, prop_assert_eq, proptest};

use super::{edit, path, replace};

/// Texts of lines that are much alike.
fn text(most: usize) -> impl Strategy<Value = String> {
    let word = prop::sample::select(vec![
        "let",
        "x",
        "=",
        "total",
        "10",
        "100",
        "(",
        ")",
        "\"a  b\"",
        "  ",
        "\t",
        "é",
        "\u{1f600}",
        "```",
        "\u{201c}",
        "\u{7}",
        "a_very_long_name_that_goes_on_and_on_and_on_and_on_and_on_and_on_and_on_and_on_and_on_and_on_and_on_and_on",
    ]);
    let line = prop::collection::vec(word, 0..9).prop_map(|words| words.join(" "));
    let end = prop::sample::select(vec!["\n", "\n", "\n", "\r\n", "\n\n"]);
    prop::collection::vec((line, end).prop_map(|(line, end)| line + end), 0..most)
        .prop_map(|lines| lines.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn words_are_bounded_and_the_lines_shown_are_the_files(file in text(60), search in text(12), replacement in text(6), base in prop::option::of(text(60)), all in any::<bool>()) {
        let hunk = Hunk { all, base: base.as_deref(), ..Hunk::new(&search, &replacement) };
        let Err(refusal) = find_place(&file, &hunk) else { return Ok(()) };
        let words = refusal.to_string();
        prop_assert!(words.len() <= MAX_FEEDBACK_BYTES, "{}", words.len());
        let lines: Vec<&str> = file.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line)).collect();
        match refusal {
            Refusal::NotFound { closest: Some(near), .. } => {
                prop_assert!((0.0..=1.0).contains(&near.similarity));
                let count = near.text.split('\n').count();
                let first = near.line as usize - 1;
                if near.text.len() < MAX_FEEDBACK_BYTES {
                    prop_assert_eq!(lines[first..first + count].join("\n"), near.text.clone());
                }
                for row in near.excerpt.split('\n') {
                    let (mark, rest) = row.split_at(1.min(row.len()));
                    let Some((number, own)) = rest.trim_start().split_once(' ') else { continue };
                    let (true, Ok(number)) = (mark == " " || mark == "+", number.parse::<usize>()) else { continue };
                    prop_assert!(number > 0 && number <= lines.len());
                    let whole = !own.contains(['…', '·', '→', '␍', '⍽', '�']);
                    if whole {
                        prop_assert_eq!(own.trim_end(), lines[number - 1].trim_end());
                    }
                }
            }
            Refusal::Ambiguous { lines: at, spots, .. } => {
                for (spot, line) in spots.iter().zip(&at) {
                    prop_assert_eq!(spot.first, *line);
                    prop_assert!(spot.last >= spot.first && spot.last as usize <= lines.len());
                    for (number, shown) in spot.within.iter().chain(&spot.distinctive) {
                        let own = lines[*number as usize - 1].trim();
                        prop_assert!(own == shown || own.starts_with(shown.trim_end_matches('…')));
                    }
                }
            }
            _ => {}
        }
    }

    #[test]
    fn a_line_that_is_said_to_tell_places_apart_does(file in text(40), at in 0usize..40) {
        // Where line endings differ, the same lines with other endings are places too.
        let file = file.replace("\r\n", "\n");
        let lines: Vec<&str> = file.split_inclusive('\n').collect();
        let Some(search) = lines.get(at) else { return Ok(()) };
        let Err(Refusal::Ambiguous { spots, strategy: journeyman_edit::Strategy::Exact, .. }) = find_place(&file, &Hunk::new(search, "new"))
        else {
            return Ok(());
        };
        for spot in spots {
            let Some((distinctive, _)) = spot.distinctive else { continue };
            let (first, last) = (spot.first.min(distinctive), spot.last.max(distinctive));
            let wider = lines[first as usize - 1..last as usize].concat();
            prop_assert_eq!(find_place(&file, &Hunk::new(&wider, "new")).map(|placed| placed.line), Ok(first));
        }
    }

    #[test]
    fn a_replys_feedback_is_bounded(file in text(40), other in text(40), searches in prop::collection::vec((text(6), text(6)), 1..6), partial in any::<bool>(), name in "[a-z/]{1,40}\\.[a-z]{1,3}") {
        let files = [(path("a.rs"), file), (path("b/c.rs"), other)].into_iter().collect::<std::collections::BTreeMap<_, _>>();
        let ops: Vec<_> = searches.iter().map(|(search, replacement)| replace(search, replacement)).collect();
        let mut edits = vec![edit("a.rs", ops.clone())];
        if journeyman_protocol::RelPath::parse(&name).is_ok() {
            edits.push(edit(&name, ops));
        }
        let options = journeyman_edit::ApplyOptions { partial, ..Default::default() };
        let plan = journeyman_edit::plan_edits(&edits, &options, &files);
        prop_assert!(plan.feedback().len() <= MAX_FEEDBACK_BYTES);
        for failure in &plan.failed {
            prop_assert!(failure.message.len() <= MAX_FEEDBACK_BYTES);
        }
    }
}
