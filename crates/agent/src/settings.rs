//! What a session is told to do and how far it may go.

use std::time::Duration;

use journeyman_model::{Price, Thinking};
use journeyman_protocol::{Mode, Needs, Tokens};

/// Model ↔ tool round trips before a run stops. A large refactoring takes 30 to 60.
pub const DEFAULT_MAX_TURNS: u32 = 100;
/// How often failed checks go back to the model (row A9 of the requirements).
pub const DEFAULT_MAX_ITERATIONS: u32 = 5;
/// Wall time of a run. Long enough for slow models and test suites, short enough to end overnight runs.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(2 * 60 * 60);
/// Tokens that the first context may cost, of windows that start at 32,000.
pub const DEFAULT_CONTEXT_BUDGET: Tokens = Tokens(20_000);

/// Which checks decide whether a change is verified.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
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

/// One run's settings. `Default` is a headless run with every limit on.
#[derive(Debug, Clone)]
pub struct RunSettings {
    /// What is allowed without asking.
    pub mode: Mode,
    /// Who answers questions.
    pub approver: Approver,
    /// Model requests before the run stops.
    pub max_turns: u32,
    /// Rounds of feedback before the run gives up on its checks.
    pub max_iterations: u32,
    /// Wall time before the run stops.
    pub timeout: Duration,
    /// US dollars before the run stops.
    pub budget_usd: Option<f64>,
    /// What the model costs, where that is known.
    pub price: Option<Price>,
    /// Which checks verify.
    pub checks: Checks,
    /// What must be enforced for a command to run.
    pub needs: Needs,
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
            max_turns: DEFAULT_MAX_TURNS,
            max_iterations: DEFAULT_MAX_ITERATIONS,
            timeout: DEFAULT_TIMEOUT,
            budget_usd: None,
            price: None,
            checks: Checks::Found,
            needs: Needs::ALL,
            instructions: None,
            project_instructions: None,
            tool_calling: true,
            temperature: None,
            top_p: None,
            thinking: None,
            max_output: None,
            context_budget: DEFAULT_CONTEXT_BUDGET,
            today: String::new(),
            platform: std::env::consts::OS.to_owned(),
        }
    }
}
