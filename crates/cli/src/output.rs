//! Standard output and standard error, whose readers may go away before everything is written.

use std::io::{IsTerminal as _, Write};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use journeyman_host::format::printable;
use journeyman_host::{Context as _, HostError};
use journeyman_policy::secrets::Redactor;
use journeyman_terminal::{Capability, Screen, Size, diff};

use crate::color;

/// Prints a line of the result as `println!` does, without its panic where nobody reads any more
/// (`jm show | head`).
macro_rules! outln {
    ($($part:tt)*) => { $crate::output::write_stdout(&format!("{}\n", format_args!($($part)*))) };
}

/// Prints a line for people to standard error as `eprintln!` does, without its panic.
macro_rules! errln {
    () => { $crate::output::write_stderr("\n") };
    ($($part:tt)*) => { $crate::output::write_stderr(&format!("{}\n", format_args!($($part)*))) };
}

/// The same as [`errln`] without the line's end.
macro_rules! err {
    ($($part:tt)*) => { $crate::output::write_stderr(&format!($($part)*)) };
}

static STDERR: LazyLock<Mutex<Screen>> = LazyLock::new(|| {
    let capability = Capability::of_stream(&std::io::stderr());
    Mutex::new(Screen::new(std::io::stderr(), capability, || Size::of_terminal(std::io::stderr())))
});
static STDOUT: LazyLock<Mutex<Screen>> = LazyLock::new(|| {
    let capability = Capability::of_stream(&std::io::stdout());
    Mutex::new(Screen::new(CheckedStdout, capability, || Size::of_terminal(std::io::stdout())))
});

/// Returns the screen of standard error. What else is written there goes through it as well.
pub(crate) fn stderr_screen() -> MutexGuard<'static, Screen> {
    STDERR.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the screen of standard output, below what stands open on standard error.
pub(crate) fn stdout_screen() -> MutexGuard<'static, Screen> {
    if std::io::stdout().is_terminal() {
        stderr_screen().end_line();
    }
    STDOUT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns true if one reader gets both standard output and standard error: a terminal, or what
/// `2>&1` leads to.
pub(crate) fn has_one_reader() -> bool {
    let (out, err) = (std::io::stdout(), std::io::stderr());
    let both = out.is_terminal() && err.is_terminal();
    let file = |stat: rustix::fs::Stat| (stat.st_dev, stat.st_ino);
    both || matches!((rustix::fs::fstat(out), rustix::fs::fstat(err)), (Ok(out), Ok(err)) if file(out) == file(err))
}

/// Returns true if a screen has shown this error.
pub(crate) fn was_error_shown(message: &str) -> bool {
    stderr_screen().shown_error() == Some(message) || stdout_screen().shown_error() == Some(message)
}

/// Writes a text to standard error. Where that fails, nobody can be told.
pub(crate) fn write_stderr(text: &str) {
    stderr_screen().write_wrapped(text);
}

/// Writes a text to standard output. A reader that went away has what it wanted; any other failure
/// ends the command.
pub(crate) fn write_stdout(text: &str) {
    stdout_screen().write_text(text);
}

/// Writes a report to standard output, its lines wrapped at the terminal's width.
pub(crate) fn write_report(text: &str) {
    stdout_screen().write_wrapped(text);
}

/// Writes a diff to standard output in its colours.
pub(crate) fn write_diff(text: &str) {
    let mut screen = stdout_screen();
    for line in printable(&text).lines() {
        screen.write_unwrapped(&diff::style_line(line));
    }
}

/// Standard output as [`write_stdout`] writes it.
struct CheckedStdout;

impl Write for CheckedStdout {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        write_stdout_bytes(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Writes bytes as [`write_stdout`] does.
pub(crate) fn write_stdout_bytes(bytes: &[u8]) {
    if let Err(error) = try_write(bytes) {
        errln!("error: standard output: {error}");
        std::process::exit(1);
    }
}

/// Prints a value as one line of JSON.
///
/// # Errors
/// [`HostError::Failed`] where the line can't be written; a reader that went away is no error.
pub(crate) fn print_json_line(value: &impl serde::Serialize) -> Result<(), HostError> {
    let text = serde_json::to_string(value).context("the output")?;
    try_write(format!("{text}\n").as_bytes()).context("standard output")
}

fn try_write(bytes: &[u8]) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

/// Prints an error to standard error.
pub(crate) fn print_error(error: &HostError) {
    let text = shown_error(error);
    errln!("{}: {text}", color::stderr().red("error"));
}

/// Returns an error's text without control sequences and secrets: it may quote files and
/// configuration of the project.
pub(crate) fn shown_error(error: &HostError) -> String {
    let text = printable(&error);
    Redactor::default().redact(&text).into_owned()
}
