//! What comes back of a command: its output, its code, its limits.

use std::time::Duration;

use journeyman_protocol::SandboxTier;
use journeyman_sandbox::{Limits, Outcome, Stdin, StdioMode};

use crate::common::block_on;
use crate::container::support::{place, run, text};

#[test]
fn a_commands_output_and_code_come_back() {
    let Some(place) = place() else { return };
    // Long enough for a tick of the kernel's clock, by which its time is counted.
    let busy = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done";
    let completed = place.run(&format!("echo out; echo err >&2; cat file; {busy}; exit 7"));
    assert_eq!(completed.outcome, Outcome::Exited(7));
    assert_eq!(completed.stdout.text, "out\ncontent\n");
    assert_eq!(completed.stderr.text, "err\n");
    assert_eq!(completed.enforcement.tier, SandboxTier::Container);
    assert!(completed.enforcement.resources_bounded, "{:?}", completed.enforcement);
    assert!(completed.usage.user + completed.usage.system > Duration::ZERO, "{:?}", completed.usage);
}

#[test]
fn output_comes_live() {
    let Some(place) = place() else { return };
    let sandbox = place.sandbox();
    block_on(async {
        let request = place.request("echo first; read -r line <pipe; echo second");
        std::process::Command::new("mkfifo").arg(place.root().join("pipe")).status().unwrap();
        let mut running = sandbox.spawn(request, tokio_util::sync::CancellationToken::new()).await.unwrap();
        let first = running.next_chunk().await.unwrap();
        assert_eq!(first.bytes, b"first\n");
        let pipe = place.root().join("pipe");
        tokio::task::spawn_blocking(move || std::fs::write(pipe, "go\n")).await.unwrap().unwrap();
        assert_eq!(running.wait().await.unwrap().stdout.text, "first\nsecond\n");
    });
}

#[test]
fn input_is_given_and_ends() {
    let Some(place) = place() else { return };
    let mut request = place.request("cat; echo end");
    request.stdin = Stdin::Bytes(b"typed\n".repeat(50_000));
    let completed = place.run_request(request);
    assert_eq!(completed.outcome, Outcome::Exited(0));
    assert_eq!(completed.stdout.total_bytes, 6 * 50_000 + 4);
    assert_eq!(place.text("cat; echo end"), "end\n");
}

#[test]
fn streams_come_as_asked_for() {
    let Some(place) = place() else { return };
    let both = "for n in 1 2 3 4 5 6 7 8; do echo out $n; echo err $n >&2; done";
    let mut request = place.request(both);
    request.streams = StdioMode::Merged;
    let expected: String = (1..=8).map(|n| format!("out {n}\nerr {n}\n")).collect();
    let completed = place.run_request(request);
    assert_eq!((completed.stdout.text, completed.stderr.total_bytes), (expected, 0));

    let mut request = place.request(r"printf 'a\000\377b'; echo err >&2");
    request.streams = StdioMode::Exact;
    let completed = place.run_request(request);
    assert_eq!((completed.exact.as_slice(), completed.stderr.text.as_str()), (&b"a\0\xffb"[..], "err\n"));

    let mut request = place.request("test -t 0 && test -t 1 && stty size; read -r line; echo \"got $line\"");
    request.streams = StdioMode::Terminal { columns: 100, rows: 30 };
    request.stdin = Stdin::Bytes(b"words\n".to_vec());
    let completed = place.run_request(request);
    assert!(completed.stdout.text.contains("got words"), "{}", completed.stdout.text);
}

#[test]
fn a_program_that_isnt_there_was_not_run() {
    let Some(place) = place() else { return };
    let mut request = place.request("");
    request.argv = vec!["no-such-program".into()];
    let completed = place.run_request(request);
    let Outcome::SetupFailed(why) = &completed.outcome else { panic!("{completed:?}") };
    assert!(why.reason.contains("no-such-program"), "{why}");
}

#[test]
fn the_environment_is_the_requests_and_nothing_else() {
    let Some(place) = place() else { return };
    let mut request = place.request("env | sort");
    request.env.insert("HOME".into(), "/home/someone".into());
    request.env.insert("OWN".into(), "a b=c\n".into());
    let said = text(place.run_request(request));
    let expected = "HOME=/home/someone\nLANG=C.UTF-8\nOWN=a b=c\n\n\
        PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\nTERM=dumb\nTMPDIR=/tmp\n";
    let sorted = |text: &str| {
        let mut lines: Vec<String> = text
            .lines()
            .filter(|line| !line.starts_with("PWD=") && !line.starts_with("SHLVL="))
            .map(str::to_owned)
            .collect();
        lines.sort();
        lines
    };
    assert_eq!(sorted(&said), sorted(expected), "{said}");
}

#[test]
fn the_images_environment_holds_where_that_is_wanted() {
    let Some(place) = place() else { return };
    let mut settings = place.settings();
    settings.container.as_mut().unwrap().image_environment = true;
    let sandbox = journeyman_sandbox::Sandbox::new(settings);
    let said = text(block_on(run(&sandbox, place.request("echo $FROM_IMAGE $PATH"))));
    assert_eq!(said, "yes /usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/opt/image\n");
}

#[test]
fn a_flood_is_stopped() {
    let Some(place) = place() else { return };
    let mut request = place.request("yes");
    request.limits = Limits { output_bytes: 64 * 1024, ..Limits::default() };
    let completed = place.run_request(request);
    assert_eq!(completed.outcome, Outcome::OutputLimit);
    assert!(completed.stdout.text.len() <= 66 * 1024);
    assert_eq!(place.containers(), Vec::<String>::new());
}

#[test]
fn limits_of_a_process_hold() {
    let Some(place) = place() else { return };
    let mut request =
        place.request("ulimit -f; ulimit -n; ulimit -c; dd if=/dev/zero of=big bs=1M count=2; echo $?");
    request.limits.file_bytes = 1024 * 1024;
    request.limits.open_files = 77;
    let completed = place.run_request(request);
    assert!(completed.stdout.text.starts_with("2048\n77\n0\n"), "{}", completed.combined.text);
    assert!(std::fs::metadata(place.root().join("big")).unwrap().len() <= 1024 * 1024);

    let mut request = place.request("while :; do :; done");
    request.limits.cpu = Some(Duration::from_secs(1));
    assert_eq!(place.run_request(request).outcome, Outcome::CpuLimit);
}

#[test]
fn memory_of_the_whole_tree_is_bounded() {
    let Some(place) = place() else { return };
    // Each of them is far below the bound.
    let hold = "for n in 1 2 3 4 5 6 7 8; do (head -c 20000000 /dev/zero | tail -c 20000000 | sleep 60) & done; wait";
    let mut request = place.request(hold);
    request.limits.memory = Some(64 * 1024 * 1024);
    let completed = place.run_request(request);
    assert_eq!(completed.outcome, Outcome::MemoryLimit, "{}", completed.combined.text);
    assert_eq!(place.containers(), Vec::<String>::new());
}

#[test]
fn scratch_space_is_bounded() {
    let Some(place) = place() else { return };
    let mut request = place.request("head -c 8000000 /dev/zero >/tmp/big; wc -c </tmp/big");
    request.limits.scratch_bytes = 8 * 1024 * 1024;
    let text = text(place.run_request(request));
    let written: u64 = text.lines().last().unwrap().trim().parse().unwrap();
    assert!((1..=3 * 1024 * 1024).contains(&written), "{text}");
}

#[test]
fn all_of_the_output_goes_to_a_file_where_that_is_asked_for() {
    let Some(place) = place() else { return };
    let mut request = place.request("for n in 1 2 3; do echo out $n; done");
    let path = place.directory.path().join("all");
    request.spill = Some(journeyman_sandbox::SpillFile { path: path.clone(), bytes: 1_000 });
    assert_eq!(place.run_request(request).spilled, Some(18));
    assert_eq!(std::fs::read_to_string(path).unwrap(), "out 1\nout 2\nout 3\n");

    let mut request = place.request("true");
    request.spill = Some(journeyman_sandbox::SpillFile { path: place.root().join("all"), bytes: 1_000 });
    let refused = block_on(place.sandbox().spawn(request, tokio_util::sync::CancellationToken::new()));
    assert!(refused.unwrap_err().to_string().contains("lies where the command sees it"));
}
