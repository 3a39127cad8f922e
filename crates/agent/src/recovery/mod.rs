//! Crash recovery: taking over a session from a process that ended.

pub(crate) mod lease;
pub(crate) mod resume;
