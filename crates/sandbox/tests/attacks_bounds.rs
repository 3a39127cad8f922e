//! Ways out of the sandbox, each tried for real. Rows are numbered after the attack table of the design.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]
#![cfg(target_os = "linux")]

mod common;

use std::io::Read as _;
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use common::{alive, block_on, eventually, has, project, run, sandbox};
use journeyman_protocol::RelPath;
use journeyman_sandbox::{Base, Outcome, OverlayPlan, Request};
use tokio_util::sync::CancellationToken;

const PYTHON: &str = "/usr/bin/python3";

/// What every row's code may use. A row escapes if it ends without an exception.
const PRELUDE: &str = r#"
import ctypes, os, signal, socket, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *args):
    result = libc.syscall(number, *[ctypes.c_long(a) if isinstance(a, int) else a for a in args])
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result
def send(family, kind, address, protocol=0):
    s = socket.socket(family, kind, protocol); s.settimeout(0.2); s.connect(address); s.send(b"leak")
def attack():
"#;

/// Numbers of system calls that libc has no function for, the same on x86-64 and AArch64 where given so.
#[cfg(target_arch = "x86_64")]
const NUMBERS: &str = "KEYCTL, BPF, UFFD, PERF, IO_URING, PIDFD_GETFD, PIDFD_OPEN, VM_READV, CLONE3, SETNS, FANOTIFY, IOPL = 250, 321, 323, 298, 425, 438, 434, 310, 435, 308, 300, 172";
#[cfg(target_arch = "aarch64")]
const NUMBERS: &str = "KEYCTL, BPF, UFFD, PERF, IO_URING, PIDFD_GETFD, PIDFD_OPEN, VM_READV, CLONE3, SETNS, FANOTIFY, IOPL = 219, 280, 282, 241, 425, 438, 434, 270, 435, 268, 262, 1025";

const ATTACKS: &[(&str, &str)] = &[
    ("01 create a file outside", "open(OUT + '/new', 'w')"),
    ("01 create a file in the root", "open('/new', 'w')"),
    ("01 create a file in /usr", "open('/usr/new', 'w')"),
    ("01 create a file in /etc", "open('/etc/new', 'w')"),
    ("02 write through a link", "os.symlink(OUT + '/canary', 'link'); open('link', 'r+').write('x')"),
    ("03 hard link from outside", "os.link(OUT + '/canary', 'hard')"),
    ("04 move a file out", "os.rename('file', OUT + '/moved')"),
    ("05 climb with ..", "open('../' * 20 + OUT + '/canary', 'r+').write('x')"),
    (
        "06 reopen a read-only file for writing",
        "f = open('/etc/passwd'); os.open('/proc/self/fd/%d' % f.fileno(), os.O_RDWR)",
    ),
    ("07 the agent's root", "open('/proc/%d/root/etc/passwd' % AGENT)"),
    ("08 truncate outside", "os.truncate(OUT + '/canary', 0)"),
    ("09 chmod outside", "os.chmod(OUT + '/canary', 0o777)"),
    ("09 chmod in /etc", "os.chmod('/etc/passwd', 0o666)"),
    ("10 times outside", "os.utime(OUT + '/canary')"),
    (
        "12 leaked descriptors",
        "open('/dev/null'); assert [d for d in os.listdir('/proc/self/fd') if int(d) > 3]",
    ),
    ("13 a git hook", "open('.git/hooks/pre-commit', 'w')"),
    ("14 git's configuration", "open('.git/config', 'a').write('x')"),
    ("15 move .git aside", "os.rename('.git', 'git'); os.mkdir('.git')"),
    ("19 remove .git", "import shutil; shutil.rmtree('.git')"),
    ("20 read a key in the home", "open(HOME + '/.ssh/id').read()"),
    ("21 append to the real .bashrc", "assert b'leak' in open(HOME + '/.bashrc', 'rb').read()"),
    ("20 list other projects", "assert os.listdir(OUT)"),
    ("20 read root's secrets", "assert open('/etc/shadow').read()"),
    ("20 a masked file", "assert open('secret').read()"),
    ("20 a masked directory", "assert os.listdir('secrets')"),
    ("23 the agent's environment", "open('/proc/%d/environ' % AGENT).read()"),
    (
        "25 any environment with a secret",
        "assert any(b'JM_CANARY' in open('/proc/%s/environ' % p, 'rb').read() for p in os.listdir('/proc') if p.isdigit() and p != '1')",
    ),
    ("25 the environment of pid 1", "open('/proc/1/environ').read()"),
    ("26 trace the agent", "assert libc.ptrace(16, AGENT, 0, 0) == 0"),
    ("26 trace pid 1", "assert libc.ptrace(16, 1, 0, 0) == 0"),
    ("27 the agent's memory", "open('/proc/%d/mem' % AGENT, 'rb+')"),
    ("27 the memory of pid 1", "open('/proc/1/mem', 'rb+')"),
    (
        "28 read the agent's memory",
        "b = ctypes.create_string_buffer(16); v = (ctypes.c_long * 2)(ctypes.addressof(b), 16); call(VM_READV, AGENT, v, 1, v, 1, 0)",
    ),
    ("29 take a descriptor of pid 1", "call(PIDFD_GETFD, call(PIDFD_OPEN, 1, 0), 0, 0)"),
    ("30 signal the agent", "os.kill(AGENT, 0)"),
    (
        "30 kill pid 1",
        "os.kill(1, signal.SIGKILL); import time; time.sleep(0.05); raise OSError('still here')",
    ),
    ("32 TCP to the host", "send(socket.AF_INET, socket.SOCK_STREAM, ('127.0.0.1', TCP))"),
    ("33 TCP to the host by IPv6", "send(socket.AF_INET6, socket.SOCK_STREAM, ('::1', TCP))"),
    ("34 TCP fast open", "s = socket.socket(); s.sendto(b'leak', 0x20000000, ('127.0.0.1', TCP))"),
    ("35 MPTCP", "send(socket.AF_INET, socket.SOCK_STREAM, ('127.0.0.1', TCP), 262)"),
    (
        "36 UDP to the host",
        "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.connect(('127.0.0.1', UDP)); s.send(b'x'); s.settimeout(0.1); s.send(b'x'); s.recv(1)",
    ),
    ("36 UDP beyond the host", "send(socket.AF_INET, socket.SOCK_DGRAM, ('192.0.2.1', 53))"),
    ("37 an abstract socket", "send(socket.AF_UNIX, socket.SOCK_STREAM, '\\0' + ABSTRACT)"),
    ("38 a socket outside", "send(socket.AF_UNIX, socket.SOCK_STREAM, OUT + '/socket')"),
    ("39 Docker's socket", "send(socket.AF_UNIX, socket.SOCK_STREAM, '/var/run/docker.sock')"),
    ("41 vsock", "socket.socket(40, socket.SOCK_STREAM)"),
    ("42 netfilter by netlink", "socket.socket(16, socket.SOCK_RAW, 12)"),
    ("43 raw packets", "socket.socket(17, socket.SOCK_RAW)"),
    ("43 raw IP", "socket.socket(socket.AF_INET, socket.SOCK_RAW, 255)"),
    ("44 kernel crypto", "socket.socket(38, socket.SOCK_SEQPACKET)"),
    ("46 io_uring", "call(IO_URING, 1, 0)"),
    ("47 the session's keys", "call(KEYCTL, 0, -3, 0, 0, 0)"),
    ("49 a further user namespace", "assert libc.unshare(0x10000000) == 0"),
    ("49 user and mount namespaces", "assert libc.unshare(0x10020000) == 0"),
    ("50 clone3", "call(CLONE3, 0, 0)"),
    ("51 mount", "assert libc.mount(b'x', b'/tmp', b'tmpfs', 0, None) == 0"),
    ("52 unmount a protection", "assert libc.umount2(b'.git', 2) == 0"),
    ("54 remount the root", "assert libc.mount(None, b'/', None, 0x20 | 0x1000, None) == 0"),
    ("55 enter the agent's namespace", "call(SETNS, os.open('/proc/1/ns/mnt', os.O_RDONLY), 0)"),
    ("56 chroot", "os.chroot('.')"),
    ("57 a device", "os.mknod('disk', 0o60600, os.makedev(254, 0)); open('disk')"),
    ("58 kernel messages", "open('/dev/kmsg')"),
    ("58 memory", "open('/dev/mem')"),
    ("59 gain privileges", "assert 'NoNewPrivs:\\t1' not in open('/proc/self/status').read()"),
    (
        "59 keep a capability",
        "assert [l for l in open('/proc/self/status') if l.startswith('Cap') and int(l.split()[1], 16)]",
    ),
    ("60 BPF", "call(BPF, 0, 0, 0)"),
    ("61 performance events", "call(PERF, 0, 0, 0, 0, 0)"),
    ("62 userfaultfd", "call(UFFD, 1)"),
    ("64 ports", "call(IOPL, 3)"),
    ("66 core_pattern", "os.open('/proc/sys/kernel/core_pattern', os.O_WRONLY)"),
    ("66 system requests", "os.open('/proc/sysrq-trigger', os.O_WRONLY)"),
    ("67 control groups", "assert os.listdir('/sys/fs/cgroup')"),
    ("69 the host's shared memory", "assert os.listdir('/dev/shm')"),
    (
        "70 the agent's command line",
        "assert [p for p in os.listdir('/proc') if p.isdigit() and b'attacks' in open('/proc/%s/cmdline' % p, 'rb').read() and int(p) != os.getpid()]",
    ),
    ("73 fanotify", "call(FANOTIFY, 0, 0)"),
    (
        "74 type into a terminal",
        "import fcntl, termios; a, b = os.openpty(); fcntl.ioctl(b, termios.TIOCSTI, b'x')",
    ),
    ("74 the user's terminal", "os.open('/dev/tty', os.O_RDWR)"),
    ("77 a huge sparse file", "os.truncate('file', 1 << 40)"),
    ("78 a set-user-ID file", "os.chmod('file', 0o4755)"),
    ("78 a set-group-ID file", "os.fchmod(os.open('file', os.O_RDWR), 0o2755)"),
    ("78 a set-user-ID file, made so", "os.open('made', os.O_CREAT | os.O_WRONLY, 0o4755)"),
    ("78 a set-user-ID file without a name", "os.open('.', os.O_TMPFILE | os.O_WRONLY, 0o4755)"),
    ("78 a set-user-ID node", "os.mknod('made', 0o104755)"),
    ("80 the host's name", "assert libc.sethostname(b'x', 1) == 0"),
    ("80 the clock", "import time; time.clock_settime(0, 0)"),
    ("110 the host's /tmp", "assert [n for n in os.listdir('/tmp') if not n.startswith('jm-')]"),
    ("the sandbox's own store", "os.chmod('/.sandbox', 0o777)"),
    ("the sandbox's own store, listed", "os.listdir('/.sandbox')"),
    ("the copy's layers by name", "assert [os.listdir(LAYERS)]"),
    (
        "the copy's layers in the list of mounts",
        "text = open('/proc/self/mountinfo').read(); assert LAYERS + '/upper' in text or LAYERS + '/caches' in text",
    ),
    ("unmount the project", "os.chdir('/'); assert libc.umount2(ROOT.encode(), 2) == 0"),
    ("unmount the project plainly", "os.chdir('/'); assert libc.umount2(ROOT.encode(), 0) == 0"),
    ("move the project's mount", "assert libc.mount(ROOT.encode(), b'/tmp', None, 0x2000, None) == 0"),
    ("join the user namespace of pid 1", "call(SETNS, os.open('/proc/1/ns/user', os.O_RDONLY), 0)"),
    ("join pid 1", "call(SETNS, call(PIDFD_OPEN, 1, 0), 0x10020000)"),
    ("out of the root by a descriptor", "assert 'canary' in os.listdir('../' * 9 + OUT)"),
    (
        "descriptors of the copy",
        "assert any(os.open('/proc/1/fd/' + d, os.O_RDONLY) for d in os.listdir('/proc/1/fd'))",
    ),
    ("an attribute of the overlay's own", "os.setxattr('file', b'trusted.overlay.opaque', b'y')"),
];

/// What stands at the root while attacks are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stand {
    Project,
    Mount,
    Directory,
}

/// The base, and beside it the directory that its layers are in; `None` where the kernel has no overlays.
fn base(stand: Stand, root: &Path, layers: &Path) -> Option<Option<Base>> {
    let [upper, work, copy] = ["upper", "work", "copy"].map(|name| layers.join(name));
    match stand {
        Stand::Project => Some(None),
        Stand::Mount => {
            std::fs::create_dir(&upper).unwrap();
            std::fs::create_dir(&work).unwrap();
            let plan = OverlayPlan { lower: root.to_owned(), upper, work };
            match sandbox().mount(&plan) {
                Ok(mounted) => Some(Some(Base::Mounted(mounted.into()))),
                Err(error) => {
                    common::skip(&error.to_string());
                    None
                }
            }
        }
        Stand::Directory => {
            let copied = Command::new("cp").arg("-a").arg(root).arg(&copy).status().unwrap();
            assert!(copied.success());
            std::fs::create_dir(root.join("cache")).unwrap();
            let caches = RelPath::parse("cache").into_iter().collect();
            Some(Some(Base::Directory { path: copy, caches, layers: layers.join("caches") }))
        }
    }
}

struct Outside {
    place: tempfile::TempDir,
    home: tempfile::TempDir,
    tcp: TcpListener,
    udp: UdpSocket,
    _abstract: UnixListener,
    _socket: UnixListener,
    name: String,
}

impl Outside {
    fn new() -> Self {
        let place = tempfile::Builder::new().prefix("jm-outside-").tempdir().unwrap();
        let home = tempfile::Builder::new().prefix("jm-home-").tempdir().unwrap();
        let path = |name: &str| place.path().join(name);
        std::fs::write(path("canary"), "canary").unwrap();
        std::fs::create_dir(home.path().join(".ssh")).unwrap();
        std::fs::write(home.path().join(".ssh/id"), "key").unwrap();
        std::fs::write(home.path().join(".bashrc"), "leak").unwrap();
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("jm-abstract-{}-{count}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        Self {
            tcp: TcpListener::bind("[::]:0").unwrap(),
            udp: UdpSocket::bind("127.0.0.1:0").unwrap(),
            _abstract: UnixListener::bind_addr(&address).unwrap(),
            _socket: UnixListener::bind(path("socket")).unwrap(),
            name,
            place,
            home,
        }
    }

    fn constants(&self) -> String {
        let (out, home) = (self.place.path().display(), self.home.path().display());
        let (tcp, udp) = (self.tcp.local_addr().unwrap().port(), self.udp.local_addr().unwrap().port());
        let (agent, name) = (std::process::id(), &self.name);
        format!(
            "{NUMBERS}\nOUT='{out}'\nHOME='{home}'\nTCP={tcp}\nUDP={udp}\nABSTRACT='{name}'\nAGENT={agent}\n"
        )
    }

    /// Nothing came in and nothing changed.
    fn assert_untouched(&self) {
        assert_eq!(std::fs::read_to_string(self.place.path().join("canary")).unwrap(), "canary");
        assert_eq!(std::fs::read_to_string(self.home.path().join(".bashrc")).unwrap(), "leak");
        let mut names: Vec<_> =
            std::fs::read_dir(self.place.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["canary", "socket"]);
        self.tcp.set_nonblocking(true).unwrap();
        assert!(self.tcp.accept().is_err(), "something connected");
        self.udp.set_nonblocking(true).unwrap();
        assert!(self.udp.recv(&mut [0; 8]).is_err(), "something was sent");
    }
}

fn attack(root: &Path, layers: &Path, outside: &Outside, code: &str) -> Request {
    let program = format!(
        "{}ROOT={root:?}\nLAYERS={layers:?}\n{PRELUDE}    {code}\ntry:\n    attack()\nexcept Exception as error:\n    print('held:', error)\nelse:\n    print('ESCAPED')\n",
        outside.constants()
    );
    let mut request = Request::program(root, vec![PYTHON.into(), "-c".into(), program.into()]);
    request.env.insert("HOME".into(), outside.home.path().into());
    request.masked = vec![root.join("secret"), root.join("secrets")];
    request
}

fn try_all(stand: Stand) {
    if !has(PYTHON) {
        return;
    }
    let outside = Outside::new();
    let mut failed = Vec::new();
    let box_ = sandbox();
    block_on(async {
        for (name, code) in ATTACKS {
            let project = project();
            std::fs::write(project.path().join("secret"), "secret").unwrap();
            std::fs::create_dir(project.path().join("secrets")).unwrap();
            std::fs::write(project.path().join("secrets/key"), "secret").unwrap();
            let layers = tempfile::Builder::new().prefix("jm-layers-").tempdir().unwrap();
            let Some(base) = base(stand, project.path(), layers.path()) else { return };
            let request = attack(project.path(), layers.path(), &outside, code);
            let request = Request { base, ..request };
            let completed =
                box_.spawn(request, CancellationToken::new()).await.unwrap().wait().await.unwrap();
            let held =
                completed.combined.text.starts_with("held:") || completed.outcome == Outcome::Signaled(25);
            if !held {
                failed.push(format!("{name}: {:?} {}", completed.outcome, completed.combined.text));
            }
            assert!(project.path().join(".git/config").exists(), "{name}");
            assert!(!project.path().join(".git/hooks/pre-commit").exists(), "{name}");
            if stand != Stand::Project {
                let same = std::fs::read_to_string(project.path().join("file")).unwrap() == "content\n";
                let count = std::fs::read_dir(project.path()).unwrap().count();
                let expected = if stand == Stand::Directory { 5 } else { 4 };
                assert!(same && count == expected, "{name}: the real project was changed");
            }
        }
    });
    assert!(failed.is_empty(), "{} of {} got out:\n{}", failed.len(), ATTACKS.len(), failed.join("\n"));
    outside.assert_untouched();
}

#[test]
fn no_attack_gets_out() {
    try_all(Stand::Project);
}

#[test]
fn no_attack_gets_out_of_a_mount() {
    try_all(Stand::Mount);
}

#[test]
fn no_attack_gets_out_of_a_directory() {
    try_all(Stand::Directory);
}

#[test]
fn what_is_allowed_works() {
    let project = project();
    let commands = [
        "echo new > made && cat made && rm made",
        "mkdir -p a/b && touch a/b/c && mv a/b/c a/d",
        "echo x > /tmp/x && cat /tmp/x && chmod +x /tmp/x",
        "touch m && chmod 4755 m 2>/dev/null; chmod 755 m && test -x m && ! test -u m && chmod +t . && umask 022",
        "install -m 755 file copy && mkdir -m 700 d && cp -a d e && tar cf - copy | (cd d && tar xf -) && test -x d/copy",
        "echo x > /dev/shm/x && cat /dev/shm/x",
        "echo x > $HOME/x && cat $HOME/x",
        "echo x > /dev/null && head -c 4 /dev/urandom > /dev/null",
        "cat .git/config",
        "test \"$(cat)\" = ''",
    ];
    for command in commands {
        let mut request = Request::shell(project.path(), command);
        request.env.insert("HOME".into(), "/home/someone".into());
        let completed = run(request);
        assert_eq!(completed.outcome, Outcome::Exited(0), "{command}: {}", completed.combined.text);
    }
}

#[test]
fn daemons_and_double_forks_die_with_the_command() {
    let project = project();
    let marker = format!("jm-daemon-{}", std::process::id());
    let daemon =
        format!("(setsid sh -c 'trap \"\" TERM HUP; while :; do sleep 1; done # {marker}' &) ; echo done");
    let completed = run(Request::shell(project.path(), &daemon));
    assert_eq!((completed.outcome, completed.stdout.text.as_str()), (Outcome::Exited(0), "done\n"));
    assert!(completed.duration < Duration::from_secs(5));
    assert_eq!(alive(&marker), 0);
}

#[test]
fn a_timeout_kills_the_whole_tree() {
    let project = project();
    let marker = format!("jm-timeout-{}", std::process::id());
    let tree = format!(
        "trap '' TERM HUP INT; setsid sh -c 'while :; do sleep 1; done # {marker}' & \
         while :; do sleep 1; done # {marker}"
    );
    let mut request = Request::shell(project.path(), &tree);
    request.limits.wall = Duration::from_millis(200);
    let completed = run(request);
    assert_eq!(completed.outcome, Outcome::TimedOut);
    assert!(completed.duration >= Duration::from_millis(200));
    assert_eq!(alive(&marker), 0);
}

#[test]
fn a_fork_bomb_is_bounded_and_ends() {
    let project = project();
    let marker = format!("jm-bomb-{}", std::process::id());
    let mut request = Request::shell(project.path(), &format!("b() {{ b | b & }}; b; sleep 30 # {marker}"));
    request.limits.processes = 320;
    request.limits.wall = Duration::from_millis(700);
    let box_ = sandbox();
    let most = block_on(async {
        let cancel = CancellationToken::new();
        let running = box_.spawn(request, cancel).await.unwrap();
        let watched = marker.clone();
        let counter = tokio::task::spawn_blocking(move || {
            let begun = std::time::Instant::now();
            let mut most = 0;
            while begun.elapsed() < Duration::from_millis(600) {
                most = most.max(alive(&watched));
            }
            most
        });
        // The shell may die of it before the time is up.
        running.wait().await.unwrap();
        counter.await.unwrap()
    });
    assert!(most <= 330, "{most} processes at once");
    assert_eq!(alive(&marker), 0);
}

#[test]
fn a_flood_of_output_is_bounded() {
    let project = project();
    let mut request = Request::shell(project.path(), "yes");
    request.limits.output_bytes = 64 * 1024;
    let completed = run(request);
    assert_eq!(completed.outcome, Outcome::OutputLimit);
    assert!(completed.stdout.text.len() <= 65 * 1024);
    let kept = completed.stdout.total_bytes - completed.stdout.dropped_bytes;
    assert!(kept <= 64 * 1024 && completed.stdout.total_bytes >= 64 * 64 * 1024);
}

#[test]
fn a_gigabyte_in_one_line_is_counted_not_kept() {
    let project = project();
    let mut request = Request::shell(project.path(), "head -c 1000000000 /dev/zero");
    request.limits.output_bytes = 32 * 1024 * 1024;
    let completed = run(request);
    assert_eq!(completed.outcome, Outcome::Exited(0));
    assert_eq!(completed.stdout.total_bytes, 1_000_000_000);
    assert!(completed.stdout.text.contains("bytes left out"));
}

#[test]
fn a_full_scratch_space_stops_the_command_not_the_machine() {
    let project = project();
    let mut request = Request::shell(project.path(), "head -c 20000000 /dev/zero > /tmp/x; wc -c < /tmp/x");
    request.limits.scratch_bytes = 8 * 1024 * 1024;
    let completed = run(request);
    assert_eq!(completed.stdout.text.trim(), "8388608", "{}", completed.combined.text);
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
    run(Request::shell(project.path(), &command));
}

#[test]
fn an_agent_killed_hard_leaves_nothing() {
    let marker = format!("jm-orphan-{}", std::process::id());
    let mut agent = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "agent_to_be_killed", "--ignored", "--nocapture"])
        .env("JM_TEST_MARKER", &marker)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    eventually("the start of the agent's command", || alive(&marker) >= 3);
    agent.kill().unwrap();
    agent.wait().unwrap();
    eventually("the end of the agent's command", || alive(&marker) == 0);
    // Its standard error is open nowhere any more.
    agent.stderr.take().unwrap().read_to_end(&mut Vec::new()).unwrap();
}

#[test]
fn the_unprivileged_are_confined_alike() {
    common::again_unprivileged();
}
