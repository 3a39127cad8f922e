//! Several sessions: a registry by name, and messages between agents.

pub mod pool;
pub mod room;
