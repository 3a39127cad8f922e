//! The change that a call of an editing tool makes, drawn from its arguments.

use journeyman_host::format::printable;
use journeyman_host::highlight::find_tokens_of_file;
use journeyman_protocol::EditDiff;
use journeyman_terminal::diff::{FileNameDisplay, HunkLine, Side, render_hunk};
use journeyman_terminal::{Style, StyledLine};
use serde_json::Value;

/// Columns before the numbers.
const INDENT: usize = 2;

/// Returns the changed lines of an edit, with their numbers where the result has them; none for
/// other tools.
pub(crate) fn edit_lines(tool: &str, input: &Value, result: &str) -> Vec<StyledLine> {
    let text = |value: &Value, name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
    let path = text(input, "path").unwrap_or_default();
    match tool {
        "write_file" => {
            let content = text(input, "content").unwrap_or_default();
            number_lines(&[], &content.lines().collect::<Vec<_>>(), Some(1), &path)
        }
        "edit_file" => {
            let several = input.get("edits").and_then(Value::as_array);
            let pairs: Vec<&Value> = several.map_or_else(|| vec![input], |edits| edits.iter().collect());
            let mut lines = Vec::new();
            for pair in pairs {
                let (Some(search), Some(replace)) = (text(pair, "search"), text(pair, "replace")) else {
                    continue;
                };
                if !lines.is_empty() {
                    lines.push(StyledLine::new(Style::Dim, "      ⋮"));
                }
                lines.extend(replacement_lines(&search, &replace, result, &path));
            }
            lines
        }
        _ => Vec::new(),
    }
}

/// Returns the lines of a difference, with their numbers and those around them.
pub(crate) fn diff_lines(diff: &EditDiff) -> Vec<StyledLine> {
    let clean = printable(&diff.text).replace('\t', "    ");
    let lines =
        journeyman_terminal::diff::number_lines(&clean, FileNameDisplay::OfSeveral, &find_tokens_of_file);
    lines.into_iter().map(indent_line).collect()
}

fn indent_line(line: StyledLine) -> StyledLine {
    let mut indented = StyledLine::new(Style::Plain, " ".repeat(INDENT));
    indented.spans.extend(line.spans);
    indented
}

/// Returns the lines that a replacement removes and adds, without unchanged ones.
fn replacement_lines(search: &str, replace: &str, result: &str, path: &str) -> Vec<StyledLine> {
    let (old, new): (Vec<&str>, Vec<&str>) = (search.lines().collect(), replace.lines().collect());
    let same_start = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    let mut old = old.get(same_start..).unwrap_or_default().to_vec();
    let mut rest_of_new = new.get(same_start..).unwrap_or_default().to_vec();
    let same_end = old.iter().rev().zip(rest_of_new.iter().rev()).take_while(|(old, new)| old == new).count();
    old.truncate(old.len().saturating_sub(same_end));
    rest_of_new.truncate(rest_of_new.len().saturating_sub(same_end));
    let first = new.first().and_then(|line| find_line_number(result, line)).map(|number| number + same_start);
    number_lines(&old, &rest_of_new, first, path)
}

/// Finds the number of a line in an excerpt whose lines begin with theirs.
fn find_line_number(result: &str, line: &str) -> Option<usize> {
    result.lines().find_map(|shown| {
        let shown = shown.trim_start();
        let digits = shown.bytes().take_while(u8::is_ascii_digit).count();
        let (number, rest) = shown.split_at_checked(digits)?;
        let is_line = !line.trim().is_empty() && rest.trim() == line.trim();
        number.parse().ok().filter(|_| is_line)
    })
}

fn number_lines(old: &[&str], new: &[&str], first: Option<usize>, path: &str) -> Vec<StyledLine> {
    let digits = first.map_or(0, |first| first + old.len().max(new.len())).to_string().len().max(4);
    let line = |side, place: usize, text: &str| {
        let number = first.and_then(|first| u64::try_from(first + place).ok());
        HunkLine { side, number, text: printable(text).replace('\t', "    ") }
    };
    let removed = old.iter().enumerate().map(|(place, text)| line(Side::Old, place, text));
    let added = new.iter().enumerate().map(|(place, text)| line(Side::New, place, text));
    let lines: Vec<HunkLine> = removed.chain(added).collect();
    render_hunk(&lines, digits, path, &find_tokens_of_file).into_iter().map(indent_line).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_difference_has_its_numbers_and_the_lines_around() {
        let text = "diff --git a/a.txt b/a.txt\n--- a/a.txt\n+++ b/a.txt\n@@ -40,3 +40,3 @@\n one\n-two\n+\tTWO\n three\n";
        let diff = EditDiff { added: 1, removed: 1, text: text.to_owned() };
        let shown: Vec<String> = diff_lines(&diff).iter().map(StyledLine::to_text).collect();
        assert_eq!(shown, ["  40  one", "  41 -two", "  41 +    TWO", "  42  three"]);
    }

    #[test]
    fn an_edit_is_its_changed_lines() {
        let shown = |input: Value, result: &str| -> Vec<String> {
            edit_lines("edit_file", &input, result).iter().map(StyledLine::to_text).collect()
        };
        let one =
            json!({"path": "a", "search": "fn a() {\n    1\n}", "replace": "fn a() {\n    2\n    3\n}"});
        let result = "edited a\n 40  fn a() {\n 41      2\n";
        assert_eq!(shown(one.clone(), result), ["    41 -    1", "    41 +    2", "    42 +    3"]);
        assert_eq!(
            shown(one, "done"),
            ["       -    1", "       +    2", "       +    3"],
            "no number is known"
        );
        let two = json!({"edits": [{"search": "a", "replace": "b"}, {"search": "c", "replace": ""}]});
        assert_eq!(shown(two, ""), ["       -a", "       +b", "      ⋮", "       -c"]);
        assert!(edit_lines("run_command", &json!({"command": "ls"}), "").is_empty());
    }
}
