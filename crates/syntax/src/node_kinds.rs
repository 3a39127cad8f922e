//! Kinds of nodes that all languages treat alike: wrappers, comments and attributes.

use tree_sitter::Node;

/// Node kinds that only add keywords to the one definition inside.
const WRAPPER_KINDS: [&str; 14] = [
    "ambient_declaration",
    "assignment_expression",
    "const_declaration",
    "decorated_definition",
    "declaration",
    "export_statement",
    "expression_statement",
    "field_declaration",
    "lexical_declaration",
    "template_declaration",
    "type_declaration",
    "type_definition",
    "var_declaration",
    "variable_declaration",
];

/// Returns true if a node only adds keywords to the one definition inside.
pub(crate) fn is_wrapper(parent: Node<'_>, inner: Node<'_>) -> bool {
    let alone = || {
        let mut cursor = parent.walk();
        parent.named_children(&mut cursor).filter(|child| child.kind_id() == inner.kind_id()).nth(1).is_none()
    };
    WRAPPER_KINDS.contains(&parent.kind()) && alone()
}

/// Returns true if a node is a comment.
#[must_use]
pub fn is_comment(node: Node<'_>) -> bool {
    is_comment_kind(node.kind())
}

pub(crate) fn is_comment_kind(kind: &str) -> bool {
    kind.contains("comment")
}

/// Returns true if a node is an attribute of the definition that follows it.
#[must_use]
pub fn is_attribute(node: Node<'_>) -> bool {
    is_attribute_kind(node.kind())
}

pub(crate) fn is_attribute_kind(kind: &str) -> bool {
    matches!(
        kind,
        "attribute_item"
            | "attribute"
            | "decorator"
            | "annotation"
            | "attribute_list"
            | "attribute_declaration"
    )
}
