//! `jm apply`: a reply's edits land together or not at all, can be taken back, and what went wrong
//! is said.

use serde_json::{Value, json};

use crate::support::{House, Ran};

fn apply(house: &House, flags: &[&str], reply: &str) -> Ran {
    house.jm(&[&["apply"], flags].concat()).input(reply).run()
}

fn object(ran: &Ran) -> Value {
    serde_json::from_str(&ran.stdout)
        .unwrap_or_else(|error| panic!("{error}\n{}\n{}", ran.stdout, ran.stderr))
}

fn block(path: &str, search: &str, replace: &str) -> String {
    format!(
        "<edit>\n<file>{path}</file>\n<search>\n{search}\n</search>\n<replace>\n{replace}\n</replace>\n</edit>\n"
    )
}

#[test]
fn a_reply_is_applied_and_taken_back() {
    let house = House::new();
    house.write("a.txt", "one\r\ntwo\r\n");
    house.write("b.txt", "kept\n");
    let before = house.tree();
    let reply = format!(
        "Two things.\n\n{}{}",
        block("a.txt", "two", "2"),
        "<edit>\n<file>new/c.txt</file>\n<replace>\nmade\n</replace>\n</edit>\n"
    );
    let ran = apply(&house, &[], &reply).expect(0);
    ran.prints(&["created new/c.txt", "changed a.txt (line 2, "]);
    assert_eq!(house.read("a.txt"), "one\r\n2\r\n");
    assert_eq!(house.read("new/c.txt"), "made\n");
    house.jm(&["undo"]).run().expect(0);
    assert_eq!(house.tree(), before);
    house.jm(&["redo"]).run().expect(0);
    assert_eq!(house.read("a.txt"), "one\r\n2\r\n");
}

#[test]
fn a_dry_run_shows_and_writes_nothing() {
    let house = House::new();
    house.write("a.txt", "one\ntwo\n");
    let before = house.tree();
    let ran = apply(&house, &["--dry-run"], &block("a.txt", "two", "2")).expect(0);
    ran.prints(&["-two", "+2"]);
    assert_eq!(house.tree(), before);
    house.jm(&["undo"]).run().expect(1);
}

#[test]
fn one_that_fails_stops_all_unless_a_part_is_wished_for() {
    let house = House::new();
    house.write("a.txt", "one\ntwo\n");
    house.write("b.txt", "same\nsame\n");
    let before = house.tree();
    let reply = block("a.txt", "two", "2") + &block("b.txt", "same", "other");
    let ran = apply(&house, &[], &reply).expect(1);
    ran.says(&["refused: b.txt", "lines 1 and 2", "nothing was written", "--partial"]);
    assert_eq!(house.tree(), before);
    let ran = apply(&house, &["--partial", "--json"], &reply).expect(3);
    let said = object(&ran);
    assert_eq!(said["applied"][0]["path"], json!("a.txt"));
    assert_eq!(said["applied"][0]["kind"], json!("modify"));
    assert_eq!(said["applied"][0]["method"], json!("exact"));
    assert_eq!(said["applied"][0]["lines"], json!([2]));
    assert_eq!(said["failed"][0]["path"], json!("b.txt"));
    assert_eq!(said["failed"][0]["kind"], json!("ambiguous"));
    assert_eq!((house.read("a.txt").as_str(), house.read("b.txt").as_str()), ("one\n2\n", "same\nsame\n"));
}

#[test]
fn a_failure_tells_where_to_look() {
    let house = House::new();
    house.write("a.rs", "fn main() {\n    let timeout = 100;\n    run(timeout);\n}\n");
    let reply = block("a.rs", "    let timeout = 10;\n    run(timeout);", "    run(20);");
    let said = object(&apply(&house, &["--json"], &reply).expect(1));
    let failed = &said["failed"][0];
    let words = failed["reason"].as_str().unwrap_or_default();
    assert!(words.contains("timeout = 100"), "{words}");
    assert!(words.len() <= 2_600, "{}", words.len());
    assert_eq!(said["applied"], json!([]));
}

#[test]
fn what_is_there_already_is_no_failure() {
    let house = House::new();
    house.write("a.txt", "one\nthe second line\n");
    let reply = block("a.txt", "two", "the second line");
    let said = object(&apply(&house, &["--json"], &reply).expect(0));
    assert_eq!(said["unchanged"][0]["path"], json!("a.txt"));
    assert_eq!((&said["applied"], &said["failed"]), (&json!([]), &json!([])));
}

#[test]
fn guarded_and_outside_files_are_refused() {
    let house = House::with_repository();
    let before = house.tree();
    for path in [".git/hooks/pre-commit", ".vscode/tasks.json", "sub/.envrc", ".git/config"] {
        let reply = format!("<edit>\n<file>{path}</file>\n<replace>\nevil\n</replace>\n</edit>\n");
        apply(&house, &[], &reply).expect(1);
        assert_eq!(house.tree(), before, "{path}");
    }
    let outside = "<edit>\n<file>../outside</file>\n<replace>\nevil\n</replace>\n</edit>\n";
    apply(&house, &[], outside).expect(1).says(&["nothing was written"]);
    assert!(!house.project().with_file_name("outside").exists());
}

#[test]
fn the_callers_path_stands_for_one_that_is_not_there() {
    let house = House::new();
    house.write("src/real.txt", "one\n");
    let reply = block("made/up.txt", "one", "1");
    apply(&house, &["--path", "src/real.txt"], &reply).expect(0);
    assert_eq!(house.read("src/real.txt"), "1\n");
    apply(&house, &["--path", "../up"], &reply).expect(2).says(&["--path ../up"]);
}

#[test]
fn bad_input_is_a_usage_error() {
    let house = House::new();
    apply(&house, &[], "").expect(2).says(&["no reply on standard input"]);
    apply(&house, &["--format", "nonsense"], "x").expect(2).says(&["possible values"]);
    house.jm(&["apply"]).input(b"\xff\xfe<edit>").run().expect(2).says(&["isn't UTF-8"]);
    apply(&house, &[], "Only words, nothing to do.\n").expect(1).says(&["no edit"]);
}

#[test]
fn a_block_that_is_cut_off_is_never_applied() {
    let house = House::new();
    house.write("a.txt", "one\ntwo\n");
    let whole = block("a.txt", "one", "1") + &block("a.txt", "two", "2");
    let cut = whole.rfind("</replace>").unwrap();
    let before = house.tree();
    apply(&house, &["--cut-off"], &whole[..cut]).expect(1);
    assert_eq!(house.tree(), before);
    apply(&house, &["--cut-off", "--partial"], &whole[..cut]).expect(3);
    assert_eq!(house.read("a.txt"), "1\ntwo\n");
}
