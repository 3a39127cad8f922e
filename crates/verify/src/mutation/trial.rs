//! Runs the project's tests on mutations, in copies of the project.

use std::sync::Arc;
use std::time::Duration;

use journeyman_protocol::{Evidence, RelPath};
use journeyman_workspace::{Change, ChangeSet, ExpectedState, Workspace};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::language_words::is_compiled;
use super::mutant::Mutant;
use super::plan::{MutationPlan, PlannedMutant, TrialOutcome};
use crate::test_counts::count_tests;
use crate::test_files::file_name;
use crate::{Check, RunContext, VerifyError, run_checks};

/// The time limit of a mutation: this many times the duration of the tests, plus a fixed time for a
/// rebuild. A hang counts as noticed.
const TIMEOUT_FACTOR: u32 = 4;
const TIMEOUT_MARGIN: Duration = Duration::from_secs(3);
/// Words of builds that failed, so that no test ran.
const BUILD_FAILURE_PHRASES: [&str; 6] = [
    "could not compile",
    "[build failed]",
    "COMPILATION ERROR",
    ": error TS",
    ": error CS",
    "[setup failed]",
];

/// Limits of the trials.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrialLimits {
    /// The wall time after which no more mutations are tried; the tests on the unmutated copies
    /// count.
    pub budget: Duration,
    /// Maximum number of mutations.
    pub max_trials: usize,
}

/// The tests and the copies that they run in, one mutation in each at a time.
pub struct TrialContext {
    /// The copies, with all that checks need. Each has its own caches, because the copies have the
    /// same paths.
    pub copies: Vec<RunContext>,
    /// The checks that passed and prove the change, in their order.
    pub checks: Vec<Check>,
}

/// A finished run of the checks on a mutation.
struct FinishedTrial {
    copy: ProjectCopy,
    planned: PlannedMutant,
    outcome: Result<Option<TrialOutcome>, VerifyError>,
}

/// A copy of the project, the file that is mutated in it, and that file's original text.
struct ProjectCopy {
    context: RunContext,
    mutated: Option<(RelPath, Arc<str>)>,
}

/// Runs the tests on the plan's mutations until all are tried or a limit is reached. Returns the
/// reason why not everything was tried, if so. The tests run unmutated in each copy first; if they
/// fail there, nothing is tried.
///
/// # Errors
/// [`VerifyError`] when files can't be tracked around a check.
pub async fn try_mutants(
    plan: &mut MutationPlan,
    context: TrialContext,
    limits: TrialLimits,
    stop: &CancellationToken,
) -> Result<Option<String>, VerifyError> {
    let begun = Instant::now();
    let deadline = begun + limits.budget;
    let running = stop.child_token();
    let TrialContext { copies, checks } = context;
    let timeout = match run_unmutated(&copies, &checks, limits.budget, &running).await? {
        Ok(took) => took * TIMEOUT_FACTOR + TIMEOUT_MARGIN,
        Err(reason) => return Ok(Some(reason)),
    };
    let mut idle: Vec<ProjectCopy> =
        copies.into_iter().map(|context| ProjectCopy { context, mutated: None }).collect();
    for copy in &mut idle {
        copy.context.limits.longest = Some(timeout);
        copy.context.limits.at_once = 1;
    }
    let checks: Arc<[Check]> = checks.into();
    let mut trials: JoinSet<FinishedTrial> = JoinSet::new();
    let mut tried = 0;
    loop {
        let limit = match () {
            () if stop.is_cancelled() => Some("stopped"),
            () if Instant::now() >= deadline => Some("the time for it was used up"),
            () if tried >= limits.max_trials => Some("there are more mutations than are tried"),
            () => None,
        };
        if let Some(limit) = limit {
            running.cancel();
            while let Some(ended) = trials.join_next().await {
                let FinishedTrial { planned, outcome, .. } = ended.map_err(join_error)?;
                if let Some(outcome) = outcome? {
                    plan.record_outcome(planned, outcome);
                }
            }
            return Ok(Some(limit.to_owned()));
        }
        if let Some(copy) = idle.pop() {
            if let Some((planned, text)) = plan.next_mutant() {
                let text = Arc::from(text);
                trials.spawn(try_mutant(copy, planned, text, Arc::clone(&checks), running.clone()));
                tried += 1;
                continue;
            }
            idle.push(copy);
        }
        let ended = tokio::time::timeout_at(deadline, trials.join_next()).await;
        match ended {
            Ok(Some(ended)) => {
                let FinishedTrial { copy, planned, outcome } = ended.map_err(join_error)?;
                if let Some(outcome) = outcome? {
                    plan.record_outcome(planned, outcome);
                }
                idle.push(copy);
            }
            Ok(None) => return Ok(None),
            // The next iteration ends the other trials at the deadline.
            Err(_) => {}
        }
    }
}

fn join_error(error: tokio::task::JoinError) -> VerifyError {
    VerifyError::Stopped(error.to_string())
}

/// Runs the tests once in each copy, at the same time, which also warms its caches. Returns the
/// longest time, or the reason why they don't pass.
async fn run_unmutated(
    copies: &[RunContext],
    checks: &[Check],
    budget: Duration,
    stop: &CancellationToken,
) -> Result<Result<Duration, String>, VerifyError> {
    let mut runs = JoinSet::new();
    for context in copies {
        let (mut context, checks, stop) = (context.clone(), checks.to_vec(), stop.clone());
        (context.limits.longest, context.limits.at_once) = (Some(budget), 1);
        runs.spawn(async move { run_checks(&checks, &context, stop, &mut |_| {}).await });
    }
    let mut longest = Duration::ZERO;
    while let Some(ended) = runs.join_next().await {
        let evidence = ended.map_err(join_error)??;
        if let Some(bad) = evidence.iter().find(|one| !one.outcome.has_passed()) {
            return Ok(Err(format!("`{}` doesn't pass in a copy of the project", bad.command)));
        }
        let took: u64 = evidence.iter().map(|one| one.duration_ms).sum();
        longest = longest.max(Duration::from_millis(took));
    }
    Ok(Ok(longest))
}

async fn try_mutant(
    mut copy: ProjectCopy,
    planned: PlannedMutant,
    text: Arc<str>,
    checks: Arc<[Check]>,
    stop: CancellationToken,
) -> FinishedTrial {
    let outcome = match write_mutant(&mut copy, &planned.mutant, text).await {
        Ok(true) => run_checks(&checks, &copy.context, stop, &mut |_| {})
            .await
            .map(|ran| judge_trial(&planned.mutant.path, &ran)),
        Ok(false) => Ok(Some(TrialOutcome::Invalid)),
        Err(error) => Err(error),
    };
    FinishedTrial { copy, planned, outcome }
}

/// Writes the mutation into the copy and reverts the one before it. Returns false if the copy's
/// file isn't the one that the mutation was made for.
async fn write_mutant(copy: &mut ProjectCopy, mutant: &Mutant, text: Arc<str>) -> Result<bool, VerifyError> {
    let Some(mutated) = mutant.apply(&text) else { return Ok(false) };
    let before = copy.mutated.replace((mutant.path.clone(), text));
    let mut files = vec![(mutant.path.clone(), mutated.into_bytes())];
    if let Some((path, text)) = before.filter(|(path, _)| *path != mutant.path) {
        files.push((path, text.as_bytes().to_vec()));
    }
    let (workspace, session) = (Arc::clone(&copy.context.workspace), copy.context.session.clone());
    let write = move || {
        let write = |(path, content)| Change::Write { path, content, expected: ExpectedState::Anything };
        let changes = files.into_iter().map(write).collect();
        Workspace::apply(&workspace, ChangeSet { call: None, session, description: None, changes })
    };
    let written = tokio::task::spawn_blocking(write).await.map_err(join_error)?;
    let command = format!("a mutation of {}", mutant.path);
    written.map(|_| true).map_err(|source| VerifyError::Workspace { command, source })
}

/// Returns the outcome of the tests on a mutated file; `None` if they were interrupted.
#[must_use]
pub fn judge_trial(path: &RelPath, evidence: &[Evidence]) -> Option<TrialOutcome> {
    let Some(failed) = evidence.iter().find(|one| one.outcome.has_failed()) else {
        return match evidence.iter().all(|one| one.outcome.has_passed()) {
            true => Some(TrialOutcome::Survived),
            false if evidence.iter().any(|one| crate::has_run_no_test(&one.outcome)) => {
                Some(TrialOutcome::Noticed)
            }
            false => None,
        };
    };
    let built = !is_compiled(path) || !is_build_failure(path, &failed.output);
    Some(if built { TrialOutcome::Noticed } else { TrialOutcome::Invalid })
}

/// Returns true if a compiler refused the file, so that no test ran.
fn is_build_failure(path: &RelPath, output: &str) -> bool {
    if count_tests(output).tests.is_some_and(|tests| tests.passed + tests.failed > 0) {
        return false;
    }
    let path = path.to_string();
    let name = file_name(&path);
    output.lines().any(|line| {
        let is_diagnostic =
            || line.find(name).is_some_and(|at| line.get(at..).is_some_and(|it| it.contains(": error")));
        BUILD_FAILURE_PHRASES.iter().any(|words| line.contains(words)) || is_diagnostic()
    })
}

#[cfg(test)]
mod tests {
    use journeyman_protocol::{CheckKind, CheckOutcome};

    use super::*;

    fn path(path: &str) -> RelPath {
        RelPath::parse(path).unwrap()
    }

    fn evidence(outcome: CheckOutcome, output: &str) -> Evidence {
        Evidence { output: output.to_owned(), ..Evidence::new(CheckKind::Test, "make test", outcome) }
    }

    #[test]
    fn a_mutation_that_does_not_build_was_not_noticed() {
        use TrialOutcome::{Invalid, Noticed};
        for (name, output, outcome) in [
            ("src/lib.rs", "error: could not compile `x` (lib) due to 1 previous error", Invalid),
            (
                "src/lib.rs",
                "running 3 tests\ntest a ... FAILED\ntest result: FAILED. 2 passed; 1 failed;",
                Noticed,
            ),
            ("src/a.c", "src/a.c:3:9: error: 'x' undeclared", Invalid),
            ("src/a.c", "t: t.c:4: main: Assertion `f(1) == 2' failed.", Noticed),
            ("a.go", "FAIL\tx [build failed]", Invalid),
            ("a.go", "--- FAIL: TestA (0.00s)\nFAIL\tx\t0.01s", Noticed),
            ("src/A.java", "/p/src/A.java:3: error: incompatible types", Invalid),
            ("src/a.ts", "src/a.ts(3,5): error TS2322: Type", Invalid),
            // What isn't compiled fails in the tests.
            ("a.py", "NameError: name 'x' is not defined\nRan 1 test in 0.1s\nFAILED (errors=1)", Noticed),
        ] {
            let failed = CheckOutcome::Failed { exit_code: Some(1), reason: String::new() };
            assert_eq!(
                judge_trial(&path(name), &[evidence(failed, output)]),
                Some(outcome),
                "{name}: {output}"
            );
        }
    }

    #[test]
    fn tests_that_pass_or_were_interrupted_are_told_apart() {
        let passed = evidence(CheckOutcome::Passed, "");
        assert_eq!(judge_trial(&path("a.py"), &[passed]), Some(TrialOutcome::Survived));
        let interrupted = CheckOutcome::NotRun { reason: "interrupted".to_owned() };
        assert_eq!(judge_trial(&path("a.py"), &[evidence(interrupted, "")]), None);
    }
}
