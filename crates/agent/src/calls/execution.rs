//! A running call: its time limit, its cancellation and its live output.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use futures_util::future::OptionFuture;
use journeyman_protocol::{CallId, CallState, Event, ToolUse};
use journeyman_tools::{Registry, ToolContext, ToolError, ToolOutput};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use super::finished_call::FinishedCall;
use crate::durations::format_duration;
use crate::transcript::log::LiveSink;
use crate::transcript::stream_redactor::StreamRedactor;

/// Time that a cancelled call gets to end by itself. Processes of a command are killed at once; the
/// time is for tools that have to clean up.
const CANCEL_GRACE_PERIOD: Duration = Duration::from_secs(5);
/// Time that a cancelled call of an agent gets to end by itself. The agent, and each agent below
/// it, ends its own calls within [`CANCEL_GRACE_PERIOD`], reverts their partial changes, and
/// reports.
pub(crate) const AGENT_GRACE_PERIOD: Duration = Duration::from_secs(30);

/// A call that is about to run.
pub(crate) struct CallExecution {
    pub(super) registry: Arc<Registry>,
    pub(super) call: ToolUse,
    pub(super) limit: Duration,
    pub(super) context: ToolContext,
    pub(super) live: LiveOutput,
    /// The secrets in the files of settings that the call reads or writes, under any name; `None`
    /// if there is no such file.
    pub(super) settings: Option<Vec<String>>,
}

impl CallExecution {
    /// Runs the call and returns its result.
    pub(crate) async fn run(self, permits: Arc<Semaphore>) -> (CallId, FinishedCall) {
        let Self { registry, call, limit, context, live, settings } = self;
        let id = call.id.clone();
        let cancel = context.cancel.clone();
        let starts_agents = registry.get(&call.name).is_ok_and(|tool| tool.starts_agents());
        // A call that waits for an agent does nothing itself. Agents have permits of their own.
        let permit = if starts_agents { None } else { Some(permits.acquire()) };
        // Cancellation also ends the wait for a permit.
        let _permit = tokio::select! {
            biased;
            () = cancel.cancelled() => return (id, FinishedCall::interrupted()),
            permit = OptionFuture::from(permit) => permit,
        };
        let grace = if starts_agents { AGENT_GRACE_PERIOD } else { CANCEL_GRACE_PERIOD };
        let started = Instant::now();
        let running = tokio::spawn(async move {
            let called = async {
                let tool = registry.get(&call.name)?;
                tool.call(&context, call.input).await
            };
            // A panicking tool fails its own call, not the session or other calls.
            let caught = AssertUnwindSafe(called).catch_unwind().await;
            caught.unwrap_or_else(|_| Err(ToolError::Stopped("the tool panicked".to_owned())))
        });
        let mut task = CallTask { running, abandoned: false };
        let (result, timed_out) = tokio::select! {
            biased;
            done = &mut task.running => (flatten_result(done), false),
            () = cancel.cancelled() => (task.wait_or_abort(grace).await, false),
            () = tokio::time::sleep(limit) => {
                cancel.cancel();
                (task.wait_or_abort(grace).await, true)
            }
        };
        live.flush_rest();
        let duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let abandoned = task.abandoned;
        let mut finished = match result {
            Ok(output) => to_finished_call(output, cancel.is_cancelled(), timed_out.then_some(limit)),
            Err(error) if timed_out => {
                let limit = format_duration(limit);
                FinishedCall::without_output(
                    CallState::Failed,
                    format!("ended at its time limit of {limit}: {error}"),
                )
            }
            Err(error) => {
                let was_stopped = matches!(error, ToolError::Cancelled | ToolError::Stopped(_));
                let state = match cancel.is_cancelled() && was_stopped {
                    true => CallState::Interrupted,
                    false => CallState::Failed,
                };
                FinishedCall::without_output(state, error.to_string())
            }
        };
        if let Some(secrets) = settings {
            finished.mask_settings(&secrets);
        }
        (id, FinishedCall { duration_ms, abandoned, ..finished })
    }
}

/// The Tokio task of a call. Dropping it aborts the task.
struct CallTask {
    running: JoinHandle<Result<ToolOutput, ToolError>>,
    abandoned: bool,
}

impl CallTask {
    /// Waits a short time for a cancelled call to end, and then aborts it.
    async fn wait_or_abort(&mut self, grace: Duration) -> Result<ToolOutput, ToolError> {
        if let Ok(done) = tokio::time::timeout(grace, &mut self.running).await {
            return flatten_result(done);
        }
        self.abandoned = true;
        self.running.abort();
        Err(ToolError::Stopped("it did not end when it was told to, and was ended".to_owned()))
    }
}

impl Drop for CallTask {
    fn drop(&mut self) {
        self.running.abort();
    }
}

fn flatten_result(
    done: Result<Result<ToolOutput, ToolError>, tokio::task::JoinError>,
) -> Result<ToolOutput, ToolError> {
    done.unwrap_or_else(|died| Err(ToolError::Stopped(died.to_string())))
}

fn to_finished_call(output: ToolOutput, cancelled: bool, timed_out: Option<Duration>) -> FinishedCall {
    let ToolOutput { mut parts, changes, diff, is_error, violations, output_lines, foreign_usage } = output;
    if !is_error {
        // The call succeeded while it was being cancelled, so it counts as completed.
        return FinishedCall {
            diff,
            violations,
            output_lines,
            foreign_usage,
            ..FinishedCall::with_output(CallState::Completed, parts, changes)
        };
    }
    if let Some(limit) = timed_out {
        let text = format!("ended at its time limit of {}", format_duration(limit));
        parts.push(journeyman_protocol::ResultPart::Text { text });
    }
    let state = match timed_out.is_none() && cancelled {
        true => CallState::Interrupted,
        false => CallState::Failed,
    };
    FinishedCall {
        diff,
        violations,
        output_lines,
        foreign_usage,
        ..FinishedCall::with_output(state, parts, changes)
    }
}

/// A running call's output for people, held back until it can be searched for secrets.
#[derive(Clone)]
pub(super) struct LiveOutput {
    sink: LiveSink,
    call: CallId,
    held: Arc<Mutex<StreamRedactor>>,
}

impl LiveOutput {
    pub(super) fn new(sink: LiveSink, call: CallId) -> Self {
        Self { sink, call, held: Arc::default() }
    }

    pub(super) fn push(&self, text: &str) {
        let shown = self.held.lock().unwrap_or_else(PoisonError::into_inner).push(text);
        self.send_output(shown);
    }

    fn flush_rest(&self) {
        let rest = self.held.lock().unwrap_or_else(PoisonError::into_inner).take_rest();
        self.send_output(rest);
    }

    fn send_output(&self, text: Option<String>) {
        if let Some(text) = text {
            self.sink.send(Event::ToolOutput { call: self.call.clone(), text });
        }
    }
}
