//! Questions before a removal.

use std::io::{self, IsTerminal as _};

use journeyman_host::{Context as _, HostError};
use journeyman_tui::line_prompts::confirm;

/// Asks before a removal. Returns false, after a message, if the person refuses; `verb` and `done`
/// name the removal in the messages.
pub(crate) fn confirm_removal(question: &str, verb: &str, done: &str) -> Result<bool, HostError> {
    if !io::stdin().is_terminal() {
        return Err(HostError::usage(format_args!("nobody can be asked here; --yes {verb} without asking")));
    }
    let confirmed = confirm(question).context("asking")?;
    if !confirmed {
        errln!("nothing was {done}");
    }
    Ok(confirmed)
}
