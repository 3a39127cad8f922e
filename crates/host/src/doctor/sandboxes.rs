//! The sandboxes that work here.

use journeyman_protocol::{Enforcement, SandboxTier};
use journeyman_sandbox::{Sandbox, SandboxError};
use serde_json::{Value, json};

use crate::HostError;
use crate::config::Config;
use crate::sandboxes::{self, SANDBOX_TIERS, protections, unenforced};
use crate::state::StateDirs;

/// Reports the sandbox that commands run in (`tier` and so on, or `error`), and what every sandbox
/// would enforce (`tiers`).
///
/// # Errors
/// [`HostError::Usage`] where the configuration names an unknown sandbox.
pub async fn survey_sandboxes(dirs: &StateDirs, config: &Config) -> Result<Value, HostError> {
    let allowed = sandboxes::allowed_tiers(config)?;
    let used = dirs.sandbox(config)?.enforcement(&sandboxes::required_needs(config)?).await;
    let settings = dirs.sandbox_settings(config, SANDBOX_TIERS.to_vec(), true)?;
    let root = rustix::process::geteuid().is_root();
    let mut rows = Vec::new();
    for (tier, seen) in Sandbox::new(settings).survey().await {
        let is_used = used.as_ref().is_ok_and(|used| used.tier == tier);
        let needs_leave = root && tier != SandboxTier::Namespaces && !config.sandbox_allow_root;
        rows.push(row(tier, seen, is_used, allowed.contains(&tier), needs_leave));
    }
    let mut report = match &used {
        Ok(enforcement) => serde_json::to_value(enforcement).unwrap_or_default(),
        Err(error) => json!({ "error": error.to_string() }),
    };
    if let Value::Object(report) = &mut report {
        report.insert("root".to_owned(), json!(root));
        report.insert("tiers".to_owned(), json!(rows));
    }
    Ok(report)
}

fn row(
    tier: SandboxTier,
    seen: Result<Enforcement, SandboxError>,
    used: bool,
    allowed: bool,
    needs_leave: bool,
) -> Value {
    let mut row =
        json!({ "tier": tier.to_string(), "used": used, "allowed": allowed, "works": seen.is_ok() });
    let mut add = |key: &str, value: Value| {
        if let Value::Object(row) = &mut row {
            row.insert(key.to_owned(), value);
        }
    };
    let mut needs = Vec::new();
    if !allowed {
        needs.push(format!("sandbox.allow = [\"{tier}\"] in your configuration"));
    }
    if needs_leave {
        needs.push("--allow-root, or sandbox.allow_root = true in your configuration".to_owned());
    }
    if !needs.is_empty() {
        add("needs", json!(needs.join("; ")));
    }
    match seen {
        Ok(enforcement) => {
            let held = protections(&enforcement).into_iter().filter(|(_, _, holds)| *holds);
            add("enforced", json!(held.map(|(_, what, _)| what).collect::<Vec<_>>()));
            add("not_enforced", json!(unenforced(&enforcement)));
            add("layers", json!(enforcement.layers));
            add("gaps", json!(enforcement.gaps));
        }
        Err(SandboxError::Unavailable { reason, fix }) => {
            add("reason", json!(reason));
            add("fix", json!(fix));
        }
        Err(error) => add("reason", json!(error.to_string())),
    }
    row
}
