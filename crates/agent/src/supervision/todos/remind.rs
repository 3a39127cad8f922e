//! Reminders of the todo list: their times and texts.

use std::num::NonZeroU32;

use journeyman_protocol::{Todo, TodoReminderReason, TodoStatus};

/// Maximum number of todos in a reminder. `todo_read` returns the rest.
const MAX_LISTED_TODOS: usize = 10;

/// A reminder for the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TodoReminder {
    /// The occasion of the reminder.
    pub reason: TodoReminderReason,
    /// The text, without the wrapping of a reminder.
    pub text: String,
    /// The present todos, for the event.
    pub todos: Vec<Todo>,
}

/// Counts the steps between reminders.
#[derive(Debug, Clone)]
pub struct TodoReminderTimer {
    every: Option<NonZeroU32>,
    /// Steps since the last change or reminder.
    steps: u32,
}

impl TodoReminderTimer {
    /// Creates reminders after every `every` steps without a change, or none with `None`.
    #[must_use]
    pub fn new(every: Option<NonZeroU32>) -> Self {
        Self { every, steps: 0 }
    }

    /// Returns the reminder for the start of a session: the open todos, or a note that there are
    /// none.
    #[must_use]
    pub fn reminder_at_start(&self, todos: &[Todo]) -> TodoReminder {
        let text = match count_open(todos) {
            0 => "Your todo list is empty. Use todo_write if the task has several steps.".to_owned(),
            _ => format!("Your todo list:\n{}", format_todos(todos, MAX_LISTED_TODOS)),
        };
        TodoReminder { reason: TodoReminderReason::Startup, text, todos: todos.to_vec() }
    }

    /// Counts a step. Returns a reminder after every `every` steps without a change, while a todo
    /// is open.
    pub fn count_step(&mut self, todos: &[Todo]) -> Option<TodoReminder> {
        let every = self.every?;
        self.steps = self.steps.saturating_add(1);
        if self.steps < every.get() {
            return None;
        }
        self.steps = 0;
        (count_open(todos) > 0).then(|| TodoReminder {
            reason: TodoReminderReason::Interval,
            text: format!(
                "Your todo list has not changed for {every} steps. Keep it true:\n{}",
                format_todos(todos, MAX_LISTED_TODOS)
            ),
            todos: todos.to_vec(),
        })
    }

    /// Restarts the count after a change. Returns a reminder if the list became empty.
    pub fn observe_change(&mut self, previous: &[Todo], current: &[Todo]) -> Option<TodoReminder> {
        self.steps = 0;
        (current.is_empty() && !previous.is_empty()).then(|| TodoReminder {
            reason: TodoReminderReason::Empty,
            text: "Your todo list is empty now. If the task is not done, write down what is left.".to_owned(),
            todos: Vec::new(),
        })
    }
}

fn count_open(todos: &[Todo]) -> usize {
    todos.iter().filter(|todo| todo.status != TodoStatus::Completed).count()
}

/// Formats the first `most` todos, one per line: `1. [in_progress] title`.
fn format_todos(todos: &[Todo], most: usize) -> String {
    let mut text = String::new();
    for (nth, todo) in (1..).zip(todos.iter().take(most)) {
        text.push_str(&format!("{nth}. [{}] {}\n", status_name(todo.status), one_line(&todo.title)));
    }
    let more = todos.len().saturating_sub(most);
    if more > 0 {
        text.push_str(&format!("… {more} more"));
    }
    text.trim_end().to_owned()
}

/// Returns the status's name in the tools.
pub(super) fn status_name(status: TodoStatus) -> &'static str {
    match status {
        TodoStatus::Pending => "pending",
        TodoStatus::InProgress => "in_progress",
        TodoStatus::Completed => "completed",
    }
}

/// Returns a title on one line, since a line break in the model's text would look like another
/// item.
pub(super) fn one_line(title: &str) -> String {
    title.split_whitespace().collect::<Vec<_>>().join(" ")
}
