//! Tool calls: their parallel execution and their results.

pub(crate) mod call_end;
pub(crate) mod edit_scope;
pub(crate) mod execution;
pub(crate) mod finished_call;
pub(crate) mod runner;
