//! Search: files, passages and definitions that match a query, ranked, with the reasons of each
//! result.
//!
//! [`Corpus`] is the interface of an index for ranking; [`Memory`] is an index in memory. A
//! [`Searcher`] answers a [`Query`], with [`History`](crate::history::History) if there is one.
//! `docs/search.md` describes the ranking and its measured quality.

mod clean;
mod corpus;
mod definitions;
mod memory;
mod rank;
mod score;
mod signals;

pub use clean::{MAX_QUERY, MAX_TERMS, Place, Query, Term};
pub use corpus::{
    ChunkEntry, Corpus, Field, FileEntry, Like, Lists, LivingFile, Posting, Purpose, SymbolEntry, Totals,
    full_name,
};
pub use definitions::{Definition, Match, definitions};
pub use memory::Memory;
pub use rank::{Answer, Context, FileHit, MAX_LIMIT, Passage, Reason, Searcher};
pub use signals::Signal;

pub(crate) use clean::is_trailer;
pub(crate) use corpus::within;
pub(crate) use score::{K1, idf};
pub(crate) use signals::{is_component, is_source};
