//! Bounds of a command's whole tree: memory, processor time, disk, processes; and that nothing of
//! them stays.

use crate::common;
use journeyman_testkit::{has_program_or_skip, rerun_test, wait_until};

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use crate::common::{alive, block_on, project, run, sandbox};
use journeyman_protocol::SandboxNeeds;
use journeyman_sandbox::{CompletedCommand, Limits, Outcome, Request};

const PYTHON: &str = "/usr/bin/python3";
const MIB: u64 = 1024 * 1024;

fn limited(command: &str, set: impl Fn(&mut Limits)) -> CompletedCommand {
    let project = project();
    let mut request = Request::for_shell_command(project.path(), command);
    set(&mut request.limits);
    run(request)
}

/// The groups that agents with this number, or any, have at present.
fn groups(owner: Option<u32>) -> Vec<PathBuf> {
    let prefix = owner.map_or("journeyman-".to_owned(), |owner| format!("journeyman-{owner}-"));
    let mut pending = vec![PathBuf::from("/sys/fs/cgroup")];
    let mut found = Vec::new();
    while let Some(directory) = pending.pop() {
        for entry in std::fs::read_dir(&directory).into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().starts_with(&prefix) {
                found.push(entry.path());
            } else if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                pending.push(entry.path());
            }
        }
    }
    found
}

#[test]
fn the_memory_of_a_tree_is_bounded() {
    // One process, and eight of which none has too much.
    let hold = |bytes: u64| format!("head -c {bytes} /dev/zero | tail -c {bytes} > /dev/null");
    // All at once, also where only two of them run at a time.
    let part = 60 * MIB;
    let eight = format!(
        "for i in 1 2 3 4 5 6 7 8; do (head -c {part} /dev/zero; sleep 5) | tail -c {part} > /dev/null & done; wait"
    );
    for command in [hold(400 * MIB), eight] {
        let completed = limited(&format!("{command}; sleep 60"), |limits| limits.memory = Some(150 * MIB));
        assert_eq!(completed.outcome, Outcome::MemoryLimit, "{command}: {completed:?}");
    }
    let fine = limited(&hold(40 * MIB), |limits| limits.memory = Some(150 * MIB));
    assert_eq!(fine.outcome, Outcome::Exited(0), "{fine:?}");
}

#[test]
fn memory_that_no_process_maps_counts() {
    if !has_program_or_skip(PYTHON) {
        return;
    }
    let tmp = "for i in range(400): open('/tmp/x', 'ab').write(block)";
    let nameless = "f = os.memfd_create('x')\nfor i in range(400): os.write(f, block)";
    let segments = "libc = ctypes.CDLL(None); libc.shmat.restype = ctypes.c_void_p
for i in range(4):
    a = libc.shmat(libc.shmget(0, 100 << 20, 0o1600), None, 0)
    ctypes.memset(a, 1, 100 << 20); libc.shmdt(ctypes.c_void_p(a))";
    for code in [tmp, nameless, segments] {
        let code = format!("import os, time, ctypes\nblock = b'x' * (1 << 20)\n{code}\ntime.sleep(60)");
        let completed = limited(&format!("{PYTHON} -c \"{code}\""), |limits| limits.memory = Some(200 * MIB));
        assert_eq!(completed.outcome, Outcome::MemoryLimit, "{code}: {completed:?}");
    }
    // What is a file and mapped, too, counts once.
    let code = "import mmap, os, time
f = os.memfd_create('x'); os.truncate(f, 120 << 20); m = mmap.mmap(f, 120 << 20)
for at in range(0, 120 << 20, 4096): m[at] = 1
time.sleep(1); print('done')";
    let completed = limited(&format!("{PYTHON} -c \"{code}\""), |limits| limits.memory = Some(200 * MIB));
    assert_eq!(completed.stdout.text, "done\n", "{completed:?}");
}

#[test]
fn a_command_sets_its_own_limits_and_nobody_elses() {
    if !has_program_or_skip(PYTHON) {
        return;
    }
    let code = "import resource as r
r.setrlimit(r.RLIMIT_NOFILE, (64, 64)); print(r.getrlimit(r.RLIMIT_NOFILE))
try: print(r.prlimit(1, r.RLIMIT_NOFILE, (0, 0)))
except PermissionError as error: print(error.errno)";
    let completed = limited(&format!("{PYTHON} -c '{code}'; ulimit -n 32 && ulimit -n"), |_| {});
    assert_eq!(completed.stdout.text, "(64, 64)\n1\n32\n", "{completed:?}");
}

#[test]
fn shared_memory_counts_once() {
    if !has_program_or_skip(PYTHON) {
        return;
    }
    let code = "import os, time
block = bytearray(os.urandom(1 << 20) * 60)
children = [os.fork() for _ in range(1)]
for _ in range(7):
    if all(children): children.append(os.fork())
if not all(children): time.sleep(0.5); os._exit(0)
for child in children: os.waitpid(child, 0)
print('done')";
    let completed = limited(&format!("{PYTHON} -c '{}'", code.replace('\'', "\"")), |limits| {
        limits.memory = Some(200 * MIB);
    });
    assert_eq!(completed.stdout.text, "done\n", "{completed:?}");
}

#[test]
fn the_processor_time_of_a_tree_is_bounded() {
    let spin = "while :; do :; done";
    // Children that end in time are counted, too.
    let hopping = "while :; do (i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done); done";
    for command in [spin.to_owned(), format!("{spin} & {spin} & wait"), hopping.to_owned()] {
        let completed = limited(&command, |limits| limits.cpu = Some(Duration::from_millis(500)));
        assert_eq!(completed.outcome, Outcome::CpuLimit, "{command}");
        assert!(completed.usage.user + completed.usage.system >= Duration::from_millis(400), "{completed:?}");
    }
    let idle = limited("sleep 0.3", |limits| limits.cpu = Some(Duration::from_millis(200)));
    assert_eq!(idle.outcome, Outcome::Exited(0));
}

#[test]
fn the_growth_of_the_disk_is_bounded() {
    let more = "i=0; while [ $i -lt 60 ]; do i=$((i+1)); head -c 4000000 /dev/zero > f$i; done; sleep 60";
    let completed = limited(more, |limits| limits.disk_bytes = Some(50 * MIB));
    assert_eq!(completed.outcome, Outcome::DiskLimit, "{completed:?}");
    if has_program_or_skip("fallocate") {
        let reserved =
            limited("fallocate -l 150M big && sleep 60", |limits| limits.disk_bytes = Some(50 * MIB));
        assert_eq!(reserved.outcome, Outcome::DiskLimit, "{reserved:?}");
    }
    let fine =
        limited("head -c 20000000 /dev/zero > f; sleep 0.2", |limits| limits.disk_bytes = Some(50 * MIB));
    assert_eq!(fine.outcome, Outcome::Exited(0), "{fine:?}");
}

#[test]
fn what_is_bounded_is_told() {
    let enforcement = block_on(sandbox().enforcement(&SandboxNeeds::ALL)).unwrap();
    assert!(enforcement.resources_bounded, "{enforcement:?}");
    let grouped =
        enforcement.layers.iter().any(|layer| layer.starts_with("cgroup") && layer.contains("memory"));
    let looked = enforcement.gaps.iter().any(|gap| gap.contains("twenty times a second"));
    assert!(grouped != looked, "{enforcement:?}");
}

/// Not a test by itself: an agent that ends as usual.
#[test]
#[ignore = "run by another test"]
fn agent_that_ends() {
    assert_eq!(limited("true", |_| {}).outcome, Outcome::Exited(0));
    assert_eq!(
        limited("sleep 60", |limits| limits.wall = Duration::from_millis(100)).outcome,
        Outcome::TimedOut
    );
}

#[test]
fn no_group_is_left() {
    let mut agent = rerun_test!("agent_that_ends").stdout(Stdio::null()).spawn().unwrap();
    assert!(agent.wait().unwrap().success());
    assert_eq!(groups(Some(agent.id())), Vec::<PathBuf>::new());
}

/// Not a test by itself: the agent that [`groups_of_a_killed_agent_are_swept`] kills.
#[test]
#[ignore = "run by another test"]
fn agent_to_be_killed() {
    let marker = std::env::var("JM_TEST_MARKER").unwrap();
    limited(&format!("sleep 1000 # {marker}\n:"), |_| {});
}

#[test]
fn groups_of_a_killed_agent_are_swept() {
    let enforcement = block_on(sandbox().enforcement(&SandboxNeeds::ALL)).unwrap();
    if !enforcement.layers.iter().any(|layer| layer.starts_with("cgroup")) {
        println!("no control groups can be made here, by this user");
        return;
    }
    let marker = format!("jm-swept-{}", std::process::id());
    let mut agent = rerun_test!("agent_to_be_killed")
        .env("JM_TEST_MARKER", &marker)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    wait_until("the start of the agent's command", || alive(&marker) >= 1);
    assert!(!groups(Some(agent.id())).is_empty());
    agent.kill().unwrap();
    agent.wait().unwrap();
    wait_until("the end of the agent's command", || alive(&marker) == 0);
    wait_until("the sweep", || {
        run(Request::for_shell_command(project().path(), "true"));
        groups(Some(agent.id())).is_empty()
    });
}

#[test]
fn the_unprivileged_are_bounded_alike() {
    common::again_unprivileged(module_path!());
}
