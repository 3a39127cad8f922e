//! Numbers and names of the command line.

use std::str::FromStr;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Arg, Command};

/// Parses a whole number that is at least 1.
pub(crate) fn parse_count<T: FromStr + From<u8> + PartialOrd>(text: &str) -> Result<T, &'static str> {
    let number = text.parse().ok().filter(|number| *number >= T::from(1));
    number.ok_or("it takes a whole number, 1 or more")
}

/// Parses the number of a checkpoint.
pub(crate) fn parse_checkpoint(text: &str) -> Result<u64, &'static str> {
    text.parse().map_err(|_| "it takes the number of a checkpoint; `jm checkpoints` lists them")
}

/// Parses one of several names.
pub(crate) fn parse_named<T: Copy + Send + Sync>(
    named: &'static [(&'static str, T)],
) -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(named.iter().map(|(name, _)| *name)).try_map(|word: String| {
        named.iter().find(|(name, _)| *name == word).map(|(_, value)| *value).ok_or("it is no name")
    })
}

/// Lets the flags of a command take negative numbers, so that the flag says what it takes: `-1`
/// would otherwise count as an unknown flag.
pub(crate) fn allow_negative_numbers(command: Command) -> Command {
    let with_negative = |arg: Arg| {
        let takes_value = !arg.is_positional() && arg.get_action().takes_values();
        arg.allow_negative_numbers(takes_value)
    };
    command.mut_args(with_negative).mut_subcommands(allow_negative_numbers)
}
