//! A program traced by `ptrace`, whose k-th system call between two marks is its last one, or
//! fails.
//!
//! The program says `begin` and `end` by signals to itself that never reach it. Calls of all its
//! threads count.
#![allow(unsafe_code, reason = "system calls that no safe library has")]

use std::collections::HashSet;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

const BEGIN: libc::c_int = libc::SIGUSR1;
const END: libc::c_int = libc::SIGUSR2;
/// What the kernel adds to the signal of a stop at a system call, once it was asked to.
const AT_SYSCALL: libc::c_int = libc::SIGTRAP | 0x80;
/// `PTRACE_GET_SYSCALL_INFO` says of a stop that it is at a call's beginning.
const ENTRY: u8 = 1;

/// What happens to the traced program.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Plan {
    /// Nothing: the calls are only counted.
    Watch,
    /// It is killed before its k-th call happens.
    KillBefore(usize),
    /// It is killed when its k-th call has happened, and before it knows.
    KillAfter(usize),
    /// The k-th call fails without happening, if it is of this kind: threads come in any order.
    Fail(usize, i32, fn(i64) -> bool),
    /// The k-th call and all that come after it fail, if they are of this kind.
    FailFrom(usize, i32, fn(i64) -> bool),
}

/// What came of it.
#[derive(Debug)]
pub(crate) struct Trace {
    /// The numbers of the system calls between the marks, in order.
    pub(crate) calls: Vec<i64>,
    /// The exit code; `None` when it was killed.
    pub(crate) code: Option<i32>,
}

/// In the traced program: from here on calls count.
pub(crate) fn begin() {
    raise(BEGIN);
}

/// In the traced program: up to here.
pub(crate) fn end() {
    raise(END);
}

fn raise(signal: libc::c_int) {
    // SAFETY: raising a signal touches no memory of ours.
    assert_eq!(unsafe { libc::raise(signal) }, 0);
}

/// Runs the program to its end, or to where the plan ends it.
pub(crate) fn trace(command: &mut Command, plan: Plan) -> io::Result<Trace> {
    // SAFETY: between fork and exec only one system call is made, which is async-signal-safe.
    unsafe {
        command.pre_exec(|| match libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        });
    }
    let child = command.spawn()?;
    let leader = libc::pid_t::try_from(child.id()).unwrap();
    let mut tracer = Tracer {
        leader,
        plan,
        counts: false,
        calls: Vec::new(),
        failing: HashSet::new(),
        doomed: None,
        code: None,
    };
    tracer.run()?;
    Ok(Trace { calls: tracer.calls, code: tracer.code })
}

struct Tracer {
    leader: libc::pid_t,
    plan: Plan,
    /// Whether we are between the marks.
    counts: bool,
    calls: Vec<i64>,
    /// Threads in a call that was made to fail, and by what.
    failing: HashSet<(libc::pid_t, i32)>,
    /// The thread that is to be killed at its next stop.
    doomed: Option<libc::pid_t>,
    code: Option<i32>,
}

impl Tracer {
    fn run(&mut self) -> io::Result<()> {
        let mut started = false;
        loop {
            let mut status = 0;
            // Other threads of this process trace children of their own.
            let flags = libc::__WALL | libc::__WNOTHREAD;
            // SAFETY: `status` outlives the call.
            let thread = unsafe { libc::waitpid(-1, &raw mut status, flags) };
            if thread < 0 {
                let error = io::Error::last_os_error();
                match error.raw_os_error() {
                    Some(libc::ECHILD) => return Ok(()),
                    Some(libc::EINTR) => continue,
                    _ => return Err(error),
                }
            }
            if libc::WIFEXITED(status) || libc::WIFSIGNALED(status) {
                if thread == self.leader {
                    self.code = libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status));
                }
                continue;
            }
            if !started {
                started = true;
                let options = libc::PTRACE_O_TRACESYSGOOD
                    | libc::PTRACE_O_EXITKILL
                    | libc::PTRACE_O_TRACECLONE
                    | libc::PTRACE_O_TRACEFORK
                    | libc::PTRACE_O_TRACEVFORK;
                ask(libc::PTRACE_SETOPTIONS, thread, 0, options.into())?;
                self.go_on(thread, 0);
                continue;
            }
            let deliver = self.stopped(thread, status)?;
            self.go_on(thread, deliver);
        }
    }

    /// Lets a thread go on. One that was killed meanwhile is gone, and the next wait tells.
    fn go_on(&self, thread: libc::pid_t, deliver: libc::c_int) {
        let request = if self.counts { libc::PTRACE_SYSCALL } else { libc::PTRACE_CONT };
        drop(ask(request, thread, 0, deliver.into()));
    }

    /// Looks at a stop; gives the signal that the thread is to get.
    fn stopped(&mut self, thread: libc::pid_t, status: libc::c_int) -> io::Result<libc::c_int> {
        match libc::WSTOPSIG(status) {
            BEGIN => self.counts = true,
            END => self.counts = false,
            AT_SYSCALL if self.counts => self.at_call(thread)?,
            AT_SYSCALL => {}
            // A new thread's first stop, and what the kernel tells of it.
            libc::SIGSTOP | libc::SIGTRAP => {}
            other => return Ok(other),
        }
        Ok(0)
    }

    fn at_call(&mut self, thread: libc::pid_t) -> io::Result<()> {
        let info = call_info(thread)?;
        if info.op != ENTRY {
            self.at_exit(thread);
            return Ok(());
        }
        // SAFETY: at an entry the kernel has filled in this part.
        let number = unsafe { info.u.entry.nr }.cast_signed();
        let index = self.calls.len();
        self.calls.push(number);
        match self.plan {
            Plan::KillBefore(at) if at == index => {
                drop(set_call(thread, -1));
                self.kill();
            }
            Plan::KillAfter(at) if at == index => self.doomed = Some(thread),
            Plan::Fail(at, errno, kind) if at == index && kind(number) => self.fail(thread, errno)?,
            Plan::FailFrom(at, errno, kind) if at <= index && kind(number) => self.fail(thread, errno)?,
            _ => {}
        }
        Ok(())
    }

    fn at_exit(&mut self, thread: libc::pid_t) {
        if let Some(failed) = self.failing.iter().find(|(failing, _)| *failing == thread).copied() {
            self.failing.remove(&failed);
            drop(set_result(thread, -i64::from(failed.1)));
        }
        if self.doomed == Some(thread) {
            self.kill();
        }
    }

    fn fail(&mut self, thread: libc::pid_t, errno: i32) -> io::Result<()> {
        self.failing.insert((thread, errno));
        set_call(thread, -1)
    }

    fn kill(&mut self) {
        self.counts = false;
        // SAFETY: the child isn't waited for yet, so that its number is its own.
        unsafe { libc::kill(self.leader, libc::SIGKILL) };
    }
}

fn ask(request: libc::c_uint, thread: libc::pid_t, at: usize, data: i64) -> io::Result<()> {
    // SAFETY: none of the requests made through here writes to our memory.
    match unsafe { libc::ptrace(request, thread, at, data) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

fn call_info(thread: libc::pid_t) -> io::Result<libc::ptrace_syscall_info> {
    // SAFETY: the structure is plain numbers, for which zeros are valid.
    let mut info: libc::ptrace_syscall_info = unsafe { std::mem::zeroed() };
    let size = size_of_val(&info);
    // SAFETY: the kernel writes at most `size` bytes to `info`.
    match unsafe { libc::ptrace(libc::PTRACE_GET_SYSCALL_INFO, thread, size, &raw mut info) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(info),
    }
}

/// Makes the call at whose beginning the thread is another one; -1 is none.
fn set_call(thread: libc::pid_t, number: i64) -> io::Result<()> {
    let register = std::mem::offset_of!(libc::user_regs_struct, orig_rax);
    ask(libc::PTRACE_POKEUSER, thread, register, number)
}

/// Sets what the call at whose end the thread is gives back.
fn set_result(thread: libc::pid_t, value: i64) -> io::Result<()> {
    ask(libc::PTRACE_POKEUSER, thread, std::mem::offset_of!(libc::user_regs_struct, rax), value)
}
