//! Shows an agent's events to the subscribers of the session that started it, and passes on the
//! answers to the agent's questions.

use journeyman_protocol::{CallId, Envelope, Event};

use super::delegation::DelegatingSession;
use crate::session::handle::SessionHandle;

/// Forwards the events of one agent, and of its own agents.
pub(super) struct EventForwarder<'a> {
    parent: &'a DelegatingSession,
    child: SessionHandle,
    /// The calls of open questions.
    asked: Vec<CallId>,
}

impl<'a> EventForwarder<'a> {
    pub(super) fn new(parent: &'a DelegatingSession, child: SessionHandle) -> Self {
        Self { parent, child, asked: Vec::new() }
    }

    /// Shows an event of the agent to the parent's subscribers, if it concerns them.
    pub(super) fn forward(&mut self, envelope: &Envelope) {
        match &envelope.event {
            Event::PermissionRequired { call, .. } => self.open_question(call),
            Event::PermissionDecided { call, .. } => self.withdraw_question(call),
            _ => {}
        }
        if is_forwarded(&envelope.event) {
            // Its place is in the agent's own log.
            self.parent.live.show(Envelope { seq: None, ..envelope.clone() });
        }
    }

    /// Opens a question of the agent in the parent's session, and passes the answer to the agent.
    /// The deadlines of both pause until then.
    fn open_question(&mut self, call: &CallId) {
        if self.asked.contains(call) {
            return;
        }
        self.asked.push(call.clone());
        let answer = self.parent.shared.open_question(call);
        let (child, call) = (self.child.clone(), call.clone());
        tokio::spawn(async move {
            // Without an answer the question was withdrawn, at the agent too.
            if let Ok(decided) = answer.await {
                child.decide_as(&call, decided.answer, &decided.by);
            }
        });
    }

    fn withdraw_question(&mut self, call: &CallId) {
        if let Some(place) = self.asked.iter().position(|asked| asked == call) {
            self.asked.swap_remove(place);
            self.parent.shared.withdraw_question(call);
        }
    }
}

impl Drop for EventForwarder<'_> {
    fn drop(&mut self) {
        for call in std::mem::take(&mut self.asked) {
            self.parent.shared.withdraw_question(&call);
        }
    }
}

/// Returns true for the events of an agent that the parent's subscribers see. All other events are
/// only in the agent's log.
fn is_forwarded(event: &Event) -> bool {
    matches!(
        event,
        Event::ToolStart { .. }
            | Event::ToolEnd { .. }
            | Event::ToolError { .. }
            | Event::ToolCustomEvent { .. }
            | Event::FileEdited { .. }
            | Event::PermissionRequired { .. }
            | Event::PermissionDecided { .. }
            | Event::Thought { .. }
            | Event::Warning { .. }
            | Event::Error { .. }
            | Event::AgentStarted { .. }
            | Event::AgentFinished { .. }
            | Event::TokenUsage { .. }
    )
}
