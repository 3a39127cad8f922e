//! Exports sessions into files: complete, as provider requests, or as Markdown.

use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use futures_util::TryStreamExt as _;
use journeyman_agent::State;
use journeyman_agent::agents::list_descendant_agents;
use journeyman_model::{ModelRequest, Wire, request_body};
use journeyman_protocol::{Block, Message, ResultPart, Role, Seq};
use journeyman_sandbox::clean_output;
use journeyman_store::{SessionSummary, export, export_file};
use serde_json::{Map, Value};

use crate::state::{StateDirs, format_minute};
use crate::{Context as _, HostError};

/// The result of a call that has none.
const MISSING_RESULT_TEXT: &str = "(no result: the session was cut off here)";

/// The formats that a session is exported in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportFormat {
    /// The whole log and those of the session's agents, which can be imported again.
    Log,
    /// The conversation alone.
    Conversation(ConversationFormat),
}

impl ExportFormat {
    /// The formats by name.
    pub const NAMED: [(&'static str, Self); 4] = [
        ("jsonl", Self::Log),
        ("anthropic", Self::Conversation(ConversationFormat::Anthropic)),
        ("openai", Self::Conversation(ConversationFormat::Openai)),
        ("markdown", Self::Conversation(ConversationFormat::Markdown)),
    ];
}

/// The formats of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConversationFormat {
    /// The request of the Anthropic Messages API.
    Anthropic,
    /// The request of OpenAI Chat Completions.
    Openai,
    /// Text for people.
    Markdown,
}

/// Exports a session into a new file that only its owner can read, or to `write`.
///
/// # Errors
/// [`HostError::Usage`] where the file exists already or the session has no messages yet.
pub async fn export_session(
    state: &StateDirs,
    session: &SessionSummary,
    format: ExportFormat,
    file: Option<&Path>,
    write: fn(&[u8]),
) -> Result<(), HostError> {
    if let Some(path) = file.filter(|path| path.symlink_metadata().is_ok()) {
        return Err(HostError::usage(format_args!(
            "{} is there already; give a new file, or leave -o out and say where with >",
            path.display()
        )));
    }
    match (format, file) {
        (ExportFormat::Log, Some(path)) => {
            let agents = list_descendant_agents(&*state.store, &session.id).await?;
            export_file(&*state.store, &session.id, &agents, path).await.context("the session log")
        }
        (ExportFormat::Log, None) => {
            let agents = list_descendant_agents(&*state.store, &session.id).await?;
            let mut lines = export(&*state.store, &session.id, &agents);
            while let Some(some) = lines.try_next().await.context("the session log")? {
                write(&some);
            }
            Ok(())
        }
        (ExportFormat::Conversation(format), file) => {
            let text = format_conversation(
                format,
                session,
                State::load_unshortened(&*state.store, &session.id).await?,
            )?;
            match file {
                Some(path) => write_new_file(path, &text).context(path.display().to_string()),
                None => {
                    write(text.as_bytes());
                    Ok(())
                }
            }
        }
    }
}

/// Returns the conversation of a session as the model saw it before it was shortened last, as
/// Markdown.
///
/// # Errors
/// [`HostError::Usage`] where it wasn't shortened.
pub async fn conversation_before_compaction(
    state: &StateDirs,
    session: &SessionSummary,
) -> Result<String, HostError> {
    let Some(at) = State::find_last_compaction(&*state.store, &session.id).await? else {
        return Err(HostError::usage(format_args!(
            "the conversation of session {} was not shortened; jm show {} shows it",
            session.id, session.id
        )));
    };
    let before = State::load_until(&*state.store, &session.id, Seq(at.0.saturating_sub(1))).await?;
    format_conversation(ConversationFormat::Markdown, session, before)
}

fn write_new_file(path: &Path, text: &str) -> std::io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())
}

/// Returns the conversation of a session as text.
fn format_conversation(
    format: ConversationFormat,
    session: &SessionSummary,
    mut state: State,
) -> Result<String, HostError> {
    if state.messages.is_empty() {
        return Err(HostError::usage(format_args!("nothing was said in session {} yet", session.id)));
    }
    add_missing_results(&mut state);
    let wire = match format {
        ConversationFormat::Openai => Wire::Chat,
        ConversationFormat::Anthropic => Wire::Anthropic,
        ConversationFormat::Markdown => return Ok(format_markdown(session, &state)),
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
    remove_cache_marks(&mut kept);
    Ok(format!("{kept:#}\n"))
}

/// Adds results to calls that have none: no provider takes a conversation with such a call.
fn add_missing_results(state: &mut State) {
    let results = std::mem::take(&mut state.calls).into_iter().map(|open| {
        open.result.unwrap_or_else(|| Block::result(open.call.id.clone(), MISSING_RESULT_TEXT, true))
    });
    let content: Vec<Block> = results.collect();
    if !content.is_empty() {
        state.messages.push(Message { role: Role::User, content });
    }
}

/// Removes the marks of a prompt cache: they are about a request, not about the conversation.
fn remove_cache_marks(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.remove("cache_control");
            members.values_mut().for_each(remove_cache_marks);
        }
        Value::Array(items) => items.iter_mut().for_each(remove_cache_marks),
        _ => {}
    }
}

fn format_markdown(session: &SessionSummary, state: &State) -> String {
    let mut out = format!("# {}\n\n", one_line(&session.title));
    let model = state.setting.as_ref().map(|setting| setting.model.as_str()).unwrap_or_default();
    // Writing to a string can't fail.
    writeln!(
        out,
        "Session {}, {} UTC, {model}, in `{}`.",
        session.id,
        format_minute(session.created),
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
        message.content.iter().for_each(|block| push_block(block, &mut out));
    }
    out
}

fn push_block(block: &Block, out: &mut String) {
    match block {
        Block::Text { text } => push_paragraph(out, clean_output(text.trim().as_bytes()).as_str()),
        Block::Thinking { text, .. } if !text.trim().is_empty() => {
            let quoted: Vec<String> =
                clean_output(text.trim().as_bytes()).lines().map(|line| format!("> {line}")).collect();
            push_paragraph(out, &quoted.join("\n"));
        }
        Block::Thinking { .. } => {}
        Block::Image(image) => push_paragraph(out, &format!("*(an image, {})*", image.media_type)),
        Block::ToolUse(call) => {
            push_paragraph(out, &format!("**{}**", one_line(&call.name)));
            push_paragraph(out, &format_code_block("json", &format!("{:#}", call.input)));
        }
        Block::ToolResult { content, is_error, .. } => {
            push_paragraph(out, if *is_error { "*failed:*" } else { "*result:*" });
            for part in content {
                match part {
                    ResultPart::Text { text } => push_paragraph(out, &format_code_block("", text)),
                    ResultPart::Image(image) => {
                        push_paragraph(out, &format!("*(an image, {})*", image.media_type))
                    }
                }
            }
        }
    }
}

fn push_paragraph(out: &mut String, text: &str) {
    out.push('\n');
    out.push_str(text);
    out.push('\n');
}

fn one_line(text: &str) -> String {
    clean_output(text.lines().next().unwrap_or_default().as_bytes())
}

/// Fences a block of text with a fence that is longer than any in the text.
fn format_code_block(language: &str, text: &str) -> String {
    let text = clean_output(text.as_bytes());
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}{language}\n{}\n{fence}", text.trim_end_matches('\n'))
}
