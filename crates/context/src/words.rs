//! The words of a task, and how near a name is to them.

/// More words than this add nothing: a task that long is a document.
const MAX_WORDS: usize = 400;
/// Shorter words match by chance.
const MIN_WORD_LENGTH: usize = 3;
/// Words of tasks that say nothing of a place.
const COMMON_WORDS: [&str; 32] = [
    "the", "and", "for", "with", "that", "this", "from", "into", "when", "then", "not", "but", "are", "was",
    "has", "have", "should", "would", "could", "must", "can", "fix", "add", "make", "use", "all", "new",
    "please", "code", "file", "src", "lib",
];

/// The words of a task, hashed.
#[derive(Debug, Default)]
pub(crate) struct TaskVocabulary {
    sorted: Vec<u64>,
}

impl TaskVocabulary {
    /// Takes the words out of a text.
    pub(crate) fn from_text(task: &str) -> Self {
        let common: Vec<u64> = COMMON_WORDS.iter().map(|word| hash_word(word.as_bytes())).collect();
        let mut sorted = Vec::new();
        for_each_word(task.as_bytes(), |hash, length| {
            if length >= MIN_WORD_LENGTH && sorted.len() < MAX_WORDS && !common.contains(&hash) {
                sorted.push(hash);
            }
        });
        sorted.sort_unstable();
        sorted.dedup();
        Self { sorted }
    }

    /// Returns the number of a name's words that the task has.
    pub(crate) fn score(&self, name: &[u8]) -> u32 {
        let mut score = 0;
        if !self.sorted.is_empty() {
            for_each_word(name, |hash, length| {
                score += u32::from(length >= MIN_WORD_LENGTH && self.sorted.binary_search(&hash).is_ok());
            });
        }
        score
    }
}

impl TaskVocabulary {
    /// Returns the number of the task's words that a text has, each counted once.
    pub(crate) fn count_distinct(&self, text: &[u8]) -> u32 {
        let mut found = std::collections::BTreeSet::new();
        if !self.sorted.is_empty() {
            for_each_word(text, |hash, length| {
                if length >= MIN_WORD_LENGTH && self.sorted.binary_search(&hash).is_ok() {
                    found.insert(hash);
                }
            });
        }
        u32::try_from(found.len()).unwrap_or(u32::MAX)
    }
}

/// Returns the hash of a word, capitals like small letters.
pub(crate) fn hash_word(word: &[u8]) -> u64 {
    word.iter().fold(FNV_OFFSET_BASIS, |hash, byte| hash_byte(hash, *byte))
}

/// FNV-1a, 64 bits, over letters in lower case.
const FNV_OFFSET_BASIS: u64 = 0xcbf2_9ce4_8422_2325;

fn hash_byte(hash: u64, byte: u8) -> u64 {
    (hash ^ u64::from(byte.to_ascii_lowercase())).wrapping_mul(0x0000_0100_0000_01b3)
}

/// Calls back with the hash and length of each word: letters and digits, a new word also at a
/// capital after a small letter. A plural `s` counts as part of no word, so that `parsers` meets
/// `parser`.
fn for_each_word(text: &[u8], mut found: impl FnMut(u64, usize)) {
    let (mut hash, mut length, mut before) = (FNV_OFFSET_BASIS, 0, 0_u8);
    let mut without_last = FNV_OFFSET_BASIS;
    let mut end = |hash: u64, without_last: u64, length: usize, last: u8| {
        if length > MIN_WORD_LENGTH && last == b's' {
            found(without_last, length - 1);
        } else if length > 0 {
            found(hash, length);
        }
    };
    for &byte in text {
        let inside = byte.is_ascii_alphanumeric() || byte >= 0x80;
        if !inside || (byte.is_ascii_uppercase() && before.is_ascii_lowercase()) {
            end(hash, without_last, length, before);
            (hash, length) = (FNV_OFFSET_BASIS, 0);
        }
        if inside {
            without_last = hash;
            hash = hash_byte(hash, byte);
            length += 1;
        }
        before = byte;
    }
    end(hash, without_last, length, before);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scoring_table() {
        let words = TaskVocabulary::from_text("Fix the JsonParser: dates in user_profiles.py are wrong");
        let cases = [
            ("json_parser.rs", 2),
            ("parsers", 1),
            ("UserProfile.py", 2),
            ("date.go", 1),
            ("lib.rs", 0),
            ("the", 0),
            ("fix", 0),
            ("", 0),
        ];
        for (name, score) in cases {
            assert_eq!(words.score(name.as_bytes()), score, "{name}");
        }
        assert_eq!(TaskVocabulary::default().score(b"parser"), 0);
    }
}
