//! Searching the files, symbols, lines and documents of a project.

use std::path::Path;
use std::sync::Arc;

use journeyman_index::docs::{SectionHit, SectionReason, search_sections};
use journeyman_index::project::Line;
use journeyman_index::query::{Answer, Context, MAX_LIMIT, Query, Searcher, definitions};
use journeyman_index::tokens::Tokenizer;
use journeyman_index::{Project, Snapshot};
use journeyman_protocol::RelPath;
use serde_json::{Value, json};

use super::{answer_to_json, find_near, find_similar, read_history, shown_path};
use crate::HostError;
use crate::config::Environment;

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
    /// Searches an index that is up to date. `note` gets what people should know.
    ///
    /// # Errors
    /// [`HostError::Usage`] for a wrong pattern, and for a query without a word.
    pub fn find(
        environment: &Environment,
        directory: Option<&Path>,
        project: &Project,
        snapshot: &Arc<Snapshot>,
        options: &SearchOptions<'_>,
        note: fn(&str),
    ) -> Result<Self, HostError> {
        let SearchOptions { text, kind, limit, ignore_case, near } = *options;
        if kind == SearchKind::Text {
            let found = project.lines(snapshot, text, ignore_case, limit);
            let (lines, has_more) = found.map_err(HostError::usage)?;
            return Ok(Self::Lines(lines, has_more));
        }
        let near = near.map(|near| find_near(environment, directory, project, snapshot, near));
        let near = near.transpose()?.unwrap_or_default();
        let query = Query::new(text, &mut Tokenizer::new());
        if kind == SearchKind::Symbol {
            let context = Context { near: &near, vectors: None };
            let mut answer = Searcher::new().search(&**snapshot, None, &query, context, limit);
            answer.files.clear();
            answer.definitions = definitions(&**snapshot, text.trim(), limit);
            return Ok(Self::Ranked(answer));
        }
        let history = read_history(environment, directory, project, note)?;
        if query.is_empty() {
            return Err(HostError::usage(
                "the query has no word that can be looked for; --kind text finds any text by a pattern",
            ));
        }
        let max_files = if kind == SearchKind::Doc { MAX_LIMIT } else { limit };
        let similar = find_similar(environment, project, snapshot, text, note);
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

fn section_to_json(section: &SectionHit, snapshot: &Snapshot) -> Value {
    let place = &section.place;
    let score = if let SectionReason::Words(score) = section.why { Some(score) } else { None };
    json!({
        "path": shown_path(snapshot, place.file), "line": place.first_line, "lines": place.lines,
        "headings": place.headings, "names_it": section.why == SectionReason::Names, "score": score,
    })
}
