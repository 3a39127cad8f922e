//! `edit_symbol`: an edit that names a function, a class or another symbol.

use std::path::Path;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use journeyman_edit::{Edit, EditOp, SymbolAction, SymbolEdit};
use journeyman_protocol::{Effects, ToolSpec};
use journeyman_workspace::Workspace;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::planned_edits::{apply_edits, diff_edits, edit_effects, summarize_files};
use crate::tool::run_blocking;
use crate::tool_interface::{ToolInterface, not_found};
use crate::{Tool, ToolContext, ToolError, ToolOutput};

#[derive(Deserialize, JsonSchema)]
struct EditSymbolArguments {
    path: String,
    /// Such as open or Shop.open
    symbol: String,
    action: Action,
    /// New text, or new name
    content: Option<String>,
    why: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Action {
    Replace,
    InsertBefore,
    InsertAfter,
    Rename,
    Delete,
}

/// The `edit_symbol` tool.
pub(crate) struct EditSymbol {
    shape: ToolInterface,
}

/// A call with its arguments checked.
struct SymbolRequest {
    edit: Edit,
    verb: &'static str,
    name: String,
}

impl EditSymbol {
    pub(crate) fn new(root: Option<&Path>) -> Self {
        let description =
            "Edits a whole function, class or other symbol by its name. rename changes this file only.";
        Self { shape: ToolInterface::for_arguments::<EditSymbolArguments>("edit_symbol", description, root) }
    }

    fn parse_request(&self, input: &Value) -> Result<SymbolRequest, ToolError> {
        let EditSymbolArguments { path, symbol, action, content, why } = self.shape.read_arguments(input)?;
        let path = self.shape.parse_path(&path)?;
        if symbol.trim().is_empty() {
            return Err(self.shape.argument_error("`symbol` is empty"));
        }
        let content = match (action, content) {
            (Action::Delete, _) => String::new(),
            (_, Some(content)) if !content.trim().is_empty() => content,
            _ => return Err(self.shape.argument_error("`content` is missing; only delete goes without")),
        };
        let (verb, action) = match action {
            Action::Replace => ("replace", SymbolAction::Replace { content }),
            Action::InsertBefore => ("insert before", SymbolAction::InsertBefore { content }),
            Action::InsertAfter => ("insert after", SymbolAction::InsertAfter { content }),
            Action::Rename => ("rename", SymbolAction::Rename { to: content.trim().to_owned() }),
            Action::Delete => ("delete", SymbolAction::Delete),
        };
        let name = symbol.clone();
        let op = EditOp::Symbol(SymbolEdit { symbol, action });
        Ok(SymbolRequest { edit: Edit { path, ops: vec![op], description: why }, verb, name })
    }
}

impl Tool for EditSymbol {
    fn spec(&self) -> ToolSpec {
        self.shape.spec()
    }

    fn effects(&self, input: &Value) -> Result<Effects, ToolError> {
        Ok(edit_effects(&[self.parse_request(input)?.edit]))
    }

    fn summary(&self, input: &Value) -> String {
        match self.parse_request(input) {
            Ok(SymbolRequest { edit, verb, name }) => {
                let place = format!("{name} in {}", edit.path);
                summarize_files(verb, &[place], edit.description.as_deref())
            }
            Err(_) => "edit a symbol".to_owned(),
        }
    }

    fn is_read_only(&self) -> bool {
        false
    }

    fn diff(&self, workspace: &Workspace, input: &Value) -> Result<Option<String>, ToolError> {
        diff_edits(workspace, &[self.parse_request(input)?.edit])
    }

    fn call<'a>(
        &'a self,
        context: &'a ToolContext,
        input: Value,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        async move {
            let SymbolRequest { edit, .. } = self.parse_request(&input)?;
            let context = context.clone();
            run_blocking(move || {
                if context.workspace.stat(&edit.path)?.is_none() {
                    return Err(not_found(&context.workspace, edit.path));
                }
                let why = edit.description.clone();
                apply_edits(&context, &[edit], why)
            })
            .await
        }
        .boxed()
    }
}
