//! Texts for the model: prompts, the repository map, packing within the budget, feedback.
//!
//! [`first`] puts together a session's first request: the system prompt in parts of which the first
//! is the same for every task (providers keep it), and the first message with the task, the
//! project's own instructions, a map of the repository and the files that the task names, each
//! within its share of the budget. [`feedback`] words what failed checks say. [`repository_map`]
//! and [`cut()`] are what they are made of. [`Estimate`] tells what a text costs in any model, and
//! [`counting`] what a request costs in one.
//!
//! ```
//! use journeyman_context::{Estimate, repository_map};
//! use journeyman_protocol::{RelPath, TokenCounter as _, Tokens};
//! use journeyman_workspace::Listing;
//!
//! let paths = ["Cargo.toml", "src/lib.rs", "src/parser.rs"];
//! let paths = paths.iter().map(|path| RelPath::parse(path).unwrap()).collect();
//! let map = repository_map(&Listing { paths, truncated: false }, Tokens(500));
//! assert_eq!(map, "./ Cargo.toml\nsrc/ lib.rs parser.rs\n");
//! assert!(Estimate.count(&map) < Tokens(20));
//! ```
//!
//! Text of files, and output of commands, is set apart by tags that it can't contain, so that it
//! can't pass for ours. Packing is a function of its arguments and of the files it reads through
//! the workspace; it reads no clock, writes nothing, and starts nothing. What an index finds comes
//! in as [`gathering::Gathered`], of which [`packing`] selects what fits. [`compaction`] shortens a
//! conversation that becomes too long.

pub mod compaction;
pub mod counting;
mod cut;
mod estimate;
mod feedback;
mod fence;
mod first;
pub mod gathering;
mod instructions;
mod map;
pub mod memory;
mod mention;
mod outlines;
pub mod packing;
mod prompt;
mod window;
mod words;

pub use cut::{Cut, LEAST, cut};
pub use estimate::Estimate;
pub use feedback::{FEEDBACK_BUDGET, Feedback, feedback};
pub use fence::fenced;
pub use first::{
    ContextError, Inputs, PackReport, Packed, PackedItem, SystemText, check_task_fits, first, follow_up,
    system_prompt,
};
pub use instructions::nested_instructions;
pub use map::{DEFAULT_BUDGET, repository_map};
pub use outlines::{Outlined, Signature, outline_map};
pub use window::WindowBudget;
