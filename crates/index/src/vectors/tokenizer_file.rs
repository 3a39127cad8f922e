//! Counting with the tokenizer of a model, from its `tokenizer.json`.

use std::path::PathBuf;
use std::sync::OnceLock;

use journeyman_protocol::{TokenCounter, Tokens};

/// The tokenizer of a model, read from its file at the first count. Without the feature
/// `local-embeddings`, and where the file can't be used, the fallback counts.
pub struct TokenizerFile {
    path: PathBuf,
    fallback: fn(&str) -> Tokens,
    loaded: OnceLock<Option<loaded::Loaded>>,
}

impl TokenizerFile {
    /// Creates a counter. Nothing is read.
    #[must_use]
    pub fn new(path: PathBuf, fallback: fn(&str) -> Tokens) -> Self {
        Self { path, fallback, loaded: OnceLock::new() }
    }

    /// Reads the file.
    ///
    /// # Errors
    /// A description of the fault, for people.
    pub fn check(&self) -> Result<(), String> {
        loaded::read(&self.path).map(|tokenizer| {
            self.loaded.get_or_init(|| Some(tokenizer));
        })
    }
}

impl TokenCounter for TokenizerFile {
    fn count(&self, text: &str) -> Tokens {
        let tokenizer = self.loaded.get_or_init(|| loaded::read(&self.path).ok());
        let counted = tokenizer.as_ref().and_then(|tokenizer| loaded::count(tokenizer, text));
        counted.map_or_else(|| (self.fallback)(text), Tokens)
    }
}

#[cfg(feature = "local-embeddings")]
mod loaded {
    use std::path::Path;

    use super::super::model2vec::model_tokenizer::ModelTokenizer as ModelTokens;
    use super::super::model2vec::read_tokenizer;

    /// Maximum length of a text that is tokenized as a whole. Longer texts are cut at line ends,
    /// where few tokens reach across.
    const MAX_PIECE_BYTES: usize = 16 << 10;

    pub(super) type Loaded = ModelTokens;

    pub(super) fn read(path: &Path) -> Result<Loaded, String> {
        let bytes = read_tokenizer(path).map_err(|error| error.to_string())?;
        ModelTokens::read(&bytes)
    }

    /// Returns the number of tokens, or `None` if the tokenizer breaks down.
    pub(super) fn count(tokenizer: &Loaded, text: &str) -> Option<u64> {
        let mut rest = text;
        let mut tokens = 0;
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(piece_end(rest));
            tokens += tokenizer.count(piece).ok()?;
            rest = after;
        }
        Some(tokens)
    }

    /// Returns the end of the first piece: after its last line break, else after its last
    /// character.
    fn piece_end(text: &str) -> usize {
        if text.len() <= MAX_PIECE_BYTES {
            return text.len();
        }
        let most = text.floor_char_boundary(MAX_PIECE_BYTES);
        let line = text.get(..most).and_then(|piece| piece.rfind('\n'));
        line.map_or(most, |end| end + 1)
    }
}

#[cfg(not(feature = "local-embeddings"))]
mod loaded {
    use std::path::Path;

    pub(super) type Loaded = std::convert::Infallible;

    pub(super) fn read(_: &Path) -> Result<Loaded, String> {
        Err("this build can't read tokenizers: it lacks the cargo feature `local-embeddings`".to_owned())
    }

    pub(super) fn count(tokenizer: &Loaded, _: &str) -> Option<u64> {
        match *tokenizer {}
    }
}
