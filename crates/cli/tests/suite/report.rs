//! `jm show --evidence` and `jm report`.

use rustix::process::Signal;
use serde_json::Value;

use crate::support::{House, Server, Step, call, needs_sandbox, polite_edit, say};

/// A run that a check of the user's verifies.
fn verified_run(house: &House) {
    let server = Server::chat([call("edit_file", polite_edit()), say("Done.")]);
    server.run(house, &["--check", "sh -n greet.sh", "make the greeting polite"]).run().expect(0);
}

#[test]
fn evidence_names_the_tree_and_says_if_it_has_changed() {
    if !needs_sandbox() {
        return;
    }
    let house = House::with_greeter();
    verified_run(&house);
    let shown = house.jm(&["show", "--evidence"]).run().expect(0);
    shown.prints(&[
        "round 1, the final one\n",
        "passed   check     sh -n greet.sh",
        "the files are as they were then",
    ]);
    let json = house.jm(&["show", "--evidence", "--json"]).run().expect(0);
    let ledger: Value = serde_json::from_str(&json.stdout).unwrap();
    let check = &ledger["tasks"][0]["rounds"][0]["checks"][0];
    assert_eq!((&check["command"], &check["tree"]), (&"sh -n greet.sh".into(), &ledger["proof"]["tree"]));
    assert_eq!(house.sessions()[0]["changed_since"], false);
    house.write("greet.sh", "echo changed by hand\n");
    assert_eq!(house.sessions()[0]["changed_since"], true);
    house.jm(&["sessions"]).run().expect(0).prints(&["(the files have changed since)"]);
    house.jm(&["show", "--evidence"]).run().expect(0).prints(&["verified, but the tree has changed since"]);
    house.jm(&["show"]).run().expect(0).prints(&["verified, but the tree has changed since"]);
}

#[test]
fn the_proof_holds_while_the_next_task_is_cut_off() {
    if !needs_sandbox() {
        return;
    }
    let house = House::with_greeter();
    verified_run(&house);
    let server = Server::chat([Step::Stall]);
    let running = server.command(&house, &["resume"], &["--last", "look around"]).start();
    server.wait_for(1);
    running.signal(Signal::KILL);
    running.gone();
    let wanted = ["erified, and the files are as they were then"];
    house.jm(&["show", "--evidence"]).run().expect(0).prints(&wanted);
    house.jm(&["report"]).run().expect(0).prints(&wanted);
}

#[test]
fn a_report_is_markdown_or_sarif_in_a_new_file() {
    if !needs_sandbox() {
        return;
    }
    let house = House::with_greeter();
    verified_run(&house);
    house.jm(&["report"]).run().expect(0).prints(&[
        "# make the greeting polite\n",
        "- `greet.sh` modified",
        "| `sh -n greet.sh` | passed |",
        "## Undo\n",
    ]);
    house.jm(&["report", "--sarif", "-o", "left.sarif"]).run().expect(0);
    let text = std::fs::read_to_string(house.project().join("left.sarif")).unwrap();
    let sarif: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        (&sarif["version"], sarif["runs"][0]["results"].as_array().unwrap().len()),
        (&"2.1.0".into(), 0)
    );
    let again = house.jm(&["report", "-o", "left.sarif"]).run();
    assert_ne!(again.code(), 0);
    again.says(&["left.sarif (give a new file)"]);
}
