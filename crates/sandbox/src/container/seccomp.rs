//! The profile of system calls for a container, as the JSON that Docker and Podman take.
//!
//! The profile allows by name, so that calls newer than this list stay closed. Calls with a row in
//! [`crate::syscalls`] have that row's rule. The service's library passes over names that it
//! doesn't know, which are denied then.

use serde_json::{Value, json};

use crate::syscalls::{
    CREATE_FLAGS, CallRule, FilteredTier, IP_PROTOCOLS, RESTRICTED_CALLS, SET_ID_BITS, TERMINAL_INPUT_IOCTLS,
};

/// Calls that builds and tests need, of both architectures, by their names in the kernel's tables.
const ALLOWED_CALLS: &[&str] = &[
    "accept",
    "accept4",
    "access",
    "alarm",
    "arch_prctl",
    "bind",
    "brk",
    "cachestat",
    "capget",
    "capset",
    "chdir",
    "chown",
    "clock_getres",
    "clock_gettime",
    "clock_nanosleep",
    "close",
    "close_range",
    "connect",
    "copy_file_range",
    "dup",
    "dup2",
    "dup3",
    "epoll_create",
    "epoll_create1",
    "epoll_ctl",
    "epoll_ctl_old",
    "epoll_pwait",
    "epoll_pwait2",
    "epoll_wait",
    "epoll_wait_old",
    "eventfd",
    "eventfd2",
    "execve",
    "execveat",
    "exit",
    "exit_group",
    "faccessat",
    "faccessat2",
    "fadvise64",
    "fallocate",
    "fchdir",
    "fchown",
    "fchownat",
    "fcntl",
    "fdatasync",
    "fgetxattr",
    "flistxattr",
    "flock",
    "fork",
    "fremovexattr",
    "fsetxattr",
    "fstat",
    "fstatfs",
    "fsync",
    "ftruncate",
    "futex",
    "futex_requeue",
    "futex_wait",
    "futex_waitv",
    "futex_wake",
    "futimesat",
    "get_robust_list",
    "get_thread_area",
    "getcpu",
    "getcwd",
    "getdents",
    "getdents64",
    "getegid",
    "geteuid",
    "getgid",
    "getgroups",
    "getitimer",
    "getpeername",
    "getpgid",
    "getpgrp",
    "getpid",
    "getppid",
    "getpriority",
    "getrandom",
    "getresgid",
    "getresuid",
    "getrlimit",
    "getrusage",
    "getsid",
    "getsockname",
    "getsockopt",
    "gettid",
    "gettimeofday",
    "getuid",
    "getxattr",
    "inotify_add_watch",
    "inotify_init",
    "inotify_init1",
    "inotify_rm_watch",
    "io_cancel",
    "io_destroy",
    "io_getevents",
    "io_pgetevents",
    "io_setup",
    "io_submit",
    "ioprio_get",
    "ioprio_set",
    "kill",
    "landlock_add_rule",
    "landlock_create_ruleset",
    "landlock_restrict_self",
    "lchown",
    "lgetxattr",
    "link",
    "linkat",
    "listen",
    "listxattr",
    "llistxattr",
    "lremovexattr",
    "lseek",
    "lsetxattr",
    "lstat",
    "madvise",
    "map_shadow_stack",
    "membarrier",
    "memfd_create",
    "memfd_secret",
    "mincore",
    "mkdir",
    "mkdirat",
    "mlock",
    "mlock2",
    "mlockall",
    "mmap",
    "mprotect",
    "mq_getsetattr",
    "mq_notify",
    "mq_open",
    "mq_timedreceive",
    "mq_timedsend",
    "mq_unlink",
    "mremap",
    "mseal",
    "msgctl",
    "msgget",
    "msgrcv",
    "msgsnd",
    "msync",
    "munlock",
    "munlockall",
    "munmap",
    "nanosleep",
    "newfstatat",
    "pause",
    "pidfd_open",
    "pidfd_send_signal",
    "pipe",
    "pipe2",
    "pkey_alloc",
    "pkey_free",
    "pkey_mprotect",
    "poll",
    "ppoll",
    "prctl",
    "pread64",
    "preadv",
    "preadv2",
    "process_madvise",
    "process_mrelease",
    "process_vm_readv",
    "process_vm_writev",
    "pselect6",
    "ptrace",
    "pwrite64",
    "pwritev",
    "pwritev2",
    "read",
    "readahead",
    "readlink",
    "readlinkat",
    "readv",
    "recvfrom",
    "recvmmsg",
    "recvmsg",
    "remap_file_pages",
    "removexattr",
    "rename",
    "renameat",
    "renameat2",
    "restart_syscall",
    "riscv_flush_icache",
    "rmdir",
    "rseq",
    "rt_sigaction",
    "rt_sigpending",
    "rt_sigprocmask",
    "rt_sigqueueinfo",
    "rt_sigreturn",
    "rt_sigsuspend",
    "rt_sigtimedwait",
    "rt_tgsigqueueinfo",
    "sched_get_priority_max",
    "sched_get_priority_min",
    "sched_getaffinity",
    "sched_getattr",
    "sched_getparam",
    "sched_getscheduler",
    "sched_rr_get_interval",
    "sched_setaffinity",
    "sched_setattr",
    "sched_setparam",
    "sched_setscheduler",
    "sched_yield",
    "seccomp",
    "select",
    "semctl",
    "semget",
    "semop",
    "semtimedop",
    "sendfile",
    "sendmmsg",
    "sendmsg",
    "sendto",
    "set_robust_list",
    "set_thread_area",
    "set_tid_address",
    "setfsgid",
    "setfsuid",
    "setgid",
    "setgroups",
    "setitimer",
    "setpgid",
    "setpriority",
    "setregid",
    "setresgid",
    "setresuid",
    "setreuid",
    "setrlimit",
    "setsid",
    "setsockopt",
    "setuid",
    "setxattr",
    "shmat",
    "shmctl",
    "shmdt",
    "shmget",
    "shutdown",
    "sigaltstack",
    "signalfd",
    "signalfd4",
    "splice",
    "stat",
    "statfs",
    "statx",
    "symlink",
    "symlinkat",
    "sync",
    "sync_file_range",
    "syncfs",
    "sysinfo",
    "tee",
    "tgkill",
    "time",
    "timer_create",
    "timer_delete",
    "timer_getoverrun",
    "timer_gettime",
    "timer_settime",
    "timerfd_create",
    "timerfd_gettime",
    "timerfd_settime",
    "times",
    "tkill",
    "truncate",
    "umask",
    "uname",
    "unlink",
    "unlinkat",
    "utime",
    "utimensat",
    "utimes",
    "vfork",
    "vmsplice",
    "wait4",
    "waitid",
    "write",
    "writev",
];

/// The low 32 bits of an argument: those above may be anything where the kernel doesn't read them.
const LOW_BITS: u64 = 0xffff_ffff;

/// Execution domains: Linux's own, and without a random layout, which debuggers and sanitizers ask
/// for; the last asks for the present one.
const ALLOWED_PERSONALITIES: [u32; 3] = [0, 0x0004_0000, u32::MAX];

/// Returns the profile as text.
pub(super) fn seccomp_profile() -> String {
    let mut calls = vec![json!({ "names": ALLOWED_CALLS, "action": "SCMP_ACT_ALLOW" })];
    let allow =
        |name: &str, tests: &[Value]| json!({ "names": [name], "action": "SCMP_ACT_ALLOW", "args": tests });
    for call in RESTRICTED_CALLS.iter().filter(|call| call.applies_to(FilteredTier::Container)) {
        match call.rule {
            // The default.
            CallRule::Fail(libc::EPERM) => {}
            CallRule::Fail(error) => {
                calls.push(json!({ "names": [call.name], "action": "SCMP_ACT_ERRNO", "errnoRet": error }));
            }
            rule => calls.extend(argument_alternatives(rule).iter().map(|tests| allow(call.name, tests))),
        }
    }
    calls.extend(ALLOWED_PERSONALITIES.map(|domain| allow("personality", &[match_equal(0, domain)])));
    json!({
        "defaultAction": "SCMP_ACT_ERRNO",
        "defaultErrnoRet": libc::EPERM,
        "architectures": [ARCHITECTURE],
        "syscalls": calls,
    })
    .to_string()
}

/// Foreign ABIs (32-bit programs, x32) would need lists of their own; a call of theirs ends the
/// program.
const ARCHITECTURE: &str =
    if cfg!(target_arch = "aarch64") { "SCMP_ARCH_AARCH64" } else { "SCMP_ARCH_X86_64" };

/// Returns the lists of tests with which the rule lets a call pass: all tests of one list must
/// hold.
fn argument_alternatives(rule: CallRule) -> Vec<Vec<Value>> {
    match rule {
        CallRule::Only { argument, value, .. } => vec![vec![match_equal(argument, value)]],
        CallRule::Without { argument, bits } => vec![vec![match_masked(argument, bits.into(), 0)]],
        CallRule::Mode { argument } => vec![vec![match_masked(argument, SET_ID_BITS.into(), 0)]],
        CallRule::Creates { flags, mode } => {
            vec![
                vec![match_masked(flags, CREATE_FLAGS.into(), 0)],
                vec![match_masked(mode, SET_ID_BITS.into(), 0)],
            ]
        }
        CallRule::Ioctl => match_all_but(TERMINAL_INPUT_IOCTLS).into_iter().map(|test| vec![test]).collect(),
        CallRule::Socket => {
            let [unix, netlink, ip4, ip6] = [libc::AF_UNIX, libc::AF_NETLINK, libc::AF_INET, libc::AF_INET6]
                .map(|family| match_equal(0, family.cast_unsigned()));
            // Of netlink only the routes, which `getifaddrs` reads.
            let routes = vec![netlink, match_equal(2, libc::NETLINK_ROUTE.cast_unsigned())];
            let of_ip =
                |family: &Value| IP_PROTOCOLS.map(|protocol| vec![family.clone(), match_equal(2, protocol)]);
            [vec![unix], routes].into_iter().chain(of_ip(&ip4)).chain(of_ip(&ip6)).collect()
        }
        // No row for containers has these.
        CallRule::Fail(_) | CallRule::Never { .. } | CallRule::Priority { .. } | CallRule::Metadata => {
            Vec::new()
        }
    }
}

/// Returns tests of which at least one passes for any 32 bits but these two values: the library
/// can't test half an argument for inequality.
fn match_all_but(values: [u32; 2]) -> Vec<Value> {
    let [first, second] = values.map(u64::from);
    let differing = first ^ second;
    let common = (0..32).map(|bit| 1_u64 << bit).filter(|bit| differing & bit == 0);
    let mut tests: Vec<Value> = common.map(|bit| match_masked(1, bit, !first & bit)).collect();
    // Every pattern of the bits in which the two differ, but for their own.
    let mut pattern = differing;
    loop {
        if pattern != first & differing && pattern != second & differing {
            tests.push(match_masked(1, differing, pattern));
        }
        if pattern == 0 {
            return tests;
        }
        pattern = (pattern - 1) & differing;
    }
}

/// Returns a test that the argument's low 32 bits are this value.
fn match_equal(index: u32, value: u32) -> Value {
    match_masked(index, LOW_BITS, value.into())
}

/// Returns a test that the argument's bits in this mask are these.
fn match_masked(index: u32, mask: u64, bits: u64) -> Value {
    json!({ "index": index, "value": mask, "valueTwo": bits, "op": "SCMP_CMP_MASKED_EQ" })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Judges a call as the library does: any entry of its name whose arguments all match.
    fn allows(name: &str, arguments: &[u64]) -> bool {
        let profile: Value = serde_json::from_str(&seccomp_profile()).unwrap();
        assert_eq!(profile["defaultAction"], "SCMP_ACT_ERRNO");
        profile["syscalls"].as_array().unwrap().iter().any(|entry| {
            let named = entry["names"].as_array().unwrap().iter().any(|one| one == name);
            let empty = Vec::new();
            let tests = entry.get("args").and_then(Value::as_array).unwrap_or(&empty);
            let passes = |test: &Value| {
                let number = |field: &str| test[field].as_u64().unwrap();
                let given = arguments.get(usize::try_from(number("index")).unwrap()).copied().unwrap_or(0);
                given & number("value") == number("valueTwo")
            };
            named && entry["action"] == "SCMP_ACT_ALLOW" && tests.iter().all(passes)
        })
    }

    #[test]
    fn arguments_are_judged_as_in_namespaces() {
        let high = 0xdead_0000_0000_0000;
        let cases: &[(&str, &[u64], bool)] = &[
            ("read", &[], true),
            ("mount", &[], false),
            ("keyctl", &[], false),
            ("bpf", &[], false),
            ("userfaultfd", &[], false),
            ("perf_event_open", &[], false),
            ("io_uring_setup", &[], false),
            ("clone3", &[], false),
            ("setns", &[], false),
            ("chroot", &[], false),
            ("process_vm_readv", &[], true),
            ("clone", &[0x0001_1200 | 17], true),
            ("clone", &[0x1000_0000 | 17], false),
            ("clone", &[0x0002_0000 | 17], false),
            ("unshare", &[0x80], false),
            ("unshare", &[0x400], true),
            ("unshare", &[0x4000_0000], false),
            ("prlimit64", &[0, 7, 1], true),
            ("prlimit64", &[1, 7, 1], false),
            ("prlimit64", &[high | 1, 7, 1], false),
            ("socket", &[1, 1, 0], true),
            ("socket", &[2, 1, 6], true),
            ("socket", &[10, 2, 17], true),
            ("socket", &[2, 1, 262], false),
            ("socket", &[2, 3, 255], false),
            ("socket", &[10, 1, 132], false),
            ("socket", &[16, 3, 0], true),
            ("socket", &[16, 3, 12], false),
            ("socket", &[17, 3, 0], false),
            ("socket", &[40, 1, 0], false),
            ("socket", &[high | 40, 1, 0], false),
            ("socket", &[38, 5, 0], false),
            ("socketpair", &[1, 1, 0], true),
            ("socketpair", &[16, 1, 0], false),
            ("ioctl", &[0, 0x5412], false),
            ("ioctl", &[0, 0x541c], false),
            ("ioctl", &[0, high | 0x5412], false),
            ("ioctl", &[0, 0x5401], true),
            ("ioctl", &[0, 0x5413], true),
            ("ioctl", &[0, 0x541e], true),
            ("ioctl", &[0, 0x8000_5412], true),
            ("chmod", &[0, 0o755], true),
            ("chmod", &[0, 0o1777], true),
            ("chmod", &[0, 0o4755], false),
            ("fchmodat", &[3, 0, 0o2755], false),
            ("fchmodat2", &[3, 0, 0o644], false),
            ("mknodat", &[3, 0, 0o104_755], false),
            ("openat", &[3, 0, 0, 0o4755], true),
            ("openat", &[3, 0, 0o101, 0o4755], false),
            ("openat", &[3, 0, 0o101, 0o644], true),
            ("open", &[0, 0o101, 0o2755], false),
            ("creat", &[0, 0o4755], false),
            ("personality", &[0xffff_ffff], true),
            ("personality", &[8], false),
        ];
        for (name, arguments, expected) in cases {
            assert_eq!(allows(name, arguments), *expected, "{name} {arguments:x?}");
        }
    }

    #[test]
    fn every_ioctl_but_two_passes() {
        let tests = match_all_but(TERMINAL_INPUT_IOCTLS);
        for value in (0..0x1_0000_u64).chain([u64::from(u32::MAX), 0x8004_5430]) {
            let passes = tests
                .iter()
                .any(|test| value & test["value"].as_u64().unwrap() == test["valueTwo"].as_u64().unwrap());
            assert_eq!(passes, !TERMINAL_INPUT_IOCTLS.map(u64::from).contains(&value), "{value:x}");
        }
    }

    #[test]
    fn calls_that_the_table_denies_are_in_no_list_of_allowed_ones() {
        let mut names: Vec<&str> = ALLOWED_CALLS.to_vec();
        names.sort_unstable();
        let before = names.len();
        names.dedup();
        assert_eq!(before, names.len());
        for call in RESTRICTED_CALLS.iter().filter(|call| call.applies_to(FilteredTier::Container)) {
            assert!(!ALLOWED_CALLS.contains(&call.name), "{}", call.name);
            assert_eq!(
                matches!(call.rule, CallRule::Fail(_)),
                argument_alternatives(call.rule).is_empty(),
                "{}",
                call.name
            );
        }
    }
}
