//! Streaming clients for the four wire protocols, with retry, record, replay and scripts.
//!
//! A [`Model`] takes a [`ModelRequest`] and streams [`Delta`]s that end in one whole [`Reply`] or one
//! [`ModelError`], which has committed nothing. [`connect`] makes one for an [`Endpoint`]: a provider's
//! address, key and patience. [`builtin_providers`] knows the common ones, [`builtin_price`] what they
//! charge. [`ScriptedModel`] answers from a file; [`Recorder`] writes down what goes over the wire, and
//! [`Replayer`] plays it back without a network. [`Embeddings`] asks a server for vectors of texts.
//!
//! ```
//! use futures_util::StreamExt as _;
//! use journeyman_model::{Delta, Model, ModelRequest, ScriptedModel};
//! use journeyman_protocol::Message;
//! use tokio_util::sync::CancellationToken;
//!
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
//! let model = ScriptedModel::parse(r#"{"replies": [{"text": "Good morning."}]}"#)?;
//! let request = ModelRequest { messages: vec![Message::user_text("Hello")], ..ModelRequest::default() };
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
//! It runs no tools, keeps no transcript, counts no budget and reads no configuration. It reads no
//! environment either, but for the certificates of `https` where [`Endpoint::ca_file`] names none.

mod cassette;
mod client;
mod codec;
mod delta;
mod embeddings;
mod endpoint;
mod error;
mod exchange;
mod price;
mod provider;
mod request;
mod script;
mod sse;
mod transport;
mod wire;

pub use cassette::{Recorder, RecordingTransport, Replayer};
pub use client::{HttpModel, connect, connect_with};
pub use delta::{Delta, DeltaStream, Model, Reply};
pub use embeddings::{Embeddings, MAX_TEXTS};
pub use endpoint::{Clock, Deadlines, Endpoint, ParseWireError, ProxySettings, RetryPolicy, Secret, Wire};
pub use error::{Deadline, ModelError};
pub use price::{Price, builtin_price};
pub use provider::{Provider, builtin_providers, near_names};
pub use request::{Effort, ModelRequest, SystemPart, Thinking};
pub use script::ScriptedModel;
pub use transport::{Body, Header, HttpRequest, HttpResponse, HttpTransport, Method, Transport};
pub use wire::request_body;
