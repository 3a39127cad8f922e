//! `jm man`.

use journeyman_host::{Context as _, HostError};

use crate::args::command_with_grouped_help;
use crate::output;

/// Prints the manual page of `jm`, or of one of its commands, in roff.
pub(crate) fn print_man_page(name: Option<&str>) -> Result<u8, HostError> {
    let mut command = command_with_grouped_help();
    command.build();
    let page = match name {
        None => command,
        Some(name) => {
            let found = command.find_subcommand(name).cloned();
            found.ok_or_else(|| HostError::usage(format_args!("jm has no command `{name}`")))?
        }
    };
    let mut roff = Vec::new();
    clap_mangen::Man::new(page).render(&mut roff).context("the manual page")?;
    output::write_stdout_bytes(&roff);
    Ok(0)
}
