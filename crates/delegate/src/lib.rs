//! Other coding CLIs (claude, codex, gemini, opencode, any agent that speaks ACP, any program that
//! a configuration describes) behind one [`Adapter`].
//!
//! An adapter says how a CLI is called and what it needs. What the CLI writes goes line by line
//! into a [`Conversation`], which makes [`DelegateEvent`]s of it and, at the end, an
//! [`Outcome`]. Nothing here runs a program: adapters are pure, and whoever runs the CLI decides
//! how it is confined.

mod adapter;
mod conversation;

pub use adapter::{Adapter, Capabilities, CommandLine, CommandRequest, Provider, Requirements};
pub use conversation::{Conversation, DelegateEvent, Failure, FailureKind, Outcome, Step};
