//! reStructuredText: a heading has an underline of one repeated sign, and maybe an overline. The
//! level of a sign is the order of its first appearance.

use super::headings::{Headings, Line};

/// Returns the sign and length of a line that only repeats it.
fn parse_rule_line(text: &str) -> Option<(char, usize)> {
    let text = text.trim_end();
    let sign = text.chars().next().filter(char::is_ascii_punctuation)?;
    text.chars().all(|c| c == sign).then_some((sign, text.len()))
}

/// Reads the headings of a document.
pub(super) fn read_headings(lines: &[Line<'_>]) -> Headings {
    let mut outline = Headings::new(lines.len());
    let mut levels: Vec<(char, bool)> = Vec::new();
    let text = |at: usize| lines.get(at).map_or("", |line| line.text);
    // The indentation at which a block of code began; the block lasts while lines are indented
    // further.
    let mut code: Option<usize> = None;
    let mut at = 0;
    while at < lines.len() {
        let own = text(at);
        let columns = own.len() - own.trim_start().len();
        if own.trim().is_empty() {
            at += 1;
            continue;
        }
        if code.is_some_and(|outer| columns > outer) {
            outline.mark_code(at);
            at += 1;
            continue;
        }
        code = None;
        let wide = |words: &str, long: usize| long >= words.chars().count().min(4);
        let blank_before = at == 0 || text(at - 1).trim().is_empty();
        let beneath =
            (columns == 0 && parse_rule_line(own).is_none()).then(|| parse_rule_line(text(at + 1))).flatten();
        let (above, beneath) = match (parse_rule_line(own), parse_rule_line(text(at + 2))) {
            (Some(above), Some(last)) if above == last && !text(at + 1).trim().is_empty() => {
                (Some(above), Some(last))
            }
            _ => (None, beneath),
        };
        let words_line = at + usize::from(above.is_some());
        let words = text(words_line).trim();
        match beneath
            .filter(|(_, long)| blank_before && wide(words, *long) && parse_rule_line(words).is_none())
        {
            Some((sign, _)) => {
                let style = (sign, above.is_some());
                let level = levels.iter().position(|known| *known == style).unwrap_or_else(|| {
                    levels.push(style);
                    levels.len() - 1
                });
                outline.add_heading(level + 1, lines, at, words_line, words);
                at = words_line + 2;
            }
            None => {
                let trimmed = own.trim_end();
                let directive =
                    own.trim_start().starts_with(".. code") || own.trim_start().starts_with(".. sourcecode");
                let literal = trimmed.ends_with("::") && !own.trim_start().starts_with(".. ");
                if directive || literal {
                    code = Some(columns);
                }
                at += 1;
            }
        }
    }
    outline
}

/// Finds `.. include:: target`, `.. image:: target` and `` `words <target>`_ ``.
pub(super) fn visit_links(line: &str, add: &mut dyn FnMut(&str)) {
    let inner = line.trim_start();
    if let Some((name, target)) = inner.strip_prefix(".. ").and_then(|rest| rest.split_once("::"))
        && matches!(name, "include" | "literalinclude" | "image" | "figure" | "highlightinclude")
    {
        add(target.trim());
    }
    for (at, _) in line.match_indices(" <") {
        let rest = line.get(at + 2..).unwrap_or_default();
        if let Some((target, "`_" | "`__")) = rest.split_once('>').map(|(target, rest)| {
            (
                target,
                rest.split_whitespace()
                    .next()
                    .unwrap_or_default()
                    .trim_end_matches(['.', ',', ')', ';', ':']),
            )
        }) {
            add(target);
        }
    }
}
