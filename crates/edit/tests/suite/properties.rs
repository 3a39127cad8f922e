//! What holds for any text.

use journeyman_edit::{
    AllowedDifferences, EditOp, Hunk, OpContext, Strategy as Placed, apply_hunk, apply_ops, parse_blocks,
    replace,
};
use journeyman_protocol::RelPath;
use proptest::prelude::*;

fn context(path: &RelPath) -> OpContext<'_> {
    OpContext { path, shown: None, allow: AllowedDifferences::default() }
}

/// Texts made of few pieces, so that searches and files meet often.
fn text() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "a",
        "b",
        "foo",
        "  ",
        "\t",
        " ",
        "\n",
        "\r\n",
        "\n\n",
        "(",
        ")",
        "\"",
        "'",
        "1",
        "12 | ",
        "\u{201c}",
        "\u{2014}",
        "\u{a0}",
        "é",
        "=",
        "{\n",
        "}\n",
        "\u{feff}",
        "$1",
        "...",
        "// rest unchanged ...",
    ]);
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

/// Replies made of pieces of blocks.
fn reply() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "<edit>",
        "</edit>",
        "<file>",
        "</file>",
        "<search>",
        "</search>",
        "<replace>",
        "</replace>",
        "<replace/>",
        "<delete/>",
        "<rename>",
        "</rename>",
        "<search fence=\"E\">",
        "E</search>",
        "\n",
        "a.rs",
        "../x",
        "text",
        "<call tool=\"t\">",
        "</call>",
        "{\"a\": 1}",
        "{",
        "```",
        "<description>",
        "</description>",
        "<",
        "é",
    ]);
    prop::collection::vec(piece, 0..30).prop_map(|pieces| pieces.concat())
}

proptest! {
    // Failures are turned into named cases, not kept as seeds.
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn placing_never_panics_and_touches_only_its_spans(
        file in text(), search in text(), replacement in text(), all: bool, whole_lines: bool, near in prop::option::of(0u32..9),
    ) {
        let hunk = Hunk { all, near, whole_lines, ..Hunk::new(&search, &replacement) };
        match apply_hunk(&file, &hunk) {
            Err(refusal) => prop_assert!(refusal.to_string().len() <= journeyman_edit::MAX_FEEDBACK_BYTES),
            Ok(done) => {
                prop_assert!(done.text != file);
                prop_assert!(done.strategy == Placed::Exact || done.note.is_some());
                prop_assert_eq!(done.spans.len(), done.count as usize);
                // The text between the spans is in the result, in order, and nothing of it is lost
                // at the ends.
                let mut at = 0;
                let mut outside = Vec::new();
                for span in &done.spans {
                    prop_assert!(span.start >= at && span.end <= file.len());
                    outside.push(&file[at..span.start]);
                    at = span.end;
                }
                outside.push(&file[at..]);
                prop_assert!(done.text.starts_with(outside[0]));
                prop_assert!(done.text.ends_with(outside[outside.len() - 1]));
                let mut from = 0;
                for part in outside {
                    let found = done.text[from..].find(part);
                    prop_assert!(found.is_some());
                    from += found.unwrap() + part.len();
                }
            }
        }
    }

    #[test]
    fn an_exact_unique_match_succeeds_literally(before in "[a-z \n]{0,40}", found in "[A-Z]{1,10}", after in "[a-z \n]{0,40}", new in "[^\r\n]{0,20}") {
        prop_assume!(found != new);
        let done = replace(&format!("{before}{found}{after}"), &found, &new, false).unwrap();
        prop_assert_eq!(done.text, format!("{before}{new}{after}"));
        prop_assert_eq!(done.strategy, Placed::Exact);
    }

    #[test]
    fn what_was_asked_for_is_there(file in text(), search in text(), replacement in "[a-z]{1,8}") {
        if let Ok(done) = replace(&file, &search, &replacement, false) {
            prop_assert!(done.text.contains(&replacement));
        }
    }

    #[test]
    fn a_reindented_block_lands_where_the_even_one_would(
        depth in 0usize..4, body in prop::collection::vec((0usize..3, "[a-z]{1,5}"), 1..6), line in 0usize..6, tabs: bool,
    ) {
        let unit = if tabs { "\t" } else { "    " };
        let lines: Vec<String> = body.iter().enumerate().map(|(n, (deep, word))| format!("{}{word}{n};", unit.repeat(*deep))).collect();
        let shallowest = body.iter().map(|(deep, _)| *deep).min().unwrap();
        let indented = |by: usize| -> String { lines.iter().map(|line| format!("{}{line}\n", unit.repeat(by))).collect() };
        let flush: String = lines.iter().map(|line| format!("{}\n", &line[unit.len() * shallowest..])).collect();
        let target = format!("{}{};", body[line % body.len()].1, line % body.len());
        let file = format!("start\n{}end\n", indented(depth));
        let done = replace(&file, &flush, &flush.replace(&target, "CHANGED;"), false).unwrap();
        prop_assert_eq!(done.text, file.replace(&target, "CHANGED;"));
    }

    #[test]
    fn reading_a_reply_never_panics(reply in reply(), noise in ".{0,60}") {
        for text in [reply.as_str(), noise.as_str()] {
            let blocks = parse_blocks(text);
            prop_assert_eq!(blocks.items.len(), blocks.edits.len() + blocks.calls.len());
            for edit in &blocks.edits {
                prop_assert!(!edit.ops.is_empty());
                let _outcome = apply_ops(Some("text\n"), &edit.ops, &context(&edit.path));
            }
        }
    }

    #[test]
    fn a_cut_off_block_is_never_applied(files in prop::collection::vec(("[a-z]{1,6}", "[a-z\n]{1,20}", "[a-z\n<>/]{0,20}"), 1..4), cut in 0.0f64..1.0) {
        let mut reply = String::from("I will change some files.\n\n");
        let mut ends = Vec::new();
        for (path, search, new) in &files {
            reply.push_str(&format!(
                "<edit>\n<file>{path}</file>\n<search>\n{search}\n</search>\n<replace>\n{new}\n</replace>\n</edit>"
            ));
            ends.push(reply.len());
            reply.push_str("\n\n<call tool=\"read_file\">{\"path\": \"</call>\"}</call>");
            ends.push(reply.len());
            reply.push_str("\nNext.\n");
        }
        let whole = parse_blocks(&reply);
        prop_assert!(whole.problems.is_empty(), "{:?}", whole.problems);
        prop_assert_eq!(whole.items.len(), ends.len());
        let at = (reply.len() as f64 * cut) as usize;
        let part = parse_blocks(&reply[..at]);
        let finished = ends.iter().filter(|end| **end <= at).count();
        prop_assert_eq!(&part.items[..], &whole.items[..finished]);
        prop_assert_eq!(&part.edits[..], &whole.edits[..part.edits.len()]);
    }

    #[test]
    fn rewriting_gives_the_content(content in "[a-z\n]{1,30}") {
        let outcome = apply_ops(None, &[EditOp::Rewrite { content: content.clone(), exact: false }], &context(&RelPath::parse("a").unwrap()));
        let new = outcome.content.unwrap();
        prop_assert_eq!(new.trim_end_matches('\n'), content.trim_end_matches('\n'));
    }
}
