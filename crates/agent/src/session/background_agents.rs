//! Waiting for, stopping and resuming the background agents of a session.

use std::sync::Arc;
use std::time::Duration;

use journeyman_protocol::{CallState, Effects, MessageKind, ReminderCategory, ToolUse};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::running_session::Session;
use crate::AgentError;
use crate::approval::authorization::ApprovedCall;
use crate::calls::execution::AGENT_GRACE_PERIOD;
use crate::transcript::reminder::wrap_reminder;

impl Session {
    /// Returns true while an agent works in the background.
    pub(super) fn has_background_agents(&self) -> bool {
        self.delegation.as_ref().is_some_and(|lent| lent.background.is_running())
    }

    /// Waits until every agent in the background has ended, or a person writes. The model has
    /// nothing else to do, and is asked again with their results.
    pub(super) async fn wait_for_background_agents(
        &mut self,
        stop: &CancellationToken,
    ) -> Result<(), AgentError> {
        let Some(lent) = self.delegation.as_ref().filter(|lent| lent.background.is_running()) else {
            return Ok(());
        };
        // Subscribers see the reply before the wait.
        self.cx.transcript.flush().await?;
        let shared = Arc::clone(&self.cx.shared);
        let mut status = shared.status.subscribe();
        tokio::select! {
            biased;
            () = stop.cancelled() => {}
            () = lent.background.wait_until_ended() => {}
            _ = status.wait_for(|_| shared.has_work()) => {}
        }
        self.runner.record_agents_work(&mut self.cx);
        Ok(())
    }

    /// Stops the agents in the background and waits for their reports, because the task ends.
    pub(super) async fn stop_background_agents(&mut self) {
        let Some(lent) = self.delegation.as_ref().filter(|lent| lent.background.is_running()) else {
            return;
        };
        lent.background.cancel();
        let ended = lent.background.wait_until_ended();
        if tokio::time::timeout(AGENT_GRACE_PERIOD, ended).await.is_err() {
            lent.background.abort();
            lent.background.wait_until_ended().await;
        }
        self.runner.record_agents_work(&mut self.cx);
    }

    /// Resumes the agents that worked in the background when the program ended. Their calls have
    /// their results already.
    pub(super) async fn resume_background_agents(&mut self, stop: &CancellationToken) {
        let Some(lent) = &self.delegation else { return };
        for call in lent.background.take_cut_off_calls() {
            let may_show = self.approvals.visible_file_filter(&self.cx);
            let execution = self.runner.prepare_call(&self.cx, &build_restart_call(call), may_show, stop);
            let (_, finished) = execution.run(Arc::new(Semaphore::new(1))).await;
            if finished.state != CallState::Completed {
                let text = format!("A background task could not go on after a restart: {}", finished.text());
                let text = wrap_reminder(&text);
                // The log reports a refused write itself.
                self.inbox.accept(MessageKind::System, ReminderCategory::Agent, text).await.ok();
            }
        }
    }
}

/// Returns the call that gave the task, which starts its agent again.
fn build_restart_call(call: ToolUse) -> ApprovedCall {
    ApprovedCall {
        call,
        effects: Effects::default(),
        read_only: true,
        starts_agents: true,
        time_limit: Duration::MAX,
        context: Vec::new(),
        preview: None,
        layer: None,
    }
}
