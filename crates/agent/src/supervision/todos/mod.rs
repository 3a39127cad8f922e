//! The list of what a session has to do: its rules, its reminders, and the two tools that the model keeps it with.
//!
//! [`TodoList`] is the rules over plain data; a change that is refused leaves it as it was. [`Todos`] is the one
//! list that a session, its tools and its handle share; what changed waits in it until the session logs it
//! ([`Todos::take_changes`]). [`Reminders`] says when the model is to be told.

mod list;
mod remind;
mod tools;

#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, PoisonError};

use journeyman_protocol::Todo;
use tokio::sync::Notify;

use crate::Clock;

pub use list::{Draft, MAX_NOTES, MAX_TITLE, MAX_TODOS, TodoError, TodoList};
pub use remind::{DEFAULT_REMIND_STEPS, Reminders, TodoReminder};
pub use tools::{TodoRead, TodoWrite};

/// A change of the list, to be logged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TodoChange {
    /// What it was.
    pub previous: Vec<Todo>,
    /// What it is.
    pub current: Vec<Todo>,
}

/// The list that a session, its tools and its handle share.
pub struct Todos {
    clock: Arc<dyn Clock>,
    changed: Notify,
    inner: Mutex<Inner>,
}

struct Inner {
    enabled: bool,
    list: TodoList,
    changes: Vec<TodoChange>,
}

impl Todos {
    /// An empty list that takes its times from `clock`.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self::with(clock, true)
    }

    /// No list: every change is refused with [`TodoError::Disabled`].
    #[must_use]
    pub fn disabled(clock: Arc<dyn Clock>) -> Self {
        Self::with(clock, false)
    }

    fn with(clock: Arc<dyn Clock>, enabled: bool) -> Self {
        Self {
            clock,
            changed: Notify::new(),
            inner: Mutex::new(Inner { enabled, list: TodoList::default(), changes: Vec::new() }),
        }
    }

    /// Whether there is a list at all.
    #[must_use]
    pub fn is_enabled(&self) -> bool {
        self.lock().enabled
    }

    /// Puts back what the log holds. That is no change.
    pub fn restore(&self, todos: Vec<Todo>) {
        let mut inner = self.lock();
        inner.list = TodoList::restored(todos);
        inner.changes.clear();
    }

    /// The todos in order.
    #[must_use]
    pub fn get(&self) -> Vec<Todo> {
        self.lock().list.todos().to_vec()
    }

    /// Replaces the whole list; see [`TodoList::set`].
    ///
    /// # Errors
    /// [`TodoError`]; the list is as it was.
    pub fn set(&self, drafts: Vec<Draft>) -> Result<Vec<Todo>, TodoError> {
        let now = self.clock.now();
        self.change(|list| list.set(drafts, now))
    }

    /// Changes single todos and adds new ones, all or none; see [`TodoList::merge`].
    ///
    /// # Errors
    /// [`TodoError`]; the list is as it was.
    pub fn merge(&self, drafts: Vec<Draft>) -> Result<Vec<Todo>, TodoError> {
        let now = self.clock.now();
        self.change(|list| list.merge(drafts, now))
    }

    /// Changes the one todo that `draft` names.
    ///
    /// # Errors
    /// [`TodoError::Unknown`] where there is none, or what [`TodoList::merge`] refuses.
    pub fn update(&self, draft: Draft) -> Result<Vec<Todo>, TodoError> {
        let now = self.clock.now();
        self.change(|list| list.update(draft, now))
    }

    /// Takes one out.
    ///
    /// # Errors
    /// [`TodoError::Unknown`] where there is none of that id.
    pub fn delete(&self, id: &str) -> Result<Vec<Todo>, TodoError> {
        self.change(|list| list.delete(id))
    }

    /// What changed since the last call, oldest first: the session logs each as an event, and the last as a record.
    #[must_use]
    pub fn take_changes(&self) -> Vec<TodoChange> {
        std::mem::take(&mut self.lock().changes)
    }

    /// Waits for a change that has not been taken.
    pub(crate) async fn changed(&self) {
        while self.lock().changes.is_empty() {
            self.changed.notified().await;
        }
    }

    /// Makes one change, keeps what it was for the log, and gives the list as it is.
    fn change(
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
            self.changed.notify_one();
        }
        Ok(current)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
