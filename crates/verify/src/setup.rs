//! What checks need and lack: dependencies that aren't installed, a virtual environment, programs.
//!
//! [`find_setup`] only reads files. It gives one plan, whose steps fetch from named registries, and
//! a list of what nobody but the user can install. Nothing is run here.

mod node;
mod others;
mod python;

use std::collections::BTreeMap;
use std::time::Duration;

use journeyman_protocol::{CheckKind, ContentHash, RelPath};
use journeyman_workspace::{Listing, Workspace};

use crate::Check;
use crate::find::project::ProjectDirectory;
use crate::find::{OnDisk, checked_directories, in_directory};

/// Maximum duration of one step: a large project's dependencies over a slow line.
const STEP_LIMIT: Duration = Duration::from_secs(1800);

/// One command that fetches what checks of a directory need.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetupStep {
    /// The ecosystem of the checks that need it.
    pub ecosystem: &'static str,
    /// The command, for `sh -c`.
    pub command: String,
    /// The directory in which it runs, relative to the root; `None` is the root.
    pub directory: Option<RelPath>,
    /// What is missing, in words.
    pub why: String,
    /// The registries, by policy's names, and the hosts that it fetches from.
    pub network: &'static [&'static str],
    /// True if it is known that checks can't run without it; false if nothing tells what is
    /// installed.
    pub is_needed: bool,
    /// True if it fills the toolchain's own cache outside of the project.
    pub fills_caches: bool,
    /// The hash of the files that say what is fetched: with the same ones, it need not run again.
    pub key: ContentHash,
}

impl SetupStep {
    /// The step as a command that runs as checks do.
    #[must_use]
    pub fn to_check(&self) -> Check {
        let check = Check::new(CheckKind::Build, self.ecosystem, &self.command, &self.why);
        Check {
            network: self.network,
            fills_caches: self.fills_caches,
            timeout: STEP_LIMIT,
            ..check.within(self.directory.as_ref())
        }
    }

    /// The name under which it is remembered that the step ran.
    #[must_use]
    pub fn name(&self) -> String {
        match &self.directory {
            Some(directory) => format!("{} in {directory}", self.ecosystem),
            None => self.ecosystem.to_owned(),
        }
    }
}

/// What keeps checks from running that no step installs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lack {
    /// What is missing, and how to install it.
    pub reason: String,
    /// The commands of the checks that need it.
    pub checks: Vec<String>,
}

/// What checks need and lack.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SetupPlan {
    /// Commands that fetch, in their order.
    pub steps: Vec<SetupStep>,
    /// What only the user can install.
    pub lacks: Vec<Lack>,
}

impl SetupPlan {
    /// All registries and hosts of the steps, each once.
    #[must_use]
    pub fn network(&self) -> Vec<&'static str> {
        let mut all: Vec<&'static str> = self.steps.iter().flat_map(|step| step.network).copied().collect();
        all.sort_unstable();
        all.dedup();
        all
    }
}

/// Finds what the checks for `changed` files, or of the whole project, need and lack.
#[must_use]
pub fn find_setup(
    workspace: &Workspace,
    listing: &Listing,
    changed: &[RelPath],
    tools: &dyn Fn(&str) -> bool,
) -> SetupPlan {
    plan(&OnDisk { workspace, listing, changed, tools })
}

/// The plan for any project.
fn plan(project: &dyn crate::find::project::Project) -> SetupPlan {
    let mut plan = SetupPlan::default();
    let mut lacks: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for directory in checked_directories(project) {
        let place = ProjectDirectory { project, directory: directory.as_ref() };
        let checks = in_directory(&place);
        let found: Vec<SetupStep> = [node::find(&place), python::find(&place, &checks)]
            .into_iter()
            .flatten()
            .chain(others::find(&place))
            .collect();
        for check in checks.iter().filter(|check| check.unasked.is_none()) {
            let solved = found.iter().any(|step| step.ecosystem == check.ecosystem);
            if let Some(reason) = check.blocked.as_ref().filter(|_| !solved) {
                lacks.entry(reason.clone()).or_default().push(check.command.clone());
            }
        }
        for step in found {
            // Members of a workspace share the step of its root.
            if !plan
                .steps
                .iter()
                .any(|known| known.command == step.command && known.directory == step.directory)
            {
                plan.steps.push(step);
            }
        }
    }
    plan.lacks = lacks.into_iter().map(|(reason, checks)| Lack { reason, checks }).collect();
    plan
}

/// A step in `place`, whose key is made of the command and of these files.
fn step(
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

#[cfg(test)]
mod tests;
