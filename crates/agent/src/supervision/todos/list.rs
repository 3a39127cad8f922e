//! The todo list and its rules.

use std::collections::HashSet;

use journeyman_protocol::{Todo, TodoStatus, UnixMillis};

/// Maximum number of todos. Nobody follows a longer plan, and each look at it costs tokens.
pub const MAX_TODOS: usize = 100;
/// Maximum number of bytes of a title: a sentence or two.
pub const MAX_TITLE_BYTES: usize = 500;
/// Maximum number of bytes of notes: a paragraph.
pub const MAX_NOTES_BYTES: usize = 2_000;
/// Maximum number of bytes of an id or an assignee.
const MAX_ID_OR_ASSIGNEE_BYTES: usize = 100;

/// The reason why a change was refused, in words that the model reads too.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TodoError {
    /// The session keeps no list.
    #[error("todos are switched off in this session")]
    Disabled,
    /// Two todos have the same id.
    #[error("two todos have the id `{0}`; ids must be unique")]
    Duplicate(String),
    /// A todo without a title.
    #[error("todo `{0}` has no title")]
    Blank(String),
    /// More than one todo is in progress.
    #[error("`{0}` and `{1}` are both in_progress; at most one may be")]
    TwoInProgress(String, String),
    /// No todo has this id.
    #[error("there is no todo with the id `{0}`")]
    Unknown(String),
    /// A todo or the list exceeds a limit.
    #[error("{what} may be at most {limit}")]
    TooLarge {
        /// The limited quantity.
        what: &'static str,
        /// The bound, with its unit.
        limit: String,
    },
}

/// A requested todo. An absent field keeps its value, or takes its default in a new todo.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TodoDraft {
    /// The todo's id. A new todo without an id gets the next free number.
    pub id: Option<String>,
    /// The work to do.
    pub title: Option<String>,
    /// The status. A new todo is pending by default.
    pub status: Option<TodoStatus>,
    /// The assignee.
    pub assignee: Option<String>,
    /// Further notes.
    pub notes: Option<String>,
}

/// The list. Ids are unique, no title is blank, at most one todo is in progress, and all sizes are
/// bounded.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TodoList {
    todos: Vec<Todo>,
}

impl TodoList {
    /// Restores a list from the log without checking its rules, which held when it was logged.
    #[must_use]
    pub fn from_log(todos: Vec<Todo>) -> Self {
        Self { todos }
    }

    /// Returns the todos in order.
    #[must_use]
    pub fn todos(&self) -> &[Todo] {
        &self.todos
    }

    /// Replaces the whole list. A todo whose id (or, if none is given, whose title) was in the old
    /// list keeps its id and its creation time. Fields that a draft leaves out become empty or
    /// pending.
    ///
    /// # Errors
    /// [`TodoError`]; the list is as it was.
    pub fn set(&mut self, drafts: Vec<TodoDraft>, now: UnixMillis) -> Result<(), TodoError> {
        let given: HashSet<String> = drafts.iter().filter_map(|draft| draft.id.clone()).collect();
        let mut taken = given.clone();
        let mut todos = Vec::with_capacity(drafts.len());
        for draft in drafts {
            let old = match &draft.id {
                Some(id) => self.find(id),
                None => self
                    .todos
                    .iter()
                    .find(|todo| draft.title.as_ref() == Some(&todo.title) && !taken.contains(&todo.id)),
            };
            let id = draft
                .id
                .clone()
                .or_else(|| old.map(|todo| todo.id.clone()))
                .unwrap_or_else(|| next_free_id(&taken, &self.todos));
            taken.insert(id.clone());
            let fresh = Todo {
                // The title is required: a replaced list takes only ids and times from the old one.
                title: draft.title.unwrap_or_default(),
                status: draft.status.unwrap_or(TodoStatus::Pending),
                assignee: draft.assignee,
                notes: draft.notes,
                created: old.map_or(now, |todo| todo.created),
                updated: now,
                id,
            };
            todos.push(old.filter(|old| has_same_content(old, &fresh)).cloned().unwrap_or(fresh));
        }
        self.replace_if_valid(todos)
    }

    /// Changes the todos that the drafts name and appends the others, all or none.
    ///
    /// # Errors
    /// [`TodoError`]; the list is as it was.
    pub fn merge(&mut self, drafts: Vec<TodoDraft>, now: UnixMillis) -> Result<(), TodoError> {
        let mut todos = self.todos.clone();
        let mut named = HashSet::new();
        let mut taken: HashSet<String> = drafts.iter().filter_map(|draft| draft.id.clone()).collect();
        for draft in drafts {
            if let Some(id) = draft.id.as_ref().filter(|id| !named.insert((*id).clone())) {
                return Err(TodoError::Duplicate(id.clone()));
            }
            let known = draft.id.as_ref().and_then(|id| todos.iter_mut().find(|todo| todo.id == *id));
            match known {
                Some(todo) => amend_todo(todo, draft, now),
                // An id without a title can only mean an existing todo.
                None if draft.title.is_none() && draft.id.is_some() => {
                    return Err(TodoError::Unknown(draft.id.unwrap_or_default()));
                }
                None => {
                    let id = draft.id.unwrap_or_else(|| next_free_id(&taken, &todos));
                    taken.insert(id.clone());
                    todos.push(Todo {
                        id,
                        title: draft.title.unwrap_or_default(),
                        status: draft.status.unwrap_or(TodoStatus::Pending),
                        assignee: draft.assignee,
                        notes: draft.notes,
                        created: now,
                        updated: now,
                    });
                }
            }
        }
        self.replace_if_valid(todos)
    }

    /// Changes the todo that `draft` names.
    ///
    /// # Errors
    /// [`TodoError::Unknown`] if no todo has this id, or the violation of a rule; the list is
    /// unchanged.
    pub fn update(&mut self, draft: TodoDraft, now: UnixMillis) -> Result<(), TodoError> {
        let id = draft.id.as_deref().unwrap_or_default();
        if self.find(id).is_none() {
            return Err(TodoError::Unknown(id.to_owned()));
        }
        self.merge(vec![draft], now)
    }

    /// Removes a todo.
    ///
    /// # Errors
    /// [`TodoError::Unknown`] if no todo has this id.
    pub fn delete(&mut self, id: &str) -> Result<(), TodoError> {
        let before = self.todos.len();
        self.todos.retain(|todo| todo.id != id);
        if self.todos.len() == before { Err(TodoError::Unknown(id.to_owned())) } else { Ok(()) }
    }

    fn find(&self, id: &str) -> Option<&Todo> {
        self.todos.iter().find(|todo| todo.id == id)
    }

    /// Stores `todos` as the list if they obey the rules.
    fn replace_if_valid(&mut self, todos: Vec<Todo>) -> Result<(), TodoError> {
        check_rules(&todos)?;
        self.todos = todos;
        Ok(())
    }
}

/// Applies `draft` to a todo, and updates the time only if the todo changed.
fn amend_todo(todo: &mut Todo, draft: TodoDraft, now: UnixMillis) {
    let old = todo.clone();
    todo.title = draft.title.unwrap_or_else(|| old.title.clone());
    todo.status = draft.status.unwrap_or(old.status);
    todo.assignee = draft.assignee.or_else(|| old.assignee.clone());
    todo.notes = draft.notes.or_else(|| old.notes.clone());
    if !has_same_content(&old, todo) {
        todo.updated = now;
    }
}

/// Returns true if two todos have the same content, whatever their times.
fn has_same_content(one: &Todo, other: &Todo) -> bool {
    (&one.id, &one.title, one.status, &one.assignee, &one.notes)
        == (&other.id, &other.title, other.status, &other.assignee, &other.notes)
}

/// Returns the smallest number that is the id of neither a draft nor a todo.
fn next_free_id(taken: &HashSet<String>, todos: &[Todo]) -> String {
    let free = |id: &String| !taken.contains(id) && !todos.iter().any(|todo| todo.id == *id);
    (1_u64..).map(|number| number.to_string()).find(free).unwrap_or_default()
}

fn check_rules(todos: &[Todo]) -> Result<(), TodoError> {
    if todos.len() > MAX_TODOS {
        return Err(TodoError::TooLarge { what: "the list", limit: format!("{MAX_TODOS} todos") });
    }
    let mut ids = HashSet::new();
    let mut in_progress: Option<&Todo> = None;
    for todo in todos {
        if !ids.insert(&todo.id) {
            return Err(TodoError::Duplicate(todo.id.clone()));
        }
        if todo.id.trim().is_empty() {
            return Err(TodoError::Unknown(todo.id.clone()));
        }
        if todo.title.trim().is_empty() {
            return Err(TodoError::Blank(todo.id.clone()));
        }
        let bounds = [
            ("an id", Some(&todo.id), MAX_ID_OR_ASSIGNEE_BYTES),
            ("an assignee", todo.assignee.as_ref(), MAX_ID_OR_ASSIGNEE_BYTES),
            ("a title", Some(&todo.title), MAX_TITLE_BYTES),
            ("notes", todo.notes.as_ref(), MAX_NOTES_BYTES),
        ];
        for (what, text, limit) in bounds {
            if text.is_some_and(|text| text.len() > limit) {
                return Err(TodoError::TooLarge { what, limit: format!("{limit} bytes long") });
            }
        }
        if todo.status == TodoStatus::InProgress
            && let Some(other) = in_progress.replace(todo)
        {
            return Err(TodoError::TwoInProgress(other.id.clone(), todo.id.clone()));
        }
    }
    Ok(())
}
