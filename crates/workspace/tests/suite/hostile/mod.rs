//! What a hostile or unlucky machine does: full disks, vanished roots, damaged state, odd names,
//! races, clocks, sizes. Nothing panics or hangs, every failure is told by its kind, and nobody's
//! file is lost.

mod again;
mod clocks;
mod damage;
mod disks;
mod names;
mod others;
mod roots;
mod sizes;
mod special;
mod swaps;
