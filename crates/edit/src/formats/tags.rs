//! Reading tags and literal content, a position at a time.

use std::ops::Range;

use crate::formats::ReplyLines;

/// The tags that stand in an `<edit>` block.
pub(crate) const EDIT_BLOCK_TAGS: [&str; 6] =
    ["file", "search", "replace", "delete", "rename", "description"];

/// Maximum number of lines before a block's first tag that belong to no tag of it.
const MAX_STRANGE_LINES: usize = 5;

/// An opening tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tag {
    /// Its attributes, as written.
    pub(crate) attributes: String,
    /// `<name/>`.
    pub(crate) closed: bool,
    /// The offset of the tag's end.
    pub(crate) end: usize,
}

/// Reads the opening tag of `name` at `at`, blanks and attributes allowed in it.
pub(crate) fn parse_opening_tag(text: &str, at: usize, name: &str) -> Option<Tag> {
    let rest = text.get(at..)?.strip_prefix('<')?.strip_prefix(name)?;
    if !rest.starts_with(['>', '/', ' ', '\t', '\n', '\r']) {
        return None;
    }
    // A tag is one short line; a `<` before its `>` means it isn't a tag.
    let length =
        rest.find(['>', '<']).filter(|length| rest.get(*length..).is_some_and(|r| r.starts_with('>')))?;
    let inside = rest.get(..length)?.trim();
    let closed = inside.ends_with('/');
    let attributes = inside.trim_end_matches('/').trim().to_owned();
    Some(Tag { attributes, closed, end: at + 1 + name.len() + length + 1 })
}

/// The value of an attribute in single or double quotes.
pub(crate) fn attribute_value<'a>(attributes: &'a str, name: &str) -> Option<&'a str> {
    let mut rest = attributes.trim_start();
    while !rest.is_empty() {
        let (key, after) = rest.split_once('=')?;
        let after = after.trim_start();
        let quote = after.chars().next().filter(|c| matches!(c, '"' | '\''))?;
        let (value, after) = after.get(1..)?.split_once(quote)?;
        if key.trim() == name {
            return Some(value);
        }
        rest = after.trim_start();
    }
    None
}

/// A search text and its replacement without XML's marks of a literal text, where both have them
/// around all of them. In a file that may have such marks itself they are text.
pub(crate) fn literal_texts<'a>(file: &str, search: &'a str, replace: &'a str) -> Option<(&'a str, &'a str)> {
    Some((literal_content(file, search)?, literal_content(file, replace)?))
}

/// A file's content without such marks, where they are around all of it.
pub(crate) fn literal_content<'a>(file: &str, content: &'a str) -> Option<&'a str> {
    const MARKUP: [&str; 10] = ["xml", "html", "htm", "xhtml", "svg", "xsl", "xslt", "xsd", "plist", "rss"];
    let ending = file.rsplit_once('.').map_or("", |(_, ending)| ending).to_ascii_lowercase();
    if MARKUP.contains(&ending.as_str()) { None } else { literal_text(content) }
}

/// The text between XML's marks of a literal text, where that is all of a content.
fn literal_text(content: &str) -> Option<&str> {
    let text = content.trim().strip_prefix("<![CDATA[")?.strip_suffix("]]>")?;
    (!text.contains("]]>")).then(|| trim_content_breaks(text))
}

/// Content without the line break after its opening tag and the one before its closing tag.
pub(crate) fn trim_content_breaks(raw: &str) -> &str {
    let inner = raw.strip_prefix("\r\n").or_else(|| raw.strip_prefix('\n')).unwrap_or(raw);
    // A closing tag alone on a line owns the line's indentation.
    let line = inner.rfind('\n').map_or(0, |at| at + 1);
    let inner = match inner.get(line..) {
        Some(last) if line > 0 && !last.is_empty() && last.trim_matches([' ', '\t']).is_empty() => {
            inner.get(..line).unwrap_or(inner)
        }
        _ => inner,
    };
    crate::lines::strip_line_break(inner)
}

/// The position of the first character at or after `at` that isn't a blank.
pub(crate) fn skip_blanks(text: &str, at: usize) -> usize {
    let rest = text.get(at..).unwrap_or_default();
    at + (rest.len() - rest.trim_start().len())
}

/// The position after `</name>` at `at`, blanks allowed before the `>`.
pub(crate) fn closing_tag_end(text: &str, at: usize, name: &str) -> Option<usize> {
    let rest = text.get(at..)?.strip_prefix("</")?.strip_prefix(name)?;
    let inner = rest.trim_start_matches([' ', '\t']);
    inner.starts_with('>').then(|| at + 2 + name.len() + (rest.len() - inner.len()) + 1)
}

/// The closing tags of `name` from `at` on that aren't inside a nested block: each as (where it
/// begins, where it ends). A nested block begins with `<edit>` and one of its tags, and ends with
/// `</edit>`.
pub(crate) fn closing_tags<'a>(
    text: &'a str,
    at: usize,
    name: &'a str,
) -> impl Iterator<Item = Range<usize>> + 'a {
    let mut depth = 0_usize;
    let mut from = at;
    std::iter::from_fn(move || {
        loop {
            let found = from + text.get(from..)?.find('<')?;
            from = found + 1;
            if depth == 0
                && let Some(end) = closing_tag_end(text, found, name)
            {
                from = end;
                return Some(found..end);
            }
            if let Some(end) = closing_tag_end(text, found, "edit") {
                depth = depth.saturating_sub(1);
                from = end;
            } else if begins_edit_block(text, found) {
                depth += 1;
            }
        }
    })
}

/// Returns true if an `<edit>` block, not just the word, begins at `at`: one of its tags
/// follows, or begins one of the next lines where the `<edit>` is alone on its own.
pub(crate) fn begins_edit_block(text: &str, at: usize) -> bool {
    let Some(tag) = parse_opening_tag(text, at, "edit").filter(|tag| !tag.closed) else { return false };
    let is_known = |at: usize| EDIT_BLOCK_TAGS.iter().any(|name| parse_opening_tag(text, at, name).is_some());
    if is_known(skip_blanks(text, tag.end)) {
        return true;
    }
    let before = text.get(..at).unwrap_or_default().trim_end_matches([' ', '\t']);
    let mut rows = ReplyLines::new(text.get(tag.end..).unwrap_or_default());
    let begins_line = before.is_empty() || before.ends_with('\n');
    if !begins_line || !rows.next().is_some_and(|row| row.text.trim().is_empty()) {
        return false;
    }
    let starts = rows.take(MAX_STRANGE_LINES).map(|row| skip_blanks(text, tag.end + row.start));
    let is_other = |at: &usize| {
        let rest = text.get(*at..).unwrap_or_default();
        !rest.starts_with("<edit") && !rest.starts_with("</edit")
    };
    starts.take_while(is_other).any(is_known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_table() {
        let cases = [
            ("\na\n", "a"),
            ("a", "a"),
            ("\r\na\r\nb\r\n", "a\r\nb"),
            ("\n\na\n\n", "\na\n"),
            ("\n", ""),
            ("", ""),
            ("\n  a\n  ", "  a"),
            ("\na", "a"),
            ("  a  ", "  a  "),
        ];
        for (raw, expected) in cases {
            assert_eq!(trim_content_breaks(raw), expected, "{raw:?}");
        }
    }

    #[test]
    fn literal_texts_table() {
        for (content, text) in [
            ("<![CDATA[<a>\n]]>", Some("<a>")),
            ("\n  <![CDATA[\n  a\n]]>\n", Some("  a")),
            ("<![CDATA[a]]> <![CDATA[b]]>", None),
            ("a", None),
        ] {
            assert_eq!(literal_text(content), text, "{content:?}");
        }
    }

    #[test]
    fn tags_table() {
        let tag = |text: &str| {
            parse_opening_tag(text, 0, "search").map(|tag| (tag.attributes, tag.closed, tag.end))
        };
        assert_eq!(tag("<search>x"), Some((String::new(), false, 8)));
        assert_eq!(tag("<search fence=\"EOT\" >"), Some(("fence=\"EOT\"".to_owned(), false, 21)));
        assert_eq!(tag("<search />"), Some((String::new(), true, 10)));
        assert_eq!(tag("<searching>"), None);
        assert_eq!(tag("<search <b>"), None);
        assert_eq!(attribute_value("a='1' fence=\"E O\"", "fence"), Some("E O"));
        assert_eq!(attribute_value("fence=EOT", "fence"), None);
    }
}
