//! Vectors, where the user's configuration names a model for them.

use std::io::{IsTerminal as _, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use journeyman_host::Context as _;
use journeyman_host::config::{Environment, load_own};
use journeyman_host::embeddings::{Vectorer, vectorer};
use journeyman_index::vectors::{EmbedError, EmbeddingOptions, EmbeddingProgress, Similar, Stats, Vectors};
use journeyman_index::{Project, Snapshot};
use journeyman_policy::secrets::Redactor;
use serde_json::{Value, json};

use super::{BEAT, PATIENCE, threads};
use journeyman_host::HostError;
use journeyman_host::{ADMIN_CONFIG, configured_secrets};

/// A model and what is kept of it.
pub(super) struct Held {
    model: Vectorer,
    vectors: Vectors,
}

/// The vectors of the model that the user's own configuration names; a repository has no say.
pub(super) fn held(environment: &Environment, project: &Project) -> Result<Option<Held>, HostError> {
    let config = load_own(environment, Some(Path::new(ADMIN_CONFIG)))?;
    let redactor = Arc::new(Redactor::new(configured_secrets(environment, &config)));
    let Some(model) = vectorer(&config, environment, redactor)? else { return Ok(None) };
    let vectors = Vectors::open(project.index().directory(), &*model.embedder).context("the vectors")?;
    if let Some(why) = vectors.damage_report() {
        tell!("note: {why}");
    }
    Ok(Some(Held { model, vectors }))
}

impl Held {
    /// Embeds what has no vector yet; says whether that went well.
    pub(super) fn follow(&self, project: &Project, snapshot: &Snapshot) -> Result<bool, HostError> {
        let (start, last) = (Instant::now(), AtomicU64::new(0));
        let shows = std::io::stderr().is_terminal();
        let progress = |progress: EmbeddingProgress| {
            let now = u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX);
            if shows && now >= PATIENCE && now >= last.load(Ordering::Relaxed) + BEAT {
                last.store(now, Ordering::Relaxed);
                let EmbeddingProgress { done, of } = progress;
                write!(std::io::stderr(), "\rembedding: {done} of {of} files\u{1b}[K").ok();
            }
        };
        let stop = AtomicBool::new(false);
        let options = EmbeddingOptions {
            threads: threads(),
            progress: &progress,
            stop: &stop,
            redactor: project.index().redactor(),
        };
        if let Err(error) = self.vectors.verify() {
            tell!("note: {error}");
        }
        let report = self.vectors.follow(snapshot, project.source(), &*self.model.embedder, options);
        let report = report.context("the vectors")?;
        if last.into_inner() > 0 {
            write!(std::io::stderr(), "\r\u{1b}[K").ok();
        }
        if report.left_to_another {
            tell!("note: another process is embedding; this is what there is so far");
        }
        if report.cut {
            tell!("warning: the project has more text than can have vectors; the rest is found by its words");
        }
        if let Some(error) = &report.failed {
            tell!("warning: not everything has a vector: {error}");
        }
        Ok(report.failed.is_none())
    }

    pub(super) fn stats(&self, snapshot: &Snapshot) -> Stats {
        self.vectors.stats(snapshot)
    }

    /// What is kept, for people.
    pub(super) fn told(&self, snapshot: &Snapshot) -> String {
        let Stats { model, dimensions, embedded, chunks, kept, bytes } = self.stats(snapshot);
        let dimensions = dimensions.map_or_else(|| "?".to_owned(), |count| count.to_string());
        format!(
            "vectors by {model}: {dimensions} numbers each, {embedded} of {chunks} stretches ({kept} kept, {bytes} bytes), \
             which count {} where words count 1",
            self.model.weight
        )
    }

    /// The same for programs.
    pub(super) fn object(&self, snapshot: &Snapshot) -> Value {
        let Stats { model, dimensions, embedded, chunks, kept, bytes } = self.stats(snapshot);
        json!({
            "model": model, "dimensions": dimensions, "embedded": embedded, "chunks": chunks, "kept": kept,
            "bytes": bytes, "weight": self.model.weight,
        })
    }

    /// What is like a query, and what that counts.
    pub(super) fn similar(&self, snapshot: &Snapshot, query: &str) -> Result<(Similar, f32), EmbedError> {
        let view = self.vectors.view(snapshot);
        Ok((self.model.similar(&view, query, &AtomicBool::new(false))?, self.model.weight))
    }
}

/// What is like a query; nothing, and a word about it, where that can't be known.
pub(super) fn similar(
    environment: &Environment,
    project: &Project,
    snapshot: &Snapshot,
    query: &str,
) -> Option<(Similar, f32)> {
    let found = held(environment, project).map_err(|error| error.to_string()).and_then(|held| {
        held.map(|held| held.similar(snapshot, query).map_err(|error| error.to_string())).transpose()
    });
    found.unwrap_or_else(|error| {
        tell!("note: vectors don't count this time: {error}");
        None
    })
}
