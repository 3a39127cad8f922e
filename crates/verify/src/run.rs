//! Running checks: in order, confined, between two snapshots of the tree.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use journeyman_protocol::{
    CallId, CheckKind, CheckOutcome, Enforcement, Evidence, FileChange, GuardViolation, SandboxNeeds,
    SessionId,
};
use journeyman_sandbox::{Completed, Limits, Request, Sandbox, Streams, Toolchains, clean};
use journeyman_workspace::{ForbiddenChanges, GuardedState, TreeSnapshot, Workspace, WorkspaceError};
use tokio_util::sync::CancellationToken;

use crate::check::not_run;
use crate::guard::forbidden_change_warnings;
use crate::network::network_of;
use crate::outcome::judge;
use crate::reading::read_check;
use crate::reports::Reports;
use crate::{Check, CheckCaches, VerifyError};
use journeyman_policy::GUARD_RULES;

/// Head and tail of a check's output that evidence keeps: some 4,000 tokens, more than feedback
/// quotes.
const EVIDENCE_BYTES: usize = 16 * 1024;
/// Output that is read for diagnostics: a build that prints more has its first and last errors in
/// it.
const CAPTURED_BYTES: usize = 1024 * 1024;
/// Live output shown of one check; who wants more has the evidence.
const LIVE_BYTES: usize = 256 * 1024;

/// Bounds of a verification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunLimits {
    /// Bytes of each check's output that its evidence keeps.
    pub evidence_bytes: usize,
    /// Bytes of each check's output that are read for diagnostics.
    pub captured_bytes: usize,
    /// A ceiling for every check's own time limit.
    pub longest: Option<Duration>,
}

impl Default for RunLimits {
    fn default() -> Self {
        Self { evidence_bytes: EVIDENCE_BYTES, captured_bytes: CAPTURED_BYTES, longest: None }
    }
}

/// The environment in which checks run.
#[derive(Clone)]
pub struct RunContext {
    /// The project.
    pub workspace: Arc<Workspace>,
    /// The sandbox of the commands.
    pub sandbox: Arc<Sandbox>,
    /// The host's compilers and interpreters.
    pub toolchains: Arc<Toolchains>,
    /// Bounds.
    pub limits: RunLimits,
    /// Confinement without which no check runs.
    pub needs: SandboxNeeds,
    /// Caches that are kept for the next round; without them a check's caches are thrown away.
    pub caches: Option<Arc<CheckCaches>>,
    /// The session that files changed by a check are journaled for.
    pub session: SessionId,
}

/// Progress of a verification.
#[allow(clippy::large_enum_variant, reason = "one at a time, handed on at once")]
#[derive(Debug, Clone, PartialEq)]
pub enum Progress {
    /// A check begins.
    Started {
        /// The index of the check, from 0.
        index: usize,
        /// Of how many.
        of: usize,
        /// The check.
        check: Check,
    },
    /// It printed something; cleaned, and bounded in all.
    Output {
        /// The index of the check.
        index: usize,
        /// The output.
        text: String,
    },
    /// It changed files that aren't ignored. They are journaled, so that undoing takes them back.
    Changed {
        /// The index of the check.
        index: usize,
        /// The files.
        changes: Vec<FileChange>,
    },
    /// It made, changed or deleted guarded files or repositories.
    GuardViolated {
        /// The index of the check.
        index: usize,
        /// The check.
        check: Check,
        /// Files that were moved away or restored.
        violations: Vec<GuardViolation>,
    },
    /// It has ended, or was not run.
    Finished {
        /// The index of the check.
        index: usize,
        /// The result.
        evidence: Evidence,
    },
}

/// Runs `checks` in the order given and gives one evidence for each, in the same order.
///
/// Once a check of a kind has failed, checks of later kinds are not run. Once `cancel` is
/// cancelled, nothing more is run. What can't be run is evidence with the reason.
///
/// # Errors
/// [`VerifyError`] when files can't be tracked around a check.
pub async fn run(
    checks: &[Check],
    context: &RunContext,
    cancel: CancellationToken,
    observer: &mut (dyn FnMut(Progress) + Send),
) -> Result<Vec<Evidence>, VerifyError> {
    let mut all = Vec::with_capacity(checks.len());
    let mut failed: Option<CheckKind> = None;
    for (index, check) in checks.iter().enumerate() {
        let reason = match (&check.blocked, failed) {
            _ if cancel.is_cancelled() => Some("interrupted".to_owned()),
            (Some(reason), _) => Some(reason.clone()),
            (None, Some(kind)) if kind != check.kind => Some(format!("{HELD_BACK}{kind} failed first")),
            _ => None,
        };
        let evidence = match reason {
            Some(reason) => evidence_without_output(check, not_run(reason), unused_enforcement()),
            None => {
                observer(Progress::Started { index, of: checks.len(), check: check.clone() });
                let mut check = check.clone();
                check.timeout = context.limits.longest.map_or(check.timeout, |most| most.min(check.timeout));
                run_one_check(index, &check, context, &cancel, observer).await?
            }
        };
        if evidence.outcome.has_failed() {
            failed.get_or_insert(check.kind);
        }
        observer(Progress::Finished { index, evidence: evidence.clone() });
        all.push(evidence);
    }
    Ok(all)
}

/// The reason of a check that didn't run because an earlier kind failed, up to that kind's name.
const HELD_BACK: &str = "not run because ";

/// Returns true for a check that was not run because one of an earlier kind failed.
#[must_use]
pub fn is_held_back(outcome: &CheckOutcome) -> bool {
    matches!(outcome, CheckOutcome::NotRun { reason } if reason.starts_with(HELD_BACK))
}

/// Evidence without output.
fn evidence_without_output(check: &Check, outcome: CheckOutcome, enforcement: Enforcement) -> Evidence {
    let directory = check.directory.clone();
    let affected_only = check.affected_only;
    Evidence { directory, enforcement, affected_only, ..Evidence::new(check.kind, &check.command, outcome) }
}

/// The evidence of a check that wasn't let run, and why; `enforcement` is what it would have run
/// under.
#[must_use]
pub fn refused(check: &Check, reason: impl Into<String>, enforcement: Option<&Enforcement>) -> Evidence {
    evidence_without_output(check, not_run(reason), enforcement.cloned().unwrap_or_else(Enforcement::none))
}

/// Returns the enforcement to report if nothing runs.
fn unused_enforcement() -> Enforcement {
    Enforcement { gaps: vec!["nothing ran".to_owned()], ..Enforcement::none() }
}

/// Runs one check between two snapshots.
async fn run_one_check(
    index: usize,
    check: &Check,
    context: &RunContext,
    cancel: &CancellationToken,
    observer: &mut (dyn FnMut(Progress) + Send),
) -> Result<Evidence, VerifyError> {
    let (before, guard) = begin(check, context).await?;
    let (started, tree) = (context.workspace.now(), Some(before.tree_hash()));
    let mut request = request(check, context);
    let reports = Reports::prepare(check, &context.workspace, &mut request);
    request.witness = before.process_lock();
    request.protected.extend(guard.protected().iter().cloned());
    request.linked = before.hard_links().paths().cloned().collect();
    let ended = confined(index, request, context, cancel, observer).await;
    let kept = ended.as_ref().map_or(true, |completed| completed.enforcement.protected_kept);
    let (changes, aftermath) = end(check, context, before, guard, kept).await?;
    let warnings = forbidden_change_warnings(&aftermath);
    if !aftermath.violations.is_empty() {
        let (check, violations) = (check.clone(), aftermath.violations);
        observer(Progress::GuardViolated { index, check, violations });
    }
    let changes = changes.map_err(|source| untracked_changes_error(check, source))?;
    if !changes.is_empty() {
        observer(Progress::Changed { index, changes });
    }
    let completed = match ended {
        Ok(completed) => completed,
        Err(reason) => {
            let not_run = evidence_without_output(check, not_run(reason), unused_enforcement());
            return Ok(Evidence { diagnostics: warnings, started, tree, ..not_run });
        }
    };
    let outcome = judge(check, &completed.outcome, &completed.combined.text);
    let mut evidence = evidence_without_output(check, outcome, completed.enforcement);
    evidence.duration_ms = u64::try_from(completed.duration.as_millis()).unwrap_or(u64::MAX);
    (evidence.started, evidence.tree) = (started, tree);
    let text = completed.combined.text;
    evidence.output = bounded(&text, context.limits.evidence_bytes);
    let (workspace, ran) = (Arc::clone(&context.workspace), check.clone());
    let readings = in_background(move || read_check(&text, &reports, &ran, &workspace)).await?;
    evidence.tests = readings.tests;
    if evidence.outcome.has_failed() {
        evidence.diagnostics = readings.diagnostics;
    }
    evidence.diagnostics.extend(warnings);
    Ok(evidence)
}

async fn begin(check: &Check, context: &RunContext) -> Result<(TreeSnapshot, GuardedState), VerifyError> {
    let (workspace, session) = (Arc::clone(&context.workspace), context.session.clone());
    let repair = check.repairs.then(repair_call);
    let begun = in_background(move || {
        let before = match repair {
            Some(call) => workspace.commands().begin_call(&session, &call)?,
            None => workspace.commands().begin_checks(&session)?,
        };
        let guard = GuardedState::before_command(&workspace, &before, GUARD_RULES)?;
        Ok((before, guard))
    });
    begun.await?.map_err(|source| untracked_changes_error(check, source))
}

/// The call that a repair is journaled for: what it changes is wanted, and an undo takes it back.
fn repair_call() -> CallId {
    CallId::new("repair")
}

async fn end(
    check: &Check,
    context: &RunContext,
    before: TreeSnapshot,
    guard: GuardedState,
    kept: bool,
) -> Result<(Result<Vec<FileChange>, WorkspaceError>, ForbiddenChanges), VerifyError> {
    let (workspace, session) = (Arc::clone(&context.workspace), context.session.clone());
    let repair = check.repairs.then(repair_call);
    let changes = {
        let workspace = Arc::clone(&workspace);
        move || match repair {
            Some(call) => workspace.commands().end(before, &session, Some(&call)),
            None => workspace.commands().end_checks(before, &session),
        }
    };
    in_background(move || guard.end(&workspace, kept, changes)).await
}

fn untracked_changes_error(check: &Check, source: WorkspaceError) -> VerifyError {
    VerifyError::Workspace { command: check.command.clone(), source }
}

async fn in_background<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, VerifyError> {
    tokio::task::spawn_blocking(work).await.map_err(|error| VerifyError::Stopped(error.to_string()))
}

/// Runs the command itself; the error is the reason why it could not run.
async fn confined(
    index: usize,
    request: Request,
    context: &RunContext,
    cancel: &CancellationToken,
    observer: &mut (dyn FnMut(Progress) + Send),
) -> Result<Completed, String> {
    let mut running =
        context.sandbox.spawn(request, cancel.clone()).await.map_err(|error| error.to_string())?;
    let mut room = LIVE_BYTES;
    while let Some(chunk) = running.next().await {
        let Some(left) = room.checked_sub(chunk.bytes.len()) else { break };
        room = left;
        observer(Progress::Output { index, text: clean(&chunk.bytes) });
    }
    running.wait().await.map_err(|error| error.to_string())
}

/// Returns true for a directory into which an ecosystem's tool downloads dependencies.
fn is_download_cache(ecosystem: &str, directory: &Path) -> bool {
    let names: &[&str] = match ecosystem {
        "cargo" => &["registry", "git"],
        "go" => &["pkg", "mod"],
        _ => &[],
    };
    directory.file_name().is_some_and(|name| names.iter().any(|known| name == *known))
}

/// The check as the sandbox takes it.
fn request(check: &Check, context: &RunContext) -> Request {
    /// Plain output, no prompts, no watching for changes, no caches beside the sources.
    const PLAIN_OUTPUT_VARIABLES: [(&str, &str); 9] = [
        ("CI", "1"),
        ("NO_COLOR", "1"),
        ("CARGO_TERM_COLOR", "never"),
        ("RUST_BACKTRACE", "0"),
        ("PY_COLORS", "0"),
        ("PYTHONDONTWRITEBYTECODE", "1"),
        ("PYTHONPYCACHEPREFIX", "/tmp/pycache"),
        ("NPM_CONFIG_UPDATE_NOTIFIER", "false"),
        ("CTEST_OUTPUT_ON_FAILURE", "1"),
    ];
    let root = context.workspace.root();
    let mut request = Request::shell(root, &check.command);
    request.network = network_of(check.network);
    let mut request = request.with_toolchains(&context.toolchains);
    if check.fills_caches {
        // Into the layer that is thrown away, nothing would have been fetched.
        let caches = std::mem::take(&mut request.layered);
        let (own, others): (Vec<PathBuf>, Vec<PathBuf>) =
            caches.into_iter().partition(|cache| cache.is_dir() && is_download_cache(check.ecosystem, cache));
        request.writable.extend(own);
        request.layered = others;
    }
    request
        .env
        .extend(PLAIN_OUTPUT_VARIABLES.map(|(name, value)| (OsString::from(name), OsString::from(value))));
    if let Some(directory) = &check.directory {
        request.cwd = root.join(directory.as_path());
    }
    request.base = context.workspace.base();
    request.needs = context.needs;
    request.streams = Streams::Merged;
    request.limits =
        Limits { wall: check.timeout, output_bytes: context.limits.captured_bytes, ..Limits::default() };
    if let Some(caches) = &context.caches {
        caches.add_to(&mut request);
    }
    request
}

/// Head and tail of `text`, about `limit` bytes in all, cut between lines where lines are short.
fn bounded(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    let half = limit / 2;
    let head = text.get(..text.floor_char_boundary(half)).unwrap_or_default();
    let head = head.rfind('\n').filter(|end| *end > half / 2).and_then(|end| head.get(..end)).unwrap_or(head);
    let tail = text.get(text.ceil_char_boundary(text.len() - half)..).unwrap_or_default();
    let tail =
        tail.find('\n').filter(|end| *end < half / 2).and_then(|end| tail.get(end + 1..)).unwrap_or(tail);
    let left_out = text.len() - head.len() - tail.len();
    format!("{head}\n… {left_out} bytes left out …\n{tail}")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn output_keeps_head_and_tail() {
        let lines: String = (0..100).map(|n| format!("line {n}\n")).collect();
        let kept = bounded(&lines, 100);
        assert!(kept.starts_with("line 0\n") && kept.ends_with("line 99\n"), "{kept}");
        assert!(kept.contains("bytes left out"));
        assert_eq!(bounded("short", 100), "short");
    }

    proptest! {
        #[test]
        fn bounding_never_panics_and_holds(text in "\\PC{0,300}", limit in 0usize..200) {
            prop_assert!(bounded(&text, limit).len() <= limit + 60);
        }
    }
}
