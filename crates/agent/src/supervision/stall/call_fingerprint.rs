//! Hashes of a call and its result, by which the stall detector compares steps.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher as _};

use journeyman_protocol::{CheckOutcome, Evidence, ResultPart, SessionId, ToolUse};
use serde_json::Value;

/// Units of durations.
const DURATION_UNITS: [&str; 14] = [
    "ns", "us", "µs", "ms", "s", "sec", "secs", "second", "seconds", "min", "mins", "minute", "minutes",
    "hours",
];
/// Placeholder for a time or a duration.
const TIME_PLACEHOLDER: &str = "⏱";
/// Placeholder for the id of a session, since each agent that is started has a new id.
const SESSION_PLACEHOLDER: &str = "§";

/// A call and its result as the stall detector compares them: hashes, about 80 bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallFingerprint {
    /// The tool's name, for messages.
    pub(super) tool: String,
    /// Hash of the tool's name and the arguments.
    pub(super) call: u64,
    /// Hash of the whole result, without times.
    pub(super) whole: u64,
    /// Hash of the result's words that don't occur in the arguments.
    pub(super) said: u64,
    /// Hash of the same words, with all numbers alike.
    pub(super) shape: u64,
    pub(super) is_error: bool,
    pub(super) read_only: bool,
    pub(super) changed: bool,
    pub(super) waiting: bool,
}

impl CallFingerprint {
    /// Creates the fact from a call and the result that the model got. `read_only` is the tool's
    /// own declaration.
    #[must_use]
    pub fn new(call: &ToolUse, result: &[ResultPart], is_error: bool, read_only: bool) -> Self {
        let mut key = DefaultHasher::new();
        call.name.hash(&mut key);
        let mut known = HashSet::new();
        hash_value(&call.input, &mut key, &mut known);
        let (mut whole, mut said, mut shape) =
            (DefaultHasher::new(), DefaultHasher::new(), DefaultHasher::new());
        is_error.hash(&mut whole);
        for part in result {
            match part {
                ResultPart::Text { text } => {
                    for piece in split_with_placeholders(text) {
                        piece.hash(&mut whole);
                        for word in split_words(piece).filter(|word| !known.contains(*word)) {
                            word.hash(&mut said);
                            hash_word_shape(word, &mut shape);
                        }
                    }
                }
                ResultPart::Image(image) => {
                    for hasher in [&mut whole, &mut said, &mut shape] {
                        image.data.hash(hasher);
                    }
                }
            }
        }
        Self {
            tool: call.name.clone(),
            call: key.finish(),
            whole: whole.finish(),
            said: said.finish(),
            shape: shape.finish(),
            is_error,
            read_only,
            changed: false,
            waiting: false,
        }
    }

    /// Marks the call as one that changed files. The step's changes name the files.
    #[must_use]
    pub fn mark_changing(mut self) -> Self {
        self.changed = true;
        self
    }

    /// Marks the call as waiting for a background command that still runs. For a while, such
    /// silence is part of normal work.
    #[must_use]
    pub fn mark_waiting(mut self) -> Self {
        self.waiting = true;
        self
    }
}

/// Returns a key for the results of checks, independent of output and duration: two rounds with the
/// same commands, outcomes and diagnostics have the same key.
#[must_use]
pub fn hash_checks(evidence: &[Evidence]) -> u64 {
    let mut key = DefaultHasher::new();
    for check in evidence {
        (check.kind, &check.command, &check.directory).hash(&mut key);
        match &check.outcome {
            CheckOutcome::Passed => 0_u8.hash(&mut key),
            CheckOutcome::Failed { exit_code, .. } => (1_u8, exit_code).hash(&mut key),
            CheckOutcome::NotRun { reason } => (2_u8, reason).hash(&mut key),
        }
        for found in &check.diagnostics {
            (&found.path, found.line, found.severity as u8, &found.code, &found.test, &found.message)
                .hash(&mut key);
        }
    }
    key.finish()
}

/// Hashes two values into one hash.
pub(super) fn hash_pair(one: impl Hash, other: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    (one, other).hash(&mut hasher);
    hasher.finish()
}

/// Hashes arguments independently of the order of field names and the width of white space, and
/// collects their words.
fn hash_value<'v>(value: &'v Value, key: &mut DefaultHasher, known: &mut HashSet<&'v str>) {
    match value {
        Value::Null => 0_u8.hash(key),
        Value::Bool(value) => value.hash(key),
        Value::Number(number) => number.to_string().hash(key),
        Value::String(text) => {
            1_u8.hash(key);
            text.split_whitespace().for_each(|piece| piece.hash(key));
            known.extend(split_words(text));
        }
        Value::Array(items) => {
            (2_u8, items.len()).hash(key);
            items.iter().for_each(|item| hash_value(item, key, known));
        }
        Value::Object(fields) => {
            (3_u8, fields.len()).hash(key);
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by_key(|(name, _)| *name);
            for (name, value) in fields {
                name.hash(key);
                hash_value(value, key, known);
            }
        }
    }
}

/// Returns the runs of letters and digits.
pub(super) fn split_words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|character: char| !character.is_alphanumeric()).filter(|word| !word.is_empty())
}

/// Returns the words of a text without its times and the ids of sessions.
pub(super) fn split_stable_words(text: &str) -> impl Iterator<Item = &str> {
    split_with_placeholders(text).flat_map(split_words)
}

/// Splits the text at white space, with a placeholder for every time, duration and id of a session.
fn split_with_placeholders(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text.split_whitespace().peekable();
    std::iter::from_fn(move || {
        let piece = rest.next()?;
        let bare = piece.trim_matches(|character: char| !character.is_alphanumeric());
        if is_number(bare) && rest.peek().is_some_and(|next| is_duration_unit(next)) {
            rest.next();
            return Some(TIME_PLACEHOLDER);
        }
        Some(match bare {
            time if is_time_or_duration(time) => TIME_PLACEHOLDER,
            id if id.parse::<SessionId>().is_ok() => SESSION_PLACEHOLDER,
            _ => piece,
        })
    })
}

fn is_duration_unit(piece: &str) -> bool {
    DURATION_UNITS.contains(&piece.trim_end_matches(|character: char| !character.is_alphanumeric()))
}

fn is_number(piece: &str) -> bool {
    piece.starts_with(|character: char| character.is_ascii_digit())
        && piece.chars().all(|character| character.is_ascii_digit() || character == '.' || character == ',')
}

/// Returns true for `0.53s`, `1m3s`, `12:30:05.1`, `2026-03-01`, `2026-03-01T12:30:05Z`. `12:30` is
/// no time but a line and column in a file.
fn is_time_or_duration(piece: &str) -> bool {
    let digits = piece.chars().filter(char::is_ascii_digit).count();
    if digits == 0 || !piece.starts_with(|character: char| character.is_ascii_digit()) {
        return false;
    }
    is_duration(piece) || is_time(piece) || is_date(piece)
}

fn is_duration(piece: &str) -> bool {
    let mut rest = piece;
    while !rest.is_empty() {
        let number =
            rest.trim_start_matches(|character: char| character.is_ascii_digit() || character == '.');
        if number.len() == rest.len() {
            return false;
        }
        let after = number.trim_start_matches(char::is_alphabetic);
        let unit = number.get(..number.len() - after.len()).unwrap_or_default();
        if !(DURATION_UNITS.contains(&unit) || unit == "m" || unit == "h") {
            return false;
        }
        rest = after;
    }
    true
}

fn is_time(piece: &str) -> bool {
    let mut parts = piece.split(':');
    let all = piece.chars().all(|character| character.is_ascii_digit() || ":.,".contains(character));
    all && parts.clone().count() == 3 && parts.all(|part| (1..=12).contains(&part.len()))
}

fn is_date(piece: &str) -> bool {
    let shape: String = piece
        .chars()
        .take(10)
        .map(|character| if character.is_ascii_digit() { '0' } else { character })
        .collect();
    shape == "0000-00-00"
}

/// Hashes a word with every run of digits as one digit.
fn hash_word_shape(word: &str, hasher: &mut DefaultHasher) {
    let mut in_number = false;
    for character in word.chars() {
        let digit = character.is_numeric();
        if !(digit && in_number) {
            (if digit { '0' } else { character }).hash(hasher);
        }
        in_number = digit;
    }
    ' '.hash(hasher);
}
