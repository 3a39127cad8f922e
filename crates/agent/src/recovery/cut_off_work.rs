//! Crash recovery: closes the calls, checks and commands that a killed process left unfinished.
//!
//! A call whose effect may have begun gets one error result, which says what is known from the
//! workspace's journal. A call that hadn't begun is authorized and approved again. So nothing runs
//! twice, and every call gets a result.

use std::collections::HashSet;
use std::sync::Arc;

use journeyman_policy::secrets::SECRET_MASK;
use journeyman_protocol::{
    CallId, CallRecord, CallState, ErrorPhase, Event, FileChange, GuardViolation, MessageKind,
    ReminderCategory, ResultPart, ToolUse, UnixMillis,
};
use journeyman_tools::{Registry, SeenFiles};
use journeyman_workspace::{CheckpointId, IgnoredChanges, RecoveredCall};

use crate::AgentError;
use crate::blocking::run_blocking;
use crate::calls::finished_call::FinishedCall;
use crate::isolation::checkpoints::Checkpoints;
use crate::session::context::SessionContext;
use crate::session::inbox::Inbox;
use crate::session::shared_state::CutOffPolicy;
use crate::transcript::record::{MessageId, Record};
use crate::transcript::reminder;
use crate::transcript::running_transcript::cut_off_event;
use crate::transcript::state::OpenCall;

/// Maximum number of files named in a result. The model reads the rest from the tree.
const MAX_NAMED_FILES: usize = 20;

/// The interrupted calls and checks that recovery found.
#[derive(Default)]
pub(crate) struct CutOffWork {
    /// The records of the calls that were closed.
    pub(crate) sealed: Vec<CallRecord>,
    /// The changes of these calls and of checks, and the changes that undid them.
    pub(crate) changes: Vec<FileChange>,
    /// The events to report about these calls.
    pub(crate) events: Vec<Event>,
}

/// The model's result for a call whose arguments are masked in the log.
const ARGUMENTS_LOST_TEXT: &str = "not run: the program ended before this call began, and its arguments held a secret, \
                              which the log doesn't keep. Make the call again, with the whole text.";

/// The model's result for a call that had given a task to an agent.
const AGENT_CUT_OFF_TEXT: &str = "cut off: the program ended while an agent worked on this. What it changed until then may be \
                             in place; look at the files before you give the task again.";

/// Closes the calls whose effect may have begun, except `going_on`, which run again.
pub(crate) async fn close_cut_off_calls(
    cx: &mut SessionContext,
    inbox: &Inbox,
    registry: &Registry,
    going_on: &HashSet<CallId>,
) -> CutOffWork {
    let checkpoint = cx.transcript.state().task.as_ref().and_then(|task| task.checkpoint).map(CheckpointId);
    let checking = cx.transcript.state().task.as_ref().is_some_and(|task| task.checking);
    let changes = if checking { record_check_changes(cx).await } else { Vec::new() };
    let mut found = CutOffWork { changes, ..CutOffWork::default() };
    let begun = |open: &&OpenCall| {
        open.result.is_none()
            && open.record.state == CallState::Executing
            && !going_on.contains(&open.call.id)
    };
    let begun: Vec<OpenCall> = cx.transcript.state().calls.iter().filter(begun).cloned().collect();
    for open in begun {
        let text = match recover_call(cx, checkpoint, &open).await {
            Ok(fate) => {
                let edited = |change: &FileChange| Event::FileEdited {
                    call: open.call.id.clone(),
                    change: change.clone(),
                    diff: None,
                };
                found.events.extend(fate.applied.iter().map(edited));
                record_recovered_call(cx, &fate);
                let put_back = describe_restored(cx, &fate);
                let text = match registry.get(&open.call.name) {
                    // Its changes are journaled for the agent's own calls.
                    Ok(tool) if tool.starts_agents() => AGENT_CUT_OFF_TEXT.to_owned(),
                    _ => describe_recovery(&fate, put_back.as_deref()),
                };
                found.events.extend(put_back.map(|message| Event::Warning { message }));
                found.changes.extend(fate.applied.into_iter().chain(fate.restored));
                text
            }
            Err(error) => format!(
                "cut off: the program ended while this call ran, and what it did could not be found out \
                 ({error}). Look at the files before you do it again."
            ),
        };
        let record = cx.transcript.close_call(&open.call.id, &text);
        found.events.push(cut_off_event(&record, &text));
        found.sealed.push(record);
    }
    close_masked_calls(cx, &mut found);
    close_background_commands(cx, inbox, checkpoint, &found.sealed).await;
    found
}

/// Records changes as the session's own, though no result reported them before the program ended.
pub(crate) async fn record_own_changes(
    cx: &mut SessionContext,
    seen: &Arc<SeenFiles>,
    changes: Vec<FileChange>,
) {
    let (known, workspace) = (Arc::clone(seen), Arc::clone(&cx.workspace));
    let looked =
        run_blocking("looking at what was cut off", move || known.note_changes(&workspace, &changes)).await;
    if let Err(error) = looked {
        cx.transcript.emit_nonfatal_error(ErrorPhase::Lifecycle, error.to_string());
    }
    cx.transcript.record_seen_files(seen);
}

/// Records what recovery moved away or restored of guarded paths. The workspace remembers the call
/// until the next flush.
fn record_recovered_call(cx: &mut SessionContext, fate: &RecoveredCall) {
    let journal = cx.journal_session().clone();
    cx.transcript.forget_recovered_when_written(&cx.workspace, &journal);
    cx.transcript.record_violations(None, fate.violations.clone());
    if let Some(problem) = &fate.problem {
        cx.transcript.emit_nonfatal_error(ErrorPhase::Lifecycle, problem.clone());
    }
}

/// Returns the messages that are dropped with a closed task: those that were to begin the task.
/// Messages that came after the task had begun start the next task.
pub(crate) fn find_dropped_messages(cx: &SessionContext, cut_off: CutOffPolicy) -> Vec<MessageId> {
    let opened = cx.transcript.state().task.as_ref().is_some_and(|task| task.opened);
    if opened || cut_off == CutOffPolicy::Continue {
        return Vec::new();
    }
    // A message that was sent since the session was opened is for the next task.
    let before = |id: MessageId| id <= cx.transcript.state().newest;
    let waiting = cx.shared.queued_messages().into_iter();
    let given_up = waiting.filter(|queued| queued.kind == MessageKind::User && before(queued.id));
    given_up.map(|queued| queued.id).collect()
}

/// Closes calls that hadn't begun and whose arguments held a secret. The log has the arguments
/// masked, and running such a call would write the mask into a file.
fn close_masked_calls(cx: &mut SessionContext, found: &mut CutOffWork) {
    let open = cx.transcript.state().calls.iter().filter(|open| open.result.is_none());
    let masked: Vec<CallId> = open
        .filter(|open| open.call.input.to_string().contains(SECRET_MASK))
        .map(|open| open.call.id.clone())
        .collect();
    for call in masked {
        let record = cx.transcript.close_call(&call, ARGUMENTS_LOST_TEXT);
        found.events.push(cut_off_event(&record, ARGUMENTS_LOST_TEXT));
        found.sealed.push(record);
    }
}

/// Settles commands that ran in the background when the program ended. Their calls have their
/// results already.
async fn close_background_commands(
    cx: &mut SessionContext,
    inbox: &Inbox,
    checkpoint: Option<CheckpointId>,
    sealed: &[CallRecord],
) {
    let sealed: Vec<CallId> = sealed.iter().map(|record| record.id.clone()).collect();
    let (workspace, session) = (Arc::clone(&cx.workspace), cx.journal_session().clone());
    // Without a checkpoint there is nothing to compare with.
    let checkpoint = checkpoint.unwrap_or(CheckpointId(0));
    let seal = move || {
        let mut calls = workspace.recovery().unrecorded_calls(&session)?;
        calls.retain(|call| !sealed.contains(call));
        calls
            .iter()
            .map(|call| workspace.recovery().recover_call(&checkpoint, &session, call, UnixMillis(0)))
            .collect()
    };
    let fates = run_blocking("looking at what ran in the background", seal).await;
    let fates: Vec<RecoveredCall> = match fates.and_then(|done: Result<_, _>| done.map_err(AgentError::from))
    {
        Ok(fates) => fates,
        Err(error) => return cx.transcript.emit_nonfatal_error(ErrorPhase::Lifecycle, error.to_string()),
    };
    for fate in fates {
        record_recovered_call(cx, &fate);
        let text = format!("A command that ran in the background was {}", describe_recovery(&fate, None));
        let text = reminder::wrap_reminder(&text);
        let told = inbox.accept(MessageKind::System, ReminderCategory::General, text).await;
        if let Err(error) = told {
            cx.transcript.emit_nonfatal_error(ErrorPhase::Lifecycle, error.to_string());
        }
    }
}

/// Undoes the partial effects of a call that didn't end when it was cancelled, and adds a
/// description of the remaining effects to its result.
pub(crate) async fn undo_partial_effects(
    cx: &mut SessionContext,
    checkpoints: &Checkpoints,
    seen: &Arc<SeenFiles>,
    call: &ToolUse,
    finished: &mut FinishedCall,
) {
    let Some(checkpoint) = checkpoints.checkpoint_before_task() else { return };
    let Some(open) = cx.transcript.state().calls.iter().find(|open| open.call.id == call.id).cloned() else {
        return;
    };
    let text = match recover_call(cx, Some(checkpoint), &open).await {
        Ok(fate) => {
            record_recovered_call(cx, &fate);
            let put_back = describe_restored(cx, &fate);
            let told_of_guarded = describe_violations(&fate.violations);
            let RecoveredCall { applied, restored, ran, ignored, left, .. } = fate;
            let mut text = match (applied.is_empty(), put_back) {
                (true, None) if !ran => return,
                (true, None) => "None of its changes to tracked files are in place.".to_owned(),
                (true, Some(put_back)) => put_back,
                (false, _) => format!("Its changes are in place: {}.", list_files(&applied)),
            };
            text.push_str(&describe_unrestored(&left));
            text.push_str(&told_of_guarded);
            if ran {
                text.push(' ');
                text.push_str(&describe_untracked(&ignored));
            }
            record_own_changes(cx, seen, applied.iter().chain(&restored).cloned().collect()).await;
            finished.changes.extend(applied);
            text
        }
        Err(error) => format!("What it did could not be found out ({error}); look at the files."),
    };
    finished.parts.push(ResultPart::Text { text });
}

/// Describes the files that were restored after an interrupted command, and how to undo that: a
/// person may have changed the same tree while the command ran.
fn describe_restored(cx: &SessionContext, fate: &RecoveredCall) -> Option<String> {
    if fate.restored.is_empty() {
        return None;
    }
    let named = list_files(&fate.restored);
    if cx.workspace.project_copy().is_some() {
        return Some(format!("What it had done in part was taken back: {named}."));
    }
    let kept: Vec<String> = fate.kept.iter().map(|kept| format!("checkpoint {kept}")).collect();
    let kept = if kept.is_empty() { String::new() } else { format!("; {} has it", kept.join(", ")) };
    Some(format!(
        "What differed from before it was put back, also what a person may have changed while it ran: {named}. \
         `jm redo` gives it back once the session has ended{kept}."
    ))
}

/// Undoes the partial effects of an interrupted command, and returns the journal's state of its
/// call.
async fn recover_call(
    cx: &SessionContext,
    checkpoint: Option<CheckpointId>,
    open: &OpenCall,
) -> Result<RecoveredCall, AgentError> {
    // No call changes the tree before the checkpoint is recorded.
    let Some(checkpoint) = checkpoint else { return Ok(RecoveredCall::default()) };
    let workspace = Arc::clone(&cx.workspace);
    let (session, call) = (cx.journal_session().clone(), open.call.id.clone());
    let started = open.record.started_at().unwrap_or(UnixMillis(0));
    let seal = move || {
        // A command that ran in an overlay preview has no effects in the tree.
        workspace.previews().sweep();
        workspace.recovery().recover_call(&checkpoint, &session, &call, started)
    };
    Ok(run_blocking("looking at what was cut off", seal).await??)
}

/// Records the files that interrupted checks left behind as the checks' changes, so that undoing
/// the session undoes them. Returns the changes.
async fn record_check_changes(cx: &mut SessionContext) -> Vec<FileChange> {
    let workspace = Arc::clone(&cx.workspace);
    let session = cx.journal_session().clone();
    let claim = move || workspace.recovery().recover_checks(&session);
    let claimed = run_blocking("looking at what checks left", claim).await;
    let changes = match claimed.and_then(|done| done.map_err(AgentError::from)) {
        Ok(claimed) => {
            record_recovered_call(cx, &claimed);
            claimed.applied
        }
        Err(error) => {
            cx.transcript.emit_nonfatal_error(ErrorPhase::Lifecycle, error.to_string());
            Vec::new()
        }
    };
    cx.transcript.record(Record::Checking { running: false });
    changes
}

fn describe_recovery(fate: &RecoveredCall, put_back: Option<&str>) -> String {
    let mut text = String::from("cut off: the program ended while this call ran. ");
    match (fate.applied.is_empty(), fate.ran) {
        (true, false) => text.push_str("None of its changes are in place, so it is safe to do it again."),
        (true, true) => text.push_str("None of its changes to tracked files are in place."),
        (false, _) => {
            let named = list_files(&fate.applied);
            text.push_str(&format!(
                "Its changes are in place and journaled, don't make them again: {named}."
            ));
            if !fate.undone.is_empty() {
                let named = list_files(&fate.undone);
                text.push_str(&format!(" These of its changes were taken back by an undo since: {named}."));
            }
        }
    }
    if let Some(put_back) = put_back {
        text.push_str(&format!(" {put_back}"));
    }
    text.push_str(&describe_unrestored(&fate.left));
    text.push_str(&describe_violations(&fate.violations));
    if fate.ran {
        text.push(' ');
        text.push_str(&describe_untracked(&fate.ignored));
        if fate.applied.is_empty() {
            text.push_str(" Look at what is there before you run it again.");
        }
    }
    text.push_str(" Its output is lost.");
    text
}

/// Names files that differ from before a call and were left as they are, each with the reason.
fn describe_unrestored(left: &[(FileChange, String)]) -> String {
    let named = left.iter().take(MAX_NAMED_FILES);
    named.map(|(change, why)| format!(" {} differs and was left as it is: {why}.", change.path)).collect()
}

/// Names guarded paths that a call changed, and how each was settled.
fn describe_violations(violations: &[GuardViolation]) -> String {
    let named = violations.iter().take(MAX_NAMED_FILES).map(|one| format!(" Also, {one}."));
    let mut text: String = named.collect();
    if !text.is_empty() {
        text.push_str(
            " A command may not create repositories, or change files that programs outside the sandbox run or obey.",
        );
    }
    text
}

/// Describes the known effects of a command on untracked files.
fn describe_untracked(ignored: &IgnoredChanges) -> String {
    let paths: Vec<String> = ignored.paths.iter().map(ToString::to_string).collect();
    let found = match (paths.is_empty(), ignored.more) {
        (true, true) => "it may have changed any of them".to_owned(),
        (true, false) => "none that is there now was changed while it ran".to_owned(),
        (false, true) => format!("changed while it ran and left so: {} and perhaps more", paths.join(", ")),
        (false, false) => format!("changed while it ran and left so: {}", paths.join(", ")),
    };
    format!(
        "Ignored files are not tracked: {found}. Whether it removed any, or did something outside of the project, \
         is not known."
    )
}

fn list_files(changes: &[FileChange]) -> String {
    let paths = changes.iter().take(MAX_NAMED_FILES).map(|change| change.path.to_string());
    let mut text = paths.collect::<Vec<_>>().join(", ");
    if changes.len() > MAX_NAMED_FILES {
        text.push_str(&format!(" and {} more", changes.len() - MAX_NAMED_FILES));
    }
    text
}

#[cfg(test)]
mod tests {
    use journeyman_protocol::{Block, FileChangeKind, GuardViolationKind, RelPath};
    use journeyman_tools::ToolOutput;
    use journeyman_workspace::{Change, ChangeSet, ExpectedState};
    use serde_json::json;

    use super::*;
    use crate::test_context::{ClosureTool, SECRET, TestContext, call, user_message};
    use crate::transcript::running_transcript::CallChange;

    fn path(text: &str) -> RelPath {
        RelPath::parse(text).unwrap()
    }

    fn changed(text: &str) -> FileChange {
        FileChange { path: path(text), kind: FileChangeKind::Modified }
    }

    /// A task with a reply of two calls, of which the first was executing when the program ended.
    async fn cut_off() -> TestContext {
        let mut test = TestContext::new(&[("a.rs", "one\n"), ("b.rs", "one\n")]).await;
        test.cx.transcript.record(Record::Began);
        test.checkpoints.wait_until_recorded(&mut test.cx).await.unwrap();
        let calls = [
            call("c1", "write_file", json!({ "path": "a.rs", "content": "two\n" })),
            call("c2", "write_file", json!({ "path": "b.rs", "content": "two\n" })),
        ];
        test.record_reply(&calls);
        test.cx.transcript.change_call(&calls[0], CallState::Executing, CallChange::default());
        test
    }

    /// Journals a change of a file as the doing of a call.
    fn journal_edit(test: &TestContext, id: &str, name: &str) {
        let change =
            Change::Write { path: path(name), content: b"two\n".to_vec(), expected: ExpectedState::Anything };
        let (call, session) = (Some(CallId::new(id)), test.cx.session.clone());
        test.cx
            .workspace
            .apply(ChangeSet { call, session, description: None, changes: vec![change] })
            .unwrap();
    }

    fn result_of(test: &TestContext, id: &str) -> Option<String> {
        let open = test.cx.transcript.state().calls.iter().find(|open| open.call.id == CallId::new(id));
        match open.and_then(|open| open.result.clone())? {
            Block::ToolResult { content, is_error: true, .. } => {
                let texts = content.iter().map(|part| match part {
                    ResultPart::Text { text } => text.as_str(),
                    ResultPart::Image(_) => "image",
                });
                Some(texts.collect())
            }
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn a_call_whose_changes_are_journaled_happened_and_is_not_done_again() {
        let mut test = cut_off().await;
        journal_edit(&test, "c1", "a.rs");
        let found =
            close_cut_off_calls(&mut test.cx, &test.inbox, &Registry::default(), &HashSet::new()).await;
        assert_eq!(
            result_of(&test, "c1").unwrap(),
            "cut off: the program ended while this call ran. Its changes are in place and journaled, don't make \
             them again: a.rs. Its output is lost."
        );
        assert_eq!(result_of(&test, "c2"), None, "a call that had not begun is authorized again");
        assert_eq!(found.changes, [changed("a.rs")]);
        let sealed: Vec<&str> = found.sealed.iter().map(|record| record.id.as_str()).collect();
        assert_eq!(sealed, ["c1"]);
        assert!(matches!(&found.events[0], Event::FileEdited { change, .. } if *change == changed("a.rs")));
        assert_eq!(std::fs::read_to_string(test.root.join("a.rs")).unwrap(), "two\n");
        test.assert_survives_restart().await;
    }

    #[tokio::test]
    async fn what_a_cut_off_agent_left_is_to_be_looked_at() {
        let mut test = cut_off().await;
        // As the agent's own call would.
        journal_edit(&test, "c1-w1", "b.rs");
        let tool = ClosureTool::new("write_file", |_| async { Ok(ToolOutput::text("")) });
        let mut registry = Registry::default();
        registry.add(Box::new(tool.starting_agents()));
        close_cut_off_calls(&mut test.cx, &test.inbox, &registry, &HashSet::new()).await;
        assert_eq!(result_of(&test, "c1").as_deref(), Some(AGENT_CUT_OFF_TEXT));
    }

    #[tokio::test]
    async fn a_call_that_left_nothing_may_be_done_again() {
        let mut test = cut_off().await;
        let found =
            close_cut_off_calls(&mut test.cx, &test.inbox, &Registry::default(), &HashSet::new()).await;
        let text = result_of(&test, "c1").unwrap();
        assert!(text.contains("None of its changes are in place, so it is safe to do it again."), "{text}");
        assert_eq!((found.changes, found.sealed.len()), (Vec::new(), 1));
        // The same log again has nothing left to close.
        let again =
            close_cut_off_calls(&mut test.cx, &test.inbox, &Registry::default(), &HashSet::new()).await;
        assert!(again.sealed.is_empty() && again.events.is_empty());
    }

    #[tokio::test]
    async fn a_call_whose_arguments_are_masked_never_runs() {
        let mut test = TestContext::new(&[]).await;
        let input = test.cx.redactor.redact(&format!("key = {SECRET}")).into_owned();
        test.record_reply(&[
            call("c1", "write_file", json!({ "path": "a", "content": input })),
            call("c2", "write_file", json!({ "path": "b", "content": "plain" })),
        ]);
        let found =
            close_cut_off_calls(&mut test.cx, &test.inbox, &Registry::default(), &HashSet::new()).await;
        assert_eq!(result_of(&test, "c1").as_deref(), Some(ARGUMENTS_LOST_TEXT));
        assert_eq!((result_of(&test, "c2"), found.sealed.len()), (None, 1));
    }

    #[tokio::test]
    async fn checks_that_were_cut_off_do_not_run_any_more() {
        let mut test = TestContext::new(&[]).await;
        test.cx.transcript.record(Record::Began);
        test.cx.transcript.record(Record::Checking { running: true });
        close_cut_off_calls(&mut test.cx, &test.inbox, &Registry::default(), &HashSet::new()).await;
        let state = test.assert_survives_restart().await;
        assert!(!state.task.unwrap().checking);
    }

    #[tokio::test]
    async fn what_a_cancelled_call_left_is_told_in_its_result() {
        let mut test = cut_off().await;
        journal_edit(&test, "c1", "a.rs");
        let calls: Vec<ToolUse> =
            test.cx.transcript.state().calls.iter().map(|open| open.call.clone()).collect();
        let seen = Arc::new(SeenFiles::default());
        let mut finished = FinishedCall::interrupted();
        undo_partial_effects(&mut test.cx, &test.checkpoints, &seen, &calls[0], &mut finished).await;
        assert!(finished.text().ends_with("Its changes are in place: a.rs."), "{}", finished.text());
        assert_eq!(finished.changes, [changed("a.rs")]);
        let mut finished = FinishedCall::interrupted();
        let before = finished.text();
        undo_partial_effects(&mut test.cx, &test.checkpoints, &seen, &calls[1], &mut finished).await;
        assert_eq!((finished.text(), finished.changes), (before, Vec::new()), "it left nothing");
    }

    #[tokio::test]
    async fn messages_of_a_task_that_is_given_up_are_dropped_and_later_ones_are_not() {
        let mut test = TestContext::new(&[]).await;
        test.cx.transcript.record(Record::Queued(user_message(1, "do it")));
        test.cx.transcript.record(Record::Began);
        for id in [1, 2] {
            test.cx.shared.add_queued(user_message(id, "do it"));
        }
        assert_eq!(find_dropped_messages(&test.cx, CutOffPolicy::Close), [MessageId(1)]);
        assert_eq!(find_dropped_messages(&test.cx, CutOffPolicy::Continue), []);
        test.cx.transcript.add_user_text("do it");
        assert_eq!(find_dropped_messages(&test.cx, CutOffPolicy::Close), [], "they wait for the next task");
    }

    #[test]
    fn a_result_says_what_is_known_and_is_bounded() {
        let violation = GuardViolation {
            call: None,
            path: path(".git/hooks/pre-commit"),
            kind: GuardViolationKind::Made,
            repository: false,
            moved_to: Some("/state/removed/1".to_owned()),
            put_back: false,
            problem: None,
        };
        let ran = RecoveredCall { ran: true, ..RecoveredCall::default() };
        let applied: Vec<FileChange> = (0..30).map(|number| changed(&format!("f{number:02}"))).collect();
        for (fate, says) in [
            (ran.clone(), "None of its changes to tracked files are in place. Ignored files are not tracked"),
            (ran.clone(), "Look at what is there before you run it again. Its output is lost."),
            (
                RecoveredCall { applied: applied.clone(), ..RecoveredCall::default() },
                "don't make them again: f00, f01, ",
            ),
            (RecoveredCall { applied, ..RecoveredCall::default() }, "f19 and 10 more."),
            (
                RecoveredCall {
                    left: vec![(changed("mine"), "somebody else changed it".to_owned())],
                    ..ran.clone()
                },
                " mine differs and was left as it is: somebody else changed it.",
            ),
            (
                RecoveredCall { violations: vec![violation; 50], ..ran },
                "A command may not create repositories, or change files that programs outside the sandbox run or obey.",
            ),
        ] {
            let text = describe_recovery(&fate, None);
            assert!(text.contains(says) && text.len() < 4_000, "{text}");
        }
    }
}
