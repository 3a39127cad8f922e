//! Sixty exercises, each with a right solution, a subtly wrong one that the given tests let pass,
//! and tests that tell them apart: how often does the strength of the tests tell as well?
//!
//! `cargo xtask bench notice` runs this. `--half first|second` takes every other exercise, so that
//! thresholds can be chosen on one half and measured on the other; `--show` prints survivors.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a measurement"
)]

mod exercises;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use exercises::{Exercise, all_exercises};
use journeyman_protocol::{
    CheckKind, Evidence, RelPath, SandboxNeeds, SandboxTier, SessionId, Strength, UnixMillis,
};
use journeyman_protocol::{MutationKind, StrengthReport};
use journeyman_sandbox::{Sandbox, SandboxSettings, Toolchains};
use journeyman_store::Blobs;
use journeyman_verify::mutation::{
    Mutant, MutationPlan, PlannedFile, TrialContext, TrialLimits, find_mutants, try_mutants,
};
use journeyman_verify::{Check, RunContext, RunLimits, run_checks};
use journeyman_workspace::{Options, Workspace};
use tokio_util::sync::CancellationToken;

/// Copies in which mutations run at the same time: the cores of a small machine.
const COPIES: usize = 2;
/// More than any exercise takes, so that the figures don't depend on the machine.
const BUDGET: Duration = Duration::from_secs(300);
/// Survivors for which the follow-up writes a test: as many as a person reads.
const FOLLOWED_UP: usize = 5;

/// What was measured of one exercise.
struct Row {
    /// The wrong solution with the tests that let it pass.
    wrong: StrengthReport,
    /// The right solution with all tests.
    right: StrengthReport,
    /// The right solution with the tests of the wrong one.
    right_weak: StrengthReport,
    /// A test asked for by a survivor of the wrong solution fails on it.
    caught: bool,
    /// The tests' own time on the solutions, in milliseconds.
    tests_ms: u64,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    journeyman_sandbox::run_helper_if_asked();
    let options: Vec<String> = std::env::args().skip(1).collect();
    let half =
        options.iter().position(|it| it == "--half").and_then(|at| options.get(at + 1)).map(String::as_str);
    let show = options.iter().any(|it| it == "--show");
    let only = options.iter().position(|it| it == "--only").and_then(|at| options.get(at + 1));
    ensure!(matches!(half, None | Some("first" | "second")), "--half takes first or second");
    let mut halves: [Vec<Row>; 2] = [Vec::new(), Vec::new()];
    for (number, exercise) in all_exercises()?.iter().enumerate() {
        let second = number % 2 == 1;
        if half.is_some_and(|half| (half == "second") != second)
            || only.is_some_and(|only| *only != exercise.name)
        {
            continue;
        }
        let row = measure(exercise).await.with_context(|| format!("exercise {}", exercise.name))?;
        print_row(exercise, &row, show);
        halves[usize::from(second)].push(row);
    }
    for (rows, name) in halves.iter().zip(["first half (rules chosen on it)", "second half (set aside)"]) {
        if !rows.is_empty() {
            summarize(name, &rows.iter().collect::<Vec<_>>());
        }
    }
    let all: Vec<&Row> = halves.iter().flatten().collect();
    if half.is_none() && only.is_none() {
        summarize("all", &all);
    }
    Ok(())
}

fn print_row(exercise: &Exercise, row: &Row, show: bool) {
    let score = |report: &StrengthReport| {
        format!("{:>8} {:>3}/{:<3}", report.strength, report.noticed, report.tried - report.invalid)
    };
    println!(
        "{:<10} {:<18} wrong {}  right {}  right, same tests {}  follow-up {}",
        exercise.language,
        exercise.name,
        score(&row.wrong),
        score(&row.right),
        score(&row.right_weak),
        if row.caught { "caught" } else { "missed" },
    );
    if show {
        for (who, report) in [("wrong", &row.wrong), ("right", &row.right)] {
            for survivor in &report.survivors {
                println!("    {who}: {survivor}");
            }
            for line in &report.untested {
                println!("    {who}: {line}");
            }
        }
    }
}

fn summarize(name: &str, rows: &[&Row]) {
    let alarm = |report: &StrengthReport| report.strength != Strength::Notices;
    let count = |of: &dyn Fn(&Row) -> bool| rows.iter().filter(|row| of(row)).count();
    let share = |count: usize| {
        format!("{count} of {} ({:.0} %)", rows.len(), 100.0 * count as f64 / rows.len() as f64)
    };
    println!("\n{name}");
    println!(
        "  wrong solution, tests that let it pass: not `notices`   {}",
        share(count(&|row| alarm(&row.wrong)))
    );
    println!(
        "  right solution, adequate tests: not `notices`           {}",
        share(count(&|row| alarm(&row.right)))
    );
    println!(
        "  right solution, the wrong one's tests: not `notices`    {}",
        share(count(&|row| alarm(&row.right_weak)))
    );
    println!("  a test that a survivor asks for fails on the wrong one  {}", share(count(&|row| row.caught)));
    let reports = || rows.iter().flat_map(|row| [&row.wrong, &row.right, &row.right_weak]);
    let spent: u64 = reports().map(|report| report.duration_ms).sum();
    let tests: u64 = rows.iter().map(|row| row.tests_ms).sum();
    let tried: u32 = reports().map(|report| report.tried).sum();
    println!(
        "  time: {:.1} × the tests' own ({} mutations in {} measurements, {COPIES} at a time)",
        spent as f64 / tests as f64,
        tried,
        reports().count()
    );
}

async fn measure(exercise: &Exercise) -> anyhow::Result<Row> {
    let all: Vec<&str> = exercise.given.iter().chain(&exercise.further).map(String::as_str).collect();
    let given: Vec<&str> = exercise.given.iter().map(String::as_str).collect();
    let wrong_fails = failing_cases(exercise, &exercise.wrong, &all).await?;
    ensure!(failing_cases(exercise, &exercise.right, &all).await?.is_empty(), "the right solution fails");
    ensure!(wrong_fails.iter().all(|case| *case >= given.len()), "the wrong solution fails given tests");
    ensure!(!wrong_fails.is_empty(), "no test tells the wrong solution");
    let mut tests_ms = 0;
    let (wrong, survivors) = strength(exercise, &exercise.wrong, &given, &mut tests_ms).await?;
    let (right, _) = strength(exercise, &exercise.right, &all, &mut tests_ms).await?;
    let (right_weak, _) = strength(exercise, &exercise.right, &given, &mut tests_ms).await?;
    let mut caught = false;
    for mutant in survivors.iter().take(FOLLOWED_UP) {
        let mutated = mutant.apply(&exercise.wrong).context("a mutant fits its text")?;
        let mutant_fails = failing_cases(exercise, &mutated, &all).await?;
        // The test asked for has an input on which the two differ, and expects what is right.
        let asked = match mutant.kind {
            MutationKind::Stop => mutant_fails,
            _ => mutant_fails.symmetric_difference(&wrong_fails).copied().collect(),
        };
        caught |= asked.iter().any(|case| wrong_fails.contains(case));
    }
    Ok(Row { wrong, right, right_weak, caught, tests_ms })
}

/// Measures the strength of tests on a solution. Also returns the mutations that no test noticed,
/// and those that end the program on lines that no test runs.
async fn strength(
    exercise: &Exercise,
    solution: &str,
    cases: &[&str],
    tests_ms: &mut u64,
) -> anyhow::Result<(StrengthReport, Vec<Mutant>)> {
    let path = RelPath::parse(exercise.solution_file())?;
    let found = find_mutants(&path, solution, std::slice::from_ref(&(1..u32::MAX)));
    let stops: Vec<Mutant> = found.statements.iter().filter_map(|statement| statement.stop.clone()).collect();
    let mut plan = MutationPlan::new(vec![PlannedFile { text: solution.to_owned(), found }]);
    let projects: Vec<Project> =
        (0..COPIES).map(|_| Project::new(exercise, solution, cases)).collect::<anyhow::Result<_>>()?;
    let own = projects[0].run(exercise).await?;
    *tests_ms += own.duration_ms;
    ensure!(own.outcome.has_passed(), "the tests fail: {}", own.output);
    let copies = projects.iter().map(|project| project.context.clone()).collect();
    let context = TrialContext { copies, checks: vec![exercise_check(exercise)] };
    let limits = TrialLimits { budget: BUDGET, max_trials: usize::MAX };
    let begun = Instant::now();
    let limit = try_mutants(&mut plan, context, limits, &CancellationToken::new()).await?;
    ensure!(limit.is_none(), "not everything was tried: {limit:?}");
    let mut survivors: Vec<Mutant> = plan.survivors().cloned().collect();
    let mut report = plan.into_report(None);
    report.duration_ms = u64::try_from(begun.elapsed().as_millis())?;
    let untested: BTreeSet<u32> = report.untested.iter().map(|line| line.line).collect();
    survivors.retain(|mutant| report.survivors.iter().any(|shown| *shown == mutant.to_survivor(solution)));
    survivors.splice(0..0, stops.into_iter().filter(|stop| untested.contains(&stop.line)));
    Ok((report, survivors))
}

/// Returns the numbers of the cases that fail for a solution.
async fn failing_cases(
    exercise: &Exercise,
    solution: &str,
    cases: &[&str],
) -> anyhow::Result<BTreeSet<usize>> {
    let ran = Project::new(exercise, solution, cases)?.run(exercise).await?;
    if ran.outcome.has_passed() {
        return Ok(BTreeSet::new());
    }
    let failed =
        |line: &str| ["FAIL", "ERROR", "not ok", "✖", "failed"].iter().any(|word| line.contains(word));
    let is_failing = |case: usize| {
        let name = format!("case_{case:02}");
        ran.output.lines().any(|line| line.contains(&name) && failed(line))
    };
    let failing: BTreeSet<usize> = (0..cases.len()).filter(|case| is_failing(*case)).collect();
    // A program that ends early fails every case.
    Ok(if failing.is_empty() { (0..cases.len()).collect() } else { failing })
}

fn exercise_check(exercise: &Exercise) -> Check {
    Check::new(CheckKind::Test, "exercise", exercise.command(), "")
}

/// A solution with tests, in a directory of its own.
struct Project {
    _dir: tempfile::TempDir,
    context: RunContext,
}

impl Project {
    fn new(exercise: &Exercise, solution: &str, cases: &[&str]) -> anyhow::Result<Self> {
        let dir = tempfile::Builder::new().prefix("jm-notice-").tempdir()?;
        let base = dir.path().canonicalize()?;
        let root = base.join("project");
        std::fs::create_dir(&root)?;
        std::fs::write(root.join(exercise.solution_file()), solution)?;
        std::fs::write(root.join(exercise.test_file()), exercise.tests(cases))?;
        let blobs = Arc::new(Blobs::open(&base.join("blobs"), 1 << 30)?);
        // Commands of our own alone run here.
        let settings = SandboxSettings {
            allow: vec![SandboxTier::Unconfined],
            allow_root: true,
            ..SandboxSettings::default()
        };
        let context = RunContext {
            workspace: Arc::new(Workspace::open(&root, Options::new(base.join("state"), blobs))?),
            sandbox: Arc::new(Sandbox::new(settings)),
            toolchains: Arc::new(host_path()),
            limits: RunLimits::default(),
            needs: SandboxNeeds::NONE,
            caches: None,
            session: SessionId::new(UnixMillis(1), 1),
        };
        Ok(Self { _dir: dir, context })
    }

    async fn run(&self, exercise: &Exercise) -> anyhow::Result<Evidence> {
        let ran =
            run_checks(&[exercise_check(exercise)], &self.context, CancellationToken::new(), &mut |_| {})
                .await?;
        let Some(evidence) = ran.into_iter().next() else { bail!("nothing ran") };
        Ok(evidence)
    }
}

fn host_path() -> Toolchains {
    let mut toolchains = Toolchains::default();
    for name in ["PATH", "HOME"] {
        if let Some(value) = std::env::var_os(name) {
            toolchains.env.insert(name.into(), PathBuf::from(value).into_os_string());
        }
    }
    toolchains
}
