//! The table of system calls that the sandbox restricts, which every system-call filter is made
//! from.
//!
//! `namespaces::filter` turns the rows into the kernel's packet-filter code, for commands with
//! namespaces and for those confined by Landlock alone; `container::seccomp` turns them into the
//! profile that a container service reads. A call without a row passes in the first two. In
//! containers only what that profile lists passes.

use std::ffi::{c_int, c_long};

/// A system call, and its rule in some tiers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call {
    /// The call's name in the kernel's table.
    #[cfg_attr(not(feature = "containers"), allow(dead_code))]
    pub(crate) name: &'static str,
    /// The call's number on this architecture.
    pub(crate) number: c_long,
    pub(crate) rule: CallRule,
    tiers: u8,
}

impl Call {
    /// Returns true if the rule holds in the tier.
    pub(crate) const fn applies_to(&self, tier: FilteredTier) -> bool {
        self.tiers & tier as u8 != 0
    }
}

/// A tier that has a system-call filter. Each is a bit of a row's set of tiers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum FilteredTier {
    /// Namespaces, made by this program or by bubblewrap.
    Namespaces = 1,
    /// Landlock without namespaces.
    Landlock = 2,
    /// A container.
    Container = 4,
}

const NAMESPACES_BIT: u8 = FilteredTier::Namespaces as u8;
const LANDLOCK_BIT: u8 = FilteredTier::Landlock as u8;
const CONTAINER_BIT: u8 = FilteredTier::Container as u8;
/// The tiers whose filter this program installs itself.
const INSTALLED_TIERS: u8 = NAMESPACES_BIT | LANDLOCK_BIT;
const ALL_TIERS: u8 = INSTALLED_TIERS | CONTAINER_BIT;

/// The condition under which a call passes. Arguments are counted from 0 and compared by their low
/// 32 bits, which are all that the kernel reads of the arguments that are judged here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallRule {
    /// The call fails with this error.
    Fail(c_int),
    /// The call passes with this value of the argument, and fails with the error otherwise.
    Only { argument: u32, value: u32, error: c_int },
    /// The call fails with the error if the argument has one of these values, and passes otherwise.
    Never { argument: u32, values: &'static [u32], error: c_int },
    /// The call fails with `EPERM` if the argument has one of these bits, and passes otherwise.
    Without { argument: u32, bits: u32 },
    /// The argument `mode` may not have a set-ID bit where the argument `flags` says that a file is
    /// created.
    Creates { flags: u32, mode: u32 },
    /// Argument 0 must be `single`, a single process or thread, and argument 1 names a process that
    /// may be changed.
    Priority { single: u32 },
    /// A socket's family and protocol must be among those that the tier allows.
    Socket,
    /// `ioctl`: neither typing into a terminal nor, where namespaces are missing, changing a file's
    /// attributes.
    Ioctl,
    /// The call changes metadata of a file. It passes, or the supervisor makes the change where
    /// there is one that does.
    Metadata,
    /// Like [`Metadata`](Self::Metadata), for a mode in this argument. Set-ID bits fail with
    /// `EPERM`.
    Mode { argument: u32 },
}

/// Set-user-ID and set-group-ID: a program with one of them, left in the project, would run as the
/// user for everybody on the machine.
pub(crate) const SET_ID_BITS: u32 = libc::S_ISUID | libc::S_ISGID;

/// Flags of `open` with which a file is created: `O_CREAT`, and `O_TMPFILE` without `O_DIRECTORY`.
/// Without them the mode is whatever was in the register.
pub(crate) const CREATE_FLAGS: u32 = libc::O_CREAT.cast_unsigned() | 0o20_000_000;

/// Protocols of IPv4 and IPv6 sockets: the default, TCP, UDP, ICMP, ICMPv6. SCTP, raw and multipath
/// sockets and the rest are kernel code that builds and tests don't need.
pub(crate) const IP_PROTOCOLS: [u32; 5] = [0, 6, 17, 1, 58];

/// `ioctl`s that type into a terminal: `TIOCSTI`, and `TIOCLINUX`, the Linux console's commands.
pub(crate) const TERMINAL_INPUT_IOCTLS: [u32; 2] = [0x5412, 0x541c];

/// `ioctl`s that change a file's attributes though it is only open for reading: `FS_IOC_SETFLAGS`,
/// `FS_IOC_FSSETXATTR`, `FS_IOC_SETVERSION`, and `FS_IOC_ENABLE_VERITY`, after which it can never
/// be written again.
pub(crate) const ATTRIBUTE_IOCTLS: [u32; 4] = [0x4008_6602, 0x401c_5820, 0x4008_7602, 0x4080_6685];

/// New namespaces by `unshare`: mount, cgroup, host name, IPC, user, process, network, time.
const NAMESPACE_FLAGS: u32 =
    0x0002_0000 | 0x0200_0000 | 0x0400_0000 | 0x0800_0000 | 0x1000_0000 | 0x2000_0000 | 0x4000_0000 | 0x80;
/// New namespaces by `clone`, where the lowest byte is the signal that the parent gets.
const CLONE_NAMESPACE_FLAGS: u32 = NAMESPACE_FLAGS & !libc::CSIGNAL.cast_unsigned();

const EPERM: CallRule = CallRule::Fail(libc::EPERM);
/// Programs fall back without a message where a call is absent.
const ENOSYS: CallRule = CallRule::Fail(libc::ENOSYS);
/// A process's own, named by 0.
const OWN_PROCESS: CallRule = CallRule::Only { argument: 0, value: 0, error: libc::EPERM };
/// Any process but the first of its namespace, which supervises the command.
const ANY_BUT_INIT: CallRule = CallRule::Never { argument: 0, values: &[1], error: libc::EPERM };

/// A row whose name is the constant's without `SYS_`.
macro_rules! call {
    ($constant:ident, $tiers:expr, $rule:expr) => {
        call!(stringify!($constant).split_at("SYS_".len()).1, libc::$constant, $tiers, $rule)
    };
    ($name:expr, $number:expr, $tiers:expr, $rule:expr) => {
        Call { name: $name, number: $number, rule: $rule, tiers: $tiers }
    };
}

/// Every restricted call. Numbers written as literals are those of calls newer than the `libc`
/// crate's constants; they are the same on every architecture.
pub(crate) const RESTRICTED_CALLS: &[Call] = &[
    // Keys of the kernel's key rings.
    call!(SYS_keyctl, ALL_TIERS, EPERM),
    call!(SYS_add_key, ALL_TIERS, EPERM),
    call!(SYS_request_key, ALL_TIERS, EPERM),
    // Parts of the kernel that break-outs have started from.
    call!(SYS_bpf, ALL_TIERS, EPERM),
    call!(SYS_perf_event_open, ALL_TIERS, EPERM),
    call!(SYS_userfaultfd, ALL_TIERS, EPERM),
    call!(SYS_io_uring_setup, ALL_TIERS, ENOSYS),
    call!(SYS_io_uring_enter, ALL_TIERS, ENOSYS),
    call!(SYS_io_uring_register, ALL_TIERS, ENOSYS),
    // Mounts and roots.
    call!(SYS_mount, ALL_TIERS, EPERM),
    call!(SYS_umount2, ALL_TIERS, EPERM),
    call!(SYS_pivot_root, ALL_TIERS, EPERM),
    call!(SYS_open_tree, ALL_TIERS, EPERM),
    call!(SYS_move_mount, ALL_TIERS, EPERM),
    call!(SYS_fsopen, ALL_TIERS, EPERM),
    call!(SYS_fsconfig, ALL_TIERS, EPERM),
    call!(SYS_fsmount, ALL_TIERS, EPERM),
    call!(SYS_fspick, ALL_TIERS, EPERM),
    call!(SYS_mount_setattr, ALL_TIERS, EPERM),
    call!("statmount", 457, ALL_TIERS, EPERM),
    call!("listmount", 458, ALL_TIERS, EPERM),
    call!("open_tree_attr", 467, ALL_TIERS, EPERM),
    call!(SYS_chroot, ALL_TIERS, EPERM),
    // Namespaces. `clone3` hides its flags behind a pointer.
    call!(SYS_setns, ALL_TIERS, EPERM),
    call!(SYS_clone, ALL_TIERS, CallRule::Without { argument: 0, bits: CLONE_NAMESPACE_FLAGS }),
    call!(SYS_clone3, ALL_TIERS, ENOSYS),
    call!(SYS_unshare, ALL_TIERS, CallRule::Without { argument: 0, bits: NAMESPACE_FLAGS }),
    // Other processes. Libraries name their own by 0.
    call!(SYS_pidfd_getfd, ALL_TIERS, EPERM),
    call!(SYS_kcmp, ALL_TIERS, EPERM),
    call!(SYS_prlimit64, ALL_TIERS, OWN_PROCESS),
    // Neither namespaces nor Landlock's scopes keep a command from changing the schedule of its
    // supervisor.
    call!(SYS_sched_setaffinity, NAMESPACES_BIT, ANY_BUT_INIT),
    call!(SYS_sched_setscheduler, NAMESPACES_BIT, ANY_BUT_INIT),
    call!(SYS_sched_setparam, NAMESPACES_BIT, ANY_BUT_INIT),
    call!(SYS_sched_setattr, NAMESPACES_BIT, ANY_BUT_INIT),
    call!(SYS_sched_setaffinity, LANDLOCK_BIT, OWN_PROCESS),
    call!(SYS_sched_setscheduler, LANDLOCK_BIT, OWN_PROCESS),
    call!(SYS_sched_setparam, LANDLOCK_BIT, OWN_PROCESS),
    call!(SYS_sched_setattr, LANDLOCK_BIT, OWN_PROCESS),
    call!(SYS_setpriority, INSTALLED_TIERS, CallRule::Priority { single: 0 }),
    call!(SYS_ioprio_set, INSTALLED_TIERS, CallRule::Priority { single: 1 }),
    // Processes of all users can be seen: no signal is meant for all of them.
    call!(SYS_kill, LANDLOCK_BIT, CallRule::Never { argument: 0, values: &[u32::MAX], error: libc::EPERM }),
    // The machine itself.
    call!(SYS_kexec_load, ALL_TIERS, EPERM),
    call!(SYS_kexec_file_load, ALL_TIERS, EPERM),
    call!(SYS_init_module, ALL_TIERS, EPERM),
    call!(SYS_finit_module, ALL_TIERS, EPERM),
    call!(SYS_delete_module, ALL_TIERS, EPERM),
    call!(SYS_swapon, ALL_TIERS, EPERM),
    call!(SYS_swapoff, ALL_TIERS, EPERM),
    call!(SYS_reboot, ALL_TIERS, EPERM),
    call!(SYS_quotactl, ALL_TIERS, EPERM),
    call!("quotactl_fd", 443, ALL_TIERS, EPERM),
    call!(SYS_acct, ALL_TIERS, EPERM),
    call!(SYS_syslog, ALL_TIERS, EPERM),
    call!(SYS_clock_settime, ALL_TIERS, EPERM),
    call!(SYS_clock_adjtime, ALL_TIERS, EPERM),
    call!(SYS_adjtimex, ALL_TIERS, EPERM),
    call!(SYS_settimeofday, ALL_TIERS, EPERM),
    call!(SYS_sethostname, ALL_TIERS, EPERM),
    call!(SYS_setdomainname, ALL_TIERS, EPERM),
    call!(SYS_vhangup, ALL_TIERS, EPERM),
    call!(SYS_lookup_dcookie, ALL_TIERS, EPERM),
    call!(SYS_nfsservctl, ALL_TIERS, EPERM),
    #[cfg(target_arch = "x86_64")]
    call!(SYS_modify_ldt, ALL_TIERS, EPERM),
    #[cfg(target_arch = "x86_64")]
    call!(SYS_iopl, ALL_TIERS, EPERM),
    #[cfg(target_arch = "x86_64")]
    call!(SYS_ioperm, ALL_TIERS, EPERM),
    // Files. `openat2` hides its mode behind a pointer.
    call!(SYS_name_to_handle_at, ALL_TIERS, EPERM),
    call!(SYS_open_by_handle_at, ALL_TIERS, EPERM),
    call!(SYS_fanotify_init, ALL_TIERS, EPERM),
    #[cfg(target_arch = "x86_64")]
    call!(SYS_open, ALL_TIERS, CallRule::Creates { flags: 1, mode: 2 }),
    call!(SYS_openat, ALL_TIERS, CallRule::Creates { flags: 2, mode: 3 }),
    call!(SYS_openat2, ALL_TIERS, ENOSYS),
    #[cfg(target_arch = "x86_64")]
    call!(SYS_creat, ALL_TIERS, CallRule::Without { argument: 1, bits: SET_ID_BITS }),
    #[cfg(target_arch = "x86_64")]
    call!(SYS_mknod, ALL_TIERS, CallRule::Without { argument: 1, bits: SET_ID_BITS }),
    call!(SYS_mknodat, ALL_TIERS, CallRule::Without { argument: 2, bits: SET_ID_BITS }),
    #[cfg(target_arch = "x86_64")]
    call!(SYS_chmod, ALL_TIERS, CallRule::Mode { argument: 1 }),
    call!(SYS_fchmod, ALL_TIERS, CallRule::Mode { argument: 1 }),
    call!(SYS_fchmodat, ALL_TIERS, CallRule::Mode { argument: 2 }),
    call!("fchmodat2", FCHMODAT2, INSTALLED_TIERS, CallRule::Mode { argument: 2 }),
    // Not all libraries of container services have this call yet.
    call!("fchmodat2", FCHMODAT2, CONTAINER_BIT, ENOSYS),
    #[cfg(target_arch = "x86_64")]
    call!(SYS_chown, LANDLOCK_BIT, CallRule::Metadata),
    #[cfg(target_arch = "x86_64")]
    call!(SYS_lchown, LANDLOCK_BIT, CallRule::Metadata),
    call!(SYS_fchown, LANDLOCK_BIT, CallRule::Metadata),
    call!(SYS_fchownat, LANDLOCK_BIT, CallRule::Metadata),
    #[cfg(target_arch = "x86_64")]
    call!(SYS_utime, LANDLOCK_BIT, CallRule::Metadata),
    #[cfg(target_arch = "x86_64")]
    call!(SYS_utimes, LANDLOCK_BIT, CallRule::Metadata),
    #[cfg(target_arch = "x86_64")]
    call!(SYS_futimesat, LANDLOCK_BIT, CallRule::Metadata),
    call!(SYS_utimensat, LANDLOCK_BIT, CallRule::Metadata),
    // Landlock doesn't look at attributes. Programs take a file system without any as it is.
    call!(SYS_setxattr, LANDLOCK_BIT, CallRule::Fail(libc::ENOTSUP)),
    call!(SYS_lsetxattr, LANDLOCK_BIT, CallRule::Fail(libc::ENOTSUP)),
    call!(SYS_fsetxattr, LANDLOCK_BIT, CallRule::Fail(libc::ENOTSUP)),
    call!(SYS_removexattr, LANDLOCK_BIT, CallRule::Fail(libc::ENOTSUP)),
    call!(SYS_lremovexattr, LANDLOCK_BIT, CallRule::Fail(libc::ENOTSUP)),
    call!(SYS_fremovexattr, LANDLOCK_BIT, CallRule::Fail(libc::ENOTSUP)),
    call!("setxattrat", 463, LANDLOCK_BIT, CallRule::Fail(libc::ENOTSUP)),
    call!("removexattrat", 466, LANDLOCK_BIT, CallRule::Fail(libc::ENOTSUP)),
    call!("file_setattr", 469, LANDLOCK_BIT, CallRule::Fail(libc::ENOTSUP)),
    call!(SYS_ioctl, ALL_TIERS, CallRule::Ioctl),
    // Landlock lets a command watch directories that it may not read. Programs poll where there are
    // no watches.
    #[cfg(target_arch = "x86_64")]
    call!(SYS_inotify_init, LANDLOCK_BIT, ENOSYS),
    call!(SYS_inotify_init1, LANDLOCK_BIT, ENOSYS),
    call!(SYS_inotify_add_watch, LANDLOCK_BIT, ENOSYS),
    // Sockets, and memory, semaphores and queues that everybody shares where there is no namespace.
    call!(SYS_socket, ALL_TIERS, CallRule::Socket),
    call!(
        SYS_socketpair,
        ALL_TIERS,
        CallRule::Only { argument: 0, value: libc::AF_UNIX.cast_unsigned(), error: libc::EAFNOSUPPORT }
    ),
    call!(SYS_shmget, LANDLOCK_BIT, ENOSYS),
    call!(SYS_shmat, LANDLOCK_BIT, ENOSYS),
    call!(SYS_shmctl, LANDLOCK_BIT, ENOSYS),
    call!(SYS_semget, LANDLOCK_BIT, ENOSYS),
    call!(SYS_semctl, LANDLOCK_BIT, ENOSYS),
    call!(SYS_semop, LANDLOCK_BIT, ENOSYS),
    call!(SYS_semtimedop, LANDLOCK_BIT, ENOSYS),
    call!(SYS_msgget, LANDLOCK_BIT, ENOSYS),
    call!(SYS_msgctl, LANDLOCK_BIT, ENOSYS),
    call!(SYS_msgsnd, LANDLOCK_BIT, ENOSYS),
    call!(SYS_msgrcv, LANDLOCK_BIT, ENOSYS),
    call!(SYS_mq_open, LANDLOCK_BIT, ENOSYS),
    call!(SYS_mq_unlink, LANDLOCK_BIT, ENOSYS),
];

/// `fchmodat2` (Linux 6.6), the same number on every architecture.
pub(crate) const FCHMODAT2: c_long = 452;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_call_has_one_rule_in_a_tier() {
        for tier in [FilteredTier::Namespaces, FilteredTier::Landlock, FilteredTier::Container] {
            let mut rows: Vec<_> = RESTRICTED_CALLS.iter().filter(|call| call.applies_to(tier)).collect();
            rows.sort_by_key(|call| call.number);
            assert!(rows.windows(2).all(|pair| pair[0].number != pair[1].number), "{tier:?}");
            rows.sort_by_key(|call| call.name);
            assert!(rows.windows(2).all(|pair| pair[0].name != pair[1].name), "{tier:?}");
        }
        assert_eq!(RESTRICTED_CALLS[0].name, "keyctl");
    }
}
