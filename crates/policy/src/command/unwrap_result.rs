//! The programs and texts that a program runs, and how its arguments name them.

use journeyman_syntax::shell::Word;

/// A program or text that a wrapper runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum InnerCommand {
    /// A program with its arguments.
    Words(Vec<Word>),
    /// A text for a shell.
    Script(String),
}

/// The result of unwrapping a program that runs others.
#[derive(Debug, Default)]
pub(super) struct UnwrapResult {
    pub(super) inner: Vec<InnerCommand>,
    /// True if the wrapper does nothing but run them.
    pub(super) transparent: bool,
    /// The reason why the list may be incomplete.
    pub(super) unclear: Option<&'static str>,
    /// True if the wrapper runs its input.
    pub(super) input: bool,
}

impl UnwrapResult {
    pub(super) fn from_script(text: impl Into<String>) -> Self {
        Self { inner: vec![InnerCommand::Script(text.into())], ..Self::default() }
    }

    pub(super) fn from_unknown(why: &'static str) -> Self {
        Self { unclear: Some(why), ..Self::default() }
    }

    pub(super) fn from_words(words: &[Word]) -> Self {
        let inner = if words.is_empty() { Vec::new() } else { vec![InnerCommand::Words(words.to_vec())] };
        Self { inner, ..Self::default() }
    }
}

/// The reason for a program whose words are unknown.
pub(super) const UNKNOWN_PROGRAM: &str = "what it is told to run isn't known before it runs";

/// Returns the words from the first that is neither an option nor an option's value.
pub(super) fn skip_options<'w>(arguments: &'w [Word], valued: &str, long: &[&str]) -> &'w [Word] {
    let mut rest = arguments;
    while let [first, after @ ..] = rest {
        let text = first.text.as_str();
        if text == "--" {
            return after;
        }
        if !text.starts_with('-') || text == "-" {
            return rest;
        }
        let takes = if text.starts_with("--") {
            long.contains(&text)
        } else {
            // `-n` takes the next word if its own word ends after it.
            text.char_indices()
                .skip(1)
                .find(|(_, c)| valued.contains(*c))
                .is_some_and(|(at, c)| at + c.len_utf8() == text.len())
        };
        rest = if takes { after.get(1..).unwrap_or_default() } else { after };
    }
    rest
}

/// Unwraps words that a program joins with blanks and passes to a shell.
pub(super) fn unwrap_joined_words(words: &[Word]) -> UnwrapResult {
    if words.is_empty() {
        return UnwrapResult::default();
    }
    // An unknown word is used as written: its quotes are not a part of the text that runs.
    let text =
        |word: &'_ Word| if word.known { word.text.clone() } else { word.text.trim_matches('"').to_owned() };
    let text = words.iter().map(text).collect::<Vec<_>>().join(" ");
    let unclear = words.iter().any(|word| !word.known).then_some(UNKNOWN_PROGRAM);
    UnwrapResult { unclear, ..UnwrapResult::from_script(text) }
}

/// Returns the values of options: `--option=value`, `--option value`, `-ovalue`, `-o value`.
pub(super) fn option_values(arguments: &[Word], options: &[&str]) -> impl Iterator<Item = String> {
    let mut values = Vec::new();
    for (index, word) in arguments.iter().enumerate() {
        for option in options {
            let Some(rest) = word.text.strip_prefix(option) else { continue };
            let value = match (rest, rest.strip_prefix('=')) {
                ("", _) => arguments.get(index + 1).map(|word| word.text.as_str()),
                (_, Some(value)) => Some(value),
                (value, None) if option.len() == 2 && !option.ends_with('-') => Some(value),
                _ => None,
            };
            values.extend(value.filter(|value| !value.is_empty()).map(str::to_owned));
        }
    }
    values.into_iter()
}
