//! Sources as syntax trees and tokens.

use std::ops::Range;

use journeyman_syntax::Node;
use journeyman_syntax::language::Language;
use journeyman_syntax::parse::{Tree, parse};

/// Maximum number of tokens of a file that are compared: a longer file is generated or data.
const MAX_TOKENS: usize = 200_000;

/// The class of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum TokenKind {
    /// A name or a keyword.
    Word,
    /// A number.
    Number,
    /// A string, character or symbol literal, with its quotes.
    Text,
    /// A comment.
    Comment,
    /// Anything else.
    Sign,
}

/// A piece of a source text that the grammar doesn't divide further.
#[derive(Debug, Clone, Copy)]
pub(super) struct Token<'t> {
    pub(super) kind: TokenKind,
    pub(super) text: &'t str,
    /// The byte at which the token begins.
    pub(super) start: usize,
    /// 1-based.
    pub(super) line: u32,
}

impl<'t> Token<'t> {
    pub(super) fn is_literal(&self) -> bool {
        matches!(self.kind, TokenKind::Number | TokenKind::Text)
    }

    /// Returns the text without differences that have no meaning: the style of quotes, the type of
    /// a number.
    pub(super) fn normalized_text(&self) -> &'t str {
        match self.kind {
            TokenKind::Text => {
                let prefixed = self.text.trim_start_matches(['r', 'b', 'f', 'u', 'L', '@', '$']);
                let quoted = if prefixed.starts_with(['"', '\'']) { prefixed } else { self.text };
                quoted.trim_matches(['"', '\'', '`'])
            }
            TokenKind::Number if !self.text.starts_with("0x") => {
                self.text.trim_end_matches(|c: char| c.is_ascii_alphabetic())
            }
            _ => self.text,
        }
    }
}

/// A source text with its tree, where its language has a grammar.
pub(super) struct ParsedSource<'t> {
    pub(super) text: &'t str,
    pub(super) language: Option<Language>,
    pub(super) tree: Option<Tree>,
    pub(super) tokens: Vec<Token<'t>>,
}

impl<'t> ParsedSource<'t> {
    pub(super) fn new(path: &str, text: &'t str) -> Self {
        let language = Language::detect(path, text);
        let tree = language.and_then(|language| parse(language, text).ok());
        let tokens = match &tree {
            Some(tree) => tree_tokens(tree.root(), text),
            None => scan_tokens(text),
        };
        Self { text, language, tree, tokens }
    }

    /// Returns the tokens that begin within a range of bytes.
    pub(super) fn tokens_in(&self, range: &Range<usize>) -> &[Token<'t>] {
        let from = self.tokens.partition_point(|token| token.start < range.start);
        let to = self.tokens.partition_point(|token| token.start < range.end);
        self.tokens.get(from..to).unwrap_or_default()
    }

    /// Returns the tokens of a node.
    pub(super) fn tokens_of_node(&self, node: Node<'_>) -> &[Token<'t>] {
        self.tokens_in(&node.byte_range())
    }

    /// Returns the text of a node.
    pub(super) fn text_of_node(&self, node: Node<'_>) -> &'t str {
        self.text.get(node.byte_range()).unwrap_or_default()
    }
}

/// Returns the 1-based line on which a node begins.
pub(super) fn line_of(node: Node<'_>) -> u32 {
    u32::try_from(node.start_position().row).unwrap_or(u32::MAX).saturating_add(1)
}

/// Returns the named children of a node.
pub(super) fn children(node: Node<'_>) -> Vec<Node<'_>> {
    let mut cursor = node.walk();
    node.named_children(&mut cursor).collect()
}

pub(super) fn is_comment(kind: &str) -> bool {
    kind.contains("comment")
}

pub(super) fn is_string_kind(kind: &str) -> bool {
    matches!(kind, "string" | "char" | "regex" | "simple_symbol" | "hash_key_symbol" | "heredoc_body")
        || kind.ends_with("string_literal")
        || kind.ends_with("_string")
        || kind.ends_with("char_literal")
        || kind.ends_with("character_literal")
        || kind.ends_with("rune_literal")
        || kind.ends_with("string_expression")
        || kind.ends_with("heredoc")
}

fn tree_tokens<'t>(root: Node<'_>, text: &'t str) -> Vec<Token<'t>> {
    let mut tokens = Vec::new();
    let mut cursor = root.walk();
    loop {
        let node = cursor.node();
        let whole = is_comment(node.kind()) || is_string_kind(node.kind()) && node.is_named();
        if !whole && cursor.goto_first_child() {
            continue;
        }
        if let Some(token) = token_of(node, text, whole) {
            tokens.push(token);
        }
        if tokens.len() >= MAX_TOKENS {
            return tokens;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return tokens;
            }
        }
    }
}

fn token_of<'t>(node: Node<'_>, text: &'t str, whole: bool) -> Option<Token<'t>> {
    let range = node.byte_range();
    let piece = text.get(range.clone())?.trim_end();
    let kind = match whole {
        true if is_comment(node.kind()) => TokenKind::Comment,
        true => TokenKind::Text,
        false => token_kind(piece)?,
    };
    Some(Token { kind, text: piece, start: range.start, line: line_of(node) })
}

/// Returns the kind of a token by its first character.
fn token_kind(piece: &str) -> Option<TokenKind> {
    let first = piece.chars().next()?;
    Some(match first {
        _ if first.is_ascii_digit() => TokenKind::Number,
        '"' | '\'' | '`' if piece.len() > 2 => TokenKind::Text,
        '_' | '$' | '@' => TokenKind::Word,
        _ if first.is_alphanumeric() => TokenKind::Word,
        _ => TokenKind::Sign,
    })
}

/// Cuts a text without a grammar into tokens, by what most languages have in common.
fn scan_tokens(text: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut line = 1;
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let start = text.len() - rest.len();
        let (length, kind) = scan_token(rest, first);
        let Some((piece, after)) = rest.split_at_checked(length.max(first.len_utf8())) else { break };
        if let Some(kind) = kind {
            tokens.push(Token { kind, text: piece.trim_end(), start, line });
        }
        if tokens.len() >= MAX_TOKENS {
            break;
        }
        line += u32::try_from(piece.matches('\n').count()).unwrap_or(0);
        rest = after;
    }
    tokens
}

/// Returns the length and the kind of the token at the beginning; no kind for blanks.
fn scan_token(rest: &str, first: char) -> (usize, Option<TokenKind>) {
    let run = |of: fn(char) -> bool| rest.find(|c| !of(c)).unwrap_or(rest.len());
    if first.is_whitespace() {
        return (run(char::is_whitespace), None);
    }
    if first == '#' || rest.starts_with("//") || rest.starts_with("-- ") {
        return (rest.find('\n').unwrap_or(rest.len()), Some(TokenKind::Comment));
    }
    if matches!(first, '"' | '\'' | '`') {
        return (quoted_length(rest, first), Some(TokenKind::Text));
    }
    let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '?' | '!');
    if first.is_ascii_digit() {
        return (run(|c| c.is_alphanumeric() || matches!(c, '_' | '.')), Some(TokenKind::Number));
    }
    if first.is_alphanumeric() || matches!(first, '_' | '@' | '$') {
        let length = rest.chars().skip(1).take_while(|c| is_word(*c)).map(char::len_utf8).sum::<usize>();
        return (first.len_utf8() + length, Some(TokenKind::Word));
    }
    let sign = ["===", "!==", "==", "!=", "<=", ">=", "&&", "||", "=>", ":=", "->"];
    let length =
        sign.iter().find(|sign| rest.starts_with(**sign)).map_or(first.len_utf8(), |sign| sign.len());
    (length, Some(TokenKind::Sign))
}

/// Returns the length of a quoted text, which ends with its line at the latest.
fn quoted_length(rest: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        if c == '\n' {
            return at;
        }
        if c == quote && !escaped {
            return at + c.len_utf8();
        }
        escaped = c == '\\' && !escaped;
    }
    rest.len()
}

/// Returns the index of the bracket that closes the one at `open`.
pub(super) fn find_closing_bracket(tokens: &[Token<'_>], open: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        match token.text {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth = depth.saturating_sub(1),
            _ => continue,
        }
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

/// Splits tokens at the commas outside of brackets.
pub(super) fn split_arguments<'a, 't>(tokens: &'a [Token<'t>]) -> Vec<&'a [Token<'t>]> {
    let mut depth = 0_usize;
    let arguments = tokens.split(|token| {
        match token.text {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && token.text == ","
    });
    arguments.filter(|argument| !argument.is_empty()).collect()
}
