//! A model with its weight and deadline in a search.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use super::{
    Deadline, EmbedError, Embedder, EmbeddingPurpose, SimilarChunks, VectorView, check_vectors, embedded_part,
};

/// Maximum similar chunks of a query. Ranking by vectors beyond them is noise, and each costs a
/// little.
const MAX_SIMILAR_CHUNKS: usize = 1_000;

/// A model that embeds queries, and its weight.
#[derive(Clone)]
pub struct QueryEmbedder {
    /// The model.
    pub embedder: Arc<dyn Embedder>,
    /// The weight of vectors in a search, where words have weight 1.
    pub weight: f32,
    /// The time limit of a query's embedding.
    pub timeout: Duration,
}

impl std::fmt::Debug for QueryEmbedder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Vectorer").field("model", &self.embedder.name()).finish_non_exhaustive()
    }
}

impl QueryEmbedder {
    /// Returns the chunks of a project similar to a query. Takes no longer than the deadline, and
    /// does nothing if there are no vectors to compare with.
    ///
    /// # Errors
    /// [`EmbedError`] if the query couldn't be embedded; the search then continues without vectors.
    pub fn similar_chunks(
        &self,
        view: &VectorView,
        query: &str,
        stop: &AtomicBool,
    ) -> Result<SimilarChunks, EmbedError> {
        if view.chunk_count() == 0 {
            return Ok(SimilarChunks::default());
        }
        let deadline = Deadline { stop, until: Some(Instant::now() + self.timeout) };
        let vectors = self.embedder.embed(&[embedded_part(query)], EmbeddingPurpose::Query, deadline)?;
        let vectors = check_vectors(self.embedder.name(), 1, self.embedder.dimensions(), vectors)?;
        Ok(vectors.first().map(|vector| view.nearest_chunks(vector, MAX_SIMILAR_CHUNKS)).unwrap_or_default())
    }
}
