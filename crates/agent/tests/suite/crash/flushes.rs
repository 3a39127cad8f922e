//! A disk that fails when it matters: the kernel is told to answer flushes of this process with an
//! error.

/// From now on every flush by any thread of this process, and of what it starts, fails with `EIO`;
/// false where that can't be had.
#[allow(unsafe_code)]
pub(crate) fn fail() -> bool {
    let step = |code: u32, jt, jf, k: u32| libc::sock_filter { code: code as u16, jt, jf, k };
    let answer = |k| step(libc::BPF_RET | libc::BPF_K, 0, 0, k);
    let is = |number: libc::c_long, then| {
        step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, then, 0, u32::try_from(number).unwrap())
    };
    let mut filter = [
        // The number of the system call is what a filter sees first.
        step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        is(libc::SYS_fsync, 2),
        is(libc::SYS_fdatasync, 1),
        answer(libc::SECCOMP_RET_ALLOW),
        answer(libc::SECCOMP_RET_ERRNO | libc::EIO as u32),
    ];
    let program = libc::sock_fprog { len: 5, filter: filter.as_mut_ptr() };
    // SAFETY: the program is valid during the call, and what it refuses is all that changes.
    unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::syscall(
                libc::SYS_seccomp,
                libc::SECCOMP_SET_MODE_FILTER,
                libc::SECCOMP_FILTER_FLAG_TSYNC,
                &raw const program,
            ) == 0
    }
}
