//! The time to the verdict of the affected tests, in a project of 400 test files.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};

use super::series::{Series, spread};
use super::server::{Call, Server};
use super::turns::{git, jm_run};

const RUNS: usize = 10;
const MODULES: usize = 400;
/// Modules that import the changed one, with the tests of each.
const USERS: usize = 4;

/// Changes one module, which four others import, and measures the time from the start of the checks
/// to the verdict of the affected tests. The same command is run by hand in between.
pub(crate) fn run(programs: &[PathBuf]) -> anyhow::Result<()> {
    let place = tempfile::tempdir()?;
    write_project(place.path())?;
    git(place.path())?;
    let states = programs.iter().map(|_| tempfile::tempdir()).collect::<Result<Vec<_>, _>>()?;
    let mut verdicts = Series::new(programs.len());
    let mut over = Series::new(programs.len());
    let (mut bare, mut all) = (Vec::new(), Vec::new());
    for run in 0..=RUNS {
        for (number, (jm, state)) in programs.iter().zip(&states).enumerate() {
            let (verdict, command) = verdict_of_change(jm, place.path(), state.path(), run)?;
            let alone = time(Command::new("sh").args(["-c", &command]).current_dir(place.path()))?;
            // The first run reads the whole project for the index.
            if run > 0 {
                bare.push(alone);
                verdicts.add(number, verdict);
                over.add(number, verdict - 1.2 * alone);
            }
        }
        all.push(time(
            Command::new("python3").args(["-m", "unittest", "discover", "-q"]).current_dir(place.path()),
        )?);
    }
    println!("verdict: {MODULES} test files of Python, a change of one file, {RUNS} runs");
    verdicts.print(
        "from the start of the checks to the verdict of the affected tests, ms",
        "1.2 times alone, and 50",
    );
    over.print("above 1.2 times the affected tests alone, ms", "50");
    println!("  the affected tests alone, ms: {}", spread(&mut bare));
    println!("  all tests, ms: {}", spread(&mut all));
    Ok(())
}

fn write_project(place: &Path) -> anyhow::Result<()> {
    for number in 0..MODULES {
        let mut module = String::new();
        let base = if (1..=USERS).contains(&number) { "m0.value(1)" } else { "1" };
        if base != "1" {
            module.push_str("import m0\n\n\n");
        }
        writeln!(module, "def value(n):\n    return n + {number} + {base} - {base}")?;
        std::fs::write(place.join(format!("m{number}.py")), module)?;
        let mut tests = format!(
            "import time\nimport unittest\n\nimport m{number}\n\n\nclass Values(unittest.TestCase):\n"
        );
        for case in 0..5 {
            writeln!(
                tests,
                "    def test_value_{case}(self):\n        time.sleep(0.002)\n        self.assertEqual(m{number}.value({case}), {})\n",
                case + number
            )?;
        }
        std::fs::write(place.join(format!("test_m{number}.py")), tests)?;
    }
    Ok(())
}

fn time(command: &mut Command) -> anyhow::Result<f64> {
    let started = Instant::now();
    let output = command.stdin(Stdio::null()).output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(started.elapsed().as_secs_f64() * 1000.0)
}

/// Lets `jm` make a change, and returns the milliseconds to the verdict of the affected tests, and
/// the command that ran them.
fn verdict_of_change(jm: &Path, place: &Path, state: &Path, run: usize) -> anyhow::Result<(f64, String)> {
    let replaced = format!("def value(n):\n    # {run}");
    let arguments = json!({ "path": "m0.py", "search": "def value(n):", "replace": replaced });
    let call = Call { tool: "edit_file", arguments };
    let server = Server::start(vec![call])?;
    let output = jm_run(jm, place, state, &server, "--stream-json").stdout(Stdio::piped()).output()?;
    ensure!(output.status.success(), "jm ended with {}", output.status);
    let text = String::from_utf8(output.stdout)?;
    let events: Vec<Value> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let at = |event: &Value| event["at"].as_f64().context("an event without a time");
    let start = events.iter().find(|event| event["event"] == "verify_started").context("no check ran")?;
    let is_verdict = |event: &&Value| {
        event["event"] == "check_result"
            && event.pointer("/evidence/affected_only") == Some(&Value::Bool(true))
    };
    let verdict = events.iter().find(is_verdict).with_context(|| format!("no affected tests ran: {text}"))?;
    let command = verdict.pointer("/evidence/command").and_then(Value::as_str);
    Ok((at(verdict)? - at(start)?, command.context("evidence without a command")?.to_owned()))
}
