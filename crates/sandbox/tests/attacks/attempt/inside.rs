//! The sandbox's own parts, and what it makes copies of: beyond the table's rows.

use std::ffi::CString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, XattrFlags};

use crate::scene::{Scene, Verdict, Ways};
use crate::sys;

/// Pid 1 is the helper, of the same user as the command.
pub(crate) fn init(_: &Scene) -> Verdict {
    let mut ways = Ways::default();
    for name in ["environ", "maps", "fd", "root", "cwd"] {
        let path = Path::new("/proc/1").join(name);
        let read = if path.ends_with("environ") || path.ends_with("maps") {
            fs::read(&path).map(drop)
        } else if name == "fd" {
            // Their numbers tell nothing; what they lead to would.
            let opened =
                |entry: fs::DirEntry| File::open(entry.path()).is_ok() || fs::read_link(entry.path()).is_ok();
            let all: Vec<_> = fs::read_dir(&path).into_iter().flatten().flatten().collect();
            if all.into_iter().any(opened) { Ok(()) } else { Err(io::ErrorKind::PermissionDenied.into()) }
        } else {
            fs::read_link(&path).map(drop)
        };
        ways.tried(name, read);
    }
    ways.tried("mem", OpenOptions::new().read(true).write(true).open("/proc/1/mem"));
    let seize = usize::try_from(libc::PTRACE_SEIZE).unwrap();
    ways.tried("trace", sys::call(libc::SYS_ptrace, [seize, 1, 0, 0]));
    let handle = sys::call(libc::SYS_pidfd_open, [1, 0]);
    ways.tried("a descriptor", handle.and_then(|handle| sys::call(libc::SYS_pidfd_getfd, [handle, 0, 0])));
    for name in ["mnt", "user"] {
        let entered = File::open(Path::new("/proc/1/ns").join(name))
            .and_then(|file| sys::call(libc::SYS_setns, [usize::try_from(file.as_raw_fd()).unwrap(), 0]));
        ways.tried(&format!("its {name} namespace"), entered);
    }
    // Sent, and ignored by the kernel: it would end this process with it.
    sys::call(libc::SYS_kill, [1, usize::try_from(libc::SIGKILL).unwrap()]).ok();
    ways.verdict()
}

/// A program that runs as the user for everybody on the machine.
pub(crate) fn set_user_id(scene: &Scene) -> Verdict {
    let mut ways = Ways::default();
    let file = scene.root.join("file");
    let path = CString::new(file.to_string_lossy().as_bytes()).unwrap();
    let here = libc::AT_FDCWD as isize as usize;
    for bits in [0o4755usize, 0o2755] {
        let mode = u32::try_from(bits).unwrap();
        ways.tried("chmod", fs::set_permissions(&file, fs::Permissions::from_mode(mode)));
        ways.tried(
            "fchmod",
            File::open(&file).and_then(|file| file.set_permissions(fs::Permissions::from_mode(mode))),
        );
        ways.tried("fchmodat2", sys::call(452, [here, path.as_ptr().addr(), bits, 0]));
        let made = OpenOptions::new()
            .create_new(true)
            .write(true)
            .mode(mode)
            .open(scene.root.join(format!("made{bits}")));
        ways.tried("made so", made);
        let nameless = rustix::fs::openat(
            CWD,
            &scene.root,
            rustix::fs::OFlags::TMPFILE | rustix::fs::OFlags::WRONLY,
            Mode::from_raw_mode(mode),
        );
        ways.tried("without a name", nameless.map_err(io::Error::from));
        let node = rustix::fs::mknodat(
            CWD,
            scene.root.join(format!("node{bits}")),
            FileType::RegularFile,
            Mode::from_raw_mode(mode),
            0,
        );
        ways.tried("a node", node.map_err(io::Error::from));
        let how = [u64::try_from(libc::O_CREAT | libc::O_WRONLY).unwrap(), u64::from(mode), 0];
        let name = CString::new(scene.root.join(format!("how{bits}")).to_string_lossy().as_bytes()).unwrap();
        ways.tried(
            "openat2",
            sys::call(libc::SYS_openat2, [here, name.as_ptr().addr(), how.as_ptr().addr(), 24]),
        );
    }
    // By whichever way: no such file is there.
    let is_set = |entry: fs::DirEntry| {
        entry.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o6000 != 0)
    };
    let verdict = fs::read_dir(&scene.root).unwrap().flatten().any(is_set);
    match ways.verdict() {
        // Calls that leave the bits out have done no harm.
        Verdict::Out(_) if !verdict => Verdict::Held("the bits were left out".to_owned()),
        verdict => verdict,
    }
}

/// Where the helper keeps what it mounts.
pub(crate) fn store(_: &Scene) -> Verdict {
    let mut ways = Ways::default();
    ways.tried("listed", fs::read_dir("/.sandbox"));
    ways.tried("opened to all", fs::set_permissions("/.sandbox", fs::Permissions::from_mode(0o777)));
    ways.tried("a file in it", File::create_new("/.sandbox/new"));
    ways.verdict()
}

/// What a copy is made of, by its own name or by the list of mounts.
pub(crate) fn layers(scene: &Scene) -> Verdict {
    let layers = scene.out.with_file_name("layers");
    let mut ways = Ways::default();
    ways.tried("by name", fs::read_dir(&layers));
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    for part in ["upper", "caches"] {
        let path = layers.join(part).display().to_string();
        ways.seen(&format!("{part} in the list of mounts"), mounts.contains(&path));
    }
    let set =
        rustix::fs::setxattr(scene.root.join("file"), c"trusted.overlay.opaque", b"y", XattrFlags::empty());
    ways.tried("the overlay's own attribute", set.map_err(io::Error::from));
    ways.verdict()
}

pub(crate) fn move_project(scene: &Scene) -> Verdict {
    std::env::set_current_dir("/").unwrap();
    let root = CString::new(scene.root.to_string_lossy().as_bytes()).unwrap();
    let mut ways = Ways::default();
    for (name, flags) in [("plainly", 0), ("lazily", 2)] {
        ways.tried(name, sys::call(libc::SYS_umount2, [root.as_ptr().addr(), flags]));
    }
    let (place, none) = (c"/tmp".as_ptr().addr(), c"none".as_ptr().addr());
    for (name, flags) in [("moved", 0x2000), ("bound", 0x1000), ("made writable", 0x20 | 0x1000)] {
        ways.tried(name, sys::call(libc::SYS_mount, [root.as_ptr().addr(), place, none, flags, 0]));
    }
    let current = libc::AT_FDCWD as isize as usize;
    ways.tried(
        "attributes",
        sys::call(libc::SYS_mount_setattr, [current, root.as_ptr().addr(), 0, [0u64; 4].as_ptr().addr(), 32]),
    );
    ways.verdict()
}

pub(crate) fn hosts_tmp(scene: &Scene) -> Verdict {
    let name = format!("jm-canary-{}", scene.name);
    let mut ways = Ways::default();
    ways.tried("a file of another program", fs::read(Path::new("/tmp").join(&name)));
    ways.seen(
        "the names there",
        fs::read_dir("/tmp").into_iter().flatten().flatten().any(|entry| entry.file_name() == *name),
    );
    ways.verdict()
}
