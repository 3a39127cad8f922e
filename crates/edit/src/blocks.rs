//! The text protocol: `<edit>` and `<call>` blocks in a model's reply.

use std::fmt;

use crate::change::Edit;
use crate::edit_block;
use crate::lines::line_at;
use crate::outcome::cut;
use crate::tags::{self, Tag};

/// A tool call written as text: `<call tool="read_file">{"path": "a.rs"}</call>`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextCall {
    /// The tool's name as the model wrote it.
    pub tool: String,
    /// The arguments as the model wrote them, trimmed; `{}` where it wrote none.
    pub input_json: String,
    /// The whole block as it stood in the reply.
    pub raw: String,
    /// Why the arguments are not a JSON object, if they aren't. Such a call must be answered, not run.
    pub malformed: Option<String>,
}

/// One thing the reply asks for, in the reply's order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Item {
    /// An index into [`Blocks::edits`].
    Edit(usize),
    /// An index into [`Blocks::calls`].
    Call(usize),
}

/// What kind of fault a block has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProblemKind {
    /// The reply ends inside the block: everything after its beginning belongs to it.
    pub(crate) fn incomplete(subject: Option<String>, missing: &str) -> Self {
        let message = format!("the reply ends before {missing}; send the whole block again");
        Self { kind: ProblemKind::Incomplete, subject, message, end: None }
    }

    fn problem(&self, reply: &str, at: usize) -> BlockProblem {
        BlockProblem {
            kind: self.kind,
            line: line_at(reply, at),
            subject: self.subject.as_ref().map(|subject| cut(subject, MAX_SUBJECT).to_owned()),
            message: self.message.clone(),
        }
    }
}

/// How much of a path or a tool's name a problem repeats, in bytes.
const MAX_SUBJECT: usize = 200;

/// The block that begins at a `<`, or `None` where it is prose.
fn block_at(reply: &str, at: usize) -> Option<Read> {
    let rest = reply.get(at..)?;
    if rest.starts_with("<edit") {
        return edit_block::read(reply, at);
    }
    if !rest.starts_with("<call") {
        return None;
    }
    match tags::opening(reply, at, "call") {
        Some(tag) => {
            let tool = tags::attribute(&tag.attributes, "tool")?.trim().to_owned();
            Some(read_call(reply, at, &tag, tool))
        }
        None if rest.starts_with("<call tool=") && rest.get(1..)?.find(['<', '>']).is_none() => {
            Some(Read::Fault(Fault::incomplete(None, "the tag's `>`")))
        }
        None => None,
    }
}

/// Reads a call from its opening tag. JSON is read as JSON, so that a closing tag in one of its strings is text.
fn read_call(reply: &str, at: usize, tag: &Tag, tool: String) -> Read {
    let done = |input: &str, malformed: Option<String>, end: usize| {
        let input = if input.is_empty() { "{}" } else { input };
        let raw = reply.get(at..end).unwrap_or_default().to_owned();
        Read::Call(TextCall { tool: tool.clone(), input_json: input.to_owned(), raw, malformed }, end)
    };
    if tag.closed {
        return done("", None, tag.end);
    }
    let start = tags::skip_blanks(reply, tag.end);
    let body = reply.get(start..).unwrap_or_default();
    let mut from = start;
    if body.starts_with('{') {
        let mut values = serde_json::Deserializer::from_str(body).into_iter::<serde_json::Value>();
        match values.next() {
            Some(Ok(_)) => {
                let length = values.byte_offset();
                let after = tags::skip_blanks(reply, start + length);
                if let Some(end) = tags::closing(reply, after, "call") {
                    return done(body.get(..length).unwrap_or_default(), None, end);
                }
                from = start + length;
            }
            // Any closing tag is still inside the arguments.
            Some(Err(error)) if error.is_eof() => {
                return Read::Fault(Fault::incomplete(Some(tool), "the end of the arguments"));
            }
            _ => {}
        }
    }
    let closing = loop {
        match reply.get(from..).and_then(|rest| rest.find("</call")) {
            None => break None,
            Some(offset) => match tags::closing(reply, from + offset, "call") {
                Some(end) => break Some((from + offset, end)),
                None => from += offset + 1,
            },
        }
    };
    let Some((until, end)) = closing else {
        return Read::Fault(Fault::incomplete(Some(tool), "</call>"));
    };
    let input = unfenced(reply.get(start..until).unwrap_or_default().trim());
    let malformed = match serde_json::from_str::<serde_json::Value>(input) {
        Ok(value) if value.is_object() => None,
        Ok(_) => Some("the arguments are not a JSON object".to_owned()),
        Err(_) if input.is_empty() => None,
        Err(error) => Some(error.to_string()),
    };
    done(input, malformed, end)
}

/// Content without the markdown fence around it.
fn unfenced(text: &str) -> &str {
    let inner = text.strip_prefix("```").and_then(|rest| rest.strip_suffix("```"));
    inner.and_then(|inner| inner.split_once('\n')).map_or(text, |(_, inner)| inner.trim())
}

/// The prose between blocks, without the markdown fences that stood around them.
fn join_prose(pieces: &mut [&str]) -> String {
    let mut open: Option<usize> = None;
    for index in 0..pieces.len() {
        let Some(piece) = pieces.get(index).map(|piece| piece.trim()) else { continue };
        let closes = piece.lines().next().is_some_and(|line| line.trim() == "```");
        if let (Some(opener), true) = (open, closes) {
            let before = pieces.get(opener).map_or("", |piece| piece.trim());
            let kept = before.rfind('\n').map_or("", |at| before.get(..at).unwrap_or_default());
            if let Some(slot) = pieces.get_mut(opener) {
                *slot = kept;
            }
            if let Some(slot) = pieces.get_mut(index) {
                *slot = piece.get("```".len()..).unwrap_or_default();
            }
        }
        if !piece.is_empty() {
            let last = piece.lines().next_back().unwrap_or_default().trim();
            let opens = last.strip_prefix("```").is_some_and(|language| {
                language.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | '+'))
            });
            // A single line of backticks that just closed a fence doesn't open the next.
            open = (opens && (piece.contains('\n') || !closes)).then_some(index);
        }
    }
    let kept: Vec<&str> = pieces.iter().map(|piece| piece.trim()).filter(|piece| !piece.is_empty()).collect();
    kept.join("\n\n")
}
