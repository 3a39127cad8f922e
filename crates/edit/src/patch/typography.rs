//! New lines in the file's characters, where the hunk's old lines show that the model curled the
//! file's.

use std::collections::BTreeMap;

use crate::patch::lines::{FileLines, LineComparison};
use crate::placement::normalize::plain_chars;

/// The hunk's typography compared with the file's, learnt from the lines that the file has.
#[derive(Debug, Default)]
pub(super) struct TypographyMap {
    /// Typographic characters of the hunk, and what the file has in their place; `None` where that
    /// isn't one thing.
    pairs: BTreeMap<char, Option<String>>,
}

impl TypographyMap {
    /// Compares old lines with the file's from a line on.
    pub(super) fn learn_from(file: &FileLines<'_>, start: usize, old: &[&str]) -> Self {
        let mut writing = Self::default();
        for (nth, line) in old.iter().enumerate() {
            let own = file.line(start + nth).unwrap_or_default();
            writing.learn_from_lines(
                LineComparison::Trailing.strip_ignored(line),
                LineComparison::Trailing.strip_ignored(own),
            );
        }
        writing
    }

    /// Reads two lines that are the same in plain characters side by side.
    fn learn_from_lines(&mut self, given: &str, own: &str) {
        let (mut given, mut own) = (given.chars(), own.chars());
        while let Some(one) = given.next() {
            let mut there = String::new();
            let wanted = plain_chars(one).count();
            // One character may stand for several on either side.
            let mut have = 0;
            while have < wanted {
                let Some(next) = own.next() else { return };
                have += plain_chars(next).count();
                there.push(next);
            }
            for _ in wanted..have {
                let _more = given.next();
            }
            if !is_plain_char(one) && have == wanted {
                let known = self.pairs.entry(one).or_insert_with(|| Some(there.clone()));
                if known.as_ref() != Some(&there) {
                    *known = None;
                }
            }
        }
    }

    /// A new line as the file would have it, or the character of which that can't be told.
    pub(super) fn to_file_typography(&self, text: &str, file: &str) -> Result<String, char> {
        if text.is_ascii() {
            return Ok(text.to_owned());
        }
        let mut out = String::with_capacity(text.len());
        for c in text.chars() {
            match self.pairs.get(&c) {
                Some(Some(own)) => out.push_str(own),
                Some(None) => return Err(c),
                // A writer who curls one kind of quotes curls the other; the file has none of
                // these.
                None if self.is_plain_in_file(c) && !file.contains(c) => out.extend(plain_chars(c)),
                None => out.push(c),
            }
        }
        Ok(out)
    }

    /// Returns true if the hunk has a character of the same class where the file has the plain one.
    fn is_plain_in_file(&self, character: char) -> bool {
        let kind = plain_class(character);
        kind.is_some()
            && self.pairs.iter().any(|(known, own)| {
                plain_class(*known) == kind && own.as_ref().is_some_and(|own| own.chars().all(is_plain_char))
            })
    }
}

fn is_plain_char(character: char) -> bool {
    plain_chars(character).eq(std::iter::once(character))
}

/// The plain character of a typographic one; both kinds of quotes are one class.
fn plain_class(character: char) -> Option<char> {
    let first = plain_chars(character).next().filter(|_| !is_plain_char(character))?;
    Some(if first == '\'' { '"' } else { first })
}
