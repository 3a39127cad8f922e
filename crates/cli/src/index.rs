//! `jm index`, `jm search`, `jm symbols`, `jm refs`, `jm deps`, `jm impact`, `jm map` and `jm why`:
//! query the index, for people and scripts.

mod build;
mod context;
mod deps;
mod follow;
mod impact;
mod map;
mod open;
mod search;
mod symbols;
mod why;

pub(crate) use build::{IndexArgs, update_index};
pub(crate) use context::{ContextArgs, show_context};
pub(crate) use deps::{DepsArgs, show_dependencies};
pub(crate) use impact::{ImpactArgs, show_impact};
pub(crate) use map::{MapArgs, show_project_map};
pub(crate) use search::{SearchArgs, search};
pub(crate) use symbols::{RefsArgs, SymbolsArgs, show_references, show_symbols};
pub(crate) use why::{WhyArgs, explain_rank};
