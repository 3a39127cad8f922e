//! Files that are none of the command's business. `Shown` ones may be read.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, Timespec, Timestamps, XattrFlags};

use crate::scene::{Scene, Verdict, Ways, way};

fn overwrite(path: &Path) -> io::Result<()> {
    OpenOptions::new().write(true).open(path)?.write_all(b"X")
}

fn targets(scene: &Scene) -> [PathBuf; 2] {
    [scene.out.join("canary"), scene.shown.join("canary")]
}

pub(crate) fn create(scene: &Scene) -> Verdict {
    let mut ways = Ways::default();
    ways.tried("beside the project", File::create_new(scene.out.join("new")));
    ways.tried("in a shown directory", File::create_new(scene.shown.join("new")));
    ways.tried("a directory", fs::create_dir(scene.shown.join("made")));
    if scene.confined {
        // Files without a name: if it works, nothing is left of it.
        for system in ["/", "/usr", "/usr/bin", "/etc", "/opt", "/var", "/root", "/dev"] {
            let flags = OFlags::TMPFILE | OFlags::WRONLY;
            let made = rustix::fs::open(system, flags, Mode::RUSR).map_err(io::Error::from);
            ways.tried(system, made);
        }
    }
    ways.verdict()
}

pub(crate) fn through_a_link(scene: &Scene) -> Verdict {
    let mut ways = Ways::default();
    for (number, target) in targets(scene).iter().enumerate() {
        let link = scene.root.join(format!("link{number}"));
        ways.tried("the file", symlink(target, &link).and_then(|()| overwrite(&link)));
        let directory = scene.root.join(format!("directory{number}"));
        let made = symlink(target.parent().unwrap_or(target), &directory);
        ways.tried("its directory", made.and_then(|()| overwrite(&directory.join("canary"))));
    }
    ways.verdict()
}

pub(crate) fn hard_link(scene: &Scene) -> Verdict {
    let mut ways = Ways::default();
    for (number, target) in targets(scene).iter().enumerate() {
        ways.tried("a link", fs::hard_link(target, scene.root.join(format!("hard{number}"))));
    }
    ways.verdict()
}

pub(crate) fn move_out(scene: &Scene) -> Verdict {
    let mut ways = Ways::default();
    for (number, target) in targets(scene).iter().enumerate() {
        let file = scene.root.join(format!("moving{number}"));
        let made = File::create(&file);
        ways.tried("a file", made.and_then(|_| fs::rename(&file, target.with_file_name("moved"))));
    }
    ways.verdict()
}

pub(crate) fn climb(scene: &Scene) -> Verdict {
    let mut ways = Ways::default();
    for target in targets(scene) {
        let shown = target.display();
        let root = scene.root.display();
        for path in [
            format!("{root}{}{shown}", "/..".repeat(24)),
            format!("{root}{}{shown}", "//..//.".repeat(24)),
            format!("{root}/\u{ff0e}\u{ff0e}/{shown}"),
            format!("{root}/\u{2025}{shown}"),
            format!("/proc/self/cwd/../../../../../../../..{shown}"),
            format!("/proc/self/root{shown}"),
        ] {
            ways.tried(&path, overwrite(Path::new(&path)));
        }
    }
    ways.verdict()
}

pub(crate) fn reopen(scene: &Scene) -> Verdict {
    let mut ways = Ways::default();
    for target in targets(scene).into_iter().chain([PathBuf::from("/etc/passwd")]) {
        let again = File::open(&target).and_then(|file| {
            let path = format!("/proc/self/fd/{}", file.as_raw_fd());
            // Opened only: what is there may be the system's.
            OpenOptions::new().write(true).open(path)
        });
        ways.tried(&target.display().to_string(), again);
    }
    ways.verdict()
}

pub(crate) fn truncate(scene: &Scene) -> Verdict {
    let mut ways = Ways::default();
    for target in targets(scene) {
        let path = std::ffi::CString::new(target.to_string_lossy().as_bytes()).unwrap();
        ways.tried("truncate", crate::sys::call(libc::SYS_truncate, [path.as_ptr().addr(), 1]));
        ways.tried("open", OpenOptions::new().write(true).truncate(true).open(&target));
    }
    ways.verdict()
}

pub(crate) fn change_mode(scene: &Scene) -> Verdict {
    let mut ways = Ways::default();
    for target in targets(scene) {
        ways.tried("chmod", fs::set_permissions(&target, fs::Permissions::from_mode(0o777)));
        let opened = File::open(&target);
        let changed = opened.and_then(|file| file.set_permissions(fs::Permissions::from_mode(0o777)));
        ways.tried("fchmod", changed);
        let link = scene.root.join("link-to-change");
        fs::remove_file(&link).ok();
        let linked = symlink(&target, &link);
        let changed = linked.and_then(|()| fs::set_permissions(&link, fs::Permissions::from_mode(0o777)));
        ways.tried("through a link", changed);
        let directory = File::open(target.parent().unwrap_or(&target));
        let changed = directory.and_then(|directory| {
            rustix::fs::chmodat(&directory, "canary", Mode::from_raw_mode(0o777), AtFlags::empty())
                .map_err(io::Error::from)
        });
        ways.tried("fchmodat", changed);
        let place = rustix::fs::open(&target, OFlags::PATH, Mode::empty()).map_err(io::Error::from);
        let changed = place.and_then(|place| {
            let path = format!("/proc/self/fd/{}", place.as_raw_fd());
            fs::set_permissions(path, fs::Permissions::from_mode(0o777))
        });
        ways.tried("through a descriptor's path", changed);
    }
    ways.verdict()
}

pub(crate) fn change_times(scene: &Scene) -> Verdict {
    let mut ways = Ways::default();
    let old = Timespec { tv_sec: 1, tv_nsec: 1 };
    let times = Timestamps { last_access: old, last_modification: old };
    for target in targets(scene) {
        let set = rustix::fs::utimensat(CWD, &target, &times, AtFlags::empty());
        ways.tried("times", set.map_err(io::Error::from));
        let opened = rustix::fs::open(&target, OFlags::RDONLY, Mode::empty());
        let set = opened.and_then(|file| rustix::fs::futimens(&file, &times));
        ways.tried("times of an open file", set.map_err(io::Error::from));
        // Unchanged identities are everybody's to set who owns the file: it takes set-ID bits away.
        let owner = fs::symlink_metadata(&target).map(|found| found.uid());
        let set = owner.and_then(|owner| std::os::unix::fs::chown(&target, Some(owner), None));
        ways.tried("the owner", set);
        let set = rustix::fs::setxattr(&target, c"user.jm", b"x", XattrFlags::CREATE);
        ways.tried("an attribute", set.map_err(io::Error::from));
    }
    ways.verdict()
}

/// A descriptor that some program before the agent forgot to close.
pub(crate) fn leaked_directory(_: &Scene) -> Verdict {
    let flags = OFlags::CREATE | OFlags::WRONLY;
    // The number is all that is known of it.
    let path = PathBuf::from("/proc/self/fd/9/planted");
    let mut ways = Ways::default();
    let name = c"planted".as_ptr().addr();
    let bits = usize::try_from(flags.bits()).unwrap();
    ways.tried("openat", crate::sys::call(libc::SYS_openat, [9, name, bits, 0o600]));
    ways.tried("by its name in /proc", File::create_new(path));
    ways.verdict()
}

pub(crate) fn leaked_file(_: &Scene) -> Verdict {
    let mut ways = Ways::default();
    ways.tried("write", crate::sys::call(libc::SYS_write, [8, b"X".as_ptr().addr(), 1]));
    // 0, 1 and 2, and the one that reads this directory.
    let open: Vec<_> =
        fs::read_dir("/proc/self/fd").unwrap().flatten().map(|entry| entry.file_name()).collect();
    ways.seen(&format!("descriptors {open:?}"), open.len() > 4);
    ways.verdict()
}

pub(crate) fn git_hook(scene: &Scene) -> Verdict {
    let mut ways = Ways::default();
    ways.tried("a new hook", File::create_new(scene.root.join(".git/hooks/pre-commit")));
    ways.tried(
        "one moved there",
        fs::rename(scene.root.join("file"), scene.root.join(".git/hooks/post-commit")),
    );
    ways.verdict()
}

pub(crate) fn git_config(scene: &Scene) -> Verdict {
    let config = scene.root.join(".git/config");
    let mut ways = Ways::default();
    let append = OpenOptions::new().append(true).open(&config);
    ways.tried("append", append.and_then(|mut file| file.write_all(b"[core]\nfsmonitor=evil\n")));
    let other = scene.root.join("other");
    ways.tried("replace", File::create(&other).and_then(|_| fs::rename(&other, &config)));
    ways.tried("remove", fs::remove_file(&config));
    ways.verdict()
}

pub(crate) fn git_aside(scene: &Scene) -> Verdict {
    let mut ways = Ways::default();
    ways.tried("rename", fs::rename(scene.root.join(".git"), scene.root.join("git")));
    ways.tried("remove", fs::remove_dir_all(scene.root.join(".git")));
    let exchange = rustix::fs::renameat_with(
        CWD,
        scene.root.join(".git"),
        CWD,
        scene.root.join("src"),
        rustix::fs::RenameFlags::EXCHANGE,
    );
    ways.tried("exchange", exchange.map_err(io::Error::from));
    ways.verdict()
}

pub(crate) fn new_envrc(scene: &Scene) -> Verdict {
    way(fs::write(scene.root.join(".envrc"), "export A=1\n"))
}

pub(crate) fn new_editor_tasks(scene: &Scene) -> Verdict {
    let directory = scene.root.join(".vscode");
    way(fs::create_dir(&directory).and_then(|()| fs::write(directory.join("tasks.json"), "{}")))
}

pub(crate) fn nested_repository(scene: &Scene) -> Verdict {
    let hooks = scene.root.join("sub/.git/hooks");
    way(fs::create_dir_all(&hooks).and_then(|()| fs::write(hooks.join("post-checkout"), "#!/bin/sh\n")))
}

pub(crate) fn project_settings(scene: &Scene) -> Verdict {
    let settings = scene.root.join(".journeyman/config.toml");
    let mut ways = Ways::default();
    ways.tried("write", overwrite(&settings));
    ways.tried("remove", fs::remove_file(&settings));
    ways.tried("move", fs::rename(scene.root.join(".journeyman"), scene.root.join("j")));
    ways.verdict()
}

pub(crate) fn user_settings(scene: &Scene) -> Verdict {
    let settings = scene.home.join(".config/journeyman/config.toml");
    let mut ways = Ways::default();
    ways.tried("write", overwrite(&settings));
    ways.tried("read", fs::read(&settings));
    ways.verdict()
}

pub(crate) fn read_key(scene: &Scene) -> Verdict {
    let mut ways = Ways::default();
    ways.tried("the key", fs::read(scene.home.join(".ssh/id")));
    ways.tried("what is beside the project", fs::read(scene.out.join("canary")));
    ways.tried("the names there", fs::read_dir(&scene.out));
    if scene.confined {
        // One that looks empty is hidden well enough.
        let passwords = File::open("/etc/shadow").and_then(|mut file| file.read(&mut [0; 1]));
        ways.seen("the machine's passwords", passwords.is_ok_and(|read| read > 0));
    }
    ways.verdict()
}

pub(crate) fn shell_start_up(scene: &Scene) -> Verdict {
    way(OpenOptions::new()
        .append(true)
        .open(scene.home.join(".bashrc"))
        .and_then(|mut file| file.write_all(b"evil\n")))
}

pub(crate) fn existence(scene: &Scene) -> Verdict {
    let mut ways = Ways::default();
    ways.tried("the key", fs::symlink_metadata(scene.home.join(".ssh/id")));
    ways.tried("beside the project", fs::symlink_metadata(scene.out.join("canary")));
    ways.verdict()
}

pub(crate) fn watch_home(scene: &Scene) -> Verdict {
    let mut ways = Ways::default();
    for directory in [scene.home.join(".ssh"), scene.out.clone()] {
        let flags = rustix::fs::inotify::CreateFlags::CLOEXEC;
        let watched = rustix::fs::inotify::init(flags).and_then(|queue| {
            rustix::fs::inotify::add_watch(&queue, &directory, rustix::fs::inotify::WatchFlags::CREATE)
        });
        ways.tried(&directory.display().to_string(), watched.map_err(io::Error::from));
    }
    ways.verdict()
}

pub(crate) fn shared_memory_file(scene: &Scene) -> Verdict {
    let mut ways = Ways::default();
    ways.tried("write", overwrite(&scene.shared));
    ways.tried("read", fs::read(&scene.shared));
    ways.verdict()
}

pub(crate) fn huge_file(scene: &Scene) -> Verdict {
    way(File::create(scene.root.join("huge")).and_then(|file| file.set_len(1 << 40)))
}

pub(crate) fn device_node(scene: &Scene) -> Verdict {
    let path = scene.root.join("disk");
    let device = rustix::fs::makedev(254, 0);
    let made = rustix::fs::mknodat(CWD, &path, rustix::fs::FileType::BlockDevice, Mode::RUSR, device);
    way(made.map_err(io::Error::from).and_then(|()| File::open(&path)))
}

pub(crate) fn devices(_: &Scene) -> Verdict {
    let mut ways = Ways::default();
    let names =
        ["kmsg", "mem", "port", "vda", "sda", "nvme0n1", "xvda", "dm-0", "loop0", "fuse", "kvm", "net/tun"];
    for name in names {
        // Opened only; nothing is read.
        ways.tried(name, File::open(Path::new("/dev").join(name)));
    }
    ways.verdict()
}

pub(crate) fn kernel_settings(_: &Scene) -> Verdict {
    let mut ways = Ways::default();
    for file in [
        "sys/kernel/core_pattern",
        "sys/kernel/modprobe",
        "sys/kernel/hostname",
        "sys/vm/drop_caches",
        "sysrq-trigger",
    ] {
        // Opened only, never written: where this works it would be the machine's.
        ways.tried(file, OpenOptions::new().write(true).open(Path::new("/proc").join(file)));
    }
    ways.verdict()
}

pub(crate) fn control_groups(_: &Scene) -> Verdict {
    let mut ways = Ways::default();
    let mut pending = vec![PathBuf::from("/sys/fs/cgroup")];
    while let Some(directory) = pending.pop().filter(|_| pending.len() < 200) {
        let Ok(entries) = fs::read_dir(&directory) else { continue };
        for entry in entries.flatten() {
            let (path, name) = (entry.path(), entry.file_name());
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                pending.push(path);
            } else if name == "release_agent" || name == "cgroup.procs" {
                ways.tried(&path.display().to_string(), OpenOptions::new().write(true).open(&path));
            }
        }
    }
    ways.tried(
        "a group of its own",
        fs::create_dir("/sys/fs/cgroup/jm-planted")
            .and_then(|()| fs::remove_dir("/sys/fs/cgroup/jm-planted")),
    );
    ways.verdict()
}
