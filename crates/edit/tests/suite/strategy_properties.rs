//! What holds for any file that a loosely placed edit is made in.

use journeyman_edit::{Hunk, Refusal, apply_hunk, replace};
use proptest::prelude::*;

/// Lines of code, each with a number of its own, so that every one is unique.
fn lines() -> impl Strategy<Value = Vec<String>> {
    let line =
        (0usize..3, prop::sample::select(vec!["call", "let", "return", "if", "run"]), "[a-z]{1,6}", 0u32..9);
    prop::collection::vec(line, 4..14).prop_map(|lines| {
        let code = |(nth, (deep, word, name, value)): (usize, (usize, &str, String, u32))| {
            format!("{}{word} {name}{nth} = {value};", "    ".repeat(deep))
        };
        lines.into_iter().enumerate().map(code).collect()
    })
}

/// Some lines of a file, and one among them that is changed.
fn window(count: usize, from: usize, len: usize, at: usize) -> (std::ops::Range<usize>, usize) {
    let from = from % count;
    let end = (from + 1 + len % (count - from)).min(count);
    (from..end, from + at % (end - from))
}

fn joined(lines: &[String], line_break: &str) -> String {
    lines.iter().map(|line| format!("{line}{line_break}")).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn line_endings_the_mark_and_the_final_break_are_kept(
        lines in lines(), from in 0usize..14, len in 0usize..8, at in 0usize..8, crlf: bool, mark: bool, open: bool,
    ) {
        let (window, at) = window(lines.len(), from, len, at);
        let mut changed = lines.clone();
        changed[at] = format!("{} // changed", lines[at]);
        let whole = |lines: &[String]| {
            let mut text = joined(lines, if crlf { "\r\n" } else { "\n" });
            if open {
                text.truncate(text.trim_end().len());
            }
            format!("{}{text}", if mark { "\u{feff}" } else { "" })
        };
        let search = joined(&lines[window.clone()], "\n");
        let done = replace(&whole(&lines), &search, &joined(&changed[window], "\n"), false).unwrap();
        prop_assert_eq!(done.text, whole(&changed));
    }

    #[test]
    fn damage_that_has_no_meaning_lands_where_the_even_edit_would(
        lines in lines(), from in 0usize..14, len in 0usize..8, at in 0usize..8, damage in 0usize..5,
    ) {
        let (window, at) = window(lines.len(), from, len, at);
        let mut changed = lines.clone();
        changed[at] = format!("{}changed();", " ".repeat(lines[at].len() - lines[at].trim_start().len()));
        let damaged = |lines: &[String]| -> String {
            match damage {
                0 => joined(lines, "  \n"),
                1 => joined(lines, "\r\n"),
                2 => lines.iter().map(|line| format!("    {line}\n")).collect(),
                3 => lines.iter().enumerate().map(|(nth, line)| format!("{:4} | {line}\n", nth + 1)).collect(),
                _ => format!("```\n{}```\n", joined(lines, "\n")),
            }
        };
        let file = joined(&lines, "\n");
        match replace(&file, &damaged(&lines[window.clone()]), &damaged(&changed[window]), false) {
            Ok(done) => prop_assert_eq!(done.text, joined(&changed, "\n")),
            Err(refusal) => prop_assert!(damage > 2, "{}", refusal),
        }
    }

    #[test]
    fn a_changed_line_that_differs_in_a_token_is_never_written(
        lines in lines(), from in 0usize..14, len in 2usize..8, at in 0usize..8, kind in 0usize..4,
    ) {
        let (window, at) = window(lines.len(), from, len, at);
        let mut searched = lines.clone();
        searched[at] = match kind {
            0 => lines[at].replace('=', "=="),
            1 => lines[at].replace(';', "0;"),
            2 => lines[at].replacen(' ', " x", 1 + lines[at].len() - lines[at].trim_start().len()),
            _ => lines[at].replace(" = ", "_ = "),
        };
        prop_assume!(searched[at] != lines[at]);
        let mut changed = searched.clone();
        changed[at] = "changed();".to_owned();
        let file = joined(&lines, "\n");
        let search = joined(&searched[window.clone()], "\n");
        let refusal = replace(&file, &search, &joined(&changed[window], "\n"), false);
        prop_assert!(
            matches!(refusal, Err(Refusal::NotFound { .. } | Refusal::GuardedMismatch { .. })),
            "{:?}", refusal
        );
    }

    #[test]
    fn a_hint_never_makes_a_match(lines in lines(), near in 1u32..20, after in 0usize..200) {
        let file = joined(&lines, "\n");
        let anchors = [lines[0].clone()];
        let hunk = Hunk { near: Some(near), after: Some(after), anchors: &anchors, at_end: true, ..Hunk::new("absent();", "x") };
        prop_assert!(apply_hunk(&file, &hunk).is_err());
    }
}
