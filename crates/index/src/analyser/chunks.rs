//! Cutting a text into chunks, each of which is searched as one document.

use std::ops::Range;

/// Lines of a chunk: the best size in experiments; 20 and 80 were no worse by more than chance.
const CHUNK_LINES: u32 = 40;
/// A cut may be moved by this many lines to where a symbol begins.
const MAX_CUT_SHIFT_LINES: u32 = 12;

/// Cuts a number of lines into chunks, at the beginnings of symbols where one is near. `starts` are
/// the first lines of symbols, 1-based, in any order. The ranges are of 1-based lines, and
/// contiguous.
#[must_use]
pub(super) fn cut_at_symbols(lines: u32, starts: &[u32]) -> Vec<Range<u32>> {
    let mut starts = starts.to_vec();
    starts.sort_unstable();
    starts.dedup();
    let mut chunks = Vec::new();
    let mut first = 1;
    while first <= lines {
        let wanted = first + CHUNK_LINES;
        let next = if wanted + MAX_CUT_SHIFT_LINES > lines + 1 {
            lines + 1
        } else {
            let near = |line: &&u32| line.abs_diff(wanted) <= MAX_CUT_SHIFT_LINES;
            starts.iter().filter(near).min_by_key(|line| line.abs_diff(wanted)).copied().unwrap_or(wanted)
        };
        chunks.push(first..next);
        first = next;
    }
    chunks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_come_where_symbols_begin() {
        assert_eq!(cut_at_symbols(0, &[]), []);
        assert_eq!(cut_at_symbols(30, &[5]).as_slice(), std::slice::from_ref(&(1..31)));
        assert_eq!(cut_at_symbols(100, &[]), [1..41, 41..101 - 20, 81..101]);
        assert_eq!(cut_at_symbols(100, &[45, 38, 200]), [1..38, 38..78, 78..101]);
    }

    #[test]
    fn every_line_is_in_one_chunk() {
        for lines in 0..400 {
            let starts: Vec<u32> = (1..lines).filter(|line| line * 7 % 11 == 0).collect();
            let chunks = cut_at_symbols(lines, &starts);
            let all: Vec<u32> = chunks.into_iter().flatten().collect();
            assert_eq!(all, (1..=lines).collect::<Vec<_>>());
        }
    }
}
