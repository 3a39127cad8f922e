//! Long sessions against a model that answers at once, through the whole agent.
//!
//! `long_sessions facts SESSIONS` runs sessions of 30 to 2,000 turns with a window of 32,000
//! tokens. The user's first message has a constraint, a file and a number, and the model tells of a
//! failed approach early on. It checks that every request after a compaction has them all, that
//! every request is valid and within the window, and compares the tokens of all requests with those
//! of the same sessions without compaction. `long_sessions turns COUNT` runs one session of shell
//! calls with a window of 128,000 tokens and prints bytes sent, processor time and memory by parts
//! of the session.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
#![allow(clippy::cast_precision_loss)]

use std::collections::HashSet;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use journeyman_context::counting::{Counter, RequestParts};
use journeyman_host::agent::model::{Delta, DeltaStream, Model, ModelRequest, Reply, Wire, request_body};
use journeyman_host::agent::protocol::{
    Block, CallId, Event, LimitSource, Message, ModelLimits, Role, StopReason, Tokens, ToolUse, Usage,
};
use journeyman_host::agent::sandbox::run_helper_if_asked;
use journeyman_host::agent::{ChecksSetting, CompactionSettings, RunSettings};
use journeyman_host::{ConnectedModel, SessionBuilder};
use serde_json::json;
use tokio_util::sync::CancellationToken;

const TASK: &str =
    "Read through the project. Never touch legacy/decode_v3.rs. The service listens on port 8443.";
const FAILED: &str = "Patching the lexer doesn't work, because it keeps no state between lines.";
const FACTS: [&str; 4] = ["Never touch", "legacy/decode_v3.rs", "8443", "Patching the lexer doesn't work"];
/// The turn in which the model tells of the failed approach.
const FAILED_AT: u32 = 3;
const FILES: usize = 60;

fn main() {
    run_helper_if_asked();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["facts", sessions] => measure_facts(sessions.parse().expect("a number")),
        ["turns", turns] => measure_turns(turns.parse().expect("a number")),
        _ => panic!("long_sessions facts SESSIONS | long_sessions turns COUNT"),
    }
}

/// The calls that the model makes.
#[derive(Clone, Copy, PartialEq)]
enum Work {
    Mixed,
    Shell,
}

#[derive(Default)]
struct Seen {
    turn: u32,
    /// Messages of the last request.
    messages: usize,
    compactions: u32,
    /// Tokens of all requests, and as they would be without compaction.
    sent: u64,
    whole: u64,
    /// Tokens of the conversation without compaction.
    conversation: u64,
    lost: Vec<String>,
    invalid: Vec<String>,
    over: u64,
    samples: Vec<(usize, f64, u64)>,
}

struct Endless {
    turns: u32,
    seed: u64,
    work: Work,
    limits: ModelLimits,
    counter: Counter,
    seen: Mutex<Seen>,
}

impl Endless {
    fn new(turns: u32, seed: u64, work: Work, window: Tokens) -> Self {
        let limits = ModelLimits {
            window,
            source: LimitSource::Configured,
            ..ModelLimits::conservative_default(false)
        };
        let counter = Counter::new(&limits);
        Self { turns, seed, work, limits, counter, seen: Mutex::default() }
    }

    fn answer(&self, request: &ModelRequest) -> Reply {
        let mut seen = self.seen.lock().unwrap();
        let system: Vec<&str> = request.system.iter().map(|part| part.text.as_str()).collect();
        let parts = RequestParts { system: &system, tools: &request.tools, messages: &request.messages };
        let counted = self.counter.count_request(parts);
        self.look(&mut seen, request, counted.total());
        // Without compaction the conversation has all of it: what came since the last request is
        // the last reply and the message after it.
        let new = if seen.turn == 0 { request.messages.len() } else { 2.min(request.messages.len()) };
        let newest = request.messages.iter().rev().take(new);
        seen.conversation += newest.map(|message| self.counter.count_message(message).0).sum::<u64>();
        seen.whole += counted.system.0 + counted.tools.0 + seen.conversation;
        seen.sent += counted.total().0;
        let turn = seen.turn;
        seen.turn += 1;
        let usage = Usage { input: counted.total(), output: Tokens(20), ..Usage::default() };
        if turn + 1 >= self.turns {
            let message = Message { role: Role::Assistant, content: vec![Block::text("all is read")] };
            return Reply { message, stop: StopReason::EndTurn, usage, model: self.name() };
        }
        let mut content = Vec::new();
        if turn == FAILED_AT {
            content.push(Block::text(FAILED));
        }
        let (name, input) = self.call(turn);
        let id = CallId::new(format!("call-{turn}"));
        content.push(Block::ToolUse(ToolUse {
            id,
            name: name.to_owned(),
            input,
            malformed: None,
            signature: None,
        }));
        let message = Message { role: Role::Assistant, content };
        Reply { message, stop: StopReason::ToolUse, usage, model: self.name() }
    }

    fn call(&self, turn: u32) -> (&'static str, serde_json::Value) {
        if self.work == Work::Shell {
            return ("run_command", json!({ "command": format!("echo step {turn}; seq 1 200") }));
        }
        let number = (u64::from(turn).wrapping_mul(7).wrapping_add(self.seed)) as usize % FILES;
        match (u64::from(turn) ^ self.seed) % 5 {
            0 => ("search_text", json!({ "pattern": format!("value_{number}\\b") })),
            1 => ("list_files", json!({ "path": "src" })),
            _ => {
                let first = turn as usize % 100 + 1;
                ("read_file", json!({ "path": format!("src/f{number}.rs"), "offset": first, "limit": 80 }))
            }
        }
    }

    /// Checks a request.
    fn look(&self, seen: &mut Seen, request: &ModelRequest, tokens: Tokens) {
        let turn = seen.turn;
        if request.messages.len() < seen.messages {
            seen.compactions += 1;
        }
        seen.messages = request.messages.len();
        if tokens > self.limits.window {
            seen.over += 1;
        }
        if let Some(problem) = problem_of(&request.messages) {
            seen.invalid.push(format!("turn {turn}: {problem}"));
        }
        if seen.compactions > 0 {
            let text = serde_json::to_string(&request.messages).unwrap();
            for fact in FACTS.iter().filter(|fact| !text.contains(**fact)) {
                seen.lost.push(format!("turn {turn}, after {} compactions: {fact}", seen.compactions));
            }
        }
        if self.work == Work::Shell {
            let bytes = request_body(Wire::Anthropic, request).unwrap().to_string().len();
            seen.samples.push((bytes, processor_seconds(), resident_kib()));
        }
    }
}

impl Model for Endless {
    fn name(&self) -> String {
        "example/endless".to_owned()
    }

    fn stream<'a>(&'a self, request: &'a ModelRequest, _cancel: CancellationToken) -> DeltaStream<'a> {
        stream::once(async move { Ok(Delta::Done(Box::new(self.answer(request)))) }).boxed()
    }
}

/// Returns why no provider would take a conversation.
fn problem_of(messages: &[Message]) -> Option<String> {
    if messages.first().is_none_or(|first| first.role != Role::User) {
        return Some("it doesn't begin with the user".to_owned());
    }
    if messages.windows(2).any(|pair| pair[0].role == pair[1].role) {
        return Some("two messages of one role follow each other".to_owned());
    }
    let mut open: HashSet<&CallId> = HashSet::new();
    for message in messages {
        let results: HashSet<&CallId> = message
            .content
            .iter()
            .filter_map(|block| match block {
                Block::ToolResult { id, .. } => Some(id),
                _ => None,
            })
            .collect();
        if results != open {
            return Some(format!("calls {open:?} have the results {results:?}"));
        }
        open = message.tool_uses().map(|call| &call.id).collect();
    }
    (!open.is_empty()).then(|| "the last calls have no results".to_owned())
}

fn run(model: &Arc<Endless>) {
    // In memory where there is such a place: thousands of turns would measure the disk.
    let memory = Path::new("/dev/shm");
    let place = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap();
    let root = place.path().join("project");
    std::fs::create_dir_all(root.join("src")).unwrap();
    for number in 0..FILES {
        let lines: String = (0..200)
            .map(|line| format!("    let value_{number}_{line} = compute(context, {line}, &options)?;\n"))
            .collect();
        std::fs::write(root.join(format!("src/f{number}.rs")), lines).unwrap();
    }
    let limits = model.limits.clone();
    let client: Arc<dyn Model> = Arc::clone(model) as Arc<dyn Model>;
    let session = SessionBuilder::new(&root)
        .state_dir(place.path().join("state"))
        .connected(ConnectedModel {
            limits,
            ..ConnectedModel::from_model(client, "example/endless".to_owned())
        })
        .checks(ChecksSetting::Off)
        .adjust_settings(|settings: &mut RunSettings| {
            settings.max_turns = u32::MAX;
            settings.loop_guard = false;
            settings.timeout = Duration::from_secs(24 * 3600);
            settings.index_timeout = None;
            settings.compaction = CompactionSettings { summarize: false, ..CompactionSettings::default() };
        });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(session.run(TASK, &mut |_: &Event| ())).unwrap();
}

fn measure_facts(sessions: u64) {
    let (mut sent, mut whole, mut lost, mut invalid, mut over) = (0, 0, Vec::new(), Vec::new(), 0);
    let (mut turns, mut compactions, mut deep) = (0, [0_u32; 3], 0);
    for seed in 0..sessions {
        // From 30 to 2,000, evenly by logarithm.
        let part = seed as f64 / sessions.saturating_sub(1).max(1) as f64;
        let count = (30.0 * (2_000.0_f64 / 30.0).powf(part)).round() as u32;
        let model = Arc::new(Endless::new(count, seed, Work::Mixed, Tokens(32_000)));
        run(&model);
        let seen = model.seen.lock().unwrap();
        assert!(seen.turn >= count, "session {seed} ended after {} of {count} turns", seen.turn);
        turns += u64::from(count);
        for (place, least) in [1, 3, 10].into_iter().enumerate() {
            compactions[place] += u32::from(seen.compactions >= least);
        }
        deep = deep.max(seen.compactions);
        sent += seen.sent;
        whole += seen.whole;
        lost.extend(seen.lost.iter().map(|it| format!("session {seed}, {it}")));
        invalid.extend(seen.invalid.iter().map(|it| format!("session {seed}, {it}")));
        over += seen.over;
        eprint!("\r{} of {sessions}", seed + 1);
    }
    eprintln!();
    println!("{sessions} sessions, {turns} turns");
    println!(
        "sessions with at least 1, 3, 10 compactions: {}, {}, {}; at most {deep}",
        compactions[0], compactions[1], compactions[2]
    );
    println!(
        "facts lost: {}; invalid requests: {}; requests over the window: {over}",
        lost.len(),
        invalid.len()
    );
    lost.iter().chain(&invalid).take(10).for_each(|line| println!("  {line}"));
    let share = 100.0 * sent as f64 / whole as f64;
    println!("tokens sent: {share:.1} % of those without compaction");
    assert!(lost.is_empty() && invalid.is_empty() && over == 0 && share <= 55.0, "a bound is missed");
}

fn measure_turns(turns: u32) {
    let model = Arc::new(Endless::new(turns, 0, Work::Shell, Tokens(128_000)));
    run(&model);
    let seen = model.seen.lock().unwrap();
    let size = seen.samples.len().div_ceil(10).max(1);
    println!("turns          bytes a request    ms of processor a turn    MiB resident");
    let mut rows = Vec::new();
    for (number, part) in seen.samples.chunks(size).enumerate() {
        let bytes = part.iter().map(|sample| sample.0).sum::<usize>() / part.len();
        let time = (part[part.len() - 1].1 - part[0].1) * 1e3 / part.len() as f64;
        let memory = part[part.len() - 1].2 as f64 / 1024.0;
        println!(
            "{:>5}–{:<5} {bytes:>18} {time:>25.2} {memory:>15.1}",
            number * size,
            number * size + part.len()
        );
        rows.push((bytes as f64, time, memory));
    }
    println!("{} compactions", seen.compactions);
    // The second half is no dearer than the part in which the conversation reached its full size.
    let half = rows.len() / 2;
    let most =
        |part: &[(f64, f64, f64)], of: fn(&(f64, f64, f64)) -> f64| part.iter().map(of).fold(0.0, f64::max);
    let (early, late) = rows.split_at(half);
    for (name, of, bound) in [
        ("bytes", (|row| row.0) as fn(&(f64, f64, f64)) -> f64, 1.1),
        ("processor time", |row| row.1, 1.5),
        ("memory", |row| row.2, 1.3),
    ] {
        let ratio = most(late, of) / most(early, of);
        println!("{name}: the second half's most is {ratio:.2} times the first half's");
        assert!(ratio <= bound, "{name} grows");
    }
}

fn processor_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    // User and system time, in hundredths of a second.
    (fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap()) / 100.0
}

fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}
