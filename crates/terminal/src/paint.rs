//! Colours for meanings.

use crate::{Style, StyledLine};

/// Paints text for one stream, or leaves it as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Paint {
    is_enabled: bool,
}

impl Paint {
    /// Paints with colours.
    pub const COLORED: Self = Self { is_enabled: true };
    /// Leaves every text as it is.
    pub const PLAIN: Self = Self { is_enabled: false };

    /// Returns true if texts get colours.
    #[must_use]
    pub fn is_enabled(self) -> bool {
        self.is_enabled
    }

    fn wrap_in_sgr(self, code: &str, text: &str) -> String {
        if self.is_enabled && !text.is_empty() {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }

    /// Paints the parts of a line by their meanings.
    #[must_use]
    pub fn paint_line(self, line: &StyledLine) -> String {
        line.spans.iter().map(|(style, text)| self.paint_span(*style, text)).collect()
    }

    fn paint_span(self, style: Style, text: &str) -> String {
        match style {
            Style::Plain => text.to_owned(),
            Style::Strong => self.bold(text),
            Style::Emphasis => self.wrap_in_sgr("3", text),
            Style::Good => self.green(text),
            Style::Bad => self.red(text),
            Style::Warning => self.yellow(text),
            Style::Accent | Style::Code => self.cyan(text),
            Style::Dim => self.dim(text),
            Style::Selected => self.wrap_in_sgr("7", text),
            Style::Token(_) => text.to_owned(),
            Style::Added(_) => self.green(text),
            Style::Removed(_) => self.red(text),
            Style::AddedWord(_) => self.wrap_in_sgr("1;32", text),
            Style::RemovedWord(_) => self.wrap_in_sgr("1;31", text),
        }
    }

    /// Paints a failure.
    #[must_use]
    pub fn red(self, text: &str) -> String {
        self.wrap_in_sgr("31", text)
    }

    /// Paints a success.
    #[must_use]
    pub fn green(self, text: &str) -> String {
        self.wrap_in_sgr("32", text)
    }

    /// Paints a warning.
    #[must_use]
    pub fn yellow(self, text: &str) -> String {
        self.wrap_in_sgr("33", text)
    }

    /// Paints the beginning of an action, or code.
    #[must_use]
    pub fn cyan(self, text: &str) -> String {
        self.wrap_in_sgr("36", text)
    }

    /// Paints a heading, or the result.
    #[must_use]
    pub fn bold(self, text: &str) -> String {
        self.wrap_in_sgr("1", text)
    }

    /// Paints a detail.
    #[must_use]
    pub fn dim(self, text: &str) -> String {
        self.wrap_in_sgr("2", text)
    }
}
