//! The fold over a session's events: finished blocks, and the state that is still moving.
//!
//! The same events give the same blocks for every observer. What was only streamed is settled by
//! the event that records it: text that didn't arrive is added, and nothing is shown twice.

use std::time::{Duration, Instant};

use journeyman_host::event_text::describe_event;
use journeyman_host::format::printable;
use journeyman_protocol::{
    AgentState, CallId, CheckOutcome, ContentHash, EditDiff, Envelope, Event, FileChange, Mode, RunOutcome,
    RunReport, Seq, StopReason, Todo, TodoStatus, label_check,
};
use journeyman_terminal::markdown::{self, BlockSplitter};
use journeyman_terminal::{Activity, Style, StyledLine};

use crate::agent_tree::AgentForest;
use crate::blocks::{Block, BlockEntry, EndedCall, call_label};
use crate::status_facts::{StatusFacts, VerificationState};

/// Maximum bytes of a running command's output that are kept: the live area shows its last lines.
const MAX_OUTPUT_BYTES: usize = 4_000;

/// A tool call that hasn't ended.
#[derive(Debug, Clone)]
pub(crate) struct OpenCall {
    /// The call.
    pub(crate) call: CallId,
    /// The event that began it.
    pub(crate) start: Event,
    /// The end of its output so far.
    pub(crate) output: String,
    /// The files that it changed so far.
    changes: Vec<FileChange>,
    /// The lines that differ in the file that it replaced.
    diff: Option<EditDiff>,
}

/// A check that runs.
#[derive(Debug, Clone)]
pub(crate) struct OpenCheck {
    /// The command.
    pub(crate) command: String,
    /// The place among the round's checks, from 1, and their number.
    pub(crate) place: (usize, usize),
    /// The end of its output so far.
    pub(crate) output: String,
}

/// The beginning of a run: a place to go back to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RewindPoint {
    /// The entry of the log with which the run began.
    pub(crate) seq: Seq,
    /// The message that began it.
    pub(crate) message: String,
    /// The checkpoint of the files before the first change of its run.
    checkpoint: Option<u64>,
    /// True if the session has begun another copy of the project since.
    is_of_other_tree: bool,
}

/// The place to take the files back to for a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RewindCheckpoint {
    /// A checkpoint.
    At(u64),
    /// None is needed: no file was changed since.
    NothingSince,
    /// None can be: the session worked in another copy of the project then.
    OtherTree,
}

/// The text of a reply that is being streamed.
#[derive(Debug, Default)]
struct OpenText {
    block: Option<u32>,
    splitter: BlockSplitter,
    /// Bytes of the block that arrived.
    bytes: u64,
    /// All text of the turn that was shown.
    shown: String,
}

/// A session as its events tell it.
#[derive(Debug)]
pub(crate) struct Conversation {
    entries: Vec<BlockEntry>,
    text: OpenText,
    thinking: Option<String>,
    /// True if the turn's thinking is among the entries.
    has_thought: bool,
    calls: Vec<OpenCall>,
    agents: AgentForest,
    check: Option<OpenCheck>,
    checks: (usize, usize),
    todos: Vec<Todo>,
    state: AgentState,
    facts: StatusFacts,
    activity: Activity,
    turnings: Vec<RewindPoint>,
    last_report: Option<Box<RunReport>>,
    /// The newest error of the run.
    newest_error: Option<String>,
    position: Seq,
}

impl Conversation {
    /// Makes the conversation of a session without events.
    #[must_use]
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            entries: Vec::new(),
            text: OpenText::default(),
            thinking: None,
            has_thought: false,
            calls: Vec::new(),
            agents: AgentForest::default(),
            check: None,
            checks: (0, 0),
            todos: Vec::new(),
            state: AgentState::Ready,
            facts: StatusFacts::default(),
            activity: Activity::new(now),
            turnings: Vec::new(),
            last_report: None,
            newest_error: None,
            position: Seq::START,
        }
    }

    /// Returns the finished blocks. Later events only add to them.
    #[must_use]
    pub(crate) fn entries(&self) -> &[BlockEntry] {
        &self.entries
    }

    /// Returns the block of the reply that is being written: its Markdown, its indentation, and
    /// true if empty lines come before it.
    #[must_use]
    pub(crate) fn open_prose(&self) -> Option<(markdown::Block, bool)> {
        let (source, indent) = self.text.splitter.open_block_text();
        if source.trim().is_empty() {
            return None;
        }
        let has_gap = match self.entries.last().map(|entry| &entry.block) {
            Some(Block::Prose(_)) => self.text.splitter.has_gap_before_open_block(),
            Some(_) => true,
            None => false,
        };
        Some((markdown::Block { source, indent, code: None, has_gap }, has_gap))
    }

    /// Returns the thinking that is being written.
    #[must_use]
    pub(crate) fn open_thinking(&self) -> Option<&str> {
        self.thinking.as_deref().filter(|text| !text.trim().is_empty())
    }

    /// Returns the calls that run.
    #[must_use]
    pub(crate) fn open_calls(&self) -> &[OpenCall] {
        &self.calls
    }

    /// Returns the agents of the session that work or whose call runs.
    #[must_use]
    pub(crate) fn agents(&self) -> &AgentForest {
        &self.agents
    }

    /// Returns the check that runs.
    #[must_use]
    pub(crate) fn open_check(&self) -> Option<&OpenCheck> {
        self.check.as_ref()
    }

    /// Returns the todos, none if all are done.
    #[must_use]
    pub(crate) fn open_todos(&self) -> &[Todo] {
        let is_open = self.todos.iter().any(|todo| todo.status != TodoStatus::Completed);
        if is_open { &self.todos } else { &[] }
    }

    /// Returns true while the session works or asks.
    #[must_use]
    pub(crate) fn is_working(&self) -> bool {
        self.state != AgentState::Ready
    }

    /// Returns the facts for the status line.
    #[must_use]
    pub(crate) fn facts(&self) -> &StatusFacts {
        &self.facts
    }

    /// Returns the line that says what the session waits for at this moment.
    #[must_use]
    pub(crate) fn activity_line(&self, now: Instant) -> Option<StyledLine> {
        self.activity.line(now)
    }

    /// Returns the time since the present activity began, for people.
    #[must_use]
    pub(crate) fn elapsed(&self, now: Instant) -> String {
        self.activity.elapsed(now)
    }

    /// Returns true if the last block is a call, which calls that run follow without a gap.
    #[must_use]
    pub(crate) fn ends_in_calls(&self) -> bool {
        matches!(self.entries.last().map(|entry| &entry.block), None | Some(Block::Call(_)))
    }

    /// Returns true if the last block is text, which other lines follow with a gap.
    #[must_use]
    pub(crate) fn ends_in_prose(&self) -> bool {
        matches!(self.entries.last().map(|entry| &entry.block), Some(Block::Prose(_) | Block::Message(_)))
    }

    /// Returns the time after which that line may be another, or `None` if it stays.
    pub(crate) fn next_activity_change(&mut self, now: Instant) -> Option<Duration> {
        self.activity.next_change(now)
    }

    /// Returns the runs, the oldest first.
    #[must_use]
    pub(crate) fn rewind_points(&self) -> &[RewindPoint] {
        &self.turnings
    }

    /// Returns the checkpoint that has the files as they were before a message. A run that changed
    /// nothing has none of its own; the next one is as good.
    #[must_use]
    pub(crate) fn checkpoint_before(&self, turning: &RewindPoint) -> RewindCheckpoint {
        let mut since = self.turnings.iter().filter(|other| other.seq >= turning.seq).peekable();
        if since.peek().is_some_and(|turning| turning.is_of_other_tree) {
            return RewindCheckpoint::OtherTree;
        }
        let found = since.find_map(|turning| turning.checkpoint);
        found.map_or(RewindCheckpoint::NothingSince, RewindCheckpoint::At)
    }

    /// Returns the report of the last run that ended.
    #[must_use]
    pub(crate) fn last_report(&self) -> Option<&RunReport> {
        self.last_report.as_deref()
    }
}

impl Conversation {
    /// Applies an event.
    pub(crate) fn apply(&mut self, envelope: &Envelope, now: Instant) {
        self.position = envelope.seq.unwrap_or(self.position).max(self.position);
        let event = &envelope.event;
        let of_agent = (!envelope.agent.is_empty()).then_some(&envelope.session);
        self.agents.apply(of_agent, event, || call_label(event), now);
        if of_agent.is_some() {
            // What an agent does is in its own log; its questions are asked by the composer.
            if matches!(event, Event::Warning { .. } | Event::Error { .. } | Event::FileEdited { .. }) {
                self.push_lines(event);
            }
            return;
        }
        self.activity.handle_event(event, now);
        self.facts.apply(event);
        match event {
            Event::RunStarted { task, .. } => self.begin_run(task, envelope.seq),
            Event::MessageJoined { text } => self.push(Block::Message(text.clone()), true),
            Event::Checkpoint { id, step: None, .. } => {
                if let Some(turning) = self.turnings.last_mut() {
                    turning.checkpoint.get_or_insert(*id);
                }
            }
            Event::Isolated { reopened: false, .. } => {
                // Earlier checkpoints are states of another tree.
                let others = self.turnings.len().saturating_sub(1);
                self.turnings.iter_mut().take(others).for_each(|turning| turning.is_of_other_tree = true);
                self.push_lines(event);
            }
            Event::StateChanged { state } => self.state = *state,
            Event::TodoChanged { current, .. } => self.todos.clone_from(current),
            Event::Done { report } => self.end_run(report),
            Event::Error { message, .. } => {
                self.newest_error = Some(message.clone());
                self.push_lines(event);
            }
            _ if self.apply_reply(event) || self.apply_call(event) || self.apply_check(event) => {}
            other => self.push_lines(other),
        }
    }

    fn begin_run(&mut self, task: &str, seq: Option<Seq>) {
        self.text = OpenText::default();
        self.newest_error = None;
        (self.thinking, self.has_thought) = (None, false);
        self.state = AgentState::Working;
        self.push(Block::Message(task.to_owned()), true);
        let seq = seq.unwrap_or(self.position);
        let message = task.to_owned();
        self.turnings.push(RewindPoint { seq, message, checkpoint: None, is_of_other_tree: false });
    }

    /// Ends what was in work when the process that worked on the session has gone.
    pub(crate) fn end_work(&mut self, now: Instant) {
        self.close_work();
        self.thinking = None;
        self.activity = Activity::new(now);
    }

    fn close_work(&mut self) {
        self.finish_text();
        self.calls.clear();
        self.agents.clear();
        self.check = None;
        self.state = AgentState::Ready;
    }

    fn end_run(&mut self, report: &RunReport) {
        self.close_work();
        // An answer that changed nothing needs no words about itself but the tokens, which the
        // status line has.
        let has_work = !report.changes.is_empty() || !report.evidence.is_empty();
        let is_answer = match report.outcome {
            RunOutcome::Answered => true,
            RunOutcome::Unverified => !has_work && !report.text.trim().is_empty(),
            _ => false,
        };
        if !is_answer {
            let mut shown = report.clone();
            // The error that ended the run stands right above.
            let is_told = self.newest_error.take().is_some_and(|error| error == report.summary);
            if is_told {
                shown.summary.clear();
            }
            self.push(Block::Report(Box::new(shown)), !is_told);
        }
        self.last_report = Some(Box::new(report.clone()));
    }

    /// Applies an event about the model's reply. Returns false for others.
    fn apply_reply(&mut self, event: &Event) -> bool {
        match event {
            Event::TurnStarted { .. } => {
                self.finish_text();
                self.text = OpenText::default();
                self.has_thought = false;
            }
            Event::ThinkingStart { .. } => self.thinking = Some(String::new()),
            Event::ThinkingDelta { text, .. } => {
                self.thinking.get_or_insert_default().push_str(&printable(text));
            }
            Event::ThinkingEnd { text, .. } => self.finish_thinking(text),
            Event::TextStart { .. } => self.finish_text(),
            Event::TextDelta { block, offset, text } => self.push_text(*block, *offset, text),
            Event::TextEnd { block, text } => {
                if self.text.block.is_none_or(|open| open == *block) {
                    self.push_text(*block, 0, text);
                }
                self.finish_text();
            }
            Event::TurnFinished { text, thinking, stop, .. } => self.finish_turn(text, thinking, stop, event),
            Event::Retry { .. } => {
                self.thinking = None;
                self.finish_text();
                self.push_lines(event);
                self.text = OpenText::default();
            }
            Event::CallDelta { .. } => {}
            _ => return false,
        }
        true
    }

    /// Appends a piece of a block's text. A piece may repeat what has arrived.
    fn push_text(&mut self, block: u32, offset: u64, text: &str) {
        if self.text.block != Some(block) {
            self.finish_text();
            (self.text.block, self.text.bytes) = (Some(block), 0);
        }
        // Behind pieces that never arrived, the rest comes with the turn's record.
        let Some(known) = self.text.bytes.checked_sub(offset) else { return };
        let Some(new) = usize::try_from(known).ok().and_then(|known| text.get(known..)) else { return };
        self.text.bytes = offset.saturating_add(text.len() as u64);
        self.text.shown.push_str(new);
        let blocks = self.text.splitter.push(&printable(new));
        blocks.into_iter().for_each(|block| self.push_prose(block));
    }

    fn finish_text(&mut self) {
        let blocks = self.text.splitter.finish();
        blocks.into_iter().for_each(|block| self.push_prose(block));
        if self.text.block.take().is_some() {
            self.text.shown.push('\n');
        }
    }

    fn finish_thinking(&mut self, text: &str) {
        self.thinking = None;
        if !text.trim().is_empty() {
            self.has_thought = true;
            self.push(Block::Thinking(text.to_owned()), true);
        }
    }

    fn finish_turn(&mut self, text: &str, thinking: &str, stop: &StopReason, event: &Event) {
        if !self.has_thought {
            self.finish_thinking(thinking);
        }
        self.thinking = None;
        // The record is whole; what was streamed may lack its end, which goes on where it stopped.
        if let Some(rest) = text.strip_prefix(self.text.shown.as_str()) {
            let blocks = self.text.splitter.push(&printable(rest));
            blocks.into_iter().for_each(|block| self.push_prose(block));
            self.text.shown.push_str(rest);
        }
        self.finish_text();
        let shown = std::mem::take(&mut self.text).shown;
        let is_whole = without_spaces(&shown) == without_spaces(text);
        if !is_whole && !stop.is_cut_off() {
            let note = "pieces of the reply didn't arrive; here it is once more, whole:";
            self.push(Block::Lines(vec![StyledLine::new(Style::Dim, note)]), true);
            let mut splitter = BlockSplitter::default();
            let mut blocks = splitter.push(&printable(text));
            blocks.extend(splitter.finish());
            blocks.into_iter().for_each(|block| self.push_prose(block));
        }
        self.push_lines(event);
    }

    /// Applies an event about a tool call. Returns false for others.
    fn apply_call(&mut self, event: &Event) -> bool {
        match event {
            Event::ToolStart { call, .. } => {
                self.finish_text();
                self.calls.retain(|open| open.call != *call);
                let (call, start) = (call.clone(), event.clone());
                self.calls.push(OpenCall {
                    call,
                    start,
                    output: String::new(),
                    changes: Vec::new(),
                    diff: None,
                });
            }
            Event::ToolOutput { call, text } => {
                if let Some(open) = self.calls.iter_mut().find(|open| open.call == *call) {
                    push_bounded(&mut open.output, text);
                }
            }
            Event::FileEdited { call, change, diff } => {
                match self.calls.iter_mut().find(|open| open.call == *call) {
                    Some(open) => {
                        open.changes.push(change.clone());
                        open.diff.clone_from(diff);
                    }
                    // A command in the background, or one that was settled after a crash.
                    None => self.push_lines(event),
                }
            }
            Event::ToolEnd { call, .. } => {
                let Some(place) = self.calls.iter().position(|open| open.call == *call) else { return true };
                let OpenCall { call, start, changes, diff, .. } = self.calls.remove(place);
                let is_first = !matches!(self.entries.last().map(|entry| &entry.block), Some(Block::Call(_)));
                let agents = self.agents.take_agents_of_call(&call);
                self.push(
                    Block::Call(Box::new(EndedCall {
                        call,
                        start,
                        end: event.clone(),
                        changes,
                        diff,
                        agents,
                    })),
                    is_first,
                );
            }
            // The tree of the call has them.
            Event::AgentStarted { call, .. } | Event::AgentFinished { call, .. } => {
                return self.calls.iter().any(|open| open.call == *call);
            }
            Event::ToolError { .. }
            | Event::ToolExecuted { .. }
            | Event::PermissionRequired { .. }
            | Event::PermissionDecided { .. } => {}
            _ => return false,
        }
        true
    }

    /// Applies an event about verification. Returns false for others.
    fn apply_check(&mut self, event: &Event) -> bool {
        match event {
            Event::VerifyStarted { checks, .. } => {
                self.checks = (0, checks.len());
            }
            Event::CheckStarted { command, directory, original_tests, .. } => {
                self.checks.0 += 1;
                let again = if *original_tests { " with the original tests" } else { "" };
                let command = format!("{}{again}", printable(&label_check(command, directory.as_ref())));
                let place = (self.checks.0, self.checks.1.max(self.checks.0));
                self.check = Some(OpenCheck { command, place, output: String::new() });
            }
            Event::CheckOutput { text } => {
                if let Some(check) = &mut self.check {
                    push_bounded(&mut check.output, text);
                }
            }
            Event::CheckResult { evidence } => {
                self.check = None;
                self.push_lines(event);
                // The failing assertion is often said by the output alone.
                if matches!(evidence.outcome, CheckOutcome::Failed { .. }) && evidence.diagnostics.is_empty()
                {
                    self.push(Block::Lines(last_output_lines(&evidence.output)), false);
                }
            }
            _ => return false,
        }
        true
    }

    fn push_prose(&mut self, block: markdown::Block) {
        let has_gap = match self.entries.last().map(|entry| &entry.block) {
            Some(Block::Prose(_)) => block.has_gap,
            _ => true,
        };
        self.push(Block::Prose(block), has_gap);
    }

    /// Adds the words for an event, if there are any.
    fn push_lines(&mut self, event: &Event) {
        // The status line says with which model and how much is sent.
        if matches!(event, Event::ContextPacked { .. }) {
            return;
        }
        let lines = describe_event(event);
        if !lines.is_empty() {
            self.push(Block::Lines(lines), self.ends_in_prose());
        }
    }

    fn push(&mut self, block: Block, has_gap: bool) {
        self.entries.push(BlockEntry { block, has_gap });
    }

    /// Sets the verification state after something outside of the session changed the files.
    pub(crate) fn note_verification(&mut self, proof: VerificationState) {
        self.facts.proof = proof;
    }

    /// Compares the project's current files with the verified ones, unless a run changes them.
    pub(crate) fn compare_tree(&mut self, now: ContentHash) {
        if self.state == AgentState::Ready {
            self.facts.compare_tree(now);
        }
    }

    /// Sets the mode that the next run will have.
    pub(crate) fn note_mode(&mut self, mode: Mode) {
        self.facts.mode = Some(mode);
    }

    /// Adds lines of the surface itself, such as the answer to a command. They belong to this view
    /// alone.
    pub(crate) fn push_note(&mut self, lines: Vec<StyledLine>) {
        if !lines.is_empty() {
            self.push(Block::Lines(lines), true);
        }
    }
}

/// Returns the last lines of a check's output.
fn last_output_lines(output: &str) -> Vec<StyledLine> {
    const MAX_LINES: usize = 6;
    let text = printable(output);
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let shown = lines.get(lines.len().saturating_sub(MAX_LINES)..).unwrap_or_default();
    shown.iter().map(|line| StyledLine::new(Style::Dim, format!("    {line}"))).collect()
}

fn push_bounded(output: &mut String, text: &str) {
    output.push_str(&printable(text));
    if let Some(excess) = output.len().checked_sub(MAX_OUTPUT_BYTES) {
        output.drain(..output.ceil_char_boundary(excess));
    }
}

fn without_spaces(text: &str) -> String {
    text.chars().filter(|character| !character.is_whitespace()).collect()
}
