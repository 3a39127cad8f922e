//! The bodies of functions, and code that only returns a fixed value.

use super::parsed_source::{ParsedSource, Token, TokenKind, children, line_of};

/// Returns the functions of a source: name, line, and the tokens of the body.
pub(super) fn function_bodies<'t>(source: &ParsedSource<'t>) -> Vec<(&'t str, u32, Vec<Token<'t>>)> {
    let mut found = Vec::new();
    let Some(tree) = &source.tree else { return found };
    let mut left = vec![tree.root()];
    while let Some(node) = left.pop() {
        left.extend(children(node));
        let Some(body) = node.child_by_field_name("body") else { continue };
        let Some(mut name) =
            node.child_by_field_name("name").or_else(|| node.child_by_field_name("declarator"))
        else {
            continue;
        };
        while let Some(inner) = name.child_by_field_name("declarator") {
            name = inner;
        }
        let tokens = source.tokens_of_node(body).iter().filter(|token| token.kind != TokenKind::Comment);
        found.push((source.text_of_node(name), line_of(node), tokens.copied().collect()));
    }
    found
}

/// Returns true for code that only returns a fixed value.
pub(super) fn is_fixed_value(tokens: &[Token<'_>]) -> bool {
    tokens.iter().all(|token| {
        let words = [
            "return",
            "Some",
            "Ok",
            "String",
            "from",
            "to_string",
            "to_owned",
            "into",
            "break",
            "vec",
            "new",
            "list",
            "dict",
            "result",
            "then",
            "end",
            "yield",
            "else",
            "Decimal",
            "float",
            "int",
            "str",
        ];
        token.kind != TokenKind::Word || words.contains(&token.text) || is_constant(token.text)
    })
}

/// Returns the literals and constants of code, in order.
pub(super) fn literals<'t>(tokens: &[Token<'t>]) -> Vec<&'t str> {
    let found = tokens.iter().filter(|token| token.is_literal() || is_constant(token.text));
    found.map(Token::normalized_text).collect()
}

fn is_constant(text: &str) -> bool {
    matches!(text, "true" | "false" | "True" | "False" | "None" | "null" | "nil")
}
