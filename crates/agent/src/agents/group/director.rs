//! A model that starts the members of a group.

use journeyman_model::{DeltaStream, Model, ModelRequest, Reply, stream_whole_reply};
use journeyman_protocol::{Block, CallId, Message, ResultPart, Role, StopReason, ToolUse, Usage};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::member_tool::GROUP_MEMBER;
use super::spec::{Group, GroupMember};

/// A model that starts each member of the group in the newest message by a call, and answers with
/// their results. It decides by the conversation alone.
#[derive(Debug, Clone)]
pub struct GroupDirector {
    name: String,
}

impl GroupDirector {
    /// Makes the model under this name.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into() }
    }

    fn reply(&self, messages: &[Message]) -> Reply {
        let newest = messages.last().filter(|message| message.role == Role::User);
        let blocks = newest.map(|message| message.content.as_slice()).unwrap_or_default();
        let results: Vec<(&CallId, String)> = blocks.iter().filter_map(result_text).collect();
        let content = if results.is_empty() {
            // The task comes first, and nothing else starts a group.
            let group = match blocks.first() {
                Some(Block::Text { text }) => Group::from_message(text),
                _ => None,
            };
            match group {
                Some(group) => member_calls(&group, messages),
                None => vec![Block::text(
                    "A group works by what it was started with; `jm agents run` starts another one.",
                )],
            }
        } else {
            let text =
                |(call, text): (&CallId, String)| format!("## {}\n\n{text}", member_name(messages, call));
            vec![Block::text(results.into_iter().map(text).collect::<Vec<_>>().join("\n\n"))]
        };
        let stop = match content.iter().any(|block| matches!(block, Block::ToolUse(_))) {
            true => StopReason::ToolUse,
            false => StopReason::EndTurn,
        };
        let message = Message { role: Role::Assistant, content };
        Reply { message, stop, usage: Usage::default(), model: self.name.clone() }
    }
}

fn member_calls(group: &Group, messages: &[Message]) -> Vec<Block> {
    let before = messages.iter().flat_map(Message::tool_uses).count();
    let call = |(place, member): (usize, &GroupMember)| {
        let reminders: Vec<_> = group.reminders_of(&member.name).collect();
        Block::ToolUse(ToolUse {
            id: CallId::new(format!("member_{}", before + place + 1)),
            name: GROUP_MEMBER.to_owned(),
            input: json!({
                "name": member.name,
                "agent": member.agent,
                "task": member.task,
                "reminders": reminders,
            }),
            malformed: None,
            signature: None,
        })
    };
    group.members.iter().enumerate().map(call).collect()
}

fn result_text(block: &Block) -> Option<(&CallId, String)> {
    let Block::ToolResult { id, content, .. } = block else { return None };
    let texts = content.iter().filter_map(|part| match part {
        ResultPart::Text { text } => Some(text.as_str()),
        ResultPart::Image(_) => None,
    });
    Some((id, texts.collect::<Vec<_>>().join("\n")))
}

/// Returns the names of the group members that did not complete their tasks, if the newest message
/// to the model has the members' results.
pub(crate) fn failed_members(messages: &[Message]) -> Vec<&str> {
    let newest = messages.iter().rev().find(|message| message.role == Role::User);
    let failed = newest.into_iter().flat_map(|message| &message.content).filter_map(|block| match block {
        Block::ToolResult { id, is_error: true, .. } => Some(id),
        _ => None,
    });
    let is_member = |call: &&CallId| {
        messages.iter().flat_map(Message::tool_uses).any(|it| it.id == **call && it.name == GROUP_MEMBER)
    };
    failed.filter(is_member).map(|call| member_name(messages, call)).collect()
}

/// Returns the name of the member that a call started.
fn member_name<'a>(messages: &'a [Message], call: &'a CallId) -> &'a str {
    let uses = messages.iter().rev().flat_map(Message::tool_uses);
    let name = uses.filter(|it| it.id == *call).find_map(|it| it.input.get("name")?.as_str());
    name.unwrap_or(call.as_str())
}

impl Model for GroupDirector {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn stream<'a>(&'a self, request: &'a ModelRequest, cancel: CancellationToken) -> DeltaStream<'a> {
        stream_whole_reply(cancel, || Ok(self.reply(&request.messages)))
    }
}
