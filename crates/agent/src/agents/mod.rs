//! Several sessions: a registry by name, and messages between agents.

pub mod channel;
pub mod session_registry;
