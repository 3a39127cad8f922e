//! Syntax of source files, documents and shell commands.
//!
//! [`parse`] builds the syntax tree of a text with tree-sitter, within bounds, so that no text can
//! take unbounded time or reach a known fault of a grammar's C code. [`outline`] lists the symbols
//! that a text defines. [`analysis`] adds references, imports and documentation, from one walk of
//! the tree; it also covers documents (Markdown, reStructuredText, AsciiDoc) and SQL, which are
//! read without a grammar. [`highlight`] finds the tokens that are shown in colours. [`shell`]
//! parses shell commands for the judgement of what they do.
//!
//! A [`language`] is a row of a table, a query file and a cargo feature. A language whose feature
//! is off is still recognised, but not parsed: [`Language::is_built_in`] returns false for it, and
//! [`ParseError::NoGrammar`] is returned.
//!
//! The crate is pure: it reads no files, no clock and no environment, and doesn't panic on any
//! input. It resolves nothing across files; that is the index's work.
//!
//! ```
//! use journeyman_syntax::{language::Language, outline::outline, parse::parse};
//!
//! let language = Language::detect("src/shop.rs", "fn open() {}").unwrap();
//! if language.is_built_in() {
//!     let tree = parse(language, "fn open() {}").unwrap();
//!     assert_eq!(outline(&tree, "fn open() {}")[0].name, "open");
//! }
//! ```
//!
//! [`Language::is_built_in`]: language::Language::is_built_in
//! [`ParseError::NoGrammar`]: parse::ParseError::NoGrammar

pub mod analysis;
mod c_macros;
mod doc_comments;
pub mod highlight;
pub mod imports;
pub mod language;
mod node_kinds;
pub mod outline;
mod outline_query;
pub mod parse;
pub mod references;
mod rust_macros;
mod scanner_faults;
pub mod sections;
pub mod shell;
mod sql;
mod symbol;
mod syntax_analysis;
mod visibility;
mod walk;

pub use tree_sitter::{Node, TreeCursor};
