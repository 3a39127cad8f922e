//! Search: files, passages and definitions that match a query, ranked, with the reasons of each
//! result.
//!
//! [`Corpus`] is the interface of an index for ranking; [`MemoryCorpus`] is an index in memory. A
//! [`Searcher`] answers a [`Query`], with [`History`](crate::history::History) if there is one.
//! `docs/search.md` describes the ranking and its measured quality.

mod bm25;
mod corpus;
mod definitions;
mod document;
mod lines;
mod memory;
mod parse;
mod qualified;
mod rank;
mod score;
mod signals;

pub use corpus::{
    ChunkEntry, Corpus, Field, FieldTotals, FileEntry, LivingFile, NameCondition, PostingLists, SymbolEntry,
};
pub use definitions::{Definition, Match, definitions_called, find_definitions};
pub use document::{Posting, Purpose, full_name};
pub use lines::LineChooser;
pub use memory::MemoryCorpus;
pub use parse::{MAX_QUERY_BYTES, MAX_TERMS, MentionedFile, Query, Term, Topic};
pub use qualified::{QualifiedName, ScopeFit};
pub use rank::{Answer, FileHit, MAX_LIMIT, Passage, Reason, Searcher};
pub use signals::{Context, Signal};

pub(crate) use bm25::{K1, inverse_document_frequency};
pub(crate) use document::{is_component, is_source, is_within_scope};
pub(crate) use parse::is_trailer;
