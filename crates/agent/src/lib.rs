//! The session: one actor that takes a task to a verified change. The whole agent, as a library.
//!
//! [`start`] gives a [`SessionHandle`]: send a task, subscribe to events, decide what is asked, interrupt.
//! Inside, a turn asks the model, judges and runs the calls it makes, and when the model stops, runs the
//! project's own checks and feeds failures back. Everything that happens is an entry of one durable log:
//! intent is written before its effect, and every call gets exactly one result.
//!
//! The crates that [`Parts`] are made of are re-exported ([`protocol`], [`model`], [`store`], [`workspace`],
//! [`sandbox`], [`tools`], [`policy`]). `journeyman-host` reads the configuration and builds a session from it.
//!
//! ```no_run
//! # async fn example(parts: journeyman_agent::Parts) -> Result<(), journeyman_agent::AgentError> {
//! use journeyman_agent::{RunSettings, start};
//! use journeyman_agent::protocol::{SessionId, UnixMillis};
//!
//! let id = SessionId::new(UnixMillis(0), 7);
//! let session = start(parts, RunSettings::default(), id);
//! session.send("make the failing test pass").await?;
//! let report = session.finished().await?;
//! println!("{:?}: {}", report.outcome, report.summary);
//! # Ok(()) }
//! ```
//!
//! It draws no terminal, serves no HTTP, and reads neither clock nor environment: those come in through
//! [`Parts`].

mod actor;
mod admission;
mod apply_edit;
mod attention;
mod before;
pub mod candidates;
mod clock;
pub mod copies;
mod error;
mod finished;
mod foresight;
mod fork;
mod freshness;
mod holdback;
mod hooking;
pub mod hooks;
mod inbox;
mod lease;
mod log;
mod losses;
mod opening;
pub mod pool;
pub mod progress;
mod record;
mod reminder;
mod report;
mod resume;
pub mod room;
mod runner;
pub mod schedule;
mod session;
mod settings;
mod shared;
mod state;
mod text_calls;
pub mod todos;
mod trying;
mod turn;
mod unseen;
mod verification;

pub use before::BEFORE_THE_RUN;
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

pub use clock::Clock;
pub use error::AgentError;
pub use fork::{ForkPoint, STATUS_FORKED, fork, snapshot};
pub use log::{Filter, Since, Subscription, envelope_of, events, message_of};
pub use record::{Asked, Books, CandidateRun, MessageId, Queued, Record, Setting, record_of};
pub use session::{CutOff, Parts, Programs, SessionHandle, resume, start};
pub use settings::{
    Approver, Checks, DEFAULT_CONCURRENCY, DEFAULT_CONTEXT_BUDGET, DEFAULT_INDEX_PATIENCE,
    DEFAULT_MAX_ITERATIONS, DEFAULT_MAX_TURNS, DEFAULT_TIMEOUT, DEFAULT_TODO_INTERVAL, DEFAULT_TOOL_TIMEOUT,
    Purse, RunSettings, TodoSettings,
};
pub use shared::{Answer, Status};
pub use state::{OpenCall, State, Task};
