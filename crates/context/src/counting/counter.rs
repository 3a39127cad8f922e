//! Counts the tokens of texts, images, messages and tools.

use std::sync::{Mutex, PoisonError};

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
        Self::from_parts(Vocabulary::new(&limits.tokenizer), limits.images)
    }

    /// Creates a counter with a vocabulary of the caller's.
    #[must_use]
    pub fn with_vocabulary(vocabulary: Box<dyn TokenCounter>, images: ImageTokens) -> Self {
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
