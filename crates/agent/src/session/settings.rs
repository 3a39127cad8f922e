//! What a session is told to do and how far it may go.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use journeyman_model::{Price, Thinking};
use journeyman_protocol::{Mode, RelPath, SandboxNeeds, Tokens};
use serde::{Deserialize, Serialize};

use crate::isolation::CommitWish;

/// Model ↔ tool round trips before a run stops. A large refactoring takes 30 to 60.
pub const DEFAULT_MAX_TURNS: u32 = 100;
/// How often failed checks go back to the model (row A9 of the requirements).
pub const DEFAULT_MAX_ITERATIONS: u32 = 5;
/// Wall time of a run. Long enough for slow models and test suites, short enough to end overnight runs.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(2 * 60 * 60);
/// Calls that run at once (row B5 of the requirements).
pub const DEFAULT_CONCURRENCY: usize = 3;
/// How long a call may take whose tool doesn't say. A search of a large tree takes seconds.
pub const DEFAULT_TOOL_TIMEOUT: Duration = Duration::from_secs(120);
/// Steps with open todos and no look at them before the model is reminded.
pub const DEFAULT_TODO_INTERVAL: u32 = 10;
/// Tokens that the first context may cost, of windows that start at 32,000.
pub const DEFAULT_CONTEXT_BUDGET: Tokens = Tokens(20_000);

/// How long the first request waits for the index: what is there already answers within some milliseconds.
pub const DEFAULT_INDEX_PATIENCE: Duration = Duration::from_millis(20);

/// Which checks decide whether a change is verified.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Checks {
    /// Those found in the project.
    #[default]
    Found,
    /// These shell commands and no others.
    Custom(Vec<String>),
    /// None: nothing is verified, and the report says so.
    Off,
}

/// Who answers when a permission is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Approver {
    /// Nobody: what would ask is refused, and the run never waits.
    #[default]
    Nobody,
    /// Whoever holds the session's handle.
    Handle,
}

/// How the list of todos is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TodoSettings {
    /// Steps without a change of the list before the model is reminded of what is open; 0 for never.
    pub remind_every: u32,
    /// Whether it is reminded when the session begins or is opened again.
    pub remind_at_start: bool,
}

impl Default for TodoSettings {
    fn default() -> Self {
        Self { remind_every: DEFAULT_TODO_INTERVAL, remind_at_start: true }
    }
}

/// What a session is started with beside the configuration, kept so that it can be opened again as it was.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Asked {
    /// The address of the model, where it is no provider's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// The protocol that is spoken there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wire: Option<String>,
    /// Which checks verify.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checks: Option<Checks>,
    /// Whether it works in a copy of the project.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub isolate: Option<bool>,
    /// Whether its work stays in that copy, also when it is verified.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub keep: bool,
    /// How its work is committed once it is verified.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<CommitWish>,
    /// The files that the user had changed and not committed when it began, where it is to commit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uncommitted: Option<Vec<RelPath>>,
}

impl Asked {
    /// Whether the configuration says it all.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

/// A budget that several sessions spend together, in billionths of a dollar: the cheapest models' single tokens count.
#[derive(Debug, Default)]
pub struct Purse(AtomicU64);

impl Purse {
    const PARTS: f64 = 1e9;

    /// What all of them have spent, in US dollars.
    #[must_use]
    pub fn spent(&self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "exact up to nine million dollars")]
        let parts = self.0.load(Ordering::Relaxed) as f64;
        parts / Self::PARTS
    }

    /// One of them spends so many US dollars.
    pub(crate) fn spend(&self, usd: f64) {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "prices are checked to be positive"
        )]
        let parts = (usd * Self::PARTS) as u64;
        self.0.fetch_add(parts, Ordering::Relaxed);
    }
}

/// One run's settings. `Default` is a headless run with every limit on.
#[derive(Debug, Clone)]
pub struct RunSettings {
    /// What is allowed without asking.
    pub mode: Mode,
    /// Who answers questions.
    pub approver: Approver,
    /// How long a question waits before it counts as denied; `None` for as long as it takes.
    pub approval_timeout: Option<Duration>,
    /// Calls that run at once.
    pub concurrency: usize,
    /// How long a call may take whose tool doesn't say.
    pub tool_timeout: Duration,
    /// The list of todos; `None` for none.
    pub todos: Option<TodoSettings>,
    /// Whether a run that goes in circles is told so, and then stopped.
    pub loop_guard: bool,
    /// Model requests before the run stops.
    pub max_turns: u32,
    /// Rounds of feedback before the run gives up on its checks.
    pub max_iterations: u32,
    /// Wall time before the run stops.
    pub timeout: Duration,
    /// US dollars before the run stops.
    pub budget_usd: Option<f64>,
    /// What others spend of the same budget too.
    pub purse: Option<Arc<Purse>>,
    /// What the model costs, where that is known.
    pub price: Option<Price>,
    /// Which checks verify.
    pub checks: Checks,
    /// What must be enforced for a command to run.
    pub needs: SandboxNeeds,
    /// The user's own instructions, for every project.
    pub instructions: Option<String>,
    /// What the project's configuration wants the model to be told.
    pub project_instructions: Option<String>,
    /// Whether the model calls tools; without, it speaks the text protocol.
    pub tool_calling: bool,
    /// Sampling temperature.
    pub temperature: Option<f32>,
    /// Nucleus sampling.
    pub top_p: Option<f32>,
    /// How much the model may think.
    pub thinking: Option<Thinking>,
    /// Output limit of one reply.
    pub max_output: Option<Tokens>,
    /// What the first context may cost.
    pub context_budget: Tokens,
    /// How long the first context waits for what the index finds for the task, beside what it waits for anyway. `None` where it
    /// is to be of the files alone: a recording has to play back where there is no index.
    pub index_patience: Option<Duration>,
    /// What the session is to be opened with again beside the configuration; it changes nothing of the run.
    pub asked: Asked,
    /// The day, as `2026-01-31`, for the prompt.
    pub today: String,
    /// The platform, such as `linux`, for the prompt.
    pub platform: String,
}

impl Default for RunSettings {
    fn default() -> Self {
        Self {
            mode: Mode::Edit,
            approver: Approver::Nobody,
            approval_timeout: None,
            concurrency: DEFAULT_CONCURRENCY,
            tool_timeout: DEFAULT_TOOL_TIMEOUT,
            todos: Some(TodoSettings::default()),
            loop_guard: true,
            max_turns: DEFAULT_MAX_TURNS,
            max_iterations: DEFAULT_MAX_ITERATIONS,
            timeout: DEFAULT_TIMEOUT,
            budget_usd: None,
            purse: None,
            price: None,
            checks: Checks::Found,
            needs: SandboxNeeds::ALL,
            instructions: None,
            project_instructions: None,
            tool_calling: true,
            temperature: None,
            top_p: None,
            thinking: None,
            max_output: None,
            context_budget: DEFAULT_CONTEXT_BUDGET,
            index_patience: Some(DEFAULT_INDEX_PATIENCE),
            asked: Asked::default(),
            today: String::new(),
            platform: std::env::consts::OS.to_owned(),
        }
    }
}
