//! The transcript of a running session: its state, and the log that records every change.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use journeyman_policy::secrets::Redactor;
use journeyman_protocol::{
    AgentState, Block, CallId, CallRecord, CallState, CallTransition, ErrorPhase, ErrorSeverity, Event,
    GuardViolation, Message, ReminderCategory, Role, Seq, SessionId, ToolUse, TurnPhase, Verdict,
};
use journeyman_tools::SeenFiles;
use journeyman_workspace::Workspace;

use crate::blocking::run_blocking;
use crate::session::shared_state::SessionShared;
use crate::transcript::log::{Log, LogEntry};
use crate::transcript::record::{MessageId, Record, TaskCounters};
use crate::transcript::reminder;
use crate::transcript::state::State;
use crate::{AgentError, Clock};

/// Maximum number of violations that the report of a task holds; events have all.
const MAX_REPORTED_VIOLATIONS: usize = 1_000;

/// The newest log position where every call has its result, shared with the handle.
#[derive(Debug)]
pub(crate) struct SafePosition(AtomicU64);

impl SafePosition {
    pub(crate) fn new(seq: Seq) -> Self {
        Self(AtomicU64::new(seq.0))
    }

    pub(crate) fn get(&self) -> Seq {
        Seq(self.0.load(Ordering::Acquire))
    }

    pub(crate) fn set(&self, seq: Seq) {
        self.0.store(seq.0, Ordering::Release);
    }
}

/// The transcript of a running session. Every record is applied to the state when it is queued for
/// the log, so that a restart rebuilds the same state.
pub(crate) struct Transcript {
    state: State,
    log: Log,
    clock: Clock,
    redactor: Arc<Redactor>,
    shared: Arc<SessionShared>,
    safe: Arc<SafePosition>,
    /// The workspace and session whose recovered calls are forgotten once the calls' results are
    /// logged.
    recovered: Option<(Arc<Workspace>, SessionId)>,
}

/// The details of a call's state transition.
#[derive(Default)]
pub(crate) struct CallChange<'a> {
    pub(crate) note: Option<String>,
    pub(crate) by: Option<&'a str>,
    pub(crate) verdict: Option<Verdict>,
}

impl From<Verdict> for CallChange<'_> {
    fn from(verdict: Verdict) -> Self {
        Self { verdict: Some(verdict), ..Self::default() }
    }
}

impl Transcript {
    pub(crate) fn new(
        state: State,
        log: Log,
        clock: Clock,
        redactor: Arc<Redactor>,
        shared: Arc<SessionShared>,
    ) -> Self {
        let safe = Arc::new(SafePosition::new(state.safe));
        Self { state, log, clock, redactor, shared, safe, recovered: None }
    }

    /// Returns the state after all records so far.
    pub(crate) fn state(&self) -> &State {
        &self.state
    }

    /// Returns the log.
    pub(crate) fn log(&self) -> &Log {
        &self.log
    }

    /// Returns the position that snapshots name.
    pub(crate) fn safe_position(&self) -> Arc<SafePosition> {
        Arc::clone(&self.safe)
    }

    /// Queues an event for the next append. A live-only event is shown at once.
    pub(crate) fn emit(&self, event: Event) {
        self.log.emit(event);
    }

    /// Makes the workspace forget a session's recovered calls once their results are logged.
    pub(crate) fn forget_recovered_when_written(&mut self, workspace: &Arc<Workspace>, session: &SessionId) {
        self.recovered = Some((Arc::clone(workspace), session.clone()));
    }

    /// Queues a record for the log and applies it to the state.
    pub(crate) fn record(&mut self, record: Record) {
        self.state.apply(record.clone(), self.clock.now());
        self.log.push_record(record);
    }

    /// Queues records that are written atomically, and applies them to the state.
    pub(crate) fn record_together(&mut self, records: Vec<Record>) {
        let now = self.clock.now();
        for record in &records {
            self.state.apply(record.clone(), now);
        }
        self.log.push(records.into_iter().map(LogEntry::from).collect());
    }

    /// Writes the queued entries, and updates the log position.
    pub(crate) async fn flush(&mut self) -> Result<(), AgentError> {
        self.log.flush().await?;
        if let Some((workspace, session)) = self.recovered.take() {
            // Calls that could not be forgotten are sealed again when the session is opened again,
            // with the same result.
            run_blocking("forgetting sealed calls", move || workspace.recovery().forget_recovered(&session))
                .await
                .ok();
        }
        self.state.last = self.log.position();
        if self.state.is_settled() {
            self.state.safe = self.state.last;
            self.safe.set(self.state.last);
        }
        Ok(())
    }

    /// Reports a failure that the run survives.
    pub(crate) fn emit_nonfatal_error(&mut self, phase: ErrorPhase, message: impl Into<String>) {
        let (severity, message) = (ErrorSeverity::Warn, message.into());
        self.emit(Event::Error { severity, phase, message });
    }

    /// Sets the session's activity, and reports a change.
    pub(crate) fn set_agent_state(&mut self, state: AgentState) {
        let was = self.shared.status.send_if_modified(|status| {
            let changed = status.state != state;
            status.state = state;
            changed
        });
        if was {
            self.emit(Event::StateChanged { state });
        }
    }

    /// Sets the turn's phase, and reports a change.
    pub(crate) fn set_phase(&mut self, current: TurnPhase) {
        let mut previous = current;
        let step = self.state.counters.step;
        self.shared.status.send_if_modified(|status| {
            previous = std::mem::replace(&mut status.turn_phase, current);
            status.step = step;
            previous != current
        });
        if previous != current {
            self.emit(Event::TurnPhaseChanged { previous, current });
        }
    }

    /// Counts a model request, and reports it.
    pub(crate) fn begin_turn(&mut self) {
        let turns = self.state.counters.turns.saturating_add(1);
        self.record(Record::Counters(TaskCounters { turns, ..self.state.counters }));
        self.emit(Event::TurnStarted { turn: turns });
    }

    /// Counts a step (a model reply with its calls), and reports it.
    pub(crate) fn end_step(&mut self, took: Duration) {
        let step = self.state.counters.step.saturating_add(1);
        self.record(Record::Counters(TaskCounters { step, ..self.state.counters }));
        let duration_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        self.emit(Event::StepComplete { step, duration_ms });
    }

    /// Moves queued messages into the transcript.
    pub(crate) fn take_queued(&mut self, content: Vec<Block>, taken: Vec<MessageId>) {
        if content.is_empty() && taken.is_empty() {
            return;
        }
        let message = Message { role: Role::User, content };
        self.record(Record::Message { message, taken: taken.clone(), stop: None, calls: Vec::new() });
        self.shared.remove_taken(&taken);
    }

    /// Adds a text of the session itself as a user message.
    pub(crate) fn add_user_text(&mut self, text: impl Into<String>) {
        let text = self.redactor.redact(&text.into()).into_owned();
        self.record(Record::message(Message::user_text(text)));
    }

    /// Adds a reminder for the model.
    pub(crate) fn remind_model(&mut self, category: ReminderCategory, content: String) {
        self.add_user_text(reminder::wrap_reminder(&content));
        self.emit(Event::ReminderSent { category, content });
    }

    /// Lends the messages to a request. The caller gives them back with
    /// [`Transcript::return_messages`].
    pub(crate) fn lend_messages(&mut self) -> Vec<Message> {
        std::mem::take(&mut self.state.messages)
    }

    /// Takes back lent messages.
    pub(crate) fn return_messages(&mut self, messages: Vec<Message>) {
        self.state.messages = messages;
    }

    /// Records newly seen versions of files.
    pub(crate) fn record_seen_files(&mut self, seen: &SeenFiles) {
        for file in seen.take_changes() {
            self.record(Record::Seen(file));
        }
    }

    /// Records guard violations by commands. `check` is the command line of a check; a violation by
    /// a call names the call.
    pub(crate) fn record_violations(&mut self, check: Option<String>, violations: Vec<GuardViolation>) {
        let room = MAX_REPORTED_VIOLATIONS.saturating_sub(self.state.violations.len());
        let Some(first) = violations.first() else { return };
        let call = first.call.clone();
        self.emit(Event::GuardViolated { call, check, violations: violations.clone() });
        self.record(Record::GuardViolated { violations: violations.into_iter().take(room).collect() });
    }

    /// Records a call's state transition.
    pub(crate) fn change_call(&mut self, call: &ToolUse, state: CallState, change: CallChange<'_>) {
        let (call, tool) = (call.id.clone(), call.name.clone());
        let CallChange { note, by, verdict } = change;
        self.record(Record::Call(CallTransition {
            call,
            tool,
            state,
            note,
            by: by.map(str::to_owned),
            verdict,
        }));
    }

    /// Records a call's end and its result atomically: a call that ended without a result would run
    /// again after a crash. Returns the call's record.
    pub(crate) fn end_call(&mut self, end: CallTransition, block: Block) -> Option<CallRecord> {
        let now = self.clock.now();
        let call = end.call.clone();
        let end = Record::Call(end);
        self.state.apply(end.clone(), now);
        let open = self.state.calls.iter().find(|open| open.call.id == call);
        let record = open.map(|open| open.record.clone());
        let result = Record::Result { call, block };
        self.state.apply(result.clone(), now);
        self.log.push(vec![LogEntry::from(end), LogEntry::from(result)]);
        record
    }

    /// Closes an open call as interrupted, and returns its record.
    pub(crate) fn close_call(&mut self, call: &CallId, text: &str) -> CallRecord {
        let tool = self.state.calls.iter().find(|open| open.call.id == *call);
        let tool = tool.map(|open| open.call.name.clone()).unwrap_or_default();
        let end = CallTransition {
            call: call.clone(),
            tool: tool.clone(),
            state: CallState::Interrupted,
            note: Some(text.to_owned()),
            by: None,
            verdict: None,
        };
        let block = self.state.result_block(&self.redactor, call, &tool, text);
        let record = self.end_call(end, block);
        record.unwrap_or_else(|| CallRecord {
            id: call.clone(),
            tool,
            state: CallState::Interrupted,
            approval: None,
            trail: Vec::new(),
        })
    }

    /// Closes every open call as interrupted.
    pub(crate) fn close_calls(&mut self, text: &str) {
        let open: Vec<CallId> = self
            .state
            .calls
            .iter()
            .filter(|open| open.result.is_none())
            .map(|open| open.call.id.clone())
            .collect();
        for call in open {
            let record = self.close_call(&call, text);
            self.emit(cut_off_event(&record, text));
        }
    }
}

/// Returns the end event of an interrupted call.
pub(crate) fn cut_off_event(record: &CallRecord, text: &str) -> Event {
    Event::ToolEnd {
        call: record.id.clone(),
        tool: record.tool.clone(),
        state: CallState::Interrupted,
        preview: text.to_owned(),
        duration_ms: 0,
        output_lines: None,
    }
}

#[cfg(test)]
mod tests {
    use journeyman_protocol::StopReason;
    use serde_json::json;

    use super::*;
    use crate::test_context::{SECRET, TestContext, call};

    fn ended(id: &str) -> CallTransition {
        CallTransition {
            call: CallId::new(id),
            tool: "read_file".to_owned(),
            state: CallState::Completed,
            note: None,
            by: None,
            verdict: None,
        }
    }

    #[tokio::test]
    async fn a_restart_finds_the_state_of_the_running_session() {
        let mut test = TestContext::new(&[]).await;
        test.cx.transcript.record(Record::Began);
        test.cx.transcript.add_user_text(format!("the key is {SECRET}"));
        test.cx.transcript.begin_turn();
        test.record_reply(&[call("c1", "read_file", json!({})), call("c2", "read_file", json!({}))]);
        test.cx.transcript.end_call(ended("c1"), Block::result(CallId::new("c1"), "read", false));
        test.cx.transcript.end_step(Duration::from_millis(5));
        let reloaded = test.assert_survives_restart().await;
        assert_eq!((reloaded.counters.turns, reloaded.counters.step), (1, 1));
        assert!(!reloaded.messages[0].text().contains(SECRET), "{:?}", reloaded.messages);
    }

    #[tokio::test]
    async fn closing_calls_gives_each_open_call_one_result() {
        let mut test = TestContext::new(&[]).await;
        test.record_reply(&[call("c1", "read_file", json!({})), call("c2", "run_command", json!({}))]);
        test.cx.transcript.end_call(ended("c1"), Block::result(CallId::new("c1"), "read", false));
        test.cx.transcript.close_calls("not run: the task ended");
        test.cx.transcript.close_calls("not run: again");
        assert!(test.cx.transcript.state().is_settled());
        let results = test.cx.transcript.state().messages.last().unwrap().content.clone();
        let expected = [
            Block::result(CallId::new("c1"), "read", false),
            Block::result(CallId::new("c2"), "not run: the task ended", true),
        ];
        assert_eq!(results, expected);
        let ends = test.events().await.into_iter().filter(|event| matches!(event, Event::ToolEnd { .. }));
        assert_eq!(ends.count(), 1, "a call that had its result isn't reported again");
    }

    #[tokio::test]
    async fn the_safe_position_stays_behind_an_open_call() {
        let mut test = TestContext::new(&[]).await;
        let safe = test.cx.transcript.safe_position();
        test.cx.transcript.add_user_text("do it");
        test.cx.transcript.flush().await.unwrap();
        let before = safe.get();
        assert_eq!(before, test.cx.transcript.state().last);
        test.record_reply(&[call("c1", "read_file", json!({}))]);
        test.cx.transcript.flush().await.unwrap();
        assert_eq!(safe.get(), before);
        test.cx.transcript.close_calls("not run");
        test.cx.transcript.flush().await.unwrap();
        assert_eq!(safe.get(), test.cx.transcript.state().last);
    }

    #[tokio::test]
    async fn a_phase_and_an_activity_are_reported_when_they_change() {
        let mut test = TestContext::new(&[]).await;
        for _ in 0..2 {
            test.cx.transcript.set_agent_state(AgentState::Working);
            test.cx.transcript.set_phase(TurnPhase::PreModel);
        }
        let expected = [
            Event::StateChanged { state: AgentState::Working },
            Event::TurnPhaseChanged { previous: TurnPhase::Ready, current: TurnPhase::PreModel },
        ];
        assert_eq!(test.events().await, expected);
    }

    #[tokio::test]
    async fn a_message_without_content_still_takes_what_was_queued() {
        let mut test = TestContext::new(&[]).await;
        test.cx.shared.add_queued(crate::test_context::user_message(1, "refused by a hook"));
        test.cx.transcript.take_queued(Vec::new(), vec![MessageId(1)]);
        assert_eq!(test.cx.shared.queued_messages(), []);
        assert_eq!(test.cx.transcript.state().messages, []);
        let message = Message { role: Role::User, content: Vec::new() };
        let expected = Record::Message {
            message,
            taken: vec![MessageId(1)],
            stop: None::<StopReason>,
            calls: Vec::new(),
        };
        assert_eq!(test.records().await, [expected]);
    }
}
