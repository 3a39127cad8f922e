//! The events of a session, on three channels, and the report of a run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    AgentReport, AgentState, CallId, CallRecord, CallState, CandidateReport, CheckKind, CommitReport,
    ContentHash, ContextShare, CopyReport, EditDiff, Enforcement, Evidence, FileConflict, GuardViolation,
    HonestyFinding, Mode, Plan, PlanComparison, RelPath, ReminderCategory, RunOutcome, Seq, SessionId,
    StopReason, StrengthReport, Todo, Tokens, TurnPhase, UnavailableTier, UnixMillis, Usage, Verdict,
};

/// The audience of an event. Each kind of event belongs to exactly one channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Channel {
    /// Events that a person watches: text, calls, checks.
    Progress,
    /// Questions to a person, and the decisions.
    Control,
    /// Events that an operator audits: states, usage, errors.
    Monitor,
}

/// The way in which a file changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FileChangeKind {
    /// The file is new.
    Added,
    /// The file's content or mode is different.
    Modified,
    /// The file is gone.
    Deleted,
}

/// A file that a call, a command or a run changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileChange {
    /// The file.
    pub path: RelPath,
    /// The way in which the file changed.
    pub kind: FileChangeKind,
}

/// The size of one file's difference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileDiffStat {
    /// The file.
    pub path: RelPath,
    /// Number of lines that were added.
    pub added: u64,
    /// Number of lines that were removed.
    pub removed: u64,
}

/// The report of a finished run: the only object of `--json`, and part of the last event of
/// `--stream-json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunReport {
    /// The session, for `jm show` and `jm undo`.
    pub session: SessionId,
    /// The end of the run.
    pub outcome: RunOutcome,
    /// The exit code of the outcome.
    pub exit_code: u8,
    /// One line for people.
    pub summary: String,
    /// True if the run ended because the request no longer fits the model's context. The session
    /// can only go on with a model that has a larger one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub context_exceeded: bool,
    /// The text of the model's last message.
    pub text: String,
    /// The files that differ from the tree before the run.
    pub changes: Vec<FileChange>,
    /// The changes as a unified diff, cut at a maximum length.
    pub diff: String,
    /// The size of each file's difference, also of files that the diff leaves out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub diffstat: Vec<FileDiffStat>,
    /// Guarded files and repositories that commands made, changed or deleted, and how each was
    /// handled. A run with violations is not verified.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub violations: Vec<GuardViolation>,
    /// Places where the changes make tests or checks say less. A run with findings that block and
    /// that the user didn't accept is not verified.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<HonestyFinding>,
    /// The strength of the tests on the changes, if it was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strength: Option<StrengthReport>,
    /// The checks of the last verification.
    pub evidence: Vec<Evidence>,
    /// Hash of the tree on which the checks of a verified task ran, with the files that they made:
    /// what they proved holds for no other tree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<ContentHash>,
    /// Number of times that failed checks were sent back to the model.
    pub iterations: u32,
    /// Number of requests to the model.
    pub turns: u32,
    /// Tokens used.
    pub usage: Usage,
    /// Cost in US dollars; `None` if the model's price is unknown.
    pub cost_usd: Option<f64>,
    /// The model, as `provider/name`.
    pub model: String,
    /// The command line that undoes the run; `None` if nothing changed in the user's tree.
    pub undo: Option<String>,
    /// The session's copy of the project, if it worked in one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copy: Option<CopyReport>,
    /// The commit of the changes, if one was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<CommitReport>,
    /// The end of the agent, for a session that has an agent's definition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentReport>,
    /// The plan held against the changes, for a run that has both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<PlanComparison>,
    /// All candidate runs of this task, the best first; this report is that of the best.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub candidates: Vec<CandidateReport>,
    /// Wall time in milliseconds.
    pub duration_ms: u64,
}

/// The severity of an [`Event::Error`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ErrorSeverity {
    /// A note; nothing failed.
    Info,
    /// Something failed, and the run goes on.
    Warn,
    /// The run ends because of the failure.
    Error,
}

/// The part of the work in which a failure happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ErrorPhase {
    /// The request to the model.
    Model,
    /// The run of a tool.
    Tool,
    /// The session log, the project's tree or the sandbox.
    System,
    /// The start, the resumption or the end of the session.
    Lifecycle,
}

/// The stage of shortening a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CompressionPhase {
    /// The conversation is about to be shortened.
    Start,
    /// The conversation was shortened, or the attempt failed.
    End,
}

/// The reason for which a conversation is shortened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CompressionReason {
    /// The next request would exceed the configured part of the model's window.
    Threshold,
    /// The provider refused a request as too long.
    Overflow,
    /// A person asked for it.
    Manual,
}

/// The way in which a conversation was shortened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CompressionMethod {
    /// To the state that code draws from it, with prose by the model.
    Summary,
    /// To the state alone.
    State,
}

/// The reason for which a session was opened again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ResumeStrategy {
    /// The session's last run was cut off by a crash.
    Crash,
    /// The session's last run had ended.
    Manual,
    /// The session is a candidate run of another session's task.
    Candidate,
}

/// The reason for which the model is reminded of the todos.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TodoReminderReason {
    /// The session began or was opened again.
    Startup,
    /// The model did not use the list for the configured number of steps.
    Interval,
    /// The list became empty.
    Empty,
}

/// The trigger of a scheduled task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ScheduleKind {
    /// A number of steps.
    Steps,
    /// An interval of time.
    Time,
    /// A call from outside the session.
    External,
}

/// An event with its position in the session's log. Logged events have a `seq`; live-only events
/// have none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Envelope {
    /// The session that the event belongs to.
    pub session: SessionId,
    /// The event's position in the log; absent on live-only events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seq: Option<Seq>,
    /// The time of the event.
    pub at: UnixMillis,
    /// The event's channel.
    pub channel: Channel,
    /// The names of the agents from the session's own, which is left out, down to the one that the
    /// event belongs to; empty for events of the session itself. `session` is the agent's own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agent: Vec<String>,
    /// The event itself.
    #[serde(flatten)]
    pub event: Event,
}

/// Something that happened in a session. Kinds for which [`Event::is_live_only`] is true are
/// streamed and not logged.
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
        /// The permission mode.
        mode: Mode,
        /// The guarantees of the commands' sandbox; absent if no command may run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        enforcement: Option<Enforcement>,
        /// The hash of the texts that the model is told with every task. Runs with the same hash
        /// had the same texts.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        prompts: Option<ContentHash>,
    },
    /// A message that a person sent while the run went on joined it. The first message of a run is
    /// its task.
    MessageJoined {
        /// The message as sent.
        text: String,
    },
    /// The context of a request was assembled.
    ContextPacked {
        /// Estimated size of the context.
        tokens: Tokens,
        /// Number of paths that the repository map lists.
        files_listed: u64,
        /// Instruction files that were found, such as `AGENTS.md`.
        instructions: Vec<RelPath>,
        /// Files that the task names and that are included in whole or in part.
        files: Vec<RelPath>,
        /// The share of each category in the model's window.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        shares: Vec<ContextShare>,
    },
    /// The conversation is shortened so that it fits the model's window. The log keeps every
    /// message.
    ContextCompression {
        /// The stage.
        phase: CompressionPhase,
        /// The reason.
        reason: CompressionReason,
        /// Estimated tokens of the next request before.
        before: Tokens,
        /// Estimated tokens of the next request afterwards; absent at the start and after a
        /// failure.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<Tokens>,
        /// The way in which it was shortened; absent at the start and after a failure.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        method: Option<CompressionMethod>,
        /// The text that stands for the shortened part.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        summary: Option<String>,
        /// The reason for which nothing was shortened, after a failure.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        failure: Option<String>,
    },
    /// Old results were replaced by a line each, which says how the model can read them again.
    ResultsAged {
        /// The calls of the results.
        calls: Vec<CallId>,
        /// Estimated tokens that this frees.
        freed: Tokens,
    },
    /// A request was sent to the model.
    TurnStarted {
        /// The turn's number in the run, 1-based.
        turn: u32,
    },
    /// A block of text begins. Live only.
    TextStart {
        /// Index of the block in the message, 0-based.
        block: u32,
    },
    /// A block of text is complete. Live only: [`Event::TurnFinished`] records the text.
    TextEnd {
        /// Index of the block in the message, 0-based.
        block: u32,
        /// The text of the whole block.
        text: String,
    },
    /// A block of thinking begins. Live only.
    ThinkingStart {
        /// Index of the block in the message, 0-based.
        block: u32,
    },
    /// A block of thinking is complete. Live only: [`Event::TurnFinished`] records the text.
    ThinkingEnd {
        /// Index of the block in the message, 0-based.
        block: u32,
        /// The text of the whole block.
        text: String,
    },
    /// A piece of the model's text. Live only.
    TextDelta {
        /// Index of the block in the message, 0-based.
        block: u32,
        /// Byte offset of this piece in the block.
        offset: u64,
        /// The piece.
        text: String,
    },
    /// A piece of the model's thinking. Live only.
    ThinkingDelta {
        /// Index of the block in the message, 0-based.
        block: u32,
        /// Byte offset of this piece in the block.
        offset: u64,
        /// The piece.
        text: String,
    },
    /// The model began to write a tool call. Live only.
    CallDelta {
        /// Index of the block in the message, 0-based.
        block: u32,
        /// The tool's name.
        tool: String,
    },
    /// A stream broke, or a request was refused temporarily. The text streamed so far is void.
    Retry {
        /// Number of the next attempt, from 2.
        attempt: u32,
        /// Maximum number of attempts.
        of: u32,
        /// Time until the next attempt, in milliseconds.
        wait_ms: u64,
        /// The reason for the retry.
        reason: String,
    },
    /// The model's message is complete or was cut off, as `stop` says.
    TurnFinished {
        /// The turn's number in the run, 1-based.
        turn: u32,
        /// The reason for which the model stopped.
        stop: StopReason,
        /// Tokens used.
        usage: Usage,
        /// The message's whole text.
        text: String,
        /// The message's whole thinking, if the provider shows it.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        thinking: String,
    },
    /// The cost of the run so far.
    Cost {
        /// Tokens so far.
        usage: Usage,
        /// US dollars so far; absent if the model's price is unknown.
        usd: Option<f64>,
    },
    /// The session begins to handle a tool call.
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
    /// A tool call ended.
    ToolEnd {
        /// The call.
        call: CallId,
        /// The tool.
        tool: String,
        /// The call's final state.
        state: CallState,
        /// The beginning and the end of the result that the model gets.
        preview: String,
        /// Duration in milliseconds.
        duration_ms: u64,
        /// Number of lines that the command of the call printed; absent for other calls.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        output_lines: Option<u64>,
    },
    /// A tool call failed.
    ToolError {
        /// The call.
        call: CallId,
        /// The tool.
        tool: String,
        /// The failure, for people.
        error: String,
    },
    /// A tool call that ran has ended; the event carries its record with the audit trail.
    ToolExecuted {
        /// The record.
        record: CallRecord,
    },
    /// A tool emitted an event of its own.
    ToolCustomEvent {
        /// The call.
        call: CallId,
        /// The tool.
        tool: String,
        /// The kind of the event, chosen by the tool.
        kind: String,
        /// The data of the event, chosen by the tool.
        #[serde(default, skip_serializing_if = "Value::is_null")]
        data: Value,
    },

    /// A call or a command changed a file.
    FileEdited {
        /// The call.
        call: CallId,
        /// The change.
        change: FileChange,
        /// The lines that differ, of a call that replaced a whole file: its arguments don't say
        /// them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        diff: Option<EditDiff>,
    },
    /// A person has to decide about a call. The decision names the call.
    PermissionRequired {
        /// The call.
        call: CallId,
        /// The tool.
        tool: String,
        /// Its arguments.
        input: Value,
        /// One line for people.
        summary: String,
        /// The verdict of the permission policy.
        verdict: Verdict,
        /// The rules that "allow from now on" would add, as text of a `policy.toml`, to be shown
        /// before the person chooses; absent if nothing may be allowed beyond this call.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rule: Option<String>,
        /// The changes of the call as a unified diff; absent if they are not known before it runs.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        diff: Option<String>,
    },
    /// A question was decided, by a person or for want of one.
    PermissionDecided {
        /// The call.
        call: CallId,
        /// True if the call may run.
        allowed: bool,
        /// The decider: `user`, `headless`, `timeout`, `hook`, `interrupt`, or a surface's own
        /// name.
        by: String,
        /// The decider's comment.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<String>,
    },
    /// A round of checks begins.
    VerifyStarted {
        /// The commands, in order.
        checks: Vec<String>,
        /// The round of verification, 1-based.
        round: u32,
    },
    /// A check begins.
    CheckStarted {
        /// The kind of check.
        kind: CheckKind,
        /// The command.
        command: String,
        /// The working directory, relative to the root; `None` is the root.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        directory: Option<RelPath>,
        /// True if the check runs once more, in a copy with the test files as they were before the
        /// session changed them.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        original_tests: bool,
        /// True if the check runs in a copy of the tree as it was before the task, to tell the
        /// failures of the task from older ones. No result of it follows.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        before_task: bool,
    },
    /// A piece of the running check's output. Live only.
    CheckOutput {
        /// The piece, cleaned.
        text: String,
    },
    /// A check ended.
    CheckResult {
        /// The check's result.
        evidence: Evidence,
    },
    /// All checks of a round ended.
    VerifyFinished {
        /// The round.
        round: u32,
        /// True if at least one check ran and all that ran passed.
        passed: bool,
        /// True if the failures are sent back to the model.
        fed_back: bool,
    },
    /// A checkpoint of the tree was taken; `jm undo` can return to it.
    Checkpoint {
        /// The checkpoint's number within the project, or within the session's copy.
        id: u64,
        /// The reason for the checkpoint: "before the run", or a description of the step that
        /// follows.
        label: String,
        /// The step that follows, counted over the whole session; absent before a run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        step: Option<u64>,
    },
    /// The session works in a copy of the project: no change reaches the user's files before it
    /// lands.
    Isolated {
        /// The kind of copy: `overlay`, `reflink`, `worktree` or `copy`.
        tier: String,
        /// The preferred kinds of copy that were not available.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        unavailable: Vec<UnavailableTier>,
        /// True if an earlier run of the session made the copy.
        reopened: bool,
    },
    /// The user's own changes since the copy was made were brought into the copy.
    CopyRefreshed {
        /// Files that were taken over as they are in the user's tree.
        taken: Vec<RelPath>,
        /// Files that both sides changed, and that were merged.
        merged: Vec<RelPath>,
        /// Files with conflicting changes; the copy keeps its own version of them.
        conflicts: Vec<RelPath>,
    },
    /// The session's copy is kept with its changes: they are not verified or conflict with the
    /// user's, or the user wants to review them first.
    CopyKept {
        /// The reason for which the copy is kept.
        reason: String,
        /// Files with conflicting changes.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        conflicts: Vec<FileConflict>,
    },
    /// The session's copy was removed, and none of its changes landed.
    CopyDiscarded {
        /// Number of changed files that the copy had.
        files: u64,
    },
    /// Candidate runs of this session's task began, each in a session and a copy of its own.
    CandidatesStarted {
        /// The candidates' sessions in the order of their numbers.
        sessions: Vec<SessionId>,
    },
    /// All candidate runs have ended and were compared.
    CandidatesCompared {
        /// The candidates, the best first.
        candidates: Vec<CandidateReport>,
    },
    /// The session gave a task to an agent, which works in a session of its own.
    AgentStarted {
        /// The call that gave the task.
        call: CallId,
        /// The agent's session. Its log has everything that the agent does.
        child: SessionId,
        /// The name of the agent's definition.
        name: String,
        /// The beginning of the task, for people.
        task: String,
        /// True if the session goes on while the agent works.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        background: bool,
    },
    /// An agent that the session gave a task to has ended.
    AgentFinished {
        /// The call that gave the task.
        call: CallId,
        /// The agent's session.
        child: SessionId,
        /// The end of the agent.
        report: AgentReport,
        /// One line for people.
        summary: String,
        /// Number of the agent's requests to the model, without those of its own agents.
        turns: u32,
        /// Tokens used by the agent, without those of its own agents.
        usage: Usage,
        /// US dollars spent by the agent and its own agents; absent if the price is unknown.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        usd: Option<f64>,
        /// Duration in milliseconds.
        duration_ms: u64,
    },
    /// There is a plan of the task: made first, or given by a person.
    Planned {
        /// The plan.
        plan: Plan,
    },
    /// A thought of an agent's model, as far as the provider shows it. Live only:
    /// [`Event::TurnFinished`] of the agent's session records the text.
    Thought {
        /// The thought's heading; absent if it has none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        subject: Option<String>,
        /// The thought without its heading.
        text: String,
    },
    /// A warning; the run goes on.
    Warning {
        /// The warning, for people.
        message: String,
    },
    /// A failure.
    Error {
        /// The failure's severity.
        severity: ErrorSeverity,
        /// The part of the work that failed.
        phase: ErrorPhase,
        /// The operation, its object, the cause, and what can be done.
        message: String,
    },
    /// The session's state changed.
    StateChanged {
        /// The new state.
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
        /// The step's number, 1-based, counted over the whole session.
        step: u64,
        /// Duration in milliseconds.
        duration_ms: u64,
    },
    /// The tokens that one reply of the model used.
    TokenUsage {
        /// The turn's number in the run, 1-based.
        turn: u32,
        /// The tokens.
        usage: Usage,
    },
    /// A session was opened again.
    AgentResumed {
        /// The reason for which it was opened.
        strategy: ResumeStrategy,
        /// The calls that were interrupted, each closed with one error result.
        interrupted: Vec<CallRecord>,
        /// Differences from the earlier run, such as another model; one line each.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        changed: Vec<String>,
    },
    /// The list of todos changed.
    TodoChanged {
        /// The list before the change.
        previous: Vec<Todo>,
        /// The list after the change.
        current: Vec<Todo>,
    },
    /// The model is reminded of the todos.
    TodoReminder {
        /// The list.
        todos: Vec<Todo>,
        /// The reason for the reminder.
        reason: TodoReminderReason,
    },
    /// A file that the session has read or written was changed from outside the session.
    FileChanged {
        /// The change.
        change: FileChange,
    },
    /// The model was sent a reminder.
    ReminderSent {
        /// The subject of the reminder.
        category: ReminderCategory,
        /// The reminder's text.
        content: String,
    },

    /// A scheduled task is due.
    SchedulerTriggered {
        /// The task's name.
        task: String,
        /// The task's schedule, such as `every 5 steps`.
        spec: String,
        /// The trigger.
        kind: ScheduleKind,
    },
    /// A command made, changed or deleted files or repositories that programs outside the sandbox
    /// obey. Each was moved out of the project or put back, or the event says why not.
    GuardViolated {
        /// The call; absent for a check.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call: Option<CallId>,
        /// The check's command line; absent for a call.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        check: Option<String>,
        /// One violation for each path, up to a maximum number.
        violations: Vec<GuardViolation>,
    },
    /// The changes make tests or checks say less, here and there.
    HonestyChecked {
        /// The findings, those that block first.
        findings: Vec<HonestyFinding>,
    },
    /// The strength of the tests that passed on the changes was measured.
    StrengthMeasured {
        /// The result.
        strength: StrengthReport,
    },
    /// The changes landed in the user's tree.
    Landed {
        /// The changed files.
        changes: Vec<FileChange>,
        /// The session's copy and the merged files, for a session that worked in a copy.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        copy: Option<CopyReport>,
    },
    /// The changes were committed by the user's git.
    Committed {
        /// The commit.
        commit: CommitReport,
    },
    /// The session log could not be written. The entries are kept in memory and written when the
    /// store works again. Live only, because there is no log to write the event to.
    StorageFailure {
        /// The store's error.
        message: String,
        /// Number of entries that wait to be written.
        waiting: u64,
    },
    /// This subscriber fell behind: live-only events were dropped, and the entries after the
    /// bookmark follow from the log. Live only.
    Lagged {
        /// The last entry that the subscriber received.
        after: Seq,
    },
    /// The run ended.
    Done {
        /// The report that `--json` prints.
        report: Box<RunReport>,
    },
}

/// The name and channel of one kind of event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventKind {
    /// The kind's name: the `event` field in JSON.
    pub name: &'static str,
    /// The kind's channel.
    pub channel: Channel,
    /// True if the event is streamed and not logged: the event that ends its block, call or check
    /// has the whole text.
    pub live_only: bool,
}

/// Declares all kinds in one table, so that each has a name and a channel.
macro_rules! kinds {
    ($($variant:ident $name:literal $channel:ident $live:literal;)*) => {
        impl Event {
            /// All kinds of events.
            pub const KINDS: &[EventKind] = &[
                $(EventKind { name: $name, channel: Channel::$channel, live_only: $live },)*
            ];

            /// Returns the event's channel.
            #[must_use]
            pub fn channel(&self) -> Channel {
                match self {
                    $(Self::$variant { .. } => Channel::$channel,)*
                }
            }

            /// Returns true if the event is streamed and not logged: the event that ends its block,
            /// call or check has the whole text.
            #[must_use]
            pub fn is_live_only(&self) -> bool {
                match self {
                    $(Self::$variant { .. } => $live,)*
                }
            }

            /// Returns the name of the event's kind: the `event` field in JSON.
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
    MessageJoined "message_joined" Progress false;
    ContextPacked "context_packed" Monitor false;
    ContextCompression "context_compression" Monitor false;
    ResultsAged "results_aged" Monitor false;
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
    FileEdited "file_edited" Progress false;
    PermissionRequired "permission_required" Control false;
    PermissionDecided "permission_decided" Control false;
    VerifyStarted "verify_started" Progress false;
    CheckStarted "check_started" Progress false;
    CheckOutput "check_output" Progress true;
    CheckResult "check_result" Progress false;
    VerifyFinished "verify_finished" Progress false;
    Checkpoint "checkpoint" Monitor false;
    Isolated "isolated" Progress false;
    CopyRefreshed "copy_refreshed" Progress false;
    CopyKept "copy_kept" Progress false;
    CopyDiscarded "copy_discarded" Progress false;
    CandidatesStarted "candidates_started" Progress false;
    CandidatesCompared "candidates_compared" Progress false;
    AgentStarted "agent_started" Progress false;
    AgentFinished "agent_finished" Progress false;
    Planned "planned" Progress false;
    Thought "thought" Progress true;
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
    SchedulerTriggered "scheduler_triggered" Monitor false;
    GuardViolated "guard_violated" Progress false;
    HonestyChecked "honesty_checked" Progress false;
    StrengthMeasured "strength_measured" Progress false;
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
    fn the_table_of_kinds_has_the_names_of_the_json_schema() {
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
