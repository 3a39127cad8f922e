//! `edit_file`: replaces text that the model quotes.

use std::path::Path;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use journeyman_edit::{
    AllowedDifferences, EditOp, OpContext, OpError, OpsOutcome, Refusal, Replace, apply_ops,
};
use journeyman_policy::secrets::SECRET_MASK;
use journeyman_protocol::{ContentHash, Effects, RelPath, ToolSpec, clip_to_bytes};
use journeyman_workspace::{
    Change, ChangeSet, ExpectedState, FileContent, Workspace, WorkspaceError, unified_diff,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::excerpt::line_groups_around;
use crate::planned_edits::{broken_syntax_note, placement_notes, summarize_files};
use crate::stale::refuse_stale;
use crate::tool::run_blocking;
use crate::tool_interface::{ToolInterface, not_found};
use crate::{SeenStatus, Tool, ToolContext, ToolError, ToolLimits, ToolOutput};

/// Lines shown before and after each change.
const CONTEXT_LINES: usize = 2;
/// Maximum number of lines shown in all: the model wrote the change, and only has to see where it
/// landed.
const MAX_SHOWN_LINES: usize = 40;
/// Maximum bytes shown in all, for the same reason.
const MAX_SHOWN_BYTES: usize = 4_000;
/// Maximum number of places shown of a replacement of all places.
const MAX_SHOWN_PLACES: usize = 10;
/// Maximum number of edits in one call; more are a rewrite.
const MAX_EDITS: usize = 100;
#[derive(Deserialize, JsonSchema)]
struct EditFileArguments {
    path: String,
    /// Text of the file, exact
    search: Option<String>,
    replace: Option<String>,
    replace_all: Option<bool>,
    /// Several at once, all or none
    edits: Option<Vec<TextPair>>,
    why: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
struct TextPair {
    search: String,
    replace: String,
}

/// The `edit_file` tool.
pub(crate) struct EditFile {
    shape: ToolInterface,
}

/// A call with its arguments checked.
struct EditRequest {
    path: RelPath,
    pairs: Vec<TextPair>,
    all: bool,
    why: Option<String>,
}

impl EditFile {
    pub(crate) fn new(root: Option<&Path>) -> Self {
        let description = "Replaces text in a file. `search` must occur once: copy whole lines, enough to be \
                           unique, or set replace_all.";
        Self { shape: ToolInterface::for_arguments::<EditFileArguments>("edit_file", description, root) }
    }

    fn parse_request(&self, input: &Value) -> Result<EditRequest, ToolError> {
        let arguments: EditFileArguments = self.shape.read_arguments(input)?;
        let path = self.shape.parse_path(&arguments.path)?;
        let mut pairs = Vec::new();
        match (arguments.search, arguments.replace) {
            (Some(search), Some(replace)) => pairs.push(TextPair { search, replace }),
            (Some(_), None) => {
                return Err(self.shape.argument_error("`replace` is missing; it may be empty to delete"));
            }
            (None, Some(_)) => return Err(self.shape.argument_error("`search` is missing")),
            (None, None) => {}
        }
        pairs.extend(arguments.edits.into_iter().flatten());
        // Models that send `edits` sometimes send the other two fields empty.
        if pairs.len() > 1 {
            pairs.retain(|pair| !(pair.search.is_empty() && pair.replace.is_empty()));
        }
        if pairs.is_empty() {
            return Err(self.shape.argument_error("`search` and `replace`, or `edits`, are missing"));
        }
        if pairs.len() > MAX_EDITS {
            return Err(self.shape.argument_error(format!(
                "{} edits are too many for one call; at most {MAX_EDITS}",
                pairs.len()
            )));
        }
        Ok(EditRequest { path, pairs, all: arguments.replace_all.unwrap_or(false), why: arguments.why })
    }

    async fn run(&self, context: &ToolContext, input: Value) -> Result<ToolOutput, ToolError> {
        let request = self.parse_request(&input)?;
        let context = context.clone();
        run_blocking(move || apply_edits(&context, request)).await
    }
}

fn apply_edits(context: &ToolContext, request: EditRequest) -> Result<ToolOutput, ToolError> {
    let several = request.pairs.len() > 1;
    let (path, why) = (request.path.clone(), request.why.clone());
    let content = read_content(&context.workspace, &path, context.limits)?;
    let text = text_of(&content, &path)?;
    let sight = context.seen.compare(&path, &content.hash);
    refuse_stale(context, &path, &content)?;
    let (new, outcome) = place_edits(text, request)?;
    if new.contains(SECRET_MASK) && !text.contains(SECRET_MASK) {
        return Err(ToolError::Masked { path });
    }
    let bytes = content.encode(&new).map_err(|source| ToolError::Encode { path: path.clone(), source })?;
    let hash = ContentHash::of(&bytes);
    let expected = ExpectedState::Hash(content.hash);
    let applied = context.workspace.apply(ChangeSet {
        call: Some(context.call.clone()),
        session: context.session.clone(),
        description: why,
        changes: vec![Change::Write { path: path.clone(), content: bytes, expected }],
    })?;
    context.seen.note_changes(&context.workspace, &applied.changes);
    if sight == SeenStatus::Current {
        context.seen.record_text(path.clone(), hash, &new);
    }
    Ok(ToolOutput::text(edit_report(&path, &new, &outcome, several))
        .with_changes(&context.workspace, applied.changes))
}

/// Returns the changes that a call would make, as a unified diff.
fn diff_edits(workspace: &Workspace, request: EditRequest) -> Result<String, ToolError> {
    let path = request.path.clone();
    let content = read_content(workspace, &path, ToolLimits::default())?;
    let text = text_of(&content, &path)?;
    let (new, _) = place_edits(text, request)?;
    Ok(unified_diff(&path, Some(text.as_bytes()), Some(new.as_bytes())))
}

fn read_content(workspace: &Workspace, path: &RelPath, limits: ToolLimits) -> Result<FileContent, ToolError> {
    workspace.read(path, limits.file_bytes).map_err(|error| match error {
        WorkspaceError::NotFound { .. } => not_found(workspace, path.clone()),
        error => error.into(),
    })
}

fn text_of<'a>(content: &'a FileContent, path: &RelPath) -> Result<&'a str, ToolError> {
    content.text().ok_or_else(|| ToolError::Binary { path: path.clone(), size: content.size })
}

/// Places all edits of a call in a file's text. Returns the new text and the outcome of each edit.
fn place_edits(text: &str, request: EditRequest) -> Result<(String, OpsOutcome), ToolError> {
    let EditRequest { path, pairs, all, .. } = request;
    let ops = edit_ops(pairs, all);
    let outcome = apply_ops(
        Some(text),
        &ops,
        &OpContext { path: &path, shown: None, allow: AllowedDifferences::default() },
    );
    if let Some(refused) = outcome.failed.first() {
        return Err(edit_error(path, refused, ops.len() > 1));
    }
    match &outcome.content {
        Some(new) if !outcome.is_unchanged() => Ok((new.clone(), outcome)),
        _ => Err(ToolError::Edit { path, edit: None, refusal: Box::new(Refusal::NoChange) }),
    }
}

fn edit_ops(pairs: Vec<TextPair>, all: bool) -> Vec<EditOp> {
    let op = |TextPair { search, replace }| {
        EditOp::Replace(Replace { search, replace, all, ..Replace::default() })
    };
    pairs.into_iter().map(op).collect()
}

fn edit_error(path: RelPath, error: &OpError, several: bool) -> ToolError {
    match error {
        OpError::Refused { op, refusal, .. } => {
            ToolError::Edit { path, edit: several.then_some(op + 1), refusal: Box::new(refusal.clone()) }
        }
        other => {
            let refusal = Refusal::Malformed { message: other.to_string() };
            ToolError::Edit { path, edit: None, refusal: Box::new(refusal) }
        }
    }
}

/// Returns the report on the edits: differences from the model's text, and the resulting lines.
fn edit_report(path: &RelPath, text: &str, outcome: &OpsOutcome, several: bool) -> String {
    let mut report = format!("Edited {path}\n");
    for note in placement_notes(&outcome.notes, several) {
        report.push_str(&note);
        report.push('\n');
    }
    if let Some(broken) = &outcome.broken {
        report.push_str(&broken_syntax_note(broken.line, &broken.message));
    }
    let changed = outcome.changed.get(..MAX_SHOWN_PLACES).unwrap_or(&outcome.changed);
    let lines = line_groups_around(text, changed, CONTEXT_LINES, MAX_SHOWN_LINES);
    report.push_str(clip_to_bytes(&lines, MAX_SHOWN_BYTES));
    report
}

impl Tool for EditFile {
    fn spec(&self) -> ToolSpec {
        self.shape.spec()
    }

    fn effects(&self, input: &Value) -> Result<Effects, ToolError> {
        let path = self.parse_request(input)?.path;
        Ok(Effects { reads: vec![path.clone()], writes: vec![path], ..Effects::default() })
    }

    fn summary(&self, input: &Value) -> String {
        match self.parse_request(input) {
            Ok(EditRequest { path, why, .. }) => summarize_files("edit", &[path.to_string()], why.as_deref()),
            Err(_) => "edit a file".to_owned(),
        }
    }

    fn is_read_only(&self) -> bool {
        false
    }

    fn diff(&self, workspace: &Workspace, input: &Value) -> Result<Option<String>, ToolError> {
        diff_edits(workspace, self.parse_request(input)?).map(Some)
    }

    fn call<'a>(
        &'a self,
        context: &'a ToolContext,
        input: Value,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        self.run(context, input).boxed()
    }
}
