//! Tracks which variables have numeric values.
//!
//! bash evaluates the value of `x` as arithmetic in `$((x))` and `[[ $x -eq 1 ]]`, and a subscript
//! in it runs commands: with `x='a[$(touch y)]'`, both touch `y`. They are harmless if the text
//! sets `x` only to numbers. A value from the environment is the user's own, and an unset variable
//! is zero.

use journeyman_syntax::shell::{SimpleCommand, Statement, Word};

use super::variables::is_private_variable;

/// The variables of one command that are used in arithmetic.
#[derive(Default)]
pub(super) struct NumericVariables {
    /// Names that are used in arithmetic.
    computed: Vec<String>,
    /// Names that may be set to text that is not a number.
    texts: Vec<String>,
}

impl NumericVariables {
    pub(super) fn record_arithmetic(&mut self, names: Vec<String>) {
        self.computed.extend(names);
    }

    pub(super) fn has_arithmetic(&self) -> bool {
        !self.computed.is_empty()
    }

    /// Returns true if all variables in arithmetic are numbers.
    pub(super) fn are_numbers(&self) -> bool {
        let counts = |name: &str| matches!(name, "RANDOM" | "SECONDS" | "LINENO");
        self.computed.iter().all(|name| {
            (is_private_variable(name) || counts(name)) && !self.texts.iter().any(|text| text == name)
        })
    }

    /// Records the assignment `name=value`.
    pub(super) fn record_assignment(&mut self, name: &str, value: &Word) {
        if !is_number(value) {
            self.texts.push(name.to_owned());
        }
    }

    /// Records the loop `for name in words`.
    pub(super) fn record_loop(&mut self, name: &str, words: &[Word]) {
        if words.is_empty() || !words.iter().all(is_number) {
            self.texts.push(name.to_owned());
        }
    }

    /// Records the variables that a program with its arguments sets and compares.
    pub(super) fn record_program(&mut self, name: &str, words: &[Word]) {
        match name {
            "read" | "export" | "declare" | "typeset" | "local" | "readonly" | "printf" | "getopts" => {
                let named = words.iter().skip(1).map(|word| word.text.split('=').next().unwrap_or_default());
                self.texts.extend(named.map(str::to_owned));
            }
            "test" | "[" | "[[" => {
                let compared = words.windows(3).filter_map(|three| match three {
                    [left, operator, right] if operator.known && is_comparison(&operator.text) => {
                        Some([left, right])
                    }
                    _ => None,
                });
                let names = compared.flatten().filter_map(named_variable).map(str::to_owned);
                self.computed.extend(names);
            }
            _ => {}
        }
    }
}

/// Returns true for a numeric comparison.
pub(super) fn is_comparison(operator: &str) -> bool {
    matches!(operator, "-eq" | "-ne" | "-lt" | "-le" | "-gt" | "-ge")
}

/// Returns true if a word may be compared as a number: it is a number, or exactly the value of a
/// variable, which [`Values::record_program`] records.
pub(super) fn is_comparable(word: &Word) -> bool {
    let text = strip_quotes(&word.text);
    !word.dialect
        && (is_number(word)
            || named_variable(word).is_some()
            || !word.known && matches!(text, "$#" | "$?" | "${#}" | "${?}"))
}

fn strip_quotes(text: &str) -> &str {
    text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text)
}

/// Returns the variable of a word that is exactly its value, or its length.
fn named_variable(word: &Word) -> Option<&str> {
    if word.known {
        return None;
    }
    let body = strip_quotes(&word.text).strip_prefix('$')?;
    let body = match body.strip_prefix('{') {
        Some(braced) => braced.strip_suffix('}').map(|body| body.strip_prefix('#').unwrap_or(body))?,
        None => body,
    };
    is_private_variable(body).then_some(body)
}

/// Returns true if a word is a number, whatever its variables contain.
pub(super) fn is_number(word: &Word) -> bool {
    /// Maximum number of digits.
    const MAX_DIGITS: usize = 18;
    if word.known {
        let digits = word.text.strip_prefix('-').unwrap_or(&word.text);
        return (1..=MAX_DIGITS).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
    }
    let text = strip_quotes(&word.text);
    if let Some(body) = text.strip_prefix("$((").and_then(|rest| rest.strip_suffix("))")) {
        // The word contains one expansion and nothing else.
        let plain = |c: char| c.is_ascii_alphanumeric() || "_ +-*/%()<>=!&|^~?:,${}".contains(c);
        return !body.contains("$(") && word.inner.is_empty() && body.chars().all(plain);
    }
    let one = text.matches('(').count() == 1 && text.matches(')').count() == 1;
    let alone = text.starts_with("$(") && text.ends_with(')') && one;
    alone && matches!(word.inner.as_slice(), [only] if prints_a_number(only))
}

/// Returns true for programs that print one number and nothing else.
fn prints_a_number(statement: &Statement) -> bool {
    match statement {
        Statement::Pipeline(stages) => stages.last().is_some_and(|last| match last {
            Statement::Simple(last) => is_counting_program(last),
            _ => false,
        }),
        Statement::Simple(simple) => is_counting_program(simple),
        Statement::Compound(_) | Statement::Function { .. } => false,
    }
}

fn is_counting_program(simple: &SimpleCommand) -> bool {
    let known = simple.words.iter().all(|word| word.known && !word.dialect);
    let words: Vec<&str> = simple.words.iter().map(|word| word.text.as_str()).collect();
    known
        && matches!(words.as_slice(), ["wc", "-l" | "-c" | "-w" | "-m"] | ["date", "+%s" | "+%Y"] | ["nproc"])
}

/// Returns true if `cd` with these words goes to a directory beneath the current one.
pub(super) fn is_cd_beneath(words: &[Word]) -> bool {
    let (Some(target), true) = (words.last(), words.len() > 1) else { return false };
    let options = words.get(1..words.len() - 1).unwrap_or_default();
    let plain = |word: &Word| word.known && !word.dialect;
    let text = target.text.as_str();
    plain(target)
        && options.iter().all(|word| plain(word) && matches!(word.text.as_str(), "--" | "-P"))
        && !matches!(text, "" | "-")
        && !text.starts_with('/')
        && (!text.starts_with('-') || options.last().is_some_and(|word| word.text == "--"))
        && text.split('/').all(|name| name != ".." && !name.eq_ignore_ascii_case(".git"))
}

#[cfg(test)]
mod tests {
    use journeyman_syntax::shell::{Statement, parse};

    #[test]
    fn numbers_are_what_can_be_nothing_else() {
        let value = |text: &str| {
            let script = parse(&format!("x={text}"));
            match script.statements.as_slice() {
                [Statement::Simple(simple)] => {
                    simple.assignments.first().is_some_and(|it| super::is_number(&it.value))
                }
                _ => false,
            }
        };
        for text in [
            "0",
            "-5",
            "'7'",
            "$((x+1))",
            "\"$((x * 2))\"",
            "$(wc -l < a)",
            "$(cat a | wc -l)",
            "$(date +%s)",
        ] {
            assert!(value(text), "{text}");
        }
        for text in [
            "",
            "a",
            "1a",
            "$y",
            "$(cat a)",
            "$((1))a",
            "$((1))$((2))a",
            "$(wc -l a)",
            "$(wc -l < a)$y",
            "$(wc -l < a)a\\)",
            "1.5",
            "1234567890123456789",
            "$(wc -l < a; cat b)",
            "a$((1))",
            "--1",
            "-",
        ] {
            assert!(!value(text), "{text}");
        }
    }
}
