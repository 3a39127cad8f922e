//! Parts of the kernel that break-outs have started from, and privileges.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd as _;

use journeyman_protocol::SandboxTier;

use crate::scene::{Scene, Verdict, Ways, way};
use crate::sys;

const NEW_USER: usize = 0x1000_0000;
const NEW_MOUNTS: usize = 0x0002_0000;

fn number(value: i32) -> usize {
    usize::try_from(value).unwrap()
}

pub(crate) fn io_uring(_: &Scene) -> Verdict {
    let parameters = [0u32; 30];
    let mut ways = Ways::default();
    ways.reached("set-up", sys::call(libc::SYS_io_uring_setup, [1, parameters.as_ptr().addr()]));
    ways.reached("registering", sys::call(libc::SYS_io_uring_register, [0, 0, 0, 0]));
    ways.verdict()
}

pub(crate) fn new_namespaces(_: &Scene) -> Verdict {
    let mut ways = Ways::default();
    let sigchld = number(libc::SIGCHLD);
    ways.tried("clone", sys::fork_by(libc::SYS_clone, [NEW_USER | sigchld, 0]));
    for (name, flags) in [
        ("mounts alone", NEW_MOUNTS),
        ("network", 0x4000_0000),
        ("processes", 0x2000_0000),
        ("user and mounts", NEW_USER | NEW_MOUNTS),
    ] {
        ways.tried(name, sys::call(libc::SYS_unshare, [flags]));
    }
    ways.verdict()
}

pub(crate) fn clone3(_: &Scene) -> Verdict {
    // `struct clone_args`: flags, four pointers, the signal.
    let arguments = [NEW_USER as u64, 0, 0, 0, libc::SIGCHLD as u64, 0, 0, 0];
    way(sys::fork_by(libc::SYS_clone3, [arguments.as_ptr().addr(), size_of_val(&arguments)]))
}

pub(crate) fn mount(scene: &Scene) -> Verdict {
    let place = std::ffi::CString::new(scene.root.join("src").to_string_lossy().as_bytes()).unwrap();
    let mut ways = Ways::default();
    let tmpfs = c"tmpfs".as_ptr().addr();
    ways.tried("mount", sys::call(libc::SYS_mount, [tmpfs, place.as_ptr().addr(), tmpfs, 0, 0]));
    ways.tried("the newer calls", sys::call(libc::SYS_fsopen, [tmpfs, 0]));
    let current = libc::AT_FDCWD as isize as usize;
    ways.tried("a copy of a tree", sys::call(libc::SYS_open_tree, [current, place.as_ptr().addr(), 1]));
    ways.verdict()
}

fn detach(path: &std::path::Path) -> io::Result<usize> {
    let path = std::ffi::CString::new(path.to_string_lossy().as_bytes()).unwrap();
    sys::call(libc::SYS_umount2, [path.as_ptr().addr(), number(libc::MNT_DETACH)])
}

pub(crate) fn unmount(scene: &Scene) -> Verdict {
    let mut ways = Ways::default();
    for path in
        [scene.root.join(".git"), scene.root.clone(), "/proc".into(), "/proc/sys".into(), "/dev".into()]
    {
        ways.tried(&path.display().to_string(), detach(&path));
    }
    ways.verdict()
}

pub(crate) fn remount_in_a_namespace(scene: &Scene) -> Verdict {
    let entered = sys::call(libc::SYS_unshare, [NEW_USER | NEW_MOUNTS]);
    let mut ways = Ways::default();
    if entered.is_err() {
        ways.tried("a namespace", entered);
        return ways.verdict();
    }
    let shown = std::ffi::CString::new(scene.shown.to_string_lossy().as_bytes()).unwrap();
    let flags = usize::try_from(libc::MS_REMOUNT | libc::MS_BIND).unwrap();
    sys::call(libc::SYS_mount, [0, shown.as_ptr().addr(), 0, flags, 0]).ok();
    ways.tried("a file", File::create_new(scene.shown.join("new")));
    ways.verdict()
}

pub(crate) fn unmount_in_a_namespace(scene: &Scene) -> Verdict {
    let entered = sys::call(libc::SYS_unshare, [NEW_USER | NEW_MOUNTS]);
    let mut ways = Ways::default();
    if entered.is_err() {
        ways.tried("a namespace", entered);
        return ways.verdict();
    }
    detach(&scene.root.join(".git")).ok();
    ways.tried("a hook", File::create_new(scene.root.join(".git/hooks/pre-push")));
    ways.verdict()
}

pub(crate) fn change_root(scene: &Scene) -> Verdict {
    let mut ways = Ways::default();
    let source = std::ffi::CString::new(scene.root.join("src").to_string_lossy().as_bytes()).unwrap();
    let here = rustix::fs::open("/", rustix::fs::OFlags::PATH, rustix::fs::Mode::empty()).unwrap();
    let changed = sys::call(libc::SYS_chroot, [source.as_ptr().addr()]).and_then(|_| {
        sys::call(libc::SYS_fchdir, [number(here.as_raw_fd())])?;
        (0..24).try_for_each(|_| std::env::set_current_dir(".."))?;
        File::open(scene.out.join("canary").strip_prefix("/").unwrap())
    });
    ways.tried("chroot", changed);
    ways.verdict()
}

pub(crate) fn privileges(scene: &Scene) -> Verdict {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let field = |name: &str| {
        status.lines().find_map(|line| line.strip_prefix(name)).map(|value| value.trim().to_owned())
    };
    let mut ways = Ways::default();
    ways.seen("set-user-ID programs raise", field("NoNewPrivs:").as_deref() != Some("1"));
    let ordinary = scene.tier == SandboxTier::Landlock && !rustix::process::geteuid().is_root();
    for set in ["CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:"] {
        // Outside of a user namespace only root may empty this one; without new privileges it gives
        // an ordinary user nothing.
        if set == "CapBnd:" && ordinary {
            continue;
        }
        let held = field(set).and_then(|bits| u64::from_str_radix(&bits, 16).ok());
        ways.seen(&format!("{set} {held:?}"), held != Some(0));
    }
    ways.verdict()
}

pub(crate) fn bpf(_: &Scene) -> Verdict {
    // `BPF_PROG_LOAD` of a socket filter: `return 0`.
    let program: [u64; 2] = [0xb7, 0x95];
    let mut attributes = [0u64; 16];
    attributes[0] = 1 | (2 << 32);
    attributes[1] = program.as_ptr().addr() as u64;
    attributes[2] = c"MIT".as_ptr().addr() as u64;
    let mut ways = Ways::default();
    let bytes = size_of_val(&attributes);
    ways.reached("a program", sys::call(libc::SYS_bpf, [5, attributes.as_ptr().addr(), bytes]));
    ways.verdict()
}

pub(crate) fn performance_events(_: &Scene) -> Verdict {
    // `struct perf_event_attr`, first version: software, its size, the processor's clock, without
    // the kernel.
    let mut attributes = [0u64; 8];
    attributes[0] = 1 | (64 << 32);
    attributes[5] = 1 << 5 | 1 << 6;
    let mut ways = Ways::default();
    let none = usize::MAX;
    let opened = sys::call(libc::SYS_perf_event_open, [attributes.as_ptr().addr(), 0, none, none, 0]);
    ways.reached("its own", opened);
    ways.verdict()
}

pub(crate) fn page_faults(_: &Scene) -> Verdict {
    let mut ways = Ways::default();
    // `UFFD_USER_MODE_ONLY`.
    ways.reached("of its own", sys::call(libc::SYS_userfaultfd, [1]));
    ways.verdict()
}

pub(crate) fn handles(_: &Scene) -> Verdict {
    // `struct file_handle` with room for any file system's.
    let mut handle = [0u32; 34];
    handle[0] = 128;
    let mut mount = 0i32;
    let here = libc::AT_FDCWD as isize as usize;
    let named = sys::call(
        libc::SYS_name_to_handle_at,
        [here, c".".as_ptr().addr(), handle.as_mut_ptr().addr(), (&raw mut mount).addr(), 0],
    );
    let directory = File::open(".").unwrap();
    let opened = named.and_then(|_| {
        sys::call(libc::SYS_open_by_handle_at, [number(directory.as_raw_fd()), handle.as_ptr().addr(), 0])
    });
    way(opened)
}

pub(crate) fn foreign_numbers(_: &Scene) -> Verdict {
    match sys::foreign_vsock() {
        None => Verdict::Absent("this processor has no 32-bit calls".to_owned()),
        Some(result) if result >= 0 => Verdict::Out("a vsock socket by the 32-bit gate".to_owned()),
        Some(error) => way::<()>(Err(io::Error::from_raw_os_error(i32::try_from(-error).unwrap()))),
    }
}

pub(crate) fn x32(scene: &Scene) -> Verdict {
    let result = sys::call(0x4000_0000 | libc::SYS_getpid, []);
    if result.is_err() && !scene.confined {
        return Verdict::Absent("this kernel has no x32 calls".to_owned());
    }
    way(result)
}

pub(crate) fn segment(scene: &Scene) -> Verdict {
    way(sys::overwrite_segment(scene.segment))
}

pub(crate) fn file_events(_: &Scene) -> Verdict {
    let mut ways = Ways::default();
    // `FAN_REPORT_FID`, which needs no privilege.
    ways.reached("for users", sys::call(libc::SYS_fanotify_init, [0x200, 0]));
    ways.verdict()
}

/// Nothing is changed even where it works: the clock is given the tick it has, the name a length
/// that no name has.
pub(crate) fn clock_and_name(_: &Scene) -> Verdict {
    let mut ways = Ways::default();
    // `struct timex` is smaller than this; `ADJ_TICK`, and 10 ms, at the places of `modes` and
    // `tick`.
    let mut read = [0u64; 64];
    let now = sys::call(libc::SYS_adjtimex, [read.as_mut_ptr().addr()]);
    read[0] = 0x4000;
    let set = now.and_then(|_| sys::call(libc::SYS_adjtimex, [read.as_mut_ptr().addr()]));
    ways.tried("the clock's rate", set);
    let named = sys::call(libc::SYS_sethostname, [c"x".as_ptr().addr(), usize::MAX]);
    ways.reached("the host's name", named);
    let named = sys::call(libc::SYS_setdomainname, [c"x".as_ptr().addr(), usize::MAX]);
    ways.reached("its domain", named);
    ways.verdict()
}
