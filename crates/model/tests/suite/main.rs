//! All tests of the crate in one program.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "tests"
)]

mod embeddings;
mod loopback;
mod real_server;
mod script;
mod server_limits;
mod transport;
mod transport_cassette;
mod transport_retry;
mod transport_wires;
mod wire_loopback;
