//! One holder a copy; what is left of it when its holder is gone; and what goes with it.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::Arc;

use journeyman_protocol::UnixMillis;
use journeyman_store::Blobs;
use journeyman_testkit::{rerun_test, skip, test_path};
use journeyman_workspace::{Clock, CopyInfo, IsolationTier, Options, UndoTarget, Workspace, WorkspaceError};

use crate::support::{Project, apply, is_ordinary_user, rel, session, set_mode, write};
use crate::trees::{Tools, age, facts, isolate, make_repository, project_with, run};

const CHILD: &str = "JM_ISOLATE_CHILD";

/// The process that is killed: makes a copy, changes it, says so, and waits.
#[test]
#[ignore = "started by other tests"]
fn holder_of_a_copy() {
    let place = PathBuf::from(std::env::var_os(CHILD).unwrap());
    let tier: IsolationTier =
        IsolationTier::ALL[std::env::var("JM_ISOLATE_TIER").unwrap().parse::<usize>().unwrap()];
    let blobs = Arc::new(Blobs::open(&place.join("blobs"), 1 << 30).unwrap());
    let root = place.join("tree");
    let tools = Tools::at(&root);
    let workspace = Workspace::open(&root, Options::new(place.join("state"), blobs)).unwrap();
    match workspace.copies().create(&session(1), &tools.means(&[tier])) {
        Ok(mut copy) => {
            copy.keep().unwrap();
            apply(copy.workspace(), vec![write("made", "by the one who was killed")]).unwrap();
            println!("ready");
            loop {
                std::thread::park();
            }
        }
        Err(error) => println!("no: {error}"),
    }
}

/// Starts it; `None` where this machine has no such tier.
fn holder(project: &Project, tier: IsolationTier) -> Option<Child> {
    let number = IsolationTier::ALL.iter().position(|other| *other == tier).unwrap();
    let mut child = rerun_test!("holder_of_a_copy")
        .env(CHILD, project.dir.path())
        .env("JM_ISOLATE_TIER", number.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let said = lines.find(|line| line.contains("ready") || line.contains("no: ")).unwrap();
    if said.ends_with("ready") {
        return Some(child);
    }
    child.wait().unwrap();
    skip(said);
    None
}

#[test]
fn a_copy_is_there_again_after_it_was_closed() {
    let project =
        project_with(&[("file", "first"), ("other", "x"), (".gitignore", "target\n"), ("target/a", "a")]);
    make_repository(&project, "file");
    let tools = Tools::of(&project);
    let workspace = project.open();
    for tier in IsolationTier::ALL {
        let Some(copy) = isolate(&workspace, &tools, tier) else { continue };
        apply(copy.workspace(), vec![write("file", "second"), write("new", "new")]).unwrap();
        let found = facts(&copy.workspace().access_path().join("."), &["target", ".git"]);
        let info = copy.info().clone();
        drop(copy);
        // In another process's eyes: nothing is known from before.
        let again = project.open().copies().open(&session(1), &tools.means(&IsolationTier::ALL)).unwrap();
        assert_eq!(*again.info(), info);
        let inside = again.workspace();
        assert_eq!(facts(&inside.access_path().join("."), &["target", ".git"]), found, "{tier}");
        assert_eq!(inside.root(), project.root());
        // Its journal too.
        let report = inside.undo(journeyman_workspace::UndoTarget::LastRun).unwrap();
        assert_eq!(report.restored.len(), 2, "{tier}");
        assert_eq!(run(&tools, inside, "cat file target/a"), "firsta", "{tier}");
        drop(again);
        project.open().copies().discard(&session(1)).unwrap();
        let gone = project.open().copies().open(&session(1), &tools.means(&IsolationTier::ALL)).unwrap_err();
        assert!(matches!(gone, WorkspaceError::UnknownCopy { .. }), "{gone}");
    }
    assert_eq!(project.text("file"), "first");
}

#[test]
fn a_copy_is_there_again_after_its_holder_was_killed() {
    for tier in [IsolationTier::Overlay, IsolationTier::Copy] {
        let project = project_with(&[("file", "first")]);
        let tools = Tools::of(&project);
        let Some(mut child) = holder(&project, tier) else { continue };
        let workspace = project.open();
        let held = workspace.copies().open(&session(1), &tools.means(&[tier])).unwrap_err();
        let pid = format!("pid {}", child.id());
        assert!(matches!(&held, WorkspaceError::Busy { holder, .. } if *holder == pid), "{held}");
        assert_eq!(workspace.copies().list().unwrap()[0].holder, Some(pid));
        child.kill().unwrap();
        child.wait().unwrap();
        let copy = workspace.copies().open(&session(1), &tools.means(&[tier])).unwrap();
        let inside = copy.workspace();
        assert_eq!(inside.read(&rel("made"), 99).unwrap().text(), Some("by the one who was killed"));
        assert_eq!(inside.read(&rel("file"), 99).unwrap().text(), Some("first"));
        assert_eq!(project.tree().len(), 1, "{tier}");
        drop(copy);
        workspace.copies().discard(&session(1)).unwrap();
    }
}

#[test]
fn nobody_else_opens_lands_or_discards_an_open_copy() {
    let project = Project::with(&[("file", "x")]);
    let tools = Tools::of(&project);
    let (ours, theirs) = (project.open(), project.open());
    let copy = isolate(&ours, &tools, IsolationTier::Copy).unwrap();
    let means = tools.means(&[IsolationTier::Copy]);
    let us = format!("pid {}", std::process::id());
    let refusals = [
        theirs.copies().open(&session(1), &means).unwrap_err(),
        theirs.copies().discard(&session(1)).unwrap_err(),
        theirs.copies().create(&session(1), &means).unwrap_err(),
    ];
    for refusal in refusals {
        assert!(matches!(&refusal, WorkspaceError::Busy { holder, .. } if *holder == us), "{refusal}");
    }
    assert_eq!(theirs.copies().list().unwrap(), [CopyInfo { holder: Some(us), ..copy.info().clone() }]);
    let info = copy.info().clone();
    drop(copy);
    assert_eq!(theirs.copies().list().unwrap(), [info]);
    theirs.copies().discard(&session(1)).unwrap();
    assert_eq!(ours.copies().list().unwrap(), []);
}

#[test]
fn a_session_has_one_copy() {
    let project = Project::with(&[("file", "x")]);
    let tools = Tools::of(&project);
    let workspace = project.open();
    let means = tools.means(&[IsolationTier::Copy]);
    workspace.copies().create(&session(1), &means).unwrap().keep().unwrap();
    let refusal = workspace.copies().create(&session(1), &means).unwrap_err();
    assert!(matches!(&refusal, WorkspaceError::CopyExists { session: it } if *it == session(1)), "{refusal}");
    assert_eq!(workspace.copies().list().unwrap().len(), 1);
    let unknown = workspace.copies().discard(&session(2)).unwrap_err();
    assert!(matches!(unknown, WorkspaceError::UnknownCopy { .. }), "{unknown}");
    assert_eq!(fs::read_dir(project.state().join("work")).unwrap().count(), 1);
}

#[test]
fn a_copy_that_was_never_kept_goes_when_nobody_has_it_open() {
    for tier in [IsolationTier::Overlay, IsolationTier::Copy] {
        let project = Project::with(&[("file", "x")]);
        let tools = Tools::of(&project);
        let workspace = project.open();
        let Ok(mut copy) = workspace.copies().create(&session(1), &tools.means(&[tier])) else {
            skip(format!("no {tier} here"));
            continue;
        };
        assert_eq!(project.open().copies().list().unwrap().len(), 1, "{tier}: it is open");
        drop(copy);
        assert_eq!(project.open().copies().list().unwrap(), [], "{tier}");
        assert_eq!(fs::read_dir(project.state().join("work")).unwrap().count(), 0, "{tier}");
        copy = workspace.copies().create(&session(1), &tools.means(&[tier])).unwrap();
        copy.keep().unwrap();
        drop(copy);
        assert_eq!(project.open().copies().list().unwrap().len(), 1, "{tier}: it was kept");
    }
}

#[test]
fn copies_are_listed_oldest_first() {
    let project = Project::with(&[("file", "x")]);
    let tools = Tools::of(&project);
    let mut expected = Vec::new();
    for (number, time) in [(3, 300), (1, 100), (2, 200)] {
        let clock = Clock::new(move || UnixMillis(time));
        let options = Options { clock: Some(clock), ..project.options() };
        let workspace = Workspace::open(&project.root(), options).unwrap();
        let mut copy =
            workspace.copies().create(&session(number), &tools.means(&[IsolationTier::Copy])).unwrap();
        copy.keep().unwrap();
        expected.push((copy.info().created, session(number)));
    }
    expected.sort();
    let found = project.open().copies().list().unwrap().into_iter();
    assert_eq!(found.map(|info| (info.created, info.session)).collect::<Vec<_>>(), expected);
}

#[test]
fn what_a_crash_left_half_made_is_swept() {
    let project = Project::with(&[("file", "x")]);
    let tools = Tools::of(&project);
    let workspace = project.open();
    let work = project.state().join("work");
    let half = work.join(session(1).as_str());
    let leave = || {
        fs::create_dir_all(half.join("tree/deep/er")).unwrap();
        fs::write(half.join("tree/deep/er/file"), "x").unwrap();
        fs::write(half.join("record.new"), "torn").unwrap();
        fs::create_dir_all(half.join("layer-1/kernel/work")).unwrap();
        fs::create_dir_all(work.join(format!("removed-{}", session(2)))).unwrap();
        set_mode(&half.join("layer-1/kernel/work"), 0o000);
        set_mode(&half.join("tree/deep"), 0o500);
    };
    leave();
    assert_eq!(workspace.copies().list().unwrap(), []);
    assert_eq!(fs::read_dir(&work).unwrap().count(), 0);
    leave();
    let unknown = workspace.copies().open(&session(1), &tools.means(&[IsolationTier::Copy])).unwrap_err();
    assert!(matches!(unknown, WorkspaceError::UnknownCopy { .. }), "{unknown}");
    leave();
    let copy = isolate(&workspace, &tools, IsolationTier::Copy).unwrap();
    assert_eq!(facts(&copy.workspace().access_path(), &[]), facts(&project.root(), &[]));
    assert_eq!(fs::read_dir(&work).unwrap().count(), 1);
    // What isn't a session's is nobody's business here.
    fs::write(work.join("notes"), "mine").unwrap();
    drop(copy);
    workspace.copies().discard(&session(1)).unwrap();
    assert_eq!(fs::read_to_string(work.join("notes")).unwrap(), "mine");
}

#[test]
fn a_damaged_record_is_not_taken_for_nothing() {
    let project = Project::with(&[("file", "x")]);
    let tools = Tools::of(&project);
    let workspace = project.open();
    let means = tools.means(&[IsolationTier::Copy]);
    let copy = isolate(&workspace, &tools, IsolationTier::Copy).unwrap();
    apply(copy.workspace(), vec![write("file", "work of a day")]).unwrap();
    let edited = copy.workspace().access_path().join("file");
    drop(copy);
    let record = project.state().join("work").join(session(1).as_str()).join("record");
    let text = fs::read_to_string(&record).unwrap();
    // Another place, as somebody might write by hand.
    fs::write(&record, text.replace("\"state\"", "\"root\"")).unwrap();
    assert_eq!(workspace.copies().list().unwrap(), []);
    let damaged = workspace.copies().open(&session(1), &means).unwrap_err();
    assert!(damaged.to_string().contains("checksum"), "{damaged}");
    assert!(matches!(workspace.copies().create(&session(1), &means), Err(WorkspaceError::CopyExists { .. })));
    assert_eq!(fs::read_to_string(&edited).unwrap(), "work of a day");
    fs::write(&record, text).unwrap();
    drop(workspace.copies().open(&session(1), &means).unwrap());
    fs::write(&record, "").unwrap();
    workspace.copies().discard(&session(1)).unwrap();
    assert!(!edited.exists());
}

#[test]
fn discarding_takes_away_whatever_a_copy_holds() {
    let project = project_with(&[("file", "x")]);
    make_repository(&project, "file");
    let tree = project.tree();
    let tools = Tools::of(&project);
    let workspace = project.open();
    let outside = project.dir.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("precious"), "stays").unwrap();
    for tier in IsolationTier::ALL {
        let Some(copy) = isolate(&workspace, &tools, tier) else { continue };
        let inside = copy.workspace();
        run(
            &tools,
            inside,
            "mkdir -p a/b/c && touch a/b/c/x \"$(printf 'odd\\n\\377')\" && mkfifo pipe && chmod 000 a/b/c && chmod 500 a/b a; \
             i=0; while [ $i -lt 60 ]; do mkdir long-name-of-a-directory; cd long-name-of-a-directory; i=$((i+1)); done; touch end",
        );
        symlink(&outside, inside.access_path().join("link")).unwrap();
        drop(copy);
        workspace.copies().discard(&session(1)).unwrap();
        assert_eq!(fs::read_dir(project.state().join("work")).unwrap().count(), 0, "{tier}");
        assert_eq!(fs::read_to_string(outside.join("precious")).unwrap(), "stays");
        assert_eq!(project.tree(), tree);
    }
}

#[test]
fn discarding_as_an_ordinary_user() {
    if is_ordinary_user(test_path!("discarding_as_an_ordinary_user")) {
        discarding_takes_away_whatever_a_copy_holds();
        a_copy_is_there_again_after_it_was_closed();
    }
}

#[test]
fn a_place_beside_the_root_that_is_somebody_elses_is_not_used() {
    // Two file systems, so that the state directory isn't on the project's.
    let Ok(memory) = tempfile::tempdir_in("/dev/shm") else {
        return skip("no second file system");
    };
    let project = project_with(&[("file", "x")]);
    let tools = Tools::of(&project);
    let options = Options { state_dir: memory.path().join("state"), ..project.options() };
    let workspace = Workspace::open(&project.root(), options).unwrap();
    let Some(copy) = isolate(&workspace, &tools, IsolationTier::Overlay) else { return };
    apply(copy.workspace(), vec![write("file", "changed")]).unwrap();
    let beside = || {
        let names = fs::read_dir(project.dir.path()).unwrap().map(|entry| entry.unwrap().file_name());
        names
            .filter_map(|name| name.to_str().map(str::to_owned))
            .find(|name| name.starts_with(".journeyman-work-"))
    };
    let name = beside().expect("a directory beside the root");
    drop(copy);
    let copy = workspace.copies().open(&session(1), &tools.means(&[IsolationTier::Overlay])).unwrap();
    assert_eq!(copy.workspace().read(&rel("file"), 99).unwrap().text(), Some("changed"));
    drop(copy);
    workspace.copies().discard(&session(1)).unwrap();
    assert_eq!(beside(), None);
    // Somebody has put a link where it is to be.
    let target = project.dir.path().join("target");
    fs::create_dir(&target).unwrap();
    symlink(&target, project.dir.path().join(&name)).unwrap();
    let refused =
        workspace.copies().create(&session(1), &tools.means(&[IsolationTier::Overlay])).unwrap_err();
    assert!(refused.to_string().contains("somebody else"), "{refused}");
    assert_eq!(fs::read_dir(&target).unwrap().count(), 0);
}

#[test]
fn what_a_power_failure_tore_is_mended() {
    let project = Project::with(&[("file", "first"), ("dir/other", "second"), ("edited", "third")]);
    age(&project.root());
    let tools = Tools::of(&project);
    let workspace = project.open();
    let copy = isolate(&workspace, &tools, IsolationTier::Copy).unwrap();
    apply(copy.workspace(), vec![write("edited", "by the run")]).unwrap();
    let tree = copy.workspace().access_path();
    drop(copy);
    // The names and times of files are there, what was in them isn't.
    let tear = |path: &str| {
        let path = tree.join(path);
        let time = fs::metadata(&path).unwrap().modified().unwrap();
        let file = fs::File::options().write(true).open(&path).unwrap();
        file.set_len(0).unwrap();
        file.set_modified(time).unwrap();
    };
    let means = tools.means(&[IsolationTier::Copy]);
    ["file", "dir/other"].iter().for_each(|path| tear(path));
    drop(workspace.copies().open(&session(1), &means).unwrap());
    assert_eq!(fs::read_to_string(tree.join("file")).unwrap(), "", "the machine ran on");
    let dir = project.state().join("work").join(session(1).as_str());
    let text = fs::read_to_string(dir.join("record")).unwrap();
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let other = text.replace(boot.trim(), "another run of the machine");
    let json = other.lines().nth(1).unwrap();
    let sum = journeyman_protocol::ContentHash::of(json.as_bytes());
    fs::write(dir.join("record"), format!("{sum}\n{json}\n")).unwrap();
    drop(workspace.copies().open(&session(1), &means).unwrap());
    let original = facts(&project.root(), &["edited"]);
    assert_eq!(facts(&tree, &["edited"]), original);
    assert_eq!(fs::read_to_string(tree.join("edited")).unwrap(), "by the run");
    assert_eq!(fs::read_to_string(dir.join("record")).unwrap(), text, "it is mended once");
}

#[test]
fn a_copy_that_is_handed_over_is_the_other_sessions_with_its_journal() {
    let project = project_with(&[("file", "first"), (".gitignore", "ignored\n")]);
    make_repository(&project, "file");
    let tools = Tools::of(&project);
    let workspace = project.open();
    for tier in IsolationTier::ALL {
        let Some(mut copy) = isolate(&workspace, &tools, tier) else { continue };
        copy.keep().unwrap();
        let before = copy.workspace().checkpoint(&session(1), "before").unwrap();
        apply(copy.workspace(), vec![write("file", "second")]).unwrap();
        run(&tools, copy.workspace(), "echo kept > ignored");
        let busy = workspace.copies().hand_over(&session(1), &session(2));
        assert!(matches!(busy, Err(WorkspaceError::Busy { .. })), "{tier}: {busy:?}");
        drop(copy);
        workspace.copies().hand_over(&session(1), &session(2)).unwrap();
        let owners: Vec<_> =
            workspace.copies().list().unwrap().into_iter().map(|copy| copy.session).collect();
        assert_eq!(owners, [session(2)], "{tier}");
        let gone = workspace.copies().hand_over(&session(1), &session(3));
        assert!(matches!(gone, Err(WorkspaceError::UnknownCopy { .. })), "{tier}: {gone:?}");
        let again = workspace.copies().open(&session(2), &tools.means(&[tier])).unwrap();
        let inside = again.workspace();
        assert_eq!(inside.read(&rel("file"), 99).unwrap().text(), Some("second"), "{tier}");
        assert_eq!(inside.read(&rel("ignored"), 99).unwrap().text(), Some("kept\n"), "{tier}");
        inside.undo(UndoTarget::To(before)).unwrap();
        assert_eq!(inside.read(&rel("file"), 99).unwrap().text(), Some("first"), "{tier}");
        drop(again);
        // Nor is one taken from whoever has it already.
        workspace.copies().create(&session(1), &tools.means(&[tier])).unwrap().keep().unwrap();
        let taken = workspace.copies().hand_over(&session(1), &session(2));
        assert!(matches!(taken, Err(WorkspaceError::CopyExists { .. })), "{tier}: {taken:?}");
        workspace.copies().discard(&session(1)).unwrap();
        workspace.copies().discard(&session(2)).unwrap();
    }
}

#[test]
fn a_copy_whose_handing_over_was_cut_off_is_one_of_boths() {
    let project = project_with(&[("file", "first")]);
    make_repository(&project, "file");
    let tools = Tools::of(&project);
    let workspace = project.open();
    let Some(mut copy) = isolate(&workspace, &tools, IsolationTier::Copy) else { return };
    copy.keep().unwrap();
    apply(copy.workspace(), vec![write("file", "second")]).unwrap();
    drop(copy);
    let work = project.state().join("work");
    let [one, two] = [1, 2].map(|number| work.join(session(number).as_str()));
    workspace.copies().hand_over(&session(1), &session(2)).unwrap();
    // A record of the copy under the name that it had, as the moment before leaves it.
    let record = fs::read_to_string(two.join("record")).unwrap();
    let (_, json) = record.split_once('\n').unwrap();
    let mut json: serde_json::Value = serde_json::from_str(json).unwrap();
    json["handed_from"] = session(1).as_str().into();
    let json = json.to_string();
    let half = format!("{}\n{json}\n", journeyman_protocol::ContentHash::of(json.as_bytes()));
    fs::write(two.join("record"), &half).unwrap();
    fs::rename(&two, &one).unwrap();
    let owner = |workspace: &Workspace| workspace.copies().list().unwrap()[0].session.clone();
    assert_eq!(owner(&workspace), session(1), "its directory hasn't got the other name");
    // And as the moment after leaves it.
    fs::rename(&one, &two).unwrap();
    assert_eq!(owner(&workspace), session(2));
    let again = workspace.copies().open(&session(2), &tools.means(&[IsolationTier::Copy])).unwrap();
    assert_eq!(again.workspace().read(&rel("file"), 99).unwrap().text(), Some("second"));
    assert!(!fs::read_to_string(two.join("record")).unwrap().contains("handed_from"));
}
