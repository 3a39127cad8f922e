//! The system-call filter: a deny list in the kernel's packet-filter code.
//!
//! Namespaces and dropped capabilities already confine; this takes away parts of the kernel that builds and
//! tests don't need and that break-outs have started from. A deny list, because build tools vary too much
//! for an allow list.

/// No further namespaces by `clone` or `unshare`: mount, cgroup, host name, IPC, user, process, network, time.
const NAMESPACE_FLAGS: u32 =
    0x0002_0000 | 0x0200_0000 | 0x0400_0000 | 0x0800_0000 | 0x1000_0000 | 0x2000_0000 | 0x4000_0000 | 0x80;

#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: Option<u32> = Some(0xc000_003e);
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: Option<u32> = Some(0xc000_00b7);
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const ARCHITECTURE: Option<u32> = None;

/// Calls from this number on belong to the x32 ABI, which would slip past comparisons by number.
const X32: u32 = 0x4000_0000;

const DENIED: &[libc::c_long] = &[
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    OPEN_TREE_ATTR,
    STATMOUNT,
    LISTMOUNT,
    libc::SYS_setns,
    libc::SYS_chroot,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_reboot,
    libc::SYS_quotactl,
    QUOTACTL_FD,
    libc::SYS_acct,
    libc::SYS_syslog,
    libc::SYS_name_to_handle_at,
    libc::SYS_open_by_handle_at,
    libc::SYS_fanotify_init,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_settimeofday,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_vhangup,
    libc::SYS_lookup_dcookie,
    libc::SYS_nfsservctl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_modify_ldt,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
];

// Linux 5.14, 6.8 and 6.15, the same numbers on every architecture.
const QUOTACTL_FD: libc::c_long = 443;
const STATMOUNT: libc::c_long = 457;
const LISTMOUNT: libc::c_long = 458;
const OPEN_TREE_ATTR: libc::c_long = 467;

/// Absent rather than forbidden: programs fall back without a word. `clone3` hides its flags behind a pointer,
/// and `openat2` its mode.
const MISSING: &[libc::c_long] = &[
    libc::SYS_clone3,
    libc::SYS_openat2,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
];

/// Set-user-ID and set-group-ID: a program with one of them, left in the project, would run as the user for
/// everybody on the machine.
const SET_ID: u32 = libc::S_ISUID | libc::S_ISGID;

/// `fchmodat2` (Linux 6.6), the same number on every architecture.
const FCHMODAT2: libc::c_long = 452;

/// Calls that set a file's mode, and which argument it is.
const MODES: &[(libc::c_long, u32)] = &[
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_chmod, ARGUMENT_1),
    (libc::SYS_fchmod, ARGUMENT_1),
    (libc::SYS_fchmodat, ARGUMENT_2),
    (FCHMODAT2, ARGUMENT_2),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_creat, ARGUMENT_1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_mknod, ARGUMENT_1),
    (libc::SYS_mknodat, ARGUMENT_2),
];

// <linux/filter.h>: load a word, jump, return.
const LOAD: u16 = 0x20;
const ALWAYS: u16 = 0x05;
const EQUAL: u16 = 0x15;
const AT_LEAST: u16 = 0x35;
const ANY_BIT: u16 = 0x45;
const RETURN: u16 = 0x06;

// Offsets in `struct seccomp_data` of the low words, little-endian.
const NUMBER: u32 = 0;
const ARCH: u32 = 4;
const ARGUMENT_0: u32 = 16;
const ARGUMENT_1: u32 = 24;
const ARGUMENT_2: u32 = 32;
const ARGUMENT_3: u32 = 40;

// <asm-generic/ioctls.h>: type into a terminal, and Linux's console commands, which can do the same.
const TIOCSTI: u32 = 0x5412;
const TIOCLINUX: u32 = 0x541c;

const ALLOW: u32 = 0x7fff_0000;

/// `SECCOMP_RET_ERRNO`.
const fn fail(errno: libc::c_int) -> u32 {
    0x0005_0000 | errno.cast_unsigned()
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Instruction {
    code: u16,
    then: u8,
    otherwise: u8,
    value: u32,
}

#[derive(Clone, Default, PartialEq, Eq)]
struct Program(Vec<Instruction>);

impl Program {
    fn put(&mut self, code: u16, value: u32, then: u8, otherwise: u8) {
        self.0.push(Instruction { code, then, otherwise, value });
    }

    fn load(&mut self, offset: u32) {
        self.put(LOAD, offset, 0, 0);
    }

    fn finish(&mut self, action: u32) {
        self.put(RETURN, action, 0, 0);
    }

    /// If the loaded word passes the test, ends with `action`.
    fn finish_if(&mut self, test: u16, value: u32, action: u32) {
        self.put(test, value, 0, 1);
        self.finish(action);
    }

    fn bytes(&self) -> Vec<u8> {
        let encode = |instruction: &Instruction| {
            let ([a, b], [c, d, e, f]) = (instruction.code.to_ne_bytes(), instruction.value.to_ne_bytes());
            [a, b, instruction.then, instruction.otherwise, c, d, e, f]
        };
        self.0.iter().flat_map(encode).collect()
    }
}

/// Which sockets there may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sockets {
    /// Unix, IPv4 and IPv6, and of netlink the routes, for a command with process and mount namespaces.
    Namespaced,
    /// IPv4 and IPv6 with the routes, wherever they lead. No Unix sockets: without a mount namespace those of services can be reached.
    Internet,
    /// None but pairs.
    None,
}

/// Nothing keeps these apart where there is no namespace: memory, semaphores and queues are everybody's.
const SHARED: &[libc::c_long] = &[
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_semget,
    libc::SYS_semctl,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_msgget,
    libc::SYS_msgctl,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
];

/// Landlock lets a command watch directories that it may not read. Programs poll where there are no watches.
const WATCHES: &[libc::c_long] = &[
    #[cfg(target_arch = "x86_64")]
    libc::SYS_inotify_init,
    libc::SYS_inotify_init1,
    libc::SYS_inotify_add_watch,
];

/// Landlock doesn't look at these. Programs take a file system without attributes as it is.
const ATTRIBUTES: &[libc::c_long] = &[
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    SETXATTRAT,
    REMOVEXATTRAT,
    FILE_SETATTR,
];

// Linux 6.13 and 6.17, the same numbers on every architecture.
const SETXATTRAT: libc::c_long = 463;
const REMOVEXATTRAT: libc::c_long = 466;
const FILE_SETATTR: libc::c_long = 469;

/// `ioctl`s that change a file's attributes though it is only open for reading: `FS_IOC_SETFLAGS`,
/// `FS_IOC_FSSETXATTR`, `FS_IOC_SETVERSION`, and `FS_IOC_ENABLE_VERITY`, after which it can never be written again.
const ATTRIBUTE_COMMANDS: [u32; 4] = [0x4008_6602, 0x401c_5820, 0x4008_7602, 0x4080_6685];

/// Calls that take a process or thread first. Neither namespaces nor Landlock's scopes keep a command from changing
/// those of the process that watches it.
const SCHEDULES: &[libc::c_long] = &[
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_setscheduler,
    libc::SYS_sched_setparam,
    libc::SYS_sched_setattr,
];

/// Calls that take first what is meant, and second whose; and the number by which a single process or thread is meant.
const PRIORITIES: &[(libc::c_long, u32)] = &[(libc::SYS_setpriority, 0), (libc::SYS_ioprio_set, 1)];

/// The bytes of the filter that lets these sockets through, or `None` on an architecture it isn't written for. Without
/// namespaces it closes what those would.
pub(super) fn build(sockets: Sockets) -> Option<Vec<u8>> {
    let architecture = ARCHITECTURE?;
    let mut program = Program::default();
    program.load(ARCH);
    program.put(EQUAL, architecture, 1, 0);
    // Foreign ABIs (32-bit programs) would need a list of their own.
    program.finish(fail(libc::ENOSYS));
    program.load(NUMBER);
    program.0.append(&mut decide(&ranges(sockets)).0);
    Some(program.bytes())
}

/// From which call number on which block applies, until the next.
fn ranges(allowed: Sockets) -> Vec<(u32, Program)> {
    let block = |write: fn(&mut Program)| {
        let mut block = Program::default();
        write(&mut block);
        block
    };
    let allow = block(|block| block.finish(ALLOW));
    let mut special: Vec<(u32, Program)> = Vec::with_capacity(DENIED.len() + 16);
    let mut on = |number: libc::c_long, block: Program| {
        special.extend(u32::try_from(number).map(|number| (number, block)))
    };
    DENIED.iter().for_each(|number| on(*number, block(|block| block.finish(fail(libc::EPERM)))));
    MISSING.iter().for_each(|number| on(*number, block(|block| block.finish(fail(libc::ENOSYS)))));
    on(libc::SYS_clone, block(|block| namespaces(block, NAMESPACE_FLAGS & !libc::CSIGNAL.cast_unsigned())));
    on(libc::SYS_unshare, block(|block| namespaces(block, NAMESPACE_FLAGS)));
    // Another's limits, such as those of pid 1, which then can't do its work. Libraries set their own by 0.
    on(libc::SYS_prlimit64, block(|block| own(block, ARGUMENT_0)));
    on(libc::SYS_ioctl, if allowed == Sockets::Namespaced { block(terminals) } else { block(commands) });
    on(libc::SYS_socketpair, block(pairs));
    on(
        libc::SYS_socket,
        match allowed {
            Sockets::Namespaced => block(sockets),
            Sockets::Internet => block(internet),
            Sockets::None => block(|block| block.finish(fail(libc::EAFNOSUPPORT))),
        },
    );
    let whose = if allowed == Sockets::Namespaced { not_first } else { own };
    for number in SCHEDULES {
        let mut block = Program::default();
        whose(&mut block, ARGUMENT_0);
        on(*number, block);
    }
    for (number, single) in PRIORITIES {
        let mut block = Program::default();
        priority(&mut block, *single, whose);
        on(*number, block);
    }
    if allowed != Sockets::Namespaced {
        SHARED.iter().for_each(|number| on(*number, block(|block| block.finish(fail(libc::ENOSYS)))));
        WATCHES.iter().for_each(|number| on(*number, block(|block| block.finish(fail(libc::ENOSYS)))));
        ATTRIBUTES.iter().for_each(|number| on(*number, block(|block| block.finish(fail(libc::ENOTSUP)))));
        // Everybody's processes can be seen: nothing is meant for all of them.
        on(libc::SYS_kill, block(not_everybody));
    }
    for (number, argument) in MODES {
        let mut block = Program::default();
        modes(&mut block, *argument);
        on(*number, block);
    }
    #[cfg(target_arch = "x86_64")]
    on(libc::SYS_open, block(|block| openings(block, ARGUMENT_1, ARGUMENT_2)));
    on(libc::SYS_openat, block(|block| openings(block, ARGUMENT_2, ARGUMENT_3)));
    special.sort_unstable_by_key(|(number, _)| *number);
    let mut ranges = vec![(0, allow.clone())];
    for (number, block) in special {
        // A neighbour's end that lies here gives way to this call.
        ranges.retain(|(from, _)| *from != number);
        ranges.push((number, block));
        ranges.push((number + 1, allow.clone()));
    }
    ranges.push((X32, block(|block| block.finish(fail(libc::ENOSYS)))));
    ranges.dedup_by(|later, earlier| later.1 == earlier.1);
    ranges
}

/// A tree of comparisons. The kernel runs the filter once for each call number when it is installed, so a
/// list of comparisons would cost a tenth of a millisecond a command.
fn decide(ranges: &[(u32, Program)]) -> Program {
    let (low, high) = ranges.split_at(ranges.len() / 2);
    let (Some(_), Some((border, _))) = (low.first(), high.first()) else {
        return high.first().map(|(_, block)| block.clone()).unwrap_or_default();
    };
    let (mut low, mut high) = (decide(low), decide(high));
    let mut program = Program::default();
    match u8::try_from(low.0.len()) {
        Ok(distance) => program.put(AT_LEAST, *border, distance, 0),
        // Conditional jumps reach 255 instructions.
        Err(_) => {
            program.put(AT_LEAST, *border, 0, 1);
            program.put(ALWAYS, u32::try_from(low.0.len()).unwrap_or(u32::MAX), 0, 0);
        }
    }
    program.0.append(&mut low.0);
    program.0.append(&mut high.0);
    program
}

fn namespaces(block: &mut Program, flags: u32) {
    block.load(ARGUMENT_0);
    block.finish_if(ANY_BIT, flags, fail(libc::EPERM));
    block.finish(ALLOW);
}

fn modes(block: &mut Program, mode: u32) {
    block.load(mode);
    block.finish_if(ANY_BIT, SET_ID, fail(libc::EPERM));
    block.finish(ALLOW);
}

/// Without these flags nothing is created, and the mode is whatever was in the register.
fn openings(block: &mut Program, flags: u32, mode: u32) {
    // <asm-generic/fcntl.h>: `O_TMPFILE` without `O_DIRECTORY`.
    const TEMPORARY: u32 = 0o20_000_000;
    block.load(flags);
    block.put(ANY_BIT, libc::O_CREAT.cast_unsigned() | TEMPORARY, 1, 0);
    block.finish(ALLOW);
    modes(block, mode);
}

fn terminals(block: &mut Program) {
    block.load(ARGUMENT_1);
    block.finish_if(EQUAL, TIOCSTI, fail(libc::EPERM));
    block.finish_if(EQUAL, TIOCLINUX, fail(libc::EPERM));
    block.finish(ALLOW);
}

/// The same, and what changes files' attributes.
fn commands(block: &mut Program) {
    block.load(ARGUMENT_1);
    for command in ATTRIBUTE_COMMANDS {
        block.finish_if(EQUAL, command, fail(libc::ENOTSUP));
    }
    terminals(block);
}

/// The kernel takes process numbers as 32 bits, whatever stands above them.
fn own(block: &mut Program, number: u32) {
    block.load(number);
    block.finish_if(EQUAL, 0, ALLOW);
    block.finish(fail(libc::EPERM));
}

/// A process namespace's first process is the one that watches.
fn not_first(block: &mut Program, number: u32) {
    block.load(number);
    block.finish_if(EQUAL, 1, fail(libc::EPERM));
    block.finish(ALLOW);
}

fn not_everybody(block: &mut Program) {
    block.load(ARGUMENT_0);
    block.finish_if(EQUAL, u32::MAX, fail(libc::EPERM));
    block.finish(ALLOW);
}

/// A single process or thread as `whose` says; never a group or a user's, which those that watch belong to.
fn priority(block: &mut Program, single: u32, whose: fn(&mut Program, u32)) {
    block.load(ARGUMENT_0);
    block.put(EQUAL, single, 1, 0);
    block.finish(fail(libc::EPERM));
    whose(block, ARGUMENT_1);
}

fn pairs(block: &mut Program) {
    block.load(ARGUMENT_0);
    block.finish_if(EQUAL, libc::AF_UNIX.cast_unsigned(), ALLOW);
    block.finish(fail(libc::EAFNOSUPPORT));
}

/// Unix, IPv4 and IPv6; of netlink only the routes, which `getifaddrs` reads.
fn sockets(block: &mut Program) {
    block.load(ARGUMENT_0);
    block.finish_if(EQUAL, libc::AF_UNIX.cast_unsigned(), ALLOW);
    internet(block);
}

/// The same without Unix sockets.
fn internet(block: &mut Program) {
    block.load(ARGUMENT_0);
    block.put(EQUAL, libc::AF_NETLINK.cast_unsigned(), 0, 3);
    block.load(ARGUMENT_2);
    block.finish_if(EQUAL, libc::NETLINK_ROUTE.cast_unsigned(), ALLOW);
    // Netlink of another protocol matches neither family below.
    block.load(ARGUMENT_0);
    block.put(EQUAL, libc::AF_INET.cast_unsigned(), 2, 0);
    block.put(EQUAL, libc::AF_INET6.cast_unsigned(), 1, 0);
    block.finish(fail(libc::EAFNOSUPPORT));
    block.load(ARGUMENT_2);
    // Kernel code that builds and tests don't need.
    for protocol in [libc::IPPROTO_SCTP, libc::IPPROTO_RAW, libc::IPPROTO_MPTCP] {
        block.finish_if(EQUAL, protocol.cast_unsigned(), fail(libc::EPROTONOSUPPORT));
    }
    block.finish(ALLOW);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs the filter as the kernel would, on one call.
    fn verdict<const N: usize>(arch: u32, number: i64, arguments: [u64; N]) -> u32 {
        verdict_of(Sockets::Namespaced, arch, number, arguments)
    }

    fn verdict_of<const N: usize>(sockets: Sockets, arch: u32, number: i64, arguments: [u64; N]) -> u32 {
        let bytes = build(sockets).unwrap();
        let mut data = Vec::new();
        data.extend(u32::try_from(number).unwrap().to_le_bytes());
        data.extend(arch.to_le_bytes());
        data.extend(0u64.to_le_bytes());
        arguments.iter().for_each(|argument| data.extend(argument.to_le_bytes()));
        data.resize(64, 0);
        let (mut word, mut at) = (0, 0);
        loop {
            let [a, b, then, otherwise, k @ ..]: [u8; 8] = bytes[at * 8..at * 8 + 8].try_into().unwrap();
            let (code, value) = (u16::from_ne_bytes([a, b]), u32::from_ne_bytes(k));
            let jump = |holds: bool| usize::from(if holds { then } else { otherwise });
            at += 1;
            match code {
                LOAD => {
                    word = u32::from_le_bytes(data[value as usize..value as usize + 4].try_into().unwrap())
                }
                ALWAYS => at += value as usize,
                EQUAL => at += jump(word == value),
                AT_LEAST => at += jump(word >= value),
                ANY_BIT => at += jump(word & value != 0),
                RETURN => return value,
                other => panic!("no such instruction: {other:#x}"),
            }
        }
    }

    #[test]
    fn every_call_has_the_verdict_of_its_list() {
        let arch = ARCHITECTURE.unwrap();
        let judged =
            [libc::SYS_clone, libc::SYS_unshare, libc::SYS_ioctl, libc::SYS_socket, libc::SYS_socketpair];
        let judged = [&judged[..], &[libc::SYS_ioprio_set]].concat();
        for number in (0..600).filter(|number| !judged.contains(number)) {
            let expected = if DENIED.contains(&number) {
                fail(libc::EPERM)
            } else if MISSING.contains(&number) {
                fail(libc::ENOSYS)
            } else {
                ALLOW
            };
            assert_eq!(verdict(arch, number, [0; 3]), expected, "call {number}");
        }
        for number in [OPEN_TREE_ATTR, QUOTACTL_FD, STATMOUNT, LISTMOUNT] {
            for sockets in [Sockets::Namespaced, Sockets::Internet, Sockets::None] {
                assert_eq!(verdict_of(sockets, arch, number, [0; 3]), fail(libc::EPERM), "call {number}");
            }
        }
        assert_eq!(verdict(arch, 0x4000_0000 + 39, [0; 3]), fail(libc::ENOSYS));
        assert_eq!(verdict(arch ^ 1, 1, [0; 3]), fail(libc::ENOSYS));
    }

    #[test]
    fn without_namespaces_nothing_is_shared_and_no_socket_made() {
        let arch = ARCHITECTURE.unwrap();
        let family = fail(libc::EAFNOSUPPORT);
        for domain in 0..48 {
            let made = |sockets| verdict_of(sockets, arch, libc::SYS_socket, [domain, 1, 0]);
            assert_eq!(made(Sockets::None), family, "{domain}");
            let expected = if matches!(domain, 2 | 10 | 16) { ALLOW } else { family };
            assert_eq!(made(Sockets::Internet), expected, "{domain}");
        }
        for sockets in [Sockets::None, Sockets::Internet] {
            assert_eq!(verdict_of(sockets, arch, libc::SYS_socketpair, [1, 1, 0]), ALLOW);
            assert_eq!(verdict_of(sockets, arch, libc::SYS_socketpair, [2, 1, 0]), family);
            for number in SHARED {
                assert_eq!(verdict_of(sockets, arch, *number, [0; 3]), fail(libc::ENOSYS), "{number}");
            }
            for number in WATCHES {
                assert_eq!(verdict_of(sockets, arch, *number, [0; 3]), fail(libc::ENOSYS), "{number}");
                assert_eq!(verdict(arch, *number, [0; 3]), ALLOW, "{number}");
            }
            let perm = fail(libc::EPERM);
            assert_eq!(verdict_of(sockets, arch, libc::SYS_kill, [u64::from(u32::MAX), 0, 0]), perm);
            assert_eq!(verdict_of(sockets, arch, libc::SYS_kill, [0, 0, 0]), ALLOW);
            assert_eq!(verdict_of(sockets, arch, libc::SYS_kill, [77, 0, 0]), ALLOW);
            for number in ATTRIBUTES {
                assert_eq!(verdict_of(sockets, arch, *number, [0; 3]), fail(libc::ENOTSUP), "{number}");
            }
            for command in [0x4008_6602, 0x401c_5820, 0x4080_6685] {
                assert_eq!(verdict_of(sockets, arch, libc::SYS_ioctl, [3, command, 0]), fail(libc::ENOTSUP));
                assert_eq!(verdict(arch, libc::SYS_ioctl, [3, command, 0]), ALLOW);
            }
            assert_eq!(verdict_of(sockets, arch, libc::SYS_ioctl, [3, 0x5412, 0]), fail(libc::EPERM));
            assert_eq!(verdict_of(sockets, arch, libc::SYS_mount, [0; 3]), fail(libc::EPERM));
            assert_eq!(verdict_of(sockets, arch, libc::SYS_read, [0; 3]), ALLOW);
        }
    }

    #[test]
    fn limits_and_schedules_of_whoever_watches_stay() {
        let arch = ARCHITECTURE.unwrap();
        let perm = fail(libc::EPERM);
        for sockets in [Sockets::Namespaced, Sockets::Internet, Sockets::None] {
            let judge = |number, arguments: [u64; 3]| verdict_of(sockets, arch, number, arguments);
            assert_eq!(judge(libc::SYS_prlimit64, [0, 7, 1]), ALLOW);
            // Whatever stands above the kernel's 32 bits.
            assert_eq!(judge(libc::SYS_prlimit64, [1 << 32, 7, 1]), ALLOW);
            for pid in [1, (1 << 32) + 1, 77, u64::from(u32::MAX)] {
                assert_eq!(judge(libc::SYS_prlimit64, [pid, 7, 1]), perm);
                // With a process namespace the others are the command's own.
                let is_first = pid & u64::from(u32::MAX) == 1;
                let expected = if sockets == Sockets::Namespaced && !is_first { ALLOW } else { perm };
                for number in SCHEDULES {
                    assert_eq!(judge(*number, [0, 8, 1]), ALLOW, "{number}");
                    assert_eq!(judge(*number, [pid, 8, 1]), expected, "{number} of {pid}");
                }
                for (number, single) in PRIORITIES {
                    let single = u64::from(*single);
                    assert_eq!(judge(*number, [single, 0, 19]), ALLOW, "{number}");
                    assert_eq!(judge(*number, [single, pid, 19]), expected, "{number} of {pid}");
                    // A group's, a user's.
                    assert_eq!(judge(*number, [single + 1, 0, 19]), perm, "{number}");
                    assert_eq!(judge(*number, [single + 2, 0, 19]), perm, "{number}");
                }
            }
        }
    }

    #[test]
    fn arguments_are_judged() {
        let arch = ARCHITECTURE.unwrap();
        let (perm, family, protocol) =
            (fail(libc::EPERM), fail(libc::EAFNOSUPPORT), fail(libc::EPROTONOSUPPORT));
        let cases: &[(libc::c_long, [u64; 3], u32)] = &[
            (libc::SYS_clone, [0x0001_1200 | 17, 0, 0], ALLOW),
            (libc::SYS_clone, [0x1000_0000 | 17, 0, 0], perm),
            (libc::SYS_unshare, [0x0002_0000, 0, 0], perm),
            (libc::SYS_unshare, [0x80, 0, 0], perm),
            (libc::SYS_unshare, [0x400, 0, 0], ALLOW),
            (libc::SYS_ioctl, [0, 0x5412, 0], perm),
            (libc::SYS_ioctl, [0, 0xffff_ffff_0000_5412, 0], perm),
            (libc::SYS_ioctl, [0, 0x5401, 0], ALLOW),
            (libc::SYS_socketpair, [1, 1, 0], ALLOW),
            (libc::SYS_socketpair, [16, 1, 0], family),
            (libc::SYS_socket, [1, 1, 0], ALLOW),
            (libc::SYS_socket, [2, 1, 6], ALLOW),
            (libc::SYS_socket, [10, 2, 17], ALLOW),
            (libc::SYS_socket, [2, 1, 262], protocol),
            (libc::SYS_socket, [2, 3, 255], protocol),
            (libc::SYS_socket, [10, 1, 132], protocol),
            (libc::SYS_socket, [16, 3, 0], ALLOW),
            (libc::SYS_socket, [16, 3, 12], family),
            (libc::SYS_socket, [17, 3, 0], family),
            (libc::SYS_socket, [40, 1, 0], family),
        ];
        for (number, arguments, expected) in cases {
            assert_eq!(verdict(arch, *number, *arguments), *expected, "{number} {arguments:x?}");
        }
        let (create, temporary) = (0o100, 0o20_200_000);
        let modes: &[(libc::c_long, [u64; 4], u32)] = &[
            (libc::SYS_fchmod, [3, 0o755, 0, 0], ALLOW),
            (libc::SYS_fchmod, [3, 0o1777, 0, 0], ALLOW),
            (libc::SYS_fchmod, [3, 0o4755, 0, 0], perm),
            (libc::SYS_fchmod, [3, 0o2755, 0, 0], perm),
            (libc::SYS_fchmodat, [3, 0, 0o755, 0], ALLOW),
            (libc::SYS_fchmodat, [3, 0o6000, 0o6755, 0], perm),
            (FCHMODAT2, [3, 0, 0o4000, 0], perm),
            (libc::SYS_mknodat, [3, 0, 0o100_644, 0], ALLOW),
            (libc::SYS_mknodat, [3, 0, 0o104_755, 0], perm),
            (libc::SYS_openat, [3, 0, 0, 0o4755], ALLOW),
            (libc::SYS_openat, [3, 0, create, 0o644], ALLOW),
            (libc::SYS_openat, [3, 0, create | 1, 0o4755], perm),
            (libc::SYS_openat, [3, 0, temporary, 0o2755], perm),
            #[cfg(target_arch = "x86_64")]
            (libc::SYS_chmod, [0, 0o4755, 0, 0], perm),
            #[cfg(target_arch = "x86_64")]
            (libc::SYS_open, [0, create, 0o4755, 0], perm),
            #[cfg(target_arch = "x86_64")]
            (libc::SYS_open, [0, create, 0o755, 0], ALLOW),
            #[cfg(target_arch = "x86_64")]
            (libc::SYS_creat, [0, 0o4755, 0, 0], perm),
        ];
        for (number, arguments, expected) in modes {
            assert_eq!(verdict(arch, *number, *arguments), *expected, "{number} {arguments:x?}");
        }
    }
}
