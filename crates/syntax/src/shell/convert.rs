//! Conversion of the grammar's tree into our own form, token by token.

use tree_sitter::{Node, Tree};

use super::expansion::{arithmetic_names, blank_separated, is_plain_expansion, is_variable_name};
use super::script::{
    Assignment, CompoundCommand, CompoundKind, Redirect, RedirectKind, Script, SimpleCommand, Statement,
    UnclearReason, Word,
};
use super::tokens::{Token, TokenReader};

/// Maximum nesting of statements and substitutions. Hand-written commands stay below ten.
const MAX_DEPTH: usize = 60;

/// Words that begin, divide or end a compound command where a program's name could stand.
const COMPOUND_KEYWORDS: [&str; 15] = [
    "if", "then", "elif", "else", "fi", "for", "select", "case", "esac", "while", "until", "do", "done",
    "function", "{",
];

/// Converts a tree, whose every token is checked against the text.
pub(super) struct Converter<'a> {
    pub(super) tokens: TokenReader<'a>,
    depth: usize,
    /// Names of the variables that arithmetic uses.
    computed: Vec<String>,
}

/// Converts a whole text.
pub(super) fn convert_tree(text: &str, tree: &Tree) -> Script {
    let mut converter = Converter::new(text);
    if let Some(character) = text.chars().find(|character| is_deceptive(*character)) {
        converter.tokens.mark_unclear(UnclearReason::Character(character));
    }
    let root = tree.root_node();
    if root.has_error() || root.kind() != "program" {
        converter.tokens.mark_unclear(UnclearReason::Grammar);
    }
    let mut statements = Vec::new();
    converter.convert_statements(root, &mut statements);
    converter.tokens.last = Token::Start;
    converter.tokens.check_gap(text.len(), Token::Start);
    if statements.is_empty() {
        converter.tokens.mark_unclear(UnclearReason::Empty);
    }
    Script { statements, unclear: converter.tokens.unclear, computed: converter.computed, steps: 0 }
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
        Self { tokens: TokenReader::new(text), depth: 0, computed: Vec::new() }
    }

    /// Converts every statement that is a child of `node`, and the tokens between them.
    pub(super) fn convert_statements(&mut self, node: Node<'_>, out: &mut Vec<Statement>) {
        self.convert_counting_first(node, out);
    }

    /// Converts like [`Converter::convert_statements`], and returns the number of statements that
    /// the first child became.
    fn convert_counting_first(&mut self, node: Node<'_>, out: &mut Vec<Statement>) -> usize {
        if self.depth >= MAX_DEPTH {
            self.tokens.mark_unclear(UnclearReason::Depth);
            self.tokens.at = node.end_byte();
            self.tokens.last = Token::Word;
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
                let follows = self.tokens.last == Token::Word;
                let ended = !follows || self.tokens.slice(self.tokens.at, child.start_byte()).contains('\n');
                if !ended {
                    self.tokens.mark_unclear(UnclearReason::Reading);
                }
                if follows && ended {
                    self.tokens.last = Token::Start;
                }
                self.convert_statement(child, out);
                first.get_or_insert(out.len() - before);
                if matches!(self.tokens.last, Token::Bracket | Token::Keyword) {
                    self.tokens.last = Token::Word;
                }
            } else if child.kind() == "comment" {
                self.tokens.take_comment(child);
            } else {
                if child.kind() == ";;" {
                    self.tokens.mark_unclear(UnclearReason::Reading);
                }
                self.tokens.take_syntax_token(child);
            }
        }
        self.depth -= 1;
        first.unwrap_or(0)
    }

    pub(super) fn convert_statement(&mut self, node: Node<'_>, out: &mut Vec<Statement>) {
        if self.depth >= MAX_DEPTH {
            self.tokens.mark_unclear(UnclearReason::Depth);
            self.tokens.at = node.end_byte();
            self.tokens.last = Token::Word;
            return;
        }
        self.depth += 1;
        match node.kind() {
            "command"
            | "variable_assignment"
            | "variable_assignments"
            | "declaration_command"
            | "unset_command" => {
                if self.begins_with_keyword(node) {
                    self.tokens.mark_unclear(UnclearReason::Reading);
                }
                let mut simple = SimpleCommand::default();
                self.convert_command(node, &mut simple, out);
                out.push(Statement::Simple(simple));
            }
            "redirected_statement" => self.convert_redirected(node, out),
            "pipeline" => self.convert_pipeline(node, out),
            "list" => self.convert_list(node, out),
            "negated_command" => self.convert_statements(node, out),
            "test_command" => self.convert_test(node, out),
            "subshell" => self.convert_compound(CompoundKind::Subshell, node, out),
            "compound_statement" => self.convert_compound(CompoundKind::Group, node, out),
            "if_statement" => self.convert_compound(CompoundKind::If, node, out),
            "while_statement" => self.convert_compound(CompoundKind::While, node, out),
            "for_statement" => self.convert_compound(CompoundKind::For, node, out),
            "case_statement" => self.convert_compound(CompoundKind::Case, node, out),
            "do_group" | "elif_clause" | "else_clause" => self.convert_statements(node, out),
            "function_definition" => self.convert_function(node, out),
            "c_style_for_statement" => {
                self.tokens.mark_unclear(UnclearReason::Dialect("`for ((…))`"));
                self.skip_node(node);
            }
            "ERROR" => {
                self.tokens.mark_unclear(UnclearReason::Grammar);
                self.convert_statements(node, out);
                self.tokens.at = node.end_byte();
            }
            _ => {
                self.tokens.mark_unclear(UnclearReason::Grammar);
                self.skip_node(node);
            }
        }
        self.depth -= 1;
    }

    /// Returns whether the grammar has taken a keyword of a compound command for a program's name,
    /// as it does after `!`.
    fn begins_with_keyword(&self, node: Node<'_>) -> bool {
        node.child(0).filter(|child| child.kind() == "command_name").is_some_and(|name| {
            COMPOUND_KEYWORDS.contains(&self.tokens.slice(name.start_byte(), name.end_byte()))
        })
    }

    /// Converts `a | b`. The grammar attaches a redirection to the whole list before it, which is
    /// then the first stage of `a && b 2>&1 | c`; a shell attaches it to `b` only.
    fn convert_pipeline(&mut self, node: Node<'_>, out: &mut Vec<Statement>) {
        let mut stages = Vec::new();
        let first = self.convert_counting_first(node, &mut stages);
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
    fn skip_node(&mut self, node: Node<'_>) {
        self.tokens.at = node.end_byte();
        self.tokens.last = Token::Word;
    }

    /// Converts `a && b || c`, which the grammar nests to the left.
    fn convert_list(&mut self, node: Node<'_>, out: &mut Vec<Statement>) {
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
                    "comment" => self.tokens.take_comment(child),
                    _ if child.is_named() => self.convert_statement(child, out),
                    _ => self.tokens.take_syntax_token(child),
                }
            }
            first = false;
        }
    }

    fn convert_compound(&mut self, kind: CompoundKind, node: Node<'_>, out: &mut Vec<Statement>) {
        let mut compound = CompoundCommand {
            kind,
            variable: None,
            words: Vec::new(),
            body: Vec::new(),
            redirects: Vec::new(),
        };
        match kind {
            CompoundKind::For | CompoundKind::Case => self.convert_loop_or_condition(node, &mut compound),
            // bash reads arithmetic; other shells a subshell in a subshell.
            CompoundKind::Group
                if self.tokens.slice(node.start_byte(), node.end_byte()).starts_with("((") =>
            {
                self.tokens.mark_unclear(UnclearReason::Dialect("`((…))`"));
                return self.skip_node(node);
            }
            _ => self.convert_statements(node, &mut compound.body),
        }
        out.push(Statement::Compound(compound));
    }

    /// Converts a loop or a condition with words before its statements.
    fn convert_loop_or_condition(&mut self, node: Node<'_>, compound: &mut CompoundCommand) {
        let mut cursor = node.walk();
        for child in node.children(&mut cursor) {
            match child.kind() {
                "comment" => self.tokens.take_comment(child),
                "variable_name" => {
                    compound.variable =
                        Some(self.tokens.slice(child.start_byte(), child.end_byte()).to_owned());
                    self.tokens.take_token(child, Token::Keyword);
                }
                "do_group" => {
                    if self.tokens.last == Token::Word
                        && self.tokens.slice(self.tokens.at, child.start_byte()).contains('\n')
                    {
                        self.tokens.last = Token::Start;
                    }
                    self.convert_statements(child, &mut compound.body);
                }
                "case_item" => {
                    self.tokens.last = Token::Start;
                    self.convert_case_item(child, compound);
                }
                _ if child.is_named() => self.convert_word(child, &mut compound.words),
                _ => self.tokens.take_syntax_token(child),
            }
        }
    }

    fn convert_case_item(&mut self, node: Node<'_>, compound: &mut CompoundCommand) {
        let mut cursor = node.walk();
        let mut patterns = true;
        for child in node.children(&mut cursor) {
            match child.kind() {
                "comment" => self.tokens.take_comment(child),
                _ if child.is_named() && patterns => self.convert_word(child, &mut compound.words),
                _ if child.is_named() => {
                    if self.tokens.last == Token::Word
                        && self.tokens.slice(self.tokens.at, child.start_byte()).contains('\n')
                    {
                        self.tokens.last = Token::Start;
                    }
                    self.convert_statement(child, &mut compound.body);
                }
                ";&" | ";;&" => {
                    self.tokens.mark_unclear(UnclearReason::Dialect("`;&`"));
                    self.tokens.take_token(child, Token::Operator);
                }
                kind => {
                    patterns &= kind != ")";
                    self.tokens.take_syntax_token(child);
                }
            }
        }
    }

    fn convert_function(&mut self, node: Node<'_>, out: &mut Vec<Statement>) {
        let mut name = String::new();
        let mut body = Vec::new();
        let mut cursor = node.walk();
        for child in node.children(&mut cursor) {
            match child.kind() {
                "comment" => self.tokens.take_comment(child),
                "word" if name.is_empty() => {
                    self.tokens.slice(child.start_byte(), child.end_byte()).clone_into(&mut name);
                    self.tokens.take_token(child, Token::Keyword);
                }
                "file_redirect" | "herestring_redirect" => {
                    let mut simple = SimpleCommand::default();
                    self.convert_redirect(child, &mut simple);
                    body.push(Statement::Simple(simple));
                }
                _ if child.is_named() => self.convert_statement(child, &mut body),
                "function" => self.tokens.take_token(child, Token::Keyword),
                _ => self.tokens.take_syntax_token(child),
            }
        }
        out.push(Statement::Function { name, body });
    }

    /// Converts a program, its arguments, assignments and redirections.
    fn convert_command(&mut self, node: Node<'_>, simple: &mut SimpleCommand, out: &mut Vec<Statement>) {
        if node.kind() == "variable_assignment" {
            return self.convert_assignment(node, simple);
        }
        let mut cursor = node.walk();
        for child in node.children(&mut cursor) {
            match child.kind() {
                "comment" => self.tokens.take_comment(child),
                "variable_assignment" if node.kind() != "declaration_command" => {
                    self.convert_assignment(child, simple)
                }
                "file_redirect" | "herestring_redirect" => self.convert_redirect(child, simple),
                "subshell" => {
                    self.tokens.mark_unclear(UnclearReason::Reading);
                    self.convert_statement(child, out);
                }
                _ => self.convert_word(child, &mut simple.words),
            }
        }
    }

    fn convert_assignment(&mut self, node: Node<'_>, simple: &mut SimpleCommand) {
        let mut words = Vec::new();
        self.convert_word(node, &mut words);
        let source = self.tokens.slice(node.start_byte(), node.end_byte());
        let (name, _) = source.split_once('=').unwrap_or((source, ""));
        let name = name.strip_suffix('+').unwrap_or(name);
        if !is_variable_name(name) {
            // A subscript is arithmetic, which may run commands.
            self.tokens.mark_unclear(UnclearReason::Form("a subscript"));
        }
        let mut words = words.into_iter();
        let mut value = words.next().unwrap_or_default();
        if words.next().is_some() {
            self.tokens.mark_unclear(UnclearReason::Dialect("braces"));
        }
        let text = std::mem::take(&mut value.text);
        text.split_once('=').map_or("", |(_, value)| value).clone_into(&mut value.text);
        simple.assignments.push(Assignment { name: name.to_owned(), value });
    }

    /// Reads one word of the tree by the shell's rules.
    pub(super) fn convert_word(&mut self, node: Node<'_>, out: &mut Vec<Word>) {
        self.tokens.take_token(node, Token::Word);
        let (from, to) = (node.start_byte(), node.end_byte());
        let mut nested = Vec::new();
        collect_substitutions(node, &mut nested);
        let place = (self.tokens.at, self.tokens.last);
        let words = self.read_words(from, to, &nested);
        (self.tokens.at, self.tokens.last) = place;
        match words {
            Ok(words) => out.extend(words),
            Err(why) => {
                self.tokens.mark_unclear(why);
                out.push(Word::unknown(self.tokens.slice(from, to)));
            }
        }
    }

    /// Converts the statements of a substitution into `out`. Returns true if its result stays one
    /// word between quotes.
    pub(super) fn convert_substitution(
        &mut self,
        node: Node<'_>,
        quoted: bool,
        out: &mut Vec<Statement>,
    ) -> Result<bool, UnclearReason> {
        let source = self.tokens.slice(node.start_byte(), node.end_byte());
        match node.kind() {
            // In a here-document the grammar reads arithmetic as a subshell in a substitution.
            "command_substitution" if source.starts_with("$((") => {
                return Err(UnclearReason::Form("arithmetic"));
            }
            "expansion" => {
                let body = source.strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
                return match body {
                    Some(body) if is_plain_expansion(body) => Ok(true),
                    _ => Err(UnclearReason::Form("`${…}`")),
                };
            }
            "arithmetic_expansion" => {
                let body = source.strip_prefix("$((").and_then(|rest| rest.strip_suffix("))"));
                let names = body.and_then(arithmetic_names).ok_or(UnclearReason::Form("arithmetic"))?;
                self.computed.extend(names.into_iter().map(str::to_owned));
                return Ok(true);
            }
            _ => {}
        }
        if let Some(inside) = source.strip_prefix('`') {
            // The text between backquotes is unescaped before it is read, and ends at the next
            // backquote.
            let body = inside.strip_suffix('`').ok_or(UnclearReason::Reading)?;
            if body.contains(['\\', '`', '#']) || body.contains("<<") || (quoted && body.contains('"')) {
                return Err(UnclearReason::Form("a substitution between backticks"));
            }
        }
        let place = (self.tokens.at, self.tokens.last);
        (self.tokens.at, self.tokens.last) = (node.start_byte(), Token::Start);
        let mut cursor = node.walk();
        let redirect = node.children(&mut cursor).find(|child| child.kind() == "file_redirect");
        if let Some(redirect) = redirect {
            // `$(< file)`
            let mut simple = SimpleCommand::default();
            for child in node.children(&mut cursor) {
                if child.id() == redirect.id() {
                    self.convert_redirect(child, &mut simple);
                } else {
                    self.tokens.take_syntax_token(child);
                }
            }
            out.push(Statement::Simple(simple));
        } else {
            self.convert_statements(node, out);
        }
        let whole = self.tokens.at == node.end_byte();
        (self.tokens.at, self.tokens.last) = place;
        if whole { Ok(true) } else { Err(UnclearReason::Reading) }
    }

    /// Converts a redirection; the words after its target are arguments.
    pub(super) fn convert_redirect(&mut self, node: Node<'_>, simple: &mut SimpleCommand) {
        let mut kind = None;
        let mut words = Vec::new();
        let mut descriptor = false;
        let mut cursor = node.walk();
        for child in node.children(&mut cursor) {
            match child.kind() {
                "comment" => self.tokens.take_comment(child),
                "file_descriptor" => {
                    self.tokens.take_token(child, Token::Word);
                    descriptor = true;
                    if self.tokens.slice(child.start_byte(), child.end_byte()).starts_with('{') {
                        self.tokens.mark_unclear(UnclearReason::Dialect("a named descriptor"));
                    }
                }
                operator if !child.is_named() && kind.is_none() => {
                    if descriptor && self.tokens.at != child.start_byte() {
                        self.tokens.mark_unclear(UnclearReason::Reading);
                    }
                    kind = Some(match operator {
                        "<" => RedirectKind::Input,
                        ">" | ">>" | ">|" | "&>" | "&>>" => RedirectKind::Output,
                        "<&" | ">&" | "<&-" | ">&-" => RedirectKind::Duplicate,
                        "<<<" => RedirectKind::Text,
                        _ => {
                            self.tokens.mark_unclear(UnclearReason::Form("a redirection"));
                            RedirectKind::Output
                        }
                    });
                    self.tokens.take_token(child, Token::Operator);
                    if operator.ends_with('-') {
                        simple
                            .redirects
                            .push(Redirect { kind: RedirectKind::Duplicate, target: Word::literal("-") });
                    }
                }
                _ => self.convert_word(child, &mut words),
            }
        }
        let Some(kind) = kind else { return self.tokens.mark_unclear(UnclearReason::Grammar) };
        let closed = matches!(simple.redirects.last(), Some(last) if last.target.text == "-" && kind == RedirectKind::Duplicate && words.is_empty());
        let mut words = words.into_iter();
        if !closed {
            match words.next() {
                Some(target) if !target.dialect => simple.redirects.push(Redirect { kind, target }),
                Some(target) => {
                    self.tokens.mark_unclear(UnclearReason::Dialect("the target of a redirection"));
                    simple.redirects.push(Redirect { kind, target });
                }
                None => self.tokens.mark_unclear(UnclearReason::Grammar),
            }
        }
        simple.words.extend(words);
    }

    /// Converts `[ … ]` and `[[ … ]]`: ordinary words, to most shells, unless `&&` and the like
    /// stand between them.
    fn convert_test(&mut self, node: Node<'_>, out: &mut Vec<Statement>) {
        let (from, to) = (node.start_byte(), node.end_byte());
        self.tokens.check_gap(from, Token::Word);
        let mut nested = Vec::new();
        collect_substitutions(node, &mut nested);
        let mut nested = nested.as_slice();
        let mut simple = SimpleCommand::default();
        let source = self.tokens.slice(from, to);
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
                    self.tokens.mark_unclear(UnclearReason::Dialect("`&&` between double brackets"));
                }
                simple.words.push(Word::literal(here));
                continue;
            }
            let (start, end) = (from + start, from + end);
            let inside = nested.iter().take_while(|node| node.end_byte() <= end).count();
            let (here, later) = nested.split_at(inside);
            nested = later;
            let words = self.read_words(start, end, here);
            match words {
                Ok(words) => simple.words.extend(words),
                Err(why) => self.tokens.mark_unclear(why),
            }
        }
        self.tokens.at = to;
        self.tokens.last = Token::Word;
        out.push(Statement::Simple(simple));
    }
}

/// Returns the outermost substitutions in a word of the tree, in order.
pub(super) fn collect_substitutions<'t>(node: Node<'t>, out: &mut Vec<Node<'t>>) {
    if node.child_count() == 0 {
        return;
    }
    // Bounded: a word's parts are nested at most a few levels before a substitution begins.
    const MAX_WORD_DEPTH: usize = 24;
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
        if !found && level < MAX_WORD_DEPTH && cursor.goto_first_child() {
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
