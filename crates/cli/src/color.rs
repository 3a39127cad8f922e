//! Colour, where it is wanted: on a terminal, unless `NO_COLOR` says no.

use std::io::IsTerminal as _;

use journeyman_host::styled_text::{Style, StyledLine};

/// Paints text for one stream, or leaves it as it is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Paint {
    is_enabled: bool,
}

/// For standard error.
pub(crate) fn stderr() -> Paint {
    Paint { is_enabled: std::io::stderr().is_terminal() && is_color_wanted() }
}

/// For standard output.
pub(crate) fn stdout() -> Paint {
    Paint { is_enabled: std::io::stdout().is_terminal() && is_color_wanted() }
}

/// <https://no-color.org>: any value that isn't empty says no. A dumb terminal can't.
fn is_color_wanted() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
        && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

impl Paint {
    fn wrap_in_sgr(self, code: &str, text: &str) -> String {
        if self.is_enabled { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    /// Paints the parts of a line by their meanings.
    pub(crate) fn paint_line(self, line: &StyledLine) -> String {
        line.spans.iter().map(|(style, text)| self.paint_span(*style, text)).collect()
    }

    fn paint_span(self, style: Style, text: &str) -> String {
        match style {
            Style::Plain => text.to_owned(),
            Style::Strong => self.bold(text),
            Style::Good => self.green(text),
            Style::Bad => self.red(text),
            Style::Warning => self.yellow(text),
            Style::Accent => self.cyan(text),
            Style::Dim => self.dim(text),
        }
    }

    pub(crate) fn red(self, text: &str) -> String {
        self.wrap_in_sgr("31", text)
    }

    pub(crate) fn green(self, text: &str) -> String {
        self.wrap_in_sgr("32", text)
    }

    pub(crate) fn yellow(self, text: &str) -> String {
        self.wrap_in_sgr("33", text)
    }

    pub(crate) fn cyan(self, text: &str) -> String {
        self.wrap_in_sgr("36", text)
    }

    pub(crate) fn bold(self, text: &str) -> String {
        self.wrap_in_sgr("1", text)
    }

    pub(crate) fn dim(self, text: &str) -> String {
        self.wrap_in_sgr("2", text)
    }
}
