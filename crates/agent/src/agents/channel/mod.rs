//! Channel: messages between agents by name.
//!
//! A member's message goes to the members that it mentions with `@name`, or to every other member
//! if it mentions nobody, with the prefix `[from:name] `. The message is queued and stored in each
//! receiver's own log. A channel stores nothing itself, and a delivery waits for no turn. Replies
//! are not routed back: a member that wants to answer sends a message itself.

mod mentions;

#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::join_all;
use journeyman_protocol::MessageKind;

use crate::AgentError;
use crate::agents::session_registry::RegisteredSession;
use mentions::find_mentions;

/// Maximum number of characters of a member's name.
const MAX_MEMBER_NAME_CHARS: usize = 100;

/// The reason why a name was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChannelError {
    /// Another member has the name.
    #[error("the channel already has a member `{0}`")]
    Taken(String),
    /// The name can't be mentioned, or could be mistaken for another sender.
    #[error(
        "`{}` can't be a member's name: it must have 1 to {MAX_MEMBER_NAME_CHARS} characters, none of them a control character, \
         `@`, `[` or `]`, and no blank at either end",
        escape_name(.0)
    )]
    Name(String),
}

/// The result of sending a message.
#[derive(Debug, Default)]
pub struct MessageDelivery {
    /// The members that have the message in their queue, in the order in which they joined.
    pub to: Vec<String>,
    /// Mentioned names that no member has. If a message mentions no member beside these, it is
    /// delivered to nobody, because it was not meant for all.
    pub unknown: Vec<String>,
    /// The members that the message could not be delivered to, with the errors.
    pub failed: Vec<(String, AgentError)>,
}

/// Members by name. Clones are the same channel.
pub struct AgentChannel<M> {
    kind: MessageKind,
    members: Arc<Mutex<Vec<(String, M)>>>,
}

impl<M> Clone for AgentChannel<M> {
    fn clone(&self) -> Self {
        Self { kind: self.kind, members: Arc::clone(&self.members) }
    }
}

impl<M: RegisteredSession> AgentChannel<M> {
    /// Creates an empty channel. Messages of kind [`MessageKind::User`] wake their receivers;
    /// messages of kind [`MessageKind::System`] wait for the receivers' next turn.
    #[must_use]
    pub fn new(kind: MessageKind) -> Self {
        Self { kind, members: Arc::default() }
    }

    /// Adds a member under any name that can be mentioned.
    ///
    /// # Errors
    /// [`ChannelError`] if the name is taken or invalid.
    pub fn join(&self, name: impl Into<String>, member: M) -> Result<(), ChannelError> {
        let name = name.into();
        check_name(&name)?;
        let mut members = self.lock();
        if members.iter().any(|(other, _)| *other == name) {
            return Err(ChannelError::Taken(name));
        }
        members.push((name, member));
        Ok(())
    }

    /// Removes a member, which gets no messages from then on. Returns false if no member has this
    /// name.
    pub fn leave(&self, name: &str) -> bool {
        let mut members = self.lock();
        let before = members.len();
        members.retain(|(other, _)| other != name);
        members.len() < before
    }

    /// Returns the members' names, in the order in which they joined.
    #[must_use]
    pub fn member_names(&self) -> Vec<String> {
        self.lock().iter().map(|(name, _)| name.clone()).collect()
    }

    /// Sends a message to the members that `text` mentions, or to all but the sender if the text
    /// mentions nobody. A sender need not be a member. Messages of one sender arrive in order if
    /// the sender awaits each call.
    ///
    /// A mention is `@` and a name, outside a word, an e-mail address, a code span or a code block.
    /// If several names match, the longest is meant. A mention of the sender itself is ignored.
    ///
    /// # Errors
    /// [`ChannelError::Name`] if the sender's name is invalid. The [`MessageDelivery`] lists the
    /// members that could not be reached.
    pub async fn send_message(&self, from: &str, text: &str) -> Result<MessageDelivery, ChannelError> {
        check_name(from)?;
        let (receivers, unknown) = {
            let members = self.lock();
            let names: Vec<&str> = members.iter().map(|(name, _)| name.as_str()).collect();
            let found = find_mentions(text, names.iter().copied().chain([from]));
            let meant = |name: &str| match found.known.iter().any(|known| known != from) {
                true => found.known.iter().any(|known| known == name),
                false => found.unknown.is_empty(),
            };
            let receivers: Vec<(String, M)> =
                members.iter().filter(|(name, _)| name != from && meant(name)).cloned().collect();
            (receivers, found.unknown)
        };
        let mut delivery = MessageDelivery { unknown, ..MessageDelivery::default() };
        let line = format!("[from:{from}] {text}");
        let sent =
            join_all(receivers.iter().map(|(_, member)| member.send_as(self.kind, line.clone()))).await;
        for ((name, _), sent) in receivers.iter().zip(sent) {
            match sent {
                Ok(()) => delivery.to.push(name.clone()),
                Err(error) => delivery.failed.push((name.clone(), error)),
            }
        }
        Ok(delivery)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(String, M)>> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Checks that a name can be a member's.
///
/// # Errors
/// [`ChannelError::Name`].
pub(crate) fn check_name(name: &str) -> Result<(), ChannelError> {
    let odd = |character: char| character.is_control() || matches!(character, '@' | '[' | ']');
    let long = name.chars().nth(MAX_MEMBER_NAME_CHARS).is_some();
    if name.is_empty() || long || name.trim() != name || name.contains(odd) {
        return Err(ChannelError::Name(name.to_owned()));
    }
    Ok(())
}

/// Returns a refused name, shortened and escaped for an error message.
fn escape_name(name: &str) -> String {
    let more = if name.chars().nth(MAX_MEMBER_NAME_CHARS).is_some() { "…" } else { "" };
    format!("{}{more}", name.chars().take(MAX_MEMBER_NAME_CHARS).collect::<String>().escape_debug())
}
