//! What hooks promise, with scripts of the kind that people have.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

mod configuration;
mod faults;
mod several;
mod support;
mod wild;
