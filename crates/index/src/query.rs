//! Asking: what the words of a query find, ranked, each result with its reasons.
//!
//! [`Corpus`] is what ranking has to know of an index, however that is kept.

mod corpus;

pub use corpus::{ChunkEntry, Corpus, Field, FileEntry, Like, SymbolEntry, Totals};
