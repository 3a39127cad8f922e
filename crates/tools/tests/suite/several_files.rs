//! The tools that change several files, or whole ones: patches, symbols, deletions, moves.

use crate::bench;

use bench::Bench;
use journeyman_workspace::UndoTarget;
use serde_json::json;

const RUST: &[u8] = b"/// Adds.\nfn add(a: u8) -> u8 {\n    a + 1\n}\n\nfn main() {\n    add(1);\n}\n";

fn bench() -> Bench {
    Bench::new(&[
        ("src/a.rs", RUST),
        ("crlf.txt", b"one\r\ntwo\r\n"),
        ("old.txt", b"old\n"),
        ("logo.bin", b"\0\x01\xff"),
    ])
}

const PATCH: &str = "*** Begin Patch
*** Update File: src/a.rs
@@ fn add(a: u8) -> u8 {
-    a + 1
+    a + 2
*** Update File: crlf.txt
*** Move to: docs/crlf.txt
@@
 one
-two
+three
*** Delete File: old.txt
*** Add File: new.txt
+fresh
*** End Patch
";

#[test]
fn a_patch_changes_all_its_files_in_one_step_that_can_be_undone() {
    let bench = bench();
    let before = bench.file("src/a.rs");
    let said = bench.say("apply_patch", json!({"patch": PATCH, "why": "two is right"}));
    assert_eq!(
        said,
        "Created new.txt\nEdited src/a.rs\nEdited crlf.txt, now docs/crlf.txt\n\
         line 2 didn't match exactly; placed by line endings: no exact match; placed by line endings\n\
         Deleted old.txt\n"
    );
    assert_eq!(bench.file("docs/crlf.txt"), b"one\r\nthree\r\n", "line endings stay");
    assert_eq!(bench.file("new.txt"), b"fresh\n");
    assert!(!bench.root.join("old.txt").exists() && !bench.root.join("crlf.txt").exists());
    bench.context.workspace.undo(UndoTarget::LastRun).unwrap();
    assert_eq!(bench.file("src/a.rs"), before);
    assert_eq!(bench.file("old.txt"), b"old\n");
    assert!(!bench.root.join("new.txt").exists());
}

#[test]
fn a_patch_with_a_hunk_that_has_no_place_changes_nothing() {
    let bench = bench();
    let patch = PATCH.replace("-    a + 1", "-    a * 7 - q");
    let said = bench.say("apply_patch", json!({ "patch": patch }));
    assert!(said.starts_with("error: nothing was changed. ") && said.contains("src/a.rs"), "{said}");
    assert!(said.len() < 4_000, "{}", said.len());
    assert_eq!(bench.file("old.txt"), b"old\n");
    assert!(!bench.root.join("new.txt").exists());
    let taken = "*** Begin Patch\n*** Update File: old.txt\n*** Move to: crlf.txt\n*** End Patch\n";
    let said = bench.say("apply_patch", json!({ "patch": taken }));
    assert!(said.contains("there is a file already"), "{said}");
    let reused = "*** Begin Patch\n*** Delete File: crlf.txt\n*** Update File: old.txt\n*** Move to: crlf.txt\n\
                  *** End Patch\n";
    bench.say("apply_patch", json!({ "patch": reused }));
    assert_eq!(bench.file("crlf.txt"), b"old\n", "a path that the patch frees may be used");
}

#[test]
fn files_that_somebody_else_changed_are_not_patched_deleted_or_moved() {
    let bench = bench();
    for path in ["old.txt", "src/a.rs"] {
        bench.say("read_file", json!({ "path": path }));
    }
    std::fs::write(bench.root.join("old.txt"), "changed\n").unwrap();
    let patch = "*** Begin Patch\n*** Delete File: old.txt\n*** End Patch\n";
    let calls = [
        ("apply_patch", json!({ "patch": patch })),
        ("delete_file", json!({"path": "old.txt"})),
        ("move_file", json!({"path": "old.txt", "to": "x"})),
    ];
    for (tool, input) in calls {
        // Each time somebody changes it again, because the refusal shows the change.
        std::fs::write(bench.root.join("old.txt"), format!("changed before {tool}\n")).unwrap();
        let said = bench.say(tool, input);
        assert!(said.contains("somebody else has changed `old.txt`"), "{tool}: {said}");
    }
    assert!(bench.root.join("old.txt").exists());
}

#[test]
fn a_symbol_is_edited_by_its_name() {
    let cases = [
        (
            json!({"action": "replace", "content": "fn add(a: u8) -> u8 {\n    a + 9\n}"}),
            "/// Adds.\nfn add(a: u8) -> u8 {\n    a + 9\n}\n\nfn main",
        ),
        (json!({"action": "insert_after", "content": "fn sub() {}"}), "a + 1\n}\n\nfn sub() {}\n\nfn main"),
        (
            json!({"action": "rename", "content": "plus"}),
            "fn plus(a: u8) -> u8 {\n    a + 1\n}\n\nfn main() {\n    plus(1);",
        ),
    ];
    for (input, expected) in cases {
        let bench = bench();
        let mut input = input;
        input["path"] = json!("src/a.rs");
        input["symbol"] = json!("add");
        let said = bench.say("edit_symbol", input.clone());
        assert!(said.starts_with("Edited src/a.rs\n"), "{said}");
        let text = String::from_utf8(bench.file("src/a.rs")).unwrap();
        assert!(text.contains(expected), "{input}: {text}");
    }
    let bench = bench();
    let said = bench.say("edit_symbol", json!({"path": "src/a.rs", "symbol": "ad", "action": "delete"}));
    assert!(said.contains("add"), "a near name is told: {said}");
    let said = bench.say("edit_symbol", json!({"path": "src/b.rs", "symbol": "add", "action": "delete"}));
    assert!(said.contains("`src/b.rs` doesn't exist"), "{said}");
}

#[test]
fn files_are_deleted_and_moved_whatever_is_in_them() {
    let bench = bench();
    assert_eq!(
        bench.say("move_file", json!({"path": "logo.bin", "to": "img/logo.bin"})),
        "Moved logo.bin to img/logo.bin"
    );
    assert_eq!(bench.file("img/logo.bin"), b"\0\x01\xff");
    assert_eq!(bench.say("delete_file", json!({"path": "img/logo.bin"})), "Deleted img/logo.bin");
    assert!(!bench.root.join("img/logo.bin").exists());
    let refused =
        [(json!({"path": "src"}), "is a directory"), (json!({"path": "nothing"}), "`nothing` doesn't exist")];
    for (input, expected) in refused {
        let said = bench.say("delete_file", input);
        assert!(said.starts_with("error: ") && said.contains(expected), "{said}");
    }
    let said = bench.say("move_file", json!({"path": "old.txt", "to": "crlf.txt"}));
    assert!(said.starts_with("error: "), "nothing is overwritten: {said}");
    assert_eq!(bench.file("crlf.txt"), b"one\r\ntwo\r\n");
    // What was read is known under its new name, so that it may be replaced.
    bench.say("read_file", json!({"path": "old.txt"}));
    bench.say("move_file", json!({"path": "old.txt", "to": "new.txt"}));
    assert_eq!(
        bench.say("write_file", json!({"path": "new.txt", "content": "x\n"})),
        "Replaced new.txt (1 lines)"
    );
}

#[test]
fn several_files_are_read_in_one_call_within_one_bound() {
    let long: String = (1..=9_000).map(|line| format!("line {line}\n")).collect();
    let bench = Bench::new(&[("a", b"one\n"), ("b", long.as_bytes()), ("c", b"three\n"), ("bin", b"\0")]);
    let said = bench.say("read_file", json!({"paths": ["a", "nope", "bin", "c"]}));
    assert_eq!(
        said,
        "== a ==\n1\tone\n== nope ==\nerror: `nope` doesn't exist\n== bin ==\nerror: `bin` is binary (1 bytes), so \
         it can't be shown or edited as text; a command can look into it\n== c ==\n1\tthree\n"
    );
    let many: Vec<String> = std::iter::repeat_n("b".to_owned(), 3).chain(["c".to_owned()]).collect();
    let said = bench.say("read_file", json!({ "paths": many }));
    assert!(said.contains("go on with offset") && said.ends_with("== c ==\n1\tthree\n"), "{}", said.len());
    let failed = bench.call("read_file", json!({"paths": ["x", "y"]})).unwrap();
    assert!(failed.is_error, "nothing was read");
}

#[test]
fn the_reason_of_an_edit_is_kept_with_the_checkpoint_before_it() {
    let bench = bench();
    let workspace = &bench.context.workspace;
    workspace.checkpoint(&bench.context.session, "before").unwrap();
    let edits = [
        ("edit_file", json!({"path": "old.txt", "search": "old", "replace": "young", "why": "it was old"})),
        ("write_file", json!({"path": "fresh", "content": "x", "why": "needed"})),
        ("delete_file", json!({"path": "crlf.txt", "why": "unused ".repeat(400)})),
        ("move_file", json!({"path": "logo.bin", "to": "l.bin"})),
    ];
    for (tool, input) in edits {
        bench.say(tool, input);
    }
    let kept = workspace.checkpoints().unwrap().remove(0);
    assert_eq!(kept.changes, 4);
    assert_eq!(kept.descriptions[..2], ["it was old", "needed"]);
    assert_eq!(kept.descriptions.len(), 3);
    assert_eq!(kept.descriptions[2].len(), journeyman_workspace::limits::MAX_DESCRIPTION_BYTES);
}
