//! `jm export`: a session for other programs, and to be read.

use crate::open_state;
use journeyman_host::sessions::find_session;
use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use futures_util::TryStreamExt as _;
use journeyman_agent::State;
use journeyman_host::Context as _;
use journeyman_host::config::Environment;
use journeyman_model::{ModelRequest, Wire, request_body};
use journeyman_protocol::{Block, Message, ResultPart, Role};
use journeyman_sandbox::clean;
use journeyman_store::{SessionSummary, export as lines, export_file};
use serde_json::{Map, Value};

use crate::args::{ExportArgs, Format};
use crate::{stdout, summary};
use journeyman_host::HostError;

/// What the result of a call says that has none.
const UNANSWERED: &str = "(no result: the session was cut off here)";

pub(crate) async fn export(environment: &Environment, args: &ExportArgs) -> Result<u8, HostError> {
    let dirs = open_state(environment)?;
    let session = find_session(&dirs, environment, &args.session).await?;
    let place = args.output.as_ref().map(|path| environment.cwd.join(path));
    if let Some(path) = place.as_ref().filter(|path| path.symlink_metadata().is_ok()) {
        return Err(HostError::usage(format_args!(
            "{} is there already; give a new file, or leave -o out and say where with >",
            path.display()
        )));
    }
    match (args.format, &place) {
        (Format::Jsonl, Some(path)) => {
            export_file(&*dirs.store, &session.id, path).await.context("the session log")?;
        }
        (Format::Jsonl, None) => {
            let mut lines = lines(&*dirs.store, &session.id);
            while let Some(some) = lines.try_next().await.context("the session log")? {
                // Entries are JSON, and JSON is text.
                stdout::write_bytes(&some);
            }
        }
        (format, place) => {
            let state = State::load(&*dirs.store, &session.id).await?;
            let text = conversation(format, &session, state)?;
            match place {
                Some(path) => write_new(path, &text)?,
                None => stdout::write(&text),
            }
        }
    }
    Ok(0)
}

fn write_new(path: &Path, text: &str) -> Result<(), HostError> {
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    let mut file = file.context(path.display().to_string())?;
    file.write_all(text.as_bytes()).context(path.display().to_string())
}

fn conversation(format: Format, session: &SessionSummary, mut state: State) -> Result<String, HostError> {
    if state.messages.is_empty() {
        return Err(HostError::usage(format_args!("nothing was said in session {} yet", session.id)));
    }
    answer_all(&mut state);
    let wire = match format {
        Format::Openai => Wire::Chat,
        Format::Markdown => return Ok(markdown(session, &state)),
        Format::Anthropic | Format::Jsonl => Wire::Anthropic,
    };
    let model = state.setting.map(|setting| setting.model).unwrap_or_default();
    let model = model.split_once('/').map(|(_, model)| model.to_owned()).unwrap_or(model);
    let request =
        ModelRequest { model, system: state.system, messages: state.messages, ..ModelRequest::default() };
    let body = request_body(wire, &request).context("the conversation")?;
    let mut kept = Map::new();
    for key in ["model", "system", "messages"] {
        if let Some(value) = body.get(key) {
            kept.insert(key.to_owned(), value.clone());
        }
    }
    let mut kept = Value::Object(kept);
    without_markers(&mut kept);
    Ok(format!("{kept:#}\n"))
}

/// Calls that have no result yet get one: no provider takes a conversation with a call that has none.
fn answer_all(state: &mut State) {
    let results = std::mem::take(&mut state.calls)
        .into_iter()
        .map(|open| open.result.unwrap_or_else(|| Block::result(open.call.id.clone(), UNANSWERED, true)));
    let content: Vec<Block> = results.collect();
    if !content.is_empty() {
        state.messages.push(Message { role: Role::User, content });
    }
}

/// Takes the marks for a prompt cache out: they are about a request, not about what was said.
fn without_markers(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.remove("cache_control");
            members.values_mut().for_each(without_markers);
        }
        Value::Array(items) => items.iter_mut().for_each(without_markers),
        _ => {}
    }
}

fn markdown(session: &SessionSummary, state: &State) -> String {
    let mut out = format!("# {}\n\n", one_line(&session.title));
    let model = state.setting.as_ref().map(|setting| setting.model.as_str()).unwrap_or_default();
    // Writing to a string can't fail.
    writeln!(
        out,
        "Session {}, {} UTC, {model}, in `{}`.",
        session.id,
        summary::minute(session.created),
        session.root
    )
    .ok();
    for message in &state.messages {
        let who = match message.role {
            Role::User if message.content.iter().all(|block| matches!(block, Block::ToolResult { .. })) => {
                None
            }
            Role::User => Some("User"),
            Role::Assistant => Some("Model"),
        };
        if let Some(who) = who {
            writeln!(out, "\n## {who}").ok();
        }
        message.content.iter().for_each(|block| part(block, &mut out));
    }
    out
}

fn part(block: &Block, out: &mut String) {
    match block {
        Block::Text { text } => push(out, clean(text.trim().as_bytes()).as_str()),
        Block::Thinking { text, .. } if !text.trim().is_empty() => {
            let quoted: Vec<String> =
                clean(text.trim().as_bytes()).lines().map(|line| format!("> {line}")).collect();
            push(out, &quoted.join("\n"));
        }
        Block::Thinking { .. } => {}
        Block::Image(image) => push(out, &format!("*(an image, {})*", image.media_type)),
        Block::ToolUse(call) => {
            push(out, &format!("**{}**", call.name));
            push(out, &fenced("json", &format!("{:#}", call.input)));
        }
        Block::ToolResult { content, is_error, .. } => {
            push(out, if *is_error { "*failed:*" } else { "*result:*" });
            for part in content {
                match part {
                    ResultPart::Text { text } => push(out, &fenced("", text)),
                    ResultPart::Image(image) => push(out, &format!("*(an image, {})*", image.media_type)),
                }
            }
        }
    }
}

fn push(out: &mut String, text: &str) {
    out.push('\n');
    out.push_str(text);
    out.push('\n');
}

fn one_line(text: &str) -> String {
    clean(text.lines().next().unwrap_or_default().as_bytes())
}

/// A block of text whose fence is longer than any in it.
fn fenced(language: &str, text: &str) -> String {
    let text = clean(text.as_bytes());
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}{language}\n{}\n{fence}", text.trim_end_matches('\n'))
}
