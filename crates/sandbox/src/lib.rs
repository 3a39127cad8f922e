//! Runs a command confined: namespaces, limits, streamed output, the whole tree killed at its end.
//!
//! A [`Request`] says what to run and what it may see; a [`Sandbox`] picks a back-end once, tests
//! it by trying to break out of it, and runs requests. [`RunningCommand`] gives output live and
//! ends in a [`CompletedCommand`]: an [`Outcome`], head and tail of the output
//! ([`CapturedOutput`]), and what was enforced. [`find_toolchains`] finds what compilers and
//! interpreters of this machine need. [`Repositories`] finds git repositories that a command may
//! have planted. [`clean_output()`] makes output safe to show.
//!
//! A command gets namespaces of its own (user, mount, process, network, IPC, host name, cgroup), a
//! root made of an allow-list, no capability, Landlock and a seccomp filter beneath the mounts, and
//! bounds of its whole tree: by control groups where some can be made, else by polling. If a
//! protection can't be set up, the command is refused; nothing is weakened silently.
//! [`SandboxTier::Unconfined`] is used only if [`SandboxSettings::allow`] names it. The crate is
//! written for Linux alone. Without its feature `containers`, the container tier is unavailable.
//!
//! A command may find a copy at the project's own path, by [`Request::base`]: a directory, or an
//! overlay that [`Sandbox::mount_overlay`] mounts in namespaces of its own. All that confines a
//! command in the project confines it in the copy. [`MountedTree`] keeps the mount by descriptors
//! alone, through one of which the caller changes the same files.
//!
//! The program re-executes itself as the helper that builds the sandbox, so `main` must begin with
//! [`run_helper_if_asked`]:
//!
//! ```no_run
//! use journeyman_sandbox::{Request, Sandbox, SandboxSettings, run_helper_if_asked};
//! use tokio_util::sync::CancellationToken;
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     run_helper_if_asked();
//!     let sandbox = Sandbox::new(SandboxSettings::default());
//!     let request = Request::for_shell_command("/srv/project".as_ref(), "make test");
//!     tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//!         let running = sandbox.spawn(request, CancellationToken::new()).await?;
//!         let completed = running.wait().await?;
//!         println!("{:?}\n{}", completed.outcome, completed.combined.text);
//!         Ok(())
//!     })
//! }
//! ```
//!
//! The crate does not judge commands (that is `policy`), depends on neither agent nor models, reads
//! no environment, and keeps nothing between commands but the result of its own test, and a helper
//! that waits for the next command and has no data of any.
//!
//! [`SandboxTier::Unconfined`]: journeyman_protocol::SandboxTier::Unconfined

mod backend;
mod capture;
mod clean_output;
mod credentials;
mod denial;
mod error;
mod host_files;
mod line_cleaner;
mod network;
mod progress;
mod project_copy;
mod repositories;
mod request;
mod running_command;
mod sandbox;
mod settings;
mod spill;
mod syscalls;
mod toolchain;
mod unconfined;

#[cfg(feature = "containers")]
mod container;
mod namespaces;

pub use capture::{CapturedOutput, OutputChunk, OutputStream};
pub use clean_output::clean_output;
#[cfg(feature = "containers")]
pub use container::{
    ArchiveError, ContainerImage, ContainerSettings, Recipe, RecipeError, RecipeSource,
    read_recipe as read_container_recipe,
};
pub use denial::{Denial, DenialKind};
pub use error::SandboxError;
pub use line_cleaner::LineCleaner;
pub use namespaces::{KillOnExit, replace_descriptor};
pub use network::{
    HostPattern, HostPatternError, HostProxy, Network, NetworkRules, PortForward, ProxyConnection, Upstream,
    UpstreamFuture,
};
pub use progress::Progress;
pub use project_copy::{MountedTree, OverlayPlan, ProjectCopy};
pub use repositories::Repositories;
pub use request::{Limits, LiveOutputMode, Request, SpillFile, Stdin, StdioMode, WriteMode};
pub use running_command::{
    CompletedCommand, NotStarted, NotStartedCause, Outcome, ResourceUsage, RunningCommand,
};
pub use sandbox::Sandbox;
pub use settings::SandboxSettings;
pub use toolchain::{HostEnvironment, Toolchains, find_toolchains};

/// Turns this process into the sandbox helper if it was started as one; returns at once if not.
///
/// Call it first in a plain `fn main`, before threads, runtimes or output. `#[tokio::main]` starts
/// threads before the first line of its function, so such a program can't run commands
/// ([`SandboxError::ThreadsStarted`]): build the runtime in `main`, after this call. Where it does
/// its work it never returns.
pub fn run_helper_if_asked() {
    namespaces::run_helper_if_asked();
}
