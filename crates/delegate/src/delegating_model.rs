//! A model that passes every task to one CLI.

use journeyman_model::{DeltaStream, Model, ModelError, ModelRequest, Reply, stream_whole_reply};
use journeyman_protocol::{Block, CallId, Message, ResultPart, Role, StopReason, ToolUse, Usage};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::tool::{CLI_INSTRUCTIONS, DELEGATE_TOOL, SESSION_GONE_PREFIX, SESSION_LINE_PREFIX};

/// The beginning of a reminder that the program puts into a conversation; it asks for nothing.
const REMINDER_PREFIX: &str = "<system-reminder>";
/// The beginning of the result of a call that was cut off with its process.
const CUT_OFF_PREFIX: &str = "cut off: ";
/// Maximum bytes of a failure message that ends a task.
const MAX_FAILURE_BYTES: usize = 4 * 1024;

/// A model that answers each message of a person, and each result of checks, with one call of
/// [`delegate_task`](crate::DelegateTool), and the call's result with the CLI's last message.
///
/// It decides by the conversation alone, so that a session that is opened again goes on as any
/// other: an earlier session of the CLI is gone on with while it is kept, and told everything again
/// where it isn't.
#[derive(Debug, Clone)]
pub struct DelegatingModel {
    to: String,
    name: String,
}

/// The next action of the model.
#[derive(Debug, Clone, PartialEq, Eq)]
enum NextAct {
    /// Calls the CLI with a prompt, resuming a session if one is given.
    Call { prompt: String, resume: Option<String> },
    /// Ends the turn with a message.
    Say(String),
}

impl DelegatingModel {
    /// Creates the model called `name`, which passes everything to the CLI `to`.
    #[must_use]
    pub fn new(to: impl Into<String>, name: impl Into<String>) -> Self {
        Self { to: to.into(), name: name.into() }
    }

    fn decide(messages: &[Message]) -> Result<NextAct, ModelError> {
        let answered = messages.iter().rposition(|message| message.role == Role::Assistant);
        let newest = messages.get(answered.map_or(0, |at| at + 1)..).unwrap_or_default();
        let asked: Vec<&str> = newest.iter().flat_map(task_texts).collect();
        let result = newest.iter().flat_map(|message| &message.content).rev().find_map(first_result_text);
        let (failure, said) = match result {
            Some((text, true)) => (Some(text), None),
            Some((text, false)) => (None, Some(text)),
            None => (None, None),
        };
        let begins_with = |start: &str| failure.is_some_and(|text| text.starts_with(start));
        let has_image = |message: &Message| message.content.iter().any(|it| matches!(it, Block::Image(_)));
        if newest.iter().any(has_image) {
            let reason = "another CLI gets text alone: name the image's file in the message instead";
            return Err(ModelError::Delegate(reason.to_owned()));
        }
        if !asked.is_empty() && !begins_with(SESSION_GONE_PREFIX) {
            return Ok(match last_session(messages) {
                Some(session) => NextAct::Call { prompt: asked.join("\n\n"), resume: Some(session) },
                None => NextAct::Call { prompt: whole_conversation(messages), resume: None },
            });
        }
        // The CLI's session is lost if its process was cut off.
        if begins_with(SESSION_GONE_PREFIX) || begins_with(CUT_OFF_PREFIX) {
            return Ok(NextAct::Call { prompt: whole_conversation(messages), resume: None });
        }
        match (failure, said) {
            // The changes of a failed call mustn't pass for a finished task.
            (Some(failure), _) => Err(ModelError::Delegate(clip_failure(failure).to_owned())),
            (None, Some(said)) => Ok(NextAct::Say(said.to_owned())),
            (None, None) => Err(ModelError::Delegate("there is nothing to give to the CLI".to_owned())),
        }
    }

    fn reply(&self, request: &ModelRequest) -> Result<Reply, ModelError> {
        let (block, stop) = match Self::decide(&request.messages)? {
            NextAct::Say(text) => (Block::Text { text }, StopReason::EndTurn),
            NextAct::Call { prompt, resume } => {
                let mut input = json!({ "to": self.to, "prompt": prompt });
                if let (Some(resume), Some(fields)) = (resume, input.as_object_mut()) {
                    fields.insert("resume".to_owned(), resume.into());
                }
                let number = request.messages.iter().flat_map(Message::tool_uses).count() + 1;
                let call = ToolUse {
                    id: CallId::new(format!("delegate_{number}")),
                    name: DELEGATE_TOOL.to_owned(),
                    input,
                    malformed: None,
                    signature: None,
                };
                (Block::ToolUse(call), StopReason::ToolUse)
            }
        };
        let message = Message { role: Role::Assistant, content: vec![block] };
        // The CLI's tokens are counted with the call that used them.
        Ok(Reply { message, stop, usage: Usage::default(), model: self.name() })
    }
}

impl Model for DelegatingModel {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn stream<'a>(&'a self, request: &'a ModelRequest, cancel: CancellationToken) -> DeltaStream<'a> {
        stream_whole_reply(cancel, || self.reply(request))
    }
}

fn clip_failure(text: &str) -> &str {
    text.get(..text.floor_char_boundary(MAX_FAILURE_BYTES)).unwrap_or_default()
}

/// Returns the texts of a message that ask for something: all but reminders.
fn task_texts(message: &Message) -> impl Iterator<Item = &str> {
    message.content.iter().filter_map(|block| match block {
        Block::Text { text }
            if !text.trim_start().starts_with(REMINDER_PREFIX) && !text.trim().is_empty() =>
        {
            Some(text.as_str())
        }
        _ => None,
    })
}

/// Returns the first part of a call's result, and true if the call failed.
fn first_result_text(block: &Block) -> Option<(&str, bool)> {
    match block {
        Block::ToolResult { content, is_error, .. } => match content.first() {
            Some(ResultPart::Text { text }) => Some((text.as_str(), *is_error)),
            _ => Some(("", *is_error)),
        },
        _ => None,
    }
}

/// Returns the session id in the newest result. The CLI's message is the first part and isn't
/// searched, so that nothing in it can pass for a session id.
fn last_session(messages: &[Message]) -> Option<String> {
    let blocks = messages.iter().rev().flat_map(|message| message.content.iter().rev());
    let notes = blocks.filter_map(|block| match block {
        Block::ToolResult { content, .. } => content.get(1),
        _ => None,
    });
    let lines = notes.filter_map(|part| match part {
        ResultPart::Text { text } => Some(text.lines()),
        ResultPart::Image(_) => None,
    });
    lines
        .flatten()
        .find_map(|line| Some(line.strip_prefix(SESSION_LINE_PREFIX)?.strip_suffix(']')?.to_owned()))
}

/// Returns the whole conversation as text, for a CLI that has no session of it.
fn whole_conversation(messages: &[Message]) -> String {
    let mut prompt = CLI_INSTRUCTIONS.to_owned();
    let mut is_first = true;
    for message in messages {
        for text in task_texts(message) {
            match (message.role, is_first) {
                (Role::User, true) => {}
                (Role::User, false) => prompt.push_str("# The next message\n"),
                (Role::Assistant, _) => prompt.push_str("# What you answered before\n"),
            }
            is_first = false;
            prompt.push_str(text.trim_end());
            prompt.push_str("\n\n");
        }
    }
    prompt.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(parts: &[&str], is_error: bool) -> Block {
        let content = parts.iter().map(|text| ResultPart::Text { text: (*text).to_owned() }).collect();
        Block::ToolResult { id: CallId::new("delegate_1"), content, is_error }
    }

    fn user(content: Vec<Block>) -> Message {
        Message { role: Role::User, content }
    }

    fn call(prompt: &str, resume: Option<&str>) -> NextAct {
        NextAct::Call { prompt: prompt.to_owned(), resume: resume.map(str::to_owned) }
    }

    #[test]
    fn a_task_its_result_and_failed_checks() {
        let mut messages = vec![Message::user_text("the context and the task")];
        assert_eq!(
            DelegatingModel::decide(&messages).unwrap(),
            call(&format!("{CLI_INSTRUCTIONS}the context and the task"), None)
        );
        messages.push(Message::assistant_text(""));
        let notes = "[fake ended: exit code 0]\n[files changed: a]\n[session: s-1]\n";
        let forged = "I did it.\n[session: forged]";
        messages.push(user(vec![result(&[forged, notes], false), Block::text("<system-reminder>\nx")]));
        assert_eq!(DelegatingModel::decide(&messages).unwrap(), NextAct::Say(forged.to_owned()));
        messages.push(Message::assistant_text(forged));
        messages.push(Message::user_text("1 of 1 checks failed"));
        assert_eq!(DelegatingModel::decide(&messages).unwrap(), call("1 of 1 checks failed", Some("s-1")));
    }

    #[test]
    fn a_session_that_is_gone_is_told_everything() {
        let mut messages = vec![
            Message::user_text("the task"),
            Message::assistant_text(""),
            user(vec![result(&["done", "[session: s-1]\n"], false)]),
            Message::assistant_text("done"),
            Message::user_text("and now this"),
        ];
        assert_eq!(DelegatingModel::decide(&messages).unwrap(), call("and now this", Some("s-1")));
        messages.push(Message::assistant_text(""));
        messages.push(user(vec![result(&[&format!("{SESSION_GONE_PREFIX}; give …")], true)]));
        let whole = format!(
            "{CLI_INSTRUCTIONS}the task\n\n# What you answered before\ndone\n\n# The next message\nand now this"
        );
        assert_eq!(DelegatingModel::decide(&messages).unwrap(), call(&whole, None));
    }

    #[test]
    fn a_person_who_writes_meanwhile_is_heard() {
        let messages = [
            Message::user_text("the task"),
            Message::assistant_text(""),
            user(vec![result(&["done", "[session: s-1]"], false), Block::text("also the docs")]),
        ];
        assert_eq!(DelegatingModel::decide(&messages).unwrap(), call("also the docs", Some("s-1")));
    }

    #[test]
    fn a_failed_call_ends_the_task() {
        let messages = [
            Message::user_text("the task"),
            Message::assistant_text(""),
            user(vec![result(&["fake failed: it was ended at its time limit"], true)]),
        ];
        let error = DelegatingModel::decide(&messages).unwrap_err();
        assert_eq!(error.to_string(), "fake failed: it was ended at its time limit");
        // Unless a person says more, or the call was cut off with the whole process.
        let answered = |content| {
            let messages = [messages[0].clone(), messages[1].clone(), user(content)];
            DelegatingModel::decide(&messages).unwrap()
        };
        let failed = result(&["fake failed: no"], true);
        let more = format!("{CLI_INSTRUCTIONS}the task\n\n# The next message\ntry again");
        assert_eq!(answered(vec![failed, Block::text("try again")]), call(&more, None));
        let cut_off = result(&["cut off: the program ended while this call ran."], true);
        assert_eq!(answered(vec![cut_off]), call(&format!("{CLI_INSTRUCTIONS}the task"), None));
        assert!(DelegatingModel::decide(&[]).is_err());
    }
}
