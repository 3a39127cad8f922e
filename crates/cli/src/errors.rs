//! Errors as they are printed.

use std::io::Write as _;

use journeyman_host::HostError;
use journeyman_host::format::printable;
use journeyman_policy::secrets::Redactor;

use crate::color;

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
