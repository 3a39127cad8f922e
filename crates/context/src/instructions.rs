//! The project's instructions for agents: `AGENTS.md` and its kin.

use journeyman_protocol::{ContentHash, RelPath, TokenCounter as _, Tokens};
use journeyman_workspace::{Body, Listing, Workspace};

use crate::Estimate;
use crate::cut::{LEAST, cut};

/// File names of such instructions in common products, the shared name first.
const NAMES: [&str; 7] = [
    "AGENTS.md",
    "CLAUDE.md",
    "GEMINI.md",
    ".github/copilot-instructions.md",
    ".cursorrules",
    "CONVENTIONS.md",
    ".goosehints",
];
/// A larger file is no text for a model, in bytes.
const MAX_BYTES: u64 = 1 << 20;
/// Maximum number of instruction files in sub-directories that are mentioned.
const MAX_NESTED: usize = 20;

/// One file of instructions, within the budget.
pub(crate) struct Instruction {
    pub(crate) path: RelPath,
    pub(crate) text: String,
}

/// Reads the instruction files at the root, each content once, all together within `budget`. What
/// can't be read or isn't text is left out: instructions are an offer, and a broken one must not
/// keep a task from running.
pub(crate) fn read(workspace: &Workspace, budget: Tokens) -> Vec<Instruction> {
    let mut seen: Vec<ContentHash> = Vec::new();
    let mut found = Vec::new();
    let mut left = budget;
    for name in NAMES {
        let Ok(path) = RelPath::parse(name) else { continue };
        let Ok(content) = workspace.read(&path, MAX_BYTES) else { continue };
        let Body::Text(text) = content.body else { continue };
        let text = text.text;
        // A file that only points at another that is read anyway says nothing of its own.
        let refers =
            text.trim().strip_prefix('@').is_some_and(|name| NAMES.contains(&name.trim_start_matches("./")));
        let same = ContentHash::of(text.trim().as_bytes());
        if text.trim().is_empty() || refers || seen.contains(&same) || left < LEAST && !found.is_empty() {
            continue;
        }
        seen.push(same);
        let kept = cut(text.trim_end(), left, None);
        left = Tokens(left.0.saturating_sub(Estimate.count(&kept.text).0));
        found.push(Instruction { path, text: kept.text });
    }
    found
}

/// Instruction files further down, which hold for what is beneath their directory.
pub(crate) fn nested(listing: &Listing) -> Vec<&RelPath> {
    let names = [&b"AGENTS.md"[..], b"CLAUDE.md"];
    let beneath = |path: &&RelPath| names.contains(&path.file_name()) && path.as_bytes().contains(&b'/');
    listing.paths.iter().filter(beneath).take(MAX_NESTED).collect()
}
