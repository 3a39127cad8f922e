//! The rules of the list.

use std::collections::HashSet;

use journeyman_protocol::{Todo, TodoStatus, UnixMillis};

/// A longer list is a plan nobody follows, and each look at it costs tokens.
pub const MAX_TODOS: usize = 100;
/// Bytes of a title: a sentence or two.
pub const MAX_TITLE: usize = 500;
/// Bytes of notes: a paragraph.
pub const MAX_NOTES: usize = 2_000;
/// Bytes of an id or an assignee.
const MAX_NAME: usize = 100;

/// Why a change was refused. The words are for the model too.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TodoError {
    /// The session keeps no list.
    #[error("todos are switched off in this session")]
    Disabled,
    /// Two todos of one id.
    #[error("two todos have the id «{0}»; ids must be unique")]
    Duplicate(String),
    /// A todo without a title.
    #[error("todo «{0}» has no title")]
    Blank(String),
    /// More than one that is worked on.
    #[error("«{0}» and «{1}» are both in_progress; at most one may be")]
    TwoInProgress(String, String),
    /// There is no todo of that id.
    #[error("there is no todo with the id «{0}»")]
    Unknown(String),
    /// Too much for a list.
    #[error("{what} may be at most {limit}")]
    TooLarge {
        /// What.
        what: &'static str,
        /// The bound, with its unit.
        limit: String,
    },
}

/// A todo as somebody asks for it. What is absent stays as it was, or takes its default in a new todo.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Draft {
    /// Which todo; a new one without gets the next free number.
    pub id: Option<String>,
    /// What is to be done.
    pub title: Option<String>,
    /// How far it is; a new one is pending.
    pub status: Option<TodoStatus>,
    /// Who does it.
    pub assignee: Option<String>,
    /// Anything more.
    pub notes: Option<String>,
}

/// The list. Ids are unique, no title is blank, at most one todo is in progress, and all of it is bounded.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TodoList {
    todos: Vec<Todo>,
}

impl TodoList {
    /// The list that was logged. It obeyed the rules when it was.
    #[must_use]
    pub fn restored(todos: Vec<Todo>) -> Self {
        Self { todos }
    }

    /// The todos in order.
    #[must_use]
    pub fn todos(&self) -> &[Todo] {
        &self.todos
    }

    /// Whether anything is left to do.
    #[must_use]
    pub fn has_open(&self) -> bool {
        self.todos.iter().any(|todo| todo.status != TodoStatus::Completed)
    }

    /// Replaces the whole list. A todo whose id (or, where none is given, whose title) was in the old list keeps
    /// its id and the time it was added; what a draft leaves out is empty or pending.
    ///
    /// # Errors
    /// [`TodoError`]; the list is as it was.
    pub fn set(&mut self, drafts: Vec<Draft>, now: UnixMillis) -> Result<(), TodoError> {
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
                .unwrap_or_else(|| free_id(&taken, &self.todos));
            taken.insert(id.clone());
            let fresh = Todo {
                // A title is needed in full: a list that is replaced takes nothing from the old one but its past.
                title: draft.title.unwrap_or_default(),
                status: draft.status.unwrap_or(TodoStatus::Pending),
                assignee: draft.assignee,
                notes: draft.notes,
                created: old.map_or(now, |todo| todo.created),
                updated: now,
                id,
            };
            todos.push(old.filter(|old| same(old, &fresh)).cloned().unwrap_or(fresh));
        }
        self.accept(todos)
    }

    /// Changes the todos that the drafts name and adds the others at the end, all or none.
    ///
    /// # Errors
    /// [`TodoError`]; the list is as it was.
    pub fn merge(&mut self, drafts: Vec<Draft>, now: UnixMillis) -> Result<(), TodoError> {
        let mut todos = self.todos.clone();
        let mut named = HashSet::new();
        let mut taken: HashSet<String> = drafts.iter().filter_map(|draft| draft.id.clone()).collect();
        for draft in drafts {
            if let Some(id) = draft.id.as_ref().filter(|id| !named.insert((*id).clone())) {
                return Err(TodoError::Duplicate(id.clone()));
            }
            let known = draft.id.as_ref().and_then(|id| todos.iter_mut().find(|todo| todo.id == *id));
            match known {
                Some(todo) => amend(todo, draft, now),
                // An id without a title can only mean one that is there.
                None if draft.title.is_none() && draft.id.is_some() => {
                    return Err(TodoError::Unknown(draft.id.unwrap_or_default()));
                }
                None => {
                    let id = draft.id.unwrap_or_else(|| free_id(&taken, &todos));
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
        self.accept(todos)
    }

    /// Changes the one todo that `draft` names.
    ///
    /// # Errors
    /// [`TodoError::Unknown`] where there is none, and whatever the rules refuse; the list is as it was.
    pub fn update(&mut self, draft: Draft, now: UnixMillis) -> Result<(), TodoError> {
        let id = draft.id.as_deref().unwrap_or_default();
        if self.find(id).is_none() {
            return Err(TodoError::Unknown(id.to_owned()));
        }
        self.merge(vec![draft], now)
    }

    /// Takes one out.
    ///
    /// # Errors
    /// [`TodoError::Unknown`] where there is none of that id.
    pub fn delete(&mut self, id: &str) -> Result<(), TodoError> {
        let before = self.todos.len();
        self.todos.retain(|todo| todo.id != id);
        if self.todos.len() == before { Err(TodoError::Unknown(id.to_owned())) } else { Ok(()) }
    }

    fn find(&self, id: &str) -> Option<&Todo> {
        self.todos.iter().find(|todo| todo.id == id)
    }

    /// Takes `todos` as the list, if they obey the rules.
    fn accept(&mut self, todos: Vec<Todo>) -> Result<(), TodoError> {
        check(&todos)?;
        self.todos = todos;
        Ok(())
    }
}

/// Changes what `draft` says, and the time only where that is something.
fn amend(todo: &mut Todo, draft: Draft, now: UnixMillis) {
    let old = todo.clone();
    todo.title = draft.title.unwrap_or_else(|| old.title.clone());
    todo.status = draft.status.unwrap_or(old.status);
    todo.assignee = draft.assignee.or_else(|| old.assignee.clone());
    todo.notes = draft.notes.or_else(|| old.notes.clone());
    if !same(&old, todo) {
        todo.updated = now;
    }
}

/// Whether two todos say the same, whenever they were written.
fn same(one: &Todo, other: &Todo) -> bool {
    (&one.id, &one.title, one.status, &one.assignee, &one.notes)
        == (&other.id, &other.title, other.status, &other.assignee, &other.notes)
}

/// The smallest number that neither a draft nor the list has.
fn free_id(taken: &HashSet<String>, todos: &[Todo]) -> String {
    let free = |id: &String| !taken.contains(id) && !todos.iter().any(|todo| todo.id == *id);
    (1_u64..).map(|number| number.to_string()).find(free).unwrap_or_default()
}

fn check(todos: &[Todo]) -> Result<(), TodoError> {
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
            ("an id", Some(&todo.id), MAX_NAME),
            ("an assignee", todo.assignee.as_ref(), MAX_NAME),
            ("a title", Some(&todo.title), MAX_TITLE),
            ("notes", todo.notes.as_ref(), MAX_NOTES),
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
