//! Known secrets reach neither log, events, reports nor the model (invariant 12).

use std::sync::Arc;

use journeyman_agent::hooks::{GateDecision, HooksBuilder, PreToolAnswer, PreToolDecision};
use journeyman_agent::schedule::ScheduledJob;
use journeyman_agent::todos::TodoDraft;
use journeyman_agent::{Approver, ChecksSetting, CutOffPolicy, PermissionAnswer, RunSettings};
use journeyman_model::{Delta, ModelError};
use journeyman_protocol::{ContentHash, Event, MessageKind, Mode, ReminderCategory, RunReport};
use journeyman_store::{SqliteStore, Store};
use journeyman_tools::ToolOutput;
use serde_json::json;

use crate::session::conformance::permission::files_below;
use crate::session::support::bench::{Bench, auto, confined, in_mode};
use crate::session::support::log::Failing;
use crate::session::support::model::{Step, Told, calls, fails, piece, says};
use crate::session::support::tools::Does;

cases![
    wherever_a_secret_stands,
    what_the_model_says_is_not_kept,
    secrets_cut_by_a_bound,
    secrets_split_over_pieces_of_a_stream,
    no_file_of_the_program_has_one,
];

/// A value that the user configured.
const VALUE: &str = "correct-horse-battery-staple";

/// The shape of a GitHub token, put together so that this file holds none.
fn token() -> String {
    format!("ghp{}{}", "_", "Zx9Kq2Lm7Wv4Rt8Yp3Nb6Hc1Jd5Fg0SaQeUi")
}

fn secrets() -> [String; 2] {
    [VALUE.to_owned(), token()]
}

/// Everything that a run showed, kept or returned.
struct Traces {
    log: String,
    shown: String,
    report: RunReport,
    titles: String,
    heard: String,
}

async fn traces(files: &[(&str, &str)], task: &str, steps: Vec<Step>, settings: RunSettings) -> Traces {
    let mut bench = Bench::new(files);
    bench.secrets = vec![VALUE.to_owned()];
    let told = Told::new(steps);
    let mut session = bench.start(&told, settings);
    session.handle.send(task).await.unwrap();
    session.done().await;
    let report = (*session.handle.wait_until_finished().await.unwrap()).clone();
    let titles = format!("{:?}", bench.log.sessions(None, 10).await.unwrap());
    Traces { log: bench.log.text(), shown: session.text(), report, titles, heard: told.heard() }
}

impl Traces {
    fn assert_clean(&self, place: &str, secret: &str) {
        let report = serde_json::to_string(&self.report).unwrap();
        let all = [
            ("the log", &self.log),
            ("an event", &self.shown),
            ("the report", &report),
            ("the list of sessions", &self.titles),
            ("a request", &self.heard),
        ];
        for (name, text) in all {
            assert!(!text.contains(secret), "{place}: {name} has the secret: {}", around(text, secret));
        }
    }
}

/// Where a text has it.
fn around(text: &str, secret: &str) -> String {
    let place = text.find(secret).unwrap_or_default();
    let start = text.floor_char_boundary(place.saturating_sub(120));
    text[start..text.ceil_char_boundary(place + secret.len())].to_owned()
}

async fn wherever_a_secret_stands() {
    if !confined().await {
        return;
    }
    for secret in secrets() {
        let line = format!("key = \"{secret}\"\n");
        let read = calls([
            ("c1", "read_file", json!({ "path": "secret.txt" })),
            ("c2", "search_text", json!({ "pattern": "key" })),
            ("c3", "run_command", json!({ "command": "cat secret.txt" })),
            ("c4", "run_command", json!({ "command": "cat secret.txt >&2; exit 1" })),
        ]);
        let files = [("secret.txt", line.as_str())];
        traces(&files, "do it", vec![read, says("read")], auto()).await.assert_clean("a file", &secret);

        let task = format!("use {secret} to log in");
        traces(&[], &task, vec![says("no")], auto()).await.assert_clean("the task", &secret);

        let files = [("AGENTS.md", line.as_str())];
        traces(&files, "do it", vec![says("done")], auto()).await.assert_clean("instructions", &secret);

        let settings = RunSettings { instructions: Some(line.clone()), ..auto() };
        traces(&[], "do it", vec![says("done")], settings)
            .await
            .assert_clean("the user's instructions", &secret);

        let files = [("secret.txt", line.as_str())];
        let write = || calls([("c1", "write_file", json!({ "path": "a.txt", "content": "a\n" }))]);
        let steps = vec![write(), says("written"), says("done")];
        let checks = ChecksSetting::Custom(vec!["cat secret.txt; false".to_owned()]);
        let settings = RunSettings { checks, max_iterations: 1, ..auto() };
        traces(&files, "do it", steps, settings).await.assert_clean("a check's output", &secret);

        let copy = calls([("c1", "run_command", json!({ "command": "cp secret.txt copy.txt" }))]);
        traces(&files, "do it", vec![copy, says("copied")], auto()).await.assert_clean("the diff", &secret);

        let error = ModelError::Protocol(format!("{secret} is not valid"));
        traces(&[], "do it", vec![fails(error)], auto()).await.assert_clean("an error", &secret);
    }
}

/// The model's own words go back to it as they came, because proofs cover them; they are kept
/// nowhere.
async fn what_the_model_says_is_not_kept() {
    for secret in secrets() {
        let input = json!({ "path": format!("{secret}.txt"), "content": secret });
        let steps = vec![calls([("c1", "write_file", input)]), says(&format!("I wrote {secret}"))];
        let settings = RunSettings { checks: ChecksSetting::Off, ..auto() };
        let mut traces = traces(&[], "do it", steps, settings).await;
        traces.heard = String::new();
        traces.assert_clean("the model's words", &secret);
    }
}

/// Half a secret is a secret: redaction comes before a text is cut.
async fn secrets_cut_by_a_bound() {
    if !confined().await {
        return;
    }
    for secret in secrets() {
        let half = &secret[..secret.len() / 2];
        // A title has 120 characters.
        let task = format!("{} {secret} and so on", "x".repeat(119 - secret.len() / 2));
        traces(&[], &task, vec![says("done")], auto()).await.assert_clean("a title", half);

        // A command is shown with its first 200 bytes.
        let long = format!("echo {} {secret}", "x".repeat(190 - secret.len() / 2));
        let run = calls([("c1", "run_command", json!({ "command": long }))]);
        let mut summary = traces(&[], "do it", vec![run, says("done")], in_mode(Mode::Plan)).await;
        summary.heard = String::new();
        summary.assert_clean("a summary", half);

        // A result is shown with its first 2,000 characters.
        for lead in (1_985 - secret.len()..=2_000).step_by(5) {
            let text = format!("{} {secret} and so on\n", "x".repeat(lead));
            let run = calls([("c1", "run_command", json!({ "command": "cat long.txt" }))]);
            let files = [("long.txt", text.as_str())];
            let steps = vec![run, says("run")];
            traces(&files, "do it", steps, auto()).await.assert_clean("a preview", half);
        }
    }
}

/// A stream brings a secret in pieces, none of which is one.
async fn secrets_split_over_pieces_of_a_stream() {
    for secret in secrets() {
        for size in [1, 7, 16] {
            let text = format!("it is {secret}, I think");
            let pieces: Vec<char> = text.chars().collect();
            let pieces: Vec<String> = pieces.chunks(size).map(|piece| piece.iter().collect()).collect();
            let think = |text: &String| Delta::Thinking { block: 1, text: text.clone() };
            let deltas: Vec<Delta> =
                pieces.iter().map(|text| piece(text)).chain(pieces.iter().map(think)).collect();
            let mut traces = traces(&[], "do it", vec![says(&text).after(deltas)], auto()).await;
            traces.heard = String::new();
            traces.shown = put_together(&traces.shown);
            assert!(traces.shown.contains(", I think"), "{}", traces.shown);
            traces.assert_clean("a stream", &secret);
        }
    }
}

/// The pieces of each block, joined.
fn put_together(shown: &str) -> String {
    let mut blocks = [String::new(), String::new()];
    for line in shown.lines() {
        let event: serde_json::Value = serde_json::from_str(line).unwrap();
        if let (Some(block), Some(text)) = (event["block"].as_u64(), event["text"].as_str()) {
            blocks[usize::try_from(block).unwrap()].push_str(text);
        }
    }
    blocks.join("\n")
}

/// Whatever there is that takes a text: all of it with the secret, and none of it in any file
/// beside the project.
async fn no_file_of_the_program_has_one() {
    if !confined().await {
        return;
    }
    for secret in secrets() {
        let mut bench = planted(&secret);
        let told = Told::new([
            calls([
                ("c1", "read_file", json!({ "path": "secret.txt" })),
                ("c2", "run_command", json!({ "command": "cat secret.txt; echo err $(cat secret.txt) >&2" })),
                ("c3", "tells", json!({ "note": secret })),
                ("c4", "write_file", json!({ "path": "made.txt", "content": "made\n" })),
                ("c5", "todo_write", json!({ "todos": [{ "id": "1", "title": format!("use {secret}") }] })),
                ("c6", "search_text", json!({ "pattern": secret })),
            ])
            .after(vec![piece("I use "), piece(&secret)]),
            says(&format!("I used {secret}")),
            says("and again"),
        ]);
        let settings = RunSettings {
            approver: Approver::Handle,
            checks: ChecksSetting::Custom(vec!["cat secret.txt; true".to_owned()]),
            instructions: Some(format!("log in with {secret}")),
            ..in_mode(Mode::Ask)
        };
        let mut session = bench.start(&told, settings.clone());
        let handle = session.handle.clone();
        let title = Some(format!("hide {secret}"));
        handle.todos().set(vec![TodoDraft { title, ..TodoDraft::default() }]).unwrap();
        let every = std::num::NonZeroU64::MIN;
        handle.schedule().every("remind", every, ScheduledJob::Reminder(format!("{secret} is due"))).unwrap();
        handle.remind(ReminderCategory::General, format!("remember {secret}")).await.unwrap();
        handle.send_as(MessageKind::System, format!("[from:x] {secret}")).await.unwrap();
        handle.send(format!("{secret} is the key")).await.unwrap();
        loop {
            let wanted =
                |event: &Event| matches!(event, Event::PermissionRequired { .. } | Event::Done { .. });
            let Event::PermissionRequired { call, .. } = session.until(wanted).await else { break };
            let note = Some(format!("keep {secret} to yourself"));
            let answer = match call.as_str() {
                "c3" => PermissionAnswer::Deny { note },
                "c4" => PermissionAnswer::AllowRule { note },
                _ => PermissionAnswer::Allow { note },
            };
            assert!(handle.decide_as(&call, answer, &format!("the surface {secret}")));
        }
        handle.snapshot(&format!("before {secret}")).await.unwrap();
        let shown = session.text();
        assert!(!shown.contains(&secret), "an event: {}", around(&shown, &secret));
        handle.close().await;
        drop((session, handle));
        let session = bench.resume(&told, settings, CutOffPolicy::Continue).await.unwrap();
        session.handle.send(format!("again {secret}")).await.unwrap();
        session.handle.wait_until_finished().await.unwrap();
        let state = bench.state().await;
        assert!(!format!("{state:?}").contains(&secret));
        assert!(state.snapshots.keys().all(|name| name.starts_with("before ")), "{:?}", state.snapshots);
        let mut looked = 0;
        for file in files_below(&bench.outside) {
            // The project is the user's own, and so is the copy of its files that undoing puts
            // back.
            if file.starts_with(&bench.root) || is_pre_image(&file, &secret) {
                continue;
            }
            looked += 1;
            let bytes = std::fs::read(&file).unwrap();
            let found = bytes.windows(secret.len()).position(|window| window == secret.as_bytes());
            let near =
                found.map(|at| String::from_utf8_lossy(&bytes[at.saturating_sub(200)..at]).into_owned());
            assert_eq!(near, None, "{}", file.display());
        }
        assert!(looked >= 2, "the log and its journal are among them: {looked}");
    }
}

fn line(secret: &str) -> String {
    format!("key = \"{secret}\"\n")
}

/// Whether a file is the kept copy of the project's file with the secret, named by its content.
fn is_pre_image(file: &std::path::Path, secret: &str) -> bool {
    let hash = ContentHash::of(line(secret).as_bytes()).to_string();
    let name = file.file_name().unwrap().to_string_lossy().into_owned();
    file.components().any(|part| part.as_os_str() == "blobs") && hash.ends_with(&name)
}

/// A project with a secret in a file, hooks that say it, and a tool that tells it.
fn planted(secret: &str) -> Bench {
    let said = |words: &str| format!("{words} {secret}");
    let [one, two, three, four, five] = ["started", "before", "after", "asked", "sent"].map(said);
    let hooks = HooksBuilder::new()
        .on_session_start(move |_| vec![one.clone()])
        .on_prompt(move |_, _| GateDecision::Go { context: vec![five.clone()] })
        .on_pre_tool(move |_, _, _| PreToolAnswer { context: vec![two.clone()], ..PreToolAnswer::default() })
        .on_pre_tool(move |_, call, _| match call.name.as_str() {
            "search_text" => PreToolDecision::Deny { reason: four.clone() },
            "tells" => PreToolDecision::Ask { reason: four.clone() },
            _ => PreToolDecision::Go,
        })
        .on_post_tool(move |_, _, result| {
            let text = result.text();
            result.set_text(format!("{text}\n{three}"));
            vec![three.clone()]
        });
    let secret_of_tool = secret.to_owned();
    let tells = Does::reading("tells", move |context, _| {
        let secret = secret_of_tool.clone();
        async move {
            (context.emit)(&secret, json!({ "key": secret, secret.clone(): "as a name" }));
            (context.output)(secret.clone());
            Ok(ToolOutput::text(secret))
        }
    });
    let open = |directory: &std::path::Path| -> Arc<dyn Store> {
        Arc::new(SqliteStore::open(&directory.join("sessions.db")).unwrap())
    };
    let line = line(secret);
    let files = [("secret.txt", line.as_str()), ("AGENTS.md", line.as_str())];
    let mut bench = Bench::with_log(&files, open, Failing::Never).with_hooks(hooks.build()).with_tool(tells);
    bench.secrets = vec![VALUE.to_owned()];
    bench
}
