//! Real copies, of every tier, landed after they were closed.

use journeyman_testkit::skip;
use std::fs;

use crate::support::{Project, apply, delete, model, session, set_mode, shown, write};
use crate::trees::{Tools, git, isolate, project_with, run};
use journeyman_protocol::CallId;
use journeyman_workspace::{
    IsolatedCopy, IsolationTier, LandOptions, OnConflict, UndoTarget, Workspace, WorkspaceError,
};

fn each_tier(project: impl Fn() -> Project, check: impl Fn(&Project, &Workspace, &Tools, IsolatedCopy)) {
    for tier in IsolationTier::ALL {
        let project = project();
        git(&project.root(), &["init", "-q"]);
        git(&project.root(), &["add", "-A"]);
        git(&project.root(), &["commit", "-q", "--allow-empty", "-m", "base"]);
        let tools = Tools::of(&project);
        let workspace = project.open();
        if let Some(copy) = isolate(&workspace, &tools, tier) {
            println!("{tier}");
            check(&project, &workspace, &tools, copy);
        }
    }
}

/// A command of the session, in the sandbox and journaled.
fn command(tools: &Tools, copy: &IsolatedCopy, text: &str) {
    let workspace = copy.workspace();
    let before = workspace.command_observer().begin().unwrap();
    let said = run(tools, workspace, text);
    workspace.command_observer().end(before, &session(1), Some(&CallId::new("shell"))).unwrap();
    assert_eq!(said, "", "{text}");
}

/// The tree without git's own directory.
fn tree(project: &Project) -> crate::support::Model {
    let mut tree = project.tree();
    tree.retain(|path, _| !path.starts_with(b".git/"));
    tree
}

#[test]
fn what_a_session_does_in_a_copy_comes_to_the_tree() {
    let project = || {
        let project = project_with(&[
            ("a", "1\n"),
            ("gone", "g\n"),
            ("dir/x", "x\n"),
            ("dir/y", "y\n"),
            ("named", "a name\n"),
            ("tool", "#!/bin/sh\n"),
            (".gitignore", "target\n*.log\n"),
            ("target/built", "b\n"),
        ]);
        set_mode(&project.root().join("a"), 0o640);
        fs::create_dir(project.root().join("hollow")).unwrap();
        project
    };
    each_tier(project, |project, workspace, tools, copy| {
        let before = tree(project);
        apply(copy.workspace(), vec![write("a", "2\n"), write("new/file", "n\n"), delete("gone")]).unwrap();
        apply(copy.workspace(), vec![write("kept.log", "an edit of what is ignored\n")]).unwrap();
        command(tools, &copy, "mv named renamed && chmod 755 tool && rm -r dir && echo file > dir");
        command(tools, &copy, "ln -s a link && mkdir empty && rmdir hollow && echo x > other.log");
        assert_eq!(tree(project), before, "{}", copy.info().tier);
        let mut wanted = model(&copy.workspace().access_path().join("."));
        let changes = workspace.landings().changes(&copy).unwrap();
        assert_eq!(
            shown(&changes.files()),
            "~a +dir -dir/x -dir/y -gone +kept.log +link -named +new/file +renamed ~tool"
        );
        assert_eq!(changes.renames().len(), 1);
        let diff = workspace.landings().diff(&changes, 1 << 20).unwrap();
        drop(copy);
        // Another process lands it, from what is written down.
        let other = project.open();
        let stored = other.landings().stored_changes(&session(1)).unwrap().unwrap();
        assert_eq!(stored, changes);
        assert_eq!(other.landings().diff(&stored, 1 << 20).unwrap(), diff);
        let landing = other.land(&stored, &LandOptions::default()).unwrap();
        assert!(landing.conflicts.is_empty(), "{landing:?}");
        // What is ignored stays as each has it.
        wanted.retain(|path, _| {
            !path.starts_with(b".git/") && !path.starts_with(b"target") && path != b"other.log"
        });
        for path in [&b"target"[..], b"target/built"] {
            wanted.insert(path.to_vec(), before[path].clone());
        }
        // A worktree has a file where a repository has a directory.
        let mut landed = tree(project);
        for model in [&mut landed, &mut wanted] {
            model.remove(&b".git"[..]);
        }
        assert_eq!(landed, wanted);
        other.copies().discard(&session(1)).unwrap();
        assert!(matches!(other.copies().discard(&session(1)), Err(WorkspaceError::UnknownCopy { .. })));
        other.undo(UndoTarget::Session(session(1))).unwrap();
        assert_eq!(tree(project), before);
        assert_eq!(git(&project.root(), &["status", "--porcelain"]), "");
        git(&project.root(), &["fsck", "--strict"]);
    });
}

#[test]
fn nothing_done_is_nothing_to_land() {
    each_tier(
        || {
            let project = crate::trees::odd_tree();
            fs::remove_file(project.root().join("pipe")).unwrap();
            fs::remove_file(project.root().join("socket")).unwrap();
            project
        },
        |_, workspace, tools, copy| {
            let changes = workspace.landings().changes(&copy).unwrap();
            assert!(changes.is_empty(), "{}: {changes:?}", copy.info().tier);
            // Also after everything was looked at, and a time was changed.
            command(tools, &copy, "cat main.rs sparse > /dev/null; touch main.rs");
            let changes = workspace.landings().changes(&copy).unwrap();
            assert!(changes.is_empty(), "{}: {changes:?}", copy.info().tier);
        },
    );
}

#[test]
fn a_copy_of_a_repository() {
    let project = || project_with(&[("f", "1\n2\n3\n4\n5\n6\n7\n")]);
    each_tier(project, |project, workspace, tools, copy| {
        // A commit in the copy is the copy's.
        command(tools, &copy, "echo 8 >> f && git -c user.name=n -c user.email=e add -A 2>/dev/null; true");
        let changes = workspace.landings().changes(&copy).unwrap();
        assert_eq!(shown(&changes.files()), "~f", "{}", copy.info().tier);
        drop(copy);
        // The user commits meanwhile.
        project.write("f", "one\n2\n3\n4\n5\n6\n7\n");
        git(&project.root(), &["commit", "-q", "-am", "the user's"]);
        let landing = workspace.land(&changes, &LandOptions::default()).unwrap();
        assert!(landing.conflicts.is_empty(), "{landing:?}");
        assert_eq!(project.text("f"), "one\n2\n3\n4\n5\n6\n7\n8\n");
        assert_eq!(git(&project.root(), &["status", "--porcelain"]), " M f\n");
        git(&project.root(), &["fsck", "--strict"]);
    });
}

#[test]
fn the_users_own_work_meets_the_copys() {
    let lines: String = (1..=20).map(|line| format!("{line}\n")).collect();
    let project = || project_with(&[("merge", &lines), ("clash", "base\n"), ("move", &lines)]);
    each_tier(project, |project, workspace, tools, copy| {
        let root = project.root();
        command(tools, &copy, "sed -i s/^3$/three/ merge && echo copy > clash && sed -i s/^9$/nine/ move");
        // Under an overlay the tree is not to change below it; what the user does is done all the
        // same.
        let changes = workspace.landings().changes(&copy).unwrap();
        drop(copy);
        project.write("merge", lines.replace("15\n", "fifteen\n"));
        project.write("clash", "user\n");
        fs::rename(root.join("move"), root.join("moved")).unwrap();
        let before = tree(project);
        let refused = workspace.land(&changes, &LandOptions::default()).unwrap();
        assert_eq!(refused.conflicts.len(), 1, "{refused:?}");
        assert_eq!(tree(project), before);
        project.write("clash", "base\n");
        let landing = workspace.land(&changes, &LandOptions::default()).unwrap();
        assert!(landing.conflicts.is_empty(), "{landing:?}");
        let merged = lines.replace("15\n", "fifteen\n").replace("\n3\n", "\nthree\n");
        assert_eq!(project.text("merge"), merged);
        assert_eq!(project.text("moved"), lines.replace("\n9\n", "\nnine\n"));
        assert!(!root.join("move").exists());
    });
}

#[test]
fn a_refresh_never_takes_the_users_lines_away() {
    let lines: String = (1..=20).map(|line| format!("{line}\n")).collect();
    let project = || project_with(&[("clash", &lines), ("gone", "g\n"), ("merge", &lines), ("away", &lines)]);
    each_tier(project, |project, workspace, tools, mut copy| {
        let tier = copy.info().tier;
        command(
            tools,
            &copy,
            "sed -i s/^3$/copy/ clash && rm gone && sed -i s/^3$/copy/ merge && mv away there",
        );
        project.write("clash", lines.replace("\n3\n", "\nuser\n"));
        project.write("gone", "the user's\n");
        project.write("merge", lines.replace("15\n", "user\n"));
        project.write("away", lines.replace("15\n", "user\n"));
        let refreshed = copy.refresh(workspace, &tools.means(&[tier])).unwrap();
        let conflicts: Vec<String> = refreshed.conflicts.iter().map(ToString::to_string).collect();
        assert_eq!(conflicts, ["away", "clash", "gone"], "{tier}: {refreshed:?}");
        // Once more, with nothing new and with something else that is new.
        copy.refresh(workspace, &tools.means(&[tier])).unwrap();
        project.write("other", "o\n");
        copy.refresh(workspace, &tools.means(&[tier])).unwrap();
        let changes = workspace.landings().changes(&copy).unwrap();
        assert_eq!(shown(&changes.files()), "-away ~clash -gone ~merge +there", "{tier}");
        drop(copy);
        let before = tree(project);
        let landing = workspace.land(&changes, &LandOptions::default()).unwrap();
        let conflicts: Vec<String> = landing.conflicts.iter().map(|(path, _)| path.to_string()).collect();
        assert_eq!(conflicts, ["clash", "gone"], "{tier}: {landing:?}");
        assert_eq!(tree(project), before);
        // Damaged, the list is no empty one.
        let list = project.state().join("work").join(session(1).as_str()).join("contested");
        fs::write(&list, "damaged").unwrap();
        let copy = workspace.copies().open(&session(1), &tools.means(&[tier])).unwrap();
        assert!(matches!(workspace.landings().changes(&copy), Err(WorkspaceError::Lost { .. })), "{tier}");
        drop(copy);
        let mine = LandOptions { on_conflict: OnConflict::Mine, ..LandOptions::default() };
        workspace.land(&changes, &mine).unwrap();
        assert_eq!(project.text("clash"), lines.replace("\n3\n", "\nuser\n"));
        assert_eq!(project.text("gone"), "the user's\n");
        // The copy's name has the user's line.
        assert_eq!(project.text("there"), lines.replace("15\n", "user\n"));
        let both = lines.replace("15\n", "user\n").replace("\n3\n", "\ncopy\n");
        assert_eq!(project.text("merge"), both);
    });
}

#[test]
fn large_files() {
    let project = || {
        let mut project = project_with(&[("small", "s\n")]);
        project.limits.kept_file_bytes = 1_000;
        for name in ["same", "edited", "run"] {
            project.write(name, name.repeat(1_000));
        }
        project
    };
    each_tier(project, |_, workspace, tools, copy| {
        assert!(workspace.landings().changes(&copy).unwrap().is_empty(), "{}", copy.info().tier);
        command(
            tools,
            &copy,
            "sed -i s/editedediteded/EDITEDEDITEDED/ edited && chmod 755 run && touch same",
        );
        let changes = workspace.landings().changes(&copy).unwrap();
        assert_eq!(shown(&changes.files()), "~edited ~run", "{}", copy.info().tier);
        let landing = workspace.land(&changes, &LandOptions::default()).unwrap();
        assert_eq!(landing.conflicts.len(), 1, "{landing:?}");
    });
}

#[test]
fn opening_a_copy_forgets_what_was_known_of_it() {
    let project = || project_with(&[("a", "1\n")]);
    each_tier(project, |_, workspace, tools, copy| {
        apply(copy.workspace(), vec![write("a", "2\n")]).unwrap();
        workspace.landings().changes(&copy).unwrap();
        let tier = copy.info().tier;
        drop(copy);
        assert!(workspace.landings().stored_changes(&session(1)).unwrap().is_some());
        let Ok(copy) = workspace.copies().open(&session(1), &tools.means(&[tier])) else {
            skip("it can't be opened again");
            return;
        };
        assert_eq!(workspace.landings().stored_changes(&session(1)).unwrap(), None);
        assert_eq!(shown(&workspace.landings().changes(&copy).unwrap().files()), "~a");
    });
}
