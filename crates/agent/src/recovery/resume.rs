//! Opening a session again: what was cut off is closed or taken up.
//!
//! A call whose effect may have begun gets one error result that says what is known from the workspace's journal;
//! one that hadn't begun is judged and asked for again. So nothing runs twice, and nothing is left unanswered.

use std::sync::Arc;

use journeyman_policy::secrets::MASK;
use journeyman_protocol::{
    Block, CallId, CallRecord, CallState, CallTransition, ErrorPhase, Event, FileChange, GuardViolation,
    MessageKind, ReminderCategory, ResumeStrategy, RunOutcome, ToolUse, TurnPhase, UnixMillis,
};
use journeyman_workspace::{CheckpointId, IgnoredChanges, Sealed};
use tokio_util::sync::CancellationToken;

use crate::AgentError;
use crate::calls::finished::Finished;
use crate::hooks::StartedBy;
use crate::isolation::checkpoints::Before;
use crate::session::handle::CutOff;
use crate::session::turn::{Begin, End, Worker, blocking};
use crate::transcript::record::{MessageId, Record};
use crate::transcript::state::OpenCall;

/// Files named in a seal: the model reads the rest from the tree.
const MOST_NAMED: usize = 20;

/// What was found of calls and checks that were cut off.
#[derive(Default)]
struct Found {
    /// The records of the calls that were closed.
    sealed: Vec<CallRecord>,
    /// What they and checks changed, and what was taken back of it.
    changes: Vec<FileChange>,
    /// What is to be told of them.
    events: Vec<Event>,
}

/// What the model is told of a call whose arguments the log doesn't have as they were.
const ARGUMENTS_LOST: &str = "not run: the program ended before this call began, and its arguments held a secret, \
                              which the log doesn't keep. Make the call again, with the whole text.";

impl Worker {
    /// Takes over from the process that had the session before. Gives what to go on with, if anything is.
    pub(crate) async fn reopen(&mut self, cut_off: CutOff) -> Option<Begin> {
        let strategy = match self.state.task {
            // It was made with its task open, and nobody has worked on it yet.
            Some(_)
                if self.state.candidate.is_some()
                    && (self.state.books.turns, self.state.books.step) == (0, 0) =>
            {
                ResumeStrategy::Candidate
            }
            Some(_) => ResumeStrategy::Crash,
            None => ResumeStrategy::Manual,
        };
        let changed = self.take_over_setting();
        let Found { sealed, changes, events } = self.seal_cut_off().await;
        self.restore();
        self.own(changes).await;
        self.starts(StartedBy::Resume);
        self.log.emit(Event::AgentResumed { strategy, interrupted: sealed, changed });
        self.tell_of_copy();
        events.into_iter().for_each(|event| self.log.emit(event));
        if let Err(error) = self.find_checks_again().await {
            self.warn(ErrorPhase::Lifecycle, error.to_string());
        }
        self.remind_at_start();
        let given_up = self.given_up(cut_off);
        let begin = match (&self.state.task, cut_off) {
            (None, _) if given_up.is_empty() => None,
            (Some(_), CutOff::Continue) => Some(Begin::WhereItWas),
            _ => {
                self.close_calls("not run: the task was closed when the session was opened again");
                self.take(Vec::new(), given_up);
                let unverified = self.state.unverified_since();
                self.note(Record::Ended { outcome: RunOutcome::Interrupted, unverified });
                None
            }
        };
        // What can't be written now is told by the log, and written when it can be.
        self.flush().await.ok();
        begin
    }

    /// The messages that go with a task which is closed: what it was to begin with. Those that came behind one that
    /// had begun are the next task.
    fn given_up(&self, cut_off: CutOff) -> Vec<MessageId> {
        let opened = self.state.task.as_ref().is_some_and(|task| task.opened);
        if opened || cut_off == CutOff::Continue {
            return Vec::new();
        }
        // One that was sent since the session was opened is for the next task.
        let before = |id: MessageId| id <= self.state.newest;
        let waiting = self.shared.waiting().into_iter();
        let given_up = waiting.filter(|queued| queued.kind == MessageKind::User && before(queued.id));
        given_up.map(|queued| queued.id).collect()
    }

    /// The settings hold that the session is opened with; what is different is said.
    fn take_over_setting(&mut self) -> Vec<String> {
        let mut changed = Vec::new();
        let mut now = self.setting();
        if let Some(was) = &self.state.setting {
            if was.model == now.model && !was.tool_calling {
                // It was found to take no tools.
                now.tool_calling = false;
                self.settings.tool_calling = false;
            }
            if was.model != now.model {
                changed.push(format!("model: {} → {}", was.model, now.model));
            }
            if was.asked.keep != now.asked.keep {
                let word = |keep| if keep { "stays in its copy" } else { "is landed" };
                changed.push(format!("its work: {} → {}", word(was.asked.keep), word(now.asked.keep)));
            }
            if was.mode != now.mode {
                changed.push(format!("mode: {} → {}", was.mode.name(), now.mode.name()));
            }
        }
        if self.state.setting.as_ref() != Some(&now) {
            self.set(now);
        }
        changed
    }

    /// What the worker keeps beside the state comes from the state.
    fn restore(&mut self) {
        self.seen.restore(self.state.seen.values().cloned());
        if let Some(task) = &self.state.task {
            self.before = task.checkpoint.map_or(Before::Unrecorded, |id| Before::Recorded(CheckpointId(id)));
        }
    }

    /// Keeps that these changes are the session's own, though no result told of them before the program ended.
    async fn own(&mut self, changes: Vec<FileChange>) {
        let (seen, workspace) = (Arc::clone(&self.seen), Arc::clone(&self.parts.workspace));
        let looked =
            blocking("looking at what was cut off", move || seen.left_by(&workspace, &changes)).await;
        if let Err(error) = looked {
            self.warn(ErrorPhase::Lifecycle, error.to_string());
        }
        self.note_seen();
    }

    /// Closes the calls whose effect may have begun.
    async fn seal_cut_off(&mut self) -> Found {
        let checkpoint = self.state.task.as_ref().and_then(|task| task.checkpoint).map(CheckpointId);
        let checking = self.state.task.as_ref().is_some_and(|task| task.checking);
        let changes = if checking { self.claim_checks().await } else { Vec::new() };
        let mut found = Found { changes, ..Found::default() };
        let begun = |open: &&OpenCall| open.result.is_none() && open.record.state == CallState::Executing;
        let begun: Vec<OpenCall> = self.state.calls.iter().filter(begun).cloned().collect();
        for open in begun {
            let text = match self.fate(checkpoint, &open).await {
                Ok(fate) => {
                    let edited = |change: &FileChange| Event::FileEdited {
                        call: open.call.id.clone(),
                        change: change.clone(),
                    };
                    found.events.extend(fate.applied.iter().map(edited));
                    self.note_sealed(&fate);
                    let put_back = self.put_back(&fate);
                    let text = seal_text(&fate, put_back.as_deref());
                    found.events.extend(put_back.map(|message| Event::Warning { message }));
                    found.changes.extend(fate.applied.into_iter().chain(fate.restored));
                    text
                }
                Err(error) => format!(
                    "cut off: the program ended while this call ran, and what it did could not be found out \
                     ({error}). Look at the files before you do it again."
                ),
            };
            let record = self.seal(&open.call.id, &text);
            found.events.push(cut_off_event(&record, &text));
            found.sealed.push(record);
        }
        self.seal_masked(&mut found);
        self.seal_background(checkpoint, &found.sealed).await;
        found
    }

    /// Puts on record what recovery moved away or put back of guarded paths. The workspace knows of the call until the
    /// next flush.
    fn note_sealed(&mut self, fate: &Sealed) {
        self.has_sealed = true;
        self.note_violations(None, fate.violations.clone());
        if let Some(problem) = &fate.problem {
            self.warn(ErrorPhase::Lifecycle, problem.clone());
        }
    }

    /// Lets the workspace forget the sealed calls whose results are on record.
    pub(crate) async fn forget_sealed(&mut self) {
        if !std::mem::take(&mut self.has_sealed) {
            return;
        }
        let (workspace, session) = (Arc::clone(&self.parts.workspace), self.session.clone());
        // What isn't forgotten is sealed once more when the session is opened again, to the same end.
        blocking("forgetting sealed calls", move || workspace.forget_sealed(&session)).await.ok();
    }

    /// Closes calls that hadn't begun and whose arguments had a secret: the log has them without it, and they would
    /// write the mask into a file.
    fn seal_masked(&mut self, found: &mut Found) {
        let open = self.state.calls.iter().filter(|open| open.result.is_none());
        let masked: Vec<CallId> = open
            .filter(|open| open.call.input.to_string().contains(MASK))
            .map(|open| open.call.id.clone())
            .collect();
        for call in masked {
            let record = self.seal(&call, ARGUMENTS_LOST);
            found.events.push(cut_off_event(&record, ARGUMENTS_LOST));
            found.sealed.push(record);
        }
    }

    /// Brings commands to an end that ran in the background when the program ended: their calls had their results.
    async fn seal_background(&mut self, checkpoint: Option<CheckpointId>, sealed: &[CallRecord]) {
        let sealed: Vec<CallId> = sealed.iter().map(|record| record.id.clone()).collect();
        let (workspace, session) = (Arc::clone(&self.parts.workspace), self.session.clone());
        // Without a checkpoint nothing is compared with it.
        let checkpoint = checkpoint.unwrap_or(CheckpointId(0));
        let seal = move || {
            let mut calls = workspace.unrecorded_calls(&session)?;
            calls.retain(|call| !sealed.contains(call));
            calls.iter().map(|call| workspace.seal_call(&checkpoint, &session, call, UnixMillis(0))).collect()
        };
        let fates = blocking("looking at what ran in the background", seal).await;
        let fates: Vec<Sealed> = match fates.and_then(|done: Result<_, _>| done.map_err(AgentError::from)) {
            Ok(fates) => fates,
            Err(error) => return self.warn(ErrorPhase::Lifecycle, error.to_string()),
        };
        for fate in fates {
            self.note_sealed(&fate);
            let text = format!("A command that ran in the background was {}", seal_text(&fate, None));
            let text = crate::transcript::reminder::wrapped(&text);
            let told = self.inbox.take(MessageKind::System, ReminderCategory::General, text).await;
            if let Err(error) = told {
                self.warn(ErrorPhase::Lifecycle, error.to_string());
            }
        }
    }

    /// Takes back what a call did in part that didn't end when it was told to, and says what of it is in place.
    pub(crate) async fn clear_up(&mut self, call: &ToolUse, finished: &mut Finished) {
        let Before::Recorded(checkpoint) = self.before else { return };
        let Some(open) = self.state.calls.iter().find(|open| open.call.id == call.id).cloned() else {
            return;
        };
        let text = match self.fate(Some(checkpoint), &open).await {
            Ok(fate) => {
                self.note_sealed(&fate);
                let put_back = self.put_back(&fate);
                let told_of_guarded = describe_violations(&fate.violations);
                let Sealed { applied, restored, ran, ignored, left, .. } = fate;
                let mut text = match (applied.is_empty(), put_back) {
                    (true, None) if !ran => return,
                    (true, None) => "None of its changes to tracked files are in place.".to_owned(),
                    (true, Some(put_back)) => put_back,
                    (false, _) => format!("Its changes are in place: {}.", named(&applied)),
                };
                text.push_str(&describe_left(&left));
                text.push_str(&told_of_guarded);
                if ran {
                    text.push(' ');
                    text.push_str(&beyond_tracking(&ignored));
                }
                self.own(applied.iter().chain(&restored).cloned().collect()).await;
                finished.changes.extend(applied);
                text
            }
            Err(error) => format!("What it did could not be found out ({error}); look at the files."),
        };
        finished.parts.push(journeyman_protocol::ResultPart::Text { text });
    }

    /// Says what was put back of a command that was cut off, and how to have it again: while it ran, a person may
    /// have changed the same tree.
    fn put_back(&self, fate: &Sealed) -> Option<String> {
        if fate.restored.is_empty() {
            return None;
        }
        let named = named(&fate.restored);
        if self.parts.workspace.base().is_some() {
            return Some(format!("What it had done in part was taken back: {named}."));
        }
        let kept: Vec<String> = fate.kept.iter().map(|kept| format!("checkpoint {kept}")).collect();
        let kept = if kept.is_empty() { String::new() } else { format!("; {} has it", kept.join(", ")) };
        Some(format!(
            "What differed from before it was put back, also what a person may have changed while it ran: {named}. \
             `jm redo` gives it back once the session has ended{kept}."
        ))
    }

    /// What the journal knows of a call that was cut off. What a command left half done is taken back first.
    async fn fate(&self, checkpoint: Option<CheckpointId>, open: &OpenCall) -> Result<Sealed, AgentError> {
        // Nothing changes the tree before it is on record.
        let Some(checkpoint) = checkpoint else { return Ok(Sealed::default()) };
        let workspace = Arc::clone(&self.parts.workspace);
        let (session, call) = (self.session.clone(), open.call.id.clone());
        let started = open.record.started_at().unwrap_or(UnixMillis(0));
        let seal = move || {
            // Nothing of a command that was being tried out is in place.
            workspace.sweep_trials();
            workspace.seal_call(&checkpoint, &session, &call, started)
        };
        Ok(blocking("looking at what was cut off", seal).await??)
    }

    /// What checks left behind when they were cut off is theirs, and undone with the session. Gives it.
    async fn claim_checks(&mut self) -> Vec<FileChange> {
        let workspace = Arc::clone(&self.parts.workspace);
        let session = self.session.clone();
        let claim = move || workspace.seal_checks(&session);
        let claimed = blocking("looking at what checks left", claim).await;
        let changes = match claimed.and_then(|done| done.map_err(AgentError::from)) {
            Ok(claimed) => {
                self.note_sealed(&claimed);
                claimed.applied
            }
            Err(error) => {
                self.warn(ErrorPhase::Lifecycle, error.to_string());
                Vec::new()
            }
        };
        self.note(Record::Checking { running: false });
        changes
    }

    /// Gives an open call its one result, as cut off; gives its record.
    fn seal(&mut self, call: &CallId, text: &str) -> CallRecord {
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
        let block = self.result_block(call, &tool, text);
        let record = self.end_call(end, block);
        record.unwrap_or_else(|| CallRecord {
            id: call.clone(),
            tool,
            state: CallState::Interrupted,
            approval: None,
            trail: Vec::new(),
        })
    }

    pub(crate) fn result_block(&self, call: &CallId, tool: &str, text: &str) -> Block {
        let text = self.parts.redactor.redact(text);
        match self.takes_result(call) {
            true => Block::result(call.clone(), text, true),
            false => Block::text(journeyman_context::fenced("result", &[("of", tool)], &text)),
        }
    }

    /// Gives every call that is still open one result.
    pub(crate) fn close_calls(&mut self, text: &str) {
        let open: Vec<CallId> = self
            .state
            .calls
            .iter()
            .filter(|open| open.result.is_none())
            .map(|open| open.call.id.clone())
            .collect();
        for call in open {
            let record = self.seal(&call, text);
            self.log.emit(cut_off_event(&record, text));
        }
    }

    /// Goes on where the task was cut off. `Some` is its end.
    pub(crate) async fn pick_up(&mut self, stop: &CancellationToken) -> Result<Option<End>, AgentError> {
        if self.state.task.as_ref().is_some_and(|task| !task.opened) && self.shared.has_work() {
            // It was cut off before it had taken what it is about. The transcript ends with the task before it,
            // which is over.
            self.open().await?;
            return Ok(None);
        }
        self.at(TurnPhase::PreModel);
        let answered =
            self.state.messages.last().is_none_or(|last| last.role == journeyman_protocol::Role::User);
        let last =
            self.state.messages.iter().rev().find(|it| it.role == journeyman_protocol::Role::Assistant);
        self.tally.last_text = last.map(journeyman_protocol::Message::text).unwrap_or_default();
        if self.state.is_settled() && answered {
            // The model was about to be asked, or being asked: what came of that reply is void.
            return Ok(None);
        }
        self.after_reply(stop).await
    }
}

/// What people are told of a call that was cut off.
fn cut_off_event(record: &CallRecord, text: &str) -> Event {
    Event::ToolEnd {
        call: record.id.clone(),
        tool: record.tool.clone(),
        state: CallState::Interrupted,
        preview: text.to_owned(),
        duration_ms: 0,
    }
}

fn seal_text(fate: &Sealed, put_back: Option<&str>) -> String {
    let mut text = String::from("cut off: the program ended while this call ran. ");
    match (fate.applied.is_empty(), fate.ran) {
        (true, false) => text.push_str("None of its changes are in place, so it is safe to do it again."),
        (true, true) => text.push_str("None of its changes to tracked files are in place."),
        (false, _) => {
            let named = named(&fate.applied);
            text.push_str(&format!(
                "Its changes are in place and journaled, don't make them again: {named}."
            ));
        }
    }
    if let Some(put_back) = put_back {
        text.push_str(&format!(" {put_back}"));
    }
    text.push_str(&describe_left(&fate.left));
    text.push_str(&describe_violations(&fate.violations));
    if fate.ran {
        text.push(' ');
        text.push_str(&beyond_tracking(&fate.ignored));
        if fate.applied.is_empty() {
            text.push_str(" Look at what is there before you run it again.");
        }
    }
    text.push_str(" Its output is lost.");
    text
}

/// Names files that differ from before a call and were left as they are, each with the reason.
fn describe_left(left: &[(FileChange, String)]) -> String {
    let named = left.iter().take(MOST_NAMED);
    named.map(|(change, why)| format!(" {} differs and was left as it is: {why}.", change.path)).collect()
}

/// Names guarded paths that a call changed, and what became of each.
fn describe_violations(violations: &[GuardViolation]) -> String {
    let named = violations.iter().take(MOST_NAMED).map(|one| format!(" Also, {one}."));
    let mut text: String = named.collect();
    if !text.is_empty() {
        text.push_str(
            " A command may not create repositories, or change files that programs outside the sandbox run or obey.",
        );
    }
    text
}

/// What is known of a command's effects on what isn't tracked.
fn beyond_tracking(ignored: &IgnoredChanges) -> String {
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

fn named(changes: &[FileChange]) -> String {
    let paths = changes.iter().take(MOST_NAMED).map(|change| change.path.to_string());
    let mut text = paths.collect::<Vec<_>>().join(", ");
    if changes.len() > MOST_NAMED {
        text.push_str(&format!(" and {} more", changes.len() - MOST_NAMED));
    }
    text
}
