//! Windows, output limits and tokenizers of models.
//!
//! [`builtin_limits`] returns the limits of hosted models that the vendors document;
//! [`default_limits`] returns careful ones for the others.
//! [`Model::query_limits`](crate::Model::query_limits) asks servers on this machine, and
//! OpenRouter, for their own.

mod context_too_long;
mod server_limits;
mod server_query;
mod table;

pub use context_too_long::parse_context_window;
pub use server_limits::ServerLimits;
pub(crate) use server_query::query_server_limits;
pub use table::{builtin_limits, default_limits, documented_models};
