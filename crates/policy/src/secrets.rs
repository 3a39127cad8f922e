//! Detection of secrets in texts: configured values, well-known token shapes, passwords in URLs,
//! and values after names that mark them as secret.
//!
//! [`Redactor::redact`] replaces secrets by [`SECRET_MASK`]. It works on whole texts: a secret that
//! is split over two chunks of a stream is found in neither, so a stream has to be joined first.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;
use std::sync::OnceLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use serde_json::Value;

mod names;
mod placeholders;
mod settings;
mod shapes;
mod url_passwords;

pub use names::is_secret_name;
pub use placeholders::SECRET_MASK;
pub use settings::{is_settings_file, mask_settings, secret_settings, unmasked_files};
use shapes::{SECRET_SHAPES, ScannedText};

/// Minimum length of a configured value: shorter values such as `true` or `8080` would be found
/// everywhere.
pub const MIN_CONFIGURED_CHARACTERS: usize = 8;

/// Minimum length of a line of a configured value that is searched by itself: programs print keys
/// line by line.
const MIN_LINE_CHARACTERS: usize = 16;

/// Minimum length of the beginning of a configured value that is kept out of a text.
const MIN_BEGINNING_BYTES: usize = 4;

/// Finds secrets and replaces them. Creating a redactor is cheap: its search automaton is built at
/// the first text.
pub struct Redactor {
    /// The configured values, none of which contains another.
    values: Vec<String>,
    /// The searcher; `None` if it could not be built.
    searcher: OnceLock<Option<AhoCorasick>>,
    /// A searcher that is ten times as fast and larger, which only tells whether there is a match:
    /// for whole trees of files.
    quick: OnceLock<Option<AhoCorasick>>,
}

impl fmt::Debug for Redactor {
    /// Does not show the values.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redactor").field("values", &self.values.len()).finish_non_exhaustive()
    }
}

impl Default for Redactor {
    fn default() -> Self {
        Self::new([])
    }
}

impl Redactor {
    /// Creates a redactor for these values, trimmed, and for well-known token shapes. Values of
    /// less than [`MIN_CONFIGURED_CHARACTERS`] characters are ignored.
    #[must_use]
    pub fn new(configured: impl IntoIterator<Item = String>) -> Self {
        let mut values = BTreeSet::new();
        for value in configured {
            let value = value.trim();
            let lines = value.lines().map(str::trim).filter(|line| {
                // The first and last line of a key are the same for every key.
                line.len() < value.len()
                    && !line.starts_with("-----")
                    && has_min_characters(line, MIN_LINE_CHARACTERS)
            });
            values.extend(
                lines
                    .chain([value])
                    .filter(|value| has_min_characters(value, MIN_CONFIGURED_CHARACTERS))
                    .map(str::to_owned),
            );
        }
        // Parts of the mask itself can't be masked.
        values.retain(|value| !SECRET_MASK.contains(value.as_str()));
        Self { values: values.into_iter().collect(), searcher: OnceLock::new(), quick: OnceLock::new() }
    }

    /// Replaces every secret in the text by [`SECRET_MASK`]; returns the text unchanged if there is
    /// none.
    ///
    /// Takes linear time. In an `Authorization` header, only the credentials are replaced.
    #[must_use]
    pub fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let Some(searcher) = self.searcher() else {
            // The searcher could not be built with so many patterns: the whole text is masked.
            return if text.is_empty() { Cow::Borrowed(text) } else { Cow::Borrowed(SECRET_MASK) };
        };
        let mut secrets = self.search_secrets(searcher, text);
        if secrets.is_empty() {
            return Cow::Borrowed(text);
        }
        secrets.sort_unstable_by_key(|secret| (secret.start, secret.end));
        let mut redacted = String::with_capacity(text.len());
        let mut done = 0;
        for secret in secrets {
            if secret.start >= done {
                redacted.push_str(text.get(done..secret.start).unwrap_or_default());
                redacted.push_str(SECRET_MASK);
            }
            done = done.max(secret.end);
        }
        redacted.push_str(text.get(done..).unwrap_or_default());
        Cow::Owned(redacted)
    }

    /// Returns the number of bytes at the end of a text that may be the beginning of a configured
    /// value, to be left out of a text that was cut off. Fewer than 4 bytes reveal nothing and
    /// don't count.
    #[must_use]
    pub fn unfinished_bytes(&self, text: &str) -> usize {
        let beginnings = |value: &str| {
            let ends = (MIN_BEGINNING_BYTES..value.len()).rev();
            ends.into_iter().find(|end| value.get(..*end).is_some_and(|beginning| text.ends_with(beginning)))
        };
        self.values.iter().filter_map(|value| beginnings(value)).max().unwrap_or(0)
    }

    /// Returns the positions of the secrets in a text, in order and without overlaps, for searching
    /// many texts most of which have none.
    #[must_use]
    pub fn find_secrets(&self, text: &str) -> Vec<Range<usize>> {
        let quick =
            self.quick.get_or_init(|| self.build_searcher(MatchKind::LeftmostFirst, AhoCorasickKind::DFA));
        let nothing = quick.as_ref().is_some_and(|quick| !quick.is_match(text));
        let Some(searcher) = self.searcher() else {
            // The searcher could not be built with so many patterns: the whole text is masked.
            return std::iter::once(0..text.len()).collect();
        };
        let mut secrets = match nothing {
            true => find_by_surroundings(text),
            false => self.search_secrets(searcher, text),
        };
        secrets.sort_unstable_by_key(|secret| (secret.start, secret.end));
        let mut places: Vec<Range<usize>> = Vec::with_capacity(secrets.len());
        for secret in secrets {
            match places.last_mut() {
                Some(last) if secret.start < last.end => last.end = last.end.max(secret.end),
                _ => places.push(secret),
            }
        }
        places
    }

    /// Replaces every secret in the strings of a JSON value, including the keys of its objects.
    pub fn redact_json(&self, value: &mut Value) {
        // Not recursive, because the sender chooses the depth of the value.
        let mut left = vec![value];
        while let Some(value) = left.pop() {
            match value {
                Value::String(text) => {
                    if let Cow::Owned(redacted) = self.redact(text) {
                        *text = redacted;
                    }
                }
                Value::Array(values) => left.extend(values),
                Value::Object(fields) => {
                    if fields.keys().any(|key| matches!(self.redact(key), Cow::Owned(_))) {
                        let old = std::mem::take(fields);
                        fields.extend(
                            old.into_iter().map(|(key, value)| (self.redact(&key).into_owned(), value)),
                        );
                    }
                    left.extend(fields.values_mut());
                }
                Value::Number(number) => {
                    /// Numbers with eight digits: shorter values are not searched.
                    const MIN_SEARCHED_NUMBER: u64 = 10_000_000;
                    let long = number.as_u64().is_some_and(|number| number >= MIN_SEARCHED_NUMBER);
                    if long && matches!(self.redact(&number.to_string()), Cow::Owned(_)) {
                        *value = Value::String(SECRET_MASK.to_owned());
                    }
                }
                Value::Null | Value::Bool(_) => {}
            }
        }
    }

    /// Returns the automaton, built at the first call. An NFA needs a tenth of a deterministic
    /// automaton's memory, and is built in microseconds.
    fn searcher(&self) -> Option<&AhoCorasick> {
        let built = self
            .searcher
            .get_or_init(|| self.build_searcher(MatchKind::Standard, AhoCorasickKind::ContiguousNFA));
        built.as_ref()
    }

    fn build_searcher(&self, matches: MatchKind, kind: AhoCorasickKind) -> Option<AhoCorasick> {
        let patterns =
            self.values.iter().map(String::as_str).chain(SECRET_SHAPES.iter().map(|shape| shape.prefix));
        AhoCorasick::builder().match_kind(matches).kind(Some(kind)).build(patterns).ok()
    }

    /// Returns the positions of the secrets, in the order of their prefixes' ends; they may
    /// overlap.
    fn search_secrets(&self, searcher: &AhoCorasick, text: &str) -> Vec<Range<usize>> {
        let mut secrets = find_by_surroundings(text);
        let mut text = ScannedText::new(text);
        for found in searcher.find_overlapping_iter(text.bytes) {
            let index = found.pattern().as_usize();
            match index.checked_sub(self.values.len()).and_then(|index| SECRET_SHAPES.get(index)) {
                Some(shape) => secrets.extend(shape.secret_at(&mut text, found.start())),
                None => secrets.push(found.range()),
            }
        }
        secrets
    }
}

/// Returns the positions of secrets that are recognized by the surrounding text.
fn find_by_surroundings(text: &str) -> Vec<Range<usize>> {
    let mut secrets = Vec::new();
    url_passwords::find_passwords(text.as_bytes(), &mut secrets);
    settings::find_named_secrets(text.as_bytes(), &mut secrets);
    // A position never begins or ends within a character.
    secrets.retain(|secret| text.get(secret.clone()).is_some());
    secrets
}

fn has_min_characters(text: &str, characters: usize) -> bool {
    text.chars().nth(characters - 1).is_some()
}
