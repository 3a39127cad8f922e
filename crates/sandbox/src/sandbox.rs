//! Picking a back-end, and running requests through it.

use std::path::{Path, PathBuf};

use journeyman_protocol::{Enforcement, Tier};
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;

use crate::request::{Network, Request};
use crate::run::Running;
use crate::trial::Trial;
use crate::{Mounted, OverlayPlan, SandboxError, unconfined};

/// How a [`Sandbox`] may run commands.
#[derive(Debug, Clone)]
pub struct SandboxSettings {
    /// Back-ends that may be used; the first that works is. Only [`Tier::Namespaces`] by default.
    /// [`Tier::Unconfined`] is used only if it is here. Others are not built yet and are passed over.
    pub allow: Vec<Tier>,
    /// The program that becomes the helper; this program itself by default. It must call
    /// [`run_helper_if_asked`](crate::run_helper_if_asked) first.
    pub helper: Option<PathBuf>,
    /// A file, outside any project, where the result of the test is kept until the next boot, so that a
    /// new process needn't repeat it.
    pub cache: Option<PathBuf>,
}

impl Default for SandboxSettings {
    fn default() -> Self {
        Self { allow: vec![Tier::Namespaces], helper: None, cache: None }
    }
}

/// Runs commands. Making one does nothing yet; the first command, or [`enforcement`](Self::enforcement),
/// tests the back-end.
#[derive(Debug)]
pub struct Sandbox {
    settings: SandboxSettings,
    chosen: OnceCell<Enforcement>,
    #[cfg(target_os = "linux")]
    hidden: crate::namespaces::Memory,
    #[cfg(target_os = "linux")]
    caches: crate::namespaces::Caches,
}

impl Sandbox {
    /// A sandbox with these settings.
    #[must_use]
    pub fn new(settings: SandboxSettings) -> Self {
        Self {
            settings,
            chosen: OnceCell::new(),
            #[cfg(target_os = "linux")]
            hidden: crate::namespaces::Memory::default(),
            #[cfg(target_os = "linux")]
            caches: crate::namespaces::Caches::default(),
        }
    }

    /// What is enforced here, as seen by running the back-end and trying to get out of it. Repeated only
    /// after a failure; a success is remembered, and kept in [`SandboxSettings::cache`].
    ///
    /// # Errors
    /// [`SandboxError::Unavailable`] when no allowed back-end works, with the reason and what helps;
    /// [`SandboxError::Leaks`] when one runs but doesn't hold.
    pub async fn enforcement(&self) -> Result<Enforcement, SandboxError> {
        self.chosen.get_or_try_init(|| self.choose()).await.cloned()
    }

    async fn choose(&self) -> Result<Enforcement, SandboxError> {
        #[cfg_attr(not(target_os = "linux"), allow(unused_mut))]
        let mut refused = SandboxError::Unavailable {
            reason: "no back-end that exists on this system is allowed".to_owned(),
            fix: "Allow one by name in the settings".to_owned(),
        };
        for tier in &self.settings.allow {
            match tier {
                #[cfg(target_os = "linux")]
                Tier::Namespaces => match crate::namespaces::probe(&self.settings).await {
                    Ok(enforcement) => return Ok(enforcement),
                    Err(error) => refused = error,
                },
                Tier::Unconfined => return Ok(Enforcement::none()),
                _ => {}
            }
        }
        Err(refused)
    }

    /// Mounts an overlay in namespaces of its own, at its lower directory's path. Blocks for some milliseconds, or
    /// up to five seconds while somebody else has the upper layer mounted; needs no runtime. Taking the mount down,
    /// which happens where the last descriptor of it is closed, makes the kernel write out the upper layer's file
    /// system.
    ///
    /// As root, files of all owners are copied up when they are changed. As another user, opening somebody else's
    /// file (or group's) for writing fails with `EOVERFLOW`. Renaming a directory of the lower layer fails with
    /// `EXDEV`, as it does between file systems. The inode number of a directory is that of the lower one; that of a
    /// changed file may become another when it is mounted again.
    ///
    /// # Errors
    /// [`SandboxError::Unavailable`] where the kernel, the file systems or the allowed back-ends don't have it, with
    /// the reason; [`SandboxError::Refused`] where one of the directories lies in another; [`SandboxError::Path`]
    /// where one can't be used, or somebody else has the upper layer mounted; [`SandboxError::NoHelper`],
    /// [`SandboxError::InsideHelper`], [`SandboxError::Start`].
    pub fn mount(&self, plan: &OverlayPlan) -> Result<Mounted, SandboxError> {
        #[cfg(target_os = "linux")]
        if self.settings.allow.contains(&Tier::Namespaces) {
            return crate::namespaces::mount(&self.settings, plan);
        }
        Err(SandboxError::Unavailable {
            reason: format!("an overlay over «{}» needs namespaces of its own", plan.lower.display()),
            fix: "Allow the back-end «namespaces» in the settings, on Linux, or use another kind of copy"
                .to_owned(),
        })
    }

    /// Whether overlays can be mounted whose layers lie in this directory's file system: one is, and is written to.
    /// Costs what [`mount`](Self::mount) does, and leaves nothing behind.
    ///
    /// # Errors
    /// As [`mount`](Self::mount); [`SandboxError::Path`] where nothing can be made in the directory.
    pub fn can_mount(&self, directory: &Path) -> Result<(), SandboxError> {
        let trial = Trial::make(directory)?;
        let mounted = self.mount(&trial.plan())?;
        trial.write(&mounted)
    }

    /// Starts a command. Cancelling `cancel` kills it and all its processes.
    ///
    /// Must be called within a Tokio runtime that has its I/O and time drivers on.
    ///
    /// # Errors
    /// As [`enforcement`](Self::enforcement), and [`SandboxError::Unmet`], [`SandboxError::Refused`] or
    /// [`SandboxError::Path`] when the request can't be run as it stands, [`SandboxError::Start`] when no
    /// process could be made. In each case nothing ran.
    pub async fn spawn(&self, request: Request, cancel: CancellationToken) -> Result<Running, SandboxError> {
        let mut enforcement = self.enforcement().await?;
        if request.network == Network::Host && enforcement.network_off {
            enforcement.network_off = false;
            enforcement.gaps.push("the host's network is reachable, abstract sockets included".to_owned());
        }
        if let Some(need) = enforcement.unmet(&request.needs) {
            return Err(SandboxError::Unmet { need, tier: enforcement.tier.to_string() });
        }
        match enforcement.tier {
            #[cfg(target_os = "linux")]
            Tier::Namespaces => {
                let joined = self.caches.joined(&self.settings, &request).await?;
                crate::namespaces::spawn(&self.settings, request, enforcement, cancel, &self.hidden, joined)
                    .await
            }
            _ => unconfined::spawn(request, cancel),
        }
    }
}
