//! The place that is attacked, made anew for every attempt, and what the host finds afterwards.

use journeyman_testkit::copy_program;
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read as _};
use std::net::{TcpListener, UdpSocket};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use journeyman_protocol::SandboxTier;

use crate::agent::{ORDER, Order, Stand};
use crate::common::place::fingerprint;
use crate::scene::{AGENT, SECRET, Said, Scene};
use crate::sys;

/// Whose agent it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum User {
    Root,
    /// `nobody` where the tests run as root, else whoever runs them.
    Ordinary,
}

/// On every Linux.
const NOBODY: u32 = 65534;

impl User {
    /// To whom things have to be given.
    fn id(self) -> Option<u32> {
        (self == Self::Ordinary && rustix::process::geteuid().is_root()).then_some(NOBODY)
    }
}

pub(crate) struct Place {
    directory: tempfile::TempDir,
    user: User,
    tcp4: TcpListener,
    tcp6: Option<TcpListener>,
    udp: UdpSocket,
    sockets: Vec<UnixListener>,
    name: String,
    segment: sys::Segment,
    /// Files outside of the directory.
    strewn: Vec<PathBuf>,
    terminal: fs::File,
    slave: OwnedFd,
    before: BTreeMap<PathBuf, String>,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.strewn.iter().for_each(|path| drop(fs::remove_file(path)));
        // The kernel's own directory in `work` may be entered by nobody.
        fs::remove_dir(self.directory.path().join("layers/work/work")).ok();
    }
}

const FILES: &[(&str, &str)] = &[
    ("out/canary", "canary"),
    ("shown/canary", "canary"),
    ("home/.ssh/id", "key"),
    ("home/.bashrc", "alias ll='ls -l'\n"),
    ("home/.config/journeyman/config.toml", "model = \"x\"\n"),
    ("project/.git/config", "[core]\n"),
    ("project/.git/HEAD", "ref: refs/heads/main\n"),
    ("project/.git/hooks/sample", ""),
    ("project/.journeyman/config.toml", ""),
    ("project/file", "content\n"),
    ("project/src/main", "main\n"),
];

impl Place {
    pub(crate) fn new(user: User, tier: SandboxTier, stand: Stand) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("jm-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let directory = tempfile::Builder::new().prefix("jm-attack-").tempdir().unwrap();
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let at = |path: &str| directory.path().join(path);
        for (path, text) in FILES {
            fs::create_dir_all(at(path).parent().unwrap()).unwrap();
            fs::write(at(path), text).unwrap();
        }
        for made in ["layers/upper", "layers/work"] {
            fs::create_dir_all(at(made)).unwrap();
        }
        if stand == Stand::Directory {
            let copied = Command::new("cp").arg("-a").arg(at("project")).arg(at("layers/copy")).status();
            assert!(copied.unwrap().success());
            fs::create_dir(at("project/cache")).unwrap();
        }
        let strewn = ["/dev/shm", "/tmp"].map(|place| Path::new(place).join(format!("jm-canary-{name}")));
        for path in &strewn {
            fs::write(path, "canary").unwrap();
            fs::set_permissions(path, fs::Permissions::from_mode(0o666)).unwrap();
        }
        let paths = ["out/docker.sock", "shown/docker.sock", "home/.ssh/agent"];
        let mut sockets: Vec<_> = paths.map(|path| UnixListener::bind(at(path)).unwrap()).into();
        sockets.push(UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap());
        // Commands in containers are those of the project's owner, who isn't root.
        let owner = if tier == SandboxTier::Container { User::Ordinary.id() } else { user.id() };
        if let Some(id) = owner {
            give(directory.path(), id);
        }
        let (terminal, slave) = terminal().unwrap();
        let mut place = Self {
            user,
            tcp4: TcpListener::bind("127.0.0.1:0").unwrap(),
            tcp6: TcpListener::bind("[::1]:0").ok(),
            udp: UdpSocket::bind("127.0.0.1:0").unwrap(),
            sockets,
            name,
            segment: sys::Segment::new().unwrap(),
            strewn: strewn.into(),
            terminal,
            slave,
            before: BTreeMap::new(),
            directory,
        };
        place.before = place.look(stand);
        place
    }

    fn at(&self, path: &str) -> PathBuf {
        self.directory.path().join(path)
    }

    /// All that no attempt may change.
    fn look(&self, stand: Stand) -> BTreeMap<PathBuf, String> {
        let project: &[&str] = match stand {
            Stand::Project | Stand::Tool => &["project/.git", "project/.journeyman"],
            // Commands change the copy alone.
            Stand::Mount | Stand::Directory | Stand::Delegate => &["project"],
        };
        let mut all = BTreeMap::new();
        for place in ["out", "shown", "home"].iter().chain(project) {
            if self.at(place).exists() {
                all.extend(fingerprint(&self.at(place)));
            }
        }
        self.strewn.iter().for_each(|path| all.extend(fingerprint(path)));
        all
    }

    /// Has the agent make the attempt.
    pub(crate) fn attempt(&self, tier: SandboxTier, stand: Stand, row: u8) -> Said {
        let program = program(self.user);
        let scene = Scene {
            row,
            root: self.at("project"),
            out: self.at("out"),
            shown: self.at("shown"),
            home: self.at("home"),
            tcp4: self.tcp4.local_addr().unwrap().port(),
            tcp6: self.tcp6.as_ref().map(|listener| listener.local_addr().unwrap().port()),
            udp: self.udp.local_addr().unwrap().port(),
            name: self.name.clone(),
            agent: 0,
            address: 0,
            program: program.clone(),
            segment: self.segment.id,
            shared: self.strewn[0].clone(),
            tier,
            confined: tier != SandboxTier::Unconfined,
        };
        let cache = program.with_file_name(format!("probe-{tier}"));
        let socket = std::env::var_os("JM_TEST_DOCKER_SOCKET").map(PathBuf::from);
        let service = socket.zip(std::env::var("JM_TEST_IMAGE").ok());
        let order = Order { scene, tier, stand, layers: self.at("layers"), cache, service };
        let output = self.start(&program, &order);
        let text = String::from_utf8_lossy(&output.stdout);
        let said = text.lines().last().and_then(|line| serde_json::from_str(line).ok());
        said.unwrap_or_else(|| {
            panic!(
                "the agent ended with {}: {text}{}",
                output.status,
                String::from_utf8_lossy(&output.stderr)
            )
        })
    }

    fn start(&self, program: &Path, order: &Order) -> std::process::Output {
        let mut command = Command::new(program);
        command
            .arg(AGENT)
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", self.at("home"))
            .env(SECRET, "secret")
            .env("SSH_AUTH_SOCK", self.at("home/.ssh/agent"))
            .env(ORDER, serde_json::to_string(order).unwrap())
            .current_dir(self.at("project"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let file = fs::OpenOptions::new().write(true).open(self.at("out/canary")).unwrap();
        let directory = fs::File::open(self.at("out")).unwrap();
        sys::leave_open(&mut command, file.as_raw_fd(), directory.as_raw_fd(), self.slave.as_raw_fd());
        if let Some(id) = self.user.id() {
            std::os::unix::process::CommandExt::uid(&mut command, id);
            std::os::unix::process::CommandExt::gid(&mut command, id);
        }
        command.output().unwrap()
    }

    /// What an attempt left outside of the sandbox, as the host sees it.
    pub(crate) fn traces(&self, stand: Stand) -> Vec<String> {
        let mut found = Vec::new();
        let now = self.look(stand);
        for path in self.before.keys().chain(now.keys()) {
            if self.before.get(path) != now.get(path) {
                found.push(format!("{} was changed", path.display()));
            }
        }
        let listeners = [Some(&self.tcp4), self.tcp6.as_ref()];
        for listener in listeners.into_iter().flatten() {
            listener.set_nonblocking(true).unwrap();
            if listener.accept().is_ok() {
                found.push("somebody connected by TCP".to_owned());
            }
        }
        self.udp.set_nonblocking(true).unwrap();
        if self.udp.recv(&mut [0; 8]).is_ok() {
            found.push("something came by UDP".to_owned());
        }
        for socket in &self.sockets {
            socket.set_nonblocking(true).unwrap();
            if socket.accept().is_ok() {
                found.push("somebody connected to a local socket".to_owned());
            }
        }
        if self.segment.first() != 0 {
            found.push("shared memory was changed".to_owned());
        }
        // What is typed into a terminal is echoed.
        if (&self.terminal).read(&mut [0; 8]).is_ok_and(|read| read > 0) {
            found.push("something was typed into the terminal".to_owned());
        }
        found
    }
}

/// Both ends of a terminal; reading from the first never waits.
fn terminal() -> io::Result<(fs::File, OwnedFd)> {
    let flags =
        rustix::pty::OpenptFlags::RDWR | rustix::pty::OpenptFlags::NOCTTY | rustix::pty::OpenptFlags::CLOEXEC;
    let master = rustix::pty::openpt(flags)?;
    rustix::pty::grantpt(&master)?;
    rustix::pty::unlockpt(&master)?;
    let name = rustix::pty::ptsname(&master, Vec::new())?;
    rustix::fs::chmod(&*name, rustix::fs::Mode::from_raw_mode(0o666))?;
    let flags = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::NOCTTY | rustix::fs::OFlags::CLOEXEC;
    let slave = rustix::fs::open(&name, flags, rustix::fs::Mode::empty())?;
    rustix::io::ioctl_fionbio(&master, true)?;
    Ok((master.into(), slave))
}

fn give(path: &Path, id: u32) {
    let found = fs::symlink_metadata(path).unwrap();
    if found.is_dir() {
        fs::read_dir(path).unwrap().for_each(|entry| give(&entry.unwrap().path(), id));
    }
    std::os::unix::fs::lchown(path, Some(id), Some(id)).unwrap();
}

/// This program, where the user may run it, and theirs: nothing but the sandbox keeps them from
/// changing it.
fn program(user: User) -> PathBuf {
    static PROGRAMS: OnceLock<[tempfile::TempDir; 2]> = OnceLock::new();
    let [root, ordinary] = PROGRAMS.get_or_init(|| {
        [User::Root, User::Ordinary].map(|user| {
            let directory = tempfile::Builder::new().prefix("jm-attacker-").tempdir().unwrap();
            let program = directory.path().join("attacks");
            copy_program(&std::env::current_exe().unwrap(), &program);
            let resting = directory.path().join("resting");
            fs::write(&resting, "like it").unwrap();
            fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
            fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
            for path in user.id().iter().flat_map(|_| [directory.path(), &program, &resting]) {
                chown(path, user.id(), user.id()).unwrap();
            }
            directory
        })
    });
    if user == User::Root { root } else { ordinary }.path().join("attacks")
}
