//! `jm checkpoints`, `jm diff`, `jm undo --to` and `jm redo`.

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{House, Server, call, is_running, needs_sandbox, polite_edit, say, wait_until};

/// Two runs: one edits a file and adds one, the other one edits the first again.
fn two_runs(house: &House) -> [String; 2] {
    let first = Server::chat([
        call("edit_file", polite_edit()),
        call("write_file", json!({"path": "new/file.txt", "content": "one\ntwo\n"})),
        say("Done."),
    ]);
    let first = first.run(house, &["--json", "--no-check", "be polite"]).run().expect(4).report();
    let second = Server::chat([
        call("read_file", json!({"path": "new/file.txt"})),
        call("write_file", json!({"path": "new/file.txt", "content": "one\n2\n"})),
        say("Done."),
    ]);
    let second = second.run(house, &["--json", "--no-check", "count"]).run().expect(4).report();
    [first.session.to_string(), second.session.to_string()]
}

fn checkpoints(house: &House) -> Vec<Value> {
    let ran = house.jm(&["checkpoints", "--json"]).run().expect(0);
    ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Those that runs began with, newest first.
fn before_runs(house: &House) -> Vec<Value> {
    let mut found = checkpoints(house);
    found.retain(|checkpoint| checkpoint["label"] == "before the run");
    assert_eq!(found.len(), 2, "{found:?}");
    found
}

#[test]
fn checkpoints_are_listed_newest_first_and_can_be_gone_back_to() {
    let house = House::with_greeter();
    let before = house.tree();
    house.jm(&["checkpoints"]).run().expect(0).says(&["no checkpoints yet"]);
    house.jm(&["diff"]).run().expect(1).says(&["there is no checkpoint", "jm run"]);
    house.jm(&["undo", "--to", "1"]).run().expect(1).says(&["there is no checkpoint 1"]);
    let [first, second] = two_runs(&house);
    let after = house.tree();

    let steps = checkpoints(&house);
    assert!(
        steps.iter().any(|checkpoint| checkpoint["label"].as_str().unwrap().starts_with("step 2")),
        "{steps:?}"
    );
    let listed = before_runs(&house);
    assert_eq!([&listed[0]["session"], &listed[1]["session"]], [&json!(second), &json!(first)]);
    for (checkpoint, changes) in listed.iter().zip([1, 1]) {
        assert_eq!((&checkpoint["changes"], &checkpoint["whole"]), (&json!(changes), &json!(true)));
        assert!(checkpoint["at"].as_u64().unwrap() > 1_500_000_000_000);
    }
    let text = house.jm(&["checkpoints"]).run().expect(0).stdout;
    let lines: Vec<&str> = text.lines().collect();
    let (sum, lines) = lines.split_last().unwrap();
    assert_eq!(lines.len(), steps.len());
    assert!(sum.starts_with("kept for undo: ") && sum.ends_with(" of 1.0 GiB"), "{sum}");
    assert!(lines[0].contains("1 change since"), "{text}");
    assert_eq!(lines[0].find(&second), lines[lines.len() - 1].find(&first), "aligned: {text}");
    let short = house.jm(&["checkpoints", "--limit", "1"]).run().expect(0).stdout;
    assert_eq!(short.lines().count(), 2);
    assert!(short.contains("older ones with --limit"), "{short}");

    let [newer, older] = [0, 1].map(|place| listed[place]["id"].to_string());
    let ran = house.jm(&["undo", "--to", &older]).run().expect(0);
    ran.prints(&[
        "restored greet.sh",
        "removed new/file.txt",
        "2 sessions",
        &format!("to checkpoint {older}"),
    ]);
    assert_eq!(house.tree(), before);
    assert!(checkpoints(&house).iter().all(|checkpoint| checkpoint["changes"] == 0), "they are taken back");
    house.jm(&["undo", "--to", &older]).run().expect(1).says(&["nothing was changed since checkpoint"]);
    house.jm(&["redo"]).run().expect(0).prints(&[
        "changed greet.sh",
        "added new/file.txt",
        "done again",
        "jm undo",
    ]);
    assert_eq!(house.tree(), after);
    house.jm(&["redo"]).run().expect(1).says(&["nothing to do again"]);

    let ran = house.jm(&["undo", "--to", &newer]).run().expect(0);
    ran.prints(&["restored new/file.txt", &format!("session {second}")]);
    assert_eq!(house.read("new/file.txt"), "one\ntwo\n");
}

#[test]
fn redo_keeps_what_was_changed_since_the_undo() {
    let house = House::with_greeter();
    two_runs(&house);
    house.jm(&["undo"]).run().expect(0);
    house.jm(&["undo"]).run().expect(0).prints(&["jm redo"]);
    house.write("greet.sh", "mine\n");
    let ran = house.jm(&["redo"]).run().expect(1);
    ran.prints(&["kept greet.sh: it was changed after the undo", "added new/file.txt", "1 file done again"]);
    assert_eq!(house.read("greet.sh"), "mine\n");
}

#[test]
fn diffs_are_told_between_checkpoints_and_the_files_as_they_are() {
    let house = House::with_greeter();
    two_runs(&house);
    let ids: Vec<String> = before_runs(&house).iter().rev().map(|listed| listed["id"].to_string()).collect();
    house.write("by-hand\nodd", "mine\n");

    // The newest run's first checkpoint: what it changed, and what the user did.
    let ran = house.jm(&["diff"]).run().expect(0);
    ran.prints(&["-two\n", "+2\n", "+mine\n"]);
    assert!(!ran.stdout.contains("greet.sh"), "{}", ran.stdout);
    house.jm(&["diff", &ids[0]]).run().expect(0).prints(&["greet.sh", "+2\n", "+mine\n"]);
    let between = house.jm(&["diff", &ids[0], &ids[1]]).run().expect(0).stdout;
    assert!(
        between.contains("+two\n") && !between.contains("+2\n") && !between.contains("mine"),
        "{between}"
    );
    // Backwards too.
    house.jm(&["diff", &ids[1], &ids[0]]).run().expect(0).prints(&["-two\n", "deleted file mode"]);

    let stat = house.jm(&["diff", &ids[0], "--stat"]).run().expect(0).stdout;
    let expected = [
        " by-hand\\nodd |   1 + (new)",
        " greet.sh     |   2 +-",
        " new/file.txt |   2 ++ (new)",
        " 3 files differ, 4 lines added, 1 removed",
    ];
    assert_eq!(stat.lines().collect::<Vec<_>>(), expected);

    let ran = house.jm(&["diff", &ids[0], &ids[1], "--json"]).run().expect(0);
    let object: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(
        (&object["added"], &object["removed"], &object["truncated"]),
        (&json!(3), &json!(1), &json!(false))
    );
    assert_eq!(object["diff"], between);
    let file = json!({"path": "new/file.txt", "kind": "added", "added": 2, "removed": 0, "binary": false});
    assert_eq!(object["files"][1], file);
    house.jm(&["diff", "9999"]).run().expect(1).says(&["there is no checkpoint 9999"]);
    house.jm(&["diff", "x"]).run().expect(2);
}

#[test]
fn a_session_at_work_is_not_undone_beneath() {
    if !needs_sandbox() {
        return;
    }
    let sleep = format!("sleep 947.{}", std::process::id());
    let house = House::with_greeter();
    two_runs(&house);
    let server = Server::chat([call("run_command", json!({ "command": sleep })), say("Done.")]);
    let running = server.run(&house, &["--no-check", "wait"]).start();
    wait_until("the command runs", || is_running(&sleep));
    let before = house.tree();
    let oldest = checkpoints(&house).last().unwrap()["id"].to_string();
    for arguments in [&["undo", "--to", &oldest][..], &["redo"]] {
        house.jm(arguments).run().expect(2).says(&["is still running", "Stop it first"]);
    }
    assert_eq!(house.tree(), before);
    // What can only be looked at can be.
    house.jm(&["diff"]).run().expect(0);
    running.signal(Signal::KILL);
    running.gone();
    wait_until("the command is gone", || !is_running(&sleep));
    house.jm(&["undo", "--to", &oldest]).run().expect(0);
    assert!(!house.project().join("new/file.txt").exists());
}

#[test]
fn what_a_label_or_a_name_says_to_a_terminal_isnt_said() {
    let house = House::with_greeter();
    let name = "evil\u{1b}]0;title\u{7}.txt";
    two_runs(&house);
    house.write(name, "x\u{1b}[31m\n");
    let oldest = checkpoints(&house).last().unwrap()["id"].to_string();
    for arguments in [&["diff"][..], &["diff", "--stat"], &["checkpoints"], &["diff", "--json"]] {
        let ran = house.jm(arguments).run().expect(0);
        assert!(
            !ran.stdout.contains('\u{1b}') && !ran.stdout.contains('\u{7}'),
            "{arguments:?}: {}",
            ran.stdout
        );
    }
    house.jm(&["undo", "--to", &oldest]).run().expect(0);
    assert!(house.project().join(name).exists(), "the user's own file stays");
}

#[test]
fn help_teaches() {
    let house = House::new();
    for (command, words) in [
        ("undo", &["--to", "jm undo --to 12", "jm redo"][..]),
        ("redo", &["jm undo && jm redo"]),
        ("checkpoints", &["--json", "--limit", "jm undo --to 12", "1 GiB"]),
        ("diff", &["--stat", "--json", "jm diff 12 15 --stat", "git apply"]),
    ] {
        house.jm(&[command, "--help"]).run().expect(0).prints(words);
    }
}
