//! Kinds of syntax nodes that mean the same in different grammars.

use journeyman_syntax::Node;

pub(super) fn is_decoration(node: Node<'_>) -> bool {
    matches!(
        node.kind(),
        "attribute_item" | "decorator" | "annotation" | "marker_annotation" | "attribute_list"
    )
}

pub(super) fn is_function(kind: &str) -> bool {
    matches!(
        kind,
        "function_definition"
            | "function_item"
            | "function_declaration"
            | "method_declaration"
            | "method_definition"
            | "method"
            | "singleton_method"
            | "local_function_statement"
    )
}

pub(super) fn is_closure(kind: &str) -> bool {
    matches!(
        kind,
        "lambda"
            | "lambda_expression"
            | "arrow_function"
            | "function_expression"
            | "func_literal"
            | "closure_expression"
            | "block"
            | "do_block"
            | "lambda_literal"
            | "anonymous_function"
            | "function_definition"
    )
}

pub(crate) fn is_call(kind: &str) -> bool {
    matches!(
        kind,
        "call"
            | "call_expression"
            | "method_invocation"
            | "invocation_expression"
            | "function_call_expression"
            | "member_call_expression"
            | "nullsafe_member_call_expression"
            | "scoped_call_expression"
            | "macro_invocation"
            | "function_call"
    )
}

pub(super) fn is_conditional(kind: &str) -> bool {
    matches!(
        kind,
        "if_statement"
            | "if_expression"
            | "if"
            | "unless"
            | "if_modifier"
            | "unless_modifier"
            | "preproc_if"
            | "preproc_ifdef"
    )
}

pub(super) fn is_block(kind: &str) -> bool {
    matches!(
        kind,
        "block"
            | "statement_block"
            | "compound_statement"
            | "body_statement"
            | "statement_list"
            | "statements"
            | "do_block"
            | "function_body"
            | "arguments"
            | "argument_list"
            | "arrow_function"
            | "func_literal"
            | "function_expression"
            | "class_body"
            | "declaration_list"
            | "argument"
            | "lambda_literal"
            | "expression_list"
    )
}
