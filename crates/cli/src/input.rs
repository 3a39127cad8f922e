//! Texts that the user gives as arguments or on standard input.

use journeyman_host::HostError;
use journeyman_host::input::read_text;

/// Maximum size of a task or a message, in bytes: more than the window of any model.
pub(crate) const MAX_TASK_BYTES: u64 = 4 * 1024 * 1024;

/// Returns the argument itself, or standard input for `-`.
pub(crate) fn read_argument(what: &str, argument: &str) -> Result<String, HostError> {
    match argument {
        "-" => read_text(what, std::io::stdin(), "standard input", MAX_TASK_BYTES),
        text => Ok(text.to_owned()),
    }
}
