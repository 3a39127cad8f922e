//! Rules: what they change of a run, and what `jm policy` tells of them.

use std::os::unix::fs::symlink;

use journeyman_protocol::RunOutcome;
use serde_json::{Value, json};

use crate::support::{House, Person, Reply, Server, call, needs, needs_sandbox, say};

fn command(text: &str) -> Reply {
    call("run_command", json!({ "command": text }))
}

fn write(path: &str) -> Reply {
    call("write_file", json!({ "path": path, "content": "new\n" }))
}

/// The user's own rules.
fn user_rules(house: &House, text: &str) {
    house.configure("");
    std::fs::write(house.user_config().with_file_name("policy.toml"), text).unwrap();
}

const NO_TOUCH: &str = "[[rule]]\nname = \"no touch\"\ncommand = [\"touch\"]\ndecision = \"deny\"\nreason = \"write it instead\"\n";

#[test]
fn a_rule_denies_in_a_run_however_the_command_is_written() {
    if !needs_sandbox() {
        return;
    }
    let lines =
        ["touch one", "true && env X=1 touch one", "sh -c 'touch one'", "$(echo touch) one; touch two"];
    for line in lines {
        let house = House::with_greeter();
        user_rules(&house, NO_TOUCH);
        let server = Server::chat([command(line), say("Then not.")]);
        let report =
            server.run(&house, &["--json", "--mode", "auto", "make a file"]).run().expect(4).report();
        assert_eq!(report.outcome, RunOutcome::Unverified);
        let heard = server.seen()[1].newest();
        assert!(heard.contains("denied: your rule `no touch` forbids"), "{line}: {heard}");
        assert!(heard.contains("write it instead"), "{line}: {heard}");
        assert!(!house.project().join("one").exists(), "{line}");
    }
}

#[test]
fn a_rule_allows_what_a_headless_run_could_not_ask_about() {
    if !needs_sandbox() {
        return;
    }
    let house = House::with_greeter();
    user_rules(&house, "[[rule]]\ncommand = [\"touch\", \"-f\", \"*\"]\ndecision = \"allow\"\n");
    let server = Server::chat([command("touch -f one"), command("touch -f two three"), say("Done.")]);
    server.run(&house, &["--mode", "edit", "--no-check", "make files"]).run().expect(4);
    let made = ["one", "two"].map(|name| house.project().join(name).exists());
    assert_eq!(made, [true, false], "the second has more words than the rule");
}

#[test]
fn a_project_tightens_and_cannot_loosen() {
    let house = House::with_greeter();
    house.write(".journeyman/policy.toml", "[[rule]]\npaths = [\"kept/**\"]\ndecision = \"deny\"\n");
    // Without any trust.
    let server = Server::chat([write("kept/a.txt"), write("b.txt"), say("Done.")]);
    server.run(&house, &["--mode", "edit", "--no-check", "write"]).run().expect(4);
    assert!(!house.project().join("kept").exists());
    assert_eq!(house.read("b.txt"), "new\n");

    house.write(".journeyman/policy.toml", "\n[[rule]]\npaths = [\"kept/**\"]\ndecision = \"allow\"\n");
    let server = Server::chat([say("Never asked.")]);
    for flags in [&["look around"][..], &["--trust-project", "look around"]] {
        let ran = server.run(&house, flags).run().expect(2);
        ran.says(&[
            "policy.toml:2: a project's rules only tighten, and this one allows",
            "your own policy.toml",
        ]);
    }
    assert!(server.seen().is_empty());
}

#[test]
fn a_file_that_cannot_be_read_stops_the_start() {
    let house = House::with_greeter();
    let server = Server::chat([say("Never asked.")]);
    for (text, words) in [
        ("[[rule]\n", "policy.toml:1: it is not TOML"),
        ("[[rule]]\ndecision = \"deny\"\ncomand = [\"x\"]\n", "policy.toml:3: `comand` is not a key here"),
        ("[[rule]]\ndecision = \"allow\"\n", "it allows everything"),
        (
            "[[rule]]\ncommand = [\"ls\"]\ndecision = \"deny\"\nmatches = [\"cat x\"]\n",
            "does not match `cat x`",
        ),
    ] {
        user_rules(&house, text);
        server.run(&house, &["look around"]).run().expect(2).says(&[words]);
        house.jm(&["policy", "explain"]).run().expect(2).says(&[words]);
    }
    user_rules(&house, "");
    // A link in the repository could lead to the user's keys, which the error would show.
    std::fs::write(house.at("secret"), "planted = secret\n").unwrap();
    house.write(".journeyman/x", "");
    symlink(house.at("secret"), house.project().join(".journeyman/policy.toml")).unwrap();
    let ran = server.run(&house, &["look around"]).run().expect(2);
    assert!(ran.says(&["symbolic link"]).stderr.contains("policy.toml") && !ran.stderr.contains("planted"));
    assert!(server.seen().is_empty());
}

/// Mode, decision and rules of each verdict that is printed.
fn verdicts(printed: &Value) -> Vec<(String, String, usize)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let modes = printed["modes"].as_array().unwrap().iter();
    modes
        .map(|one| (text(&one["mode"]), text(&one["decision"]), one["rules"].as_array().unwrap().len()))
        .collect()
}

#[test]
fn check_judges_a_command_in_every_mode() {
    if !needs_sandbox() {
        return;
    }
    let house = House::with_greeter();
    user_rules(&house, NO_TOUCH);
    let decided = |arguments: &[&str], code: i32| {
        let ran = house.jm(&[&["policy", "check", "--json"], arguments].concat()).run().expect(code);
        let printed: Value = serde_json::from_str(&ran.stdout).unwrap();
        verdicts(&printed).into_iter().map(|(_, decision, _)| decision).collect::<Vec<_>>().join(" ")
    };
    // The exit code is that of the mode `edit`, which is built in.
    assert_eq!(decided(&["cat greet.sh"], 0), "allow allow allow allow");
    assert_eq!(decided(&["make all"], 0), "deny ask allow allow");
    assert_eq!(decided(&["./x all"], 6), "deny ask ask allow");
    assert_eq!(decided(&["git push"], 6), "deny ask ask ask");
    assert_eq!(decided(&["env touch x"], 7), "deny deny deny deny");
    assert_eq!(decided(&["--mode", "auto", "./x all"], 0), "allow");
    assert_eq!(decided(&["--mode", "plan", "make all"], 7), "deny");
    assert_eq!(decided(&["--tool", "write_file", "--path", "a.txt"], 0), "deny ask allow allow");
    assert_eq!(decided(&["--tool", "write_file", "--path", ".envrc"], 6), "deny ask ask ask");
    assert_eq!(decided(&["--tool", "read_file", "--path", ".env"], 0), "allow allow allow allow");
    assert_eq!(decided(&["--tool", "search_text", "--path", ".git/config"], 0), "allow allow allow allow");
    assert_eq!(decided(&["--tool", "write_file", "--path", ".git/config"], 7), "deny deny deny deny");
    assert_eq!(decided(&["mkdir -p a && cp greet.sh a/ && echo x > a/b"], 0), "deny ask allow allow");
    assert_eq!(decided(&["--host", "registry.npmjs.org", "npm ci"], 6), "deny ask ask allow");
    assert_eq!(decided(&["--host", "registry.npmjs.org", "node x.js"], 6), "deny ask ask ask");
    assert_eq!(decided(&["--tool", "mcp__web__fetch", "--host", "example.com"], 6), "deny ask ask ask");
    let misspelt = house.jm(&["policy", "check", "--tool", "write_fil", "--path", "a.txt"]).run().expect(2);
    misspelt.says(&["did you mean", "write_file"]);
    assert_eq!(decided(&["rm", "-rf", "a b"], 6), "deny ask ask allow");
    let ran = house.jm(&["policy", "check", "true; touch x"]).run().expect(7);
    ran.prints(&["level 1 (edit)", "touch x", "user: ", "`no touch`", "write it instead", "plan", "auto"]);
    house.jm(&["policy", "check", "--mode", "fast", "ls"]).run().expect(2).says(&["plan, ask, edit, auto"]);
    house
        .jm(&["policy", "check"])
        .run()
        .expect(2)
        .says(&["no command to judge", "jm policy check 'git push"]);
    let ran = house.jm(&["policy", "check", "--tool", "write_fil", "--path", "a"]).run().expect(2);
    ran.says(&["there is no tool `write_fil`", "did you mean `write_file`?"]);
    house.jm(&["policy", "check", "--help"]).run().expect(0).prints(&["Exit codes", "Examples:"]);
}

#[test]
fn explain_shows_every_file_and_rule() {
    let house = House::with_greeter();
    user_rules(&house, NO_TOUCH);
    house.write(".journeyman/policy.toml", "[[rule]]\nhosts = [\"*.example.com\"]\ndecision = \"ask\"\n");
    let ran = house.jm(&["policy", "explain"]).run().expect(0);
    ran.prints(&[
        "edit  reads, edits, also by commands, and runs the project's checks",
        "a deny beats an ask beats an allow",
        "user ",
        "(1 rule)",
        "deny  `touch` `no touch`: write it instead line 1",
        "project ",
        "ask   to *.example.com line 1",
    ]);
    let printed: Value =
        serde_json::from_str(&house.jm(&["policy", "explain", "--json"]).run().expect(0).stdout).unwrap();
    let of = |layer: &str| {
        let files = printed["files"].as_array().unwrap().iter();
        files.filter(|file| file["layer"] == layer).map(|file| file["rules"].clone()).collect::<Vec<_>>()
    };
    let rule =
        json!([{ "line": 1, "name": null, "decision": "ask", "on": "to *.example.com", "reason": null }]);
    assert_eq!(of("project"), [rule]);
}

#[test]
fn cases_of_ones_own_are_checked() {
    let house = House::with_greeter();
    user_rules(&house, &format!("{NO_TOUCH}matches = [\"touch x\"]\nnot_matches = [\"ls\"]\n"));
    house.write(
        "cases.toml",
        "[[case]]\ncommand = \"touch a\"\ndecision = \"deny\"\n\
         [[case]]\ncommand = \"git push\"\nmode = \"auto\"\ndecision = \"ask\"\n\
         [[case]]\ntool = \"write_file\"\npath = \"a\"\ndecision = \"allow\"\n",
    );
    let ran = house.jm(&["policy", "test", "cases.toml"]).run().expect(0);
    ran.prints(&["2 examples of 1 rules hold; 3 of 3 cases hold"]);
    house.write("wrong.toml", "[[case]]\ncommand = \"touch a\"\ndecision = \"allow\"\n");
    let ran = house.jm(&["policy", "test", "cases.toml", "wrong.toml"]).run().expect(1);
    ran.prints(&[
        "wrong.toml: touch a in mode edit: deny, not allow: your rule `no touch`",
        "3 of 4 cases hold",
    ]);
    house.write("bad.toml", "\n[[case]]\ncomand = \"x\"\n");
    house.jm(&["policy", "test", "bad.toml"]).run().expect(2).says(&["bad.toml:", "comand"]);
}

#[test]
fn forever_is_written_down_and_holds_in_the_next_session() {
    if !needs(&["setsid"]) {
        return;
    }
    let house = House::with_greeter();
    user_rules(&house, "# mine\n");
    let server = Server::chat([command("touch -f one"), say("Done."), command("touch -f one"), say("Done.")]);
    let run =
        || Person::start(server.run(&house, &["--no-check", "make a file"]).env("NO_COLOR", "1").command());
    let mut person = run();
    person.sees("run_command `touch -f one`");
    person.sees("[y]es  [a]lways  [f]orever  [n]o");
    person.types("f\n");
    person.sees("written to ");
    assert_eq!(person.ends().0, 4);
    let file = house.user_config().with_file_name("policy.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.starts_with("# mine\n\n# Allowed \"forever\" on 20"), "{text}");
    let rule =
        "[[rule]]\ntools = [\"run_command\"]\ncommand = [\"touch\", \"-f\", \"one\"]\ndecision = \"allow\"\n";
    assert!(text.ends_with(rule), "{text}");
    std::fs::remove_file(house.project().join("one")).unwrap();
    let (code, screen) = run().ends();
    assert_eq!(code, 4);
    assert!(!screen.contains("May I run this?"), "{screen}");
    assert!(house.project().join("one").exists());
}
