//! Recognizes conditions of `test`, `[` and `[[` that have no effect.

use journeyman_syntax::shell::Word;

use super::numeric_variables;

/// Returns true for conditions on files, texts and numbers, joined by `-a`, `-o`, and by `&&` and
/// `||` between double brackets. Some shells evaluate the operands of numeric comparisons, and bash
/// does for `-v`, so these are not accepted.
pub(super) fn is_harmless_condition(program: &str, arguments: &[Word]) -> bool {
    let close = match program {
        "[" => Some("]"),
        "[[" => Some("]]"),
        _ => None,
    };
    let mut arguments = arguments;
    if let Some(close) = close {
        match arguments.split_last() {
            Some((last, rest)) if last.known && last.text == close => arguments = rest,
            _ => return false,
        }
    }
    let joins = |word: &Word| word.known && is_condition_operator(program, &word.text);
    // A plain shell would run the text after `&&`, but no program has an option as its name.
    let runs = |word: &Word| program == "[[" && word.known && matches!(word.text.as_str(), "&&" | "||");
    let harmless = arguments.windows(2).all(|pair| match pair {
        [sign, next] => !runs(sign) || next.known && UNARY_OPERATORS.contains(&next.text.as_str()),
        _ => true,
    });
    harmless && arguments.split(joins).all(|condition| is_condition(program, condition))
}

/// Unary operators on a file or a text.
const UNARY_OPERATORS: [&str; 20] = [
    "-d", "-e", "-f", "-h", "-L", "-r", "-s", "-w", "-x", "-z", "-n", "-b", "-c", "-g", "-k", "-p", "-u",
    "-O", "-G", "-S",
];

fn is_condition_operator(program: &str, text: &str) -> bool {
    match program {
        "[[" => matches!(text, "&&" | "||"),
        _ => matches!(text, "-a" | "-o"),
    }
}

fn is_condition(program: &str, condition: &[Word]) -> bool {
    let mut condition = condition;
    if let [first, rest @ ..] = condition
        && first.known
        && first.text == "!"
    {
        condition = rest;
    }
    // The word stays one word, whatever its value; between double brackets all words do.
    let one = |word: &Word| !word.dialect && (word.known || word.single || program == "[[");
    let is = |word: &Word, among: &[&str]| word.known && among.contains(&word.text.as_str());
    // An operand that can't be read as an operator.
    let operand = |word: &Word| one(word) && !word.text.starts_with(['-', '(', '!']);
    match condition {
        [only] => operand(only),
        [operator, word] => is(operator, &UNARY_OPERATORS) && one(word) && !word.text.starts_with('-'),
        [left, operator, right] if operator.known && numeric_variables::is_comparison(&operator.text) => {
            numeric_variables::is_comparable(left) && numeric_variables::is_comparable(right)
        }
        [left, operator, right] => {
            // Two unknown words could form an operator.
            operand(left)
                && one(right)
                // The tilde of `=~` is not expanded.
                && (is(operator, &["=", "==", "!=", "-nt", "-ot", "-ef"])
                    || program == "[[" && operator.text == "=~")
        }
        _ => false,
    }
}
