//! The changed lines of a file.

use std::ops::Range;

use journeyman_protocol::RelPath;
use journeyman_workspace::unified_diff;

/// Returns the 1-based lines of the new text that the old one lacks, as ranges in order.
#[must_use]
pub fn changed_lines(path: &RelPath, old: Option<&str>, new: &str) -> Vec<Range<u32>> {
    let diff = unified_diff(path, old.map(str::as_bytes), Some(new.as_bytes()));
    let mut ranges: Vec<Range<u32>> = Vec::new();
    // The number of the next line of the new text, within a hunk.
    let mut next: Option<u32> = None;
    for line in diff.lines() {
        if let Some(header) = line.strip_prefix("@@ ") {
            next = hunk_start(header);
            continue;
        }
        let Some(number) = next else { continue };
        match line.as_bytes().first() {
            Some(b'+') => match ranges.last_mut().filter(|last| last.end == number) {
                Some(last) => last.end += 1,
                None => ranges.push(number..number.saturating_add(1)),
            },
            Some(b'-' | b'\\') => continue,
            _ => {}
        }
        next = Some(number.saturating_add(1));
    }
    ranges
}

/// Returns the first line of a hunk in the new text, from `-1,3 +1,4 @@`.
fn hunk_start(header: &str) -> Option<u32> {
    let new = header.split(' ').find_map(|part| part.strip_prefix('+'))?;
    new.split(',').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::single_range_in_vec_init, reason = "a list of ranges")]
    fn changed_lines_are_those_that_a_diff_adds() {
        let path = RelPath::parse("a.py").unwrap();
        let old = "one\ntwo\nthree\nfour\nfive\n";
        for (old, new, expected) in [
            (None, "one\ntwo\n", vec![1..3]),
            (Some(old), old, vec![]),
            (Some(old), "one\nTWO\nthree\nfour\nFIVE\nsix\n", vec![2..3, 5..7]),
            (Some(old), "one\nthree\nfour\nfive\n", vec![]),
            (Some(old), "++ zero\none\ntwo\nthree\nfour\nfive", vec![1..2, 6..7]),
        ] {
            assert_eq!(changed_lines(&path, old, new), expected, "{new}");
        }
    }
}
