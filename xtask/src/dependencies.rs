//! The allowed dependencies between the crates.

use std::path::Path;

use anyhow::Context as _;
use cargo_metadata::{DependencyKind, Metadata, MetadataCommand};

/// Direct dependencies between our crates. Fewer is fine; an arrow that isn't here is an
/// architectural change.
const MAY_USE: &[(&str, &[&str])] = &[
    ("root-fs", &[]),
    ("ignore-rules", &["root-fs"]),
    ("testkit", &[]),
    ("text-diff", &[]),
    ("protocol", &[]),
    ("syntax", &[]),
    ("terminal", &["protocol"]),
    ("edit", &["text-diff", "protocol", "syntax"]),
    ("policy", &["protocol", "syntax"]),
    ("store", &["protocol"]),
    ("sandbox", &["root-fs", "protocol"]),
    ("model", &["protocol"]),
    ("git", &["root-fs", "protocol", "sandbox"]),
    ("workspace", &["root-fs", "ignore-rules", "text-diff", "protocol", "store", "sandbox", "git"]),
    ("index", &["root-fs", "ignore-rules", "protocol", "syntax", "policy", "git"]),
    ("context", &["protocol", "syntax", "index", "workspace"]),
    ("verify", &["text-diff", "protocol", "policy", "sandbox", "workspace", "syntax", "index"]),
    ("tools", &["root-fs", "protocol", "edit", "policy", "sandbox", "git", "index", "workspace"]),
    ("delegate", &["root-fs", "protocol", "policy", "sandbox", "model", "workspace", "tools"]),
    (
        "agent",
        &[
            "protocol",
            "syntax",
            "edit",
            "policy",
            "store",
            "sandbox",
            "git",
            "index",
            "model",
            "workspace",
            "context",
            "verify",
            "tools",
            "delegate",
        ],
    ),
    (
        "host",
        &[
            "root-fs",
            "protocol",
            "syntax",
            "edit",
            "policy",
            "store",
            "sandbox",
            "git",
            "index",
            "model",
            "workspace",
            "context",
            "verify",
            "tools",
            "delegate",
            "agent",
            "terminal",
        ],
    ),
    ("tui", &["protocol", "syntax", "agent", "host", "terminal"]),
    (
        "cli",
        &[
            "protocol",
            "syntax",
            "edit",
            "policy",
            "store",
            "sandbox",
            "git",
            "index",
            "model",
            "workspace",
            "context",
            "verify",
            "tools",
            "delegate",
            "agent",
            "host",
            "terminal",
            "tui",
        ],
    ),
];

/// The package that has another name than its folder.
const BINARY: &str = "journeyman";
const PREFIX: &str = "journeyman-";

/// Reads `cargo metadata` of the tree.
pub(crate) fn metadata(root: &Path) -> anyhow::Result<Metadata> {
    MetadataCommand::new()
        .manifest_path(root.join("Cargo.toml"))
        .other_options(vec!["--locked".to_owned()])
        .exec()
        .context("cargo metadata")
}

/// Each arrow that the table doesn't have, and each crate that it doesn't know.
pub(crate) fn broken_rules(root: &Path) -> anyhow::Result<Vec<String>> {
    let metadata = metadata(root)?;
    let mut broken = Vec::new();
    for package in metadata.workspace_packages() {
        let Some(crate_name) = crate_name(package.name.as_str()) else { continue };
        let Some((_, allowed)) = MAY_USE.iter().find(|(name, _)| *name == crate_name) else {
            broken.push(format!(
                "crate {crate_name} is not in the table of who may use whom (xtask/src/dependencies.rs)"
            ));
            continue;
        };
        for dependency in package.dependencies.iter().filter(|one| one.kind != DependencyKind::Development) {
            if let Some(used) = self::crate_name(&dependency.name)
                && !allowed.contains(&used)
            {
                broken.push(format!(
                    "crate {crate_name} may not use {used}: arrows point down (ARCHITECTURE.md)"
                ));
            }
        }
    }
    Ok(broken)
}

/// The crate that a package is, or `None` for one that isn't ours.
fn crate_name(package: &str) -> Option<&str> {
    if package == BINARY { Some("cli") } else { package.strip_prefix(PREFIX) }
}
