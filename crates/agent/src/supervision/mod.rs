//! Supervision between steps: stalls, todos, schedules and external changes.

mod external_changes;
mod nested_instructions;
pub(crate) mod repetition;
pub mod schedule;
pub mod stall;
pub mod todos;

use std::num::NonZeroU32;
use std::sync::Arc;

use journeyman_context::LineCommit;
use journeyman_context::packing::ContextCandidate;
use journeyman_protocol::{
    ErrorPhase, Event, Evidence, MessageKind, RelPath, ReminderCategory, RunOutcome, ToolUse,
};
use journeyman_tools::SeenFiles;

use crate::AgentError;
use crate::blocking::run_blocking;
use crate::calls::finished_call::FinishedCall;
use crate::request::index_lookup::look_up_message;
use crate::request::line_commits::LineCommits;
use crate::session::context::SessionContext;
use crate::session::task_end::TaskEnd;
use crate::transcript::record::Record;
use external_changes::{external_change_notice, find_external_changes};
use nested_instructions::NestedInstructions;
use schedule::Schedule;
use stall::{CallFingerprint, StallDetector, StallGuidance, StepFacts, hash_checks};
use todos::{SharedTodoList, TodoReminder, TodoReminderTimer};

/// The tool that reads the output of a background command. A call without new output waits and is
/// no sign of a stall.
const COMMAND_OUTPUT_TOOL: &str = "command_output";

/// Watches a session between its steps.
pub(crate) struct Supervision {
    todos: Arc<SharedTodoList>,
    schedule: Arc<Schedule>,
    reminders: TodoReminderTimer,
    /// A reminder that waits for the end of the step.
    emptied_reminder: Option<TodoReminder>,
    detector: StallDetector,
    facts: StepFacts,
    nested: NestedInstructions,
    line_commits: LineCommits,
}

/// A step of a task that is supervised.
pub(crate) struct SupervisedStep<'a> {
    /// The files that the session has seen.
    pub(crate) seen: &'a SeenFiles,
    /// True if commands or agents run in the background.
    pub(crate) running: bool,
    /// Returns true if the text of a file may be shown.
    pub(crate) may_show: Arc<dyn Fn(&RelPath) -> bool + Send + Sync>,
}

#[cfg(test)]
impl<'a> SupervisedStep<'a> {
    /// Returns a step without work in the background, in a project without rules.
    pub(crate) fn of(seen: &'a SeenFiles) -> Self {
        Self { seen, running: false, may_show: Arc::new(|_| true) }
    }
}

impl Supervision {
    pub(crate) fn new(todos: Arc<SharedTodoList>, schedule: Arc<Schedule>, remind_every: u32) -> Self {
        let reminders = TodoReminderTimer::new(NonZeroU32::new(remind_every));
        let (detector, facts) = (StallDetector::default(), StepFacts::default());
        let (nested, line_commits) = (NestedInstructions::default(), LineCommits::default());
        Self { todos, schedule, reminders, emptied_reminder: None, detector, facts, nested, line_commits }
    }

    /// Returns the list of todos.
    pub(crate) fn todos(&self) -> Arc<SharedTodoList> {
        Arc::clone(&self.todos)
    }

    /// Forgets the facts of the last task.
    pub(crate) fn begin_task(&mut self) {
        self.detector = StallDetector::default();
        self.facts = StepFacts::default();
    }

    /// Forgets which results and instructions the model has seen, because some have left the
    /// transcript.
    pub(crate) fn forget_results(&mut self) {
        self.detector.forget_results();
        self.nested.forget_directories();
    }

    /// Runs the supervision after a step. `Some` ends the task because of a stall.
    pub(crate) async fn supervise_step(
        &mut self,
        cx: &mut SessionContext,
        step: SupervisedStep<'_>,
    ) -> Result<Option<TaskEnd>, AgentError> {
        let SupervisedStep { seen, running, may_show } = step;
        report_external_changes(cx, seen, running).await?;
        self.nested.add_instructions(cx, seen, may_show).await?;
        self.line_commits.remind_of_late_commits(cx);
        self.record_todo_changes(cx);
        if let Some(emptied) = self.emptied_reminder.take() {
            remind_of_todos(cx, emptied);
        }
        if let Some(due) = self.reminders.count_step(&self.todos.get()) {
            remind_of_todos(cx, due);
        }
        self.run_schedule(cx).await;
        Ok(self.check_progress(cx))
    }

    /// Looks up a later message of the user in the index, as [`look_up_message`]. Also starts
    /// looking for the commits that last changed the lines that it names; the model gets them after
    /// a step.
    pub(crate) async fn look_up_message(
        &mut self,
        cx: &mut SessionContext,
        may_show: Arc<dyn Fn(&RelPath) -> bool + Send + Sync>,
        message: &str,
    ) -> Option<String> {
        self.line_commits.start_for_message(cx, Arc::clone(&may_show), message);
        look_up_message(cx, may_show, message).await
    }

    /// Starts looking for the commits that last changed some lines. The model gets commits that
    /// aren't taken in time after a step.
    pub(crate) fn look_for_line_commits(
        &mut self,
        cx: &SessionContext,
        lines: impl IntoIterator<Item = ContextCandidate>,
    ) {
        self.line_commits.start(cx, lines);
    }

    /// Takes the commits that were found so far.
    pub(crate) fn take_known_commits(&mut self) -> Vec<LineCommit> {
        self.line_commits.take_known()
    }

    /// Records the changes of the todos.
    pub(crate) fn record_todo_changes(&mut self, cx: &mut SessionContext) {
        let changes = self.todos.take_changes();
        let Some(last) = changes.last() else { return };
        cx.transcript.record(Record::Todos { todos: last.current.clone() });
        for change in changes {
            let emptied = self.reminders.observe_change(&change.previous, &change.current);
            cx.transcript.emit(Event::TodoChanged { previous: change.previous, current: change.current });
            if let Some(emptied) = emptied {
                self.emptied_reminder = Some(emptied);
            }
        }
    }

    /// Reminds the model of open todos when a task begins that isn't the first of the session.
    pub(crate) fn remind_of_todos_at_start(&mut self, cx: &mut SessionContext) {
        let wanted = cx.settings.todos.is_some_and(|todos| todos.remind_at_start);
        let todos = self.todos.get();
        // An empty list needs no reminder: the tool's own description says when to use it.
        if wanted && cx.transcript.state().is_settled() && !todos.is_empty() {
            let due = self.reminders.reminder_at_start(&todos);
            remind_of_todos(cx, due);
        }
    }

    /// Runs the tasks that are scheduled for this step.
    async fn run_schedule(&self, cx: &mut SessionContext) {
        // The step that ends now is counted after this.
        self.schedule.advance(cx.transcript.state().counters.step.saturating_add(1));
        for fired in self.schedule.run_waiting().await {
            let (task, spec, kind) = (fired.task.clone(), fired.spec, fired.kind);
            cx.transcript.emit(Event::SchedulerTriggered { task, spec, kind });
            match fired.outcome {
                Ok(None) => {}
                Ok(Some(text)) => cx.transcript.remind_model(ReminderCategory::General, text),
                Err(why) => cx.transcript.emit_nonfatal_error(
                    ErrorPhase::System,
                    format!("the task `{}` failed: {why}", fired.task),
                ),
            }
        }
    }

    /// Records the facts of a call for the stall detector.
    pub(crate) fn observe_call(
        &mut self,
        cx: &SessionContext,
        call: &ToolUse,
        read_only: bool,
        running: bool,
        finished: &FinishedCall,
    ) {
        let mut fact = CallFingerprint::new(call, &finished.parts, finished.is_error(), read_only);
        if !finished.changes.is_empty() {
            fact = fact.mark_changing();
        }
        if running && call.name == COMMAND_OUTPUT_TOOL {
            fact = fact.mark_waiting();
        }
        self.facts.calls.push(fact);
        let paths: Vec<_> = finished.changes.iter().map(|change| change.path.clone()).collect();
        let hashes = cx.workspace.fingerprints(&paths);
        for (path, hash) in paths.into_iter().zip(hashes) {
            self.facts.changes.retain(|(other, _)| *other != path);
            self.facts.changes.push((path, hash));
        }
    }

    /// Records the results of checks for the stall detector.
    pub(crate) fn observe_checks(&mut self, evidence: &[Evidence]) {
        self.facts.checks = Some(hash_checks(evidence));
    }

    /// Records a message for the stall detector.
    pub(crate) fn observe_message(&mut self, kind: MessageKind, text: &str) {
        match kind {
            MessageKind::User => self.facts.user_message = true,
            MessageKind::System => self.facts.notices.push(text.to_owned()),
            MessageKind::Reminder => {}
        }
    }

    /// Warns a stalled model, and ends the task if the stall continues.
    pub(crate) fn check_progress(&mut self, cx: &mut SessionContext) -> Option<TaskEnd> {
        let facts = std::mem::take(&mut self.facts);
        if !cx.settings.loop_guard {
            return None;
        }
        match self.detector.observe(&facts) {
            StallGuidance::Fine => None,
            StallGuidance::Warn(text) => {
                cx.transcript.remind_model(ReminderCategory::Progress, text);
                None
            }
            StallGuidance::Stop(reason) => Some(TaskEnd::new(RunOutcome::Limit, reason)),
        }
    }
}

/// Tells the model once about each external change of a file that it has seen.
async fn report_external_changes(
    cx: &mut SessionContext,
    seen: &SeenFiles,
    running: bool,
) -> Result<(), AgentError> {
    let known = seen.entries();
    if known.is_empty() {
        return Ok(());
    }
    let workspace = Arc::clone(&cx.workspace);
    let paths: Vec<_> = known.iter().map(|file| file.path.clone()).collect();
    let now = run_blocking("looking at the files", move || workspace.fingerprints(&paths)).await?;
    let changes = find_external_changes(&known, &now);
    for (change, hash) in &changes {
        seen.note_external_change(&change.path, *hash);
        cx.transcript.emit(Event::FileChanged { change: change.clone() });
    }
    if let Some(text) = external_change_notice(&changes, running) {
        cx.transcript.remind_model(ReminderCategory::File, text);
    }
    cx.transcript.record_seen_files(seen);
    Ok(())
}

fn remind_of_todos(cx: &mut SessionContext, due: TodoReminder) {
    let TodoReminder { reason, text, todos } = due;
    cx.transcript.emit(Event::TodoReminder { todos, reason });
    cx.transcript.remind_model(ReminderCategory::Todo, text);
}

#[cfg(test)]
mod tests {
    use journeyman_protocol::{CallState, ContentHash, RelPath, ResultPart, TodoReminderReason};
    use serde_json::json;

    use super::*;
    use crate::test_context::{TestContext, call};
    use schedule::ScheduledJob;
    use todos::TodoDraft;

    fn supervision(remind_every: u32) -> Supervision {
        let todos = Arc::new(SharedTodoList::new(crate::Clock::new(|| journeyman_protocol::UnixMillis(1))));
        Supervision::new(todos, Arc::new(Schedule::default()), remind_every)
    }

    fn reminders(events: &[Event]) -> Vec<ReminderCategory> {
        let category = |event: &Event| match event {
            Event::ReminderSent { category, .. } => Some(*category),
            _ => None,
        };
        events.iter().filter_map(category).collect()
    }

    #[tokio::test]
    async fn an_external_change_is_told_once() {
        let mut test = TestContext::new(&[("a.rs", "one")]).await;
        let seen = SeenFiles::default();
        seen.record(RelPath::parse("a.rs").unwrap(), ContentHash::of(b"one"));
        let mut supervision = supervision(0);
        supervision.supervise_step(&mut test.cx, SupervisedStep::of(&seen)).await.unwrap();
        test.write("a.rs", "two");
        for _ in 0..2 {
            supervision.supervise_step(&mut test.cx, SupervisedStep::of(&seen)).await.unwrap();
        }
        let events = test.events().await;
        assert_eq!(reminders(&events), [ReminderCategory::File]);
        assert!(test.last_text().contains("- a.rs (changed)"), "{}", test.last_text());
    }

    #[tokio::test]
    async fn scheduled_tasks_run_at_their_step() {
        let mut test = TestContext::new(&[]).await;
        let supervision_schedule = Arc::new(Schedule::default());
        let todos = Arc::new(SharedTodoList::new(crate::Clock::new(|| journeyman_protocol::UnixMillis(1))));
        let mut supervision = Supervision::new(todos, Arc::clone(&supervision_schedule), 0);
        let two = std::num::NonZeroU64::new(2).unwrap();
        supervision_schedule
            .every("look", two, ScheduledJob::Reminder("look at the goal".to_owned()))
            .unwrap();
        supervision_schedule
            .every("broken", two, ScheduledJob::from_closure(|_| async { Err("no network".to_owned()) }))
            .unwrap();
        for _ in 0..3 {
            supervision
                .supervise_step(&mut test.cx, SupervisedStep::of(&SeenFiles::default()))
                .await
                .unwrap();
            test.cx.transcript.end_step(std::time::Duration::ZERO);
        }
        let events = test.events().await;
        assert_eq!(reminders(&events), [ReminderCategory::General]);
        let failed =
            |event: &&Event| matches!(event, Event::Error { message, .. } if message.contains("no network"));
        assert_eq!(events.iter().filter(failed).count(), 1, "a failed task is a warning: {events:?}");
    }

    #[tokio::test]
    async fn an_idle_list_of_todos_is_brought_back_at_its_interval() {
        let mut test = TestContext::new(&[]).await;
        let mut supervision = supervision(2);
        let draft = TodoDraft { title: Some("write the test".to_owned()), ..TodoDraft::default() };
        supervision.todos().set(vec![draft]).unwrap();
        for _ in 0..3 {
            supervision
                .supervise_step(&mut test.cx, SupervisedStep::of(&SeenFiles::default()))
                .await
                .unwrap();
        }
        let events = test.events().await;
        let reasons: Vec<_> = events
            .iter()
            .filter_map(|it| if let Event::TodoReminder { reason, .. } = it { Some(*reason) } else { None })
            .collect();
        assert_eq!(reasons, [TodoReminderReason::Interval]);
        assert_eq!(test.reloaded_state().await.todos, supervision.todos().get(), "the list is on record");
    }

    #[tokio::test]
    async fn a_stalled_task_is_warned_and_then_ended() {
        let mut test = TestContext::new(&[]).await;
        let mut supervision = supervision(0);
        let parts = vec![ResultPart::Text { text: "no such file".to_owned() }];
        let finished = FinishedCall::with_output(CallState::Failed, parts, Vec::new());
        let made = call("c1", "read_file", json!({ "path": "missing" }));
        let mut end = None;
        for _ in 0..100 {
            supervision.observe_call(&test.cx, &made, true, false, &finished);
            end = supervision.check_progress(&mut test.cx);
            if end.is_some() {
                break;
            }
        }
        assert_eq!(end.unwrap().outcome, RunOutcome::Limit);
        assert_eq!(reminders(&test.events().await), [ReminderCategory::Progress; 2]);
        test.cx.settings.loop_guard = false;
        supervision.begin_task();
        for _ in 0..100 {
            supervision.observe_call(&test.cx, &made, true, false, &finished);
            assert_eq!(supervision.check_progress(&mut test.cx), None, "the guard is off");
        }
    }
}
