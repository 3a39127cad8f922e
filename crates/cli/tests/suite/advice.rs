//! What is printed for mistakes that newcomers make: the mistake, and what to do about it.

use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use serde_json::json;

use crate::support::{
    House, Jm, Person, Ran, Server, Step, Wire, call, has_program, needs, needs_sandbox, refuse, say,
};

/// The error as it is printed, from its first line on, with the test's directory as `HOUSE`.
fn error_text(house: &House, ran: &Ran) -> String {
    let from = ran.stderr.find("error:").unwrap_or_else(|| panic!("no error in\n{}", ran.stderr));
    ran.stderr[from..].trim_end().replace(house.at("").to_str().unwrap().trim_end_matches('/'), "HOUSE")
}

/// The first line of the error.
fn error_line(house: &House, ran: &Ran) -> String {
    error_text(house, ran).lines().next().unwrap_or_default().to_owned()
}

#[test]
fn a_missing_key_for_an_address_names_the_variable() {
    for wire in Wire::ALL {
        let house = House::with_greeter();
        let server = Server::start(wire, [refuse(wire, 401, "authentication_error", "no key was sent")]);
        let ran = server.run(&house, &["look around"]).without("JM_API_KEY").run().expect(1);
        assert_eq!(
            error_line(&house, &ran),
            "error: the provider refused the key or its rights: no key was sent; set JM_API_KEY"
        );
    }
}

#[test]
fn an_unknown_key_is_told_the_nearest_of_its_table() {
    let file = "error: HOUSE/config/journeyman/config.toml";
    for (text, said) in [
        ("[tools]\ncurrency = 3\n", ":2: unknown key `tools.currency`; did you mean `tools.concurrency`?"),
        ("modle = \"x\"\n", ":1: unknown key `modle`; did you mean `model`?"),
        ("[toolz]\nconcurrency = 3\n", ":1: unknown key `toolz`; did you mean `tools`?"),
        (
            "[providers.x]\nbase_ulr = \"x\"\n",
            ":2: unknown key `providers.x.base_ulr`; did you mean `providers.x.base_url`?",
        ),
        ("[sandbox]\nweather = 1\n", ":2: unknown key `sandbox.weather`"),
    ] {
        let house = House::new();
        house.configure(text);
        let ran = house.jm(&["config"]).run().expect(2);
        assert_eq!(error_text(&house, &ran), format!("{file}{said}"), "{text}");
    }
}

#[test]
fn a_model_without_its_provider_is_completed() {
    for (model, said) in [
        ("gpt-5", "error: `gpt-5` names no provider; did you mean openai/gpt-5?"),
        (
            "claude-sonnet-4-5",
            "error: `claude-sonnet-4-5` names no provider; did you mean anthropic/claude-sonnet-4-5?",
        ),
        ("Gemini-2.5-pro", "error: `Gemini-2.5-pro` names no provider; did you mean gemini/Gemini-2.5-pro?"),
        ("gpt-oss:20b", "error: `gpt-oss:20b` names no provider; did you mean ollama/gpt-oss:20b?"),
        ("llama3", "error: `llama3` names no provider; did you mean ollama/llama3?"),
    ] {
        let house = House::new();
        let ran = house.jm(&["run", "look around", "--model", model]).run().expect(2);
        assert_eq!(error_text(&house, &ran), said);
    }
}

#[test]
fn a_protocol_without_an_address_asks_for_the_address() {
    let house = House::new();
    let ran = house.jm(&["run", "look around", "--wire", "chat", "--model", "m"]).run().expect(2);
    assert_eq!(
        error_text(&house, &ran),
        "error: --wire chat needs --base-url URL, the address of the server that speaks it; the protocol of a known \
         provider is known"
    );
}

#[test]
fn an_address_without_a_scheme_is_completed() {
    for (url, whole) in [
        ("127.0.0.1:18101", "http://127.0.0.1:18101"),
        ("localhost:8080/v1", "http://localhost:8080/v1"),
        ("models.example.com/v1", "https://models.example.com/v1"),
    ] {
        let house = House::new();
        let words = ["run", "look around", "--wire", "chat", "--model", "m", "--base-url", url];
        let ran = house.jm(&words).run().expect(2);
        assert_eq!(
            error_text(&house, &ran),
            format!("error: the endpoint of custom can't be used: `{url}` lacks its scheme; write {whole}")
        );
    }
}

#[test]
fn a_wrong_path_asks_whether_the_address_is_right() {
    let house = House::with_greeter();
    let page = "<html><body><center><h1>404 Not Found</h1></center></body></html>".to_owned();
    let server = Server::chat([Step::Refuse(404, Vec::new(), page)]);
    let url = format!("{}/wrong", server.url());
    let words = ["run", "look around", "--wire", "chat", "--model", "m", "--base-url", &url];
    let ran = house.jm(&words).run().expect(1);
    assert_eq!(
        error_line(&house, &ran),
        format!(
            "error: the provider answered with status 404: 404 Not Found; is the base URL right? The request went to \
             {url}/v1/chat/completions"
        )
    );
}

#[test]
fn a_context_that_is_full_is_not_told_to_send_the_same_again() {
    let house = House::with_greeter();
    let full = || refuse(Wire::Chat, 400, "invalid_request_error", "maximum context length is 4096 tokens");
    // Each run shortens the request once and sends it again.
    let server = Server::chat([full(), full(), full(), full(), say("Here I am.").into()]);
    let ran = server.run(&house, &["look around"]).run().expect(1);
    assert_eq!(
        error_line(&house, &ran),
        "error: the request is longer than the model's context: maximum context length is 4096 tokens; begin a new \
         session with less in it, or go on with a model that has a larger context"
    );
    let session = house.sessions()[0]["id"].as_str().unwrap().to_owned();
    let told = ran.stdout.lines().find(|line| line.starts_with("go on with")).unwrap();
    assert_eq!(told, format!("go on with: jm resume {session} --model PROVIDER/NAME \"go on\""));
    assert!(server.run(&house, &["--json", "look around"]).run().expect(1).report().context_exceeded);

    let larger =
        ["resume", &session, "--model", "larger", "--base-url", &server.url(), "--wire", "chat", "go on"];
    house.jm(&larger).run().expect(4).prints(&["Here I am."]);
}

#[test]
fn a_task_too_long_is_refused_before_there_is_a_session() {
    let house = House::with_greeter();
    let server = Server::chat([say("Done.")]);
    let task = house.at("task.txt");
    std::fs::write(&task, "make it polite\n".repeat(140_000)).unwrap();
    let ran = server.run(&house, &["--file", task.to_str().unwrap()]).run().expect(2);
    let said = error_text(&house, &ran);
    let (begin, rest) = said.split_once(" tokens").unwrap();
    assert!(begin.starts_with("error: the task has about "), "{said}");
    assert_eq!(
        rest,
        ", and the context may have 20000; shorten it, or put the long part into a file of the project and name that. \
         The limit is `context_tokens` in your configuration (or $JM_CONTEXT_TOKENS)"
    );
    assert!(house.sessions().is_empty());
    assert_eq!(server.seen().len(), 0);
    house.configure("context_tokens = 2000000\n");
    server.run(&house, &["--file", task.to_str().unwrap()]).run().expect(4);
}

#[test]
fn a_project_that_cannot_be_read_is_named() {
    let house = House::with_greeter();
    let place = house.at("closed");
    std::fs::create_dir(&place).unwrap();
    let jm = || {
        let inner = house.jm(&["config", "-C", place.to_str().unwrap()]).command();
        // Root reads everything, unless it gives up its right to.
        let mut command = match rustix::process::geteuid().is_root() {
            true => Command::new("setpriv"),
            false => Command::new("env"),
        };
        if rustix::process::geteuid().is_root() {
            command.arg("--bounding-set=-dac_override,-dac_read_search");
        }
        command.arg(inner.get_program()).args(inner.get_args()).current_dir(house.project()).env_clear();
        command.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
        Jm::new(command)
    };
    if rustix::process::geteuid().is_root() && !has_program("setpriv") {
        eprintln!("skipped: setpriv is missing");
        return;
    }
    for mode in [0o000, 0o400, 0o100] {
        std::fs::set_permissions(&place, std::fs::Permissions::from_mode(mode)).unwrap();
        assert_eq!(
            error_text(&house, &jm().run().expect(2)),
            "error: cannot read the project HOUSE/closed: Permission denied (os error 13); run jm as the user who may, \
             or give another directory with -C",
            "{mode:o}"
        );
    }
    std::fs::set_permissions(&place, std::fs::Permissions::from_mode(0o700)).unwrap();
}

#[test]
fn a_demo_whose_cargo_does_not_run_says_what_does_not() {
    if !needs_sandbox() {
        return;
    }
    let house = House::new();
    let shims = house.at("shims");
    std::fs::create_dir(&shims).unwrap();
    let shim = "#!/bin/sh\necho 'error: rustup could not choose a version of cargo to run.' >&2\necho \"help: run \
                'rustup default stable'\" >&2\nexit 1\n";
    std::fs::write(shims.join("cargo"), shim).unwrap();
    std::fs::set_permissions(shims.join("cargo"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let ran = house.jm(&["demo"]).env("PATH", format!("{}:/usr/bin:/bin", shims.display())).run().expect(8);
    assert_eq!(
        ran.stderr,
        "the demo's project is in Rust, and `cargo` doesn't run here: rustup could not choose a version of cargo to \
         run. help: run 'rustup default stable'\n"
    );
}

#[test]
fn a_question_without_an_answer_is_an_error() {
    let house = House::new();
    let server = Server::chat([say(""), say("")]);
    let ran = server.command(&house, &["ask"], &["what is this?"]).run().expect(1);
    ran.prints(&["the model's reply is empty, so nothing is answered"]);
    let ran = server.run(&house, &["what is this?"]).run().expect(4);
    ran.prints(&["no file changed, and the model's last reply is empty"]);
}

#[test]
fn a_call_that_fails_beside_others_is_named() {
    let house = House::new();
    house.write("there", "x");
    let read = |path: &str| json!({ "path": path });
    let both = call("read_file", read("missing")).and("read_file", read("there"));
    let server = Server::chat([both, say("One is missing.")]);
    let ran = server.run(&house, &["read both"]).run().expect(4);
    ran.says(&["  failed  (read missing)"]);
    let server = Server::chat([call("read_file", read("missing")), say("It is missing.")]);
    let ran = server.run(&house, &["read it"]).run().expect(4);
    ran.says(&["● read missing\n  failed\n"]);
}

#[test]
fn a_checkpoint_is_a_number_of_the_list() {
    let house = House::new();
    for arguments in [&["diff", "nope"][..], &["undo", "--to", "nope"]] {
        house.jm(arguments).run().expect(2).says(&["it takes the number of a checkpoint; `jm checkpoints`"]);
    }
    house.jm(&["diff", "99"]).run().expect(1).says(&["there is no checkpoint 99; `jm checkpoints` lists"]);
    let ran = house.jm(&["land", "--json", "--dry-run", "a", "b"]).run().expect(2);
    let ran_json: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(ran_json["error"], "unexpected argument 'b' found");
    let ran = house.jm(&["plan", "--json", "show", "99"]).run().expect(2);
    let ran_json: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    let error = ran_json["error"].as_str().unwrap();
    assert!(
        error.starts_with("the subcommand '99' cannot be used with") && error.contains("--json"),
        "{error}"
    );
}

#[test]
fn checks_of_several_packages_are_told_apart() {
    if !needs_sandbox() || !needs(&["make"]) {
        return;
    }
    let house = House::new();
    for package in ["one", "two"] {
        house.write(&format!("{package}/Makefile"), "test:\n\t@grep -q . notes\n");
        house.write(&format!("{package}/notes"), "x\n");
    }
    let write = |path: &str| call("write_file", json!({ "path": path, "content": "y\n" }));
    let server = Server::chat([
        write("one/more").and("write_file", json!({ "path": "two/more", "content": "y" })),
        say("Done."),
    ]);
    let ran = server.run(&house, &["add notes"]).run().expect(0);
    ran.prints(&["`make test` in one", "`make test` in two", "make test (in one) — passed"]);
    ran.says(&["make test (in one) · make test (in two)", "$ make test (in two)", "✓ make test (in one)"]);
}

#[test]
fn a_sandbox_in_a_sandbox_is_said_in_a_sentence() {
    if !needs_sandbox() {
        return;
    }
    let house = House::new();
    std::fs::copy(env!("CARGO_BIN_EXE_jm"), house.project().join("inner")).unwrap();
    let ran = house.jm(&["exec", "-q", "--", "./inner", "exec", "--", "true"]).run().expect(125);
    assert_eq!(
        ran.stderr,
        "error: the sandbox: already inside a jm sandbox: commands can't be confined twice\n"
    );
    // The reason of many checks is said once.
    let ran =
        house.jm(&["exec", "-q", "--", "./inner", "check", "--check", "true 1", "--check", "true 2"]).run();
    assert_eq!(ran.stdout.matches("already inside a jm sandbox").count(), 1, "{ran:?}");
    assert!(ran.stdout.contains("true 2  not run: for the same reason\n"), "{ran:?}");
    assert!(!ran.stderr.contains("sandbox"), "{ran:?}");
}

#[test]
fn a_negative_number_is_told_what_the_flag_takes() {
    let house = House::new();
    let count = |flag: &str| {
        format!(
            "error: invalid value '-1' for '{flag} <N>': it takes a whole number, 1 or more\n\nFor more information, try \
             '--help'."
        )
    };
    let number =
        |flag: &str, key: &str| format!("error: {flag}: `{key}` is -1.0, but takes a number, 0 or more");
    for (words, said) in [
        (&["run", "--budget", "-1", "look around"][..], number("--budget", "budget_usd")),
        (&["run", "--temperature", "-1", "look around"], number("--temperature", "temperature")),
        (&["run", "--max-turns", "-1", "look around"], count("--max-turns")),
        (&["run", "--max-iterations", "-1", "look around"], count("--max-iterations")),
        (&["run", "--max-output-tokens", "-1", "look around"], count("--max-output-tokens")),
        (&["sessions", "--limit", "-1"], count("--limit")),
        (&["search", "word", "--limit", "-1"], count("--limit")),
        (&["map", "--tokens", "-1"], count("--tokens")),
        (&["exec", "--processes", "-1", "--", "true"], count("--processes")),
    ] {
        assert_eq!(error_text(&house, &house.jm(words).run().expect(2)), said, "{words:?}");
    }
}

#[test]
fn a_home_that_does_not_exist_is_made_and_said() {
    let house = House::new();
    let jm = || {
        let jm = house.jm(&["sessions"]).without("XDG_STATE_HOME").without("XDG_CONFIG_HOME");
        jm.env("HOME", house.at("nowhere/me")).run().expect(0)
    };
    let home = house.at("nowhere/me").display().to_string();
    let made = format!(
        "the home directory {home} did not exist; it was made for jm's state in {home}/.local/state/journeyman\n"
    );
    assert_eq!(jm().stderr.lines().next().unwrap_or_default(), made.trim_end());
    assert!(!jm().stderr.contains("did not exist"), "said once");
}

#[test]
fn the_end_of_input_at_a_question_is_a_no() {
    if !needs(&["setsid"]) {
        return;
    }
    let house = House::with_greeter();
    let touch = call("run_command", json!({"command": "touch -f made"}));
    let server = Server::chat([touch, say("I see.")]);
    let mut person = Person::start(server.run(&house, &["make a file"]).env("NO_COLOR", "1").command());
    person.sees("say what to do instead:");
    person.types("\x04");
    person.sees("no answer (end of input): denied");
    person.ends();
    assert!(!house.project().join("made").exists());
    assert!(server.seen()[1].newest().contains("no answer (end of input): denied"));

    house.write(".journeyman/config.toml", "checks = [\"true\"]\n");
    let mut person = Person::start(server.run(&house, &["look around"]).env("NO_COLOR", "1").command());
    person.sees("trust it?");
    person.types("\x04");
    person.sees("no answer (end of input): taken as no");
    assert_eq!(person.ends().0, 2);
}

#[test]
fn a_reply_that_the_output_limit_cut_off_is_said_to_be() {
    let house = House::with_greeter();
    let server = Server::chat([say("It would be").cut_off(), say("Done.").costing(100, 0, 3)]);
    let flags = ["--max-output-tokens", "10", "--temperature", "0.5", "look around"];
    let ran = server.run(&house, &flags).run().expect(4);
    ran.says(&["the reply was cut off at the output limit (10 tokens)\n"]);
    let body = &server.seen()[0].body;
    assert_eq!(body["temperature"], json!(0.5));
    assert!([&body["max_tokens"], &body["max_completion_tokens"]].contains(&&json!(10)), "{body}");
}
