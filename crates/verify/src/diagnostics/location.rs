//! Parsers of the forms that most tools share.

use journeyman_protocol::Severity;

/// `path:line[:column]` and what follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Location<'a> {
    pub(super) path: &'a str,
    pub(super) line: u32,
    pub(super) column: Option<u32>,
    pub(super) rest: &'a str,
}

/// Reads a [`Place`] at the beginning of `text`.
pub(super) fn parse_location(text: &str) -> Option<Location<'_>> {
    let (at, line, after) = text
        .match_indices(':')
        .find_map(|(at, _)| parse_number(text.get(at + 1..)?).map(|(line, after)| (at, line, after)))?;
    let path = text.get(..at).filter(|path| !path.is_empty())?;
    let column = after.strip_prefix(':').and_then(parse_number);
    match column {
        Some((column, rest)) => Some(Location { path, line, column: Some(column), rest }),
        None => Some(Location { path, line, column: None, rest: after }),
    }
}

/// Reads `path(line,column)` at the beginning of `text`, as `tsc` prints it.
pub(super) fn parse_parenthesised_location(text: &str) -> Option<Location<'_>> {
    text.match_indices('(').find_map(|(at, _)| {
        let (line, after) = parse_number(text.get(at + 1..)?)?;
        let (column, after) = parse_number(after.strip_prefix(',')?)?;
        let rest = after.strip_prefix(')')?;
        let path = text.get(..at).filter(|path| !path.is_empty())?;
        Some(Location { path, line, column: Some(column), rest })
    })
}

/// Reads a decimal number of at most nine digits, and returns the text after it.
pub(super) fn parse_number(text: &str) -> Option<(u32, &str)> {
    let digits = text.bytes().take(10).take_while(u8::is_ascii_digit).count();
    if digits > 9 {
        return None;
    }
    let (number, rest) = text.split_at_checked(digits)?;
    Some((number.parse().ok()?, rest))
}

/// Reads a severity word at the beginning of `text`, with the code in brackets and the colon after
/// it.
pub(super) fn parse_severity(text: &str) -> Option<(Severity, Option<&str>, &str)> {
    const SEVERITY_WORDS: [(&str, Severity); 8] = [
        ("fatal error", Severity::Error),
        ("error", Severity::Error),
        ("Error", Severity::Error),
        ("ERROR", Severity::Error),
        ("warning", Severity::Warning),
        ("Warning", Severity::Warning),
        ("note", Severity::Note),
        ("info", Severity::Note),
    ];
    let (severity, rest) = SEVERITY_WORDS
        .into_iter()
        .find_map(|(word, severity)| text.strip_prefix(word).map(|rest| (severity, rest)))?;
    if let Some(message) = rest.strip_prefix(':') {
        return Some((severity, None, message.trim()));
    }
    if let Some((code, message)) = rest.strip_prefix('[').and_then(|rest| rest.split_once("]:")) {
        return Some((severity, Some(code), message.trim()));
    }
    let (code, message) = rest.strip_prefix(' ')?.split_once(':')?;
    is_code(code).then(|| (severity, Some(code), message.trim()))
}

/// Returns true if `word` looks like a tool's code for a finding, such as `E0308`, `TS2322` or
/// `F401`.
pub(super) fn is_code(word: &str) -> bool {
    let letters = word.bytes().take_while(u8::is_ascii_uppercase).count();
    let digits = word.bytes().skip(letters).take_while(u8::is_ascii_digit).count();
    (1..=6).contains(&letters) && (1..=6).contains(&digits) && letters + digits == word.len()
}

/// Resolves `..` components by the text alone, as tools in a sub-directory print them.
pub(super) fn resolve_parents(printed: &str) -> Option<String> {
    let mut kept: Vec<&str> = Vec::new();
    for component in printed.split('/') {
        match component {
            ".." => {
                kept.pop()?;
            }
            "" | "." => {}
            name => kept.push(name),
        }
    }
    Some(kept.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places() {
        let full = |path, line, column, rest| Some(Location { path, line, column, rest });
        let cases = [
            ("a.c:3:4: boo", full("a.c", 3, Some(4), ": boo")),
            ("a.c:3: boo", full("a.c", 3, None, ": boo")),
            ("a.c:3", full("a.c", 3, None, "")),
            ("C:x:7:1", full("C:x", 7, Some(1), "")),
            ("a.c:boo", None),
            (":3:4", None),
            ("a.c:99999999999:1", full("a.c:99999999999", 1, None, "")),
            ("é.c:1:2", full("é.c", 1, Some(2), "")),
        ];
        for (given, expected) in cases {
            assert_eq!(parse_location(given), expected, "{given}");
        }
        assert_eq!(
            parse_parenthesised_location("a(b)/c.ts(3,5): error"),
            full("a(b)/c.ts", 3, Some(5), ": error")
        );
        assert_eq!(parse_parenthesised_location("f(1)"), None);
    }

    #[test]
    fn severities() {
        let cases = [
            ("error: x", Some((Severity::Error, None, "x"))),
            ("error[E0308]: x", Some((Severity::Error, Some("E0308"), "x"))),
            ("error TS2322: x", Some((Severity::Error, Some("TS2322"), "x"))),
            ("fatal error: x", Some((Severity::Error, None, "x"))),
            ("warning: x", Some((Severity::Warning, None, "x"))),
            ("errors: x", None),
            ("error in x: y", None),
        ];
        for (given, expected) in cases {
            assert_eq!(parse_severity(given), expected, "{given}");
        }
    }
}
