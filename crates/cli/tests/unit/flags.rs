//! The definition of the command line.

use clap::CommandFactory as _;

use crate::args::{COMMAND_GROUPS, Cli, command_with_grouped_help};

#[test]
fn the_command_line_is_consistent() {
    command_with_grouped_help().debug_assert();
}

#[test]
fn each_command_is_in_one_group() {
    let mut grouped: Vec<&str> = COMMAND_GROUPS.iter().flat_map(|(_, names)| *names).copied().collect();
    grouped.sort_unstable();
    let mut all: Vec<String> =
        Cli::command().get_subcommands().map(|command| command.get_name().to_owned()).collect();
    all.push("help".to_owned());
    all.sort();
    assert_eq!(grouped, all);
}
