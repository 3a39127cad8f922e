//! Names that are local to a Python function: parameters, assigned variables, and the names of
//! arguments. They don't refer to definitions of the same name elsewhere.

use std::collections::HashMap;
use std::ops::Range;

use tree_sitter::Node;

use super::{NameNode, UseKind};

/// Prefixes of the names of functions whose parameters pytest injects by their names.
const INJECTED_FUNCTION_PREFIXES: [&str; 2] = ["test", "pytest_"];
/// A part of the decorators of other functions with injected parameters.
const FIXTURE_DECORATOR: &str = "fixture";

/// A name that a function binds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LocalName {
    /// Its scope: the function's body.
    body: Range<usize>,
    name: Range<usize>,
    /// True if it refers to an outer definition: `global x`, an import, a fixture.
    is_outer: bool,
}

/// The role of a name in its statement.
enum BindingKind {
    /// The name of an argument in a call.
    Argument,
    Parameter,
    Variable,
    /// Declared as one of an outer scope.
    Outer,
}

/// Returns true for the name of an argument or a parameter, and adds a name that its function binds
/// to `locals`.
pub(crate) fn collect_local_name(
    name: Node<'_>,
    ancestors: &[Node<'_>],
    is_import: bool,
    text: &str,
    locals: &mut Vec<LocalName>,
) -> bool {
    let binding = if is_import { Some(BindingKind::Outer) } else { binding_of(name, ancestors) };
    let Some(binding) = binding else { return false };
    if matches!(binding, BindingKind::Argument) {
        return true;
    }
    let is_scope =
        |node: &Node<'_>| matches!(node.kind(), "function_definition" | "lambda" | "class_definition");
    let Some(at) = ancestors.iter().rposition(is_scope) else { return false };
    let (around, from) = ancestors.split_at(at);
    let body = from.first().and_then(|scope| scope.child_by_field_name("body"));
    let (Some(scope), Some(body)) = (from.first(), body.filter(|_| !is_class_scope(from))) else {
        return false;
    };
    let is_parameter = matches!(binding, BindingKind::Parameter);
    let is_outer = matches!(binding, BindingKind::Outer)
        || is_parameter && has_injected_parameters(*scope, around.last(), text);
    locals.push(LocalName { body: body.byte_range(), name: name.byte_range(), is_outer });
    is_parameter && !is_outer
}

fn is_class_scope(from: &[Node<'_>]) -> bool {
    from.first().is_some_and(|scope| scope.kind() == "class_definition")
}

/// Returns true if a test framework may inject a function's parameters by their names.
fn has_injected_parameters(function: Node<'_>, parent: Option<&Node<'_>>, text: &str) -> bool {
    let name = function.child_by_field_name("name").and_then(|name| text.get(name.byte_range()));
    if name.is_some_and(|name| INJECTED_FUNCTION_PREFIXES.iter().any(|start| name.starts_with(start))) {
        return true;
    }
    let decorated = parent.filter(|parent| parent.kind() == "decorated_definition");
    let before = decorated.and_then(|decorated| text.get(decorated.start_byte()..function.start_byte()));
    before.is_some_and(|decorators| decorators.contains(FIXTURE_DECORATOR))
}

/// Returns how a name is bound, if it is.
fn binding_of(name: Node<'_>, ancestors: &[Node<'_>]) -> Option<BindingKind> {
    let mut inner = name;
    for parent in ancestors.iter().rev() {
        let is_field = |field: &str| parent.child_by_field_name(field) == Some(inner);
        match parent.kind() {
            "pattern_list"
            | "tuple_pattern"
            | "list_pattern"
            | "list_splat_pattern"
            | "dictionary_splat_pattern" => {}
            "keyword_argument" => return is_field("name").then_some(BindingKind::Argument),
            "parameters" | "lambda_parameters" => return Some(BindingKind::Parameter),
            "default_parameter" | "typed_default_parameter" => {
                return is_field("name").then_some(BindingKind::Parameter);
            }
            "typed_parameter" => {
                return (parent.named_child(0) == Some(inner)).then_some(BindingKind::Parameter);
            }
            "assignment" | "augmented_assignment" | "for_statement" => {
                return is_field("left").then_some(BindingKind::Variable);
            }
            "named_expression" => return is_field("name").then_some(BindingKind::Variable),
            "as_pattern_target" => return Some(BindingKind::Variable),
            "global_statement" | "nonlocal_statement" => return Some(BindingKind::Outer),
            _ => return None,
        }
        inner = *parent;
    }
    None
}

/// Gives the uses of local names a kind of use that runs no other code.
pub(crate) fn mark_local_names(names: &mut [NameNode], mut locals: Vec<LocalName>, text: &str) {
    // Enclosing functions come before those that they enclose.
    locals.sort_by_key(|local| (local.body.start, std::cmp::Reverse(local.body.end)));
    let mut locals = locals.into_iter().peekable();
    let mut open: HashMap<&str, Vec<LocalName>> = HashMap::new();
    for name in names.iter_mut().filter(|name| name.kind == UseKind::Plain) {
        let at = name.start as usize;
        while let Some(local) = locals.next_if(|local| local.body.start <= at) {
            let around = open.entry(text.get(local.name.clone()).unwrap_or_default()).or_default();
            drop_ended_scopes(around, local.body.start);
            match around.last_mut().filter(|last| last.body == local.body) {
                Some(same) => same.is_outer |= local.is_outer,
                None => around.push(local),
            }
        }
        let Some(around) = text.get(at..name.end as usize).and_then(|text| open.get_mut(text)) else {
            continue;
        };
        drop_ended_scopes(around, at);
        if around.last().is_some_and(|local| !local.is_outer) {
            name.kind = UseKind::Annotation;
        }
    }
}

/// Drops the local names whose functions end before a position.
fn drop_ended_scopes(around: &mut Vec<LocalName>, at: usize) {
    while around.last().is_some_and(|local| local.body.end <= at) {
        around.pop();
    }
}
