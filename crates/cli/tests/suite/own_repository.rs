//! The main job in a real repository: a clone of this project, with its history and some hundred
//! files.

use std::path::{Path, PathBuf};
use std::process::Command;

use journeyman_protocol::{CheckOutcome, FileChange, FileChangeKind, RelPath, RunOutcome};
use serde_json::json;

use crate::support::{House, Server, Wire, call, needs, say};

/// A clone of this project in a house, or `None` where that can't be made and need not be.
pub(crate) fn clone_of_this_project(house: &House) -> Option<PathBuf> {
    if !needs(&["git"]) {
        return None;
    }
    let clone = house.at("clone");
    let cloned = Command::new("git")
        .args(["-c", "safe.directory=*", "clone", "-q"])
        .args([own_repository()?, clone.as_path()])
        .output()
        .unwrap();
    assert!(cloned.status.success(), "{}", String::from_utf8_lossy(&cloned.stderr));
    Some(clone)
}

/// This project, or `None` where it was unpacked without its history.
fn own_repository() -> Option<&'static Path> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent()?.parent()?;
    if root.join(".git").exists() {
        return Some(root);
    }
    let required = std::env::var_os("JM_REQUIRE_ALL").is_some_and(|value| value == "1");
    assert!(!required, "this project is here without its history, and nothing may be skipped");
    println!("skipped: this project is here without its history");
    None
}

#[test]
fn a_task_in_a_clone_of_this_project() {
    let house = House::new();
    let Some(clone) = clone_of_this_project(&house) else { return };
    let line = "# For agents that work on this repository";
    let server = Server::start(
        Wire::Chat,
        [
            say("").and("search_text", json!({"pattern": "For agents that work"})),
            say("").and("read_file", json!({"path": "AGENTS.md"})),
            call(
                "edit_file",
                json!({"path": "AGENTS.md", "search": line, "replace": format!("{line}\n\nHello.")}),
            ),
            say("Done."),
        ],
    );
    let check = "grep -qx 'Hello.' AGENTS.md && test -f crates/cli/src/main.rs";
    let ran =
        server.run(&house, &["--json", "--check", check, "greet in AGENTS.md"]).dir(&clone).run().expect(0);

    let report = ran.report();
    assert_eq!(report.outcome, RunOutcome::Verified);
    let path = RelPath::parse("AGENTS.md").unwrap();
    assert_eq!(report.changes, [FileChange { path, kind: FileChangeKind::Modified }]);
    assert_eq!(
        report.diff.lines().filter(|line| line.starts_with('+')).collect::<Vec<_>>(),
        ["+++ b/AGENTS.md", "+Hello.", "+"]
    );
    assert_eq!(report.evidence[0].outcome, CheckOutcome::Passed);
    let first = server.seen()[0].newest();
    for text in ["crates/", "AGENTS.md", check] {
        assert!(first.contains(text), "`{text}` is not in\n{first}");
    }
    house.jm(&["undo"]).dir(&clone).run().expect(0);
    let status = Command::new("git").args(["status", "--porcelain"]).current_dir(&clone).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&status.stdout), "");
}
