//! Several questions at once, and who answers them.

use std::collections::BTreeSet;
use std::time::Duration;

use journeyman_agent::{Approver, ChecksSetting, CutOffPolicy, PermissionAnswer, RunSettings};
use journeyman_protocol::{AgentState, CallId, CallState, Event, Mode, RunOutcome};
use serde_json::json;

use crate::session::support::bench::{Bench, Session, assert_settled, in_mode};
use crate::session::support::model::{Step, Told, call, calls, calls_of, result, says};

cases![
    several_are_answered_in_any_order,
    one_rule_answers_its_like_and_no_other,
    a_note_reaches_the_model,
    nobody_answers_in_time,
    the_first_answer_wins,
    answers_before_a_crash_hold_after_it,
    a_question_withdrawn_by_an_interrupt_stays_so,
];

fn settings() -> RunSettings {
    RunSettings { approver: Approver::Handle, checks: ChecksSetting::Off, todos: None, ..in_mode(Mode::Ask) }
}

/// Writes of files that are named after their calls.
fn writes(ids: &[&str]) -> Step {
    let write = |id: &&str| call(id, "write_file", json!({ "path": format!("{id}.txt"), "content": id }));
    calls_of(ids.iter().map(write).collect())
}

/// Waits until so many questions are open.
async fn asked(session: &Session, count: usize) {
    session.handle.watch_status().wait_for(|status| status.asked.len() == count).await.unwrap();
}

fn permutations(items: &[&'static str]) -> Vec<Vec<&'static str>> {
    if items.len() < 2 {
        return vec![items.to_vec()];
    }
    let mut all = Vec::new();
    for (place, first) in items.iter().enumerate() {
        let mut rest = items.to_vec();
        rest.remove(place);
        all.extend(permutations(&rest).into_iter().map(|rest| [vec![*first], rest].concat()));
    }
    all
}

async fn several_are_answered_in_any_order() {
    let ids = ["c1", "c2", "c3", "c4"];
    for (number, order) in permutations(&ids).into_iter().enumerate() {
        let mut bench = Bench::new(&[]);
        let told = Told::new([writes(&ids), says("done")]);
        let session = bench.start(&told, settings());
        session.handle.send("do it").await.unwrap();
        asked(&session, 4).await;
        let status = session.handle.status();
        assert_eq!(status.asked, ids.map(CallId::new), "in the order in which they were asked for");
        assert_eq!(status.state, AgentState::Paused);
        let denied = ids[number % 4];
        for id in order {
            let answer = if id == denied { PermissionAnswer::deny() } else { PermissionAnswer::allow() };
            assert!(session.handle.decide(&CallId::new(id), answer));
            // Nothing has happened while one is open.
            tokio::task::yield_now().await;
        }
        assert_eq!(session.handle.wait_until_finished().await.unwrap().text, "done");
        for id in ids {
            assert_eq!(bench.file(&format!("{id}.txt")).is_some(), id != denied, "{id}");
        }
        let heard = &told.requests()[1];
        assert!(result(heard, denied).starts_with("denied by the user"));
        assert_settled(&bench);
    }
}

async fn one_rule_answers_its_like_and_no_other() {
    let mut bench = Bench::new(&[]);
    let write = |id, path: &str| (id, "write_file", json!({ "path": path, "content": id }));
    let told = Told::new([
        calls([write("c1", "a.txt"), write("c2", "a.txt"), write("c3", "b.txt"), write("c4", "a.txt")]),
        calls([write("c5", "a.txt")]),
        says("done"),
    ]);
    let mut session = bench.start(&told, settings());
    session.handle.send("do it").await.unwrap();
    asked(&session, 4).await;
    let mut rules = BTreeSet::new();
    for _ in 0..4 {
        let event = session.until(|event| matches!(event, Event::PermissionRequired { .. })).await;
        let Event::PermissionRequired { rule, .. } = event else { unreachable!() };
        rules.insert(rule.expect("a rule is shown before anybody saves it"));
    }
    let rules: Vec<String> = rules.into_iter().collect();
    let rule = |path: &str| {
        format!("[[rule]]\ntools = [\"write_file\"]\npaths = [\"{path}\"]\ndecision = \"allow\"\n")
    };
    assert_eq!(rules, [rule("a.txt"), rule("b.txt")]);
    assert!(session.handle.decide(&CallId::new("c2"), PermissionAnswer::allow_rule()));
    asked(&session, 1).await;
    assert_eq!(session.handle.status().asked, [CallId::new("c3")]);
    assert!(!session.handle.decide(&CallId::new("c1"), PermissionAnswer::deny()), "it is answered");
    assert!(session.handle.decide(&CallId::new("c3"), PermissionAnswer::deny()));
    // What comes later is covered too.
    assert_eq!(session.handle.wait_until_finished().await.unwrap().text, "done");
    assert_eq!(bench.file("a.txt").as_deref(), Some("c5"), "{}", told.heard());
    assert_eq!(bench.file("b.txt"), None);
    assert_eq!(bench.state().await.allowed, [rule("a.txt")]);
}

async fn a_note_reaches_the_model() {
    let mut bench = Bench::new(&[]);
    let told = Told::new([writes(&["c1", "c2", "c3"]), says("done")]);
    let session = bench.start(&told, settings());
    session.handle.send("do it").await.unwrap();
    asked(&session, 3).await;
    let note = |text: &str| Some(text.to_owned());
    assert!(
        session.handle.decide(&CallId::new("c1"), PermissionAnswer::Allow { note: note("only this once") })
    );
    assert!(
        session.handle.decide(&CallId::new("c2"), PermissionAnswer::Deny { note: note("never that one") })
    );
    assert!(
        session
            .handle
            .decide(&CallId::new("c3"), PermissionAnswer::AllowRule { note: note("whenever you like") })
    );
    session.handle.wait_until_finished().await.unwrap();
    let heard = &told.requests()[1];
    for (id, words) in [("c1", "only this once"), ("c2", "never that one"), ("c3", "whenever you like")] {
        assert!(result(heard, id).contains(words), "{}", result(heard, id));
    }
    let notes: Vec<String> = bench
        .log
        .events()
        .into_iter()
        .filter_map(|event| match event {
            Event::PermissionDecided { note, .. } => note,
            _ => None,
        })
        .collect();
    assert_eq!(notes, ["only this once", "never that one", "whenever you like"]);
}

async fn nobody_answers_in_time() {
    let mut bench = Bench::new(&[]);
    let told = Told::new([writes(&["c1", "c2"]), says("then not")]);
    let settings = RunSettings { approval_timeout: Some(Duration::from_millis(1)), ..settings() };
    let session = bench.start(&told, settings);
    session.handle.send("do it").await.unwrap();
    let report = session.handle.wait_until_finished().await.unwrap();
    assert_eq!((report.text.as_str(), report.changes.len()), ("then not", 0));
    for id in ["c1", "c2"] {
        let text = result(&told.requests()[1], id);
        assert!(text.starts_with("denied: nobody answered within"), "{text}");
        assert_eq!(bench.log.states(id).last(), Some(&CallState::Denied));
        assert!(!session.handle.decide(&CallId::new(id), PermissionAnswer::allow()), "too late");
    }
    let by = |event: &Event| matches!(event, Event::PermissionDecided { by, .. } if by == "timeout");
    assert_eq!(bench.log.events().iter().filter(|event| by(event)).count(), 2);
}

async fn the_first_answer_wins() {
    let mut bench = Bench::new(&[]);
    let told = Told::new([writes(&["c1"]), says("done")]);
    let session = bench.start(&told, settings());
    session.handle.send("do it").await.unwrap();
    asked(&session, 1).await;
    let surfaces: Vec<_> = (0..8)
        .map(|number| {
            let handle = session.handle.clone();
            std::thread::spawn(move || {
                let answer =
                    if number % 2 == 0 { PermissionAnswer::allow() } else { PermissionAnswer::deny() };
                handle.decide_as(&CallId::new("c1"), answer, &format!("surface {number}")).then_some(number)
            })
        })
        .collect();
    let won: Vec<i32> = surfaces.into_iter().filter_map(|surface| surface.join().unwrap()).collect();
    let [winner] = won.as_slice() else { panic!("{won:?} answered") };
    session.handle.wait_until_finished().await.unwrap();
    assert_eq!(bench.file("c1.txt").is_some(), winner % 2 == 0);
    let decided: Vec<String> = bench
        .log
        .events()
        .into_iter()
        .filter_map(|event| match event {
            Event::PermissionDecided { by, .. } => Some(by),
            _ => None,
        })
        .collect();
    assert_eq!(decided, [format!("surface {winner}")]);
}

/// Three are asked; one is allowed and one denied when the machine dies. Only the third is asked
/// again.
async fn answers_before_a_crash_hold_after_it() {
    let mut bench = Bench::new(&[]);
    let told = Told::new([writes(&["c1", "c2", "c3"]), says("done")]);
    let mut session = bench.start(&told, settings());
    session.handle.send("do it").await.unwrap();
    asked(&session, 3).await;
    let decided = |event: &Event| matches!(event, Event::PermissionDecided { .. });
    assert!(session.handle.decide(&CallId::new("c2"), PermissionAnswer::allow()));
    session.until(decided).await;
    let note = Some("not that one".to_owned());
    assert!(session.handle.decide(&CallId::new("c1"), PermissionAnswer::Deny { note }));
    session.until(decided).await;
    bench.crash().await;
    drop(session);
    let session = bench.resume(&told, settings(), CutOffPolicy::Continue).await.unwrap();
    asked(&session, 1).await;
    assert_eq!(session.handle.status().asked, [CallId::new("c3")]);
    assert!(session.handle.decide(&CallId::new("c3"), PermissionAnswer::allow()));
    assert_eq!(session.handle.wait_until_finished().await.unwrap().text, "done");
    let made = ["c1", "c2", "c3"].map(|id| bench.file(&format!("{id}.txt")).is_some());
    assert_eq!(made, [false, true, true]);
    assert_eq!(result(&told.requests()[1], "c1"), "denied by the user: not that one");
}

async fn a_question_withdrawn_by_an_interrupt_stays_so() {
    let mut bench = Bench::new(&[]);
    let told = Told::new([writes(&["c1", "c2"]), says("done")]);
    let session = bench.start(&told, settings());
    session.handle.send("do it").await.unwrap();
    asked(&session, 2).await;
    assert!(session.handle.decide(&CallId::new("c1"), PermissionAnswer::allow()));
    session.handle.interrupt();
    assert!(!session.handle.decide(&CallId::new("c2"), PermissionAnswer::allow()));
    assert_eq!(session.handle.wait_until_finished().await.unwrap().outcome, RunOutcome::Interrupted);
    assert_eq!((bench.file("c1.txt"), bench.file("c2.txt")), (None, None), "nothing runs after an interrupt");
    session.handle.send("go on").await.unwrap();
    assert_eq!(session.handle.wait_until_finished().await.unwrap().text, "done");
    assert_settled(&bench);
}
