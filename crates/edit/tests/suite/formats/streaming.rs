//! Replies that come in parts, and replies that are only a part.

use journeyman_edit::{Format, Reader, StreamEvent, detect};
use proptest::prelude::*;

use super::{files, reading};

/// Replies of every kind, made of parts.
fn replies() -> impl Strategy<Value = (String, Option<Format>)> {
    let text = prop::sample::select(vec![
        "",
        "x\n",
        "    one();\n",
        "a\n\n=======\n",
        "<<<<<<< HEAD\n",
        ">>>>>>> b\n",
        "```\n",
        "é “q”\n",
        "--- SEARCH\n",
        "</replace>\n",
        "\\=======\n",
        "-------\n",
        "// ... existing code ...\n",
    ]);
    let texts = prop::collection::vec(text, 0..4).prop_map(|parts| parts.concat());
    let part = (0..9_usize, texts.clone(), texts).prop_map(|(kind, old, new)| match kind {
        0 => format!("a.rs\n```rust\n<<<<<<< SEARCH\n{old}=======\n{new}>>>>>>> REPLACE\n```\n"),
        1 => format!("src/b.rs\n------- SEARCH\n{old}=======\n{new}+++++++ REPLACE\n"),
        2 => format!(
            "<edit>\n<file>a.rs</file>\n<search>\n{old}</search>\n<replace>\n{new}</replace>\n</edit>\n"
        ),
        3 => format!("a.rs\n<old_text line=3>\n{old}</old_text>\n<new_text>\n{new}</new_text>\n"),
        4 => format!("src/b.rs\n```rust\n{new}```\n"),
        5 => "Some words.\n".to_owned(),
        6 => serde_json::json!({"path": "a.rs", "old_string": old, "new_string": new}).to_string(),
        7 => format!("a.rs\n<<<<\n{old}====\n{new}>>>>\n"),
        _ => new,
    });
    let format = prop::option::of(prop::sample::select(vec![
        Format::Edit,
        Format::Blocks,
        Format::Tool,
        Format::Whole,
    ]));
    (prop::collection::vec(part, 1..5).prop_map(|parts| parts.concat()), format)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// However a reply is cut into pieces, it reads the same, and each of its bytes is shown at most once.
    #[test]
    fn streaming_reads_the_same((reply, format) in replies(), cuts in prop::collection::vec(1..9_usize, 1..40), cut_off: bool) {
        let files = files();
        let mut reader = Reader::new(format, None, &files);
        let (mut rest, mut shown, mut nth) = (reply.as_str(), 0, 0);
        while !rest.is_empty() {
            let mut at = cuts[nth % cuts.len()].min(rest.len());
            while !rest.is_char_boundary(at) {
                at += 1;
            }
            for event in reader.push(&rest[..at]) {
                shown += match event {
                    StreamEvent::Search { text, .. } | StreamEvent::Replacement { text, .. } => text.len(),
                    StreamEvent::Line { line, .. } => line.text.len(),
                    _ => 0,
                };
            }
            (rest, nth) = (&rest[at..], nth + 1);
        }
        prop_assert!(shown <= reply.len());
        prop_assert_eq!(reader.finish(cut_off), reading(&reply, format, None, !cut_off));
    }

    /// A reply cut off anywhere has only edits that the whole reply has, in the same order.
    #[test]
    fn a_part_never_asks_for_more((reply, format) in replies(), at in 0..=1000_usize) {
        let format = format.filter(|format| *format != Format::Whole).or(detect(&reply));
        prop_assume!(!matches!(format, None | Some(Format::Whole | Format::Lazy)));
        let whole = reading(&reply, format, None, true);
        prop_assume!(whole.format == format);
        let mut at = reply.len() * at / 1000;
        while !reply.is_char_boundary(at) {
            at += 1;
        }
        let part = reading(&reply[..at], format, None, false);
        if part.format == format {
            prop_assert!(whole.edits.starts_with(&part.edits), "{reply:?} at {at}: {:?} {:?}", part.edits, whole.edits);
        }
    }

    /// Nothing makes a reader panic or lose its way.
    #[test]
    fn any_text_is_read(reply in "([<>=+@*`~-]{3,8}( SEARCH| REPLACE| HEAD)?\n|[a-z./]{0,6}\n|<(/?)(edit|file|search|old_text|new_text|replace)>|[{}\\[\\]\",:]|```[a-z.]{0,4}\n| ){0,60}") {
        for format in Format::ALL.into_iter().map(Some).chain([None]) {
            for finished in [true, false] {
                let read = reading(&reply, format, Some("a.rs"), finished);
                prop_assert!(read.edits.iter().all(|edit| !edit.ops.is_empty()));
            }
        }
    }
}

#[test]
fn events_show_an_edit_as_it_grows() {
    let shown = |reply: &str, format| {
        let files = files();
        let mut reader = Reader::new(format, None, &files);
        let mut shown = Vec::new();
        for byte in reply.chars() {
            for event in reader.push(&byte.to_string()) {
                shown.push(match event {
                    StreamEvent::File { edit, path } => format!("{edit} file {path}"),
                    StreamEvent::Search { edit, text } => format!("{edit} search {text}"),
                    StreamEvent::Replacement { edit, text } => format!("{edit} + {text}"),
                    StreamEvent::Line { edit, line } => format!("{edit} {:?} {}", line.kind, line.text),
                    StreamEvent::Complete { edit } => format!("{edit} done"),
                    other => format!("{other:?}"),
                });
            }
        }
        shown
    };
    assert_eq!(
        shown("a.rs\n```\n<<<<<<< SEARCH\nx\n=======\ny\nz\n>>>>>>> REPLACE\n```\n", None),
        ["0 file a.rs", "0 search x\n", "0 + y\n", "0 + z\n", "0 done"]
    );
    assert_eq!(
        shown(
            "Now\n<edit>\n<file>a.rs</file>\n<search>\nx\n</search>\n<replace>\ny\n</replace>\n</edit>\n",
            None
        ),
        ["0 file a.rs", "0 search x\n", "0 + y\n", "0 done"]
    );
    assert_eq!(
        shown("*** Begin Patch\n*** Update File: a.rs\n@@\n-x\n+y\n*** End Patch\n", None),
        ["0 file a.rs", "0 Remove x", "0 Add y", "0 done"]
    );
    assert_eq!(
        shown("--- a/a.rs\n+++ b/a.rs\n@@ -1,2 +1,2 @@\n z\n-x\n+y\n@@ -9 +9 @@\n+w\n", None),
        ["0 file a.rs", "0 Context z", "0 Remove x", "0 Add y", "0 done", "1 file a.rs", "1 Add w"]
    );
    assert_eq!(shown("a.rs\n```rust\nx\n```\n", None), ["0 file a.rs", "0 + x\n", "0 done"]);
    let json = shown(r#"{"path": "a.rs", "edits": [{"old_string": "x\n", "new_string": "yz"}]}"#, None);
    assert_eq!(json, ["0 file a.rs", "0 search x\n", "0 + y", "0 + z", "0 done"]);
}

/// A name that fills the reply is shown at no edit: said anew at each, it would take more memory than there is.
#[test]
fn a_name_without_end_is_not_shown_at_every_edit() {
    let files = files();
    let name = "a".repeat(5_000);
    for (format, reply) in [
        (Format::Udiff, format!("--- a/{name}\n+++ b/{name}\n{}", "@@ -1 +1 @@\n-x\n+y\n".repeat(20))),
        (
            Format::Edit,
            format!("<edit>\n<file>{name}</file>\n<search>\nx\n</search>\n<replace>\ny\n</replace>\n"),
        ),
        (
            Format::Tool,
            format!(r#"{{"path": "{name}", "edits": [{{"old_string": "x", "new_string": "y"}}]}}"#),
        ),
    ] {
        let events = Reader::new(Some(format), None, &files).push(&reply);
        assert!(events.iter().any(|event| matches!(event, StreamEvent::Complete { .. })), "{format}");
        assert!(!events.iter().any(|event| matches!(event, StreamEvent::File { .. })), "{format}");
    }
}

/// Lines are shown when they end, however the reply is cut, and long ones before.
#[test]
fn events_are_the_same_however_a_reply_is_cut() {
    let files = files();
    let long = "x\u{e4}".repeat(50_000);
    let replies = [
        (Format::Blocks, format!("a.rs\n<<<<<<< SEARCH\nb\n=======\n{long}\nc\n>>>>>>> REPLACE\n")),
        (
            Format::Edit,
            format!(
                "<edit>\n<file>a.rs</file>\n<search>\n{long}\n</search>\n<replace>\n</replace>\n</edit>\n"
            ),
        ),
        (Format::Tool, r#"{"path": "a.rs", "old_string": "x\u00e4\ny\"", "new_string": "\\ \t"}"#.to_owned()),
    ];
    let shown = |format, reply: &str, most: usize| {
        let mut reader = Reader::new(Some(format), None, &files);
        let (mut texts, mut rest) = (String::new(), reply);
        while !rest.is_empty() {
            let (part, more) = rest.split_at(rest.floor_char_boundary(most.min(rest.len())).max(1));
            rest = more;
            for event in reader.push(part) {
                match event {
                    StreamEvent::Search { text, .. } | StreamEvent::Replacement { text, .. } => {
                        texts += &text
                    }
                    other => texts += &format!("{other:?}"),
                }
            }
        }
        texts
    };
    for (format, reply) in replies {
        let whole = shown(format, &reply, reply.len());
        assert!(whole.contains("Complete"), "{format}: {whole}");
        for most in [2, 64, 70_000] {
            assert_eq!(shown(format, &reply, most), whole, "{format} in parts of {most}");
        }
    }
}
