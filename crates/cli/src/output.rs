//! Writes to standard output and standard error, and tolerates closed pipes.

use std::io::{self, IsTerminal as _, Write as _};

use journeyman_host::format::printable;
use journeyman_host::{Context as _, HostError};
use journeyman_policy::secrets::Redactor;
use journeyman_terminal::{Screen, Size, diff, stderr_paint, stderr_screen, stdout_screen};
use journeyman_tui::pager::show_in_pager;

/// Prints a line to standard output like `println!`, without a panic on a closed pipe (`jm show |
/// head`).
macro_rules! outln {
    ($($part:tt)*) => { $crate::output::write_stdout(&format!("{}\n", format_args!($($part)*))) };
}

/// Prints a line of a report to standard output, wrapped at the terminal's width.
macro_rules! reportln {
    ($($part:tt)*) => { $crate::output::write_report(&format!("{}\n", format_args!($($part)*))) };
}

/// Prints a line for people to standard error as `eprintln!` does, without its panic.
macro_rules! errln {
    () => { $crate::output::write_stderr("\n") };
    ($($part:tt)*) => { $crate::output::write_stderr(&format!("{}\n", format_args!($($part)*))) };
}

/// Prints to standard error as [`errln`] does, without the line feed.
macro_rules! err {
    ($($part:tt)*) => { $crate::output::write_stderr(&format!($($part)*)) };
}

/// Writes a text to standard error, and ignores failures.
pub(crate) fn write_stderr(text: &str) {
    stderr_screen().write_wrapped(text);
}

/// Writes a text to standard output. A closed pipe is ignored; any other failure ends the process.
pub(crate) fn write_stdout(text: &str) {
    write_screen(|screen| screen.write_text(text));
}

/// Writes a report to standard output, its lines wrapped at the terminal's width.
pub(crate) fn write_report(text: &str) {
    write_screen(|screen| screen.write_wrapped(text));
}

/// Writes a diff to standard output in its colours.
pub(crate) fn write_diff(text: &str) {
    let text = printable(text);
    write_screen(|screen| text.lines().for_each(|line| screen.write_unwrapped(&diff::style_line(line))));
}

/// Writes a diff as [`write_diff`] does, by the user's pager where it is longer than the terminal.
/// Has to be called in a runtime.
pub(crate) fn page_diff(text: &str) {
    let rows = Size::of_terminal(io::stdout()).rows;
    let is_long = io::stdout().is_terminal() && text.lines().nth(rows).is_some();
    if !is_long || show_in_pager(text).is_err() {
        write_diff(text);
    }
}

/// Writes to the screen of standard output as [`write_stdout`] does.
pub(crate) fn write_screen(write: impl FnOnce(&mut Screen)) {
    let mut screen = stdout_screen();
    write(&mut screen);
    if let Some(error) = screen.take_failure() {
        exit_unless_pipe_closed(&error);
    }
}

/// Writes bytes as [`write_stdout`] does.
pub(crate) fn write_stdout_bytes(bytes: &[u8]) {
    if let Err(error) = try_write(bytes) {
        exit_unless_pipe_closed(&error);
    }
}

fn exit_unless_pipe_closed(error: &io::Error) {
    if error.kind() != io::ErrorKind::BrokenPipe {
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
    let text = format_error(error);
    errln!("{}: {text}", stderr_paint().red("error"));
}

/// Returns an error's text without control sequences and secrets: it may quote files and
/// configuration of the project.
pub(crate) fn format_error(error: &HostError) -> String {
    let text = printable(&error);
    Redactor::default().redact(&text).into_owned()
}
