//! `jm` as a process: started, signalled, waited for, and what it left.

use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use journeyman_protocol::{Envelope, RunReport};
use rustix::process::{Pid, Signal, kill_process};

/// The longest that any run may take before the test gives it up. Only a hang comes near.
const TIMEOUT: Duration = Duration::from_secs(120);
/// How often a condition outside of any channel is looked at.
const LOOK: Duration = Duration::from_millis(3);

/// A command line about to be run.
pub struct Jm {
    command: Command,
    input: Option<Vec<u8>>,
    /// Standard input stays open and silent for as long as the process runs.
    held_open: bool,
}

/// How a run ended.
#[derive(Debug)]
pub struct Ran {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

/// A run underway.
pub struct Running {
    pid: Pid,
    ended: mpsc::Receiver<Ran>,
    lines: mpsc::Receiver<String>,
    _stdin: Option<ChildStdin>,
}

impl Jm {
    pub fn new(command: Command) -> Self {
        Self { command, input: None, held_open: false }
    }

    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    pub fn without(mut self, name: &str) -> Self {
        self.command.env_remove(name);
        self
    }

    pub fn dir(mut self, dir: impl AsRef<Path>) -> Self {
        self.command.current_dir(dir);
        self
    }

    /// Standard input holds these bytes.
    pub fn input(mut self, bytes: impl AsRef<[u8]>) -> Self {
        self.input = Some(bytes.as_ref().to_vec());
        self
    }

    /// Standard input is a pipe that nobody writes to or closes.
    pub fn input_held_open(mut self) -> Self {
        self.held_open = true;
        self
    }

    /// The plain command, for what the methods here don't do.
    pub fn command(self) -> Command {
        self.command
    }

    /// The same command line, run by `sh` within mounts of its own, after `setup`.
    pub fn after_mounts(self, setup: &str) -> Self {
        let script = format!("{setup} && exec \"$@\"");
        self.beneath("unshare", &["-Urm", "sh", "-c", &script, "sh"])
    }

    /// The same command line with so much address space at most, and so for each process that it
    /// starts.
    pub fn within_memory(self, kib: u64) -> Self {
        self.beneath("sh", &["-c", &format!("ulimit -v {kib} && exec \"$@\""), "sh"])
    }

    /// The same command line with one pipe for both outputs (`2>&1`).
    pub fn merged(self) -> Self {
        self.beneath("sh", &["-c", "exec \"$@\" 2>&1", "sh"])
    }

    /// The same command line as further arguments of another program.
    fn beneath(self, program: &str, arguments: &[&str]) -> Self {
        let mut outer = Command::new(program);
        outer.args(arguments);
        outer.arg(self.command.get_program()).args(self.command.get_args()).env_clear();
        for (name, value) in self.command.get_envs() {
            outer.env(name, value.unwrap_or_default());
        }
        if let Some(dir) = self.command.get_current_dir() {
            outer.current_dir(dir);
        }
        Self { command: outer, ..self }
    }

    pub fn start(mut self) -> Running {
        let stdin = if self.input.is_some() || self.held_open { Stdio::piped() } else { Stdio::null() };
        let mut child =
            self.command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let pid = Pid::from_child(&child);
        let mut held = child.stdin.take();
        if let Some(bytes) = self.input {
            // What the process doesn't read is no concern of this side.
            held.take().unwrap().write_all(&bytes).ok();
        }
        let (tell, ended) = mpsc::channel();
        let (show, lines) = mpsc::channel();
        std::thread::spawn(move || tell.send(watch(child, &show)));
        Running { pid, ended, lines, _stdin: held }
    }

    pub fn run(self) -> Ran {
        self.start().wait()
    }
}

/// Collects both outputs until the process has ended, passing the lines of standard output on as
/// they come.
fn watch(mut child: Child, show: &mpsc::Sender<String>) -> Ran {
    let mut errors = child.stderr.take().unwrap();
    let stderr = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        errors.read_to_end(&mut bytes).unwrap();
        bytes
    });
    let mut stdout = Vec::new();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    loop {
        let begin = stdout.len();
        if out.read_until(b'\n', &mut stdout).unwrap() == 0 {
            break;
        }
        show.send(String::from_utf8_lossy(&stdout[begin..]).into_owned()).ok();
    }
    let status = child.wait().unwrap();
    let text = |bytes| String::from_utf8(bytes).expect("the output is UTF-8");
    Ran { status, stdout: text(stdout), stderr: text(stderr.join().unwrap()) }
}

impl Running {
    pub fn signal(&self, signal: Signal) {
        kill_process(self.pid, signal).unwrap();
    }

    /// Waits for a line of standard output that holds `text`.
    pub fn line_with(&self, text: &str) -> String {
        loop {
            let line = self.lines.recv_timeout(TIMEOUT).expect("the line never came");
            if line.contains(text) {
                return line;
            }
        }
    }

    /// Waits for the end, whatever it is.
    pub fn gone(self) {
        self.wait();
    }

    pub fn wait(self) -> Ran {
        match self.ended.recv_timeout(TIMEOUT) {
            Ok(ran) => ran,
            Err(_) => {
                kill_process(self.pid, Signal::KILL).ok();
                panic!("it didn't end within {TIMEOUT:?}");
            }
        }
    }
}

impl Ran {
    /// The exit code; −1 after a signal.
    pub fn code(&self) -> i32 {
        assert_eq!(self.status.signal(), None, "ended by a signal\n{}", self.stderr);
        self.status.code().unwrap_or(-1)
    }

    /// Ended with this code and without a panic.
    #[track_caller]
    pub fn expect(self, code: i32) -> Self {
        assert!(!self.stderr.contains("panicked at"), "a panic\n{}", self.stderr);
        let (stdout, stderr) = (&self.stdout, &self.stderr);
        assert_eq!(self.code(), code, "the exit code\n--- stdout\n{stdout}\n--- stderr\n{stderr}");
        self
    }

    /// The one object of `--json`, on a line of its own and alone; its exit code is the process's.
    #[track_caller]
    pub fn report(&self) -> RunReport {
        let line = self.stdout.strip_suffix('\n').expect("one line");
        assert!(!line.contains('\n'), "one line, not\n{line}");
        let report: RunReport = serde_json::from_str(line).expect("a whole report");
        assert_eq!(i32::from(report.exit_code), self.code());
        assert_eq!(report.outcome.exit_code(), report.exit_code);
        report
    }

    /// The events of `--stream-json` or `jm show --json`.
    #[track_caller]
    pub fn events(&self) -> Vec<Envelope> {
        self.stdout
            .lines()
            .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
            .collect()
    }

    /// All of these are somewhere in the error output.
    #[track_caller]
    pub fn says(&self, wanted: &[&str]) -> &Self {
        for text in wanted {
            assert!(self.stderr.contains(text), "`{text}` is not in\n{}", self.stderr);
        }
        self
    }

    /// All of these are somewhere in the result.
    #[track_caller]
    pub fn prints(&self, wanted: &[&str]) -> &Self {
        for text in wanted {
            assert!(self.stdout.contains(text), "`{text}` is not in\n{}", self.stdout);
        }
        self
    }
}

/// Whether a process with exactly this command line runs, in a sandbox or not.
pub fn is_running(command: &str) -> bool {
    let all = std::fs::read_dir("/proc").unwrap();
    all.filter_map(Result::ok)
        .filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok())
        .any(|line| String::from_utf8_lossy(&line).replace('\0', " ").trim_end() == command)
}

/// Waits until something outside has become true.
#[track_caller]
pub fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !condition() {
        assert!(begin.elapsed() < TIMEOUT, "{what}: never");
        std::thread::sleep(LOOK);
    }
}
