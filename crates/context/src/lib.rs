//! What the model is told: prompts, the repository map, packing within the budget, feedback.
//!
//! First draft by the lead so that `agent` compiles; the signatures are the contract, the bodies are to be replaced.
#![allow(missing_docs)]

use journeyman_protocol::{Evidence, Mode, RelPath, TokenCounter, Tokens, ToolSpec};
use journeyman_workspace::{Listing, Workspace, WorkspaceError};

pub struct Inputs<'a> {
    pub task: &'a str,
    pub workspace: &'a Workspace,
    pub listing: &'a Listing,
    pub checks: &'a [String],
    pub mode: Mode,
    pub user_instructions: Option<&'a str>,
    pub text_protocol: bool,
    pub tools: &'a [ToolSpec],
    pub today: &'a str,
    pub platform: &'a str,
    pub budget: Tokens,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SystemText {
    pub text: String,
    pub cache: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PackReport {
    pub tokens: Tokens,
    pub files_listed: u64,
    pub instructions: Vec<RelPath>,
    pub files: Vec<RelPath>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packed {
    pub system: Vec<SystemText>,
    pub message: String,
    pub report: PackReport,
}

#[derive(Debug, thiserror::Error)]
pub enum ContextError {
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
}

pub struct Estimate;

impl TokenCounter for Estimate {
    fn count(&self, text: &str) -> Tokens {
        Tokens(text.len() as u64 / 4)
    }
}

pub fn first(inputs: &Inputs<'_>) -> Result<Packed, ContextError> {
    let map = repository_map(inputs.listing, Tokens(1500));
    let system = SystemText { text: "You are Journeyman, a coding agent. Read before you write; make the smallest change; your change is checked when you stop.".to_owned(), cache: true };
    let message = format!("{}\n\nFiles:\n{map}", inputs.task);
    let report = PackReport { tokens: Estimate.count(&message), files_listed: inputs.listing.paths.len() as u64, ..PackReport::default() };
    Ok(Packed { system: vec![system], message, report })
}

pub fn repository_map(listing: &Listing, budget: Tokens) -> String {
    let mut out = String::new();
    for path in &listing.paths {
        if out.len() as u64 / 4 > budget.0 {
            break;
        }
        out.push_str(&path.to_string());
        out.push('\n');
    }
    out
}

pub fn feedback(evidence: &[Evidence], attempt: u32, of: u32, edits_summary: &str) -> String {
    let outputs: Vec<&str> = evidence.iter().filter(|one| one.outcome.failed()).map(|one| one.output.as_str()).collect();
    format!("Checks failed (attempt {attempt} of {of}).\n{}\nYour edits so far:\n{edits_summary}", outputs.join("\n"))
}
