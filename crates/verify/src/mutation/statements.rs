//! Mutations of whole statements.

use journeyman_protocol::MutationKind;
use journeyman_syntax::Node;
use journeyman_syntax::language::Language;

use super::expressions::method_name;
use super::language_words::default_value;
use super::mutant::quote_code;
use super::node_kinds::{StatementPosition, is_function, named_children, statement_position};
use super::proposals::{NodeContext, Proposal};
use crate::honesty::node_kinds::is_call;

/// Values that a function returns by default, so that returning the default changes nothing.
const DEFAULT_VALUES: [&str; 14] = [
    "None",
    "null",
    "nil",
    "undefined",
    "NULL",
    "nullptr",
    "0",
    "false",
    "False",
    "\"\"",
    "''",
    "[]",
    "{}",
    "default",
];

/// Proposes the mutations of a node that is a statement or a clause of one.
pub(super) fn propose_mutations(node: Node<'_>, scope: &NodeContext<'_>, out: &mut Vec<Proposal>) {
    if !scope.in_function {
        return;
    }
    propose_removal(node, scope, out);
    propose_return_value(node, scope, out);
    propose_handler(node, scope, out);
    propose_else_removal(node, scope, out);
}

/// Returns the mutation that ends the program before a statement.
pub(super) fn stop_before_statement(
    node: Node<'_>,
    place: StatementPosition,
    scope: &NodeContext<'_>,
) -> Option<Proposal> {
    let (stop, start) = (scope.words.stop, node.start_byte());
    let line_start = scope.text.get(..start)?.rfind('\n').map_or(0, |at| at + 1);
    let indent = scope.text.get(line_start..start)?;
    let (range, replacement) = match place {
        StatementPosition::Block if scope.language == Language::Python => {
            let end = if indent.trim().is_empty() { format!("\n{indent}") } else { "; ".to_owned() };
            (start..start, format!("{stop}{end}"))
        }
        StatementPosition::Block => (start..start, format!("{stop} ")),
        StatementPosition::Single if scope.words.braces => {
            (node.byte_range(), format!("{{ {stop} {} }}", scope.text_of(node)))
        }
        StatementPosition::Single => return None,
    };
    let test = format!("a case that reaches `{}`", quote_code(scope.text_of(node).lines().next()?));
    Some(Proposal::new(MutationKind::Stop, range, replacement, test))
}

fn propose_removal(node: Node<'_>, scope: &NodeContext<'_>, out: &mut Vec<Proposal>) {
    if statement_position(node, scope.language).is_none() || !is_removable(node, scope) {
        return;
    }
    let shown = quote_code(scope.text_of(node).trim_end_matches(';'));
    let kind = if is_throw(node, scope) { MutationKind::ErrorHandling } else { MutationKind::Removal };
    let test = format!("a case that checks what `{shown}` does");
    out.push(Proposal::new(kind, node.byte_range(), scope.words.nothing, test));
}

fn is_removable(node: Node<'_>, scope: &NodeContext<'_>) -> bool {
    match node.kind() {
        "throw_statement" | "raise_statement" | "continue_statement" | "inc_statement" | "dec_statement" => {
            true
        }
        "assignment_statement" => is_reassignment(node, scope),
        "expression_statement" => named_children(node).first().is_some_and(|inner| {
            let kind = inner.kind();
            is_call(kind)
                || is_reassignment(*inner, scope)
                || matches!(
                    kind,
                    "update_expression"
                        | "await_expression"
                        | "await"
                        | "throw_expression"
                        | "delete_expression"
                )
                || matches!(
                    kind,
                    "postfix_unary_expression" | "prefix_unary_expression" | "continue_expression"
                )
        }),
        // The last expression of a Ruby body is its value.
        "call" | "assignment" | "operator_assignment" if scope.language == Language::Ruby => {
            node.next_named_sibling().is_some() && (node.kind() == "call" || is_reassignment(node, scope))
        }
        _ => false,
    }
}

/// Returns true for an assignment that declares nothing. In languages without declarations, only an
/// assignment to a part of something or with an operator counts.
fn is_reassignment(node: Node<'_>, scope: &NodeContext<'_>) -> bool {
    let declares = matches!(scope.language, Language::Python | Language::Ruby | Language::Php);
    match node.kind() {
        "augmented_assignment" | "augmented_assignment_expression" | "compound_assignment_expr" => true,
        "operator_assignment" => true,
        "assignment" | "assignment_expression" | "assignment_statement" => {
            let left = node.child_by_field_name("left");
            !declares
                || left.is_some_and(|left| {
                    !matches!(left.kind(), "identifier" | "variable_name" | "pattern_list")
                })
        }
        _ => false,
    }
}

fn is_throw(node: Node<'_>, scope: &NodeContext<'_>) -> bool {
    let inner = named_children(node).first().map_or(node, |inner| *inner);
    node.kind().starts_with("throw")
        || node.kind().starts_with("raise")
        || inner.kind() == "throw_expression"
        || method_name(node, scope.text) == "raise"
}

fn propose_return_value(node: Node<'_>, scope: &NodeContext<'_>, out: &mut Vec<Proposal>) {
    let value = match node.kind() {
        "return_statement" | "return_expression" | "return" => named_children(node).into_iter().next(),
        _ if scope.language == Language::Rust && is_tail(node) => Some(node),
        _ => None,
    };
    let Some(value) = value else { return };
    let written = scope.text_of(value).trim();
    let Some(default) = default_value(scope.language, scope.return_type) else { return };
    let compound = ["if", "match", "for_", "while_", "loop_", "block", "unsafe"];
    let is_compound = is_tail(value) && compound.iter().any(|start| value.kind().starts_with(start));
    if DEFAULT_VALUES.contains(&written) || written == default || is_compound || written.contains("?;") {
        return;
    }
    let several = value.kind() == "expression_list" && value.named_child_count() > 1;
    if several && scope.language == Language::Go {
        return;
    }
    let test = format!("a case that checks the value of `{}`", quote_code(written));
    out.push(Proposal::new(MutationKind::Return, value.byte_range(), default, test));
}

/// Returns true for the last expression of a function's body, which is its value.
fn is_tail(node: Node<'_>) -> bool {
    let Some(block) = node.parent().filter(|parent| parent.kind() == "block") else { return false };
    let in_function = block.parent().is_some_and(|around| is_function(around.kind()));
    let is_last = node.next_named_sibling().is_none();
    in_function && is_last && !node.kind().ends_with("statement") && !node.kind().ends_with("declaration")
}

/// Replaces a handler by one that passes the failure on, or that ends the program.
fn propose_handler(node: Node<'_>, scope: &NodeContext<'_>, out: &mut Vec<Proposal>) {
    if node.kind() == "try_expression"
        && let Some(inner) = node.named_child(0)
    {
        let test = format!("a case in which `{}` fails", quote_code(scope.text_of(inner)));
        let replacement = format!("{}.unwrap()", scope.text_of(inner));
        out.push(Proposal::new(MutationKind::ErrorHandling, node.byte_range(), replacement, test));
    }
    let Some(rethrow) =
        scope.words.rethrow.filter(|_| matches!(node.kind(), "except_clause" | "catch_clause" | "rescue"))
    else {
        return;
    };
    let body = node.child_by_field_name("body").or_else(|| named_children(node).pop());
    let Some(body) = body else { return };
    let parameter = ["parameter", "name"].iter().find_map(|field| node.child_by_field_name(field));
    let named = parameter.or_else(|| {
        let declared =
            named_children(node).into_iter().find(|child| child.kind() == "catch_formal_parameter");
        declared?.child_by_field_name("name")
    });
    let replacement = match (rethrow.contains('@'), named) {
        (false, _) => rethrow.to_owned(),
        (true, Some(named)) => rethrow.replace('@', scope.text_of(named)),
        (true, None) => return,
    };
    let test = "a case in which this failure happens".to_owned();
    // Ruby's `then` begins with a line break.
    let start =
        body.named_child(0).filter(|_| !scope.words.braces).map_or(body.start_byte(), |it| it.start_byte());
    out.push(Proposal::new(MutationKind::ErrorHandling, start..body.end_byte(), replacement, test));
}

/// Removes an `else`.
fn propose_else_removal(node: Node<'_>, scope: &NodeContext<'_>, out: &mut Vec<Proposal>) {
    let is_else = node.kind() == "else_clause" || node.kind() == "else" && scope.language == Language::Ruby;
    let of_condition = node.parent().is_some_and(|parent| parent.kind().starts_with("if"));
    let again = node.named_child(0).is_some_and(|child| child.kind().starts_with("if"));
    if is_else && of_condition && !again && node.is_named() {
        let test = "a case that takes the `else` branch".to_owned();
        out.push(Proposal::new(MutationKind::Branch, node.byte_range(), "", test));
    }
}
