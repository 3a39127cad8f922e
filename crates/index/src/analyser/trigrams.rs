//! Trigrams of a text: its sequences of three bytes.

/// Collects a text's trigrams. Reused from text to text, because the table of all trigrams is
/// large.
#[derive(Debug)]
pub(crate) struct TrigramCollector {
    /// A bit for each of the 2²⁴ trigrams.
    seen: Vec<u64>,
}

impl Default for TrigramCollector {
    fn default() -> Self {
        Self { seen: vec![0; (1 << 24) / 64] }
    }
}

impl TrigramCollector {
    /// Returns a text's distinct trigrams: bytes with ASCII letters in lower case, none across a
    /// line break, because patterns are searched line by line.
    pub(crate) fn collect_trigrams(&mut self, text: &[u8]) -> Vec<u32> {
        let mut found = Vec::new();
        for line in text.split(|byte| matches!(byte, b'\n' | b'\r')) {
            let Some((beginning, rest)) = line.split_at_checked(2) else { continue };
            let lower = |last: u32, byte: &u8| last << 8 | u32::from(byte.to_ascii_lowercase());
            let mut last = beginning.iter().fold(0, lower);
            for byte in rest {
                last = lower(last, byte) & 0xff_ffff;
                if let Some(word) = self.seen.get_mut((last >> 6) as usize) {
                    let bit = 1 << (last & 63);
                    if *word & bit == 0 {
                        *word |= bit;
                        found.push(last);
                    }
                }
            }
        }
        for trigram in &found {
            if let Some(word) = self.seen.get_mut((trigram >> 6) as usize) {
                *word = 0;
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trigrams_are_distinct_and_within_lines() {
        let mut trigrams = TrigramCollector::default();
        let number = |text: &[u8; 3]| u32::from_be_bytes([0, text[0], text[1], text[2]]);
        assert_eq!(trigrams.collect_trigrams(b"AbcABC\nd"), [number(b"abc"), number(b"bca"), number(b"cab")]);
        assert!(trigrams.collect_trigrams(b"ab\nc").is_empty());
        assert_eq!(trigrams.collect_trigrams(b"abc"), [number(b"abc")]);
    }
}
