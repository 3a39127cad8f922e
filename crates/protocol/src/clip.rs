//! Shortening of texts.

/// Returns the longest beginning of `text` that has at most `bytes` bytes.
#[must_use]
pub fn clip_to_bytes(text: &str, bytes: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes)).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_are_kept_whole() {
        assert_eq!(clip_to_bytes("aé", 2), "a");
        assert_eq!(clip_to_bytes("aé", 9), "aé");
    }
}
