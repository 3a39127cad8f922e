//! The screens of this process's standard output and standard error.

use std::io::IsTerminal as _;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use crate::{OutputKind, Paint, Screen, Size};

static STDERR: LazyLock<Mutex<Screen>> = LazyLock::new(|| {
    let capability = OutputKind::of_stream(&std::io::stderr());
    Mutex::new(Screen::new(std::io::stderr(), capability, || Size::of_terminal(std::io::stderr())))
});
static STDOUT: LazyLock<Mutex<Screen>> = LazyLock::new(|| {
    let capability = OutputKind::of_stream(&std::io::stdout());
    Mutex::new(Screen::new(std::io::stdout(), capability, || Size::of_terminal(std::io::stdout())))
});

/// Locks the screen of standard error; drop the guard before calling [`stdout_screen`]. Other
/// output to the stream has to go through the screen as well.
pub fn stderr_screen() -> MutexGuard<'static, Screen> {
    STDERR.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Locks the screen of standard output, after ending open output on standard error.
pub fn stdout_screen() -> MutexGuard<'static, Screen> {
    if std::io::stdout().is_terminal() {
        stderr_screen().end_line();
    }
    STDOUT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the paint for standard error: by `--color`, else with colours on a terminal unless
/// `NO_COLOR` is set.
#[must_use]
pub fn stderr_paint() -> Paint {
    OutputKind::of_stream(&std::io::stderr()).paint()
}

/// Returns the paint for standard output, as [`stderr_paint`] does.
#[must_use]
pub fn stdout_paint() -> Paint {
    OutputKind::of_stream(&std::io::stdout()).paint()
}

/// Returns true if standard output and standard error have the same target: a terminal, or as with
/// `2>&1`.
#[must_use]
pub fn has_one_reader() -> bool {
    let (out, err) = (std::io::stdout(), std::io::stderr());
    if out.is_terminal() && err.is_terminal() {
        return true;
    }
    let file = |stat: rustix::fs::Stat| (stat.st_dev, stat.st_ino);
    match (rustix::fs::fstat(out), rustix::fs::fstat(err)) {
        (Ok(out), Ok(err)) => file(out) == file(err),
        _ => false,
    }
}

/// Returns true if either screen has shown this error.
#[must_use]
pub fn was_error_shown(message: &str) -> bool {
    let shown_on = |screen: MutexGuard<'_, Screen>| screen.shown_error() == Some(message);
    shown_on(stderr_screen()) || shown_on(stdout_screen())
}
