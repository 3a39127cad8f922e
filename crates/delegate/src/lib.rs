//! Other coding CLIs (claude, codex, gemini, opencode, any agent that speaks ACP, any program that
//! a configuration describes) behind one [`Adapter`].
//!
//! An adapter says how a CLI is called and what it needs. What the CLI writes goes line by line
//! into a [`Conversation`], which makes [`DelegateEvent`]s of it and, at the end, an
//! [`Outcome`]. Nothing here runs a program: adapters are pure, and whoever runs the CLI decides
//! how it is confined.

mod acp;
mod adapter;
pub mod bounds;
mod builtin;
mod claude;
mod codex;
mod conversation;
mod definition;
mod detection;
mod gemini;
mod generic;
#[cfg(test)]
mod hostile_output;
mod line;
mod opencode;
mod progress;
#[cfg(test)]
mod sample;

pub use adapter::{Adapter, Capabilities, CommandLine, CommandRequest, Provider, Requirements, Spent};
pub use builtin::{builtin_adapter, builtin_adapters};
pub use claude::Claude;
pub use codex::Codex;
pub use conversation::{Conversation, DelegateEvent, Failure, FailureKind, Outcome, Step};
pub use definition::{AcpOptions, ConfiguredCli, Definition, DefinitionError, Output, Paths};
pub use detection::{
    Credentials, Installation, Machine, VERSION_ARGUMENT, detect, explain_missing, find_credentials,
};
pub use gemini::Gemini;
pub use opencode::Opencode;
