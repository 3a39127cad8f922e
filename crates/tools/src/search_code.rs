//! `search_code`: files ranked by their words, definitions and commits.

use std::path::Path;
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use journeyman_index::Snapshot;
use journeyman_index::history::History;
use journeyman_index::query::{
    Definition, FileHit, LineChooser, MAX_ANSWER_FILES, MatchQuality, Passage, Query, QueryContext, Searcher,
    full_name,
};
use journeyman_index::tokens::Tokenizer;
use journeyman_protocol::{Effects, RelPath, ToolSpec};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::excerpt::to_one_line;
use crate::index_answer::{IndexAnswer, is_beneath};
use crate::tool::run_blocking;
use crate::tool_interface::{ToolInterface, bounded_count, not_found};
use crate::{Tool, ToolContext, ToolError, ToolOutput};

/// Default number of files in an answer: for nine of ten questions the right one is among the first
/// five.
const DEFAULT_FILES: u64 = 8;
/// Maximum number of files in an answer.
const MAX_FILES: u64 = 50;
/// Maximum number of definitions of a name shown before the files.
const MAX_DEFINITIONS: usize = 5;
/// Maximum number of passages shown of a file.
const MAX_PASSAGES: usize = 2;
/// Number of files whose passages are shown at length.
const MAX_DETAILED_FILES: usize = 3;
/// Maximum number of lines of a passage: in the first files, and in the others.
const PASSAGE_LINES: (usize, usize) = (10, 4);
/// Maximum number of reasons shown for a file.
const MAX_REASONS: usize = 3;
/// Maximum number of recently used files whose neighbours rank a little higher, because a session
/// works on a few files at a time.
const MAX_RECENT_FILES: usize = 5;
/// Maximum bytes of a query in a summary.
const MAX_SUMMARY_BYTES: usize = 80;

#[derive(Deserialize, JsonSchema)]
struct SearchCodeArguments {
    /// Question, error or name
    query: String,
    /// Directory
    path: Option<String>,
    /// Files (8)
    limit: Option<u64>,
}

/// The `search_code` tool.
pub(crate) struct SearchCode {
    shape: ToolInterface,
}

impl SearchCode {
    pub(crate) fn new(root: Option<&Path>) -> Self {
        let description =
            "Ranks the project's files for a question, an error or a name, with the lines that matter.";
        Self { shape: ToolInterface::for_arguments::<SearchCodeArguments>("search_code", description, root) }
    }

    async fn run(&self, context: &ToolContext, input: Value) -> Result<ToolOutput, ToolError> {
        let arguments: SearchCodeArguments = self.shape.read_arguments(&input)?;
        let under = self.shape.parse_directory("path", arguments.path.as_deref())?;
        let query = Query::new(&arguments.query, &mut Tokenizer::new());
        if query.is_empty() {
            return Err(self
                .shape
                .argument_error("`query` has no word that can be looked for; search_text takes any text"));
        }
        let limit = bounded_count(arguments.limit, DEFAULT_FILES, MAX_FILES);
        let history = context.index.history().await;
        let context = context.clone();
        let wanted = SearchRequest { text: arguments.query, query, under, limit, history };
        run_blocking(move || search_code(&context, &wanted)).await
    }
}

/// The arguments of a call, checked.
struct SearchRequest {
    text: String,
    query: Query,
    under: Option<RelPath>,
    limit: usize,
    history: Option<Arc<History>>,
}

fn search_code(context: &ToolContext, wanted: &SearchRequest) -> Result<ToolOutput, ToolError> {
    let SearchRequest { text, query, under, limit, history } = wanted;
    let (under, limit) = (under.as_ref(), *limit);
    if let Some(path) = under.filter(|path| !matches!(context.workspace.stat(path), Ok(Some(_)))) {
        return Err(not_found(&context.workspace, path.clone()));
    }
    let asked = context.index.snapshot(&context.cancel)?;
    let snapshot = &*asked.snapshot;
    // Files outside the directory, and those that a rule withholds, are removed afterwards.
    let most = if under.is_some() { MAX_ANSWER_FILES } else { limit * 2 };
    let near = context.index.near_files(&asked, &context.seen.recent_files(MAX_RECENT_FILES));
    let (similar, without) = context.index.similar_files(&asked, text);
    let vectors = similar.as_ref().map(|(similar, weight)| (similar, *weight));
    let found = Searcher::new().search(
        snapshot,
        history.as_deref(),
        query,
        QueryContext { near: &near, vectors },
        most,
    );
    let without = without.map(|why| format!("[note: vectors don't count this time: {why}]\n"));
    let mut answer = IndexAnswer::new(context, &format!("{}{}", asked.note, without.unwrap_or_default()));
    let mut any = false;
    for one in
        found.definitions.iter().filter(|one| one.matched <= MatchQuality::Prefix).take(MAX_DEFINITIONS)
    {
        let path = snapshot.path_of(one.file).filter(|path| is_beneath(path.as_bytes(), under));
        if let Some(path) = path.filter(|path| answer.may_show(path)) {
            any |= answer.add_line(&describe_definition(&path, one));
        }
    }
    let mut chooser = LineChooser::new(snapshot, query);
    let mut shown = 0;
    for hit in found.files.iter().filter(|hit| is_beneath(&hit.path, under)) {
        if shown == limit || answer.is_full() {
            break;
        }
        let Ok(path) = RelPath::parse(&hit.path) else { continue };
        if answer.may_show(&path) {
            any |= answer.add_line(&format!("{path}  ({})", describe_reasons(hit)));
            let lines = if shown < MAX_DETAILED_FILES { PASSAGE_LINES.0 } else { PASSAGE_LINES.1 };
            for passage in hit.passages.iter().take(MAX_PASSAGES) {
                show_passage(&mut answer, &path, passage, lines, &mut chooser);
            }
            shown += 1;
        }
    }
    let empty = (!any).then(|| nothing_found_message(snapshot));
    Ok(ToolOutput::text(answer.into_text(empty, "a narrower query, path or limit shows what matters most")))
}

fn nothing_found_message(snapshot: &Snapshot) -> String {
    format!("Nothing was found among {} files.\n", snapshot.totals().files)
}

fn describe_definition(path: &RelPath, one: &Definition) -> String {
    let name = full_name(&one.scope, &one.name);
    let told = if one.signature.is_empty() { String::new() } else { format!("  {}", one.signature) };
    format!("defined: {path}:{} {} {name}{told}", one.name_line, one.kind.name())
}

fn describe_reasons(hit: &FileHit) -> String {
    let reasons = hit.why.iter().take(MAX_REASONS);
    let told: Vec<String> =
        reasons.map(|why| format!("{} {:.0}%", why.signal.name(), why.share * 100.0)).collect();
    told.join(", ")
}

/// Shows the lines of a passage that match the query best.
fn show_passage(
    answer: &mut IndexAnswer<'_>,
    path: &RelPath,
    passage: &Passage,
    most: usize,
    chooser: &mut LineChooser,
) {
    let Some(text) = answer.text_of(path) else { return };
    let chosen: Vec<(u32, String)> = chooser
        .best_lines(text, passage, most)
        .into_iter()
        .map(|(number, line)| (number, line.to_owned()))
        .collect();
    let last = passage.first_line.saturating_add(passage.lines.saturating_sub(1));
    let inside = passage.symbol.as_deref().map_or(String::new(), |symbol| format!(" {symbol}"));
    if !answer.add_line(&format!(" lines {}-{last}{inside}", passage.first_line)) {
        return;
    }
    for (number, line) in chosen {
        if !answer.add_numbered_line(number, &line) {
            return;
        }
    }
}

impl Tool for SearchCode {
    fn spec(&self) -> ToolSpec {
        self.shape.spec()
    }

    fn effects(&self, input: &Value) -> Result<Effects, ToolError> {
        let arguments: SearchCodeArguments = self.shape.read_arguments(input)?;
        self.shape.directory_read_effects(arguments.path.as_deref())
    }

    fn summary(&self, input: &Value) -> String {
        let Ok(arguments) = self.shape.read_arguments::<SearchCodeArguments>(input) else {
            return "search the code".to_owned();
        };
        format!("search the code for `{}`", to_one_line(&arguments.query, MAX_SUMMARY_BYTES))
    }

    fn is_read_only(&self) -> bool {
        true
    }

    fn call<'a>(
        &'a self,
        context: &'a ToolContext,
        input: Value,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        self.run(context, input).boxed()
    }
}
