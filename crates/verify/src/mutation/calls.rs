//! Mutations of calls and loops: a removed call, or a loop that ends early.

use journeyman_protocol::MutationKind;
use journeyman_syntax::Node;
use journeyman_syntax::language::Language;

use super::mutant::quote_code;
use super::node_kinds::{called_words, named_children};
use super::proposals::{NodeContext, Proposal};
use crate::honesty::node_kinds::is_call;

/// Functions and methods whose result has the type of their argument or receiver, so that this can
/// replace the call: a test that sees no difference doesn't test their effect.
const TYPE_PRESERVING_CALLS: [&str; 62] = [
    "abs",
    "fabs",
    "labs",
    "round",
    "floor",
    "ceil",
    "trunc",
    "int",
    "max",
    "min",
    "clamp",
    "sorted",
    "reversed",
    "lower",
    "upper",
    "strip",
    "lstrip",
    "rstrip",
    "title",
    "capitalize",
    "casefold",
    "replace",
    "replaceAll",
    "trim",
    "trimStart",
    "trimEnd",
    "toLowerCase",
    "toUpperCase",
    "filter",
    "sort",
    "reverse",
    "distinct",
    "uniq",
    "unique",
    "compact",
    "downcase",
    "upcase",
    "chomp",
    "to_lowercase",
    "to_uppercase",
    "trim_start",
    "trim_end",
    "rev",
    "skip",
    "take",
    "saturating_sub",
    "saturating_add",
    "padStart",
    "padEnd",
    "zfill",
    "ljust",
    "rjust",
    "decodeURIComponent",
    "encodeURIComponent",
    "htmlspecialchars",
    "strtolower",
    "strtoupper",
    "TrimSpace",
    "ToLower",
    "ToUpper",
    "tolower",
    "toupper",
];

/// Proposes the mutations of a call or a loop.
pub(super) fn propose_mutations(node: Node<'_>, scope: &NodeContext<'_>, out: &mut Vec<Proposal>) {
    propose_call_removal(node, scope, out);
    propose_single_iteration(node, scope, out);
}

/// Replaces a call by its receiver, or by each of its arguments.
fn propose_call_removal(node: Node<'_>, scope: &NodeContext<'_>, out: &mut Vec<Proposal>) {
    let words = called_words(node, scope.text);
    let known = is_call(node.kind()) && words.last().is_some_and(|word| TYPE_PRESERVING_CALLS.contains(word));
    // A call that is a statement is removed as such.
    let is_statement = node.parent().is_some_and(|parent| parent.kind() == "expression_statement");
    if !known || is_statement {
        return;
    }
    let arguments = node.child_by_field_name("arguments").map(named_children).unwrap_or_default();
    let subject = method_receiver(node).filter(|subject| !is_module_name(scope.text_of(*subject)));
    let replacements: Vec<Node<'_>> = match subject {
        Some(subject) => vec![subject],
        None if arguments.len() <= 2 => arguments,
        None => return,
    };
    let shown = quote_code(scope.text_of(node));
    for replacement in replacements {
        // Key functions and the like are not values.
        if replacement.kind().contains("lambda") || replacement.kind() == "keyword_argument" {
            continue;
        }
        let written = scope.text_of(replacement);
        let simple = replacement.named_child_count() == 0 || is_call(replacement.kind());
        let replacement = if simple { written.to_owned() } else { format!("({written})") };
        let test = format!("a case in which `{shown}` differs from `{}`", quote_code(written));
        out.push(Proposal::new(MutationKind::Call, node.byte_range(), replacement, test));
    }
}

/// Returns the receiver of a method call.
fn method_receiver(node: Node<'_>) -> Option<Node<'_>> {
    let direct = ["receiver", "object"].iter().find_map(|field| node.child_by_field_name(field));
    direct.or_else(|| {
        let function = node.child_by_field_name("function")?;
        ["object", "value", "operand", "expression", "argument"]
            .iter()
            .find_map(|field| function.child_by_field_name(field))
    })
}

/// Returns true for the name of a module or class, which is not a value.
fn is_module_name(subject: &str) -> bool {
    let named = subject.chars().all(|c| c.is_alphanumeric() || c == '_');
    named && subject.starts_with(char::is_uppercase)
        || matches!(subject, "math" | "np" | "strings" | "os" | "std")
}

/// Ends a loop after its first iteration.
fn propose_single_iteration(node: Node<'_>, scope: &NodeContext<'_>, out: &mut Vec<Proposal>) {
    let loops = matches!(
        node.kind(),
        "for_statement"
            | "for_in_statement"
            | "enhanced_for_statement"
            | "foreach_statement"
            | "for_range_loop"
            | "for_expression"
            | "while_statement"
            | "while_expression"
            | "range_based_for_statement"
    );
    let Some(body) = node.child_by_field_name("body").filter(|_| loops) else { return };
    let inner = body.named_child(0).filter(|only| only.kind() == "statement_list").unwrap_or(body);
    let Some(last) = named_children(inner).pop() else { return };
    let leaves = ["return", "break", "continue", "raise", "throw"];
    let text = scope.text_of(last);
    if leaves.iter().any(|word| text.starts_with(word)) {
        return;
    }
    let end = last.end_byte();
    let replacement = match scope.language {
        Language::Python => {
            let start = last.start_byte();
            let head = scope.text.get(..start).unwrap_or_default();
            let indent = head.rsplit('\n').next().unwrap_or_default();
            if !indent.trim().is_empty() {
                return;
            }
            format!("\n{indent}break")
        }
        Language::Ruby => return,
        Language::Go => "; break".to_owned(),
        Language::Rust if last.kind().ends_with("statement") || last.kind().ends_with("declaration") => {
            " break;".to_owned()
        }
        Language::Rust => "; break;".to_owned(),
        _ if body.kind().contains("block") || body.kind().contains("compound") => " break;".to_owned(),
        _ => return,
    };
    let header = scope.text.get(node.start_byte()..body.start_byte()).unwrap_or_default();
    let test = format!(
        "a case in which `{}` goes round more than once",
        quote_code(header.trim_end_matches(['{', ':', ' ']))
    );
    out.push(Proposal::new(MutationKind::Range, end..end, replacement, test));
}
