//! AsciiDoc: headings with `=`.

use super::headings::{Headings, Line};

/// Returns the delimiter of a block without headings.
fn block_delimiter(text: &str) -> Option<&str> {
    let text = text.trim_end();
    let sign = text.chars().next().filter(|sign| matches!(sign, '-' | '.' | '+' | '/' | '`'))?;
    let least = if sign == '`' { 3 } else { 4 };
    let own = text.trim_start_matches(sign);
    (text.len() - own.len() >= least && (own.is_empty() || sign == '`'))
        .then(|| text.get(..text.len() - own.len()))
        .flatten()
}

/// Reads the headings of a document.
pub(super) fn read_headings(lines: &[Line<'_>]) -> Headings {
    let mut outline = Headings::new(lines.len());
    let mut open: Option<&str> = None;
    for (at, line) in lines.iter().enumerate() {
        if let Some(end) = open {
            outline.mark_code(at);
            if line.text.trim_end() == end {
                open = None;
            }
            continue;
        }
        if let Some(found) = block_delimiter(line.text) {
            open = Some(found);
            outline.mark_code(at);
            continue;
        }
        let sign = if line.text.starts_with('#') { '#' } else { '=' };
        let words = line.text.trim_start_matches(sign);
        let level = line.text.len() - words.len();
        if (1..=6).contains(&level) && words.starts_with(' ') {
            let words = words.trim();
            outline.add_heading(level, lines, at, at, words.trim_end_matches(sign).trim_end());
        }
    }
    outline
}

/// Finds `include::target[]`, `image::target[]`, `link:target[]` and `xref:target[]`.
pub(super) fn visit_links(line: &str, add: &mut dyn FnMut(&str)) {
    for sign in ["include::", "image::", "image:", "link:", "xref:"] {
        for (at, _) in line.match_indices(sign) {
            let rest = line.get(at + sign.len()..).unwrap_or_default();
            if let Some((target, _)) = rest.split_once('[').filter(|(target, _)| !target.starts_with(':')) {
                add(target);
            }
        }
    }
}
