//! What every surface starts a session with: configuration, trust, and the model's client.
//!
//! [`config`] reads the layers of configuration and [`config::TrustStore`] remembers which versions of a project's file the
//! user trusts. [`connect`] turns a model's name into a client, [`embeddings`] does so for the models that make vectors of
//! the code, and [`configured_hooks`] adds a configuration's hooks to those of a program.
//!
//! ```no_run
//! # fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use journeyman_host::config::{Environment, Trusted, load};
//!
//! let environment = Environment::default();
//! let loaded = load(&environment, "/path/to/project".as_ref(), &[], Trusted::Nothing, None)?;
//! println!("{:?}", loaded.config.model);
//! # Ok(()) }
//! ```
//!
//! It draws no terminal and reads neither clock nor environment: those come in through [`config::Environment`].

pub mod config;
pub mod embeddings;
mod error;
mod hooks;
mod models;

pub use error::ConfigError;
pub use hooks::configured_hooks;
pub use models::{Cassette, Connected, connect, providers, thinking};
