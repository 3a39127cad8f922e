//! A model that replies from a script, for tests and for the demo.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::{StreamExt as _, stream};
use journeyman_protocol::{Block, CallId, Message, ResultPart, Role, StopReason, Tokens, ToolUse, Usage};
use serde::Deserialize;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::error::shorten;
use crate::{Delta, DeltaStream, Model, ModelError, ModelRequest, Reply};

/// Maximum size of a script.
const MAX_SCRIPT_BYTES: u64 = 16 * 1024 * 1024;
/// Characters of a simulated chunk of text or arguments, about as many as providers send at a time.
const CHUNK_CHARS: usize = 16;
/// Characters of a token, for estimated usage: the common rule of thumb for English and code.
const CHARACTERS_PER_TOKEN: usize = 4;
/// Maximum length of each text that a mismatch shows, in bytes.
const MAX_SHOWN_BYTES: usize = 400;

/// A model whose replies are written in a script. It streams as a live model does.
///
/// ```
/// use journeyman_model::{Model, ScriptedModel};
///
/// let script = ScriptedModel::parse(
///     r#"{"replies": [
///         {"text": "I'll look.", "calls": [{"name": "read_file", "input": {"path": "a.rs"}}]},
///         {"expect": "fn main", "text": "Done."}
///     ]}"#,
/// )?;
/// assert_eq!(script.name(), "script");
/// # Ok::<(), journeyman_model::ModelError>(())
/// ```
#[derive(Debug)]
pub struct ScriptedModel {
    name: String,
    replies: Vec<ScriptedReply>,
    next: AtomicUsize,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ScriptFile {
    #[serde(default = "default_name")]
    name: String,
    replies: Vec<ScriptedReply>,
}

fn default_name() -> String {
    "script".to_owned()
}

/// A reply of a script. All members are optional.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct ScriptedReply {
    thinking: String,
    text: String,
    calls: Vec<ScriptedCall>,
    usage: Option<Usage>,
    stop: Option<StopReason>,
    /// A text that the newest user message or tool result must contain.
    expect: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct ScriptedCall {
    id: Option<String>,
    name: String,
    #[serde(default = "no_arguments")]
    input: Value,
}

fn no_arguments() -> Value {
    Value::Object(serde_json::Map::new())
}

impl ScriptedModel {
    /// Parses a script.
    ///
    /// # Errors
    /// [`ModelError::Script`] with line and column if the text is not a script.
    pub fn parse(json: &str) -> Result<Self, ModelError> {
        let script: ScriptFile =
            serde_json::from_str(json).map_err(|error| ModelError::Script(error.to_string()))?;
        Ok(Self { name: script.name, replies: script.replies, next: AtomicUsize::new(0) })
    }

    /// Reads a script from a file of at most 16 MiB.
    ///
    /// # Errors
    /// [`ModelError::Script`] with the file's name if the file can't be read or is not a script.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, ModelError> {
        let path = path.as_ref();
        let failed = |reason: String| ModelError::Script(format!("{}: {reason}", path.display()));
        let size = std::fs::metadata(path).map_err(|error| failed(error.to_string()))?.len();
        if size > MAX_SCRIPT_BYTES {
            return Err(failed(format!("it has {size} bytes; at most {MAX_SCRIPT_BYTES} are read")));
        }
        let json = std::fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
        Self::parse(&json).map_err(|error| match error {
            ModelError::Script(reason) => failed(reason),
            other => other,
        })
    }

    /// Returns the number of replies that are left.
    #[must_use]
    pub fn remaining(&self) -> usize {
        self.replies.len().saturating_sub(self.next.load(Ordering::Relaxed))
    }

    fn next_reply(&self, request: &ModelRequest) -> Result<Vec<Delta>, ModelError> {
        let index = self.next.fetch_add(1, Ordering::Relaxed);
        let number = index.saturating_add(1);
        let Some(scripted) = self.replies.get(index) else {
            return Err(ModelError::Script(format!(
                "it has {} replies and this is request {number}; add a reply",
                self.replies.len()
            )));
        };
        if let Some(expected) = &scripted.expect {
            let newest = newest_text(&request.messages);
            if !newest.contains(expected.as_str()) {
                return Err(ModelError::Script(format_mismatch(number, expected, &newest)));
            }
        }
        Ok(scripted.to_deltas(number, request, &self.name))
    }
}

impl Model for ScriptedModel {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn stream<'a>(&'a self, request: &'a ModelRequest, cancel: CancellationToken) -> DeltaStream<'a> {
        // The reply is taken at the first poll: nothing is "sent" before.
        let items = stream::once(async move {
            match self.next_reply(request) {
                Ok(deltas) => deltas.into_iter().map(Ok).collect(),
                Err(error) => vec![Err(error)],
            }
        })
        .flat_map(stream::iter);
        items
            .scan(false, move |over, item| {
                let given = if *over {
                    None
                } else if cancel.is_cancelled() {
                    *over = true;
                    Some(Err(ModelError::Cancelled))
                } else {
                    Some(item)
                };
                async move { given }
            })
            .boxed()
    }
}

impl ScriptedReply {
    fn to_deltas(&self, number: usize, request: &ModelRequest, name: &str) -> Vec<Delta> {
        let mut deltas = vec![Delta::MessageStart];
        let mut content = Vec::new();
        let mut block: u32 = 0;
        if !self.thinking.is_empty() {
            deltas.extend(split_into_chunks(&self.thinking).map(|text| Delta::Thinking { block, text }));
            deltas.push(Delta::BlockEnd { block });
            content.push(Block::Thinking { text: self.thinking.clone(), signature: None });
            block += 1;
        }
        if !self.text.is_empty() {
            deltas.extend(split_into_chunks(&self.text).map(|text| Delta::Text { block, text }));
            deltas.push(Delta::BlockEnd { block });
            content.push(Block::text(self.text.as_str()));
            block += 1;
        }
        for (place, call) in self.calls.iter().enumerate() {
            let id = call.id.clone().unwrap_or_else(|| format!("call_{number}_{}", place.saturating_add(1)));
            let id = CallId::new(id);
            deltas.push(Delta::CallStart { block, id: id.clone(), name: call.name.clone() });
            let arguments = call.input.to_string();
            deltas.extend(
                split_into_chunks(&arguments).map(|fragment| Delta::CallArguments { block, fragment }),
            );
            deltas.push(Delta::BlockEnd { block });
            content.push(Block::ToolUse(ToolUse {
                id,
                name: call.name.clone(),
                input: call.input.clone(),
                malformed: None,
                signature: None,
            }));
            block = block.saturating_add(1);
        }
        let default_stop = if self.calls.is_empty() { StopReason::EndTurn } else { StopReason::ToolUse };
        deltas.push(Delta::Done(Box::new(Reply {
            message: Message { role: Role::Assistant, content },
            stop: self.stop.clone().unwrap_or(default_stop),
            usage: self.usage.unwrap_or_else(|| self.estimate_usage(request)),
            model: name.to_owned(),
        })));
        deltas
    }

    fn estimate_usage(&self, request: &ModelRequest) -> Usage {
        let system: usize = request.system.iter().map(|part| part.text.len()).sum();
        let messages: usize =
            request.messages.iter().flat_map(|message| &message.content).map(block_length).sum();
        let calls: usize = self.calls.iter().map(|call| call.name.len() + call.input.to_string().len()).sum();
        let tokens =
            |length: usize| Tokens(u64::try_from(length.div_ceil(CHARACTERS_PER_TOKEN)).unwrap_or(u64::MAX));
        Usage {
            input: tokens(system + messages),
            output: tokens(self.thinking.len() + self.text.len() + calls),
            thinking: tokens(self.thinking.len()),
            ..Usage::default()
        }
    }
}

fn block_length(block: &Block) -> usize {
    match block {
        Block::Text { text } | Block::Thinking { text, .. } => text.len(),
        Block::ToolUse(call) => call.name.len() + call.input.to_string().len(),
        Block::ToolResult { content, .. } => content.iter().map(|part| result_part_text(part).len()).sum(),
        Block::Image(_) => 0,
    }
}

fn result_part_text(part: &ResultPart) -> &str {
    match part {
        ResultPart::Text { text } => text,
        ResultPart::Image(_) => "",
    }
}

/// Splits a text into chunks of a few characters.
fn split_into_chunks(text: &str) -> impl Iterator<Item = String> {
    let mut rest = text.chars();
    std::iter::from_fn(move || {
        let piece: String = rest.by_ref().take(CHUNK_CHARS).collect();
        (!piece.is_empty()).then_some(piece)
    })
}

/// Returns the texts and tool results of the newest user message.
fn newest_text(messages: &[Message]) -> String {
    let newest = messages.iter().rev().find(|message| message.role == Role::User);
    let mut texts: Vec<&str> = Vec::new();
    for block in newest.into_iter().flat_map(|message| &message.content) {
        match block {
            Block::Text { text } => texts.push(text),
            Block::ToolResult { content, .. } => texts.extend(content.iter().map(result_part_text)),
            Block::Thinking { .. } | Block::Image(_) | Block::ToolUse(_) => {}
        }
    }
    texts.join("\n")
}

fn format_mismatch(number: usize, expected: &str, newest: &str) -> String {
    let short = |text: &str| {
        let mut text = text.to_owned();
        shorten(&mut text, MAX_SHOWN_BYTES);
        text
    };
    format!(
        "reply {number} expects the newest message to contain\n  `{}`\nbut the message is\n  `{}`",
        short(expected),
        short(newest)
    )
}
