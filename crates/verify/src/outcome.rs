//! Judges the outcome of a check from how its command ended.

use std::time::Duration;

use journeyman_protocol::{CheckKind, CheckOutcome, TestCounts};
use journeyman_sandbox::Outcome;

use crate::Check;
use crate::check::not_run_outcome;
use crate::counting_runners::CountingCall;
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
const NO_COUNT_REASON: &str =
    "it passed and told no number of tests, where its runner tells of the tests that it ran";
const UNFINISHED_REASON: &str = "it passed, but a program of tests ended before it told its result";
/// Maximum bytes of a quoted line of output.
const MAX_QUOTE_BYTES: usize = 200;

/// The output of a check.
pub(crate) struct CheckOutput<'a> {
    pub(crate) text: &'a str,
    /// True if a part of the text was dropped.
    pub(crate) is_cut: bool,
    /// The tests that reports, or documents in the output, count.
    pub(crate) reported: Option<TestCounts>,
}

impl CheckOutput<'_> {
    /// Returns the counts of the reports and of the output, of each the larger one: a runner that
    /// ran several times leaves the report of its last run.
    fn count_tests(&self) -> Option<TestCounts> {
        let printed = test_counts::count_tests(self.text).tests;
        let (Some(one), Some(other)) = (printed, self.reported) else { return printed.or(self.reported) };
        Some(TestCounts {
            passed: one.passed.max(other.passed),
            failed: one.failed.max(other.failed),
            skipped: one.skipped.max(other.skipped),
        })
    }
}

/// Returns the outcome of `check` from how its command ended and its `output`. A success that ran
/// no test proves nothing.
pub(crate) fn judge_outcome(check: &Check, outcome: &Outcome, output: &CheckOutput<'_>) -> CheckOutcome {
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

fn judge_success(check: &Check, output: &CheckOutput<'_>) -> CheckOutcome {
    match unproven_reason(check, output) {
        Some(reason) => not_run_outcome(reason),
        None => CheckOutcome::Passed,
    }
}

/// Returns the reason why the success of a test command doesn't show that its tests passed, if so.
fn unproven_reason(check: &Check, output: &CheckOutput<'_>) -> Option<String> {
    if !matches!(check.kind, CheckKind::Test | CheckKind::Custom) {
        return None;
    }
    let call = CountingCall::of_command(&check.command, output.text);
    let counted = output.count_tests();
    let reason = match counted.map(|tests| (tests.passed, tests.failed, tests.skipped)) {
        None if output.text.trim().is_empty() && call.is_called => NO_OUTPUT_REASON,
        None if call.has_usual_form => NO_COUNT_REASON,
        Some((_, failed, _)) if failed > 0 => {
            return Some(format!("it passed, although {failed} of its tests failed"));
        }
        Some((0, _, 0)) => NO_TEST_RAN_REASON,
        Some((0, ..)) => ALL_SKIPPED_REASON,
        _ if !output.is_cut && test_counts::has_unfinished_run(output.text) => UNFINISHED_REASON,
        _ => return None,
    };
    Some(reason.to_owned())
}

/// Returns true if a test command succeeded and ran no test, which proves nothing.
#[must_use]
pub fn has_run_no_test(outcome: &CheckOutcome) -> bool {
    matches!(outcome, CheckOutcome::NotRun { reason } if [NO_TEST_RAN_REASON, ALL_SKIPPED_REASON].contains(&reason.as_str()))
}

fn judge_exit_code(check: &Check, code: i32, output: &CheckOutput<'_>) -> CheckOutcome {
    // A test that failed did run, whatever else the output says.
    let has_failed_test = output.count_tests().is_some_and(|tests| tests.failed > 0);
    if let Some(reason) = not_run_reason(check, code, output.text).filter(|_| !has_failed_test) {
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
        word_with_report(command, outcome, output, None)
    }

    fn word_with_report(
        command: &str,
        outcome: &Outcome,
        output: &str,
        reported: Option<TestCounts>,
    ) -> String {
        let check = Check::new(CheckKind::Test, "test", command, "");
        match judge_outcome(&check, outcome, &CheckOutput { text: output, is_cut: false, reported }) {
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
        let uncounted =
            "not run: it passed and told no number of tests, where its runner tells of the tests that it ran";
        let unfinished = "not run: it passed, but a program of tests ended before it told its result";
        let tests = |passed, failed, skipped| Some(TestCounts { passed, failed, skipped });
        let cargo = "running 2 tests\n     Running tests/it.rs\n\nrunning 1 test\ntest it ... ok\n\n\
                     test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n";
        let jest = "\n> a@1.0.0 test\n> jest\n\n  console.error\n    process.exit called with \"0\"\n";
        for (command, output, reported, expected) in [
            ("python3 -m pytest -q", "\n", None, nothing),
            ("python3 -m pytest -qq", ".    [100%]\n", tests(1, 0, 0), "passed"),
            // The product ended the runner.
            ("python3 -m pytest -q", ".", None, uncounted),
            ("phpunit", "PHPUnit 9.6.7 by Sebastian Bergmann and contributors.\n\n.", None, uncounted),
            ("npm test", jest, None, uncounted),
            ("cargo test", cargo, None, unfinished),
            // Cargo's `runner` for the programs is `true`.
            ("cargo test", "     Running unittests src/lib.rs (target/debug/deps/a-1)\n", None, uncounted),
            ("mvn -B -q -o test", "", None, nothing),
            ("mvn -B -q -o test", "", tests(1, 0, 0), "passed"),
            (
                "mvn -B -q -o test",
                "",
                tests(0, 0, 1),
                "not run: it passed without running a single test: all of them are skipped or ignored",
            ),
            ("mocha -R dot", "  .\n", None, "passed"),
            ("python3 -m pytest > log", "", None, "passed"),
            ("sh check.sh", "", None, "passed"),
        ] {
            let judged = word_with_report(command, &Outcome::Exited(0), output, reported);
            assert_eq!(judged, expected, "{command}: {output}");
        }
    }

    #[test]
    fn a_failed_test_counts_whatever_the_command_says() {
        let failed = Some(TestCounts { passed: 3, failed: 1, skipped: 0 });
        for (command, code, output, reported, expected) in [
            (
                "sh t.sh",
                0,
                "1 failed, 3 passed in 0.10s\ndone\n",
                None,
                "not run: it passed, although 1 of its tests failed",
            ),
            ("mvn -q test", 0, "", failed, "not run: it passed, although 1 of its tests failed"),
            (
                "sh t.sh",
                0,
                "FAIL\tx/y\t0.1s\nok  \tx/z\t0.1s\n",
                None,
                "not run: it passed, although 1 of its tests failed",
            ),
            (
                "cargo test",
                101,
                "test result: FAILED. 1 passed; 1 failed\n'--offline was specified' expected",
                None,
                "failed: exit code 101",
            ),
            (
                "npm test",
                1,
                "No tests found, exiting with code 1\nTests:       1 failed, 1 total",
                None,
                "failed: exit code 1",
            ),
            ("pytest; ruff", 127, "sh: 1: ruff: not found", failed, "failed: exit code 127"),
        ] {
            let judged = word_with_report(command, &Outcome::Exited(code), output, reported);
            assert_eq!(judged, expected, "{command}: {output}");
        }
    }

    #[test]
    fn runs_without_tests_of_each_runner_prove_nothing() {
        let zero = "not run: it passed without running a single test";
        let skipped = "not run: it passed without running a single test: all of them are skipped or ignored";
        for (command, output, expected) in [
            ("ctest", "No tests were found!!!\n", zero),
            ("npm test", "No tests found, exiting with code 0\n", zero),
            ("npm test", "Tests:       3 skipped, 3 total\n", skipped),
            ("npm test", "Tests:       1 skipped, 2 passed, 3 total\n", "passed"),
            ("mocha", "  0 passing (2ms)\n  3 pending\n", skipped),
            ("mvn test", "Tests run: 2, Failures: 0, Errors: 0, Skipped: 2\n", skipped),
            ("phpunit", "No tests executed!\n", zero),
            ("phpunit", "Tests: 1, Assertions: 0, Skipped: 1.\n", skipped),
            ("phpunit", "OK (1 test, 1 assertion)\n", "passed"),
            ("rspec", "0 examples, 0 failures\n", zero),
            ("rspec", "2 examples, 0 failures, 2 pending\n", skipped),
            ("rspec", "2 examples, 0 failures, 1 pending\n", "passed"),
            ("rake test", "0 runs, 0 assertions, 0 failures, 0 errors, 0 skips\n", zero),
            ("rake test", "2 runs, 0 assertions, 0 failures, 0 errors, 2 skips\n", skipped),
            ("cargo nextest run", "     Summary [   0.000s] 0 tests run: 0 passed, 1 skipped\n", skipped),
            ("prove -lr t", "Files=1, Tests=0,  0 wallclock secs\nResult: NOTESTS\n", zero),
            ("dotnet test", "No test is available in /a.dll.\n", zero),
            (
                "dotnet test",
                "Skipped! - Failed:     0, Passed:     0, Skipped:     2, Total:     2\n",
                skipped,
            ),
            ("gradle test", "> Task :compileTestJava NO-SOURCE\n> Task :test NO-SOURCE\n", zero),
            ("mix test", "There are no tests to run\n", zero),
            ("python3 -m unittest", "Ran 2 tests in 0.0s\n\nOK (expected failures=1)\n", "passed"),
            ("npm test", "  Total:     2\n  Passed:    2\n  Skipped:   0\n  Duration:  4.21ms\n", "passed"),
            (
                "make test",
                "test result: FAILED. 0 passed; 1 failed\n     Summary [   0.02s] 1 test run: 1 passed (1 flaky), 0 skipped\n",
                "passed",
            ),
            ("npx jasmine", "0 specs, 0 failures\n", zero),
        ] {
            assert_eq!(word(command, &Outcome::Exited(0), output), expected, "{command}: {output}");
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
            (
                "cargo test",
                Exited(0),
                "running 0 tests\n\ntest result: ok. 0 passed; 0 failed\n\nrunning 3 tests\n\ntest result: ok. 3 passed; 0 failed\n",
                "passed",
            ),
            ("node --test", Exited(0), "# tests 0\n# pass 0\n", zero),
            ("node --test", Exited(0), "# tests 2\n# pass 0\n# fail 0\n# skipped 2\n", skipped),
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
            ("ctest", Exited(0), "100% tests passed, 0 tests failed out of 3\n", "passed"),
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
