//! When the model is reminded of the list, and in what words.

use std::num::NonZeroU32;

use journeyman_protocol::{Todo, TodoReminderReason, TodoStatus};

/// Steps without a change of the list before the model is reminded: long enough not to nag in the midst of one
/// item, short enough that a forgotten list comes back while the task still runs.
pub const DEFAULT_REMIND_STEPS: NonZeroU32 = NonZeroU32::MIN.saturating_add(9);
/// Todos that a reminder lists; more cost tokens and are a call of `todo_read` away.
const LISTED: usize = 10;

/// What the model is to be told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TodoReminder {
    /// Why now.
    pub reason: TodoReminderReason,
    /// The words, without the wrapping of a reminder.
    pub text: String,
    /// The todos as they are, for the event.
    pub todos: Vec<Todo>,
}

/// Counts the steps between reminders.
#[derive(Debug, Clone)]
pub struct Reminders {
    every: Option<NonZeroU32>,
    /// Steps since the last change or reminder.
    steps: u32,
}

impl Reminders {
    /// Reminds after so many steps without a change, or never.
    #[must_use]
    pub fn new(every: Option<NonZeroU32>) -> Self {
        Self { every, steps: 0 }
    }

    /// What to say when the session starts or is opened again: the open todos, or that there are none.
    #[must_use]
    pub fn start(&self, todos: &[Todo]) -> TodoReminder {
        let text = match open(todos) {
            0 => "Your todo list is empty. Use todo_write if the task has several steps.".to_owned(),
            _ => format!("Your todo list:\n{}", lines(todos, LISTED)),
        };
        TodoReminder { reason: TodoReminderReason::Startup, text, todos: todos.to_vec() }
    }

    /// Counts a step; gives a reminder after every N without a change, while anything is open.
    pub fn step(&mut self, todos: &[Todo]) -> Option<TodoReminder> {
        let every = self.every?;
        self.steps = self.steps.saturating_add(1);
        if self.steps < every.get() {
            return None;
        }
        self.steps = 0;
        (open(todos) > 0).then(|| TodoReminder {
            reason: TodoReminderReason::Interval,
            text: format!(
                "Your todo list has not changed for {every} steps. Keep it true:\n{}",
                lines(todos, LISTED)
            ),
            todos: todos.to_vec(),
        })
    }

    /// Hears of a change: the count begins anew; gives a reminder when the list became empty.
    pub fn changed(&mut self, previous: &[Todo], current: &[Todo]) -> Option<TodoReminder> {
        self.steps = 0;
        (current.is_empty() && !previous.is_empty()).then(|| TodoReminder {
            reason: TodoReminderReason::Empty,
            text: "Your todo list is empty now. If the task is not done, write down what is left.".to_owned(),
            todos: Vec::new(),
        })
    }
}

fn open(todos: &[Todo]) -> usize {
    todos.iter().filter(|todo| todo.status != TodoStatus::Completed).count()
}

/// The first `most` todos, one a line: `1. [in_progress] title`.
fn lines(todos: &[Todo], most: usize) -> String {
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

/// The status as the tools write it.
pub(super) fn status_name(status: TodoStatus) -> &'static str {
    match status {
        TodoStatus::Pending => "pending",
        TodoStatus::InProgress => "in_progress",
        TodoStatus::Completed => "completed",
    }
}

/// A title on one line: it is the model's text, and a line break in it would look like another item.
pub(super) fn one_line(title: &str) -> String {
    title.split_whitespace().collect::<Vec<_>>().join(" ")
}
