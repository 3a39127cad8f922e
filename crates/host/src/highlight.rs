//! The tokens of code in the styles of terminals.

use std::ops::Range;

use journeyman_syntax::highlight::{self, TokenMeaning};
use journeyman_syntax::language::Language;
use journeyman_terminal::Token;

/// Finds the tokens of a text in the language of a file, by the file's name.
#[must_use]
pub fn find_tokens_of_file(path: &str, text: &str) -> Vec<(Range<usize>, Token)> {
    find_tokens(Language::detect(path, text), text)
}

/// Finds the tokens of a text in a language, by the name that stands after a code fence.
#[must_use]
pub fn find_tokens_of_language(name: &str, text: &str) -> Vec<(Range<usize>, Token)> {
    find_tokens(Language::from_name(name), text)
}

fn find_tokens(language: Option<Language>, text: &str) -> Vec<(Range<usize>, Token)> {
    let Some(language) = language else { return Vec::new() };
    let token = |kind| match kind {
        TokenMeaning::Keyword => Token::Keyword,
        TokenMeaning::Text => Token::Text,
        TokenMeaning::Number => Token::Number,
        TokenMeaning::Comment => Token::Comment,
        TokenMeaning::Type => Token::Type,
        TokenMeaning::Name => Token::Name,
    };
    let tokens = highlight::find_tokens(language, text);
    tokens.into_iter().map(|(range, kind)| (range, token(kind))).collect()
}
