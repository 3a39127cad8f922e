//! Grammars behind one table.
//!
//! [`language`] tells which language a file is in, [`parse`] gives its syntax tree within bounds, and [`outline`] what
//! it defines. [`facts`] gives that together with the names that it uses and what it brings in, from one walk, and takes
//! documents ([`sections`]) and SQL apart, too. [`shell`] takes a shell command apart. A language is one row of the table
//! and one query.
//!
//! Pure: no files, no clock, no environment, and no panic on any input.

mod doc;
pub mod facts;
mod hostile;
pub mod imports;
pub mod language;
pub mod memory;
pub mod outline;
pub mod parse;
mod pattern;
pub mod references;
pub mod sections;
pub mod shell;
mod sql;
mod visibility;
mod walk;

pub use tree_sitter::{Node, TreeCursor};
