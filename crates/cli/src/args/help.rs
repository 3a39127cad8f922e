//! Lays out help texts.

use journeyman_terminal::wrap::wrap_line;
use journeyman_terminal::{Size, StyledLine};

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

/// Wraps each line of a help text. The further lines of an entry of a list begin below its text,
/// and those of another indented line a little to the right.
pub(super) fn wrap_help(text: &str, columns: usize) -> String {
    let wrap = |line: &str| {
        let lines = wrap_line(&StyledLine::default().with_text(line), columns, hanging_indent(line, columns));
        lines.iter().map(StyledLine::to_text).collect::<Vec<_>>().join("\n")
    };
    text.lines().map(wrap).collect::<Vec<_>>().join("\n")
}

/// Wraps the texts below the options of a command and of its own commands.
pub(super) fn wrap_after_help(command: clap::Command, columns: usize) -> clap::Command {
    let after = command.get_after_help().map(|text| wrap_help(&text.to_string(), columns));
    let command = command.mut_subcommands(|inner| wrap_after_help(inner, columns));
    match after {
        Some(after) => command.after_help(after),
        None => command,
    }
}

fn hanging_indent(line: &str, columns: usize) -> usize {
    let text = line.trim_start();
    let leading = line.len() - text.len();
    if leading == 0 {
        return 0;
    }
    let term = text.find("  ").map(|end| text.len() - text[end..].trim_start().len());
    let column = term.map(|term| leading + text.get(..term).map_or(term, |term| term.chars().count()));
    column.filter(|column| *column <= columns / 2).unwrap_or(leading + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_wrapped_below_their_text() {
        let text = "Exit codes:\n    0  verified: at least one check ran, all passed\n  130  interrupted";
        assert_eq!(
            wrap_help(text, 34),
            "Exit codes:\n    0  verified: at least one\n       check ran, all passed\n  130  interrupted"
        );
        let long = "  jm run --check 'make test' --model openai/gpt-5  a term of more than half the width";
        assert_eq!(
            wrap_help(long, 40),
            "  jm run --check 'make test' --model\n    openai/gpt-5  a term of more than\n    half the width"
        );
        assert_eq!(wrap_help("no indentation\n\nis kept", 10), "no\nindentatio\nn\n\nis kept");
    }
}
