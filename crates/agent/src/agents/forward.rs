//! Shows an agent's events to the subscribers of the session that started it, and passes on the
//! answers to the agent's questions.

use journeyman_protocol::{CallId, Envelope, Event};

use super::delegate::DelegatingSession;
use crate::session::handle::SessionHandle;

/// Forwards the events of one agent, and of its own agents.
pub(super) struct Forwarder<'a> {
    parent: &'a DelegatingSession,
    child: SessionHandle,
    /// The calls of open questions.
    asked: Vec<CallId>,
}

impl<'a> Forwarder<'a> {
    pub(super) fn new(parent: &'a DelegatingSession, child: SessionHandle) -> Self {
        Self { parent, child, asked: Vec::new() }
    }

    /// Shows an event of the agent where it concerns whoever watches the parent.
    pub(super) fn forward(&mut self, envelope: &Envelope) {
        match &envelope.event {
            Event::PermissionRequired { call, .. } => self.ask(call),
            Event::PermissionDecided { call, .. } => self.withdraw(call),
            _ => {}
        }
        if is_forwarded(&envelope.event) {
            // Its place is in the agent's own log.
            self.parent.live.show(Envelope { seq: None, ..envelope.clone() });
        }
    }

    /// Opens a question of the agent at the parent, whose answer goes to the agent. The parent's
    /// deadline pauses meanwhile, as the agent's does.
    fn ask(&mut self, call: &CallId) {
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

    fn withdraw(&mut self, call: &CallId) {
        if let Some(place) = self.asked.iter().position(|asked| asked == call) {
            self.asked.swap_remove(place);
            self.parent.shared.withdraw_question(call);
        }
    }
}

impl Drop for Forwarder<'_> {
    fn drop(&mut self) {
        for call in std::mem::take(&mut self.asked) {
            self.parent.shared.withdraw_question(&call);
        }
    }
}

/// Returns true for what whoever watches the parent is to see of an agent. Its log has the rest.
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
