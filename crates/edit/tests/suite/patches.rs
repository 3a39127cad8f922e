//! Unified diffs and V4A patches: what is read, where it goes, what is refused.

use std::collections::BTreeMap;

use journeyman_edit::{ApplyOptions, EditPlan, Format, plan};
use journeyman_protocol::RelPath;

type Tree = BTreeMap<RelPath, String>;

fn tree(files: &[(&str, &str)]) -> Tree {
    files.iter().map(|(name, text)| (RelPath::parse(name).unwrap(), (*text).to_owned())).collect()
}

fn planned(format: Format, files: &Tree, reply: &str) -> EditPlan {
    let only = files.keys().next().filter(|_| files.len() == 1).cloned();
    plan(reply, &ApplyOptions { format: Some(format), path: only, ..ApplyOptions::default() }, files)
}

/// The tree after a reply, or the kinds of its failures.
fn after(format: Format, files: &[(&str, &str)], reply: &str) -> Result<Tree, Vec<&'static str>> {
    let mut files = tree(files);
    let plan = planned(format, &files, reply);
    if !plan.failed.is_empty() {
        assert_eq!(plan.changes_to_write(), [], "nothing is written where something failed");
        return Err(plan.failed.iter().map(|failure| failure.kind).collect());
    }
    for change in plan.changes_to_write() {
        files.remove(&change.path);
        if let Some(after) = &change.after {
            files.insert(change.to.clone().unwrap_or_else(|| change.path.clone()), after.clone());
        }
    }
    Ok(files)
}

/// One file's text after a reply.
fn text(format: Format, before: &str, reply: &str) -> Result<String, Vec<&'static str>> {
    after(format, &[("f.txt", before)], reply).map(|files| files[&RelPath::parse("f.txt").unwrap()].clone())
}

const FILE: &str = "fn first() {\n    shared();\n}\n\nfn second() {\n    shared();\n}\n\nfn third() {\n    unique_call();\n}\n";

#[test]
fn headers_of_diffs_may_be_wrong_or_missing() {
    let body = " fn third() {\n-    unique_call();\n+    other_call();\n }\n";
    let expected = FILE.replace("unique_call", "other_call");
    for head in [
        "--- a/f.txt\n+++ b/f.txt\n@@ -9,3 +9,3 @@\n",
        "--- a/f.txt\n+++ b/f.txt\n@@ -900,1 +2,77 @@\n",
        "--- a/f.txt\n+++ b/f.txt\n@@ ... @@\n",
        "--- f.txt\n+++ f.txt\n@@\n",
        "---f.txt\n+++f.txt\n@@ -9 +9 @@\n",
        "--- f.txt\t2024-01-01 10:00:00 +0000\n+++ f.txt\t2024-01-01 10:00:01 +0000\n@@ -9,3 +9,3 @@ fn third() {\n",
        "--- a/elsewhere.txt\n+++ b/elsewhere.txt\n@@ -9,3 +9,3 @@\n",
        "diff --git a/f.txt b/f.txt\nindex 123..456 100644\n--- a/f.txt\n+++ b/f.txt\n@@ -9,3 +9,3 @@\n",
        "--- \"a/f.txt\"\n+++ \"b/f.txt\"\n@@ -9,3 +9,3 @@\n",
        "@@ -9,3 +9,3 @@\n",
        "--- a/f.txt\n+++ b/f.txt\n",
    ] {
        assert_eq!(
            text(Format::Udiff, FILE, &format!("{head}{body}")).as_deref(),
            Ok(expected.as_str()),
            "{head}"
        );
        let fenced = format!("Here it is:\n\n```diff\n{head}{body}```\n\nThat is all - really.\n");
        assert_eq!(text(Format::Udiff, FILE, &fenced).as_deref(), Ok(expected.as_str()), "{fenced}");
    }
}

#[test]
fn line_endings_stay_the_files_own() {
    let diff = "--- a/f.txt\n+++ b/f.txt\n@@ -1,3 +1,4 @@\n one\n-two\n+2\n+2b\n three\n";
    let cases = [
        ("one\r\ntwo\r\nthree\r\n", diff.to_owned(), "one\r\n2\r\n2b\r\nthree\r\n"),
        ("one\ntwo\nthree\n", diff.replace('\n', "\r\n"), "one\n2\n2b\nthree\n"),
        ("one\ntwo\r\nthree", diff.to_owned(), "one\n2\r\n2b\r\nthree"),
    ];
    for (before, diff, expected) in cases {
        assert_eq!(text(Format::Udiff, before, &diff).as_deref(), Ok(expected), "{before:?}");
    }
}

#[test]
fn the_final_line_break_changes_only_where_the_patch_says_so() {
    let note = "\\ No newline at end of file\n";
    let head = "--- a/f.txt\n+++ b/f.txt\n@@ -1,2 +1,2 @@\n a\n";
    let cases = [
        ("a\nb", format!("{head}-b\n+c\n"), "a\nc"),
        ("a\nb\n", format!("{head}-b\n+c\n"), "a\nc\n"),
        ("a\nb\n", format!("{head}-b\n+c\n{note}"), "a\nc"),
        ("a\nb", format!("{head}-b\n{note}+c\n"), "a\nc\n"),
        ("a\nb", format!("{head}-b\n{note}+c\n{note}"), "a\nc"),
        ("a\nb", format!("{head} b\n+c\n"), "a\nb\nc"),
        ("a\nb", format!("{head}-b\n"), "a"),
    ];
    for (before, diff, expected) in cases {
        assert_eq!(text(Format::Udiff, before, &diff).as_deref(), Ok(expected), "{before:?}\n{diff}");
    }
}

#[test]
fn git_says_what_happens_to_files() {
    let files = [("src/old.rs", "a\nb\n"), ("gone.rs", "x\n"), ("same.rs", "s\n")];
    let diff = "diff --git a/src/old.rs b/src/new.rs\nsimilarity index 80%\nrename from src/old.rs\nrename to src/new.rs\n\
                --- a/src/old.rs\n+++ b/src/new.rs\n@@ -1,2 +1,2 @@\n a\n-b\n+B\n\
                diff --git a/gone.rs b/gone.rs\ndeleted file mode 100644\n--- a/gone.rs\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n\
                diff --git a/made.rs b/made.rs\nnew file mode 100644\n--- /dev/null\n+++ b/made.rs\n@@ -0,0 +1,2 @@\n+m\n+n\n\
                diff --git a/same.rs b/copy.rs\ncopy from same.rs\ncopy to copy.rs\n";
    let expected =
        tree(&[("src/new.rs", "a\nB\n"), ("made.rs", "m\nn\n"), ("same.rs", "s\n"), ("copy.rs", "s\n")]);
    assert_eq!(after(Format::Udiff, &files, diff), Ok(expected));
}

#[test]
fn what_a_diff_cannot_mean_is_refused_with_its_line() {
    let cases = [
        // Neither a header nor a prefix.
        ("--- a/f.txt\n+++ b/f.txt\ninvalid header\n line1\n-line2\n", "malformed"),
        ("--- a/f.txt\n+++ b/f.txt\nBinary files a/f.txt and b/f.txt differ\n", "malformed"),
        ("diff --git a/f.txt b/f.txt\nold mode 100644\nnew mode 100755\n", "malformed"),
        ("--- /dev/null\n+++ b/f2.txt\n@@ -0,0 +1,2 @@\n+a\nb\n", "malformed"),
        ("--- /dev/null\n+++ b/../f.txt\n@@ -0,0 +1 @@\n+a\n", "malformed"),
        // It would leave lines that it didn't show.
        ("--- a/f.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-one\n", "malformed"),
        ("--- /dev/null\n+++ b/f.txt\n@@ -0,0 +1 @@\n+a\n", "exists"),
        ("this is not a diff at all", "no_edit"),
    ];
    for (diff, kind) in cases {
        let refused = after(Format::Udiff, &[("f.txt", "one\ntwo\n"), ("g.txt", "")], diff);
        assert_eq!(refused, Err(vec![kind]), "{diff}");
    }
    let files = tree(&[("f.txt", "one\n")]);
    let plan = planned(Format::Udiff, &files, "--- /dev/null\n+++ b/n.txt\n@@ -0,0 +1,2 @@\n+a\nno prefix\n");
    assert!(plan.failed[0].message.contains("line 5"), "{}", plan.failed[0].message);
}

#[test]
fn a_reply_that_was_cut_off_is_not_applied() {
    let options = |files: &Tree| ApplyOptions {
        path: files.keys().next().cloned(),
        format: Some(Format::Udiff),
        cut_off: true,
        ..ApplyOptions::default()
    };
    let files = tree(&[("f.txt", "a\nb\nc\n")]);
    let whole = "--- a/f.txt\n+++ b/f.txt\n@@ -1,2 +1,2 @@\n a\n-b\n+B\n";
    assert_eq!(plan(whole, &options(&files), &files).failed, []);
    let cut = "--- a/f.txt\n+++ b/f.txt\n@@ -1,3 +1,4 @@\n a\n-b\n+B\n";
    assert!(plan(cut, &options(&files), &files).failed[0].message.contains("ends inside"));
    let patch = "*** Begin Patch\n*** Update File: f.txt\n@@\n-a\n+A\n";
    let cut = ApplyOptions { format: Some(Format::Patch), ..options(&files) };
    assert!(plan(patch, &cut, &files).changes_to_write().is_empty());
    assert_eq!(plan(patch, &ApplyOptions { cut_off: false, ..cut }, &files).failed, []);
}

#[test]
fn equal_places_are_chosen_by_what_the_hunk_says() {
    let change = "     shared();\n+    more();\n";
    let second =
        FILE.replacen("fn second() {\n    shared();\n", "fn second() {\n    shared();\n    more();\n", 1);
    let cases = [
        // A line number that is clearly nearer.
        (Format::Udiff, format!("--- a/f.txt\n+++ b/f.txt\n@@ -6,1 +6,2 @@\n{change}"), Ok(second.clone())),
        (
            Format::Udiff,
            format!("--- a/f.txt\n+++ b/f.txt\n@@ -4,1 +4,2 @@\n{change}"),
            Err(vec!["ambiguous"]),
        ),
        (Format::Udiff, format!("--- a/f.txt\n+++ b/f.txt\n@@ ... @@\n{change}"), Err(vec!["ambiguous"])),
        // The heading, and V4A's anchor.
        (
            Format::Udiff,
            format!("--- a/f.txt\n+++ b/f.txt\n@@ -4,1 +4,2 @@ fn second() {{\n{change}"),
            Ok(second.clone()),
        ),
        (
            Format::Patch,
            format!("*** Update File: f.txt\n@@ fn second()\n{change}*** End Patch\n"),
            Ok(second.clone()),
        ),
        (
            Format::Patch,
            format!("*** Update File: f.txt\n@@\n{change}*** End Patch\n"),
            Err(vec!["ambiguous"]),
        ),
        // The order of hunks.
        (
            Format::Patch,
            format!(
                "*** Update File: f.txt\n@@\n-fn second() {{\n+fn second() {{ // 2\n@@\n{change}*** End Patch\n"
            ),
            Ok(second.replace("fn second() {", "fn second() { // 2")),
        ),
    ];
    for (format, reply, expected) in cases {
        assert_eq!(text(format, FILE, &reply), expected, "{reply}");
    }
}

#[test]
fn hunks_that_only_add() {
    let udiff = |range: &str| format!("--- a/f.txt\n+++ b/f.txt\n@@ {range} @@\n+new\n");
    let patch =
        |anchor: &str| format!("*** Begin Patch\n*** Update File: f.txt\n@@{anchor}\n+new\n*** End Patch\n");
    let cases = [
        (Format::Udiff, udiff("-0,0 +1"), Ok("new\na\nb\n".to_owned())),
        (Format::Udiff, udiff("-1,0 +2"), Ok("a\nnew\nb\n".to_owned())),
        (Format::Udiff, udiff("-2,0 +3"), Ok("a\nb\nnew\n".to_owned())),
        (Format::Udiff, udiff("-9,0 +10"), Err(vec!["malformed"])),
        (Format::Patch, patch(""), Ok("a\nb\nnew\n".to_owned())),
        (Format::Patch, patch(" a"), Ok("a\nnew\nb\n".to_owned())),
        (Format::Patch, patch(" nowhere"), Err(vec!["no_anchor"])),
    ];
    for (format, reply, expected) in cases {
        assert_eq!(text(format, "a\nb\n", &reply), expected, "{reply}");
    }
}

#[test]
fn what_wraps_a_v4a_patch_does_not_count() {
    let body = "*** Update File: f.txt\n@@\n-two\n+2";
    let cases = [
        format!("*** Begin Patch\n{body}\n*** End Patch"),
        format!("*** Begin Patch \n {body}\n *** End Patch \n"),
        format!("```\n*** Begin Patch\n{body}\n*** End Patch\n```"),
        format!("apply_patch <<'EOF'\n*** Begin Patch\n{body}\n*** End Patch\nEOF\n"),
        format!("{body}\n*** End Patch"),
        format!("*** Begin Patch\n*** Environment ID: here\n{body}\n*** End Patch"),
        format!("*** Begin Patch\n{body}\n*** End Patch").replace('\n', "\r\n"),
        format!("*** Begin Patch\n{body}\n*** End Patch").replace('\n', "\\n"),
        format!("{{\"input\": \"*** Begin Patch\n{body}\n*** End Patch\"}}").replace('\n', "\\n"),
        "@@\n-two\n+2\n".to_owned(),
        "-two\n+2".to_owned(),
    ];
    for reply in cases {
        assert_eq!(text(Format::Patch, "one\ntwo\n", &reply).as_deref(), Ok("one\n2\n"), "{reply}");
    }
}

#[test]
fn context_without_prefixes_is_the_files() {
    let file = "mod m {\n    fn a() {\n        x();\n\n        y();\n    }\n}\n";
    let expected = file.replace("y();", "z();");
    for body in [
        "    fn a() {\n        x();\n\n-        y();\n+        z();\n    }\n",
        "mod m {\n    fn a() {\n        x();\n\n-        y();\n+        z();\n",
        "\n        x();\n\n-        y();\n+        z();\n    }\n\n",
    ] {
        let patch = format!("*** Begin Patch\n*** Update File: f.txt\n@@\n{body}*** End Patch\n");
        assert_eq!(text(Format::Patch, file, &patch).as_deref(), Ok(expected.as_str()), "{patch}");
        let diff = format!("```diff\n--- a/f.txt\n+++ b/f.txt\n@@ ... @@\n{body}```\n");
        assert_eq!(text(Format::Udiff, file, &diff).as_deref(), Ok(expected.as_str()), "{diff}");
    }
}

#[test]
fn anchors_below_each_other_must_be_there() {
    let file = "class A\n    def f():\n        pass\n\nclass B\n    def g():\n        pass\n\n    def f():\n        pass\n";
    let patch = |anchors: &str| {
        format!("*** Update File: f.txt\n{anchors}-        pass\n+        return 1\n*** End Patch\n")
    };
    let expected = "class A\n    def f():\n        pass\n\nclass B\n    def g():\n        pass\n\n    def f():\n        return 1\n";
    assert_eq!(text(Format::Patch, file, &patch("@@ class B\n@@     def f():\n")).as_deref(), Ok(expected));
    assert_eq!(text(Format::Patch, file, &patch("@@ class C\n@@     def f():\n")), Err(vec!["no_anchor"]));
    // One alone is advice.
    let lone = "*** Update File: f.txt\n@@ nowhere\n-    def g():\n+    def h():\n*** End Patch\n";
    assert_eq!(text(Format::Patch, file, lone), Ok(file.replace("def g", "def h")));
}

#[test]
fn v4a_sections_of_every_kind() {
    let files = [("a.txt", "1\n2\n3\n"), ("b.txt", "b\n"), ("c.txt", "c\n")];
    let patch = "*** Begin Patch\n*** Update File: a.txt\n@@\n-3\n+three\n@@\n-1\n+one\n\
                 *** Update File: b.txt\n*** Move to: d/b.txt\n*** Delete File: c.txt\n*** Add File: n.txt\n+n\n*** End Patch\n";
    let expected = tree(&[("a.txt", "one\n2\nthree\n"), ("d/b.txt", "b\n"), ("n.txt", "n\n")]);
    assert_eq!(after(Format::Patch, &files, patch), Ok(expected));
    for (body, kind) in [
        ("*** Frobnicate File: a.txt\n", "malformed"),
        ("*** Delete File: c.txt\nmore\n", "malformed"),
        ("*** Delete File: nowhere.txt\n", "missing"),
        ("*** Add File: n.txt\nno plus\n", "malformed"),
        ("*** Add File: c.txt\n+c2\n", "exists"),
        ("*** Update File: a.txt\n", "malformed"),
        ("*** Update File: a.txt\n@@\n", "malformed"),
        ("*** Update File: a.txt\n@@\n-3\n+three\n*** Update File: a.txt\n@@\n-1\n+one\n", "malformed"),
        ("*** Update File: a.txt\n*** Move to: b.txt\n", "exists"),
    ] {
        let refused = after(Format::Patch, &files, &format!("*** Begin Patch\n{body}*** End Patch\n"));
        assert_eq!(refused, Err(vec![kind]), "{body}");
    }
    let open = "*** Begin Patch\n*** Add File: n.txt\n+it may go on\n";
    assert_eq!(after(Format::Patch, &files, open), Err(vec!["malformed"]));
}

#[test]
fn a_patch_that_was_applied_before_changes_nothing() {
    let diff = "--- a/f.txt\n+++ b/f.txt\n@@ -1,2 +1,3 @@\n fn main() {\n+    initialise_everything();\n     run();\n";
    let done = "fn main() {\n    initialise_everything();\n    run();\n}\n";
    let files = tree(&[("f.txt", done)]);
    let again = planned(Format::Udiff, &files, diff);
    assert_eq!((again.failed.len(), again.changes.len(), again.unchanged.len()), (0, 0, 1));
    // What is added at the hunk's edge leaves its context as it was.
    let tail = "--- a/f.txt\n+++ b/f.txt\n@@ ... @@\n fn main() {\n+    initialise_everything();\n";
    let again = planned(Format::Udiff, &files, tail);
    assert_eq!((again.failed.len(), again.changes.len(), again.unchanged.len()), (0, 0, 1));
    // The same hunk twice in one reply is one.
    let before = "fn main() {\n    run();\n}\n";
    assert_eq!(text(Format::Udiff, before, &format!("{diff}{diff}")).as_deref(), Ok(done));
}

#[test]
fn stale_context_at_the_edges_is_left_out_and_named() {
    let file = "// new heading\nfn main() {\n    prepare_the_ground();\n    run_the_program();\n    finish_cleanly();\n}\n";
    let diff = "--- a/f.txt\n+++ b/f.txt\n@@ -1,5 +1,5 @@\n // heading of long ago\n fn main() {\n     prepare_the_ground();\n-    run_the_program();\n+    run_it();\n     finish_cleanly();\n";
    let files = tree(&[("f.txt", file)]);
    let plan = planned(Format::Udiff, &files, diff);
    assert_eq!(plan.failed, []);
    assert_eq!(plan.changes[0].after.as_deref(), Some(file.replace("run_the_program", "run_it").as_str()));
    let note = plan.changes[0].notes[0].note.clone().unwrap();
    assert!(note.contains("heading of long ago") || note.contains("line"), "{note}");
    // Never the lines that change, and never all that holds an insertion.
    for hunk in [
        " fn main() {\n-    run_the_wrong_program();\n+    run_it();\n",
        "     finish_cleanly();\n     // a comment of long ago\n+    report_to_all();\n",
    ] {
        let refused = text(Format::Udiff, file, &format!("--- a/f.txt\n+++ b/f.txt\n@@ ... @@\n{hunk}"));
        assert!(refused.is_err(), "{hunk} → {refused:?}");
    }
}

#[test]
fn a_forgotten_plus_is_put_back_and_two_escaped_tabs_are_tabs() {
    let patch =
        "*** Update File: f.txt\n@@\n-world\n+def greet():\n    print(1)\n\n+    print(2)\n*** End Patch\n";
    let expected = "hello\ndef greet():\n    print(1)\n\n    print(2)\n";
    let done = text(Format::Patch, "hello\nworld\n", patch);
    // The line begins with a blank, so that it could be context: it isn't in the file, and nothing
    // is guessed.
    assert!(done.is_err() || done.as_deref() == Ok(expected), "{done:?}");
    let patch = "*** Update File: f.txt\n@@\n-world\n+one\ntwo\n+three\n*** End Patch\n";
    assert_eq!(text(Format::Patch, "hello\nworld\n", patch).as_deref(), Ok("hello\none\ntwo\nthree\n"));
    let patch = "*** Update File: f.txt\n@@\n-world\n+\\t\\tdeep\n+\\textbf{x}\n*** End Patch\n";
    assert_eq!(text(Format::Patch, "world\n", patch).as_deref(), Ok("\t\tdeep\n\\textbf{x}\n"));
}

#[test]
fn only_changed_lines_are_touched() {
    // The kept lines' blanks, line endings and quotes stay; the new line is the model's to the
    // byte.
    let file = "\u{feff}say \u{201c}hi\u{201d}\r\n\tkeep  \r\nold\r\nlast";
    let patch = "*** Update File: f.txt\n@@\n say \"hi\"\n \tkeep\n-old\n+new  \n last\n*** End Patch\n";
    let expected = "\u{feff}say \u{201c}hi\u{201d}\r\n\tkeep  \r\nnew  \r\nlast";
    assert_eq!(text(Format::Patch, file, patch).as_deref(), Ok(expected));
}

#[test]
fn new_lines_are_in_the_files_characters() {
    let file = "say(\"one\");\nlog(\"two\");\nend();\n";
    let diff = "@@ @@\n say(“one”);\n-log(“two”);\n+log(“three”);\n+// doesn‘t\n end();\n";
    let expected = "say(\"one\");\nlog(\"three\");\n// doesn't\nend();\n";
    assert_eq!(text(Format::Udiff, file, diff).as_deref(), Ok(expected));
    // What the file has itself stays as it is sent.
    let file = "say(\"one\"); // “quoted”\nend();\n";
    let diff = "@@ @@\n say(\"one\"); // “quoted”  \n+// “more” …\n end();\n";
    let expected = "say(\"one\"); // “quoted”\n// “more” …\nend();\n";
    assert_eq!(text(Format::Udiff, file, diff).as_deref(), Ok(expected));
    // One character for two of the file's: which of them is meant in a new line?
    let file = "a(“one”);\nb(\"two\");\nend();\n";
    let diff = "@@ @@\n a(“one”);\n b(“two”);\n+c(“three”);\n end();\n";
    assert_eq!(text(Format::Udiff, file, diff), Err(vec!["malformed"]));
}

#[test]
fn context_that_is_escaped_is_not_left_out() {
    let file =
        "call(\n    chunk.type && more &&\n    chunk.isEntry &&\n    chunk.moduleId === id,\n) as Output;\n";
    let expected = file.replace("=== id,", "&&\n    normal === id,");
    let diff = "@@ @@\n     chunk.isEntry &amp;&amp;\n-    chunk.moduleId === id,\n+    chunk.moduleId &amp;&amp;\n\
                +    normal === id,\n ) as Output;\n";
    assert_eq!(text(Format::Udiff, file, diff), Ok(expected));
    // Some of it is escaped and some isn't: what of the new line is can't be told.
    let mixed = diff.replace("@@ @@\n", "@@ @@\n     chunk.type && more &&\n");
    assert_eq!(text(Format::Udiff, file, &mixed), Err(vec!["malformed"]));
}

#[test]
fn context_that_is_indented_in_two_ways_places_no_line_that_is_indented_in_a_third() {
    let file = "f() {\n\tprint(\"first\");\n\tprint(\"second\");\n\tfor {\n\t}\n}\n";
    let diff = |new: &str| {
        format!("@@ @@\n   print(\"first\");\n \t print(\"second\");\n+{new}print(\"new\");\n   for {{\n")
    };
    let expected = file.replace("\tfor", "\tprint(\"new\");\n\tfor");
    assert_eq!(text(Format::Udiff, file, &diff("  ")), Ok(expected));
    assert_eq!(text(Format::Udiff, file, &diff("   ")), Err(vec!["guarded_mismatch"]));
}

#[test]
fn escapes_and_a_blank_line_at_the_edge_are_no_reason_to_take_prefixes_for_indentation() {
    let file = "f():\n    config[\"a\"] = b\n    call(\"/\", c)\n\n    end\n";
    let diff = "@@ @@\n     config[\\\"a\\\"] = b\n-    call(\\\"/\\\", c)\n+    call(\n+        \\\"/\\\", c\n+    )\n \n";
    let expected = file.replace("call(\"/\", c)", "call(\n        \"/\", c\n    )");
    assert_eq!(text(Format::Udiff, file, diff), Ok(expected));
}

#[test]
fn context_with_or_without_prefixes_is_refused_where_new_lines_tell_otherwise() {
    // With prefixes all of it is flush left, without them the new line alone is.
    let file = "/**\n * first line here\n *\n * @see this\n */\n";
    let diff = "@@ @@\n * first line here\n *\n+* @see that\n * @see this\n";
    assert_eq!(text(Format::Udiff, file, diff), Err(vec!["malformed"]));
    let diff = diff.replace("+*", "+ *");
    let expected = file.replace(" * @see this", " * @see that\n * @see this");
    assert_eq!(text(Format::Udiff, file, &diff), Ok(expected));
}

#[test]
fn what_is_refused_as_it_stands_is_not_placed_by_a_less_likely_reading() {
    let file = "          url(x),\n        )};`\n\n    done\n";
    let diff = "@@ @@\n )};`\n+      if (more) {\n+        go()\n+      }\n";
    assert_eq!(text(Format::Udiff, file, diff), Err(vec!["guarded_mismatch"]));
}
