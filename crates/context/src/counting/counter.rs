//! Counts the tokens of texts, images, messages and tools.

use std::sync::{Arc, Mutex, PoisonError};

use journeyman_protocol::{
    Block, ImageData, ImageTokens, Message, ModelLimits, ResultPart, TokenCounter, Tokens, ToolSpec,
};

use super::cache::CountCache;
use super::image_size::image_size;
use super::images::image_tokens;
use super::vocabulary::Vocabulary;

/// Texts below this length are counted faster than they are looked up.
const MIN_CACHED_BYTES: usize = 128;
/// Tokens around a message: its role and its borders. OpenAI documents three for its chat format,
/// templates of open models have four or five.
const MESSAGE_OVERHEAD: u64 = 4;
/// Tokens around a call or a result: its id, and the names of its fields.
const CALL_OVERHEAD: u64 = 12;
/// Tokens around a tool's description in the provider's own format.
const TOOL_OVERHEAD: u64 = 12;

/// Counts tokens as one model does. Counts of texts are cached by content; a clone of a request
/// costs a look-up for each text.
///
/// A built-in vocabulary is unpacked at the first count, which takes about 100 ms.
pub struct Counter {
    vocabulary: Vocabulary,
    images: ImageTokens,
    cache: Mutex<CountCache>,
}

impl std::fmt::Debug for Counter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Counter").field("images", &self.images).finish_non_exhaustive()
    }
}

impl Counter {
    /// Creates a counter for a model. A tokenizer in a file is the caller's to load
    /// ([`Counter::with_vocabulary`]); here it is estimated.
    #[must_use]
    pub fn new(limits: &ModelLimits) -> Self {
        Self::from_parts(Vocabulary::for_tokenizer(&limits.tokenizer), limits.images)
    }

    /// Creates a counter with a vocabulary of the caller's.
    #[must_use]
    pub fn with_vocabulary(vocabulary: Arc<dyn TokenCounter>, images: ImageTokens) -> Self {
        Self::from_parts(Vocabulary::Given(vocabulary), images)
    }

    fn from_parts(vocabulary: Vocabulary, images: ImageTokens) -> Self {
        Self { vocabulary, images, cache: Mutex::default() }
    }

    /// Returns the number of tokens of a message with its blocks.
    #[must_use]
    pub fn count_message(&self, message: &Message) -> Tokens {
        let blocks: Tokens = message.content.iter().map(|block| self.count_block(block)).sum();
        blocks + Tokens(MESSAGE_OVERHEAD)
    }

    /// Returns the number of tokens of a block.
    #[must_use]
    pub fn count_block(&self, block: &Block) -> Tokens {
        match block {
            Block::Text { text } | Block::Thinking { text, .. } => self.count(text),
            Block::Image(image) => self.count_image(image),
            Block::ToolUse(call) => {
                self.count(&call.name) + self.count(&call.input.to_string()) + Tokens(CALL_OVERHEAD)
            }
            Block::ToolResult { content, .. } => {
                let parts: Tokens = content.iter().map(|part| self.count_part(part)).sum();
                parts + Tokens(CALL_OVERHEAD)
            }
        }
    }

    fn count_part(&self, part: &ResultPart) -> Tokens {
        match part {
            ResultPart::Text { text } => self.count(text),
            ResultPart::Image(image) => self.count_image(image),
        }
    }

    /// Returns the number of tokens of an image, from its width and height.
    #[must_use]
    pub fn count_image(&self, image: &ImageData) -> Tokens {
        Tokens(image_tokens(self.images, image_size(image)))
    }

    /// Returns the number of tokens of a tool's description and schema.
    #[must_use]
    pub fn count_tool(&self, tool: &ToolSpec) -> Tokens {
        let texts = self.count(&tool.name) + self.count(&tool.description);
        texts + self.count(&tool.input_schema.to_string()) + Tokens(TOOL_OVERHEAD)
    }
}

impl TokenCounter for Counter {
    fn count(&self, text: &str) -> Tokens {
        if text.len() < MIN_CACHED_BYTES {
            return Tokens(self.vocabulary.count(text));
        }
        let lock = || self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        let key = lock().key(text);
        if let Some(count) = lock().get(key) {
            return Tokens(count);
        }
        let count = self.vocabulary.count(text);
        lock().insert(key, count);
        Tokens(count)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use journeyman_protocol::{CallId, Tokenizer, ToolUse};
    use serde_json::json;

    use super::*;

    fn counter(tokenizer: Tokenizer) -> Counter {
        Counter::new(&ModelLimits { tokenizer, ..ModelLimits::conservative_default(false) })
    }

    #[test]
    fn public_vocabularies_are_exact() {
        // As OpenAI's own tokenizer counts them.
        let cases = [
            ("", 0, 0),
            ("hello world", 2, 2),
            ("fn main() {\n    println!(\"{}\", 1 + 2);\n}\n", 14, 14),
            ("我们需要修复这个解析器的错误", 9, 11),
            ("<|endoftext|>", 7, 7),
        ];
        let (o200k, cl100k) = (counter(Tokenizer::O200k), counter(Tokenizer::Cl100k));
        for (text, newer, older) in cases {
            let counts = (o200k.count(text).0, cl100k.count(text).0);
            assert_eq!(counts, (newer, older), "{text:?}");
        }
    }

    #[test]
    fn estimates_are_scaled_by_family() {
        let text = "The quick brown fox jumps over the lazy dog. ".repeat(40);
        let plain = counter(Tokenizer::Estimate { percent: 100 }).count(&text).0;
        assert_eq!(counter(Tokenizer::Estimate { percent: 155 }).count(&text).0, (plain * 155).div_ceil(100));
        let file = counter(Tokenizer::File("tokenizer.json".into()));
        assert_eq!(file.count(&text), counter(Tokenizer::default()).count(&text));
    }

    #[test]
    fn a_text_is_counted_once() {
        struct Counting(AtomicU64);
        impl TokenCounter for Counting {
            fn count(&self, text: &str) -> Tokens {
                self.0.fetch_add(1, Ordering::Relaxed);
                Tokens(text.len() as u64)
            }
        }
        let counting = Arc::new(Counting(AtomicU64::new(0)));
        let counter = Counter::with_vocabulary(counting.clone(), ImageTokens::Fixed(1));
        let message = Message::user_text("x".repeat(5_000));
        let counts: Vec<Tokens> = (0..10).map(|_| counter.count_message(&message)).collect();
        assert!(counts.iter().all(|count| *count == Tokens(5_004)), "{counts:?}");
        assert_eq!(counting.0.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn every_part_of_a_message_and_a_tool_is_counted() {
        let counter = counter(Tokenizer::O200k);
        let id = CallId::new("c1");
        let image = || ImageData { media_type: "image/png".to_owned(), data: "?".to_owned() };
        let call = ToolUse {
            id: id.clone(),
            name: "read_file".to_owned(),
            input: json!({ "path": "src/lib.rs" }),
            malformed: None,
            signature: None,
        };
        let text = ResultPart::Text { text: "fn main() {}".to_owned() };
        let blocks = [
            Block::text("word"),
            Block::Thinking { text: "think".to_owned(), signature: None },
            Block::Image(image()),
            Block::ToolUse(call),
            Block::ToolResult { id, content: vec![text, ResultPart::Image(image())], is_error: false },
        ];
        let counts: Vec<u64> = blocks.iter().map(|block| counter.count_block(block).0).collect();
        let large = image_tokens(ImageTokens::Unknown, None);
        assert_eq!(counts, [1, 1, large, CALL_OVERHEAD + 2 + 7, CALL_OVERHEAD + 4 + large]);
        let tool = ToolSpec {
            name: "read_file".to_owned(),
            description: "Reads a file.".to_owned(),
            input_schema: json!({ "type": "object" }),
        };
        assert_eq!(counter.count_tool(&tool), Tokens(TOOL_OVERHEAD + 2 + 4 + 5));
    }
}
