//! Questions to the person at the terminal.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};
use std::path::Path;

use journeyman_git::CommitRefusal;
use journeyman_host::approvals::format_commit_question;
use journeyman_host::format::printable;
use journeyman_host::sessions::describe_session;
use journeyman_host::{Confirmations, Context as _, HostError};
use journeyman_protocol::SessionId;
use journeyman_store::SessionSummary;

use crate::color::{self, Paint};

/// The controlling terminal.
const TERMINAL_PATH: &str = "/dev/tty";

/// Asks for confirmations at the terminal, before and after a session.
pub(crate) struct TerminalPrompts;

impl Confirmations for TerminalPrompts {
    fn confirm_trust(&self, path: &Path, keys: &[String], values: &[String]) -> io::Result<bool> {
        let paint = color::stderr_paint();
        let shown = printable(&path.display());
        errln!("{} {shown} sets what runs code or sends data:", paint.yellow("New or changed:"));
        for (key, value) in keys.iter().zip(values) {
            errln!("  {} {} = {}", paint.dim("│"), printable(&key), printable(&value));
        }
        confirm("Have you read it and trust it? [y/N] ")
    }

    fn confirm_commit(&self, refusal: &CommitRefusal, diff: &str) -> io::Result<bool> {
        let paint = color::stderr_paint();
        // A text that can't be shown completely can't be allowed.
        let Some(shown) = format_commit_question(refusal, diff) else { return Ok(false) };
        errln!("{} {}", paint.yellow("Not committed yet:"), printable(&refusal));
        show_quoted(paint, &printable(&shown));
        confirm("Have you read it, and is it to run with your rights? [y/N] ")
    }

    fn confirm_older_undo(&self, newest: &SessionSummary, older: &SessionSummary) -> io::Result<bool> {
        errln!("Nothing was changed by the newest run: {}.", describe_session(newest));
        errln!("The newest change is from {}.", describe_session(older));
        confirm("Take that back? [y/N] ")
    }

    fn confirm_unverified(&self, session: &SessionId) -> io::Result<bool> {
        confirm(&format!("Nothing verified what session {session} did. Land it all the same? [y/N] "))
    }
}

/// Returns true if the controlling terminal can be read, independent of standard input. A
/// background process that reads it would be stopped.
pub(crate) fn has_terminal() -> bool {
    let Ok(terminal) = std::fs::File::open(TERMINAL_PATH) else { return false };
    rustix::termios::tcgetpgrp(terminal).is_ok_and(|group| group == rustix::process::getpgrp())
}

/// Shows a text with a bar before each line.
pub(crate) fn show_quoted(paint: Paint, text: &str) {
    for line in text.lines() {
        errln!("  {} {line}", paint.dim("│"));
    }
}

/// Drops lines that were typed before the question was shown.
pub(crate) fn drop_typed_lines() {
    if let Ok(terminal) = std::fs::File::open(TERMINAL_PATH) {
        // A failing terminal is reported by the next read.
        rustix::termios::tcflush(terminal, rustix::termios::QueueSelector::IFlush).ok();
    }
}

/// Asks before a removal. Returns false, after a message, if the person refuses; `verb` and `done`
/// name the removal in the messages.
pub(crate) fn confirm_removal(question: &str, verb: &str, done: &str) -> Result<bool, HostError> {
    if !io::stdin().is_terminal() {
        return Err(HostError::usage(format_args!("nobody can be asked here; --yes {verb} without asking")));
    }
    let confirmed = confirm(question).context("asking")?;
    if !confirmed {
        errln!("nothing was {done}");
    }
    Ok(confirmed)
}

/// Asks a question; any answer but yes means no.
pub(crate) fn confirm(question: &str) -> io::Result<bool> {
    match ask_line(question) {
        Ok(line) => Ok(matches!(line.trim(), "y" | "Y" | "yes")),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            errln!("\nno answer ({}): taken as no", describe_read_error(&error));
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

/// Describes why no line came from the terminal.
pub(crate) fn describe_read_error(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => "end of input".to_owned(),
        _ => format!("the terminal can't be read: {error}"),
    }
}

/// Asks, and returns the line that is typed.
pub(crate) fn ask_line(question: &str) -> io::Result<String> {
    journeyman_terminal::stderr_screen().note_open_line();
    std::fs::OpenOptions::new().write(true).open(TERMINAL_PATH)?.write_all(question.as_bytes())?;
    let line = read_line();
    journeyman_terminal::stderr_screen().note_line_end();
    line
}

/// Reads a line from the terminal itself, never from standard input.
pub(crate) fn read_line() -> io::Result<String> {
    let terminal = std::fs::File::open(TERMINAL_PATH)?;
    let mut line = String::new();
    // Bounded: a gigabyte pasted into a question is no answer.
    let read = std::io::BufReader::new(std::io::Read::take(&terminal, 64 * 1024)).read_line(&mut line)?;
    if read == 0 {
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the terminal was closed"));
    }
    Ok(line)
}
