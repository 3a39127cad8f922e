//! `--record`, `--replay`, and what is never written down.

use std::path::PathBuf;

use journeyman_protocol::Event;
use serde_json::json;

use crate::support::{House, KEY, Server, Wire, call, needs, polite_edit, say, snapshot};

/// A token of a shape that is known, made up.
const TOKEN: &str = "ghp_0123456789abcdefghijABCDEFGHIJ012345";

#[test]
fn a_recording_plays_back_offline_to_the_same_result() {
    if !needs(&["make"]) {
        return;
    }
    for wire in [Wire::Anthropic, Wire::Chat, Wire::Gemini] {
        plays_back(wire);
    }
}

#[test]
fn a_recording_of_the_responses_protocol_plays_back() {
    if needs(&["make"]) {
        plays_back(Wire::Responses);
    }
}

#[test]
fn a_recording_plays_back_on_another_day_in_another_place() {
    let house = House::with_greeter();
    let mut server = Server::chat([call("read_file", json!({"path": "greet.sh"})), say("Fine.")]);
    let cassette = house.at("cassette.jsonl");
    let path = cassette.to_str().unwrap().to_owned();
    server.run(&house, &["look around", "--record", &path]).run().expect(4);
    server.stop();

    let moved = house.at("moved");
    std::fs::rename(house.project(), &moved).unwrap();
    server.run(&house, &["look around", "--replay", &path]).dir(&moved).run().expect(4);

    // What a recording of that day would hold.
    let text = std::fs::read_to_string(&cassette).unwrap();
    let begin = text.find("today is ").expect("the prompt names the day") + "today is ".len();
    let today = text[begin..begin + "2026-01-31".len()].to_owned();
    std::fs::write(&cassette, text.replace(&today, "2001-02-03")).unwrap();
    server.run(&house, &["look around", "--replay", &path]).dir(&moved).run().expect(4);
}

fn plays_back(wire: Wire) {
    let house = House::with_greeter();
    let before = house.tree();
    let mut server = Server::start(
        wire,
        [
            say("I'll look.").and("read_file", json!({"path": "greet.sh"})),
            call("run_command", json!({"command": "wc -l greet.sh"})),
            call("edit_file", polite_edit()),
            say("Polite now."),
        ],
    );
    let cassette = house.at("cassette.jsonl").to_str().unwrap().to_owned();
    let task = ["--json", "make it polite"];
    let recorded =
        server.run(&house, &[&task[..], &["--record", &cassette]].concat()).run().expect(0).report();
    let text = std::fs::read_to_string(&cassette).unwrap();
    assert!(text.contains("Greets people"), "what was said is in it");
    assert!(!text.contains(KEY), "the key is not");

    house.jm(&["undo"]).run().expect(0);
    assert_eq!(house.tree(), before);
    server.stop();
    let replay = [&task[..], &["--replay", &cassette]].concat();
    let ran = server.run(&house, &replay).without("JM_API_KEY").run().expect(0);
    let replayed = ran.report();
    assert_eq!(replayed.text, recorded.text);
    assert_eq!(replayed.diff, recorded.diff);
    assert_eq!(replayed.summary, recorded.summary);
    assert_eq!(replayed.changes, recorded.changes);
    assert_eq!(replayed.usage, recorded.usage);
    assert_eq!(server.seen().len(), 4, "nothing went out");

    // Another task departs from the recording, and where it does is shown.
    house.jm(&["undo"]).run().expect(0);
    let other = ["make it rude", "--replay", &cassette];
    let ran = server.run(&house, &other).run().expect(1);
    ran.says(&["departs from the recording at exchange 1", "make it polite", "make it rude"]);
    assert_eq!(house.tree(), before);
}

#[test]
fn a_cassette_that_cannot_be_used_is_named() {
    let house = House::with_greeter();
    let server = Server::chat([say("Done.")]);
    let nowhere = house.at("no/such/dir/cassette").to_str().unwrap().to_owned();
    let torn = house.at("torn").to_str().unwrap().to_owned();
    std::fs::write(&torn, "{\"half\n").unwrap();
    for (flag, path) in [("--record", &nowhere), ("--replay", &nowhere), ("--replay", &torn)] {
        let ran = server.run(&house, &["look around", flag, path]).run();
        assert!([1, 2].contains(&ran.code()), "{flag}");
        ran.says(&[path]);
    }
    assert_eq!(server.seen().len(), 0);
}

#[test]
fn a_key_is_nowhere_but_in_its_header() {
    let house = House::with_greeter();
    house.configure("secrets = [\"MY_PASSWORD\"]\n");
    let password = "correct-horse-battery-staple";
    // The model repeats what it can't know, as one that was told would; a command prints all, a
    // file holds one.
    house.write("notes.txt", format!("the token is {TOKEN}\n"));
    let parrot = say(format!("They are {password}, {TOKEN} and {KEY}."));
    let server = Server::chat([
        parrot.clone().and("read_file", json!({"path": "notes.txt"})),
        call("search_text", json!({"pattern": "password|token|key"})),
        call("run_command", json!({"command": format!("cat notes.txt; echo {password} {KEY}")})),
        parrot,
    ]);
    let cassette = house.at("cassette.jsonl").to_str().unwrap().to_owned();
    let task = format!("look for {password}, {TOKEN} and {KEY}");
    let jm = server.run(&house, &["--stream-json", &task, "--record", &cassette]);
    let ran = jm.env("MY_PASSWORD", password).run().expect(4);

    for secret in [password, TOKEN, KEY] {
        assert!(!ran.stdout.contains(secret), "an event shows {secret}");
        // A file of the project is kept as it is, for the undo, and nowhere else.
        let holding = house.state_files_holding(secret);
        let pre_image = |path: &PathBuf| secret == TOKEN && path.starts_with("journeyman/blobs");
        assert!(holding.iter().all(pre_image), "{secret} is in {holding:?}");
        let results = server.seen().iter().map(|request| request.newest()).collect::<String>();
        assert!(!results.contains(secret), "a prompt holds {secret}");
    }
    assert!(!std::fs::read_to_string(&cassette).unwrap().contains(KEY));
    let shown = house.jm(&["show", "--json"]).run().expect(0);
    shown.prints(&["[secret]"]);
    let listed = house.jm(&["sessions"]).run().expect(0).stdout;
    assert!(![password, TOKEN, KEY].iter().any(|secret| listed.contains(secret)), "{listed}");
}

#[test]
fn a_secret_that_comes_in_pieces_is_not_shown() {
    let house = House::with_greeter();
    house.configure("secrets = [\"MY_PASSWORD\"]\n");
    let password = "correct-horse-battery-staple";
    let server = Server::chat([say(format!("They are {password}, {TOKEN} and {KEY}."))]);
    let jm = server.run(&house, &["--stream-json", "tell me"]).env("MY_PASSWORD", password);
    let ran = jm.run().expect(4);
    // The stream's pieces as a reader puts them together.
    let streamed: String = ran
        .events()
        .iter()
        .filter_map(|envelope| match &envelope.event {
            Event::TextDelta { text, .. } => Some(text.as_str()),
            _ => None,
        })
        .collect();
    for secret in [password, TOKEN, KEY] {
        assert!(!streamed.contains(secret), "the streamed text shows {secret}");
        assert!(!ran.stderr.contains(secret), "progress shows {secret}");
    }
}

#[test]
fn a_commands_environment_holds_no_secret() {
    if !needs(&["env"]) {
        return;
    }
    let house = House::with_greeter();
    let server =
        Server::chat([call("run_command", json!({"command": "env; cat /proc/*/environ"})), say("So.")]);
    let names = ["JM_API_KEY", "OPENAI_API_KEY", "AWS_SECRET_ACCESS_KEY", "MY_DATABASE", "SSH_AUTH_SOCK"];
    let jm =
        names.iter().fold(server.run(&house, &["look around"]), |jm, name| jm.env(name, "planted-value-77"));
    jm.run().expect(4);
    let told = server.seen()[1].newest();
    assert!(told.contains("PATH="), "{told}");
    for name in names {
        assert!(!told.contains(name), "{name} is in\n{told}");
    }
    assert!(!told.contains("planted-value-77"));
}

#[test]
fn what_is_kept_is_for_the_user_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let house = House::with_greeter();
    let server = Server::start(Wire::Chat, [call("edit_file", polite_edit()), say("Polite.")]);
    server.run(&house, &["--no-check", "make it polite"]).run().expect(4);
    let files = snapshot(&house.state());
    assert!(files.keys().any(|path| path.ends_with("sessions.db")), "{:?}", files.keys());
    for path in files.keys() {
        let place = house.state().join(path);
        let reachable = place
            .ancestors()
            .take_while(|dir| dir.starts_with(house.state()))
            .all(|part| std::fs::metadata(part).unwrap().permissions().mode() & 0o005 != 0);
        assert!(!reachable, "others can read {}", place.display());
    }
}
