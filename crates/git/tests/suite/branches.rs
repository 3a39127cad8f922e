//! A branch with a commit on it, without the user's work tree, index or `HEAD` being touched.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use journeyman_git::{CommitRefusal, CommitRequest, Git, GitError, PendingBranch};
use journeyman_protocol::RelPath;
use tokio_util::sync::CancellationToken;

use crate::support::{Repo, World, everything, paths};

in_each_tier! {
    a_commit_on_a_new_one,
    nothing_committed_nothing_left,
    names,
    a_hook_that_rejects,
    what_a_crash_leaves_is_swept,
}

fn begin(world: &World, repo: &Repo, root: &std::path::Path, name: &str) -> Result<PendingBranch, GitError> {
    let user = world.user(repo, root);
    let dir = repo.empty_beside("state").join("branch");
    Git::run_blocking(user.begin_branch(name, &dir, &CancellationToken::new()))
}

fn commit(branching: &PendingBranch, names: &[&str]) -> Result<journeyman_git::CreatedCommit, GitError> {
    let commit = CommitRequest { paths: paths(names), message: "why".to_owned(), mixed: Vec::new() };
    Git::run_blocking(branching.commit(&commit, &CancellationToken::new()))
}

/// What is the user's: all but objects, the branch in question, and its log.
fn theirs(repo: &Repo) -> BTreeMap<Vec<u8>, (u32, Vec<u8>)> {
    let mut all = everything(&repo.root);
    all.retain(|name, _| {
        let name = String::from_utf8_lossy(name);
        !name.starts_with(".git/objects") && !name.contains("heads/jm") && name != ".git/worktrees"
    });
    all
}

fn assert_gone(repo: &Repo) {
    let state = fs::read_dir(repo.beside("state")).unwrap().map(|entry| entry.unwrap().file_name());
    assert_eq!(state.collect::<Vec<_>>(), Vec::<std::ffi::OsString>::new());
    assert_eq!(repo.git(&["worktree", "list"]).lines().count(), 1);
    let left = fs::read_dir(repo.root.join(".git/worktrees")).map_or(0, Iterator::count);
    assert_eq!(left, 0);
    repo.assert_sound();
}

fn a_commit_on_a_new_one(world: &World) {
    let repo = Repo::of(&[("a", "text\n"), ("sub/b", "text\n"), ("c", "text\n")]);
    repo.write("a", "mine\n");
    repo.write("c", "mine\n");
    repo.git(&["add", "c"]);
    repo.git(&["config", "branch.autoSetupMerge", "always"]);
    for (root, name) in [(repo.root.clone(), "jm/one"), (repo.root.join("sub"), "jm/two")] {
        let before = theirs(&repo);
        let branching = begin(world, &repo, &root, name).unwrap();
        assert_eq!(branching.base(), repo.git(&["rev-parse", "HEAD"]).trim());
        let file = if root == repo.root { "sub/b" } else { "b" };
        fs::write(branching.root().join(file), "ours\n").unwrap();
        fs::write(branching.root().join("new"), "ours\n").unwrap();
        let done = commit(&branching, &[file, "new"]).unwrap();
        assert_eq!(done.branch.as_deref(), Some(name));
        fs::write(branching.root().join("left"), "more\n").unwrap();
        Git::run_blocking(branching.finish()).unwrap();
        assert_eq!(repo.git(&["rev-parse", name]).trim(), done.id);
        assert_eq!(repo.git(&["rev-parse", &format!("{name}^")]), repo.git(&["rev-parse", "HEAD"]));
        assert_eq!(theirs(&repo), before);
        assert_gone(&repo);
    }
    assert_eq!(repo.git(&["diff", "--name-only", "main", "jm/one"]), "new\nsub/b\n");
    assert_eq!(repo.git(&["diff", "--name-only", "main", "jm/two"]), "sub/b\nsub/new\n");
    assert_eq!(repo.status(), " M a\nM  c\n");
}

fn nothing_committed_nothing_left(world: &World) {
    let repo = Repo::of(&[("a", "text\n")]);
    let before = theirs(&repo);
    let refs = repo.git(&["for-each-ref"]);
    let branching = begin(world, &repo, &repo.root, "jm").unwrap();
    fs::write(branching.root().join("a"), "ours\n").unwrap();
    Git::run_blocking(branching.finish()).unwrap();
    assert_gone(&repo);
    drop(begin(world, &repo, &repo.root, "jm").unwrap());
    assert_gone(&repo);
    // Dropped where a runtime is at work, too.
    let user = world.user(&repo, &repo.root);
    let dir = repo.beside("state/branch");
    Git::run_blocking(async { user.begin_branch("jm", &dir, &CancellationToken::new()).await.map(drop) })
        .unwrap();
    assert_gone(&repo);
    assert_eq!((repo.git(&["for-each-ref"]), theirs(&repo)), (refs, before));
}

fn names(world: &World) {
    let repo = Repo::empty();
    let refuse = |name: &str| match begin(world, &repo, &repo.root, name) {
        Err(GitError::CommitRefused(refusal)) => refusal,
        other => panic!("{name}: {other:?}"),
    };
    assert_eq!(refuse("jm"), CommitRefusal::NoCommit);
    repo.write("a", "text\n");
    repo.commit_all();
    repo.git(&["checkout", "-q", "-b", "there"]);
    for name in ["--force", "-n", "-", "@{-1}", "a..b", "a b", "", "a\0b", "a/", "x.lock", "HEAD~1", "a\nb"] {
        assert!(matches!(refuse(name), CommitRefusal::BranchName(_)), "{name:?}");
    }
    for name in ["main", "there"] {
        assert_eq!(refuse(name), CommitRefusal::BranchExists(name.to_owned()));
    }
    // A directory of references stands where the branch would be.
    let result = begin(world, &repo, &repo.root, "main/sub");
    assert!(matches!(result, Err(GitError::Failed { .. })), "{result:?}");
    assert_gone(&repo);
    let user = world.user(&repo, &repo.root);
    for dir in [repo.root.join("inside"), repo.empty_beside("there")] {
        let result = Git::run_blocking(user.begin_branch("jm", &dir, &CancellationToken::new()));
        assert!(matches!(result, Err(GitError::InvalidRequest(_))), "{result:?}");
    }
    assert_eq!(repo.git(&["branch", "--format=%(refname:short)"]), "main\nthere\n");
    for name in ["jm/täst", "jm.x-1"] {
        drop(begin(world, &repo, &repo.root, name).unwrap());
    }
    assert_gone(&repo);
}

fn a_hook_that_rejects(world: &World) {
    let repo = Repo::of(&[("a", "text\n")]);
    let hook = |name: &str, script: &str| {
        let hook = repo.root.join(".git/hooks").join(name);
        fs::create_dir_all(hook.parent().unwrap()).unwrap();
        fs::write(&hook, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
    };
    hook("pre-commit", "echo no >&2; exit 1");
    let branching = begin(world, &repo, &repo.root, "jm").unwrap();
    fs::write(branching.root().join("a"), "ours\n").unwrap();
    let result = commit(&branching, &["a"]);
    assert!(matches!(&result, Err(GitError::Failed { words, .. }) if words == "no"), "{result:?}");
    drop(branching);
    assert_gone(&repo);
    // Checking out runs no hook: it would run outside of the sandbox.
    hook("post-checkout", "echo > ran; exit 1");
    let branching = begin(world, &repo, &repo.root, "jm").unwrap();
    assert!(!branching.root().join("ran").exists());
    drop(branching);
    assert_gone(&repo);
    assert_eq!(repo.git(&["branch", "--format=%(refname:short)"]), "main\n");
    assert_eq!(repo.status(), "");
}

fn what_a_crash_leaves_is_swept(world: &World) {
    let repo = Repo::of(&[("a", "text\n")]);
    let user = world.user(&repo, &repo.root);
    let state = repo.empty_beside("state");
    for (name, is_committed, is_there) in
        [("empty", false, true), ("kept", true, true), ("lost", false, false)]
    {
        let dir = state.join(name);
        let branching = Git::run_blocking(user.begin_branch(name, &dir, &CancellationToken::new())).unwrap();
        if is_committed {
            fs::write(branching.root().join("a"), "ours\n").unwrap();
            commit(&branching, &["a"]).unwrap();
        }
        std::mem::forget(branching);
        if !is_there {
            fs::remove_dir_all(&dir).unwrap();
        }
    }
    // One of the user's own, and one that claims to be beneath.
    let own = repo.beside("own");
    repo.git(&["worktree", "add", "-q", "-b", "own", &own.display().to_string()]);
    let claim = repo.root.join(".git/worktrees/claim");
    fs::create_dir_all(&claim).unwrap();
    fs::write(claim.join("gitdir"), format!("{}/../own/.git\n", state.display())).unwrap();
    Git::run_blocking(user.remove_stale_branches(&state)).unwrap();
    fs::remove_dir_all(claim).unwrap();
    assert_eq!(fs::read_dir(&state).unwrap().count(), 0);
    assert!(own.join("a").exists());
    assert_eq!(repo.git(&["worktree", "list"]).lines().count(), 2);
    assert_eq!(repo.git(&["branch", "--format=%(refname:short)"]), "kept\nmain\nown\n");
    repo.git(&["worktree", "remove", &own.display().to_string()]);
    // Twice does no harm, nor does it where there never were any.
    Git::run_blocking(user.remove_stale_branches(&state)).unwrap();
    let dirty =
        Git::run_blocking(world.git(&repo.root).find_dirty_paths(&[RelPath::parse("a").unwrap()])).unwrap();
    assert_eq!(dirty, []);
    repo.assert_sound();
}
