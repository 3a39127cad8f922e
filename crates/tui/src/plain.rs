//! The conversation as lines: nothing that was written is drawn again, and no key is read alone.
//!
//! For screen readers, for terminals that know no cursor, and for pipes. A line is a message, a
//! command, the answer to the open question, or the number of a choice. From a terminal it is taken
//! at once; from a pipe when everything before it is done.

use std::io::{self, BufRead as _, IsTerminal as _, Read as _, Write as _};

use journeyman_protocol::{CallId, ImageData};
use tokio::sync::mpsc;

use crate::presentation::PickerPurpose;

/// Maximum bytes of one line; what is longer is more than one.
const MAX_INPUT_LINE_BYTES: u64 = 4 << 20;

/// The lines that come in, and what was written last.
pub(crate) struct PlainMode {
    requests: std::sync::mpsc::Sender<()>,
    lines: mpsc::Receiver<String>,
    /// True while a line is waited for.
    is_reading: bool,
    /// True if a person types at a terminal.
    pub(crate) is_terminal: bool,
    /// True if no further line comes.
    pub(crate) has_ended: bool,
    /// The lines of a message that goes on.
    pub(crate) unfinished: String,
    /// Images that go with the next message.
    pub(crate) images: Vec<ImageData>,
    /// Messages that were typed at a terminal and that the session hasn't taken yet.
    pub(crate) typed: Vec<String>,
    /// True if the mark of waiting is the last that was written.
    pub(crate) is_prompted: bool,
    /// The call whose question was written.
    pub(crate) asked: Option<CallId>,
    /// The word that was written last.
    pub(crate) notice: Option<String>,
    /// The number of choices that were listed, and what they are.
    pub(crate) choice: Option<(usize, PickerPurpose)>,
}

impl PlainMode {
    /// Makes the mode. A line is read when it is waited for: others may read the terminal between,
    /// such as the question for trust.
    pub(crate) fn new() -> Self {
        let (requests, requested) = std::sync::mpsc::channel();
        let (sender, lines) = mpsc::channel(1);
        // A read can't be cancelled. The thread ends with the process, or with the input.
        std::thread::spawn(move || {
            let mut input = io::stdin().lock();
            while requested.recv().is_ok() {
                let mut line = Vec::new();
                let read =
                    io::Read::by_ref(&mut input).take(MAX_INPUT_LINE_BYTES).read_until(b'\n', &mut line);
                let text = String::from_utf8_lossy(&line).trim_end_matches(['\n', '\r']).to_owned();
                if !matches!(read, Ok(1..)) || sender.blocking_send(text).is_err() {
                    break;
                }
            }
        });
        Self {
            requests,
            lines,
            is_reading: false,
            is_terminal: io::stdin().is_terminal() && io::stdout().is_terminal(),
            has_ended: false,
            unfinished: String::new(),
            images: Vec::new(),
            typed: Vec::new(),
            is_prompted: false,
            asked: None,
            notice: None,
            choice: None,
        }
    }

    /// Waits for the next line; `None` at the end of the input. Cancel-safe.
    pub(crate) async fn next_line(&mut self, is_busy: bool) -> Option<String> {
        if self.has_ended || is_busy && !self.is_terminal {
            return std::future::pending().await;
        }
        if !std::mem::replace(&mut self.is_reading, true) {
            // A reader that has ended closes the channel of lines too.
            self.requests.send(()).ok();
        }
        let line = self.lines.recv().await;
        self.is_reading = false;
        line
    }
}

/// Writes a text.
///
/// # Errors
/// Nobody reads it any more.
pub(crate) fn write_text(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}
