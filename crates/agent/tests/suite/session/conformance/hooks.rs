//! What looks on and steps in.

use std::sync::{Arc, Mutex};

use journeyman_agent::hooks::{GateDecision, HooksBuilder, PreToolDecision};
use journeyman_agent::{ChecksSetting, CutOffPolicy, RunSettings};
use journeyman_protocol::{Block, CallState};
use serde_json::json;

use crate::session::support::bench::{Bench, auto};
use crate::session::support::model::{Told, calls, result, says};

cases![
    case_08_a_reply_that_a_hook_edits_is_returned_and_kept,
    case_09_hooks_fire_in_order_each_turn_and_after_resuming,
    case_10_the_first_hook_that_decides_stops_the_chain,
    case_11_hooks_change_results_one_after_the_other,
];

fn settings() -> RunSettings {
    RunSettings { checks: ChecksSetting::Off, ..auto() }
}

/// What ran, in order.
type Trail = Arc<Mutex<Vec<String>>>;

fn note(trail: &Trail, what: &str) {
    trail.lock().unwrap().push(what.to_owned());
}

async fn case_08_a_reply_that_a_hook_edits_is_returned_and_kept() {
    let hooks = HooksBuilder::new().on_post_model(|_, reply| {
        for block in &mut reply.content {
            if let Block::Text { text, .. } = block {
                *text = text.replace("colour", "color");
            }
        }
    });
    let mut bench = Bench::new(&[]).with_hooks(hooks.build());
    let told = Told::new([says("the colour"), says("again")]);
    let session = bench.start(&told, settings());
    session.handle.send("which?").await.unwrap();
    assert_eq!(session.handle.wait_until_finished().await.unwrap().text, "the color");
    assert_eq!(bench.state().await.messages[1].text(), "the color");
    session.handle.send("again").await.unwrap();
    session.handle.wait_until_finished().await.unwrap();
    assert_eq!(told.requests()[1].messages[1].text(), "the color");
}

async fn case_09_hooks_fire_in_order_each_turn_and_after_resuming() {
    let trail = Trail::default();
    let (before, after, appended) = (Arc::clone(&trail), Arc::clone(&trail), Arc::clone(&trail));
    let hooks = HooksBuilder::new()
        .on_pre_model(move |_, _| {
            note(&before, "pre_model");
            GateDecision::GO_WITHOUT_CONTEXT
        })
        .on_post_model(move |_, _| note(&after, "post_model"))
        .on_post_append(move |_, added| {
            assert!(!added.is_empty());
            note(&appended, "post_append");
        });
    let mut bench = Bench::new(&[]).with_hooks(hooks.build());
    let told = Told::new([calls([("c1", "list_files", json!({}))]), says("one"), says("two")]);
    let session = bench.start(&told, settings());
    session.handle.send("first").await.unwrap();
    session.handle.wait_until_finished().await.unwrap();
    let turn = ["pre_model", "post_model", "post_append"];
    assert_eq!(*trail.lock().unwrap(), turn.repeat(2));
    session.handle.close().await;
    let session = bench.resume(&told, settings(), CutOffPolicy::Continue).await.unwrap();
    session.handle.send("second").await.unwrap();
    assert_eq!(session.handle.wait_until_finished().await.unwrap().text, "two");
    assert_eq!(*trail.lock().unwrap(), turn.repeat(3));
}

async fn case_10_the_first_hook_that_decides_stops_the_chain() {
    let trail = Trail::default();
    let [one, two, three] = [0; 3].map(|_| Arc::clone(&trail));
    let hooks = HooksBuilder::new()
        .on_pre_tool(move |_, _, _| {
            note(&one, "one");
            PreToolDecision::Go
        })
        .on_pre_tool(move |_, call, _| {
            note(&two, "two");
            match call.input["path"].as_str() {
                Some("b.txt") => PreToolDecision::Deny { reason: "b.txt is mine".to_owned() },
                Some("c.txt") => PreToolDecision::Result { text: "as you know".to_owned(), is_error: false },
                _ => PreToolDecision::Go,
            }
        })
        .on_pre_tool(move |_, _, _| {
            note(&three, "three");
            PreToolDecision::Go
        });
    let mut bench = Bench::new(&[("a.txt", "right\n")]).with_hooks(hooks.build());
    let read = |id, path: &str| (id, "read_file", json!({ "path": path }));
    let told =
        Told::new([calls([read("c1", "a.txt"), read("c2", "b.txt"), read("c3", "c.txt")]), says("ok")]);
    bench.run(&told, settings()).await;
    assert_eq!(*trail.lock().unwrap(), ["one", "two", "three", "one", "two", "one", "two"]);
    let heard = &told.requests()[1];
    assert!(result(heard, "c1").contains("right"));
    assert_eq!(result(heard, "c2"), "denied by a hook: b.txt is mine");
    assert_eq!(result(heard, "c3"), "as you know");
    assert_eq!(bench.log.states("c2"), [CallState::Pending, CallState::Denied]);
    assert_eq!(bench.log.states("c3").last(), Some(&CallState::Completed));
}

async fn case_11_hooks_change_results_one_after_the_other() {
    let hooks = HooksBuilder::new()
        .on_post_tool(|_, _, result| {
            // An update: what there is stays.
            let text = result.text();
            result.set_text(format!("{text}and more"));
            Vec::<String>::new()
        })
        .on_post_tool(|_, call, result| {
            assert!(result.text().ends_with("and more"), "it sees what the first one made of it");
            if call.id.as_str() == "c2" {
                result.set_text("replaced");
                result.is_error = true;
            }
            vec![format!("a note on {}", call.id)]
        });
    let mut bench = Bench::new(&[("a.txt", "right\n")]).with_hooks(hooks.build());
    let read = |id| (id, "read_file", json!({ "path": "a.txt" }));
    let told = Told::new([calls([read("c1"), read("c2")]), says("ok")]);
    bench.run(&told, settings()).await;
    let heard = &told.requests()[1];
    let first = result(heard, "c1");
    assert!(first.contains("right") && first.ends_with("and more\na note on c1"), "{first}");
    assert_eq!(result(heard, "c2"), "replaced\na note on c2");
    assert_eq!(bench.log.states("c2").last(), Some(&CallState::Failed));
}
