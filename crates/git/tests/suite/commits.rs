//! Commits of exactly the files that were asked for, by a user's git with all that is theirs.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use journeyman_git::{
    CommitRefusal, CommitRequest, CreatedCommit, Git, GitError, HookConfinement, HookRunMode, UserGit,
};
use journeyman_protocol::RelPath;
use tokio_util::sync::CancellationToken;

use crate::support::{Repo, World, everything, paths, program};

in_each_tier! {
    only_what_was_asked_for,
    any_name_and_any_kind,
    refused,
    nobody_to_commit_as,
    a_hook_that_rejects,
    hooks_that_change_things,
    signed,
    what_changed_since,
    cancelled,
    sparse_and_unwatched,
    line_ends_and_filters,
    a_hooks_environment,
    leftovers_are_swept,
    hooks_that_the_change_decides_about,
    hooks_that_cant_be_confined,
    a_hook_works_as_git_runs_it,
    no_hook_adds_what_others_obey,
    programs_that_the_change_decides_about,
    nothing_else_of_the_settings_runs,
}

pub(crate) fn user(world: &World, repo: &Repo, root: &Path) -> UserGit {
    world.user(repo, root)
}

pub(crate) fn request(names: &[&str], message: &str) -> CommitRequest {
    CommitRequest { paths: paths(names), message: message.to_owned(), mixed: Vec::new() }
}

pub(crate) fn commit(
    world: &World,
    repo: &Repo,
    names: &[&str],
    message: &str,
) -> Result<CreatedCommit, GitError> {
    let user = user(world, repo, &repo.root);
    Git::run_blocking(user.commit(&request(names, message), &CancellationToken::new()))
}

fn refusal(result: Result<CreatedCommit, GitError>) -> CommitRefusal {
    match result {
        Err(GitError::CommitRefused(refusal)) => refusal,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn hook(repo: &Repo, name: &str, script: &str) {
    let hook = repo.root.join(".git/hooks").join(name);
    fs::create_dir_all(hook.parent().unwrap()).unwrap();
    fs::write(&hook, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
}

/// What the last commit changed, as git tells it.
fn last(repo: &Repo) -> String {
    repo.git(&["show", "--no-renames", "--name-status", "--format=", "HEAD"])
}

pub(crate) fn assert_no_litter(repo: &Repo) {
    let names = fs::read_dir(repo.root.join(".git")).unwrap().map(|entry| entry.unwrap().file_name());
    let litter: Vec<_> = names.filter(|name| name.to_string_lossy().contains("journeyman")).collect();
    assert_eq!(litter, Vec::<std::ffi::OsString>::new());
    assert!(!repo.root.join(".git/index.lock").exists());
    repo.assert_sound();
}

fn only_what_was_asked_for(world: &World) {
    let names = ["edited", "gone", "mode", "staged", "half", "dirty", "removed", "old"];
    let repo = Repo::of(&names.map(|name| (name, "text\n")));
    // The user's: staged, half staged, dirty, removed, intended, untracked.
    repo.write("staged", "mine\n");
    repo.write("half", "mine\n");
    repo.write("fresh", "mine\n");
    repo.git(&["add", "staged", "half", "fresh"]);
    repo.write("half", "mine twice\n");
    repo.write("dirty", "mine\n");
    repo.git(&["rm", "-q", "removed"]);
    repo.write("intended", "mine\n");
    repo.git(&["add", "--intent-to-add", "intended"]);
    repo.write("untracked", "mine\n");
    let before = repo.git(&["status", "--porcelain=v2"]);
    // The task's.
    repo.write("edited", "ours\n");
    repo.write("added/deep/file", "ours\n");
    repo.make_executable("mode");
    fs::remove_file(repo.root.join("gone")).unwrap();
    fs::rename(repo.root.join("old"), repo.root.join("new")).unwrap();
    symlink("edited", repo.root.join("link")).unwrap();
    let asked = ["edited", "added/deep/file", "mode", "gone", "old", "new", "link"];
    let done = commit(world, &repo, &asked, "Why\n\n# kept, like this line\n").unwrap();
    let expected = "A\tadded/deep/file\nM\tedited\nD\tgone\nA\tlink\nM\tmode\nA\tnew\nD\told\n";
    assert_eq!(last(&repo), expected);
    assert_eq!(done.paths, paths(&["added/deep/file", "edited", "gone", "link", "mode", "new", "old"]));
    assert_eq!((done.added_by_hooks.as_slice(), done.index_behind.as_deref()), (&[][..], None));
    assert_eq!(done.branch.as_deref(), Some("main"));
    assert_eq!(done.id, repo.git(&["rev-parse", "HEAD"]).trim());
    assert_eq!(repo.git(&["log", "-1", "--format=%B"]).trim(), "Why\n\n# kept, like this line");
    assert_eq!(repo.git(&["log", "-1", "--format=%an <%ae>"]).trim(), "Ada <ada@example.com>");
    assert_eq!(repo.git(&["status", "--porcelain=v2"]), before);
    assert_eq!(repo.git(&["diff-files", "--name-only"]), "dirty\nhalf\nintended\n");
    assert_eq!(fs::read_to_string(repo.root.join("half")).unwrap(), "mine twice\n");
    assert_no_litter(&repo);
}

fn any_name_and_any_kind(world: &World) {
    let repo = Repo::of(&[
        ("was-file", "text\n"),
        ("was-dir/a", "text\n"),
        ("was-dir/b", "text\n"),
        ("x", "text\n"),
    ]);
    let names: [&[u8]; 9] = [
        b"--force",
        b"-n",
        b"line\nbreak",
        b"quo\"te'",
        b"\xff\xfe",
        b" sp ",
        b":(top)x",
        b"*",
        b"dir/-\xc3(",
    ];
    for name in names {
        repo.write(OsStr::from_bytes(name), "text");
    }
    repo.write("other", "mine\n");
    fs::remove_file(repo.root.join("was-file")).unwrap();
    repo.write("was-file/a", "text\n");
    repo.write("was-file/mine", "text\n");
    fs::remove_dir_all(repo.root.join("was-dir")).unwrap();
    symlink("x", repo.root.join("was-dir")).unwrap();
    let mut asked: Vec<RelPath> = names.iter().map(|name| RelPath::parse(name).unwrap()).collect();
    asked.extend(paths(&["was-file", "was-file/a", "was-dir", "was-dir/a", "was-dir/b"]));
    let request = CommitRequest { paths: asked.clone(), message: "--amend".to_owned(), mixed: Vec::new() };
    let user = user(world, &repo, &repo.root);
    let done = Git::run_blocking(user.commit(&request, &CancellationToken::new())).unwrap();
    asked.sort();
    assert_eq!(done.paths, asked);
    assert_eq!(repo.status(), "?? other\n?? was-file/mine\n");
    assert_eq!(repo.git(&["rev-list", "--count", "HEAD"]).trim(), "2");
    assert_eq!(repo.git(&["ls-files", "-s", "was-dir"]).split(' ').next(), Some("120000"));
    assert_no_litter(&repo);
}

fn refused(world: &World) {
    let other = Repo::of(&[("lib", "text\n")]);
    let repo = Repo::of(&[("a", "text\n"), ("b", "text\n"), (".gitignore", "*.log\n"), ("kept.txt", "")]);
    repo.git(&["submodule", "--quiet", "add", &other.root.display().to_string(), "sub"]);
    repo.commit_all();
    repo.write("a", "ours\n");
    repo.write("x.log", "ours\n");
    repo.write("sub/lib", "ours\n");
    fs::create_dir(repo.root.join("nested")).unwrap();
    repo.git_in(&repo.root.join("nested"), &["init", "-q"]);
    repo.write("nested/a", "ours\n");
    repo.write("b", "mine\n");
    repo.git(&["add", "b"]);
    repo.write("b", "ours\n");
    let before = everything(&repo.root);
    let ask = |names: &[&str]| refusal(commit(world, &repo, names, "why"));
    assert_eq!(ask(&[]), CommitRefusal::NothingToCommit);
    assert_eq!(ask(&["kept.txt"]), CommitRefusal::NothingToCommit);
    assert_eq!(ask(&["not/there"]), CommitRefusal::NothingToCommit);
    assert_eq!(ask(&["a", "x.log"]), CommitRefusal::Ignored(paths(&["x.log"])));
    assert_eq!(ask(&["a", "sub/lib"]), CommitRefusal::NestedRepository(paths(&["sub/lib"])));
    assert_eq!(
        ask(&["nested/a", "nested", ".git/config"]),
        CommitRefusal::NestedRepository(paths(&["nested/a", ".git/config"]))
    );
    assert_eq!(ask(&["nested", "a"]), CommitRefusal::NestedRepository(paths(&["nested"])));
    assert_eq!(ask(&["a", "b"]), CommitRefusal::Staged(paths(&["b"])));
    assert_eq!(refusal(commit(world, &repo, &["a"], " \n\u{1b}[0m")), CommitRefusal::MessageLength(0));
    let long = "x".repeat(100_000);
    assert_eq!(refusal(commit(world, &repo, &["a"], &long)), CommitRefusal::MessageLength(100_000));
    let mixed = CommitRequest { mixed: paths(&["a", "other"]), ..request(&["a"], "why") };
    let user = user(world, &repo, &repo.root);
    let result = Git::run_blocking(user.commit(&mixed, &CancellationToken::new()));
    assert_eq!(refusal(result), CommitRefusal::UserChanges(paths(&["a"])));
    repo.write(".git/index.lock", "");
    assert_eq!(ask(&["a"]), CommitRefusal::Locked(repo.root.join(".git/index.lock")));
    fs::remove_file(repo.root.join(".git/index.lock")).unwrap();
    let mut after = everything(&repo.root);
    // Objects that were written for nothing are git's to collect.
    after.retain(|name, _| before.contains_key(name));
    assert_eq!(after, before);
    // A merge that isn't settled.
    repo.git(&["reset", "-q", "--hard"]);
    repo.git(&["checkout", "-q", "-b", "side"]);
    repo.write("a", "theirs\n");
    repo.git(&["commit", "-qam", "theirs"]);
    repo.git(&["checkout", "-q", "main"]);
    repo.write("a", "mine\n");
    repo.git(&["commit", "-qam", "mine"]);
    repo.try_git(&repo.root, &["merge", "side"]);
    repo.write("b", "ours\n");
    assert_eq!(ask(&["b"]), CommitRefusal::InProgress(journeyman_git::OperationInProgress::Merge));
    assert_no_litter(&repo);
}

fn what_changed_since(world: &World) {
    let repo = Repo::of(&[("a", "text\n"), ("b", "text\n")]);
    repo.write("a", "ours\n");
    repo.write("b", "mine\n");
    repo.git(&["add", "b"]);
    let (index, head) = (fs::read(repo.root.join(".git/index")).unwrap(), repo.git(&["rev-parse", "HEAD"]));
    let (user, request, never) =
        (user(world, &repo, &repo.root), request(&["a"], "why"), CancellationToken::new());
    let changed = || paths(&["a"]);
    let result = Git::run_blocking(user.commit_unchanged(&request, &changed, &never));
    assert_eq!(refusal(result), CommitRefusal::ChangedSince(paths(&["a"])));
    assert_eq!(fs::read(repo.root.join(".git/index")).unwrap(), index);
    assert_eq!(repo.git(&["rev-parse", "HEAD"]), head);
    assert_no_litter(&repo);
    Git::run_blocking(user.commit_unchanged(&request, &Vec::new, &never)).unwrap();
    assert_eq!(last(&repo), "M\ta\n");
}

fn nobody_to_commit_as(world: &World) {
    let repo = Repo::of(&[("a", "text\n")]);
    repo.write("a", "ours\n");
    let mut env = repo.env();
    for name in ["GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"] {
        env.remove(OsStr::new(name));
    }
    repo.git(&["config", "user.useConfigOnly", "true"]);
    let index = fs::read(repo.root.join(".git/index")).unwrap();
    let user = world.git(&repo.root).for_user(env);
    let result = Git::run_blocking(user.commit(&request(&["a"], "why"), &CancellationToken::new()));
    let refusal = refusal(result);
    assert!(matches!(refusal, CommitRefusal::NoIdentity(_)), "{refusal:?}");
    assert!(refusal.to_string().contains("git config --global user.name"), "{refusal}");
    assert_eq!(fs::read(repo.root.join(".git/index")).unwrap(), index);
    assert_eq!(repo.status(), " M a\n");
    assert_no_litter(&repo);
}

fn a_hook_that_rejects(world: &World) {
    for name in ["pre-commit", "commit-msg", "prepare-commit-msg"] {
        let repo = Repo::of(&[("a", "text\n"), ("b", "text\n")]);
        repo.write("a", "ours\n");
        repo.write("new", "ours\n");
        repo.write("b", "mine\n");
        repo.git(&["add", "b"]);
        let flood = "i=0; while [ $i -lt 3000 ]; do echo line $i >&2; i=$((i+1)); done";
        hook(
            &repo,
            name,
            &format!("git diff --cached --name-only; {flood}; printf 'no:\\033[31m tabs\\n'; exit 1"),
        );
        let (index, head) =
            (fs::read(repo.root.join(".git/index")).unwrap(), repo.git(&["rev-parse", "HEAD"]));
        let Err(GitError::Failed { words, .. }) = commit(world, &repo, &["a", "new"], "why") else {
            panic!()
        };
        assert!(words.starts_with("a\nnew\n") || words.contains("\na\nnew\n"), "{words}");
        assert!(words.ends_with("no: tabs") && words.len() < 20_000, "{words}");
        assert_eq!(fs::read(repo.root.join(".git/index")).unwrap(), index);
        assert_eq!(repo.git(&["rev-parse", "HEAD"]), head);
        assert_eq!(repo.status(), " M a\nM  b\n?? new\n");
        assert_no_litter(&repo);
    }
}

fn hooks_that_change_things(world: &World) {
    let repo = Repo::of(&[("a", "text\n"), ("b", "text\n"), ("staged", "text\n"), ("log", "")]);
    repo.write("a", "ours\n");
    repo.write("staged", "mine\n");
    repo.git(&["add", "staged"]);
    // A formatter, and one that adds what it makes; and one that touches what the user has staged.
    let script = "echo formatted >> a; echo made > generated; echo hook > staged; git add a generated staged";
    hook(&repo, "pre-commit", script);
    hook(&repo, "commit-msg", "echo 'Signed-off-by: Hook' >> \"$1\"");
    hook(&repo, "post-commit", "echo \"post $(git log -1 --format=%s)\"");
    let done = commit(world, &repo, &["a"], "why").unwrap();
    assert_eq!(done.paths, paths(&["a", "generated", "staged"]));
    assert_eq!(done.added_by_hooks, paths(&["generated", "staged"]));
    assert!(done.words.contains("post why"), "{}", done.words);
    assert_eq!(repo.git(&["show", "HEAD:a"]), "ours\nformatted\n");
    assert!(repo.git(&["log", "-1", "--format=%B"]).contains("Signed-off-by: Hook"));
    // What the user had staged is still staged, whatever the hook made of it in the commit.
    assert_eq!(repo.git(&["show", ":staged"]), "mine\n");
    assert_eq!(repo.status(), "MM staged\n");
    assert_no_litter(&repo);
}

fn signed(world: &World) {
    let repo = Repo::of(&[("a", "text\n")]);
    let signer = repo.beside("gpg");
    let script = "#!/bin/sh\ncat > \"$(dirname \"$0\")/signed\"\nprintf '\\n[GNUPG:] SIG_CREATED \\n' >&2\n\
                  printf -- '-----BEGIN PGP SIGNATURE-----\\n\\nnone\\n-----END PGP SIGNATURE-----\\n'\n";
    fs::write(&signer, script).unwrap();
    fs::set_permissions(&signer, fs::Permissions::from_mode(0o755)).unwrap();
    repo.git(&["config", "gpg.program", signer.to_str().unwrap()]);
    repo.git(&["config", "commit.gpgSign", "true"]);
    repo.write("a", "ours\n");
    commit(world, &repo, &["a"], "why").unwrap();
    assert!(repo.git(&["cat-file", "commit", "HEAD"]).contains("-----BEGIN PGP SIGNATURE-----"));
    assert!(fs::read_to_string(repo.beside("signed")).unwrap().ends_with("\nwhy\n"));
    // One that can't sign.
    fs::write(&signer, "#!/bin/sh\necho no key >&2\nexit 1\n").unwrap();
    repo.write("a", "ours again\n");
    let result = commit(world, &repo, &["a"], "why");
    let Err(GitError::Failed { words, .. }) = result else { panic!("{result:?}") };
    assert!(words.contains("no key"), "{words}");
    assert_eq!(repo.status(), " M a\n");
    if program("ssh-keygen").is_some() {
        let key = repo.beside("key");
        let mut make = std::process::Command::new("ssh-keygen");
        make.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(&key);
        assert!(make.status().unwrap().success());
        repo.git(&["config", "gpg.format", "ssh"]);
        repo.git(&["config", "user.signingKey", key.to_str().unwrap()]);
        commit(world, &repo, &["a"], "why").unwrap();
        assert!(repo.git(&["cat-file", "commit", "HEAD"]).contains("-----BEGIN SSH SIGNATURE-----"));
    } else {
        println!("skipped: ssh-keygen is not installed");
    }
    assert_no_litter(&repo);
}

fn cancelled(world: &World) {
    let repo = Repo::of(&[("a", "text\n")]);
    repo.write("a", "ours\n");
    let ready = repo.root.join("ready");
    // Ends by its own, far too late, if nobody ends it. Whoever has the lock knows that it ended.
    hook(&repo, "pre-commit", "exec 9> lock; flock 9; echo > ready; exec sleep 600");
    let index = fs::read(repo.root.join(".git/index")).unwrap();
    let (user, cancel) = (user(world, &repo, &repo.root), CancellationToken::new());
    let result = Git::run_blocking(async {
        let commit = request(&["a"], "why");
        let work = async {
            while !fs::read_to_string(&ready).is_ok_and(|text| text.ends_with('\n')) {
                tokio::time::sleep(std::time::Duration::from_millis(2)).await;
            }
            cancel.cancel();
            std::future::pending::<()>().await;
        };
        tokio::select! { result = user.commit(&commit, &cancel) => result, () = work => unreachable!() }
    });
    assert!(matches!(result, Err(GitError::Cancelled { .. })), "{result:?}");
    let lock = fs::File::open(repo.root.join("lock")).unwrap();
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).unwrap();
    fs::remove_file(repo.root.join("lock")).unwrap();
    fs::remove_file(&ready).unwrap();
    assert_eq!(fs::read(repo.root.join(".git/index")).unwrap(), index);
    assert_eq!(repo.status(), " M a\n");
    assert_no_litter(&repo);
}

fn sparse_and_unwatched(world: &World) {
    let repo = Repo::of(&["in/a", "out/b", "top", "assumed", "skipped"].map(|name| (name, "text\n")));
    repo.git(&["sparse-checkout", "set", "--cone", "--sparse-index", "in"]);
    repo.write("in/a", "ours\n");
    repo.write("in/new", "ours\n");
    let done = commit(world, &repo, &["in/a", "in/new"], "why").unwrap();
    assert_eq!(done.paths, paths(&["in/a", "in/new"]));
    assert_eq!(repo.status(), "");
    assert_eq!(
        repo.git(&["ls-tree", "-r", "--name-only", "HEAD"]),
        "assumed\nin/a\nin/new\nout/b\nskipped\ntop\n"
    );
    assert!(!repo.root.join("out").exists());
    repo.git(&["sparse-checkout", "disable"]);
    repo.git(&["update-index", "--assume-unchanged", "assumed"]);
    repo.git(&["update-index", "--skip-worktree", "skipped", "top"]);
    repo.write("assumed", "ours\n");
    repo.write("skipped", "ours\n");
    commit(world, &repo, &["assumed", "skipped"], "why").unwrap();
    assert_eq!(last(&repo), "M\tassumed\nM\tskipped\n");
    assert_no_litter(&repo);
}

fn line_ends_and_filters(world: &World) {
    let repo = Repo::of(&[(".gitattributes", "*.txt text eol=crlf\n*.up filter=up\n"), ("a.txt", "one\n")]);
    fs::write(
        repo.beside("home/.gitconfig"),
        "[filter \"up\"]\n\tclean = tr a-z A-Z\n\tsmudge = tr A-Z a-z\n",
    )
    .unwrap();
    repo.write("a.txt", "one\r\ntwo\r\n");
    repo.write("b.up", "text\n");
    commit(world, &repo, &["a.txt", "b.up"], "why").unwrap();
    assert_eq!(repo.git(&["show", "HEAD:a.txt"]), "one\ntwo\n");
    assert_eq!(repo.git(&["show", "HEAD:b.up"]), "TEXT\n");
    assert_eq!(repo.status(), "");
    assert_no_litter(&repo);
}

/// As where this program was started by a hook of another repository.
fn a_hooks_environment(world: &World) {
    let other = Repo::of(&[("lib", "text\n")]);
    let repo = Repo::of(&[("a", "text\n")]);
    repo.write("a", "ours\n");
    let mut env = repo.env();
    env.insert("GIT_DIR".into(), other.root.join(".git").into());
    env.insert("GIT_WORK_TREE".into(), other.root.clone().into());
    env.insert("GIT_INDEX_FILE".into(), other.root.join(".git/index").into());
    env.insert("GIT_LITERAL_PATHSPECS".into(), "1".into());
    let user = world.git(&repo.root).for_user(env);
    let done = Git::run_blocking(user.commit(&request(&["a"], "why"), &CancellationToken::new())).unwrap();
    assert_eq!(done.id, repo.git(&["rev-parse", "HEAD"]).trim());
    assert_eq!((repo.status(), other.status()), (String::new(), String::new()));
    assert_no_litter(&repo);
}

fn leftovers_are_swept(world: &World) {
    let repo = Repo::of(&[("a", "text\n")]);
    repo.write("a", "ours\n");
    // No process has a number as high.
    repo.write(".git/journeyman-index-2000000000.1", "left");
    repo.write(".git/journeyman-index-2000000000.1.lock", "left");
    commit(world, &repo, &["a"], "why").unwrap();
    assert_eq!(repo.status(), "");
    assert_no_litter(&repo);
}

/// What a hostile hook would do, and what must not come of it.
struct Canary {
    script: String,
    secret: std::path::PathBuf,
    outside: std::path::PathBuf,
}

impl Canary {
    fn of(repo: &Repo) -> Self {
        let (secret, outside) = (repo.beside("home/.ssh/id_test"), repo.beside("outside"));
        fs::create_dir_all(secret.parent().unwrap()).unwrap();
        fs::write(&secret, "a private key\n").unwrap();
        let script = format!(
            "#!/bin/sh\necho ran >> ran\ncat {} > stolen\necho x > {}\necho '[alias]' >> .git/config\nexit 0\n",
            secret.display(),
            outside.display()
        );
        Self { script, secret, outside }
    }

    fn assert_unharmed(&self, repo: &Repo, config: &[u8]) {
        assert_eq!(fs::read_to_string(repo.root.join("ran")).unwrap(), "ran\n");
        assert_eq!(fs::read_to_string(repo.root.join("stolen")).unwrap(), "");
        assert_eq!(fs::read_to_string(&self.secret).unwrap(), "a private key\n");
        assert!(!self.outside.exists());
        assert_eq!(fs::read(repo.root.join(".git/config")).unwrap(), config);
    }
}

fn hooks_that_the_change_decides_about(world: &World) {
    if !world.confines() {
        return;
    }
    for indirect in [false, true] {
        let repo = Repo::of(&[("a", "text\n"), ("scripts/hooks/pre-commit", ""), ("scripts/lint.sh", "")]);
        let canary = Canary::of(&repo);
        let changed = if indirect { "scripts/lint.sh" } else { "scripts/hooks/pre-commit" };
        if indirect {
            hook(&repo, "pre-commit", "exec ./scripts/lint.sh");
        } else {
            repo.git(&["config", "core.hooksPath", "scripts/hooks"]);
        }
        repo.write(changed, &canary.script);
        repo.make_executable(changed);
        let config = fs::read(repo.root.join(".git/config")).unwrap();
        commit(world, &repo, &[changed], "why").unwrap();
        canary.assert_unharmed(&repo, &config);
        assert_eq!(last(&repo), format!("M\t{changed}\n"));
        assert_no_litter(&repo);
    }
}

fn hooks_that_cant_be_confined(world: &World) {
    if world.confines() {
        return;
    }
    let repo = Repo::of(&[("a", "text\n")]);
    repo.write("a", "ours\n");
    hook(&repo, "pre-commit", "echo > ran; exit 1");
    let with = |run| {
        let user = world.git(&repo.root).for_user(repo.env());
        let user = user.with_confinement(HookConfinement { run, ..HookConfinement::default() });
        Git::run_blocking(user.commit(&request(&["a"], "why"), &CancellationToken::new()))
    };
    let refused = with(HookRunMode::Confined);
    assert!(refused.as_ref().is_err_and(GitError::needs_person), "{refused:?}");
    assert_eq!(refusal(refused).to_string().matches(".git/hooks/pre-commit").count(), 1);
    assert!(!repo.root.join("ran").exists());
    with(HookRunMode::Skipped).unwrap();
    assert!(!repo.root.join("ran").exists());
    assert_eq!(repo.status(), "");
    assert_no_litter(&repo);
}

fn a_hook_works_as_git_runs_it(world: &World) {
    let repo = Repo::of(&[("a", "text\n"), ("b", "text\n")]);
    fs::write(repo.beside("home/.gitconfig"), "[user]\n\temail = ada@example.org\n").unwrap();
    repo.write("a", "ours\n");
    repo.write("b", "mine\n");
    // Stashes what isn't to be committed, looks at what is, and takes the rest back.
    let script = "set -e\ngit stash push -q --keep-index\ngit diff --cached --name-only > seen\n\
                  test \"$(cat b)\" = text\ngit config user.email >> seen\ngit stash pop -q\n";
    hook(&repo, "pre-commit", script);
    hook(&repo, "prepare-commit-msg", "test \"$2\" = message && sed -i '1s/^/[x] /' \"$1\"");
    commit(world, &repo, &["a"], "why").unwrap();
    assert_eq!(fs::read_to_string(repo.root.join("seen")).unwrap(), "a\nada@example.org\n");
    assert_eq!(repo.git(&["log", "-1", "--format=%s"]), "[x] why\n");
    assert_eq!(last(&repo), "M\ta\n");
    assert_eq!(repo.status(), " M b\n?? seen\n");
    assert_eq!(repo.git(&["stash", "list"]), "");
    assert_no_litter(&repo);
}

fn no_hook_adds_what_others_obey(world: &World) {
    if !world.confines() {
        return;
    }
    let repo = Repo::of(&[("a", "text\n")]);
    repo.write("a", "ours\n");
    let head = repo.git(&["rev-parse", "HEAD"]);
    hook(
        &repo,
        "pre-commit",
        "echo 'curl evil' > x; mkdir sub; mv x sub/.envrc; git add sub; echo x > kept 2>&1",
    );
    let is_guarded = |path: &RelPath| path.file_name() == b".envrc";
    let protected = paths(&["kept"]);
    repo.write("kept", "mine\n");
    let user = user(world, &repo, &repo.root);
    let user = user.with_confinement(HookConfinement { is_guarded, protected, ..HookConfinement::default() });
    let result = Git::run_blocking(user.commit(&request(&["a"], "why"), &CancellationToken::new()));
    assert!(matches!(result, Err(GitError::Failed { .. })), "{result:?}");
    hook(&repo, "pre-commit", "git add sub");
    let result = Git::run_blocking(user.commit(&request(&["a"], "why"), &CancellationToken::new()));
    assert_eq!(refusal(result), CommitRefusal::AddedByHook(paths(&["sub/.envrc"])));
    assert_eq!(fs::read_to_string(repo.root.join("kept")).unwrap(), "mine\n");
    assert_eq!(repo.git(&["rev-parse", "HEAD"]), head);
    assert_no_litter(&repo);
}

fn programs_that_the_change_decides_about(world: &World) {
    let unseen = |repo: &Repo, run, names: &[&str]| {
        let runs_code = |path: &RelPath| path.file_name() == b"package.json";
        let user = world.git(&repo.root).for_user(repo.env());
        let user = user.with_confinement(HookConfinement { run, runs_code, ..HookConfinement::default() });
        Git::run_blocking(user.commit(&request(names, "why"), &CancellationToken::new()))
    };
    let script = "#!/bin/sh\necho ran >> ran\ncat\n";
    let cases: [(&str, &str, &str); 7] = [
        ("filter.x.clean", "scripts/run.sh", "scripts/run.sh"),
        ("filter.x.process", "sh -c \"$(pwd)/scripts/run.sh\"", "scripts/run.sh"),
        ("filter.x.clean", "npm run clean", "package.json"),
        ("gpg.program", "./scripts/run.sh", "scripts/run.sh"),
        ("gpg.ssh.defaultkeycommand", "npm run key", "package.json"),
        ("merge.x.driver", "scripts/run.sh %A", "scripts/run.sh"),
        ("include.path", "../settings", "settings"),
    ];
    for (key, value, file) in cases {
        let files = ["scripts/run.sh", "package.json", "settings", ".gitattributes"];
        let repo = Repo::of(&files.map(|name| (name, "")));
        repo.git(&["config", key, value]);
        repo.git(&["config", "commit.gpgSign", "true"]);
        let content =
            if file == "settings" { "[filter \"x\"]\n\tclean = sh scripts/run.sh\n" } else { script };
        repo.write(file, content);
        repo.make_executable(file);
        repo.write(".gitattributes", "*.x filter=x\n");
        repo.write("new.x", "text");
        let expected = CommitRefusal::Unseen { setting: key.to_owned(), files: paths(&[file]) };
        let expected = match key {
            "include.path" => {
                CommitRefusal::Unseen { setting: "filter.x.clean".to_owned(), files: paths(&[file]) }
            }
            _ => expected,
        };
        let found = refusal(unseen(&repo, HookRunMode::Skipped, &[file, "new.x"]));
        assert_eq!(found, expected, "{key} = {value}");
        assert!(found.needs_person() && !repo.root.join("ran").exists());
        assert_no_litter(&repo);
    }
    // What git doesn't know may have been changed by anybody.
    let repo = Repo::of(&[("a", ""), (".gitignore", "tool\n")]);
    repo.git(&["config", "filter.x.clean", "./tool"]);
    repo.write("tool", script);
    repo.write("a", "ours\n");
    let expected = CommitRefusal::Unseen { setting: "filter.x.clean".to_owned(), files: paths(&["tool"]) };
    assert_eq!(refusal(unseen(&repo, HookRunMode::Skipped, &["a"])), expected);
    unseen(&repo, HookRunMode::Outside, &["a"]).unwrap();
}

fn nothing_else_of_the_settings_runs(world: &World) {
    let repo = Repo::of(&[("a", "text\n")]);
    repo.write("a", "ours\n");
    let trap = repo.beside("trap");
    fs::write(&trap, format!("#!/bin/sh\necho $0 >> {}\n", repo.beside("sprung").display())).unwrap();
    fs::set_permissions(&trap, fs::Permissions::from_mode(0o755)).unwrap();
    let trap = trap.display().to_string();
    for key in
        ["core.fsmonitor", "core.editor", "core.pager", "gc.recentObjectsHook", "core.alternateRefsCommand"]
    {
        repo.git(&["config", key, &trap]);
    }
    repo.git(&["config", "gc.auto", "1"]);
    if world.confines() {
        for name in ["post-index-change", "reference-transaction", "pre-auto-gc", "post-checkout"] {
            hook(&repo, name, &trap);
        }
    }
    commit(world, &repo, &["a"], "why").unwrap();
    let user = user(world, &repo, &repo.root);
    let place = repo.empty_beside("state").join("tree");
    drop(Git::run_blocking(user.begin_branch("jm", &place, &CancellationToken::new())).unwrap());
    assert!(!repo.beside("sprung").exists(), "{:?}", fs::read_to_string(repo.beside("sprung")));
    repo.git(&["config", "core.fsmonitor", "false"]);
    assert_no_litter(&repo);
}
