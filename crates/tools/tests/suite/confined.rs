//! Commands in the real sandbox.

use crate::bench;

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::sync::Arc;

use bench::Bench;
use journeyman_policy::{Call, Policy};
use journeyman_protocol::{CallId, Decision, FileChange, Mode, SandboxNeeds, SessionId, UnixMillis};
use journeyman_sandbox::{HostEnvironment, Sandbox, SandboxSettings, find_toolchains};
use journeyman_store::Blobs;
use journeyman_testkit::{has_program_or_skip, rerun_test, skip};
use journeyman_workspace::{CheckpointId, Options, Workspace};
use serde_json::json;

/// The sandbox of this machine, if commands can be confined with it.
fn sandbox() -> Option<Arc<Sandbox>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let sandbox = Arc::new(Sandbox::new(SandboxSettings::default()));
    let enforcement = runtime.block_on(sandbox.enforcement(&journeyman_protocol::SandboxNeeds::ALL));
    enforcement.map_err(skip).is_ok().then_some(sandbox)
}

/// A session with two commands at work, until it is killed.
#[test]
#[ignore = "started by another test"]
fn be_killed() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut bench = confined(&sandbox().unwrap(), &[("a", b"1\n"), ("dir/b", b"2\n")]);
    let session = bench.context.session.clone();
    let checkpoint = bench.context.workspace.checkpoint(&session, "before").unwrap();
    // The harness has begun a line of its own.
    println!("\nplace: {}\n{checkpoint}", bench.outside.display());
    let run = bench.tools.get("run_command").unwrap();
    let work = "n=0; while :; do n=$((n+1)); echo $n >> a; echo $n > f$((n % 50)); rm -rf dir; done";
    runtime.block_on(async {
        bench.context.call = CallId::new("behind");
        let command = "echo $$ > behind; echo done; sleep 1000";
        run.call(&bench.context, json!({"command": command, "background": true})).await.unwrap();
        let read = bench.tools.get("command_output").unwrap();
        read.call(&bench.context, json!({"id": "b1", "wait_s": 60})).await.unwrap();
        bench.context.call = CallId::new("before");
        bench.context.output = Arc::new(|text| print!("{text}"));
        let command = format!("({work}) & while ! [ -e f49 ]; do :; done; echo ready; {work}");
        run.call(&bench.context, json!({ "command": command })).await.unwrap();
    });
}

#[test]
fn a_killed_session_takes_its_commands_with_it() {
    if sandbox().is_none() {
        return;
    }
    let mut victim = rerun_test!("be_killed").stdout(std::process::Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(victim.stdout.take().unwrap()).lines().map(Result::unwrap);
    let base = lines.find_map(|line| line.strip_prefix("place: ").map(std::path::PathBuf::from)).unwrap();
    let checkpoint = CheckpointId(lines.next().unwrap().parse().unwrap());
    assert_eq!(lines.next().unwrap(), "ready");
    victim.kill().unwrap();
    victim.wait().unwrap();
    let blobs = Arc::new(Blobs::open(&base.join("blobs"), 1 << 30).unwrap());
    let options = Options::new(base.join("state"), blobs);
    let workspace = Workspace::open(&base.join("project"), options).unwrap();
    let session = SessionId::new(UnixMillis(1), 1);
    let calls = workspace.recovery().cut_off_calls(&session).unwrap();
    assert_eq!(calls, [CallId::new("before"), CallId::new("behind")]);
    let seal =
        |call| workspace.recovery().recover_call(&checkpoint, &session, call, UnixMillis(u64::MAX)).unwrap();
    let sealed = seal(&calls[0]);
    assert_eq!((sealed.applied, paths(sealed.left.iter().map(|(change, _)| change))), (vec![], behind()));
    let sealed = seal(&calls[1]);
    assert_eq!((paths(&sealed.applied), sealed.restored, sealed.left), (behind(), vec![], vec![]));
    assert_eq!(paths(&workspace.history().changes_since(&checkpoint).unwrap()), behind());
    assert_eq!(std::fs::read_dir(base.join("project")).unwrap().count(), 3, "a, behind and dir");
    std::fs::remove_dir_all(base).unwrap();
}

fn paths<'a>(changes: impl IntoIterator<Item = &'a FileChange>) -> Vec<String> {
    changes.into_iter().map(|change| change.path.to_string()).collect()
}

fn behind() -> Vec<String> {
    vec!["behind".to_owned()]
}

fn confined(sandbox: &Arc<Sandbox>, files: &[(&str, &[u8])]) -> Bench {
    let mut bench = Bench::new(files);
    bench.context.sandbox = Arc::clone(sandbox);
    bench.context.needs = SandboxNeeds::ALL;
    bench
}

fn git(directory: &Path, arguments: &[&str]) {
    assert!(
        std::process::Command::new("git")
            .arg("-C")
            .arg(directory)
            .args(arguments)
            .status()
            .unwrap()
            .success()
    );
}

/// The toolchains' settings of git are left out, so that the monitor runs.
#[test]
fn a_command_that_only_reads_can_do_no_more() {
    let Some(sandbox) = &sandbox() else { return };
    if !has_program_or_skip("git") {
        return;
    }
    let bench = confined(sandbox, &[("a", b"1\n")]);
    git(&bench.root, &["init", "-q"]);
    let trap = format!("echo tried >&2; touch {}; false", bench.root.join("ran").display());
    git(&bench.root, &["config", "core.fsmonitor", &trap]);
    let said = bench.say("run_command", json!({"command": "git status"}));
    assert!(said.starts_with("exit code 0") && said.contains("tried"), "{said}");
    assert!(!bench.root.join("ran").exists(), "{said}");
    let said = bench.say("run_command", json!({"command": "touch ran"}));
    assert!(said.starts_with("exit code 0") && bench.root.join("ran").exists(), "{said}");
}

#[test]
fn what_a_person_saves_while_a_reading_command_runs_is_not_the_commands() {
    let Some(sandbox) = &sandbox() else { return };
    let bench = confined(sandbox, &[("a", b"1\n")]);
    let pipe = bench.root.join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let (theirs, saved) = (pipe.clone(), bench.root.join("a"));
    let person = std::thread::spawn(move || {
        // It opens when the command does.
        let open = std::fs::OpenOptions::new().write(true).open(theirs).unwrap();
        std::fs::write(saved, "a person's\n").unwrap();
        drop(open);
    });
    let said = bench.say("run_command", json!({"command": "cat pipe"}));
    // Whatever became of the command, the person isn't kept waiting.
    let _reader = std::fs::OpenOptions::new().read(true).write(true).open(&pipe).unwrap();
    person.join().unwrap();
    assert!(said.starts_with("exit code 0") && !said.contains("files changed"), "{said}");
    assert_eq!(bench.context.workspace.history().newest_undoable_session().unwrap(), None);
    assert_eq!(std::fs::read_to_string(bench.root.join("a")).unwrap(), "a person's\n");
}

#[test]
fn a_planted_repository_is_not_trusted() {
    let Some(sandbox) = &sandbox() else { return };
    if !has_program_or_skip("git") {
        return;
    }
    let mut bench = confined(sandbox, &[("a", b"1\n")]);
    git(&bench.root, &["init", "-q", "--bare", "evil"]);
    let trap = format!("touch {}; false", bench.root.join("ran").display());
    for (key, value) in [("core.fsmonitor", trap.as_str()), ("core.bare", "false"), ("core.worktree", "..")] {
        git(&bench.root.join("evil"), &["config", key, value]);
    }
    let input = json!({"command": "git status", "directory": "evil"});
    let effects = bench.tools.get("run_command").unwrap().effects(&input).unwrap();
    let host = HostEnvironment { vars: std::env::vars_os().collect(), home: None };
    bench.context.toolchains = Arc::new(find_toolchains(&host, &bench.root));
    let said = bench.say("run_command", input);
    assert!(!bench.root.join("ran").exists(), "{said}");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let enforced = runtime.block_on(sandbox.enforcement(&journeyman_protocol::SandboxNeeds::ALL)).unwrap();
    let judge = |mode| {
        let call =
            Call { tool: "run_command", agent: None, mode, effects: &effects, sandbox: Some(&enforced) };
        Policy::default().judge(&call).decision
    };
    // Nothing in that directory is run, so the command counts as reading.
    assert_eq!((judge(Mode::Plan), judge(Mode::Edit)), (Decision::Allow, Decision::Allow));
}

#[test]
fn repositories_can_not_be_touched() {
    let Some(sandbox) = &sandbox() else { return };
    if !has_program_or_skip("git") {
        return;
    }
    let bench = confined(
        sandbox,
        &[("nested/.git/config", b"kept"), (".envrc", b"kept"), ("a", b""), ("p/q/.vscode/s", b"kept")],
    );
    for command in [
        "echo x > nested/.git/config",
        "rm -r nested/.git",
        "echo x > .envrc",
        "mv .envrc b",
        "rm -r p/q",
        "echo x > p/q/.vscode/s",
    ] {
        let output = bench.call("run_command", json!({ "command": command })).unwrap();
        assert!(output.is_error, "{command}: {}", bench::text(&output));
        assert_eq!(
            [bench.file("nested/.git/config"), bench.file(".envrc"), bench.file("p/q/.vscode/s")],
            [b"kept", b"kept", b"kept"],
            "{command}"
        );
    }
    let said =
        bench.say("run_command", json!({"command": "git init -q . && git config core.fsmonitor evil"}));
    assert!(said.contains("error: the repository .git was made and moved to "), "{said}");
    assert!(!bench.root.join(".git").exists());
}

#[test]
fn a_command_reaches_the_hosts_that_it_names_and_no_others() {
    let Some(sandbox) = &sandbox() else { return };
    let bench = confined(sandbox, &[("a", b"1\n")]);
    let run = bench.tools.get("run_command").unwrap();
    let effects = |network: serde_json::Value| run.effects(&json!({ "command": "make", "network": network }));
    assert_eq!(
        effects(json!(["crates", "example.org"])).unwrap().hosts,
        ["index.crates.io", "static.crates.io", "example.org"]
    );
    assert_eq!(effects(json!([])).unwrap().hosts, Vec::<String>::new());
    for wrong in [json!(["nonsense"]), json!(["127.0.0.1"]), json!(["*.com"]), json!(vec!["npm"; 17])] {
        assert!(effects(wrong.clone()).is_err(), "{wrong}");
    }
    let summary = run.summary(&json!({ "command": "make", "network": ["npm"] }));
    assert!(summary.contains("registry.npmjs.org"), "{summary}");
    if !has_program_or_skip("curl") {
        return;
    }
    // The proxy is asked for another host than was named, and says so without looking it up.
    let command = "curl -sS --max-time 20 https://other.example.net/";
    let said = bench.say("run_command", json!({ "command": command, "network": ["example.org"] }));
    assert!(said.contains("[other.example.net:443 was not reached: "), "{said}");
    assert!(said.contains("`network`"), "{said}");
}
