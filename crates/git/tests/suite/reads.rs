//! What is told of a repository.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;

use journeyman_git::{EntryStatus, Git, GitError, OperationInProgress, StatusChange, StatusEntry};
use journeyman_protocol::RelPath;

use crate::support::{Repo, World, paths};

in_each_tier! {
    state_of_all_shapes,
    operations,
    status,
    tracked,
    show_and_resolve,
    head_without_git,
    head_of_a_table,
    log,
    log_of_strange_repositories,
    a_branch_of_other_bytes,
    ancestors,
    trees,
    blame,
    a_huge_output_is_refused,
    broken_places,
    dirty_before,
}

fn state_of_all_shapes(world: &World) {
    let repo = Repo::empty();
    let look = |root: &std::path::Path| {
        let git = world.git(root);
        Git::run_blocking(git.state()).unwrap()
    };
    let state = look(&repo.root);
    assert_eq!((state.head.commit.clone(), state.head.branch.as_deref()), (None, Some("main")));
    assert_eq!((state.work_tree.as_deref(), state.prefix.clone()), (Some(repo.root.as_path()), None));
    assert!(
        !state.bare
            && !state.sparse
            && !state.shallow
            && !state.submodules
            && state.git_dir == state.common_dir
    );
    assert_eq!(state.operation, None);

    repo.write("deep/er/a", "text\n");
    repo.commit_all();
    repo.write("b", "text\n");
    repo.commit_all();
    let head = repo.git(&["rev-parse", "HEAD"]).trim().to_owned();
    let state = look(&repo.root.join("deep/er"));
    assert_eq!(state.head.commit.as_ref(), Some(&head));
    assert_eq!(state.prefix, Some(RelPath::parse("deep/er").unwrap()));
    assert_eq!(state.git_dir, repo.root.join(".git"));

    repo.git(&["checkout", "-q", "--detach"]);
    assert_eq!(look(&repo.root).head.branch, None);
    let linked = repo.beside("linked");
    repo.git(&["worktree", "add", "-q", &linked.display().to_string(), "-b", "side/branch"]);
    let state = look(&linked);
    assert_ne!(state.git_dir, state.common_dir);
    assert_eq!(state.head.branch.as_deref(), Some("side/branch"));
    assert_eq!(state.common_dir, repo.root.join(".git"));

    let (from, shallow) = (format!("file://{}", repo.root.display()), repo.beside("shallow"));
    repo.git(&["clone", "-q", "--depth", "1", "--no-local", &from, &shallow.display().to_string()]);
    assert!(look(&shallow).shallow);
    let bare = repo.beside("bare");
    repo.git(&["clone", "-q", "--bare", &from, &bare.display().to_string()]);
    let state = look(&bare);
    assert!(state.bare && state.work_tree.is_none());
    repo.git(&["sparse-checkout", "set", "deep"]);
    assert!(look(&repo.root).sparse);
    let separate = repo.beside("separate");
    let git_dir = repo.beside("elsewhere").display().to_string();
    repo.git(&["init", "-q", "--separate-git-dir", &git_dir, &separate.display().to_string()]);
    assert_eq!(look(&separate).git_dir, repo.beside("elsewhere"));
}

fn operations(world: &World) {
    let repo = Repo::of(&[("a", "one\n")]);
    repo.git(&["checkout", "-q", "-b", "side"]);
    repo.write("a", "two\n");
    repo.commit_all();
    repo.git(&["checkout", "-q", "main"]);
    repo.write("a", "three\n");
    repo.commit_all();
    let cases: [(&[&str], &[&str], OperationInProgress); 5] = [
        (&["merge", "side"], &["merge", "--abort"], OperationInProgress::Merge),
        (&["rebase", "side"], &["rebase", "--abort"], OperationInProgress::Rebase),
        (&["cherry-pick", "side"], &["cherry-pick", "--abort"], OperationInProgress::CherryPick),
        (&["revert", "--no-edit", "HEAD~0"], &["revert", "--quit"], OperationInProgress::Revert),
        (&["bisect", "start"], &["bisect", "reset"], OperationInProgress::Bisect),
    ];
    for (begin, end, expected) in cases {
        if expected == OperationInProgress::Revert {
            // One that conflicts.
            repo.write("a", "four\n");
            repo.commit_all();
            assert!(!repo.try_git(&repo.root, &["revert", "--no-edit", "HEAD~1"]).status.success());
        } else {
            repo.try_git(&repo.root, begin);
        }
        let state = Git::run_blocking(world.git(&repo.root).state()).unwrap();
        assert_eq!(state.operation, Some(expected));
        repo.git(end);
        repo.git(&["reset", "-q", "--hard"]);
    }
    assert_eq!(Git::run_blocking(world.git(&repo.root).state()).unwrap().operation, None);
}

fn status(world: &World) {
    let repo = Repo::of(&[("a", "text\n"), ("b", "text\n"), ("sub/c", "text\n"), ("old", "text\n")]);
    repo.write(".gitignore", "*.log\n");
    repo.git(&["add", ".gitignore"]);
    repo.write("a", "other\n");
    fs::remove_file(repo.root.join("b")).unwrap();
    repo.git(&["mv", "old", "new"]);
    repo.write("sub/c", "other\n");
    repo.write(OsStr::from_bytes(b"sub/\xff\n -"), "");
    repo.write("sub/x.log", "");
    let entry = |name: &[u8], entry| StatusEntry { path: RelPath::parse(name).unwrap(), entry };
    let tracked = |staged, unstaged| EntryStatus::Tracked { staged, unstaged, submodule: false };
    let untracked = EntryStatus::Untracked { repository: false };
    let status = Git::run_blocking(world.git(&repo.root).status()).unwrap();
    let expected = vec![
        entry(b".gitignore", tracked(StatusChange::Added, StatusChange::None)),
        entry(b"a", tracked(StatusChange::None, StatusChange::Modified)),
        entry(b"b", tracked(StatusChange::None, StatusChange::Deleted)),
        entry(b"new", tracked(StatusChange::Added, StatusChange::None)),
        entry(b"old", tracked(StatusChange::Deleted, StatusChange::None)),
        entry(b"sub/c", tracked(StatusChange::None, StatusChange::Modified)),
        entry(b"sub/\xff\n -", untracked.clone()),
    ];
    assert_eq!(status.entries, expected);
    assert_eq!(status.head.branch.as_deref(), Some("main"));
    // A part of the repository has its part of the status, by the rules of all of it.
    let status = Git::run_blocking(world.git(&repo.root.join("sub")).status()).unwrap();
    let expected =
        vec![entry(b"c", tracked(StatusChange::None, StatusChange::Modified)), entry(b"\xff\n -", untracked)];
    assert_eq!(status.entries, expected);
}

fn tracked(world: &World) {
    let repo = Repo::of(&[("a", ""), ("sub/b", ""), ("sub/c", "")]);
    repo.write("untracked", "");
    repo.git(&["update-index", "--assume-unchanged", "sub/c"]);
    let look = |root| {
        let files = Git::run_blocking(world.git(root).tracked_files()).unwrap();
        files.into_iter().map(|file| (file.path.to_string(), file.unwatched)).collect::<Vec<_>>()
    };
    let pair = |name: &str, unwatched| (name.to_owned(), unwatched);
    assert_eq!(look(&repo.root), [pair("a", false), pair("sub/b", false), pair("sub/c", true)]);
    assert_eq!(look(&repo.root.join("sub")), [pair("b", false), pair("c", true)]);
}

fn show_and_resolve(world: &World) {
    let repo = Repo::empty();
    let name = OsStr::from_bytes(b"sub/-n \xff\n:x");
    repo.write(name, b"one\r\n\0\xff");
    repo.commit_all();
    let first = repo.git(&["rev-parse", "HEAD"]).trim().to_owned();
    repo.write(name, vec![0_u8; 100_000]);
    repo.commit_all();
    let git = world.git(&repo.root);
    let resolve = |rev: &str| Git::run_blocking(git.resolve(rev));
    assert_eq!(resolve("HEAD~1").unwrap(), Some(first.clone()));
    assert_eq!(resolve("main^").unwrap(), Some(first.clone()));
    assert_eq!(resolve("nothing").unwrap(), None);
    assert_eq!(resolve("HEAD~7").unwrap(), None);
    for rev in ["", "--all", "-n", "a\nb", "a\0b"] {
        assert!(matches!(resolve(rev), Err(GitError::InvalidRequest(_))), "{rev:?}");
    }
    let path = RelPath::parse(b"sub/-n \xff\n:x").unwrap();
    let show = |git: &Git, rev, path: &RelPath, most| Git::run_blocking(git.show(rev, path, most));
    assert_eq!(show(&git, "HEAD~1", &path, 100).unwrap(), Some(b"one\r\n\0\xff".to_vec()));
    assert_eq!(show(&git, "HEAD", &path, 100_000).unwrap(), Some(vec![0; 100_000]));
    assert!(matches!(show(&git, "HEAD", &path, 99_999), Err(GitError::OutputTooLarge { limit: 99_999, .. })));
    assert!(matches!(show(&git, "HEAD", &path, 10), Err(GitError::OutputTooLarge { .. })));
    assert_eq!(show(&git, "HEAD", &paths(&["missing"])[0], 10).unwrap(), None);
    assert!(matches!(show(&git, "HEAD", &paths(&["sub"])[0], 10), Err(GitError::Failed { .. })));
    assert!(matches!(show(&git, "gone", &path, 10), Err(GitError::InvalidRequest(_))));
    let inner = RelPath::parse(b"-n \xff\n:x").unwrap();
    let shown = show(&world.git(&repo.root.join("sub")), &first, &inner, 100).unwrap();
    assert_eq!(shown.unwrap().len(), 7);
}

/// Asserts that the checked-out commit is found where there is no git program.
fn assert_head_is_read(world: &World, repo: &Repo, root: &std::path::Path) {
    let real = repo.git_in(root, &["rev-parse", "HEAD"]).trim().to_owned();
    assert_eq!(Git::run_blocking(world.git(root).with_path("/nowhere").head()).unwrap(), Some(real));
}

fn head_without_git(world: &World) {
    let repo = Repo::empty();
    assert_eq!(Git::run_blocking(world.git(&repo.root).head()).unwrap(), None);
    repo.write("deep/a", "text\n");
    repo.commit_all();
    assert_head_is_read(world, &repo, &repo.root);
    assert_head_is_read(world, &repo, &repo.root.join("deep"));
    let linked = repo.beside("linked");
    repo.git(&["worktree", "add", "-q", &linked.display().to_string(), "-b", "side/branch"]);
    repo.write("b", "text\n");
    repo.commit_all();
    assert_head_is_read(world, &repo, &linked);
    repo.git(&["pack-refs", "--all"]);
    assert_head_is_read(world, &repo, &repo.root);
    assert_head_is_read(world, &repo, &linked);
    // A loose reference is newer than the packed one.
    repo.write("b", "more\n");
    repo.commit_all();
    assert_head_is_read(world, &repo, &repo.root);
    repo.git(&["symbolic-ref", "refs/heads/other", "refs/heads/side/branch"]);
    repo.git(&["symbolic-ref", "HEAD", "refs/heads/other"]);
    assert_head_is_read(world, &repo, &repo.root);
    repo.git(&["checkout", "-q", "--detach", "main"]);
    assert_head_is_read(world, &repo, &repo.root);
    // Names that lead elsewhere, in a circle or to something else than a commit are left to git.
    for (name, text) in [("../../a", "ref: x"), ("x", "ref: refs/heads/x\n"), ("x", "no commit")] {
        fs::write(repo.root.join(".git/refs/heads/x"), text).unwrap();
        fs::write(repo.root.join(".git/HEAD"), format!("ref: refs/heads/{name}\n")).unwrap();
        let head = Git::run_blocking(world.git(&repo.root).with_path("/nowhere").head());
        assert!(matches!(head, Err(GitError::Missing)), "{name}: {head:?}");
    }
}

fn head_of_a_table(world: &World) {
    let repo = Repo::empty();
    let table = repo.beside("table");
    let made = ["init", "-q", "--ref-format=reftable", &table.display().to_string()];
    if !repo.try_git(&repo.root, &made).status.success() {
        eprintln!("skipped: this git stores no references as a table");
        return;
    }
    fs::write(table.join("a"), "text\n").unwrap();
    repo.git_in(&table, &["add", "a"]);
    repo.git_in(&table, &["commit", "-q", "-m", "one"]);
    let real = repo.git_in(&table, &["rev-parse", "HEAD"]).trim().to_owned();
    assert_eq!(Git::run_blocking(world.git(&table).head()).unwrap(), Some(real));
}

fn log(world: &World) {
    let repo = Repo::empty();
    assert_eq!(Git::run_blocking(world.git(&repo.root).log(10)).unwrap(), []);
    repo.write("a", "one\n");
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-q", "-m", "one\n\nbody"]);
    repo.write("sub/b", "one\n");
    repo.write("a", "two\n");
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-q", "-m", ":100644 looks like an entry", "--date", "2001-02-03T04:05:06Z"]);
    repo.git(&["commit", "-q", "--allow-empty", "-m", "\u{1b}[31mred"]);
    let log = |root, count| {
        let log = Git::run_blocking(world.git(root).log(count)).unwrap();
        log.into_iter().map(|one| (one.subject, one.paths)).collect::<Vec<_>>()
    };
    let expected = [
        ("red".to_owned(), vec![]),
        (":100644 looks like an entry".to_owned(), paths(&["a", "sub/b"])),
        ("one".to_owned(), paths(&["a"])),
    ];
    assert_eq!(log(&repo.root, 10), expected);
    assert_eq!(log(&repo.root, 1), expected[..1]);
    assert_eq!(log(&repo.root.join("sub"), 10), [(expected[1].0.clone(), paths(&["b"]))]);
    let second = Git::run_blocking(world.git(&repo.root).log(2)).unwrap().remove(1);
    assert_eq!((second.time.0, second.author.as_str()), (981_173_106_000, "Ada"));
}

/// Settings of the repository, and commits without a date as old imports have them.
fn log_of_strange_repositories(world: &World) {
    let repo = Repo::of(&[("sub/b", "one\n")]);
    for (name, value) in [
        ("diff.relative", "true"),
        ("diff.orderFile", "~/order"),
        ("log.diffMerges", "first-parent"),
        ("format.pretty", "oneline"),
        ("format.notes", "true"),
        ("color.ui", "always"),
        ("blame.date", "relative"),
        ("blame.showEmail", "true"),
        ("core.abbrev", "4"),
    ] {
        repo.git(&["config", name, value]);
    }
    fs::write(repo.beside("home").join("order"), "").unwrap();
    repo.git(&["notes", "add", "-m", "a note"]);
    repo.git(&["config", "i18n.logOutputEncoding", "latin1"]);
    let [tree, first] = ["HEAD^{tree}", "HEAD"].map(|name| repo.git(&["rev-parse", name]).trim().to_owned());
    let mut parent = first;
    for author in ["Ada <ada@example.com>", "Ada", "Ada <ada@example.com> 99999999999999999999 +0000"] {
        let raw = repo.beside("raw");
        let committer = "committer Ada <ada@example.com> 1 +0000";
        fs::write(&raw, format!("tree {tree}\nparent {parent}\nauthor {author}\n{committer}\n\ncaf\u{e9}\n"))
            .unwrap();
        let made = ["hash-object", "-t", "commit", "-w", "--literally", raw.to_str().unwrap()];
        parent = repo.git(&made).trim().to_owned();
    }
    repo.git(&["update-ref", "HEAD", &parent]);
    let log = Git::run_blocking(world.git(&repo.root.join("sub")).log(10)).unwrap();
    assert_eq!(log.iter().map(|one| one.paths.clone()).collect::<Vec<_>>(), [paths(&["b"])]);
    let log = Git::run_blocking(world.git(&repo.root).log(10)).unwrap();
    let told: Vec<_> = log.iter().map(|one| (one.subject.as_str(), one.time.0 > 0)).collect();
    assert_eq!(told, [("caf\u{e9}", false), ("caf\u{e9}", false), ("caf\u{e9}", false), ("first", true)]);
    repo.write("sub/b", "two\n");
    repo.git(&["commit", "-qam", "caf\u{e9}"]);
    let blamed =
        Git::run_blocking(world.git(&repo.root).blame("HEAD", &paths(&["sub/b"])[0], 1..=1)).unwrap();
    assert_eq!(blamed[0].subject, "caf\u{e9}");
}

fn a_branch_of_other_bytes(world: &World) {
    let repo = Repo::of(&[("a", "one\n")]);
    let made =
        repo.command(&repo.root).args(["checkout", "-q", "-b"]).arg(OsStr::from_bytes(b"gr\xfcn")).status();
    assert!(made.unwrap().success());
    let expected = Some("gr\u{fffd}n");
    let git = world.git(&repo.root);
    assert_eq!(Git::run_blocking(git.state()).unwrap().head.branch.as_deref(), expected);
    assert_eq!(Git::run_blocking(git.status()).unwrap().head.branch.as_deref(), expected);
}

/// 200,000 entries are above no bound of ours but take many reads of a pipe.
fn a_huge_output_is_refused(world: &World) {
    let repo = Repo::of(&[("big", &"0123456789\n".repeat(400_000))]);
    let git = world.git(&repo.root);
    let big = &paths(&["big"])[0];
    let shown = Git::run_blocking(git.show("HEAD", big, 64 * 1024 * 1024)).unwrap().unwrap();
    assert_eq!(shown, "0123456789\n".repeat(400_000).into_bytes());
    assert!(matches!(
        Git::run_blocking(git.show("HEAD", big, 1024 * 1024)),
        Err(GitError::OutputTooLarge { .. })
    ));
}

fn broken_places(world: &World) {
    let repo = Repo::of(&[("a", "")]);
    let broken = |text: &str| {
        let root = repo.empty_beside("broken");
        fs::write(root.join(".git"), text).unwrap();
        Git::run_blocking(world.git(&root).state()).unwrap_err()
    };
    for text in
        ["", "nonsense", "gitdir: ", "gitdir: /nowhere/at/all\n", "gitdir: /etc\n", "gitdir: ../project\n"]
    {
        assert!(matches!(broken(text), GitError::Broken { .. }), "{text}");
    }
    let root = repo.beside("broken");
    fs::remove_file(root.join(".git")).unwrap();
    fs::create_dir(root.join(".git")).unwrap();
    let error = Git::run_blocking(world.git(&root).state()).unwrap_err();
    assert!(matches!(error, GitError::NoRepository { .. }), "{error}");
    let gone = Git::run_blocking(world.git(&repo.beside("gone")).status()).unwrap_err();
    assert!(matches!(gone, GitError::Io { .. }), "{gone}");
}

fn dirty_before(world: &World) {
    let repo = Repo::of(&["clean", "edited", "assumed", "gone", "other"].map(|name| (name, "text\n")));
    repo.write("edited", "other\n");
    repo.write("other", "other\n");
    repo.write("new", "");
    fs::remove_file(repo.root.join("gone")).unwrap();
    repo.git(&["update-index", "--assume-unchanged", "assumed"]);
    let asked = paths(&["clean", "edited", "new", "assumed", "gone", "not there"]);
    let dirty = Git::run_blocking(world.git(&repo.root).find_dirty_paths(&asked)).unwrap();
    assert_eq!(dirty, paths(&["edited", "new", "assumed", "gone"]));
}

fn ancestors(world: &World) {
    let repo = Repo::of(&[("a", "one\n"), ("in/b", "one\n")]);
    let first = repo.git(&["rev-parse", "HEAD"]).trim().to_owned();
    repo.write("in/b", "two\n");
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-q", "-m", "Subject\n\nBody: of lines\n:and colons"]);
    let second = repo.git(&["rev-parse", "HEAD"]).trim().to_owned();
    repo.git(&["checkout", "-q", "-b", "side", &first]);
    repo.write("c", "side\n");
    repo.commit_all();
    let side = repo.git(&["rev-parse", "HEAD"]).trim().to_owned();
    repo.git(&["checkout", "-q", "main"]);
    repo.git(&["merge", "-q", "--no-edit", "side"]);

    let bare = repo.beside("bare");
    repo.git(&["clone", "-q", "--bare", &repo.root.display().to_string(), &bare.display().to_string()]);
    for root in [&repo.root, &bare] {
        let git = world.git(root);
        let mut all = Git::run_blocking(git.ancestors("HEAD", 10)).unwrap();
        let mut expected = vec![first.clone(), second.clone(), side.clone()];
        all.sort();
        expected.sort();
        assert_eq!(all, expected, "no merge, and the whole history");
        assert_eq!(Git::run_blocking(git.ancestors(&second, 10)).unwrap(), [second.clone(), first.clone()]);
        assert_eq!(Git::run_blocking(git.ancestors(&second, 1)).unwrap(), std::slice::from_ref(&second));
        assert!(Git::run_blocking(git.ancestors("none", 1)).unwrap().is_empty());
        let told = Git::run_blocking(git.commit_details(&[first.clone(), second.clone()])).unwrap();
        assert_eq!((told[0].id.as_str(), told[1].id.as_str()), (first.as_str(), second.as_str()));
        assert_eq!(told[0].paths, paths(&["a", "in/b"]));
        assert_eq!(told[1].message, "Subject\n\nBody: of lines\n:and colons");
        assert_eq!(told[1].paths, paths(&["in/b"]));
        assert!(Git::run_blocking(git.commit_details(&[])).unwrap().is_empty());
        let refused = Git::run_blocking(git.commit_details(&["--all".to_owned()]));
        assert!(matches!(refused, Err(GitError::InvalidRequest(_))), "{refused:?}");
        assert!(Git::run_blocking(git.commit_details(&["0".repeat(40)])).is_err());
    }
    let within = world.git(&repo.root.join("in"));
    assert_eq!(Git::run_blocking(within.ancestors(&second, 10)).unwrap(), [second.clone(), first]);
    assert!(Git::run_blocking(within.ancestors(&side, 1)).unwrap() != [side]);
    assert_eq!(Git::run_blocking(within.commit_details(&[second])).unwrap()[0].paths, paths(&["b"]));
}

fn trees(world: &World) {
    let repo = Repo::of(&[("a", "one\n"), ("in/b", "two\n"), ("run", "#!/bin/sh\n")]);
    repo.make_executable("run");
    std::os::unix::fs::symlink("a", repo.root.join("link")).unwrap();
    repo.commit_all();
    let git = world.git(&repo.root);
    let files = Git::run_blocking(git.list_tree("HEAD")).unwrap().unwrap();
    let told: Vec<_> =
        files.iter().map(|file| (file.path.to_string(), file.size, file.link, file.executable)).collect();
    let expected = [
        ("a", Some(4), false, false),
        ("in/b", Some(4), false, false),
        ("link", Some(1), true, false),
        ("run", Some(10), false, true),
    ];
    assert_eq!(told, expected.map(|(path, size, link, run)| (path.to_owned(), size, link, run)));
    let none = "0".repeat(40);
    let tree = repo.git(&["rev-parse", "HEAD^{tree}"]).trim().to_owned();
    let asked: Vec<(&str, u64)> =
        vec![(files[1].blob.as_str(), 4), (&none, 1), (&tree, 1), (files[0].blob.as_str(), 0)];
    let contents = Git::run_blocking(git.read_blobs(&asked)).unwrap();
    assert_eq!(contents, [Some(b"two\n".to_vec()), None, None, Some(b"one\n".to_vec())]);
    assert!(matches!(Git::run_blocking(git.read_blobs(&[("HEAD", 1)])), Err(GitError::InvalidRequest(_))));
    assert_eq!(Git::run_blocking(git.list_tree("none")).unwrap(), None);
    let within = Git::run_blocking(world.git(&repo.root.join("in")).list_tree("HEAD")).unwrap().unwrap();
    assert_eq!(within.iter().map(|file| file.path.clone()).collect::<Vec<_>>(), paths(&["b"]));
}

fn blame(world: &World) {
    let repo = Repo::of(&[("a", "one\ntwo\nthree\n")]);
    let first = repo.git(&["rev-parse", "HEAD"]).trim().to_owned();
    repo.write("a", "one\n2\nthree\n\tfour\n");
    repo.git(&["commit", "-q", "-a", "-m", "Second thoughts"]);
    let second = repo.git(&["rev-parse", "HEAD"]).trim().to_owned();
    // A program that a repository names for showing its files isn't run.
    repo.write(".gitattributes", "a diff=bad\n");
    let ran = repo.beside("ran");
    repo.git(&["config", "diff.bad.textconv", &format!("touch {} && cat", ran.display())]);
    let git = world.git(&repo.root);
    let a = RelPath::parse("a").unwrap();
    let blamed = Git::run_blocking(git.blame("HEAD", &a, 1..=4)).unwrap();
    let told: Vec<_> = blamed.iter().map(|one| (one.first_line, one.lines, one.commit.clone())).collect();
    assert_eq!(told, [(1, 1, first.clone()), (2, 1, second.clone()), (3, 1, first.clone()), (4, 1, second)]);
    assert_eq!(blamed[1].subject, "Second thoughts");
    assert!(blamed.iter().all(|one| !one.author.is_empty() && one.time.0 > 0), "{blamed:?}");
    let old = Git::run_blocking(git.blame(&first, &a, 2..=3)).unwrap();
    assert_eq!(old.iter().map(|one| (one.first_line, one.lines)).collect::<Vec<_>>(), [(2, 2)]);
    assert!(!ran.exists());
    #[allow(clippy::reversed_empty_ranges)]
    for lines in [0..=1, 3..=2, 1..=100_000] {
        assert!(matches!(Git::run_blocking(git.blame("HEAD", &a, lines)), Err(GitError::InvalidRequest(_))));
    }
    assert!(Git::run_blocking(git.blame("HEAD", &a, 9..=9)).is_err());
    assert!(Git::run_blocking(git.blame("HEAD", &RelPath::parse("none").unwrap(), 1..=1)).is_err());
    // In another content, lines have moved, and new ones come from no commit.
    let content = b"zero\none\n2\nthree\n\tfour\n";
    let now = Git::run_blocking(git.blame_content(&a, content.to_vec(), 1..=40)).unwrap();
    let told: Vec<_> = now.iter().map(|one| (one.first_line, one.commit.clone())).collect();
    let commits = [blamed[0].clone(), blamed[1].clone(), blamed[2].clone(), blamed[3].clone()];
    let commits = commits.map(|one| (one.first_line + 1, one.commit));
    assert_eq!(told, commits);
    assert!(!ran.exists());
    let new = RelPath::parse("new").unwrap();
    assert!(Git::run_blocking(git.blame_content(&new, b"never committed\n".to_vec(), 1..=1)).is_err());
}
