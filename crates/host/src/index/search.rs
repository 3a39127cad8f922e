//! Searching the files, symbols, lines and documents of a project.

use journeyman_index::Snapshot;
use journeyman_index::docs::{SectionHit, SectionReason, search_sections};
use journeyman_index::project::Line;
use journeyman_index::query::{
    Answer, Context, Definition, FileHit, MAX_LIMIT, Passage, Query, Searcher, find_definitions, full_name,
};
use journeyman_index::tokens::Tokenizer;
use journeyman_protocol::RelPath;
use serde_json::{Value, json};

use super::embedded::find_similar;
use super::graph::find_near_files;
use super::open::CodeIndex;
use super::symbols::shown_path;
use crate::HostError;

/// The kind of results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SearchKind {
    /// Files, with the symbols that the query names.
    File,
    /// Symbols alone.
    Symbol,
    /// Lines that match a pattern.
    Text,
    /// Sections of documents and comments.
    Doc,
}

/// A search as a user asks for it.
#[derive(Debug, Clone)]
pub struct SearchOptions<'a> {
    /// The query, or the pattern.
    pub text: &'a str,
    /// The kind of results.
    pub kind: SearchKind,
    /// Maximum number of results.
    pub limit: usize,
    /// Ignore the case of a pattern.
    pub ignore_case: bool,
    /// A file whose neighbours in the dependency graph count a little more.
    pub near: Option<&'a str>,
}

/// The results of a search.
#[derive(Debug)]
pub enum SearchResults {
    /// Ranked files and symbols.
    Ranked(Answer),
    /// Sections.
    Sections(Vec<SectionHit>),
    /// Lines, and true if there are more.
    Lines(Vec<Line>, bool),
}

impl SearchResults {
    /// Searches an index.
    ///
    /// # Errors
    /// [`HostError::Usage`] for a wrong pattern, and for a query without a word.
    pub fn find(index: &CodeIndex, options: &SearchOptions<'_>) -> Result<Self, HostError> {
        let CodeIndex { project, snapshot, .. } = index;
        let SearchOptions { text, kind, limit, ignore_case, near } = *options;
        if kind == SearchKind::Text {
            let found = project.matching_lines(snapshot, text, ignore_case, limit);
            let (lines, has_more) = found.map_err(HostError::usage)?;
            return Ok(Self::Lines(lines, has_more));
        }
        let near = near.map(|near| find_near_files(index, near));
        let near = near.transpose()?.unwrap_or_default();
        let query = Query::new(text, &mut Tokenizer::new());
        if kind == SearchKind::Symbol {
            let context = Context { near: &near, vectors: None };
            let mut answer = Searcher::new().search(&**snapshot, None, &query, context, limit);
            answer.files.clear();
            answer.definitions = find_definitions(&**snapshot, text.trim(), limit);
            return Ok(Self::Ranked(answer));
        }
        let history = index.read_history();
        if query.is_empty() {
            return Err(HostError::usage(
                "the query has no word that can be looked for; --kind text finds any text by a pattern",
            ));
        }
        let max_files = if kind == SearchKind::Doc { MAX_LIMIT } else { limit };
        let similar = find_similar(index, text);
        let vectors = similar.as_ref().map(|(similar, weight)| (similar, *weight));
        let context = Context { near: &near, vectors };
        let answer = Searcher::new().search(&**snapshot, history.as_ref(), &query, context, max_files);
        if kind == SearchKind::Doc {
            let read = |path: &RelPath| project.text(path);
            return Ok(Self::Sections(search_sections(snapshot, &query, &answer.files, &read, limit)));
        }
        Ok(Self::Ranked(answer))
    }

    /// Returns true if nothing was found.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Ranked(answer) => answer.files.is_empty() && answer.definitions.is_empty(),
            Self::Sections(sections) => sections.is_empty(),
            Self::Lines(lines, _) => lines.is_empty(),
        }
    }

    /// Returns the results as JSON.
    #[must_use]
    pub fn to_json(&self, snapshot: &Snapshot) -> Value {
        match self {
            Self::Ranked(answer) => answer_to_json(answer, snapshot),
            Self::Sections(sections) => {
                let sections: Vec<Value> =
                    sections.iter().map(|section| section_to_json(section, snapshot)).collect();
                json!({"sections": sections, "partial": snapshot.is_partial()})
            }
            Self::Lines(lines, has_more) => {
                let line = |line: &Line| json!({"path": shown_path(snapshot, line.file), "line": line.line, "text": line.text});
                json!({"lines": lines.iter().map(line).collect::<Vec<_>>(), "more": has_more})
            }
        }
    }
}

fn answer_to_json(answer: &Answer, snapshot: &Snapshot) -> Value {
    let definition = |one: &Definition| {
        json!({
            "path": shown_path(snapshot, one.file), "line": one.name_line, "kind": one.kind.name(),
            "name": full_name(&one.scope, &one.name), "signature": one.signature, "match": one.matched.name(),
        })
    };
    let passage = |one: &Passage| json!({"first_line": one.first_line, "lines": one.lines, "symbol": one.symbol, "score": one.score});
    let file = |hit: &FileHit| {
        let why = hit
            .why
            .iter()
            .map(|why| json!({"signal": why.signal.name(), "strength": why.strength, "share": why.share}));
        json!({
            "path": shown_path(snapshot, hit.file), "score": hit.score, "why": why.collect::<Vec<_>>(),
            "passages": hit.passages.iter().map(passage).collect::<Vec<_>>(),
        })
    };
    json!({
        "definitions": answer.definitions.iter().map(definition).collect::<Vec<_>>(),
        "files": answer.files.iter().map(file).collect::<Vec<_>>(),
        "partial": snapshot.is_partial(),
    })
}

fn section_to_json(section: &SectionHit, snapshot: &Snapshot) -> Value {
    let place = &section.place;
    let score = if let SectionReason::Words(score) = section.why { Some(score) } else { None };
    json!({
        "path": shown_path(snapshot, place.file), "line": place.first_line, "lines": place.lines,
        "headings": place.headings, "names_it": section.why == SectionReason::Names, "score": score,
    })
}
