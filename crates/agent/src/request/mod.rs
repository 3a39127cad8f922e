//! Model requests: the first context, the offered tools, calls written as text, and the streamed
//! reply.

pub(crate) mod apply_edit;
pub(crate) mod argument_size;
pub(crate) mod builder;
pub(crate) mod cache_watch;
pub(crate) mod index_lookup;
pub(crate) mod input_meter;
pub(crate) mod line_commits;
pub(crate) mod offered_tools;
pub(crate) mod partial_reply;
pub(crate) mod prose_edits;
pub(crate) mod reply_calls;
pub(crate) mod reply_stream;
pub(crate) mod text_protocol;
pub(crate) mod token_ratios;
pub(crate) mod uncommitted;
pub(crate) mod usage_estimate;
