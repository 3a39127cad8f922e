//! What a session finds by the index: what it wrote itself, and nothing that a rule keeps from it.

use std::sync::Arc;

use journeyman_agent::copies::Isolation;
use journeyman_agent::start;
use journeyman_workspace::Tier;
use serde_json::json;

use crate::support::bench::{Bench, auto, id};
use crate::support::model::{Told, calls, result, says};

cases![
    what_a_step_wrote_the_next_one_finds,
    what_a_rule_forbids_is_not_found,
    a_copy_is_searched_and_not_the_project
];

async fn what_a_step_wrote_the_next_one_finds() {
    let mut bench = Bench::new(&[("src/a.rs", "pub fn alpha() {}\n")]).unconfined();
    let name = |id| (id, "get_symbols", json!({"name": "gamma_ray"}));
    let write = |id, text: &str| (id, "write_file", json!({"path": "src/b.rs", "content": text}));
    let told = Told::new([
        calls([name("c1")]),
        calls([write("c2", "pub fn gamma_ray() {}\n")]),
        calls([name("c3")]),
        calls([(
            "c4",
            "edit_file",
            json!({"path": "src/b.rs", "search": "gamma_ray", "replace": "delta_ray"}),
        )]),
        calls([name("c5"), ("c6", "find_references", json!({"symbol": "delta_ray"}))]),
        says("done"),
    ]);
    bench.run(&told, auto()).await;
    let last = told.requests().pop().unwrap();
    assert!(result(&last, "c1").starts_with("Nothing is defined"), "{}", result(&last, "c1"));
    assert!(result(&last, "c3").starts_with("src/b.rs:1 function gamma_ray"), "{}", result(&last, "c3"));
    assert!(!result(&last, "c5").contains("gamma_ray (to"), "{}", result(&last, "c5"));
    assert!(result(&last, "c6").starts_with("defined: src/b.rs:1"), "{}", result(&last, "c6"));
}

async fn what_a_rule_forbids_is_not_found() {
    for decision in ["deny", "ask"] {
        let rules = format!("[[rule]]\npaths = ['vault/**']\ndecision = '{decision}'");
        let files = [("vault/door.rs", "pub fn open_door() {}\n"), ("src/a.rs", "fn a() { open_door(); }\n")];
        let mut bench = Bench::new(&files).with_rules(&rules).unconfined();
        let told = Told::new([
            calls([
                ("c1", "search_code", json!({"query": "open_door"})),
                ("c2", "get_symbols", json!({"name": "open_door"})),
                ("c3", "find_references", json!({"symbol": "open_door"})),
                ("c4", "search_text", json!({"pattern": "open_door"})),
            ]),
            says("done"),
        ]);
        bench.run(&told, auto()).await;
        let last = told.requests().pop().unwrap();
        for call in ["c1", "c2", "c3", "c4"] {
            let said = result(&last, call);
            assert!(!said.contains("vault") && !said.contains("pub fn"), "{decision} {call}: {said}");
        }
        assert!(result(&last, "c4").contains("src/a.rs\n1:fn a()"), "{}", result(&last, "c4"));
    }
}

async fn a_copy_is_searched_and_not_the_project() {
    let bench = Bench::new(&[("a.rs", "pub fn alpha() {}\n")]).unconfined();
    let isolation = Isolation {
        origin: Arc::clone(&bench.workspace),
        sandbox: Arc::clone(&bench.sandbox),
        git: None,
        tiers: vec![Tier::Copy],
    };
    let told = Told::new([
        calls([("c1", "write_file", json!({"path": "b.rs", "content": "pub fn only_here() {}\n"}))]),
        calls([("c2", "get_symbols", json!({"name": "only_here"}))]),
        says("done"),
    ]);
    let copy = isolation.enter(&id()).unwrap();
    let session = start(bench.parts(&told).within(copy), auto(), id());
    session.send("do it").await.unwrap();
    session.finished().await.unwrap();
    session.close().await;
    let last = told.requests().pop().unwrap();
    assert!(result(&last, "c2").starts_with("b.rs:1 function only_here"), "{}", result(&last, "c2"));
    assert!(!bench.root.join("b.rs").exists());
}
