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
mod line_chooser;
mod memory_corpus;
mod parse;
mod qualified_name;
mod rank;
mod score;
mod signals;

pub use corpus::{
    ChunkEntry, Corpus, Field, FieldTotals, FileEntry, LiveFile, NameCondition, PostingLists, SymbolEntry,
};
pub use definitions::{Definition, MatchQuality, definitions_named, find_definitions};
pub use document::{Posting, Purpose, full_name};
pub use line_chooser::LineChooser;
pub use memory_corpus::MemoryCorpus;
pub use parse::{MAX_QUERY_BYTES, MAX_TERMS, MentionedFile, Query, Term, Topic};
pub use qualified_name::{QualifiedName, ScopeFit};
pub use rank::{FileHit, MAX_ANSWER_FILES, Passage, RankReason, SearchResult, Searcher};
pub use signals::{QueryContext, Signal};

pub(crate) use bm25::{K1, inverse_document_frequency};
pub(crate) use document::{is_source, is_ui_component, is_within_scope};
pub(crate) use parse::is_trailer;
