//! Packages of Rust, Go, Ruby, PHP and Elixir projects.

use super::step::{SetupStep, new_step};
use crate::check_discovery::php::has_package_requirements;
use crate::check_discovery::project::ProjectDirectory;

/// Returns the steps of this directory.
pub(super) fn find_steps(place: &ProjectDirectory<'_>) -> Vec<SetupStep> {
    [cargo_step(place), go_step(place), ruby_step(place), php_step(place), elixir_step(place)]
        .into_iter()
        .flatten()
        .collect()
}

/// Returns the step that fetches crates. Nothing in the project shows which crates the host has.
fn cargo_step(place: &ProjectDirectory<'_>) -> Option<SetupStep> {
    let lock = place.read("Cargo.lock")?;
    let fetched = lock.lines().any(|line| line.starts_with("source = \"registry+"));
    if !fetched || !place.has_program("cargo") || place.has_directory("vendor") {
        return None;
    }
    let why = "crates of Cargo.lock may not be downloaded";
    let step = new_step(place, "cargo", "cargo fetch --locked", why, &["Cargo.lock"]);
    Some(SetupStep { network: &["crates"], is_needed: false, fills_caches: true, ..step })
}

/// Returns the step that fetches Go modules. `go.sum` has a line for each fetched module.
fn go_step(place: &ProjectDirectory<'_>) -> Option<SetupStep> {
    let sums = place.read("go.sum")?;
    if sums.trim().is_empty() || !place.has_program("go") || place.has_directory("vendor") {
        return None;
    }
    let why = "modules of go.sum may not be downloaded";
    let step = new_step(place, "go", "go mod download", why, &["go.mod", "go.sum"]);
    Some(SetupStep { network: &["go"], is_needed: false, fills_caches: true, ..step })
}

/// Returns the step that installs gems into the project itself.
fn ruby_step(place: &ProjectDirectory<'_>) -> Option<SetupStep> {
    let lock = place.read("Gemfile.lock").or_else(|| place.read("Gemfile"))?;
    let fetched = lock.contains("rubygems.org")
        && lock.lines().any(|line| line.starts_with("    ") || line.trim_start().starts_with("gem "));
    if !fetched || !place.has_program("bundle") || place.has_directory("vendor/bundle") {
        return None;
    }
    let command = "bundle config set --local path vendor/bundle && bundle install";
    let why = "gems of the Gemfile may not be installed";
    let step = new_step(place, "ruby", command, why, &["Gemfile", "Gemfile.lock"]);
    Some(SetupStep { network: &["rubygems"], is_needed: false, ..step })
}

/// Returns the step that installs Composer's packages: the registry has their index, GitHub their
/// archives.
fn php_step(place: &ProjectDirectory<'_>) -> Option<SetupStep> {
    let manifest = serde_json::from_str(&place.read("composer.json")?).ok()?;
    if !has_package_requirements(&manifest)
        || place.has_file("vendor/autoload.php")
        || !place.has_program("composer")
    {
        return None;
    }
    let command = "composer install --no-interaction --no-progress";
    let why = "the packages of composer.json are not installed";
    let step = new_step(place, "php", command, why, &["composer.json", "composer.lock"]);
    Some(SetupStep { network: &["packagist", "api.github.com", "codeload.github.com"], ..step })
}

fn elixir_step(place: &ProjectDirectory<'_>) -> Option<SetupStep> {
    if !place.has_file("mix.lock") || place.has_directory("deps") || !place.has_program("mix") {
        return None;
    }
    let why = "the packages of mix.lock are not installed";
    let step = new_step(place, "elixir", "mix deps.get", why, &["mix.exs", "mix.lock"]);
    Some(SetupStep { network: &["hex"], ..step })
}
