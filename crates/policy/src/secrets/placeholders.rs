//! Recognizes placeholders in the place of secrets.

/// The text that replaces a secret.
pub const SECRET_MASK: &str = "«[secret]»";
/// Placeholders that people write for a secret, as letters and digits only.
const PLACEHOLDER_WORDS: &[&str] = &[
    "abc",
    "bar",
    "baz",
    "changeit",
    "credentials",
    "default",
    "false",
    "foo",
    "foobar",
    "guest",
    "hidden",
    "key",
    "none",
    "null",
    "pass",
    "passcode",
    "passwd",
    "password",
    "pat",
    "placeholder",
    "pw",
    "pwd",
    "qux",
    "redacted",
    "removed",
    "root",
    "secret",
    "secrets",
    "string",
    "token",
    "true",
    "undefined",
    "unset",
    "user",
    "username",
    "value",
];
/// Beginnings of longer placeholders.
const PLACEHOLDER_BEGINNINGS: &[&str] = &[
    "changeme",
    "dummy",
    "enter",
    "example",
    "fake",
    "insert",
    "my",
    "placeholder",
    "replace",
    "sample",
    "some",
    "test",
    "todo",
    "xxx",
    "your",
];

/// Returns true if a value is empty or a placeholder.
pub(super) fn is_placeholder(value: &[u8]) -> bool {
    /// Maximum length of a placeholder.
    const MAX_PLACEHOLDER_BYTES: usize = 48;
    let plain: Vec<u8> =
        value.iter().filter(|byte| byte.is_ascii_alphanumeric()).map(u8::to_ascii_lowercase).collect();
    let same = plain.first().is_none_or(|first| plain.iter().all(|byte| byte == first));
    let put_in = value.starts_with(b"$") || value.starts_with(b"%") && value.len() <= 2;
    let written = |text: &&str| plain == text.as_bytes();
    let begins =
        |text: &&str| plain.starts_with(text.as_bytes()) && plain.iter().all(u8::is_ascii_alphabetic);
    value.is_ascii()
        && (same
            || put_in
            || plain.len() <= MAX_PLACEHOLDER_BYTES
                && (PLACEHOLDER_WORDS.iter().any(written) || PLACEHOLDER_BEGINNINGS.iter().any(begins)))
}
