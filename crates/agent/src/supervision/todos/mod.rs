//! The todo list of a session: its rules, its reminders, and the two tools with which the model
//! maintains it.
//!
//! [`TodoList`] holds the todos and enforces the rules; a refused change leaves it unchanged.
//! [`SharedTodoList`] is the list that a session, its tools and its handle share. It stores changes
//! until the session logs them ([`SharedTodoList::take_changes`]). [`TodoReminderTimer`] decides
//! when the model is reminded.

mod list;
mod remind;
mod tools;

#[cfg(test)]
mod tests;

use std::sync::{Mutex, PoisonError};

use journeyman_protocol::Todo;
use tokio::sync::Notify;

use crate::Clock;

pub use list::{MAX_NOTES_BYTES, MAX_TITLE_BYTES, MAX_TODOS, TodoDraft, TodoError, TodoList};
pub use remind::{TodoReminder, TodoReminderTimer};
pub use tools::{TodoRead, TodoWrite};

/// A change of the list, to be logged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TodoChange {
    /// The list before the change.
    pub previous: Vec<Todo>,
    /// The list after the change.
    pub current: Vec<Todo>,
}

/// The list that a session, its tools and its handle share.
pub struct SharedTodoList {
    clock: Clock,
    change_notify: Notify,
    inner: Mutex<TodosInner>,
}

struct TodosInner {
    enabled: bool,
    list: TodoList,
    changes: Vec<TodoChange>,
}

impl SharedTodoList {
    /// Creates an empty list that takes its times from `clock`.
    #[must_use]
    pub fn new(clock: Clock) -> Self {
        Self::with_enabled(clock, true)
    }

    /// Creates a disabled list, which refuses every change with [`TodoError::Disabled`].
    #[must_use]
    pub fn disabled(clock: Clock) -> Self {
        Self::with_enabled(clock, false)
    }

    fn with_enabled(clock: Clock, enabled: bool) -> Self {
        Self {
            clock,
            change_notify: Notify::new(),
            inner: Mutex::new(TodosInner { enabled, list: TodoList::default(), changes: Vec::new() }),
        }
    }

    /// Returns true if the session keeps a list.
    #[must_use]
    pub fn is_enabled(&self) -> bool {
        self.lock().enabled
    }

    /// Restores the list from the log, without recording a change.
    pub fn restore(&self, todos: Vec<Todo>) {
        let mut inner = self.lock();
        inner.list = TodoList::from_log(todos);
        inner.changes.clear();
    }

    /// Returns the todos in order.
    #[must_use]
    pub fn get(&self) -> Vec<Todo> {
        self.lock().list.todos().to_vec()
    }

    /// Replaces the whole list; see [`TodoList::set`].
    ///
    /// # Errors
    /// [`TodoError`]; the list is as it was.
    pub fn set(&self, drafts: Vec<TodoDraft>) -> Result<Vec<Todo>, TodoError> {
        let now = self.clock.now();
        self.apply_change(|list| list.set(drafts, now))
    }

    /// Changes single todos and adds new ones, all or none; see [`TodoList::merge`].
    ///
    /// # Errors
    /// [`TodoError`]; the list is as it was.
    pub fn merge(&self, drafts: Vec<TodoDraft>) -> Result<Vec<Todo>, TodoError> {
        let now = self.clock.now();
        self.apply_change(|list| list.merge(drafts, now))
    }

    /// Changes the todo that `draft` names.
    ///
    /// # Errors
    /// [`TodoError::Unknown`] if no todo has this id, or the errors of [`TodoList::merge`].
    pub fn update(&self, draft: TodoDraft) -> Result<Vec<Todo>, TodoError> {
        let now = self.clock.now();
        self.apply_change(|list| list.update(draft, now))
    }

    /// Removes a todo.
    ///
    /// # Errors
    /// [`TodoError::Unknown`] if no todo has this id.
    pub fn delete(&self, id: &str) -> Result<Vec<Todo>, TodoError> {
        self.apply_change(|list| list.delete(id))
    }

    /// Takes the changes since the last call, oldest first. The session logs each as an event and
    /// the last as a record.
    #[must_use]
    pub fn take_changes(&self) -> Vec<TodoChange> {
        std::mem::take(&mut self.lock().changes)
    }

    /// Waits for a change that has not been taken.
    pub(crate) async fn wait_for_change(&self) {
        while self.lock().changes.is_empty() {
            self.change_notify.notified().await;
        }
    }

    /// Applies a change, stores the old list for the log, and returns the new list.
    fn apply_change(
        &self,
        make: impl FnOnce(&mut TodoList) -> Result<(), TodoError>,
    ) -> Result<Vec<Todo>, TodoError> {
        let mut inner = self.lock();
        if !inner.enabled {
            return Err(TodoError::Disabled);
        }
        let previous = inner.list.todos().to_vec();
        make(&mut inner.list)?;
        let current = inner.list.todos().to_vec();
        if previous != current {
            inner.changes.push(TodoChange { previous, current: current.clone() });
            self.change_notify.notify_one();
        }
        Ok(current)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, TodosInner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
