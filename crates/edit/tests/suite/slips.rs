//! Slips that models make, class by class: read as what is meant where that is one thing, else refused.

use std::collections::BTreeMap;

use journeyman_edit::{Format, Options, detect, plan, replace};
use journeyman_protocol::RelPath;

type Tree = BTreeMap<RelPath, String>;

fn tree(files: &[(&str, &str)]) -> Tree {
    files.iter().map(|(name, text)| (RelPath::parse(name).unwrap(), (*text).to_owned())).collect()
}

/// The tree after a reply, or the words of its failures.
fn after(format: Option<Format>, files: &[(&str, &str)], reply: &str) -> Result<Tree, String> {
    let mut files = tree(files);
    let path = files.keys().next().filter(|_| files.len() == 1).cloned();
    let plan = plan(reply, &Options { format, path, ..Options::default() }, &files);
    if !plan.failed.is_empty() {
        return Err(plan.failed.iter().map(|failure| failure.message.clone()).collect::<Vec<_>>().join("\n"));
    }
    for change in plan.changes_to_write() {
        files.insert(change.path.clone(), change.after.clone().unwrap());
    }
    Ok(files)
}

/// One file's text after a reply.
fn text(format: Format, before: &str, reply: &str) -> Result<String, String> {
    let path = RelPath::parse("f.txt").unwrap();
    after(Some(format), &[("f.txt", before)], reply).map(|files| files[&path].clone())
}

#[test]
fn a_reply_that_ends_inside_a_block_is_refused() {
    let before = "one\ntwo\nthree\n";
    for reply in [
        "f.txt\n<<<<<<< SEARCH\ntwo\n=======\n2\n",
        "f.txt\n<<<<<<< SEARCH\ntwo\n=======\n2",
        "f.txt\n------- SEARCH\ntwo\n=======\n2\n",
        "f.txt\n```\n<<<<<<< SEARCH\ntwo\n=======\n2\n",
        "f.txt\n<<<<<<< SEARCH\ntwo\n=======\n",
        // What was to close it isn't text of the file.
        "f.txt\n```\n<<<<<<< SEARCH\ntwo\n=======\n2\n>>>>>>> DONE\n```\n",
        "f.txt\n```\n<<<<<<< SEARCH\ntwo\n=======\n2>>>>>>> REPLACE\n```\n",
    ] {
        assert!(text(Format::Blocks, before, reply).is_err(), "{reply}");
    }
}

#[test]
fn a_closing_mark_with_a_stray_character_closes() {
    for close in [
        ">>>>>>> REPLACE`",
        ">>>>>>> REPLACE.",
        ">>>>>>> REPLACE|",
        ">>>>>>> REPLACE ```",
        ">>>>>>> REPLACE\\",
        ">>>>>>> REPLACEs",
        ">>>>>>> REPLACE**",
        ">>>>>>> REPLACE;",
        ">>>>>>> REPLACE \u{200b}",
    ] {
        let reply = format!("f.txt\n<<<<<<< SEARCH\ntwo\n=======\n2\n{close}\n");
        assert_eq!(text(Format::Blocks, "one\ntwo\n", &reply).as_deref(), Ok("one\n2\n"), "{close}");
        let two = format!("{reply}\nf.txt\n<<<<<<< SEARCH\none\n=======\n1\n{close}\n");
        assert_eq!(text(Format::Blocks, "one\ntwo\n", &two).as_deref(), Ok("1\n2\n"), "{close}");
    }
}

#[test]
fn whole_files_named_in_prose_are_all_taken() {
    let files = [("src/app.py", "a = 1\n"), ("web/main.js", "let b = 1;\n")];
    let expected = tree(&[("src/app.py", "a = 2\n"), ("web/main.js", "let b = 2;\n")]);
    let replies = [
        "First `src/app.py`:\n\n```python\na = 2\n```\n\nand then web/main.js:\n\n```js\nlet b = 2;\n```\n",
        "src/app.py\n```python\na = 2\n```\n\nThe page (`web/main.js`) follows:\n\n```js\nlet b = 2;\n```\n\nRun it:\n```sh\nnode .\n```\n",
        "I changed **src/app.py** so:\n```\na = 2\n```\nIn `web/main.js` the same:\n```\nlet b = 2;\n```\n",
    ];
    for reply in replies {
        assert_eq!(after(Some(Format::Whole), &files, reply).as_ref(), Ok(&expected), "{reply}");
    }
    // A new one that the line above announces.
    let reply = "Update `src/app.py`:\n\n```python\na = 2\n```\n\nCreate a new file `web/util.js`:\n\n```js\nlet c;\n```\n";
    let done = after(Some(Format::Whole), &files, reply).unwrap();
    assert_eq!(done[&RelPath::parse("web/util.js").unwrap()], "let c;\n");
    assert_eq!(done[&RelPath::parse("src/app.py").unwrap()], "a = 2\n");
    // Which of two is meant nobody can tell; and a part of a file is none.
    let unclear = "src/app.py\n```\na = 2\n```\nAs `src/app.py` calls `web/main.js`:\n```\nlet b = 2;\n```\n";
    assert!(after(Some(Format::Whole), &files, unclear).unwrap_err().contains("several files"));
    let long = "line();\n".repeat(40);
    let files = [("a.js", "x\n"), ("long.js", long.as_str())];
    let part = "a.js\n```\ny\n```\nIt is called in `long.js`:\n```\nline();\n```\n";
    assert!(after(Some(Format::Whole), &files, part).unwrap_err().contains("1 lines and the file 40"));
}

#[test]
fn a_whole_file_may_begin_with_a_blank_line() {
    for reply in [
        "a.rs\n```rust\n\nfn a() {}\n```\n",
        "```rust a.rs\n\n\nfn a() {}\n```\n",
        "a.rs\n```rust\n  \nfn a() {}\n",
    ] {
        assert_eq!(detect(reply), Some(Format::Whole), "{reply}");
    }
    let diff = "a.rs\n```\n\n--- a/a.rs\n+++ b/a.rs\n@@ -1 +1 @@\n-x\n+y\n```\n";
    assert_eq!(detect(diff), Some(Format::Udiff));
}

#[test]
fn a_blank_last_line_is_kept_where_lines_are_inserted() {
    let block =
        |new: &str| format!("f.txt\n<<<<<<< SEARCH\n:start_line:1\n-------\n=======\n{new}>>>>>>> REPLACE\n");
    assert_eq!(text(Format::Blocks, "use b;\n", &block("use a;\n\n")).as_deref(), Ok("use a;\n\nuse b;\n"));
    assert_eq!(
        text(Format::Blocks, "use b;\r\n", &block("use a;\n\n")).as_deref(),
        Ok("use a;\r\n\r\nuse b;\r\n")
    );
    assert_eq!(text(Format::Blocks, "use b;\n", &block("use a;\n")).as_deref(), Ok("use a;\nuse b;\n"));
    let tool = r#"{"path": "f.txt", "command": "insert", "insert_line": 0, "insert_text": "use a;\n\n"}"#;
    assert_eq!(text(Format::Tool, "use b;\n", tool).as_deref(), Ok("use a;\n\nuse b;\n"));
}

#[test]
fn a_diff_that_creates_a_file_never_changes_one() {
    for head in [
        "--- /dev/null\n+++ b/f.txt\n@@ -0,0 +1,2 @@\n",
        "--- f.txt\t1970-01-01 00:00:00.000000000 +0000\n+++ f.txt\t2024-05-01 10:00:00 +0000\n@@ -0,0 +1,2 @@\n",
        "diff --git a/f.txt b/f.txt\nindex 0000000..3b18e51\n--- a/f.txt\n+++ b/f.txt\n@@ -0,0 +1,2 @@\n",
        "diff --git a/f.txt b/f.txt\nnew file mode 100644\n--- /dev/null\n+++ b/f.txt\n@@ -0,0 +1,2 @@\n",
    ] {
        let diff = format!("{head}+new\n+file\n");
        assert!(text(Format::Udiff, "old\n", &diff).unwrap_err().contains("exists"), "{head}");
        assert_eq!(text(Format::Udiff, "", &diff).as_deref(), Ok("new\nfile\n"), "{head}");
        assert_eq!(text(Format::Udiff, "new\nfile\n", &diff).as_deref(), Ok("new\nfile\n"), "{head}");
    }
    // Its lines are the file's, in another version: not to come before it.
    let diff = "--- a/f.txt\n+++ b/f.txt\n@@ -0,0 +1,3 @@\n+import os\n+print(1)\n+print(2)\n";
    assert!(text(Format::Udiff, "import os\nprint(1)\n", diff).unwrap_err().contains("exists"));
    assert_eq!(
        text(Format::Udiff, "main()\n", diff).as_deref(),
        Ok("import os\nprint(1)\nprint(2)\nmain()\n")
    );
}

#[test]
fn hunks_that_change_nothing_are_ignored() {
    let before = "one\ntwo\nthree\n";
    let same = [
        (Format::Udiff, "--- a/f.txt\n+++ b/f.txt\n@@ -1,2 +1,2 @@\n one\n two\n"),
        (Format::Udiff, "--- a/f.txt\n+++ b/f.txt\n@@ -1,2 +1,2 @@\n-one\n+one\n two\n"),
        (Format::Patch, "*** Begin Patch\n*** Update File: f.txt\n@@\n one\n two\n*** End Patch\n"),
        (Format::Patch, "*** Begin Patch\n*** Update File: f.txt\n@@\n one\n-two\n+two\n*** End Patch\n"),
    ];
    for (format, reply) in same {
        assert_eq!(text(format, before, reply).as_deref(), Ok(before), "{reply}");
    }
    let changed = [
        (Format::Udiff, "--- a/f.txt\n+++ b/f.txt\n@@ -1 +1 @@\n one\n@@ -2,2 +2,2 @@\n two\n-three\n+3\n"),
        (
            Format::Patch,
            "*** Begin Patch\n*** Update File: f.txt\n@@\n one\n@@\n two\n-three\n+3\n*** End Patch\n",
        ),
    ];
    for (format, reply) in changed {
        assert_eq!(text(format, before, reply).as_deref(), Ok("one\ntwo\n3\n"), "{reply}");
    }
}

#[test]
fn a_patch_says_how_the_lines_of_an_empty_file_end() {
    let patch = "*** Begin Patch\n*** Update File: f.txt\n@@\n+a\n+b\n*** End Patch\n";
    let diff = "--- a/f.txt\n+++ b/f.txt\n@@ -0,0 +1,2 @@\n+a\n+b\n";
    let bare = "--- a/f.txt\n+++ b/f.txt\n@@ ... @@\n+a\n+b\n";
    for (format, reply) in [(Format::Patch, patch), (Format::Udiff, diff), (Format::Udiff, bare)] {
        assert_eq!(text(format, "", reply).as_deref(), Ok("a\nb\n"), "{reply}");
        let crlf = reply.replace('\n', "\r\n");
        assert_eq!(text(format, "", &crlf).as_deref(), Ok("a\r\nb\r\n"), "{crlf:?}");
        assert_eq!(text(format, "x\n", &crlf.replace("-0,0 +1,2", "-1,0 +2,2")).as_deref(), Ok("x\na\nb\n"));
    }
}

#[test]
fn an_elision_is_not_ambiguous_where_every_reading_writes_the_same() {
    let file = "def a():\n    pass\n\ndef b():\n    pass\n\ndef c():\n    return 1\n";
    // Only what stays could stand in several places.
    let done =
        replace(file, "    pass\n...\n    return 1\n", "    pass\n...\n    return 2\n", false).unwrap();
    assert_eq!(done.text, file.replace("return 1", "return 2"));
    let rust = "impl A {\n    fn x() {\n    }\n    fn y() {\n    }\n}\n\nfn z() {\n    old();\n}\n";
    let done = replace(rust, "}\n// ...\n    old();\n}\n", "}\n// ...\n    new();\n}\n", false).unwrap();
    assert_eq!(done.text, rust.replace("old()", "new()"));
    // One of two equal lines that follow each other goes: either of them.
    let twice = "start\nx\nsame\nsame\nend\n";
    let done = replace(twice, "start\n...\nsame\n", "start\n...\n", false);
    assert!(done.is_err() || done.unwrap().text == "start\nx\nsame\nend\n");
    // What changes could stand in two places.
    let two = "start\nx = 1\ny\nx = 1\nend\n";
    assert!(replace(two, "start\n...\nx = 1\n", "start\n...\nx = 2\n", false).is_err());
}
