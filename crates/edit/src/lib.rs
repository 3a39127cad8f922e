//! Edit formats to located hunks to new text, or the reason why not.
//!
//! A model says what to change by quoting the text as it remembers it. [`replace`] finds the one
//! place that is meant, strictest reading first ([`Strategy`]), and gives the new text, or a
//! [`Refusal`] whose words tell the model what to send instead. A match that isn't byte for byte
//! always says what differed, and bytes outside the matched span are never touched: line endings,
//! indentation and the final line break stay the file's own.
//!
//! [`parse_blocks`] reads the `<edit>` and `<call>` blocks that a model without tool calling writes
//! into its prose; [`to_ops`] gathers them by file and [`apply_ops`] applies them to one file's
//! text.
//!
//! ```
//! use journeyman_edit::{Strategy, replace};
//!
//! let file = "fn main() {\r\n    run(1);\r\n}\r\n";
//! let (old, new) = ("fn main() {\n    run(1);\n", "fn main() {\n    run(2);\n");
//! let done = replace(file, old, new, false).unwrap();
//! assert_eq!(done.text, "fn main() {\r\n    run(2);\r\n}\r\n");
//! assert_eq!(done.strategy, Strategy::LineEndings);
//!
//! let refusal = replace("a\nb\na\n", "a\n", "c\n", false).unwrap_err();
//! assert!(refusal.to_string().contains("lines 1 and 3"));
//! ```
//!
//! [`plan`] does it for a whole reply in any [`Format`] and all the files that it names
//! ([`Files`]), all of it or nothing; [`read_reply`] only takes a reply apart.
//!
//! Everything here is a pure function of its arguments, takes time about linear in them, and never
//! panics. It reads no file and resolves no path: that is the caller's, through the workspace.

mod apply;
mod change;
mod edit;
mod feedback;
mod files;
mod formats;
mod lazy_edits;
mod lines;
mod lost_lines;
mod outcome;
mod patch;
mod placeholder;
mod placement;
mod plan;
mod symbol;
mod syntax_check;

pub use apply::{ApplyOptions, plan, plan_edits};
pub use change::{AppliedOp, FileOps, OpError, OpsOutcome, apply_ops, to_ops};
pub use edit::{Edit, EditOp, LineKind, OpContext, PatchHunk, PatchLine, Replace, SymbolAction, SymbolEdit};
pub use files::{FileProblem, Files};
pub use formats::block::{BlockProblem, ProblemKind, TextCall};
pub use formats::blocks::{Blocks, Item, parse_blocks};
pub use formats::{
    Format, NamedCall, ParsedReply, ReplySource, blank_thinking, detect, detect_in, read_named_calls,
    read_reply, strip_fence,
};
pub use outcome::{
    AppliedEdit, FailedAttempt, MAX_FEEDBACK_BYTES, MAX_FILE_BYTES, MAX_SEARCH_BYTES, MatchOccurrence,
    NearestRegion, PlacedEdit, Refusal, Strategy,
};
pub use placement::{AllowedDifferences, Hunk, apply_hunk, find_place, replace};
pub use plan::{ChangeKind, EditFailure, EditPlan, FileChange, UnchangedFile};
pub use syntax_check::SyntaxFault;
