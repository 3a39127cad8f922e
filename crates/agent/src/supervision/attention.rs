//! What the session looks at between steps: files that others changed, its todos, its schedule, its commands in the
//! background, and whether it comes forward at all.

use std::collections::BTreeMap;
use std::sync::Arc;

use journeyman_protocol::{
    CallId, ErrorPhase, Event, GuardViolation, MessageKind, ReminderCategory, ToolUse,
};
use journeyman_sandbox::Outcome;
use journeyman_tools::{Background, BackgroundExit};

use crate::AgentError;
use crate::calls::finished::Finished;
use crate::session::turn::{End, Worker, blocking};
use crate::supervision::external_changes::{notice, outside_changes};
use crate::supervision::stall::{CallFact, Guidance, checks_key};
use crate::supervision::todos::TodoReminder;
use crate::transcript::record::Record;
use crate::transcript::reminder;

/// Files named in a notice.
const MOST_NAMED: usize = 10;
/// Maximum number of violations that the report of a task holds; events have all.
const MAX_VIOLATIONS: usize = 1_000;
/// The tool that asks how a command in the background gets on: in silence it waits, it doesn't go in circles.
const COMMAND_OUTPUT: &str = "command_output";

impl Worker {
    /// Looks around after a step. `Some` ends the task: it goes in circles.
    pub(crate) async fn look_around(&mut self) -> Result<Option<End>, AgentError> {
        self.notice_others().await?;
        self.note_todos();
        if let Some(emptied) = self.emptied.take() {
            self.remind_of_todos(emptied);
        }
        if let Some(due) = self.reminders.step(&self.todos.get()) {
            self.remind_of_todos(due);
        }
        self.run_schedule().await;
        Ok(self.mind_progress())
    }

    /// Tells the model, once, what somebody else changed of what it has seen.
    async fn notice_others(&mut self) -> Result<(), AgentError> {
        let seen = self.seen.entries();
        if seen.is_empty() {
            return Ok(());
        }
        let workspace = Arc::clone(&self.parts.workspace);
        let paths: Vec<_> = seen.iter().map(|file| file.path.clone()).collect();
        let now = blocking("looking at the files", move || workspace.fingerprints(&paths)).await?;
        let changes = outside_changes(&seen, &now);
        let running = self.background.as_ref().is_some_and(|it| it.list().iter().any(|one| one.running));
        for (change, hash) in &changes {
            self.seen.noticed(&change.path, *hash);
            self.log.emit(Event::FileChanged { change: change.clone() });
        }
        if let Some(text) = notice(&changes, running) {
            self.remind(ReminderCategory::File, text);
        }
        self.note_seen();
        Ok(())
    }

    /// Adds a reminder to what the model is told next.
    pub(crate) fn remind(&mut self, category: ReminderCategory, content: String) {
        self.say(reminder::wrapped(&content));
        self.log.emit(Event::ReminderSent { category, content });
    }

    /// Writes down what is new about files.
    pub(crate) fn note_seen(&mut self) {
        for file in self.seen.take_changes() {
            self.note(Record::Seen(file));
        }
    }

    /// Writes down what is new about the todos.
    pub(crate) fn note_todos(&mut self) {
        let changes = self.todos.take_changes();
        let Some(last) = changes.last() else { return };
        self.note(Record::Todos { todos: last.current.clone() });
        for change in changes {
            let emptied = self.reminders.changed(&change.previous, &change.current);
            self.log.emit(Event::TodoChanged { previous: change.previous, current: change.current });
            if let Some(emptied) = emptied {
                self.emptied = Some(emptied);
            }
        }
    }

    fn remind_of_todos(&mut self, due: TodoReminder) {
        let TodoReminder { reason, text, todos } = due;
        self.log.emit(Event::TodoReminder { todos, reason });
        self.remind(ReminderCategory::Todo, text);
    }

    /// What the model is reminded of when a task begins that isn't the first of its session's life.
    pub(crate) fn remind_at_start(&mut self) {
        let wanted = self.settings.todos.is_some_and(|todos| todos.remind_at_start);
        let todos = self.todos.get();
        // An empty list is nothing to be reminded of: the tool's own description says when it is of use.
        if wanted && self.state.is_settled() && !todos.is_empty() {
            let due = self.reminders.start(&todos);
            self.remind_of_todos(due);
        }
    }

    /// Runs what is scheduled for this step.
    async fn run_schedule(&mut self) {
        // The step that ends now is counted after this.
        self.schedule.advance(self.state.books.step.saturating_add(1));
        for fired in self.schedule.run().await {
            let (task, spec, kind) = (fired.task.clone(), fired.spec, fired.kind);
            self.log.emit(Event::SchedulerTriggered { task, spec, kind });
            match fired.outcome {
                Ok(None) => {}
                Ok(Some(text)) => self.remind(ReminderCategory::General, text),
                Err(why) => self.warn(ErrorPhase::System, format!("the task «{}» failed: {why}", fired.task)),
            }
        }
    }

    /// Keeps what a call came to, for telling whether the run comes forward.
    pub(crate) fn observe(&mut self, call: &ToolUse, read_only: bool, finished: &Finished) {
        let mut fact = CallFact::new(call, &finished.parts, finished.is_error(), read_only);
        if !finished.changes.is_empty() {
            fact = fact.changing();
        }
        let running = self.background.as_ref().is_some_and(|it| it.list().iter().any(|one| one.running));
        if running && call.name == COMMAND_OUTPUT {
            fact = fact.waiting();
        }
        self.facts.calls.push(fact);
        let paths: Vec<_> = finished.changes.iter().map(|change| change.path.clone()).collect();
        let hashes = self.parts.workspace.fingerprints(&paths);
        for (path, hash) in paths.into_iter().zip(hashes) {
            self.facts.changes.retain(|(other, _)| *other != path);
            self.facts.changes.push((path, hash));
        }
    }

    /// Keeps what checks found, for the same.
    pub(crate) fn observe_checks(&mut self, evidence: &[journeyman_protocol::Evidence]) {
        self.facts.checks = Some(checks_key(evidence));
    }

    /// Keeps that something came in, for the same.
    pub(crate) fn observe_message(&mut self, kind: MessageKind, text: &str) {
        match kind {
            MessageKind::User => self.facts.user_message = true,
            MessageKind::System => self.facts.notices.push(text.to_owned()),
            MessageKind::Reminder => {}
        }
    }

    /// Tells a model that goes in circles so, and ends the task of one that goes on.
    pub(crate) fn mind_progress(&mut self) -> Option<End> {
        let facts = std::mem::take(&mut self.facts);
        if !self.settings.loop_guard {
            return None;
        }
        match self.guard.observe(&facts) {
            Guidance::Fine => None,
            Guidance::Warn(text) => {
                self.remind(ReminderCategory::Progress, text);
                None
            }
            Guidance::Stop(reason) => Some(End::new(journeyman_protocol::RunOutcome::Limit, reason)),
        }
    }

    /// The session's commands in the background. Their ends are news for the model.
    pub(crate) fn background(&mut self) -> Arc<Background> {
        if let Some(background) = &self.background {
            return Arc::clone(background);
        }
        let inbox = Arc::clone(&self.inbox);
        let runtime = tokio::runtime::Handle::current();
        let notice = move |exit: BackgroundExit| {
            let inbox = Arc::clone(&inbox);
            runtime.spawn(async move {
                let text = reminder::wrapped(&ended(&exit));
                // A log that refuses it is told of elsewhere; the command's output can still be asked for.
                inbox.take(MessageKind::System, ReminderCategory::General, text).await.ok();
            });
        };
        // No more commands than calls have had a name.
        let count = self.state.call_ids.len() as u64;
        let background = Arc::new(Background::new(notice).after(count));
        self.background = Some(Arc::clone(&background));
        background
    }

    /// Ends the commands in the background, and waits until what they did is journaled.
    pub(crate) async fn stop_background(&mut self) {
        if let Some(background) = self.background.take() {
            background.close().await;
            self.note_strays(&background);
        }
    }

    /// Puts on record what commands did that they may not. `check` is the check's command line; calls are named by
    /// each violation.
    pub(crate) fn note_violations(&mut self, check: Option<String>, violations: Vec<GuardViolation>) {
        let room = MAX_VIOLATIONS.saturating_sub(self.state.violations.len());
        let Some(first) = violations.first() else { return };
        let call = first.call.clone();
        self.log.emit(Event::GuardViolated { call, check, violations: violations.clone() });
        self.note(Record::GuardViolated { violations: violations.into_iter().take(room).collect() });
    }

    /// Does it for commands that ended in the background.
    pub(crate) fn note_background_violations(&mut self) {
        if let Some(background) = self.background.clone() {
            self.note_strays(&background);
        }
    }

    fn note_strays(&mut self, background: &Background) {
        let mut by_call: BTreeMap<Option<CallId>, Vec<GuardViolation>> = BTreeMap::new();
        for one in background.take_violations() {
            by_call.entry(one.call.clone()).or_default().push(one);
        }
        for violations in by_call.into_values() {
            self.note_violations(None, violations);
        }
    }
}

/// What the model is told of a command that ended in the background.
fn ended(exit: &BackgroundExit) -> String {
    let how = match &exit.outcome {
        Outcome::Exited(code) => format!("ended with exit code {code}"),
        Outcome::Signaled(signal) => format!("was killed by signal {signal}"),
        Outcome::TimedOut => "was killed at its time limit".to_owned(),
        Outcome::Cancelled => "was stopped".to_owned(),
        excess @ (Outcome::OutputLimit | Outcome::MemoryLimit | Outcome::DiskLimit | Outcome::CpuLimit) => {
            format!("was killed for {}", excess.excess().unwrap_or_default())
        }
        Outcome::SetupFailed(why) => format!("did not run: {why}"),
    };
    let mut text = format!("The background command {} ({}) {how}.", exit.id, exit.command);
    if let Some(problem) = &exit.problem {
        text.push_str(&format!(" {problem}"));
    }
    if !exit.changes.is_empty() {
        let files: Vec<String> =
            exit.changes.iter().take(MOST_NAMED).map(|change| change.path.to_string()).collect();
        text.push_str(&format!(" It changed {} files: {}.", exit.changes.len(), files.join(", ")));
    }
    if !exit.tail.trim().is_empty() {
        text.push_str(&format!(" The end of its output:\n{}", exit.tail.trim_end()));
    }
    text
}
