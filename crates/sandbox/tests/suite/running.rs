//! How commands run and end: outcomes, output, limits, refusals, and real toolchains.

use crate::common;
use journeyman_testkit::{has_program_or_skip, skip, wait_until};

use std::path::Path;
use std::time::{Duration, Instant};

use crate::common::{alive, block_on, host_toolchains, project, run, sandbox, settings};
use journeyman_protocol::{Enforcement, RelPath, SandboxNeeds, SandboxTier};
use journeyman_sandbox::{
    Limits, Network, Outcome, OutputChunk, OutputStream, Request, Sandbox, SandboxError, SandboxSettings,
    Stdin, StdioMode, WriteMode,
};
use tokio_util::sync::CancellationToken;

fn program(root: &Path, argv: &[&str]) -> Request {
    Request::for_program(root, argv.iter().map(Into::into).collect())
}

/// Why a request isn't run.
fn refusal(request: Request) -> String {
    let spawned = block_on(async { sandbox().spawn(request, CancellationToken::new()).await.map(drop) });
    spawned.unwrap_err().to_string()
}

#[test]
fn outcomes() {
    let project = project();
    let cases = [
        ("exit 0", Outcome::Exited(0)),
        ("exit 3", Outcome::Exited(3)),
        ("exit 255", Outcome::Exited(255)),
        ("kill -TERM $$", Outcome::Signaled(15)),
        ("kill -KILL $$", Outcome::Signaled(9)),
        ("kill -PIPE $$", Outcome::Signaled(13)),
    ];
    for (command, expected) in cases {
        assert_eq!(run(Request::for_shell_command(project.path(), command)).outcome, expected, "{command}");
    }
}

#[test]
fn streams_are_kept_apart_and_together() {
    let project = project();
    let completed =
        run(Request::for_shell_command(project.path(), "echo out; echo err >&2; sleep 0.02; echo more"));
    assert_eq!(completed.stdout.text, "out\nmore\n");
    assert_eq!((completed.stderr.text.as_str(), completed.stderr.total_bytes), ("err\n", 4));
    assert_eq!(completed.combined.total_bytes, 13);
    assert!(completed.combined.text.ends_with("more\n"));
    assert_eq!(completed.enforcement.tier, SandboxTier::Namespaces);
    assert!(completed.enforcement.first_unmet(&SandboxNeeds::ALL).is_none());
}

#[test]
fn merged_streams_keep_the_commands_own_order() {
    let project = project();
    let lines = "for i in 1 2 3 4 5 6 7 8; do echo out $i; echo err $i >&2; done";
    let expected: String = (1..=8).map(|i| format!("out {i}\nerr {i}\n")).collect();
    for _ in 0..5 {
        let mut request = Request::for_shell_command(project.path(), lines);
        request.streams = StdioMode::Merged;
        let completed = run(request);
        assert_eq!(completed.combined.text, expected);
        assert_eq!((completed.stdout.text, completed.stderr.text.as_str()), (expected.clone(), ""));
    }
}

#[test]
fn exact_output_is_byte_for_byte_and_bounded() {
    let project = project();
    let print = |count: u32| {
        let command = format!("printf '\\0\\377\\33[1m\\r\\n'; head -c {count} /dev/zero; echo words >&2");
        let mut request = Request::for_shell_command(project.path(), &command);
        request.streams = StdioMode::Exact;
        request.limits.output_bytes = 3_000_008;
        run(request)
    };
    let completed = print(3_000_000);
    assert_eq!(completed.outcome, Outcome::Exited(0));
    assert_eq!(completed.exact, [b"\0\xff\x1b[1m\r\n".as_slice(), &[0; 3_000_000]].concat());
    assert_eq!((completed.stdout.text.as_str(), completed.stderr.text.as_str()), ("", "words\n"));
    assert_eq!(print(3_000_001).outcome, Outcome::OutputLimit);
}

#[test]
fn output_is_live() {
    let project = project();
    let box_ = sandbox();
    block_on(async {
        let request = Request::for_shell_command(
            project.path(),
            "echo ready; while ! test -e go; do sleep 0.01; done; echo gone",
        );
        let mut running = box_.spawn(request, CancellationToken::new()).await.unwrap();
        let first = running.next_chunk().await.unwrap();
        assert_eq!(first, OutputChunk { stream: OutputStream::Stdout, at: 0, bytes: b"ready\n".to_vec() });
        std::fs::write(project.path().join("go"), "").unwrap();
        assert_eq!(running.next_chunk().await.unwrap().bytes, b"gone\n");
        assert!(running.next_chunk().await.is_none());
        assert_eq!(running.wait().await.unwrap().outcome, Outcome::Exited(0));
    });
}

#[test]
fn standard_input() {
    let project = project();
    let big = vec![b'x'; 3_000_000];
    for (input, expected) in [(&b""[..], "0"), (b"hello", "5"), (&big, "3000000")] {
        let mut request = program(project.path(), &["wc", "-c"]);
        request.stdin = Stdin::Bytes(input.to_vec());
        let completed = run(request);
        assert_eq!(completed.stdout.text.trim(), expected, "{completed:?}");
    }
    // A command that doesn't read its input ends all the same.
    let mut request = program(project.path(), &["true"]);
    request.stdin = Stdin::Bytes(big);
    assert_eq!(run(request).outcome, Outcome::Exited(0));
}

#[test]
fn the_environment_is_exact_and_signals_are_usual() {
    let project = project();
    let mut request = program(project.path(), &["/usr/bin/env"]);
    request.env = [("A", "1"), ("B", "two words")].map(|(n, v)| (n.into(), v.into())).into();
    assert_eq!(run(request).stdout.text, "A=1\nB=two words\n");
    let status =
        run(Request::for_shell_command(project.path(), "grep -E '^Sig(Blk|Ign):' /proc/self/status"));
    for line in status.stdout.text.lines() {
        // Signals 32 on are libc's and the real-time ones; a parent may have them ignored, nobody
        // minds.
        let set = u64::from_str_radix(line.split_whitespace().nth(1).unwrap(), 16).unwrap();
        assert_eq!(set & 0x7fff_ffff, 0, "{line}");
    }
}

#[test]
fn large_arguments_and_many_of_them() {
    let project = project();
    let long = "x".repeat(120_000);
    let mut argv = vec!["sh", "-c", "echo $# ${#1}", "sh"];
    argv.extend(std::iter::repeat_n(long.as_str(), 12));
    assert_eq!(run(program(project.path(), &argv)).stdout.text, "12 120000\n");
}

#[test]
fn what_cannot_be_executed_is_a_failed_set_up() {
    let project = project();
    std::fs::write(project.path().join("text"), "not a program").unwrap();
    let cases = [
        (&["no-such-program"][..], "executing no-such-program: No such file or directory (os error 2)"),
        (&["/no/such/program"], "executing /no/such/program: No such file or directory (os error 2)"),
        (&["./text"], "executing ./text: Permission denied (os error 13)"),
    ];
    for (argv, expected) in cases {
        let completed = run(program(project.path(), argv));
        let Outcome::SetupFailed(failure) = &completed.outcome else { panic!("{completed:?}") };
        assert_eq!(failure.reason, expected);
        assert_eq!(completed.combined.total_bytes, 0);
    }
}

#[test]
fn cancelling_and_dropping_kill_the_tree() {
    let project = project();
    let marker = format!("jm-cancel-{}", std::process::id());
    let command =
        format!("setsid sh -c 'while :; do sleep 1; done # {marker}' & while :; do sleep 1; done # {marker}");
    let box_ = sandbox();
    block_on(async {
        let cancel = CancellationToken::new();
        let running =
            box_.spawn(Request::for_shell_command(project.path(), &command), cancel.clone()).await.unwrap();
        let wait = tokio::spawn(running.wait());
        tokio::task::spawn_blocking({
            let marker = marker.clone();
            move || wait_until("the start", || alive(&marker) >= 2)
        })
        .await
        .ok();
        cancel.cancel();
        assert_eq!(wait.await.unwrap().unwrap().outcome, Outcome::Cancelled);
        assert_eq!(alive(&marker), 0);

        let mut running = box_
            .spawn(
                Request::for_shell_command(project.path(), &format!("echo; {command}")),
                CancellationToken::new(),
            )
            .await
            .unwrap();
        running.next_chunk().await.unwrap();
        assert!(alive(&marker) > 0);
        drop(running);
        while alive(&marker) > 0 {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    });
    // A runtime that ends takes its commands with it.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let running = runtime.block_on(async {
        let request = Request::for_shell_command(project.path(), &format!("echo; {command}"));
        let mut running = box_.spawn(request, CancellationToken::new()).await.unwrap();
        running.next_chunk().await.unwrap();
        running
    });
    assert!(alive(&marker) > 0);
    drop(runtime);
    assert_eq!(alive(&marker), 0);
    assert!(matches!(block_on(running.wait()), Err(SandboxError::Abandoned)));
}

/// Whatever the sandbox is at just then: when the wait is over nothing of the command is left.
#[test]
fn cancelling_while_it_is_set_up_leaves_nothing() {
    let project = project();
    let marker = format!("jm-early-{}", std::process::id());
    let command = format!("while :; do sleep 1; done # {marker}");
    let box_ = sandbox();
    block_on(async {
        for number in 0..150 {
            let cancel = CancellationToken::new();
            let request = Request::for_shell_command(project.path(), &command);
            let running = box_.spawn(request, cancel.clone()).await.unwrap();
            let wait = tokio::spawn(running.wait());
            tokio::time::sleep(Duration::from_micros(number * 50)).await;
            cancel.cancel();
            assert_eq!(wait.await.unwrap().unwrap().outcome, Outcome::Cancelled);
            assert_eq!(alive(&marker), 0, "cancelled after {number} times 50 µs");
        }
    });
}

#[test]
fn limits_hold() {
    let project = project();
    let limited = |command: &str, set: &dyn Fn(&mut Limits)| {
        let mut request = Request::for_shell_command(project.path(), command);
        set(&mut request.limits);
        run(request)
    };
    let outcome = limited("head -c 3000000 /dev/zero > big", &|limits| limits.file_bytes = 1_000_000);
    assert_eq!(std::fs::metadata(project.path().join("big")).unwrap().len(), 1_000_000, "{outcome:?}");
    let files = limited("ulimit -n", &|limits| limits.open_files = 77);
    assert_eq!(files.stdout.text, "77\n");
    let cpu = limited("while :; do :; done", &|limits| limits.cpu = Some(Duration::from_millis(300)));
    assert_eq!(cpu.outcome, Outcome::CpuLimit);
    let memory =
        limited("head -c 200000000 /dev/zero | tail", &|limits| limits.address_space = Some(50_000_000));
    assert!(memory.stderr.text.contains("memory"), "{}", memory.combined.text);
    assert_eq!(limited("ulimit -c", &|_| {}).stdout.text, "0\n");
}

#[test]
fn read_only_is() {
    let project = project();
    let mut request = Request::for_shell_command(project.path(), "cat file; touch new");
    request.write = WriteMode::ReadOnly;
    let completed = run(request);
    assert_eq!(completed.stdout.text, "content\n");
    assert!(completed.stderr.text.contains("Read-only file system"), "{}", completed.stderr.text);
    assert!(!project.path().join("new").exists());
}

/// What the mounts alone would let a command do: a device 0:0 marks a removed file to every
/// overlay.
#[test]
fn landlock_lies_beneath_the_mounts() {
    let project = project();
    let python = "/usr/bin/python3";
    let enforcement = block_on(sandbox().enforcement(&SandboxNeeds::ALL)).unwrap();
    let Some(layer) = enforcement.layers.iter().find(|layer| layer.starts_with("Landlock")) else {
        assert!(enforcement.gaps.iter().any(|gap| gap.contains("Landlock")), "{enforcement:?}");
        skip("this kernel has no Landlock");
        return;
    };
    assert!(layer.split(' ').nth(1).is_some_and(|version| version.parse::<u32>().is_ok()), "{layer}");
    if !has_program_or_skip(python) {
        return;
    }
    let code = "import os
os.mkdir('a'); os.mkdir('b'); open('a/f', 'w').write('123'); os.rename('a/f', 'b/f'); os.link('b/f', 'a/f')
os.truncate('a/f', 1); os.mkfifo('p'); os.kill(os.getpid(), 0); open('/dev/null', 'w').write('x')
try: os.mknod('w', 0o20000, 0)
except PermissionError: print('held')";
    let completed = run(program(project.path(), &[python, "-c", code]));
    assert_eq!(completed.stdout.text, "held\n", "{}", completed.combined.text);
}

#[test]
fn listed_paths() {
    let (project, other) = (project(), tempfile::tempdir().unwrap());
    for name in ["ro", "rw", "layer"] {
        std::fs::create_dir(other.path().join(name)).unwrap();
        std::fs::write(other.path().join(name).join("file"), name).unwrap();
    }
    std::fs::write(other.path().join("layer/credentials"), "secret").unwrap();
    let at = other.path().display();
    let command = format!(
        "cd {at}; ls; cat */file; echo; echo new > ro/new; echo new > rw/new; echo new > layer/new; \
         cat layer/new; rm layer/file; cat layer/credentials; ls layer"
    );
    let mut request = Request::for_shell_command(project.path(), &command);
    request.read_only = vec![other.path().join("ro"), other.path().join("missing")];
    request.writable = vec![other.path().join("rw")];
    request.layered = vec![other.path().join("layer")];
    request.masked = vec![other.path().join("layer/credentials"), other.path().join("gone")];
    let completed = run(request);
    assert_eq!(completed.stdout.text, "layer\nro\nrw\nlayerrorw\nnew\ncredentials\nnew\n", "{completed:?}");
    assert!(!other.path().join("ro/new").exists() && other.path().join("rw/new").exists());
    assert!(!other.path().join("layer/new").exists() && other.path().join("layer/file").exists());
}

#[test]
fn links_on_the_way_work_inside() {
    let place = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(place.path().join("real/project")).unwrap();
    std::fs::write(place.path().join("real/project/file"), "content\n").unwrap();
    std::os::unix::fs::symlink("real", place.path().join("link")).unwrap();
    let named = place.path().join("link/project");
    let mut request = Request::for_shell_command(&named, "pwd -P; cat $NAMED/file");
    request.env.insert("NAMED".into(), named.into());
    let real = place.path().canonicalize().unwrap().join("real/project");
    assert_eq!(run(request).stdout.text, format!("{}\ncontent\n", real.display()));
}

#[test]
fn hostile_requests_are_refused() {
    let project = project();
    let root = project.path();
    std::os::unix::fs::symlink("/", root.join("out")).unwrap();
    let home = |request: &mut Request, home: &Path| drop(request.env.insert("HOME".into(), home.into()));
    type Change = Box<dyn Fn(&mut Request)>;
    let cases: Vec<(&str, Change, &str)> = vec![
        ("the root directory", Box::new(|r| r.root = "/".into()), "system directory"),
        ("a system directory", Box::new(|r| r.root = "/usr".into()), "system directory"),
        ("a relative root", Box::new(|r| r.root = "here".into()), "absolute"),
        ("a missing root", Box::new(|r| r.root = "/no/such".into()), "No such file"),
        ("a file as root", Box::new(|r| r.root = r.root.join("file")), "not a directory"),
        ("the home as root", Box::new(move |r| home(r, &r.root.clone())), "home directory"),
        ("above the home", Box::new(move |r| home(r, &r.root.join("user"))), "home directory"),
        ("a link to /", Box::new(|r| r.root = r.root.join("out")), "system directory"),
        ("cwd outside", Box::new(|r| r.cwd = "/var".into()), "working directory"),
        ("cwd by a link", Box::new(|r| r.cwd = r.root.join("out/var")), "working directory"),
        ("all of / listed", Box::new(|r| r.read_only = vec!["/".into()]), "system directory"),
        (
            "a link out, listed",
            Box::new(|r| r.writable = vec![r.root.join("out/usr/share")]),
            "leads this listed path out",
        ),
        ("no command", Box::new(|r| r.argv = Vec::new()), "empty"),
        ("a NUL", Box::new(|r| r.argv = vec!["a\0b".into()]), "NUL"),
        ("a bad variable", Box::new(|r| drop(r.env.insert("A=B".into(), "x".into()))), "variable"),
        ("a network against the needs", Box::new(|r| r.network = Network::Host), "no network"),
    ];
    for (name, change, expected) in cases {
        let mut request = Request::for_shell_command(root, "echo ran > ran");
        change(&mut request);
        let text = refusal(request);
        assert!(text.contains(expected), "{name}: {text}");
    }
    assert!(!root.join("ran").exists());
}

#[test]
fn a_protected_link_is_refused_and_a_missing_one_not_made() {
    let project = project();
    let mut request = Request::for_shell_command(project.path(), "true");
    request.protected = vec![RelPath::parse("later/deep").unwrap()];
    assert_eq!(run(request).outcome, Outcome::Exited(0));
    assert!(!project.path().join("later").exists());
    std::os::unix::fs::symlink(".git", project.path().join("link")).unwrap();
    let mut request = Request::for_shell_command(project.path(), "true");
    request.protected = vec![RelPath::parse("link/hooks").unwrap()];
    assert!(refusal(request).contains("symbolic link"));
}

#[test]
fn a_path_that_became_a_link_after_the_request_is_not_mounted() {
    let lists: [fn(&mut Request) -> &mut Vec<std::path::PathBuf>; 3] =
        [|r| &mut r.read_only, |r| &mut r.writable, |r| &mut r.layered];
    for list in lists {
        let (project, place) = (project(), tempfile::tempdir().unwrap());
        let at = |name: &str| place.path().join(name);
        for name in ["listed", "other"] {
            std::fs::create_dir_all(at(name).join("inner")).unwrap();
            std::fs::write(at(name).join("inner/file"), name).unwrap();
        }
        let command = format!("cat {}", at("listed/inner/file").display());
        let mut request = Request::for_shell_command(project.path(), &command);
        list(&mut request).push(at("listed/inner"));
        // More than a socket takes, so the helper has the rest only after this thread waits.
        request.stdin = Stdin::Bytes(vec![0; 8 << 20]);
        let completed = block_on(async {
            let running = sandbox().spawn(request, CancellationToken::new()).await.unwrap();
            std::fs::rename(at("listed"), at("before")).unwrap();
            std::os::unix::fs::symlink("other", at("listed")).unwrap();
            running.wait().await.unwrap()
        });
        assert!(matches!(completed.outcome, Outcome::SetupFailed(_)), "{completed:?}");
    }
}

#[test]
fn the_host_network_only_when_asked_for() {
    let project = project();
    let mut request = Request::for_shell_command(project.path(), "grep -c : /proc/net/dev");
    let off = run(request.clone());
    assert_eq!(off.stdout.text, "1\n");
    request.network = Network::Host;
    request.needs = SandboxNeeds { network_off: false, ..SandboxNeeds::ALL };
    let on = run(request);
    assert!(!on.enforcement.network_off && on.enforcement.writes_confined);
    assert_eq!(on.outcome, Outcome::Exited(0));
}

#[test]
fn a_program_that_is_no_helper_is_named() {
    let project = project();
    for helper in ["/bin/true", "/bin/echo"] {
        let sandbox = Sandbox::new(SandboxSettings { helper: Some(helper.into()), ..settings() });
        let error = block_on(sandbox.enforcement(&journeyman_protocol::SandboxNeeds::ALL)).unwrap_err();
        assert!(matches!(&error, SandboxError::NoHelper { path } if path == Path::new(helper)), "{error}");
        assert!(error.to_string().contains("run_helper_if_asked"));
    }
    let missing = Sandbox::new(SandboxSettings { helper: Some("/no/helper".into()), ..settings() });
    let request = Request::for_shell_command(project.path(), "true");
    let error =
        block_on(async { missing.spawn(request, CancellationToken::new()).await.map(drop) }).unwrap_err();
    assert!(matches!(error, SandboxError::Start { .. }), "{error}");
}

#[test]
fn a_helper_that_has_threads_is_told_what_to_do() {
    use std::os::unix::fs::PermissionsExt as _;
    let project = project();
    let helper = project.path().join("helper");
    // The message in place of the greeting, as a program with threads sends it.
    let script = format!("#!/bin/sh\nprintf 'J\\017{}' >&0\n", "\\0".repeat(34));
    std::fs::write(&helper, script).unwrap();
    std::fs::set_permissions(&helper, std::fs::Permissions::from_mode(0o755)).unwrap();
    let sandbox = Sandbox::new(SandboxSettings { helper: Some(helper.clone()), ..settings() });
    let error = block_on(sandbox.enforcement(&journeyman_protocol::SandboxNeeds::ALL)).unwrap_err();
    assert!(matches!(&error, SandboxError::ThreadsStarted { path } if *path == helper), "{error}");
    assert!(error.to_string().contains("the first line of a plain `fn main`"), "{error}");
}

#[test]
fn the_result_of_the_test_is_remembered() {
    let place = tempfile::tempdir().unwrap();
    let cache = place.path().join("sandbox.json");
    let with_cache = || Sandbox::new(SandboxSettings { cache: Some(cache.clone()), ..settings() });
    let first = block_on(with_cache().enforcement(&journeyman_protocol::SandboxNeeds::ALL)).unwrap();
    let text = std::fs::read_to_string(&cache).unwrap();
    assert_eq!(block_on(with_cache().enforcement(&journeyman_protocol::SandboxNeeds::ALL)).unwrap(), first);
    // It is the file that is believed, for the same boot and program only.
    let believed = text.replace("\"gaps\":[", "\"gaps\":[\"marked\",");
    std::fs::write(&cache, &believed).unwrap();
    assert!(
        block_on(with_cache().enforcement(&journeyman_protocol::SandboxNeeds::ALL))
            .unwrap()
            .gaps
            .iter()
            .any(|gap| gap.starts_with("marked"))
    );
    let stale = believed.replace("\"boot\":\"", "\"boot\":\"another");
    for bad in [stale.as_str(), "", "{", "null", "{\"key\":{}}"] {
        std::fs::write(&cache, bad).unwrap();
        assert_eq!(
            block_on(with_cache().enforcement(&journeyman_protocol::SandboxNeeds::ALL)).unwrap(),
            first,
            "{bad}"
        );
        assert_eq!(std::fs::read_to_string(&cache).unwrap(), text);
    }
}

#[test]
fn unconfined_only_by_name() {
    let project = project();
    let allowed = |allow| Sandbox::new(SandboxSettings { allow, allow_root: true, ..settings() });
    let none = block_on(allowed(vec![]).enforcement(&journeyman_protocol::SandboxNeeds::ALL)).unwrap_err();
    assert!(matches!(none, SandboxError::Unavailable { .. }), "{none}");
    let box_ = allowed(vec![SandboxTier::Unconfined]);
    assert_eq!(
        block_on(box_.enforcement(&journeyman_protocol::SandboxNeeds::ALL)).unwrap(),
        Enforcement::none()
    );
    let request =
        Request::for_shell_command(project.path(), "echo out; echo err >&2; cat; sleep 60 & exit 4");
    let refused = block_on(async { box_.spawn(request.clone(), CancellationToken::new()).await.map(drop) });
    assert!(matches!(refused, Err(SandboxError::Unmet { .. })));
    let request = Request { needs: SandboxNeeds::NONE, stdin: Stdin::Bytes(b"in".to_vec()), ..request };
    let completed = block_on(async {
        box_.spawn(request, CancellationToken::new()).await.unwrap().wait().await.unwrap()
    });
    assert_eq!((completed.outcome, completed.stdout.text.as_str()), (Outcome::Exited(4), "out\nin"));
    assert!(completed.duration < Duration::from_secs(30));
    let mut request = Request::for_shell_command(project.path(), "echo a; echo b >&2; echo c");
    (request.needs, request.streams) = (SandboxNeeds::NONE, StdioMode::Merged);
    let merged = block_on(async {
        box_.spawn(request, CancellationToken::new()).await.unwrap().wait().await.unwrap()
    });
    assert_eq!(merged.combined.text, "a\nb\nc\n");
    let mut request = Request::for_shell_command(project.path(), "sleep 60");
    request.needs = SandboxNeeds::NONE;
    request.limits.wall = Duration::from_millis(50);
    let timed_out = block_on(async {
        box_.spawn(request, CancellationToken::new()).await.unwrap().wait().await.unwrap()
    });
    assert_eq!(timed_out.outcome, Outcome::TimedOut);
}

#[test]
fn many_at_once() {
    let project = project();
    let box_ = sandbox();
    block_on(async {
        let mut running = Vec::new();
        for number in 0..16 {
            let request = Request::for_shell_command(project.path(), &format!("echo {number}"));
            running.push((number, box_.spawn(request, CancellationToken::new()).await.unwrap()));
        }
        for (number, command) in running {
            assert_eq!(command.wait().await.unwrap().stdout.text, format!("{number}\n"));
        }
    });
}

fn with_toolchains(root: &Path, command: &str) -> Request {
    Request::for_shell_command(root, command).with_toolchains(&host_toolchains(root))
}

#[test]
fn other_toolchains_work() {
    let project = project();
    std::fs::write(project.path().join("Makefile"), "all:\n\tcc -o hello hello.c && ./hello\n").unwrap();
    let c = "#include <stdio.h>\nint main(void) { puts(\"hello\"); return 0; }\n";
    std::fs::write(project.path().join("hello.c"), c).unwrap();
    let cases: &[(&[&str], &str, &str)] = &[
        (&["python3"], "python3 -c 'print(6 * 7)'", "42\n"),
        (
            &["python3"],
            "python3 -c 'import multiprocessing as m; print(sum(m.Pool(2).map(abs, [-1, -2])))'",
            "3\n",
        ),
        (
            &["node"],
            "node -e 'console.log(6 * 7, require(\"os\").networkInterfaces().lo.length > 0)'",
            "42 true\n",
        ),
        (&["make", "gcc"], "make -s", "hello\n"),
        (
            &["git"],
            "rm -rf x; git init -q x && cd x && git status --porcelain=v2 --branch | head -1",
            "# branch.oid (initial)\n",
        ),
        (&["git"], "git -C x status --porcelain && git -C x log 2>&1 | head -c 6", "fatal:"),
    ];
    for (tools, command, expected) in cases {
        if tools.iter().all(|tool| has_program_or_skip(tool)) {
            let completed = run(with_toolchains(project.path(), command));
            assert_eq!(completed.stdout.text, *expected, "{command}: {}", completed.combined.text);
        }
    }
}

#[test]
fn a_command_that_ends_is_reported_at_once() {
    let project = project();
    let begun = Instant::now();
    let completed = run(Request::for_shell_command(project.path(), "sleep 30 & echo done"));
    assert_eq!(completed.stdout.text, "done\n");
    assert!(begun.elapsed() < Duration::from_secs(20), "the background process was waited for");
}

#[test]
fn the_unprivileged_can_run_all_of_it() {
    common::again_unprivileged(module_path!());
}

#[test]
fn a_reader_who_is_to_miss_nothing_misses_nothing() {
    let project = project();
    let mut request = Request::for_shell_command(project.path(), "head -c 20000000 /dev/zero; echo end >&2");
    request.live = journeyman_sandbox::LiveOutputMode::Whole;
    request.limits.flood_bytes = Some(u64::MAX);
    let read = block_on(async {
        let mut running = sandbox().spawn(request, CancellationToken::new()).await.unwrap();
        let mut read = [0, 0];
        while let Some(chunk) = running.next_chunk().await {
            // Slower than the command writes.
            for _ in 0..50 {
                tokio::task::yield_now().await;
            }
            read[usize::from(chunk.stream == journeyman_sandbox::OutputStream::Stderr)] += chunk.bytes.len();
        }
        assert_eq!(running.wait().await.unwrap().outcome, Outcome::Exited(0));
        read
    });
    assert_eq!(read, [20_000_000, 4]);
}
