//! Whole replies as models send them: thinking around the edits, files beside other edits, names in
//! words, calls in the text.

use std::collections::BTreeMap;

use journeyman_edit::{ApplyOptions, EditPlan, Format, plan};
use journeyman_protocol::RelPath;

const CALC: &str = "def add(a, b):\n    return a - b\n\n\ndef mul(a, b):\n    return a * b\n";
const BLOCK: &str = "src/calc.py\n```python\n<<<<<<< SEARCH\n    return a - b\n=======\n    return a + b\n>>>>>>> REPLACE\n```\n";

fn planned(reply: &str) -> EditPlan {
    let files = BTreeMap::from([(RelPath::parse("src/calc.py").unwrap(), CALC.to_owned())]);
    plan(reply, &ApplyOptions::default(), &files)
}

/// The written files, with their texts.
fn written(reply: &str) -> Vec<(String, String)> {
    let plan = planned(reply);
    assert!(plan.failed.is_empty(), "{reply}\n{:?}", plan.failed);
    let text = |after: &Option<String>| after.clone().unwrap_or_default();
    plan.changes_to_write().iter().map(|change| (change.path.to_string(), text(&change.after))).collect()
}

fn fixed() -> (String, String) {
    ("src/calc.py".to_owned(), CALC.replace("a - b", "a + b"))
}

fn made(path: &str, text: &str) -> (String, String) {
    (path.to_owned(), text.to_owned())
}

#[test]
fn edits_in_thinking_are_not_applied() {
    let tried = BLOCK.replace("a + b", "0");
    for thinking in [
        format!("<think>\nPerhaps\n{tried}No.\n</think>\n"),
        format!("<thinking>\n{tried}\n</thinking>\n"),
        format!("Perhaps\n{tried}No.\n</think>\n"),
    ] {
        assert_eq!(written(&format!("{thinking}\n{BLOCK}")), [fixed()], "{thinking}");
        assert_eq!(planned(&thinking).changes_to_write(), [], "{thinking}");
    }
}

#[test]
fn whole_files_beside_other_edits_are_written_too() {
    let file = "src/help.py\n```python\nA = 1\n```\n";
    let diff = "```diff\n--- a/src/calc.py\n+++ b/src/calc.py\n@@ -1,2 +1,2 @@\n def add(a, b):\n-    return a - b\n+    return a + b\n```\n";
    let edit = "<edit>\n<file>src/calc.py</file>\n<search>\n    return a - b\n</search>\n<replace>\n    return a + b\n</replace>\n</edit>\n";
    for other in [BLOCK, diff, edit] {
        for reply in [format!("{file}\n{other}"), format!("{other}\nThe new file:\n\n{file}")] {
            assert_eq!(written(&reply), [made("src/help.py", "A = 1\n"), fixed()], "{reply}");
        }
    }
    // What shows a part of a file explains the edit.
    let shown = format!("{BLOCK}\nNow `src/calc.py` has\n\nsrc/calc.py\n```python\n    return a + b\n```\n");
    assert_eq!(written(&shown), [fixed()]);
}

#[test]
fn files_are_named_in_words() {
    let block = "\n\n```python\nA = 1\n```\n";
    for line in [
        "Create `src/a.py`:",
        "I'll create a new file called src/a.py with the following content:",
        "### File 1: `src/a.py`",
        "=== src/a.py ===",
        "📄 src/a.py",
        "[src/a.py]",
        "Save this as `src/a.py`:",
    ] {
        assert_eq!(written(&format!("{line}{block}")), [made("src/a.py", "A = 1\n")], "{line}");
    }
    let commented = "So:\n```python\n# src/a.py\nA = 1\n```\n";
    assert_eq!(written(commented), [made("src/a.py", "# src/a.py\nA = 1\n")]);
    let attributes = "```{.python filename=\"src/a.py\"}\nA = 1\n```\n";
    assert_eq!(written(attributes), [made("src/a.py", "A = 1\n")]);
    let whole = format!("Here is the updated `src/calc.py`:\n\n```python\n{}```\n", fixed().1);
    assert_eq!(written(&whole), [fixed()]);
}

#[test]
fn json_with_words_of_edits_is_the_file_that_is_named() {
    for text in [
        "{\n  \"servers\": {\"a\": {\"command\": \"npx\", \"args\": []}}\n}\n",
        "{\n  \"function\": \"x\",\n  \"arguments\": [{\"name\": \"y\"}]\n}\n",
        "[\n  {\"content\": \"x\"}\n]\n",
    ] {
        let reply = format!("conf/a.json\n\n```json\n{text}```\n");
        assert_eq!(written(&reply), [made("conf/a.json", text)], "{text}");
    }
}

#[test]
fn words_about_a_file_are_no_new_version_of_it() {
    for reply in [
        "In `src/calc.py`:\n\n```python\nprint(add(1, 2))\n```\n",
        "Here is how to call `src/calc.py`:\n\n```python\nprint(add(1, 2))\n```\n",
        "Here is the new function of `src/calc.py`:\n\n```python\ndef add(a, b):\n    return a + b\n```\n",
    ] {
        assert_eq!(planned(reply).changes_to_write(), [], "{reply}");
    }
    let output = "Create `src/a.py`:\n```python\nprint(1)\n```\nThen run `python src/a.py`:\n```\n1\n```\n";
    assert_eq!(written(output), [made("src/a.py", "print(1)\n")]);
}

#[test]
fn calls_in_the_text_are_edits() {
    let arguments = r#"{"path": "src/calc.py", "old_string": "return a - b", "new_string": "return a + b"}"#;
    for reply in [
        format!("<tool_call>\n{{\"name\": \"edit\", \"arguments\": {arguments}}}\n</tool_call>"),
        format!("[TOOL_CALLS] [{{\"name\": \"edit\", \"arguments\": {arguments}}}]"),
        "<function=edit>\n<parameter=path>src/calc.py</parameter>\n<parameter=old_str>\n    return a - b\n</parameter>\n<parameter=new_str>\n    return a + b\n</parameter>\n</function>".to_owned(),
        "<invoke name=\"edit\">\n<parameter name=\"path\">src/calc.py</parameter>\n<parameter name=\"old_str\">a - b</parameter>\n<parameter name=\"new_str\">a + b</parameter>\n</invoke>".to_owned(),
        format!("I change the sign.\n{arguments}\nDone."),
        r#"{"target_file": "src/calc.py", "instructions": "add", "code_edit": "def add(a, b):\n    return a + b\n\n\n# ... existing code ..."}"#.to_owned(),
    ] {
        assert_eq!(written(&reply), [fixed()], "{reply}");
    }
    let file = "<write_to_file>\n<path>src/a.py</path>\n<content>\nA = 1\n</content>\n</write_to_file>";
    assert_eq!(written(file), [made("src/a.py", "A = 1\n")]);
}

#[test]
fn a_path_of_another_checkout_is_the_project_s() {
    for root in ["/testbed/", "/workspace/repo/", "/home/user/work/"] {
        let reply = BLOCK.replace("src/calc.py", &format!("{root}src/calc.py"));
        assert_eq!(written(&reply), [fixed()], "{root}");
        let diff = format!(
            "--- {root}src/calc.py\n+++ {root}src/calc.py\n@@ -2 +2 @@\n-    return a - b\n+    return a + b\n"
        );
        assert_eq!(written(&diff), [fixed()], "{root}");
    }
    for elsewhere in ["/etc/passwd", "/srv/other/calc.py", "/testbed/new.py"] {
        let reply = BLOCK.replace("src/calc.py", elsewhere);
        assert!(!planned(&reply).failed.is_empty(), "{elsewhere}");
    }
}

#[test]
fn a_blank_line_after_inserted_lines_is_no_line_twice() {
    let block = "src/calc.py\n<<<<<<< SEARCH\n    return a - b\n=======\n    return a - b\n\n\ndef neg(a):\n    return -a\n\n>>>>>>> REPLACE\n";
    let text = CALC.replace("a - b\n", "a - b\n\n\ndef neg(a):\n    return -a\n\n");
    assert_eq!(written(block), [made("src/calc.py", &text)]);
}

#[test]
fn thinking_tags_in_edits_of_other_notations_are_content() {
    let files = || -> BTreeMap<RelPath, String> {
        [("a.txt", "x\n"), ("p.txt", "one\ntwo\n"), ("z.txt", "z\n")]
            .into_iter()
            .map(|(path, text)| (RelPath::parse(path).unwrap(), text.to_owned()))
            .collect()
    };
    let block = "<edit path=\"p.txt\">\n<search>\none\n</search>\n<replace>\none\n<think>\nhm\n</think>\n</replace>\n</edit>\n";
    let plan = journeyman_edit::plan(block, &ApplyOptions::default(), &files());
    assert_eq!(plan.changes[0].after.as_deref(), Some("one\n<think>\nhm\n</think>\ntwo\n"));
    let diff = |path: &str, hunk: &str| format!("--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n{hunk}");
    let reply =
        [diff("a.txt", "-x\n+X\n"), diff("p.txt", " one\n+hm</think>\n two\n"), diff("z.txt", "-z\n+Z\n")];
    let plan = journeyman_edit::plan(&reply.concat(), &ApplyOptions::default(), &files());
    let written: Vec<_> =
        plan.changes_to_write().iter().map(|change| change.after.clone().unwrap()).collect();
    assert_eq!(written, ["X\n", "one\nhm</think>\ntwo\n", "Z\n"], "{:?}", plan.failed);
    // Prose in a list is no hunk.
    let thought = format!("- maybe\n- so it is.</think>\n{}", diff("a.txt", "-x\n+X\n"));
    let plan = journeyman_edit::plan(&thought, &ApplyOptions::default(), &files());
    assert_eq!((plan.changes.len(), plan.prose.trim()), (1, ""));
}

#[test]
fn a_patch_in_a_json_string_keeps_characters_that_it_writes_as_pairs() {
    let reply =
        r#""*** Begin Patch\n*** Add File: n.txt\n+smile \ud83d\ude00 \u00e9 \ud83d\n*** End Patch\n""#;
    for reply in [reply.to_owned(), format!("{{\"patch\": {reply}}}")] {
        let files: BTreeMap<RelPath, String> = BTreeMap::new();
        let options = ApplyOptions { format: Some(Format::Patch), ..ApplyOptions::default() };
        let plan = journeyman_edit::plan(&reply, &options, &files);
        let after = plan.changes.first().and_then(|change| change.after.as_deref());
        assert_eq!(after, Some("smile \u{1f600} \u{e9} \\ud83d\n"), "{:?}", plan.failed);
    }
}

#[test]
fn a_comment_with_the_files_name_that_it_never_had_is_no_content() {
    let planned = |path: &str, old: &str, reply: &str| {
        let files = BTreeMap::from([(RelPath::parse(path).unwrap(), old.to_owned())]);
        let plan = plan(reply, &ApplyOptions::default(), &files);
        assert_eq!(plan.failed, [], "{reply}");
        plan.changes.first().and_then(|change| change.after.clone()).unwrap_or_default()
    };
    for (path, comment, language) in [
        ("src/a.py", "# src/a.py", "python"),
        ("src/a.py", "# a.py", "python"),
        ("src/a.py", "# File: src/a.py", "python"),
        ("src/a.ts", "// src/a.ts", "ts"),
        ("src/a.ts", "/* src/a.ts */", ""),
        ("web/a.html", "<!-- web/a.html -->", "html"),
    ] {
        for above in ["", path] {
            if above.is_empty() && !comment.contains("src/a") && !comment.contains("web/a") {
                continue;
            }
            let reply = |text: &str| format!("{above}\n```{language}\n{text}```\n");
            for blank in ["", "\n"] {
                let text = format!("{comment}\n{blank}one\n2\n");
                assert_eq!(planned(path, "one\ntwo\n", &reply(&text)), "one\n2\n", "{text}");
                // It had one.
                assert_eq!(planned(path, &format!("{comment}\ntwo\n"), &reply(&text)), text);
            }
            // Nothing else changes.
            let text = format!("{comment}\none\n");
            assert_eq!(planned(path, "one\n", &reply(&text)), text);
        }
    }
    let script = "src/a.py\n```python\n#!/usr/bin/env python3\n# src/a.py\n\nA = 2\n```\n";
    for blank in ["", "\n"] {
        let old = format!("#!/usr/bin/env python3\n{blank}A = 1\n");
        assert_eq!(planned("src/a.py", &old, script), old.replace('1', "2"));
    }
    // A heading, and words beside the name.
    for (path, text) in [("a.md", "# a.md\n\nTwo.\n"), ("src/a.py", "# src/a.py: the sum\nA = 2\n")] {
        assert_eq!(planned(path, "One.\n", &format!("{path}\n```\n{text}```\n")), text);
    }
}

#[test]
fn a_file_keeps_its_byte_order_mark() {
    let old = "\u{feff}x = 1\ny = 2\n";
    for (reply, new) in [
        ("a.py\n```python\nx = 5\ny = 2\n```\n", "\u{feff}x = 5\ny = 2\n"),
        ("a.py\n```python\nk = 0\n# ... existing code ...\n```\n", "\u{feff}k = 0\nx = 1\ny = 2\n"),
        (r#"{"path": "a.py", "content": "x = 5\n"}"#, "\u{feff}x = 5\n"),
        ("<edit><file>a.py</file><replace>x = 5</replace></edit>", "\u{feff}x = 5\n"),
    ] {
        let files = BTreeMap::from([(RelPath::parse("a.py").unwrap(), old.to_owned())]);
        let plan = plan(reply, &ApplyOptions::default(), &files);
        assert_eq!(plan.changes[0].after.as_deref(), Some(new), "{reply}");
    }
}
