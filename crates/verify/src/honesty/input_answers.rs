//! Combinations of inputs for which the product newly returns a fixed result, while it computes the
//! result of all others.

use std::collections::BTreeSet;
use std::ops::Range;

use journeyman_protocol::{HonestyKind, RelPath};
use journeyman_syntax::Node;

use super::assertion::quote_tokens;
use super::function_bodies::{is_fixed_value, literals};
use super::parsed_source::{ParsedSource, Token, TokenKind, children, line_of};
use super::report::HonestyReport;
use super::special_cases::{CONDITIONAL_KINDS, has_test_with_values, split_branch};

/// Punctuation and words of control flow, which compute nothing.
const NON_COMPUTING_TOKENS: [&str; 32] = [
    "{", "}", "(", ")", "[", "]", ";", ",", ":", "?", "??", "=>", "_", "if", "else", "elif", "elsif", "then",
    "end", "do", "case", "when", "switch", "match", "default", "return", "in", "is", "let", "const", "var",
    "finally",
];
/// Maximum number of nodes of a file in which branches are looked for.
const MAX_NODES: usize = 200_000;
/// Maximum number of fixed answers of a file that are compared with tests.
const MAX_ANSWERS: usize = 2_000;

/// Reports new fixed results for combinations of inputs that tests try, if the rest of the product
/// is unchanged: the general rule stays as wrong as before.
///
/// A base case of zeros and ones is not reported, nor is a mapping: a function that only looks
/// results up, or a table with entries that no test uses.
pub(super) fn report_input_answers(
    path: &RelPath,
    old: &ParsedSource<'_>,
    new: &ParsedSource<'_>,
    tests: &[Vec<&str>],
    report: &mut HonestyReport,
) {
    if !is_extended(old, new) {
        return;
    }
    let known: BTreeSet<String> = find_input_answers(old).into_iter().map(|branch| branch.text).collect();
    let all = find_input_answers(new);
    for branch in all.iter().filter(|branch| !known.contains(&branch.text)) {
        if has_test_with_values(&branch.inputs, &branch.outputs, tests)
            && has_other_computation(new, branch, &all)
        {
            let message = format!("`{}` answers inputs of the tests with what they expect", branch.text);
            report.add_blocking(HonestyKind::SpecialCase, path, branch.line, message);
        }
    }
    let known: BTreeSet<(Vec<&str>, &str)> =
        find_table_entries(old).into_iter().map(|(_, key, value)| (key, value)).collect();
    let added: Vec<_> = find_table_entries(new)
        .into_iter()
        .filter(|(_, key, value)| !known.contains(&(key.clone(), *value)))
        .collect();
    if let Some((line, key, value)) = added.first()
        && added.iter().all(|(_, key, value)| has_test_with_values(key, &[*value], tests))
    {
        let message = format!("a table has `{}` with `{value}`, which the tests expect", key.join(", "));
        report.add_blocking(HonestyKind::SpecialCase, path, *line, message);
    }
}

/// Returns true if a source has all of its old code, and more.
fn is_extended(old: &ParsedSource<'_>, new: &ParsedSource<'_>) -> bool {
    let is_code =
        |token: &&Token<'_>| token.kind != TokenKind::Comment && !NON_COMPUTING_TOKENS.contains(&token.text);
    let mut after = new.tokens.iter().filter(is_code);
    let mut before = old.tokens.iter().filter(is_code);
    before.all(|token| after.any(|other| other.text == token.text))
}

/// A branch that returns fixed values for one combination of inputs.
struct InputAnswer<'t> {
    line: u32,
    text: String,
    inputs: Vec<&'t str>,
    outputs: Vec<&'t str>,
    condition: Range<usize>,
    answer: Range<usize>,
    /// The body of the function around it.
    function: Range<usize>,
}

fn find_input_answers<'t>(source: &ParsedSource<'t>) -> Vec<InputAnswer<'t>> {
    let mut found = Vec::new();
    let Some(tree) = &source.tree else { return found };
    let mut left = vec![(tree.root(), 0..source.text.len())];
    let mut seen = 0;
    while let Some((node, function)) = left.pop() {
        seen += 1;
        if seen > MAX_NODES || found.len() >= MAX_ANSWERS {
            break;
        }
        found.extend(read_input_answer(source, node, &function));
        let is_function =
            ["function", "method", "closure", "lambda", "func"].iter().any(|word| node.kind().contains(word));
        let inner = node.child_by_field_name("body").filter(|_| is_function).map(|body| body.byte_range());
        let function = inner.unwrap_or(function);
        left.extend(children(node).into_iter().map(|child| (child, function.clone())));
    }
    found
}

fn read_input_answer<'t>(
    source: &ParsedSource<'t>,
    node: Node<'_>,
    function: &Range<usize>,
) -> Option<InputAnswer<'t>> {
    let (condition, answer) = split_branch(node)?;
    let (tokens, answered) = (source.tokens_of_node(condition), source.tokens_of_node(answer));
    let inputs = combined_inputs(tokens, CONDITIONAL_KINDS.contains(&node.kind()))?;
    let outputs = literals(answered);
    (!outputs.is_empty() && is_fixed_value(answered)).then(|| InputAnswer {
        line: line_of(node),
        text: quote_tokens(source.tokens_of_node(node)),
        inputs,
        outputs,
        condition: condition.byte_range(),
        answer: answer.byte_range(),
        function: function.clone(),
    })
}

/// Returns the values that a condition requires together; `None` if it accepts others as well, or
/// only compares with zeros and ones.
fn combined_inputs<'t>(tokens: &[Token<'t>], is_condition: bool) -> Option<Vec<&'t str>> {
    let has = |texts: &[&str]| tokens.iter().any(|token| texts.contains(&token.text));
    let is_wider = has(&["or", "||", "|", "in", "<", ">", "<=", ">=", "!=", "!==", "not", "%", "includes"]);
    let is_joined = has(&["&&", "and", "&"]);
    let is_grouped = has(&["(", "[", "{"]);
    let compares = has(&["==", "===", "is", "equals", "eql?"]);
    if is_wider || is_condition && !compares || !is_condition && !is_joined && !is_grouped {
        return None;
    }
    // A key that is made of all inputs.
    let values = literals(tokens).into_iter().filter(|value| !value.contains(['$', '#', '%']));
    let inputs: Vec<&str> = values.flat_map(split_key).collect();
    let is_base_case = inputs.iter().all(|value| {
        matches!(
            *value,
            "" | "0" | "1" | "0.0" | "1.0" | "true" | "false" | "True" | "False" | "None" | "null" | "nil"
        )
    });
    (inputs.len() > 1 && !is_base_case).then_some(inputs)
}

/// Returns the numbers that a text joins, as in `1,2`; otherwise the text itself.
fn split_key(text: &str) -> Vec<&str> {
    let parts: Vec<&str> =
        text.split([',', '|', ';', ':', '_', ' ']).filter(|part| !part.is_empty()).collect();
    let is_number = |part: &&str| part.trim_start_matches('-').starts_with(|c: char| c.is_ascii_digit());
    match parts.len() > 1 && parts.iter().all(is_number) {
        true => parts.into_iter().map(|part| part.trim_start_matches('-')).collect(),
        false => vec![text],
    }
}

/// Returns true if a function computes something beside its fixed results.
fn has_other_computation(
    source: &ParsedSource<'_>,
    branch: &InputAnswer<'_>,
    all: &[InputAnswer<'_>],
) -> bool {
    let is_fixed = |token: &&Token<'_>| {
        all.iter().any(|one| one.condition.contains(&token.start) || one.answer.contains(&token.start))
    };
    let left: Vec<Token<'_>> = source
        .tokens_in(&branch.function)
        .iter()
        .filter(|token| {
            token.kind != TokenKind::Comment
                && !NON_COMPUTING_TOKENS.contains(&token.text)
                && !is_fixed(token)
        })
        .copied()
        .collect();
    left.len() > 2 && !is_fixed_value(&left)
}

/// Returns the entries of tables whose key is a combination: line, values of the key, value.
fn find_table_entries<'t>(source: &ParsedSource<'t>) -> Vec<(u32, Vec<&'t str>, &'t str)> {
    let tokens: Vec<&Token<'t>> =
        source.tokens.iter().filter(|token| token.kind != TokenKind::Comment && token.text != "-").collect();
    let mut found = Vec::new();
    for (at, sign) in tokens.iter().enumerate().filter(|(_, token)| matches!(token.text, ":" | "=>")) {
        let (Some(value), Some(before)) = (tokens.get(at + 1), at.checked_sub(1)) else { continue };
        let Some(last) = tokens.get(before).filter(|_| value.is_literal()) else { continue };
        let key: Vec<&str> = match last.text {
            ")" | "]" | "}" => {
                let inner = tokens.get(..before).unwrap_or_default().iter().rev();
                let inner = inner.take(16).take_while(|token| !matches!(token.text, "(" | "[" | "{"));
                let mut key: Vec<&str> = Vec::new();
                for token in inner.filter(|token| token.text != ",") {
                    match token.is_literal() {
                        true => key.push(token.normalized_text()),
                        false => key.clear(),
                    }
                }
                key.reverse();
                key
            }
            _ if last.kind == TokenKind::Text => split_key(last.normalized_text()),
            _ => continue,
        };
        if key.len() > 1 {
            found.push((sign.line, key, value.normalized_text()));
        }
    }
    found
}
