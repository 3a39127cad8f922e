//! Freshness, the sandbox, edits, commands in the background, links. Through the session, as a
//! model gets to them.

use std::os::unix::fs::symlink;
use std::sync::{Arc, Mutex};

use journeyman_agent::hooks::HooksBuilder;
use journeyman_agent::{ChecksSetting, RunSettings};
use journeyman_model::ModelRequest;
use journeyman_protocol::{Block, CallState, Event};
use serde_json::{Value, json};

use crate::session::support::bench::{Bench, Session, auto, confined};
use crate::session::support::model::{Told, calls, result, says};
use crate::session::support::processes::{Marker, eventually};

cases![
    case_27_a_file_changed_outside_is_stale_and_a_write_refused,
    case_28_outside_is_refused_and_ruin_is_not_run,
    case_30_several_edits_are_all_or_nothing_and_searches_find,
    case_31_a_command_in_the_background_is_read_and_killed,
    case_39_links_to_outside_are_refused_and_odd_names_taken,
    case_40_replacements_are_literal_and_own_writes_no_surprise,
    case_41_a_notice_of_others_changes_only_and_once,
];

fn settings() -> RunSettings {
    RunSettings { checks: ChecksSetting::Off, todos: None, ..auto() }
}

async fn ask(session: &Session, text: &str) {
    session.handle.send(text).await.unwrap();
    session.handle.wait_until_finished().await.unwrap();
}

fn write(path: &str, content: &str) -> Value {
    json!({ "path": path, "content": content })
}

fn last(told: &Told) -> ModelRequest {
    told.requests().pop().unwrap()
}

async fn case_27_a_file_changed_outside_is_stale_and_a_write_refused() {
    let mut bench = Bench::new(&[("a.txt", "one\n"), ("b.txt", "one\n")]);
    let told = Told::new([
        calls([("read", "read_file", json!({ "path": "a.txt" }))]),
        calls([("fresh", "write_file", write("a.txt", "two\n"))]),
        says("written"),
        calls([("stale", "write_file", write("a.txt", "four\n"))]),
        calls([("unknown", "write_file", write("b.txt", "two\n"))]),
        says("done"),
    ]);
    let session = bench.start(&told, settings());
    ask(&session, "first").await;
    assert_eq!(bench.file("a.txt").as_deref(), Some("two\n"), "{}", result(&last(&told), "fresh"));
    std::fs::write(bench.root.join("a.txt"), "three\n").unwrap();
    ask(&session, "second").await;
    let heard = last(&told);
    let refused = result(&heard, "stale");
    assert!(refused.contains("three"), "it says what changed: {refused}");
    assert!(!result(&heard, "unknown").contains("Replaced"), "{}", result(&heard, "unknown"));
    assert_eq!(bench.file("a.txt").as_deref(), Some("three\n"));
    assert_eq!(bench.file("b.txt").as_deref(), Some("one\n"));
}

async fn case_28_outside_is_refused_and_ruin_is_not_run() {
    if !confined().await {
        return;
    }
    let mut bench = Bench::new(&[("a.txt", "one\n")]);
    std::fs::write(bench.outside.join("secret"), "nobody's business\n").unwrap();
    let run = |command: &str| json!({ "command": command });
    let told = Told::new([
        calls([
            ("outside", "read_file", json!({ "path": "../secret" })),
            ("safe", "run_command", run("echo fine")),
            ("ruin", "run_command", run("rm -rf /")),
            ("spelled", "run_command", run("rm -r -f /")),
            ("fails", "run_command", run("exit 3")),
        ]),
        says("done"),
    ]);
    let mut session = bench.start(&told, settings());
    session.handle.send("do it").await.unwrap();
    session.done().await;
    let heard = last(&told);
    assert!(result(&heard, "outside").contains("`..`"), "{}", result(&heard, "outside"));
    assert_eq!((is_error(&heard, "outside"), is_error(&heard, "safe")), (true, false));
    assert_eq!(result(&heard, "safe"), "exit code 0\nfine\n");
    assert!(result(&heard, "fails").contains("exit code 3"), "{}", result(&heard, "fails"));
    for ruin in ["ruin", "spelled"] {
        let said = result(&heard, ruin);
        assert!(said.starts_with("denied: ") && is_error(&heard, ruin), "{said}");
        assert!(!bench.log.states(ruin).contains(&CallState::Executing), "{ruin}");
        assert_eq!(bench.log.states(ruin).last(), Some(&CallState::Denied), "{ruin}");
    }
    assert_eq!(bench.file("a.txt").as_deref(), Some("one\n"));
    assert!(bench.outside.join("secret").exists());
}

/// True if the result of a call is an error.
fn is_error(request: &ModelRequest, id: &str) -> bool {
    let blocks = request.messages.iter().flat_map(|message| &message.content);
    let mut found = blocks.filter_map(|block| match block {
        Block::ToolResult { id: answers, is_error, .. } if answers.as_str() == id => Some(*is_error),
        _ => None,
    });
    found.next_back().unwrap()
}

async fn case_30_several_edits_are_all_or_nothing_and_searches_find() {
    let mut bench = Bench::new(&[
        ("a.txt", "x one x\n"),
        ("b.txt", "one\ntwo\n"),
        ("src/a.ts", "let a = 1;\n"),
        ("src/b.ts", "let b = 2;\n"),
        ("src/c.rs", "let c = 3;\n"),
    ]);
    let pair = |search: &str, replace: &str| json!({ "search": search, "replace": replace });
    let told = Told::new([
        calls([
            ("read", "read_file", json!({ "path": "a.txt" })),
            ("read b", "read_file", json!({ "path": "b.txt" })),
        ]),
        calls([
            (
                "all",
                "edit_file",
                json!({ "path": "a.txt", "search": "x", "replace": "y", "replace_all": true }),
            ),
            (
                "some",
                "edit_file",
                json!({ "path": "b.txt", "edits": [pair("one", "1"), pair("nowhere to be found", "2")] }),
            ),
            ("glob", "list_files", json!({ "glob": "*.ts" })),
            ("grep", "search_text", json!({ "pattern": "let", "path": "src" })),
        ]),
        says("done"),
    ]);
    let session = bench.start(&told, settings());
    ask(&session, "do it").await;
    let heard = last(&told);
    assert_eq!(bench.file("a.txt").as_deref(), Some("y one y\n"), "{}", result(&heard, "all"));
    let refused = result(&heard, "some");
    assert!(refused.contains("edit 2 (none was applied)"), "the edit that failed is named: {refused}");
    assert_eq!(bench.file("b.txt").as_deref(), Some("one\ntwo\n"), "all or nothing");
    let listed = result(&heard, "glob");
    assert!(listed.contains("a.ts") && listed.contains("b.ts") && !listed.contains("c.rs"), "{listed}");
    let found = result(&heard, "grep");
    assert!(["let a", "let b", "let c"].iter().all(|line| found.contains(line)), "{found}");
}

/// The id that a call's result names.
fn id_in(text: &str) -> String {
    let mut words = text.split_whitespace();
    let word = words.find(|word| word.strip_prefix('b').is_some_and(|number| number.parse::<u64>().is_ok()));
    word.unwrap_or_else(|| panic!("no id in {text}")).to_owned()
}

async fn case_31_a_command_in_the_background_is_read_and_killed() {
    if !confined().await {
        return;
    }
    let marker = Marker::new();
    let mut bench = Bench::new(&[]);
    let command = format!("echo up and running; {} & wait", marker.command());
    let begin = Told::new([
        calls([("begin", "run_command", json!({ "command": command, "background": true }))]),
        says("begun"),
    ]);
    let session = bench.start(&begin, settings());
    ask(&session, "begin").await;
    let id = id_in(&result(&last(&begin), "begin"));
    eventually("the command", || marker.alive() > 0).await;
    drop(session);
    eventually("the end of the session's command", || marker.alive() == 0).await;

    let mut bench = Bench::new(&[]);
    let told = Told::new([
        calls([("begin", "run_command", json!({ "command": command, "background": true }))]),
        calls([("read", "command_output", json!({ "id": id, "wait_s": 30 }))]),
        calls([("again", "command_output", json!({ "id": id }))]),
        calls([("kill", "stop_command", json!({ "id": id }))]),
        calls([("later", "command_output", json!({ "id": id }))]),
        calls([("kill again", "stop_command", json!({ "id": id }))]),
        calls([("never", "command_output", json!({ "id": "b99" }))]),
        says("done"),
    ]);
    let session = bench.start(&told, settings());
    ask(&session, "do it").await;
    let heard = last(&told);
    assert!(result(&heard, "read").contains("up and running"), "{}", result(&heard, "read"));
    assert!(result(&heard, "again").contains("no new output"), "{}", result(&heard, "again"));
    assert!(result(&heard, "kill").contains("ended"), "{}", result(&heard, "kill"));
    assert_eq!(marker.alive(), 0, "the whole tree has ended");
    // What was killed is over: its id gives no output, and can't be killed again. An id that never
    // was is not found.
    for call in ["later", "kill again"] {
        let said = format!("{id} ended: stopped, no new output\n");
        assert_eq!((result(&heard, call), is_error(&heard, call)), (said, true), "{call}");
    }
    let never = result(&heard, "never");
    assert!(
        never.starts_with("there is no background command `b99`") && is_error(&heard, "never"),
        "{never}"
    );
}

async fn case_39_links_to_outside_are_refused_and_odd_names_taken() {
    let mut bench = Bench::new(&[("..foo", "an odd name\n"), ("sub/x.txt", "inside\n")]);
    std::fs::write(bench.outside.join("secret"), "nobody's business\n").unwrap();
    std::fs::create_dir(bench.outside.join("dir")).unwrap();
    std::fs::write(bench.outside.join("dir/secret"), "nobody's business\n").unwrap();
    symlink(bench.outside.join("secret"), bench.root.join("link")).unwrap();
    symlink(bench.outside.join("dir"), bench.root.join("dirlink")).unwrap();
    let told = Told::new([
        calls([
            ("read", "read_file", json!({ "path": "link" })),
            ("through", "read_file", json!({ "path": "dirlink/secret" })),
            ("write", "write_file", write("link", "mine\n")),
            ("write through", "write_file", write("dirlink/new", "mine\n")),
            ("edit", "edit_file", json!({ "path": "link", "search": "business", "replace": "mine" })),
            ("delete through", "delete_file", json!({ "path": "dirlink/secret" })),
            ("grep", "search_text", json!({ "pattern": "business" })),
            ("grep in", "search_text", json!({ "pattern": "business", "path": "dirlink" })),
            ("odd", "read_file", json!({ "path": "..foo" })),
        ]),
        says("done"),
    ]);
    let session = bench.start(&told, settings());
    ask(&session, "do it").await;
    let heard = last(&told);
    for call in ["read", "through", "write", "write through", "edit", "delete through", "grep", "grep in"] {
        let text = result(&heard, call);
        assert!(!text.contains("nobody's"), "{call}: {text}");
        // A search of the whole project passes links by; everything that names one is refused.
        let refused = text.contains("leads out of the project through a link");
        assert_eq!((refused, is_error(&heard, call)), (call != "grep", call != "grep"), "{call}: {text}");
    }
    // Refused, and nothing put in the links' place.
    for link in ["link", "dirlink"] {
        assert!(bench.root.join(link).symlink_metadata().unwrap().is_symlink(), "{link}");
    }
    assert_eq!(std::fs::read_link(bench.root.join("link")).unwrap(), bench.outside.join("secret"));
    assert_eq!(std::fs::read_to_string(bench.outside.join("secret")).unwrap(), "nobody's business\n");
    assert_eq!(std::fs::read_to_string(bench.outside.join("dir/secret")).unwrap(), "nobody's business\n");
    assert!(!bench.outside.join("dir/new").exists());
    assert!(result(&heard, "odd").contains("an odd name"), "{}", result(&heard, "odd"));
}

async fn case_40_replacements_are_literal_and_own_writes_no_surprise() {
    let bench = Bench::new(&[("a.txt", "price\n")]);
    let edit = |search: &str, replace: &str| json!({ "path": "a.txt", "search": search, "replace": replace });
    let told = Told::new([
        calls([("read", "read_file", json!({ "path": "a.txt" }))]),
        calls([("literal", "edit_file", edit("price", "$& $1 $$ \\1 ${0}"))]),
        calls([("one", "write_file", write("a.txt", "one\n"))]),
        calls([("two", "write_file", write("a.txt", "two\n"))]),
        calls([("three", "edit_file", edit("two", "three"))]),
        says("done"),
    ]);
    // What is on disk after each call, as a hook finds it.
    let (root, seen) = (bench.root.clone(), Arc::<Mutex<Vec<String>>>::default());
    let on_disk = Arc::clone(&seen);
    let hooks = HooksBuilder::new().on_post_tool(move |_, _, _| {
        on_disk.lock().unwrap().push(std::fs::read_to_string(root.join("a.txt")).unwrap());
        Vec::new()
    });
    let mut bench = bench.with_hooks(hooks.build());
    let mut session = bench.start(&told, settings());
    session.handle.send("do it").await.unwrap();
    session.done().await;
    let literal = "$& $1 $$ \\1 ${0}\n";
    assert_eq!(*seen.lock().unwrap(), ["price\n", literal, "one\n", "two\n", "three\n"]);
    let heard = last(&told);
    assert!(result(&heard, "literal").contains(literal.trim_end()), "{}", result(&heard, "literal"));
    for call in ["literal", "one", "two", "three"] {
        assert!(!is_error(&heard, call), "{call}: {}", result(&heard, call));
    }
    assert_eq!(bench.file("a.txt").as_deref(), Some("three\n"), "{}", told.heard());
    let written = bench.log.events().iter().filter(|event| matches!(event, Event::FileEdited { .. })).count();
    assert_eq!(written, 4);
}

async fn case_41_a_notice_of_others_changes_only_and_once() {
    let mut bench = Bench::new(&[("a.txt", "one\n"), ("b.txt", "one\n")]);
    let list = |id| calls([(id, "list_files", json!({}))]);
    let told = Told::new([
        calls([
            ("r1", "read_file", json!({ "path": "a.txt" })),
            ("r2", "read_file", json!({ "path": "b.txt" })),
        ]),
        calls([("w1", "write_file", write("a.txt", "two\n"))]),
        list("l1"),
        says("one"),
        list("l2"),
        list("l3"),
        list("l4"),
        says("two"),
    ]);
    let mut session = bench.start(&told, settings());
    ask(&session, "first").await;
    let changed = |bench: &Bench| {
        let events = bench.log.events();
        events.iter().filter(|event| matches!(event, Event::FileChanged { .. })).count()
    };
    assert_eq!(changed(&bench), 0, "its own writes are no news");
    std::fs::write(bench.root.join("b.txt"), "two\n").unwrap();
    session.handle.send("second").await.unwrap();
    session.until(|event| matches!(event, Event::FileChanged { .. })).await;
    assert_eq!(session.handle.wait_until_finished().await.unwrap().text, "two");
    assert_eq!(changed(&bench), 1);
    let told_of = told.heard();
    let last = told_of.lines().last().unwrap();
    assert_eq!(last.matches("- b.txt (changed)").count(), 1, "{last}");
    assert!(!last.contains("- a.txt (changed)"));
}
