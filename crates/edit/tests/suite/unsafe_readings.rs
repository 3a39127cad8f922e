//! Replies of which a tolerant reading would take, overwrite or make a whole file.

use std::collections::BTreeMap;

use journeyman_edit::{ApplyOptions, EditPlan, plan};
use journeyman_protocol::RelPath;

const TEXT: &str = "one\ntwo\nthree\n";

fn planned(text: &str, reply: &str) -> EditPlan {
    let files = BTreeMap::from([(RelPath::parse("f.txt").unwrap(), text.to_owned())]);
    plan(reply, &ApplyOptions::default(), &files)
}

/// The only file's new text.
fn after(plan: &EditPlan) -> &str {
    assert_eq!((plan.changes_to_write().len(), plan.failed.len()), (1, 0), "{plan:?}");
    plan.changes_to_write()[0].after.as_deref().unwrap()
}

#[test]
fn arguments_that_delete_or_add_a_part_never_take_the_whole_file() {
    for arguments in [
        r#"{"path": "f.txt", "operation": "delete", "old_str": "two\n"}"#,
        r#"{"path": "f.txt", "command": "delete", "search": "two\n"}"#,
        r#"{"path": "f.txt", "type": "remove", "text": "two\n"}"#,
        r#"{"path": "f.txt", "type": "delete", "textToFind": "two\n"}"#,
        r#"{"edits": [{"path": "f.txt", "operation": "delete", "start_line": 2, "end_line": 2}]}"#,
        r#"{"edits": [{"path": "f.txt", "operation": "delete", "line_range": [2, 2]}]}"#,
        r#"{"path": "f.txt", "mode": "append", "content": "four\n"}"#,
        r#"{"path": "f.txt", "append": true, "content": "four\n"}"#,
        r#"{"path": "f.txt", "command": "prepend", "text": "zero\n"}"#,
        r#"{"path": "f.txt", "mode": "a", "content": "four\n"}"#,
    ] {
        let plan = planned(TEXT, arguments);
        assert_eq!((plan.changes.len(), plan.failed.len()), (0, 1), "{arguments}: {:?}", plan.changes);
    }
    for arguments in [
        r#"{"path": "f.txt", "command": "delete", "content": null, "reason": "unused"}"#,
        r#"{"edits": [{"type": "delete_file", "path": "f.txt"}]}"#,
    ] {
        let plan = planned(TEXT, arguments);
        assert_eq!(plan.changes[0].after, None, "{arguments}: {:?}", plan.failed);
    }
    let whole = r#"{"path": "f.txt", "append": false, "mode": "w", "content": "four\n"}"#;
    assert_eq!(after(&planned(TEXT, whole)), "four\n");
}

#[test]
fn what_goes_to_a_place_of_a_file_makes_no_new_file() {
    for reply in [
        "*** Begin Patch\n*** Update File: typo.txt\n@@ class Foo:\n+    a = 1\n*** End Patch\n",
        "--- a/typo.txt\n+++ b/typo.txt\n@@ -10,0 +11 @@\n+a\n",
        "--- a/typo.txt\n+++ b/typo.txt\n@@ -1,0 +2 @@ fn f() {\n+a\n",
        r#"{"command": "insert", "path": "typo.txt", "insert_line": 7, "insert_text": "a\n"}"#,
        "typo.txt\n<<<<<<< SEARCH\n:start_line:7\n-------\n=======\na\n>>>>>>> REPLACE\n",
    ] {
        let plan = planned(TEXT, reply);
        assert_eq!((plan.changes.len(), plan.failed.len()), (0, 1), "{reply}: {:?}", plan.changes);
        assert_eq!(plan.failed[0].kind, "missing", "{reply}: {:?}", plan.failed);
    }
    for reply in [
        "*** Begin Patch\n*** Update File: new.txt\n@@\n+a\n*** End Patch\n",
        "--- a/new.txt\n+++ b/new.txt\n@@ -0,0 +1 @@\n+a\n",
        r#"{"command": "insert", "path": "new.txt", "insert_line": 0, "insert_text": "a\n"}"#,
    ] {
        let plan = planned(TEXT, reply);
        assert_eq!(after(&plan), "a\n", "{reply}: {:?}", plan.failed);
    }
}

#[test]
fn a_count_of_replacements_is_compared_whatever_ends_the_lines() {
    let file = "a\r\nb\r\na\r\nb\r\n";
    let arguments = |count: u32| {
        format!(
            r#"{{"path": "f.txt", "old_string": "a\nb\n", "new_string": "c\n", "expected_replacements": {count}}}"#
        )
    };
    assert_eq!(after(&planned(file, &arguments(2))), "c\r\nc\r\n");
    let plan = planned(file, &arguments(3));
    assert_eq!((plan.changes.len(), plan.failed.len()), (0, 1), "{:?}", plan.changes);
}

#[test]
fn line_numbers_alone_replace_nothing() {
    for arguments in [
        r#"{"path": "f.txt", "new_string": "2\n", "start_line": 2, "end_line": 2}"#,
        r#"{"path": "f.txt", "command": "replace", "new_str": "2", "startLine": 2, "endLine": 3}"#,
        r#"{"path": "f.txt", "old_string": "", "new_string": "2\n", "start_line": 2, "end_line": 2}"#,
        r#"{"path": "f.txt", "new_string": "2", "near": 2, "line_range": [2, 2]}"#,
    ] {
        let plan = planned(TEXT, arguments);
        assert_eq!((plan.changes.len(), plan.failed.len()), (0, 1), "{arguments}: {:?}", plan.changes);
        assert!(plan.failed[0].message.contains("numbers alone"), "{:?}", plan.failed);
    }
    // With a line to put it before it is an insertion.
    let insertion = r#"{"path": "f.txt", "new_string": "2", "start_line": 2}"#;
    assert_eq!(after(&planned(TEXT, insertion)), "one\n2\ntwo\nthree\n");
}

#[test]
fn an_action_of_any_key_that_adds_takes_no_whole_file() {
    for arguments in [
        r#"{"path": "f.txt", "action": "append", "content": "four\n"}"#,
        r#"{"path": "f.txt", "op": "insert_after", "content": "four\n"}"#,
        r#"{"path": "f.txt", "edit_type": "add_lines", "content": "four\n"}"#,
        r#"{"edits": [{"path": "f.txt", "action": "insert", "content": "four\n"}]}"#,
        r#"{"path": "f.txt", "action": "delete", "content": "two\n"}"#,
    ] {
        let plan = planned(TEXT, arguments);
        assert_eq!((plan.changes.len(), plan.failed.len()), (0, 1), "{arguments}: {:?}", plan.changes);
    }
    let insertion = r#"{"path": "f.txt", "action": "insert", "insert_line": 1, "insert_text": "2"}"#;
    assert_eq!(after(&planned(TEXT, insertion)), "one\n2\ntwo\nthree\n");
    let whole = r#"{"path": "f.txt", "type": "edit", "action": "write", "content": "four\n"}"#;
    assert_eq!(after(&planned(TEXT, whole)), "four\n");
}

#[test]
fn a_quoted_part_of_a_file_is_not_the_file() {
    for (text, quoted) in [(TEXT, "two\n"), ("one\ntwo\nthree\nfour\nfive\n", "one\ntwo\nthree\nfour\n")] {
        let replace = format!("In `f.txt`, replace:\n```\n{quoted}```\n");
        let pair = format!("{replace}with:\n```\n2\n```\n");
        assert_eq!(after(&planned(text, &pair)), text.replace(quoted, "2\n"), "{pair}");
        let reply = format!("{replace}This is what has to come:\n```\n2\n```\n");
        let plan = planned(text, &reply);
        assert_eq!(plan.changes, [], "{reply}");
        assert!(!plan.failed.is_empty(), "{reply}");
    }
    let whole = "Here is the new `f.txt`:\n```\none\n2\nthree\n```\n";
    assert_eq!(after(&planned(TEXT, whole)), "one\n2\nthree\n");
}

#[test]
fn a_diff_with_two_files_names_edits_neither() {
    let hunk = "@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n";
    let refused = |files: &[&str], reply: &str| {
        let files = files.iter().map(|path| (RelPath::parse(path).unwrap(), TEXT.to_owned()));
        let plan = plan(reply, &ApplyOptions::default(), &files.collect::<BTreeMap<_, _>>());
        assert_eq!((plan.changes.len(), plan.failed.len()), (0, 1), "{reply}: {:?}", plan.changes);
        assert!(plan.failed[0].message.contains("name different files, f.txt and"), "{:?}", plan.failed);
    };
    for names in [
        "diff --git a/f.txt b/g.txt\n--- a/f.txt\n+++ b/g.txt\n",
        "diff --git a/f.txt b/g.txt\nsimilarity index 90%\n--- a/f.txt\n+++ b/g.txt\n",
        "diff --git a/f.txt b/g.txt\n",
        "diff --git f.txt g.txt\n",
        "--- a/f.txt\n+++ b/src/g.txt\n",
        "--- f.txt\n+++ g.txt\n",
        "*** Begin Patch\n--- a/f.txt\n+++ b/g.txt\n",
    ] {
        refused(&["f.txt"], &format!("{names}{hunk}"));
    }
    refused(&["f.txt", "g.txt"], &format!("--- a/f.txt\n+++ b/g.txt\n{hunk}"));
    for names in [
        "--- f.txt.orig\n+++ f.txt\n",
        "--- f.txt\n+++ f.txt.new\n",
        "--- old/f.txt\n+++ new/f.txt\n",
        "--- a/project/f.txt\n+++ b/f.txt\n",
        "--- original.txt\n+++ f.txt\n",
    ] {
        assert_eq!(after(&planned(TEXT, &format!("{names}{hunk}"))), "one\n2\nthree\n", "{names}");
    }
}

#[test]
fn arguments_that_ask_for_something_else_than_a_replacement_make_none() {
    for arguments in [
        r#"{"path": "f.txt", "action": "insert_after", "old_string": "two\n", "new_string": "2\n"}"#,
        r#"{"path": "f.txt", "operation": "insert_before", "search": "two\n", "content": "2\n"}"#,
        r#"{"path": "f.txt", "mode": "append", "old_string": "two\n", "new_string": "2\n"}"#,
        r#"{"path": "f.txt", "operation": "delete", "old_string": "two\n", "new_string": "2\n"}"#,
        r#"{"path": "f.txt", "search": "two", "replace": "$1", "use_regex": true}"#,
        r#"{"path": "f.txt", "old_string": "two", "new_string": "2", "dry_run": true}"#,
        r#"{"path": "f.txt", "old_string": "two", "new_string": "2", "preview": "yes"}"#,
        r#"{"path": "f.txt", "old_string": "two", "new_string": "2", "mode": "dry-run"}"#,
        r#"{"path": "f.txt", "edits": [{"oldText": "two", "newText": "2"}], "dryRun": true}"#,
        r#"{"dry_run": 1, "input": {"path": "f.txt", "content": "2\n"}}"#,
        r#"{"path": "f.txt", "content": "2\n", "where": "end"}"#,
        r#"{"path": "f.txt", "content": "2\n", "at_end": true}"#,
        r#"{"path": "f.txt", "content": "2\n", "location": "after two"}"#,
        r#"{"path": "f.txt", "content": "2\n", "section": "two"}"#,
        r#"{"path": "f.txt", "content": "2\n", "selection": {"start": 1, "end": 2}}"#,
        r#"{"path": "f.txt", "content": "2\n", "chunk": 2}"#,
        r#"{"path": "f.txt", "content": "2\n", "partial": true}"#,
        r#"{"path": "f.txt", "content": "2\n", "overwrite": false}"#,
    ] {
        let plan = planned(TEXT, arguments);
        assert_eq!((plan.changes.len(), plan.failed.len()), (0, 1), "{arguments}: {:?}", plan.changes);
    }
    for arguments in [
        r#"{"path": "f.txt", "content": "2\n", "line_count": 1, "partial": false, "overwrite": true}"#,
        r#"{"path": "f.txt", "content": "2\n", "function": "write_file", "location": null}"#,
        r#"{"path": "f.txt", "content": "2\n", "dry_run": false, "preview": "no", "simulate": null}"#,
        r#"{"path": "f.txt", "type": "edit", "old_string": "one\ntwo\nthree\n", "new_string": "2\n", "regex": false}"#,
    ] {
        assert_eq!(after(&planned(TEXT, arguments)), "2\n", "{arguments}");
    }
    let put = r#"{"path": "f.txt", "operation": "insert_after", "insert_after": "one\n", "content": "2\n"}"#;
    assert_eq!(after(&planned(TEXT, put)), "one\n2\ntwo\nthree\n");
    let deleted = r#"{"path": "f.txt", "operation": "delete", "old_string": "two\n", "new_string": ""}"#;
    assert_eq!(after(&planned(TEXT, deleted)), "one\nthree\n");
}
