//! The agent as a library: a session is one actor that takes a task to a verified change.
//!
//! [`start`] returns a [`SessionHandle`], which sends tasks, subscribes to events, answers approval
//! requests and interrupts the session. A turn asks the model, authorizes and runs the calls that
//! the model makes and, when the model stops, runs the project's own checks and returns their
//! failures to the model. Everything that happens is an entry of one durable log: an intent is
//! written before its effect, and every call gets exactly one result.
//!
//! The crates that [`SessionParts`] are made of are re-exported ([`protocol`], [`model`],
//! [`store`], [`workspace`], [`sandbox`], [`tools`], [`policy`]). `journeyman-host` reads the
//! configuration and builds a session from it.
//!
//! ```no_run
//! # use journeyman_agent::{AgentError, SessionParts};
//! # async fn example(parts: SessionParts) -> Result<(), AgentError> {
//! use journeyman_agent::{RunSettings, start};
//! use journeyman_agent::protocol::{SessionId, UnixMillis};
//!
//! let id = SessionId::new(UnixMillis(0), 7);
//! let session = start(parts, RunSettings::default(), id);
//! session.send("make the failing test pass").await?;
//! let report = session.wait_until_finished().await?;
//! println!("{:?}: {}", report.outcome, report.summary);
//! # Ok(()) }
//! ```
//!
//! This crate draws no terminal, serves no HTTP, and reads neither the clock nor the environment:
//! [`SessionParts`] brings both in.

pub mod agents;
mod approval;
mod blocking;
mod calls;
mod compaction;
mod durations;
mod error;
pub mod hooks;
pub mod isolation;
mod planning;
mod recovery;
mod request;
mod session;
mod supervision;
#[cfg(test)]
mod test_context;
mod transcript;
mod verification;

pub use isolation::checkpoints::FIRST_CHECKPOINT_LABEL;
pub use journeyman_git as git;
pub use journeyman_index as index;
pub use journeyman_model as model;
pub use journeyman_policy as policy;
pub use journeyman_protocol as protocol;
pub use journeyman_sandbox as sandbox;
pub use journeyman_store as store;
pub use journeyman_tools as tools;
pub use journeyman_verify as verify;
pub use journeyman_workspace as workspace;

pub use agents::{channel, session_registry};
pub use approval::LastingAnswers;
pub use error::AgentError;
pub use isolation::candidates;
pub use journeyman_protocol::Clock;
pub use planning::store_plan;
pub use request::line_commits::find_line_commit;
pub use request::token_ratios::TokenRatioStore;
pub use request::uncommitted::find_uncommitted;
pub use session::budget::SharedBudget;
pub use session::handle::{SessionHandle, resume, resume_from, start, start_agent};
pub use session::running_session::offered_tools;
pub use session::session_parts::SessionParts;
pub use session::settings::{
    Approver, ChecksSetting, CompactionSettings, DEFAULT_COMPACT_AT_PERCENT, DEFAULT_FIRST_CONTEXT_BUDGET,
    DEFAULT_INDEX_LOOKUP_TIMEOUT, DEFAULT_MAX_CONCURRENT_CALLS, DEFAULT_MAX_FEEDBACK_ITERATIONS,
    DEFAULT_MAX_TURNS, DEFAULT_TASK_TIMEOUT, DEFAULT_TEST_TIME_BUDGET, DEFAULT_TODO_REMINDER_INTERVAL,
    DEFAULT_TOOL_TIMEOUT, PlanFirst, RunSettings, StartOptions, TestStrengthSettings, TodoSettings,
};
pub use session::shared_state::{CutOffPolicy, PermissionAnswer, SessionStatus};
pub use session::task_first_message::is_question;
pub use session::user_message::UserMessage;
pub use supervision::{schedule, stall, todos};
pub use transcript::fork::{
    ForkPoint, SESSION_STATUS_FORKED, SESSION_STATUS_IMPORTED, UndoneCompaction, fork, mark_import_end,
    snapshot, undo_compaction,
};
pub use transcript::log::{
    EventFilter, EventPages, Since, Subscription, envelope_of, load_events, message_of,
};
pub use transcript::log_reader::read_result_texts;
pub use transcript::record::{
    CandidateRun, MessageId, QueuedMessage, Record, RecordedSettings, TaskCounters, record_of,
};
pub use transcript::state::{OpenCall, OpenTask, State};
pub use verification::failed_checks::FailedChecks;
