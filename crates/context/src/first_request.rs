//! The first request of a session.

use std::fmt::Write as _;

use journeyman_protocol::{
    ContextCategory, ContextShare, Evidence, Mode, RelPath, TokenCounter as _, Tokens, ToolSpec,
};
use journeyman_workspace::{FileBody, Listing, Workspace, WorkspaceError};

use crate::fence::fence_text;
use crate::gathering::GatheredContext;
use crate::known_failures::known_failures_text;
use crate::line_commits::{FRAME_TOKENS, LineCommit, MAX_SUBJECT_CHARS, line_commits_text};
use crate::memory::{MemoryNote, notes_text};
use crate::mention::{Mention, find_mentions};
use crate::outlines::{FileOutline, outline_map};
use crate::packing::{
    CandidateReason, ContextCandidate, PackingDecision, PackingOutcome, Selection, SelectionBudget, Texts,
    relevant_parts, select,
};
use crate::prompt::{PromptTexts, ReadOnlyGoal};
use crate::repository_map::{DEFAULT_BUDGET, NearnessCriteria, repository_map};
use crate::uncommitted::{UncommittedFile, uncommitted_line};
use crate::words::TaskVocabulary;
use crate::{TokenEstimator, instructions};

/// All instruction files together, in tokens: more is a manual, which the model can read in parts.
const MAX_INSTRUCTION_TOKENS: Tokens = Tokens(8_000);
/// The checks that failed before the task, in tokens.
const MAX_FAILURE_TOKENS: Tokens = Tokens(1_200);
/// One file that the task names, in tokens: of a larger one the parts that the task is about.
const MAX_NAMED_FILE_TOKENS: Tokens = Tokens(4_000);
/// Of the map's budget, in hundredths: what files define that an index finds for the task. What
/// they don't need is for paths.
const OUTLINES_PERCENT: u64 = 60;
/// Shares of what task and system prompt leave, in hundredths: at most for instructions, failed
/// checks, the map and files that the task names; what an index finds has all that these leave, but
/// for a reserve for what estimates miss.
const INSTRUCTIONS_PERCENT: u64 = 30;
const FAILURES_PERCENT: u64 = 10;
const MAP_PERCENT: u64 = 15;
const NAMED_FILES_PERCENT: u64 = 50;
const RESERVE_PERCENT: u64 = 10;
/// Maximum tokens of the notes about changes and commits.
const MAX_HISTORY_TOKENS: Tokens = Tokens(400);
/// A larger file is only pointed at, in bytes.
const MAX_FILE_BYTES: u64 = 8 << 20;
/// Maximum number of files named by the task that are included.
const MAX_NAMED_FILES: usize = 12;
/// Maximum number of checks that are named.
const MAX_CHECKS: usize = 12;

/// The parts of the first request.
#[derive(Clone, Copy)]
pub struct FirstRequestInputs<'a> {
    /// The texts that the model is told with every task.
    pub prompts: &'a PromptTexts,
    /// The user's task.
    pub task: &'a str,
    /// The project.
    pub workspace: &'a Workspace,
    /// Its files, sorted.
    pub listing: &'a Listing,
    /// The files that the user has open, the likeliest first; those that aren't listed are left
    /// out. They count as files that the task names.
    pub open: &'a [RelPath],
    /// The index's results for the task, if an index exists already.
    pub found: Option<&'a GatheredContext>,
    /// The commits that last changed the lines that the task is about, as far as they are known.
    pub line_commits: &'a [LineCommit],
    /// The files that differ from the last commit, as far as they are known.
    pub uncommitted: &'a [UncommittedFile],
    /// The checks that failed on the files as they are, before the task.
    pub failures: &'a [Evidence],
    /// Returns true if the text of a file may be shown: instructions import only such files.
    pub may_show: &'a dyn Fn(&RelPath) -> bool,
    /// The commands of the checks that run when the model stops.
    pub checks: &'a [String],
    /// The system prompt of an agent, in place of the one of a session that takes any task.
    pub role: Option<&'a str>,
    /// The permission mode.
    pub mode: Mode,
    /// The answer that is asked for in mode plan. An agent's own prompt says what it answers.
    pub goal: ReadOnlyGoal,
    /// The user's own instructions for every project.
    pub user_instructions: Option<&'a str>,
    /// Instructions from the project's own configuration; never presented as the user's words.
    pub project_instructions: Option<&'a str>,
    /// Notes of earlier sessions.
    pub notes: &'a [MemoryNote],
    /// The model has no tool calling: it is told how to write edits and calls as text.
    pub text_protocol: bool,
    /// The tools of the session; they are described here only for the text protocol.
    pub tools: &'a [ToolSpec],
    /// The date, such as `2026-11-21`.
    pub today: &'a str,
    /// The system, such as `linux`.
    pub platform: &'a str,
    /// Maximum tokens of system prompt and first message together, without the tools' schemas.
    pub budget: Tokens,
}

/// A part of the system prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SystemText {
    /// The text.
    pub text: String,
    /// True if a provider should keep everything up to here for later requests.
    pub cache: bool,
}

/// Contents of a packed request.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PackReport {
    /// An estimate of what system prompt and message cost.
    pub tokens: Tokens,
    /// The number of paths from which the map was drawn.
    pub files_listed: u64,
    /// The instruction files that were put in.
    pub instructions: Vec<RelPath>,
    /// The files that the task names and that were put in, whole or in part.
    pub files: Vec<RelPath>,
    /// The use of each category's share.
    pub shares: Vec<ContextShare>,
    /// Everything that was weighed, in and out, by category.
    pub items: Vec<WeighedItem>,
}

/// A thing that was weighed for the first request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WeighedItem {
    /// Its category.
    pub category: ContextCategory,
    /// Its name: a path, with lines where it is a part.
    pub name: String,
    /// Its estimated cost; 0 if it wasn't counted.
    pub tokens: Tokens,
    /// The likelihood that the task needs it, in hundredths; `None` for what is always in.
    pub relevance: Option<u8>,
    /// The reason why it was weighed.
    pub why: String,
    /// The decision about it.
    pub outcome: PackingOutcome,
}

impl PackReport {
    /// Notes something that is always in.
    fn note(&mut self, category: ContextCategory, name: &str, why: &str, tokens: Tokens) {
        let (name, why) = (name.to_owned(), why.to_owned());
        self.items.push(WeighedItem {
            category,
            name,
            tokens,
            relevance: None,
            why,
            outcome: PackingOutcome::Included,
        });
    }

    /// Notes a file that the task names, or the user has open, and that can't be shown.
    fn note_refusal(
        &mut self,
        path: &RelPath,
        reason: &CandidateReason,
        (outcome, why): (PackingOutcome, &str),
    ) {
        self.items.push(WeighedItem {
            category: ContextCategory::ActiveFiles,
            name: path.to_string(),
            tokens: Tokens(0),
            relevance: None,
            why: format!("{reason}: {why}"),
            outcome,
        });
    }

    /// Notes what became of candidates. The passages of a file have its tokens together.
    fn note_selection(&mut self, candidates: &[ContextCandidate], selection: &Selection) {
        let path_of = |decision: &PackingDecision| candidates.get(decision.candidate).map(|it| &it.path);
        let mut decisions = selection.decisions.clone();
        for excerpt in &selection.excerpts {
            let of_file = |it: &&mut PackingDecision| {
                it.outcome == PackingOutcome::Included && path_of(it) == Some(&excerpt.path)
            };
            scale_to_sum(
                decisions.iter_mut().filter(of_file).map(|it| &mut it.tokens).collect(),
                excerpt.tokens,
            );
        }
        for decision in &decisions {
            let Some(candidate) = candidates.get(decision.candidate) else { continue };
            self.items.push(WeighedItem {
                category: candidate.category,
                name: candidate.location(),
                tokens: decision.tokens,
                relevance: Some(candidate.percent()),
                why: candidate.reason.to_string(),
                outcome: decision.outcome,
            });
        }
    }

    /// Notes the use of a category's share. Its items have these tokens together: what they don't
    /// explain is headings and tags.
    fn note_share(&mut self, category: ContextCategory, tokens: Tokens, budget: Tokens) {
        let inside = |it: &&mut WeighedItem| it.category == category && it.outcome.is_included();
        let own: Vec<&mut Tokens> =
            self.items.iter_mut().filter(inside).map(|item| &mut item.tokens).collect();
        let sum: Tokens = own.iter().map(|tokens| **tokens).sum();
        if sum > tokens {
            scale_to_sum(own, tokens);
        } else if sum < tokens {
            let rest = Tokens(tokens.0 - sum.0);
            self.note(category, "headings and tags", "they say what the parts are", rest);
        }
        self.shares.push(ContextShare { category, tokens, budget });
    }
}

/// Changes parts in proportion, so that they are `sum` together.
fn scale_to_sum(parts: Vec<&mut Tokens>, sum: Tokens) {
    let before: u64 = parts.iter().map(|part| part.0).sum();
    let (mut so_far, mut given) = (0_u64, 0_u64);
    for part in parts {
        so_far = so_far.saturating_add(part.0);
        let until = u128::from(sum.0) * u128::from(so_far) / u128::from(before.max(1));
        let until = u64::try_from(until).unwrap_or(u64::MAX);
        *part = Tokens(until.saturating_sub(given));
        given = until;
    }
}

/// A request's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackedRequest {
    /// The system prompt, the most lasting part first.
    pub system: Vec<SystemText>,
    /// The first user message.
    pub message: String,
    /// Its contents.
    pub report: PackReport,
}

/// Why a request could not be put together.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ContextError {
    /// The project could not be read.
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    /// There is nothing to do.
    #[error("the task is empty; say what should be done")]
    EmptyTask,
    /// The task alone doesn't fit.
    #[error(
        "the task has about {tokens} tokens, and the context may have {budget}; shorten it, or put the long part into a \
         file of the project and name that"
    )]
    TaskTooLong {
        /// Approximate tokens of the task.
        tokens: Tokens,
        /// Maximum tokens of the whole.
        budget: Tokens,
    },
}

/// Packs the first request. The task goes in whole; instructions, map and files get shares of what
/// is left, and what doesn't fit keeps head and tail. The same inputs give the same bytes.
///
/// # Errors
/// [`ContextError::EmptyTask`], [`ContextError::TaskTooLong`].
pub fn pack_first_request(inputs: &FirstRequestInputs<'_>) -> Result<PackedRequest, ContextError> {
    let task = inputs.task.trim();
    if task.is_empty() {
        return Err(ContextError::EmptyTask);
    }
    let in_text = inputs.text_protocol.then_some(inputs.tools);
    let system = system_prompt(inputs.role, inputs.prompts, (inputs.mode, inputs.goal), in_text);
    let fixed: Tokens = system.iter().map(|part| TokenEstimator.count(&part.text)).sum();
    let left = remaining_budget(task, fixed, inputs.budget)?;
    let share = |most: Tokens, hundredths: u64| Tokens(most.0.min(left * hundredths / 100));
    let mut report = PackReport { files_listed: inputs.listing.paths.len() as u64, ..PackReport::default() };
    report.note(ContextCategory::System, "system prompt", "every request has it", fixed);
    report.note_share(ContextCategory::System, fixed, fixed);
    let mut message = fence_text("task", &[], task);
    message.push_str("\n\n");
    push_environment(&mut message, inputs);
    let mut end = String::new();
    push_checks(&mut end, inputs);
    let begin = TokenEstimator.count(&message) + TokenEstimator.count(&end);
    report.note(ContextCategory::Task, "task", "the user wrote it", begin);
    report.note_share(ContextCategory::Task, begin, begin);
    push_instructions(&mut message, inputs, share(MAX_INSTRUCTION_TOKENS, INSTRUCTIONS_PERCENT), &mut report);
    push_known_failures(&mut message, inputs, share(MAX_FAILURE_TOKENS, FAILURES_PERCENT), &mut report);
    push_repository_map(&mut message, inputs, share(DEFAULT_BUDGET, MAP_PERCENT), &mut report);
    let remaining = |message: &str| {
        let spent = TokenEstimator.count(message) + TokenEstimator.count(&end) + fixed;
        Tokens(inputs.budget.0.saturating_sub(spent.0))
    };
    let room = remaining(&message).min(Tokens(left * NAMED_FILES_PERCENT / 100));
    let named = push_named_files(&mut message, inputs, room, &mut report);
    let room = remaining(&message).min(MAX_HISTORY_TOKENS);
    push_history(&mut message, inputs, room, &mut report);
    if let Some(found) = inputs.found {
        let room = Tokens(remaining(&message).0.saturating_sub(left * RESERVE_PERCENT / 100));
        push_found_passages(&mut message, found, &named, room, &mut report);
    }
    message.push_str(&end);
    let message = message.trim_end().to_owned();
    report.tokens = fixed + TokenEstimator.count(&message);
    Ok(PackedRequest { system, message, report })
}

/// Packs what an index finds for a later message of the user, without the files that the model
/// knows already. Returns `None` if nothing is left.
#[must_use]
pub fn pack_follow_up(
    found: &GatheredContext,
    known: &dyn Fn(&RelPath) -> bool,
    room: Tokens,
) -> Option<PackedRequest> {
    let known: Vec<RelPath> = found.texts.keys().filter(|path| known(path)).cloned().collect();
    let (mut message, mut report) = (String::new(), PackReport::default());
    push_found_passages(&mut message, found, &known, room, &mut report);
    let message = message.trim_end().to_owned();
    report.tokens = TokenEstimator.count(&message);
    (!message.is_empty()).then(|| PackedRequest { system: Vec::new(), message, report })
}

/// Checks that a task leaves room in the first request beside the system prompt of a session that
/// has yet to begin.
///
/// # Errors
/// [`ContextError::TaskTooLong`].
pub fn check_task_fits(task: &str, system: &[SystemText], budget: Tokens) -> Result<(), ContextError> {
    let fixed = system.iter().map(|part| TokenEstimator.count(&part.text)).sum();
    remaining_budget(task.trim(), fixed, budget).map(drop)
}

/// Returns the tokens that the task and the `fixed` part of the request leave.
fn remaining_budget(task: &str, fixed: Tokens, budget: Tokens) -> Result<u64, ContextError> {
    let tokens = TokenEstimator.count(task);
    match budget.0.saturating_sub(fixed.0.saturating_add(tokens.0)) {
        0 => Err(ContextError::TaskTooLong { tokens, budget }),
        left => Ok(left),
    }
}

/// The system prompt alone, for a session whose mode or protocol has changed: what never changes,
/// then what the mode and the protocol add. `role` is the prompt of an agent, which says what the
/// agent answers; `in_text` has the tools of a model that is told to write its calls as text.
#[must_use]
pub fn system_prompt(
    role: Option<&str>,
    prompts: &PromptTexts,
    (mode, goal): (Mode, ReadOnlyGoal),
    in_text: Option<&[ToolSpec]>,
) -> Vec<SystemText> {
    let goal = if role.is_some() { ReadOnlyGoal::Answer } else { goal };
    let mut session = prompts.mode(mode, goal).to_owned();
    if let Some(tools) = in_text {
        session.push_str("\n\n");
        session.push_str(&prompts.text_protocol(tools, mode != Mode::Plan));
    }
    vec![
        SystemText { text: role.unwrap_or_else(|| prompts.system()).to_owned(), cache: true },
        SystemText { text: session.trim_end().to_owned(), cache: in_text.is_some() },
    ]
}

fn push_environment(out: &mut String, inputs: &FirstRequestInputs<'_>) {
    // Not the directory's name: a recording has to play back in a clone of another name.
    let _infallible = writeln!(
        out,
        "Environment: {}, today is {}. Paths are relative to the project's root.\n",
        inputs.platform, inputs.today
    );
}

fn push_instructions(
    out: &mut String,
    inputs: &FirstRequestInputs<'_>,
    budget: Tokens,
    report: &mut PackReport,
) {
    let before = TokenEstimator.count(out);
    let read_note = |path: &RelPath| match inputs.workspace.read(path, MAX_FILE_BYTES).ok()?.body {
        FileBody::Text(text) => Some(text.text),
        FileBody::Binary => None,
    };
    let notes = notes_text(inputs.notes, Tokens(budget.0 / 2), &read_note);
    let room = Tokens(budget.0.saturating_sub(TokenEstimator.count(&notes).0));
    let texts = [inputs.user_instructions, inputs.project_instructions];
    let (texts, files) = instructions::fit_instructions(inputs.workspace, inputs.may_show, texts, room);
    let [own, configured] = &texts;
    if let Some(text) = own {
        let name = "the user's instructions";
        report.note(
            ContextCategory::Instructions,
            name,
            "they hold for every project",
            TokenEstimator.count(text),
        );
        out.push_str("The user's instructions for every project:\n");
        out.push_str(&fence_text("instructions", &[("from", "user")], text));
        out.push_str("\n\n");
    }
    if configured.is_some() || !files.is_empty() {
        out.push_str(
            "The project's instructions. Follow them where they don't conflict with the task or the rules:\n",
        );
        if let Some(text) = configured {
            let (name, why) = (".journeyman/config.toml", "its instructions are the project's");
            report.note(ContextCategory::Instructions, name, why, TokenEstimator.count(text));
            out.push_str(&fence_text("instructions", &[("path", name)], text));
            out.push('\n');
        }
        for one in files {
            out.push_str(&fence_text("instructions", &[("path", &one.path.to_string())], &one.text));
            out.push('\n');
            let why = "it is an instruction file at the root";
            let tokens = TokenEstimator.count(&one.text);
            report.note(ContextCategory::Instructions, &one.path.to_string(), why, tokens);
            report.instructions.push(one.path);
        }
        out.push('\n');
    }
    let nested = instructions::nested_files(inputs.listing);
    if !nested.is_empty() {
        let names: Vec<String> = nested.iter().map(ToString::to_string).collect();
        let _infallible = writeln!(
            out,
            "More instructions hold beneath these; you get them when you read or change a file there: {}\n",
            names.join(" ")
        );
    }
    if !notes.is_empty() {
        let tokens = TokenEstimator.count(&notes);
        report.note(ContextCategory::Instructions, "notes", "kept from earlier sessions", tokens);
        let _infallible = writeln!(
            out,
            "Notes from earlier sessions, which the user accepted:\n{}\n",
            fence_text("notes", &[], notes.trim_end())
        );
    }
    let tokens = Tokens(TokenEstimator.count(out).0.saturating_sub(before.0));
    report.note_share(ContextCategory::Instructions, tokens, budget);
}

fn push_known_failures(
    out: &mut String,
    inputs: &FirstRequestInputs<'_>,
    budget: Tokens,
    report: &mut PackReport,
) {
    let (text, shown) = known_failures_text(inputs.failures, budget);
    if text.is_empty() {
        return;
    }
    let tokens = TokenEstimator.count(&text);
    for check in inputs.failures.iter().take(shown) {
        // Each has a part of them, which the sum tells.
        report.note(
            ContextCategory::Diagnostics,
            &check.command,
            "it failed on the files as they are",
            tokens,
        );
    }
    report.note_share(ContextCategory::Diagnostics, tokens, budget);
    out.push_str(&text);
    out.push('\n');
}

fn push_repository_map(
    out: &mut String,
    inputs: &FirstRequestInputs<'_>,
    budget: Tokens,
    report: &mut PackReport,
) {
    let outlines = inputs.found.map(|found| found.outlines.as_slice()).unwrap_or_default();
    // A path may be taken for one of the listing's only where it is there.
    let there = |outlined: &&FileOutline| {
        let path = RelPath::parse(outlined.path.as_bytes());
        path.is_ok_and(|path| inputs.listing.paths.binary_search(&path).is_ok())
    };
    let outlines: Vec<FileOutline> = outlines.iter().filter(there).cloned().collect();
    let (outline, _) = outline_map(&outlines, Tokens(budget.0 * OUTLINES_PERCENT / 100));
    let files = inputs.found.map(|found| found.files.as_slice()).unwrap_or_default();
    let near = NearnessCriteria {
        words: TaskVocabulary::from_text(inputs.task),
        files: files.iter().map(|(path, share)| (path.as_bytes(), *share)).collect(),
    };
    let left = Tokens(budget.0.saturating_sub(TokenEstimator.count(&outline).0));
    let map = repository_map(inputs.listing, left, &near);
    if map.is_empty() {
        out.push_str("The project has no files yet.\n\n");
        return;
    }
    let _infallible = writeln!(
        out,
        "The repository, a line a directory ({} files, ignored ones left out):\n{}\n",
        inputs.listing.paths.len(),
        fence_text("map", &[], &map)
    );
    if !outline.is_empty() {
        let _infallible = writeln!(
            out,
            "Files that a search finds for the task, the likeliest first, with what they define:\n{}\n",
            fence_text("outline", &[], &outline)
        );
    }
    let (map, outline) = (TokenEstimator.count(&map), TokenEstimator.count(&outline));
    report.note(ContextCategory::Symbols, "map of the repository", "the model knows no path yet", map);
    if outline.0 > 0 {
        report.note(ContextCategory::Symbols, "outlines", "found for the task", outline);
    }
    report.note_share(ContextCategory::Symbols, map + outline, budget);
}

/// Adds the files that the task names, as far as they fit. Returns the files that are shown by now.
fn push_named_files(
    out: &mut String,
    inputs: &FirstRequestInputs<'_>,
    budget: Tokens,
    report: &mut PackReport,
) -> Vec<RelPath> {
    let mentions = find_mentions(inputs.task, inputs.listing, inputs.workspace.root()).into_iter();
    let mut named: Vec<_> = mentions.map(|mention| (mention, CandidateReason::Named)).collect();
    for path in inputs.open.iter().filter(|path| inputs.listing.paths.binary_search(path).is_ok()) {
        if named.iter().all(|(mention, _)| mention.path != *path) {
            named.push((Mention { path: path.clone(), line: None }, CandidateReason::Open));
        }
    }
    named.retain(|(mention, _)| !report.instructions.contains(&mention.path));
    let mut not_shown: Vec<(RelPath, String)> = Vec::new();
    let (mut texts, mut candidates) = (Texts::new(), Vec::new());
    for (Mention { path, line }, reason) in &named {
        let mut refuse = |outcome, why: &str| {
            report.note_refusal(path, reason, (outcome, why));
            not_shown.push((path.clone(), why.to_owned()));
        };
        if texts.len() >= MAX_NAMED_FILES {
            refuse(PackingOutcome::NoRoom, PackingOutcome::NoRoom.description());
            continue;
        }
        if !(inputs.may_show)(path) {
            refuse(PackingOutcome::Unreadable, "a rule hides it, or it holds settings");
            continue;
        }
        match inputs.workspace.read(path, MAX_FILE_BYTES).map(|content| content.body) {
            Ok(FileBody::Text(text)) if text.text.is_empty() => refuse(PackingOutcome::Unreadable, "empty"),
            Ok(FileBody::Text(text)) => {
                let (text, mut parts) = relevant_parts(path, &text.text, inputs.task, *line);
                texts.insert(path.clone(), text);
                parts.iter_mut().for_each(|part| part.reason = reason.clone());
                candidates.append(&mut parts);
            }
            Ok(FileBody::Binary) => refuse(PackingOutcome::Unreadable, "binary"),
            Err(error) => refuse(PackingOutcome::Unreadable, &error.to_string()),
        }
    }
    let total = budget.min(Tokens(MAX_NAMED_FILE_TOKENS.0.saturating_mul(texts.len() as u64)));
    let room = SelectionBudget { total, shares: vec![(ContextCategory::ActiveFiles, 100)], least: 0.0 };
    let mut selection = select(&candidates, &texts, &room);
    // The task's order is the user's.
    selection
        .excerpts
        .sort_by_key(|excerpt| named.iter().position(|(mention, _)| mention.path == excerpt.path));
    for path in texts.keys().filter(|path| selection.excerpts.iter().all(|excerpt| excerpt.path != **path)) {
        let of_path =
            |it: &&PackingDecision| candidates.get(it.candidate).is_some_and(|one| one.path == *path);
        let outcome =
            selection.decisions.iter().find(of_path).map_or(PackingOutcome::NoRoom, |it| it.outcome);
        not_shown.push((path.clone(), outcome.description().to_owned()));
    }
    if !named.is_empty() {
        report.note_selection(&candidates, &selection);
        report.note_share(ContextCategory::ActiveFiles, selection.tokens, budget);
    }
    if !selection.excerpts.is_empty() {
        let whose = if inputs.open.is_empty() { "task names" } else { "task names or the user has open" };
        let _infallible = writeln!(out, "Files that the {whose}:");
    }
    for excerpt in selection.excerpts {
        out.push_str(&excerpt.text);
        out.push('\n');
        report.files.push(excerpt.path);
    }
    if !report.files.is_empty() {
        out.push('\n');
    }
    if !not_shown.is_empty() {
        let names: Vec<String> = not_shown.iter().map(|(path, why)| format!("{path} ({why})")).collect();
        let _infallible = writeln!(out, "Named or open, and not shown: {}\n", names.join(", "));
    }
    report.files.iter().chain(&report.instructions).cloned().collect()
}

/// Adds the files with uncommitted changes, the commits that last changed the lines that the task
/// is about, and the newest ones of the files that were found.
fn push_history(out: &mut String, inputs: &FirstRequestInputs<'_>, budget: Tokens, report: &mut PackReport) {
    let before = TokenEstimator.count(out);
    let mut budget = budget;
    if let Some((line, count)) = uncommitted_line(inputs.uncommitted, Tokens(budget.0 / 2)) {
        let tokens = TokenEstimator.count(&line);
        budget = Tokens(budget.0.saturating_sub(tokens.0));
        let name = if count == 1 { "1 changed file".to_owned() } else { format!("{count} changed files") };
        report.note(ContextCategory::History, &name, "they are not committed", tokens);
        let _infallible = writeln!(out, "{line}\n");
    }
    let (text, fitting) = line_commits_text(inputs.line_commits, budget);
    for (at, commit) in inputs.line_commits.iter().enumerate() {
        report.items.push(WeighedItem {
            category: ContextCategory::History,
            name: commit.name(),
            tokens: TokenEstimator.count(&commit.text()),
            relevance: Some(commit.lines.percent()),
            why: commit.reason().to_owned(),
            outcome: if at < fitting { PackingOutcome::Included } else { PackingOutcome::NoRoom },
        });
    }
    if fitting > 0 {
        out.push_str(&text);
        out.push('\n');
    }
    let left = Tokens(budget.0.saturating_sub(TokenEstimator.count(&text).0));
    push_newest_commits(out, inputs, left, report);
    let tokens = Tokens(TokenEstimator.count(out).0.saturating_sub(before.0));
    if tokens.0 > 0 {
        report.note_share(ContextCategory::History, tokens, MAX_HISTORY_TOKENS);
    }
}

/// Adds the newest commits of the files that were found, but those that are named already.
fn push_newest_commits(
    out: &mut String,
    inputs: &FirstRequestInputs<'_>,
    budget: Tokens,
    report: &mut PackReport,
) {
    let named = |id: &str| inputs.line_commits.iter().any(|commit| commit.id == id);
    let mut text = String::new();
    let mut count = 0_usize;
    for note in inputs.found.iter().flat_map(|found| &found.commits).filter(|note| !named(&note.id)) {
        let subject: String =
            note.subject.chars().filter(|c| !c.is_control()).take(MAX_SUBJECT_CHARS).collect();
        let line = format!("{} {} ({})\n", note.id, subject, note.path);
        if FRAME_TOKENS + TokenEstimator.count(&text) + TokenEstimator.count(&line) > budget {
            break;
        }
        text.push_str(&line);
        count += 1;
    }
    if count == 0 {
        return;
    }
    let name = if count == 1 { "1 commit".to_owned() } else { format!("{count} commits") };
    let why = "they changed the files that were found";
    report.note(ContextCategory::History, &name, why, TokenEstimator.count(&text));
    let _infallible = writeln!(
        out,
        "The newest commits of files that a search finds:\n{}\n",
        fence_text("commits", &[], &text)
    );
}

/// Adds the passages that were found, without those of files that the task names.
fn push_found_passages(
    out: &mut String,
    found: &GatheredContext,
    named: &[RelPath],
    room: Tokens,
    report: &mut PackReport,
) {
    let candidates: Vec<ContextCandidate> =
        found.candidates.iter().filter(|candidate| !named.contains(&candidate.path)).cloned().collect();
    let room = SelectionBudget::for_found(room);
    let selection = select(&candidates, &found.texts, &room);
    report.note_selection(&candidates, &selection);
    for (category, _) in &room.shares {
        let own = selection.excerpts.iter().filter(|excerpt| excerpt.category == *category);
        report.note_share(*category, own.map(|excerpt| excerpt.tokens).sum(), room.share(*category));
    }
    if selection.excerpts.is_empty() {
        return;
    }
    out.push_str(
        "What a search of the project finds for the task, as the files are now. It may not be all, and not all of it \
         may matter:\n",
    );
    for excerpt in selection.excerpts {
        out.push_str(&excerpt.text);
        out.push('\n');
    }
    out.push('\n');
}

fn push_checks(out: &mut String, inputs: &FirstRequestInputs<'_>) {
    if inputs.checks.is_empty() {
        return;
    }
    let named: Vec<String> =
        inputs.checks.iter().take(MAX_CHECKS).map(|check| format!("`{}`", check.trim())).collect();
    let more = inputs.checks.len().saturating_sub(MAX_CHECKS);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let _infallible = writeln!(out, "When you stop, these checks run: {}{more}.\n", named.join(", "));
}
