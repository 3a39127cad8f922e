//! Elixir projects, built by Mix.

use journeyman_protocol::CheckKind;

use super::project::ProjectDirectory;
use crate::Check;

/// The name in evidence.
const ECOSYSTEM: &str = "elixir";

/// Finds the checks of the format and of Credo where configured, and the tests.
pub(super) fn find_checks(place: &ProjectDirectory<'_>) -> Vec<Check> {
    let Some(manifest) = place.read("mix.exs") else { return Vec::new() };
    let mut checks = Vec::new();
    if place.has_file(".formatter.exs") {
        let why = "the project configures its format";
        let check = place.new_check(CheckKind::Lint, ECOSYSTEM, "mix format --check-formatted", why);
        checks.push(check.with_fix("mix format"));
    }
    if place.has_file(".credo.exs") {
        let why = "the project configures Credo";
        checks.push(place.new_check(CheckKind::Lint, ECOSYSTEM, "mix credo --format oneline", why));
    }
    checks.push(place.new_check(CheckKind::Test, ECOSYSTEM, "mix test --no-color", "mix.exs"));
    // A dependency is a tuple of a list that `deps` gives.
    let needs = manifest.contains("{:") && place.has_file("mix.lock");
    if needs && !place.has_directory("deps") {
        let reason = "its dependencies are not installed; `mix deps.get` installs them";
        checks = checks.into_iter().map(|check| check.with_blocked(reason)).collect();
    }
    checks
        .into_iter()
        .map(|check| place.block_without_program("mix", "https://elixir-lang.org", check))
        .collect()
}
