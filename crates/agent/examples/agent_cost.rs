//! What an agent costs beside its turns, against a model that answers at once: `cargo run --release
//! -p journeyman-agent --example agent_cost -- cost|faults [DIR]`, or both by `cargo xtask bench
//! agents`.
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

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use journeyman_agent::agents::{AgentDefinition, AgentLimits, Agents, InputKind};
use journeyman_agent::hooks::Hooks;
use journeyman_agent::{ChecksSetting, RunSettings, SessionParts, start};
use journeyman_model::{Delta, DeltaStream, Model, ModelError, ModelRequest, Reply};
use journeyman_policy::Policy;
use journeyman_policy::secrets::Redactor;
use journeyman_protocol::{
    Block, CallId, Message, Role, SessionId, StopReason, Tokens, ToolUse, UnixMillis, Usage,
};
use journeyman_sandbox::{Sandbox, SandboxSettings, Toolchains};
use journeyman_store::{Blobs, SqliteStore};
use journeyman_tools::{Registry, SharedIndex};
use journeyman_workspace::{Options, Workspace};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// Agents whose cost is measured, one after the other.
const AGENTS: usize = 200;
/// Turns of the agents that have more than one.
const LONG_TURNS: usize = 11;
/// Agents that are measured together.
const AGENTS_PER_SAMPLE: usize = 10;
/// Agents with faults, and those after which the memory is looked at first.
const FAULTY: usize = 1_000;
const FIRST: usize = 100;
/// Agents with faults that a reply gives tasks to at once.
const AT_ONCE: usize = 10;
/// Words that only the system prompt of the agents has.
const ROLE: &str = "You are the worker of a benchmark.";

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let dir = match arguments.get(1) {
        Some(dir) => tempfile::tempdir_in(dir),
        None => tempfile::tempdir(),
    };
    let dir = dir.unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        match arguments.first().map(String::as_str) {
            Some("cost") => cost(dir.path()).await,
            Some("faults") => faults(dir.path()).await,
            _ => panic!("cost or faults"),
        }
    });
}

/// Processor time of an agent beside its turns and the turn that gave it its task.
async fn cost(dir: &Path) {
    let mut figures = Vec::new();
    // A turn that reads a file in place of giving a task, agents of one turn, agents of eleven.
    for (name, turns) in [("read", 0), ("one", 1), ("long", LONG_TURNS)] {
        let model = Arc::new(Instantly { turns, ..Instantly::default() });
        run(&dir.join(name), &model).await;
        figures.push(stretches(&model.marks.lock().unwrap()));
    }
    let [read, one, long] = [0, 1, 2].map(|place| figures[place]);
    for (kind, of) in [("least", 0), ("median", 1)] {
        let turn = (long[of] - one[of]) / (LONG_TURNS - 1) as f64;
        let beside = one[of] - turn - read[of];
        println!(
            "  {kind} of stretches of {AGENTS_PER_SAMPLE}, ms of processor time: an agent of one turn {:.2}, a turn of it {turn:.2}, \
             the session's own turn {:.2}; the agent beside its turns {beside:.2} (asked: at most 10)",
            one[of] - read[of],
            read[of]
        );
    }
}

/// The least and the median cost of what lies between two marks, in ms.
fn stretches(marks: &[Duration]) -> [f64; 2] {
    let stretch = |pair: &[Duration]| {
        (pair[AGENTS_PER_SAMPLE] - pair[0]).as_secs_f64() * 1e3 / AGENTS_PER_SAMPLE as f64
    };
    let mut costs: Vec<f64> =
        marks.windows(AGENTS_PER_SAMPLE + 1).step_by(AGENTS_PER_SAMPLE).map(stretch).collect();
    costs.sort_by(f64::total_cmp);
    [costs[0], costs[costs.len() / 2]]
}

/// A thousand agents with faults of one session: memory, and tasks that are left.
async fn faults(dir: &Path) {
    let metrics = tokio::runtime::Handle::current().metrics();
    let before = metrics.num_alive_tasks();
    let model = Arc::new(Instantly { turns: 1, has_faults: true, ..Instantly::default() });
    run(dir, &model).await;
    while metrics.num_alive_tasks() > before {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let memory = model.memory.lock().unwrap();
    let (first, last) = (memory[FIRST / AT_ONCE], memory[FAULTY / AT_ONCE]);
    let each = last.saturating_sub(first) as f64 / (FAULTY - FIRST) as f64;
    println!(
        "  {FAULTY} agents with faults: {:.1} MB after {FIRST}, {:.1} MB after all, {each:.0} bytes an agent; \
         tasks left {} (asked: none)",
        first as f64 / 1e6,
        last as f64 / 1e6,
        metrics.num_alive_tasks() - before
    );
}

/// Runs one session to its end.
async fn run(dir: &Path, model: &Arc<Instantly>) {
    std::fs::create_dir_all(dir.join("project")).unwrap();
    let dir = dir.canonicalize().unwrap();
    let settings = RunSettings {
        checks: ChecksSetting::Off,
        loop_guard: false,
        max_turns: u32::try_from(AGENTS).unwrap() + 10,
        ..RunSettings::default()
    };
    let id = SessionId::new(UnixMillis(1_700_000_000_000), 1);
    let handle = start(parts(&dir, model), settings, id);
    handle.send("give tasks").await.unwrap();
    let report = handle.wait_until_finished().await.unwrap();
    assert_eq!(report.text, "done", "{}", report.summary);
    handle.close().await;
}

fn worker(name: &str, limits: AgentLimits) -> AgentDefinition {
    AgentDefinition::new(name, "Works.")
        .input("task", InputKind::String, "The task.")
        .system(ROLE)
        .query("${task}")
        .limits(limits)
}

fn parts(dir: &Path, model: &Arc<Instantly>) -> SessionParts {
    let root: PathBuf = dir.join("project");
    std::fs::write(root.join("a.txt"), "a\n").unwrap();
    let blobs = Arc::new(Blobs::open(&dir.join("blobs"), 1 << 30).unwrap());
    let workspace = Arc::new(Workspace::open(&root, Options::new(dir.join("state"), blobs)).unwrap());
    // No commands: nothing of it is measured here.
    let sandbox = Sandbox::new(SandboxSettings { allow: Vec::new(), ..SandboxSettings::default() });
    let redactor = Arc::new(Redactor::new(vec!["a secret that is never said".to_owned()]));
    let hasty = AgentLimits { time: Duration::from_millis(5), ..AgentLimits::default() };
    let agents =
        vec![worker("worker", AgentLimits { turns: 100, ..AgentLimits::default() }), worker("hasty", hasty)];
    SessionParts {
        store: Arc::new(SqliteStore::open(&dir.join("log/log.db")).unwrap()),
        model: Arc::clone(model) as Arc<dyn Model>,
        index: Arc::new(SharedIndex::new(Arc::clone(&workspace), Arc::clone(&redactor), None)),
        workspace,
        copy: None,
        planned_copy: None,
        sandbox: Arc::new(sandbox),
        toolchains: Arc::new(Toolchains::default()),
        registry: Registry::with_builtin_at(&root),
        policy: Policy::default(),
        lasting_answers: Default::default(),
        redactor,
        hooks: Hooks::default(),
        clock: journeyman_agent::Clock::new(|| UnixMillis(1_700_000_000_000)),
        programs: Arc::new(|_: &str| None),
        holder: "bench".to_owned(),
        agents: Some(Agents::new(agents)),
    }
}

/// Gives tasks to agents, and is the agents, without taking time.
#[derive(Default)]
struct Instantly {
    /// Turns of each agent; none are begun if 0, but files read.
    turns: usize,
    has_faults: bool,
    /// Processor time of the process at each request of the session.
    marks: Mutex<Vec<Duration>>,
    /// Resident bytes of the process at the same times.
    memory: Mutex<Vec<usize>>,
}

impl Instantly {
    /// The calls of the session. Requests are counted here, because a long conversation is
    /// shortened.
    fn session_calls(&self) -> Option<Vec<ToolUse>> {
        let replies = {
            let mut marks = self.marks.lock().unwrap();
            marks.push(processor());
            marks.len() - 1
        };
        self.memory.lock().unwrap().push(memory());
        let (all, at_once) = if self.has_faults { (FAULTY, AT_ONCE) } else { (AGENTS, 1) };
        let begin = replies * at_once;
        let task = |number: usize| {
            let agent = if self.has_faults && number % 7 == 3 { "hasty" } else { "worker" };
            let input = json!({ "agent": agent, "prompt": format!("number {number}") });
            call(&format!("t{number}"), "task", input)
        };
        match self.turns {
            _ if begin >= all => None,
            0 => Some(vec![call(&format!("t{begin}"), "read_file", json!({ "path": "a.txt" }))]),
            _ => Some((begin..begin + at_once).map(task).collect()),
        }
    }

    /// The calls of an agent, by its number and its replies so far: each kind of fault in turn.
    fn agent_calls(&self, number: usize, replies: usize) -> Result<Option<Vec<ToolUse>>, ModelError> {
        let completes = || vec![call("end", "complete_task", json!({ "result": "done" }))];
        if !self.has_faults {
            let read = || vec![call(&format!("r{replies}"), "read_file", json!({ "path": "a.txt" }))];
            return Ok(Some(if replies + 1 < self.turns { read() } else { completes() }));
        }
        match (number % 7, replies) {
            (1, 0) => Ok(Some(vec![call("bad", "complete_task", json!({ "result": 7 }))])),
            (2, 0) => Err(ModelError::Script("refused".to_owned())),
            (4, _) => Ok(None),
            (5, 0) => Ok(Some(vec![call("x", "no_such_tool", json!({}))])),
            _ => Ok(Some(completes())),
        }
    }
}

fn call(id: &str, name: &str, input: Value) -> ToolUse {
    ToolUse { id: CallId::new(id), name: name.to_owned(), input, malformed: None, signature: None }
}

/// Processor time of this process so far.
fn processor() -> Duration {
    let cpu = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(u64::try_from(cpu.tv_sec).unwrap(), u32::try_from(cpu.tv_nsec).unwrap())
}

/// Resident bytes of this process.
fn memory() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

/// The number in an agent's task.
fn number_of(request: &ModelRequest) -> usize {
    let first = request.messages.first().map(Message::text).unwrap_or_default();
    let digits =
        first.split("number ").nth(1).and_then(|rest| rest.split(|c: char| !c.is_ascii_digit()).next());
    digits.and_then(|digits| digits.parse().ok()).expect("a number")
}

impl Model for Instantly {
    fn name(&self) -> String {
        "bench/instantly".to_owned()
    }

    fn stream<'a>(&'a self, request: &'a ModelRequest, cancel: CancellationToken) -> DeltaStream<'a> {
        let replies = request.messages.iter().filter(|message| message.role == Role::Assistant).count();
        let is_agent = request.system.iter().any(|part| part.text.contains(ROLE));
        let calls = match is_agent {
            true => self.agent_calls(number_of(request), replies),
            false => Ok(self.session_calls()),
        };
        let stalls = is_agent && self.has_faults && number_of(request) % 7 == 3 && replies == 0;
        let is_last_turn = request.tools.len() == 1;
        stream::once(async move {
            if stalls && !is_last_turn {
                cancel.cancelled().await;
                return Err(ModelError::Cancelled);
            }
            let (content, stop) = match calls? {
                Some(calls) => (calls.into_iter().map(Block::ToolUse).collect(), StopReason::ToolUse),
                None => (vec![Block::text("done")], StopReason::EndTurn),
            };
            let usage = Usage { input: Tokens(10), output: Tokens(1), ..Usage::default() };
            let message = Message { role: Role::Assistant, content };
            Ok(Delta::Done(Box::new(Reply { message, stop, usage, model: "instantly".to_owned() })))
        })
        .boxed()
    }
}
