//! Errors as they are printed, and their exit codes.

use std::io::Write as _;

use journeyman_host::HostError;
use journeyman_policy::secrets::Redactor;

use crate::color;
use crate::text::printable;

/// Returns the exit code of a command that ended without a result of its own.
pub(crate) fn exit_code(error: &HostError) -> u8 {
    match error {
        HostError::Usage(_) => 2,
        HostError::NeedsPerson(_) => 6,
        HostError::Failed { .. } => 1,
    }
}

/// Prints an error to standard error.
pub(crate) fn print_error(error: &HostError) {
    let text = shown_error(error);
    // A closed stream hides nothing: the exit code says as much to a caller that doesn't read.
    writeln!(std::io::stderr(), "{}: {text}", color::stderr().red("error")).ok();
}

/// Returns an error's text without control sequences and secrets: it may quote files and
/// configuration of the project.
pub(crate) fn shown_error(error: &HostError) -> String {
    let text = printable(&error);
    Redactor::default().redact(&text).into_owned()
}
