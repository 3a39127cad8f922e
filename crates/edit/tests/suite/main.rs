//! What the edit engine promises. One program, since each would have all grammars in it.
//!
//! `cargo test -p journeyman-edit --test suite [part of a name]`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

mod aligned_rewrites;
mod already_made;
mod blocks;
mod check;
mod decisions;
mod feedback;
mod formats;
mod hostile_replies;
mod known_faults;
mod labelled_texts;
mod lazy;
mod left_out;
mod patch_slips;
mod patches;
mod placing;
mod properties;
mod reader_slips;
mod render;
mod round_trip;
mod search_slips;
mod slips;
mod strategies;
mod strategy_properties;
mod symbols;
mod unread_edits;
mod unsafe_readings;
mod whole_replies;
mod windows;
mod wrong_placements;
