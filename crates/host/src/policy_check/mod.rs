//! The rules of a project, and judging calls by them without making the calls.

mod cases;
mod descriptions;
mod overview;
mod promote;
mod query;

pub use cases::{FailedCase, check_cases};
pub use descriptions::{describe_answer, describe_overview};
pub use overview::PolicyOverview;
pub use promote::{HardRule, Promotion, RuleDemand, UnpromotedLine};
pub(crate) use query::list_check_commands;
pub use query::{CallDescription, PolicyAnswer, PolicyQuery, decision_name, judge_call};
