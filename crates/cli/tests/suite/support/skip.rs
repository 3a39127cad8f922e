//! What a case needs of the machine. Where it is missing the case says so and returns, except under
//! `JM_REQUIRE_ALL=1`, where it fails.

use std::process::{Command, Stdio};
use std::sync::OnceLock;

use serde_json::Value;

use super::House;

/// Whether the case can run; says why where it can't.
fn granted(found: bool, what: &str) -> bool {
    if found {
        return true;
    }
    assert!(std::env::var_os("JM_REQUIRE_ALL").is_none_or(|value| value != "1"), "this case needs {what}");
    eprintln!("skipped: {what} is missing");
    false
}

/// Whether a program is on the `PATH`.
pub fn has_program(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| dir.join(name).is_file())
}

/// Whether these programs are installed and the sandbox works here.
pub fn needs(programs: &[&str]) -> bool {
    programs.iter().all(|name| granted(has_program(name), name)) && needs_sandbox()
}

/// Whether the sandbox works here.
pub fn needs_sandbox() -> bool {
    static WORKS: OnceLock<bool> = OnceLock::new();
    let works = WORKS.get_or_init(|| {
        let ran = House::new().jm(&["doctor", "--json"]).run();
        let report: Value = serde_json::from_str(&ran.stdout).expect("jm doctor --json prints JSON");
        report["sandbox"]["tier"] == "namespaces"
    });
    granted(*works, "a working sandbox")
}

/// Whether mounts can be made in a namespace of one's own.
fn mounts_work() -> bool {
    static WORK: OnceLock<bool> = OnceLock::new();
    *WORK.get_or_init(|| {
        let tried = Command::new("unshare")
            .args(["-Urm", "sh", "-c", "mount -t tmpfs none /mnt"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        tried.is_ok_and(|status| status.success())
    })
}

/// As [`mounts_work`], skipping where they don't.
pub fn needs_mounts() -> bool {
    granted(mounts_work(), "unshare with mounts")
}
