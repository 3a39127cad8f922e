//! The kinds of nodes that are mutated or excluded from mutation.

use crate::honesty::node_kinds::is_call;
use journeyman_syntax::Node;
use journeyman_syntax::language::Language;

/// Names of calls that only log, or that belong to tests and invariants.
const LOGGING_AND_ASSERTION_CALLS: [&str; 41] = [
    "print",
    "println",
    "eprintln",
    "eprint",
    "printf",
    "fprintf",
    "puts",
    "pp",
    "log",
    "debug",
    "info",
    "warn",
    "warning",
    "error",
    "trace",
    "fatal",
    "critical",
    "exception",
    "dbg",
    "assert",
    "assert_eq",
    "assert_ne",
    "debug_assert",
    "debug_assert_eq",
    "debug_assert_ne",
    "static_assert",
    "unreachable",
    "todo",
    "unimplemented",
    "console",
    "logger",
    "logging",
    "tracing",
    "slog",
    "Debug",
    "Log",
    "error_log",
    "var_dump",
    "perror",
    "NSLog",
    "syslog",
];
/// Parts of names of calls whose numbers only affect time and memory.
const TUNING_CALL_PARTS: [&str; 7] =
    ["capacity", "reserve", "sleep", "timeout", "Timeout", "Builder", "Sleep"];

/// Returns the text of a node.
pub(super) fn text_of<'t>(node: Node<'_>, text: &'t str) -> &'t str {
    text.get(node.byte_range()).unwrap_or_default()
}

/// Returns the named children of a node that aren't comments.
pub(super) fn named_children(node: Node<'_>) -> Vec<Node<'_>> {
    let mut cursor = node.walk();
    node.named_children(&mut cursor).filter(|child| !child.kind().contains("comment")).collect()
}

/// Returns true for a node in which nothing is mutated: comments, types, attributes, imports,
/// tests, and calls that only log.
pub(super) fn is_excluded(node: Node<'_>, text: &str) -> bool {
    let kind = node.kind();
    kind.contains("comment")
        || kind.contains("import")
        || kind.starts_with("preproc_")
        || is_type(kind)
        || is_attribute(kind)
        || matches!(
            kind,
            "assert_statement" | "static_assert_declaration" | "use_declaration" | "echo_statement"
        )
        || matches!(
            kind,
            "package_clause" | "namespace_use_declaration" | "macro_definition" | "enum_specifier"
        )
        || kind == "macro_invocation" && !is_failing_macro(node, text)
        || is_call(kind) && is_logging_or_assertion_call(node, text)
        || has_test_attribute(node, text)
        || is_docstring(node)
        || node.kind() == "expression_statement"
            && named_children(node).first().is_some_and(|only| is_excluded(*only, text))
}

fn is_type(kind: &str) -> bool {
    matches!(
        kind,
        "type"
            | "type_annotation"
            | "type_arguments"
            | "type_parameters"
            | "type_argument_list"
            | "template_argument_list"
            | "primitive_type"
            | "generic_type"
            | "type_alias_declaration"
            | "type_item"
            | "interface_declaration"
            | "array_declarator"
            | "array_type"
            | "trait_bounds"
            | "where_clause"
            | "sizeof_expression"
    )
}

fn is_attribute(kind: &str) -> bool {
    kind.contains("annotation")
        || matches!(kind, "decorator" | "attribute_item" | "attribute_list" | "inner_attribute_item")
}

fn is_docstring(node: Node<'_>) -> bool {
    node.kind() == "expression_statement"
        && named_children(node)
            .first()
            .is_some_and(|child| matches!(child.kind(), "string" | "string_literal"))
}

/// Returns true for the macros that affect what a Rust function does.
fn is_failing_macro(node: Node<'_>, text: &str) -> bool {
    let name = node.child_by_field_name("macro").map_or("", |name| text_of(name, text));
    matches!(name, "panic" | "bail" | "ensure")
}

/// Returns the words of the name that a call calls: `console.log` gives `console` and `log`.
pub(super) fn called_words<'t>(node: Node<'_>, text: &'t str) -> Vec<&'t str> {
    let arguments = ["arguments", "block"].into_iter().find_map(|name| node.child_by_field_name(name));
    let end = arguments.map_or(node.end_byte(), |arguments| arguments.start_byte());
    let called = text.get(node.start_byte()..end).unwrap_or_default();
    called.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty()).collect()
}

pub(super) fn is_logging_or_assertion_call(node: Node<'_>, text: &str) -> bool {
    let words = called_words(node, text);
    let ends: Vec<&&str> = words.first().into_iter().chain(words.last()).collect();
    // `math.log(x)` computes; a lone `log(…)` or `log.info(…)` logs.
    let computes = words.first().is_some_and(|first| matches!(*first, "math" | "Math" | "np" | "torch"));
    !computes && ends.iter().any(|word| LOGGING_AND_ASSERTION_CALLS.contains(word))
}

pub(super) fn is_tuning_call(node: Node<'_>, text: &str) -> bool {
    called_words(node, text).iter().any(|word| TUNING_CALL_PARTS.iter().any(|part| word.contains(part)))
}

/// Returns true for an item that an attribute makes a part of the tests.
fn has_test_attribute(node: Node<'_>, text: &str) -> bool {
    if !matches!(node.kind(), "mod_item" | "function_item" | "impl_item") {
        return false;
    }
    let mut before = node.prev_named_sibling();
    while let Some(sibling) =
        before.filter(|it| it.kind() == "attribute_item" || it.kind().contains("comment"))
    {
        let attribute = text_of(sibling, text);
        if sibling.kind() == "attribute_item" && attribute.contains("test") {
            return true;
        }
        before = sibling.prev_named_sibling();
    }
    false
}

pub(super) fn is_function(kind: &str) -> bool {
    matches!(
        kind,
        "function_definition"
            | "function_item"
            | "function_declaration"
            | "method_declaration"
            | "method_definition"
            | "constructor_declaration"
            | "local_function_statement"
            | "method"
            | "singleton_method"
            | "arrow_function"
            | "function_expression"
            | "func_literal"
            | "closure_expression"
            | "generator_function_declaration"
    )
}

/// Returns the name of a function, if it has one of its own.
pub(super) fn function_name(node: Node<'_>, text: &str) -> Option<String> {
    let mut named = node.child_by_field_name("name");
    let mut declarator = node.child_by_field_name("declarator");
    while let (None, Some(inner)) = (named, declarator) {
        declarator = inner.child_by_field_name("declarator");
        named = declarator.is_none().then_some(inner);
    }
    let assigned = node.parent().filter(|parent| parent.kind() == "variable_declarator");
    let named = named.or_else(|| assigned?.child_by_field_name("name"))?;
    Some(text_of(named, text).to_owned()).filter(|name| !name.is_empty())
}

/// Returns the declared type of what a function returns.
pub(super) fn return_type<'t>(node: Node<'_>, text: &'t str) -> Option<&'t str> {
    let found = ["return_type", "result", "returns", "type"].into_iter();
    found.filter_map(|name| node.child_by_field_name(name)).map(|found| text_of(found, text)).next()
}

fn is_block(kind: &str) -> bool {
    matches!(
        kind,
        "block"
            | "statement_block"
            | "compound_statement"
            | "statement_list"
            | "body_statement"
            | "block_body"
            | "then"
            | "do"
            | "else"
            | "begin"
            | "ensure"
            | "switch_case"
            | "switch_default"
            | "case_statement"
            | "default_statement"
            | "switch_block_statement_group"
            | "switch_section"
    )
}

/// The position of a statement.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum StatementPosition {
    /// A statement among others in a block.
    Block,
    /// The only statement after a condition, without braces.
    Single,
}

/// Returns the position of a node that is a statement; `None` for other nodes.
pub(super) fn statement_position(node: Node<'_>, language: Language) -> Option<StatementPosition> {
    let parent = node.parent()?;
    let kind = node.kind();
    let is_item = is_function(kind)
        || kind.ends_with("_item")
        || kind.starts_with("class")
        || matches!(kind, "empty_statement" | "pass_statement" | "global_statement" | "nonlocal_statement")
        || matches!(
            kind,
            "else_clause" | "decorated_definition" | "label" | "rescue" | "when" | "else" | "elsif"
        );
    if !node.is_named() || is_item || is_block(kind) {
        return None;
    }
    let any_expression = matches!(language, Language::Rust | Language::Ruby);
    let is_statement = any_expression
        || kind.ends_with("statement")
        || kind.ends_with("declaration")
        || kind == "match_statement";
    let in_block = match (language, parent.kind()) {
        // Ruby's braces and `begin` hold parameters and clauses besides.
        (Language::Ruby, "block") => false,
        (Language::Ruby, "switch_case") => false,
        (_, kind) => is_block(kind),
    };
    if in_block && is_statement && !kind.contains("parameters") {
        return Some(StatementPosition::Block);
    }
    let after_condition = matches!(
        parent.kind(),
        "if_statement"
            | "else_clause"
            | "for_statement"
            | "while_statement"
            | "enhanced_for_statement"
            | "for_in_statement"
    );
    let is_header = ["condition", "initializer", "init", "update", "increment", "left", "right", "value"]
        .iter()
        .any(|field| parent.child_by_field_name(field) == Some(node));
    let braces = matches!(
        language,
        Language::C
            | Language::Cpp
            | Language::Java
            | Language::JavaScript
            | Language::TypeScript
            | Language::Tsx
            | Language::CSharp
            | Language::Php
    );
    (braces && after_condition && !is_header && kind.ends_with("statement"))
        .then_some(StatementPosition::Single)
}
