//! The conversation in a terminal: how soon a key shows, and what it costs while words arrive. The
//! same of other programs, over the same model and terminal.

mod contenders;
mod costs;
mod model;
mod terminal;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::ensure;

use self::contenders::{Contender, Place};
use self::costs::{count_switches, cpu_time, peak_memory};
use self::model::{LONG_REQUEST, Model, TOKENS, word};
use self::terminal::Terminal;
use super::series::spread;
use super::turns::git;

/// Files of the project.
const FILES: usize = 5_000;
/// Runs of what is quick.
const RUNS: usize = 15;
/// Starts of programs of other makers, some of which take seconds.
const OTHER_RUNS: usize = 5;
/// Keys that are typed while words arrive.
const KEYS: usize = 200;
/// Calls of the long session: each has some eight events.
const CALLS: usize = 1_250;
/// Time without a key or an event in which wake-ups are counted.
const IDLE_TIME: Duration = Duration::from_secs(5);
/// Time after the start in which a program may still do what it does once.
const SETTLING_TIME: Duration = Duration::from_secs(5);
/// Time of streaming in which the processor is measured.
const STREAMING_TIME: Duration = Duration::from_secs(8);
/// Time without output after which a reply is taken for shown.
const QUIET_TIME: Duration = Duration::from_secs(2);
/// Maximum time that the long reply takes; its tokens alone take 50 seconds.
const MAX_REPLY_TIME: Duration = Duration::from_secs(300);
/// The programs of other makers.
const OTHERS: [&str; 5] = ["codex", "claude", "opencode", "gemini", "pi"];

/// Measures the conversation of each build, and of the other programs in the folders.
pub(crate) fn run(programs: &[PathBuf], folders: &[PathBuf]) -> anyhow::Result<()> {
    let project = tempfile::tempdir()?;
    for number in 0..FILES {
        let directory = project.path().join(format!("src/part{}", number / 50));
        std::fs::create_dir_all(&directory)?;
        std::fs::write(directory.join(format!("file{number}.rs")), format!("pub fn f{number}() {{}}\n"))?;
    }
    git(project.path())?;
    let model = Model::start()?;
    for jm in programs {
        let home = tempfile::tempdir()?;
        let place = Place { project: project.path(), home: home.path(), port: model.port };
        measure(&contenders::own(jm, &place), &model, RUNS)?;
        // The other programs are measured whatever becomes of this one.
        if let Err(error) = measure_opening(jm, project.path(), home.path()) {
            println!("  opening a long session was not measured: {error}");
        }
    }
    for name in OTHERS {
        let home = tempfile::tempdir()?;
        let place = Place { project: project.path(), home: home.path(), port: model.port };
        let found = folders.iter().find_map(|folder| contenders::other(name, folder, &place).transpose());
        match found {
            None => println!("tui: {name}: not there"),
            Some(contender) => {
                if let Err(error) = measure(&contender?, &model, OTHER_RUNS) {
                    println!("  not measured: {error}");
                }
            }
        }
    }
    Ok(())
}

fn measure(contender: &Contender, model: &Model, runs: usize) -> anyhow::Result<()> {
    println!("tui: {}", contender.name);
    measure_start(contender, runs)?;
    measure_streaming(contender, model)?;
    measure_bytes(contender, model)
}

fn open(contender: &Contender) -> anyhow::Result<(Terminal, Instant)> {
    let terminal = Terminal::open(&contender.command)?;
    let ready = terminal.wait_for(contender.ready)?;
    Ok((terminal, ready))
}

fn measure_start(contender: &Contender, runs: usize) -> anyhow::Result<()> {
    let mut times = Vec::new();
    for run in 0..runs {
        let started = Instant::now();
        let (terminal, ready) = open(contender)?;
        times.push((ready - started).as_secs_f64() * 1000.0);
        if run == 0 {
            std::thread::sleep(SETTLING_TIME);
            let before = count_switches(terminal.pid());
            std::thread::sleep(IDLE_TIME);
            let idle = count_switches(terminal.pid()).saturating_sub(before);
            println!("  wake-ups in {} s without a key: {idle} (asked: 0)", IDLE_TIME.as_secs());
            println!("  memory at the prompt, MiB: {}", peak_memory(terminal.pid()) / 1024);
        }
        terminal.close(contender.quit)?;
    }
    println!("  start to first prompt, {FILES} files, ms: {} (asked: 30)", spread(&mut times));
    Ok(())
}

/// Sends the message that asks for the long reply, and waits until it arrives.
fn ask(terminal: &mut Terminal, contender: &Contender, model: &Model) -> anyhow::Result<()> {
    model.forget();
    // Some take keys only a moment after they look ready.
    terminal.wait_until_quiet(Duration::from_millis(500));
    terminal.press(LONG_REQUEST)?;
    terminal.wait_for(LONG_REQUEST)?;
    std::thread::sleep(Duration::from_millis(300));
    terminal.press(contender.send)?;
    let deadline = Instant::now() + Duration::from_secs(60);
    while model.sent() < 100 {
        ensure!(Instant::now() < deadline, "no request came; the screen was:\n{}", terminal.screen());
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

fn share(terminal: &Terminal, work: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<f64> {
    let (cpu, began) = (cpu_time(terminal.pid())?, Instant::now());
    work()?;
    let spent = cpu_time(terminal.pid())?.saturating_sub(cpu);
    Ok(spent.as_secs_f64() / began.elapsed().as_secs_f64() * 100.0)
}

fn measure_streaming(contender: &Contender, model: &Model) -> anyhow::Result<()> {
    let (mut terminal, _) = open(contender)?;
    ask(&mut terminal, contender, model)?;
    let alone = share(&terminal, || {
        std::thread::sleep(STREAMING_TIME);
        Ok(())
    })?;
    let (cpu, began) = (cpu_time(terminal.pid())?, Instant::now());
    let mut delays = Vec::new();
    for key in 0..KEYS {
        std::thread::sleep(Duration::from_millis(40));
        // Letters that no token has.
        let letter = ["Q", "Z", "X", "J"].get(key % 4).copied().unwrap_or("Q");
        delays.push(terminal.measure_key(letter)?);
    }
    let spent = cpu_time(terminal.pid())?.saturating_sub(cpu);
    let typing = spent.as_secs_f64() / began.elapsed().as_secs_f64() * 100.0;
    delays.sort_by(f64::total_cmp);
    let at = |part: usize| delays.get((KEYS * part / 100).min(KEYS - 1)).copied().unwrap_or_default();
    println!(
        "  key to screen at 200 tokens a second, ms: median {:.1}, p99 {:.1} (asked: 8)",
        at(50),
        at(99)
    );
    println!("  processor while it streams: {alone:.1} %, with 25 keys a second {typing:.1} % (asked: 3)");
    println!("  memory while it streams, MiB: {}", peak_memory(terminal.pid()) / 1024);
    // What was typed goes first.
    terminal.press("\x03\x1b")?;
    std::thread::sleep(Duration::from_millis(500));
    terminal.close(contender.quit)
}

fn measure_bytes(contender: &Contender, model: &Model) -> anyhow::Result<()> {
    let (mut terminal, _) = open(contender)?;
    ask(&mut terminal, contender, model)?;
    let before = terminal.written();
    let deadline = Instant::now() + MAX_REPLY_TIME;
    while model.sent() < TOKENS && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(50));
    }
    ensure!(model.sent() >= TOKENS, "the reply was cut off");
    // Some go on drawing without end.
    let quiet = Instant::now() + 3 * QUIET_TIME;
    while Instant::now() < quiet {
        let written = terminal.written();
        std::thread::sleep(QUIET_TIME);
        if terminal.written() == written {
            break;
        }
    }
    let text: usize = (0..TOKENS).map(|token| word(token).len()).sum();
    let times = (terminal.written() - before) as f64 / text as f64;
    println!("  bytes for a reply of {TOKENS} tokens: {times:.2} times the text (asked: 3)");
    terminal.close(contender.quit)
}

fn measure_opening(jm: &Path, project: &Path, home: &Path) -> anyhow::Result<()> {
    let server = super::server::Server::start(super::server::Call::shell(CALLS))?;
    let url = format!("http://127.0.0.1:{}", server.address.port());
    let state = home.join("long");
    let own = |words: &[&str]| {
        let mut command = Command::new(jm);
        command.args(words).args(["--wire", "chat", "--model", "bench", "--allow-root", "--base-url", &url]);
        command.current_dir(project).env("XDG_STATE_HOME", &state).env("JM_API_KEY", "none");
        command.env("TERM", "xterm-256color");
        command
    };
    let run =
        ["run", "--in-place", "--no-check", "--quiet", "--mode", "auto", "--max-turns", "2000", "echo often"];
    // Calls without an end are wanted here.
    own(&run).env("JM_LOOP_GUARD", "false").stdout(Stdio::null()).stderr(Stdio::null()).status()?;
    let mut times = Vec::new();
    let mut memory = 0;
    for _ in 0..RUNS {
        let mut terminal = Terminal::open(&own(&["resume"]))?;
        terminal.wait_for("Esc closes")?;
        let pressed = terminal.press("\r")?;
        let opened = terminal.wait_for("in the transcript")?;
        times.push((opened - pressed).as_secs_f64() * 1000.0);
        memory = memory.max(peak_memory(terminal.pid()));
        terminal.close("\x04")?;
    }
    println!("  opening a session of {CALLS} calls, ms: {} (asked: 150)", spread(&mut times));
    println!("  memory then, MiB: {} (asked: 40)", memory / 1024);
    Ok(())
}
