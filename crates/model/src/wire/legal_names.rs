//! Legal call ids and tool names, and the hash that generates new ones.
//!
//! A legal name is not changed. An illegal name is replaced by a legal one that depends on nothing
//! else, so that a call and its result still match and the encoded prefix stays the same.

use std::borrow::Cow;

/// Maximum length of a name. OpenAI, Anthropic and Gemini all accept 64 characters.
const MAX_NAME_CHARS: usize = 64;
/// Prefix of the ids that this crate generates if a provider sends none.
const GENERATED_PREFIX: &str = "jm_";
/// Hexadecimal digits of the hash that ends a changed name.
const HASH_DIGITS: usize = 8;

/// FNV-1a, 64 bits (Fowler, Noll and Vo; draft-eastlake-fnv): stable across versions and machines,
/// as recordings require, and fast on short texts. Nothing depends on its cryptographic strength.
#[derive(Debug, Clone, Copy)]
pub(super) struct IdDigest(u64);

impl Default for IdDigest {
    fn default() -> Self {
        Self(0xCBF2_9CE4_8422_2325)
    }
}

impl IdDigest {
    /// Adds text to the hash.
    pub(super) fn update(&mut self, text: &str) {
        for byte in text.bytes() {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3);
        }
    }

    fn of(text: &str) -> u64 {
        let mut digest = Self::default();
        digest.update(text);
        digest.0
    }
}

/// Generates an id for a call without one, from everything in the response so far. That includes
/// the response's own id and time, so that the id differs between responses and is the same in a
/// replay.
pub(super) fn generate_call_id(answer: IdDigest, block: usize) -> String {
    format!("{GENERATED_PREFIX}{:016x}_{block}", answer.0)
}

/// Returns true if this crate generated the id.
pub(super) fn is_generated_id(id: &str) -> bool {
    id.starts_with(GENERATED_PREFIX)
}

/// A server's requirements for call ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IdRule {
    /// 1 to 64 letters, digits, `_` and `-` (Anthropic's pattern, OpenAI's length).
    Common,
    /// Exactly 9 letters and digits: Mistral refuses all others ("must be a-z, A-Z, 0-9, with a
    /// length of 9").
    Mistral,
}

/// Returns the id in a form that the server accepts.
pub(super) fn legal_call_id(id: &str, rule: IdRule) -> Cow<'_, str> {
    match rule {
        IdRule::Common => legal_name(id),
        IdRule::Mistral => {
            if id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
                return Cow::Borrowed(id);
            }
            const BASE62_DIGITS: &[u8; 62] =
                b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
            let mut rest = IdDigest::of(id);
            let mut short = String::with_capacity(9);
            for _ in 0..9 {
                let digit = usize::try_from(rest % 62).ok().and_then(|place| BASE62_DIGITS.get(place));
                short.push(char::from(digit.copied().unwrap_or(b'0')));
                rest /= 62;
            }
            Cow::Owned(short)
        }
    }
}

/// Returns a tool's name in a form that every server accepts: 1 to 64 letters, digits, `_` and `-`.
pub(super) fn legal_tool_name(name: &str) -> Cow<'_, str> {
    // Gemini requires a letter or an underscore first; other first characters are too rare for a
    // rule of their own.
    legal_name(name)
}

fn legal_name(name: &str) -> Cow<'_, str> {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if !name.is_empty() && name.len() <= MAX_NAME_CHARS && name.bytes().all(legal) {
        return Cow::Borrowed(name);
    }
    // The hash distinguishes illegal names that differ only in replaced characters.
    let kept: String = name
        .chars()
        .map(|letter| if u8::try_from(letter).is_ok_and(legal) { letter } else { '_' })
        .take(MAX_NAME_CHARS - HASH_DIGITS - 1)
        .collect();
    Cow::Owned(format!("{kept}_{:08x}", IdDigest::of(name) & 0xFFFF_FFFF))
}
