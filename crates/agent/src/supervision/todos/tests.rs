//! The list's rules, its reminders and its tools.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use journeyman_protocol::{ResultPart, TodoReminderReason, TodoStatus, UnixMillis};
use journeyman_tools::{Tool, ToolError};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::session::settings::DEFAULT_TODO_REMINDER_INTERVAL;

fn todos() -> Arc<SharedTodoList> {
    let ticks = AtomicU64::new(0);
    Arc::new(SharedTodoList::new(crate::Clock::new(move || UnixMillis(ticks.fetch_add(1, Ordering::SeqCst)))))
}

fn draft(id: &str, title: &str, status: TodoStatus) -> TodoDraft {
    TodoDraft {
        id: Some(id.to_owned()),
        title: Some(title.to_owned()),
        status: Some(status),
        ..TodoDraft::default()
    }
}

/// `id [status] title`, for comparing whole lists.
fn lines(todos: &[Todo]) -> Vec<String> {
    todos.iter().map(|todo| format!("{} [{:?}] {}", todo.id, todo.status, todo.title)).collect()
}

use TodoStatus::{Completed, InProgress, Pending};

/// Case 22: two of one id, a blank title and two in progress are refused, and the list is as it
/// was.
#[test]
fn case_22_what_breaks_a_rule_is_refused_and_changes_nothing() {
    let list = todos();
    list.set(vec![draft("a", "first", InProgress), draft("b", "second", Pending)]).unwrap();
    let before = list.get();
    let cases = [
        (vec![draft("x", "one", Pending), draft("x", "two", Pending)], TodoError::Duplicate("x".into())),
        (vec![draft("x", " \n", Pending)], TodoError::Blank("x".into())),
        (
            vec![draft("x", "one", InProgress), draft("y", "two", InProgress)],
            TodoError::TwoInProgress("x".into(), "y".into()),
        ),
        (vec![draft(" ", "one", Pending)], TodoError::Unknown(" ".into())),
        (
            vec![draft("x", &"t".repeat(MAX_TITLE_BYTES + 1), Pending)],
            TodoError::TooLarge { what: "a title", limit: "500 bytes long".into() },
        ),
        (
            (0..=MAX_TODOS).map(|nth| draft(&nth.to_string(), "t", Pending)).collect(),
            TodoError::TooLarge { what: "the list", limit: "100 todos".into() },
        ),
    ];
    for (drafts, refused) in cases {
        assert_eq!(list.set(drafts.clone()), Err(refused.clone()), "set {drafts:?}");
        assert!(list.merge(drafts).is_err());
        assert_eq!(list.get(), before, "{refused}");
    }
    assert_eq!(
        list.merge(vec![draft("b", "second", InProgress)]),
        Err(TodoError::TwoInProgress("a".into(), "b".into()))
    );
    assert_eq!(list.update(draft("x", "new", Pending)), Err(TodoError::Unknown("x".into())));
    assert_eq!(list.delete("x"), Err(TodoError::Unknown("x".into())));
    assert_eq!(list.get(), before);
    assert_eq!(list.take_changes().len(), 1, "only the one that was made");
}

/// Case 22: emptying the list is told; so is an open list that nobody touches for N steps, and only
/// an open one.
#[test]
fn case_22_reminders() {
    let list = todos();
    let mut reminders = TodoReminderTimer::new(NonZeroU32::new(3));
    let steps = |reminders: &mut TodoReminderTimer, count: usize| -> Vec<bool> {
        (0..count).map(|_| reminders.count_step(&list.get()).is_some()).collect()
    };
    assert_eq!(steps(&mut reminders, 7), [false; 7], "nothing is open");
    list.set(vec![draft("a", "first", InProgress), draft("b", "second", Pending)]).unwrap();
    let tell = |reminders: &mut TodoReminderTimer| {
        list.take_changes()
            .into_iter()
            .find_map(|change| reminders.observe_change(&change.previous, &change.current))
    };
    assert_eq!(tell(&mut reminders), None);
    assert_eq!(steps(&mut reminders, 6), [false, false, true, false, false, true]);
    assert_eq!(steps(&mut reminders, 2), [false, false]);
    list.update(draft("a", "first", Completed)).unwrap();
    assert_eq!(tell(&mut reminders), None);
    assert_eq!(steps(&mut reminders, 3), [false, false, true], "a change begins the count anew");
    list.update(draft("b", "second", Completed)).unwrap();
    assert_eq!(tell(&mut reminders), None, "done is not empty");
    assert_eq!(steps(&mut reminders, 4), [false; 4], "all is done");
    list.set(vec![]).unwrap();
    let empty = tell(&mut reminders).unwrap();
    assert_eq!((empty.reason, empty.todos), (TodoReminderReason::Empty, vec![]));
    assert!(TodoReminderTimer::new(None).count_step(&list.get()).is_none());
}

#[test]
fn the_words_of_reminders() {
    let list = todos();
    let reminders = TodoReminderTimer::new(NonZeroU32::new(DEFAULT_TODO_REMINDER_INTERVAL));
    assert!(reminders.reminder_at_start(&list.get()).text.contains("empty"));
    let drafts = (1..=12).map(|nth| {
        draft(&format!("t{nth}"), &format!("thing\n{nth}"), if nth == 2 { InProgress } else { Pending })
    });
    list.set(drafts.collect()).unwrap();
    let start = reminders.reminder_at_start(&list.get());
    assert_eq!(start.reason, TodoReminderReason::Startup);
    assert!(
        start.text.starts_with("Your todo list:\n1. [pending] thing 1\n2. [in_progress] thing 2\n"),
        "{}",
        start.text
    );
    assert!(start.text.ends_with("\n10. [pending] thing 10\n… 2 more"), "{}", start.text);
    let mut reminders = TodoReminderTimer::new(NonZeroU32::new(DEFAULT_TODO_REMINDER_INTERVAL));
    let told: Vec<_> = (1..=10).filter_map(|_| reminders.count_step(&list.get())).collect();
    assert_eq!(told.len(), 1);
    assert_eq!(told[0].reason, TodoReminderReason::Interval);
}

/// Case 23: without a list every change is refused.
#[test]
fn case_23_a_session_without_todos_says_so() {
    let list = SharedTodoList::disabled(crate::Clock::new(|| UnixMillis(0)));
    let one = || draft("a", "first", Pending);
    assert!(!list.is_enabled());
    for refused in [list.set(vec![one()]), list.merge(vec![one()]), list.update(one()), list.delete("a")] {
        assert_eq!(refused, Err(TodoError::Disabled));
    }
    assert_eq!((list.get(), list.take_changes()), (vec![], vec![]));
}

#[test]
fn replacing_keeps_the_past_of_what_stays() {
    let list = todos();
    list.set(vec![draft("a", "first", Pending), draft("b", "second", Pending)]).unwrap();
    let before = list.get();
    // The first has no id and is known by its title; the third gets a number.
    let titled = |title: &str| TodoDraft { title: Some(title.to_owned()), ..TodoDraft::default() };
    let after = list
        .set(vec![titled("first"), draft("b", "second", InProgress), titled("third"), titled("fourth")])
        .unwrap();
    assert_eq!(
        lines(&after),
        ["a [Pending] first", "b [InProgress] second", "1 [Pending] third", "2 [Pending] fourth"]
    );
    assert_eq!(after[0], before[0], "unchanged, with its times");
    assert_eq!(after[1].created, before[1].created);
    assert!(after[1].updated > before[1].updated);
    let changes = list.take_changes();
    assert_eq!(changes.len(), 2);
    assert_eq!((&changes[1].previous, &changes[1].current), (&before, &after));
    list.set(vec![titled("first"), draft("b", "second", InProgress), titled("third"), titled("fourth")])
        .unwrap();
    assert_eq!(list.take_changes(), [], "the same list is no change");
}

#[test]
fn merging_changes_only_what_is_named() {
    let list = todos();
    list.set(vec![draft("1", "first", InProgress), draft("2", "second", Pending)]).unwrap();
    let id = |id: &str, status| TodoDraft {
        id: Some(id.to_owned()),
        status: Some(status),
        ..TodoDraft::default()
    };
    let after = list.merge(vec![id("2", InProgress), id("1", Completed)]).unwrap();
    assert_eq!(lines(&after), ["1 [Completed] first", "2 [InProgress] second"]);
    let more = TodoDraft { title: Some("third".to_owned()), ..TodoDraft::default() };
    assert_eq!(lines(&list.merge(vec![more]).unwrap())[2], "3 [Pending] third");
    assert_eq!(list.merge(vec![id("9", Pending)]), Err(TodoError::Unknown("9".into())));
    assert_eq!(list.merge(vec![id("1", Pending), id("1", Completed)]), Err(TodoError::Duplicate("1".into())));
    assert_eq!(list.merge(vec![TodoDraft::default()]), Err(TodoError::Blank("4".into())));
    assert_eq!(lines(&list.delete("1").unwrap()), ["2 [InProgress] second", "3 [Pending] third"]);
}

#[test]
fn a_restored_list_is_no_change() {
    let list = todos();
    list.set(vec![draft("a", "first", Pending)]).unwrap();
    let kept = list.get();
    let other = todos();
    other.restore(kept.clone());
    assert_eq!((other.get(), other.take_changes()), (kept, vec![]));
}

/// A call of `todo_write`, without the context that it doesn't use.
fn write(list: &Arc<SharedTodoList>, input: Value) -> Result<(String, bool), String> {
    let output = TodoWrite::new(Arc::clone(list)).write_list(&input).map_err(|error| error.to_string())?;
    match &output.parts[..] {
        [ResultPart::Text { text }] => Ok((text.clone(), output.is_error)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_tools_take_what_models_write() {
    let saved = |text: &str| Ok((text.to_owned(), false));
    let cases = [
        (json!({"todos": [{"id": "1", "title": "a"}]}), saved("Saved: 1 open, 0 completed.")),
        (
            json!({"todos": [{"id": 1, "content": "a", "status": "in-progress", "activeForm": "x"}]}),
            saved("Saved: 1 open, 0 completed."),
        ),
        (
            json!({"todos": "[{\"title\": \"a\", \"status\": \"done\"}]"}),
            saved("Saved: 0 open, 1 completed. Ids in order: 1."),
        ),
        (json!({"todos": ["a", "b"]}), saved("Saved: 2 open, 0 completed. Ids in order: 1, 2.")),
        (json!({"todos": []}), saved("Saved: 0 open, 0 completed.")),
        (
            json!({"todos": [{"id": "1", "title": "a", "status": "in_progress"}, {"id": "2", "title": "b", "status": "in_progress"}]}),
            Ok(("not changed: `1` and `2` are both in_progress; at most one may be".to_owned(), true)),
        ),
        (
            json!({"todos": [{"id": "7", "status": "completed"}], "merge": true}),
            Ok(("not changed: there is no todo with the id `7`".to_owned(), true)),
        ),
    ];
    for (input, expected) in cases {
        assert_eq!(write(&todos(), input.clone()), expected, "{input}");
    }
    for (input, problem) in [
        (json!({}), "`todos` must be a list"),
        (json!({"todos": 5}), "`todos` must be a list"),
        (json!({"todos": "buy milk"}), "`todos` must be a list"),
        (json!({"todos": [{"id": "1", "title": "a", "status": "soon"}]}), "`status` must be pending"),
        (json!({"todos": [{"id": [], "title": "a"}]}), "`id` must be a string"),
    ] {
        let list = todos();
        let refused = write(&list, input.clone()).unwrap_err();
        assert!(
            refused.starts_with(problem) && refused.contains("todo_write takes {todos"),
            "{input}: {refused}"
        );
        assert!(matches!(TodoWrite::new(list).effects(&input), Err(ToolError::Arguments { .. })));
    }
}

#[test]
fn the_whole_list_is_read_with_its_ids() {
    let list = todos();
    assert_eq!(tools::format_list(&list.get()), "The list is empty.");
    write(&list, json!({"todos": [{"id": "x", "title": "first\nline", "assignee": "ann", "notes": "see b"}, "second"]})).unwrap();
    assert_eq!(
        tools::format_list(&list.get()),
        "x [pending] first line (for: ann) (notes: see b)\n1 [pending] second"
    );
}

/// Each costs every request: 120 tokens at most, at 3.5 bytes a token as the tools' own test
/// counts.
#[test]
fn the_tools_cost_few_tokens() {
    let list = todos();
    for spec in [TodoRead::new(Arc::clone(&list)).spec(), TodoWrite::new(list).spec()] {
        let bytes = serde_json::to_string(&spec).unwrap().len();
        println!("{}: {bytes} bytes", spec.name);
        assert!(bytes <= 420, "{}: {bytes}", spec.name);
    }
}

#[derive(Debug, Clone)]
enum Change {
    Set(Vec<TodoDraft>),
    Merge(Vec<TodoDraft>),
    Update(TodoDraft),
    Delete(String),
}

fn any_draft() -> impl Strategy<Value = TodoDraft> {
    let status = prop::sample::select(vec![None, Some(Pending), Some(InProgress), Some(Completed)]);
    let id = prop::option::of("[ 1-4]?");
    (id, prop::option::of("[ ab]{0,2}"), status).prop_map(|(id, title, status)| TodoDraft {
        id,
        title,
        status,
        ..TodoDraft::default()
    })
}

fn any_change() -> impl Strategy<Value = Change> {
    let drafts = || prop::collection::vec(any_draft(), 0..5);
    prop_oneof![
        drafts().prop_map(Change::Set),
        drafts().prop_map(Change::Merge),
        any_draft().prop_map(Change::Update),
        "[1-4]".prop_map(Change::Delete),
    ]
}

proptest! {
    /// Whatever is asked for, the rules hold, a refusal changes nothing, and the changes add up to
    /// the list.
    #[test]
    fn the_rules_hold_after_anything(changes in prop::collection::vec(any_change(), 0..20)) {
        let list = todos();
        let mut logged: Vec<Todo> = Vec::new();
        for change in changes {
            let before = list.get();
            let made = match change {
                Change::Set(drafts) => list.set(drafts),
                Change::Merge(drafts) => list.merge(drafts),
                Change::Update(draft) => list.update(draft),
                Change::Delete(id) => list.delete(&id),
            };
            let after = list.get();
            match made {
                Ok(given) => prop_assert_eq!(&given, &after),
                Err(_) => prop_assert_eq!(&before, &after),
            }
            let ids: std::collections::HashSet<_> = after.iter().map(|todo| &todo.id).collect();
            prop_assert_eq!(ids.len(), after.len());
            prop_assert!(after.iter().all(|todo| !todo.title.trim().is_empty() && !todo.id.trim().is_empty()));
            prop_assert!(after.iter().filter(|todo| todo.status == InProgress).count() <= 1);
            for change in list.take_changes() {
                prop_assert_eq!(&change.previous, &logged);
                logged = change.current;
            }
            prop_assert_eq!(&after, &logged);
        }
    }
}
