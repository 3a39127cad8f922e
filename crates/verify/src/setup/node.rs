//! Packages of JavaScript projects.

use super::step::{SetupStep, step};
use crate::find::node::manifest::{Manager, Manifest, is_installed};
use crate::find::project::ProjectDirectory;

/// Files that say which packages are installed.
const FILES: [&str; 7] = [
    "package.json",
    "package-lock.json",
    "npm-shrinkwrap.json",
    "pnpm-lock.yaml",
    "yarn.lock",
    "bun.lock",
    "bun.lockb",
];

/// Returns the step that installs the packages, in the directory of the lock file. Only the
/// project's own package manager can install what its lock file says.
pub(super) fn find(place: &ProjectDirectory<'_>) -> Option<SetupStep> {
    let manifest = Manifest::read(&place.read("package.json")?);
    if manifest.dependencies.is_empty() || is_installed(place) {
        return None;
    }
    let (manager, locked) = manifest.manager(place);
    if !place.has_program(manager.name()) {
        return None;
    }
    let command = match (manager, locked) {
        (Manager::Npm, true) => "npm ci --no-audit --no-fund",
        (Manager::Npm, false) => "npm install --no-audit --no-fund",
        (Manager::Pnpm, true) => "pnpm install --frozen-lockfile",
        (Manager::Yarn, true) => "yarn install --frozen-lockfile",
        (Manager::Bun, true) => "bun install --frozen-lockfile",
        (other, false) => other.install(false),
    };
    let root = place.root();
    let own = FILES.iter().skip(1).any(|name| place.has_file(name));
    let place = if locked && !own { &root } else { place };
    let step = step(place, manager.name(), command, "the packages of package.json are not installed", &FILES);
    Some(SetupStep { network: &["npm"], ..step })
}
