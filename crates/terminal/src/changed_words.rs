//! Words in which two lines differ.

use std::ops::Range;

/// Maximum words of a line that are compared one by one; a longer part differs as a whole.
const MAX_WORDS: usize = 120;

/// The byte ranges of words in a line.
type WordRanges = Vec<Range<usize>>;

/// Returns the byte ranges that only the old and only the new line have, or `None` if the lines
/// have less than half of their text in common.
pub(crate) fn find_changed_words(old: &str, new: &str) -> Option<(WordRanges, WordRanges)> {
    let (old_words, new_words) = (split_words(old), split_words(new));
    let text = |line: &'_ str, word: &Range<usize>| line.get(word.clone()).map(str::to_owned);
    let old_texts: Vec<_> = old_words.iter().map(|word| text(old, word)).collect();
    let new_texts: Vec<_> = new_words.iter().map(|word| text(new, word)).collect();
    let start = old_texts.iter().zip(&new_texts).take_while(|(old, new)| old == new).count();
    let room = old_texts.len().min(new_texts.len()) - start;
    let (old_rev, new_rev) = (old_texts.iter().rev(), new_texts.iter().rev());
    let end = old_rev.zip(new_rev).take(room).take_while(|(old, new)| old == new).count();
    let old_middle = old_texts.get(start..old_texts.len() - end)?;
    let new_middle = new_texts.get(start..new_texts.len() - end)?;
    let (old_kept, new_kept) = longest_common_subsequence(old_middle, new_middle);
    let changed = |words: &[Range<usize>], kept: &[bool]| {
        let mut ranges: Vec<Range<usize>> = Vec::new();
        for (word, _) in words.iter().skip(start).zip(kept).filter(|(_, is_kept)| !**is_kept) {
            match ranges.last_mut() {
                Some(last) if last.end == word.start => last.end = word.end,
                _ => ranges.push(word.clone()),
            }
        }
        ranges
    };
    let (old_changed, new_changed) = (changed(&old_words, &old_kept), changed(&new_words, &new_kept));
    let is_alike = |line: &str, changed: &[Range<usize>]| {
        let letters = |text: &str| text.chars().filter(|letter| !letter.is_whitespace()).count();
        let marked: usize = changed.iter().filter_map(|range| line.get(range.clone())).map(letters).sum();
        marked * 2 <= letters(line)
    };
    (is_alike(old, &old_changed) || is_alike(new, &new_changed)).then_some((old_changed, new_changed))
}

/// Splits a line into words and single other characters.
fn split_words(line: &str) -> Vec<Range<usize>> {
    let mut words: Vec<Range<usize>> = Vec::new();
    let mut was_word = false;
    for (at, character) in line.char_indices() {
        let (is_word, end) = (character.is_alphanumeric() || character == '_', at + character.len_utf8());
        match words.last_mut() {
            Some(last) if is_word && was_word => last.end = end,
            _ => words.push(at..end),
        }
        was_word = is_word;
    }
    words
}

/// Finds a longest common subsequence. Returns for each word if it is part of that.
fn longest_common_subsequence<T: PartialEq>(old: &[T], new: &[T]) -> (Vec<bool>, Vec<bool>) {
    let (mut old_kept, mut new_kept) = (vec![false; old.len()], vec![false; new.len()]);
    if old.len() > MAX_WORDS || new.len() > MAX_WORDS {
        return (old_kept, new_kept);
    }
    // The length of the longest common subsequence of the two suffixes from each position.
    let columns = new.len() + 1;
    let mut lengths = vec![0_u16; (old.len() + 1) * columns];
    let at = |row: usize, column: usize| row * columns + column;
    let length = |lengths: &[u16], row, column| lengths.get(at(row, column)).copied().unwrap_or_default();
    for (row, one) in old.iter().enumerate().rev() {
        for (column, other) in new.iter().enumerate().rev() {
            let best = match one == other {
                true => length(&lengths, row + 1, column + 1) + 1,
                false => length(&lengths, row + 1, column).max(length(&lengths, row, column + 1)),
            };
            if let Some(cell) = lengths.get_mut(at(row, column)) {
                *cell = best;
            }
        }
    }
    let (mut row, mut column) = (0, 0);
    while let (Some(one), Some(other)) = (old.get(row), new.get(column)) {
        if one == other {
            old_kept.iter_mut().skip(row).take(1).for_each(|kept| *kept = true);
            new_kept.iter_mut().skip(column).take(1).for_each(|kept| *kept = true);
            (row, column) = (row + 1, column + 1);
        } else if length(&lengths, row + 1, column) >= length(&lengths, row, column + 1) {
            row += 1;
        } else {
            column += 1;
        }
    }
    (old_kept, new_kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines with brackets around the words that differ.
    fn shown(old: &str, new: &str) -> Option<(String, String)> {
        let mark = |line: &str, ranges: Vec<Range<usize>>| {
            let mut marked = line.to_owned();
            for range in ranges.iter().rev() {
                marked.insert(range.end, ']');
                marked.insert(range.start, '[');
            }
            marked
        };
        let (old_ranges, new_ranges) = find_changed_words(old, new)?;
        Some((mark(old, old_ranges), mark(new, new_ranges)))
    }

    #[test]
    fn the_words_that_differ_are_found() {
        for (old, new, expected) in [
            ("let one = 1;", "let one = 2;", Some(("let one = [1];", "let one = [2];"))),
            ("f(a, b)", "f(a, c, b)", Some(("f(a, b)", "f(a, [c, ]b)"))),
            ("rename(x) + x", "rename(y) + y", Some(("rename([x]) + [x]", "rename([y]) + [y]"))),
            ("same", "same", Some(("same", "same"))),
            ("    a longer one", "  a longer one", Some(("  [  ]a longer one", "  a longer one"))),
            ("ключ = один", "ключ = два", Some(("ключ = [один]", "ключ = [два]"))),
            ("nothing in common", "fn other() {}", None),
            ("", "", Some(("", ""))),
        ] {
            let expected = expected.map(|(old, new)| (old.to_owned(), new.to_owned()));
            assert_eq!(shown(old, new), expected, "{old} → {new}");
        }
    }

    #[test]
    fn long_lines_differ_as_a_whole_between_what_is_the_same() {
        let words = |word: &str| {
            format!("{} {} {}", "a ".repeat(400), format!("{word} ").repeat(130), "a".repeat(900))
        };
        let (old, new) = (words("x"), words("y"));
        let (changed, _) = find_changed_words(&old, &new).unwrap();
        assert_eq!(changed.len(), 1);
    }
}
