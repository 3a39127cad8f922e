//! SEARCH/REPLACE blocks between markers.

use crate::formats::{Format, Reading, Source};

/// Reads a reply.
pub(crate) fn read(source: &Source<'_>) -> Reading {
    Reading { format: Some(Format::Blocks), prose: source.reply.trim().to_owned(), ..Reading::default() }
}
