//! Legal call ids and tool names, and the hash that makes new ones.
//!
//! A name that is legal goes through untouched. One that isn't becomes a legal one that depends on nothing
//! but itself, so that a call and its result still meet and the encoded prefix stays the same.

use std::borrow::Cow;

/// OpenAI, Anthropic and Gemini all take 64 characters; some take more.
const LONGEST_NAME: usize = 64;
/// Begins the ids that this crate makes up where a provider gives none.
const MADE_UP: &str = "jm_";
/// Hexadecimal digits of the hash that ends a changed name.
const HASH_DIGITS: usize = 8;

/// FNV-1a, 64 bits (Fowler, Noll and Vo; draft-eastlake-fnv): stable across versions and machines, as
/// recordings need, and quick on short texts. Nothing here depends on its strength.
#[derive(Debug, Clone, Copy)]
pub(super) struct Digest(u64);

impl Default for Digest {
    fn default() -> Self {
        Self(0xCBF2_9CE4_8422_2325)
    }
}

impl Digest {
    /// Takes further bytes in.
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

/// An id for a call whose provider gave none: from everything the answer said so far, which holds the
/// answer's own id and time, so that it differs from answer to answer and is the same in a replay.
pub(super) fn made_up_id(answer: Digest, block: usize) -> String {
    format!("{MADE_UP}{:016x}_{block}", answer.0)
}

/// Whether this crate made the id up.
pub(super) fn is_made_up(id: &str) -> bool {
    id.starts_with(MADE_UP)
}

/// What a server demands of call ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IdRule {
    /// 1 to 64 of letters, digits, `_` and `-` (Anthropic's pattern, OpenAI's length).
    Common,
    /// Exactly 9 letters and digits: Mistral refuses all else («must be a-z, A-Z, 0-9, with a length of 9»).
    Mistral,
}

/// The id as the server takes it.
pub(super) fn call_id(id: &str, rule: IdRule) -> Cow<'_, str> {
    match rule {
        IdRule::Common => legal_name(id),
        IdRule::Mistral => {
            if id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
                return Cow::Borrowed(id);
            }
            const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
            let mut rest = Digest::of(id);
            let mut short = String::with_capacity(9);
            for _ in 0..9 {
                let digit = usize::try_from(rest % 62).ok().and_then(|place| DIGITS.get(place));
                short.push(char::from(digit.copied().unwrap_or(b'0')));
                rest /= 62;
            }
            Cow::Owned(short)
        }
    }
}

/// A tool's name as every server takes it: 1 to 64 of letters, digits, `_` and `-`.
pub(super) fn tool_name(name: &str) -> Cow<'_, str> {
    // Gemini wants a letter or an underscore first; names that begin otherwise are too rare to be worth
    // a rule of their own.
    legal_name(name)
}

fn legal_name(name: &str) -> Cow<'_, str> {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if !name.is_empty() && name.len() <= LONGEST_NAME && name.bytes().all(legal) {
        return Cow::Borrowed(name);
    }
    // The hash keeps two illegal names apart that differ only in what is replaced.
    let kept: String = name
        .chars()
        .map(|letter| if u8::try_from(letter).is_ok_and(legal) { letter } else { '_' })
        .take(LONGEST_NAME - HASH_DIGITS - 1)
        .collect();
    Cow::Owned(format!("{kept}_{:08x}", Digest::of(name) & 0xFFFF_FFFF))
}
