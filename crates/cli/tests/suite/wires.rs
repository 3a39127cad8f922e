//! The main job through each of the four wire protocols: read, edit, check, done.

use journeyman_protocol::{
    CheckKind, CheckOutcome, FileChange, FileChangeKind, RelPath, RunOutcome, SandboxTier, Tokens, Usage,
};
use serde_json::json;

use crate::support::{House, KEY, POLITE, Server, Wire, call, needs, polite_edit, say};

#[test]
fn a_task_in_a_repository_ends_verified_over_every_wire() {
    if !needs(&["git", "make"]) {
        return;
    }
    for wire in Wire::ALL {
        verified(wire);
    }
}

fn verified(wire: Wire) {
    let house = House::with_repository();
    let server = Server::start(
        wire,
        [
            say("I'll look at it first.").and("read_file", json!({"path": "greet.sh"})),
            call("edit_file", polite_edit()),
            say("The greeting is polite now."),
        ],
    );
    let ran = server.run(&house, &["--json", "make the greeting polite"]).run().expect(0);

    let report = ran.report();
    assert_eq!(report.outcome, RunOutcome::Verified);
    assert_eq!(report.text, "The greeting is polite now.");
    assert_eq!(report.model, "custom/tiny");
    assert_eq!((report.turns, report.iterations), (3, 0));
    let usage = Usage { input: Tokens(300), cache_read: Tokens(120), output: Tokens(30), ..Usage::default() };
    assert_eq!(report.usage, usage, "{}", wire.name());
    assert_eq!(report.cost_usd, None, "nobody said what it costs");
    let path = RelPath::parse("greet.sh").unwrap();
    assert_eq!(report.changes, [FileChange { path, kind: FileChangeKind::Modified }]);
    assert_eq!(report.undo.as_deref(), Some(format!("jm undo {}", report.session).as_str()));
    for line in ["--- a/greet.sh", "+++ b/greet.sh", "-    echo \"hello $1\"", "+    echo \"Hello, $1!\""] {
        assert!(report.diff.lines().any(|its| its == line), "{line}\n{}", report.diff);
    }

    let [evidence] = report.evidence.as_slice() else { panic!("one check, not {:?}", report.evidence) };
    assert_eq!((evidence.kind, evidence.command.as_str()), (CheckKind::Test, "make test"));
    assert_eq!(evidence.outcome, CheckOutcome::Passed);
    let enforced = &evidence.enforcement;
    assert_eq!(enforced.tier, SandboxTier::Namespaces);
    assert!(enforced.writes_confined && enforced.network_off && enforced.privileges_dropped, "{enforced:?}");

    assert_eq!(house.read("greet.sh"), POLITE, "the file's own indentation is kept");
    assert_eq!(house.git(&["status", "--porcelain"]), " M greet.sh\n");
    asked(wire, &server);
}

/// The three requests: where they went, with what key, and what each says that is new.
fn asked(wire: Wire, server: &Server) {
    let seen = server.seen();
    assert_eq!(seen.len(), 3);
    let (name, value) = wire.key_header(KEY);
    for request in &seen {
        assert_eq!(request.path, wire.path());
        assert_eq!(request.header(name), Some(value.as_str()));
        let tools = [
            "read_file",
            "list_files",
            "search_text",
            "search_code",
            "get_symbols",
            "find_references",
            "get_dependencies",
            "git_history",
            "git_blame",
            "edit_file",
            "write_file",
            "edit_symbol",
            "delete_file",
            "move_file",
            "run_command",
            "command_output",
            "stop_command",
            "remember",
            "ask_user",
            "todo_read",
            "todo_write",
            "task",
        ];
        assert_eq!(request.tools(), tools);
        assert!(!request.body.to_string().contains(KEY), "the key is in a header and nowhere else");
    }
    for (request, wanted) in seen.iter().zip([
        &["make the greeting polite", "Makefile", "greet.sh"][..],
        &["echo \"hello $1\""],
        &["Edited greet.sh", "didn't match exactly"],
    ]) {
        for text in wanted {
            assert!(
                request.newest().contains(text),
                "{}: `{text}` is not in\n{}",
                wire.name(),
                request.newest()
            );
        }
    }
}

#[test]
fn calls_of_one_reply_are_answered_in_order() {
    for wire in Wire::ALL {
        let house = House::with_greeter();
        let calls = say("")
            .and("read_file", json!({"path": "greet.sh"}))
            .and("read_file", json!({"path": "nowhere.sh"}))
            .and("read_file", json!({"path": "Makefile"}));
        let server = Server::start(wire, [calls, say("That was all.")]);
        server.run(&house, &["look around"]).run().expect(4);

        let newest = server.seen()[1].newest();
        let place = |text: &str| newest.find(text).unwrap_or_else(|| panic!("`{text}` is not in\n{newest}"));
        assert!(place("Greets people") < place("nowhere.sh"), "{}", wire.name());
        assert!(place("nowhere.sh") < place("sh test.sh"), "{}", wire.name());
    }
}
