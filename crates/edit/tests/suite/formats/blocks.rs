//! Blocks between marks, and pairs of texts.

use journeyman_edit::{Edit, EditOp, Format, LineKind, ProblemKind, detect};

use super::{block, change, near, reading};

#[test]
fn where_the_file_is_named() {
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
    ];
    same(cases);
}

/// Each reply is read as blocks, named or not, and comes to these edits.
fn same(cases: &[(&str, &str, &[Edit])]) {
    for (name, reply, expected) in cases {
        let read = reading(reply, Some(Format::Blocks), None, true);
        assert_eq!(read.problems, [], "{name}");
        assert_eq!(read.edits, *expected, "{name}");
        let merged = name.contains("marks' lines");
        assert_eq!(detect(reply), (!merged).then_some(Format::Blocks), "{name}");
    }
}

#[test]
fn marks_of_every_dialect() {
    let cases: &[(&str, &str, &[Edit])] = &[
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
    same(cases);
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
fn the_last_mark_may_be_missing_only_before_the_end_of_its_fence() {
    let reply = "a.rs\n------- SEARCH\nx\n=======\ny";
    for finished in [true, false] {
        let cut = reading(reply, None, None, finished);
        assert_eq!((cut.edits.len(), cut.problems[0].kind), (0, ProblemKind::Incomplete));
    }
    let fenced = "a.rs\n```\n<<<<<<< SEARCH\nx\n=======\ny\n```\n";
    assert_eq!(reading(fenced, None, None, true).edits, [change("a.rs", "x", "y")]);
}
