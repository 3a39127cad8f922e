//! Slips that models make, class by class: read as what is meant where that is one thing, else
//! refused.

use std::collections::BTreeMap;

use journeyman_edit::{ApplyOptions, Format, detect, plan, replace};
use journeyman_protocol::RelPath;

pub(crate) type Tree = BTreeMap<RelPath, String>;

fn tree(files: &[(&str, &str)]) -> Tree {
    files.iter().map(|(name, text)| (RelPath::parse(name).unwrap(), (*text).to_owned())).collect()
}

/// The tree after a reply, or the words of its failures.
pub(crate) fn after(format: Option<Format>, files: &[(&str, &str)], reply: &str) -> Result<Tree, String> {
    let mut files = tree(files);
    let path = files.keys().next().filter(|_| files.len() == 1).cloned();
    let plan = plan(reply, &ApplyOptions { format, path, ..ApplyOptions::default() }, &files);
    if !plan.failed.is_empty() {
        return Err(plan.failed.iter().map(|failure| failure.message.clone()).collect::<Vec<_>>().join("\n"));
    }
    for change in plan.changes_to_write() {
        files.insert(change.path.clone(), change.after.clone().unwrap());
    }
    Ok(files)
}

/// One file's text after a reply.
pub(crate) fn text(format: Format, before: &str, reply: &str) -> Result<String, String> {
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

#[test]
fn blanks_within_lines_do_not_tell_a_place_from_itself() {
    let json = "{\n  \"name\": \"x\",\n  \"scripts\": {\n    \"test\": \"run all\"\n  }\n}\n";
    let html = "<ul class=\"a\">\n  <li>One</li>\n  <li >Two</li>\n</ul>\n";
    let sql = "SELECT a,b FROM t WHERE a=1 AND b IN (1,2,3) ORDER BY a;\nSELECT 1;\n";
    let one = "<div><p class=\"x\">text</p><span>more</span></div>\n";
    let rust = "fn f() {\n    let x = call(a, b);\n    done(x);\n}\n";
    let cases = [
        // Many lines in the file, one in the search text.
        (
            json,
            "\"scripts\":{\"test\":\"run all\"}",
            "\"scripts\": {}",
            "{\n  \"name\": \"x\",\n  \"scripts\": {}\n}\n",
        ),
        (html, "<li>One</li><li>Two</li>", "<li>Both</li>", "<ul class=\"a\">\n  <li>Both</li>\n</ul>\n"),
        (rust, "let x=call(a,b);done(x);", "done(call(b, a));", "fn f() {\n    done(call(b, a));\n}\n"),
        // One line in the file, many in the search text, or other blanks.
        (sql, "where a = 1 and", "x", ""),
        (
            sql,
            "WHERE a = 1\n  AND b IN (1, 2, 3)",
            "WHERE b IN (1)",
            "SELECT a,b FROM t WHERE b IN (1) ORDER BY a;\nSELECT 1;\n",
        ),
        (one, "<p class = \"x\">\n  text\n</p>", "<p>text</p>", "<div><p>text</p><span>more</span></div>\n"),
        (
            json,
            "\"name\" : \"x\" , \"scripts\"",
            "\"scripts\"",
            "{\n  \"scripts\": {\n    \"test\": \"run all\"\n  }\n}\n",
        ),
    ];
    for (file, search, new, expected) in cases {
        let done = replace(file, search, new, false);
        match expected {
            "" => assert!(done.is_err(), "{search}"),
            _ => assert_eq!(done.unwrap().text, expected, "{search}"),
        }
    }
    // Two places; a part of a word; and text that would be written without its blanks.
    for (file, search, new) in [
        ("call( a, b ); one();\ncall(a , b); one();\n", "call(a,b);one();", "x"),
        ("let recall = (value, other);\n", "call=(value,other);", "x"),
        ("return value + other_value;\n", "returnvalue+other_value;", "returnvalue-other_value;"),
    ] {
        assert!(replace(file, search, new, false).is_err(), "{search}");
    }
}

const PYTHON: &str = "class Store:\n    def load(self, path):\n        data = read_all(path)\n        rows = parse_rows(data)\n        return rows\n\n    def save(self, path):\n        write_all(path, self.rows)\n";
const GO: &str = "func Serve(addr string) error {\n\tlog.Printf(\"serving\")\n\tmux := newMux()\n\tmux.Handle(\"/\", home)\n\treturn http.ListenAndServe(addr, mux)\n}\n";

#[test]
fn one_slip_in_context_is_put_right_where_one_place_can_be_meant() {
    let diff = |body: &str| format!("--- a/f.txt\n+++ b/f.txt\n@@ ... @@\n{body}");
    let cases = [
        // A line too few, too many, stale.
        (
            PYTHON,
            "     def load(self, path):\n-        rows = parse_rows(data)\n+        rows = parse(data)\n         return rows\n",
            PYTHON.replace("parse_rows(", "parse("),
        ),
        (
            PYTHON,
            "     def load(self, path):\n         data = read_all(path)\n         check(data)\n-        rows = parse_rows(data)\n+        rows = parse(data)\n         return rows\n",
            PYTHON.replace("parse_rows(", "parse("),
        ),
        (
            PYTHON,
            "     def load(self, path):\n         data = read_every(path)\n-        rows = parse_rows(data)\n+        rows = parse(data)\n         return rows\n",
            PYTHON.replace("parse_rows(", "parse("),
        ),
        (
            GO,
            " func Serve(addr string) error {\n \tmux := newMux()\n-\tmux.Handle(\"/\", home)\n+\tmux.Handle(\"/\", index)\n",
            GO.replace("home", "index"),
        ),
        (
            GO,
            " \tlog.Printf(\"serving\")\n \tmux := newMux()\n \tmux.Use(logging)\n-\tmux.Handle(\"/\", home)\n+\tmux.Handle(\"/\", index)\n \treturn http.ListenAndServe(addr, mux)\n",
            GO.replace("home", "index"),
        ),
        // A typo in a line that goes.
        (
            PYTHON,
            "         data = read_all(path)\n-        rows = parse_rowz(data)\n+        rows = parse(data)\n         return rows\n",
            PYTHON.replace("parse_rows(", "parse("),
        ),
        (
            GO,
            " \tmux := newMux()\n-\tmux.Handel(\"/\", home)\n+\tmux.HandleFunc(\"/\", home)\n \treturn http.ListenAndServe(addr, mux)\n",
            GO.replace("Handle", "HandleFunc"),
        ),
    ];
    for (file, body, expected) in cases {
        assert_eq!(text(Format::Udiff, file, &diff(body)).as_ref(), Ok(&expected), "{body}");
        let patch = format!("*** Begin Patch\n*** Update File: f.txt\n@@\n{body}*** End Patch\n");
        assert_eq!(text(Format::Patch, file, &patch).as_ref(), Ok(&expected), "{body}");
    }
}

#[test]
fn a_slip_that_may_mean_something_else_is_refused() {
    let twice = "fn a() {\n    start_the_engine();\n    set(1);\n    stop_the_engine();\n}\nfn b() {\n    start_the_engine();\n    set(2);\n    stop_the_engine();\n}\n";
    let cases = [
        // Two places are as near.
        (twice, "     start_the_engine();\n     set(3);\n-    stop_the_engine();\n+    halt();\n"),
        // A number, and a word that the file has elsewhere, are no typos.
        (twice, "     start_the_engine();\n-    set(5);\n+    set(6);\n     stop_the_engine();\n"),
        (
            PYTHON,
            "         data = read_all(path)\n-        data = parse_rows(data)\n+        data = None\n         return rows\n",
        ),
        // The new line has the typo too.
        (
            PYTHON,
            "         data = read_all(path)\n-        rows = parse_rowz(data)\n+        rows = parse_rowz(data, 1)\n         return rows\n",
        ),
        // A heading of another place.
        (
            PYTHON,
            "     def store(self, path):\n-        write_all(path, self.rows)\n+        pass\n     # end\n",
        ),
    ];
    for (file, body) in cases {
        let diff = format!("--- a/f.txt\n+++ b/f.txt\n@@ ... @@\n{body}");
        let done = text(Format::Udiff, file, &diff);
        assert!(done.is_err(), "{body}\n{}", done.unwrap());
    }
}

#[test]
fn some_context_lines_may_lack_their_prefix() {
    let files = [
        (
            PYTHON,
            "     def load(self, path):\n        data = read_all(path)\n-        rows = parse_rows(data)\n+        if data:\n+            rows = parse(data)\n         return rows\n",
            PYTHON.replace(
                "        rows = parse_rows(data)\n",
                "        if data:\n            rows = parse(data)\n",
            ),
        ),
        (
            PYTHON,
            "class Store:\n     def load(self, path):\n         data = read_all(path)\n+        check(data)\n        rows = parse_rows(data)\n",
            PYTHON.replace("(path)\n        rows", "(path)\n        check(data)\n        rows"),
        ),
        (
            GO,
            " func Serve(addr string) error {\n\tlog.Printf(\"serving\")\n \tmux := newMux()\n-\tmux.Handle(\"/\", home)\n+\tfor {\n+\t\tbreak\n+\t}\n\treturn http.ListenAndServe(addr, mux)\n",
            GO.replace("\tmux.Handle(\"/\", home)\n", "\tfor {\n\t\tbreak\n\t}\n"),
        ),
    ];
    for (file, body, expected) in files {
        let diff = format!("--- a/f.txt\n+++ b/f.txt\n@@ -1,4 +1,5 @@\n{body}");
        assert_eq!(text(Format::Udiff, file, &diff).as_ref(), Ok(&expected), "{body}");
        let patch = format!("*** Begin Patch\n*** Update File: f.txt\n@@\n{body}*** End Patch\n");
        assert_eq!(text(Format::Patch, file, &patch).as_ref(), Ok(&expected), "{body}");
    }
}

#[test]
fn lines_of_context_that_are_broken_elsewhere_stay_as_they_are() {
    let before = "a\n\ncall(\n    one,\n    two,\n);\n\nlast = 1\n";
    let reply = "f.txt\n<<<<<<< SEARCH\ncall(one, two,\n);\n\nlast = 1\n=======\ncall(one, two,\n);\n\nlast = 2\n>>>>>>> REPLACE\n";
    assert_eq!(text(Format::Blocks, before, reply).unwrap(), before.replace("last = 1", "last = 2"));
    // Where the joined line itself changes, it is the model's.
    let reply = "f.txt\n<<<<<<< SEARCH\ncall(one, two,\n);\n\nlast = 1\n=======\ncall(three,\n);\n\nlast = 1\n>>>>>>> REPLACE\n";
    let expected = "a\n\ncall(three,\n);\n\nlast = 1\n";
    assert_eq!(text(Format::Blocks, before, reply).unwrap(), expected);
}

#[test]
fn new_lines_have_the_files_levels_though_the_search_text_shows_none() {
    let before = "class A {\n    void f() {\n        one();\n        two();\n    }\n}\n";
    let reply = "f.txt\n<<<<<<< SEARCH\ntwo();\n=======\nif (x) {\n  two();\n}\n>>>>>>> REPLACE\n";
    let block = |search: &str| reply.replace("SEARCH\ntwo();", &format!("SEARCH\n{search}"));
    let expected = before.replace("        two();\n", "        if (x) {\n            two();\n        }\n");
    // Two lines at the margin that the file has deeper.
    let two = block("one();\ntwo();").replace("=======\nif", "=======\none();\nif");
    assert_eq!(text(Format::Blocks, before, &two).unwrap(), expected);

    // Four blanks after a line that opens a block are one level of a file that has two.
    let before = "f() {\n  one();\n  two();\n  while (y) {\n    three();\n  }\n}\n";
    let two =
        "f.txt\n<<<<<<< SEARCH\none();\ntwo();\n=======\none();\nif (x) {\n    two();\n}\n>>>>>>> REPLACE\n";
    let expected = before.replace("  two();\n", "  if (x) {\n    two();\n  }\n");
    assert_eq!(text(Format::Blocks, before, two).unwrap(), expected);
}

#[test]
fn a_forgotten_plus_before_an_indented_line_is_put_back() {
    let before = "f() {\n    one();\n    two();\n}\n";
    let expected = "f() {\n    one();\n    a();\n    b();\n    c();\n    two();\n}\n";
    for missing in ["    b();", "     b();"] {
        let hunk = format!("     one();\n+    a();\n{missing}\n+    c();\n     two();\n");
        let patch = format!("*** Begin Patch\n*** Update File: f.txt\n@@\n{hunk}*** End Patch\n");
        assert_eq!(text(Format::Patch, before, &patch).unwrap(), expected, "{missing:?}");
        let diff = format!("--- a/f.txt\n+++ b/f.txt\n@@ -2,2 +2,5 @@\n{hunk}");
        assert_eq!(text(Format::Udiff, before, &diff).unwrap(), expected, "{missing:?}");
    }
    // The last line of context may be one that has changed in the file.
    let hunk = "-    one();\n+    if (a) {\n     three();\n+    }\n";
    let diff = format!("--- a/f.txt\n+++ b/f.txt\n@@ -2,2 +2,3 @@\n{hunk}");
    assert!(text(Format::Udiff, before, &diff).is_err());
    let patch = format!("*** Begin Patch\n*** Update File: f.txt\n@@\n{hunk}*** End Patch\n");
    assert!(text(Format::Patch, before, &patch).is_err());
    // A line that the file has elsewhere may be one of context.
    let before = "f() {\n    one();\n    two();\n}\ng() {\n    b();\n}\n";
    let hunk = "     one();\n+    a();\n    b();\n+    c();\n     two();\n";
    let diff = format!("--- a/f.txt\n+++ b/f.txt\n@@ -2,2 +2,5 @@\n{hunk}");
    assert!(text(Format::Udiff, before, &diff).is_err());
}

#[test]
fn one_block_twice_is_one_edit_though_its_text_is_still_there() {
    let before = "end\n\n--- Next.\nnext()\n";
    let block =
        "f.txt\n<<<<<<< SEARCH\nend\n\n--- Next.\n=======\nend\n\nnew()\n\n--- Next.\n>>>>>>> REPLACE\n";
    let expected = "end\n\nnew()\n\n--- Next.\nnext()\n";
    assert_eq!(text(Format::Blocks, before, &format!("{block}\n{block}")).unwrap(), expected);
}

#[test]
fn blank_lines_at_the_end_of_a_whole_file_stay_where_the_file_has_them() {
    let reply = "f.txt\n```\none\nthree\n\n```\n";
    assert_eq!(text(Format::Whole, "one\ntwo\n\n", reply).unwrap(), "one\nthree\n\n");
    // Before a fence they are no wish to add some.
    assert_eq!(text(Format::Whole, "one\ntwo\n", reply).unwrap(), "one\nthree\n");
}

#[test]
fn a_json_file_in_a_fence_with_its_name_is_a_file() {
    let before = "{\n  \"version\": 1,\n  \"name\": \"x\"\n}\n";
    let reply = "package.json\n\n```json\n{\n  \"version\": 2,\n  \"name\": \"x\"\n}\n```\n";
    assert_eq!(detect(reply), Some(Format::Whole));
    let written = after(None, &[("package.json", before)], reply).unwrap();
    assert_eq!(written[&RelPath::parse("package.json").unwrap()], before.replace('1', "2"));
    let edit = "package.json\n```json\n{\"path\": \"package.json\", \"old_string\": \"1\", \"new_string\": \"2\"}\n```\n";
    assert_eq!(detect(edit), Some(Format::Tool));
}

#[test]
fn a_line_of_tildes_or_an_indented_fence_is_text_of_the_file() {
    let before = "\"\"\"\n    old\n\"\"\"\nx = 1\n";
    for wanted in [
        "\"\"\"\n    new\n    ~~~~~\n\n    Text.\n\"\"\"\nx = 2\n",
        "\"\"\"\nnew\n~~~~~\n\nText.\n\"\"\"\nx = 2\n",
        "\"\"\"\n    ```\n    new\n    ```\n\"\"\"\nx = 2\n",
    ] {
        let fence = if wanted.contains('~') { "~~~" } else { "```" };
        let reply = format!("f.txt\n{fence}py\n{wanted}{fence}\n");
        assert_eq!(text(Format::Whole, before, &reply).as_deref(), Ok(wanted), "{reply}");
        let two = format!("{reply}\nAnd:\n\ng.txt\n{fence}\ny = 1\n{fence}\n");
        let tree = [("f.txt", before), ("g.txt", "y = 0\n")];
        let files = after(Some(Format::Whole), &tree, &two).unwrap();
        assert_eq!(files.values().map(String::as_str).collect::<Vec<_>>(), [wanted, "y = 1\n"], "{two}");
    }
    // Where no other fence can end it, one of these does.
    for close in ["    ~~~", "~~~~"] {
        let reply = format!("f.txt\n~~~\nx = 2\n{close}\n");
        assert_eq!(text(Format::Whole, before, &reply).as_deref(), Ok("x = 2\n"), "{reply}");
    }
}

#[test]
fn edits_that_share_only_lines_that_stay_are_both_made() {
    let block =
        |old: &str, new: &str| format!("f.txt\n<<<<<<< SEARCH\n{old}\n=======\n{new}\n>>>>>>> REPLACE\n");
    let before = "one\ntwo\nthree\nfour\nfive\n";
    let both = |one: (&str, &str), other: (&str, &str)| {
        let reply = block(one.0, one.1) + &block(other.0, other.1);
        text(Format::Blocks, before, &reply)
    };
    // Each quotes the other's line as it was.
    let made = [
        (("one\ntwo\nthree", "ONE\ntwo\nthree"), ("one\ntwo\nthree", "one\ntwo\nTHREE")),
        (("one\ntwo\nthree", "one\ntwo\nTHREE"), ("one\ntwo\nthree", "ONE\ntwo\nthree")),
    ];
    for (one, other) in made {
        assert_eq!(both(one, other).as_deref(), Ok("ONE\ntwo\nTHREE\nfour\nfive\n"), "{one:?} {other:?}");
    }
    let kinds = [
        (
            ("one\ntwo", "one\nnew\ntwo"),
            ("one\ntwo\nthree", "one\ntwo\nTHREE"),
            "one\nnew\ntwo\nTHREE\nfour\nfive\n",
        ),
        (
            ("one\ntwo\nthree", "two\nthree"),
            ("one\ntwo\nthree\nfour", "one\ntwo\nthree\nFOUR"),
            "two\nthree\nFOUR\nfive\n",
        ),
        (
            ("two\nthree", "TWO\nthree"),
            ("two\nthree\nfour", "two\nTHREE\nfour"),
            "one\nTWO\nTHREE\nfour\nfive\n",
        ),
        (
            ("four\nfive", "four\nFIVE"),
            ("three\nfour\nfive", "three\nnew\nfour\nfive"),
            "one\ntwo\nthree\nnew\nfour\nFIVE\n",
        ),
    ];
    for (one, other, after) in kinds {
        assert_eq!(both(one, other).as_deref(), Ok(after), "{one:?} {other:?}");
    }
    // The same line in two ways, or two new lines side by side, whose order nobody tells.
    let refused = [
        (("one\ntwo", "one\nTWO"), ("one\ntwo\nthree", "one\nzwei\nthree")),
        (("two\nthree", "two\nX\nthree"), ("two\nthree", "two\nY\nthree")),
        (("two\nthree", "TWO\nthree"), ("two\nthree\nfour", "two\nnew\nthree\nfour")),
    ];
    for (one, other) in refused {
        assert!(both(one, other).is_err_and(|why| why.contains("changes what edit 1 changes")), "{other:?}");
    }
    let crlf = block("one\ntwo", "ONE\ntwo") + &block("one\ntwo", "one\nTWO");
    assert_eq!(text(Format::Blocks, "one\r\ntwo\r\n", &crlf).as_deref(), Ok("ONE\r\nTWO\r\n"));
}

#[test]
fn one_blank_line_in_place_of_others_stays_a_line() {
    // As a patch the new side is one blank line, which is something.
    let file = "#define OLD_NAME 1\n\n/* a remark */\n";
    for reply in [
        "*** Begin Patch\n*** Update File: f.txt\n@@\n-    #define OLD_NAME 1\n \n*** End Patch\n",
        "--- a/f.txt\n+++ b/f.txt\n@@ ... @@\n-    #define OLD_NAME 1\n \n",
    ] {
        let format = if reply.starts_with('*') { Format::Patch } else { Format::Udiff };
        assert_eq!(text(format, file, reply).as_deref(), Ok("\n/* a remark */\n"), "{reply}");
    }
    // And so is a part of a search text that leaves lines out.
    let file = "start();\na1();\na2();\na3();\n\nold();\nlast();\n";
    let after = "start();\na1();\na2();\na3();\n\nlast();\n";
    let block =
        |old: &str, new: &str| format!("f.txt\n<<<<<<< SEARCH\n{old}\n=======\n{new}\n>>>>>>> REPLACE\n");
    let reply = block("a1();\n...\n\nold();", "a1();\n...\n");
    assert_eq!(text(Format::Blocks, file, &reply).as_deref(), Ok(after));
    let done = journeyman_edit::replace(file, "a1();\n...\n\nold();", "a1();\n...\n", false);
    assert_eq!(done.map(|applied| applied.text), Ok(after.to_owned()));
    // With the last line's break on both sides nothing is what it was.
    let done = journeyman_edit::replace(file, "a1();\n...\n\nold();\n", "a1();\n...\n", false);
    assert_eq!(done.map(|applied| applied.text), Ok(after.replace("\n\n", "\n")));
    let file = "x();\n\nb();\nc();\nd();\n";
    let reply = block("x();\n\n...\nd();", "\n...\nd();");
    assert_eq!(text(Format::Blocks, file, &reply).as_deref(), Ok("\nb();\nc();\nd();\n"));
}

#[test]
fn the_first_line_of_context_is_no_forgotten_addition() {
    let file = "node *get_node_by_query(int slot);\nint redirect(int slot);\n";
    let diff = "--- a/f.txt\n+++ b/f.txt\n@@ ... @@\n+void init(void);\n node *old_get_node_by_query(int slot);\n+node *lookup(int slot);\n int redirect(int slot);\n";
    assert!(text(Format::Udiff, file, diff).is_err());
}

#[test]
fn blanks_that_a_moved_line_was_quoted_with_stay_behind() {
    let file = "a(\n    one\n)\nb()\nc()\n";
    let done =
        journeyman_edit::replace(file, "a(\n    one\n)  \nb()  \nc()", "b()  \nx(\n    two\n)  \nc()", false);
    assert_eq!(done.map(|applied| applied.text), Ok("b()\nx(\n    two\n)\nc()\n".to_owned()));
}

#[test]
fn a_byte_order_mark_stays_one() {
    let file = "\u{feff}namespace One\n{\n}\n";
    let diff = "--- a/f.txt\n+++ b/f.txt\n@@ ... @@\n-\u{feff}namespace One  \n+\u{feff}using System;\n+\n+namespace One\n {\n";
    assert_eq!(
        text(Format::Udiff, file, diff).as_deref(),
        Ok("\u{feff}using System;\n\nnamespace One\n{\n}\n")
    );
}

#[test]
fn a_first_line_as_deep_as_the_search_text_s_says_how_deep_the_others_are() {
    let file = "    ]\n\n    for opts in variations:\n        run(opts)\n";
    let search = "        ]\n\n        for opts in variations:\n            run(opts)\n";
    let new = "        ],\n    )\n    def test_all(opts):\n        run_one(opts)\n";
    let done = journeyman_edit::replace(file, search, new, false);
    assert_eq!(
        done.map(|applied| applied.text),
        Ok("    ],\n)\ndef test_all(opts):\n    run_one(opts)\n".to_owned())
    );
}

#[test]
fn blanks_of_a_new_blank_line_are_carried_over_as_a_line_s() {
    let file = "\tone();\n\ttwo();\n";
    let new = "    one();\n    if three() {\n        four();\n        \n        five();\n    }\n    two();";
    let done = journeyman_edit::replace(file, "    one();\n    two();", new, false);
    let after = "\tone();\n\tif three() {\n\t\tfour();\n\t\t\n\t\tfive();\n\t}\n\ttwo();\n";
    assert_eq!(done.map(|applied| applied.text), Ok(after.to_owned()));
    // Blank lines that are the file's while the others are shifted weren't shifted.
    let file = "\tone();\n\t\n\ttwo();\n";
    let new = "\t\tone();\n\t\n\t\tnew();\n\t\t\n\t\tother();\n\t\ttwo();";
    let done = journeyman_edit::replace(file, "\t\tone();\n\t\n\t\ttwo();", new, false);
    let after = "\tone();\n\t\n\tnew();\n\t\t\n\tother();\n\ttwo();\n";
    assert_eq!(done.map(|applied| applied.text), Ok(after.to_owned()));
}

#[test]
fn a_second_divider_below_the_new_lines_is_refused() {
    let reply = "<<<<<<< SEARCH\ntwo\n=======\n2\n=======\n>>>>>>> REPLACE\n";
    assert!(text(Format::Blocks, "one\ntwo\n", reply).is_err());
}

#[test]
fn as_many_replacements_as_are_expected() {
    let reply = |count: u32| {
        format!(
            r#"{{"path": "f.txt", "old_string": "two", "new_string": "2", "expected_replacements": {count}}}"#
        )
    };
    assert_eq!(text(Format::Tool, "one\ntwo\n", &reply(1)).as_deref(), Ok("one\n2\n"));
    assert!(text(Format::Tool, "one\ntwo\n", &reply(3)).is_err());
}

#[test]
fn a_part_of_a_line_that_another_edit_wrote_is_not_searched() {
    let block = |old: &str, new: &str| format!("<<<<<<< SEARCH\n{old}\n=======\n{new}\n>>>>>>> REPLACE\n");
    let reply = block("alpha", "alphaX") + &block("alpha", "beta");
    assert!(text(Format::Blocks, "alpha\n", &reply).is_err());
    // What an edit wrote as a line of its own may be changed by the next.
    let reply = block("alpha", "beta") + &block("beta", "gamma");
    assert_eq!(text(Format::Blocks, "alpha\n", &reply).as_deref(), Ok("gamma\n"));
}
