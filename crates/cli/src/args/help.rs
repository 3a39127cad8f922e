//! Lays out help texts.

use journeyman_terminal::Size;
use journeyman_terminal::wrap::wrap_entries;

/// Maximum columns of help on a wider terminal, and without one.
pub(super) const MAX_COLUMNS: usize = 100;

/// Returns the columns that help is laid out for.
pub(super) fn help_columns() -> usize {
    let out = std::io::stdout();
    match std::io::IsTerminal::is_terminal(&out) {
        true => Size::of_terminal(out).columns.min(MAX_COLUMNS),
        false => MAX_COLUMNS,
    }
}

/// Wraps the texts below the options of a command and of its own commands.
pub(super) fn wrap_after_help(command: clap::Command, columns: usize) -> clap::Command {
    let after = command.get_after_help().map(|text| wrap_entries(&text.to_string(), columns));
    let command = command.mut_subcommands(|inner| wrap_after_help(inner, columns));
    match after {
        Some(after) => command.after_help(after),
        None => command,
    }
}
