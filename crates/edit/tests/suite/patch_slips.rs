//! Slips of models in patches and unified diffs: marks of other formats, names, line numbers and
//! context.

use std::collections::BTreeMap;

use journeyman_edit::{ApplyOptions, Format, plan};
use journeyman_protocol::RelPath;

/// A file's text after a reply, or the words of the failures.
fn after(format: Format, name: &str, before: &str, reply: &str) -> Result<String, String> {
    let path = RelPath::parse(name).unwrap();
    let files = BTreeMap::from([(path.clone(), before.to_owned())]);
    let options = ApplyOptions { format: Some(format), path: Some(path), ..ApplyOptions::default() };
    let plan = plan(reply, &options, &files);
    if !plan.failed.is_empty() {
        return Err(plan.failed.iter().map(|failure| failure.message.clone()).collect::<Vec<_>>().join("\n"));
    }
    let changes = plan.changes_to_write();
    let [change] = changes else { panic!("{} changes: {reply}", changes.len()) };
    Ok(change.after.clone().unwrap())
}

#[track_caller]
fn assert_written(format: Format, before: &str, reply: &str, expected: &str) {
    assert_eq!(after(format, "f.txt", before, reply).as_deref(), Ok(expected), "{reply}");
}

#[test]
fn marks_that_close_no_patch_are_no_lines() {
    let before = "line1\nline2\nline3\n";
    let expected = "line1\nLINE2\nline3\n";
    for mark in ["***", "*** End", "*** EOF", ">>>", "EOF"] {
        let bare = format!("@@\n-line2\n+LINE2\n{mark}");
        assert_written(Format::Patch, before, &bare, expected);
        let whole =
            format!("*** Begin Patch\n*** Update File: f.txt\n@@\n-line2\n+LINE2\n{mark}\n*** End Patch");
        assert_written(Format::Patch, before, &whole, expected);
        let diff = format!("--- f.txt\n+++ f.txt\n@@ -2,2 +2,2 @@\n-line2\n+LINE2\n line3\n{mark}\n");
        assert_written(Format::Udiff, before, &diff, expected);
    }
    // Where the file has the line, it is one of the hunk's.
    assert_written(Format::Patch, "a\nb\n***\n", "@@\n-b\n+B\n***", "a\nB\n***\n");
}

#[test]
fn names_as_a_unified_diff_has_them_may_stand_in_a_patch() {
    let before = "first\nsecond\nthird\n";
    let expected = "first\nSECOND\nthird\n";
    let hunk = "@@ -1,3 +1,3 @@\n first\n-second\n+SECOND\n third";
    for header in [
        "diff --git a/f.txt b/f.txt\nindex abc123..def456 100644\n--- a/f.txt\n+++ b/f.txt",
        "--- f.txt\n+++ f.txt",
    ] {
        for reply in [
            format!("{header}\n{hunk}"),
            format!("*** Begin Patch\n{header}\n{hunk}\n*** End Patch"),
            format!("*** Begin Patch\n*** Update File: f.txt\n{header}\n{hunk}\n*** End Patch"),
        ] {
            assert_written(Format::Patch, before, &reply, expected);
        }
    }
    // The caller has named the file.
    assert_written(Format::Patch, before, &format!("*** Begin Patch\n{hunk}\n*** End Patch"), expected);
}

#[test]
fn sides_may_have_any_name() {
    let reply = |old: &str, new: &str| format!("--- {old}/f.txt\n+++ {new}/f.txt\n@@ -1 +1 @@\n-a\n+b\n");
    for (old, new) in [("old", "new"), ("src", "dst"), ("original", "modified"), ("before", "after")] {
        assert_written(Format::Udiff, "a\n", &reply(old, new), "b\n");
    }
}

#[test]
fn a_heading_leaves_the_stated_line_its_word() {
    let before = "line\n".repeat(30);
    let reply = "--- f.txt\n+++ f.txt\n@@ -13,7 +13,7 @@ line\n line\n line\n line\n-line\n+new\n line\n line\n line\n";
    let expected = format!("{}new\n{}", "line\n".repeat(15), "line\n".repeat(14));
    assert_written(Format::Udiff, &before, reply, &expected);
}

#[test]
fn what_follows_an_anchor_directly_is_meant_by_it() {
    let before = "header\nfunction a\nold\nfunction b\nold\n";
    let expected = "header\nfunction a\nold\nfunction b\nnew\n";
    assert_written(Format::Patch, before, "@@ function b\n-old\n+new", expected);
    let reply = "@@ second\n-keep\n+KEEP2\n@@ first\n-keep\n+KEEP1";
    assert_written(Format::Patch, "first\nkeep\nsecond\nkeep\n", reply, "first\nKEEP1\nsecond\nKEEP2\n");
}

#[test]
fn later_headers_are_as_far_off_as_earlier_ones() {
    let verse = "There was a man\nHe had whiskers\nThe wind came\n\n";
    let before = format!("one\ntwo\n{}", verse.repeat(6));
    // Both say ten lines too many; the second hunk's lines are there six times.
    let reply = "--- f.txt\n+++ f.txt\n@@ -11,2 +11,2 @@\n-one\n+ONE\n two\n@@ -21,3 +21,3 @@\n-There was a man\n+There was Bob\n He had whiskers\n The wind came\n";
    let expected =
        format!("ONE\ntwo\n{}{}{}", verse.repeat(2), verse.replace("a man", "Bob"), verse.repeat(3));
    assert_written(Format::Udiff, &before, reply, &expected);
    // A header that is right is taken at its word.
    let reply = reply.replace("@@ -21,3 +21,3 @@", "@@ -19,3 +19,3 @@");
    let expected = format!("ONE\ntwo\n{}{}{}", verse.repeat(4), verse.replace("a man", "Bob"), verse);
    assert_written(Format::Udiff, &before, &reply, &expected);
}

#[test]
fn comments_that_the_context_leaves_out_stay() {
    let before = "def ensure(self):\n    # Nothing to do if it is there.\n    if self.has_table():\n        return\n    # Make the table.\n    try:\n        self.create()\n";
    let reply = "--- f.txt\n+++ f.txt\n@@ -1,5 +1,7 @@\n def ensure(self):\n     if self.has_table():\n         return\n+    if not self.allowed():\n+        return\n     try:\n         self.create()\n";
    let expected = before.replace(
        "    # Make the table.\n",
        "    if not self.allowed():\n        return\n    # Make the table.\n",
    );
    assert_written(Format::Udiff, before, reply, &expected);
    let toml = "[server]\nhost = \"localhost\"\n# Local.\nport = 8080\n";
    let reply = "@@\n [server]\n host = \"localhost\"\n-port = 8080\n+port = 9090";
    assert_written(Format::Patch, toml, reply, &toml.replace("8080", "9090"));
}

#[test]
fn code_next_to_a_change_is_not_overlooked() {
    // The method's first line goes, and the file has a line below it that the hunk doesn't know.
    let before = "class Calculator:\n    def subtract(self, a, b)\n        return a - b  # Syntax\n\n    def multiply(self, a, b):\n        return a * b\n";
    let reply = "@@\n class Calculator:\n-    def subtract(self, a, b)\n+    def subtract(self, a, b):\n+        return a - b\n \n     def multiply(self, a, b):\n         return a * b";
    assert_eq!(after(Format::Patch, "f.txt", before, reply).as_deref().ok(), None);
    // The line above the second change is another one now.
    let before =
        "fn a() {\n    one_thing();\n}\n\n// Added.\nfn c_changed() { // mine\n    three_things();\n}\n";
    let reply = "@@\n fn a() {\n-    one_thing();\n+    uno();\n }\n \n fn c() {\n-    three_things();\n+    tres();\n }";
    assert!(after(Format::Patch, "f.txt", before, reply).is_err());
}

#[test]
fn a_deletion_may_be_dated_in_any_time_zone() {
    let path = RelPath::parse("gone").unwrap();
    let files = BTreeMap::from([(path.clone(), "text\n".to_owned())]);
    let reply = "--- gone\t2016-06-07 00:44:19.093 +0300\n+++ gone\t1970-01-01 01:00:00.000 +0100\n@@ -1 +0,0 @@\n-text\n";
    let plan = plan(reply, &ApplyOptions { format: Some(Format::Udiff), ..ApplyOptions::default() }, &files);
    assert!(plan.failed.is_empty());
    let changes = plan.changes_to_write();
    assert_eq!(
        changes.iter().map(|change| (&change.path, &change.after)).collect::<Vec<_>>(),
        [(&path, &None)]
    );
}

#[test]
fn a_mark_that_no_patch_has_is_refused() {
    let patch =
        |mark: &str| format!("*** Begin Patch\n*** Update File: f.txt\n{mark}\n@@\n-a\n+b\n*** End Patch");
    let words = after(Format::Patch, "f.txt", "a\n", &patch("*** Copy to: g.txt")).unwrap_err();
    assert!(words.contains("*** Copy to: g.txt"), "{words}");
    for moves in ["*** Move to: g.txt", "*** Rename to: g.txt", "*** Move File To: g.txt"] {
        let path = RelPath::parse("f.txt").unwrap();
        let files = BTreeMap::from([(path, "a\n".to_owned())]);
        let options = ApplyOptions { format: Some(Format::Patch), ..ApplyOptions::default() };
        let plan = plan(&patch(moves), &options, &files);
        let to: Vec<_> = plan.changes_to_write().iter().map(|change| change.to.clone()).collect();
        assert_eq!(to, [Some(RelPath::parse("g.txt").unwrap())], "{moves}");
    }
}

#[test]
fn equal_hunks_with_other_line_numbers_mean_other_places() {
    let before = "x\nx\nx\none\ntwo\nthree\n";
    let hunks = |second: &str| {
        format!("--- f.txt\n+++ f.txt\n@@ -4,2 +4,3 @@\n one\n+a\n two\n@@ {second} @@\n one\n+a\n two\n")
    };
    assert!(after(Format::Udiff, "f.txt", before, &hunks("-9,2 +10,3")).is_err());
    // The same place twice is an edit that was sent twice.
    let expected = before.replace("one\n", "one\na\n");
    assert_written(Format::Udiff, before, &hunks("-4,2 +4,3"), &expected);
}

#[test]
fn lines_at_the_end_are_not_added_twice() {
    let reply = "--- f.txt\n+++ f.txt\n@@ -1,2 +1,3 @@\n abc\n 123\n+456\n";
    assert_written(Format::Udiff, "abc\n123\n", reply, "abc\n123\n456\n");
    let path = RelPath::parse("f.txt").unwrap();
    let files = BTreeMap::from([(path, "abc\n123\n456\n".to_owned())]);
    let options = ApplyOptions { format: Some(Format::Udiff), ..ApplyOptions::default() };
    assert_eq!(plan(reply, &options, &files).changes_to_write().len(), 0);
}

#[test]
fn a_new_file_may_have_hunk_headers_and_a_blank_before_each_line() {
    let path = RelPath::parse("new.py").unwrap();
    for body in
        ["@@\n+def f():\n+    pass\n", "@@ -0,0 +1,2 @@\n+def f():\n+    pass\n", "+ def f():\n+     pass\n"]
    {
        let reply = format!("*** Begin Patch\n*** Add File: new.py\n{body}*** End Patch");
        let files: BTreeMap<RelPath, String> = BTreeMap::new();
        let options = ApplyOptions { format: Some(Format::Patch), ..ApplyOptions::default() };
        let plan = plan(&reply, &options, &files);
        let changes = plan.changes_to_write();
        let made: Vec<_> = changes.iter().map(|change| (&change.path, change.after.as_deref())).collect();
        assert_eq!(made, [(&path, Some("def f():\n    pass\n"))], "{body}");
    }
}

#[test]
fn a_line_of_a_patch_is_no_part_of_a_line() {
    for (format, reply) in [
        (Format::Patch, "*** Begin Patch\n*** Update File: f.txt\n@@\n-target\n+new\n*** End Patch"),
        (Format::Udiff, "--- f.txt\n+++ f.txt\n@@ -1 +1 @@\n-target\n+new\n"),
    ] {
        let refused = after(format, "f.txt", "prefix_target\n", reply).unwrap_err();
        assert!(refused.contains("only a part of the line"), "{refused}");
        for before in ["target\n", "\u{feff}target\n", "  target \n", "a\ntarget"] {
            assert!(after(format, "f.txt", before, reply).is_ok(), "{before:?}");
        }
    }
}

#[test]
fn a_file_that_is_renamed_is_not_made_whatever_its_blob_is_said_to_be() {
    let files = BTreeMap::from([(RelPath::parse("a.py").unwrap(), "x = 1\n".to_owned())]);
    for (word, changes) in [("rename", 1), ("copy", 1)] {
        let reply = format!(
            "diff --git a/a.py b/b.py\nsimilarity index 90%\n{word} from a.py\n{word} to b.py\n\
             index 0000000..0000000 100644\n--- a/a.py\n+++ b/b.py\n@@ -1 +1 @@\n-x = 1\n+x = 2\n"
        );
        let plan = plan(&reply, &ApplyOptions::default(), &files);
        assert_eq!((plan.changes.len(), plan.failed.len()), (changes, 0), "{:?}", plan.failed);
        assert_eq!(plan.changes[0].after.as_deref(), Some("x = 2\n"));
    }
}
