//! Whole files in fenced blocks, with or without remarks in place of what stays.

use crate::formats::{Format, Reading, Source};

/// Reads a reply.
pub(crate) fn read(source: &Source<'_>, lazy: bool) -> Reading {
    let format = if lazy { Format::Lazy } else { Format::Whole };
    Reading { format: Some(format), prose: source.reply.trim().to_owned(), ..Reading::default() }
}
