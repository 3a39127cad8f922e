//! The words of commit messages.

use std::collections::BTreeMap;

use super::{Commit, MAX_COUNTED_FILES};
use crate::tokens::Tokenizer;

/// The words of all messages.
#[derive(Debug, Default, PartialEq)]
pub(super) struct MessageWords {
    /// All terms, sorted, one after the other.
    pub(super) texts: String,
    /// By term: the ends of its text and of its postings.
    pub(super) terms: Vec<(u32, u32)>,
    /// The commits that have a term, and its number of occurrences there.
    pub(super) postings: Vec<(u32, u32)>,
    /// By commit: number of terms of its message; 0 if it doesn't count.
    pub(super) lengths: Vec<u32>,
    /// By path: number of terms of all its messages.
    pub(super) pooled: Vec<u32>,
    /// By commit: its source files; none if it doesn't count.
    pub(super) files: Vec<Vec<u32>>,
}

impl MessageWords {
    /// Reads the words of messages.
    pub(super) fn new(commits: &[Commit], source: &[bool], tokenizer: &mut Tokenizer) -> Self {
        let files = counted_source_files(commits.iter().map(|commit| commit.files.iter().copied()), source);
        let mut by_term: BTreeMap<Box<str>, Vec<(u32, u32)>> = BTreeMap::new();
        let mut lengths = Vec::with_capacity(commits.len());
        for ((number, commit), files) in (0..).zip(commits).zip(&files) {
            let mut length = 0;
            if !files.is_empty() {
                tokenizer.begin_file();
                for line in commit.message.lines().filter(|line| !crate::query::is_trailer(line)) {
                    tokenizer.add_text(line, 1);
                }
                let terms = tokenizer.file_terms();
                for count in tokenizer.finish_document() {
                    let Some(term) = terms.get(count.term) else { continue };
                    length += count.times;
                    match by_term.get_mut(term) {
                        Some(list) => list.push((number, count.times)),
                        None => drop(by_term.insert(term.into(), vec![(number, count.times)])),
                    }
                }
            }
            lengths.push(length);
        }
        let mut words = Self { lengths, ..Self::default() };
        let small = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        for (term, list) in by_term {
            words.texts.push_str(&term);
            words.postings.extend(list);
            words.terms.push((small(words.texts.len()), small(words.postings.len())));
        }
        words.with_files(files, source.len())
    }

    /// Restores the words from stored texts, terms, postings and lengths, and the files of each
    /// commit; `None` if they don't fit together.
    pub(super) fn with_checked_files(
        self,
        commits: impl ExactSizeIterator<Item = impl Iterator<Item = u32>>,
        source: &[bool],
    ) -> Option<Self> {
        let Self { texts, terms, postings, lengths, .. } = &self;
        let ends = |end: fn(&(u32, u32)) -> u32, whole: usize| {
            terms.is_sorted_by_key(end) && terms.last().map_or(0, end) as usize == whole
        };
        let whole = ends(|(text, _)| *text, texts.len())
            && ends(|(_, list)| *list, postings.len())
            && terms.iter().all(|(text, _)| texts.is_char_boundary(*text as usize))
            && lengths.len() == commits.len();
        whole.then(|| self.with_files(counted_source_files(commits, source), source.len()))
    }

    fn with_files(mut self, files: Vec<Vec<u32>>, paths: usize) -> Self {
        self.pooled = vec![0; paths];
        for (files, length) in files.iter().zip(&self.lengths) {
            for file in files {
                if let Some(pooled) = self.pooled.get_mut(*file as usize) {
                    *pooled = pooled.saturating_add(*length);
                }
            }
        }
        Self { files, ..self }
    }

    /// Returns the commits that have a term, and its number of occurrences there.
    pub(super) fn find(&self, term: &str) -> Option<&[(u32, u32)]> {
        let begin = |at: usize| {
            at.checked_sub(1).and_then(|before| self.terms.get(before)).copied().unwrap_or_default()
        };
        let text = |at: usize| {
            let end = self.terms.get(at)?.0 as usize;
            self.texts.get(begin(at).0 as usize..end)
        };
        let (mut low, mut high) = (0, self.terms.len());
        while low < high {
            let middle = low.midpoint(high);
            match text(middle)?.cmp(term) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Equal => {
                    let end = self.terms.get(middle)?.1 as usize;
                    return self.postings.get(begin(middle).1 as usize..end);
                }
            }
        }
        None
    }
}

/// Returns the source files of each commit; none of a commit that doesn't count.
fn counted_source_files(
    commits: impl Iterator<Item = impl Iterator<Item = u32>>,
    source: &[bool],
) -> Vec<Vec<u32>> {
    let is_source = |file: &u32| source.get(*file as usize).is_some_and(|source| *source);
    let files = commits.map(|files| {
        let files: Vec<u32> = files.filter(is_source).collect();
        if files.len() <= MAX_COUNTED_FILES { files } else { Vec::new() }
    });
    files.collect()
}
