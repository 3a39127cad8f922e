//! Mutations within expressions.

use std::ops::Range;

use journeyman_protocol::MutationKind;
use journeyman_syntax::Node;
use journeyman_syntax::language::Language;

use super::mutant::quote_code;
use super::node_kinds::{called_words, is_tuning_call, named_children, text_of};
use super::proposals::{NodeContext, Proposal};
use crate::honesty::node_kinds::is_call;

/// Operators and their replacements.
const OPERATORS: [(&str, &str, MutationKind); 38] = [
    ("<", "<=", MutationKind::Boundary),
    ("<=", "<", MutationKind::Boundary),
    (">", ">=", MutationKind::Boundary),
    (">=", ">", MutationKind::Boundary),
    ("==", "!=", MutationKind::Condition),
    ("!=", "==", MutationKind::Condition),
    ("===", "!==", MutationKind::Condition),
    ("!==", "===", MutationKind::Condition),
    ("is", "is not", MutationKind::Condition),
    ("is not", "is", MutationKind::Condition),
    ("in", "not in", MutationKind::Condition),
    ("not in", "in", MutationKind::Condition),
    ("&&", "||", MutationKind::Logic),
    ("||", "&&", MutationKind::Logic),
    ("and", "or", MutationKind::Logic),
    ("or", "and", MutationKind::Logic),
    ("??", "&&", MutationKind::Logic),
    ("+", "-", MutationKind::Arithmetic),
    ("-", "+", MutationKind::Arithmetic),
    ("*", "+", MutationKind::Arithmetic),
    ("/", "*", MutationKind::Arithmetic),
    ("//", "*", MutationKind::Arithmetic),
    ("%", "*", MutationKind::Arithmetic),
    ("**", "*", MutationKind::Arithmetic),
    ("<<", ">>", MutationKind::Arithmetic),
    (">>", "<<", MutationKind::Arithmetic),
    ("&", "|", MutationKind::Arithmetic),
    ("|", "&", MutationKind::Arithmetic),
    ("^", "|", MutationKind::Arithmetic),
    ("+=", "-=", MutationKind::Arithmetic),
    ("-=", "+=", MutationKind::Arithmetic),
    ("*=", "+=", MutationKind::Arithmetic),
    ("/=", "*=", MutationKind::Arithmetic),
    ("//=", "*=", MutationKind::Arithmetic),
    ("%=", "*=", MutationKind::Arithmetic),
    ("&=", "|=", MutationKind::Arithmetic),
    ("|=", "&=", MutationKind::Arithmetic),
    ("^=", "|=", MutationKind::Arithmetic),
];
/// Truth values and their opposites.
const TRUTH_VALUES: [(&str, &str); 6] = [
    ("true", "false"),
    ("false", "true"),
    ("True", "False"),
    ("False", "True"),
    ("TRUE", "FALSE"),
    ("FALSE", "TRUE"),
];
/// Functions for which the order of arguments doesn't matter.
const COMMUTATIVE_FUNCTIONS: [&str; 10] =
    ["max", "min", "gcd", "lcm", "equals", "equal", "hypot", "add", "imax", "imin"];

/// Proposes the mutations of one node of an expression.
pub(super) fn propose_mutations(node: Node<'_>, scope: &NodeContext<'_>, out: &mut Vec<Proposal>) {
    propose_operator(node, scope, out);
    propose_condition(node, scope, out);
    propose_negation(node, scope, out);
    propose_constant(node, scope, out);
    propose_range_end(node, scope, out);
    propose_argument_swap(node, scope, out);
}

fn is_operation(kind: &str) -> bool {
    matches!(
        kind,
        "binary_expression"
            | "binary_operator"
            | "comparison_operator"
            | "boolean_operator"
            | "binary"
            | "augmented_assignment"
            | "augmented_assignment_expression"
            | "compound_assignment_expr"
            | "assignment_expression"
            | "assignment_statement"
            | "operator_assignment"
    )
}

fn propose_operator(node: Node<'_>, scope: &NodeContext<'_>, out: &mut Vec<Proposal>) {
    if !is_operation(node.kind()) {
        return;
    }
    let mut cursor = node.walk();
    let signs: Vec<Node<'_>> = node.children(&mut cursor).filter(|child| !child.is_named()).collect();
    for sign in signs {
        let written = scope.text_of(sign);
        let Some((_, other, kind)) = OPERATORS.iter().find(|(sign, _, _)| *sign == written) else { continue };
        let (Some(left), Some(right)) = (sign.prev_named_sibling(), sign.next_named_sibling()) else {
            continue;
        };
        if *kind == MutationKind::Arithmetic && [left, right].iter().any(|side| is_string_node(*side)) {
            continue;
        }
        if *kind == MutationKind::Logic {
            for (kept, dropped) in [(left, right), (right, left)] {
                let test =
                    format!("a case in which `{}` decides the result", quote_code(scope.text_of(dropped)));
                out.push(Proposal::new(
                    MutationKind::Condition,
                    node.byte_range(),
                    scope.text_of(kept),
                    test,
                ));
            }
        }
        if *kind == MutationKind::Boundary
            && (is_maximum_selection(node, left, right, scope) || may_read_out_of_bounds(node, other, scope))
        {
            continue;
        }
        let probe = (*kind == MutationKind::Boundary).then(|| equality_probe(node, left, right, scope));
        let (left, right) = (quote_code(scope.text_of(left)), quote_code(scope.text_of(right)));
        let test = match kind {
            MutationKind::Boundary => format!("a case in which `{left}` equals `{right}`"),
            MutationKind::Logic => format!("a case in which only one of `{left}` and `{right}` holds"),
            MutationKind::Condition => {
                format!("cases in which `{left} {written} {right}` is true and is false")
            }
            _ => format!("values for which `{left} {written} {right}` and `{left} {other} {right}` differ"),
        };
        let proposal = Proposal::new(*kind, sign.byte_range(), *other, test);
        out.push(Proposal { probe: probe.flatten(), ..proposal });
    }
}

/// Returns the comparison with code that ends the program if both sides are equal, if evaluating
/// them twice changes nothing.
fn equality_probe(
    comparison: Node<'_>,
    left: Node<'_>,
    right: Node<'_>,
    scope: &NodeContext<'_>,
) -> Option<(Range<usize>, String)> {
    let is_pure = [left, right].iter().all(|side| is_pure(*side, scope, 0));
    if scope.words.stop_if.is_empty() || comparison.named_child_count() != 2 || !is_pure {
        return None;
    }
    let equals = match scope.language {
        Language::JavaScript | Language::TypeScript | Language::Tsx | Language::Php => "===",
        _ => "==",
    };
    let equal = format!("({}) {equals} ({})", scope.text_of(left), scope.text_of(right));
    let stop = scope.words.stop_if.replace("@e", &equal).replace("@c", scope.text_of(comparison));
    Some((comparison.byte_range(), stop))
}

/// Returns true for an expression without side effects.
fn is_pure(node: Node<'_>, scope: &NodeContext<'_>, depth: usize) -> bool {
    /// Depth of an expression that a bound is compared with.
    const MAX_DEPTH: usize = 8;
    /// Calls that count something.
    const COUNTING_CALLS: [&str; 6] = ["len", "strlen", "size", "length", "count", "abs"];
    let kind = node.kind();
    let writes = ["assignment", "update", "await", "yield", "function", "lambda", "closure", "macro"];
    let counts = || called_words(node, scope.text).last().is_some_and(|word| COUNTING_CALLS.contains(word));
    depth < MAX_DEPTH
        && !writes.iter().any(|part| kind.contains(part))
        && (!is_call(kind) || counts())
        && named_children(node).into_iter().all(|child| is_pure(child, scope, depth + 1))
}

fn is_string_node(node: Node<'_>) -> bool {
    let kind = node.kind();
    let is_part = ["content", "fragment", "start", "end"].iter().any(|part| kind.ends_with(part));
    !is_part && (kind.contains("string") || kind.contains("heredoc"))
}

/// Returns true for `if a > b { b = a }`, `a > b ? a : b` and `if a < 0 { a = -a }`, for which
/// equal values change nothing.
fn is_maximum_selection(
    comparison: Node<'_>,
    left: Node<'_>,
    right: Node<'_>,
    scope: &NodeContext<'_>,
) -> bool {
    let mut around = comparison.parent();
    let is_within = |it: &Node<'_>| it.kind() == "parenthesized_expression" || is_conjunction(*it, scope);
    while let Some(parent) = around.filter(is_within) {
        around = parent.parent();
    }
    let Some(around) = around.filter(|around| is_conditional(around.kind())) else { return false };
    let sides = [scope.text_of(left), scope.text_of(right)];
    // Zero is its own negative.
    let zero = sides.iter().position(|side| ["0", "0.0"].contains(side));
    let (negated, value) = match zero.and_then(|zero| sides.get(1 - zero)) {
        Some(value) => (format!("-{value}"), *value),
        None => (String::new(), ""),
    };
    let is_pair = |one: &str, other: &str| {
        sides == [one, other]
            || sides == [other, one]
            || zero.is_some()
                && [[value, negated.as_str()], [negated.as_str(), value]].contains(&[one, other])
    };
    let texts: Vec<&str> = named_children(around).iter().map(|child| scope.text_of(*child)).collect();
    if matches!(around.kind(), "conditional_expression" | "ternary_expression" | "conditional") {
        return texts
            .iter()
            .enumerate()
            .any(|(at, one)| texts.iter().skip(at + 1).any(|other| is_pair(one, other)));
    }
    // `if a > b { return b }`: what is returned for equal values is either of them.
    let body = ["consequence", "body"].iter().find_map(|field| around.child_by_field_name(field));
    let is_return = |node: Node<'_>| node.kind().starts_with("return");
    let only = body.and_then(|body| if is_return(body) { Some(body) } else { only_child(body) });
    if let Some(value) = only.filter(|it| is_return(*it)).and_then(|it| it.named_child(0))
        && sides.contains(&scope.text_of(value))
    {
        return true;
    }
    has_pair_assignment(around, scope, &is_pair, 0)
}

/// Returns true for the bound of a loop over an array in C and similar languages, where reading one
/// element beyond is undefined: that element is mostly harmless, and no test can notice it.
fn may_read_out_of_bounds(comparison: Node<'_>, other: &str, scope: &NodeContext<'_>) -> bool {
    if !matches!(scope.language, Language::C | Language::Cpp) {
        return false;
    }
    let side = match other {
        "<=" => comparison.child_by_field_name("left"),
        ">=" => comparison.child_by_field_name("right"),
        _ => None,
    };
    let Some(index) = side.filter(|side| side.kind() == "identifier") else { return false };
    let mut around = comparison.parent();
    let is_within = |it: &Node<'_>| it.kind() == "parenthesized_expression" || is_conjunction(*it, scope);
    while let Some(parent) = around.filter(is_within) {
        around = parent.parent();
    }
    let is_loop = |it: &Node<'_>| matches!(it.kind(), "for_statement" | "while_statement");
    let Some(body) = around.filter(is_loop) else { return false };
    scope.text_of(body).contains(&format!("[{}]", scope.text_of(index)))
}

fn only_child(node: Node<'_>) -> Option<Node<'_>> {
    let mut children = named_children(node);
    children.pop().filter(|_| children.is_empty())
}

fn is_conjunction(node: Node<'_>, scope: &NodeContext<'_>) -> bool {
    let mut cursor = node.walk();
    is_operation(node.kind())
        && node
            .children(&mut cursor)
            .any(|child| !child.is_named() && matches!(scope.text_of(child), "&&" | "and"))
}

fn has_pair_assignment(
    node: Node<'_>,
    scope: &NodeContext<'_>,
    is_pair: &dyn Fn(&str, &str) -> bool,
    depth: usize,
) -> bool {
    /// Depth of an assignment in the body of a condition.
    const MAX_DEPTH: usize = 5;
    let side = |name| node.child_by_field_name(name).map(|side| scope.text_of(side));
    if let (true, Some(left), Some(right)) = (node.kind().contains("assignment"), side("left"), side("right"))
        && is_pair(left, right)
    {
        return true;
    }
    depth < MAX_DEPTH
        && named_children(node).into_iter().any(|child| has_pair_assignment(child, scope, is_pair, depth + 1))
}

fn is_conditional(kind: &str) -> bool {
    matches!(
        kind,
        "if_statement"
            | "if_expression"
            | "elif_clause"
            | "else_if_clause"
            | "if"
            | "elsif"
            | "if_modifier"
            | "conditional_expression"
            | "ternary_expression"
            | "conditional"
    )
}

/// Proposes conditions that are always or never true. The condition is still evaluated, so that all
/// names stay in use.
fn propose_condition(node: Node<'_>, scope: &NodeContext<'_>, out: &mut Vec<Proposal>) {
    let loops = matches!(node.kind(), "while_statement" | "while_expression" | "while" | "do_statement");
    let found = match node.kind() {
        // Python's has no field names.
        "conditional_expression" if node.child_by_field_name("condition").is_none() => node.named_child(1),
        kind if loops || is_conditional(kind) || kind == "unless" || kind == "unless_modifier" => {
            node.child_by_field_name("condition")
        }
        _ => None,
    };
    let Some(mut found) = found else { return };
    if matches!(found.kind(), "parenthesized_expression" | "condition_clause") {
        let Some(inner) = found.named_child(0) else { return };
        found = inner;
    }
    let written = scope.text_of(found);
    let constant = TRUTH_VALUES.iter().any(|(word, _)| *word == written) || matches!(written, "0" | "1");
    if constant || found.kind().starts_with("let_") || found.kind() == "declaration" {
        return;
    }
    let (words, shown) = (scope.words, quote_code(written));
    let never = format!("({written}) {} {}", words.and, words.no);
    let test = format!("a case in which `{shown}` is true and decides the result");
    let body = ["consequence", "body"].iter().find_map(|field| node.child_by_field_name(field));
    let disables = body.filter(|_| !loops).map(|body| body.byte_range());
    let never = Proposal::new(MutationKind::Condition, found.byte_range(), never, test);
    out.push(Proposal { disables, ..never });
    if !loops {
        let always = format!("({written}) {} {}", words.or, words.yes);
        let test = format!("a case in which `{shown}` is false and decides the result");
        out.push(Proposal::new(MutationKind::Condition, found.byte_range(), always, test));
    }
}

fn propose_negation(node: Node<'_>, scope: &NodeContext<'_>, out: &mut Vec<Proposal>) {
    let negates = matches!(
        node.kind(),
        "unary_expression" | "not_operator" | "unary" | "prefix_unary_expression" | "unary_op_expression"
    );
    let sign = node.child(0).map(|sign| scope.text_of(sign)).unwrap_or_default();
    if !negates || !matches!(sign, "!" | "not") {
        return;
    }
    let Some(argument) = named_children(node).pop() else { return };
    let shown = quote_code(scope.text_of(node));
    let test = format!("cases in which `{shown}` is true and is false");
    out.push(Proposal::new(MutationKind::Condition, node.byte_range(), scope.text_of(argument), test));
}

fn propose_constant(node: Node<'_>, scope: &NodeContext<'_>, out: &mut Vec<Proposal>) {
    let written = scope.text_of(node);
    let literal = node.is_named() && node.named_child_count() == 0;
    if let Some((_, other)) = TRUTH_VALUES.iter().find(|(word, _)| literal && *word == written) {
        let test = format!("a case whose result shows that `{written}` is not `{other}`");
        out.push(Proposal::new(MutationKind::Constant, node.byte_range(), *other, test));
    } else if is_number(node.kind()) && !is_tuning_argument(node, scope) {
        for other in neighbouring_numbers(written, is_loop_step(node), equivalent_bound_offset(node, scope)) {
            let test = format!("a case whose result differs with `{other}` in place of `{written}`");
            out.push(Proposal::new(MutationKind::Constant, node.byte_range(), other, test));
        }
    } else if scope.is_returned && is_string_node(node) {
        let empty = written.len() <= 2;
        let other = if empty { "\"mutated\"" } else { "\"\"" };
        let test = format!("a case that compares the text {}", quote_code(written));
        out.push(Proposal::new(MutationKind::Text, node.byte_range(), other, test));
    }
}

fn is_number(kind: &str) -> bool {
    matches!(kind, "integer" | "float" | "number" | "number_literal" | "int_literal" | "float_literal")
        || kind.ends_with("integer_literal")
        || matches!(kind, "decimal_floating_point_literal" | "real_literal")
}

/// Returns true for the increment of a loop, without which the loop doesn't end.
fn is_loop_step(node: Node<'_>) -> bool {
    node.parent().is_some_and(|parent| {
        let kind = parent.kind();
        kind.contains("augmented") || kind.contains("compound_assignment") || kind == "operator_assignment"
    })
}

/// Returns true for an argument that only makes its call faster or slower.
fn is_tuning_argument(node: Node<'_>, scope: &NodeContext<'_>) -> bool {
    let call = node.parent().and_then(|arguments| arguments.parent());
    call.is_some_and(|call| {
        (is_call(call.kind()) || call.kind() == "object_creation_expression")
            && is_tuning_call(call, scope.text)
    })
}

/// Returns the offset at which a moved bound equals including or excluding the bound.
fn equivalent_bound_offset(node: Node<'_>, scope: &NodeContext<'_>) -> Option<i64> {
    let compared = node.prev_sibling().filter(|_| node.next_sibling().is_none());
    let right = match compared.map(|sign| scope.text_of(sign)) {
        Some("<" | ">=") => Some(1),
        Some("<=" | ">") => Some(-1),
        _ => None,
    };
    let left = || match node.next_sibling().map(|sign| scope.text_of(sign)) {
        Some("<" | ">=") => Some(-1),
        Some("<=" | ">") => Some(1),
        _ => None,
    };
    right.or_else(|| left().filter(|_| node.prev_sibling().is_none()))
}

/// Returns the numbers next to a decimal number, with its suffix, except the one that is
/// `moved_bound` away.
fn neighbouring_numbers(written: &str, is_step: bool, moved_bound: Option<i64>) -> Vec<String> {
    let digits_end = written
        .char_indices()
        .find(|(at, c)| !c.is_ascii_digit() && *c != '_' && !(*at == 0 && *c == '-'))
        .map_or(written.len(), |(at, _)| at);
    let (digits, rest) = written.split_at(digits_end);
    let prefixed = digits == "0" && rest.starts_with(['x', 'X', 'b', 'B', 'o', 'O']);
    let Ok(value) = digits.replace('_', "").parse::<i64>() else { return Vec::new() };
    // Digits after a leading zero are octal in some languages.
    let octal = digits.len() > 1 && digits.trim_start_matches('-').starts_with('0') && !rest.starts_with('.');
    if prefixed || octal {
        return Vec::new();
    }
    let mut others = vec![value.saturating_add(1)];
    if value >= 1 && !is_step {
        others.push(value - 1);
    }
    others.retain(|other| moved_bound.is_none_or(|by| value.saturating_add(by) != *other));
    others.into_iter().map(|other| format!("{other}{rest}")).collect()
}

fn propose_range_end(node: Node<'_>, scope: &NodeContext<'_>, out: &mut Vec<Proposal>) {
    if matches!(node.kind(), "range_expression" | "range") {
        let mut cursor = node.walk();
        let sign = node.children(&mut cursor).find(|child| !child.is_named());
        let Some(sign) = sign.filter(|sign| sign.next_named_sibling().is_some()) else { return };
        let other = match (node.kind(), scope.text_of(sign)) {
            ("range_expression", "..") => "..=",
            ("range_expression", "..=") | ("range", "...") => "..",
            ("range", "..") => "...",
            _ => return,
        };
        let test = format!(
            "a case whose result depends on the last element of `{}`",
            quote_code(scope.text_of(node))
        );
        out.push(Proposal::new(MutationKind::Range, sign.byte_range(), other, test));
        return;
    }
    // Python's range: the last element, unless a literal has its own mutations.
    if node.kind() != "call" || called_words(node, scope.text) != ["range"] {
        return;
    }
    let arguments = node.child_by_field_name("arguments").map(named_children).unwrap_or_default();
    let end = if arguments.len() == 1 { arguments.first() } else { arguments.get(1) };
    let Some(end) = end.filter(|end| !is_number(end.kind()) && end.kind() != "binary_operator") else {
        return;
    };
    let written = scope.text_of(*end);
    let test =
        format!("a case whose result depends on the last element of `{}`", quote_code(scope.text_of(node)));
    out.push(Proposal::new(MutationKind::Range, end.byte_range(), format!("({written}) - 1"), test));
}

/// Swaps two neighbouring arguments that are plain names.
fn propose_argument_swap(node: Node<'_>, scope: &NodeContext<'_>, out: &mut Vec<Proposal>) {
    if !is_call(node.kind()) && node.kind() != "object_creation_expression" && node.kind() != "new_expression"
    {
        return;
    }
    let words = called_words(node, scope.text);
    if words.last().is_some_and(|word| COMMUTATIVE_FUNCTIONS.contains(word)) {
        return;
    }
    let given = node.child_by_field_name("arguments").map(named_children).unwrap_or_default();
    let is_name = |node: &Node<'_>| {
        let inner = if node.kind() == "argument" { node.named_child(0) } else { Some(*node) };
        inner.is_some_and(|inner| matches!(inner.kind(), "identifier" | "variable_name"))
    };
    for (one, other) in given.iter().zip(given.iter().skip(1)) {
        let (first, second) = (scope.text_of(*one), scope.text_of(*other));
        if !is_name(one) || !is_name(other) || first == second {
            continue;
        }
        let range: Range<usize> = one.start_byte()..other.end_byte();
        let between = scope.text.get(one.end_byte()..other.start_byte()).unwrap_or(", ");
        let test = format!("different values for `{first}` and `{second}`");
        out.push(Proposal::new(MutationKind::Arguments, range, format!("{second}{between}{first}"), test));
        return;
    }
}

/// Returns the text of a node; for calls, whose name decides.
pub(super) fn method_name<'t>(node: Node<'_>, text: &'t str) -> &'t str {
    node.child_by_field_name("method").map_or("", |method| text_of(method, text))
}
