//! `jm run --candidates`, `jm candidates`: several sessions for one task.

use std::sync::atomic::{AtomicUsize, Ordering};

use journeyman_protocol::{CopyState, RunOutcome, RunReport};
use serde_json::{Value, json};

use crate::support::{House, Person, Reply, Seen, Server, Step, call, needs, say};

/// What each of three sessions does, in the order in which they ask first.
const VARIANTS: [&str; 3] = [
    // Polite, and much besides.
    "# Greets people.\n# Long.\n# Longer.\ngreet() {\n    echo \"Hello, $1!\"\n}\n",
    // As small as it gets.
    "# Greets people.\ngreet() {\n    echo \"Hello, $1!\"\n}\n",
    // Smaller still, and wrong.
    "# Greets people.\ngreet() {\n    echo \"HELLO $1\"\n}\n",
];

fn write(text: &str) -> Reply {
    call("write_file", json!({ "path": "greet.sh", "content": text }))
}

/// A model that does another thing in each session.
fn model() -> Server {
    let begun = AtomicUsize::new(0);
    Server::answering(move |_, seen: &Seen| -> Step {
        let said = seen.body["messages"].to_string();
        if !said.contains("\"assistant\"") {
            let text = VARIANTS[begun.fetch_add(1, Ordering::SeqCst) % VARIANTS.len()];
            let read = call("read_file", json!({ "path": "greet.sh" }));
            return read.and("write_file", json!({ "path": "greet.sh", "content": text })).into();
        }
        say("Done.").into()
    })
}

fn run(house: &House, flags: &[&str]) -> (Server, RunReport) {
    let server = model();
    let all = [&["--candidates", "3", "--max-iterations", "1", "--json"], flags, &["be polite"]].concat();
    let report = server.run(house, &all).run().expect(0).report();
    (server, report)
}

#[test]
fn the_smallest_verified_change_comes_first_and_all_are_kept() {
    if !needs(&["make"]) {
        return;
    }
    let house = House::with_greeter();
    let before = house.tree();
    let (server, report) = run(&house, &[]);
    assert_eq!(house.tree(), before, "nobody said that one is to be landed");

    let seen = server.seen();
    let first: Vec<&Seen> =
        seen.iter().filter(|seen| !seen.body["messages"].to_string().contains("\"assistant\"")).collect();
    assert_eq!(first.len(), 3);
    assert!(first.iter().all(|one| one.body == first[0].body), "they begin with the same request");

    let outcomes: Vec<Option<RunOutcome>> = report.candidates.iter().map(|one| one.outcome).collect();
    assert_eq!(
        outcomes,
        [Some(RunOutcome::Verified), Some(RunOutcome::Verified), Some(RunOutcome::ChecksFail)]
    );
    let sizes: Vec<(u64, u64)> = report.candidates.iter().map(|one| (one.added, one.removed)).collect();
    assert_eq!(sizes, [(1, 1), (3, 1), (1, 1)]);
    assert!(report.candidates.iter().all(|one| one.state == CopyState::Kept && one.files == 1));
    assert_eq!(report.session, report.candidates[0].session);

    let listed = house.jm(&["candidates", "--json"]).run().expect(0);
    let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
    assert_eq!(listed["candidates"], serde_json::to_value(&report.candidates).unwrap());
    let parent = listed["parent"].as_str().unwrap();

    let session = report.session.to_string();
    house.jm(&["candidates", &session]).run().expect(0).prints(&[
        "[1]",
        "[2]",
        "[3]",
        "verified",
        "checks fail",
    ]);
    house.jm(&["land", &session]).run().expect(0).prints(&["landed: 1 file"]);
    assert_eq!(house.read("greet.sh"), VARIANTS[1]);
    house.jm(&["discard", "--yes", "--all", parent]).run().expect(0);
    let listed = house.jm(&["candidates", parent, "--json"]).run().expect(0);
    let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
    let states: Vec<&str> =
        listed["candidates"].as_array().unwrap().iter().map(|one| one["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["landed", "discarded", "discarded"]);
    assert!(house.sessions().iter().all(|session| session["copy"] == Value::Null));
    house.jm(&["undo", &session]).run().expect(0);
    assert_eq!(house.tree(), before);
}

#[test]
fn a_flag_lands_the_best() {
    if !needs(&["make"]) {
        return;
    }
    let house = House::with_greeter();
    let (_, report) = run(&house, &["--land"]);
    assert_eq!(house.read("greet.sh"), VARIANTS[1]);
    assert_eq!(report.copy.unwrap().state, CopyState::Landed);
    let states: Vec<CopyState> = report.candidates.iter().map(|one| one.state).collect();
    assert_eq!(states, [CopyState::Landed, CopyState::Kept, CopyState::Kept]);
}

#[test]
fn progress_says_whose_it_is_and_a_person_picks() {
    if !needs(&["make", "setsid"]) {
        return;
    }
    let house = House::with_greeter();
    let server = model();
    let flags = ["--candidates", "3", "--max-iterations", "1", "be polite"];
    let mut person = Person::start(server.run(&house, &flags).env("NO_COLOR", "1").command());
    person.sees("candidates  3 sessions");
    person.sees("Land candidate");
    person.types("7\n");
    person.sees("there are: y, n");
    person.types("y\n");
    person.sees("landed");
    let (code, screen) = person.ends();
    assert_eq!(code, 0, "{screen}");
    for number in 1..=3 {
        assert!(screen.contains(&format!("[{number}] ")), "{screen}");
    }
    assert_eq!(house.read("greet.sh"), VARIANTS[1]);
}

#[test]
fn one_budget_is_for_all() {
    if !needs(&["make"]) {
        return;
    }
    let house = House::with_greeter();
    // A request costs a dollar: after two of them nobody asks again.
    let dear = Reply { usage: (1_000_000, 0, 0), ..write(VARIANTS[2]) };
    let server = Server::answering(move |_, _| Step::from(dear.clone()));
    house.configure(
        "[providers.own]\nwire = \"chat\"\n[providers.own.models.\"tiny\"]\ninput = 1.0\noutput = 1.0\n",
    );
    let url = server.url();
    let arguments =
        ["run", "--model", "own/tiny", "--candidates", "2", "--budget", "2.5", "--json", "be polite"];
    house.configure(&format!(
        "[providers.own]\nwire = \"chat\"\nbase_url = \"{url}\"\nkey_env = [\"OWN_KEY\"]\n\
         [providers.own.models.\"tiny\"]\ninput = 1.0\noutput = 1.0\n"
    ));
    let report = house.jm(&arguments).env("OWN_KEY", "sk-own-key-0123456789").run().expect(5).report();
    assert!(
        report.candidates.iter().all(|one| one.outcome == Some(RunOutcome::Limit)),
        "{:?}",
        report.candidates
    );
    let asked = server.seen().len();
    assert!((3..=4).contains(&asked), "{asked} requests of a dollar each");
}
