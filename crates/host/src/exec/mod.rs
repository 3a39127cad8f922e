//! One command in the sandbox, run by hand.

mod project;
mod report;
mod request;

pub use project::{CommandAccess, CommandEffect};
pub use report::{CommandReport, DID_NOT_RUN, INTERRUPTED, UNREAD, describe_connection};
pub use request::{CommandOptions, CommandRequest, OpenCommand};
