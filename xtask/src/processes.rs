//! The ways out of the sandbox: every place that starts a process by itself.
//!
//! Nothing that a session changed may run outside of the sandbox before a person has seen that very
//! content. So each place that starts a process is listed with what keeps a session from deciding
//! what that runs; a new one fails here until somebody has thought about it and written the test.

use std::path::Path;

use anyhow::Context as _;

/// The places, with the reason why no file of a session decides what they run.
const PLACES: &[(&str, &str)] = &[
    (
        "crates/agent/src/hooks/command.rs",
        "hooks with `sandbox = false`, refused once the session changed what decides about them; agent/tests/suite/session/outside.rs",
    ),
    (
        "crates/git/src/user_git.rs",
        "the user's git without hooks and monitors, after configured_programs.rs held its settings against the change; \
         git/tests/suite/commits.rs",
    ),
    (
        "crates/host/src/editor.rs",
        "the editor that the person's own environment names, when they ask for it; its file is theirs, outside of the project",
    ),
    (
        "crates/tui/src/status_command.rs",
        "the status command of the user's own configuration, which a project can't set; it runs in the home directory",
    ),
    ("crates/tui/src/pager.rs", "the user's own pager, from the environment that jm was started with"),
    (
        "crates/host/src/demo.rs",
        "`cargo --version` and `rustc --version` of the user's own PATH, before the demo's session begins",
    ),
    (
        "crates/sandbox/src/namespaces/ready_helper.rs",
        "this program itself, as the helper that builds the sandbox",
    ),
    (
        "crates/sandbox/src/namespaces/kill_on_exit.rs",
        "the command of a request with the back-end \"none\", as a direct run of a CLI that a person asks for; a \
         project's own CLI needs trust before; cli/tests/suite/delegate.rs",
    ),
    (
        "crates/sandbox/src/namespaces/mount_client.rs",
        "this program itself, as the helper that mounts an overlay",
    ),
    ("crates/sandbox/src/namespaces/sys.rs", "the command itself, at the end of building its sandbox"),
    (
        "crates/sandbox/src/unconfined.rs",
        "the back-end \"none\", which a user allows by name; its commands ask",
    ),
];
/// The texts in sources that start a process.
const PROCESS_STARTS: [&str; 4] = ["Command::new(", "posix_spawn", "execve(", "fork()"];
/// The text at which the tests of a file begin.
const TEST_BEGINNING: &str = "#[cfg(test)]";

/// Each place that isn't listed, and each listed one that starts nothing.
pub(crate) fn broken_rules(root: &Path) -> anyhow::Result<Vec<String>> {
    let mut broken = Vec::new();
    let mut found = Vec::new();
    for path in crate::sizes::sources(root)? {
        let shown = path.strip_prefix(root).unwrap_or(&path).display().to_string();
        let is_product = shown.starts_with("crates/") && !shown.starts_with("crates/testkit/");
        if !is_product || !shown.contains("/src/") || shown.ends_with("tests.rs") {
            continue;
        }
        let text = std::fs::read_to_string(&path).with_context(|| shown.clone())?;
        let code = text.split(TEST_BEGINNING).next().unwrap_or_default();
        let starts = |line: &str| {
            let line = line.trim();
            // `RunCommand::new` is somebody else's.
            let alone = |at: usize| !line.get(..at).is_some_and(|head| head.ends_with(char::is_alphanumeric));
            let start = |start: &&str| line.match_indices(*start).any(|(at, _)| alone(at));
            !line.starts_with("//") && PROCESS_STARTS.iter().any(start)
        };
        if code.lines().any(starts) {
            if !PLACES.iter().any(|(place, _)| *place == shown) {
                broken.push(format!(
                    "{shown} starts a process; run it by `sandbox`, or list it in xtask/src/processes.rs with what keeps a \
                     session from deciding what it runs"
                ));
            }
            found.push(shown);
        }
    }
    let gone = PLACES.iter().filter(|(place, _)| !found.iter().any(|found| found == place));
    broken.extend(
        gone.map(|(place, _)| format!("{place} starts no process any more; take it out of processes.rs")),
    );
    Ok(broken)
}
