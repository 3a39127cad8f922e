//! Runners of other checks, which create environments of their own: pre-commit, nox, tox.

use journeyman_protocol::CheckKind;

use super::project::ProjectDirectory;
use crate::Check;

/// Finds the check that runs `pre-commit`. Hooks of other repositories are downloaded first.
pub(super) fn find_pre_commit_check(place: &ProjectDirectory<'_>) -> Option<Check> {
    let names = [".pre-commit-config.yaml", ".pre-commit-config.yml"];
    let text = names.iter().find_map(|name| place.read(name))?;
    let repositories =
        text.lines().filter_map(|line| line.trim().trim_start_matches("- ").strip_prefix("repo:"));
    let fetched = repositories.map(str::trim).any(|repository| !["local", "meta"].contains(&repository));
    let command = "pre-commit run --all-files";
    let check = place.new_check(CheckKind::Lint, "pre-commit", command, "the project configures pre-commit");
    let check = match fetched {
        true => check.with_unasked("its hooks are downloaded from other repositories; checks run offline"),
        false => check,
    };
    Some(place.block_without_program("pre-commit", "`python3 -m pip install pre-commit`", check))
}

/// Finds the checks of tox and nox, which test in environments that they create. If the tests can
/// run in the project's own environment, these checks only repeat them.
pub(super) fn find_tox_and_nox_checks(
    place: &ProjectDirectory<'_>,
    pyproject: &toml::Table,
    tox: &str,
) -> Vec<Check> {
    let mut checks = Vec::new();
    let in_pyproject = pyproject.get("tool").is_some_and(|tool| tool.get("tox").is_some());
    let has_tox =
        tox.lines().any(|line| line.starts_with("[testenv") || line.trim() == "[tox]") || in_pyproject;
    let reason = "it makes environments and downloads packages for them; checks run offline";
    for (there, program, why) in
        [(has_tox, "tox", "the project configures tox"), (place.has_file("noxfile.py"), "nox", "noxfile.py")]
    {
        if there {
            let check = place.new_check(CheckKind::Test, program, program, why).with_unasked(reason);
            let source = format!("`python3 -m pip install {program}`");
            checks.push(place.block_without_program(program, &source, check));
        }
    }
    checks
}
