//! Copies of trees that are repositories, in all their sorts. The repository is seen by commands,
//! and stays as it is.

use std::fs;
use std::path::{Path, PathBuf};

use journeyman_workspace::{IsolationTier, ListOptions, Workspace};

use crate::support::{Project, apply, delete, session, shown, write};
use crate::trees::{Tools, age, facts, git, isolate, odd_tree, project_with, run};

/// What makes a repository what it is, for comparing.
fn repository(dir: &Path) -> (String, String, String) {
    let fsck = git(dir, &["fsck", "--no-dangling"]);
    (git(dir, &["status", "--porcelain", "--ignored"]), fsck, git(dir, &["worktree", "list", "--porcelain"]))
}

fn commit(dir: &Path) {
    git(dir, &["add", "-A"]);
    git(dir, &["commit", "-qm", "all"]);
}

/// Makes copies in every way, looks whether they are the tree, changes them, and whether the tree
/// stayed as it was.
fn check(project: &Project, root: &Path, without: &[&str]) {
    let before = (repository(root), facts(root, &[]));
    let options = project.options();
    let workspace = Workspace::open(root, options).unwrap();
    let tools = Tools::at(root);
    let listed = workspace.list(ListOptions::default()).unwrap().paths;
    let found = workspace.repositories().unwrap();
    for tier in [IsolationTier::Overlay, IsolationTier::Worktree, IsolationTier::Copy] {
        let Some(copy) = isolate(&workspace, &tools, tier) else { continue };
        let inside = copy.workspace();
        let out: Vec<&str> = without.iter().copied().chain([".git"]).collect();
        let skip = |facts: std::collections::BTreeMap<Vec<u8>, crate::trees::Fact>| {
            let in_git = |path: &[u8]| path.split(|&byte| byte == b'/').any(|name| name == b".git");
            let kept = facts.into_iter().filter(move |(path, _)| !in_git(path));
            kept.collect::<Vec<_>>()
        };
        let (ours, theirs) = (skip(facts(root, &out)), skip(facts(&inside.access_path().join("."), &out)));
        assert_eq!(theirs.len(), ours.len(), "{tier}");
        for (ours, theirs) in ours.iter().zip(&theirs) {
            assert_eq!(ours, theirs, "{tier}: {}", String::from_utf8_lossy(&ours.0));
        }
        assert_eq!(inside.list(ListOptions::default()).unwrap().paths, listed, "{tier}");
        assert_eq!(inside.repositories().unwrap(), found, "{tier}");
        let said = run(&tools, inside, "git status --porcelain");
        assert_eq!(said, git(root, &["status", "--porcelain"]), "{tier}: what git says inside");
        apply(inside, vec![write("in-the-copy", "x")]).unwrap();
        let said = run(
            &tools,
            inside,
            "git status --porcelain | grep -c in-the-copy; echo x 2>/dev/null > .git/planted && echo written; git commit -qm x --allow-empty 2>/dev/null && echo committed; true",
        );
        assert!(said == "1\n", "{tier}: {said}");
        assert_eq!(shown(&workspace.landings().changes(&copy).unwrap().files()), "+in-the-copy", "{tier}");
        drop(copy);
        workspace.copies().discard(&session(1)).unwrap();
        let after = (repository(root), facts(root, &[]));
        assert_eq!(after.0, before.0, "{tier}");
        // Git's own notes of when it looked are git's.
        let not_git = |(path, _): &(&Vec<u8>, &crate::trees::Fact)| !path.starts_with(b".git");
        let (after, before) = (after.1.iter().filter(not_git), before.1.iter().filter(not_git));
        assert!(after.eq(before), "{tier}: the tree changed");
    }
}

#[test]
fn a_repository_with_everything_in_it() {
    let project = odd_tree();
    let root = project.root();
    project.write(".gitignore", "ignored/\n*.o\n");
    project.write("ignored/cache", "c");
    project.write("main.o", "o");
    git(&root, &["init", "-q"]);
    fs::remove_file(root.join("sparse")).unwrap();
    commit(&root);
    // Changed, new, gone, staged, and another mode.
    project.write("main.rs", "changed\n");
    project.write("untracked/new", "new");
    project.write("staged", "staged");
    git(&root, &["add", "staged"]);
    fs::remove_file(root.join("..foo")).unwrap();
    fs::remove_dir_all(root.join("a/b")).unwrap();
    age(&root.join("a"));
    check(&project, &root, &["ignored", "main.o"]);
}

#[test]
fn a_repository_without_commits() {
    let project = project_with(&[("file", "x"), ("dir/other", "y")]);
    git(&project.root(), &["init", "-q"]);
    let tools = Tools::of(&project);
    let workspace = project.open();
    let before = repository(&project.root());
    for tier in [IsolationTier::Overlay, IsolationTier::Copy] {
        let Some(copy) = isolate(&workspace, &tools, tier) else { continue };
        assert_eq!(run(&tools, copy.workspace(), "git status --porcelain"), "?? dir/\n?? file\n", "{tier}");
        drop(copy);
        workspace.copies().discard(&session(1)).unwrap();
    }
    let means = tools.means(&[IsolationTier::Worktree, IsolationTier::Copy]);
    let copy = workspace.copies().create(&session(1), &means).unwrap();
    println!("passed over: {:?}", copy.unavailable_tiers());
    assert_eq!(shown(&workspace.landings().changes(&copy).unwrap().files()), "");
    drop(copy);
    assert_eq!(repository(&project.root()), before);
}

#[test]
fn submodules_and_nested_repositories() {
    let project = project_with(&[("file", "x")]);
    let (root, other) = (project.root(), project.dir.path().join("other"));
    fs::create_dir(&other).unwrap();
    fs::write(other.join("inner"), "inner").unwrap();
    git(&other, &["init", "-q"]);
    commit(&other);
    git(&root, &["init", "-q"]);
    git(&root, &["submodule", "--quiet", "add", other.to_str().unwrap(), "sub/module"]);
    commit(&root);
    project.write("nested/own", "n");
    git(&root.join("nested"), &["init", "-q"]);
    commit(&root.join("nested"));
    project.write("nested/changed", "n");
    project.write("sub/module/inner", "changed");
    check(&project, &root, &[]);
    for dir in ["nested", "sub/module"] {
        git(&root.join(dir), &["fsck"]);
    }
}

#[test]
fn a_linked_worktree() {
    let project = project_with(&[("file", "x"), ("dir/other", "y")]);
    let root = project.root();
    git(&root, &["init", "-q"]);
    commit(&root);
    let linked: PathBuf = project.dir.path().join("linked");
    git(&root, &["worktree", "add", "-q", linked.to_str().unwrap(), "-b", "linked"]);
    fs::write(linked.join("new"), "new").unwrap();
    let workspace = Workspace::open(&linked, project.options()).unwrap();
    let tools = Tools::at(&linked);
    let before = (repository(&linked), facts(&linked, &[]));
    for tier in [IsolationTier::Overlay, IsolationTier::Worktree, IsolationTier::Copy] {
        let Some(copy) = isolate(&workspace, &tools, tier) else { continue };
        let found = facts(&copy.workspace().access_path().join("."), &[]);
        assert_eq!(found, before.1, "{tier}");
        apply(copy.workspace(), vec![delete("file")]).unwrap();
        assert_eq!(shown(&workspace.landings().changes(&copy).unwrap().files()), "-file", "{tier}");
        drop(copy);
        workspace.copies().discard(&session(1)).unwrap();
        assert_eq!((repository(&linked), facts(&linked, &[])), before, "{tier}");
    }
    git(&root, &["fsck"]);
}

#[test]
fn a_sparse_checkout() {
    let project = project_with(&[("in/file", "x"), ("out/file", "y"), ("top", "t")]);
    let root = project.root();
    git(&root, &["init", "-q"]);
    commit(&root);
    git(&root, &["sparse-checkout", "set", "in"]);
    assert!(!root.join("out").exists());
    check(&project, &root, &[]);
    assert!(!root.join("out").exists());
}

#[test]
fn a_project_in_a_part_of_a_repository() {
    let project = Project::new();
    let top = project.root();
    project.write("part/src/file", "x");
    project.write("part/built.o", "o");
    project.write("elsewhere", "y");
    project.write(".gitignore", "*.o\n");
    git(&top, &["init", "-q"]);
    commit(&top);
    project.write("part/src/new", "n");
    let part = top.join("part");
    let workspace = Workspace::open(&part, project.options()).unwrap();
    let tools = Tools::at(&part);
    let before = (repository(&top), facts(&top, &[".git"]));
    let wanted = ["src/file", "src/new"];
    for tier in [IsolationTier::Overlay, IsolationTier::Worktree, IsolationTier::Copy] {
        let copy = match workspace.copies().create(&session(1), &tools.means(&[tier])) {
            Ok(copy) => copy,
            Err(error) => {
                println!("{tier}: {error}");
                continue;
            }
        };
        let paths = copy.workspace().list(ListOptions::default()).unwrap().paths;
        assert_eq!(paths.iter().map(ToString::to_string).collect::<Vec<_>>(), wanted, "{tier}");
        assert_eq!(shown(&workspace.landings().changes(&copy).unwrap().files()), "", "{tier}");
        drop(copy);
        workspace.copies().discard(&session(1)).unwrap();
    }
    assert_eq!((repository(&top), facts(&top, &[".git"])), before);
}

#[test]
fn line_endings_and_filters_are_the_trees_own() {
    let project = project_with(&[
        (".gitattributes", "*.txt text eol=crlf\n*.up filter=up\n"),
        ("lines.txt", "one\ntwo\n"),
        ("loud.up", "quiet\n"),
    ]);
    let root = project.root();
    git(&root, &["init", "-q"]);
    git(&root, &["config", "filter.up.clean", "tr A-Z a-z"]);
    git(&root, &["config", "filter.up.smudge", "tr a-z A-Z"]);
    commit(&root);
    // Git takes both for unchanged, and would check out others.
    assert_eq!(git(&root, &["status", "--porcelain"]), "");
    project.write("lines.txt", "one\ntwo\n");
    check(&project, &root, &[]);
}
