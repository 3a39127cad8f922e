//! Replies that were cut off.

use journeyman_edit::{Format, detect};
use proptest::prelude::*;

use super::reading;

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

    /// A reply cut off anywhere has only edits that the whole reply has, in the same order.
    #[test]
    fn a_cut_off_reply_has_no_other_edits((reply, format) in replies(), at in 0..=1000_usize) {
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

    /// No reply makes the reader panic, and no edit comes without an operation.
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
