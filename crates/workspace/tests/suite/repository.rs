//! Repositories in the tree: noticed wherever they are, and moved away when a command planted them.

use crate::support;
use journeyman_testkit::test_path;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use journeyman_protocol::{GuardViolation, GuardViolationKind, RelPath};
use journeyman_workspace::{GuardRules, GuardedState, Workspace, WorkspaceError};
use support::{Project, is_ordinary_user, mode, rel, session, set_mode};

fn names(paths: &[RelPath]) -> Vec<String> {
    paths.iter().map(ToString::to_string).collect()
}

#[test]
fn repositories_are_found_at_any_depth_and_in_any_letter_case() {
    let project = Project::with(&[
        (".git/HEAD", "h"),
        ("a/file", "1"),
        ("a/.GIT/HEAD", "h"),
        ("b/c/.git", "gitdir: ../elsewhere"),
        ("ignored/.git/HEAD", "h"),
        (".gitignore", "ignored/\n"),
        ("gitless/.github/x", "x"),
    ]);
    fs::create_dir(project.root().join("d")).unwrap();
    symlink("/etc", project.root().join("d/.Git")).unwrap();
    let workspace = project.open();
    let expected = [".git", "a/.GIT", "b/c/.git", "d/.Git"];
    assert_eq!(names(&workspace.repositories().unwrap()), expected);
    assert_eq!(names(&workspace.command_observer().begin().unwrap().repositories()), expected);
    // One that appears where nothing else changes is seen too.
    project.write("a/.git/config", "x");
    let after = workspace.command_observer().begin().unwrap();
    assert_eq!(names(&after.repositories()), [".git", "a/.GIT", "a/.git", "b/c/.git", "d/.Git"]);
    // As is one that is in the tree which the stat cache holds.
    workspace.checkpoint(&session(1), "x").unwrap();
    assert_eq!(project.open().command_observer().begin().unwrap().repositories(), after.repositories());
}

#[test]
fn the_canonical_path_is_where_a_write_lands() {
    let project = Project::with(&[("real/file", "1")]);
    symlink("real", project.root().join("link")).unwrap();
    symlink("../.git/hooks", project.root().join("real/hooks")).unwrap();
    symlink("/etc", project.root().join("out")).unwrap();
    let workspace = project.open();
    let table = [
        ("real/file", "real/file"),
        ("link/file", "real/file"),
        ("link/new", "real/new"),
        ("link/hooks/pre-commit", ".git/hooks/pre-commit"),
        ("not/there", "not/there"),
    ];
    for (given, expected) in table {
        assert_eq!(workspace.canonicalize(&rel(given)).unwrap(), rel(expected), "{given}");
    }
    let outside = workspace.canonicalize(&rel("out/passwd")).unwrap_err();
    assert!(matches!(outside, WorkspaceError::Outside { .. }), "{outside}");
}

/// Ends a command, and returns what was moved out of the tree, with its new place.
fn moved_away(workspace: &Workspace, guard: GuardedState) -> BTreeMap<String, PathBuf> {
    let (_, forbidden) = guard.revert_and_journal(workspace, false, || Ok(Vec::new()));
    assert_eq!(forbidden.problem, None);
    let moved = |one: GuardViolation| Some((one.path.to_string(), PathBuf::from(one.moved_to?)));
    forbidden.violations.into_iter().filter_map(moved).collect()
}

#[test]
fn a_planted_repository_is_moved_out_of_the_tree() {
    let project = Project::with(&[(".git/HEAD", "own"), ("a/file", "1"), ("b/file", "1")]);
    let workspace = project.open();
    let guard = GuardedState::capture(&workspace, GUARDS).unwrap();
    project.write("a/.git/hooks/pre-commit", "evil");
    project.write("b/.GIT", "gitdir: /tmp/evil");
    symlink("/etc", project.root().join("a/.Git")).unwrap();
    set_mode(&project.root().join("a/.git"), 0o000);
    let moved = moved_away(&workspace, guard);
    assert_eq!(moved.keys().collect::<Vec<_>>(), ["a/.Git", "a/.git", "b/.GIT"]);
    assert!(moved.values().all(|place| place.starts_with(project.state().join("removed"))));
    set_mode(&moved["a/.git"], 0o700);
    assert_eq!(fs::read_to_string(moved["a/.git"].join("hooks/pre-commit")).unwrap(), "evil");
    assert_eq!(fs::read_to_string(&moved["b/.GIT"]).unwrap(), "gitdir: /tmp/evil");
    assert_eq!(fs::read_to_string(&moved["a/.Git"]).unwrap(), "/etc");
    assert_eq!(names(&workspace.repositories().unwrap()), [".git"]);
    assert_eq!(project.text("a/file"), "1");
}

#[test]
fn nothing_but_planted_repositories_is_moved() {
    let project = Project::with(&[(".git/HEAD", "own"), ("file", "1"), ("real/.git/HEAD", "h")]);
    symlink("real", project.root().join("link")).unwrap();
    let workspace = project.open();
    let guard = GuardedState::capture(&workspace, GUARDS).unwrap();
    project.write("file", "2");
    assert_eq!(moved_away(&workspace, guard), BTreeMap::new());
    assert_eq!((project.text(".git/HEAD"), project.text("real/.git/HEAD")), ("own".into(), "h".into()));
    // Where there was none when the workspace was opened, the root's is a planted one as well.
    let bare = Project::with(&[("file", "1")]);
    let workspace = bare.open();
    let guard = GuardedState::capture(&workspace, GUARDS).unwrap();
    bare.write(".git/config", "evil");
    assert_eq!(moved_away(&workspace, guard).keys().collect::<Vec<_>>(), [".git"]);
    assert_eq!(workspace.repositories().unwrap(), vec![]);
}

#[test]
fn a_repository_behind_new_rules_or_tags_is_found() {
    let project = Project::with(&[("src/a", "1"), ("lib/deep/b", "1")]);
    let workspace = project.open();
    let before = workspace.command_observer().begin().unwrap();
    project.write(".gitignore", "src/\n");
    project.write("src/.git/config", "evil");
    project.write("lib/CACHEDIR.TAG", "Signature: 8a477f597d28d172789f06886806bc55\n");
    project.write("lib/deep/.git/config", "evil");
    project.write("new/CACHEDIR.TAG", "Signature: 8a477f597d28d172789f06886806bc55\n");
    project.write("new/.git/config", "evil");
    workspace.command_observer().end(before, &session(1), None).unwrap();
    let expected = ["lib/deep/.git", "new/.git", "src/.git"];
    assert_eq!(names(&workspace.repositories().unwrap()), expected);
}

#[test]
fn permissions_keep_no_repository_in_the_tree() {
    if !is_ordinary_user(test_path!("permissions_keep_no_repository_in_the_tree")) {
        return;
    }
    let project = Project::with(&[("a/file", "1"), ("b/file", "1")]);
    let root = project.root();
    let workspace = project.open();
    let guard = GuardedState::capture(&workspace, GUARDS).unwrap();
    project.write("a/.git/config", "evil");
    symlink("/etc", root.join("b/.git")).unwrap();
    for (path, mode) in [("a/.git", 0o000), ("a", 0o555), ("b", 0o555)] {
        set_mode(&root.join(path), mode);
    }
    assert_eq!(moved_away(&workspace, guard).len(), 2);
    assert_eq!(workspace.repositories().unwrap(), vec![]);
    assert_eq!((mode(&root.join("a")), mode(&root.join("b"))), (0o555, 0o555));
    for path in ["a", "b"] {
        set_mode(&root.join(path), 0o755);
    }
}

/// Guards `.envrc` everywhere, and `.vscode` where it isn't among dependencies.
const GUARDS: GuardRules = GuardRules {
    guarded: |path| path.components().any(|name| matches!(name, b".envrc" | b".vscode")),
    on_entering: |path| path.components().any(|name| name == b".envrc"),
};

#[test]
fn a_name_that_comes_into_a_known_directory_is_found_from_command_to_command() {
    let project = Project::with(&[
        (".gitignore", "cache/\nnode_modules/\n"),
        ("cache/a/b/file", "1"),
        ("src/file", "1"),
    ]);
    let workspace = project.open();
    for round in 0..3 {
        let guard = GuardedState::capture(&workspace, GUARDS).unwrap();
        for dir in ["cache/a/b", "src", "node_modules/p"] {
            project.write(&format!("{dir}/.envrc"), "evil");
            project.write(&format!("{dir}/.vscode/tasks.json"), "evil");
        }
        let (_, aftermath) = guard.revert_and_journal(&workspace, true, || Ok(Vec::new()));
        let mut found: Vec<String> = aftermath.violations.iter().map(|one| one.path.to_string()).collect();
        found.sort();
        let expected =
            ["cache/a/b/.envrc", "cache/a/b/.vscode", "node_modules/p/.envrc", "src/.envrc", "src/.vscode"];
        assert_eq!(found, expected, "{round}");
        assert!(
            aftermath
                .violations
                .iter()
                .all(|one| one.kind == GuardViolationKind::Made && one.moved_to.is_some())
        );
        assert!(aftermath.problem.is_none());
    }
    assert_eq!(project.text("node_modules/p/.vscode/tasks.json"), "evil");
}

#[test]
fn no_command_begins_where_not_every_directory_can_be_looked_at() {
    let mut project = Project::with(&[(".gitignore", "cache/\n")]);
    for number in 0..20 {
        project.write(&format!("cache/{number}/file"), "1");
    }
    project.limits.max_files = 10;
    let refused = GuardedState::capture(&project.open(), GUARDS).unwrap_err();
    assert!(matches!(refused, WorkspaceError::TooManyDirectories { limit: 10 }), "{refused}");
}
