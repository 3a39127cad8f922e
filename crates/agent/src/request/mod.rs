//! Model requests: the first context, the offered tools, calls written as text, and the streamed
//! reply.

pub(crate) mod apply_edit;
pub(crate) mod builder;
pub(crate) mod cache_watch;
pub(crate) mod input_meter;
pub(crate) mod line_commits;
pub(crate) mod lookup;
pub(crate) mod offered;
pub(crate) mod partial;
pub(crate) mod prose_edits;
pub(crate) mod reply;
pub(crate) mod stream;
pub(crate) mod text_protocol;
pub(crate) mod token_ratios;
pub(crate) mod usage_estimate;
