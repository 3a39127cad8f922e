//! Words of shell commands.

/// Quotes `word` as one word of a POSIX shell.
pub(crate) fn quote_word(word: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"/._-+:@%=,".contains(&b);
    if !word.is_empty() && word.bytes().all(plain) && !word.starts_with('-') {
        return word.to_owned();
    }
    let word = if word.starts_with('-') { format!("./{word}") } else { word.to_owned() };
    format!("'{}'", word.replace('\'', r"'\''"))
}
