//! Lines of text whose parts have a meaning that a surface may show by a colour.

/// The meaning of a part of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// Nothing in particular.
    Plain,
    /// A heading, or the result.
    Strong,
    /// A success.
    Good,
    /// A failure.
    Bad,
    /// Something that a person should know.
    Warning,
    /// The beginning of an action.
    Accent,
    /// A detail.
    Dim,
    /// A stressed word.
    Emphasis,
    /// Code, or what a person types.
    Code,
    /// The choice that a key would take.
    Selected,
    /// A token of code.
    Token(Token),
    /// A token of a line that a change adds.
    Added(Token),
    /// A token that is new in such a line.
    AddedWord(Token),
    /// A token of a line that a change takes away.
    Removed(Token),
    /// A token that only such a line has.
    RemovedWord(Token),
}

/// The meaning of a token of code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Token {
    /// None of the others.
    Plain,
    /// A word of the language.
    Keyword,
    /// A text or a character.
    Text,
    /// A number.
    Number,
    /// A comment.
    Comment,
    /// A type.
    Type,
    /// A function, or the key of a value.
    Name,
}

/// A line of text in parts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StyledLine {
    /// The parts, each with its meaning.
    pub spans: Vec<(Style, String)>,
}

impl StyledLine {
    /// Makes a line of one part.
    #[must_use]
    pub fn new(style: Style, text: impl Into<String>) -> Self {
        Self { spans: vec![(style, text.into())] }
    }

    /// Adds a part.
    #[must_use]
    pub fn with(mut self, style: Style, text: impl Into<String>) -> Self {
        self.spans.push((style, text.into()));
        self
    }

    /// Adds a part without a meaning.
    #[must_use]
    pub fn with_text(self, text: impl Into<String>) -> Self {
        self.with(Style::Plain, text)
    }

    /// Appends text, to the last part if the meaning is the same.
    pub fn push(&mut self, style: Style, text: &str) {
        match self.spans.last_mut() {
            Some((last, spans)) if *last == style => spans.push_str(text),
            _ if text.is_empty() => {}
            _ => self.spans.push((style, text.to_owned())),
        }
    }

    /// Returns true if the line has no text.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.spans.iter().all(|(_, text)| text.is_empty())
    }

    /// Returns the text without its meanings.
    #[must_use]
    pub fn to_text(&self) -> String {
        self.spans.iter().map(|(_, text)| text.as_str()).collect()
    }
}
