//! Back-end 3: what Landlock and a system-call filter hold without namespaces, and what they don't
//! and say so.

use crate::common;
use journeyman_testkit::{has_program_or_skip, rerun_test, skip, wait_until};

use std::net::{TcpListener, UdpSocket};
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::common::{alive, block_on, host_toolchains, project};
use journeyman_protocol::{RelPath, SandboxTier};
use journeyman_sandbox::{
    CompletedCommand, DenialKind, Network, Outcome, ProjectCopy, Request, Sandbox, SandboxError,
    SandboxSettings, Stdin, WriteMode,
};
use tokio_util::sync::CancellationToken;

const PYTHON: &str = "/usr/bin/python3";

fn settings() -> SandboxSettings {
    SandboxSettings { allow: vec![SandboxTier::Landlock], allow_root: true, ..common::settings() }
}

/// Whether this kernel has it; a kernel from Linux 6.12 on does.
fn works() -> bool {
    match block_on(Sandbox::new(settings()).enforcement(&SandboxTier::Landlock.max_needs())) {
        Ok(_) => true,
        Err(error @ SandboxError::Unavailable { .. }) => {
            skip(error);
            false
        }
        Err(error) => panic!("{error}"),
    }
}

fn run(mut request: Request) -> CompletedCommand {
    request.needs = request.needs.intersection(SandboxTier::Landlock.max_needs());
    let sandbox = Sandbox::new(settings());
    block_on(async { sandbox.spawn(request, CancellationToken::new()).await.unwrap().wait().await.unwrap() })
}

fn text(request: Request) -> String {
    let completed = run(request);
    assert_eq!(completed.outcome, Outcome::Exited(0), "{}", completed.combined.text);
    completed.stdout.text
}

fn breaches(completed: &CompletedCommand) -> Vec<&str> {
    let breaches =
        completed.denials.iter().filter(|denial| denial.kind == DenialKind::Breach && denial.certain);
    breaches.map(|denial| denial.what.as_str()).collect()
}

#[test]
fn where_files_have_names_outside_a_command_that_writes_is_refused() {
    if !works() {
        return;
    }
    let outside = tempfile::tempdir().unwrap();
    let project = project();
    let (store, at) = (outside.path().join("index.js"), project.path().join("node_modules/.pnpm/x"));
    std::fs::write(&store, "old").unwrap();
    std::fs::create_dir_all(&at).unwrap();
    std::fs::hard_link(&store, at.join("index.js")).unwrap();
    let request = |write| Request {
        write,
        linked: RelPath::parse("node_modules/.pnpm").into_iter().collect(),
        needs: SandboxTier::Landlock.max_needs(),
        ..Request::for_shell_command(project.path(), "cat node_modules/.pnpm/x/index.js")
    };
    let spawn = |write| {
        let sandbox = Sandbox::new(settings());
        block_on(async move { sandbox.spawn(request(write), CancellationToken::new()).await.map(drop) })
    };
    let error = spawn(WriteMode::Direct).unwrap_err().to_string();
    assert!(error.contains("`node_modules/.pnpm` are hard links to files outside of the project"), "{error}");
    assert_eq!(text(request(WriteMode::ReadOnly)), "old");
}

#[test]
fn it_is_seen_to_give_what_it_promises_and_says_what_it_does_not() {
    if !works() {
        return;
    }
    let enforcement =
        block_on(Sandbox::new(settings()).enforcement(&SandboxTier::Landlock.max_needs())).unwrap();
    assert_eq!(enforcement.tier, SandboxTier::Landlock);
    assert_eq!(enforcement.first_unmet(&SandboxTier::Landlock.max_needs()), None);
    assert!(!enforcement.protected_kept && !enforcement.processes_confined);
    // Only control groups can bound what has no namespace of its own.
    let grouped = enforcement.layers.iter().any(|layer| layer.starts_with("cgroup (memory, pids"));
    assert!(!enforcement.resources_bounded || grouped);
    assert!(!enforcement.network_filtered);
    assert!(enforcement.layers.first().is_some_and(|layer| layer.starts_with("Landlock ")));
    for gap in [".git", "processes are visible", "writes to disk", "exists can be seen"] {
        assert!(enforcement.gaps.iter().any(|told| told.contains(gap)), "{gap}: {:?}", enforcement.gaps);
    }
    // What asks for more isn't run.
    let project = project();
    let error = block_on(
        Sandbox::new(settings())
            .spawn(Request::for_shell_command(project.path(), "true"), CancellationToken::new()),
    );
    assert!(matches!(error, Err(SandboxError::Unmet { need: "protected paths", .. })));
    let mut filtered = Request::for_shell_command(project.path(), "true");
    (filtered.needs, filtered.network) =
        (SandboxTier::Landlock.max_needs(), Network::Filtered(std::sync::Arc::default()));
    let error = block_on(Sandbox::new(settings()).spawn(filtered, CancellationToken::new()));
    assert!(matches!(error, Err(SandboxError::Unmet { need: "a network of some hosts alone", .. })));
}

/// Changes modes, times and owners in every way that there is, of the files named.
const METADATA: &str = "import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
machine = os.uname().machine
def called(*arguments):
    if libc.syscall(*arguments) < 0: raise OSError(ctypes.get_errno(), 'call')
def tried(what):
    try: what(); return 'done'
    except OSError as error: return os.strerror(error.errno)
for name in sys.argv[1:]:
    path, parent, base = name.encode(), os.path.dirname(name), os.path.basename(name)
    def opened(change, flags=os.O_RDONLY):
        file = os.open(name, flags)
        try: change(file)
        finally: os.close(file)
    def moved():
        before = os.getcwd()
        os.chdir(parent)
        try: os.chmod(base, 0o640)
        finally: os.chdir(before)
    def beside():
        directory = os.open(parent, os.O_RDONLY)
        try: os.chmod(base, 0o640, dir_fd=directory)
        finally: os.close(directory)
    ways = {
        'chmod': lambda: os.chmod(name, 0o600),
        'fchmod': lambda: opened(lambda file: os.fchmod(file, 0o640)),
        'cwd': moved,
        'dir_fd': beside,
        'self': lambda: opened(lambda file: os.chmod(f'/proc/self/fd/{file}', 0o600)),
        'fchmodat2': lambda: called(452, -100, path, 0o640, 0),
        'empty': lambda: opened(lambda file: called(452, file, b'', 0o600, 0x1000), os.O_PATH),
        'utime': lambda: os.utime(name, (1, 2)),
        'now': lambda: os.utime(name),
        'futimens': lambda: opened(lambda file: os.utime(file, ns=(3, 4))),
        'chown': lambda: os.chown(name, os.getuid(), -1),
        'lchown': lambda: os.lchown(name, os.getuid(), -1),
        'fchown': lambda: opened(lambda file: os.fchown(file, -1, os.getgid())),
    }
    if machine == 'x86_64':
        ways['old utime'] = lambda: called(132, path, None)
        ways['old utimes'] = lambda: called(235, path, None)
        ways['futimesat'] = lambda: called(261, -100, path, None)
    print(sorted(set(tried(way) for way in ways.values())))
";

fn metadata_is_guarded() -> bool {
    let enforcement =
        block_on(Sandbox::new(settings()).enforcement(&SandboxTier::Landlock.max_needs())).unwrap();
    let open = enforcement.gaps.iter().any(|gap| gap.contains("modes, times and owners"));
    if open {
        skip("this kernel's notifier can't be used here");
    }
    !open
}

#[test]
fn metadata_changes_where_the_command_may_write_and_nowhere_else() {
    if !works() || !has_program_or_skip(PYTHON) || !metadata_is_guarded() {
        return;
    }
    let (project, shown) = (project(), tempfile::tempdir().unwrap());
    let outside = shown.path().join("file");
    std::fs::write(&outside, "x").unwrap();
    std::os::unix::fs::symlink(&outside, project.path().join("link")).unwrap();
    let before = std::fs::symlink_metadata(&outside).unwrap();
    let file = project.path().join("file");
    let mut request = Request::for_program(project.path(), vec![PYTHON.into(), "-c".into(), METADATA.into()]);
    request.argv.extend([file.as_os_str(), outside.as_os_str()].map(Into::into));
    request.argv.push(project.path().join("link").into());
    request.read_only.push(shown.path().to_owned());
    let told = text(request.with_toolchains(&host_toolchains(project.path())));
    let refused = "['Operation not permitted']";
    // A link of the project's own has an owner that may be set; what it leads to hasn't.
    let lines: Vec<&str> = told.lines().collect();
    assert_eq!(lines, ["['done']", refused, "['Operation not permitted', 'done']"]);
    let after = std::fs::symlink_metadata(&outside).unwrap();
    use std::os::unix::fs::MetadataExt as _;
    let seen = |found: &std::fs::Metadata| (found.mode(), found.mtime(), found.ctime(), found.ctime_nsec());
    assert_eq!(seen(&before), seen(&after));
}

#[test]
fn metadata_of_many_files_changes_under_signals_threads_and_ends() {
    if !works() || !has_program_or_skip(PYTHON) || !metadata_is_guarded() {
        return;
    }
    let project = project();
    let code = "import os, signal, threading, time
count = 0
def rang(*_):
    global count
    count += 1
signal.signal(signal.SIGALRM, rang)
signal.setitimer(signal.ITIMER_REAL, 0.0002, 0.0002)
def change(number):
    name = f'file{number}'
    open(name, 'w').close()
    for turn in range(400):
        os.chmod(name, 0o600 + turn % 2)
        os.utime(name, ns=(turn, turn))
        assert os.stat(name).st_mtime_ns == turn
threads = [threading.Thread(target=change, args=(number,)) for number in range(4)]
[thread.start() for thread in threads]
for _ in range(8):
    child = os.fork()
    if child == 0:
        while True: os.chmod('file', 0o644)
    time.sleep(0.005)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
[thread.join() for thread in threads]
# A removed file, and one that never had a name.
file = os.open('gone', os.O_CREAT | os.O_RDWR)
os.unlink('gone')
os.fchmod(file, 0o600)
os.fchmod(os.open('.', os.O_TMPFILE | os.O_RDWR), 0o600)
signal.setitimer(signal.ITIMER_REAL, 0)
print(count > 0)
# Left behind, in the middle of a change.
if os.fork() == 0:
    os.close(1); os.close(2)
    while True: os.chmod('file', 0o600)
";
    let mut request = Request::for_program(project.path(), vec![PYTHON.into(), "-c".into(), code.into()]);
    request = request.with_toolchains(&host_toolchains(project.path()));
    assert_eq!(text(request), "True\n");
}

#[test]
fn other_processes_and_attributes_stay_as_they_are() {
    if !works() || !has_program_or_skip(PYTHON) {
        return;
    }
    let project = project();
    let code = "import ctypes, fcntl, os, resource, sys
other = int(sys.argv[1])
libc = ctypes.CDLL(None, use_errno=True)
def tried(what):
    try: what(); print('done')
    except OSError as error: print(error.errno)
def called(*arguments):
    if libc.syscall(*arguments) < 0: raise OSError(ctypes.get_errno(), 'call')
tried(lambda: resource.prlimit(other, resource.RLIMIT_NOFILE))
tried(lambda: os.setpriority(os.PRIO_PROCESS, other, 19))
tried(lambda: os.setpriority(os.PRIO_USER, 0, 19))
tried(lambda: os.sched_setaffinity(other, os.sched_getaffinity(0)))
tried(lambda: os.sched_setscheduler(other, os.SCHED_BATCH, os.sched_param(0)))
tried(lambda: called(463, -100, b'file', 0, b'user.x', None, 0))
tried(lambda: called(466, -100, b'file', 0, b'user.x'))
tried(lambda: called(469, -100, b'file', None, 0, 0))
tried(lambda: fcntl.ioctl(os.open('file', os.O_RDONLY), 0x40086602, b'\\0' * 8))
tried(lambda: os.setpriority(os.PRIO_PROCESS, 0, 19))
tried(lambda: os.sched_setaffinity(0, os.sched_getaffinity(0)))";
    let other = std::process::id();
    let said = text(Request::for_shell_command(project.path(), &format!("{PYTHON} -c \"{code}\" {other}")));
    assert_eq!(said, "1\n1\n1\n1\n1\n95\n95\n95\n95\ndone\ndone\n");
}

#[test]
fn commands_end_as_they_end_and_have_what_is_theirs() {
    if !works() {
        return;
    }
    let project = project();
    let cases = [
        ("exit 7", Outcome::Exited(7)),
        ("kill -TERM $$", Outcome::Signaled(15)),
        ("kill -KILL $$", Outcome::Signaled(9)),
    ];
    for (command, outcome) in cases {
        assert_eq!(run(Request::for_shell_command(project.path(), command)).outcome, outcome, "{command}");
    }
    let missing = run(Request::for_program(project.path(), vec!["no-such-program".into()]));
    assert!(
        matches!(&missing.outcome, Outcome::SetupFailed(why) if why.reason.contains("no-such-program")),
        "{missing:?}"
    );
    std::fs::create_dir(project.path().join("sub")).unwrap();
    let mut request = Request::for_shell_command(
        project.path(),
        "cat; pwd; echo x > $TMPDIR/x && cat $TMPDIR/x; echo y > $HOME/y && cat $HOME/y; echo in > ../made; echo err >&2",
    );
    request.cwd = project.path().join("sub");
    request.stdin = Stdin::Bytes(b"typed\n".to_vec());
    request.env.insert("HOME".into(), "/home/someone".into());
    let completed = run(request);
    assert_eq!(completed.outcome, Outcome::Exited(0), "{}", completed.combined.text);
    let pwd = project.path().join("sub").canonicalize().unwrap();
    assert_eq!(completed.stdout.text, format!("typed\n{}\nx\ny\n", pwd.display()));
    assert_eq!(completed.stderr.text, "err\n");
    assert_eq!(std::fs::read_to_string(project.path().join("made")).unwrap(), "in\n");
    assert_eq!(breaches(&completed), Vec::<&str>::new());
}

#[test]
fn a_command_that_uses_up_its_processor_time_is_told_so() {
    if !works() {
        return;
    }
    let project = project();
    let mut request = Request::for_shell_command(project.path(), "while :; do :; done");
    request.limits.cpu = Some(Duration::from_secs(1));
    assert_eq!(run(request).outcome, Outcome::CpuLimit);
}

#[test]
fn the_private_directory_is_gone_afterwards() {
    if !works() {
        return;
    }
    let project = project();
    let said = text(Request::for_shell_command(
        project.path(),
        "echo $TMPDIR; mkdir -p $TMPDIR/a/b; touch $TMPDIR/a/b/c; ln -s /etc $TMPDIR/a/link; chmod 0 $TMPDIR/a/b; \
         chmod 500 $TMPDIR/a $TMPDIR",
    ));
    let private = Path::new(said.trim());
    assert!(private.starts_with("/tmp") && !private.exists(), "{said}");
}

#[test]
fn nothing_outside_can_be_read_written_reached_or_signalled() {
    if !works() || !has_program_or_skip(PYTHON) {
        return;
    }
    let project = project();
    let outside = tempfile::Builder::new().prefix("jm-outside-").tempdir().unwrap();
    let path = |name: &str| outside.path().join(name);
    std::fs::write(path("canary"), "canary").unwrap();
    let (tcp, udp) = (TcpListener::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
    let _socket = UnixListener::bind(path("socket")).unwrap();
    let abstracted = format!("jm-landlock-{}", std::process::id());
    let address =
        <SocketAddr as std::os::linux::net::SocketAddrExt>::from_abstract_name(&abstracted).unwrap();
    let _abstract = UnixListener::bind_addr(&address).unwrap();
    let (tcp_port, udp_port) = (tcp.local_addr().unwrap().port(), udp.local_addr().unwrap().port());
    let attempts = [
        "open(OUT + '/canary').read()",
        "open(OUT + '/canary', 'w')",
        "open(OUT + '/new', 'w')",
        "os.truncate(OUT + '/canary', 0)",
        "os.listdir(OUT)",
        "os.unlink(OUT + '/canary')",
        "os.rename('file', OUT + '/file')",
        "os.link(OUT + '/canary', 'linked')",
        "os.symlink(OUT, 'way'); open('way/canary').read()",
        "open('/proc/%d/environ' % AGENT).read()",
        "open('/proc/%d/root%s/canary' % (AGENT, OUT)).read()",
        "open('/proc/%d/mem' % AGENT, 'rb')",
        "open('/proc/sys/kernel/core_pattern', 'w')",
        "open('/dev/shm/jm-x', 'w')",
        "open('/tmp/jm-x', 'w')",
        "open('/etc/jm-x', 'w')",
        "os.listdir('/root' if os.getuid() else '/home')",
        "os.kill(AGENT, 0)",
        "os.kill(os.getppid(), 9)",
        "os.kill(os.getppid(), 19)",
        "import signal; signal.pidfd_send_signal(os.pidfd_open(AGENT), 0)",
        "import socket; socket.create_connection(('127.0.0.1', TCP))",
        "import socket; socket.socket(socket.AF_INET, socket.SOCK_STREAM).sendto(b'x', 0x20000000, ('127.0.0.1', TCP))",
        "import socket; socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)",
        "import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', UDP))",
        "import socket; socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)",
        "import socket; socket.socket(socket.AF_UNIX).connect(OUT + '/socket')",
        "import socket; socket.socket(socket.AF_UNIX).connect('\\0' + ABSTRACT)",
        "import socket; socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)",
        "import socket; socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM)",
        "import ctypes; assert ctypes.CDLL(None).unshare(0x10000000) == 0",
        "import ctypes; assert ctypes.CDLL(None).shmget(4711, 4096, 0o1600) >= 0",
        "import ctypes; assert ctypes.CDLL(None).ptrace(16, AGENT, 0, 0) == 0",
        "os.mknod('device', 0o020600, os.makedev(1, 3))",
        "os.chmod('file', 0o4755)",
        "os.setxattr('file', 'user.x', b'y')",
        "os.truncate('file', 1 << 44)",
        "os.setuid(1)",
        "os.chroot('.')",
    ];
    let constants = format!(
        "import os\nOUT={:?}\nTCP={tcp_port}\nUDP={udp_port}\nABSTRACT={abstracted:?}\nAGENT={}\n",
        outside.path(),
        std::process::id()
    );
    let mut got_out = Vec::new();
    for attempt in attempts {
        let program = format!(
            "{constants}try:\n    {attempt}\nexcept Exception as e:\n    print('held:', e)\nelse:\n    print('ESCAPED')\n"
        );
        let completed =
            run(Request::for_program(project.path(), vec![PYTHON.into(), "-c".into(), program.into()]));
        if !completed.combined.text.starts_with("held:") && completed.outcome != Outcome::Signaled(25) {
            got_out.push(format!("{attempt}: {:?} {}", completed.outcome, completed.combined.text));
        }
    }
    assert!(got_out.is_empty(), "{}", got_out.join("\n"));
    assert_eq!(std::fs::read_to_string(path("canary")).unwrap(), "canary");
    tcp.set_nonblocking(true).unwrap();
    assert!(tcp.accept().is_err(), "something connected");
    udp.set_nonblocking(true).unwrap();
    assert!(udp.recv(&mut [0; 8]).is_err(), "something was sent");
}

#[test]
fn what_should_have_stayed_and_did_not_is_told() {
    if !works() {
        return;
    }
    let project = project();
    let harmless =
        run(Request::for_shell_command(project.path(), "cat .git/config; ls -R .git; echo x > made"));
    assert_eq!(breaches(&harmless), Vec::<&str>::new());
    let planted = run(Request::for_shell_command(
        project.path(),
        "echo evil > .git/hooks/pre-commit; echo x >> .git/config; mkdir .journeyman; touch .journeyman/x",
    ));
    assert_eq!(planted.outcome, Outcome::Exited(0));
    assert_eq!(
        breaches(&planted),
        [
            "`.git/hooks/pre-commit` was made",
            "`.git/config` was changed",
            "`.journeyman` was made",
            "`.journeyman/x` was made"
        ]
    );
    assert!(planted.denials[0].to_string().starts_with("not kept by the sandbox: "));
    // Also by a daemon, at the last moment: it is looked after the tree is gone.
    let late = run(Request::for_shell_command(
        project.path(),
        "(setsid sh -c 'trap \"\" TERM HUP; while :; do echo x >> .git/config; done' &) ; sleep 0.1",
    ));
    assert_eq!(breaches(&late), ["`.git/config` was changed"]);
    let mut read_only =
        Request::for_shell_command(project.path(), "echo x >> .git/config; echo x > file; cat file");
    read_only.write = WriteMode::ReadOnly;
    let kept = run(read_only);
    assert_eq!((kept.stdout.text.as_str(), breaches(&kept)), ("content\n", Vec::new()));
}

#[test]
fn what_is_listed_is_readable_but_for_what_is_masked() {
    if !works() {
        return;
    }
    let project = project();
    let listed = tempfile::Builder::new().prefix("jm-listed-").tempdir().unwrap();
    std::fs::create_dir(listed.path().join("deep")).unwrap();
    for name in ["shown", "hidden", "deep/shown", "deep/hidden"] {
        std::fs::write(listed.path().join(name), format!("{name}\n")).unwrap();
    }
    let command = format!(
        "cd {}; cat shown deep/shown; cat hidden; cat deep/hidden; ls; touch x",
        listed.path().display()
    );
    let mut request = Request::for_shell_command(project.path(), &command);
    request.read_only = vec![listed.path().into()];
    request.masked = vec![listed.path().join("hidden"), listed.path().join("deep/hidden")];
    let completed = run(request.clone());
    assert_eq!(
        completed.stdout.text, "shown\ndeep/shown\ndeep\nhidden\nshown\n",
        "{}",
        completed.combined.text
    );
    std::fs::write(project.path().join("key"), "secret").unwrap();
    request.masked = vec![project.path().join("key")];
    request.needs = SandboxTier::Landlock.max_needs();
    let error =
        block_on(Sandbox::new(settings()).spawn(request, CancellationToken::new())).map(drop).unwrap_err();
    assert!(error.to_string().contains("can't hide"), "{error}");
}

#[test]
fn a_copy_is_worked_in_and_the_project_left_alone() {
    if !works() {
        return;
    }
    let (project, copies) = (project(), tempfile::Builder::new().prefix("jm-copies-").tempdir().unwrap());
    let copy = copies.path().join("copy");
    assert!(Command::new("cp").arg("-a").arg(project.path()).arg(&copy).status().unwrap().success());
    let command = format!("pwd; echo x > made; echo y > {}/made", project.path().display());
    let mut request = Request::for_shell_command(project.path(), &command);
    let (caches, layers) = (RelPath::parse("target").into_iter().collect(), copies.path().join("layers"));
    request.base = Some(ProjectCopy::Directory { path: copy.clone(), caches, layers });
    let completed = run(request);
    assert_eq!(completed.stdout.text, format!("{}\n", copy.canonicalize().unwrap().display()));
    assert!(copy.join("made").exists() && !project.path().join("made").exists());
}

#[test]
fn the_whole_tree_ends_with_the_command_hoppers_included() {
    if !works() || !has_program_or_skip(PYTHON) {
        return;
    }
    let project = project();
    let marker = format!("jm-landlock-daemon-{}", std::process::id());
    let daemon = "trap \"\" TERM HUP INT; while :; do sleep 1; done";
    // It forks and ends without a pause: whoever looks finds the one that is gone.
    let hopper = "import os\nos.setsid()\nwhile True:\n    if os.fork(): os._exit(0)\n";
    let command = format!(
        "(setsid sh -c '{daemon} # {marker}' &); {PYTHON} -c '{hopper}' # {marker}\nsetsid {PYTHON} -c '{hopper}#{marker}' & \
         sleep 0.1; echo done"
    );
    let completed = run(Request::for_shell_command(project.path(), &command));
    assert_eq!((completed.outcome, completed.stdout.text.as_str()), (Outcome::Exited(0), "done\n"));
    assert_eq!(alive(&marker), 0);
    let mut request = Request::for_shell_command(
        project.path(),
        &format!("setsid sh -c '{daemon} # {marker}' & {daemon} # {marker}"),
    );
    request.limits.wall = Duration::from_millis(300);
    assert_eq!(run(request).outcome, Outcome::TimedOut);
    assert_eq!(alive(&marker), 0);
}

/// Not a test by itself: the agent that [`an_agent_killed_hard_leaves_nothing`] kills.
#[test]
#[ignore = "run by another test"]
fn agent_to_be_killed() {
    let marker = std::env::var("JM_TEST_MARKER").unwrap();
    let project = project();
    let daemon = "trap \"\" TERM HUP INT; while :; do sleep 1; done";
    let command =
        format!("setsid sh -c '{daemon} # {marker}' & setsid sh -c '{daemon} # {marker}' & wait # {marker}");
    run(Request::for_shell_command(project.path(), &command));
}

#[test]
fn an_agent_killed_hard_leaves_nothing() {
    if !works() {
        return;
    }
    let marker = format!("jm-landlock-orphan-{}", std::process::id());
    let mut agent = rerun_test!("agent_to_be_killed")
        .env("JM_TEST_MARKER", &marker)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_until("the start of the agent's command", || alive(&marker) >= 3);
    agent.kill().unwrap();
    agent.wait().unwrap();
    wait_until("the end of the agent's command", || alive(&marker) == 0);
}

#[test]
fn builds_run_inside() {
    if !works() || !has_program_or_skip("gcc") || !has_program_or_skip("git") {
        return;
    }
    let project = project();
    std::fs::write(project.path().join("a.c"), "int main(void) { return 3; }\n").unwrap();
    let command = "gcc a.c -o a && ./a; test $? -eq 3 && printf 'all:\\n\\techo made\\n' > Makefile && make -s && \
        python3 -c 'import subprocess, tempfile; print(subprocess.run([\"echo\", \"sub\"], capture_output=True).stdout); \
        tempfile.TemporaryFile()'";
    let request =
        Request::for_shell_command(project.path(), command).with_toolchains(&host_toolchains(project.path()));
    assert_eq!(text(request), "made\nb'sub\\n'\n");
}

#[test]
fn the_unprivileged_are_confined_alike() {
    common::again_unprivileged(module_path!());
}
