//! Errors of starting a command, or of waiting for it.

use std::io;
use std::path::PathBuf;

/// The reason why a command did not run, or why its end is unknown.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// No allowed back-end works on this machine.
    #[error("commands can't be confined here: {reason}. {fix}")]
    Unavailable {
        /// The attempt and the kernel's error.
        reason: String,
        /// Advice for the user.
        fix: String,
    },
    /// This process is itself a command of such a sandbox.
    #[error("already inside a jm sandbox: commands can't be confined twice")]
    Nested,
    /// The back-end runs, but something got out of it.
    #[error("the sandbox leaks here, so it isn't used: {0}. Report this with the kernel's version")]
    Leaks(String),
    /// The request needs more than is enforced.
    #[error("refused: {need} is needed, and the {tier} back-end doesn't give that")]
    Unmet {
        /// The missing guarantee.
        need: &'static str,
        /// The back-end in use.
        tier: String,
    },
    /// The request can't be run as it stands; nothing was started.
    #[error("refused: {0}")]
    Refused(String),
    /// A path of the request may not be shown to the command or written by it; nothing was started.
    #[error("refused: {reason} (`{}`)", path.display())]
    RefusedPath {
        /// The path, as the request names it.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// A path of the request is missing or unusable.
    #[error("{what} `{}`: {source}", path.display())]
    Path {
        /// The part of the request.
        what: &'static str,
        /// The path.
        path: PathBuf,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// The re-executed program did not turn into the helper.
    #[error(
        "`{}` didn't answer as the sandbox helper: call journeyman_sandbox::run_helper_if_asked() first in \
         its main(), or name a program that does in SandboxSettings.helper", path.display()
    )]
    NoHelper {
        /// The program that was started.
        path: PathBuf,
    },
    /// The re-executed program had started threads before it turned into the helper.
    #[error(
        "`{}` had started threads before it became the sandbox helper: call \
         journeyman_sandbox::run_helper_if_asked() as the first line of a plain `fn main`, before a runtime starts \
         threads (`#[tokio::main]` starts them before the first line)", path.display()
    )]
    ThreadsStarted {
        /// The program that was started.
        path: PathBuf,
    },
    /// This process is itself a re-executed helper whose `main` went on.
    #[error(
        "this process was started as a sandbox helper and may not start commands: call \
         journeyman_sandbox::run_helper_if_asked() first in main()"
    )]
    InsideHelper,
    /// Starting the process failed.
    #[error("starting `{}`: {source}; check that it may be executed and that processes are left", path.display())]
    Start {
        /// The program.
        path: PathBuf,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// Talking to the process failed.
    #[error("{what}: {source}; the command was killed")]
    Supervise {
        /// The step that failed.
        what: &'static str,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// The task that watched the command is gone: the runtime was shut down.
    #[error("the runtime ended while the command ran; the command was killed")]
    Abandoned,
}
