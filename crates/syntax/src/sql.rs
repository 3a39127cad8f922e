//! SQL without a grammar: created objects, and names that are used.
//!
//! There are as many dialects as there are servers. They agree on words, quotes and comments, and
//! only that is read: `CREATE`, the kind of object, its name, the columns of a table, and the end
//! of the statement.

use std::ops::Range;

use crate::doc_comments;
use crate::references::{MAX_REFERENCES, NameNode, UseKind};
use crate::symbol::{MAX_SIGNATURE_BYTES, MAX_SYMBOLS, Symbol, SymbolKind, Visibility};
use crate::syntax_analysis::SyntaxAnalysis;

/// Maximum bytes of a name.
const MAX_NAME_BYTES: usize = 200;
/// Maximum words that may stand between `CREATE` and the name.
const MAX_WORDS_BEFORE_NAME: usize = 12;

/// Words that can't begin a column definition.
const CONSTRAINT_WORDS: &[&str] = &[
    "primary",
    "foreign",
    "unique",
    "check",
    "constraint",
    "key",
    "index",
    "exclude",
    "like",
    "period",
    "fulltext",
    "spatial",
];

/// Common reserved words of all dialects. A name that is spelled like one isn't found.
const RESERVED_WORDS: &[&str] = &[
    "add",
    "after",
    "all",
    "alter",
    "and",
    "any",
    "as",
    "asc",
    "autoincrement",
    "auto_increment",
    "before",
    "begin",
    "between",
    "bigint",
    "binary",
    "blob",
    "boolean",
    "bool",
    "both",
    "by",
    "bytea",
    "call",
    "cascade",
    "case",
    "cast",
    "char",
    "character",
    "check",
    "collate",
    "column",
    "comment",
    "commit",
    "concurrently",
    "constraint",
    "create",
    "cross",
    "current",
    "current_timestamp",
    "cursor",
    "database",
    "date",
    "datetime",
    "decimal",
    "declare",
    "default",
    "deferrable",
    "definer",
    "delete",
    "delimiter",
    "desc",
    "distinct",
    "do",
    "domain",
    "double",
    "drop",
    "each",
    "else",
    "elsif",
    "end",
    "engine",
    "enum",
    "escape",
    "except",
    "execute",
    "exists",
    "explain",
    "extension",
    "false",
    "fetch",
    "float",
    "for",
    "foreign",
    "from",
    "full",
    "function",
    "go",
    "grant",
    "group",
    "having",
    "if",
    "ilike",
    "immutable",
    "in",
    "index",
    "inner",
    "insert",
    "instead",
    "int",
    "integer",
    "intersect",
    "interval",
    "into",
    "is",
    "isnull",
    "join",
    "json",
    "jsonb",
    "key",
    "language",
    "last",
    "leading",
    "left",
    "like",
    "limit",
    "loop",
    "materialized",
    "natural",
    "new",
    "not",
    "notnull",
    "null",
    "nulls",
    "numeric",
    "of",
    "off",
    "offset",
    "old",
    "on",
    "only",
    "or",
    "order",
    "outer",
    "over",
    "partition",
    "plpgsql",
    "precision",
    "primary",
    "procedure",
    "real",
    "references",
    "rename",
    "replace",
    "restrict",
    "return",
    "returning",
    "returns",
    "revoke",
    "right",
    "rollback",
    "row",
    "rows",
    "schema",
    "select",
    "sequence",
    "serial",
    "set",
    "smallint",
    "some",
    "start",
    "table",
    "temp",
    "temporary",
    "text",
    "then",
    "time",
    "timestamp",
    "timestamptz",
    "tinyint",
    "to",
    "trailing",
    "transaction",
    "trigger",
    "true",
    "truncate",
    "type",
    "union",
    "unique",
    "unsigned",
    "update",
    "use",
    "using",
    "uuid",
    "values",
    "varchar",
    "view",
    "volatile",
    "when",
    "where",
    "while",
    "with",
    "without",
    "zone",
];

#[derive(Clone, Copy, PartialEq, Debug)]
enum TokenKind {
    Word,
    /// A name in quotes of some kind.
    Quoted,
    Sign(u8),
    /// Consecutive comments, and strings.
    Comment,
    Other,
}

#[derive(Clone, Copy)]
struct SqlToken {
    kind: TokenKind,
    start: usize,
    end: usize,
    row: u32,
}

/// Returns the objects that a text creates, and the names that it uses.
pub(crate) fn analyse(text: &str) -> SyntaxAnalysis {
    let tokens = tokenize(text);
    let mut reader = StatementReader { text, tokens: &tokens, at: 0, symbols: Vec::new() };
    while reader.at < tokens.len() {
        reader.read_statement();
    }
    let symbols = reader.symbols;
    let names: Vec<NameNode> = tokens
        .iter()
        .filter(|token| match token.kind {
            TokenKind::Word => !RESERVED_WORDS.contains(&lowercase_word(text, token).as_str()),
            kind => kind == TokenKind::Quoted,
        })
        .take(MAX_REFERENCES)
        .map(|token| {
            let quoted = usize::from(token.kind == TokenKind::Quoted);
            let small = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
            NameNode {
                start: small(token.start + quoted),
                end: small(token.end - quoted),
                row: token.row,
                kind: UseKind::Plain,
            }
        })
        .collect();
    let references = crate::references::references_of(&names, &symbols, text);
    SyntaxAnalysis { symbols, references, ..SyntaxAnalysis::default() }
}

fn lowercase_word(text: &str, token: &SqlToken) -> String {
    text.get(token.start..token.end).unwrap_or_default().to_ascii_lowercase()
}

/// Splits a text into tokens. Every token ends after its beginning.
fn tokenize(text: &str) -> Vec<SqlToken> {
    let bytes = text.as_bytes();
    let mut tokens = Vec::new();
    let (mut at, mut row, mut counted) = (0, 0_u32, 0);
    while let Some(byte) = bytes.get(at).copied() {
        let rest = text.get(at..).unwrap_or_default();
        let to = |end: Option<usize>, after: usize| {
            end.map_or(bytes.len(), |end| (at + end + after).min(bytes.len()))
        };
        let (kind, end) = match byte {
            b if b.is_ascii_whitespace() => {
                at += 1;
                continue;
            }
            b'-' if rest.starts_with("--") => (TokenKind::Comment, to(rest.find('\n'), 0)),
            b'/' if rest.starts_with("/*") => (TokenKind::Comment, to(rest.find("*/"), 2)),
            b'\'' => (TokenKind::Other, to(closing_quote(rest, '\''), 1)),
            b'"' | b'`' => (TokenKind::Quoted, to(closing_quote(rest, char::from(byte)), 1)),
            b'[' if rest.as_bytes().get(1).is_some_and(|b| b.is_ascii_alphabetic() || *b == b'_') => {
                let line = rest.get(..rest.floor_char_boundary(MAX_NAME_BYTES)).unwrap_or_default();
                match line.find([']', '\n']).filter(|end| line.as_bytes().get(*end) == Some(&b']')) {
                    Some(end) => (TokenKind::Quoted, at + end + 1),
                    None => (TokenKind::Sign(byte), at + 1),
                }
            }
            b'$' if dollar_tag(rest).is_some() => {
                let tag = dollar_tag(rest).unwrap_or_default();
                // The content of such a quote is code: only its quotes are skipped.
                (TokenKind::Other, at + tag.len())
            }
            b if b.is_ascii_alphabetic() || b == b'_' || b >= 0x80 => {
                let long =
                    rest.find(|c: char| !c.is_alphanumeric() && c != '_' && c != '$').unwrap_or(rest.len());
                let one = rest.chars().next().map_or(1, char::len_utf8);
                (TokenKind::Word, at + long.max(one))
            }
            b if b.is_ascii_digit() => {
                (TokenKind::Other, to(rest.find(|c: char| !c.is_alphanumeric() && c != '.'), 0))
            }
            b => (TokenKind::Sign(b), at + 1),
        };
        row += u32::try_from(count_line_breaks(bytes, counted, at)).unwrap_or_default();
        counted = at;
        // An unclosed quote has no end of its own.
        let kind = if kind == TokenKind::Quoted && end - at < 3 { TokenKind::Other } else { kind };
        tokens.push(SqlToken { kind, start: at, end, row });
        at = end;
    }
    tokens
}

fn count_line_breaks(bytes: &[u8], from: usize, to: usize) -> usize {
    bytes.get(from..to).unwrap_or_default().iter().filter(|byte| **byte == b'\n').count()
}

/// Returns the position of the closing quote: a doubled one is a part of the content.
fn closing_quote(rest: &str, quote: char) -> Option<usize> {
    let mut at = 1;
    loop {
        let found = at + rest.get(at..)?.find(quote)?;
        if rest.get(found + 1..)?.starts_with(quote) {
            at = found + 2;
        } else {
            return Some(found);
        }
    }
}

/// Returns the tag of `$tag$`.
fn dollar_tag(rest: &str) -> Option<&str> {
    let inner = rest.strip_prefix('$')?;
    let end = inner.find(|c: char| !c.is_ascii_alphanumeric() && c != '_')?;
    inner.get(end..)?.starts_with('$').then(|| rest.get(..end + 2)).flatten()
}

struct StatementReader<'a> {
    text: &'a str,
    tokens: &'a [SqlToken],
    at: usize,
    symbols: Vec<Symbol>,
}

impl StatementReader<'_> {
    fn token_at(&self, at: usize) -> Option<&SqlToken> {
        self.tokens.get(at)
    }

    fn word_at(&self, at: usize) -> String {
        self.token_at(at)
            .filter(|token| token.kind == TokenKind::Word)
            .map(|token| lowercase_word(self.text, token))
            .unwrap_or_default()
    }

    fn is_sign_at(&self, at: usize, sign: u8) -> bool {
        self.token_at(at).is_some_and(|token| token.kind == TokenKind::Sign(sign))
    }

    /// Reads one statement, up to its semicolon.
    fn read_statement(&mut self) {
        let first = self.at;
        if self.word_at(first) == "create"
            && let Some((kind, named)) = self.object_kind(first)
            && let Some((name_at, name, name_range)) = self.qualified_name_at(named)
        {
            let last = self.statement_end(name_at + 1, kind == SymbolKind::Function);
            let symbol = self.symbols.len();
            self.add_symbol(kind, first..last, name_at, name, name_range, None);
            if kind == SymbolKind::Table && self.is_sign_at(name_at + 1, b'(') && self.symbols.len() > symbol
            {
                self.read_columns(name_at + 2, last, symbol);
            }
            self.at = last.max(first + 1);
            return;
        }
        self.at = first + 1;
    }

    /// Returns the kind of the created object, and the position where its name is searched.
    fn object_kind(&self, create: usize) -> Option<(SymbolKind, usize)> {
        for at in create + 1..create + 1 + MAX_WORDS_BEFORE_NAME {
            let kind = match self.word_at(at).as_str() {
                "table" | "view" => SymbolKind::Table,
                "function" | "procedure" | "proc" | "trigger" | "aggregate" | "event" | "macro" => {
                    SymbolKind::Function
                }
                "type" | "domain" => SymbolKind::Type,
                "schema" | "database" | "package" => SymbolKind::Module,
                "sequence" => SymbolKind::Variable,
                "index" => SymbolKind::Key,
                _ => match self.token_at(at)?.kind {
                    TokenKind::Sign(b';' | b'(' | b')') => return None,
                    _ => continue,
                },
            };
            let mut at = at + 1;
            while matches!(
                self.word_at(at).as_str(),
                "if" | "not" | "exists" | "concurrently" | "body" | "only"
            ) {
                at += 1;
            }
            return Some((kind, at));
        }
        None
    }

    /// Returns the last part of a possibly qualified name, and its position.
    fn qualified_name_at(&self, at: usize) -> Option<(usize, String, Range<usize>)> {
        let mut last = at;
        while self.is_sign_at(last + 1, b'.') {
            last += 2;
        }
        let token = self.token_at(last)?;
        let range = match token.kind {
            TokenKind::Word if self.word_at(last) != "on" => token.start..token.end,
            TokenKind::Quoted => token.start + 1..token.end - 1,
            _ => return None,
        };
        let name = self.text.get(range.clone())?;
        (!name.is_empty() && name.len() <= MAX_NAME_BYTES && !name.contains('\n'))
            .then(|| (last, name.to_owned(), range))
    }

    /// Returns the position after a statement's last token. A procedure ends with its outermost
    /// block.
    fn statement_end(&self, from: usize, procedure: bool) -> usize {
        let (mut depth, mut blocks, mut dollars) = (0_usize, 0_usize, 0_usize);
        let mut at = from;
        while let Some(token) = self.token_at(at) {
            match token.kind {
                TokenKind::Sign(b'(') => depth += 1,
                TokenKind::Sign(b')') => depth = depth.saturating_sub(1),
                TokenKind::Sign(b';') if depth == 0 && blocks == 0 && dollars % 2 == 0 => return at,
                TokenKind::Other if self.text.as_bytes().get(token.start) == Some(&b'$') => dollars += 1,
                TokenKind::Word => match self.word_at(at).as_str() {
                    "begin" | "case" if procedure => blocks += 1,
                    "end"
                        if procedure
                            && !matches!(
                                self.word_at(at + 1).as_str(),
                                "if" | "loop" | "while" | "repeat" | "for"
                            ) =>
                    {
                        blocks = blocks.saturating_sub(1);
                        // The `case` of `end case` begins none.
                        at += usize::from(self.word_at(at + 1) == "case");
                    }
                    // The next statement has begun, whatever is missing here.
                    "create" if depth == 0 && dollars % 2 == 0 && self.is_at_line_start(token) => return at,
                    "go" if !procedure && self.is_at_line_start(token) => return at,
                    _ => {}
                },
                _ => {}
            }
            at += 1;
        }
        at
    }

    fn is_at_line_start(&self, token: &SqlToken) -> bool {
        let before = self.text.get(..token.start).unwrap_or_default();
        before.is_empty() || before.ends_with('\n')
    }

    /// Reads the columns of a table, between the brackets.
    fn read_columns(&mut self, from: usize, last: usize, table: usize) {
        let (mut depth, mut fresh) = (1_usize, true);
        for at in from..last {
            let Some(kind) = self.token_at(at).map(|token| token.kind) else { return };
            match kind {
                TokenKind::Sign(b'(') => depth += 1,
                TokenKind::Sign(b')') => depth -= 1,
                TokenKind::Sign(b',') if depth == 1 => {
                    fresh = true;
                    continue;
                }
                TokenKind::Comment => continue,
                _ => {}
            }
            if depth == 0 {
                return;
            }
            if std::mem::take(&mut fresh)
                && !CONSTRAINT_WORDS.contains(&self.word_at(at).as_str())
                && let Some((own, name, range)) = self.qualified_name_at(at)
            {
                let end = self.column_end(at, last);
                self.add_symbol(SymbolKind::Field, at..end, own, name, range, Some(table));
            }
        }
    }

    /// Returns the position after a column's last token: the comma or bracket outside of its own
    /// brackets.
    fn column_end(&self, from: usize, last: usize) -> usize {
        let mut depth = 0_usize;
        for at in from..last {
            match self.token_at(at).map(|token| token.kind) {
                Some(TokenKind::Sign(b'(')) => depth += 1,
                Some(TokenKind::Sign(b',' | b')')) if depth == 0 => return at,
                Some(TokenKind::Sign(b')')) => depth -= 1,
                _ => {}
            }
        }
        last
    }

    fn add_symbol(
        &mut self,
        kind: SymbolKind,
        tokens: Range<usize>,
        name_at: usize,
        name: String,
        name_range: Range<usize>,
        inside: Option<usize>,
    ) {
        if self.symbols.len() >= MAX_SYMBOLS {
            return;
        }
        let Some((first, named, last)) = self
            .token_at(tokens.start)
            .zip(self.token_at(name_at))
            .zip(self.token_at(tokens.end.saturating_sub(1).max(name_at)))
            .map(|((first, named), last)| (first, named, last))
        else {
            return;
        };
        let comment = tokens
            .start
            .checked_sub(1)
            .and_then(|before| self.token_at(before))
            .filter(|before| before.kind == TokenKind::Comment && inside.is_none())
            .filter(|before| count_line_breaks(self.text.as_bytes(), before.end, first.start) <= 1);
        let start = comment.map_or(first.start, |comment| comment.start);
        let signature = self.text.get(first.start..last.end).unwrap_or_default();
        let signature = signature.split(['(', '\n', ';']).next().unwrap_or_default();
        let signature =
            signature.get(..signature.floor_char_boundary(MAX_SIGNATURE_BYTES)).unwrap_or_default();
        let before = |to: usize, row: u32, from: usize| {
            row + u32::try_from(count_line_breaks(self.text.as_bytes(), from, to)).unwrap_or_default() + 1
        };
        let outer = inside.and_then(|at| self.symbols.get(at));
        let first_line = comment.map_or(first.row, |comment| comment.row) + 1;
        let symbol = Symbol {
            kind,
            name,
            parents: outer.map(|outer| vec![outer.name.clone()]).unwrap_or_default(),
            full: start..last.end,
            definition: first.start..last.end,
            name_range,
            lines: first_line..before(last.end, last.row, last.start) + 1,
            name_line: named.row + 1,
            signature: signature.trim().to_owned(),
            doc: comment
                .and_then(|comment| self.text.get(comment.start..comment.end))
                .map(doc_comments::first_sentence)
                .unwrap_or_default(),
            visibility: Visibility::Public,
            local: false,
            inside,
        };
        self.symbols.push(symbol);
    }
}
