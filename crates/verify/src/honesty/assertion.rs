//! Assertions: the value that an expression of a test compares with, and how strictly.

use std::collections::BTreeSet;

use super::leniency::{count_wildcards, split_lenient_options};
use super::parsed_source::{Token, TokenKind, find_closing_bracket, split_arguments};
use super::test_vocabulary::{AssertionStrength, is_assertion, matcher_strength, normalize_name};
use super::unfailing_assertions::{accepts_any_count, is_asserted_tuple, is_bare_subject, throws_itself};

/// Maximum number of characters of a quoted piece of code.
const MAX_QUOTE_CHARS: usize = 120;
/// Names of errors that match any error.
const BASE_ERROR_NAMES: [&str; 9] = [
    "exception",
    "baseexception",
    "throwable",
    "error",
    "standarderror",
    "runtimeerror",
    "runtimeexception",
    "object",
    "systemexception",
];

/// The language rules by which an assertion is read.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Dialect {
    pub(super) go: bool,
    pub(super) python: bool,
    pub(super) rust: bool,
    pub(super) script: bool,
    /// True if `expect` alone asserts a condition.
    pub(super) expects_condition: bool,
}

/// A limit that an assertion allows: a tolerance, or the bound of a comparison.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct AssertionBound {
    value: f64,
    larger_is_weaker: bool,
}

/// An expression that makes a test fail.
#[derive(Debug, Clone)]
pub(super) struct Assertion<'t> {
    pub(super) line: u32,
    /// The code on one line.
    pub(super) quote: String,
    /// The decisive tokens, for comparing assertions with each other.
    pub(super) key: Vec<&'t str>,
    pub(super) strength: AssertionStrength,
    pub(super) negated: bool,
    pub(super) literals: Vec<&'t str>,
    pub(super) words: Vec<&'t str>,
    /// Number of alternatives, one of which is enough.
    pub(super) alternatives: usize,
    pub(super) bound: Option<AssertionBound>,
    /// True if the comparison allows a difference.
    pub(super) tolerant: bool,
    /// Names and values of options that make the comparison accept more.
    pub(super) leniencies: Vec<&'t str>,
    /// Number of arguments that accept any value.
    pub(super) wildcards: usize,
    /// True if the assertion expects an error, of any kind.
    pub(super) any_error: bool,
    /// True if the test awaits the assertion.
    pub(super) awaited: bool,
    /// Number of conditions around the assertion within its test.
    pub(super) conditions: usize,
    /// True if the assertion's failure is caught and ignored.
    pub(super) swallowed: bool,
}

/// Returns the names of a call chain: the words outside of brackets.
pub(super) fn chain_names<'t>(tokens: &[Token<'t>]) -> Vec<&'t str> {
    let mut depth = 0_usize;
    let mut names = Vec::new();
    for token in tokens {
        match token.text {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth = depth.saturating_sub(1),
            "self" | "this" | "$this" | "await" | "new" | "static" | "cls" | "return" | "do" | "end" => {}
            name if depth == 0 && token.kind == TokenKind::Word => names.push(name.trim_end_matches('!')),
            _ => {}
        }
    }
    names
}

/// Returns the code of tokens on one line, truncated at a maximum length.
pub(super) fn quote_tokens(tokens: &[Token<'_>]) -> String {
    let mut text = String::new();
    let mut end = None;
    for token in tokens {
        if end.is_some_and(|end| end < token.start) {
            text.push(' ');
        }
        end = Some(token.start + token.text.len());
        text.extend(token.text.chars().map(|c| if c.is_control() { ' ' } else { c }));
        if text.chars().nth(MAX_QUOTE_CHARS).is_some() {
            let cut = text.char_indices().nth(MAX_QUOTE_CHARS).map_or(text.len(), |(at, _)| at);
            text.truncate(cut);
            text.push('…');
            break;
        }
    }
    text
}

/// Reads an assertion from the tokens of a call or an assert statement; `None` for any other code.
pub(super) fn read_assertion<'t>(tokens: &[Token<'t>], dialect: Dialect) -> Option<Assertion<'t>> {
    let tokens: Vec<Token<'t>> =
        tokens.iter().filter(|token| token.kind != TokenKind::Comment).copied().collect();
    let names = chain_names(&tokens);
    if !is_assertion(&names, dialect.go, dialect.script, dialect.rust) {
        return None;
    }
    let decisive = strip_messages(&tokens, &names, dialect);
    let mut assertion = assertion_from_tokens(&decisive, &names)?;
    if dialect.python && is_asserted_tuple(&tokens)
        || !dialect.expects_condition && is_bare_subject(&tokens, &names)
        || accepts_any_count(&tokens)
    {
        assertion.strength = AssertionStrength::Vacuous;
    }
    assertion.swallowed = throws_itself(&tokens, &names);
    assertion.quote = quote_tokens(&tokens);
    Some(assertion)
}

/// Reads a call of a function that compares its arguments and makes the program fail.
pub(super) fn read_call_of_helper<'t>(
    tokens: &[Token<'t>],
    helpers: &BTreeSet<&'t str>,
) -> Option<Assertion<'t>> {
    let tokens: Vec<Token<'t>> =
        tokens.iter().filter(|token| token.kind != TokenKind::Comment).copied().collect();
    let [name, .., last, _] = tokens.as_slice() else { return None };
    if !helpers.contains(name.text) {
        return None;
    }
    // A text as the last of several arguments is a message.
    let count = tokens.iter().filter(|token| token.text == ",").count() + 1;
    let is_message = last.kind == TokenKind::Text && count > 2;
    let decisive = tokens.get(..tokens.len().checked_sub(if is_message { 3 } else { 0 })?)?;
    let mut assertion = assertion_from_tokens(decisive, &[name.text])?;
    let arguments = decisive.get(1..).unwrap_or_default();
    assertion.strength =
        if is_tautology(arguments) { AssertionStrength::Vacuous } else { AssertionStrength::Exact };
    assertion.quote = quote_tokens(&tokens);
    Some(assertion)
}

/// Reads the condition of an `if` whose body makes the test fail.
pub(super) fn read_failing_condition<'t>(condition: &[Token<'t>]) -> Option<Assertion<'t>> {
    let tokens: Vec<Token<'t>> =
        condition.iter().filter(|token| token.kind != TokenKind::Comment).copied().collect();
    let mut assertion = assertion_from_tokens(&tokens, &["if"])?;
    let has = |sign: &[&str]| tokens.iter().any(|token| sign.contains(&token.text));
    // Each alternative makes the test fail by itself.
    let reasons = tokens.split(|token| matches!(token.text, "||" | "or"));
    assertion.strength = reasons.map(reason_strength).max().unwrap_or(AssertionStrength::Partial);
    // Each alternative is one more reason to fail; each further condition takes reasons away.
    assertion.alternatives = tokens.iter().filter(|token| matches!(token.text, "&&" | "and")).count();
    assertion.negated = has(&["=="]);
    assertion.quote = format!("if {}", quote_tokens(&tokens));
    Some(assertion)
}

/// Returns how strict a test is that fails for one reason.
fn reason_strength(tokens: &[Token<'_>]) -> AssertionStrength {
    let has = |sign: &[&str]| tokens.iter().any(|token| sign.contains(&token.text));
    let nothing = has(&["nil", "null", "None", "nullptr", "NULL"]);
    match () {
        // The test fails if they differ: it holds for one value.
        () if has(&["!=", "!==", "<>"]) && !nothing => AssertionStrength::Exact,
        () if has(&["!=", "!=="]) => AssertionStrength::Exists,
        () if has(&["DeepEqual", "strcmp", "Equal", "equals", "memcmp", "Diff"]) => AssertionStrength::Exact,
        () => AssertionStrength::Partial,
    }
}

/// Creates an assertion from its decisive tokens and its names.
fn assertion_from_tokens<'t>(tokens: &[Token<'t>], names: &[&str]) -> Option<Assertion<'t>> {
    let first = tokens.first()?;
    let is_constant =
        |text: &str| matches!(text, "true" | "false" | "True" | "False" | "null" | "nil" | "None");
    let (compared, leniencies) = split_lenient_options(tokens);
    // A matcher may have the value in its name.
    let named = names.iter().filter_map(|name| match normalize_name(name).as_str() {
        "iszero" | "bezero" | "assertzero" | "isempty" | "beempty" | "assertempty" => Some("0"),
        "isone" | "beone" => Some("1"),
        _ => None,
    });
    let literals: Vec<&'t str> = sort_texts(
        compared
            .iter()
            .filter(|token| token.is_literal() || is_constant(token.text))
            .map(Token::normalized_text)
            .chain(named),
    );
    let subject_words =
        compared.iter().filter(|token| token.kind == TokenKind::Word && !is_constant(token.text));
    let words: Vec<&'t str> =
        sort_texts(subject_words.map(|token| token.text).filter(|word| !is_assertion_word(word, names)));
    let (strength, negated) = judge_strength(tokens, names, &words);
    Some(Assertion {
        line: first.line,
        quote: String::new(),
        key: tokens.iter().filter(|token| !is_punctuation(token.text)).map(Token::normalized_text).collect(),
        strength,
        negated,
        literals,
        words,
        alternatives: tokens.iter().filter(|token| matches!(token.text, "||" | "or")).count(),
        bound: find_allowed_limit(tokens, names),
        tolerant: allows_difference(tokens),
        leniencies,
        wildcards: count_wildcards(tokens),
        any_error: expects_any_error(tokens, names),
        awaited: false,
        conditions: 0,
        swallowed: false,
    })
}

/// Returns true for a comparison that allows a difference.
fn allows_difference(tokens: &[Token<'_>]) -> bool {
    tokens.iter().filter(|token| token.kind == TokenKind::Word).any(|token| {
        let name = normalize_name(token.text);
        ["approx", "closeto", "isclose", "almost", "within", "delta", "nearequal"]
            .iter()
            .any(|part| name.contains(part))
    })
}

/// Returns true for punctuation that formatters add and remove.
fn is_punctuation(text: &str) -> bool {
    matches!(text, ";" | "," | "(" | ")")
}

fn sort_texts<'t>(texts: impl Iterator<Item = &'t str>) -> Vec<&'t str> {
    let mut texts: Vec<&str> = texts.collect();
    texts.sort_unstable();
    texts
}

fn is_assertion_word(word: &str, names: &[&str]) -> bool {
    let bare = word.trim_end_matches('!');
    let matches =
        ["eq", "to", "be", "not", "is", "in", "or", "and", "assert", "expect", "if", "self", "this", "await"];
    matches.contains(&bare)
        || names.contains(&bare) && (is_plain_assertion_name(bare) || matcher_strength(bare).is_some())
        || matches!(bare, "equalTo" | "Assert" | "Assertions" | "$this" | "pytest")
}

/// Returns how strict the decisive tokens are, and whether they are negated.
fn judge_strength(tokens: &[Token<'_>], names: &[&str], words: &[&str]) -> (AssertionStrength, bool) {
    let fails = names.iter().any(|name| {
        matches!(*name, "fail" | "Error" | "Errorf" | "Fatal" | "Fatalf" | "Fail" | "FailNow" | "if")
    });
    let not_names = names
        .iter()
        .filter(|name| matches!(normalize_name(name).as_str(), "not" | "never" | "tonot" | "notto"))
        .count();
    let named = names
        .iter()
        .rev()
        .filter(|name| !matches!(**name, "not" | "never"))
        .find_map(|name| matcher_strength(name));
    let (mut strength, mut negated) = match named {
        Some((AssertionStrength::Partial, false)) | None => condition_strength(tokens, named.map(|it| it.0)),
        Some(found) => found,
    };
    // A helper of the project that has its own name.
    let own_name =
        names.iter().all(|name| matcher_strength(name).is_none() && !is_plain_assertion_name(name));
    if named.is_none() && own_name {
        strength = AssertionStrength::Exact;
    }
    if not_names % 2 == 1 {
        negated = !negated;
    }
    if negated && named.is_some() {
        strength = match strength {
            AssertionStrength::Exact if has_null_value(tokens) => AssertionStrength::Exists,
            AssertionStrength::Exact => AssertionStrength::Exists,
            other => other,
        };
    }
    let binds_only =
        tokens.windows(4).any(|four| {
            let [name, open, pattern, comma] = four else { return false };
            matches!(name.text, "match?" | "matches")
                && open.text == "("
                && pattern.text.starts_with('_')
                && comma.text == ","
        }) || tokens.iter().any(|token| matches!(token.text, "matches!" | "assert_matches!" | "matches"))
            && matches!(tokens, [.., comma, pattern, _] if comma.text == "," && pattern.text == "_");
    let accepts_all = binds_only
        || tokens.iter().any(|token| {
            let pattern = token.kind == TokenKind::Text || token.text.starts_with('/');
            matches!(token.text, "anything" | "ANY" | "any_args")
                || pattern
                    && matches!(
                        token.normalized_text().trim_matches(['/', '^', '$', '(', ')']),
                        ".*" | ".+" | "[\\s\\S]*" | ".*?"
                    )
        });
    if accepts_all {
        strength = strength.min(AssertionStrength::Exists);
    }
    if !fails && (words.is_empty() || is_tautology(tokens)) {
        strength = AssertionStrength::Vacuous;
    }
    (strength, negated)
}

/// Returns true for the name of an assertion that doesn't say how it compares.
fn is_plain_assertion_name(name: &str) -> bool {
    let plain = ["assert", "expect", "should", "require", "check", "ok", "that", "true", "must", "verify"];
    plain.contains(&normalize_name(name).as_str())
}

fn has_null_value(tokens: &[Token<'_>]) -> bool {
    tokens
        .iter()
        .any(|token| matches!(normalize_name(token.text).as_str(), "null" | "nil" | "none" | "undefined"))
}

/// Returns the strength of a condition by its operators.
fn condition_strength(tokens: &[Token<'_>], named: Option<AssertionStrength>) -> (AssertionStrength, bool) {
    let has = |signs: &[&str]| tokens.iter().any(|token| signs.contains(&token.text));
    let follows = |first: &str, second: &str| {
        tokens
            .windows(2)
            .any(|pair| matches!(pair, [one, other] if one.text == first && other.text == second))
    };
    if follows("is", "not") || has(&["!=", "!==", "is not"]) {
        return (AssertionStrength::Exists, true);
    }
    if has(&["==", "===", "is", "equalTo", "EqualTo", "eq", "eql", "isEqualTo", "equals"]) {
        return (AssertionStrength::Exact, false);
    }
    let compares = has(&["<", ">", "<=", ">=", "in"]);
    let by_word = tokens.iter().filter(|token| token.kind == TokenKind::Word).filter_map(|token| {
        let compacted = normalize_name(token.text);
        let tells = ["is", "not", "has", "instance", "contains", "starts", "ends", "raises"];
        let tells = tells.iter().any(|beginning| compacted.starts_with(beginning)) && compacted.len() > 3;
        tells.then(|| matcher_strength(token.text)).flatten()
    });
    let weakest =
        by_word.map(|(strength, negated)| if negated { AssertionStrength::Exists } else { strength }).min();
    let negated = has(&["!", "not"]);
    match weakest {
        _ if compares => (AssertionStrength::Partial, negated),
        Some(AssertionStrength::Exists) => (AssertionStrength::Exists, negated),
        _ => (named.unwrap_or(AssertionStrength::Partial), negated),
    }
}

/// Returns true if both sides of the comparison are equal, or one alternative is always true.
fn is_tautology(tokens: &[Token<'_>]) -> bool {
    let always = |token: &Token<'_>| matches!(token.text, "true" | "True" | "1");
    let holds = tokens.windows(2).any(|pair| {
        matches!(pair, [sign, value] if matches!(sign.text, "||" | "or") && always(value))
            || matches!(pair, [value, sign] if matches!(sign.text, "||" | "or") && always(value))
    });
    let texts: Vec<&str> = tokens.iter().map(|token| token.text).collect();
    let same = ["==", "===", ","].iter().any(|sign| {
        texts.iter().position(|text| text == sign).is_some_and(|at| {
            let before = texts.get(..at).unwrap_or_default();
            let after = texts.get(at + 1..).unwrap_or_default();
            let open = find_open_bracket(before).filter(|_| encloses_comparison(before, after));
            let left = before.get(open.map_or(1, |open| open + 1)..).unwrap_or_default();
            let right = after.strip_suffix(&[")"]).filter(|_| open.is_some()).unwrap_or(after);
            !left.is_empty() && left == right
        })
    });
    holds || same
}

/// Returns the last bracket that is never closed.
fn find_open_bracket(texts: &[&str]) -> Option<usize> {
    let mut closed = 0_usize;
    texts.iter().rposition(|text| match *text {
        ")" => {
            closed += 1;
            false
        }
        "(" if closed == 0 => true,
        "(" => {
            closed -= 1;
            false
        }
        _ => false,
    })
}

/// Returns true if the bracket that is open before a comparison sign is closed at the end.
fn encloses_comparison(before: &[&str], after: &[&str]) -> bool {
    let count = |texts: &[&str], sign: &str| texts.iter().filter(|text| **text == sign).count();
    count(before, "(") == count(before, ")") + 1 && count(after, ")") == count(after, "(") + 1
}

/// Returns the limit that an assertion allows.
fn find_allowed_limit(tokens: &[Token<'_>], names: &[&str]) -> Option<AssertionBound> {
    let number = |token: &Token<'_>| {
        let digits = token.text.trim_end_matches(|c: char| c.is_ascii_alphabetic()).replace('_', "");
        (token.kind == TokenKind::Number).then(|| digits.parse::<f64>().ok()).flatten()
    };
    let after = |wanted: &dyn Fn(&str) -> bool| {
        let at = tokens.iter().position(|token| wanted(&token.text.to_ascii_lowercase()))?;
        tokens.get(at..)?.iter().find_map(number)
    };
    let bound = |value: f64, larger_is_weaker: bool| Some(AssertionBound { value, larger_is_weaker });
    let all: Vec<String> = names.iter().map(|name| normalize_name(name)).collect();
    let named = |part: &str| all.iter().any(|name| name.contains(part));
    if named("timeout")
        && let Some(value) = parse_java_duration_ms(tokens)
    {
        return bound(value, true);
    }
    let words = |wanted: &[&str]| {
        tokens.iter().any(|token| wanted.contains(&token.text.to_ascii_lowercase().as_str()))
    };
    if words(&["withinabs", "withinrel", "withinulp"]) {
        return tokens.iter().rev().find_map(number).and_then(|value| bound(value, true));
    }
    if let Some(value) = after(&|text| matches!(text, "atleast" | "at_least" | "mintimes")) {
        return bound(value, false);
    }
    if let Some(value) = after(&|text| matches!(text, "places" | "decimal" | "significant")) {
        return bound(value, false);
    }
    let keys = [
        "abs",
        "rel",
        "delta",
        "rtol",
        "atol",
        "tolerance",
        "epsilon",
        "within",
        "bewithin",
        "be_within",
        "rel_tol",
        "abs_tol",
        "maxdiffpixelratio",
        "maxdiffpixels",
        "threshold",
        "failurethreshold",
    ];
    if let Some(value) = after(&|text| keys.contains(&text) || text.ends_with("_within")) {
        return bound(value, true);
    }
    let last = tokens.iter().rev().find_map(number);
    if named("closeto") && named("expect") || named("almostequal") {
        let count = tokens.iter().filter_map(number).count();
        return last.filter(|_| count > 1).and_then(|value| bound(value, false));
    }
    if named("indelta") || named("near") || named("closeto") || named("delta") {
        return last.and_then(|value| bound(value, true));
    }
    if let Some(value) = after(&|text| matches!(text, "<" | "<=")) {
        return bound(value, true);
    }
    if let Some(value) = after(&|text| matches!(text, ">" | ">=")) {
        return bound(value, false);
    }
    if named("less") || named("below") || named("atmost") {
        return last.and_then(|value| bound(value, true));
    }
    if named("greater") || named("above") || named("atleast") {
        return last.and_then(|value| bound(value, false));
    }
    None
}

/// Returns the milliseconds of a duration in Java's notation.
fn parse_java_duration_ms(tokens: &[Token<'_>]) -> Option<f64> {
    tokens.windows(3).find_map(|three| {
        let [unit, _, count] = three else { return None };
        let unit = match unit.text {
            "ofNanos" => 1e-6,
            "ofMillis" => 1.0,
            "ofSeconds" => 1e3,
            "ofMinutes" => 6e4,
            "ofHours" => 3.6e6,
            "ofDays" => 8.64e7,
            _ => return None,
        };
        count.text.replace('_', "").trim_end_matches(['l', 'L']).parse::<f64>().ok().map(|count| count * unit)
    })
}

impl AssertionBound {
    /// Returns true if the bound allows more than another one of the same kind; `None` if the two
    /// can't be compared.
    pub(super) fn is_weaker_than(self, other: Self) -> Option<bool> {
        if self.larger_is_weaker != other.larger_is_weaker {
            return None;
        }
        Some(if self.larger_is_weaker { self.value > other.value } else { self.value < other.value })
    }
}

/// Returns true if an assertion expects an error without saying which.
fn expects_any_error(tokens: &[Token<'_>], names: &[&str]) -> bool {
    let expects = names.iter().any(|name| {
        let name = normalize_name(name);
        ["raise", "throw", "panic"].iter().any(|part| name.contains(part)) && !name.contains("not")
    });
    let says = tokens.iter().skip_while(|token| token.text != "(").any(|token| {
        token.kind == TokenKind::Word && {
            let name = normalize_name(token.text.trim_end_matches(".class"));
            let kind = name.ends_with("error") || name.ends_with("exception") || name == "match";
            kind && !BASE_ERROR_NAMES.contains(&name.as_str())
        } || token.kind == TokenKind::Text
    });
    expects && !says
}

/// Removes the messages of an assertion, which don't affect the comparison.
fn strip_messages<'t>(tokens: &[Token<'t>], names: &[&str], dialect: Dialect) -> Vec<Token<'t>> {
    let is_call = tokens.iter().any(|token| token.text == "(");
    let opening = tokens.iter().position(|token| matches!(token.text, "(" | "[" | "{"));
    let statement = tokens.first().is_some_and(|first| first.text == "assert")
        && tokens.get(1).is_none_or(|second| second.text != "(" && second.text != "!" && second.text != ".");
    if statement || !is_call {
        return first_argument(tokens);
    }
    let Some(open) = opening else { return tokens.to_vec() };
    let Some(close) = find_closing_bracket(tokens, open) else { return tokens.to_vec() };
    // A chain of calls has no message at its end.
    if tokens.get(close + 1..).is_some_and(|rest| rest.iter().any(|token| token.text != ";")) {
        return tokens.to_vec();
    }
    let inner = tokens.get(open + 1..close).unwrap_or_default();
    let mut arguments = split_arguments(inner);
    let is_joined_text = |argument: &[Token<'_>]| matches!(argument, [first, sign, ..] if first.kind == TokenKind::Text && matches!(sign.text, "+" | "%" | "."));
    let is_message = |argument: &[Token<'_>]| {
        matches!(argument, [only] if only.kind == TokenKind::Text)
            || argument
                .first()
                .is_some_and(|first| matches!(first.text, "msg" | "message" | "format" | "String"))
    };
    let shift = usize::from(matches!(arguments.first(), Some([only]) if matches!(only.text, "t" | "assert")));
    let matcher = names.iter().rev().find(|name| matcher_strength(name).is_some());
    let unary = matcher.is_none_or(|name| {
        let one = ["true", "false", "null", "nil", "none", "that", "empty", "zero"];
        let exists =
            matcher_strength(name).is_some_and(|(strength, _)| strength == AssertionStrength::Exists);
        let name = normalize_name(name);
        exists && !name.contains("equal") || one.iter().any(|end| name.ends_with(end))
    });
    let least = shift + if unary { 1 } else { 2 };
    if dialect.rust {
        arguments.truncate(least);
    }
    // JUnit 4 has the message first.
    if arguments.len() == least + 1
        && arguments.first().is_some_and(|first| is_message(first))
        && !arguments.last().is_some_and(|last| is_message(last))
        && !names
            .iter()
            .any(|name| normalize_name(name).contains("within") || normalize_name(name).contains("delta"))
    {
        arguments.remove(0);
    }
    while arguments.len() > least
        && arguments.last().is_some_and(|last| is_message(last) || is_joined_text(last))
    {
        arguments.pop();
    }
    let mut kept: Vec<Token<'t>> = tokens.get(..=open).unwrap_or_default().to_vec();
    for (place, argument) in arguments.iter().enumerate() {
        if place > 0
            && let Some(comma) = inner.iter().find(|token| token.text == ",")
        {
            kept.push(*comma);
        }
        kept.extend_from_slice(argument);
    }
    kept.extend(tokens.get(close));
    kept
}

/// Returns the tokens up to the first comma outside of brackets.
fn first_argument<'t>(tokens: &[Token<'t>]) -> Vec<Token<'t>> {
    let is_statement = tokens.first().is_some_and(|first| first.text == "assert");
    match split_arguments(tokens).first() {
        Some(first) if is_statement => first.to_vec(),
        _ => tokens.to_vec(),
    }
}
