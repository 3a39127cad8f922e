//! Streaming clients for the four wire protocols, with retries, recording, replay and scripts.
//!
//! A [`Model`] takes a [`ModelRequest`] and streams [`Delta`]s that end in one complete [`Reply`]
//! or one [`ModelError`], after which nothing of the reply counts. [`connect`] creates a client for
//! an [`Endpoint`]: a provider's address, key, deadlines and retry policy. [`builtin_providers`]
//! lists the common providers, [`builtin_price`] their prices, [`builtin_limits`] their windows;
//! [`Model::query_limits`] asks the server for its own. [`ScriptedModel`] replies from a
//! file; [`Recorder`] records the HTTP exchanges, and [`Replayer`] replays them without a network.
//! [`EmbeddingsClient`] requests embedding vectors of texts.
//!
//! ```
//! use futures_util::StreamExt as _;
//! use journeyman_model::{Delta, Model, ModelRequest, ScriptedModel};
//! use journeyman_protocol::Message;
//! use tokio_util::sync::CancellationToken;
//!
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
//! let model = ScriptedModel::parse(r#"{"replies": [{"text": "Good morning."}]}"#)?;
//! let messages = vec![Message::user_text("Hello")];
//! let request = ModelRequest { messages, ..ModelRequest::default() };
//! let mut deltas = model.stream(&request, CancellationToken::new());
//! while let Some(delta) = deltas.next().await {
//!     if let Delta::Done(reply) = delta? {
//!         assert_eq!(reply.message.text(), "Good morning.");
//!     }
//! }
//! # Ok::<(), journeyman_model::ModelError>(())
//! # }).unwrap();
//! ```
//!
//! The crate runs no tools, keeps no transcript, counts no budget and reads no configuration. Of
//! the environment it reads only the variables that name the platform's certificates for `https`,
//! and only if [`Endpoint::ca_file`] is not set.

mod cassette;
mod catalog_name;
mod client;
mod codec;
mod delta;
mod embeddings;
mod endpoint;
mod error;
mod exchange;
mod limits;
mod price;
mod provider;
mod request;
mod script;
mod sse;
mod transport;
mod wire;
mod wire_protocol;

pub use cassette::{Recorder, RecordingTransport, Replayer};
pub use client::{HttpModel, connect, connect_with};
pub use delta::{Delta, DeltaStream, Model, Reply, stream_whole_reply};
pub use embeddings::{EmbeddingsClient, MAX_TEXTS_PER_REQUEST};
pub use endpoint::{Deadlines, Endpoint, ProxySettings, RetryPolicy, Secret};
pub use error::{Deadline, ModelError};
pub use limits::{ServerLimits, builtin_limits, default_limits, documented_models, parse_context_window};
pub use price::{Price, builtin_price};
pub use provider::{Provider, builtin_providers, similar_names};
pub use request::{Effort, ModelRequest, SystemPart, Thinking};
pub use script::ScriptedModel;
pub use transport::{Body, Header, HttpRequest, HttpResponse, HttpTransport, Method, Transport};
pub use wire::request_body;
pub use wire_protocol::{ParseWireError, Wire};
