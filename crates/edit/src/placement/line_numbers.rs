//! Undoing the line numbers of a listing.

/// Separators between a number and its line in listings for models.
const NUMBER_SEPARATORS: [char; 5] = ['|', '│', '→', '\t', ':'];

struct NumberedLine<'a> {
    number: u32,
    separator: char,
    rest: &'a str,
}

fn parse_numbered_line(line: &str) -> Option<NumberedLine<'_>> {
    let line = line.trim_start_matches(' ');
    let digits = line.len() - line.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let number = line.get(..digits)?.parse().ok()?;
    let after = line.get(digits..)?.trim_start_matches(' ');
    let separator = after.chars().next().filter(|c| NUMBER_SEPARATORS.contains(c))?;
    Some(NumberedLine { number, separator, rest: after.get(separator.len_utf8()..)? })
}

/// The text without line numbers, and the first number, if every line has one: in a search text
/// they must count up by one, in a replacement (whose lines come and go) they need not. `None`
/// where that isn't so.
fn strip_line_numbers(text: &str, must_count: bool) -> Option<(String, u32)> {
    let body = text.strip_suffix('\n').unwrap_or(text);
    let lines: Vec<NumberedLine<'_>> = body.split('\n').map(parse_numbered_line).collect::<Option<_>>()?;
    let (first, more) = lines.split_first()?;
    let counts = lines.windows(2).all(|pair| match pair {
        [one, next] => one.number.checked_add(1) == Some(next.number),
        _ => true,
    });
    if lines.iter().any(|line| line.separator != first.separator) || (must_count && !counts) {
        return None;
    }
    // One line that begins with a number and a colon is more likely a mapping or a time than a
    // listing. Beside a search text that is a listing it is one as well.
    if must_count && more.is_empty() && first.separator == ':' {
        return None;
    }
    let spaced = matches!(first.separator, '|' | '│' | ':')
        && lines.iter().all(|line| line.rest.trim_end().is_empty() || line.rest.starts_with(' '));
    let mut out = String::with_capacity(text.len());
    for (nth, line) in lines.iter().enumerate() {
        if nth > 0 {
            out.push('\n');
        }
        out.push_str(line.rest.strip_prefix(' ').filter(|_| spaced).unwrap_or(line.rest));
    }
    if body.len() < text.len() {
        out.push('\n');
    }
    Some((out, first.number))
}

/// A search text without its line numbers, and the first of them, if every line has one and they
/// count up.
pub(crate) fn strip_search_text(text: &str) -> Option<(String, u32)> {
    strip_line_numbers(text, true)
}

/// A replacement without its line numbers, if every line has one.
pub(crate) fn strip_replacement(text: &str) -> Option<String> {
    strip_line_numbers(text, false).map(|(text, _)| text)
}

/// Returns true if some lines seem to have numbers: then it can't be told what was meant.
pub(crate) fn is_partly_numbered(text: &str) -> bool {
    text.lines().filter_map(parse_numbered_line).any(|line| line.separator != ':')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stripping_table() {
        let cases: &[(&str, Option<(&str, u32)>)] = &[
            ("1 | a\n2 |   b\n3 |", Some(("a\n  b\n", 1))),
            ("  9\ta\n 10\t\tb\n", Some(("a\n\tb\n", 9))),
            ("7→x", Some(("x", 7))),
            ("12: a\n13: b", Some(("a\nb", 12))),
            ("12:a\n13: b", Some(("a\n b", 12))),
            ("1 | |h|\n2 | |-|", Some(("|h|\n|-|", 1))),
            ("1 | a\nb", None),
            ("1 | a\n3 | b", None),
            ("1 | a\n2: b", None),
            ("8: true", None),
            ("", None),
        ];
        for (text, expected) in cases {
            assert_eq!(
                strip_search_text(text),
                expected.map(|(text, first)| (text.to_owned(), first)),
                "{text:?}"
            );
        }
    }
}
