//! The report of `jm doctor`, for people.

use journeyman_host::doctor::one_line;
use journeyman_host::sandboxes::protections;
use journeyman_protocol::Enforcement;
use serde_json::Value;

use crate::color;
use crate::stdout::say;

pub(super) fn print(report: &Value) {
    let paint = color::stdout();
    let text =
        |value: &Value, key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let yes = |value: &Value, key: &str| value.get(key).and_then(Value::as_bool).unwrap_or_default();
    let list = |key: &str| report.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
    let mark = |good: bool| if good { paint.green("✓") } else { paint.yellow("–") };

    say!("{} {}", paint.bold("jm"), text(report, "version"));
    let state = report.get("state").cloned().unwrap_or_default();
    match state.get("problem").and_then(Value::as_str) {
        Some(problem) => say!("{} sessions: {} {problem}", paint.red("✗"), text(&state, "directory")),
        None => say!("{} sessions are kept in {}", mark(true), text(&state, "directory")),
    }
    print_stored(report.get("stored").unwrap_or(&Value::Null));

    say!("\n{}", paint.bold("sandbox"));
    print_sandbox(report.get("sandbox").unwrap_or(&Value::Null));

    say!("\n{}", paint.bold("copies (jm run --isolate)"));
    print_copies(report.get("copies").unwrap_or(&Value::Null));

    say!("\n{}", paint.bold("programs"));
    for program in list("programs") {
        let installed = yes(&program, "installed");
        let name = text(&program, "name");
        say!("  {} {name:<9} {}", mark(installed), paint.dim(&text(&program, "for")));
    }

    say!("\n{}", paint.bold("keys (names only)"));
    for key in list("keys") {
        let names = |field: &str| {
            let names = key.get(field).and_then(Value::as_array).cloned().unwrap_or_default();
            names.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or ")
        };
        let (set, provider) = (names("set"), text(&key, "provider"));
        if yes(&key, "local") {
            say!("  {} {provider:<11} needs none", mark(true));
        } else if set.is_empty() {
            say!("  {} {provider:<11} {}", mark(false), paint.dim(&format!("set {}", names("variables"))));
        } else {
            say!("  {} {provider:<11} {set} is set", mark(true));
        }
    }
}

fn print_stored(stored: &Value) {
    let paint = color::stdout();
    let damage = stored.get("damage").and_then(Value::as_array).cloned().unwrap_or_default();
    for one in &damage {
        let text = |key: &str| one.get(key).and_then(Value::as_str).unwrap_or_default();
        say!("{} damaged: {}", paint.red("✗"), one_line(&format!("{}: {}", text("path"), text("cost"))));
    }
    if let Some(problem) = stored.get("problem").and_then(Value::as_str) {
        say!("{} {}", paint.red("✗"), one_line(problem));
    } else if !damage.is_empty() {
        say!("  mend what can be mended with: jm doctor --repair");
    } else if stored.get("log").and_then(Value::as_bool) == Some(true) {
        say!("{} the session log and what undo needs are whole", paint.green("✓"));
    }
    match stored.get("missing").and_then(Value::as_u64).unwrap_or_default() {
        0 => {}
        missing => say!(
            "{} {missing} earlier contents aren't kept any more; an undo that needs one names its file",
            paint.yellow("–")
        ),
    }
}

fn print_sandbox(report: &Value) {
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

fn print_copies(copies: &Value) {
    let paint = color::stdout();
    let list = |key: &str| copies.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
    let text =
        |value: &Value, key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    if let Some(problem) = copies.get("problem").and_then(Value::as_str) {
        say!("  {} {problem}", paint.red("✗"));
    }
    for tier in list("tiers") {
        let name = text(&tier, "tier");
        match tier.get("problem").and_then(Value::as_str) {
            Some(problem) => say!("  {} {name:<9} {}", paint.yellow("–"), paint.dim(problem)),
            None => say!("  {} {name}", paint.green("✓")),
        }
    }
    for copy in list("kept") {
        let bytes = copy.get("bytes").and_then(Value::as_u64).unwrap_or_default();
        let what = match copy.get("landed").and_then(Value::as_bool) {
            Some(true) => "landed, to be removed by the next command:",
            _ => "kept:",
        };
        say!(
            "  {what} session {} ({} KiB in {})",
            text(&copy, "session"),
            bytes / 1024,
            text(&copy, "directory")
        );
    }
}
