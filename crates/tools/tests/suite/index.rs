//! Tools see the session's own writes in the index, and never wait for all of a long build.

use crate::bench;

use std::num::NonZero;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use bench::Bench;
use journeyman_index::store::RefreshOptions;
use journeyman_index::{ProjectIndex, Snapshot};
use journeyman_protocol::RelPath;
use journeyman_tools::SharedIndex;

fn path(text: &str) -> RelPath {
    RelPath::parse(text).unwrap()
}

fn paths(snapshot: &Snapshot) -> Vec<String> {
    let mut paths: Vec<String> = snapshot.files().map(|(_, file)| file.path().unwrap().to_string()).collect();
    paths.sort();
    paths
}

fn defines(snapshot: &Snapshot, name: &str) -> usize {
    let mut count = 0;
    snapshot.visit_definitions(name, |_| count += 1);
    count
}

#[test]
fn nothing_is_made_before_somebody_asks() {
    let bench = Bench::new(&[("a.rs", b"fn alpha() {}\n")]);
    let directory = bench.context.workspace.state_dir().join("index");
    bench.context.index.refresh_early();
    bench.context.index.note_changed([&path("a.rs")]);
    assert!(!directory.exists());
    let asked = bench.context.index.snapshot(&bench.context.cancel).unwrap();
    assert_eq!((paths(&asked.snapshot), asked.note.as_str()), (vec!["a.rs".to_owned()], ""));
    assert!(directory.is_dir());
}

#[test]
fn what_the_session_wrote_is_in_the_next_answer() {
    let bench = Bench::new(&[("a.rs", b"fn alpha() {}\n"), ("gone.rs", b"fn gone() {}\n")]);
    let index = &bench.context.index;
    index.snapshot(&bench.context.cancel).unwrap();
    for round in 0..5 {
        let name = format!("fresh_{round}");
        std::fs::write(bench.root.join("a.rs"), format!("fn {name}() {{}}\n")).unwrap();
        index.note_changed([&path("a.rs")]);
        let asked = index.snapshot(&bench.context.cancel).unwrap();
        assert_eq!(defines(&asked.snapshot, &name), 1, "round {round}");
        assert_eq!(asked.note, "");
    }
    std::fs::remove_file(bench.root.join("gone.rs")).unwrap();
    index.note_changed([&path("gone.rs")]);
    assert_eq!(paths(&index.snapshot(&bench.context.cancel).unwrap().snapshot), ["a.rs"]);
    // A changed ignore file affects other files.
    std::fs::write(bench.root.join(".gitignore"), "a.rs\n").unwrap();
    index.note_changed([&path(".gitignore")]);
    assert_eq!(paths(&index.snapshot(&bench.context.cancel).unwrap().snapshot), [".gitignore"]);
    // More than is looked at one by one.
    let many: Vec<RelPath> = (0..600).map(|nth| path(&format!("m{nth}.rs"))).collect();
    for one in &many {
        std::fs::write(bench.root.join(one.to_string()), "fn many() {}\n").unwrap();
    }
    index.note_changed(&many);
    assert_eq!(defines(&index.snapshot(&bench.context.cancel).unwrap().snapshot, "many"), 600);
}

#[test]
fn what_came_into_doubt_is_looked_at_first() {
    let bench = Bench::new(&[("a.rs", b"fn alpha() {}\n")]);
    let index = &bench.context.index;
    index.snapshot(&bench.context.cancel).unwrap();
    std::fs::write(bench.root.join("b.rs"), "fn beta() {}\n").unwrap();
    index.note_unknown_changes();
    assert_eq!(paths(&index.snapshot(&bench.context.cancel).unwrap().snapshot), ["a.rs", "b.rs"]);
}

#[test]
fn while_another_process_writes_an_answer_says_what_it_lacks() {
    let bench = Bench::new(&[("a.rs", b"fn alpha() {}\n")]);
    let index = &bench.context.index;
    index.snapshot(&bench.context.cancel).unwrap();
    let directory = bench.context.workspace.state_dir().join("index");
    let lock = std::fs::File::options().write(true).open(directory.join("lock")).unwrap();
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).unwrap();
    std::fs::write(bench.root.join("a.rs"), "fn beta() {}\n").unwrap();
    index.note_changed([&path("a.rs")]);
    let asked = index.snapshot(&bench.context.cancel).unwrap();
    assert_eq!(asked.note, "[note: your changes of a.rs aren't in the index yet]\n");
    drop(lock);
    let asked = index.snapshot(&bench.context.cancel).unwrap();
    assert_eq!((defines(&asked.snapshot, "beta"), asked.note.as_str()), (1, ""));
}

#[test]
fn while_another_process_writes_what_came_into_doubt_stays_so() {
    let bench = Bench::new(&[("a.rs", b"fn alpha() {}\n")]);
    let index = &bench.context.index;
    index.snapshot(&bench.context.cancel).unwrap();
    let directory = bench.context.workspace.state_dir().join("index");
    let lock = std::fs::File::options().write(true).open(directory.join("lock")).unwrap();
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).unwrap();
    std::fs::write(bench.root.join("a.rs"), "fn beta() {}\n").unwrap();
    index.note_unknown_changes();
    for _ in 0..2 {
        let asked = index.snapshot(&bench.context.cancel).unwrap();
        let note =
            "[note: another process is writing the index: changes of the last moments may not be seen yet]\n";
        assert_eq!((asked.note.as_str(), asked.outdated), (note, true));
    }
    drop(lock);
    let asked = index.snapshot(&bench.context.cancel).unwrap();
    assert_eq!((defines(&asked.snapshot, "beta"), asked.note.as_str(), asked.outdated), (1, "", false));
}

#[test]
fn what_another_process_wrote_is_seen() {
    let bench = Bench::new(&[("a.rs", b"fn alpha() {}\n")]);
    let index = &bench.context.index;
    index.snapshot(&bench.context.cancel).unwrap();
    std::fs::write(bench.root.join("a.rs"), "fn beta() {}\n").unwrap();
    let directory = bench.context.workspace.state_dir().join("index");
    let other = ProjectIndex::open(&bench.root, &directory, 1).unwrap();
    let never = AtomicBool::new(false);
    let options =
        RefreshOptions { threads: NonZero::<usize>::MIN, wait: true, progress: &|_| {}, stop: &never };
    other.refresh(options).unwrap();
    assert_eq!(defines(&index.snapshot(&bench.context.cancel).unwrap().snapshot, "beta"), 1);
}

#[test]
fn what_is_at_hand_is_neither_made_nor_brought_up_to_date() {
    let bench = Bench::new(&[("a.rs", b"fn alpha() {}\n")]);
    let directory = bench.context.workspace.state_dir().join("index");
    assert!(bench.context.index.last_snapshot().is_none() && !directory.exists());
    bench.context.index.snapshot(&bench.context.cancel).unwrap();
    std::fs::write(bench.root.join("a.rs"), "fn beta() {}\n").unwrap();
    let again = SharedIndex::new(Arc::clone(&bench.context.workspace), Arc::default(), None);
    let (_, snapshot) = again.last_snapshot().unwrap();
    assert_eq!((defines(&snapshot, "alpha"), defines(&snapshot, "beta")), (1, 0));
    // A copy has what the project has.
    let copy = Bench::new(&[("a.rs", b"fn alpha() {}\n")]);
    let (_, snapshot) = again.for_copy(Arc::clone(&copy.context.workspace)).last_snapshot().unwrap();
    assert_eq!(defines(&snapshot, "alpha"), 1);
}

#[test]
fn a_copy_begins_as_the_project_and_has_its_own_files() {
    let bench = Bench::new(&[("a.rs", b"fn alpha() {}\n"), ("b.rs", b"fn beta() {}\n")]);
    let whole = bench.context.index.snapshot(&bench.context.cancel).unwrap();
    let copy = Bench::new(&[("a.rs", b"fn changed() {}\n"), ("b.rs", b"fn beta() {}\n")]);
    let index = bench.context.index.for_copy(Arc::clone(&copy.context.workspace));
    let asked = index.snapshot(&copy.context.cancel).unwrap();
    assert_eq!(["alpha", "changed", "beta"].map(|name| defines(&asked.snapshot, name)), [0, 1, 1]);
    // The segment of the project is still there, and its index as it was.
    let kept = asked.project.index().directory().read_dir().unwrap().count();
    assert!(kept >= 3, "{kept}");
    assert_eq!(defines(&bench.context.index.snapshot(&bench.context.cancel).unwrap().snapshot, "alpha"), 1);
    assert_eq!(defines(&whole.snapshot, "alpha"), 1);
}

#[test]
fn a_project_without_an_index_gets_the_one_that_a_copy_made() {
    let project = Bench::new(&[("a.rs", b"fn alpha() {}\n")]);
    let copy = Bench::new(&[("a.rs", b"fn changed() {}\n")]);
    let index = project.context.index.for_copy(Arc::clone(&copy.context.workspace));
    index.snapshot(&copy.context.cancel).unwrap();
    let (_, snapshot) = project.context.index.last_snapshot().unwrap();
    assert_eq!(defines(&snapshot, "changed"), 1);
    // The next look at the files finds what differs.
    let asked = project.context.index.snapshot(&project.context.cancel).unwrap();
    assert_eq!((defines(&asked.snapshot, "alpha"), defines(&asked.snapshot, "changed")), (1, 0));
}

#[test]
fn where_none_can_be_made_the_error_says_what_works_without() {
    let bench = Bench::new(&[("a.rs", b"fn alpha() {}\n")]);
    std::fs::create_dir_all(bench.context.workspace.state_dir()).unwrap();
    std::fs::write(bench.context.workspace.state_dir().join("index"), "in the way").unwrap();
    let error = bench.context.index.snapshot(&bench.context.cancel).unwrap_err().to_string();
    assert!(error.starts_with("the index can't be used: ") && error.contains("search_text"), "{error}");
}

#[test]
fn an_interrupted_call_does_not_wait() {
    let bench = Bench::new(&[("a.rs", b"fn alpha() {}\n")]);
    bench.context.cancel.cancel();
    let index = SharedIndex::new(Arc::clone(&bench.context.workspace), Arc::default(), None);
    let error = index.snapshot(&bench.context.cancel).unwrap_err().to_string();
    assert_eq!(error, "the call was interrupted");
}
