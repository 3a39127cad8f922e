//! Code in the colours of its tokens.

use std::ops::Range;

use crate::{Style, StyledLine, Token};

/// A function that finds the tokens of a text, given the language's name. The tokens are in order
/// and don't overlap.
pub type TokenFinder<'a> = &'a dyn Fn(&str, &str) -> Vec<(Range<usize>, Token)>;

/// Finds no tokens.
#[must_use]
pub fn find_no_tokens(_name: &str, _text: &str) -> Vec<(Range<usize>, Token)> {
    Vec::new()
}

/// The tokens of lines that are read as one text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LineTokens {
    /// The byte positions where the lines begin.
    starts: Vec<usize>,
    tokens: Vec<(Range<usize>, Token)>,
}

impl LineTokens {
    /// Finds the tokens of lines.
    #[must_use]
    pub fn find<'a>(
        lines: impl IntoIterator<Item = &'a str>,
        name: &str,
        find_tokens: TokenFinder<'_>,
    ) -> Self {
        let (mut text, mut starts) = (String::new(), Vec::new());
        for line in lines {
            starts.push(text.len());
            text.push_str(line);
            text.push('\n');
        }
        Self { starts, tokens: find_tokens(name, &text) }
    }

    /// Returns true if no line has a token.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }

    /// Returns the tokens of a line, relative to its beginning.
    #[must_use]
    pub fn of_line(&self, place: usize) -> Vec<(Range<usize>, Token)> {
        let Some(start) = self.starts.get(place).copied() else { return Vec::new() };
        let end = self.starts.get(place + 1).copied().unwrap_or(usize::MAX);
        let first = self.tokens.partition_point(|(range, _)| range.end <= start);
        let tokens = self.tokens.iter().skip(first).take_while(|(range, _)| range.start < end);
        let within = |range: &Range<usize>| range.start.saturating_sub(start)..range.end.min(end) - start;
        tokens.map(|(range, token)| (within(range), *token)).collect()
    }
}

/// Splits a line at the borders of its tokens and words.
pub(crate) fn split_line<'a>(
    text: &'a str,
    tokens: &[(Range<usize>, Token)],
    words: &[Range<usize>],
) -> Vec<(&'a str, Token, bool)> {
    let mut borders: Vec<usize> = vec![0, text.len()];
    borders.extend(tokens.iter().flat_map(|(range, _)| [range.start, range.end]));
    borders.extend(words.iter().flat_map(|range| [range.start, range.end]));
    borders.retain(|border| text.is_char_boundary(*border));
    borders.sort_unstable();
    borders.dedup();
    let piece = |(start, end): (&usize, &usize)| {
        let token = tokens.iter().find(|(range, _)| range.contains(start));
        let is_word = words.iter().any(|range| range.contains(start));
        Some((text.get(*start..*end)?, token.map_or(Token::Plain, |(_, token)| *token), is_word))
    };
    borders.iter().zip(borders.iter().skip(1)).filter_map(piece).collect()
}

/// Gives a line the styles of its tokens.
#[must_use]
pub fn style_tokens(text: &str, tokens: &[(Range<usize>, Token)]) -> StyledLine {
    let mut line = StyledLine::default();
    for (text, token, _) in split_line(text, tokens, &[]) {
        line.push(Style::Token(token), text);
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_get_the_tokens_of_the_whole_text() {
        // A text that begins in one line and ends in the next.
        let find =
            |_: &str, text: &str| vec![(text.find('"').unwrap()..text.rfind('"').unwrap() + 1, Token::Text)];
        let lines = ["a \"b", "", "c\" d"];
        let tokens = LineTokens::find(lines, "x", &find);
        let styled: Vec<StyledLine> = lines
            .iter()
            .enumerate()
            .map(|(place, line)| style_tokens(line, &tokens.of_line(place)))
            .collect();
        let part = |token, text: &str| (Style::Token(token), text.to_owned());
        assert_eq!(styled[0].spans, [part(Token::Plain, "a "), part(Token::Text, "\"b")]);
        assert!(styled[1].is_empty());
        assert_eq!(styled[2].spans, [part(Token::Text, "c\""), part(Token::Plain, " d")]);
    }
}
