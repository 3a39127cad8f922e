//! Other coding CLIs (claude, codex, gemini, opencode, any agent that speaks ACP, any program that
//! a configuration describes) behind one [`Adapter`], and what runs them.
//!
//! An adapter says how a CLI is called and what it needs. What the CLI writes goes line by line
//! into a [`Conversation`], which makes [`DelegateEvent`]s of it and, at the end, an
//! [`Outcome`]. Adapters are pure: they run nothing and read nothing.
//!
//! [`DelegateTool`] runs a CLI as one call of a session: confined as a command is, with a home of
//! its own ([`Access`] says what of the user's is in it), its changes recorded as a command's.
//! [`Director`] is a model that gives each task to one CLI by that tool, so that a whole session
//! (verification, feedback, landing, undo) is around a CLI. [`Delegates`] are the CLIs that the
//! user has, in the order of preference.

mod access;
mod acp;
mod adapter;
pub mod bounds;
mod builtin;
mod claude;
mod codex;
mod conversation;
mod definition;
mod detection;
mod director;
mod display;
mod exchange;
mod gemini;
mod generic;
mod homes;
#[cfg(test)]
mod hostile_output;
mod line;
mod lines;
mod opencode;
mod program;
mod progress;
#[cfg(test)]
mod sample;
mod settings;
mod tool;

pub use access::{Access, AccessError};
pub use adapter::{Adapter, Capabilities, CommandLine, CommandRequest, Provider, Requirements, Spent};
pub use builtin::{builtin_adapter, builtin_adapters};
pub use claude::Claude;
pub use codex::Codex;
pub use conversation::{Conversation, DelegateEvent, Failure, FailureKind, Outcome, Step};
pub use definition::{AcpOptions, ConfiguredCli, Definition, DefinitionError, Output, Paths};
pub use detection::{
    Credentials, Installation, Machine, VERSION_ARGUMENT, detect, explain_missing, find_credentials,
};
pub use director::Director;
pub use gemini::Gemini;
pub use opencode::Opencode;
pub use program::find_program;
pub use settings::{CONFINED_TIME, DIRECT_TIME, DelegateError, DelegateSettings, Delegates};
pub use tool::{DELEGATE_TOOL, DelegateTool};
