//! What a hostile or unlucky machine does: full disks, vanished roots, damaged state, odd names, races, clocks, sizes.
//! Nothing panics or hangs, every failure is told by its kind, and nobody's file is lost.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

mod again;
mod clocks;
mod damage;
mod disks;
mod names;
mod others;
mod roots;
mod sizes;
mod special;
#[path = "../support/mod.rs"]
mod support;
mod swaps;
