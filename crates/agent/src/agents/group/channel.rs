//! The members of a group, and their channel.

use std::num::NonZeroU64;
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use journeyman_protocol::MessageKind;
use tokio::sync::Notify;

use crate::AgentError;
use crate::agents::channel::AgentChannel;
use crate::agents::session_registry::RegisteredSession;

/// The interface of a member's session to its group.
pub(crate) trait MemberSession: Send + Sync {
    /// Queues a message.
    fn send_as(&self, kind: MessageKind, text: String) -> BoxFuture<'_, Result<(), AgentError>>;

    /// Reminds the member of a text with its next turn.
    fn remind(&self, text: String) -> BoxFuture<'_, Result<(), AgentError>>;

    /// Reminds the member of a text every so many steps.
    ///
    /// # Errors
    /// A sentence where no more can be scheduled.
    fn remind_every(&self, name: String, steps: NonZeroU64, text: String) -> Result<(), String>;

    /// Ends the session.
    fn close(&self) -> BoxFuture<'_, ()>;
}

/// A member's session, with the signal that a message has arrived.
#[derive(Clone)]
pub(super) struct GroupChannelMember {
    pub(super) seat: Arc<dyn MemberSession>,
    pub(super) arrived: Arc<Notify>,
}

impl RegisteredSession for GroupChannelMember {
    type Status = ();

    fn send_as(&self, kind: MessageKind, text: String) -> BoxFuture<'_, Result<(), AgentError>> {
        async move {
            self.seat.send_as(kind, text).await?;
            self.arrived.notify_one();
            Ok(())
        }
        .boxed()
    }

    fn status(&self) -> BoxFuture<'_, ()> {
        std::future::ready(()).boxed()
    }

    fn close(&self) -> BoxFuture<'_, Result<(), AgentError>> {
        async move {
            self.seat.close().await;
            Ok(())
        }
        .boxed()
    }
}

/// The channel of a group.
#[derive(Clone)]
pub(super) struct GroupChannel(pub(super) AgentChannel<GroupChannelMember>);

impl Default for GroupChannel {
    fn default() -> Self {
        // Members read messages at the next boundary of their turns; nobody is woken after its end.
        Self(AgentChannel::new(MessageKind::System))
    }
}
