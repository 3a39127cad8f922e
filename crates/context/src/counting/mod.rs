//! Counting of tokens: texts, images, tools and whole requests, and the correction by what a
//! provider reports.
//!
//! A [`Counter`] counts with the model's own vocabulary if it is public, and estimates otherwise.
//! [`RequestCounter`] predicts the input of a session's next request: after each reply the provider
//! tells what the last one really had, so that only what has been added since is uncertain.

mod cache;
mod calibration;
mod counter;
mod image_size;
mod images;
mod request;
mod vocabulary;

pub use calibration::{Calibration, LearntRatio};
pub use counter::Counter;
pub use image_size::image_size;
pub use images::image_tokens;
pub use request::{RequestCounter, RequestParts, RequestTokens};
