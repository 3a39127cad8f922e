//! Markdown: headings with `#` and underlined headings.

use super::headings::{Headings, Line};

/// Returns the sign, length and indentation of a code fence.
fn parse_fence(text: &str) -> Option<(char, usize)> {
    let inner = text.trim_start();
    let sign = inner.chars().next().filter(|sign| matches!(sign, '`' | '~'))?;
    let long = inner.len() - inner.trim_start_matches(sign).len();
    let info = inner.get(long..).unwrap_or_default();
    (long >= 3 && !(sign == '`' && info.contains('`'))).then_some((sign, long))
}

/// Returns a line's indentation in columns, and the rest. A tab counts as four.
fn split_indentation(text: &str) -> (usize, &str) {
    let inner = text.trim_start_matches([' ', '\t']);
    let lead = text.len() - inner.len();
    let tabs = text.get(..lead).unwrap_or_default().matches('\t').count();
    (lead + tabs * 3, inner)
}

/// Returns the columns of `- ` or `1. ` before the text of a list's item.
fn list_marker_width(inner: &str) -> Option<usize> {
    let digits = inner.len() - inner.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let signs: &[char] = if digits == 0 { &['-', '*', '+'] } else { &['.', ')'] };
    let rest = inner.get(digits..)?.strip_prefix(signs)?;
    (digits < 10 && (rest.is_empty() || rest.starts_with([' ', '\t']))).then_some(digits + 2)
}

/// Reads the headings of a document.
pub(super) fn read_headings(lines: &[Line<'_>]) -> Headings {
    let mut outline = Headings::new(lines.len());
    let mut open: Option<(char, usize)> = None;
    let mut at = skip_front_matter(lines);
    // The line that may turn out to be an underlined heading.
    let mut paragraph: Option<usize> = None;
    let mut comment = false;
    // The column at which the text of the last item of a list begins.
    let mut item = 0;
    while let Some(line) = lines.get(at) {
        let here = at;
        at += 1;
        if let Some((sign, long)) = open {
            outline.mark_code(here);
            let inner = line.text.trim();
            if inner.chars().all(|c| c == sign) && inner.len() >= long {
                open = None;
            }
            continue;
        }
        let (columns, inner) = split_indentation(line.text);
        let marker = if columns < item + 4 { list_marker_width(inner) } else { None };
        if let Some(width) = marker {
            item = columns + width;
        } else if !inner.is_empty() {
            item = item.min(columns);
        }
        if comment || inner.starts_with("<!--") {
            comment = !inner.contains("-->");
            paragraph = None;
            continue;
        }
        if let Some(found) = parse_fence(line.text) {
            open = Some(found);
            outline.mark_code(here);
            paragraph = None;
        } else if inner.is_empty() {
            paragraph = None;
        } else if columns >= item + 4 && marker.is_none() && paragraph.is_none() {
            outline.mark_code(here);
        } else if columns < 4
            && let Some((level, words)) = parse_atx_heading(inner)
        {
            outline.add_heading(level, lines, here, here, words);
            paragraph = None;
        } else if let (Some(first), Some(level)) = (paragraph, underline_level(inner).filter(|_| columns < 4))
        {
            let words = lines.get(here - 1).map_or("", |line| line.text);
            // Of several lines, the last is the heading's text.
            outline.add_heading(level, lines, first, here - 1, words);
            paragraph = None;
        } else {
            let plain = !inner.starts_with(['>', '|', '-', '*', '+', '<']);
            paragraph = if plain { paragraph.or(Some(here)) } else { None };
        }
    }
    outline
}

/// Returns the first line after front matter between two lines `---`.
fn skip_front_matter(lines: &[Line<'_>]) -> usize {
    if lines.first().is_none_or(|line| line.text.trim_end() != "---") {
        return 0;
    }
    let end = lines.iter().skip(1).position(|line| matches!(line.text.trim_end(), "---" | "..."));
    end.map_or(0, |end| end + 2)
}

/// Reads `## Words ##`.
fn parse_atx_heading(inner: &str) -> Option<(usize, &str)> {
    let words = inner.trim_start_matches('#');
    let level = inner.len() - words.len();
    if !(1..=6).contains(&level) || !(words.is_empty() || words.starts_with([' ', '\t'])) {
        return None;
    }
    let words = words.trim();
    let closed = words.trim_end_matches('#');
    let words = if closed.is_empty() || closed.ends_with([' ', '\t']) { closed.trim_end() } else { words };
    Some((level, words))
}

/// Returns the level of a heading's underline.
fn underline_level(inner: &str) -> Option<usize> {
    let inner = inner.trim_end();
    match inner.chars().next()? {
        '=' if inner.chars().all(|c| c == '=') => Some(1),
        '-' if inner.chars().all(|c| c == '-') => Some(2),
        _ => None,
    }
}

/// Finds `[words](target)`, `[name]: target` and `src="target"`.
pub(super) fn visit_links(line: &str, add: &mut dyn FnMut(&str)) {
    for (at, _) in line.match_indices("](") {
        let rest = line.get(at + 2..).unwrap_or_default();
        let target = rest.split([')', ' ']).next().unwrap_or_default();
        add(target.trim_matches(['<', '>']));
    }
    if let Some((name, target)) = line.trim_start().strip_prefix('[').and_then(|rest| rest.split_once("]: "))
        && !name.contains(']')
    {
        add(target.split_whitespace().next().unwrap_or_default());
    }
    for sign in ["src=\"", "href=\""] {
        for (at, _) in line.match_indices(sign) {
            add(line.get(at + sign.len()..).unwrap_or_default().split('"').next().unwrap_or_default());
        }
    }
}
