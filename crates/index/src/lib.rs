//! What a whole code base knows.
//!
//! [`analyse`] takes one file apart: its words, symbols, references, imports and sections. It is a pure function, so a
//! changed file costs what that file costs. [`segment`] keeps what was found in immutable files that are mapped, not
//! loaded; an index is a list of them with what has died since.

pub mod analyse;
mod bits;
pub mod docs;
mod error;
pub mod facts;
pub mod graph;
pub mod history;
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

pub use error::IndexError;
pub use project::Project;
pub use snapshot::Snapshot;
pub use store::Index;
