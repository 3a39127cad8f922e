//! Commands and checks: the tree before and after, whose changes are whose, and recovery after a
//! crash.

pub(crate) mod attribution;
pub(crate) mod heartbeat;
pub(crate) mod journaling;
pub(crate) mod observe;
pub(crate) mod recovery;
pub(crate) mod running_commands;
pub(crate) mod tree_snapshot;
