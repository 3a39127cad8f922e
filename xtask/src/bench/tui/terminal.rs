//! A program on a pseudo-terminal: its screen, the answers that it wants of a terminal, its costs.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::num::NonZero;
use std::process::{Child, Command};
use std::sync::mpsc::channel;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

/// Rows of the terminal.
const ROWS: u16 = 40;
/// Columns of the terminal.
const COLUMNS: u16 = 100;
/// Maximum time that words are waited for.
const TIMEOUT: Duration = Duration::from_secs(120);
/// Time that a program gets to end after it was asked to.
const END_TIME: Duration = Duration::from_secs(5);

/// The questions that programs ask a terminal, with the answers of one that is dark and modern. The
/// question about the cursor is answered apart.
const ANSWERS: &[(&[u8], &str)] = &[
    (b"\x1b[c", "\x1b[?62;22c"),
    (b"\x1b[0c", "\x1b[?62;22c"),
    (b"\x1b[?u", "\x1b[?0u"),
    (b"\x1b[5n", "\x1b[0n"),
    (b"\x1b[?2026$p", "\x1b[?2026;2$y"),
    (b"\x1b]10;?", "\x1b]10;rgb:cccc/cccc/cccc\x1b\\"),
    (b"\x1b]11;?", "\x1b]11;rgb:0000/0000/0000\x1b\\"),
];
/// The question about the cursor's place.
const CURSOR_QUESTION: &[u8] = b"\x1b[6n";

/// The screen as it is, and what was written so far.
struct Shown {
    parser: vt100::Parser,
    /// Bytes that were written.
    written: usize,
    /// The time at which the newest of them were read.
    at: Instant,
    has_ended: bool,
}

/// A program on a terminal of its own.
pub(super) struct Terminal {
    child: Child,
    keyboard: File,
    shown: Arc<(Mutex<Shown>, Condvar)>,
}

impl Terminal {
    /// Starts a command with a terminal as its own.
    pub(super) fn open(command: &Command) -> anyhow::Result<Self> {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
        grantpt(&ours)?;
        unlockpt(&ours)?;
        let name = ptsname(&ours, Vec::new())?;
        let theirs = File::options().read(true).write(true).open(name.to_str()?)?;
        tcsetwinsize(&theirs, Winsize { ws_row: ROWS, ws_col: COLUMNS, ws_xpixel: 0, ws_ypixel: 0 })?;
        let mut outer = Command::new("setsid");
        outer.arg("--ctty").arg(command.get_program()).args(command.get_args());
        outer.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        outer.current_dir(command.get_current_dir().context("the directory")?);
        let child = outer.stdin(theirs.try_clone()?).stdout(theirs.try_clone()?).stderr(theirs).spawn()?;
        drop(outer);
        let keyboard = File::from(ours);
        let (rows, columns) =
            (NonZero::new(ROWS).context("rows")?, NonZero::new(COLUMNS).context("columns")?);
        let parser = vt100::Parser::new(rows, columns, 0);
        let shown = Shown { parser, written: 0, at: Instant::now(), has_ended: false };
        let shown = Arc::new((Mutex::new(shown), Condvar::new()));
        follow(keyboard.try_clone()?, Arc::clone(&shown));
        Ok(Self { child, keyboard, shown })
    }

    fn lock(&self) -> MutexGuard<'_, Shown> {
        self.shown.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the screen is as wanted, and returns the time at which its bytes were read.
    pub(super) fn wait_until(&self, what: &str, is_wanted: impl Fn(&str) -> bool) -> anyhow::Result<Instant> {
        let deadline = Instant::now() + TIMEOUT;
        let mut shown = self.lock();
        loop {
            let screen = shown.parser.screen().contents();
            if is_wanted(&screen) {
                return Ok(shown.at);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() || shown.has_ended {
                bail!("{what} never came; the screen was:\n{screen}");
            }
            shown = self.shown.1.wait_timeout(shown, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Waits until a text is on the screen.
    pub(super) fn wait_for(&self, text: &str) -> anyhow::Result<Instant> {
        self.wait_until(&format!("`{text}`"), |screen| screen.contains(text))
    }

    /// Returns the text of the screen.
    pub(super) fn screen(&self) -> String {
        self.lock().parser.screen().contents()
    }

    /// Returns the number of bytes that were written so far.
    pub(super) fn written(&self) -> usize {
        self.lock().written
    }

    /// Waits until nothing was written for a time.
    pub(super) fn wait_until_quiet(&self, quiet: Duration) {
        loop {
            let since = self.lock().at.elapsed();
            match quiet.checked_sub(since) {
                Some(left) => std::thread::sleep(left + Duration::from_millis(1)),
                None => return,
            }
        }
    }

    /// Presses keys, and returns the time before.
    pub(super) fn press(&mut self, keys: &str) -> anyhow::Result<Instant> {
        let at = Instant::now();
        self.keyboard.write_all(keys.as_bytes())?;
        self.keyboard.flush()?;
        Ok(at)
    }

    /// Presses a letter, and returns the milliseconds until the screen has one more of it.
    pub(super) fn measure_key(&mut self, letter: &str) -> anyhow::Result<f64> {
        let before = self.screen().matches(letter).count();
        let pressed = self.press(letter)?;
        let seen =
            self.wait_until(&format!("the key {letter}"), |screen| screen.matches(letter).count() > before)?;
        Ok(seen.saturating_duration_since(pressed).as_secs_f64() * 1000.0)
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Presses the keys that end the program, and ends it itself if they don't.
    pub(super) fn close(mut self, keys: &str) -> anyhow::Result<()> {
        self.press(keys).ok();
        let deadline = Instant::now() + END_TIME;
        while self.child.try_wait()?.is_none() {
            if Instant::now() > deadline {
                self.child.kill()?;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }
}

/// Reads what the program writes, and answers its questions.
fn follow(mut reader: File, shown: Arc<(Mutex<Shown>, Condvar)>) {
    let (sender, pieces) = channel::<(Instant, Vec<u8>)>();
    let answers = reader.try_clone();
    // The time of a piece may not wait until the one before is understood.
    std::thread::spawn(move || {
        let mut piece = [0; 64 * 1024];
        while let Ok(count @ 1..) = reader.read(&mut piece) {
            let bytes = piece.get(..count).unwrap_or_default().to_vec();
            if sender.send((Instant::now(), bytes)).is_err() {
                return;
            }
        }
    });
    std::thread::spawn(move || {
        let Ok(mut answers) = answers else { return };
        for (at, bytes) in pieces {
            let mut now = shown.0.lock().unwrap_or_else(PoisonError::into_inner);
            now.parser.process(&bytes);
            now.written += bytes.len();
            now.at = at;
            let (row, column) = now.parser.screen().cursor_position();
            drop(now);
            shown.1.notify_all();
            let has = |question: &[u8]| bytes.windows(question.len()).any(|window| window == question);
            let mut answer: String =
                ANSWERS.iter().filter(|(question, _)| has(question)).map(|(_, answer)| *answer).collect();
            if has(CURSOR_QUESTION) {
                answer.push_str(&format!("\x1b[{};{}R", row + 1, column + 1));
            }
            if !answer.is_empty() {
                answers.write_all(answer.as_bytes()).ok();
            }
        }
        shown.0.lock().unwrap_or_else(PoisonError::into_inner).has_ended = true;
        shown.1.notify_all();
    });
}
