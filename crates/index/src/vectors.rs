//! Vectors of chunks, an optional ranking signal.
//!
//! An [`Embedder`] turns texts into vectors: `Model2Vec` by a table of tokens on this machine (the
//! feature `local-embeddings`), others by asking a server (they live above this crate, which opens
//! no connection). [`VectorStore`] stores one model's vectors in immutable mapped files, keyed by
//! the text of a chunk, follows a [`Snapshot`](crate::Snapshot) and embeds only new texts. A
//! [`VectorView`] compares every vector with a query's, exactly. The similarity is a ranking signal
//! of weight zero until a weight is configured; `docs/vectors.md` has the settings and
//! measurements.
//!
//! Nothing here delays a query: vectors are made when the index is updated, and a query whose
//! vector isn't ready is answered without.

mod dot;
mod embed;
#[cfg(feature = "local-embeddings")]
mod model2vec;
mod quantise;
mod query_embedder;
mod store;
mod tokenizer_file;
mod vector_part;
mod view;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

pub use embed::{EmbeddingOptions, EmbeddingProgress, EmbeddingReport};
#[cfg(feature = "local-embeddings")]
pub use model2vec::{Model2Vec, Model2VecError};
pub use quantise::{QuantisedVector, quantise};
pub use query_embedder::QueryEmbedder;
pub use store::{VectorStats, VectorStore};
pub use tokenizer_file::TokenizerFile;
pub use view::{SimilarChunks, VectorView};

/// Maximum dimensions of a vector: the largest known models have 4,096.
pub const MAX_DIMENSIONS: usize = 8_192;
/// Maximum chunks with a vector. All of them are compared with each query.
pub const MAX_VECTORS: usize = 1 << 20;
/// Maximum bytes of an embedded text: five ordinary chunks, and more than most models read.
pub const MAX_EMBEDDED_TEXT_BYTES: usize = 8 << 10;

/// The purpose of an embedding, which some models distinguish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EmbeddingPurpose {
    /// A document that will be searched.
    Document,
    /// A query.
    Query,
}

/// A deadline with cancellation.
#[derive(Debug, Clone, Copy)]
pub struct Deadline<'a> {
    /// Set to stop early.
    pub stop: &'a AtomicBool,
    /// The deadline.
    pub until: Option<Instant>,
}

impl Deadline<'_> {
    /// Checks that neither has happened.
    ///
    /// # Errors
    /// [`EmbedError::Stopped`], [`EmbedError::TooLate`].
    pub fn check(&self) -> Result<(), EmbedError> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(EmbedError::Stopped);
        }
        if self.until.is_some_and(|until| Instant::now() >= until) {
            return Err(EmbedError::TooLate);
        }
        Ok(())
    }
}

/// An error of embedding.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EmbedError {
    /// Stopped by the caller.
    #[error("stopped")]
    Stopped,
    /// The deadline has passed.
    #[error("the embedding model didn't answer in time")]
    TooLate,
    /// A vector has another length than the stored ones.
    #[error(
        "`{model}` returned vectors of {got} numbers, and the stored ones have {expected}: its model was replaced. Make all vectors again with `jm index --rebuild`"
    )]
    Dimensions {
        /// The model.
        model: String,
        /// The expected number of dimensions.
        expected: usize,
        /// The actual number.
        got: usize,
    },
    /// A vector with invalid numbers.
    #[error("`{model}` gave no usable vector: {what}")]
    Unusable {
        /// The model.
        model: String,
        /// A description of the fault.
        what: String,
    },
    /// The model couldn't be asked, or refused.
    #[error("`{model}` can't be asked: {what}")]
    Failed {
        /// The model.
        model: String,
        /// The message, and what can be done.
        what: String,
    },
}

/// Turns texts into vectors.
pub trait Embedder: Send + Sync {
    /// Returns its display name.
    fn name(&self) -> &str;

    /// Returns the identity of its vectors: those of two embedders are comparable if and only if it
    /// is the same.
    fn identity(&self) -> [u8; 32];

    /// Returns the number of dimensions; `None` if it is unknown before the first vectors.
    fn dimensions(&self) -> Option<usize>;

    /// Returns the preferred number of texts in a batch, 1 or more.
    fn batch_size(&self) -> usize;

    /// Returns the maximum number of threads that may call it at once, 1 or more.
    fn max_concurrency(&self) -> usize {
        1
    }

    /// Returns a vector for each text, in order, all of one length. A text without any known token
    /// gives zeros.
    ///
    /// # Errors
    /// [`EmbedError`]; then there is no vector of any of them.
    fn embed(
        &self,
        texts: &[&str],
        purpose: EmbeddingPurpose,
        deadline: Deadline<'_>,
    ) -> Result<Vec<Vec<f32>>, EmbedError>;
}

/// Checks the vectors of an embedder.
///
/// # Errors
/// [`EmbedError::Unusable`], [`EmbedError::Dimensions`].
pub fn check_vectors(
    model: &str,
    asked: usize,
    expected: Option<usize>,
    vectors: Vec<Vec<f32>>,
) -> Result<Vec<Vec<f32>>, EmbedError> {
    let unusable = |what: String| EmbedError::Unusable { model: model.to_owned(), what };
    if vectors.len() != asked {
        return Err(unusable(format!("{} vectors for {asked} texts", vectors.len())));
    }
    let expected = expected.or_else(|| vectors.first().map(Vec::len)).unwrap_or(0);
    if asked > 0 && !(1..=MAX_DIMENSIONS).contains(&expected) {
        return Err(unusable(format!("a vector of {expected} numbers; 1 to {MAX_DIMENSIONS} are possible")));
    }
    for vector in &vectors {
        if vector.len() != expected {
            return Err(EmbedError::Dimensions { model: model.to_owned(), expected, got: vector.len() });
        }
        if !vector.iter().all(|value| value.is_finite()) {
            return Err(unusable("a number in it is infinite or none".to_owned()));
        }
    }
    Ok(vectors)
}

/// Returns the part of a text that is embedded.
#[must_use]
pub fn embedded_part(text: &str) -> &str {
    let mut end = text.len().min(MAX_EMBEDDED_TEXT_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or(text)
}
