//! Parses the values that a failed assertion compared, from the messages of the known runners.

/// The two sides of a failed comparison.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ComparedValues {
    pub(super) expected: String,
    pub(super) actual: String,
}

/// Labels at the beginning of a line, in pairs: of the expected value, and of the actual one.
/// Rust's and Elixir's `assert_eq` name sides; by custom the left one is the value under test.
const VALUE_LABELS: [(&[&str], &[&str]); 4] = [
    (&["right:"], &["left:"]),
    (&["Expected:", "expected:", "Expected"], &["Received:", "Actual:", "Actual  :", "actual  :", "actual:"]),
    (&["Expected:", "expected:"], &["But was:", "but was:", "got:", "Got:"]),
    (&["want:", "Want:"], &["got:", "Got:", "have:"]),
];

/// Returns the values that a message names, whose lines stand apart or are joined by `; `.
pub(super) fn parse_compared_values(message: &str) -> Option<ComparedValues> {
    let parts = || message.lines().flat_map(|line| line.split("; ")).map(str::trim);
    parse_labelled_lines(parts().collect())
        .or_else(|| parse_difference(parts().collect()))
        .or_else(|| parts().find_map(parse_single_line))
        .or_else(|| message.lines().find_map(parse_got_and_want))
}

/// Reads `left: 3` and `right: 4`, each on a line of its own.
fn parse_labelled_lines(parts: Vec<&str>) -> Option<ComparedValues> {
    let find = |labels: &[&str]| {
        parts.iter().find_map(|part| {
            let rest = labels.iter().find_map(|label| part.strip_prefix(label))?;
            (!rest.trim().is_empty()).then(|| strip_quotes(rest.trim_start_matches(':')))
        })
    };
    VALUE_LABELS.iter().find_map(|(expected, actual)| {
        Some(ComparedValues { expected: find(expected)?, actual: find(actual)? })
    })
}

/// Reads a single line of each side, under the headings of a difference: `- Expected` and `+
/// Received`.
fn parse_difference(parts: Vec<&str>) -> Option<ComparedValues> {
    let heading = parts.iter().position(|part| part.trim_start_matches(['-', ' ']) == "Expected")?;
    let lines = parts.get(heading + 2..)?;
    let only = |sign: char| {
        let mut found = lines.iter().filter_map(|line| line.strip_prefix(sign)).map(str::trim);
        let first = found.next().filter(|first| !first.is_empty())?;
        found.next().is_none().then(|| first.trim_end_matches(',').to_owned())
    };
    Some(ComparedValues { expected: only('-')?, actual: only('+')? })
}

/// Reads the forms that fit on one line.
fn parse_single_line(part: &str) -> Option<ComparedValues> {
    parse_bracketed(part)
        .or_else(|| parse_sentence(part))
        .or_else(|| parse_got_and_want(part))
        .or_else(|| parse_operator_comparison(part))
}

/// Reads `expected:<1> but was:<2>` and `Expected:<1>. Actual:<2>.` of the families of JUnit and
/// MSTest.
fn parse_bracketed(part: &str) -> Option<ComparedValues> {
    let lower = part.to_ascii_lowercase();
    let start = lower.find("expected:")?;
    let second = ["but was:", "actual:"].iter().find_map(|word| Some((lower.find(word)?, word.len())))?;
    let inside = |text: &str| Some(text.trim().strip_prefix('<')?.rsplit_once('>')?.0.to_owned());
    Some(ComparedValues {
        expected: inside(part.get(start + "expected:".len()..second.0)?)?,
        actual: inside(part.get(second.0 + second.1..)?)?,
    })
}

/// Reads sentences: `expected 1 to be 2 // Object.is equality`, `Failed asserting that 1 is
/// identical to 2.`
fn parse_sentence(part: &str) -> Option<ComparedValues> {
    const SENTENCE_MIDDLES: [&str; 7] = [
        " to deeply equal ",
        " to strictly equal ",
        " to equal ",
        " to be ",
        " matches expected ",
        " is identical to ",
        " is equal to ",
    ];
    let rest = ["Failed asserting that ", "expected "]
        .iter()
        .find_map(|begin| part.find(begin).and_then(|at| part.get(at + begin.len()..)))?;
    let (actual, expected) = SENTENCE_MIDDLES.iter().find_map(|middle| rest.split_once(middle))?;
    let expected = expected.split(" // ").next().unwrap_or(expected);
    new_compared_values(expected.trim_end_matches('.'), actual)
}

/// Reads `got 1, want 2` in either order, as Go's tests print it, possibly after a function call.
fn parse_got_and_want(part: &str) -> Option<ComparedValues> {
    const EXPECTED_WORDS: [&str; 3] = ["want", "wanted", "expected"];
    const ACTUAL_WORDS: [&str; 4] = ["got", "have", "actual", "was"];
    let (first, second) = ["; ", ", but ", ", "].iter().find_map(|comma| part.rsplit_once(comma))?;
    let after_word = |text: &str, words: &[&str]| {
        words.iter().find_map(|word| {
            let at = text.rfind(word)?;
            let is_word = text
                .get(..at)
                .is_none_or(|before| before.is_empty() || before.ends_with([' ', ':', '(', '\t']));
            let rest = text.get(at + word.len()..)?;
            let value = rest.strip_prefix([' ', ':', '='])?.trim_start_matches(['=', ':', ' ']);
            (is_word && !value.is_empty()).then(|| value.to_owned())
        })
    };
    if let Some(expected) = after_word(second, &EXPECTED_WORDS) {
        let equals = || first.rsplit_once(" = ").map(|(_, value)| value.to_owned());
        let actual = after_word(first, &ACTUAL_WORDS).or_else(equals)?;
        return new_compared_values(&expected, &actual);
    }
    new_compared_values(&after_word(first, &EXPECTED_WORDS)?, &after_word(second, &ACTUAL_WORDS)?)
}

/// Reads `assert 1 == 2` of pytest, `AssertionError: 1 != 2` of unittest, `1 !== 2` of Node.
fn parse_operator_comparison(part: &str) -> Option<ComparedValues> {
    let stated = part.strip_prefix("AssertionError [ERR_ASSERTION]: ").unwrap_or(part);
    let stated = stated.strip_prefix("AssertionError: ").map_or(stated, str::trim);
    let is_stated = stated.len() < part.len();
    if let Some(asserted) = stated.strip_prefix("assert ") {
        let (actual, expected) = asserted.split_once(" == ")?;
        return new_compared_values(expected, actual);
    }
    let (actual, expected) = match stated.split_once(" !== ") {
        Some(sides) => sides,
        None if is_stated => stated.split_once(" != ").or_else(|| stated.split_once(" == "))?,
        None => return None,
    };
    let expected = expected.split(" : ").next().unwrap_or(expected);
    new_compared_values(expected, actual)
}

fn new_compared_values(expected: &str, actual: &str) -> Option<ComparedValues> {
    let (expected, actual) = (expected.trim(), actual.trim());
    (!expected.is_empty() && !actual.is_empty())
        .then(|| ComparedValues { expected: expected.to_owned(), actual: actual.to_owned() })
}

/// Returns a value without the backquotes and the comma that some runners print around it.
fn strip_quotes(value: &str) -> String {
    let value = value.trim();
    let bare = value.strip_suffix(',').unwrap_or(value);
    match bare.strip_prefix('`').and_then(|rest| rest.strip_suffix('`')) {
        Some(inside) => inside.to_owned(),
        None => value.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_each_runner() {
        // Message, expected, actual.
        let cases = [
            ("assertion `left == right` failed: sum; left: 3; right: 4", "4", "3"),
            ("assertion failed: `(left == right)`\n  left: `3`,\n right: `4`", "4", "3"),
            ("assert -1 == 3; +  where -1 = add(1, 2)", "3", "-1"),
            ("AssertionError: assert 'a' == 'b'", "'b'", "'a'"),
            ("AssertionError: 1 != 2", "2", "1"),
            ("AssertionError: 1 != 2 : sums", "2", "1"),
            ("Expected values to be strictly equal:; 1 !== 2", "2", "1"),
            ("AssertionError [ERR_ASSERTION]: -1 == 3", "3", "-1"),
            ("expect(received).toBe(expected) // Object.is equality; Expected: 3; Received: -1", "3", "-1"),
            ("AssertionError: expected -1 to be 3 // Object.is equality", "3", "-1"),
            ("AssertionError: expected [ 1 ] to deeply equal [ 2 ]", "[ 2 ]", "[ 1 ]"),
            ("got 1, want 2", "2", "1"),
            ("got 1; want 2", "2", "1"),
            ("Add(1, 2) = 4, want 3", "3", "4"),
            ("sum: expected 3, got 4", "3", "4"),
            ("expected: 3; actual  : 4", "3", "4"),
            ("java.lang.AssertionError: expected:<1> but was:<2>", "1", "2"),
            ("expected: <1> but was: <2>", "1", "2"),
            ("Assert.AreEqual failed. Expected:<1>. Actual:<2>.", "1", "2"),
            ("Failed asserting that 1 matches expected 2.", "2", "1"),
            ("Failed asserting that 'a' is identical to 'b'.", "'b'", "'a'"),
            ("expected: 2; got: 1; (compared using ==)", "2", "1"),
            ("Expected: 2;   But was:  1", "2", "1"),
            ("Expected: 3\n  Actual: 4", "3", "4"),
            ("two strings are equal.; --- Expected; +++ Actual; @@ @@; -'a'; +'b'", "'a'", "'b'"),
        ];
        for (message, expected, actual) in cases {
            let wanted = ComparedValues { expected: expected.to_owned(), actual: actual.to_owned() };
            assert_eq!(parse_compared_values(message), Some(wanted), "{message}");
        }
    }

    #[test]
    fn other_messages_name_no_values() {
        for message in [
            "",
            "the test fails",
            "cannot add `&str` to `u32`",
            "expected type, found keyword",
            "expected `;`, found `}`",
            "mismatched types; expected `u32`, found `&str`",
            "ValueError: x",
            "assert False",
            "Type 'string' is not assignable to type 'number'.",
            "undefined: y",
            "connection refused, was the server started?",
        ] {
            assert_eq!(parse_compared_values(message), None, "{message}");
        }
    }
}
