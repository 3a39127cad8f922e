//! The agent's process and others, secrets in environments, keys and terminals.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;

use crate::scene::{AGENT, SECRET, Scene, Verdict, Ways, way};
use crate::sys;

fn of_agent(scene: &Scene, name: &str) -> PathBuf {
    PathBuf::from(format!("/proc/{}/{name}", scene.agent))
}

fn agent(scene: &Scene) -> usize {
    usize::try_from(scene.agent).unwrap()
}

pub(crate) fn agents_root(scene: &Scene) -> Verdict {
    let mut ways = Ways::default();
    for place in ["root", "cwd"] {
        let through = of_agent(scene, place).join(scene.out.join("canary").strip_prefix("/").unwrap());
        ways.tried(
            place,
            OpenOptions::new().write(true).open(through).and_then(|file| file.write_at(b"X", 0)),
        );
    }
    ways.verdict()
}

pub(crate) fn agents_environment(scene: &Scene) -> Verdict {
    way(fs::read(of_agent(scene, "environ")))
}

pub(crate) fn own_environment(_: &Scene) -> Verdict {
    let mut ways = Ways::default();
    ways.seen("the variable", std::env::var_os(SECRET).is_some());
    ways.seen("the agent's sockets", std::env::var_os("SSH_AUTH_SOCK").is_some());
    ways.verdict()
}

fn all_processes() -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| {
        path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.parse::<i32>().is_ok())
    })
}

fn holds(path: PathBuf, text: &str) -> bool {
    fs::read(path).is_ok_and(|bytes| bytes.windows(text.len()).any(|window| window == text.as_bytes()))
}

pub(crate) fn any_environment(_: &Scene) -> Verdict {
    let mut ways = Ways::default();
    let secret = format!("{SECRET}=");
    ways.seen("some process has it", all_processes().any(|process| holds(process.join("environ"), &secret)));
    ways.verdict()
}

pub(crate) fn command_lines(_: &Scene) -> Verdict {
    let mut ways = Ways::default();
    ways.seen(
        "the agent's command line",
        all_processes().any(|process| holds(process.join("cmdline"), AGENT)),
    );
    ways.verdict()
}

pub(crate) fn trace(scene: &Scene) -> Verdict {
    let mut ways = Ways::default();
    let seize = usize::try_from(libc::PTRACE_SEIZE).unwrap();
    // Seizing doesn't stop it, and ends when this process does.
    ways.tried("seize", sys::call(libc::SYS_ptrace, [seize, agent(scene), 0, 0]));
    ways.verdict()
}

pub(crate) fn agents_memory(scene: &Scene) -> Verdict {
    let mut ways = Ways::default();
    let memory = OpenOptions::new().read(true).write(true).open(of_agent(scene, "mem"));
    let read = memory.and_then(|file| file.read_at(&mut [0; 8], scene.address as u64));
    ways.tried("open for writing and read", read);
    ways.tried(
        "its map",
        fs::read(of_agent(scene, "maps")).and_then(|bytes| {
            if bytes.is_empty() { Err(io::Error::from_raw_os_error(libc::EACCES)) } else { Ok(()) }
        }),
    );
    ways.verdict()
}

pub(crate) fn read_memory(scene: &Scene) -> Verdict {
    let mut bytes = [0u8; 8];
    let own = [bytes.as_mut_ptr().addr(), bytes.len()];
    let its = [scene.address, bytes.len()];
    let result = sys::call(
        libc::SYS_process_vm_readv,
        [agent(scene), own.as_ptr().addr(), 1, its.as_ptr().addr(), 1, 0],
    );
    way(result)
}

pub(crate) fn take_descriptor(scene: &Scene) -> Verdict {
    let handle = sys::call(libc::SYS_pidfd_open, [agent(scene), 0]);
    way(handle.and_then(|handle| sys::call(libc::SYS_pidfd_getfd, [handle, 1, 0])))
}

pub(crate) fn signal(scene: &Scene) -> Verdict {
    way(sys::call(libc::SYS_kill, [agent(scene), 0]))
}

pub(crate) fn signal_otherwise(scene: &Scene) -> Verdict {
    let mut ways = Ways::default();
    let handle = sys::call(libc::SYS_pidfd_open, [agent(scene), 0]);
    let sent = handle.and_then(|handle| sys::call(libc::SYS_pidfd_send_signal, [handle, 0, 0, 0]));
    ways.tried("by a handle", sent);
    // It leads a group of its own.
    ways.tried("its group", sys::call(libc::SYS_kill, [agent(scene).wrapping_neg(), 0]));
    ways.tried("its thread", sys::call(libc::SYS_tgkill, [agent(scene), agent(scene), 0]));
    let queued = [0u32; 32];
    let queued = sys::call(libc::SYS_rt_sigqueueinfo, [agent(scene), 0, queued.as_ptr().addr()]);
    ways.tried("queued", queued);
    // In a process namespace nobody else is meant.
    if fs::read(of_agent(scene, "cmdline")).is_ok() {
        ways.tried("everybody", sys::call(libc::SYS_kill, [usize::MAX, 0]));
    }
    ways.verdict()
}

pub(crate) fn own_session(_: &Scene) -> Verdict {
    way(sys::in_child(|| rustix::process::setsid().map(drop).map_err(io::Error::from)))
}

pub(crate) fn enter_namespace(scene: &Scene) -> Verdict {
    let mut ways = Ways::default();
    for name in ["mnt", "user", "net", "pid"] {
        let entered = File::open(of_agent(scene, "ns").join(name))
            .and_then(|file| sys::call(libc::SYS_setns, [usize::try_from(file.as_raw_fd()).unwrap(), 0]));
        ways.tried(name, entered);
    }
    let handle = sys::call(libc::SYS_pidfd_open, [agent(scene), 0]);
    let flags = usize::try_from(libc::CLONE_NEWNS | libc::CLONE_NEWUSER).unwrap();
    ways.tried("by a handle", handle.and_then(|handle| sys::call(libc::SYS_setns, [handle, flags])));
    ways.verdict()
}

/// Of a program that is being run the kernel says so (`ETXTBSY`) before it has asked everybody
/// whether it may be changed; so a copy of it that rests beside it is tried, too.
pub(crate) fn agents_program(scene: &Scene) -> Verdict {
    let mut ways = Ways::default();
    let resting = scene.program.with_file_name("resting");
    ways.tried("one like it", OpenOptions::new().write(true).open(&resting));
    for path in [of_agent(scene, "exe"), scene.program.clone(), "/proc/self/exe".into(), "/proc/1/exe".into()]
    {
        let way = path.display().to_string();
        ways.tried(&way, OpenOptions::new().write(true).open(&path));
    }
    if scene.confined {
        let aside = scene.program.with_extension("aside");
        ways.tried("moved", fs::rename(&scene.program, &aside));
        ways.tried("another beside it", File::create_new(scene.program.with_extension("other")));
    }
    ways.verdict()
}

const USER: &std::ffi::CStr = c"user";
/// The caller's session keyring (`KEY_SPEC_SESSION_KEYRING`).
const SESSION: usize = (-3isize).cast_unsigned();
/// `KEYCTL_SEARCH`.
const SEARCH: usize = 10;

pub(crate) fn read_keys(_: &Scene) -> Verdict {
    let mut ways = Ways::default();
    let found = find_key(c"jm-canary");
    ways.tried("the agent's key", found);
    // `KEYCTL_GET_KEYRING_ID`.
    ways.reached("any key", sys::call(libc::SYS_keyctl, [0, SESSION, 0, 0, 0]));
    ways.verdict()
}

pub(crate) fn find_key(name: &std::ffi::CStr) -> io::Result<usize> {
    sys::call(libc::SYS_keyctl, [SEARCH, SESSION, USER.as_ptr().addr(), name.as_ptr().addr(), 0])
}

pub(crate) fn add_key(name: &std::ffi::CStr) -> io::Result<usize> {
    let arguments = [USER.as_ptr().addr(), name.as_ptr().addr(), b"k".as_ptr().addr(), 1, SESSION];
    sys::call(libc::SYS_add_key, arguments)
}

pub(crate) fn plant_key(_: &Scene) -> Verdict {
    match add_key(c"jm-planted") {
        Err(error) if error.raw_os_error() == Some(libc::ENOSYS) => Verdict::Held(error.to_string()),
        result => way(result),
    }
}

pub(crate) fn users_terminal(scene: &Scene) -> Verdict {
    let mut ways = Ways::default();
    let terminal = OpenOptions::new().read(true).write(true).open("/dev/tty");
    ways.tried("/dev/tty", terminal.and_then(|file| sys::type_into(file.as_raw_fd())));
    for descriptor in 0..20 {
        ways.tried(&format!("descriptor {descriptor}"), sys::type_into(descriptor));
    }
    let agents = OpenOptions::new().read(true).write(true).open(of_agent(scene, "fd/0"));
    ways.tried("the agent's", agents.and_then(|file| sys::type_into(file.as_raw_fd())));
    ways.verdict()
}

pub(crate) fn type_ahead(_: &Scene) -> Verdict {
    let mut ways = Ways::default();
    ways.tried("standard input", sys::type_into(0));
    // One of its own, which it controls: the call mustn't be there at all.
    ways.tried(
        "a terminal of its own",
        sys::in_child(|| {
            rustix::process::setsid()?;
            let master =
                rustix::pty::openpt(rustix::pty::OpenptFlags::RDWR | rustix::pty::OpenptFlags::NOCTTY)?;
            rustix::pty::unlockpt(&master)?;
            let slave = OpenOptions::new()
                .read(true)
                .write(true)
                .open(std::ffi::OsStr::from_bytes(rustix::pty::ptsname(&master, Vec::new())?.as_bytes()))?;
            let typed = sys::type_into(slave.as_raw_fd());
            // Its end would hang up, which kills this child before it has said how it went.
            std::mem::forget(master);
            typed
        }),
    );
    ways.verdict()
}

pub(crate) fn run_what_was_written(scene: &Scene) -> Verdict {
    let mut ways = Ways::default();
    ways.tried("memory that was written", sys::run_written_code());
    let file = rustix::fs::memfd_create(c"program", rustix::fs::MemfdFlags::empty());
    let run = file.map_err(io::Error::from).and_then(|file| {
        let mut target = File::from(file.try_clone()?);
        io::copy(&mut File::open(&scene.program)?, &mut target)?;
        drop(target);
        let mut command = std::process::Command::new(format!("/proc/self/fd/{}", file.as_raw_fd()));
        command.arg0("attacks").args(["--list", "nothing has this name"]).env_clear().output()
    });
    ways.tried("a file without a name", run);
    ways.verdict()
}
