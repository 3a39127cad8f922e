//! Colours for the meanings of text, as far as the terminal has them.

use journeyman_terminal::{Style, Token};

/// The colours that a terminal shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ColorDepth {
    /// None are wanted; weight and inversion remain.
    None,
    /// The terminal's own palette, which its owner has made readable.
    Palette,
    /// 256 colours.
    Indexed,
    /// Any colour.
    True,
}

/// The brightness of what text stands on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BackgroundBrightness {
    /// The terminal hasn't said it: only the palette is sure to be readable.
    Unknown,
    /// Light text on a dark ground.
    Dark,
    /// Dark text on a light ground.
    Light,
}

/// The colours that the person wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum ThemeChoice {
    /// Colours for the terminal's background, which is queried.
    #[default]
    Auto,
    /// Colours for a given background.
    On(BackgroundBrightness),
    /// None.
    None,
}

impl ThemeChoice {
    /// The names of the choices.
    pub(crate) const NAMES: [&str; 4] = ["auto", "dark", "light", "none"];

    /// Parses a name.
    #[must_use]
    pub(crate) fn parse(name: &str) -> Option<Self> {
        match name {
            "auto" => Some(Self::Auto),
            "dark" => Some(Self::On(BackgroundBrightness::Dark)),
            "light" => Some(Self::On(BackgroundBrightness::Light)),
            "none" => Some(Self::None),
            _ => None,
        }
    }
}

/// The look of the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Theme {
    depth: ColorDepth,
    ground: BackgroundBrightness,
}

/// The end of every attribute.
const RESET: &str = "\x1b[0m";
/// Terminals that show any colour and don't say so in `COLORTERM` where that isn't passed on.
const TRUE_COLOR_TERMINALS: [&str; 6] = ["-direct", "kitty", "ghostty", "wezterm", "alacritty", "foot"];

impl Theme {
    /// Makes the theme of a terminal with such colours.
    #[must_use]
    pub(crate) fn new(depth: ColorDepth, ground: BackgroundBrightness) -> Self {
        Self { depth, ground }
    }

    /// Returns the theme for an environment. <https://no-color.org>: any value of `NO_COLOR` that
    /// isn't empty says no.
    #[must_use]
    pub(crate) fn from_variables<'a>(variable: impl Fn(&str) -> Option<&'a str>) -> Self {
        let term = variable("TERM").unwrap_or_default();
        let depth = if variable("NO_COLOR").is_some_and(|value| !value.is_empty()) {
            ColorDepth::None
        } else if matches!(variable("COLORTERM"), Some("truecolor" | "24bit"))
            || TRUE_COLOR_TERMINALS.iter().any(|name| term.contains(name))
        {
            ColorDepth::True
        } else if term.contains("256color") {
            ColorDepth::Indexed
        } else {
            ColorDepth::Palette
        };
        // Some terminals name the colours of their palette that they use for text and ground.
        let ground = variable("COLORFGBG").and_then(|colors| colors.rsplit(';').next()?.parse::<u8>().ok());
        Self::new(
            depth,
            match ground {
                Some(0..=6 | 8) => BackgroundBrightness::Dark,
                Some(7 | 9..=15) => BackgroundBrightness::Light,
                _ => BackgroundBrightness::Unknown,
            },
        )
    }

    /// Returns the theme as the person wants it.
    #[must_use]
    pub(crate) fn with_choice(self, choice: ThemeChoice) -> Self {
        match choice {
            ThemeChoice::Auto => self,
            ThemeChoice::On(ground) => self.with_background(ground),
            ThemeChoice::None => Self { depth: ColorDepth::None, ..self },
        }
    }

    /// Returns the theme on another ground.
    #[must_use]
    pub(crate) fn with_background(self, ground: BackgroundBrightness) -> Self {
        Self { ground, ..self }
    }

    /// Returns true if the terminal has to be asked for its ground.
    #[must_use]
    pub(crate) fn needs_background_query(self) -> bool {
        self.depth >= ColorDepth::Indexed && self.ground == BackgroundBrightness::Unknown
    }

    /// Returns true if styles are shown by colours, so that Markdown's own marks can go.
    #[must_use]
    pub(crate) fn has_colors(self) -> bool {
        self.depth != ColorDepth::None
    }

    /// Appends a text in its style.
    pub(crate) fn paint(self, style: Style, text: &str, out: &mut String) {
        let (letters, ground) = (self.text_code(style), self.background_code(style));
        if text.is_empty() || letters.is_empty() && ground.is_empty() {
            out.push_str(text);
            return;
        }
        let separator = if letters.is_empty() || ground.is_empty() { "" } else { ";" };
        out.extend(["\x1b[", letters, separator, ground, "m", text, RESET]);
    }

    /// Returns the code of the letters' weight and colour.
    fn text_code(self, style: Style) -> &'static str {
        let is_tinted = !self.background_code(style).is_empty();
        match style {
            Style::Plain => "",
            Style::Strong => "1",
            Style::Emphasis => "3",
            Style::Dim | Style::Token(Token::Comment) => "2",
            Style::Selected => "7",
            Style::Added(token) | Style::Removed(token) if is_tinted => self.token_code(token),
            Style::AddedWord(token) | Style::RemovedWord(token) if is_tinted => self.token_code(token),
            // Without colours the sign says what the line is, and weight which words are new.
            Style::AddedWord(_) | Style::RemovedWord(_) if !self.has_colors() => "1;4",
            Style::Bad | Style::Warning if !self.has_colors() => "1",
            _ if !self.has_colors() => "",
            Style::Good | Style::Added(_) => "32",
            Style::Bad | Style::Removed(_) => "31",
            Style::AddedWord(_) => "1;4;32",
            Style::RemovedWord(_) => "1;4;31",
            Style::Warning => self.yellow_code(),
            Style::Accent | Style::Code => "36",
            Style::Token(token) => self.token_code(token),
        }
    }

    fn token_code(self, token: Token) -> &'static str {
        match token {
            Token::Plain => "",
            Token::Keyword => "35",
            Token::Text => "32",
            Token::Number | Token::Name => "36",
            Token::Type => self.yellow_code(),
            Token::Comment => "2",
        }
    }

    /// Returns yellow, or a darker colour where yellow can't be read.
    fn yellow_code(self) -> &'static str {
        let is_light = self.ground == BackgroundBrightness::Light && self.depth >= ColorDepth::Indexed;
        if is_light { "38;5;94" } else { "33" }
    }

    /// Returns the code of the ground that changed lines stand on, where the terminal's own ground
    /// is known.
    fn background_code(self, style: Style) -> &'static str {
        use BackgroundBrightness::{Dark, Light};
        use ColorDepth::{Indexed, True};
        match (style, self.ground, self.depth) {
            (Style::Added(_), Dark, True) => "48;2;16;46;28",
            (Style::AddedWord(_), Dark, True) => "48;2;28;88;50",
            (Style::Removed(_), Dark, True) => "48;2;62;22;26",
            (Style::RemovedWord(_), Dark, True) => "48;2;118;36;44",
            (Style::Added(_), Light, True) => "48;2;222;250;228",
            (Style::AddedWord(_), Light, True) => "48;2;168;236;184",
            (Style::Removed(_), Light, True) => "48;2;255;234;232",
            (Style::RemovedWord(_), Light, True) => "48;2;255;194;190",
            (Style::Added(_), Dark, Indexed) => "48;5;22",
            (Style::AddedWord(_), Dark, Indexed) => "48;5;28",
            (Style::Removed(_), Dark, Indexed) => "48;5;52",
            (Style::RemovedWord(_), Dark, Indexed) => "48;5;88",
            (Style::Added(_), Light, Indexed) => "48;5;194",
            (Style::AddedWord(_), Light, Indexed) => "48;5;157",
            (Style::Removed(_), Light, Indexed) => "48;5;224",
            (Style::RemovedWord(_), Light, Indexed) => "48;5;217",
            _ => "",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn theme(variables: &[(&str, &str)]) -> Theme {
        Theme::from_variables(|name| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| *value))
    }

    #[test]
    fn the_environment_says_which_colours_there_are() {
        use ColorDepth::{Indexed, None, Palette, True};
        for (variables, depth, ground) in [
            (&[("TERM", "xterm")][..], Palette, BackgroundBrightness::Unknown),
            (&[("TERM", "screen-256color")], Indexed, BackgroundBrightness::Unknown),
            (&[("TERM", "xterm-kitty")], True, BackgroundBrightness::Unknown),
            (
                &[("TERM", "xterm"), ("COLORTERM", "truecolor"), ("COLORFGBG", "15;0")],
                True,
                BackgroundBrightness::Dark,
            ),
            (&[("COLORFGBG", "0;default;15")], Palette, BackgroundBrightness::Light),
            (&[("NO_COLOR", ""), ("TERM", "xterm")], Palette, BackgroundBrightness::Unknown),
            (&[("NO_COLOR", "1"), ("COLORTERM", "truecolor")], None, BackgroundBrightness::Unknown),
        ] {
            assert_eq!(theme(variables), Theme::new(depth, ground), "{variables:?}");
        }
    }

    #[test]
    fn styles_are_shown_as_far_as_the_terminal_can() {
        use ColorDepth::{Indexed, None, Palette};
        let word = Style::AddedWord(Token::Keyword);
        for (depth, ground, style, expected) in [
            (Palette, BackgroundBrightness::Unknown, Style::Good, "\x1b[32mx\x1b[0m"),
            (None, BackgroundBrightness::Unknown, Style::Good, "x"),
            // A choice has to be seen, and so does a word that differs.
            (None, BackgroundBrightness::Unknown, Style::Selected, "\x1b[7mx\x1b[0m"),
            (None, BackgroundBrightness::Dark, word, "\x1b[1;4mx\x1b[0m"),
            (Palette, BackgroundBrightness::Dark, word, "\x1b[1;4;32mx\x1b[0m"),
            (Indexed, BackgroundBrightness::Unknown, word, "\x1b[1;4;32mx\x1b[0m"),
            (Indexed, BackgroundBrightness::Dark, word, "\x1b[35;48;5;28mx\x1b[0m"),
            (Indexed, BackgroundBrightness::Light, Style::Added(Token::Plain), "\x1b[48;5;194mx\x1b[0m"),
            (None, BackgroundBrightness::Unknown, Style::Token(Token::Keyword), "x"),
            (Palette, BackgroundBrightness::Unknown, Style::Plain, "x"),
        ] {
            let mut out = String::new();
            Theme::new(depth, ground).paint(style, "x", &mut out);
            assert_eq!(out, expected, "{depth:?} {ground:?} {style:?}");
        }
    }
}
