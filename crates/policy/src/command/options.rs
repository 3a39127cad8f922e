//! Takes the arguments of a program apart into options and operands.

use journeyman_syntax::shell::Word;

use super::writer_table::{OUTPUT_OPTIONS, VALUE_OPTIONS};

/// Placeholder for the unknown rest of a word, after its known beginning: no option, no number, no
/// script.
pub(super) const UNKNOWN_REST: &str = "\u{2026}";

/// Placeholder for an unknown word, which may be an option. Accepted only in the place of a value.
pub(super) const UNKNOWN_WORD: &str = "-\u{2026}";

/// Returns the name of a program, which is the same under every path, and as a package in every
/// version: `prettier@3`.
pub(super) fn program_name(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.split('@').next().filter(|name| !name.is_empty()).unwrap_or(name)
}

/// Returns the words that are no options and no values of options, as far as can be told without
/// knowing all options; after `--`, all of them. `valued` are the short options whose value may be
/// the next word.
pub(super) fn likely_operands<'a>(arguments: &'a [Word], valued: &str) -> Vec<&'a Word> {
    let mut found = Vec::new();
    let mut rest = arguments.iter();
    while let Some(word) = rest.next() {
        let text = word.text.as_str();
        if text == "--" {
            found.extend(rest);
            break;
        }
        let takes_next = match text.strip_prefix('-') {
            None | Some("") => {
                found.push(word);
                false
            }
            Some(long) if long.starts_with('-') => {
                !text.contains('=')
                    && (VALUE_OPTIONS.iter().any(|option| text.starts_with(option))
                        || OUTPUT_OPTIONS.contains(&text))
            }
            Some(cluster) => cluster.find(|letter| valued.contains(letter)) == Some(cluster.len() - 1),
        };
        if takes_next {
            rest.next();
        }
    }
    found
}

/// Returns the operands if every option is among those given. Options may follow operands, as in
/// GNU programs.
pub(super) fn operands_if_known<'a>(
    arguments: &[&'a str],
    flags: &str,
    valued: &str,
    long: &[&[&str]],
) -> Option<Vec<&'a str>> {
    parse_operands(arguments, flags, valued, long, false)
}

/// Returns the operands as [`operands_if_known`] does. With `certain`, every version of the program
/// takes a value for these options, so that the value may be unknown.
pub(super) fn parse_operands<'a>(
    arguments: &[&'a str],
    flags: &str,
    valued: &str,
    long: &[&[&str]],
    certain: bool,
) -> Option<Vec<&'a str>> {
    let mut operands = Vec::new();
    let mut rest = arguments.iter().copied();
    while let Some(word) = rest.next() {
        let wants_value = if word == "--" {
            operands.extend(rest);
            break;
        } else if let Some(option) = word.strip_prefix("--") {
            long_option_takes_value(option, long)?
        } else if let Some(cluster) = word.strip_prefix('-').filter(|cluster| !cluster.is_empty()) {
            short_options_take_value(cluster, flags, valued)?
        } else {
            operands.push(word);
            false
        };
        // A value that looks like an option would be one for a version of the program that takes no
        // value here.
        let accepted = |value: &str| !value.starts_with('-') || certain && value == UNKNOWN_WORD;
        if wants_value && !rest.next().is_some_and(accepted) {
            return None;
        }
    }
    Some(operands)
}

/// Returns true if the next word is the option's value; `None` for an unknown option.
fn long_option_takes_value(option: &str, long: &[&[&str]]) -> Option<bool> {
    let (name, value) = match option.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (option, None),
    };
    long.iter().copied().flatten().find_map(|known| {
        match (known.strip_suffix('='), known.strip_suffix('?')) {
            (Some(known), _) => (known == name).then_some(value.is_none()),
            (_, Some(known)) => (known == name).then_some(false),
            (None, None) => (*known == name && value.is_none()).then_some(false),
        }
    })
}

fn short_options_take_value(cluster: &str, flags: &str, valued: &str) -> Option<bool> {
    let mut rest = cluster.chars();
    while let Some(option) = rest.next() {
        if valued.contains(option) {
            return Some(rest.as_str().is_empty());
        }
        if !flags.contains(option) {
            return None;
        }
    }
    Some(false)
}

/// Returns true if a short option is in a cluster, or the long option is present, possibly
/// abbreviated.
pub(super) fn has_option(arguments: &[&str], short: char, long: &str) -> bool {
    arguments.iter().any(|argument| match argument.strip_prefix("--") {
        // At least two letters: `--r` could mean several options.
        Some(_) => argument.len() >= 4 && long.starts_with(argument.split('=').next().unwrap_or(argument)),
        None => has_short_option(&[argument], short),
    })
}

/// Returns true if a short option is in a cluster.
pub(super) fn has_short_option(arguments: &[&str], short: char) -> bool {
    arguments.iter().any(|argument| {
        !argument.starts_with("--")
            && argument.strip_prefix('-').is_some_and(|cluster| cluster.contains(short))
    })
}
