//! Keeps and announces a session's copy, and refreshes it with the user's changes.

use std::fmt::Write as _;
use std::sync::Arc;

use journeyman_protocol::{Event, FileChange, RelPath, ReminderCategory};
use journeyman_tools::SeenFiles;
use journeyman_workspace::{IsolationTier, RefreshReport, WorkspaceError};

use crate::AgentError;
use crate::blocking::run_blocking;
use crate::isolation::{PlannedCopy, WorkCopy};
use crate::session::context::SessionContext;
use crate::transcript::record::Record;

/// Maximum number of files named in a notice.
const MAX_NAMED_FILES: usize = 10;

/// The state of the copy after a refresh.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RefreshOutcome {
    /// The copy is unchanged.
    Unchanged,
    /// Files in the copy changed, so checks that passed have to pass again.
    Changed,
}

/// The notices given about the copy that a session works in.
#[derive(Default)]
pub(crate) struct CopyUpdates {
    planned: Option<PlannedCopy>,
    announced: bool,
    /// The conflicting files of the last notice.
    conflicts: Vec<RelPath>,
}

impl CopyUpdates {
    /// Creates the stage of a session that is to work in a planned copy, if there is one.
    pub(crate) fn new(planned: Option<PlannedCopy>) -> Self {
        Self { planned, ..Self::default() }
    }

    /// Returns true if the session's copy is planned and not entered yet.
    pub(crate) fn is_planned(&self) -> bool {
        self.planned.is_some()
    }

    /// Starts making a planned copy in the background.
    pub(crate) fn start_copy(&mut self, cx: &SessionContext) {
        if let Some(planned) = &mut self.planned {
            planned.start(&cx.session);
        }
    }

    /// Moves the session into its copy: waits for a planned one, keeps it, and announces it. A
    /// session whose copy isn't required stays in the project where none can be made.
    pub(crate) async fn enter_copy(&mut self, cx: &mut SessionContext) -> Result<(), AgentError> {
        if let Some(mut planned) = self.planned.take() {
            match planned.finish(&cx.session).await {
                Ok(copy) => {
                    cx.workspace = copy.workspace();
                    cx.index = Arc::new(cx.index.for_copy(copy.workspace()));
                    cx.copy = Some(Arc::new(copy));
                }
                Err(AgentError::Workspace(WorkspaceError::NoCopy { reasons })) if !planned.is_required() => {
                    fall_back_to_project(cx, &reasons);
                }
                Err(error) => {
                    // Tried again with the next request.
                    self.planned = Some(planned);
                    return Err(error);
                }
            }
        }
        self.announce(cx).await
    }

    /// Keeps the copy, because its session is now logged, and announces the copy, once.
    async fn announce(&mut self, cx: &SessionContext) -> Result<(), AgentError> {
        if self.announced {
            return Ok(());
        }
        if let Some(copy) = &cx.copy {
            let keeping = Arc::clone(copy);
            run_blocking("keeping the copy", move || keeping.keep()).await??;
            let (tier, unavailable) = (copy.tier().to_string(), copy.unavailable_tiers());
            cx.transcript.emit(Event::Isolated { tier, unavailable, reopened: copy.was_reopened() });
            let left_out = copy.left_out_files();
            for (path, reason) in left_out.iter().take(MAX_NAMED_FILES) {
                cx.transcript
                    .emit(Event::Warning { message: format!("`{path}` isn't in the copy: {reason}") });
            }
            if let Some(more) = left_out.len().checked_sub(MAX_NAMED_FILES).filter(|more| *more > 0) {
                cx.transcript
                    .emit(Event::Warning { message: format!("{more} more files aren't in the copy") });
            }
        }
        self.announced = true;
        Ok(())
    }

    /// Takes over the changes that the user made in their tree, and reports them to the user and
    /// the model.
    pub(crate) async fn refresh(
        &mut self,
        cx: &mut SessionContext,
        seen: &SeenFiles,
        busy: bool,
    ) -> Result<RefreshOutcome, AgentError> {
        let Some(copy) = cx.copy.clone() else { return Ok(RefreshOutcome::Unchanged) };
        // A refresh would change files under commands that still run, or remove their mount.
        if busy {
            return Ok(RefreshOutcome::Unchanged);
        }
        let taking = Arc::clone(&copy);
        let refreshed = run_blocking("taking over what changed in the project", move || taking.refresh());
        let RefreshReport { taken, merged, conflicts } = refreshed.await??;
        // The same conflicts are reported only once.
        let news = !taken.is_empty() || !merged.is_empty() || conflicts != self.conflicts;
        self.conflicts.clone_from(&conflicts);
        if !news {
            return Ok(RefreshOutcome::Unchanged);
        }
        let text = refresh_notice(&taken, &merged, &conflicts);
        cx.transcript.emit(Event::CopyRefreshed { taken: taken.clone(), merged: merged.clone(), conflicts });
        mark_known(cx, seen, taken.iter().chain(&merged));
        cx.index.note_unknown_changes();
        cx.transcript.remind_model(ReminderCategory::File, text);
        cx.transcript.flush().await?;
        let changed = !taken.is_empty() || !merged.is_empty();
        Ok(if changed { RefreshOutcome::Changed } else { RefreshOutcome::Unchanged })
    }
}

/// Logs and reports that the session works in the project itself.
fn fall_back_to_project(cx: &mut SessionContext, reasons: &[(IsolationTier, String)]) {
    cx.settings.asked.isolate = Some(false);
    if let Some(mut setting) = cx.transcript.state().setting.clone() {
        setting.asked.isolate = Some(false);
        cx.transcript.record(Record::Setting(setting));
    }
    let reasons: Vec<String> = reasons.iter().map(|(tier, reason)| format!("{tier}: {reason}")).collect();
    let message = format!("works in your files: no copy is cheap here ({})", reasons.join("; "));
    cx.transcript.emit(Event::Warning { message });
}

/// Marks the changes as known, so that they aren't reported again file by file.
fn mark_known<'a>(cx: &mut SessionContext, seen: &SeenFiles, paths: impl Iterator<Item = &'a RelPath>) {
    let known = seen.entries();
    let paths: Vec<RelPath> =
        paths.filter(|path| known.iter().any(|file| file.path == **path)).cloned().collect();
    let hashes = cx.workspace.fingerprints(&paths);
    for (path, hash) in paths.iter().zip(hashes) {
        seen.note_external_change(path, hash);
    }
    cx.transcript.record_seen_files(seen);
}

impl WorkCopy {
    /// Compares the copy with the user's tree and returns the changed files.
    pub(crate) async fn changed_files(self: &Arc<Self>) -> Result<Vec<FileChange>, AgentError> {
        let copy = Arc::clone(self);
        Ok(run_blocking("comparing the copy", move || copy.changes().map(|changes| changes.files()))
            .await??)
    }
}

/// Returns the notice of a refresh for the model.
fn refresh_notice(taken: &[RelPath], merged: &[RelPath], conflicts: &[RelPath]) -> String {
    let mut text = String::from(
        "You work in a copy of the project. The user changed files in theirs meanwhile, and the copy follows; read \
         files again before you rely on them.",
    );
    for (paths, what) in [
        (taken, "As the user has them now"),
        (merged, "Changed by you and by the user, merged line by line"),
        (
            conflicts,
            "Changed by you and by the user in ways that don't go together; the copy has your version",
        ),
    ] {
        if paths.is_empty() {
            continue;
        }
        let named: Vec<String> = paths.iter().take(MAX_NAMED_FILES).map(ToString::to_string).collect();
        // Writing to a string can't fail.
        write!(text, "\n{what}: {}", named.join(", ")).ok();
        if let Some(more) = paths.len().checked_sub(MAX_NAMED_FILES).filter(|more| *more > 0) {
            write!(text, " and {more} more").ok();
        }
        text.push('.');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isolation::Isolation;
    use crate::test_context::TestContext;

    #[tokio::test]
    async fn a_copy_follows_the_users_tree_unless_commands_run_in_it() {
        let mut test = TestContext::new(&[("a.rs", "one\n")]).await;
        let copy =
            Arc::new(isolation(&test, vec![IsolationTier::Copy]).open_or_create(&test.cx.session).unwrap());
        test.cx.workspace = copy.workspace();
        let in_copy = |cx: &SessionContext| {
            cx.workspace.fingerprints(&[RelPath::parse("a.rs").unwrap()]).pop().flatten()
        };
        let hash = |text: &str| Some(journeyman_protocol::ContentHash::of(text.as_bytes()));
        test.cx.copy = Some(copy);
        let mut updates = CopyUpdates::default();
        updates.enter_copy(&mut test.cx).await.unwrap();
        updates.enter_copy(&mut test.cx).await.unwrap();
        test.write("a.rs", "two\n");
        let seen = SeenFiles::default();
        assert_eq!(updates.refresh(&mut test.cx, &seen, true).await.unwrap(), RefreshOutcome::Unchanged);
        assert_eq!(in_copy(&test.cx), hash("one\n"));
        assert_eq!(updates.refresh(&mut test.cx, &seen, false).await.unwrap(), RefreshOutcome::Changed);
        assert_eq!(updates.refresh(&mut test.cx, &seen, false).await.unwrap(), RefreshOutcome::Unchanged);
        assert_eq!(in_copy(&test.cx), hash("two\n"));
        let kinds: Vec<&str> = test.events().await.iter().map(Event::kind).collect();
        assert_eq!(kinds, ["isolated", "copy_refreshed", "reminder_sent"], "each is announced once");
    }

    fn isolation(test: &TestContext, tiers: Vec<IsolationTier>) -> Isolation {
        Isolation {
            origin: Arc::clone(&test.cx.workspace),
            sandbox: Arc::clone(&test.cx.sandbox),
            git: None,
            tiers,
            max_copied_files: usize::MAX,
        }
    }

    #[tokio::test]
    async fn a_planned_copy_is_entered_once_and_followed_from_then_on() {
        let mut test = TestContext::new(&[("a.rs", "one\n")]).await;
        let planned = PlannedCopy::new(isolation(&test, vec![IsolationTier::Copy]), true);
        let mut updates = CopyUpdates::new(Some(planned));
        updates.start_copy(&test.cx);
        updates.start_copy(&test.cx);
        assert!(updates.is_planned() && test.cx.copy.is_none(), "the session is still in the project");
        updates.enter_copy(&mut test.cx).await.unwrap();
        updates.enter_copy(&mut test.cx).await.unwrap();
        assert!(!updates.is_planned());
        let copy = test.cx.copy.clone().unwrap();
        assert!(Arc::ptr_eq(&copy.workspace(), &test.cx.workspace));
        let kinds: Vec<&str> = test.events().await.iter().map(Event::kind).collect();
        assert_eq!(kinds, ["isolated"]);
    }

    #[tokio::test]
    async fn without_a_way_of_copying_a_session_stays_in_the_project_only_if_it_may() {
        for (is_required, event) in [(false, Some("warning")), (true, None)] {
            let mut test = TestContext::new(&[("a.rs", "one\n")]).await;
            let planned = PlannedCopy::new(isolation(&test, Vec::new()), is_required);
            let mut updates = CopyUpdates::new(Some(planned));
            let entered = updates.enter_copy(&mut test.cx).await;
            assert_eq!((entered.is_err(), updates.is_planned()), (is_required, is_required));
            assert!(test.cx.copy.is_none());
            assert_eq!(test.cx.settings.asked.isolate, (!is_required).then_some(false));
            assert_eq!(test.events().await.first().map(Event::kind), event);
        }
    }

    #[test]
    fn a_notice_names_each_kind_and_is_bounded() {
        let paths = |names: &[&str]| -> Vec<RelPath> {
            names.iter().map(|name| RelPath::parse(name).unwrap()).collect()
        };
        let many: Vec<String> = (0..12).map(|number| format!("f{number}")).collect();
        let many = paths(&many.iter().map(String::as_str).collect::<Vec<_>>());
        let text = refresh_notice(&many, &paths(&["m"]), &[]);
        assert!(
            text.ends_with(
                "\nAs the user has them now: f0, f1, f2, f3, f4, f5, f6, f7, f8, f9 and 2 more.\
             \nChanged by you and by the user, merged line by line: m."
            ),
            "{text}"
        );
        assert!(refresh_notice(&[], &[], &paths(&["c"])).ends_with("the copy has your version: c."));
    }
}
