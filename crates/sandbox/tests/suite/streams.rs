//! Where a command's output goes besides, and terminals of its own.

use crate::common;
use journeyman_testkit::has_program_or_skip;

use std::time::Duration;

use crate::common::{block_on, project, run, sandbox, settings};
use journeyman_protocol::SandboxTier;
use journeyman_sandbox::{
    CompletedCommand, LiveOutputMode, Outcome, Request, Sandbox, SandboxSettings, SpillFile, Stdin, StdioMode,
};
use tokio_util::sync::CancellationToken;

/// Why a request isn't run.
fn refusal(request: Request) -> String {
    let spawned = block_on(async { sandbox().spawn(request, CancellationToken::new()).await.map(drop) });
    spawned.unwrap_err().to_string()
}

#[test]
fn all_of_the_output_goes_to_a_file_that_the_command_never_sees() {
    use std::os::unix::fs::PermissionsExt as _;
    let (project, place) = (project(), tempfile::tempdir().unwrap());
    let spill = |name: &str, bytes| Some(SpillFile { path: place.path().join(name), bytes });
    let command =
        "printf 'a\\0\\033[1m'; sleep 0.02; printf b >&2; sleep 0.02; head -c 700000 /dev/zero | tr '\\0' x";
    for (name, bytes, streams) in [
        ("all", 1 << 30, StdioMode::Separate),
        ("some", 1000, StdioMode::Merged),
        ("exact", 1 << 30, StdioMode::Exact),
    ] {
        let mut request = Request::for_shell_command(project.path(), command);
        (request.spill, request.streams, request.limits.output_bytes) =
            (spill(name, bytes), streams, 1 << 20);
        let completed = run(request);
        let file = std::fs::read(place.path().join(name)).unwrap();
        let expected = bytes.min(700_007);
        assert_eq!((completed.spilled, file.len() as u64), (Some(expected), expected), "{name}");
        assert!(file.starts_with(b"a\0\x1b[1mbxxx"), "{name}");
        assert_eq!((completed.outcome, completed.denials), (Outcome::Exited(0), Vec::new()));
        let mode = std::fs::metadata(place.path().join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    // One that is there is neither overwritten nor followed, and one that the command would see is
    // refused.
    let mut request = Request::for_shell_command(project.path(), "true");
    request.spill = spill("all", 10);
    assert!(refusal(request.clone()).contains("File exists"));
    request.spill = Some(SpillFile { path: project.path().join("new"), bytes: 10 });
    assert!(refusal(request.clone()).contains("where the command sees it"));
    assert!(!project.path().join("new").exists());
    request.writable = vec![place.path().to_owned()];
    request.spill = spill("new", 10);
    assert!(refusal(request).contains("where the command sees it"));
}

#[test]
fn a_terminal_of_its_own() {
    let project = project();
    let terminal = |command: &str, input: Option<&str>| {
        let mut request = Request::for_shell_command(project.path(), command);
        request.streams = StdioMode::Terminal { columns: 101, rows: 33 };
        if let Some(input) = input {
            request.stdin = Stdin::Bytes(input.as_bytes().to_vec());
        }
        run(request)
    };
    let seen = terminal(
        "tty; test -t 0 && test -t 1 && test -t 2 && stty size; echo err >&2; echo own > /dev/tty; exit 7",
        None,
    );
    assert_eq!(seen.stdout.text, "/dev/pts/0\n33 101\nerr\nown\n", "{seen:?}");
    assert_eq!((seen.outcome, seen.stderr.total_bytes), (Outcome::Exited(7), 0));
    let typed = terminal(
        "stty -echo; read a; read b; echo \"<$a|$b>\"; cat; echo end",
        Some("one\ntwo\nthree\nfour"),
    );
    assert!(typed.stdout.text.contains("<one|two>") && typed.stdout.text.ends_with("end\n"), "{typed:?}");
    // What is left of a large output comes, though nobody has the terminal any more.
    let large = terminal("i=0; while [ $i -lt 3000 ]; do i=$((i+1)); echo line $i; done", None);
    assert!(large.stdout.text.ends_with("line 3000\n"), "{:?}", large.outcome);
    // A command that goes on reading is not left waiting.
    assert_eq!(terminal("cat > got; wc -c < got", Some(&"x".repeat(3000))).outcome, Outcome::Exited(0));
    assert_eq!(std::fs::read(project.path().join("got")).unwrap().len(), 3000);
    let killed = terminal("setsid sleep 100 & kill -KILL $$", None);
    assert_eq!(killed.outcome, Outcome::Signaled(9));
    if has_program_or_skip("/usr/bin/python3") {
        let code = "import fcntl, termios
for name, call, data in [('type', termios.TIOCSTI, b'x'), ('console', 0x541c, b'\\x03')]:
    try: fcntl.ioctl(0, call, data)
    except PermissionError: print(name, 'held')";
        let held = terminal(&format!("/usr/bin/python3 -c \"{code}\""), None);
        assert_eq!(held.stdout.text, "type held\nconsole held\n");
    }
}

#[test]
fn output_that_another_command_keeps_open_is_not_waited_for() {
    let python = "/usr/bin/python3";
    if !has_program_or_skip(python) {
        return;
    }
    let project = project();
    let keep = "import socket, time
s = socket.socket(socket.AF_UNIX); s.bind('s'); s.listen(); print('ready', flush=True)
kept = [socket.recv_fds(s.accept()[0], 1, 4) for _ in range(2)]; time.sleep(1000)";
    let give = "import socket
s = socket.socket(socket.AF_UNIX); s.connect('s'); print('x' * 50000, flush=True)
socket.send_fds(s, [b'x'], [1, 2])";
    let request =
        |code: &str| Request::for_program(project.path(), [python, "-c", code].map(Into::into).to_vec());
    block_on(async {
        let (sandbox, cancel) = (sandbox(), CancellationToken::new());
        let mut keeper = request(keep);
        keeper.limits.wall = Duration::from_secs(20);
        let mut keeper = sandbox.spawn(keeper, cancel.clone()).await.unwrap();
        assert_eq!(keeper.next_chunk().await.unwrap().bytes, b"ready\n");
        for streams in [StdioMode::Merged, StdioMode::Terminal { columns: 80, rows: 25 }] {
            let mut giver = request(give);
            giver.streams = streams;
            let given = sandbox.spawn(giver, CancellationToken::new()).await.unwrap().wait().await.unwrap();
            assert_eq!(given.outcome, Outcome::Exited(0), "{given:?}");
            assert_eq!(given.stdout.text.trim_end().len(), 50_000);
        }
        cancel.cancel();
        assert_eq!(keeper.wait().await.unwrap().outcome, Outcome::Cancelled, "its end was waited for");
    });
}

/// Writes a piece for each place that there is, and more into the pipe.
const MORE_THAN_WAITS: &str = "import fcntl, os, struct, sys, termios, time
for number in range(8):
    os.write(1, b'x')
    while struct.unpack('i', fcntl.ioctl(1, termios.FIONREAD, b'1234'))[0]: pass
os.write(1, b'last'); os.mkdir('written'); time.sleep(float(sys.argv[1]))";

/// What a reader gets who begins a while after all was written, and the command was cancelled.
async fn read_late(tier: SandboxTier, seconds: &str, pause: Duration) -> (String, CompletedCommand) {
    let project = project();
    let mut request = Request::for_program(
        project.path(),
        ["/usr/bin/python3", "-c", MORE_THAN_WAITS, seconds].map(Into::into).to_vec(),
    );
    request.needs = tier.max_needs();
    request.live = LiveOutputMode::Whole;
    let settings = SandboxSettings { allow_root: true, allow: vec![tier], ..settings() };
    let cancel = CancellationToken::new();
    let mut running = Sandbox::new(settings).spawn(request, cancel.clone()).await.unwrap();
    while !project.path().join("written").exists() {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    cancel.cancel();
    tokio::time::sleep(pause).await;
    let mut read = Vec::new();
    while let Some(chunk) = running.next_chunk().await {
        read.extend(chunk.bytes);
    }
    (String::from_utf8(read).unwrap(), running.wait().await.unwrap())
}

#[test]
fn a_slow_reader_of_an_unconfined_command_misses_nothing() {
    if has_program_or_skip("/usr/bin/python3") {
        // Longer than the output of a process in the background is waited for.
        let pause = Duration::from_millis(1500);
        let (read, _) = block_on(read_late(SandboxTier::Unconfined, "0", pause));
        assert_eq!(read, "xxxxxxxxlast");
    }
}

#[test]
fn a_slow_reader_of_a_killed_command_misses_nothing() {
    if !has_program_or_skip("/usr/bin/python3") {
        return;
    }
    let landlock = SandboxSettings { allow: vec![SandboxTier::Landlock], allow_root: true, ..settings() };
    let landlock = block_on(Sandbox::new(landlock).enforcement(&SandboxTier::Landlock.max_needs()));
    // Longer than the end of killed processes is waited for.
    let late = |tier| read_late(tier, "1000", Duration::from_secs(6));
    let (first, second) = block_on(async {
        let other = if landlock.is_ok() { SandboxTier::Landlock } else { SandboxTier::Namespaces };
        tokio::join!(late(SandboxTier::Namespaces), late(other))
    });
    for (read, completed) in [first, second] {
        assert_eq!((read.as_str(), &completed.outcome), ("xxxxxxxxlast", &Outcome::Cancelled));
        assert_eq!(completed.denials, [], "{completed:?}");
    }
}

#[test]
fn the_unprivileged_have_them_too() {
    common::again_unprivileged(module_path!());
}
