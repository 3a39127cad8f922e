//! Rendering a change and applying it gives the same bytes, or rendering says why it can't.

use std::collections::BTreeMap;

use journeyman_edit::{AllowedDifferences, ApplyOptions, ChangeKind, FileChange, Format, plan};
use journeyman_protocol::RelPath;
use proptest::prelude::*;

use crate::render::{RenderError, render};

fn path(name: &str) -> RelPath {
    RelPath::parse(name).unwrap()
}

fn change(name: &str, before: Option<&str>, after: Option<&str>, to: Option<&str>) -> FileChange {
    let kind = match (before, after, to) {
        (None, _, _) => ChangeKind::Create,
        (_, None, _) => ChangeKind::Delete,
        (_, _, Some(_)) => ChangeKind::Rename,
        _ => ChangeKind::Modify,
    };
    FileChange {
        path: path(name),
        to: to.map(path),
        kind,
        before: before.map(str::to_owned),
        after: after.map(str::to_owned),
        notes: Vec::new(),
        broken: None,
    }
}

/// The files after a text is applied to them.
fn applied(text: &str, format: Format, changes: &[FileChange]) -> BTreeMap<RelPath, String> {
    let mut files: BTreeMap<RelPath, String> =
        changes.iter().filter_map(|change| Some((change.path.clone(), change.before.clone()?))).collect();
    let allow = AllowedDifferences { placeholders: true, ..AllowedDifferences::default() };
    let options = ApplyOptions { format: Some(format), allow, ..ApplyOptions::default() };
    let plan = plan(text, &options, &files);
    assert_eq!(plan.failed, [], "{format}:\n{text}");
    for change in plan.changes_to_write() {
        files.remove(&change.path);
        if let Some(after) = &change.after {
            files.insert(change.to.clone().unwrap_or_else(|| change.path.clone()), after.clone());
        }
    }
    files
}

fn wanted(changes: &[FileChange]) -> BTreeMap<RelPath, String> {
    let left = changes.iter().filter_map(|change| {
        Some((change.to.clone().unwrap_or_else(|| change.path.clone()), change.after.clone()?))
    });
    left.collect()
}

/// Renders and applies; whether the format could say it.
fn round_trips(changes: &[FileChange], format: Format) -> bool {
    match render(changes, format) {
        Ok(text) => {
            assert_eq!(applied(&text, format, changes), wanted(changes), "{format}:\n{text}");
            true
        }
        Err(RenderError::Inexpressible { .. } | RenderError::Name { .. }) => false,
    }
}

/// Changes that each format has a way of saying.
const EVERYDAY: [(Option<&str>, Option<&str>); 8] = [
    (Some("fn a() {\n    one();\n}\n"), Some("fn a() {\n    two();\n}\n")),
    (Some("a\r\nb\r\nc\r\n"), Some("a\r\nB\r\nc\r\n")),
    (Some("\u{feff}x = 1\ny = 2\n"), Some("\u{feff}x = 1\ny = 3\n")),
    (Some("one\ntwo\nthree"), Some("one\n2\nthree")),
    (Some("x\nx\nx\nx\n"), Some("x\nx\ny\nx\n")),
    (None, Some("new\nfile\n")),
    (Some("a\n\n\nb\n"), Some("a\n\nb\n")),
    (Some("~~~\ntext\n"), Some("~~~\nother text\n")),
];

#[test]
fn everyday_changes_can_be_said_in_every_format() {
    for (before, after) in EVERYDAY {
        let changes = [change("src/a.txt", before, after, None)];
        // A lazy rewrite is merged by the syntax tree, which a text has none of.
        for format in Format::ALL.into_iter().filter(|format| *format != Format::Lazy) {
            assert!(round_trips(&changes, format), "{format} can't say {before:?} → {after:?}");
        }
    }
}

#[test]
fn diffs_can_say_whatever_happens_to_a_file() {
    let cases = [
        change("a.txt", None, Some(""), None),
        change("a.txt", None, Some("no line break"), None),
        change("a.txt", Some(""), Some("x\n"), None),
        change("a.txt", Some("x\n"), Some(""), None),
        change("a.txt", Some("x\n"), Some("x"), None),
        change("a.txt", Some("x"), Some("x\r\n"), None),
        change("a.txt", Some("x\ny\n"), None, None),
        change("a.txt", Some(""), None, None),
        change("a.txt", Some("x\ny\n"), Some("x\ny\n"), Some("dir/b.txt")),
        change("a.txt", Some("x\ny\n"), Some("x\nz\n"), Some("dir/b.txt")),
        change("b/a b.txt", Some("x\n"), Some("y\n"), None),
        change("ä \"q\" 2024-01-01.txt", Some("x\n"), Some("y\n"), Some("b/ü\t.txt")),
        // Lines that look like the format's own.
        change("q.sql", Some("-- a/x\nb\n"), Some("++ b/x\nb\n"), None),
        change("q.sql", Some("a\n-- x\n"), Some("a\n++ y\n@@ -1 +1 @@\n"), None),
        change("p.md", Some("*** End Patch\nx\n"), Some("*** End Patch\ny\n*** Update File: z\n"), None),
    ];
    for case in cases {
        assert!(round_trips(std::slice::from_ref(&case), Format::Udiff), "{case:?}");
    }
}

#[test]
fn several_files_are_said_in_one_text() {
    let changes = [
        change("a.rs", Some("one\n"), Some("two\n"), None),
        change("b.rs", None, Some("new\n"), None),
        change("c.rs", Some("gone\n"), None, None),
        change("d.rs", Some("d\n"), Some("D\n"), Some("e.rs")),
    ];
    for format in [Format::Edit, Format::Udiff, Format::Patch] {
        assert!(round_trips(&changes, format), "{format}");
    }
    for format in [Format::Blocks, Format::Whole, Format::Tool] {
        assert!(round_trips(&changes[..2], format), "{format}");
        assert!(!round_trips(&changes, format), "{format} has no word for a deletion");
    }
}

#[test]
fn a_diff_is_what_git_writes() {
    let before = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n";
    let after = "1\n2\n3\nfour\n5\n6\n7\n8\n9\n10\n11\n12";
    let text = render(&[change("n.txt", Some(before), Some(after), None)], Format::Udiff).unwrap();
    assert_eq!(
        text,
        "diff --git a/n.txt b/n.txt\n--- a/n.txt\n+++ b/n.txt\n@@ -1,7 +1,7 @@\n 1\n 2\n 3\n-4\n+four\n 5\n 6\n 7\n\
         @@ -9,4 +9,4 @@\n 9\n 10\n 11\n-12\n+12\n\\ No newline at end of file\n"
    );
}

/// Lines that formats could take for their own.
fn line() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[a-c]{0,2}",
        2 => "[ \t]{0,3}[a-z{}();\"']{0,6}[ \t]{0,2}",
        1 => prop::sample::select(vec![
            "<<<<<<< SEARCH", "=======", ">>>>>>> REPLACE", "*** End Patch", "*** Begin Patch", "*** Update File: x",
            "*** End of File", "@@", "@@ -1 +1 @@", "--- a/x", "+++ b/x", "-- x", "++ y", "diff --git a/x b/x", "```",
            "```diff", "````", "</replace>", "</edit>", "<edit>", "EOT</replace>", "\\ No newline at end of file",
            "... existing code ...", "// ...", "+", "-", " ", "\\n", "\u{2028}", "\u{feff}", "a\rb",
        ]).prop_map(str::to_owned),
        1 => "\\PC{0,6}",
    ]
}

fn text() -> impl Strategy<Value = String> {
    let ends = prop_oneof![6 => Just("\n"), 2 => Just("\r\n"), 1 => Just("\r")];
    let body = prop::collection::vec((line(), ends), 0..14);
    (prop::bool::weighted(0.1), body, prop::bool::weighted(0.7), 0..3_u8).prop_map(
        |(bom, lines, closed, style)| {
            let mut out = if bom { "\u{feff}".to_owned() } else { String::new() };
            let last = lines.len().saturating_sub(1);
            for (nth, (line, end)) in lines.iter().enumerate() {
                out.push_str(line);
                if nth < last || closed {
                    out.push_str(match style {
                        0 => "\n",
                        1 => "\r\n",
                        _ => end,
                    });
                }
            }
            out
        },
    )
}

/// A text and what a few edits make of it, or any other text.
fn pair() -> impl Strategy<Value = (String, String)> {
    let edits = prop::collection::vec((any::<prop::sample::Index>(), 0..3_u8, line()), 1..4);
    let edited = (text(), edits).prop_map(|(before, edits)| {
        let mut lines: Vec<String> = before.split_inclusive('\n').map(str::to_owned).collect();
        for (index, what, new) in edits {
            let at = index.index(lines.len() + 1);
            match what {
                0 if at < lines.len() => drop(lines.remove(at)),
                1 if at < lines.len() => lines[at] = format!("{new}\n"),
                _ => lines.insert(at, format!("{new}\n")),
            }
        }
        (before, lines.concat())
    });
    prop_oneof![3 => edited, 1 => (text(), text())]
}

/// 256 cases here; `PROPTEST_CASES` asks for more. One drawn change in a hundred changes nothing,
/// which is no reason to stop a long run.
fn config() -> ProptestConfig {
    ProptestConfig { max_global_rejects: u32::MAX, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn any_change_round_trips_or_is_refused((before, after) in pair()) {
        prop_assume!(before != after);
        let modified = [change("dir/f.txt", Some(&before), Some(&after), None)];
        for format in Format::ALL {
            let said = round_trips(&modified, format);
            if format == Format::Udiff {
                prop_assert!(said, "a diff can say everything: {before:?} → {after:?}");
            }
        }
        for change in [
            change("f.txt", None, Some(&after), None),
            change("f.txt", Some(&before), None, None),
            change("f.txt", Some(&before), Some(&after), Some("g.txt")),
        ] {
            for format in Format::ALL {
                let said = round_trips(std::slice::from_ref(&change), format);
                if format == Format::Udiff {
                    prop_assert!(said, "a diff can say everything: {change:?}");
                }
            }
        }
    }
}
