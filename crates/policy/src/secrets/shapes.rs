//! The shapes of well-known tokens: a prefix, and the text that may follow it.
//!
//! Prefixes and lengths are those that the issuers document or that current tokens have; a length
//! is a lower bound, because issuers make tokens longer, never shorter.

use std::ops::Range;

/// Maximum length of a private key's text: a 16,384-bit RSA key in PEM has 13 KiB.
const MAX_KEY_BYTES: usize = 32 * 1024;
/// Minimum length of a key's base 64: code about keys has the frame without a key.
const MIN_KEY_BYTES: usize = 40;

/// A kind of token.
pub(super) struct SecretShape {
    /// The prefix, byte for byte.
    pub(super) prefix: &'static str,
    body: TokenBody,
}

/// The text that follows the prefix.
#[derive(Clone, Copy)]
enum TokenBody {
    /// At least `least` of these characters, which have to pass `proof`.
    Run { of: fn(u8) -> bool, least: usize, proof: fn(&[u8]) -> bool },
    /// Three or five parts separated by dots, the first two JSON.
    Jwt,
    /// The kind of a key, its frame and base 64.
    Pem,
    /// As `Run`, but the prefix is not masked.
    Credentials { least: usize, proof: fn(&[u8]) -> bool },
}

/// Returns a shape whose prefix occurs in no other text.
const fn certain_shape(prefix: &'static str, of: fn(u8) -> bool, least: usize) -> SecretShape {
    SecretShape { prefix, body: TokenBody::Run { of, least, proof: |_| true } }
}

/// Returns a shape as [`certain_shape`] does, except for placeholders such as
/// `glpat-your-token-goes-here`.
const fn mixed_shape(prefix: &'static str, of: fn(u8) -> bool, least: usize) -> SecretShape {
    SecretShape { prefix, body: TokenBody::Run { of, least, proof: is_mixed } }
}

/// Returns a shape whose prefix also begins ordinary words.
const fn random_shape(prefix: &'static str, of: fn(u8) -> bool, least: usize) -> SecretShape {
    SecretShape { prefix, body: TokenBody::Run { of, least, proof: is_random } }
}

/// All known shapes.
pub(super) const SECRET_SHAPES: &[SecretShape] = &[
    // AWS access key ids: 16 after the prefix.
    certain_shape("AKIA", is_upper_or_digit, 16),
    certain_shape("ASIA", is_upper_or_digit, 16),
    // GitHub: 36 and more after the prefix; fine-grained ones 82.
    mixed_shape("ghp_", is_alphanumeric, 30),
    mixed_shape("gho_", is_alphanumeric, 30),
    mixed_shape("ghu_", is_alphanumeric, 30),
    mixed_shape("ghs_", is_alphanumeric, 30),
    mixed_shape("ghr_", is_alphanumeric, 30),
    mixed_shape("github_pat_", is_word_byte, 22),
    // GitLab: 20 and more.
    mixed_shape("glpat-", is_url_safe, 20),
    mixed_shape("gldt-", is_url_safe, 20),
    mixed_shape("glrt-", is_url_safe, 20),
    // OpenAI (48, or `proj-` and 40 and more), DeepSeek (32), OpenRouter (`or-v1-` and 64),
    // Anthropic (`ant-api03-` and 93).
    random_shape("sk-", is_url_safe, 20),
    // Stripe: 24 and more.
    mixed_shape("sk_live_", is_alphanumeric, 16),
    mixed_shape("rk_live_", is_alphanumeric, 16),
    mixed_shape("sk_test_", is_alphanumeric, 16),
    mixed_shape("rk_test_", is_alphanumeric, 16),
    mixed_shape("whsec_", is_base64, 24),
    // Google: 35 after the prefix; OAuth access tokens and client secrets.
    mixed_shape("AIza", is_url_safe, 35),
    random_shape("ya29.", is_url_safe, 30),
    mixed_shape("GOCSPX-", is_url_safe, 20),
    // Slack: at least three numbers and 24 more.
    random_shape("xoxb-", is_url_safe, 20),
    random_shape("xoxp-", is_url_safe, 20),
    random_shape("xoxa-", is_url_safe, 20),
    random_shape("xoxr-", is_url_safe, 20),
    random_shape("xoxs-", is_url_safe, 20),
    random_shape("xoxe-", is_url_safe, 20),
    random_shape("xoxe.", is_url_safe_or_dot, 20),
    random_shape("xapp-", is_url_safe, 20),
    // npm: 36. PyPI: a macaroon, 150 and more. Hugging Face: 34. crates.io: 32.
    mixed_shape("npm_", is_alphanumeric, 30),
    mixed_shape("pypi-AgE", is_url_safe, 40),
    mixed_shape("hf_", is_alphanumeric, 30),
    random_shape("cio", is_alphanumeric, 32),
    // Model providers: Groq 52, xAI 80, Perplexity 48, Cerebras 48, Replicate 37.
    mixed_shape("gsk_", is_alphanumeric, 40),
    mixed_shape("xai-", is_alphanumeric, 40),
    mixed_shape("pplx-", is_alphanumeric, 40),
    mixed_shape("csk-", is_alphanumeric, 40),
    mixed_shape("r8_", is_alphanumeric, 37),
    // Others with unique prefixes: SendGrid, DigitalOcean, Shopify, Databricks, Linear, age.
    mixed_shape("SG.", is_url_safe_or_dot, 60),
    mixed_shape("dop_v1_", is_alphanumeric, 60),
    mixed_shape("shpat_", is_alphanumeric, 32),
    mixed_shape("lin_api_", is_alphanumeric, 32),
    mixed_shape("AGE-SECRET-KEY-1", is_upper_or_digit, 50),
    SecretShape { prefix: "eyJ", body: TokenBody::Jwt },
    SecretShape { prefix: "-----BEGIN ", body: TokenBody::Pem },
    SecretShape { prefix: "Bearer ", body: TokenBody::Credentials { least: 16, proof: is_bearer_token } },
    SecretShape { prefix: "bearer ", body: TokenBody::Credentials { least: 16, proof: is_bearer_token } },
    SecretShape { prefix: "BEARER ", body: TokenBody::Credentials { least: 16, proof: is_bearer_token } },
    SecretShape {
        prefix: "uthorization: Basic ",
        body: TokenBody::Credentials { least: 8, proof: is_mixed },
    },
    SecretShape {
        prefix: "uthorization: token ",
        body: TokenBody::Credentials { least: 16, proof: is_mixed },
    },
];

fn is_alphanumeric(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
}

fn is_upper_or_digit(byte: u8) -> bool {
    byte.is_ascii_uppercase() || byte.is_ascii_digit()
}

fn is_word_byte(byte: u8) -> bool {
    is_alphanumeric(byte) || byte == b'_'
}

fn is_url_safe(byte: u8) -> bool {
    is_word_byte(byte) || byte == b'-'
}

fn is_url_safe_or_dot(byte: u8) -> bool {
    is_url_safe(byte) || byte == b'.'
}

fn is_base64(byte: u8) -> bool {
    is_alphanumeric(byte) || matches!(byte, b'+' | b'/' | b'=')
}

fn is_credential_byte(byte: u8) -> bool {
    is_url_safe_or_dot(byte) || is_base64(byte) || byte == b'~'
}

/// A text that is being searched, with cached positions so that no part is searched repeatedly.
pub(super) struct ScannedText<'a> {
    pub(super) bytes: &'a [u8],
    /// The nearest end of a private key at or after the position of the last search; the inner
    /// `None` if there is none.
    key_end: Option<Option<usize>>,
    /// The last range that could be a key's text and was searched: a frame within it contains
    /// nothing else.
    key_text: Range<usize>,
}

impl<'a> ScannedText<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { bytes: text.as_bytes(), key_end: None, key_text: 0..0 }
    }

    fn byte(&self, at: usize) -> Option<u8> {
        self.bytes.get(at).copied()
    }

    /// Returns the end of the run of these characters that begins at `from`.
    fn run_end(&self, from: usize, of: fn(u8) -> bool) -> usize {
        let rest = self.bytes.get(from..).unwrap_or_default();
        from + rest.iter().position(|byte| !of(*byte)).unwrap_or(rest.len())
    }

    fn slice(&self, range: Range<usize>) -> &'a [u8] {
        self.bytes.get(range).unwrap_or_default()
    }

    /// Returns true if a token may begin here, which is not within a word.
    fn is_boundary(&self, at: usize, of: fn(u8) -> bool) -> bool {
        let before = |steps: usize| at.checked_sub(steps).and_then(|at| self.byte(at));
        let Some(previous) = before(1) else { return true };
        if !of(previous) && !previous.is_ascii_alphanumeric() {
            return true;
        }
        // The end of an escape is not a part of the word: `
        // ` in JSON, `%3D` in a URL.
        let escape = matches!(previous, b'n' | b't' | b'r') && before(2) == Some(b'\\');
        escape || (previous.is_ascii_hexdigit() && before(3) == Some(b'%'))
    }

    /// Returns the beginning of the nearest `-----END …-----` at or after `from`.
    fn find_key_end(&mut self, from: usize) -> Option<usize> {
        match self.key_end {
            Some(None) => return None,
            Some(Some(end)) if end >= from => return Some(end),
            _ => {}
        }
        let rest = self.bytes.get(from..).unwrap_or_default();
        let end = memchr::memmem::find(rest, b"-----END ").map(|at| from + at);
        self.key_end = Some(end);
        end
    }
}

impl SecretShape {
    /// Returns the secret whose prefix begins at `start`, if there is one.
    pub(super) fn secret_at(&self, text: &mut ScannedText<'_>, start: usize) -> Option<Range<usize>> {
        let after = start + self.prefix.len();
        match self.body {
            TokenBody::Run { of, least, proof } => {
                if !text.is_boundary(start, of) {
                    return None;
                }
                let end = text.run_end(after, of);
                let body = text.slice(after..end);
                (body.len() >= least && proof(body)).then_some(start..end)
            }
            TokenBody::Jwt => find_jwt(text, start),
            TokenBody::Pem => find_pem(text, start, after),
            TokenBody::Credentials { least, proof } => {
                let end = text.run_end(after, is_credential_byte);
                let body = text.slice(after..end);
                (body.len() >= least && proof(body)).then_some(after..end)
            }
        }
    }
}

/// Returns true if there are digits, or letters of both cases.
fn is_mixed(body: &[u8]) -> bool {
    body.iter().any(u8::is_ascii_digit)
        || (body.iter().any(u8::is_ascii_uppercase) && body.iter().any(u8::is_ascii_lowercase))
}

/// Returns true unless it is a word that may follow `Bearer`, such as `AuthenticationScheme`.
fn is_bearer_token(body: &[u8]) -> bool {
    body.iter().any(u8::is_ascii_digit) || (body.len() >= 32 && is_mixed(body))
}

/// Returns true if a part between `-` and `_` has at least 16 characters with letters and digits.
pub(super) fn is_random(body: &[u8]) -> bool {
    body.split(|byte| !byte.is_ascii_alphanumeric()).any(|part| {
        part.len() >= 16 && part.iter().any(u8::is_ascii_digit) && part.iter().any(u8::is_ascii_alphabetic)
    })
}

fn find_jwt(text: &ScannedText<'_>, start: usize) -> Option<Range<usize>> {
    /// A header has at least `{"alg":"none"}`, a payload some claim, a signature 256 bits.
    const MIN_JWT_PARTS: [usize; 3] = [16, 16, 32];
    if !text.is_boundary(start, is_url_safe_or_dot) {
        return None;
    }
    let end = text.run_end(start, is_url_safe_or_dot);
    let mut parts = text.slice(start..end).split(|byte| *byte == b'.');
    let long = MIN_JWT_PARTS.iter().all(|least| parts.next().is_some_and(|part| part.len() >= *least));
    // In the encrypted form the second part is a key, in the signed form JSON; both are secret.
    long.then_some(start..end)
}

fn find_pem(text: &mut ScannedText<'_>, start: usize, after: usize) -> Option<Range<usize>> {
    let kind_end = text.run_end(after, is_pem_label_byte);
    let kind = text.slice(after..kind_end);
    let frame = kind_end + 5;
    if !(kind.ends_with(b"PRIVATE KEY") || kind.ends_with(b"PRIVATE KEY BLOCK"))
        || text.slice(kind_end..frame) != b"-----"
    {
        return None;
    }
    if text.key_text.contains(&frame) {
        return None;
    }
    let closing = text.find_key_end(frame);
    let most = closing.unwrap_or(usize::MAX).min(frame + MAX_KEY_BYTES).min(text.bytes.len());
    let run_end =
        text.slice(frame..most).iter().position(|byte| !is_key_byte(*byte)).map_or(most, |at| frame + at);
    let closing = closing.filter(|closing| *closing == run_end);
    text.key_text = frame..run_end;
    // The last long line of base 64, and a shorter line that may follow it.
    let (mut end, mut at, mut rest_may_follow) = (None, frame, false);
    for part in text.slice(frame..run_end).split(|byte| !is_base64(*byte)) {
        let long = part.len() >= MIN_KEY_BYTES;
        if long || (rest_may_follow && !part.is_empty()) {
            end = Some(at + part.len());
            rest_may_follow = long;
        }
        at += part.len() + 1;
    }
    let end = end?;
    let end = closing.map_or(end, |closing| {
        let kind_end = text.run_end(closing + b"-----END ".len(), is_pem_label_byte);
        text.run_end(kind_end, |byte| byte == b'-')
    });
    Some(start..end)
}

/// Returns true for characters between a frame's dashes.
fn is_pem_label_byte(byte: u8) -> bool {
    byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b' '
}

/// Returns true for characters of a key's text, also inside a string literal, or with an old
/// format's headers.
fn is_key_byte(byte: u8) -> bool {
    is_base64(byte)
        || byte.is_ascii_whitespace()
        || matches!(byte, b'\\' | b'"' | b'\'' | b',' | b':' | b'-' | b'.' | b'(' | b')')
}
