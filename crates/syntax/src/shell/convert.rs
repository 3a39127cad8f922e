//! Conversion of the grammar's tree into our own form, token by token.

use tree_sitter::{Node, Tree};

use super::expansion::{blank_separated, computed, is_name, is_plain_expansion};
use super::script::{
    Assignment, Compound, CompoundKind, Redirect, RedirectKind, Script, Simple, Statement, Unclear, Word,
};

/// Maximum nesting of statements and substitutions. Hand-written commands stay below ten.
const MAX_DEPTH: usize = 60;

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

/// Walks a tree, and checks every token against the text.
pub(super) struct Converter<'a> {
    text: &'a str,
    /// The offset up to which the text has been checked.
    pub(super) at: usize,
    pub(super) last: Token,
    depth: usize,
    /// The first reason not to understand the text.
    unclear: Option<Unclear>,
    /// Names of the variables that arithmetic uses.
    computed: Vec<String>,
}

/// Converts a whole text.
pub(super) fn script(text: &str, tree: &Tree) -> Script {
    let mut converter = Converter::new(text);
    if let Some(character) = text.chars().find(|character| is_deceptive(*character)) {
        converter.give_up(Unclear::Character(character));
    }
    let root = tree.root_node();
    if root.has_error() || root.kind() != "program" {
        converter.give_up(Unclear::Grammar);
    }
    let mut statements = Vec::new();
    converter.statements(root, &mut statements);
    converter.last = Token::Start;
    converter.gap(text.len(), Token::Start);
    if statements.is_empty() {
        converter.give_up(Unclear::Empty);
    }
    Script { statements, unclear: converter.unclear, computed: converter.computed, steps: 0 }
}

/// Returns true for characters that have no place in a command that a person approves: controls,
/// invisible marks, marks that change the writing direction, and blanks that shells don't treat as
/// blanks.
fn is_deceptive(character: char) -> bool {
    match character {
        '\n' | '\t' => false,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{3164}'
        | '\u{ffa0}' => true,
        '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' => true,
        '\u{2060}'..='\u{206f}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' => true,
        '\u{e0000}'..='\u{e0fff}' => true,
        ' ' => false,
        other => other.is_control() || other.is_whitespace(),
    }
}

impl<'a> Converter<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0, last: Token::Start, depth: 0, unclear: None, computed: Vec::new() }
    }

    pub(super) fn slice(&self, from: usize, to: usize) -> &'a str {
        self.text.get(from..to).unwrap_or_default()
    }

    pub(super) fn give_up(&mut self, why: Unclear) {
        self.unclear.get_or_insert(why);
    }

    /// Checks that a shell skips everything between the last token and `to`.
    pub(super) fn gap(&mut self, to: usize, next: Token) {
        let Some(gap) = self.text.get(self.at..to) else { return self.give_up(Unclear::Reading) };
        if gap.is_empty() {
            let apart = matches!(
                (self.last, next),
                (Token::Start | Token::Bracket, _)
                    | (_, Token::Start | Token::Bracket)
                    | (Token::Operator, Token::Word | Token::Keyword)
                    | (Token::Word | Token::Keyword, Token::Operator)
            );
            if !apart {
                self.give_up(Unclear::Reading);
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
                        self.give_up(Unclear::Reading);
                    }
                    blank = true;
                    1
                }
                b'\\' if rest.starts_with("\\\n") => 2,
                _ => {
                    self.give_up(Unclear::Reading);
                    return;
                }
            };
            rest = rest.get(skipped..).unwrap_or_default();
        }
        // A continued line joins the text on both sides.
        if !blank {
            self.give_up(Unclear::Reading);
        }
    }

    /// Takes the next token.
    pub(super) fn token(&mut self, node: Node<'_>, token: Token) {
        self.gap(node.start_byte(), token);
        self.at = node.end_byte();
        self.last = token;
        if node.is_missing() || node.start_byte() == node.end_byte() {
            self.give_up(Unclear::Grammar);
        }
    }

    pub(super) fn comment(&mut self, node: Node<'_>) {
        // A comment begins after a word's end, and only the line's end ends it.
        let before = self.slice(0, node.start_byte());
        let begins = before.is_empty() || before.ends_with([' ', '\t', '\n', ';', '&', '|', '(', ')']);
        if !begins || before.ends_with("\\ ") || before.ends_with("\\\t") {
            self.give_up(Unclear::Reading);
        }
        let last = std::mem::replace(&mut self.last, Token::Start);
        self.gap(node.start_byte(), Token::Start);
        self.last = last;
        self.at = node.end_byte();
        if !matches!(self.text.as_bytes().get(self.at), None | Some(b'\n')) {
            self.give_up(Unclear::Reading);
        }
    }

    /// Takes a token outside of words, by its kind.
    pub(super) fn sign(&mut self, node: Node<'_>) {
        let token = match self.slice(node.start_byte(), node.end_byte()) {
            // An item of a `case` may end on a line of its own.
            "(" | ")" | "$(" | "<(" | ">(" | "`" | ";;" => Token::Bracket,
            "{" | "}" | "!" => Token::Keyword,
            text if text.starts_with(|c: char| c.is_ascii_alphabetic()) => Token::Keyword,
            "((" | "))" | "$`" => {
                self.give_up(Unclear::Dialect("`((…))`"));
                Token::Bracket
            }
            "&" | ";" | "|" | "||" | "&&" | "|&" => Token::Operator,
            _ => {
                self.give_up(Unclear::Reading);
                Token::Operator
            }
        };
        self.token(node, token);
    }

    /// Converts every statement that is a child of `node`, and the tokens between them.
    pub(super) fn statements(&mut self, node: Node<'_>, out: &mut Vec<Statement>) {
        self.counted(node, out);
    }

    /// Does the same as [`Converter::statements`]; returns the number of statements that the first
    /// child became.
    fn counted(&mut self, node: Node<'_>, out: &mut Vec<Statement>) -> usize {
        if self.depth >= MAX_DEPTH {
            self.give_up(Unclear::Depth);
            self.at = node.end_byte();
            self.last = Token::Word;
            return 0;
        }
        self.depth += 1;
        let before = out.len();
        let mut first = None;
        let mut cursor = node.walk();
        for child in node.children(&mut cursor) {
            if child.is_named() && child.kind() != "comment" {
                // Lines may have ended before it. The grammar has a terminator there, which needn't
                // be a node.
                let follows = self.last == Token::Word;
                let ended = !follows || self.slice(self.at, child.start_byte()).contains('\n');
                if !ended {
                    self.give_up(Unclear::Reading);
                }
                if follows && ended {
                    self.last = Token::Start;
                }
                self.statement(child, out);
                first.get_or_insert(out.len() - before);
                if matches!(self.last, Token::Bracket | Token::Keyword) {
                    self.last = Token::Word;
                }
            } else if child.kind() == "comment" {
                self.comment(child);
            } else {
                if child.kind() == ";;" {
                    self.give_up(Unclear::Reading);
                }
                self.sign(child);
            }
        }
        self.depth -= 1;
        first.unwrap_or(0)
    }

    pub(super) fn statement(&mut self, node: Node<'_>, out: &mut Vec<Statement>) {
        if self.depth >= MAX_DEPTH {
            self.give_up(Unclear::Depth);
            self.at = node.end_byte();
            self.last = Token::Word;
            return;
        }
        self.depth += 1;
        match node.kind() {
            "command"
            | "variable_assignment"
            | "variable_assignments"
            | "declaration_command"
            | "unset_command" => {
                let mut simple = Simple::default();
                self.command(node, &mut simple, out);
                out.push(Statement::Simple(simple));
            }
            "redirected_statement" => self.redirected(node, out),
            "pipeline" => self.pipeline(node, out),
            "list" => self.list(node, out),
            "negated_command" => self.statements(node, out),
            "test_command" => self.test(node, out),
            "subshell" => self.compound(CompoundKind::Subshell, node, out),
            "compound_statement" => self.compound(CompoundKind::Group, node, out),
            "if_statement" => self.compound(CompoundKind::If, node, out),
            "while_statement" => self.compound(CompoundKind::While, node, out),
            "for_statement" => self.compound(CompoundKind::For, node, out),
            "case_statement" => self.compound(CompoundKind::Case, node, out),
            "do_group" | "elif_clause" | "else_clause" => self.statements(node, out),
            "function_definition" => self.function(node, out),
            "c_style_for_statement" => {
                self.give_up(Unclear::Dialect("`for ((…))`"));
                self.skip(node);
            }
            "ERROR" => {
                self.give_up(Unclear::Grammar);
                self.statements(node, out);
                self.at = node.end_byte();
            }
            _ => {
                self.give_up(Unclear::Grammar);
                self.skip(node);
            }
        }
        self.depth -= 1;
    }

    /// Converts `a | b`. The grammar attaches a redirection to the whole list before it, which is
    /// then the first stage of `a && b 2>&1 | c`; a shell attaches it to `b` only.
    fn pipeline(&mut self, node: Node<'_>, out: &mut Vec<Statement>) {
        let mut stages = Vec::new();
        let first = self.counted(node, &mut stages);
        let mut pipeline = stages.split_off(first.saturating_sub(1).min(stages.len()));
        out.append(&mut stages);
        // `a | b 2>&1 | c`: the redirected statement is a pipeline itself, and goes on.
        if let Some(Statement::Pipeline(begun)) = pipeline.first_mut() {
            let begun = std::mem::take(begun);
            drop(pipeline.splice(0..1, begun));
        }
        out.push(Statement::Pipeline(pipeline));
    }

    /// Skips a node that isn't understood.
    fn skip(&mut self, node: Node<'_>) {
        self.at = node.end_byte();
        self.last = Token::Word;
    }

    /// Converts `a && b || c`, which the grammar nests to the left.
    fn list(&mut self, node: Node<'_>, out: &mut Vec<Statement>) {
        let mut spine = vec![node];
        while let Some(left) =
            spine.last().and_then(|list| list.child(0)).filter(|left| left.kind() == "list")
        {
            spine.push(left);
        }
        let mut first = true;
        while let Some(list) = spine.pop() {
            let mut cursor = list.walk();
            for child in list.children(&mut cursor).skip(usize::from(!first)) {
                match child.kind() {
                    "comment" => self.comment(child),
                    _ if child.is_named() => self.statement(child, out),
                    _ => self.sign(child),
                }
            }
            first = false;
        }
    }

    fn compound(&mut self, kind: CompoundKind, node: Node<'_>, out: &mut Vec<Statement>) {
        let mut compound =
            Compound { kind, variable: None, words: Vec::new(), body: Vec::new(), redirects: Vec::new() };
        match kind {
            CompoundKind::For | CompoundKind::Case => self.headed(node, &mut compound),
            // bash reads arithmetic; other shells a subshell in a subshell.
            CompoundKind::Group if self.slice(node.start_byte(), node.end_byte()).starts_with("((") => {
                self.give_up(Unclear::Dialect("`((…))`"));
                return self.skip(node);
            }
            _ => self.statements(node, &mut compound.body),
        }
        out.push(Statement::Compound(compound));
    }

    /// Converts a loop or a condition with words before its statements.
    fn headed(&mut self, node: Node<'_>, compound: &mut Compound) {
        let mut cursor = node.walk();
        for child in node.children(&mut cursor) {
            match child.kind() {
                "comment" => self.comment(child),
                "variable_name" => {
                    compound.variable = Some(self.slice(child.start_byte(), child.end_byte()).to_owned());
                    self.token(child, Token::Keyword);
                }
                "do_group" => {
                    if self.last == Token::Word && self.slice(self.at, child.start_byte()).contains('\n') {
                        self.last = Token::Start;
                    }
                    self.statements(child, &mut compound.body);
                }
                "case_item" => {
                    self.last = Token::Start;
                    self.case_item(child, compound);
                }
                _ if child.is_named() => self.word(child, &mut compound.words),
                _ => self.sign(child),
            }
        }
    }

    fn case_item(&mut self, node: Node<'_>, compound: &mut Compound) {
        let mut cursor = node.walk();
        let mut patterns = true;
        for child in node.children(&mut cursor) {
            match child.kind() {
                "comment" => self.comment(child),
                _ if child.is_named() && patterns => self.word(child, &mut compound.words),
                _ if child.is_named() => {
                    if self.last == Token::Word && self.slice(self.at, child.start_byte()).contains('\n') {
                        self.last = Token::Start;
                    }
                    self.statement(child, &mut compound.body);
                }
                ";&" | ";;&" => {
                    self.give_up(Unclear::Dialect("`;&`"));
                    self.token(child, Token::Operator);
                }
                kind => {
                    patterns &= kind != ")";
                    self.sign(child);
                }
            }
        }
    }

    fn function(&mut self, node: Node<'_>, out: &mut Vec<Statement>) {
        let mut name = String::new();
        let mut body = Vec::new();
        let mut cursor = node.walk();
        for child in node.children(&mut cursor) {
            match child.kind() {
                "comment" => self.comment(child),
                "word" if name.is_empty() => {
                    self.slice(child.start_byte(), child.end_byte()).clone_into(&mut name);
                    self.token(child, Token::Keyword);
                }
                "file_redirect" | "herestring_redirect" => {
                    let mut simple = Simple::default();
                    self.redirect(child, &mut simple);
                    body.push(Statement::Simple(simple));
                }
                _ if child.is_named() => self.statement(child, &mut body),
                "function" => self.token(child, Token::Keyword),
                _ => self.sign(child),
            }
        }
        out.push(Statement::Function { name, body });
    }

    /// Converts a program, its arguments, assignments and redirections.
    fn command(&mut self, node: Node<'_>, simple: &mut Simple, out: &mut Vec<Statement>) {
        if node.kind() == "variable_assignment" {
            return self.assignment(node, simple);
        }
        let mut cursor = node.walk();
        for child in node.children(&mut cursor) {
            match child.kind() {
                "comment" => self.comment(child),
                "variable_assignment" if node.kind() != "declaration_command" => {
                    self.assignment(child, simple)
                }
                "file_redirect" | "herestring_redirect" => self.redirect(child, simple),
                "subshell" => {
                    self.give_up(Unclear::Reading);
                    self.statement(child, out);
                }
                _ => self.word(child, &mut simple.words),
            }
        }
    }

    fn assignment(&mut self, node: Node<'_>, simple: &mut Simple) {
        let mut words = Vec::new();
        self.word(node, &mut words);
        let source = self.slice(node.start_byte(), node.end_byte());
        let (name, _) = source.split_once('=').unwrap_or((source, ""));
        let name = name.strip_suffix('+').unwrap_or(name);
        if !is_name(name) {
            // A subscript is arithmetic, which may run commands.
            self.give_up(Unclear::Form("a subscript"));
        }
        let mut words = words.into_iter();
        let mut value = words.next().unwrap_or_default();
        if words.next().is_some() {
            self.give_up(Unclear::Dialect("braces"));
        }
        let text = std::mem::take(&mut value.text);
        text.split_once('=').map_or("", |(_, value)| value).clone_into(&mut value.text);
        simple.assignments.push(Assignment { name: name.to_owned(), value });
    }

    /// Reads one word of the tree by the shell's rules.
    pub(super) fn word(&mut self, node: Node<'_>, out: &mut Vec<Word>) {
        self.token(node, Token::Word);
        let (from, to) = (node.start_byte(), node.end_byte());
        let mut nested = Vec::new();
        substitutions(node, &mut nested);
        let place = (self.at, self.last);
        let words = self.words(from, to, &nested);
        (self.at, self.last) = place;
        match words {
            Ok(words) => out.extend(words),
            Err(why) => {
                self.give_up(why);
                out.push(Word::unknown(self.slice(from, to)));
            }
        }
    }

    /// Converts the statements of a substitution into `out`. Returns true if its result stays one
    /// word between quotes.
    pub(super) fn substitution(
        &mut self,
        node: Node<'_>,
        quoted: bool,
        out: &mut Vec<Statement>,
    ) -> Result<bool, Unclear> {
        let source = self.slice(node.start_byte(), node.end_byte());
        match node.kind() {
            // In a here-document the grammar reads arithmetic as a subshell in a substitution.
            "command_substitution" if source.starts_with("$((") => {
                return Err(Unclear::Form("arithmetic"));
            }
            "expansion" => {
                let body = source.strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
                return match body {
                    Some(body) if is_plain_expansion(body) => Ok(true),
                    _ => Err(Unclear::Form("`${…}`")),
                };
            }
            "arithmetic_expansion" => {
                let body = source.strip_prefix("$((").and_then(|rest| rest.strip_suffix("))"));
                let names = body.and_then(computed).ok_or(Unclear::Form("arithmetic"))?;
                self.computed.extend(names.into_iter().map(str::to_owned));
                return Ok(true);
            }
            _ => {}
        }
        if let Some(inside) = source.strip_prefix('`') {
            // The text between backquotes is unescaped before it is read, and ends at the next
            // backquote.
            let body = inside.strip_suffix('`').ok_or(Unclear::Reading)?;
            if body.contains(['\\', '`', '#']) || body.contains("<<") || (quoted && body.contains('"')) {
                return Err(Unclear::Form("a substitution between backticks"));
            }
        }
        let place = (self.at, self.last);
        (self.at, self.last) = (node.start_byte(), Token::Start);
        let mut cursor = node.walk();
        let redirect = node.children(&mut cursor).find(|child| child.kind() == "file_redirect");
        if let Some(redirect) = redirect {
            // `$(< file)`
            let mut simple = Simple::default();
            for child in node.children(&mut cursor) {
                if child.id() == redirect.id() {
                    self.redirect(child, &mut simple);
                } else {
                    self.sign(child);
                }
            }
            out.push(Statement::Simple(simple));
        } else {
            self.statements(node, out);
        }
        let whole = self.at == node.end_byte();
        (self.at, self.last) = place;
        if whole { Ok(true) } else { Err(Unclear::Reading) }
    }

    /// Converts a redirection; the words after its target are arguments.
    pub(super) fn redirect(&mut self, node: Node<'_>, simple: &mut Simple) {
        let mut kind = None;
        let mut words = Vec::new();
        let mut descriptor = false;
        let mut cursor = node.walk();
        for child in node.children(&mut cursor) {
            match child.kind() {
                "comment" => self.comment(child),
                "file_descriptor" => {
                    self.token(child, Token::Word);
                    descriptor = true;
                    if self.slice(child.start_byte(), child.end_byte()).starts_with('{') {
                        self.give_up(Unclear::Dialect("a named descriptor"));
                    }
                }
                operator if !child.is_named() && kind.is_none() => {
                    if descriptor && self.at != child.start_byte() {
                        self.give_up(Unclear::Reading);
                    }
                    kind = Some(match operator {
                        "<" => RedirectKind::Input,
                        ">" | ">>" | ">|" | "&>" | "&>>" => RedirectKind::Output,
                        "<&" | ">&" | "<&-" | ">&-" => RedirectKind::Duplicate,
                        "<<<" => RedirectKind::Text,
                        _ => {
                            self.give_up(Unclear::Form("a redirection"));
                            RedirectKind::Output
                        }
                    });
                    self.token(child, Token::Operator);
                    if operator.ends_with('-') {
                        simple
                            .redirects
                            .push(Redirect { kind: RedirectKind::Duplicate, target: Word::of("-") });
                    }
                }
                _ => self.word(child, &mut words),
            }
        }
        let Some(kind) = kind else { return self.give_up(Unclear::Grammar) };
        let closed = matches!(simple.redirects.last(), Some(last) if last.target.text == "-" && kind == RedirectKind::Duplicate && words.is_empty());
        let mut words = words.into_iter();
        if !closed {
            match words.next() {
                Some(target) if !target.dialect => simple.redirects.push(Redirect { kind, target }),
                Some(target) => {
                    self.give_up(Unclear::Dialect("the target of a redirection"));
                    simple.redirects.push(Redirect { kind, target });
                }
                None => self.give_up(Unclear::Grammar),
            }
        }
        simple.words.extend(words);
    }

    /// Converts `[ … ]` and `[[ … ]]`: ordinary words, to most shells, unless `&&` and the like
    /// stand between them.
    fn test(&mut self, node: Node<'_>, out: &mut Vec<Statement>) {
        let (from, to) = (node.start_byte(), node.end_byte());
        self.gap(from, Token::Word);
        let mut nested = Vec::new();
        substitutions(node, &mut nested);
        let mut nested = nested.as_slice();
        let mut simple = Simple::default();
        let source = self.slice(from, to);
        let mut places = blank_separated(source).into_iter().peekable();
        while let Some((start, end)) = places.next() {
            let here = source.get(start..end).unwrap_or_default();
            // A plain shell would run the text after the operator; inside a test it isn't a
            // program.
            if source.starts_with("[[") && matches!(here, "&&" | "||") {
                let next =
                    places.peek().and_then(|(start, end)| source.get(*start..*end)).unwrap_or_default();
                let operator = matches!(next.as_bytes(), [b'-', letter] if letter.is_ascii_alphabetic());
                if !operator {
                    self.give_up(Unclear::Dialect("`&&` between double brackets"));
                }
                simple.words.push(Word::of(here));
                continue;
            }
            let (start, end) = (from + start, from + end);
            let inside = nested.iter().take_while(|node| node.end_byte() <= end).count();
            let (here, later) = nested.split_at(inside);
            nested = later;
            let words = self.words(start, end, here);
            match words {
                Ok(words) => simple.words.extend(words),
                Err(why) => self.give_up(why),
            }
        }
        self.at = to;
        self.last = Token::Word;
        out.push(Statement::Simple(simple));
    }
}

/// Returns the outermost substitutions in a word of the tree, in order.
pub(super) fn substitutions<'t>(node: Node<'t>, out: &mut Vec<Node<'t>>) {
    if node.child_count() == 0 {
        return;
    }
    // Bounded: a word's parts are nested at most a few levels before a substitution begins.
    const MAX_LEVELS: usize = 24;
    let mut cursor = node.walk();
    let mut level = 0;
    loop {
        let here = cursor.node();
        let found = matches!(
            here.kind(),
            "command_substitution" | "process_substitution" | "arithmetic_expansion" | "expansion"
        );
        if found {
            out.push(here);
        }
        if !found && level < MAX_LEVELS && cursor.goto_first_child() {
            level += 1;
            continue;
        }
        loop {
            if level == 0 {
                return;
            }
            if cursor.goto_next_sibling() {
                break;
            }
            cursor.goto_parent();
            level -= 1;
        }
    }
}
