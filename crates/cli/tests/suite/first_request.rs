//! What the model is told before anything else, and that it stays the same from turn to turn.

use serde_json::{Value, json};

use crate::support::{House, Server, Wire, call, say};

#[test]
fn the_first_request_holds_the_task_the_instructions_the_map_and_the_files_named() {
    for wire in Wire::ALL {
        let house = House::with_greeter();
        house.configure("instructions = \"Answer in verse.\"\n");
        house.write("AGENTS.md", "Never touch the generated files.\n");
        house.write("src/deep/engine.rs", "fn spin() {}\n");
        house.write(".gitignore", "secret-build/\n");
        house.write("secret-build/out.o", "x");
        let server = Server::start(wire, [say("Done.")]);
        let ran = server.run(&house, &["make greet.sh polite"]).run().expect(4);
        ran.says(&["AGENTS.md"]);
        let body = server.seen()[0].body.to_string();
        for wanted in [
            "make greet.sh polite",
            "Answer in verse.",
            "Never touch the generated files.",
            "engine.rs",
            "Greets people.",
            "make test",
        ] {
            assert!(body.contains(wanted), "{}: `{wanted}` is not in\n{body}", wire.name());
        }
        assert!(!body.contains("out.o"), "what is ignored is not listed");
    }
}

#[test]
fn the_first_request_shows_the_files_that_the_user_has_open() {
    let house = House::with_greeter();
    house.write("src/deep/engine.rs", "fn spin_slowly() {}\n");
    house.write("src/deep/other.rs", "fn other() {}\n");
    let server = Server::start(Wire::Chat, [say("Done.")]);
    let absolute = house.project().join("greet.sh");
    let absolute = absolute.to_str().unwrap();
    server.run(&house, &["--open", "src/deep/engine.rs", "--open", absolute, "explain this"]).run().expect(4);
    let body = server.seen()[0].body.to_string();
    assert!(
        body.contains("fn spin_slowly") && body.contains("Files that the task names or the user has open")
    );
    assert!(!body.contains("fn other"));
    for (given, why) in
        [("src/none.rs", "No such file"), ("src", "no file of the project"), ("/etc/hosts", "no file")]
    {
        server.run(&house, &["--open", given, "explain this"]).run().expect(2).says(&["--open", given, why]);
    }
    assert_eq!(server.seen().len(), 1, "nothing is sent for a wrong path");
    let plan = house.jm(&["context", "explain this", "--open", "greet.sh", "--text"]).run().expect(0);
    plan.prints(&["Files that the task names or the user has open", "greet.sh"]);
}

#[test]
fn each_request_begins_as_the_one_before() {
    let conversation = |body: &Value| {
        let list = ["messages", "input", "contents"].iter().find_map(|key| body[*key].as_array());
        list.unwrap().clone()
    };
    // Anthropic's marker of what to cache moves along; the others have none.
    for wire in [Wire::Responses, Wire::Chat, Wire::Gemini] {
        let house = House::with_greeter();
        let server = Server::start(
            wire,
            [
                say("First.").and("read_file", json!({"path": "greet.sh"})),
                call("list_files", json!({})).and("search_text", json!({"pattern": "hello"})),
                call("write_file", json!({"path": "new.txt", "content": "new\n"})),
                say("Done."),
            ],
        );
        server.run(&house, &["--no-check", "look around"]).run().expect(4);
        let seen = server.seen();
        assert_eq!(seen.len(), 4);
        for pair in seen.windows(2) {
            let (mut earlier, mut later) = (pair[0].body.clone(), pair[1].body.clone());
            let (first, second) = (conversation(&earlier), conversation(&later));
            assert_eq!(second[..first.len()], first, "{}", wire.name());
            for body in [&mut earlier, &mut later] {
                for key in ["messages", "input", "contents"] {
                    body.as_object_mut().unwrap().remove(key);
                }
            }
            assert_eq!(earlier.to_string(), later.to_string(), "the rest is the same, in the same order");
        }
    }
}
