//! Other coding CLIs behind one [`Adapter`]: claude, codex, gemini and opencode
//! ([`builtin_adapters`]), any agent that speaks the Agent Client Protocol, and any program that a
//! configuration describes ([`ConfiguredCli`]).
//!
//! An adapter says how a CLI is called ([`CommandLine`]) and what it needs of the user's
//! ([`Requirements`]). What the CLI writes goes line by line into a [`Conversation`], which makes
//! [`DelegateEvent`]s of it and, at the end, an [`Outcome`]. [`detect`] finds out if a CLI is
//! installed and its user logged in, by questions that the caller answers ([`Machine`]).
//!
//! Adapters run nothing, open nothing and talk to no network. [`DelegateTool`] runs a CLI as one
//! call of a session: confined as a command is, with a home of its own ([`CliAccess`] says what of
//! the user's is in it), its changes recorded as a command's. [`DelegatingModel`] is a model that
//! gives each message to one CLI by that tool, so that a whole session (verification, feedback,
//! landing, undo) is around it. [`DirectRun`] runs a task of low risk without confinement.
//! [`Delegates`] are the CLIs that the user has, in the order of preference.
//!
//! Output is hostile input: it is parsed up to named bounds ([`bounds`]), an unknown line is kept
//! and never fatal, and a session id that could be read as a flag is none.
//!
//! ```
//! use journeyman_delegate::{CommandRequest, DelegateEvent, TokensAndCost, builtin_adapter};
//!
//! let adapter = builtin_adapter("codex").ok_or("unknown")?;
//! let request = CommandRequest {
//!     prompt: "Fix the failing test.",
//!     directory: "/work".as_ref(),
//!     resume: None,
//!     spent: TokensAndCost::default(),
//!     model: None,
//!     base_url: None,
//!     confined: true,
//!     trusted: false,
//!     arguments: &[],
//! };
//! let command = adapter.build_command(&request);
//! assert_eq!(command.stdin, b"Fix the failing test.");
//! let mut conversation = adapter.start_conversation(&request);
//! let step = conversation.receive_line(br#"{"type":"thread.started","thread_id":"t-1"}"#);
//! assert_eq!(step.events, [DelegateEvent::Session("t-1".to_owned())]);
//! // A process that was killed in the middle.
//! let outcome = conversation.end(None, "");
//! assert!(outcome.failure.is_some());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod access;
mod acp;
mod adapter;
pub mod bounds;
mod builtin;
mod claude;
mod cli_input;
mod codex;
mod conversation;
mod definition;
mod delegating_model;
mod detection;
mod direct_run;
mod display;
mod fresh_directory;
mod gemini;
mod generic_output;
mod homes;
#[cfg(test)]
mod hostile_output;
mod json_line;
mod line_splitter;
mod opencode;
mod output_format;
mod program;
mod progress;
mod run_reader;
#[cfg(test)]
mod sample;
mod settings;
mod tool;

pub use access::{AccessError, CliAccess};
pub use adapter::{
    Adapter, Capabilities, CommandLine, CommandRequest, Provider, Requirements, TokensAndCost,
};
pub use builtin::{builtin_adapter, builtin_adapters};
pub use claude::Claude;
pub use codex::Codex;
pub use conversation::{Conversation, ConversationStep, DelegateEvent, Failure, FailureKind, Outcome};
pub use definition::{CliDefinition, ConfiguredCli, DefinitionError};
pub use delegating_model::DelegatingModel;
pub use detection::{
    Credentials, Installation, Machine, VERSION_ARGUMENT, detect, explain_missing, find_credentials,
};
pub use direct_run::{DirectEnd, DirectError, DirectRun};
pub use fresh_directory::{FreshDirectory, remove_abandoned};
pub use gemini::Gemini;
pub use opencode::Opencode;
pub use output_format::{AcpOptions, CliOutputFormat, JsonPaths};
pub use program::find_program;
pub use settings::{DEFAULT_CONFINED_TIME, DEFAULT_DIRECT_TIME, DelegateError, DelegateSettings, Delegates};
pub use tool::{DELEGATE_TOOL, DelegateTool};
