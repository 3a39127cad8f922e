//! The reading of a CLI's run: output lines go to its [`Conversation`], and the events to a
//! callback.

use std::time::Duration;

use journeyman_sandbox::{
    CompletedCommand, Outcome as End, OutputStream, RunningCommand, SandboxError, clean_output,
};
use tokio_util::sync::CancellationToken;

use crate::cli_input::CliInput;
use crate::line_splitter::LineSplitter;
use crate::{Conversation, DelegateEvent, Failure, FailureKind, Outcome};

/// Maximum time that a CLI gets to exit after it has reported the end of the run.
const MAX_END_WAIT: Duration = Duration::from_secs(5);
/// Maximum bytes kept of standard error: its end says why a program failed.
const MAX_STDERR_BYTES: usize = 16 * 1024;

/// The end of a run.
pub(crate) struct RunEnd {
    /// The outcome, according to the CLI; a run that was killed or cut off is a failure.
    pub(crate) outcome: Outcome,
    /// The end of the CLI's process.
    pub(crate) completed: CompletedCommand,
}

/// The state of reading one run.
struct RunReader<'a> {
    conversation: Box<dyn Conversation>,
    input: Option<CliInput>,
    watch: &'a mut (dyn FnMut(&DelegateEvent) + Send),
    /// True if the CLI has reported the end of the run.
    finished: bool,
}

impl RunReader<'_> {
    /// Reads a line, and writes the reply to standard input if that is open.
    fn receive_line(&mut self, line: &[u8]) {
        let step = self.conversation.receive_line(line);
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
    mut running: RunningCommand,
    stop: CancellationToken,
    input: Option<CliInput>,
    conversation: Box<dyn Conversation>,
    watch: &mut (dyn FnMut(&DelegateEvent) + Send),
) -> Result<RunEnd, SandboxError> {
    let (mut lines, mut stderr, mut is_ending) = (LineSplitter::default(), Vec::new(), false);
    let mut reading = RunReader { conversation, input, watch, finished: false };
    while let Some(chunk) = running.next_chunk().await {
        match chunk.stream {
            OutputStream::Stdout => lines.push(&chunk.bytes, |line| reading.receive_line(line)),
            OutputStream::Stderr => keep_tail(&mut stderr, &chunk.bytes),
        }
        if reading.finished && !is_ending {
            is_ending = true;
            let stop = stop.clone();
            tokio::spawn(async move {
                tokio::time::sleep(MAX_END_WAIT).await;
                stop.cancel();
            });
        }
    }
    lines.finish(|line| reading.receive_line(line));
    let completed = running.wait().await?;
    let exit = match completed.outcome {
        End::Exited(code) => Some(code),
        _ => None,
    };
    let RunReader { conversation, finished, .. } = reading;
    let mut outcome = conversation.end(exit, &clean_output(&stderr));
    // A failure of the process counts, unless the CLI reported the end before.
    if let Some(failure) = process_failure(&completed).filter(|_| !finished) {
        outcome.failure = Some(failure);
    }
    Ok(RunEnd { outcome, completed })
}

/// Returns the failure of a process that was ended from outside.
fn process_failure(completed: &CompletedCommand) -> Option<Failure> {
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
    let excess = kept.len().saturating_sub(MAX_STDERR_BYTES);
    kept.drain(..excess);
}
