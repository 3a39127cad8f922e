//! Runs one command in the sandbox, for `jm exec`.

mod project;
mod report;
mod request;

pub use project::{CommandAccess, CommandEffect};
pub use report::{
    CommandReport, EXIT_DID_NOT_RUN, EXIT_INTERRUPTED, EXIT_OUTPUT_CLOSED, describe_connection,
    setup_failure_to_json,
};
pub use request::{CommandOptions, CommandRequest, OpenCommand};
