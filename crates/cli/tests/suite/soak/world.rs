//! What a case plays in: a git repository with tracked, untracked and ignored files, a model that
//! makes five calls a task, and a user who saves lines meanwhile.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};

use super::Violation;
use crate::support::{House, KEY, Reply, Seen, Server, Step, call, say};

/// The check that every case asks for, unless it asks for none. The project's own, which `jm` would
/// find, fails.
pub const CHECK: &str = "sh check.sh";
/// Writes into both ledgers of a task.
const NOTE_SCRIPT: &str = "for f in ledger$2.txt ignored/ledger$2.db; do echo \"$1 of $2\" >> $f; done\n";
const CHECK_SCRIPT: &str = "for d in own*; do test ! -f $d/f1.txt || test -f $d/f2.txt || exit 1; done\n";
/// Printed by the project's own check, which nobody asks for.
pub const WRONG_CHECK: &str = "WRONG-CHECK";
/// No command takes longer, however loaded the machine is; only one that hangs comes near.
const TIMEOUT: Duration = Duration::from_secs(180);
const LOOK: Duration = Duration::from_millis(1);
/// Told of a command that was cut off.
const NONE_TRACKED: &str = "None of its changes to tracked files are in place";
/// Files of the user's that no task touches.
pub const USERS: [&str; 2] = ["a.txt", "notes.txt"];

/// One change that a call makes: this text is in this file, once.
#[derive(Debug, Clone)]
pub struct Effect {
    pub path: String,
    pub text: String,
    pub ignored: bool,
}

/// The ignored file that a task's commands write into.
pub fn ignored_ledger(task: usize) -> String {
    format!("ignored/ledger{task}.db")
}

/// The changes that the `nth` call of a task makes.
pub fn effects_of(task: usize, nth: usize) -> Vec<Effect> {
    let effect = |path: String, text: String| {
        let ignored = path.starts_with("ignored/");
        Effect { path, text, ignored }
    };
    let ledgers = |text: &str| {
        let line = format!("{text} of {task}\n");
        [format!("ledger{task}.txt"), ignored_ledger(task)].map(|path| effect(path, line.clone()))
    };
    match nth {
        0 => vec![effect(format!("own{task}/f1.txt"), "one\n".to_owned())],
        1 => ledgers("first")
            .into_iter()
            .chain([effect(format!("own{task}/made.txt"), "made\n".to_owned())])
            .collect(),
        2 => vec![effect(format!("lines{task}.txt"), format!("new {task}\n"))],
        3 => vec![effect(format!("own{task}/f2.txt"), "two\n".to_owned())],
        4 => ledgers("second").to_vec(),
        _ => Vec::new(),
    }
}

/// All changes of a whole task.
pub fn effects(task: usize) -> Vec<Effect> {
    (0..5).flat_map(|nth| effects_of(task, nth)).collect()
}

fn reply(task: usize, nth: usize, is_script: bool) -> Reply {
    let write = |path: &str, text| {
        call("write_file", json!({ "path": format!("own{task}/{path}"), "content": text }))
    };
    let run = |text: &str, then: &str| {
        let line = format!("echo '{text} of {task}'");
        let ledgers = format!("{line} >> ledger{task}.txt; {line} >> {}", ignored_ledger(task));
        let script = format!("sh note.sh {text} {task}");
        let command = format!("{}{then}", if is_script { script } else { ledgers });
        call("run_command", json!({ "command": command }))
    };
    match nth {
        0 => write("f1.txt", "one\n"),
        1 => run("first", &format!("; sleep 0.5; echo made > own{task}/made.txt")),
        2 => {
            let search = format!("old {task}\n");
            let replace = format!("new {task}\n");
            call(
                "edit_file",
                json!({ "path": format!("lines{task}.txt"), "search": search, "replace": replace }),
            )
        }
        3 => write("f2.txt", "two\n"),
        4 => run("second", ""),
        _ => say("All is done."),
    }
}

/// A line that the user saved.
#[derive(Debug, Clone)]
pub struct Saved {
    pub file: &'static str,
    pub line: String,
    /// A command of a session ran then, or had just been killed: undo and crash recovery may take
    /// the line back with it, as `docs/workspace.md` says.
    pub beside_command: bool,
}

/// What the model server's threads and the case look at.
#[derive(Debug, Default)]
pub struct Shared {
    pub project: PathBuf,
    pub in_place: bool,
    /// Commands don't name the ignored file that they change: they aren't tried out first.
    pub is_script: bool,
    pub saved: Mutex<Vec<Saved>>,
    pub violations: Mutex<Vec<Violation>>,
    /// Calls in place that the model was told were cut off.
    pub told_cut_off: AtomicUsize,
    /// Calls, by task, of whose changes the model was told that none to tracked files are in place.
    pub void: Mutex<BTreeSet<(usize, usize)>>,
    /// Two sessions are at work: a command of the one may run whenever the model of the other is
    /// asked.
    pub is_pair: AtomicBool,
}

impl Shared {
    pub fn violation(&self, kind: &'static str, text: impl Into<String>) {
        self.violations.lock().unwrap().push(Violation { kind, text: text.into() });
    }

    /// The user adds a line to one of their files.
    pub fn save(&self, beside_command: bool) {
        let mut saved = self.saved.lock().unwrap();
        let file = USERS[saved.len() % 2];
        let line = format!("the user's line {}\n", saved.len());
        let mut open = OpenOptions::new().append(true).create(true).open(self.project.join(file)).unwrap();
        open.write_all(line.as_bytes()).unwrap();
        saved.push(Saved { file, line, beside_command });
    }

    pub fn text(&self, path: &str) -> String {
        std::fs::read_to_string(self.project.join(path)).unwrap_or_default()
    }

    pub fn is_there(&self, effect: &Effect) -> bool {
        self.text(&effect.path).contains(&effect.text)
    }

    /// Answers as a model does that believes all that it is told.
    fn answer(self: &Arc<Self>, seen: &Seen) -> Step {
        let body = &seen.body;
        if body["model"] != "tiny" {
            self.violation("other model", body["model"].to_string());
        }
        let text = body["messages"].to_string();
        let task = usize::from(text.contains("soak task 1"));
        let results: Vec<String> =
            body["messages"].as_array().into_iter().flatten().filter_map(result).collect();
        let again = |text: &str| text.contains("safe to do it again") || text.contains("not run: ");
        let done: Vec<&String> = results.iter().filter(|text| !again(text)).collect();
        let nth = done.len();
        let void = done.iter().enumerate().filter(|(_, text)| text.contains(NONE_TRACKED));
        self.void.lock().unwrap().extend(void.map(|(at, _)| (task, at)));
        if let Some(newest) = results.last().filter(|text| self.in_place && text.contains("cut off")) {
            self.hold_to(task, if again(newest) { nth } else { nth - 1 }, newest);
        }
        if nth == 1 {
            let own = Arc::clone(self);
            std::thread::spawn(move || own.save_beside(task));
        } else if nth.is_multiple_of(2) {
            self.save(self.is_pair.load(Ordering::SeqCst));
        }
        reply(task, nth, self.is_script).into()
    }

    /// Waits until the long command of a task has begun, and saves while it runs.
    fn save_beside(&self, task: usize) {
        let begun = effects_of(task, 1);
        let before = Instant::now();
        while self.in_place && !self.is_there(&begun[1]) && before.elapsed() < Duration::from_secs(1) {
            std::thread::sleep(LOOK);
        }
        // The case may be over.
        if self.project.exists() {
            self.save(true);
        }
    }

    /// Compares what the model is told of a call that was cut off with the tree.
    fn hold_to(&self, task: usize, nth: usize, told: &str) {
        self.told_cut_off.fetch_add(1, Ordering::SeqCst);
        let there: Vec<Effect> =
            effects_of(task, nth).into_iter().filter(|effect| self.is_there(effect)).collect();
        let paths = |ignored: bool| {
            let some = there.iter().filter(|effect| effect.ignored == ignored);
            some.map(|effect| effect.path.as_str()).collect::<Vec<_>>()
        };
        let untrue =
            |why: &str| self.violation("told the model untruly", format!("call {nth}, {why}: {told}"));
        let (tracked, ignored) = (paths(false), paths(true));
        let is_left = |path: &&&str| told.contains(&format!("{path} differs and was left as it is"));
        let unsaid: Vec<_> = tracked.iter().filter(|path| !is_left(path)).collect();
        if told.contains(NONE_TRACKED) && !unsaid.is_empty() {
            untrue(&format!("{unsaid:?} is there"));
        }
        if told.contains("none that is there now was changed") && !ignored.is_empty() {
            untrue(&format!("{ignored:?} was changed"));
        }
        if let Some((_, rest)) = told.split_once("changed while it ran and left so: ") {
            let named = rest.split(". ").next().unwrap_or_default().trim_end_matches(" and perhaps more");
            let is_changed = |path: &str| {
                let all = (0..2).flat_map(effects);
                all.into_iter().any(|effect| effect.path == path && self.is_there(&effect))
            };
            named.split(", ").filter(|path| !is_changed(path)).for_each(&untrue);
        }
        if let Some(put_back) = PutBack::of(told) {
            let is_named = |path: &&&str| put_back.paths.iter().any(|named| named == **path);
            let left: Vec<_> = tracked.iter().filter(is_named).collect();
            if !left.is_empty() {
                untrue(&format!("{left:?} isn't as it was"));
            }
        }
        if told.contains("safe to do it again") && !there.is_empty() {
            untrue(&format!("{there:?} is there"));
        }
        if let Some((_, rest)) = told.split_once("don't make them again: ") {
            let named: Vec<&str> = rest.split(". ").next().unwrap_or_default().split(", ").collect();
            let gone = effects_of(task, nth).into_iter().filter(|effect| !self.is_there(effect));
            gone.filter(|effect| named.contains(&effect.path.as_str()))
                .for_each(|effect| untrue(&format!("{effect:?} isn't there")));
        }
    }
}

/// What a sentence says was put back of a command that was cut off.
#[derive(Debug, Clone, Default)]
pub struct PutBack {
    pub paths: Vec<String>,
    /// Checkpoints that have it.
    pub checkpoints: Vec<u64>,
}

impl PutBack {
    /// Reads the sentence, where a text has it in its known shape.
    pub fn of(text: &str) -> Option<Self> {
        const SAYS: &str =
            "What differed from before it was put back, also what a person may have changed while it ran: ";
        let (_, rest) = text.split_once(SAYS)?;
        let (paths, rest) = rest.split_once(". `jm redo` gives it back once the session has ended")?;
        let kept = rest.strip_prefix("; ").and_then(|rest| rest.split_once(" has it.")).map(|(kept, _)| kept);
        let numbers = kept.unwrap_or_default().split(", ");
        let checkpoints =
            numbers.filter_map(|one| one.strip_prefix("checkpoint ")?.parse::<u64>().ok()).collect();
        Some(Self { paths: paths.split(", ").map(str::to_owned).collect(), checkpoints })
    }
}

/// The text of a message that is a call's result.
fn result(message: &Value) -> Option<String> {
    (message["role"] == "tool").then(|| match &message["content"] {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    })
}

/// How a command ended.
#[derive(Debug)]
pub struct Ended {
    pub command: String,
    pub signal: Option<Signal>,
    /// `None` after a signal that it didn't take itself.
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

/// A command that runs.
pub struct Running {
    child: Child,
    command: String,
    outputs: [PathBuf; 2],
}

/// The moment at which a command is ended.
#[derive(Debug, Clone, Copy)]
pub enum Moment {
    /// After so many requests to the model since its begin.
    Request(usize),
    /// After so many lines of output.
    Line(usize),
    /// At any.
    Begin,
}

pub struct World {
    pub house: House,
    pub server: Server,
    pub shared: Arc<Shared>,
    pub before: BTreeMap<PathBuf, Vec<u8>>,
    commands: std::cell::Cell<usize>,
}

impl World {
    pub fn new(in_place: bool, is_script: bool) -> Self {
        let house = House::new();
        house.write(".gitignore", "ignored/\n");
        house.write("check.sh", CHECK_SCRIPT);
        house.write("note.sh", NOTE_SCRIPT);
        house.write("Makefile", format!("test:\n\techo {WRONG_CHECK}; exit 1\n"));
        house.write("a.txt", "a\n");
        for task in 0..2 {
            house.write(&format!("lines{task}.txt"), format!("first\nold {task}\nlast\n"));
            house.write(&format!("ledger{task}.txt"), "ledger\n");
            house.write(&ignored_ledger(task), "ledger\n");
        }
        house.git(&["init", "-q", "-b", "main"]);
        house.git(&["add", "."]);
        house.git(&["commit", "-q", "-m", "A project"]);
        house.write("notes.txt", "notes\n");
        let shared = Arc::new(Shared { project: house.project(), in_place, is_script, ..Shared::default() });
        let theirs = Arc::clone(&shared);
        let server = Server::answering(move |_, seen| theirs.answer(seen));
        let before = house.tree();
        Self { house, server, shared, before, commands: std::cell::Cell::new(0) }
    }

    /// The words of `jm run` for a task.
    pub fn run_words(&self, flags: &[&str], task: usize) -> Vec<String> {
        let url = self.server.url();
        let (command, flags) = match flags {
            ["ask", flags @ ..] => ("ask", flags),
            flags => ("run", flags),
        };
        let fixed = [command, "--base-url", &url, "--wire", "chat", "--model", "tiny"];
        let task = format!("soak task {task}");
        fixed.iter().chain(flags).map(|word| (*word).to_owned()).chain([task]).collect()
    }

    pub fn start(&self, words: &[String]) -> Running {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let number = self.commands.replace(self.commands.get() + 1);
        let outputs = ["out", "err"].map(|name| self.house.at(&format!("{name}-{number}")));
        let file = |path: &Path| Stdio::from(File::create(path).unwrap());
        let mut command = self.house.jm(&words).env("JM_API_KEY", KEY).env("NO_COLOR", "1").command();
        // The scenarios say themselves where a run works.
        let command = command.env_remove("JM_ISOLATE").process_group(0).stdin(Stdio::null());
        let child = command.stdout(file(&outputs[0])).stderr(file(&outputs[1])).spawn().unwrap();
        Running { child, command: words.join(" "), outputs }
    }

    /// Runs a command to its end.
    pub fn run(&self, words: &[String]) -> Ended {
        self.end(self.start(words), None)
    }

    /// Runs a command and ends it at a moment, and so much later.
    pub fn cut(&self, running: Running, moment: Moment, later: Duration, signal: Signal) -> Ended {
        let (mut running, before) = (running, self.server.seen().len());
        let begin = Instant::now();
        loop {
            let is_now = match moment {
                Moment::Request(count) => self.server.seen().len() >= before + count,
                Moment::Line(count) => running.outputs.iter().map(|path| lines(path)).sum::<usize>() >= count,
                Moment::Begin => true,
            };
            if is_now || running.child.try_wait().unwrap().is_some() || begin.elapsed() > TIMEOUT {
                break;
            }
            std::thread::sleep(LOOK);
        }
        std::thread::sleep(later);
        self.end(running, Some(signal))
    }

    fn end(&self, mut running: Running, signal: Option<Signal>) -> Ended {
        let group = Pid::from_child(&running.child);
        let is_over = running.child.try_wait().unwrap().is_some();
        let signal = signal.filter(|_| !is_over);
        if let Some(signal) = signal {
            kill_process_group(group, signal).ok();
        }
        let begin = Instant::now();
        while running.child.try_wait().unwrap().is_none() {
            if begin.elapsed() > TIMEOUT {
                self.shared.violation("hangs", running.command.clone());
                kill_process_group(group, Signal::KILL).ok();
            }
            std::thread::sleep(LOOK);
        }
        let status = running.child.wait().unwrap();
        let read = |path: &Path| String::from_utf8_lossy(&std::fs::read(path).unwrap()).into_owned();
        let [out, err] = running.outputs.each_ref().map(|path| read(path));
        if let Some(other) = status.signal().filter(|other| signal.is_none_or(|sent| sent.as_raw() != *other))
        {
            self.shared.violation("died", format!("{}: by signal {other}\n{err}", running.command));
        }
        Ended { command: running.command, signal, code: status.code(), out, err }
    }

    /// The sessions of the project, newest first.
    pub fn sessions(&self) -> Vec<Value> {
        let ended = self.run(&["sessions", "--json"].map(str::to_owned));
        ended.out.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// The names of the copies in the state directory, which are their sessions' ids.
    pub fn copies(&self) -> Vec<String> {
        let entries = |directory: PathBuf| std::fs::read_dir(directory).into_iter().flatten().flatten();
        let projects = entries(self.house.state().join("projects"));
        let copies = projects.flat_map(|project| entries(project.path().join("work")));
        copies.map(|copy| copy.file_name().to_string_lossy().into_owned()).collect()
    }

    /// The newest session of a task, a candidate before the run that it belongs to.
    pub fn session_of(&self, task: usize) -> Option<String> {
        let title = format!("soak task {task}");
        let sessions = self.sessions();
        let found =
            sessions.iter().find(|one| one["title"].as_str().is_some_and(|found| found.contains(&title)));
        Some(found?["id"].as_str()?.to_owned())
    }
}

fn lines(path: &Path) -> usize {
    std::fs::read(path).map_or(0, |bytes| bytes.iter().filter(|byte| **byte == b'\n').count())
}
