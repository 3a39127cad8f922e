//! The tools `todo_read` and `todo_write`.

use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use journeyman_protocol::{Effects, Todo, TodoStatus, ToolSpec};
use journeyman_tools::{Tool, ToolContext, ToolError, ToolOutput};
use serde::Deserialize;
use serde_json::{Value, json};

use super::remind::{one_line, status_name};
use super::{SharedTodoList, TodoDraft};

const READ_TOOL: &str = "todo_read";
const WRITE_TOOL: &str = "todo_write";
const INPUT_SIGNATURE: &str = "{todos: [{id?, title, status?, notes?}], merge?: boolean}";

/// The tool that shows the list.
pub struct TodoRead {
    todos: Arc<SharedTodoList>,
}

/// The tool that changes the list.
///
/// The tool counts as read-only: it doesn't touch the project, needs no checkpoint and is allowed
/// in every mode.
pub struct TodoWrite {
    todos: Arc<SharedTodoList>,
}

#[derive(Deserialize)]
struct TodoArguments {
    todos: TodoItems,
    #[serde(default)]
    merge: Option<bool>,
}

/// The todos of a call. Some models send the list as JSON in a string.
#[derive(Deserialize)]
#[serde(untagged)]
enum TodoItems {
    List(Vec<TodoItem>),
    Json(String),
}

/// A todo of a call. Models that are trained for other agents name the title `content`.
#[derive(Deserialize)]
#[serde(untagged)]
enum TodoItem {
    Title(String),
    Fields {
        id: Option<Value>,
        #[serde(alias = "content", alias = "text", alias = "task")]
        title: Option<String>,
        status: Option<String>,
        assignee: Option<String>,
        notes: Option<String>,
    },
}

impl TodoRead {
    /// Creates the tool for a list.
    #[must_use]
    pub fn new(todos: Arc<SharedTodoList>) -> Self {
        Self { todos }
    }
}

impl TodoWrite {
    /// Creates the tool for a list.
    #[must_use]
    pub fn new(todos: Arc<SharedTodoList>) -> Self {
        Self { todos }
    }

    pub(super) fn write_list(&self, input: &Value) -> Result<ToolOutput, ToolError> {
        let (drafts, merge) = parse_drafts(input).map_err(arguments_error)?;
        let unnamed = drafts.iter().any(|draft| draft.id.is_none());
        let saved = if merge { self.todos.merge(drafts) } else { self.todos.set(drafts) };
        match saved {
            Ok(todos) => Ok(ToolOutput::text(describe_written(&todos, unnamed))),
            Err(error) => Ok(ToolOutput::failure(format!("not changed: {error}"))),
        }
    }
}

fn arguments_error(problems: String) -> ToolError {
    ToolError::Arguments { tool: WRITE_TOOL.into(), problems, signature: INPUT_SIGNATURE.to_owned() }
}

/// Parses the drafts. The flag is true if they change single todos instead of the whole list.
fn parse_drafts(input: &Value) -> Result<(Vec<TodoDraft>, bool), String> {
    let arguments: TodoArguments =
        serde_json::from_value(input.clone()).map_err(|_| "`todos` must be a list of todos".to_owned())?;
    let items = match arguments.todos {
        TodoItems::List(items) => items,
        TodoItems::Json(text) => {
            serde_json::from_str(&text).map_err(|_| "`todos` must be a list of todos".to_owned())?
        }
    };
    let drafts: Result<Vec<TodoDraft>, String> = items.into_iter().map(parse_draft).collect();
    Ok((drafts?, arguments.merge.unwrap_or(false)))
}

fn parse_draft(item: TodoItem) -> Result<TodoDraft, String> {
    match item {
        TodoItem::Title(title) => Ok(TodoDraft { title: Some(title), ..TodoDraft::default() }),
        TodoItem::Fields { id, title, status, assignee, notes } => {
            let id = match id {
                None | Some(Value::Null) => None,
                Some(Value::String(id)) if id.trim().is_empty() => None,
                Some(Value::String(id)) => Some(id),
                Some(Value::Number(id)) => Some(id.to_string()),
                Some(_) => return Err("`id` must be a string".to_owned()),
            };
            let status = status.as_deref().map(parse_status).transpose()?;
            Ok(TodoDraft { id, title, status, assignee, notes })
        }
    }
}

fn parse_status(word: &str) -> Result<TodoStatus, String> {
    match word.trim().to_ascii_lowercase().replace(['-', ' '], "_").as_str() {
        "pending" | "todo" | "open" => Ok(TodoStatus::Pending),
        "in_progress" | "doing" => Ok(TodoStatus::InProgress),
        "completed" | "complete" | "done" => Ok(TodoStatus::Completed),
        _ => Err("`status` must be pending, in_progress or completed".to_owned()),
    }
}

/// Describes a written list to the model, without repeating the list.
fn describe_written(todos: &[Todo], with_ids: bool) -> String {
    let done = todos.iter().filter(|todo| todo.status == TodoStatus::Completed).count();
    let mut text = format!("Saved: {} open, {done} completed.", todos.len() - done);
    if with_ids && !todos.is_empty() {
        let ids: Vec<&str> = todos.iter().map(|todo| todo.id.as_str()).collect();
        text.push_str(&format!(" Ids in order: {}.", ids.join(", ")));
    }
    text
}

/// Formats the whole list with its ids.
pub(super) fn format_list(todos: &[Todo]) -> String {
    if todos.is_empty() {
        return "The list is empty.".to_owned();
    }
    let mut text = String::new();
    for todo in todos {
        text.push_str(&format!("{} [{}] {}", todo.id, status_name(todo.status), one_line(&todo.title)));
        for (label, more) in [("for", &todo.assignee), ("notes", &todo.notes)] {
            if let Some(more) = more {
                text.push_str(&format!(" ({label}: {})", one_line(more)));
            }
        }
        text.push('\n');
    }
    text.trim_end().to_owned()
}

impl Tool for TodoRead {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: READ_TOOL.to_owned(),
            description: "Shows your todo list with ids.".to_owned(),
            input_schema: json!({ "type": "object", "properties": {} }),
        }
    }

    fn effects(&self, _input: &Value) -> Result<Effects, ToolError> {
        Ok(Effects::default())
    }

    fn summary(&self, _input: &Value) -> String {
        "read the todos".to_owned()
    }

    fn is_read_only(&self) -> bool {
        true
    }

    fn call<'a>(
        &'a self,
        _context: &'a ToolContext,
        _input: Value,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        async move { Ok(ToolOutput::text(format_list(&self.todos.get()))) }.boxed()
    }
}

impl Tool for TodoWrite {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: WRITE_TOOL.to_owned(),
            description:
                "Writes your todo list; at most one in_progress. With merge, only changes or adds these, by id."
                .to_owned(),
            input_schema: json!({
                "type": "object",
                "properties": {
                    "todos": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "properties": {
                                "id": { "type": "string" },
                                "title": { "type": "string" },
                                "status": { "type": "string", "enum": ["pending", "in_progress", "completed"] },
                            },
                        },
                    },
                    "merge": { "type": "boolean" },
                },
                "required": ["todos"],
            }),
        }
    }

    fn effects(&self, input: &Value) -> Result<Effects, ToolError> {
        parse_drafts(input).map(|_| Effects::default()).map_err(arguments_error)
    }

    fn summary(&self, input: &Value) -> String {
        match parse_drafts(input) {
            Ok((drafts, _)) => format!("write {} todos", drafts.len()),
            Err(_) => "write the todos".to_owned(),
        }
    }

    fn is_read_only(&self) -> bool {
        true
    }

    fn call<'a>(
        &'a self,
        _context: &'a ToolContext,
        input: Value,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        async move { self.write_list(&input) }.boxed()
    }
}
