//! What a session costs against a model that answers at once: `cargo run --release -p
//! journeyman-agent --example session_cost -- turns|memory|idle|many|open|streamed [DIR]`, or all
//! of them by `cargo xtask bench session`.
//!
//! Each is run in a process of its own, so that memory is its own. `DIR` is where the log is made
//! and removed again; the temporary directory if not given.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout
)]

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures_util::future::{BoxFuture, join_all};
use futures_util::{FutureExt as _, StreamExt as _, stream};
use journeyman_agent::hooks::Hooks;
use journeyman_agent::{
    ChecksSetting, CutOffPolicy, EventFilter, RunSettings, SessionHandle, SessionParts, Since, resume, start,
};
use journeyman_model::{Delta, DeltaStream, Model, ModelRequest, Reply};
use journeyman_policy::Policy;
use journeyman_policy::secrets::Redactor;
use journeyman_protocol::{
    Block, CallId, Effects, Message, Role, SessionId, StopReason, Tokens, ToolSpec, ToolUse, UnixMillis,
    Usage,
};
use journeyman_sandbox::{Sandbox, SandboxSettings, Toolchains};
use journeyman_store::{Blobs, MemoryStore, SqliteStore, Store};
use journeyman_tools::{Registry, SharedIndex, Tool, ToolContext, ToolError, ToolOutput};
use journeyman_workspace::{Options, Workspace};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// Turns of the long session.
const TURNS: usize = 10_000;
/// Turns whose cost is added up, at the beginning and at the end.
const TURNS_PER_END: usize = 200;
/// Turns that are measured together.
const TURNS_PER_SAMPLE: usize = 10;
/// Turns that make 100,000 entries.
const LONG_TURNS: usize = 4_700;
/// Sessions that wait for a message.
const IDLE_SESSIONS: usize = 1_000;
/// Sessions that work at once, and turns of each.
const CONCURRENT_SESSIONS: usize = 200;
const CONCURRENT_TURNS: usize = 30;
const MEGABYTE: usize = 1_000_000;
/// As providers send it.
const PIECE_BYTES: usize = 40;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let dir = match arguments.get(1) {
        Some(dir) => tempfile::tempdir_in(dir),
        None => tempfile::tempdir(),
    };
    let dir = dir.unwrap();
    let bench = Bench::new(dir.path());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        match arguments.first().map(String::as_str) {
            Some("turns") => turns(&bench, bench.sqlite(), "sqlite").await,
            Some("memory") => turns(&bench, Arc::new(MemoryStore::new()), "in memory").await,
            Some("idle") => idle(&bench).await,
            Some("many") => many(&bench).await,
            Some("open") => open(&bench).await,
            Some("streamed") => streamed(&bench).await,
            _ => panic!("turns, memory, idle, many, open or streamed"),
        }
    });
}

/// 10,000 turns in one session: processor time and memory at the beginning and at the end.
async fn turns(bench: &Bench, store: Arc<dyn Store>, name: &str) {
    let model = Arc::new(Instantly::new(TURNS, ""));
    let handle = start(bench.parts(store, &model), settings(), session(1));
    handle.send("go on for long").await.unwrap();
    handle.wait_until_finished().await.unwrap();
    let marks = model.marks.lock().unwrap();
    // In pieces, of which the least and the median stand: the machine has other work.
    let block = |from: usize| {
        let piece = |piece: usize| {
            let (first, last) =
                (&marks[from + piece * TURNS_PER_SAMPLE], &marks[from + (piece + 1) * TURNS_PER_SAMPLE]);
            (last.cpu - first.cpu).as_secs_f64() * 1e6 / TURNS_PER_SAMPLE as f64
        };
        let mut pieces: Vec<f64> = (0..TURNS_PER_END / TURNS_PER_SAMPLE).map(piece).collect();
        pieces.sort_by(f64::total_cmp);
        (pieces[0], pieces[pieces.len() / 2])
    };
    let (early, late) = (block(1), block(TURNS - TURNS_PER_END - 1));
    println!("  {name}: a turn, µs of processor time, least and median of stretches of {TURNS_PER_SAMPLE}:");
    println!(
        "    turns 1–{TURNS_PER_END}: {:.0}, {:.0}; the last {TURNS_PER_END}: {:.0}, {:.0}",
        early.0, early.1, late.0, late.1
    );
    println!("    ratio {:.3}, {:.3} (asked: at most 1.10)", late.0 / early.0, late.1 / early.1);
    let (first, last) = (&marks[TURNS / 10], &marks[TURNS - 1]);
    let turns = (TURNS - 1 - TURNS / 10) as f64;
    let messages = (last.messages - first.messages) as f64 / turns;
    let grown = last.memory.saturating_sub(first.memory) as f64 / turns;
    println!("    memory a turn, bytes: {grown:.0}, of which messages {messages:.0}");
    println!("    beside them {:.0} (asked of a log on disk: at most 1024)", grown - messages);
}

/// 1,000 sessions that have answered a message and wait for the next.
async fn idle(bench: &Bench) {
    let store = bench.sqlite();
    let model = Arc::new(Instantly::new(1, ""));
    let warm = start(bench.parts(Arc::clone(&store), &model), settings(), session(0));
    warm.send("warm up").await.unwrap();
    warm.wait_until_finished().await.unwrap();
    let before = memory();
    let mut handles = Vec::new();
    for number in 1..=IDLE_SESSIONS {
        let model = Arc::new(Instantly::new(1, ""));
        let handle = start(bench.parts(Arc::clone(&store), &model), settings(), session(number as u64));
        handle.send("answer, then wait").await.unwrap();
        handle.wait_until_finished().await.unwrap();
        handles.push(handle);
    }
    let each = memory().saturating_sub(before) as f64 / IDLE_SESSIONS as f64 / 1024.0;
    println!("  {IDLE_SESSIONS} idle sessions: {each:.1} KiB each (asked: at most 100)");
}

/// 200 sessions that work at once on one disk.
async fn many(bench: &Bench) {
    let store = bench.sqlite();
    let models: Vec<Arc<Instantly>> =
        (0..CONCURRENT_SESSIONS).map(|_| Arc::new(Instantly::new(CONCURRENT_TURNS, ""))).collect();
    let started = Instant::now();
    let work = models.iter().enumerate().map(|(number, model)| {
        let handle = start(bench.parts(Arc::clone(&store), model), settings(), session(number as u64));
        async move {
            handle.send("work").await.unwrap();
            handle.wait_until_finished().await.unwrap();
        }
    });
    join_all(work).await;
    let took = started.elapsed();
    let mut turns: Vec<Duration> = Vec::new();
    for model in &models {
        let marks = model.marks.lock().unwrap();
        turns.extend(marks.windows(2).map(|pair| pair[1].at - pair[0].at));
    }
    turns.sort();
    let at = |share: f64| turns[((turns.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e3;
    println!(
        "  {CONCURRENT_SESSIONS} sessions at once, {CONCURRENT_TURNS} turns each, in {:.1} s: a turn, ms: median {:.1}, p99 {:.1}, most {:.1}",
        took.as_secs_f64(),
        at(0.5),
        at(0.99),
        at(1.0)
    );
    println!("    p99 is {:.2} times the median (asked: below 5)", at(0.99) / at(0.5));
}

/// A session of more than 100,000 entries, opened again; and a turn in it beside one in an empty
/// one.
async fn open(bench: &Bench) {
    let store = bench.sqlite();
    let model = Arc::new(Instantly::new(LONG_TURNS, ""));
    let handle = start(bench.parts(Arc::clone(&store), &model), settings(), session(1));
    handle.send("go on for long").await.unwrap();
    handle.wait_until_finished().await.unwrap();
    let entries = handle.last_position().0;
    handle.close().await;
    drop(store);
    assert!(entries > 100_000, "{entries} entries");
    let mut times = Vec::new();
    for _ in 0..5 {
        let store = bench.sqlite();
        let model = Arc::new(Instantly::new(1, ""));
        let parts = bench.parts(store, &model);
        let started = Instant::now();
        let handle = resume(parts, settings(), session(1), CutOffPolicy::Continue).await.unwrap();
        let mut resumed = handle.subscribe(EventFilter::all().kinds(["agent_resumed"]), Since::Now);
        resumed.next().await.unwrap().unwrap();
        times.push(started.elapsed().as_secs_f64() * 1e3);
        handle.close().await;
    }
    times.sort_by(f64::total_cmp);
    println!(
        "  a session of {entries} entries opens in, ms: min {:.1}, median {:.1}, max {:.1} (asked: below 100)",
        times[0], times[2], times[4]
    );
    let store = bench.sqlite();
    let handles =
        [bench.reopen(&store, session(1), true).await, bench.reopen(&store, session(2), false).await];
    let (mut times, mut cpus) = ([Vec::new(), Vec::new()], [Vec::new(), Vec::new()]);
    for message in 0..=MESSAGES {
        // In turns, so that both meet the same machine.
        for (place, handle) in handles.iter().enumerate() {
            let (started, cpu) = (Instant::now(), processor());
            handle.send("one more").await.unwrap();
            handle.wait_until_finished().await.unwrap();
            // The first one packs the context.
            if message > 0 {
                times[place].push(started.elapsed().as_secs_f64() * 1e3);
                cpus[place].push((processor() - cpu).as_secs_f64() * 1e3);
            }
        }
    }
    let [times, cpus] = [times, cpus].map(|both| both.map(median));
    println!(
        "    a message and its answer, ms, medians of {MESSAGES}: {:.2} in it, {:.2} in a new one; of processor time {:.2} \
         and {:.2}",
        times[0], times[1], cpus[0], cpus[1]
    );
}

const MESSAGES: usize = 200;

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

/// Processor time of this process so far.
fn processor() -> Duration {
    let cpu = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(u64::try_from(cpu.tv_sec).unwrap(), u32::try_from(cpu.tv_nsec).unwrap())
}

/// One megabyte of text, streamed in small pieces.
async fn streamed(bench: &Bench) {
    let store = bench.sqlite();
    let text: String = (0..MEGABYTE / 20).map(|number| format!("word number {number:7}\n")).collect();
    let model = Arc::new(Instantly::new(1, &text));
    let handle = start(bench.parts(Arc::clone(&store), &model), settings(), session(1));
    let started = Instant::now();
    handle.send("tell it all").await.unwrap();
    handle.wait_until_finished().await.unwrap();
    let took = started.elapsed();
    handle.close().await;
    drop((handle, store));
    let mut bytes = 0;
    for file in std::fs::read_dir(bench.dir.join("log")).unwrap() {
        bytes += file.unwrap().metadata().unwrap().len();
    }
    println!(
        "  {:.2} MB of text in pieces of {PIECE_BYTES} bytes: {:.2} MB on disk (asked: at most 3), {:.0} ms",
        text.len() as f64 / 1e6,
        bytes as f64 / 1e6,
        took.as_secs_f64() * 1e3
    );
}

/// A project of one file, and what sessions on it share.
struct Bench {
    dir: std::path::PathBuf,
    workspace: Arc<Workspace>,
    sandbox: Arc<Sandbox>,
    redactor: Arc<Redactor>,
}

impl Bench {
    fn new(dir: &Path) -> Self {
        let dir = dir.canonicalize().unwrap();
        let root = dir.join("project");
        std::fs::create_dir_all(&root).unwrap();
        std::fs::write(root.join("a.txt"), "a\n").unwrap();
        let blobs = Arc::new(Blobs::open(&dir.join("blobs"), 1 << 30).unwrap());
        let options = Options::new(dir.join("state"), blobs);
        let workspace = Arc::new(Workspace::open(&root, options).unwrap());
        // No commands: nothing of it is measured here.
        let sandbox = Sandbox::new(SandboxSettings { allow: Vec::new(), ..SandboxSettings::default() });
        let redactor = Arc::new(Redactor::new(vec!["a secret that is never said".to_owned()]));
        Self { dir, workspace, sandbox: Arc::new(sandbox), redactor }
    }

    fn sqlite(&self) -> Arc<dyn Store> {
        Arc::new(SqliteStore::open(&self.dir.join("log/log.db")).unwrap())
    }

    /// A session whose tasks end after one answer.
    async fn reopen(&self, store: &Arc<dyn Store>, id: SessionId, known: bool) -> SessionHandle {
        let model = Arc::new(Instantly::new(1, ""));
        let parts = self.parts(Arc::clone(store), &model);
        match known {
            true => resume(parts, settings(), id, CutOffPolicy::Continue).await.unwrap(),
            false => start(parts, settings(), id),
        }
    }

    fn parts(&self, store: Arc<dyn Store>, model: &Arc<Instantly>) -> SessionParts {
        let mut registry = Registry::default();
        registry.add(Box::new(Looks));
        SessionParts {
            store,
            model: Arc::clone(model) as Arc<dyn Model>,
            index: Arc::new(SharedIndex::new(Arc::clone(&self.workspace), Arc::clone(&self.redactor), None)),
            workspace: Arc::clone(&self.workspace),
            copy: None,
            planned_copy: None,
            sandbox: Arc::clone(&self.sandbox),
            toolchains: Arc::new(Toolchains::default()),
            registry,
            policy: Policy::default(),
            lasting_answers: Default::default(),
            redactor: Arc::clone(&self.redactor),
            hooks: Hooks::default(),
            clock: journeyman_agent::Clock::new(|| UnixMillis(1_700_000_000_000)),
            programs: Arc::new(|_: &str| None),
            holder: "bench".to_owned(),
            agents: None,
        }
    }
}

fn session(number: u64) -> SessionId {
    SessionId::new(UnixMillis(1_700_000_000_000 + number), number)
}

fn settings() -> RunSettings {
    let most = u32::try_from(TURNS).unwrap() + 10;
    RunSettings { checks: ChecksSetting::Off, loop_guard: false, max_turns: most, ..RunSettings::default() }
}

/// What was seen when the model was asked.
struct Mark {
    at: Instant,
    /// Of the whole process.
    cpu: Duration,
    memory: usize,
    /// Bytes of all messages so far.
    messages: usize,
}

/// Calls a tool with every reply but the last; nothing of it takes time.
struct Instantly {
    turns: usize,
    text: String,
    asked: AtomicUsize,
    marks: Mutex<Vec<Mark>>,
    sizes: Mutex<(usize, usize)>,
}

impl Instantly {
    fn new(turns: usize, text: &str) -> Self {
        let marks = Mutex::new(Vec::with_capacity(turns));
        Self { turns, text: text.to_owned(), asked: AtomicUsize::new(0), marks, sizes: Mutex::default() }
    }

    fn mark(&self, request: &ModelRequest) {
        // Only what is new is looked at, so that looking costs the same at every turn.
        let mut sizes = self.sizes.lock().unwrap();
        let (known, bytes) = *sizes;
        let new: usize = request.messages.iter().skip(known).map(bytes_of).sum();
        *sizes = (request.messages.len(), bytes + new);
        let cpu = processor();
        let mut marks = self.marks.lock().unwrap();
        // Looking at the memory costs more than a turn: now and then is enough.
        let memory =
            if marks.len() % 1_000 == 999 || marks.len().is_multiple_of(1_000) { memory() } else { 0 };
        marks.push(Mark { at: Instant::now(), cpu, memory, messages: bytes + new });
    }
}

/// About the heap of a message.
fn bytes_of(message: &Message) -> usize {
    let block = |block: &Block| {
        let text = match block {
            Block::Text { text, .. } => text.capacity(),
            Block::ToolUse(call) => call.id.as_str().len() + call.name.capacity() + 64,
            Block::ToolResult { id, content, .. } => id.as_str().len() + content.capacity() * 64 + 32,
            _ => 0,
        };
        text + size_of::<Block>()
    };
    size_of::<Message>() + message.content.iter().map(block).sum::<usize>()
}

/// Resident bytes of this process.
fn memory() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

impl Model for Instantly {
    fn name(&self) -> String {
        "bench/instantly".to_owned()
    }

    fn stream<'a>(&'a self, request: &'a ModelRequest, _: CancellationToken) -> DeltaStream<'a> {
        self.mark(request);
        let turn = self.asked.fetch_add(1, Ordering::Relaxed) + 1;
        let content = if turn < self.turns {
            let id = CallId::new(format!("call-{turn}"));
            let input = json!({ "path": "a.txt" });
            vec![Block::ToolUse(ToolUse {
                id,
                name: "look".to_owned(),
                input,
                malformed: None,
                signature: None,
            })]
        } else {
            vec![Block::text(if self.text.is_empty() { "done" } else { &self.text })]
        };
        let stop = if turn < self.turns { StopReason::ToolUse } else { StopReason::EndTurn };
        let usage = Usage { input: Tokens(10), output: Tokens(1), ..Usage::default() };
        let message = Message { role: Role::Assistant, content };
        let reply = Reply { message, stop, usage, model: "instantly".to_owned() };
        let pieces = self.text.as_bytes().chunks(PIECE_BYTES).map(|piece| {
            let text = String::from_utf8_lossy(piece).into_owned();
            Ok(Delta::Text { block: 0, text })
        });
        stream::iter(pieces).chain(stream::once(async { Ok(Delta::Done(Box::new(reply))) })).boxed()
    }
}

/// Looks at nothing.
struct Looks;

impl Tool for Looks {
    fn spec(&self) -> ToolSpec {
        let input_schema = json!({ "type": "object" });
        ToolSpec { name: "look".to_owned(), description: "Looks.".to_owned(), input_schema }
    }

    fn effects(&self, _: &Value) -> Result<Effects, ToolError> {
        Ok(Effects::default())
    }

    fn summary(&self, _: &Value) -> String {
        "look".to_owned()
    }

    fn is_read_only(&self) -> bool {
        true
    }

    fn call<'a>(&'a self, _: &'a ToolContext, _: Value) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        async { Ok(ToolOutput::text("nothing to see")) }.boxed()
    }
}
