//! Nothing is left of a command, however it ended, nor of its container once its owner is gone.

use journeyman_testkit::{rerun_test, wait_until};
use std::process::{Command, Stdio};
use std::time::Duration;

use journeyman_protocol::SandboxNeeds;
use journeyman_sandbox::{Outcome, Sandbox};
use tokio_util::sync::CancellationToken;

use crate::common::{alive, block_on};
use crate::container::support::{Place, place, run, text};

/// Leaves daemons behind: in a session of their own, with no parent, one of which holds the output.
const DAEMONS: &str =
    "setsid sh -c 'sleep MARK & sleep MARK' & (setsid sleep MARK </dev/null >/dev/null 2>&1 &) ; ";

/// A number of seconds that nobody else sleeps.
fn mark() -> String {
    static COUNT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let count = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    format!("{}.{count}", 80_000 + std::process::id())
}

async fn probed(place: &Place) -> Sandbox {
    let sandbox = place.sandbox();
    sandbox.enforcement(&SandboxNeeds::ALL).await.unwrap();
    sandbox
}

#[test]
fn daemons_end_with_their_command() {
    let Some(place) = place() else { return };
    let mark = mark();
    block_on(async {
        let sandbox = probed(&place).await;
        let request = place.request(&format!("{} echo done", DAEMONS.replace("MARK", &mark)));
        let completed = run(&sandbox, request).await;
        assert_eq!((completed.outcome, completed.stdout.text.as_str()), (Outcome::Exited(0), "done\n"));
        assert_eq!(alive(&mark), 0);
        // The next one has a container of its own.
        assert_eq!(text(run(&sandbox, place.request("echo again")).await), "again\n");
    });
}

#[test]
fn a_command_whose_time_is_over_is_gone() {
    let Some(place) = place() else { return };
    let mark = mark();
    block_on(async {
        let sandbox = probed(&place).await;
        let mut request = place.request(&format!("{} sleep {mark}", DAEMONS.replace("MARK", &mark)));
        request.limits.wall = Duration::from_secs(2);
        assert_eq!(run(&sandbox, request).await.outcome, Outcome::TimedOut);
        assert_eq!(alive(&mark), 0);
    });
}

#[test]
fn a_cancelled_command_is_gone() {
    let Some(place) = place() else { return };
    let mark = mark();
    block_on(async {
        let sandbox = probed(&place).await;
        let cancel = CancellationToken::new();
        let request = place.request(&format!("{} echo up; sleep {mark}", DAEMONS.replace("MARK", &mark)));
        let mut running = sandbox.spawn(request, cancel.clone()).await.unwrap();
        assert_eq!(running.next_chunk().await.unwrap().bytes, b"up\n");
        cancel.cancel();
        assert_eq!(running.wait().await.unwrap().outcome, Outcome::Cancelled);
        assert_eq!(alive(&mark), 0);
    });
}

#[test]
fn a_dropped_command_is_gone() {
    let Some(place) = place() else { return };
    let mark = mark();
    block_on(async {
        let sandbox = probed(&place).await;
        let request = place.request(&format!("{} echo up; sleep {mark}", DAEMONS.replace("MARK", &mark)));
        let mut running = sandbox.spawn(request, CancellationToken::new()).await.unwrap();
        assert_eq!(running.next_chunk().await.unwrap().bytes, b"up\n");
        drop(running);
        tokio::task::spawn_blocking(move || wait_until("the end of a dropped command", || alive(&mark) == 0))
            .await
            .unwrap();
    });
}

#[test]
fn a_warm_container_is_used_again_and_ends_with_its_sandbox() {
    let Some(place) = place() else { return };
    block_on(async {
        let sandbox = probed(&place).await;
        text(run(&sandbox, place.request("true")).await);
        let first = place.containers();
        assert_eq!(first.len(), 1);
        for _ in 0..3 {
            text(run(&sandbox, place.request("echo more; cat file")).await);
        }
        assert_eq!(place.containers(), first);
        // Another kind of command has another container.
        let mut request = place.request("true");
        request.limits.processes = 77;
        text(run(&sandbox, request).await);
        assert_eq!(place.containers().len(), 2);
        drop(sandbox);
    });
    wait_until("the end of the containers", || place.containers().is_empty());
}

#[test]
fn what_one_command_leaves_the_next_doesnt_find() {
    let Some(place) = place() else { return };
    block_on(async {
        let sandbox = probed(&place).await;
        for left in ["echo x >/tmp/left", "echo x >~/.profile", "mkdir /dev/shm/left", "touch /var/tmp/left"]
        {
            let request = |command: &str| {
                let mut request = place.request(command);
                request.env.insert("HOME".into(), "/home/someone".into());
                request
            };
            text(run(&sandbox, request(left)).await);
            let found = text(
                run(&sandbox, request("ls -A /tmp ~ /dev/shm /var/tmp | grep -E 'left|profile'; true")).await,
            );
            assert_eq!(found, "", "{left}");
        }
    });
}

#[test]
fn a_protected_path_that_was_replaced_is_protected_again() {
    let Some(place) = place() else { return };
    block_on(async {
        let sandbox = probed(&place).await;
        let try_it = "(echo x >.git/new) 2>/dev/null && echo wrote; ls .git";
        assert_eq!(text(run(&sandbox, place.request(try_it)).await), "config\nhooks\n");
        // As the user does outside meanwhile.
        std::fs::rename(place.root().join(".git"), place.root().join("old")).unwrap();
        std::fs::create_dir(place.root().join(".git")).unwrap();
        std::fs::write(place.root().join(".git/HEAD"), "x").unwrap();
        crate::container::support::give(&place.root());
        assert_eq!(text(run(&sandbox, place.request(try_it)).await), "HEAD\n");
    });
}

/// Runs as another process, whose end is tried; nothing where it isn't asked for.
#[test]
fn helper_that_is_killed() {
    let Some(root) = std::env::var_os("JM_TEST_CONTAINER_VICTIM") else { return };
    let Some(mut place) = place() else { return };
    let kept = std::mem::replace(&mut place.directory, tempfile::tempdir().unwrap());
    drop(kept);
    let mark = std::env::var("JM_TEST_CONTAINER_MARK").unwrap();
    block_on(async {
        let sandbox = place.sandbox();
        let mut request = place.request("true");
        request = journeyman_sandbox::Request::for_program(
            root.as_ref(),
            ["/bin/sh", "-c", &format!("{} echo up; sleep {mark}", DAEMONS.replace("MARK", &mark))]
                .map(Into::into)
                .to_vec(),
        )
        .with_toolchains(&journeyman_sandbox::Toolchains { env: request.env, ..Default::default() });
        let mut running = sandbox.spawn(request, CancellationToken::new()).await.unwrap();
        running.next_chunk().await;
        println!("started");
        running.wait().await.unwrap();
    });
}

#[test]
fn a_killed_agents_containers_end() {
    let Some(place) = place() else { return };
    let mark = mark();
    let mut victim = rerun_test!("helper_that_is_killed")
        .env("JM_TEST_CONTAINER_VICTIM", place.root())
        .env("JM_TEST_CONTAINER_MARK", &mark)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let output = std::io::BufReader::new(victim.stdout.take().unwrap());
    let started = std::io::BufRead::lines(output).map_while(Result::ok).any(|line| line.contains("started"));
    assert!(started && alive(&mark) > 0);
    victim.kill().unwrap();
    victim.wait().unwrap();
    wait_until("the end of the commands", || alive(&mark) == 0);
    wait_until("the end of the container", || place.containers().is_empty());
}

#[test]
fn what_a_dead_owner_left_is_swept() {
    let Some(place) = place() else { return };
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let namespace = std::fs::read_link("/proc/self/ns/pid").unwrap();
    let label = |process: u32, started: u64| {
        format!("label=journeyman.owner={} {} {process} {started}", boot.trim(), namespace.display())
    };
    let start = |label: &str| {
        let label = label.strip_prefix("label=").unwrap();
        place.docker(&[
            "run",
            "--detach",
            "--network",
            "none",
            "--label",
            label,
            &place.image,
            "sleep",
            "600",
        ])
    };
    let started = |process: u32| -> u64 {
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
        stat.rsplit_once(')').unwrap().1.split_whitespace().nth(19).unwrap().parse().unwrap()
    };
    // The owner lives until its container runs: another test's sweep would remove what is only
    // created.
    let mut owner = Command::new("sleep").arg("600").spawn().unwrap();
    let dead = start(&label(owner.id(), started(owner.id())));
    owner.kill().unwrap();
    owner.wait().unwrap();
    let living = start(&label(std::process::id(), started(std::process::id())));
    let foreign = start("label=journeyman.owner=strange");
    block_on(probed(&place));
    let left = place.docker(&["ps", "--quiet", "--no-trunc"]);
    assert!(!left.contains(&dead) && left.contains(&living) && left.contains(&foreign), "{left}");
    place.docker(&["rm", "--force", &living, &foreign]);
}
