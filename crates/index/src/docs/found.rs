//! Which sections of the files that a query found have it.

use journeyman_protocol::RelPath;

use super::{Docs, Place};
use crate::query::{FileHit, Query};
use crate::segment::Id;
use crate::snapshot::Snapshot;
use crate::tokens::Tokenizer;

/// Sections of one file that are shown.
const OF_A_FILE: usize = 3;
/// A section that has less than this much of its file's best one isn't shown.
const LEAST: f32 = 0.5;
/// How often a heading's words count.
const HEADING_TIMES: u32 = 3;
/// Where a word's count begins to matter little, as in BM25.
const K1: f32 = 1.2;
/// Words of a section above which it is long: its words count less.
const LONG: f32 = 400.0;

/// Why a section was found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Why {
    /// It names the symbol that was asked for.
    Names,
    /// It has the query's words: how much, comparable within an answer only.
    Words(f32),
}

/// A section that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// Where it is.
    pub place: Place,
    /// Why.
    pub why: Why,
}

/// Sections that a query finds, the best first: those that name the symbol, if it is one, and then those that have the
/// most of its words, of documents among the `files` that were found. `read` gives a file's text.
#[must_use]
pub fn find(
    snapshot: &Snapshot,
    query: &Query,
    files: &[FileHit],
    read: &dyn Fn(&RelPath) -> Option<String>,
    limit: usize,
) -> Vec<Found> {
    let mut docs = Docs::new(snapshot);
    let mut found: Vec<Found> = Vec::new();
    if let Some(asked) = &query.symbol {
        let whole = asked.trim_end_matches("()").replace("::", ".").replace('#', ".");
        let (scope, name) = whole.rsplit_once('.').unwrap_or(("", &whole));
        let symbols = docs.called(name, scope);
        let places = docs.naming(name, &symbols);
        found.extend(places.into_iter().map(|place| Found { place, why: Why::Names }));
    }
    let mut tokenizer = Tokenizer::new();
    let mut by_words: Vec<(f32, Place)> = Vec::new();
    let documents = files.iter().filter(|hit| super::is_document(snapshot, hit.file));
    // Better files come first, so more of them than are shown add nothing.
    for hit in documents.take(limit) {
        let text = RelPath::parse(&hit.path).ok().and_then(|path| read(&path)).unwrap_or_default();
        by_words.extend(of_file(&mut docs, hit.file, &text, hit.score, query, &mut tokenizer));
    }
    by_words.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    for (score, place) in by_words {
        if found.iter().all(|known| known.place != place) {
            found.push(Found { place, why: Why::Words(score) });
        }
    }
    found.truncate(limit);
    found
}

/// The best sections of a file, each with its share of the file's score.
fn of_file(
    docs: &mut Docs<'_>,
    file: Id,
    text: &str,
    score: f32,
    query: &Query,
    tokenizer: &mut Tokenizer,
) -> Vec<(f32, Place)> {
    let sections: Vec<Place> = docs.sections(file).into_iter().map(|(place, _)| place).collect();
    let lines: Vec<&str> = text.lines().collect();
    tokenizer.begin();
    let mut counted = Vec::with_capacity(sections.len());
    for (at, place) in sections.iter().enumerate() {
        // Its own words, not those of the sections in it.
        let first = place.first_line.saturating_sub(1) as usize;
        let next =
            sections.get(at + 1).map_or(lines.len(), |next| next.first_line.saturating_sub(1) as usize);
        for line in lines.get(first..next.max(first)).or_else(|| lines.get(first..)).unwrap_or_default() {
            tokenizer.add(line, 1);
        }
        for (nth, heading) in place.headings.iter().rev().enumerate() {
            tokenizer.add(heading, if nth == 0 { HEADING_TIMES - 1 } else { 1 });
        }
        counted.push(tokenizer.document());
    }
    let terms = tokenizer.terms();
    let weight = |term: u32| {
        let text = terms.get(term)?;
        query.terms.iter().find(|asked| asked.text == text).map(|asked| asked.weight)
    };
    // How many of the file's sections have a word: what all have tells none apart.
    let mut having = vec![0_u32; terms.len()];
    for count in counted.iter().flatten() {
        if let Some(having) = having.get_mut(count.term as usize) {
            *having += 1;
        }
    }
    #[allow(clippy::cast_precision_loss)]
    let scored = counted.iter().map(|counts| {
        let length: u32 = counts.iter().map(|count| count.times).sum();
        let long = 0.25 + 0.75 * length as f32 / LONG;
        let one = |term: u32, times: u32| {
            let rare = 1.0 / having.get(term as usize).map_or(1.0, |having| (*having).max(1) as f32).sqrt();
            weight(term).map(|weight| weight * rare * times as f32 / (times as f32 + K1 * long))
        };
        counts.iter().filter_map(|count| one(count.term, count.times)).sum::<f32>()
    });
    let mut scored: Vec<(f32, Place)> = scored.zip(sections).collect();
    scored.sort_by(|(one, a), (other, b)| other.total_cmp(one).then(a.first_line.cmp(&b.first_line)));
    let best = scored.first().map_or(0.0, |(best, _)| *best);
    scored.retain(|(own, _)| *own > 0.0 && *own >= best * LEAST);
    scored.truncate(OF_A_FILE);
    scored.into_iter().map(|(own, place)| (score * own / best, place)).collect()
}
