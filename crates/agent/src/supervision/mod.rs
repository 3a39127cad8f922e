//! Supervision between steps: stalls, todos, schedules and external changes.

mod external_changes;
pub mod schedule;
pub mod stall;
pub mod todos;

use std::num::NonZeroU32;
use std::sync::Arc;

use journeyman_protocol::{ErrorPhase, Event, Evidence, MessageKind, ReminderCategory, RunOutcome, ToolUse};
use journeyman_tools::Seen;

use crate::AgentError;
use crate::blocking::blocking;
use crate::calls::finished::FinishedCall;
use crate::session::context::Context;
use crate::session::task_end::TaskEnd;
use crate::transcript::record::Record;
use external_changes::{notice, outside_changes};
use schedule::Schedule;
use stall::{CallFact, StallDetector, StallGuidance, StepFacts, checks_key};
use todos::{Reminders, TodoReminder, Todos};

/// The tool that reads the output of a background command. A call without new output waits and is
/// no sign of a stall.
const COMMAND_OUTPUT: &str = "command_output";

/// Watches a session between its steps.
pub(crate) struct Supervision {
    todos: Arc<Todos>,
    schedule: Arc<Schedule>,
    reminders: Reminders,
    /// A reminder that waits for the end of the step.
    emptied: Option<TodoReminder>,
    detector: StallDetector,
    facts: StepFacts,
}

impl Supervision {
    pub(crate) fn new(todos: Arc<Todos>, schedule: Arc<Schedule>, remind_every: u32) -> Self {
        let reminders = Reminders::new(NonZeroU32::new(remind_every));
        let (detector, facts) = (StallDetector::default(), StepFacts::default());
        Self { todos, schedule, reminders, emptied: None, detector, facts }
    }

    /// Returns the list of todos.
    pub(crate) fn todos(&self) -> Arc<Todos> {
        Arc::clone(&self.todos)
    }

    /// Forgets the facts of the last task.
    pub(crate) fn begin_task(&mut self) {
        self.detector = StallDetector::default();
        self.facts = StepFacts::default();
    }

    /// Runs the supervision after a step. `Some` ends the task because of a stall.
    pub(crate) async fn look_around(
        &mut self,
        cx: &mut Context,
        seen: &Seen,
        running: bool,
    ) -> Result<Option<TaskEnd>, AgentError> {
        notice_external_changes(cx, seen, running).await?;
        self.note_todos(cx);
        if let Some(emptied) = self.emptied.take() {
            remind_of_todos(cx, emptied);
        }
        if let Some(due) = self.reminders.step(&self.todos.get()) {
            remind_of_todos(cx, due);
        }
        self.run_schedule(cx).await;
        Ok(self.check_progress(cx))
    }

    /// Records the changes of the todos.
    pub(crate) fn note_todos(&mut self, cx: &mut Context) {
        let changes = self.todos.take_changes();
        let Some(last) = changes.last() else { return };
        cx.transcript.note(Record::Todos { todos: last.current.clone() });
        for change in changes {
            let emptied = self.reminders.changed(&change.previous, &change.current);
            cx.transcript.emit(Event::TodoChanged { previous: change.previous, current: change.current });
            if let Some(emptied) = emptied {
                self.emptied = Some(emptied);
            }
        }
    }

    /// Reminds the model of open todos when a task begins that isn't the first of the session.
    pub(crate) fn remind_at_start(&mut self, cx: &mut Context) {
        let wanted = cx.settings.todos.is_some_and(|todos| todos.remind_at_start);
        let todos = self.todos.get();
        // An empty list needs no reminder: the tool's own description says when to use it.
        if wanted && cx.transcript.state().is_settled() && !todos.is_empty() {
            let due = self.reminders.start(&todos);
            remind_of_todos(cx, due);
        }
    }

    /// Runs the tasks that are scheduled for this step.
    async fn run_schedule(&self, cx: &mut Context) {
        // The step that ends now is counted after this.
        self.schedule.advance(cx.transcript.state().books.step.saturating_add(1));
        for fired in self.schedule.run().await {
            let (task, spec, kind) = (fired.task.clone(), fired.spec, fired.kind);
            cx.transcript.emit(Event::SchedulerTriggered { task, spec, kind });
            match fired.outcome {
                Ok(None) => {}
                Ok(Some(text)) => cx.transcript.remind(ReminderCategory::General, text),
                Err(why) => {
                    cx.transcript.warn(ErrorPhase::System, format!("the task `{}` failed: {why}", fired.task))
                }
            }
        }
    }

    /// Records the facts of a call for the stall detector.
    pub(crate) fn observe_call(
        &mut self,
        cx: &Context,
        call: &ToolUse,
        read_only: bool,
        running: bool,
        finished: &FinishedCall,
    ) {
        let mut fact = CallFact::new(call, &finished.parts, finished.is_error(), read_only);
        if !finished.changes.is_empty() {
            fact = fact.changing();
        }
        if running && call.name == COMMAND_OUTPUT {
            fact = fact.waiting();
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
        self.facts.checks = Some(checks_key(evidence));
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
    pub(crate) fn check_progress(&mut self, cx: &mut Context) -> Option<TaskEnd> {
        let facts = std::mem::take(&mut self.facts);
        if !cx.settings.loop_guard {
            return None;
        }
        match self.detector.observe(&facts) {
            StallGuidance::Fine => None,
            StallGuidance::Warn(text) => {
                cx.transcript.remind(ReminderCategory::Progress, text);
                None
            }
            StallGuidance::Stop(reason) => Some(TaskEnd::new(RunOutcome::Limit, reason)),
        }
    }
}

/// Tells the model once about each external change of a file that it has seen.
async fn notice_external_changes(cx: &mut Context, seen: &Seen, running: bool) -> Result<(), AgentError> {
    let known = seen.entries();
    if known.is_empty() {
        return Ok(());
    }
    let workspace = Arc::clone(&cx.workspace);
    let paths: Vec<_> = known.iter().map(|file| file.path.clone()).collect();
    let now = blocking("looking at the files", move || workspace.fingerprints(&paths)).await?;
    let changes = outside_changes(&known, &now);
    for (change, hash) in &changes {
        seen.noticed(&change.path, *hash);
        cx.transcript.emit(Event::FileChanged { change: change.clone() });
    }
    if let Some(text) = notice(&changes, running) {
        cx.transcript.remind(ReminderCategory::File, text);
    }
    cx.transcript.note_seen(seen);
    Ok(())
}

fn remind_of_todos(cx: &mut Context, due: TodoReminder) {
    let TodoReminder { reason, text, todos } = due;
    cx.transcript.emit(Event::TodoReminder { todos, reason });
    cx.transcript.remind(ReminderCategory::Todo, text);
}
