//! Back-end 1: the program's own namespaces.
//!
//! The agent plans the root ([`plan`]), starts the helper ([`launch`]) by `posix_spawn` (never a
//! fork of the agent, which may be large), and watches the command ([`watch`]). The helper
//! ([`init`]) follows the policy ([`policy`]) and becomes pid 1. [`probe`] runs the helper once
//! with canaries in place of a command. [`ready`] keeps a helper for the next command.
//!
//! Another helper ([`mounter`]) makes namespaces without processes and mounts in them what a
//! command is to see at its root ([`mount`] starts this helper, [`order`] is its order). The first
//! helper joins these namespaces, if there are any, before it makes its own.

mod advice;
mod bounds;
mod bubblewrap;
mod c_string;
mod caches;
mod canary;
mod cgroups;
mod files;
mod filter;
mod framing;
mod guard;
mod helper;
mod helper_arguments;
mod hidden;
mod init;
mod job;
mod landlock_only;
mod launch;
mod messages;
mod mount;
mod mounter;
mod order;
mod outer_helper;
mod overlay;
mod pass;
pub(crate) mod plan;
mod policy;
mod probe;
mod ready;
mod restrict;
mod root;
mod steps;
mod sys;
mod terminal;
mod watch;

use std::io;
use std::os::fd::BorrowedFd;
use std::time::Instant;

use journeyman_protocol::{Enforcement, SandboxTier};
use tokio_util::sync::CancellationToken;

pub(crate) use bubblewrap::Bubblewrap;
pub use guard::Guard;
pub(crate) use helper::run_helper_if_asked;
pub(crate) use helper_arguments::is_inside_sandbox;
pub(crate) use landlock_only::LandlockOnly;
pub(crate) use mount::mount_overlay;

use crate::backend::{Backend, Boxed};
use crate::request::Request;
use crate::run::Running;
use crate::{SandboxError, SandboxSettings};
use caches::Caches;
use job::{HostCache, prepare_job};
use launch::{Launched, launch_job, launch_unattended};
use ready::ReadyHelper;

/// The back-end, with what it keeps between commands.
#[derive(Debug)]
pub(crate) struct Namespaces {
    settings: SandboxSettings,
    known: HostCache,
    caches: Caches,
    ready: ReadyHelper,
}

impl Namespaces {
    pub(crate) fn new(settings: SandboxSettings) -> Self {
        Self {
            settings,
            known: HostCache::default(),
            caches: Caches::default(),
            ready: ReadyHelper::default(),
        }
    }

    async fn start(
        &self,
        request: Request,
        enforcement: Enforcement,
        cancel: CancellationToken,
    ) -> Result<Running, SandboxError> {
        let begun = Instant::now();
        let joined = self.caches.find_mount(&self.settings, &request).await?;
        let mut job = prepare_job(&self.settings, request, joined, None, &self.known)?;
        let argument = job.watched_process.helper_argument();
        job.waiting = self.ready.take(argument);
        let Launched { watcher, live, stop } = launch_job(&self.settings, job, &cancel, begun)?;
        let next = self.ready.next(&self.settings, argument);
        let completed = async move {
            let seen = watcher.run().await;
            next.start();
            seen.map(|seen| seen.into_completed(enforcement))
        };
        Ok(Running::watch(live, stop, completed))
    }
}

impl Backend for Namespaces {
    fn tier(&self) -> SandboxTier {
        SandboxTier::Namespaces
    }

    fn probe(&self) -> Boxed<'_, Result<Enforcement, SandboxError>> {
        let probed = probe::Probed {
            tier: SandboxTier::Namespaces,
            program: None,
            gaps: Vec::new(),
            groups: self.known.groups.bounded_resources(),
        };
        let start = |request, canary| {
            let job = prepare_job(&self.settings, request, None, Some(canary), &self.known)?;
            launch_unattended(&self.settings, job)
        };
        Box::pin(async move { probe::probe_backend(&self.settings, &probed, start).await })
    }

    fn spawn(
        &self,
        request: Request,
        enforcement: Enforcement,
        cancel: CancellationToken,
    ) -> Boxed<'_, Result<Running, SandboxError>> {
        Box::pin(self.start(request, enforcement, cancel))
    }
}

/// Replaces what the descriptor `old` stands for by what `new` stands for, in one step: a thread
/// that uses the number `old` at the same time finds the one or the other, never nothing. What it
/// stood for is closed, if no other descriptor stands for it; directories and files that were
/// opened through it stay what they are. `old` is closed on exec from then on.
///
/// # Errors
/// As `dup3`: `EINVAL` when both are the same number.
pub fn replace_descriptor(old: BorrowedFd<'_>, new: BorrowedFd<'_>) -> io::Result<()> {
    sys::replace_descriptor(old, new).map_err(io::Error::from)
}
