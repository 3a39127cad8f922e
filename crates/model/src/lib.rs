//! Streaming clients for the four wire protocols, with retry, record, replay and scripts.

mod codec;
mod delta;
mod endpoint;
mod error;
mod request;
mod sse;
mod transport;
mod wire;

pub use delta::{Delta, DeltaStream, Model, Reply};
pub use endpoint::{Clock, Deadlines, Endpoint, ParseWireError, ProxySettings, RetryPolicy, Secret, Wire};
pub use error::{Deadline, ModelError};
pub use request::{Effort, ModelRequest, SystemPart, Thinking};
