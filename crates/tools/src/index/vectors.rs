//! Search by vectors, if the user turned it on: the parts of the project that resemble a query.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use journeyman_index::Snapshot;
use journeyman_index::vectors::{QueryEmbedder, SimilarChunks, VectorStore, VectorView};
use journeyman_policy::secrets::Redactor;

/// Time after a failure in which the model isn't called again: each call may take until its
/// deadline.
const RETRY_AFTER: Duration = Duration::from_secs(60);

/// Returns the model that the user configured, an error if it can't be used, or `None` if none is
/// configured.
pub type LoadEmbedder = dyn Fn() -> Result<Option<QueryEmbedder>, String> + Send + Sync;

/// Search by vectors. The model is loaded for the first query, because loading takes a while.
pub(super) struct VectorSearch {
    find: Arc<LoadEmbedder>,
    /// The directory of the project's vectors.
    directory: PathBuf,
    state: Mutex<VectorState>,
}

#[derive(Default)]
enum VectorState {
    #[default]
    Unopened,
    /// No model is configured, or it couldn't be opened.
    Without,
    Open(Box<OpenVectors>),
}

struct OpenVectors {
    model: QueryEmbedder,
    vectors: VectorStore,
    view: Option<(Arc<Snapshot>, VectorView)>,
    failed: Option<Instant>,
}

impl VectorSearch {
    pub(super) fn new(find: Arc<LoadEmbedder>, directory: PathBuf) -> Self {
        Self { find, directory, state: Mutex::default() }
    }

    /// Returns the same search for a copy of the project, whose vectors are found by file contents.
    pub(super) fn for_copy(&self) -> Self {
        Self::new(Arc::clone(&self.find), self.directory.clone())
    }

    /// Returns the results similar to a query with their weight, and a note if they are
    /// unavailable. Nothing is sent that the redactor knows for a secret.
    pub(super) fn similar_files(
        &self,
        snapshot: &Arc<Snapshot>,
        query: &str,
        redactor: &Redactor,
    ) -> (Option<(SimilarChunks, f32)>, Option<String>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let mut note = None;
        if matches!(*state, VectorState::Unopened) {
            let opened = self.open_vectors();
            *state = opened.unwrap_or_else(|error| {
                note = Some(error);
                VectorState::Without
            });
        }
        let VectorState::Open(open) = &mut *state else { return (None, note) };
        let OpenVectors { model, vectors, view, failed } = &mut **open;
        if failed.is_some_and(|at| at.elapsed() < RETRY_AFTER) {
            return (None, None);
        }
        if view.as_ref().is_none_or(|(known, _)| !Arc::ptr_eq(known, snapshot)) {
            *view = Some((Arc::clone(snapshot), vectors.view(snapshot)));
        }
        let Some((_, view)) = view else { return (None, None) };
        match model.similar_chunks(view, &redactor.redact(query), &AtomicBool::new(false)) {
            Ok(similar) => {
                *failed = None;
                (Some((similar, model.weight)), None)
            }
            Err(error) => {
                *failed = Some(Instant::now());
                (None, Some(error.to_string()))
            }
        }
    }

    fn open_vectors(&self) -> Result<VectorState, String> {
        let Some(model) = (self.find)()? else { return Ok(VectorState::Without) };
        let vectors =
            VectorStore::open(&self.directory, &*model.embedder).map_err(|error| error.to_string())?;
        Ok(VectorState::Open(Box::new(OpenVectors { model, vectors, view: None, failed: None })))
    }
}
