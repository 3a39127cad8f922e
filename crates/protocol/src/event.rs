//! Events of the three channels.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    AgentState, CallId, CallRecord, CallState, CandidateReport, CheckKind, CommitReport, CopyReport,
    Enforcement, Evidence, FileConflict, GuardViolation, Mode, RelPath, ReminderCategory, Seq, SessionId,
    StopReason, Todo, Tokens, TurnPhase, UnavailableTier, UnixMillis, Usage, Verdict,
};

/// What an event is for. Each kind belongs to exactly one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Channel {
    /// What a person watches: text, calls, checks.
    Progress,
    /// What a person decides.
    Control,
    /// What an operator audits: states, usage, errors.
    Monitor,
}

/// How a run ended. Each has its own exit code of `jm run`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunOutcome {
    /// Files changed (or none had to) and every check that ran passed, at least one of them.
    Verified,
    /// It could not go on.
    Error,
    /// It finished, and checks still fail.
    ChecksFail,
    /// It finished, and nothing verified it.
    Unverified,
    /// Turns, time or budget ran out.
    Limit,
    /// A permission was needed and nobody could be asked.
    PermissionNeeded,
    /// It is verified, and not in the user's tree: there both changed the same lines, or what came of merging them
    /// fails the checks.
    Conflict,
    /// The user stopped it.
    Interrupted,
}

impl RunOutcome {
    /// The exit code of `jm run`. 2 is a usage error and never an outcome.
    #[must_use]
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Verified => 0,
            Self::Error => 1,
            Self::ChecksFail => 3,
            Self::Unverified => 4,
            Self::Limit => 5,
            Self::PermissionNeeded => 6,
            Self::Conflict => 9,
            Self::Interrupted => 130,
        }
    }
}

/// What happened to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FileChangeKind {
    /// It is new.
    Added,
    /// Its content or mode is different.
    Modified,
    /// It is gone.
    Deleted,
}

/// A file that a call, a command or a run changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileChange {
    /// The file.
    pub path: RelPath,
    /// What happened to it.
    pub kind: FileChangeKind,
}

/// What a finished run says: the one object of `--json`, and the last event of `--stream-json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunReport {
    /// The session, for `jm show` and `jm undo`.
    pub session: SessionId,
    /// How it ended.
    pub outcome: RunOutcome,
    /// The exit code that goes with it.
    pub exit_code: u8,
    /// One line a person understands.
    pub summary: String,
    /// The model's last words.
    pub text: String,
    /// What differs from the tree as it was.
    pub changes: Vec<FileChange>,
    /// The same as a unified diff, bounded.
    pub diff: String,
    /// Guarded files and repositories that commands made, changed or deleted, and what became of them. A run with any
    /// is not verified.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub violations: Vec<GuardViolation>,
    /// The checks of the last verification.
    pub evidence: Vec<Evidence>,
    /// How often checks failed and were fed back.
    pub iterations: u32,
    /// How many times the model was asked.
    pub turns: u32,
    /// What it cost in tokens.
    pub usage: Usage,
    /// What it cost in US dollars, where the model's price is known.
    pub cost_usd: Option<f64>,
    /// The model, as `provider/name`.
    pub model: String,
    /// How to take it back, as a command line; `None` when nothing changed in the user's tree.
    pub undo: Option<String>,
    /// Where the work is, for a session that worked in a copy of the project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copy: Option<CopyReport>,
    /// The commit that was made of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<CommitReport>,
    /// All sessions that were given this task at once, the best first; this report is that of the best.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub candidates: Vec<CandidateReport>,
    /// Wall time in milliseconds.
    pub duration_ms: u64,
}

/// How bad a failure is that an [`Event::Error`] tells of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ErrorSeverity {
    /// Worth knowing.
    Info,
    /// Something failed and the run goes on.
    Warn,
    /// The run ends because of it.
    Error,
}

/// What was being done when something failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ErrorPhase {
    /// Asking the model.
    Model,
    /// Running a tool.
    Tool,
    /// The log, the tree, the sandbox.
    System,
    /// Starting, resuming or ending the session.
    Lifecycle,
}

/// Why a session was opened again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ResumeStrategy {
    /// Its last run was cut off.
    Crash,
    /// Its last run had ended.
    Manual,
    /// It was made to do another session's task, beside others of its kind.
    Candidate,
}

/// Whether something begins or ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CompressionPhase {
    /// It begins.
    Start,
    /// It is done.
    End,
}

/// When the todos are brought to mind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TodoReminderReason {
    /// The session began or was opened again.
    Startup,
    /// So many steps went by without a look at them.
    Interval,
    /// The list became empty.
    Empty,
}

/// What sets a scheduled task off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ScheduleKind {
    /// So many steps.
    Steps,
    /// A stretch of time.
    Time,
    /// Somebody outside.
    External,
}

/// An event with its place in the log. Entries have a `seq`; live-only deltas have none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Envelope {
    /// The session it belongs to.
    pub session: SessionId,
    /// Its place in the log, for entries; absent on live-only deltas.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seq: Option<Seq>,
    /// When.
    pub at: UnixMillis,
    /// Its channel.
    pub channel: Channel,
    /// What happened.
    #[serde(flatten)]
    pub event: Event,
}

/// What happened. Those of which [`Event::is_live_only`] holds are streamed and never written down.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// A run began.
    RunStarted {
        /// The task as given.
        task: String,
        /// The project's root, for people.
        root: String,
        /// The model, as `provider/name`.
        model: String,
        /// What is allowed without asking.
        mode: Mode,
        /// What commands are confined by; absent where none may run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        enforcement: Option<Enforcement>,
    },
    /// The first or a later request was put together.
    ContextPacked {
        /// An estimate of what it costs.
        tokens: Tokens,
        /// Paths the repository map lists.
        files_listed: u64,
        /// Instruction files that were found, such as `AGENTS.md`.
        instructions: Vec<RelPath>,
        /// Files of the task that were put in whole or in part.
        files: Vec<RelPath>,
    },
    /// The model is asked.
    TurnStarted {
        /// 1-based.
        turn: u32,
    },
    /// The model begins a block of text. Live only.
    TextStart {
        /// Which block of the message, 0-based.
        block: u32,
    },
    /// A block of text is whole. Live only: [`Event::TurnFinished`] has the text for good.
    TextEnd {
        /// Which block of the message, 0-based.
        block: u32,
        /// The whole of it.
        text: String,
    },
    /// The model begins to think. Live only.
    ThinkingStart {
        /// Which block of the message, 0-based.
        block: u32,
    },
    /// A block of thinking is whole. Live only: [`Event::TurnFinished`] has it for good.
    ThinkingEnd {
        /// Which block of the message, 0-based.
        block: u32,
        /// The whole of it.
        text: String,
    },
    /// A piece of the model's text. Live only.
    TextDelta {
        /// Which block of the message, 0-based.
        block: u32,
        /// Byte offset of this piece in the block.
        offset: u64,
        /// The piece.
        text: String,
    },
    /// A piece of the model's thinking. Live only.
    ThinkingDelta {
        /// Which block of the message, 0-based.
        block: u32,
        /// Byte offset of this piece in the block.
        offset: u64,
        /// The piece.
        text: String,
    },
    /// The model began to write a call. Live only.
    CallDelta {
        /// Which block of the message, 0-based.
        block: u32,
        /// The tool's name.
        tool: String,
    },
    /// A stream broke or a request was refused for now; what it had streamed is void.
    Retry {
        /// The attempt that follows, from 2.
        attempt: u32,
        /// Of how many.
        of: u32,
        /// How long until the next, in milliseconds.
        wait_ms: u64,
        /// Why.
        reason: String,
    },
    /// The model's message is whole.
    TurnFinished {
        /// 1-based.
        turn: u32,
        /// Why it stopped.
        stop: StopReason,
        /// What it cost.
        usage: Usage,
        /// Its text, whole.
        text: String,
        /// Its thinking, whole, where it is shown.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        thinking: String,
    },
    /// The running total.
    Cost {
        /// Tokens so far.
        usage: Usage,
        /// US dollars so far, where the price is known.
        usd: Option<f64>,
    },
    /// A call begins its way.
    ToolStart {
        /// The call.
        call: CallId,
        /// The tool.
        tool: String,
        /// Its arguments.
        input: Value,
        /// One line for people, such as `run_command cargo test`.
        summary: String,
    },
    /// A piece of a running command's output. Live only.
    ToolOutput {
        /// The call.
        call: CallId,
        /// The piece, cleaned.
        text: String,
    },
    /// A call reached its end.
    ToolEnd {
        /// The call.
        call: CallId,
        /// The tool.
        tool: String,
        /// How it ended.
        state: CallState,
        /// What the model is told, shortened for people.
        preview: String,
        /// How long it took, in milliseconds.
        duration_ms: u64,
    },
    /// A call failed, in words for people.
    ToolError {
        /// The call.
        call: CallId,
        /// The tool.
        tool: String,
        /// What went wrong.
        error: String,
    },
    /// A call ran to its end: its record, with the audit trail.
    ToolExecuted {
        /// The record.
        record: CallRecord,
    },
    /// A tool has something of its own to tell.
    ToolCustomEvent {
        /// The call.
        call: CallId,
        /// The tool.
        tool: String,
        /// What kind of news, in the tool's words.
        kind: String,
        /// The news.
        #[serde(default, skip_serializing_if = "Value::is_null")]
        data: Value,
    },
    /// The tools that the model is told of are others now.
    ToolManualUpdated {
        /// Their names.
        tools: Vec<String>,
    },
    /// A call or a command changed a file.
    FileEdited {
        /// The call.
        call: CallId,
        /// The change.
        change: FileChange,
    },
    /// A person has to decide. The answer names the call.
    PermissionRequired {
        /// The call.
        call: CallId,
        /// The tool.
        tool: String,
        /// Its arguments.
        input: Value,
        /// One line for people.
        summary: String,
        /// What policy says.
        verdict: Verdict,
        /// The rules that «allow from now on» would make, as text of a `policy.toml`, to be shown before anybody
        /// chooses it; absent where nothing may be allowed beyond this call.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rule: Option<String>,
    },
    /// A person, or the lack of one, decided.
    PermissionDecided {
        /// The call.
        call: CallId,
        /// Whether it may run.
        allowed: bool,
        /// Who: `user`, `headless`, `timeout`, `hook`, `interrupt`, or a surface's own name.
        by: String,
        /// What they said.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<String>,
    },
    /// Checks begin.
    VerifyStarted {
        /// The commands, in order.
        checks: Vec<String>,
        /// 1-based round of verification.
        round: u32,
    },
    /// One check begins.
    CheckStarted {
        /// What it looks at.
        kind: CheckKind,
        /// The command.
        command: String,
    },
    /// One check ended.
    CheckResult {
        /// The proof.
        evidence: Evidence,
    },
    /// All checks of a round ended.
    VerifyFinished {
        /// The round.
        round: u32,
        /// Whether all that ran passed, at least one of them.
        passed: bool,
        /// Whether failures go back to the model.
        fed_back: bool,
    },
    /// The tree's state was recorded; `jm undo` can return to it.
    Checkpoint {
        /// Its number within the project, or within the copy that the session works in.
        id: u64,
        /// Why it was taken: «before the run», or what the step is about to do.
        label: String,
        /// The step that it was taken before, counted over the whole session; absent before a run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        step: Option<u64>,
    },
    /// The session works in a copy of the project: nothing reaches the user's files before it is landed.
    Isolated {
        /// How the copy was made: `overlay`, `reflink`, `worktree` or `copy`.
        tier: String,
        /// The better ways that couldn't be had.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        unavailable: Vec<UnavailableTier>,
        /// Whether it was there already, from an earlier run of the session.
        reopened: bool,
    },
    /// What the user changed meanwhile is in the copy too.
    CopyRefreshed {
        /// Files that are in the copy as the user has them.
        taken: Vec<RelPath>,
        /// Files that both changed, and that were merged.
        merged: Vec<RelPath>,
        /// Files that both changed in ways that don't go together; the copy has its own version of them.
        conflicts: Vec<RelPath>,
    },
    /// The copy stays, with what was done in it: it wasn't verified, doesn't go together with what the user changed,
    /// or the user wants to look at it first.
    CopyKept {
        /// Why.
        reason: String,
        /// Files that both changed in ways that don't go together.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        conflicts: Vec<FileConflict>,
    },
    /// The copy is gone, and nothing of it was landed.
    CopyDiscarded {
        /// Files that were different in it.
        files: u64,
    },
    /// Several sessions do the task of this one, each in a copy of its own.
    CandidatesStarted {
        /// They, by their numbers from 1.
        sessions: Vec<SessionId>,
    },
    /// They have ended.
    CandidatesCompared {
        /// The best first.
        candidates: Vec<CandidateReport>,
    },
    /// Something is worth knowing and nothing stopped.
    Warning {
        /// What.
        message: String,
    },
    /// Something failed.
    Error {
        /// How bad it is.
        severity: ErrorSeverity,
        /// What was being done.
        phase: ErrorPhase,
        /// What, on what, and what can be done.
        message: String,
    },
    /// The session's state changed.
    StateChanged {
        /// The new one.
        state: AgentState,
    },
    /// The session entered another phase of its turn. Other agents call the phase a breakpoint.
    TurnPhaseChanged {
        /// The phase it left.
        previous: TurnPhase,
        /// The phase it entered.
        current: TurnPhase,
    },
    /// A step is over: one reply of the model and the calls it made.
    StepComplete {
        /// 1-based, counted over the whole session.
        step: u64,
        /// How long it took, in milliseconds.
        duration_ms: u64,
    },
    /// What one reply cost.
    TokenUsage {
        /// The turn, 1-based.
        turn: u32,
        /// The tokens.
        usage: Usage,
    },
    /// A session was opened again.
    AgentResumed {
        /// Why.
        strategy: ResumeStrategy,
        /// The calls that were cut off, each closed with one error result.
        interrupted: Vec<CallRecord>,
        /// What is different from before, such as another model; one line each.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        changed: Vec<String>,
    },
    /// The todos are others now.
    TodoChanged {
        /// What they were.
        previous: Vec<Todo>,
        /// What they are.
        current: Vec<Todo>,
    },
    /// The model is reminded of the todos.
    TodoReminder {
        /// What they are.
        todos: Vec<Todo>,
        /// Why now.
        reason: TodoReminderReason,
    },
    /// A file that the session knows was changed by somebody else.
    FileChanged {
        /// The change.
        change: FileChange,
    },
    /// The model is reminded of something.
    ReminderSent {
        /// What it is about.
        category: ReminderCategory,
        /// The words.
        content: String,
    },
    /// The transcript is made shorter; the whole of it stays in the log.
    ContextCompression {
        /// Whether it begins or ends.
        phase: CompressionPhase,
        /// What stands for what was left out.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        summary: Option<String>,
        /// Tokens kept, of those there were.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ratio: Option<f64>,
    },
    /// A scheduled task is due.
    SchedulerTriggered {
        /// Its name.
        task: String,
        /// When it runs, such as `every 5 steps`.
        spec: String,
        /// What set it off.
        kind: ScheduleKind,
    },
    /// A command made, changed or deleted files or repositories that programs outside the sandbox obey. Each was moved
    /// out of the project or put back, or the event says why not.
    GuardViolated {
        /// The call; absent for a check.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call: Option<CallId>,
        /// The check's command line; absent for a call.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        check: Option<String>,
        /// One for each path, bounded.
        violations: Vec<GuardViolation>,
    },
    /// The change is in the user's tree.
    Landed {
        /// What changed.
        changes: Vec<FileChange>,
        /// For a session that worked in a copy: how it was made, and what was merged.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        copy: Option<CopyReport>,
    },
    /// A commit was made of the change, by the user's git.
    Committed {
        /// The commit.
        commit: CommitReport,
    },
    /// The log refuses entries; they are kept and written when it takes them again. Live only, for want of a log.
    StorageFailure {
        /// What the store says.
        message: String,
        /// Entries that wait.
        waiting: u64,
    },
    /// This subscriber fell behind: streamed pieces are lost to it, entries after the bookmark follow from the log.
    /// Live only.
    Lagged {
        /// The last entry it was given.
        after: Seq,
    },
    /// The run ended.
    Done {
        /// Everything `--json` prints.
        report: Box<RunReport>,
    },
}

/// One kind of event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventKind {
    /// Its name: the `event` field in JSON.
    pub name: &'static str,
    /// Its channel.
    pub channel: Channel,
    /// Whether it is streamed but not logged: the finished block, call or check carries the whole.
    pub live_only: bool,
}

/// One table of all kinds, so that none has a name and no channel.
macro_rules! kinds {
    ($($variant:ident $name:literal $channel:ident $live:literal;)*) => {
        impl Event {
            /// Every kind there is.
            pub const KINDS: &[EventKind] = &[
                $(EventKind { name: $name, channel: Channel::$channel, live_only: $live },)*
            ];

            /// The event's channel.
            #[must_use]
            pub fn channel(&self) -> Channel {
                match self {
                    $(Self::$variant { .. } => Channel::$channel,)*
                }
            }

            /// Whether it is streamed but not logged: the finished block, call or check carries the whole.
            #[must_use]
            pub fn is_live_only(&self) -> bool {
                match self {
                    $(Self::$variant { .. } => $live,)*
                }
            }

            /// The event's kind: its `event` field in JSON.
            #[must_use]
            pub fn kind(&self) -> &'static str {
                match self {
                    $(Self::$variant { .. } => $name,)*
                }
            }
        }
    };
}

// The variant, its name, its channel, and whether it is live only.
kinds! {
    RunStarted "run_started" Progress false;
    ContextPacked "context_packed" Monitor false;
    TurnStarted "turn_started" Progress false;
    TextStart "text_start" Progress true;
    TextDelta "text_delta" Progress true;
    TextEnd "text_end" Progress true;
    ThinkingStart "thinking_start" Progress true;
    ThinkingDelta "thinking_delta" Progress true;
    ThinkingEnd "thinking_end" Progress true;
    CallDelta "call_delta" Progress true;
    Retry "retry" Monitor false;
    TurnFinished "turn_finished" Progress false;
    Cost "cost" Monitor false;
    ToolStart "tool_start" Progress false;
    ToolOutput "tool_output" Progress true;
    ToolError "tool_error" Progress false;
    ToolEnd "tool_end" Progress false;
    ToolExecuted "tool_executed" Monitor false;
    ToolCustomEvent "tool_custom_event" Monitor false;
    ToolManualUpdated "tool_manual_updated" Monitor false;
    FileEdited "file_edited" Progress false;
    PermissionRequired "permission_required" Control false;
    PermissionDecided "permission_decided" Control false;
    VerifyStarted "verify_started" Progress false;
    CheckStarted "check_started" Progress false;
    CheckResult "check_result" Progress false;
    VerifyFinished "verify_finished" Progress false;
    Checkpoint "checkpoint" Monitor false;
    Isolated "isolated" Progress false;
    CopyRefreshed "copy_refreshed" Progress false;
    CopyKept "copy_kept" Progress false;
    CopyDiscarded "copy_discarded" Progress false;
    CandidatesStarted "candidates_started" Progress false;
    CandidatesCompared "candidates_compared" Progress false;
    Warning "warning" Monitor false;
    Error "error" Monitor false;
    StateChanged "state_changed" Monitor false;
    TurnPhaseChanged "turn_phase_changed" Monitor false;
    StepComplete "step_complete" Monitor false;
    TokenUsage "token_usage" Monitor false;
    AgentResumed "agent_resumed" Monitor false;
    TodoChanged "todo_changed" Monitor false;
    TodoReminder "todo_reminder" Monitor false;
    FileChanged "file_changed" Monitor false;
    ReminderSent "reminder_sent" Monitor false;
    ContextCompression "context_compression" Monitor false;
    SchedulerTriggered "scheduler_triggered" Monitor false;
    GuardViolated "guard_violated" Progress false;
    Landed "landed" Progress false;
    Committed "committed" Progress false;
    StorageFailure "storage_failure" Monitor true;
    Lagged "lagged" Monitor true;
    Done "done" Progress false;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_the_names_that_json_has() {
        let names: Vec<&str> = Event::KINDS.iter().map(|kind| kind.name).collect();
        let schema = serde_json::to_value(schemars::schema_for!(Event)).unwrap();
        let variants = schema["oneOf"].as_array().unwrap();
        let in_json: Vec<&str> =
            variants.iter().map(|one| one["properties"]["event"]["const"].as_str().unwrap()).collect();
        let (mut names, mut in_json) = (names, in_json);
        names.sort_unstable();
        in_json.sort_unstable();
        assert_eq!(names, in_json);
    }
}
