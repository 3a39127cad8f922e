//! Approval: policy judges a call, hooks look at it, a person is asked, and destructive commands
//! are previewed.

pub(crate) mod approvals;
pub(crate) mod ask_user;
pub(crate) mod authorization;
pub(crate) mod authorizer;
pub(crate) mod call_diff;
pub(crate) mod decision_record;
mod destructive_changes;
mod lasting_answer_sync;
pub(crate) mod lasting_answers;
pub(crate) mod overlay_preview;

pub use lasting_answers::LastingAnswers;
