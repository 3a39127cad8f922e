//! Checks that run once more with the tests as they were before the session changed them.
//!
//! A session that changes tests until they pass has proven nothing, so the checks that passed run
//! again in a copy of the tree, in which test files and the configuration of test runners have
//! their original contents. If the change renamed, moved or removed the tested code, the tests get
//! the new names first. New files that influence the original tests are left out. Manifests get
//! their original test settings; everything else in them stays, because the change may need it.
//!
//! If no test runs without the new files, they stay: the tests may not load without them.

use std::fmt::Write as _;
use std::sync::Arc;

use journeyman_protocol::{CheckKind, CheckOutcome, Evidence, RelPath, RunOutcome, SessionId, Severity};
use journeyman_verify::Check;
use journeyman_verify::honesty::{
    ChangedFile, OriginalTest, find_changed_test_sources, translate_original_tests,
};
use journeyman_verify::test_files::{is_runner_configuration, is_test_configuration, is_test_file};
use journeyman_verify::test_setup::{
    is_data_file, is_discovered_test_file, is_program_source, is_test_setup, may_change_other_tests,
    with_original_test_settings,
};
use journeyman_workspace::{
    Change, ChangeSet, ChangedContent, CheckpointId, ExpectedState, ListOptions, Listing, Workspace,
    WorkspaceError,
};

use super::check_setup::MAX_VISITED_FILES;
use super::scratch_copy::{MAX_COPIED_FILES, ScratchCopy, SessionTree};
use super::summary::shorten_command;
use super::unchanged_files;
use crate::blocking::run_blocking;
use crate::session::context::SessionContext;
use crate::session::task_end::TaskEnd;

/// Maximum number of changed test files that a summary names.
const MAX_NAMED_FILES: usize = 3;

/// Maximum bytes of source files that are read to find the data files that they name.
const MAX_READ_SOURCE_BYTES: u64 = 16 << 20;

/// The treatment of new test setup, that is, new files and settings that influence tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NewTestSetup {
    /// New test setup and new tests are left out, and manifests have their original test settings.
    LeftOut,
    /// New test setup stays as the session left it.
    Kept,
}

/// The test files that the session changed, and the copy in which they have their original
/// contents.
pub(crate) struct OriginalTests {
    changed: Vec<RelPath>,
    /// True if something new was left out of the copy.
    leaves_out: bool,
    copy: Result<ScratchCopy, String>,
}

/// The result of running the original tests.
#[derive(PartialEq)]
pub(crate) enum OriginalTestsOutcome {
    /// The original tests don't contradict the passed checks. Those of the `proven` files ran, and
    /// none failed, not even one that failed before the task.
    Passed { proven: Vec<RelPath> },
    /// No test could run without the files that were left out.
    NotLoaded,
    /// The change is not verified.
    Contradicted(TaskEnd),
}

impl OriginalTests {
    /// Prepares the copy, if the session changed or deleted tests since the checkpoint, or added
    /// test setup. `None` if it did not. Changes of `accepted` files stay, because the user
    /// accepted them.
    pub(crate) async fn prepare(
        cx: &SessionContext,
        since: Option<CheckpointId>,
        accepted: Vec<RelPath>,
        contents: Vec<ChangedContent>,
        setup: NewTestSetup,
    ) -> Option<Self> {
        let (tree, owner) = (SessionTree::from_context(cx, since)?, cx.session.clone());
        let workspace = Arc::clone(&cx.workspace);
        let prepare = move || {
            let files = contents.into_iter().filter(|content| !accepted.contains(&content.path));
            let mut files: Vec<ChangedFile> = files.filter_map(changed_file).collect();
            let options = ListOptions { limit: MAX_VISITED_FILES, ..ListOptions::default() };
            let listing = workspace.list(options).unwrap_or_default();
            let mut data = changed_test_data(&workspace, &listing, &files);
            files.extend(unchanged_files::find_unchanged_build_files(&workspace, &listing, &files));
            data.extend(find_changed_test_sources(&files));
            prepare_copy(&tree, &owner, &accepted, &TextChange { files: &files, data: &data, setup })
        };
        let prepared = run_blocking("restoring the original tests", prepare).await;
        let failed = |reason| Some(Self { changed: Vec::new(), leaves_out: false, copy: Err(reason) });
        match prepared {
            Ok(Ok(prepared)) => prepared,
            // Then it isn't known which tests were changed.
            Ok(Err(error)) => failed(error.to_string()),
            Err(error) => failed(error.to_string()),
        }
    }

    /// Returns the copy as a workspace, or the reason why there is none.
    pub(crate) fn workspace(&self) -> Result<Arc<Workspace>, &str> {
        self.copy.as_ref().map(ScratchCopy::workspace).map_err(String::as_str)
    }

    /// Removes the copy. `evidence` is what the checks found in it.
    pub(crate) async fn finish(self, evidence: &[Evidence]) -> OriginalTestsOutcome {
        let tests = list_files(&self.changed);
        let end = match &self.copy {
            Err(reason) => Some(format!("{tests} changed, and the original tests can't be run: {reason}")),
            Ok(_) => evidence.iter().find_map(|one| match &one.outcome {
                CheckOutcome::Failed { .. } if !one.has_relevant_failure() => None,
                CheckOutcome::Failed { reason, .. } => Some(format!(
                    "with {tests} as before the change, `{}` fails: {reason}",
                    shorten_command(&one.command)
                )),
                // There were no tests before.
                outcome if journeyman_verify::has_run_no_test(outcome) => None,
                CheckOutcome::NotRun { reason } => Some(format!(
                    "with {tests} as before the change, `{}` could not run: {reason}",
                    shorten_command(&one.command)
                )),
                CheckOutcome::Passed => None,
            }),
        };
        let names_test =
            |copy: &ScratchCopy| evidence.iter().any(|one| names_failed_test(one, &copy.workspace()));
        let may_need_more = self.leaves_out && self.copy.as_ref().is_ok_and(|copy| !names_test(copy));
        if let Ok(scratch) = self.copy {
            scratch.remove().await;
        }
        match end {
            None => {
                let has_passed = evidence.iter().all(|one| one.outcome == CheckOutcome::Passed);
                let has_tested = evidence.iter().any(|one| one.tests.is_some_and(|tests| tests.passed > 0));
                let is_proven = has_passed && has_tested;
                OriginalTestsOutcome::Passed { proven: if is_proven { self.changed } else { Vec::new() } }
            }
            Some(_) if may_need_more => OriginalTestsOutcome::NotLoaded,
            Some(why) => {
                let summary = format!("finished, but not verified: {why}");
                OriginalTestsOutcome::Contradicted(TaskEnd::new(RunOutcome::Unverified, summary))
            }
        }
    }
}

/// Returns true if a test ran and failed, which is more than a file of tests that doesn't load:
/// runners report that by the name of the file or module.
fn names_failed_test(evidence: &Evidence, copy: &Workspace) -> bool {
    let is_file = |name: &str| {
        let module = format!("{}.py", name.replace('.', "/"));
        let paths = [name, module.as_str()].into_iter().filter_map(|path| RelPath::parse(path).ok());
        paths.into_iter().any(|path| copy.read(&path, u64::MAX).is_ok())
    };
    let errors = evidence.diagnostics.iter().filter(|found| found.severity == Severity::Error);
    evidence.has_relevant_failure()
        && errors.filter_map(|found| found.test.as_deref()).any(|name| !is_file(name))
}

/// The texts of a change.
struct TextChange<'a> {
    files: &'a [ChangedFile],
    /// Changed data that only tests read, and sources that a build compiles into tests.
    data: &'a [RelPath],
    setup: NewTestSetup,
}

/// Returns the changed data files that tests name, and no program of the product does: they hold
/// what tests expect. None where the product is too large to tell.
fn changed_test_data(workspace: &Workspace, listing: &Listing, files: &[ChangedFile]) -> Vec<RelPath> {
    let is_data = |file: &&ChangedFile| {
        let path = file.path.as_str().unwrap_or_default();
        file.old.is_some()
            && is_data_file(path)
            && !is_test_or_runner_config(&file.path)
            && !is_test_configuration(path)
    };
    let mut data: Vec<&ChangedFile> = files.iter().filter(is_data).collect();
    if data.is_empty() {
        return Vec::new();
    }
    let mut named_by_tests = Vec::new();
    let mut left = MAX_READ_SOURCE_BYTES;
    for path in listing.paths.iter().filter(|path| path.as_str().is_some_and(is_program_source)) {
        let Some(text) = workspace.read(path, left).ok().and_then(|it| it.text().map(str::to_owned)) else {
            return Vec::new();
        };
        left = left.saturating_sub(u64::try_from(text.len()).unwrap_or(u64::MAX));
        let names = |file: &ChangedFile| {
            let path = file.path.to_string();
            text.contains(path.rsplit_once('/').map_or(path.as_str(), |(_, name)| name))
        };
        if is_test_or_runner_config(path) {
            named_by_tests.extend(data.iter().filter(|file| names(file)).map(|file| file.path.clone()));
        } else {
            data.retain(|file| !names(file));
        }
    }
    data.into_iter().map(|file| file.path.clone()).filter(|path| named_by_tests.contains(path)).collect()
}

/// Makes the copy with the original tests; `None` if the session changed neither tests nor test
/// setup.
fn prepare_copy(
    tree: &SessionTree,
    owner: &SessionId,
    accepted: &[RelPath],
    change: &TextChange<'_>,
) -> Result<Option<OriginalTests>, WorkspaceError> {
    let TextChange { files, data, setup } = *change;
    let renamed = translate_original_tests(files);
    let manifests = match setup {
        NewTestSetup::LeftOut => files.iter().filter_map(original_manifest).collect(),
        NewTestSetup::Kept => Vec::new(),
    };
    let is_moved = |path: &RelPath| renamed.iter().any(|one| one.before == *path && one.path != *path);
    let is_counterpart = |path: &RelPath| renamed.iter().any(|one| one.path == *path);
    // Without it, the modules of the directory would have other names.
    let emptied: Vec<RelPath> = match setup {
        NewTestSetup::LeftOut => {
            files.iter().filter(|file| is_new_test_package(file)).map(|it| it.path.clone()).collect()
        }
        NewTestSetup::Kept => Vec::new(),
    };
    let is_left_out = |path: &RelPath| {
        let name = path.to_string();
        setup == NewTestSetup::LeftOut
            && !is_counterpart(path)
            && !emptied.contains(path)
            && (is_test_setup(&name) || is_discovered_test_file(&name))
    };
    let is_restored = |path: &RelPath, was_there: bool| {
        let is_original = is_test_or_runner_config(path) && !is_moved(path) || data.contains(path);
        let concerns = if was_there { is_original } else { is_left_out(path) };
        concerns && !accepted.contains(path)
    };
    let (changes, restored) = tree.diff_with_restored_files(owner, is_restored)?;
    let is_new = |path: &&RelPath| files.iter().any(|file| file.path == **path && file.old.is_none());
    let (new, mut changed): (Vec<RelPath>, Vec<RelPath>) =
        restored.into_iter().partition(|path| is_new(&path));
    // A test file that only has the product's new names tests the same as before.
    changed.retain(|path| !renamed.iter().any(|one| one.path == *path && is_left_unchanged(one, files)));
    let moved = renamed.iter().filter(|one| one.before != one.path && !is_left_unchanged(one, files));
    changed.extend(moved.map(|one| one.before.clone()));
    changed.extend(manifests.iter().map(|(path, _)| path.clone()));
    changed.extend(new.iter().chain(&emptied).filter(|path| may_influence_other_tests(path, files)).cloned());
    if changed.is_empty() {
        return Ok(None);
    }
    changed.sort();
    let leaves_out = !new.is_empty() || !manifests.is_empty() || !emptied.is_empty();
    let empty = emptied.into_iter().map(|path| (path, String::new()));
    let texts: Vec<(RelPath, String)> =
        renamed.into_iter().map(|one| (one.path, one.text)).chain(manifests).chain(empty).collect();
    let copy = tree.make_copy(owner, &changes, MAX_COPIED_FILES).and_then(|scratch| {
        let written = write_texts(&scratch.workspace(), owner, texts);
        written.map_err(|error| error.to_string()).map(|()| scratch)
    });
    Ok(Some(OriginalTests { changed, leaves_out, copy }))
}

/// Returns true for a new file that makes a package of a directory of tests.
fn is_new_test_package(file: &ChangedFile) -> bool {
    let path = file.path.to_string();
    file.old.is_none() && path.ends_with("/__init__.py") && is_test_file(&path) && is_test_setup(&path)
}

/// Returns a manifest with its original test settings.
fn original_manifest(file: &ChangedFile) -> Option<(RelPath, String)> {
    let old = file.old.as_deref().unwrap_or_default();
    let text = with_original_test_settings(file.path.as_str()?, old, file.new.as_ref()?)?;
    Some((file.path.clone(), text))
}

/// Returns true if the session's file equals the original test with the new names.
fn is_left_unchanged(original: &OriginalTest, files: &[ChangedFile]) -> bool {
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let now = files.iter().find(|file| file.path == original.path).and_then(|file| file.new.as_ref());
    now.is_some_and(|now| words(now) == words(&original.text))
}

/// Returns true for a new file that may influence the results of other tests.
fn may_influence_other_tests(path: &RelPath, files: &[ChangedFile]) -> bool {
    let text = files.iter().find(|file| file.path == *path).and_then(|file| file.new.as_ref());
    let is_empty = text.is_some_and(|text| text.trim().is_empty());
    !is_empty && is_test_setup(&path.to_string()) || text.is_some_and(|text| may_change_other_tests(text))
}

fn write_texts(
    copy: &Arc<Workspace>,
    owner: &SessionId,
    texts: Vec<(RelPath, String)>,
) -> Result<(), WorkspaceError> {
    let write = |(path, text): (RelPath, String)| Change::Write {
        path,
        content: text.into_bytes(),
        expected: ExpectedState::Anything,
    };
    let changes: Vec<Change> = texts.into_iter().map(write).collect();
    if changes.is_empty() {
        return Ok(());
    }
    let set = ChangeSet { call: None, session: owner.clone(), description: None, changes };
    Workspace::apply(copy, set).map(|_| ())
}

/// Returns a change of a text; `None` for other files.
pub(super) fn changed_file(content: ChangedContent) -> Option<ChangedFile> {
    let text = |bytes: Option<Vec<u8>>| bytes.map(String::from_utf8).transpose().ok();
    Some(ChangedFile { path: content.path, old: text(content.before)?, new: text(content.after)? })
}

/// Removes checks of types and style if there are tests: such checks say nothing about original
/// tests.
pub(super) fn retain_test_checks(checks: &mut Vec<Check>) {
    let runs_tests = |check: &Check| matches!(check.kind, CheckKind::Test | CheckKind::Custom);
    if checks.iter().any(runs_tests) {
        checks.retain(runs_tests);
    }
}

/// Returns true for a test file or a configuration file of a test runner.
pub(super) fn is_test_or_runner_config(path: &RelPath) -> bool {
    let path = path.to_string();
    is_test_file(&path) || is_runner_configuration(&path)
}

fn list_files(changed: &[RelPath]) -> String {
    let mut text =
        changed.iter().take(MAX_NAMED_FILES).map(RelPath::to_string).collect::<Vec<_>>().join(", ");
    if let Some(more) = changed.len().checked_sub(MAX_NAMED_FILES).filter(|more| *more > 0) {
        let _infallible = write!(text, " and {more} more");
    }
    if text.is_empty() { "the tests may have".to_owned() } else { text }
}
