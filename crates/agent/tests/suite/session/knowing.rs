//! What a session finds by the index: what it wrote itself, and nothing that a rule keeps from it.

use std::sync::Arc;
use std::time::Duration;

use journeyman_agent::isolation::Isolation;
use journeyman_agent::{RunSettings, start};
use journeyman_workspace::IsolationTier;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::session::support::bench::{Bench, auto, id};
use crate::session::support::model::{Told, calls, result, says};

cases![
    what_a_step_wrote_the_next_one_finds,
    what_a_rule_forbids_is_not_found,
    a_copy_is_searched_and_not_the_project,
    the_first_prompt_has_what_an_index_finds,
    without_an_index_the_first_prompt_waits_for_none
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
        tiers: vec![IsolationTier::Copy],
        max_copied_files: usize::MAX,
    };
    let told = Told::new([
        calls([("c1", "write_file", json!({"path": "b.rs", "content": "pub fn only_here() {}\n"}))]),
        calls([("c2", "get_symbols", json!({"name": "only_here"}))]),
        says("done"),
    ]);
    let copy = isolation.open_or_create(&id()).unwrap();
    let session = start(bench.parts(&told).move_into_copy(copy), auto(), id());
    session.send("do it").await.unwrap();
    session.wait_until_finished().await.unwrap();
    session.close().await;
    let last = told.requests().pop().unwrap();
    assert!(result(&last, "c2").starts_with("b.rs:1 function only_here"), "{}", result(&last, "c2"));
    assert!(!bench.root.join("b.rs").exists());
}

/// A shop with so many other files that none of it is in a map of paths.
fn shop() -> Vec<(String, String)> {
    let other = |n: usize| (format!("pkg{}/mod{n}/x.py", n % 60), format!("def other_{n}():\n    pass\n"));
    let mut files: Vec<(String, String)> = (0..600).map(other).collect();
    let key = format!("ghp_{}", "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5");
    for (path, text) in [
        (
            "deep/in/till.py",
            "from .base import Ledger\n\n\ndef count_coins(drawer):\n    return Ledger()\n".to_owned(),
        ),
        ("deep/in/base.py", "class Ledger:\n    def add_entry(self, entry):\n        pass\n".to_owned()),
        ("deep/in/stale.py", "def coins_in_drawer(old_name):\n    pass\n".to_owned()),
        ("deep/in/keys.py", format!("KEY = '{key}'\n\n\ndef coins_key(drawer):\n    pass\n")),
        ("vault/coins.py", "def coins_in_vault(drawer):\n    pass\n".to_owned()),
    ] {
        files.push((path.to_owned(), text));
    }
    files
}

/// A project with an index that an earlier session left.
fn indexed(files: &[(String, String)]) -> Bench {
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let rules = "[[rule]]\npaths = ['vault/**']\ndecision = 'deny'";
    let bench = Bench::new(&files).with_rules(rules).unconfined();
    let index = bench.parts(&Told::new([])).index;
    // A first answer may be of a part of the files.
    let asked = loop {
        let asked = index.snapshot(&CancellationToken::new()).unwrap();
        if asked.note.is_empty() && !asked.snapshot.is_partial() {
            break asked;
        }
    };
    let graph = asked.project.graph(&asked.snapshot);
    assert_eq!(graph.len(), files.len());
    bench
}

/// What a session with an index, kept by an earlier one, is told first.
async fn first_message(bench: &mut Bench, settings: RunSettings) -> String {
    let told = Told::new([says("done")]);
    let session = bench.start(&told, settings);
    session.handle.send("coins in the drawer are counted twice").await.unwrap();
    session.handle.wait_until_finished().await.unwrap();
    let first = told.requests().remove(0);
    first.messages.iter().map(|message| format!("{message:?}")).collect()
}

async fn the_first_prompt_has_what_an_index_finds() {
    let mut bench = indexed(&shop());
    std::fs::write(bench.root.join("deep/in/stale.py"), "def coins_in_drawer(new_name):\n    pass\n")
        .unwrap();
    let patient = RunSettings { index_timeout: Some(Duration::from_secs(3_600)), ..auto() };
    let said = first_message(&mut bench, patient).await;
    let (_, outline) = said.split_once("<outline>").unwrap_or_else(|| panic!("{said}"));
    let outline = outline.split_once("</outline>").unwrap().0;
    assert!(outline.contains("deep/in/till.py\\n  def count_coins(drawer)\\n"), "{outline}");
    // What that depends on.
    assert!(outline.contains("deep/in/base.py\\n  class Ledger\\n"), "{outline}");
    // One that changed since, and one that had a secret in it, are named, and nothing in them is
    // told.
    assert!(outline.contains("deep/in/stale.py\\n") && outline.contains("deep/in/keys.py\\n"), "{outline}");
    for hidden in ["old_name", "new_name", "coins_key", "ghp_", "vault"] {
        assert!(!outline.contains(hidden), "{hidden}: {outline}");
    }
    // The map of paths opens what was found.
    assert!(said.contains("deep/in/ base.py keys.py stale.py till.py"), "{said}");
    // A recording has to play back where there is none.
    let taped = RunSettings { index_timeout: None, ..auto() };
    let said = first_message(&mut indexed(&shop()), taped).await;
    assert!(!said.contains("<outline>") && !said.contains("till.py"), "{said}");
}

async fn without_an_index_the_first_prompt_waits_for_none() {
    let mut bench = Bench::new(&[("src/till.py", "def count_coins(drawer):\n    pass\n")]).unconfined();
    let patient = RunSettings { index_timeout: Some(Duration::from_secs(3_600)), ..auto() };
    let said = first_message(&mut bench, patient).await;
    assert!(said.contains("src/ till.py") && !said.contains("<outline>"), "{said}");
    assert!(!bench.workspace.state_dir().join("index").exists());
}
