//! Long sessions against a model that answers at once, through the whole agent.
//!
//! `long_sessions facts SESSIONS` runs sessions of 30 to 2,000 turns with windows of 16,000 to
//! 64,000 tokens, every third with summaries by the model, which say nothing and are now and then
//! too long. Six facts are planted in the first turns, each in another way (see [`Facts`]). It
//! checks that every request after a compaction has them all, that every request is valid and
//! within the window, and compares the tokens of all requests with those of the same sessions
//! without compaction. `long_sessions turns COUNT` runs one session of shell
//! calls with a window of 128,000 tokens and prints bytes sent, processor time and memory by parts
//! of the session. `long_sessions server URL TURNS` runs one task of so many turns against a real
//! server over Chat Completions and compares the predicted tokens with the reported ones.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
#![allow(clippy::cast_precision_loss)]

mod server;

use std::collections::HashSet;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use journeyman_context::counting::{Counter, RequestParts};
use journeyman_host::agent::model::{Delta, DeltaStream, Model, ModelRequest, Reply, Wire, request_body};
use journeyman_host::agent::protocol::{
    Block, CallId, LimitSource, Message, ModelLimits, Role, StopReason, Tokens, ToolUse, Usage,
};
use journeyman_host::agent::sandbox::run_helper_if_asked;
use journeyman_host::agent::{ChecksSetting, CompactionSettings, RunSettings};
use journeyman_host::sessions::new_session_id;
use journeyman_host::{ConnectedModel, SessionBuilder};
use serde_json::json;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// The turns in which the facts are planted that aren't the user's.
const FILE_READ_AT: u32 = 2;
const FAILED_AT: u32 = 3;
const CALL_FAILED_AT: u32 = 4;
const FOUND_AT: u32 = 5;
/// The turns in which the model ends the user's first two tasks.
const TASK_ENDS_AT: [u32; 2] = [8, 12];
const FILES: usize = 60;
/// Windows of the sessions, in tokens.
const WINDOWS: [u64; 3] = [16_000, 32_000, 64_000];

/// The facts of a session.
struct Facts {
    /// A constraint of the user's first message.
    constraint: String,
    /// A sentence of the user's second message, with a number.
    number: String,
    /// A file that the model reads once.
    file: String,
    /// An approach that the model says didn't work.
    failed: String,
    /// A file whose reading fails.
    failed_call: String,
    /// A number that the model says it found.
    found: String,
}

impl Facts {
    fn new(seed: u64) -> Self {
        let pick = |sentences: &[&str]| {
            let sentence = sentences[seed as usize % sentences.len()];
            sentence.replace("{}", &(1_000 + seed * 7).to_string())
        };
        Self {
            constraint: pick(&[
                "Never touch legacy/decode_v{}.rs.",
                "The file legacy/decode_v{}.rs has to stay as it is.",
                "Whatever you do, legacy/decode_v{}.rs is off limits.",
                "Changes in legacy/decode_v{}.rs need a review that we have no time for.",
            ]),
            number: pick(&[
                "The service listens on port {}.",
                "By the way, our customer's number is {}.",
                "Releases are called r-{} from now on.",
                "And use a timeout of {} ms!",
                "Go on; ticket JM-{} has the background.",
            ]),
            file: format!("src/only_{seed}.rs"),
            failed: pick(&[
                "Patching the lexer of format {} doesn't work, because it keeps no state between lines.",
                "I tried to patch the lexer of format {}, but the tests still fail.",
                "Patching the lexer of format {} made it worse.",
                "The patch for the lexer of format {} had no effect, so I reverted it.",
                "Patching the lexer of format {} broke the build.",
                "It turns out that format {} can't be lexed line by line.",
            ]),
            failed_call: format!("src/gone_{seed}.rs"),
            found: pick(&[
                "The ring buffer holds {} entries.",
                "I found that the ring buffer holds {} entries.",
                "`RING_CAPACITY` is {} here.",
                "The capacity is set in src/f3.rs: {} entries.",
            ]),
        }
    }

    fn task(&self) -> String {
        format!("Read through the project. {} Then tell me what you would change.", self.constraint)
    }

    fn all(&self) -> [&str; 6] {
        [&self.constraint, &self.number, &self.file, &self.failed, &self.failed_call, &self.found]
    }
}

fn main() {
    run_helper_if_asked();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["facts", sessions] => measure_facts(sessions.parse().expect("a number")),
        ["server", url, turns] => server::measure(url, turns.parse().expect("a number")),
        ["turns", turns] => measure_turns(turns.parse().expect("a number")),
        _ => panic!("long_sessions facts SESSIONS | turns COUNT | server URL TURNS"),
    }
}

/// The calls that the model makes.
#[derive(Clone, Copy, PartialEq)]
enum Work {
    Mixed,
    Shell,
}

/// Counts the compactions of a session by its requests: there are fewer messages than before, or
/// another state.
#[derive(Default)]
struct Compactions {
    count: u32,
    /// The state and the number of messages of the last request.
    state: String,
    messages: usize,
}

impl Compactions {
    fn observe(&mut self, request: &ModelRequest) {
        let first = request.messages.first().map(Message::text).unwrap_or_default();
        let state = first.split_once("<state").map_or("", |(_, state)| state);
        let messages = request.messages.len();
        self.count += u32::from(messages < self.messages || state != self.state);
        state.clone_into(&mut self.state);
        self.messages = messages;
    }
}

#[derive(Default)]
struct Seen {
    turn: u32,
    compactions: Compactions,
    summaries: u32,
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
    facts: Facts,
    summarize: bool,
    work: Work,
    limits: ModelLimits,
    counter: Counter,
    seen: Mutex<Seen>,
}

impl Endless {
    fn new(turns: u32, seed: u64, work: Work, window: Tokens, summarize: bool) -> Self {
        let limits = ModelLimits {
            window,
            source: LimitSource::Configured,
            ..ModelLimits::conservative_default(false)
        };
        let counter = Counter::new(&limits);
        let facts = Facts::new(seed);
        Self { turns, seed, facts, summarize, work, limits, counter, seen: Mutex::default() }
    }

    fn answer(&self, request: &ModelRequest) -> Reply {
        let mut seen = self.seen.lock().unwrap();
        let system: Vec<&str> = request.system.iter().map(|part| part.text.as_str()).collect();
        let parts = RequestParts { system: &system, tools: &request.tools, messages: &request.messages };
        let counted = self.counter.count_request(parts);
        let usage = Usage { input: counted.total(), output: Tokens(20), ..Usage::default() };
        if system.iter().any(|text| text.contains("handover note")) {
            seen.sent += counted.total().0;
            seen.summaries += 1;
            let many = if seen.summaries.is_multiple_of(5) { 4_000 } else { 5 };
            let content = vec![Block::text("The files were read one after the other. ".repeat(many))];
            let message = Message { role: Role::Assistant, content };
            return Reply { message, stop: StopReason::EndTurn, usage, model: self.name() };
        }
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
        let is_task_end = self.work == Work::Mixed && TASK_ENDS_AT.contains(&turn);
        if turn + 1 >= self.turns || is_task_end {
            let message = Message { role: Role::Assistant, content: vec![Block::text("all is read")] };
            return Reply { message, stop: StopReason::EndTurn, usage, model: self.name() };
        }
        let mut content = Vec::new();
        match turn {
            FAILED_AT => content.push(Block::text(&*self.facts.failed)),
            FOUND_AT => content.push(Block::text(&*self.facts.found)),
            _ => {}
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
        match turn {
            FILE_READ_AT => return ("read_file", json!({ "path": self.facts.file })),
            CALL_FAILED_AT => return ("read_file", json!({ "path": self.facts.failed_call })),
            _ => {}
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
        seen.compactions.observe(request);
        if tokens > self.limits.window {
            seen.over += 1;
        }
        if let Some(problem) = problem_of(&request.messages) {
            seen.invalid.push(format!("turn {turn}: {problem}"));
        }
        if seen.compactions.count > 0 && self.work == Work::Mixed && turn > TASK_ENDS_AT[1] {
            let text = request.messages.iter().map(message_text).collect::<String>();
            for fact in self.facts.all().iter().filter(|fact| !text.contains(**fact)) {
                seen.lost.push(format!("turn {turn}, after {} compactions: {fact}", seen.compactions.count));
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

/// Returns what a model reads of a message.
fn message_text(message: &Message) -> String {
    let texts = message.content.iter().map(|block| match block {
        Block::Text { text } => text.clone(),
        Block::ToolUse(call) => call.input.to_string(),
        Block::ToolResult { content, .. } => format!("{content:?}"),
        _ => String::new(),
    });
    texts.collect::<Vec<_>>().join("\n")
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

/// A session in a project of its own.
struct TaskSession {
    place: TempDir,
    builder: SessionBuilder,
}

impl TaskSession {
    /// Makes a project with files of code, and these beside them.
    fn new(connected: ConnectedModel, more: &[&str], summarize: bool) -> Self {
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
        for path in more {
            std::fs::write(root.join(path), "fn only() {}\n").unwrap();
        }
        let builder = SessionBuilder::new(&root)
            .state_dir(place.path().join("state"))
            .connected(connected)
            .checks(ChecksSetting::Off)
            .adjust_settings(move |settings: &mut RunSettings| {
                settings.max_turns = u32::MAX;
                settings.loop_guard = false;
                settings.timeout = Duration::from_secs(24 * 3600);
                settings.index_timeout = None;
                settings.compaction = CompactionSettings { summarize, ..CompactionSettings::default() };
            });
        Self { place, builder }
    }

    /// Sends the messages, each when the task of the one before has ended.
    fn run(self, messages: &[String]) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut template = self.builder.build().unwrap();
            let handle = template.start(new_session_id()).await.unwrap();
            for message in messages {
                handle.send(message).await.unwrap();
                handle.wait_until_finished().await.unwrap();
            }
            handle.close().await;
        });
        drop(self.place);
    }
}

fn run(model: &Arc<Endless>) {
    let client: Arc<dyn Model> = Arc::clone(model) as Arc<dyn Model>;
    let name = "example/endless".to_owned();
    let connected =
        ConnectedModel { limits: model.limits.clone(), ..ConnectedModel::from_model(client, name) };
    let mut messages = vec![model.facts.task()];
    if model.work == Work::Mixed {
        messages.extend([model.facts.number.clone(), "go on".to_owned()]);
    }
    TaskSession::new(connected, &[&model.facts.file], model.summarize).run(&messages);
}

fn measure_facts(sessions: u64) {
    let (mut sent, mut whole, mut lost, mut invalid, mut over) = (0, 0, Vec::new(), Vec::new(), 0);
    let (mut turns, mut compactions, mut deep, mut summaries) = (0, [0_u32; 3], 0, 0);
    for seed in 0..sessions {
        // From 30 to 2,000, evenly by logarithm.
        let part = seed as f64 / sessions.saturating_sub(1).max(1) as f64;
        let count = (30.0 * (2_000.0_f64 / 30.0).powf(part)).round() as u32;
        let window = Tokens(WINDOWS[seed as usize % WINDOWS.len()]);
        let model = Arc::new(Endless::new(count, seed, Work::Mixed, window, seed % 3 == seed / 3 % 3));
        run(&model);
        let seen = model.seen.lock().unwrap();
        assert!(seen.turn >= count, "session {seed} ended after {} of {count} turns", seen.turn);
        turns += u64::from(count);
        for (place, least) in [1, 3, 10].into_iter().enumerate() {
            compactions[place] += u32::from(seen.compactions.count >= least);
        }
        deep = deep.max(seen.compactions.count);
        summaries += seen.summaries;
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
        "sessions with at least 1, 3, 10 compactions: {}, {}, {}; at most {deep}; {summaries} summaries",
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
    let model = Arc::new(Endless::new(turns, 0, Work::Shell, Tokens(128_000), false));
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
    println!("{} compactions", seen.compactions.count);
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
