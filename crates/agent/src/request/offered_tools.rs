//! The choice of the tools that a model is offered.

use std::cmp::Reverse;
use std::sync::{Arc, Mutex, PoisonError};

use journeyman_context::TokenEstimator;
use journeyman_policy::builtin_tool;
use journeyman_protocol::{Mode, TokenCounter as _, Tokens, ToolSpec};

use super::apply_edit;
use crate::agents::complete_task::COMPLETE_TASK;
use crate::session::settings::RunSettings;

/// Part of the window that the tools may take beside the essential ones, in hundredths.
const MAX_TOOLS_PERCENT: u64 = 15;
/// The built-in tools without which a task can't be done.
pub(super) const ESSENTIAL_TOOLS: [&str; 6] =
    ["read_file", "list_files", "search_text", "edit_file", "write_file", "run_command"];
/// The tool that stands for `edit_file` where a model isn't offered that.
const PATCH_TOOL: &str = "apply_patch";
/// The other built-in tools, the most useful first. Those that aren't listed come last.
const USEFUL_TOOLS: [&str; 16] = [
    "search_code",
    "get_symbols",
    "apply_patch",
    "delete_file",
    "move_file",
    "ask_user",
    "edit_symbol",
    "find_references",
    "todo_write",
    "todo_read",
    "command_output",
    "stop_command",
    "skill",
    "task",
    "get_dependencies",
    "git_history",
];

/// The selection that a session offered last. A session's tools stay the same, so that only what is
/// here can change the selection.
#[derive(Debug, Default)]
pub(super) struct LastSelection(Mutex<Option<(SelectionInputs, Arc<[ToolSpec]>)>>);

/// The inputs of a selection, besides the session's tools.
#[derive(Debug, PartialEq)]
pub(super) struct SelectionInputs {
    /// True if only the tool that ends an agent's work is offered.
    pub(super) last_turn: bool,
    pub(super) mode: Mode,
    pub(super) window: Tokens,
    pub(super) withheld: Vec<String>,
}

impl LastSelection {
    /// Returns the selection for these inputs, made by `select` if they aren't the last ones.
    pub(super) fn get(
        &self,
        inputs: SelectionInputs,
        select: impl FnOnce() -> Vec<ToolSpec>,
    ) -> Arc<[ToolSpec]> {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &*last {
            Some((known, tools)) if *known == inputs => Arc::clone(tools),
            _ => {
                let tools: Arc<[ToolSpec]> = select().into();
                *last = Some((inputs, Arc::clone(&tools)));
                tools
            }
        }
    }
}

/// Selects the tools that are offered to a model with this window: plan mode leaves out tools that
/// write, and of the built-in ones there are as many as the window has room for, the most useful
/// first. A larger window has the tools of a smaller one, and the order is always the same.
pub(crate) fn select_offered(
    mut specs: Vec<ToolSpec>,
    settings: &RunSettings,
    window: Tokens,
    reads: impl Fn(&str) -> bool,
) -> Vec<ToolSpec> {
    let plan = settings.mode == Mode::Plan;
    specs.retain(|ToolSpec { name, .. }| {
        // A command may only read; policy judges it by its text.
        let is_offered = name != apply_edit::TOOL_NAME && (!plan || name == "run_command" || reads(name));
        is_offered && !settings.withheld_tools.contains(name)
    });
    let room = Tokens(window.0.saturating_mul(MAX_TOOLS_PERCENT) / 100);
    let mut left = count_specs(&specs).0.saturating_sub(room.0);
    if left == 0 {
        return specs;
    }
    let edits = specs.iter().any(|spec| spec.name == "edit_file");
    let mut optional: Vec<&ToolSpec> =
        specs.iter().filter(|spec| !is_always_offered(&spec.name, edits)).collect();
    optional.sort_by_key(|spec| {
        Reverse(USEFUL_TOOLS.iter().position(|name| spec.name == *name).unwrap_or(USEFUL_TOOLS.len()))
    });
    let mut dropped = Vec::new();
    for spec in optional {
        if left == 0 {
            break;
        }
        left = left.saturating_sub(count_spec(spec).0);
        dropped.push(spec.name.clone());
    }
    specs.retain(|spec| !dropped.contains(&spec.name));
    specs
}

/// Returns true for a tool that is offered at every window size: an essential tool, or one that the
/// user configured.
fn is_always_offered(name: &str, edits: bool) -> bool {
    builtin_tool(name).is_none()
        || name == COMPLETE_TASK
        || ESSENTIAL_TOOLS.contains(&name)
        || !edits && name == PATCH_TOOL
}

/// Estimates the tokens of specifications, in the same way for every model, so that what a session
/// learns about a model changes no request's beginning.
pub(super) fn count_specs(specs: &[ToolSpec]) -> Tokens {
    specs.iter().map(count_spec).sum()
}

fn count_spec(spec: &ToolSpec) -> Tokens {
    let texts = [spec.name.as_str(), spec.description.as_str(), &spec.input_schema.to_string()];
    texts.into_iter().map(|text| TokenEstimator.count(text)).sum()
}
