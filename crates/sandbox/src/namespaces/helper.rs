//! The start of a helper process: it does the work of its kind, and never returns.

use super::helper_arguments::{
    BUBBLEWRAP_ARGUMENT, INSIDE_ARGUMENT, LANDLOCK_ARGUMENT, MOUNT_ARGUMENT, WAIT_ARGUMENT, is_helper,
};
use super::{bubblewrap, init, landlock_only, mounter, sys};

/// Does a helper's work if this process was started as one; returns at once if not.
pub(crate) fn run_helper_if_asked() {
    if is_helper() {
        run_helper();
    }
}

/// Does the helper's whole work; never returns.
fn run_helper() -> ! {
    let argument = std::env::args_os().nth(2);
    if argument.as_ref().is_some_and(|argument| argument == INSIDE_ARGUMENT) {
        bubblewrap::run_inner();
    }
    // What leaked into this process mustn't stay open in the sandbox.
    sys::close_from(3).ok();
    let Ok(control) = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3) else { sys::exit(125) };
    match argument {
        Some(argument) if argument == MOUNT_ARGUMENT => mounter::run(&control),
        Some(argument) if argument == LANDLOCK_ARGUMENT => landlock_only::run_supervisor(&control),
        Some(argument) if argument == BUBBLEWRAP_ARGUMENT => bubblewrap::run_outer(&control),
        argument => init::run(&control, argument.is_some_and(|argument| argument == WAIT_ARGUMENT)),
    }
}
