//! The session: its handle, its actor, and the turn loop that orders the stages.

pub(crate) mod actor;
mod agent_end;
pub(crate) mod assemble;
pub(crate) mod context;
mod deadline;
mod exchange;
pub(crate) mod first_message;
pub(crate) mod handle;
pub(crate) mod inbox;
mod incoming;
mod last_turn;
mod limits;
mod opening;
pub(crate) mod parts;
mod reopen;
mod report;
pub(crate) mod settings;
pub(crate) mod shared;
pub(crate) mod stages;
mod step;
mod task;
mod task_begin;
pub(crate) mod task_end;
mod turn;
pub(crate) mod user_message;
mod verify;
