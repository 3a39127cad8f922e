//! Which sandboxes work here, which one is used, and what helps where one doesn't.

use journeyman_host::config::Config;
use journeyman_protocol::{Enforcement, SandboxTier};
use journeyman_sandbox::{Sandbox, SandboxError};
use serde_json::{Value, json};

use crate::color;
use crate::stdout::say;
use journeyman_host::HostError;
use journeyman_host::sandboxes::{self, SANDBOX_TIERS, protections, unenforced};
use journeyman_host::state::StateDirs;

/// What is enforced for commands (`tier`, …, or `error`), and every sandbox with what it would enforce (`tiers`).
pub(super) async fn report(dirs: &StateDirs, config: &Config) -> Result<Value, HostError> {
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

/// The same for people.
pub(super) fn print(report: &Value) {
    let paint = color::stdout();
    let mark = |good: bool| if good { paint.green("✓") } else { paint.yellow("–") };
    let text =
        |value: &Value, key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let yes = |value: &Value, key: &str| value.get(key).and_then(Value::as_bool).unwrap_or_default();
    let list = |value: &Value, key: &str| -> Vec<String> {
        let all = value.get(key).and_then(Value::as_array).into_iter().flatten();
        all.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    match report.get("error").and_then(Value::as_str) {
        Some(error) => say!("{} {error}", paint.red("✗ commands are refused:")),
        None => {
            let mut layers = list(report, "layers");
            layers.retain(|layer| *layer != text(report, "tier"));
            let layers = if layers.is_empty() { String::new() } else { format!(" ({})", layers.join(", ")) };
            let tier = report.get("tiers").and_then(Value::as_array).into_iter().flatten();
            let tier = tier.clone().find(|tier| yes(tier, "used")).map(|tier| text(tier, "tier"));
            say!("  tier: {}{layers}", tier.unwrap_or_else(|| text(report, "tier")));
            if let Ok(enforcement) = serde_json::from_value::<Enforcement>(report.clone()) {
                for (_, meaning, holds) in protections(&enforcement) {
                    say!("  {} {meaning}", mark(holds));
                }
            }
            for gap in list(report, "gaps") {
                say!("  {} {gap}", paint.yellow("note:"));
            }
        }
    }
    say!("  {}", paint.dim("every back-end, strongest first:"));
    for tier in report.get("tiers").and_then(Value::as_array).into_iter().flatten() {
        let state = match (yes(tier, "works"), yes(tier, "used"), tier.get("needs")) {
            (false, ..) if text(tier, "tier") == "container" && !yes(tier, "allowed") => {
                "not configured".to_owned()
            }
            (false, ..) => format!("doesn't work: {}", text(tier, "reason")),
            (true, true, _) => "is used".to_owned(),
            (true, false, Some(_)) => format!("works; needs {}", text(tier, "needs")),
            (true, false, None) => "works; a stronger one, or one you prefer, is used".to_owned(),
        };
        say!("  {} {:<11} {state}", mark(yes(tier, "works")), text(tier, "tier"));
        let fix = text(tier, "fix");
        if !fix.is_empty() {
            say!("      {} {fix}", paint.dim("fix:"));
        }
        if yes(tier, "works") && !yes(tier, "used") {
            let missing = list(tier, "not_enforced");
            if !missing.is_empty() {
                say!("      {} {}", paint.dim("not enforced:"), missing.join(", "));
            }
        }
    }
}
