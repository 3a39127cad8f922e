//! Unmet requirements of checks: uninstalled dependencies, a virtual environment, programs.
//!
//! [`find_setup`] only reads files. It returns one plan, whose steps fetch from named registries,
//! and a list of what only the user can install. Nothing is run here.

mod node;
mod other_ecosystems;
mod python;
mod step;

use std::collections::BTreeMap;

use journeyman_protocol::RelPath;
use journeyman_workspace::{Listing, Workspace};

use crate::check_discovery::project::ProjectDirectory;
use crate::check_discovery::{DiskProject, ProgramLookup, checked_directories, find_in_directory};
use crate::submodules::missing_submodules_reason;

pub use step::SetupStep;

/// Ecosystems that build the sources of other projects, which submodules hold.
const SOURCE_BUILDS: [&str; 4] = ["cmake", "make", "meson", "autotools"];

/// A program, a package or sources that checks need and no setup step installs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingRequirement {
    /// The missing program or sources, and how to get them.
    pub reason: String,
    /// The commands of the checks that need the program.
    pub checks: Vec<String>,
}

/// The unmet requirements of checks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SetupPlan {
    /// Commands that fetch packages, in their order.
    pub steps: Vec<SetupStep>,
    /// Programs that only the user can install.
    pub lacks: Vec<MissingRequirement>,
}

impl SetupPlan {
    /// Returns all registries and hosts of the steps, each once.
    #[must_use]
    pub fn network(&self) -> Vec<&'static str> {
        let mut all: Vec<&'static str> = self.steps.iter().flat_map(|step| step.network).copied().collect();
        all.sort_unstable();
        all.dedup();
        all
    }
}

/// Finds the unmet requirements of the checks for `changed` files, or for the whole project.
#[must_use]
pub fn find_setup(
    workspace: &Workspace,
    listing: &Listing,
    changed: &[RelPath],
    find_program: &ProgramLookup,
) -> SetupPlan {
    plan_setup(&DiskProject { workspace, listing, changed, find_program })
}

/// Returns the plan for a project.
fn plan_setup(project: &dyn crate::check_discovery::project::Project) -> SetupPlan {
    let mut plan = SetupPlan::default();
    let mut lacks: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let submodules = missing_submodules_reason(project);
    for directory in checked_directories(project) {
        let place = ProjectDirectory { project, directory: directory.as_ref() };
        let checks = find_in_directory(&place);
        let found: Vec<SetupStep> = [node::find_step(&place), python::find_step(&place, &checks)]
            .into_iter()
            .flatten()
            .chain(other_ecosystems::find_steps(&place))
            .collect();
        for check in checks.iter().filter(|check| check.unasked.is_none()) {
            let solved = found.iter().any(|step| step.ecosystem == check.ecosystem);
            let needs_sources = SOURCE_BUILDS.contains(&check.ecosystem);
            let missing = check.blocked.as_ref().filter(|_| !solved);
            for reason in missing.into_iter().chain(submodules.as_ref().filter(|_| needs_sources)) {
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
    plan.lacks = lacks.into_iter().map(|(reason, checks)| MissingRequirement { reason, checks }).collect();
    plan
}

#[cfg(test)]
mod tests;
