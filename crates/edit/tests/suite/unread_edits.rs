//! Edits in forms that are read or told, but never left out of a reply without a word.

use std::collections::BTreeMap;

use journeyman_edit::{ApplyOptions, EditPlan, Format, plan};
use journeyman_protocol::RelPath;

const TEXT: &str = "x = 1\ny = 2\nz = 3\n";
pub(crate) const BLOCK: &str = "b.py\n<<<<<<< SEARCH\nx = 1\n=======\nx = 5\n>>>>>>> REPLACE\n\n";

fn planned(format: Option<Format>, reply: &str) -> EditPlan {
    let files: BTreeMap<RelPath, String> = ["src/a.py", "b.py"]
        .into_iter()
        .map(|path| (RelPath::parse(path).unwrap(), TEXT.to_owned()))
        .collect();
    plan(reply, &ApplyOptions { format, ..ApplyOptions::default() }, &files)
}

#[track_caller]
pub(crate) fn assert_written(reply: &str, expected: &[(&str, &str)]) {
    let plan = planned(None, reply);
    assert_eq!(plan.failed, [], "{reply}");
    let written: Vec<(String, &str)> = plan
        .changes_to_write()
        .iter()
        .map(|change| (change.path.to_string(), change.after.as_deref().unwrap_or_default()))
        .collect();
    let expected: Vec<(String, &str)> =
        expected.iter().map(|(path, text)| ((*path).to_owned(), *text)).collect();
    assert_eq!(written, expected, "{reply}");
}

#[track_caller]
pub(crate) fn assert_told(reply: &str, words: &str) {
    let plan = planned(None, reply);
    assert_eq!(plan.changes_to_write(), [], "{reply}");
    let told: Vec<&str> = plan.failed.iter().map(|failure| failure.message.as_str()).collect();
    assert!(told.iter().any(|message| message.contains(words)), "{reply}\n{told:?}");
}

pub(crate) const A: (&str, &str) = ("src/a.py", "x = 1\ny = 9\nz = 3\n");
pub(crate) const B: (&str, &str) = ("b.py", "x = 5\ny = 2\nz = 3\n");

#[test]
fn a_named_diff_without_a_header_is_a_hunk() {
    let body = " x = 1\n-y = 2\n+y = 9\n z = 3\n";
    for (above, fence) in [
        ("", "```diff src/a.py"),
        ("", "```diff:src/a.py"),
        ("", "~~~diff title=\"src/a.py\""),
        ("src/a.py\n", "```diff"),
        ("### `src/a.py`\n\n", "```patch"),
        ("In `src/a.py`:\n\n", "```diff"),
    ] {
        let close = &fence[..3];
        for body in [body, "x = 1\n-y = 2\n+y = 9\n", "-y = 2\n+y = 9\n"] {
            let diff = format!("{above}{fence}\n{body}{close}\n");
            assert_written(&diff, &[A]);
            let plain = "--- a/b.py\n+++ b/b.py\n@@ -1,3 +1,3 @@\n-x = 1\n+x = 5\n y = 2\n\n";
            assert_written(&format!("{plain}{diff}"), &[B, A]);
            assert_written(&format!("```diff\n{plain}```\n{diff}"), &[B, A]);
            assert_told(&format!("{BLOCK}{diff}"), "also in `udiff`");
        }
        let whole = format!("b.py\n```python\n{}```\n\n{above}{fence}\n{body}{close}\n", B.1);
        assert_written(&whole, &[A, B]);
        let told = !planned(Some(Format::Whole), &whole).failed.is_empty();
        assert!(told || above.starts_with("In "), "{whole}");
    }
    // Its name may stand inside, and a further one is for the same file.
    for first in ["src/a.py\n", "# src/a.py\n", "\n// File: src/a.py\n"] {
        assert_written(&format!("```diff\n{first}-y = 2\n+y = 9\n```\n"), &[A]);
    }
    let further = "src/a.py\n```diff\n-y = 2\n+y = 9\n```\nand\n```diff\n-z = 3\n+z = 4\n```\n";
    assert_written(further, &[("src/a.py", "x = 1\ny = 9\nz = 4\n")]);
    // Without a name it shows what was changed.
    assert_written(&format!("{BLOCK}```diff\n-x = 1\n+x = 5\n```\n"), &[B]);
    for above in ["Summary of `b.py`:\n", "b.py\n"] {
        assert_written(&format!("{BLOCK}{above}```diff\n-x = 1\n+x = 5\n y = 2\n```\n"), &[B]);
        assert_told(&format!("{BLOCK}{above}```diff\n-x = 1\n+x = 6\n y = 2\n```\n"), "also in `udiff`");
    }
    // A new file, and one without a place for what comes.
    assert_written("c.py\n```diff\n+q = 1\n```\n", &[("c.py", "q = 1\n")]);
    assert_told("b.py\n```diff\n+q = 1\n```\n", "nothing says where");
}

#[test]
fn lines_of_a_diff_are_no_file_whatever_the_fence_says() {
    for fence in ["```python", "```"] {
        assert_told(&format!("src/a.py\n{fence}\n x = 1\n-y = 2\n+y = 9\n z = 3\n```\n"), "it is a diff");
    }
    assert_written("src/a.py\n```\n- x\n- y\n```\n", &[("src/a.py", "- x\n- y\n")]);
}

#[test]
fn tags_in_capitals_and_under_other_names_are_read_or_told() {
    let edit =
        "<edit>\n<file>src/a.py</file>\n<search>\ny = 2\n</search>\n<replace>\ny = 9\n</replace>\n</edit>\n";
    let capitals = edit
        .replace("edit>", "EDIT>")
        .replace("file>", "FILE>")
        .replace("search>", "SEARCH>")
        .replace("replace>", "REPLACE>");
    let pair =
        |old: &str, new: &str| format!("src/a.py\n<{old}>\ny = 2\n</{old}>\n<{new}>\ny = 9\n</{new}>\n");
    for reply in [
        capitals.clone(),
        pair("OLD_TEXT", "NEW_TEXT"),
        pair("old_string", "new_string"),
        pair("old_str", "new_str"),
        pair("search", "replace"),
        "<str_replace>\n<path>src/a.py</path>\n<old_str>y = 2</old_str>\n<new_str>y = 9</new_str>\n</str_replace>\n"
            .to_owned(),
    ] {
        assert_written(&reply, &[A]);
        assert_eq!(planned(Some(Format::Edit), &reply).failed, [], "{reply}");
        assert_told(&format!("{BLOCK}{reply}"), "were not read");
    }
    let first = edit.replace("src/a.py", "b.py");
    assert_told(&format!("{first}{capitals}"), "further edits in the format `edit`");
    // Capitals in what an edit writes are its text.
    let quoting = edit.replace("y = 9\n", &format!("y = '''\n{capitals}'''\n"));
    assert_written(&quoting, &[("src/a.py", &format!("x = 1\ny = '''\n{capitals}'''\nz = 3\n"))]);
}

#[test]
fn calls_in_the_text_are_told_beside_other_edits() {
    for (call, is_edit) in [
        (r#"{"command": "insert", "path": "src/a.py", "insert_line": 1, "insert_text": "k"}"#, true),
        (r#"{"command": "delete", "path": "src/a.py"}"#, true),
        (r#"{"path": "src/a.py", "find": "y = 2", "replace": "y = 9"}"#, true),
        ("<write_to_file>\n<path>src/a.py</path>\n<content>\nk\n</content>\n</write_to_file>", true),
        ("<invoke name=\"delete_file\">\n<parameter name=\"path\">src/a.py</parameter>\n</invoke>", true),
        ("<delete_file>\n<path>src/a.py</path>\n</delete_file>", true),
        (
            "<edit_file>\n<target_file>src/a.py</target_file>\n<code_edit>\nk\n</code_edit>\n</edit_file>",
            true,
        ),
        (r#"[TOOL_CALLS]edit[ARGS]{"path": "src/a.py", "old_string": "y = 2", "new_string": "y = 9"}"#, true),
        ("<invoke name=\"read_file\">\n<parameter name=\"path\">src/a.py</parameter>\n</invoke>", false),
        (r#"{"path": "src/a.py", "content": "what it printed"}"#, false),
    ] {
        let reply = format!("{BLOCK}{call}\n");
        match is_edit {
            true => assert_told(&reply, "also in `tool`"),
            false => assert_written(&reply, &[B]),
        }
    }
}

#[test]
fn a_new_text_without_an_old_one_is_told() {
    let lone = "<new_text>\ny = 9\n</new_text>\n";
    let pair = "src/a.py\n<old_text>\nx = 1\n</old_text>\n<new_text>\nx = 5\n</new_text>\n";
    assert_told(&format!("{BLOCK}src/a.py\n{lone}"), "has no <old_text> above it");
    assert_told(&format!("{pair}{lone}"), "has no <old_text> above it");
    assert_told(&format!("src/a.py\n{lone}"), "has no <old_text> above it");
    let edit =
        "<edit>\n<file>b.py</file>\n<search>\nx = 1\n</search>\n<replace>\nx = 5\n</replace>\n</edit>\n";
    assert_told(&format!("{edit}src/a.py\n{lone}"), "were not read");
}

#[test]
fn blocks_between_other_marks_are_read_or_told() {
    for (old, new) in [("OLD", "NEW"), ("BEFORE", "AFTER"), ("FIND", "REPLACE"), ("ORIGINAL", "UPDATED")] {
        let block = format!("src/a.py\n<<<<<<< {old}\ny = 2\n=======\ny = 9\n>>>>>>> {new}\n");
        assert_written(&block, &[A]);
        assert_written(&format!("{BLOCK}{block}"), &[B, A]);
    }
    assert_written("src/a.py\n<<<<< search\ny = 2\n=====\ny = 9\n>>>>> replace\n", &[A]);
    let conflict = "src/a.py\n<<<<<<< HEAD\ny = 2\n=======\ny = 9\n>>>>>>> branch\n";
    assert_told(&format!("{BLOCK}{conflict}"), "further edits");
    // A conflict that words are about is none.
    let told = conflict.replace("src/a.py\n", "Git leaves such marks:\n");
    assert_written(&format!("{BLOCK}{told}"), &[B]);
}

#[test]
fn a_byte_order_mark_before_a_reply_is_none_of_its_words() {
    let json = r#"{"path": "b.py", "old_string": "x = 1", "new_string": "x = 5"}"#;
    for reply in [BLOCK, json] {
        assert_written(&format!("\u{feff}{reply}"), &[B]);
    }
}

#[test]
fn a_file_between_tags_is_read_as_one() {
    let tags = format!("<file path=\"src/a.py\">\n{}</file>\n", A.1);
    assert_written(&format!("Here it is.\n\n{tags}"), &[A]);
    assert_written(&format!("{BLOCK}{tags}"), &[B, A]);
    let inside = "<file path=\"b.py\">\n<<<<<<< SEARCH\nx = 1\n=======\nx = 5\n>>>>>>> REPLACE\n</file>\n";
    assert_written(inside, &[B]);
}

#[test]
fn a_hunk_goes_to_the_file_of_its_own_names() {
    let hunk = "--- a/b.py\n+++ b/b.py\n@@ -1,3 +1,3 @@\n-x = 1\n+x = 5\n y = 2\n";
    for above in [
        "rename from src/a.py\nrename to src/c.py\n",
        "similarity index 100%\nrename from src/a.py\nrename to src/c.py\n\n",
    ] {
        let plan = planned(None, &format!("diff --git a/src/a.py b/src/c.py\n{above}{hunk}"));
        let changes: Vec<(String, Option<&str>)> =
            plan.changes.iter().map(|change| (change.path.to_string(), change.after.as_deref())).collect();
        assert_eq!(plan.failed, [], "{above}");
        assert_eq!(changes, [("b.py".to_owned(), Some(B.1)), ("src/a.py".to_owned(), Some(TEXT))], "{above}");
    }
    assert_written(&format!("diff --git a/b.py b/b.py\nindex 1..2 100644\n{hunk}"), &[B]);
    assert_written(&format!("diff --git b.py b.py\nindex 1..2 100644\n{hunk}"), &[B]);
}

#[test]
fn an_edit_behind_a_fence_without_an_end_is_none_of_the_files_lines() {
    let file = format!("src/a.py\n```python\n{}\n", A.1);
    let json = r#"{"path": "b.py", "old_string": "x = 1", "new_string": "x = 5"}"#;
    for edit in [
        "*** Begin Patch\n*** Update File: b.py\n@@\n-x = 1\n+x = 5\n*** End Patch\n",
        "<edit>\n<file>b.py</file>\n<search>\nx = 1\n</search>\n<replace>\nx = 5\n</replace>\n</edit>\n",
        "--- a/b.py\n+++ b/b.py\n@@ -1,3 +1,3 @@\n-x = 1\n+x = 5\n y = 2\n",
        json,
    ] {
        assert_told(&format!("{file}{edit}"), "before another edit begins");
    }
    assert_written(&file, &[A]);
    // A block's end without its beginning.
    let stray = "src/a.py\ny = 2\n=======\ny = 9\n>>>>>>> REPLACE\n";
    assert_told(&format!("{json}\n\n{stray}"), "also in `blocks`");
}

#[test]
fn tags_of_further_products_are_read_alone_and_told_beside_other_edits() {
    let pair = |old: &str, new: &str| format!("<{old}>y = 2</{old}>\n<{new}>y = 9</{new}>\n");
    for edit in [
        format!("<replace_in_file>\n<path>src/a.py</path>\n{}</replace_in_file>\n", pair("old", "new")),
        format!("<changes>\n<change>\n<file>src/a.py</file>\n{}</change>\n</changes>\n", pair("old", "new")),
        format!("<file path=\"src/a.py\">\n{}</file>\n", pair("original", "updated")),
        "<file path=\"src/a.py\">\n<original>\ny = 2\n</original>\n<new>\ny = 9\n</new>\n</file>\n"
            .to_owned(),
        format!("<Edit>\n<File>src/a.py</File>\n{}</Edit>\n", pair("Search", "Replace")),
        "<Edit>\n<file>src/a.py</file>\n<search>\ny = 2\n</search>\n<replace>\ny = 9\n</replace>\n</Edit>\n"
            .to_owned(),
    ] {
        assert_written(&edit, &[A]);
        assert_told(&format!("{BLOCK}{edit}"), "were not read");
        let usual = "<edit>\n<file>b.py</file>\n<search>x = 1</search>\n<replace>x = 5</replace>\n</edit>\n";
        assert_told(&format!("{usual}{edit}"), "were not read");
    }
    let roo = format!(
        "<apply_diff>\n<args>\n<file>\n  <path>b.py</path>\n  <diff>\n    <content><![CDATA[\n{}]]></content>\n    \
         <start_line>1</start_line>\n  </diff>\n</file>\n</args>\n</apply_diff>\n",
        BLOCK.trim_start_matches("b.py\n")
    );
    assert_written(&roo, &[B]);
    // The path comes last.
    let last =
        format!("<replace_in_file>\n{}<path>src/a.py</path>\n</replace_in_file>\n", pair("old", "new"));
    assert_told(&format!("{BLOCK}{last}"), "were not read");
    // A component has such a name, too.
    assert_written(&format!("{BLOCK}It renders\n<Edit>\n<Icon/>\n</Edit>\n"), &[B]);
}

#[test]
fn tags_of_an_edit_are_no_content_of_a_file() {
    let repo_prompt =
        "<change>\n<search>\n===\ny = 2\n===\n</search>\n<content>\n===\ny = 9\n===\n</content>\n</change>\n";
    for body in [repo_prompt, "<find>\ny = 2\n</find>\n<with>\ny = 9\n</with>\n<change>\n</change>\n"] {
        for reply in [
            format!("<file path=\"src/a.py\" action=\"modify\">\n{body}</file>\n"),
            format!("src/a.py\n```python\n{body}```\n"),
        ] {
            assert_told(&reply, "the tag of an edit");
        }
    }
    let page = "<file path=\"c.html\">\n<html>\n<p>a</p>\n</html>\n</file>\n";
    assert_written(page, &[("c.html", "<html>\n<p>a</p>\n</html>\n")]);
}

#[test]
fn a_context_diff_is_read_as_any_other() {
    let stars = "***************\n";
    let changed = "*** 1,3 ****\n  x = 1\n! y = 2\n  z = 3\n--- 1,3 ----\n  x = 1\n! y = 9\n  z = 3\n";
    let names = |path: &str| format!("*** {path}\t2024-01-01\n--- {path}\t2024-01-02\n{stars}");
    let diff = names("src/a.py") + changed;
    assert_written(&diff, &[A]);
    assert_written(&format!("Here:\n\n```diff\n{diff}```\n"), &[A]);
    assert_told(&format!("{BLOCK}{diff}"), "also in `udiff`");
    let second = names("b.py") + "*** 1,2 ****\n! x = 1\n--- 1,2 ----\n! x = 5\n";
    assert_written(&format!("{diff}{second}"), &[A, B]);
    assert_written(&format!("{BLOCK}{second}"), &[B]);
    assert_written(&format!("{diff}--- a/b.py\n+++ b/b.py\n@@ -1 +1 @@\n-x = 1\n+x = 5\n"), &[A, B]);
    // A side without changes may be left out.
    let added = names("src/a.py") + "*** 1,3 ****\n--- 1,4 ----\n  x = 1\n  y = 2\n+ n = 0\n  z = 3\n";
    assert_written(&added, &[("src/a.py", "x = 1\ny = 2\nn = 0\nz = 3\n")]);
    let gone = names("src/a.py") + "*** 1,3 ****\n  x = 1\n- y = 2\n  z = 3\n--- 1,2 ----\n";
    assert_written(&gone, &[("src/a.py", "x = 1\nz = 3\n")]);
    assert_told(&diff.replacen("  z = 3", "  z = 4", 1), "don't belong together");
    assert_told(&format!("src/a.py\n```\n{diff}```\n"), "a diff and not the file");
}

#[test]
fn whole_files_in_json_are_read_alone_and_told_beside_other_edits() {
    let new = r#"{"path": "src/c.py", "content": "n = 1\n"}"#;
    let list = format!(r#"{{"files": [{new}, {{"file": "b.py", "content": "x = 5\ny = 2\nz = 3\n"}}]}}"#);
    assert_written(&list, &[("src/c.py", "n = 1\n"), B]);
    for json in [new.to_owned(), format!("```json\n{new}\n```"), format!("[{new}]"), list] {
        assert_told(&format!("{BLOCK}{json}\n"), "also in `tool`");
    }
    // What a file has already is quoted.
    let quoted = format!("{BLOCK}It returned\n{{\"path\": \"src/a.py\", \"content\": {TEXT:?}}}\n");
    assert_written(&quoted, &[B]);
}

#[test]
fn a_diff_that_a_command_is_to_apply_is_read() {
    let diff = "--- a/src/a.py\n+++ b/src/a.py\n@@ -1,3 +1,3 @@\n x = 1\n-y = 2\n+y = 9\n z = 3\n";
    for command in ["patch -p1 <<'EOF'", "patch <<EOF", "git apply <<'EOF'", "git apply --index - <<-\"EOF\""]
    {
        let body = format!("{command}\n{diff}EOF\n");
        for reply in [body.clone(), format!("Run this:\n\n```bash\n{body}```\n")] {
            assert_written(&reply, &[A]);
            assert_told(&format!("{BLOCK}{reply}"), "also in `udiff`");
        }
    }
    for command in ["patch -R -p1 <<'EOF'", "git apply --check <<EOF"] {
        assert_told(&format!("```bash\n{command}\n{diff}EOF\n```\n"), "no edit in any format");
    }
}

#[test]
fn a_line_that_announces_a_file_names_that_of_a_block_in_a_list() {
    let block = |old: &str, new: &str| {
        format!(
            "   ```python\n   <<<<<<< SEARCH\n   {old}\n   =======\n   {new}\n   >>>>>>> REPLACE\n   ```\n\n"
        )
    };
    let first = format!("1. In `b.py`:\n\n{}", block("x = 1", "x = 5"));
    let second = format!("2. In `src/a.py`:\n\n{}", block("y = 2", "y = 9"));
    assert_written(&format!("{first}{second}"), &[B, A]);
}
