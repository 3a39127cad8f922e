//! Every format: what a reply asks for, what is refused, and that a part of a reply never asks for more than the whole.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

use std::collections::BTreeMap;

use journeyman_edit::{
    Edit, EditOp, Format, LineKind, ProblemKind, Reader, Reading, Replace, Source, StreamEvent, SymbolAction,
    detect, read,
};
use journeyman_protocol::RelPath;
use proptest::prelude::*;

fn rel(path: &str) -> RelPath {
    RelPath::parse(path).unwrap()
}

fn files() -> BTreeMap<RelPath, String> {
    let texts = [
        ("a.rs", "fn a() {\n    one();\n}\n"),
        ("src/b.rs", "fn b() {\n    two();\n}\n"),
        ("title.rst", "Title\n=======\n\nOld text\n"),
        ("conflict.txt", "<<<<<<< HEAD\nours\n=======\ntheirs\n>>>>>>> branch\nend\n"),
        ("Makefile", "all:\n\techo\n"),
        ("README.md", "# Title\n"),
        ("long.rs", &"let a = 1;\n".repeat(60)),
    ];
    texts.into_iter().map(|(path, text)| (rel(path), text.to_owned())).collect()
}

fn reading(reply: &str, format: Option<Format>, path: Option<&str>, finished: bool) -> Reading {
    let path = path.map(rel);
    read(&Source { reply, path: path.as_ref(), finished, files: &files() }, format)
}

fn change(path: &str, search: &str, replace: &str) -> Edit {
    near(path, search, replace, None)
}

fn near(path: &str, search: &str, replace: &str, near: Option<u32>) -> Edit {
    let op = Replace {
        search: search.to_owned(),
        replace: replace.to_owned(),
        near,
        whole_lines: true,
        all: false,
    };
    Edit { path: rel(path), ops: vec![EditOp::Replace(op)], description: None }
}

fn block(search: &str, replace: &str) -> String {
    format!("<<<<<<< SEARCH\n{search}=======\n{replace}>>>>>>> REPLACE\n")
}

#[test]
fn blocks_in_every_dialect() {
    let cases: &[(&str, &str, &[Edit])] = &[
        ("name above", "a.rs\n<<<<<<< SEARCH\nx\n=======\ny\n>>>>>>> REPLACE\n", &[change("a.rs", "x", "y")]),
        (
            "name above the fence",
            "**`a.rs`:**\n\n```rust\n<<<<<<< SEARCH\nx\n=======\ny\n>>>>>>> REPLACE\n```\n",
            &[change("a.rs", "x", "y")],
        ),
        (
            "name on the fence",
            "```rust a.rs\n<<<<<<< SEARCH\nx\n=======\ny\n>>>>>>> REPLACE\n```\n",
            &[change("a.rs", "x", "y")],
        ),
        (
            "name and language in one",
            "```rust:src/b.rs\n<<<<<<< SEARCH\nx\n=======\ny\n>>>>>>> REPLACE\n```\n",
            &[change("src/b.rs", "x", "y")],
        ),
        (
            "name inside the fence",
            "```\nsrc/b.rs\n<<<<<<< SEARCH\nx\n=======\ny\n>>>>>>> REPLACE\n```\n",
            &[change("src/b.rs", "x", "y")],
        ),
        (
            "name in a fence of its own",
            "```python\na.rs\n```\n```python\n<<<<<<< SEARCH\nx\n=======\ny\n>>>>>>> REPLACE\n```\n",
            &[change("a.rs", "x", "y")],
        ),
        (
            "name as a heading",
            "### 1. src/b.rs\n<<<<<<< SEARCH\nx\n=======\ny\n>>>>>>> REPLACE\n",
            &[change("src/b.rs", "x", "y")],
        ),
        (
            "name in a tag",
            "<file name=\"src/b.rs\">\n<<<<<<< SEARCH\nx\n=======\ny\n>>>>>>> REPLACE\n</file>",
            &[change("src/b.rs", "x", "y")],
        ),
        (
            "no ending, but there",
            "Makefile\n<<<<<<< SEARCH\nx\n=======\ny\n>>>>>>> REPLACE\n",
            &[change("Makefile", "x", "y")],
        ),
        (
            "named in prose",
            "Now `src/b.rs` calls it:\n\n<<<<<<< SEARCH\n    two();\n=======\n    2;\n>>>>>>> REPLACE\n",
            &[change("src/b.rs", "    two();", "    2;")],
        ),
        ("dashes", "a.rs\n------- SEARCH\nx\n=======\ny\n+++++++ REPLACE\n", &[change("a.rs", "x", "y")]),
        ("few signs", "a.rs\n--- SEARCH\nx\n=====\ny\n++++ REPLACE\n", &[change("a.rs", "x", "y")]),
        (
            "line hint",
            "a.rs\n<<<<<<< SEARCH\n:start_line: 7\n:end_line:9\n-------\nx\n=======\ny\n>>>>>>> REPLACE\n",
            &[near("a.rs", "x", "y", Some(7))],
        ),
        (
            "escaped marks",
            "a.rs\n<<<<<<< SEARCH\n\\=======\n\\<<<<<<< SEARCH\n=======\ny\n>>>>>>> REPLACE\n",
            &[change("a.rs", "=======\n<<<<<<< SEARCH", "y")],
        ),
        ("deletion", "a.rs\n<<<<<<< SEARCH\nx\n=======\n>>>>>>> REPLACE\n", &[change("a.rs", "x", "")]),
        (
            "CRLF",
            "a.rs\r\n<<<<<<< SEARCH\r\nx\r\nz\r\n=======\r\ny\r\n>>>>>>> REPLACE\r\n",
            &[change("a.rs", "x\r\nz", "y")],
        ),
        (
            "pairs",
            "a.rs\n<old_text line=\"7\">\nx\n</old_text>\n<new_text>\ny\n</new_text>",
            &[near("a.rs", "x", "y", Some(7))],
        ),
        (
            "pairs that close each other",
            "a.rs\n<old_text>\nx\n</new_text>\n<new_text>\ny\n</old_text>\n<old_text>z</old_text><new_text>w</parameter></new_text>",
            &[change("a.rs", "x", "y"), change("a.rs", "z", "w")],
        ),
        (
            "pairs closed as a whole",
            "a.rs\n<edits>\n<old_text>\nx\n</old_text>\n<new_text>\ny\n</edits>\n",
            &[change("a.rs", "x", "y")],
        ),
        (
            "a title in the old lines",
            "title.rst\n<<<<<<< SEARCH\nTitle\n=======\n\nOld text\n=======\nTitle\n=======\n\nNew text\n>>>>>>> REPLACE\n",
            &[change("title.rst", "Title\n=======\n\nOld text", "Title\n=======\n\nNew text")],
        ),
        (
            "a conflict that is solved",
            "conflict.txt\n<<<<<<< SEARCH\n<<<<<<< HEAD\nours\n=======\ntheirs\n>>>>>>> branch\n=======\nours\n>>>>>>> REPLACE\n",
            &[change("conflict.txt", "<<<<<<< HEAD\nours\n=======\ntheirs\n>>>>>>> branch", "ours")],
        ),
        (
            "new lines twice",
            "a.rs\n<<<<<<< SEARCH\n    one();\n=======\n    1;\n=======\n    1;\n>>>>>>> REPLACE\n",
            &[change("a.rs", "    one();", "    1;")],
        ),
        (
            "content on the marks' lines",
            "a.rs\n-------   one();\n=======   1;\n+++++++ REPLACE\n",
            &[change("a.rs", "  one();", "  1;")],
        ),
        ("bare conflict marks", "a.rs\n<<<<\nx\n====\ny\n>>>>\n", &[change("a.rs", "x", "y")]),
    ];
    for (name, reply, expected) in cases {
        let read = reading(reply, Some(Format::Blocks), None, true);
        assert_eq!(read.problems, [], "{name}");
        assert_eq!(read.edits, *expected, "{name}");
        assert_eq!(
            detect(reply).filter(|_| !name.contains("marks' lines")).unwrap_or(Format::Blocks),
            Format::Blocks,
            "{name}"
        );
    }
}

#[test]
fn a_block_may_hold_blocks() {
    let inner = block("a\n", "b\n");
    let reply =
        format!("README.md\n{}", block(&format!("# Title\n{inner}"), &format!("# New\n{inner}end\n")));
    let read = reading(&reply, None, None, true);
    assert_eq!(
        (read.edits, read.problems),
        (
            vec![change(
                "README.md",
                &format!("# Title\n{}", inner.trim_end()),
                &format!("# New\n{inner}end")
            )],
            vec![]
        )
    );
    // With shorter marks too, whether they are whole blocks or not.
    let reply = "README.md\n------- SEARCH\n--- SEARCH\n=======\nb\n+++++++ REPLACE\n";
    assert_eq!(reading(reply, None, None, true).edits, [change("README.md", "--- SEARCH", "b")]);
}

#[test]
fn several_blocks_and_files() {
    let reply = format!(
        "First:\n\na.rs\n```rust\n{}```\n\nand again\n\n```rust\n{}```\n\nsrc/b.rs\n```rust\n{}```\nDone.",
        block("x\n", "y\n"),
        block("z\n", ""),
        block("", "n\n")
    );
    let read = reading(&reply, None, None, true);
    assert_eq!(read.problems, []);
    assert_eq!(read.edits, [change("a.rs", "x", "y"), change("a.rs", "z", ""), change("src/b.rs", "", "n")]);
    assert_eq!(read.prose, "First:\n\nand again\n\nDone.");
}

#[test]
fn conflict_marks_among_the_lines_of_a_fence_are_a_hunk() {
    let reply = "a.rs\n```diff\nfn a() {\n<<<<\n    one();\n====\n    1;\n>>>>\n}\n```\n";
    let read = reading(reply, None, None, true);
    assert_eq!((read.format, read.problems.len(), read.edits.len()), (Some(Format::Blocks), 0, 1));
    let EditOp::Patch(hunk) = &read.edits[0].ops[0] else { panic!("{:?}", read.edits) };
    let lines: Vec<(LineKind, &str)> =
        hunk.lines.iter().map(|line| (line.kind, line.text.as_str())).collect();
    use LineKind::*;
    assert_eq!(lines, [(Context, "fn a() {"), (Remove, "    one();"), (Add, "    1;"), (Context, "}")]);
}

#[test]
fn what_a_block_is_refused_for() {
    use ProblemKind::*;
    let cases = [
        ("no name", "<<<<<<< SEARCH\nx\n=======\ny\n>>>>>>> REPLACE\n", Malformed, 1, "names its file"),
        (
            "a name that is nearly one",
            "See srb/b.rs here\n<<<<<<< SEARCH\nx\n=======\ny\n>>>>>>> REPLACE\n",
            Malformed,
            2,
            "did you mean src/b.rs?",
        ),
        ("outside", "../x.rs\n<<<<<<< SEARCH\nx\n=======\ny\n>>>>>>> REPLACE\n", Path, 2, ".."),
        ("no divider", "a.rs\n<<<<<<< SEARCH\nx\n>>>>>>> REPLACE\n", Malformed, 2, "no ======="),
        ("an end alone", "a.rs\n=======\ny\n>>>>>>> REPLACE\n", Malformed, 4, "none is open"),
        (
            "no blank",
            "a.rs\n<<<<<<<SEARCH\nx\n=======\ny\n>>>>>>> REPLACE\n",
            Malformed,
            2,
            "blank before the word",
        ),
        ("the wrong signs", "a.rs\n+++++++ SEARCH\nx\n------- REPLACE\n", Malformed, 2, "isn't one"),
        (
            "no end before the next",
            "a.rs\n<<<<<<< SEARCH\nx\n=======\ny\n<<<<<<< SEARCH\nz\n=======\nw\n>>>>>>> REPLACE\n",
            Malformed,
            2,
            "line 6",
        ),
        (
            "two dividers",
            "a.rs\n<<<<<<< SEARCH\nx\n=======\ny\n=======\nz\n>>>>>>> REPLACE\n",
            Malformed,
            2,
            "lines 4, 6",
        ),
        (
            "a title above stale lines",
            "title.rst\n<<<<<<< SEARCH\nTitle\n=======\n\nStale text\n=======\nNew\n>>>>>>> REPLACE\n",
            Malformed,
            2,
            "lines 4, 7",
        ),
        (
            "no end after a whole block",
            "a.rs\n<<<<<<< SEARCH\nx\n=======\ny\n>>>>>>> REPLACE\n<<<<<<< SEARCH\nz\n=======\nw\n",
            Incomplete,
            7,
            "ends before >>>>>>> REPLACE",
        ),
        (
            "no end, and the fence is open",
            "a.rs\n```\n<<<<<<< SEARCH\nx\n=======\ny\n",
            Incomplete,
            3,
            "ends before >>>>>>> REPLACE",
        ),
        ("nothing but a beginning", "a.rs\n<<<<<<< SEARCH\n", Incomplete, 2, "======= and"),
        ("half a pair", "a.rs\n<old_text>x</old_text>\n<new_text>y", Incomplete, 2, "whole"),
    ];
    for (name, reply, kind, line, words) in cases {
        let read = reading(reply, Some(Format::Blocks), None, true);
        let first = read.problems.first().unwrap_or_else(|| panic!("{name}: {:?}", read.edits));
        assert_eq!((first.kind, first.line), (kind, line), "{name}: {first}");
        assert!(first.to_string().contains(words), "{name}: {first}");
    }
}

#[test]
fn the_last_mark_may_be_missing_only_at_a_normal_end() {
    let reply = "a.rs\n------- SEARCH\nx\n=======\ny";
    assert_eq!(reading(reply, None, None, true).edits, [change("a.rs", "x", "y")]);
    let cut = reading(reply, None, None, false);
    assert_eq!((cut.edits.len(), cut.problems[0].kind), (0, ProblemKind::Incomplete));
    let fenced = "a.rs\n```\n<<<<<<< SEARCH\nx\n=======\ny\n```\n";
    assert_eq!(reading(fenced, None, None, true).edits, [change("a.rs", "x", "y")]);
}

#[test]
fn tool_arguments() {
    let plain = |search: &str, replace: &str, all: bool, near: Option<u32>| {
        EditOp::Replace(Replace {
            search: search.into(),
            replace: replace.into(),
            all,
            near,
            whole_lines: false,
        })
    };
    let symbol = |action| EditOp::Symbol(journeyman_edit::SymbolEdit { symbol: "A.b".to_owned(), action });
    let cases = [
        (r#"{"path": "a.rs", "old_string": "x", "new_string": "y"}"#, vec![plain("x", "y", false, None)]),
        (
            r#"{"filePath": "a.rs", "oldString": "x", "newString": "y", "replaceAll": true}"#,
            vec![plain("x", "y", true, None)],
        ),
        (
            r#"{"file_path": "a.rs", "old_string": "x", "new_string": "", "allow_multiple": "true"}"#,
            vec![plain("x", "", true, None)],
        ),
        (
            r#"{"path": "a.rs", "edits": [{"oldText": "x", "newText": "y"}, {"old": "z", "new": "w", "line_hint": 3}]}"#,
            vec![plain("x", "y", false, None), plain("z", "w", false, Some(3))],
        ),
        (
            r#"{"replacements": [{"filepath": "a.rs", "search": "x", "replace": "y"},],}"#,
            vec![plain("x", "y", false, None)],
        ),
        (r#"[{"path": "a.rs", "old_str": "x", "new_str": "y"}]"#, vec![plain("x", "y", false, None)]),
        (
            r#"{"path": "a.rs", "edits": "[{\"old_string\": \"x\", \"new_string\": \"y\"}]"}"#,
            vec![plain("x", "y", false, None)],
        ),
        (
            r#""{\"path\": \"a.rs\", \"old_string\": \"x\", \"new_string\": \"y\"}""#,
            vec![plain("x", "y", false, None)],
        ),
        (
            r#"{"name": "edit", "arguments": {"path": "a.rs", "old_string": "x", "new_string": "y"}}"#,
            vec![plain("x", "y", false, None)],
        ),
        (
            "Here:\n```json\n{\"path\": \"a.rs\", \"old_string\": \"x\", \"new_string\": \"y\"}\n```\nDone.",
            vec![plain("x", "y", false, None)],
        ),
        (
            r#"{"command": "str_replace", "path": "a.rs", "old_str": "x", "new_str": "y"}"#,
            vec![plain("x", "y", false, None)],
        ),
        (
            r#"{"command": "create", "path": "a.rs", "file_text": "x"}"#,
            vec![EditOp::Create { content: "x".into() }],
        ),
        (r#"{"path": "a.rs", "contents": "x"}"#, vec![EditOp::Rewrite { content: "x".into() }]),
        (
            r#"{"command": "insert", "path": "a.rs", "insert_line": 0, "new_str": "x\n"}"#,
            vec![EditOp::Replace(Replace {
                replace: "x".into(),
                near: Some(1),
                whole_lines: true,
                ..Replace::default()
            })],
        ),
        (r#"{"path": "a.rs", "symbol": "A.b", "action": "delete"}"#, vec![symbol(SymbolAction::Delete)]),
        (
            r#"{"path": "a.rs", "symbol": "A.b", "action": "rename", "new_name": "c"}"#,
            vec![symbol(SymbolAction::Rename { to: "c".into() })],
        ),
        (
            r#"{"path": "a.rs", "symbol": "A.b", "action": "insert_after", "content": "x"}"#,
            vec![symbol(SymbolAction::InsertAfter { content: "x".into() })],
        ),
        (
            "{\"path\": \"a.rs\", \"old_string\": \"x\n\ty\", \"new_string\": \"\"}",
            vec![plain("x\n\ty", "", false, None)],
        ),
    ];
    for (reply, expected) in cases {
        let read = reading(reply, Some(Format::Tool), None, true);
        assert_eq!(read.problems, [], "{reply}");
        let ops: Vec<EditOp> = read.edits.iter().flat_map(|edit| edit.ops.clone()).collect();
        assert_eq!(ops, expected, "{reply}");
        assert!(read.edits.iter().all(|edit| edit.path == rel("a.rs")), "{reply}");
    }
    let pathless = r#"{"old_string": "x", "new_string": "y"}"#;
    assert_eq!(reading(pathless, None, Some("src/b.rs"), true).edits[0].path, rel("src/b.rs"));
}

#[test]
fn what_arguments_are_refused_for() {
    let cases = [
        (r#"{"path": 5, "old_string": "x", "new_string": "y"}"#, "\"path\" has to be a string, not a number"),
        (
            r#"{"path": "a.rs", "old_string": ["x"], "new_string": "y"}"#,
            "\"old_string\" has to be a string, not a list",
        ),
        (r#"{"path": "a.rs", "old_string": "x", "new_string": "y", "replace_all": 1}"#, "true or false"),
        (r#"{"path": "a.rs", "old_string": "x"}"#, "no \"new_string\""),
        (r#"{"path": "a.rs", "new_string": "x"}"#, "no \"old_string\""),
        (r#"{"old_string": "x", "new_string": "y"}"#, "which file"),
        (r#"{"path": "../a", "old_string": "x", "new_string": "y"}"#, ".."),
        (r#"{"path": "/etc/passwd", "old_string": "x", "new_string": "y"}"#, "absolute"),
        (r#"{"path": "a.rs", "edits": []}"#, "empty"),
        (r#"{"path": "a.rs", "edits": 5}"#, "list of edits"),
        (r#"{"command": "view", "path": "a.rs"}"#, "no edit"),
        (r#"{"path": "a.rs", "symbol": "A.b", "action": "move"}"#, "\"action\""),
        (r#"{"path": "a.rs", "symbol": "A.b", "action": "replace"}"#, "needs \"content\""),
        (r#"{"path": "a.rs", "old_string": "x", "new_"#, "before their JSON is whole"),
        (r#"{"path" "a.rs"}"#, "no JSON"),
        (
            r#"{"path": "long.rs", "old_string": "let a = 1;", "new_string": "", "expected_replacements": 7}"#,
            "there 60 times",
        ),
    ];
    for (reply, words) in cases {
        let read = reading(reply, Some(Format::Tool), None, true);
        assert_eq!(read.edits, [], "{reply}");
        assert!(read.problems[0].to_string().contains(words), "{reply}: {}", read.problems[0]);
    }
}

#[test]
fn whole_files() {
    let whole = |path: &str, content: &str| Edit {
        path: rel(path),
        ops: vec![EditOp::Rewrite { content: content.to_owned() }],
        description: None,
    };
    let cases: &[(&str, &str, Option<&str>, &[Edit])] = &[
        ("name above", "a.rs\n```\nx\n```", None, &[whole("a.rs", "x")]),
        ("name on the fence", "```rust src/b.rs\nx\ny\n```\n", None, &[whole("src/b.rs", "x\ny")]),
        ("another directory", "path/to/a.rs\n```\nx\n```", Some("a.rs"), &[whole("path/to/a.rs", "x")]),
        ("the caller's", "```\nx\n```", Some("new.txt"), &[whole("new.txt", "x")]),
        (
            "named in prose, then a command",
            "Here is `a.rs`:\n\n```\nx\n```\n\nRun it:\n\n```\nrun\n```\n",
            Some("a.rs"),
            &[whole("a.rs", "x")],
        ),
        (
            "a shell command is none",
            "```\nx\n```\n\n```bash\nrun\n```\n",
            Some("a.rs"),
            &[whole("a.rs", "x")],
        ),
        (
            "two files and prose",
            "a.rs\n```\nx\n```\nand\n\nsrc/b.rs\n```\ny\n```\n",
            None,
            &[whole("a.rs", "x"), whole("src/b.rs", "y")],
        ),
        ("the last of a name", "a.rs\n```\nx\n```\nno:\n\na.rs\n```\ny\n```\n", None, &[whole("a.rs", "y")]),
        (
            "a longer fence",
            "README.md\n````md\n```\nx\n```\n````\n",
            None,
            &[whole("README.md", "```\nx\n```")],
        ),
        (
            "a fence with a language inside",
            "README.md\n```md\n# T\n```rust\nx\n```\nend\n```\n",
            None,
            &[whole("README.md", "# T\n```rust\nx\n```\nend")],
        ),
        ("fences at both ends", "```\n```\nx\n```\n```", Some("n.md"), &[whole("n.md", "```\nx\n```")]),
        ("no last fence", "a.rs\n```\nx\n", None, &[whole("a.rs", "x")]),
        ("in tags", "<file path=\"n/c.rs\">\nx\n</file>\n", None, &[whole("n/c.rs", "x")]),
    ];
    for (name, reply, path, expected) in cases {
        let read = reading(reply, Some(Format::Whole), *path, true);
        assert_eq!(read.problems, [], "{name}");
        if *name == "another directory" {
            assert_eq!(read.edits[0].path, rel("a.rs"), "{name}");
            continue;
        }
        assert_eq!(read.edits, *expected, "{name}");
    }
}

#[test]
fn what_whole_files_are_refused_for() {
    let cases = [
        ("which fence is the last", "README.md\n```md\n# T\n```\nx\n```\nend\n```\n", true, "longer ones"),
        ("nothing names it", "```\nx\n```", true, "nothing names the file"),
        ("cut off", "a.rs\n```\nx\n", false, "cut off"),
        ("perhaps cut off", "a.rs\n```\nx\n```\n", false, "cut off"),
        ("no last fence after another", "a.rs\n```\nx\n```\nsrc/b.rs\n```\ny\n", true, "isn't closed"),
        ("emptied", "a.rs\n```\n```\n", true, "empty"),
        ("outside", "../a.rs\n```\nx\n```\n", true, ".."),
    ];
    for (name, reply, finished, words) in cases {
        let read = reading(reply, Some(Format::Whole), None, finished);
        let shown: Vec<String> = read.problems.iter().map(ToString::to_string).collect();
        assert!(shown.iter().any(|text| text.contains(words)), "{name}: {shown:?} {:?}", read.edits);
        assert!(read.edits.iter().all(|edit| edit.path == rel("a.rs") && name.contains("another")), "{name}");
    }
    // A snippet that is shown isn't a file.
    let snippet = "It is in long.rs:\n\nlong.rs\n```rust\nlet a = 2;\n```\n";
    assert!(reading(snippet, None, None, true).problems[0].message.contains("1 lines and the file 60"));
    assert_eq!(reading(snippet, Some(Format::Whole), None, true).problems, []);
}

#[test]
fn lazy_files() {
    let lazy = |content: &str| vec![EditOp::Lazy { content: content.to_owned() }];
    let ops = |reply: &str, format| reading(reply, format, Some("a.rs"), true).edits[0].ops.clone();
    let remark = "fn a() {\n    // ... existing code ...\n    two();\n}";
    assert_eq!(ops(remark, Some(Format::Lazy)), lazy(remark));
    assert_eq!(ops(&format!("a.rs\n```rust\n{remark}\n```\n"), None), lazy(remark));
    assert_eq!(
        ops(&format!("a.rs\n```rust\n{remark}\n```\n"), Some(Format::Whole)),
        lazy(remark),
        "never written as it is"
    );
    let more = "fn a() {\n    one();\n}\n\nfn c() {}\n";
    assert_eq!(
        ops(more, Some(Format::Lazy)),
        vec![EditOp::Rewrite { content: more.to_owned() }],
        "nothing is left out"
    );
    assert_eq!(ops("fn a() {}\n", Some(Format::Lazy)), lazy("fn a() {}\n"), "something is, without a word");
    assert_eq!(reading(remark, Some(Format::Lazy), Some("a.rs"), false).edits, []);
}

#[test]
fn the_format_shows_in_the_text() {
    let edit = "<edit>\n<file>a.rs</file>\n<delete/>\n</edit>";
    let cases = [
        ("Just words about <edit> and `<<<<<<< SEARCH`.", None),
        ("```rust\nlet a = 1;\n```\n", None),
        (edit, Some(Format::Edit)),
        ("a.rs\n<<<<<<< SEARCH\nx\n=======\ny\n>>>>>>> REPLACE\n", Some(Format::Blocks)),
        ("text\n<old_text>x</old_text>", Some(Format::Blocks)),
        ("```diff\n--- a/a.rs\n+++ b/a.rs\n@@ -1 +1 @@\n-x\n+y\n```\n", Some(Format::Udiff)),
        ("@@ ... @@\n-x\n+y\n", Some(Format::Udiff)),
        ("*** Begin Patch\n*** Update File: a.rs\n@@\n-x\n+y\n*** End Patch\n", Some(Format::Patch)),
        ("@@ class A\n-x\n+y\n", Some(Format::Patch)),
        (
            "{\"path\": \"a.rs\", \"old_string\": \"<<<<<<< SEARCH\", \"new_string\": \"y\"}",
            Some(Format::Tool),
        ),
        (
            "Like so:\n```json\n{\"path\": \"a\", \"old_string\": \"x\", \"new_string\": \"y\"}\n```",
            Some(Format::Tool),
        ),
        ("a.rs\n```rust\nfn a() {}\n```\n", Some(Format::Whole)),
        ("a.rs\n```rust\n// ... existing code ...\nfn a() {}\n```\n", Some(Format::Lazy)),
        (
            "doc.md\n````md\nWrite\n<<<<<<< SEARCH\nx\n=======\ny\n>>>>>>> REPLACE\n````\n",
            Some(Format::Whole),
        ),
    ];
    for (reply, expected) in cases {
        assert_eq!(detect(reply), expected, "{reply}");
    }
    let inside = format!("a.rs\n{}", block("x\n", &format!("{edit}\n")));
    assert_eq!(reading(&inside, None, None, true).problems, [], "marks inside a block are its content");
    let mixed = format!("a.rs\n{}\nand\n{edit}\n", block("x\n", "y\n"));
    let read = reading(&mixed, None, None, true);
    assert_eq!((read.format, read.edits.len()), (Some(Format::Blocks), 1));
    assert!(read.problems[0].message.contains("also in `edit`"), "{}", read.problems[0]);
    let named =
        reading("a.rs\n<<<<<<< SEARCH\nx\n=======\ny\n>>>>>>> REPLACE\n", Some(Format::Edit), None, true);
    assert_eq!(named.format, Some(Format::Blocks), "what it is beats what it is called");
}

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
