//! The rules of a project, and judging calls by them without making the calls.

mod cases;
mod overview;
mod promote;
mod query;

pub use cases::{FailedCase, check_cases};
pub use overview::{FIXED_RULES, MODE_EFFECTS, PolicyOverview};
pub use promote::{HardRule, Promotion, RuleDemand, UnpromotedLine};
pub(crate) use query::list_check_commands;
pub use query::{CallDescription, PolicyAnswer, PolicyQuery, decision_name, judge_call};
