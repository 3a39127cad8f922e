//! Search: files, passages and definitions that match a query, ranked, with the reasons of each
//! result.
//!
//! [`Corpus`] is the interface of an index for ranking; [`Memory`] is an index in memory. A
//! [`Searcher`] answers a [`Query`], with [`History`](crate::history::History) if there is one.
//! `docs/search.md` describes the ranking and its measured quality.

mod corpus;
mod definitions;
mod memory;
mod parse;
mod rank;
mod score;
mod signals;

pub use corpus::{
    ChunkEntry, Corpus, Field, FieldTotals, FileEntry, LivingFile, NameCondition, Posting, PostingLists,
    Purpose, SymbolEntry, full_name,
};
pub use definitions::{Definition, Match, definitions};
pub use memory::Memory;
pub use parse::{MAX_QUERY, MAX_TERMS, MentionedFile, Query, Term};
pub use rank::{Answer, Context, FileHit, MAX_LIMIT, Passage, Reason, Searcher};
pub use signals::Signal;

pub(crate) use corpus::within;
pub(crate) use parse::is_trailer;
pub(crate) use score::{K1, idf};
pub(crate) use signals::{is_component, is_source};
