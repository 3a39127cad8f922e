//! The index of a project, brought up to date before it answers.

use journeyman_host::config::Environment;
use journeyman_host::index::{CodeGraph, CodeIndex};
use journeyman_host::input::read_argument;
use journeyman_host::task_input::MAX_TASK_BYTES;
use journeyman_host::{Context as _, HostError};
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

/// Reads a query; `-` stands for standard input.
pub(super) fn read_query(argument: &str) -> Result<String, HostError> {
    let text = read_argument("query", argument, MAX_TASK_BYTES)?;
    if text.trim().is_empty() {
        return Err(HostError::usage("the query is empty"));
    }
    Ok(text)
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

/// Prints the number of results that the limit omitted.
pub(super) fn print_omitted_count(more: usize) {
    if more > 0 {
        errln!("{more} more; --limit shows them");
    }
}
