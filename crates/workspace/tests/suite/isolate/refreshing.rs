//! A copy follows what the user changes in the tree, and keeps what was done in it.

use journeyman_testkit::skip;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use journeyman_protocol::RelPath;
use journeyman_workspace::limits::Limits;
use journeyman_workspace::{
    IsolatedCopy, IsolationTier, LandOptions, Options, RefreshReport, UndoTarget, Workspace, WorkspaceError,
};

use crate::support::{apply, delete, model, rel, session, set_mode, shown, write};
use crate::trees::{Tools, facts, isolate, pattern, project_with, run};

const TIERS: [IsolationTier; 2] = [IsolationTier::Overlay, IsolationTier::Copy];

fn paths(paths: &[&str]) -> Vec<RelPath> {
    paths.iter().map(rel).collect()
}

fn text(copy: &IsolatedCopy, path: &str) -> Option<String> {
    match copy.workspace().read(&rel(path), 1 << 20) {
        Ok(content) => Some(content.text().unwrap().to_owned()),
        Err(WorkspaceError::NotFound { .. }) => None,
        Err(other) => panic!("{path}: {other}"),
    }
}

/// What the copy has that the tree hasn't, as the landing sees it.
fn differing(workspace: &Workspace, copy: &IsolatedCopy) -> String {
    crate::support::shown(&workspace.landings().changes(copy).unwrap().files())
}

#[test]
fn nothing_changed() {
    let project = project_with(&[("file", "x")]);
    let (tools, workspace) = (Tools::of(&project), project.open());
    for tier in TIERS {
        let Some(mut copy) = isolate(&workspace, &tools, tier) else { continue };
        apply(copy.workspace(), vec![write("file", "y")]).unwrap();
        let info = copy.info().clone();
        assert_eq!(copy.refresh(&workspace, &tools.means(&[tier])).unwrap(), RefreshReport::default());
        assert_eq!(*copy.info(), info);
        drop(copy);
        workspace.copies().discard(&session(1)).unwrap();
    }
}

#[test]
fn what_the_user_changed_is_taken() {
    for tier in TIERS {
        let project = project_with(&[
            ("a/kept", "1"),
            ("a/changed", "1"),
            ("gone", "1"),
            ("mine", "1"),
            ("b/c/deep", "1"),
        ]);
        let (tools, workspace) = (Tools::of(&project), project.open());
        let Some(mut copy) = isolate(&workspace, &tools, tier) else { continue };
        apply(copy.workspace(), vec![write("mine", "copy"), write("new/in/copy", "copy"), delete("a/kept")])
            .unwrap();
        // As an editor saves, and as one writes in place.
        project.write("a/other", "2");
        fs::rename(project.root().join("a/other"), project.root().join("a/changed")).unwrap();
        fs::remove_file(project.root().join("gone")).unwrap();
        project.write("made/by/user", "2");
        fs::remove_dir_all(project.root().join("b")).unwrap();
        let tree = project.tree();
        let refreshed = copy.refresh(&workspace, &tools.means(&[tier])).unwrap();
        let expected = RefreshReport {
            taken: paths(&["a/changed", "b/c/deep", "gone", "made/by/user"]),
            ..RefreshReport::default()
        };
        assert_eq!(refreshed, expected, "{tier}");
        for (path, expected) in [
            ("a/changed", Some("2")),
            ("made/by/user", Some("2")),
            ("gone", None),
            ("b/c/deep", None),
            ("a/kept", None),
            ("mine", Some("copy")),
            ("new/in/copy", Some("copy")),
        ] {
            assert_eq!(text(&copy, path).as_deref(), expected, "{tier}: {path}");
        }
        assert_eq!(differing(&workspace, &copy), "-a/kept ~mine +new/in/copy", "{tier}");
        assert_eq!(
            run(&tools, copy.workspace(), "cat a/changed made/by/user mine; ls b 2>/dev/null"),
            "22copy"
        );
        assert_eq!(project.tree(), tree);
        // The same after it was closed.
        drop(copy);
        let copy = project.open().copies().open(&session(1), &tools.means(&[tier])).unwrap();
        assert_eq!(differing(&workspace, &copy), "-a/kept ~mine +new/in/copy", "{tier}");
        assert_eq!(text(&copy, "made/by/user").as_deref(), Some("2"));
    }
}

#[test]
fn what_both_changed_is_merged_or_kept() {
    let lines = |first: &str, last: &str| format!("{first}\n2\n3\n4\n5\n6\n7\n{last}\n");
    for tier in TIERS {
        let base = lines("1", "8");
        let project = project_with(&[
            ("merged", &base),
            ("apart", &base),
            ("same", &base),
            ("deleted", &base),
            ("gone", &base),
        ]);
        let (tools, workspace) = (Tools::of(&project), project.open());
        let Some(mut copy) = isolate(&workspace, &tools, tier) else { continue };
        let edits = vec![
            write("merged", &lines("copy", "8")),
            write("apart", &lines("copy", "8")),
            write("same", &lines("both", "8")),
            delete("deleted"),
            write("gone", &lines("copy", "8")),
        ];
        apply(copy.workspace(), edits).unwrap();
        project.write("merged", lines("1", "user"));
        project.write("apart", lines("user", "8"));
        project.write("same", lines("both", "8"));
        project.write("deleted", lines("user", "8"));
        fs::remove_file(project.root().join("gone")).unwrap();
        let refreshed = copy.refresh(&workspace, &tools.means(&[tier])).unwrap();
        let expected = RefreshReport {
            taken: paths(&["same"]),
            merged: paths(&["merged"]),
            conflicts: paths(&["apart", "deleted", "gone"]),
        };
        assert_eq!(refreshed, expected, "{tier}");
        assert_eq!(text(&copy, "merged").unwrap(), lines("copy", "user"), "{tier}");
        assert_eq!(text(&copy, "apart").unwrap(), lines("copy", "8"), "{tier}");
        assert_eq!(text(&copy, "gone").unwrap(), lines("copy", "8"), "{tier}");
        assert_eq!(text(&copy, "deleted"), None, "{tier}");
        // Against the user's tree as it is now, but for what is in conflict: that is against what
        // both started from, so that landing it has to ask.
        assert_eq!(differing(&workspace, &copy), "~apart -deleted ~gone ~merged", "{tier}");
        assert_eq!(project.text("apart"), lines("user", "8"));
    }
}

#[test]
fn every_sort_of_change_on_either_side() {
    for tier in TIERS {
        let project = project_with(&[
            ("to-link", "1"),
            ("to-dir", "1"),
            ("mode", "1"),
            ("dir/one", "1"),
            ("dir/two", "1"),
            ("opaque/old", "1"),
        ]);
        let root = project.root();
        symlink("mode", root.join("link")).unwrap();
        let (tools, workspace) = (Tools::of(&project), project.open());
        let Some(mut copy) = isolate(&workspace, &tools, tier) else { continue };
        // A directory made anew hides what is beneath it in an overlay.
        run(
            &tools,
            copy.workspace(),
            "rm -rf opaque; mkdir opaque; echo c > opaque/new; rm -rf dir; ln -s mode own-link",
        );
        fs::remove_file(root.join("to-link")).unwrap();
        symlink("dir/one", root.join("to-link")).unwrap();
        fs::remove_file(root.join("to-dir")).unwrap();
        project.write("to-dir/inner", "2");
        set_mode(&root.join("mode"), 0o755);
        fs::remove_file(root.join("link")).unwrap();
        symlink("elsewhere", root.join("link")).unwrap();
        project.write("opaque/users", "2");
        project.write("dir/three", "2");
        fs::create_dir_all(root.join("empty/inner")).unwrap();
        let refreshed = copy.refresh(&workspace, &tools.means(&[tier])).unwrap();
        let taken =
            paths(&["dir/three", "link", "mode", "opaque/users", "to-dir", "to-dir/inner", "to-link"]);
        assert_eq!(refreshed, RefreshReport { taken, ..RefreshReport::default() }, "{tier}");
        let reach = copy.workspace().access_path();
        assert_eq!(fs::read_link(reach.join("to-link")).unwrap().to_str(), Some("dir/one"));
        assert_eq!(fs::read_link(reach.join("link")).unwrap().to_str(), Some("elsewhere"));
        assert_eq!(fs::metadata(reach.join("mode")).unwrap().permissions().mode() & 0o7777, 0o755);
        assert!(reach.join("empty/inner").is_dir(), "{tier}");
        let expected = "-dir/one -dir/two -opaque/old +opaque/new +own-link";
        let found = differing(&workspace, &copy);
        let sorted = |text: &str| {
            let mut words: Vec<String> = text.split(' ').map(str::to_owned).collect();
            words.sort();
            words
        };
        assert_eq!(sorted(&found), sorted(expected), "{tier}");
        let mut files: Vec<String> =
            model(&reach.join(".")).into_keys().map(|name| String::from_utf8(name).unwrap()).collect();
        files.sort();
        let all = "dir dir/three empty empty/inner link mode opaque opaque/new opaque/users own-link to-dir to-dir/inner to-link";
        assert_eq!(files.join(" "), all, "{tier}");
    }
}

#[test]
fn what_commands_built_stays() {
    for tier in TIERS {
        let project = project_with(&[(".gitignore", "/target/\n*.log\n"), ("src", "1"), ("target/old", "1")]);
        let (tools, workspace) = (Tools::of(&project), project.open());
        let Some(mut copy) = isolate(&workspace, &tools, tier) else { continue };
        run(
            &tools,
            copy.workspace(),
            "echo built > target/new; echo over > target/old; echo x > run.log; rm -f nothing",
        );
        project.write("src", "2");
        copy.refresh(&workspace, &tools.means(&[tier])).unwrap();
        let said = run(&tools, copy.workspace(), "cat src target/new target/old run.log");
        assert_eq!(said, "2built\nover\nx\n", "{tier}");
        assert_eq!(project.text("target/old"), "1");
        drop(copy);
        let copy = workspace.copies().open(&session(1), &tools.means(&[tier])).unwrap();
        assert_eq!(run(&tools, copy.workspace(), "cat target/new"), "built\n", "{tier}");
    }
}

#[test]
fn what_is_open_follows() {
    for tier in TIERS {
        let project = project_with(&[("file", "1"), ("dir/file", "1")]);
        let (tools, workspace) = (Tools::of(&project), project.open());
        let Some(mut copy) = isolate(&workspace, &tools, tier) else { continue };
        let inside = copy.workspace().clone();
        let reach = inside.access_path();
        apply(&inside, vec![write("mine", "m")]).unwrap();
        project.write("file", "2");
        copy.refresh(&workspace, &tools.means(&[tier])).unwrap();
        assert_eq!(inside.access_path(), reach);
        assert_eq!(fs::read_to_string(reach.join("file")).unwrap(), "2");
        assert_eq!(inside.read(&rel("file"), 9).unwrap().text(), Some("2"));
        apply(&inside, vec![write("dir/file", "mine")]).unwrap();
        assert_eq!(run(&tools, &inside, "cat file dir/file mine"), "2minem");
        // The journal is about the copy's own changes.
        inside.undo(journeyman_workspace::UndoTarget::LastRun).unwrap();
        assert_eq!(run(&tools, &inside, "cat file dir/file; ls"), "21dir\nfile\n", "{tier}");
    }
}

#[test]
fn again_and_again() {
    for tier in TIERS {
        let project = project_with(&[("counter", "0\n"), ("other", "x")]);
        let (tools, workspace) = (Tools::of(&project), project.open());
        let Some(mut copy) = isolate(&workspace, &tools, tier) else { continue };
        for round in 1..=8 {
            project.write("counter", format!("{round}\n"));
            apply(copy.workspace(), vec![write(&format!("made{round}"), "x")]).unwrap();
            let refreshed = copy.refresh(&workspace, &tools.means(&[tier])).unwrap();
            assert_eq!(refreshed.taken, paths(&["counter"]), "{tier}");
            assert_eq!(text(&copy, "counter").unwrap(), format!("{round}\n"));
            let made = fs::read_dir(copy.workspace().access_path().join(".")).unwrap().count();
            assert_eq!(made, 2 + round, "{tier}");
        }
        let place = project.state().join("work").join(session(1).as_str());
        let names =
            fs::read_dir(place).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort();
        let expected = match tier {
            IsolationTier::Overlay => ["layer-9", "lock", "record", "state"],
            _ => ["lock", "record", "state", "tree"],
        };
        names.retain(|name| name != "changes" && name != "caches");
        assert_eq!(names, expected);
    }
}

#[test]
fn not_while_a_command_runs() {
    let project = project_with(&[("file", "1")]);
    let (tools, workspace) = (Tools::of(&project), project.open());
    let Some(mut copy) = isolate(&workspace, &tools, IsolationTier::Copy) else { return };
    let inside = copy.workspace().clone();
    let call = journeyman_protocol::CallId::new("call");
    let before = inside.command_observer().begin_call(&session(1), &call).unwrap();
    project.write("file", "2");
    let means = tools.means(&[IsolationTier::Copy]);
    let busy = copy.refresh(&workspace, &means).unwrap_err();
    assert!(matches!(busy, WorkspaceError::Busy { .. }), "{busy}");
    assert_eq!(inside.command_observer().end(before, &session(1), Some(&call)).unwrap(), []);
    assert_eq!(copy.refresh(&workspace, &means).unwrap().taken, paths(&["file"]));
}

#[test]
fn what_the_user_saves_beneath_while_a_command_runs() {
    let files = [("mine", "1"), ("both", "1"), ("gone", "1"), ("dir/x", "1"), ("old/y", "1")];
    let project = project_with(&files);
    let (tools, workspace) = (Tools::of(&project), project.open());
    let Some(copy) = isolate(&workspace, &tools, IsolationTier::Overlay) else { return };
    let inside = copy.workspace().clone();
    let call = journeyman_protocol::CallId::new("call");
    let before = inside.command_observer().begin_call(&session(1), &call).unwrap();
    // The command works in the copy, the user beneath it.
    run(&tools, &inside, "echo command >both; echo command >dir/new; rm -r old");
    project.write("mine", "by the user");
    project.write("dir/theirs", "by the user");
    fs::remove_file(project.root().join("gone")).unwrap();
    let changes = inside.command_observer().end(before, &session(1), Some(&call)).unwrap();
    assert_eq!(shown(&changes), "~both +dir/new -old/y");
    inside.undo(UndoTarget::Session(session(1))).unwrap();
    assert_eq!((text(&copy, "both").as_deref(), project.text("mine").as_str()), (Some("1"), "by the user"));
    assert_eq!(text(&copy, "mine").as_deref(), Some("by the user"));
}

#[test]
fn what_the_user_goes_on_changing_is_never_the_copys() {
    let project = project_with(&[("log", "0\n"), ("mine", "1"), ("gone", "1")]);
    let (tools, workspace) = (Tools::of(&project), project.open());
    let Some(mut copy) = isolate(&workspace, &tools, IsolationTier::Overlay) else { return };
    apply(copy.workspace(), vec![write("mine", "copy")]).unwrap();
    let (root, stop) = (project.root(), std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false)));
    let stopped = std::sync::Arc::clone(&stop);
    let writer = std::thread::spawn(move || {
        use std::io::Write as _;
        let mut log = fs::OpenOptions::new().append(true).open(root.join("log")).unwrap();
        while !stopped.load(std::sync::atomic::Ordering::Relaxed) {
            log.write_all(b"1\n").unwrap();
        }
    });
    for _ in 0..10 {
        let refreshed = copy.refresh(&workspace, &tools.means(&[IsolationTier::Overlay])).unwrap();
        assert_eq!((refreshed.merged, refreshed.conflicts), (vec![], vec![]));
        assert_eq!(differing(&workspace, &copy), "~mine");
    }
    fs::remove_file(project.root().join("gone")).unwrap();
    project.write("new/file", "2");
    assert_eq!(differing(&workspace, &copy), "~mine");
    let changes = workspace.landings().changes(&copy).unwrap();
    let landing = workspace.land(&changes, &LandOptions::default()).unwrap();
    assert_eq!((landing.conflicts, project.text("mine").as_str()), (vec![], "copy"));
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    writer.join().unwrap();
}

#[test]
fn a_copy_whose_refresh_was_cut_off() {
    for tier in TIERS {
        let project = project_with(&[("file", "1"), ("other", "1")]);
        let (tools, workspace) = (Tools::of(&project), project.open());
        let Some(copy) = isolate(&workspace, &tools, tier) else { continue };
        apply(copy.workspace(), vec![write("other", "mine")]).unwrap();
        drop(copy);
        // What one leaves that was killed before the record said so.
        let place = project.state().join("work").join(session(1).as_str());
        if tier == IsolationTier::Overlay {
            fs::create_dir_all(place.join("layer-2/upper/half")).unwrap();
            fs::create_dir_all(place.join("layer-2/kernel/work")).unwrap();
            set_mode(&place.join("layer-2/kernel/work"), 0o000);
        } else {
            fs::create_dir_all(place.join("refreshing")).unwrap();
        }
        project.write("file", "2");
        let mut copy = workspace.copies().open(&session(1), &tools.means(&[tier])).unwrap();
        assert_eq!(text(&copy, "other").as_deref(), Some("mine"));
        assert!(!place.join("refreshing").exists() && !place.join("layer-2").exists());
        assert_eq!(
            copy.refresh(&workspace, &tools.means(&[tier])).unwrap().taken,
            paths(&["file"]),
            "{tier}"
        );
        assert_eq!(
            (text(&copy, "file").as_deref(), text(&copy, "other").as_deref()),
            (Some("2"), Some("mine"))
        );
        assert_eq!(differing(&workspace, &copy), "~other");
    }
}

#[test]
fn ignore_rules_that_change() {
    for tier in TIERS {
        let project = project_with(&[(".gitignore", "*.log\n"), ("a.log", "log"), ("b.txt", "text")]);
        let (tools, workspace) = (Tools::of(&project), project.open());
        let Some(mut copy) = isolate(&workspace, &tools, tier) else { continue };
        project.write(".gitignore", "*.txt\n");
        let refreshed = copy.refresh(&workspace, &tools.means(&[tier])).unwrap();
        assert!(refreshed.taken.contains(&rel(".gitignore")), "{refreshed:?}");
        assert_eq!(text(&copy, "a.log").as_deref(), Some("log"), "{tier}");
        assert_eq!(text(&copy, "b.txt").as_deref(), Some("text"), "{tier}");
        assert_eq!(differing(&workspace, &copy), "", "{tier}");
    }
}

#[test]
fn files_beyond_what_is_kept() {
    for tier in TIERS {
        let project = project_with(&[("large", ""), ("large-gone", ""), ("small", "1")]);
        for path in ["large", "large-gone"] {
            project.write(path, pattern(5_000));
        }
        let limits = Limits { kept_file_bytes: 4_096, ..Limits::default() };
        let tools = Tools::of(&project);
        let workspace = Workspace::open(&project.root(), Options { limits, ..project.options() }).unwrap();
        let Some(mut copy) = isolate(&workspace, &tools, tier) else { continue };
        project.write("large", pattern(6_000));
        project.write("deep/new/large", pattern(7_000));
        fs::remove_file(project.root().join("large-gone")).unwrap();
        let refreshed = copy.refresh(&workspace, &tools.means(&[tier])).unwrap();
        assert_eq!(
            refreshed.taken,
            paths(&["deep/new/large", "large", "large-gone"]),
            "{tier}: {refreshed:?}"
        );
        let found = facts(&copy.workspace().access_path().join("."), &[]).into_iter();
        let files = |(name, fact): (Vec<u8>, crate::trees::Fact)| (name, fact.bytes());
        let original: Vec<_> = facts(&project.root(), &[]).into_iter().map(files).collect();
        assert_eq!(found.map(files).collect::<Vec<_>>(), original, "{tier}");
    }
}

#[test]
fn a_tree_that_cannot_be_mounted_any_more_keeps_the_copy() {
    let project = project_with(&[("file", "1"), ("dir/inner", "1")]);
    let (tools, workspace) = (Tools::of(&project), project.open());
    let Some(mut copy) = isolate(&workspace, &tools, IsolationTier::Overlay) else { return };
    apply(copy.workspace(), vec![write("file", "mine")]).unwrap();
    let at = project.root().join("dir");
    let flags = rustix::mount::MountFlags::empty();
    if let Err(errno) = rustix::mount::mount("jm-test", &at, "tmpfs", flags, None) {
        return skip(format!("can't mount here: {errno}"));
    }
    project.write("other", "2");
    let means = tools.means(&[IsolationTier::Overlay]);
    let refused = copy.refresh(&workspace, &means);
    rustix::mount::unmount(&at, rustix::mount::UnmountFlags::DETACH).unwrap();
    assert!(matches!(refused, Err(WorkspaceError::NoCopy { .. })), "{refused:?}");
    assert_eq!(text(&copy, "file").as_deref(), Some("mine"));
    assert_eq!(copy.refresh(&workspace, &means).unwrap().taken, paths(&["other"]));
    assert_eq!(text(&copy, "file").as_deref(), Some("mine"));
    assert_eq!(text(&copy, "dir/inner").as_deref(), Some("1"));
}
