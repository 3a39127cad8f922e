//! The task that every child works at: 30 calls, and a model that finds its place from the
//! transcript alone.

use std::collections::HashMap;

use futures_util::{StreamExt as _, stream};
use journeyman_model::{Delta, DeltaStream, Model, ModelError, ModelRequest, Reply};
use journeyman_protocol::{Block, CallId, Message, ResultPart, Role, StopReason, Tokens, ToolUse, Usage};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// What the user asks for.
pub(crate) const TASK: &str = "do the thirty things";
/// The command that a person is asked for, and says no to.
const REFUSED: &str = "git push";
/// The file that a person is asked for, and says yes to.
const ALLOWED: &str = "conf/.envrc";
/// What the session's check runs.
pub(crate) const CHECK: &str = "grep -q omega sum.txt && printf 'checked\\n' > check.out";
/// What the user says when it was stopped.
pub(crate) const GO_ON: &str = "go on";
/// A call that is cut off is made again, but not for ever.
const MOST_ATTEMPTS: usize = 12;

/// What a call is to come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Want {
    Done,
    /// An error that says this.
    Error(&'static str),
}

struct Call {
    tool: &'static str,
    input: Value,
    want: Want,
}

/// The project's files at the beginning.
pub(crate) const FILES: &[(&str, &str)] = &[
    ("a.txt", "alpha one\nalpha two\nalpha three\n"),
    ("b.txt", "beta\n"),
    ("c.txt", "gamma\n"),
    ("src/main.rs", "fn main() {\n    println!(\"one\");\n    println!(\"two\");\n}\n"),
    ("src/old.rs", "// old\n"),
    ("notes/todo.md", "- nothing\n"),
];

fn call(tool: &'static str, input: Value) -> Call {
    Call { tool, input, want: Want::Done }
}

fn read(path: &str) -> Call {
    call("read_file", json!({ "path": path }))
}

fn run(command: &str) -> Call {
    call("run_command", json!({ "command": command }))
}

fn edit(path: &str, search: &str, replace: &str) -> Call {
    call("edit_file", json!({ "path": path, "search": search, "replace": replace }))
}

fn write(path: &str, content: &str) -> Call {
    call("write_file", json!({ "path": path, "content": content }))
}

fn todos(first: &str, second: &str) -> Call {
    let list = json!([
        { "id": "1", "title": "edit", "status": first },
        { "id": "2", "title": "run", "status": second },
    ]);
    call("todo_write", json!({ "todos": list }))
}

/// Appends in steps: a second run, or a half one, would show.
fn steps(file: &str, words: &[&str]) -> String {
    let step = |word: &&str| format!("printf '{word}\\n' >> {file}; sleep 0.01");
    words.iter().map(step).collect::<Vec<_>>().join("; ")
}

/// The calls, by reply.
fn script() -> Vec<Vec<Call>> {
    let not = |call: Call, says| Call { want: Want::Error(says), ..call };
    vec![
        vec![
            read("a.txt"),
            call("list_files", json!({})),
            call("search_text", json!({ "pattern": "println" })),
        ],
        vec![todos("in_progress", "pending")],
        vec![edit("a.txt", "alpha two", "alpha 2")],
        vec![write("new.txt", "new\n"), write("deep/er/file.txt", "deep\n")],
        vec![run(&steps("log.txt", &["one", "two", "three"]))],
        vec![not(run(REFUSED), "denied by the user: not today"), write(ALLOWED, "export A=1\n")],
        vec![not(run(&format!("{}; exit 3", steps("fail.txt", &["before", "the", "end"]))), "exit code 3")],
        // Of different files: one that is cut off is made again after the other.
        vec![run(&steps("log.txt", &["four"])), run(&steps("log2.txt", &["five", "six"]))],
        vec![read("b.txt"), read("c.txt"), read("src/main.rs")],
        vec![
            edit("src/main.rs", "println!(\"one\")", "println!(\"1\")"),
            edit("src/main.rs", "println!(\"two\")", "println!(\"2\")"),
        ],
        vec![run(
            "mv src/old.rs src/new.rs; rm notes/todo.md; rmdir notes; sleep 0.02; mkdir made; printf x > made/x",
        )],
        vec![todos("completed", "in_progress")],
        vec![read("log.txt"), run(&steps("log.txt", &["seven"])), write("after.txt", "after\n")],
        vec![run(&steps("long.txt", &["1", "2", "3", "4", "5", "6", "7", "8"]))],
        vec![not(write(".git/hooks/pre-commit", "#!/bin/sh\n"), "denied")],
        vec![run(
            "chmod 755 new.txt; printf 'more\\n' >> new.txt; for f in 1 2 3 4 5; do printf $f > made/$f; done",
        )],
        vec![write("c.txt", "gamma ray\n")],
        vec![todos("completed", "completed")],
        vec![run("cat log.txt long.txt made/* > sum.txt; sleep 0.02; printf 'omega\\n' >> sum.txt")],
    ]
}

/// How many calls a run without a crash makes.
pub(crate) fn calls() -> usize {
    script().iter().map(Vec::len).sum()
}

/// The call that a person says no to.
pub(crate) fn refused() -> usize {
    let command = json!({ "command": REFUSED });
    script().into_iter().flatten().position(|call| call.input == command).expect("a call of the script")
}

/// Does the task, whatever the transcript says was done so far. It remembers nothing.
pub(crate) struct Script;

impl Model for Script {
    fn name(&self) -> String {
        "test/script".to_owned()
    }

    fn stream<'a>(&'a self, request: &'a ModelRequest, _cancel: CancellationToken) -> DeltaStream<'a> {
        let reply = next(&request.messages);
        stream::once(async move {
            let message = reply?;
            let calls = message.tool_uses().next().is_some();
            let stop = if calls { StopReason::ToolUse } else { StopReason::EndTurn };
            let usage = Usage { input: Tokens(10), output: Tokens(1), ..Usage::default() };
            Ok(Delta::Done(Box::new(Reply { message, stop, usage, model: "script".to_owned() })))
        })
        .boxed()
    }
}

/// What the model says next.
fn next(messages: &[Message]) -> Result<Message, ModelError> {
    let results = results(messages);
    let mut number = 0;
    for reply in script() {
        let mut again = Vec::new();
        for call in reply {
            let attempts: Vec<&str> = results.attempts(number);
            let fate = attempts.last().map_or(Ok(Fate::Again), |text| fate(text, call.want));
            match fate.map_err(|why| wrong(number, &why))? {
                Fate::Done => {}
                Fate::Again if attempts.len() >= MOST_ATTEMPTS => {
                    return Err(wrong(number, &format!("made {} times: {attempts:?}", attempts.len())));
                }
                Fate::Again => again.push(ToolUse {
                    id: id(number, attempts.len()),
                    name: call.tool.to_owned(),
                    input: call.input,
                    malformed: None,
                    signature: None,
                }),
            }
            number += 1;
        }
        if !again.is_empty() {
            let mut content = vec![Block::text("Next.")];
            content.extend(again.into_iter().map(Block::ToolUse));
            return Ok(Message { role: Role::Assistant, content });
        }
    }
    Ok(Message { role: Role::Assistant, content: vec![Block::text("All is done.")] })
}

fn wrong(number: usize, why: &str) -> ModelError {
    ModelError::Script(format!("call {number}: {why}"))
}

fn id(number: usize, attempt: usize) -> CallId {
    CallId::new(format!("c{number:02}.{attempt}"))
}

/// The place in the script that a call is of.
pub(crate) fn number_of(call: &CallId) -> usize {
    call.as_str()[1..3].parse().expect("a call of the script")
}

enum Fate {
    Done,
    Again,
}

/// What a result says of its call.
fn fate(text: &str, want: Want) -> Result<Fate, String> {
    if text.starts_with("cut off:") {
        if text.contains("differs and was left as it is") {
            return Err(format!("something was left over: {text}"));
        }
        return match (text.contains("None of its changes"), text.contains("Its changes are in place")) {
            (true, false) => Ok(Fate::Again),
            (false, true) => Ok(Fate::Done),
            _ => Err(format!("it can't be told what it did: {text}")),
        };
    }
    if text.starts_with("not run:") {
        return Ok(Fate::Again);
    }
    match want {
        Want::Done if !text.starts_with("ERROR ") => Ok(Fate::Done),
        Want::Error(says) if text.starts_with("ERROR ") && text.contains(says) => Ok(Fate::Done),
        _ => Err(format!("wanted {want:?}, got {text}")),
    }
}

/// Results by the place of their calls, in the order of the attempts.
struct Results(HashMap<usize, Vec<String>>);

impl Results {
    fn attempts(&self, number: usize) -> Vec<&str> {
        self.0.get(&number).into_iter().flatten().map(String::as_str).collect()
    }
}

fn results(messages: &[Message]) -> Results {
    let mut results: HashMap<usize, Vec<String>> = HashMap::new();
    for block in messages.iter().flat_map(|message| &message.content) {
        let Block::ToolResult { id, content, is_error } = block else { continue };
        let text: String = content
            .iter()
            .map(|part| match part {
                ResultPart::Text { text } => text.as_str(),
                ResultPart::Image(_) => "[image]",
            })
            .collect();
        let sealed = text.starts_with("cut off:") || text.starts_with("not run:");
        let text = if *is_error && !sealed { format!("ERROR {text}") } else { text };
        results.entry(number_of(id)).or_default().push(text);
    }
    Results(results)
}
