//! A command that fetches packages.

use std::time::Duration;

use journeyman_protocol::{CheckKind, ContentHash, RelPath};

use crate::Check;
use crate::check_discovery::project::ProjectDirectory;

/// Maximum duration of one step: a large project's dependencies over a slow line.
const STEP_TIMEOUT: Duration = Duration::from_secs(1800);

/// A command that fetches what checks of a directory need.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetupStep {
    /// The ecosystem of the checks that need the step.
    pub ecosystem: &'static str,
    /// The command, for `sh -c`.
    pub command: String,
    /// The directory in which the command runs, relative to the root; `None` is the root.
    pub directory: Option<RelPath>,
    /// The missing packages, in words.
    pub why: String,
    /// The registries, by policy's names, and the hosts that the command fetches from.
    pub network: &'static [&'static str],
    /// True if checks are known to fail without the step; false if it is unknown what is installed.
    pub is_needed: bool,
    /// True if the step fills the toolchain's own cache outside of the project.
    pub fills_caches: bool,
    /// The hash of the files that decide what is fetched: while it stays the same, the step need
    /// not run again.
    pub key: ContentHash,
}

impl SetupStep {
    /// Returns the step as a check, so that the step runs as checks do.
    #[must_use]
    pub fn to_check(&self) -> Check {
        let check = Check::new(CheckKind::Build, self.ecosystem, &self.command, &self.why);
        Check {
            network: self.network,
            fills_caches: self.fills_caches,
            timeout: STEP_TIMEOUT,
            ..check.with_directory(self.directory.as_ref())
        }
    }

    /// Returns the name under which the run of the step is recorded.
    #[must_use]
    pub fn name(&self) -> String {
        match &self.directory {
            Some(directory) => format!("{} in {directory}", self.ecosystem),
            None => self.ecosystem.to_owned(),
        }
    }
}

/// Creates a step in `place`, whose key is made of the command and of these files.
pub(super) fn new_step(
    place: &ProjectDirectory<'_>,
    ecosystem: &'static str,
    command: impl Into<String>,
    why: impl Into<String>,
    files: &[&str],
) -> SetupStep {
    let command = command.into();
    let mut hashed = command.clone().into_bytes();
    for text in files.iter().filter_map(|name| place.read(name)) {
        hashed.push(0);
        hashed.extend_from_slice(text.as_bytes());
    }
    SetupStep {
        ecosystem,
        command,
        directory: place.directory.cloned(),
        why: why.into(),
        network: &[],
        is_needed: true,
        fills_caches: false,
        key: ContentHash::of(&hashed),
    }
}
