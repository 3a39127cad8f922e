//! Plans on the command line: made, shown, edited, carried out.

use journeyman_protocol::{RelPath, RunOutcome};
use serde_json::{Value, json};

use crate::support::{House, Person, Server, call, say};

fn plan() -> Value {
    json!({ "plan": {
        "strategy": "One file after the other.",
        "steps": [{ "what": "Write the first.", "files": ["one.txt"] }],
        "checks": ["sh check.sh"],
        "questions": ["Is that its name?"],
    } })
}

#[test]
fn a_plan_is_made_shown_edited_and_carried_out() {
    let house = House::with_greeter();
    let before = house.tree();
    let server = Server::chat([
        call("complete_task", plan()),
        say("")
            .and("write_file", json!({ "path": "one.txt", "content": "1\n" }))
            .and("write_file", json!({ "path": "other.txt", "content": "2\n" })),
        say("Done."),
    ]);
    let made = server.command(&house, &["plan"], &["write it everywhere"]).run().expect(11);
    made.prints(&[
        "1. Write the first.",
        "files: one.txt",
        "planned: 1 step, a question; nothing was changed",
    ]);
    assert_eq!(house.tree(), before);
    let shown = house.jm(&["plan", "show"]).run().expect(0);
    shown.prints(&["write it everywhere", "One file after the other.", "Questions:\n- Is that its name?"]);
    shown.says(&["jm run --plan="]);

    let toml = house.jm(&["plan", "show", "--toml"]).run().expect(0).stdout;
    assert!(toml.contains("strategy = \"One file after the other.\""), "{toml}");
    house.jm(&["plan", "edit", "--stdin"]).input(&toml).run().expect(0).prints(&["stays as it was"]);
    let changed = toml.replace("One file after the other.", "Both at once.");
    house.jm(&["plan", "edit", "--stdin"]).input(&changed).run().expect(0).prints(&["changed the plan"]);
    house.jm(&["plan", "show"]).run().expect(0).prints(&["Both at once.", "1. Write the first."]);
    house.jm(&["plan", "show", "--toml", "--json"]).run().expect(2).says(&["cannot be used with"]);

    let edited = "task = \"write it everywhere\"\nstrategy = \"By hand.\"\n[[steps]]\nwhat = \"Write \
                  both.\"\nfiles = [\"one.txt\", \"two.txt\"]\n";
    house.jm(&["plan", "edit", "--stdin"]).input("steps = 1").run().expect(2).says(&["the plan:", "line 1"]);
    house.jm(&["plan", "edit", "--stdin"]).input("").run().expect(0).prints(&["stays as it was"]);
    house.jm(&["plan", "edit", "--stdin"]).input(edited).run().expect(0).prints(&["changed the plan"]);
    let shown = house.jm(&["plan", "show", "--json"]).run().expect(0);
    let shown: Value = serde_json::from_str(&shown.stdout).unwrap();
    assert_eq!(shown["plan"]["strategy"], "By hand.");

    let ran = server.run(&house, &["--json", "--plan", "--check", "true"]).run().expect(0);
    let report = ran.report();
    assert_eq!(report.outcome, RunOutcome::Verified);
    let compared = report.plan.unwrap();
    assert_eq!(compared.outside, [RelPath::parse("other.txt").unwrap()]);
    assert_eq!(compared.untouched, ["two.txt"]);
    let asked = server.seen()[1].newest();
    assert!(asked.contains("write it everywhere") && asked.contains("1. Write both."), "{asked}");
}

#[test]
fn a_plan_that_was_edited_wrongly_can_be_edited_on() {
    let house = House::with_greeter();
    let server = Server::chat([call("complete_task", plan())]);
    server.command(&house, &["plan"], &["write it everywhere"]).run().expect(11);
    let edit = house.jm(&["plan", "edit"]).env("EDITOR", "printf 'steps = [1 of mine]' >");
    let person = Person::start(edit.command());
    let (code, shown) = person.ends();
    assert_eq!(code, 2, "{shown}");
    let kept = shown.lines().find_map(|line| line.trim().strip_prefix("what you wrote is in ")).unwrap();
    assert_eq!(std::fs::read_to_string(kept.trim()).unwrap(), "steps = [1 of mine]");
}

#[test]
fn a_task_that_goes_through_the_code_is_planned_first_unless_that_is_off() {
    let task = "rename greet to welcome everywhere";
    let house = House::with_greeter();
    let write = || call("write_file", json!({ "path": "one.txt", "content": "1\n" }));
    let server = Server::chat([call("complete_task", plan()), write(), say("Done.")]);
    let ran = server.run(&house, &["--check", "true", task]).run().expect(0);
    ran.says(&["planner", "1. Write the first."]);
    ran.prints(&["verified"]);
    let house = House::with_greeter();
    let server = Server::chat([write(), say("Done.")]);
    server.run(&house, &["--plan-first", "never", "--check", "true", task]).run().expect(0);
    assert_eq!(server.seen().len(), 2);
}

#[test]
fn where_there_is_no_plan_it_is_said_how_to_make_one() {
    let house = House::with_greeter();
    let server = Server::chat([say("never said")]);
    house.jm(&["plan", "show"]).run().expect(2).says(&["no plan was made in this directory", "jm plan"]);
    server.run(&house, &["--plan", "x"]).run().expect(2).says(&["no plan was made in this directory"]);
    server.run(&house, &["--plan-first", "sometimes", "x"]).run().expect(2).says(&["plan_first"]);
    assert_eq!(server.seen().len(), 0);
}

#[test]
fn a_command_behind_its_flags_is_not_planned() {
    let house = House::with_greeter();
    let server = Server::chat([say("Done.")]);
    for word in ["show", "edit"] {
        let ran = server.command(&house, &["plan", "-C", ".", word], &[]).run().expect(2);
        ran.says(&[&format!("`{word}` comes before its flags: jm plan {word} …")]);
    }
    assert!(server.seen().is_empty(), "the model was asked");
}
