//! An index of a code base: files, text, symbols, references, imports, history and, on request,
//! vectors, with one ranked search over all of them.
//!
//! [`analyser`] analyses one file, as a pure function, so that an update costs only the changed
//! files. [`segment`] stores analyses in immutable files that are mapped, not loaded; an [`Index`]
//! is a list of segments with their dead files, and a [`Snapshot`] its state at one moment.
//! [`graph`] has the dependencies between files, [`docs`] the symbols that documentation mentions,
//! [`pattern`] narrows regex searches, and [`query`] ranks files for a query. A [`ProjectIndex`]
//! puts these together for a work tree; [`watch`] updates it as files change.
//!
//! ```no_run
//! use std::num::NonZero;
//! use std::path::Path;
//! use std::sync::atomic::AtomicBool;
//!
//! use journeyman_index::ProjectIndex;
//! use journeyman_index::query::{Query, QueryContext, Searcher};
//! use journeyman_index::store::RefreshOptions;
//! use journeyman_index::tokens::Tokenizer;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let project = ProjectIndex::open(Path::new("."), Path::new("/tmp/index"), 2)?;
//! let (progress, stop) = (|_| (), AtomicBool::new(false));
//! let threads = NonZero::<usize>::MIN;
//! project.refresh(RefreshOptions { threads, wait: true, progress: &progress, stop: &stop })?;
//! let query = Query::new("where are sessions resumed", &mut Tokenizer::new());
//! let snapshot = project.index().snapshot();
//! let answer = Searcher::new().search(&*snapshot, None, &query, QueryContext::default(), 10);
//! # Ok(()) }
//! ```
//!
//! The index doesn't type-check: references are resolved by name. It opens no connection; models
//! that are asked over the network live above this crate, behind [`vectors::Embedder`].

pub mod analyser;
pub mod analysis;
mod bit_set;
pub mod docs;
mod error;
pub mod graph;
pub mod history;
mod memory_release;
pub mod overview;
pub mod pattern;
pub mod project;
pub mod query;
pub mod segment;
pub mod snapshot;
pub mod source;
pub mod store;
pub mod texts;
pub mod tokens;
pub mod vectors;
pub mod watch;
mod write_lock;

pub use error::IndexError;
pub use project::ProjectIndex;
pub use snapshot::Snapshot;
pub use store::Index;
