//! Approval: policy judges a call, hooks look at it, a person is asked, and destructive commands
//! are previewed.

pub(crate) mod ask;
pub(crate) mod authorize;
mod destructive_changes;
pub(crate) mod judgement;
pub(crate) mod overlay_preview;
