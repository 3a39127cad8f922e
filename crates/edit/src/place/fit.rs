//! Making a replacement fit the place that was found: lines that search and replacement have in common stay
//! the file's own bytes, changed ones come from the model in the file's indentation and line endings.

use similar::{Algorithm, DiffOp, capture_diff_slices};

use crate::lines::{segments, split_indent, without_break};
use crate::place::indent::IndentMap;
use crate::place::normal::plain;

/// Beyond this many changed lines on both sides together the search and replacement are not aligned, because
/// aligning takes time with their product; the replacement is then taken as it is.
const MAX_ALIGNED: usize = 4_000;

/// A search text and its replacement, aligned line by line.
pub(crate) struct Alignment<'a> {
    old: Vec<&'a str>,
    new: Vec<&'a str>,
    ops: Vec<DiffOp>,
}

/// The indentation of a replacement's line that could not be carried over.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Unfit {
    /// The line as the model wrote it.
    pub(crate) line: String,
}

impl<'a> Alignment<'a> {
    /// Aligns the two. A replacement without the final line break that the search text has gets one, unless it
    /// is empty: after a loose match nobody means to join lines.
    pub(crate) fn new(search: &'a str, replacement: &'a str) -> Self {
        let old: Vec<&str> = segments(search).into_iter().map(|(content, _)| content).collect();
        let mut new: Vec<&str> = segments(replacement).into_iter().map(|(content, _)| content).collect();
        let closed = old.len() > 1 && old.last().is_some_and(|last| last.is_empty());
        if closed && !replacement.is_empty() && new.last().is_some_and(|last| !last.is_empty()) {
            new.push("");
        }
        let ops = align(&old, &new);
        Self { old, new, ops }
    }

    /// The search text's lines; the last is empty where it ends with a line break.
    pub(crate) fn old(&self) -> &[&'a str] {
        &self.old
    }

    /// The indexes of the search text's lines that the edit changes or deletes.
    pub(crate) fn touched(&self) -> impl Iterator<Item = usize> {
        self.ops.iter().filter(|op| !matches!(op, DiffOp::Equal { .. })).flat_map(DiffOp::old_range)
    }

    /// The text to put in place of `found`, which has a line for each of the search text's.
    pub(crate) fn fit(&self, found: &str, indents: &IndentMap, line_break: &str) -> Result<String, Unfit> {
        if let [""] = self.new.as_slice() {
            return Ok(String::new());
        }
        let mut file = segments(found);
        let open = file.len() < self.old.len();
        // A search text that ends with a line break may have matched a last line without one.
        file.resize(self.old.len().max(file.len()), ("", ""));
        let mut lines: Vec<(String, &str)> = Vec::with_capacity(self.new.len());
        for op in &self.ops {
            if let DiffOp::Equal { old_index, len, .. } = *op {
                let kept = file.iter().skip(old_index).take(len);
                lines.extend(kept.map(|(content, line_break)| ((*content).to_owned(), *line_break)));
                continue;
            }
            let replaced = op.old_range();
            let one_to_one = replaced.len() == op.new_range().len();
            for (nth, new) in
                self.new.iter().skip(op.new_range().start).take(op.new_range().len()).enumerate()
            {
                let at = replaced.start + nth;
                let partner = (at < replaced.end).then(|| file.get(at)).flatten();
                let mut line = self.carry(new, at, &replaced, &file, indents)?;
                if let (true, Some(old), Some((content, _))) = (one_to_one, self.old.get(at), partner) {
                    line = keep_ends(old, &line, content);
                }
                lines.push((line, partner.map_or("", |(_, line_break)| *line_break)));
            }
        }
        let mut out = String::with_capacity(found.len());
        let last = lines.len().saturating_sub(1);
        for (nth, (content, own_break)) in lines.iter().enumerate() {
            out.push_str(content);
            if nth < last {
                out.push_str(if own_break.is_empty() { line_break } else { own_break });
            }
        }
        if open {
            out.truncate(without_break(&out).len());
        }
        Ok(out)
    }

    /// A line of the replacement in the file's indentation.
    fn carry(
        &self,
        new: &str,
        at: usize,
        replaced: &std::ops::Range<usize>,
        file: &[(&str, &str)],
        indents: &IndentMap,
    ) -> Result<String, Unfit> {
        if indents.is_identity() {
            return Ok(new.to_owned());
        }
        let (indent, rest) = split_indent(new);
        if rest.trim().is_empty() {
            return Ok(String::new());
        }
        let pair = |index: usize| {
            let (old, (found, _)) = (self.old.get(index)?, file.get(index)?);
            let blank = old.trim().is_empty();
            (!blank).then(|| (split_indent(old).0, split_indent(found).0))
        };
        let alike = |pair: &(&str, &str)| pair.0 == indent;
        let neighbour = (at < replaced.end)
            .then(|| pair(at))
            .flatten()
            .filter(alike)
            .or_else(|| (0..replaced.start).rev().find_map(pair).filter(alike))
            .or_else(|| (replaced.end..self.old.len()).find_map(pair).filter(alike));
        match indents.carry(indent, neighbour) {
            Some(own) => Ok(own + rest),
            None => Err(Unfit { line: new.to_owned() }),
        }
    }
}

/// Aligns lines; what is too much to align counts as replaced.
fn align(old: &[&str], new: &[&str]) -> Vec<DiffOp> {
    let same = |(one, other): &(&&str, &&str)| one == other;
    let head = old.iter().zip(new).take_while(same).count();
    let tail = old.iter().skip(head).rev().zip(new.iter().skip(head).rev()).take_while(same).count();
    if old.len() + new.len() - 2 * (head + tail) <= MAX_ALIGNED {
        return capture_diff_slices(Algorithm::Myers, old, new);
    }
    let (old_len, new_len) = (old.len() - head - tail, new.len() - head - tail);
    vec![
        DiffOp::Equal { old_index: 0, new_index: 0, len: head },
        DiffOp::Replace { old_index: head, old_len, new_index: head, new_len },
        DiffOp::Equal { old_index: head + old_len, new_index: head + new_len, len: tail },
    ]
}

/// The new line with the beginning and the end that it shares with the old one as the file has them, where the
/// file's line is the old one in other typographic characters.
fn keep_ends(old: &str, new: &str, found: &str) -> String {
    if found.is_ascii() || old == found || !old.chars().map(plain).eq(found.chars().map(plain)) {
        return new.to_owned();
    }
    let old: Vec<char> = old.chars().map(plain).collect();
    let found: Vec<char> = found.chars().collect();
    let plain_new: Vec<char> = new.chars().map(plain).collect();
    let head = old.iter().zip(&plain_new).take_while(|(one, other)| one == other).count();
    let tail = old
        .iter()
        .skip(head)
        .rev()
        .zip(plain_new.iter().skip(head).rev())
        .take_while(|(one, other)| one == other)
        .count();
    let middle = new.chars().skip(head).take(plain_new.len() - head - tail);
    let (first, last) = (found.iter().take(head), found.iter().skip(old.len() - tail));
    first.copied().chain(middle).chain(last.copied()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::place::indent::Styles;

    fn fitted(search: &str, replacement: &str, found: &str) -> Result<String, Unfit> {
        let alignment = Alignment::new(search, replacement);
        let pairs = segments(search).into_iter().zip(segments(found));
        let lines: Vec<(&str, &str)> = pairs.map(|((one, _), (other, _))| (one, other)).collect();
        let styles = Styles::of(search.lines().chain(replacement.lines()), found);
        let indents = IndentMap::learn(lines.into_iter(), styles);
        alignment.fit(found, &indents, "\n")
    }

    #[test]
    fn fitting_table() {
        let cases: &[(&str, &str, &str, &str)] = &[
            // Common lines stay the file's own, blanks and line breaks included.
            ("a\nb\nc", "a\nB\nc", "a  \r\nb\nc\t", "a  \r\nB\nc\t"),
            // New lines take the break of the line they stand for, or the file's.
            ("a\nb", "a\nx\ny\nb", "a\r\nb", "a\r\nx\ny\nb"),
            // Re-indented, one level deeper than any line that matched.
            (
                "if x:\n    y()",
                "if x:\n    if z:\n        y()",
                "\tif x:\n\t\ty()",
                "\tif x:\n\t\tif z:\n\t\t\ty()",
            ),
            // Curly quotes outside of the change survive.
            (
                "say \"a\" - b",
                "say \"c\" - b",
                "say \u{201c}a\u{201d} \u{2013} b",
                "say \u{201c}c\u{201d} \u{2013} b",
            ),
            // A missing final break in the replacement isn't a wish to join lines.
            ("a\n", "b", "a \n", "b\n"),
            ("a\nb\n", "", "a \nb\n", ""),
        ];
        for (search, replacement, found, expected) in cases {
            assert_eq!(
                fitted(search, replacement, found).as_deref(),
                Ok(*expected),
                "{search:?} → {replacement:?}"
            );
        }
    }
}
