//! Ctrl-C, and requests of other programs to end, for commands without a conversation.

use journeyman_host::{Context as _, HostError};
use journeyman_terminal::stderr_screen;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// The exit code of an interrupted command.
pub const EXIT_INTERRUPTED: u8 = 130;

/// Ends the process at once, without its progress line.
pub fn exit_interrupted() -> ! {
    stderr_screen().clear_progress();
    std::process::exit(EXIT_INTERRUPTED.into())
}

/// Ctrl-C, and requests of other programs to end.
pub struct StopSignals {
    interrupts: Signal,
    terminations: Signal,
}

impl StopSignals {
    /// Begins to listen, so that the signals don't end the process any more.
    ///
    /// # Errors
    /// [`HostError::Failed`] where the process can't listen.
    pub fn listen() -> Result<Self, HostError> {
        let interrupts = signal(SignalKind::interrupt()).context("listening for Ctrl-C")?;
        let terminations = signal(SignalKind::terminate()).context("listening for SIGTERM")?;
        Ok(Self { interrupts, terminations })
    }

    /// Waits for the next signal.
    pub async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupts.recv() => {}
            _ = self.terminations.recv() => {}
        }
    }
}

/// Runs `work` to its end. The first Ctrl-C cancels `stop`, the second ends the process.
///
/// # Errors
/// As [`StopSignals::listen`].
pub async fn run_until_stopped<T>(
    work: impl Future<Output = T>,
    stop: &CancellationToken,
) -> Result<T, HostError> {
    let mut signals = StopSignals::listen()?;
    let mut work = std::pin::pin!(work);
    loop {
        tokio::select! {
            biased;
            () = signals.next() => {
                if stop.is_cancelled() {
                    exit_interrupted();
                }
                stop.cancel();
            }
            done = &mut work => return Ok(done),
        }
    }
}
