//! When tasks run, in what order, and what one that fails costs.

use std::sync::atomic::{AtomicUsize, Ordering};

use proptest::prelude::*;

use super::*;

fn every(steps: u64) -> NonZeroU64 {
    NonZeroU64::new(steps).unwrap()
}

/// The names of what fires at each of the steps.
async fn fired(schedule: &Schedule, steps: impl IntoIterator<Item = u64>) -> Vec<(u64, Vec<String>)> {
    let mut all = Vec::new();
    for step in steps {
        schedule.advance(step);
        let names: Vec<String> = schedule.run_waiting().await.into_iter().map(|fired| fired.task).collect();
        if !names.is_empty() {
            all.push((step, names));
        }
    }
    all
}

fn noted(text: &str) -> ScheduledJob {
    ScheduledJob::Reminder(text.to_owned())
}

/// Case 24: a task of every second step runs at 2 and 4 of 1 to 4, and not after it is cancelled.
#[tokio::test]
async fn case_24_every_two_steps() {
    let schedule = Schedule::default();
    let id = schedule.every("look", every(2), noted("look around")).unwrap();
    assert_eq!(fired(&schedule, 1..=4).await, [(2, vec!["look".to_owned()]), (4, vec!["look".to_owned()])]);
    schedule.advance(6);
    assert!(schedule.cancel(id));
    assert!(!schedule.cancel(id));
    assert_eq!(fired(&schedule, 7..=10).await, [], "neither what waited nor what comes");
    schedule.every("look", every(2), noted("again")).unwrap();
    schedule.advance(12);
    schedule.clear();
    assert_eq!(fired(&schedule, 13..=20).await, []);
}

/// Case 24: what is queued runs one after the other.
#[tokio::test]
async fn case_24_queued_tasks_run_one_after_the_other() {
    let schedule = Arc::new(Schedule::default());
    let (running, order) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(Vec::new())));
    for number in 0..5 {
        let (running, order) = (Arc::clone(&running), Arc::clone(&order));
        let job = ScheduledJob::from_closure(move |_| {
            let (running, order) = (Arc::clone(&running), Arc::clone(&order));
            async move {
                assert_eq!(running.fetch_add(1, Ordering::SeqCst), 0);
                tokio::task::yield_now().await;
                order.lock().unwrap().push(number);
                assert_eq!(running.fetch_sub(1, Ordering::SeqCst), 1);
                Ok(None)
            }
        });
        schedule.enqueue(number.to_string(), job).unwrap();
    }
    let (one, other) = tokio::join!(schedule.run_waiting(), schedule.run_waiting());
    assert_eq!(one.len() + other.len(), 5);
    assert!(one.iter().chain(&other).all(|fired| fired.outcome == Ok(None)));
    assert_eq!(*order.lock().unwrap(), [0, 1, 2, 3, 4]);
}

#[tokio::test]
async fn one_that_fails_or_panics_costs_itself() {
    let schedule = Schedule::default();
    schedule.enqueue("fails", ScheduledJob::from_closure(|_| async { Err("no".to_owned()) })).unwrap();
    schedule.enqueue("panics", ScheduledJob::from_closure(|_| async { panic!("on purpose") })).unwrap();
    let at_once: Arc<JobClosure> = Arc::new(|_| panic!("on purpose, before there is a future"));
    schedule.enqueue("panics at once", ScheduledJob::Run(at_once)).unwrap();
    schedule
        .enqueue("works", ScheduledJob::from_closure(|step| async move { Ok(Some(format!("step {step}"))) }))
        .unwrap();
    let outcomes: Vec<_> = schedule.run_waiting().await.into_iter().map(|fired| fired.outcome).collect();
    let panicked = Err("the task panicked".to_owned());
    assert_eq!(outcomes, [Err("no".to_owned()), panicked.clone(), panicked, Ok(Some("step 0".to_owned()))]);
}

#[tokio::test]
async fn an_outside_trigger_runs_a_task_once_and_leaves_its_rhythm() {
    let schedule = Schedule::new(9);
    schedule.every("look", every(5), noted("look")).unwrap();
    schedule.on_trigger("deploy", noted("deployed")).unwrap();
    assert_eq!(schedule.trigger("other"), Err(ScheduleError::Unknown("other".to_owned())));
    assert!(schedule.wait_until_due().now_or_never().is_none());
    for name in ["deploy", "look", "deploy"] {
        schedule.trigger(name).unwrap();
    }
    schedule.wait_until_due().await;
    let outcome = |text: &str| Ok(Some(text.to_owned()));
    let (deploy, look) = (("deploy", "on trigger"), ("look", "every 5 steps"));
    let of = |(task, spec): (&str, &str), kind, outcome| FiredTask {
        task: task.to_owned(),
        spec: spec.to_owned(),
        kind,
        outcome,
    };
    assert_eq!(
        schedule.run_waiting().await,
        [
            of(deploy, ScheduleKind::External, outcome("deployed")),
            of(look, ScheduleKind::External, outcome("look"))
        ]
    );
    schedule.advance(10);
    assert_eq!(schedule.run_waiting().await, [of(look, ScheduleKind::Steps, outcome("look"))]);
}

/// Whoever waits for something to run hears of a step, a trigger and a job.
#[tokio::test]
async fn waiting_ends_when_something_is_due() {
    let schedule = Arc::new(Schedule::default());
    schedule.every("look", every(1), noted("look")).unwrap();
    let waiting = Arc::clone(&schedule);
    let waits = tokio::spawn(async move { waiting.wait_until_due().await });
    tokio::task::yield_now().await;
    assert!(!waits.is_finished());
    schedule.advance(1);
    waits.await.unwrap();
}

#[tokio::test]
async fn a_run_that_is_cut_off_loses_one_task() {
    let schedule = Schedule::default();
    schedule.enqueue("hangs", ScheduledJob::from_closure(|_| std::future::pending())).unwrap();
    schedule.enqueue("waits", noted("still here")).unwrap();
    assert!(schedule.run_waiting().now_or_never().is_none());
    let names: Vec<String> = schedule.run_waiting().await.into_iter().map(|fired| fired.task).collect();
    assert_eq!(names, ["waits"]);
}

#[tokio::test]
async fn a_task_that_queues_itself_gives_the_session_back() {
    fn again(schedule: Arc<Schedule>) -> ScheduledJob {
        ScheduledJob::from_closure(move |_| {
            let schedule = Arc::clone(&schedule);
            async move {
                let next = again(Arc::clone(&schedule));
                schedule.enqueue("again", next).map(|()| None).map_err(|error| error.to_string())
            }
        })
    }
    let schedule = Arc::new(Schedule::default());
    schedule.enqueue("again", again(Arc::clone(&schedule))).unwrap();
    assert_eq!(schedule.run_waiting().await.len(), MAX_WAITING_RUNS);
}

#[test]
fn names_are_unique_and_tasks_bounded() {
    let schedule = Schedule::default();
    schedule.every("a", every(1), noted("")).unwrap();
    assert_eq!(schedule.on_trigger("a", noted("")), Err(ScheduleError::Duplicate("a".to_owned())));
    assert_eq!(schedule.every(" ", every(1), noted("")), Err(ScheduleError::Unnamed));
    for number in 1..MAX_TASKS {
        schedule.on_trigger(number.to_string(), noted("")).unwrap();
    }
    assert_eq!(schedule.on_trigger("more", noted("")), Err(ScheduleError::TooMany(MAX_TASKS)));
    for _ in 0..MAX_WAITING_RUNS {
        schedule.enqueue("x", noted("")).unwrap();
    }
    assert_eq!(schedule.enqueue("x", noted("")), Err(ScheduleError::TooMany(MAX_WAITING_RUNS)));
    assert_eq!(schedule.trigger("a"), Err(ScheduleError::TooMany(MAX_WAITING_RUNS)));
}

proptest! {
    /// A task runs at every multiple of its N and at no other step, wherever the session was when
    /// it was added.
    #[test]
    fn it_runs_at_multiples(n in 1_u64..20, start in 0_u64..50, steps in 1_u64..100) {
        let schedule = Schedule::new(start);
        schedule.every("task", every(n), noted("")).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let at: Vec<u64> = runtime.block_on(fired(&schedule, start + 1..=start + steps)).into_iter().map(|(step, _)| step).collect();
        let expected: Vec<u64> = (start + 1..=start + steps).filter(|step| step % n == 0).collect();
        prop_assert_eq!(at, expected);
    }
}
