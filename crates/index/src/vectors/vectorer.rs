//! A model and what it counts.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use super::{EmbedError, Embedder, Patience, Purpose, Similar, View, beginning, checked};

/// Chunks that may be like a query. Ranking by vectors beyond them is noise, and each costs a little.
const MOST_LIKE: usize = 1_000;

/// A model that makes vectors, and what they count.
#[derive(Clone)]
pub struct Vectorer {
    /// The model.
    pub embedder: Arc<dyn Embedder>,
    /// What vectors count in a search, where words count 1.
    pub weight: f32,
    /// How long a query waits.
    pub timeout: Duration,
}

impl std::fmt::Debug for Vectorer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Vectorer").field("model", &self.embedder.name()).finish_non_exhaustive()
    }
}

impl Vectorer {
    /// What of a project is like a query. Nothing that takes longer than the deadline, and nothing at all where there are
    /// no vectors to compare with.
    ///
    /// # Errors
    /// [`EmbedError`] where the query has no vector; the search goes on without.
    pub fn similar(&self, view: &View, query: &str, stop: &AtomicBool) -> Result<Similar, EmbedError> {
        if view.chunks() == 0 {
            return Ok(Similar::default());
        }
        let patience = Patience { stop, until: Some(Instant::now() + self.timeout) };
        let vectors = self.embedder.embed(&[beginning(query)], Purpose::Query, patience)?;
        let vectors = checked(self.embedder.name(), 1, self.embedder.dimensions(), vectors)?;
        Ok(vectors.first().map(|vector| view.nearest(vector, MOST_LIKE)).unwrap_or_default())
    }
}
