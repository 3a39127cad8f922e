//! Windows, output limits and tokenizers of models.
//!
//! [`builtin_limits`] knows the hosted models that the vendors document; [`default_limits`] assumes
//! careful ones for the others. Servers on this machine, and OpenRouter, tell their own by
//! [`Model::query_limits`](crate::Model::query_limits).

mod refusal;
mod server;
mod server_limits;
mod table;

pub use refusal::refused_window;
pub(crate) use server::query;
pub use server_limits::ServerLimits;
pub use table::{builtin_limits, default_limits, documented_models};
