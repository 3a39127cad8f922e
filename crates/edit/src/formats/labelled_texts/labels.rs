//! Lines that say that the text below them goes, or comes in its place.

use crate::formats::paths::strip_list_number;

/// A longer line is no label.
const MAX_LABEL_BYTES: usize = 160;

/// The text that a label stands above.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LabelSide {
    Old,
    New,
    /// It ends a text.
    End,
}

/// A line above a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Label {
    pub(super) side: LabelSide,
    /// Signs make it a mark, so that its text needs no fence.
    pub(super) is_mark: bool,
    /// It asks for the change and doesn't only tell of it.
    pub(super) asks: bool,
    /// It says `replace`, and the other one has to say with what.
    replaces: bool,
    /// It says `with` or `to`, or has no word that begins a pair.
    leads: bool,
}

impl Label {
    /// Returns true if it may stand above the old text of a pair. `Replace` may, before `with`.
    pub(super) fn begins_pair(&self) -> bool {
        self.side == LabelSide::Old || self.replaces
    }

    /// Returns true if it stands above the new text of the pair that `first` begins.
    pub(super) fn continues(&self, first: &Self) -> bool {
        self.side == LabelSide::New
            && self.is_mark == first.is_mark
            && self.asks == first.asks
            && (!first.replaces || self.leads)
    }
}

/// Returns true if a text may have a label at all: a quick look.
pub(super) fn may_have_label(text: &str) -> bool {
    const WORDS: [&str; 14] = [
        "earch", "SEARCH", "ind", "FIND", "eplace", "hange", "efore", "BEFORE", "ld", "OLD", "urrent",
        "riginal", "ORIGINAL", "ocate",
    ];
    WORDS.iter().any(|word| memchr::memmem::find(text.as_bytes(), word.as_bytes()).is_some())
}

/// Reads a line as a label. Inside of a fence only marks are, and `SEARCH:` in capitals.
pub(super) fn parse_label(line: &str, fenced: bool) -> Option<Label> {
    let text = line.trim();
    if text.is_empty() || text.len() > MAX_LABEL_BYTES {
        return None;
    }
    if let Some(label) = parse_mark(text, fenced) {
        return Some(label);
    }
    if fenced { None } else { parse_words(text) }
}

/// `[SEARCH]`, `=== SEARCH ===`, `*** SEARCH`, and inside of a fence `SEARCH:`.
fn parse_mark(text: &str, fenced: bool) -> Option<Label> {
    let sign = text.chars().next()?;
    let inner = match sign {
        '[' => text.strip_prefix('[')?.strip_suffix(']')?,
        '=' | '*' => {
            let inner = text.trim_start_matches(sign);
            if text.len() - inner.len() < 3 {
                return None;
            }
            inner.trim_end_matches(sign).trim()
        }
        _ if fenced => text.strip_suffix(':')?,
        _ => return None,
    };
    let side = match inner.trim() {
        "SEARCH" | "FIND" | "OLD" | "ORIGINAL" | "BEFORE" => LabelSide::Old,
        "REPLACE" | "NEW" | "UPDATED" | "AFTER" => LabelSide::New,
        "END" | "/SEARCH" | "/FIND" | "/OLD" | "/ORIGINAL" | "/BEFORE" | "/REPLACE" | "/NEW" | "/UPDATED"
        | "/AFTER" | "END SEARCH" | "END REPLACE" | "END_SEARCH" | "END_REPLACE" => LabelSide::End,
        _ => return None,
    };
    Some(Label { side, is_mark: true, asks: true, replaces: false, leads: true })
}

/// `**Search:**`, `### Replace with`, `In a.py, replace this:`.
fn parse_words(text: &str) -> Option<Label> {
    let bare = text.trim_start_matches('#').trim_start();
    let bare = ["- ", "* ", "+ "].iter().find_map(|bullet| bare.strip_prefix(bullet)).unwrap_or(bare);
    let bare = strip_list_number(bare).unwrap_or(bare).trim();
    let plain: String = bare.chars().filter(|c| !matches!(c, '*' | '_' | '`')).collect();
    let plain = plain.trim();
    let is_heading = text.starts_with('#') || (bare.starts_with("**") && bare.ends_with("**"));
    let named = plain.strip_suffix(':');
    if named.is_none() && !is_heading {
        return None;
    }
    let named = named.unwrap_or(plain);
    // "Before (line 3)"
    let named =
        named.strip_suffix(')').and_then(|name| name.rsplit_once(" (")).map_or(named, |(name, _)| name);
    let small = named.to_ascii_lowercase();
    let words: Vec<&str> =
        small.split(|c: char| c.is_whitespace() || c == ',').filter(|word| !word.is_empty()).collect();
    let label = |side, asks, replaces, leads| Label { side, is_mark: false, asks, replaces, leads };
    if is_new_that_leads(&words) {
        return Some(label(LabelSide::New, true, false, true));
    }
    if matches!(
        words.as_slice(),
        ["replacement"] | ["replacement", "text" | "code"] | ["replace", "text" | "block"]
    ) {
        return Some(label(LabelSide::New, true, false, false));
    }
    if let Some(side) = side_that_tells(&words) {
        return Some(label(side, false, false, true));
    }
    let replaces = asks_for_pair(&words)?;
    // Alone it may be either.
    let side = if words == ["replace"] { LabelSide::New } else { LabelSide::Old };
    Some(label(side, true, replaces, false))
}

/// Returns true for words such as `with this`, `and replace it with the following code`, `to`.
fn is_new_that_leads(words: &[&str]) -> bool {
    const LEADING: [&str; 4] = ["with", "to", "by", "into"];
    const OTHERS: [&str; 21] = [
        "and",
        "then",
        "replace",
        "change",
        "it",
        "them",
        "this",
        "that",
        "these",
        "the",
        "following",
        "new",
        "updated",
        "code",
        "line",
        "lines",
        "block",
        "text",
        "version",
        "look",
        "like",
    ];
    let known = |word: &&str| LEADING.contains(word) || OTHERS.contains(word);
    words.iter().any(|word| LEADING.contains(word)) && words.iter().all(known)
}

/// The side of words that tell of a change: `Before`, `Old code`, `Updated version`.
fn side_that_tells(words: &[&str]) -> Option<LabelSide> {
    const OLD: [&str; 5] = ["before", "old", "current", "original", "existing"];
    const NEW: [&str; 9] =
        ["after", "new", "updated", "modified", "changed", "fixed", "proposed", "revised", "corrected"];
    const OTHERS: [&str; 12] = [
        "code",
        "version",
        "text",
        "content",
        "line",
        "lines",
        "block",
        "snippet",
        "implementation",
        "function",
        "method",
        "change",
    ];
    let (first, rest) = words.strip_prefix(&["the"]).unwrap_or(words).split_first()?;
    let side = if OLD.contains(first) { LabelSide::Old } else { LabelSide::New };
    ((OLD.contains(first) || NEW.contains(first)) && rest.iter().all(|word| OTHERS.contains(word)))
        .then_some(side)
}

/// Returns true if the line that asks for a text to be taken away says `replace` or `change`, and
/// false if it says `find`.
fn asks_for_pair(words: &[&str]) -> Option<bool> {
    const OTHERS: [&str; 15] = [
        "this",
        "these",
        "that",
        "the",
        "following",
        "code",
        "line",
        "lines",
        "block",
        "text",
        "for",
        "section",
        "snippet",
        "part",
        "string",
    ];
    let verb = words
        .iter()
        .rposition(|word| matches!(*word, "replace" | "change" | "find" | "search" | "locate"))?;
    let rest = words.get(verb + 1..)?;
    rest.iter()
        .all(|word| OTHERS.contains(word))
        .then(|| matches!(words.get(verb), Some(&("replace" | "change"))))
}
