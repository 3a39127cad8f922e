//! The index of a project, brought up to date before it answers.

use journeyman_host::config::Environment;
use journeyman_host::format::printable;
use journeyman_host::index::{CodeGraph, CodeIndex};
use journeyman_host::{Context as _, HostError};
use journeyman_index::query::Passage;
use journeyman_index::store::RefreshProgress;
use journeyman_terminal::{CountProgress, clear_count_line};
use serde::Serialize;

use crate::args::AnswerArgs;

/// Prints a note for people, in place of a line of progress.
pub(super) fn print_note(text: &str) {
    clear_count_line();
    errln!("{text}");
}

/// Opens the index of the project, up to date; shows progress if that takes a while.
pub(super) fn open_index(environment: &Environment, answer: &AnswerArgs) -> Result<CodeIndex, HostError> {
    let line = CountProgress::new("indexing");
    let progress = |progress: RefreshProgress| line.update(progress.done, progress.of);
    let index = CodeIndex::open(environment, answer.project.directory.as_deref(), print_note, &progress);
    line.clear();
    index
}

/// Opens the dependency graph of the project, up to date.
pub(super) fn open_graph(environment: &Environment, answer: &AnswerArgs) -> Result<CodeGraph, HostError> {
    Ok(CodeGraph::new(open_index(environment, answer)?))
}

/// Prints an answer, as JSON if the flags say so. Returns the exit code: 1 for an empty answer.
pub(super) fn print_answer<T: Serialize>(
    args: &AnswerArgs,
    is_empty: bool,
    to_answer: impl FnOnce() -> T,
    print: impl FnOnce(),
) -> Result<u8, HostError> {
    if args.json {
        outln!("{}", serde_json::to_string(&to_answer()).context("the answer")?);
    } else {
        print();
    }
    Ok(u8::from(is_empty))
}

/// Formats the lines of a passage, and the symbol that they belong to.
pub(super) fn format_passage(passage: &Passage) -> String {
    let last = passage.first_line + passage.lines.saturating_sub(1);
    let symbol = passage.symbol.as_deref().unwrap_or_default();
    format!("{}-{last}  {}", passage.first_line, printable(&symbol)).trim_end().to_owned()
}

/// Prints the number of results that the limit omitted.
pub(super) fn print_omitted_count(more: usize) {
    if more > 0 {
        errln!("{more} more; --limit shows them");
    }
}
