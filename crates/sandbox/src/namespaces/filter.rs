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

/// Absent rather than forbidden: programs fall back without a word. `clone3` hides its flags behind a pointer.
const MISSING: &[libc::c_long] =
    &[libc::SYS_clone3, libc::SYS_io_uring_setup, libc::SYS_io_uring_enter, libc::SYS_io_uring_register];

// <linux/filter.h>: load a word, jump, mask, return.
const LOAD: u16 = 0x20;
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

const ALLOW: u32 = 0x7fff_0000;

/// `SECCOMP_RET_ERRNO`.
const fn fail(errno: libc::c_int) -> u32 {
    0x0005_0000 | errno.cast_unsigned()
}

struct Program(Vec<u8>);

impl Program {
    fn put(&mut self, code: u16, value: u32, then: u8, otherwise: u8) {
        self.0.extend_from_slice(&code.to_ne_bytes());
        self.0.extend_from_slice(&[then, otherwise]);
        self.0.extend_from_slice(&value.to_ne_bytes());
    }

    fn load(&mut self, offset: u32) {
        self.put(LOAD, offset, 0, 0);
    }

    fn finish(&mut self, action: u32) {
        self.put(RETURN, action, 0, 0);
    }

    /// If the loaded word is the value, ends with `action`.
    fn finish_if(&mut self, test: u16, value: u32, action: u32) {
        self.put(test, value, 0, 1);
        self.finish(action);
    }

    /// If the call has this number, runs `block` (which must end), else goes on after it.
    fn on_call(&mut self, number: libc::c_long, block: impl FnOnce(&mut Self)) {
        let mut body = Self(Vec::new());
        block(&mut body);
        let skip = u8::try_from(body.0.len() / 8).unwrap_or(u8::MAX);
        self.put(EQUAL, call(number), 0, skip);
        self.0.append(&mut body.0);
    }
}

fn call(number: libc::c_long) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// The filter's bytes, or `None` on an architecture it isn't written for.
pub(super) fn build() -> Option<Vec<u8>> {
    let architecture = ARCHITECTURE?;
    let mut program = Program(Vec::with_capacity(1024));
    program.load(ARCH);
    program.put(EQUAL, architecture, 1, 0);
    // Foreign ABIs (32-bit programs) would need a list of their own.
    program.finish(fail(libc::ENOSYS));
    program.load(NUMBER);
    program.finish_if(AT_LEAST, X32, fail(libc::ENOSYS));
    for (list, errno) in [(DENIED, libc::EPERM), (MISSING, libc::ENOSYS)] {
        // Each comparison jumps to the one return after the list; 255 are possible.
        let mut left = u8::try_from(list.len()).unwrap_or(u8::MAX);
        for number in list {
            left -= 1;
            program.put(EQUAL, call(*number), left, u8::from(left == 0));
        }
        program.finish(fail(errno));
    }
    for number in [libc::SYS_clone, libc::SYS_unshare] {
        program.on_call(number, |block| {
            block.load(ARGUMENT_0);
            block.finish_if(
                ANY_BIT,
                NAMESPACE_FLAGS & !if number == libc::SYS_clone { 0x80 } else { 0 },
                fail(libc::EPERM),
            );
            block.finish(ALLOW);
        });
    }
    program.on_call(libc::SYS_ioctl, |block| {
        block.load(ARGUMENT_1);
        // Typing into a terminal, its mouse selection included.
        block.finish_if(EQUAL, 0x5412, fail(libc::EPERM));
        block.finish_if(EQUAL, 0x541c, fail(libc::EPERM));
        block.finish(ALLOW);
    });
    program.on_call(libc::SYS_socketpair, |block| {
        block.load(ARGUMENT_0);
        block.finish_if(EQUAL, libc::AF_UNIX.cast_unsigned(), ALLOW);
        block.finish(fail(libc::EAFNOSUPPORT));
    });
    program.on_call(libc::SYS_socket, sockets);
    program.finish(ALLOW);
    Some(program.0)
}

/// Unix, IPv4 and IPv6; of netlink only the routes, which `getifaddrs` reads.
fn sockets(block: &mut Program) {
    block.load(ARGUMENT_0);
    block.finish_if(EQUAL, libc::AF_UNIX.cast_unsigned(), ALLOW);
    block.put(EQUAL, libc::AF_NETLINK.cast_unsigned(), 0, 3);
    block.load(ARGUMENT_2);
    block.finish_if(EQUAL, 0, ALLOW);
    // Falls through to the load below with netlink of another protocol: neither family matches.
    block.load(ARGUMENT_0);
    block.put(EQUAL, libc::AF_INET.cast_unsigned(), 2, 0);
    block.put(EQUAL, libc::AF_INET6.cast_unsigned(), 1, 0);
    block.finish(fail(libc::EAFNOSUPPORT));
    block.load(ARGUMENT_2);
    // SCTP, raw and MPTCP: kernel code that builds and tests don't need.
    for protocol in [132, 255, 262] {
        block.finish_if(EQUAL, protocol, fail(libc::EPROTONOSUPPORT));
    }
    block.finish(ALLOW);
}
