//! Git in the sandbox: what a repository's settings name isn't run, and what projects do with git
//! works.

use journeyman_testkit::has_program_or_skip;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::place::{Place, inside, text};
use crate::common::{host_toolchains, run};
use journeyman_protocol::RelPath;
use journeyman_sandbox::{Outcome, Repositories, Request, WriteMode};

const IDENTITY: &str = "git config user.name a && git config user.email a@example.com";

fn git(directory: &Path, arguments: &[&str]) {
    let status = Command::new("git").arg("-C").arg(directory).args(arguments).status().unwrap();
    assert!(status.success(), "{arguments:?}");
}

fn confined(root: &Path, command: &str) -> journeyman_sandbox::CompletedCommand {
    run(Request::for_shell_command(root, command).with_toolchains(&host_toolchains(root)))
}

fn paths(names: &[&str]) -> Vec<RelPath> {
    names.iter().map(|name| RelPath::parse(name).unwrap()).collect()
}

#[test]
fn a_planted_monitor_or_hook_runs_nothing() {
    if !has_program_or_skip("git") {
        return;
    }
    let project = tempfile::Builder::new().prefix("jm-git-").tempdir().unwrap();
    let root = project.path();
    git(root, &["init", "-q", "evil"]);
    git(root, &["init", "-q", "--bare", "bare"]);
    for place in ["evil/.git", "bare"] {
        let trap = format!("touch {}/ran-$$; false", root.display());
        git(&root.join(place), &["config", "core.fsmonitor", &trap]);
        git(&root.join(place), &["config", "core.bare", "false"]);
        git(&root.join(place), &["config", "core.worktree", &root.join("evil").display().to_string()]);
    }
    let commands = [
        "cd evil && git status; git -C evil status --short; git -C evil diff",
        "cd bare && git status",
        "cd evil/.git && git status",
    ];
    for command in commands {
        confined(root, command);
        let names: Vec<_> = fs::read_dir(root).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names.len(), 2, "{command}: {names:?}");
    }
    let completed = confined(root, "cd bare && git status");
    assert!(matches!(completed.outcome, Outcome::Exited(128)), "{}", completed.combined.text);
}

#[test]
fn what_projects_do_with_git_works() {
    if !has_program_or_skip("git") {
        return;
    }
    let project = tempfile::Builder::new().prefix("jm-git-").tempdir().unwrap();
    let command = format!(
        "cd /tmp && git init -q --bare remote.git && git init -q work && cd work && {IDENTITY} && echo a > a \
         && git add . && git commit -qm one && echo b >> a && git diff | grep -q '^+b' && git commit -qam two \
         && git push -q ../remote.git HEAD:main && git clone -q ../remote.git ../copy 2>/dev/null \
         && git --git-dir ../remote.git log --oneline main | wc -l"
    );
    let completed = confined(project.path(), &command);
    assert_eq!(completed.outcome, Outcome::Exited(0), "{}", completed.combined.text);
    assert_eq!(completed.stdout.text.trim(), "2");
}

#[test]
fn passwords_in_a_repositorys_settings_are_blanked_for_commands() {
    if !has_program_or_skip("git") {
        return;
    }
    let project = tempfile::Builder::new().prefix("jm-git-").tempdir().unwrap();
    let root = project.path();
    git(root, &["init", "-q"]);
    git(root, &["config", "remote.origin.url", "https://bob:hunter2@example.com/a.git"]);
    git(root, &["config", "user.name", "bob"]);
    fs::create_dir_all(root.join(".git/modules/sub")).unwrap();
    fs::write(root.join(".git/modules/sub/config"), "[http]\n\textraheader = basic hunter2\n").unwrap();
    let before = fs::read(root.join(".git/config")).unwrap();
    for write in [WriteMode::Direct, WriteMode::ReadOnly] {
        let command =
            "git remote get-url origin; git config user.name; grep -r hunter2 .git; echo x > .git/config";
        let request = Request { write, ..Request::for_shell_command(root, command) };
        let completed = run(request.with_toolchains(&host_toolchains(root)));
        assert_eq!(completed.stdout.text, "https://***@example.com/a.git\nbob\n", "{write:?}");
        assert_ne!(completed.outcome, Outcome::Exited(0));
    }
    assert_eq!(fs::read(root.join(".git/config")).unwrap(), before);
}

#[test]
fn passwords_of_every_submodule_and_of_a_repository_by_another_name_are_blanked() {
    let project = tempfile::Builder::new().prefix("jm-git-").tempdir().unwrap();
    let root = project.path();
    let repositories = [".bare", ".bare/modules/libs/one", ".bare/modules/libs/one/modules/two"];
    for repository in repositories {
        fs::create_dir_all(root.join(repository)).unwrap();
        fs::write(root.join(repository).join("HEAD"), "ref: refs/heads/main\n").unwrap();
        fs::write(root.join(repository).join("config"), "\turl = https://bob:hunter2@host/a\n").unwrap();
    }
    fs::write(root.join(".git"), "gitdir: ./.bare\n").unwrap();
    let mut request = Request::for_shell_command(root, "find .bare -name config -exec cat {} +");
    request.protected = Repositories::read(root, root, paths(&[".git"])).protected_paths();
    let completed = run(request);
    assert_eq!(completed.stdout.text, "\turl = https://***@host/a\n".repeat(repositories.len()));
}

#[test]
fn repositories_are_protected_with_what_they_point_to() {
    let project = tempfile::Builder::new().prefix("jm-git-").tempdir().unwrap();
    let root = project.path();
    for directory in [".git/modules/sub", "nested/.git", "sub", "apart/real", "linked", "elsewhere", "lost"] {
        fs::create_dir_all(root.join(directory)).unwrap();
    }
    fs::write(root.join("sub/.git"), "gitdir: ../.git/modules/sub\n").unwrap();
    fs::write(root.join("elsewhere/.git"), "gitdir: ../apart/real\n").unwrap();
    fs::write(root.join("lost/.git"), "gitdir: /nowhere/at/all\n").unwrap();
    symlink("../nested/.git", root.join("linked/.git")).unwrap();
    symlink("nested", root.join("alias")).unwrap();
    let entries =
        [".git", "nested/.git", "sub/.git", "elsewhere/.git", "lost/.git", "linked/.git", "alias/.git"];
    let found = Repositories::read(root, root, paths(&entries));
    let expected = paths(&[".git", "apart/real", "elsewhere/.git", "lost/.git", "nested/.git", "sub/.git"]);
    assert_eq!(found.protected_paths(), expected);
    assert_eq!(found.find_planted(paths(&entries)), []);
    let mut request = Request::for_shell_command(
        root,
        "for f in .git nested/.git apart/real; do touch $f/x; done; echo > sub/.git",
    );
    request.protected = found.protected_paths();
    let completed = run(request);
    assert_ne!(completed.outcome, Outcome::Exited(0));
    assert_eq!(fs::read_dir(root.join("nested/.git")).unwrap().count(), 0);
    assert_eq!(fs::read_dir(root.join("apart/real")).unwrap().count(), 0);
}

#[test]
fn what_came_or_was_replaced_is_planted_and_what_was_moved_is_not() {
    let project = tempfile::Builder::new().prefix("jm-git-").tempdir().unwrap();
    let root = project.path();
    for directory in ["moved/.git", "replaced/.git", "kept/.git", "sub", "link"] {
        fs::create_dir_all(root.join(directory)).unwrap();
    }
    fs::write(root.join("sub/.git"), "gitdir: ../a\n").unwrap();
    symlink("../a", root.join("link/.git")).unwrap();
    let before = ["moved/.git", "replaced/.git", "kept/.git", "sub/.git", "link/.git"];
    let found = Repositories::read(root, root, paths(&before));

    fs::rename(root.join("moved"), root.join("there")).unwrap();
    fs::rename(root.join("replaced"), root.join("aside")).unwrap();
    fs::create_dir_all(root.join("replaced/.git")).unwrap();
    fs::create_dir_all(root.join("new/.git")).unwrap();
    fs::write(root.join("sub/.git"), "gitdir: ../b\n").unwrap();
    fs::remove_file(root.join("link/.git")).unwrap();
    symlink("../b", root.join("link/.git")).unwrap();
    let now = ["there/.git", "aside/.git", "replaced/.git", "kept/.git", "new/.git", "link/.git"];
    // `sub/.git` is one that a walk passes by.
    let planted = found.find_planted(paths(&now));
    assert_eq!(planted, paths(&["link/.git", "new/.git", "replaced/.git", "sub/.git"]));
}

#[test]
fn repositories_of_a_mount_are_found_by_the_names_that_commands_see() {
    let place = Place::new();
    let root = place.root();
    fs::create_dir_all(root.join("apart/real")).unwrap();
    fs::create_dir_all(root.join("apart/other")).unwrap();
    for (directory, pointer) in [
        ("absolute", format!("gitdir: {}\n", root.join("apart/real").display())),
        ("relative", "gitdir: ../apart/other\n".to_owned()),
        ("by-link", format!("gitdir: {}/.git/hooks\n", place.at("root").display())),
        ("outside", "gitdir: /etc\n".to_owned()),
    ] {
        fs::create_dir(root.join(directory)).unwrap();
        fs::write(root.join(directory).join(".git"), pointer).unwrap();
    }
    let paths =
        |names: &[&str]| -> Vec<RelPath> { names.iter().map(|name| RelPath::parse(name).unwrap()).collect() };
    let entries = paths(&[".git", "absolute/.git", "by-link/.git", "outside/.git", "relative/.git"]);
    let expected = paths(&[
        ".git",
        "absolute/.git",
        "apart/other",
        "apart/real",
        "by-link/.git",
        "outside/.git",
        "relative/.git",
    ]);
    let Some(mounted) = place.mount("copy") else { return };
    for reach in [root.clone(), inside(&mounted, "")] {
        let reach = PathBuf::from(reach.to_str().unwrap().trim_end_matches('/'));
        let found = Repositories::read(&reach, &root, entries.clone());
        assert_eq!(found.protected_paths(), expected, "{}", reach.display());
        assert_eq!(found.find_planted(entries.clone()), []);
    }
    let reach = inside(&mounted, "");
    let found = Repositories::read(&reach, &root, entries.clone());
    let mut request = place.request(
        &mounted,
        "for f in .git absolute/.git apart/other apart/real; do echo x > $f/x; echo x > $f; done 2>/dev/null; \
         mkdir -p new/.git; touch src/deep/.git; true",
    );
    request.protected = found.protected_paths();
    text(request);
    // Changing what lies beside one, which copies directories up, makes it no other one.
    let now = paths(&[".git", "absolute/.git", "relative/.git", "new/.git", "src/deep/.git"]);
    assert_eq!(found.find_planted(now), paths(&["new/.git", "src/deep/.git"]));
}
