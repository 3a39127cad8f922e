//! The first request of a session.

use std::fmt::Write as _;

use journeyman_protocol::{Mode, RelPath, TokenCounter as _, Tokens, ToolSpec};
use journeyman_workspace::{Body, Listing, Workspace, WorkspaceError};

use crate::cut::{LEAST, cut};
use crate::fence::fenced;
use crate::map::{DEFAULT_BUDGET, Near, map_for};
use crate::mention::mentions;
use crate::outlines::{Outlined, outline_map};
use crate::words::Words;
use crate::{Estimate, instructions, prompt};

/// All instruction files together, in tokens: more is a manual, which the model can read in parts.
const INSTRUCTIONS: Tokens = Tokens(8_000);
/// One file that the task names, in tokens; a larger one keeps its head and tail, or the line that
/// is named.
const ONE_FILE: Tokens = Tokens(4_000);
/// Of the map's budget, in hundredths: what files define that an index finds for the task. What
/// they don't need is for paths.
const OUTLINES: u64 = 60;
/// All files that the task names, in tokens.
const FILES_BUDGET: Tokens = Tokens(12_000);
/// A larger file is only pointed at, in bytes.
const MAX_FILE_BYTES: u64 = 8 << 20;
/// Maximum number of files named by the task that are included.
const MAX_FILES: usize = 12;
/// Maximum number of checks that are named.
const MAX_CHECKS: usize = 12;

/// The parts of the first request.
#[derive(Clone, Copy)]
pub struct Inputs<'a> {
    /// The user's task.
    pub task: &'a str,
    /// The project.
    pub workspace: &'a Workspace,
    /// Its files, sorted.
    pub listing: &'a Listing,
    /// The index's results for the task, if an index exists already.
    pub found: Option<&'a Found>,
    /// The commands of the checks that run when the model stops.
    pub checks: &'a [String],
    /// The permission mode.
    pub mode: Mode,
    /// The user's own instructions for every project.
    pub user_instructions: Option<&'a str>,
    /// Instructions from the project's own configuration; never presented as the user's words.
    pub project_instructions: Option<&'a str>,
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

/// The results of an index for a task.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Found {
    /// Files with how much is for them, 0 to 1; those that the listing doesn't have aren't shown.
    pub files: Vec<(RelPath, f64)>,
    /// Outlines of the best files, best first.
    pub outlines: Vec<Outlined>,
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
    let system = system_prompt(inputs.mode, inputs.text_protocol.then_some(inputs.tools));
    let fixed: Tokens = system.iter().map(|part| Estimate.count(&part.text)).sum();
    let left = remaining_budget(task, fixed, inputs.budget)?;
    let share = |most: Tokens, hundredths: u64| Tokens(most.0.min(left * hundredths / 100));
    let mut report = PackReport { files_listed: inputs.listing.paths.len() as u64, ..PackReport::default() };
    let mut message = fenced("task", &[], task);
    message.push_str("\n\n");
    environment(&mut message, inputs);
    project_instructions(&mut message, inputs, share(INSTRUCTIONS, 30), &mut report);
    repository(&mut message, inputs, share(DEFAULT_BUDGET, 15));
    files(&mut message, inputs, share(FILES_BUDGET, 50), &mut report);
    checks(&mut message, inputs);
    let message = message.trim_end().to_owned();
    report.tokens = fixed + Estimate.count(&message);
    Ok(Packed { system, message, report })
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
/// then what the mode and the protocol add. `in_text` has the tools of a model that is told to
/// write its calls as text.
#[must_use]
pub fn system_prompt(mode: Mode, in_text: Option<&[ToolSpec]>) -> Vec<SystemText> {
    let mut session = prompt::mode(mode).to_owned();
    if let Some(tools) = in_text {
        session.push_str("\n\n");
        session.push_str(&prompt::text_protocol(tools, mode != Mode::Plan));
    }
    vec![
        SystemText { text: prompt::WORK.to_owned(), cache: true },
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
    let own = inputs.user_instructions.map(str::trim).filter(|text| !text.is_empty());
    if let Some(text) = own {
        out.push_str("The user's instructions for every project:\n");
        out.push_str(&fenced("instructions", &[("from", "user")], &cut(text, budget, None).text));
        out.push_str("\n\n");
    }
    let configured = inputs.project_instructions.map(str::trim).filter(|text| !text.is_empty());
    let found = instructions::read(inputs.workspace, budget);
    if configured.is_some() || !found.is_empty() {
        out.push_str(
            "The project's instructions. Follow them where they don't conflict with the task or the rules:\n",
        );
        if let Some(text) = configured {
            let path = [("path", ".journeyman/config.toml")];
            out.push_str(&fenced("instructions", &path, &cut(text, budget, None).text));
            out.push('\n');
        }
        for one in found {
            out.push_str(&fenced("instructions", &[("path", &one.path.to_string())], &one.text));
            out.push('\n');
            report.instructions.push(one.path);
        }
        out.push('\n');
    }
    let nested = instructions::nested(inputs.listing);
    if !nested.is_empty() {
        let names: Vec<String> = nested.iter().map(ToString::to_string).collect();
        let _infallible = writeln!(
            out,
            "More instructions, to be read before a change beneath them: {}\n",
            names.join(" ")
        );
    }
}

fn repository(out: &mut String, inputs: &Inputs<'_>, budget: Tokens) {
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
    let map = map_for(inputs.listing, left, &near);
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
            "What a search of the project finds for the task, the likeliest files first, with what they define:\n{}\n",
            fenced("outline", &[], &outline)
        );
    }
}

/// The files that the task names, as far as they fit.
fn files(out: &mut String, inputs: &Inputs<'_>, budget: Tokens, report: &mut PackReport) {
    let named = mentions(inputs.task, inputs.listing);
    let mut left = budget;
    let mut shown = String::new();
    let mut only_named = Vec::new();
    for (index, mention) in named.iter().enumerate() {
        let path = mention.path.to_string();
        if report.files.len() >= MAX_FILES || left < LEAST {
            only_named.push(format!("{path} (no room)"));
            continue;
        }
        let text = match inputs.workspace.read(&mention.path, MAX_FILE_BYTES).map(|content| content.body) {
            Ok(Body::Text(text)) => text.text,
            Ok(Body::Binary) => {
                only_named.push(format!("{path} (binary)"));
                continue;
            }
            Err(error) => {
                only_named.push(format!("{path} ({error})"));
                continue;
            }
        };
        // Each that is still to come has a claim to its part of the room.
        let part = Tokens(left.0 / (named.len() - index).clamp(1, MAX_FILES) as u64);
        let kept = cut(&text, ONE_FILE.min(part.max(LEAST)), mention.line);
        left = Tokens(left.0.saturating_sub(Estimate.count(&kept.text).0));
        let part = if kept.shortened { "in part" } else { "whole" };
        shown.push_str(&fenced("file", &[("path", &path), ("shown", part)], &kept.text));
        shown.push('\n');
        report.files.push(mention.path.clone());
    }
    if !shown.is_empty() {
        let _infallible = writeln!(out, "Files that the task names:\n{shown}");
    }
    if !only_named.is_empty() {
        let _infallible = writeln!(out, "Named by the task and not shown: {}\n", only_named.join(", "));
    }
}

fn checks(out: &mut String, inputs: &Inputs<'_>) {
    if inputs.checks.is_empty() {
        return;
    }
    let named: Vec<String> =
        inputs.checks.iter().take(MAX_CHECKS).map(|check| format!("`{}`", check.trim())).collect();
    let more = inputs.checks.len().saturating_sub(MAX_CHECKS);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let _infallible = writeln!(out, "When you stop, these checks run: {}{more}.", named.join(", "));
}
