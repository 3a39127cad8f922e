//! Runs the workspace's test programs, two at a time.
//!
//! `cargo test` runs one program after the other. Many tests wait for a process, a time limit or a
//! server, and each program ends with its slowest test alone: a second program uses the cores
//! meanwhile.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::Instant;

use anyhow::{Context as _, anyhow, bail};
use serde_json::Value;

/// Number of programs that run at once.
const LANES: usize = 2;
/// Directories of the crates whose programs take longest, slowest first. They start first, so that
/// none of them runs alone at the end.
const SLOWEST: [&str; 7] = ["delegate", "cli", "agent", "sandbox", "workspace", "edit", "host"];
/// Number of bytes of a failed program's output that are printed once more at the end.
const MAX_REPORT: usize = 16 * 1024;

/// A built test program.
#[derive(Debug, PartialEq)]
struct Program {
    executable: PathBuf,
    /// The crate's directory, in which cargo starts a test program.
    directory: PathBuf,
    /// The source file of the program, from the crate's directory on.
    source: PathBuf,
}

impl Program {
    /// Reads a line of cargo's JSON messages. `None` for a message about anything else.
    fn from_message(line: &str) -> Option<Self> {
        let message: Value = serde_json::from_str(line).ok()?;
        let text = |pointer: &str| message.pointer(pointer).and_then(Value::as_str);
        let is_test = message.pointer("/profile/test").and_then(Value::as_bool)?;
        if text("/reason")? != "compiler-artifact" || !is_test {
            return None;
        }
        let directory = Path::new(text("/manifest_path")?).parent()?.to_owned();
        let source = Path::new(text("/target/src_path")?);
        Some(Self {
            executable: text("/executable")?.into(),
            source: source.strip_prefix(&directory).unwrap_or(source).to_owned(),
            directory,
        })
    }

    /// Returns the position of the program in the order in which programs start.
    fn rank(&self) -> usize {
        let name = self.directory.file_name().unwrap_or_default();
        SLOWEST.iter().position(|slow| name == *slow).unwrap_or(SLOWEST.len())
    }

    fn name(&self) -> String {
        let directory = self.directory.file_name().unwrap_or_default();
        format!("{} {}", directory.display(), self.source.display())
    }
}

/// Builds all test programs with `build`, a call of cargo without arguments, and runs them with
/// `threads` tests at once in each. The output of a program is printed when the program ends.
///
/// # Errors
///
/// If the build or a program fails. Every program that failed is named.
pub(crate) fn run(mut build: Command, threads: usize) -> anyhow::Result<()> {
    // Examples are left out, which Clippy has seen: each would be one more program with all
    // grammars in it.
    build.args(["test", "--workspace", "--locked", "--lib", "--bins", "--tests", "--no-run"]);
    build.arg("--message-format=json-render-diagnostics").stderr(Stdio::inherit());
    let built = build.output().context("cargo could not be started")?;
    if !built.status.success() {
        bail!("the tests could not be built ({})", built.status);
    }
    let messages = String::from_utf8_lossy(&built.stdout);
    let mut programs: Vec<Program> = messages.lines().filter_map(Program::from_message).collect();
    if programs.is_empty() {
        bail!("cargo has named no test program");
    }
    programs.sort_by_key(Program::rank);
    let waiting = Mutex::new(programs.into_iter());
    let failed = std::thread::scope(|scope| {
        let lanes: Vec<_> = (0..LANES).map(|_| scope.spawn(|| run_lane(&waiting, threads))).collect();
        let failed = lanes.into_iter().map(|lane| lane.join().map_err(|_| anyhow!("a lane has panicked"))?);
        failed.collect::<anyhow::Result<Vec<_>>>()
    })?
    .concat();
    if failed.is_empty() {
        return Ok(());
    }
    // Once more at the end, where a reader of a long log looks.
    for failure in &failed {
        crate::step(&format!("{}: what failed", failure.program));
        std::io::Write::write_all(&mut std::io::stderr().lock(), &failure.report)?;
    }
    let names: Vec<_> = failed.iter().map(|failure| failure.program.as_str()).collect();
    bail!("failed: {}", names.join(", "))
}

/// A program that failed.
#[derive(Clone)]
struct Failure {
    program: String,
    /// The last part of its output, with the failed tests.
    report: Vec<u8>,
}

/// Returns the part of a failed program's output that tells which tests failed and why, at most
/// `MAX_REPORT` bytes: from the heading `failures:` on, or the end of an output without one.
fn failure_report(output: &[u8]) -> &[u8] {
    const HEADING: &[u8] = b"\nfailures:\n";
    let end = output.get(output.len().saturating_sub(MAX_REPORT)..).unwrap_or(output);
    let heading = end.windows(HEADING.len()).position(|window| window == HEADING);
    heading.and_then(|at| end.get(at..)).unwrap_or(end)
}

/// Runs waiting programs until none is left, and returns those that failed.
fn run_lane(waiting: &Mutex<std::vec::IntoIter<Program>>, threads: usize) -> anyhow::Result<Vec<Failure>> {
    let mut failed = Vec::new();
    loop {
        let next = waiting.lock().map_err(|_| anyhow!("the other lane has panicked"))?.next();
        let Some(program) = next else { return Ok(failed) };
        let begin = Instant::now();
        // In one pipe, so that a test's messages stand where the test harness prints its name.
        let (mut reader, writer) = std::io::pipe()?;
        let mut command = Command::new(&program.executable);
        command.current_dir(&program.directory).env("RUST_TEST_THREADS", threads.to_string());
        command.env("CARGO_MANIFEST_DIR", &program.directory).stdin(Stdio::null());
        command.stdout(writer.try_clone()?).stderr(writer);
        let mut child = command.spawn().with_context(|| program.name())?;
        // Holds the pipe's writing ends, which would keep the reader waiting.
        drop(command);
        let mut output = Vec::new();
        std::io::Read::read_to_end(&mut reader, &mut output)?;
        let status = child.wait()?;
        let name = program.name();
        crate::step(&format!("{name}: {status}, {} s", begin.elapsed().as_secs()));
        std::io::Write::write_all(&mut std::io::stderr().lock(), &output)?;
        if !status.success() {
            failed.push(Failure { program: name, report: failure_report(&output).to_vec() });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_report_begins_at_the_failed_tests() {
        let output = b"test a ... ok\ntest b ... FAILED\n\nfailures:\n\n---- b stdout ----\nno\n";
        assert_eq!(failure_report(output), b"\nfailures:\n\n---- b stdout ----\nno\n");
        assert_eq!(failure_report(b"killed"), b"killed");
        let mut long = b"\nfailures:\n".to_vec();
        long.resize(2 * MAX_REPORT, b'x');
        assert_eq!(failure_report(&long).len(), MAX_REPORT);
    }

    #[test]
    fn test_programs_are_read_from_messages() {
        let artifact = |test: bool, executable: &str| {
            format!(
                r#"{{"reason":"compiler-artifact","manifest_path":"/tree/crates/cli/Cargo.toml","target":{{"src_path":"/tree/crates/cli/tests/suite/main.rs"}},"profile":{{"test":{test}}},"executable":{executable}}}"#
            )
        };
        let program = Program {
            executable: "/tree/target/suite-1".into(),
            directory: "/tree/crates/cli".into(),
            source: "tests/suite/main.rs".into(),
        };
        assert_eq!(program.name(), "cli tests/suite/main.rs");
        assert_eq!(program.rank(), 1);
        assert_eq!(Program::from_message(&artifact(true, "\"/tree/target/suite-1\"")), Some(program));
        assert_eq!(
            Program::from_message(&artifact(false, "\"/tree/target/jm\"")),
            None,
            "a program that is no test"
        );
        assert_eq!(Program::from_message(&artifact(true, "null")), None);
        assert_eq!(Program::from_message("   Compiling"), None);
    }
}
