//! The project's instructions for agents: `AGENTS.md` and its kin.

use std::collections::BTreeSet;

use journeyman_protocol::{ContentHash, RelPath, TokenCounter as _, Tokens};
use journeyman_workspace::{FileBody, Listing, Workspace};

use crate::TokenEstimator;
use crate::cut::{MIN_CUT_TOKENS, cut_to_budget, fair_limit};
use crate::fence::fence_text;

/// File names of such instructions in common products, the shared name first.
const INSTRUCTION_FILE_NAMES: [&str; 7] = [
    "AGENTS.md",
    "CLAUDE.md",
    "GEMINI.md",
    ".github/copilot-instructions.md",
    ".cursorrules",
    "CONVENTIONS.md",
    ".goosehints",
];
/// A larger file isn't read, in bytes. Of one that is too long for the budget head and tail stay.
const MAX_FILE_BYTES: u64 = 4 << 20;
/// The same for a file that others import.
const MAX_IMPORTED_BYTES: u64 = 1 << 20;
/// Maximum number of instruction files in sub-directories that are mentioned.
const MAX_NESTED_FILES: usize = 20;
/// Their names, the first one that is there wins.
const NESTED_NAMES: [&str; 3] = ["AGENTS.md", "CLAUDE.md", "GEMINI.md"];
/// Tokens of the instructions of one directory.
const NESTED_BUDGET: Tokens = Tokens(2_000);
/// Maximum files that instructions import, and how deep.
const MAX_IMPORTS: usize = 16;
const MAX_IMPORT_DEPTH: usize = 4;

/// One file of instructions, within the budget.
pub(crate) struct Instruction {
    pub(crate) path: RelPath,
    pub(crate) text: String,
}

/// Reads the instruction files at the root, each content once, all together within `budget`. What
/// may not be shown, can't be read or isn't text is left out: instructions are an offer, and a
/// broken one must not keep a task from running.
pub(crate) fn read_instructions(
    workspace: &Workspace,
    may_show: &dyn Fn(&RelPath) -> bool,
    budget: Tokens,
) -> Vec<Instruction> {
    let mut seen: Vec<ContentHash> = Vec::new();
    let (mut found, mut told) = (Vec::new(), Vec::new());
    let mut left = budget;
    for name in INSTRUCTION_FILE_NAMES {
        let Some(path) = RelPath::parse(name).ok().filter(may_show) else { continue };
        let Ok(content) = workspace.read(&path, MAX_FILE_BYTES) else { continue };
        let FileBody::Text(text) = content.body else { continue };
        let text = text.text;
        // A file that only points at another that is read anyway says nothing of its own.
        let refers = text
            .trim()
            .strip_prefix('@')
            .is_some_and(|name| INSTRUCTION_FILE_NAMES.contains(&name.trim_start_matches("./")));
        let same = ContentHash::of(text.trim().as_bytes());
        if text.trim().is_empty()
            || refers
            || seen.contains(&same)
            || told.contains(&path)
            || left < MIN_CUT_TOKENS && !found.is_empty()
        {
            continue;
        }
        seen.push(same);
        let text = with_imports((workspace, may_show), &mut told, &path, &text);
        let kept = cut_to_budget(text.trim_end(), left, None);
        left = Tokens(left.0.saturating_sub(TokenEstimator.count(&kept.text).0));
        found.push(Instruction { path, text: kept.text });
    }
    found
}

/// Fits other instructions and those of files at the root into `room`, the long ones alike. What
/// has no room for a piece that tells something is left out, but for the first.
pub(crate) fn fit_instructions(
    workspace: &Workspace,
    may_show: &dyn Fn(&RelPath) -> bool,
    texts: [Option<&str>; 2],
    room: Tokens,
) -> ([Option<String>; 2], Vec<Instruction>) {
    let texts = texts.map(|text| text.map(str::trim).filter(|text| !text.is_empty()));
    let files = read_instructions(workspace, may_show, room);
    let of_files = files.iter().map(|one| TokenEstimator.count(&one.text)).sum();
    let needs = texts.iter().flatten().map(|text| TokenEstimator.count(text));
    let limit = fair_limit(needs.chain([of_files]).collect(), room);
    let mut left = room;
    let texts = texts.map(|text| {
        let text =
            text.filter(|text| left == room || TokenEstimator.count(text).min(MIN_CUT_TOKENS) <= left)?;
        let kept = cut_to_budget(text, limit, None).text;
        left = Tokens(left.0.saturating_sub(TokenEstimator.count(&kept).0));
        Some(kept)
    });
    let files = match of_files <= left {
        true => files,
        false if left < MIN_CUT_TOKENS && left < room => Vec::new(),
        false => read_instructions(workspace, may_show, left),
    };
    (texts, files)
}

/// Returns the nearest instructions that hold beneath some directories, with the path of each file:
/// one file a directory, the parents' first. The root's own aren't among them: every first request
/// has those. Files that may not be shown aren't read.
#[must_use]
pub fn nested_instructions(
    workspace: &Workspace,
    may_show: &dyn Fn(&RelPath) -> bool,
    directories: &BTreeSet<RelPath>,
) -> Vec<(RelPath, String)> {
    let mut found = Vec::new();
    for directory in directories {
        let files = NESTED_NAMES.iter().filter_map(|name| RelPath::parse(format!("{directory}/{name}")).ok());
        let files = files.filter(|path| may_show(path));
        let read = |path: RelPath| Some((workspace.read(&path, MAX_FILE_BYTES).ok()?, path));
        let Some((content, path)) = files.into_iter().find_map(read) else { continue };
        let FileBody::Text(text) = content.body else { continue };
        if text.text.trim().is_empty() {
            continue;
        }
        let text = with_imports((workspace, may_show), &mut Vec::new(), &path, &text.text);
        found.push((path, cut_to_budget(text.trim_end(), NESTED_BUDGET, None).text));
    }
    found
}

/// The tag around a reminder.
const REMINDER_TAG: &str = "<system-reminder>\n";
/// The reminder of files whose instructions have no room; their paths follow.
const UNTOLD_PREFIX: &str = "These files have instructions of the project for what is beneath their directories, and \
                             no room here. Read one before you change something there:";

/// Words the reminder of files whose instructions have no room.
#[must_use]
pub fn untold_instructions_text(paths: &[RelPath]) -> String {
    let names: Vec<String> = paths.iter().map(ToString::to_string).collect();
    format!("{UNTOLD_PREFIX} {}", names.join(" "))
}

/// The beginning of what the model is told with the instructions of a directory; the file follows.
const REMINDER_PREFIX: &str = "Instructions of the project for what is beneath the directory of ";

/// Words the instructions of a directory for the model.
#[must_use]
pub fn nested_instructions_text(path: &RelPath, text: &str) -> String {
    let path = path.to_string();
    let text = fence_text("instructions", &[("path", &path)], text);
    format!(
        "{REMINDER_PREFIX}{path}. Where they conflict with others of the project, the nearest file wins; the task and the \
         rules come first.\n{text}"
    )
}

/// Returns the file whose instructions a text has, if it is one of [`nested_instructions_text`],
/// perhaps as a reminder. Another tag has what a call returned, which may look like instructions.
#[must_use]
pub fn nested_instructions_file(text: &str) -> Option<&str> {
    let told = text.strip_prefix(REMINDER_TAG).unwrap_or(text);
    let (file, _) = told.strip_prefix(REMINDER_PREFIX)?.split_once(". Where they conflict")?;
    Some(file)
}

/// Replaces lines that only name another file (`@docs/style.md`) by its text, as Claude Code and
/// Gemini CLI do. Files that are `told` already, may not be shown or are outside of the project,
/// and what is too deep or too much, stay lines.
fn with_imports(
    (workspace, may_show): (&Workspace, &dyn Fn(&RelPath) -> bool),
    told: &mut Vec<RelPath>,
    path: &RelPath,
    text: &str,
) -> String {
    told.push(path.clone());
    let mut imports = ImportExpander { workspace, may_show, depth: 0, told, left: MAX_IMPORTS };
    imports.expand(path, text)
}

struct ImportExpander<'a> {
    workspace: &'a Workspace,
    may_show: &'a dyn Fn(&RelPath) -> bool,
    /// The files whose text is there already.
    told: &'a mut Vec<RelPath>,
    /// Number of files that are being expanded within each other.
    depth: usize,
    left: usize,
}

impl ImportExpander<'_> {
    fn expand(&mut self, path: &RelPath, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut in_code = false;
        for line in text.lines() {
            in_code ^= line.trim_start().starts_with("```");
            let imported = if in_code { None } else { self.import(path, line) };
            out.push_str(imported.as_deref().unwrap_or(line));
            out.push('\n');
        }
        out
    }

    /// Returns the text of the file that a line names.
    fn import(&mut self, from: &RelPath, line: &str) -> Option<String> {
        let line = line.trim();
        let name = line.strip_prefix("- ").unwrap_or(line).strip_prefix('@')?;
        if name.contains(char::is_whitespace) || self.left == 0 || self.depth >= MAX_IMPORT_DEPTH {
            return None;
        }
        let files = resolve_beside(from, name).into_iter().chain(RelPath::parse(name).ok());
        let (workspace, may_show) = (self.workspace, self.may_show);
        let files = files.filter(|path| may_show(path));
        let read = |path: RelPath| Some((workspace.read(&path, MAX_IMPORTED_BYTES).ok()?, path));
        let (content, path) = files.into_iter().filter(|path| !self.told.contains(path)).find_map(read)?;
        let FileBody::Text(text) = content.body else { return None };
        self.left -= 1;
        self.told.push(path.clone());
        self.depth += 1;
        let text = self.expand(&path, &text.text);
        self.depth -= 1;
        Some(text.trim_end().to_owned())
    }
}

/// Returns the file of the project that a name means in the directory of `from`, also one above.
fn resolve_beside(from: &RelPath, name: &str) -> Option<RelPath> {
    let mut directory = from.parent();
    let mut rest = name.trim_start_matches("./");
    while let Some(above) = rest.strip_prefix("../") {
        (directory, rest) = (directory?.parent(), above);
    }
    let prefix = directory.map(|directory| format!("{directory}/")).unwrap_or_default();
    RelPath::parse(format!("{prefix}{}", rest.trim_start_matches('/'))).ok()
}

/// Instruction files further down, which hold for what is beneath their directory.
pub(crate) fn nested_files(listing: &Listing) -> Vec<&RelPath> {
    let is_name = |name: &[u8]| NESTED_NAMES.iter().any(|known| known.as_bytes() == name);
    let beneath = |path: &&RelPath| is_name(path.file_name()) && path.as_bytes().contains(&b'/');
    listing.paths.iter().filter(beneath).take(MAX_NESTED_FILES).collect()
}
