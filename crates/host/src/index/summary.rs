//! The size and the parts of an index.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use journeyman_index::snapshot::Totals;
use journeyman_index::store::IndexReport;
use journeyman_index::vectors::VectorStore;
use journeyman_index::{ProjectIndex, Snapshot};
use serde_json::{Map, Value, json};

use crate::{Context as _, HostError};

/// An index after it was brought up to date.
#[derive(Debug)]
pub struct IndexSummary {
    /// The numbers of files, symbols and so on.
    pub totals: Totals,
    /// The work of the update.
    pub report: IndexReport,
    /// The time that the update took.
    pub took: Duration,
    /// The directory of the index.
    pub directory: PathBuf,
    /// The number of files of each language, the most frequent first.
    pub languages: Vec<(&'static str, usize)>,
}

impl IndexSummary {
    /// Summarizes an index that was brought up to date.
    #[must_use]
    pub fn new(project: &ProjectIndex, snapshot: &Snapshot, report: IndexReport, took: Duration) -> Self {
        Self {
            totals: snapshot.totals(),
            report,
            took,
            directory: project.index().directory().to_owned(),
            languages: count_languages(snapshot),
        }
    }

    /// Returns the summary as JSON; `vectors` is what the index has of them.
    #[must_use]
    pub fn to_json(&self, vectors: Option<Value>) -> Value {
        let Self { totals, report, took, directory, languages } = self;
        let languages: Map<_, _> =
            languages.iter().map(|(name, files)| ((*name).to_owned(), (*files).into())).collect();
        json!({
            "files": totals.files, "bytes": totals.bytes, "chunks": totals.chunks, "symbols": totals.symbols,
            "read": report.read, "gone": report.gone, "unreadable": report.unreadable, "cut": report.cut,
            "seconds": took.as_secs_f64(), "directory": directory, "languages": languages,
            "vectors": vectors,
        })
    }
}

/// Removes everything that an index has, so that the next update builds it anew.
///
/// # Errors
/// [`HostError::Failed`] where the index or its vectors can't be removed.
pub fn rebuild_index(project: &ProjectIndex) -> Result<(), HostError> {
    project.index().clear().context("the index")?;
    VectorStore::remove_all(project.index().directory()).context("the vectors")
}

fn count_languages(snapshot: &Snapshot) -> Vec<(&'static str, usize)> {
    let mut counts = BTreeMap::new();
    for (_, file) in snapshot.files() {
        let name = file.record.language.map_or("other", |language| language.name());
        *counts.entry(name).or_insert(0) += 1;
    }
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by_key(|(name, files)| (Reverse(*files), *name));
    counts
}
