//! Patches in the envelope `*** Begin Patch` (V4A).

use crate::formats::{Format, Reading, Source};

/// Reads a reply.
pub(crate) fn read(source: &Source<'_>) -> Reading {
    Reading { format: Some(Format::Patch), prose: source.reply.trim().to_owned(), ..Reading::default() }
}
