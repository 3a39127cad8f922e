//! Stale changes are refused with the difference, and the session's own changes are recognised.

use crate::bench;

use std::sync::Arc;

use bench::Bench;
use journeyman_protocol::{ContentHash, RelPath};
use journeyman_tools::{SeenFile, SeenFiles, SeenStatus};
use serde_json::json;

fn rel(path: &str) -> RelPath {
    RelPath::parse(path).unwrap()
}

fn hash(text: &str) -> ContentHash {
    ContentHash::of(text.as_bytes())
}

fn lines(count: usize, what: &str) -> String {
    (0..count).map(|line| format!("{what} {line}\n")).collect()
}

fn edit(bench: &Bench, path: &str, search: &str, replace: &str) -> String {
    bench.say("edit_file", json!({"path": path, "search": search, "replace": replace}))
}

#[test]
fn a_stale_edit_is_refused_once_with_what_changed() {
    let bench = Bench::new(&[("a", b"one\ntwo\nthree\n")]);
    bench.say("read_file", json!({"path": "a"}));
    std::fs::write(bench.root.join("a"), "one\n2\nthree\n").unwrap();
    let said = edit(&bench, "a", "three", "3");
    assert_eq!(
        said,
        "error: somebody else has changed `a` since you read it, so your change was not made. This is what \
         changed; send the call again if it is still right:\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n"
    );
    assert!(edit(&bench, "a", "three", "3").starts_with("Edited a"));
    assert_eq!(bench.file("a"), b"one\n2\n3\n");
    assert_eq!(bench.say("write_file", json!({"path": "a", "content": "x\n"})), "Replaced a (1 lines)");
}

#[test]
fn a_long_difference_is_cut_and_the_file_has_to_be_read() {
    let bench = Bench::new(&[("a", lines(400, "old").as_bytes())]);
    bench.say("read_file", json!({"path": "a"}));
    std::fs::write(bench.root.join("a"), lines(400, "new")).unwrap();
    for _ in 0..2 {
        let said = edit(&bench, "a", "new 7\n", "7\n");
        assert!(
            said.contains("Read it again with read_file. This is the beginning of what changed:\n@@"),
            "{said}"
        );
        assert!(said.len() < 2_400 && said.contains("\n[and ") && said.ends_with(" more lines]\n"), "{said}");
    }
    bench.say("read_file", json!({"path": "a"}));
    assert!(edit(&bench, "a", "new 7\n", "7\n").starts_with("Edited a"));
}

#[test]
fn a_text_that_is_no_longer_held_comes_from_what_the_workspace_keeps_or_is_done_without() {
    for kept in [true, false] {
        let bench = Bench::new(&[("a", b"one\n")]);
        bench.say("read_file", json!({"path": "a"}));
        if kept {
            bench.context.workspace.checkpoint(&bench.context.session, "kept").unwrap();
        }
        let resumed = SeenFiles::default();
        resumed.restore(bench.context.seen.entries());
        let mut bench = bench;
        bench.context.seen = Arc::new(resumed);
        std::fs::write(bench.root.join("a"), "two\n").unwrap();
        let said = edit(&bench, "a", "two", "2");
        if kept {
            assert!(said.ends_with("still right:\n@@ -1 +1 @@\n-one\n+two\n"), "{said}");
        } else {
            assert!(said.ends_with("so your change was not made. Read it again with read_file"), "{said}");
        }
    }
}

#[test]
fn a_file_that_somebody_removed_is_not_made_again_unasked() {
    let bench = Bench::new(&[("a", b"one\n"), ("b", b"one\n")]);
    bench.say("read_file", json!({"path": "a"}));
    bench.say("read_file", json!({"path": "b"}));
    std::fs::remove_file(bench.root.join("a")).unwrap();
    let write = |path: &str| bench.say("write_file", json!({"path": path, "content": "x\n"}));
    assert!(write("a").starts_with("error: somebody else has removed `a` since you read it"));
    assert_eq!(write("a"), "Created a (1 lines)");
    bench.say("run_command", json!({"command": "rm b"}));
    assert_eq!(write("b"), "Created b (1 lines)");
}

#[test]
fn what_a_command_of_the_session_changed_is_its_own_and_unseen() {
    let bench = Bench::new(&[("a", b"one\n"), ("b", b"one\n"), ("unseen", b"one\n")]);
    std::os::unix::fs::symlink("a", bench.root.join("link")).unwrap();
    for path in ["a", "b", "link"] {
        bench.say("read_file", json!({ "path": path }));
    }
    drop(bench.context.seen.take_changes());
    bench.say("run_command", json!({"command": "echo two >> a; rm b; echo two > unseen"}));
    let entry = |path: &str, seen: &str, known: Option<&str>| SeenFile {
        path: rel(path),
        seen: hash(seen),
        known: known.map(hash),
        outside: false,
    };
    let two = "one\ntwo\n";
    let expected =
        [entry("a", "one\n", Some(two)), entry("b", "one\n", None), entry("link", "one\n", Some(two))];
    assert_eq!(bench.context.seen.take_changes(), expected);
    assert_eq!(bench.context.seen.take_changes(), []);
    assert_eq!(bench.context.seen.compare(&rel("a"), &hash(two)), SeenStatus::ChangedByUs);
    // A whole file is only replaced by who knows it; a quoted text has to be there anyway.
    let said = bench.say("write_file", json!({"path": "a", "content": "x"}));
    assert!(
        said.starts_with("error: a command of yours has changed `a`") && said.contains("\n+two\n"),
        "{said}"
    );
    bench.context.seen.restore(expected.clone());
    assert!(edit(&bench, "a", "two", "2").starts_with("Edited a"));
    let now = "one\n2\n";
    let after = [entry("a", "one\n", Some(now)), entry("link", "one\n", Some(now))];
    assert_eq!(bench.context.seen.take_changes(), after, "the model saw two lines of it only");
}

#[test]
fn entries_come_back_from_a_log() {
    let seen = SeenFiles::default();
    seen.record(rel("b"), hash("1"));
    seen.record(rel("a"), hash("1"));
    seen.note_external_change(&rel("a"), Some(hash("2")));
    seen.note_written(&rel("b"), Some(hash("3")));
    seen.note_written(&rel("unknown"), Some(hash("3")));
    let log = serde_json::to_string(&seen.take_changes()).unwrap();
    let again = SeenFiles::default();
    again.restore(serde_json::from_str::<Vec<SeenFile>>(&log).unwrap());
    assert_eq!(again.entries(), seen.entries());
    assert_eq!(again.take_changes(), []);
    let sights = [("a", "1"), ("a", "2"), ("b", "3"), ("b", "4"), ("c", "1")];
    let expected = [
        SeenStatus::Current,
        SeenStatus::Changed,
        SeenStatus::ChangedByUs,
        SeenStatus::Changed,
        SeenStatus::Never,
    ];
    assert_eq!(sights.map(|(path, text)| again.compare(&rel(path), &hash(text))), expected);
    seen.record(rel("a"), hash("1"));
    assert_eq!(seen.take_changes().len(), 1, "seen again is known again");
    seen.record(rel("a"), hash("1"));
    assert_eq!(seen.take_changes(), []);
}

#[test]
fn the_least_recently_used_are_forgotten() {
    let seen = SeenFiles::default();
    for nth in 0..5_000 {
        seen.record_text(rel(&format!("f{nth}")), hash("1"), &"x".repeat(1_000));
        assert_eq!(seen.compare(&rel("f0"), &hash("1")), SeenStatus::Current);
    }
    assert_eq!(seen.entries().len(), 4_096);
    assert_eq!(seen.compare(&rel("f1"), &hash("1")), SeenStatus::Never);
}
