//! What the session has seen of the project's files.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use journeyman_protocol::{ContentHash, RelPath};

/// The hash of each file as the session last read or wrote it, so that a whole file is never replaced by
/// a model that doesn't know what is in it.
#[derive(Debug, Default)]
pub struct Seen {
    hashes: Mutex<HashMap<RelPath, ContentHash>>,
}

/// How a file stands to what was seen of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sight {
    /// It was never read.
    Never,
    /// It is not what was read.
    Changed,
    /// It is what was read.
    Current,
}

impl Seen {
    /// Remembers that `path` had the content with this hash.
    pub fn record(&self, path: RelPath, hash: ContentHash) {
        self.hashes.lock().unwrap_or_else(PoisonError::into_inner).insert(path, hash);
    }

    /// How `path`, whose content has this hash now, stands to what was seen.
    #[must_use]
    pub fn sight(&self, path: &RelPath, hash: &ContentHash) -> Sight {
        match self.hashes.lock().unwrap_or_else(PoisonError::into_inner).get(path) {
            None => Sight::Never,
            Some(seen) if seen == hash => Sight::Current,
            Some(_) => Sight::Changed,
        }
    }
}
