//! Texts for the model: prompts, the repository map, packing within the budget, feedback.
//!
//! [`pack_first_request`] puts together a session's first request: the system prompt in parts of
//! which the first is the same for every task (providers keep it), and the first message with the
//! task, the project's own instructions, a map of the repository and the files that the task names,
//! each within its share of the budget. [`describe_failed_checks`] words what failed checks say.
//! [`cut_to_budget()`] shortens a file for them. [`TokenEstimator`] tells what a text costs in any
//! model, and [`counting`] what a request costs in one.
//!
//! ```
//! use journeyman_context::{TokenEstimator, cut_to_budget};
//! use journeyman_protocol::{TokenCounter as _, Tokens};
//!
//! let file = "a line of a long file\n".repeat(10_000);
//! let cut = cut_to_budget(&file, Tokens(500), None);
//! assert!(cut.shortened && TokenEstimator.count(&cut.text) < Tokens(600));
//! ```
//!
//! Text of files, and output of commands, is set apart by tags that it can't contain, so that it
//! can't pass for ours. Packing is a function of its arguments and of the files it reads through
//! the workspace; it reads no clock, writes nothing, and starts nothing. What an index finds comes
//! in as [`gathering::GatheredContext`], of which [`packing`] selects what fits. [`compaction`]
//! shortens a conversation that becomes too long.

mod check_rounds;
pub mod compaction;
pub mod counting;
mod cut;
mod estimate;
mod feedback;
mod fence;
mod first_request;
pub mod gathering;
mod instructions;
mod known_failures;
mod line_commits;
pub mod memory;
mod mention;
mod outlines;
pub mod packing;
mod prompt;
mod repository_map;
mod uncommitted;
mod window_budget;
mod words;

pub use check_rounds::CheckedRound;
pub use cut::{CutText, MIN_CUT_TOKENS, cut_to_budget};
pub use estimate::TokenEstimator;
pub use feedback::{FEEDBACK_BUDGET, Feedback, describe_failed_checks};
pub use fence::fence_text;
pub use first_request::{
    ContextError, FirstRequestInputs, PackReport, PackedRequest, SystemText, WeighedItem, check_task_fits,
    pack_first_request, pack_follow_up, system_prompt,
};
pub use instructions::{
    nested_instructions, nested_instructions_file, nested_instructions_text, untold_instructions_text,
};
pub use known_failures::lookup_text;
pub use line_commits::{LineCommit, candidates_at_named_lines, likeliest_passage, line_commits_text};
pub use outlines::{FileOutline, Signature, outline_map};
pub use prompt::{PromptError, PromptTexts, ReadOnlyGoal};
pub use uncommitted::{ChangeKind, UncommittedFile};
pub use window_budget::WindowBudget;
