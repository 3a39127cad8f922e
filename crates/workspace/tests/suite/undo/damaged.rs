//! Undo with damaged contents and a damaged journal.

use std::fs;

use journeyman_workspace::UndoTarget;

use crate::support::{Project, apply, session, set, shown, write};
use crate::undo::undo;

/// The files of the blobs.
fn blobs(project: &Project) -> Vec<std::path::PathBuf> {
    let fan_out = fs::read_dir(project.dir.path().join("blobs")).unwrap().map(|dir| dir.unwrap().path());
    let files = fan_out.filter(|dir| dir.is_dir()).flat_map(|dir| fs::read_dir(dir).unwrap());
    files.map(|file| file.unwrap().path()).collect()
}

#[test]
fn a_damaged_earlier_content_costs_its_file_alone() {
    let project = Project::with(&[("bad", "one content"), ("empty", "another one"), ("good", "a third")]);
    let workspace = project.open();
    apply(&workspace, vec![write("bad", "2"), write("empty", "2"), write("good", "2"), write("new", "n")])
        .unwrap();
    let file = |content: &str| {
        let hash = journeyman_protocol::ContentHash::of(content.as_bytes()).to_string();
        blobs(&project).into_iter().find(|path| path.ends_with(&hash[2..])).unwrap()
    };
    fs::write(file("one content"), b"\0one kontent").unwrap();
    fs::write(file("another one"), b"").unwrap();
    let report = undo(&project.open());
    assert_eq!(shown(&report.restored), "~good -new");
    let reasons: Vec<String> = report.conflicts.iter().map(|(path, why)| format!("{path}: {why}")).collect();
    assert_eq!(
        reasons,
        [
            "bad: its earlier content is damaged; kept as it is",
            "empty: its earlier content isn't kept any more",
        ]
    );
    assert_eq!((project.text("bad"), project.text("good")), ("2".into(), "a third".into()));
    // The same content put again heals it, and the undo of what was left goes on.
    project.write("other", "one content");
    project.open().checkpoint(&session(2), "again").unwrap();
    assert_eq!(shown(&undo(&project.open()).restored), "~bad");
    assert_eq!(project.text("bad"), "one content");
}

#[test]
fn an_edit_never_relies_on_a_damaged_earlier_content() {
    let project = Project::with(&[("a", "one content")]);
    project.open().checkpoint(&session(1), "before").unwrap();
    for path in blobs(&project) {
        let mut bytes = fs::read(&path).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        fs::write(&path, bytes).unwrap();
    }
    let workspace = project.open();
    apply(&workspace, vec![write("a", "2")]).unwrap();
    assert_eq!(shown(&undo(&workspace).restored), "~a");
    assert_eq!(project.text("a"), "one content");
}

/// Changes a byte in the middle of the journal's line with this number.
fn damage_line(project: &Project, line: usize) {
    let path = project.state().join("journal/log");
    let mut bytes = fs::read(&path).unwrap();
    let (start, text) = bytes.split_inclusive(|byte| *byte == b'\n').enumerate().fold(
        (0, 0),
        |(start, length), (number, text)| match number.cmp(&line) {
            std::cmp::Ordering::Less => (start + text.len(), length),
            std::cmp::Ordering::Equal => (start, text.len()),
            std::cmp::Ordering::Greater => (start, length),
        },
    );
    bytes[start + text / 2] ^= 1;
    fs::write(&path, bytes).unwrap();
}

#[test]
fn damaged_journal_lines_are_told_and_cost_what_they_recorded() {
    let run = |number, path: &str, content: &str| {
        let changes = vec![write(path, content)];
        journeyman_workspace::ChangeSet { session: session(number), ..set(number, changes) }
    };
    // Lines: checkpoint 0; changes at 1 to 3 and 4 to 6 (change, placed, done).
    for (line, restored) in [(1, "-b"), (2, "-a -b"), (3, "-a -b"), (4, "-a"), (5, "-a -b")] {
        let project = Project::with(&[("x", "1")]);
        let workspace = project.open();
        workspace.checkpoint(&session(1), "before the run").unwrap();
        workspace.apply(run(1, "a", "1")).unwrap();
        workspace.apply(run(1, "b", "1")).unwrap();
        drop(workspace);
        damage_line(&project, line);
        let report = undo(&project.open());
        assert_eq!((shown(&report.restored).as_str(), report.damaged), (restored, true), "line {line}");
        // A session that has nothing to do with it hears nothing of it.
        let workspace = project.open();
        workspace.checkpoint(&session(9), "before the run").unwrap();
        workspace.apply(run(9, "c", "1")).unwrap();
        workspace.apply(run(9, "d", "1")).unwrap();
        let report = undo(&workspace);
        assert_eq!((shown(&report.restored).as_str(), report.damaged), ("-c -d", false), "line {line}");
    }
}

#[test]
fn no_other_run_is_taken_back_in_place_of_one_whose_record_is_damaged() {
    let project = Project::with(&[("x", "1")]);
    let workspace = project.open();
    let mut begun = Vec::new();
    for (number, path) in [(1, "a"), (2, "b")] {
        begun.push(workspace.checkpoint(&session(number), "before the run").unwrap());
        let changes = set(number, vec![write(path, "1")]);
        workspace.apply(journeyman_workspace::ChangeSet { session: session(number), ..changes }).unwrap();
    }
    drop(workspace);
    // The second run's change.
    damage_line(&project, 5);
    let workspace = project.open();
    let refused = |target| workspace.undo(target).unwrap_err().to_string();
    assert!(refused(UndoTarget::LastRun).contains("the newest changes aren't known"));
    assert!(refused(UndoTarget::Session(session(2))).contains("nothing else of session"));
    assert!(refused(UndoTarget::To(begun[1])).contains("damaged"));
    let report = workspace.undo(UndoTarget::Session(session(1))).unwrap();
    assert_eq!((shown(&report.restored).as_str(), report.damaged), ("-a", false));
    assert!(project.root().join("b").exists());
}
