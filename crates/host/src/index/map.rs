//! A map of the files that matter most, within a budget of tokens.

use std::path::Path;
use std::sync::Arc;

use journeyman_context::{Estimate, Outlined, Signature, outline_map};
use journeyman_index::overview::{self, FOUND};
use journeyman_index::query::{Context, Query, Searcher};
use journeyman_index::tokens::Tokenizer;
use journeyman_index::{Project, Snapshot};
use journeyman_protocol::{TokenCounter as _, Tokens};
use journeyman_sandbox::clean;

use super::read_history;
use crate::HostError;
use crate::config::Environment;

/// A map of a project, or of a project for a task.
#[derive(Debug)]
pub struct ProjectMap {
    /// The map.
    pub text: String,
    /// The number of files in the map.
    pub shown: usize,
    /// The estimated cost of the map, in tokens.
    pub cost: u64,
    /// The number of files of the project.
    pub files: usize,
    /// True if any file has something to show.
    pub has_signatures: bool,
}

impl ProjectMap {
    /// Draws a map that costs at most `tokens`. `note` gets what people should know.
    ///
    /// # Errors
    /// [`HostError::Usage`] where the project's directory doesn't exist.
    pub fn draw(
        environment: &Environment,
        directory: Option<&Path>,
        project: &Project,
        snapshot: &Arc<Snapshot>,
        task: Option<&str>,
        tokens: Tokens,
        note: fn(&str),
    ) -> Result<Self, HostError> {
        let graph = project.graph(snapshot);
        let asked = match task {
            Some(task) => find_for_task(environment, directory, project, snapshot, task, note)?,
            None => Vec::new(),
        };
        let order = overview::order(snapshot, Some(&graph), &asked);
        let outlined: Vec<Outlined> = order
            .iter()
            .filter_map(|(file, _)| {
                let told = overview::signatures(snapshot, *file, task.unwrap_or_default()).into_iter();
                let signatures: Vec<Signature> = told
                    .map(|one| Signature { text: one.text, depth: one.depth, worth: one.worth })
                    .collect();
                let path = clean(snapshot.file(*file)?.path_bytes());
                let wanted = asked.iter().any(|(asked, _)| asked == file);
                (wanted || !signatures.is_empty()).then_some(Outlined { path, signatures })
            })
            .collect();
        let (text, shown) = outline_map(&outlined, tokens);
        let cost = Estimate.count(&text).0;
        Ok(Self { text, shown, cost, files: graph.len(), has_signatures: !outlined.is_empty() })
    }
}

/// Returns the files that the search finds for a task, each with its share of the best one's score.
fn find_for_task(
    environment: &Environment,
    directory: Option<&Path>,
    project: &Project,
    snapshot: &Snapshot,
    task: &str,
    note: fn(&str),
) -> Result<Vec<(u32, f64)>, HostError> {
    let history = read_history(environment, directory, project, note)?;
    let query = Query::new(task, &mut Tokenizer::new());
    let answer = Searcher::new().search(snapshot, history.as_ref(), &query, Context::default(), FOUND);
    Ok(overview::shares(&answer))
}
