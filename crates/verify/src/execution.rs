//! Runs one check's command confined, judges its outcome and reads its output.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use journeyman_protocol::{CheckOutcome, Enforcement, Evidence};
use journeyman_sandbox::{CapturedOutput, CompletedCommand, Limits, Request, StdioMode, clean_output};
use journeyman_workspace::{GuardedState, TreeSnapshot};
use tokio_util::sync::CancellationToken;

use crate::check::not_run_outcome;
use crate::check_output::read_check_output;
use crate::network::network_of;
use crate::outcome::{CheckOutput, judge_outcome};
use crate::progress::{OrderedProgress, Progress};
use crate::reports::TestReports;
use crate::run_context::RunContext;
use crate::{Check, CheckCaches, VerifyError};

/// Maximum live output shown of one check; the evidence has more.
const MAX_LIVE_BYTES: usize = 256 * 1024;

/// The state of the tree before checks that run at the same time, and the caches that they share.
pub(crate) struct PreCheckState {
    pub(crate) before: TreeSnapshot,
    pub(crate) guard: GuardedState,
    pub(crate) caches: Option<Arc<CheckCaches>>,
}

/// The result of a check that ran or could not run.
pub(crate) struct CheckExecution {
    pub(crate) evidence: Evidence,
    /// False if the sandbox didn't keep protected paths from being changed.
    pub(crate) protected_kept: bool,
}

/// Runs a check and reads its output and reports. Changes of the tree are not looked at here.
pub(crate) async fn execute_check(
    (index, check): (usize, &Check),
    context: &RunContext,
    around: &PreCheckState,
    stop: CancellationToken,
    progress: &OrderedProgress<'_>,
) -> Result<CheckExecution, VerifyError> {
    let (started, tree) = (context.workspace.now(), Some(around.before.tree_hash()));
    let mut request = sandbox_request(check, context, around.caches.as_deref());
    let reports = TestReports::prepare(check, &context.workspace, &mut request);
    request.witness = around.before.process_lock();
    request.protected.extend(around.guard.protected_paths().iter().cloned());
    request.linked = around.before.hard_links().paths().cloned().collect();
    let completed = match run_confined(index, request, context, stop, progress).await {
        Ok(completed) => completed,
        Err(reason) => {
            let evidence = evidence_without_output(check, not_run_outcome(reason), unused_enforcement());
            return Ok(CheckExecution {
                evidence: Evidence { started, tree, ..evidence },
                protected_kept: true,
            });
        }
    };
    let protected_kept = completed.enforcement.protected_kept;
    let CapturedOutput { text, dropped_bytes, .. } = completed.combined;
    let (workspace, ran, read) = (Arc::clone(&context.workspace), check.clone(), text.clone());
    let readings = run_blocking(move || read_check_output(&read, &reports, &ran, &workspace)).await?;
    let output = CheckOutput { text: &text, is_cut: dropped_bytes > 0, reported: readings.tests };
    let outcome = judge_outcome(check, &completed.outcome, &output);
    let mut evidence = evidence_without_output(check, outcome, completed.enforcement);
    evidence.duration_ms = u64::try_from(completed.duration.as_millis()).unwrap_or(u64::MAX);
    (evidence.started, evidence.tree) = (started, tree);
    evidence.output = keep_head_and_tail(&text, context.limits.evidence_bytes, dropped_bytes);
    evidence.tests = readings.tests;
    if evidence.outcome.has_failed() {
        evidence.diagnostics = readings.diagnostics;
    }
    Ok(CheckExecution { evidence, protected_kept })
}

/// Creates evidence without output.
pub(crate) fn evidence_without_output(
    check: &Check,
    outcome: CheckOutcome,
    enforcement: Enforcement,
) -> Evidence {
    let directory = check.directory.clone();
    let affected_only = check.affected_only;
    Evidence { directory, enforcement, affected_only, ..Evidence::new(check.kind, &check.command, outcome) }
}

/// Returns the enforcement to report if nothing runs.
pub(crate) fn unused_enforcement() -> Enforcement {
    Enforcement { gaps: vec!["nothing ran".to_owned()], ..Enforcement::none() }
}

pub(crate) async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, VerifyError> {
    tokio::task::spawn_blocking(work).await.map_err(|error| VerifyError::Stopped(error.to_string()))
}

/// Runs the command in the sandbox; the error is the reason why the command could not run.
async fn run_confined(
    index: usize,
    request: Request,
    context: &RunContext,
    stop: CancellationToken,
    progress: &OrderedProgress<'_>,
) -> Result<CompletedCommand, String> {
    let mut running = context.sandbox.spawn(request, stop).await.map_err(|error| error.to_string())?;
    let mut room = MAX_LIVE_BYTES;
    while let Some(chunk) = running.next_chunk().await {
        let Some(left) = room.checked_sub(chunk.bytes.len()) else { break };
        room = left;
        progress.report_in_turn(index, Progress::Output { index, text: clean_output(&chunk.bytes) });
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

/// Returns the request for the sandbox to run a check.
fn sandbox_request(check: &Check, context: &RunContext, caches: Option<&CheckCaches>) -> Request {
    /// Variables for plain output, no prompts, no watching for changes, no caches beside the
    /// sources.
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
    let mut request = Request::for_shell_command(root, &check.command);
    request.network = network_of(check.network);
    let mut request = request.with_toolchains(&context.toolchains);
    if check.fills_caches {
        // In the layer, which is discarded, what is fetched would be lost.
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
    request.base = context.workspace.project_copy();
    request.needs = context.needs;
    request.streams = StdioMode::Merged;
    request.limits =
        Limits { wall: check.timeout, output_bytes: context.limits.captured_bytes, ..Limits::default() };
    if let Some(caches) = caches {
        caches.add_to_request(&mut request);
    }
    request
}

/// Returns the head and tail of `text`, about `limit` bytes in all, cut between lines if lines are
/// short. Of the middle, `dropped_bytes` are not in the text any more.
fn keep_head_and_tail(text: &str, limit: usize, dropped_bytes: u64) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    let half = limit / 2;
    let head = text.get(..text.floor_char_boundary(half)).unwrap_or_default();
    let head = head.rfind('\n').filter(|end| *end > half / 2).and_then(|end| head.get(..end)).unwrap_or(head);
    let tail = text.get(text.ceil_char_boundary(text.len() - half)..).unwrap_or_default();
    let tail =
        tail.find('\n').filter(|end| *end < half / 2).and_then(|end| tail.get(end + 1..)).unwrap_or(tail);
    let left_out = u64::try_from(text.len() - head.len() - tail.len()).unwrap_or(u64::MAX);
    let left_out = left_out.saturating_add(dropped_bytes);
    format!("{head}\n… {left_out} bytes left out …\n{tail}")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn output_keeps_head_and_tail() {
        let lines: String = (0..100).map(|n| format!("line {n}\n")).collect();
        let kept = keep_head_and_tail(&lines, 100, 0);
        assert!(kept.starts_with("line 0\n") && kept.ends_with("line 99\n"), "{kept}");
        assert!(kept.contains("… 694 bytes left out …"), "{kept}");
        let cut = keep_head_and_tail(&lines, 100, 1_000_000);
        assert!(cut.contains("… 1000694 bytes left out …"), "{cut}");
        assert_eq!(keep_head_and_tail("short", 100, 0), "short");
    }

    proptest! {
        #[test]
        fn bounding_never_panics_and_holds(text in "\\PC{0,300}", limit in 0usize..200) {
            prop_assert!(keep_head_and_tail(&text, limit, 0).len() <= limit + 60);
        }
    }
}
