//! The conversation in a terminal: how soon a key shows, and what it costs while words arrive.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use serde_json::json;

use super::series::spread;
use super::turns::git;

/// Files of the project.
const FILES: usize = 5_000;
/// Runs of what is quick.
const RUNS: usize = 15;
/// Keys that are typed while words arrive.
const KEYS: usize = 200;
/// Tokens of the long reply; a token is four letters.
const TOKENS: usize = 10_000;
/// Time between two tokens: 200 a second.
const TOKEN_INTERVAL: Duration = Duration::from_millis(5);
/// Calls of the long session: each has some eight events.
const CALLS: usize = 1_250;
/// Time without a key or an event in which wake-ups are counted.
const IDLE_TIME: Duration = Duration::from_secs(5);
/// Maximum time that words are waited for.
const TIMEOUT: Duration = Duration::from_secs(120);
/// The words of the composer when it is ready.
const READY: &str = "say what to do";

/// A program on a terminal of its own.
struct Terminal {
    child: Child,
    keyboard: File,
    pieces: Receiver<(Instant, Vec<u8>)>,
    /// Bytes since the last look.
    seen: Vec<u8>,
    written: usize,
}

impl Terminal {
    /// Starts a command with a terminal as its own.
    fn open(command: &Command) -> anyhow::Result<Self> {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
        grantpt(&ours)?;
        unlockpt(&ours)?;
        let name = ptsname(&ours, Vec::new())?;
        let theirs = File::options().read(true).write(true).open(name.to_str()?)?;
        tcsetwinsize(&theirs, Winsize { ws_row: 40, ws_col: 100, ws_xpixel: 0, ws_ypixel: 0 })?;
        let mut outer = Command::new("setsid");
        outer.arg("--ctty").arg(command.get_program()).args(command.get_args());
        outer.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        outer.current_dir(command.get_current_dir().context("the directory")?);
        let child = outer.stdin(theirs.try_clone()?).stdout(theirs.try_clone()?).stderr(theirs).spawn()?;
        drop(outer);
        let keyboard = File::from(ours);
        let mut reader = keyboard.try_clone()?;
        let (sender, pieces) = channel();
        std::thread::spawn(move || {
            let mut piece = [0; 64 * 1024];
            while let Ok(count @ 1..) = reader.read(&mut piece) {
                let bytes = piece.get(..count).unwrap_or_default().to_vec();
                if sender.send((Instant::now(), bytes)).is_err() {
                    return;
                }
            }
        });
        Ok(Self { child, keyboard, pieces, seen: Vec::new(), written: 0 })
    }

    /// Waits until a text was written, and returns the time. What came before is forgotten.
    fn wait_for(&mut self, text: &str) -> anyhow::Result<Instant> {
        let deadline = Instant::now() + TIMEOUT;
        let mut at = Instant::now();
        loop {
            if let Some(place) = self.seen.windows(text.len()).position(|window| window == text.as_bytes()) {
                self.seen.drain(..place + text.len());
                return Ok(at);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            let (arrived, bytes) =
                self.pieces.recv_timeout(left).with_context(|| format!("`{text}` never came"))?;
            at = arrived;
            self.written += bytes.len();
            self.seen.extend(bytes);
        }
    }

    fn press(&mut self, keys: &str) -> anyhow::Result<Instant> {
        let at = Instant::now();
        self.keyboard.write_all(keys.as_bytes())?;
        self.keyboard.flush()?;
        Ok(at)
    }

    fn drain(&mut self) {
        while let Ok((_, bytes)) = self.pieces.try_recv() {
            self.written += bytes.len();
        }
        self.seen.clear();
    }

    fn pid(&self) -> u32 {
        self.child.id()
    }

    fn close(mut self) -> anyhow::Result<()> {
        self.press("\x04")?;
        self.child.wait()?;
        Ok(())
    }
}

/// Starts a model that streams `TOKENS` tokens to whoever asks, 200 a second or all at once.
fn start_model(interval: Duration) -> anyhow::Result<u16> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let port = listener.local_addr()?.port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // A client that goes away ends its own reply alone.
            std::thread::spawn(move || stream_reply(stream, interval).ok());
        }
    });
    Ok(port)
}

fn stream_reply(mut stream: std::net::TcpStream, interval: Duration) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut request = Vec::new();
    let mut byte = [0; 64 * 1024];
    while !request.windows(4).any(|window| window == b"\r\n\r\n") {
        let count = stream.read(&mut byte)?;
        request.extend_from_slice(byte.get(..count).unwrap_or_default());
    }
    write!(
        stream,
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    )?;
    let mut send = |event: &str| {
        let event = format!("data: {event}\n\n");
        write!(stream, "{:x}\r\n{event}\r\n", event.len())
    };
    let chunk = |delta: serde_json::Value, finish: Option<&str>| {
        json!({"id": "b", "model": "b", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})
            .to_string()
    };
    for token in 0..TOKENS {
        send(&chunk(json!({ "content": word(token) }), None))?;
        std::thread::sleep(interval);
    }
    send(&chunk(json!({}), Some("stop")))?;
    send(&json!({"id": "b", "choices": [], "usage": {"prompt_tokens": 1000, "completion_tokens": TOKENS, "total_tokens": 1000 + TOKENS}}).to_string())?;
    send("[DONE]")?;
    write!(stream, "0\r\n\r\n")
}

/// A token of four letters, another one each time; some end a paragraph. None has a letter that is
/// typed.
fn word(token: usize) -> String {
    // The constants of a well-known generator: the words only have to look like no repetition.
    let noise = (token as u32).wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
    let letter = |shift: u32| char::from(b'a' + u8::try_from((noise >> shift) % 23).unwrap_or(0));
    let end = if token % 60 == 59 { "\n\n" } else { " " };
    format!("{}{}{}{end}", letter(8), letter(14), letter(20))
}

fn conversation(jm: &Path, place: &Path, state: &Path, port: u16, flags: &[&str]) -> Command {
    let mut command = Command::new(jm);
    command.args([
        "chat",
        "--wire",
        "chat",
        "--model",
        "bench",
        "--mode",
        "plan",
        "--allow-root",
        "--base-url",
    ]);
    command.arg(format!("http://127.0.0.1:{port}"));
    command.args(flags);
    command.current_dir(place);
    command.env("XDG_STATE_HOME", state);
    command.env("XDG_CONFIG_HOME", state.join("config"));
    command.env("JM_API_KEY", "none");
    command.env("TERM", "xterm-256color");
    command
}

/// Measures the conversation, each program apart.
pub(crate) fn run(programs: &[PathBuf]) -> anyhow::Result<()> {
    let place = tempfile::tempdir()?;
    for number in 0..FILES {
        let directory = place.path().join(format!("src/part{}", number / 50));
        std::fs::create_dir_all(&directory)?;
        std::fs::write(directory.join(format!("file{number}.rs")), format!("pub fn f{number}() {{}}\n"))?;
    }
    git(place.path())?;
    for jm in programs {
        println!("tui: {}", jm.display());
        let state = tempfile::tempdir()?;
        measure_start(jm, place.path(), state.path())?;
        measure_streaming(jm, place.path(), state.path())?;
        measure_bytes(jm, place.path(), state.path())?;
        measure_opening(jm, place.path(), state.path())?;
    }
    Ok(())
}

fn measure_start(jm: &Path, place: &Path, state: &Path) -> anyhow::Result<()> {
    let port = start_model(TOKEN_INTERVAL)?;
    let mut times = Vec::new();
    let mut idle = 0;
    for run in 0..RUNS {
        let started = Instant::now();
        let mut terminal = Terminal::open(&conversation(jm, place, state, port, &[]))?;
        let ready = terminal.wait_for(READY)?;
        times.push((ready - started).as_secs_f64() * 1000.0);
        if run == 0 {
            // The index and the branch are read after the first prompt.
            std::thread::sleep(Duration::from_secs(3));
            terminal.drain();
            let before = count_switches(terminal.pid())?;
            std::thread::sleep(IDLE_TIME);
            idle = count_switches(terminal.pid())? - before;
        }
        terminal.close()?;
    }
    println!("  start to first prompt, {FILES} files, ms: {} (asked: 30)", spread(&mut times));
    println!("  wake-ups in {} s without a key: {idle} (asked: 0)", IDLE_TIME.as_secs());
    Ok(())
}

fn measure_streaming(jm: &Path, place: &Path, state: &Path) -> anyhow::Result<()> {
    let port = start_model(TOKEN_INTERVAL)?;
    let mut terminal = Terminal::open(&conversation(jm, place, state, port, &["say much"]))?;
    terminal.wait_for("writes")?;
    let (cpu, began) = (cpu_time(terminal.pid())?, Instant::now());
    let mut delays = Vec::new();
    for key in 0..KEYS {
        std::thread::sleep(Duration::from_millis(40));
        terminal.drain();
        // A letter that stands nowhere else on the screen.
        let letter = ["Q", "Z", "X", "J"].get(key % 4).copied().unwrap_or("Q");
        let pressed = terminal.press(letter)?;
        delays.push((terminal.wait_for(letter)? - pressed).as_secs_f64() * 1000.0);
    }
    let share = (cpu_time(terminal.pid())? - cpu).as_secs_f64() / began.elapsed().as_secs_f64();
    delays.sort_by(f64::total_cmp);
    let at = |part: usize| delays.get((KEYS * part / 100).min(KEYS - 1)).copied().unwrap_or_default();
    println!(
        "  key to screen at 200 tokens a second, ms: median {:.1}, p99 {:.1} (asked: 8)",
        at(50),
        at(99)
    );
    // Without keys.
    let (cpu, began) = (cpu_time(terminal.pid())?, Instant::now());
    std::thread::sleep(Duration::from_secs(8));
    let alone = (cpu_time(terminal.pid())? - cpu).as_secs_f64() / began.elapsed().as_secs_f64();
    println!(
        "  processor while it streams: {:.1} %, with 25 keys a second {:.1} % (asked: 3)",
        alone * 100.0,
        share * 100.0
    );
    terminal.press("\x03\x1b")?;
    terminal.wait_for(READY)?;
    terminal.close()
}

fn measure_bytes(jm: &Path, place: &Path, state: &Path) -> anyhow::Result<()> {
    let port = start_model(TOKEN_INTERVAL)?;
    let mut terminal = Terminal::open(&conversation(jm, place, state, port, &["say much"]))?;
    terminal.wait_for("writes")?;
    terminal.written = 0;
    terminal.wait_for(READY)?;
    let text: usize = (0..TOKENS).map(|token| word(token).len()).sum();
    let times = terminal.written as f64 / text as f64;
    println!("  bytes for a reply of {TOKENS} tokens: {times:.2} times the text (asked: 3)");
    terminal.close()
}

fn measure_opening(jm: &Path, place: &Path, state: &Path) -> anyhow::Result<()> {
    let server = super::server::Server::start(super::server::Call::shell(CALLS))?;
    let port = server.address.port();
    let mut command = Command::new(jm);
    command.args([
        "run",
        "--wire",
        "chat",
        "--model",
        "bench",
        "--allow-root",
        "--in-place",
        "--no-check",
        "--quiet",
    ]);
    command.args([
        "--mode",
        "plan",
        "--max-turns",
        "2000",
        "--base-url",
        &format!("http://127.0.0.1:{port}"),
        "go on",
    ]);
    command.current_dir(place).env("XDG_STATE_HOME", state).env("JM_API_KEY", "none");
    command.stdout(Stdio::null()).stderr(Stdio::null()).status()?;
    let mut times = Vec::new();
    let mut memory = 0;
    for _ in 0..RUNS {
        let mut resume = Command::new(jm);
        resume.args(["resume", "--wire", "chat", "--model", "bench", "--allow-root", "--base-url"]);
        resume.arg(format!("http://127.0.0.1:{port}"));
        resume.current_dir(place);
        resume.env("XDG_STATE_HOME", state);
        resume.env("JM_API_KEY", "none");
        resume.env("TERM", "xterm-256color");
        let mut terminal = Terminal::open(&resume)?;
        terminal.wait_for("Go on with a session")?;
        terminal.wait_for("Esc closes")?;
        let pressed = terminal.press("\r")?;
        let opened = terminal.wait_for("in the transcript")?;
        times.push((opened - pressed).as_secs_f64() * 1000.0);
        memory = memory.max(peak_memory(terminal.pid())?);
        terminal.close()?;
    }
    ensure!(!times.is_empty(), "no run");
    println!("  opening a session of {CALLS} calls, ms: {} (asked: 150)", spread(&mut times));
    println!("  memory then, MiB: {} (asked: 40)", memory / 1024);
    Ok(())
}

/// Voluntary and other switches of all threads of a process.
fn count_switches(pid: u32) -> anyhow::Result<u64> {
    let mut sum = 0;
    for thread in std::fs::read_dir(format!("/proc/{pid}/task"))? {
        let status = std::fs::read_to_string(thread?.path().join("status"))?;
        let switches = status.lines().filter(|line| line.contains("ctxt_switches"));
        sum += switches.filter_map(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok()).sum::<u64>();
    }
    Ok(sum)
}

/// Processor time of a process so far.
fn cpu_time(pid: u32) -> anyhow::Result<Duration> {
    /// Ticks in a second, as every Linux counts them for programs.
    const TICKS: u64 = 100;
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let fields = stat.rsplit_once(')').context("its name")?.1;
    let ticks: u64 =
        fields.split_whitespace().skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    Ok(Duration::from_millis(ticks * 1000 / TICKS))
}

/// The largest memory of a process so far, in KiB.
fn peak_memory(pid: u32) -> anyhow::Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).context("its memory")?;
    Ok(line.split_whitespace().nth(1).and_then(|kib| kib.parse().ok()).unwrap_or_default())
}
