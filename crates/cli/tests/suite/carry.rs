//! `jm fork`, `jm snapshot`, `jm import`, `jm delete`.

use serde_json::{Value, json};

use crate::support::{House, KEY, Person, Server, Step, call, needs, say};

/// A session of two tasks. Gives its id.
fn talk(house: &House, server: &Server) -> String {
    server.run(house, &["first question"]).run().expect(4);
    let id = house.sessions()[0]["id"].as_str().unwrap().to_owned();
    house.jm(&["resume", &id, "second question"]).env("JM_API_KEY", KEY).run().expect(4);
    id
}

#[test]
fn a_fork_goes_its_own_way() {
    let house = House::with_greeter();
    let server = Server::chat([
        say("First answer."),
        say("Second answer."),
        say("Of the fork."),
        say("Of the old one."),
    ]);
    let parent = talk(&house, &server);
    let before = house.jm(&["show", "--json", &parent]).run().expect(0).stdout;

    let forked = house.jm(&["fork", &parent[..14]]).run().expect(0);
    forked.says(&["jm resume", &parent]);
    let child = forked.stdout.trim().to_owned();
    let listed = house.sessions();
    assert_eq!(
        (listed[0]["id"].as_str(), listed[0]["status"].as_str()),
        (Some(child.as_str()), Some("forked"))
    );
    assert_eq!(listed[0]["title"], "first question");

    let resume = |session: &str, words: &str| house.jm(&["resume", session, words]).env("JM_API_KEY", KEY);
    resume(&child, "one way").run().expect(4).prints(&["Of the fork."]);
    assert_eq!(
        house.jm(&["show", "--json", &parent]).run().expect(0).stdout,
        before,
        "the parent is as it was"
    );
    resume(&parent, "another way").run().expect(4).prints(&["Of the old one."]);
    let seen = server.seen();
    let (fork, old) = (seen[2].body["messages"].to_string(), seen[3].body["messages"].to_string());
    assert!(fork.contains("second question") && fork.contains("one way"), "{fork}");
    assert!(old.contains("second question") && !old.contains("one way"), "{old}");
}

#[test]
fn a_fork_begins_at_a_place_that_has_a_number_or_a_name() {
    let house = House::with_greeter();
    let server = Server::chat([say("First answer."), say("Second answer."), say("A."), say("B.")]);
    server.run(&house, &["first question"]).run().expect(4);
    house.jm(&["snapshot", "last", "after-one"]).run().expect(0).prints(&["after-one"]);
    house.jm(&["resume", "--last", "second question"]).env("JM_API_KEY", KEY).run().expect(4);
    let parent = house.sessions()[0]["id"].as_str().unwrap().to_owned();
    let events = house.jm(&["show", "--json"]).run().expect(0).events();
    let done = events.iter().find(|envelope| envelope.event.kind() == "done").unwrap().seq.unwrap();

    for (nth, place) in ["after-one".to_owned(), done.to_string()].iter().enumerate() {
        let forked = house.jm(&["fork", &parent, "--at", place, "--json"]).run().expect(0);
        let forked: Value = serde_json::from_str(&forked.stdout).unwrap();
        assert_eq!(forked["parent"], json!(parent));
        let child = forked["id"].as_str().unwrap();
        house.jm(&["resume", child, "third question"]).env("JM_API_KEY", KEY).run().expect(4);
        let asked = server.seen()[2 + nth].body["messages"].to_string();
        assert!(asked.contains("First answer.") && asked.contains("third question"), "{asked}");
        assert!(!asked.contains("second question"), "{asked}");
    }
    house.jm(&["fork", &parent, "--at", "nowhere"]).run().expect(2).says(&["`nowhere`", "after-one"]);
    house.jm(&["fork", &parent, "--at", "1"]).run().expect(2).says(&["give a later place"]);
    for name in [" ", "5"] {
        house.jm(&["snapshot", "last", name]).run().expect(2).says(&["can't name a snapshot"]);
    }
}

#[test]
fn what_is_exported_comes_back_as_it_was() {
    let house = House::with_greeter();
    let server = Server::chat([
        say("I'll look.").and("read_file", json!({"path": "greet.sh"})),
        say("First answer."),
        say("Second answer."),
        say("Third."),
    ]);
    let id = talk(&house, &server);
    let before = house.jm(&["show", "--json", &id]).run().expect(0).stdout;
    let file = house.at("tmp/session.jsonl");
    let file = file.to_str().unwrap();
    house.jm(&["export", &id, "-o", file]).run().expect(0);
    let written = std::fs::read_to_string(file).unwrap();
    assert_eq!(house.jm(&["export", &id]).run().expect(0).stdout, written, "the same on standard output");

    house.jm(&["import", file]).run().expect(2).says(&["is here already", "--copy"]);
    house.jm(&["delete", "--yes", &id]).run().expect(0).prints(&["removed", &id]);
    assert_eq!(house.sessions(), Vec::<Value>::new());
    let imported = house.jm(&["import", file]).run().expect(0);
    imported.says(&["jm show", "jm resume"]);
    assert_eq!(imported.stdout.trim(), id);
    assert_eq!(house.jm(&["show", "--json", &id]).run().expect(0).stdout, before);
    assert_eq!(house.sessions()[0]["status"], "imported");
    let again = house.jm(&["export", &id]).run().expect(0).stdout;
    let entries = |text: &str| text.lines().skip(1).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(entries(&again), entries(&written), "entry by entry");

    let copy = house.jm(&["import", "-", "--copy"]).input(&written).run().expect(0).stdout;
    assert_ne!(copy.trim(), id);
    // What it was started with is somebody else's word.
    house
        .jm(&["resume", copy.trim(), "third question"])
        .env("JM_API_KEY", KEY)
        .run()
        .expect(2)
        .says(&["was imported", "no model is set"]);
    let url = server.url();
    let flags = ["--base-url", &url, "--wire", "chat", "--model", "tiny"];
    let all: Vec<&str> = ["resume", copy.trim(), "third question"].iter().chain(&flags).copied().collect();
    house.jm(&all).env("JM_API_KEY", KEY).run().expect(4).prints(&["Third."]);
    assert!(server.seen()[3].body["messages"].to_string().contains("First answer."));
}

#[test]
fn what_is_no_session_is_not_taken_in() {
    let house = House::with_greeter();
    let server = Server::chat([say("One."), say("Two.")]);
    let id = talk(&house, &server);
    let whole = house.jm(&["export", &id]).run().expect(0).stdout;
    let cut: String = whole.lines().take(5).map(|line| format!("{line}\n")).collect();
    for (text, words) in [
        ("", "there is nothing in it"),
        ("hello\n", "line 1"),
        ("{\"format\": \"other\", \"version\": 1}\n", "line 1"),
        (cut.as_str(), "cut off"),
    ] {
        house
            .jm(&["import", "-", "--copy"])
            .input(text)
            .run()
            .expect(2)
            .says(&[words, "Nothing was imported"]);
    }
    house.jm(&["import", "nowhere.jsonl"]).run().expect(2).says(&["cannot read", "nowhere.jsonl"]);
    assert_eq!(house.sessions().len(), 1);
}

#[test]
fn removing_is_asked_for() {
    if !needs(&["setsid"]) {
        return;
    }
    let house = House::with_greeter();
    let write = call("write_file", json!({"path": "new.txt", "content": "new\n"}));
    let server = Server::chat([write, say("There."), say("And more.")]);
    server.run(&house, &["--no-check", "make a file"]).run().expect(4);
    house.jm(&["delete", "last"]).run().expect(2).says(&["--yes"]);
    house.jm(&["delete"]).run().expect(2).says(&["Usage"]);
    house.jm(&["delete", "--yes", "zzz"]).run().expect(2).says(&["`zzz`"]);

    for (answer, code, left) in [("\n", 1, 1), ("n\n", 1, 1), ("y\n", 0, 0)] {
        let mut person = Person::start(house.jm(&["delete", "last"]).env("NO_COLOR", "1").command());
        person.sees("make a file");
        person.sees("[y/N]");
        person.types(answer);
        assert_eq!(person.ends().0, code, "{answer:?}");
        assert_eq!(house.sessions().len(), left, "{answer:?}");
    }
    assert_eq!(house.read("new.txt"), "new\n", "what it changed stays");
}

/// A session with an agent. Gives the ids of both.
fn talk_with_an_agent(house: &House) -> (String, String) {
    let server = Server::answering(|_, seen| {
        let is_agent = seen.body.to_string().contains("You investigate a code base");
        let task = json!({ "agent": "investigator", "prompt": "Where is the greeting?" });
        Step::from(match (is_agent, seen.newest().contains("completed its task")) {
            (true, _) => {
                call("complete_task", json!({ "report": { "findings": "x", "trace": [], "locations": [] } }))
            }
            (false, false) => call("task", task),
            (false, true) => say("It is in greet.sh."),
        })
    });
    server.run(house, &["look for the greeting"]).run().expect(4);
    let tree = house.jm(&["show", "--tree", "--json"]).run().expect(0);
    let tree: Value = serde_json::from_str(&tree.stdout).unwrap();
    let id = |tree: &Value| tree["session"].as_str().unwrap().to_owned();
    (id(&tree), id(&tree["agents"][0]))
}

#[test]
fn a_session_and_its_agents_are_deleted_together() {
    let house = House::with_greeter();
    let (parent, agent) = talk_with_an_agent(&house);
    house.jm(&["delete", "--yes", &agent]).run().expect(2).says(&[&format!("jm delete {parent}")]);
    house.jm(&["show", &agent]).run().expect(0);
    let fork = house.jm(&["fork", &parent]).run().expect(0).stdout.trim().to_owned();
    house.jm(&["delete", "--yes", &parent]).run().expect(0).prints(&["removed", &parent, "with 1 agent"]);
    for id in [&parent, &agent] {
        house.jm(&["show", id]).run().expect(2).says(&["no session begins with"]);
    }
    // The fork's log names the agent, too.
    house.jm(&["show", "--tree", &fork]).run().expect(0).prints(&["its log is not here", "GOAL, 1 turn"]);
    house.jm(&["delete", "--yes", &fork]).run().expect(0);
}

#[test]
fn a_fork_leaves_the_agents_to_the_session_that_started_them() {
    let house = House::with_greeter();
    let (parent, agent) = talk_with_an_agent(&house);
    let fork = house.jm(&["fork", &parent]).run().expect(0).stdout.trim().to_owned();
    house.jm(&["delete", "--yes", &fork]).run().expect(0);
    house.jm(&["show", "--tree", &parent]).run().expect(0).prints(&[&agent]);
    house.jm(&["delete", "--yes", &agent, &parent]).run().expect(0);
    assert_eq!(house.sessions(), Vec::<Value>::new());
}

#[test]
fn an_export_has_the_agents_and_they_come_back() {
    let house = House::with_greeter();
    let (parent, agent) = talk_with_an_agent(&house);
    let shown = |id: &str| house.jm(&["show", "--json", id]).run().expect(0).stdout;
    let tree = |id: &str| house.jm(&["show", "--tree", id]).run().expect(0).stdout;
    let before = (shown(&agent), tree(&parent));
    let text = house.jm(&["export", &parent]).run().expect(0).stdout;
    let copy = house.jm(&["import", "-", "--copy"]).input(&text).run().expect(0).stdout.trim().to_owned();
    let (copied, lines) = (tree(&copy), before.1.lines().count());
    assert!(copied.contains(&copy) && !copied.contains(&agent) && !copied.contains("not here"), "{copied}");
    assert_eq!(copied.lines().count(), lines);
    assert_eq!(house.sessions().len(), 2, "a copied agent is no session of a person's");

    house.jm(&["delete", "--yes", &parent]).run().expect(0);
    house.jm(&["import", "-"]).input(&text).run().expect(0);
    assert_eq!((shown(&agent), tree(&parent)), before);
    house.jm(&["delete", "--yes", &copy]).run().expect(0).prints(&["with 1 agent"]);
}
