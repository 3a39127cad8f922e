//! A map of the files that matter most, within a budget of tokens.

use journeyman_context::{FileOutline, Signature, TokenEstimator, outline_map};
use journeyman_index::overview::{self, MAX_FOUND_FILES};
use journeyman_index::query::{Query, QueryContext, Searcher};
use journeyman_index::tokens::Tokenizer;
use journeyman_protocol::{TokenCounter as _, Tokens};
use journeyman_sandbox::clean_output;

use super::answers::MapAnswer;
use super::open::CodeIndex;

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
    /// Draws a map that costs at most `tokens`.
    #[must_use]
    pub fn build(index: &CodeIndex, task: Option<&str>, tokens: Tokens) -> Self {
        let CodeIndex { project, snapshot, .. } = index;
        let graph = project.graph(snapshot);
        let asked = task.map(|task| rank_files_for_task(index, task)).unwrap_or_default();
        let order = overview::rank_files(snapshot, Some(&graph), &asked);
        let outlined: Vec<FileOutline> = order
            .iter()
            .filter_map(|(file, _)| {
                let told = overview::signatures(snapshot, *file, task.unwrap_or_default()).into_iter();
                let signatures: Vec<Signature> = told
                    .map(|one| Signature { text: one.text, depth: one.depth, worth: one.worth })
                    .collect();
                let path = clean_output(snapshot.file(*file)?.path_bytes());
                let wanted = asked.iter().any(|(asked, _)| asked == file);
                (wanted || !signatures.is_empty()).then_some(FileOutline { path, signatures })
            })
            .collect();
        let (text, shown) = outline_map(&outlined, tokens);
        let cost = TokenEstimator.count(&text).0;
        Self { text, shown, cost, files: graph.len(), has_signatures: !outlined.is_empty() }
    }

    /// Returns the map as it is printed in JSON.
    #[must_use]
    pub fn to_answer(&self) -> MapAnswer {
        MapAnswer { map: self.text.clone(), tokens: self.cost, shown: self.shown, files: self.files }
    }
}

/// Returns the files that the search finds for a task, each with its share of the best one's score.
fn rank_files_for_task(index: &CodeIndex, task: &str) -> Vec<(u32, f64)> {
    let history = index.read_history();
    let query = Query::new(task, &mut Tokenizer::new());
    let answer = Searcher::new().search(
        &*index.snapshot,
        history.as_ref(),
        &query,
        QueryContext::default(),
        MAX_FOUND_FILES,
    );
    overview::score_shares(&answer)
}
