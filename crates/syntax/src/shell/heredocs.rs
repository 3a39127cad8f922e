//! Statements with redirections, and the texts of here-documents.

use tree_sitter::Node;

use super::convert::{Converter, collect_substitutions};
use super::script::{
    CompoundCommand, CompoundKind, Redirect, RedirectKind, SimpleCommand, Statement, UnclearReason, Word,
};
use super::tokens::Token;

impl Converter<'_> {
    /// Converts a statement and its redirections.
    pub(super) fn convert_redirected(&mut self, node: Node<'_>, out: &mut Vec<Statement>) {
        let mut body = Vec::new();
        let mut extra = SimpleCommand::default();
        // The rest of the line on which a here-document begins.
        let mut piped = Vec::new();
        let mut after = Vec::new();
        let mut cursor = node.walk();
        for child in node.children(&mut cursor) {
            match child.kind() {
                "comment" => self.tokens.take_comment(child),
                "file_redirect" | "herestring_redirect" => self.convert_redirect(child, &mut extra),
                "heredoc_redirect" => self.convert_heredoc(child, &mut extra, &mut piped, &mut after),
                _ if child.is_named() => self.convert_statement(child, &mut body),
                _ => self.tokens.take_syntax_token(child),
            }
        }
        match body.last_mut().map(last_simple_command) {
            Some(Some(simple)) => {
                simple.words.append(&mut extra.words);
                simple.redirects.append(&mut extra.redirects);
            }
            None => body.push(Statement::Simple(extra)),
            Some(None) => {
                if !extra.words.is_empty() {
                    self.tokens.mark_unclear(UnclearReason::Reading);
                }
                let redirects = std::mem::take(&mut extra.redirects);
                let all = std::mem::take(&mut body);
                body.push(Statement::Compound(CompoundCommand {
                    kind: CompoundKind::Group,
                    variable: None,
                    words: extra.words,
                    body: all,
                    redirects,
                }));
            }
        }
        if !piped.is_empty() {
            // Only the last command of a list is piped on.
            let mut stages = body.split_off(body.len().saturating_sub(1));
            stages.append(&mut piped);
            body.push(Statement::Pipeline(stages));
        }
        out.append(&mut body);
        out.append(&mut after);
    }

    /// Converts `<<E`, the rest of its line, and the lines up to `E`.
    fn convert_heredoc(
        &mut self,
        node: Node<'_>,
        simple: &mut SimpleCommand,
        piped: &mut Vec<Statement>,
        after: &mut Vec<Statement>,
    ) {
        let mut tabs = false;
        let mut delimiter = None;
        let mut body = None;
        let mut cursor = node.walk();
        for child in node.children(&mut cursor) {
            match child.kind() {
                "comment" => self.tokens.take_comment(child),
                "file_descriptor" => self.tokens.take_token(child, Token::Word),
                "<<" | "<<-" => {
                    tabs = child.kind() == "<<-";
                    self.tokens.take_token(child, Token::Operator);
                }
                "heredoc_start" => {
                    self.tokens.take_token(child, Token::Word);
                    delimiter = parse_delimiter(self.tokens.slice(child.start_byte(), child.end_byte()));
                }
                "heredoc_body" => body = Some(child),
                "heredoc_end" => self.finish_heredoc(child, delimiter.take(), tabs, body, simple),
                "pipeline" => self.convert_statements(child, piped),
                "file_redirect" | "herestring_redirect" => self.convert_redirect(child, simple),
                "||" | "&&" => self.tokens.take_syntax_token(child),
                "\n" => {}
                "word"
                | "string"
                | "raw_string"
                | "concatenation"
                | "number"
                | "simple_expansion"
                | "expansion"
                | "command_substitution"
                | "ansi_c_string" => self.convert_word(child, &mut simple.words),
                _ if child.is_named() => self.convert_statement(child, after),
                _ => self.tokens.take_syntax_token(child),
            }
        }
        if !simple.redirects.iter().any(|redirect| redirect.kind == RedirectKind::Document) {
            self.tokens.mark_unclear(UnclearReason::Form("a here-document"));
        }
    }

    /// Finds the end of a here-document as a shell does, and takes its text.
    fn finish_heredoc(
        &mut self,
        end: Node<'_>,
        delimiter: Option<(String, bool)>,
        tabs: bool,
        body: Option<Node<'_>>,
        simple: &mut SimpleCommand,
    ) {
        let target = self.read_heredoc(end, delimiter, tabs, body).unwrap_or_else(|| {
            self.tokens.mark_unclear(UnclearReason::Form("a here-document"));
            Word::unknown(body.map_or("", |body| self.tokens.slice(body.start_byte(), body.end_byte())))
        });
        simple.redirects.push(Redirect { kind: RedirectKind::Document, target });
        self.tokens.at = end.end_byte();
        self.tokens.last = Token::Word;
    }

    fn read_heredoc(
        &mut self,
        end: Node<'_>,
        delimiter: Option<(String, bool)>,
        tabs: bool,
        body: Option<Node<'_>>,
    ) -> Option<Word> {
        let (delimiter, quoted) = delimiter?;
        let rest = self.tokens.slice(self.tokens.at, end.end_byte());
        let line = rest.find(|c| c != ' ' && c != '\t')?;
        if !rest.get(line..)?.starts_with('\n') {
            return None;
        }
        let from = self.tokens.at + line + 1;
        let mut at = from;
        for line in self.tokens.slice(from, end.end_byte()).split_inclusive('\n') {
            let text = line.strip_suffix('\n').unwrap_or(line);
            let text = if tabs { text.trim_start_matches('\t') } else { text };
            if text == delimiter {
                let ends = at + line.trim_end_matches('\n').len();
                let next = self.tokens.slice(ends, ends + 1);
                if ends != end.end_byte() || !(next.is_empty() || next == "\n") {
                    return None;
                }
                if quoted {
                    return Some(Word::literal(self.tokens.slice(from, at)));
                }
                let mut nested = Vec::new();
                if let Some(body) = body {
                    collect_substitutions(body, &mut nested);
                }
                let place = (self.tokens.at, self.tokens.last);
                let word = self.read_heredoc_word(from, at, &nested);
                (self.tokens.at, self.tokens.last) = place;
                return match word {
                    Ok(word) => Some(word),
                    Err(why) => {
                        self.tokens.mark_unclear(why);
                        None
                    }
                };
            }
            at += line.len();
        }
        None
    }
}

/// Returns the delimiter, and whether it is quoted, so that nothing expands in the text. `None` for
/// anything but a plain name.
fn parse_delimiter(source: &str) -> Option<(String, bool)> {
    let bare = source
        .strip_prefix('\'')
        .and_then(|rest| rest.strip_suffix('\''))
        .or_else(|| source.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')))
        .or_else(|| source.strip_prefix('\\'));
    let name = bare.unwrap_or(source);
    let plain = !name.is_empty() && name.bytes().all(|byte| byte == b'_' || byte.is_ascii_alphanumeric());
    plain.then(|| (name.to_owned(), bare.is_some()))
}

/// Returns the last program of a statement, to which later words belong; `None` if it isn't a
/// program.
fn last_simple_command(statement: &mut Statement) -> Option<&mut SimpleCommand> {
    let mut here = statement;
    loop {
        match here {
            Statement::Simple(simple) => return Some(simple),
            Statement::Pipeline(parts) => here = parts.last_mut()?,
            Statement::Compound(_) | Statement::Function { .. } => return None,
        }
    }
}
