//! The interface of back-ends, which run commands.

use std::fmt;
use std::pin::Pin;

use journeyman_protocol::{Enforcement, SandboxTier};
use tokio_util::sync::CancellationToken;

use crate::SandboxError;
use crate::request::Request;
use crate::running_command::RunningCommand;

/// A boxed future, as the methods of [`Backend`] return.
pub(crate) type BackendFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A way to run commands.
pub(crate) trait Backend: fmt::Debug + Send + Sync {
    /// Returns the back-end's tier.
    fn tier(&self) -> SandboxTier;

    /// Returns what the back-end enforces here, found by running it and trying to escape from it.
    /// Called again only after a failure.
    fn probe(&self) -> BackendFuture<'_, Result<Enforcement, SandboxError>>;

    /// Starts a command. `enforcement` is what [`probe`](Self::probe) returned, adapted to the
    /// request's network; it meets the request's needs.
    fn spawn(
        &self,
        request: Request,
        enforcement: Enforcement,
        cancel: CancellationToken,
    ) -> BackendFuture<'_, Result<RunningCommand, SandboxError>>;
}
