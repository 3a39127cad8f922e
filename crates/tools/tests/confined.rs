//! Commands in the real sandbox. A program of its own, because the sandbox re-executes it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

mod bench;

use std::path::Path;
use std::sync::Arc;

use bench::Bench;
use journeyman_policy::Policy;
use journeyman_protocol::{Decision, Mode, Needs};
use journeyman_sandbox::{HostEnvironment, Sandbox, SandboxSettings, run_helper_if_asked, toolchains};
use serde_json::json;

fn main() {
    run_helper_if_asked();
    let required = std::env::var_os("JM_REQUIRE_ALL").is_some();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let sandbox = Arc::new(Sandbox::new(SandboxSettings::default()));
    if let Err(error) = runtime.block_on(sandbox.enforcement()) {
        assert!(!required, "{error}");
        println!("skipped: {error}");
        return;
    }
    let git = std::process::Command::new("git").arg("--version").output();
    if git.is_err() {
        assert!(!required, "git is missing");
        println!("skipped: git is not installed");
        return;
    }
    a_command_that_only_reads_can_do_no_more(&sandbox);
    a_planted_repository_is_not_trusted(&sandbox);
    repositories_can_not_be_touched(&sandbox);
    println!("ok");
}

fn confined(sandbox: &Arc<Sandbox>, files: &[(&str, &[u8])]) -> Bench {
    let mut bench = Bench::new(files);
    bench.context.sandbox = Arc::clone(sandbox);
    bench.context.needs = Needs::ALL;
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
fn a_command_that_only_reads_can_do_no_more(sandbox: &Arc<Sandbox>) {
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

fn a_planted_repository_is_not_trusted(sandbox: &Arc<Sandbox>) {
    let mut bench = confined(sandbox, &[("a", b"1\n")]);
    git(&bench.root, &["init", "-q", "--bare", "evil"]);
    let trap = format!("touch {}; false", bench.root.join("ran").display());
    for (key, value) in [("core.fsmonitor", trap.as_str()), ("core.bare", "false"), ("core.worktree", "..")] {
        git(&bench.root.join("evil"), &["config", key, value]);
    }
    let input = json!({"command": "git status", "directory": "evil"});
    let effects = bench.tools.get("run_command").unwrap().effects(&input).unwrap();
    let host = HostEnvironment { vars: std::env::vars_os().collect(), home: None };
    bench.context.toolchains = Arc::new(toolchains(&host, &bench.root));
    let said = bench.say("run_command", input);
    assert!(!bench.root.join("ran").exists(), "{said}");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let enforced = runtime.block_on(sandbox.enforcement()).unwrap();
    let judge = |mode| Policy::default().judge(mode, &effects, Some(&enforced)).decision;
    assert_eq!((judge(Mode::Plan), judge(Mode::Edit)), (Decision::Deny, Decision::Ask));
}

fn repositories_can_not_be_touched(sandbox: &Arc<Sandbox>) {
    let bench = confined(sandbox, &[("nested/.git/config", b"kept"), (".envrc", b"kept"), ("a", b"")]);
    for command in ["echo x > nested/.git/config", "rm -r nested/.git", "echo x > .envrc", "mv .envrc b"] {
        let output = bench.call("run_command", json!({ "command": command })).unwrap();
        assert!(output.is_error, "{command}: {}", bench::text(&output));
        assert_eq!(
            (bench.file("nested/.git/config"), bench.file(".envrc")),
            (b"kept".to_vec(), b"kept".to_vec())
        );
    }
    let said =
        bench.say("run_command", json!({"command": "git init -q . && git config core.fsmonitor evil"}));
    assert!(said.contains("error: a command may not create a repository here: .git was moved to "), "{said}");
    assert!(!bench.root.join(".git").exists());
}
