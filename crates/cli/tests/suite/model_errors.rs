//! Models that aren't there, refuse, stumble, or make no sense.

use journeyman_protocol::{Event, RunOutcome};
use serde_json::json;

use crate::support::{House, KEY, Server, Step, Wire, call, refuse, say};

#[test]
fn without_a_key_it_says_which_variable_to_set_before_anything_happens() {
    // The flags, and what is named: the variable and a way without a key.
    let cases: &[(&[&str], &[&str])] = &[
        (&[], &["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "ollama/NAME", "jm demo"]),
        (&["--model", "openai/gpt-5"], &["OPENAI_API_KEY", "ollama/NAME"]),
        (&["--model", "anthropic/claude-sonnet-4-5"], &["ANTHROPIC_API_KEY", "ollama/NAME"]),
        (&["--model", "gemini/gemini-2.5-pro"], &["GEMINI_API_KEY or GOOGLE_API_KEY", "ollama/NAME"]),
    ];
    for (flags, wanted) in cases {
        let house = House::with_greeter();
        let before = house.tree();
        let ran = house.jm(&[&["run", "make it polite"], *flags].concat()).run().expect(2);
        ran.says(wanted);
        assert_eq!(ran.stdout, "");
        assert!(!house.at("state").exists(), "nothing was created");
        assert_eq!(house.tree(), before);
    }
}

#[test]
fn a_name_that_leads_nowhere_is_told_the_nearest() {
    let house = House::new();
    for (model, wanted) in [
        ("antropic/claude-sonnet-4-5", &["`antropic`", "did you mean anthropic/claude-sonnet-4-5?"][..]),
        ("olama/llama3", &["did you mean ollama/llama3?"]),
        ("nobody/x", &["`nobody`", "openrouter", "[providers.nobody]"]),
        ("gpt-5", &["`gpt-5` names no provider", "did you mean openai/gpt-5?"]),
        ("tiny", &["`tiny` is not a model", "provider/name"]),
        ("openai/", &["`openai/` is not a model"]),
    ] {
        house.jm(&["run", "look around", "--model", model]).run().expect(2).says(wanted);
    }
    assert!(!house.at("state").exists());
}

#[test]
fn a_refused_key_names_its_variable() {
    for wire in Wire::ALL {
        let house = House::with_greeter();
        let server = Server::start(wire, [refuse(wire, 401, "authentication_error", "that key is wrong")]);
        let ran = server.run(&house, &["look around"]).run().expect(1);
        ran.says(&["that key is wrong", "JM_API_KEY"]);
        assert_eq!(server.seen().len(), 1, "a refused key is not tried again");
        assert!(!ran.stderr.contains(KEY) && !ran.stdout.contains(KEY));
        assert_eq!(house.sessions()[0]["status"], "error");

        let server = Server::start(wire, [refuse(wire, 401, "authentication_error", "that key is wrong")]);
        house.configure(&format!(
            "[providers.mine]\nwire = \"{}\"\nbase_url = \"{}\"\nkey_env = [\"MINE_KEY\"]\n",
            wire.name(),
            server.url()
        ));
        let jm = house.jm(&["run", "--model", "mine/tiny", "look around"]).env("MINE_KEY", KEY);
        jm.run().expect(1).says(&["that key is wrong", "MINE_KEY"]);
        let (name, value) = wire.key_header(KEY);
        assert_eq!(server.seen()[0].header(name), Some(value.as_str()));
    }
}

#[test]
fn an_endpoint_that_wants_no_key_gets_none() {
    for wire in Wire::ALL {
        let house = House::with_greeter();
        let server = Server::start(wire, [say("Hello.")]);
        // Another provider's key is set, and isn't for this address.
        let jm = server.run(&house, &["look around"]).without("JM_API_KEY").env("OPENAI_API_KEY", KEY);
        jm.run().expect(4);
        let headers = &server.seen()[0].headers;
        assert!(!headers.iter().any(|(_, value)| value.contains(KEY)), "{headers:?}");
        let (name, _) = wire.key_header(KEY);
        assert_eq!(server.seen()[0].header(name), None);
    }
}

#[test]
fn an_unknown_model_is_told_the_providers_words_and_the_near_names() {
    for wire in Wire::ALL {
        let house = House::with_greeter();
        let refusal = refuse(wire, 404, "not_found_error", "model tiny not found");
        let server = Server::start(wire, [refusal]).listing(&["tiny-2", "tiny-3-preview", "embedder"]);
        let ran = server.run(&house, &["look around"]).run().expect(1);
        ran.says(&["model tiny not found", "tiny-2", "tiny-3-preview"]);
        assert!(!ran.stderr.contains("embedder"), "{}", ran.stderr);
    }
}

#[test]
fn without_a_network_the_session_is_kept_and_the_tree_as_it_was() {
    let house = House::with_greeter();
    let before = house.tree();
    let mut server = Server::chat([say("Done.")]);
    server.stop();
    let ran = server.run(&house, &["--json", "look around"]).run().expect(1);
    let report = ran.report();
    assert_eq!(report.outcome, RunOutcome::Error);
    assert!(report.summary.contains(&server.url()), "{}", report.summary);
    ran.says(&["error:", &server.url()]);
    assert_eq!(house.sessions()[0]["status"], "error");
    assert_eq!(house.tree(), before);
}

#[test]
fn what_passes_is_waited_out() {
    let limit = |headers| Step::Refuse(429, headers, Wire::Chat.error(429, "rate_limit_error", "slow down"));
    let busy = |headers| Step::Refuse(503, headers, Wire::Chat.error(503, "overloaded_error", "too busy"));
    let cases: Vec<(Step, &str)> = vec![
        (limit(vec![("retry-after-ms", "5")]), "slow down"),
        (limit(vec![("retry-after", "0")]), "slow down"),
        (busy(vec![("retry-after-ms", "5")]), "too busy"),
        (
            Step::Cut(say("A reply that breaks off before it is whole, and says much until then.")),
            "ended early",
        ),
    ];
    for (step, wanted) in cases {
        let house = House::with_greeter();
        let server = Server::chat([step, say("Here I am.").into()]);
        let ran = server.run(&house, &["--json", "look around"]).run().expect(4);
        assert_eq!(ran.report().text, "Here I am.", "nothing is kept of what broke off");
        assert_eq!(ran.report().turns, 1);
        ran.says(&[wanted, "attempt 2 of"]);
        let seen = server.seen();
        assert_eq!(seen.len(), 2);
        assert_eq!(seen[0].body, seen[1].body, "the same request again");
    }
}

#[test]
fn a_wait_too_long_is_not_waited() {
    let house = House::with_greeter();
    let wait = vec![("retry-after", "86400")];
    let server =
        Server::chat([Step::Refuse(429, wait, Wire::Chat.error(429, "rate_limit_error", "slow down"))]);
    server.run(&house, &["look around"]).run().expect(1).says(&["slow down", "86400 s"]);
}

#[test]
fn arguments_that_are_no_json_reach_the_model_as_an_error_and_never_run() {
    for wire in [Wire::Anthropic, Wire::Responses, Wire::Chat] {
        for broken in ["{\"path\": \"new.txt\", \"content\": \"x", "{path: new.txt}", "[1", "{}}"] {
            let house = House::with_greeter();
            let before = house.tree();
            let server = Server::start(wire, [say("").and_raw("write_file", broken), say("I see.")]);
            server.run(&house, &["make a file"]).run().expect(4);
            assert_eq!(house.tree(), before);
            let told = server.seen()[1].newest();
            assert!(told.contains("not valid JSON"), "{} {broken}: {told}", wire.name());
            let shown = house.jm(&["show", "--json"]).run().expect(0);
            let executed = |event: &Event| matches!(event, Event::ToolExecuted { record } if record.started_at().is_some());
            assert!(!shown.events().iter().any(|envelope| executed(&envelope.event)), "{broken}");
        }
    }
}

#[test]
fn calls_that_make_no_sense_are_told_what_would() {
    // The tool, its arguments, and what the model is told.
    let cases = [
        ("bash", json!({"command": "ls"}), "did you mean `run_command`?"),
        ("raed_file", json!({"path": "greet.sh"}), "did you mean `read_file`?"),
        ("launch_rocket", json!({}), "there is no tool `launch_rocket`"),
        ("read_file", json!({}), "path"),
        ("read_file", json!({"path": "greet"}), "greet.sh"),
        ("read_file", json!({"path": "../../etc/passwd"}), "beneath the project"),
        ("read_file", json!({"path": "/etc/passwd"}), "/etc/passwd"),
        ("write_file", json!({"path": "greet.sh", "content": "x"}), "have not read it"),
        ("edit_file", json!({"path": "greet.sh", "search": "goodbye", "replace": "x"}), "greet.sh"),
    ];
    for (tool, input, wanted) in cases {
        let house = House::with_greeter();
        let before = house.tree();
        let server = Server::chat([call(tool, input), say("I see.")]);
        server.run(&house, &["do something"]).run().expect(4);
        let told = server.seen()[1].newest();
        assert!(told.contains(wanted), "{tool}: `{wanted}` is not in\n{told}");
        assert!(!told.contains("root:x:0"), "{told}");
        assert_eq!(house.tree(), before, "{tool}");
    }
}

#[test]
fn a_reply_with_nothing_in_it_ends_the_run() {
    for wire in Wire::ALL {
        let house = House::with_greeter();
        let server = Server::start(wire, [say("")]);
        let report = server.run(&house, &["--json", "look around"]).run().expect(4).report();
        assert_eq!((report.text.as_str(), report.turns), ("", 1), "{}", wire.name());
    }
}

#[test]
fn a_script_stands_in_for_a_model() {
    let house = House::with_greeter();
    let script = house.at("script.json");
    let run = |text: &str| {
        std::fs::write(&script, text).unwrap();
        house.jm(&["run", "look around", "--model", &format!("scripted/{}", script.display())]).run()
    };
    run(r#"{"replies": [{"text": "All is well."}]}"#).expect(4).prints(&["All is well.", "$0.0000"]);
    run(r#"{"replies": [{"calls": [{"name": "list_files"}]}]}"#).expect(1).says(&["this is request 2"]);
    run(r#"{"replies": [{"expect": "no such words", "text": "x"}]}"#).expect(1).says(&["no such words"]);
    run("{").expect(2).says(&[script.to_str().unwrap()]);
    std::fs::remove_file(&script).unwrap();
    let gone = format!("scripted/{}", script.display());
    house.jm(&["run", "look around", "--model", &gone]).run().expect(2).says(&[script.to_str().unwrap()]);
}
