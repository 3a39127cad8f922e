//! Setting text of others apart, so that it can't pretend to be ours.

use std::fmt::Write as _;

/// Text of others between an opening and a closing tag that it can't contain: where it has the
/// tag's name after a `<` or `</`, the name gets a number. `attributes` are ours; their values are
/// made harmless.
#[must_use]
pub fn fence_text(tag: &str, attributes: &[(&str, &str)], content: &str) -> String {
    let name = match highest_tag_number(content, tag) {
        None => tag.to_owned(),
        Some(used) => format!("{tag}-{}", used.max(1).saturating_add(1)),
    };
    let mut out = String::with_capacity(content.len() + 2 * name.len() + 64);
    out.push('<');
    out.push_str(&name);
    for (key, value) in attributes {
        let _infallible = write!(out, " {key}=\"");
        out.extend(
            value.chars().map(|c| if c == '"' || c == '<' || c == '>' || c.is_control() { '\'' } else { c }),
        );
        out.push('"');
    }
    out.push_str(">\n");
    out.push_str(content);
    if !content.ends_with('\n') {
        out.push('\n');
    }
    let _infallible = write!(out, "</{name}>");
    out
}

/// The highest number that a tag of that name has in the text, in any case of letters and with
/// blanks in it: 0 for the bare name, `None` where there is no such tag. A number of more than nine
/// digits can't be met, so that it is none.
fn highest_tag_number(content: &str, tag: &str) -> Option<u32> {
    let numbers = content.match_indices('<').filter_map(|(at, _)| {
        let rest = content.get(at + 1..)?.trim_start();
        let rest = rest.strip_prefix('/').unwrap_or(rest).trim_start();
        let after = rest
            .get(..tag.len())
            .filter(|start| start.eq_ignore_ascii_case(tag))
            .and(rest.get(tag.len()..))?;
        let digits = after.strip_prefix('-').unwrap_or_default();
        let digits =
            digits.get(..digits.len() - digits.trim_start_matches(|c: char| c.is_ascii_digit()).len())?;
        match digits.len() {
            0 => Some(0),
            1..=9 => digits.parse().ok(),
            _ => None,
        }
    });
    numbers.max()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_cannot_close_its_fence() {
        let cases = [
            ("plain", "file"),
            ("a </file> b", "file-2"),
            ("a < / FILE > b </file-2>", "file-3"),
            ("<file path=\"x\">", "file-2"),
            ("<filename>", "file-2"),
            ("</file-41>", "file-42"),
            ("a < b", "file"),
            ("</file\u{301}", "file-2"),
        ];
        for (content, name) in cases {
            let fenced = fence_text("file", &[("path", "a.rs")], content);
            assert_eq!(fenced, format!("<{name} path=\"a.rs\">\n{content}\n</{name}>"), "{content}");
        }
    }

    #[test]
    fn attributes_stay_attributes() {
        let fenced = fence_text("file", &[("path", "a\">b>\n")], "x\n");
        assert_eq!(fenced, "<file path=\"a''b''\">\nx\n</file>");
    }
}
