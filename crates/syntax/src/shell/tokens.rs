//! Reading the tokens of a shell's text in order, checked against the text.

use tree_sitter::Node;

use super::script::UnclearReason;

/// The kind of the last token, which decides what may follow it without a blank.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Token {
    /// No token yet, or the start of a statement: lines may have ended.
    Start,
    /// Part of a command: a newline after it would end the command.
    Word,
    /// `|`, `&&`, `;`, `>` and the like.
    Operator,
    /// A reserved word, `{`, `}` or `!`.
    Keyword,
    /// `(`, `)` and the signs that open a substitution.
    Bracket,
}

/// Reads the tokens of a text, and checks what stands between them.
pub(super) struct TokenReader<'a> {
    text: &'a str,
    /// The offset up to which the text has been checked.
    pub(super) at: usize,
    pub(super) last: Token,
    /// The first reason not to understand the text.
    pub(super) unclear: Option<UnclearReason>,
}

impl<'a> TokenReader<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0, last: Token::Start, unclear: None }
    }

    /// Returns a part of the text.
    pub(super) fn slice(&self, from: usize, to: usize) -> &'a str {
        self.text.get(from..to).unwrap_or_default()
    }

    /// Notes a reason not to understand the text; the first one counts.
    pub(super) fn mark_unclear(&mut self, why: UnclearReason) {
        self.unclear.get_or_insert(why);
    }

    /// Checks that a shell skips everything between the last token and `to`.
    pub(super) fn check_gap(&mut self, to: usize, next: Token) {
        let Some(gap) = self.text.get(self.at..to) else { return self.mark_unclear(UnclearReason::Reading) };
        if gap.is_empty() {
            let apart = matches!(
                (self.last, next),
                (Token::Start | Token::Bracket, _)
                    | (_, Token::Start | Token::Bracket)
                    | (Token::Operator, Token::Word | Token::Keyword)
                    | (Token::Word | Token::Keyword, Token::Operator)
            );
            if !apart {
                self.mark_unclear(UnclearReason::Reading);
            }
            return;
        }
        let mut blank = false;
        let mut rest = gap;
        while let Some(byte) = rest.bytes().next() {
            let skipped = match byte {
                b' ' | b'\t' => {
                    blank = true;
                    1
                }
                b'\n' => {
                    // A line break ends the command, unless it can't end here.
                    let ends = self.last == Token::Word
                        && !matches!(next, Token::Start | Token::Keyword | Token::Bracket);
                    if ends || next == Token::Operator {
                        self.mark_unclear(UnclearReason::Reading);
                    }
                    blank = true;
                    1
                }
                b'\\' if rest.starts_with("\\\n") => 2,
                _ => {
                    self.mark_unclear(UnclearReason::Reading);
                    return;
                }
            };
            rest = rest.get(skipped..).unwrap_or_default();
        }
        // A continued line joins the text on both sides.
        if !blank {
            self.mark_unclear(UnclearReason::Reading);
        }
    }

    /// Takes the next token.
    pub(super) fn take_token(&mut self, node: Node<'_>, token: Token) {
        self.check_gap(node.start_byte(), token);
        self.at = node.end_byte();
        self.last = token;
        if node.is_missing() || node.start_byte() == node.end_byte() {
            self.mark_unclear(UnclearReason::Grammar);
        }
    }

    /// Takes a comment.
    pub(super) fn take_comment(&mut self, node: Node<'_>) {
        // A comment begins after a word's end, and only the line's end ends it.
        let before = self.slice(0, node.start_byte());
        let begins = before.is_empty() || before.ends_with([' ', '\t', '\n', ';', '&', '|', '(', ')']);
        if !begins || before.ends_with("\\ ") || before.ends_with("\\\t") {
            self.mark_unclear(UnclearReason::Reading);
        }
        let last = std::mem::replace(&mut self.last, Token::Start);
        self.check_gap(node.start_byte(), Token::Start);
        self.last = last;
        self.at = node.end_byte();
        if !matches!(self.text.as_bytes().get(self.at), None | Some(b'\n')) {
            self.mark_unclear(UnclearReason::Reading);
        }
    }

    /// Takes a token outside of words, by its kind.
    pub(super) fn take_syntax_token(&mut self, node: Node<'_>) {
        let token = match self.slice(node.start_byte(), node.end_byte()) {
            // An item of a `case` may end on a line of its own.
            "(" | ")" | "$(" | "<(" | ">(" | "`" | ";;" => Token::Bracket,
            "{" | "}" | "!" => Token::Keyword,
            text if text.starts_with(|c: char| c.is_ascii_alphabetic()) => Token::Keyword,
            "((" | "))" | "$`" => {
                self.mark_unclear(UnclearReason::Dialect("`((…))`"));
                Token::Bracket
            }
            "&" | ";" | "|" | "||" | "&&" | "|&" => Token::Operator,
            _ => {
                self.mark_unclear(UnclearReason::Reading);
                Token::Operator
            }
        };
        self.take_token(node, token);
    }
}
