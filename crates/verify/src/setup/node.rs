//! Packages of JavaScript projects.

use super::step::{SetupStep, new_step};
use crate::check_discovery::node::package_json::{PackageJson, PackageManager, has_installed_packages};
use crate::check_discovery::project::ProjectDirectory;

/// Files that say which packages are installed.
const INSTALL_KEY_FILES: [&str; 7] = [
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
pub(super) fn find_step(place: &ProjectDirectory<'_>) -> Option<SetupStep> {
    let manifest = PackageJson::parse(&place.read("package.json")?);
    if manifest.dependencies.is_empty() || has_installed_packages(place) {
        return None;
    }
    let (manager, locked) = manifest.package_manager(place);
    if !place.has_program(manager.name()) {
        return None;
    }
    let command = match (manager, locked) {
        (PackageManager::Npm, true) => "npm ci --no-audit --no-fund",
        (PackageManager::Npm, false) => "npm install --no-audit --no-fund",
        (PackageManager::Pnpm, true) => "pnpm install --frozen-lockfile",
        (PackageManager::Yarn, true) => "yarn install --frozen-lockfile",
        (PackageManager::Bun, true) => "bun install --frozen-lockfile",
        (other, false) => other.install_command(false),
    };
    let root = place.root_directory();
    let own = INSTALL_KEY_FILES.iter().skip(1).any(|name| place.has_file(name));
    let place = if locked && !own { &root } else { place };
    let step = new_step(
        place,
        manager.name(),
        command,
        "the packages of package.json are not installed",
        &INSTALL_KEY_FILES,
    );
    Some(SetupStep { network: &["npm"], ..step })
}
