//! The words of a task, and how near a name is to them.

/// More words than this add nothing: a task that long is a document.
const MAX_WORDS: usize = 400;
/// Shorter words match by chance.
const SHORTEST: usize = 3;
/// Words of tasks that say nothing of a place.
const COMMON: [&str; 32] = [
    "the", "and", "for", "with", "that", "this", "from", "into", "when", "then", "not", "but", "are", "was",
    "has", "have", "should", "would", "could", "must", "can", "fix", "add", "make", "use", "all", "new",
    "please", "code", "file", "src", "lib",
];

/// The words of a task, hashed.
#[derive(Debug, Default)]
pub(crate) struct Words {
    sorted: Vec<u64>,
}

impl Words {
    /// Takes the words out of a text.
    pub(crate) fn of(task: &str) -> Self {
        let common: Vec<u64> = COMMON.iter().map(|word| hash(word.as_bytes())).collect();
        let mut sorted = Vec::new();
        each_word(task.as_bytes(), |hash, length| {
            if length >= SHORTEST && sorted.len() < MAX_WORDS && !common.contains(&hash) {
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
            each_word(name, |hash, length| {
                score += u32::from(length >= SHORTEST && self.sorted.binary_search(&hash).is_ok());
            });
        }
        score
    }
}

impl Words {
    /// Returns the number of the task's words that a text has, each counted once.
    pub(crate) fn count_distinct(&self, text: &[u8]) -> u32 {
        let mut found = std::collections::BTreeSet::new();
        if !self.sorted.is_empty() {
            each_word(text, |hash, length| {
                if length >= SHORTEST && self.sorted.binary_search(&hash).is_ok() {
                    found.insert(hash);
                }
            });
        }
        u32::try_from(found.len()).unwrap_or(u32::MAX)
    }
}

fn hash(word: &[u8]) -> u64 {
    word.iter().fold(START, |hash, byte| add(hash, *byte))
}

/// FNV-1a, 64 bits, over letters in lower case.
const START: u64 = 0xcbf2_9ce4_8422_2325;

fn add(hash: u64, byte: u8) -> u64 {
    (hash ^ u64::from(byte.to_ascii_lowercase())).wrapping_mul(0x0000_0100_0000_01b3)
}

/// Calls back with the hash and length of each word: letters and digits, a new word also at a
/// capital after a small letter. A plural `s` counts as part of no word, so that `parsers` meets
/// `parser`.
fn each_word(text: &[u8], mut found: impl FnMut(u64, usize)) {
    let (mut hash, mut length, mut before) = (START, 0, 0_u8);
    let mut without_last = START;
    let mut end = |hash: u64, without_last: u64, length: usize, last: u8| {
        if length > SHORTEST && last == b's' {
            found(without_last, length - 1);
        } else if length > 0 {
            found(hash, length);
        }
    };
    for &byte in text {
        let inside = byte.is_ascii_alphanumeric() || byte >= 0x80;
        if !inside || (byte.is_ascii_uppercase() && before.is_ascii_lowercase()) {
            end(hash, without_last, length, before);
            (hash, length) = (START, 0);
        }
        if inside {
            without_last = hash;
            hash = add(hash, byte);
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
        let words = Words::of("Fix the JsonParser: dates in user_profiles.py are wrong");
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
        assert_eq!(Words::default().score(b"parser"), 0);
    }
}
