//! `git_history` and `git_blame`: the commits of files, uncommitted changes, and the commits of
//! lines.

use std::fmt::Write as _;
use std::path::Path;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use journeyman_git::{BlameHunk, EntryStatus, Git, GitError, StatusEntry};
use journeyman_index::history::{Commit, History};
use journeyman_index::query::Query;
use journeyman_index::tokens::Tokenizer;
use journeyman_protocol::{ContentHash, Effects, RelPath, ToolSpec, UnixMillis, clip_to_bytes};
use journeyman_workspace::{FileContent, WorkspaceError, unified_diff};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::excerpt::to_one_line;
use crate::index_answer::{IndexAnswer, is_beneath};
use crate::read_file::redact_settings;
use crate::tool_interface::{ToolInterface, bounded_count};
use crate::{Tool, ToolContext, ToolError, ToolOutput};

/// Default number of commits in an answer.
const DEFAULT_COMMITS: u64 = 15;
/// Maximum number of commits in an answer; more is the whole log.
const MAX_COMMITS: u64 = 100;
/// Maximum number of files named of a commit in a list, and of a commit that is requested by id.
const MAX_COMMIT_FILES: (usize, usize) = (6, 100);
/// Number of characters of a commit id that are shown: enough to be unique in any project.
const ID_CHARACTERS: usize = 10;
/// Minimum number of characters of a word that is taken for a commit id.
const MIN_ID_CHARS: usize = 7;
/// Default number of lines that are blamed.
const DEFAULT_BLAMED_LINES: u32 = 100;
/// Maximum number of lines that are blamed at once.
const MAX_BLAMED_LINES: u32 = 1_000;
/// Maximum bytes of a file whose lines are blamed.
const MAX_BLAMED_FILE_BYTES: usize = 4 * 1024 * 1024;
/// Maximum number of changed files that are compared with the last commit at once.
const MAX_DIFFED_FILES: usize = 200;
/// Maximum bytes of a query in a summary.
const MAX_SUMMARY_BYTES: usize = 100;
/// Maximum bytes of a commit's subject in a list; the whole message is shown by id.
const MAX_SUBJECT_BYTES: usize = 160;

#[derive(Deserialize, JsonSchema)]
struct HistoryArguments {
    /// File or directory
    path: Option<String>,
    /// Words of messages, or an id
    query: Option<String>,
    /// Commits (15)
    limit: Option<u64>,
    /// The diff instead
    uncommitted: Option<bool>,
}

#[derive(Deserialize, JsonSchema)]
struct BlameArguments {
    /// File
    path: String,
    /// First line, from 1
    first: Option<u32>,
    /// Last line
    last: Option<u32>,
}

/// The `git_history` tool.
pub(crate) struct GitHistory {
    shape: ToolInterface,
}

/// The `git_blame` tool.
pub(crate) struct GitBlame {
    shape: ToolInterface,
}

impl GitHistory {
    pub(crate) fn new(root: Option<&Path>) -> Self {
        let description =
            "Newest commits of a path or with words in their messages; or the uncommitted diff.";
        Self { shape: ToolInterface::for_arguments::<HistoryArguments>("git_history", description, root) }
    }

    async fn run(&self, context: &ToolContext, input: Value) -> Result<ToolOutput, ToolError> {
        let arguments: HistoryArguments = self.shape.read_arguments(&input)?;
        let path = self.shape.parse_directory("path", arguments.path.as_deref())?;
        let query = arguments.query.map(|query| query.trim().to_owned()).filter(|query| !query.is_empty());
        let limit = bounded_count(arguments.limit, DEFAULT_COMMITS, MAX_COMMITS);
        let git = require_git(context)?;
        if arguments.uncommitted == Some(true) {
            return show_uncommitted(context, &git, path.as_ref()).await.map(ToolOutput::text);
        }
        let Some(history) = context.index.history().await else {
            // Git reports why there is no commit.
            return match git.head().await.map_err(git_failure)? {
                None => Ok(ToolOutput::text("There are no commits yet.")),
                Some(_) => {
                    Err(ToolError::Git("its commits are still being read; ask again in a moment".to_owned()))
                }
            };
        };
        let text = show_commits(context, &history, path.as_ref(), query.as_deref(), limit);
        Ok(ToolOutput::text(text))
    }
}

/// Shows the differences between the last commit and the present files beneath a path.
async fn show_uncommitted(
    context: &ToolContext,
    git: &Git,
    path: Option<&RelPath>,
) -> Result<String, ToolError> {
    let status = git.status().await.map_err(git_failure)?;
    let changed: Vec<&StatusEntry> =
        status.entries.iter().filter(|entry| is_beneath(entry.path.as_bytes(), path)).collect();
    let mut answer = IndexAnswer::new(context, "");
    for (place, entry) in changed.iter().enumerate() {
        if place == MAX_DIFFED_FILES {
            answer.add_line(&format!("[{} more files are changed; give a path]", changed.len() - place));
            break;
        }
        if answer.may_show(&entry.path) {
            let diff = uncommitted_diff(context, git, entry).await?;
            if !diff.lines().all(|line| answer.add_line(&clean_line(line))) {
                let rest = changed.len() - place - 1;
                return Ok(answer.into_text(None, &format!("{rest} more files are changed; give a path")));
            }
        }
    }
    let empty = changed.is_empty().then(|| "Nothing is uncommitted there.\n".to_owned());
    Ok(answer.into_text(empty, "give a path"))
}

/// Returns the difference of one file from the last commit, or the reason why it isn't shown.
async fn uncommitted_diff(
    context: &ToolContext,
    git: &Git,
    entry: &StatusEntry,
) -> Result<String, ToolError> {
    let path = &entry.path;
    let committed = match entry.entry {
        EntryStatus::Untracked { .. } => Ok(None),
        _ => git.show("HEAD", path, MAX_BLAMED_FILE_BYTES).await,
    };
    let committed = match committed {
        Ok(bytes) => bytes.map(|bytes| FileContent::from_bytes(bytes, false)),
        Err(GitError::OutputTooLarge { .. }) => {
            return Ok(format!("{path}: changed, and too long to be shown\n"));
        }
        // Nothing is committed yet.
        Err(GitError::InvalidRequest(_)) => None,
        Err(error) => return Err(git_failure(error)),
    };
    let now = match context.workspace.read(path, MAX_BLAMED_FILE_BYTES as u64) {
        Ok(content) => Some(content),
        Err(WorkspaceError::NotFound { .. }) => None,
        Err(error) => return Ok(format!("{path}: changed; {error}\n")),
    };
    let sides = [&committed, &now];
    if sides.iter().any(|side| side.as_ref().is_some_and(|content| content.text().is_none())) {
        return Ok(format!("{path}: changed, binary\n"));
    }
    // Masked before the text is split into lines: a secret may span several.
    let [old, new] = sides.map(|side| {
        let text = side.as_ref().and_then(FileContent::text);
        let text = text.map(|text| redact_settings(path, text));
        text.map(|text| context.index.redactor().redact(&text).into_owned())
    });
    Ok(unified_diff(path, old.as_deref().map(str::as_bytes), new.as_deref().map(str::as_bytes)))
}

fn show_commits(
    context: &ToolContext,
    history: &History,
    path: Option<&RelPath>,
    query: Option<&str>,
    limit: usize,
) -> String {
    let touches =
        |commit: &Commit| path.is_none() || history.files(commit).any(|file| is_beneath(file, path));
    let mut chosen: Vec<(f32, &Commit)> =
        history.commits().iter().filter(|commit| touches(commit)).map(|commit| (0.0, commit)).collect();
    let mut by_id = false;
    if let Some(query) = query {
        let id = query.len() >= MIN_ID_CHARS && query.bytes().all(|byte| byte.is_ascii_hexdigit());
        let id = query.to_ascii_lowercase().into_bytes().into_iter().filter(|_| id).collect::<Vec<u8>>();
        by_id = !id.is_empty() && chosen.iter().any(|(_, commit)| commit.id.as_bytes().starts_with(&id));
        if by_id {
            chosen.retain(|(_, commit)| commit.id.as_bytes().starts_with(&id));
        } else {
            keep_best_messages(&mut chosen, query);
        }
    }
    let total = chosen.len();
    let mut answer = IndexAnswer::new(context, "");
    for (_, commit) in chosen.iter().take(limit) {
        // Masked before the message is cut: half a secret is a secret, too.
        let message = context.index.redactor().redact(&commit.message);
        let subject = message.lines().next().unwrap_or_default();
        let subject = if by_id { message.trim_end() } else { clip_to_bytes(subject, MAX_SUBJECT_BYTES) };
        let id = commit.id.get(..ID_CHARACTERS).unwrap_or(&commit.id);
        let mut lines = format!("{id} {} {}: {subject}", UnixMillis(commit.time).to_date(), commit.author);
        let most = if by_id { MAX_COMMIT_FILES.1 } else { MAX_COMMIT_FILES.0 };
        let files: Vec<String> =
            history.files(commit).take(most).map(|file| String::from_utf8_lossy(file).into_owned()).collect();
        let more = commit.files.len().saturating_sub(files.len());
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        // Writing to a string can't fail.
        write!(lines, "\n  {}{more}", files.join(" ")).ok();
        if !lines.lines().all(|line| answer.add_line(&clean_line(line))) {
            break;
        }
    }
    let read = history.commits().len();
    let empty = (total == 0).then(|| format!("None of the last {read} commits does.\n"));
    if total > limit && !answer.is_full() {
        answer.add_line(&format!("[{limit} of {total}; give more words, a path or a higher limit]"));
    }
    answer.into_text(empty, "give a path or a lower limit")
}

/// Keeps the commits whose messages contain words of the query: most words first, then newest
/// first.
fn keep_best_messages(chosen: &mut Vec<(f32, &Commit)>, query: &str) {
    let mut tokenizer = Tokenizer::new();
    let query = Query::new(query, &mut tokenizer);
    for (score, commit) in chosen.iter_mut() {
        tokenizer.begin_file();
        let mut has = vec![false; query.terms.len()];
        tokenizer.visit_terms(&commit.message, &mut |term| {
            if let Some(place) = query.terms.iter().position(|one| one.text == term)
                && let Some(has) = has.get_mut(place)
            {
                *has = true;
            }
        });
        *score = query.terms.iter().zip(has).filter(|(_, has)| *has).map(|(term, _)| term.weight).sum();
    }
    chosen.retain(|(score, _)| *score > 0.0);
    // Stable: the history is newest first.
    chosen.sort_by(|one, other| other.0.total_cmp(&one.0));
}

impl GitBlame {
    pub(crate) fn new(root: Option<&Path>) -> Self {
        let description = "Commits of a file's lines, as last committed.";
        Self { shape: ToolInterface::for_arguments::<BlameArguments>("git_blame", description, root) }
    }

    async fn run(&self, context: &ToolContext, input: Value) -> Result<ToolOutput, ToolError> {
        let arguments: BlameArguments = self.shape.read_arguments(&input)?;
        let path = self.shape.parse_path(&arguments.path)?;
        let first = arguments.first.unwrap_or(1).max(1);
        let last = arguments.last.unwrap_or_else(|| first.saturating_add(DEFAULT_BLAMED_LINES - 1));
        if last < first {
            return Err(self.shape.argument_error(format!("`last` ({last}) comes before `first` ({first})")));
        }
        let git = require_git(context)?;
        let committed = git.show("HEAD", &path, MAX_BLAMED_FILE_BYTES).await.map_err(git_failure)?;
        let Some(committed) = committed else {
            return Err(ToolError::Git(format!(
                "the last commit doesn't have `{path}`; list_files shows what there is"
            )));
        };
        let text = String::from_utf8_lossy(&committed).into_owned();
        let lines = u32::try_from(text.lines().count()).unwrap_or(u32::MAX);
        if first > lines {
            return Ok(ToolOutput::text(format!(
                "(line {first} is beyond the end: {path} has {lines} lines as committed)"
            )));
        }
        let end = last.min(lines).min(first.saturating_add(MAX_BLAMED_LINES - 1));
        let blamed = git.blame("HEAD", &path, first..=end).await.map_err(git_failure)?;
        let now =
            context.workspace.read(&path, MAX_BLAMED_FILE_BYTES as u64).ok().map(|content| content.hash);
        let same = now == Some(ContentHash::of(&committed));
        let text = redact_settings(&path, &text);
        Ok(ToolOutput::text(describe_blamed_lines(context, &blamed, &text, same, end < last.min(lines))))
    }
}

fn describe_blamed_lines(
    context: &ToolContext,
    blamed: &[BlameHunk],
    text: &str,
    same: bool,
    cut: bool,
) -> String {
    let note = "[note: the file was changed since; these are the lines of the last commit]\n";
    let mut answer = IndexAnswer::new(context, if same { "" } else { note });
    let text = context.index.redactor().redact(text);
    let all: Vec<&str> = text.lines().collect();
    for run in blamed {
        let subject = context.index.redactor().redact(&run.subject);
        let id = run.commit.get(..ID_CHARACTERS).unwrap_or(&run.commit);
        let subject = clip_to_bytes(&subject, MAX_SUBJECT_BYTES);
        if !answer.add_line(&clean_line(&format!("{id} {} {}: {subject}", run.time.to_date(), run.author))) {
            break;
        }
        let lines = (run.first_line..).take(run.lines as usize);
        let numbered =
            lines.map(|number| (number, all.get(number as usize - 1).copied().unwrap_or_default()));
        if !numbered.into_iter().all(|(number, line)| answer.add_numbered_line(number, line)) {
            break;
        }
    }
    if cut && !answer.is_full() {
        answer.add_line(&format!("[{MAX_BLAMED_LINES} lines at once; go on with first]"));
    }
    answer.into_text(None, "ask for fewer lines")
}

/// Returns a line without control characters: people see results, too.
fn clean_line(line: &str) -> String {
    journeyman_sandbox::clean_output(line.as_bytes())
}

fn require_git(context: &ToolContext) -> Result<Git, ToolError> {
    context.index.git().cloned().ok_or_else(|| ToolError::Git("this session has no git".to_owned()))
}

fn git_failure(error: GitError) -> ToolError {
    ToolError::Git(error.to_string())
}

impl Tool for GitHistory {
    fn spec(&self) -> ToolSpec {
        self.shape.spec()
    }

    fn effects(&self, input: &Value) -> Result<Effects, ToolError> {
        let arguments: HistoryArguments = self.shape.read_arguments(input)?;
        self.shape.directory_read_effects(arguments.path.as_deref())
    }

    fn summary(&self, input: &Value) -> String {
        match self.shape.read_arguments::<HistoryArguments>(input) {
            Ok(HistoryArguments { uncommitted: Some(true), path, .. }) => {
                let place = path.map(|path| format!(" of {}", to_one_line(&path, MAX_SUMMARY_BYTES)));
                format!("look at the uncommitted diff{}", place.unwrap_or_default())
            }
            Ok(HistoryArguments { query: Some(query), .. }) => {
                format!("look for commits of `{}`", to_one_line(&query, MAX_SUMMARY_BYTES))
            }
            Ok(HistoryArguments { path: Some(path), .. }) => {
                format!("look at the commits of {}", to_one_line(&path, MAX_SUMMARY_BYTES))
            }
            _ => "look at the last commits".to_owned(),
        }
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

impl Tool for GitBlame {
    fn spec(&self) -> ToolSpec {
        self.shape.spec()
    }

    fn effects(&self, input: &Value) -> Result<Effects, ToolError> {
        let arguments: BlameArguments = self.shape.read_arguments(input)?;
        Ok(Effects { reads: vec![self.shape.parse_path(&arguments.path)?], ..Effects::default() })
    }

    fn summary(&self, input: &Value) -> String {
        match self.shape.read_arguments::<BlameArguments>(input) {
            Ok(BlameArguments { path, .. }) => format!("blame {}", to_one_line(&path, MAX_SUMMARY_BYTES)),
            Err(_) => "blame a file".to_owned(),
        }
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
