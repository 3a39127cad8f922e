//! Models without tool calling: edits out of the text.

use journeyman_protocol::RunOutcome;
use rustix::process::Signal;

use crate::support::{House, KEY, POLITE, Server, Step, Wire, needs, refuse, say};

/// The edit that makes the greeting polite, as a model without tools writes it.
const BLOCK: &str = "I'll make it polite.\n\n<edit>\n<file>greet.sh</file>\n<search>\ngreet() {\n  echo \"hello $1\"\n}\n\
                     </search>\n<replace>\ngreet() {\n  echo \"Hello, $1!\"\n}\n</replace>\n\
                     <description>Politeness</description>\n</edit>\n";

fn without_tools(house: &House) {
    house.configure("[providers.custom]\ntool_calling = false\n");
}

#[test]
fn edit_blocks_make_a_verified_change() {
    if !needs(&["make"]) {
        return;
    }
    for wire in Wire::ALL {
        let house = House::with_greeter();
        without_tools(&house);
        let server = Server::start(wire, [say(BLOCK), say("The greeting is polite now.")]);
        let report = server.run(&house, &["--json", "make it polite"]).run().expect(0).report();
        assert_eq!(report.outcome, RunOutcome::Verified, "{}", wire.name());
        assert_eq!(house.read("greet.sh"), POLITE);
        let seen = server.seen();
        assert_eq!(seen[0].tools(), [""; 0], "no tools are offered");
        assert!(seen[0].body.to_string().contains("<edit>"), "the format is explained");
        assert!(seen[1].newest().contains("Changed greet.sh"), "{}", seen[1].newest());
    }
}

#[test]
fn a_provider_that_refuses_tools_is_asked_again_without_them() {
    if !needs(&["make"]) {
        return;
    }
    for wire in Wire::ALL {
        let house = House::with_greeter();
        let server = Server::start(
            wire,
            [
                refuse(wire, 400, "invalid_request_error", "tiny does not support tools"),
                Step::from(say(BLOCK)),
                Step::from(say("The greeting is polite now.")),
            ],
        );
        let ran = server.run(&house, &["make it polite"]).run().expect(0);
        ran.says(&["does not take tool calls"]);
        assert_eq!(house.read("greet.sh"), POLITE);
        let seen = server.seen();
        assert_eq!(seen.len(), 3);
        assert!(!seen[0].tools().is_empty());
        assert_eq!(seen[1].tools(), [""; 0]);
        assert!(seen[1].newest().contains("make it polite"), "the task comes again");
    }
}

#[test]
fn a_block_that_cannot_be_placed_goes_back_to_the_model() {
    if !needs(&["make"]) {
        return;
    }
    let house = House::with_greeter();
    without_tools(&house);
    let wrong = BLOCK.replace("hello $1", "good morning, dear $1");
    let server = Server::chat([say(&wrong), say(BLOCK), say("Polite.")]);
    server.run(&house, &["make it polite"]).run().expect(0);
    let told = server.seen()[1].newest();
    assert!(told.contains("greet.sh") && told.contains("hello $1"), "what is there is shown\n{told}");
    assert_eq!(house.read("greet.sh"), POLITE);
}

#[test]
fn a_block_that_was_cut_off_is_never_applied() {
    let house = House::with_greeter();
    without_tools(&house);
    let before = house.tree();
    let half = BLOCK.split("</replace>").next().unwrap().to_owned();
    let server = Server::chat([say(half).cut_off(), say("I give up.")]);
    server.run(&house, &["make it polite"]).run().expect(4);
    assert_eq!(house.tree(), before);
}

#[test]
fn a_session_that_was_cut_off_goes_on_without_tools() {
    if !needs(&["make"]) {
        return;
    }
    let house = House::with_greeter();
    let refused = refuse(Wire::Chat, 400, "invalid_request_error", "tiny does not support tools");
    let server = Server::chat([refused, say(BLOCK).into(), Step::Stall, say("It is polite now.").into()]);
    let running = server.run(&house, &["make it polite"]).start();
    server.wait_for(3);
    running.signal(Signal::KILL);
    running.gone();
    house.jm(&["resume"]).env("JM_API_KEY", KEY).run().expect(0).prints(&["verified"]);
    let seen = server.seen();
    assert_eq!(seen.len(), 4);
    assert_eq!(seen[3].body, seen[2].body, "the same is asked, without tools");
    assert_eq!(house.read("greet.sh"), POLITE);
    let exported = house.jm(&["export", "last", "--format", "openai"]).run().expect(0).stdout;
    assert!(exported.contains("<edit>") && exported.contains("Changed greet.sh"), "{exported}");
}
