//! Files and dependencies of the graph.

use journeyman_syntax::language::Language;

use crate::analysis::PurposeFlags;
use crate::segment::DocumentId;

/// Weight of a name, divided by the number of its possible definers.
pub const UNIQUE_NAME_WEIGHT: u32 = 256;
/// Minimum weight of names, in 256ths of a name with a single possible definer, for a file to
/// depend on one that it doesn't import: half a name, which is a name with no other definer.
pub const MIN_NAMES_WEIGHT: u32 = 128;
/// Bytes of a file's identity.
const IDENTITY_BYTES: usize = 16;

/// Identity of a file's content.
pub(super) type ContentIdentity = [u8; IDENTITY_BYTES];

/// A file of the graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Its path.
    pub path: Box<str>,
    /// Its number in the snapshot.
    pub file: DocumentId,
    /// Identity of its content.
    pub(super) mark: ContentIdentity,
    /// Its language, if its text was read.
    pub language: Option<Language>,
    /// Its purpose.
    pub flags: PurposeFlags,
}

/// A dependency of a file on another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Edge {
    /// Number of the other file.
    pub to: u32,
    /// The first line that imports it, 1-based; 0 if none does.
    pub line: u32,
    /// True if the other file is only declared as a part: a module of Rust's `mod`.
    pub part: bool,
    /// Weight of the names that it defines and this one uses, in 256ths ([`UNIQUE_NAME_WEIGHT`]).
    pub names: u32,
}

impl Edge {
    /// Returns true if a change of the other file may affect this one.
    #[must_use]
    pub fn is_dependency(&self) -> bool {
        self.line > 0 && !self.part || self.names >= MIN_NAMES_WEIGHT
    }

    /// Returns true if the files are neighbours at all.
    #[must_use]
    pub fn connects_neighbours(&self) -> bool {
        self.line > 0 || self.names >= MIN_NAMES_WEIGHT
    }

    /// Returns the strength of the dependency, for orders and for the importance of files.
    #[must_use]
    pub fn weight(&self) -> u32 {
        self.names.saturating_add(if self.line > 0 { UNIQUE_NAME_WEIGHT } else { 0 })
    }
}
