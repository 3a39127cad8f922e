//! Vectors of chunks, for those who turn them on.
//!
//! An [`Embedder`] turns texts into vectors: [`Model2Vec`] by a table of tokens on this machine, others by asking a
//! server (they live above this crate, which opens no connection). [`Vectors`] keeps one model's vectors in immutable
//! mapped files, keyed by the text of a chunk, follows a [`Snapshot`](crate::Snapshot) and embeds only what it doesn't
//! have. A [`View`] holds them against a query's vector: every one, exactly. What that adds to the ranking is a signal
//! that counts nothing until somebody gives it a weight; `docs/vectors.md` tells how, and what was measured.
//!
//! Nothing here waits in a query's way: following runs when the index is made, and a query without a vector is
//! answered without.

mod dot;
mod follow;
mod model2vec;
mod part;
mod quantise;
mod store;
mod vectorer;
mod view;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

pub use follow::{Options, Progress, Report};
pub use model2vec::{Model2Vec, ModelFault};
pub use quantise::{Quantised, quantise};
pub use store::{Stats, Vectors};
pub use vectorer::Vectorer;
pub use view::{Similar, View};

/// Dimensions that a vector may have: the largest known models have 4,096.
pub const MAX_DIMENSIONS: usize = 8_192;
/// Chunks that have a vector, at most. All of them are compared with each query.
pub const MAX_VECTORS: usize = 1 << 20;
/// Bytes of a text that are embedded: five chunks of an ordinary length, and more than most models read.
pub const MAX_TEXT: usize = 8 << 10;

/// What a text is embedded for. Some models want to be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// To be found.
    Document,
    /// To find.
    Query,
}

/// How long somebody waits.
#[derive(Debug, Clone, Copy)]
pub struct Patience<'a> {
    /// Set to stop early.
    pub stop: &'a AtomicBool,
    /// When it is too late.
    pub until: Option<Instant>,
}

impl Patience<'_> {
    /// Whether to go on.
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

/// Why there are no vectors of some texts.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EmbedError {
    /// Somebody asked to stop.
    #[error("stopped")]
    Stopped,
    /// It took too long.
    #[error("the embedding model didn't answer in time")]
    TooLate,
    /// A vector has another length than those that are kept.
    #[error(
        "«{model}» gives vectors of {got} numbers where those kept have {expected}: it isn't the model that it was; `jm index --rebuild` makes all anew"
    )]
    Dimensions {
        /// The model.
        model: String,
        /// How many numbers a vector should have.
        expected: usize,
        /// How many it has.
        got: usize,
    },
    /// A vector isn't one.
    #[error("«{model}» gave no usable vector: {what}")]
    Unusable {
        /// The model.
        model: String,
        /// What is wrong with it.
        what: String,
    },
    /// The model couldn't be asked, or refused.
    #[error("«{model}» can't be asked: {what}")]
    Failed {
        /// The model.
        model: String,
        /// What was said, and what can be done.
        what: String,
    },
}

/// Turns texts into vectors.
pub trait Embedder: Send + Sync {
    /// Its name, for people.
    fn name(&self) -> &str;

    /// What its vectors are of: those of two embedders may be compared if and only if this is the same.
    fn identity(&self) -> [u8; 32];

    /// How many numbers a vector has; `None` where the first answer will tell.
    fn dimensions(&self) -> Option<usize>;

    /// How many texts it likes to be given at once, 1 or more.
    fn batch(&self) -> usize;

    /// How many threads may ask it at the same time, 1 or more.
    fn concurrency(&self) -> usize {
        1
    }

    /// A vector of each text, in order, all of one length. A text in which nothing is known gives zeros.
    ///
    /// # Errors
    /// [`EmbedError`]; then there is no vector of any of them.
    fn embed(
        &self,
        texts: &[&str],
        purpose: Purpose,
        patience: Patience<'_>,
    ) -> Result<Vec<Vec<f32>>, EmbedError>;
}

/// Checks what an embedder gave, however it came by it.
///
/// # Errors
/// [`EmbedError::Unusable`], [`EmbedError::Dimensions`].
pub fn checked(
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

/// The beginning of a text that is embedded.
#[must_use]
pub fn beginning(text: &str) -> &str {
    let mut end = text.len().min(MAX_TEXT);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or(text)
}
