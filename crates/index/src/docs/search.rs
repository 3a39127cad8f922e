//! Search for sections in the files that a query found.

use journeyman_protocol::RelPath;

use super::{Docs, SectionLocation};
use crate::query::{FileHit, QualifiedName, Query};
use crate::segment::DocumentId;
use crate::snapshot::Snapshot;
use crate::tokens::Tokenizer;

/// Maximum sections of one file in an answer.
const MAX_SECTIONS_PER_FILE: usize = 3;
/// Minimum share of a section's score in that of its file's best one.
const MIN_SECTION_SHARE: f32 = 0.5;
/// Weight of the words of a heading.
const HEADING_WEIGHT: u32 = 3;
/// BM25's saturation of a word's count.
const BM25_K1: f32 = 1.2;
/// Number of words above which a section is long: its words count less.
const LONG_SECTION_WORDS: f32 = 400.0;

/// The reason why a section was found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SectionReason {
    /// The section mentions the symbol in question.
    Names,
    /// The section has words of the query: the score, comparable within an answer only.
    Words(f32),
}

/// A section in an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct SectionHit {
    /// The section.
    pub place: SectionLocation,
    /// The reason why it was found.
    pub why: SectionReason,
}

/// Returns the sections that match a query, the best first: those that mention the symbol, if the
/// query is one, and then those with the most of its words, of documents among the `files` found.
/// `read` returns a file's text.
#[must_use]
pub fn search_sections(
    snapshot: &Snapshot,
    query: &Query,
    files: &[FileHit],
    read: &dyn Fn(&RelPath) -> Option<String>,
    limit: usize,
) -> Vec<SectionHit> {
    let mut docs = Docs::new(snapshot);
    let mut found: Vec<SectionHit> = Vec::new();
    if let Some(asked) = &query.symbol {
        let asked = QualifiedName::parse(asked);
        let symbols = docs.resolve_qualified_name(&asked);
        let places = docs.sections_mentioning(asked.name(), &symbols);
        found.extend(places.into_iter().map(|place| SectionHit { place, why: SectionReason::Names }));
    }
    let mut tokenizer = Tokenizer::new();
    let mut by_words: Vec<(f32, SectionLocation)> = Vec::new();
    let documents = files.iter().filter(|hit| super::is_document(snapshot, hit.file));
    // Better files come first, so more of them than the answer holds add nothing.
    for hit in documents.take(limit) {
        let text = RelPath::parse(&hit.path).ok().and_then(|path| read(&path)).unwrap_or_default();
        by_words.extend(best_sections_of_file(&mut docs, hit.file, &text, hit.score, query, &mut tokenizer));
    }
    by_words.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    for (score, place) in by_words {
        if found.iter().all(|known| known.place != place) {
            found.push(SectionHit { place, why: SectionReason::Words(score) });
        }
    }
    found.truncate(limit);
    found
}

/// Returns the best sections of a file, each with its share of the file's score.
fn best_sections_of_file(
    docs: &mut Docs<'_>,
    file: DocumentId,
    text: &str,
    score: f32,
    query: &Query,
    tokenizer: &mut Tokenizer,
) -> Vec<(f32, SectionLocation)> {
    let sections: Vec<SectionLocation> = docs.sections_of(file).into_iter().map(|(place, _)| place).collect();
    let lines: Vec<&str> = text.lines().collect();
    tokenizer.begin_file();
    let mut counted = Vec::with_capacity(sections.len());
    for (at, place) in sections.iter().enumerate() {
        // The section's own words, without its subsections.
        let first = place.first_line.saturating_sub(1) as usize;
        let next =
            sections.get(at + 1).map_or(lines.len(), |next| next.first_line.saturating_sub(1) as usize);
        for line in lines.get(first..next.max(first)).or_else(|| lines.get(first..)).unwrap_or_default() {
            tokenizer.add_text(line, 1);
        }
        for (nth, heading) in place.headings.iter().rev().enumerate() {
            tokenizer.add_text(heading, if nth == 0 { HEADING_WEIGHT - 1 } else { 1 });
        }
        counted.push(tokenizer.finish_document());
    }
    let terms = tokenizer.file_terms();
    let weight = |term: u32| {
        let text = terms.get(term)?;
        query.terms.iter().find(|asked| asked.text == text).map(|asked| asked.weight)
    };
    // The number of the file's sections with a word: a word that all have distinguishes none.
    let mut having = vec![0_u32; terms.len()];
    for count in counted.iter().flatten() {
        if let Some(having) = having.get_mut(count.term as usize) {
            *having += 1;
        }
    }
    #[allow(clippy::cast_precision_loss)]
    let scored = counted.iter().map(|counts| {
        let length: u32 = counts.iter().map(|count| count.times).sum();
        let long = 0.25 + 0.75 * length as f32 / LONG_SECTION_WORDS;
        let one = |term: u32, times: u32| {
            let rare = 1.0 / having.get(term as usize).map_or(1.0, |having| (*having).max(1) as f32).sqrt();
            weight(term).map(|weight| weight * rare * times as f32 / (times as f32 + BM25_K1 * long))
        };
        counts.iter().filter_map(|count| one(count.term, count.times)).sum::<f32>()
    });
    let mut scored: Vec<(f32, SectionLocation)> = scored.zip(sections).collect();
    scored.sort_by(|(one, a), (other, b)| other.total_cmp(one).then(a.first_line.cmp(&b.first_line)));
    let best = scored.first().map_or(0.0, |(best, _)| *best);
    scored.retain(|(own, _)| *own > 0.0 && *own >= best * MIN_SECTION_SHARE);
    scored.truncate(MAX_SECTIONS_PER_FILE);
    scored.into_iter().map(|(own, place)| (score * own / best, place)).collect()
}
