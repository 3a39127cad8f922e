//! Tool calls: how they run side by side, and their results.

pub(crate) mod execution;
pub(crate) mod finished;
pub(crate) mod runner;
pub(crate) mod settle;
