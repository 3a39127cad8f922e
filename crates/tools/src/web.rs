//! Tools that read the web: `web_fetch` and `web_search`.
//!
//! Their requests go through a proxy with the sandbox's rules for hosts: only the host that policy
//! judged is reached, by its name, at a public address. What comes back is a stranger's text, and
//! is marked as such.

mod fetch;
mod html;
mod request;
mod search;

pub use fetch::WebFetch;
pub use search::{SearchEngine, WebSearch};
