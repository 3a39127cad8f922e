//! Chooses a back-end, and runs requests with it.

use std::sync::Arc;

use journeyman_protocol::{Enforcement, SandboxNeeds, SandboxTier};
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;

use crate::backend::Backend;
use crate::network::{Network, Upstream, set_proxy_variables};
use crate::request::Request;
use crate::running_command::RunningCommand;
use crate::unconfined::Unconfined;
use crate::{MountedTree, OverlayPlan, SandboxError, SandboxSettings};

/// Runs commands. Making one does nothing yet; the first command, or
/// [`enforcement`](Self::enforcement), tests the back-ends.
#[derive(Debug)]
pub struct Sandbox {
    settings: SandboxSettings,
    slots: Vec<BackendSlot>,
}

/// A back-end, and what it was seen to enforce once it worked.
#[derive(Debug)]
struct BackendSlot {
    backend: Box<dyn Backend>,
    seen: OnceCell<Enforcement>,
}

impl BackendSlot {
    async fn enforcement(&self, settings: &SandboxSettings) -> Result<&Enforcement, SandboxError> {
        let tier = self.backend.tier();
        if tier != SandboxTier::Namespaces && !settings.allow_root && is_root() {
            return Err(SandboxError::Unavailable {
                reason: format!("the back-end `{tier}` is not used by root, whom it confines less well"),
                fix: format!(
                    "Run as another user, or allow it with --allow-root (in your own configuration: sandbox.allow_root = \
                     true); what `{tier}` then doesn't hold, `jm doctor` tells"
                ),
            });
        }
        let seen = self.seen.get_or_try_init(|| self.backend.probe()).await;
        seen.map_err(explain_nesting)
    }
}

/// Returns the error of a back-end that doesn't work, or the reason for it where this process is a
/// command of another sandbox.
fn explain_nesting(error: SandboxError) -> SandboxError {
    match error {
        SandboxError::Unavailable { .. } if crate::namespaces::is_inside_sandbox() => SandboxError::Nested,
        error => error,
    }
}

/// Returns true if this program runs as root.
fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

impl Sandbox {
    /// Creates a sandbox with these settings.
    #[must_use]
    pub fn new(settings: SandboxSettings) -> Self {
        let slots = settings.allow.iter().map(|tier| create_backend(*tier, &settings));
        let slots = slots.map(|backend| BackendSlot { backend, seen: OnceCell::new() }).collect();
        Self { settings, slots }
    }

    /// Returns the way out of proxies that the settings name.
    pub(crate) fn upstream(&self) -> Option<&Arc<dyn Upstream>> {
        self.settings.upstream.as_ref()
    }

    /// Returns what is enforced for commands with these needs, found by running the back-end that
    /// would take them and trying to escape from it. Where no back-end meets the needs, the result
    /// is that of the first that works. The test is repeated only after a failure; a success is
    /// remembered, and kept in [`SandboxSettings::cache`].
    ///
    /// # Errors
    /// [`SandboxError::Unavailable`] when no allowed back-end works, with the reason and what
    /// helps; [`SandboxError::Leaks`] when one runs but doesn't hold.
    pub async fn enforcement(&self, needs: &SandboxNeeds) -> Result<Enforcement, SandboxError> {
        match self.choose_backend(needs, &Network::Off).await {
            Ok((_, enforcement)) => Ok(enforcement),
            Err(NoBackend { works: Some(enforcement), .. }) => Ok(enforcement),
            Err(NoBackend { error, .. }) => Err(error),
        }
    }

    /// Returns every allowed back-end in its order, with its guarantees or the reason why it
    /// doesn't work.
    pub async fn probe_all(&self) -> Vec<(SandboxTier, Result<Enforcement, SandboxError>)> {
        let mut found = Vec::with_capacity(self.slots.len());
        for slot in &self.slots {
            found.push((slot.backend.tier(), slot.enforcement(&self.settings).await.cloned()));
        }
        found
    }

    /// Returns the first back-end that works and meets the needs, with what it enforces on this
    /// network.
    async fn choose_backend(
        &self,
        needs: &SandboxNeeds,
        network: &Network,
    ) -> Result<(&dyn Backend, Enforcement), NoBackend> {
        let mut trouble: Option<NoBackend> = None;
        for slot in &self.slots {
            let failed = match slot.enforcement(&self.settings).await {
                Ok(enforcement) => {
                    let enforcement = restrict_to_network(enforcement.clone(), network);
                    match unmet_need(&enforcement, needs, network) {
                        None => return Ok((slot.backend.as_ref(), enforcement)),
                        Some(need) => {
                            let error = SandboxError::Unmet { need, tier: enforcement.tier.to_string() };
                            NoBackend { error, works: Some(enforcement) }
                        }
                    }
                }
                Err(error) => NoBackend { error: with_tier_name(slot.backend.tier(), error), works: None },
            };
            trouble = Some(match trouble {
                None => failed,
                Some(first) => first.combine(failed),
            });
        }
        Err(trouble.unwrap_or_else(|| NoBackend {
            error: SandboxError::Unavailable {
                reason: "no back-end is allowed".to_owned(),
                fix: "Allow one by name in the settings".to_owned(),
            },
            works: None,
        }))
    }

    /// Mounts an overlay in namespaces of its own, at its lower directory's path. Blocks for some
    /// milliseconds, or up to five seconds while somebody else has the upper layer mounted; needs
    /// no runtime. Taking the mount down, which happens where the last descriptor of it is closed,
    /// makes the kernel write out the upper layer's file system.
    ///
    /// As root, files of all owners are copied up when they are changed. As another user, opening
    /// somebody else's file (or group's) for writing fails with `EOVERFLOW`. Renaming a directory
    /// of the lower layer fails with `EXDEV`, as it does between file systems. The inode number of
    /// a directory is that of the lower one; that of a changed file may become another when it is
    /// mounted again.
    ///
    /// # Errors
    /// [`SandboxError::Unavailable`] where the kernel, the file systems or the allowed back-ends
    /// don't have it, with the reason; [`SandboxError::Refused`] where one of the directories lies
    /// in another; [`SandboxError::Path`] where one can't be used, or somebody else has the upper
    /// layer mounted; [`SandboxError::NoHelper`], [`SandboxError::InsideHelper`],
    /// [`SandboxError::Start`].
    pub fn mount_overlay(&self, plan: &OverlayPlan) -> Result<MountedTree, SandboxError> {
        if self.settings.allow.contains(&SandboxTier::Namespaces) {
            return crate::namespaces::mount_overlay(&self.settings, plan).map_err(explain_nesting);
        }
        Err(SandboxError::Unavailable {
            reason: format!("an overlay over `{}` needs namespaces of its own", plan.lower.display()),
            fix: "Allow the back-end \"namespaces\" in the settings, or use another kind of copy".to_owned(),
        })
    }

    /// Starts a command, by the first back-end that meets its needs. Cancelling `cancel` kills it
    /// and all its processes.
    ///
    /// Must be called within a Tokio runtime that has its I/O and time drivers on.
    ///
    /// # Errors
    /// As [`enforcement`](Self::enforcement), and [`SandboxError::Unmet`],
    /// [`SandboxError::Refused`] or [`SandboxError::Path`] when the request can't be run as it
    /// stands, [`SandboxError::Start`] when no process could be made. In each case nothing ran.
    pub async fn spawn(
        &self,
        mut request: Request,
        cancel: CancellationToken,
    ) -> Result<RunningCommand, SandboxError> {
        let chosen = self.choose_backend(&request.needs, &request.network).await;
        let (backend, enforcement) = chosen.map_err(|trouble| trouble.error)?;
        if matches!(request.network, Network::Filtered(_)) {
            set_proxy_variables(&mut request.env);
        }
        backend.spawn(request, enforcement, cancel).await
    }
}

/// The reason why no back-end was chosen: the error of the strongest, and the first that works at
/// all.
struct NoBackend {
    error: SandboxError,
    works: Option<Enforcement>,
}

impl NoBackend {
    fn combine(self, later: Self) -> Self {
        let error = match (self.error, later.error) {
            // The error of a back-end that runs but enforces too little explains more.
            (_, error) if self.works.is_none() && later.works.is_some() => error,
            (
                SandboxError::Unavailable { reason, fix },
                SandboxError::Unavailable { reason: another, fix: further },
            ) if self.works.is_none() => SandboxError::Unavailable {
                reason: format!("{reason}; {another}"),
                fix: if fix == further { fix } else { format!("{fix}; or: {further}") },
            },
            (error, _) => error,
        };
        Self { error, works: self.works.or(later.works) }
    }
}

/// Adds the back-end's name to an error, where there are errors of several.
fn with_tier_name(tier: SandboxTier, error: SandboxError) -> SandboxError {
    match error {
        SandboxError::Unavailable { reason, fix } if !reason.contains(&format!("`{tier}`")) => {
            SandboxError::Unavailable { reason: format!("`{tier}`: {reason}"), fix }
        }
        error => error,
    }
}

/// Returns the guarantees that hold on this network.
fn restrict_to_network(mut enforcement: Enforcement, network: &Network) -> Enforcement {
    if *network == Network::Host && enforcement.network_off {
        enforcement.network_off = false;
        enforcement.gaps.push("the host's network is reachable, abstract sockets included".to_owned());
    }
    enforcement
}

fn unmet_need(enforcement: &Enforcement, needs: &SandboxNeeds, network: &Network) -> Option<&'static str> {
    if matches!(network, Network::Filtered(_)) && !enforcement.network_filtered {
        return Some("a network of some hosts alone");
    }
    enforcement.first_unmet(needs)
}

/// Returns the back-end of a tier.
fn create_backend(tier: SandboxTier, settings: &SandboxSettings) -> Box<dyn Backend> {
    match tier {
        SandboxTier::Namespaces => Box::new(crate::namespaces::NamespacesBackend::new(settings.clone())),
        SandboxTier::Bubblewrap => Box::new(crate::namespaces::BubblewrapBackend::new(settings.clone())),
        SandboxTier::Landlock => Box::new(crate::namespaces::LandlockOnly::new(settings.clone())),
        #[cfg(feature = "containers")]
        SandboxTier::Container => Box::new(crate::container::ContainerBackend::new(settings.clone())),
        #[cfg(not(feature = "containers"))]
        SandboxTier::Container => Box::new(NoContainers),
        SandboxTier::Unconfined => Box::new(Unconfined),
    }
}

/// Stands for containers in a build without them.
#[cfg(not(feature = "containers"))]
#[derive(Debug)]
struct NoContainers;

#[cfg(not(feature = "containers"))]
impl NoContainers {
    fn unavailable() -> SandboxError {
        SandboxError::Unavailable {
            reason: "this build has no containers".to_owned(),
            fix: "Build it with the cargo feature `containers`, or allow another back-end".to_owned(),
        }
    }
}

#[cfg(not(feature = "containers"))]
impl Backend for NoContainers {
    fn tier(&self) -> SandboxTier {
        SandboxTier::Container
    }

    fn probe(&self) -> crate::backend::BackendFuture<'_, Result<Enforcement, SandboxError>> {
        Box::pin(async { Err(Self::unavailable()) })
    }

    fn spawn(
        &self,
        _: Request,
        _: Enforcement,
        _: CancellationToken,
    ) -> crate::backend::BackendFuture<'_, Result<RunningCommand, SandboxError>> {
        Box::pin(async { Err(Self::unavailable()) })
    }
}
