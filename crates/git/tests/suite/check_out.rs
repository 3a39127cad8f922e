//! What `HEAD` has in a directory of its own, and what the user's tree has otherwise.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::Path;

use journeyman_git::GitError;
use journeyman_protocol::RelPath;

use crate::support::{Repo, World, everything, paths};

in_each_tier! {
    a_clean_tree_is_the_same,
    what_differs_is_named,
    any_name,
    conversions,
    line_ends_by_the_users_own_settings,
    unwatched_files,
    sparse,
    submodules_and_nested_repositories,
    other_shapes,
    no_commits,
    borrowed_objects,
    refused,
}

/// Checks out and holds the promise: whatever isn't named is the same on both sides, and the
/// repository wasn't touched.
fn check(world: &World, repo: &Repo, root: &Path, expected: &[&str]) {
    assert_eq!(check_bytes(world, repo, root), paths(expected));
}

fn check_bytes(world: &World, repo: &Repo, root: &Path) -> Vec<RelPath> {
    let into = repo.empty_beside("copy");
    let before = everything(&repo.root);
    let named = world.git(root).check_out(&into).unwrap();
    assert_eq!(everything(&repo.root), before, "the repository was touched");
    let is_named = |name: &[u8]| {
        named
            .iter()
            .any(|path| name == path.as_bytes() || name.starts_with(&[path.as_bytes(), b"/"].concat()))
    };
    let plain = |top: &Path| {
        let mut all = everything(top);
        // Directories aren't git's, nor are the ignored files of these tests.
        all.retain(|name, (mode, _)| {
            let is_git = name == b".git" || name.starts_with(b".git/");
            *mode & 0o170_000 != 0o040_000 && !is_git && !name.starts_with(b"ignored") && !is_named(name)
        });
        all
    };
    let (theirs, ours) = (plain(root), plain(&into));
    assert_eq!(ours, theirs);
    fs::remove_dir_all(&into).unwrap();
    repo.assert_sound();
    named
}

fn a_clean_tree_is_the_same(world: &World) {
    let repo = Repo::empty();
    repo.write("a", "a\n");
    repo.write("deep/er/b", vec![0_u8; 70_000]);
    repo.write("run.sh", "#!/bin/sh\n");
    repo.make_executable("run.sh");
    symlink("deep/er/b", repo.root.join("link")).unwrap();
    symlink("/nowhere", repo.root.join("dangling")).unwrap();
    repo.commit_all();
    check(world, &repo, &repo.root, &[]);
}

fn what_differs_is_named(world: &World) {
    let files = ["kept", "edited", "staged", "gone", "unstaged-gone", "old", "mode", "kind", "both", "dir/x"];
    let repo = Repo::of(&files.map(|name| (name, "text\n")));
    repo.write(".gitignore", "ignored*\n");
    repo.write("edited", "other\n");
    repo.write("staged", "other\n");
    repo.git(&["add", "staged"]);
    repo.git(&["rm", "-q", "gone"]);
    fs::remove_file(repo.root.join("unstaged-gone")).unwrap();
    repo.git(&["mv", "old", "new"]);
    repo.make_executable("mode");
    fs::remove_file(repo.root.join("kind")).unwrap();
    symlink("kept", repo.root.join("kind")).unwrap();
    repo.write("both", "staged\n");
    repo.git(&["add", "both"]);
    repo.write("both", "text\n");
    repo.write("untracked", "");
    repo.write("fresh/dir/file", "");
    repo.write("ignored.log", "");
    repo.write("intended", "x");
    repo.git(&["add", "--intent-to-add", "intended"]);
    fs::rename(repo.root.join("dir"), repo.root.join("moved")).unwrap();
    symlink("moved", repo.root.join("dir")).unwrap();
    let expected = [
        ".gitignore",
        "both",
        "dir",
        "dir/x",
        "edited",
        "fresh/dir/file",
        "gone",
        "intended",
        "kind",
        "mode",
        "moved/x",
        "new",
        "old",
        "staged",
        "unstaged-gone",
        "untracked",
    ];
    check(world, &repo, &repo.root, &expected);
}

fn any_name(world: &World) {
    let repo = Repo::empty();
    let names: [&[u8]; 9] = [
        b"--force",
        b"-n",
        b"line\nbreak",
        b"quo\"te'",
        b"\xff\xfe",
        b"sp ace ",
        b"ta\tb",
        b":(top)x",
        b"*?[",
    ];
    for name in names {
        repo.write(OsStr::from_bytes(name), "text");
    }
    repo.commit_all();
    check(world, &repo, &repo.root, &[]);
    for name in names {
        repo.write(OsStr::from_bytes(name), "other");
        repo.write(OsStr::from_bytes(&[name, b".new"].concat()), "other");
    }
    let mut expected: Vec<Vec<u8>> = names.iter().map(|name| name.to_vec()).collect();
    expected.extend(names.iter().map(|name| [*name, b".new"].concat()));
    expected.sort();
    assert_eq!(check_bytes(world, &repo, &repo.root), paths(&expected));
}

/// Filters must not run, so what they made differs; what git converts by itself comes out the same.
fn conversions(world: &World) {
    let repo = Repo::empty();
    let mark = repo.beside("mark");
    let attributes = "*.bat text eol=crlf\n*.id ident\n*.u16 text working-tree-encoding=UTF-16\n\
                      *.big filter=big\n*.auto text=auto\n";
    repo.write(".gitattributes", attributes);
    repo.git(&["config", "filter.big.clean", &format!("touch {}; tr a-z A-Z", mark.display())]);
    repo.git(&["config", "filter.big.smudge", &format!("touch {}; tr A-Z a-z", mark.display())]);
    repo.git(&["config", "filter.big.required", "true"]);
    repo.write("x.bat", "one\r\ntwo\r\n");
    repo.write("lone.bat", "one\ntwo\n");
    repo.write("x.id", "$Id$\n");
    repo.write("x.u16", b"\xff\xfea\0\n\0");
    repo.write("x.big", "content\n");
    repo.write("crlf.auto", "one\r\n");
    repo.write("lf.auto", "one\n");
    repo.commit_all();
    assert!(mark.exists());
    fs::remove_file(&mark).unwrap();
    check(world, &repo, &repo.root, &["crlf.auto", "lone.bat", "x.big", "x.id", "x.u16"]);
    assert!(!mark.exists(), "a filter ran");
    // As long as one that the filter made.
    repo.write("x.big", "changed\n");
    check(world, &repo, &repo.root, &["crlf.auto", "lone.bat", "x.big", "x.id", "x.u16"]);
    assert!(!mark.exists(), "a filter ran");
}

fn line_ends_by_the_users_own_settings(world: &World) {
    let repo = Repo::empty();
    fs::write(repo.beside("home/.gitconfig"), "[core]\n\tautocrlf = true\n").unwrap();
    repo.write("text", "one\ntwo\n");
    repo.commit_all();
    fs::remove_file(repo.root.join("text")).unwrap();
    repo.git(&["checkout", "text"]);
    assert_eq!(fs::read(repo.root.join("text")).unwrap(), b"one\r\ntwo\r\n");
    check(world, &repo, &repo.root, &["text"]);
}

fn unwatched_files(world: &World) {
    let repo = Repo::of(&["assumed", "skipped", "missing", "plain"].map(|name| (name, "text\n")));
    repo.git(&["update-index", "--assume-unchanged", "assumed"]);
    repo.git(&["update-index", "--skip-worktree", "skipped", "missing"]);
    repo.write("assumed", "TEXT\n");
    repo.write("skipped", "TEXT\n");
    fs::remove_file(repo.root.join("missing")).unwrap();
    assert_eq!(repo.status(), "");
    check(world, &repo, &repo.root, &["assumed", "missing", "skipped"]);
}

fn sparse(world: &World) {
    for how in ["--sparse-index", "--no-sparse-index"] {
        let repo =
            Repo::of(&["top", "in/a", "in/deep/b", "out/c", "out/deep/d"].map(|name| (name, "text\n")));
        repo.git(&["sparse-checkout", "set", "--cone", how, "in"]);
        assert!(!repo.root.join("out").exists());
        check(world, &repo, &repo.root, &[]);
        repo.write("in/a", "other\n");
        repo.write("out/new", "text\n");
        fs::remove_file(repo.root.join("in/deep/b")).unwrap();
        let into = repo.empty_beside("look");
        world.git(&repo.root).check_out(&into).unwrap();
        assert!(!into.join("out").exists());
        check(world, &repo, &repo.root, &["in/a", "in/deep/b", "out/new"]);
        check(world, &repo, &repo.root.join("in"), &["a", "deep/b"]);
    }
}

fn submodules_and_nested_repositories(world: &World) {
    let other = Repo::of(&[("lib", "text\n")]);
    let repo = Repo::of(&[("a", "text\n")]);
    let from = other.root.display().to_string();
    repo.git(&["submodule", "--quiet", "add", &from, "sub"]);
    repo.commit_all();
    fs::create_dir(repo.root.join("nested")).unwrap();
    repo.git_in(&repo.root.join("nested"), &["init", "-q"]);
    repo.write("nested/file", "text\n");
    check(world, &repo, &repo.root, &["nested", "sub"]);
    // The submodule as a project of its own: its git directory lies elsewhere.
    check(world, &repo, &repo.root.join("sub"), &[]);
    repo.write("sub/lib", "other\n");
    check(world, &repo, &repo.root.join("sub"), &["lib"]);
    check(world, &repo, &repo.root, &["nested", "sub"]);
}

fn other_shapes(world: &World) {
    let repo =
        Repo::of(&[("a", "text\n"), ("sub dir/deep/b", "text\n"), ("sub dir/c", "text\n"), ("z", "text\n")]);
    let linked = repo.beside("linked");
    repo.git(&["worktree", "add", "-q", "-b", "other", &linked.display().to_string()]);
    fs::write(linked.join("a"), "other\n").unwrap();
    check(world, &repo, &linked, &["a"]);
    check(world, &repo, &linked.join("sub dir"), &[]);
    repo.git(&["worktree", "remove", "--force", &linked.display().to_string()]);

    repo.write("z", "other\n");
    repo.write(".gitignore", "*.log\n");
    repo.write("sub dir/x.log", "");
    repo.write("sub dir/deep/b", "other\n");
    repo.write("sub dir/new", "other\n");
    fs::create_dir_all(repo.beside("ignored")).unwrap();
    let into = repo.empty_beside("copy");
    let named = world.git(&repo.root.join("sub dir")).check_out(&into).unwrap();
    assert_eq!(named, paths(&["deep/b", "new"]));
    let found: Vec<Vec<u8>> = everything(&into).into_keys().collect();
    assert_eq!(found, [b"c".to_vec(), b"deep".to_vec(), b"deep/b".to_vec()]);
    fs::remove_dir_all(&into).unwrap();

    // One that no commit has, and one that was a file in the last commit.
    repo.write("late/x", "text\n");
    check(world, &repo, &repo.root.join("late"), &["x"]);
    fs::remove_file(repo.root.join("a")).unwrap();
    repo.write("a/x", "text\n");
    check(world, &repo, &repo.root.join("a"), &["x"]);

    repo.git(&["checkout", "-q", "--detach"]);
    check(world, &repo, &repo.root.join("sub dir/deep"), &["b"]);
    assert_eq!(repo.git(&["worktree", "list"]).lines().count(), 1);
}

fn no_commits(world: &World) {
    let repo = Repo::empty();
    check(world, &repo, &repo.root, &[]);
    repo.write("a", "text\n");
    repo.write("b", "text\n");
    repo.git(&["add", "b"]);
    check(world, &repo, &repo.root, &["a", "b"]);
}

fn borrowed_objects(world: &World) {
    let other = Repo::of(&[("a", "text\n"), ("b", "text\n")]);
    let repo = Repo::empty();
    let clone = repo.beside("clone");
    let (from, to) = (other.root.display().to_string(), clone.display().to_string());
    repo.git(&["clone", "-q", "--shared", &from, &to]);
    fs::write(clone.join("a"), "other\n").unwrap();
    check(world, &repo, &clone, &["a"]);
}

fn refused(world: &World) {
    let repo = Repo::of(&[("a", "text\n")]);
    let inside = repo.root.join("inside");
    fs::create_dir(&inside).unwrap();
    let refused = world.git(&repo.root).check_out(&inside);
    assert!(matches!(refused, Err(GitError::InvalidRequest(_))), "{refused:?}");
    let full = repo.empty_beside("full");
    fs::write(full.join("x"), "").unwrap();
    let refused = world.git(&repo.root).check_out(&full);
    assert!(matches!(refused, Err(GitError::InvalidRequest(_))), "{refused:?}");
    let refused = world.git(&full).check_out(&repo.empty_beside("copy"));
    assert!(matches!(refused, Err(GitError::NoRepository { .. })), "{refused:?}");
    let missing = world.git(&repo.root).with_path("/nonexistent").check_out(&repo.beside("copy"));
    assert!(matches!(missing, Err(GitError::Missing)), "{missing:?}");
    let git_dir = world.git(&repo.root.join(".git")).check_out(&repo.beside("copy"));
    assert!(matches!(git_dir, Err(GitError::NoWorkTree { .. })), "{git_dir:?}");
}
