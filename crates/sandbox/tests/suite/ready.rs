//! The helper that waits for the next command: from the second command on, for one command, no
//! longer than its sandbox and its agent.

use crate::common;
use journeyman_testkit::{has_program_or_skip, rerun_test, wait_until};

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::Stdio;

use crate::common::place::Place;
use crate::common::project;
use journeyman_sandbox::{CompletedCommand, Outcome, Request, Sandbox, StdioMode};
use rustix::process::{Pid, Signal};
use tokio::runtime::{Builder, Runtime};
use tokio_util::sync::CancellationToken;

/// The command line of a helper that makes its namespaces before it knows its command.
const HELPER: &str = "__jm-sandbox-helper\0wait";
/// That of one which makes none, because its command's lie in those of a mount, and which is called
/// by a name of its own here: other tests have theirs.
const IDLE_HELPER: &str = "idle-of-a-test\0__jm-sandbox-helper\0idle";

/// The helpers of an agent that wait. What has become pid 1 of a sandbox isn't called so only as
/// long as the command takes to begin and end.
fn waiting(agent: u32) -> Vec<Pid> {
    helpers(HELPER, agent)
}

fn helpers(kind: &str, agent: u32) -> Vec<Pid> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let helpers = entries.filter_map(|entry| {
        let line = std::fs::read(entry.path().join("cmdline")).ok()?;
        let status = std::fs::read_to_string(entry.path().join("status")).ok()?;
        let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().to_owned();
        let is_one = String::from_utf8_lossy(&line).contains(kind) && parent == agent.to_string();
        is_one.then(|| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?)).flatten()
    });
    helpers.collect()
}

/// Runs a command on this thread's runtime, which goes on to the thread's end: the start of the next
/// helper, in the background, could end with a runtime of the command before it has begun.
fn run(sandbox: &Sandbox, request: Request) -> CompletedCommand {
    thread_local! {
        static RUNTIME: Runtime = Builder::new_current_thread().enable_all().build().unwrap();
    }
    let ended =
        async { sandbox.spawn(request, CancellationToken::new()).await.unwrap().wait().await.unwrap() };
    RUNTIME.with(|runtime| runtime.block_on(ended))
}

fn shell(sandbox: &Sandbox, root: &Path, command: &str) -> String {
    let completed = run(sandbox, Request::for_shell_command(root, command));
    assert_eq!(completed.outcome, Outcome::Exited(0), "{command}: {}", completed.combined.text);
    completed.stdout.text
}

/// The one helper that waits, once there is no other process of that name.
fn the_one(agent: u32) -> Pid {
    let mut seen = Vec::new();
    wait_until("the start of a helper", || {
        seen = waiting(agent);
        seen.len() == 1
    });
    seen[0]
}

#[test]
fn one_waits_from_the_second_command_on_serves_one_and_ends_with_its_sandbox() {
    if !has_program_or_skip("ipcmk") || !has_program_or_skip("ipcs") {
        return;
    }
    let (me, project, sandbox) = (std::process::id(), project(), common::sandbox());
    shell(&sandbox, project.path(), "true");
    wait_until("the end of the only command", || waiting(me).is_empty());
    shell(&sandbox, project.path(), "true");
    let first = the_one(me);

    // What a command leaves in its namespaces, the next one doesn't find.
    // A helper that can be seen may not be the sandbox's yet, and then it serves the next but one.
    wait_until("another helper", || {
        shell(&sandbox, project.path(), "ipcmk -M 4096 && ipcs -m | grep -q 4096");
        the_one(me) != first
    });
    shell(&sandbox, project.path(), "! ipcs -m | grep -q 4096; test $(cat /proc/net/dev | wc -l) -eq 3");

    // Where both streams are one they are so, though nobody knew when the pipes were made.
    the_one(me);
    let mut merged = Request::for_shell_command(project.path(), "echo a; echo b >&2; echo c");
    merged.streams = StdioMode::Merged;
    let merged = run(&sandbox, merged);
    assert_eq!((merged.combined.text.as_str(), merged.stderr.text.as_str()), ("a\nb\nc\n", ""));

    // One that is gone is replaced.
    let gone = the_one(me);
    // What was seen may have been that of the last command, at its end.
    rustix::process::kill_process(gone, Signal::KILL).ok();
    wait_until("its end", || waiting(me).is_empty());
    assert_eq!(shell(&sandbox, project.path(), "echo still"), "still\n");

    the_one(me);
    drop(sandbox);
    wait_until("the end of the last helper", || waiting(me).is_empty());
}

#[test]
fn a_command_in_a_mount_takes_one_without_namespaces() {
    let (me, place, mut settings) = (std::process::id(), Place::new(), common::settings());
    let helper = place.at("idle-of-a-test");
    std::os::unix::fs::symlink(common::helper(), &helper).unwrap();
    settings.helper = Some(helper);
    let sandbox = Sandbox::new(settings);
    let Some(mounted) = place.mount("copy") else { return };
    let run = |command: &str| {
        let completed = run(&sandbox, place.request(&mounted, command));
        assert_eq!(completed.outcome, Outcome::Exited(0), "{command}: {}", completed.combined.text);
        completed.stdout.text
    };
    let idle = || helpers(IDLE_HELPER, me);
    run("echo one > made");
    run("cat made; echo two > made");
    wait_until("the start of a helper", || idle().len() == 1);
    // What it waited for is its own command, in the mount as it is now.
    assert_eq!(run("cat made; wc -l < /proc/net/dev"), "two\n3\n");

    // Of the other kind it is of no use: it goes, and one of that kind comes.
    wait_until("the next helper", || idle().len() == 1);
    shell(&sandbox, &place.root(), "true");
    wait_until("the end of the helper that was of no use", || idle().is_empty());
    run("true");
    wait_until("a helper for the mount", || idle().len() == 1);
    drop(mounted);
    drop(sandbox);
    wait_until("the end of the last helper", || idle().is_empty());
}

/// Not a test by itself: the agent that [`one_that_waits_ends_with_a_killed_agent`] kills.
#[test]
#[ignore = "run by another test"]
fn agent_to_be_killed() {
    let (project, sandbox) = (project(), common::sandbox());
    shell(&sandbox, project.path(), "true");
    shell(&sandbox, project.path(), "true");
    let helper = the_one(std::process::id());
    println!("waits: {}", helper.as_raw_nonzero());
    loop {
        std::thread::park();
    }
}

#[test]
fn one_that_waits_ends_with_a_killed_agent() {
    let mut agent = rerun_test!("agent_to_be_killed").stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(agent.stdout.take().unwrap()).lines();
    let said =
        lines.map(Result::unwrap).find_map(|line| line.split_once("waits: ").map(|(_, pid)| pid.to_owned()));
    let helper = said.expect("a helper that waits");
    let line = || std::fs::read(format!("/proc/{helper}/cmdline")).unwrap_or_default();
    assert!(String::from_utf8_lossy(&line()).contains(HELPER));
    agent.kill().unwrap();
    agent.wait().unwrap();
    wait_until("the end of the helper", || !String::from_utf8_lossy(&line()).contains(HELPER));
}

#[test]
fn the_unprivileged_have_one_alike() {
    common::again_unprivileged(module_path!());
}
