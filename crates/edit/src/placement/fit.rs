//! Making a replacement fit the place that was found: lines that search and replacement have in
//! common stay the file's own bytes, changed ones come from the model in the file's indentation and
//! line endings.

use std::ops::Range;

use journeyman_text_diff::{DiffOp, diff_within};

use crate::lines::{split_indent, split_with_breaks, strip_line_break};
use crate::placement::hunk::Hunk;
use crate::placement::indent::IndentMap;
use crate::placement::normalize::{compose_accents, leading_cluster, plain_chars};
use crate::placement::tokens::{self, is_similar};

/// Beyond this many changed lines on both sides together the search and replacement are not
/// aligned, because aligning takes time with their product; the replacement is then taken as it is.
const MAX_ALIGNED_LINES: usize = 4_000;

/// Maximum number of new lines whose indentation a blank one is compared with.
const MAX_COMPARED_LEVELS: usize = 1_000;

/// A search text and its replacement, aligned line by line.
pub(crate) struct Alignment<'a> {
    old: Vec<&'a str>,
    new: Vec<&'a str>,
    ops: Vec<DiffOp>,
    /// True if a match's lines lose the blanks at their ends that the search text's haven't.
    trims_kept_lines: bool,
}

/// The indentation of a replacement's line that could not be carried over.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct UnmappedIndent {
    /// The line as the model wrote it.
    pub(crate) line: String,
}

impl<'a> Alignment<'a> {
    /// Aligns the two. A replacement without the final line break that the search text has gets
    /// one, unless it is empty: after a loose match nobody means to join lines.
    fn new(search: &'a str, replacement: &'a str) -> Self {
        let old: Vec<&str> = split_with_breaks(search).into_iter().map(|(content, _)| content).collect();
        let mut new: Vec<&str> =
            split_with_breaks(replacement).into_iter().map(|(content, _)| content).collect();
        let closed = old.len() > 1 && old.last().is_some_and(|last| last.is_empty());
        if closed && !replacement.is_empty() && new.last().is_some_and(|last| !last.is_empty()) {
            new.push("");
        }
        let ops = diff_within(&old, &new, MAX_ALIGNED_LINES);
        Self { old, new, ops, trims_kept_lines: false }
    }

    /// The search text's lines; the last is empty where it ends with a line break.
    pub(crate) fn old_lines(&self) -> &[&'a str] {
        &self.old
    }

    /// Returns the changed line ranges of the search text and the replacement.
    pub(crate) fn changed_ranges(&self) -> impl Iterator<Item = (Range<usize>, Range<usize>)> {
        let changed = self.ops.iter().filter(|op| !matches!(op, DiffOp::Equal { .. }));
        changed.map(|op| (op.old_range(), op.new_range()))
    }

    /// Returns for each of the replacement's lines the search text's that it is, if it is one.
    pub(crate) fn kept_lines(&self) -> Vec<Option<usize>> {
        let mut kept = vec![None; self.new.len()];
        for op in &self.ops {
            if let DiffOp::Equal { old_index, new_index, len } = *op {
                for nth in 0..len {
                    if let Some(line) = kept.get_mut(new_index + nth) {
                        *line = Some(old_index + nth);
                    }
                }
            }
        }
        kept
    }

    /// The replacement's lines.
    pub(crate) fn new_lines(&self) -> &[&'a str] {
        &self.new
    }

    /// Aligns the two of a hunk.
    pub(crate) fn of_hunk(hunk: &Hunk<'a>) -> Self {
        Self { trims_kept_lines: hunk.trims_kept_lines, ..Self::new(hunk.search, hunk.replace) }
    }

    /// Takes the blanks away from the ends of a match's lines for which a line of the search text
    /// without them stands.
    fn trim_kept_lines(&self, file: &mut [(&str, &str)], pairs: &[Option<usize>]) {
        for (old, own) in self.old.iter().zip(pairs) {
            if let Some((line, _)) = own.and_then(|own| file.get_mut(own))
                && !old.is_empty()
                && old.trim_end() == *old
            {
                *line = line.trim_end();
            }
        }
    }

    /// The text to put in place of `found`. `pairs` says which of its lines stands for which of the
    /// search text's; lines that stand for none stay where nothing around them changes. `straight`:
    /// curled quotes of new lines are plain.
    pub(crate) fn fit_to_match(
        &self,
        found: &str,
        pairs: &[Option<usize>],
        indents: &IndentMap,
        straight: bool,
        line_break: &str,
    ) -> Result<String, UnmappedIndent> {
        if let [""] = self.new.as_slice() {
            return Ok(String::new());
        }
        let mut file = split_with_breaks(found);
        // A search text that ends with a line break may have matched a last line without one.
        let ends = pairs.iter().flatten().max().map_or(0, |last| last + 1);
        let open = file.len() < ends;
        file.resize(ends.max(file.len()), ("", ""));
        if self.trims_kept_lines {
            self.trim_kept_lines(&mut file, pairs);
        }
        let mut out = FittedLines { lines: Vec::with_capacity(self.new.len()), file: &file, at: 0 };
        let paired = |old: usize| pairs.get(old).copied().flatten();
        for op in &self.ops {
            let replaced = op.old_range();
            if let DiffOp::Equal { .. } = op {
                out.keep_up_to(replaced.filter_map(paired).max().map(|last| last + 1));
                continue;
            }
            let one_to_one = replaced.len() == op.new_range().len();
            let mut owned = replaced.clone().filter_map(paired);
            let (first, last) = (owned.next(), owned.next_back());
            out.keep_up_to(first);
            for (nth, new) in
                self.new.iter().skip(op.new_range().start).take(op.new_range().len()).enumerate()
            {
                let at = replaced.start + nth;
                let partner = if at < replaced.end { paired(at) } else { None };
                let mut line = self.reindent_line(new, at, &replaced, &file, pairs, indents)?;
                if let Some(blanks) = self.blanks_of_moved_line(new, &file, pairs) {
                    line.truncate(line.trim_end().len());
                    line.push_str(blanks);
                }
                if straight {
                    line = straighten_quotes(&line);
                }
                if let (true, Some(old), Some((content, _))) =
                    (one_to_one, self.old.get(at), partner.and_then(|own| file.get(own)))
                {
                    out.keep_up_to(partner);
                    line = keep_tail(old, new, &keep_ends(old, &line, content), content);
                }
                out.push_line(line, partner);
            }
            out.at = out.at.max(last.or(first).map_or(0, |last| last + 1));
        }
        out.keep_up_to(Some(file.len()));
        let mut text = out.join_lines(found.len(), line_break);
        if open {
            text.truncate(strip_line_break(&text).len());
        }
        Ok(text)
    }

    /// The blanks that the file has at the end of a line, where a new line with other ones is a
    /// line of the search text to the byte: it was copied with them, and moves.
    fn blanks_of_moved_line<'f>(
        &self,
        new: &str,
        file: &[(&'f str, &str)],
        pairs: &[Option<usize>],
    ) -> Option<&'f str> {
        let code = new.trim_end();
        if code.len() == new.len() || code.is_empty() {
            return None;
        }
        let at = self.old.iter().position(|old| *old == new)?;
        let (own, _) = file.get((*pairs.get(at)?)?)?;
        let blanks = own.get(own.trim_end().len()..)?;
        (own.trim() == code.trim()).then_some(blanks)
    }

    /// A line of the replacement in the file's indentation.
    fn reindent_line(
        &self,
        new: &str,
        at: usize,
        replaced: &Range<usize>,
        file: &[(&str, &str)],
        pairs: &[Option<usize>],
        indents: &IndentMap,
    ) -> Result<String, UnmappedIndent> {
        if indents.is_identity() {
            return Ok(new.to_owned());
        }
        let (indent, rest) = split_indent(new);
        if rest.trim().is_empty() {
            let is_level = |line: &&str| !line.trim().is_empty() && split_indent(line).0 == indent;
            return Ok(
                indents.map_blank_line(indent, self.new.iter().take(MAX_COMPARED_LEVELS).any(is_level))
            );
        }
        let pair = |index: usize| {
            let (old, (found, _)) = (self.old.get(index)?, file.get((*pairs.get(index)?)?)?);
            let blank = old.trim().is_empty();
            (!blank).then(|| (split_indent(old).0, split_indent(found).0))
        };
        let alike = |pair: &(&str, &str)| pair.0 == indent;
        let stands_for = (at < replaced.end).then(|| pair(at)).flatten().filter(alike);
        let above = (0..replaced.start).rev().find_map(pair).filter(alike);
        let below = (replaced.end..self.old.len()).find_map(pair).filter(alike);
        let neighbour = if indents.is_contradicted(indent) {
            // The same indentation stands for two: only a line that is nearly this one, or
            // neighbours that agree, tell.
            let is_similar = self.old.get(at).is_some_and(|old| is_similar(old.trim(), rest.trim()));
            match (above, below) {
                _ if is_similar && stands_for.is_some() => stands_for,
                (Some(one), Some(other)) if one == other && stands_for.is_none_or(|own| own == one) => {
                    Some(one)
                }
                _ => None,
            }
        } else {
            stands_for.or(above).or(below)
        };
        match indents.map_indent(indent, neighbour) {
            Some(own) => Ok(own + rest),
            None => Err(UnmappedIndent { line: new.to_owned() }),
        }
    }
}

/// The new text of a match, line by line.
struct FittedLines<'a> {
    lines: Vec<(String, &'a str)>,
    file: &'a [(&'a str, &'a str)],
    /// The next of the file's lines.
    at: usize,
}

impl<'a> FittedLines<'a> {
    /// Keeps the file's lines up to one of them.
    fn keep_up_to(&mut self, end: Option<usize>) {
        let Some(end) = end.filter(|end| *end > self.at) else { return };
        let kept = self.file.get(self.at..end).unwrap_or_default();
        self.lines.extend(kept.iter().map(|(content, line_break)| ((*content).to_owned(), *line_break)));
        self.at = end;
    }

    /// Puts a line of the replacement, for one of the file's or in addition.
    fn push_line(&mut self, line: String, partner: Option<usize>) {
        let own_break = partner.and_then(|own| self.file.get(own)).map_or("", |(_, line_break)| *line_break);
        self.lines.push((line, own_break));
        self.at = self.at.max(partner.map_or(0, |own| own + 1));
    }

    /// The lines with their breaks; a new line takes that of the line before it, or else the
    /// file's.
    fn join_lines(&self, capacity: usize, line_break: &str) -> String {
        let mut out = String::with_capacity(capacity);
        let mut usual = line_break;
        let last = self.lines.len().saturating_sub(1);
        for (nth, (content, own_break)) in self.lines.iter().enumerate() {
            out.push_str(content);
            if nth < last {
                usual = if own_break.is_empty() { usual } else { own_break };
                out.push_str(usual);
            }
        }
        out
    }
}

/// The new line with the beginning and the end that it shares with the old one as the file has
/// them, where the file's line is the old one in other typographic characters.
fn keep_ends(old: &str, new: &str, found: &str) -> String {
    if (found.is_ascii() && old.is_ascii()) || old == found {
        return new.to_owned();
    }
    let (plain_old, plain_new, own) =
        (plain_chars_with_ranges(old), plain_chars_with_ranges(new), plain_chars_with_ranges(found));
    let same = |(one, other): &(&PlainChar, &PlainChar)| one.0 == other.0;
    if plain_old.len() != own.len() || !plain_old.iter().zip(&own).all(|pair| same(&pair)) {
        return new.to_owned();
    }
    let head = plain_old.iter().zip(&plain_new).take_while(same).count();
    let rest = plain_old.len().min(plain_new.len()) - head;
    let tail = plain_old.iter().rev().zip(plain_new.iter().rev()).take_while(same).take(rest).count();
    // A character that stands for several is never split.
    let whole = |units: &[PlainChar], at: usize| {
        let starts = at.checked_sub(1).and_then(|before| units.get(before)).map(|unit| &unit.1);
        units.get(at).map(|unit| &unit.1).is_none_or(|next| Some(next) != starts)
    };
    let head = (0..=head).rev().find(|at| whole(&own, *at) && whole(&plain_new, *at)).unwrap_or(0);
    let tail = (0..=tail)
        .rev()
        .find(|tail| whole(&own, own.len() - tail) && whole(&plain_new, plain_new.len() - tail))
        .unwrap_or(0);
    let byte =
        |units: &[PlainChar], at: usize, text: &str| units.get(at).map_or(text.len(), |unit| unit.1.start);
    let middle = byte(&plain_new, head, new)..byte(&plain_new, plain_new.len() - tail, new);
    let parts = [
        found.get(..byte(&own, head, found)),
        new.get(middle),
        found.get(byte(&own, own.len() - tail, found)..),
    ];
    parts.into_iter().map(Option::unwrap_or_default).collect()
}

/// Returns true if a character is a curled quote.
pub(crate) fn is_curly_quote(character: char) -> bool {
    matches!(character, '\u{2018}'..='\u{201f}')
}

/// A line with plain quotes in place of curled ones.
pub(crate) fn straighten_quotes(line: &str) -> String {
    let read = |c: char| if is_curly_quote(c) { plain_chars(c).next().unwrap_or(c) } else { c };
    line.chars().map(read).collect()
}

/// Counts the curled quotes of a search text's line that are plain in the file, and those that are
/// curled there too.
pub(crate) fn count_curly_quotes(searched: &str, own: &str) -> (usize, usize) {
    if !searched.contains(is_curly_quote) {
        return (0, 0);
    }
    let quotes = |line: &str| -> Vec<char> {
        line.chars().filter(|c| is_curly_quote(*c) || matches!(c, '"' | '\'')).collect()
    };
    let (searched, own) = (quotes(searched), quotes(own));
    let curled = || searched.iter().zip(&own).filter(|(one, _)| is_curly_quote(**one));
    let kept = curled().filter(|(_, other)| is_curly_quote(**other)).count();
    (curled().count() - kept, kept)
}

/// A plain character with the bytes that it was read from.
type PlainChar = (char, Range<usize>);

/// A line's characters in their plain form.
fn plain_chars_with_ranges(line: &str) -> Vec<PlainChar> {
    let mut units = Vec::with_capacity(line.len());
    let mut at = 0;
    while let Some(rest) = line.get(at..).filter(|rest| !rest.is_empty()) {
        let cluster = leading_cluster(rest);
        let bytes = at..at + cluster.len();
        units.extend(
            compose_accents(cluster).chars().flat_map(plain_chars).map(|plain| (plain, bytes.clone())),
        );
        at = bytes.end;
    }
    units
}

/// The new line with the file's own end, where old and new line end alike and the file's otherwise:
/// a separator, a remark, or blanks that only the search text has.
fn keep_tail(old: &str, given: &str, new: &str, found: &str) -> String {
    let (old, given, found) = (
        tokens::LineParts::split_line(old),
        tokens::LineParts::split_line(given),
        tokens::LineParts::split_line(found),
    );
    if old.tail == found.tail || old.tail != given.tail {
        let surplus = !old.blanks.is_empty() && old.blanks == given.blanks && old.blanks != found.blanks;
        let code = new.strip_suffix(given.blanks).filter(|_| surplus);
        return code.map_or_else(|| new.to_owned(), |code| format!("{code}{}", found.blanks));
    }
    let code = new.strip_suffix(given.blanks).and_then(|new| new.strip_suffix(given.tail));
    let blanks = if old.blanks == given.blanks { found.blanks } else { given.blanks };
    code.map_or_else(|| new.to_owned(), |code| format!("{code}{}{blanks}", found.tail))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placement::indent::IndentStyles;

    fn fitted(search: &str, replacement: &str, found: &str) -> Result<String, UnmappedIndent> {
        let alignment = Alignment::new(search, replacement);
        let pairs = split_with_breaks(search).into_iter().zip(split_with_breaks(found));
        let lines: Vec<(&str, &str)> = pairs.map(|((one, _), (other, _))| (one, other)).collect();
        let styles = IndentStyles::learn_styles(search.lines().chain(replacement.lines()), found);
        let indents = IndentMap::learn_map(lines.into_iter(), &[], styles);
        let pairs: Vec<Option<usize>> = (0..alignment.old_lines().len()).map(Some).collect();
        alignment.fit_to_match(found, &pairs, &indents, false, "\n")
    }

    #[test]
    fn fitting_table() {
        let cases: &[(&str, &str, &str, &str)] = &[
            // Common lines stay the file's own, blanks and line breaks included.
            ("a\nb\nc", "a\nB\nc", "a  \r\nb\nc\t", "a  \r\nB\nc\t"),
            // New lines take the break of the line they stand for, or of the one before.
            ("a\nb", "a\nx\ny\nb", "a\r\nb", "a\r\nx\r\ny\r\nb"),
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
