//! The first request of a session.

use std::fmt::Write as _;

use journeyman_protocol::{
    ContextCategory, ContextShare, Mode, RelPath, TokenCounter as _, Tokens, ToolSpec,
};
use journeyman_workspace::{Body, Listing, Workspace, WorkspaceError};

use crate::cut::cut;
use crate::fence::fenced;
use crate::gathering::Gathered;
use crate::line_commits::{FRAME, LineCommit, MAX_SUBJECT, line_commits_text};
use crate::map::{DEFAULT_BUDGET, Near, repository_map};
use crate::memory::{Note, notes_text};
use crate::mention::{Mention, mentions};
use crate::outlines::{Outlined, outline_map};
use crate::packing::{Candidate, Decision, Outcome, Room, Selection, Texts, bodies, select};
use crate::prompt::{PromptTexts, ReadOnlyGoal};
use crate::words::Words;
use crate::{Estimate, instructions};

/// All instruction files together, in tokens: more is a manual, which the model can read in parts.
const INSTRUCTIONS: Tokens = Tokens(8_000);
/// One file that the task names, in tokens: of a larger one the parts that the task is about.
const ONE_FILE: Tokens = Tokens(4_000);
/// Of the map's budget, in hundredths: what files define that an index finds for the task. What
/// they don't need is for paths.
const OUTLINES: u64 = 60;
/// Shares of what task and system prompt leave, in hundredths: instructions, the map, files that
/// the task names, and what an index finds. The rest is a reserve for what estimates miss.
const INSTRUCTIONS_SHARE: u64 = 30;
const MAP_SHARE: u64 = 15;
const FILES_SHARE: u64 = 50;
const FOUND_SHARE: u64 = 25;
/// Maximum tokens of the notes about commits.
const HISTORY: Tokens = Tokens(400);
/// A larger file is only pointed at, in bytes.
const MAX_FILE_BYTES: u64 = 8 << 20;
/// Maximum number of files named by the task that are included.
const MAX_FILES: usize = 12;
/// Maximum number of checks that are named.
const MAX_CHECKS: usize = 12;

/// The parts of the first request.
#[derive(Clone, Copy)]
pub struct Inputs<'a> {
    /// The texts that the model is told with every task.
    pub prompts: &'a PromptTexts,
    /// The user's task.
    pub task: &'a str,
    /// The project.
    pub workspace: &'a Workspace,
    /// Its files, sorted.
    pub listing: &'a Listing,
    /// The index's results for the task, if an index exists already.
    pub found: Option<&'a Gathered>,
    /// The commits that last changed the lines that the task is about, as far as they are known.
    pub line_commits: &'a [LineCommit],
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
    pub notes: &'a [Note],
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
    pub items: Vec<PackedItem>,
}

/// A thing that was weighed for the first request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackedItem {
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
    pub outcome: Outcome,
}

impl PackReport {
    /// Notes something that is always in.
    fn note(&mut self, category: ContextCategory, name: &str, why: &str, tokens: Tokens) {
        let (name, why) = (name.to_owned(), why.to_owned());
        self.items.push(PackedItem {
            category,
            name,
            tokens,
            relevance: None,
            why,
            outcome: Outcome::Included,
        });
    }

    /// Notes a file that the task names and that can't be shown.
    fn note_refusal(&mut self, path: &RelPath, outcome: Outcome, why: &str) {
        self.items.push(PackedItem {
            category: ContextCategory::ActiveFiles,
            name: path.to_string(),
            tokens: Tokens(0),
            relevance: None,
            why: format!("the task names it: {why}"),
            outcome,
        });
    }

    /// Notes what became of candidates. The passages of a file have its tokens together.
    fn note_selection(&mut self, candidates: &[Candidate], selection: &Selection) {
        let path_of = |decision: &Decision| candidates.get(decision.candidate).map(|it| &it.path);
        let mut decisions = selection.decisions.clone();
        for excerpt in &selection.excerpts {
            let of_file =
                |it: &&mut Decision| it.outcome == Outcome::Included && path_of(it) == Some(&excerpt.path);
            fit_sum(decisions.iter_mut().filter(of_file).map(|it| &mut it.tokens).collect(), excerpt.tokens);
        }
        for decision in &decisions {
            let Some(candidate) = candidates.get(decision.candidate) else { continue };
            self.items.push(PackedItem {
                category: candidate.category,
                name: candidate.place(),
                tokens: decision.tokens,
                relevance: Some(candidate.percent()),
                why: candidate.reason.to_string(),
                outcome: decision.outcome,
            });
        }
    }

    /// Notes the use of a category's share. Its items have these tokens together: what they don't
    /// explain is headings and tags.
    fn share(&mut self, category: ContextCategory, tokens: Tokens, budget: Tokens) {
        let inside = |it: &&mut PackedItem| it.category == category && it.outcome.is_inside();
        let own: Vec<&mut Tokens> =
            self.items.iter_mut().filter(inside).map(|item| &mut item.tokens).collect();
        let sum: Tokens = own.iter().map(|tokens| **tokens).sum();
        if sum > tokens {
            fit_sum(own, tokens);
        } else if sum < tokens {
            let rest = Tokens(tokens.0 - sum.0);
            self.note(category, "headings and tags", "they say what the parts are", rest);
        }
        self.shares.push(ContextShare { category, tokens, budget });
    }
}

/// Changes parts in proportion, so that they are `sum` together.
fn fit_sum(parts: Vec<&mut Tokens>, sum: Tokens) {
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
pub struct Packed {
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
pub fn first(inputs: &Inputs<'_>) -> Result<Packed, ContextError> {
    let task = inputs.task.trim();
    if task.is_empty() {
        return Err(ContextError::EmptyTask);
    }
    let in_text = inputs.text_protocol.then_some(inputs.tools);
    let system = system_prompt(inputs.role, inputs.prompts, (inputs.mode, inputs.goal), in_text);
    let fixed: Tokens = system.iter().map(|part| Estimate.count(&part.text)).sum();
    let left = remaining_budget(task, fixed, inputs.budget)?;
    let share = |most: Tokens, hundredths: u64| Tokens(most.0.min(left * hundredths / 100));
    let mut report = PackReport { files_listed: inputs.listing.paths.len() as u64, ..PackReport::default() };
    report.note(ContextCategory::System, "system prompt", "every request has it", fixed);
    report.share(ContextCategory::System, fixed, fixed);
    let mut message = fenced("task", &[], task);
    message.push_str("\n\n");
    environment(&mut message, inputs);
    let mut end = String::new();
    checks(&mut end, inputs);
    let begin = Estimate.count(&message) + Estimate.count(&end);
    report.note(ContextCategory::Task, "task", "the user wrote it", begin);
    report.share(ContextCategory::Task, begin, begin);
    project_instructions(&mut message, inputs, share(INSTRUCTIONS, INSTRUCTIONS_SHARE), &mut report);
    repository(&mut message, inputs, share(DEFAULT_BUDGET, MAP_SHARE), &mut report);
    let named = files(&mut message, inputs, Tokens(left * FILES_SHARE / 100), &mut report);
    let remaining = |message: &str| {
        let spent = Estimate.count(message) + Estimate.count(&end) + fixed;
        Tokens(inputs.budget.0.saturating_sub(spent.0))
    };
    let room = remaining(&message).min(HISTORY);
    history(&mut message, inputs, room, &mut report);
    if let Some(found) = inputs.found {
        // What the parts before leave, but no more than the share.
        let room = remaining(&message).min(Tokens(left * FOUND_SHARE / 100));
        related(&mut message, found, &named, room, &mut report);
    }
    message.push_str(&end);
    let message = message.trim_end().to_owned();
    report.tokens = fixed + Estimate.count(&message);
    Ok(Packed { system, message, report })
}

/// Packs what an index finds for a later message of the user, without the files that the model
/// knows already. Returns `None` if nothing is left.
#[must_use]
pub fn follow_up(found: &Gathered, known: &dyn Fn(&RelPath) -> bool, room: Tokens) -> Option<Packed> {
    let known: Vec<RelPath> = found.texts.keys().filter(|path| known(path)).cloned().collect();
    let (mut message, mut report) = (String::new(), PackReport::default());
    related(&mut message, found, &known, room, &mut report);
    let message = message.trim_end().to_owned();
    report.tokens = Estimate.count(&message);
    (!message.is_empty()).then(|| Packed { system: Vec::new(), message, report })
}

/// Checks that a task leaves room in the first request beside the system prompt of a session that
/// has yet to begin.
///
/// # Errors
/// [`ContextError::TaskTooLong`].
pub fn check_task_fits(task: &str, system: &[SystemText], budget: Tokens) -> Result<(), ContextError> {
    let fixed = system.iter().map(|part| Estimate.count(&part.text)).sum();
    remaining_budget(task.trim(), fixed, budget).map(drop)
}

/// Returns the tokens that the task and the `fixed` part of the request leave.
fn remaining_budget(task: &str, fixed: Tokens, budget: Tokens) -> Result<u64, ContextError> {
    let tokens = Estimate.count(task);
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

fn environment(out: &mut String, inputs: &Inputs<'_>) {
    // Not the directory's name: a recording has to play back in a clone of another name.
    let _infallible = writeln!(
        out,
        "Environment: {}, today is {}. Paths are relative to the project's root.\n",
        inputs.platform, inputs.today
    );
}

fn project_instructions(out: &mut String, inputs: &Inputs<'_>, budget: Tokens, report: &mut PackReport) {
    let before = Estimate.count(out);
    let own = inputs.user_instructions.map(str::trim).filter(|text| !text.is_empty());
    if let Some(text) = own {
        let name = "the user's instructions";
        let text = cut(text, budget, None).text;
        report.note(
            ContextCategory::Instructions,
            name,
            "they hold for every project",
            Estimate.count(&text),
        );
        out.push_str("The user's instructions for every project:\n");
        out.push_str(&fenced("instructions", &[("from", "user")], &text));
        out.push_str("\n\n");
    }
    let configured = inputs.project_instructions.map(str::trim).filter(|text| !text.is_empty());
    let found = instructions::read(inputs.workspace, budget);
    if configured.is_some() || !found.is_empty() {
        out.push_str(
            "The project's instructions. Follow them where they don't conflict with the task or the rules:\n",
        );
        if let Some(text) = configured {
            let (name, why) = (".journeyman/config.toml", "its instructions are the project's");
            let text = cut(text, budget, None).text;
            report.note(ContextCategory::Instructions, name, why, Estimate.count(&text));
            out.push_str(&fenced("instructions", &[("path", name)], &text));
            out.push('\n');
        }
        for one in found {
            out.push_str(&fenced("instructions", &[("path", &one.path.to_string())], &one.text));
            out.push('\n');
            let why = "it is an instruction file at the root";
            let tokens = Estimate.count(&one.text);
            report.note(ContextCategory::Instructions, &one.path.to_string(), why, tokens);
            report.instructions.push(one.path);
        }
        out.push('\n');
    }
    let nested = instructions::nested(inputs.listing);
    if !nested.is_empty() {
        let names: Vec<String> = nested.iter().map(ToString::to_string).collect();
        let _infallible = writeln!(
            out,
            "More instructions hold beneath these; you get them when you read or change a file there: {}\n",
            names.join(" ")
        );
    }
    let notes =
        notes_text(inputs.notes, &|path| match inputs.workspace.read(path, MAX_FILE_BYTES).ok()?.body {
            Body::Text(text) => Some(text.text),
            Body::Binary => None,
        });
    if !notes.is_empty() {
        let tokens = Estimate.count(&notes);
        report.note(ContextCategory::Instructions, "notes", "kept from earlier sessions", tokens);
        let _infallible = writeln!(
            out,
            "Notes from earlier sessions, which the user accepted:\n{}\n",
            fenced("notes", &[], notes.trim_end())
        );
    }
    let tokens = Tokens(Estimate.count(out).0.saturating_sub(before.0));
    report.share(ContextCategory::Instructions, tokens, budget);
}

fn repository(out: &mut String, inputs: &Inputs<'_>, budget: Tokens, report: &mut PackReport) {
    let outlines = inputs.found.map(|found| found.outlines.as_slice()).unwrap_or_default();
    // A path may be taken for one of the listing's only where it is there.
    let there = |outlined: &&Outlined| {
        let path = RelPath::parse(outlined.path.as_bytes());
        path.is_ok_and(|path| inputs.listing.paths.binary_search(&path).is_ok())
    };
    let outlines: Vec<Outlined> = outlines.iter().filter(there).cloned().collect();
    let (outline, _) = outline_map(&outlines, Tokens(budget.0 * OUTLINES / 100));
    let files = inputs.found.map(|found| found.files.as_slice()).unwrap_or_default();
    let near = Near {
        words: Words::of(inputs.task),
        files: files.iter().map(|(path, share)| (path.as_bytes(), *share)).collect(),
    };
    let left = Tokens(budget.0.saturating_sub(Estimate.count(&outline).0));
    let map = repository_map(inputs.listing, left, &near);
    if map.is_empty() {
        out.push_str("The project has no files yet.\n\n");
        return;
    }
    let _infallible = writeln!(
        out,
        "The repository, a line a directory ({} files, ignored ones left out):\n{}\n",
        inputs.listing.paths.len(),
        fenced("map", &[], &map)
    );
    if !outline.is_empty() {
        let _infallible = writeln!(
            out,
            "Files that a search finds for the task, the likeliest first, with what they define:\n{}\n",
            fenced("outline", &[], &outline)
        );
    }
    let (map, outline) = (Estimate.count(&map), Estimate.count(&outline));
    report.note(ContextCategory::Symbols, "map of the repository", "the model knows no path yet", map);
    if outline.0 > 0 {
        report.note(ContextCategory::Symbols, "outlines", "found for the task", outline);
    }
    report.share(ContextCategory::Symbols, map + outline, budget);
}

/// Adds the files that the task names, as far as they fit. Returns the files that are shown by now.
fn files(out: &mut String, inputs: &Inputs<'_>, budget: Tokens, report: &mut PackReport) -> Vec<RelPath> {
    let mut named = mentions(inputs.task, inputs.listing, inputs.workspace.root());
    named.retain(|mention| !report.instructions.contains(&mention.path));
    let mut not_shown: Vec<(RelPath, Outcome, String)> = Vec::new();
    let (mut texts, mut candidates) = (Texts::new(), Vec::new());
    for Mention { path, line } in &named {
        let mut refuse = |outcome, why: &str| not_shown.push((path.clone(), outcome, why.to_owned()));
        if texts.len() >= MAX_FILES {
            refuse(Outcome::NoRoom, Outcome::NoRoom.text());
            continue;
        }
        match inputs.workspace.read(path, MAX_FILE_BYTES).map(|content| content.body) {
            Ok(Body::Text(text)) if text.text.is_empty() => refuse(Outcome::Unreadable, "empty"),
            Ok(Body::Text(text)) => {
                let (text, mut parts) = bodies(path, &text.text, inputs.task, *line);
                texts.insert(path.clone(), text);
                candidates.append(&mut parts);
            }
            Ok(Body::Binary) => refuse(Outcome::Unreadable, "binary"),
            Err(error) => refuse(Outcome::Unreadable, &error.to_string()),
        }
    }
    let total = budget.min(Tokens(ONE_FILE.0.saturating_mul(texts.len() as u64)));
    let room = Room { total, shares: vec![(ContextCategory::ActiveFiles, 100)], least: 0.0 };
    let mut selection = select(&candidates, &texts, &room);
    // The task's order is the user's.
    selection.excerpts.sort_by_key(|excerpt| named.iter().position(|mention| mention.path == excerpt.path));
    for (path, outcome, why) in &not_shown {
        report.note_refusal(path, *outcome, why);
    }
    for path in texts.keys().filter(|path| selection.excerpts.iter().all(|excerpt| excerpt.path != **path)) {
        let of_path = |it: &&Decision| candidates.get(it.candidate).is_some_and(|one| one.path == *path);
        let outcome = selection.decisions.iter().find(of_path).map_or(Outcome::NoRoom, |it| it.outcome);
        not_shown.push((path.clone(), outcome, outcome.text().to_owned()));
    }
    if !named.is_empty() {
        report.note_selection(&candidates, &selection);
        report.share(ContextCategory::ActiveFiles, selection.tokens, budget);
    }
    if !selection.excerpts.is_empty() {
        out.push_str("Files that the task names:\n");
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
        let names: Vec<String> = not_shown.iter().map(|(path, _, why)| format!("{path} ({why})")).collect();
        let _infallible = writeln!(out, "Named by the task and not shown: {}\n", names.join(", "));
    }
    report.files.iter().chain(&report.instructions).cloned().collect()
}

/// Adds the commits that last changed the lines that the task is about, and the newest ones of the
/// files that were found.
fn history(out: &mut String, inputs: &Inputs<'_>, budget: Tokens, report: &mut PackReport) {
    let before = Estimate.count(out);
    let (text, fitting) = line_commits_text(inputs.line_commits, budget);
    for (at, commit) in inputs.line_commits.iter().enumerate() {
        report.items.push(PackedItem {
            category: ContextCategory::History,
            name: commit.name(),
            tokens: Estimate.count(&commit.text()),
            relevance: Some(commit.lines.percent()),
            why: commit.why().to_owned(),
            outcome: if at < fitting { Outcome::Included } else { Outcome::NoRoom },
        });
    }
    if fitting > 0 {
        out.push_str(&text);
        out.push('\n');
    }
    let left = Tokens(budget.0.saturating_sub(Estimate.count(&text).0));
    newest_commits(out, inputs, left, report);
    let tokens = Tokens(Estimate.count(out).0.saturating_sub(before.0));
    if tokens.0 > 0 {
        report.share(ContextCategory::History, tokens, HISTORY);
    }
}

/// Adds the newest commits of the files that were found, but those that are named already.
fn newest_commits(out: &mut String, inputs: &Inputs<'_>, budget: Tokens, report: &mut PackReport) {
    let named = |id: &str| inputs.line_commits.iter().any(|commit| commit.id == id);
    let mut text = String::new();
    let mut count = 0_usize;
    for note in inputs.found.iter().flat_map(|found| &found.commits).filter(|note| !named(&note.id)) {
        let subject: String = note.subject.chars().filter(|c| !c.is_control()).take(MAX_SUBJECT).collect();
        let line = format!("{} {} ({})\n", note.id, subject, note.path);
        if FRAME + Estimate.count(&text) + Estimate.count(&line) > budget {
            break;
        }
        text.push_str(&line);
        count += 1;
    }
    if count == 0 {
        return;
    }
    let name = format!("{count} commits");
    let why = "they changed the files that were found";
    report.note(ContextCategory::History, &name, why, Estimate.count(&text));
    let _infallible = writeln!(
        out,
        "The newest commits of files that a search finds:\n{}\n",
        fenced("commits", &[], &text)
    );
}

/// Adds the passages that were found, without those of files that the task names.
fn related(out: &mut String, found: &Gathered, named: &[RelPath], room: Tokens, report: &mut PackReport) {
    let candidates: Vec<Candidate> =
        found.candidates.iter().filter(|candidate| !named.contains(&candidate.path)).cloned().collect();
    let room = Room::of_found(room);
    let selection = select(&candidates, &found.texts, &room);
    report.note_selection(&candidates, &selection);
    for (category, _) in &room.shares {
        let own = selection.excerpts.iter().filter(|excerpt| excerpt.category == *category);
        report.share(*category, own.map(|excerpt| excerpt.tokens).sum(), room.share(*category));
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

fn checks(out: &mut String, inputs: &Inputs<'_>) {
    if inputs.checks.is_empty() {
        return;
    }
    let named: Vec<String> =
        inputs.checks.iter().take(MAX_CHECKS).map(|check| format!("`{}`", check.trim())).collect();
    let more = inputs.checks.len().saturating_sub(MAX_CHECKS);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let _infallible = writeln!(out, "When you stop, these checks run: {}{more}.\n", named.join(", "));
}
