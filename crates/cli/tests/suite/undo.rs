//! `jm undo`.

use rustix::process::Signal;
use serde_json::json;

use crate::support::{House, Server, call, is_running, needs, needs_sandbox, polite_edit, say, wait_until};

/// A run that edits one file, adds one, and changes and adds one each by a command.
fn busy_run(house: &House) -> String {
    let command = "echo more >> log.txt && mkdir made && echo x > made/by-command.txt";
    let server = Server::chat([
        call("edit_file", polite_edit()),
        call("write_file", json!({"path": "new/file.txt", "content": "new\n"})),
        call("run_command", json!({ "command": command })),
        say("All done."),
    ]);
    let report = server.run(house, &["--json", "--no-check", "do things"]).run().expect(4).report();
    assert_eq!(report.changes.len(), 4, "{:?}", report.changes);
    report.session.to_string()
}

#[test]
fn everything_that_a_run_changed_is_as_it_was() {
    if !needs(&["git"]) {
        return;
    }
    let house = House::with_repository();
    house.write("log.txt", "line\r\nno line end");
    let before = house.tree();
    busy_run(&house);
    assert_ne!(house.tree(), before);

    let ran = house.jm(&["undo"]).run().expect(0);
    ran.prints(&[
        "restored greet.sh",
        "restored log.txt",
        "removed new/file.txt",
        "removed made/by-command.txt",
        "4 files taken back",
    ]);
    assert_eq!(house.tree(), before);
    assert!(!house.project().join("new").exists(), "directories that were made for it go too");
    assert_eq!(house.git(&["status", "--porcelain"]), "?? log.txt\n");

    let again = house.jm(&["undo"]).run();
    assert_ne!(again.code(), 0);
    again.says(&["no run has changes to take back"]);
    assert_eq!(house.tree(), before);
}

#[test]
fn what_the_user_changed_since_is_kept() {
    if !needs_sandbox() {
        return;
    }
    let house = House::with_greeter();
    house.write("log.txt", "line\n");
    busy_run(&house);
    let mine = format!("{}# mine\n", house.read("greet.sh"));
    house.write("greet.sh", &mine);
    let ran = house.jm(&["undo"]).run().expect(1);
    ran.prints(&["kept greet.sh", "restored log.txt", "removed new/file.txt"]);
    assert_eq!(house.read("greet.sh"), mine);
    assert_eq!(house.read("log.txt"), "line\n");
}

#[test]
fn a_session_is_named_by_its_beginning_from_anywhere() {
    if !needs_sandbox() {
        return;
    }
    let house = House::with_greeter();
    house.write("log.txt", "line\n");
    let before = house.tree();
    let session = busy_run(&house);
    let ran = house.jm(&["undo", &session[..14]]).dir(house.at("home")).run().expect(0);
    ran.prints(&[&session]);
    assert_eq!(house.tree(), before);
}

#[test]
fn nothing_to_undo_is_said() {
    let house = House::with_greeter();
    let before = house.tree();
    let ran = house.jm(&["undo"]).run();
    assert!([1, 2].contains(&ran.code()), "{}", ran.code());
    ran.says(&["error", "no run has changes to take back"]);
    let ran = house.jm(&["undo", "zzz"]).run().expect(2);
    ran.says(&["`zzz`"]);
    assert_eq!(house.tree(), before);
}

#[test]
fn the_newest_run_goes_first_then_the_one_before() {
    let house = House::with_greeter();
    let first = house.tree();
    let mut trees = vec![first];
    for number in ["one", "two"] {
        let write = call("write_file", json!({"path": format!("{number}.txt"), "content": number}));
        let server = Server::chat([write, say("There.")]);
        server.run(&house, &["--no-check", number]).run().expect(4);
        trees.push(house.tree());
    }
    for expected in trees.iter().rev().skip(1) {
        house.jm(&["undo"]).run().expect(0);
        assert_eq!(house.tree(), *expected);
    }
}

#[test]
fn a_fork_that_was_not_opened_is_no_run() {
    if !needs_sandbox() {
        return;
    }
    let house = House::with_greeter();
    house.write("log.txt", "line\n");
    let before = house.tree();
    let session = busy_run(&house);
    house.jm(&["fork", "last"]).run().expect(0);
    house.jm(&["undo"]).run().expect(0).prints(&[&session]);
    assert_eq!(house.tree(), before);
}

#[test]
fn what_a_check_that_was_cut_off_left_goes_back_too() {
    if !needs_sandbox() {
        return;
    }
    let sleep = format!("sleep 941.{}", std::process::id());
    let house = House::with_greeter();
    let before = house.tree();
    let write = call("write_file", json!({"path": "new.txt", "content": "new\n"}));
    let server = Server::chat([write, say("Done.")]);
    let check = format!("echo x > left.txt; {sleep}");
    let running = server.run(&house, &["--check", &check, "make a file"]).start();
    wait_until("the check runs", || is_running(&sleep));
    running.signal(Signal::KILL);
    running.gone();
    wait_until("the check is gone", || !is_running(&sleep));
    house.jm(&["undo"]).run().expect(0).prints(&["removed new.txt", "removed left.txt"]);
    assert_eq!(house.tree(), before);
    house.jm(&["undo"]).run().expect(1).says(&["no run has changes to take back"]);
}
