//! The session: its handle, its actor, and the turn that orders all stages.

pub(crate) mod actor;
pub(crate) mod handle;
pub(crate) mod inbox;
pub(crate) mod opening;
pub(crate) mod report;
pub(crate) mod settings;
pub(crate) mod shared;
pub(crate) mod turn;
