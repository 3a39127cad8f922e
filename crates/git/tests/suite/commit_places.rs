//! Commits in repositories without a commit, in parts of one, and with a work tree elsewhere.

use std::fs;

use journeyman_git::{Git, GitError};
use tokio_util::sync::CancellationToken;

use crate::commits::{assert_no_litter, commit, hook, request, user};
use crate::support::{Repo, World, paths};

in_each_tier! {
    first_and_detached,
    a_part_of_a_repository,
    a_work_tree_elsewhere,
}

fn first_and_detached(world: &World) {
    let repo = Repo::empty();
    repo.write("a", "ours\n");
    repo.write("b", "mine\n");
    repo.git(&["add", "b"]);
    let done = commit(world, &repo, &["a"], "first").unwrap();
    assert_eq!((done.branch.as_deref(), done.paths), (Some("main"), paths(&["a"])));
    assert_eq!(repo.status(), "A  b\n");
    repo.git(&["checkout", "-q", "--detach"]);
    repo.write("a", "again\n");
    let done = commit(world, &repo, &["a"], "second").unwrap();
    assert_eq!(done.branch, None);
    assert_eq!(repo.git(&["rev-parse", "main"]), repo.git(&["rev-parse", "HEAD^"]));
    assert_eq!(repo.status(), "A  b\n");
    let empty = Repo::empty();
    empty.write("a", "ours\n");
    commit(world, &empty, &["a"], "first, without an index").unwrap();
    assert_eq!(empty.status(), "");
    // A hook's file is in the index, too, so that the next commit doesn't delete it.
    let hooked = Repo::empty();
    hooked.write("a", "ours\n");
    hooked.write("staged", "mine\n");
    hooked.git(&["add", "staged"]);
    hook(&hooked, "pre-commit", "for name in made staged; do echo hook > $name; git add $name; done");
    let done = commit(world, &hooked, &["a"], "first, with a hook").unwrap();
    assert_eq!(done.added_by_hooks, paths(&["made", "staged"]));
    assert_eq!(hooked.git(&["show", ":staged"]), "mine\n");
    assert_eq!(hooked.status(), "MM staged\n");
    assert_no_litter(&repo);
}

fn a_part_of_a_repository(world: &World) {
    let repo = Repo::of(&[("a", "text\n"), ("sub/a", "text\n")]);
    let linked = repo.beside("linked");
    repo.git(&["worktree", "add", "-q", "-b", "side", &linked.display().to_string()]);
    for root in [repo.root.clone(), linked.clone()] {
        for name in ["a", "sub/a", "sub/new"] {
            fs::write(root.join(name), "ours\n").unwrap();
        }
        let user = user(world, &repo, &root.join("sub"));
        let commit = request(&["a", "new"], "a part");
        let done = Git::run_blocking(user.commit(&commit, &CancellationToken::new())).unwrap();
        assert_eq!(done.paths, paths(&["a", "new"]));
        let listed = repo.git_in(&root, &["show", "--name-only", "--format=", "HEAD"]);
        assert_eq!(listed, "sub/a\nsub/new\n");
        assert_eq!(repo.git_in(&root, &["status", "--porcelain"]), " M a\n");
    }
    repo.git(&["worktree", "remove", "--force", &linked.display().to_string()]);
    assert_no_litter(&repo);
}

/// With `core.worktree`, git would commit the file of the same name there.
fn a_work_tree_elsewhere(world: &World) {
    let repo = Repo::of(&[("a", "text\n")]);
    repo.write("a", "ours\n");
    let elsewhere = repo.empty_beside("elsewhere");
    fs::write(elsewhere.join("a"), "theirs\n").unwrap();
    repo.git(&["config", "core.worktree", elsewhere.to_str().unwrap()]);
    let before = repo.git(&["rev-parse", "HEAD"]);
    let result = commit(world, &repo, &["a"], "why");
    assert!(matches!(result, Err(GitError::Broken { .. })), "{result:?}");
    assert_eq!(repo.git(&["rev-parse", "HEAD"]), before);
    repo.git(&["config", "core.worktree", ".."]);
    commit(world, &repo, &["a"], "why").unwrap();
    assert_eq!(repo.git(&["show", "HEAD:a"]), "ours\n");
}
