//! The tests of a file and the helpers beside them, from its syntax tree.

use std::collections::BTreeSet;
use std::ops::Range;

use journeyman_syntax::Node;
use journeyman_syntax::language::Language;

use super::assertion::{Assertion, Dialect, chain_names, read_assertion, read_call_of_helper, read_guard};
use super::discovery::is_discovered;
use super::marks::{Mark, hides_by_tag, holds_elsewhere, mark_of_decoration, new_mark, option_skips};
use super::node_kinds::{is_block, is_call, is_closure, is_conditional, is_decoration, is_function};
use super::source::{Source, Token, TokenKind, children, is_comment, is_text, line_of};
use super::statements::Statements;
use super::test_helpers::{failing_functions, is_test_program};
use super::vocabulary::{
    is_focus, is_group_call, is_skip, is_skipping_test_call, is_test_attribute, is_test_call,
};

/// Maximum number of tests and helpers of a file that are compared.
const MAX_UNITS: usize = 1_000;
/// Maximum number of assertions of one of them.
const MAX_ASSERTIONS: usize = 300;

/// Maximum number of skip marks of one of them.
const MAX_MARKS: usize = 20;

/// A test, a helper beside tests, or the rest of a file of tests.
#[derive(Debug, Clone, Default)]
pub(super) struct Unit<'t> {
    /// Its own name; empty for the rest of a file.
    pub(super) name: String,
    pub(super) line: u32,
    pub(super) is_test: bool,
    /// True if the test runs only where other code names it, as in C.
    pub(super) is_registered: bool,
    pub(super) marks: Vec<Mark>,
    pub(super) assertions: Vec<Assertion<'t>>,
    /// Tokens without comments, for finding a renamed test by its similarity.
    pub(super) tokens: Vec<Token<'t>>,
    /// Literals outside of assertions; true for those in tables of cases.
    pub(super) outside: Vec<(&'t str, bool)>,
    /// Words that are called or named.
    pub(super) words: BTreeSet<&'t str>,
    /// The line of a statement that ends the unit before later ones.
    pub(super) ends_early: Option<u32>,
    /// The byte range.
    pub(super) range: Range<usize>,
}

/// The kind of a node's parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Above {
    /// The node has no parent.
    #[default]
    Nothing,
    /// A list of statements.
    Block,
    /// An expression that awaits its value, or returns it.
    Await,
    /// Any other kind.
    Other,
}

impl Above {
    fn of(kind: &str) -> Self {
        match kind {
            "program" => Self::Block,
            "return_statement" => Self::Await,
            kind if kind.contains("await") => Self::Await,
            kind if is_block(kind) => Self::Block,
            _ => Self::Other,
        }
    }
}

/// The surroundings of a node.
#[derive(Debug, Clone, Default)]
struct Scope {
    unit: usize,
    conditions: usize,
    swallowed: bool,
    /// True among the statements of the unit itself.
    direct: bool,
    in_tests: bool,
    inherited: Vec<Mark>,
    /// The kind of the parent, which the tree could only find by a walk from the root.
    above: Above,
    /// True within a class that no runner of Python takes for tests.
    in_other_class: bool,
}

/// Finds the tests and helpers of a file; none in a file of the product, unless it has tests of its
/// own.
pub(super) fn find_units<'t>(path: &str, source: &Source<'t>, is_test: bool) -> Vec<Unit<'t>> {
    let in_tests = is_test
        || path.ends_with(".py") && source.text.contains("import unittest")
        || is_test_program(source);
    let mut walk = Walk {
        source,
        statements: Statements { source, dialect: dialect_of(source.language) },
        discovered: is_discovered(path, source.language),
        failing: if in_tests { failing_functions(source) } else { BTreeSet::new() },
        units: vec![Unit { line: 1, range: 0..source.text.len(), ..Unit::default() }],
        assertion_ranges: Vec::new(),
    };
    match &source.tree {
        Some(tree) => {
            walk.visit(tree.root(), &Scope { in_tests, direct: true, ..Scope::default() });
        }
        None if in_tests => walk.scan_lines(),
        None => {}
    }
    walk.finish(in_tests)
}

fn dialect_of(language: Option<Language>) -> Dialect {
    Dialect {
        go: language == Some(Language::Go),
        rust: language == Some(Language::Rust),
        script: matches!(language, Some(Language::JavaScript | Language::TypeScript | Language::Tsx)),
    }
}

struct Walk<'s, 't> {
    source: &'s Source<'t>,
    statements: Statements<'s, 't>,
    discovered: bool,
    /// Functions that make a test program in C fail.
    failing: BTreeSet<&'t str>,
    units: Vec<Unit<'t>>,
    assertion_ranges: Vec<Range<usize>>,
}

impl<'t> Walk<'_, 't> {
    fn visit(&mut self, node: Node<'_>, scope: &Scope) {
        let kind = node.kind();
        if is_comment(kind) || is_text(kind) || is_decoration(node) {
            return;
        }
        if let Some(scope) = self.enter_definition(node, scope) {
            return self.visit_children(node, &scope);
        }
        if scope.in_tests {
            if is_call(kind) && self.visit_test_call(node, scope) {
                return;
            }
            if self.visit_assertion(node, scope) {
                return;
            }
            self.note_skip(node, scope);
            if is_conditional(kind) {
                return self.visit_conditional(node, scope);
            }
            if self.statements.catches_failures(node) {
                let inside = Scope { swallowed: true, direct: false, ..scope.clone() };
                return self.visit_children(node, &inside);
            }
            if kind.starts_with("return") && scope.direct && node.next_named_sibling().is_some() {
                self.end_early(node, scope);
            }
        }
        let transparent = is_block(kind) || kind == "expression_statement" || scope.above == Above::Nothing;
        let direct = scope.direct && transparent;
        self.visit_children(node, &Scope { direct, ..scope.clone() });
    }

    fn visit_children(&mut self, node: Node<'_>, scope: &Scope) {
        let scope = Scope { above: Above::of(node.kind()), ..scope.clone() };
        for child in children(node) {
            self.visit(child, &scope);
        }
    }

    /// Opens a unit for a function, or a region of tests for a module of them.
    fn enter_definition(&mut self, node: Node<'_>, scope: &Scope) -> Option<Scope> {
        let kind = node.kind();
        let is_group =
            matches!(kind, "mod_item" | "class_definition" | "class_declaration" | "class" | "class_body");
        if !is_group && !is_function(kind) {
            return None;
        }
        let decorations = self.statements.decorations(node);
        let words: Vec<&Token<'t>> =
            decorations.iter().flatten().filter(|token| token.kind == TokenKind::Word).collect();
        let marks = decorations.iter().filter_map(|tokens| mark_of_decoration(tokens));
        let marks: Vec<Mark> = marks.chain(scope.inherited.iter().cloned()).collect();
        if is_group {
            let configured = words
                .windows(2)
                .any(|pair| matches!(pair, [cfg, test] if cfg.text == "cfg" && test.text == "test"));
            return Some(Scope {
                in_tests: scope.in_tests || configured,
                inherited: marks,
                direct: true,
                in_other_class: self.statements.is_other_class(node),
                ..scope.clone()
            });
        }
        let attributed = words.iter().enumerate().any(|(place, word)| {
            let in_condition = place > 0 && words.first().is_some_and(|first| first.text.starts_with("cfg"));
            is_test_attribute(word.text) && !in_condition
        });
        let name = self.statements.name_of(node)?;
        // A function within a test is part of it.
        let nested = scope.unit != 0 && self.units.get(scope.unit).is_some_and(|unit| unit.is_test);
        if !(scope.in_tests || attributed) || nested || self.units.len() >= MAX_UNITS {
            return None;
        }
        let in_class = !scope.in_other_class;
        let is_test = attributed || self.statements.is_test_name(&name, node) && scope.in_tests && in_class;
        let mut marks = marks;
        if name.starts_with("DISABLED_")
            || self
                .source
                .text_of(node)
                .get(..200.min(node.byte_range().len()))
                .is_some_and(|head| head.split('{').next().is_some_and(|head| head.contains("DISABLED_")))
        {
            marks.push(Mark { line: line_of(node), quote: name.clone(), elsewhere: false, focus: false });
        }
        let first = decorations.iter().flatten().map(|token| token.start).min();
        let range = first.unwrap_or(usize::MAX).min(node.start_byte())..node.end_byte();
        let unit = self.open_unit(range, name, line_of(node), is_test, marks);
        Some(Scope { unit, direct: true, in_tests: true, ..Scope::default() })
    }

    fn open_unit(
        &mut self,
        range: Range<usize>,
        name: String,
        line: u32,
        is_test: bool,
        marks: Vec<Mark>,
    ) -> usize {
        self.units.push(Unit {
            name,
            line,
            is_test: is_test && self.discovered,
            is_registered: matches!(self.source.language, Some(Language::C | Language::Cpp | Language::Bash)),
            marks,
            range,
            ..Unit::default()
        });
        self.units.len() - 1
    }

    /// Opens a unit for a test that is a call with a block; returns true if the node is visited.
    fn visit_test_call(&mut self, node: Node<'_>, scope: &Scope) -> bool {
        let tokens = self.source.tokens_of(node);
        let names = chain_names(tokens);
        let Some(first) = names.first().copied() else { return false };
        let run = self.statements.dialect.go && matches!(names.as_slice(), ["t" | "b", "Run"]);
        let run = run && self.statements.first_argument_is_text(node);
        let is_test = is_test_call(first) || run || matches!(names.as_slice(), ["Deno", "test"]);
        if !(is_test || is_group_call(first)) || self.statements.opens_no_block(node) {
            return false;
        }
        let head = self.statements.head_of(node);
        let modifiers = names.iter().skip(1).filter(|name| is_skip(name)).count();
        let mut marks = scope.inherited.clone();
        let options = option_skips(&head)
            || head.iter().any(|token| token.kind == TokenKind::Text && hides_by_tag(token.text));
        if modifiers > 0 || is_skipping_test_call(first) || options {
            marks.push(new_mark(&head, false));
        }
        if names.iter().any(|name| is_focus(name)) && !run {
            marks.push(new_mark(&head, true));
        }
        let scope = match is_test {
            true if self.units.len() < MAX_UNITS => {
                let name = head
                    .iter()
                    .find(|token| token.kind == TokenKind::Text)
                    .map_or(String::new(), |token| token.text.trim_matches(['"', '\'', '`']).to_owned());
                let mut range = node.byte_range();
                if let Some(block) = self.statements.block_after(node) {
                    range.end = block.end_byte();
                }
                let unit = self.open_unit(range, name, line_of(node), true, marks);
                Scope { unit, direct: true, in_tests: true, ..Scope::default() }
            }
            _ => Scope { inherited: marks, ..scope.clone() },
        };
        self.visit_children(node, &scope);
        if let Some(block) = self.statements.block_after(node) {
            self.visit_children(block, &scope);
        }
        true
    }

    /// Adds an assertion to its unit; returns true if the node is an assertion.
    fn visit_assertion(&mut self, node: Node<'_>, scope: &Scope) -> bool {
        let kind = node.kind();
        if !(is_call(kind) || matches!(kind, "assert_statement" | "infix_expression")) {
            return false;
        }
        let tokens = self.source.tokens_of(node);
        let of_helper = || read_call_of_helper(tokens, &self.failing);
        let Some(assertion) = read_assertion(tokens, self.statements.dialect).or_else(of_helper) else {
            return false;
        };
        self.add_assertion(assertion, node, scope);
        // Assertions in a closure among the arguments count as well.
        let mut left = children(node);
        while let Some(inner) = left.pop() {
            if is_closure(inner.kind()) {
                self.visit_children(inner, &Scope { direct: false, ..scope.clone() });
            } else {
                left.extend(children(inner));
            }
        }
        true
    }

    fn add_assertion(&mut self, mut assertion: Assertion<'t>, node: Node<'_>, scope: &Scope) {
        assertion.awaited = scope.above == Above::Await;
        assertion.conditions = scope.conditions;
        assertion.swallowed = scope.swallowed;
        self.assertion_ranges.push(node.byte_range());
        if let Some(unit) = self.units.get_mut(scope.unit)
            && unit.assertions.len() < MAX_ASSERTIONS
        {
            unit.assertions.push(assertion);
        }
    }

    /// Visits an `if`, which is an assertion itself if its body makes the test fail.
    fn visit_conditional(&mut self, node: Node<'_>, scope: &Scope) {
        let body = ["consequence", "body"].iter().find_map(|field| node.child_by_field_name(field));
        let condition = node.child_by_field_name("condition");
        let tokens = match (body, condition) {
            (Some(body), Some(_)) => {
                let all = self.source.tokens_of(node).iter();
                let outside = all.filter(|token| !body.byte_range().contains(&token.start));
                outside
                    .filter(|token| !matches!(token.text, "if" | "then" | "end" | "else"))
                    .copied()
                    .collect()
            }
            _ => Vec::new(),
        };
        if let Some(body) = body
            && self.statements.makes_fail(body)
            && let Some(guard) = read_guard(&tokens)
        {
            self.add_assertion(guard, node, scope);
            return;
        }
        let has_else = node.child_by_field_name("alternative").is_some();
        let returns = body.is_some_and(|body| self.statements.only_returns(body));
        if returns && scope.direct && node.next_named_sibling().is_some() && !holds_elsewhere(&tokens) {
            self.end_early(node, scope);
        }
        let steps = usize::from(!has_else);
        let inside = Scope { conditions: scope.conditions + steps, direct: false, ..scope.clone() };
        self.visit_children(node, &inside);
    }

    /// Adds a mark for a call or a statement that skips the test it stands in.
    fn note_skip(&mut self, node: Node<'_>, scope: &Scope) {
        let kind = node.kind();
        let named =
            is_call(kind) || matches!(kind, "throw_statement" | "raise_statement" | "throw_expression");
        let bare = kind == "identifier" && scope.above == Above::Block;
        let assigned = matches!(kind, "assignment" | "assignment_expression") && scope.unit == 0;
        if !(named || bare || assigned) {
            return;
        }
        let tokens = self.source.tokens_of(node);
        let names = chain_names(tokens);
        let skips = match assigned {
            true => {
                let target = names.first().copied().unwrap_or_default();
                matches!(target, "pytestmark" | "collect_ignore" | "collect_ignore_glob" | "__test__")
                    && tokens.iter().any(|token| {
                        is_skip(token.text) || target.starts_with("collect") || token.text == "False"
                    })
            }
            false => {
                let last = names.last().copied().unwrap_or_default();
                let assumes = names.iter().any(|name| name.to_ascii_lowercase().starts_with("assum"));
                is_skip(last) && !matches!(last, "ignore" | "fails" | "explicit" | "manual")
                    || assumes && tokens.iter().any(|token| token.text == "false")
                    || names.iter().any(|name| matches!(*name, "XCTSkip" | "SkipTest" | "GTEST_SKIP"))
            }
        };
        let full = self.units.get(scope.unit).is_none_or(|unit| unit.marks.len() >= MAX_MARKS);
        if skips && !full {
            let mut mark = new_mark(tokens, false);
            mark.elsewhere = mark.elsewhere || scope.conditions > 0 && self.is_condition_elsewhere(node);
            if let Some(unit) = self.units.get_mut(scope.unit) {
                unit.marks.push(mark);
            }
        }
    }

    /// Returns true if the nearest condition around a node is true only on another platform, or
    /// where something is missing.
    fn is_condition_elsewhere(&self, node: Node<'_>) -> bool {
        let mut above = node.parent();
        while let Some(one) = above {
            if is_conditional(one.kind()) {
                let condition = one.child_by_field_name("condition").unwrap_or(one);
                return holds_elsewhere(self.source.tokens_of(condition));
            }
            above = one.parent();
        }
        false
    }

    fn end_early(&mut self, node: Node<'_>, scope: &Scope) {
        let line = line_of(node);
        if let Some(unit) = self.units.get_mut(scope.unit).filter(|_| scope.unit != 0) {
            unit.ends_early.get_or_insert(line);
        }
    }

    /// Reads tests line by line, where there is no grammar.
    fn scan_lines(&mut self) {
        let mut unit = 0;
        let mut pending: Vec<Mark> = Vec::new();
        for (line, tokens) in lines_of(&self.source.tokens) {
            let names = chain_names(&tokens);
            let Some(first) = names.first().copied() else { continue };
            if first.starts_with('@') {
                if tokens.iter().any(|token| is_skip(token.text.trim_start_matches(':'))) {
                    pending.push(new_mark(&tokens, false));
                }
                continue;
            }
            let text = tokens.iter().find(|token| token.kind == TokenKind::Text);
            let defined = tokens.windows(2).find_map(|pair| match pair {
                [word, name] if is_definition(word.text) && name.text.starts_with("test") => Some(name),
                _ => None,
            });
            if let Some(name) = text.filter(|_| is_test_call(first)).or(defined) {
                let start = tokens.first().map_or(0, |token| token.start);
                if let Some(before) = self.units.get_mut(unit).filter(|_| unit != 0) {
                    before.range.end = start;
                }
                let marks = std::mem::take(&mut pending);
                if self.units.len() >= MAX_UNITS {
                    return;
                }
                unit = self.open_unit(start..self.source.text.len(), name.text.to_owned(), line, true, marks);
                continue;
            }
            let skips = names.last().is_some_and(|last| is_skip(last)) && tokens.len() < 12;
            if skips {
                let mark = new_mark(&tokens, false);
                self.units.get_mut(unit).into_iter().for_each(|unit| unit.marks.push(mark.clone()));
            }
            if let Some(assertion) = read_assertion(&tokens, self.statements.dialect) {
                let end = tokens.last().map_or(0, |token| token.start + token.text.len());
                self.assertion_ranges.push(assertion_start(&tokens)..end);
                if let Some(unit) = self.units.get_mut(unit)
                    && unit.assertions.len() < MAX_ASSERTIONS
                {
                    unit.assertions.push(assertion);
                }
            }
        }
    }

    /// Sets the fields that depend on the tokens of each unit.
    fn finish(mut self, in_tests: bool) -> Vec<Unit<'t>> {
        self.assertion_ranges.sort_unstable_by_key(|range| range.start);
        let inner: Vec<Range<usize>> = self.units.iter().skip(1).map(|unit| unit.range.clone()).collect();
        let mut spans = inner;
        spans.sort_unstable_by_key(|range| range.start);
        for (place, unit) in self.units.iter_mut().enumerate() {
            let within = |ranges: &[Range<usize>], at: usize| {
                let next = ranges.partition_point(|range| range.start <= at);
                ranges.get(..next).unwrap_or_default().iter().rev().take(4).any(|range| range.contains(&at))
            };
            let all = self.source.tokens_in(&unit.range).iter();
            let own = all.filter(|token| {
                token.kind != TokenKind::Comment && (place > 0 || !within(&spans, token.start))
            });
            unit.tokens = own.copied().collect();
            unit.words = unit
                .tokens
                .iter()
                .filter(|token| token.kind == TokenKind::Word)
                .map(|token| token.text)
                .collect();
            unit.outside = outside_literals(&unit.tokens, &|at| within(&self.assertion_ranges, at));
        }
        self.units.retain(|unit| in_tests || !unit.name.is_empty());
        self.units
    }
}

/// Returns true for a keyword that defines a function.
fn is_definition(word: &str) -> bool {
    matches!(word, "function" | "fun" | "func" | "def" | "sub" | "fn" | "void" | "proc")
}

fn assertion_start(tokens: &[Token<'_>]) -> usize {
    tokens.first().map_or(0, |token| token.start)
}

/// Returns literals outside of assertions, and whether each is in a table or an expected value.
fn outside_literals<'t>(tokens: &[Token<'t>], is_inside: &dyn Fn(usize) -> bool) -> Vec<(&'t str, bool)> {
    // True for brackets around values, false for those around statements.
    let mut brackets: Vec<bool> = Vec::new();
    let mut before = ("", "");
    let mut expected_on = 0;
    let mut named = "";
    let mut found = Vec::new();
    for pair in tokens.windows(2) {
        let [token, next] = pair else { continue };
        match token.text {
            "[" => brackets.push(true),
            "{" => brackets.push(opens_values(before)),
            "]" | "}" => {
                brackets.pop();
            }
            _ => {}
        }
        before = (before.1, token.text);
        let lower = token.text.to_ascii_lowercase();
        let names_value = ["expect", "want", "golden", "desired"].iter().any(|word| lower.starts_with(word));
        if token.kind == TokenKind::Word && names_value && matches!(next.text, "=" | ":=" | ":" | "=>") {
            expected_on = token.line;
        }
        // A reason or a title is not a value.
        let titled = matches!(token.text, "=" | ":" | "=>")
            && matches!(
                named,
                "Skip" | "reason" | "DisplayName" | "msg" | "message" | "title" | "timeout" | "description"
            );
        named = if token.kind == TokenKind::Word { token.text } else { named };
        if next.is_literal() && !titled && !is_inside(next.start) {
            found.push((next.plain(), brackets.contains(&true) || expected_on == next.line));
        }
    }
    found
}

/// Returns true for a brace that opens a list of values, by the two tokens before it: a block
/// follows a bracket or a name.
fn opens_values(before: (&str, &str)) -> bool {
    matches!(before.1, "=" | "(" | "," | "{" | "[" | ":" | ":=" | "}" | "return") || before.0 == "]"
}

/// Groups tokens by their lines.
fn lines_of<'t>(tokens: &[Token<'t>]) -> Vec<(u32, Vec<Token<'t>>)> {
    let same = |one: &Token<'_>, other: &Token<'_>| one.line == other.line;
    let lines = tokens.chunk_by(same).map(|line| (line.first().map_or(0, |token| token.line), line.to_vec()));
    lines.collect()
}
