//! Messages between agents by name.
//!
//! What a member says goes to whom it mentions with `@name`, else to everybody but itself, with `[from:name] ` in
//! front. It is queued in each receiver's own log, which is where it is kept: a room has no memory of its own, and a
//! delivery waits for no turn. Replies are not routed back; a member that wants to answer says something itself.

mod mentions;

#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::join_all;
use journeyman_protocol::MessageKind;

use crate::AgentError;
use crate::agents::pool::Member;
use mentions::mentions;

/// Characters of a member's name.
const MAX_NAME: usize = 100;

/// Why a name was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RoomError {
    /// Somebody has it.
    #[error("there is a member «{0}» in the room already")]
    Taken(String),
    /// It can't be mentioned, or could pass for another sender.
    #[error(
        "«{0}» can't be a member's name: it must have 1 to {MAX_NAME} characters, none of them a control character, \
         `@`, `[` or `]`, and no blank at either end"
    )]
    Name(String),
}

/// What became of something that was said.
#[derive(Debug, Default)]
pub struct Delivery {
    /// Who has it in their queue, in the order in which they joined.
    pub to: Vec<String>,
    /// Mentions of nobody. Where a message has no others, nobody got it: it was meant for somebody, and not for all.
    pub unknown: Vec<String>,
    /// Whom it could not be delivered to, and why.
    pub failed: Vec<(String, AgentError)>,
}

/// Members by name. Clones are the same room.
pub struct Room<M> {
    kind: MessageKind,
    members: Arc<Mutex<Vec<(String, M)>>>,
}

impl<M> Clone for Room<M> {
    fn clone(&self) -> Self {
        Self { kind: self.kind, members: Arc::clone(&self.members) }
    }
}

impl<M: Member> Room<M> {
    /// An empty room. As messages of kind [`MessageKind::User`], what is said wakes its receivers; as
    /// [`MessageKind::System`] it goes along with their next turn.
    #[must_use]
    pub fn new(kind: MessageKind) -> Self {
        Self { kind, members: Arc::default() }
    }

    /// Takes somebody in, under any name that can be mentioned.
    ///
    /// # Errors
    /// [`RoomError`] when the name is taken or can't be one.
    pub fn join(&self, name: impl Into<String>, member: M) -> Result<(), RoomError> {
        let name = name.into();
        check(&name)?;
        let mut members = self.lock();
        if members.iter().any(|(other, _)| *other == name) {
            return Err(RoomError::Taken(name));
        }
        members.push((name, member));
        Ok(())
    }

    /// Lets somebody go; they hear nothing from then on. False when there was nobody of that name.
    pub fn leave(&self, name: &str) -> bool {
        let mut members = self.lock();
        let before = members.len();
        members.retain(|(other, _)| other != name);
        members.len() < before
    }

    /// The members' names, in the order in which they joined.
    #[must_use]
    pub fn members(&self) -> Vec<String> {
        self.lock().iter().map(|(name, _)| name.clone()).collect()
    }

    /// Says something: to the members that `text` mentions, or, where it mentions nobody, to all but the sender. A
    /// person who is no member may speak too. Of one sender's messages, each is delivered before the next if the
    /// sender waits for each.
    ///
    /// A mention is `@` and a name, not inside a word or an e-mail address, nor in a code span or block. Of names that
    /// begin alike the longest is meant. The sender's own name counts for nothing.
    ///
    /// # Errors
    /// [`RoomError::Name`] when the sender's name can't be one. That a member couldn't be reached is in the
    /// [`Delivery`].
    pub async fn say(&self, from: &str, text: &str) -> Result<Delivery, RoomError> {
        check(from)?;
        let (receivers, unknown) = {
            let members = self.lock();
            let names: Vec<&str> = members.iter().map(|(name, _)| name.as_str()).collect();
            let found = mentions(text, names.iter().copied().chain([from]));
            let meant = |name: &str| match found.known.iter().any(|known| known != from) {
                true => found.known.iter().any(|known| known == name),
                false => found.unknown.is_empty(),
            };
            let receivers: Vec<(String, M)> =
                members.iter().filter(|(name, _)| name != from && meant(name)).cloned().collect();
            (receivers, found.unknown)
        };
        let mut delivery = Delivery { unknown, ..Delivery::default() };
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

fn check(name: &str) -> Result<(), RoomError> {
    let odd = |character: char| character.is_control() || matches!(character, '@' | '[' | ']');
    let long = name.chars().nth(MAX_NAME).is_some();
    if name.is_empty() || long || name.trim() != name || name.contains(odd) {
        return Err(RoomError::Name(name.to_owned()));
    }
    Ok(())
}
