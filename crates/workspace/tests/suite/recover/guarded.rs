//! Guarded files that a command changed before it was cut off.

use super::*;

#[test]
fn a_repository_that_a_command_planted_before_it_was_cut_off_is_moved_away() {
    let project = project();
    fs::create_dir_all(project.root().join("own/.git")).unwrap();
    let workspace = guarding(&project);
    let checkpoint = workspace.checkpoint(&session(1), "before").unwrap();
    let snapshot = begin_guarded(&workspace);
    project.write("users/.git/config", "evil");
    project.write("own/.git/config", "the sandbox guards what was there");
    drop(snapshot);
    let workspace = guarding(&project);
    let recovered = recover(&workspace, checkpoint);
    assert_eq!(violations(&recovered), ["the repository users/.git was made and moved to "]);
    assert!(!project.root().join("users/.git").exists() && project.root().join("own/.git").exists());
    workspace.recovery().forget_recovered(&session(1)).unwrap();
    let snapshot = begin_guarded(&workspace);
    drop(snapshot);
    outlive(&project);
    project.write("users/.git/config", "made by a person afterwards");
    assert_eq!(recover(&workspace, checkpoint).violations, []);
    assert!(project.root().join("users/.git").exists());
}

/// Guards `.envrc`, `.vscode` and git's own files.
const GUARDS: GuardRules = GuardRules {
    guarded: |path| path.components().any(|name| matches!(name, b".envrc" | b".vscode" | b".git")),
    on_entering: |path| path.components().any(|name| name == b".envrc"),
};

fn guarding(project: &Project) -> Workspace {
    let options = Options { guarded: Some(GUARDS), ..project.options() };
    Workspace::open(&project.root(), options).unwrap()
}

fn begin_guarded(workspace: &Workspace) -> TreeSnapshot {
    let before = begin(workspace);
    GuardedState::capture_for_recovery(workspace, &before, GUARDS).unwrap();
    before
}

/// The violations, without the place that something was moved to.
fn violations(recovered: &RecoveredCall) -> Vec<String> {
    let shown = recovered.violations.iter().map(ToString::to_string);
    shown
        .map(|text| {
            text.split_inclusive(" to ")
                .next()
                .unwrap()
                .replace(" in /", "\n")
                .lines()
                .next()
                .unwrap()
                .to_owned()
        })
        .collect()
}

#[test]
fn guarded_files_that_a_cut_off_command_made_or_changed_are_moved_away_or_put_back() {
    let project = project();
    project.write(".envrc", "the user's");
    project.write(".vscode/tasks.json", "the user's tasks");
    project.write(".vscode/launch.json", "the user's launch");
    let before = project.tree();
    let workspace = guarding(&project);
    let checkpoint = workspace.checkpoint(&session(1), "before").unwrap();
    drop({
        let snapshot = begin_guarded(&workspace);
        project.write(".envrc", "evil");
        project.write(".vscode/tasks.json", "evil");
        fs::remove_file(project.root().join(".vscode/launch.json")).unwrap();
        project.write("made/by/it/.envrc", "evil");
        project.write(".git/config", "evil");
        snapshot
    });
    let workspace = guarding(&project);
    let told = [
        "the repository .git was made and moved to ",
        ".envrc was changed and put back; the command's version is",
        ".vscode was changed and put back; the command's version is",
        "made/by/it/.envrc was made and moved to ",
    ];
    for recovery in ["first", "second"] {
        let recovered = recover(&workspace, checkpoint);
        assert_eq!(violations(&recovered), told, "{recovery}");
        assert!(recovered.violations.iter().all(|one| one.call == Some(call("shell"))));
        assert_eq!((project.tree(), recovered.left), (before.clone(), vec![]), "{recovery}");
    }
    workspace.recovery().forget_recovered(&session(1)).unwrap();
    assert_eq!(recover(&workspace, checkpoint).violations, []);
}

#[test]
fn a_guarded_file_that_a_person_changed_after_the_crash_stays() {
    let project = project();
    project.write(".envrc", "before");
    project.write(".vscode/tasks.json", "before");
    let workspace = guarding(&project);
    let checkpoint = workspace.checkpoint(&session(1), "before").unwrap();
    drop(begin_guarded(&workspace));
    outlive(&project);
    for path in [".envrc", ".vscode/tasks.json", "new/.envrc", "cloned/.git/config"] {
        project.write(path, "a person's");
    }
    let after = project.tree();
    let recovered = recover(&guarding(&project), checkpoint);
    assert_eq!((recovered.violations, project.tree()), (vec![], after));
}

#[test]
fn guarded_files_that_cut_off_checks_made_are_moved_away() {
    let project = project();
    let workspace = guarding(&project);
    let before = workspace.command_observer().begin_checks(&session(1)).unwrap();
    GuardedState::capture_for_recovery(&workspace, &before, GUARDS).unwrap();
    project.write("out/.envrc", "evil");
    drop(before);
    let workspace = guarding(&project);
    for recovery in ["first", "second"] {
        let recovered = workspace.recovery().recover_checks(&session(1)).unwrap();
        assert_eq!(violations(&recovered), ["out/.envrc was made and moved to "], "{recovery}");
    }
    assert!(!project.root().join("out/.envrc").exists());
    workspace.recovery().forget_recovered(&session(1)).unwrap();
    assert_eq!(workspace.recovery().recover_checks(&session(1)).unwrap(), RecoveredCall::default());
}
