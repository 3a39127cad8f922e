//! Credentials that a change adds.

use std::collections::BTreeSet;

use journeyman_policy::secrets::{Redactor, is_secret_name};
use journeyman_protocol::{HonestyKind, HonestySeverity, RelPath};

use super::parsed_source::{ParsedSource, TokenKind};
use super::report::HonestyReport;

/// Minimum length of a value that may be a key.
const MIN_KEY_CHARS: usize = 16;
/// Minimum entropy of a random value, in bits a character: words have about three.
const MIN_ENTROPY_BITS: f64 = 3.6;

/// Reports credentials that the new text has and the old one lacks.
pub(super) fn report_added_secrets(
    path: &RelPath,
    is_test: bool,
    old: &str,
    new: &ParsedSource<'_>,
    detector: &Redactor,
    report: &mut HonestyReport,
) {
    let known: BTreeSet<&str> =
        detector.find_secrets(old).into_iter().filter_map(|range| old.get(range)).collect();
    let found = detector.find_secrets(new.text).into_iter();
    let mut added: Vec<(usize, &str)> = found
        .filter_map(|range| Some((range.start, new.text.get(range)?)))
        .filter(|(_, secret)| !known.contains(secret) && !is_placeholder_value(secret))
        .collect();
    if !is_test {
        added.extend(find_secret_values(new).into_iter().filter(|(_, value)| !old.contains(*value)));
    }
    for (at, _) in added {
        let before = new.text.get(..at).unwrap_or_default();
        let line = u32::try_from(before.matches('\n').count() + 1).unwrap_or(u32::MAX);
        let name: String = before.rsplit('\n').next().unwrap_or_default().trim().chars().take(60).collect();
        let message = format!("`{name}…` holds a credential; read it from the environment");
        let severity = if is_test { HonestySeverity::Notice } else { HonestySeverity::Blocking };
        report.add(severity, HonestyKind::SecretAdded, path, line, message);
    }
}

/// Returns random-looking values that are assigned to names of secrets.
fn find_secret_values<'t>(source: &ParsedSource<'t>) -> Vec<(usize, &'t str)> {
    let mut found = Vec::new();
    for three in source.tokens.windows(3) {
        let [name, sign, value] = three else { continue };
        if value.kind != TokenKind::Text || !matches!(sign.text, "=" | ":" | ":=" | "=>") {
            continue;
        }
        let bare = value.text.trim_matches(['"', '\'', '`']);
        if is_secret_name(&to_screaming_snake_case(name.text.trim_matches(['"', '\''])))
            && is_random(bare)
            && !is_placeholder_value(bare)
        {
            found.push((value.start, bare));
        }
    }
    found
}

/// Returns a name in capitals with separators: `apiKey` is `API_KEY`.
fn to_screaming_snake_case(name: &str) -> String {
    let mut out = String::new();
    let mut lower = false;
    for c in name.chars().take(80) {
        if c.is_uppercase() && lower {
            out.push('_');
        }
        lower = c.is_lowercase();
        out.extend(c.to_uppercase());
    }
    out
}

/// Returns true for placeholders that documentation and tests use instead of credentials.
fn is_placeholder_value(value: &str) -> bool {
    let lower = value.to_ascii_lowercase();
    [
        "example",
        "dummy",
        "fake",
        "sample",
        "placeholder",
        "changeme",
        "your",
        "xxxx",
        "0000",
        "1234567",
        "test",
    ]
    .iter()
    .any(|word| lower.contains(word))
}

/// Returns true for a value that looks random.
fn is_random(value: &str) -> bool {
    let plain =
        value.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '+' | '/' | '=' | '.'));
    let digits = value.bytes().any(|byte| byte.is_ascii_digit());
    let letters = value.bytes().any(|byte| byte.is_ascii_alphabetic());
    value.len() >= MIN_KEY_CHARS && plain && digits && letters && entropy_bits(value) >= MIN_ENTROPY_BITS
}

/// Returns Shannon's entropy of the characters, in bits a character.
#[allow(clippy::cast_precision_loss, reason = "counts of characters of a short text")]
fn entropy_bits(value: &str) -> f64 {
    let mut counts = [0_usize; 256];
    for byte in value.bytes() {
        if let Some(count) = counts.get_mut(usize::from(byte)) {
            *count += 1;
        }
    }
    let total = value.len() as f64;
    counts
        .iter()
        .filter(|count| **count > 0)
        .map(|count| *count as f64 / total)
        .map(|share| -share * share.log2())
        .sum()
}
