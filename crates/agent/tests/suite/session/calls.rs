//! Calls: together or in order, each with exactly one result in its place.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use journeyman_agent::{ChecksSetting, RunSettings};
use journeyman_model::ModelRequest;
use journeyman_policy::GUARD_RULES;
use journeyman_protocol::{CallId, CallState, Event, RunOutcome};
use journeyman_tools::{ToolError, ToolOutput};
use journeyman_workspace::GuardedState;
use serde_json::json;
use tokio::sync::Barrier;

use crate::session::support::bench::{Bench, assert_settled, auto, in_mode};
use crate::session::support::model::{Told, call, calls, calls_of, result, says};
use crate::session::support::tools::{Does, Meet, Panics, Trail};
use crate::session::support::transcript::results;

cases![
    three_readers_run_at_once,
    never_more_than_three,
    writers_run_one_by_one_and_readers_between_them,
    every_call_has_one_result_in_its_place,
    more_calls_than_a_reply_may_make,
    repeated_ids_get_names_of_their_own,
    a_tool_that_panics_costs_its_call_only,
    writers_of_one_file_take_turns_and_others_do_not_wait,
    a_tool_that_says_nothing_has_the_settings_limit,
    a_tool_that_does_not_listen_is_ended_all_the_same,
    a_call_that_is_ended_names_what_it_left_and_what_was_moved_away,
    a_tool_tells_of_its_own_events,
];

fn meet(name: &'static str, read_only: bool, barrier: Option<Barrier>, trail: &Arc<Trail>) -> Meet {
    Meet { name, read_only, barrier: barrier.map(Arc::new), gate: None, trail: Arc::clone(trail) }
}

fn answered(request: &ModelRequest) -> Vec<CallId> {
    results(request.messages.last().unwrap())
}

/// Each waits for the others: were they not together, none would end.
async fn three_readers_run_at_once() {
    let trail = Arc::new(Trail::default());
    let mut bench = Bench::new(&[]).with_tool(meet("meet", true, Some(Barrier::new(3)), &trail));
    let told = Told::new([
        calls([("c1", "meet", json!({})), ("c2", "meet", json!({})), ("c3", "meet", json!({}))]),
        says("met"),
    ]);
    let report = bench.run(&told, auto()).await;
    assert_eq!(report.text, "met");
    assert_eq!(answered(&told.requests()[1]), ["c1", "c2", "c3"].map(CallId::new));
    assert_eq!(trail.most.load(Ordering::SeqCst), 3);
}

async fn never_more_than_three() {
    let trail = Arc::new(Trail::default());
    let mut bench = Bench::new(&[]).with_tool(meet("meet", true, None, &trail));
    let ids: Vec<String> = (0..10).map(|number| format!("c{number}")).collect();
    let all = ids.iter().map(|id| call(id, "meet", json!({}))).collect();
    let told = Told::new([calls_of(all), says("met")]);
    bench.run(&told, auto()).await;
    assert_eq!(trail.most.load(Ordering::SeqCst), 3);
    assert_eq!(answered(&told.requests()[1]), ids.iter().map(CallId::new).collect::<Vec<_>>());
}

async fn writers_run_one_by_one_and_readers_between_them() {
    let trail = Arc::new(Trail::default());
    let mut bench = Bench::new(&[])
        .with_tool(meet("read", true, None, &trail))
        .with_tool(meet("write", false, None, &trail));
    let told = Told::new([
        calls([
            ("w1", "write", json!({})),
            ("w2", "write", json!({})),
            ("r1", "read", json!({})),
            ("r2", "read", json!({})),
            ("w3", "write", json!({})),
            ("r3", "read", json!({})),
        ]),
        says("done"),
    ]);
    bench.run(&told, auto()).await;
    let mut steps = trail.steps.lock().unwrap().clone();
    // Readers that ran together may end in either order.
    steps[6..8].sort();
    let expected = [
        "w1 begins",
        "w1 ends",
        "w2 begins",
        "w2 ends",
        "r1 begins",
        "r2 begins",
        "r1 ends",
        "r2 ends",
        "w3 begins",
        "w3 ends",
        "r3 begins",
        "r3 ends",
    ];
    assert_eq!(steps, expected);
    assert_eq!(answered(&told.requests()[1]), ["w1", "w2", "r1", "r2", "w3", "r3"].map(CallId::new));
}

/// What can be wrong with a call is its result, beside those that are right.
async fn every_call_has_one_result_in_its_place() {
    let mut malformed = call("malformed", "read_file", json!("{\"path\": \"a.t"));
    malformed.malformed = Some("EOF while parsing a string".to_owned());
    let wrong = [
        (call("unknown", "read_fil", json!({})), "there is no tool `read_fil`; did you mean `read_file`?"),
        (malformed, "not run: the arguments are not valid JSON (EOF while parsing a string)."),
        (call("missing", "read_file", json!({})), "path"),
        (call("scalar", "read_file", json!(7)), "read_file takes"),
        (call("absent", "read_file", json!({ "path": "b.txt" })), "`b.txt` doesn't exist"),
        (call("outside", "read_file", json!({ "path": "../secret" })), "`..`"),
        (call("absolute", "write_file", json!({ "path": "/etc/x", "content": "" })), "/etc/x"),
        (call("git", "write_file", json!({ "path": ".git/hooks/x", "content": "" })), "denied: .git/hooks/x"),
    ];
    let mut all = vec![call("first", "read_file", json!({ "path": "a.txt" }))];
    all.extend(wrong.iter().map(|(call, _)| call.clone()));
    all.push(call("last", "read_file", json!({ "path": "a.txt" })));
    let mut bench = Bench::new(&[("a.txt", "right\n")]);
    let told = Told::new([calls_of(all.clone()), says("done")]);
    let report = bench.run(&told, auto()).await;
    assert_eq!(report.outcome, RunOutcome::Unverified, "{}", report.summary);
    let heard = &told.requests()[1];
    assert_eq!(answered(heard), all.iter().map(|call| call.id.clone()).collect::<Vec<_>>());
    for (call, words) in &wrong {
        let said = result(heard, call.id.as_str());
        assert!(said.contains(words), "{}: {said}", call.id);
        let states = bench.log.states(call.id.as_str());
        assert!(!states.contains(&CallState::Executing) || *call.id.as_str() == *"absent", "{} ran", call.id);
        let end = if call.id.as_str() == "git" { CallState::Denied } else { CallState::Failed };
        assert_eq!(states.last(), Some(&end), "{}", call.id);
    }
    assert!(result(heard, "first").contains("right") && result(heard, "last").contains("right"));
}

async fn more_calls_than_a_reply_may_make() {
    let mut bench = Bench::new(&[]);
    let ids: Vec<String> = (0..70).map(|number| format!("c{number}")).collect();
    let all = ids.iter().map(|id| call(id, "list_files", json!({}))).collect();
    let told = Told::new([calls_of(all), says("done")]);
    bench.run(&told, auto()).await;
    let heard = &told.requests()[1];
    assert_eq!(answered(heard), ids.iter().map(CallId::new).collect::<Vec<_>>());
    for (place, id) in ids.iter().enumerate() {
        let refused = result(heard, id).starts_with("not run: one reply may make at most 64 calls");
        assert_eq!(refused, place >= 64, "{id}");
    }
}

/// Some servers count their calls anew in every reply. The log checks that no two calls have one
/// name.
async fn repeated_ids_get_names_of_their_own() {
    let list = |id| (id, "list_files", json!({}));
    let mut bench = Bench::new(&[]);
    let told = Told::new([
        calls([list("x"), list("x")]),
        calls([list("x"), list("x-t1-1")]),
        says("one"),
        calls([list("x"), list("x"), list("")]),
        calls([list("x"), list("x"), list("")]),
        says("two"),
    ]);
    let session = bench.start(&told, in_mode(journeyman_protocol::Mode::Edit));
    for text in ["one", "two"] {
        session.handle.send("do it").await.unwrap();
        assert_eq!(session.handle.wait_until_finished().await.unwrap().text, text);
    }
    assert_settled(&bench);
    let counts = told.requests().iter().map(|request| answered(request).len()).collect::<Vec<_>>();
    assert_eq!(counts, [0, 2, 2, 0, 3, 3]);
}

async fn a_tool_that_panics_costs_its_call_only() {
    let mut bench = Bench::new(&[("a.txt", "right\n")]).with_tool(Panics);
    let read = |id| (id, "read_file", json!({ "path": "a.txt" }));
    let told = Told::new([calls([read("c1"), ("c2", "panic", json!({})), read("c3")]), says("done")]);
    let report = bench.run(&told, auto()).await;
    assert_eq!(report.text, "done", "{}", report.summary);
    let heard = &told.requests()[1];
    assert_eq!(answered(heard), ["c1", "c2", "c3"].map(CallId::new));
    assert_eq!(result(heard, "c2"), "the call was cut off: the tool panicked");
    assert!(result(heard, "c1").contains("right") && result(heard, "c3").contains("right"));
}

/// Two write one file, one writes another: the latter meets the first, and the second comes after
/// the first.
async fn writers_of_one_file_take_turns_and_others_do_not_wait() {
    let (barrier, trail) = (Arc::new(Barrier::new(2)), Arc::new(std::sync::Mutex::new(Vec::new())));
    let (meeting, noted) = (Arc::clone(&barrier), Arc::clone(&trail));
    let writes = Does::reading("put", move |context, _| {
        let (meeting, noted) = (Arc::clone(&meeting), Arc::clone(&noted));
        async move {
            let who = context.call.to_string();
            noted.lock().unwrap().push(format!("{who} begins"));
            if who != "second" {
                meeting.wait().await;
            }
            noted.lock().unwrap().push(format!("{who} ends"));
            Ok(ToolOutput::text(who))
        }
    });
    let mut bench = Bench::new(&[]).with_tool(writes.writing());
    let put = |id, path: &str| (id, "put", json!({ "path": path }));
    let told = Told::new([
        calls([put("first", "a.txt"), put("second", "a.txt"), put("other", "b.txt")]),
        says("done"),
    ]);
    bench.run(&told, auto()).await;
    let steps = trail.lock().unwrap().clone();
    let place = |step: &str| steps.iter().position(|one| one == step).unwrap();
    assert!(place("other begins") < place("first ends"), "{steps:?}");
    assert!(place("first ends") < place("second begins"), "{steps:?}");
    assert_eq!(answered(&told.requests()[1]), ["first", "second", "other"].map(CallId::new));
}

async fn a_tool_that_says_nothing_has_the_settings_limit() {
    let slow = Does::reading("slow", |context, _| async move {
        context.cancel.cancelled().await;
        Err(ToolError::Cancelled)
    });
    let own =
        Does { name: "own", limit: Some(Duration::from_millis(2)), work: Arc::clone(&slow.work), ..slow };
    let slow = Does {
        work: Arc::clone(&own.work),
        ..Does::reading("slow", |_, _| async { Err(ToolError::Cancelled) })
    };
    let mut bench = Bench::new(&[("a.txt", "right\n")]).with_tool(slow).with_tool(own);
    let told = Told::new([
        calls([
            ("c1", "slow", json!({})),
            ("c2", "own", json!({})),
            ("c3", "read_file", json!({ "path": "a.txt" })),
        ]),
        says("done"),
    ]);
    // Long enough for a file to be read on a loaded machine.
    let settings =
        RunSettings { tool_timeout: Duration::from_millis(1500), checks: ChecksSetting::Off, ..auto() };
    let report = bench.run(&told, settings).await;
    assert_eq!(report.text, "done");
    let heard = &told.requests()[1];
    for (call, limit) in [("c1", "1500 ms"), ("c2", "2 ms")] {
        let text = result(heard, call);
        assert!(text.starts_with(&format!("ended at its time limit of {limit}")), "{text}");
        assert_eq!(bench.log.states(call).last(), Some(&CallState::Failed));
    }
    assert!(result(heard, "c3").contains("right"));
}

/// Ends when it is told to, or is ended.
async fn a_tool_that_does_not_listen_is_ended_all_the_same() {
    struct Gone(Arc<Barrier>);
    impl Drop for Gone {
        fn drop(&mut self) {
            let barrier = Arc::clone(&self.0);
            tokio::spawn(async move { barrier.wait().await });
        }
    }
    let limits = [Some(Duration::from_millis(1)), None];
    let runs = limits.map(|limit| async move {
        let ended = Arc::new(Barrier::new(2));
        let held = Arc::clone(&ended);
        let deaf = Does::reading("deaf", move |_, _| {
            let gone = Gone(Arc::clone(&held));
            async move {
                std::future::pending::<()>().await;
                drop(gone);
                Ok(ToolOutput::text("never"))
            }
        });
        let mut bench = Bench::new(&[]).with_tool(Does { limit, ..deaf });
        let told = Told::new([calls([("c1", "deaf", json!({}))]), says("done"), says("answered")]);
        let session = bench.start(&told, RunSettings { checks: ChecksSetting::Off, ..auto() });
        session.handle.send("do it").await.unwrap();
        if limit.is_none() {
            bench.log.executing("c1").await;
            session.handle.interrupt();
        }
        let report = session.handle.wait_until_finished().await.unwrap();
        let expected = if limit.is_none() { RunOutcome::Interrupted } else { RunOutcome::Unverified };
        assert_eq!(report.outcome, expected, "{}", report.summary);
        // Its work is gone, not only forgotten.
        ended.wait().await;
        session.handle.send("and this").await.unwrap();
        session.handle.wait_until_finished().await.unwrap();
        let text = result(told.requests().last().unwrap(), "c1");
        assert!(text.contains("did not end when it was told to"), "{text}");
        assert_settled(&bench);
    });
    futures_util::future::join_all(runs).await;
}

async fn a_call_that_is_ended_names_what_it_left_and_what_was_moved_away() {
    let deaf = Does::reading("deaf", |context, _| async move {
        let root = context.workspace.root().to_owned();
        std::fs::write(root.join("a.txt"), "a person's").unwrap();
        let before =
            context.workspace.command_observer().begin_call(&context.session, &context.call).unwrap();
        GuardedState::capture_for_recovery(&context.workspace, &before, GUARD_RULES).unwrap();
        for path in ["b.txt", ".envrc"] {
            std::fs::write(root.join(path), "the call's").unwrap();
        }
        std::future::pending::<()>().await;
        drop(before);
        Ok(ToolOutput::text("never"))
    });
    let deaf = Does { limit: Some(Duration::from_millis(1)), ..deaf.writing() };
    let mut bench = Bench::new(&[("a.txt", "a\n"), ("b.txt", "b\n")]).with_tool(deaf);
    let told = Told::new([calls([("c1", "deaf", json!({}))]), says("done")]);
    let report = bench.run(&told, RunSettings { checks: ChecksSetting::Off, ..auto() }).await;
    let text = result(told.requests().last().unwrap(), "c1");
    for part in [
        "a.txt differs and was left as it is: it was changed before the command began; kept.",
        "Also, .envrc was made and moved to ",
        "A command may not create repositories",
    ] {
        assert!(text.contains(part), "{text}");
    }
    assert_eq!((bench.file("b.txt").as_deref(), bench.file(".envrc")), (Some("b\n"), None));
    assert!(report.summary.contains("a command did what it may not: .envrc was made"), "{}", report.summary);
}

async fn a_tool_tells_of_its_own_events() {
    let tells = Does::reading("tells", |context, _| async move {
        (context.emit)("progress", json!({ "done": 3, "of": 7 }));
        (context.emit)("finished", json!(null));
        Ok(ToolOutput::text("told"))
    });
    let mut bench = Bench::new(&[]).with_tool(tells);
    let mut session = bench.start(&Told::new([calls([("c1", "tells", json!({}))]), says("done")]), auto());
    session.handle.send("do it").await.unwrap();
    let event = session.until(|event| matches!(event, Event::ToolCustomEvent { .. })).await;
    let (call, tool, kind) = (CallId::new("c1"), "tells".to_owned(), "progress".to_owned());
    assert_eq!(event, Event::ToolCustomEvent { call, tool, kind, data: json!({ "done": 3, "of": 7 }) });
    session.done().await;
    let kept =
        bench.log.events().iter().filter(|event| matches!(event, Event::ToolCustomEvent { .. })).count();
    assert_eq!(kept, 2);
}
