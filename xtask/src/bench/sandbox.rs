//! The cost of confined commands compared with bare ones (the figures of
//! `crates/sandbox/examples/sandbox_cost.rs`), and of a verdict on a command
//! (`crates/policy/examples/verdict_cost.rs` over the tables of that crate's tests).

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};
use serde_json::Value;
use syn::visit::Visit;

/// Each in a process of its own, so that its memory is.
const CASES: [&str; 5] = ["start", "overlay", "flood", "tiers", "metadata"];
/// Microseconds of a verdict.
const VERDICT: f64 = 50.0;
/// Where the commands are that verdicts are passed on.
const TABLES: [&str; 2] =
    ["crates/policy/tests/suite/commands/harmless.rs", "crates/policy/tests/suite/commands/deceptive.rs"];

/// Fails where one of them misses a bound, after all of them. What another build in `beside` needs
/// is printed after each case, and fails nothing.
pub(crate) fn run(beside: Option<&Path>) -> anyhow::Result<()> {
    let mut missed = Vec::new();
    let program = example("journeyman-sandbox", "sandbox_cost")?;
    for case in CASES {
        let status = Command::new(&program).arg(case).status().context("sandbox_cost")?;
        if !status.success() {
            missed.push(case);
        }
        if let Some(folder) = beside {
            println!("{case}, the build beside:");
            Command::new(folder.join("examples/sandbox_cost"))
                .arg(case)
                .status()
                .context("the build beside")?;
        }
    }
    if !verdicts_are_in_time()? {
        missed.push("verdict");
    }
    ensure!(missed.is_empty(), "bounds were missed in {}", missed.join(", "));
    Ok(())
}

/// Returns true if every command of the tables is judged in time.
fn verdicts_are_in_time() -> anyhow::Result<bool> {
    let mut commands = Literals::default();
    for table in TABLES {
        let text = std::fs::read_to_string(crate::root().join(table)).context(table)?;
        commands.visit_file(&syn::parse_file(&text).context(table)?);
    }
    let program = example("journeyman-policy", "verdict_cost")?;
    let mut child = Command::new(program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    // All is read before anything is said.
    child.stdin.take().context("its input")?.write_all(commands.0.join("\n").as_bytes())?;
    let output = child.wait_with_output()?;
    ensure!(output.status.success(), "verdict_cost ended with {}", output.status);
    let said: Value = serde_json::from_slice(&output.stdout).context("what verdict_cost says")?;
    let figure =
        |name| said.get(name).and_then(Value::as_f64).with_context(|| format!("no {name} in {said}"));
    let worst = figure("worst_median_us")?;
    println!("verdict: {} commands of the policy's tests", figure("commands")?);
    println!(
        "  min {:.1}, median {:.1}, slowest {worst:.1} µs (asked: {VERDICT})",
        figure("min_us")?,
        figure("median_us")?
    );
    println!("  slowest: {}", said.get("worst").unwrap_or(&Value::Null));
    Ok(worst <= VERDICT)
}

fn example(package: &str, name: &str) -> anyhow::Result<PathBuf> {
    crate::cargo(&["build", "--release", "--locked", "--package", package, "--example", name], &[])?;
    Ok(super::target().join(Path::new("release/examples")).join(name))
}

/// The texts of a table, as far as they are one line.
#[derive(Default)]
struct Literals(Vec<String>);

impl<'ast> Visit<'ast> for Literals {
    fn visit_lit_str(&mut self, literal: &'ast syn::LitStr) {
        self.0.extend(Some(literal.value()).filter(|text| !text.is_empty() && !text.contains('\n')));
    }
}
