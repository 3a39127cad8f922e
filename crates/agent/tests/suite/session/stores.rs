//! The same session over each log, and what is left in it.

use std::sync::Arc;

use journeyman_agent::{ChecksSetting, RunSettings, State};
use journeyman_protocol::{Message, Seq};
use journeyman_store::{Entry, MemoryStore, SqliteStore, Store};
use serde_json::json;

use crate::session::support::bench::{Bench, auto};
use crate::session::support::log::Failing;
use crate::session::support::model::{Told, calls, says};

cases![a_log_on_disk_holds_what_one_in_memory_does, a_scripted_model_drives_a_session];

const DATABASE: &str = "sessions.db";

fn settings() -> RunSettings {
    RunSettings { checks: ChecksSetting::Off, ..auto() }
}

/// Takes two tasks; gives the log, read back, what the model was told last, and the state that a
/// restart finds.
async fn two_tasks(
    mut bench: Bench,
    read_back: impl FnOnce(&Bench) -> Arc<dyn Store>,
) -> (Vec<Entry>, Vec<Message>, State) {
    let told = Told::new([
        calls([
            ("c1", "write_file", json!({ "path": "a.txt", "content": "a\n" })),
            ("c2", "read_file", json!({ "path": "a.txt" })),
        ]),
        says("one"),
        says("two"),
    ]);
    let session = bench.start(&told, settings());
    for task in ["first", "second"] {
        session.handle.send(task).await.unwrap();
        session.handle.wait_until_finished().await.unwrap();
    }
    let store = read_back(&bench);
    let sessions = store.sessions(None, 10).await.unwrap();
    let [summary] = sessions.as_slice() else { panic!("{sessions:?}") };
    assert_eq!(
        (summary.title.as_str(), summary.status.as_str(), summary.root.as_str()),
        ("first", "unverified", bench.root.to_str().unwrap())
    );
    let entries = store.read(session.handle.id(), Seq::START, 10_000).await.unwrap();
    assert_eq!(entries, bench.log.entries());
    let state = State::load(&*store, session.handle.id()).await.unwrap();
    (entries, told.requests().pop().unwrap().messages, state)
}

/// What differs from run to run: times, and the place of the project.
fn comparable(entries: &[Entry]) -> Vec<(Seq, String)> {
    entries.iter().map(|entry| (entry.seq, entry.kind.clone())).collect()
}

async fn a_log_on_disk_holds_what_one_in_memory_does() {
    let in_memory = Bench::new(&[]);
    let (remembered, _, in_memory) =
        two_tasks(in_memory, |bench| Arc::clone(&bench.log) as Arc<dyn Store>).await;

    let open = |directory: &std::path::Path| -> Arc<dyn Store> {
        Arc::new(SqliteStore::open(&directory.join(DATABASE)).unwrap())
    };
    let on_disk = Bench::with_log(&[], open, Failing::Never);
    let (kept, told, state) = two_tasks(on_disk, |bench| open(&bench.outside)).await;

    assert_eq!(comparable(&kept), comparable(&remembered));
    // The transcript is a fold over the log: what the model was told last, and its answer.
    assert_eq!(state, State { seen: state.seen.clone(), ..in_memory });
    let folded = state.messages;
    assert_eq!(folded[..folded.len() - 1], told);
    assert_eq!(folded.last().unwrap(), &Message::assistant_text("two"));
}

async fn a_scripted_model_drives_a_session() {
    let script = r#"{"replies": [
        {"text": "Looking.", "calls": [{"name": "read_file", "input": {"path": "a.txt"}}]},
        {"expect": "the very text", "calls": [
            {"name": "edit_file", "input": {"path": "a.txt", "search": "very", "replace": "new"}}]},
        {"text": "Edited."}
    ]}"#;
    let model = Arc::new(journeyman_model::ScriptedModel::parse(script).unwrap());
    let mut bench =
        Bench::with_log(&[("a.txt", "the very text\n")], |_| Arc::new(MemoryStore::new()), Failing::Never);
    let report = bench.run(&model, settings()).await;
    assert_eq!((report.text.as_str(), model.remaining()), ("Edited.", 0), "{}", report.summary);
    assert_eq!(bench.file("a.txt").as_deref(), Some("the new text\n"));
}
