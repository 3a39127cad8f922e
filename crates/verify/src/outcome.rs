//! Judges the outcome of a check from how its command ended.

use std::time::Duration;

use journeyman_protocol::{CheckKind, CheckOutcome};
use journeyman_sandbox::Outcome;

use crate::Check;
use crate::check::not_run_outcome;
use crate::test_counts;

/// Exit codes of POSIX shells for a command that can't be found, and for one that can't be
/// executed.
const NOT_FOUND_EXIT_CODE: i32 = 127;
const NOT_EXECUTABLE_EXIT_CODE: i32 = 126;
/// Exit code of pytest, and of unittest since Python 3.12, for a run without tests.
const NO_TESTS_EXIT_CODE: i32 = 5;
/// Reasons why a success proves nothing.
const NO_TEST_RAN_REASON: &str = "it passed without running a single test";
const ALL_SKIPPED_REASON: &str =
    "it passed without running a single test: all of them are skipped or ignored";
const NO_OUTPUT_REASON: &str = "it passed and said nothing, where its runner tells of the tests that it ran";
/// Runners that print the number of tests that they ran, even in their quietest mode.
const COUNT_PRINTING_RUNNERS: [&str; 14] = [
    "pytest",
    "unittest",
    "cargo test",
    "cargo nextest",
    "go test",
    "node --test",
    "jest",
    "vitest",
    "mocha",
    "rspec",
    "phpunit",
    "ctest",
    "mix test",
    "dotnet test",
];
/// Maximum bytes of a quoted line of output.
const MAX_QUOTE_BYTES: usize = 200;

/// Returns the outcome of `check` from how its command ended and its `output`. A success that ran
/// no test proves nothing.
pub(crate) fn judge_outcome(check: &Check, outcome: &Outcome, output: &str) -> CheckOutcome {
    match outcome {
        Outcome::Exited(0) => judge_success(check, output),
        Outcome::Exited(code) => judge_exit_code(check, *code, output),
        Outcome::Signaled(signal) => failed_outcome(None, format!("killed by signal {signal}")),
        Outcome::TimedOut => {
            failed_outcome(None, format!("timed out after {}", format_seconds(check.timeout)))
        }
        Outcome::OutputLimit | Outcome::MemoryLimit | Outcome::DiskLimit | Outcome::CpuLimit => {
            failed_outcome(None, format!("killed for {}", outcome.exceeded_limit().unwrap_or_default()))
        }
        Outcome::Cancelled => not_run_outcome("interrupted"),
        Outcome::SetupFailed(reason) => not_run_outcome(format!("the sandbox could not be set up: {reason}")),
    }
}

fn format_seconds(limit: Duration) -> String {
    format!("{} s", limit.as_secs())
}

fn failed_outcome(exit_code: Option<i32>, reason: String) -> CheckOutcome {
    CheckOutcome::Failed { exit_code, reason }
}

fn judge_success(check: &Check, output: &str) -> CheckOutcome {
    match no_tests_reason(check, output) {
        Some(reason) => not_run_outcome(reason),
        None => CheckOutcome::Passed,
    }
}

/// Returns the reason why a test command that succeeded ran no test, if so.
fn no_tests_reason(check: &Check, output: &str) -> Option<&'static str> {
    if !matches!(check.kind, CheckKind::Test | CheckKind::Custom) {
        return None;
    }
    let is_redirected = check.command.contains(['>', '|']);
    let tells = COUNT_PRINTING_RUNNERS.iter().any(|runner| check.command.contains(runner));
    if output.trim().is_empty() && tells && !is_redirected {
        return Some(NO_OUTPUT_REASON);
    }
    match test_counts::count_tests(output).ran_and_skipped() {
        (Some(0), 0) => Some(NO_TEST_RAN_REASON),
        (Some(0), _) => Some(ALL_SKIPPED_REASON),
        _ => None,
    }
}

/// Returns true if a test command succeeded and ran no test, which proves nothing.
#[must_use]
pub fn has_run_no_test(outcome: &CheckOutcome) -> bool {
    matches!(outcome, CheckOutcome::NotRun { reason } if [NO_TEST_RAN_REASON, ALL_SKIPPED_REASON].contains(&reason.as_str()))
}

fn judge_exit_code(check: &Check, code: i32, output: &str) -> CheckOutcome {
    if let Some(reason) = not_run_reason(check, code, output) {
        return not_run_outcome(reason);
    }
    failed_outcome(Some(code), format!("exit code {code}"))
}

/// Returns the reason why the check could not run, if the exit code says nothing about the change.
fn not_run_reason(check: &Check, code: i32, output: &str) -> Option<String> {
    let line_with = |part: &str| output.lines().rev().find(|line| line.contains(part)).map(quote_line);
    match code {
        NOT_FOUND_EXIT_CODE => {
            let said = line_with("not found").or_else(|| line_with("No such file"));
            return Some(said.unwrap_or_else(|| "a program it needs is not installed".to_owned()));
        }
        NOT_EXECUTABLE_EXIT_CODE => {
            let said = line_with("ermission denied");
            return Some(said.unwrap_or_else(|| "a program it needs can't be executed".to_owned()));
        }
        NO_TESTS_EXIT_CODE if output.to_ascii_lowercase().contains("no tests ran") => {
            return Some("no tests collected".to_owned());
        }
        _ => {}
    }
    // make reports the shell's 127 as an error of its own.
    if output.lines().any(|line| line.starts_with("make") && line.ends_with("Error 127")) {
        let said = line_with("not found").or_else(|| line_with("No such file"));
        return Some(said.unwrap_or_else(|| "a program that the Makefile calls is not installed".to_owned()));
    }
    if let Some(module) = missing_python_module(&check.command, output) {
        return Some(format!("{module} is not installed for this Python"));
    }
    if output.contains("No tests found, exiting with code 1")
        || output.contains("No test files found, exiting")
    {
        return Some("no tests found".to_owned());
    }
    if output.contains("no such command: `clippy`") || output.contains("'cargo-clippy' is not installed") {
        return Some("clippy is not installed; `rustup component add clippy` installs it".to_owned());
    }
    // rustup's proxies exist before any toolchain is installed.
    if output.contains("rustup could not choose a version of") {
        return Some("Rust has no toolchain here; `rustup default stable` installs one".to_owned());
    }
    // Cargo, without access to the network.
    if output.contains("--offline was specified") || output.contains("in the offline mode") {
        return Some(
            "dependencies are not downloaded, and checks run offline; `cargo fetch` downloads them"
                .to_owned(),
        );
    }
    None
}

/// Returns the module of `python -m MODULE`, if Python reports that the module is missing.
fn missing_python_module<'c>(command: &'c str, output: &str) -> Option<&'c str> {
    let module = command.split_once(" -m ")?.1.split_whitespace().next()?;
    let complaint = format!(": No module named {module}");
    output
        .lines()
        .any(|line| line.ends_with(&complaint) && !line.starts_with("ModuleNotFoundError"))
        .then_some(module)
}

fn quote_line(line: &str) -> String {
    let line = line.trim();
    line.get(..line.floor_char_boundary(MAX_QUOTE_BYTES)).unwrap_or(line).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(command: &str, outcome: &Outcome, output: &str) -> String {
        let check = Check::new(CheckKind::Test, "test", command, "");
        match judge_outcome(&check, outcome, output) {
            CheckOutcome::Passed => "passed".to_owned(),
            CheckOutcome::Failed { reason, .. } => format!("failed: {reason}"),
            CheckOutcome::NotRun { reason } => format!("not run: {reason}"),
        }
    }

    #[test]
    fn a_stand_in_without_a_toolchain_tests_nothing() {
        let said = "error: rustup could not choose a version of cargo to run, because one wasn't specified";
        let judged = word("cargo test", &Outcome::Exited(1), said);
        assert_eq!(judged, "not run: Rust has no toolchain here; `rustup default stable` installs one");
    }

    #[test]
    fn a_runner_that_says_nothing_proves_nothing() {
        // A module of the project's own in the place of the runner.
        let nothing = "not run: it passed and said nothing, where its runner tells of the tests that it ran";
        for (command, output, expected) in [
            ("python3 -m pytest -q", "\n", nothing),
            ("python3 -m pytest -qq", ".    [100%]\n", "passed"),
            ("python3 -m pytest > log", "", "passed"),
            ("sh check.sh", "", "passed"),
        ] {
            assert_eq!(word(command, &Outcome::Exited(0), output), expected, "{command}");
        }
    }

    #[test]
    fn judgement_table() {
        use Outcome::{Cancelled, Exited, OutputLimit, SetupFailed, Signaled, TimedOut};
        use journeyman_sandbox::{NotStarted, NotStartedCause};
        let zero = "not run: it passed without running a single test";
        let skipped = "not run: it passed without running a single test: all of them are skipped or ignored";
        let cases: &[(&str, Outcome, &str, &str)] = &[
            ("x", Exited(0), "", "passed"),
            ("x", Exited(1), "boo", "failed: exit code 1"),
            ("x", Exited(5), "boo", "failed: exit code 5"),
            ("x", Signaled(9), "", "failed: killed by signal 9"),
            ("x", TimedOut, "", "failed: timed out after 900 s"),
            ("x", OutputLimit, "", "failed: killed for flooding its output"),
            ("x", Cancelled, "", "not run: interrupted"),
            (
                "x",
                SetupFailed(NotStarted { cause: NotStartedCause::Setup, reason: "mount".into() }),
                "",
                "not run: the sandbox could not be set up: mount",
            ),
            ("x", Exited(127), "sh: 1: eslint: not found\n", "not run: sh: 1: eslint: not found"),
            ("x", Exited(127), "", "not run: a program it needs is not installed"),
            ("x", Exited(126), "sh: ./t: Permission denied", "not run: sh: ./t: Permission denied"),
            (
                "make test",
                Exited(2),
                "make: cppcheck: No such file or directory\nmake: *** [Makefile:2: test] Error 127",
                "not run: make: cppcheck: No such file or directory",
            ),
            ("make test", Exited(2), "make: *** [Makefile:2: test] Error 1", "failed: exit code 2"),
            ("cargo test", Exited(0), "running 0 tests\n\nrunning 0 tests\n", zero),
            ("cargo test", Exited(0), "running 0 tests\n\nrunning 3 tests\n", "passed"),
            ("node --test", Exited(0), "# tests 0\n# pass 0\n", zero),
            ("node --test", Exited(0), "# tests 2\n# pass 0\n# fail 0\n# skipped 2\n", skipped),
            ("mocha", Exited(0), "  0 passing (2ms)\n  3 pending\n", skipped),
            ("go test ./...", Exited(0), "?   \tx\t[no test files]\n", zero),
            ("go test ./...", Exited(0), "?   \tx\t[no test files]\nok  \tx/y\t0.1s\n", "passed"),
            ("python3 -m pytest -q", Exited(5), "no tests ran in 0.01s", "not run: no tests collected"),
            ("python3 -m unittest discover", Exited(5), "NO TESTS RAN", "not run: no tests collected"),
            ("python3 -m unittest discover", Exited(0), "Ran 0 tests in 0.000s\n\nOK", zero),
            ("python3 -m pytest -q", Exited(0), "ss                  [100%]\n2 skipped in 0.01s\n", skipped),
            ("python3 -m pytest -q", Exited(0), "== 1 passed, 2 skipped in 0.01s ==\n", "passed"),
            ("pytest --collect-only -q", Exited(0), "a.py::t\n\n1 test collected in 0.00s\n", zero),
            (
                "cargo test",
                Exited(0),
                "running 2 tests\ntest result: ok. 0 passed; 0 failed; 2 ignored; 0 measured; 0 filtered out; finished in 0.00s\n",
                skipped,
            ),
            ("python3 -m unittest", Exited(0), "Ran 2 tests in 0.000s\n\nOK (skipped=2)\n", skipped),
            ("npm test", Exited(0), "No tests found, exiting with code 0\n", zero),
            ("npm test", Exited(0), "Tests:       3 skipped, 3 total\n", skipped),
            ("npm test", Exited(0), "Tests:       1 skipped, 2 passed, 3 total\n", "passed"),
            ("ctest", Exited(0), "No tests were found!!!\n", zero),
            ("ctest", Exited(0), "100% tests passed, 0 tests failed out of 3\n", "passed"),
            ("mvn test", Exited(0), "Tests run: 2, Failures: 0, Errors: 0, Skipped: 2\n", skipped),
            (
                "python3 -m pytest -q",
                Exited(1),
                "/usr/bin/python3: No module named pytest",
                "not run: pytest is not installed for this Python",
            ),
            (
                "python3 -m pytest -q",
                Exited(1),
                "E   ModuleNotFoundError: No module named 'pkg'",
                "failed: exit code 1",
            ),
            ("npm test", Exited(1), "No tests found, exiting with code 1", "not run: no tests found"),
            (
                "cargo test",
                Exited(101),
                "error: ... but --offline was specified",
                "not run: dependencies are not downloaded, and checks run offline; `cargo fetch` downloads them",
            ),
        ];
        for (command, outcome, output, expected) in cases {
            assert_eq!(word(command, outcome, output), *expected, "{command}: {output}");
        }
    }
}
