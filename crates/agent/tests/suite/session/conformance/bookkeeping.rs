//! Todos and the schedule.

use std::num::NonZeroU64;
use std::sync::{Arc, Mutex};

use journeyman_agent::schedule::ScheduledJob;
use journeyman_agent::todos::{TodoDraft, TodoError};
use journeyman_agent::{ChecksSetting, RunSettings, TodoSettings};
use journeyman_protocol::{Event, ScheduleKind, TodoReminderReason};
use serde_json::{Value, json};

use crate::session::support::bench::{Bench, auto};
use crate::session::support::model::{Step, Told, call, calls, calls_of, result, says};

cases![
    case_22_todos_keep_their_rules_and_remind,
    case_23_without_todos_a_change_is_refused,
    case_24_every_two_steps_fires_at_two_and_four,
];

fn settings(todos: Option<TodoSettings>) -> RunSettings {
    RunSettings { checks: ChecksSetting::Off, todos, ..auto() }
}

fn list(step: usize) -> Step {
    calls_of(vec![call(&format!("l{step}"), "list_files", json!({}))])
}

fn write(id: &str, todos: Value) -> (&str, &'static str, Value) {
    (id, "todo_write", json!({ "todos": todos }))
}

async fn case_22_todos_keep_their_rules_and_remind() {
    let mut bench = Bench::new(&[]);
    let good = json!([
        { "id": "1", "title": "read", "status": "in_progress" },
        { "id": "2", "title": "write", "status": "pending" }
    ]);
    let told = Told::new([
        calls([write("good", good.clone())]),
        calls([
            write("twice", json!([{ "id": "1", "title": "a" }, { "id": "1", "title": "b" }])),
            write("blank", json!([{ "id": "1", "title": "  " }])),
            write(
                "two",
                json!([
                    { "id": "1", "title": "a", "status": "in_progress" },
                    { "id": "2", "title": "b", "status": "in_progress" }
                ]),
            ),
            ("read", "todo_read", json!({})),
        ]),
        list(3),
        list(4),
        calls([write("empty", json!([]))]),
        list(6),
        list(7),
        list(8),
        says("done"),
    ]);
    let every = TodoSettings { remind_every: 3, remind_at_start: true };
    let mut session = bench.start(&told, settings(Some(every)));
    session.handle.send("do it").await.unwrap();
    session.done().await;
    let heard = &told.requests()[2];
    for call in ["twice", "blank", "two"] {
        assert!(result(heard, call).starts_with("not changed: "), "{}", result(heard, call));
    }
    let read = result(heard, "read");
    assert!(read.contains("read") && read.contains("write"), "{read}");
    let reminders: Vec<(TodoReminderReason, usize)> = bench
        .log
        .events()
        .iter()
        .filter_map(|event| match event {
            Event::TodoReminder { todos, reason } => Some((*reason, todos.len())),
            _ => None,
        })
        .collect();
    // Three steps after the change that began the list, not counting it; then it becomes empty, and
    // nothing is left to be reminded of.
    assert_eq!(reminders, [(TodoReminderReason::Interval, 2), (TodoReminderReason::Empty, 0)]);
    let changes: Vec<(usize, usize)> = bench
        .log
        .events()
        .iter()
        .filter_map(|event| match event {
            Event::TodoChanged { previous, current } => Some((previous.len(), current.len())),
            _ => None,
        })
        .collect();
    assert_eq!(changes, [(0, 2), (2, 0)], "a refused one changes nothing");
    let told_of: Vec<usize> = told
        .requests()
        .iter()
        .enumerate()
        .filter(|(_, request)| {
            let last = request.messages.last().unwrap().text();
            last.contains("Your todo list has not changed") || last.contains("Your todo list is empty now")
        })
        .map(|(place, _)| place)
        .collect();
    assert_eq!(told_of.len(), 2, "{told_of:?}");
    assert!(bench.state().await.todos.is_empty());
}

async fn case_23_without_todos_a_change_is_refused() {
    let mut bench = Bench::new(&[]);
    let told = Told::new([calls([write("c1", json!([]))]), says("done")]);
    let session = bench.start(&told, settings(None));
    let draft = || vec![TodoDraft { title: Some("write".to_owned()), ..TodoDraft::default() }];
    assert_eq!(session.handle.todos().set(draft()), Err(TodoError::Disabled));
    assert_eq!(session.handle.todos().merge(draft()), Err(TodoError::Disabled));
    assert_eq!(session.handle.todos().delete("1"), Err(TodoError::Disabled));
    session.handle.send("do it").await.unwrap();
    session.handle.wait_until_finished().await.unwrap();
    let requests = told.requests();
    assert!(requests[0].tools.iter().all(|tool| !tool.name.starts_with("todo_")));
    assert!(result(&requests[1], "c1").starts_with("there is no tool `todo_write`"));
}

async fn case_24_every_two_steps_fires_at_two_and_four() {
    let mut bench = Bench::new(&[]);
    let told =
        Told::new((1..=4).map(list).chain([says("one")]).chain((6..=9).map(list)).chain([says("two")]));
    let mut session = bench.start(&told, settings(None));
    let trail: Arc<Mutex<Vec<String>>> = Arc::default();
    let noting = |name: &'static str| {
        let trail = Arc::clone(&trail);
        ScheduledJob::from_closure(move |step| {
            let trail = Arc::clone(&trail);
            async move {
                trail.lock().unwrap().push(format!("{name} begins at {step}"));
                tokio::task::yield_now().await;
                trail.lock().unwrap().push(format!("{name} ends"));
                Ok(None)
            }
        })
    };
    let two = NonZeroU64::new(2).unwrap();
    let schedule = session.handle.schedule();
    let id = schedule.every("a", two, noting("a")).unwrap();
    schedule.every("nudge", two, ScheduledJob::Reminder("look up".to_owned())).unwrap();
    schedule.enqueue("b", noting("b")).unwrap();
    schedule.enqueue("c", noting("c")).unwrap();
    session.handle.send("do it").await.unwrap();
    session.done().await;
    // What was queued runs at the first boundary, one after the other.
    let expected = [
        "b begins at 0",
        "b ends",
        "c begins at 0",
        "c ends",
        "a begins at 2",
        "a ends",
        "a begins at 4",
        "a ends",
    ];
    assert_eq!(*trail.lock().unwrap(), expected);
    let nudged: Vec<bool> = told
        .requests()
        .iter()
        .map(|request| request.messages.last().unwrap().text().contains("look up"))
        .collect();
    assert_eq!(nudged, [false, false, true, false, true]);
    let fired: Vec<(String, ScheduleKind)> = bench
        .log
        .events()
        .into_iter()
        .filter_map(|event| match event {
            Event::SchedulerTriggered { task, kind, .. } => Some((task, kind)),
            _ => None,
        })
        .collect();
    assert_eq!(fired.iter().filter(|(_, kind)| *kind == ScheduleKind::Steps).count(), 4, "{fired:?}");
    // One that is cancelled, and all that are cleared, fire no more.
    assert!(session.handle.schedule().cancel(id));
    session.handle.schedule().clear();
    session.handle.send("and this").await.unwrap();
    session.done().await;
    assert_eq!(trail.lock().unwrap().len(), expected.len());
    assert!(session.handle.schedule().trigger("nudge").is_err());
}
