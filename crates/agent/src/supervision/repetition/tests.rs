//! Tests of the repetition detector: texts that go in circles, and texts that only repeat.

use proptest::prelude::*;

use super::*;

/// The text that is kept of a text that goes in circles.
fn kept(text: &str) -> Option<&str> {
    RepetitionDetector::default().push(text).map(|end| &text[..end])
}

/// A sentence of words that a model says.
fn sentence() -> impl Strategy<Value = String> {
    prop::collection::vec("[a-z]{3,9}", 4..14).prop_map(|words| format!("The {}.", words.join(" ")))
}

/// Sentences that differ.
fn paragraph(sentences: std::ops::Range<usize>) -> impl Strategy<Value = Vec<String>> {
    prop::collection::hash_set(sentence(), sentences).prop_map(|all| all.into_iter().collect())
}

#[test]
fn the_sentence_of_a_weak_model_is_kept_twice() {
    let sentence = "The task is defined to create a task. ";
    for before in ["", "I begin.\n\n", "## Plan\n\n- one\n- two\n\n"] {
        let text = format!("{before}{}", sentence.repeat(100));
        assert_eq!(kept(&text), Some(format!("{before}{}", sentence.repeat(2)).as_str()));
    }
    assert_eq!(kept(&sentence.repeat(6)), None, "six short sentences are no circle yet");
}

#[test]
fn every_kind_of_circle_is_found() {
    let block = "Let me check the file.\n\n```rust\nfn main() {}\n```\n\nI see that it is fine.\n";
    let cases = [
        ("a line", "- The task is to create a task\n".to_owned()),
        ("an indented line", "  the end of the story is near  \n".to_owned()),
        ("a paragraph", "I look at the file.\nThen I look at it once more.\n\nIt is as it was!\n".to_owned()),
        ("prose around code", block.to_owned()),
        ("no end of a sentence", "and so we go on and on ".to_owned()),
        ("no blank", "the-same-words-without-end-".to_owned()),
        ("another script", "私は同じことを何度も言います。".to_owned()),
        ("quoted", "He says \"it is the same again.\" ".to_owned()),
    ];
    for (name, period) in cases {
        let text = period.repeat(60_000 / period.len());
        let kept = kept(&text).unwrap_or_else(|| panic!("{name} is not found"));
        // Without sentences, a unit is a piece of a line, and a period is a number of pieces.
        assert!(kept.len() <= 8 * 1024 && text.starts_with(kept), "{name}: {}", kept.len());
    }
}

#[test]
fn a_counter_does_not_hide_a_circle() {
    let text: String = (1..2_000).map(|n| format!("{n}. The task is to define task {n} again.\n")).collect();
    let kept = kept(&text).unwrap();
    assert_eq!(kept, "1. The task is to define task 1 again.\n2. The task is to define task 2 again.\n");
}

#[test]
fn code_and_data_repeat_without_alarm() {
    let enumeration: String = (0..3_000).map(|n| format!("    VARIANT_{n} = {n},\n")).collect();
    let constants: String = (0..3_000).map(|n| format!("pub const SIZE_{n}: usize = {n};\n")).collect();
    let files: String = (0..1_000).map(|n| format!("- src/module_{n}.rs\n")).collect();
    let assertions = "    assert_eq!(parse(\"a\"), Ok(1));\n".repeat(200);
    let cases = [
        ("an enumeration", format!("```rust\n{enumeration}```\n")),
        ("constants without a fence", constants),
        ("a list of files", files),
        ("assertions", format!("```rust\n{assertions}```\n")),
        (
            "the same sentence in a fence",
            format!("```text\n{}```\n", "It is the same line again.\n".repeat(1_000)),
        ),
        (
            "an edit block",
            format!("<edit path=\"a.txt\">\n{}</edit>\n", "It is the same line again.\n".repeat(1_000)),
        ),
        (
            "a table",
            format!(
                "| name | what it is |\n|---|---|\n{}",
                "| the same | the same cell again |\n".repeat(500)
            ),
        ),
        ("an array of numbers", format!("[{}0]", "0, ".repeat(8_000))),
        ("an array of texts", format!("[\n{}]\n", "  \"the quick brown fox jumps\",\n".repeat(700))),
        (
            "objects",
            format!("[\n{}]\n", "{ \"name\": \"somebody\", \"city\": \"somewhere\" },\n".repeat(500)),
        ),
        ("comma-separated values", "anna,berlin,germany,europe,\n".repeat(800)),
        ("base 64 of zeros", format!("{}\n", "A".repeat(76)).repeat(300)),
        ("hexadecimal zeros", format!("{}\n", "00 ".repeat(16)).repeat(400)),
        ("a picture", format!("{}\n", "/\\_/\\  ( o.o )  > ^ < ").repeat(300)),
        ("a ruler", "=".repeat(20_000)),
        ("dots", ". ".repeat(8_000)),
        ("empty lines", "\n".repeat(20_000)),
        ("a checklist", "- [ ] todo\n".repeat(500)),
        ("a refrain", "We all sing the song again.\nAnd once more.\n".repeat(5)),
    ];
    for (name, text) in cases {
        assert_eq!(kept(&text).map(str::len), None, "{name} is no circle");
    }
}

#[test]
fn endless_data_is_a_circle_in_the_end() {
    for (name, period) in [("zeros", "0"), ("empty lines", "\n"), ("rows", "| a | b |\n")] {
        let text = period.repeat(200_000 / period.len());
        assert!(kept(&text).is_some_and(|kept| kept.len() < 4 * 1024), "{name}");
    }
}

#[test]
fn memory_is_bounded() {
    let mut detector = RepetitionDetector::default();
    for number in 0..200 {
        let words: String =
            (0..8).map(|place| format!("{} ", "abcdefghij".repeat(1 + (number * place) % 7))).collect();
        assert_eq!(detector.push(&format!("{words}\n")), None, "{number}");
    }
    assert_eq!((detector.units.len(), detector.repeats.len()), (MAX_PERIOD_UNITS, MAX_PERIOD_UNITS));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn a_repeated_paragraph_is_kept_twice(
        before in paragraph(0..4),
        period in paragraph(1..12),
        separator in prop::sample::select(vec![" ", "\n", "\n\n"]),
    ) {
        let lines = |all: &[String]| all.iter().map(|one| format!("{one}{separator}")).collect::<String>();
        let (before, period) = (lines(&before), lines(&period));
        let text = format!("{before}{}", period.repeat(60));
        let kept = kept(&text);
        // Text before that ends as the paragraph does belongs to the repetition.
        prop_assert!(kept.is_some_and(|kept| kept.len() <= before.len() + 2 * period.len() + 2), "{text}");
        prop_assert!(kept.is_some_and(|kept| kept.len() + 2 >= 2 * period.len()), "{text}");
    }

    #[test]
    fn pieces_make_no_difference(period in paragraph(1..4), sizes in prop::collection::vec(1_usize..40, 1..20)) {
        let text = period.join("\n").repeat(40);
        let whole = RepetitionDetector::default().push(&text);
        let (mut detector, mut rest, mut found) = (RepetitionDetector::default(), text.as_str(), None);
        for size in sizes.iter().cycle() {
            if rest.is_empty() || found.is_some() {
                break;
            }
            let (piece, after) = rest.split_at((*size).min(rest.len()));
            found = detector.push(piece);
            rest = after;
        }
        prop_assert_eq!(found, whole);
    }

    #[test]
    fn prose_that_goes_on_is_no_circle(text in paragraph(60..120)) {
        prop_assert!(kept(&text.join(" ")).is_none());
    }

    #[test]
    fn a_fenced_block_is_no_circle(lines in prop::collection::vec("[ -~]{0,60}", 1..6), times in 1_usize..60) {
        let block = lines.join("\n").replace('`', "'");
        let text = format!("```\n{}\n```\n", vec![block; times].join("\n"));
        prop_assert_eq!(kept(&text), None);
    }

    #[test]
    fn similar_lines_are_no_circle(words in prop::collection::hash_set("[a-z]{4,9}", 2..200), times in 1_usize..4) {
        let list: String = words.iter().map(|word| format!("- the item {word} is done\n")).collect();
        prop_assert!(kept(&list.repeat(times)).is_none());
    }

    #[test]
    fn no_text_breaks_it(text in ".{0,400}") {
        let end = RepetitionDetector::default().push(&text);
        prop_assert!(end.is_none_or(|end| text.is_char_boundary(end)));
    }
}
