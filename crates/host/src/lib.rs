//! The parts that every surface starts a session with: configuration, trust, the model's client,
//! and the session builder.
//!
//! [`SessionBuilder`] puts a session together from its parts, each of which has a default.
//! [`resolve_settings`] merges a user's options with the layers of configuration ([`config`]) and
//! asks for trust through [`Confirmations`]. A [`Surface`] shows the session's events and passes on
//! what the person says; [`watch_session`] runs it. A finished run's work is landed, kept or
//! committed as its [`Delivery`] says.
//!
//! The modules that aren't needed for a run serve single commands of every surface: [`sessions`]
//! finds sessions, [`landing`], [`undo`] and [`resume`] decide about their work, and so on.
//! [`event_text`] has the words for a session's events, and [`mod@format`] those for single values.
//!
//! ```no_run
//! # async fn example() -> Result<(), journeyman_host::HostError> {
//! use journeyman_host::{RunOptions, SessionBuilder, config::Environment, resolve_settings};
//!
//! let environment = Environment::from_process().unwrap_or_default();
//! let root = "/path/to/project".as_ref();
//! let settings = resolve_settings(&environment, root, &RunOptions::default(), None, None)?;
//! let builder = SessionBuilder::new(root).environment(environment).settings(settings);
//! let report = builder.run("make the failing test pass", &mut |_: &_| ()).await?;
//! println!("{:?}: {}", report.outcome, report.summary);
//! # Ok(()) }
//! ```
//!
//! It draws no terminal and serves no HTTP. It reads the process's clock and environment only where
//! a part isn't given.

pub mod agents;
pub mod apply;
pub mod approvals;
mod builder;
pub mod candidates;
pub mod checkpoints;
pub mod checks;
pub mod config;
mod confirmations;
#[cfg(feature = "containers")]
mod containers;
pub mod copy_review;
pub mod delegate_lines;
pub mod delegates;
mod delivery;
pub mod demo;
pub mod direct_task;
pub mod doctor;
mod durable_file;
mod editing_tools;
pub mod editor;
pub mod embeddings;
mod error;
pub mod event_text;
pub mod events;
pub mod exec;
pub mod export;
pub mod format;
pub mod highlight;
mod hooks;
pub mod hunks;
pub mod images;
pub mod index;
pub mod input;
pub mod known_models;
pub mod landing;
pub mod memory;
mod models;
pub mod new_task;
pub mod plans;
pub mod policy_check;
mod prepare;
mod project;
mod prompt_files;
pub mod renderer;
pub mod report_text;
pub mod resume;
pub mod review_report;
pub mod root;
pub mod sandboxes;
pub mod session_commands;
pub mod session_evidence;
pub mod session_recap;
mod session_tools;
pub mod sessions;
mod settings;
pub mod skills;
pub mod slash_commands;
pub mod state;
mod surface;
pub mod task_input;
pub mod task_risk;
mod template;
mod text_files;
mod token_ratios;
pub mod undo;
mod verified_trees;
mod web;

pub use journeyman_agent as agent;

pub use builder::SessionBuilder;
pub use confirmations::Confirmations;
pub use delivery::{DeliveredRun, Delivery, DeliveryOptions, WorkLocation};
pub use error::{Context, HostError};
pub use hooks::add_configured_hooks;
pub use models::{
    Cassette, ConnectedModel, GROUP_PREFIX, all_providers, configured_model_limits, connect_model,
    thinking_settings,
};
pub use prepare::PreparedRun;
pub use project::{ProjectContext, configured_secrets};
pub use settings::{
    ADMIN_CONFIG, ADMIN_POLICY, EarlierRun, ResolvedSettings, RunOptions, load_assuming_trust,
    load_without_untrusted, resolve_settings,
};
pub use surface::{Surface, SurfaceInput, watch_session};
pub use template::SessionTemplate;
pub use text_files::FileOwner;
