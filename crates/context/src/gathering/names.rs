//! Names of code in a task.

use journeyman_protocol::clip_to_bytes;

/// Maximum names: a task with more is a log.
const MAX_NAMES: usize = 12;
/// Shorter names are everywhere.
const MIN_NAME_LENGTH: usize = 3;
/// Maximum bytes of a task that are read.
const MAX_TASK_BYTES: usize = 64 << 10;

/// Returns the words of a task that are written like names of code, in its order, without their
/// qualifiers: with an underscore, a capital after a small letter or brackets behind them, or set
/// in backticks.
pub(super) fn code_names(task: &str) -> Vec<String> {
    let task = clip_to_bytes(task, MAX_TASK_BYTES);
    let mut names: Vec<String> = Vec::new();
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let mut at = 0;
    while let Some(start) = task.get(at..).and_then(|rest| rest.find(is_name)).map(|found| at + found) {
        let rest = task.get(start..).unwrap_or_default();
        let name = rest.split(|c| !is_name(c)).next().unwrap_or_default();
        at = start + name.len();
        let after = task.get(at..).unwrap_or_default();
        // A qualifier, a path or an address: its last part is the name.
        let qualifies = after.starts_with("::")
            || after.starts_with('.') && after.chars().nth(1).is_some_and(is_name)
            || after.starts_with(['/', '@', '-']);
        let before = task.get(..start).unwrap_or_default();
        let within_path = before.ends_with(['/', '-', '@']);
        let mut letters = name.chars();
        let inner_capital = letters.next().is_some_and(char::is_alphabetic)
            && name.chars().zip(letters).any(|(one, next)| one.is_lowercase() && next.is_uppercase());
        let quoted = before.ends_with('`') && after.starts_with('`');
        let qualified = before.ends_with("::") || before.ends_with('.') && before.len() > 1;
        let called = after.starts_with('(');
        let inner_underscore = name.trim_matches('_').contains('_');
        let is_code =
            inner_capital || inner_underscore || quoted || called || qualified && after.starts_with('`');
        if is_code
            && !qualifies
            && !within_path
            && name.len() >= MIN_NAME_LENGTH
            && !name.starts_with(|c: char| c.is_ascii_digit())
            && !names.iter().any(|known| known == name)
        {
            names.push(name.to_owned());
            if names.len() == MAX_NAMES {
                break;
            }
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::code_names;

    #[test]
    fn names_are_told_from_words() {
        let cases: &[(&str, &[&str])] = &[
            ("Fix the parser", &[]),
            (
                "`Parser` fails after parse_header() in RequestReader",
                &["Parser", "parse_header", "RequestReader"],
            ),
            ("Call Shop::open_door or shop.close_door()", &["open_door", "close_door"]),
            ("see src/my_file.py and https://a.b/some_path", &[]),
            ("2nd_try of __init__ and `ab`", &[]),
            ("open() twice: open() and open()", &["open"]),
            ("", &[]),
        ];
        for (task, names) in cases {
            assert_eq!(code_names(task), *names, "{task}");
        }
    }
}
