//! The data that programs pass on in a pipe, as far as it is known before they run.

use journeyman_syntax::shell::{RedirectKind, Statement};

use super::danger;
use super::part::{CommandPart, CommandWord};

/// Maximum number of words that are taken from an input.
const MAX_ARGUMENT_WORDS: usize = 256;

/// Returns true if a part downloads from the network.
pub(super) fn is_download(part: &CommandPart) -> bool {
    let Some(program) = part.words.first() else { return false };
    matches!(
        danger::base_name(&program.text),
        "curl" | "wget" | "nc" | "ncat" | "netcat" | "aria2c" | "http" | "xh" | "fetch" | "lynx"
    )
}

/// Returns the words of a known input that become arguments of the program that another runs.
pub(super) fn argument_words(name: &str, input: Option<&str>) -> impl Iterator<Item = CommandWord> {
    let input = input.filter(|_| matches!(name, "xargs" | "parallel")).unwrap_or_default();
    let words = input.split([' ', '\t', '\n', '\0', '\'', '"']).filter(|word| !word.is_empty());
    words.take(MAX_ARGUMENT_WORDS).map(|word| CommandWord { text: word.to_owned(), known: true })
}

/// Returns the output of a statement that only prints known text.
pub(super) fn known_output(statement: &Statement) -> Option<&str> {
    let Statement::Simple(simple) = statement else { return None };
    let [program, rest @ ..] = simple.words.as_slice() else { return None };
    let text = match (program.text.as_str(), rest) {
        ("echo" | "printf", [only]) => only,
        ("echo", [option, only]) if matches!(option.text.as_str(), "-n" | "-e" | "-E") => only,
        ("printf", [format, only]) if matches!(format.text.as_str(), "%s" | "%s\\n" | "%b") => only,
        ("cat", []) => {
            let document =
                simple.redirects.iter().find(|redirect| redirect.kind == RedirectKind::Document)?;
            &document.target
        }
        _ => return None,
    };
    text.known.then_some(text.text.as_str())
}
