//! Clocks that are wrong, coarse, or stand still.

use std::fs::{self, File, FileTimes};
use std::path::Path;
use std::time::{Duration, SystemTime};

use journeyman_workspace::UndoTarget;

use crate::support::{Project, session, shown};

fn set_times(path: &Path, time: SystemTime) {
    let times = FileTimes::new().set_accessed(time).set_modified(time);
    File::options().write(true).open(path).unwrap().set_times(times).unwrap();
}

fn times() -> Vec<(&'static str, SystemTime)> {
    let year = Duration::from_secs(365 * 24 * 3600);
    let mut times = vec![
        ("1970", SystemTime::UNIX_EPOCH),
        ("before 1970", SystemTime::UNIX_EPOCH - 30 * year),
        ("in ten years", SystemTime::now() + 10 * year),
        ("in 2200", SystemTime::UNIX_EPOCH + 230 * year),
        ("whole seconds", SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000)),
        ("now", SystemTime::now()),
    ];
    for (name, seconds) in [("beyond nanoseconds", 1_u64 << 40), ("far beyond", 1 << 55)] {
        if let Some(time) = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds)) {
            times.push((name, time));
        }
    }
    times
}

/// A change of the same size, with the modification time put back to what it was: never missed,
/// whatever the time.
#[test]
fn a_change_under_any_time_is_seen() {
    for (name, time) in times() {
        let project = Project::with(&[("file", "one"), ("still", "still")]);
        let (file, still) = (project.root().join("file"), project.root().join("still"));
        let workspace = project.open();
        set_times(&file, time);
        set_times(&still, time);
        let before = project.tree();
        let checkpoint = workspace.checkpoint(&session(1), "c").unwrap();
        for round in 0..20 {
            let begun = workspace.command_observer().begin().unwrap();
            fs::write(&file, if round % 2 == 0 { "two" } else { "one" }).unwrap();
            set_times(&file, time);
            let changed = workspace.command_observer().end(begun, &session(1), None).unwrap();
            assert_eq!(shown(&changed), "~file", "{name}, round {round}");
        }
        let begun = workspace.command_observer().begin().unwrap();
        fs::write(&file, "two").unwrap();
        set_times(&file, time);
        workspace.command_observer().end(begun, &session(1), None).unwrap();
        assert_eq!(shown(&workspace.history().changes_since(&checkpoint).unwrap()), "~file", "{name}");
        // The cache of an earlier process says nothing wrong either.
        assert_eq!(shown(&project.open().history().changes_since(&checkpoint).unwrap()), "~file", "{name}");
        assert_eq!(workspace.undo(UndoTarget::LastRun).unwrap().conflicts, vec![], "{name}");
        assert_eq!(project.tree(), before, "{name}");
    }
}

/// Two files of the same size and time change names: each has the other's signature but for the
/// inode.
#[test]
fn files_that_change_names_within_a_tick_are_seen() {
    let project = Project::with(&[("one", "111"), ("two", "222")]);
    let root = project.root();
    let workspace = project.open();
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000);
    set_times(&root.join("one"), time);
    set_times(&root.join("two"), time);
    for round in 0..50 {
        let begun = workspace.command_observer().begin().unwrap();
        fs::rename(root.join("one"), root.join("three")).unwrap();
        fs::rename(root.join("two"), root.join("one")).unwrap();
        fs::rename(root.join("three"), root.join("two")).unwrap();
        let changed = workspace.command_observer().end(begun, &session(1), None).unwrap();
        assert_eq!(shown(&changed), "~one ~two", "round {round}");
    }
}
