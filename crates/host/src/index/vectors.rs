//! The vectors of an index, if the user's configuration names an embedding model.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use journeyman_index::vectors::{
    EmbedError, EmbeddingOptions, EmbeddingProgress, SimilarChunks, VectorStats, VectorStore,
};
use journeyman_index::{ProjectIndex, Snapshot};
use journeyman_policy::secrets::Redactor;
use serde_json::{Value, json};

use super::open::{CodeIndex, index_threads};
use crate::config::{Environment, load_without_project};
use crate::embeddings::{QueryEmbedder, load_query_embedder};
use crate::{ADMIN_CONFIG, Context as _, HostError, configured_secrets};

/// An embedding model with its stored vectors.
pub struct EmbeddedIndex {
    model: QueryEmbedder,
    vectors: VectorStore,
}

/// Opens the vectors of the model that the user's own configuration names; a repository can't
/// choose it. `note` gets what people should know.
///
/// # Errors
/// [`HostError`] where the model can't be loaded or the vectors can't be read.
pub fn open_embedded_index(
    environment: &Environment,
    project: &ProjectIndex,
    note: fn(&str),
) -> Result<Option<EmbeddedIndex>, HostError> {
    let config = load_without_project(environment, Some(Path::new(ADMIN_CONFIG)))?;
    let redactor = Arc::new(Redactor::new(configured_secrets(environment, &config)));
    let Some(model) = load_query_embedder(&config, environment, redactor)? else { return Ok(None) };
    let vectors = VectorStore::open(project.index().directory(), &*model.embedder).context("the vectors")?;
    if let Some(why) = vectors.damage_report() {
        note(&format!("note: {why}"));
    }
    Ok(Some(EmbeddedIndex { model, vectors }))
}

impl EmbeddedIndex {
    /// Embeds the chunks that have no vector yet. Returns true if all of them have one then.
    ///
    /// # Errors
    /// [`HostError::Failed`] where the vectors can't be written.
    pub fn embed_missing(
        &self,
        project: &ProjectIndex,
        snapshot: &Snapshot,
        progress: &(dyn Fn(EmbeddingProgress) + Sync),
        note: fn(&str),
    ) -> Result<bool, HostError> {
        let stop = AtomicBool::new(false);
        let options = EmbeddingOptions {
            threads: index_threads(),
            progress,
            stop: &stop,
            redactor: project.index().redactor(),
        };
        if let Err(error) = self.vectors.verify() {
            note(&format!("note: {error}"));
        }
        let report =
            self.vectors.embed_snapshot(snapshot, project.work_tree(), &*self.model.embedder, options);
        let report = report.context("the vectors")?;
        if report.left_to_another {
            note("note: another process is embedding; this is what there is so far");
        }
        if report.cut {
            note("warning: the project has more text than can have vectors; the rest is found by its words");
        }
        if let Some(error) = &report.failed {
            note(&format!("warning: not everything has a vector: {error}"));
        }
        Ok(report.failed.is_none())
    }

    fn stats(&self, snapshot: &Snapshot) -> VectorStats {
        self.vectors.stats(snapshot)
    }

    /// Describes the stored vectors in one line.
    #[must_use]
    pub fn describe(&self, snapshot: &Snapshot) -> String {
        let VectorStats { model, dimensions, embedded, chunks, kept, bytes } = self.stats(snapshot);
        let dimensions = dimensions.map_or_else(|| "?".to_owned(), |count| count.to_string());
        format!(
            "vectors by {model}: {dimensions} numbers each, {embedded} of {chunks} chunks ({kept} kept, {bytes} bytes), \
             which count {} where words count 1",
            self.model.weight
        )
    }

    /// Describes the stored vectors as JSON.
    #[must_use]
    pub fn to_json(&self, snapshot: &Snapshot) -> Value {
        let VectorStats { model, dimensions, embedded, chunks, kept, bytes } = self.stats(snapshot);
        json!({
            "model": model, "dimensions": dimensions, "embedded": embedded, "chunks": chunks, "kept": kept,
            "bytes": bytes, "weight": self.model.weight,
        })
    }

    /// Returns the chunks similar to a query, and the weight of the similarity.
    fn find_similar_chunks(
        &self,
        snapshot: &Snapshot,
        query: &str,
    ) -> Result<(SimilarChunks, f32), EmbedError> {
        let view = self.vectors.view(snapshot);
        Ok((self.model.similar_chunks(&view, query, &AtomicBool::new(false))?, self.model.weight))
    }
}

/// Returns the chunks similar to a query and the weight of the similarity, if the index has
/// vectors.
pub(super) fn find_similar_chunks(index: &CodeIndex, query: &str) -> Option<(SimilarChunks, f32)> {
    let CodeIndex { project, snapshot, environment, note, .. } = index;
    let held = open_embedded_index(environment, project, *note).map_err(|error| error.to_string());
    let found = held.and_then(|held| {
        held.map(|held| held.find_similar_chunks(snapshot, query).map_err(|error| error.to_string()))
            .transpose()
    });
    found.unwrap_or_else(|error| {
        note(&format!("note: vectors don't count this time: {error}"));
        None
    })
}
