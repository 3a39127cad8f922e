//! Grammars behind one table.
//!
//! [`language`] tells which language a file is in, [`parse`] gives its syntax tree within bounds, and [`outline`] what
//! it defines. [`shell`] takes a shell command apart. A language is one row of the table and one query.
//!
//! Pure: no files, no clock, no environment, and no panic on any input.

mod hostile;
pub mod language;
pub mod outline;
pub mod parse;
pub mod shell;

pub use tree_sitter::{Node, TreeCursor};
