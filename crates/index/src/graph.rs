//! What depends on what.
//!
//! [`resolve`] tells which files of the project an import means, or which package of somebody else.

pub mod resolve;
