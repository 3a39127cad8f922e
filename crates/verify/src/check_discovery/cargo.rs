//! Rust projects.

use journeyman_protocol::{CheckKind, RelPath};

use super::project::{MANIFESTS, Project, ProjectDirectory};
use crate::Check;

/// The name in evidence.
const ECOSYSTEM: &str = "cargo";

/// Finds the checks. `cargo test` compiles everything that `cargo check` would, so there is no
/// check of the types. Clippy runs first where the project configures it.
pub(super) fn find_checks(place: &ProjectDirectory<'_>) -> Vec<Check> {
    let Some(manifest) = place.read("Cargo.toml") else { return Vec::new() };
    let manifest: toml::Table = match manifest.parse() {
        Ok(manifest) => manifest,
        // Cargo's own message about a manifest that doesn't parse is the best one.
        Err(_) => toml::Table::new(),
    };
    let workspace = if manifest.contains_key("workspace") { " --workspace" } else { "" };
    let mut checks = Vec::new();
    if has_lint_configuration(place, &manifest) {
        let lint = place.new_check(
            CheckKind::Lint,
            ECOSYSTEM,
            format!("cargo clippy{workspace} --all-targets"),
            "the project configures clippy",
        );
        // Clippy refuses to change uncommitted files without this option.
        let lint = lint
            .with_fix(format!("cargo clippy{workspace} --all-targets --fix --allow-dirty --allow-staged"));
        checks.push(if place.has_program("cargo-clippy") {
            lint
        } else {
            lint.with_blocked("cargo-clippy is not installed; `rustup component add clippy` installs it")
        });
    }
    checks.push(place.new_check(
        CheckKind::Test,
        ECOSYSTEM,
        format!("cargo test{workspace}"),
        "Cargo.toml; builds everything and runs the tests",
    ));
    if !place.has_program("cargo") {
        let reason = "cargo is not installed; https://rustup.rs installs it";
        checks = checks.into_iter().map(|check| check.with_blocked(reason)).collect();
    }
    checks
}

fn has_lint_configuration(place: &ProjectDirectory<'_>, manifest: &toml::Table) -> bool {
    let lints = |table: Option<&toml::Value>| {
        table.and_then(|table| table.get("lints")).is_some_and(|lints| lints.get("clippy").is_some())
    };
    place.has_any(&["clippy.toml", ".clippy.toml"])
        || manifest.get("lints").is_some_and(|lints| lints.get("clippy").is_some())
        || lints(manifest.get("workspace"))
}

/// Returns true if `directory` is checked with a Cargo workspace above it.
pub(super) fn is_workspace_member(project: &dyn Project, directory: &RelPath) -> bool {
    let Ok(own) = directory.join("Cargo.toml") else { return false };
    let others = MANIFESTS.iter().filter(|name| **name != "Cargo.toml");
    let mut others = others.filter_map(|name| directory.join(name).ok());
    if !project.has_file(&own) || others.any(|path| project.has_file(&path)) {
        return false;
    }
    let mut above = directory.parent();
    loop {
        let manifest = match &above {
            Some(above) => above.join("Cargo.toml").ok(),
            None => RelPath::parse("Cargo.toml").ok(),
        };
        let table = manifest.and_then(|path| project.read(&path)?.parse::<toml::Table>().ok());
        if let Some(workspace) = table.as_ref().and_then(|table| table.get("workspace")) {
            return !is_excluded(workspace, above.as_ref(), directory);
        }
        match above {
            Some(one) => above = one.parent(),
            None => return false,
        }
    }
}

/// Returns true if the workspace at `root` names `directory`, or one above it, in its `exclude`.
fn is_excluded(workspace: &toml::Value, root: Option<&RelPath>, directory: &RelPath) -> bool {
    let excluded = workspace.get("exclude").and_then(toml::Value::as_array);
    excluded.into_iter().flatten().filter_map(toml::Value::as_str).any(|name| {
        let path = match root {
            Some(root) => root.join(name),
            None => RelPath::parse(name),
        };
        path.is_ok_and(|path| {
            let rest = directory.as_bytes().strip_prefix(path.as_bytes());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
        })
    })
}
