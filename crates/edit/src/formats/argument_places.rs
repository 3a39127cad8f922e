//! The place in a file that an edit tool's arguments name beside a text: its line, or which of its
//! occurrences is meant.

use serde_json::{Map, Value};

use crate::formats::argument_keys::key_words;
use crate::lines::line_at;

/// Words of keys for a line.
const LINE_WORDS: [&str; 9] =
    ["line", "lines", "lineno", "linenum", "linenumber", "linehint", "startline", "startlinenumber", "range"];
/// The only other words of a key for the line at which a text begins.
const FIRST_LINE_WORDS: [&str; 25] = [
    "number",
    "no",
    "num",
    "start",
    "starts",
    "starting",
    "begin",
    "begins",
    "beginning",
    "first",
    "from",
    "at",
    "near",
    "approx",
    "approximate",
    "approximately",
    "around",
    "hint",
    "original",
    "old",
    "current",
    "search",
    "match",
    "target",
    "the",
];
/// Words of keys for the line at which a text ends.
const END_WORDS: [&str; 6] = ["end", "ends", "ending", "last", "until", "through"];
/// Words of keys for which of several equal texts is meant, and their only other words. An index
/// may begin at 0 or at 1.
const OCCURRENCE_WORDS: [&str; 4] = ["occurrence", "instance", "match", "nth"];
const NUMBER_WORDS: [&str; 11] =
    ["number", "no", "num", "n", "nth", "which", "to", "of", "replace", "target", "the"];
/// Words for which of several is meant.
const ORDINALS: [&str; 5] = ["first", "second", "third", "fourth", "fifth"];

/// Returns the line at which the searched text is said to begin, beside the `hint` of another key;
/// `None` where that isn't said, or where two keys say something different. `all` places may be
/// asked for.
///
/// # Errors
/// A message where the text isn't in the file as often as it would have to be.
pub(super) fn find_stated_line(
    object: &Map<String, Value>,
    file: &str,
    searched: &str,
    (hint, all): (Option<u32>, bool),
) -> Result<Option<u32>, String> {
    let named = object.iter().filter(|(key, _)| names_first_line(key));
    let mut lines: Vec<u32> =
        hint.into_iter().chain(named.filter_map(|(_, value)| read_first_line(value))).collect();
    for (key, which) in object.iter().filter_map(|(key, value)| Some((key, read_occurrence(key, value)?))) {
        if all {
            return Err(format!(
                "it asks for all places, and for one of them by \"{key}\": give one of the two"
            ));
        }
        // Line endings are shown to nobody.
        let [file, searched] = [file, searched].map(|text| text.replace("\r\n", "\n"));
        let found: Vec<usize> = memchr::memmem::find_iter(file.as_bytes(), searched.as_bytes()).collect();
        let index = match which {
            Which::Nth(number) => usize::try_from(number).unwrap_or(usize::MAX).saturating_sub(1),
            Which::Last => found.len().saturating_sub(1),
        };
        match found.get(index) {
            Some(at) => lines.push(line_at(&file, *at)),
            None if found.is_empty() => {}
            None => {
                let count = found.len();
                return Err(format!(
                    "by \"{key}\" it means place {} of the text, which is there {count} times",
                    index + 1
                ));
            }
        }
    }
    Ok(lines.first().copied().filter(|first| lines.iter().all(|line| line == first)))
}

/// Returns true if a key says at which line a text ends.
pub(super) fn names_end(object: &Map<String, Value>) -> bool {
    let is_given = |value: &Value| !value.is_null();
    object.iter().filter(|(_, value)| is_given(value)).any(|(key, value)| {
        let words = key_words(key);
        let has = |wanted: &[&str]| words.iter().any(|word| wanted.contains(&word.as_str()));
        let is_range = has(&LINE_WORDS) && (value.is_array() || value.is_object());
        is_range || (has(&LINE_WORDS) && has(&END_WORDS)) || has(&["endline"])
    })
}

fn names_first_line(key: &str) -> bool {
    let words = key_words(key);
    let is_line = |word: &&String| LINE_WORDS.contains(&word.as_str());
    let is_known = |word: &String| is_line(&word) || FIRST_LINE_WORDS.contains(&word.as_str());
    words.iter().any(|word| is_line(&word)) && words.iter().all(is_known)
}

/// The 1-based line that a value gives: a number, `"L4"`, `"4-6"`, `[4, 6]`, `{"start": 4}`.
/// Positions of the language server protocol, which count from 0, give none.
fn read_first_line(value: &Value) -> Option<u32> {
    let line = match value {
        Value::Number(number) => u32::try_from(number.as_u64()?).ok()?,
        Value::String(text) => {
            let text = text.trim().trim_start_matches(['L', 'l']);
            let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
            let rest = text.get(end..)?.trim_start();
            let is_range = rest.is_empty() || rest.starts_with(['-', ':', ',', '.', '\u{2013}']);
            text.get(..end).filter(|_| is_range)?.parse().ok()?
        }
        Value::Array(ends) if ends.len() <= 2 => {
            ends.first().filter(|first| first.is_number())?.as_u64()?.try_into().ok()?
        }
        Value::Object(range) => {
            let start = ["start", "start_line", "startLine", "from", "line"]
                .iter()
                .find_map(|key| range.get(*key))?;
            u32::try_from(start.as_u64()?).ok()?
        }
        _ => return None,
    };
    Some(line).filter(|&line| line > 0)
}

/// One of several equal texts.
enum Which {
    /// The nth, from 1 on.
    Nth(u64),
    Last,
}

fn read_occurrence(key: &str, value: &Value) -> Option<Which> {
    let words = key_words(key);
    let is_named = words.iter().any(|word| OCCURRENCE_WORDS.contains(&word.as_str()));
    let is_known =
        |word: &String| OCCURRENCE_WORDS.contains(&word.as_str()) || NUMBER_WORDS.contains(&word.as_str());
    if !is_named || !words.iter().all(is_known) {
        return None;
    }
    let number = match value {
        Value::Number(number) => number.as_u64()?,
        // A match may be the text that is looked for.
        Value::String(text) if !words.iter().any(|word| word == "match") => {
            let text = text.trim().to_ascii_lowercase();
            if text == "last" {
                return Some(Which::Last);
            }
            let ordinal = (1..).zip(ORDINALS).find(|(_, word)| *word == text).map(|(number, _)| number);
            let digits =
                ["st", "nd", "rd", "th"].iter().find_map(|end| text.strip_suffix(end)).unwrap_or(&text);
            ordinal.or_else(|| digits.parse().ok())?
        }
        _ => return None,
    };
    (number > 0).then_some(Which::Nth(number))
}
