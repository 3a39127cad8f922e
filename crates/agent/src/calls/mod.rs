//! Tool calls: their parallel execution and their results.

pub(crate) mod execution;
pub(crate) mod finished;
pub(crate) mod runner;
pub(crate) mod settle;
