//! Formats values for people.

use std::fmt::Display;
use std::time::Duration;

use journeyman_protocol::{RunOutcome, UnixMillis, Usage, group_digits};
use journeyman_sandbox::clean_output;

/// Maximum number of characters of a preview.
const MAX_PREVIEW_CHARS: usize = 160;

/// Formats a value without control sequences: names, messages and outputs come from others.
#[must_use]
pub fn printable(value: &(impl Display + ?Sized)) -> String {
    clean_output(value.to_string().as_bytes())
}

/// Formats a text so that nothing in it is hidden: a character that a terminal obeys, or that
/// nobody sees, is written as an escape. Line breaks and tabs stay.
#[must_use]
pub fn reveal_hidden(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.replace("\r\n", "\n").chars() {
        if clean_output(character.encode_utf8(&mut [0; 4]).as_bytes()).is_empty() {
            shown.extend(character.escape_default());
        } else {
            shown.push(character);
        }
    }
    shown
}

/// Returns the first line of a text, without control sequences and bounded.
#[must_use]
pub fn preview(text: impl Display) -> String {
    let text = printable(&text);
    let mut lines = text.lines();
    let first = lines.next().unwrap_or_default();
    let has_more = lines.next().is_some();
    match first.char_indices().nth(MAX_PREVIEW_CHARS) {
        Some((end, _)) => format!("{}…", first.get(..end).unwrap_or_default()),
        None if has_more => format!("{first} …"),
        None => first.to_owned(),
    }
}

/// Lists the first of several values, and the number of the others.
#[must_use]
pub fn list_first(values: &[impl ToString], limit: usize) -> String {
    let first: Vec<String> = values.iter().take(limit).map(ToString::to_string).collect();
    let more = values.len().saturating_sub(first.len());
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", first.join(", "))
}

/// Formats a number with its noun: `1 file`, `3 files`.
#[must_use]
pub fn format_count(number: impl Display, noun: &str) -> String {
    let number = number.to_string();
    let plural = if number == "1" { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

/// Formats a duration as seconds with a tenth: `0.4 s`.
#[must_use]
pub fn format_seconds(milliseconds: u64) -> String {
    format!("{:.1} s", Duration::from_millis(milliseconds).as_secs_f64())
}

/// Describes how long ago a time was: `3 min ago`, `2 days ago`.
#[must_use]
pub fn describe_age(now: UnixMillis, at: UnixMillis) -> String {
    let minutes = now.0.saturating_sub(at.0) / 60_000;
    match minutes {
        0 => "just now".to_owned(),
        1..60 => format!("{minutes} min ago"),
        60..2_880 => format!("{} h ago", minutes / 60),
        _ => format!("{} days ago", minutes / 1_440),
    }
}

/// Formats a number of bytes with a tenth of a binary unit: `1.5 MiB`.
#[must_use]
pub fn format_binary_size(bytes: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    for (unit, name) in UNITS {
        if bytes >= unit {
            return format!("{}.{} {name}", bytes / unit, bytes % unit * 10 / unit);
        }
    }
    format!("{bytes} bytes")
}

/// Returns the name of an outcome with spaces: `checks fail`.
#[must_use]
pub fn outcome_name(outcome: RunOutcome) -> String {
    let name = serde_json::to_value(outcome).unwrap_or_default();
    name.as_str().unwrap_or_default().replace('_', " ")
}

/// Describes tokens and cost: `1,250 tokens in (1,000 cached, 80 %), 56 out, $0.0123`.
#[must_use]
pub fn describe_usage(usage: &Usage, cost_usd: Option<f64>) -> String {
    let cached = match usage.cache_read.0 {
        0 => String::new(),
        read => {
            let ratio = read.saturating_mul(100) / usage.total_input().0.max(1);
            format!(" ({} cached, {ratio} %)", group_digits(read))
        }
    };
    let cost = cost_usd.map_or_else(|| "cost unknown".to_owned(), |usd| format!("${usd:.4}"));
    let (input, output) = (group_digits(usage.total_input().0), group_digits(usage.output.0));
    let estimated = match usage.estimated.0 {
        0 => String::new(),
        some => format!(" ({} of them estimated)", group_digits(some)),
    };
    format!("{input} tokens in{cached}, {output} out{estimated}, {cost}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use journeyman_protocol::Tokens;

    #[test]
    fn an_unknown_cost_is_said() {
        let usage = Usage {
            input: Tokens(1_234_567),
            cache_read: Tokens(1_000_000),
            output: Tokens(12),
            ..Usage::default()
        };
        let described = "2,234,567 tokens in (1,000,000 cached, 44 %), 12 out, cost unknown";
        assert_eq!(describe_usage(&usage, None), described);
        assert_eq!(describe_usage(&Usage::default(), Some(0.5)), "0 tokens in, 0 out, $0.5000");
        let cut_off = Usage { input: Tokens(7), output: Tokens(5), estimated: Tokens(5), ..Usage::default() };
        assert_eq!(describe_usage(&cut_off, Some(0.0)), "7 tokens in, 5 out (5 of them estimated), $0.0000");
    }

    #[test]
    fn a_list_names_the_first_values_and_counts_the_others() {
        let values = ["a", "b", "c"];
        assert_eq!([1, 3, 9].map(|limit| list_first(&values, limit)), ["a and 2 more", "a, b, c", "a, b, c"]);
        assert_eq!(list_first(&[] as &[&str], 1), "");
    }

    #[test]
    fn ages_are_rounded_down() {
        let now = UnixMillis(10 * 86_400_000);
        let ages =
            [0, 59, 3 * 60, 3_600, 47 * 3_600, 3 * 86_400].map(|seconds| UnixMillis(now.0 - seconds * 1000));
        let described = ["just now", "just now", "3 min ago", "1 h ago", "47 h ago", "3 days ago"];
        assert_eq!(ages.map(|at| describe_age(now, at)), described);
    }

    #[test]
    fn numbers_and_sizes() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(group_digits), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(
            [0, 1023, 1536, 5 << 30].map(format_binary_size),
            ["0 bytes", "1023 bytes", "1.5 KiB", "5.0 GiB"]
        );
        assert_eq!([format_count(0, "file"), format_count(1, "file")], ["0 files", "1 file"]);
    }

    #[test]
    fn a_preview_is_one_bounded_line_without_control_sequences() {
        assert_eq!(preview("one\u{1b}[31m\ntwo"), "one …");
        let longest = "x".repeat(MAX_PREVIEW_CHARS);
        assert_eq!(
            [preview(&longest), preview(format!("{longest}x"))],
            [longest.clone(), format!("{longest}…")]
        );
    }
}
