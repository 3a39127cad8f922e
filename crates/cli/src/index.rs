//! `jm index`, `jm search`, `jm symbols`, `jm refs`, `jm deps`, `jm impact`, `jm map` and `jm why`:
//! query the index, for people and scripts.

mod build;
mod context;
mod deps;
mod follow;
mod impact;
mod map;
mod names;
mod open;
mod progress;
mod search;
mod why;

pub(crate) use build::{IndexArgs, index};
pub(crate) use context::{ContextArgs, context};
pub(crate) use deps::{DepsArgs, deps};
pub(crate) use impact::{ImpactArgs, impact};
pub(crate) use map::{MapArgs, map};
pub(crate) use names::{RefsArgs, SymbolsArgs, refs, symbols};
pub(crate) use search::{SearchArgs, search};
pub(crate) use why::{WhyArgs, why};
