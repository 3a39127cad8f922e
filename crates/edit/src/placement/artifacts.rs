//! Undoing what a search text picked up on its way: line numbers, a fence, diff prefixes, one layer
//! of escapes.
//!
//! Each is undone in search and replacement alike, and only where every sign says that it is there.
//! What is left must then be in the file by one of the stricter steps.

use crate::outcome::{PlacedEdit, Refusal, Strategy};
use crate::placement::hunk::Hunk;
use crate::placement::indexed_text::Haystack;
use crate::placement::{exact, explain, line_numbers, normalized_matching, resolve};

/// Search and replacement without something.
struct CleanedHunk {
    strategy: Strategy,
    search: String,
    replace: String,
    near: Option<u32>,
    what: &'static str,
}

/// The first reading without something that finds a place.
pub(super) fn find_cleaned(haystack: &Haystack<'_>, hunk: &Hunk<'_>) -> Option<Result<PlacedEdit, Refusal>> {
    let unfenced = strip_fences(hunk.search, hunk.replace);
    let inner = unfenced
        .as_ref()
        .map_or((hunk.search, hunk.replace), |undone| (undone.search.as_str(), undone.replace.as_str()));
    let more = [strip_line_numbers(inner.0, inner.1), strip_diff_prefixes(inner.0, inner.1)];
    let escapes = strip_escape_layers(inner.0, inner.1);
    unfenced.iter().chain(more.iter().flatten()).chain(&escapes).find_map(|undone| {
        if undone.search.trim().is_empty() {
            return None;
        }
        let near = hunk.near.or(undone.near);
        let plain = Hunk { search: &undone.search, replace: &undone.replace, near, ..*hunk };
        let matches = exact::locate_exactly(haystack.text, &plain)
            .or_else(|| normalized_matching::locate_normalized(haystack, &plain))?;
        if undone.search == undone.replace {
            return Some(Err(Refusal::NoChange));
        }
        Some(resolve::resolve_matches(haystack.text, &matches).map(|placed| {
            let note = match undone.strategy {
                Strategy::LineNumbers => {
                    explain::note_removed_numbers(placed.strategy, placed.note.as_deref())
                }
                _ => match placed.note.as_deref().filter(|_| placed.strategy != Strategy::Exact) {
                    Some(note) => format!("{}; {note}", undone.what),
                    None => undone.what.to_owned(),
                },
            };
            PlacedEdit { strategy: undone.strategy, note: Some(note), ..placed }
        }))
    })
}

/// Without the numbers of a listing.
fn strip_line_numbers(search: &str, replace: &str) -> Option<CleanedHunk> {
    let (search, first) = line_numbers::strip_search_text(search)?;
    let replace = match line_numbers::strip_replacement(replace) {
        Some(stripped) => stripped,
        None if line_numbers::is_partly_numbered(replace) => return None,
        None => replace.to_owned(),
    };
    Some(CleanedHunk {
        strategy: Strategy::LineNumbers,
        search,
        replace,
        near: Some(first),
        what: "line numbers removed",
    })
}

/// Without the fence of a markdown listing around the text.
fn strip_fences(search: &str, replace: &str) -> Option<CleanedHunk> {
    // A line break after the fence ends the last line within it.
    let whole = |text: &str| {
        let inner = fence_content(text)?;
        Some(if text.ends_with('\n') { format!("{inner}\n") } else { inner.to_owned() })
    };
    let search = whole(search)?;
    let replace = whole(replace).unwrap_or_else(|| replace.to_owned());
    let what = "a markdown fence was removed from the search text";
    Some(CleanedHunk { strategy: Strategy::Prefixes, search, replace, near: None, what })
}

/// Returns the content of the fence that encloses a whole text.
fn fence_content(text: &str) -> Option<&str> {
    let body = text.trim_matches(['\r', '\n']);
    let (opening, rest) = body.split_once('\n')?;
    let (inner, closing) = rest.rsplit_once('\n').unwrap_or(("", rest));
    let ticks = |line: &str| line.trim().len() - line.trim().trim_start_matches('`').len();
    let (open, close) = (ticks(opening), ticks(closing));
    let is_name = opening.trim().get(open..)?.chars().all(|c| c.is_alphanumeric() || "-_+#.".contains(c));
    (open >= 3 && open == close && is_name && closing.trim().len() == close && !inner.is_empty())
        .then(|| inner.strip_suffix('\r').unwrap_or(inner))
}

/// Without the prefixes of a diff: `-` and blank before the search text's lines, `+` and blank
/// before the replacement's.
fn strip_diff_prefixes(search: &str, replace: &str) -> Option<CleanedHunk> {
    let strip = |text: &str, sign: char| -> Option<String> {
        let mut signs = 0;
        let lines: Vec<&str> = text
            .split('\n')
            .map(|line| match line.strip_prefix(sign) {
                Some(rest) => {
                    signs += 1;
                    Some(rest)
                }
                None if line.trim().is_empty() => Some(line),
                None => line.strip_prefix(' '),
            })
            .collect::<Option<_>>()?;
        (signs > 0).then(|| lines.join("\n"))
    };
    let stripped = strip(search, '-')?;
    let replace = if replace.trim().is_empty() { replace.to_owned() } else { strip(replace, '+')? };
    let what = "diff prefixes were removed from search and replacement; don't send them";
    Some(CleanedHunk { strategy: Strategy::Prefixes, search: stripped, replace, near: None, what })
}

/// A kind of superfluous escaping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Escaping {
    /// As a string of JSON: line breaks, tabs, quotes and backslashes.
    Json,
    /// Quotes only.
    Quotes,
    /// Every backslash doubled.
    Doubled,
    /// HTML's entities.
    Entities,
    /// Line breaks and tabs only: the text is one line.
    Breaks,
}

/// One layer of escapes undone, for each kind of which every sign is there.
fn strip_escape_layers(search: &str, replace: &str) -> Vec<CleanedHunk> {
    let kinds = [Escaping::Json, Escaping::Quotes, Escaping::Doubled, Escaping::Entities, Escaping::Breaks];
    let undone = kinds.into_iter().filter_map(|kind| {
        let search = match kind.strip_escapes(search, QUOTES) {
            UnescapeOutcome::Escaped(text) => text,
            UnescapeOutcome::Plain | UnescapeOutcome::Mixed => return None,
        };
        let replace = match kind.strip_escapes(replace, &escapable_quotes(&search)) {
            UnescapeOutcome::Escaped(text) => text,
            UnescapeOutcome::Plain => replace.to_owned(),
            UnescapeOutcome::Mixed => return None,
        };
        let what = "one layer of escapes was removed from search and replacement; send the text as it is in the file";
        Some(CleanedHunk { strategy: Strategy::Escapes, search, replace, near: None, what })
    });
    undone.collect()
}

/// Returns the line without one layer of escapes, for each possible kind.
pub(super) fn unescaped_readings(line: &str) -> Vec<String> {
    let kinds = [Escaping::Json, Escaping::Quotes, Escaping::Doubled, Escaping::Entities];
    let read = kinds.into_iter().filter_map(|kind| match kind.strip_escapes(line, QUOTES) {
        UnescapeOutcome::Escaped(text) => Some(text),
        UnescapeOutcome::Plain | UnescapeOutcome::Mixed => None,
    });
    read.collect()
}

/// Returns the quotes that a text has: only these can have been escaped with it.
fn escapable_quotes(text: &str) -> String {
    QUOTES.chars().filter(|quote| text.contains(*quote)).collect()
}

/// Characters that some language escapes as quotes.
const QUOTES: &str = "\"'`$";

/// The state of an escaping in a text.
enum UnescapeOutcome {
    /// Nothing of it is there.
    Plain,
    /// It is escaped; this is what it says.
    Escaped(String),
    /// Some of it is escaped, and some isn't: nothing can be told.
    Mixed,
}

impl Escaping {
    /// A text without this escaping. `quotes` are those that may be escaped.
    fn strip_escapes(self, text: &str, quotes: &str) -> UnescapeOutcome {
        match self {
            Self::Json => unescape_json(text),
            Self::Quotes => unescape_quotes(text, quotes),
            Self::Doubled => halve_backslashes(text),
            Self::Entities => decode_entities(text),
            Self::Breaks => unescape_breaks(text),
        }
    }
}

/// A text read as the inside of a JSON string.
fn unescape_json(text: &str) -> UnescapeOutcome {
    if !text.contains('\\') {
        return UnescapeOutcome::Plain;
    }
    let mut out = String::with_capacity(text.len());
    let mut characters = text.chars();
    let (mut breaks, mut bare_quote) = (false, false);
    while let Some(character) = characters.next() {
        if character != '\\' {
            bare_quote |= character == '"';
            out.push(character);
            continue;
        }
        out.push(match characters.next() {
            Some('n') => {
                breaks = true;
                '\n'
            }
            Some('t') => '\t',
            Some('r') => '\r',
            Some(own @ ('"' | '\'' | '`' | '\\' | '/' | '$')) => own,
            _ => return UnescapeOutcome::Mixed,
        });
    }
    if bare_quote || (breaks && text.contains('\n')) {
        UnescapeOutcome::Mixed
    } else {
        UnescapeOutcome::Escaped(out)
    }
}

/// A text of one line without a backslash but in `\n`, `\t` and `\r`, with these read.
fn unescape_breaks(text: &str) -> UnescapeOutcome {
    if text.contains('\n') || !text.contains('\\') {
        return UnescapeOutcome::Plain;
    }
    let read = text.replace("\\n", "\n").replace("\\t", "\t").replace("\\r", "\r");
    match read.contains('\\') {
        true => UnescapeOutcome::Mixed,
        false if read.contains('\n') => UnescapeOutcome::Escaped(read),
        // A tab alone is an everyday escape of code.
        false => UnescapeOutcome::Plain,
    }
}

/// A text whose quotes each have a backslash before them, without those.
fn unescape_quotes(text: &str, quotes: &str) -> UnescapeOutcome {
    let mut out = String::with_capacity(text.len());
    let mut seen = [(0_usize, 0_usize); 4];
    let mut backslashes = 0;
    for character in text.chars() {
        if let Some(slot) =
            QUOTES.find(character).filter(|_| quotes.contains(character)).and_then(|at| seen.get_mut(at))
        {
            if backslashes % 2 == 1 {
                slot.0 += 1;
                out.pop();
            } else {
                slot.1 += 1;
            }
        }
        backslashes = if character == '\\' { backslashes + 1 } else { 0 };
        out.push(character);
    }
    // A dollar sign without a backslash is an everyday thing.
    let mixed = seen.iter().take(3).any(|(escaped, bare)| *escaped > 0 && *bare > 0);
    match seen.iter().any(|(escaped, _)| *escaped > 0) {
        _ if mixed => UnescapeOutcome::Mixed,
        true => UnescapeOutcome::Escaped(out),
        false => UnescapeOutcome::Plain,
    }
}

/// A text whose backslashes all come in pairs, with one for each two.
fn halve_backslashes(text: &str) -> UnescapeOutcome {
    if !text.contains('\\') {
        return UnescapeOutcome::Plain;
    }
    let single = text.replace("\\\\", "");
    if single.contains('\\') {
        UnescapeOutcome::Mixed
    } else {
        UnescapeOutcome::Escaped(text.replace("\\\\", "\\"))
    }
}

/// The entities that models write for what they stand for.
const HTML_ENTITIES: [(&str, &str); 9] = [
    ("&lt;", "<"),
    ("&gt;", ">"),
    ("&amp;", "&"),
    ("&quot;", "\""),
    ("&#34;", "\""),
    ("&#39;", "'"),
    ("&#x27;", "'"),
    ("&apos;", "'"),
    ("&nbsp;", " "),
];

/// A text with HTML's entities, read.
fn decode_entities(text: &str) -> UnescapeOutcome {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut read = 0;
    while let Some(at) = rest.find('&') {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let entity = HTML_ENTITIES.iter().find(|(entity, _)| from.starts_with(entity));
        let Some((entity, own)) = entity else {
            return if HTML_ENTITIES.iter().any(|(entity, _)| text.contains(entity)) {
                UnescapeOutcome::Mixed
            } else {
                UnescapeOutcome::Plain
            };
        };
        out.push_str(own);
        rest = from.get(entity.len()..).unwrap_or_default();
        read += 1;
    }
    out.push_str(rest);
    match read {
        0 => UnescapeOutcome::Plain,
        _ if text.contains(['<', '>']) && (text.contains("&lt;") || text.contains("&gt;")) => {
            UnescapeOutcome::Mixed
        }
        _ => UnescapeOutcome::Escaped(out),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(kind: Escaping, text: &str) -> Option<String> {
        match kind.strip_escapes(text, QUOTES) {
            UnescapeOutcome::Escaped(text) => Some(text),
            UnescapeOutcome::Plain | UnescapeOutcome::Mixed => None,
        }
    }

    #[test]
    fn escapes_are_undone_only_where_all_signs_are_there() {
        use Escaping::*;
        let cases: &[(Escaping, &str, Option<&str>)] = &[
            (Json, r#"a\n\tb(\"c\")"#, Some("a\n\tb(\"c\")")),
            (Json, r#"say("a\n")"#, None),
            (Json, r"re(\d+)", None),
            (Json, "a\\nb\nc", None),
            (Quotes, r#"say(\"a\n\")"#, Some(r#"say("a\n")"#)),
            (Quotes, r#"say(\"a", 1)"#, None),
            (Quotes, r"`a ${b}` \` \`", None),
            (Quotes, r"\`a\`", Some("`a`")),
            (Doubled, r#"say("a\\n")"#, Some(r#"say("a\n")"#)),
            (Doubled, r#"say("a\\n\t")"#, None),
            (Entities, "if (a &lt; b &amp;&amp; c)", Some("if (a < b && c)")),
            (Entities, "a &lt; b > c", None),
            (Entities, "a & b &lt; c", None),
            (Entities, "a", None),
            (Breaks, r#"a = "b";\n\tc"#, Some("a = \"b\";\n\tc")),
            (Breaks, r#"say("a\tb")"#, None),
            (Breaks, r#"re("\d\n")"#, None),
            (Breaks, "a\\nb\nc", None),
        ];
        for (kind, text, expected) in cases {
            assert_eq!(read(*kind, text).as_deref(), *expected, "{kind:?} {text}");
        }
    }

    #[test]
    fn fences_and_prefixes() {
        assert_eq!(fence_content("```rust\na\nb\n```\n"), Some("a\nb"));
        assert_eq!(fence_content("```\na\n````"), None);
        assert_eq!(fence_content("a\n```\n"), None);
        let undone = strip_diff_prefixes("-a\n b\n", "+c\n b\n").unwrap();
        assert_eq!((undone.search.as_str(), undone.replace.as_str()), ("a\nb\n", "c\nb\n"));
        assert!(strip_diff_prefixes("- a\n", "- b\n").is_none(), "a list");
    }
}
