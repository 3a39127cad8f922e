//! Shortening a long conversation: old results become one line each, and the beginning becomes a
//! state that code draws from it.
//!
//! [`age_results`] replaces results that the model has worked with already. [`compact`] replaces
//! all but the newest messages by their [`WorkingState`]: what the user said, what was decided,
//! what failed, which files were touched. A model may add prose to it; everything that must not be
//! lost is drawn by code, so that a compaction works without a model. Both are pure, and nothing
//! is lost by them: the log has every message.

mod aging;
mod compact;
mod repeated;
mod section;
mod sentences;
mod shorten;
mod tail;
mod text_calls;
mod working_state;

pub use aging::{AgedResult, age_results, apply_aged};
pub use compact::{CompactedTranscript, CompactionInput, compact};
pub use repeated::find_same_result;
pub use text_calls::result_as_text;
pub use working_state::{DelegatedReport, FileNote, StateFacts, WorkingState};
