//! Questions by lines at the controlling terminal, outside of a conversation.
//!
//! Questions go to standard error and the terminal, answers come from the terminal itself: standard
//! input and standard output may be pipes.

use std::fmt::Display;
use std::io::{self, BufRead as _, IsTerminal as _, Write as _};
use std::path::Path;

use journeyman_agent::git::CommitRefusal;
use journeyman_agent::store::SessionSummary;
use journeyman_host::approvals::format_commit_question;
use journeyman_host::format::printable;
use journeyman_host::sessions::describe_session;
use journeyman_host::{Confirmations, Context as _, HostError};
use journeyman_protocol::SessionId;
use journeyman_terminal::{Paint, stderr_paint, stderr_screen};
use tokio::sync::mpsc;

/// The controlling terminal.
const TERMINAL_PATH: &str = "/dev/tty";
/// Maximum bytes of an answer: a gigabyte pasted into a question is no answer.
const MAX_ANSWER_BYTES: u64 = 64 * 1024;

/// Asks for confirmations at the terminal, before and after a session.
pub struct TerminalPrompts;

impl TerminalPrompts {
    /// Returns the prompts if a person is at the terminal.
    #[must_use]
    pub fn if_attended() -> Option<&'static dyn Confirmations> {
        is_attended().then_some(&Self as &dyn Confirmations)
    }
}

impl Confirmations for TerminalPrompts {
    fn confirm_trust(&self, path: &Path, keys: &[String], values: &[String]) -> io::Result<bool> {
        let paint = stderr_paint();
        let shown = printable(&path.display());
        write_line(format_args!(
            "{} {shown} sets what runs code or sends data:",
            paint.yellow("New or changed:")
        ));
        for (key, value) in keys.iter().zip(values) {
            write_line(format_args!("  {} {} = {}", paint.dim("│"), printable(&key), printable(&value)));
        }
        confirm("Have you read it and trust it? [y/N] ")
    }

    fn confirm_commit(&self, refusal: &CommitRefusal, diff: &str) -> io::Result<bool> {
        let paint = stderr_paint();
        // A text that can't be shown completely can't be allowed.
        let Some(shown) = format_commit_question(refusal, diff) else { return Ok(false) };
        write_line(format_args!("{} {}", paint.yellow("Not committed yet:"), printable(&refusal)));
        show_quoted(paint, &printable(&shown));
        confirm("Have you read it, and is it to run with your rights? [y/N] ")
    }

    fn confirm_older_undo(&self, newest: &SessionSummary, older: &SessionSummary) -> io::Result<bool> {
        write_line(format_args!("Nothing was changed by the newest run: {}.", describe_session(newest)));
        write_line(format_args!("The newest change is from {}.", describe_session(older)));
        confirm("Take that back? [y/N] ")
    }

    fn confirm_unverified(&self, session: &SessionId) -> io::Result<bool> {
        confirm(&format!("Nothing verified what session {session} did. Land it all the same? [y/N] "))
    }
}

/// Returns true if a person is at the terminal.
#[must_use]
pub fn is_attended() -> bool {
    io::stderr().is_terminal() && (io::stdin().is_terminal() || has_terminal())
}

/// Returns true if the controlling terminal can be read, independent of standard input. A
/// background process that reads it would be stopped.
fn has_terminal() -> bool {
    let Ok(terminal) = std::fs::File::open(TERMINAL_PATH) else { return false };
    rustix::termios::tcgetpgrp(terminal).is_ok_and(|group| group == rustix::process::getpgrp())
}

/// Asks a question; any answer but yes means no.
///
/// # Errors
/// The terminal can't be read.
pub fn confirm(question: &str) -> io::Result<bool> {
    match ask_line(question) {
        Ok(line) => Ok(matches!(line.trim(), "y" | "Y" | "yes")),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            write_line(format_args!("\nno answer ({}): taken as no", describe_read_error(&error)));
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

/// Asks before something is removed for good. Returns false, after a message, if the person
/// refuses; `verb` and `done` name the removal in the messages.
///
/// # Errors
/// [`HostError::Usage`] where standard input is no terminal; [`HostError::Failed`] where the
/// terminal can't be read.
pub fn confirm_removal(question: &str, verb: &str, done: &str) -> Result<bool, HostError> {
    if !io::stdin().is_terminal() {
        return Err(HostError::usage(format_args!("nobody can be asked here; --yes {verb} without asking")));
    }
    let confirmed = confirm(question).context("asking")?;
    if !confirmed {
        write_line(format_args!("nothing was {done}"));
    }
    Ok(confirmed)
}

/// Asks, and returns the line that is typed.
///
/// # Errors
/// The terminal can't be read.
pub fn ask_line(question: &str) -> io::Result<String> {
    stderr_screen().note_open_line();
    std::fs::OpenOptions::new().write(true).open(TERMINAL_PATH)?.write_all(question.as_bytes())?;
    let line = read_line();
    stderr_screen().note_line_end();
    line
}

/// Shows a text with a bar before each line.
pub fn show_quoted(paint: Paint, text: &str) {
    for line in text.lines() {
        write_line(format_args!("  {} {line}", paint.dim("│")));
    }
}

/// Writes a line to standard error.
pub(crate) fn write_line(line: impl Display) {
    let text = format!("{line}\n");
    stderr_screen().write_wrapped(&text);
}

/// Describes why no line came from the terminal.
pub(crate) fn describe_read_error(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => "end of input".to_owned(),
        _ => format!("the terminal can't be read: {error}"),
    }
}

/// Drops lines that were typed before the question was shown.
pub(crate) fn drop_typed_lines() {
    if let Ok(terminal) = std::fs::File::open(TERMINAL_PATH) {
        // A failing terminal is reported by the next read.
        rustix::termios::tcflush(terminal, rustix::termios::QueueSelector::IFlush).ok();
    }
}

/// Reads a line from the terminal itself, never from standard input.
fn read_line() -> io::Result<String> {
    let terminal = std::fs::File::open(TERMINAL_PATH)?;
    let mut line = String::new();
    let read = io::BufReader::new(io::Read::take(&terminal, MAX_ANSWER_BYTES)).read_line(&mut line)?;
    if read == 0 {
        return Err(terminal_closed());
    }
    Ok(line)
}

fn terminal_closed() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "the terminal was closed")
}

/// Reads lines from the terminal on request. A terminal read can't be cancelled, so a separate
/// thread reads; lines that no request waits for are dropped.
#[derive(Default)]
pub(crate) struct LineReader {
    channels: Option<(std::sync::mpsc::Sender<()>, mpsc::UnboundedReceiver<io::Result<String>>)>,
    is_reading: bool,
}

impl LineReader {
    /// Waits for the next line. Cancel-safe.
    pub(crate) async fn next_line(&mut self) -> io::Result<String> {
        let (requests, lines) = self.channels.get_or_insert_with(spawn_reader);
        if !self.is_reading {
            requests.send(()).map_err(|_| terminal_closed())?;
            self.is_reading = true;
        }
        let line = lines.recv().await;
        self.is_reading = false;
        line.unwrap_or_else(|| Err(terminal_closed()))
    }

    /// Drops a line that was typed for an earlier request.
    pub(crate) fn drop_line(&mut self) {
        if let Some((_, lines)) = &mut self.channels
            && lines.try_recv().is_ok()
        {
            self.is_reading = false;
        }
    }
}

fn spawn_reader() -> (std::sync::mpsc::Sender<()>, mpsc::UnboundedReceiver<io::Result<String>>) {
    let (requests, requested) = std::sync::mpsc::channel();
    let (sender, lines) = mpsc::unbounded_channel();
    // The thread ends with the process, or when its receiver is dropped.
    std::thread::spawn(move || {
        while requested.recv().is_ok() {
            if sender.send(read_line()).is_err() {
                break;
            }
        }
    });
    (requests, lines)
}
