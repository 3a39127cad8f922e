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
mod bubblewrap;
mod c_string;
mod cache_mounts;
mod canary;
mod cgroups;
mod descriptor_passing;
mod framing;
mod helper;
mod helper_arguments;
mod helper_files;
mod hidden_files;
mod init;
mod job;
mod kill_on_exit;
mod landlock_only;
mod landlock_rules;
mod launch;
mod messages;
mod mount_client;
mod mount_helper;
mod mount_order;
mod outer_helper;
mod overlay;
mod policy;
mod probe;
mod ready_helper;
mod resource_bounds;
mod root;
pub(crate) mod root_plan;
mod root_steps;
mod seccomp_filter;
mod sys;
mod terminal;
mod watched_processes;
mod watcher;

use std::io;
use std::os::fd::BorrowedFd;
use std::time::Instant;

use journeyman_protocol::{Enforcement, SandboxTier};
use tokio_util::sync::CancellationToken;

pub(crate) use bubblewrap::BubblewrapBackend;
pub(crate) use helper::run_helper_if_asked;
pub(crate) use helper_arguments::is_inside_sandbox;
pub use kill_on_exit::KillOnExit;
pub(crate) use landlock_only::LandlockOnly;
pub(crate) use mount_client::mount_overlay;

use crate::backend::{Backend, BackendFuture};
use crate::request::Request;
use crate::running_command::RunningCommand;
use crate::{SandboxError, SandboxSettings};
use cache_mounts::CacheMounts;
use job::{HostCache, prepare_job};
use launch::{LaunchedJob, launch_job, launch_unattended};
use ready_helper::ReadyHelper;

/// The back-end, with what it keeps between commands.
#[derive(Debug)]
pub(crate) struct NamespacesBackend {
    settings: SandboxSettings,
    known: HostCache,
    caches: CacheMounts,
    ready: ReadyHelper,
}

impl NamespacesBackend {
    pub(crate) fn new(settings: SandboxSettings) -> Self {
        Self {
            settings,
            known: HostCache::default(),
            caches: CacheMounts::default(),
            ready: ReadyHelper::default(),
        }
    }

    async fn start(
        &self,
        request: Request,
        enforcement: Enforcement,
        cancel: CancellationToken,
    ) -> Result<RunningCommand, SandboxError> {
        let begun = Instant::now();
        let joined = self.caches.find_mount(&self.settings, &request).await?;
        let mut job = prepare_job(&self.settings, request, joined, None, &self.known)?;
        let argument = job.watched_process.helper_argument();
        job.waiting = self.ready.take(argument);
        let LaunchedJob { watcher, live, stop } = launch_job(&self.settings, job, &cancel, begun)?;
        let next = self.ready.prepare_next(&self.settings, argument);
        let completed = async move {
            let seen = watcher.run().await;
            next.start();
            seen.map(|seen| seen.into_completed(enforcement))
        };
        Ok(RunningCommand::spawn_watcher(live, stop, completed))
    }
}

impl Backend for NamespacesBackend {
    fn tier(&self) -> SandboxTier {
        SandboxTier::Namespaces
    }

    fn probe(&self) -> BackendFuture<'_, Result<Enforcement, SandboxError>> {
        let probed = probe::ProbedBackend {
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
    ) -> BackendFuture<'_, Result<RunningCommand, SandboxError>> {
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
