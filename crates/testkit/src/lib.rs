//! Support for the tests of all crates. No product crate depends on it.
//!
//! - [`skip`] is the one rule for tests that need something of the machine: a test that lacks it
//!   says `skipped: …` and returns, unless `JM_REQUIRE_ALL=1` is set, as in CI, where it fails.
//! - [`rerun_test!`] runs one test of the same program as a process of its own, for tests that kill
//!   a process, that need another user or namespace, or that measure a whole process.
//! - [`forward_store_methods!`] writes the part of a store double that only passes calls on.
//! - [`copy_program`] and [`write_program`] make programs that can be executed at once.
//!
//! ```no_run
//! # fn check() {
//! if !journeyman_testkit::has_program_or_skip("git") {
//!     return;
//! }
//! # }
//! ```
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a failure here is a failed test")]

mod store_double;

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Returns true if no test may be skipped: `JM_REQUIRE_ALL` is `1`.
#[must_use]
pub fn is_skipping_forbidden() -> bool {
    std::env::var_os("JM_REQUIRE_ALL").is_some_and(|value| value == "1")
}

/// Reports that the calling test can't run here.
///
/// # Panics
///
/// If no test may be skipped.
#[track_caller]
pub fn skip(reason: impl std::fmt::Display) {
    assert!(!is_skipping_forbidden(), "JM_REQUIRE_ALL is set, and this can't be tested: {reason}");
    println!("skipped: {reason}");
}

/// Returns true if a program can be found by its absolute path or in `PATH`. Otherwise reports a
/// skip, as [`skip`] does.
#[track_caller]
pub fn has_program_or_skip(name: &str) -> bool {
    let found = is_installed(name);
    if !found {
        skip(format_args!("{name} is not installed"));
    }
    found
}

/// Returns true if a program can be found. Doesn't report a skip.
#[must_use]
pub fn is_installed(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    name.starts_with('/') && Path::new(name).exists()
        || std::env::split_paths(&path).any(|directory| directory.join(name).is_file())
}

/// Waits until a condition holds.
///
/// # Panics
///
/// If it doesn't within 30 seconds, which no test waits for when all is well.
#[track_caller]
pub fn wait_until(condition: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_secs(30), "{condition} didn't happen");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Returns the command that runs one test of this program, given by its name in the calling module.
#[macro_export]
macro_rules! rerun_test {
    ($name:expr) => {
        $crate::test_command($crate::test_path!($name))
    };
}

/// Returns the name by which the test harness knows a test of the calling module: its path without
/// the crate.
#[macro_export]
macro_rules! test_path {
    ($name:expr) => {
        &$crate::test_path_in_crate(module_path!(), $name)
    };
}

/// Returns `module::name` without the crate.
#[doc(hidden)]
#[must_use]
pub fn test_path_in_crate(module: &str, name: &str) -> String {
    module.split_once("::").map_or_else(|| name.to_owned(), |(_, inner)| format!("{inner}::{name}"))
}

/// Returns the command that runs the test with this path, ignored or not, on the only thread, its
/// output shown.
#[must_use]
pub fn test_command(path: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(test_arguments(path));
    command
}

/// Returns the arguments with which this program runs one test, for callers that start it through
/// another program.
#[must_use]
pub fn test_arguments(path: &str) -> [String; 5] {
    ["--exact", path, "--include-ignored", "--nocapture", "--test-threads=1"].map(str::to_owned)
}

/// Copies a program with its mode.
///
/// Another process does it: a descriptor that this one writes through would leak into a process
/// that a test on another thread starts, and a file that somebody has open for writing can't be
/// executed.
pub fn copy_program(from: &Path, to: &Path) {
    assert!(Command::new("cp").arg("--preserve=mode").args([from, to]).status().unwrap().success());
}

/// Writes an executable program, by another process as [`copy_program`].
pub fn write_program(path: &Path, text: &str) {
    let mut writer = Command::new("sh")
        .args(["-c", "cat > \"$1\" && chmod 755 \"$1\"", "sh"])
        .arg(path)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    writer.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    assert!(writer.wait().unwrap().success());
}

/// Environment variable that is set for a test in a separate process.
const OWN_PROCESS_VARIABLE: &str = "JM_TEST_ALONE";

/// Moves the calling test to a process of its own, where no other test runs beside it: for tests
/// that change or measure something of the whole process. Stands first in the test.
#[macro_export]
macro_rules! run_in_own_process {
    () => {{
        fn marker() {}
        if $crate::run_in_own_process(::std::any::type_name_of_val(&marker)) {
            return;
        }
    }};
}

/// Runs the test that declares `marker` in a separate process, and returns true. Returns false
/// within that process.
///
/// # Panics
///
/// If the test fails there.
#[doc(hidden)]
#[must_use]
#[track_caller]
pub fn run_in_own_process(marker: &str) -> bool {
    if std::env::var_os(OWN_PROCESS_VARIABLE).is_some() {
        return false;
    }
    let path = marker.trim_end_matches("::marker").trim_end_matches("::{{closure}}");
    let path = path.split_once("::").map_or(path, |(_, inner)| inner);
    let output = test_command(path).env(OWN_PROCESS_VARIABLE, "1").output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    print!("{said}");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("1 passed"), "{said}\n{errors}");
    true
}
