//! A terminal of one's own, so that what is only done on one can be seen, and questions answered.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::num::NonZero;
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

/// The longest that a test waits for words that have to come.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The height of a person's terminal.
const ROWS: u16 = 30;

/// Both ends: ours, and the one that programs take for a terminal.
fn pair() -> (OwnedFd, File) {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&ours).unwrap();
    unlockpt(&ours).unwrap();
    let name = ptsname(&ours, Vec::new()).unwrap();
    let theirs = File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
    (ours, theirs)
}

/// Runs a command whose outputs are a terminal, and gives what it wrote there.
pub fn on_a_terminal(mut command: Command) -> String {
    let (ours, theirs) = pair();
    let copy = theirs.try_clone().unwrap();
    let mut child = command.stdin(Stdio::null()).stdout(theirs).stderr(copy).spawn().unwrap();
    // The command keeps copies of the other end; they have to go for the reading to end.
    drop(command);
    let mut bytes = Vec::new();
    // The end of a terminal is an error (EIO) on Linux.
    File::from(ours).read_to_end(&mut bytes).ok();
    assert!(child.wait().unwrap().code().is_some());
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Where standard output goes.
#[derive(Debug, Clone, Copy)]
pub enum Output {
    /// Nowhere.
    Apart,
    /// To the same terminal.
    Shown,
}

/// A person at a terminal, and the program they started there.
pub struct Person {
    child: Child,
    keyboard: File,
    screen: Arc<(Mutex<Screen>, Condvar)>,
    reading: JoinHandle<()>,
    /// How much of the output has been read.
    read: usize,
}

/// The output of a terminal.
struct Screen {
    /// Everything that came.
    text: String,
    /// The bytes of a character that hasn't come whole.
    begun: Vec<u8>,
    /// The output as a terminal shows it.
    shown: vt100::Parser,
}

impl Screen {
    fn take(&mut self, bytes: &[u8]) {
        self.shown.process(bytes);
        self.begun.extend(bytes);
        let whole = match std::str::from_utf8(&self.begun) {
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            _ => self.begun.len(),
        };
        let whole: Vec<u8> = self.begun.drain(..whole).collect();
        self.text.push_str(&String::from_utf8_lossy(&whole));
    }

    /// Returns true if the words came after `read`, or stand on the screen for the first time: a line
    /// that is drawn piece by piece has other bytes between them.
    fn has(&self, words: &str, read: usize) -> bool {
        let is_new = || !self.text[..read].contains(words);
        self.text[read..].contains(words) || is_new() && self.shown.screen().contents().contains(words)
    }
}

impl Person {
    /// Starts the command with this terminal as its own, standard output apart (`jm run … >
    /// result`).
    pub fn start(command: Command) -> Self {
        Self::start_at(command, 100, Output::Apart)
    }

    /// Starts the command with a terminal of so many columns as its own.
    pub fn start_at(command: Command, columns: u16, output: Output) -> Self {
        let (ours, theirs) = pair();
        let size = rustix::termios::Winsize { ws_row: ROWS, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        rustix::termios::tcsetwinsize(&theirs, size).unwrap();
        let mut outer = Command::new("setsid");
        outer.args(["--ctty", "--wait"]).arg(command.get_program()).args(command.get_args()).env_clear();
        for (name, value) in command.get_envs() {
            outer.env(name, value.unwrap_or_default());
        }
        if let Some(dir) = command.get_current_dir() {
            outer.current_dir(dir);
        }
        let copy = theirs.try_clone().unwrap();
        let stdout = match output {
            Output::Apart => Stdio::null(),
            Output::Shown => copy.try_clone().unwrap().into(),
        };
        let child = outer.stdin(theirs).stdout(stdout).stderr(copy).spawn().unwrap();
        drop(outer);
        let (rows, columns) = (NonZero::new(ROWS).unwrap(), NonZero::new(columns).unwrap());
        let shown = vt100::Parser::new(rows, columns, 0);
        let begun = Screen { text: String::new(), begun: Vec::new(), shown };
        let screen = Arc::new((Mutex::new(begun), Condvar::new()));
        let (shown, mut from) = (Arc::clone(&screen), File::from(ours.try_clone().unwrap()));
        let reading = std::thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Ok(count @ 1..) = from.read(&mut piece) {
                shown.0.lock().unwrap().take(&piece[..count]);
                shown.1.notify_all();
            }
        });
        Self { child, keyboard: File::from(ours), screen, reading, read: 0 }
    }

    /// Waits until these words are on the screen, after those waited for before.
    #[track_caller]
    pub fn sees(&mut self, words: &str) {
        let screen = self.screen.0.lock().unwrap();
        let waited = self
            .screen
            .1
            .wait_timeout_while(screen, TIMEOUT, |screen| !screen.has(words, self.read))
            .unwrap();
        assert!(!waited.1.timed_out(), "`{words}` never came after\n{}", waited.0.text);
        let at = waited.0.text[self.read..].find(words);
        self.read += at.map_or(0, |at| at + words.len());
    }

    /// Types; `\x03` is Ctrl-C.
    pub fn types(&mut self, text: &str) {
        self.keyboard.write_all(text.as_bytes()).unwrap();
    }

    /// Gives the terminal another number of rows.
    pub fn resizes(&mut self, rows: u16) {
        let mut size = rustix::termios::tcgetwinsize(&self.keyboard).unwrap();
        size.ws_row = rows;
        let mut screen = self.screen.0.lock().unwrap();
        let columns = NonZero::new(size.ws_col).unwrap();
        screen.shown.screen_mut().set_size(NonZero::new(rows).unwrap(), columns);
        // What comes from here on is for the new size.
        self.read = screen.text.len();
        drop(screen);
        rustix::termios::tcsetwinsize(&self.keyboard, size).unwrap();
    }

    /// Asks the program at the terminal to end, as a shutdown does.
    pub fn terminates(&mut self) {
        let group = rustix::termios::tcgetpgrp(&self.keyboard).unwrap();
        rustix::process::kill_process_group(group, rustix::process::Signal::TERM).unwrap();
    }

    /// Ends the program at the terminal at once, as `kill -9` does.
    pub fn kills(&mut self) {
        let group = rustix::termios::tcgetpgrp(&self.keyboard).unwrap();
        rustix::process::kill_process_group(group, rustix::process::Signal::KILL).unwrap();
    }

    /// Waits for the end: the exit code, and everything that was on the screen.
    pub fn ends(mut self) -> (i32, String) {
        let code = self.child.wait().unwrap().code().unwrap_or(-1);
        self.reading.join().unwrap();
        (code, self.screen.0.lock().unwrap().text.clone())
    }
}
