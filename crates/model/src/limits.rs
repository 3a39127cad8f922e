//! Windows, output limits and tokenizers of models.
//!
//! [`builtin_limits`] returns the limits of hosted models that the vendors document;
//! [`default_limits`] returns careful ones for the others.
//! [`Model::query_limits`](crate::Model::query_limits) asks servers on this machine, and
//! OpenRouter, for their own.

mod refusal;
mod server;
mod server_limits;
mod table;

pub use refusal::refused_window;
pub(crate) use server::query;
pub use server_limits::ServerLimits;
pub use table::{builtin_limits, default_limits, documented_models};
