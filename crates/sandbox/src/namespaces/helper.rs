//! The start of a helper process: it does the work of its kind, and never returns.

use super::helper_arguments::{
    BUBBLEWRAP_ARGUMENT, INSIDE_ARGUMENT, KILL_ARGUMENT, LANDLOCK_ARGUMENT, MOUNT_ARGUMENT, WAIT_ARGUMENT,
    is_helper,
};
use super::init::send_message;
use super::messages::HelperMessage;
use super::{bubblewrap, init, kill_on_exit, landlock_only, mount_helper, sys};

/// Does a helper's work if this process was started as one; returns at once if not.
pub(crate) fn run_helper_if_asked() {
    if is_helper() {
        run_helper();
    }
}

/// Returns true if this process has more threads than its first one.
fn has_threads() -> bool {
    // A directory has a link of its parent and one of its own, and here one for each thread.
    // Without /proc nothing is known, and the set-up tells.
    rustix::fs::stat(c"/proc/self/task").is_ok_and(|task| task.st_nlink > 3)
}

/// Does the helper's whole work; never returns.
fn run_helper() -> ! {
    let argument = std::env::args_os().nth(2);
    if argument.as_ref().is_some_and(|argument| argument == INSIDE_ARGUMENT) {
        bubblewrap::run_inner();
    }
    if argument.as_ref().is_some_and(|argument| argument == KILL_ARGUMENT) {
        kill_on_exit::run_kill_helper();
    }
    if has_threads() {
        // Namespaces can't be entered with threads, and what follows would break the threads' own
        // files.
        if let Ok(control) = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3) {
            send_message(&control, HelperMessage::HasThreads);
        }
        sys::exit(125);
    }
    // What leaked into this process mustn't stay open in the sandbox.
    sys::close_from(3).ok();
    let Ok(control) = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3) else { sys::exit(125) };
    match argument {
        Some(argument) if argument == MOUNT_ARGUMENT => mount_helper::run_mounter(&control),
        Some(argument) if argument == LANDLOCK_ARGUMENT => landlock_only::run_supervisor(&control),
        Some(argument) if argument == BUBBLEWRAP_ARGUMENT => bubblewrap::run_outer(&control),
        argument => {
            init::run_init_helper(&control, argument.is_some_and(|argument| argument == WAIT_ARGUMENT))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_counted() {
        std::thread::scope(|scope| {
            let (end, wait) = std::sync::mpsc::channel::<()>();
            scope.spawn(move || wait.recv());
            assert!(has_threads());
            drop(end);
        });
    }
}
