//! `jm context`, `jm compact`, `jm memory` and `jm policy promote`.

use serde_json::{Value, json};

use crate::support::{House, KEY, Server, needs, say};

/// A project with code of two shops.
fn shop() -> House {
    let house = House::new();
    let open = "def open_shop(key):\n    return key == 'brass'\n";
    let filler: String =
        (0..80).map(|number| format!("def helper_{number}(value):\n    return value\n\n")).collect();
    house.write("shop.py", format!("{open}\n{filler}"));
    house.write(
        "test_shop.py",
        "from shop import open_shop\n\n\ndef test_open():\n    assert open_shop('brass')\n",
    );
    house.write("other.py", "def unrelated():\n    pass\n");
    house
}

#[test]
fn a_window_and_a_model_that_no_plan_can_be_for_are_told() {
    let house = shop();
    for window in ["1", "500", "1000000000"] {
        house
            .jm(&["context", "--window", window, "open_shop"])
            .run()
            .expect(2)
            .says(&["no model has one under"]);
    }
    let wrong = house.jm(&["context", "open_shop"]).env("JM_MODEL", "nosuch/zzz");
    wrong.run().expect(2).says(&["nosuch"]);
}

#[test]
fn a_session_begins_with_the_checks_that_failed_on_the_same_files() {
    if !needs(&["sh", "grep"]) {
        return;
    }
    let house = shop();
    let check = "grep -q wooden shop.py || { echo shop.py:1: no wooden key; exit 1; }";
    let begins = |task: &str| {
        let server = Server::chat([say("I would open it.")]);
        server.command(&house, &["ask"], &[task]).run().expect(0);
        format!("{:?}", server.seen()[0].body)
    };
    assert!(!begins("why do the tests fail?").contains("failed before the task"));
    house.jm(&["check", "--check", check]).run().expect(3);
    let told = begins("why do the tests fail?");
    assert!(told.contains("failed before the task") && told.contains("no wooden key"), "{told}");
    let plan = house.jm(&["context", "why do the tests fail?"]).run().expect(0);
    plan.prints(&["failed checks", "it failed on the files as they are"]);
    house.write("shop.py", "def open_shop(key):\n    return key == 'wooden'\n");
    assert!(!begins("why do the tests fail?").contains("failed before the task"), "other files");
    house.jm(&["check", "--check", check]).run().expect(0);
    assert!(!begins("why do the tests fail?").contains("failed before the task"));
}

#[test]
fn the_plan_says_what_is_in_and_why() {
    let house = shop();
    let task = "open_shop accepts a wooden key";
    let plan = house.jm(&["context", task]).run().expect(0);
    plan.prints(&[
        "window of",
        "kept for the reply",
        "related code",
        "shop.py:1-",
        "in the first request, about",
        "required",
    ]);
    let json: Value = serde_json::from_str(
        &house.jm(&["context", "--json", "--window", "32000", task]).run().expect(0).stdout,
    )
    .unwrap();
    let sum = |field: &str| -> u64 {
        let shares = json["shares"].as_array().unwrap().iter();
        let shares = shares.filter(|share| field == "tokens" || share["category"] == "conversation");
        shares.map(|share| share[field].as_u64().unwrap()).sum()
    };
    assert_eq!(json["window"], 32_000);
    assert_eq!(sum("tokens") + sum("budget"), 32_000, "every token has a category: {json}");
    let included: Vec<&str> = json["items"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|item| item["outcome"] == "included")
        .map(|item| item["name"].as_str().unwrap())
        .collect();
    assert!(included.iter().any(|name| name.starts_with("shop.py:1-")), "{included:?}");
    let items = json["items"].as_array().unwrap();
    let priority =
        |category: &str| &items.iter().find(|item| item["category"] == category).unwrap()["priority"];
    assert_eq!((priority("task"), priority("related_code")), (&json!(0), &json!(6)));
    let text = house.jm(&["context", "--text", task]).run().expect(0).stdout;
    assert!(text.contains("def open_shop(key):") && text.contains(task), "{text}");
    house.jm(&["context", " "]).run().expect(2).says(&["the task is empty"]);
    house.jm(&["context", task, "--window", "many"]).run().expect(2);
}

#[test]
fn the_plan_has_the_commit_of_the_lines_in_question() {
    if !needs(&["git"]) {
        return;
    }
    let house = shop();
    let token = format!("ghp_{}", "a1B2c3D4".repeat(5));
    for (text, subject) in [("brass", "Open the shop"), ("oak", &format!("Take wooden keys, by {token}"))] {
        house.write("shop.py", house.read("shop.py").replace("brass", text));
        house.git(&["init", "-q"]);
        house.git(&["add", "-A"]);
        house.git(&["commit", "-q", "-m", subject]);
    }
    let root = house.project().canonicalize().unwrap();
    let task = format!("it fails:\n  File \"{}/shop.py\", line 2, in open_shop", root.display());
    let named = house.jm(&["context", &task]).run().expect(0);
    named.prints(&["shop.py:1-4  (it last changed the lines that the task names)"]);
    let text = house.jm(&["context", "--text", &task]).run().expect(0);
    text.prints(&["Take wooden keys, by «", "(shop.py:1-4)"]);
    assert!(!text.stdout.contains(&token), "{}", text.stdout);
    house.write(".journeyman/policy.toml", "[[rule]]\npaths = [\"shop.py\"]\ndecision = \"deny\"\n");
    // What rules hide has no commits either: neither of the named lines nor of what is found.
    let mut asked = vec![task.as_str(), "open_shop accepts a wooden key"];
    asked.retain(|asked| {
        house.jm(&["context", "--text", asked]).run().expect(0).stdout.contains("Take wooden keys")
    });
    assert_eq!(asked, Vec::<&str>::new());
    std::fs::remove_dir_all(house.project().join(".journeyman")).unwrap();
    let found = house.jm(&["context", "open_shop accepts a wooden key"]).run().expect(0);
    found.prints(&["(it last changed the likeliest passage)"]);
    house.write("new.py", "x = 1\n");
    house.write(".env", "SHOP_PASSWORD=open_shop_wooden\n");
    house.write("AGENTS.md", "Use tabs.\n@.env\n");
    let hidden =
        house.jm(&["context", "--text", "which SHOP_PASSWORD does open_shop have in .env?"]).run().expect(0);
    assert!(!hidden.stdout.contains("open_shop_wooden"), "{}", hidden.stdout);
    house.write(".gitignore", ".env\nAGENTS.md\n.gitignore\n");
    let text = house.jm(&["context", "--text", &task]).run().expect(0);
    text.prints(&["Uncommitted changes from before the task: new.py (new)"]);
}

#[test]
fn the_plan_counts_the_tools_that_a_session_sends() {
    let house = shop();
    house.write(".journeyman/skills/keys/SKILL.md", "---\ndescription: How keys are cut.\n---\nSlowly.\n");
    house.configure(
        "[tools.commands.count_shops]\ndescription = 'Counts.'\nrun = ['wc', '{path}']\n\
         [tools.commands.count_shops.arguments]\npath = 'path'\n",
    );
    let task = "why does open_shop accept a wooden key?";
    let server = Server::chat([say("Nothing to do.")]);
    server.run(&house, &[task]).run();
    let sent = server.seen()[0].body["tools"].as_array().unwrap().len();
    let plan = house.jm(&["context", "--json", task]).run().expect(0).stdout;
    let plan: Value = serde_json::from_str(&plan).unwrap();
    let items = plan["items"].as_array().unwrap().iter();
    let tools: Vec<&Value> = items.filter(|item| item["category"] == "tools").collect();
    let names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    let (builtin, own) = names.split_first().unwrap();
    assert_eq!(*builtin, format!("{} built-in tools", sent - own.len()));
    for name in ["count_shops", "skill", "task"] {
        assert!(own.contains(&name), "{name}: {own:?}");
    }
    let tokens: u64 = tools.iter().map(|tool| tool["tokens"].as_u64().unwrap()).sum();
    let mut shares = plan["shares"].as_array().unwrap().iter();
    let share = shares.find(|share| share["category"] == "tools").unwrap();
    assert_eq!(share["tokens"], tokens);
    house.jm(&["context", task]).run().expect(0).prints(&["not known before a session", "count_shops"]);
}

#[test]
fn a_session_gets_what_the_plan_shows() {
    let house = shop();
    house.jm(&["index"]).run().expect(0);
    let server = Server::chat([say("Nothing to do."), say("Still nothing.")]);
    server.run(&house, &["why does open_shop accept a wooden key?"]).run();
    let first = server.seen()[0].body.to_string();
    assert!(first.contains("def open_shop(key)"), "{first}");
}

#[test]
fn a_conversation_is_shortened_shown_and_made_whole_again() {
    let house = House::with_greeter();
    let long = "word ".repeat(3_000);
    let server = Server::chat([
        say(&long),
        say("Second."),
        say("Third."),
        say("A summary."),
        say("Last."),
        say("Last."),
    ]);
    server.run(&house, &["first task, never touch vendor/"]).run().expect(4);
    house.jm(&["show", "--before-compaction"]).run().expect(2).says(&["was not shortened"]);
    house.jm(&["compact", "--undo"]).run().expect(2).says(&["was not shortened"]);
    let model = |arguments: &[&str]| house.jm(arguments).env("JM_API_KEY", KEY);
    model(&["resume", "--last", "go on"]).run().expect(4);
    model(&["resume", "--last", "and on"]).run().expect(4);
    let shortened = model(&["compact"]).run().expect(0);
    shortened.prints(&["the next request of session", "jm compact --undo"]);
    house.jm(&["show", "--before-compaction"]).run().expect(0).prints(&["word word", "first task"]);
    house.jm(&["compact", "--undo"]).run().expect(0).prints(&["is whole again"]);
    model(&["resume", "--last", "once more"]).run().expect(4);
    let last = server.seen().last().unwrap().body.to_string();
    assert!(last.contains("word word word") && last.contains("never touch vendor/"), "it is whole again");
}

#[test]
fn a_conversation_that_is_shortened_leaves_no_copy() {
    let house = House::with_greeter();
    let long = "word ".repeat(3_000);
    let server = Server::chat([say(&long), say("Second."), say("A summary."), say("Last."), say("Last.")]);
    server.run(&house, &["--isolate", "first task"]).run().expect(4);
    let model = |arguments: &[&str]| house.jm(arguments).env("JM_API_KEY", KEY);
    model(&["resume", "--last", "go on"]).run().expect(4);
    house.write(".journeyman/config.toml", "checks = [\"true\"]\n");
    model(&["compact"]).run().expect(2).says(&["--trust-project"]);
    model(&["compact", "--trust-project"]).run().expect(0);
    assert_eq!(house.sessions()[0]["copy"], serde_json::Value::Null);
    house.jm(&["land"]).run().expect(2).says(&["no session's work is kept"]);
    // It goes on in a copy.
    let report = model(&["resume", "--last", "and on", "--json", "--trust-project"]).run().expect(4).report();
    assert!(report.copy.is_some(), "{report:?}");
}

#[test]
fn an_undone_compaction_tells_of_earlier_ones_that_still_hold() {
    let house = House::with_greeter();
    // Nothing in them repeats: that would end the run.
    let long = |mark| (0..600).map(|number| format!("{mark}{number} ")).collect::<String>();
    let server = Server::chat(["a", "b", "c", "d", "e", "f", "g"].map(|mark| say(long(mark))));
    server.run(&house, &["first task"]).run().expect(4);
    let model = |arguments: &[&str]| house.jm(arguments).env("JM_API_KEY", KEY);
    for round in ["go on", "and on"] {
        model(&["resume", "--last", round]).run().expect(4);
        model(&["resume", "--last", round]).run().expect(4);
        model(&["compact"]).run().expect(0);
    }
    house.jm(&["compact", "--undo"]).run().expect(0).prints(&["is back; an earlier compaction still holds"]);
    house.jm(&["compact", "--undo"]).run().expect(0).prints(&["is whole again"]);
}

#[test]
fn notes_are_told_to_later_sessions_while_they_hold() {
    let house = shop();
    house.jm(&["memory"]).run().expect(0).says(&["there are no notes"]);
    house.jm(&["memory", "add", "keys are brass", "--at", "shop.py:1-2"]).run().expect(0).prints(&["note 1"]);
    house.jm(&["memory", "add", "--all", "I like tabs"]).run().expect(0);
    house.jm(&["memory", "add", "x", "--at", "shop.py:900-901"]).run().expect(2).says(&["names no lines"]);
    house.jm(&["memory", "accept", "77"]).run().expect(2).says(&["there is no note 77"]);
    let note = "a note that a model proposes";
    let server = Server::chat([
        crate::support::call("remember", json!({ "text": note })),
        say("Noted."),
        say("Nothing."),
    ]);
    server.run(&house, &["look around"]).run();
    let first = server.seen()[0].body.to_string();
    assert!(first.contains("keys are brass (shop.py:1)") && first.contains("I like tabs"), "{first}");
    let listed: Value =
        serde_json::from_str(&house.jm(&["memory", "--json"]).run().expect(0).stdout).unwrap();
    let states: Vec<(&str, &str)> = listed["notes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (one["text"].as_str().unwrap(), one["state"].as_str().unwrap()))
        .collect();
    assert!(states.contains(&(note, "proposed")), "{states:?}");
    house.write("shop.py", "def open_shop(key):\n    return True\n");
    house.jm(&["memory"]).run().expect(0).prints(&["outdated"]);
    server.run(&house, &["look again"]).run();
    let last = server.seen().last().unwrap().body.to_string();
    assert!(
        !last.contains("keys are brass") && !last.contains(note),
        "outdated and proposed ones aren't told"
    );
    house.jm(&["memory", "remove", "1"]).run().expect(0);
}

#[test]
fn hard_rules_become_rules_and_checks() {
    let house = shop();
    house.jm(&["policy", "promote"]).run().expect(1).says(&["no hard rule"]);
    house.write(
        "AGENTS.md",
        "Never touch vendor/.\nAlways run `python3 -m unittest`.\nDo not edit generated code.\n",
    );
    house.write("web/AGENTS.md", "Never edit `dist/`.\nNever run `npm publish`.\n");
    house.write("w[1]/AGENTS.md", "Never edit `dist/`.\n");
    let promoted = house.jm(&["policy", "promote"]).run().expect(0);
    promoted.prints(&["vendor/**", "web/dist/**", "web/AGENTS.md:1", "checks = ["]);
    promoted.says(&["AGENTS.md:3 is no rule", "web/AGENTS.md:2 is no rule: a command"]);
    promoted.says(&["left out: w[1]/AGENTS.md: a pattern"]);
    house.jm(&["policy", "promote", "--write"]).run().expect(0).says(&["policy.toml", "config.toml"]);
    let judged = house.jm(&["policy", "check", "--tool", "write_file", "--path", "vendor/a.py"]).run();
    assert_eq!(judged.code(), 7, "{}", judged.stdout);
    let judged = house.jm(&["policy", "check", "--tool", "write_file", "--path", "shop.py"]).run();
    assert_ne!(judged.code(), 7, "{}", judged.stdout);
    let writing = [
        "rm -rf vendor",
        "mv vendor/a.py .",
        "cp shop.py vendor/",
        "sed -i s/a/b/ vendor/a.py",
        "echo x >> vendor/a.py",
        "cd vendor && touch a.py",
        "git checkout -- vendor/a.py",
        "rm -rf web/dist",
    ];
    let reading = ["cp vendor/a.py .", "grep -r x vendor", "python3 -m unittest vendor/a.py"];
    for command in writing.iter().chain(&reading) {
        let judged = house.jm(&["policy", "check", command]).run();
        assert_eq!(judged.code() == 7, writing.contains(command), "{command}: {}", judged.stdout);
    }
    assert!(house.read(".journeyman/config.toml").starts_with("checks = ["));
}
