//! A project's own checks without a session: found, run in the sandbox, and rerun when files
//! change. Needs no model and no API key.

mod answers;
mod project;
mod selection;
mod setup;
mod text;

pub use answers::{CheckAnswer, CheckVerdict, ChecksAnswer, ListedCheck};
pub use project::{CheckObserver, CheckedProject, RoundResult};
pub use selection::{CheckSelection, SelectedChecks};
pub use setup::{ListedLack, ListedStep, SetupAnswer};
pub use text::{describe_check, describe_result, describe_round, describe_setup};
