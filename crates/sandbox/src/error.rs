//! Why a command wasn't run, or can't be waited for.

use std::io;
use std::path::PathBuf;

/// Why a command did not run, or why nothing can be said of how it ended.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// No allowed back-end works on this machine.
    #[error("commands can't be confined here: {reason}. {fix}")]
    Unavailable {
        /// What was tried and what the kernel said.
        reason: String,
        /// What the user can do.
        fix: String,
    },
    /// The back-end runs, but something got out of it.
    #[error("the sandbox leaks here, so it isn't used: {0}. Report this with the kernel's version")]
    Leaks(String),
    /// The request needs more than is enforced.
    #[error("refused: {need} is needed, and the {tier} back-end doesn't give that")]
    Unmet {
        /// What is missing.
        need: &'static str,
        /// The back-end in use.
        tier: String,
    },
    /// The request can't be run as it stands; nothing was started.
    #[error("refused: {0}")]
    Refused(String),
    /// A path of the request is missing or unusable.
    #[error("{what} «{}»: {source}", path.display())]
    Path {
        /// Which part of the request it is.
        what: &'static str,
        /// The path.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The re-executed program did not turn into the helper.
    #[error(
        "«{}» didn't answer as the sandbox helper: call journeyman_sandbox::run_helper_if_asked() first in \
         its main(), or name a program that does in SandboxSettings.helper", path.display()
    )]
    NoHelper {
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
    #[error("starting «{}»: {source}; check that it may be executed and that processes are left", path.display())]
    Start {
        /// The program.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// Talking to the process failed.
    #[error("{what}: {source}; the command was killed")]
    Supervise {
        /// What was being done.
        what: &'static str,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The task that watched the command is gone: the runtime was shut down.
    #[error("the runtime ended while the command ran; the command was killed")]
    Abandoned,
}
