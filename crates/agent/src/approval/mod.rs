//! Approval: policy judges a call, a person is asked, and destructive commands are previewed.

pub(crate) mod authorize;
mod destructive_changes;
pub(crate) mod overlay_preview;
