//! Reads definitions, blocks and statements of tests.

use journeyman_syntax::Node;
use journeyman_syntax::language::Language;

use super::assertion::{Dialect, chain_names};
use super::node_kinds::{is_call, is_conditional, is_decoration};
use super::parsed_source::{ParsedSource, Token, TokenKind, children, is_comment};
use super::test_vocabulary::is_test_macro;

/// Reads the statements of a source.
#[derive(Clone, Copy)]
pub(super) struct StatementReader<'s, 't> {
    pub(super) source: &'s ParsedSource<'t>,
    pub(super) dialect: Dialect,
}

impl<'t> StatementReader<'_, 't> {
    pub(super) fn is_test_name(&self, name: &str, node: Node<'_>) -> bool {
        match self.source.language {
            Some(Language::Go) => {
                ["Test", "Benchmark", "Fuzz", "Example"].iter().any(|it| name.starts_with(it))
                    && name != "TestMain"
            }
            Some(Language::Python | Language::Ruby | Language::Lua | Language::Bash) => {
                name.starts_with("test")
            }
            Some(Language::Php | Language::Swift | Language::Java | Language::Kotlin) => {
                name.starts_with("test") || self.has_test_comment(node)
            }
            Some(Language::C | Language::Cpp) => {
                let lower = name.to_ascii_lowercase();
                name.starts_with("TEST") || lower.starts_with("test") || lower.ends_with("_test")
            }
            _ => false,
        }
    }

    /// Returns true for a class of Python that runners don't take for tests.
    pub(super) fn is_non_test_class(&self, node: Node<'_>) -> bool {
        let text =
            |field: &str| node.child_by_field_name(field).map_or("", |it| self.source.text_of_node(it));
        self.source.language == Some(Language::Python)
            && node.kind() == "class_definition"
            && !text("name").starts_with("Test")
            && text("superclasses").is_empty()
    }

    /// Returns true for a method whose comment says `@test`.
    pub(super) fn has_test_comment(&self, node: Node<'_>) -> bool {
        node.prev_named_sibling().is_some_and(|before| {
            is_comment(before.kind()) && self.source.text_of_node(before).contains("@test")
        })
    }

    /// Returns the tokens of each decorator, attribute or annotation of a definition.
    pub(super) fn decorations(&self, node: Node<'_>) -> Vec<Vec<Token<'t>>> {
        let mut found = Vec::new();
        let mut before = node.prev_named_sibling();
        while let Some(one) = before.filter(|one| is_decoration(*one) || is_comment(one.kind())) {
            if is_decoration(one) {
                found.push(self.source.tokens_of_node(one).to_vec());
            }
            before = one.prev_named_sibling();
        }
        for child in children(node) {
            if is_decoration(child) {
                found.push(self.source.tokens_of_node(child).to_vec());
            }
            if child.kind() == "modifiers" {
                let modifiers = children(child).into_iter().filter(|one| is_decoration(*one));
                found.extend(modifiers.map(|one| self.source.tokens_of_node(one).to_vec()));
            }
        }
        found
    }

    pub(super) fn name_of(&self, node: Node<'_>) -> Option<String> {
        let mut named =
            node.child_by_field_name("name").or_else(|| node.child_by_field_name("declarator"))?;
        while let Some(inner) = named.child_by_field_name("declarator") {
            named = inner;
        }
        let mut name = self.source.text_of_node(named).to_owned();
        // `TEST(Suite, Name)`.
        if name.starts_with("TEST") || name.ends_with("_TEST") {
            let declarator = node.child_by_field_name("declarator").map(|it| self.source.tokens_of_node(it));
            let words = declarator.unwrap_or_default().iter().filter(|token| token.kind == TokenKind::Word);
            name = words.map(|token| token.text).collect::<Vec<_>>().join(" ");
        }
        Some(name)
    }

    pub(super) fn first_argument_is_text(&self, node: Node<'_>) -> bool {
        let tokens = self.source.tokens_of_node(node);
        let open = tokens.iter().position(|token| token.text == "(");
        open.and_then(|open| tokens.get(open + 1)).is_some_and(|first| first.kind == TokenKind::Text)
    }

    /// Returns true for a call that has no block of code: `it.todo("…")` has none, and skips.
    pub(super) fn has_no_block(&self, node: Node<'_>) -> bool {
        let text = self.source.text_of_node(node);
        !(text.contains('{')
            || text.contains("=>")
            || text.contains(" do")
            || text.contains("function")
            || text.contains("func"))
            && self.find_following_block(node).is_none()
    }

    /// Returns the block after a macro of C++ that defines a test.
    pub(super) fn find_following_block<'n>(&self, node: Node<'n>) -> Option<Node<'n>> {
        let names = chain_names(self.source.tokens_of_node(node));
        if !names.first().is_some_and(|first| is_test_macro(first)) {
            return None;
        }
        node.parent()?.next_named_sibling().filter(|block| block.kind() == "compound_statement")
    }

    /// Returns the tokens of a test call before its block.
    pub(super) fn test_call_head(&self, node: Node<'_>) -> Vec<Token<'t>> {
        let tokens = self.source.tokens_of_node(node);
        let mut head = Vec::new();
        for token in tokens {
            if matches!(token.text, "function" | "async" | "do" | "=>" | "func") || head.len() > 60 {
                break;
            }
            head.push(*token);
        }
        head
    }

    /// Returns true for a body that is a `return` without a value.
    pub(super) fn is_bare_return(&self, body: Node<'_>) -> bool {
        let words = self.source.tokens_of_node(body).iter().map(|token| token.text);
        words.filter(|text| !matches!(*text, "{" | "}" | ";" | ":" | "end")).eq(["return"])
    }

    /// Returns true if the statements make the test or its program fail.
    pub(super) fn has_failing_statement(&self, body: Node<'_>) -> bool {
        let tokens = self.source.tokens_of_node(body);
        if children(body).iter().any(|child| is_conditional(child.kind())) {
            return false;
        }
        let fails = tokens.windows(3).any(|three| {
            let [first, second, third] = three else { return false };
            let exits =
                matches!(first.text, "exit" | "_exit" | "Exit") && second.text == "(" && third.text != "0";
            let go = self.dialect.go
                && second.text == "."
                && matches!(third.text, "Error" | "Errorf" | "Fatal" | "Fatalf" | "Fail" | "FailNow");
            exits || go
        });
        let returns = tokens.windows(2).any(|pair| {
            matches!(pair, [word, value] if word.text == "return" && value.kind == TokenKind::Number && value.text != "0")
        });
        let thrown = tokens.iter().any(|token| {
            let text = token.text.trim_end_matches('!');
            matches!(
                text,
                "throw" | "raise" | "panic" | "abort" | "fail" | "failures" | "failed" | "errors" | "die"
            )
        });
        fails || returns || thrown
    }

    /// Returns true if a statement of the node's own block raises an error.
    fn raises_itself(&self, node: Node<'_>) -> bool {
        let body = node.child_by_field_name("body");
        body.is_some_and(|body| children(body).iter().any(|child| child.kind() == "raise_statement"))
    }

    /// Returns true for a `try` that ignores the failure of an assertion, and for blocks like it.
    pub(super) fn is_failure_swallowing(&self, node: Node<'_>) -> bool {
        let kind = node.kind();
        if kind == "with_statement" {
            let head = self.source.text_of_node(node).lines().next().unwrap_or_default();
            if head.contains("aises(") && self.raises_itself(node) {
                return true;
            }
            let forgets = head.contains("suppress(") || head.contains("aises(Assert");
            return forgets && ["Assertion", "Exception"].iter().any(|it| head.contains(it));
        }
        if is_call(kind) {
            let names = chain_names(self.source.tokens_of_node(node));
            return names.iter().any(|name| matches!(*name, "catch_unwind" | "pcall" | "assertDoesNotRun"));
        }
        if !matches!(kind, "try_statement" | "try_expression" | "begin" | "body_statement" | "do_block") {
            return false;
        }
        let handlers = children(node)
            .into_iter()
            .filter(|child| ["except", "catch", "rescue"].iter().any(|part| child.kind().contains(part)));
        handlers.into_iter().any(|handler| {
            let tokens = self.source.tokens_of_node(handler);
            let head = tokens.iter().take_while(|token| !matches!(token.text, ":" | "{" | "then")).count();
            let words = || tokens.iter().skip(head).filter(|token| token.kind == TokenKind::Word);
            let handles = words().any(|word| {
                matches!(
                    word.text.trim_end_matches('!'),
                    "raise" | "throw" | "fail" | "panic" | "exit" | "done" | "reject"
                ) || word.text.to_ascii_lowercase().starts_with("assert")
                    || word.text == "expect"
                    || self.dialect.script && word.text == "t"
            });
            !handles && is_assertion_handler(tokens)
        })
    }
}

/// Returns true if a handler takes the errors that assertions raise.
fn is_assertion_handler(tokens: &[Token<'_>]) -> bool {
    let head: Vec<&str> = tokens
        .iter()
        .take_while(|token| !matches!(token.text, ":" | "{" | "then"))
        .map(|token| token.text)
        .collect();
    let kinds: Vec<&&str> = head
        .iter()
        .filter(|word| word.ends_with("Error") || word.ends_with("Exception") || **word == "Throwable")
        .collect();
    let any = [
        "AssertionError",
        "AssertionFailedError",
        "Exception",
        "BaseException",
        "Throwable",
        "Error",
        "StandardError",
    ];
    kinds.is_empty() || kinds.iter().any(|kind| any.contains(kind))
}
