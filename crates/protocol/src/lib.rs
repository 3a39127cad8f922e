//! The types that all crates of the workspace share.
//!
//! - [`Message`]s with their content [`Block`]s, [`ToolUse`]s and the states of a tool call
//!   ([`CallState`]);
//! - the [`Event`]s that a session emits on three [`Channel`]s, and the [`RunReport`] of a finished
//!   run;
//! - ids and log positions ([`SessionId`], [`CallId`], [`Seq`]), [`Usage`], [`Tokens`] and
//!   [`ModelLimits`];
//! - permissions ([`Level`], [`Mode`], [`Effects`], [`Verdict`]) and the guarantees of a sandbox
//!   ([`Enforcement`]);
//! - paths inside a project ([`RelPath`]), and the results of checks ([`Diagnostic`],
//!   [`Evidence`]).
//!
//! The crate does no I/O, depends on no other crate of the workspace, and reads no clock: times are
//! passed in as [`UnixMillis`], or by a [`Clock`] of the caller's. All types that are stored or
//! sent implement serde's traits and have a JSON Schema.
//!
//! ```
//! use journeyman_protocol::{Block, Message, RelPath, Role};
//!
//! let path = RelPath::parse("src/./lib.rs").unwrap();
//! assert_eq!(path.to_string(), "src/lib.rs");
//! let message = Message::user_text("fix the parser");
//! assert_eq!(message.role, Role::User);
//! assert!(matches!(&message.content[..], [Block::Text { .. }]));
//! ```

mod agent;
mod call;
mod check;
mod clip;
mod clock;
mod context;
mod copy;
mod digits;
mod edit_diff;
mod enforcement;
mod event;
mod guard_violation;
mod hash;
mod honesty;
mod ids;
mod limits;
mod message;
mod path;
mod permission;
mod plan;
mod run_outcome;
mod session;
mod strength;
mod usage;

pub use agent::{AgentReport, Termination};
pub use call::{Approval, CallRecord, CallState, CallStep, CallTransition};
pub use check::{Baseline, CheckKind, CheckOutcome, Diagnostic, Evidence, Severity, TestCounts, label_check};
pub use clip::clip_to_bytes;
pub use clock::Clock;
pub use context::{ContextCategory, ContextShare};
pub use copy::{CandidateReport, CommitReport, CopyReport, CopyState, FileConflict, UnavailableTier};
pub use digits::group_digits;
pub use edit_diff::EditDiff;
pub use enforcement::{Enforcement, SandboxNeeds, SandboxTier};
pub use event::{
    Channel, CompressionMethod, CompressionPhase, CompressionReason, Envelope, ErrorPhase, ErrorSeverity,
    Event, EventKind, FileChange, FileChangeKind, FileDiffStat, ResumeStrategy, RunReport, ScheduleKind,
    TodoReminderReason,
};
pub use guard_violation::{GuardRules, GuardViolation, GuardViolationKind};
pub use hash::{ContentHash, InvalidHash};
pub use honesty::{AcceptedFinding, HonestyFinding, HonestyKind, HonestySeverity, UnknownHonestyKind};
pub use ids::{CallId, InvalidSessionId, Seq, SessionId, UnixMillis};
pub use limits::{ImageTokens, LimitSource, ModelLimits, Tokenizer};
pub use message::{Block, ImageData, Message, ResultPart, Role, ToolSpec, ToolUse};
pub use path::{InvalidPath, RelPath, is_invisible_char};
pub use permission::{Decision, Effects, Level, Mode, ParseModeError, Verdict};
pub use plan::{Plan, PlanComparison, PlanStep};
pub use run_outcome::RunOutcome;
pub use session::{AgentState, MessageKind, ReminderCategory, Todo, TodoStatus, TurnPhase};
pub use strength::{MutationKind, Strength, StrengthReport, Survivor, UnknownStrength, UntestedLine};
pub use usage::{StopReason, TokenCounter, Tokens, Usage};
