//! Back-end 1: the program's own namespaces.

use journeyman_protocol::Enforcement;
use tokio_util::sync::CancellationToken;

use crate::run::Running;
use crate::{Request, SandboxError, SandboxSettings};

pub(crate) fn run_helper_if_asked() {}

pub(crate) async fn probe(_settings: &SandboxSettings) -> Result<Enforcement, SandboxError> {
    Err(SandboxError::Unavailable {
        reason: "the namespaces back-end isn't built yet".to_owned(),
        fix: String::new(),
    })
}

pub(crate) async fn spawn(
    _settings: &SandboxSettings,
    _request: Request,
    _enforcement: Enforcement,
    _cancel: CancellationToken,
) -> Result<Running, SandboxError> {
    Err(SandboxError::Refused("the namespaces back-end isn't built yet".to_owned()))
}
