//! The terminal in raw mode, and its way back: at the end, at a panic, and while the program stops.

use std::io::{self, Write as _};
use std::sync::{Arc, Mutex, PoisonError};

use crossterm::terminal::{disable_raw_mode, enable_raw_mode};
use rustix::process::{Signal, kill_current_process_group};

/// Enables bracketed paste, focus events, and unambiguous keys.
const ENTER_SEQUENCE: &str = "\x1b[?2004h\x1b[?1004h\x1b[>1u";
/// Disables these modes, and whatever a half-drawn frame has set.
const LEAVE_SEQUENCE: &str = "\x1b[?2026l\x1b[<u\x1b[?1004l\x1b[?2004l\x1b[?25h\x1b[0m";
/// Leaves the alternate screen.
const LEAVE_ALTERNATE: &str = "\x1b[?1049l";

/// Messages of panics, which would be lost between the rows of a frame.
type PanicMessages = Arc<Mutex<Vec<String>>>;

/// The terminal in raw mode. Dropping it restores the terminal.
pub(crate) struct RawTerminal {
    is_raw: bool,
    is_alternate: bool,
    panics: PanicMessages,
}

impl RawTerminal {
    /// Takes over the terminal. Messages of panics are held back until it is restored.
    ///
    /// # Errors
    /// The terminal can't be set.
    pub(crate) fn acquire() -> io::Result<Self> {
        let panics = PanicMessages::default();
        let held = Arc::clone(&panics);
        std::panic::set_hook(Box::new(move |panic| {
            held.lock().unwrap_or_else(PoisonError::into_inner).push(panic.to_string());
        }));
        let mut terminal = Self { is_raw: false, is_alternate: false, panics };
        terminal.enter()?;
        Ok(terminal)
    }

    /// Sets the terminal for the conversation, again after [`Self::leave`].
    ///
    /// # Errors
    /// The terminal can't be set.
    pub(crate) fn enter(&mut self) -> io::Result<()> {
        enable_raw_mode()?;
        self.is_raw = true;
        self.write(ENTER_SEQUENCE)
    }

    /// Restores the terminal as it was.
    ///
    /// # Errors
    /// The terminal can't be set.
    pub(crate) fn restore(&mut self) -> io::Result<()> {
        if !std::mem::take(&mut self.is_raw) {
            return Ok(());
        }
        if std::mem::take(&mut self.is_alternate) {
            self.write(LEAVE_ALTERNATE)?;
        }
        self.write(LEAVE_SEQUENCE)?;
        disable_raw_mode()
    }

    /// Records whether the alternate screen is shown.
    pub(crate) fn record_alternate_screen(&mut self, is_alternate: bool) {
        self.is_alternate = is_alternate;
    }

    /// Writes to the terminal.
    ///
    /// # Errors
    /// The terminal is gone.
    pub(crate) fn write(&mut self, text: &str) -> io::Result<()> {
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes())?;
        out.flush()
    }

    /// Stops the program as Ctrl-Z does, and returns when it goes on.
    ///
    /// # Errors
    /// The terminal can't be set, or the program can't be stopped.
    pub(crate) fn suspend_process(&mut self) -> io::Result<()> {
        self.restore()?;
        kill_current_process_group(Signal::TSTP)?;
        self.enter()
    }

    /// Removes and returns the messages of panics that didn't end the program.
    #[must_use]
    pub(crate) fn take_panics(&self) -> Vec<String> {
        std::mem::take(&mut *self.panics.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        // Nothing can be done about a terminal that is gone.
        self.restore().ok();
        // A thread that panics keeps its hook.
        if !std::thread::panicking() {
            drop(std::panic::take_hook());
        }
        for message in self.take_panics() {
            io::stderr().write_all(format!("{message}\n").as_bytes()).ok();
        }
    }
}
