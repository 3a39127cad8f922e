//! Calls: together or in order, each with exactly one result in its place.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use journeyman_model::ModelRequest;
use journeyman_protocol::{CallId, CallState, Outcome};
use serde_json::json;
use tokio::sync::Barrier;

use crate::support::bench::{Bench, assert_settled, auto, in_mode};
use crate::support::model::{Told, call, calls, calls_of, result, says};
use crate::support::tools::{Meet, Panics, Trail};
use crate::support::transcript::results;

cases![
    three_readers_run_at_once,
    never_more_than_three,
    writers_run_one_by_one_and_readers_between_them,
    every_call_has_one_result_in_its_place,
    more_calls_than_a_reply_may_make,
    repeated_ids_get_names_of_their_own,
    a_tool_that_panics_costs_its_call_only,
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
        (call("unknown", "read_fil", json!({})), "there is no tool «read_fil»; did you mean «read_file»?"),
        (malformed, "not run: the arguments are not valid JSON (EOF while parsing a string)."),
        (call("missing", "read_file", json!({})), "path"),
        (call("scalar", "read_file", json!(7)), "read_file takes"),
        (call("absent", "read_file", json!({ "path": "b.txt" })), "«b.txt» doesn't exist"),
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
    assert_eq!(report.outcome, Outcome::Unverified, "{}", report.summary);
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

/// Some servers count their calls anew in every reply. The log checks that no two calls have one name.
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
        assert_eq!(session.handle.finished().await.unwrap().text, text);
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
