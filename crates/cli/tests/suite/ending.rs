//! How a run ends, and with which exit code.

use std::ops::RangeInclusive;

use journeyman_protocol::{CheckOutcome, Event, Evidence, RunOutcome};
use serde_json::json;

use crate::support::{House, KEY, POLITE, Reply, Server, Step, call, needs, needs_sandbox, polite_edit, say};

/// An edit that changes the greeting and doesn't make it polite.
fn rude_edit() -> Reply {
    call("edit_file", json!({"path": "greet.sh", "search": "hello $1", "replace": "HELLO $1"}))
}

fn second_edit() -> Reply {
    call("edit_file", json!({"path": "greet.sh", "search": "HELLO $1", "replace": "Hello, $1!"}))
}

/// Rounds of verification of the newest session.
fn rounds(house: &House) -> usize {
    let shown = house.jm(&["show", "--json"]).run().expect(0);
    let started = |event: &Event| matches!(event, Event::VerifyStarted { .. });
    shown.events().iter().filter(|envelope| started(&envelope.event)).count()
}

#[test]
fn a_failed_check_goes_back_to_the_model_and_its_second_repair_passes() {
    if !needs(&["make"]) {
        return;
    }
    let house = House::with_greeter();
    let server = Server::chat([rude_edit(), say("Polite."), second_edit(), say("Polite now.")]);
    let ran = server.run(&house, &["--json", "make the greeting polite"]).run().expect(0);

    let report = ran.report();
    assert_eq!((report.outcome, report.iterations, report.turns), (RunOutcome::Verified, 1, 4));
    assert!(report.evidence.iter().all(|evidence| evidence.outcome.has_passed()), "only the last round's");
    assert_eq!(house.read("greet.sh"), POLITE);
    assert_eq!(rounds(&house), 2);
    let feedback = server.seen()[2].newest();
    for text in ["make test", "greet.sh", "greet says 'HELLO world' and not 'Hello, world!'"] {
        assert!(feedback.contains(text), "`{text}` is not in\n{feedback}");
    }
}

#[test]
fn checks_that_never_pass_end_in_3_after_the_rounds_allowed() {
    if !needs(&["make"]) {
        return;
    }
    let house = House::with_greeter();
    let server = Server::chat([rude_edit(), say("Polite."), say("It is."), say("I insist.")]);
    let ran = server.run(&house, &["--json", "--max-iterations", "2", "make it polite"]).run().expect(3);

    let report = ran.report();
    assert_eq!((report.outcome, report.iterations), (RunOutcome::ChecksFail, 2));
    assert!(report.summary.contains("2 rounds"), "{}", report.summary);
    assert!(matches!(report.evidence[0].outcome, CheckOutcome::Failed { exit_code: Some(2), .. }));
    assert!(report.evidence[0].output.contains("greet says"), "the proof has the output");
    assert_eq!((server.seen().len(), rounds(&house)), (4, 3));
    assert!(house.read("greet.sh").contains("HELLO"), "what was done is kept, to look at or undo");
}

#[test]
fn what_nothing_verified_ends_in_4() {
    if !needs(&["make"]) {
        return;
    }
    let edits = || vec![call("edit_file", polite_edit()), say("Polite.")];
    // The files to take away, the flags, the replies, and what the summary says.
    type Case<'a> = (&'a [&'a str], &'a [&'a str], Vec<Reply>, &'a str);
    let cases: &[Case<'_>] = &[
        (&["Makefile"], &[], edits(), "no check was found"),
        (&[], &["--no-check"], edits(), "--no-check"),
        (&[], &[], vec![say("It is polite enough.")], "no file changed"),
        (&[], &["--check", "jm-test-no-such-program"], edits(), "could not run"),
    ];
    for (without, flags, replies, wanted) in cases {
        let house = House::with_greeter();
        for path in *without {
            std::fs::remove_file(house.project().join(path)).unwrap();
        }
        let server = Server::chat(replies.clone());
        let report =
            server.run(&house, &[&["--json", "make it polite"], *flags].concat()).run().expect(4).report();
        assert_eq!(report.outcome, RunOutcome::Unverified, "{flags:?}");
        assert!(report.summary.contains(wanted), "{}", report.summary);
        let ran = |evidence: &Evidence| !matches!(evidence.outcome, CheckOutcome::NotRun { .. });
        assert!(!report.evidence.iter().any(ran), "nothing ran: {:?}", report.evidence);
    }
}

#[test]
fn a_check_of_the_users_own_takes_the_place_of_those_found() {
    if !needs_sandbox() {
        return;
    }
    let house = House::with_greeter();
    let server = Server::chat([call("edit_file", polite_edit()), say("Polite.")]);
    let flags =
        ["--json", "--check", "grep -q Hello greet.sh", "--check", "test -f Makefile", "make it polite"];
    let report = server.run(&house, &flags).run().expect(0).report();
    let commands: Vec<&str> = report.evidence.iter().map(|evidence| evidence.command.as_str()).collect();
    assert_eq!(commands, ["grep -q Hello greet.sh", "test -f Makefile"]);
}

#[test]
fn limits_end_in_5() {
    const PRICE: &str = "[providers.custom.models.tiny]\ninput = 1000000.0\noutput = 0\n";
    let busy = || (0..9).map(|_| Step::from(call("list_files", json!({})))).collect::<Vec<_>>();
    // Flags, configuration, replies, requests made, and what the summary names.
    type Case<'a> = (&'a [&'a str], &'a str, Vec<Step>, RangeInclusive<usize>, &'a str);
    let cases: Vec<Case<'_>> = vec![
        (&["--max-turns", "2"], "", busy(), 2..=2, "--max-turns"),
        (&["--budget", "0.01"], PRICE, busy(), 1..=1, "--budget"),
        // On a busy machine the time is over before anything is asked.
        (&["--timeout", "300ms"], "", vec![Step::Stall], 0..=1, "time ran out"),
        (&["--timeout", "1ms"], "", vec![Step::Stall], 0..=1, "time ran out"),
        (&["--max-turns", "9"], "", (0..9).map(|_| say("So…").cut_off().into()).collect(), 3..=3, "cut off"),
    ];
    for (flags, config, steps, requests, wanted) in cases {
        let house = House::with_greeter();
        house.configure(config);
        let before = house.tree();
        let server = Server::chat(steps);
        let flags = [flags, &["--json", "go on and on"]].concat();
        let report = server.run(&house, &flags).run().expect(5).report();
        assert_eq!(report.outcome, RunOutcome::Limit, "{flags:?}");
        assert!(report.summary.contains(wanted), "{flags:?}: {}", report.summary);
        assert!(requests.contains(&server.seen().len()), "{flags:?}");
        assert_eq!(house.tree(), before);
        assert_eq!(house.sessions()[0]["status"], "limit");
    }
}

#[test]
fn what_it_costs_is_said_where_the_price_is_known() {
    let house = House::with_greeter();
    house.configure(
        "[providers.custom.models.tiny]\ninput = 10.0\noutput = 100.0\ncache_read = 1.0\ncache_write = 0\n",
    );
    let server = Server::chat([say("Done.").costing(100_000, 1_000_000, 10_000)]);
    let ran = server.run(&house, &["look around"]).run().expect(4);
    ran.prints(&["1,100,000 tokens in (1,000,000 cached, 90 %), 10,000 out, $3.0000"]);
}

#[test]
fn a_budget_without_a_price_is_refused_before_anything_is_asked() {
    let house = House::with_greeter();
    let server = Server::chat([say("Done.")]);
    let ran = server.run(&house, &["--budget", "1", "make it polite"]).run().expect(2);
    ran.says(&["--budget", "custom/tiny", ".input"]);
    assert_eq!(server.seen().len(), 0);
    assert!(!house.at("state").exists(), "nothing was kept of a run that never began");
    assert!(!ran.stderr.contains(KEY));
}
