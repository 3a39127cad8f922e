//! The last turn of an agent, after a limit.

use journeyman_protocol::{ErrorPhase, Termination};
use tokio_util::sync::CancellationToken;

use super::agent_end::completed_agent_end;
use super::deadline::wait_for_work_time;
use super::model_exchange::ExchangeEnd;
use super::running_session::Session;
use super::task_end::TaskEnd;
use crate::AgentError;
use crate::transcript::record::Record;

/// The message of the last turn.
const LAST_TURN_MESSAGE: &str = include_str!("../../prompts/recovery.md");
/// Maximum requests of the last turn: a model that turns out to take no tools, or a conversation
/// that is too long, is asked again in another form.
const MAX_LAST_TURN_REQUESTS: usize = 3;

/// Returns the sentence that tells the model why this is its last turn.
fn reason_text(reason: Termination) -> &'static str {
    match reason {
        Termination::Timeout => "Your time is over.",
        Termination::MaxTurns => "You have used up your turns.",
        _ => "You stopped calling tools without handing in a result.",
    }
}

impl Session {
    /// Gives an agent that reached a limit one last turn, in which it can only complete its task.
    /// Every call before has its result by then. Returns the end of the task: its goal, marked as
    /// recovered, or what `end` was.
    pub(super) async fn grant_last_turn(&mut self, end: TaskEnd, stop: &CancellationToken) -> TaskEnd {
        let Some(role) = self.cx.role().cloned() else { return end };
        if let Some(goal) = completed_agent_end(&self.cx) {
            return goal;
        }
        let Some(reason) = end.termination.filter(|reason| reason.is_recoverable()) else { return end };
        if stop.is_cancelled() {
            return TaskEnd::interrupted();
        }
        if self.cx.transcript.state().last_turn.is_none() {
            let text = format!("{}; the agent has one last turn to hand in its result", end.summary);
            self.cx.transcript.emit_nonfatal_error(ErrorPhase::Lifecycle, text);
            self.cx.transcript.add_user_text(LAST_TURN_MESSAGE.replace("${reason}", reason_text(reason)));
            self.cx.transcript.record(Record::LastTurn { reason });
        }
        let turn = stop.child_token();
        let grace = wait_for_work_time(role.limits.grace, self.cx.shared.status.subscribe());
        let taken = {
            let taken = self.run_last_turn(&turn);
            tokio::pin!(taken, grace);
            tokio::select! {
                biased;
                taken = &mut taken => taken,
                () = &mut grace => {
                    turn.cancel();
                    taken.await
                }
            }
        };
        if let Some(goal) = completed_agent_end(&self.cx) {
            return goal;
        }
        if stop.is_cancelled() {
            return TaskEnd::interrupted();
        }
        let why = taken.err().map_or_else(String::new, |error| format!(": {error}"));
        let text = format!("the last turn brought no result either{why}");
        self.cx.transcript.emit_nonfatal_error(ErrorPhase::Lifecycle, text);
        end
    }

    /// Asks the model once more, and runs the calls of its reply.
    async fn run_last_turn(&mut self, turn: &CancellationToken) -> Result<(), AgentError> {
        let began = std::time::Instant::now();
        // A reply of a last turn that was cut off may have calls without results.
        if self.cx.transcript.state().is_settled() {
            for _ in 0..MAX_LAST_TURN_REQUESTS {
                match self.model_exchange().run(turn).await? {
                    ExchangeEnd::AskAgain => {}
                    ExchangeEnd::Replied => break,
                    ExchangeEnd::Interrupted => return Ok(()),
                }
            }
        }
        if !self.cx.transcript.state().is_settled() {
            self.tool_step().run(turn).await?;
        }
        self.cx.transcript.end_step(began.elapsed());
        Ok(())
    }
}
