//! The user's own pager, for texts that are longer than the terminal.

use std::io::{self, Write as _};
use std::process::{Command, Stdio};

use journeyman_host::format::printable;
use journeyman_terminal::{diff, stdout_paint};

use crate::stop_signals::StopSignals;

/// Shows a diff in `$JM_PAGER`, `$PAGER` or `less`, which a person ends. Has to be called in a
/// runtime.
///
/// # Errors
/// The pager is turned off, isn't there or can't be started.
pub fn show_in_pager(text: &str) -> io::Result<()> {
    let variable = |name| std::env::var_os(name);
    let pager = variable("JM_PAGER").or_else(|| variable("PAGER")).unwrap_or_else(|| "less".into());
    // As with git, an empty variable disables the pager.
    if pager.is_empty() {
        return Err(io::ErrorKind::NotFound.into());
    }
    // Ends by itself at a text of one page, passes colours on, and leaves the text on the screen.
    let options = variable("LESS").unwrap_or_else(|| "FRX".into());
    let mut shell = Command::new("/bin/sh");
    shell.arg("-c").arg(pager).env("LESS", options).stdin(Stdio::piped());
    // Ctrl-C is left to the pager, which only stops a search.
    let _interrupts = StopSignals::listen().ok();
    let mut shell = shell.spawn()?;
    let text = printable(text);
    if let Some(mut input) = shell.stdin.take() {
        let paint = stdout_paint();
        // A reader that goes before the end has seen enough.
        text.lines()
            .try_for_each(|line| writeln!(input, "{}", paint.paint_line(&diff::style_line(line))))
            .ok();
    }
    match shell.wait()?.code() {
        // The shell found no such program.
        Some(126 | 127) => Err(io::ErrorKind::NotFound.into()),
        _ => Ok(()),
    }
}
