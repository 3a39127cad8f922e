//! The tests of a file and the helpers beside them, from its syntax tree.

use std::collections::BTreeSet;
use std::ops::Range;

use journeyman_syntax::Node;
use journeyman_syntax::language::Language;

use super::assertion::{
    Assertion, Dialect, chain_names, read_assertion, read_call_of_helper, read_failing_condition,
};
use super::leniency::exclusion_ranges;
use super::node_kinds::{is_block, is_call, is_closure, is_conditional, is_decoration, is_function};
use super::parsed_source::{ParsedSource, Token, TokenKind, children, is_comment, is_string_kind, line_of};
use super::skip_marks::{
    SkipMark, has_hiding_tag, has_skip_option, is_condition_of_other_platform, new_skip_mark,
    read_decoration_mark,
};
use super::statements::StatementReader;
use super::test_discovery::is_discovered_test_file;
use super::test_helpers::{failing_functions, is_test_program};
use super::test_vocabulary::{
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
pub(super) struct TestUnit<'t> {
    /// Its own name; empty for the rest of a file.
    pub(super) name: String,
    pub(super) line: u32,
    pub(super) is_test: bool,
    /// True if the test runs only where other code names it, as in C.
    pub(super) is_registered: bool,
    pub(super) marks: Vec<SkipMark>,
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
enum ParentKind {
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

impl ParentKind {
    fn from_node_kind(kind: &str) -> Self {
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
struct NodeScope {
    unit: usize,
    conditions: usize,
    swallowed: bool,
    /// True among the statements of the unit itself.
    direct: bool,
    in_tests: bool,
    inherited: Vec<SkipMark>,
    /// The kind of the parent, which the tree could only find by a walk from the root.
    above: ParentKind,
    /// True within a class that no runner of Python takes for tests.
    in_other_class: bool,
}

/// Finds the tests and helpers of a file; none in a file of the product, unless it has tests of its
/// own.
pub(super) fn find_units<'t>(path: &str, source: &ParsedSource<'t>, is_test: bool) -> Vec<TestUnit<'t>> {
    let in_tests = is_test
        || path.ends_with(".py") && source.text.contains("import unittest")
        || is_test_program(source);
    let mut walk = UnitWalker {
        source,
        statements: StatementReader { source, dialect: dialect_of(source.language) },
        discovered: is_discovered_test_file(path, source.language),
        failing: if in_tests { failing_functions(source) } else { BTreeSet::new() },
        units: vec![TestUnit { line: 1, range: 0..source.text.len(), ..TestUnit::default() }],
        assertion_ranges: Vec::new(),
    };
    match &source.tree {
        Some(tree) => {
            walk.visit(tree.root(), &NodeScope { in_tests, direct: true, ..NodeScope::default() });
        }
        None if in_tests => walk.scan_lines(),
        None => {}
    }
    walk.finish(in_tests)
}

fn dialect_of(language: Option<Language>) -> Dialect {
    Dialect {
        go: language == Some(Language::Go),
        python: language == Some(Language::Python),
        rust: language == Some(Language::Rust),
        script: matches!(language, Some(Language::JavaScript | Language::TypeScript | Language::Tsx)),
        expects_condition: matches!(
            language,
            Some(Language::Rust | Language::Swift | Language::C | Language::Cpp) | None
        ),
    }
}

struct UnitWalker<'s, 't> {
    source: &'s ParsedSource<'t>,
    statements: StatementReader<'s, 't>,
    discovered: bool,
    /// Functions that make a test program in C fail.
    failing: BTreeSet<&'t str>,
    units: Vec<TestUnit<'t>>,
    assertion_ranges: Vec<Range<usize>>,
}

impl<'t> UnitWalker<'_, 't> {
    fn visit(&mut self, node: Node<'_>, scope: &NodeScope) {
        let kind = node.kind();
        if is_comment(kind) || is_string_kind(kind) || is_decoration(node) {
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
            self.add_skip_mark(node, scope);
            if is_conditional(kind) {
                return self.visit_conditional(node, scope);
            }
            if self.statements.is_failure_swallowing(node) {
                let inside = NodeScope { swallowed: true, direct: false, ..scope.clone() };
                return self.visit_children(node, &inside);
            }
            if kind.starts_with("return") && scope.direct && node.next_named_sibling().is_some() {
                self.mark_early_end(node, scope);
            }
        }
        let transparent =
            is_block(kind) || kind == "expression_statement" || scope.above == ParentKind::Nothing;
        let direct = scope.direct && transparent;
        self.visit_children(node, &NodeScope { direct, ..scope.clone() });
    }

    fn visit_children(&mut self, node: Node<'_>, scope: &NodeScope) {
        let scope = NodeScope { above: ParentKind::from_node_kind(node.kind()), ..scope.clone() };
        for child in children(node) {
            self.visit(child, &scope);
        }
    }

    /// Opens a unit for a function, or a region of tests for a module of them.
    fn enter_definition(&mut self, node: Node<'_>, scope: &NodeScope) -> Option<NodeScope> {
        let kind = node.kind();
        let is_group =
            matches!(kind, "mod_item" | "class_definition" | "class_declaration" | "class" | "class_body");
        if !is_group && !is_function(kind) {
            return None;
        }
        let decorations = self.statements.decorations(node);
        let words: Vec<&Token<'t>> =
            decorations.iter().flatten().filter(|token| token.kind == TokenKind::Word).collect();
        let marks = decorations.iter().filter_map(|tokens| read_decoration_mark(tokens));
        let marks: Vec<SkipMark> = marks.chain(scope.inherited.iter().cloned()).collect();
        if is_group {
            let configured = words
                .windows(2)
                .any(|pair| matches!(pair, [cfg, test] if cfg.text == "cfg" && test.text == "test"));
            return Some(NodeScope {
                in_tests: scope.in_tests || configured,
                inherited: marks,
                direct: true,
                in_other_class: self.statements.is_non_test_class(node),
                ..scope.clone()
            });
        }
        let attributed = decorations.iter().any(|tokens| self.makes_test(tokens));
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
                .text_of_node(node)
                .get(..200.min(node.byte_range().len()))
                .is_some_and(|head| head.split('{').next().is_some_and(|head| head.contains("DISABLED_")))
        {
            marks.push(SkipMark { line: line_of(node), quote: name.clone(), elsewhere: false, focus: false });
        }
        let first = decorations.iter().flatten().map(|token| token.start).min();
        let range = first.unwrap_or(usize::MAX).min(node.start_byte())..node.end_byte();
        let unit = self.open_unit(range, name, line_of(node), is_test, marks);
        Some(NodeScope { unit, direct: true, in_tests: true, ..NodeScope::default() })
    }

    /// Returns true for a decorator, attribute or annotation that makes a function a test.
    fn makes_test(&self, decoration: &[Token<'t>]) -> bool {
        let mut words =
            decoration.iter().filter(|token| token.kind == TokenKind::Word).map(|token| token.text);
        let is_condition = words.clone().next().is_some_and(|first| first.starts_with("cfg"));
        // Python has properties, and fixtures of its runner, where others have tests.
        let is_other = |word: &str| self.statements.dialect.python && matches!(word, "property" | "pytest");
        !is_condition && words.any(|word| is_test_attribute(word) && !is_other(word))
    }

    fn open_unit(
        &mut self,
        range: Range<usize>,
        name: String,
        line: u32,
        is_test: bool,
        marks: Vec<SkipMark>,
    ) -> usize {
        self.units.push(TestUnit {
            name,
            line,
            is_test: is_test && self.discovered,
            is_registered: matches!(self.source.language, Some(Language::C | Language::Cpp | Language::Bash)),
            marks,
            range,
            ..TestUnit::default()
        });
        self.units.len() - 1
    }

    /// Opens a unit for a test that is a call with a block; returns true if the node is visited.
    fn visit_test_call(&mut self, node: Node<'_>, scope: &NodeScope) -> bool {
        let tokens = self.source.tokens_of_node(node);
        let names = chain_names(tokens);
        let Some(first) = names.first().copied() else { return false };
        let run = self.statements.dialect.go && matches!(names.as_slice(), ["t" | "b", "Run"]);
        let run = run && self.statements.first_argument_is_text(node);
        let is_test = is_test_call(first) || run || matches!(names.as_slice(), ["Deno", "test"]);
        if !(is_test || is_group_call(first)) || self.statements.has_no_block(node) {
            return false;
        }
        let head = self.statements.test_call_head(node);
        let modifiers = names.iter().skip(1).filter(|name| is_skip(name)).count();
        let mut marks = scope.inherited.clone();
        let options = has_skip_option(&head)
            || head.iter().any(|token| token.kind == TokenKind::Text && has_hiding_tag(token.text));
        if modifiers > 0 || is_skipping_test_call(first) || options {
            marks.push(new_skip_mark(&head, false));
        }
        if names.iter().any(|name| is_focus(name)) && !run {
            marks.push(new_skip_mark(&head, true));
        }
        let scope = match is_test {
            true if self.units.len() < MAX_UNITS => {
                let name = head
                    .iter()
                    .find(|token| token.kind == TokenKind::Text)
                    .map_or(String::new(), |token| token.text.trim_matches(['"', '\'', '`']).to_owned());
                let mut range = node.byte_range();
                if let Some(block) = self.statements.find_following_block(node) {
                    range.end = block.end_byte();
                }
                let unit = self.open_unit(range, name, line_of(node), true, marks);
                NodeScope { unit, direct: true, in_tests: true, ..NodeScope::default() }
            }
            _ => NodeScope { inherited: marks, ..scope.clone() },
        };
        self.visit_children(node, &scope);
        if let Some(block) = self.statements.find_following_block(node) {
            self.visit_children(block, &scope);
        }
        true
    }

    /// Adds an assertion to its unit; returns true if the node is an assertion.
    fn visit_assertion(&mut self, node: Node<'_>, scope: &NodeScope) -> bool {
        let kind = node.kind();
        if !(is_call(kind) || matches!(kind, "assert_statement" | "infix_expression")) {
            return false;
        }
        let tokens = self.source.tokens_of_node(node);
        let of_helper = || read_call_of_helper(tokens, &self.failing);
        let Some(assertion) = read_assertion(tokens, self.statements.dialect).or_else(of_helper) else {
            return false;
        };
        self.add_assertion(assertion, node, scope);
        // Assertions in a closure among the arguments count as well.
        let mut left = children(node);
        while let Some(inner) = left.pop() {
            if is_closure(inner.kind()) {
                self.visit_children(inner, &NodeScope { direct: false, ..scope.clone() });
            } else {
                left.extend(children(inner));
            }
        }
        true
    }

    fn add_assertion(&mut self, mut assertion: Assertion<'t>, node: Node<'_>, scope: &NodeScope) {
        assertion.awaited = scope.above == ParentKind::Await;
        assertion.conditions = scope.conditions;
        assertion.swallowed |= scope.swallowed;
        self.assertion_ranges.push(node.byte_range());
        if let Some(unit) = self.units.get_mut(scope.unit)
            && unit.assertions.len() < MAX_ASSERTIONS
        {
            unit.assertions.push(assertion);
        }
    }

    /// Visits an `if`, which is an assertion itself if its body makes the test fail.
    fn visit_conditional(&mut self, node: Node<'_>, scope: &NodeScope) {
        let body = ["consequence", "body"].iter().find_map(|field| node.child_by_field_name(field));
        let condition = node.child_by_field_name("condition");
        let tokens = match (body, condition) {
            (Some(body), Some(_)) => {
                let all = self.source.tokens_of_node(node).iter();
                let outside = all.filter(|token| !body.byte_range().contains(&token.start));
                outside
                    .filter(|token| !matches!(token.text, "if" | "then" | "end" | "else"))
                    .copied()
                    .collect()
            }
            _ => Vec::new(),
        };
        if let Some(body) = body
            && self.statements.has_failing_statement(body)
            && let Some(guard) = read_failing_condition(&tokens)
        {
            self.add_assertion(guard, node, scope);
            return;
        }
        let has_else = node.child_by_field_name("alternative").is_some();
        let returns = body.is_some_and(|body| self.statements.is_bare_return(body));
        if returns
            && scope.direct
            && node.next_named_sibling().is_some()
            && !is_condition_of_other_platform(&tokens)
        {
            self.mark_early_end(node, scope);
        }
        let steps = usize::from(!has_else);
        let inside = NodeScope { conditions: scope.conditions + steps, direct: false, ..scope.clone() };
        self.visit_children(node, &inside);
    }

    /// Adds a mark for a call or a statement that skips the test it stands in.
    fn add_skip_mark(&mut self, node: Node<'_>, scope: &NodeScope) {
        let kind = node.kind();
        let named =
            is_call(kind) || matches!(kind, "throw_statement" | "raise_statement" | "throw_expression");
        let bare = kind == "identifier" && scope.above == ParentKind::Block;
        let assigned = matches!(kind, "assignment" | "assignment_expression") && scope.unit == 0;
        if !(named || bare || assigned) {
            return;
        }
        let tokens = self.source.tokens_of_node(node);
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
            let mut mark = new_skip_mark(tokens, false);
            mark.elsewhere = mark.elsewhere || scope.conditions > 0 && self.is_under_platform_condition(node);
            if let Some(unit) = self.units.get_mut(scope.unit) {
                unit.marks.push(mark);
            }
        }
    }

    /// Returns true if the nearest condition around a node is true only on another platform, or
    /// where something is missing.
    fn is_under_platform_condition(&self, node: Node<'_>) -> bool {
        let mut above = node.parent();
        while let Some(one) = above {
            if is_conditional(one.kind()) {
                let condition = one.child_by_field_name("condition").unwrap_or(one);
                return is_condition_of_other_platform(self.source.tokens_of_node(condition));
            }
            above = one.parent();
        }
        false
    }

    fn mark_early_end(&mut self, node: Node<'_>, scope: &NodeScope) {
        let line = line_of(node);
        if let Some(unit) = self.units.get_mut(scope.unit).filter(|_| scope.unit != 0) {
            unit.ends_early.get_or_insert(line);
        }
    }

    /// Reads tests line by line, where there is no grammar.
    fn scan_lines(&mut self) {
        let mut unit = 0;
        let mut pending: Vec<SkipMark> = Vec::new();
        for (line, tokens) in group_by_line(&self.source.tokens) {
            let names = chain_names(&tokens);
            let Some(first) = names.first().copied() else { continue };
            if first.starts_with('@') {
                if tokens.iter().any(|token| is_skip(token.text.trim_start_matches(':'))) {
                    pending.push(new_skip_mark(&tokens, false));
                }
                continue;
            }
            let text = tokens.iter().find(|token| token.kind == TokenKind::Text);
            let defined = tokens.windows(2).find_map(|pair| match pair {
                [word, name] if is_definition_keyword(word.text) && name.text.starts_with("test") => {
                    Some(name)
                }
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
                let mark = new_skip_mark(&tokens, false);
                self.units.get_mut(unit).into_iter().for_each(|unit| unit.marks.push(mark.clone()));
            }
            if let Some(assertion) = read_assertion(&tokens, self.statements.dialect) {
                let end = tokens.last().map_or(0, |token| token.start + token.text.len());
                self.assertion_ranges.push(start_of_tokens(&tokens)..end);
                if let Some(unit) = self.units.get_mut(unit)
                    && unit.assertions.len() < MAX_ASSERTIONS
                {
                    unit.assertions.push(assertion);
                }
            }
        }
    }

    /// Sets the fields that depend on the tokens of each unit.
    fn finish(mut self, in_tests: bool) -> Vec<TestUnit<'t>> {
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
            unit.outside =
                literals_outside_assertions(&unit.tokens, &|at| within(&self.assertion_ranges, at));
        }
        self.units.retain(|unit| in_tests || !unit.name.is_empty());
        self.units
    }
}

/// Returns true for a keyword that defines a function.
fn is_definition_keyword(word: &str) -> bool {
    matches!(word, "function" | "fun" | "func" | "def" | "sub" | "fn" | "void" | "proc")
}

fn start_of_tokens(tokens: &[Token<'_>]) -> usize {
    tokens.first().map_or(0, |token| token.start)
}

/// Returns literals outside of assertions, and whether each is in a table or an expected value.
fn literals_outside_assertions<'t>(
    tokens: &[Token<'t>],
    is_inside: &dyn Fn(usize) -> bool,
) -> Vec<(&'t str, bool)> {
    // True for brackets around values, false for those around statements.
    let mut brackets: Vec<bool> = Vec::new();
    let mut before = ("", "");
    let mut expected_on = 0;
    let mut named = "";
    let left_out = exclusion_ranges(tokens);
    let mut found = Vec::new();
    for pair in tokens.windows(2) {
        let [token, next] = pair else { continue };
        match token.text {
            "[" => brackets.push(true),
            "{" => brackets.push(is_value_list_start(before)),
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
            let leaves_out = left_out.iter().any(|range| range.contains(&next.start));
            let counts = brackets.contains(&true) || expected_on == next.line;
            found.push((next.normalized_text(), counts && !leaves_out));
        }
    }
    found
}

/// Returns true for a brace that opens a list of values, by the two tokens before it: a block
/// follows a bracket or a name.
fn is_value_list_start(before: (&str, &str)) -> bool {
    matches!(before.1, "=" | "(" | "," | "{" | "[" | ":" | ":=" | "}" | "return") || before.0 == "]"
}

/// Groups tokens by their lines.
fn group_by_line<'t>(tokens: &[Token<'t>]) -> Vec<(u32, Vec<Token<'t>>)> {
    let same = |one: &Token<'_>, other: &Token<'_>| one.line == other.line;
    let lines = tokens.chunk_by(same).map(|line| (line.first().map_or(0, |token| token.line), line.to_vec()));
    lines.collect()
}
