//! The data that programs pass on in a pipe, as far as it is known before they run.

use journeyman_syntax::shell::{RedirectKind, Statement};

use super::danger;
use super::part::CommandPart;

/// Returns true if a part downloads from the network.
pub(super) fn is_download(part: &CommandPart) -> bool {
    let Some(program) = part.words.first() else { return false };
    matches!(
        danger::base_name(&program.text),
        "curl" | "wget" | "nc" | "ncat" | "netcat" | "aria2c" | "http" | "xh" | "fetch" | "lynx"
    )
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
