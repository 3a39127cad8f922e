//! Assertions that hold whatever the product does.

use super::parsed_source::{Token, TokenKind, find_closing_bracket, split_arguments};
use super::test_vocabulary::normalize_name;

/// Returns true for a statement that asserts a tuple, which is always true.
pub(super) fn is_asserted_tuple(tokens: &[Token<'_>]) -> bool {
    matches!(tokens, [word, open, ..] if word.text == "assert" && open.text == "(")
        && find_closing_bracket(tokens, 1).is_some_and(|close| {
            let ends = tokens.get(close + 1).is_none_or(|next| next.text == ",");
            ends && tokens.get(2..close).is_some_and(|inner| split_arguments(inner).len() > 1)
        })
}

/// Returns true for a value that is handed to a library, and held against nothing.
pub(super) fn is_bare_subject(tokens: &[Token<'_>], names: &[&str]) -> bool {
    let (Some((first, rest)), Some(open)) =
        (names.split_first(), tokens.iter().position(|it| it.text == "("))
    else {
        return false;
    };
    let links = ["to", "be", "been", "not", "is", "that", "which", "and", "has", "have", "toNot", "soft"];
    let subject = matches!(*first, "expect" | "assertThat" | "assertk" | "assert_that" | "assertThatCode");
    let close = find_closing_bracket(tokens, open);
    let inner = close.and_then(|close| tokens.get(open + 1..close)).unwrap_or_default();
    subject && rest.iter().all(|name| links.contains(name)) && split_arguments(inner).len() == 1
}

/// Returns true for a number of calls, or a size, of which none is too small.
pub(super) fn accepts_any_count(tokens: &[Token<'_>]) -> bool {
    let least = |name: &str| {
        let name = normalize_name(name);
        ["atleast", "mintimes", "anynumber", "zeroormore"].iter().any(|it| name.starts_with(it))
    };
    let counts = tokens.iter().any(|token| {
        let name = normalize_name(token.text);
        token.kind == TokenKind::Word
            && ["len", "size", "count"].iter().any(|it| name.starts_with(it) || name.ends_with(it))
    });
    let not_less = |name: &str| {
        let name = normalize_name(name);
        ["greaterthanorequal", "greaterequal", "greaterorequal"].iter().any(|it| name.contains(it))
    };
    tokens.windows(3).any(|three| {
        let [first, second, third] = three else { return false };
        least(first.text) && second.text == "(" && matches!(third.text, "0" | ")")
            || counts
                && (first.text == ">=" && second.text == "0" || second.text == ">=" && third.text == "0")
            || counts && not_less(first.text) && second.text == "(" && third.text == "0"
    }) || counts && tokens.iter().any(|it| not_less(it.text)) && is_last_argument_zero(tokens)
}

fn is_last_argument_zero(tokens: &[Token<'_>]) -> bool {
    let mut last = tokens.iter().rev().skip_while(|token| matches!(token.text, ")" | ";"));
    last.next().is_some_and(|token| token.text == "0")
}

/// Returns true for an expected error that the checked code raises by itself.
pub(super) fn throws_itself(tokens: &[Token<'_>], names: &[&str]) -> bool {
    let expects = names.iter().any(|name| {
        let name = normalize_name(name);
        ["throw", "raise", "reject"].iter().any(|part| name.contains(part)) && !name.contains("not")
    });
    // A callback among the arguments of the checked code may raise.
    let (mut calls, mut blocks) = (0_i32, 0_i32);
    expects
        && tokens.windows(2).any(|pair| {
            let [word, next] = pair else { return false };
            match word.text {
                "(" => calls += 1,
                ")" => calls -= 1,
                "{" => blocks += 1,
                "}" => blocks -= 1,
                _ => {}
            }
            let direct = calls <= 1 && blocks <= 1;
            direct && matches!(word.text, "throw" | "raise") && next.kind == TokenKind::Word
        })
}
