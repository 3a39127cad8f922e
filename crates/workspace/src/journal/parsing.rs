//! Reading of a journal's bytes: whole lines, damaged ones, and what a crash tore.

use std::fs;
use std::path::Path;

use crate::journal::line_format::{parse_checked_line, push_line};
use crate::journal::record::JournalLine;

/// The lines in a journal's bytes.
#[derive(Debug, Default)]
pub(crate) struct ParsedLines {
    pub(crate) lines: Vec<JournalLine>,
    /// The end of the last whole line, from the beginning of the file.
    pub(crate) whole: u64,
    pub(crate) tail: JournalTail,
    /// In how many places before that there are lines which aren't as they were written.
    pub(crate) damaged: usize,
}

/// The bytes after the last whole line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum JournalTail {
    #[default]
    Nothing,
    /// A line that a crash tore while it was written: it has no end, or blocks of the disk are
    /// missing in it.
    Torn,
    /// Complete lines that aren't as they were written.
    Damaged,
}

/// Takes the bytes from a place of a journal apart.
pub(crate) fn parse_lines(text: &[u8], from: u64) -> ParsedLines {
    let mut read = ParsedLines { whole: from, ..ParsedLines::default() };
    let (mut place, mut last) = (from, 0);
    let mut tail: &[u8] = &[];
    for raw in text.split_inclusive(|&byte| byte == b'\n') {
        let start = place;
        place += raw.len() as u64;
        let Some(line) = raw.strip_suffix(b"\n").and_then(parse_checked_line::<JournalLine>) else {
            continue;
        };
        if start > read.whole {
            read.damaged += 1;
            read.lines.push(JournalLine::Damaged(last));
        }
        last = line.id().max(last);
        read.lines.push(line);
        read.whole = place;
        tail = usize::try_from(place - from).ok().and_then(|at| text.get(at..)).unwrap_or_default();
    }
    if read.lines.is_empty() {
        tail = text;
    }
    read.tail = match tail {
        [] => JournalTail::Nothing,
        [.., b'\n'] if !tail.contains(&0) && tail.len() > 1 => JournalTail::Damaged,
        _ => JournalTail::Torn,
    };
    read
}

/// Encodes lines as a journal stores them.
pub(crate) fn encode_lines(lines: &[JournalLine]) -> Result<Vec<u8>, serde_json::Error> {
    let mut text = Vec::new();
    for line in lines {
        push_line(&mut text, &serde_json::to_vec(line)?);
    }
    Ok(text)
}

/// Returns true if the journal at this path was there once and isn't any more, or is empty: what is
/// saved after its first line, and nowhere but in a project's own state directory, is there.
pub(crate) fn is_journal_gone(path: &Path) -> bool {
    let Some(state_dir) = path.parent().and_then(Path::parent) else { return false };
    let is_empty = fs::metadata(path).map_or(true, |found| found.len() == 0);
    is_empty && state_dir.join("stat-cache").exists() && state_dir.join("ledger").exists()
}
