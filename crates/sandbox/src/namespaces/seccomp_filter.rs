//! The system-call filter of commands that this program confines itself: the kernel's packet-filter
//! code for the rows of [`crate::syscalls`].
//!
//! Namespaces and dropped capabilities already confine; the filter takes away parts of the kernel
//! that builds and tests don't need and that break-outs have started from. It is a deny list,
//! because build tools vary too much for an allow list. The crate `seccompiler` would do less: its
//! filters have one action for all calls that match, none of them the notifier's, and compare call
//! numbers one after the other.

use crate::syscalls::{
    ATTRIBUTE_IOCTLS, CREATE_FLAGS, Call, CallRule, FilteredTier, IP_PROTOCOLS, RESTRICTED_CALLS,
    SET_ID_BITS, TERMINAL_INPUT_IOCTLS,
};

#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: Option<u32> = Some(0xc000_003e);
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: Option<u32> = Some(0xc000_00b7);
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const ARCHITECTURE: Option<u32> = None;

/// Calls from this number on belong to the x32 ABI, which would slip past comparisons by number.
const FIRST_X32_CALL: u32 = 0x4000_0000;

// <linux/filter.h>: load a word, jump, return.
const LOAD_WORD: u16 = 0x20;
const JUMP_ALWAYS: u16 = 0x05;
const JUMP_IF_EQUAL: u16 = 0x15;
const JUMP_IF_AT_LEAST: u16 = 0x35;
const JUMP_IF_ANY_BIT: u16 = 0x45;
const RETURN: u16 = 0x06;

// Offsets in `struct seccomp_data`, little-endian.
const CALL_NUMBER_OFFSET: u32 = 0;
const ARCHITECTURE_OFFSET: u32 = 4;

/// Returns the offset of an argument's low word.
const fn low_word_offset(argument: u32) -> u32 {
    16 + 8 * argument
}

const ALLOW_ACTION: u32 = 0x7fff_0000;

/// Returns the action that fails with an error (`SECCOMP_RET_ERRNO`).
const fn fail_action(errno: libc::c_int) -> u32 {
    0x0005_0000 | errno.cast_unsigned()
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct BpfInstruction {
    code: u16,
    then: u8,
    otherwise: u8,
    value: u32,
}

#[derive(Clone, Default, PartialEq, Eq)]
struct FilterProgram(Vec<BpfInstruction>);

impl FilterProgram {
    fn push(&mut self, code: u16, value: u32, then: u8, otherwise: u8) {
        self.0.push(BpfInstruction { code, then, otherwise, value });
    }

    fn load(&mut self, offset: u32) {
        self.push(LOAD_WORD, offset, 0, 0);
    }

    fn push_return(&mut self, action: u32) {
        self.push(RETURN, action, 0, 0);
    }

    /// Ends with `action` if the loaded word passes the test.
    fn push_return_if(&mut self, test: u16, value: u32, action: u32) {
        self.push(test, value, 0, 1);
        self.push_return(action);
    }

    fn to_bytes(&self) -> Vec<u8> {
        let encode = |instruction: &BpfInstruction| {
            let ([a, b], [c, d, e, f]) = (instruction.code.to_ne_bytes(), instruction.value.to_ne_bytes());
            [a, b, instruction.then, instruction.otherwise, c, d, e, f]
        };
        self.0.iter().flat_map(encode).collect()
    }
}

/// The confinement beside the filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Confinement {
    /// Namespaces: every local socket, and the internet's in the command's own network.
    Namespaces,
    /// Landlock alone.
    Landlock {
        /// Sockets of IPv4 and IPv6 may be made, wherever they lead. No Unix sockets: without a
        /// mount namespace those of services can be reached.
        internet: bool,
        /// Changes of files' metadata go to the supervisor.
        notify: bool,
    },
}

impl Confinement {
    fn tier(self) -> FilteredTier {
        match self {
            Self::Namespaces => FilteredTier::Namespaces,
            Self::Landlock { .. } => FilteredTier::Landlock,
        }
    }

    /// Returns the action for changes of metadata.
    fn metadata_action(self) -> u32 {
        if matches!(self, Self::Landlock { notify: true, .. }) {
            libc::SECCOMP_RET_USER_NOTIF
        } else {
            ALLOW_ACTION
        }
    }
}

/// Returns the bytes of the filter beside this confinement, or `None` on an architecture it isn't
/// written for.
pub(super) fn build_filter(confinement: Confinement) -> Option<Vec<u8>> {
    let architecture = ARCHITECTURE?;
    let mut program = FilterProgram::default();
    program.load(ARCHITECTURE_OFFSET);
    program.push(JUMP_IF_EQUAL, architecture, 1, 0);
    // Foreign ABIs (32-bit programs) would need a list of their own.
    program.push_return(fail_action(libc::ENOSYS));
    program.load(CALL_NUMBER_OFFSET);
    program.0.append(&mut build_decision_tree(&call_ranges(confinement)).0);
    Some(program.to_bytes())
}

/// Returns call numbers with the block that applies from each until the next.
fn call_ranges(confinement: Confinement) -> Vec<(u32, FilterProgram)> {
    let allow =
        FilterProgram(vec![BpfInstruction { code: RETURN, then: 0, otherwise: 0, value: ALLOW_ACTION }]);
    let rows = RESTRICTED_CALLS.iter().filter(|call| call.applies_to(confinement.tier()));
    let mut judged: Vec<(u32, FilterProgram)> = rows
        .filter_map(|call| Some((u32::try_from(call.number).ok()?, build_call_block(call, confinement))))
        .collect();
    judged.sort_unstable_by_key(|(number, _)| *number);
    let mut ranges = vec![(0, allow.clone())];
    for (number, block) in judged {
        // The allowed range that the neighbour before began here has no call.
        ranges.retain(|(from, _)| *from != number);
        ranges.push((number, block));
        ranges.push((number + 1, allow.clone()));
    }
    let mut foreign = FilterProgram::default();
    foreign.push_return(fail_action(libc::ENOSYS));
    ranges.push((FIRST_X32_CALL, foreign));
    ranges.dedup_by(|later, earlier| later.1 == earlier.1);
    ranges
}

/// Writes a tree of comparisons. The kernel runs the filter once for each call number when it is
/// installed, so a list of comparisons would cost a tenth of a millisecond a command.
fn build_decision_tree(ranges: &[(u32, FilterProgram)]) -> FilterProgram {
    let (low, high) = ranges.split_at(ranges.len() / 2);
    let (Some(_), Some((border, _))) = (low.first(), high.first()) else {
        return high.first().map(|(_, block)| block.clone()).unwrap_or_default();
    };
    let (mut low, mut high) = (build_decision_tree(low), build_decision_tree(high));
    let mut program = FilterProgram::default();
    match u8::try_from(low.0.len()) {
        Ok(distance) => program.push(JUMP_IF_AT_LEAST, *border, distance, 0),
        // Conditional jumps reach 255 instructions.
        Err(_) => {
            program.push(JUMP_IF_AT_LEAST, *border, 0, 1);
            program.push(JUMP_ALWAYS, u32::try_from(low.0.len()).unwrap_or(u32::MAX), 0, 0);
        }
    }
    program.0.append(&mut low.0);
    program.0.append(&mut high.0);
    program
}

/// Returns the instructions that judge one call.
fn build_call_block(call: &Call, confinement: Confinement) -> FilterProgram {
    let mut block = FilterProgram::default();
    match call.rule {
        CallRule::Fail(error) => block.push_return(fail_action(error)),
        CallRule::Only { argument, value, error } => {
            block.load(low_word_offset(argument));
            block.push_return_if(JUMP_IF_EQUAL, value, ALLOW_ACTION);
            block.push_return(fail_action(error));
        }
        CallRule::Never { argument, values, error } => {
            block.load(low_word_offset(argument));
            values.iter().for_each(|value| block.push_return_if(JUMP_IF_EQUAL, *value, fail_action(error)));
            block.push_return(ALLOW_ACTION);
        }
        CallRule::Without { argument, bits } => forbid_bits(&mut block, argument, bits, ALLOW_ACTION),
        CallRule::Creates { flags, mode } => {
            block.load(low_word_offset(flags));
            block.push(JUMP_IF_ANY_BIT, CREATE_FLAGS, 1, 0);
            block.push_return(ALLOW_ACTION);
            forbid_bits(&mut block, mode, SET_ID_BITS, ALLOW_ACTION);
        }
        CallRule::Priority { single } => restrict_priority(&mut block, single, confinement),
        CallRule::Socket => restrict_sockets(&mut block, confinement),
        CallRule::Ioctl => restrict_ioctls(&mut block, confinement),
        CallRule::Metadata => block.push_return(confinement.metadata_action()),
        CallRule::Mode { argument } => {
            forbid_bits(&mut block, argument, SET_ID_BITS, confinement.metadata_action())
        }
    }
    block
}

/// Ends with `EPERM` if the argument has one of the bits, else with the action.
fn forbid_bits(block: &mut FilterProgram, argument: u32, bits: u32, action: u32) {
    block.load(low_word_offset(argument));
    block.push_return_if(JUMP_IF_ANY_BIT, bits, fail_action(libc::EPERM));
    block.push_return(action);
}

/// Lets a priority be set of a single process: never of a group or a user, which the supervisor
/// belongs to, nor of the supervisor itself.
fn restrict_priority(block: &mut FilterProgram, single: u32, confinement: Confinement) {
    block.load(low_word_offset(0));
    block.push(JUMP_IF_EQUAL, single, 1, 0);
    block.push_return(fail_action(libc::EPERM));
    block.load(low_word_offset(1));
    if confinement == Confinement::Namespaces {
        block.push_return_if(JUMP_IF_EQUAL, 1, fail_action(libc::EPERM));
        block.push_return(ALLOW_ACTION);
    } else {
        block.push_return_if(JUMP_IF_EQUAL, 0, ALLOW_ACTION);
        block.push_return(fail_action(libc::EPERM));
    }
}

/// Lets sockets of these families be made; of netlink only the routes, which `getifaddrs` reads.
fn restrict_sockets(block: &mut FilterProgram, confinement: Confinement) {
    let family = fail_action(libc::EAFNOSUPPORT);
    block.load(low_word_offset(0));
    match confinement {
        Confinement::Landlock { internet: false, .. } => return block.push_return(family),
        Confinement::Landlock { .. } => {}
        Confinement::Namespaces => {
            block.push_return_if(JUMP_IF_EQUAL, libc::AF_UNIX.cast_unsigned(), ALLOW_ACTION)
        }
    }
    block.push(JUMP_IF_EQUAL, libc::AF_NETLINK.cast_unsigned(), 0, 3);
    block.load(low_word_offset(2));
    block.push_return_if(JUMP_IF_EQUAL, libc::NETLINK_ROUTE.cast_unsigned(), ALLOW_ACTION);
    // Netlink of another protocol matches neither family below.
    block.load(low_word_offset(0));
    block.push(JUMP_IF_EQUAL, libc::AF_INET.cast_unsigned(), 2, 0);
    block.push(JUMP_IF_EQUAL, libc::AF_INET6.cast_unsigned(), 1, 0);
    block.push_return(family);
    block.load(low_word_offset(2));
    IP_PROTOCOLS.iter().for_each(|protocol| block.push_return_if(JUMP_IF_EQUAL, *protocol, ALLOW_ACTION));
    block.push_return(fail_action(libc::EPROTONOSUPPORT));
}

/// Lets every `ioctl` pass but those that type into terminals, and those that change files'
/// attributes where only Landlock protects files.
fn restrict_ioctls(block: &mut FilterProgram, confinement: Confinement) {
    block.load(low_word_offset(1));
    if confinement != Confinement::Namespaces {
        ATTRIBUTE_IOCTLS
            .iter()
            .for_each(|command| block.push_return_if(JUMP_IF_EQUAL, *command, fail_action(libc::ENOTSUP)));
    }
    TERMINAL_INPUT_IOCTLS
        .iter()
        .for_each(|command| block.push_return_if(JUMP_IF_EQUAL, *command, fail_action(libc::EPERM)));
    block.push_return(ALLOW_ACTION);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs the filter as the kernel would, on one call.
    fn verdict<const N: usize>(arch: u32, number: i64, arguments: [u64; N]) -> u32 {
        verdict_of(Confinement::Namespaces, arch, number, arguments)
    }

    fn verdict_of<const N: usize>(
        confinement: Confinement,
        arch: u32,
        number: i64,
        arguments: [u64; N],
    ) -> u32 {
        let bytes = build_filter(confinement).unwrap();
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
                LOAD_WORD => {
                    word = u32::from_le_bytes(data[value as usize..value as usize + 4].try_into().unwrap())
                }
                JUMP_ALWAYS => at += value as usize,
                JUMP_IF_EQUAL => at += jump(word == value),
                JUMP_IF_AT_LEAST => at += jump(word >= value),
                JUMP_IF_ANY_BIT => at += jump(word & value != 0),
                RETURN => return value,
                other => panic!("no such instruction: {other:#x}"),
            }
        }
    }

    const CLOSED: Confinement = Confinement::Landlock { internet: false, notify: false };
    const INTERNET: Confinement = Confinement::Landlock { internet: true, notify: false };
    const NOTIFYING: Confinement = Confinement::Landlock { internet: false, notify: true };

    #[test]
    fn every_call_without_arguments_to_judge_has_the_verdict_of_its_row() {
        let arch = ARCHITECTURE.unwrap();
        for confinement in [Confinement::Namespaces, CLOSED, INTERNET, NOTIFYING] {
            for number in 0..600 {
                let mut rows = RESTRICTED_CALLS.iter().filter(|call| call.applies_to(confinement.tier()));
                let expected = match rows.find(|call| call.number == number).map(|call| call.rule) {
                    None => ALLOW_ACTION,
                    Some(CallRule::Fail(error)) => fail_action(error),
                    Some(_) => continue,
                };
                assert_eq!(verdict_of(confinement, arch, number, [0; 3]), expected, "call {number}");
            }
            for number in
                [libc::SYS_mount, libc::SYS_bpf, libc::SYS_keyctl, libc::SYS_setns, 443, 457, 458, 467]
            {
                assert_eq!(
                    verdict_of(confinement, arch, number, [0; 3]),
                    fail_action(libc::EPERM),
                    "call {number}"
                );
            }
            for number in [libc::SYS_clone3, libc::SYS_openat2, libc::SYS_io_uring_setup] {
                assert_eq!(
                    verdict_of(confinement, arch, number, [0; 3]),
                    fail_action(libc::ENOSYS),
                    "call {number}"
                );
            }
        }
        assert_eq!(verdict(arch, 0x4000_0000 + 39, [0; 3]), fail_action(libc::ENOSYS));
        assert_eq!(verdict(arch ^ 1, 1, [0; 3]), fail_action(libc::ENOSYS));
    }

    #[test]
    fn without_namespaces_nothing_is_shared_and_no_socket_made() {
        let arch = ARCHITECTURE.unwrap();
        let family = fail_action(libc::EAFNOSUPPORT);
        for domain in 0..48 {
            let made = |confinement| verdict_of(confinement, arch, libc::SYS_socket, [domain, 1, 0]);
            assert_eq!(made(CLOSED), family, "{domain}");
            let expected = if matches!(domain, 2 | 10 | 16) { ALLOW_ACTION } else { family };
            assert_eq!(made(INTERNET), expected, "{domain}");
        }
        for landlock in [CLOSED, INTERNET, NOTIFYING] {
            let judge = |number, arguments: [u64; 3]| verdict_of(landlock, arch, number, arguments);
            assert_eq!(judge(libc::SYS_socketpair, [1, 1, 0]), ALLOW_ACTION);
            assert_eq!(judge(libc::SYS_socketpair, [2, 1, 0]), family);
            for number in [libc::SYS_shmget, libc::SYS_semop, libc::SYS_msgsnd, libc::SYS_mq_open] {
                assert_eq!(judge(number, [0; 3]), fail_action(libc::ENOSYS), "{number}");
                assert_eq!(verdict(arch, number, [0; 3]), ALLOW_ACTION, "{number}");
            }
            for number in [libc::SYS_inotify_init1, libc::SYS_inotify_add_watch] {
                assert_eq!(judge(number, [0; 3]), fail_action(libc::ENOSYS), "{number}");
                assert_eq!(verdict(arch, number, [0; 3]), ALLOW_ACTION, "{number}");
            }
            assert_eq!(judge(libc::SYS_kill, [u64::from(u32::MAX), 0, 0]), fail_action(libc::EPERM));
            assert_eq!(judge(libc::SYS_kill, [0, 0, 0]), ALLOW_ACTION);
            assert_eq!(judge(libc::SYS_kill, [77, 0, 0]), ALLOW_ACTION);
            for number in [libc::SYS_setxattr, libc::SYS_fremovexattr, 463, 466, 469] {
                assert_eq!(judge(number, [0; 3]), fail_action(libc::ENOTSUP), "{number}");
            }
            for command in [0x4008_6602, 0x401c_5820, 0x4080_6685] {
                assert_eq!(judge(libc::SYS_ioctl, [3, command, 0]), fail_action(libc::ENOTSUP));
                assert_eq!(verdict(arch, libc::SYS_ioctl, [3, command, 0]), ALLOW_ACTION);
            }
            assert_eq!(judge(libc::SYS_ioctl, [3, 0x5412, 0]), fail_action(libc::EPERM));
            assert_eq!(judge(libc::SYS_read, [0; 3]), ALLOW_ACTION);
        }
    }

    #[test]
    fn changes_of_metadata_go_to_the_supervisor_where_it_makes_them() {
        let arch = ARCHITECTURE.unwrap();
        let held = libc::SECCOMP_RET_USER_NOTIF;
        let rows = |rule: fn(CallRule) -> bool| {
            let rows = RESTRICTED_CALLS
                .iter()
                .filter(move |call| call.applies_to(FilteredTier::Landlock) && rule(call.rule));
            rows.map(|call| call.number).collect::<Vec<_>>()
        };
        let metadata = rows(|rule| rule == CallRule::Metadata);
        assert!(
            [libc::SYS_fchown, libc::SYS_fchownat, libc::SYS_utimensat]
                .iter()
                .all(|one| metadata.contains(one))
        );
        for number in metadata {
            assert_eq!(verdict_of(NOTIFYING, arch, number, [0; 3]), held, "{number}");
            assert_eq!(verdict_of(CLOSED, arch, number, [0; 3]), ALLOW_ACTION, "{number}");
            assert_eq!(verdict(arch, number, [0; 3]), ALLOW_ACTION, "{number}");
        }
        for (number, arguments) in [
            (libc::SYS_fchmod, [3, 0o755, 0]),
            (libc::SYS_fchmodat, [3, 0, 0o755]),
            (libc::SYS_fchmodat, [3, 0, 0o1777]),
        ] {
            assert_eq!(verdict_of(NOTIFYING, arch, number, arguments), held, "{number}");
            assert_eq!(verdict_of(CLOSED, arch, number, arguments), ALLOW_ACTION, "{number}");
        }
        for (number, arguments) in [(libc::SYS_fchmod, [3, 0o4755, 0]), (libc::SYS_fchmodat, [3, 0, 0o2755])]
        {
            assert_eq!(verdict_of(NOTIFYING, arch, number, arguments), fail_action(libc::EPERM), "{number}");
        }
    }

    #[test]
    fn limits_and_schedules_of_the_supervisor_stay() {
        let arch = ARCHITECTURE.unwrap();
        let perm = fail_action(libc::EPERM);
        for confinement in [Confinement::Namespaces, CLOSED, INTERNET] {
            let judge = |number, arguments: [u64; 3]| verdict_of(confinement, arch, number, arguments);
            assert_eq!(judge(libc::SYS_prlimit64, [0, 7, 1]), ALLOW_ACTION);
            // Whatever stands above the kernel's 32 bits.
            assert_eq!(judge(libc::SYS_prlimit64, [1 << 32, 7, 1]), ALLOW_ACTION);
            for pid in [1, (1 << 32) + 1, 77, u64::from(u32::MAX)] {
                assert_eq!(judge(libc::SYS_prlimit64, [pid, 7, 1]), perm);
                // With a process namespace the others are the command's own.
                let is_first = pid & u64::from(u32::MAX) == 1;
                let expected =
                    if confinement == Confinement::Namespaces && !is_first { ALLOW_ACTION } else { perm };
                for number in [
                    libc::SYS_sched_setaffinity,
                    libc::SYS_sched_setscheduler,
                    libc::SYS_sched_setparam,
                    libc::SYS_sched_setattr,
                ] {
                    assert_eq!(judge(number, [0, 8, 1]), ALLOW_ACTION, "{number}");
                    assert_eq!(judge(number, [pid, 8, 1]), expected, "{number} of {pid}");
                }
                for (number, single) in [(libc::SYS_setpriority, 0), (libc::SYS_ioprio_set, 1)] {
                    assert_eq!(judge(number, [single, 0, 19]), ALLOW_ACTION, "{number}");
                    assert_eq!(judge(number, [single, pid, 19]), expected, "{number} of {pid}");
                    // A group's, a user's.
                    assert_eq!(judge(number, [single + 1, 0, 19]), perm, "{number}");
                    assert_eq!(judge(number, [single + 2, 0, 19]), perm, "{number}");
                }
            }
        }
    }

    #[test]
    fn arguments_are_judged() {
        let arch = ARCHITECTURE.unwrap();
        let (perm, family, protocol) =
            (fail_action(libc::EPERM), fail_action(libc::EAFNOSUPPORT), fail_action(libc::EPROTONOSUPPORT));
        let cases: &[(libc::c_long, [u64; 3], u32)] = &[
            (libc::SYS_clone, [0x0001_1200 | 17, 0, 0], ALLOW_ACTION),
            (libc::SYS_clone, [0x1000_0000 | 17, 0, 0], perm),
            (libc::SYS_unshare, [0x0002_0000, 0, 0], perm),
            (libc::SYS_unshare, [0x80, 0, 0], perm),
            (libc::SYS_unshare, [0x400, 0, 0], ALLOW_ACTION),
            (libc::SYS_ioctl, [0, 0x5412, 0], perm),
            (libc::SYS_ioctl, [0, 0xffff_ffff_0000_5412, 0], perm),
            (libc::SYS_ioctl, [0, 0x5401, 0], ALLOW_ACTION),
            (libc::SYS_socketpair, [1, 1, 0], ALLOW_ACTION),
            (libc::SYS_socketpair, [16, 1, 0], family),
            (libc::SYS_socket, [1, 1, 0], ALLOW_ACTION),
            (libc::SYS_socket, [2, 1, 6], ALLOW_ACTION),
            (libc::SYS_socket, [10, 2, 17], ALLOW_ACTION),
            (libc::SYS_socket, [2, 2, 1], ALLOW_ACTION),
            (libc::SYS_socket, [2, 6, 33], protocol),
            (libc::SYS_socket, [2, 1, 262], protocol),
            (libc::SYS_socket, [2, 3, 255], protocol),
            (libc::SYS_socket, [10, 1, 132], protocol),
            (libc::SYS_socket, [16, 3, 0], ALLOW_ACTION),
            (libc::SYS_socket, [16, 3, 12], family),
            (libc::SYS_socket, [17, 3, 0], family),
            (libc::SYS_socket, [40, 1, 0], family),
        ];
        for (number, arguments, expected) in cases {
            assert_eq!(verdict(arch, *number, *arguments), *expected, "{number} {arguments:x?}");
        }
        let (create, temporary) = (0o100, 0o20_200_000);
        let modes: &[(libc::c_long, [u64; 4], u32)] = &[
            (libc::SYS_fchmod, [3, 0o755, 0, 0], ALLOW_ACTION),
            (libc::SYS_fchmod, [3, 0o1777, 0, 0], ALLOW_ACTION),
            (libc::SYS_fchmod, [3, 0o4755, 0, 0], perm),
            (libc::SYS_fchmod, [3, 0o2755, 0, 0], perm),
            (libc::SYS_fchmodat, [3, 0, 0o755, 0], ALLOW_ACTION),
            (libc::SYS_fchmodat, [3, 0o6000, 0o6755, 0], perm),
            (crate::syscalls::FCHMODAT2, [3, 0, 0o4000, 0], perm),
            (libc::SYS_mknodat, [3, 0, 0o100_644, 0], ALLOW_ACTION),
            (libc::SYS_mknodat, [3, 0, 0o104_755, 0], perm),
            (libc::SYS_openat, [3, 0, 0, 0o4755], ALLOW_ACTION),
            (libc::SYS_openat, [3, 0, create, 0o644], ALLOW_ACTION),
            (libc::SYS_openat, [3, 0, create | 1, 0o4755], perm),
            (libc::SYS_openat, [3, 0, temporary, 0o2755], perm),
            #[cfg(target_arch = "x86_64")]
            (libc::SYS_chmod, [0, 0o4755, 0, 0], perm),
            #[cfg(target_arch = "x86_64")]
            (libc::SYS_open, [0, create, 0o4755, 0], perm),
            #[cfg(target_arch = "x86_64")]
            (libc::SYS_open, [0, create, 0o755, 0], ALLOW_ACTION),
            #[cfg(target_arch = "x86_64")]
            (libc::SYS_creat, [0, 0o4755, 0, 0], perm),
        ];
        for (number, arguments, expected) in modes {
            assert_eq!(verdict(arch, *number, *arguments), *expected, "{number} {arguments:x?}");
        }
    }
}
