//! The reading of a CLI's run: output lines go to its [`Conversation`], and the events to a
//! callback.

use std::time::Duration;

use journeyman_sandbox::{Completed, Outcome as End, Running, SandboxError, Stream, clean};
use tokio_util::sync::CancellationToken;

use crate::input::Input;
use crate::lines::Lines;
use crate::{Conversation, DelegateEvent, Failure, FailureKind, Outcome};

/// Maximum time that a CLI gets to exit after it has reported the end of the run.
const END_WAIT: Duration = Duration::from_secs(5);
/// Maximum bytes kept of standard error: its end says why a program failed.
const STDERR_BYTES: usize = 16 * 1024;

/// The end of a run.
pub(crate) struct RunEnd {
    /// The outcome, according to the CLI; a run that was killed or cut off is a failure.
    pub(crate) outcome: Outcome,
    /// The end of the CLI's process.
    pub(crate) completed: Completed,
}

/// The state of reading one run.
struct Reading<'a> {
    conversation: Box<dyn Conversation>,
    input: Option<Input>,
    watch: &'a mut (dyn FnMut(&DelegateEvent) + Send),
    /// True if the CLI has reported the end of the run.
    finished: bool,
}

impl Reading<'_> {
    /// Reads a line, and writes the reply to standard input if that is open.
    fn receive(&mut self, line: &[u8]) {
        let step = self.conversation.receive(line);
        step.events.iter().for_each(&mut *self.watch);
        if let Some(input) = &self.input {
            input.write(step.reply);
        }
        if step.finished {
            self.finished = true;
            self.input = None;
        }
    }
}

/// Reads the output of a running CLI until it ends. `stop` ends the CLI.
pub(crate) async fn read_to_end(
    mut running: Running,
    stop: CancellationToken,
    input: Option<Input>,
    conversation: Box<dyn Conversation>,
    watch: &mut (dyn FnMut(&DelegateEvent) + Send),
) -> Result<RunEnd, SandboxError> {
    let (mut lines, mut stderr, mut is_ending) = (Lines::default(), Vec::new(), false);
    let mut reading = Reading { conversation, input, watch, finished: false };
    while let Some(chunk) = running.next().await {
        match chunk.stream {
            Stream::Stdout => lines.push(&chunk.bytes, |line| reading.receive(line)),
            Stream::Stderr => keep_tail(&mut stderr, &chunk.bytes),
        }
        if reading.finished && !is_ending {
            is_ending = true;
            let stop = stop.clone();
            tokio::spawn(async move {
                tokio::time::sleep(END_WAIT).await;
                stop.cancel();
            });
        }
    }
    lines.finish(|line| reading.receive(line));
    let completed = running.wait().await?;
    let exit = match completed.outcome {
        End::Exited(code) => Some(code),
        _ => None,
    };
    let Reading { conversation, finished, .. } = reading;
    let mut outcome = conversation.end(exit, &clean(&stderr));
    // A failure of the process counts, unless the CLI reported the end before.
    if let Some(failure) = process_failure(&completed).filter(|_| !finished) {
        outcome.failure = Some(failure);
    }
    Ok(RunEnd { outcome, completed })
}

/// Returns the failure of a process that was ended from outside.
fn process_failure(completed: &Completed) -> Option<Failure> {
    let message = match &completed.outcome {
        End::Exited(_) => return None,
        End::TimedOut => format!("it was ended at its time limit, after {} s", completed.duration.as_secs()),
        End::Cancelled => "it was stopped".to_owned(),
        End::Signaled(signal) => format!("it was killed by signal {signal}"),
        End::SetupFailed(reason) => format!("it did not start: {reason}"),
        excess => format!("it was killed for {}", excess.exceeded_limit().unwrap_or("exceeding a limit")),
    };
    Some(Failure { kind: FailureKind::CutOff, message })
}

fn keep_tail(kept: &mut Vec<u8>, bytes: &[u8]) {
    kept.extend_from_slice(bytes);
    let excess = kept.len().saturating_sub(STDERR_BYTES);
    kept.drain(..excess);
}
