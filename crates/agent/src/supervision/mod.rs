//! Supervision between steps: stalls, todos, schedules and external changes.

pub(crate) mod attention;
mod external_changes;
pub mod schedule;
pub mod stall;
pub mod todos;
