//! Other coding CLIs as `jm delegate` runs them: verified, landed, undone as any run.

use journeyman_protocol::{FileChangeKind, RunOutcome, Tokens};
use serde_json::{Value, json};

use crate::support::{GREETER, House, Jm, POLITE, Server, Wire, call, is_running, needs, say, wait_until};

/// A CLI that edits the greeter: politely at once if its prompt says so, else only after it was
/// told that a check fails. Its sessions are files in its home.
const SCRIPT: &str = r#"#!/usr/bin/python3
import json, os, sys, time
if "--version" in sys.argv:
    print("greeter-cli 4.2.0")
    sys.exit(0)
def tell(**fields):
    print(json.dumps(fields), flush=True)
prompt = sys.stdin.read()
resumed = sys.argv[sys.argv.index("--session") + 1] if "--session" in sys.argv else None
session = resumed or "session-1"
kept = os.path.join(os.environ["HOME"], session)
if resumed and not os.path.exists(kept):
    print("no such session", file=sys.stderr)
    sys.exit(1)
with open(kept, "a") as file:
    file.write("x")
tell(session=session)
tell(text="looking at greet.sh\n")
if "about sleep" in prompt or "sleep for ever" in prompt and "politely at once" not in prompt:
    open("half", "w").write("half\n")
    tell(text="sleeping\n")
    time.sleep(1000)
if "die at once" in prompt and not resumed:
    open("half", "w").write("half\n")
    os.abort()
told = "1 of 1 failed" in prompt
polite = "politely at once" in prompt or told
word = "Hello, $1!" if polite else "HELLO $1"
with open("greet.sh", "w") as file:
    file.write(f'# Greets people.\ngreet() {{\n    echo "{word}"\n}}\n')
if "--wordy" in sys.argv:
    open("essay.txt", "w").write("many\nlines\n")
with open(kept) as file:
    runs = len(file.read())
model = sys.argv[sys.argv.index("--model") + 1] if "--model" in sys.argv else "none"
key = os.environ.get("GREETER_KEY", "no key")
tell(message=f"run {runs} of {session}, model {model}, told {told}, {key}", usage={"in": 100, "out": 7}, usd=0.5)
"#;

const CONFIG: &str = r#"
delegate_order = ["greeter"]
[delegates.greeter]
timeout = "60s"
[delegates.greeter.cli]
command = ["greeter", "--json"]
model = ["--model", "{model}"]
resume = ["--session", "{session}"]
keys = ["GREETER_KEY"]
hosts = ["api.greeter.test"]
install = "pip install greeter"
output = { json_lines = { text = "text", message = "message", session = "session", input_tokens = "usage.in", output_tokens = "usage.out", cost = "usd" } }
"#;

/// A house whose user has the CLI.
fn house() -> House {
    let house = House::with_repository();
    house.configure(CONFIG);
    std::fs::create_dir_all(house.at("bin")).unwrap();
    journeyman_testkit::write_program(&house.at("bin/greeter"), SCRIPT);
    house
}

fn jm(house: &House, arguments: &[&str]) -> Jm {
    let path = format!("{}:{}", house.at("bin").display(), std::env::var("PATH").unwrap());
    house.jm(arguments).env("PATH", path).env("GREETER_KEY", "greeter-secret-1").env("JM_ISOLATE", "true")
}

fn ready() -> bool {
    needs(&["git", "make", "/usr/bin/python3"])
}

#[test]
fn a_task_ends_verified_after_a_failing_check_went_back_into_the_clis_own_session() {
    if !ready() {
        return;
    }
    let house = house();
    let ran =
        jm(&house, &["delegate", "--json", "--to", "greeter", "make the greeting polite"]).run().expect(0);
    let report = ran.report();
    assert_eq!(report.outcome, RunOutcome::Verified);
    assert_eq!(report.text, "run 2 of session-1, model none, told True, «[secret]»");
    assert_eq!((report.model.as_str(), report.iterations), ("delegate/greeter", 1));
    assert_eq!((report.usage.input, report.usage.output), (Tokens(200), Tokens(14)));
    assert_eq!(report.cost_usd, Some(1.0));
    assert_eq!(report.changes[0].kind, FileChangeKind::Modified);
    assert_eq!(house.read("greet.sh"), POLITE);
    assert!(ran.stderr.contains("high risk:"), "{}", ran.stderr);
    // The call's line has the task, not the brief around it.
    let shown = jm(&house, &["show", &report.session.to_string()]).run().expect(0).stdout;
    assert!(shown.contains("give greeter a task: make the greeting polite"), "{shown}");
    // The log has what the CLI did, and nothing of its key.
    let id = report.session.to_string();
    let shown = jm(&house, &["show", &id, "--json"]).run().expect(0).stdout;
    assert!(shown.contains("delegate_task") && !shown.contains("greeter-secret-1"), "{shown}");
    jm(&house, &["undo", &id]).run().expect(0);
    assert_eq!(house.read("greet.sh"), GREETER[0].1);
    // Nothing of the CLI's is left.
    let homes = jm_state_dirs(&house);
    assert!(homes.iter().all(|home| std::fs::read_dir(home).unwrap().next().is_none()), "{homes:?}");
}

/// The directories of the homes of CLIs.
fn jm_state_dirs(house: &House) -> Vec<std::path::PathBuf> {
    let projects = std::fs::read_dir(house.state().join("projects")).unwrap().flatten();
    projects.map(|project| project.path().join("delegates")).filter(|path| path.exists()).collect()
}

#[test]
fn auto_is_the_first_one_installed_and_run_does_the_same() {
    if !ready() {
        return;
    }
    let house = house();
    let ran = jm(&house, &["run", "--json", "--with", "auto", "--model", "tiny", "greet politely at once"]);
    let report = ran.run().expect(0).report();
    assert_eq!(report.model, "delegate/greeter/tiny");
    assert_eq!(report.text, "run 1 of session-1, model tiny, told False, «[secret]»");
    // Another message begins anew, with everything told again: the homes ended with the process.
    let id = report.session.to_string();
    house.write("greet.sh", GREETER[0].1);
    let again =
        jm(&house, &["resume", &id, "--json", "now once more, politely at once"]).run().expect(0).report();
    assert_eq!((again.text, again.model), (report.text, report.model));
}

#[test]
fn one_that_dies_lands_nothing_and_keeps_its_work() {
    if !ready() {
        return;
    }
    let house = house();
    let ran = jm(&house, &["delegate", "--json", "--to", "greeter", "die at once"]).run().expect(1);
    let report = ran.report();
    assert_eq!(report.outcome, RunOutcome::Error);
    assert!(report.summary.contains("greeter failed: "), "{}", report.summary);
    assert!(!house.project().join("half").exists());
    assert_eq!(report.changes.len(), 1, "{:?}", report.changes);
}

#[test]
fn an_interrupt_ends_it_at_once() {
    if !ready() {
        return;
    }
    let house = house();
    let running = jm(&house, &["delegate", "--stream-json", "--to", "greeter", "sleep for ever"]).start();
    running.line_with("sleeping");
    running.signal(rustix::process::Signal::INT);
    running.wait().expect(130);
    assert!(!house.project().join("half").exists());
}

#[test]
fn the_list_says_what_is_installed_and_what_it_may_reach() {
    if !ready() {
        return;
    }
    let house = house();
    let ran = jm(&house, &["delegate", "--list", "--json"]).run().expect(0);
    let all: Value = serde_json::from_str(&ran.stdout).unwrap();
    let first = &all[0];
    assert_eq!(first["name"], "greeter");
    assert_eq!(first["version"], "4.2.0", "{first}");
    assert_eq!((&first["login"], &first["hosts"][0]), (&"$GREETER_KEY".into(), &"api.greeter.test".into()));
    let able = json!({
        "needs_workspace": true, "streaming": true, "resume": true, "model": true, "own_sandbox": false,
        "cost": true,
    });
    assert_eq!(first["capabilities"], able);
    let text = jm(&house, &["delegate", "--list"]).run().expect(0).stdout;
    assert!(text.contains("may change a copy of the project, and reach api.greeter.test"), "{text}");
    let unknown = jm(&house, &["delegate", "--to", "nobody", "x"]).run().expect(2).stderr;
    assert!(unknown.contains("there is no CLI `nobody`"), "{unknown}");
}

#[test]
fn only_a_task_of_low_risk_runs_directly() {
    if !ready() {
        return;
    }
    let house = house();
    let refused = jm(&house, &["delegate", "--direct", "--to", "greeter", "delete greet.sh"]).run().expect(6);
    assert!(refused.stderr.contains("high risk"), "{}", refused.stderr);
    // A hidden directory would be one of settings.
    let fresh = tempfile::Builder::new().prefix("fresh-").tempdir().unwrap();
    let ran = jm(&house, &["delegate", "--direct", "--json", "--to", "greeter", "write a snake game"])
        .env("TMPDIR", fresh.path())
        .run()
        .expect(0);
    let told: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(told["created"][0], "greet.sh");
    assert!(told["message"].as_str().unwrap().starts_with("run "), "{told}");
    assert_eq!(house.read("greet.sh"), GREETER[0].1);
    assert!(told["directory"].as_str().unwrap().starts_with(fresh.path().to_str().unwrap()));
}

#[test]
fn a_direct_run_obeys_a_time_limit_and_refuses_what_has_no_effect() {
    if !ready() {
        return;
    }
    let house = house();
    let fresh = tempfile::Builder::new().prefix("fresh-").tempdir().unwrap();
    let task = "write a snake game about sleep";
    let run = |flags: &[&str]| {
        let arguments = [&["delegate", "--direct", "--to", "greeter"], flags, &[task]].concat();
        jm(&house, &arguments).env("TMPDIR", fresh.path()).run()
    };
    for flags in [&["--check", "true"][..], &["--commit"], &["--budget", "1"], &["--isolate"]] {
        let named = format!("so {} has no effect", flags[0]);
        run(flags).expect(2).says(&[named.as_str()]);
    }
    run(&["--timeout", "1s"]).expect(1).says(&["greeter failed: it was ended at its time limit, after 1 s"]);
}

#[test]
fn a_killed_direct_run_leaves_no_process_and_its_directory_is_swept() {
    if !ready() {
        return;
    }
    let house = house();
    let fresh = tempfile::Builder::new().prefix("fresh-").tempdir().unwrap();
    let task = "write a snake game about sleep";
    let arguments = ["delegate", "--direct", "--stream-json", "--to", "greeter", task];
    let running = jm(&house, &arguments).env("TMPDIR", fresh.path()).start();
    running.line_with("sleeping");
    let program = format!("/usr/bin/python3 {} --json", house.at("bin/greeter").display());
    assert!(is_running(&program));
    running.signal(rustix::process::Signal::KILL);
    running.gone();
    wait_until("the CLI is gone", || !is_running(&program));
    let left = || std::fs::read_dir(fresh.path()).unwrap().count();
    assert_eq!(left(), 1, "nobody could remove the directory");
    // From anywhere, also where there is no project.
    jm(&house, &["delegate", "--list"]).dir(house.at("home")).run().expect(0).prints(&["greeter"]);
    assert_eq!(left(), 0);
}

#[test]
fn a_cli_of_a_project_needs_trust_before_anything_of_it_runs() {
    let house = House::with_greeter();
    let config = "[delegates.evil.cli]\ncommand = [\"evil\"]\noutput = \"text\"\n";
    house.write(".journeyman/config.toml", config);
    std::fs::create_dir_all(house.at("bin")).unwrap();
    let pwned = house.at("pwned");
    let program = format!("#!/bin/sh\n: >{}\necho 1.2.3\n", pwned.display());
    journeyman_testkit::write_program(&house.at("bin/evil"), &program);
    let path = format!("{}:/usr/bin:/bin", house.at("bin").display());
    let fresh = tempfile::Builder::new().prefix("fresh-").tempdir().unwrap();
    let run = |arguments: &[&str]| {
        let jm = house.jm(&[&["delegate"], arguments].concat());
        jm.env("PATH", &path).env("TMPDIR", fresh.path()).run()
    };
    for to in [&["--to", "evil"][..], &[]] {
        let ran = run(&[&["--direct"], to, &["write a snake game"]].concat()).expect(2);
        ran.says(&[".journeyman/config.toml", "delegates.evil.cli", "--trust-project"]);
    }
    let listed = run(&["--list"]).expect(0);
    listed.says(&["the project's configuration isn't trusted"]);
    assert!(!listed.stdout.contains("evil"), "{}", listed.stdout);
    assert!(!pwned.exists());
    run(&["--direct", "--to", "evil", "--trust-project", "write a snake game"]).expect(0);
    assert!(pwned.exists());
}

#[test]
fn several_compete_and_the_smallest_verified_change_wins() {
    if !ready() {
        return;
    }
    let house = house();
    // The same CLI under another name, whose change is larger.
    let config = CONFIG.replace("delegates.greeter", "delegates.wordy").replace("\"--json\"", "\"--wordy\"");
    house.configure(&format!("{CONFIG}{}", config.replace("delegate_order = [\"greeter\"]", "")));
    let task = "greet politely at once";
    let ran = jm(&house, &["run", "--json", "--candidates", "wordy,greeter", "--land", task]).run().expect(0);
    let report = ran.report();
    assert_eq!(report.model, "delegate/greeter");
    assert_eq!(report.candidates.len(), 2, "{:?}", report.candidates);
    assert_eq!(report.candidates[0].number, 2, "the second has the smaller change");
    assert_eq!(house.read("greet.sh"), POLITE);
    assert!(!house.project().join("essay.txt").exists());
    let unknown = jm(&house, &["run", "--candidates", "greeter,nobody", "x"]).run().expect(2).stderr;
    assert!(unknown.contains("there is no CLI `nobody`"), "{unknown}");
}

#[test]
fn a_killed_run_leaves_no_process_and_its_home_is_swept() {
    if !ready() {
        return;
    }
    let house = house();
    let running = jm(&house, &["delegate", "--stream-json", "--to", "greeter", "sleep for ever"]).start();
    running.line_with("sleeping");
    let program = format!("/usr/bin/python3 {} --json", house.at("bin/greeter").display());
    assert!(is_running(&program));
    running.signal(rustix::process::Signal::KILL);
    running.gone();
    wait_until("the CLI is gone", || !is_running(&program));
    let left = |house: &House| {
        let homes = jm_state_dirs(house).into_iter().flat_map(|home| std::fs::read_dir(home).unwrap());
        homes.flatten().count()
    };
    assert_eq!(left(&house), 1, "nobody could remove the home");
    let id = house.sessions()[0]["id"].as_str().unwrap().to_owned();
    // Its CLI begins anew, because what it had is gone.
    let stop = jm(&house, &["resume", &id, "--json", "--close", "greet politely at once"]).run().expect(0);
    assert_eq!(stop.report().outcome, RunOutcome::Verified);
    assert_eq!(left(&house), 0);
    assert_eq!(house.read("greet.sh"), POLITE);
}

#[test]
fn it_works_in_the_project_itself_where_that_is_asked_for() {
    if !ready() {
        return;
    }
    let house = house();
    let arguments = ["delegate", "--json", "--in-place", "--to", "greeter", "greet politely at once"];
    let report = jm(&house, &arguments).run().expect(0).report();
    assert_eq!((report.outcome, report.copy), (RunOutcome::Verified, None));
    assert_eq!(house.read("greet.sh"), POLITE);
    jm(&house, &["undo"]).run().expect(0);
    assert_eq!(house.read("greet.sh"), GREETER[0].1);
}

#[test]
fn a_model_gives_a_task_to_a_cli_that_the_user_offers_it() {
    if !ready() {
        return;
    }
    let house = house();
    let asked = json!({ "to": "greeter", "prompt": "greet politely at once" });
    let replies = || [call("delegate_task", asked.clone()), say("It is polite now.")];
    let offered = |server: &Server| server.seen()[0].tools().contains(&"delegate_task".to_owned());
    // Nobody offered it.
    let server = Server::start(Wire::Chat, replies());
    let path = format!("{}:{}", house.at("bin").display(), std::env::var("PATH").unwrap());
    let run = |server: &Server| {
        server
            .run(&house, &["--json", "make it polite"])
            .env("PATH", &path)
            .env("GREETER_KEY", "greeter-secret-1")
    };
    let report = run(&server).run().report();
    assert!(!offered(&server) && report.changes.is_empty());
    house.configure(&format!("{CONFIG}[tools]\ndelegate = [\"greeter\"]\n"));
    let server = Server::start(Wire::Chat, replies());
    let report = run(&server).run().expect(0).report();
    assert!(offered(&server));
    assert_eq!((report.outcome, report.text.as_str()), (RunOutcome::Verified, "It is polite now."));
    assert_eq!(house.read("greet.sh"), POLITE);
    assert_eq!(report.usage.output, Tokens(7 + 20), "its own tokens and the CLI's");
    // The key is not in what the model was told.
    assert!(server.seen().iter().all(|seen| !seen.body.to_string().contains("greeter-secret-1")));
}

#[test]
fn a_cli_without_a_login_is_not_run() {
    let house = House::with_greeter();
    std::fs::create_dir_all(house.at("bin")).unwrap();
    journeyman_testkit::write_program(&house.at("bin/codex"), "#!/bin/sh\ntouch was-run\n");
    let path = format!("{}:/usr/bin:/bin", house.at("bin").display());
    let ran = house.jm(&["delegate", "--to", "codex", "greet politely"]).env("PATH", &path).run().expect(2);
    ran.says(&["codex has no login here; run it once to log in, or set", "OPENAI_API_KEY"]);
    assert!(!house.project().join("was-run").exists());
}

#[test]
fn its_time_limit_is_a_setting() {
    if !ready() {
        return;
    }
    let house = house();
    house.configure(&CONFIG.replace("60s", "2s"));
    let ran = jm(&house, &["delegate", "sleep for ever"]).run().expect(1);
    ran.says(&["greeter failed: it was ended at its time limit"]);
    assert!(!house.read("greet.sh").contains("HELLO"));
}
