//! Crash recovery: taking over a session from a process that ended.

pub(crate) mod cut_off_work;
pub(crate) mod lease;
pub(crate) mod unfinished_agents;
