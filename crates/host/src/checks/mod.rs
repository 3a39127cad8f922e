//! A project's own checks without a session: found, run in the sandbox, and rerun when files
//! change. Needs no model and no API key.

mod answers;
mod descriptions;
mod project;
mod rounds;
mod selection;
mod setup;

pub use answers::{CheckAnswer, CheckVerdict, ChecksAnswer, ListedCheck};
pub use descriptions::{describe_check, describe_result, describe_round, describe_setup};
pub(crate) use project::MAX_SEARCHED_FILES;
pub use project::{CheckObserver, ProjectCheckRunner, RoundResult};
pub use rounds::{CheckRound, RoundView};
pub use selection::{CheckSelection, SelectedChecks};
pub use setup::{ListedLack, ListedStep, SetupAnswer};
