//! Reading one word by the shell's own rules.

use tree_sitter::Node;

use super::braces;
use super::convert::Converter;
use super::script::{UnclearReason, Word};

/// A word that is being read.
#[derive(Default)]
struct WordDraft {
    word: Word,
    /// Literal text since the last unknown part.
    literal: String,
    /// True if some part isn't known.
    unknown: bool,
    /// True if it stays one word.
    single: bool,
    /// True if an unquoted `{` was seen.
    brace: bool,
}

impl WordDraft {
    fn mark_unknown(&mut self, quoted: bool) {
        if !self.unknown {
            self.unknown = true;
            self.word.start.clone_from(&self.literal);
        }
        self.single &= quoted;
        self.word.splits |= !quoted;
    }

    /// Marks a pattern: it may become several words, none of which is split.
    fn mark_pattern(&mut self) {
        let splits = self.word.splits;
        self.mark_unknown(false);
        self.word.splits = splits;
    }
}

/// The quotes around the text that is being read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Quoting {
    None,
    Double,
    /// As between double quotes, with `"` an ordinary character.
    Document,
}

/// Reads `text[from..to]`, in which the tree found `nested` substitutions, as one word.
pub(super) struct WordScanner<'c, 'a, 't> {
    converter: &'c mut Converter<'a>,
    nested: &'c [Node<'t>],
    at: usize,
    to: usize,
    draft: WordDraft,
}

type ScanError = UnclearReason;

impl Converter<'_> {
    /// Reads one word, which becomes several where it has braces.
    pub(super) fn read_words(
        &mut self,
        from: usize,
        to: usize,
        nested: &[Node<'_>],
    ) -> Result<Vec<Word>, ScanError> {
        let mut scanner = WordScanner::new(self, from, to, nested);
        scanner.read_unquoted()?;
        let brace = scanner.draft.brace;
        let source = scanner.converter.tokens.slice(from, to);
        let word = scanner.finish(source);
        if brace && braces::has_braces_to_expand(source) {
            let expanded = braces::expand_braces(source).ok_or(UnclearReason::Dialect("braces"))?;
            let mut words = Vec::with_capacity(expanded.len());
            // Of an empty word without quotes nothing is left: `env {,rm} x` runs `rm`.
            for source in expanded.into_iter().filter(|source| !source.is_empty()) {
                let mut again = Converter::new(&source);
                let mut scanner = WordScanner::new(&mut again, 0, source.len(), &[]);
                // The statements of its substitutions were converted with the whole word.
                if braces::has_doubtful_braces(&source) || scanner.read_unquoted().is_err() {
                    return Err(UnclearReason::Dialect("braces"));
                }
                let part = scanner.finish(&source);
                words.push(Word { dialect: true, ..part });
            }
            // Other shells keep `{,}`.
            words.first_mut().ok_or(UnclearReason::Dialect("braces"))?.inner = word.inner;
            return Ok(words);
        }
        if brace && braces::has_doubtful_braces(source) {
            return Err(UnclearReason::Dialect("braces"));
        }
        Ok(vec![word])
    }

    /// Reads the body of a here-document whose delimiter isn't quoted.
    pub(super) fn read_heredoc_word(
        &mut self,
        from: usize,
        to: usize,
        nested: &[Node<'_>],
    ) -> Result<Word, ScanError> {
        let mut scanner = WordScanner::new(self, from, to, nested);
        scanner.read_quoted(Quoting::Document)?;
        let source = scanner.converter.tokens.slice(from, to);
        Ok(scanner.finish(source))
    }
}

impl<'c, 'a, 't> WordScanner<'c, 'a, 't> {
    fn new(converter: &'c mut Converter<'a>, from: usize, to: usize, nested: &'c [Node<'t>]) -> Self {
        Self { converter, nested, at: from, to, draft: WordDraft { single: true, ..WordDraft::default() } }
    }

    fn finish(self, source: &str) -> Word {
        let WordDraft { mut word, literal, unknown, single, .. } = self.draft;
        word.known = !unknown;
        word.single = single;
        word.text = if unknown { source.to_owned() } else { literal };
        if word.dialect && word.known {
            word.start.clone_from(&word.text);
        }
        word
    }

    fn peek(&self) -> Option<char> {
        self.converter.tokens.slice(self.at, self.to).chars().next()
    }

    fn take(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += next.len_utf8();
        Some(next)
    }

    fn push(&mut self, character: char) {
        self.draft.literal.push(character);
    }

    fn read_unquoted(&mut self) -> Result<(), ScanError> {
        let from = self.at;
        // Names of programs, not patterns.
        if matches!(self.converter.tokens.slice(from, self.to), "[" | "[[") {
            self.draft.literal.push_str(self.converter.tokens.slice(from, self.to));
            self.at = self.to;
        }
        while let Some(character) = self.take() {
            match character {
                '\\' => match self.take() {
                    Some('\n') | None => return Err(UnclearReason::Reading),
                    Some(escaped) => self.push(escaped),
                },
                '\'' => self.read_single_quoted()?,
                '"' => {
                    self.read_quoted(Quoting::Double)?;
                }
                '$' => self.read_dollar(Quoting::None)?,
                '`' => self.read_substitution(self.at - 1, Quoting::None)?,
                '*' | '?' => {
                    self.draft.mark_pattern();
                    self.push(character);
                }
                '[' => {
                    self.draft.mark_pattern();
                    self.push('[');
                }
                '{' => {
                    self.draft.brace = true;
                    self.push('{');
                }
                '~' if from + 1 == self.at || self.draft.literal.ends_with(['=', ':']) => {
                    self.draft.mark_unknown(true);
                    if from + 1 == self.at {
                        self.draft.word.start.push('~');
                    }
                    self.push('~');
                }
                '#' if from + 1 == self.at => return Err(UnclearReason::Reading),
                '<' | '>' if self.peek() == Some('(') => {
                    self.read_substitution(self.at - 1, Quoting::None)?
                }
                '<' | '>' | '(' | ')' | '|' | '&' | ';' | ' ' | '\t' | '\n' => {
                    return Err(UnclearReason::Reading);
                }
                plain if plain.is_ascii() || plain.is_alphanumeric() => self.push(plain),
                // A look-alike of punctuation, or a mark that joins the character before it.
                other => return Err(UnclearReason::Character(other)),
            }
        }
        Ok(())
    }

    fn read_single_quoted(&mut self) -> Result<(), ScanError> {
        let rest = self.converter.tokens.slice(self.at, self.to);
        let end = rest.find('\'').ok_or(UnclearReason::Quote)?;
        self.draft.literal.push_str(rest.get(..end).unwrap_or_default());
        self.at += end + 1;
        Ok(())
    }

    /// Reads to the closing quote, or to the end of a document.
    fn read_quoted(&mut self, quoting: Quoting) -> Result<(), ScanError> {
        loop {
            match self.take() {
                None if quoting == Quoting::Document => return Ok(()),
                None => return Err(UnclearReason::Quote),
                Some('"') if quoting == Quoting::Double => return Ok(()),
                Some('\\') => match self.peek() {
                    Some('\n') if quoting == Quoting::Document => return Err(UnclearReason::Reading),
                    Some('\n') => {
                        self.take();
                    }
                    Some(escaped @ ('$' | '`' | '\\')) => {
                        self.take();
                        self.push(escaped);
                    }
                    Some('"') if quoting == Quoting::Double => {
                        self.take();
                        self.push('"');
                    }
                    _ => self.push('\\'),
                },
                Some('$') => self.read_dollar(quoting)?,
                Some('`') => self.read_substitution(self.at - 1, quoting)?,
                Some(literal) => self.push(literal),
            }
        }
    }

    /// Reads the expansion after a `$`.
    fn read_dollar(&mut self, quoting: Quoting) -> Result<(), ScanError> {
        let start = self.at - 1;
        let quoted = quoting != Quoting::None;
        match self.peek() {
            Some('\'') if !quoted => self.read_ansi_quoted(),
            Some('"') if !quoted => Err(UnclearReason::Dialect("`$\"…\"`")),
            Some('(' | '{') => self.read_substitution(start, quoting),
            Some('[') => Err(UnclearReason::Dialect("`$[…]`")),
            Some(first) if first == '_' || first.is_ascii_alphabetic() => {
                let rest = self.converter.tokens.slice(self.at, self.to);
                let length =
                    rest.find(|c: char| c != '_' && !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
                self.at += length;
                self.draft.mark_unknown(quoted);
                Ok(())
            }
            Some('@' | '*') => {
                self.take();
                self.draft.mark_unknown(false);
                Ok(())
            }
            // Always a number.
            Some('#' | '?' | '$') => {
                self.take();
                self.draft.mark_unknown(true);
                Ok(())
            }
            Some('!' | '-') => {
                self.take();
                self.draft.mark_unknown(quoted);
                Ok(())
            }
            Some(digit) if digit.is_ascii_digit() => {
                self.take();
                self.draft.mark_unknown(quoted);
                Ok(())
            }
            _ => {
                self.push('$');
                Ok(())
            }
        }
    }

    /// Reads `$'…'` as bash does. A plain shell reads a `$` and a quoted text, which ends at the
    /// next quote.
    fn read_ansi_quoted(&mut self) -> Result<(), ScanError> {
        let rest = self.converter.tokens.slice(self.at + 1, self.to);
        let end = rest.find('\'').ok_or(UnclearReason::Quote)?;
        let body = rest.get(..end).unwrap_or_default();
        if body.bytes().rev().take_while(|byte| *byte == b'\\').count() % 2 == 1 {
            return Err(UnclearReason::Dialect("`$'…'`"));
        }
        let decoded = ansi_text(body).ok_or(UnclearReason::Dialect("`$'…'`"))?;
        self.draft.literal.push_str(&decoded);
        self.draft.word.dialect = true;
        self.at += end + 2;
        Ok(())
    }

    /// Reads a substitution that begins at `start`, where the tree must have one.
    fn read_substitution(&mut self, start: usize, quoting: Quoting) -> Result<(), ScanError> {
        let (node, rest) = self.nested.split_first().ok_or(UnclearReason::Reading)?;
        if node.start_byte() != start || node.end_byte() > self.to {
            return Err(UnclearReason::Reading);
        }
        self.nested = rest;
        let quoted = quoting != Quoting::None;
        let single = self.converter.convert_substitution(*node, quoted, &mut self.draft.word.inner)?;
        self.at = node.end_byte();
        let process = node.kind() == "process_substitution";
        if process && !self.draft.unknown && self.draft.literal.is_empty() {
            self.draft.mark_unknown(true);
            "/dev/fd/".clone_into(&mut self.draft.word.start);
        }
        self.draft.mark_unknown(process || (quoted && single));
        Ok(())
    }
}

/// Returns the text between the quotes of `$'…'`, with escapes resolved as bash does; `None` for an
/// unknown escape or one that makes a character that a word can't hold.
fn ansi_text(body: &str) -> Option<String> {
    let mut text = String::with_capacity(body.len());
    let mut rest = body.chars().peekable();
    while let Some(character) = rest.next() {
        if character != '\\' {
            text.push(character);
            continue;
        }
        let (digits, radix) = match rest.next()? {
            'n' => {
                text.push('\n');
                continue;
            }
            't' => {
                text.push('\t');
                continue;
            }
            'r' => {
                text.push('\r');
                continue;
            }
            'e' | 'E' => {
                text.push('\u{1b}');
                continue;
            }
            same @ ('\\' | '\'' | '"' | '?') => {
                text.push(same);
                continue;
            }
            'x' => (2, 16),
            'u' => (4, 16),
            'U' => (8, 16),
            octal if octal.is_digit(8) => {
                let mut value = octal.to_digit(8)?;
                for _ in 0..2 {
                    let Some(digit) = rest.peek().and_then(|digit| digit.to_digit(8)) else { break };
                    value = value * 8 + digit;
                    rest.next();
                }
                text.push(char::from_u32(value).filter(|c| c.is_ascii() && *c != '\0')?);
                continue;
            }
            _ => return None,
        };
        let mut value = 0u32;
        let mut found = false;
        for _ in 0..digits {
            let Some(digit) = rest.peek().and_then(|digit| digit.to_digit(radix)) else { break };
            value = value.checked_mul(radix)?.checked_add(digit)?;
            found = true;
            rest.next();
        }
        // A byte that isn't a character by itself may become one with the next.
        let most = if digits == 2 { 0x7f } else { u32::MAX };
        text.push(char::from_u32(value).filter(|c| found && *c != '\0' && value <= most)?);
    }
    Some(text)
}
