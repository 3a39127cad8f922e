//! What hooks promise, with scripts of the kind that people have.

mod configuration;
mod faults;
mod several;
mod support;
mod wild;
