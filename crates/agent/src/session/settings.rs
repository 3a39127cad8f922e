//! A session's settings and limits.

use std::sync::Arc;
use std::time::Duration;

use journeyman_context::memory::MemoryNote;
use journeyman_context::{PromptTexts, ReadOnlyGoal};
use journeyman_model::{Price, Thinking};
use journeyman_protocol::{
    AcceptedFinding, Mode, ModelLimits, Plan, RelPath, SandboxNeeds, Strength, Tokens,
};
use serde::{Deserialize, Serialize};

use super::budget::SharedBudget;
use crate::isolation::CommitOptions;
use crate::request::token_ratios::TokenRatioStore;

/// Maximum model requests in a task. A large refactoring takes 30 to 60.
pub const DEFAULT_MAX_TURNS: u32 = 100;
/// Maximum rounds in which failed checks are fed back to the model.
pub const DEFAULT_MAX_FEEDBACK_ITERATIONS: u32 = 5;
/// Maximum duration of a run of all tests before a task ends: longer suites run on servers.
pub const DEFAULT_TEST_TIME_BUDGET: Duration = Duration::from_secs(10 * 60);
/// Wall time of a task: enough for slow models and test suites, and short enough to end overnight
/// runs.
pub const DEFAULT_TASK_TIMEOUT: Duration = Duration::from_secs(2 * 60 * 60);
/// Maximum tool calls that run at once.
pub const DEFAULT_MAX_CONCURRENT_CALLS: usize = 3;
/// Time limit of a call whose tool doesn't set one. Searching a large tree takes seconds.
pub const DEFAULT_TOOL_TIMEOUT: Duration = Duration::from_secs(120);
/// Steps without a change of the todo list before the model is reminded of open todos: enough not
/// to interrupt the work on one item, few enough to bring back a forgotten list while the task
/// runs.
pub const DEFAULT_TODO_REMINDER_INTERVAL: u32 = 10;
/// Token budget of the first context. The smallest supported context windows have 32,000.
pub const DEFAULT_FIRST_CONTEXT_BUDGET: Tokens = Tokens(20_000);

/// Extra time that a request waits for an index lookup. A loaded index answers in 17 ms at the
/// median (`docs/benchmarks.md`), many times that on a busy machine, and a reply takes seconds.
pub const DEFAULT_INDEX_LOOKUP_TIMEOUT: Duration = Duration::from_millis(200);

/// The checks that decide if a change is verified.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChecksSetting {
    /// The checks found in the project.
    #[default]
    Found,
    /// Only these shell commands.
    Custom(Vec<String>),
    /// No checks: nothing is verified, and the report says so.
    Off,
}

/// The party that answers permission questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Approver {
    /// No one: calls that need permission are refused, and the run never waits.
    #[default]
    Nobody,
    /// The holder of the session's handle.
    Handle,
}

/// Settings of the todo list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TodoSettings {
    /// Steps without a change of the list before the model is reminded of open todos; 0 for never.
    pub remind_every: u32,
    /// True to remind the model when the session begins or is opened again.
    pub remind_at_start: bool,
}

impl Default for TodoSettings {
    fn default() -> Self {
        Self { remind_every: DEFAULT_TODO_REMINDER_INTERVAL, remind_at_start: true }
    }
}

/// Options given when the session was started, beyond the configuration. Kept so that the session
/// can be opened again with them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct StartOptions {
    /// The base URL of the model, if it is not a known provider's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// The wire protocol spoken at that URL.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wire: Option<String>,
    /// The checks to verify with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checks: Option<ChecksSetting>,
    /// True to work in an isolated copy of the project.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub isolate: Option<bool>,
    /// True to keep the work in that copy even when it is verified.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub keep: bool,
    /// The commit to make of verified work, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<CommitOptions>,
    /// The files with uncommitted changes of the user when the session began, if the session is to
    /// commit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uncommitted: Option<Vec<RelPath>>,
}

impl StartOptions {
    /// Returns true if no option differs from the configuration.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// Part of the model's input room, in hundredths, above which the conversation is shortened. Later
/// there may be no room for a large result; earlier the model forgets more than it has to.
pub const DEFAULT_COMPACT_AT_PERCENT: u8 = 75;

/// Settings of shortening a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompactionSettings {
    /// Part of the model's input room, in hundredths, above which the conversation is shortened.
    pub threshold: u8,
    /// True to ask the model for a summary besides the state that code draws.
    pub summarize: bool,
}

impl Default for CompactionSettings {
    fn default() -> Self {
        Self { threshold: DEFAULT_COMPACT_AT_PERCENT, summarize: true }
    }
}

/// Settings of measuring how much of a change the tests would notice. By default nothing is
/// measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TestStrengthSettings {
    /// The strength that a verified change needs.
    pub needs: Strength,
    /// Wall time for the measurement, without the tests themselves; zero to measure nothing.
    pub budget: Duration,
}

/// The tasks that are planned before they are worked on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum PlanFirst {
    /// None.
    #[default]
    Never,
    /// A task is planned whose words say that it touches more than one file.
    WhereNeeded,
    /// Each task that is no question is planned.
    Always,
    /// There is a plan, made earlier or by a person.
    Given(Box<Plan>),
}

/// A run's settings. `Default` is a headless run with default limits and no cost limit.
#[derive(Debug, Clone)]
pub struct RunSettings {
    /// The permission mode.
    pub mode: Mode,
    /// The answer that is asked for in mode plan.
    pub read_only_goal: ReadOnlyGoal,
    /// The party that answers permission questions.
    pub approver: Approver,
    /// Time after which an unanswered question counts as denied; `None` to wait without limit.
    pub approval_timeout: Option<Duration>,
    /// Maximum calls that run at once.
    pub concurrency: usize,
    /// Time limit of a call whose tool doesn't set one.
    pub tool_timeout: Duration,
    /// Planning of a session's first task.
    pub plan_first: PlanFirst,
    /// The prompt texts that the model gets with every task.
    pub prompts: Arc<PromptTexts>,
    /// The tools that are not offered to the model. A call of such a tool runs like any other call.
    pub withheld_tools: Vec<String>,
    /// Settings of the todo list; `None` to disable it.
    pub todos: Option<TodoSettings>,
    /// True to warn a run that repeats itself, and then to stop it.
    pub loop_guard: bool,
    /// Maximum model requests in a task.
    pub max_turns: u32,
    /// Maximum rounds of feedback before the run gives up on its checks.
    pub max_iterations: u32,
    /// Maximum duration of a run of all tests. If they are known to take longer, only the affected
    /// tests verify the change, and the report says so.
    pub test_budget: Duration,
    /// True to let a newly failing linter fix the changed files, as far as it can, before failures
    /// are fed back to the model.
    pub lint_fix: bool,
    /// Maximum wall time of a task.
    pub timeout: Duration,
    /// Cost limit in US dollars.
    pub budget_usd: Option<f64>,
    /// Spending of other sessions that counts towards `budget_usd`.
    pub shared_budget: Option<Arc<SharedBudget>>,
    /// The model's price, if known.
    pub price: Option<Price>,
    /// The checks to verify with.
    pub checks: ChecksSetting,
    /// Findings about honesty that the user accepts by name.
    pub accepted_findings: Vec<AcceptedFinding>,
    /// The strength of tests that a verified change needs, and its measurement.
    pub strength: TestStrengthSettings,
    /// The sandbox guarantees that a command needs to run.
    pub needs: SandboxNeeds,
    /// The user's own instructions, for every project.
    pub instructions: Option<String>,
    /// Instructions for the model from the project's configuration.
    pub project_instructions: Option<String>,
    /// True if the model takes tool calls; false to use the text protocol.
    pub tool_calling: bool,
    /// Sampling temperature.
    pub temperature: Option<f32>,
    /// Nucleus sampling.
    pub top_p: Option<f32>,
    /// The model's thinking effort.
    pub thinking: Option<Thinking>,
    /// Output limit of one reply.
    pub max_output: Option<Tokens>,
    /// The model's limits, as far as they are known when the session begins.
    pub limits: ModelLimits,
    /// Stores the token ratio that the session learns. `None` starts without a ratio: a recorded
    /// session must send the same requests on every machine.
    pub token_ratios: Option<Arc<dyn TokenRatioStore>>,
    /// Token budget of the first context.
    pub context_budget: Tokens,
    /// Shortening of a conversation that becomes too long.
    pub compaction: CompactionSettings,
    /// Extra time that the first context waits for the index lookup. `None` skips the lookup: a
    /// recorded session must play back where there is no index.
    pub index_timeout: Option<Duration>,
    /// Options to open the session again with. They don't affect the run.
    pub asked: StartOptions,
    /// The files that the user has open, the likeliest first, for the first context.
    pub open_files: Vec<RelPath>,
    /// Notes of earlier sessions, which the first context has as far as they hold.
    pub notes: Vec<MemoryNote>,
    /// The current date, such as `2026-01-31`, for the prompt.
    pub today: String,
    /// The platform, such as `linux`, for the prompt.
    pub platform: String,
}

impl Default for RunSettings {
    fn default() -> Self {
        Self {
            mode: Mode::Edit,
            read_only_goal: ReadOnlyGoal::default(),
            approver: Approver::Nobody,
            approval_timeout: None,
            concurrency: DEFAULT_MAX_CONCURRENT_CALLS,
            tool_timeout: DEFAULT_TOOL_TIMEOUT,
            plan_first: PlanFirst::Never,
            withheld_tools: Vec::new(),
            prompts: Arc::default(),
            todos: Some(TodoSettings::default()),
            loop_guard: true,
            max_turns: DEFAULT_MAX_TURNS,
            max_iterations: DEFAULT_MAX_FEEDBACK_ITERATIONS,
            test_budget: DEFAULT_TEST_TIME_BUDGET,
            lint_fix: true,
            timeout: DEFAULT_TASK_TIMEOUT,
            budget_usd: None,
            shared_budget: None,
            price: None,
            checks: ChecksSetting::Found,
            accepted_findings: Vec::new(),
            strength: TestStrengthSettings::default(),
            needs: SandboxNeeds::ALL,
            instructions: None,
            project_instructions: None,
            tool_calling: true,
            temperature: None,
            top_p: None,
            thinking: None,
            max_output: None,
            limits: ModelLimits::conservative_default(false),
            token_ratios: None,
            context_budget: DEFAULT_FIRST_CONTEXT_BUDGET,
            compaction: CompactionSettings::default(),
            index_timeout: Some(DEFAULT_INDEX_LOOKUP_TIMEOUT),
            asked: StartOptions::default(),
            open_files: Vec::new(),
            notes: Vec::new(),
            today: String::new(),
            platform: std::env::consts::OS.to_owned(),
        }
    }
}
