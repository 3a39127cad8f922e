//! Colours for the meanings of text, as far as the terminal has them.

use journeyman_terminal::Style;

/// The colours that a terminal shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ColorDepth {
    /// None are wanted; weight and inversion remain.
    None,
    /// The terminal's own palette, which its owner has made readable.
    Palette,
}

/// The look of the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Theme {
    depth: ColorDepth,
}

/// The end of every attribute.
const RESET: &str = "\x1b[0m";

impl Theme {
    /// Makes the theme of a terminal with such colours.
    #[must_use]
    pub(crate) fn new(depth: ColorDepth) -> Self {
        Self { depth }
    }

    /// Returns the theme for an environment. <https://no-color.org>: any value of `NO_COLOR` that
    /// isn't empty says no.
    #[must_use]
    pub(crate) fn from_variables(no_color: Option<&str>) -> Self {
        let is_wanted = no_color.is_none_or(str::is_empty);
        Self::new(if is_wanted { ColorDepth::Palette } else { ColorDepth::None })
    }

    /// Returns true if styles are shown by colours, so that Markdown's own marks can go.
    #[must_use]
    pub(crate) fn has_colors(self) -> bool {
        self.depth == ColorDepth::Palette
    }

    /// Appends a text in its style.
    pub(crate) fn paint(self, style: Style, text: &str, out: &mut String) {
        let Some(code) = self.code(style).filter(|_| !text.is_empty()) else {
            out.push_str(text);
            return;
        };
        out.push_str("\x1b[");
        out.push_str(code);
        out.push('m');
        out.push_str(text);
        out.push_str(RESET);
    }

    fn code(self, style: Style) -> Option<&'static str> {
        match (style, self.depth) {
            (Style::Plain, _) => None,
            (Style::Strong, _) => Some("1"),
            (Style::Emphasis, _) => Some("3"),
            (Style::Dim, _) => Some("2"),
            (Style::Selected, _) => Some("7"),
            (Style::Bad | Style::Warning, ColorDepth::None) => Some("1"),
            (_, ColorDepth::None) => None,
            (Style::Good, ColorDepth::Palette) => Some("32"),
            (Style::Bad, ColorDepth::Palette) => Some("31"),
            (Style::Warning, ColorDepth::Palette) => Some("33"),
            (Style::Accent | Style::Code, ColorDepth::Palette) => Some("36"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn styles_are_shown_as_far_as_the_terminal_can() {
        let shown = |no_color: Option<&str>, style| {
            let mut out = String::new();
            Theme::from_variables(no_color).paint(style, "x", &mut out);
            out
        };
        assert_eq!(shown(None, Style::Good), "\x1b[32mx\x1b[0m");
        assert_eq!(shown(Some(""), Style::Good), "\x1b[32mx\x1b[0m");
        assert_eq!(shown(Some("1"), Style::Good), "x");
        assert_eq!(shown(Some("1"), Style::Selected), "\x1b[7mx\x1b[0m", "a choice has to be seen");
        assert_eq!(shown(None, Style::Plain), "x");
    }
}
