//! Searching the files, symbols, lines and documents of a project.

use journeyman_index::analyser::MAX_FILE_BYTES;
use journeyman_index::docs::{SectionHit, SectionReason, search_sections};
use journeyman_index::project::{MatchingLine, MatchingLines};
use journeyman_index::query::{
    Definition, FileHit, LineChooser, MAX_ANSWER_FILES, Passage, Query, QueryContext, SearchResult, Searcher,
    find_definitions, full_name,
};
use journeyman_index::tokens::Tokenizer;
use journeyman_protocol::RelPath;

use super::answers::{
    CountedSignal, FoundDefinition, FoundFile, FoundLine, FoundPassage, FoundSection, SearchAnswer, TextLine,
};
use super::graph::find_near_files;
use super::lines::LineReader;
use super::open::CodeIndex;
use super::symbols::{describe_section, shown_path};
use super::vectors::find_similar_chunks;
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

impl SearchKind {
    /// The kinds by name.
    pub const NAMED: [(&'static str, Self); 4] =
        [("file", Self::File), ("symbol", Self::Symbol), ("text", Self::Text), ("doc", Self::Doc)];
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

/// Number of lines of a passage that are shown: enough to tell what it does.
const MAX_SHOWN_PASSAGE_LINES: usize = 2;

/// The results of a search.
#[derive(Debug)]
pub struct SearchResults {
    /// The results.
    pub found: FoundResults,
    /// True if the limit left results out.
    pub has_more: bool,
}

/// The results of a search, by their kind.
#[derive(Debug)]
pub enum FoundResults {
    /// Ranked files and symbols, with the best lines of each file's passages.
    Ranked(SearchResult, Vec<Vec<Vec<TextLine>>>),
    /// Sections.
    Sections(Vec<SectionHit>),
    /// Lines.
    Lines(Vec<MatchingLine>),
}

impl SearchResults {
    /// Searches an index.
    ///
    /// # Errors
    /// [`HostError::Usage`] for a wrong pattern, and for a query without a word.
    pub fn search(index: &CodeIndex, options: &SearchOptions<'_>) -> Result<Self, HostError> {
        let CodeIndex { project, snapshot, .. } = index;
        let SearchOptions { text, kind, limit, ignore_case, near } = *options;
        if kind == SearchKind::Text {
            let found = project.matching_lines(snapshot, text, ignore_case, limit);
            let MatchingLines { lines, has_more, too_long } = found.map_err(HostError::usage)?;
            if too_long > 0 {
                let limit = MAX_FILE_BYTES >> 20;
                (index.note)(&format!(
                    "note: files of more than {limit} MiB, which aren't searched: {too_long}"
                ));
            }
            return Ok(Self { found: FoundResults::Lines(lines), has_more });
        }
        // One result more than wanted tells if there are more.
        let wanted = limit.saturating_add(1);
        let near = near.map(|near| find_near_files(index, near));
        let near = near.transpose()?.unwrap_or_default();
        let query = Query::new(text, &mut Tokenizer::new());
        if kind == SearchKind::Symbol {
            let mut definitions = find_definitions(&**snapshot, text.trim(), wanted);
            let has_more = definitions.len() > limit;
            definitions.truncate(limit);
            let answer = SearchResult { definitions, files: Vec::new() };
            return Ok(Self { found: FoundResults::Ranked(answer, Vec::new()), has_more });
        }
        let history = index.read_history();
        if query.is_empty() {
            return Err(HostError::usage(
                "the query has no word that can be looked for; --kind text finds any text by a pattern",
            ));
        }
        let max_files = if kind == SearchKind::Doc { MAX_ANSWER_FILES } else { wanted };
        let similar = find_similar_chunks(index, text);
        let vectors = similar.as_ref().map(|(similar, weight)| (similar, *weight));
        let context = QueryContext { near: &near, vectors };
        let mut answer = Searcher::new().search(&**snapshot, history.as_ref(), &query, context, max_files);
        if kind == SearchKind::Doc {
            let read = |path: &RelPath| project.read_text(path);
            let mut sections = search_sections(snapshot, &query, &answer.files, &read, wanted);
            let has_more = sections.len() > limit;
            sections.truncate(limit);
            return Ok(Self { found: FoundResults::Sections(sections), has_more });
        }
        let has_more = answer.files.len() > limit || answer.definitions.len() > limit;
        answer.files.truncate(limit);
        answer.definitions.truncate(limit);
        let lines = find_best_lines(index, &query, &answer.files);
        Ok(Self { found: FoundResults::Ranked(answer, lines), has_more })
    }

    /// Returns true if nothing was found.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        match &self.found {
            FoundResults::Ranked(answer, _) => answer.files.is_empty() && answer.definitions.is_empty(),
            FoundResults::Sections(sections) => sections.is_empty(),
            FoundResults::Lines(lines) => lines.is_empty(),
        }
    }

    /// Returns the results as they are printed in JSON.
    #[must_use]
    pub fn to_answer(&self, index: &CodeIndex) -> SearchAnswer {
        let snapshot = &*index.snapshot;
        let (more, partial) = (self.has_more, snapshot.is_partial());
        let path = |file: u32| shown_path(snapshot, file);
        match &self.found {
            FoundResults::Ranked(answer, lines) => {
                let definitions = answer.definitions.iter();
                let files = answer.files.iter().zip(lines);
                SearchAnswer::Ranked {
                    definitions: definitions.map(|one| describe_definition(path(one.file), one)).collect(),
                    files: files.map(|(hit, lines)| describe_file(path(hit.file), hit, lines)).collect(),
                    more,
                    partial,
                }
            }
            FoundResults::Sections(sections) => {
                let section = |section: &SectionHit| FoundSection {
                    place: describe_section(snapshot, &section.place),
                    names_it: section.why == SectionReason::Names,
                    score: if let SectionReason::Words(score) = section.why { Some(score) } else { None },
                };
                SearchAnswer::Sections { sections: sections.iter().map(section).collect(), more, partial }
            }
            FoundResults::Lines(lines) => {
                let line = |line: &MatchingLine| FoundLine {
                    path: path(line.file),
                    line: line.line,
                    text: line.text.clone(),
                };
                SearchAnswer::Lines { lines: lines.iter().map(line).collect(), more, partial }
            }
        }
    }
}

/// Returns, for each passage of each file, the lines that show best why it was found.
pub(super) fn find_best_lines(
    index: &CodeIndex,
    query: &Query,
    files: &[FileHit],
) -> Vec<Vec<Vec<TextLine>>> {
    let mut reader = LineReader::new(index);
    let mut chooser = LineChooser::new(&*index.snapshot, query);
    let mut lines = |file: u32, passage: &Passage| {
        let lines = reader.best_lines(file, passage, &mut chooser, MAX_SHOWN_PASSAGE_LINES).into_iter();
        lines.map(|(line, text)| TextLine { line, text }).collect()
    };
    files.iter().map(|hit| hit.passages.iter().map(|passage| lines(hit.file, passage)).collect()).collect()
}

/// Returns a file's passages as they are printed in JSON.
pub(super) fn describe_passages(passages: &[Passage], lines: &[Vec<TextLine>]) -> Vec<FoundPassage> {
    let describe = |(passage, lines): (&Passage, &Vec<TextLine>)| FoundPassage {
        first_line: passage.first_line,
        lines: passage.lines,
        symbol: passage.symbol.clone(),
        score: passage.score,
        best: lines.clone(),
    };
    passages.iter().zip(lines).map(describe).collect()
}

fn describe_definition(path: String, definition: &Definition) -> FoundDefinition {
    FoundDefinition {
        path,
        line: definition.name_line,
        kind: definition.kind.name(),
        name: full_name(&definition.scope, &definition.name),
        signature: definition.signature.clone(),
        matched: definition.matched.name(),
    }
}

fn describe_file(path: String, hit: &FileHit, lines: &[Vec<TextLine>]) -> FoundFile {
    let why = hit.why.iter();
    let why =
        why.map(|why| CountedSignal { signal: why.signal.name(), strength: why.strength, share: why.share });
    FoundFile {
        path,
        score: hit.score,
        why: why.collect(),
        passages: describe_passages(&hit.passages, lines),
    }
}
