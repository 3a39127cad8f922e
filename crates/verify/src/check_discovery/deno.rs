//! Deno projects.

use journeyman_protocol::CheckKind;
use serde_json::Value;

use super::project::{ProjectDirectory, file_name};
use crate::Check;

/// The name in evidence.
const ECOSYSTEM: &str = "deno";
/// Files of which one configures Deno.
const CONFIG_FILES: [&str; 2] = ["deno.json", "deno.jsonc"];
/// Names of tasks for each kind, in order of preference.
const TASK_NAMES: [(CheckKind, &[&str]); 3] = [
    (CheckKind::Types, &["check", "typecheck", "check:types"]),
    (CheckKind::Lint, &["lint"]),
    (CheckKind::Test, &["test", "tests"]),
];
/// Endings of the names that `deno test` takes for tests.
const TEST_EXTENSIONS: [&str; 6] = ["ts", "tsx", "mts", "js", "mjs", "jsx"];

/// Finds the tasks for types, lint and tests, or Deno's own tools where there is no task. If the
/// project has a `package.json` too, its scripts are the project's checks.
pub(super) fn find_checks(place: &ProjectDirectory<'_>) -> Vec<Check> {
    let Some(text) = CONFIG_FILES.iter().find_map(|name| place.read(name)) else { return Vec::new() };
    if place.has_file("package.json") {
        return Vec::new();
    }
    // A configuration with comments is read as one without tasks.
    let configuration: Value = serde_json::from_str(&text).unwrap_or_default();
    let mut checks = Vec::new();
    for (kind, names) in TASK_NAMES {
        let task =
            names.iter().find(|name| configuration.get("tasks").is_some_and(|it| it.get(name).is_some()));
        if let Some(task) = task {
            let why = format!("the configuration has a task `{task}`");
            checks.push(place.new_check(kind, ECOSYSTEM, format!("deno task {task}"), why));
        } else if kind == CheckKind::Test && place.files().any(is_test) {
            // The sandbox is what holds back a test.
            checks.push(place.new_check(
                kind,
                ECOSYSTEM,
                "deno test --no-prompt --allow-all",
                "tests of Deno's own runner",
            ));
        } else if kind == CheckKind::Lint && configuration.get("lint").is_some() {
            let check = place.new_check(kind, ECOSYSTEM, "deno lint", "the project configures Deno's linter");
            checks.push(check.with_fix("deno lint --fix"));
        }
    }
    if checks.iter().all(|check| check.kind == CheckKind::Lint) {
        checks.push(place.new_check(
            CheckKind::Types,
            ECOSYSTEM,
            "deno check .",
            "a configuration of Deno without tests",
        ));
    }
    checks.into_iter().map(|check| place.block_without_program("deno", "https://deno.com", check)).collect()
}

fn is_test(path: &[u8]) -> bool {
    let Ok(name) = std::str::from_utf8(file_name(path)) else { return false };
    let Some((stem, ending)) = name.rsplit_once('.') else { return false };
    TEST_EXTENSIONS.contains(&ending)
        && (stem == "test" || stem.ends_with("_test") || stem.ends_with(".test"))
}
